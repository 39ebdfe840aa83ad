/* SPDX-License-Identifier: Apache-2.0 */
/* Which of a few rows does not match the others: the one with the lowest cosine with their mean, as
 * in gensim's doesnt_match.
 */
#include <inttypes.h>
#include <math.h>

#include "base/arena.h"
#include "embla_lab.h"

/* The mean of the rows, each divided by its norm, times count. */
static void add_units(const float *vectors, const double *norms, size_t count, size_t dim,
                      double *sum)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < dim && norms[i] > 0.0; j++)
            sum[j] += (double)vectors[i * dim + j] / norms[i];
}

static double cosine_with(const float *row, double norm, const double *sum, double sum_norm,
                          size_t dim)
{
    double dot = 0.0;
    for (size_t j = 0; j < dim; j++) dot += (double)row[j] * sum[j];
    return norm == 0.0 || sum_norm == 0.0 ? 0.0 : dot / norm / sum_norm;
}

static embla_status score_rows(const embla_table *table, const int64_t *rows, size_t count,
                               embla_arena *arena, double *cosines)
{
    const size_t dim = embla_table_dim(table);
    const embla_lookup_options options = {.threads = 1};
    float *vectors = NULL;
    double *norms = NULL, *sum = NULL, square = 0.0;
    EMBLA_TRY(embla_arena_many(arena, (uint64_t)count * dim, sizeof *vectors, "rows", &vectors));
    EMBLA_TRY(embla_arena_many(arena, count, sizeof *norms, "norms", &norms));
    EMBLA_TRY(embla_arena_many(arena, dim, sizeof *sum, "a mean row", &sum));
    EMBLA_TRY(embla_lookup_rows(table, rows, count, &options, vectors));
    for (size_t i = 0; i < count; i++) {
        norms[i] = embla_norm(vectors + i * dim, dim);
        if (!isfinite(norms[i]))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "rows[%zu] is row %" PRId64
                              ", and one of its values is NaN or infinite",
                              i, rows[i]);
    }
    for (size_t j = 0; j < dim; j++) sum[j] = 0.0;
    add_units(vectors, norms, count, dim, sum);
    for (size_t j = 0; j < dim; j++) square += sum[j] * sum[j];
    for (size_t i = 0; i < count; i++)
        cosines[i] = cosine_with(vectors + i * dim, norms[i], sum, sqrt(square), dim);
    return EMBLA_OK;
}

embla_status embla_odd_row(const embla_table *table, const int64_t *rows, size_t count,
                           double *cosines, size_t *odd)
{
    embla_arena arena = {0};
    EMBLA_NEED(table);
    EMBLA_NEED(rows);
    EMBLA_NEED(cosines);
    EMBLA_NEED(odd);
    if (count < 2)
        return embla_fail(EMBLA_ERR_ARGUMENT, "count is %zu; it must be at least 2", count);
    embla_status status = score_rows(table, rows, count, &arena, cosines);
    embla_arena_free(&arena);
    if (status != EMBLA_OK) return status;
    *odd = 0;
    for (size_t i = 1; i < count; i++)
        if (cosines[i] < cosines[*odd]) *odd = i;
    return EMBLA_OK;
}
