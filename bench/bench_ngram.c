/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench ngram: row numbers of a prompt, and of single tokens after it.
 *
 * A case is MODEL/TOKENS. The limit is the same loop with hardware division, as every engine writes
 * it. Sizes come from memory, so that no compiler can replace the division by a multiplication. We
 * should be at least twice as fast. The name of the limit contains the nanoseconds for one row
 * number, ours first.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla_store.h"

enum { TURNS = 11, TOKENS = 4096, REACH = 7 };

typedef struct {
    const char *name, *model;
    size_t count; /* tokens per call */
} shape;

static const shape shapes[] = {
    {"engram-v4.1/4096", "deepseek-v4.1-flash", TOKENS},
    {"qwen/4096", "qwen3.8-flash-next", TOKENS},
    {"longcat/4096", "longcat-flash-lite", TOKENS},
    {"engram-v4.1/1", "deepseek-v4.1-flash", 1},
    {"qwen/1", "qwen3.8-flash-next", 1},
    {"longcat/1", "longcat-flash-lite", 1},
};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };

typedef struct {
    const shape *shape;
    int threads;
    const embla_ngram *ngram;
    embla_ngram_info info;
    uint64_t *powers; /* longcat: columns x orders */
    int32_t *tokens;  /* REACH tokens before the first, then TOKENS */
    int64_t *rows, *others;
    uint64_t sum; /* of the results, so that the compiler cannot omit the work */
    bool failed;
} bench_case;

/* Each call with one token uses another token. */
static const int32_t *tokens_at(const bench_case *c, size_t step)
{
    return c->tokens + REACH + (c->shape->count == 1 ? step % TOKENS : 0);
}

static void run_rows(void *context, size_t step)
{
    bench_case *c = context;
    const int32_t *tokens = tokens_at(c, step);
    const embla_ngram_options options = {.history = tokens - c->info.history,
                                         .threads = c->threads};
    if (embla_ngram_rows(c->ngram, tokens, 1, c->shape->count, &options, c->rows) != EMBLA_OK)
        c->failed = true;
}

/* ---- the limit ---- */

/* None of these tokens is EOS, so no n-gram ends early. */
static void divide_products(const bench_case *c, const int32_t *tokens, int64_t *restrict rows)
{
    const embla_ngram_info *g = &c->info;
    size_t orders = (size_t)g->orders, heads = (size_t)g->rows_per_ngram;
    for (size_t t = 0; t < c->shape->count; t++) {
        uint64_t mix = (uint64_t)tokens[t] * (uint64_t)g->multipliers[0];
        for (size_t s = 1; s < orders; s++) {
            mix ^= (uint64_t) * (tokens + t - s) * (uint64_t)g->multipliers[s];
            for (size_t h = (s - 1) * heads; h < s * heads; h++)
                *rows++ = (int64_t)(mix % (uint64_t)g->sizes[h]) + g->offsets[h];
        }
    }
}

static void divide_powers(const bench_case *c, const int32_t *tokens, int64_t *restrict rows)
{
    const embla_ngram_info *g = &c->info;
    size_t orders = (size_t)g->orders, heads = (size_t)g->rows_per_ngram;
    for (size_t t = 0; t < c->shape->count; t++)
        for (size_t i = 0; i < g->rows_per_token; i++) {
            uint64_t sum = 0;
            for (size_t s = 0; s < i / heads + 2; s++)
                sum += (uint64_t) * (tokens + t - s) * c->powers[i * orders + s];
            *rows++ = (int64_t)(sum % (uint64_t)g->sizes[i]) + g->offsets[i];
        }
}

static void run_division(void *context, size_t step)
{
    bench_case *c = context;
    const int32_t *tokens = tokens_at(c, step);
    if (c->info.multipliers)
        divide_products(c, tokens, c->others);
    else
        divide_powers(c, tokens, c->others);
    c->sum += (uint64_t)c->others[c->info.rows_per_token - 1];
}

/* ---- a case ---- */

static bool is_right(bench_case *c)
{
    size_t bytes = c->shape->count * c->info.rows_per_token * sizeof *c->rows;
    run_rows(c, 5);
    run_division(c, 5);
    return !c->failed && memcmp(c->rows, c->others, bytes) == 0;
}

static int run_case(bench_case *c, const bench_options *options)
{
    char limit_is[64];
    double numbers = (double)c->shape->count * (double)c->info.rows_per_token;
    size_t calls = c->shape->count == 1 ? 20000 : 20;
    if (!is_right(c)) {
        options->complain("bench ngram: %s: wrong rows, or: %s", c->shape->name, embla_error());
        return 1;
    }
    bench_times times = bench_measure(run_rows, run_division, c, TURNS, calls);
    (void)snprintf(limit_is, sizeof limit_is, "division, %.2f : %.2f ns",
                   times.seconds / numbers * 1e9, times.limit_seconds / numbers * 1e9);
    bench_result result = {.bench = "ngram",
                           .name = c->shape->name,
                           .threads = c->threads,
                           .unit = "M rows/s",
                           .limit_is = limit_is,
                           .value = numbers / times.seconds * 1e-6,
                           .limit = numbers / times.limit_seconds * 1e-6};
    bench_print(options, &result);
    return 0;
}

static bool fill(bench_case *c)
{
    size_t orders = (size_t)c->info.orders, columns = c->info.rows_per_token;
    if (!bench_tokens(false, c->info.tokens, REACH + TOKENS, c->tokens)) return false;
    for (size_t i = 0; i < REACH + TOKENS; i++)
        if (c->tokens[i] == c->info.eos) c->tokens[i]++;
    for (size_t i = 0; i < columns && !c->info.multipliers; i++) {
        c->powers[i * orders] = 1;
        for (size_t s = 1; s < orders; s++)
            c->powers[i * orders + s] = c->powers[i * orders + s - 1] * (uint64_t)c->info.vocab %
                                        (uint64_t)c->info.sizes[i];
    }
    return true;
}

/* The limit uses one thread, and so do we, unless more are requested. */
static int run_shape(const shape *s, const bench_options *options)
{
    bench_case c = {.shape = s};
    const bench_teams teams = bench_teams_for(options, BENCH_ONE);
    embla_ngram *ngram = NULL;
    int exit_code = 0;
    if (embla_ngram_new_model(s->model, -1, NULL, &ngram) != EMBLA_OK ||
        embla_ngram_describe(ngram, &c.info) != EMBLA_OK) {
        options->complain("bench ngram: %s", embla_error());
        return 1;
    }
    c.ngram = ngram;
    c.powers = malloc(c.info.rows_per_token * (size_t)c.info.orders * sizeof *c.powers);
    c.tokens = malloc((REACH + TOKENS) * sizeof *c.tokens);
    c.rows = bench_memory(TOKENS * c.info.rows_per_token * sizeof *c.rows);
    c.others = bench_memory(TOKENS * c.info.rows_per_token * sizeof *c.others);
    if (!c.powers || !c.tokens || !c.rows || !c.others || !fill(&c)) {
        options->complain("bench ngram: no memory for %s", s->name);
        exit_code = 1;
    }
    for (size_t t = 0; t < teams.count && exit_code == 0; t++) {
        c.threads = teams.threads[t];
        exit_code = run_case(&c, options);
    }
    free(c.powers);
    free(c.tokens);
    free(c.rows);
    free(c.others);
    embla_ngram_free(ngram);
    return exit_code;
}

int bench_ngram(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("ngram", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++)
        if (bench_wants(&cases, shapes[i].name, true)) exit_code = run_shape(&shapes[i], options);
    return bench_end(&cases, exit_code);
}
