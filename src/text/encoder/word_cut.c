/* SPDX-License-Identifier: Apache-2.0 */
/* A text as the words of a table of word vectors (GloVe, word2vec, fastText). Such a file has a
 * vocabulary and no rule for cutting a text, so the vocabulary itself decides:
 *
 *   1. A vocabulary without capital letters means that the text is put in lower case.
 *   2. White space separates. Between it, a cut is possible where word characters end or begin, and
 *      around every other character (embla_next_word has the kinds of characters).
 *   3. The longest word of the vocabulary that ends at a possible cut is taken: "u.s." and "'s" are
 *      words if the vocabulary has them. In a vocabulary with capital letters, lower case is tried
 *      for what is not found.
 *   4. "don't" is "do" and "n't" in vocabularies that have these two and not the whole.
 *   5. What is left is unknown: word characters that follow each other, or one other character.
 */
#include <string.h>

#include "checkpoint/vocab.h"
#include "tokenizer/tokenize.h"
#include "unicode/cut.h"

enum { RUNS_MOST = 64 }; /* parts of a word, so that no vocabulary makes a search slow */

/* ---- opening ---- */

static bool has_capital(const embla_name *s)
{
    for (size_t i = 0; i < s->length; i++)
        if (s->bytes[i] >= 'A' && s->bytes[i] <= 'Z') return true;
    return false;
}

/* True if capital letters are rare: a lower-case vocabulary may have an entry such as "<UNK>". */
static bool is_lower_case(const embla_vocab *vocab)
{
    size_t capitals = 0;
    for (size_t i = 0; i < vocab->count; i++) capitals += has_capital(&vocab->words[i]);
    return capitals <= vocab->count / 1000 + 2 && capitals < vocab->count;
}

static embla_status add_words(const embla_vocab *vocab, embla_tokenizer *t)
{
    static const char as_it_is[] = "{\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}";
    static const char folded[] = "{\"normalizer\":{\"type\":\"Lowercase\"},"
                                 "\"pre_tokenizer\":{\"type\":\"WhitespaceSplit\"}}";
    t->kind = EMBLA_TOKENIZER_WORDS;
    t->folds = is_lower_case(vocab);
    EMBLA_TRY(embla_tokenizer_stages(t, t->folds ? folded : as_it_is));
    for (size_t i = 0; i < vocab->count; i++) {
        const embla_name *word = &vocab->words[i];
        const embla_name *first = embla_names_find(&vocab->index, word->bytes, word->length);
        if (first && first->number < word->number) continue; /* of equal words the first counts */
        EMBLA_TRY(embla_tokenizer_add(t, word->bytes, word->length, word->number));
    }
    EMBLA_TRY(embla_tokenizer_finish(t, NULL, 0));
    t->unknown = (int32_t)t->token_end;
    return EMBLA_OK;
}

embla_status embla_tokenizer_of_rows(const embla_vocab *vocab, const char *name,
                                     embla_tokenizer **out)
{
    embla_tokenizer *t = NULL;
    if (vocab->end >= INT32_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s: its last word has token %" PRId64 "; the limit is %d", name,
                          vocab->end - 1, INT32_MAX - 1);
    EMBLA_TRY(embla_tokenizer_begin(name, "word vectors", &t));
    embla_status status = add_words(vocab, t);
    if (status == EMBLA_OK)
        *out = t;
    else
        embla_tokenizer_free(t);
    return status;
}

/* ---- cutting ---- */

static uint8_t lower(char c)
{
    return (uint8_t)(c >= 'A' && c <= 'Z' ? c - 'A' + 'a' : c);
}

/* The longest word of the vocabulary from `at` to a possible cut, which goes to *end. */
static int32_t longest(const embla_tokenizer *t, const char *word, size_t length, size_t at,
                       bool fold, size_t *end)
{
    uint32_t state = 0;
    int32_t found = -1;
    for (int run = 0; run < RUNS_MOST && at < length; run++) {
        bool letters;
        size_t stop = at + embla_run_length(word + at, length - at, &letters);
        for (; at < stop; at++)
            if (!embla_trie_step(&t->trie, &state, fold ? lower(word[at]) : (uint8_t)word[at]))
                return found;
        int32_t token = embla_trie_value(&t->trie, state);
        if (token < 0) continue;
        found = token;
        *end = at;
    }
    return found;
}

/* The token of "do" if "don't" begins at `at`, its letters end at `end`, and the vocabulary has
 * "do" and "n't"; otherwise -1. */
static int32_t before_not(const embla_tokenizer *t, const char *word, size_t length, size_t at,
                          size_t end)
{
    bool letters = false;
    if (end - at < 2 || length - end < 2 || lower(word[end - 1]) != 'n' || word[end] != '\'' ||
        lower(word[end + 1]) != 't')
        return -1;
    if (embla_run_length(word + end + 1, length - end - 1, &letters) != 1) return -1;
    if (embla_trie_find(&t->trie, 0, "n't", 3) < 0) return -1;
    return embla_trie_find(&t->trie, 0, word + at, end - 1 - at);
}

embla_status embla_words_encode(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                size_t length)
{
    for (size_t at = 0, end = 0; at < length; at = end) {
        bool letters;
        size_t run = at + embla_run_length(word + at, length - at, &letters);
        int32_t token = longest(t, word, length, at, false, &end);
        if (token < 0 && !t->folds) token = longest(t, word, length, at, true, &end);
        if (token < 0 || end <= run) {
            int32_t stem = before_not(t, word, length, at, run);
            if (stem >= 0) end = run - 1;
            if (stem >= 0) token = stem;
        }
        if (token < 0) end = run;
        EMBLA_TRY(embla_unit_add(e, token < 0 ? t->unknown : token, end - at));
    }
    return EMBLA_OK;
}
