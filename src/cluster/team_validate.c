/* SPDX-License-Identifier: Apache-2.0 */
/* The loss of a team on text that was set aside. Batches are divided among the ranks; their losses
 * are exchanged and added in the order of batches. If token rows are divided, all ranks compute the
 * loss of each batch together.
 */
#include "base/failure.h"
#include "cluster/comm.h"
#include "cluster/train_team.h"

enum { GROUP = 64 }; /* batches whose losses the ranks exchange together */

typedef embla_team team;

typedef struct {
    double losses[GROUP], counted[GROUP]; /* of each batch: the sum of its losses, its targets */
    size_t count;                         /* batches */
    bool last;                            /* there are no more */
} validated;

/* Gets n-gram rows that other ranks have. A rank that has failed only takes part. */
static void fetch_rows(const team *w, const embla_train *t, embla_failure *failure,
                       const int32_t *tokens, size_t batch, size_t length)
{
    if (!w->grams) return;
    if (embla_failure_any(failure)) batch = 0;
    embla_team_grams_give(w->grams, t->gpt, 0);
    embla_failure_keep(failure, embla_team_grams_fetch(w->grams, tokens, batch, length));
}

/* The loss of this batch (train->now). */
static embla_status batch_loss(team *w, embla_train *t, embla_status ready, size_t length,
                               embla_failure *failure, embla_loss_report *out)
{
    const embla_train_options *o = &t->options;
    const embla_gpt_options how = {.compute = o->compute,
                                   .threads = o->threads,
                                   .no_engine = o->engine == EMBLA_TRAIN_ENGINE_NONE};
    int32_t *tokens = t->tokens[t->now];
    if (w->tokens) return embla_team_loss(w, t, ready, length, &how, out);
    fetch_rows(w, t, failure, tokens, o->batch, length);
    if (!embla_failure_any(failure))
        embla_failure_keep(failure, embla_gpt_loss(t->gpt,
                                                   &(embla_gpt_batch){.tokens = tokens,
                                                                      .targets = t->targets[t->now],
                                                                      .batch = o->batch,
                                                                      .length = length},
                                                   &how, out));
    return EMBLA_OK;
}

/* Computes the losses of batches first .. first + count - 1, only those of this rank. A rank that
 * fails goes on without sequences, so that no other waits for it. */
static embla_status validate_group(team *w, embla_train *t, int64_t first, size_t count,
                                   validated *out)
{
    const embla_train_options *o = &t->options;
    int32_t *tokens = t->tokens[t->now], *targets = t->targets[t->now];
    embla_failure failure = EMBLA_NO_FAILURE;
    size_t own = 0, ranks = (size_t)w->comm->size;
    for (; out->count < count; out->count++) {
        embla_loss_report r = {0};
        int64_t n = first + (int64_t)out->count;
        size_t used = o->length;
        embla_status status = embla_corpus_batch(
            t->corpus,
            &(embla_corpus_request){
                .step = n, .batch = o->batch, .length = o->length, .validation = true},
            tokens, targets, &used);
        out->last = status == EMBLA_ERR_RANGE;
        if (out->last) break;
        embla_failure_keep(&failure, status);
        if (!w->tokens && n % w->comm->size != w->comm->rank) continue;
        own++;
        EMBLA_TRY(batch_loss(w, t, status, used, &failure, &r));
        out->losses[out->count] = r.loss * (double)r.counted;
        out->counted[out->count] = (double)r.counted;
    }
    /* other ranks may have one batch more */
    if (!w->tokens && own < (out->count + ranks - 1) / ranks)
        fetch_rows(w, t, &failure, tokens, 0, 1);
    return embla_failure_say(&failure);
}

/* Sums over all ranks. At most one rank has a number that is not 0. */
static embla_status join_values(const team *w, double *values, size_t count)
{
    const embla_comm *c = w->comm;
    if (count == 0) return EMBLA_OK;
    return c->allreduce(c->owner, values, count, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_SUM);
}

/* Every rank gets the losses of all batches. */
static embla_status share_group(const team *w, validated *group)
{
    if (w->tokens) return EMBLA_OK; /* every rank has all */
    EMBLA_TRY(join_values(w, group->losses, group->count));
    return join_values(w, group->counted, group->count);
}

embla_status embla_team_validate(embla_train *t, size_t batches, double *sum, double *counted)
{
    team *w = t->team;
    int64_t n = 0;
    bool last = false;
    while (!last && (batches == 0 || (size_t)n < batches)) {
        validated group = {0};
        size_t left = batches == 0 ? GROUP : batches - (size_t)n;
        embla_status status = validate_group(w, t, n, left < GROUP ? left : GROUP, &group);
        EMBLA_TRY(embla_comm_agree(w->comm, status, "it cannot validate"));
        EMBLA_TRY(share_group(w, &group));
        for (size_t i = 0; i < group.count; i++) {
            *sum += group.losses[i];
            *counted += group.counted[i];
        }
        n += (int64_t)group.count;
        last = group.last;
    }
    return EMBLA_OK;
}
