/* SPDX-License-Identifier: Apache-2.0 */
/* What the pictures of a terminal share: a pen that leaves no spaces at the end of a line, colours,
 * labels of tokens, and numbers in columns.
 */
#ifndef CLI_DRAW_PEN_H
#define CLI_DRAW_PEN_H

#include "embla.h"

#include "core/visible.h"

/* Maxima: tokens and rows of a picture, numbers of a row, columns of a word. Below the smallest
 * width nothing is drawn. */
enum { CLI_PEN_ROWS = 14, CLI_PEN_NUMBERS = 8, CLI_PEN_WORD = 12, CLI_PEN_NARROWEST = 30 };

/* The width of the terminal, or COLUMNS; CLI_WIDTH without a terminal. */
int cli_pen_width(void);

typedef struct {
    size_t spaces; /* pending spaces, printed only before more text: a line has none at its end */
    bool color;
} cli_pen;

void cli_pen_skip(cli_pen *pen, size_t columns);
/* Draws text of `columns` columns in a field of `of` columns. */
void cli_pen_draw(cli_pen *pen, const char *text, size_t columns, size_t of);

/* A paint of 0 or more is the colour of a token; FAINT is for rows without a token. */
enum { CLI_PEN_FAINT = -1 };
void cli_pen_begin(cli_pen *pen, int paint);
void cli_pen_end(const cli_pen *pen);

/* The tokens of a picture: words on the left, numbers on the right. */
typedef struct {
    const int64_t *tokens, *rows; /* the tokens and their rows */
    size_t count;
    const embla_vocab *vocab; /* NULL means no words */
    bool mapped;              /* tokens differ from row numbers: show both */
} cli_pen_tokens;

typedef struct {
    char text[CLI_PEN_ROWS][CLI_WORD_TEXT + 128]; /* "the 2" */
    size_t columns;
    size_t shown, more; /* tokens shown, and tokens that are not */
} cli_pen_labels;

/* Makes labels whose words have at most `most` columns; 0 means no words. */
void cli_pen_label(const cli_pen_tokens *tokens, bool utf8, size_t most, cli_pen_labels *out);
/* Draws the label of token i, or "5 more" for the line after the last, or spaces, in a field of
 * `of` columns. */
void cli_pen_token(cli_pen *pen, const cli_pen_labels *labels, size_t i, int paint, size_t of);
/* The columns of all labels and of "5 more". */
size_t cli_pen_label_columns(const cli_pen_labels *labels);

/* Formats a number with so many decimals, or with an exponent from 1e6 on. Returns its length. */
enum { CLI_PEN_NUMBER = 16 };
size_t cli_pen_number(int decimals, float value, char text[CLI_PEN_NUMBER]);
/* The decimals of numbers whose largest size is this: two, or four if all are small. */
int cli_pen_decimals(float largest);

/* How numbers are printed. */
typedef struct {
    int decimals;
    size_t wide; /* columns of a number with the space before it */
} cli_pen_cells;

/* The cells for all numbers of `blocks` blocks, each of `rows` rows with `count` numbers,
 * CLI_PEN_NUMBERS apart. */
cli_pen_cells cli_pen_measure(const float *const *values, size_t blocks, size_t rows, size_t count);
/* Draws a row number (none if digits is 0), `count` numbers and "..", if dots, in a field of `of`
 * columns. */
void cli_pen_row(cli_pen *pen, const cli_pen_cells *cells, int64_t number, size_t digits,
                 const float *values, size_t count, bool dots, size_t of);

/* The values of --color, and whether one means colour. auto means a terminal with colour, and
 * NO_COLOR unset or empty. */
const char *cli_color_name(size_t n);
bool cli_color_wanted(const char *name);

#endif
