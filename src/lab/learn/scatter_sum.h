/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of which vectors belong to which row, and the summing of a plan. */
#ifndef EMBLA_LEARN_SCATTER_SUM_H
#define EMBLA_LEARN_SCATTER_SUM_H

#include "base/status.h"
#include "embla_learn.h"

/* Row rows[u] gets the vectors order[starts[u]] .. order[starts[u + 1] - 1], in ascending order. */
struct embla_scatter {
    int64_t table_rows;
    size_t most, bytes; /* capacity in tokens; bytes of `memory` */
    void *memory;
    /* Two arrays of `most` keys: a row above a position of `shift` bits. Sorting moves keys between
     * them; then one becomes `order`, the other `rows`. */
    uint64_t *keys[2];
    unsigned shift, row_bits;
    size_t *starts;     /* count + 1 */
    uint8_t *frozen_at; /* for each touched row, while a plan is made */

    bool planned;
    size_t tokens; /* number of vectors in the plan */
    int64_t *order, *rows;
    size_t count; /* of rows */
    size_t shard; /* 0 means one shard */
    double max_norm;
    int threads;
    bool by_count;
};

typedef struct {
    const embla_scatter *plan;
    const float *gradients; /* tokens x dim */
    size_t dim;
    float *out; /* count x dim, overwritten; if dense, all rows of the table, added to */
    bool dense;
} embla_scatter_job;

/* Adds the sums of embla_scatter_sum to a dense gradient (rows of the table x dim), in double,
 * rounded once. */
EMBLA_CHECKED embla_status embla_scatter_add(const embla_scatter *scatter, const float *gradients,
                                             size_t dim, float *dense);

/* All arguments have been checked. */
EMBLA_CHECKED embla_status embla_scatter_run(const embla_scatter_job *job);

#endif
