/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table as points on a plane.
 *
 * cmd_map.c fills a cli_map; map_html.c, map_svg.c and map_png.c print it to stdout. A picture is
 * drawn by map_picture.c, with positions and colours of map_frame.c and the labels of map_labels.c.
 */
#ifndef CLI_DRAW_MAP_FRAME_H
#define CLI_DRAW_MAP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla_lab.h"

#include "core/visible.h"

/* A neighbour has 5 bytes, little-endian: 3 for its row (all ones means none), 2 for (cosine + 1) /
 * 2 * 65535. So a map has at most 2^24 - 1 rows. */
enum { CLI_MAP_NEAR_BYTES = 5, CLI_MAP_ROWS_MOST = 2000000 };

typedef struct {
    const char *title;
    int64_t rows, all; /* rows of the map (--rows), rows of the table */
    int64_t dim, nonfinite;
    int64_t points;     /* rows that have a position */
    float *places;      /* positions, rows x 2, within -1 .. 1; NaN for a row that is not drawn */
    float *norms;       /* NaN for a row that is not finite */
    bool by_neighbours; /* positions are those of embla_layout, else of embla_plane */
    bool by_arrows;     /* the plane is that of the ends of the arrows */
    double share[2];    /* of the variance, along each axis of embla_plane */
    embla_communities *communities; /* NULL if there are none */
    double middle[2], half[2];      /* of the visible part, see cli_map_frame_all */
    int64_t outside;                /* number of points outside it */
    const embla_vocab *vocab;       /* NULL means no words */
    int64_t *tokens;   /* first token of each row, -1 means none; NULL means the row number */
    const char *color; /* "community", "norm", "row", "none" */
    const char *theme; /* "auto", "light", "dark" */
    uint8_t *near;     /* rows x neighbours x CLI_MAP_NEAR_BYTES */
    size_t neighbours;
    const char *why_none; /* the reason if there are no neighbours */
    int width, height;    /* of a picture */
    int64_t *listed; /* rows of --words, each once; these are highlighted and always labelled */
    size_t listed_count;
    bool *is_listed; /* per row; NULL without --words */
    bool only;       /* --only: the other rows have no position */
    int64_t *arrows; /* --arrows: from and to of each, in turn; both are listed */
    size_t arrow_count;
} cli_map;

/* Scales the positions to -1 .. 1 and computes the visible part. */
void cli_map_frame_all(cli_map *map);

/* The word of a row; NULL if there is none. */
const char *cli_map_word(const cli_map *map, int64_t row, size_t *length);
/* The label of a row: cli_word_show, or "#5" without a word. */
void cli_map_label(const cli_map *map, int64_t row, char text[CLI_WORD_TEXT]);

/* Shades of a picture: the ramp of colours in steps that the eye hardly tells apart. */
enum { CLI_MAP_SHADES = 24 };
/* The shade of each row: its community, or by row number, or by the rank of the norm. Ranks are
 * used because a few large norms would leave one colour for all others. NULL if there is no memory.
 */
uint8_t *cli_map_shades(const cli_map *map);
/* The colour of a shade, 0xrrggbb; always the same with color "none". */
uint32_t cli_map_color(const cli_map *map, int shade, bool dark);
/* The radius of a point in a plot of this area, for text of 12 units. */
double cli_map_radius(const cli_map *map, double area);

/* The position of the plane in a picture, in pixels. Both axes have the same scale. */
typedef struct {
    double left, top, width, height;
    double scale, x, y; /* pixels per unit; the centre of the plane */
} cli_map_frame;

cli_map_frame cli_map_frame_in(const cli_map *map, double left, double top, double width,
                               double height);
/* Computes the pixel of a row. False if it is not finite or outside. */
bool cli_map_at(const cli_map *map, const cli_map_frame *frame, int64_t row, double *x, double *y);

/* A word beside its point; x, y is the left end of its baseline. */
typedef struct {
    int64_t row;   /* -1 for the name of a community */
    int community; /* whose name it is */
    double x, y, width;
    bool listed; /* a row of --words, or the name of a community */
    bool away;   /* not next to its point: a line connects them */
    double point_x, point_y;
    char text[CLI_WORD_TEXT];
} cli_map_text;

typedef struct {
    double height;     /* of a line, in pixels */
    double radius;     /* of a point */
    double gap;        /* between the centre of a point and its word */
    double listed_gap; /* the same for a row of --words, whose point is larger */
    void *context;     /* of width */
    double (*width)(void *context, bool listed, const char *text);
} cli_map_lettering;

/* Chooses words that do not overlap, and a side of the point for each: right, left, above or below,
 * the one that covers the fewest points. Rows of --words come first and are all chosen; then early
 * rows (in most tables the frequent words), all up to 200 rows, else at most one in each cell of a
 * grid. Returns their number; *out is freed by the caller, NULL if there is no memory. */
size_t cli_map_texts(const cli_map *map, const cli_map_frame *frame,
                     const cli_map_lettering *lettering, cli_map_text **out);

/* ---- communities (map_community.c); map->communities is not NULL ---- */

enum {
    CLI_MAP_COMMUNITIES = 20
}; /* at most so many, so that the eye can tell their colours apart */
/* The colour of a community, 0xrrggbb; grey for rows without one. */
uint32_t cli_map_community_color(int community, bool dark);
/* The colour of its name: darker, or in the dark lighter, because letters are thinner than points.
 */
uint32_t cli_map_name_color(int community, bool dark);
/* The most central words of a community: "sauce, butter, garlic". */
void cli_map_community_name(const cli_map *map, size_t community, size_t words, char *text,
                            size_t size);
/* Where most points of each community are: x and y in the plane for each, NaN if none is drawn. The
 * caller frees them. NULL if there is no memory. */
double *cli_map_community_places(const cli_map *map);

/* One line of facts: "50,000 rows x 100, coloured by norm". */
void cli_map_facts(const cli_map *map, char *text, size_t size);
/* The name of the layout: "neighbours", "arrows" or "pca". */
const char *cli_map_layout(const cli_map *map);
/* "first principal component: 12.3 % of the variance". Axes of a layout have no meaning: the text
 * of the first says so, that of the second is empty. */
void cli_map_axis(const cli_map *map, int axis, char *text, size_t size);

/* These print the whole file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_map_html(const cli_map *map);
int cli_map_svg(const cli_map *map);
int cli_map_png(const cli_map *map);

/* The contents of map_page.html, embedded by the build. */
extern const unsigned char cli_map_page[];
extern const size_t cli_map_page_bytes;

#endif
