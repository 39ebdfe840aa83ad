/* SPDX-License-Identifier: Apache-2.0 */
/* A lookup as a picture for a file: tokens on the left, rows of one or two tables in the middle
 * with the chosen ones framed, the result on the right. With two tables (tokens and positions) the
 * result shows for each token both rows and their sum: what + where.
 */
#ifndef CLI_DRAW_TABLES_H
#define CLI_DRAW_TABLES_H

#include "core/answers.h"
#include "draw/sheet.h"

/* Maxima: tokens of one table, tokens of two, and numbers of a row unless --dim asks for more. */
enum { CLI_TABLES_TOKENS = 24, CLI_TABLES_SUMS = 6, CLI_TABLES_NUMBERS = 8, CLI_TABLES_WIDE = 64 };

typedef struct {
    const char *heading;   /* "table, 12 x 8" */
    const char *name;      /* of its rows, beside them in the sum: "row", "position" */
    int64_t all;           /* rows */
    int64_t zero;          /* the row that counts as number 0 */
    const int64_t *chosen; /* of each token; -1 means none */
    const void *context;   /* of read */
    /* Writes a row (dim numbers). CLI_DONE, or CLI_FAILED after a message. */
    int (*read)(const void *context, int64_t row, float *out);
} cli_table_view;

typedef struct {
    const char *title, *facts, *about;
    const cli_asked *asked;
    const int64_t *tokens;
    size_t count; /* tokens; those above the maximum are only counted */
    cli_table_view views[2];
    size_t view_count;
    const float *results; /* of the first tokens, dim numbers each */
    const char *result;   /* heading: "result, 5 x 8" */
    size_t dim, numbers;  /* of a row; how many to show */
} cli_tables;

/* The number of tokens that are drawn, whose results are needed. */
size_t cli_tables_shown(size_t count, size_t views);
/* Prints the file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_tables_print(cli_sheet_kind kind, const cli_tables *tables);

#endif
