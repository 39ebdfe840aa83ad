/* SPDX-License-Identifier: Apache-2.0 */
#include "geometry.h"

#include <stdlib.h>
#include <string.h>

#include "answer.h"
#include "play.h"

static const char *answer_compared(const float *a, const float *b, size_t dim)
{
    answer_begin();
    answer_open("norms", '[');
    answer_real(NULL, embla_norm(a, dim));
    answer_real(NULL, embla_norm(b, dim));
    answer_close('[');
    answer_real("dot", embla_dot(a, b, dim));
    answer_real("cosine", embla_cosine(a, b, dim));
    return answer_end();
}

const char *play_compare_vectors(const float *a, const float *b, size_t dim)
{
    return answer_compared(a, b, dim);
}

const char *geometry_compare(const embla_table *table, int32_t a, int32_t b)
{
    const int32_t ids[2] = {a, b};
    const size_t dim = embla_table_dim(table);
    float *rows = malloc(2 * dim * sizeof *rows);
    if (!rows) return answer_refused("there is not enough memory for two rows");
    embla_status status = embla_lookup(table, ids, 2, NULL, rows);
    const char *answer =
        status == EMBLA_OK ? answer_compared(rows, rows + dim, dim) : answer_failed();
    free(rows);
    return answer;
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
    if (status == EMBLA_OK && !(embla_norm(row, embla_table_dim(table)) > 0)) {
        free(row);
        return answer_refused("this row has the norm 0, or numbers that are not finite, so it has "
                              "no direction and no neighbours");
    }
    if (status == EMBLA_OK && top > 0) status = embla_near(table, row, 1, &options, found, NULL);
    free(row);
    return status == EMBLA_OK ? geometry_answer(found, top) : answer_failed();
}

/* ---- planes ---- */

static const char *answer_plane(const float *xy, size_t rows, const double share[2])
{
    answer_begin();
    answer_rows("xy", xy, rows, 2);
    answer_open("share", '[');
    answer_real(NULL, share[0]);
    answer_real(NULL, share[1]);
    answer_close('[');
    return answer_end();
}

const char *geometry_plane(const embla_table *table, const int32_t *basis, size_t count)
{
    embla_plane_options options = {.no_engine = true}; /* the same bits everywhere */
    embla_plane_report report;
    const size_t rows = (size_t)embla_table_rows(table);
    int64_t *numbers = count > 0 ? malloc(count * sizeof *numbers) : NULL;
    float *xy = malloc(rows * 2 * sizeof *xy);
    const char *answer = answer_refused("there is not enough memory for a plane");
    if (xy && (numbers || count == 0)) {
        for (size_t i = 0; i < count; i++) numbers[i] = basis[i];
        options.basis = numbers;
        options.basis_count = count;
        answer = embla_plane(table, &options, xy, &report) == EMBLA_OK
                     ? answer_plane(xy, rows, report.share)
                     : answer_failed();
    }
    free(numbers);
    free(xy);
    return answer;
}

/* The sum over all rows of the squared differences from the mean: of number k of `step`. */
static double scatter_of(const float *values, size_t rows, size_t step, size_t k)
{
    double mean = 0, sum = 0;
    for (size_t i = 0; i < rows; i++) mean += (double)values[i * step + k] / (double)rows;
    for (size_t i = 0; i < rows; i++) {
        const double away = (double)values[i * step + k] - mean;
        sum += away * away;
    }
    return sum;
}

static const char *answer_aimed(const float *now, size_t rows, size_t dim, const float *xy)
{
    double all = 0, share[2];
    for (size_t k = 0; k < dim; k++) all += scatter_of(now, rows, dim, k);
    for (size_t a = 0; a < 2; a++) share[a] = all > 0 ? scatter_of(xy, rows, 2, a) / all : 0;
    return answer_plane(xy, rows, share);
}

/* One table of both: the plane is that of its second half. */
static embla_status project_on(const embla_table *rows, const float *aim, float *both,
                               int64_t *basis, float *xy)
{
    const size_t count = (size_t)embla_table_rows(rows), dim = embla_table_dim(rows);
    const size_t bytes = 2 * count * dim * sizeof *both;
    const embla_table_layout layout = {.dtype = EMBLA_F32, .rows = 2 * (int64_t)count, .dim = dim};
    const embla_plane_options options = {.basis = basis, .basis_count = count, .no_engine = true};
    embla_table *table = NULL;
    memcpy(both, embla_table_row(rows, 0), bytes / 2);
    memcpy(both + count * dim, aim, bytes / 2);
    for (size_t i = 0; i < count; i++) basis[i] = (int64_t)(count + i);
    embla_status status = embla_table_view(&layout, both, bytes, NULL, &table);
    if (status == EMBLA_OK) status = embla_plane(table, &options, xy, NULL);
    embla_table_free(table);
    return status;
}

const char *geometry_plane_of(const embla_table *rows, const float *aim)
{
    const size_t count = (size_t)embla_table_rows(rows), dim = embla_table_dim(rows);
    float *both = malloc(2 * count * dim * sizeof *both), *xy = malloc(4 * count * sizeof *xy);
    int64_t *basis = malloc(count * sizeof *basis);
    const char *answer = answer_refused("there is not enough memory for a plane");
    if (both && xy && basis)
        answer = project_on(rows, aim, both, basis, xy) == EMBLA_OK
                     ? answer_aimed(both, count, dim, xy)
                     : answer_failed();
    free(both);
    free(xy);
    free(basis);
    return answer;
}
