/* SPDX-License-Identifier: Apache-2.0 */
/* The training loop in your hands: what embla_train_step does, written out. A small decoder with an
 * n-gram table learns names. A step is batch -> backward -> clip -> schedule -> optim, one
 * optimizer for each tensor, and row-wise Adagrad for the rows of the n-gram table that the batch
 * selected. Change any part of it.
 *
 *   loop [FILE]      default: names.txt
 */
#include <embla_train.h>
#include <stdio.h>
#include <stdlib.h>

enum { BATCH = 4, LENGTH = 16, STEPS = 60, TENSORS = 64 };

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "loop: %s\n", embla_error());
    exit(1);
}

/* One optimizer for each tensor of the model. A view makes the tensor a table. */
typedef struct {
    embla_optim *optim;
    embla_table *view;
} part;

static void prepare(embla_gpt *gpt, size_t n, part *out, embla_span *gradient)
{
    const embla_table_options writable = {.writable = true};
    embla_gpt_tensor tensor;
    must(embla_gpt_tensor_at(gpt, n, &tensor));
    const embla_optim_options adam = {.kind = EMBLA_OPTIM_ADAMW, .decay = tensor.decays ? 0.1 : 0};
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = tensor.rows, .dim = tensor.dim};
    size_t numbers = (size_t)tensor.rows * tensor.dim;
    *gradient = (embla_span){tensor.gradient, numbers};
    must(embla_table_view(&layout, tensor.values, numbers * sizeof(float), &writable, &out->view));
    must(embla_optim_new(out->view, &adam, &out->optim));
}

static void update_ngrams(embla_gpt *gpt, embla_optim *optim, double rate)
{
    const int64_t *rows;
    const float *gradients;
    size_t count;
    must(embla_gpt_ngram_gradients(gpt, &rows, &gradients, &count));
    must(embla_optim_step_rows(optim, rate, rows, count, gradients));
}

int main(int argc, char **argv)
{
    const embla_corpus_options lines = {.documents = true, .seed = 1};
    const embla_schedule schedule = {
        .kind = EMBLA_SCHEDULE_COSINE, .rate = 0.01, .final = 0.001, .steps = STEPS, .warm_up = 5};
    embla_gpt_shape shape = {.dim = 32, .layers = 1, .heads = 4, .positions = LENGTH};
    embla_corpus *corpus = NULL;
    embla_gpt *gpt = NULL;
    embla_optim *ngram_optim = NULL;
    part parts[TENSORS];
    embla_span spans[TENSORS];
    must(embla_corpus_open(argc > 1 ? argv[1] : "names.txt", &lines, &corpus));
    shape.vocab = embla_corpus_vocab(corpus);
    shape.ngram = (embla_gpt_ngram){.rows = 2000, .dim = 8};
    must(embla_gpt_new(&shape, 1, 0, &gpt));
    must(embla_gpt_reserve(gpt, BATCH, LENGTH));

    size_t count = embla_gpt_tensor_count(gpt);
    for (size_t i = 0; i < count; i++) prepare(gpt, i, &parts[i], &spans[i]);
    const embla_optim_options adagrad = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE};
    must(embla_optim_new(embla_gpt_ngram_table(gpt), &adagrad, &ngram_optim));

    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    embla_loss_report report;
    for (int step = 0; step < STEPS; step++) {
        const embla_gpt_options options = {.seed = 1, .step = step};
        double rate, norm;
        size_t used;
        embla_gpt_zero_gradients(gpt);
        must(embla_corpus_batch(
            corpus, &(embla_corpus_request){.step = step, .batch = BATCH, .length = LENGTH}, tokens,
            targets, &used));
        const embla_gpt_batch batch = {
            .tokens = tokens, .targets = targets, .batch = BATCH, .length = used};
        must(embla_gpt_backward(gpt, &batch, &options, &report));
        must(embla_clip(spans, count, 1.0, NULL, &norm));
        must(embla_schedule_rate(&schedule, step, &rate));
        for (size_t i = 0; i < count; i++)
            must(embla_optim_step(parts[i].optim, rate, spans[i].values));
        update_ngrams(gpt, ngram_optim, 5 * rate);
        if (step % 20 == 0) printf("step %2d: loss %.1f\n", step, report.loss);
    }
    embla_gpt_batch other = {.tokens = tokens, .targets = targets, .batch = BATCH};
    must(embla_corpus_batch(
        corpus, &(embla_corpus_request){.step = STEPS, .batch = BATCH, .length = LENGTH}, tokens,
        targets, &other.length));
    must(embla_gpt_loss(gpt, &other, NULL, &report)); /* of other names */
    printf("after %d steps: loss %.1f\n", STEPS, report.loss);
    for (size_t i = 0; i < count; i++)
        embla_optim_free(parts[i].optim), embla_table_free(parts[i].view);
    embla_optim_free(ngram_optim);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
    return 0;
}
