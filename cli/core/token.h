/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as people write and read them: words, and `#5` for the token 5.
 *
 * Words come from files and may be any bytes. Nothing of them reaches a terminal that could
 * move its cursor, hide or turn the text around it; what is not shown as it is, is shown
 * as \n, \xNN or \uNNNN, so that every byte of a word can be seen.
 */
#ifndef CLI_CORE_TOKEN_H
#define CLI_CORE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "embla.h"

/* Bytes of the UTF-8 character that text begins with; 0 if none does within left bytes. */
size_t cli_utf8(const char *text, size_t left);
/* The same, but 0 for one that a terminal would not simply show. */
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

/* Words that are not there and are named in one message, at most. */
enum { CLI_MISSING_NAMED = 5 };

/* A list of tokens. Zeroed it is empty; cli_tokens_free empties it. */
typedef struct {
    int64_t *ids;
    size_t count, room;
    size_t missing; /* words that are not in the vocabulary, and the first of them */
    char *missing_words[CLI_MISSING_NAMED];
    size_t missing_lengths[CLI_MISSING_NAMED];
} cli_tokens;

void cli_tokens_free(cli_tokens *tokens);
/* These give the exit code, after a sentence: CLI_USAGE where what was typed is wrong,
 * CLI_FAILED where a word or the memory is not there. */
int cli_tokens_add(cli_tokens *tokens, int64_t id);
/* "2,5,7": numbers with commas or white space between them, one at least, none left out.
 * where names them in messages. */
int cli_tokens_list(cli_tokens *tokens, const char *text, const char *where);
/* One token: a word of vocab (NULL: there are none) or #id; after a backslash, a word. A word
 * that is not there is kept for cli_tokens_finish. */
int cli_tokens_word(cli_tokens *tokens, const embla_vocab *vocab, const char *word, size_t length);
/* One on each line of from: ids, or words and #ids. Lines may end in CR LF. */
int cli_tokens_lines(cli_tokens *tokens, const embla_vocab *vocab, bool ids, FILE *from);
/* After the last: CLI_FAILED, and a sentence, where words were not there. */
int cli_tokens_finish(const cli_tokens *tokens, const embla_vocab *vocab);

#endif
