/* SPDX-License-Identifier: Apache-2.0 */
/* Cuts a text into words. The rule needs no tables of Unicode: most characters from U+00C0 on are
 * letters, and the blocks of punctuation and symbols are listed. A tokenizer.json states the same
 * rule as a regular expression (model/gpt_save.c), so other programs cut a text alike.
 */
#include "unicode/cut.h"

#include "base/utf8.h"

typedef enum { SEPARATOR, LETTER, APOSTROPHE, SINGLE } kind;

/* Blocks from U+00C0 on whose characters are no letters. */
static const struct {
    uint32_t first, last;
} symbols[] = {{0xd7, 0xd7},     {0xf7, 0xf7},     {0x2000, 0x2bff},  {0x3000, 0x303f},
               {0xfe10, 0xfe6f}, {0xff00, 0xff0f}, {0x1f000, 0x1faff}};

/* White space above ASCII, as Unicode has it, and the control characters. */
static bool is_separator(uint32_t code)
{
    return (code >= 0x7f && code <= 0xa0) || (code >= 0x2000 && code <= 0x200a) || code == 0x2028 ||
           code == 0x2029 || code == 0x202f || code == 0x205f || code == 0x3000;
}

static kind kind_of_code(uint32_t code)
{
    if (code == 0x2019) return APOSTROPHE;
    if (is_separator(code)) return SEPARATOR;
    if (code < 0xc0) return SINGLE;
    for (size_t i = 0; i < sizeof symbols / sizeof symbols[0]; i++)
        if (code >= symbols[i].first && code <= symbols[i].last) return SINGLE;
    return LETTER;
}

/* The kind of the character at text and its length in bytes; left is at least 1. */
static kind kind_at(const char *text, size_t left, size_t *length)
{
    unsigned char c = (unsigned char)text[0];
    *length = 1;
    if ((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9')) return LETTER;
    if (c == '\'') return APOSTROPHE;
    if (c == '\n') return SINGLE;
    if (c <= ' ' || c == 0x7f) return SEPARATOR;
    if (c < 0x80) return SINGLE;
    *length = embla_utf8_length(text, left);
    if (*length > 0) return kind_of_code(embla_utf8_code(text, *length));
    *length = 1;
    return SINGLE;
}

size_t embla_run_length(const char *text, size_t length, bool *letters)
{
    size_t used = 0, at = 0;
    *letters = kind_at(text, length, &at) == LETTER;
    while (*letters && at < length && kind_at(text + at, length - at, &used) == LETTER) at += used;
    return at;
}

/* The end of the word that begins with the letters text[0 .. at-1]. */
static size_t end_of_word(const char *text, size_t length, size_t at)
{
    while (at < length) {
        size_t used, next;
        kind found = kind_at(text + at, length - at, &used);
        if (found == APOSTROPHE && at + used < length &&
            kind_at(text + at + used, length - at - used, &next) == LETTER)
            used += next;
        else if (found != LETTER)
            break;
        at += used;
    }
    return at;
}

size_t embla_next_word(const char *text, size_t length, const char **word)
{
    for (size_t at = 0, used; at < length; at += used) {
        kind found = kind_at(text + at, length - at, &used);
        if (found == SEPARATOR) continue;
        *word = text + at;
        return found == LETTER ? end_of_word(text + at, length - at, used) : used;
    }
    return 0;
}
