/* SPDX-License-Identifier: Apache-2.0 */
/* A training of microGPT on names, without an engine: losses, the saved state, and the files of the
 * model. Also corpora of every kind and their batches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bits.h"
#include "embla_train.h"

/* ---- corpora ---- */

static void note_corpus(const embla_corpus_options *options, const char *name)
{
    enum { BATCH = 6, LENGTH = 12, BATCHES = 5 };
    embla_corpus *corpus = NULL;
    int32_t *tokens = bits_room(BATCHES * 2 * BATCH * LENGTH * sizeof *tokens);
    OK(embla_corpus_open(bits_path("corpus.txt"), options, &corpus));
    for (int64_t s = 0; s < BATCHES; s++) {
        const embla_corpus_request request = {.step = s, .batch = BATCH, .length = LENGTH};
        int32_t *to = tokens + s * 2 * BATCH * LENGTH;
        OK(embla_corpus_batch(corpus, &request, to, to + BATCH * LENGTH, NULL));
    }
    bits_note_i32(tokens, BATCHES * 2 * BATCH * LENGTH, "corpus.%s", name);
    embla_corpus_free(corpus);
    free(tokens);
}

static void note_corpora(void)
{
    char *text = bits_text(51, 1500, 7);
    bits_write_text("corpus.txt", text);
    note_corpus(&(embla_corpus_options){.seed = 1}, "characters");
    note_corpus(&(embla_corpus_options){.seed = 2, .documents = true}, "documents");
    note_corpus(&(embla_corpus_options){.kind = EMBLA_CORPUS_BYTES, .in_order = true}, "bytes");
    note_corpus(&(embla_corpus_options){.kind = EMBLA_CORPUS_WORDS, .max_words = 60}, "words");
    free(text);
}

/* ---- a training ---- */

enum { STEPS = 40 };

static void note_model_files(const embla_train *train)
{
    OK(embla_train_save_model(train, bits_path("microgpt"), NULL));
    bits_note_file("microgpt/model.safetensors", "train.microgpt.model");
    bits_note_file("microgpt/config.json", "train.microgpt.config");
    remove(bits_path("microgpt/model.safetensors"));
    remove(bits_path("microgpt/config.json"));
    rmdir(bits_path("microgpt"));
}

static void note_training(const embla_gpt_shape *shape, int64_t positions, double dropout,
                          const char *name)
{
    const embla_corpus_options lines = {.documents = true, .seed = 1, .validation = 0.1};
    embla_corpus *corpus = NULL;
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    embla_train_report report;
    double losses[STEPS], norms[STEPS], validation;
    embla_gpt_shape own = *shape;
    OK(embla_corpus_open(bits_path("corpus.txt"), &lines, &corpus));
    own.vocab = embla_corpus_vocab(corpus);
    own.positions = (size_t)positions;
    own.dropout = dropout;
    OK(embla_gpt_new(&own, 1, 0, &gpt));
    const embla_train_options options = {
        .batch = 4,
        .schedule = {.rate = 0.01, .steps = STEPS, .warm_up = 3, .kind = EMBLA_SCHEDULE_COSINE},
        .decay = 0.1,
        .clip = 1,
        .seed = 5,
        .threads = bits_threads,
        .engine = EMBLA_TRAIN_ENGINE_NONE};
    OK(embla_train_new(gpt, corpus, &options, &train));
    for (int64_t s = 0; s < STEPS; s++) {
        OK(embla_train_step(train, &report));
        losses[s] = report.loss;
        norms[s] = report.norm;
    }
    OK(embla_train_validate(train, 0, &validation));
    bits_note_f64(losses, STEPS, "train.%s.losses", name);
    bits_note_f64(norms, STEPS, "train.%s.norms", name);
    bits_note_f64(&validation, 1, "train.%s.validation", name);
    OK(embla_train_save(train, bits_path("state.safetensors"), "note"));
    bits_note_file("state.safetensors", "train.%s.state", name);
    remove(bits_path("state.safetensors"));
    if (strcmp(name, "microgpt") == 0) note_model_files(train);
    embla_train_free(train);
    embla_gpt_free(gpt);
    embla_corpus_free(corpus);
}

void bits_training(void)
{
    embla_gpt_preset preset;
    note_corpora();
    OK(embla_gpt_preset_find("microgpt", &preset));
    note_training(&preset.shape, 24, 0, "microgpt");
    const embla_gpt_shape grams = {.dim = 24,
                                   .layers = 2,
                                   .heads = 3,
                                   .position_kind = EMBLA_POSITIONS_ROTARY,
                                   .activation = EMBLA_ACTIVATION_SWIGLU,
                                   .ngram = {.rows = 400, .layer = 1}};
    note_training(&grams, 24, 0.1, "ngram");
    remove(bits_path("corpus.txt"));
}
