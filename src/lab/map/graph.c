/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest rows of every row: batches of rows are queries of embla_near.
 */
#include "map/graph.h"

#include <string.h>

#include "base/finite.h"
#include "base/options.h"
#include "base/stop.h"
#include "base/threads.h"

enum { K_UNASKED = 30, K_MOST = 1024, BATCH = 1024 }; /* BATCH: rows in one search */

/* Rows of one search. */
typedef struct {
    float *values;          /* BATCH x dim: the finite rows, one after the other */
    embla_neighbour *found; /* BATCH x k */
    int64_t rows[BATCH];    /* their row numbers */
    size_t count;
} batch;

/* Decodes rows first .. first + count - 1 and keeps the finite ones. */
static embla_status read_rows(const embla_table *table, int64_t first, size_t count, int threads,
                              batch *b)
{
    const embla_lookup_options options = {.threads = threads};
    size_t dim = embla_table_dim(table);
    for (size_t i = 0; i < count; i++) b->rows[i] = first + (int64_t)i;
    EMBLA_TRY(embla_lookup_rows(table, b->rows, count, &options, b->values));
    b->count = 0;
    for (size_t i = 0; i < count; i++) {
        const float *row = b->values + i * dim;
        if (!embla_all_finite(row, dim)) continue;
        if (b->count != i) memmove(b->values + b->count * dim, row, dim * sizeof *row);
        b->rows[b->count++] = first + (int64_t)i;
    }
    return EMBLA_OK;
}

static size_t batch_at(const embla_graph *graph, int64_t first)
{
    return (size_t)(graph->rows - first < BATCH ? graph->rows - first : BATCH);
}

/* Finds which rows are finite: their number limits k. */
static embla_status find_finite(const embla_table *table, int threads, embla_graph *graph, batch *b)
{
    for (int64_t first = 0; first < graph->rows; first += BATCH) {
        EMBLA_TRY(read_rows(table, first, batch_at(graph, first), threads, b));
        for (size_t i = 0; i < b->count; i++) graph->is_finite[b->rows[i]] = true;
        graph->finite += (int64_t)b->count;
    }
    return EMBLA_OK;
}

static embla_status find_near(const embla_table *table, const embla_graph_options *options,
                              embla_graph *graph, batch *b)
{
    size_t k = graph->k;
    for (int64_t first = 0; first < graph->rows; first += BATCH) {
        size_t count = batch_at(graph, first);
        EMBLA_TRY(embla_progress_report(options->progress, options->context, "neighbours", first,
                                        graph->rows));
        EMBLA_TRY(read_rows(table, first, count, options->threads, b));
        const embla_near_options near = {
            .k = k, .exclude = b->rows, .exclude_count = 1, .threads = options->threads};
        EMBLA_TRY(embla_near(table, b->values, b->count, &near, b->found, NULL));
        for (size_t i = 0; i < count * k; i++)
            graph->near[(size_t)first * k + i] = (embla_neighbour){.row = -1};
        for (size_t i = 0; i < b->count; i++)
            memcpy(graph->near + (size_t)b->rows[i] * k, b->found + i * k, k * sizeof *b->found);
    }
    return embla_progress_report(options->progress, options->context, "neighbours", graph->rows,
                                 graph->rows);
}

static embla_status build(const embla_table *table, const embla_graph_options *options,
                          embla_arena *working, embla_graph *graph)
{
    const char *what = "the nearest rows of all rows";
    batch *b = NULL;
    graph->rows = embla_table_rows(table);
    EMBLA_TRY(embla_arena_many(working, 1, sizeof *b, what, &b));
    EMBLA_TRY(
        embla_arena_many(working, BATCH * embla_table_dim(table), sizeof(float), what, &b->values));
    EMBLA_TRY(embla_arena_many(&graph->arena, (uint64_t)graph->rows, sizeof(bool), what,
                               &graph->is_finite));
    EMBLA_TRY(find_finite(table, options->threads, graph, b));
    graph->k = options->k > 0 ? options->k : K_UNASKED;
    if (graph->finite <= (int64_t)graph->k)
        graph->k = graph->finite > 0 ? (size_t)graph->finite - 1 : 0;
    if (graph->k == 0) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(working, BATCH * graph->k, sizeof *b->found, what, &b->found));
    EMBLA_TRY(embla_arena_many(&graph->arena, (uint64_t)graph->rows * graph->k, sizeof *b->found,
                               what, &graph->near));
    return find_near(table, options, graph, b);
}

static embla_status check(const embla_table *table, const embla_graph_options *options)
{
    if (options->k > K_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "k is %zu; the maximum is %d", options->k, K_MOST);
    if (embla_table_rows(table) > INT32_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a graph has at most %d rows, and the table has %" PRId64, INT32_MAX,
                          embla_table_rows(table));
    return embla_threads_check(options->threads);
}

embla_status embla_graph_new(const embla_table *table, const embla_graph_options *options,
                             embla_graph **out)
{
    const embla_graph_options none = {0};
    embla_arena working = {0};
    embla_graph made = {0};
    embla_graph *graph = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &none;
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    EMBLA_TRY(check(table, options));
    embla_status status = build(table, options, &working, &made);
    if (status == EMBLA_OK)
        status = embla_arena_many(&made.arena, 1, sizeof *graph, "a graph", &graph);
    embla_arena_free(&working);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    *graph = made;
    *out = graph;
    return EMBLA_OK;
}

void embla_graph_free(embla_graph *graph)
{
    if (!graph) return;
    embla_arena arena = graph->arena; /* the arena holds the graph itself */
    embla_arena_free(&arena);
}

const embla_neighbour *embla_graph_near(const embla_graph *graph, int64_t row, size_t *count)
{
    *count = 0;
    if (!graph || (uint64_t)row >= (uint64_t)graph->rows || !graph->is_finite[row]) return NULL;
    *count = graph->k;
    return graph->near ? graph->near + (size_t)row * graph->k : NULL;
}
