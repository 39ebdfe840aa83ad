/* SPDX-License-Identifier: Apache-2.0 */
/* A training of a very small model, the same each time: fuzz_resume.c loads files into it, and
 * seeds.c saves it. */
#ifndef EMBLA_FUZZ_TRAINING_H
#define EMBLA_FUZZ_TRAINING_H

#include "embla_train.h"
#include "folder.h"

static embla_corpus *corpus;

typedef struct {
    embla_gpt *gpt;
    embla_train *train;
} training;

/* Makes the folder and the corpus, once for all inputs. */
static inline void training_set_up(void)
{
    static const char text[] = "abba\nbab\nabab\nbaba\n";
    const embla_corpus_options lines = {.documents = true, .seed = 1};
    char path[FOLDER_PATH];
    if (corpus) return;
    folder_make("resume");
    folder_write("text", text, sizeof text - 1);
    PROMISE(embla_corpus_open(folder_path("text", path), &lines, &corpus) == EMBLA_OK);
}

static inline training training_start(void)
{
    const embla_gpt_shape shape = {.vocab = embla_corpus_vocab(corpus),
                                   .dim = 2,
                                   .layers = 1,
                                   .heads = 1,
                                   .hidden = 2,
                                   .positions = 4,
                                   .norm = EMBLA_NORM_RMS,
                                   .no_gain = true};
    const embla_train_options options = {
        .batch = 1, .length = 4, .schedule = {.rate = 0.01, .steps = 4}, .threads = 1};
    training t = {0};
    PROMISE(embla_gpt_new(&shape, 1, 0, &t.gpt) == EMBLA_OK);
    PROMISE(embla_train_new(t.gpt, corpus, &options, &t.train) == EMBLA_OK);
    return t;
}

static inline void training_stop(training *t)
{
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
}

#endif
