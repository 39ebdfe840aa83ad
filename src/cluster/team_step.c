/* SPDX-License-Identifier: Apache-2.0 */
/* A step of a team. Each rank has the gradients of its slice of the weights (train_team.c),
 * computes its part of the norm, and updates that slice; then all ranks get the new weights. Token
 * rows and n-gram rows that are divided are updated by the rank that has them.
 */
#include <math.h>

#include "cluster/comm.h"
#include "cluster/train_team.h"
#include "learn/clip.h"

typedef embla_team team;

/* The squares of n-gram rows. If the table is divided, a rank has the gradients of its rows only.
 */
static embla_status squares_of_rows(const team *w, const embla_train_rows *rows, double *out)
{
    const embla_comm *c = w->comm;
    embla_wide_sum sum = {0};
    embla_train_rows_squares(rows, &sum);
    if (w->grams)
        EMBLA_TRY(c->allreduce(c->owner, sum.words, EMBLA_WIDE_WORDS, EMBLA_COMM_TYPE_INT64,
                               EMBLA_COMM_OP_SUM));
    *out = embla_wide_round(&sum);
    return EMBLA_OK;
}

/* The norm of all gradients that are not frozen. */
static embla_status gradient_norm(const team *w, const embla_train *t, const embla_train_rows *rows,
                                  double *out)
{
    double grams = 0.0, tokens = 0.0;
    EMBLA_TRY(embla_train_squares(t, w->slice_from, w->slice_end));
    EMBLA_TRY(embla_team_slices_gather(&w->slices, t->leaves, t->leaf_count * sizeof *t->leaves,
                                       w->slices.slice / EMBLA_SQUARES_LEAF * sizeof *t->leaves,
                                       true));
    if (t->ngram) EMBLA_TRY(squares_of_rows(w, rows, &grams));
    if (w->tokens) EMBLA_TRY(embla_team_tokens_squares(w->tokens, &tokens));
    *out = sqrt(embla_squares_join(t->leaves, t->leaf_count) + grams + tokens);
    return EMBLA_OK;
}

static embla_status update_weights(const team *w, embla_train *t, const embla_train_rows *rows,
                                   double rate, double factor)
{
    if (t->ngram) EMBLA_TRY(embla_train_move_rows(t, rows, rate, factor));
    if (w->grams) EMBLA_TRY(embla_team_grams_publish(w->grams));
    if (w->tokens) EMBLA_TRY(embla_team_tokens_update(w->tokens, rate, factor));
    EMBLA_TRY(embla_train_move(t, w->slice_from, w->slice_end, rate, factor));
    return embla_team_gather(w, t, t->gpt->weights, true);
}

embla_status embla_team_gather(const embla_team *w, const embla_train *t, void *values,
                               bool everyone)
{
    return embla_team_slices_gather(&w->slices, values, t->gpt->numbers * sizeof(float),
                                    w->slices.slice * sizeof(float), everyone);
}

embla_status embla_team_step(embla_train *t, embla_train_report *r)
{
    team *w = t->team;
    embla_loss_report loss = {0};
    embla_train_rows rows = {0};
    embla_gpt_options how;
    size_t used = 0;
    embla_status ready = embla_train_batch(t, &used, &how);
    EMBLA_TRY(embla_team_gradients(w, t, ready, used, &how, &loss, &rows));
    r->loss = loss.loss;
    r->tokens = loss.counted;
    EMBLA_TRY(gradient_norm(w, t, &rows, &r->norm));
    r->skipped = !isfinite(r->norm);
    if (r->skipped) return EMBLA_OK;
    t->torn = true;
    EMBLA_TRY(update_weights(w, t, &rows, r->rate, embla_train_clip(t, r->norm)));
    t->torn = false;
    t->clean = true;
    t->updates++;
    return EMBLA_OK;
}
