/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench optim: steps of optimizers on a table of 50,257 x 768.
 *
 * A case is KIND/ROWS: `dense` steps have a gradient for every row; `rows` steps have gradients for
 * the rows of 8,192 tokens with probabilities proportional to 1/(k+1): about 3,400 rows. AdamW
 * reads weights, mean, squares and gradients and writes all except the last: seven streams. The
 * others have fewer.
 *
 * The limit is the bare stream: a loop over the same rows of the same arrays that reads and writes
 * as much, but only adds 0 times the gradient. It runs plainly, with prefetching at four distances,
 * and with streaming stores. The fastest of these is determined first, then timed in turns with the
 * step. Several batches of tokens are used in turn, so that neither finds in a cache what the other
 * left there.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla_learn.h"

#if defined(__x86_64__)
#include <immintrin.h>
#define WIDE __attribute__((target("avx2")))
#endif

enum { ROWS = 50257, DIM = 768, TOKENS = 8192, BATCHES = 7, TURNS = 15, BLOCK = 16, ARRAYS = 3 };

typedef struct {
    const char *name;
    embla_optim_options options;
    size_t arrays; /* arrays that are read and written: weights and states */
    bool dense;
} step_case;

#define ADAMW                                                                                      \
    {                                                                                              \
        .kind = EMBLA_OPTIM_ADAMW, .decay = 0.01                                                   \
    }
#define MOMENTUM                                                                                   \
    {                                                                                              \
        .kind = EMBLA_OPTIM_SGD, .momentum = 0.9, .decay = 0.01                                    \
    }
static const step_case cases[] = {
    {"adamw/dense", ADAMW, 3, true},
    {"adamw/rows", ADAMW, 3, false},
    {"sgd/dense", {.kind = EMBLA_OPTIM_SGD}, 1, true},
    {"sgd/rows", {.kind = EMBLA_OPTIM_SGD}, 1, false},
    {"momentum/dense", MOMENTUM, 2, true},
    {"momentum/rows", MOMENTUM, 2, false},
    {"adagrad/dense", {.kind = EMBLA_OPTIM_ADAGRAD}, 2, true},
    {"adagrad/rows", {.kind = EMBLA_OPTIM_ADAGRAD}, 2, false},
    {"adagrad-rowwise/dense", {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE}, 1, true},
    {"adagrad-rowwise/rows", {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE}, 1, false},
};
enum { CASES = sizeof cases / sizeof cases[0] };

/* A way to run the bare stream. */
typedef struct {
    const char *name;
    size_t ahead; /* numbers between the current line and the prefetched one */
    bool past;    /* streaming stores, bypassing the caches */
} way;

static const way ways[] = {
    {"plain", 0, false},         {"fetch 1 KiB", 256, false},     {"fetch 1.6 KiB", 416, false},
    {"fetch 3 KiB", DIM, false}, {"fetch 6 KiB", 2 * DIM, false}, {"past caches", 0, true}};
enum { WAYS = sizeof ways / sizeof ways[0] };

typedef struct {
    const step_case *step;
    int threads;
    embla_table *table;
    embla_optim *optim;
    float *arrays[ARRAYS];  /* weights and states; unused ones are not accessed */
    float *gradient;        /* ROWS x DIM; a batch uses the first rows */
    int64_t *rows[BATCHES]; /* touched rows, ascending; capacity TOKENS */
    size_t touched[BATCHES];
    const way *way;
    volatile float zero;
    bool failed;
} bench_case;

/* ---- the limit ---- */

typedef struct {
    float *arrays[ARRAYS];
    const float *ahead[ARRAYS];
    const float *g, *g_ahead;
    size_t n;
} stream;

#if defined(__x86_64__)

/* Adds g * zero to each. The number of arrays and the way of writing are constants. */
WIDE static inline __attribute__((always_inline)) void stream_body(const stream *s, size_t arrays,
                                                                   bool past, float zero)
{
    const __m256 nothing = _mm256_set1_ps(zero);
    for (size_t i = 0; i < s->n; i += BLOCK) {
        __m256 g0 = _mm256_mul_ps(_mm256_loadu_ps(s->g + i), nothing);
        __m256 g1 = _mm256_mul_ps(_mm256_loadu_ps(s->g + i + 8), nothing);
        if (s->g_ahead) _mm_prefetch((const char *)(s->g_ahead + i), _MM_HINT_T0);
        for (size_t a = 0; a < arrays; a++) {
            float *x = s->arrays[a] + i;
            if (s->ahead[a]) _mm_prefetch((const char *)(s->ahead[a] + i), _MM_HINT_T0);
            __m256 x0 = _mm256_add_ps(_mm256_loadu_ps(x), g0);
            __m256 x1 = _mm256_add_ps(_mm256_loadu_ps(x + 8), g1);
            if (past) {
                _mm256_stream_ps(x, x0);
                _mm256_stream_ps(x + 8, x1);
            } else {
                _mm256_storeu_ps(x, x0);
                _mm256_storeu_ps(x + 8, x1);
            }
        }
    }
    if (past) _mm_sfence();
}

WIDE static void stream_wide(const stream *s, size_t arrays, bool past, float zero)
{
    if (arrays == 1) {
        past ? stream_body(s, 1, true, zero) : stream_body(s, 1, false, zero);
    } else if (arrays == 2) {
        past ? stream_body(s, 2, true, zero) : stream_body(s, 2, false, zero);
    } else {
        past ? stream_body(s, 3, true, zero) : stream_body(s, 3, false, zero);
    }
}

#endif

static void stream_plain(const stream *s, size_t arrays, float zero)
{
    for (size_t i = 0; i < s->n; i += BLOCK) {
        if (s->g_ahead) __builtin_prefetch(s->g_ahead + i);
        for (size_t a = 0; a < arrays; a++) {
            if (s->ahead[a]) __builtin_prefetch(s->ahead[a] + i);
            for (size_t j = i; j < i + BLOCK; j++) s->arrays[a][j] += s->g[j] * zero;
        }
    }
}

static void stream_run(const bench_case *c, const stream *s)
{
#if defined(__x86_64__)
    if (bench_has_avx2()) {
        stream_wide(s, c->step->arrays, c->way->past, c->zero);
        return;
    }
#endif
    stream_plain(s, c->step->arrays, c->zero);
}

/* Numbers first .. first+n-1 of all arrays; numbers `ahead` of them exist too. */
static void stream_dense(const bench_case *c, size_t first, size_t n)
{
    size_t ahead = c->way->ahead;
    stream s = {.g = c->gradient + first, .n = n};
    bool fetch = ahead > 0 && first + n + ahead <= (size_t)ROWS * DIM;
    if (fetch) s.g_ahead = s.g + ahead;
    for (size_t a = 0; a < ARRAYS; a++) {
        s.arrays[a] = c->arrays[a] + first;
        if (fetch) s.ahead[a] = s.arrays[a] + ahead;
    }
    stream_run(c, &s);
}

/* Row i of a batch. The row ahead / DIM rows later is prefetched, if there is one. */
static void stream_row(const bench_case *c, size_t batch, size_t i)
{
    const int64_t *rows = c->rows[batch];
    size_t later = i + c->way->ahead / DIM;
    stream s = {.g = c->gradient + i * DIM, .n = DIM};
    bool fetch = later > i && later < c->touched[batch];
    if (fetch) s.g_ahead = c->gradient + later * DIM;
    for (size_t a = 0; a < ARRAYS; a++) {
        s.arrays[a] = c->arrays[a] + (size_t)rows[i] * DIM;
        if (fetch) s.ahead[a] = c->arrays[a] + (size_t)rows[later] * DIM;
    }
    stream_run(c, &s);
}

typedef struct {
    const bench_case *c;
    size_t batch, count;
} limit_pass;

/* first and end count tiles of rows. */
enum { TILE = 16 };
static embla_status stream_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const limit_pass *p = job;
    (void)slot;
    for (size_t t = first; t < end; t++) {
        size_t row = t * TILE, n = p->count - row < TILE ? p->count - row : TILE;
        if (p->c->step->dense)
            stream_dense(p->c, row * DIM, n * DIM);
        else
            for (size_t i = row; i < row + n; i++) stream_row(p->c, p->batch, i);
    }
    return EMBLA_OK;
}

static void run_limit(void *context, size_t step)
{
    const bench_case *c = context;
    size_t batch = step % BATCHES;
    const limit_pass p = {
        .c = c, .batch = batch, .count = c->step->dense ? ROWS : c->touched[batch]};
    bench_shared(c->threads, (p.count + TILE - 1) / TILE, 0, stream_tiles, &p);
}

/* ---- the step ---- */

static void run_step(void *context, size_t step)
{
    bench_case *c = context;
    size_t batch = step % BATCHES;
    embla_status status = c->step->dense ? embla_optim_step(c->optim, 1e-3, c->gradient)
                                         : embla_optim_step_rows(c->optim, 1e-3, c->rows[batch],
                                                                 c->touched[batch], c->gradient);
    if (status != EMBLA_OK) c->failed = true;
}

/* Verifies one number of a first step by hand: figures for wrong steps are worthless. */
static bool is_right(bench_case *c)
{
    const embla_optim_options *o = &c->step->options;
    int64_t row = c->step->dense ? ROWS - 1 : c->rows[0][c->touched[0] - 1];
    size_t at = c->step->dense ? (size_t)row * DIM : (c->touched[0] - 1) * DIM;
    const float *w = embla_table_row(c->table, row);
    double before = (double)w[3], g = (double)c->gradient[at + 3], mean = 0.0, move = g;
    for (size_t i = 0; i < DIM; i++)
        mean += (double)c->gradient[at + i] * (double)c->gradient[at + i] / DIM;
    if (o->kind == EMBLA_OPTIM_ADAMW) move = g / (fabs(g) + 1e-8);
    if (o->kind == EMBLA_OPTIM_ADAGRAD) move = g / (fabs(g) + 1e-10);
    if (o->kind == EMBLA_OPTIM_ADAGRAD_ROWWISE) move = g / (sqrt(mean) + 1e-10);
    run_step(c, 0);
    double wanted = before * (1.0 - 1e-3 * o->decay) - 1e-3 * move;
    return !c->failed && fabs((double)w[3] - wanted) <= 1e-6 * (fabs(before) + 1e-3 * fabs(move));
}

/* Chooses the fastest way of the bare stream. */
static void choose_way(bench_case *c)
{
    double least = 0.0;
    const way *best = NULL;
    for (size_t i = 0; i < WAYS; i++) {
        c->way = &ways[i];
        bench_times times = bench_measure(run_limit, run_limit, c, 3, 1);
        double seconds = times.seconds < times.limit_seconds ? times.seconds : times.limit_seconds;
        if (!best || seconds < least) {
            least = seconds;
            best = c->way;
        }
    }
    c->way = best;
}

static int run_case(bench_case *c, const bench_options *options)
{
    char name[64], limit_is[64];
    double bytes = 0.0;
    if (!is_right(c)) {
        options->complain("bench optim: %s: a wrong step, or: %s", c->step->name, embla_error());
        return 1;
    }
    choose_way(c);
    bench_times times = bench_measure(run_step, run_limit, c, TURNS, BATCHES);
    for (size_t b = 0; b < BATCHES; b++)
        bytes += (c->step->dense ? ROWS : (double)c->touched[b]) / BATCHES * DIM * sizeof(float);
    bytes *= (double)(2 * c->step->arrays + 1);
    (void)snprintf(name, sizeof name, "%dx%d/%s", ROWS, DIM, c->step->name);
    (void)snprintf(limit_is, sizeof limit_is, "%zu streams, %s", 2 * c->step->arrays + 1,
                   c->way->name);
    bench_result result = {.bench = "optim",
                           .name = name,
                           .threads = c->threads,
                           .unit = "GB/s",
                           .limit_is = limit_is,
                           .value = bytes * 1e-9 / times.seconds,
                           .limit = bytes * 1e-9 / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

/* ---- setup ---- */

/* Finds the rows of TOKENS tokens in each batch, ascending and unique. */
static void mark_rows(bench_case *c, const int32_t *tokens, bool *seen)
{
    for (size_t b = 0; b < BATCHES; b++) {
        memset(seen, 0, ROWS);
        for (size_t i = 0; i < TOKENS; i++) seen[tokens[b * TOKENS + i]] = true;
        for (int64_t row = 0; row < ROWS; row++)
            if (seen[row]) c->rows[b][c->touched[b]++] = row;
    }
}

static bool fill(bench_case *c)
{
    int32_t *tokens = malloc((size_t)BATCHES * TOKENS * sizeof *tokens);
    bool *seen = malloc(ROWS * sizeof *seen), done = tokens && seen;
    c->gradient = bench_memory((size_t)ROWS * DIM * sizeof(float));
    done = done && c->gradient;
    for (size_t b = 0; b < BATCHES; b++) {
        c->rows[b] = malloc(TOKENS * sizeof *c->rows[b]);
        done = done && c->rows[b];
    }
    done = done && bench_tokens(true, ROWS, (size_t)BATCHES * TOKENS, tokens);
    if (done) mark_rows(c, tokens, seen);
    for (size_t i = 0; done && i < (size_t)ROWS * DIM; i++)
        c->gradient[i] = ((float)(int)(i * 2654435761u >> 8 & 0xffff) * 0x1p-15f - 1.0f) * 1e-2f;
    free(seen);
    free(tokens);
    return done;
}

/* Creates the table and the optimizer, and accesses every page. */
static bool make_optim(bench_case *c)
{
    const embla_init_options init = {.seed = 1, .spread = 0.02f};
    embla_optim_options options = c->step->options;
    options.threads = c->threads;
    if (embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &c->table) != EMBLA_OK ||
        embla_table_init(c->table, &init) != EMBLA_OK ||
        embla_optim_new(c->table, &options, &c->optim) != EMBLA_OK)
        return false;
    for (size_t a = 0; a < ARRAYS; a++) c->arrays[a] = embla_table_data(c->table);
    for (size_t a = 1; a < c->step->arrays; a++) {
        embla_optim_state state;
        if (embla_optim_state_at(c->optim, a - 1, &state) != EMBLA_OK) return false;
        c->arrays[a] = state.values;
        memset(state.values, 0, (size_t)ROWS * DIM * sizeof(float));
    }
    return true;
}

/* Without enough memory, prints a message and no figure. */
static int run_one(const step_case *step, int threads, const bench_options *options)
{
    bench_case c = {.step = step, .threads = threads};
    int exit_code = 0;
    if (fill(&c) && make_optim(&c))
        exit_code = run_case(&c, options);
    else
        options->complain("bench optim: no memory for %s: left out", step->name);
    embla_optim_free(c.optim);
    embla_table_free(c.table);
    for (size_t b = 0; b < BATCHES; b++) free(c.rows[b]);
    free(c.gradient);
    return exit_code;
}

int bench_optim(const bench_options *options)
{
    bench_cases wanted;
    int exit_code = bench_begin("optim", options, &wanted);
    if (exit_code != 0) return exit_code;
    const bench_teams teams = bench_teams_for(options, BENCH_TWO);
    for (size_t i = 0; i < CASES && exit_code == 0; i++) {
        char name[64];
        (void)snprintf(name, sizeof name, "%dx%d/%s", ROWS, DIM, cases[i].name);
        if (!bench_wants(&wanted, name, true)) continue;
        for (size_t t = 0; t < teams.count && exit_code == 0; t++)
            exit_code = run_one(&cases[i], teams.threads[t], options);
    }
    return bench_end(&wanted, exit_code);
}
