/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry.h"

#include <stdlib.h>

#include "answer.h"

const char *geometry_compare(const embla_table *table, int32_t a, int32_t b)
{
    const int32_t ids[2] = {a, b};
    const size_t dim = embla_table_dim(table);
    float *rows = malloc(2 * dim * sizeof *rows);
    if (!rows) return answer_refused("there is not enough memory for two rows");
    embla_status status = embla_lookup(table, ids, 2, NULL, rows);
    if (status == EMBLA_OK) {
        answer_begin();
        answer_open("norms", '[');
        answer_real(NULL, embla_norm(rows, dim));
        answer_real(NULL, embla_norm(rows + dim, dim));
        answer_close('[');
        answer_real("dot", embla_dot(rows, rows + dim, dim));
        answer_real("cosine", embla_cosine(rows, rows + dim, dim));
    }
    free(rows);
    return status == EMBLA_OK ? answer_end() : answer_failed();
}

const char *geometry_answer(const embla_neighbour *found, size_t count)
{
    answer_begin();
    answer_open("near", '[');
    for (size_t i = 0; i < count && found[i].row >= 0; i++) {
        answer_open(NULL, '{');
        answer_whole("id", found[i].row);
        answer_real("score", found[i].score);
        answer_close('{');
    }
    answer_close('[');
    return answer_end();
}

const char *geometry_near(const embla_table *table, int32_t id, size_t top)
{
    const int64_t itself = id;
    embla_neighbour found[GEOMETRY_MOST];
    float *row = malloc(embla_table_dim(table) * sizeof *row);
    if (!row) return answer_refused("there is not enough memory for a row");
    if (top > GEOMETRY_MOST) top = GEOMETRY_MOST;
    const embla_near_options options = {.k = top, .exclude = &itself, .exclude_count = 1};
    embla_status status = embla_lookup(table, &id, 1, NULL, row);
    if (status == EMBLA_OK && top > 0) status = embla_near(table, row, 1, &options, found, NULL);
    free(row);
    return status == EMBLA_OK ? geometry_answer(found, top) : answer_failed();
}

const char *geometry_plane(const embla_table *table)
{
    const embla_plane_options options = {.no_engine = true}; /* the same bits everywhere */
    embla_plane_report report;
    int64_t rows = embla_table_rows(table);
    float *xy = malloc((size_t)rows * 2 * sizeof *xy);
    if (!xy) return answer_refused("there is not enough memory for a plane");
    embla_status status = embla_plane(table, &options, xy, &report);
    if (status == EMBLA_OK) {
        answer_begin();
        answer_rows("xy", xy, (size_t)rows, 2);
        answer_open("share", '[');
        answer_real(NULL, report.share[0]);
        answer_real(NULL, report.share[1]);
        answer_close('[');
    }
    free(xy);
    return status == EMBLA_OK ? answer_end() : answer_failed();
}
