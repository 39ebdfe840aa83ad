/* SPDX-License-Identifier: Apache-2.0 */
/* Texts of the command line, or lines of a file or of standard input, in batches. A batch ends
 * early when the next line has not arrived yet, so that a verb also answers in a conversation. */
#ifndef CLI_CORE_TEXTS_H
#define CLI_CORE_TEXTS_H

#include "core/args.h"

typedef struct cli_texts cli_texts;

/* Set take, context and field, and zero the rest. */
struct cli_texts {
    /* Handles the texts of a batch. CLI_DONE, or another code after a message. */
    int (*take)(void *context, const cli_texts *batch);
    void *context;
    size_t first;      /* index of the first operand that is a text; 0 means 1 */
    const char *field; /* lines are JSON objects, and the text is this member; NULL: the line */

    const char **texts; /* the batch */
    size_t *lengths;
    size_t count, bytes;

    char *memory;
    size_t room;
};

/* Options of a verb that reads texts. */
#define CLI_TEXTS_FILE                                                                             \
    {                                                                                              \
        .name = "file", .letter = 'f', .value = "FILE", .reads = CLI_READS_LINES,                  \
        .help = "encode each line of FILE as a text; - is standard input"                          \
    }

/* Takes the operands from `first` on, where - means the lines of standard input, then the lines of
 * --file. Without either, the lines of
 * standard input. CLI_DONE, or another code after a message. Call cli_texts_free in any case. */
int cli_texts_read(cli_texts *texts, const cli_args *args);
void cli_texts_free(cli_texts *texts);

/* Finds a string member of a JSON object, and decodes it in place: *text points into line. Returns
 * what is wrong, or NULL. */
const char *cli_json_member(char *line, size_t length, const char *key, char **text,
                            size_t *text_length);

#endif
