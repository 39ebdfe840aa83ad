/* SPDX-License-Identifier: Apache-2.0 */
/* In place of paint.c where the headers of Cairo and Pango are missing. cli_paint_load fails, so
 * nobody calls the other functions.
 */
#include "core/args.h"
#include "draw/paint.h"

int cli_paint_load(void)
{
    return cli_failed("this program was built without Cairo and Pango (Debian: libpango1.0-dev); "
                      "write .svg or .html instead");
}

cli_paint *cli_paint_new(int width, int height, uint32_t color)
{
    (void)width, (void)height, (void)color;
    return NULL;
}

void cli_paint_free(cli_paint *paint)
{
    (void)paint;
}

void cli_paint_color(cli_paint *paint, uint32_t color, double alpha)
{
    (void)paint, (void)color, (void)alpha;
}

void cli_paint_disc(cli_paint *paint, double x, double y, double radius)
{
    (void)paint, (void)x, (void)y, (void)radius;
}

void cli_paint_ring(cli_paint *paint, double x, double y, double radius, double line)
{
    (void)paint, (void)x, (void)y, (void)radius, (void)line;
}

void cli_paint_bar(cli_paint *paint, double x, double y, double width, double height)
{
    (void)paint, (void)x, (void)y, (void)width, (void)height;
}

void cli_paint_box(cli_paint *paint, double x, double y, double width, double height, double line)
{
    (void)paint, (void)x, (void)y, (void)width, (void)height, (void)line;
}

void cli_paint_line(cli_paint *paint, double x0, double y0, double x1, double y1, double line)
{
    (void)paint, (void)x0, (void)y0, (void)x1, (void)y1, (void)line;
}

void cli_paint_curve(cli_paint *paint, const double points[8], double line)
{
    (void)paint, (void)points, (void)line;
}

void cli_paint_path(cli_paint *paint, const double *points, size_t count, double scale, double line)
{
    (void)paint, (void)points, (void)count, (void)scale, (void)line;
}

void cli_paint_triangle(cli_paint *paint, const double corners[6])
{
    (void)paint, (void)corners;
}

void cli_paint_font(cli_paint *paint, double size, bool bold)
{
    (void)paint, (void)size, (void)bold;
}

double cli_paint_width(cli_paint *paint, const char *text)
{
    (void)paint, (void)text;
    return 0;
}

void cli_paint_text(cli_paint *paint, double x, double y, bool upward, const char *text)
{
    (void)paint, (void)x, (void)y, (void)upward, (void)text;
}

void cli_paint_outline(cli_paint *paint, double x, double y, double line, const char *text)
{
    (void)paint, (void)x, (void)y, (void)line, (void)text;
}

int cli_paint_print(cli_paint *paint, const char *title)
{
    (void)paint, (void)title;
    return CLI_FAILED;
}
