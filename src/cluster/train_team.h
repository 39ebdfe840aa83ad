/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a team of ranks that make the steps of a training together. team_join.c creates it,
 * train_team.c computes gradients, team_step.c makes steps, team_validate.c and team_files.c do the
 * rest.
 */
#ifndef EMBLA_CLUSTER_TRAIN_TEAM_H
#define EMBLA_CLUSTER_TRAIN_TEAM_H

#include "cluster/exact.h"
#include "cluster/team_rows.h"
#include "cluster/team_slices.h"
#include "cluster/team_tokens.h"
#include "train/train_shared.h"

enum {
    EMBLA_TEAM_NUMBERS = 5, /* small numbers that ranks exchange at each step, besides losses */
    EMBLA_TEAM_HELD = 4     /* pieces whose gradients are added to the sums at once */
};

typedef struct {
    const embla_comm *comm;
    size_t bytes;                 /* of this block */
    embla_team_options options;   /* with defaults filled in */
    size_t batch;                 /* sequences */
    size_t pieces;                /* micro-batches, or ranks in fast mode */
    size_t first, end;            /* the pieces of this rank */
    double *losses;               /* of each piece */
    int64_t *shared;              /* numbers of share_step */
    int64_t *counted;             /* targets of each piece */
    embla_team_slices slices;     /* of the weights */
    size_t slice_from, slice_end; /* the weights that this rank updates */
    embla_exact sums;             /* of the gradients; not in fast mode */
    float *held;                  /* gradients of HELD - 1 pieces, or fewer */
    size_t held_bytes;
    int64_t compared;        /* the step at which weights were last compared */
    embla_team_rows rows;    /* gradients of n-gram rows */
    embla_team_grams *grams; /* if the n-gram table is divided among the ranks */
    /* if the token rows are: */
    embla_team_tokens *tokens;
    size_t *lengths;          /* tokens of each of this rank's micro-batches */
    embla_loss_report report; /* of the last loss of all ranks */
} embla_team;

/* The first micro-batch of a rank. */
static inline size_t embla_team_first_piece(const embla_team *w, size_t rank)
{
    return rank * w->options.micro_batches / (size_t)w->comm->size;
}

/* The first sequence of a micro-batch. */
static inline size_t embla_team_sequence(const embla_team *w, size_t number)
{
    return number * w->batch / w->options.micro_batches;
}

/* ---- what a training calls (embla_train_shared) ---- */

EMBLA_CHECKED embla_status embla_team_step(embla_train *train, embla_train_report *report);
EMBLA_CHECKED embla_status embla_team_validate(embla_train *train, size_t batches, double *sum,
                                               double *counted);
EMBLA_CHECKED embla_status embla_team_save(const embla_train *train, const char *path,
                                           embla_train_state *state);
EMBLA_CHECKED embla_status embla_team_checkpoint(const embla_train *train, const char *folder,
                                                 const char *path, size_t keep, const char *note);
EMBLA_CHECKED embla_status embla_team_save_model(const embla_train *train, const char *folder,
                                                 const char *const *words);
EMBLA_CHECKED embla_status embla_team_load(embla_train *train, const char *path);
/* Frees an embla_team. Collective if tables are divided. */
void embla_team_free(void *team);

/* ---- inside a team ---- */

/* What files say about the team. */
embla_train_split embla_team_split(const embla_team *team);
/* Computes the gradients of this rank's slice and the loss of this batch (train->now), whose
 * sequences have `length` tokens. All gradients are 0 before, and those of other slices after.
 * ready: whether this rank has the batch. Collective. */
EMBLA_CHECKED embla_status embla_team_gradients(embla_team *team, embla_train *train,
                                                embla_status ready, size_t length,
                                                const embla_gpt_options *options,
                                                embla_loss_report *loss, embla_train_rows *rows);
/* With divided token rows: the loss of this batch. Collective. */
EMBLA_CHECKED embla_status embla_team_loss(embla_team *team, embla_train *train, embla_status ready,
                                           size_t length, const embla_gpt_options *options,
                                           embla_loss_report *out);
/* Gives the slices of all ranks of an array like the weights to every rank, or to rank 0 alone.
 * Collective. */
EMBLA_CHECKED embla_status embla_team_gather(const embla_team *team, const embla_train *train,
                                             void *values, bool everyone);

#endif
