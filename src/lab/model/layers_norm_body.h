/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and activations for one precision: see real.h. No include guard: it is included twice.
 *
 * A token's sums are in double: number i goes to one of 16 partial sums, i mod 16, which are added
 * as a tree.
 */

/* The sum of (x - mean)^power over dim numbers, power 1 or 2. */
EMBLA_BODY double OF(moment)(const REAL *x, size_t dim, double mean, const int power)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_SUMS <= dim; i += EMBLA_SUMS) {
        embla_vec_f64 a = __builtin_convertvector(*(const EIGHT *)(x + i), embla_vec_f64) - mean;
        embla_vec_f64 b =
            __builtin_convertvector(*(const EIGHT *)(x + i + 8), embla_vec_f64) - mean;
        if (power == 2) a *= a, b *= b;
        low += a;
        high += b;
    }
    *(embla_vec_f64 *)sums = low;
    *(embla_vec_f64 *)(sums + 8) = high;
    for (size_t j = 0; i + j < dim; j++) {
        double a = (double)x[i + j] - mean;
        sums[j] += power == 2 ? a * a : a;
    }
    return embla_add_tree(sums);
}

EMBLA_BODY void OF(norm_rows_body)(const norm_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    const REAL *gain = job->gain, *bias = job->bias;
    for (size_t t = first; t < first + n; t++) {
        const REAL *x = (const REAL *)job->x + t * dim;
        REAL *y = (REAL *)job->y + t * dim, *stats = (REAL *)job->stats + 2 * t;
        double mean =
            job->kind == EMBLA_NORM_LAYER ? OF(moment)(x, dim, 0.0, 1) / (double)dim : 0.0;
        double square = OF(moment)(x, dim, mean, 2) / (double)dim;
        REAL middle = (REAL)mean, slope = (REAL)(1.0 / sqrt(square + job->epsilon));
        stats[0] = middle;
        stats[1] = slope;
        if (gain && bias)
            for (size_t i = 0; i < dim; i++) y[i] = (x[i] - middle) * slope * gain[i] + bias[i];
        else if (gain)
            for (size_t i = 0; i < dim; i++) y[i] = (x[i] - middle) * slope * gain[i];
        else if (bias)
            for (size_t i = 0; i < dim; i++) y[i] = (x[i] - middle) * slope + bias[i];
        else
            for (size_t i = 0; i < dim; i++) y[i] = (x[i] - middle) * slope;
    }
}

/* With g = dy * gain and h = (x - mean) * slope: computes the means of g and of g * h. */
EMBLA_BODY void OF(means)(const REAL *x, const REAL *dy, const REAL *gain, size_t dim, REAL middle,
                          REAL slope, REAL means[2])
{
    double plain[EMBLA_SUMS] = {0}, along[EMBLA_SUMS] = {0};
    for (size_t i = 0; i < dim; i += EMBLA_SUMS) {
        size_t some = dim - i < EMBLA_SUMS ? dim - i : EMBLA_SUMS;
        if (some == EMBLA_SUMS)
            for (size_t j = 0; j < EMBLA_SUMS; j++) {
                REAL g = gain ? dy[i + j] * gain[i + j] : dy[i + j];
                plain[j] += (double)g;
                along[j] += (double)g * (double)((x[i + j] - middle) * slope);
            }
        else
            for (size_t j = 0; j < some; j++) {
                REAL g = gain ? dy[i + j] * gain[i + j] : dy[i + j];
                plain[j] += (double)g;
                along[j] += (double)g * (double)((x[i + j] - middle) * slope);
            }
    }
    means[0] = (REAL)(embla_add_tree(plain) / (double)dim);
    means[1] = (REAL)(embla_add_tree(along) / (double)dim);
}

/* Tokens first .. first+n-1. Their gradients of gain and bias are added to sums (2 x dim). */
EMBLA_BODY void OF(norm_back_body)(const norm_job *job, size_t first, size_t n,
                                   double *restrict sums)
{
    size_t dim = job->dim;
    const REAL *gain = job->gain;
    for (size_t t = first; t < first + n; t++) {
        const REAL *x = (const REAL *)job->x + t * dim, *dy = (const REAL *)job->dy + t * dim;
        const REAL *stats = (const REAL *)job->stats + 2 * t;
        REAL middle = stats[0], slope = stats[1], means[2];
        REAL *restrict dx = (REAL *)job->dx + t * dim;
        OF(means)(x, dy, gain, dim, middle, slope, means);
        if (job->kind == EMBLA_NORM_RMS) means[0] = 0;
        for (size_t i = 0; i < dim; i++) {
            REAL h = (x[i] - middle) * slope, g = gain ? dy[i] * gain[i] : dy[i];
            dx[i] += slope * (g - means[0] - h * means[1]);
        }
        for (size_t i = 0; sums && i < dim; i++) {
            sums[i] += (double)dy[i] * (double)((x[i] - middle) * slope);
            sums[dim + i] += (double)dy[i];
        }
    }
}

/* ---- activations ---- */

#define GELU_SLOPE ((REAL)0.7978845608028654) /* sqrt(2 / pi) */
#define GELU_CUBE  ((REAL)0.044715)

/* tanh of GELU's inner sum. */
EMBLA_BODY void OF(gelu_tanh)(const REAL *a, size_t n, REAL *t)
{
    for (size_t i = 0; i < n; i++) t[i] = GELU_SLOPE * (a[i] + GELU_CUBE * (a[i] * a[i] * a[i]));
    OF(embla_tanh_row)(t, n);
}

/* e^-x of n numbers. */
EMBLA_BODY void OF(exp_negative)(const REAL *x, size_t n, REAL *out)
{
    for (size_t i = 0; i < n; i++) out[i] = -x[i];
    OF(embla_exp_row)(out, n, 0, out);
}

EMBLA_BODY void OF(relu)(const REAL *a, size_t n, REAL *y)
{
    EACH_NUMBER y[i] = a[i] < 0 ? 0 : a[i];
}

EMBLA_BODY void OF(relu_back)(const REAL *a, const REAL *dy, size_t n, REAL *da)
{
    EACH_NUMBER da[i] = a[i] > 0 ? dy[i] : 0;
}

EMBLA_BODY void OF(relu_squared)(const REAL *a, size_t n, REAL *y)
{
    EACH_NUMBER y[i] = a[i] < 0 ? 0 : a[i] * a[i];
}

EMBLA_BODY void OF(relu_squared_back)(const REAL *a, const REAL *dy, size_t n, REAL *da)
{
    EACH_NUMBER da[i] = a[i] > 0 ? 2 * a[i] * dy[i] : 0;
}

/* Numbers first .. first+n-1, at most PIECE. */
EMBLA_BODY void OF(act_body)(const act_job *job, size_t first, size_t n)
{
    const REAL *a = (const REAL *)job->a + first, one = 1, half = (REAL)0.5;
    const REAL *up = job->up ? (const REAL *)job->up + first : NULL;
    REAL *y = (REAL *)job->y + first, t[PIECE];
    switch (job->kind) {
    case EMBLA_ACTIVATION_GELU:
        OF(gelu_tanh)(a, n, t);
        EACH_NUMBER y[i] = half * a[i] * (one + t[i]);
        break;
    case EMBLA_ACTIVATION_RELU:
        OF(relu)(a, n, y);
        break;
    case EMBLA_ACTIVATION_RELU_SQUARED:
        OF(relu_squared)(a, n, y);
        break;
    case EMBLA_ACTIVATION_SWIGLU:
        OF(exp_negative)(a, n, t);
        EACH_NUMBER y[i] = a[i] / (one + t[i]) * up[i];
        break;
    }
}

EMBLA_BODY void OF(swiglu_back)(const REAL *a, const REAL *up, const REAL *dy, size_t n, REAL *da,
                                REAL *dup)
{
    const REAL one = 1;
    REAL t[PIECE];
    OF(exp_negative)(a, n, t);
    EACH_NUMBER
    {
        REAL s = one / (one + t[i]), d = dy[i];
        dup[i] = d * (a[i] * s);
        da[i] = d * up[i] * (s * (one + a[i] * (one - s)));
    }
}

EMBLA_BODY void OF(act_back_body)(const act_job *job, size_t first, size_t n)
{
    const REAL *a = (const REAL *)job->a + first, *dy = (const REAL *)job->dy + first;
    REAL *da = (REAL *)job->da + first, t[PIECE];
    const REAL one = 1, half = (REAL)0.5, cube = 3 * GELU_CUBE;
    switch (job->kind) {
    case EMBLA_ACTIVATION_GELU:
        OF(gelu_tanh)(a, n, t);
        EACH_NUMBER
        {
            REAL inner = GELU_SLOPE * (one + cube * (a[i] * a[i]));
            da[i] = dy[i] * (half * (one + t[i]) + half * a[i] * (one - t[i] * t[i]) * inner);
        }
        break;
    case EMBLA_ACTIVATION_RELU:
        OF(relu_back)(a, dy, n, da);
        break;
    case EMBLA_ACTIVATION_RELU_SQUARED:
        OF(relu_squared_back)(a, dy, n, da);
        break;
    case EMBLA_ACTIVATION_SWIGLU:
        OF(swiglu_back)(a, (const REAL *)job->up + first, dy, n, da, (REAL *)job->dup + first);
        break;
    }
}

EMBLA_ISA_FUNCTION(void, OF(norm_rows), (const norm_job *job, size_t first, size_t n),
                   OF(norm_rows_body)(job, first, n);)
EMBLA_ISA_FUNCTION(void, OF(norm_back), (const norm_job *job, size_t first, size_t n, double *sums),
                   OF(norm_back_body)(job, first, n, sums);)
EMBLA_ISA_FUNCTION(void, OF(act), (const act_job *job, size_t first, size_t n),
                   OF(act_body)(job, first, n);)
EMBLA_ISA_FUNCTION(void, OF(act_back), (const act_job *job, size_t first, size_t n),
                   OF(act_back_body)(job, first, n);)
