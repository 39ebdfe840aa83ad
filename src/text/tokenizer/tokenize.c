/* SPDX-License-Identifier: Apache-2.0 */
/* Takes a text through a tokenizer: added tokens are cut out, the rest is normalized, cut into
 * pieces, and given to the model word by word.
 *
 * Most words occur again and again, so each embla_tokenized keeps a table of short words and their
 * tokens: one cache line for a word, and a new word replaces the one that had its line.
 */
#include "tokenizer/tokenize.h"

#include <string.h>

#include "base/hash.h"
#include "base/options.h"
#include "base/threads.h"

/* ---- the struct ---- */

embla_status embla_tokenized_new(const embla_tokenizer *tokenizer, embla_tokenized **out)
{
    void *memory = NULL;
    EMBLA_NEED(tokenizer);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_mem_new(sizeof(embla_tokenized), "the tokens of a text", &memory));
    *out = memory;
    embla_tokenized *e = *out;
    e->tokenizer = tokenizer;
    e->valid.bound = &e->bound;
    for (int i = 0; i < 2; i++)
        e->strands[i].bound = e->spaced[i].bound = e->decoded[i].bound = &e->bound;
    return EMBLA_OK;
}

static void free_list(void *items, size_t room, size_t item_bytes)
{
    embla_mem_free(items, room * item_bytes);
}

void embla_tokenized_free(embla_tokenized *tokenized)
{
    embla_tokenized *e = tokenized;
    if (!e) return;
    for (size_t i = 0; i < e->worker_count; i++) { /* workers have no workers */
        embla_tokenized *w = e->workers[i];
        e->workers[i] = NULL;
        if (w) embla_tokenized_free(w); /* NOLINT(misc-no-recursion): one level deep */
    }
    free_list(e->workers, e->worker_room, sizeof(void *));
    free_list(e->tokens, e->token_room, sizeof *e->tokens);
    free_list(e->offsets, e->offset_room, sizeof *e->offsets);
    free_list(e->special, e->special_room, sizeof *e->special);
    free_list(e->types, e->type_room, sizeof *e->types);
    free_list(e->sides, e->side_room, sizeof *e->sides);
    free_list(e->starts, e->start_room, sizeof *e->starts);
    embla_strand_free(&e->valid);
    for (int i = 0; i < 2; i++) {
        embla_strand_free(&e->strands[i]);
        embla_strand_free(&e->spaced[i]);
        embla_strand_free(&e->decoded[i]);
        free_list(e->pieces[i], e->piece_room[i], sizeof *e->pieces[i]);
    }
    free_list(e->moved, e->moved_room, sizeof *e->moved);
    free_list(e->moved_spare, e->spare_room, sizeof *e->moved_spare);
    free_list(e->symbols, e->symbol_room, sizeof *e->symbols);
    free_list(e->heap, e->heap_room, sizeof *e->heap);
    free_list(e->paths, e->path_room, sizeof *e->paths);
    free_list(e->units, e->unit_room, sizeof *e->units);
    free_list(e->word, e->word_room, sizeof *e->word);
    free_list(e->sums, e->sum_room, sizeof *e->sums);
    free_list(e->cache, e->cache ? EMBLA_CACHE_SLOTS : 0, sizeof *e->cache);
    embla_mem_free(e, sizeof *e);
}

embla_status embla_tokenized_room(embla_tokenized *e, size_t more)
{
    size_t need = e->count + more;
    EMBLA_TRY(embla_grow(&e->tokens, &e->token_room, e->count, need, sizeof *e->tokens, "tokens"));
    EMBLA_TRY(
        embla_grow(&e->special, &e->special_room, e->count, e->token_room, 1, "a mask of tokens"));
    if (e->pair) {
        size_t used = e->count < e->side_room ? e->count : e->side_room;
        EMBLA_TRY(embla_grow(&e->types, &e->type_room, used, e->token_room, 1, "type ids"));
        EMBLA_TRY(embla_grow(&e->sides, &e->side_room, used, e->token_room, 1, "texts"));
    }
    if (!e->options.offsets) return EMBLA_OK;
    return embla_grow(&e->offsets, &e->offset_room, e->count, e->token_room, sizeof *e->offsets,
                      "offsets of tokens");
}

/* ---- words ---- */

embla_status embla_unit_add(embla_tokenized *e, int32_t token, size_t length)
{
    if (e->unit_count == e->unit_room)
        EMBLA_TRY(embla_grow(&e->units, &e->unit_room, e->unit_count, e->unit_count + 1,
                             sizeof *e->units, "tokens of a word"));
    e->units[e->unit_count++] = (embla_unit){token, (uint32_t)length};
    return EMBLA_OK;
}

/* Appends a token that takes bytes begin to end - 1 of the view. */
static inline void append(embla_tokenized *e, const embla_view *view, int32_t token, size_t begin,
                          size_t end)
{
    e->tokens[e->count] = token;
    e->special[e->count] = 0;
    if (e->options.offsets)
        e->offsets[e->count] =
            (embla_text_span){view->spans[begin].begin, view->spans[end - 1].end};
    e->count++;
}

/* Where the units of a word are in the view. Lengths may not add up to the word where characters
 * were dropped; they never pass its end. */
typedef struct {
    size_t begin, end, limit;
} place;

static inline void advance(place *at, size_t length)
{
    if (length == 0) return; /* the same bytes as before */
    at->begin = at->end < at->limit ? at->end : at->limit - 1;
    at->end = at->begin + length < at->limit ? at->begin + length : at->limit;
}

static embla_status append_units(embla_tokenized *e, const embla_view *view, size_t begin,
                                 size_t end)
{
    place at = {begin, begin, end};
    if (e->count + e->unit_count > e->token_room) EMBLA_TRY(embla_tokenized_room(e, e->unit_count));
    for (size_t i = 0; i < e->unit_count; i++) {
        advance(&at, e->units[i].length);
        append(e, view, e->units[i].token, at.begin, at.end);
    }
    return EMBLA_OK;
}

static embla_status run_model(embla_tokenized *e, const char *word, size_t length)
{
    const embla_tokenizer *t = e->tokenizer;
    e->unit_count = 0;
    e->bound.stage = "the model";
    switch (t->kind) {
    case EMBLA_TOKENIZER_BPE:
        return embla_bpe_encode(t, e, word, length);
    case EMBLA_TOKENIZER_UNIGRAM:
        return embla_unigram_encode(t, e, word, length);
    case EMBLA_TOKENIZER_WORDPIECE:
        return embla_wordpiece_encode(t, e, word, length);
    case EMBLA_TOKENIZER_WORDS:
        return embla_words_encode(t, e, word, length);
    default:
        return embla_wordlevel_encode(t, e, word, length);
    }
}

/* ---- the cache ---- */

/* In the last word of a key: byte 6 is the number of units, byte 7 the length + 1. */
#define COUNT_SHIFT 48
#define COUNT_BITS  (UINT64_C(255) << COUNT_SHIFT)

static inline uint64_t keep_bytes(uint64_t word, size_t length, size_t skip)
{
    if (length >= skip + 8) return word;
    return length <= skip ? 0 : word & ((UINT64_C(1) << (8 * (length - skip))) - 1);
}

/* Loads a word of at most EMBLA_CACHED_BYTES bytes, with zeros after it. */
static inline void load_key(const embla_view *view, size_t begin, size_t length, uint64_t key[3])
{
#if __BYTE_ORDER__ == __ORDER_LITTLE_ENDIAN__
    if (begin + 24 <= view->count) {
        memcpy(key, view->bytes + begin, 24);
        key[0] = keep_bytes(key[0], length, 0);
        key[1] = keep_bytes(key[1], length, 8);
        key[2] = keep_bytes(key[2], length, 16);
        key[2] |= (uint64_t)(length + 1) << 56;
        return;
    }
#endif
    key[0] = key[1] = key[2] = 0;
    memcpy(key, view->bytes + begin, length);
    key[2] |= (uint64_t)(length + 1) << 56;
}

static inline embla_cached *find_slot(const embla_tokenized *e, const uint64_t key[3])
{
    uint64_t x = key[0] ^ key[1] * UINT64_C(0xBF58476D1CE4E5B9) ^ key[2] * EMBLA_GOLDEN;
    x = (x ^ x >> 32) * EMBLA_GOLDEN;
    return &e->cache[x >> 32 & (EMBLA_CACHE_SLOTS - 1)];
}

static void store(embla_tokenized *e, embla_cached *slot, const uint64_t key[3])
{
    const embla_unit *units = e->units;
    const size_t count = e->unit_count;
    if (count > EMBLA_CACHED_UNITS) return;
    memcpy(slot->key, key, sizeof slot->key);
    slot->key[2] |= (uint64_t)count << COUNT_SHIFT;
    for (size_t i = 0; i < count; i++) {
        slot->tokens[i] = units[i].token;
        slot->lengths[i] = (uint8_t)units[i].length;
    }
}

static inline embla_status append_cached(embla_tokenized *e, const embla_view *view,
                                         const embla_cached *slot, size_t begin, size_t end)
{
    size_t count = (size_t)(slot->key[2] >> COUNT_SHIFT & 255);
    if (e->count + count > e->token_room) EMBLA_TRY(embla_tokenized_room(e, count));
    if (!e->options.offsets) {
        for (size_t i = 0; i < count; i++) {
            e->tokens[e->count] = slot->tokens[i];
            e->special[e->count++] = 0;
        }
        return EMBLA_OK;
    }
    place at = {begin, begin, end};
    for (size_t i = 0; i < count; i++) {
        advance(&at, slot->lengths[i]);
        append(e, view, slot->tokens[i], at.begin, at.end);
    }
    return EMBLA_OK;
}

static embla_status encode_word(embla_tokenized *e, const embla_view *view, size_t begin,
                                size_t end)
{
    uint64_t key[3];
    size_t length = end - begin;
    if (length > EMBLA_CACHED_BYTES) {
        EMBLA_TRY(run_model(e, view->bytes + begin, length));
        return append_units(e, view, begin, end);
    }
    load_key(view, begin, length, key);
    embla_cached *slot = find_slot(e, key);
    if (slot->key[0] == key[0] && slot->key[1] == key[1] && (slot->key[2] & ~COUNT_BITS) == key[2])
        return append_cached(e, view, slot, begin, end);
    EMBLA_TRY(run_model(e, view->bytes + begin, length));
    store(e, slot, key);
    return append_units(e, view, begin, end);
}

/* A piece of a tokenizer whose merges never cross the beginning of a "▁" (merges.c): its words are
 * encoded one by one. */
static embla_status encode_marked(embla_tokenized *e, const embla_view *view, size_t begin,
                                  size_t end)
{
    size_t last = begin, at = begin;
    while (at < end) {
        const char *hit = memchr(view->bytes + at, '\xe2', end - at);
        if (!hit) break;
        at = (size_t)(hit - view->bytes);
        bool mark = end - at >= 3 && hit[1] == '\x96' && hit[2] == '\x81';
        bool after = at - last >= 3 && memcmp(hit - 3, "\xe2\x96\x81", 3) == 0;
        if (mark && at > last && !after) {
            EMBLA_TRY(encode_word(e, view, last, at));
            last = at;
        }
        at += mark ? 3 : 1;
    }
    return last < end ? encode_word(e, view, last, end) : EMBLA_OK;
}

/* ---- texts ---- */

static embla_status encode_pieces(embla_tokenized *e, embla_view view)
{
    const embla_tokenizer *t = e->tokenizer;
    bool marked = t->kind == EMBLA_TOKENIZER_BPE && t->bpe.cuts_at_marks;
    embla_view text;
    int list = 0;
    if (view.count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_pretokenize(t, e, view, &text, &list));
    EMBLA_TRY(embla_bound_make(&e->bound, text.count));
    const embla_text_span *pieces = e->pieces[list];
    for (size_t i = 0; i < e->piece_count[list]; i++) {
        EMBLA_TRY(embla_bound_piece(&e->bound, i));
        EMBLA_TRY(marked ? encode_marked(e, &text, pieces[i].begin, pieces[i].end)
                         : encode_word(e, &text, pieces[i].begin, pieces[i].end));
    }
    return EMBLA_OK;
}

static embla_view part_of(embla_view view, size_t from, size_t to)
{
    return (embla_view){view.bytes + from, to - from, view.spans ? view.spans + from : NULL};
}

typedef embla_status part_encoder(embla_tokenized *e, embla_view view);

/* Cuts a view at added tokens, and encodes what lies between them. */
static embla_status cut(embla_tokenized *e, const embla_matcher *matcher, embla_view view,
                        part_encoder *encode)
{
    size_t at = 0, last = 0, begin = 0, end = 0;
    for (;;) {
        const embla_added *found = NULL;
        EMBLA_TRY(embla_added_next(e, matcher, view, last, &at, &found, &begin, &end));
        if (!found) break;
        if (begin > last) EMBLA_TRY(encode(e, part_of(view, last, begin)));
        EMBLA_TRY(embla_tokenized_room(e, 1));
        append(e, &view, (int32_t)found->content.number, begin, end);
        last = end;
    }
    return last < view.count ? encode(e, part_of(view, last, view.count)) : EMBLA_OK;
}

static embla_status encode_part(embla_tokenized *e, embla_view view)
{
    embla_view normal;
    EMBLA_TRY(embla_normalize_text(e->tokenizer, e, view, &normal));
    return cut(e, &e->tokenizer->normalized, normal, encode_pieces);
}

embla_status embla_tokenize_text(embla_tokenized *e, const char *text, size_t length)
{
    embla_view view = {text, length, NULL};
    bool spans = e->options.offsets || e->tokenizer->need_spans;
    if (length > INT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the text has %zu bytes; the limit is %d", length,
                          INT32_MAX);
    embla_bound_begin(&e->bound, e->tokenizer->name, "a text", length);
    size_t valid = length > 0 ? embla_utf8_valid(text, length) : 0;
    if (valid < length && e->options.strict)
        return embla_fail(EMBLA_ERR_FORMAT, "byte %zu of %zu is not valid UTF-8", valid, length);
    if (valid < length || spans) {
        EMBLA_TRY(embla_strand_valid(&e->valid, text, length, spans));
        view = embla_strand_view(&e->valid);
    }
    EMBLA_TRY(embla_tokenized_room(e, length / 8));
    return length > 0 ? cut(e, &e->tokenizer->raw, view, encode_part) : EMBLA_OK;
}

embla_status embla_tokenize_one(embla_tokenized *e, const char *text, size_t length)
{
    size_t first = e->count;
    EMBLA_TRY(embla_tokenize_text(e, text, length));
    return embla_post_process(e, text, first);
}

embla_status embla_tokenize_begin(embla_tokenized *e, const embla_tokenize_options *options)
{
    void *memory = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (options) EMBLA_TRY(embla_threads_check(options->threads));
    EMBLA_TRY(embla_tokenizer_check(e->tokenizer));
    e->count = e->cut = e->texts = 0;
    e->pair = false;
    e->options = options ? *options : (embla_tokenize_options){0};
    embla_watch_begin(&e->watch, e->options.progress, e->options.context, "tokens");
    e->bound.watch = e->options.progress ? &e->watch : NULL;
    e->bound.caller = true;
    if (!e->cache) {
        EMBLA_TRY(embla_mem_new(EMBLA_CACHE_SLOTS * sizeof *e->cache, "a cache of words", &memory));
        e->cache = memory;
    }
    return EMBLA_OK;
}

embla_status embla_tokenize_end(embla_tokenized *e, embla_status status)
{
    if (status == EMBLA_OK) status = embla_tokenizer_check(e->tokenizer);
    if (status != EMBLA_OK) e->count = e->cut = 0;
    e->texts = 1;
    e->starts[0] = 0;
    e->starts[1] = e->count;
    return status;
}

embla_status embla_tokenize(embla_tokenized *tokenized, const char *text, size_t length,
                            const embla_tokenize_options *options)
{
    embla_tokenized *e = tokenized;
    if (!e || (!text && length > 0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_tokenize: %s is NULL",
                          e ? "text" : "tokenized");
    EMBLA_TRY(embla_tokenize_begin(e, options));
    EMBLA_TRY(embla_grow(&e->starts, &e->start_room, 0, 2, sizeof *e->starts, "a text"));
    e->watch.total = (int64_t)length;
    return embla_tokenize_end(e, embla_tokenize_one(e, text, length));
}

/* ---- results ---- */

size_t embla_tokenized_count(const embla_tokenized *tokenized)
{
    return tokenized ? tokenized->count : 0;
}

const int32_t *embla_tokenized_tokens(const embla_tokenized *tokenized)
{
    return tokenized ? tokenized->tokens : NULL;
}

const embla_text_span *embla_tokenized_offsets(const embla_tokenized *tokenized)
{
    return tokenized && tokenized->options.offsets ? tokenized->offsets : NULL;
}

const uint8_t *embla_tokenized_special(const embla_tokenized *tokenized)
{
    return tokenized ? tokenized->special : NULL;
}

const size_t *embla_tokenized_starts(const embla_tokenized *tokenized)
{
    return tokenized ? tokenized->starts : NULL;
}

size_t embla_tokenized_cut(const embla_tokenized *tokenized)
{
    return tokenized ? tokenized->cut : 0;
}
