/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a table: every row against a few vectors, sums in double, the best rows kept.
 *
 * The sums are those of the kernel `dot`, so a score has the same bits wherever it is worked
 * out. What is kept depends on scores and row numbers alone, never on the order in which rows
 * come by: any number of threads finds the same rows.
 */
#ifndef EMBLA_SEE_SCAN_H
#define EMBLA_SEE_SCAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/best.h"
#include "embla_lab.h"

/* Vectors that one pass takes: their sums with a block of rows stay in a cache. */
enum { EMBLA_SCAN_MOST = 32 };

/* The scores of n rows for one list: the sum of vector v with row i is dots[v * stride + i],
 * that of the row with itself squares[i]; what comes out of one that is not finite is not
 * looked at. The larger score is the better. */
typedef void embla_scan_score(const void *context, size_t list, const double *dots, size_t stride,
                              const double *squares, size_t n, double *scores);

typedef struct {
    const embla_table *table;
    int64_t rows;         /* the first so many, at least 1 */
    const float *vectors; /* count x dim, finite */
    size_t count;         /* at most EMBLA_SCAN_MOST */
    size_t lists;         /* answers: as many as vectors, or fewer (analogies) */
    size_t k;             /* rows in each, at least 1 */
    const int64_t *leave_out;
    size_t left_out; /* of each list: leave_out is lists x left_out */
    int threads;     /* as the caller was asked */
    embla_scan_score *score;
    const void *context;
} embla_scan;

/* The k best rows of each list, best first, to out (lists x k); row -1 where there are no more.
 * *nonfinite is how many rows have a NaN or an infinity: they are in no list. */
EMBLA_CHECKED embla_status embla_scan_run(const embla_scan *scan, embla_scored *out,
                                          int64_t *nonfinite);

/* Memory of threads: count items of size bytes, on a line of their own; as embla_arena_many. */
EMBLA_CHECKED embla_status embla_scan_take(embla_arena *arena, size_t count, size_t size,
                                           const char *what, void *out);

/* Internal results as the caller's. */
static inline void embla_scan_copy(const embla_scored *from, size_t count, embla_neighbour *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (embla_neighbour){.row = from[i].row, .score = from[i].score};
}

/* Whether row is one of count rows to be left out. */
static inline bool embla_is_left_out(const int64_t *leave_out, size_t count, int64_t row)
{
    for (size_t i = 0; i < count; i++)
        if (leave_out[i] == row) return true;
    return false;
}

#endif
