/* SPDX-License-Identifier: Apache-2.0 */
/* The rows of a table as points on a plane.
 *
 * cmd_map.c fills a cli_map; map_html.c, map_svg.c and map_png.c print it to stdout. map_frame.c
 * computes positions, colours and labels for the pictures.
 */
#ifndef CLI_DRAW_MAP_FRAME_H
#define CLI_DRAW_MAP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

#include "core/visible.h"

/* A neighbour has 5 bytes, little-endian: 3 for its row (all ones means none), 2 for (cosine + 1) /
 * 2 * 65535. So a map has at most 2^24 - 1 rows. */
enum { CLI_MAP_NEAR_BYTES = 5, CLI_MAP_ROWS_MOST = 2000000 };

typedef struct {
    const char *title;
    int64_t rows, all; /* rows of the map (--rows), rows of the table */
    int64_t dim, nonfinite;
    float *places; /* positions, rows x 2, within -1 .. 1; NaN for a row that is not finite */
    float *norms;  /* NaN for a row that is not finite */
    double share[2];
    double middle[2], half[2]; /* of the visible part, see cli_map_frame_all */
    int64_t outside;           /* number of points outside it */
    const embla_vocab *vocab;  /* NULL means no words */
    int64_t *tokens;   /* first token of each row, -1 means none; NULL means the row number */
    const char *color; /* "norm", "row", "none" */
    const char *theme; /* "auto", "light", "dark" */
    uint8_t *near;     /* rows x neighbours x CLI_MAP_NEAR_BYTES */
    size_t neighbours;
    const char *why_none; /* the reason if there are no neighbours */
    int width, height;    /* of a picture */
} cli_map;

/* Scales the positions to -1 .. 1 and computes the visible part. */
void cli_map_frame_all(cli_map *map);

/* The word of a row; NULL if there is none. */
const char *cli_map_word(const cli_map *map, int64_t row, size_t *length);
/* The label of a row: cli_word_show, or "#5" without a word. Returns its width in columns. */
size_t cli_map_label(const cli_map *map, int64_t row, bool ascii, char text[CLI_WORD_TEXT]);

/* The colour of each row, 0 to 255 along a ramp, by row number or by the rank of the norm. Ranks
 * are used because a few large norms would leave one colour for all others. NULL if there is no
 * memory. */
uint8_t *cli_map_shades(const cli_map *map);
/* A colour of the ramp, 0xrrggbb; always the same with color "none". */
uint32_t cli_map_color(const cli_map *map, uint8_t shade, bool dark);
/* The radius of a point in a plot with this number of pixels. */
double cli_map_radius(const cli_map *map, double pixels);

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
    int64_t row;
    double x, y, width;
    char text[CLI_WORD_TEXT];
} cli_map_text;

enum { CLI_MAP_TEXTS = 400 };

typedef struct {
    bool ascii;    /* only words of ASCII (and marks for a space) */
    double height; /* of a line, in pixels */
    double gap;    /* between a point and its word */
    /* The width in pixels of text with that height; columns is its width on a terminal. */
    double (*width)(const char *text, size_t columns, double height);
} cli_map_lettering;

/* Chooses words that do not overlap: early rows first (in most tables the frequent words), at most
 * one in each cell of a grid. Returns their number. */
size_t cli_map_texts(const cli_map *map, const cli_map_frame *frame,
                     const cli_map_lettering *lettering, cli_map_text out[CLI_MAP_TEXTS]);

/* One line of facts: "50,000 rows x 100, coloured by norm". */
void cli_map_facts(const cli_map *map, char *text, size_t size);
/* "first principal component: 12.3 % of the variance". */
void cli_map_axis(const cli_map *map, int axis, char *text, size_t size);

/* These print the whole file to stdout. CLI_DONE, or CLI_FAILED after a message. */
int cli_map_html(const cli_map *map);
int cli_map_svg(const cli_map *map);
int cli_map_png(const cli_map *map);

/* The contents of map_page.html, embedded by the build. */
extern const unsigned char cli_map_page[];
extern const size_t cli_map_page_bytes;

#endif
