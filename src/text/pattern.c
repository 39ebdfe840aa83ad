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

static bool find_text(const embla_name *text, const embla_piece *piece, size_t at, size_t *begin)
{
    if (text->length == 0) return false;
    const char *from = piece->bytes + at;
    const char *hit = text->length == 1 ? memchr(from, text->bytes[0], piece->end - at)
                                        : memmem(from, piece->end - at, text->bytes, text->length);
    if (hit) *begin = (size_t)(hit - piece->bytes);
    return hit != NULL;
}

static bool find_char(uint32_t mask, const embla_piece *piece, size_t at, size_t *begin,
                      size_t *end)
{
    while (at < piece->end) {
        size_t length = 0;
        if (embla_piece_bits(piece, at, &length) & mask) {
            *begin = at;
            *end = at + length;
            return true;
        }
        at += length;
    }
    return false;
}

static bool find_scan(embla_scanner *scan, const embla_piece *piece, size_t at, size_t *begin,
                      size_t *end)
{
    while (at < piece->end) {
        size_t length = 0, stop = scan(piece, at);
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
        *found = find_char(pattern->mask, piece, at, begin, end);
        return EMBLA_OK;
    case EMBLA_PATTERN_SCAN:
        *found = find_scan(pattern->scan, piece, at, begin, end);
        return EMBLA_OK;
    default:
        return embla_onig_next(pattern->onig, piece, at, found, begin, end);
    }
}
