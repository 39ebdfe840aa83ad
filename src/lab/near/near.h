/* SPDX-License-Identifier: Apache-2.0 */
/* Two ways to find the nearest rows, which give the same bits: a pass over the rows for a few
 * queries (scan.h), and matrix products for many queries. Many analogies at once are many queries:
 * each query is a sum of unit rows, k is 1, and exclude has the rows of the question.
 */
#ifndef EMBLA_NEAR_NEAR_H
#define EMBLA_NEAR_NEAR_H

#include "base/kernels.h"
#include "base/stop.h"
#include "near/scan.h"
#include "table/access.h"

/* The checked arguments of a search. */
typedef struct {
    const embla_table *table;
    const embla_row_source *source; /* the rows of the table */
    const float *queries;
    size_t count, k, dim;
    int64_t rows;
    const int64_t *exclude;
    size_t exclude_count;
    int threads;
    embla_measure measure;
    const embla_sketch *sketch; /* NULL means none */
    const embla_kernels *kernels;
    embla_watch *watch;
} embla_question;

/* ---- scores, the same for both ways ---- */

/* What the scores of a query need to know about it. */
typedef struct {
    embla_measure measure;
    double square, norm;
} embla_query_size;

static inline embla_query_size embla_size_of(const embla_question *q, const float *query)
{
    double square = q->kernels->dot(query, query, q->dim);
    return (embla_query_size){q->measure, square, sqrt(square)};
}

/* The larger score is the nearer row; a distance is negated. */
static inline double embla_score_of(embla_measure measure, embla_query_size query, double dot,
                                    double square)
{
    if (measure == EMBLA_MEASURE_DOT) return dot;
    if (measure == EMBLA_MEASURE_COSINE) {
        double norms = sqrt(square) * query.norm, cosine = dot / norms;
        return norms == 0.0 ? 0.0 : cosine;
    }
    double apart = square + query.square - 2.0 * dot;
    return -sqrt(apart > 0.0 ? apart : 0.0);
}

/* An upper bound of that score, where dot may be wrong by error |x||q| and square by error times
 * itself (embla_scan_sums). Cosine: the dot adds at most error, the root of the square at most half
 * of it. 1.01 and 2^-40 are for the estimated norm and for rounding in double. */
static inline double embla_bound_of(embla_measure measure, embla_query_size query, double dot,
                                    double square, double error)
{
    if (measure == EMBLA_MEASURE_COSINE)
        return embla_score_of(measure, query, dot, square) + 2.0 * error;
    double high = dot + 1.01 * error * sqrt(square) * query.norm;
    if (measure == EMBLA_MEASURE_DOT) return high;
    double apart = square + query.square - 2.0 * high;
    apart -= error * square + 0x1p-40 * (square + query.square);
    return -sqrt(apart > 0.0 ? apart : 0.0);
}

/* ---- few queries: scans (scan.c) ---- */

/* How many queries one scan serves; fewer if lists are long. */
size_t embla_scan_at_once(const embla_question *q);
/* Answers count queries (at most embla_scan_at_once) by one scan; exclude is count x exclude_count.
 * Scores of distances are negative. */
EMBLA_CHECKED embla_status embla_scan_queries(const embla_question *q, const float *queries,
                                              const int64_t *exclude, size_t count,
                                              embla_scored *out, int64_t *nonfinite);

/* Answers all queries of q by scans. */
EMBLA_CHECKED embla_status embla_scan_all(const embla_question *q, embla_scored *out,
                                          int64_t *nonfinite);

/* Counts queries that were answered. EMBLA_ERR_STOPPED if the caller wants to stop. */
EMBLA_CHECKED static inline embla_status embla_near_step(const embla_question *q, size_t queries)
{
    (void)embla_watch_step(q->watch, true, (int64_t)queries * q->rows);
    return embla_watch_say(q->watch);
}

typedef enum {
    EMBLA_NEAR_CHOOSE = 0,
    EMBLA_NEAR_BY_SCAN = 1,
    EMBLA_NEAR_BY_PRODUCT = 2 /* without an engine: by scan */
} embla_near_way;

/* How embla_near_by answered, for tests. */
typedef struct {
    size_t by_product; /* queries answered by products */
    size_t again;      /* queries that products could not prove, answered by a scan */
} embla_near_ways;

enum { EMBLA_NEAR_DEFAULT = 10 }; /* k, if it is not given */

/* embla_near by one of the ways, of arguments that are not NULL; ways may be NULL. */
EMBLA_CHECKED embla_status embla_near_by(embla_near_way way, const embla_table *table,
                                         const float *queries, size_t count,
                                         const embla_near_options *options, embla_neighbour *out,
                                         embla_near_report *report, embla_near_ways *ways);

#endif
