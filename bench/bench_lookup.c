/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench lookup: a batch of 8,192 tokens, (B, T) -> (B, T, dim).
 *
 * A case is SHAPE/DTYPE/IDS/OUTPUT.
 *   IDS     uniform, or zipf: token k has probability proportional to 1/(k+1), as in text
 *   OUTPUT  rotating: through memory too large for the caches, as in training or prefill;
 *           recycled: to the same place each time;
 *           single: one row per call, to the same place;
 *           one-hot: a few rows as the product of one-hot vectors and the table
 * The limit for f32 is memcpy: the same number of bytes, from the same table in order, to the same
 * kind of output, with the same number of threads. The limit for any other dtype, decoded to f32,
 * is the lookup in the f32 table. The limit for one-hot is the lookup of the same rows: its ratio
 * shows what the product costs, which gives the same bits. A line below says how many times faster
 * the lookup is.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/products.h"
#include "embla.h"

enum { BATCH = 8192, BATCHES = 16, TURNS = 21, ONE_HOT = 16 };

typedef struct {
    int64_t rows;
    size_t dim;
} shape;

static const shape shapes[] = {{27, 16}, {8449, 768}, {50257, 768}, {131072, 4096}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static const char *const id_kinds[] = {"uniform", "zipf"};
static const char *const outputs[] = {"rotating", "recycled", "single", "one-hot"};
enum { ROTATING, RECYCLED, SINGLE, PRODUCT, OUTPUTS };

/* Everything that one case needs. */
typedef struct {
    shape shape;
    embla_dtype dtype;
    int ids, output, threads;
    const embla_table *table; /* of the case's dtype */
    const embla_table *f32;
    const int32_t *tokens; /* BATCHES x BATCH */
    char *pool;            /* memory for outputs */
    size_t pool_bytes, out_bytes;
    float *one_hot; /* ONE_HOT x rows: zeros between two calls */
    bool failed;
} bench_case;

static size_t case_rows(const bench_case *c)
{
    return c->output == SINGLE ? 1 : c->output == PRODUCT ? ONE_HOT : BATCH;
}

static const int32_t *case_tokens(const bench_case *c, size_t step)
{
    if (c->output == SINGLE) return c->tokens + step % (BATCHES * BATCH);
    return c->tokens + step % BATCHES * BATCH;
}

static char *case_out(const bench_case *c, size_t step)
{
    size_t places = c->output == ROTATING ? c->pool_bytes / c->out_bytes : 1;
    return c->pool + step % places * c->out_bytes;
}

static void look_up(bench_case *c, const embla_table *table, size_t step)
{
    const embla_lookup_options options = {.threads = c->threads};
    if (embla_lookup(table, case_tokens(c, step), case_rows(c), &options, case_out(c, step)) !=
        EMBLA_OK)
        c->failed = true;
}

static void run_ours(void *context, size_t step)
{
    bench_case *c = context;
    look_up(c, c->table, step);
}

static void run_f32(void *context, size_t step)
{
    bench_case *c = context;
    look_up(c, c->f32, step);
}

/* The same rows as a product: a vector of zeros with a 1 at the token, times the table. */
static void run_product(void *context, size_t step)
{
    bench_case *c = context;
    const size_t rows = (size_t)c->shape.rows, dim = c->shape.dim;
    const int32_t *tokens = case_tokens(c, step);
    for (size_t i = 0; i < ONE_HOT; i++) c->one_hot[i * rows + (size_t)tokens[i]] = 1;
    if (!bench_product(c->one_hot, embla_table_row(c->f32, 0), ONE_HOT, rows, dim,
                       (float *)case_out(c, step)))
        c->failed = true;
    for (size_t i = 0; i < ONE_HOT; i++) c->one_hot[i * rows + (size_t)tokens[i]] = 0;
}

static void run_memcpy(void *context, size_t step)
{
    bench_case *c = context;
    size_t all = (size_t)c->shape.rows * embla_table_row_bytes(c->table);
    size_t bytes = case_rows(c) * embla_table_row_bytes(c->table);
    char *out = case_out(c, step);
    size_t offset = step * bytes % all;
    if (c->output == SINGLE) { /* a bare memcpy of that row */
        memcpy(out, embla_table_row(c->table, *case_tokens(c, step)), bytes);
        return;
    }
    bench_copy_round(out, embla_table_row(c->table, 0), all, offset, bytes, c->threads);
}

/* Verifies the last result in a simple way: figures for wrong rows are worthless. */
static bool is_right(bench_case *c, bench_fn *run, size_t step)
{
    float want[4096];
    memset(case_out(c, step), 0xff, c->out_bytes);
    run(c, step);
    const char *got = case_out(c, step);
    size_t dim = c->shape.dim;
    for (size_t i = 0; i < case_rows(c) && !c->failed; i++) {
        const void *row = embla_table_row(c->table, case_tokens(c, step)[i]);
        if (embla_dtype_decode(c->dtype, row, dim, 0.0f, want) != EMBLA_OK ||
            memcmp(got + i * dim * sizeof(float), want, dim * sizeof(float)) != 0)
            return false;
    }
    return !c->failed;
}

static int run_case(bench_case *c, const char *name, const bench_options *options)
{
    bool product = c->output == PRODUCT, plain = c->dtype == EMBLA_F32 && !product;
    double rows = (double)case_rows(c), row_bytes = (double)c->shape.dim * sizeof(float);
    size_t calls = c->output == SINGLE ? 4096 : c->out_bytes < (4u << 20) ? 32 : 1;
    bench_fn *ours = product ? run_product : run_ours, *limit = plain ? run_memcpy : run_f32;
    bench_times times = bench_measure_team(ours, limit, c, TURNS, calls, c->threads);
    if (!is_right(c, ours, 3)) {
        options->complain("bench lookup: %s: wrong rows: %s", name, embla_error());
        return 1;
    }
    /* f32 counts bytes read and written, the others count rows */
    double work = plain ? 2.0 * rows * row_bytes * 1e-9 : rows * 1e-6;
    bench_result result = {.bench = "lookup",
                           .name = name,
                           .threads = c->threads,
                           .unit = plain ? "GB/s" : "Mrows/s",
                           .limit_is = plain     ? "memcpy"
                                       : product ? "lookup"
                                                 : "f32 lookup",
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds,
                           .instead = product ? "product with one-hot vectors" : NULL};
    bench_print(options, &result);
    return 0;
}

/* ---- which cases ---- */

/* The default set: f32 everywhere; other dtypes, single rows and products only where we publish
 * figures. */
static bool in_default_set(const bench_case *c)
{
    bool middle = c->shape.rows == 50257;
    if (c->output == PRODUCT) return middle && c->ids == 0;
    if (c->output == SINGLE) return middle && c->dtype == EMBLA_F32;
    if (c->dtype == EMBLA_F32) return true;
    return middle && c->ids == 0 && c->output == ROTATING;
}

static void name_case(const bench_case *c, char *name, size_t size)
{
    snprintf(name, size, "%lldx%zu/%s/%s/%s", (long long)c->shape.rows, c->shape.dim,
             embla_dtype_name(c->dtype), id_kinds[c->ids], outputs[c->output]);
}

typedef struct {
    const bench_options *options;
    bench_cases cases;
    int32_t *tokens;
} session;

/* Random bytes, for a dtype that can be read but not written: any bytes are blocks of it. */
static void fill_bytes(embla_table *table)
{
    uint64_t *data = embla_table_data(table);
    size_t bytes = (size_t)embla_table_rows(table) * embla_table_row_bytes(table);
    for (size_t i = 0; i < bytes / sizeof *data; i++) data[i] = embla_splitmix64(i * EMBLA_GOLDEN);
}

static embla_table *make_table(embla_dtype dtype, shape sh)
{
    embla_table *table = NULL;
    const embla_init_options init = {.seed = 1, .kind = EMBLA_INIT_XAVIER};
    embla_status status = embla_table_new(dtype, sh.rows, sh.dim, NULL, &table);
    if (status == EMBLA_OK) status = embla_table_init(table, &init);
    if (status == EMBLA_ERR_UNSUPPORTED && table) {
        fill_bytes(table);
        status = EMBLA_OK;
    }
    if (status == EMBLA_OK) return table;
    embla_table_free(table);
    return NULL;
}

/* Runs the case for each number of threads. */
static int run_threads(session *s, bench_case *c, const char *name)
{
    const bench_teams teams =
        bench_teams_for(s->options, c->output == SINGLE ? BENCH_ALONE : BENCH_BOTH);
    int failed = 0;
    for (size_t t = 0; t < teams.count && !failed; t++) {
        c->threads = teams.threads[t];
        failed = run_case(c, name, s->options);
    }
    return failed;
}

/* Runs all wanted cases of one shape, and frees its tables. */
static int run_shape(session *s, shape sh)
{
    bench_case c = {.shape = sh};
    embla_table *f32 = NULL, *table = NULL;
    int exit_code = 0;
    c.out_bytes = BATCH * sh.dim * sizeof(float);
    c.pool_bytes = 2 * bench_cache() > (256u << 20) ? 2 * bench_cache() : 256u << 20;
    if (c.pool_bytes < 4 * c.out_bytes) c.pool_bytes = 4 * c.out_bytes;
    c.tokens = s->tokens;
    for (int d = 1; embla_dtype_name((embla_dtype)d) && exit_code == 0; d++) {
        c.dtype = (embla_dtype)d;
        for (c.ids = 0; c.ids < 2; c.ids++) {
            bool made = false;
            for (c.output = 0; c.output < OUTPUTS && exit_code == 0; c.output++) {
                char name[96];
                size_t row_bytes;
                name_case(&c, name, sizeof name);
                if (embla_dtype_row_bytes(c.dtype, sh.dim, &row_bytes) != EMBLA_OK ||
                    (c.output == PRODUCT && (d != EMBLA_F32 || !bench_has_products())))
                    continue;
                if (!bench_wants(&s->cases, name, in_default_set(&c))) continue;
                if (!f32) f32 = make_table(EMBLA_F32, sh);
                if (!c.pool) c.pool = bench_memory(c.pool_bytes);
                if (!c.one_hot && c.output == PRODUCT)
                    c.one_hot = calloc(ONE_HOT * (size_t)sh.rows, sizeof *c.one_hot);
                if (!table && d != EMBLA_F32) table = make_table(c.dtype, sh);
                c.f32 = f32;
                c.table = d == EMBLA_F32 ? f32 : table;
                made = made || bench_tokens(c.ids != 0, sh.rows, BATCHES * BATCH, s->tokens);
                if (!c.pool || !c.table || !f32 || !made || (c.output == PRODUCT && !c.one_hot)) {
                    s->options->complain("bench lookup: no memory for %s: %s", name, embla_error());
                    exit_code = 1;
                    break;
                }
                exit_code = run_threads(s, &c, name);
            }
        }
        embla_table_free(table);
        table = NULL;
    }
    embla_table_free(f32);
    free(c.pool);
    free(c.one_hot);
    return exit_code;
}

int bench_lookup(const bench_options *options)
{
    session s = {.options = options};
    int exit_code = bench_begin("lookup", options, &s.cases);
    if (exit_code != 0) return exit_code;
    s.tokens = malloc(BATCHES * BATCH * sizeof *s.tokens);
    if (!s.tokens) {
        options->complain("bench lookup: no memory");
        exit_code = 1;
    }
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++) exit_code = run_shape(&s, shapes[i]);
    free(s.tokens);
    return bench_end(&s.cases, exit_code);
}
