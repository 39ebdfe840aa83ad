/* SPDX-License-Identifier: Apache-2.0 */
/* The drawing of a map that all pictures share: title, legend, frame, points, labels, axes.
 *
 * Lengths are those of a picture of 1200 x 900. A larger picture is the same picture in larger.
 */
#include "draw/map_picture.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "core/args.h"

const cli_map_theme cli_map_themes[2] = {
    {.paper = 0xfbfbfa, .ink = 0x1b1d22, .soft = 0x5b616e, .line = 0xdfe1e6},
    {.paper = 0x121419, .ink = 0xeceef2, .soft = 0xa2a9b6, .line = 0x31363f}};

double cli_map_font(const cli_map_picture *picture, cli_map_kind kind)
{
    return picture->unit * (kind == CLI_MAP_TITLE ? 17 : kind >= CLI_MAP_WORD ? 13.5 : 12);
}

cli_map_picture cli_map_picture_of(const cli_map *map, const cli_map_backend *backend,
                                   void *context)
{
    cli_map_picture p = {.map = map, .backend = backend, .context = context};
    p.unit = fmax(1, fmin(map->width / 1200.0, map->height / 900.0));
    p.frame = cli_map_frame_in(map, 44 * p.unit, 72 * p.unit, map->width - 68 * p.unit,
                               map->height - 112 * p.unit);
    double area = p.frame.width * p.frame.height / (p.unit * p.unit);
    double radius = cli_map_radius(map, area);
    double covered = 3.14 * radius * radius * (double)map->points / area;
    p.radius = radius * p.unit;
    p.opacity = fmax(0.3, 0.85 / (1 + covered));
    /* beside highlighted rows the others are the background */
    if (map->listed_count > 0 && !map->only) p.opacity *= 0.5;
    return p;
}

/* ---- points ---- */

static int draw_points(cli_map_picture *p, const uint8_t *shades)
{
    size_t rows = (size_t)p->map->rows;
    double *xy = malloc((rows > 0 ? rows : 1) * 2 * sizeof *xy);
    if (!xy) return cli_failed("no memory for the positions of %zu rows", rows);
    for (int shade = CLI_MAP_SHADES - 1; shade >= 0; shade--) {
        size_t count = 0;
        for (int64_t row = p->map->rows - 1; row >= 0; row--) /* early rows are drawn on top */
            count += shades[row] == shade &&
                     cli_map_at(p->map, &p->frame, row, &xy[2 * count], &xy[2 * count + 1]);
        if (count > 0) p->backend->points(p, shade, xy, count);
    }
    free(xy);
    return CLI_DONE;
}

static double mark_radius(const cli_map_picture *p)
{
    return fmax(p->radius, 3 * p->unit) + 1.5 * p->unit;
}

static void draw_marks(cli_map_picture *p, const uint8_t *shades)
{
    double x, y;
    for (size_t i = p->map->listed_count; i-- > 0;)
        if (cli_map_at(p->map, &p->frame, p->map->listed[i], &x, &y))
            p->backend->mark(p, shades[p->map->listed[i]], x, y, mark_radius(p));
}

/* Draws an arrow from the edge of one mark to the edge of another; nothing if they touch. */
static void draw_arrow(cli_map_picture *p, double x0, double y0, double x1, double y1)
{
    const double u = p->unit, gap = mark_radius(p) + 3 * u, length = 11 * u, half = 4.5 * u;
    double far = hypot(x1 - x0, y1 - y0), dx = (x1 - x0) / far, dy = (y1 - y0) / far;
    if (!(far > 2 * gap + length)) return;
    x0 += gap * dx, y0 += gap * dy, x1 -= gap * dx, y1 -= gap * dy;
    double x = x1 - length * dx, y = y1 - length * dy; /* the base of the head */
    const double head[6] = {x1, y1, x - half * dy, y + half * dx, x + half * dy, y - half * dx};
    p->backend->arrow(p, x0, y0, x, y, head);
}

static void draw_arrows(cli_map_picture *p)
{
    const cli_map *map = p->map;
    double x0, y0, x1, y1;
    for (size_t i = 0; i < map->arrow_count; i++)
        if (cli_map_at(map, &p->frame, map->arrows[2 * i], &x0, &y0) &&
            cli_map_at(map, &p->frame, map->arrows[2 * i + 1], &x1, &y1))
            draw_arrow(p, x0, y0, x1, y1);
}

/* ---- labels ---- */

static double label_width(void *context, bool listed, const char *text)
{
    cli_map_picture *p = context;
    return p->backend->width(p, listed ? CLI_MAP_WORD : CLI_MAP_LABEL, text);
}

/* Lines from words to points that are not beside them. */
static void draw_leaders(cli_map_picture *p, const cli_map_text *texts, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const cli_map_text *t = &texts[i];
        double y = t->y - 0.28 * 15 * p->unit;
        double x = fmax(t->x - 2 * p->unit, fmin(t->point_x, t->x + t->width + 2 * p->unit));
        if (x > t->x && x < t->x + t->width) y += (t->point_y > y ? 8 : -8) * p->unit;
        if (t->away) p->backend->line(p, t->point_x, t->point_y, x, y);
    }
}

static void draw_labels(cli_map_picture *p, const uint8_t *shades)
{
    const cli_map_lettering lettering = {.height = 15 * p->unit,
                                         .radius = p->radius,
                                         .gap = p->radius + 3 * p->unit,
                                         .listed_gap = mark_radius(p) + 3.5 * p->unit,
                                         .context = p,
                                         .width = label_width};
    cli_map_text *texts;
    size_t count = cli_map_texts(p->map, &p->frame, &lettering, &texts);
    draw_leaders(p, texts, count);
    draw_arrows(p);
    draw_marks(p, shades);
    for (size_t i = count; i-- > 0;) {
        const cli_map_kind kind = texts[i].row < 0  ? CLI_MAP_NAME
                                  : texts[i].listed ? CLI_MAP_WORD
                                                    : CLI_MAP_LABEL;
        p->community = texts[i].community;
        p->backend->text(p, kind, CLI_MAP_START, texts[i].x, texts[i].y, false, texts[i].text);
    }
    free(texts);
}

/* ---- around the points ---- */

/* The colour legend, above the right corner, if there is room beside the facts that end at `from`.
 */
static void draw_legend(cli_map_picture *p, double from)
{
    bool rows = strcmp(p->map->color, "row") == 0;
    const char *least = rows ? "first row" : "short rows", *most = rows ? "last" : "long";
    double u = p->unit, y = 47 * u, width = 6 * u, right = p->frame.left + p->frame.width;
    double end = right - p->backend->width(p, CLI_MAP_CAPTION, most) - 8 * u;
    double left = end - CLI_MAP_SHADES * width;
    if (strcmp(p->map->color, "none") == 0 || strcmp(p->map->color, "community") == 0) return;
    if (left - p->backend->width(p, CLI_MAP_CAPTION, least) < from + 24 * u) return;
    for (int shade = 0; shade < CLI_MAP_SHADES; shade++) /* to the end: no seams between them */
        p->backend->bar(p, shade, left + shade * width, y, (CLI_MAP_SHADES - shade) * width, 8 * u);
    p->backend->text(p, CLI_MAP_CAPTION, CLI_MAP_END, left - 8 * u, y + 8 * u, false, least);
    p->backend->text(p, CLI_MAP_CAPTION, CLI_MAP_START, end + 8 * u, y + 8 * u, false, most);
}

static void draw_captions(cli_map_picture *p)
{
    char text[256];
    double u = p->unit;
    const cli_map_frame *f = &p->frame;
    p->backend->text(p, CLI_MAP_TITLE, CLI_MAP_START, 24 * u, 34 * u, false, p->map->title);
    cli_map_facts(p->map, text, sizeof text);
    p->backend->text(p, CLI_MAP_CAPTION, CLI_MAP_START, 24 * u, 55 * u, false, text);
    draw_legend(p, 24 * u + p->backend->width(p, CLI_MAP_CAPTION, text));
    cli_map_axis(p->map, 0, text, sizeof text);
    p->backend->text(p, CLI_MAP_CAPTION, CLI_MAP_MIDDLE, f->left + f->width / 2,
                     p->map->height - 16 * u, false, text);
    cli_map_axis(p->map, 1, text, sizeof text);
    if (text[0])
        p->backend->text(p, CLI_MAP_CAPTION, CLI_MAP_MIDDLE, 30 * u, f->top + f->height / 2, true,
                         text);
}

int cli_map_draw(cli_map_picture *p)
{
    uint8_t *shades = cli_map_shades(p->map);
    if (!shades)
        return cli_failed("no memory for the colours of %lld rows", (long long)p->map->rows);
    draw_captions(p);
    p->backend->frame(p, &p->frame);
    int code = draw_points(p, shades);
    if (code == CLI_DONE) draw_labels(p, shades);
    free(shades);
    return code;
}
