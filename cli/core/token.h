/* SPDX-License-Identifier: Apache-2.0 */
/* Tokens as users type them: words, and `#5` for token 5. */
#ifndef CLI_CORE_TOKEN_H
#define CLI_CORE_TOKEN_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

#include "core/line_input.h"
#include "core/model.h"

/* Maximum number of missing words in one message. */
enum { CLI_MISSING_NAMED = 5 };

/* Words that a vocabulary does not have, but whose vectors come from their n-grams. Word n is token
 * CLI_UNSEEN - n, a number that nobody types. */
#define CLI_UNSEEN INT64_C(-7777777777777777777)
typedef struct {
    char **words;
    size_t count;
} cli_unseen;

/* The word of such a token; NULL for every other token. */
static inline const char *cli_unseen_word(const cli_unseen *unseen, int64_t token)
{
    uint64_t n = (uint64_t)CLI_UNSEEN - (uint64_t)token;
    return n < unseen->count ? unseen->words[n] : NULL;
}

/* A list of tokens. Zeroed it is empty; cli_tokens_free empties it. */
typedef struct {
    int64_t *ids;
    size_t count, room;
    cli_unseen *unseen; /* where missing words go; NULL means that they are an error */
    const cli_model
        *texts;     /* whose tokenizer cuts what is no word; NULL means that it is an error */
    bool notes;     /* note on stderr how a tokenizer cuts a word */
    bool whole;     /* a text of several tokens is one entry of `unseen`, not one for each token */
    bool strict;    /* an unknown word is an error; otherwise it is skipped.. */
    size_t least;   /* .. if so many others are known; 0 means 1 */
    bool split;     /* the list is one item, so all its words may be on one line of an input */
    size_t missing; /* number of words not in the vocabulary; the first are kept */
    char *missing_words[CLI_MISSING_NAMED];
    size_t missing_lengths[CLI_MISSING_NAMED];
} cli_tokens;

void cli_tokens_free(cli_tokens *tokens);
/* These return CLI_DONE, or after a message CLI_USAGE (wrong input) or CLI_FAILED (a missing word,
 * no memory). */
int cli_tokens_add(cli_tokens *tokens, int64_t id);
/* Parses "2,5,7": at least one number, separated by commas or white space, without empty entries.
 * where names the list in messages. */
int cli_tokens_list(cli_tokens *tokens, const char *text, const char *where);
/* Appends one token: a word of vocab (may be NULL) or #id; after a backslash always a word. What is
 * neither is text for the tokenizer of `texts`. A missing word is kept for cli_tokens_finish. */
int cli_tokens_word(cli_tokens *tokens, const embla_vocab *vocab, const char *word, size_t length);
/* Adds a line that the caller has read from `from`: only ids, or a word or #id. */
int cli_tokens_line(cli_tokens *tokens, const embla_vocab *vocab, bool ids, const char *line,
                    size_t length, const cli_lines *from);
/* Adds all lines of standard input in the same way. Lines may end in CR LF. */
int cli_tokens_lines(cli_tokens *tokens, const embla_vocab *vocab, bool ids);
/* Adds the tokens of an option: words or #id, separated by commas, or one on each line of the file
 * with "@FILE", or of standard input with "-". where names the option in messages. */
int cli_tokens_words(cli_tokens *tokens, const embla_vocab *vocab, const char *text,
                     const char *where);
/* Call it after the last token. If words are missing: CLI_DONE after a note if enough other
 * tokens are known and the list is not strict; the exit code of the program is then CLI_WANTING.
 * Otherwise CLI_FAILED after a message. */
int cli_tokens_finish(const cli_tokens *tokens, const embla_vocab *vocab);
/* Notes the missing words, if any, also if no other token is known. */
void cli_tokens_skip(const cli_tokens *tokens, const embla_vocab *vocab);
/* Whether a command has skipped words since the last call. */
bool cli_skipped_any(void);

#endif
