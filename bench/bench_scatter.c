/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench scatter: adds the gradients of 8,192 vectors to the rows they came from.
 *
 * A case is SHAPE/IDS/WHAT.
 *   IDS   zipf: token k has probability proportional to 1/(k+1), as in text; uniform; same: one row
 *         for all tokens
 *   WHAT  sum: plan and compact gradient (touched rows x dim)
 *         add: plan and the touched rows of a dense gradient (rows x dim)
 *         plan: only which rows are touched, and where
 * The limit of sum and add is memcpy with the same number of threads, of as many bytes as must be
 * moved: vectors read, rows written, and for add also rows read. Half of them are read and half
 * written, in order, through memory too large for the caches, like the gradients. The limit of a
 * plan is the minimum work of a sort: each token, as a 64-bit number, is written once to its place,
 * which is known in advance.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla_learn.h"
#include "learn/scatter_sum.h"

enum { BATCH = 8192, BATCHES = 8, TURNS = 21 };

typedef struct {
    int64_t rows;
    size_t dim;
} shape;

static const shape shapes[] = {{8449, 768}, {50257, 768}, {131072, 4096}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static const char *const id_kinds[] = {"zipf", "uniform", "same"};
enum { ZIPF, UNIFORM, SAME, ID_KINDS };
static const char *const whats[] = {"sum", "add", "plan"};
enum { SUM, ADD, PLAN, WHATS };

/* Everything that one case needs. */
typedef struct {
    shape shape;
    int ids, what, threads;
    embla_scatter *scatter;
    int32_t *tokens; /* BATCHES x BATCH */
    float *pool;     /* gradients to read, then results to write; used in turn */
    size_t vectors, places, out_places;
    float *dense;
    int64_t *sorted;     /* output of the limit of a plan */
    uint32_t *places_of; /* the places of its tokens: BATCHES x BATCH */
    size_t count;        /* touched rows of all batches */
    bool failed;
} bench_case;

static const int32_t *case_tokens(const bench_case *c, size_t step)
{
    return c->tokens + step / 2 % BATCHES * BATCH;
}

static const float *case_gradients(const bench_case *c, size_t step)
{
    return c->pool + step / 2 % c->places * BATCH * c->shape.dim;
}

static float *case_out(const bench_case *c, size_t step)
{
    return c->pool + (c->places + step / 2 % c->out_places) * BATCH * c->shape.dim;
}

static void plan(bench_case *c, size_t step)
{
    const embla_scatter_options options = {.threads = c->threads};
    if (embla_scatter_plan(c->scatter, case_tokens(c, step), BATCH, &options) != EMBLA_OK)
        c->failed = true;
}

static void run_ours(void *context, size_t step)
{
    bench_case *c = context;
    embla_status status = EMBLA_OK;
    plan(c, step);
    if (c->what == SUM)
        status =
            embla_scatter_sum(c->scatter, case_gradients(c, step), c->shape.dim, case_out(c, step));
    if (c->what == ADD)
        status = embla_scatter_add(c->scatter, case_gradients(c, step), c->shape.dim, c->dense);
    if (status != EMBLA_OK) c->failed = true;
}

/* The average bytes that a batch must read and write. */
static size_t case_bytes(const bench_case *c)
{
    size_t rows = c->count / BATCHES;
    return (BATCH + (c->what == ADD ? 2 : 1) * rows) * c->shape.dim * sizeof(float);
}

static void run_memcpy(void *context, size_t step)
{
    bench_case *c = context;
    size_t bytes = case_bytes(c) / 2;
    const char *in = (const char *)case_gradients(c, step);
    char *out = (char *)case_out(c, step);
    bench_copy(out, in, bytes, c->threads);
}

static void run_move(void *context, size_t step)
{
    bench_case *c = context;
    const int32_t *tokens = case_tokens(c, step);
    const uint32_t *places = c->places_of + (tokens - c->tokens);
    for (size_t i = 0; i < BATCH; i++) c->sorted[places[i]] = tokens[i];
    __asm__ volatile("" : : "r"(c->sorted) : "memory");
}

/* Verifies a batch in a simple way: figures for wrong sums are worthless. */
static bool is_right(bench_case *c, size_t step)
{
    size_t dim = c->shape.dim;
    bool right = true;
    const float *in = case_gradients(c, step), *out = case_out(c, step);
    const int32_t *tokens = case_tokens(c, step);
    int what = c->what;
    double *sums = malloc(dim * sizeof *sums);
    if (!sums) return false;
    c->what = SUM;
    run_ours(c, step);
    c->what = what;
    size_t count = embla_scatter_count(c->scatter);
    for (size_t u = 0; u < count && right; u += 1 + count / 50) {
        int64_t row = embla_scatter_rows(c->scatter)[u];
        memset(sums, 0, dim * sizeof *sums);
        for (size_t i = 0; i < BATCH; i++)
            for (size_t k = 0; tokens[i] == row && k < dim; k++) sums[k] += (double)in[i * dim + k];
        for (size_t k = 0; k < dim; k++) right = right && out[u * dim + k] == (float)sums[k];
    }
    free(sums);
    return right && !c->failed;
}

static int run_case(bench_case *c, const char *name, const bench_options *options)
{
    bool moves = c->what != PLAN;
    if (!is_right(c, 2)) {
        options->complain("bench scatter: %s: wrong sums: %s", name, embla_error());
        return 1;
    }
    bench_times times =
        bench_measure(run_ours, moves ? run_memcpy : run_move, c, TURNS, moves ? 1 : 32);
    double work = moves ? (double)case_bytes(c) * 1e-9 : (double)BATCH * 1e-6;
    bench_result result = {.bench = "scatter",
                           .name = name,
                           .threads = c->threads,
                           .unit = moves ? "GB/s" : "Mtok/s",
                           .limit_is = moves ? "memcpy" : "move",
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    if (c->failed) {
        options->complain("bench scatter: %s: %s", name, embla_error());
        return 1;
    }
    bench_print(options, &result);
    return 0;
}

/* ---- ids ---- */

/* BATCHES x BATCH tokens. */
static bool make_tokens(int kind, int64_t rows, int32_t *tokens)
{
    for (size_t i = 0; i < (size_t)BATCHES * BATCH; i++) tokens[i] = (int32_t)(rows / 2);
    return kind == SAME || bench_tokens(kind == ZIPF, rows, (size_t)BATCHES * BATCH, tokens);
}

/* Counts the rows touched by all batches, and computes the sorted places of each batch's tokens. */
static bool plan_tokens(bench_case *c)
{
    uint32_t *before = malloc(((size_t)c->shape.rows + 1) * sizeof *before);
    if (!before) return false;
    c->count = 0;
    for (size_t b = 0; b < BATCHES; b++) {
        const int32_t *tokens = c->tokens + b * BATCH;
        plan(c, 2 * b);
        c->count += embla_scatter_count(c->scatter);
        memset(before, 0, ((size_t)c->shape.rows + 1) * sizeof *before);
        for (size_t i = 0; i < BATCH; i++) before[tokens[i] + 1]++;
        for (int64_t r = 0; r < c->shape.rows; r++) before[r + 1] += before[r];
        for (size_t i = 0; i < BATCH; i++) c->places_of[b * BATCH + i] = before[tokens[i]]++;
    }
    free(before);
    return true;
}

/* ---- which cases ---- */

/* Zipf everywhere; the others only where we publish figures. */
static bool in_default_set(const bench_case *c)
{
    if (c->what == PLAN) return c->ids == ZIPF;
    return c->ids == ZIPF || (c->what == SUM && c->shape.rows == 50257);
}

static bool is_wanted(bench_cases *cases, const bench_case *c, char *name, size_t size)
{
    (void)snprintf(name, size, "%lldx%zu/%s/%s", (long long)c->shape.rows, c->shape.dim,
                   id_kinds[c->ids], whats[c->what]);
    return bench_wants(cases, name, in_default_set(c));
}

/* Allocates the memory of a shape: twice the last-level cache for inputs and outputs, at least
 * three batches, filled with varying numbers. */
static bool make_room(bench_case *c)
{
    size_t batch = BATCH * c->shape.dim, bytes = batch * sizeof(float);
    c->places = 2 * bench_cache() / bytes + 3;
    c->out_places = c->places;
    c->pool = bench_memory((c->places + c->out_places) * bytes);
    c->dense = bench_memory((size_t)c->shape.rows * c->shape.dim * sizeof(float));
    if (!c->pool || !c->dense) return false;
    for (size_t i = 0; i < c->places * batch; i++)
        c->pool[i] = (float)(int)(i * 2654435761u >> 8 & 0xffff) * 0x1p-16f;
    memset(c->dense, 0, (size_t)c->shape.rows * c->shape.dim * sizeof(float));
    return true;
}

static int run_threads(bench_case *c, const char *name, const bench_options *options)
{
    const bench_teams teams = bench_teams_for(options, c->what == PLAN ? BENCH_ALONE : BENCH_BOTH);
    int failed = 0;
    for (size_t t = 0; t < teams.count && !failed; t++) {
        c->threads = teams.threads[t];
        failed = run_case(c, name, options);
    }
    return failed;
}

static int run_wanted(bench_case *c, const char *name, const bench_options *options)
{
    bool ready = c->pool || make_room(c);
    ready = ready && make_tokens(c->ids, c->shape.rows, c->tokens);
    if (ready && !c->scatter)
        ready = embla_scatter_new(c->shape.rows, BATCH, &c->scatter) == EMBLA_OK;
    if (!ready || !plan_tokens(c)) {
        options->complain("bench scatter: no memory for %s: left out", name);
        return 0;
    }
    return run_threads(c, name, options);
}

/* Runs all wanted cases of one shape, and frees its memory. */
static int run_shape(bench_cases *cases, shape sh)
{
    bench_case c = {.shape = sh};
    int exit_code = 0;
    c.tokens = malloc((size_t)BATCHES * BATCH * sizeof *c.tokens);
    c.sorted = malloc(BATCH * sizeof *c.sorted);
    c.places_of = malloc((size_t)BATCHES * BATCH * sizeof *c.places_of);
    if (!c.tokens || !c.sorted || !c.places_of) {
        cases->options->complain("bench scatter: no memory");
        exit_code = 1;
    }
    for (c.ids = 0; c.ids < ID_KINDS; c.ids++)
        for (c.what = 0; c.what < WHATS && exit_code == 0; c.what++) {
            char name[96];
            if (is_wanted(cases, &c, name, sizeof name))
                exit_code = run_wanted(&c, name, cases->options);
        }
    embla_scatter_free(c.scatter);
    free(c.tokens);
    free(c.sorted);
    free(c.places_of);
    free(c.pool);
    free(c.dense);
    return exit_code;
}

int bench_scatter(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("scatter", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++) exit_code = run_shape(&cases, shapes[i]);
    return bench_end(&cases, exit_code);
}
