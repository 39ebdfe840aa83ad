/* SPDX-License-Identifier: Apache-2.0 */
/* Byte pair encoding: a word begins as characters; again and again the pair of neighbours with the
 * lowest rank is merged, of equal ones the leftmost.
 *
 * Short words search all pairs for the lowest rank. Long ones keep the pairs in a heap: n log n,
 * because some tokenizers have no pre-tokenizer, and then a whole text is one word.
 */
#include <string.h>

#include "tokenizer/merges.h"
#include "tokenizer/tokenize.h"

enum { SHORT = 24 }; /* symbols; above this a heap is faster */
#define NONE UINT32_MAX

/* ---- symbols ---- */

typedef struct {
    const embla_tokenizer *t;
    embla_tokenized *e;
    size_t count;
    bool pending; /* an unknown symbol that waits to be joined with the next */
    uint32_t pending_length;
} word_state;

static embla_status add_symbol(word_state *w, int32_t token, uint32_t length)
{
    embla_tokenized *e = w->e;
    EMBLA_TRY(embla_grow(&e->symbols, &e->symbol_room, w->count, w->count + 1, sizeof *e->symbols,
                         "the symbols of a word"));
    e->symbols[w->count++] = (embla_symbol){.token = token, .length = length};
    return EMBLA_OK;
}

static embla_status flush_unknown(word_state *w)
{
    if (!w->pending) return EMBLA_OK;
    w->pending = false;
    return add_symbol(w, w->t->unknown, w->pending_length);
}

static bool all_bytes(const embla_bpe *bpe, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (bpe->byte_tokens[(uint8_t)text[i]] < 0) return false;
    return true;
}

static embla_status add_bytes(word_state *w, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        EMBLA_TRY(add_symbol(w, w->t->bpe.byte_tokens[(uint8_t)text[i]], 1));
    return EMBLA_OK;
}

/* A character without a symbol: its bytes, or unknown, or nothing at all. The bytes overtake an
 * unknown symbol that is still waiting, as in the reference. */
static embla_status add_missing(word_state *w, const char *text, size_t length, size_t taken,
                                bool first, bool last)
{
    const embla_bpe *b = &w->t->bpe;
    const embla_name prefix = first ? (embla_name){0} : b->prefix;
    const embla_name suffix = last ? b->suffix : (embla_name){0};
    if (b->byte_fallback) /* each byte is a symbol */
        EMBLA_TRY(embla_bound_make(&w->e->bound, (uint64_t)prefix.length + suffix.length));
    if (b->byte_fallback && all_bytes(b, prefix.bytes, prefix.length) &&
        all_bytes(b, text, length) && all_bytes(b, suffix.bytes, suffix.length)) {
        EMBLA_TRY(add_bytes(w, prefix.bytes, prefix.length));
        EMBLA_TRY(add_bytes(w, text, length));
        return add_bytes(w, suffix.bytes, suffix.length);
    }
    if (!b->has_unknown) return EMBLA_OK;
    if (w->pending && b->fuse) {
        w->pending_length += (uint32_t)taken;
        return EMBLA_OK;
    }
    EMBLA_TRY(flush_unknown(w));
    if (w->t->unknown < 0) return embla_no_token(w->t, text, length);
    w->pending = true;
    w->pending_length = (uint32_t)taken;
    return EMBLA_OK;
}

static embla_status symbols_of_bytes(word_state *w, const char *word, size_t length)
{
    for (size_t i = 0; i < length; i++) {
        const bool first = i == 0, last = i + 1 == length;
        uint8_t b = (uint8_t)word[i];
        int32_t token = w->t->bpe.symbols[(first ? 0 : 1) | (last ? 2 : 0)][b];
        if (token >= 0) {
            EMBLA_TRY(flush_unknown(w));
            EMBLA_TRY(add_symbol(w, token, 1));
        } else {
            char mapped[4];
            size_t size = embla_utf8_encode(embla_byte_code(b), mapped);
            EMBLA_TRY(add_missing(w, mapped, size, 1, first, last));
        }
    }
    return flush_unknown(w);
}

static bool follow(const embla_trie *trie, uint32_t *state, const char *text, size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!embla_trie_step(trie, state, (uint8_t)text[i])) return false;
    return true;
}

static embla_status symbols_of_characters(word_state *w, const char *word, size_t length)
{
    const embla_bpe *b = &w->t->bpe;
    const embla_trie *trie = &w->t->trie;
    for (size_t at = 0, size = 0; at < length; at += size) {
        uint32_t state = 0;
        (void)embla_char_at(word + at, &size);
        const bool first = at == 0, last = at + size == length;
        if (!first) state = w->t->wordpiece.inner;
        bool known = (first || w->t->wordpiece.has_inner) &&
                     follow(trie, &state, word + at, size) &&
                     (!last || follow(trie, &state, b->suffix.bytes, b->suffix.length)) &&
                     embla_trie_value(trie, state) >= 0;
        if (known) {
            EMBLA_TRY(flush_unknown(w));
            EMBLA_TRY(add_symbol(w, embla_trie_value(trie, state), (uint32_t)size));
        } else {
            EMBLA_TRY(add_missing(w, word + at, size, size, first, last));
        }
    }
    return flush_unknown(w);
}

/* ---- merging ---- */

/* Looks up the merge of a symbol with the one after it. */
static inline void look_up(const embla_merges *merges, embla_symbol *left,
                           const embla_symbol *right)
{
    const embla_pair_merge *found = embla_merges_find(merges, left->token, right->token);
    left->rank = found ? found->rank : NONE;
    if (found) left->merged = found->merged;
}

/* Merges by searching all pairs. Returns how many symbols are left, from the front. */
static size_t merge_short(const embla_merges *merges, embla_symbol *s, size_t count)
{
    if (count == 0) return 0;
    for (size_t i = 0; i + 1 < count; i++) look_up(merges, &s[i], &s[i + 1]);
    s[count - 1].rank = NONE;
    for (;;) {
        size_t best = 0;
        for (size_t i = 1; i + 1 < count; i++)
            if (s[i].rank < s[best].rank) best = i;
        if (s[best].rank == NONE) return count;
        s[best].token = (int32_t)s[best].merged;
        s[best].length += s[best + 1].length;
        memmove(s + best + 1, s + best + 2, (count - best - 2) * sizeof *s);
        count--;
        s[best].rank = NONE;
        if (best + 1 < count) look_up(merges, &s[best], &s[best + 1]);
        if (best > 0) look_up(merges, &s[best - 1], &s[best]);
    }
}

static embla_status heap_push(embla_tokenized *e, uint32_t rank, uint32_t at)
{
    const uint64_t value = (uint64_t)rank << 32 | at;
    EMBLA_TRY(embla_grow(&e->heap, &e->heap_room, e->heap_count, e->heap_count + 1, sizeof *e->heap,
                         "the merges of a word"));
    size_t i = e->heap_count++;
    for (; i > 0 && e->heap[(i - 1) / 2] > value; i = (i - 1) / 2)
        e->heap[i] = e->heap[(i - 1) / 2];
    e->heap[i] = value;
    return EMBLA_OK;
}

static uint64_t heap_pop(embla_tokenized *e)
{
    uint64_t *heap = e->heap, top = heap[0], value = heap[--e->heap_count];
    size_t i = 0, child = 1;
    while (child < e->heap_count) {
        if (child + 1 < e->heap_count && heap[child + 1] < heap[child]) child++;
        if (heap[child] >= value) break;
        heap[i] = heap[child];
        i = child;
        child = 2 * i + 1;
    }
    heap[i] = value;
    return top;
}

static embla_status consider(embla_tokenized *e, const embla_merges *merges, uint32_t at)
{
    embla_symbol *s = e->symbols;
    s[at].rank = NONE;
    if (s[at].after == NONE) return EMBLA_OK;
    look_up(merges, &s[at], &s[s[at].after]);
    return s[at].rank == NONE ? EMBLA_OK : heap_push(e, s[at].rank, at);
}

/* Merges with a heap. The symbols that are left stay linked by `after`, from symbol 0. A heap entry
 * counts only while the rank of its symbol is still the same. */
static embla_status merge_long(embla_tokenized *e, const embla_merges *merges, size_t count)
{
    embla_symbol *s = e->symbols;
    e->heap_count = 0;
    for (size_t i = 0; i < count; i++) {
        s[i].before = i > 0 ? (uint32_t)i - 1 : NONE;
        s[i].after = i + 1 < count ? (uint32_t)i + 1 : NONE;
    }
    for (size_t i = 0; i < count; i++) EMBLA_TRY(consider(e, merges, (uint32_t)i));
    while (e->heap_count > 0) {
        uint64_t top = heap_pop(e);
        uint32_t at = (uint32_t)top, rank = (uint32_t)(top >> 32), gone = s[at].after;
        if (s[at].rank != rank || gone == NONE) continue;
        s[at].token = (int32_t)s[at].merged;
        s[at].length += s[gone].length;
        s[at].after = s[gone].after;
        s[gone].rank = NONE;
        s[gone].after = NONE;
        if (s[at].after != NONE) s[s[at].after].before = at;
        if (s[at].before != NONE) EMBLA_TRY(consider(e, merges, s[at].before));
        EMBLA_TRY(consider(e, merges, at));
    }
    return EMBLA_OK;
}

embla_status embla_bpe_encode(const embla_tokenizer *t, embla_tokenized *e, const char *word,
                              size_t length)
{
    word_state w = {.t = t, .e = e};
    if (t->bpe.ignore_merges) {
        int32_t whole = embla_trie_find(&t->trie, 0, word, length);
        if (whole >= 0) return embla_unit_add(e, whole, length);
    }
    EMBLA_TRY(embla_bound_add(&e->bound, length + t->bpe.suffix.length));
    EMBLA_TRY(t->byte_level ? symbols_of_bytes(&w, word, length)
                            : symbols_of_characters(&w, word, length));
    EMBLA_TRY(embla_bound_add(&e->bound, w.count));
    if (w.count <= SHORT) {
        size_t left = merge_short(&t->bpe.merges, e->symbols, w.count);
        for (size_t i = 0; i < left; i++)
            EMBLA_TRY(embla_unit_add(e, e->symbols[i].token, e->symbols[i].length));
        return EMBLA_OK;
    }
    EMBLA_TRY(merge_long(e, &t->bpe.merges, w.count));
    for (uint32_t at = 0; at != NONE; at = e->symbols[at].after)
        EMBLA_TRY(embla_unit_add(e, e->symbols[at].token, e->symbols[at].length));
    return EMBLA_OK;
}
