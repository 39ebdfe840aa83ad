/* SPDX-License-Identifier: Apache-2.0 */
/* A plan of which vectors belong to which row, and the summing that follows it. */
#ifndef EMBLA_TABLE_SCATTER_SUM_H
#define EMBLA_TABLE_SCATTER_SUM_H

#include "base/status.h"

/* Row rows[u] gets the vectors order[starts[u]] .. order[starts[u + 1] - 1], which ascend. */
struct embla_scatter {
    int64_t table_rows;
    size_t most, bytes; /* room: tokens; bytes of `memory` */
    void *memory;
    /* Two arrays of `most` numbers: a row above a position, `shift` bits of it. Sorting goes
     * from one to the other; then one becomes `order`, the other `rows`. */
    uint64_t *keys[2];
    unsigned shift, row_bits;
    size_t *starts;     /* count + 1 */
    uint8_t *frozen_at; /* of each touched row, while a plan is made */

    bool planned;
    size_t tokens; /* of the plan: how many vectors there are */
    int64_t *order, *rows;
    size_t count; /* of rows */
    size_t shard; /* 0: one */
    double max_norm;
    int threads;
    bool by_count;
};

typedef struct {
    const embla_scatter *plan;
    const float *gradients; /* tokens x dim */
    size_t dim;
    float *out; /* count x dim, overwritten; or, if dense, a row for each of the table, added to */
    bool dense;
} embla_scatter_job;

/* Everything has been checked; cannot fail. */
void embla_scatter_run(const embla_scatter_job *job);

#endif
