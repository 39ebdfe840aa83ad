/* SPDX-License-Identifier: Apache-2.0 */
/* Text that may hold any bytes, printed so that a terminal shows all of it.
 *
 * Nothing reaches a terminal that could move its cursor, hide the text around it or reverse its
 * direction. Such a character is printed as \n, \xNN or \uNNNN, so that every byte can be seen.
 */
#ifndef CLI_CORE_VISIBLE_H
#define CLI_CORE_VISIBLE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdio.h>

#include "base/shown.h"
#include "embla.h"

/* The length of the UTF-8 character at the start of text. 0 if it is not valid within left bytes,
 * or not printable. */
size_t cli_printable(const char *text, size_t left);

/* The columns that printable UTF-8 text takes on a terminal. Call cli_utf8_wanted first: the locale
 * decides. */
size_t cli_columns(const char *text);

/* The maximum width of a word in columns, and a buffer size for it. */
enum { CLI_WORD_COLUMNS = EMBLA_SHOWN_WIDTH, CLI_WORD_TEXT = EMBLA_SHOWN_WORD };

/* The word of token `number`. NULL if there is none, or if vocab is NULL. */
const char *cli_word_of(const embla_vocab *vocab, int64_t number, size_t *length);
/* Formats a word for people. It is quoted if it contains a space or is empty, and cut with ".." if
 * it is wider than columns (at most CLI_WORD_COLUMNS). ascii: escape everything else. Returns its
 * width in columns. */
size_t cli_word_show(const char *word, size_t length, bool ascii, size_t columns,
                     char text[CLI_WORD_TEXT]);
/* Writes a word for programs: backslashes, tabs, line ends and unprintable characters are escaped.
 * False after a write error. */
bool cli_word_write(const char *word, size_t length, FILE *to);
/* The same to memory: at most EMBLA_SHOWN_CHARACTER bytes for each of the word, and a 0. Returns
 * the bytes before it. */
size_t cli_word_text(const char *word, size_t length, char *out);

#endif
