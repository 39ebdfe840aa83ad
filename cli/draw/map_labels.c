/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the words of a picture and their positions.
 *
 * A word is tried on four sides of its point. Of those where it overlaps no other word, the one
 * that covers the fewest points is taken. A row of --words that finds none of them free is moved
 * further away, line by line, and connected with its point.
 */
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "draw/map_frame.h"

enum {
    ROWS_ALL = 200,   /* up to so many rows, all are labelled where there is room */
    TEXTS_MOST = 400, /* labels besides those of --words */
    CELLS = 64,       /* of the grid, per axis */
    TRIES = 9,        /* rows of a cell that are tried */
    CROWD = 256,      /* cells that count points, per axis */
    SIDES = 4,        /* right, left, above, below */
    HIGHLIGHT = 1000, /* a row of --words counts as so many points */
    LINES_NAME = 5,   /* positions that are tried for the name of a community */
    LINES_AWAY = 40,  /* a row of --words is moved by at most so many lines */
};

typedef struct {
    const cli_map *map;
    const cli_map_frame *frame;
    const cli_map_lettering *lettering;
    cli_map_text *texts;
    size_t count;
    uint8_t tries[CELLS][CELLS];  /* per cell of the grid; TRIES means that it is done */
    uint32_t crowd[CROWD][CROWD]; /* points in each part of the frame */
} labels;

/* The part of a line above and below its baseline. */
static const double ASCENT = 0.76, DESCENT = 0.24;

/* ---- points ---- */

static int crowd_index(double at, double start, double length)
{
    int index = (int)((at - start) / length * CROWD);
    return index < 0 ? 0 : index >= CROWD ? CROWD - 1 : index;
}

static bool is_listed(const labels *l, int64_t row)
{
    return l->map->is_listed && l->map->is_listed[row];
}

static void count_points(labels *l)
{
    const cli_map_frame *f = l->frame;
    for (int64_t row = 0; row < l->map->rows; row++) {
        double x, y;
        if (!cli_map_at(l->map, f, row, &x, &y)) continue;
        l->crowd[crowd_index(y, f->top, f->height)][crowd_index(x, f->left, f->width)] +=
            is_listed(l, row) ? HIGHLIGHT : 1;
    }
}

/* The number of other points that a word touches, about. */
static uint32_t points_below(const labels *l, const cli_map_text *text)
{
    const cli_map_frame *f = l->frame;
    double h = l->lettering->height, r = l->lettering->radius;
    int top = crowd_index(text->y - ASCENT * h - r, f->top, f->height);
    int bottom = crowd_index(text->y + DESCENT * h + r, f->top, f->height);
    int left = crowd_index(text->x - r, f->left, f->width);
    int right = crowd_index(text->x + text->width + r, f->left, f->width);
    int own_x = crowd_index(text->point_x, f->left, f->width);
    int own_y = crowd_index(text->point_y, f->top, f->height);
    uint32_t count = 0, own = text->listed ? HIGHLIGHT : 1;
    for (int y = top; y <= bottom; y++)
        for (int x = left; x <= right; x++)
            count += l->crowd[y][x] - (x == own_x && y == own_y ? own : 0);
    return count;
}

/* ---- positions ---- */

static bool is_free(const labels *l, const cli_map_text *text)
{
    const cli_map_frame *f = l->frame;
    double h = l->lettering->height, between = 0.4 * h;
    if (text->x < f->left || text->x + text->width > f->left + f->width ||
        text->y - ASCENT * h < f->top || text->y + DESCENT * h > f->top + f->height)
        return false;
    for (size_t i = 0; i < l->count; i++) {
        const cli_map_text *other = &l->texts[i];
        if (text->x < other->x + other->width + between &&
            other->x < text->x + text->width + between && fabs(text->y - other->y) < h)
            return false;
    }
    return true;
}

/* Moves a word to a side of its point. */
static void move_to_side(const cli_map_lettering *lettering, int side, cli_map_text *text)
{
    double h = lettering->height, gap = text->listed ? lettering->listed_gap : lettering->gap;
    double x = text->point_x, y = text->point_y;
    text->x = side == 0 ? x + gap : side == 1 ? x - gap - text->width : x - text->width / 2;
    text->y = side < 2 ? y + 0.28 * h : side == 2 ? y - gap - 0.15 * h : y + gap + 0.62 * h;
}

/* Finds the free side that covers the fewest points, at most `most`. */
static bool place_beside(const labels *l, uint32_t most, cli_map_text *text)
{
    int best = -1;
    for (int side = 0; side < SIDES; side++) {
        move_to_side(l->lettering, side, text);
        if (!is_free(l, text)) continue;
        uint32_t below = points_below(l, text);
        if (below > most || (best >= 0 && below == most)) continue;
        best = side;
        most = below;
        if (below == 0) break;
    }
    if (best >= 0) move_to_side(l->lettering, best, text);
    return best >= 0;
}

/* Tries positions further and further away. The last resort overlaps other words. */
static void place_away(const labels *l, cli_map_text *text)
{
    const double h = l->lettering->height;
    text->away = true;
    for (int lines = 1; lines <= LINES_AWAY; lines++) {
        for (int direction = 0; direction < 8; direction++) {
            double angle = direction * 0.7853981633974483;
            double dx = cos(angle) * lines * h, dy = sin(angle) * lines * h;
            text->x = text->point_x + dx -
                      (dx < -0.1 * h  ? text->width
                       : dx > 0.1 * h ? 0
                                      : text->width / 2);
            text->y = text->point_y + dy + 0.28 * h;
            if (is_free(l, text)) return;
        }
    }
    move_to_side(l->lettering, text->point_x > l->frame->left + l->frame->width / 2, text);
    text->away = false;
}

/* Prepares the word of a row. False if the row has no position in the frame. */
static bool begin_text(labels *l, int64_t row, bool listed)
{
    cli_map_text *text = &l->texts[l->count];
    *text = (cli_map_text){.row = row, .listed = listed};
    if (!cli_map_at(l->map, l->frame, row, &text->point_x, &text->point_y)) return false;
    cli_map_label(l->map, row, text->text);
    text->width = l->lettering->width(l->lettering->context, listed, text->text);
    return true;
}

/* ---- which rows ---- */

static void place_listed(labels *l)
{
    for (size_t i = 0; i < l->map->listed_count; i++) {
        if (!begin_text(l, l->map->listed[i], true)) continue;
        cli_map_text *text = &l->texts[l->count];
        if (!place_beside(l, UINT32_MAX, text)) place_away(l, text);
        l->count++;
    }
}

/* Names communities, the largest first, where most of their points are and no other name is. */
static void place_communities(labels *l)
{
    static const char more[] = ", ..";
    size_t count;
    (void)embla_communities_list(l->map->communities, &count);
    double *places = cli_map_community_places(l->map);
    for (size_t c = 0; places && c < count; c++) {
        const cli_map_frame *f = l->frame;
        cli_map_text *text = &l->texts[l->count];
        *text = (cli_map_text){.row = -1, .community = (int)c, .listed = true};
        if (isnan(places[2 * c])) continue;
        cli_map_community_name(l->map, c, 2, text->text, sizeof text->text - sizeof more + 1);
        memcpy(text->text + strlen(text->text), more, sizeof more);
        text->width = l->lettering->width(l->lettering->context, true, text->text);
        text->point_x = f->left + f->width / 2 + (places[2 * c] - f->x) * f->scale;
        text->point_y = f->top + f->height / 2 - (places[2 * c + 1] - f->y) * f->scale;
        text->x = text->point_x - text->width / 2;
        for (int line = 0; line < LINES_NAME; line++) { /* 0, 1, -1, 2, -2 lines away */
            int lines = line % 2 ? line / 2 + 1 : -(line / 2);
            text->y = text->point_y + (0.28 + 1.1 * lines) * l->lettering->height;
            if (!is_free(l, text)) continue;
            l->count++;
            break;
        }
    }
    free(places);
}

/* Labels rows that have none, in two rounds: first those that cover no point, so that they keep
 * their places, then the others. */
static void place_all(labels *l)
{
    bool done[ROWS_ALL] = {false};
    for (int round = 0; round < 2; round++) {
        int64_t seen = 0;
        for (int64_t row = 0; row < l->map->rows && seen < ROWS_ALL; row++) {
            if (isnan(l->map->places[2 * row])) continue;
            bool *mark = &done[seen++];
            if (*mark || is_listed(l, row)) continue;
            if (!begin_text(l, row, false)) continue;
            *mark = place_beside(l, round == 0 ? 0 : HIGHLIGHT - 1, &l->texts[l->count]);
            if (*mark) l->count++;
        }
    }
}

/* The cell of the grid of a point. Cells are about three times as wide as high, like words. */
static uint8_t *cell_of(labels *l, double x, double y)
{
    int column = (int)((x - l->frame->left) / (l->lettering->height * 10));
    int line = (int)((y - l->frame->top) / (l->lettering->height * 3.4));
    return &l->tries[line < CELLS ? line : CELLS - 1][column < CELLS ? column : CELLS - 1];
}

static void place_some(labels *l)
{
    size_t most = l->count + TEXTS_MOST;
    for (int64_t row = 0; row < l->map->rows && l->count < most; row++) {
        double x, y;
        if (!cli_map_at(l->map, l->frame, row, &x, &y)) continue;
        uint8_t *tries = cell_of(l, x, y);
        if (*tries >= TRIES || is_listed(l, row)) continue;
        if (!begin_text(l, row, false)) continue;
        bool placed = place_beside(l, HIGHLIGHT - 1, &l->texts[l->count]);
        *tries = placed ? TRIES : (uint8_t)(*tries + 1);
        l->count += placed;
    }
}

size_t cli_map_texts(const cli_map *map, const cli_map_frame *frame,
                     const cli_map_lettering *lettering, cli_map_text **out)
{
    labels *l = calloc(1, sizeof *l);
    size_t count = 0;
    *out = calloc(map->listed_count + CLI_MAP_COMMUNITIES + TEXTS_MOST + 1, sizeof **out);
    if (l && *out) {
        l->map = map;
        l->frame = frame;
        l->lettering = lettering;
        l->texts = *out;
        count_points(l);
        place_listed(l);
        if (strcmp(map->color, "community") == 0) place_communities(l);
        if (map->points <= ROWS_ALL)
            place_all(l);
        else
            place_some(l);
        count = l->count;
    }
    free(l);
    return count;
}
