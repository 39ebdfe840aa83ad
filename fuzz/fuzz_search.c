/* SPDX-License-Identifier: Apache-2.0 */
/* Files that embla fit, embla search and embla eval --sentences read, for a small model of word
 * vectors and a small corpus. The first byte chooses which; the rest is the file:
 *
 *   0  counts of words      1  sentence pairs      2  a fit      3  an index
 *
 * A wrong checksum is set right and the file is tried again, because nearly every change would be
 * refused for it. Promises:
 *   - every call succeeds or leaves a sentence, and in the end nothing stays allocated;
 *   - every line of an accepted index is a line of the corpus, and questions find such lines;
 *   - scores of pairs are numbers between -1 and 1; a fit that is accepted encodes texts.
 */
#include <math.h>

#include "base/mem.h"
#include "embla_search.h"
#include "folder.h"
#include "input.h"
#include "models.h"

enum { KINDS = 4, SUM = 32 };

static const char model[] = "6 2\nthe 1 2\nfox 3 4.5\ndog -1 2\na 0.5 0\n, 0 1\nlazy 2 -2\n";
static const char corpus[] = "the fox\n\nA lazy dog, a fox\r\nunheard\nthe the";
static embla_encoder *encoder;
static char model_path[FOLDER_PATH], corpus_path[FOLDER_PATH], path[FOLDER_PATH];

#define SAID(status) PROMISE((status) == EMBLA_OK || *embla_error())

static void make_files(void)
{
    if (*path) return;
    folder_make("search");
    folder_write("model.vec", model, sizeof model - 1);
    folder_write("corpus.txt", corpus, sizeof corpus - 1);
    (void)folder_path("model.vec", model_path);
    (void)folder_path("corpus.txt", corpus_path);
    (void)folder_path("input", path);
    PROMISE(embla_encoder_open(model_path, NULL, &encoder) == EMBLA_OK); /* what is made once */
    embla_encoder_free(encoder);
}

/* Sets a checksum in the file to the one that the last message says. `key` is that of the metadata,
 * `said` what precedes the checksum in the message. */
static bool set_sum(uint8_t *data, size_t size, const char *key, const char *said)
{
    const char *found = strstr(embla_error(), said);
    uint8_t *at = size > 0 ? memmem(data, size, key, strlen(key)) : NULL;
    if (!found || !at || strlen(found) < strlen(said) + SUM) return false;
    at += strlen(key);
    if ((size_t)(data + size - at) < SUM) return false;
    memcpy(at, found + strlen(said), SUM);
    return true;
}

size_t LLVMFuzzerCustomMutator(uint8_t *data, size_t size, size_t most, unsigned seed)
{
    if (size < 2 || data[0] % KINDS < 2) return LLVMFuzzerMutate(data, size, most);
    return 1 + mutate_safetensors(data + 1, size - 1, most - 1, &seed);
}

/* ---- text files ---- */

static void use_counts(void)
{
    const embla_fit_options options = {.components = -1, .counts = path, .threads = 1};
    char out[FOLDER_PATH];
    embla_fit_report report;
    embla_status status =
        embla_fit(encoder, corpus_path, folder_path("out", out), &options, &report);
    SAID(status);
    if (status == EMBLA_OK) PROMISE(report.lines == 5 && report.components == 0);
}

static void use_pairs(void)
{
    const embla_eval_options options = {.threads = 1};
    embla_eval_part part;
    embla_status status = embla_eval_sentences(encoder, path, &options, &part);
    SAID(status);
    if (status != EMBLA_OK) return;
    PROMISE(part.covered >= 0 && part.covered <= part.asked);
    PROMISE(isnan(part.spearman) || fabs(part.spearman) <= 1 + 1e-9);
    PROMISE(isnan(part.pearson) || fabs(part.pearson) <= 1 + 1e-9);
}

/* ---- files of ours ---- */

static embla_status use_fit(void)
{
    const embla_encoder_options options = {.fit = path};
    const char *texts[] = {"the fox, a cat"};
    const size_t lengths[] = {strlen(texts[0])};
    const embla_texts one = {.texts = texts, .lengths = lengths, .count = 1};
    embla_encoder *fitted = NULL;
    float out[2];
    embla_status status = embla_encoder_open(model_path, &options, &fitted);
    SAID(status);
    if (status == EMBLA_OK)
        PROMISE(embla_encoder_encode(fitted, &one, NULL, out, NULL) == EMBLA_OK);
    embla_encoder_free(fitted);
    return status;
}

static void use_line(const embla_index *index, int64_t row)
{
    size_t length = 0;
    int64_t number = 0;
    const char *line = embla_index_line(index, row, &length, &number);
    PROMISE(line && number >= 1);
    PROMISE(length < sizeof corpus && memmem(corpus, sizeof corpus - 1, line, length));
}

static embla_status use_index(void)
{
    const char *texts[] = {"the fox", "cat"};
    const size_t lengths[] = {7, 3};
    const embla_texts two = {.texts = texts, .lengths = lengths, .count = 2};
    embla_index *index = NULL;
    embla_neighbour found[4];
    embla_index_info info;
    embla_status status = embla_index_open(path, encoder, corpus_path, &index);
    SAID(status);
    if (status != EMBLA_OK) return status;
    PROMISE(embla_index_describe(index, &info) == EMBLA_OK);
    PROMISE(info.dim == 2 && info.rows >= 0 && info.stored);
    for (int64_t i = 0; i < info.rows; i++) use_line(index, i);
    PROMISE(!embla_index_line(index, info.rows, NULL, NULL));
    embla_status searched = embla_index_search(index, &two, 2, NULL, found, NULL);
    SAID(searched);
    for (size_t i = 0; searched == EMBLA_OK && i < 4; i++) {
        PROMISE(found[i].row < info.rows);
        if (found[i].row >= 0) use_line(index, found[i].row);
    }
    embla_index_free(index);
    return status;
}

/* A file of ours is tried again with the checksums of model, corpus and contents. */
static void use_saved(uint8_t *data, size_t size, embla_status (*use)(void))
{
    for (int tries = 0; tries < 4; tries++) {
        if (use() == EMBLA_OK) return;
        if (!set_sum(data, size, "\"checksum\":\"", "have the checksum ") &&
            !set_sum(data, size, "\"model\":\"", "of this model is ") &&
            !(strstr(embla_error(), "another model") &&
              set_sum(data, size, "\"model\":\"", ", now it is ")) &&
            !(strstr(embla_error(), "another corpus") &&
              set_sum(data, size, "\"corpus\":\"", ", now it is ")))
            return;
        folder_write("input", data, size);
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    const size_t kind = take_below(&in, KINDS);
    make_files();
    const size_t live = embla_mem_live();
    /* Each input has its own encoder, because an encoder keeps memory between calls. */
    PROMISE(embla_encoder_open(model_path, NULL, &encoder) == EMBLA_OK);
    uint8_t *copy = (uint8_t *)block(in.size);
    if (in.size > 0) memcpy(copy, in.data, in.size);
    folder_write("input", copy, in.size);
    if (kind == 0)
        use_counts();
    else if (kind == 1)
        use_pairs();
    else
        use_saved(copy, in.size, kind == 2 ? use_fit : use_index);
    free(copy);
    embla_encoder_free(encoder);
    PROMISE(embla_mem_live() == live);
    return 0;
}
