/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a prompt to tokens, and tokens to text as they arrive.
 *
 * Both are done by the tokenizer. Whole words (train --words) have no spaces, so a text gets them
 * back by a rule: one between two words, but none before a comma and the like. A model without a
 * tokenizer speaks in token numbers.
 */
#ifndef CLI_CORE_SPEAK_H
#define CLI_CORE_SPEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "embla_train.h"

#include "core/model.h"

typedef enum {
    CLI_SPEAK_NUMBERS = 0, /* no tokenizer: token numbers */
    CLI_SPEAK_TEXT = 1,    /* by the decoder of the tokenizer */
    CLI_SPEAK_WORDS = 2    /* whole words */
} cli_speak_style;

typedef struct {
    const embla_tokenizer *tokenizer; /* NULL means token numbers */
    embla_tokenized *tokenized;
    cli_speak_style style;
    int64_t tokens;  /* vocabulary size of the model */
    int32_t unknown; /* the token of what is not in the vocabulary; -1 means none */
    bool quiet;      /* no note about a prompt with unknown tokens */
    embla_text_ends ends;
    bool lines;        /* a text may contain line ends */
    const char *where; /* of a prompt, in messages: "--prompt" */
} cli_speaker;

/* Speaks with a tokenizer and its embla_tokenized, which the caller keeps; NULL means token
 * numbers. */
void cli_speaker_of_tokenizer(const embla_tokenizer *tokenizer, embla_tokenized *tokenized,
                              int64_t tokens, cli_speaker *out);
/* The same for a model, with the tokens that begin and end a text. */
void cli_speaker_of(const cli_model *model, int64_t tokens, cli_speaker *out);
/* Whether token ends a text. */
bool cli_speaker_ends(const cli_speaker *speaker, int32_t token);

/* Converts a prompt to tokens, with BOS if the model uses one. text NULL means BOS, or token 0. A
 * note names the first word that became the unknown token. The caller frees *out. CLI_DONE, or the
 * exit code after a message. */
int cli_speaker_prompt(const cli_speaker *speaker, const char *text, int32_t **out, size_t *count);

/* A growing text, and how much of it was printed. Start with zeros; cli_said_free at the end. */
typedef struct {
    char *bytes; /* valid UTF-8 */
    size_t count, room, printed;
    const char *error;              /* after a failure: a sentence */
    embla_detokenizer *detokenizer; /* NULL before the first token that it is needed for */
} cli_said;

/* Appends the text of token, which follows token before (-1 means none). False after a failure. */
bool cli_said_add(cli_said *said, const cli_speaker *speaker, int32_t before, int32_t token);
/* Appends what was held back, at the end of a text. False after a failure. */
bool cli_said_end(cli_said *said, const cli_speaker *speaker);
/* Prints the new text. shown: escape control characters except line ends and tabs. */
void cli_said_print(cli_said *said, bool shown, FILE *to);
void cli_said_free(cli_said *said);

#endif
