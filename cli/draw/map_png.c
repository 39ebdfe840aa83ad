/* SPDX-License-Identifier: Apache-2.0 */
/* Draws the map as a PNG: antialiased points, and words of strokes.
 *
 * Each pixel sums the coverage and the colours of its points. Overlapping points become denser, and
 * the result does not depend on their order.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"
#include "draw/map_font.h"
#include "draw/map_frame.h"
#include "draw/png_out.h"

typedef struct {
    int width, height;
    uint8_t *pixels; /* width x height x 3 */
    float *cover;    /* width x height x 4: coverage, and the sum of the colours */
    double unit;     /* pixels per font unit of labels */
    bool dark;
} canvas;

/* ---- points ---- */

static void add_point(canvas *to, double x, double y, double radius, uint32_t color)
{
    int left = (int)floor(x - radius - 1), right = (int)ceil(x + radius + 1);
    int top = (int)floor(y - radius - 1), bottom = (int)ceil(y + radius + 1);
    for (int row = top < 0 ? 0 : top; row <= bottom && row < to->height; row++) {
        for (int column = left < 0 ? 0 : left; column <= right && column < to->width; column++) {
            double from = hypot(column + 0.5 - x, row + 0.5 - y);
            double part = radius + 0.5 - from;
            if (part <= 0) continue;
            if (part > 1) part = 1;
            float *cover = to->cover + ((size_t)row * (size_t)to->width + (size_t)column) * 4;
            cover[0] += (float)part;
            for (int c = 0; c < 3; c++)
                cover[c + 1] += (float)(part * (double)(color >> (16 - 8 * c) & 0xff));
        }
    }
}

static void blend(canvas *to, size_t pixel, const double color[3], double alpha)
{
    for (size_t c = 0; c < 3; c++) {
        double was = to->pixels[3 * pixel + c];
        to->pixels[3 * pixel + c] = (uint8_t)(was + (color[c] - was) * alpha + 0.5);
    }
}

static void blend_points(canvas *to, double opacity)
{
    for (size_t i = 0; i < (size_t)to->width * (size_t)to->height; i++) {
        const float *cover = to->cover + 4 * i;
        if (cover[0] <= 0) continue;
        const double whole = (double)cover[0];
        const double color[3] = {(double)cover[1] / whole, (double)cover[2] / whole,
                                 (double)cover[3] / whole};
        blend(to, i, color, 1 - pow(1 - opacity, whole));
    }
}

/* ---- words ---- */

/* The coverage of each pixel in a box around a text. */
typedef struct {
    float *part;
    int left, top, width, height;
    double x, y, unit; /* lower left corner of the text; pixels per font unit */
    double radius;     /* of the pen */
    bool upright;      /* vertical text, from bottom to top */
} stencil;

static void add_stroke(void *context, cli_stroke stroke)
{
    stencil *s = context;
    double x0 = s->x + (s->upright ? -stroke.y0 : stroke.x0) * s->unit;
    double y0 = s->y - (s->upright ? stroke.x0 : stroke.y0) * s->unit;
    double x1 = s->x + (s->upright ? -stroke.y1 : stroke.x1) * s->unit;
    double y1 = s->y - (s->upright ? stroke.x1 : stroke.y1) * s->unit;
    double dx = x1 - x0, dy = y1 - y0, length = dx * dx + dy * dy, reach = s->radius + 1;
    int left = (int)floor(fmin(x0, x1) - reach) - s->left,
        right = left + (int)(fabs(dx) + 2 * reach);
    int top = (int)floor(fmin(y0, y1) - reach) - s->top, bottom = top + (int)(fabs(dy) + 2 * reach);
    for (int row = top < 0 ? 0 : top; row <= bottom + 1 && row < s->height; row++) {
        for (int column = left < 0 ? 0 : left; column <= right + 1 && column < s->width; column++) {
            double x = s->left + column + 0.5, y = s->top + row + 0.5;
            double along = length > 0 ? ((x - x0) * dx + (y - y0) * dy) / length : 0;
            along = along < 0 ? 0 : along > 1 ? 1 : along;
            double part = s->radius + 0.5 - hypot(x - x0 - along * dx, y - y0 - along * dy);
            float *place = s->part + (size_t)row * (size_t)s->width + (size_t)column;
            if (part > (double)*place) *place = (float)(part < 1 ? part : 1);
        }
    }
}

typedef struct {
    double unit, radius; /* pixels per font unit, radius of the pen */
    uint32_t color;
    double alpha;
    bool upright; /* vertical text, from bottom to top */
} pen;

/* Draws text whose baseline begins at x, y. */
static void draw_text(canvas *to, double x, double y, const pen *with, const char *text)
{
    bool upright = with->upright;
    double width = cli_font_width(text) * with->unit;
    double height = (CLI_FONT_TOP + 1) * with->unit;
    double base = CLI_FONT_BASE * with->unit, edge = with->radius + 2;
    stencil s = {.x = x + (upright ? base : 0), .y = y + (upright ? 0 : base)};
    s.unit = with->unit;
    s.radius = with->radius;
    s.upright = upright;
    s.left = (int)floor((upright ? s.x - height : s.x) - edge);
    s.top = (int)floor((upright ? s.y - width : s.y - height) - edge);
    s.width = (int)ceil((upright ? height : width) + 2 * edge) + 1;
    s.height = (int)ceil((upright ? width : height) + 2 * edge) + 1;
    s.part = calloc((size_t)s.width * (size_t)s.height, sizeof *s.part);
    if (!s.part) return; /* the picture is drawn without this word */
    cli_font_strokes(text, add_stroke, &s);
    const uint32_t color = with->color;
    const double ink[3] = {color >> 16 & 0xff, color >> 8 & 0xff, color & 0xff};
    for (int row = 0; row < s.height; row++) {
        for (int column = 0; column < s.width; column++) {
            int at_x = s.left + column, at_y = s.top + row;
            float part = s.part[(size_t)row * (size_t)s.width + (size_t)column];
            if (part <= 0 || at_x < 0 || at_y < 0 || at_x >= to->width || at_y >= to->height)
                continue;
            blend(to, (size_t)at_y * (size_t)to->width + (size_t)at_x, ink,
                  (double)part * with->alpha);
        }
    }
    free(s.part);
}

enum { LINE = 9 }; /* units from one line to the next */

static double width_of(const char *text, size_t columns, double height)
{
    (void)columns;
    return cli_font_width(text) * height / LINE;
}

static uint32_t background(const canvas *to)
{
    return to->dark ? 0x121419 : 0xfbfbfa;
}

static uint32_t text_color(const canvas *to)
{
    return to->dark ? 0xeceef2 : 0x1b1d22;
}

static uint32_t caption_color(const canvas *to)
{
    return to->dark ? 0xa2a9b6 : 0x5b616e;
}

static void draw_words(canvas *to, const cli_map *map, const cli_map_frame *frame, double radius)
{
    const cli_map_lettering lettering = {.ascii = true,
                                         .height = LINE * to->unit,
                                         .gap = radius + 2.5 * to->unit,
                                         .width = width_of};
    const pen halo = {to->unit, 2.2 * to->unit, background(to), 0.8, false};
    const pen letters = {to->unit, 0.5 * to->unit, text_color(to), 1, false};
    cli_map_text *texts = malloc(CLI_MAP_TEXTS * sizeof *texts);
    size_t count = texts ? cli_map_texts(map, frame, &lettering, texts) : 0;
    for (size_t i = 0; i < count; i++) {
        const cli_map_text *t = &texts[i];
        draw_text(to, t->x, t->y, &halo, t->text);
        draw_text(to, t->x, t->y, &letters, t->text);
    }
    free(texts);
}

/* ---- the picture ---- */

static void draw_frame(canvas *to, const cli_map_frame *frame)
{
    const uint32_t line = to->dark ? 0x31363f : 0xdfe1e6;
    const double color[3] = {line >> 16 & 0xff, line >> 8 & 0xff, line & 0xff};
    int left = (int)frame->left, right = (int)(frame->left + frame->width);
    int top = (int)frame->top, bottom = (int)(frame->top + frame->height);
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x += y == top || y == bottom ? 1 : right - left)
            blend(to, (size_t)y * (size_t)to->width + (size_t)x, color, 1);
}

/* The title in ASCII, for the stroke font. */
static void ascii_title(const cli_map *map, char text[128])
{
    size_t used = 0;
    for (const char *c = map->title; *c && used < 120; c++)
        if ((*c & 0xc0) != 0x80) text[used++] = *c >= ' ' && *c <= '~' ? *c : '?';
    text[used] = '\0';
}

static void draw_captions(canvas *to, const cli_map *map, const cli_map_frame *frame)
{
    char title[128], text[256];
    double unit = to->unit;
    const pen bold = {1.6 * unit, 1.05 * unit, text_color(to), 1, false};
    const pen plain = {unit, 0.5 * unit, caption_color(to), 1, false};
    const pen upward = {unit, 0.5 * unit, caption_color(to), 1, true};
    ascii_title(map, title);
    draw_text(to, frame->left, 18 * unit, &bold, title);
    cli_map_facts(map, text, sizeof text);
    draw_text(to, frame->left, 30 * unit, &plain, text);
    cli_map_axis(map, 0, text, sizeof text);
    double width = cli_font_width(text) * unit;
    draw_text(to, frame->left + (frame->width - width) / 2, to->height - 7 * unit, &plain, text);
    cli_map_axis(map, 1, text, sizeof text);
    width = cli_font_width(text) * unit;
    draw_text(to, frame->left - 5 * unit, frame->top + (frame->height + width) / 2, &upward, text);
}

/* The colour legend, above the right corner. */
static void draw_legend(canvas *to, const cli_map *map, const cli_map_frame *frame)
{
    bool rows = strcmp(map->color, "row") == 0;
    const char *least = rows ? "first row" : "short rows", *most = rows ? "last" : "long";
    double unit = to->unit;
    const pen plain = {unit, 0.5 * unit, caption_color(to), 1, false};
    int width = (int)(100 * unit), height = (int)(6 * unit), top = (int)(24 * unit);
    int right = (int)(frame->left + frame->width - cli_font_width(most) * unit - 5 * unit);
    double left = right - width - (cli_font_width(least) + 3) * unit;
    if (strcmp(map->color, "none") == 0 || left < to->width * 0.55) return;
    for (int y = top; y < top + height; y++) {
        for (int x = 0; x < width; x++) {
            uint32_t shade = cli_map_color(map, (uint8_t)(x * 255 / width), to->dark);
            const double color[3] = {shade >> 16 & 0xff, shade >> 8 & 0xff, shade & 0xff};
            blend(to, (size_t)y * (size_t)to->width + (size_t)(right - width + x), color, 1);
        }
    }
    draw_text(to, left, 30 * unit, &plain, least);
    draw_text(to, right + 5 * unit, 30 * unit, &plain, most);
}

static void draw(canvas *to, const cli_map *map, const uint8_t *shades)
{
    double unit = to->unit;
    cli_map_frame frame =
        cli_map_frame_in(map, 22 * unit, 38 * unit, to->width - 32 * unit, to->height - 58 * unit);
    double radius = cli_map_radius(map, frame.width * frame.height);
    double covered = 3.14 * radius * radius * (double)map->rows / (frame.width * frame.height);
    double opacity = 0.85 / (1 + covered);
    for (size_t i = 0; i < (size_t)to->width * (size_t)to->height; i++)
        for (size_t c = 0; c < 3; c++)
            to->pixels[3 * i + c] = (uint8_t)(background(to) >> (16 - 8 * c));
    draw_frame(to, &frame);
    for (int64_t row = 0; row < map->rows; row++) {
        double x, y;
        if (cli_map_at(map, &frame, row, &x, &y))
            add_point(to, x, y, radius, cli_map_color(map, shades[row], to->dark));
    }
    blend_points(to, opacity);
    draw_words(to, map, &frame, radius);
    draw_captions(to, map, &frame);
    draw_legend(to, map, &frame);
}

int cli_map_png(const cli_map *map)
{
    size_t pixels = (size_t)map->width * (size_t)map->height;
    double across = map->width / 1000.0, down = map->height / 750.0;
    canvas to = {.width = map->width, .height = map->height};
    uint8_t *shades = cli_map_shades(map);
    char title[128];
    to.unit = across < down ? across : down;
    to.unit = to.unit < 1 ? 1 : to.unit;
    to.dark = strcmp(map->theme, "dark") == 0; /* a PNG cannot follow the reader's system */
    to.pixels = malloc(pixels * 3);
    to.cover = calloc(pixels, 4 * sizeof *to.cover);
    ascii_title(map, title);
    int code = CLI_DONE;
    if (!shades || !to.pixels || !to.cover)
        code = cli_failed("no memory for a picture of %d x %d pixels", map->width, map->height);
    if (code == CLI_DONE) draw(&to, map, shades);
    if (code == CLI_DONE) code = cli_png_print(to.pixels, to.width, to.height, title);
    free(shades);
    free(to.pixels);
    free(to.cover);
    return code;
}
