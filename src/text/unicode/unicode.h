/* SPDX-License-Identifier: Apache-2.0 */
/* What tokenizers need to know about a character: sets, lower case, decomposition, composition.
 *
 * The tables are facts about Hugging Face's tokenizers library, measured for every code point. It
 * uses several versions of Unicode at once, so "punctuation" and "number" mean something else in
 * each of its parts; each bit says whose meaning it has. make_unicode.py writes the tables:
 *
 *   blocks[code / 256]             the number of a block of 256 code points
 *   cells[block * 256 + code % 256] the number of a kind of character
 *   kinds[..]                      its bits, and its combining class in the upper 8 bits
 */
#ifndef EMBLA_UNICODE_UNICODE_H
#define EMBLA_UNICODE_UNICODE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

enum {
    EMBLA_CHAR_WHITE = 1 << 0,        /* Rust's is_whitespace */
    EMBLA_CHAR_PUNCT = 1 << 1,        /* punctuation of BertPreTokenizer and Punctuation */
    EMBLA_CHAR_BERT_REMOVED = 1 << 2, /* BertNormalizer's clean_text drops it */
    EMBLA_CHAR_BERT_SPACE = 1 << 3,   /* clean_text makes it a space */
    EMBLA_CHAR_BERT_HAN = 1 << 4,     /* handle_chinese_chars puts spaces around it */
    EMBLA_CHAR_BERT_ACCENT = 1 << 5,  /* BertNormalizer's strip_accents drops it */
    EMBLA_CHAR_ACCENT = 1 << 6,       /* StripAccents drops it */
    EMBLA_CHAR_NUMERIC = 1 << 7,      /* Rust's is_numeric: the pre-tokenizer Digits */
    EMBLA_CHAR_LETTER = 1 << 8,       /* \p{L} of regular expressions */
    EMBLA_CHAR_NUMBER = 1 << 9,       /* \p{N} */
    EMBLA_CHAR_SPACE = 1 << 10,       /* \s */
    EMBLA_CHAR_UPPER = 1 << 11,       /* \p{Lu} \p{Lt} \p{Lm} \p{Lo} \p{M} */
    EMBLA_CHAR_LOWER = 1 << 12,       /* \p{Ll} \p{Lm} \p{Lo} \p{M} */
    EMBLA_CHAR_MARK = 1 << 13,        /* \p{M} */
    EMBLA_CHAR_SYMBOL = 1 << 14,      /* \p{P} \p{S} */
    EMBLA_CHAR_WORD = 1 << 15,        /* \w of Rust's regular expressions */
    EMBLA_CHAR_JOINS = 1 << 16,       /* belongs to the grapheme cluster before it */
    EMBLA_CHAR_PREPEND = 1 << 17,     /* belongs to the grapheme cluster after it */
    EMBLA_CHAR_HAS_LOWER = 1 << 18,
    EMBLA_CHAR_HAS_NFD = 1 << 19,
    EMBLA_CHAR_HAS_NFKD = 1 << 20,
    EMBLA_CHAR_NFC_INERT = 1 << 21,  /* a text of such characters alone is its own NFC */
    EMBLA_CHAR_NFKC_INERT = 1 << 22, /* the same for NFKC */
    EMBLA_CHAR_SECOND = 1 << 23      /* can compose with the character before it */
};

extern const uint32_t embla_unicode_kinds[];
extern const uint8_t embla_unicode_blocks[], embla_unicode_cells[];

/* The bits of a code point below 0x110000, and its combining class times 2^24. */
static inline uint32_t embla_char_bits(uint32_t code)
{
    return embla_unicode_kinds[embla_unicode_cells[embla_unicode_blocks[code >> 8] * 256u +
                                                   (code & 255)]];
}

static inline unsigned embla_char_class(uint32_t bits)
{
    return bits >> 24;
}

/* The most code points that one character becomes. */
enum { EMBLA_CHAR_EXPANSION = 18 };

/* Writes what one character becomes, and returns the number of code points: 1 to
 * EMBLA_CHAR_EXPANSION. */
size_t embla_char_lower(uint32_t code, uint32_t out[EMBLA_CHAR_EXPANSION]);
/* The lower case of a character, for text that is changed in place: the character itself if its
 * lower case is several code points, or has another number of bytes in UTF-8. */
EMBLA_PRIVATE uint32_t embla_char_lower_in_place(uint32_t code);
/* Canonical decomposition, or with `compatible` the compatibility decomposition. */
size_t embla_char_decompose(uint32_t code, bool compatible, uint32_t out[EMBLA_CHAR_EXPANSION]);
/* The composition of two characters; 0 if they do not compose. */
uint32_t embla_char_compose(uint32_t first, uint32_t second);

/* The script of a character, as a number; 0 means that it belongs to every script. Hiragana and
 * Katakana are Han. */
unsigned embla_char_script(uint32_t code);

/* ---- the generated tables ---- */

extern const uint32_t embla_unicode_lower_pool[], embla_unicode_lower_codes[];
extern const uint32_t embla_unicode_nfd_pool[], embla_unicode_nfd_codes[];
extern const uint32_t embla_unicode_nfkd_pool[], embla_unicode_nfkd_codes[];
extern const uint16_t embla_unicode_lower_starts[], embla_unicode_nfd_starts[],
    embla_unicode_nfkd_starts[];
extern const size_t embla_unicode_lower_count, embla_unicode_nfd_count, embla_unicode_nfkd_count;
extern const uint32_t embla_unicode_pairs[]; /* first, second, composed; first ..; sorted */
extern const size_t embla_unicode_pair_count;
/* script_tables.c: the first code point of each range, ascending, and its script. */
extern const uint32_t embla_script_starts[];
extern const uint8_t embla_script_numbers[];
extern const size_t embla_script_count;

#endif
