/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files and from the command line, made safe to print.
 */
#include "core/visible.h"

#include <stdint.h>
#include <string.h>
#include <wchar.h>

#include "base/utf8.h"

/* ---- characters ---- */

/* Control characters, and those that have no width or change the writing direction. */
static bool is_hidden(uint32_t code)
{
    static const uint32_t ranges[][2] = {
        {0x0, 0x1f},      {0x7f, 0x9f},     {0xad, 0xad},     {0x61c, 0x61c},     {0x180e, 0x180e},
        {0x200b, 0x200f}, {0x2028, 0x202e}, {0x2060, 0x206f}, {0xfe00, 0xfe0f},   {0xfeff, 0xfeff},
        {0xfff0, 0xfffb}, {0xfffe, 0xffff}, {0xe000, 0xf8ff}, {0xe0000, 0x10ffff}};
    for (size_t i = 0; i < sizeof ranges / sizeof ranges[0]; i++)
        if (code >= ranges[i][0] && code <= ranges[i][1]) return true;
    return false;
}

size_t cli_printable(const char *text, size_t left)
{
    size_t length = embla_utf8_length(text, left);
    return length > 0 && !is_hidden(embla_utf8_code(text, length)) ? length : 0;
}

/* wcwidth knows no character in a locale without UTF-8: each then has one column. */
static size_t columns_of(uint32_t code)
{
    int columns = code > 0x7f ? wcwidth((wchar_t)code) : 1;
    return columns >= 0 ? (size_t)columns : 1;
}

size_t cli_columns(const char *text)
{
    size_t columns = 0;
    for (size_t left = strlen(text), length; left > 0; text += length, left -= length) {
        length = embla_utf8_length(text, left);
        columns += length > 0 ? columns_of(embla_utf8_code(text, length)) : 1;
        if (length == 0) length = 1;
    }
    return columns;
}

/* ---- words ---- */

/* Writes the printable form of the character or byte at word to out, and its length in word to
 * *used. Returns its width in columns. */
static size_t escape_character(const char *word, size_t left, bool ascii, char out[16],
                               size_t *used)
{
    size_t length = embla_utf8_length(word, left), shown = cli_printable(word, left);
    uint32_t code = length > 0 ? embla_utf8_code(word, length) : (unsigned char)word[0];
    *used = length > 0 ? length : 1;
    if (code == '\n' || code == '\t' || code == '\r' || code == '\\')
        return (size_t)snprintf(out, 16, "\\%c",
                                code == '\n'   ? 'n'
                                : code == '\t' ? 't'
                                : code == '\r' ? 'r'
                                               : '\\');
    if (length < 2 && shown == 0) return (size_t)snprintf(out, 16, "\\x%02x", (unsigned)code);
    if (shown == 0 || (ascii && length > 1))
        return (size_t)snprintf(out, 16, code > 0xffff ? "\\U%08x" : "\\u%04x", (unsigned)code);
    memcpy(out, word, length);
    out[length] = '\0';
    return columns_of(code);
}

const char *cli_word_of(const embla_vocab *vocab, int64_t number, size_t *length)
{
    *length = 0;
    if (!vocab || number < 0 || number > INT32_MAX) return NULL;
    return embla_vocab_word(vocab, (int32_t)number, length);
}

size_t cli_word_show(const char *word, size_t length, bool ascii, size_t columns,
                     char text[CLI_WORD_TEXT])
{
    bool quotes = length == 0 || memchr(word, ' ', length) || word[0] == '"' || word[0] == '#';
    size_t taken = quotes, bytes = quotes, room = quotes + 2; /* "..", and the quote */
    size_t cut_bytes = 0, cut_taken = 0;
    if (columns > CLI_WORD_COLUMNS) columns = CLI_WORD_COLUMNS;
    if (quotes) text[0] = '"';
    while (length > 0) {
        char piece[16];
        size_t used, wide = escape_character(word, length, ascii, piece, &used), n = strlen(piece);
        if (taken + room <= columns) { /* the last position where ".." fits */
            cut_bytes = bytes;
            cut_taken = taken;
        }
        if (taken + wide + quotes > columns || bytes + n + 4 > CLI_WORD_TEXT) {
            snprintf(text + cut_bytes, 4, "..%s", quotes ? "\"" : "");
            return cut_taken + room;
        }
        memcpy(text + bytes, piece, n + 1);
        bytes += n;
        taken += wide;
        word += used;
        length -= used;
    }
    snprintf(text + bytes, 2, "%s", quotes ? "\"" : "");
    return taken + quotes;
}

bool cli_word_write(const char *word, size_t length, FILE *to)
{
    while (length > 0) {
        char piece[16];
        size_t used;
        (void)escape_character(word, length, false, piece, &used);
        if (fputs(piece, to) == EOF) return false;
        word += used;
        length -= used;
    }
    return true;
}
