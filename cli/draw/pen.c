/* SPDX-License-Identifier: Apache-2.0 */
/* Draws tokens, row numbers and numbers of rows on a terminal.
 */
#include "draw/pen.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"
#include "host/host.h"

/* ---- the terminal ---- */

static const char *const color_names[] = {"auto", "always", "never"};

const char *cli_color_name(size_t n)
{
    return n < sizeof color_names / sizeof color_names[0] ? color_names[n] : NULL;
}

bool cli_color_wanted(const char *name)
{
    const char *none = getenv("NO_COLOR");
    if (strcmp(name, "auto") != 0) return strcmp(name, "always") == 0;
    return cli_is_terminal(CLI_STDOUT) && !(none && *none) && cli_terminal_has_colors();
}

int cli_pen_width(void)
{
    const char *said = getenv("COLUMNS");
    int columns, lines;
    long width = said ? strtol(said, NULL, 10) : 0;
    if (width <= 0 && cli_terminal_size(CLI_STDOUT, &columns, &lines)) width = columns;
    if (width <= 0) return CLI_WIDTH;
    return width > 1000 ? 1000 : (int)width;
}

void cli_pen_skip(cli_pen *pen, size_t columns)
{
    pen->spaces += columns;
}

void cli_pen_draw(cli_pen *pen, const char *text, size_t columns, size_t of)
{
    printf("%*s%s", (int)pen->spaces, "", text);
    pen->spaces = of > columns ? of - columns : 0;
}

void cli_pen_begin(cli_pen *pen, int paint)
{
    static const char *const codes[] = {"1;36", "1;33", "1;32", "1;35", "1;34", "1;31"};
    if (!pen->color) return;
    printf("%*s\033[%sm", (int)pen->spaces, "", paint == CLI_PEN_FAINT ? "2" : codes[paint % 6]);
    pen->spaces = 0;
}

void cli_pen_end(const cli_pen *pen)
{
    if (pen->color) fputs("\033[0m", stdout);
}

/* ---- tokens ---- */

void cli_pen_label(const cli_pen_tokens *tokens, bool utf8, size_t most, cli_pen_labels *out)
{
    enum { ROWS = CLI_PEN_ROWS };
    size_t word_columns = 0, id_columns = 0, wide[ROWS] = {0};
    char words[ROWS][CLI_WORD_TEXT] = {{0}}, ids[ROWS][48];
    out->shown = tokens->count <= ROWS ? tokens->count : ROWS - 1;
    out->more = tokens->count - out->shown;
    for (size_t i = 0; i < out->shown; i++) {
        size_t length = 0;
        const int64_t token = tokens->tokens[i];
        const char *word = most > 0 ? cli_word_of(tokens->vocab, token, &length) : NULL;
        if (word) wide[i] = cli_word_show(word, length, !utf8, most, words[i]);
        if (wide[i] > word_columns) word_columns = wide[i];
        if (tokens->mapped)
            snprintf(ids[i], sizeof ids[i], "%" PRId64 ">%" PRId64, token, tokens->rows[i]);
        else
            snprintf(ids[i], sizeof ids[i], "%" PRId64, token);
        if (strlen(ids[i]) > id_columns) id_columns = strlen(ids[i]);
    }
    for (size_t i = 0; i < out->shown; i++) { /* the word on the left, the number on the right */
        int gap = (int)(id_columns - strlen(ids[i]));
        if (word_columns > 0) gap += (int)(word_columns - wide[i]) + 1;
        snprintf(out->text[i], sizeof out->text[i], "%.*s%*s%s", CLI_WORD_TEXT - 1, words[i],
                 gap < 60 ? gap : 60, "", ids[i]);
    }
    out->columns = word_columns + (word_columns > 0) + id_columns;
}

static size_t more_text(const cli_pen_labels *labels, char text[32])
{
    return (size_t)snprintf(text, 32, "%zu more", labels->more);
}

size_t cli_pen_label_columns(const cli_pen_labels *labels)
{
    char text[32];
    size_t more = labels->more > 0 ? more_text(labels, text) : 0;
    return more > labels->columns ? more : labels->columns;
}

void cli_pen_token(cli_pen *pen, const cli_pen_labels *labels, size_t i, int paint, size_t of)
{
    char text[32];
    if (i < labels->shown) {
        cli_pen_begin(pen, paint);
        cli_pen_draw(pen, labels->text[i], labels->columns, of);
        cli_pen_end(pen);
    } else if (i == labels->shown && labels->more > 0) {
        size_t columns = more_text(labels, text);
        cli_pen_draw(pen, text, columns, of);
    } else {
        cli_pen_skip(pen, of);
    }
}

/* ---- numbers ---- */

size_t cli_pen_number(int decimals, float value, char text[CLI_PEN_NUMBER])
{
    if (!isfinite(value) || fabsf(value) >= 1e6f)
        return (size_t)snprintf(text, CLI_PEN_NUMBER, "%.2g", (double)value);
    return (size_t)snprintf(text, CLI_PEN_NUMBER, "%.*f", decimals, (double)value);
}

int cli_pen_decimals(float largest)
{
    return largest > 0 && largest < 0.1f ? 4 : 2;
}

/* The i-th number of all blocks. */
static float number_at(const float *const *values, size_t rows, size_t count, size_t i)
{
    size_t row = i / count % rows;
    return values[i / (rows * count)][row * CLI_PEN_NUMBERS + i % count];
}

cli_pen_cells cli_pen_measure(const float *const *values, size_t blocks, size_t rows, size_t count)
{
    cli_pen_cells cells = {0};
    float largest = 0;
    for (size_t i = 0; i < blocks * rows * count; i++) {
        float size = fabsf(number_at(values, rows, count, i));
        if (size > largest) largest = size;
    }
    cells.decimals = cli_pen_decimals(largest);
    for (size_t i = 0; i < blocks * rows * count; i++) {
        char text[CLI_PEN_NUMBER];
        float value = number_at(values, rows, count, i);
        size_t length = cli_pen_number(cells.decimals, value, text);
        if (length + 1 > cells.wide) cells.wide = length + 1;
    }
    return cells;
}

void cli_pen_row(cli_pen *pen, const cli_pen_cells *cells, int64_t number, size_t digits,
                 const float *values, size_t count, bool dots, size_t of)
{
    char text[64];
    size_t used = digits + count * cells->wide + (dots ? 3 : 0);
    if (digits > 0) {
        snprintf(text, sizeof text, "%*" PRId64, (int)digits, number);
        cli_pen_draw(pen, text, digits, digits);
    }
    for (size_t k = 0; k < count; k++) {
        char cell[CLI_PEN_NUMBER];
        (void)cli_pen_number(cells->decimals, values[k], cell);
        snprintf(text, sizeof text, "%*s", (int)cells->wide, cell);
        cli_pen_draw(pen, text, cells->wide, cells->wide);
    }
    if (dots) cli_pen_draw(pen, " ..", 3, 3);
    cli_pen_skip(pen, of > used ? of - used : 0);
}
