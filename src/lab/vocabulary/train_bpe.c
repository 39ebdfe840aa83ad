/* SPDX-License-Identifier: Apache-2.0 */
/* Learns the merges of byte pair encoding: the most frequent pair of neighbours becomes a token, of
 * equally frequent ones the pair with the lowest tokens, again and again.
 *
 * The merges are those of Hugging Face's BpeTrainer. Two of its habits matter:
 *   - A pair waits in a queue together with the pieces that it is in. Its count may have changed
 *     when it comes up; then it goes back with the new count.
 *   - Two pairs may make the same string. Then the second makes no new token, and pairs with that
 *     token that were in the queue already get a second entry, for the new pieces alone. Such a
 * pair may be merged twice; the later rank counts.
 */
#include <string.h>

#include "base/hash.h"
#include "base/stop.h"
#include "tokenizer/grow.h"
#include "vocabulary/train_pieces.h"

/* A pair of neighbours. */
typedef struct {
    uint64_t key;   /* left << 32 | right */
    int64_t count;  /* in all pieces */
    uint32_t fresh; /* pieces of this step that have it newly */
    uint32_t last;  /* the last of them, + 1 */
    size_t at;      /* where the next of them goes */
    uint32_t rank;  /* of its merge, + 1; 0 means none */
} pair;

/* An entry of the queue. */
typedef struct {
    int64_t count;
    uint64_t key;
    uint32_t step; /* when it was made: of equal entries the older comes first */
    uint32_t index, pieces;
    size_t first; /* its pieces are places[first ..] */
} entry;

typedef struct {
    uint32_t length, count; /* symbols now */
    size_t first;
    int64_t times;
} piece;

typedef struct {
    uint32_t pair, piece;
} found;

typedef struct {
    embla_learned *learned;
    embla_word_list *names; /* the strings of the tokens; the index is the token */
    uint32_t *symbols;
    size_t symbol_room, symbol_count;
    piece *pieces;
    size_t piece_count, piece_room;
    pair *pairs;
    size_t pair_count, pair_room;
    uint32_t *slots; /* index of a pair + 1; 0 means empty */
    size_t slot_count, slot_room;
    entry *queue; /* a heap */
    size_t queue_count, queue_room;
    uint32_t *places;
    size_t place_count, place_room;
    found *news; /* pairs that a step has made */
    size_t new_count, new_room;
    uint32_t step;
} learning;

/* ---- pairs ---- */

static void put_pairs(learning *l)
{
    memset(l->slots, 0, l->slot_count * sizeof *l->slots);
    for (size_t i = 0; i < l->pair_count; i++) {
        size_t at = (size_t)embla_mix64(l->pairs[i].key) & (l->slot_count - 1);
        while (l->slots[at] != 0) at = (at + 1) & (l->slot_count - 1);
        l->slots[at] = (uint32_t)i + 1;
    }
}

static embla_status grow_slots(learning *l)
{
    size_t count = l->slot_count > 0 ? 2 * l->slot_count : 1 << 12;
    EMBLA_TRY(embla_grow(&l->slots, &l->slot_room, 0, count, sizeof *l->slots, "pairs"));
    l->slot_count = count;
    put_pairs(l);
    return EMBLA_OK;
}

static embla_status find_pair(learning *l, uint32_t left, uint32_t right, uint32_t *out)
{
    const uint64_t key = (uint64_t)left << 32 | right;
    if (2 * (l->pair_count + 1) > l->slot_count) EMBLA_TRY(grow_slots(l));
    size_t at = (size_t)embla_mix64(key) & (l->slot_count - 1);
    for (; l->slots[at] != 0; at = (at + 1) & (l->slot_count - 1))
        if (l->pairs[l->slots[at] - 1].key == key) {
            *out = l->slots[at] - 1;
            return EMBLA_OK;
        }
    EMBLA_TRY(embla_grow(&l->pairs, &l->pair_room, l->pair_count, l->pair_count + 1,
                         sizeof *l->pairs, "pairs"));
    l->pairs[l->pair_count] = (pair){.key = key};
    *out = (uint32_t)l->pair_count++;
    l->slots[at] = *out + 1;
    return EMBLA_OK;
}

/* Counts a pair of a piece `times` times; a positive count also notes the piece. */
static embla_status change(learning *l, uint32_t left, uint32_t right, uint32_t where,
                           int64_t times)
{
    uint32_t index = 0;
    EMBLA_TRY(find_pair(l, left, right, &index));
    pair *p = &l->pairs[index];
    p->count += times;
    if (times < 0 || p->last == where + 1) return EMBLA_OK;
    p->last = where + 1;
    p->fresh++;
    EMBLA_TRY(embla_grow(&l->news, &l->new_room, l->new_count, l->new_count + 1, sizeof *l->news,
                         "pairs"));
    l->news[l->new_count++] = (found){index, where};
    return EMBLA_OK;
}

/* ---- queue ---- */

/* Whether a comes before b. */
static bool is_before(const entry *a, const entry *b)
{
    if (a->count != b->count) return a->count > b->count;
    if (a->key != b->key) return a->key < b->key;
    return a->step < b->step;
}

static embla_status push(learning *l, entry e)
{
    EMBLA_TRY(embla_grow(&l->queue, &l->queue_room, l->queue_count, l->queue_count + 1,
                         sizeof *l->queue, "pairs"));
    size_t i = l->queue_count++;
    for (; i > 0 && is_before(&e, &l->queue[(i - 1) / 2]); i = (i - 1) / 2)
        l->queue[i] = l->queue[(i - 1) / 2];
    l->queue[i] = e;
    return EMBLA_OK;
}

/* Puts e at the top, where a place is free, and lets it sink. */
static void sink(learning *l, entry e)
{
    size_t i = 0;
    for (size_t child; (child = 2 * i + 1) < l->queue_count; i = child) {
        if (child + 1 < l->queue_count && is_before(&l->queue[child + 1], &l->queue[child]))
            child++;
        if (!is_before(&l->queue[child], &e)) break;
        l->queue[i] = l->queue[child];
    }
    l->queue[i] = e;
}

/* Takes the most frequent pair. False if there is none. */
static bool pop(learning *l, entry *out)
{
    while (l->queue_count > 0) {
        entry top = l->queue[0];
        int64_t now = l->pairs[top.index].count;
        if (top.count == now || now < 1) {
            if (--l->queue_count > 0) sink(l, l->queue[l->queue_count]);
            if (now < 1) continue;
            *out = top;
            return true;
        }
        top.count = now;
        sink(l, top);
    }
    return false;
}

/* Makes an entry for each pair that a step has made. */
static embla_status queue_news(learning *l)
{
    EMBLA_TRY(embla_grow(&l->places, &l->place_room, l->place_count,
                         l->place_count + l->new_count + 1, sizeof *l->places, "pairs"));
    for (size_t i = 0; i < l->new_count; i++) {
        pair *p = &l->pairs[l->news[i].pair];
        if (p->fresh > 0) { /* the first of its pieces */
            entry e = {.count = p->count,
                       .key = p->key,
                       .step = l->step,
                       .index = l->news[i].pair,
                       .pieces = p->fresh,
                       .first = l->place_count};
            p->at = l->place_count;
            l->place_count += p->fresh;
            p->fresh = 0;
            if (p->count > 0) EMBLA_TRY(push(l, e));
        }
        l->places[p->at++] = l->news[i].piece;
        p->last = 0;
    }
    l->new_count = 0;
    l->step++;
    return EMBLA_OK;
}

/* ---- alphabet ---- */

static embla_status add_token(learning *l, const char *bytes, size_t length, uint32_t *token)
{
    size_t before = 0, after = 0;
    (void)embla_word_list_words(l->names, &before);
    EMBLA_TRY(embla_word_list_add(l->names, bytes, length, 1, true, token));
    (void)embla_word_list_words(l->names, &after);
    return after > before ? embla_learned_add(l->learned, bytes, length) : EMBLA_OK;
}

enum { CODES = 0x110000, TEXT_MOST = 64 };

/* The token of each character, as the first one of a piece and as a later one. */
typedef struct {
    uint32_t tokens[2][CODES];
    uint8_t seen[2][CODES];
} alphabet;

static embla_status add_character(learning *l, uint32_t code, const char *prefix, uint32_t *token)
{
    char text[TEXT_MOST + 4];
    size_t length = 0;
    for (; prefix[length] && length < TEXT_MOST; length++) text[length] = prefix[length];
    return add_token(l, text, length + embla_utf8_encode(code, text + length), token);
}

/* The next character of a piece. */
static uint32_t next_code(const embla_counted_word *word, bool bytes, size_t *at)
{
    size_t length = 1;
    uint32_t code =
        bytes ? embla_byte_code((uint8_t)word->at[*at]) : embla_char_at(word->at + *at, &length);
    *at += length;
    return code;
}

/* Numbers the characters in the order of their code points, then those with a prefix. */
static embla_status number_characters(learning *l, const embla_word_list *list, bool bytes,
                                      const char *prefix, alphabet *a)
{
    size_t count = 0;
    const embla_counted_word *words = embla_word_list_words(list, &count);
    for (unsigned b = 0; bytes && b < 256; b++) a->seen[0][embla_byte_code((uint8_t)b)] = 1;
    for (size_t i = 0; i < count && !(bytes && !*prefix); i++)
        for (size_t at = 0; at < words[i].length;) {
            bool later = at > 0;
            uint32_t code = next_code(&words[i], bytes, &at);
            a->seen[0][code] = 1;
            if (later) a->seen[1][code] = 1;
        }
    for (uint32_t code = 0; code < CODES; code++)
        if (a->seen[0][code]) EMBLA_TRY(add_character(l, code, "", &a->tokens[0][code]));
    if (!*prefix) return EMBLA_OK;
    for (uint32_t code = 0; code < CODES; code++)
        if (a->seen[1][code]) EMBLA_TRY(add_character(l, code, prefix, &a->tokens[1][code]));
    return EMBLA_OK;
}

/* ---- pieces ---- */

/* Writes a piece as symbols, and counts its pairs. */
static embla_status add_piece(learning *l, const embla_counted_word *word, bool bytes,
                              const alphabet *a, bool prefixed)
{
    size_t first = l->symbol_count;
    EMBLA_TRY(embla_grow(&l->symbols, &l->symbol_room, l->symbol_count,
                         l->symbol_count + word->length, sizeof *l->symbols, "pieces"));
    for (size_t at = 0; at < word->length;) {
        bool later = at > 0 && prefixed;
        uint32_t code = next_code(word, bytes, &at);
        l->symbols[l->symbol_count++] = a->tokens[later][code];
    }
    uint32_t count = (uint32_t)(l->symbol_count - first), number = (uint32_t)l->piece_count;
    if (count < 2) {
        l->symbol_count = first;
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_grow(&l->pieces, &l->piece_room, l->piece_count, l->piece_count + 1,
                         sizeof *l->pieces, "pieces"));
    l->pieces[l->piece_count++] = (piece){count, count, first, (int64_t)word->count};
    for (uint32_t i = 0; i + 1 < count; i++)
        EMBLA_TRY(change(l, l->symbols[first + i], l->symbols[first + i + 1], number,
                         (int64_t)word->count));
    return EMBLA_OK;
}

static embla_status add_pieces(learning *l, const embla_word_list *list, bool bytes,
                               const char *prefix)
{
    size_t count = 0;
    void *memory = NULL;
    const embla_counted_word *words = embla_word_list_words(list, &count);
    EMBLA_TRY(embla_mem_new(sizeof(alphabet), "an alphabet", &memory));
    embla_status status = number_characters(l, list, bytes, prefix, memory);
    if (status == EMBLA_OK && count >= UINT32_MAX)
        status = embla_fail(EMBLA_ERR_UNSUPPORTED, "the text has %zu pieces; the limit is %u",
                            count, UINT32_MAX - 1);
    for (size_t i = 0; status == EMBLA_OK && i < count; i++)
        status = add_piece(l, &words[i], bytes, memory, *prefix != '\0');
    embla_mem_free(memory, sizeof(alphabet));
    return status == EMBLA_OK ? queue_news(l) : status;
}

/* ---- merges ---- */

/* Merges a pair in one piece, from the left, and changes the counts of the pairs around it. */
static embla_status merge_piece(learning *l, uint32_t number, uint32_t left, uint32_t right,
                                uint32_t merged)
{
    piece *p = &l->pieces[number];
    uint32_t *s = l->symbols + p->first;
    uint32_t to = 0;
    for (uint32_t from = 0; from < p->count; from++) {
        if (s[from] != left || from + 1 >= p->count || s[from + 1] != right) {
            s[to++] = s[from];
            continue;
        }
        from++;
        if (to > 0) {
            EMBLA_TRY(change(l, s[to - 1], left, number, -p->times));
            EMBLA_TRY(change(l, s[to - 1], merged, number, p->times));
        }
        if (from + 1 < p->count) {
            EMBLA_TRY(change(l, right, s[from + 1], number, -p->times));
            EMBLA_TRY(change(l, merged, s[from + 1], number, p->times));
        }
        s[to++] = merged;
    }
    p->count = to;
    return EMBLA_OK;
}

/* Makes the token of a pair: the second string loses the prefix. */
static embla_status make_token(learning *l, uint64_t key, const char *prefix, uint32_t *token)
{
    const embla_name *a = &l->learned->tokens[key >> 32];
    const embla_name *b = &l->learned->tokens[(uint32_t)key];
    size_t skip = strlen(prefix), length = 0;
    char *text = NULL;
    if (b->length < skip || memcmp(b->bytes, prefix, skip) != 0) skip = 0;
    length = a->length + b->length - skip;
    EMBLA_TRY(embla_arena_many(&l->learned->arena, length, 1, "a token", &text));
    memcpy(text, a->bytes, a->length);
    memcpy(text + a->length, b->bytes + skip, b->length - skip);
    return add_token(l, text, length, token);
}

static embla_status add_merge(learning *l, const entry *top)
{
    embla_learned *out = l->learned;
    EMBLA_TRY(embla_grow(&out->merges, &out->merge_room, out->merge_count, out->merge_count + 1,
                         sizeof *out->merges, "merges"));
    out->merges[out->merge_count][0] = (uint32_t)(top->key >> 32);
    out->merges[out->merge_count][1] = (uint32_t)top->key;
    l->pairs[top->index].rank = (uint32_t)++out->merge_count;
    return EMBLA_OK;
}

static embla_status merge_pairs(learning *l, const char *prefix,
                                const embla_tokenizer_train_options *options)
{
    entry top;
    const size_t size = (size_t)options->max_tokens;
    while (l->learned->count < size && pop(l, &top)) {
        uint32_t merged = 0;
        if (top.count < options->min_count) break;
        if (l->step % 64 == 0)
            EMBLA_TRY(embla_progress_report(options->progress, options->context, "merge",
                                            (int64_t)l->learned->count, options->max_tokens));
        EMBLA_TRY(make_token(l, top.key, prefix, &merged));
        EMBLA_TRY(add_merge(l, &top));
        for (uint32_t i = 0; i < top.pieces; i++)
            EMBLA_TRY(merge_piece(l, l->places[top.first + i], (uint32_t)(top.key >> 32),
                                  (uint32_t)top.key, merged));
        EMBLA_TRY(queue_news(l));
    }
    return embla_progress_report(options->progress, options->context, "merge", options->max_tokens,
                                 options->max_tokens);
}

/* Of a pair that was merged twice the later rank counts. */
static embla_status drop_doubles(learning *l)
{
    embla_learned *out = l->learned;
    size_t kept = 0;
    for (size_t i = 0; i < out->merge_count; i++) {
        uint32_t index = 0;
        EMBLA_TRY(find_pair(l, out->merges[i][0], out->merges[i][1], &index));
        if (l->pairs[index].rank != i + 1) continue;
        memmove(out->merges[kept++], out->merges[i], sizeof out->merges[i]);
    }
    out->merge_count = kept;
    return EMBLA_OK;
}

static embla_status learn(learning *l, const embla_word_list *list, bool bytes, const char *prefix,
                          const embla_tokenizer_train_options *options)
{
    uint32_t token = 0;
    for (size_t i = 0; i < l->learned->count; i++)
        EMBLA_TRY(embla_word_list_add(l->names, l->learned->tokens[i].bytes,
                                      l->learned->tokens[i].length, 1, true, &token));
    EMBLA_TRY(add_pieces(l, list, bytes, prefix));
    if (l->learned->count > (size_t)options->max_tokens)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a vocabulary of %" PRId64
                          " tokens is too small: the special tokens and the characters of the "
                          "text are %zu",
                          options->max_tokens, l->learned->count);
    EMBLA_TRY(merge_pairs(l, prefix, options));
    return drop_doubles(l);
}

embla_status embla_bpe_learn(const embla_word_list *pieces, bool bytes, const char *prefix,
                             const embla_tokenizer_train_options *options, embla_learned *learned)
{
    learning l = {.learned = learned};
    embla_status status = embla_word_list_new(pieces->seed, &l.names);
    if (status == EMBLA_OK) status = learn(&l, pieces, bytes, prefix, options);
    embla_word_list_free(l.names);
    embla_mem_free(l.symbols, l.symbol_room * sizeof *l.symbols);
    embla_mem_free(l.pieces, l.piece_room * sizeof *l.pieces);
    embla_mem_free(l.pairs, l.pair_room * sizeof *l.pairs);
    embla_mem_free(l.slots, l.slot_room * sizeof *l.slots);
    embla_mem_free(l.queue, l.queue_room * sizeof *l.queue);
    embla_mem_free(l.places, l.place_room * sizeof *l.places);
    embla_mem_free(l.news, l.new_room * sizeof *l.news);
    return status;
}
