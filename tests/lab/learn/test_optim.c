/* SPDX-License-Identifier: Apache-2.0 */
/* Optimizers: against formulas in double; rows against dense steps, catching up against dense
 * steps to the bit; frozen rows byte for byte; masters; the same bits for all threads and sets.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"

enum { KINDS = 6, STATES = 2 };

/* Every kind there is, as the tests go through them. */
static embla_optim_options options_of(int kind, double decay)
{
    embla_optim_options o = {.decay = decay, .threads = 1};
    o.kind = kind < 3    ? EMBLA_OPTIM_SGD
             : kind == 3 ? EMBLA_OPTIM_ADAGRAD
                         : EMBLA_OPTIM_ADAGRAD_ROWWISE;
    if (kind == 5) o.kind = EMBLA_OPTIM_ADAMW;
    if (kind == 1 || kind == 2) o.momentum = 0.8;
    o.nesterov = kind == 2;
    return o;
}

static size_t states_of(int kind)
{
    return kind == 0 ? 0 : kind == 5 ? 2 : 1;
}

static float *floats(size_t n)
{
    float *x = calloc(n ? n : 1, sizeof *x);
    assert_non_null(x);
    return x;
}

static embla_optim *optim_of(embla_table *table, const embla_optim_options *options)
{
    embla_optim *optim = NULL;
    assert_ok(embla_optim_new(table, options, &optim));
    return optim;
}

/* ---- the formulas, in double ---- */

typedef struct {
    size_t rows, dim;
    double *w, *a, *b;
} exact;

static exact exact_of(const embla_table *table)
{
    exact e = {.rows = (size_t)embla_table_rows(table), .dim = embla_table_dim(table)};
    size_t n = e.rows * e.dim;
    float *row = floats(e.dim);
    e.w = calloc(3 * n, sizeof *e.w);
    assert_non_null(e.w);
    e.a = e.w + n;
    e.b = e.a + n;
    for (size_t r = 0; r < e.rows; r++) {
        check_row(table, (int64_t)r, row);
        for (size_t k = 0; k < e.dim; k++) e.w[r * e.dim + k] = (double)row[k];
    }
    free(row);
    return e;
}

static void exact_row(exact *e, int kind, double decay, double rate, int step, size_t r,
                      const float *g)
{
    double mean = 0.0;
    for (size_t k = 0; k < e->dim; k++) mean += (double)g[k] * (double)g[k] / (double)e->dim;
    for (size_t k = 0; k < e->dim; k++) {
        double *w = &e->w[r * e->dim + k], *a = &e->a[r * e->dim + k], *b = &e->b[r * e->dim + k];
        double x = (double)g[k], move = x;
        *w *= 1.0 - rate * decay;
        if (kind == 1 || kind == 2) {
            *a = 0.8 * *a + x;
            move = kind == 1 ? *a : x + 0.8 * *a;
        } else if (kind == 3 || kind == 4) {
            *a += kind == 3 ? x * x : mean;
            move = x / (sqrt(*a) + 1e-10);
        } else if (kind == 5) {
            *a = 0.9 * *a + 0.1 * x;
            *b = 0.999 * *b + 0.001 * x * x;
            move = *a / (1.0 - pow(0.9, step)) / (sqrt(*b) / sqrt(1.0 - pow(0.999, step)) + 1e-8);
        }
        *w -= rate * move;
    }
}

static void exact_same(const exact *e, const embla_table *table, double tolerance)
{
    float *row = floats(e->dim);
    for (size_t r = 0; r < e->rows; r++) {
        check_row(table, (int64_t)r, row);
        for (size_t k = 0; k < e->dim; k++) assert_near(row[k], e->w[r * e->dim + k], tolerance);
    }
    free(row);
}

static void steps_follow_the_formulas(void **state)
{
    static const struct {
        int64_t rows;
        size_t dim;
    } shapes[] = {{1, 1}, {5, 3}, {1, 17}, {7, 33}, {3, 100}, {40, 16}};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < COUNT_OF(shapes); s++)
            for (int decay = 0; decay < 2; decay++) {
                embla_optim_options options = options_of(kind, 0.1 * decay);
                embla_table *table = check_table(EMBLA_F32, shapes[s].rows, shapes[s].dim, 3);
                embla_optim *optim = optim_of(table, &options);
                exact e = exact_of(table);
                size_t n = e.rows * e.dim;
                float *g = floats(n);
                for (int step = 1; step <= 12; step++) {
                    double rate = 0.03 / step;
                    check_fill((uint64_t)(step * 7 + kind), n, g);
                    assert_ok(embla_optim_step(optim, rate, g));
                    for (size_t r = 0; r < e.rows; r++)
                        exact_row(&e, kind, 0.1 * decay, rate, step, r, g + r * e.dim);
                    exact_same(&e, table, 2e-6);
                }
                assert_int_equal(embla_optim_steps(optim), 12);
                free(g);
                free(e.w);
                embla_optim_free(optim);
                embla_table_free(table);
            }
}

/* Where every number is a power of two, floats are exact too. */
static void a_step_by_hand(void **state)
{
    static const float wanted[KINDS][3] = {{0.75f - 0.125f, 0.75f - 0.25f, 0.75f + 0.125f},
                                           {0.625f, 0.5f, 0.875f},
                                           {0.0f, 0.0f, 0.0f},
                                           {0.25f, 0.25f, 1.25f},
                                           {0.0f, 0.0f, 0.0f},
                                           {0.25f, 0.25f, 1.25f}};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        if (kind == 2 || kind == 4) continue;
        embla_optim_options options = options_of(kind, 0.5);
        embla_table *table = NULL;
        float w[3] = {1.0f, 1.0f, 1.0f}, g[3] = {0.25f, 0.5f, -0.25f}, row[3];
        assert_ok(embla_table_new(EMBLA_F32, 1, 3, NULL, &table));
        assert_ok(embla_table_write(table, 0, 1, w));
        embla_optim *optim = optim_of(table, &options);
        assert_ok(embla_optim_step(optim, 0.5, g));
        check_row(table, 0, row);
        for (int k = 0; k < 3; k++) assert_near(row[k], wanted[kind][k], 1e-6);
        embla_optim_free(optim);
        embla_table_free(table);
    }
}

/* ---- rows ---- */

static void same_tables(const embla_table *a, const embla_table *b)
{
    for (int64_t r = 0; r < embla_table_rows(a); r++)
        if (memcmp(embla_table_row(a, r), embla_table_row(b, r), embla_table_row_bytes(a)) != 0)
            fail_msg("row %d is not the same", (int)r);
}

static void same_states(embla_optim *a, embla_optim *b)
{
    embla_optim_state x, y;
    for (size_t n = 0; embla_optim_state_at(a, n, &x) == EMBLA_OK; n++) {
        assert_ok(embla_optim_state_at(b, n, &y));
        assert_string_equal(x.name, y.name);
        assert_true(x.rows == y.rows && x.dim == y.dim);
        assert_memory_equal(x.values, y.values, (size_t)x.rows * x.dim * sizeof *x.values);
    }
}

/* Lazy: named rows move as in a dense step, the others not at all. */
static void only_named_rows_move(void **state)
{
    enum { ROWS = 9, DIM = 19 };
    static const int64_t rows[] = {0, 3, 4, 8};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 0.25);
        embla_table *lazy = check_table(EMBLA_F32, ROWS, DIM, 5);
        embla_table *dense = check_table(EMBLA_F32, ROWS, DIM, 5);
        embla_table *before = check_table(EMBLA_F32, ROWS, DIM, 5);
        embla_optim *a = optim_of(lazy, &options), *b = optim_of(dense, &options);
        float g[ROWS * DIM], some[4 * DIM];
        embla_optim_state x, y;
        for (int step = 0; step < 5; step++) {
            check_fill((uint64_t)step + 11, ROWS * DIM, g);
            for (size_t i = 0; i < 4; i++)
                memcpy(some + i * DIM, g + rows[i] * DIM, sizeof *g * DIM);
            assert_ok(embla_optim_step_rows(a, 0.05, rows, 4, some));
            assert_ok(embla_optim_step(b, 0.05, g));
        }
        for (int64_t r = 0; r < ROWS; r++) {
            bool named = r == 0 || r == 3 || r == 4 || r == 8;
            assert_memory_equal(embla_table_row(lazy, r),
                                embla_table_row(named ? dense : before, r), DIM * sizeof(float));
        }
        for (size_t n = 0; n < states_of(kind); n++) {
            assert_ok(embla_optim_state_at(a, n, &x));
            assert_ok(embla_optim_state_at(b, n, &y));
            for (size_t k = 0; k < x.dim; k++) {
                assert_true(x.values[x.dim + k] == 0.0f);
                assert_true(x.values[3 * x.dim + k] == y.values[3 * x.dim + k]);
            }
        }
        assert_status(embla_optim_state_at(a, states_of(kind), &x), EMBLA_ERR_RANGE);
        embla_optim_free(a);
        embla_optim_free(b);
        embla_table_free(lazy);
        embla_table_free(dense);
        embla_table_free(before);
    }
}

/* ---- catching up ---- */

typedef struct {
    int kind, threads, steps;
    double decay;
    embla_dtype dtype;
    int64_t rows;
    size_t dim;
    int only_rows; /* 1: nothing but steps of rows until the end; 2: and one of them is named in
                      the first step only, so that the history grows */
} course;

static const uint8_t course_mask[4] = {0, 0, 0, 1};

/* Steps of random rows; now and then rows catch up, a dense step comes, or states are seen. */
static void run_course(const course *c, uint64_t seed)
{
    embla_optim_options options = options_of(c->kind, c->decay);
    embla_table *lazy = check_table(c->dtype, c->rows, c->dim, 9);
    embla_table *dense = check_table(c->dtype, c->rows, c->dim, 9);
    size_t n = (size_t)c->rows * c->dim;
    float *g = floats(n), *some = floats(n);
    int64_t *rows = calloc((size_t)c->rows + 1, sizeof *rows);
    uint8_t *mask = calloc((size_t)c->rows, 1);
    assert_non_null(rows);
    assert_non_null(mask);
    for (int64_t r = 0; r < c->rows; r++) mask[r] = course_mask[(r + 1) % 4];
    options.threads = c->threads;
    options.frozen.mask = mask;
    embla_optim *b = optim_of(dense, &options);
    options.catch_up = true;
    embla_optim *a = optim_of(lazy, &options);
    memset(mask, 0xff, (size_t)c->rows); /* was copied */
    for (int step = 0; step < c->steps; step++) {
        double rate = step % 5 == 3 ? 0.0 : 0.05 / (1 + step % 7);
        size_t count = 0;
        bool all = !c->only_rows && check_below(&seed, 17) == 0;
        memset(g, 0, n * sizeof *g);
        for (int64_t r = 0; r < c->rows; r++) {
            if (!all && check_below(&seed, 6) != 0 && !(step == 0 && r == 4)) continue;
            if (c->only_rows == 2 && r == 4 && step > 0) continue;
            check_fill(seed, c->dim, g + (size_t)r * c->dim);
            if (check_below(&seed, 50) == 0) g[(size_t)r * c->dim] = -0.0f;
            memcpy(some + count * c->dim, g + (size_t)r * c->dim, c->dim * sizeof *g);
            rows[count++] = r;
        }
        assert_ok(embla_optim_step(b, rate, g));
        if (all)
            assert_ok(embla_optim_step(a, rate, g));
        else
            assert_ok(embla_optim_step_rows(a, rate, rows, count, some));
        for (int64_t r = 0; r < c->rows && count > 0; r++) /* those just named are there */
            if (r == rows[count - 1])
                assert_memory_equal(embla_table_row(lazy, r), embla_table_row(dense, r),
                                    embla_table_row_bytes(lazy));
        if (!c->only_rows && check_below(&seed, 9) == 0 && count > 1) {
            for (size_t i = 0; i < count; i++) rows[i] = (rows[i] * 7 + step) % c->rows;
            rows[count] = rows[0]; /* any order, and twice */
            assert_ok(embla_optim_catch_up(a, rows, count + 1));
            for (size_t i = 0; i < count; i++)
                assert_memory_equal(embla_table_row(lazy, rows[i]), embla_table_row(dense, rows[i]),
                                    embla_table_row_bytes(lazy));
        }
        if (!c->only_rows && check_below(&seed, 23) == 0) same_states(a, b);
    }
    assert_ok(embla_optim_catch_up(a, NULL, 77));
    same_tables(lazy, dense);
    same_states(a, b);
    assert_int_equal(embla_optim_steps(a), c->steps);
    free(g);
    free(some);
    free(rows);
    free(mask);
    embla_optim_free(a);
    embla_optim_free(b);
    embla_table_free(lazy);
    embla_table_free(dense);
}

static void catching_up_has_the_bits_of_dense_steps(void **state)
{
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int decay = 0; decay < 2; decay++) {
            for (size_t d = 0; d < COUNT_OF(dtypes); d++)
                for (int only_rows = 0; only_rows < 3; only_rows++)
                    run_course(&(course){.kind = kind,
                                         .steps = 160,
                                         .threads = 1,
                                         .decay = 0.2 * decay,
                                         .dtype = dtypes[d],
                                         .rows = 21,
                                         .dim = 23,
                                         .only_rows = only_rows},
                               (uint64_t)kind + 100);
            run_course(&(course){kind, 3, 25, 0.2 * decay, EMBLA_F32, 300, 200, 0}, 4);
        }
}

static void catching_up_has_the_same_bits_on_every_set(void **state)
{
    (void)state;
    for (int set = 0; set < CHECK_SETS; set++) {
        if (!embla_kernels_find(check_sets[set])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[set]));
        for (int kind = 0; kind < KINDS; kind++)
            run_course(&(course){kind, 1, 70, 0.2, EMBLA_F32, 12, 37, 0}, 5);
    }
    embla_kernels_use(NULL);
}

/* A row that never had a gradient, and one whose momentum has become -0. */
static void zeros_and_minus_zeros_catch_up_too(void **state)
{
    enum { ROWS = 3, DIM = 20 };
    (void)state;
    for (int kind = 1; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 0.3);
        embla_table *tables[2];
        embla_optim *optims[2];
        embla_optim_state s;
        float zeros[ROWS * DIM] = {0}, odd[DIM];
        for (int k = 0; k < DIM; k++) odd[k] = k % 2 ? -0.0f : 1e-44f;
        for (int i = 0; i < 2; i++) {
            options.catch_up = i == 0;
            tables[i] = check_table(EMBLA_F32, ROWS, DIM, 1);
            assert_ok(embla_table_write(tables[i], 1, 1, odd));
            optims[i] = optim_of(tables[i], &options);
            for (size_t n = 0; n < states_of(kind); n++) {
                assert_ok(embla_optim_state_at(optims[i], n, &s));
                if (s.dim == 1) continue;
                s.values[DIM + 1] = kind == 3 || n == 1 ? 1e-30f : -0.0f;
                if (n == 1) s.values[3] = 1e-5f; /* squares without a mean */
                s.values[2 * DIM + 19] = n == 0 && kind != 3 ? -3e-45f : 1e-42f;
            }
        }
        for (int step = 0; step < 30; step++) {
            assert_ok(embla_optim_step_rows(optims[0], 0.5, NULL, 0, NULL));
            assert_ok(embla_optim_step(optims[1], 0.5, zeros));
        }
        assert_ok(embla_optim_catch_up(optims[0], NULL, 0));
        same_tables(tables[0], tables[1]);
        same_states(optims[0], optims[1]);
        for (int i = 0; i < 2; i++) {
            embla_optim_free(optims[i]);
            embla_table_free(tables[i]);
        }
    }
}

/* Row 1 gets one gradient and then none, for so long that means fade away: they become 0, not
 * subnormal, and steps that were missed have the bits of dense ones all the way. */
static void means_fade_to_nothing(void **state)
{
    enum { ROWS = 2, DIM = 19, STEPS = 1500 };
    static const int kinds[] = {1, 2, 5};
    (void)state;
    for (size_t k = 0; k < sizeof kinds / sizeof kinds[0]; k++) {
        embla_optim_options options = options_of(kinds[k], 0.01);
        embla_table *table[2];
        embla_optim *optim[2];
        embla_optim_state mean;
        float gradient[ROWS * DIM];
        const int64_t rows[] = {0, 1};
        for (int lazy = 0; lazy < 2; lazy++) {
            options.catch_up = lazy == 1;
            assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table[lazy]));
            assert_ok(embla_table_init(table[lazy], &(embla_init_options){.seed = 5}));
            optim[lazy] = optim_of(table[lazy], &options);
        }
        for (int s = 0; s < STEPS; s++) {
            double rate = 0.01 + 0.001 * (s % 7);
            for (int i = 0; i < ROWS * DIM; i++)
                gradient[i] = i < DIM || s == 0 ? (float)((i * 7 + s) % 11) - 4.5f : 0.0f;
            assert_ok(embla_optim_step(optim[0], rate, gradient));
            assert_ok(embla_optim_step_rows(optim[1], rate, rows, s == 0 ? 2 : 1, gradient));
        }
        assert_ok(embla_optim_state_at(optim[0], 0, &mean));
        for (int i = 0; i < DIM; i++) assert_true(mean.values[DIM + i] == 0.0f);
        for (int i = 0; i < DIM; i++) assert_true(mean.values[i] != 0.0f);
        same_states(optim[0], optim[1]);
        same_tables(table[0], table[1]);
        for (int lazy = 0; lazy < 2; lazy++) {
            embla_optim_free(optim[lazy]);
            embla_table_free(table[lazy]);
        }
    }
}

/* Row-wise sums have the bits of `dot`. 4 and half a unit of an f32, and two numbers so small
 * that they change the 4 only if they are added to each other first: the order shows. */
static void the_mean_of_squares_is_that_of_dot(void **state)
{
    enum { DIM = 16 };
    embla_optim_options options = options_of(4, 0.0);
    embla_table *table = check_table(EMBLA_F32, 1, DIM, 1);
    size_t rounded_up = 0;
    (void)state;
    for (int set = 0; set < CHECK_SETS; set++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[set]);
        if (!kernels) continue;
        for (int p = 2; p < DIM; p++)
            for (int q = p + 1; q < DIM; q++) {
                float g[DIM] = {2.0f, 0x1p-11f};
                embla_optim_state squares;
                g[p] = g[q] = 1.25f * 0x1p-26f;
                float wanted = (float)(embla_kernels_scalar.dot(g, g, DIM) / DIM);
                embla_kernels_use(kernels);
                embla_optim *optim = optim_of(table, &options);
                assert_ok(embla_optim_step(optim, 0.0, g));
                assert_ok(embla_optim_state_at(optim, 0, &squares));
                assert_true(squares.values[0] == wanted);
                rounded_up += squares.values[0] > 0.25f;
                embla_optim_free(optim);
                embla_kernels_use(NULL);
            }
    }
    assert_true(rounded_up > 0);
    embla_table_free(table);
}

/* Moments that all rows have passed are forgotten: a long course takes no more memory. */
static void what_all_rows_passed_is_forgotten(void **state)
{
    embla_optim_options options = options_of(5, 0.0);
    embla_table *table = check_table(EMBLA_F32, 3, 4, 1);
    float g[12] = {0};
    static const int64_t rows[2] = {0, 2};
    uint8_t mask[3] = {0, 1, 0}; /* a frozen row holds nobody up */
    (void)state;
    options.catch_up = true;
    options.frozen.mask = mask;
    embla_optim *optim = optim_of(table, &options);
    assert_ok(embla_optim_step_rows(optim, 0.1, rows, 1, g)); /* takes the first memory */
    embla_mem_fail(1, true);
    for (int step = 0; step < 1000; step++) {
        assert_ok(embla_optim_step_rows(optim, 0.1, rows + step % 2, 1, g));
        if (step % 200 == 9) assert_ok(embla_optim_catch_up(optim, NULL, 0));
    }
    embla_mem_fail(0, false);
    embla_optim_free(optim);
    embla_table_free(table);
}

/* ---- threads and sets ---- */

static void hash_course(int kind, embla_dtype dtype, int threads, bool by_rows, float *out)
{
    enum { ROWS = 700, DIM = 131 };
    embla_optim_options options = options_of(kind, 0.1);
    embla_table *table = check_table(dtype, ROWS, DIM, 2);
    float *g = floats((size_t)ROWS * DIM);
    int64_t rows[ROWS];
    options.threads = threads;
    options.catch_up = by_rows;
    options.frozen.below = 3;
    embla_optim *optim = optim_of(table, &options);
    for (int64_t step = 0; step < 4; step++) {
        size_t count = 0;
        check_fill((uint64_t)step, (size_t)ROWS * DIM, g);
        for (int64_t r = step; r < ROWS; r += 1 + (r + step) % 3) rows[count++] = r;
        if (by_rows)
            assert_ok(embla_optim_step_rows(optim, 0.01, rows, count, g));
        else
            assert_ok(embla_optim_step(optim, 0.01, g));
    }
    assert_ok(embla_optim_catch_up(optim, rows, 5));
    assert_ok(embla_optim_catch_up(optim, NULL, 0));
    for (int64_t r = 0; r < ROWS; r++) check_row(table, r, out + r * DIM);
    free(g);
    embla_optim_free(optim);
    embla_table_free(table);
}

static void same_bits_for_any_threads_and_sets(void **state)
{
    enum { N = 700 * 131 };
    static const int threads[] = {1, 2, 3, 4, 8};
    float *first = floats(N), *other = floats(N);
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int by_rows = 0; by_rows < 2; by_rows++)
            for (int bf16 = 0; bf16 < 2; bf16++) {
                embla_dtype dtype = bf16 ? EMBLA_BF16 : EMBLA_F32;
                hash_course(kind, dtype, 1, by_rows == 1, first);
                for (size_t t = 1; t < COUNT_OF(threads); t++) {
                    hash_course(kind, dtype, threads[t], by_rows == 1, other);
                    assert_memory_equal(first, other, N * sizeof *first);
                }
                for (int set = 0; set < CHECK_SETS; set++) {
                    if (!embla_kernels_find(check_sets[set])) continue;
                    embla_kernels_use(embla_kernels_find(check_sets[set]));
                    hash_course(kind, dtype, 2, by_rows == 1, other);
                    embla_kernels_use(NULL);
                    assert_memory_equal(first, other, N * sizeof *first);
                }
            }
    free(first);
    free(other);
}

/* ---- frozen rows ---- */

static void frozen_rows_stay_byte_for_byte(void **state)
{
    enum { ROWS = 12, DIM = 21 };
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    static const int64_t two[] = {11, 5}, named[] = {0, 2, 5, 7, 11};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t d = 0; d < COUNT_OF(dtypes); d++)
            for (int catch_up = 0; catch_up < 2; catch_up++) {
                embla_optim_options options = options_of(kind, 0.5);
                uint8_t mask[ROWS] = {[7] = 1}, kept[ROWS][DIM * 4];
                embla_table *table = check_table(dtypes[d], ROWS, DIM, 4);
                size_t bytes = embla_table_row_bytes(table);
                float g[ROWS * DIM];
                check_fill(1, ROWS * DIM, g);
                /* any bytes at all, NaN and infinity among them */
                check_fill_bytes(6, bytes, (char *)embla_table_data(table) + 5 * bytes);
                memset((char *)embla_table_data(table) + 7 * bytes, 0xff, bytes);
                for (int64_t r = 0; r < ROWS; r++)
                    memcpy(kept[r], embla_table_row(table, r), bytes);
                options.catch_up = catch_up == 1;
                options.frozen = (embla_frozen){.below = 2, .mask = mask, .rows = two, .count = 2};
                embla_optim *optim = optim_of(table, &options);
                for (int step = 0; step < 4; step++) {
                    assert_ok(embla_optim_step_rows(optim, 0.1, named, 5, g));
                    assert_ok(embla_optim_catch_up(optim, named, 5));
                    if (step % 2) assert_ok(embla_optim_step(optim, 0.1, g));
                    assert_ok(embla_optim_catch_up(optim, NULL, 0));
                }
                for (int64_t r = 0; r < ROWS; r++) {
                    bool frozen = r < 2 || r == 7 || r == 11 || r == 5;
                    if ((memcmp(kept[r], embla_table_row(table, r), bytes) == 0) != frozen)
                        fail_msg("row %d: frozen is %d", (int)r, frozen);
                }
                embla_optim_free(optim);
                embla_table_free(table);
            }
}

/* ---- views and masters ---- */

static void strided_views_keep_their_gaps(void **state)
{
    enum { ROWS = 6, DIM = 18 };
    static const size_t strides[] = {DIM * 4 + 12, DIM * 4 + 1, DIM * 4};
    static const size_t offsets[] = {0, 4, 1};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t s = 0; s < COUNT_OF(strides); s++)
            for (size_t f = 0; f < COUNT_OF(offsets); f++) {
                embla_optim_options options = options_of(kind, 0.5);
                embla_table *plain = check_table(EMBLA_F32, ROWS, DIM, 4), *view = NULL;
                check_guarded m = check_guard((ROWS - 1) * strides[s] + DIM * 4, offsets[f]);
                embla_table_options view_options = {.row_stride = strides[s], .writable = true};
                float g[ROWS * DIM];
                static const int64_t rows[] = {1, 4};
                for (int64_t r = 0; r < ROWS; r++)
                    memcpy(m.bytes + (size_t)r * strides[s], embla_table_row(plain, r), DIM * 4);
                assert_ok(embla_table_view(
                    &(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM}, m.bytes,
                    m.size, &view_options, &view));
                embla_optim *a = optim_of(plain, &options), *b = optim_of(view, &options);
                for (int step = 0; step < 3; step++) {
                    check_fill((uint64_t)step, ROWS * DIM, g);
                    assert_ok(embla_optim_step(a, 0.1, g));
                    assert_ok(embla_optim_step(b, 0.1, g));
                    assert_ok(embla_optim_step_rows(a, 0.1, rows, 2, g));
                    assert_ok(embla_optim_step_rows(b, 0.1, rows, 2, g));
                }
                same_tables(plain, view);
                check_guards(&m);
                for (size_t r = 0; r + 1 < ROWS; r++)
                    check_marks(m.bytes + r * strides[s] + DIM * 4, m.bytes + (r + 1) * strides[s]);
                embla_optim_free(a);
                embla_optim_free(b);
                embla_table_free(view);
                embla_table_free(plain);
                check_guard_free(&m);
            }
}

/* The master moves as an f32 table would; the table is what it rounds to. */
static void small_tables_have_a_master(void **state)
{
    enum { ROWS = 5, DIM = 40 };
    static const embla_dtype dtypes[] = {EMBLA_BF16, EMBLA_F16};
    static const int64_t rows[] = {2, 3};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
            embla_optim_options options = options_of(kind, 0.01);
            embla_table *small = check_table(dtypes[d], ROWS, DIM, 8), *wide = NULL;
            embla_optim_state master;
            float g[ROWS * DIM], row[DIM];
            unsigned char bytes[DIM * 2];
            assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &wide));
            for (int64_t r = 0; r < ROWS; r++) {
                check_row(small, r, row);
                assert_ok(embla_table_write(wide, r, 1, row));
            }
            embla_optim *a = optim_of(small, &options), *b = optim_of(wide, &options);
            for (int step = 0; step < 6; step++) {
                check_fill((uint64_t)step, ROWS * DIM, g);
                if (step % 2) {
                    assert_ok(embla_optim_step(a, 1e-4, g));
                    assert_ok(embla_optim_step(b, 1e-4, g));
                } else {
                    assert_ok(embla_optim_step_rows(a, 1e-4, rows, 2, g));
                    assert_ok(embla_optim_step_rows(b, 1e-4, rows, 2, g));
                }
                assert_ok(embla_optim_state_at(a, states_of(kind), &master));
                assert_string_equal(master.name, "master");
                assert_memory_equal(master.values, embla_table_row(wide, 0), sizeof g);
                for (int64_t r = 0; r < ROWS; r++) {
                    assert_ok(
                        embla_dtype_encode(dtypes[d], master.values + r * DIM, DIM, 0, bytes));
                    assert_memory_equal(bytes, embla_table_row(small, r), sizeof bytes);
                }
            }
            embla_optim_free(a);
            embla_optim_free(b);
            embla_table_free(small);
            embla_table_free(wide);
        }
}

/* ---- odd numbers ---- */

static void odd_numbers_stay_in_their_row(void **state)
{
    enum { ROWS = 5, DIM = 33 };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 0.1);
        embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
        embla_optim *optim = optim_of(table, &options);
        float g[ROWS * DIM], row[DIM];
        for (int step = 0; step < 3; step++) {
            check_fill((uint64_t)step, ROWS * DIM, g);
            g[7] = NAN;
            g[DIM + 7] = INFINITY;
            g[2 * DIM + 7] = 1e38f;
            g[3 * DIM + 7] = 1e-44f;
            assert_ok(embla_optim_step(optim, 1e-2, g));
        }
        check_row(table, 0, row);
        assert_true(isnan(row[7]));
        assert_true((kind == 4) == (bool)isnan(row[8])); /* its row shares one sum */
        check_row(table, 1, row);
        assert_true(!isfinite(row[7]));
        for (int64_t r = 2; r < ROWS; r++) {
            check_row(table, r, row);
            for (int k = 0; k < DIM; k++) assert_true(isfinite(row[k]));
        }
        embla_optim_free(optim);
        embla_table_free(table);
    }
}

/* 1e38 squared is no f32, but the mean of squares of a row is taken in double first. */
static void a_gradient_of_zeros_divides_by_no_zero(void **state)
{
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 0.0);
        embla_table *table = check_table(EMBLA_F32, 2, 17, 4), *before;
        embla_optim *optim = optim_of(table, &options);
        float g[34] = {0};
        before = check_table(EMBLA_F32, 2, 17, 4);
        assert_ok(embla_optim_step(optim, 1.0, g));
        same_tables(table, before);
        embla_optim_free(optim);
        embla_table_free(table);
        embla_table_free(before);
    }
}

/* ---- going on with a saved state ---- */

static void a_saved_state_goes_on_to_the_same_bits(void **state)
{
    enum { ROWS = 4, DIM = 30 };
    (void)state;
    for (int kind = 0; kind < KINDS; kind++)
        for (int bf16 = 0; bf16 < 2; bf16++) {
            embla_optim_options options = options_of(kind, 0.1);
            embla_dtype dtype = bf16 ? EMBLA_BF16 : EMBLA_F32;
            embla_table *table = check_table(dtype, ROWS, DIM, 4);
            embla_table *copy = check_table(dtype, ROWS, DIM, 5);
            float g[ROWS * DIM];
            options.catch_up = kind % 2 == 1;
            embla_optim *a = optim_of(table, &options), *b = NULL;
            for (int step = 0; step < 10; step++) {
                check_fill((uint64_t)step, ROWS * DIM, g);
                if (step == 5) {
                    embla_optim_state x, y;
                    memcpy(embla_table_data(copy), embla_table_row(table, 0),
                           ROWS * embla_table_row_bytes(table));
                    b = optim_of(copy, &options);
                    for (size_t n = 0; embla_optim_state_at(a, n, &x) == EMBLA_OK; n++) {
                        assert_ok(embla_optim_state_at(b, n, &y));
                        memcpy(y.values, x.values, (size_t)x.rows * x.dim * sizeof *x.values);
                    }
                    assert_ok(embla_optim_set_steps(b, embla_optim_steps(a)));
                    assert_int_equal(embla_optim_steps(b), 5);
                }
                assert_ok(embla_optim_step(a, 0.01, g));
                if (b) assert_ok(embla_optim_step(b, 0.01, g));
            }
            same_tables(table, copy);
            same_states(a, b);
            embla_optim_free(a);
            embla_optim_free(b);
            embla_table_free(table);
            embla_table_free(copy);
        }
}

static void steps_are_set_only_while_no_row_is_behind(void **state)
{
    embla_optim_options options = options_of(5, 0.1);
    embla_table *table = check_table(EMBLA_F32, 3, 4, 1);
    static const int64_t rows[] = {0, 1, 2};
    float g[12] = {0};
    (void)state;
    options.catch_up = true;
    options.frozen.below = 1;
    embla_optim *optim = optim_of(table, &options);
    assert_status(embla_optim_set_steps(optim, -1), EMBLA_ERR_ARGUMENT);
    assert_error_has("steps is -1");
    assert_status(embla_optim_set_steps(optim, INT64_MAX), EMBLA_ERR_ARGUMENT);
    assert_status(embla_optim_set_steps(NULL, 1), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_optim_set_steps(optim, INT64_C(1) << 53));
    assert_status(embla_optim_step(optim, 0.1, g), EMBLA_ERR_ARGUMENT);
    assert_error_has("9007199254740993");
    assert_ok(embla_optim_set_steps(optim, 7));
    assert_ok(embla_optim_step_rows(optim, 0.1, rows + 1, 1, g));
    assert_status(embla_optim_set_steps(optim, 3), EMBLA_ERR_ARGUMENT);
    assert_error_has("set to 3: a row has made only 7 of 8");
    assert_int_equal(embla_optim_steps(optim), 8);
    assert_ok(embla_optim_catch_up(optim, rows, 3));
    assert_ok(embla_optim_set_steps(optim, 3));
    assert_ok(embla_optim_step_rows(optim, 0.1, rows + 2, 1, g));
    assert_ok(embla_optim_catch_up(optim, NULL, 0));
    assert_int_equal(embla_optim_steps(optim), 4);
    embla_optim_free(optim);
    embla_table_free(table);
}

/* ---- what is refused ---- */

static void names_and_states(void **state)
{
    static const char *const names[] = {"sgd", "adagrad", "adagrad-rowwise", "adamw"};
    static const char *const wanted[KINDS][2] = {{NULL},      {"momentum"}, {"momentum"},
                                                 {"squares"}, {"squares"},  {"mean", "squares"}};
    (void)state;
    for (int kind = 0; kind < 4; kind++)
        assert_string_equal(embla_optim_name((embla_optim_kind)kind), names[kind]);
    assert_null(embla_optim_name((embla_optim_kind)4));
    assert_null(embla_optim_name((embla_optim_kind)-1));
    for (int kind = 0; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 0.0);
        embla_table *table = check_table(EMBLA_F32, 3, 5, 1);
        embla_optim *optim = optim_of(table, &options);
        embla_optim_state s = {.dim = 99};
        for (size_t n = 0; n < states_of(kind); n++) {
            assert_ok(embla_optim_state_at(optim, n, &s));
            assert_string_equal(s.name, wanted[kind][n]);
            assert_true(s.rows == 3 && s.dim == (kind == 4 ? 1 : 5));
        }
        s.dim = 99;
        assert_status(embla_optim_state_at(optim, 3, &s), EMBLA_ERR_RANGE);
        assert_error_has("state 3");
        assert_int_equal(s.dim, 99);
        assert_status(embla_optim_state_at(optim, 0, NULL), EMBLA_ERR_ARGUMENT);
        embla_optim_free(optim);
        embla_table_free(table);
    }
    embla_optim_free(NULL);
}

static void options_that_cannot_be_are_refused(void **state)
{
    static const struct {
        embla_optim_options options;
        embla_status status;
        const char *text;
    } wrong[] = {
        {{.kind = (embla_optim_kind)4}, EMBLA_ERR_ARGUMENT, "kind 4"},
        {{.threads = -2}, EMBLA_ERR_ARGUMENT, "threads is -2"},
        {{.momentum = 1.0}, EMBLA_ERR_ARGUMENT, "momentum is 1;"},
        {{.momentum = -0.5}, EMBLA_ERR_ARGUMENT, "momentum is -0.5"},
        {{.momentum = NAN}, EMBLA_ERR_ARGUMENT, "momentum is nan"},
        {{.momentum = 0.5, .kind = EMBLA_OPTIM_ADAMW}, EMBLA_ERR_ARGUMENT, "adamw has none"},
        {{.nesterov = true}, EMBLA_ERR_ARGUMENT, "nesterov"},
        {{.beta1 = 1.0, .kind = EMBLA_OPTIM_ADAMW}, EMBLA_ERR_ARGUMENT, "beta1 is 1;"},
        {{.beta2 = -0.1, .kind = EMBLA_OPTIM_ADAMW}, EMBLA_ERR_ARGUMENT, "beta2 is -0.1"},
        {{.beta2 = INFINITY, .kind = EMBLA_OPTIM_ADAMW}, EMBLA_ERR_ARGUMENT, "beta2 is inf"},
        {{.epsilon = -1.0}, EMBLA_ERR_ARGUMENT, "epsilon is -1;"},
        {{.epsilon = 1e-60}, EMBLA_ERR_ARGUMENT, "epsilon is 1e-60"},
        {{.epsilon = 1e60}, EMBLA_ERR_ARGUMENT, "epsilon is 1e+60"},
        {{.epsilon = NAN}, EMBLA_ERR_ARGUMENT, "epsilon is nan"},
        {{.decay = -1.0}, EMBLA_ERR_ARGUMENT, "decay is -1;"},
        {{.decay = INFINITY}, EMBLA_ERR_ARGUMENT, "decay is inf"},
        {{.decay = NAN}, EMBLA_ERR_ARGUMENT, "decay is nan"},
        {{.frozen = {.below = 9}}, EMBLA_ERR_RANGE, "9"},
    };
    embla_table *table = check_table(EMBLA_F32, 3, 32, 1);
    size_t live = embla_mem_live();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        embla_optim *optim = (void *)&live;
        assert_status(embla_optim_new(table, &wrong[i].options, &optim), wrong[i].status);
        assert_error_has(wrong[i].text);
        assert_ptr_equal(optim, &live);
        assert_int_equal(embla_mem_live(), live);
    }
    embla_optim *optim = NULL;
    assert_status(embla_optim_new(NULL, NULL, &optim), EMBLA_ERR_ARGUMENT);
    assert_status(embla_optim_new(table, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_optim_new(table, NULL, &optim));
    embla_optim_free(optim);
    embla_table_free(table);
}

static void tables_that_cannot_learn_are_refused(void **state)
{
    embla_optim *optim = NULL;
    embla_table *view = NULL;
    float numbers[32] = {0};
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++) {
        embla_table *table =
            check_table((embla_dtype)dtype, 1, check_dim((embla_dtype)dtype, 32), 1);
        bool fine = dtype == EMBLA_F32 || dtype == EMBLA_BF16 || dtype == EMBLA_F16;
        assert_status(embla_optim_new(table, NULL, &optim),
                      fine ? EMBLA_OK : EMBLA_ERR_UNSUPPORTED);
        if (fine) {
            embla_optim_free(optim);
            optim = NULL;
        } else {
            assert_error_has(embla_dtype_name((embla_dtype)dtype));
        }
        embla_table_free(table);
    }
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 32},
                               numbers, sizeof numbers, NULL, &view));
    assert_status(embla_optim_new(view, NULL, &optim), EMBLA_ERR_ARGUMENT);
    assert_error_has("read-only");
    assert_null(optim);
    embla_table_free(view);
}

static void steps_that_cannot_be_change_nothing(void **state)
{
    static const int64_t twice[] = {1, 1}, back[] = {0, 2, 1}, low[] = {-1, 2}, high[] = {0, 4};
    static const double rates[] = {NAN, INFINITY, -0.1, 1e39};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        embla_optim_options options = options_of(kind, 1.0);
        embla_table *table = check_table(EMBLA_F32, 4, 6, 1), *before;
        float g[24];
        options.catch_up = true;
        embla_optim *optim = optim_of(table, &options);
        before = check_table(EMBLA_F32, 4, 6, 1);
        check_fill(1, 24, g);
        for (size_t i = 0; i < COUNT_OF(rates); i++) {
            assert_status(embla_optim_step(optim, rates[i], g), EMBLA_ERR_ARGUMENT);
            assert_error_has("rate");
            assert_status(embla_optim_step_rows(optim, rates[i], back, 2, g), EMBLA_ERR_ARGUMENT);
        }
        assert_status(embla_optim_step(optim, 0.1, NULL), EMBLA_ERR_ARGUMENT);
        assert_error_has("gradient is NULL");
        assert_status(embla_optim_step(NULL, 0.1, g), EMBLA_ERR_ARGUMENT);
        assert_status(embla_optim_step_rows(NULL, 0.1, back, 1, g), EMBLA_ERR_ARGUMENT);
        assert_status(embla_optim_step_rows(optim, 0.1, NULL, 1, g), EMBLA_ERR_ARGUMENT);
        assert_error_has("rows is NULL");
        assert_status(embla_optim_step_rows(optim, 0.1, back, 1, NULL), EMBLA_ERR_ARGUMENT);
        assert_error_has("gradients is NULL");
        assert_status(embla_optim_step_rows(optim, 0.1, twice, 2, g), EMBLA_ERR_ARGUMENT);
        assert_error_has("row 1 at index 1 follows row 1");
        assert_status(embla_optim_step_rows(optim, 0.1, back, 3, g), EMBLA_ERR_ARGUMENT);
        assert_error_has("row 1 at index 2 follows row 2");
        assert_status(embla_optim_step_rows(optim, 0.1, low, 2, g), EMBLA_ERR_RANGE);
        assert_error_has("row -1 at index 0 is out of range: the table has 4");
        assert_status(embla_optim_step_rows(optim, 0.1, high, 2, g), EMBLA_ERR_RANGE);
        assert_error_has("row 4 at index 1 is out of range: the table has 4");
        assert_status(embla_optim_catch_up(optim, high, 2), EMBLA_ERR_RANGE);
        assert_status(embla_optim_catch_up(NULL, NULL, 0), EMBLA_ERR_ARGUMENT);
        assert_status(embla_optim_state_at(NULL, 0, NULL), EMBLA_ERR_ARGUMENT);
        same_tables(table, before);
        assert_int_equal(embla_optim_steps(optim), 0);
        assert_ok(embla_optim_step_rows(optim, 0.1, NULL, 0, NULL)); /* a step of no rows is one */
        assert_int_equal(embla_optim_steps(optim), 1);
        embla_optim_free(optim);
        embla_table_free(table);
        embla_table_free(before);
    }
}

static void rates_beyond_f32_are_refused(void **state)
{
    embla_optim_options options = {.kind = EMBLA_OPTIM_ADAMW, .beta1 = 1.0 - 0x1p-50};
    embla_table *table = check_table(EMBLA_F32, 1, 3, 1);
    float g[3] = {0};
    (void)state;
    embla_optim *optim = optim_of(table, &options);
    assert_status(embla_optim_step(optim, 1e30, g), EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in an f32");
    assert_ok(embla_optim_step(optim, 1e-3, g));
    embla_optim_free(optim);
    options = (embla_optim_options){.decay = 1e300};
    optim = optim_of(table, &options);
    assert_status(embla_optim_step(optim, 1e30, g), EMBLA_ERR_ARGUMENT);
    assert_error_has("decay 1e+300");
    embla_optim_free(optim);
    embla_table_free(table);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    embla_table *table = check_table(EMBLA_BF16, 3, 5, 1),
                *before = check_table(EMBLA_BF16, 3, 5, 1);
    embla_optim_options options = options_of(5, 0.1);
    static const int64_t rows[] = {1};
    float g[15];
    uint8_t mask[3] = {1, 0, 0};
    (void)state;
    check_fill(2, 15, g);
    options.catch_up = true;
    options.frozen.mask = mask;
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        embla_optim *optim = NULL;
        for (size_t at = 1;; at++) {
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_optim_new(table, &options, &optim);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            assert_null(optim);
            assert_int_equal(embla_mem_live(), live);
            failures++;
        }
        assert_int_equal(failures, 6); /* handle, frozen rows, two states, master, steps of rows */
        for (int step = 0; step < 200; step++) { /* the history grows in the first, 65th, 129th */
            embla_mem_fail(1, true);
            embla_status status = embla_optim_step_rows(optim, 0.0, rows, 1, g);
            embla_mem_fail(0, false);
            bool grows = step == 0 || step == 64 || step == 128;
            assert_int_equal(status, grows ? EMBLA_ERR_MEMORY : EMBLA_OK);
            assert_int_equal(embla_optim_steps(optim), step + (grows ? 0 : 1));
            if (grows) assert_ok(embla_optim_step_rows(optim, 0.0, rows, 1, g));
        }
        same_tables(table, before); /* at a rate of 0 */
        embla_optim_free(optim);
        assert_int_equal(embla_mem_live(), live);
    }
    embla_table_free(table);
    embla_table_free(before);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(steps_follow_the_formulas),
        cmocka_unit_test(a_step_by_hand),
        cmocka_unit_test(only_named_rows_move),
        cmocka_unit_test(catching_up_has_the_bits_of_dense_steps),
        cmocka_unit_test(catching_up_has_the_same_bits_on_every_set),
        cmocka_unit_test(zeros_and_minus_zeros_catch_up_too),
        cmocka_unit_test(means_fade_to_nothing),
        cmocka_unit_test(the_mean_of_squares_is_that_of_dot),
        cmocka_unit_test(what_all_rows_passed_is_forgotten),
        cmocka_unit_test(same_bits_for_any_threads_and_sets),
        cmocka_unit_test(frozen_rows_stay_byte_for_byte),
        cmocka_unit_test(strided_views_keep_their_gaps),
        cmocka_unit_test(small_tables_have_a_master),
        cmocka_unit_test(odd_numbers_stay_in_their_row),
        cmocka_unit_test(a_gradient_of_zeros_divides_by_no_zero),
        cmocka_unit_test(a_saved_state_goes_on_to_the_same_bits),
        cmocka_unit_test(steps_are_set_only_while_no_row_is_behind),
        cmocka_unit_test(names_and_states),
        cmocka_unit_test(options_that_cannot_be_are_refused),
        cmocka_unit_test(tables_that_cannot_learn_are_refused),
        cmocka_unit_test(steps_that_cannot_be_change_nothing),
        cmocka_unit_test(rates_beyond_f32_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
