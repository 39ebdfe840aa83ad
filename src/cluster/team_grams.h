/* SPDX-License-Identifier: Apache-2.0 */
/* The n-gram table of a team, divided among its ranks: each rank has some of the rows, with their
 * part of the optimizer.
 *
 * Passes over pieces of a batch are not collective, so a rank gets the vectors of its whole part of
 * a batch before the first of them. Gradients go to the owners of their rows, which update them.
 */
#ifndef EMBLA_CLUSTER_TEAM_GRAMS_H
#define EMBLA_CLUSTER_TEAM_GRAMS_H

#include "embla_cluster.h"
#include "train/train.h"

typedef struct embla_team_grams embla_team_grams;

/* Divides the table of the training's model. `pieces` is the most that a rank has. *optim is for
 * the rows of this rank. The model's own table stays as it is. Collective. */
EMBLA_CHECKED embla_status embla_team_grams_new(const embla_comm *comm, const embla_train *train,
                                                embla_team_grams **out, embla_optim **optim);
/* Collective. */
void embla_team_grams_free(embla_team_grams *grams);
/* From now on the model has no rows of its own. */
void embla_team_grams_use(embla_team_grams *grams, embla_gpt *gpt);
/* Gets the vectors of a batch; 0 sequences mean none. Collective. */
EMBLA_CHECKED embla_status embla_team_grams_fetch(embla_team_grams *grams, const int32_t *tokens,
                                                  size_t batch, size_t length);
/* The next pass of the model takes the vectors from token `first` of that batch on. */
void embla_team_grams_give(const embla_team_grams *grams, embla_gpt *gpt, size_t first);
/* Sums gradients as embla_sharded_sum. *out has rows of this rank, in its own numbers. */
EMBLA_CHECKED embla_status embla_team_grams_sum(embla_team_grams *grams, const int64_t *rows,
                                                size_t count, const size_t *lengths, size_t pieces,
                                                const float *gradients, embla_train_rows *out);
/* Waits until all ranks have updated their rows. Collective. */
EMBLA_CHECKED embla_status embla_team_grams_publish(embla_team_grams *grams);
/* Whether the folder beside `path` has the rows as they are. */
bool embla_team_grams_kept(const embla_team_grams *grams, const char *path);
/* Saves rows and state beside the file `path` of a training, or loads them. Collective. */
EMBLA_CHECKED embla_status embla_team_grams_save(embla_team_grams *grams, embla_optim *optim,
                                                 const char *path, int64_t step);
EMBLA_CHECKED embla_status embla_team_grams_load(embla_team_grams *grams, embla_optim *optim,
                                                 const char *path, int64_t step);
embla_sharded *embla_team_grams_table(const embla_team_grams *grams);

#endif
