/* SPDX-License-Identifier: Apache-2.0 */
/* Gradients of n-gram rows in a team. Each row that a piece of a batch uses gets one gradient.
 * Ranks send these to each other, and a row's gradients are summed in the order of the pieces.
 */
#ifndef EMBLA_CLUSTER_TEAM_ROWS_H
#define EMBLA_CLUSTER_TEAM_ROWS_H

#include "cluster/team_grams.h"

/* n-gram rows of pieces, in the order of the pieces. */
typedef struct {
    int64_t *rows;
    float *values; /* count x dim */
    size_t count;
} embla_row_list;

/* A zeroed struct is empty: the model has no n-grams. */
typedef struct {
    const embla_comm *comm;
    embla_scatter *scatter; /* unless the table is divided */
    size_t dim;             /* numbers in a row */
    size_t pieces;          /* of this rank */
    int64_t *counts;        /* rows of each rank */
    embla_row_list own, all;
    size_t *lengths; /* rows of each of this rank's pieces; NULL if there are no n-grams */
    float *totals;   /* sums for each row */
    void *memory;    /* of these lists */
    size_t bytes;
} embla_team_rows;

/* For `pieces` pieces of this rank. sequences is the most that a rank has in a batch. divided: the
 * owners of rows sum (team_grams.h), so that no lists of all ranks are needed. */
EMBLA_CHECKED embla_status embla_team_rows_new(const embla_comm *comm, const embla_train *train,
                                               size_t pieces, size_t sequences, bool divided,
                                               embla_team_rows *out);
void embla_team_rows_free(embla_team_rows *rows);
/* Forgets the rows of the last batch. */
void embla_team_rows_clear(embla_team_rows *rows);
/* Appends the rows that the model's last pass used, of this rank's piece of that number. */
EMBLA_CHECKED embla_status embla_team_rows_append(embla_team_rows *rows, const embla_gpt *gpt,
                                                  size_t piece);
/* Sums over all ranks. grams is NULL unless the table is divided. Collective. */
EMBLA_CHECKED embla_status embla_team_rows_sum(embla_team_rows *rows, embla_team_grams *grams,
                                               int threads, embla_train_rows *out);

#endif
