/* SPDX-License-Identifier: Apache-2.0 */
/* Traces in npy files: the row numbers, or the tokens, of a text. */
#ifndef CLI_VERBS_TRACE_FILE_H
#define CLI_VERBS_TRACE_FILE_H

#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t *rows;          /* the caller frees them */
    size_t count;           /* row numbers that were read */
    size_t tokens, columns; /* the shape of the file; columns is 1 if it has one dimension */
} cli_trace;

/* Reads an npy file of integers with 1 or 2 dimensions, at most `most` of them. CLI_DONE, or
 * CLI_FAILED after a message. */
int cli_trace_read(const char *path, size_t most, cli_trace *out);

#endif
