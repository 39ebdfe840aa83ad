/* SPDX-License-Identifier: Apache-2.0 */
/* WordPiece: the longest string of the vocabulary that a word begins with, then the longest that
 * the rest begins with after a prefix ("##"), and so on. If that fails anywhere, the whole word is
 * unknown. And WordLevel: the word itself, or unknown. */
#include "tokenizer/tokenize.h"

#include <stdio.h>

/* "; 'e' is" if the small letter of a capital is in the vocabulary, else "". */
static const char *small_letter(const embla_tokenizer *t, const char *word, size_t length,
                                char text[16])
{
    const char small = (char)(length == 1 && word[0] >= 'A' && word[0] <= 'Z' ? word[0] + 32 : 0);
    text[0] = '\0';
    if (small && embla_trie_find(&t->trie, 0, &small, 1) >= 0)
        (void)snprintf(text, 16, "; '%c' is", small);
    return text;
}

embla_status embla_no_token(const embla_tokenizer *t, const char *word, size_t length)
{
    size_t first = 0;
    char small[16];
    if (t->unknown_text.bytes && t->unknown < 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.256s: '%.*s' is not in the vocabulary of %zu, and neither is the "
                          "unknown token '%.*s'%s",
                          t->name, length < 64 ? (int)length : 64, word, t->vocab_count,
                          (int)(t->unknown_text.length < 64 ? t->unknown_text.length : 64),
                          t->unknown_text.bytes, small_letter(t, word, length, small));
    (void)embla_char_at(word, &first);
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.256s: there is no token for '%.*s', and none for the unknown", t->name,
                      (int)(first < length ? first : length), word);
}

static embla_status add_unknown(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                size_t length)
{
    if (t->unknown < 0) return embla_no_token(t, word, length);
    return embla_unit_add(e, t->unknown, length);
}

static bool too_long(const char *word, size_t length, size_t most)
{
    size_t characters = 0;
    if (length <= most) return false;
    for (size_t i = 0; i < length; i++) characters += ((uint8_t)word[i] & 0xc0) != 0x80;
    return characters > most;
}

/* The longest string at `at`, from a state of the trie. *end is where it ends. */
static int32_t longest(embla_tokenized *e, uint32_t state, const char *word, size_t at,
                       size_t length, size_t *end)
{
    const embla_tokenizer *t = e->tokenizer;
    const size_t begin = at;
    int32_t found = -1;
    while (at < length && embla_trie_step(&t->trie, &state, (uint8_t)word[at])) {
        at++;
        int32_t token = embla_trie_value(&t->trie, state);
        if (token < 0) continue;
        found = token;
        *end = at;
    }
    e->bound.steps += at - begin;
    return found;
}

embla_status embla_wordpiece_encode(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                    size_t length)
{
    const embla_wordpiece *w = &t->wordpiece;
    size_t first = e->unit_count;
    if (too_long(word, length, w->most_chars)) return add_unknown(t, e, word, length);
    for (size_t at = 0, end = 0; at < length; at = end) {
        int32_t token = at == 0        ? longest(e, 0, word, at, length, &end)
                        : w->has_inner ? longest(e, w->inner, word, at, length, &end)
                                       : -1;
        EMBLA_TRY(embla_bound_add(&e->bound, 1));
        if (token < 0) {
            e->unit_count = first;
            return add_unknown(t, e, word, length);
        }
        EMBLA_TRY(embla_unit_add(e, token, end - at));
    }
    return EMBLA_OK;
}

embla_status embla_wordlevel_encode(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                    size_t length)
{
    int32_t token = embla_trie_find(&t->trie, 0, word, length);
    return token < 0 ? add_unknown(t, e, word, length) : embla_unit_add(e, token, length);
}
