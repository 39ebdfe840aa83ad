/* SPDX-License-Identifier: Apache-2.0 */
/* Charts as self-contained SVG files, light or dark like the reader's system.
 *
 *   cli_svg chart = {.title = "Norms", .width = 720, .height = 400,
 *                      .x = {.least = 0, .most = 5, .label = "norm"},
 *                      .y = {.least = 0, .most = 900, .label = "rows"}};
 *   cli_svg_open(&chart);
 *   cli_svg_bars(&chart, counts, 48, 0, 5, "rows");
 *   cli_svg_close(&chart);
 *
 * Everything is printed to stdout; cli_out_to (out.h) redirects it to a file. A number that is
 * not finite, or that a log axis cannot show, is left out.
 */
#ifndef CLI_DRAW_SVG_H
#define CLI_DRAW_SVG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct {
    double least, most; /* range of the values; open accepts any two numbers */
    const char *label;  /* NULL means none */
    bool log;
    bool tight; /* end exactly at least and most, not at round numbers */
} cli_svg_axis;

typedef struct {
    const char *title;    /* may contain text from files */
    const char *subtitle; /* NULL means none */
    int width, height;    /* pixels */
    cli_svg_axis x, y;
    bool plain;                      /* no axes: a page of width x height to draw on */
    const char *style;               /* additional CSS; NULL means none */
    const char *about;               /* for readers who cannot see it; NULL means none */
    int skip;                        /* pixels at the top that are left out */
    double left, right, top, bottom; /* set by open: the plot area, in pixels */
} cli_svg;

/* Begins the document and draws title, grid, axes and labels. */
void cli_svg_open(cli_svg *svg);
void cli_svg_close(const cli_svg *svg);

/* The pixel of a value; NaN if it cannot be shown. */
double cli_svg_x(const cli_svg *svg, double value);
double cli_svg_y(const cli_svg *svg, double value);

/* A histogram with count bars from first to last on the x axis. what names the counted things in
 * the tooltip. */
void cli_svg_bars(const cli_svg *svg, const int64_t *counts, size_t count, double first,
                  double last, const char *what);
/* A line through points in order, interrupted at points that cannot be shown. class is a CSS class
 * (colour): a, b or c. */
void cli_svg_line(const cli_svg *svg, const char *class, const double *x, const double *y,
                  size_t count);
void cli_svg_points(const cli_svg *svg, const char *class, const double *x, const double *y,
                    size_t count, double radius);
/* A dashed vertical line at a value of the x axis, with text at its top. row 0, 1, 2 is the line of
 * the text, so that the texts of several marks do not overlap. */
void cli_svg_mark(const cli_svg *svg, double x, int row, const char *text);
/* Text at a pixel; anchor is "start", "middle" or "end"; class may be NULL. */
void cli_svg_text(double x, double y, const char *class, const char *anchor, const char *text);

/* The approximate width of text in the reader's sans-serif font of this size, rather too wide than
 * too narrow. */
double cli_svg_width(const char *text, double size);

/* Prints bytes as XML text. Control characters, invalid UTF-8 and direction marks become U+FFFD. */
void cli_svg_escape(const char *text, size_t length);

/* The distance of round ticks, 1, 2 or 5 times a power of ten, with at most `most_ticks` + 1 ticks
 * in the span. */
double cli_svg_step(double span, int most_ticks);

#endif
