/* SPDX-License-Identifier: Apache-2.0 */
/* Norms and activations, forward and backward. Tokens are independent, except for the gradients of
 * gain and bias. For these, tokens are divided into blocks that depend only on their number. Each
 * block has its own sums in double, and blocks are added in order.
 *
 * A token's sums are in double: number i goes to one of 16 partial sums, i mod 16, which are added
 * as a tree.
 */
#include <math.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "model/layers.h"
#include "model/layers_vec.h"

enum {
    PIECE = 512,      /* numbers of an activation processed at a time */
    BLOCK = 64,       /* minimum tokens of a block */
    BLOCKS_MOST = 32, /* maximum number of blocks */
    STACK = 1024      /* doubles that need no allocation */
};

typedef struct {
    embla_norm_kind kind;
    double epsilon;
    size_t dim;
    const float *x, *gain, *bias, *dy;
    float *y, *stats, *dx;
    size_t n;     /* backward: tokens */
    double *sums; /* backward: of each block, 2 x dim; NULL means not wanted */
} norm_job;

/* ---- norms ---- */

/* The sum of (x - mean)^power over dim numbers, power 1 or 2. */
EMBLA_BODY double moment(const float *x, size_t dim, double mean, const int power)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_SUMS <= dim; i += EMBLA_SUMS) {
        embla_vec_f64 a = EMBLA_WIDEN(x + i) - mean;
        embla_vec_f64 b = EMBLA_WIDEN(x + i + 8) - mean;
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

EMBLA_BODY void norm_rows_body(const norm_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    const float *gain = job->gain, *bias = job->bias;
    for (size_t t = first; t < first + n; t++) {
        const float *x = job->x + t * dim;
        float *y = job->y + t * dim, *stats = job->stats + 2 * t;
        double mean = job->kind == EMBLA_NORM_LAYER ? moment(x, dim, 0.0, 1) / (double)dim : 0.0;
        double square = moment(x, dim, mean, 2) / (double)dim;
        float middle = (float)mean, slope = (float)(1.0 / sqrt(square + job->epsilon));
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
EMBLA_BODY void means_of(const float *x, const float *dy, const float *gain, size_t dim,
                         float middle, float slope, float means[2])
{
    double plain[EMBLA_SUMS] = {0}, along[EMBLA_SUMS] = {0};
    for (size_t i = 0; i < dim; i += EMBLA_SUMS) {
        size_t some = dim - i < EMBLA_SUMS ? dim - i : EMBLA_SUMS;
        if (some == EMBLA_SUMS)
            for (size_t j = 0; j < EMBLA_SUMS; j++) {
                float g = gain ? dy[i + j] * gain[i + j] : dy[i + j];
                plain[j] += (double)g;
                along[j] += (double)g * (double)((x[i + j] - middle) * slope);
            }
        else
            for (size_t j = 0; j < some; j++) {
                float g = gain ? dy[i + j] * gain[i + j] : dy[i + j];
                plain[j] += (double)g;
                along[j] += (double)g * (double)((x[i + j] - middle) * slope);
            }
    }
    means[0] = (float)(embla_add_tree(plain) / (double)dim);
    means[1] = (float)(embla_add_tree(along) / (double)dim);
}

/* Tokens first .. first+n-1. Their gradients of gain and bias are added to sums (2 x dim). */
EMBLA_BODY void norm_back_body(const norm_job *job, size_t first, size_t n, double *restrict sums)
{
    size_t dim = job->dim;
    const float *gain = job->gain;
    for (size_t t = first; t < first + n; t++) {
        const float *x = job->x + t * dim, *dy = job->dy + t * dim;
        const float *stats = job->stats + 2 * t;
        float middle = stats[0], slope = stats[1], means[2];
        float *restrict dx = job->dx + t * dim;
        means_of(x, dy, gain, dim, middle, slope, means);
        if (job->kind == EMBLA_NORM_RMS) means[0] = 0;
        for (size_t i = 0; i < dim; i++) {
            float h = (x[i] - middle) * slope, g = gain ? dy[i] * gain[i] : dy[i];
            dx[i] += slope * (g - means[0] - h * means[1]);
        }
        for (size_t i = 0; sums && i < dim; i++) {
            sums[i] += (double)dy[i] * (double)((x[i] - middle) * slope);
            sums[dim + i] += (double)dy[i];
        }
    }
}

EMBLA_ISA_FUNCTION(void, norm_rows, (const norm_job *job, size_t first, size_t n),
                   norm_rows_body(job, first, n);)
EMBLA_ISA_FUNCTION(void, norm_back, (const norm_job *job, size_t first, size_t n, double *sums),
                   norm_back_body(job, first, n, sums);)

static embla_status norm_tokens(void *job, size_t first, size_t end, size_t slot)
{
    const norm_job *j = job;
    (void)slot;
    EMBLA_PICK(norm_rows)(j, first, end - first);
    return EMBLA_OK;
}

embla_status embla_norm_forward(const embla_layer_way *way, embla_norm_kind kind, double epsilon,
                                const float *x, size_t n, size_t dim, const float *gain,
                                const float *bias, float *y, float *stats)
{
    norm_job job = {.kind = kind,
                    .epsilon = epsilon,
                    .dim = dim,
                    .x = x,
                    .gain = gain,
                    .bias = bias,
                    .y = y,
                    .stats = stats};
    int threads = embla_threads_for(way->threads, 2 * n * dim * sizeof(float));
    return embla_share(threads, n, 0, norm_tokens, &job);
}

/* Tokens of a block: few enough for BLOCKS_MOST blocks, but at least BLOCK. */
static size_t block_of(size_t n)
{
    size_t block = n / BLOCKS_MOST + (n % BLOCKS_MOST > 0);
    return block < BLOCK ? BLOCK : block;
}

static embla_status back_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const norm_job *j = job;
    size_t size = block_of(j->n);
    (void)slot;
    for (size_t block = first; block < end; block++) {
        size_t from = block * size, some = j->n - from < size ? j->n - from : size;
        double *sums = j->sums ? j->sums + block * 2 * j->dim : NULL;
        EMBLA_PICK(norm_back)(j, from, some, sums);
    }
    return EMBLA_OK;
}

/* Adds the sums of the blocks, which are stride doubles apart, to out. */
static void add_sums(const double *sums, size_t blocks, size_t stride, size_t dim, float *out)
{
    for (size_t i = 0; out && i < dim; i++) {
        double sum = 0.0;
        for (size_t b = 0; b < blocks; b++) sum += sums[b * stride + i];
        out[i] = (float)((double)out[i] + sum);
    }
}

embla_status embla_norm_backward(const embla_layer_way *way, embla_norm_kind kind, const float *x,
                                 const float *stats, size_t n, size_t dim, const float *gain,
                                 const float *dy, float *dx, float *dgain, float *dbias)
{
    norm_job job = {.kind = kind,
                    .dim = dim,
                    .x = x,
                    .gain = gain,
                    .dy = dy,
                    .stats = (float *)(uintptr_t)stats,
                    .dx = dx,
                    .n = n};
    size_t size = block_of(n), blocks = n / size + (n % size > 0);
    double stack[STACK], *sums = dgain || dbias ? stack : NULL;
    embla_layout layout = {0};
    embla_scratch_use use = {0};
    if (sums && blocks * 2 * dim > STACK) {
        (void)embla_layout_add(&layout, blocks * 2 * dim, sizeof(double));
        EMBLA_TRY(embla_scratch_begin(way->scratch, layout.bytes, "the gradients of a norm", &use));
        sums = use.memory;
    }
    if (sums) memset(sums, 0, blocks * 2 * dim * sizeof *sums);
    job.sums = sums;
    int threads = embla_threads_for(way->threads, 4 * n * dim * sizeof(float));
    embla_status status = embla_share(threads, blocks, 0, back_blocks, &job);
    if (status == EMBLA_OK && sums) {
        add_sums(sums, blocks, 2 * dim, dim, dgain);
        add_sums(sums + dim, blocks, 2 * dim, dim, dbias);
    }
    embla_scratch_end(&use);
    return status;
}

/* ---- activations ---- */

typedef struct {
    embla_activation kind;
    const float *a, *up, *dy;
    float *y, *da, *dup;
} act_job;

/* Arrays may be the same (da and dy), but must not overlap otherwise. */
#define EACH_NUMBER _Pragma("omp simd") for (size_t i = 0; i < n; i++)

#define GELU_SLOPE 0.7978845608028654f /* sqrt(2 / pi) */
#define GELU_CUBE  0.044715f

/* tanh of GELU's inner sum. */
EMBLA_BODY void gelu_tanh(const float *a, size_t n, float *t)
{
    for (size_t i = 0; i < n; i++) t[i] = GELU_SLOPE * (a[i] + GELU_CUBE * (a[i] * a[i] * a[i]));
    embla_tanh_row_f32(t, n);
}

/* e^-x of n numbers. */
EMBLA_BODY void exp_negative(const float *x, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = -x[i];
    embla_exp_row_f32(out, n, 0, out);
}

EMBLA_BODY void relu(const float *a, size_t n, float *y)
{
    EACH_NUMBER y[i] = a[i] < 0 ? 0 : a[i];
}

EMBLA_BODY void relu_back(const float *a, const float *dy, size_t n, float *da)
{
    EACH_NUMBER da[i] = a[i] > 0 ? dy[i] : 0;
}

EMBLA_BODY void relu_squared(const float *a, size_t n, float *y)
{
    EACH_NUMBER y[i] = a[i] < 0 ? 0 : a[i] * a[i];
}

EMBLA_BODY void relu_squared_back(const float *a, const float *dy, size_t n, float *da)
{
    EACH_NUMBER da[i] = a[i] > 0 ? 2 * a[i] * dy[i] : 0;
}

EMBLA_BODY void swiglu(const float *a, const float *up, size_t n, float *y)
{
    const float one = 1;
    float t[PIECE];
    exp_negative(a, n, t);
    EACH_NUMBER y[i] = a[i] / (one + t[i]) * up[i];
}

/* Numbers first .. first+n-1, at most PIECE. */
EMBLA_BODY void act_body(const act_job *job, size_t first, size_t n)
{
    const float *a = job->a + first, one = 1, half = 0.5f;
    float *y = job->y + first, t[PIECE];
    switch (job->kind) {
    case EMBLA_ACTIVATION_GELU:
        gelu_tanh(a, n, t);
        EACH_NUMBER y[i] = half * a[i] * (one + t[i]);
        break;
    case EMBLA_ACTIVATION_RELU:
        relu(a, n, y);
        break;
    case EMBLA_ACTIVATION_RELU_SQUARED:
        relu_squared(a, n, y);
        break;
    case EMBLA_ACTIVATION_SWIGLU:
        swiglu(a, job->up + first, n, y);
        break;
    }
}

EMBLA_BODY void swiglu_back(const float *a, const float *up, const float *dy, size_t n, float *da,
                            float *dup)
{
    const float one = 1;
    float t[PIECE];
    exp_negative(a, n, t);
    EACH_NUMBER
    {
        float s = one / (one + t[i]), d = dy[i];
        dup[i] = d * (a[i] * s);
        da[i] = d * up[i] * (s * (one + a[i] * (one - s)));
    }
}

EMBLA_BODY void act_back_body(const act_job *job, size_t first, size_t n)
{
    const float *a = job->a + first, *dy = job->dy + first;
    float *da = job->da + first, t[PIECE];
    const float one = 1, half = 0.5f, cube = 3 * GELU_CUBE;
    switch (job->kind) {
    case EMBLA_ACTIVATION_GELU:
        gelu_tanh(a, n, t);
        EACH_NUMBER
        {
            float inner = GELU_SLOPE * (one + cube * (a[i] * a[i]));
            da[i] = dy[i] * (half * (one + t[i]) + half * a[i] * (one - t[i] * t[i]) * inner);
        }
        break;
    case EMBLA_ACTIVATION_RELU:
        relu_back(a, dy, n, da);
        break;
    case EMBLA_ACTIVATION_RELU_SQUARED:
        relu_squared_back(a, dy, n, da);
        break;
    case EMBLA_ACTIVATION_SWIGLU:
        swiglu_back(a, job->up + first, dy, n, da, job->dup + first);
        break;
    }
}

EMBLA_ISA_FUNCTION(void, act, (const act_job *job, size_t first, size_t n),
                   act_body(job, first, n);)
EMBLA_ISA_FUNCTION(void, act_back, (const act_job *job, size_t first, size_t n),
                   act_back_body(job, first, n);)

typedef void act_fn(const act_job *job, size_t first, size_t n);

typedef struct {
    act_fn *f;
    const act_job *job;
    size_t n;
} pieces_job;

static embla_status run_pieces(void *job, size_t first, size_t end, size_t slot)
{
    const pieces_job *p = job;
    (void)slot;
    for (size_t i = first * PIECE; i < p->n && i < end * PIECE; i += PIECE)
        p->f(p->job, i, p->n - i < PIECE ? p->n - i : PIECE);
    return EMBLA_OK;
}

static embla_status in_pieces(const embla_layer_way *way, act_fn *f, const act_job *job, size_t n)
{
    int threads = embla_threads_for(way->threads, 4 * n * sizeof(float));
    return embla_share(threads, n / PIECE + (n % PIECE > 0), 0, run_pieces,
                       &(pieces_job){f, job, n});
}

embla_status embla_activation_forward(const embla_layer_way *way, embla_activation kind,
                                      const float *a, const float *up, size_t n, size_t hidden,
                                      float *y)
{
    act_job job = {.kind = kind, .a = a, .up = up, .y = y};
    return in_pieces(way, EMBLA_PICK(act), &job, n * hidden);
}

embla_status embla_activation_backward(const embla_layer_way *way, embla_activation kind,
                                       const float *a, const float *up, const float *dy, size_t n,
                                       size_t hidden, float *da, float *dup)
{
    act_job job = {.kind = kind, .a = a, .up = up, .dy = dy, .da = da, .dup = dup};
    return in_pieces(way, EMBLA_PICK(act_back), &job, n * hidden);
}
