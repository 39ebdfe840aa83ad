/* SPDX-License-Identifier: Apache-2.0 */
/* Text from files and from the command line, made safe to print. base/shown.h has the rules; the
 * width of a character comes from the host.
 */
#include "core/visible.h"

#include <stdint.h>
#include <string.h>

#include "base/shown.h"
#include "host/host.h"

size_t cli_printable(const char *text, size_t left)
{
    return embla_shown_printable(text, left);
}

/* The host knows no character in a locale without UTF-8: each then has one column. */
static size_t columns_of(uint32_t code)
{
    int columns = code > 0x7f ? cli_character_columns(code) : 1;
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

const char *cli_word_of(const embla_vocab *vocab, int64_t number, size_t *length)
{
    *length = 0;
    if (!vocab || number < 0 || number > INT32_MAX) return NULL;
    return embla_vocab_word(vocab, (int32_t)number, length);
}

size_t cli_word_show(const char *word, size_t length, bool ascii, size_t columns,
                     char text[CLI_WORD_TEXT])
{
    return embla_show_word(word, length, ascii, columns, columns_of, text);
}

size_t cli_word_text(const char *word, size_t length, char *out)
{
    size_t bytes = 0;
    while (length > 0) {
        size_t used;
        (void)embla_show_character(word, length, false, columns_of, out + bytes, &used);
        bytes += strlen(out + bytes);
        word += used;
        length -= used;
    }
    return bytes;
}

bool cli_word_write(const char *word, size_t length, FILE *to)
{
    while (length > 0) {
        char piece[EMBLA_SHOWN_CHARACTER];
        size_t used;
        (void)embla_show_character(word, length, false, columns_of, piece, &used);
        if (fputs(piece, to) == EOF) return false;
        word += used;
        length -= used;
    }
    return true;
}
