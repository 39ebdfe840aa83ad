/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest rows, by both ways, against a slow search that sorts all of them: every dtype and
 * measure, rows that are equal, zero, huge, tiny or no numbers, whatever the threads, the set
 * of kernels and the number of queries.
 */
#include "check.h"
#include "nearest.h"

#include <math.h>
#include <stdio.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/mem.h"
#include "near/near.h"
#include "slow.h"

enum { DIM_MOST = 256 };

/* ---- the slow search ---- */

static int by_score(const void *a, const void *b)
{
    const embla_neighbour *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* The larger the nearer; NaN: the row is not finite. */
static double slow_score(embla_measure measure, const float *x, const float *q, size_t n)
{
    double xx = embla_kernels_scalar.dot(x, x, n), qq = embla_kernels_scalar.dot(q, q, n);
    double xq = embla_kernels_scalar.dot(x, q, n);
    if (!isfinite(xx)) return NAN;
    if (measure == EMBLA_MEASURE_DOT) return xq;
    if (measure == EMBLA_MEASURE_EUCLIDEAN) return -sqrt(fmax(0.0, xx + qq - 2.0 * xq));
    double norms = sqrt(xx) * sqrt(qq);
    return norms == 0.0 ? 0.0 : xq / norms;
}

/* All rows in order, the best k of them to out. */
static void slow(const embla_table *table, const float *query, size_t k,
                 const embla_near_options *o, size_t number, embla_neighbour *out,
                 int64_t *nonfinite)
{
    static float row[DIM_MOST];
    int64_t rows =
        o->rows > 0 && o->rows < embla_table_rows(table) ? o->rows : embla_table_rows(table);
    embla_neighbour *all = malloc((size_t)rows * sizeof *all);
    size_t n = 0, dim = embla_table_dim(table);
    assert_non_null(all);
    *nonfinite = 0;
    for (int64_t r = 0; r < rows; r++) {
        bool out_of_it = false;
        check_row(table, r, row);
        double score = slow_score(o->measure, row, query, dim);
        *nonfinite += isnan(score) ? 1 : 0;
        for (size_t i = 0; i < o->exclude_count; i++)
            out_of_it = out_of_it || o->exclude[number * o->exclude_count + i] == r;
        if (!isnan(score) && !out_of_it) all[n++] = (embla_neighbour){r, score};
    }
    qsort(all, n, sizeof *all, by_score);
    for (size_t i = 0; i < k; i++) {
        out[i] = i < n ? all[i] : (embla_neighbour){.row = -1};
        if (o->measure == EMBLA_MEASURE_EUCLIDEAN && i < n) out[i].score = fabs(out[i].score);
    }
    free(all);
}

static embla_status nearest_by(embla_near_way way, const embla_table *table, const float *queries,
                               size_t count, size_t k, const embla_near_options *options,
                               embla_neighbour *out, embla_near_report *report,
                               embla_near_ways *ways)
{
    const embla_near_options asked = nearest_options(options, k);
    return embla_near_by(way, table, queries, count, &asked, out, report, ways);
}

static void assert_same(const embla_neighbour *got, const embla_neighbour *wanted, size_t n,
                        const char *what)
{
    for (size_t i = 0; i < n; i++)
        if (got[i].row != wanted[i].row ||
            memcmp(&got[i].score, &wanted[i].score, sizeof(double)) != 0)
            fail_msg("%s: place %zu is row %lld, %.17g, not row %lld, %.17g", what, i,
                     (long long)got[i].row, got[i].score, (long long)wanted[i].row,
                     wanted[i].score);
}

/* Both ways, 1 and 3 threads, every measure, against the slow search. Returns how many queries
 * products settled, of the last measure. */
static size_t compare(const embla_table *table, const float *queries, size_t count, size_t k,
                      embla_near_options options)
{
    size_t dim = embla_table_dim(table), settled = 0;
    embla_neighbour *wanted = malloc(count * k * sizeof *wanted);
    embla_neighbour *got = malloc(count * k * sizeof *got);
    assert_true(wanted && got);
    for (int measure = EMBLA_MEASURE_EUCLIDEAN; measure >= EMBLA_MEASURE_COSINE; measure--) {
        int64_t nonfinite = 0;
        options.measure = (embla_measure)measure;
        for (size_t i = 0; i < count; i++)
            slow(table, queries + i * dim, k, &options, i, wanted + i * k, &nonfinite);
        for (int way = EMBLA_NEAR_CHOOSE; way <= EMBLA_NEAR_BY_PRODUCT; way++)
            for (options.threads = 1; options.threads <= 3; options.threads += 2) {
                embla_near_report report = {0};
                embla_near_ways ways = {0};
                char what[64];
                (void)snprintf(what, sizeof what, "%s, way %d, %d threads",
                               embla_measure_name(options.measure), way, options.threads);
                memset(got, 0xff, count * k * sizeof *got);
                assert_ok(nearest_by((embla_near_way)way, table, queries, count, k, &options, got,
                                     &report, &ways));
                assert_same(got, wanted, count * k, what);
                assert_int_equal(report.nonfinite, nonfinite);
                settled = ways.by_product;
            }
    }
    free(wanted);
    free(got);
    return settled;
}

/* Most queries are rows of the table, or nearly. */
static float *make_queries(const embla_table *table, size_t count, uint64_t seed)
{
    size_t dim = embla_table_dim(table);
    float *queries = malloc(count * dim * sizeof *queries);
    assert_non_null(queries);
    for (size_t i = 0; i < count; i++) {
        float *query = queries + i * dim;
        int64_t row = (int64_t)check_below(&seed, (uint64_t)embla_table_rows(table));
        check_row(table, row, query);
        for (size_t j = 0; j < dim; j++) {
            if (i % 3 || !isfinite(query[j])) query[j] = check_unit(&seed);
            if (i % 3 == 2) query[j] *= 1000.0f;
        }
    }
    return queries;
}

/* ---- the tests ---- */

static void every_dtype_and_measure_as_by_the_slow_search(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        size_t dim = check_dim((embla_dtype)d, 96);
        embla_table *table = check_table((embla_dtype)d, dim > 96 ? 600 : 1500, dim, 5);
        float *queries = make_queries(table, 20, 6);
        compare(table, queries, 20, 7, (embla_near_options){0});
        free(queries);
        embla_table_free(table);
    }
}

static void every_set_of_kernels_finds_the_same(void **state)
{
    (void)state;
    embla_table *table = check_table(EMBLA_BF16, 700, 100, 8);
    float *queries = make_queries(table, 17, 9);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        compare(table, queries, 17, 3, (embla_near_options){0});
    }
    embla_kernels_use(NULL);
    free(queries);
    embla_table_free(table);
}

/* Rows = 1, dim = 1, k above the rows, fewer rows than a tile, the first so many only. */
static void small_and_odd_shapes(void **state)
{
    const struct {
        int64_t rows;
        size_t dim, count, k;
        int64_t first;
    } shapes[] = {{1, 1, 1, 1, 0},    {1, 1, 9, 3, 0},      {2, 1, 6, 5, 0},
                  {3, 17, 300, 2, 0}, {5, 33, 7, 5, 0},     {64, 1, 20, 64, 0},
                  {65, 2, 5, 70, 0},  {513, 15, 257, 1, 0}, {600, 16, 9, 3, 7},
                  {600, 16, 9, 8, 1}, {90, 31, 8, 90, 1000}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        embla_table *table = check_table(EMBLA_F32, shapes[i].rows, shapes[i].dim, i);
        float *queries = make_queries(table, shapes[i].count, i + 20);
        compare(table, queries, shapes[i].count, shapes[i].k,
                (embla_near_options){.rows = shapes[i].first});
        free(queries);
        embla_table_free(table);
    }
}

/* Rows apart from each other, from an address that no float may have. */
static void rows_that_lie_apart_or_askew(void **state)
{
    enum { ROWS = 300, DIM = 24 };
    static char bytes[ROWS * 130 + 64];
    uint64_t seed = 4;
    (void)state;
    for (size_t stride = 96; stride <= 130; stride += 17)
        for (size_t offset = 0; offset < 6; offset += 3) {
            embla_table *table = NULL;
            embla_table_options options = {.row_stride = stride};
            for (size_t r = 0; r < ROWS; r++)
                for (size_t j = 0; j < DIM; j++) {
                    float x = check_unit(&seed);
                    memcpy(bytes + offset + r * stride + j * sizeof x, &x, sizeof x);
                }
            assert_ok(embla_table_view(
                &(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM}, bytes + offset,
                sizeof bytes - offset, &options, &table));
            float *queries = make_queries(table, 9, 3);
            compare(table, queries, 9, 4, (embla_near_options){0});
            free(queries);
            embla_table_free(table);
        }
}

/* A table of f32 with rows written by hand. */
static embla_table *table_of(const float *values, int64_t rows, size_t dim)
{
    embla_table *table = NULL;
    assert_ok(embla_table_new(EMBLA_F32, rows, dim, NULL, &table));
    assert_ok(embla_table_write(table, 0, (size_t)rows, values));
    return table;
}

static void equal_rows_come_in_the_order_of_their_numbers(void **state)
{
    enum { ROWS = 1200, DIM = 20 };
    static float values[ROWS * DIM];
    (void)state;
    for (size_t i = 0; i < ROWS * DIM; i++) values[i] = (float)(i % DIM) - 7.5f;
    embla_table *table = table_of(values, ROWS, DIM);
    float *queries = make_queries(table, 9, 2);
    compare(table, queries, 9, 30, (embla_near_options){0});
    free(queries);
    embla_table_free(table);
    /* four directions, 300 rows of each, of other lengths */
    for (size_t i = 0; i < ROWS * DIM; i++)
        values[i] = (float)((i / DIM) % 4 * (i % DIM) % 7 + 1) * (float)(1 << (i / DIM) % 3);
    table = table_of(values, ROWS, DIM);
    queries = make_queries(table, 40, 3);
    compare(table, queries, 40, 5, (embla_near_options){0});
    free(queries);
    embla_table_free(table);
}

/* NaN, infinities, zeros, numbers at both ends of what a float holds, and rows all but equal. */
static void hostile_rows(void **state)
{
    enum { ROWS = 900, DIM = 19, COUNT = 24 };
    static float values[ROWS * DIM], queries[COUNT * DIM];
    const float sizes[] = {1.0f,      3e38f,    1e30f,     1e-30f, 0x1p-149f,
                           0x1p-130f, 0x1p-39f, 0x1.8p59f, 1e19f,  1e-7f};
    uint64_t seed = 77;
    (void)state;
    for (int kind = 0; kind < 4; kind++) { /* more and more of them */
        for (size_t r = 0; r < ROWS; r++) {
            float size = check_below(&seed, 4) < (uint64_t)kind
                             ? sizes[check_below(&seed, COUNT_OF(sizes))]
                             : 1.0f;
            for (size_t j = 0; j < DIM; j++) values[r * DIM + j] = check_unit(&seed) * size;
            if (r % 50 == 3) values[r * DIM + r % DIM] = NAN;
            if (r % 60 == 4) values[r * DIM + r % DIM] = r % 120 == 4 ? INFINITY : -INFINITY;
            if (r % 40 == 5) memset(values + r * DIM, 0, DIM * sizeof(float));
            if (r % 30 == 6) memcpy(values + r * DIM, values + (r - 1) * DIM, DIM * sizeof(float));
            if (r % 30 == 7) {
                memcpy(values + r * DIM, values + (r - 3) * DIM, DIM * sizeof(float));
                values[r * DIM] = nextafterf(values[r * DIM], 0.0f);
            }
        }
        for (size_t i = 0; i < COUNT * DIM; i++)
            queries[i] = check_unit(&seed) * sizes[i / DIM % COUNT_OF(sizes)];
        memset(queries + 5 * DIM, 0, DIM * sizeof(float));
        for (size_t j = 0; j < DIM; j++) queries[6 * DIM + j] = 3.4e38f;
        embla_table *table = table_of(values, ROWS, DIM);
        compare(table, queries, COUNT, 12, (embla_near_options){0});
        compare(table, queries, COUNT, ROWS, (embla_near_options){0});
        embla_table_free(table);
    }
}

/* A sum that is -infinity in float and the largest of all in truth must not be lost. */
static void what_overflows_in_float_is_not_lost(void **state)
{
    enum { ROWS = 500, DIM = 64, COUNT = 9 };
    static float values[ROWS * DIM], queries[COUNT * DIM];
    uint64_t seed = 5;
    (void)state;
    for (size_t i = 0; i < ROWS * DIM; i++) values[i] = check_unit(&seed);
    for (size_t j = 0; j < DIM; j++) {
        values[123 * DIM + j] = j < 20 ? -3e38f : 3e38f;
        for (size_t i = 0; i < COUNT; i++) queries[i * DIM + j] = 1.0f + 0.01f * check_unit(&seed);
    }
    embla_table *table = table_of(values, ROWS, DIM);
    embla_near_options options = {.measure = EMBLA_MEASURE_DOT};
    embla_neighbour out[COUNT];
    assert_ok(
        nearest_by(EMBLA_NEAR_BY_PRODUCT, table, queries, COUNT, 1, &options, out, NULL, NULL));
    for (size_t i = 0; i < COUNT; i++) assert_int_equal(out[i].row, 123);
    compare(table, queries, COUNT, 3, (embla_near_options){0});
    embla_table_free(table);
}

/* Products that vanish in float are rows like others: all of the table is next to nothing. */
static void what_vanishes_in_float_is_not_lost(void **state)
{
    enum { ROWS = 700, DIM = 8, COUNT = 40 };
    static float values[ROWS * DIM], queries[COUNT * DIM];
    uint64_t seed = 6;
    (void)state;
    for (float size = 0x1p-147f; size < 0x1p-120f; size *= 0x1p12f) {
        for (size_t i = 0; i < ROWS * DIM; i++)
            values[i] = size * (float)((int)check_below(&seed, 9) - 4);
        for (size_t i = 0; i < COUNT * DIM; i++) queries[i] = check_unit(&seed);
        embla_table *table = table_of(values, ROWS, DIM);
        compare(table, queries, COUNT, 3, (embla_near_options){0});
        embla_table_free(table);
        for (size_t i = 0; i < COUNT * DIM; i++) queries[i] *= size; /* and the other way round */
        for (size_t i = 0; i < ROWS * DIM; i++) values[i] = 1000.0f * check_unit(&seed);
        table = table_of(values, ROWS, DIM);
        compare(table, queries, COUNT, 3, (embla_near_options){0});
        embla_table_free(table);
    }
}

/* Long lists: several passes over the table, each with its own queries and rows to leave out. */
static void more_queries_than_one_pass_takes(void **state)
{
    enum { ROWS = 2500, COUNT = 300, K = 2000 };
    static int64_t exclude[COUNT];
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, 6, 40);
    float *queries = make_queries(table, COUNT, 41);
    embla_neighbour *by_scan = malloc(COUNT * K * sizeof *by_scan);
    embla_neighbour *out = malloc(COUNT * K * sizeof *out);
    embla_near_ways ways;
    assert_true(by_scan && out);
    for (size_t i = 0; i < COUNT; i++) exclude[i] = (int64_t)(i * 8);
    embla_near_options options = {.exclude = exclude, .exclude_count = 1, .threads = 1};
    assert_ok(
        nearest_by(EMBLA_NEAR_BY_SCAN, table, queries, COUNT, K, &options, by_scan, NULL, NULL));
    assert_ok(
        nearest_by(EMBLA_NEAR_BY_PRODUCT, table, queries, COUNT, K, &options, out, NULL, &ways));
    assert_same(out, by_scan, COUNT * K, "several passes");
    options.rows = 20; /* nothing is dropped: nothing is asked again */
    assert_ok(
        nearest_by(EMBLA_NEAR_BY_PRODUCT, table, queries, COUNT, 20, &options, out, NULL, &ways));
    assert_int_equal(ways.again, 0);
    free(by_scan);
    free(out);
    free(queries);
    embla_table_free(table);
}

/* Rows nearer to each other than products can tell: the scan decides. */
static void near_ties_are_settled_in_double(void **state)
{
    enum { ROWS = 400, DIM = 50, COUNT = 12 };
    static float values[ROWS * DIM];
    uint64_t seed = 50;
    (void)state;
    for (size_t r = 0; r < ROWS; r++)
        for (size_t j = 0; j < DIM; j++)
            values[r * DIM + j] = (float)(j + 1) * (1.0f + 0x1p-22f * check_unit(&seed));
    embla_table *table = table_of(values, ROWS, DIM);
    float *queries = make_queries(table, COUNT, 51);
    compare(table, queries, COUNT, 20, (embla_near_options){0});
    free(queries);
    embla_table_free(table);
}

/* One row in 16 is close to the query, each a little closer than the one before, by less than a sum
 * of floats can tell. The other rows are far away, so that a scan filters (near/scan.c), and must
 * not drop a row that is better than all before it. */
static void rows_that_only_exact_sums_can_rank(void **state)
{
    enum { ROWS = 6000, DIM = 96 };
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 3);
    float *rows = embla_table_data(table), base[DIM], query[DIM];
    (void)state;
    check_fill(8, DIM, base);
    base[0] = 0.5f;
    memcpy(query, base, sizeof query);
    query[0] = 1.0f;
    for (size_t r = 0; r < ROWS; r += 16) {
        memcpy(rows + r * DIM, base, sizeof base);
        rows[r * DIM] += (float)(r / 16) * 0x1p-24f;
    }
    compare(table, query, 1, 10, (embla_near_options){0});
    embla_table_free(table);
}

static void rows_to_leave_out_are_not_found(void **state)
{
    enum { COUNT = 30, OUT = 3 };
    int64_t exclude[COUNT * OUT];
    embla_neighbour first[COUNT];
    (void)state;
    embla_table *table = check_table(EMBLA_F16, 800, 40, 12);
    float *queries = make_queries(table, COUNT, 13);
    assert_ok(nearest(table, queries, COUNT, 1, NULL, first, NULL));
    for (size_t i = 0; i < COUNT; i++) { /* the best, none, and one that is no row */
        exclude[i * OUT] = i % 2 ? -1 : first[i].row;
        exclude[i * OUT + 1] = i % 5 ? 800 + (int64_t)i : INT64_MIN;
        exclude[i * OUT + 2] = i % 2 ? first[i].row : (int64_t)i;
    }
    embla_near_options options = {.exclude = exclude, .exclude_count = OUT};
    compare(table, queries, COUNT, 5, options);
    options.rows = 3; /* nothing is left of the table */
    for (size_t i = 0; i < COUNT * OUT; i++) exclude[i] = (int64_t)(i % 3);
    compare(table, queries, COUNT, 2, options);
    free(queries);
    embla_table_free(table);
}

/* Random rows are settled by products alone, and rightly so. */
static void many_queries_go_by_products(void **state)
{
    (void)state;
    embla_table *table = check_table(EMBLA_F32, 5000, 100, 30);
    float *queries = make_queries(table, 300, 31);
    embla_neighbour *by_scan = malloc(300 * 10 * sizeof *by_scan),
                    *out = malloc(300 * 10 * sizeof *out);
    embla_near_ways ways;
    assert_true(by_scan && out);
    for (int measure = EMBLA_MEASURE_COSINE; measure <= EMBLA_MEASURE_EUCLIDEAN; measure++) {
        embla_near_options options = {.measure = (embla_measure)measure};
        assert_ok(nearest_by(EMBLA_NEAR_BY_SCAN, table, queries, 300, 10, &options, by_scan, NULL,
                             &ways));
        assert_int_equal(ways.by_product + ways.again, 0);
        assert_ok(
            nearest_by(EMBLA_NEAR_CHOOSE, table, queries, 300, 10, &options, out, NULL, &ways));
        assert_same(out, by_scan, 300 * 10, "products");
        /* one unit for all distances: of queries of other lengths only the longest are settled */
        if (ways.by_product + ways.again > 0)
            assert_true(ways.by_product >= (measure == EMBLA_MEASURE_EUCLIDEAN ? 100 : 290));
    }
    free(by_scan);
    free(out);
    free(queries);
    embla_table_free(table);
}

/* ---- refusals ---- */

static void what_cannot_be_right_is_refused(void **state)
{
    float query[2][4] = {{1, 2, 3, 4}, {1, 2, 3, 4}};
    embla_neighbour out[8], before[8];
    embla_near_report report = {.rows = -5, .nonfinite = -5};
    (void)state;
    embla_table *table = check_table(EMBLA_F32, 5, 4, 1);
    memset(out, 0x5a, sizeof out);
    memcpy(before, out, sizeof out);
    assert_status(nearest(NULL, query[0], 1, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(nearest(table, NULL, 1, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("queries");
    assert_status(nearest(table, query[0], 1, 1, NULL, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out");
    assert_status(nearest(table, query[0], 2, SIZE_MAX / 2, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(nearest(table, query[0], SIZE_MAX / 8, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    const embla_near_options wrong[] = {{.rows = -1},
                                        {.threads = -1},
                                        {.measure = (embla_measure)3},
                                        {.measure = (embla_measure)-1},
                                        {.exclude_count = 1}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_status(nearest(table, query[0], 1, 1, &wrong[i], out, &report), EMBLA_ERR_ARGUMENT);
    const float bad[] = {NAN, INFINITY, -INFINITY};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        query[1][2] = bad[i];
        assert_status(nearest(table, query[0], 2, 2, NULL, out, &report), EMBLA_ERR_ARGUMENT);
        assert_error_has("query 1");
        assert_error_has("value 2");
    }
    assert_memory_equal(out, before, sizeof out);
    assert_int_equal(report.rows, -5);
    assert_ok(nearest(table, NULL, 0, 3, NULL, NULL, &report)); /* nothing asked */
    assert_int_equal(report.rows, 5);
    assert_string_equal(embla_measure_name(EMBLA_MEASURE_EUCLIDEAN), "euclidean");
    assert_null(embla_measure_name((embla_measure)3));
    embla_table_free(table);
}

static void every_allocation_may_fail(void **state)
{
    enum { COUNT = 12, K = 4 };
    embla_neighbour out[COUNT * K], before[COUNT * K], wanted[COUNT * K];
    static float values[200 * 32];
    (void)state;
    for (size_t i = 0; i < 200 * 32; i++) values[i] = i < 100 * 32 ? 1.0f : (float)(i % 37);
    embla_table *table = table_of(values, 200, 32); /* equal rows: some queries asked again */
    float *queries = make_queries(table, COUNT, 3);
    assert_ok(nearest(table, queries, COUNT, K, NULL, wanted, NULL));
    for (int way = EMBLA_NEAR_BY_SCAN; way <= EMBLA_NEAR_BY_PRODUCT; way++)
        for (int forever = 0; forever < 2; forever++) {
            size_t failures = 0;
            for (size_t at = 1;; at++) {
                embla_near_report report = {.rows = -1, .nonfinite = -1};
                size_t live = embla_mem_live();
                memset(out, 0x5a, sizeof out);
                memcpy(before, out, sizeof out);
                embla_mem_fail(at, forever == 1);
                embla_status status = nearest_by((embla_near_way)way, table, queries, COUNT, K,
                                                 NULL, out, &report, NULL);
                embla_mem_fail(0, false);
                assert_int_equal(embla_mem_live(), live);
                if (status == EMBLA_OK) break;
                assert_status(status, EMBLA_ERR_MEMORY);
                assert_memory_equal(out, before, sizeof out);
                assert_int_equal(report.rows, -1);
                failures++;
            }
            assert_true(failures > 2);
            assert_same(out, wanted, COUNT * K, "after a failure");
        }
    free(queries);
    embla_table_free(table);
}

/* ---- memory ---- */

static long peak_kib(void)
{
    struct rusage use;
    (void)getrusage(RUSAGE_SELF, &use);
    return use.ru_maxrss;
}

/* In a child, so that the peak is that of this search alone: status 0, and KiB to the pipe. */
static void search_in_child(embla_dtype dtype, size_t dim, size_t count, int pipe_end)
{
    enum { NUMBERS = 123362 * 4096 }; /* q8_0: 512 MiB */
    int64_t rows = NUMBERS / (int64_t)dim / (dtype == EMBLA_Q8_0 ? 1 : 8);
    embla_table *table = NULL;
    embla_init_options init = {.seed = 2, .kind = EMBLA_INIT_XAVIER};
    float *queries = malloc(count * dim * sizeof *queries);
    embla_neighbour *out = malloc(count * 10 * sizeof *out);
    if (!queries || !out || embla_table_new(dtype, rows, dim, NULL, &table) != EMBLA_OK ||
        embla_table_init(table, &init) != EMBLA_OK)
        _exit(2);
    check_fill(3, count * dim, queries);
    long before = peak_kib();
    const embla_near_options two = {.threads = 2}; /* each has a tile of its own */
    if (nearest(table, queries, count, 10, &two, out, NULL) != EMBLA_OK) _exit(3);
    long more = peak_kib() - before;
    _exit(write(pipe_end, &more, sizeof more) == sizeof more ? 0 : 4);
}

/* bf16 and q8_0 tables are searched without being expanded. */
static void a_search_takes_no_more_than_64_mib(void **state)
{
    const embla_dtype dtypes[] = {EMBLA_Q8_0, EMBLA_BF16, EMBLA_F16};
    const size_t dims[] = {4096, 4096, 1 << 17}, counts[] = {1, 40, 16};
    (void)state;
    if (SLOW_BUILD) {
        print_message("a sanitizer keeps books of its own: skipped\n");
        skip();
    }
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (size_t c = 0; c < COUNT_OF(dims); c++) {
            int ends[2], status = -1;
            long more = 0;
            if (c == 2 && dtypes[d] != EMBLA_BF16) continue; /* one of long rows is enough */
            assert_int_equal(pipe(ends), 0);
            pid_t child = fork();
            assert_true(child >= 0);
            if (child == 0) search_in_child(dtypes[d], dims[c], counts[c], ends[1]);
            assert_int_equal(waitpid(child, &status, 0), child);
            (void)close(ends[1]);
            if (status != 0) {
                (void)close(ends[0]);
                print_message("no memory for a table of 512 MiB: skipped\n");
                skip();
            }
            assert_int_equal(read(ends[0], &more, sizeof more), sizeof more);
            (void)close(ends[0]);
            print_message("%s, dim %zu, %zu queries: %ld KiB beside the table\n",
                          embla_dtype_name(dtypes[d]), dims[c], counts[c], more);
            assert_true(more <= 64 << 10);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_search_takes_no_more_than_64_mib), /* first: it forks */
        cmocka_unit_test(every_dtype_and_measure_as_by_the_slow_search),
        cmocka_unit_test(every_set_of_kernels_finds_the_same),
        cmocka_unit_test(small_and_odd_shapes),
        cmocka_unit_test(rows_that_lie_apart_or_askew),
        cmocka_unit_test(equal_rows_come_in_the_order_of_their_numbers),
        cmocka_unit_test(hostile_rows),
        cmocka_unit_test(what_overflows_in_float_is_not_lost),
        cmocka_unit_test(what_vanishes_in_float_is_not_lost),
        cmocka_unit_test(more_queries_than_one_pass_takes),
        cmocka_unit_test(near_ties_are_settled_in_double),
        cmocka_unit_test(rows_that_only_exact_sums_can_rank),
        cmocka_unit_test(rows_to_leave_out_are_not_found),
        cmocka_unit_test(many_queries_go_by_products),
        cmocka_unit_test(what_cannot_be_right_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
