/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the normalizers of a tokenizer. Each reads a view and writes one of two strands in turn. A
 * stage that has nothing to do leaves its input where it is: most texts pass most stages unchanged.
 */
#include <string.h>

#include "tokenizer/tokenize.h"

/* ---- stages that look at one character at a time ---- */

/* The bits of characters above ASCII that a stage acts on. */
static uint32_t bits_of(const embla_normal *stage)
{
    switch (stage->kind) {
    case EMBLA_NORMAL_CLEAN:
        return EMBLA_CHAR_BERT_REMOVED | EMBLA_CHAR_BERT_SPACE;
    case EMBLA_NORMAL_HAN:
        return EMBLA_CHAR_BERT_HAN;
    case EMBLA_NORMAL_LOWER:
        return EMBLA_CHAR_HAS_LOWER;
    default:
        return stage->mask;
    }
}

static bool nmt_removes(uint32_t code)
{
    return (code >= 1 && code <= 8) || code == 0xb || (code >= 0xe && code <= 0x1f) ||
           code == 0x7f || code == 0x8f || code == 0x9f;
}

static bool nmt_makes_space(uint32_t code)
{
    return code == 9 || code == 0xa || code == 0xc || code == 0xd || code == 0x1680 ||
           (code >= 0x200b && code <= 0x200f) || code == 0x2028 || code == 0x2029 ||
           code == 0x2581 || code == 0xfeff || code == 0xfffd;
}

static bool acts_on(const embla_normal *stage, uint32_t code)
{
    if (stage->kind == EMBLA_NORMAL_NMT) return nmt_removes(code) || nmt_makes_space(code);
    if (stage->kind == EMBLA_NORMAL_EACH) return code < 128 && stage->each[code].bytes;
    if (stage->kind == EMBLA_NORMAL_CLEAN && code == ' ') return false;
    return (embla_char_bits(code) & bits_of(stage)) != 0;
}

void embla_normal_prepare(embla_normal *stage)
{
    for (uint32_t code = 0; code < 128; code++) stage->acts[code] = acts_on(stage, code);
}

/* The ASCII character that a stage replaces; -1 if it does something else. */
static int replaced_char(const embla_normal *stage)
{
    const embla_pattern *p = &stage->pattern;
    if (stage->kind != EMBLA_NORMAL_REPLACE || p->kind != EMBLA_PATTERN_TEXT) return -1;
    return p->text.length == 1 ? (uint8_t)p->text.bytes[0] : -1;
}

/* Whether a stage finds nothing to do in what the earlier ones from `first` on have written. */
static bool can_join(const embla_tokenizer *t, size_t first, size_t last)
{
    int c = replaced_char(&t->normals[last]);
    for (size_t i = first; c >= 0 && i < last; i++) {
        const embla_name *content = &t->normals[i].content;
        if (replaced_char(&t->normals[i]) == c || memchr(content->bytes, c, content->length))
            return false;
    }
    return c >= 0;
}

/* What a stage makes of an ASCII character; 128 if nothing. */
static uint8_t change_ascii(const embla_normal *stage, uint8_t c)
{
    if (!stage->acts[c]) return c;
    switch (stage->kind) {
    case EMBLA_NORMAL_CLEAN:
        return embla_char_bits(c) & EMBLA_CHAR_BERT_REMOVED ? 128 : ' ';
    case EMBLA_NORMAL_NMT:
        return nmt_removes(c) ? 128 : ' ';
    case EMBLA_NORMAL_LOWER:
        return (uint8_t)(c + 'a' - 'A');
    default:
        return 128; /* DROP */
    }
}

static void find_ascii(embla_tokenizer *t)
{
    t->has_ascii = t->normal_count > 0;
    for (size_t i = 0; i < t->normal_count; i++)
        t->has_ascii = t->has_ascii && t->normals[i].kind <= EMBLA_NORMAL_NMT;
    for (int c = 0; c < 128; c++) {
        uint8_t made = (uint8_t)c;
        for (size_t i = 0; t->has_ascii && i < t->normal_count && made < 128; i++)
            if (t->normals[i].kind < EMBLA_NORMAL_NFC || t->normals[i].kind > EMBLA_NORMAL_NFKD)
                made = change_ascii(&t->normals[i], made);
        t->ascii[c] = made;
    }
}

embla_status embla_normals_join(embla_tokenizer *t)
{
    size_t kept = 0;
    for (size_t i = 0, end = 0; i < t->normal_count; i = end) {
        embla_normal joined = {.kind = EMBLA_NORMAL_EACH};
        for (end = i; end < t->normal_count && can_join(t, i, end);) end++;
        if (end < i + 2) { /* nothing to join */
            end = i + 1;
            t->normals[kept++] = t->normals[i];
            continue;
        }
        EMBLA_TRY(
            embla_arena_many(&t->arena, 128, sizeof *joined.each, "normalizers", &joined.each));
        for (size_t j = i; j < end; j++)
            joined.each[replaced_char(&t->normals[j])] = t->normals[j].content;
        embla_normal_prepare(&joined);
        t->normals[kept++] = joined;
    }
    t->normal_count = kept;
    find_ascii(t);
    return EMBLA_OK;
}

/* The next character that the stage acts on, and its code and length; view->count if none. */
static size_t find_next(const embla_normal *stage, const embla_view *view, size_t at,
                        uint32_t *code, size_t *length)
{
    while (at < view->count) {
        uint8_t b = (uint8_t)view->bytes[at];
        if (b < 0x80) {
            if (stage->acts[b]) {
                *code = b;
                *length = 1;
                return at;
            }
            at++;
            continue;
        }
        *code = embla_char_at(view->bytes + at, length);
        if (acts_on(stage, *code)) return at;
        at += *length;
    }
    return at;
}

/* Writes what one character becomes; nothing for one that is removed. */
static embla_status put_changed(const embla_normal *stage, embla_strand *out, uint32_t code)
{
    uint32_t lower[EMBLA_CHAR_EXPANSION];
    size_t count = 0;
    switch (stage->kind) {
    case EMBLA_NORMAL_CLEAN:
        if (embla_char_bits(code) & EMBLA_CHAR_BERT_REMOVED) return EMBLA_OK;
        return embla_strand_put(out, ' ', 0);
    case EMBLA_NORMAL_NMT:
        return nmt_removes(code) ? EMBLA_OK : embla_strand_put(out, ' ', 0);
    case EMBLA_NORMAL_HAN:
        EMBLA_TRY(embla_strand_put(out, ' ', 0));
        EMBLA_TRY(embla_strand_put(out, code, 1));
        return embla_strand_put(out, ' ', 1);
    case EMBLA_NORMAL_LOWER:
        if (code < 128) return embla_strand_put(out, code + 'a' - 'A', 0);
        count = embla_char_lower(code, lower);
        for (size_t i = 0; i < count; i++) EMBLA_TRY(embla_strand_put(out, lower[i], i > 0));
        return EMBLA_OK;
    case EMBLA_NORMAL_EACH:
        embla_strand_skip(out, out->at + 1); /* the new string has the span of the character */
        return embla_strand_insert(out, stage->each[code].bytes, stage->each[code].length);
    default:
        return EMBLA_OK; /* DROP */
    }
}

static embla_status change_characters(const embla_normal *stage, embla_strand *out, bool *changed)
{
    const embla_view view = out->from;
    uint32_t code = 0;
    size_t length = 0, at = find_next(stage, &view, 0, &code, &length);
    *changed = at < view.count;
    if (!*changed) return EMBLA_OK;
    EMBLA_TRY(embla_strand_room(out, view.count + 8));
    while (at < view.count) {
        EMBLA_TRY(embla_strand_copy(out, at));
        EMBLA_TRY(put_changed(stage, out, code));
        embla_strand_skip(out, at + length);
        at = find_next(stage, &view, at + length, &code, &length);
    }
    return embla_strand_copy(out, view.count);
}

/* ---- the other stages ---- */

static embla_status strip(const embla_normal *stage, embla_strand *out, bool *changed)
{
    const embla_view *view = &out->from;
    size_t begin = 0, end = view->count, length = 0;
    while (stage->left && begin < end &&
           (embla_char_bits(embla_char_at(view->bytes + begin, &length)) & EMBLA_CHAR_WHITE))
        begin += length;
    while (stage->right && end > begin) {
        size_t last = end - 1;
        while (((uint8_t)view->bytes[last] & 0xc0) == 0x80) last--;
        if (!(embla_char_bits(embla_char_at(view->bytes + last, &length)) & EMBLA_CHAR_WHITE))
            break;
        end = last;
    }
    *changed = end - begin < view->count;
    if (!*changed) return EMBLA_OK;
    embla_strand_skip(out, begin);
    return embla_strand_copy(out, end);
}

/* The text and the first character share the span of the first character. */
static embla_status prepend(const embla_name *text, embla_strand *out, bool *changed)
{
    const embla_view *view = &out->from;
    size_t first = 0;
    *changed = view->count > 0 && text->length > 0;
    if (!*changed) return EMBLA_OK;
    (void)embla_char_at(view->bytes, &first);
    embla_strand_skip(out, first);
    EMBLA_TRY(embla_strand_insert(out, text->bytes, text->length));
    EMBLA_TRY(embla_strand_insert(out, view->bytes, first));
    return embla_strand_copy(out, view->count);
}

static embla_status replace(const embla_normal *stage, embla_bound *bound, embla_strand *out,
                            bool *changed)
{
    const embla_view view = out->from;
    const embla_piece piece = {view.bytes, 0, view.count, false};
    size_t begin = 0, end = 0;
    bool found = false;
    EMBLA_TRY(embla_pattern_next(&stage->pattern, &piece, 0, bound, &found, &begin, &end));
    *changed = found;
    while (found) {
        EMBLA_TRY(embla_strand_copy(out, begin));
        embla_strand_skip(out, end);
        EMBLA_TRY(embla_strand_insert(out, stage->content.bytes, stage->content.length));
        EMBLA_TRY(embla_pattern_next(&stage->pattern, &piece, end, bound, &found, &begin, &end));
    }
    return *changed ? embla_strand_copy(out, view.count) : EMBLA_OK;
}

static embla_status map_bytes(embla_strand *out, bool *changed)
{
    const embla_view view = out->from;
    *changed = view.count > 0;
    for (size_t at = 0; at < view.count;) {
        size_t length = 0;
        (void)embla_char_at(view.bytes + at, &length);
        for (size_t i = 0; i < length; i++)
            EMBLA_TRY(embla_strand_put(out, embla_byte_code((uint8_t)view.bytes[at + i]), i > 0));
        at += length;
    }
    return EMBLA_OK;
}

/* ---- all of them ---- */

static embla_status run_stage(const embla_normal *stage, embla_tokenized *e, embla_strand *out,
                              bool *changed)
{
    switch (stage->kind) {
    case EMBLA_NORMAL_NFC:
    case EMBLA_NORMAL_NFD:
    case EMBLA_NORMAL_NFKC:
    case EMBLA_NORMAL_NFKD:
        return embla_normal_form(e, stage->kind, out, changed);
    case EMBLA_NORMAL_STRIP:
        return strip(stage, out, changed);
    case EMBLA_NORMAL_PREPEND:
        return prepend(&stage->content, out, changed);
    case EMBLA_NORMAL_REPLACE:
        return replace(stage, &e->bound, out, changed);
    case EMBLA_NORMAL_BYTES:
        return map_bytes(out, changed);
    case EMBLA_NORMAL_CHARSMAP:
        return embla_charsmap_apply(&stage->map, e, out, changed);
    case EMBLA_NORMAL_SENTENCEPIECE:
        return embla_sentencepiece_apply(stage, e, out, changed);
    default:
        return change_characters(stage, out, changed);
    }
}

/* What messages call a stage. */
static const char *name_of(const embla_normal *stage)
{
    static const char *const names[] = {
        [EMBLA_NORMAL_CLEAN] = "the normalizer BertNormalizer",
        [EMBLA_NORMAL_HAN] = "the normalizer BertNormalizer",
        [EMBLA_NORMAL_DROP] = "the normalizer StripAccents",
        [EMBLA_NORMAL_LOWER] = "the normalizer Lowercase",
        [EMBLA_NORMAL_NFC] = "the normalizer NFC",
        [EMBLA_NORMAL_NFD] = "the normalizer NFD",
        [EMBLA_NORMAL_NFKC] = "the normalizer NFKC",
        [EMBLA_NORMAL_NFKD] = "the normalizer NFKD",
        [EMBLA_NORMAL_NMT] = "the normalizer Nmt",
        [EMBLA_NORMAL_STRIP] = "the normalizer Strip",
        [EMBLA_NORMAL_PREPEND] = "the normalizer Prepend",
        [EMBLA_NORMAL_REPLACE] = "the normalizer Replace",
        [EMBLA_NORMAL_EACH] = "the normalizer Replace",
        [EMBLA_NORMAL_BYTES] = "the normalizer ByteLevel",
        [EMBLA_NORMAL_CHARSMAP] = "the normalizer Precompiled",
        [EMBLA_NORMAL_SENTENCEPIECE] = "the map of characters",
    };
    return names[stage->kind];
}

static bool is_ascii(const embla_view *view)
{
    uint64_t any = 0, eight;
    size_t at = 0;
    for (; view->count - at >= 8; at += 8) {
        memcpy(&eight, view->bytes + at, 8);
        any |= eight;
    }
    for (; at < view->count; at++) any |= (uint8_t)view->bytes[at];
    return (any & UINT64_C(0x8080808080808080)) == 0;
}

/* All normalizers in one pass over a text that is ASCII. */
static embla_status normalize_ascii(const embla_tokenizer *t, embla_strand *out)
{
    const embla_view view = out->from;
    size_t count = 0;
    EMBLA_TRY(embla_strand_room(out, view.count));
    for (size_t i = 0; i < view.count; i++) {
        uint8_t made = t->ascii[(uint8_t)view.bytes[i]];
        out->bytes[count] = (char)made;
        count += made < 128;
    }
    out->count = count;
    return EMBLA_OK;
}

embla_status embla_normalize_text(const embla_tokenizer *t, embla_tokenized *e, embla_view view,
                                  embla_view *out)
{
    if (t->has_ascii && !view.spans && is_ascii(&view)) {
        embla_strand_begin(&e->strands[0], view);
        EMBLA_TRY(normalize_ascii(t, &e->strands[0]));
        *out = embla_strand_view(&e->strands[0]);
        return EMBLA_OK;
    }
    int next = 0;
    for (size_t i = 0; i < t->normal_count; i++) {
        embla_strand *strand = &e->strands[next];
        bool changed = false;
        embla_strand_begin(strand, view);
        e->bound.stage = name_of(&t->normals[i]);
        EMBLA_TRY(embla_bound_add(&e->bound, view.count + 1));
        EMBLA_TRY(run_stage(&t->normals[i], e, strand, &changed));
        EMBLA_TRY(embla_bound_add(&e->bound, strand->count));
        if (!changed) continue;
        view = embla_strand_view(strand);
        next = 1 - next;
    }
    *out = view;
    return EMBLA_OK;
}
