/* SPDX-License-Identifier: Apache-2.0 */
/* A picture of the map. map_picture.c decides what is drawn where; a backend (map_svg.c, map_png.c)
 * draws it.
 */
#ifndef CLI_DRAW_MAP_PICTURE_H
#define CLI_DRAW_MAP_PICTURE_H

#include "draw/map_frame.h"

/* Kinds of text. A word is a label of --words, a label that of any other row, softer beside words.
 * A name is that of a community, in its colour. */
typedef enum {
    CLI_MAP_TITLE,
    CLI_MAP_CAPTION,
    CLI_MAP_LABEL,
    CLI_MAP_WORD,
    CLI_MAP_NAME
} cli_map_kind;
typedef enum { CLI_MAP_START, CLI_MAP_MIDDLE, CLI_MAP_END } cli_map_anchor;

typedef struct cli_map_picture cli_map_picture;

/* Colours that do not depend on the rows, 0xrrggbb. */
typedef struct {
    uint32_t paper, ink, soft, line;
} cli_map_theme;
extern const cli_map_theme cli_map_themes[2]; /* light, dark */

/* The functions of a backend. Lengths are in pixels; shades are those of cli_map_shades. */
typedef struct {
    double (*width)(cli_map_picture *to, cli_map_kind kind, const char *text);
    /* upward: from bottom to top */
    void (*text)(cli_map_picture *to, cli_map_kind kind, cli_map_anchor anchor, double x, double y,
                 bool upward, const char *text);
    void (*frame)(cli_map_picture *to, const cli_map_frame *frame);
    /* count points of one shade, x and y in turn; the last is on top */
    void (*points)(cli_map_picture *to, int shade, const double *xy, size_t count);
    /* a highlighted point, larger than the others */
    void (*mark)(cli_map_picture *to, int shade, double x, double y, double radius);
    void (*line)(cli_map_picture *to, double x0, double y0, double x1, double y1);
    /* a shaft that ends in the middle of the base of its head; points of the head: x and y in turn
     */
    void (*arrow)(cli_map_picture *to, double x0, double y0, double x1, double y1,
                  const double head[6]);
    /* a piece of the legend */
    void (*bar)(cli_map_picture *to, int shade, double x, double y, double width, double height);
} cli_map_backend;

struct cli_map_picture {
    const cli_map *map;
    const cli_map_backend *backend;
    void *context;          /* of the backend */
    double unit;            /* pixels per pixel of a picture of 1200 x 900, at least 1 */
    cli_map_frame frame;    /* where the points are */
    double radius, opacity; /* of the points */
    int community;          /* whose name is written next */
};

/* The size of text of a kind, in pixels. */
double cli_map_font(const cli_map_picture *picture, cli_map_kind kind);
/* Computes unit, frame, radius and opacity. */
cli_map_picture cli_map_picture_of(const cli_map *map, const cli_map_backend *backend,
                                   void *context);
/* Draws everything. CLI_DONE, or CLI_FAILED after a message. */
int cli_map_draw(cli_map_picture *picture);

#endif
