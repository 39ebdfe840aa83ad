/* SPDX-License-Identifier: Apache-2.0 */
/* A text that a stage of a tokenizer rewrites, and, if the caller wants offsets, the bytes of the
 * original text that each of its bytes came from.
 *
 * A stage reads a view and writes a strand, character by character. Each written character says how
 * it changes the text, in the terms of Hugging Face's library, so that offsets are the same:
 *   0     it replaces the next character of the view
 *   1     it is new; it gets the span of the character before it
 *   -n    it replaces the next character, and the n characters after that one are removed
 */
#ifndef EMBLA_TOKENIZER_STRAND_H
#define EMBLA_TOKENIZER_STRAND_H

#include "base/utf8.h"
#include "embla_text.h"
#include "tokenizer/bound.h"
#include "tokenizer/grow.h"

/* Readers may load this many bytes past the end of a strand. */
enum { EMBLA_STRAND_SLACK = 32 };

typedef struct {
    const char *bytes;
    size_t count;
    const embla_text_span *spans; /* one for each byte; NULL means that offsets are not wanted */
} embla_view;

typedef struct {
    char *bytes;
    embla_text_span *spans;
    size_t count, room, span_room;
    size_t limit;    /* bytes that there is room for, with their spans if they are wanted */
    embla_view from; /* what the stage reads */
    size_t at;       /* the next byte of it that a character replaces */
    const embla_bound *bound; /* on `count`; NULL means none */
} embla_strand;

void embla_strand_free(embla_strand *strand);
/* Empties the strand, which a stage then fills from a view. */
static inline void embla_strand_begin(embla_strand *strand, embla_view from)
{
    strand->count = strand->at = 0;
    strand->from = from;
    strand->limit =
        from.spans && strand->span_room < strand->room ? strand->span_room : strand->room;
    if (strand->bound && strand->limit > strand->bound->most_bytes)
        strand->limit = (size_t)strand->bound->most_bytes;
}
/* Makes room for `more` bytes. EMBLA_ERR_UNSUPPORTED beyond the bound. */
EMBLA_CHECKED embla_status embla_strand_room(embla_strand *strand, size_t more);

/* What has been written, as the view of the next stage. */
static inline embla_view embla_strand_view(const embla_strand *strand)
{
    return (embla_view){strand->bytes, strand->count, strand->from.spans ? strand->spans : NULL};
}

/* Writes one character. There must be room for its 4 bytes. */
void embla_strand_track(embla_strand *strand, size_t length, int change);
static inline void embla_strand_put_in(embla_strand *strand, uint32_t code, int change)
{
    size_t length = embla_utf8_encode(code, strand->bytes + strand->count);
    if (strand->from.spans) embla_strand_track(strand, length, change);
    strand->count += length;
}
EMBLA_CHECKED static inline embla_status embla_strand_put(embla_strand *strand, uint32_t code,
                                                          int change)
{
    if (strand->count + 4 > strand->limit) EMBLA_TRY(embla_strand_room(strand, 4));
    embla_strand_put_in(strand, code, change);
    return EMBLA_OK;
}
/* Copies the bytes of the view from `at` to end - 1 without a change. */
EMBLA_CHECKED embla_status embla_strand_copy(embla_strand *strand, size_t end);
/* Leaves out the bytes of the view from `at` to end - 1. */
static inline void embla_strand_skip(embla_strand *strand, size_t end)
{
    strand->at = end;
}
/* Writes bytes that are all new (change 1). */
EMBLA_CHECKED embla_status embla_strand_insert(embla_strand *strand, const char *bytes,
                                               size_t length);

/* Fills a strand with a text in which each part that is not valid UTF-8 is replaced by U+FFFD, and
 * with the span of each character if `spans`. */
EMBLA_CHECKED embla_status embla_strand_valid(embla_strand *strand, const char *text, size_t length,
                                              bool spans);

/* Decodes the character of valid UTF-8 at p; *length is its number of bytes. */
static inline uint32_t embla_char_at(const char *p, size_t *length)
{
    const uint8_t *b = (const uint8_t *)p;
    if (b[0] < 0x80) {
        *length = 1;
        return b[0];
    }
    *length = b[0] < 0xe0 ? 2 : b[0] < 0xf0 ? 3 : 4;
    return embla_utf8_code(p, *length);
}

#endif
