/* SPDX-License-Identifier: Apache-2.0 */
/* loss.csv: one line for every step of a training.
 *
 *   step,loss,validation,rate,norm,tokens,seconds
 *
 * Lines are buffered in memory and written from time to time, always before a checkpoint. A resumed
 * training therefore finds all lines before its checkpoint, removes the later ones, and ends with
 * the same file. Lines that could not be written stay in memory and are tried again.
 */
#ifndef CLI_TRAIN_TRAIN_LOG_H
#define CLI_TRAIN_TRAIN_LOG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "system/system.h"

typedef struct {
    int64_t step;
    double loss, validation; /* validation is NaN if it was not measured */
    double rate, norm;
    int64_t tokens;
    double seconds; /* total of all steps up to this one */
} cli_log_line;

typedef struct {
    embla_handle file; /* EMBLA_NO_FILE means none */
    char *path;
    char *text; /* lines not written yet */
    size_t used, room;
} cli_log;

/* Opens or creates folder/loss.csv and locks it against other trainings. CLI_DONE, or CLI_FAILED
 * after a message. */
int cli_log_open(const char *folder, cli_log *out);
/* Keeps the lines of steps below step, calls visit for each, and removes the rest. Writes the
 * header if it is missing. */
int cli_log_cut(cli_log *log, int64_t step, void (*visit)(void *context, const cli_log_line *),
                void *context);
/* Appends a line. False if there is no memory. */
bool cli_log_add(cli_log *log, const cli_log_line *line);
/* Writes the buffered lines. False, and cli_why, if not all could be written. sure: sync to disk.
 */
bool cli_log_flush(cli_log *log, bool sure);
void cli_log_close(cli_log *log);

/* Calls visit for each line of steps below `below`, up to the first invalid line. Writes the length
 * of the valid part with its header to *end (may be NULL); 0 means no header. False, and cli_why,
 * if the file cannot be read. */
bool cli_log_read(const char *path, int64_t below,
                  void (*visit)(void *context, const cli_log_line *), void *context, int64_t *end);

#endif
