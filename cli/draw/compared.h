/* SPDX-License-Identifier: Apache-2.0 */
/* How alike rows are, as a picture for a file: two rows as arrows on the plane through both, more
 * as a matrix of cells.
 */
#ifndef CLI_DRAW_COMPARED_H
#define CLI_DRAW_COMPARED_H

#include "core/out.h"
#include "core/visible.h"
#include "draw/sheet.h"

enum { CLI_COMPARED_MOST = 24 }; /* rows of a matrix */

typedef struct {
    const char *title, *facts, *about;
    size_t count;
    char (*words)[CLI_WORD_TEXT]; /* of each row */
    const double *norms;
    char (*norm_texts)[CLI_CELL];
    const double *shades;    /* of each pair, -1 to 1: count x count; NaN means none */
    char (*texts)[CLI_CELL]; /* of each pair */
} cli_matrix;

/* Two rows. Facts are lines beside the arrows: "cosine  0.82". */
typedef struct {
    const char *title, *facts, *about;
    const char *words[2];
    const float *rows[2];
    size_t dim;
    double norms[2], angle; /* degrees; NaN if a row is zero */
    const char *dot;        /* the sum of the products */
    const char *labels[8], *texts[8];
    size_t line_count;
} cli_pair;

/* These print the file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_matrix_print(cli_sheet_kind kind, const cli_matrix *matrix);
int cli_pair_print(cli_sheet_kind kind, const cli_pair *pair);

#endif
