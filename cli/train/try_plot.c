/* SPDX-License-Identifier: Apache-2.0 */
/* Draws an experiment: a row for each combination, with a small point for each run and a large one
 * for their mean. The rows have the order of the table. A combination without a finished run has an
 * empty row.
 */
#include "train/try.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"
#include "draw/svg.h"

enum { WIDTH = 760, ROW = 22, AROUND = 146 }; /* pixels: a row, and all that is not rows */

typedef struct {
    const cli_try *x;
    cli_svg *svg;
} picture;

/* The place of a combination on the y axis, which begins at the bottom. */
static double place(const cli_try *x, size_t combination)
{
    return (double)(x->combinations - 1 - combination);
}

static void draw_row(const cli_try *x, const cli_svg *svg, size_t combination)
{
    cli_try_summary s;
    double y = place(x, combination), ends[2] = {y, y};
    cli_try_sum(x, combination, &s);
    if (s.trained == 0) return;
    const double range[2] = {s.lowest, s.highest};
    cli_svg_line(svg, "a", range, ends, 2);
    for (size_t i = 0; x->seeds > 1 && i < x->seeds; i++) {
        const cli_try_result *r = &x->results[combination * x->seeds + i];
        if (r->done && !r->reason) cli_svg_points(svg, "a", &r->validation, &y, 1, 2.5);
    }
    cli_svg_points(svg, "b", &s.mean, &y, 1, 4.5);
}

static void draw(const void *context)
{
    const picture *p = context;
    cli_svg_open(p->svg);
    for (size_t c = 0; c < p->x->combinations; c++) draw_row(p->x, p->svg, c);
    cli_svg_close(p->svg);
}

/* The names of the rows, from the bottom; the chart has room for the first characters of each. */
static void name_rows(const cli_try *x, char (*texts)[CLI_CELL], const char **names)
{
    char name[CLI_TRY_NAME];
    for (size_t c = 0; c < x->combinations; c++) {
        size_t at = x->combinations - 1 - c;
        (void)snprintf(texts[at], CLI_CELL, "%.48s", cli_try_name(x, c, ", ", name));
        names[at] = texts[at];
    }
}

int cli_try_plot(const cli_try *x)
{
    char(*texts)[CLI_CELL] = calloc(x->combinations, sizeof *texts);
    const char **names = calloc(x->combinations, sizeof *names);
    char title[160], subtitle[160];
    const char *text = strrchr(x->base.text, '/');
    cli_svg svg = {.title = title,
                   .subtitle = subtitle,
                   .width = WIDTH,
                   .height = AROUND + ROW * (int)x->combinations,
                   .x = {.least = NAN, .most = NAN, .label = "validation loss"},
                   .y = {.names = names, .name_count = x->combinations}};
    picture p = {x, &svg};
    int code = CLI_DONE;
    for (size_t c = 0; c < x->combinations; c++) {
        cli_try_summary s;
        cli_try_sum(x, c, &s);
        svg.x.least = fmin(svg.x.least, s.lowest); /* the other number, if one is NaN */
        svg.x.most = fmax(svg.x.most, s.highest);
    }
    (void)snprintf(title, sizeof title, "Validation losses on %.100s",
                   text ? text + 1 : x->base.text);
    if (x->seeds > 1)
        (void)snprintf(subtitle, sizeof subtitle,
                       "runs of %zu seeds (blue) and their mean (orange); lower is better",
                       x->seeds);
    else
        (void)snprintf(subtitle, sizeof subtitle, "lower is better");
    if (!texts || !names) {
        code = cli_failed("no memory to draw %zu combinations", x->combinations);
    } else {
        name_rows(x, texts, names);
        code = cli_out_draw(x->plot, draw, &p);
    }
    free(texts);
    free(names);
    return code;
}
