/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as SVG: files of their own, with nothing fetched from elsewhere, light or dark as
 * the reader's system is.
 *
 *   cli_svg chart = {.title = "Norms", .width = 720, .height = 400,
 *                      .x = {.least = 0, .most = 5, .label = "norm"},
 *                      .y = {.least = 0, .most = 900, .label = "rows"}};
 *   cli_svg_open(&chart);
 *   cli_svg_bars(&chart, counts, 48, 0, 5, "rows");
 *   cli_svg_close(&chart);
 *
 * All of it is printed to stdout; cli_out_to (out.h) makes that a file. A number that is
 * not finite, or that a log axis cannot show, is left out.
 */
#ifndef CLI_DRAW_SVG_H
#define CLI_DRAW_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    double least, most; /* what must be seen; open makes sense of any two numbers */
    const char *label;  /* NULL: none */
    bool log;
    bool tight; /* ends at least and most; else at the next round number */
} cli_svg_axis;

typedef struct {
    const char *title;    /* words from files may be in these */
    const char *subtitle; /* NULL: none */
    int width, height;    /* pixels */
    cli_svg_axis x, y;
    bool plain;                      /* no axes: a page of width x height to draw on */
    const char *style;               /* further CSS, NULL: none */
    double left, right, top, bottom; /* set by open: where the plot is, in pixels */
} cli_svg;

/* Begins the document, draws title, grid, axes and their labels. */
void cli_svg_open(cli_svg *svg);
void cli_svg_close(const cli_svg *svg);

/* Where a value lies, in pixels; NaN if nowhere. */
double cli_svg_x(const cli_svg *svg, double value);
double cli_svg_y(const cli_svg *svg, double value);

/* A histogram: count bars, side by side from first to last on the x axis. what is counted
 * stands in the text that appears under the pointer. */
void cli_svg_bars(const cli_svg *svg, const int64_t *counts, size_t count, double first,
                  double last, const char *what);
/* A line through points in their order, broken where one cannot be shown. Class: one of the
 * CSS classes a, b, c (colours). */
void cli_svg_line(const cli_svg *svg, const char *class, const double *x, const double *y,
                  size_t count);
void cli_svg_points(const cli_svg *svg, const char *class, const double *x, const double *y,
                    size_t count, double radius);
/* A dashed line across the plot at a value of the x axis, with a word at its top. Marks that
 * are given from left to right do not write over each other: row 0, 1, 2 is the line of text
 * to write in. */
void cli_svg_mark(const cli_svg *svg, double x, int row, const char *text);
/* Text at a place in pixels; anchor: "start", "middle", "end"; class may be NULL. */
void cli_svg_text(double x, double y, const char *class, const char *anchor, const char *text);

/* Any bytes as XML text: what no reader would show (control characters, bytes that are no
 * UTF-8, marks that turn text around) is U+FFFD. */
void cli_svg_escape(const char *text, size_t length);

/* For every axis: the distance of round ticks (1, 2 or 5 times a power of ten) so that at most
 * `most_ticks` + 1 of them are in the span. */
double cli_svg_step(double span, int most_ticks);

#endif
