/* SPDX-License-Identifier: Apache-2.0 */
/* What a model is told and what it says: a prompt becomes tokens, tokens become text.
 *
 * A vocabulary says by its words how it writes text (docs/train.md): characters as they are,
 * GPT-2's letters for bytes, or SentencePiece's pieces with their mark for a space. There is no
 * tokenizer here: what a prompt has is joined as byte-pair merges do, the lowest token first.
 */
#ifndef CLI_CORE_SPEAK_H
#define CLI_CORE_SPEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/model.h"

typedef enum {
    CLI_SPEAK_NUMBERS = 0, /* there are no words */
    CLI_SPEAK_PLAIN = 1,   /* a word is its text: characters, words of llm.c */
    CLI_SPEAK_BYTES = 2,   /* a letter of a word stands for a byte, as GPT-2 has it */
    CLI_SPEAK_PIECES = 3   /* SentencePiece: "<0x0A>" is a byte, U+2581 or ' ' a space */
} cli_speak_style;

enum { CLI_SPEAK_ENDS = 16 };

typedef struct {
    const embla_vocab *vocab; /* NULL: numbers */
    cli_speak_style style;
    int64_t tokens; /* of the model */
    int32_t bos;    /* -1: there is none */
    bool leads;     /* BOS stands before a prompt too */
    bool marked;    /* pieces: a space is U+2581 */
    bool lines;     /* a text may have line ends in it */
    int32_t ends[CLI_SPEAK_ENDS];
    size_t end_count;
} cli_speaker;

/* How the model of tokens rows speaks. Its vocabulary stays the model's. */
void cli_speaker_of(const cli_model *model, int64_t tokens, cli_speaker *out);
/* Whether a text ends with this token. */
bool cli_speaker_ends(const cli_speaker *speaker, int32_t token);

/* The tokens of a prompt, BOS before them where it belongs; NULL: BOS, or token 0. *out is the
 * caller's, to be freed. CLI_DONE, or the exit code after a sentence. */
int cli_speaker_prompt(const cli_speaker *speaker, const char *text, int32_t **out, size_t *count);

/* Text that grows, and how much of it was printed. Zeroed it is empty; bytes are to be freed. */
typedef struct {
    char *bytes;
    size_t count, room, printed;
} cli_said;

/* The text of token, after token before (-1: it is the first), is added. False: no memory. */
bool cli_said_add(cli_said *said, const cli_speaker *speaker, int32_t before, int32_t token);
/* Prints what is new, whole characters only, U+FFFD for bytes that are none; last: nothing more
 * comes. shown: nothing that would move a terminal's cursor, but line ends and tabs. */
void cli_said_print(cli_said *said, bool last, bool shown, FILE *to);

#endif
