/* SPDX-License-Identifier: Apache-2.0 */
/* The normalization forms NFC, NFD, NFKC and NFKD. Most texts are in their form already: runs of
 * characters that no neighbour can change are copied, and only what lies between is decomposed,
 * ordered by combining class, and composed again.
 *
 * A character carries how it changes the text (strand.h): of a decomposition the first replaces the
 * character and the others are new; a composition takes away one.
 */
#include <string.h>

#include "tokenizer/tokenize.h"

typedef struct {
    embla_tokenized *e;
    bool compose, compatible;
} form;

static bool is_inert(const form *f, uint32_t bits)
{
    if (f->compose)
        return (bits & (f->compatible ? EMBLA_CHAR_NFKC_INERT : EMBLA_CHAR_NFC_INERT)) != 0;
    uint32_t changes =
        f->compatible ? EMBLA_CHAR_HAS_NFD | EMBLA_CHAR_HAS_NFKD : EMBLA_CHAR_HAS_NFD;
    return !(bits & changes) && embla_char_class(bits) == 0;
}

/* The first character from `at` on that is not inert. *before is where the character before it
 * begins, which it may compose with. */
static size_t find_active(const form *f, const embla_view *view, size_t at, size_t *before)
{
    *before = at;
    while (at < view->count) {
        size_t length = 0;
        uint64_t eight;
        if (view->count - at >= 9) {
            memcpy(&eight, view->bytes + at, 8);
            if ((eight & UINT64_C(0x8080808080808080)) == 0) {
                *before = at + 7;
                at += 8;
                continue;
            }
        }
        uint32_t code = embla_char_at(view->bytes + at, &length);
        if (code >= 0x80 && !is_inert(f, embla_char_bits(code))) return at;
        *before = at;
        at += length;
    }
    return at;
}

static embla_status append(embla_tokenized *e, uint32_t code, int change)
{
    EMBLA_TRY(embla_grow(&e->moved, &e->moved_room, e->moved_count, e->moved_count + 1,
                         sizeof *e->moved, "characters of a text"));
    e->moved[e->moved_count++] = (embla_moved){code, change};
    return EMBLA_OK;
}

/* Decomposes the characters from `at` to the next inert one. *end is where that begins. */
static embla_status decompose(const form *f, const embla_view *view, size_t at, size_t *end)
{
    uint32_t parts[EMBLA_CHAR_EXPANSION];
    bool first = true;
    f->e->moved_count = 0;
    while (at < view->count) {
        size_t length = 0;
        uint32_t code = embla_char_at(view->bytes + at, &length);
        if (!first && is_inert(f, embla_char_bits(code))) break;
        size_t count = embla_char_decompose(code, f->compatible, parts);
        for (size_t i = 0; i < count; i++) EMBLA_TRY(append(f->e, parts[i], i > 0));
        at += length;
        first = false;
    }
    *end = at;
    return EMBLA_OK;
}

/* Sorts a run of combining characters by class; those of one class keep their order. */
static embla_status sort_run(embla_tokenized *e, size_t begin, size_t end)
{
    size_t starts[256] = {0}, next = 0, count = end - begin;
    embla_moved *run = e->moved + begin;
    EMBLA_TRY(embla_grow(&e->moved_spare, &e->spare_room, 0, count, sizeof *e->moved_spare,
                         "characters of a text"));
    for (size_t i = 0; i < count; i++) starts[embla_char_class(embla_char_bits(run[i].code))]++;
    for (size_t i = 0; i < 256; i++) {
        size_t here = starts[i];
        starts[i] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++)
        e->moved_spare[starts[embla_char_class(embla_char_bits(run[i].code))]++] = run[i];
    memcpy(run, e->moved_spare, count * sizeof *run);
    return EMBLA_OK;
}

static embla_status reorder(embla_tokenized *e)
{
    for (size_t i = 0; i < e->moved_count; i++) {
        size_t j = i;
        while (j < e->moved_count && embla_char_class(embla_char_bits(e->moved[j].code)) > 0) j++;
        if (j - i > 1) EMBLA_TRY(sort_run(e, i, j));
        if (j > i) i = j - 1;
    }
    return EMBLA_OK;
}

/* Composes in place. A character is blocked if one of its class or higher is between it and the
 * last character of class 0. */
static void compose(embla_tokenized *e)
{
    embla_moved *m = e->moved;
    size_t kept = 0, starter = SIZE_MAX;
    unsigned last = 0;
    for (size_t i = 0; i < e->moved_count; i++) {
        unsigned class = embla_char_class(embla_char_bits(m[i].code));
        if (starter != SIZE_MAX && (kept - 1 == starter || last < class)) {
            uint32_t both = embla_char_compose(m[starter].code, m[i].code);
            if (both) {
                m[starter].code = both;
                m[starter].change += m[i].change - 1;
                continue;
            }
        }
        if (class == 0) starter = kept;
        last = class;
        m[kept++] = m[i];
    }
    e->moved_count = kept;
}

embla_status embla_normal_form(embla_tokenized *e, embla_normal_kind kind, embla_strand *out,
                               bool *changed)
{
    const form f = {e, kind == EMBLA_NORMAL_NFC || kind == EMBLA_NORMAL_NFKC,
                    kind == EMBLA_NORMAL_NFKC || kind == EMBLA_NORMAL_NFKD};
    const embla_view view = out->from;
    size_t before = 0, end = 0, at = find_active(&f, &view, 0, &before);
    *changed = at < view.count;
    while (at < view.count) {
        EMBLA_TRY(embla_strand_copy(out, before));
        EMBLA_TRY(decompose(&f, &view, before, &end));
        EMBLA_TRY(reorder(e));
        if (f.compose) compose(e);
        for (size_t i = 0; i < e->moved_count; i++)
            EMBLA_TRY(embla_strand_put(out, e->moved[i].code, e->moved[i].change));
        embla_strand_skip(out, end);
        at = find_active(&f, &view, end, &before);
    }
    return *changed ? embla_strand_copy(out, view.count) : EMBLA_OK;
}
