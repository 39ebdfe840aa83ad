/* SPDX-License-Identifier: Apache-2.0 */
/* What the files of `embla compare` share. */
#ifndef CLI_VERBS_COMPARE_JOB_H
#define CLI_VERBS_COMPARE_JOB_H

#include "core/answers.h"
#include "draw/sheet.h"

enum { CLI_COMPARE_WORD = 12 }; /* columns of a word in a matrix */

/* The tokens of the command line in one table. */
typedef struct {
    cli_asked asked;
    cli_tokens tokens;
    int64_t *rows;
    float *values; /* count x dim */
    size_t dim;
} cli_compare_side;

enum {
    CLI_COMPARE_COSINE,
    CLI_COMPARE_DOT,
    CLI_COMPARE_ANGLE,
    CLI_COMPARE_EUCLIDEAN,
    CLI_COMPARE_MEASURES
};
extern const char *const cli_compare_measures[CLI_COMPARE_MEASURES];

typedef struct {
    cli_compare_side first, second; /* second: the table of --with */
    bool two;                       /* --with is given */
    bool across;                    /* rows of the two tables have the same dim */
    size_t count;                   /* tokens */
    int measure;                    /* what a matrix shows */
    bool ascii;
} cli_compare_job;

/* Of two rows; the angle is in degrees. A row of zeros has no direction: cosine and angle are NaN.
 */
typedef struct {
    double norms[2], values[CLI_COMPARE_MEASURES];
} cli_figures;

cli_figures cli_compare_rows(const float *x, const float *y, size_t dim);
/* Rows a and b of one table. */
cli_figures cli_compare_pair(const cli_compare_side *side, size_t a, size_t b);
/* Four decimals, one for an angle; significant digits for very large and very small numbers. */
const char *cli_compare_number(double value, int measure, char text[CLI_CELL]);

/* Prints the picture to a file: of at most CLI_COMPARED_MOST tokens in one table. CLI_DONE, or
 * CLI_FAILED after a message. */
int cli_compare_sheet(const cli_args *args, const cli_compare_job *job, cli_sheet_kind kind);

#endif
