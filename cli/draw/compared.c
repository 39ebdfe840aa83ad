/* SPDX-License-Identifier: Apache-2.0 */
/* Draws how alike rows are.
 *
 * Two rows of any dim lie on one plane. The first arrow points to the right; the second has its
 * true angle to it and its true length. Below them are the first numbers of both rows and their
 * products, whose sum is the dot product.
 */
#include "draw/compared.h"

#include <math.h>
#include <stdio.h>
#include <string.h>

#include "core/args.h"
#include "draw/bars.h"
#include "draw/heat.h"

static void write_at(cli_sheet *sheet, double x, double y, cli_sheet_anchor anchor, int color,
                     const char *text)
{
    const cli_sheet_style style = {x, y, anchor, CLI_SHEET_LABEL, color};
    cli_sheet_text(sheet, &style, text);
}

/* ---- a matrix ---- */

enum { TALL = 30, HEADINGS = CLI_SHEET_TOP + 22, TOP = HEADINGS + 10, BARS = 120 };

typedef struct {
    const cli_matrix *matrix;
    double labels, cell; /* widths */
    cli_bar_list norms;
} matrix_plan;

static void draw_matrix(cli_sheet *sheet, const void *context)
{
    const matrix_plan *p = context;
    const cli_matrix *m = p->matrix;
    const double left = CLI_SHEET_MARGIN + p->labels;
    const cli_heat heat = {.limit = 1};
    for (size_t a = 0; a < m->count; a++) {
        const double y = TOP + (double)a * TALL, x = left + (double)a * p->cell;
        write_at(sheet, left - 10, y + TALL / 2.0 + 4, CLI_SHEET_END, CLI_SHEET_INK, m->words[a]);
        write_at(sheet, x + p->cell - 5, HEADINGS, CLI_SHEET_END, CLI_SHEET_INK, m->words[a]);
        for (size_t b = 0; b < m->count; b++) {
            const cli_sheet_spot spot = {left + (double)b * p->cell, y, p->cell - 2, TALL - 2};
            const size_t at = a * m->count + b;
            cli_heat_cell(sheet, &spot, cli_heat_color(&heat, m->shades[at]), m->texts[at]);
        }
    }
    const double bars = left + (double)m->count * p->cell + 30;
    write_at(sheet, bars, HEADINGS, CLI_SHEET_START, CLI_SHEET_SOFT, "norm");
    cli_bars_draw(sheet, &p->norms, bars, TOP - 1);
}

int cli_matrix_print(cli_sheet_kind kind, const cli_matrix *m)
{
    cli_bar bars[CLI_COMPARED_MOST];
    matrix_plan p = {.matrix = m, .cell = 56};
    for (size_t a = 0; a < m->count; a++) {
        double wide = cli_sheet_width(CLI_SHEET_LABEL, m->words[a]);
        bars[a] = (cli_bar){"", m->norm_texts[a], m->norms[a], CLI_SHEET_SOFT};
        p.labels = fmax(p.labels, wide + 14);
        p.cell = fmax(p.cell, ceil(wide) + 12);
        for (size_t b = 0; b < m->count; b++)
            p.cell = fmax(p.cell,
                          ceil(cli_sheet_width(CLI_SHEET_NUMBER, m->texts[a * m->count + b])) + 14);
    }
    p.labels = ceil(p.labels);
    p.norms = (cli_bar_list){.bars = bars, .count = m->count, .width = BARS, .step = TALL};
    const cli_sheet_page page = {m->title, m->facts, m->about,
                                 2 * CLI_SHEET_MARGIN + p.labels + (double)m->count * p.cell + 30 +
                                     cli_bars_width(&p.norms),
                                 TOP + (double)m->count * TALL + CLI_SHEET_MARGIN};
    return cli_sheet_print(kind, &page, draw_matrix, &p);
}

/* ---- two arrows ---- */

enum {
    PLANE_WIDE = 460,
    PLANE_MOST = 300,
    PLANE_LEAST = 150,
    SHOWN = 8,
    CELL_TALL = 22,
    LINE = 22,
    SIDE = 60
};

typedef struct {
    const cli_pair *pair;
    double x, y, scale; /* the origin; pixels per unit */
    double tall;        /* of the plane */
    double ends[2][2];  /* of the arrows, in pixels */
    double labels;      /* width of the words beside the numbers */
    size_t shown;       /* numbers of a row */
    float products[SHOWN];
    cli_heat heat;
} pair_plan;

/* Fits both arrows into the plane. */
static void arrange_arrows(pair_plan *p)
{
    const cli_pair *q = p->pair;
    const double angle = q->angle * acos(-1.0) / 180;
    const double tips[2][2] = {{q->norms[0], 0},
                               {q->norms[1] * cos(angle), q->norms[1] * sin(angle)}};
    double least = fmin(0, tips[1][0]), most = fmax(tips[0][0], tips[1][0]), high = tips[1][1];
    double wide = most - least > 0 ? most - least : 1;
    p->scale = fmin((PLANE_WIDE - 2 * SIDE) / wide, high > 0 ? (PLANE_MOST - 90) / high : 1e30);
    p->tall = fmax(PLANE_LEAST, p->scale * high + 90);
    p->x = CLI_SHEET_MARGIN + PLANE_WIDE / 2.0 - p->scale * (least + most) / 2;
    p->y = CLI_SHEET_TOP + p->tall / 2 + p->scale * high / 2;
    for (size_t i = 0; i < 2; i++) {
        p->ends[i][0] = p->x + p->scale * tips[i][0];
        p->ends[i][1] = p->y - p->scale * tips[i][1];
    }
}

static void draw_angle(cli_sheet *sheet, const pair_plan *p)
{
    enum { POINTS = 33 };
    const cli_pair *q = p->pair;
    const double angle = q->angle * acos(-1.0) / 180;
    const double radius = fmin(44, 0.5 * p->scale * fmin(q->norms[0], q->norms[1]));
    double arc[2 * POINTS];
    char text[CLI_CELL];
    for (size_t i = 0; i < POINTS; i++) {
        double at = angle * (double)i / (POINTS - 1);
        arc[2 * i] = p->x + radius * cos(at);
        arc[2 * i + 1] = p->y - radius * sin(at);
    }
    cli_sheet_path(sheet, arc, POINTS, CLI_SHEET_INK, 1.2);
    snprintf(text, sizeof text, "%.1f\u00b0", q->angle);
    const double room = (radius + 12) * tan(fmin(angle, 3) / 2);
    if (room < 12) /* no room between the arrows */
        write_at(sheet, p->x + radius, p->y + 20, CLI_SHEET_START, CLI_SHEET_INK, text);
    else
        write_at(sheet, p->x + (radius + 12) * cos(angle / 2),
                 p->y - (radius + 12) * sin(angle / 2) + 4,
                 q->angle > 120 ? CLI_SHEET_MIDDLE : CLI_SHEET_START, CLI_SHEET_INK, text);
}

static void draw_arrows(cli_sheet *sheet, const pair_plan *p)
{
    const cli_pair *q = p->pair;
    if (isnan(q->angle)) {
        write_at(sheet, CLI_SHEET_MARGIN, CLI_SHEET_TOP + 40, CLI_SHEET_START, CLI_SHEET_SOFT,
                 "a row of zeros has no direction, so there is no angle");
        return;
    }
    const double foot[4] = {p->ends[1][0], p->ends[1][1], p->ends[1][0], p->y};
    const double base[4] = {p->x, p->y, p->ends[1][0], p->y};
    if (fabs(foot[3] - foot[1]) > 8) { /* the part of the second arrow along the first */
        cli_sheet_line(sheet, foot, CLI_SHEET_LINE, 1.5);
        cli_sheet_line(sheet, base, CLI_SHEET_LINE, 1.5);
    }
    draw_angle(sheet, p);
    for (size_t i = 0; i < 2; i++) {
        const double at[4] = {p->x, p->y, p->ends[i][0], p->ends[i][1]};
        const bool left = p->ends[i][0] < p->x - 1;
        const bool flat = fabs(p->ends[1][1] - p->y) < 26; /* both words would be on one line */
        const double y = p->ends[i][1] + (i == 0 ? 20 : flat ? -14 : -10);
        const cli_sheet_style style = {p->ends[i][0], y, left ? CLI_SHEET_START : CLI_SHEET_END,
                                       CLI_SHEET_BOLD, (int)i};
        cli_sheet_arrow(sheet, at, (int)i, 2.5);
        cli_sheet_text(sheet, &style, q->words[i]);
    }
}

/* Both rows, and their products. */
static void draw_products(cli_sheet *sheet, const pair_plan *p)
{
    const cli_pair *q = p->pair;
    const char *const names[] = {q->words[0], q->words[1], "product"};
    const float *const rows[] = {q->rows[0], q->rows[1], p->products};
    const double x = CLI_SHEET_MARGIN + p->labels, top = CLI_SHEET_TOP + p->tall + 20;
    const double end = x + (double)p->shown * p->heat.width + 8;
    char text[2 * CLI_CELL];
    for (size_t i = 0; i < 3; i++) {
        const double y = top + (double)i * (CELL_TALL + 3) + (i == 2 ? 6 : 0);
        const double base = y + CELL_TALL / 2.0 + 4;
        write_at(sheet, x - 10, base, CLI_SHEET_END, i < 2 ? (int)i : CLI_SHEET_INK, names[i]);
        cli_heat_row(sheet, &p->heat, x, y, rows[i], p->shown);
        snprintf(text, sizeof text, "%s%s%s", p->shown < q->dim ? ".." : "",
                 i == 2 ? "  sum: " : "", i == 2 ? q->dot : "");
        if (text[0]) write_at(sheet, end, base, CLI_SHEET_START, CLI_SHEET_INK, text);
    }
}

static void draw_pair(cli_sheet *sheet, const void *context)
{
    const pair_plan *p = context;
    const cli_pair *q = p->pair;
    const double x = CLI_SHEET_MARGIN + PLANE_WIDE + 30;
    double y = CLI_SHEET_TOP + (p->tall - (double)q->line_count * LINE) / 2 + 14, wide = 0;
    for (size_t i = 0; i < q->line_count; i++)
        wide = fmax(wide, cli_sheet_width(CLI_SHEET_LABEL, q->labels[i]));
    draw_arrows(sheet, p);
    for (size_t i = 0; i < q->line_count; i++, y += LINE) {
        write_at(sheet, x, y, CLI_SHEET_START, CLI_SHEET_SOFT, q->labels[i]);
        write_at(sheet, x + wide + 14, y, CLI_SHEET_START, CLI_SHEET_INK, q->texts[i]);
    }
    draw_products(sheet, p);
}

int cli_pair_print(cli_sheet_kind kind, const cli_pair *q)
{
    pair_plan p = {.pair = q, .tall = PLANE_LEAST, .shown = q->dim < SHOWN ? q->dim : SHOWN};
    double right = 0;
    for (size_t k = 0; k < p.shown; k++) p.products[k] = q->rows[0][k] * q->rows[1][k];
    p.heat = cli_heat_of(q->rows[0], p.shown, 0, CELL_TALL);
    cli_heat_add(&p.heat, q->rows[1], p.shown);
    cli_heat_add(&p.heat, p.products, p.shown);
    p.labels = cli_sheet_width(CLI_SHEET_LABEL, "product") + 14;
    for (size_t i = 0; i < 2; i++)
        p.labels = fmax(p.labels, cli_sheet_width(CLI_SHEET_LABEL, q->words[i]) + 14);
    p.labels = ceil(p.labels);
    for (size_t i = 0; i < q->line_count; i++)
        right = fmax(right, cli_sheet_width(CLI_SHEET_LABEL, q->labels[i]) + 120);
    if (!isnan(q->angle)) arrange_arrows(&p);
    double below = p.labels + (double)p.shown * p.heat.width + 180;
    const cli_sheet_page page = {
        q->title, q->facts, q->about, 2 * CLI_SHEET_MARGIN + fmax(PLANE_WIDE + 30 + right, below),
        CLI_SHEET_TOP + p.tall + 20 + 3 * (CELL_TALL + 3) + 6 + CLI_SHEET_MARGIN};
    return cli_sheet_print(kind, &page, draw_pair, &p);
}
