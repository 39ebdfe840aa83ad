/* SPDX-License-Identifier: Apache-2.0 */
/* The loss on text that was set aside. In a team, batches are divided among the ranks; their losses
 * are exchanged and added in the order of batches. If token rows are divided, all ranks compute the
 * loss of each batch together.
 */
#include "base/failure.h"
#include "corpus/corpus.h"
#include "train/train.h"

/* Batches of validation whose losses the ranks of a team exchange together. */
enum { GROUP = 64 };

typedef struct {
    double losses[GROUP], counted[GROUP]; /* of each batch: the sum of its losses, its targets */
    size_t count;                         /* batches */
    bool last;                            /* there are no more */
} validated;

/* Gets n-gram rows that other ranks have. A rank that has failed only takes part. */
static void fetch_rows(const embla_train *t, embla_failure *failure, const int32_t *tokens,
                       size_t batch, size_t length)
{
    const embla_train_ranks *team = &t->team;
    if (embla_failure_any(failure)) batch = 0;
    if (team->sharded)
        embla_failure_keep(failure, team->fetch(team->owner, t->gpt, tokens, batch, length));
}

/* Computes the losses of batches first .. first + count - 1, in a team only those of this rank. A
 * rank that fails goes on without sequences, so that no other waits for it. */
static embla_status validate_group(embla_train *t, int64_t first, size_t count, validated *out)
{
    const embla_train_options *o = &t->options;
    const embla_train_ranks *team = &t->team;
    const embla_gpt_options how = {.compute = o->compute, .threads = o->threads};
    int32_t *tokens = t->tokens[t->now], *targets = t->targets[t->now];
    embla_failure failure = EMBLA_NO_FAILURE;
    size_t own = 0, ranks = team->owner ? (size_t)team->size : 1;
    for (; out->count < count; out->count++) {
        embla_loss_report r = {0};
        int64_t n = first + (int64_t)out->count;
        size_t used = o->length;
        embla_status status =
            embla_corpus_validation(t->corpus, n, o->batch, o->length, tokens, targets, &used);
        out->last = status == EMBLA_ERR_RANGE;
        if (out->last) break;
        embla_failure_keep(&failure, status);
        if (team->owner && !team->tokens && n % team->size != team->rank) continue;
        own++;
        if (team->tokens)
            EMBLA_TRY(team->loss(team->owner, t, status, used, &how, &r));
        else
            fetch_rows(t, &failure, tokens, o->batch, used);
        if (!embla_failure_any(&failure) && !team->tokens)
            embla_failure_keep(&failure,
                               embla_gpt_loss(t->gpt, tokens, targets, o->batch, used, &how, &r));
        out->losses[out->count] = r.loss * (double)r.counted;
        out->counted[out->count] = (double)r.counted;
    }
    /* other ranks may have one batch more */
    if (!team->tokens && own < (out->count + ranks - 1) / ranks)
        fetch_rows(t, &failure, tokens, 0, 1);
    return embla_failure_say(&failure);
}

/* Every rank gets the losses of all batches, and adds them in the same order. */
static embla_status share_group(const embla_train *t, validated *group)
{
    const embla_train_ranks *team = &t->team;
    if (!team->owner || team->tokens) return EMBLA_OK; /* with divided rows every rank has all */
    EMBLA_TRY(team->join(team->owner, group->losses, group->count));
    return team->join(team->owner, group->counted, group->count);
}

embla_status embla_train_validate(embla_train *train, size_t batches, double *loss)
{
    embla_train *t = train;
    double sum = 0.0, counted = 0.0;
    int64_t n = 0;
    bool last = false;
    if (!t || !loss)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_validate: %s is NULL",
                          t ? "loss" : "train");
    EMBLA_TRY(embla_train_check_torn(t));
    while (!last && (batches == 0 || (size_t)n < batches)) {
        validated group = {0};
        size_t left = batches == 0 ? GROUP : batches - (size_t)n;
        embla_status status = validate_group(t, n, left < GROUP ? left : GROUP, &group);
        EMBLA_TRY(embla_train_agree(t, status, "it cannot validate", false));
        EMBLA_TRY(share_group(t, &group));
        for (size_t i = 0; i < group.count; i++) {
            sum += group.losses[i];
            counted += group.counted[i];
        }
        n += (int64_t)group.count;
        last = group.last;
    }
    if (counted == 0.0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "none of the corpus's %" PRId64 " tokens is set aside for validation",
                          embla_corpus_tokens(t->corpus));
    *loss = sum / counted;
    return EMBLA_OK;
}
