/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of `embla bench head` for losses: TOKENSxDIMxROWS/COMPUTE, forward and backward, or
 * forward only.
 *
 * The limit is the necessary work: the bare products of the same shape by the same engine (logits,
 * the gradients of table and hidden), on the same threads, without softmax. In f32 all logits are
 * computed at once if they fit into 256 MiB, otherwise for as many tokens as fit. In bf16 the
 * factors are bf16, if the CPU supports it, in the engine's own layout and in the blocks of rows
 * that are fastest here: all logits at once would be limited by writing them. Figures are the
 * arithmetic of the products per second.
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

enum { TURNS = 7, LOGITS_MOST = 256 << 20 };

typedef struct {
    const char *name;
    size_t count, dim;
    int64_t rows;
    embla_dtype compute;
    bool backward;
} shape;

static const shape shapes[] = {
    {"loss/1024x768x50257/f32", 1024, 768, 50257, EMBLA_F32, true},
    {"loss/1024x768x50257/f32/forward", 1024, 768, 50257, EMBLA_F32, false},
    {"loss/1024x768x50257/bf16", 1024, 768, 50257, EMBLA_BF16, true},
    {"loss/1024x64x262144/f32", 1024, 64, 262144, EMBLA_F32, true},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct {
    const shape *shape;
    int threads;
    embla_table *table;
    float *hidden, *each;
    int32_t *targets;
    float *hidden_gradient, *table_gradient;
    /* for the bare products */
    float *logits;                           /* block x rows */
    size_t block;                            /* tokens at a time */
    uint16_t *hidden16, *table16, *logits16; /* NULL for f32, or if the CPU has no bf16 */
    bench_bare *bare;                        /* of bf16 */
    bool failed;
} bench_case;

/* ---- ours and the limits ---- */

static void run(bench_case *c, embla_dtype compute)
{
    const embla_head head = {.table = c->table};
    const embla_loss_options options = {.compute = compute, .threads = c->threads};
    const embla_loss_gradients gradients = {.hidden = c->hidden_gradient,
                                            .table = c->table_gradient};
    if (embla_head_loss(&head,
                        &(embla_loss_batch){.hidden = c->hidden,
                                            .targets = c->targets,
                                            .count = c->shape->count,
                                            .each = c->each},
                        &options, c->shape->backward ? &gradients : NULL, NULL) != EMBLA_OK)
        c->failed = true;
}

static void run_loss(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    run(c, c->shape->compute);
}

static void run_products(void *context, size_t step)
{
    bench_case *c = context;
    size_t dim = c->shape->dim, rows = (size_t)c->shape->rows;
    const float *table = embla_table_row(c->table, 0);
    (void)step;
    for (size_t i = 0; i < c->shape->count; i += c->block) {
        size_t n = c->shape->count - i < c->block ? c->shape->count - i : c->block;
        const bench_layer layer = {.n = n,
                                   .out = rows,
                                   .in = dim,
                                   .x = c->hidden + i * dim,
                                   .w = table,
                                   .y = c->logits,
                                   .dy = c->shape->backward ? c->logits : NULL,
                                   .dx = c->hidden_gradient + i * dim,
                                   .dw = c->table_gradient};
        if (!bench_layer_run(&layer)) c->failed = true;
    }
}

static bench_layer layer_bf16(const bench_case *c)
{
    return (bench_layer){.n = c->shape->count,
                         .out = (size_t)c->shape->rows,
                         .in = c->shape->dim,
                         .x = c->hidden16,
                         .w = c->table16,
                         .y = c->logits,
                         .dy = c->shape->backward ? c->logits16 : NULL,
                         .dx = c->hidden_gradient,
                         .dw = c->table_gradient};
}

static void run_products_bf16(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    if (!bench_bare_run(c->bare)) c->failed = true;
}

/* ---- a case ---- */

/* Verifies the first token by hand in double: figures for a wrong loss are worthless. */
static bool is_right(bench_case *c)
{
    const shape *s = c->shape;
    const float *table = embla_table_row(c->table, 0);
    double *p = malloc((size_t)s->rows * sizeof *p), sum = 0, worst = 0, size = 0;
    if (!p) return false;
    for (int64_t v = 0; v < s->rows; v++) {
        p[v] = 0;
        for (size_t d = 0; d < s->dim; d++)
            p[v] += (double)table[(size_t)v * s->dim + d] * (double)c->hidden[d];
        sum += exp(p[v]); /* rows and vectors have norm 1, so nothing overflows */
    }
    double loss = log(sum) - p[c->targets[0]];
    for (size_t d = 0; s->backward && d < s->dim; d++) {
        double gradient = 0;
        for (int64_t v = 0; v < s->rows; v++)
            gradient +=
                (exp(p[v]) / sum - (v == c->targets[0])) * (double)table[(size_t)v * s->dim + d];
        gradient /= (double)s->count;
        worst = fmax(worst, fabs(gradient - (double)c->hidden_gradient[d]));
        size = fmax(size, fabs(gradient));
    }
    free(p);
    double allowed = s->compute == EMBLA_BF16 ? 1e-2 : 1e-5;
    return !c->failed && fabs((double)c->each[0] - loss) < allowed * loss &&
           worst <= allowed * size;
}

static int run_case(bench_case *c, const bench_options *options)
{
    const shape *s = c->shape;
    bool bf16 = c->table16 != NULL;
    run(c, s->compute);
    if (!is_right(c)) {
        options->complain("bench head: %s: a wrong loss, or: %s", s->name, embla_error());
        return 1;
    }
    if (bf16) {
        const bench_layer layer = layer_bf16(c);
        c->bare = bench_bare_new(&layer, c->block * layer.out / layer.n, c->threads);
        if (!c->bare) {
            options->complain("bench head: %s: no bare products: %s", s->name, embla_error());
            return 1;
        }
    }
    bench_times times = bench_measure_team(run_loss, bf16 ? run_products_bf16 : run_products, c,
                                           TURNS, 1, c->threads);
    double work = 2e-9 * (double)s->count * (double)s->dim * (double)s->rows;
    if (s->backward) work *= 3;
    bench_result result = {.bench = "head",
                           .name = s->name,
                           .threads = c->threads,
                           .unit = "GFLOP/s",
                           .limit_is = bf16          ? "three bare bf16 products"
                                       : s->backward ? "three bare products"
                                                     : "bare product",
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    bench_print(options, &result);
    return c->failed;
}

static bool fill(bench_case *c)
{
    const shape *s = c->shape;
    embla_table *vectors = NULL;
    const embla_init_options table_init = {.seed = 1}, init = {.seed = 2};
    bool done = embla_table_new(EMBLA_F32, s->rows, s->dim, NULL, &c->table) == EMBLA_OK &&
                embla_table_init(c->table, &table_init) == EMBLA_OK &&
                embla_table_new(EMBLA_F32, (int64_t)s->count, s->dim, NULL, &vectors) == EMBLA_OK &&
                embla_table_init(vectors, &init) == EMBLA_OK;
    if (done) memcpy(c->hidden, embla_table_row(vectors, 0), s->count * s->dim * sizeof(float));
    embla_table_free(vectors);
    for (size_t i = 0; i < s->count; i++)
        c->targets[i] = (int32_t)((i * UINT64_C(2654435761)) % (uint64_t)s->rows);
    return done;
}

/* Creates the factors of the bare bf16 products. Returns false if there is not enough memory. */
static bool fill_bf16(bench_case *c)
{
    const shape *s = c->shape;
    size_t rows = (size_t)s->rows, logits = c->block * rows;
    if (s->compute != EMBLA_BF16 || !bench_has_bf16()) return true;
    c->hidden16 = bench_memory(s->count * s->dim * sizeof *c->hidden16);
    c->table16 = bench_memory(rows * s->dim * sizeof *c->table16);
    c->logits16 = bench_memory(logits * sizeof *c->logits16);
    if (!c->hidden16 || !c->table16 || !c->logits16) return false;
    bench_bf16(c->hidden, s->count * s->dim, c->hidden16);
    bench_bf16(embla_table_row(c->table, 0), rows * s->dim, c->table16);
    for (size_t i = 0; i < logits; i++) c->logits16[i] = c->table16[i % (rows * s->dim)];
    return true;
}

/* Runs all cases of one shape. Without enough memory, prints a message and no figure. */
static int run_shape(const shape *s, const bench_options *options)
{
    bench_case c = {.shape = s};
    const bench_teams teams = bench_teams_for(options, BENCH_TWO);
    size_t vectors = s->count * s->dim * sizeof(float), rows = (size_t)s->rows;
    int exit_code = 0;
    c.block = LOGITS_MOST / (rows * sizeof(float));
    if (c.block > s->count) c.block = s->count;
    c.hidden = bench_memory(vectors);
    c.hidden_gradient = bench_memory(vectors);
    c.table_gradient = bench_memory(rows * s->dim * sizeof(float));
    c.logits = bench_memory(c.block * rows * sizeof(float));
    c.each = malloc(s->count * sizeof *c.each);
    c.targets = malloc(s->count * sizeof *c.targets);
    bool ready = c.hidden && c.hidden_gradient && c.table_gradient && c.logits && c.each &&
                 c.targets && fill(&c) && fill_bf16(&c);
    for (size_t t = 0; t < teams.count && ready && exit_code == 0; t++) {
        c.threads = teams.threads[t];
        exit_code = run_case(&c, options);
        bench_bare_free(c.bare);
        c.bare = NULL;
    }
    if (!ready) options->complain("bench head: no memory for %s: left out", s->name);
    embla_table_free(c.table);
    free(c.logits16);
    free(c.table16);
    free(c.hidden16);
    free(c.targets);
    free(c.each);
    free(c.logits);
    free(c.table_gradient);
    free(c.hidden_gradient);
    free(c.hidden);
    return exit_code;
}

int bench_loss(bench_cases *cases)
{
    int exit_code = 0;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++)
        if (bench_wants(cases, shapes[i].name, true))
            exit_code = run_shape(&shapes[i], cases->options);
    return exit_code;
}
