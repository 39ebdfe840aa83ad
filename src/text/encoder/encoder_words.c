/* SPDX-License-Identifier: Apache-2.0 */
/* Word vectors as a static model: the tokenizer is made of the table's own words (word_cut.c), and
 * a word without a row may have a vector of character n-grams.
 *
 * Such an encoder sums in double, word by word: the vector of one word may be a mean of rows
 * itself. Without n-grams a text of words is averaged as any other.
 */
#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/utf8.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "encoder/encoder.h"
#include "tokenizer/grow.h"
#include "unicode/cut.h"
#include "unicode/unicode.h"

/* ---- opening ---- */

bool embla_encoder_has_words(const embla_checkpoint *cp)
{
    return cp->format->no_model;
}

bool embla_names_rows(const char *file)
{
    static const char end[] = ".vocab.txt";
    size_t length = strlen(file), tail = sizeof end - 1;
    return length > tail && memcmp(file + length - tail, end, tail + 1) == 0;
}

/* Words of a table that is not in a file of word vectors must be in a file made for it:
 * NAME.vocab.txt. A vocab.json is one of subwords. */
static bool are_words(const embla_checkpoint *cp, const embla_vocab *vocab)
{
    return embla_encoder_has_words(cp) || embla_names_rows(embla_vocab_source(vocab));
}

/* How often each word occurs in the text that the table was learned from, where the file says. */
static embla_status read_counts(const embla_checkpoint *cp, size_t words, embla_encoder *encoder)
{
    const embla_directory *d = &cp->shards[0].directory;
    const embla_entry *entry = NULL;
    void *memory = NULL;
    bool stored = embla_checkpoint_named(cp, "counts", &entry) == EMBLA_OK && entry->rank == 1 &&
                  strcmp(entry->element->name, "I64") == 0 && entry->shape[0] >= words;
    if (words == 0 || (!stored && !(d->label_counts && d->label_count >= words))) return EMBLA_OK;
    EMBLA_TRY(embla_mem_many(words, sizeof(int64_t), "the counts of words", &memory));
    encoder->counts = memory;
    encoder->count_count = words;
    if (stored) return embla_entry_numbers(cp, entry, sizeof(int64_t), words, memory);
    memcpy(memory, d->label_counts, words * sizeof(int64_t));
    return EMBLA_OK;
}

static embla_status open_subwords(const embla_checkpoint *cp, embla_encoder *encoder)
{
    embla_status status = embla_subwords_open(cp, &encoder->subwords);
    return status == EMBLA_ERR_NOT_FOUND ? EMBLA_OK : status;
}

embla_status embla_encoder_open_words(const embla_checkpoint *cp, embla_encoder *encoder)
{
    embla_vocab *vocab = NULL;
    EMBLA_TRY(embla_vocab_open(cp, &vocab));
    embla_status status = EMBLA_OK;
    if (!are_words(cp, vocab))
        status = embla_fail(EMBLA_ERR_NOT_FOUND,
                            "%.200s has no tokenizer beside it, and its vocabulary (%.100s) is not "
                            "one of word vectors",
                            cp->shown, embla_vocab_source(vocab));
    if (status == EMBLA_OK) status = embla_tokenizer_of_rows(vocab, cp->shown, &encoder->tokenizer);
    embla_vocab_free(vocab);
    EMBLA_TRY(status);
    EMBLA_TRY(read_counts(cp, encoder->tokenizer->token_end, encoder));
    return open_subwords(cp, encoder);
}

/* ---- the mean of words, some of which have only n-grams ---- */

/* Copies a word that is not in the vocabulary, in lower case if the text is. Returns its length, 0
 * if it is too long or no word. */
static size_t copy_word(const embla_tokenizer *t, const char *text, embla_text_span span,
                        char out[EMBLA_WORD_LONGEST + 1])
{
    const char *from = text + span.begin;
    size_t length = span.end - span.begin, used = 0, bytes = 0;
    bool letters = false;
    if (length == 0 || length > EMBLA_WORD_LONGEST) return 0;
    (void)embla_run_length(from, length, &letters);
    if (!letters) return 0;
    for (size_t at = 0; at < length; at += bytes) {
        uint32_t codes[EMBLA_CHAR_EXPANSION];
        char written[4];
        bytes = embla_utf8_length(from + at, length - at);
        if (bytes == 0) return 0;
        codes[0] = embla_utf8_code(from + at, bytes);
        size_t count = t->folds ? embla_char_lower(codes[0], codes) : 1;
        for (size_t i = 0; i < count; i++) {
            size_t more = embla_utf8_encode(codes[i], written);
            if (used + more > EMBLA_WORD_LONGEST) return 0;
            memcpy(out + used, written, more);
            used += more;
        }
    }
    return used;
}

/* Writes the vector of token number i of the text to e->word. False if it has none. */
static bool word_vector(const embla_encoder *encoder, const embla_row_mean *mean,
                        embla_tokenized *e, const char *text, size_t i)
{
    const embla_subwords *s = encoder->subwords;
    const embla_tokenizer *t = encoder->tokenizer;
    const int32_t token = e->tokens[i];
    embla_row_mean plain = *mean, grams = *mean;
    int32_t rows[EMBLA_GRAMS_MOST + 1];
    char copy[EMBLA_WORD_LONGEST + 1];
    size_t count = 0;
    plain.weights = NULL;
    grams = embla_row_mean_of(s->table, mean->dim, NULL);
    if (token != t->unknown && !s->with_words) {
        embla_row_mean_write(&plain, &token, 1, e->word);
        return true;
    }
    if (token != t->unknown) {
        embla_name name;
        rows[count++] = token;
        if (embla_token_name(t, token, false, &name) && name.length <= EMBLA_WORD_LONGEST)
            count += embla_subwords_rows(s, name.bytes, name.length, rows + 1);
    } else {
        size_t length = copy_word(t, text, e->offsets[i], copy);
        if (length > 0) count = embla_subwords_rows(s, copy, length, rows);
    }
    if (count > 0) embla_row_mean_write(&grams, rows, count, e->word);
    return count > 0;
}

embla_status embla_encoder_word_mean(const embla_encoder *encoder, const embla_row_mean *mean,
                                     embla_tokenized *e, const char *text, size_t *count,
                                     float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    size_t words = 0;
    EMBLA_TRY(embla_grow(&e->word, &e->word_room, 0, mean->dim, sizeof *e->word, "a word"));
    EMBLA_TRY(embla_grow(&e->sums, &e->sum_room, 0, mean->dim, sizeof *e->sums, "sums"));
    memset(e->sums, 0, mean->dim * sizeof *e->sums);
    for (size_t i = 0; i < *count; i++) {
        const int32_t token = e->tokens[i];
        const bool weighted = mean->weights && token != encoder->tokenizer->unknown;
        if (!word_vector(encoder, mean, e, text, i)) continue;
        kernels->accumulate(e->word, weighted ? mean->weights[token] : 1.0, mean->dim, e->sums);
        words++;
    }
    for (size_t k = 0; words > 0 && k < mean->dim; k++)
        out[k] = (float)(e->sums[k] / (double)words);
    *count = words;
    return EMBLA_OK;
}
