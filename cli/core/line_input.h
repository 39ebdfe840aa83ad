/* SPDX-License-Identifier: Apache-2.0 */
/* Lines of standard input or of a file. They are returned as they arrive, so that a verb can answer
 * each before the next comes. */
#ifndef CLI_CORE_LINE_INPUT_H
#define CLI_CORE_LINE_INPUT_H

#include <stdbool.h>
#include <stddef.h>

#include "system/system.h"

/* Zeroed it reads standard input. */
typedef struct {
    embla_handle file;
    const char *name; /* of the file, in messages; NULL means standard input */
    char *bytes;
    size_t at, used, room; /* bytes at .. used - 1 were read and not yet returned */
    size_t number;         /* of the last line, from 1 */
    bool ended;
} cli_lines;

typedef enum {
    CLI_LINE,        /* *line has *length bytes, without its line end, and a zero after them */
    CLI_LINE_LATER,  /* the next line has not arrived; only without wait */
    CLI_LINE_NONE,   /* the input has ended */
    CLI_LINE_FAILED, /* after a message */
} cli_line_status;

/* Opens a file, which may be compressed; - is standard input. CLI_DONE, or CLI_FAILED after a
 * message. Call cli_lines_free in any case. */
int cli_lines_open(cli_lines *lines, const char *path);
/* The name of the file, or "standard input". */
const char *cli_lines_name(const cli_lines *lines);
/* The next line. It is valid until the next call. wait: wait until there is one. */
cli_line_status cli_lines_next(cli_lines *lines, bool wait, char **line, size_t *length);
void cli_lines_free(cli_lines *lines);

#endif
