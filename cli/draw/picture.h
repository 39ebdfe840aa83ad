/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup as a picture: tokens on the left, rows of the table in the middle with the selected rows
 * marked, the result on the right. Columns and rows that do not fit the terminal are replaced by
 * "..".
 */
#ifndef CLI_DRAW_PICTURE_H
#define CLI_DRAW_PICTURE_H

#include "embla.h"

#include "draw/pen.h"
#include "draw/tables.h"

typedef struct {
    const embla_table *table;
    cli_pen_tokens tokens;
    size_t dim; /* maximum numbers per row */
    bool color;
} cli_picture;

/* CLI_DONE, or CLI_FAILED after a message. *drawn is false, and nothing is printed, if the picture
 * does not fit: below 30 columns, or with very long row numbers. */
int cli_picture_draw(const cli_picture *picture, bool *drawn);

/* A sum as a picture: for each token its row, the row of its position, and their sum. */
typedef struct {
    cli_pen_tokens tokens;
    const char *headings[3];  /* "rows, 27 x 16", "positions, 8 x 16", "sum, 3 x 16" */
    const float *values[3];   /* rows, positions and sums of the first CLI_PEN_ROWS tokens,
                               * CLI_PEN_NUMBERS apart; positions NULL means none */
    size_t count, dim;        /* numbers of a row in values, and in the table */
    const int64_t *positions; /* the row of each of these tokens in the position table */
    bool color;
} cli_sum;

/* The same results as cli_picture_draw. */
int cli_sum_draw(const cli_sum *sum, bool *drawn);

/* The two tables of a sum side by side, with the chosen rows of the tokens marked. The same
 * results.
 */
int cli_tables_draw(const cli_table_view views[2], const cli_pen_tokens *tokens, size_t dim,
                    bool color, bool *drawn);

#endif
