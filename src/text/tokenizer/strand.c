/* SPDX-License-Identifier: Apache-2.0 */
/* Strands: growth, and the spans of what is written. */
#include "tokenizer/strand.h"

void embla_strand_free(embla_strand *strand)
{
    embla_mem_free(strand->bytes, strand->room + EMBLA_STRAND_SLACK);
    embla_mem_free(strand->spans, strand->span_room * sizeof *strand->spans);
    *strand = (embla_strand){.bound = strand->bound};
}

embla_status embla_strand_room(embla_strand *strand, size_t more)
{
    size_t need = strand->count + more;
    if (strand->bound && need > strand->bound->most_bytes) return embla_bound_large(strand->bound);
    if (need > UINT32_MAX - EMBLA_STRAND_SLACK)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a normalized text has %zu bytes; the limit is %" PRIu32, need,
                          UINT32_MAX - EMBLA_STRAND_SLACK);
    if (need > strand->room) {
        size_t room = strand->room > 0 ? strand->room + EMBLA_STRAND_SLACK : 0;
        EMBLA_TRY(embla_grow(&strand->bytes, &room, strand->count, need + EMBLA_STRAND_SLACK, 1,
                             "a text"));
        strand->room = room - EMBLA_STRAND_SLACK;
    }
    strand->limit = strand->room;
    if (strand->bound && strand->limit > strand->bound->most_bytes)
        strand->limit = (size_t)strand->bound->most_bytes;
    if (!strand->from.spans) return EMBLA_OK;
    return embla_grow(&strand->spans, &strand->span_room, strand->count, strand->room,
                      sizeof *strand->spans, "the offsets of a text");
}

/* Bytes from `at` that the next `count` characters of the view take. */
static size_t characters(const embla_view *view, size_t at, size_t count)
{
    size_t begin = at;
    while (count-- > 0 && at < view->count) {
        size_t length = 0;
        (void)embla_char_at(view->bytes + at, &length);
        at += length;
    }
    return at - begin;
}

void embla_strand_track(embla_strand *strand, size_t length, int change)
{
    const embla_view *from = &strand->from;
    embla_text_span span = {0, 0};
    size_t at = strand->at;
    if (from->count > 0) {
        span = from->spans[0];
        span.end = span.begin;
    }
    if (change <= 0) {
        if (from->count > 0) span = from->spans[at < from->count ? at : from->count - 1];
        strand->at += characters(from, at, 1 + (size_t)-change);
    } else if (at > 0) {
        span = from->spans[at - 1];
    }
    for (size_t i = 0; i < length; i++) strand->spans[strand->count + i] = span;
}

embla_status embla_strand_copy(embla_strand *strand, size_t end)
{
    size_t length = end - strand->at;
    if (length == 0) return EMBLA_OK;
    if (strand->count + length > strand->limit) EMBLA_TRY(embla_strand_room(strand, length));
    memcpy(strand->bytes + strand->count, strand->from.bytes + strand->at, length);
    if (strand->from.spans)
        memcpy(strand->spans + strand->count, strand->from.spans + strand->at,
               length * sizeof *strand->spans);
    strand->count += length;
    strand->at = end;
    return EMBLA_OK;
}

embla_status embla_strand_insert(embla_strand *strand, const char *bytes, size_t length)
{
    if (strand->count + length > strand->limit) EMBLA_TRY(embla_strand_room(strand, length));
    if (length > 0) memcpy(strand->bytes + strand->count, bytes, length);
    if (strand->from.spans) embla_strand_track(strand, length, 1);
    strand->count += length;
    return EMBLA_OK;
}

/* Bytes at the front of text that are not valid UTF-8 and become one U+FFFD: as many as a longer
 * text could have made valid, at least one. */
static size_t ill_formed(const uint8_t *p, size_t left)
{
    size_t need = p[0] >= 0xf0 ? 4 : p[0] >= 0xe0 ? 3 : 2, have = 1;
    if (p[0] < 0xc2 || p[0] > 0xf4) return 1;
    uint8_t low = p[0] == 0xe0 ? 0xa0 : p[0] == 0xf0 ? 0x90 : 0x80;
    uint8_t high = p[0] == 0xed ? 0x9f : p[0] == 0xf4 ? 0x8f : 0xbf;
    while (have < need - 1 && have < left && p[have] >= low && p[have] <= high) {
        have++;
        low = 0x80;
        high = 0xbf;
    }
    return have;
}

embla_status embla_strand_valid(embla_strand *strand, const char *text, size_t length, bool spans)
{
    static const embla_text_span none = {0, 0};
    embla_strand *s = strand;
    embla_strand_begin(s, (embla_view){text, 0, spans ? &none : NULL});
    EMBLA_TRY(embla_strand_room(s, length + 8));
    for (size_t at = 0; at < length;) {
        size_t size = embla_utf8_length(text + at, length - at), written = size;
        EMBLA_TRY(embla_strand_room(s, 4));
        if (size > 0) {
            memcpy(s->bytes + s->count, text + at, size);
        } else {
            size = ill_formed((const uint8_t *)text + at, length - at);
            written = embla_utf8_encode(0xfffd, s->bytes + s->count);
        }
        for (size_t i = 0; spans && i < written; i++)
            s->spans[s->count + i] = (embla_text_span){(uint32_t)at, (uint32_t)(at + size)};
        s->count += written;
        at += size;
    }
    return EMBLA_OK;
}
