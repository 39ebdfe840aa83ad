/* SPDX-License-Identifier: Apache-2.0 */
/* The gate for one precision: see real.h. No include guard: it is included twice.
 *
 * Sums over a token are in double: number i goes to one of 16 partial sums, i mod 16, which are
 * added as a tree.
 */

/* a . b, products exact or rounded once, in double. */
EMBLA_BODY double OF(gate_dot)(const REAL *a, const REAL *b, size_t dim)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_SUMS <= dim; i += EMBLA_SUMS) {
        low += __builtin_convertvector(*(const EIGHT *)(a + i), embla_vec_f64) *
               __builtin_convertvector(*(const EIGHT *)(b + i), embla_vec_f64);
        high += __builtin_convertvector(*(const EIGHT *)(a + i + 8), embla_vec_f64) *
                __builtin_convertvector(*(const EIGHT *)(b + i + 8), embla_vec_f64);
    }
    *(embla_vec_f64 *)sums = low;
    *(embla_vec_f64 *)(sums + 8) = high;
    for (size_t j = 0; i + j < dim; j++) sums[j] += (double)a[i + j] * (double)b[i + j];
    return embla_add_tree(sums);
}

/* Tokens first .. first+n-1. */
EMBLA_BODY void OF(gate_rows_body)(const gate_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    double root = sqrt((double)dim);
    for (size_t t = first; t < first + n; t++) {
        const REAL *x = (const REAL *)job->x + t * dim;
        const REAL *key = (const REAL *)job->key + t * job->stride;
        const REAL *value = (const REAL *)job->value + t * job->stride;
        REAL *y = (REAL *)job->y + t * dim, *stats = (REAL *)job->stats + EMBLA_GATE_STATS * t;
        double a = 1.0 / sqrt(OF(gate_dot)(x, x, dim) / (double)dim + job->epsilon);
        double b = 1.0 / sqrt(OF(gate_dot)(key, key, dim) / (double)dim + job->epsilon);
        double likeness = OF(gate_dot)(x, key, dim) * a * b / (double)dim;
        REAL gate = OF(sigmoid)((REAL)(likeness * root));
        stats[0] = (REAL)a;
        stats[1] = (REAL)b;
        stats[2] = (REAL)likeness;
        stats[3] = gate;
        for (size_t i = 0; i < dim; i++) y[i] = x[i] + gate * value[i];
    }
}

/* With h = x a, k = key b and m their likeness (k . h / dim): the gate's argument m sqrt(dim) has
 * the derivative a (k - h m) / sqrt(dim) by x, b (h - k m) / sqrt(dim) by the key. */
EMBLA_BODY void OF(gate_back_body)(const gate_job *job, size_t first, size_t n)
{
    size_t dim = job->dim;
    const REAL one = 1;
    double root = sqrt((double)dim);
    for (size_t t = first; t < first + n; t++) {
        const REAL *x = (const REAL *)job->x + t * dim;
        const REAL *key = (const REAL *)job->key + t * job->stride;
        const REAL *value = (const REAL *)job->value + t * job->stride;
        const REAL *stats = (const REAL *)job->stats + EMBLA_GATE_STATS * t;
        REAL *restrict dx = (REAL *)job->y + t * dim;
        REAL *restrict dkey = (REAL *)job->dkey + t * job->stride;
        REAL *restrict dvalue = (REAL *)job->dvalue + t * job->stride;
        REAL a = stats[0], b = stats[1], m = stats[2], gate = stats[3];
        REAL along = (REAL)OF(gate_dot)(dx, value, dim);
        REAL slope = (REAL)((double)(along * (gate * (one - gate))) / root);
        REAL of_x = slope * a, of_key = slope * b;
        for (size_t i = 0; i < dim; i++) {
            REAL h = x[i] * a, k = key[i] * b;
            dvalue[i] = gate * dx[i];
            dkey[i] = of_key * (h - k * m);
            dx[i] += of_x * (k - h * m);
        }
    }
}

EMBLA_ISA_FUNCTION(void, OF(gate_rows), (const gate_job *job, size_t first, size_t n),
                   OF(gate_rows_body)(job, first, n);)
EMBLA_ISA_FUNCTION(void, OF(gate_back), (const gate_job *job, size_t first, size_t n),
                   OF(gate_back_body)(job, first, n);)
