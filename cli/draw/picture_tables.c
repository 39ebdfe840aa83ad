/* SPDX-License-Identifier: Apache-2.0 */
/* Draws two tables side by side, above the sum of their chosen rows.
 *
 *   what: rows, 27 x 16         where: positions, 16 x 16
 *
 *      3 -0.14 -0.05 ..            1 -0.03  0.37 ..
 *   >  4 -0.10 -0.16 ..         >  2  0.09  0.33 ..
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/chosen.h"
#include "draw/picture.h"

enum { ROWS = 10, MARK = 2, GAP = 5, LEAST = 2 }; /* LEAST numbers of a row, or no picture */

typedef struct {
    const cli_table_view *views;
    size_t tokens; /* that have a chosen row */
    cli_chosen chosen[2];
    float values[2 * ROWS * CLI_PEN_NUMBERS]; /* of the first table, then of the second */
    size_t digits[2], blocks[2];
    cli_pen_cells cells;
    size_t count; /* numbers of a row */
    bool dots, utf8, color;
} sketch;

static int read_values(sketch *s, size_t v, size_t dim, float *row)
{
    const cli_table_view *view = &s->views[v];
    int code = CLI_DONE;
    s->chosen[v] = cli_chosen_of(view->all, view->chosen, s->tokens, ROWS);
    for (size_t i = 0; i < s->chosen[v].count && code == CLI_DONE; i++) {
        char text[32];
        code = view->read(view->context, s->chosen[v].rows[i], row);
        for (size_t k = 0; k < s->count && code == CLI_DONE; k++)
            s->values[(v * ROWS + i) * CLI_PEN_NUMBERS + k] = row[k];
        size_t digits =
            (size_t)snprintf(text, sizeof text, "%" PRId64, s->chosen[v].rows[i] - view->zero);
        if (digits > s->digits[v]) s->digits[v] = digits;
    }
    s->dots = s->count < dim;
    return code;
}

static bool try_width(sketch *s, size_t count, size_t dim)
{
    size_t whole = GAP;
    s->count = count;
    s->dots = count < dim;
    for (size_t v = 0; v < 2; v++) {
        const size_t heading = strlen(s->views[v].heading);
        s->blocks[v] = MARK + s->digits[v] + count * s->cells.wide + (s->dots ? 3 : 0);
        if (s->blocks[v] < heading) s->blocks[v] = heading;
        whole += s->blocks[v];
    }
    return whole <= (size_t)cli_pen_width();
}

static void draw_row(cli_pen *ink, const sketch *s, size_t v, size_t line)
{
    const cli_chosen *c = &s->chosen[v];
    const size_t i = line < c->line_count ? c->lines[line] : CLI_CHOSEN_GAP;
    if (line >= c->line_count) {
        cli_pen_skip(ink, s->blocks[v]);
        return;
    }
    if (i == CLI_CHOSEN_GAP) {
        const size_t before = MARK + (s->digits[v] > 2 ? s->digits[v] - 2 : 0);
        cli_pen_skip(ink, before);
        cli_pen_draw(ink, "..", 2, s->blocks[v] - before);
        return;
    }
    const int paint = cli_chosen_color(s->views[v].chosen, s->tokens, c->rows[i]);
    cli_pen_begin(ink, paint);
    if (paint == CLI_PEN_FAINT)
        cli_pen_skip(ink, MARK);
    else
        cli_pen_draw(ink, s->utf8 ? "▶" : ">", 1, MARK);
    cli_pen_row(ink, &s->cells, c->rows[i] - s->views[v].zero, s->digits[v],
                s->values + (v * ROWS + i) * CLI_PEN_NUMBERS, s->count, s->dots,
                s->blocks[v] - MARK);
    cli_pen_end(ink);
}

static void draw_all(const sketch *s)
{
    const size_t first = s->chosen[0].line_count, second = s->chosen[1].line_count;
    cli_pen ink = {0};
    for (size_t v = 0; v < 2; v++) {
        cli_pen_draw(&ink, s->views[v].heading, strlen(s->views[v].heading), s->blocks[v]);
        cli_pen_skip(&ink, GAP);
    }
    fputs("\n\n", stdout);
    for (size_t line = 0; line < first || line < second; line++) {
        ink = (cli_pen){.color = s->color};
        draw_row(&ink, s, 0, line);
        cli_pen_skip(&ink, GAP);
        draw_row(&ink, s, 1, line);
        putchar('\n');
    }
}

int cli_tables_draw(const cli_table_view views[2], const cli_pen_tokens *tokens, size_t dim,
                    bool color, bool *drawn)
{
    sketch s = {.views = views, .utf8 = cli_utf8_wanted(), .color = color};
    const size_t most = dim < CLI_PEN_NUMBERS ? dim : CLI_PEN_NUMBERS;
    float *row = malloc(dim * sizeof *row);
    int code = row ? CLI_DONE : cli_failed("no memory for a row of %zu numbers", dim);
    s.tokens = tokens->count < CLI_PEN_ROWS ? tokens->count : CLI_PEN_ROWS;
    s.count = most;
    for (size_t v = 0; v < 2 && code == CLI_DONE; v++) code = read_values(&s, v, dim, row);
    free(row);
    *drawn = false;
    if (code != CLI_DONE) return code;
    s.cells = cli_pen_measure(&(const float *){s.values}, 1, (size_t)2 * ROWS, most);
    for (size_t count = most; count >= LEAST && !*drawn; count--)
        *drawn = try_width(&s, count, dim);
    if (*drawn) draw_all(&s);
    return CLI_DONE;
}
