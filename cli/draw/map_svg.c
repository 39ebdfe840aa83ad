/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the map as an SVG.
 *
 * All points of one shade are one path of zero-length lines with round caps, which takes a third of
 * the bytes of circles. Colours follow the reader's system unless a theme is given.
 */
#include <stdio.h>
#include <string.h>

#include "core/args.h"
#include "draw/map_picture.h"
#include "draw/svg.h"

enum { STYLE = 4096 };

/* ---- style ---- */

/* Appends the CSS rules of one theme, which override those of svg.c. */
static size_t append_theme(const cli_map *map, bool dark, char *style, size_t used)
{
    const cli_map_theme *theme = &cli_map_themes[dark];
    used += (size_t)snprintf(
        style + used, STYLE - used,
        "text{fill:#%06x}.title,.label,.word{fill:#%06x}.label.soft{fill:#%06x}"
        ".paper{fill:#%06x}.halo{stroke:#%06x}.frame{stroke:#%06x}.ring{stroke:#%06x}"
        ".leader{stroke:#%06x}.arrow{stroke:#%06x}.head{fill:#%06x}\n",
        theme->soft, theme->ink, theme->soft, theme->paper, theme->paper, theme->line, theme->ink,
        theme->soft, theme->ink, theme->ink);
    for (int shade = 0; shade < CLI_MAP_SHADES; shade++) {
        unsigned color = cli_map_color(map, shade, dark);
        used += (size_t)snprintf(style + used, STYLE - used, ".s%d{stroke:#%06x}", shade, color);
    }
    for (int c = 0; strcmp(map->color, "community") == 0 && c < CLI_MAP_COMMUNITIES; c++)
        used += (size_t)snprintf(style + used, STYLE - used, ".c%d{fill:#%06x}", c,
                                 (unsigned)cli_map_name_color(c, dark));
    return used;
}

static void make_style(const cli_map_picture *p, char style[STYLE])
{
    const cli_map *map = p->map;
    bool automatic = strcmp(map->theme, "auto") == 0;
    size_t used = (size_t)snprintf(
        style, STYLE,
        "text{font-size:%.4gpx}.title{font-size:%.4gpx}.word{font-size:%.4gpx;font-weight:700}"
        ".p{fill:none;stroke-width:%.2f;stroke-linecap:round;stroke-opacity:%.2f}"
        ".m{stroke-linecap:round}.halo{stroke-opacity:.85;stroke-width:%.4gpx}.frame{fill:none}\n",
        cli_map_font(p, CLI_MAP_CAPTION), cli_map_font(p, CLI_MAP_TITLE),
        cli_map_font(p, CLI_MAP_WORD), 2 * p->radius, p->opacity, 3 * p->unit);
    used = append_theme(map, strcmp(map->theme, "dark") == 0, style, used);
    if (!automatic) return;
    used += (size_t)snprintf(style + used, STYLE - used, "\n@media (prefers-color-scheme:dark){");
    used = append_theme(map, true, style, used);
    snprintf(style + used, STYLE - used, "}\n");
}

/* ---- the parts ---- */

/* The approximate width in the reader's font, rather too wide than too narrow. */
static double text_width(cli_map_picture *to, cli_map_kind kind, const char *text)
{
    return cli_svg_width(text, cli_map_font(to, kind)) * (kind >= CLI_MAP_WORD ? 1.1 : 1);
}

static void print_text(cli_map_picture *to, cli_map_kind kind, cli_map_anchor anchor, double x,
                       double y, bool upward, const char *text)
{
    static const char *const anchors[] = {"start", "middle", "end"};
    static const char *const classes[] = {"title", NULL, "label halo", "word halo", NULL};
    char name[32];
    bool soft = kind == CLI_MAP_LABEL && to->map->listed_count > 0;
    if (upward) printf("<g transform=\"translate(%.1f %.1f) rotate(-90)\">", x, y);
    (void)snprintf(name, sizeof name, "word halo c%d", to->community);
    cli_svg_text(upward ? 0 : x, upward ? 0 : y,
                 soft                   ? "label halo soft"
                 : kind == CLI_MAP_NAME ? name
                                        : classes[kind],
                 anchors[anchor], text);
    if (upward) puts("</g>");
}

static void print_frame(cli_map_picture *to, const cli_map_frame *frame)
{
    (void)to;
    printf(
        "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\"/>\n",
        frame->left, frame->top, frame->width, frame->height);
}

static void print_points(cli_map_picture *to, int shade, const double *xy, size_t count)
{
    (void)to;
    printf("<path class=\"p s%d\" d=\"", shade);
    for (size_t i = 0; i < count; i++) printf("M%.1f %.1fh0", xy[2 * i], xy[2 * i + 1]);
    puts("\"/>");
}

/* The ring is a larger point below. */
static void print_mark(cli_map_picture *to, int shade, double x, double y, double radius)
{
    printf("<path class=\"m ring\" stroke-width=\"%.2f\" d=\"M%.1f %.1fh0\"/>"
           "<path class=\"m s%d\" stroke-width=\"%.2f\" d=\"M%.1f %.1fh0\"/>\n",
           2 * radius + 1.5 * to->unit, x, y, shade, 2 * radius - 1.5 * to->unit, x, y);
}

static void print_line(cli_map_picture *to, double x0, double y0, double x1, double y1)
{
    printf("<path class=\"leader\" stroke-width=\"%.4g\" d=\"M%.1f %.1fL%.1f %.1f\"/>\n", to->unit,
           x0, y0, x1, y1);
}

static void print_arrow(cli_map_picture *to, double x0, double y0, double x1, double y1,
                        const double head[6])
{
    printf("<path class=\"arrow\" stroke-width=\"%.4g\" d=\"M%.1f %.1fL%.1f %.1f\"/>"
           "<path class=\"head\" d=\"M%.1f %.1fL%.1f %.1fL%.1f %.1fZ\"/>\n",
           1.8 * to->unit, x0, y0, x1, y1, head[0], head[1], head[2], head[3], head[4], head[5]);
}

static void print_bar(cli_map_picture *to, int shade, double x, double y, double width,
                      double height)
{
    (void)to;
    printf("<path class=\"s%d\" stroke-width=\"%.4g\" d=\"M%.1f %.1fh%.1f\"/>\n", shade, height, x,
           y + height / 2, width);
}

int cli_map_svg(const cli_map *map)
{
    static const cli_map_backend backend = {.width = text_width,
                                            .text = print_text,
                                            .frame = print_frame,
                                            .points = print_points,
                                            .mark = print_mark,
                                            .line = print_line,
                                            .arrow = print_arrow,
                                            .bar = print_bar};
    cli_map_picture picture = cli_map_picture_of(map, &backend, NULL);
    char style[STYLE];
    make_style(&picture, style);
    cli_svg svg = {.title = map->title,
                   .width = map->width,
                   .height = map->height,
                   .plain = true,
                   .style = style};
    cli_svg_open(&svg);
    int code = cli_map_draw(&picture);
    cli_svg_close(&svg);
    return code;
}
