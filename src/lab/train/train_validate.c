/* SPDX-License-Identifier: Apache-2.0 */
/* The loss on text that was set aside. */
#include "corpus/corpus.h"
#include "train/train_shared.h"

/* Batch by batch. */
static embla_status sum_losses(embla_train *t, size_t batches, double *sum, double *counted)
{
    const embla_train_options *o = &t->options;
    const embla_gpt_options how = {.compute = o->compute,
                                   .threads = o->threads,
                                   .no_engine = o->engine == EMBLA_TRAIN_ENGINE_NONE};
    int32_t *tokens = t->tokens[t->now], *targets = t->targets[t->now];
    for (int64_t n = 0; batches == 0 || (size_t)n < batches; n++) {
        embla_loss_report r = {0};
        size_t used = o->length;
        embla_status status = embla_corpus_batch(
            t->corpus,
            &(embla_corpus_request){
                .step = n, .batch = o->batch, .length = o->length, .validation = true},
            tokens, targets, &used);
        if (status == EMBLA_ERR_RANGE) break; /* that was the last */
        EMBLA_TRY(status);
        EMBLA_TRY(embla_gpt_loss(
            t->gpt,
            &(embla_gpt_batch){
                .tokens = tokens, .targets = targets, .batch = o->batch, .length = used},
            &how, &r));
        *sum += r.loss * (double)r.counted;
        *counted += (double)r.counted;
    }
    return EMBLA_OK;
}

embla_status embla_train_validate(embla_train *train, size_t batches, double *loss)
{
    double sum = 0.0, counted = 0.0;
    EMBLA_NEED(train);
    EMBLA_NEED(loss);
    EMBLA_TRY(embla_train_check_torn(train));
    EMBLA_TRY(train->shared ? train->shared->validate(train, batches, &sum, &counted)
                            : sum_losses(train, batches, &sum, &counted));
    if (counted == 0.0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "none of the corpus's %" PRId64 " tokens is set aside for validation",
                          embla_corpus_tokens(train->corpus));
    *loss = sum / counted;
    return EMBLA_OK;
}
