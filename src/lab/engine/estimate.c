/* SPDX-License-Identifier: Apache-2.0 */
/* Estimates: how vectors are scaled before they are multiplied, and what that adds to the error.
 */
#include "engine/estimate.h"

#include <math.h>

#include "base/kernels.h"

enum { WHOLE_MOST = 32767 };

/* Multiplies a vector by a power of two, which changes no digit, so that its norm is from 1 to 2.
 */
static double scale_float(const float *vector, size_t dim, double norm, float *scaled)
{
    int exponent = 0;
    (void)frexp(norm, &exponent);
    const double unit = ldexp(1.0, exponent - 1), factor = ldexp(1.0, 1 - exponent);
    for (size_t i = 0; i < dim; i++) scaled[i] = (float)((double)vector[i] * factor);
    return unit;
}

/* Not fmax: gcc 12.2 for Arm crashes on it in this loop. */
static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

/* Scales a vector so that its largest number is WHOLE_MOST, and rounds it to integers. *error is
 * the norm of what rounding changed, as a share of the vector's norm. */
static double scale_whole(const float *vector, size_t dim, double norm, float *scaled,
                          int16_t *whole, double *error)
{
    double most = 0.0, changed = 0.0;
    for (size_t i = 0; i < dim; i++) most = larger(most, fabs((double)vector[i]));
    const double unit = most == 0.0 ? 1.0 : most / WHOLE_MOST;
    for (size_t i = 0; i < dim; i++) {
        double exact = (double)vector[i] / unit, rounded = rint(exact);
        scaled[i] = (float)rounded;
        whole[i] = (int16_t)rounded;
        changed += (exact - rounded) * (exact - rounded);
    }
    *error = norm == 0.0 ? 0.0 : sqrt(changed) * unit / norm;
    return unit;
}

embla_status embla_estimate_new(const embla_row_source *rows, const float *vectors, size_t count,
                                embla_arena *arena, embla_estimate *out)
{
    const size_t dim = rows->row->format.dim;
    embla_estimate e = {.rows = rows, .count = count};
    double worst = 0.0;
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)count * dim, sizeof(float), "vectors", &e.vectors));
    EMBLA_TRY(embla_arena_many(arena, count, sizeof(double), "units", &e.units));
    if (rows->row->format.dtype == EMBLA_Q8_0)
        EMBLA_TRY(
            embla_arena_many(arena, (uint64_t)count * dim, sizeof(int16_t), "vectors", &e.whole));
    for (size_t v = 0; v < count; v++) {
        const float *vector = vectors + v * dim;
        float *scaled = e.vectors + v * dim;
        double norm = sqrt(embla_kernels_get()->dot(vector, vector, dim)), error = 0.0;
        e.units[v] = e.whole ? scale_whole(vector, dim, norm, scaled, e.whole + v * dim, &error)
                             : scale_float(vector, dim, norm, scaled);
        worst = fmax(worst, error);
    }
    /* sums are those of the scaled vector, which may be longer than the vector by its change */
    e.error = embla_score_error(dim) * (1.0 + worst) + 1.01 * worst;
    *out = e;
    return EMBLA_OK;
}

void embla_estimate_rows(const embla_estimate *e, int64_t first, size_t n, float *space,
                         size_t stride, double *dots, double *squares)
{
    const embla_score_job job = {.rows = e->rows,
                                 .first = first,
                                 .n = n,
                                 .vectors = e->vectors,
                                 .count = e->count,
                                 .whole = e->whole,
                                 .dots = space,
                                 .stride = stride,
                                 .squares = space + e->count * stride};
    embla_score(&job);
    for (size_t v = 0; v < e->count; v++)
        for (size_t i = 0; i < n; i++)
            dots[v * stride + i] = (double)space[v * stride + i] * e->units[v];
    for (size_t i = 0; i < n; i++) squares[i] = (double)job.squares[i];
}
