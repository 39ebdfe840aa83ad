/* SPDX-License-Identifier: Apache-2.0 */
/* Combines many vectors into one, column by column, in the order of the vectors. Sums are in
 * double, a piece of columns at a time, so nothing is allocated. */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/status.h"
#include "base/threads.h"

/* One sequence: count vectors of dim floats at x; weights may be NULL. */
typedef struct {
    const float *x, *weights;
    size_t count, dim;
} sequence;

/* Sum or mean of columns first .. first+n-1. */
static void sum_piece(const sequence *s, size_t first, size_t n, bool mean, float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    double sums[EMBLA_PIECE] = {0}, total = 0.0;
    for (size_t t = 0; t < s->count; t++) {
        double weight = s->weights ? (double)s->weights[t] : 1.0;
        kernels->accumulate(s->x + t * s->dim + first, weight, n, sums);
        total += weight;
    }
    double divisor = mean ? total : 1.0;
    for (size_t i = 0; i < n; i++) out[i] = divisor == 0.0 ? 0.0f : (float)(sums[i] / divisor);
}

static void pool_sequence(const sequence *s, const embla_pool_options *options, float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    if (s->count == 0) {
        memset(out, 0, s->dim * sizeof *out);
    } else if (options->kind == EMBLA_POOL_MAX) {
        memcpy(out, s->x, s->dim * sizeof *out);
        for (size_t t = 1; t < s->count; t++) kernels->maximum(s->x + t * s->dim, s->dim, out);
    } else if (options->kind == EMBLA_POOL_LAST) {
        memcpy(out, s->x + (s->count - 1) * s->dim, s->dim * sizeof *out);
    } else {
        for (size_t first = 0; first < s->dim; first += EMBLA_PIECE) {
            size_t n = s->dim - first < EMBLA_PIECE ? s->dim - first : EMBLA_PIECE;
            sum_piece(s, first, n, options->kind == EMBLA_POOL_MEAN, out + first);
        }
    }
    if (options->normalize) embla_normalize(out, s->dim);
}

static embla_status check(const float *x, size_t batch, size_t length, size_t dim,
                          const embla_pool_options *options, const float *out)
{
    uint64_t rows, numbers, bytes;
    size_t unused;
    EMBLA_TRY(embla_threads_check(options->threads));
    if ((unsigned)options->kind > EMBLA_POOL_LAST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown pool kind %d; kinds are 0 to %d",
                          (int)options->kind, (int)EMBLA_POOL_LAST);
    if (options->weights && options->kind != EMBLA_POOL_MEAN && options->kind != EMBLA_POOL_SUM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "pool kind %d has no weights; only mean and sum have",
                          (int)options->kind);
    if (!embla_mul_ok(batch, length, &rows) || !embla_mul_ok(rows ? rows : batch, dim, &numbers) ||
        !embla_mul_ok(numbers, sizeof(float), &bytes) || !embla_size_ok(bytes, &unused))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu x %zu x %zu floats do not fit in memory", batch,
                          length, dim);
    if (batch > 0 && dim > 0 && ((length > 0 && !x) || !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu sequences to pool, but %s is NULL", batch,
                          out ? "x" : "out");
    for (size_t b = 0; options->lengths && b < batch; b++)
        if (options->lengths[b] > length)
            return embla_fail(EMBLA_ERR_RANGE,
                              "the length of sequence %zu is %zu, but there are only %zu vectors",
                              b, options->lengths[b], length);
    return EMBLA_OK;
}

embla_status embla_pool(const float *x, size_t batch, size_t length, size_t dim,
                        const embla_pool_options *options, float *out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_pool_options defaults = {0};
    if (!options) options = &defaults;
    EMBLA_TRY(check(x, batch, length, dim, options, out));
    if (dim == 0) return EMBLA_OK;
    int threads = embla_threads_for(options->threads, batch * length * dim * sizeof(float));
    if ((size_t)threads > batch) threads = (int)batch;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t b = 0; b < (int64_t)batch; b++) {
        size_t at = (size_t)b * length;
        sequence s = {.x = x ? x + at * dim : NULL, .count = length, .dim = dim};
        if (options->weights) s.weights = options->weights + at;
        if (options->lengths) s.count = options->lengths[b];
        pool_sequence(&s, options, out + (size_t)b * dim);
    }
    return EMBLA_OK;
}
