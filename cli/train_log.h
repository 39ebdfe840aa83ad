/* SPDX-License-Identifier: Apache-2.0 */
/* loss.csv: a line for every step of a training.
 *
 *   step,loss,validation,rate,norm,tokens,seconds
 *
 * Lines are gathered in memory and written now and then, always before a checkpoint: a training
 * that goes on from one finds all lines before it, cuts off those behind it, and ends with the
 * same file. What could not be written stays in memory and is tried again.
 */
#ifndef EMBLA_CLI_TRAIN_LOG_H
#define EMBLA_CLI_TRAIN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    int64_t step;
    double loss, validation; /* validation: NaN where it was not measured */
    double rate, norm;
    int64_t tokens;
    double seconds; /* of all steps up to this one */
} embla_log_line;

typedef struct {
    int file; /* -1: none */
    char *path;
    char *text; /* what is not written yet */
    size_t used, room;
} embla_log;

/* Opens folder/loss.csv, made if it is missing, which no other process may have open so.
 * EMBLA_DONE, or EMBLA_FAILED after a sentence. */
int embla_log_open(const char *folder, embla_log *out);
/* Keeps the lines of steps below step, each given to take, and cuts off the rest; writes the
 * header where it is missing. */
int embla_log_cut(embla_log *log, int64_t step, void (*take)(void *context, const embla_log_line *),
                  void *context);
/* False: there is no memory for it. */
bool embla_log_add(embla_log *log, const embla_log_line *line);
/* Writes what was added. False, and errno, if not all of it could be. sure: to the disk. */
bool embla_log_flush(embla_log *log, bool sure);
void embla_log_close(embla_log *log);

/* Each line of the file at path, from its first. False, and errno, if it cannot be read; a line
 * that is none ends it. Returns in *end (may be NULL) the bytes that were understood, header
 * included; 0: it has none. */
bool embla_log_read(const char *path, int64_t below,
                    void (*take)(void *context, const embla_log_line *), void *context,
                    int64_t *end);

#endif
