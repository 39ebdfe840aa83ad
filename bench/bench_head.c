/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench head: logits of one vector, choice of a token, logits of many vectors; then the
 * losses (bench_loss.c).
 *
 * A case is KIND/SHAPE/DTYPE. decode is embla_head_logits of one vector. greedy is embla_head_top
 * with k = 1. top_p is embla_head_sample with top_p 0.9 and temperature 0.8. All three read the
 * table once; their limit is the fastest of several loops that only read the same bytes, with 1 to
 * 16 streams in each thread. logits has 256 vectors; its limit is the bare product of the same
 * shape by the same engine.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/products.h"
#include "embla_learn.h"

enum { TURNS = 9, MANY = 256 };

typedef enum { DECODE, GREEDY, TOP_P, LOGITS } kind;

typedef struct {
    const char *name;
    int64_t rows;
    size_t dim;
    kind kind;
    embla_dtype dtype;
} shape;

static const shape shapes[] = {
    {"decode/131072x4096/f32", 131072, 4096, DECODE, EMBLA_F32},
    {"decode/131072x4096/bf16", 131072, 4096, DECODE, EMBLA_BF16},
    {"decode/131072x4096/q8_0", 131072, 4096, DECODE, EMBLA_Q8_0},
    {"greedy/131072x4096/q8_0", 131072, 4096, GREEDY, EMBLA_Q8_0},
    {"top_p/131072x4096/q8_0", 131072, 4096, TOP_P, EMBLA_Q8_0},
    {"decode/50257x768/f32", 50257, 768, DECODE, EMBLA_F32},
    {"greedy/50257x768/f32", 50257, 768, GREEDY, EMBLA_F32},
    {"top_p/50257x768/f32", 50257, 768, TOP_P, EMBLA_F32},
    {"logits/50257x768/f32", 50257, 768, LOGITS, EMBLA_F32},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct {
    const shape *shape;
    int threads;
    embla_head head;
    size_t count;    /* vectors */
    float *hidden;   /* count x dim */
    float *logits;   /* count x rows */
    float *products; /* the same for the limit; NULL if that is a read */
    embla_choice choice;
    size_t streams; /* of the read that is the limit */
    uint64_t sum;   /* of what was read, so that the compiler cannot omit the reads */
    bool failed;
} bench_case;

static void run_head(void *context, size_t step)
{
    bench_case *c = context;
    embla_status status;
    if (c->shape->kind == GREEDY) {
        status = embla_head_top(&c->head, c->hidden, 1, 1,
                                &(embla_head_options){.threads = c->threads}, &c->choice);
    } else if (c->shape->kind == TOP_P) {
        const embla_sample_options options = {
            .temperature = 0.8, .top_p = 0.9, .step = (int64_t)step, .threads = c->threads};
        status = embla_head_sample(&c->head, c->hidden, 1, &options, &c->choice);
    } else {
        status = embla_head_logits(&c->head, c->hidden, c->count,
                                   &(embla_head_options){.threads = c->threads}, c->logits);
    }
    if (status != EMBLA_OK) c->failed = true;
}

/* ---- limits ---- */

static size_t table_bytes(const bench_case *c)
{
    return (size_t)c->shape->rows * embla_table_row_bytes(c->head.table);
}

static void run_read(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    c->sum += bench_read(embla_table_row(c->head.table, 0), table_bytes(c), c->streams, c->threads);
}

static void run_product(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    const bench_layer layer = {.n = c->count,
                               .out = (size_t)c->shape->rows,
                               .in = c->shape->dim,
                               .x = c->hidden,
                               .w = embla_table_row(c->head.table, 0),
                               .y = c->products};
    if (!bench_layer_run(&layer)) c->failed = true;
}

/* ---- a case ---- */

/* Verifies every logit of the first vector in double, and that the last chosen token is the best
 * one, or has its logit. Figures for wrong results are worthless. */
static bool is_right(bench_case *c)
{
    const shape *s = c->shape;
    float *row = malloc(s->dim * sizeof *row);
    double best = -INFINITY, worst = 0.0, chosen = NAN;
    int64_t best_row = -1;
    for (int64_t r = 0; row && r < s->rows; r++) {
        if (embla_dtype_decode(s->dtype, embla_table_row(c->head.table, r), s->dim, 0.0f, row) !=
            EMBLA_OK)
            break;
        double logit = (double)c->head.scale * embla_dot(row, c->hidden, s->dim);
        double off = c->logits ? fabs(logit - (double)c->logits[r]) : 0.0;
        if (!(off <= worst)) worst = off;
        if (logit > best) best_row = r;
        if (logit > best) best = logit;
        if (r == c->choice.token) chosen = logit;
    }
    free(row);
    if (c->failed || best_row < 0) return false;
    if (s->kind == GREEDY) return c->choice.token == best_row;
    if (s->kind == TOP_P) return fabs(chosen - (double)c->choice.logit) < 1e-3;
    return worst < 1e-3;
}

static int run_case(bench_case *c, const bench_options *options)
{
    const shape *s = c->shape;
    bool many = s->kind == LOGITS;
    char limit_is[48] = "bare product";
    if (!many) {
        c->streams = bench_streams(embla_table_row(c->head.table, 0), table_bytes(c), c->threads);
        (void)snprintf(limit_is, sizeof limit_is, "read, %zu streams", c->streams);
    }
    bench_times times =
        bench_measure_team(run_head, many ? run_product : run_read, c, TURNS, 1, c->threads);
    if (!is_right(c)) {
        options->complain("bench head: %s: wrong logits, or: %s", s->name, embla_error());
        return 1;
    }
    double products = 2.0 * (double)s->rows * (double)s->dim * (double)c->count;
    double work = (many ? products : (double)table_bytes(c)) * 1e-9;
    bench_result result = {.bench = "head",
                           .name = s->name,
                           .threads = c->threads,
                           .unit = many ? "GFLOP/s" : "GB/s",
                           .limit_is = limit_is,
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

/* Fills vectors like rows of another table: random, with norms near 1. */
static bool fill(bench_case *c, embla_table *table)
{
    const embla_init_options init = {.seed = 1}, other = {.seed = 2};
    embla_table *vectors = NULL;
    size_t dim = c->shape->dim;
    bool done = embla_table_init(table, &init) == EMBLA_OK &&
                embla_table_new(EMBLA_F32, (int64_t)c->count, dim, NULL, &vectors) == EMBLA_OK &&
                embla_table_init(vectors, &other) == EMBLA_OK;
    if (done) memcpy(c->hidden, embla_table_row(vectors, 0), c->count * dim * sizeof *c->hidden);
    embla_table_free(vectors);
    return done;
}

/* Runs all cases of one shape, and frees its memory. Without enough memory, prints a message and no
 * figure. The scale spreads logits as in a model: a few hundred tokens share 0.9. */
static int run_shape(const shape *s, const bench_options *options)
{
    bench_case c = {.shape = s, .count = s->kind == LOGITS ? MANY : 1};
    embla_table *table = NULL;
    size_t bytes = c.count * (size_t)s->rows * sizeof(float);
    bool chosen = s->kind == GREEDY || s->kind == TOP_P;
    const bench_teams teams = bench_teams_for(options, BENCH_TWO);
    int exit_code = 0;
    c.hidden = bench_memory(c.count * s->dim * sizeof(float));
    c.logits = chosen ? NULL : bench_memory(bytes);
    c.products = s->kind == LOGITS ? bench_memory(bytes) : NULL;
    bool ready = c.hidden && (chosen || c.logits) && (s->kind != LOGITS || c.products) &&
                 embla_table_new(s->dtype, s->rows, s->dim, NULL, &table) == EMBLA_OK;
    ready = ready && fill(&c, table);
    c.head = (embla_head){.table = table, .scale = 3.5f * sqrtf((float)s->dim)};
    for (size_t t = 0; t < teams.count && ready && exit_code == 0; t++) {
        c.threads = teams.threads[t];
        exit_code = run_case(&c, options);
    }
    if (!ready) options->complain("bench head: no memory for %s: left out", s->name);
    embla_table_free(table);
    free(c.products);
    free(c.logits);
    free(c.hidden);
    return exit_code;
}

int bench_head(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("head", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++)
        if (bench_wants(&cases, shapes[i].name, true)) exit_code = run_shape(&shapes[i], options);
    if (exit_code == 0) exit_code = bench_loss(&cases);
    return bench_end(&cases, exit_code);
}
