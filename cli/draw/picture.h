/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup as a picture: tokens on the left, rows of the table in the middle with the selected rows
 * marked, the result on the right. Columns and rows that do not fit the terminal are replaced by
 * "..".
 */
#ifndef CLI_DRAW_PICTURE_H
#define CLI_DRAW_PICTURE_H

#include "embla.h"

typedef struct {
    const embla_table *table;
    const int64_t *tokens;    /* the tokens */
    const int64_t *rows;      /* the row of each token */
    size_t count;             /* number of tokens */
    size_t dim;               /* maximum numbers per row */
    const embla_vocab *vocab; /* NULL means no words */
    bool mapped;              /* tokens differ from row numbers: show both */
    bool color;
} cli_picture;

/* CLI_DONE, or CLI_FAILED after a message. *drawn is false, and nothing is printed, if the picture
 * does not fit: below 30 columns, or with very long row numbers. */
int cli_picture_draw(const cli_picture *picture, bool *drawn);

/* The values of --color, and whether one means colour. auto means a terminal with colour, and
 * NO_COLOR unset or empty. */
const char *cli_color_name(size_t n);
bool cli_color_wanted(const char *name);

#endif
