/* SPDX-License-Identifier: Apache-2.0 */
/* One pass over a table: every row is compared with a few vectors, and the best rows are kept.
 *
 * Scores are computed from exact sums in double (the kernel `dot`), so a score has the same bits
 * wherever it is computed. Most rows never get that far: a fast estimate in float, with a bound on
 * its error, proves that they cannot be among the best (docs/decisions/011). What is kept depends
 * on scores and row numbers alone, so any number of threads finds the same rows.
 */
#ifndef EMBLA_NEAR_SCAN_H
#define EMBLA_NEAR_SCAN_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/arena.h"
#include "base/best.h"
#include "embla_lab.h"

/* The most vectors that one pass serves: their sums with a block of rows stay in a cache. */
enum { EMBLA_SCAN_MOST = 32 };

/* Sums of n rows: row i with vector v is dots[v * stride + i], row i with itself is squares[i]. */
typedef struct {
    const double *dots, *squares;
    size_t stride, n;
    /* 0 means the sums are exact. Otherwise a dot may be wrong by error times the product of both
     * norms, and a square by error times itself; such squares are between 2^-80 and 2^120. */
    double error;
} embla_scan_sums;

/* Writes the scores of n rows for one list; the larger score is the better. From sums with an
 * error it writes upper bounds that the exact scores cannot exceed. A row whose exact square is
 * not finite is not used, whatever its score. */
typedef void embla_scan_score(const void *context, size_t list, const embla_scan_sums *sums,
                              double *scores);

typedef struct {
    const embla_table *table;
    int64_t rows;         /* the first so many rows of the table, at least 1 */
    const float *vectors; /* count x dim, finite */
    size_t count;         /* at most EMBLA_SCAN_MOST */
    size_t lists;         /* answers: as many as vectors, or fewer (analogies) */
    size_t k;             /* rows in each list, at least 1 */
    const int64_t *exclude;
    size_t exclude_count; /* rows left out of each list: exclude is lists x exclude_count */
    int threads;          /* as in the caller's options */
    embla_scan_score *score;
    const void *context;
} embla_scan;

/* How a scan went, for tests. */
typedef struct {
    int64_t nonfinite; /* rows with a NaN or an infinity: they are in no list */
    int64_t exact;     /* rows for which exact sums were computed */
} embla_scan_report;

/* Writes the k best rows of each list, best first, to out (lists x k); row -1 where there are no
 * more. */
EMBLA_CHECKED embla_status embla_scan_run(const embla_scan *scan, embla_scored *out,
                                          embla_scan_report *report);

/* As embla_arena_many, but the items begin a cache line: for memory that one thread writes. */
EMBLA_CHECKED embla_status embla_scan_take(embla_arena *arena, uint64_t count, size_t size,
                                           const char *what, void *out);

/* Copies results into the caller's array. */
static inline void embla_scan_copy(const embla_scored *from, size_t count, embla_neighbour *out)
{
    for (size_t i = 0; i < count; i++)
        out[i] = (embla_neighbour){.row = from[i].row, .score = from[i].score};
}

/* Whether row is one of count rows to leave out. */
static inline bool embla_is_excluded(const int64_t *exclude, size_t count, int64_t row)
{
    for (size_t i = 0; i < count; i++)
        if (exclude[i] == row) return true;
    return false;
}

#endif
