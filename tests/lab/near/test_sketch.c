/* SPDX-License-Identifier: Apache-2.0 */
/* Searches with a sketch have the bits of searches without one: every dtype, rows that are equal,
 * zero, huge, tiny or no numbers, whatever the threads and the set of kernels.
 */
#include "check.h"
#include "nearest.h"

#include <math.h>

#include "base/mem.h"
#include "near/sketch.h"

enum { ROWS = 5000, K_MOST = 600 };

/* A table of random numbers, some of whose rows are odd. */
static embla_table *make(embla_dtype dtype, size_t dim, bool odd)
{
    embla_table *table = check_table(dtype, ROWS, dim, 7);
    if (!odd) return table;
    float *rows = embla_table_data(table);
    for (size_t i = 0; i < dim; i++) {
        rows[3 * dim + i] = 0.0f;
        rows[4 * dim + i] *= 1e30f;
        rows[5 * dim + i] *= 1e-30f;
        for (size_t r = 40; r < 90; r++) rows[r * dim + i] = rows[39 * dim + i]; /* ties */
    }
    rows[6 * dim] = NAN;
    rows[(ROWS - 1) * dim + dim - 1] = INFINITY;
    rows[7 * dim] = 1e6f; /* one number that hides the others */
    return table;
}

/* Asks with and without the sketch. */
static void compare(const embla_table *table, const embla_sketch *sketch, const float *query,
                    size_t k, embla_near_options options, const char *what)
{
    static embla_neighbour plain[K_MOST], fast[K_MOST];
    embla_near_report a, b;
    assert_ok(nearest(table, query, 1, k, &options, plain, &a));
    options.sketch = sketch;
    assert_ok(nearest(table, query, 1, k, &options, fast, &b));
    assert_int_equal(a.rows, b.rows);
    assert_int_equal(a.nonfinite, b.nonfinite);
    for (size_t i = 0; i < k; i++)
        if (plain[i].row != fast[i].row ||
            memcmp(&plain[i].score, &fast[i].score, sizeof(double)) != 0)
            fail_msg("%s, k %zu: place %zu is row %lld, %.17g, not row %lld, %.17g", what, k, i,
                     (long long)fast[i].row, fast[i].score, (long long)plain[i].row,
                     plain[i].score);
}

static void compare_all(const embla_table *table, const char *what)
{
    static float query[300];
    static const size_t lengths[] = {1, 10, 39, 100, K_MOST};
    const size_t dim = embla_table_dim(table);
    embla_sketch *sketch = NULL;
    assert_ok(embla_sketch_new(table, NULL, &sketch));
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        for (int64_t row = 37; row < 47; row += 3) {
            const embla_near_options out = {
                .exclude = &row, .exclude_count = 1, .threads = 1 + (int)l};
            const embla_near_options some = {.rows = 4321};
            assert_ok(embla_lookup_rows(table, &row, 1, NULL, query));
            compare(table, sketch, query, lengths[l], out, what);
            compare(table, sketch, query, lengths[l], some, what);
        }
        memset(query, 0, dim * sizeof(float));
        compare(table, sketch, query, lengths[l], (embla_near_options){0}, what);
        query[dim - 1] = -1e-20f;
        compare(table, sketch, query, lengths[l], (embla_near_options){0}, what);
    }
    embla_sketch_free(sketch);
}

static void a_sketch_changes_no_bit_of_the_result(void **state)
{
    static const embla_dtype dtypes[] = {EMBLA_F32,  EMBLA_F64,  EMBLA_F16, EMBLA_BF16,
                                         EMBLA_Q8_0, EMBLA_Q4_0, EMBLA_I8};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        embla_table *table = make(dtypes[i], 96, false);
        compare_all(table, embla_dtype_name(dtypes[i]));
        embla_table_free(table);
    }
}

static void odd_rows_and_ties_are_found_on_every_kernel_set(void **state)
{
    static const size_t dims[] = {1, 2, 3, 5, 17, 50, 100, 300};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(check_sets); s++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
        if (!kernels) continue;
        embla_kernels_use(kernels);
        for (size_t d = 0; d < COUNT_OF(dims); d++) {
            embla_table *table = make(EMBLA_F32, dims[d], true);
            compare_all(table, check_sets[s]);
            embla_table_free(table);
        }
    }
    embla_kernels_use(NULL);
}

/* If all queries went to a scan, the other tests would say nothing. */
static void most_queries_are_answered_by_the_sketch_itself(void **state)
{
    embla_table *table = make(EMBLA_F32, 100, true);
    embla_sketch *sketch = NULL;
    float query[100];
    embla_scored out[10];
    size_t answers = 0;
    (void)state;
    assert_ok(embla_sketch_new(table, NULL, &sketch));
    for (int64_t row = 100; row < 200; row++) {
        int64_t nonfinite = 0;
        bool answered = false;
        assert_ok(embla_lookup_rows(table, &row, 1, NULL, query));
        const embla_question q = {.table = table,
                                  .source = embla_table_source(table),
                                  .count = 1,
                                  .k = 10,
                                  .dim = 100,
                                  .rows = ROWS,
                                  .kernels = embla_kernels_get()};
        assert_ok(embla_sketch_query(sketch, &q, query, NULL, out, &nonfinite, &answered));
        answers += answered;
        if (answered) assert_int_equal(out[0].row, row);
    }
    assert_in_range(answers, 90, 100);
    embla_sketch_free(sketch);
    embla_table_free(table);
}

static void a_sketch_of_another_table_is_refused(void **state)
{
    embla_table *table = make(EMBLA_F32, 8, false), *other = make(EMBLA_F32, 8, false);
    embla_sketch *sketch = NULL;
    embla_neighbour out[1];
    const float query[8] = {1.0f};
    (void)state;
    assert_ok(embla_sketch_new(other, NULL, &sketch));
    assert_in_range(embla_sketch_bytes(sketch), ROWS * 12, ROWS * 13);
    const embla_near_options options = {.sketch = sketch};
    assert_int_equal(nearest(table, query, 1, 1, &options, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "the sketch belongs to another table, of 5000 x 8");
    assert_int_equal(embla_sketch_new(NULL, NULL, &sketch), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_sketch_bytes(NULL), 0);
    embla_sketch_free(NULL);
    embla_sketch_free(sketch);
    embla_table_free(other);
    embla_table_free(table);
}

static void failed_allocations_leave_nothing_behind(void **state)
{
    embla_table *table = make(EMBLA_F32, 8, false);
    const float query[8] = {1.0f, 2.0f};
    embla_neighbour wanted[10], out[10];
    embla_sketch *sketch = NULL;
    const size_t live = embla_mem_live();
    embla_status status;
    size_t n = 0;
    (void)state;
    do {
        embla_mem_fail(++n, false);
        status = embla_sketch_new(table, NULL, &sketch);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) assert_int_equal(embla_mem_live(), live);
    } while (status == EMBLA_ERR_MEMORY);
    assert_ok(status);
    assert_in_range(n, 2, 50);
    const embla_near_options options = {.sketch = sketch};
    const size_t made = embla_mem_live();
    assert_ok(nearest(table, query, 1, 10, NULL, wanted, NULL));
    n = 0;
    do {
        embla_mem_fail(++n, false);
        status = nearest(table, query, 1, 10, &options, out, NULL);
        embla_mem_fail(0, false);
        assert_int_equal(embla_mem_live(), made);
    } while (status == EMBLA_ERR_MEMORY);
    assert_ok(status);
    assert_memory_equal(out, wanted, sizeof out);
    embla_sketch_free(sketch);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_sketch_changes_no_bit_of_the_result),
        cmocka_unit_test(odd_rows_and_ties_are_found_on_every_kernel_set),
        cmocka_unit_test(most_queries_are_answered_by_the_sketch_itself),
        cmocka_unit_test(a_sketch_of_another_table_is_refused),
        cmocka_unit_test(failed_allocations_leave_nothing_behind),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
