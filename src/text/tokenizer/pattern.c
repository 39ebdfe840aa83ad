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

/* ---- the search for a string ---- */

/* Where the largest suffix of a string begins, in the order of bytes or in the reversed order, and
 * the period of that suffix. */
static size_t largest_suffix(const unsigned char *text, size_t length, bool reversed,
                             size_t *period)
{
    size_t before = SIZE_MAX, next = 0, k = 1; /* the suffix begins after `before` */
    *period = 1;
    while (next + k < length) {
        unsigned char a = text[next + k], b = text[before + k];
        if (a == b) {
            next += k == *period ? k : 0;
            k = k == *period ? 1 : k + 1;
        } else if (reversed ? a > b : a < b) {
            next += k;
            k = 1;
            *period = next - before;
        } else {
            before = next++;
            k = *period = 1;
        }
    }
    return before + 1;
}

/* The two-way algorithm (Crochemore and Perrin 1991): the right half of the string is compared
 * forwards, then the left half. It looks at each byte a few times at most, whatever the bytes are.
 * `known` bytes at the beginning of a periodic string need not be compared again. */
static const char *find_two_way(const char *bytes, size_t count, const char *text, size_t length)
{
    size_t period, other, known = 0;
    const unsigned char *t = (const unsigned char *)text;
    size_t half = largest_suffix(t, length, false, &period);
    size_t half_reversed = largest_suffix(t, length, true, &other);
    if (half_reversed > half) {
        half = half_reversed;
        period = other;
    }
    bool periodic = half + period <= length && memcmp(text, text + period, half) == 0;
    if (!periodic) period = (half > length - half ? half : length - half) + 1;
    for (size_t at = 0; at <= count - length;) {
        size_t i = known > half ? known : half;
        while (i < length && text[i] == bytes[at + i]) i++;
        if (i < length) {
            at += i - half + 1;
            known = 0;
            continue;
        }
        i = half;
        while (i > known && text[i - 1] == bytes[at + i - 1]) i--;
        if (i <= known) return bytes + at;
        at += period;
        known = periodic ? length - period : 0;
    }
    return NULL;
}

/* Looks for the first byte, which is fastest if it is rare. A long string that often nearly begins
 * is left to the algorithm that is never slow. */
const char *embla_text_find(const char *bytes, size_t count, const char *text, size_t length)
{
    enum { SHORT = 16, SPARE = 1024 };
    const char *start = bytes;
    size_t compared = 0;
    while (count >= length) {
        const char *hit = memchr(bytes, text[0], count);
        if (!hit) return NULL;
        count -= (size_t)(hit - bytes);
        bytes = hit;
        if (count < length) return NULL;
        if (memcmp(bytes, text, length) == 0) return bytes;
        compared += length;
        if (length > SHORT && compared > SPARE + 4 * (size_t)(bytes - start))
            return find_two_way(bytes, count, text, length);
        bytes++;
        count--;
    }
    return NULL;
}

/* ---- matches ---- */

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
