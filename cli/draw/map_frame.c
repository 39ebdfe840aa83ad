/* SPDX-License-Identifier: Apache-2.0 */
/* Shared parts of the maps: the visible part of the plane, colours, words and captions.
 */
#include "draw/map_frame.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/out.h"

/* ---- the plane ---- */

static int compare_floats(const void *a, const void *b)
{
    float x = *(const float *)a, y = *(const float *)b;
    return x < y ? -1 : x > y;
}

/* The finite ones of count numbers at distance stride, sorted. NULL if there is no memory. */
static float *sorted_finite(const float *numbers, int64_t count, int64_t stride, int64_t *kept)
{
    float *out = malloc((size_t)(count > 0 ? count : 1) * sizeof *out);
    *kept = 0;
    for (int64_t i = 0; out && i < count; i++)
        if (isfinite(numbers[i * stride])) out[(*kept)++] = numbers[i * stride];
    if (out) qsort(out, (size_t)*kept, sizeof *out, compare_floats);
    return out;
}

/* The visible range of an axis. If outliers would shrink the rest to a spot, it covers the middle
 * 99 % and a margin. */
static void axis_range(const cli_map *map, int axis, double *least, double *most)
{
    int64_t kept;
    float *order = sorted_finite(map->places + axis, map->rows, 2, &kept);
    *least = -1;
    *most = 1;
    if (order && kept > 0) {
        double low = (double)order[kept / 200], high = (double)order[kept - 1 - kept / 200];
        double margin = 0.25 * (high - low);
        *least = (double)order[0];
        *most = (double)order[kept - 1];
        if (*most - *least > 2.5 * (high - low) && high > low) {
            *least = *least < low - margin ? low - margin : *least;
            *most = *most > high + margin ? high + margin : *most;
        }
    }
    free(order);
}

/* Scales both axes by the same factor to -1 .. 1, in double so that rows of 1e38 work. */
static void normalise(cli_map *map)
{
    double least[2] = {INFINITY, INFINITY}, most[2] = {-INFINITY, -INFINITY}, half = 0;
    for (int64_t i = 0; i < 2 * map->rows; i++) {
        double at = (double)map->places[i];
        if (at < least[i % 2]) least[i % 2] = at;
        if (at > most[i % 2]) most[i % 2] = at;
    }
    for (int axis = 0; axis < 2; axis++)
        if (most[axis] - least[axis] > 2 * half) half = (most[axis] - least[axis]) / 2;
    for (int64_t i = 0; i < 2 * map->rows; i++) {
        if (isnan(map->places[i])) continue;
        double middle = (least[i % 2] + most[i % 2]) / 2;
        double at = half > 0 ? ((double)map->places[i] - middle) / half : 0;
        map->places[i] = (float)(at < -1 ? -1 : at > 1 ? 1 : at);
    }
}

void cli_map_frame_all(cli_map *map)
{
    normalise(map);
    for (int axis = 0; axis < 2; axis++) {
        double least, most;
        axis_range(map, axis, &least, &most);
        for (size_t i = 0; i < map->listed_count; i++) { /* no outlier: they are always visible */
            least = fmin(least, (double)map->places[2 * map->listed[i] + axis]);
            most = fmax(most, (double)map->places[2 * map->listed[i] + axis]);
        }
        map->middle[axis] = (least + most) / 2;
        map->half[axis] = (most - least) / 2;
    }
    map->outside = map->points = 0;
    for (int64_t row = 0; row < map->rows; row++) {
        double x = (double)map->places[2 * row], y = (double)map->places[2 * row + 1];
        if (isnan(x)) continue;
        map->points++;
        map->outside += fabs(x - map->middle[0]) > map->half[0] + 1e-6 ||
                        fabs(y - map->middle[1]) > map->half[1] + 1e-6;
    }
}

cli_map_frame cli_map_frame_in(const cli_map *map, double left, double top, double width,
                               double height)
{
    cli_map_frame frame = {.left = left, .top = top, .width = width, .height = height};
    double across = map->half[0] > 0 ? 0.48 * width / map->half[0] : INFINITY;
    double down = map->half[1] > 0 ? 0.47 * height / map->half[1] : INFINITY;
    frame.scale = across < down ? across : down;
    if (!isfinite(frame.scale)) frame.scale = 1; /* all points coincide */
    frame.x = map->middle[0];
    frame.y = map->middle[1];
    return frame;
}

bool cli_map_at(const cli_map *map, const cli_map_frame *frame, int64_t row, double *x, double *y)
{
    double at_x = (double)map->places[2 * row], at_y = (double)map->places[2 * row + 1];
    if (isnan(at_x)) return false;
    *x = frame->left + frame->width / 2 + (at_x - frame->x) * frame->scale;
    *y = frame->top + frame->height / 2 - (at_y - frame->y) * frame->scale;
    return *x >= frame->left && *x <= frame->left + frame->width && *y >= frame->top &&
           *y <= frame->top + frame->height;
}

/* ---- colours ---- */

/* The rank of a number in a sorted array, 0 to 1; equal numbers get the same rank. */
static double rank_of(const float *order, int64_t count, float number)
{
    int64_t ends[2];
    for (int end = 0; end < 2; end++) { /* first not below it; first above it */
        int64_t low = 0, high = count;
        while (low < high) {
            int64_t middle = low + (high - low) / 2;
            if (order[middle] < number || (end == 1 && order[middle] == number))
                low = middle + 1;
            else
                high = middle;
        }
        ends[end] = low;
    }
    return count > 0 ? (double)(ends[0] + ends[1]) / 2 / (double)count : 0.5;
}

uint8_t *cli_map_shades(const cli_map *map)
{
    int64_t kept = 0;
    bool norms = strcmp(map->color, "norm") == 0, numbers = strcmp(map->color, "row") == 0;
    size_t labelled;
    bool communities = strcmp(map->color, "community") == 0;
    const int32_t *labels = embla_communities_labels(map->communities, &labelled);
    uint8_t *shades = calloc((size_t)map->rows, 1);
    float *order = norms && shades ? sorted_finite(map->norms, map->rows, 1, &kept) : NULL;
    if (norms && !order) {
        free(shades);
        return NULL;
    }
    for (int64_t row = 0; shades && row < map->rows; row++) {
        double at = numbers ? (double)row / (double)map->rows : 0;
        if (norms) at = rank_of(order, kept, map->norms[row]);
        int shade = (int)(at * CLI_MAP_SHADES);
        if (communities) shade = labels[row] < 0 ? CLI_MAP_COMMUNITIES : labels[row];
        shades[row] = (uint8_t)(shade < CLI_MAP_SHADES ? shade : CLI_MAP_SHADES - 1);
    }
    free(order);
    return shades;
}

uint32_t cli_map_color(const cli_map *map, int shade, bool dark)
{
    /* the ramps of map_page.html */
    static const uint32_t ramps[2][5] = {{0x26309e, 0x6f2aa8, 0xb23a8c, 0xde6350, 0xee9a2f},
                                         {0x5f73e6, 0xa566d6, 0xe2679f, 0xf79a67, 0xf8ec8b}};
    if (strcmp(map->color, "community") == 0) return cli_map_community_color(shade, dark);
    if (strcmp(map->color, "none") == 0) return dark ? 0x8aaaf0 : 0x3458aa;
    double at = 4.0 * (2 * shade + 1) / (2 * CLI_MAP_SHADES);
    int part = at < 3 ? (int)at : 3;
    uint32_t out = 0;
    for (int shift = 16; shift >= 0; shift -= 8) {
        double a = ramps[dark][part] >> shift & 0xff, b = ramps[dark][part + 1] >> shift & 0xff;
        out |= (uint32_t)(a + (b - a) * (at - part) + 0.5) << shift;
    }
    return out;
}

double cli_map_radius(const cli_map *map, double area)
{
    double radius = 0.8 * sqrt(0.2 * area / (double)(map->points > 0 ? map->points : 1));
    return radius < 1 ? 1 : radius > 4.5 ? 4.5 : radius;
}

/* ---- words ---- */

const char *cli_map_word(const cli_map *map, int64_t row, size_t *length)
{
    int64_t token = map->tokens ? map->tokens[row] : row;
    *length = 0;
    return cli_word_of(map->vocab, token, length);
}

void cli_map_label(const cli_map *map, int64_t row, char text[CLI_WORD_TEXT])
{
    size_t length;
    const char *word = cli_map_word(map, row, &length);
    if (word)
        (void)cli_word_show(word, length, false, CLI_WORD_COLUMNS, text);
    else
        (void)snprintf(text, CLI_WORD_TEXT, "#%lld", (long long)row);
}

/* ---- captions ---- */

void cli_map_facts(const cli_map *map, char *text, size_t size)
{
    char rows[CLI_CELL], of[CLI_CELL], left[CLI_CELL];
    int used = snprintf(text, size, "%s", cli_commas(map->only ? map->points : map->rows, rows));
    if (map->rows < map->all || map->only)
        used += snprintf(text + used, size - (size_t)used, " of %s", cli_commas(map->all, of));
    used += snprintf(text + used, size - (size_t)used, " rows x %s", cli_commas(map->dim, of));
    if (strcmp(map->color, "none") != 0)
        used += snprintf(text + used, size - (size_t)used, ", coloured by %s",
                         strcmp(map->color, "row") == 0 ? "row number" : map->color);
    if (map->nonfinite > 0)
        used += snprintf(text + used, size - (size_t)used, "; not finite: %s",
                         cli_commas(map->nonfinite, left));
    if (map->outside > 0)
        snprintf(text + used, size - (size_t)used, "; outside the frame: %s",
                 cli_commas(map->outside, left));
}

const char *cli_map_layout(const cli_map *map)
{
    return map->by_neighbours ? "neighbours" : map->by_arrows ? "arrows" : "pca";
}

void cli_map_axis(const cli_map *map, int axis, char *text, size_t size)
{
    if (map->by_neighbours)
        snprintf(text, size, "%s",
                 axis == 0 ? "near rows are near each other; the axes and large distances have no "
                             "meaning"
                           : "");
    else
        snprintf(text, size, "%s principal component%s: %.1f %%%s", axis == 0 ? "first" : "second",
                 map->by_arrows ? " of the arrows' ends" : "", 100 * map->share[axis],
                 map->by_arrows ? "" : " of the variance");
}
