/* SPDX-License-Identifier: Apache-2.0 */
/* A table's rows as points on a plane, and the three kinds of file that show them.
 *
 * cmd_map.c fills an cli_map; map_html.c, map_svg.c and map_png.c print it to stdout.
 * map.c holds what still pictures share: where points and labels lie.
 */
#ifndef CLI_DRAW_MAP_FRAME_H
#define CLI_DRAW_MAP_FRAME_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

#include "core/visible.h"

/* Bytes of one neighbour: its row in three (all ones: none), (cosine + 1) / 2 * 65535 in two,
 * the least first. So no more than 2^24 - 1 rows, which is a lot for a picture. */
enum { CLI_MAP_NEAR_BYTES = 5, CLI_MAP_ROWS_MOST = 2000000 };

typedef struct {
    const char *title;
    int64_t rows, all; /* points, rows of the table: less than all by --rows */
    int64_t dim, nonfinite;
    float *places; /* rows x 2, all of them within -1 .. 1; NaN: not finite, no point */
    float *norms;  /* NaN the same */
    double share[2];
    double middle[2], half[2]; /* of the part that is worth seeing, see cli_map_frame_all */
    int64_t outside;           /* points that are not in it */
    const embla_vocab *vocab;  /* NULL: no words */
    int64_t *tokens;           /* of each row, -1: none; NULL: the row number */
    const char *color;         /* "norm", "row", "none" */
    const char *theme;         /* "auto", "light", "dark" */
    uint8_t *near;             /* rows x neighbours x CLI_MAP_NEAR_BYTES */
    size_t neighbours;
    const char *why_none; /* a sentence where there are no neighbours */
    int width, height;    /* of a still picture */
} cli_map;

/* Turns places as they come, in any unit, into those of cli_map. */
void cli_map_frame_all(cli_map *map);

/* The word of a row; NULL: it has none. */
const char *cli_map_word(const cli_map *map, int64_t row, size_t *length);
/* As it is drawn: cli_word_show, "#5" where there is none. */
size_t cli_map_label(const cli_map *map, int64_t row, bool ascii, char text[CLI_WORD_TEXT]);

/* The colour of each row, from 0 to 255 along a ramp: by row number, or by the rank of its
 * norm, since a few long rows would leave one colour to all others. NULL: no memory. */
uint8_t *cli_map_shades(const cli_map *map);
/* A colour of the ramp, 0xrrggbb. Of color "none" all are one. */
uint32_t cli_map_color(const cli_map *map, uint8_t shade, bool dark);
/* Radius of a point in a plot of so many pixels. */
double cli_map_radius(const cli_map *map, double pixels);

/* Where the plane lies in a picture, in pixels. Both axes have one scale. */
typedef struct {
    double left, top, width, height;
    double scale, x, y; /* pixels for one unit; the plane's middle */
} cli_map_frame;

cli_map_frame cli_map_frame_in(const cli_map *map, double left, double top, double width,
                               double height);
/* False if the row is no point, or outside. */
bool cli_map_at(const cli_map *map, const cli_map_frame *frame, int64_t row, double *x, double *y);

/* A word beside its point: x, y is the left end of its base line. */
typedef struct {
    int64_t row;
    double x, y, width;
    char text[CLI_WORD_TEXT];
} cli_map_text;

enum { CLI_MAP_TEXTS = 400 };

typedef struct {
    bool ascii;    /* words of nothing but ASCII (and the signs for a space) */
    double height; /* of a line, pixels */
    double gap;    /* between a point and its word */
    /* Pixels that text takes in letters of that height; columns: characters of a terminal. */
    double (*width)(const char *text, size_t columns, double height);
} cli_map_lettering;

/* Words that do not run into each other, early rows first (in most tables the frequent ones),
 * one for each square of a grid, so that they are spread. Returns how many. */
size_t cli_map_texts(const cli_map *map, const cli_map_frame *frame,
                     const cli_map_lettering *lettering, cli_map_text out[CLI_MAP_TEXTS]);

/* "50,000 rows x 100", and what else there is to say in one line. */
void cli_map_facts(const cli_map *map, char *text, size_t size);
/* "first main direction: 12.3 % of the variance". */
void cli_map_axis(const cli_map *map, int axis, char *text, size_t size);

/* These print the whole file to stdout. CLI_DONE, or CLI_FAILED after a sentence. */
int cli_map_html(const cli_map *map);
int cli_map_svg(const cli_map *map);
int cli_map_png(const cli_map *map);

/* The page as it is in map_page.html, turned into bytes by the build. */
extern const unsigned char cli_map_page[];
extern const size_t cli_map_page_bytes;

#endif
