/* SPDX-License-Identifier: Apache-2.0 */
/* Communities of a map: their colours, their names, and where a name is written.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/map_frame.h"

/* Neighbouring numbers have different hues, because communities of similar size often touch. The
 * last colour is for rows without a community. The page has the same colours (map_page.html). */
static const uint32_t palettes[2][CLI_MAP_COMMUNITIES + 1] = {
    {0x2f6fc4, 0xd9682b, 0x2f9152, 0xb5406f, 0x7a58c1, 0xa38a12, 0x1f94a3,
     0xc63f3f, 0x6f8f25, 0x9a52a8, 0x8c6239, 0x4f7f8f, 0xd0579b, 0x3a57a8,
     0x5c9e6b, 0xb9772a, 0x84487a, 0x2a7d7a, 0xa65a5a, 0x5f6fb8, 0xa3a7b0},
    {0x6ea8f7, 0xf79a63, 0x6bcf8e, 0xf07fae, 0xb39cf5, 0xdcc557, 0x5fd0de,
     0xf58080, 0xa9cf5c, 0xd592e0, 0xcfa074, 0x93bfcd, 0xf79fd0, 0x8ea4ee,
     0x9bdcaa, 0xf2bd75, 0xc58bbd, 0x6fc4c0, 0xe09c9c, 0xa8b4f0, 0x5b616d}};

uint32_t cli_map_community_color(int community, bool dark)
{
    return palettes[dark][community >= 0 && community < CLI_MAP_COMMUNITIES ? community
                                                                            : CLI_MAP_COMMUNITIES];
}

uint32_t cli_map_name_color(int community, bool dark)
{
    const uint32_t color = cli_map_community_color(community, dark), edge = dark ? 255 : 0;
    uint32_t out = 0;
    for (int shift = 0; shift <= 16; shift += 8)
        out |= (((color >> shift & 255) * 3 + edge) / 4) << shift;
    return out;
}

void cli_map_community_name(const cli_map *map, size_t community, size_t words, char *text,
                            size_t size)
{
    size_t count, used = 0;
    const embla_community *list = embla_communities_list(map->communities, &count);
    text[0] = '\0';
    for (size_t i = 0; i < words && i < list[community].central_count; i++) {
        char word[CLI_WORD_TEXT];
        cli_map_label(map, list[community].central[i], word);
        size_t needed = strlen(word) + (i > 0 ? 2 : 0);
        if (used + needed >= size) break;
        used += (size_t)snprintf(text + used, size - used, "%s%s", i > 0 ? ", " : "", word);
    }
}

/* The part of the plane with the most points of a community: a cell of a grid over -1 .. 1 and its
 * neighbours, so that a community on the edge of two cells is found as well. */
enum { CELLS = 32 };
typedef struct {
    double x, y;
    int64_t count;
} cell;

static int cell_at(float at)
{
    int index = (int)(((double)at + 1) / 2 * CELLS);
    return index < 0 ? 0 : index >= CELLS ? CELLS - 1 : index;
}

static cell around(const cell *cells, int x, int y)
{
    cell sum = {0};
    for (int dy = -1; dy <= 1; dy++)
        for (int dx = -1; dx <= 1; dx++) {
            if (x + dx < 0 || x + dx >= CELLS || y + dy < 0 || y + dy >= CELLS) continue;
            const cell *c = &cells[(y + dy) * CELLS + x + dx];
            sum.x += c->x;
            sum.y += c->y;
            sum.count += c->count;
        }
    return sum;
}

static bool densest(const cell *cells, double *x, double *y)
{
    cell best = {0};
    for (int at = 0; at < CELLS * CELLS; at++) {
        cell here = around(cells, at % CELLS, at / CELLS);
        if (here.count > best.count) best = here;
    }
    if (best.count == 0) return false;
    *x = best.x / (double)best.count;
    *y = best.y / (double)best.count;
    return true;
}

double *cli_map_community_places(const cli_map *map)
{
    size_t count, labelled;
    (void)embla_communities_list(map->communities, &count);
    const int32_t *labels = embla_communities_labels(map->communities, &labelled);
    double *out = malloc((count > 0 ? count : 1) * 2 * sizeof *out);
    cell *cells = calloc((count > 0 ? count : 1) * CELLS * CELLS, sizeof *cells);
    if (!out || !cells) {
        free(out);
        free(cells);
        return NULL;
    }
    for (int64_t row = 0; row < map->rows; row++) {
        const float *place = map->places + 2 * row;
        if (labels[row] < 0 || isnan(place[0])) continue;
        cell *c = &cells[((size_t)labels[row] * CELLS + (size_t)cell_at(place[1])) * CELLS +
                         (size_t)cell_at(place[0])];
        c->x += (double)place[0];
        c->y += (double)place[1];
        c->count++;
    }
    for (size_t c = 0; c < count; c++)
        if (!densest(cells + c * CELLS * CELLS, &out[2 * c], &out[2 * c + 1]))
            out[2 * c] = out[2 * c + 1] = NAN;
    free(cells);
    return out;
}
