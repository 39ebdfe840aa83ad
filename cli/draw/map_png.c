/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the map as a PNG. A PNG cannot follow the reader's system, so the theme auto is light.
 */
#include <math.h>
#include <string.h>

#include "core/args.h"
#include "draw/map_picture.h"
#include "draw/paint.h"

static const cli_map_theme *theme_of(const cli_map *map)
{
    return &cli_map_themes[strcmp(map->theme, "dark") == 0];
}

static uint32_t shade_color(const cli_map_picture *to, int shade)
{
    return cli_map_color(to->map, shade, strcmp(to->map->theme, "dark") == 0);
}

static double text_width(cli_map_picture *to, cli_map_kind kind, const char *text)
{
    cli_paint_font(to->context, cli_map_font(to, kind),
                   kind == CLI_MAP_TITLE || kind >= CLI_MAP_WORD);
    return cli_paint_width(to->context, text);
}

static void draw_text(cli_map_picture *to, cli_map_kind kind, cli_map_anchor anchor, double x,
                      double y, bool upward, const char *text)
{
    const cli_map_theme *theme = theme_of(to->map);
    double width = text_width(to, kind, text); /* sets the font, too */
    double back = anchor == CLI_MAP_START ? 0 : anchor == CLI_MAP_MIDDLE ? width / 2 : width;
    bool soft = kind == CLI_MAP_CAPTION || (kind == CLI_MAP_LABEL && to->map->listed_count > 0);
    if (kind >= CLI_MAP_LABEL) {
        cli_paint_color(to->context, theme->paper, 0.85);
        cli_paint_outline(to->context, x, y, 3 * to->unit, text);
    }
    uint32_t color = soft ? theme->soft : theme->ink;
    if (kind == CLI_MAP_NAME)
        color = cli_map_name_color(to->community, strcmp(to->map->theme, "dark") == 0);
    cli_paint_color(to->context, color, 1);
    cli_paint_text(to->context, upward ? x : x - back, upward ? y + back : y, upward, text);
}

static void draw_frame(cli_map_picture *to, const cli_map_frame *frame)
{
    cli_paint_color(to->context, theme_of(to->map)->line, 1);
    cli_paint_box(to->context, frame->left, frame->top, frame->width, frame->height, to->unit);
}

static void draw_points(cli_map_picture *to, int shade, const double *xy, size_t count)
{
    cli_paint_color(to->context, shade_color(to, shade), to->opacity);
    for (size_t i = 0; i < count; i++)
        cli_paint_disc(to->context, xy[2 * i], xy[2 * i + 1], to->radius);
}

static void draw_mark(cli_map_picture *to, int shade, double x, double y, double radius)
{
    cli_paint_color(to->context, shade_color(to, shade), 1);
    cli_paint_disc(to->context, x, y, radius);
    cli_paint_color(to->context, theme_of(to->map)->ink, 1);
    cli_paint_ring(to->context, x, y, radius, 1.5 * to->unit);
}

static void draw_line(cli_map_picture *to, double x0, double y0, double x1, double y1)
{
    cli_paint_color(to->context, theme_of(to->map)->soft, 1);
    cli_paint_line(to->context, x0, y0, x1, y1, to->unit);
}

static void draw_arrow(cli_map_picture *to, double x0, double y0, double x1, double y1,
                       const double head[6])
{
    cli_paint_color(to->context, theme_of(to->map)->ink, 1);
    cli_paint_line(to->context, x0, y0, x1, y1, 1.8 * to->unit);
    cli_paint_triangle(to->context, head);
}

static void draw_bar(cli_map_picture *to, int shade, double x, double y, double width,
                     double height)
{
    double left = round(x), top = round(y); /* sharp edges */
    cli_paint_color(to->context, shade_color(to, shade), 1);
    cli_paint_bar(to->context, left, top, round(x + width) - left, round(y + height) - top);
}

int cli_map_png(const cli_map *map)
{
    static const cli_map_backend backend = {.width = text_width,
                                            .text = draw_text,
                                            .frame = draw_frame,
                                            .points = draw_points,
                                            .mark = draw_mark,
                                            .line = draw_line,
                                            .arrow = draw_arrow,
                                            .bar = draw_bar};
    cli_paint *paint = cli_paint_new(map->width, map->height, theme_of(map)->paper);
    if (!paint) return CLI_FAILED;
    cli_map_picture picture = cli_map_picture_of(map, &backend, paint);
    int code = cli_map_draw(&picture);
    if (code == CLI_DONE) code = cli_paint_print(paint, map->title);
    cli_paint_free(paint);
    return code;
}
