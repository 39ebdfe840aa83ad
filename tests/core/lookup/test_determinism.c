/* SPDX-License-Identifier: Apache-2.0 */
/* Same input, same bits: for 1, 2, 3 and 8 threads and for every kernel set, in all that
 * is done to a table. Each case runs once with scalar kernels on one thread, then in every
 * other way, and the results are compared byte by byte. Sizes are such that eight
 * threads find work.
 */
#include "check.h"

#include "base/dtype.h"

#include "table/geometry.h"
#include <pthread.h>

static const int thread_counts[] = {1, 2, 3, 8};

/* Something that writes size bytes to out. */
typedef struct trial trial;
struct trial {
    void (*run)(const trial *t, int threads, void *out);
    const char *what;
    size_t size;
    embla_table *table, *positions;
    const int32_t *tokens;
    size_t count;
    int kind; /* out_dtype, init kind, pool kind or rope order, as run needs it */
};

static void every_way_gives_the_same_bits(const trial *t)
{
    size_t lines = (t->size + 63) / 64 * 64; /* beginning on a line, so that streaming may happen */
    unsigned char *wanted = aligned_alloc(64, lines), *got = aligned_alloc(64, lines);
    assert_true(wanted && got);
    embla_kernels_use(&embla_kernels_scalar);
    t->run(t, 1, wanted);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *set = embla_kernels_find(check_sets[s]);
        if (!set) continue;
        embla_kernels_use(set);
        for (size_t k = 0; k < COUNT_OF(thread_counts); k++) {
            memset(got, 0xEE, t->size);
            t->run(t, thread_counts[k], got);
            if (memcmp(got, wanted, t->size) != 0)
                fail_msg("%s, kind %d: %s with %d threads differs", t->what, t->kind, check_sets[s],
                         thread_counts[k]);
        }
    }
    embla_kernels_use(NULL);
    free(wanted);
    free(got);
}

static int32_t *random_tokens(size_t count, int64_t rows)
{
    int32_t *tokens = malloc(count * sizeof *tokens);
    uint64_t seed = count;
    assert_non_null(tokens);
    for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)check_below(&seed, (uint64_t)rows);
    return tokens;
}

/* ---- lookup ---- */

static void run_lookup(const trial *t, int threads, void *out)
{
    embla_lookup_options options = {.threads = threads, .out_dtype = (embla_dtype)t->kind};
    if (t->kind == 0) options.raw = true;
    assert_ok(embla_lookup(t->table, t->tokens, t->count, &options, out));
}

/* Tables of every dtype; results in f32, bf16, f16 and raw; `count` rows of at least `least`
 * numbers. */
static void lookups(int64_t rows, size_t least, size_t count)
{
    const int outputs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16, 0};
    int32_t *tokens = random_tokens(count, rows);
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        size_t dim = check_dim((embla_dtype)d, least);
        embla_table *table = check_table((embla_dtype)d, rows, dim, 4);
        for (size_t o = 0; o < COUNT_OF(outputs); o++) {
            size_t bytes = embla_table_row_bytes(table);
            if (outputs[o] != 0)
                assert_ok(embla_dtype_row_bytes((embla_dtype)outputs[o], dim, &bytes));
            every_way_gives_the_same_bits(&(trial){.run = run_lookup,
                                                   .what = embla_dtype_name((embla_dtype)d),
                                                   .size = count * bytes,
                                                   .table = table,
                                                   .tokens = tokens,
                                                   .count = count,
                                                   .kind = outputs[o]});
        }
        embla_table_free(table);
    }
    free(tokens);
}

static void lookup_gives_the_same_bits(void **state)
{
    (void)state;
    lookups(600, 224, 1200);
}

static void a_small_lookup_gives_the_same_bits(void **state)
{
    (void)state;
    lookups(27, 32, 77);
}

/* Past 4 MB, where results are streamed or written ahead, in whole lines. */
static void a_large_lookup_gives_the_same_bits(void **state)
{
    const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_Q4_0, EMBLA_Q5_K, EMBLA_Q3_K};
    int32_t *tokens = random_tokens(8300, 3000);
    (void)state;
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        embla_table *table = check_table(dtypes[d], 3000, 256, 4);
        const int outputs[] = {EMBLA_F32, EMBLA_F16};
        for (size_t o = 0; o < COUNT_OF(outputs); o++) {
            size_t count = outputs[o] == EMBLA_F32 ? 4200 : 8300;
            every_way_gives_the_same_bits(
                &(trial){.run = run_lookup,
                         .what = embla_dtype_name(dtypes[d]),
                         .size = count * 256 * (outputs[o] == EMBLA_F32 ? 4u : 2u),
                         .table = table,
                         .tokens = tokens,
                         .count = count,
                         .kind = outputs[o]});
        }
        embla_table_free(table);
    }
    free(tokens);
}

/* ---- embed ---- */

static void run_embed(const trial *t, int threads, void *out)
{
    embla_embed_options options = {.position_table = t->positions,
                                   .threads = threads,
                                   .out_dtype = (embla_dtype)t->kind,
                                   .sqrt_dim = true,
                                   .scale = 0.9f};
    assert_ok(embla_embed(t->table, t->tokens, 24, t->count / 24, &options, out));
}

static void embed_gives_the_same_bits(void **state)
{
    const int outputs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    const embla_dtype tables[] = {EMBLA_F32, EMBLA_I8, EMBLA_Q4_0};
    int32_t *tokens = random_tokens(1200, 500);
    embla_table *positions = check_table(EMBLA_F32, 100, 224, 9);
    (void)state;
    for (size_t d = 0; d < COUNT_OF(tables); d++) {
        embla_table *table = check_table(tables[d], 500, 224, 4);
        for (size_t o = 0; o < COUNT_OF(outputs); o++)
            for (int with = 0; with < 2; with++)
                every_way_gives_the_same_bits(
                    &(trial){.run = run_embed,
                             .what = embla_dtype_name(tables[d]),
                             .size = 1200 * 224 * (outputs[o] == EMBLA_F32 ? 4u : 2u),
                             .table = table,
                             .positions = with ? positions : NULL,
                             .tokens = tokens,
                             .count = 1200,
                             .kind = outputs[o]});
        embla_table_free(table);
    }
    embla_table_free(positions);
    free(tokens);
}

/* ---- init ---- */

static void run_init(const trial *t, int threads, void *out)
{
    embla_init_options options = {
        .seed = 42, .threads = threads, .kind = (embla_init_kind)t->kind, .spread = 0.3f};
    assert_ok(embla_table_init(t->table, &options));
    memcpy(out, embla_table_row(t->table, 0), t->size);
}

static void init_gives_the_same_bits(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        int64_t rows = d == EMBLA_F32 ? 750 : 200;   /* the numbers are the same, encoded */
        if (!check_writes((embla_dtype)d)) continue; /* check_table sees that they are refused */
        for (int kind = EMBLA_INIT_NORMAL; kind <= EMBLA_INIT_XAVIER; kind++) {
            embla_table *table =
                check_table((embla_dtype)d, rows, check_dim((embla_dtype)d, 352), 4);
            every_way_gives_the_same_bits(
                &(trial){.run = run_init,
                         .what = embla_dtype_name((embla_dtype)d),
                         .size = (size_t)rows * embla_table_row_bytes(table),
                         .table = table,
                         .kind = kind});
            embla_table_free(table);
        }
    }
}

/* ---- pool, rope, geometry ---- */

enum { BATCH = 33, LENGTH = 31, DIM = 301 };
static float vectors[BATCH * LENGTH * DIM];

static void run_pool(const trial *t, int threads, void *out)
{
    static float weights[BATCH * LENGTH];
    embla_pool_options options = {
        .threads = threads, .kind = (embla_pool_kind)(t->kind % 4), .normalize = t->kind >= 4};
    check_fill(78, BATCH * LENGTH, weights);
    if (options.kind <= EMBLA_POOL_SUM && t->kind >= 4) options.weights = weights;
    assert_ok(embla_pool(vectors, BATCH, LENGTH, DIM, &options, out));
}

static void pool_gives_the_same_bits(void **state)
{
    (void)state;
    check_fill(77, BATCH * LENGTH * DIM, vectors);
    for (int kind = 0; kind < 8; kind++)
        every_way_gives_the_same_bits(&(trial){
            .run = run_pool, .what = "pool", .size = BATCH * DIM * sizeof(float), .kind = kind});
}

/* x is 50 groups of 3 heads of 130 numbers; rope takes no threads. */
static void run_rope(const trial *t, int threads, void *out)
{
    enum { GROUPS = 50, HEADS = 3, HEAD_DIM = 130 };
    embla_rope *rope = NULL;
    embla_rope_options options = {.order = (embla_rope_order)t->kind};
    int64_t positions[GROUPS];
    (void)threads;
    for (int64_t i = 0; i < GROUPS; i++) positions[i] = i * i * 7 - 20;
    check_fill(5, t->size / sizeof(float), out);
    assert_ok(embla_rope_new(HEAD_DIM, &options, &rope));
    assert_ok(embla_rope_apply(rope, positions, GROUPS, HEADS, NULL, out));
    embla_rope_free(rope);
}

static void rope_gives_the_same_bits(void **state)
{
    (void)state;
    for (int order = EMBLA_ROPE_ORDER_INTERLEAVED; order <= EMBLA_ROPE_ORDER_HALF_SPLIT; order++)
        every_way_gives_the_same_bits(&(trial){
            .run = run_rope, .what = "rope", .size = 50 * 3 * 130 * sizeof(float), .kind = order});
}

static void run_geometry(const trial *t, int threads, void *out)
{
    enum { N = 500 };
    double *results = out;
    float x[N], y[N];
    (void)t, (void)threads;
    for (size_t n = 0; n < N; n++) {
        check_fill(n, n, x);
        check_fill(n + 1, n, y);
        results[4 * n] = embla_dot(x, y, n);
        results[4 * n + 1] = embla_norm(x, n);
        results[4 * n + 2] = embla_cosine(x, y, n);
        embla_normalize(x, n);
        results[4 * n + 3] = n > 0 ? (double)x[n - 1] : 0.0;
    }
}

static void geometry_gives_the_same_bits(void **state)
{
    (void)state;
    every_way_gives_the_same_bits(
        &(trial){.run = run_geometry, .what = "geometry", .size = 4 * 500 * sizeof(double)});
}

/* ---- many callers ---- */

enum { CALLERS = 4, CALLS = 20, WANTED = 300 };

/* One thread of a program: its own tokens and output, the program's table. */
typedef struct {
    const embla_table *table;
    int32_t tokens[WANTED];
    unsigned char out[WANTED * 96 * 2];
    embla_status status;
} caller;

static void *call_many_times(void *of)
{
    caller *c = of;
    embla_lookup_options options = {.out_dtype = EMBLA_BF16, .threads = 1};
    for (int i = 0; i < CALLS && c->status == EMBLA_OK; i++)
        c->status = embla_lookup(c->table, c->tokens, WANTED, &options, c->out);
    return NULL;
}

static void many_threads_may_share_a_table(void **state)
{
    static caller callers[CALLERS];
    pthread_t threads[CALLERS];
    embla_table *table = check_table(EMBLA_Q8_0, 500, 96, 4);
    unsigned char wanted[sizeof callers[0].out];
    (void)state;
    embla_kernels_use(NULL); /* the choice, too, is made by many at once */
    for (size_t i = 0; i < CALLERS; i++) {
        uint64_t seed = i;
        callers[i].table = table;
        for (size_t j = 0; j < WANTED; j++) callers[i].tokens[j] = (int32_t)check_below(&seed, 500);
        assert_int_equal(pthread_create(&threads[i], NULL, call_many_times, &callers[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_ok(callers[i].status);
        embla_lookup_options options = {.out_dtype = EMBLA_BF16};
        assert_ok(embla_lookup(table, callers[i].tokens, WANTED, &options, wanted));
        assert_memory_equal(callers[i].out, wanted, sizeof wanted);
    }
    embla_table_free(table);
}

/* With an argument, only the tests whose names match it (*large*). */
int main(int count, char **words)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lookup_gives_the_same_bits),
        cmocka_unit_test(a_small_lookup_gives_the_same_bits),
        cmocka_unit_test(a_large_lookup_gives_the_same_bits),
        cmocka_unit_test(embed_gives_the_same_bits),
        cmocka_unit_test(init_gives_the_same_bits),
        cmocka_unit_test(pool_gives_the_same_bits),
        cmocka_unit_test(rope_gives_the_same_bits),
        cmocka_unit_test(geometry_gives_the_same_bits),
        cmocka_unit_test(many_threads_may_share_a_table),
    };
    if (count > 1) cmocka_set_test_filter(words[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
