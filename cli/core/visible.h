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

#include "embla.h"

/* Bytes of the UTF-8 character that text begins with, or 0: there is none within left bytes, or a
 * terminal would not simply show it. */
size_t cli_printable(const char *text, size_t left);

/* Columns that a word may take in a picture, and bytes that hold them with an end. */
enum { CLI_WORD_COLUMNS = 24, CLI_WORD_TEXT = 4 * CLI_WORD_COLUMNS + 16 };

/* The word of a token or of a row with its number; NULL if there is none, or no vocab. */
const char *cli_word_of(const embla_vocab *vocab, int64_t number, size_t *length);
/* For people: quoted where it holds a space or is empty, and cut with ".." where it takes
 * more than columns (at most CLI_WORD_COLUMNS). ascii: nothing but ASCII. Returns the
 * columns it takes. */
size_t cli_word_show(const char *word, size_t length, bool ascii, size_t columns,
                     char text[CLI_WORD_TEXT]);
/* For programs: a backslash, tab, line end and what is not printable are escaped, all else
 * is as it is. False if it could not be written. */
bool cli_word_write(const char *word, size_t length, FILE *to);

#endif
