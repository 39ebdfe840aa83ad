/* SPDX-License-Identifier: Apache-2.0 */
/* The account of a conversion: what happened to every tensor and every row. It is filled while a
 * file is written and then returned to the caller. There is one line for each tensor of the
 * source; all are allocated at the start, so that pointers to lines stay valid.
 */
#ifndef EMBLA_RESHAPE_ACCOUNT_H
#define EMBLA_RESHAPE_ACCOUNT_H

#include "base/arena.h"
#include "base/checksum.h"
#include "base/status.h"
#include "embla_lab.h"

struct embla_account {
    embla_arena arena; /* holds the handle itself */
    embla_account_line *lines;
    size_t count;
    const char **notes;
    size_t note_count, note_room;
    const char *format;
    int64_t bytes;
};

/* Makes an account with count empty lines. */
EMBLA_CHECKED embla_status embla_account_new(size_t count, embla_account **out);
/* Adds a note. */
EMBLA_CHECKED embla_status embla_account_note(embla_account *account, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Counts a row that was re-encoded; before and after are its floats. If wide is not NULL, it is the
 * old row as little-endian doubles, and before has the nearest floats. */
void embla_account_row(embla_account_line *line, const float *before, const uint8_t *wide,
                       const float *after, size_t dim);
/* Counts a row whose bytes stay the same; values and wide as in embla_account_row. */
void embla_account_same(embla_account_line *line, const float *values, const uint8_t *wide,
                        size_t dim);
/* Writes a checksum as 32 hexadecimal digits. */
void embla_account_checksum(embla_checksum sum, char out[33]);

#endif
