/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as people write them: words, and `#5` for the token 5. */
#ifndef CLI_CORE_TOKEN_H
#define CLI_CORE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "embla.h"

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
