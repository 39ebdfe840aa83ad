/* SPDX-License-Identifier: Apache-2.0 */
/* The token table of a team, divided among its ranks, and a separate head with it: each rank has
 * some of the rows, with their gradients and their part of the optimizer.
 *
 *   fetch    the rows of this rank's part of a batch
 *   ..       the model's forward passes, from rows to hidden vectors
 *   loss     of all ranks' hidden vectors under all rows; hidden vectors become their gradients
 *   ..       the model's backward passes; rows become their gradients
 *   sum      gradients of rows go to their owners, which add those of the head
 *   update   AdamW on this rank's rows
 *
 * Every sum has an order that does not depend on the number of ranks, except in fast mode.
 */
#ifndef EMBLA_CLUSTER_TEAM_TOKENS_H
#define EMBLA_CLUSTER_TEAM_TOKENS_H

#include "embla_cluster.h"
#include "train/train_shared.h"

typedef struct embla_team_tokens embla_team_tokens;

/* The micro-batches of this rank's part of a batch. */
typedef struct {
    const size_t *lengths; /* tokens of each */
    size_t count;
    size_t tokens; /* of all of them */
} embla_team_cut;

/* Divides the tables of the training's model. sequences is the most that a rank has in a batch. The
 * model stays as it is. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_new(const embla_comm *comm, const embla_train *train,
                                                 size_t sequences, bool fast,
                                                 embla_team_tokens **out);
/* Collective. */
void embla_team_tokens_free(embla_team_tokens *tokens);
/* From now on the training's model has no token rows, and the training no state for them. */
void embla_team_tokens_use(embla_team_tokens *tokens, embla_train *train);

/* Gets the rows of these tokens; 0 tokens mean none. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_fetch(embla_team_tokens *tokens, const int32_t *ids,
                                                   size_t count);
/* The rows of that list, or their gradients, from token `first` on (x dim). */
float *embla_team_tokens_rows(const embla_team_tokens *tokens, size_t first);
/* The hidden vectors of these tokens, or their gradients. */
float *embla_team_tokens_hidden(const embla_team_tokens *tokens, size_t first);
/* The loss of the hidden vectors of all ranks. learns: they are replaced by their gradients, and
 * the gradients of the head begin anew. ready: whether this rank has its hidden vectors. targets
 * are those of its part. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_loss(embla_team_tokens *tokens, embla_status ready,
                                                  const int32_t *targets, const embla_team_cut *cut,
                                                  bool learns, embla_loss_report *report);
/* Adds the gradients of rows (embla_team_tokens_rows) at their owners. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_sum(embla_team_tokens *tokens,
                                                 const embla_team_cut *cut);
/* The sum of squares of the gradients of all ranks. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_squares(const embla_team_tokens *tokens, double *out);
/* Updates the rows of this rank with factor times their gradients, and waits for the other ranks.
 * Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_update(embla_team_tokens *tokens, double rate,
                                                    double factor);
/* Whether the folders beside `path` have the rows as they are. */
bool embla_team_tokens_kept(const embla_team_tokens *tokens, const char *path);
/* Saves rows and state beside the file `path` of a training, or loads them. Collective. */
EMBLA_CHECKED embla_status embla_team_tokens_save(embla_team_tokens *tokens, const char *path,
                                                  int64_t step);
EMBLA_CHECKED embla_status embla_team_tokens_load(embla_team_tokens *tokens, const char *path,
                                                  int64_t step);
/* The tables: that of the tokens, and that of a separate head or NULL. */
embla_sharded *embla_team_tokens_table(const embla_team_tokens *tokens);
embla_sharded *embla_team_tokens_head(const embla_team_tokens *tokens);

#endif
