/* SPDX-License-Identifier: Apache-2.0 */
/* SentencePiece's map of characters (the normalizer Precompiled): a double array in the layout of
 * Darts-clone, whose leaves are offsets of strings.
 *
 *   u32 bytes of the array, the array of u32 (both little-endian), the strings, each ended by a 0
 *
 * Hugging Face's library does not apply it as SentencePiece does. It goes through extended grapheme
 * clusters: one of fewer than 6 bytes is replaced as a whole by the string of its shortest prefix
 * that has one; otherwise each character is looked up alone. Clusters under 6 bytes need only a few
 * of the rules of Unicode's annex 29.
 */
#include <string.h>

#include "base/base64.h"
#include "files/cursor.h"
#include "tokenizer/tokenize.h"

enum { SHORT_CLUSTER = 6 };

static uint32_t offset_of(uint32_t unit)
{
    return (unit >> 10) << ((unit & 0x200) >> 6);
}

/* The string for the shortest prefix of key that has one; NULL if there is none. */
static const char *find(const embla_charsmap *map, const char *key, size_t length)
{
    size_t at = map->count > 0 ? offset_of(map->units[0]) : 0;
    for (size_t i = 0; i < length; i++) {
        uint8_t b = (uint8_t)key[i];
        at ^= b;
        if (b == 0 || at >= map->count || (map->units[at] & 0x800000ffu) != b) return NULL;
        uint32_t unit = map->units[at];
        at ^= offset_of(unit);
        if (unit >> 8 & 1) {
            if (at >= map->count) return NULL;
            uint32_t value = map->units[at] & 0x7fffffffu;
            return value < map->pool_bytes ? map->pool + value : NULL;
        }
    }
    return NULL;
}

const char *embla_charsmap_longest(const embla_charsmap *map, const char *key, size_t length,
                                   size_t *used, size_t *steps)
{
    size_t at = map->count > 0 ? offset_of(map->units[0]) : 0;
    const char *best = NULL;
    for (size_t i = 0; i < length; i++) {
        *steps = i + 1;
        uint8_t b = (uint8_t)key[i];
        at ^= b;
        if (b == 0 || at >= map->count || (map->units[at] & 0x800000ffu) != b) break;
        uint32_t unit = map->units[at];
        at ^= offset_of(unit);
        if (!(unit >> 8 & 1) || at >= map->count) continue;
        uint32_t value = map->units[at] & 0x7fffffffu;
        if (value >= map->pool_bytes) continue;
        /* a hostile map may have half a character: the rest of it would be no UTF-8 */
        if (i + 1 < length && ((uint8_t)key[i + 1] & 0xc0) == 0x80) continue;
        best = map->pool + value;
        *used = i + 1;
    }
    return best;
}

/* ---- reading ---- */

embla_status embla_charsmap_read(embla_tokenizer *t, const uint8_t *bytes, size_t length,
                                 embla_charsmap *out)
{
    uint32_t *units = NULL;
    *out = (embla_charsmap){0};
    if (length == 0) return EMBLA_OK; /* changes nothing */
    uint32_t size = length >= 4 ? embla_le32(bytes) : 0;
    if (length < 4 || size > length - 4 || size % 4 != 0 || size == 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the map of characters has %zu bytes and says that %" PRIu32
                          " of them are its trie",
                          t->name, length, size);
    if (length - 4 > size && bytes[length - 1] != 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: the last of the %zu bytes of the map of characters is not 0",
                          t->name, length);
    EMBLA_TRY(embla_arena_many(&t->arena, size / 4, sizeof *units, "a map of characters", &units));
    for (size_t i = 0; i < size / 4; i++) units[i] = embla_le32(bytes + 4 + i * 4);
    EMBLA_TRY(embla_arena_text(&t->arena, bytes + 4 + size, length - 4 - size, &out->pool));
    out->units = units;
    out->count = size / 4;
    out->pool_bytes = length - 4 - size;
    for (int c = 0; c < 128; c++) {
        char key = (char)c;
        out->plain[c] = c != '\r' && !find(out, &key, 1);
    }
    return EMBLA_OK;
}

embla_status embla_charsmap_parse(embla_tokenizer *t, const char *text, size_t length,
                                  embla_charsmap *out)
{
    void *bytes = NULL;
    size_t count = 0, room = length / 4 * 3 + 3;
    EMBLA_TRY(embla_mem_new(room, "a map of characters", &bytes));
    embla_status status = EMBLA_OK;
    if (embla_base64_decode(text, length, bytes, &count))
        status = embla_charsmap_read(t, bytes, count, out);
    else
        status =
            embla_fail(EMBLA_ERR_FORMAT, "%.256s: precompiled_charsmap, %zu bytes, is not base64",
                       t->name, length);
    embla_mem_free(bytes, room);
    return status;
}

/* ---- clusters ---- */

static bool is_control(uint32_t c)
{
    return c < 32 || (c >= 0x7f && c < 0xa0) || c == 0xad || c == 0x61c || c == 0x180e ||
           c == 0x200b || c == 0x200e || c == 0x200f || c == 0xfeff ||
           (c >= 0x2028 && c <= 0x202e) || (c >= 0x2060 && c <= 0x206f) ||
           (c >= 0xfff0 && c <= 0xfffb) || (c >= 0xe0000 && c <= 0xe001f);
}

enum { HANGUL_NONE, HANGUL_L, HANGUL_V, HANGUL_T, HANGUL_LV, HANGUL_LVT };

static int hangul(uint32_t c)
{
    if ((c >= 0x1100 && c <= 0x115f) || (c >= 0xa960 && c <= 0xa97c)) return HANGUL_L;
    if ((c >= 0x1160 && c <= 0x11a7) || (c >= 0xd7b0 && c <= 0xd7c6)) return HANGUL_V;
    if ((c >= 0x11a8 && c <= 0x11ff) || (c >= 0xd7cb && c <= 0xd7fb)) return HANGUL_T;
    if (c >= 0xac00 && c <= 0xd7a3) return (c - 0xac00) % 28 == 0 ? HANGUL_LV : HANGUL_LVT;
    return HANGUL_NONE;
}

static bool hangul_joins(int a, int b)
{
    if (a == HANGUL_L) return b == HANGUL_L || b == HANGUL_V || b == HANGUL_LV || b == HANGUL_LVT;
    if (a == HANGUL_V || a == HANGUL_LV) return b == HANGUL_V || b == HANGUL_T;
    return (a == HANGUL_T || a == HANGUL_LVT) && b == HANGUL_T;
}

/* Whether no cluster begins between the characters a and b. */
static bool joins(uint32_t a, uint32_t b)
{
    if (a == '\r' && b == '\n') return true;
    if ((embla_char_bits(b) & EMBLA_CHAR_JOINS) && !is_control(a)) return true;
    if ((embla_char_bits(a) & EMBLA_CHAR_PREPEND) && !is_control(b)) return true;
    return hangul_joins(hangul(a), hangul(b));
}

static size_t cluster_end(const embla_view *view, size_t at)
{
    size_t length = 0;
    uint32_t last = embla_char_at(view->bytes + at, &length);
    at += length;
    while (at < view->count) {
        uint32_t code = embla_char_at(view->bytes + at, &length);
        if (!joins(last, code)) break;
        last = code;
        at += length;
    }
    return at;
}

/* ---- applying ---- */

/* A character is written only when the next one is known: what is removed after it is counted in
 * its change. */
typedef struct {
    const embla_charsmap *map;
    embla_bound *bound;
    embla_strand *out;
    bool held, changed;
    embla_moved last;
} writer;

static embla_status flush(writer *w)
{
    if (!w->held) return EMBLA_OK;
    w->held = false;
    return embla_strand_put(w->out, w->last.code, w->last.change);
}

static embla_status emit(writer *w, uint32_t code, int change)
{
    EMBLA_TRY(flush(w));
    w->held = true;
    w->last = (embla_moved){code, change};
    return EMBLA_OK;
}

static size_t characters(const char *text, size_t bytes)
{
    size_t count = 0;
    for (size_t i = 0; i < bytes; i++) count += ((uint8_t)text[i] & 0xc0) != 0x80;
    return count;
}

/* Replaces old_count characters by a string, which may not be UTF-8 in a hostile file. */
static embla_status replace(writer *w, size_t old_count, const char *text)
{
    size_t bytes = strlen(text), length = 0, i = 0;
    EMBLA_TRY(embla_bound_add(w->bound, bytes + 1));
    if (embla_utf8_valid(text, bytes) != bytes) bytes = 0;
    size_t new_count = characters(text, bytes);
    w->changed = true;
    for (size_t at = 0; at < bytes; at += length, i++) {
        uint32_t code = embla_char_at(text + at, &length);
        EMBLA_TRY(emit(w, code, i >= old_count));
    }
    if (new_count < old_count && w->held) w->last.change -= (int)(old_count - new_count);
    return EMBLA_OK;
}

static embla_status map_cluster(writer *w, const embla_view *view, size_t at, size_t end)
{
    const char *text = view->bytes + at;
    const char *whole = end - at < SHORT_CLUSTER ? find(w->map, text, end - at) : NULL;
    if (whole) return replace(w, characters(text, end - at), whole);
    while (at < end) {
        size_t length = 0;
        uint32_t code = embla_char_at(view->bytes + at, &length);
        const char *one = find(w->map, view->bytes + at, length);
        EMBLA_TRY(one ? replace(w, 1, one) : emit(w, code, 0));
        at += length;
    }
    return EMBLA_OK;
}

/* The end of a run of ASCII that the map leaves alone. Its last character may begin a cluster, so
 * it is not part of the run. */
static size_t plain_end(const bool plain[128], const embla_view *view, size_t at)
{
    size_t end = at;
    while (end < view->count && (uint8_t)view->bytes[end] < 0x80 &&
           plain[(uint8_t)view->bytes[end]])
        end++;
    if (end < view->count && end > at) end--;
    return end;
}

static embla_status copy_plain(writer *w, size_t at, size_t end)
{
    const embla_view *view = &w->out->from;
    EMBLA_TRY(flush(w));
    if (!view->spans) embla_strand_skip(w->out, at);
    if (w->out->at == at) {
        EMBLA_TRY(embla_strand_copy(w->out, end - 1));
    } else { /* what was removed at the very beginning has shifted the spans, as in the reference */
        for (; at < end - 1; at++) EMBLA_TRY(embla_strand_put(w->out, (uint8_t)view->bytes[at], 0));
    }
    return emit(w, (uint8_t)view->bytes[end - 1], 0);
}

embla_status embla_charsmap_apply(const embla_charsmap *map, embla_tokenized *e, embla_strand *out,
                                  bool *changed)
{
    const embla_view view = out->from;
    writer w = {.map = map, .bound = &e->bound, .out = out};
    EMBLA_TRY(embla_strand_room(out, view.count));
    for (size_t at = 0; at < view.count;) {
        size_t end = plain_end(map->plain, &view, at);
        if (end > at) {
            EMBLA_TRY(copy_plain(&w, at, end));
        } else {
            end = cluster_end(&view, at);
            EMBLA_TRY(map_cluster(&w, &view, at, end));
        }
        at = end;
    }
    EMBLA_TRY(flush(&w));
    *changed = w.changed;
    return EMBLA_OK;
}
