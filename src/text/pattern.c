/* SPDX-License-Identifier: Apache-2.0 */
/* Finds matches of patterns, and the alphabet of byte-level tokenizers: GPT-2 gave every byte a
 * character that can be printed, so that a vocabulary is text. */
#include "text/pattern.h"

#include <string.h>

/* Bytes that do not stand for themselves: 00 to 20, 7F to A0, and AD. They follow each other from
 * U+0100 on. */
static bool is_plain(uint8_t byte)
{
    return (byte > 0x20 && byte < 0x7f) || (byte > 0xa0 && byte != 0xad);
}

uint32_t embla_byte_code(uint8_t byte)
{
    if (is_plain(byte)) return byte;
    if (byte <= 0x20) return 0x100u + byte;
    return byte == 0xad ? 0x143u : 0x121u + (byte - 0x7fu);
}

int embla_byte_of_code(uint32_t code)
{
    if (code < 0x100) return is_plain((uint8_t)code) ? (int)code : -1;
    if (code <= 0x120) return (int)code - 0x100;
    if (code <= 0x142) return (int)code - 0x121 + 0x7f;
    return code == 0x143 ? 0xad : -1;
}

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
