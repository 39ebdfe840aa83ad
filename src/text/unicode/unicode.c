/* SPDX-License-Identifier: Apache-2.0 */
/* Searches the generated tables. Hangul syllables are computed, as the Unicode standard defines
 * them (3.12). */
#include "unicode/unicode.h"

#include <string.h>

enum {
    HANGUL_FIRST = 0xac00,
    HANGUL_LAST = 0xd7a3,
    LEADING = 0x1100, /* the first leading consonant */
    VOWEL = 0x1161,
    TRAILING = 0x11a7, /* one before the first trailing consonant */
    LEADING_COUNT = 19,
    VOWEL_COUNT = 21,
    TRAILING_COUNT = 28
};

/* Copies the replacement of code from a table with sorted codes; 0 if it has none. */
static size_t find(const uint32_t *codes, const uint16_t *starts, const uint32_t *pool,
                   size_t count, uint32_t code, uint32_t *out)
{
    size_t low = 0, high = count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (codes[middle] < code)
            low = middle + 1;
        else
            high = middle;
    }
    if (low == count || codes[low] != code) return 0;
    size_t length = (size_t)(starts[low + 1] - starts[low]);
    memcpy(out, pool + starts[low], length * sizeof *out);
    return length;
}

size_t embla_char_lower(uint32_t code, uint32_t out[EMBLA_CHAR_EXPANSION])
{
    size_t length = 0;
    if (embla_char_bits(code) & EMBLA_CHAR_HAS_LOWER)
        length = find(embla_unicode_lower_codes, embla_unicode_lower_starts,
                      embla_unicode_lower_pool, embla_unicode_lower_count, code, out);
    if (length == 0) out[length++] = code;
    return length;
}

/* Bytes of a code point in UTF-8. */
static int utf8_bytes(uint32_t code)
{
    return 1 + (code >= 0x80) + (code >= 0x800) + (code >= 0x10000);
}

uint32_t embla_char_lower_in_place(uint32_t code)
{
    uint32_t lower[EMBLA_CHAR_EXPANSION];
    if (code < 0x80) return code >= 'A' && code <= 'Z' ? code + 0x20 : code;
    if (code >= 0x110000) return code;
    bool same = embla_char_lower(code, lower) == 1 && utf8_bytes(lower[0]) == utf8_bytes(code);
    return same ? lower[0] : code;
}

static size_t decompose_hangul(uint32_t code, uint32_t *out)
{
    uint32_t index = code - HANGUL_FIRST, trailing = index % TRAILING_COUNT;
    out[0] = LEADING + index / (VOWEL_COUNT * TRAILING_COUNT);
    out[1] = VOWEL + index / TRAILING_COUNT % VOWEL_COUNT;
    if (trailing == 0) return 2;
    out[2] = TRAILING + trailing;
    return 3;
}

size_t embla_char_decompose(uint32_t code, bool compatible, uint32_t out[EMBLA_CHAR_EXPANSION])
{
    size_t length = 0;
    uint32_t bits = embla_char_bits(code);
    if (code >= HANGUL_FIRST && code <= HANGUL_LAST) return decompose_hangul(code, out);
    if (compatible && (bits & EMBLA_CHAR_HAS_NFKD))
        length = find(embla_unicode_nfkd_codes, embla_unicode_nfkd_starts, embla_unicode_nfkd_pool,
                      embla_unicode_nfkd_count, code, out);
    if (length == 0 && (bits & EMBLA_CHAR_HAS_NFD))
        length = find(embla_unicode_nfd_codes, embla_unicode_nfd_starts, embla_unicode_nfd_pool,
                      embla_unicode_nfd_count, code, out);
    if (length == 0) out[length++] = code;
    return length;
}

/* -1, 0 or 1: how pair a, b compares with row i of the table. */
static int compare_pair(size_t i, uint32_t a, uint32_t b)
{
    const uint32_t *pair = embla_unicode_pairs + i * 3;
    if (pair[0] != a) return a < pair[0] ? -1 : 1;
    return b == pair[1] ? 0 : b < pair[1] ? -1 : 1;
}

uint32_t embla_char_compose(uint32_t first, uint32_t second)
{
    size_t low = 0, high = embla_unicode_pair_count;
    if (first - LEADING < LEADING_COUNT && second - VOWEL < VOWEL_COUNT)
        return HANGUL_FIRST + ((first - LEADING) * VOWEL_COUNT + (second - VOWEL)) * TRAILING_COUNT;
    if (first >= HANGUL_FIRST && first <= HANGUL_LAST &&
        (first - HANGUL_FIRST) % TRAILING_COUNT == 0 && second > TRAILING &&
        second < TRAILING + TRAILING_COUNT)
        return first + (second - TRAILING);
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        int order = compare_pair(middle, first, second);
        if (order == 0) return embla_unicode_pairs[middle * 3 + 2];
        if (order < 0)
            high = middle;
        else
            low = middle + 1;
    }
    return 0;
}

unsigned embla_char_script(uint32_t code)
{
    size_t low = 0, high = embla_script_count; /* the range is low or after it, and before high */
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (embla_script_starts[middle] <= code)
            low = middle;
        else
            high = middle;
    }
    return embla_script_numbers[low];
}
