/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup as a picture: tokens on the left, rows of the table in the middle with those
 * that were asked for marked, the result on the right. It fits the terminal: columns and
 * rows that have no place are left out with "..".
 */
#ifndef CLI_DRAW_PICTURE_H
#define CLI_DRAW_PICTURE_H

#include "embla.h"

typedef struct {
    const embla_table *table;
    const int64_t *tokens;    /* what was asked for */
    const int64_t *rows;      /* the row of each */
    size_t count;             /* of them */
    size_t dim;               /* numbers of a row to show, at most */
    const embla_vocab *vocab; /* NULL: there are no words */
    bool mapped;              /* tokens are not row numbers: both are shown */
    bool color;
} cli_picture;

/* CLI_DONE, or CLI_FAILED after a sentence. *drawn is false, and nothing was printed, where
 * it has no place: in less than 30 columns, or with row numbers that fill them. */
int cli_picture_draw(const cli_picture *picture, bool *drawn);

/* The words of --color, and what each comes to: auto is a terminal that knows colour, where
 * NO_COLOR is unset or empty. */
const char *cli_color_name(size_t n);
bool cli_color_wanted(const char *name);

#endif
