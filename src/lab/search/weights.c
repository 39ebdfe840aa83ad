/* SPDX-License-Identifier: Apache-2.0 */
/* A file of counts has lines of a word, white space and a count, as word2vec (-save-vocab), GloVe
 * (vocab_count) and fastText (dump dict) write them; what follows on the line is ignored. Shares
 * refer to all words of the file, also those without a row. A word that the file does not have gets
 * the weight 1, as the rarest do.
 */
#include "search/weights.h"

#include <string.h>

#include "base/mem.h"
#include "encoder/encoder.h"
#include "search/corpus_lines.h"

enum { DIGITS_MOST = 18 };

static bool is_gap(char c)
{
    return c == ' ' || c == '\t';
}

/* Reads "word count ..". False if the line is something else. */
static bool read_count(const char *line, size_t length, size_t *word, int64_t *count)
{
    size_t at = 0, first = 0;
    while (at < length && !is_gap(line[at])) at++;
    *word = at;
    while (at < length && is_gap(line[at])) at++;
    *count = 0;
    for (first = at; at < length && line[at] >= '0' && line[at] <= '9'; at++) {
        if (at - first >= DIGITS_MOST) return false;
        *count = *count * 10 + (line[at] - '0');
    }
    return *word > 0 && at > first && (at == length || is_gap(line[at]));
}

/* Sums the counts of a file into shares (by token), and returns their total. */
static embla_status add_file(const embla_tokenizer *t, const char *path, const embla_lines *lines,
                             double *shares, double *total)
{
    int64_t number = 0, found = 0;
    *total = 0;
    for (size_t at = 0; at < lines->size;) {
        const char *line = lines->bytes + at;
        size_t length = embla_lines_next(lines, &at), word = 0;
        int64_t count = 0;
        number++;
        if (length == 0) continue;
        if (!read_count(line, length, &word, &count))
            return embla_fail(EMBLA_ERR_FORMAT, "%.200s: line %" PRId64 " is not \"word count\"",
                              path, number);
        *total += (double)count;
        int32_t token = embla_tokenizer_token(t, line, word);
        if (token < 0) continue;
        shares[token] += (double)count;
        found++;
    }
    if (found > 0 && *total > 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: %" PRId64 " of its %" PRId64 " lines are words of the model, with "
                      "%.0f occurrences; at least 1 is needed",
                      path, found, number, *total);
}

static embla_status read_file(const embla_tokenizer *t, const char *path, double *shares,
                              double *total)
{
    embla_lines lines;
    EMBLA_TRY(embla_lines_open(path, &lines));
    embla_status status = add_file(t, path, &lines, shares, total);
    if (status == EMBLA_OK) status = embla_map_check(lines.map);
    embla_lines_free(&lines);
    return status;
}

static embla_status find_shares(const embla_encoder *encoder, const char *counts, size_t count,
                                double *shares, double *total, const char **why)
{
    *total = 0;
    if (counts) {
        *why = "a file of counts";
        return read_file(encoder->tokenizer, counts, shares, total);
    }
    if (encoder->counts && encoder->count_count >= count) {
        *why = "the model's counts";
        for (size_t i = 0; i < count; i++) {
            shares[i] = encoder->counts[i] > 0 ? (double)encoder->counts[i] : 0.0;
            *total += shares[i];
        }
        if (*total > 0) return EMBLA_OK;
    }
    *why = "rank";
    if (encoder->compat != EMBLA_COMPAT_WORDS)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "weights of %zu tokens need a file of counts: only word vectors are in "
                          "the order of their frequency",
                          count);
    for (size_t i = 0; i < count; i++) *total += shares[i] = 1.0 / (double)(i + 1);
    return EMBLA_OK;
}

embla_status embla_sif_weights(const embla_encoder *encoder, double a, const char *counts,
                               size_t count, float *out, const char **why)
{
    void *memory = NULL;
    double total = 0;
    EMBLA_TRY(embla_mem_new(count * sizeof(double), "shares of words", &memory));
    double *shares = memory;
    embla_status status = find_shares(encoder, counts, count, shares, &total, why);
    for (size_t i = 0; status == EMBLA_OK && i < count; i++)
        out[i] =
            (float)(a / (a + shares[i] / total) * (encoder->weights ? encoder->weights[i] : 1.0));
    embla_mem_free(memory, count * sizeof(double));
    return status;
}
