/* SPDX-License-Identifier: Apache-2.0 */
/* loss.csv: a line for every step of a training.
 *
 *   step,loss,validation,rate,norm,tokens,seconds
 *
 * Lines are gathered in memory and written now and then, always before a checkpoint: a training
 * that goes on from one finds all lines before it, cuts off those behind it, and ends with the
 * same file. What could not be written stays in memory and is tried again.
 */
#ifndef CLI_TRAIN_TRAIN_LOG_H
#define CLI_TRAIN_TRAIN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t step;
    double loss, validation; /* validation: NaN where it was not measured */
    double rate, norm;
    int64_t tokens;
    double seconds; /* of all steps up to this one */
} cli_log_line;

typedef struct {
    int file; /* -1: none */
    char *path;
    char *text; /* what is not written yet */
    size_t used, room;
} cli_log;

/* Opens folder/loss.csv, made if it is missing, which no other process may have open so.
 * CLI_DONE, or CLI_FAILED after a sentence. */
int cli_log_open(const char *folder, cli_log *out);
/* Keeps the lines of steps below step, each given to take, and cuts off the rest; writes the
 * header where it is missing. */
int cli_log_cut(cli_log *log, int64_t step, void (*take)(void *context, const cli_log_line *),
                void *context);
/* False: there is no memory for it. */
bool cli_log_add(cli_log *log, const cli_log_line *line);
/* Writes what was added. False, and errno, if not all of it could be. sure: to the disk. */
bool cli_log_flush(cli_log *log, bool sure);
void cli_log_close(cli_log *log);

/* Each line of the file at path, from its first. False, and errno, if it cannot be read; a line
 * that is none ends it. Returns in *end (may be NULL) the bytes that were understood, header
 * included; 0: it has none. */
bool cli_log_read(const char *path, int64_t below,
                  void (*take)(void *context, const cli_log_line *), void *context, int64_t *end);

#endif
