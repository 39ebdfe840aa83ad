/* SPDX-License-Identifier: Apache-2.0 */
/* Fast estimates of the products of stored rows with a few vectors, and of the rows' squares, with
 * a bound on their error. A search uses them to drop rows that cannot be among the best, before it
 * computes exact sums (docs/decisions/011).
 */
#ifndef EMBLA_ENGINE_ESTIMATE_H
#define EMBLA_ENGINE_ESTIMATE_H

#include "base/arena.h"
#include "engine/score.h"

/* Estimated squares are trusted in this range only: outside of it, sums of floats may overflow or
 * lose digits to underflow. */
#define EMBLA_ESTIMATE_LEAST 0x1p-80
#define EMBLA_ESTIMATE_MOST  0x1p120

/* Vectors prepared for rows of one dtype. They are multiplied by a factor first, so that no product
 * with a row of a trusted square overflows or vanishes. */
typedef struct {
    const embla_row_source *rows;
    size_t count;
    float *vectors; /* count x dim, scaled */
    int16_t *whole; /* for q8_0: the same, rounded to integers */
    double *units;  /* count: turns products with scaled vectors into those with the originals */
    /* A product x.y is wrong by at most error |x||y|, and a square by at most error times itself.
     */
    double error;
} embla_estimate;

/* rows are in memory and stay there while the estimates are used. vectors is count x dim, finite.
 * The arena owns the memory. */
EMBLA_CHECKED embla_status embla_estimate_new(const embla_row_source *rows, const float *vectors,
                                              size_t count, embla_arena *arena,
                                              embla_estimate *out);

/* Estimates for rows first .. first + n - 1: dots[v * stride + i] and squares[i]. space has
 * (count + 1) * stride floats; n is at most stride. */
void embla_estimate_rows(const embla_estimate *e, int64_t first, size_t n, float *space,
                         size_t stride, double *dots, double *squares);

#endif
