/* SPDX-License-Identifier: Apache-2.0 */
/* Texts as vectors: a static model made of a tokenizer and a table, a fit of it, and an index of
 * lines with searches. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "embla_search.h"
#include "embla_train.h"

enum { DIM = 32, WORDS = 120 };

static const char *const texts[] = {"anan lema", "manna manna ka b\xc3\xa9", "nothing known here",
                                    ""};

/* A folder with a table of F16, and the tokenizer of a text. */
static void write_model(const char *text)
{
    const embla_tokenizer_train_options options = {.kind = EMBLA_TOKENIZER_WORDPIECE,
                                                   .max_tokens = WORDS};
    embla_table *table = bits_table(EMBLA_F16, WORDS, DIM, 91);
    embla_checkpoint *checkpoint = NULL;
    embla_account *account = NULL;
    bits_write_text("lines.txt", text);
    OK(embla_checkpoint_view(table, NULL, &checkpoint));
    OK(embla_convert(checkpoint, bits_path("model.safetensors"), NULL, &account));
    OK(embla_tokenizer_train(bits_path("lines.txt"), bits_path("tokenizer.json"), &options, NULL));
    embla_account_free(account);
    embla_checkpoint_free(checkpoint);
    embla_table_free(table);
}

static void open_model(const char *fit, embla_encoder **out)
{
    char model[4200];
    (void)snprintf(model, sizeof model, "%s::vectors", bits_path("model.safetensors"));
    const embla_encoder_options options = {.tokenizer = bits_path("tokenizer.json"), .fit = fit};
    OK(embla_encoder_open(model, &options, out));
}

static void note_vectors(const embla_encoder *encoder, const char *name)
{
    const embla_encode_options options = {.threads = bits_threads,
                                          .normalize = EMBLA_NORMALIZE_YES};
    size_t lengths[COUNT_OF(texts)];
    float out[COUNT_OF(texts) * DIM];
    for (size_t i = 0; i < COUNT_OF(texts); i++) lengths[i] = strlen(texts[i]);
    const embla_texts all = {.texts = texts, .lengths = lengths, .count = COUNT_OF(texts)};
    OK(embla_encoder_encode(encoder, &all, &options, out, NULL));
    bits_note_f32(out, COUNT_OF(out), "encoder.%s", name);
}

static void note_index(const embla_encoder *encoder)
{
    enum { K = 5 };
    const embla_index_options options = {.threads = bits_threads};
    embla_index *index = NULL;
    embla_neighbour found[2 * K];
    double scores[4 * K];
    size_t lengths[2] = {strlen(texts[0]), strlen(texts[1])};
    const embla_texts two = {.texts = texts, .lengths = lengths, .count = 2};
    OK(embla_index_new(encoder, bits_path("lines.txt"), &options, &index));
    OK(embla_index_search(index, &two, K, NULL, found, NULL));
    for (size_t i = 0; i < 2 * K; i++) {
        scores[2 * i] = (double)found[i].row;
        scores[2 * i + 1] = found[i].score;
    }
    bits_note_f64(scores, 4 * K, "index.search");
    OK(embla_index_write(index, bits_path("index.safetensors")));
    bits_note_file("index.safetensors", "index.file");
    OK(embla_index_verify(bits_path("index.safetensors")));
    embla_index_free(index);
    remove(bits_path("index.safetensors"));
}

void bits_encoder(void)
{
    char *text = bits_text(92, 1200, 6);
    embla_encoder *encoder = NULL;
    /* without components, which an engine computes */
    embla_fit_options options = {.a = 0.001, .components = -1, .threads = bits_threads};
    write_model(text);
    bits_write_text("counts.txt", "an 900\nma 700\nle 90\nri 31\no 3\nka 1\n");
    open_model(NULL, &encoder);
    note_vectors(encoder, "plain");
    note_index(encoder);
    options.counts = bits_path("counts.txt");
    OK(embla_fit(encoder, bits_path("lines.txt"), bits_path("fit.safetensors"), &options, NULL));
    embla_encoder_free(encoder);
    bits_note_file("fit.safetensors", "fit.file");
    open_model(bits_path("fit.safetensors"), &encoder);
    note_vectors(encoder, "fitted");
    embla_encoder_free(encoder);
    remove(bits_path("fit.safetensors"));
    remove(bits_path("counts.txt"));
    remove(bits_path("tokenizer.json"));
    remove(bits_path("model.safetensors"));
    remove(bits_path("lines.txt"));
    free(text);
}
