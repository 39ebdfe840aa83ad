/* SPDX-License-Identifier: Apache-2.0 */
/* Finds matches of patterns. */
#include "tokenizer/pattern.h"

#include <string.h>

embla_pattern embla_pattern_chars(uint32_t mask)
{
    embla_pattern pattern = {.kind = EMBLA_PATTERN_CHARS, .mask = mask};
    for (uint32_t code = 0; code < 128; code++)
        pattern.ascii[code] = (embla_char_bits(code) & mask) != 0;
    return pattern;
}

/* Pieces are short, so this is faster than memmem. Where a long string nearly begins at every byte,
 * only memmem is not slow. */
const char *embla_text_find(const char *bytes, size_t count, const char *text, size_t length)
{
    enum { SHORT = 16 };
    if (length > SHORT) return memmem(bytes, count, text, length);
    while (count >= length) {
        const char *hit = memchr(bytes, text[0], count);
        if (!hit) return NULL;
        count -= (size_t)(hit - bytes);
        bytes = hit;
        if (count < length) return NULL;
        if (memcmp(bytes, text, length) == 0) return bytes;
        bytes++;
        count--;
    }
    return NULL;
}

static bool find_text(const embla_name *text, const embla_piece *piece, size_t at, size_t *begin)
{
    if (text->length == 0 || piece->end - at < text->length) return false;
    const char *hit =
        embla_text_find(piece->bytes + at, piece->end - at, text->bytes, text->length);
    if (hit) *begin = (size_t)(hit - piece->bytes);
    return hit != NULL;
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
                                embla_bound *bound, bool *found, size_t *begin, size_t *end)
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
        return embla_onig_next(pattern->onig, piece, at, bound, found, begin, end);
    }
}
