/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the strings that a Unigram model starts from: every character, and every string of 2 to 16
 * characters that occurs at least twice in the different pieces of a text, with different
 * characters (or the end of a piece) after it. These are the inner nodes of a suffix tree; a longer
 * string that is always continued in the same way stands for its beginnings.
 *
 * The suffixes of all pieces are sorted by their first 17 characters. Then strings that share a
 * prefix are neighbours, and one pass with a stack finds all of them with their counts. As in
 * Hugging Face's library, a string counts once for each place in the different pieces, however
 * often a piece occurs; a character counts as often as it is in the text.
 */
#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "base/threads.h"
#include "base/utf8.h"
#include "tokenizer/grow.h"
#include "vocabulary/train_pieces.h"

enum {
    CODES = 0x110000,
    DEPTH = EMBLA_SEED_CHARS + 1, /* characters that are compared */
    SMALL = 12                    /* ranges that are sorted by insertion */
};

/* A string: `length` characters of the text, and its rank among the seeds. */
typedef struct {
    uint64_t score;
    uint32_t at, length;
} node;

typedef struct {
    uint32_t *codes; /* the pieces, each with a 0 after it */
    size_t count, room;
    uint32_t *suffixes; /* places in codes, sorted */
    size_t suffix_count, suffix_room;
    uint64_t *times; /* by code point: how often it is in the text */
    size_t *starts;  /* by code point: the first suffix that begins with it */
    node *nodes;
    size_t node_count, node_room;
} seeding;

/* ---- the text ---- */

static embla_status read_pieces(seeding *s, const embla_counted_word *words, size_t count)
{
    size_t bytes = 0;
    for (size_t i = 0; i < count; i++) bytes += (size_t)words[i].length + 1;
    if (bytes >= UINT32_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the different pieces of the text have %zu bytes; the limit is %u", bytes,
                          UINT32_MAX - 1);
    EMBLA_TRY(embla_grow(&s->codes, &s->room, 0, bytes + 1, sizeof *s->codes, "pieces"));
    for (size_t i = 0; i < count; i++) {
        for (size_t at = 0, length = 0; at < words[i].length; at += length) {
            uint32_t code = embla_char_at(words[i].at + at, &length);
            s->codes[s->count++] = code;
            s->times[code] += words[i].count;
        }
        s->codes[s->count++] = 0;
    }
    return EMBLA_OK;
}

/* Puts the suffixes into the order of their first characters. */
static embla_status begin_suffixes(seeding *s)
{
    size_t total = 0;
    for (size_t i = 0; i < s->count; i++) s->starts[s->codes[i]]++;
    s->starts[0] = 0; /* no string begins with the end of a piece */
    for (size_t code = 0; code < CODES; code++) {
        size_t here = s->starts[code];
        s->starts[code] = total;
        total += here;
    }
    s->starts[CODES] = total;
    EMBLA_TRY(embla_grow(&s->suffixes, &s->suffix_room, 0, total + 1, sizeof *s->suffixes,
                         "the suffixes of pieces"));
    for (size_t i = 0; i < s->count; i++)
        if (s->codes[i] != 0) s->suffixes[s->starts[s->codes[i]]++] = (uint32_t)i;
    for (size_t code = CODES; code > 0; code--) s->starts[code] = s->starts[code - 1];
    s->starts[0] = 0;
    s->suffix_count = total;
    return EMBLA_OK;
}

/* ---- sorting ---- */

/* The characters that two suffixes share, a common end included. */
static size_t shared(const uint32_t *a, const uint32_t *b, size_t from)
{
    size_t n = from;
    while (n < DEPTH && a[n] == b[n]) {
        n++;
        if (a[n - 1] == 0) break;
    }
    return n;
}

static bool is_before(const uint32_t *a, const uint32_t *b, size_t depth)
{
    size_t n = shared(a, b, depth);
    if (n > depth && a[n - 1] == 0) return false; /* both have ended */
    return n < DEPTH && a[n] < b[n];
}

static void insert_sort(const uint32_t *codes, uint32_t *list, size_t count, size_t depth)
{
    for (size_t i = 1; i < count; i++) {
        uint32_t item = list[i];
        size_t at = i;
        for (; at > 0 && is_before(codes + item, codes + list[at - 1], depth); at--)
            list[at] = list[at - 1];
        list[at] = item;
    }
}

static uint32_t middle(uint32_t a, uint32_t b, uint32_t c)
{
    if (a < b) return b < c ? b : a < c ? c : a;
    return a < c ? a : b < c ? c : b;
}

typedef struct {
    uint32_t begin, end, depth;
} range;

/* Cuts a range into those below, at and above the pivot; *low and *high are where the middle part
 * begins and ends. */
static uint32_t cut_range(const uint32_t *codes, uint32_t *list, range r, uint32_t *low,
                          uint32_t *high)
{
    const uint32_t *at = codes + r.depth;
    uint32_t pivot =
        middle(at[list[r.begin]], at[list[r.begin + (r.end - r.begin) / 2]], at[list[r.end - 1]]);
    uint32_t i = r.begin;
    *low = r.begin;
    *high = r.end;
    while (i < *high) {
        uint32_t item = list[i], code = at[item];
        if (code < pivot) {
            list[i++] = list[*low];
            list[(*low)++] = item;
        } else if (code > pivot) {
            list[i] = list[--*high];
            list[*high] = item;
        } else {
            i++;
        }
    }
    return pivot;
}

/* Sorts suffixes that share their first character: quicksort by one character at a time. Of the
 * ranges that remain the largest waits longest, so the stack stays small. */
static void sort_range(const uint32_t *codes, uint32_t *list, size_t count)
{
    range stack[3 * 64 + DEPTH];
    size_t open = 0;
    stack[open++] = (range){0, (uint32_t)count, 1};
    while (open > 0) {
        range r = stack[--open];
        uint32_t low = 0, high = 0;
        if (r.end - r.begin <= SMALL || r.depth >= DEPTH) {
            if (r.depth < DEPTH) insert_sort(codes, list + r.begin, r.end - r.begin, r.depth);
            continue;
        }
        uint32_t pivot = cut_range(codes, list, r, &low, &high);
        range parts[3] = {
            {r.begin, low, r.depth}, {high, r.end, r.depth}, {low, high, r.depth + 1}};
        if (pivot == 0) parts[2].end = parts[2].begin; /* these have ended: they are equal */
        for (int i = 0; i < 2; i++)                    /* the largest first */
            for (int j = 2; j > i; j--)
                if (parts[j].end - parts[j].begin > parts[j - 1].end - parts[j - 1].begin) {
                    range other = parts[j];
                    parts[j] = parts[j - 1];
                    parts[j - 1] = other;
                }
        for (int i = 0; i < 3; i++)
            if (parts[i].end - parts[i].begin > 1) stack[open++] = parts[i];
    }
}

/* The indices are code points; no suffix begins with 0. */
static embla_status sort_suffixes(void *job, size_t first, size_t end, size_t slot)
{
    const seeding *s = job;
    (void)slot;
    for (size_t code = first; code < end; code++)
        if (s->starts[code + 1] - s->starts[code] > 1)
            sort_range(s->codes, s->suffixes + s->starts[code],
                       s->starts[code + 1] - s->starts[code]);
    return EMBLA_OK;
}

/* ---- strings ---- */

static embla_status add_node(seeding *s, size_t depth, uint32_t at, size_t times, int64_t least)
{
    if (depth < 2 || depth > EMBLA_SEED_CHARS || s->codes[at + depth - 1] == 0) return EMBLA_OK;
    if ((int64_t)times < least) return EMBLA_OK;
    EMBLA_TRY(embla_grow(&s->nodes, &s->node_room, s->node_count, s->node_count + 1,
                         sizeof *s->nodes, "strings"));
    s->nodes[s->node_count++] = (node){(uint64_t)times * depth, at, (uint32_t)depth};
    return EMBLA_OK;
}

/* Finds the strings that neighbours in the list share. An open string is on the stack: how many
 * characters it has, and the first suffix that begins with it. */
static embla_status find_nodes(seeding *s, int64_t least)
{
    struct {
        size_t depth, first;
    } stack[DEPTH + 1];
    size_t open = 0;
    for (size_t i = 1; i <= s->suffix_count; i++) {
        size_t first = i - 1;
        size_t same = i < s->suffix_count
                          ? shared(s->codes + s->suffixes[i - 1], s->codes + s->suffixes[i], 0)
                          : 0;
        while (open > 0 && stack[open - 1].depth > same) {
            open--;
            first = stack[open].first;
            EMBLA_TRY(add_node(s, stack[open].depth, s->suffixes[first], i - first, least));
        }
        if (same > 0 && (open == 0 || stack[open - 1].depth < same)) {
            stack[open].depth = same;
            stack[open++].first = first;
        }
    }
    return EMBLA_OK;
}

/* ---- ranks ---- */

typedef struct {
    uint64_t score;
    const uint32_t *at;
    uint32_t length;
} ranked;

/* The highest score first, of equal ones the string that is later in the alphabet. */
static int by_score(const void *left, const void *right)
{
    const ranked *a = left, *b = right;
    size_t n = 0;
    if (a->score != b->score) return a->score > b->score ? -1 : 1;
    while (n < a->length && n < b->length && a->at[n] == b->at[n]) n++;
    if (n < a->length && n < b->length) return a->at[n] > b->at[n] ? -1 : 1;
    return a->length > b->length ? -1 : a->length < b->length;
}

static embla_status add_seed(embla_seeds *seeds, const ranked *r)
{
    char text[4 * EMBLA_SEED_CHARS];
    const char *copy = NULL;
    size_t length = 0;
    for (uint32_t i = 0; i < r->length; i++) length += embla_utf8_encode(r->at[i], text + length);
    EMBLA_TRY(embla_grow(&seeds->items, &seeds->room, seeds->count, seeds->count + 1,
                         sizeof *seeds->items, "strings"));
    EMBLA_TRY(embla_arena_text(&seeds->arena, text, length, &copy));
    seeds->items[seeds->count++] = (embla_seed){copy, (uint32_t)length, (double)r->score};
    return EMBLA_OK;
}

static embla_status add_ranked(embla_seeds *seeds, ranked *list, size_t count)
{
    if (count > 1) qsort(list, count, sizeof *list, by_score);
    for (size_t i = 0; i < count && (i == 0 || seeds->count < EMBLA_SEEDS_MOST); i++)
        EMBLA_TRY(add_seed(seeds, &list[i]));
    return EMBLA_OK;
}

/* Characters come first, whatever their counts. */
static embla_status rank_all(const seeding *s, embla_seeds *seeds)
{
    uint32_t *characters = NULL;
    ranked *list = NULL;
    size_t room = 0, character_room = 0, count = 0;
    for (size_t code = 1; code < CODES; code++) count += s->times[code] > 0;
    seeds->characters = count;
    EMBLA_TRY(
        embla_grow(&characters, &character_room, 0, count + 1, sizeof *characters, "characters"));
    size_t need = count > s->node_count ? count : s->node_count;
    embla_status status = embla_grow(&list, &room, 0, need + 1, sizeof *list, "strings");
    if (status == EMBLA_OK) {
        count = 0;
        for (uint32_t code = 1; code < CODES; code++) {
            if (s->times[code] == 0) continue;
            characters[count] = code;
            list[count] = (ranked){s->times[code], &characters[count], 1};
            count++;
        }
        status = add_ranked(seeds, list, count);
    }
    for (size_t i = 0; status == EMBLA_OK && i < s->node_count; i++)
        list[i] = (ranked){s->nodes[i].score, s->codes + s->nodes[i].at, s->nodes[i].length};
    if (status == EMBLA_OK) status = add_ranked(seeds, list, s->node_count);
    embla_mem_free(list, room * sizeof *list);
    embla_mem_free(characters, character_room * sizeof *characters);
    return status;
}

/* ---- all of it ---- */

static embla_status make(seeding *s, const embla_counted_word *words, size_t count,
                         const embla_tokenizer_train_options *options, embla_seeds *seeds)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(CODES * sizeof *s->times, "an alphabet", &memory));
    s->times = memory;
    EMBLA_TRY(embla_mem_new((CODES + 1) * sizeof *s->starts, "an alphabet", &memory));
    s->starts = memory;
    EMBLA_TRY(read_pieces(s, words, count));
    EMBLA_TRY(begin_suffixes(s));
    int threads = embla_threads_for(options->threads, s->suffix_count * 64);
    EMBLA_TRY(embla_share(threads, CODES, 64, sort_suffixes, s));
    EMBLA_TRY(find_nodes(s, options->min_count));
    return rank_all(s, seeds);
}

embla_status embla_seeds_make(const embla_counted_word *words, size_t count,
                              const embla_tokenizer_train_options *options, embla_seeds *seeds)
{
    seeding s = {.count = 0};
    embla_status status = make(&s, words, count, options, seeds);
    embla_mem_free(s.codes, s.room * sizeof *s.codes);
    embla_mem_free(s.suffixes, s.suffix_room * sizeof *s.suffixes);
    embla_mem_free(s.times, s.times ? CODES * sizeof *s.times : 0);
    embla_mem_free(s.starts, s.starts ? (CODES + 1) * sizeof *s.starts : 0);
    embla_mem_free(s.nodes, s.node_room * sizeof *s.nodes);
    return status;
}

void embla_seeds_free(embla_seeds *seeds)
{
    embla_mem_free(seeds->items, seeds->room * sizeof *seeds->items);
    embla_arena_free(&seeds->arena);
    *seeds = (embla_seeds){0};
}
