/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest rows of every row, and the ties that follow from them.
 *
 * A graph has, for each row, its k nearest rows with their cosines. Ties make it symmetric: the tie
 * of two rows is strong if one is among the 30 nearest of the other, relative to the distances that
 * are usual there. Layout and communities both work on ties. Rows that are not finite are no points
 * and have none.
 */
#ifndef EMBLA_MAP_GRAPH_H
#define EMBLA_MAP_GRAPH_H

#include "base/arena.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"

struct embla_graph {
    int64_t rows, finite; /* of the table; of these finite */
    size_t k;             /* at most finite - 1 */
    embla_arena arena;
    embla_neighbour *near; /* rows x k; row -1 in rows that are not finite */
    bool *is_finite;       /* rows */
};

/* The ties of point i are those from start[i] to start[i + 1] - 1, sorted by the other point. */
typedef struct {
    int32_t count;  /* points: the finite rows, in order */
    int32_t *rows;  /* count: the row of each point */
    int64_t *start; /* count + 1 */
    int32_t *to;    /* the other point, never the point itself */
    float *weight;  /* above 0; the same in both directions; all ties together weigh `count` */
} embla_ties;

/* The nearest rows of a row that ties use at most. */
enum { EMBLA_TIES_MOST = 30 };

/* Computes ties in memory of the arena. A point with k neighbours, of which `most` at most are
 * used, is tied as if to k / 3 that are equally near: t-SNE calls this the perplexity. The bits are
 * the same for any number of threads and any instruction set. */
EMBLA_CHECKED embla_status embla_ties_of(const embla_graph *graph, size_t most, int threads,
                                         embla_arena *arena, embla_ties *out);

#endif
