/* SPDX-License-Identifier: Apache-2.0 */
/* Lookup backwards, against sums written out in double: every bit. Rows and positions against a
 * search from front to back; that it is lookup's adjoint; shards against processes that each
 * sum their own; rows that do not learn; any number of threads and every kernel set; what is
 * refused; memory.
 */
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "check.h"
#include "learn/frozen.h"
#include "learn/scatter_sum.h"

/* ---- the definition ---- */

typedef struct {
    int64_t table_rows;
    const int64_t *ids;
    size_t count, dim;
    const float *gradients;
    embla_scatter_options options;
} batch;

static bool is_frozen(const embla_frozen *f, int64_t row)
{
    if (row < f->below || (f->mask && f->mask[row])) return true;
    for (size_t i = 0; i < f->count; i++)
        if (f->rows[i] == row) return true;
    return false;
}

/* Of doubles: 64 columns by themselves, in 16 sums that are added as a tree; then in order. Up
 * to 4,096 columns every 64 are a sum of their own, beyond that 64 sums share them. */
static double norm_of(const double *x, size_t dim)
{
    size_t width = ((dim - 1) / 4096 + 1) * 64;
    double total = 0.0;
    for (size_t part = 0; part < dim; part += width) {
        double sum = 0.0;
        for (size_t unit = part; unit < part + width && unit < dim; unit += 64) {
            double lanes[16] = {0};
            for (size_t c = unit; c < unit + 64 && c < dim; c++) lanes[c % 16] += x[c] * x[c];
            for (size_t half = 8; half > 0; half /= 2)
                for (size_t k = 0; k < half; k++) lanes[k] += lanes[k + half];
            sum += lanes[0];
        }
        total += sum;
    }
    return sqrt(total);
}

/* The gradient of one row, which has the vectors at[0 .. times-1], in double. */
static void row_gradient(const batch *b, const size_t *at, size_t times, double *out)
{
    size_t shard = b->options.shard < b->count ? b->options.shard : 0;
    for (size_t c = 0; c < b->dim; c++) {
        double total = 0.0;
        for (size_t i = 0, next; i < times; i = next) { /* one shard */
            double sum = (double)b->gradients[at[i] * b->dim + c];
            for (next = i + 1; next < times && (!shard || at[next] / shard == at[i] / shard);
                 next++)
                sum += (double)b->gradients[at[next] * b->dim + c];
            if (shard) sum = (double)(float)sum;
            total = i > 0 ? total + sum : sum;
        }
        out[c] = b->options.by_count ? total / (double)times : total;
    }
    double norm = norm_of(out, b->dim), most = (double)b->options.max_norm;
    for (size_t c = 0; most > 0.0 && norm > most && isfinite(norm) && c < b->dim; c++)
        out[c] *= most / norm;
}

/* The same bits, but all NaN are one. */
static void same_floats(const float *a, const float *b, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (check_bits_of(a[i]) != check_bits_of(b[i]) && !(isnan(a[i]) && isnan(b[i])))
            fail_msg("number %zu of %zu is %.9g, not %.9g", i, n, (double)a[i], (double)b[i]);
}

/* What is wanted of a batch: rows that learn, their gradients, and all of them added to dense. */
typedef struct {
    int64_t *rows;
    size_t count;
    float *sums, *dense;
} answer;

static float dense_start(size_t i)
{
    return 0.1f * (float)(i % 7) - 0.3f;
}

static answer work_out(const batch *b)
{
    size_t all = (size_t)b->table_rows * b->dim;
    answer a = {.rows = malloc((size_t)b->table_rows * sizeof *a.rows),
                .sums = malloc(all * sizeof *a.sums),
                .dense = malloc(all * sizeof *a.dense)};
    double *row = malloc(b->dim * sizeof *row);
    size_t *at = malloc((b->count + 1) * sizeof *at);
    assert_true(a.rows && a.sums && a.dense && row && at);
    for (size_t i = 0; i < all; i++) a.dense[i] = dense_start(i);
    for (int64_t r = 0; r < b->table_rows; r++) {
        size_t times = 0;
        for (size_t i = 0; i < b->count; i++)
            if (b->ids[i] == r) at[times++] = i;
        if (times == 0 || is_frozen(&b->options.frozen, r)) continue;
        row_gradient(b, at, times, row);
        for (size_t c = 0; c < b->dim; c++) {
            float *dense = a.dense + (size_t)r * b->dim + c;
            a.sums[a.count * b->dim + c] = (float)row[c];
            *dense = (float)((double)*dense + row[c]);
        }
        a.rows[a.count++] = r;
    }
    free(at);
    free(row);
    return a;
}

static void answer_free(answer *a)
{
    free(a->rows);
    free(a->sums);
    free(a->dense);
}

/* ---- a batch, all ways ---- */

static void check_sums(const batch *b, const answer *want, const embla_scatter *scatter,
                       size_t offset)
{
    size_t all = (size_t)b->table_rows * b->dim, n = want->count * b->dim;
    check_guarded out = check_guard(n * sizeof(float), offset);
    check_guarded dense = check_guard(all * sizeof(float), offset);
    float *values = (float *)(void *)dense.bytes;
    for (size_t i = 0; i < all; i++) values[i] = dense_start(i);
    assert_ok(embla_scatter_sum(scatter, b->gradients, b->dim, (float *)(void *)out.bytes));
    same_floats((float *)(void *)out.bytes, want->sums, n);
    check_guards(&out);
    assert_ok(embla_scatter_add(scatter, b->gradients, b->dim, values));
    same_floats(values, want->dense, all);
    check_guards(&dense);
    check_guard_free(&dense);
    check_guard_free(&out);
}

static void check_batch(const batch *b)
{
    answer want = work_out(b);
    embla_scatter *scatter = NULL;
    int32_t *tokens = malloc((b->count + 1) * sizeof *tokens);
    assert_non_null(tokens);
    for (size_t i = 0; i < b->count; i++) tokens[i] = (int32_t)b->ids[i];
    assert_ok(embla_scatter_new(b->table_rows, b->count, &scatter));
    size_t live = embla_mem_live();
    embla_mem_fail(1, true); /* nothing below allocates */
    for (int by_row = 0; by_row < 2; by_row++) {
        assert_ok(by_row ? embla_scatter_plan_rows(scatter, b->ids, b->count, &b->options)
                         : embla_scatter_plan(scatter, tokens, b->count, &b->options));
        assert_int_equal(embla_scatter_count(scatter), want.count);
        assert_memory_equal(embla_scatter_rows(scatter), want.rows, want.count * sizeof *want.rows);
        check_sums(b, &want, scatter, by_row ? 0 : 4);
    }
    embla_mem_fail(0, false);
    assert_int_equal(embla_mem_live(), live);
    embla_scatter_free(scatter);
    free(tokens);
    answer_free(&want);
}

enum { MOST_IDS = 3000 };

/* Ids of kind: 0 uniform, 1 all the same, 2 all distinct (as far as they go), 3 few often. */
static void make_ids(int kind, int64_t rows, size_t count, uint64_t seed, int64_t *ids)
{
    int64_t same = (int64_t)check_below(&seed, (uint64_t)rows);
    for (size_t i = 0; i < count; i++) {
        uint64_t any = check_below(&seed, (uint64_t)rows);
        if (kind == 0) ids[i] = (int64_t)any;
        if (kind == 1) ids[i] = same;
        if (kind == 2) ids[i] = (int64_t)((i * 7 + any % 1) % (uint64_t)rows);
        if (kind == 3) ids[i] = (int64_t)(any % (1 + check_below(&seed, (uint64_t)rows)));
    }
}

static void sums_are_those_of_the_definition(void **state)
{
    static const int64_t rows[] = {1, 2, 5, 40, 300};
    static const size_t counts[] = {0, 1, 2, 9, 48, 49, 130}, dims[] = {1, 3, 16, 17, 33, 64, 100};
    static int64_t ids[MOST_IDS];
    static float gradients[130 * 100];
    uint64_t seed = 1;
    (void)state;
    check_fill(9, COUNT_OF(gradients), gradients);
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t n = 0; n < COUNT_OF(counts); n++)
            for (size_t d = 0; d < COUNT_OF(dims); d++) {
                int kind = (int)check_below(&seed, 4);
                batch b = {.table_rows = rows[r],
                           .ids = ids,
                           .count = counts[n],
                           .dim = dims[d],
                           .gradients = gradients};
                make_ids(kind, rows[r], counts[n], seed, ids);
                b.options.shard = check_below(&seed, 3) ? 0 : 1 + check_below(&seed, 60);
                b.options.by_count = check_below(&seed, 3) == 0;
                b.options.max_norm = check_below(&seed, 2) ? 0.0f : 0.5f;
                check_batch(&b);
            }
}

/* Sizes that reach what small ones do not: lines fetched, rows cut by columns, more columns
 * than are summed at once, large results, threads. */
static void large_batches_are_those_of_the_definition_for_any_threads(void **state)
{
    static const struct {
        int64_t rows;
        size_t count, dim;
        int kind;
        float max_norm;
        size_t shard;
    } cases[] = {
        {4000, 2500, 768, 0, 0.0f, 0}, {60, 1500, 100, 3, 2.0f, 0},   {900, 800, 176, 1, 0.0f, 0},
        {900, 800, 176, 1, 2.5f, 100}, {4000, 2500, 433, 0, 0.0f, 0}, {500, 2000, 48, 3, 0.0f, 7},
        {30, 300, 5000, 3, 0.0f, 64},  {30, 300, 4100, 0, 60.0f, 0},  {3, 200, 9000, 1, 70.0f, 0},
    };
    static const int threads[] = {1, 2, 3, 4, 8};
    static int64_t ids[MOST_IDS];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        batch b = {
            .table_rows = cases[i].rows, .ids = ids, .count = cases[i].count, .dim = cases[i].dim};
        float *gradients = malloc(b.count * b.dim * sizeof *gradients);
        assert_non_null(gradients);
        check_fill(i + 1, b.count * b.dim, gradients);
        b.gradients = gradients;
        b.options.max_norm = cases[i].max_norm;
        b.options.shard = cases[i].shard;
        b.options.by_count = i % 2 == 1;
        make_ids(cases[i].kind, b.table_rows, b.count, i, ids);
        answer want = work_out(&b);
        for (size_t s = 0; s < CHECK_SETS; s++)
            for (size_t t = 0; t < COUNT_OF(threads); t++) {
                embla_scatter *scatter = NULL;
                if (!embla_kernels_find(check_sets[s])) continue;
                embla_kernels_use(embla_kernels_find(check_sets[s]));
                b.options.threads = threads[t];
                assert_ok(embla_scatter_new(b.table_rows, b.count + t, &scatter));
                assert_ok(embla_scatter_plan_rows(scatter, ids, b.count, &b.options));
                assert_int_equal(embla_scatter_count(scatter), want.count);
                check_sums(&b, &want, scatter, t % 2 ? 0 : 4);
                embla_scatter_free(scatter);
            }
        embla_kernels_use(NULL);
        answer_free(&want);
        free(gradients);
    }
}

/* <lookup(W), G> = <W, scatter(G)> for any W and G. */
static void it_is_the_adjoint_of_lookup(void **state)
{
    enum { ROWS = 50, DIM = 24, COUNT = 200 };
    static float vectors[COUNT * DIM], gradients[COUNT * DIM], dense[ROWS * DIM];
    int32_t tokens[COUNT];
    uint64_t seed = 4;
    double left = 0.0, right = 0.0, size = 0.0;
    embla_scatter *scatter = NULL;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 2);
    (void)state;
    for (size_t i = 0; i < COUNT; i++) tokens[i] = (int32_t)check_below(&seed, ROWS);
    check_fill(5, COUNT * DIM, gradients);
    memset(dense, 0, sizeof dense);
    assert_ok(embla_lookup(table, tokens, COUNT, NULL, vectors));
    assert_ok(embla_scatter_new(ROWS, COUNT, &scatter));
    assert_ok(embla_scatter_plan(scatter, tokens, COUNT, NULL));
    assert_ok(embla_scatter_add(scatter, gradients, DIM, dense));
    const float *rows = embla_table_row(table, 0);
    for (size_t i = 0; i < COUNT * DIM; i++) {
        left += (double)vectors[i] * (double)gradients[i];
        size += fabs((double)vectors[i] * (double)gradients[i]);
    }
    for (size_t i = 0; i < ROWS * DIM; i++) right += (double)rows[i] * (double)dense[i];
    assert_near(left, right, 1e-7 * size);
    embla_scatter_free(scatter);
    embla_table_free(table);
}

/* Each process sums its own shards, sends floats, and the owner adds them in order. */
static void shards_give_the_bits_of_processes(void **state)
{
    enum { ROWS = 20, DIM = 40, COUNT = 190, SHARD = 16, SHARDS = 12 };
    static float gradients[COUNT * DIM], sent[SHARDS * SHARD * DIM], want[ROWS * DIM],
        got[ROWS * DIM];
    int64_t ids[COUNT], from[SHARDS * SHARD];
    size_t rows = 0;
    embla_scatter *scatter = NULL;
    (void)state;
    make_ids(3, ROWS, COUNT, 8, ids);
    check_fill(3, COUNT * DIM, gradients);
    assert_ok(embla_scatter_new(ROWS, COUNT, &scatter));
    for (size_t first = 0; first < COUNT; first += SHARD) {
        size_t n = COUNT - first < SHARD ? COUNT - first : SHARD;
        assert_ok(embla_scatter_plan_rows(scatter, ids + first, n, NULL));
        assert_ok(embla_scatter_sum(scatter, gradients + first * DIM, DIM, sent + rows * DIM));
        memcpy(from + rows, embla_scatter_rows(scatter),
               embla_scatter_count(scatter) * sizeof *from);
        rows += embla_scatter_count(scatter);
    }
    assert_ok(embla_scatter_plan_rows(scatter, from, rows, NULL));
    assert_ok(embla_scatter_sum(scatter, sent, DIM, want));
    size_t count = embla_scatter_count(scatter);
    assert_ok(
        embla_scatter_plan_rows(scatter, ids, COUNT, &(embla_scatter_options){.shard = SHARD}));
    assert_int_equal(embla_scatter_count(scatter), count);
    assert_ok(embla_scatter_sum(scatter, gradients, DIM, got));
    assert_memory_equal(got, want, count * DIM * sizeof *got);
    assert_ok(embla_scatter_plan_rows(scatter, ids, COUNT, NULL));
    assert_ok(embla_scatter_sum(scatter, gradients, DIM, got));
    assert_memory_not_equal(got, want, count * DIM * sizeof *got); /* or the test shows nothing */
    embla_scatter_free(scatter);
}

static void numbers_of_all_kinds_pass(void **state)
{
    static const float odd[] = {NAN,   INFINITY, -INFINITY, 0.0f,   -0.0f,   1e38f, -1e38f,
                                3e38f, 3e38f,    1e-42f,    1e-45f, -1e-45f, 1.0f,  -1.0f};
    enum { COUNT = 300, DIM = 52 };
    static float gradients[COUNT * DIM];
    int64_t ids[COUNT];
    uint64_t seed = 6;
    (void)state;
    for (size_t round = 0; round < 12; round++) {
        batch b = {.table_rows = 150, .ids = ids, .count = COUNT, .dim = DIM};
        size_t kinds = round % 2 ? COUNT_OF(odd) : COUNT_OF(odd) - 3; /* the first three seldom */
        for (size_t i = 0; i < COUNT * DIM; i++)
            gradients[i] = odd[(round % 2 ? 0 : 3) + check_below(&seed, kinds)];
        make_ids((int)(round % 4), 150, COUNT, round, ids);
        b.gradients = gradients;
        b.options.by_count = round % 3 == 0;
        b.options.max_norm = round % 4 < 2 ? 0.0f : 10.0f;
        b.options.shard = round % 5 == 0 ? 13 : 0;
        for (size_t s = 0; s < CHECK_SETS; s++) {
            if (!embla_kernels_find(check_sets[s])) continue;
            embla_kernels_use(embla_kernels_find(check_sets[s]));
            check_batch(&b);
        }
    }
    embla_kernels_use(NULL);
    /* a sum that no float holds is infinite, but can be shortened */
    const float huge[] = {3e38f, 3e38f};
    float out = 0.0f;
    const int32_t tokens[] = {0, 0};
    embla_scatter *scatter = NULL;
    assert_ok(embla_scatter_new(1, 2, &scatter));
    assert_ok(embla_scatter_plan(scatter, tokens, 2, NULL));
    assert_ok(embla_scatter_sum(scatter, huge, 1, &out));
    assert_true(isinf(out));
    assert_ok(embla_scatter_plan(scatter, tokens, 2, &(embla_scatter_options){.max_norm = 2.0f}));
    assert_ok(embla_scatter_sum(scatter, huge, 1, &out));
    assert_true(out == 2.0f);
    embla_scatter_free(scatter);
}

static void frozen_rows_are_left_out(void **state)
{
    enum { ROWS = 70, COUNT = 400, DIM = 9 };
    static float gradients[COUNT * DIM];
    static uint8_t mask[ROWS];
    const int64_t listed[] = {69, 0, 31, 31, 5}, all_ids = ROWS;
    int64_t ids[COUNT];
    uint64_t seed = 2;
    (void)state;
    check_fill(3, COUNT * DIM, gradients);
    for (size_t r = 0; r < ROWS; r++) mask[r] = (uint8_t)(check_below(&seed, 3) == 0 ? 128 : 0);
    for (int ways = 0; ways < 8; ways++)
        for (size_t count = 1; count <= COUNT; count *= 20) {
            batch b = {
                .table_rows = ROWS, .ids = ids, .count = count, .dim = DIM, .gradients = gradients};
            if (ways & 1) b.options.frozen.below = 11;
            if (ways & 2) b.options.frozen.mask = mask;
            if (ways & 4) b.options.frozen.rows = listed;
            if (ways & 4) b.options.frozen.count = COUNT_OF(listed);
            make_ids(0, ROWS, count, (uint64_t)ways, ids);
            check_batch(&b);
            if (ways == 1) b.options.frozen.below = all_ids; /* none learns */
            check_batch(&b);
        }
}

/* One handle for many steps: nothing of a plan is left in the next. */
static void plans_follow_each_other(void **state)
{
    const int32_t tokens[] = {3, 1, 3, 0, 2};
    const float gradients[] = {1.0f, 2.0f, 4.0f, 8.0f, 16.0f};
    const embla_scatter_options one = {.frozen = {.below = 2}, .max_norm = 1.0f, .shard = 2};
    uint8_t mask[] = {1, 0, 0, 1};
    const embla_scatter_options two = {.frozen = {.mask = mask}, .by_count = true};
    embla_scatter *scatter = NULL;
    float out[4] = {0};
    (void)state;
    assert_ok(embla_scatter_new(4, 5, &scatter));
    for (int round = 0; round < 3; round++) {
        assert_ok(embla_scatter_plan(scatter, tokens, 5, &one));
        assert_int_equal(embla_scatter_count(scatter), 2);
        assert_ok(embla_scatter_plan(scatter, tokens, 5, &two));
        assert_int_equal(embla_scatter_count(scatter), 2);
        assert_ok(embla_scatter_sum(scatter, gradients, 1, out));
        assert_true(out[0] == 2.0f && out[1] == 16.0f);
        mask[2] = 1; /* for the rounds that follow */
        assert_ok(embla_scatter_plan(scatter, tokens, 5, &two));
        assert_int_equal(embla_scatter_count(scatter), 1);
        mask[2] = 0;
        assert_ok(embla_scatter_plan(scatter, tokens, 2, NULL));
        assert_ok(embla_scatter_sum(scatter, gradients, 1, out));
        assert_int_equal(embla_scatter_count(scatter), 2);
        assert_true(out[0] == 2.0f && out[1] == 1.0f);
    }
    embla_scatter_free(scatter);
}

/* 49 is the least number whose reciprocal, times itself, is not 1. The mean below lies in the
 * middle of two floats, so the least error shows. */
static void by_count_divides(void **state)
{
    int32_t tokens[49] = {0};
    float gradients[49], out = 0.0f;
    embla_scatter *scatter = NULL;
    (void)state;
    for (size_t i = 0; i < 49; i++) gradients[i] = 1.0f;
    gradients[7] = 2.0f;
    gradients[9] = -49.0f * 0x1p-25f;
    assert_ok(embla_scatter_new(1, 49, &scatter));
    assert_ok(embla_scatter_plan(scatter, tokens, 49, &(embla_scatter_options){.by_count = true}));
    assert_ok(embla_scatter_sum(scatter, gradients, 1, &out));
    assert_true(out == 1.0f);
    embla_scatter_free(scatter);
}

static void a_set_of_frozen_rows_is_a_copy(void **state)
{
    enum { ROWS = 5000 };
    uint8_t mask[ROWS] = {0};
    int64_t listed[] = {4999, 64, 2};
    embla_frozen frozen = {.below = 2, .mask = mask, .rows = listed, .count = 3}, same = frozen;
    embla_frozen_set set = {0};
    size_t live = embla_mem_live();
    (void)state;
    mask[63] = 1;
    assert_ok(embla_frozen_copy(&frozen, ROWS, &set));
    memset(mask, 1, sizeof mask);
    listed[0] = listed[1] = 77;
    for (int64_t r = 0; r < ROWS; r++)
        assert_int_equal(embla_frozen_has(&set, r), r < 3 || r == 63 || r == 64 || r == 4999);
    embla_frozen_free(&set);
    embla_frozen_free(&set);
    same.mask = NULL;
    same.count = 0;
    assert_ok(embla_frozen_copy(&same, ROWS, &set)); /* a number is enough */
    assert_null(set.bits);
    assert_true(embla_frozen_has(&set, 1) && !embla_frozen_has(&set, 2));
    assert_ok(embla_frozen_copy(NULL, ROWS, &set));
    assert_false(embla_frozen_has(&set, 0));
    embla_mem_fail(1, false);
    set.below = 55;
    assert_status(embla_frozen_copy(&frozen, ROWS, &set), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_int_equal(set.below, 55);
    embla_frozen_free(NULL);
    assert_int_equal(embla_mem_live(), live);
}

/* Rows far apart take several passes of the sort; a batch of every size up to some. */
static void rows_of_giant_tables_are_put_in_order(void **state)
{
    static const int64_t tables[] = {1,
                                     2,
                                     2048,
                                     2049,
                                     (int64_t)1 << 22,
                                     ((int64_t)1 << 22) + 1,
                                     (int64_t)1 << 33,
                                     (int64_t)1 << 40};
    static int64_t ids[MOST_IDS];
    static float gradients[MOST_IDS], out[MOST_IDS];
    uint64_t seed = 3;
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tables); t++)
        for (size_t count = 1; count <= MOST_IDS; count = count * 2 + 1) {
            embla_scatter *scatter = NULL;
            size_t u = 0;
            for (size_t i = 0; i < count; i++) {
                ids[i] = (int64_t)check_below(&seed, (uint64_t)tables[t]);
                if (i % 3 == 2) ids[i] = ids[i - 2];
                gradients[i] = (float)(i + 1);
            }
            ids[0] = tables[t] - 1;
            assert_ok(embla_scatter_new(tables[t], count, &scatter));
            assert_ok(embla_scatter_plan_rows(scatter, ids, count, NULL));
            assert_ok(embla_scatter_sum(scatter, gradients, 1, out));
            const int64_t *rows = embla_scatter_rows(scatter);
            double sum = 0.0;
            for (u = 0; u < embla_scatter_count(scatter); u++) {
                double want = 0.0;
                for (size_t i = 0; i < count; i++)
                    if (ids[i] == rows[u]) want += (double)gradients[i];
                assert_true(u == 0 || rows[u] > rows[u - 1]);
                assert_true(want > 0.0 && (double)out[u] == (double)(float)want);
                sum += want;
            }
            assert_true(sum == 0.5 * (double)count * (double)(count + 1));
            embla_scatter_free(scatter);
        }
}

static void what_is_wrong_is_refused(void **state)
{
    const int32_t tokens[] = {1, 4, -1};
    const int64_t rows[] = {1, -1, 5}, frozen[] = {3, 4};
    embla_scatter *scatter = NULL, *none = NULL;
    const float gradients[] = {1.0f, 2.0f};
    (void)state;
    assert_status(embla_scatter_new(4, 2, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_new(0, 2, &none), EMBLA_ERR_ARGUMENT);
    assert_error_has("rows is 0");
    assert_status(embla_scatter_new(((int64_t)1 << 40) + 1, 2, &none), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_new((int64_t)1 << 40, (1u << 24) + 1, &none), EMBLA_ERR_ARGUMENT);
    assert_error_has(
        "16777217 tokens; for a table of 1099511627776 rows it must be at most 16777216");
    assert_status(embla_scatter_new(1, SIZE_MAX, &none), EMBLA_ERR_ARGUMENT);
    assert_null(none);
    assert_ok(embla_scatter_new(4, 2, &scatter));
    assert_status(embla_scatter_sum(scatter, gradients, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("no plan");
    assert_int_equal(embla_scatter_count(scatter), 0);
    assert_status(embla_scatter_plan(NULL, tokens, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_plan_rows(NULL, rows, 1, NULL), EMBLA_ERR_ARGUMENT);
    const int32_t good[] = {3, 3};
    assert_ok(embla_scatter_plan(scatter, good, 2, NULL));
    assert_status(embla_scatter_plan(scatter, tokens, 3, NULL), EMBLA_ERR_SHAPE);
    assert_error_has("count is 3; the scatter has room for only 2");
    assert_status(embla_scatter_plan(scatter, tokens, 2, NULL), EMBLA_ERR_RANGE);
    assert_error_has("token 4 at index 1 is out of range: the table has 4");
    assert_status(embla_scatter_plan(scatter, tokens + 2, 1, NULL), EMBLA_ERR_RANGE);
    assert_error_has("token -1 at index 0");
    assert_status(embla_scatter_plan_rows(scatter, rows, 2, NULL), EMBLA_ERR_RANGE);
    assert_error_has("row -1 at index 1");
    assert_status(embla_scatter_plan(scatter, NULL, 2, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("tokens is NULL, but its count is 2");
    assert_status(embla_scatter_plan_rows(scatter, NULL, 1, NULL), EMBLA_ERR_ARGUMENT);
    const struct {
        embla_scatter_options options;
        embla_status status;
        const char *text;
    } bad[] = {
        {{.threads = -2}, EMBLA_ERR_ARGUMENT, "threads is -2"},
        {{.max_norm = -1.0f}, EMBLA_ERR_ARGUMENT, "max_norm is -1"},
        {{.max_norm = NAN}, EMBLA_ERR_ARGUMENT, "max_norm is"},
        {{.frozen = {.below = -1}}, EMBLA_ERR_RANGE, "below -1"},
        {{.frozen = {.below = 5}},
         EMBLA_ERR_RANGE,
         "rows below 5 are to be frozen, but the table has 4"},
        {{.frozen = {.count = 3}},
         EMBLA_ERR_ARGUMENT,
         "frozen.rows is NULL, but frozen.count is 3"},
        {{.frozen = {.rows = frozen, .count = 2}},
         EMBLA_ERR_RANGE,
         "frozen row 4 at index 1 is out of range: the table has 4"},
        {{.frozen = {.rows = rows + 1, .count = 1}}, EMBLA_ERR_RANGE, "frozen row -1 at index 0"},
    };
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        assert_status(embla_scatter_plan(scatter, good, 2, &bad[i].options), bad[i].status);
        assert_error_has(bad[i].text);
        assert_status(embla_scatter_plan_rows(scatter, rows, 1, &bad[i].options), bad[i].status);
    }
    /* the plan that was there still is */
    float out = 0.0f;
    assert_int_equal(embla_scatter_count(scatter), 1);
    assert_ok(embla_scatter_sum(scatter, gradients, 1, &out));
    assert_true(out == 3.0f && embla_scatter_rows(scatter)[0] == 3);
    embla_scatter_free(scatter);
    embla_scatter_free(NULL);
}

static void sums_that_cannot_be_are_refused(void **state)
{
    const int32_t tokens[] = {2, 2};
    const float gradients[] = {1.0f, 2.0f};
    float out = 7.0f;
    embla_scatter *scatter = NULL;
    (void)state;
    assert_ok(embla_scatter_new((int64_t)1 << 40, 2, &scatter));
    assert_ok(embla_scatter_plan(scatter, tokens, 2, NULL));
    assert_status(embla_scatter_sum(NULL, gradients, 1, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_add(NULL, gradients, 1, &out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_sum(scatter, NULL, 1, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("gradients is NULL, but its count is 2");
    assert_status(embla_scatter_sum(scatter, gradients, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL, but its count is 1");
    assert_status(embla_scatter_add(scatter, gradients, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_scatter_sum(scatter, gradients, 0, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("dim is 0");
    assert_status(embla_scatter_sum(scatter, gradients, (1u << 20) + 1, &out), EMBLA_ERR_ARGUMENT);
    assert_true(out == 7.0f);
    embla_scatter_free(scatter);
    assert_ok(embla_scatter_new(3, 0, &scatter)); /* room for none, and none */
    assert_ok(embla_scatter_plan(scatter, NULL, 0, NULL));
    assert_ok(embla_scatter_sum(scatter, NULL, 4, NULL));
    assert_ok(embla_scatter_add(scatter, NULL, 4, NULL));
    assert_int_equal(embla_scatter_count(scatter), 0);
    embla_scatter_free(scatter);
}

static void every_allocation_may_fail(void **state)
{
    size_t live = embla_mem_live();
    (void)state;
    for (size_t at = 1; at <= 2; at++)
        for (int forever = 0; forever < 2; forever++) {
            embla_scatter *scatter = NULL;
            embla_mem_fail(at, forever);
            assert_status(embla_scatter_new(100, 50, &scatter), EMBLA_ERR_MEMORY);
            embla_mem_fail(0, false);
            assert_null(scatter);
            assert_int_equal(embla_mem_live(), live);
        }
}

int main(void)
{
    /* results of 64 KiB and more are written ahead anyway; so let large ones be streamed */
    (void)setenv("EMBLA_WRITE", "stream", 1);
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_are_those_of_the_definition),
        cmocka_unit_test(large_batches_are_those_of_the_definition_for_any_threads),
        cmocka_unit_test(it_is_the_adjoint_of_lookup),
        cmocka_unit_test(shards_give_the_bits_of_processes),
        cmocka_unit_test(numbers_of_all_kinds_pass),
        cmocka_unit_test(frozen_rows_are_left_out),
        cmocka_unit_test(plans_follow_each_other),
        cmocka_unit_test(by_count_divides),
        cmocka_unit_test(a_set_of_frozen_rows_is_a_copy),
        cmocka_unit_test(rows_of_giant_tables_are_put_in_order),
        cmocka_unit_test(what_is_wrong_is_refused),
        cmocka_unit_test(sums_that_cannot_be_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
