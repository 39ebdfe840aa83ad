/* SPDX-License-Identifier: Apache-2.0 */
/* Models of every kind, without an engine: their first weights, losses and gradients; what they
 * predict and generate. */
#include <stdio.h>
#include <stdlib.h>

#include "bits.h"
#include "embla_train.h"
#include "gpt_shapes.h"

enum { VOCAB = 50, BATCH = 3, LENGTH = 24, HEADS = 2, LAYERS = 2 };

static embla_gpt *new_model(const embla_gpt_shape *shape)
{
    embla_gpt *gpt = NULL;
    OK(embla_gpt_new(shape, 41, 0.3, &gpt));
    return gpt;
}

static void note_tensors(const embla_gpt *gpt, bool gradients, const char *name, const char *what)
{
    size_t count = embla_gpt_tensor_count(gpt), used = 0;
    float *all = bits_room((size_t)embla_gpt_parameters(gpt) * sizeof *all);
    for (size_t i = 0; i < count; i++) {
        embla_gpt_tensor tensor;
        OK(embla_gpt_tensor_at(gpt, i, &tensor));
        const float *from = gradients ? tensor.gradient : tensor.values;
        for (size_t k = 0; k < (size_t)tensor.rows * tensor.dim; k++) all[used++] = from[k];
    }
    bits_note_f32(all, used, "model.%s.%s", name, what);
    free(all);
}

/* The loss of a batch, and all gradients. */
static void note_gradients(embla_gpt *gpt, const char *name)
{
    int32_t *tokens = bits_tokens(42, BATCH * LENGTH, VOCAB);
    int32_t *targets = bits_tokens(43, BATCH * LENGTH, VOCAB);
    const embla_gpt_batch batch = {
        .tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH};
    const embla_gpt_options options = {.threads = bits_threads, .seed = 44, .no_engine = true};
    embla_loss_report report;
    targets[7] = EMBLA_TARGET_IGNORE;
    OK(embla_gpt_reserve(gpt, BATCH, LENGTH));
    OK(embla_gpt_loss(gpt, &batch, &options, &report));
    bits_note_f64(&report.loss, 1, "model.%s.loss", name);
    OK(embla_gpt_backward(gpt, &batch, &options, &report));
    bits_note_f64(&report.loss, 1, "model.%s.loss.dropout", name);
    note_tensors(gpt, true, name, "gradients");
    const int64_t *rows;
    const float *gradients;
    size_t count;
    if (embla_gpt_ngram_table(gpt)) {
        OK(embla_gpt_ngram_gradients(gpt, &rows, &gradients, &count));
        bits_note_i64(rows, count, "model.%s.ngram.rows", name);
        bits_note_f32(gradients, count * embla_table_dim(embla_gpt_ngram_table(gpt)),
                      "model.%s.ngram.gradients", name);
    }
    free(targets);
    free(tokens);
}

static void note_predictions(const embla_prediction *p, size_t count, const char *name,
                             const char *what)
{
    double *numbers = bits_room(4 * count * sizeof *numbers);
    for (size_t i = 0; i < count; i++) {
        numbers[4 * i] = p[i].token;
        numbers[4 * i + 1] = (double)p[i].logit;
        numbers[4 * i + 2] = p[i].log_probability;
        numbers[4 * i + 3] = (double)p[i].rank;
    }
    bits_note_f64(numbers, 4 * count, "model.%s.predict.%s", name, what);
    free(numbers);
}

static void note_predict(const embla_gpt *gpt, const char *name)
{
    enum { TOP = 10, ASKED = 3 };
    const int32_t asked[ASKED] = {1, 17, 49};
    int32_t *tokens = bits_tokens(45, LENGTH, VOCAB);
    embla_prediction next[TOP], answers[ASKED], each[LENGTH];
    float attention[LAYERS * HEADS * LENGTH];
    const embla_predict_options options = {.temperature = 0.7,
                                           .top = TOP,
                                           .asked = asked,
                                           .asked_count = ASKED,
                                           .threads = bits_threads};
    embla_predict_results results = {
        .next = next, .asked = answers, .each = each, .attention = attention};
    OK(embla_gpt_predict(gpt, tokens, LENGTH, &options, &results));
    note_predictions(next, TOP, name, "next");
    note_predictions(answers, ASKED, name, "asked");
    note_predictions(each, LENGTH, name, "each");
    bits_note_f32(attention, COUNT_OF(attention), "model.%s.predict.attention", name);
    bits_note_f64(&results.loss, 1, "model.%s.predict.loss", name);
    free(tokens);
}

/* Tokens that follow a beginning, each drawn. */
static void note_generated(const embla_gpt *gpt, const char *name)
{
    embla_gpt_shape shape;
    embla_decoder *decoder = NULL;
    embla_head head;
    embla_choice choice;
    int32_t tokens[LENGTH] = {1, 2, 3, 4, 5};
    float *hidden;
    const embla_decoder_options options = {.threads = bits_threads};
    OK(embla_gpt_describe(gpt, &shape));
    hidden = bits_room(shape.dim * sizeof *hidden);
    OK(embla_decoder_new(gpt, LENGTH, &decoder));
    OK(embla_decoder_head(decoder, &head));
    OK(embla_decoder_append(decoder, tokens, 5, &options, hidden));
    for (int64_t i = 5; i < LENGTH; i++) {
        embla_sample_options sample = {.temperature = 1, .seed = 46, .step = i};
        OK(embla_head_sample(&head, hidden, 1, &sample, &choice));
        tokens[i] = choice.token;
        OK(embla_decoder_append(decoder, &tokens[i], 1, &options, hidden));
    }
    bits_note_i32(tokens, LENGTH, "model.%s.generated", name);
    bits_note_f32(hidden, shape.dim, "model.%s.hidden", name);
    embla_decoder_free(decoder);
    free(hidden);
}

static void note_model(embla_gpt_shape shape, const char *name)
{
    shape.vocab = VOCAB;
    shape.dim = 32;
    shape.layers = LAYERS;
    shape.heads = HEADS;
    shape.positions = LENGTH;
    embla_gpt *gpt = new_model(&shape);
    note_tensors(gpt, false, name, "weights");
    note_gradients(gpt, name);
    if (!embla_gpt_ngram_table(gpt)) note_predict(gpt, name);
    note_generated(gpt, name);
    embla_gpt_free(gpt);
}

void bits_models(void)
{
    note_model((embla_gpt_shape){.biases = true, .dropout = 0.1}, "gpt2");
    note_model((embla_gpt_shape){LLAMA_KIND, .kv_heads = 1}, "llama");
    note_model((embla_gpt_shape){MICROGPT_KIND}, "microgpt");
    note_model((embla_gpt_shape){.position_kind = EMBLA_POSITIONS_SINUSOIDAL,
                                 .activation = EMBLA_ACTIVATION_RELU_SQUARED,
                                 .untied = true},
               "sinusoidal");
    note_model((embla_gpt_shape){LLAMA_KIND, .ngram = {.rows = 500, .layer = 1, .seed = 3}},
               "ngram");
}
