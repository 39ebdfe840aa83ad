/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench near: the 10 nearest rows of a table to one query and to many.
 *
 * A case is SHAPE/DTYPE/QUERIES. One query reads the table once; its limit is the fastest of
 * several loops that only read the same bytes, with 1 to 16 streams in each thread. Many queries
 * are a matrix product with a selection; their limit is the bare product of the same shape by the
 * same engine, without selection, with its result always in the same place. `analogies` is the
 * Google file on 50,000 words: 17,592 questions, the best answer of each, compared with bare
 * products in blocks of 2,048 questions.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/products.h"
#include "embla_lab.h"

enum { TURNS = 9, BLOCK = 2048 };

typedef struct {
    const char *name;
    int64_t rows;
    size_t dim;
    embla_dtype dtype;
    size_t count, k;
} shape;

static const shape shapes[] = {
    {"400000x100/f32/1", 400000, 100, EMBLA_F32, 1, 10},
    {"400000x100/f32/256", 400000, 100, EMBLA_F32, 256, 10},
    {"131072x4096/f32/1", 131072, 4096, EMBLA_F32, 1, 10},
    {"131072x4096/f32/256", 131072, 4096, EMBLA_F32, 256, 10},
    {"131072x4096/bf16/1", 131072, 4096, EMBLA_BF16, 1, 10},
    {"131072x4096/q8_0/1", 131072, 4096, EMBLA_Q8_0, 1, 10},
    {"50000x100/f32/analogies", 50000, 100, EMBLA_F32, 17592, 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct {
    const shape *shape;
    int threads;
    const embla_table *table;
    float *queries;
    embla_neighbour *out;
    float *products; /* rows x the queries of one block */
    size_t streams;  /* of the read that is the limit */
    uint64_t sum;    /* of what was read, so that the compiler cannot omit the reads */
    bool failed;
} bench_case;

static size_t block_of(const shape *s)
{
    return s->count < BLOCK ? s->count : BLOCK;
}

static void run_near(void *context, size_t step)
{
    bench_case *c = context;
    const embla_near_options options = {.k = c->shape->k, .threads = c->threads};
    (void)step;
    if (embla_near(c->table, c->queries, c->shape->count, &options, c->out, NULL) != EMBLA_OK)
        c->failed = true;
}

/* ---- limits ---- */

static void run_product(void *context, size_t step)
{
    bench_case *c = context;
    const shape *s = c->shape;
    (void)step;
    for (size_t i = 0; i < s->count; i += block_of(s)) {
        size_t n = s->count - i < block_of(s) ? s->count - i : block_of(s);
        const bench_layer layer = {.n = (size_t)s->rows,
                                   .out = n,
                                   .in = s->dim,
                                   .x = embla_table_row(c->table, 0),
                                   .w = c->queries + i * s->dim,
                                   .y = c->products};
        if (!bench_layer_run(&layer)) c->failed = true;
    }
}

/* Reads the whole table, with `streams` streams. */
static void run_read(void *context, size_t step)
{
    bench_case *c = context;
    size_t bytes = (size_t)c->shape->rows * embla_table_row_bytes(c->table);
    (void)step;
    c->sum += bench_read(embla_table_row(c->table, 0), bytes, c->streams, c->threads);
}

/* ---- a case ---- */

/* Verifies the first answer by hand: figures for wrong rows are worthless. */
static bool is_right(bench_case *c)
{
    const shape *s = c->shape;
    float *row = malloc(s->dim * sizeof *row);
    double best = -2.0;
    int64_t best_row = -1;
    for (int64_t r = 0; row && r < s->rows; r++) {
        if (embla_dtype_decode(s->dtype, embla_table_row(c->table, r), s->dim, 0.0f, row) !=
            EMBLA_OK)
            break;
        double cosine = embla_cosine(row, c->queries, s->dim);
        if (cosine > best) {
            best = cosine;
            best_row = r;
        }
    }
    free(row);
    return !c->failed && best_row == c->out[0].row && best == c->out[0].score;
}

static int run_case(bench_case *c, const bench_options *options)
{
    const shape *s = c->shape;
    bool one = s->count == 1;
    char limit_is[48] = "bare product";
    if (one) {
        c->streams =
            bench_streams(embla_table_row(c->table, 0),
                          (size_t)c->shape->rows * embla_table_row_bytes(c->table), c->threads);
        (void)snprintf(limit_is, sizeof limit_is, "read, %zu streams", c->streams);
    }
    bench_times times =
        bench_measure_team(run_near, one ? run_read : run_product, c, TURNS, 1, c->threads);
    if (!is_right(c)) {
        options->complain("bench near: %s: wrong rows, or: %s", s->name, embla_error());
        return 1;
    }
    double numbers = (double)s->rows * (double)s->dim;
    double bytes = (double)s->rows * (double)embla_table_row_bytes(c->table);
    double work = (one ? bytes : 2.0 * numbers * (double)s->count) * 1e-9;
    bench_result result = {.bench = "near",
                           .name = s->name,
                           .threads = c->threads,
                           .unit = one ? "GB/s" : "GFLOP/s",
                           .limit_is = limit_is,
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

/* Fills queries like rows of another table: random. */
static bool fill_queries(const shape *s, float *queries)
{
    embla_table *table = NULL;
    const embla_init_options init = {.seed = 2};
    bool done = embla_table_new(EMBLA_F32, (int64_t)s->count, s->dim, NULL, &table) == EMBLA_OK &&
                embla_table_init(table, &init) == EMBLA_OK;
    if (done) memcpy(queries, embla_table_row(table, 0), s->count * s->dim * sizeof *queries);
    embla_table_free(table);
    return done;
}

static int run_threads(bench_case *c, const bench_options *options)
{
    const bench_teams teams = bench_teams_for(options, BENCH_BOTH);
    int failed = 0;
    for (size_t t = 0; t < teams.count && !failed; t++) {
        c->threads = teams.threads[t];
        failed = run_case(c, options);
    }
    return failed;
}

/* Runs all cases of one shape, and frees its memory. Without enough memory, prints a message and no
 * figure. */
static int run_shape(const shape *s, const bench_options *options)
{
    bench_case c = {.shape = s};
    embla_table *table = NULL;
    const embla_init_options init = {.seed = 1};
    size_t products = s->count == 1 ? 1 : (size_t)s->rows * block_of(s);
    int exit_code = 0;
    c.queries = malloc(s->count * s->dim * sizeof *c.queries);
    c.out = malloc(s->count * s->k * sizeof *c.out);
    c.products = bench_memory(products * sizeof *c.products);
    bool ready = c.queries && c.out && c.products && fill_queries(s, c.queries) &&
                 embla_table_new(s->dtype, s->rows, s->dim, NULL, &table) == EMBLA_OK &&
                 embla_table_init(table, &init) == EMBLA_OK;
    c.table = table;
    if (ready)
        exit_code = run_threads(&c, options);
    else
        options->complain("bench near: no memory for %s: left out", s->name);
    embla_table_free(table);
    free(c.products);
    free(c.out);
    free(c.queries);
    return exit_code;
}

int bench_near(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("near", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++)
        if (bench_wants(&cases, shapes[i].name, true)) exit_code = run_shape(&shapes[i], options);
    return bench_end(&cases, exit_code);
}
