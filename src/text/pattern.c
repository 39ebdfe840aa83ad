/* SPDX-License-Identifier: Apache-2.0 */
/* Finds matches of patterns. */
#include "text/pattern.h"

#include <string.h>

embla_pattern embla_pattern_chars(uint32_t mask)
{
    embla_pattern pattern = {.kind = EMBLA_PATTERN_CHARS, .mask = mask};
    for (uint32_t code = 0; code < 128; code++)
        pattern.ascii[code] = (embla_char_bits(code) & mask) != 0;
    return pattern;
}

/* Pieces are short, so this is faster than memmem. */
static bool find_text(const embla_name *text, const embla_piece *piece, size_t at, size_t *begin)
{
    if (text->length == 0) return false;
    while (piece->end - at >= text->length) {
        const char *hit = memchr(piece->bytes + at, text->bytes[0], piece->end - at);
        if (!hit) return false;
        *begin = at = (size_t)(hit - piece->bytes);
        if (piece->end - at < text->length) return false;
        if (memcmp(hit, text->bytes, text->length) == 0) return true;
        at++;
    }
    return false;
}

static bool find_char(const embla_pattern *pattern, const embla_piece *piece, size_t at,
                      size_t *begin, size_t *end)
{
    while (at < piece->end) {
        size_t length = 0;
        uint8_t b = (uint8_t)piece->bytes[at];
        if (b < 0x80 && !piece->mapped && !pattern->ascii[b]) {
            at++;
            continue;
        }
        if (embla_piece_bits(piece, at, &length) & pattern->mask) {
            *begin = at;
            *end = at + length;
            return true;
        }
        at += length;
    }
    return false;
}

static bool find_scan(const embla_pattern *pattern, const embla_piece *piece, size_t at,
                      size_t *begin, size_t *end)
{
    while (at < piece->end) {
        if (pattern->first >= 0 && !piece->mapped) {
            const char *hit = memchr(piece->bytes + at, pattern->first, piece->end - at);
            if (!hit) return false;
            at = (size_t)(hit - piece->bytes);
        }
        size_t length = 0, stop = pattern->scan(piece, at);
        if (stop > at) {
            *begin = at;
            *end = stop;
            return true;
        }
        (void)embla_piece_bits(piece, at, &length);
        at += length;
    }
    return false;
}

embla_status embla_pattern_next(const embla_pattern *pattern, const embla_piece *piece, size_t at,
                                bool *found, size_t *begin, size_t *end)
{
    switch (pattern->kind) {
    case EMBLA_PATTERN_TEXT:
        *found = find_text(&pattern->text, piece, at, begin);
        if (*found) *end = *begin + pattern->text.length;
        return EMBLA_OK;
    case EMBLA_PATTERN_CHARS:
        *found = find_char(pattern, piece, at, begin, end);
        return EMBLA_OK;
    case EMBLA_PATTERN_SCAN:
        *found = find_scan(pattern, piece, at, begin, end);
        return EMBLA_OK;
    default:
        return embla_onig_next(pattern->onig, piece, at, found, begin, end);
    }
}
