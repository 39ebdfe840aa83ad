/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a team of ranks that make the steps of a training together. team_join.c creates it,
 * and train_team.c makes the steps.
 */
#ifndef EMBLA_CLUSTER_TRAIN_TEAM_H
#define EMBLA_CLUSTER_TRAIN_TEAM_H

#include "cluster/exact.h"
#include "cluster/team_rows.h"
#include "cluster/team_slices.h"
#include "cluster/team_tokens.h"

enum {
    EMBLA_TEAM_NUMBERS = 5, /* small numbers that ranks exchange at each step, besides losses */
    EMBLA_TEAM_HELD = 4     /* pieces whose gradients are added to the sums at once */
};

typedef struct {
    const embla_comm *comm;
    size_t bytes;               /* of this block */
    embla_team_options options; /* with defaults filled in */
    size_t batch;               /* sequences */
    size_t pieces;              /* shards, or ranks in fast mode */
    size_t first, end;          /* the pieces of this rank */
    double *losses;             /* of each piece */
    int64_t *shared;            /* numbers of share_step */
    int64_t *counted;           /* targets of each piece */
    embla_team_slices slices;   /* of the weights */
    embla_exact sums;           /* of the gradients; not in fast mode */
    float *held;                /* gradients of HELD - 1 pieces, or fewer */
    size_t held_bytes;
    int64_t compared;        /* the step at which weights were last compared */
    embla_team_rows rows;    /* gradients of n-gram rows */
    embla_team_grams *grams; /* if the n-gram table is divided among the ranks */
    /* if the token rows are: */
    embla_team_tokens *tokens;
    size_t *lengths;          /* tokens of each of this rank's shards */
    embla_loss_report report; /* of the last loss of all ranks */
} embla_team;

/* The first shard of a rank. */
static inline size_t embla_team_first_shard(const embla_team *w, size_t rank)
{
    return rank * w->options.shards / (size_t)w->comm->size;
}

/* The first sequence of a shard. */
static inline size_t embla_team_sequence(const embla_team *w, size_t shard)
{
    return shard * w->batch / w->options.shards;
}

/* What a training calls. */
embla_train_ranks embla_team_functions(embla_team *team);
/* Frees an embla_team. Collective if tables are divided. */
void embla_team_free(void *team);

#endif
