/* SPDX-License-Identifier: Apache-2.0 */
/* Runs the pre-tokenizers: each cuts every piece of a list into smaller ones, in another list.
 * Metaspace and ByteLevel may also change the text; then the pieces are those of a strand.
 *
 * ByteLevel gives each byte a character of its own. The text stays as it is: later stages see it
 * through embla_piece.mapped, and the strings of the vocabulary were turned into bytes instead.
 */
#include <string.h>

#include "tokenizer/tokenize.h"

typedef struct {
    const embla_tokenizer *t;
    embla_tokenized *e;
    embla_view view;
    bool mapped;
    int from, to; /* lists of pieces */
    int strand;   /* the next strand to write */
} run;

static embla_status grow_pieces(embla_tokenized *e, int list)
{
    return embla_grow(&e->pieces[list], &e->piece_room[list], e->piece_count[list],
                      e->piece_count[list] + 1, sizeof(embla_text_span), "pieces of a text");
}

static inline embla_status push(embla_tokenized *e, int list, size_t begin, size_t end)
{
    if (begin == end) return EMBLA_OK;
    EMBLA_TRY(embla_bound_piece(&e->bound, e->piece_count[list]));
    if (e->piece_count[list] == e->piece_room[list]) EMBLA_TRY(grow_pieces(e, list));
    e->pieces[list][e->piece_count[list]++] = (embla_text_span){(uint32_t)begin, (uint32_t)end};
    return EMBLA_OK;
}

/* ---- what becomes of matches ---- */

typedef struct {
    embla_tokenized *e;
    int list;
    embla_split_behavior behavior;
    bool any, last_match, held;
    embla_text_span hold; /* a match that waits for what follows it */
} cutter;

static embla_status feed(cutter *c, size_t from, size_t to, bool match)
{
    embla_tokenized *e = c->e;
    bool extend = false;
    switch (c->behavior) {
    case EMBLA_SPLIT_REMOVED:
        return match ? EMBLA_OK : push(e, c->list, from, to);
    case EMBLA_SPLIT_NEXT:
        if (c->held) {
            c->held = false;
            EMBLA_TRY(push(e, c->list, c->hold.begin, match ? c->hold.end : to));
            if (!match) return EMBLA_OK;
        }
        if (!match) return push(e, c->list, from, to);
        c->held = true;
        c->hold = (embla_text_span){(uint32_t)from, (uint32_t)to};
        return EMBLA_OK;
    case EMBLA_SPLIT_PREVIOUS:
        extend = c->any && match && !c->last_match;
        break;
    case EMBLA_SPLIT_CONTIGUOUS:
        extend = c->any && match == c->last_match;
        break;
    default:
        break;
    }
    c->any = true;
    c->last_match = match;
    if (!extend) return push(e, c->list, from, to);
    e->pieces[c->list][e->piece_count[c->list] - 1].end = (uint32_t)to;
    return EMBLA_OK;
}

static embla_status split(const run *r, const embla_pattern *pattern, embla_split_behavior behavior,
                          bool invert, embla_text_span span)
{
    const embla_piece piece = {r->view.bytes, span.begin, span.end, r->mapped};
    cutter c = {.e = r->e, .list = r->to, .behavior = behavior};
    size_t last = span.begin, begin = 0, end = 0;
    bool found = false;
    for (;;) {
        EMBLA_TRY(embla_pattern_next(pattern, &piece, last, &r->e->bound, &found, &begin, &end));
        if (!found) break;
        if (begin > last) EMBLA_TRY(feed(&c, last, begin, invert));
        EMBLA_TRY(feed(&c, begin, end, !invert));
        last = end;
    }
    if (last < span.end) EMBLA_TRY(feed(&c, last, span.end, invert));
    return c.held ? push(r->e, r->to, c.hold.begin, c.hold.end) : EMBLA_OK;
}

/* The same for a scanner whose matches are all kept, which most byte-level tokenizers have. */
static embla_status isolate(const run *r, embla_scanner *scan, embla_text_span span)
{
    const embla_piece piece = {r->view.bytes, span.begin, span.end, r->mapped};
    size_t at = span.begin, last = at;
    while (at < span.end) {
        size_t length = 0, end = scan(&piece, at);
        if (end == at) {
            (void)embla_piece_bits(&piece, at, &length);
            at += length;
            continue;
        }
        if (at > last) EMBLA_TRY(push(r->e, r->to, last, at));
        EMBLA_TRY(push(r->e, r->to, at, end));
        at = last = end;
    }
    return push(r->e, r->to, last, span.end);
}

/* ---- BertPreTokenizer ---- */

enum { WORD, WHITE, PUNCT };

static inline int bert_class(const char *p, size_t *length)
{
    uint8_t b = (uint8_t)*p;
    if (b < 0x80) {
        *length = 1;
        if ((b >= 'a' && b <= 'z') || (b >= '0' && b <= '9') || (b >= 'A' && b <= 'Z')) return WORD;
        if (b == ' ' || (b >= 9 && b <= 13)) return WHITE;
        return b > ' ' && b < 0x7f ? PUNCT : WORD;
    }
    uint32_t bits = embla_char_bits(embla_char_at(p, length));
    return bits & EMBLA_CHAR_WHITE ? WHITE : bits & EMBLA_CHAR_PUNCT ? PUNCT : WORD;
}

static embla_status split_bert(const run *r, embla_text_span span)
{
    size_t at = span.begin, last = at, length = 0;
    for (; at < span.end; at += length) {
        int kind = bert_class(r->view.bytes + at, &length);
        if (kind == WORD) continue;
        EMBLA_TRY(push(r->e, r->to, last, at));
        if (kind == PUNCT) EMBLA_TRY(push(r->e, r->to, at, at + length));
        last = at + length;
    }
    return push(r->e, r->to, last, span.end);
}

/* ---- stages that only cut ---- */

static embla_status split_fixed(const run *r, size_t characters, embla_text_span span)
{
    const embla_piece piece = {r->view.bytes, span.begin, span.end, r->mapped};
    size_t at = span.begin, last = at, count = 0, length = 0;
    for (; at < span.end; at += length) {
        if (count == characters) {
            EMBLA_TRY(push(r->e, r->to, last, at));
            last = at;
            count = 0;
        }
        (void)embla_piece_bits(&piece, at, &length);
        count++;
    }
    return push(r->e, r->to, last, span.end);
}

/* UnicodeScripts: cuts where the script changes. Characters of every script belong to the piece
 * before them; in front of the first piece they are lost, as in the reference. */
static embla_status split_scripts(const run *r, embla_text_span span)
{
    const embla_piece piece = {r->view.bytes, span.begin, span.end, r->mapped};
    size_t last = span.end, length = 0;
    unsigned before = 0;
    for (size_t at = span.begin; at < span.end; at += length) {
        unsigned script = embla_char_script(embla_piece_code(&piece, at, &length));
        if (script == 0 || script == before) continue;
        if (before != 0) EMBLA_TRY(push(r->e, r->to, last, at));
        last = at;
        before = script;
    }
    return push(r->e, r->to, last, span.end);
}

static embla_status cut(const run *r, const embla_pre *stage, embla_text_span span)
{
    const embla_pattern *p = &stage->pattern;
    switch (stage->kind) {
    case EMBLA_PRE_BERT:
        return split_bert(r, span);
    case EMBLA_PRE_FIXED:
        return split_fixed(r, stage->length, span);
    case EMBLA_PRE_SCRIPTS:
        return split_scripts(r, span);
    case EMBLA_PRE_BYTES:
        return isolate(r, embla_scan_gpt2, span);
    default:
        if (p->kind == EMBLA_PATTERN_SCAN && stage->behavior == EMBLA_SPLIT_ISOLATED &&
            !stage->invert)
            return isolate(r, p->scan, span);
        return split(r, p, stage->behavior, stage->invert, span);
    }
}

static embla_status cut_all(run *r, const embla_pre *stage)
{
    embla_tokenized *e = r->e;
    e->piece_count[r->to] = 0;
    for (size_t i = 0; i < e->piece_count[r->from]; i++)
        EMBLA_TRY(cut(r, stage, e->pieces[r->from][i]));
    r->from = r->to;
    r->to = 1 - r->to;
    return EMBLA_OK;
}

/* ---- stages that change the text ---- */

static bool begins_with(const run *r, embla_text_span span, const char *text, size_t length)
{
    return span.end - span.begin >= length && memcmp(r->view.bytes + span.begin, text, length) == 0;
}

/* Writes text in front of a piece. It and the first character share that character's span. */
static embla_status put_before(const run *r, embla_strand *out, embla_text_span span,
                               const char *text, size_t length)
{
    size_t first = 0;
    (void)embla_char_at(r->view.bytes + span.begin, &first);
    embla_strand_skip(out, span.begin + first);
    EMBLA_TRY(embla_strand_insert(out, text, length));
    return embla_strand_insert(out, r->view.bytes + span.begin, first);
}

static bool prepends(const run *r, const embla_pre *stage, embla_text_span span)
{
    const embla_name *mark = &stage->replacement;
    if (begins_with(r, span, " ", 1) || begins_with(r, span, mark->bytes, mark->length))
        return false;
    if (stage->prepend == EMBLA_PREPEND_FIRST) return r->view.spans[span.begin].begin == 0;
    return stage->prepend == EMBLA_PREPEND_ALWAYS;
}

/* Metaspace for one piece: every space becomes the mark. */
static embla_status put_marks(const run *r, const embla_pre *stage, embla_strand *out,
                              embla_text_span span)
{
    const embla_name *mark = &stage->replacement;
    embla_strand_skip(out, span.begin);
    if (prepends(r, stage, span)) EMBLA_TRY(put_before(r, out, span, mark->bytes, mark->length));
    for (;;) {
        const char *space = memchr(r->view.bytes + out->at, ' ', span.end - out->at);
        if (!space) break;
        size_t at = (size_t)(space - r->view.bytes);
        EMBLA_TRY(embla_strand_copy(out, at));
        embla_strand_skip(out, at + 1);
        EMBLA_TRY(embla_strand_insert(out, mark->bytes, mark->length));
    }
    return embla_strand_copy(out, span.end);
}

static embla_status put_space(const run *r, embla_strand *out, embla_text_span span)
{
    embla_strand_skip(out, span.begin);
    if (!begins_with(r, span, " ", 1)) EMBLA_TRY(put_before(r, out, span, " ", 1));
    return embla_strand_copy(out, span.end);
}

static embla_status rewrite_all(run *r, const embla_pre *stage)
{
    embla_tokenized *e = r->e;
    embla_strand *out = &e->spaced[r->strand];
    embla_strand_begin(out, r->view);
    e->piece_count[r->to] = 0;
    for (size_t i = 0; i < e->piece_count[r->from]; i++) {
        const embla_text_span span = e->pieces[r->from][i];
        size_t begin = out->count;
        EMBLA_TRY(stage->kind == EMBLA_PRE_METASPACE ? put_marks(r, stage, out, span)
                                                     : put_space(r, out, span));
        EMBLA_TRY(push(e, r->to, begin, out->count));
    }
    r->view = embla_strand_view(out);
    r->strand = 1 - r->strand;
    r->from = r->to;
    r->to = 1 - r->to;
    return EMBLA_OK;
}

/* ---- all of them ---- */

/* What messages call a stage. */
static const char *name_of(const embla_pre *stage)
{
    static const char *const names[] = {
        [EMBLA_PRE_SPLIT] = "the pre-tokenizer Split",
        [EMBLA_PRE_BERT] = "the pre-tokenizer BertPreTokenizer",
        [EMBLA_PRE_FIXED] = "the pre-tokenizer FixedLength",
        [EMBLA_PRE_SCRIPTS] = "the pre-tokenizer UnicodeScripts",
        [EMBLA_PRE_BYTES] = "the pre-tokenizer ByteLevel",
        [EMBLA_PRE_METASPACE] = "the pre-tokenizer Metaspace",
    };
    return names[stage->kind];
}

static embla_status run_stage(run *r, const embla_pre *stage)
{
    if (stage->kind == EMBLA_PRE_METASPACE) {
        EMBLA_TRY(rewrite_all(r, stage));
        return stage->split ? cut_all(r, stage) : EMBLA_OK;
    }
    if (stage->kind == EMBLA_PRE_BYTES) {
        if (stage->prefix_space) EMBLA_TRY(rewrite_all(r, stage));
        if (stage->use_regex) EMBLA_TRY(cut_all(r, stage));
        r->mapped = true;
        return EMBLA_OK;
    }
    return cut_all(r, stage);
}

embla_status embla_pretokenize(const embla_tokenizer *t, embla_tokenized *e, embla_view view,
                               embla_view *text, int *list)
{
    run r = {.t = t, .e = e, .view = view, .from = 0, .to = 1};
    e->piece_count[0] = 0;
    EMBLA_TRY(push(e, 0, 0, view.count));
    for (size_t i = 0; i < t->pre_count; i++) {
        e->bound.stage = name_of(&t->pres[i]);
        EMBLA_TRY(embla_bound_add(&e->bound, r.view.count + 1));
        EMBLA_TRY(run_stage(&r, &t->pres[i]));
    }
    *text = r.view;
    *list = r.from;
    return EMBLA_OK;
}
