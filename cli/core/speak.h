/* SPDX-License-Identifier: Apache-2.0 */
/* Converts a prompt to tokens, and tokens to text.
 *
 * The words of a vocabulary show how it encodes text (docs/train.md): as characters, with GPT-2's
 * letters for bytes, as SentencePiece pieces with a mark for a space, or as whole words. There is
 * no full tokenizer: a prompt is cut into words, or merged like byte pairs, the lowest token first.
 */
#ifndef CLI_CORE_SPEAK_H
#define CLI_CORE_SPEAK_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/model.h"

typedef enum {
    CLI_SPEAK_NUMBERS = 0, /* no vocabulary: token numbers */
    CLI_SPEAK_PLAIN = 1,   /* a word is its own text: characters, words of llm.c */
    CLI_SPEAK_BYTES = 2,   /* each letter of a word stands for a byte, as in GPT-2 */
    CLI_SPEAK_PIECES = 3,  /* SentencePiece: "<0x0A>" is a byte, U+2581 or ' ' a space */
    CLI_SPEAK_WORDS = 4    /* whole words of embla_next_word, and one for unknown words */
} cli_speak_style;

enum { CLI_SPEAK_ENDS = 16 };

typedef struct {
    const embla_vocab *vocab; /* NULL means token numbers */
    cli_speak_style style;
    int64_t tokens;  /* vocabulary size of the model */
    int32_t bos;     /* -1 means none */
    bool leads;      /* BOS also precedes a prompt */
    bool marked;     /* pieces: a space is U+2581 */
    bool lines;      /* a text may contain line ends */
    int32_t unknown; /* words: the token of unknown words */
    int32_t ends[CLI_SPEAK_ENDS];
    size_t end_count;
} cli_speaker;

/* Detects how a vocabulary encodes text; NULL means token numbers. The caller keeps it. */
void cli_speaker_of_vocab(const embla_vocab *vocab, int64_t tokens, cli_speaker *out);
/* The same for a model, with the tokens that begin and end a text. */
void cli_speaker_of(const cli_model *model, int64_t tokens, cli_speaker *out);
/* Whether token ends a text. */
bool cli_speaker_ends(const cli_speaker *speaker, int32_t token);

/* Converts a prompt to tokens, with BOS if the model uses one. text NULL means BOS, or token 0. The
 * caller frees *out. CLI_DONE, or the exit code after a message. */
int cli_speaker_prompt(const cli_speaker *speaker, const char *text, int32_t **out, size_t *count);

/* A growing text, and how much of it was printed. Start with zeros; free bytes at the end. */
typedef struct {
    char *bytes;
    size_t count, room, printed;
} cli_said;

/* Appends the text of token, which follows token before (-1 means none). False if there is no
 * memory. */
bool cli_said_add(cli_said *said, const cli_speaker *speaker, int32_t before, int32_t token);
/* Prints the new text in whole characters, U+FFFD for invalid bytes. last: no more text follows.
 * shown: escape control characters except line ends and tabs. */
void cli_said_print(cli_said *said, bool last, bool shown, FILE *to);

#endif
