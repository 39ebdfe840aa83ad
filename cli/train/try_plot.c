/* SPDX-License-Identifier: Apache-2.0 */
/* Draws an experiment: a line for each combination, with a small point for each run, a large one
 * for their mean, and the figures of the table beside it. The lines have the order of the table. A
 * combination without a finished run has no points.
 */
#include "train/try.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ending.h"
#include "core/out.h"
#include "draw/paint.h"
#include "draw/svg.h"
#include "host/paths.h"
#include "train/train_plot.h"

enum {
    STEP = 24, /* pixels: a line, the axis of losses, between columns, below the lines */
    WIDE = 420,
    GAP = 18,
    AXIS = 44,
    TOP = CLI_SHEET_TOP + 26, /* below the headings */
    TICKS = 6
};

typedef struct {
    const cli_try *x;
    char title[160], facts[160], about[320];
    cli_try_summary *sums;            /* of each combination */
    double columns[CLI_TRY_AXES];     /* left ends of the values */
    double left;                      /* of the axis */
    double mean, parameters;          /* right ends of the figures */
    double least, most, tick, bottom; /* of the axis */
    size_t lowest;                    /* the combination with the lowest mean */
} picture;

static double place(const picture *p, double loss)
{
    return p->left + WIDE * (loss - p->least) / (p->most - p->least);
}

/* ---- layout ---- */

static void choose_range(picture *p)
{
    double least = INFINITY, most = -INFINITY, mean = INFINITY;
    for (size_t c = 0; c < p->x->combinations; c++) {
        const cli_try_summary *s = &p->sums[c];
        cli_try_sum(p->x, c, &p->sums[c]);
        if (s->trained == 0) continue;
        least = fmin(least, s->lowest);
        most = fmax(most, s->highest);
        if (s->mean < mean) mean = s->mean, p->lowest = c;
    }
    if (!(most > least)) least -= 0.05, most += 0.05;
    p->tick = cli_svg_step(most - least, TICKS);
    p->least = floor(least / p->tick + 1e-9) * p->tick;
    p->most = ceil(most / p->tick - 1e-9) * p->tick;
}

/* Returns the width of the page. */
static double arrange(picture *p)
{
    const cli_try *x = p->x;
    double at = CLI_SHEET_MARGIN;
    for (size_t i = 0; i < x->axis_count; i++) {
        double wide = cli_sheet_width(CLI_SHEET_LABEL, x->axes[i].name);
        for (size_t v = 0; v < x->axes[i].count; v++)
            wide = fmax(wide, cli_sheet_width(CLI_SHEET_LABEL, x->axes[i].values[v]));
        p->columns[i] = at;
        at += ceil(wide) + GAP;
    }
    p->left = at + GAP;
    p->mean = p->left + WIDE + GAP + 50;
    p->parameters = p->mean + GAP + 80;
    p->bottom = TOP + (double)x->combinations * STEP;
    return p->parameters + CLI_SHEET_MARGIN;
}

static void describe(picture *p)
{
    const cli_try *x = p->x;
    (void)snprintf(p->title, sizeof p->title, "Validation losses on %.100s",
                   cli_path_title(x->base.text));
    if (x->seeds > 1)
        (void)snprintf(p->facts, sizeof p->facts,
                       "runs of %zu seeds (small) and their mean (large); lower is better",
                       x->seeds);
    else
        (void)snprintf(p->facts, sizeof p->facts, "one run for each line; lower is better");
    (void)snprintf(p->about, sizeof p->about,
                   "A line for each of %zu combinations of settings, with a point at the "
                   "validation loss of each run. The lowest mean is bold.",
                   x->combinations);
}

/* ---- drawing ---- */

static void draw_axis(cli_sheet *sheet, const picture *p)
{
    const int decimals = (int)fmax(0, ceil(-log10(p->tick) - 1e-9));
    cli_sheet_style style = {0, p->bottom + 18, CLI_SHEET_MIDDLE, CLI_SHEET_LABEL, CLI_SHEET_SOFT};
    char text[CLI_CELL];
    for (int n = 0; n <= lround((p->most - p->least) / p->tick); n++) {
        const double loss = p->least + n * p->tick, x = place(p, loss);
        const double ends[4] = {x, TOP, x, p->bottom};
        cli_sheet_line(sheet, ends, CLI_SHEET_LINE, 1);
        (void)snprintf(text, sizeof text, "%.*f", decimals, loss);
        style.x = x;
        cli_sheet_text(sheet, &style, text);
    }
    style.x = p->left + WIDE / 2.0;
    style.y += 18;
    cli_sheet_text(sheet, &style, "validation loss");
}

static void draw_headings(cli_sheet *sheet, const picture *p)
{
    cli_sheet_style style = {0, TOP - 10, CLI_SHEET_START, CLI_SHEET_LABEL, CLI_SHEET_SOFT};
    for (size_t i = 0; i < p->x->axis_count; i++) {
        style.x = p->columns[i];
        cli_sheet_text(sheet, &style, p->x->axes[i].name);
    }
    style.anchor = CLI_SHEET_END;
    style.x = p->mean;
    cli_sheet_text(sheet, &style, p->x->seeds > 1 ? "mean" : "loss");
    style.x = p->parameters;
    cli_sheet_text(sheet, &style, "parameters");
}

static void draw_runs(cli_sheet *sheet, const picture *p, size_t combination, double y)
{
    const cli_try *x = p->x;
    const cli_try_summary *s = &p->sums[combination];
    const double ends[4] = {place(p, s->lowest), y, place(p, s->highest), y};
    if (s->trained > 1) cli_sheet_line(sheet, ends, CLI_SHEET_SOFT, 1.5);
    for (size_t i = 0; x->seeds > 1 && i < x->seeds; i++) {
        const cli_try_result *r = &x->results[combination * x->seeds + i];
        if (r->done && !r->reason)
            cli_sheet_disc(sheet, place(p, r->validation), y, 3, CLI_SHEET_SOFT);
    }
    cli_sheet_disc(sheet, place(p, s->mean), y, 5.5, 0);
}

static void draw_row(cli_sheet *sheet, const picture *p, size_t c)
{
    const cli_try_summary *s = &p->sums[c];
    const double y = TOP + ((double)c + 0.5) * STEP;
    char text[CLI_CELL];
    cli_sheet_style style = {0, y + 4, CLI_SHEET_START,
                             c == p->lowest && s->trained > 0 ? CLI_SHEET_BOLD : CLI_SHEET_LABEL,
                             CLI_SHEET_INK};
    for (size_t i = 0; i < p->x->axis_count; i++) {
        style.x = p->columns[i];
        cli_sheet_text(sheet, &style, cli_try_value(p->x, c, i));
    }
    if (s->trained > 0) draw_runs(sheet, p, c, y);
    style.anchor = CLI_SHEET_END;
    style.x = p->mean;
    if (s->trained > 0)
        (void)snprintf(text, sizeof text, "%.4f", s->mean);
    else
        (void)snprintf(text, sizeof text, s->failed > 0 ? "failed" : "-");
    cli_sheet_text(sheet, &style, text);
    style.x = p->parameters;
    if (s->trained > 0) cli_sheet_text(sheet, &style, cli_commas(s->parameters, text));
}

static void draw(cli_sheet *sheet, const void *context)
{
    const picture *p = context;
    draw_headings(sheet, p);
    draw_axis(sheet, p);
    for (size_t c = 0; c < p->x->combinations; c++) draw_row(sheet, p, c);
}

static int print(const void *context)
{
    picture p = *(const picture *)context;
    const double width = arrange(&p);
    const cli_sheet_page page = {p.title, p.facts, p.about, width,
                                 p.bottom + AXIS + CLI_SHEET_MARGIN};
    return cli_sheet_print(p.x->plot_kind, &page, draw, &p);
}

/* ---- the file ---- */

int cli_try_check_plot(cli_try *x)
{
    int code = cli_ending_sheet("plot", x->plot, &x->plot_kind);
    if (code == CLI_DONE) code = cli_plot_check_file(x->args, x->plot);
    return code == CLI_DONE && x->plot_kind == CLI_SHEET_PNG ? cli_paint_load() : code;
}

int cli_try_plot(const cli_try *x)
{
    picture p = {.x = x, .sums = calloc(x->combinations, sizeof *p.sums)};
    if (!p.sums) return cli_failed("no memory to draw %zu combinations", x->combinations);
    choose_range(&p);
    describe(&p);
    int code = cli_out_draw(x->plot, print, &p);
    free(p.sums);
    return code;
}
