/* SPDX-License-Identifier: Apache-2.0 */
/* Unigram: of all ways to cut a word into strings of the vocabulary, the one with the highest sum
 * of scores (Viterbi). Paths that are equally good are common, and the last bit of a sum decides
 * between others. So sums are made as Hugging Face's library makes them: in double, from the left,
 * shorter strings first, and a later path must be strictly better.
 */
#include <math.h>
#include <string.h>

#include "tokenizer/tokenize.h"

#define UNKNOWN_PENALTY 10.0

static inline double sum(const embla_unigram *u, double a, double b)
{
    return u->single ? (double)(float)(a + b) : a + b;
}

void embla_byte_tokens(const embla_tokenizer *t, int32_t tokens[256])
{
    static const char digits[] = "0123456789ABCDEF";
    for (size_t i = 0; i < 256; i++) {
        const char text[] = {'<', '0', 'x', digits[i >> 4], digits[i & 15], '>'};
        tokens[i] = embla_tokenizer_literal(t, text, sizeof text);
    }
}

embla_status embla_unigram_build(embla_tokenizer *t)
{
    embla_unigram *u = &t->unigram;
    double least = INFINITY;
    for (size_t i = 0; i < t->vocab_count; i++)
        if (!(t->hidden && t->hidden[i]) && u->scores[i] < least) least = u->scores[i];
    u->unknown_score = sum(u, least, -UNKNOWN_PENALTY);
    embla_byte_tokens(t, u->byte_tokens);
    return EMBLA_OK;
}

/* Offers a path that ends here. Returns whether it is the best so far. */
static inline bool offer(embla_path *path, double score, size_t start, int32_t token)
{
    if (path->start != UINT32_MAX && !(score > path->score)) return false;
    *path = (embla_path){score, (uint32_t)start, token};
    return true;
}

/* Finds the best path to each byte. Fails if it needs the token of unknown characters and there is
 * none. */
static embla_status find_paths(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                               size_t length)
{
    embla_path *paths = e->paths;
    const embla_unigram *u = &t->unigram;
    const embla_trie_cell *cells = t->trie.cells;
    const int32_t *values = t->trie.values;
    const uint64_t left = e->bound.most_steps - e->bound.steps;
    uint64_t steps = 0;
    for (size_t i = 0; i <= length; i++) paths[i].start = UINT32_MAX;
    paths[0] = (embla_path){0.0, 0, -1};
    for (size_t at = 0, size = 0; at < length; at += size) {
        const double here = paths[at].score;
        uint32_t state = 0, base = cells[0].base;
        bool single = false;
        (void)embla_char_at(word + at, &size);
        if (size > length - at) size = length - at; /* no path leaves the word */
        size_t end = at;
        while (end < length) {
            uint32_t next = base + (uint8_t)word[end];
            if (cells[next].check != state) break;
            state = next;
            base = cells[state].base & ~EMBLA_TRIE_ENDS;
            end++;
            if (!(cells[state].base & EMBLA_TRIE_ENDS)) continue;
            const int32_t token = values[state];
            (void)offer(&paths[end], sum(u, u->scores[token], here), at, token);
            single |= end - at == size;
        }
        steps += end - at + 1;
        if (steps > left) break;
        if (!single && offer(&paths[at + size], sum(u, u->unknown_score, here), at, t->unknown) &&
            t->unknown < 0)
            return embla_no_token(t, word + at, length - at);
    }
    return embla_bound_add(&e->bound, steps);
}

/* Appends a string of unknown characters: as bytes, or as one unknown token. A string that is in
 * the vocabulary is that token. */
static embla_status add_unknown(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                size_t length)
{
    const embla_unigram *u = &t->unigram;
    bool all = u->byte_fallback;
    int32_t token = embla_trie_find(&t->trie, 0, word, length);
    if (token >= 0) return embla_unit_add(e, token, length);
    for (size_t i = 0; all && i < length; i++) all = u->byte_tokens[(uint8_t)word[i]] >= 0;
    if (!all) return embla_unit_add(e, t->unknown, length);
    for (size_t i = 0; i < length; i++) /* each has the span of the whole string */
        EMBLA_TRY(embla_unit_add(e, u->byte_tokens[(uint8_t)word[i]], i == 0 ? length : 0));
    return EMBLA_OK;
}

/* Reverses the links of the best path: afterwards the entry of each place where a string begins has
 * where it ends, and its token. */
static void reverse_path(embla_path *paths, size_t length)
{
    uint32_t at = (uint32_t)length, later = 0;
    int32_t later_token = -1;
    while (at > 0) {
        const embla_path step = paths[at];
        paths[at].start = later;
        paths[at].token = later_token;
        later = at;
        later_token = step.token;
        at = step.start;
    }
    paths[0].start = later;
    paths[0].token = later_token;
}

embla_status embla_unigram_encode(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                                  size_t length)
{
    const int32_t unknown = t->unknown;
    EMBLA_TRY(embla_grow(&e->paths, &e->path_room, 0, length + 1, sizeof *e->paths,
                         "the paths of a word"));
    EMBLA_TRY(find_paths(t, e, word, length));
    reverse_path(e->paths, length);
    for (size_t at = 0; at < length;) {
        size_t end = e->paths[at].start;
        int32_t token = e->paths[at].token;
        if (token != unknown) {
            EMBLA_TRY(embla_unit_add(e, token, end - at));
        } else { /* neighbours that are unknown become one token */
            while (end < length && e->paths[end].token == unknown) end = e->paths[end].start;
            EMBLA_TRY(add_unknown(t, e, word + at, end - at));
        }
        at = end;
    }
    return EMBLA_OK;
}
