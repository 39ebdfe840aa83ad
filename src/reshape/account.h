/* SPDX-License-Identifier: Apache-2.0 */
/* What became of every tensor and of every row, kept while a file is written and handed to
 * the caller afterwards. One line for each tensor of the source, made at the start, so that
 * pointers to lines stay good.
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

/* With count empty lines. */
EMBLA_CHECKED embla_status embla_account_new(size_t count, embla_account **out);
/* A note more. */
EMBLA_CHECKED embla_status embla_account_say(embla_account *account, const char *format, ...)
    __attribute__((format(printf, 2, 3)));

/* Counts a row that is stored anew: before and after as floats; wide, if not NULL, the old
 * row as little-endian doubles, of which before are only the nearest floats. */
void embla_account_row(embla_account_line *line, const float *before, const uint8_t *wide,
                       const float *after, size_t dim);
/* Counts a row whose bytes stay the same; the numbers as in embla_account_row. */
void embla_account_same(embla_account_line *line, const float *values, const uint8_t *wide,
                        size_t dim);
/* As 32 hexadecimal digits. */
void embla_account_checksum(embla_checksum sum, char out[33]);

#endif
