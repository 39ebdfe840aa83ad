/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the map as an SVG.
 *
 * All points of one shade are one path of zero-length lines with round caps, which takes a third of
 * the bytes of circles. Colours follow the reader's system unless a theme is given.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "core/out.h"
#include "draw/map_frame.h"
#include "draw/svg.h"

enum { SHADES = 24, FONT = 12, STYLE = 4096 };

static uint8_t middle_shade(int part)
{
    return (uint8_t)((2 * part + 1) * 255 / (2 * SHADES));
}

/* Appends the CSS rules of one theme, which override those of svg.c. */
static size_t append_theme(const cli_map *map, bool dark, char *style, size_t used)
{
    used += (size_t)snprintf(
        style + used, STYLE - used,
        "text{fill:%s}.title{fill:%s}.label{fill:%s}.paper{fill:%s}.halo{stroke:%s}"
        ".frame{stroke:%s}\n",
        dark ? "#a2a9b6" : "#5b616e", dark ? "#eceef2" : "#1b1d22", dark ? "#eceef2" : "#1b1d22",
        dark ? "#121419" : "#fbfbfa", dark ? "#121419" : "#fbfbfa", dark ? "#31363f" : "#dfe1e6");
    for (int part = 0; part < SHADES; part++) {
        unsigned color = cli_map_color(map, middle_shade(part), dark);
        used += (size_t)snprintf(style + used, STYLE - used, ".s%d{stroke:#%06x}", part, color);
    }
    return used;
}

static void make_style(const cli_map *map, double radius, char style[STYLE])
{
    bool automatic = strcmp(map->theme, "auto") == 0;
    size_t used = (size_t)snprintf(style, STYLE,
                                   ".p{fill:none;stroke-width:%.2f;stroke-linecap:round;"
                                   "stroke-opacity:%.2f}.halo{stroke-opacity:.85}"
                                   ".frame{fill:none}\n",
                                   2 * radius, map->rows > 2000 ? 0.6 : 0.85);
    used = append_theme(map, strcmp(map->theme, "dark") == 0, style, used);
    if (!automatic) return;
    used += (size_t)snprintf(style + used, STYLE - used, "\n@media (prefers-color-scheme:dark){");
    used = append_theme(map, true, style, used);
    snprintf(style + used, STYLE - used, "}\n");
}

static void print_points(const cli_map *map, const cli_map_frame *frame, const uint8_t *shades)
{
    for (int part = SHADES - 1; part >= 0; part--) {
        bool any = false;
        for (int64_t row = map->rows - 1; row >= 0; row--) { /* early rows are drawn on top */
            double x, y;
            if (shades[row] * SHADES / 256 != part || !cli_map_at(map, frame, row, &x, &y))
                continue;
            if (!any) printf("<path class=\"p s%d\" d=\"", part);
            any = true;
            printf("M%.1f %.1fh0", x, y);
        }
        if (any) puts("\"/>");
    }
}

/* The approximate width in the system's font. */
static double width_of(const char *text, size_t columns, double height)
{
    (void)text;
    return (double)columns * height * 0.46;
}

static void print_words(const cli_map *map, const cli_map_frame *frame, double radius)
{
    const cli_map_lettering lettering = {
        .height = FONT * 1.25, .gap = radius + 3, .width = width_of};
    cli_map_text *texts = malloc(CLI_MAP_TEXTS * sizeof *texts);
    size_t count = texts ? cli_map_texts(map, frame, &lettering, texts) : 0;
    for (size_t i = 0; i < count; i++)
        cli_svg_text(texts[i].x, texts[i].y, "label halo", "start", texts[i].text);
    free(texts);
}

/* The colour legend, above the right corner. */
static void print_legend(const cli_map *map, double right, double y)
{
    bool rows = strcmp(map->color, "row") == 0;
    double width = 6, end = right - 36, left = end - SHADES * width;
    if (strcmp(map->color, "none") == 0) return;
    for (int part = 0; part < SHADES; part++)
        printf("<path class=\"s%d\" stroke-width=\"8\" d=\"M%.1f %.1fh%.1f\"/>\n", part,
               left + part * width, y, part + 1 < SHADES ? width + 0.3 : width);
    cli_svg_text(left - 8, y + 4, NULL, "end", rows ? "first row" : "short rows");
    cli_svg_text(end + 8, y + 4, NULL, "start", rows ? "last" : "long");
}

int cli_map_svg(const cli_map *map)
{
    cli_map_frame frame =
        cli_map_frame_in(map, 44, 72, (double)map->width - 68, (double)map->height - 112);
    double radius = cli_map_radius(map, frame.width * frame.height);
    char style[STYLE], facts[256], axis[128];
    uint8_t *shades = cli_map_shades(map);
    if (!shades) return cli_failed("no memory for the colours of %lld rows", (long long)map->rows);
    make_style(map, radius, style);
    cli_svg svg = {.title = map->title,
                   .width = map->width,
                   .height = map->height,
                   .plain = true,
                   .style = style};
    cli_svg_open(&svg);
    cli_svg_text(24, 34, "title", "start", map->title);
    cli_map_facts(map, facts, sizeof facts);
    cli_svg_text(24, 55, "subtitle", "start", facts);
    if (map->width >= 640) print_legend(map, frame.left + frame.width, 51);
    printf(
        "<rect class=\"frame\" x=\"%.1f\" y=\"%.1f\" width=\"%.1f\" height=\"%.1f\" rx=\"4\"/>\n",
        frame.left, frame.top, frame.width, frame.height);
    print_points(map, &frame, shades);
    print_words(map, &frame, radius);
    cli_map_axis(map, 0, axis, sizeof axis);
    cli_svg_text(frame.left + frame.width / 2, map->height - 16, NULL, "middle", axis);
    cli_map_axis(map, 1, axis, sizeof axis);
    printf("<g transform=\"translate(30 %.1f) rotate(-90)\">", frame.top + frame.height / 2);
    cli_svg_text(0, 0, NULL, "middle", axis);
    puts("</g>");
    cli_svg_close(&svg);
    free(shades);
    return CLI_DONE;
}
