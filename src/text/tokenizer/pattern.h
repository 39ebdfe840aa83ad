/* SPDX-License-Identifier: Apache-2.0 */
/* Patterns that a text is cut at or replaced by: a string, a set of characters, or a regular
 * expression. Expressions that real tokenizers have are recognised by their text and run as
 * scanners written by hand (scan_patterns.c). Any other one needs libonig (onig.c).
 */
#ifndef EMBLA_TOKENIZER_PATTERN_H
#define EMBLA_TOKENIZER_PATTERN_H

#include "base/arena.h"
#include "base/byte_text.h"
#include "files/names.h"
#include "tokenizer/strand.h"
#include "unicode/unicode.h"

/* A piece of a text: bytes from begin to end - 1 of valid UTF-8. With `mapped` each byte stands for
 * one character of the alphabet of byte-level tokenizers (embla_byte_code). */
typedef struct {
    const char *bytes;
    size_t begin, end;
    bool mapped;
} embla_piece;

/* The end of the match that begins at `at`; `at` itself if there is none. */
typedef size_t embla_scanner(const embla_piece *piece, size_t at);

typedef enum {
    EMBLA_PATTERN_TEXT,  /* a string */
    EMBLA_PATTERN_CHARS, /* each character that has one of some bits */
    EMBLA_PATTERN_SCAN,  /* an expression with a scanner */
    EMBLA_PATTERN_ONIG   /* an expression for libonig */
} embla_pattern_kind;

typedef struct {
    embla_pattern_kind kind;
    embla_name text;
    uint32_t mask;
    bool ascii[128]; /* for CHARS: whether an ASCII character has one of the bits */
    embla_scanner *scan;
    int first; /* for SCAN: the byte that every match begins with; -1 if there are several */
    void *onig;
} embla_pattern;

/* A pattern of characters that have one of some bits. */
embla_pattern embla_pattern_chars(uint32_t mask);

/* Finds the first match at or after `at`. What libonig does counts as steps. */
EMBLA_CHECKED embla_status embla_pattern_next(const embla_pattern *pattern,
                                              const embla_piece *piece, size_t at,
                                              embla_bound *bound, bool *found, size_t *begin,
                                              size_t *end);
/* Where a string begins in bytes; NULL if it is not there. The string is not empty. */
const char *embla_text_find(const char *bytes, size_t count, const char *text, size_t length);
/* The scanner of a regular expression; NULL if its text is not known. *first is the byte that every
 * match begins with, or -1. */
embla_scanner *embla_scanner_of(const char *text, size_t length, int *first);
/* GPT-2's expression, which ByteLevel uses. */
size_t embla_scan_gpt2(const embla_piece *piece, size_t at);
/* What the pre-tokenizer Whitespace keeps: words, and runs of other characters. */
size_t embla_scan_words(const embla_piece *piece, size_t at);
/* A word by the rule of embla_next_word. */
size_t embla_scan_next_word(const embla_piece *piece, size_t at);

/* onig.c. EMBLA_ERR_UNSUPPORTED if libonig cannot be loaded, EMBLA_ERR_FORMAT if it refuses the
 * expression; name is the file's, for messages. */
EMBLA_CHECKED embla_status embla_onig_new(const char *text, size_t length, const char *name,
                                          void **out);
void embla_onig_free(void *onig);
EMBLA_CHECKED embla_status embla_onig_next(void *onig, const embla_piece *piece, size_t at,
                                           embla_bound *bound, bool *found, size_t *begin,
                                           size_t *end);
/* counted.c: an expression that matches the same and counts its steps. EMBLA_ERR_UNSUPPORTED if it
 * has a part whose time has no bound. */
EMBLA_CHECKED embla_status embla_regex_counted(const char *text, size_t length, const char *name,
                                               embla_arena *arena, const char **out,
                                               size_t *out_length);

/* The character at `at`, and its length. */
static inline uint32_t embla_piece_code(const embla_piece *piece, size_t at, size_t *length)
{
    if (piece->mapped) {
        *length = 1;
        return embla_byte_code((uint8_t)piece->bytes[at]);
    }
    return embla_char_at(piece->bytes + at, length);
}

/* Its bits. */
static inline uint32_t embla_piece_bits(const embla_piece *piece, size_t at, size_t *length)
{
    return embla_char_bits(embla_piece_code(piece, at, length));
}

#endif
