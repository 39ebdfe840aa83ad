/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of words from raw text: skip-gram and CBOW, with character n-grams, with phrases. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "embla_wordvec.h"

static void note_unseen(const char *name)
{
    static const char *const words[] = {"mannan", "kael", "b\xc3\xa9le"};
    embla_checkpoint *checkpoint = NULL;
    embla_subwords *subwords = NULL;
    OK(embla_checkpoint_open(bits_path("words.safetensors"), NULL, &checkpoint));
    OK(embla_subwords_open(checkpoint, &subwords));
    size_t dim = embla_subwords_dim(subwords);
    float *out = bits_room(COUNT_OF(words) * dim * sizeof *out);
    for (size_t i = 0; i < COUNT_OF(words); i++)
        OK(embla_subwords_vector(subwords, words[i], strlen(words[i]), out + i * dim, NULL));
    bits_note_f32(out, COUNT_OF(words) * dim, "words.%s.unseen", name);
    free(out);
    embla_subwords_free(subwords);
    embla_checkpoint_free(checkpoint);
}

static void note_words(embla_wordvec_options options, const char *name)
{
    enum { STEPS = 5000 };
    embla_wordvec *words = NULL;
    embla_wordvec_info info;
    embla_wordvec_report report;
    double *losses = bits_room(STEPS * sizeof *losses);
    int64_t steps = 0;
    options.min_count = 3;
    options.seed = 9;
    options.threads = bits_threads;
    options.sample = 0.01;
    options.dim = 24;
    options.epochs = 2;
    OK(embla_wordvec_new(bits_path("text.txt"), &options, &words));
    OK(embla_wordvec_describe(words, &info));
    for (; steps < info.progress.steps && steps < STEPS; steps++) {
        OK(embla_wordvec_step(words, &report));
        losses[steps] = report.loss;
    }
    bits_note_f64(losses, (size_t)steps, "words.%s.losses", name);
    OK(embla_wordvec_save(words, bits_path("words.state")));
    bits_note_file("words.state", "words.%s.state", name);
    OK(embla_wordvec_write(words, bits_path("words.safetensors")));
    bits_note_file("words.safetensors", "words.%s.file", name);
    bits_note_file("words.vocab.txt", "words.%s.vocab", name);
    if (options.max_gram > 0) note_unseen(name);
    embla_wordvec_free(words);
    remove(bits_path("words.state"));
    remove(bits_path("words.safetensors"));
    remove(bits_path("words.vocab.txt"));
    free(losses);
}

void bits_words(void)
{
    char *text = bits_text(95, 6000, 9);
    bits_write_text("text.txt", text);
    note_words((embla_wordvec_options){0}, "skipgram");
    note_words((embla_wordvec_options){.kind = EMBLA_WORDVEC_CBOW}, "cbow");
    note_words((embla_wordvec_options){.min_gram = 2, .max_gram = 4, .buckets = 3000}, "grams");
    note_words((embla_wordvec_options){.kind = EMBLA_WORDVEC_CBOW,
                                       .clean = EMBLA_WORDVEC_CLEAN_WORDS,
                                       .phrases = 2},
               "phrases");
    remove(bits_path("text.txt"));
    free(text);
}
