/* SPDX-License-Identifier: Apache-2.0 */
/* Draws rows of positions: positions to the right, columns of the row downwards. The lines below
 * share the axis of positions.
 */
#include "draw/waves.h"

#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "core/args.h"
#include "draw/heat.h"

enum {
    WIDE = 880, /* pixels of the cells, about */
    TALL = 420,
    TOP = CLI_SHEET_TOP + 6,
    LEFT = 130, /* of the cells: names of columns are beside them */
    AXIS = 44,  /* below the cells, for the numbers of positions */
    LINES = 5,  /* columns that are drawn as lines */
    STRIP = 58  /* pixels of each of them */
};

typedef struct {
    const cli_waves *waves;
    cli_heat heat;
    size_t columns[LINES], line_count;
    double bottom, right; /* of the cells, and of the legend above them */
    cli_sheet_spot *spots;
} plan;

static void write_at(cli_sheet *sheet, double x, double y, cli_sheet_anchor anchor, int color,
                     const char *text)
{
    const cli_sheet_style style = {x, y, anchor, CLI_SHEET_LABEL, color};
    cli_sheet_text(sheet, &style, text);
}

static double value_at(const plan *p, size_t position, size_t column)
{
    return (double)p->waves->values[position * p->waves->dim + column];
}

/* ---- cells ---- */

/* All cells of one colour; neighbours at the same height are one. */
static size_t cells_of(const plan *p, int color)
{
    const cli_waves *w = p->waves;
    size_t used = 0;
    for (size_t k = 0; k < w->dim; k++) {
        for (size_t i = 0; i < w->count; i++) {
            size_t from = i;
            while (i < w->count && cli_heat_color(&p->heat, value_at(p, i, k)) == color) i++;
            if (i == from) continue;
            p->spots[used++] = (cli_sheet_spot){LEFT + (double)from * p->heat.width,
                                                TOP + (double)k * p->heat.height,
                                                (double)(i - from) * p->heat.width, p->heat.height};
        }
    }
    return used;
}

static void draw_cells(cli_sheet *sheet, const plan *p)
{
    const cli_waves *w = p->waves;
    for (int shade = 0; shade < CLI_SHEET_SHADES && !p->heat.numbers; shade++) {
        const int color = CLI_SHEET_FIRST_SHADE + shade;
        cli_sheet_boxes(sheet, p->spots, cells_of(p, color), color);
    }
    for (size_t k = 0; k < w->dim && p->heat.numbers; k++)
        for (size_t i = 0; i < w->count; i++)
            cli_heat_row(sheet, &p->heat, LEFT + (double)i * p->heat.width,
                         TOP + (double)k * p->heat.height, &w->values[i * w->dim + k], 1);
}

/* Numbers of positions below the cells, and of columns beside them, at round distances. */
static void draw_axes(cli_sheet *sheet, const plan *p)
{
    const cli_waves *w = p->waves;
    size_t each = 1, down = 1;
    char text[64];
    const double digits = w->first + (int64_t)w->count > 9999 ? 70 : 34;
    while ((double)each * p->heat.width < digits) each *= 2;
    while ((double)down * p->heat.height < 16) down *= 2;
    for (size_t i = 0; i < w->count; i += each) {
        snprintf(text, sizeof text, "%" PRId64, w->first + (int64_t)i);
        write_at(sheet, LEFT + ((double)i + 0.5) * p->heat.width, p->bottom + 16, CLI_SHEET_MIDDLE,
                 CLI_SHEET_SOFT, text);
    }
    for (size_t k = 0; k < w->dim; k += down) {
        snprintf(text, sizeof text, "%zu", k);
        write_at(sheet, LEFT - 10, TOP + ((double)k + 0.5) * p->heat.height + 4, CLI_SHEET_END,
                 CLI_SHEET_SOFT, text);
    }
    write_at(sheet, LEFT + (double)w->count * p->heat.width / 2, p->bottom + 34, CLI_SHEET_MIDDLE,
             CLI_SHEET_SOFT, "position");
    write_at(sheet, CLI_SHEET_MARGIN, TOP + 12, CLI_SHEET_START, CLI_SHEET_SOFT, "column");
}

/* ---- lines ---- */

/* Columns of sines, from the fastest to slow ones. */
static void choose_columns(plan *p)
{
    const size_t pairs = p->waves->whole / 2, shown = (p->waves->dim + 1) / 2;
    for (size_t n = 0; p->waves->waves && n < LINES; n++) {
        size_t pair = pairs <= 2 * LINES ? n : n * pairs / (2 * LINES);
        if (pair >= shown) break;
        p->columns[p->line_count++] = 2 * pair;
    }
}

static void draw_wave(cli_sheet *sheet, const plan *p, size_t n)
{
    const cli_waves *w = p->waves;
    const size_t column = p->columns[n];
    const double middle = p->bottom + AXIS + 14 + ((double)n + 0.5) * STRIP;
    const double per = pow(10000, (double)column / (double)w->whole);
    const double ends[4] = {LEFT, middle, LEFT + (double)w->count * p->heat.width, middle};
    double points[2 * CLI_WAVES_POSITIONS];
    char text[64];
    for (size_t i = 0; i < w->count; i++) {
        points[2 * i] = LEFT + ((double)i + 0.5) * p->heat.width;
        points[2 * i + 1] = middle - value_at(p, i, column) * (STRIP / 2.0 - 6);
    }
    cli_sheet_line(sheet, ends, CLI_SHEET_LINE, 1);
    cli_sheet_path(sheet, points, w->count, (int)n, 2);
    snprintf(text, sizeof text, "column %zu", column);
    write_at(sheet, CLI_SHEET_MARGIN, middle - 3, CLI_SHEET_START, (int)n, text);
    if (column == 0)
        snprintf(text, sizeof text, "sin(p)");
    else
        snprintf(text, sizeof text, per < 100 ? "sin(p / %.2f)" : "sin(p / %.0f)", per);
    write_at(sheet, CLI_SHEET_MARGIN, middle + 13, CLI_SHEET_START, CLI_SHEET_SOFT, text);
}

static void draw_all(cli_sheet *sheet, const void *context)
{
    const plan *p = context;
    cli_heat_legend(sheet, &p->heat, p->right, 55);
    draw_cells(sheet, p);
    draw_axes(sheet, p);
    for (size_t n = 0; n < p->line_count; n++) draw_wave(sheet, p, n);
}

int cli_waves_print(cli_sheet_kind kind, const cli_waves *w)
{
    const double wide = floor(WIDE / (double)w->count), tall = floor(TALL / (double)w->dim);
    plan p = {.waves = w};
    p.heat =
        cli_heat_of(w->values, w->count * w->dim, fmax(3, fmin(wide, 44)), fmax(3, fmin(tall, 24)));
    p.spots = malloc((w->count * w->dim + 1) * sizeof *p.spots);
    if (!p.spots) return cli_failed("no memory for a picture of %zu positions", w->count);
    p.bottom = TOP + (double)w->dim * p.heat.height;
    p.right = fmax(LEFT + (double)w->count * p.heat.width,
                   CLI_SHEET_MARGIN + cli_sheet_width(CLI_SHEET_LABEL, w->facts) + 230);
    choose_columns(&p);
    double lines = p.line_count > 0 ? 14 + (double)p.line_count * STRIP : 0;
    const cli_sheet_page page = {w->title, w->facts, w->about, p.right + CLI_SHEET_MARGIN,
                                 p.bottom + AXIS + lines + CLI_SHEET_MARGIN / 2.0};
    int code = cli_sheet_print(kind, &page, draw_all, &p);
    free(p.spots);
    return code;
}
