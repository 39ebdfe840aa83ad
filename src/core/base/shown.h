/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers and words as people read them: "1,234", "3 rows", "8 x 4", and a word in which every
 * byte can be seen. Sentences of the library and of the program then have one form.
 *
 * Nothing reaches a terminal that could move its cursor, hide the text around it or reverse its
 * direction. Such a character is written as \n, \xNN or \uNNNN.
 *
 * Header only, and without headers of the library other than base/utf8.h: the program includes
 * it too (docs/decisions/018).
 */
#ifndef EMBLA_BASE_SHOWN_H
#define EMBLA_BASE_SHOWN_H

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>

#include "base/utf8.h"

/* ---- numbers ---- */

enum { EMBLA_SHOWN_NUMBER = 64 }; /* a buffer size */

/* 1,234,567. Returns text. */
static inline const char *embla_show_commas(int64_t number, char text[EMBLA_SHOWN_NUMBER])
{
    char plain[24];
    int length = snprintf(plain, sizeof plain, "%" PRId64, number);
    int first = number < 0 ? 1 : 0, used = 0;
    for (int i = 0; i < length; i++) {
        if (i > first && (length - i) % 3 == 0) text[used++] = ',';
        text[used++] = plain[i];
    }
    text[used] = '\0';
    return text;
}

/* "3,000 rows", "1 row". Returns text. */
static inline const char *embla_show_count(int64_t number, const char *word,
                                           char text[EMBLA_SHOWN_NUMBER])
{
    char digits[EMBLA_SHOWN_NUMBER];
    (void)snprintf(text, EMBLA_SHOWN_NUMBER, "%.30s %.30s%s", embla_show_commas(number, digits),
                   word, number == 1 ? "" : "s");
    return text;
}

/* "32,000 x 4,096", "512"; "1" without dimensions. Returns text. */
static inline const char *embla_show_shape(const int64_t *shape, size_t rank,
                                           char text[EMBLA_SHOWN_NUMBER])
{
    size_t used = 0;
    (void)snprintf(text, EMBLA_SHOWN_NUMBER, "%s", rank == 0 ? "1" : "");
    for (size_t i = 0; i < rank && used < EMBLA_SHOWN_NUMBER; i++) {
        char digits[EMBLA_SHOWN_NUMBER];
        used += (size_t)snprintf(text + used, EMBLA_SHOWN_NUMBER - used, "%s%.26s",
                                 i > 0 ? " x " : "", embla_show_commas(shape[i], digits));
    }
    return text;
}

/* ---- characters ---- */

/* Control characters, and those that have no width or change the writing direction. */
static inline bool embla_shown_hidden(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},     {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
        {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe000, 0xf8ff}, {0xe0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

/* The length of the UTF-8 character at the start of text. 0 if it is not valid within left bytes,
 * or not printable. */
static inline size_t embla_shown_printable(const char *text, size_t left)
{
    size_t length = embla_utf8_length(text, left);
    return length > 0 && !embla_shown_hidden(embla_utf8_code(text, length)) ? length : 0;
}

/* The columns of a character on a terminal. */
typedef size_t embla_shown_columns(uint32_t code);

enum { EMBLA_SHOWN_CHARACTER = 16 }; /* a buffer size */

/* Writes the printable form of the character or byte at word to out, and its length in word to
 * *used. ascii: escape everything else. Returns its width; columns may be NULL: one for each
 * character. */
static inline size_t embla_show_character(const char *word, size_t left, bool ascii,
                                          embla_shown_columns *columns,
                                          char out[EMBLA_SHOWN_CHARACTER], size_t *used)
{
    size_t length = embla_utf8_length(word, left), shown = embla_shown_printable(word, left);
    uint32_t code = length > 0 ? embla_utf8_code(word, length) : (unsigned char)word[0];
    *used = length > 0 ? length : 1;
    if (code == '\n' || code == '\t' || code == '\r' || code == '\\')
        return (size_t)snprintf(out, EMBLA_SHOWN_CHARACTER, "\\%c",
                                code == '\n'   ? 'n'
                                : code == '\t' ? 't'
                                : code == '\r' ? 'r'
                                               : '\\');
    if (length < 2 && shown == 0)
        return (size_t)snprintf(out, EMBLA_SHOWN_CHARACTER, "\\x%02x", (unsigned)code);
    if (shown == 0 || (ascii && length > 1))
        return (size_t)snprintf(out, EMBLA_SHOWN_CHARACTER, code > 0xffff ? "\\U%08x" : "\\u%04x",
                                (unsigned)code);
    memcpy(out, word, length);
    out[length] = '\0';
    return columns ? columns(code) : 1;
}

/* ---- words ---- */

/* The maximum width of a word in columns, and a buffer size for it. */
enum { EMBLA_SHOWN_WIDTH = 24, EMBLA_SHOWN_WORD = 4 * EMBLA_SHOWN_WIDTH + 16 };

/* Writes a word for people. It is quoted if it contains a space or is empty, and cut with ".." if
 * it is wider than `most` (at most EMBLA_SHOWN_WIDTH). ascii and columns are as above. Returns its
 * width. */
static inline size_t embla_show_word(const char *word, size_t length, bool ascii, size_t most,
                                     embla_shown_columns *columns, char text[EMBLA_SHOWN_WORD])
{
    bool quotes = length == 0 || memchr(word, ' ', length) || word[0] == '"' || word[0] == '#';
    size_t taken = quotes, bytes = quotes, room = quotes + 2; /* "..", and the quote */
    size_t cut_bytes = 0, cut_taken = 0;
    if (most > EMBLA_SHOWN_WIDTH) most = EMBLA_SHOWN_WIDTH;
    if (quotes) text[0] = '"';
    while (length > 0) {
        char piece[EMBLA_SHOWN_CHARACTER];
        size_t used, wide = embla_show_character(word, length, ascii, columns, piece, &used);
        size_t n = strlen(piece);
        if (taken + room <= most) { /* the last position where ".." fits */
            cut_bytes = bytes;
            cut_taken = taken;
        }
        if (taken + wide + quotes > most || bytes + n + 4 > EMBLA_SHOWN_WORD) {
            (void)snprintf(text + cut_bytes, 4, "..%s", quotes ? "\"" : "");
            return cut_taken + room;
        }
        memcpy(text + bytes, piece, n + 1);
        bytes += n;
        taken += wide;
        word += used;
        length -= used;
    }
    (void)snprintf(text + bytes, 2, "%s", quotes ? "\"" : "");
    return taken + quotes;
}

#endif
