/* SPDX-License-Identifier: Apache-2.0 */
/* Pixels: shapes by Cairo, text in any script by Pango, and a PNG file of them.
 *
 * Lengths are in pixels, y grows downwards. Text is UTF-8 from anywhere: unprintable characters are
 * drawn as U+FFFD, and a character that no font has as a box with its code.
 */
#ifndef CLI_DRAW_PAINT_H
#define CLI_DRAW_PAINT_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

typedef struct cli_paint cli_paint;

/* Loads the libraries. CLI_DONE, or CLI_FAILED after a message that names what is missing. */
int cli_paint_load(void);
/* A canvas of this colour. NULL after a message. Call cli_paint_load first. */
cli_paint *cli_paint_new(int width, int height, uint32_t color);
void cli_paint_free(cli_paint *paint);

/* The colour of everything drawn from now on, 0xrrggbb; alpha is 0 to 1. */
void cli_paint_color(cli_paint *paint, uint32_t color, double alpha);
void cli_paint_disc(cli_paint *paint, double x, double y, double radius);
void cli_paint_ring(cli_paint *paint, double x, double y, double radius, double line);
void cli_paint_bar(cli_paint *paint, double x, double y, double width, double height);
void cli_paint_box(cli_paint *paint, double x, double y, double width, double height, double line);
void cli_paint_line(cli_paint *paint, double x0, double y0, double x1, double y1, double line);
/* A Bezier curve: its start, two control points and its end, x and y in turn. */
void cli_paint_curve(cli_paint *paint, const double points[8], double line);
/* A line through count points, x and y in turn, multiplied by scale. */
void cli_paint_path(cli_paint *paint, const double *points, size_t count, double scale,
                    double line);
/* A filled triangle: x and y of its corners, in turn. */
void cli_paint_triangle(cli_paint *paint, const double corners[6]);

/* The font of all text from now on: sans-serif. */
void cli_paint_font(cli_paint *paint, double size, bool bold);
double cli_paint_width(cli_paint *paint, const char *text);
/* Text whose baseline begins at x, y; upward: from bottom to top. */
void cli_paint_text(cli_paint *paint, double x, double y, bool upward, const char *text);
/* The outline of the same text, for a halo below it. */
void cli_paint_outline(cli_paint *paint, double x, double y, double line, const char *text);

/* Prints the picture to stdout as a PNG with this title. CLI_DONE, or CLI_FAILED after a message.
 */
int cli_paint_print(cli_paint *paint, const char *title);

#endif
