/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are the same, and rows of one direction, against a comparison of all with all;
 * and the order that rows are put in (near/order.h).
 */
#include "check.h"
#include "slow.h"

#include <math.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "near/order.h"
#include "see/alike.h"

#define ALIKE 0.999999

/* ---- order ---- */

static void keys_have_the_order_of_their_numbers(void **state)
{
    static const double values[] = {-INFINITY, -1e300, -1.5, -1, -1e-310, 0,
                                    1e-310,    1,      1.5,  2,  1e300,   INFINITY};
    (void)state;
    for (size_t i = 0; i + 1 < COUNT_OF(values); i++) {
        assert_true(embla_key_up(values[i]) < embla_key_up(values[i + 1]));
        assert_true(embla_key_down(values[i]) > embla_key_down(values[i + 1]));
    }
    assert_true(embla_key_up(-0.0) == embla_key_up(0.0));
    assert_true(embla_key_down(-0.0) == embla_key_down(0.0));
    assert_true(embla_key_up(NAN) > embla_key_up(INFINITY));
    assert_true(embla_key_down(NAN) > embla_key_down(-INFINITY));
}

/* Few different keys, and keys that differ in one byte only, whichever it is. */
static void rows_of_one_key_stay_in_their_order(void **state)
{
    enum { MOST = 3000 };
    static embla_key items[MOST], space[MOST];
    static const size_t counts[] = {0, 1, 2, 7, 257, MOST};
    uint64_t seed = 3;
    (void)state;
    for (unsigned shift = 0; shift <= 64; shift += 8) {
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            for (size_t i = 0; i < counts[c]; i++) {
                uint64_t key = shift < 64 ? check_below(&seed, 40) << shift : check_next(&seed);
                items[i] = (embla_key){key, (int64_t)i};
            }
            embla_order(items, space, counts[c]);
            for (size_t i = 0; i + 1 < counts[c]; i++) {
                assert_true(items[i].key <= items[i + 1].key);
                if (items[i].key == items[i + 1].key) assert_true(items[i].row < items[i + 1].row);
            }
        }
    }
}

/* ---- all with all ---- */

typedef struct {
    int64_t rows;
    size_t dim;
    float *values; /* as they are decoded */
} plain;

static plain plain_of(const embla_table *table)
{
    plain p = {embla_table_rows(table), embla_table_dim(table), NULL};
    p.values = malloc((size_t)p.rows * p.dim * sizeof *p.values);
    assert_non_null(p.values);
    for (int64_t row = 0; row < p.rows; row++)
        check_row(table, row, p.values + (size_t)row * p.dim);
    return p;
}

static double plain_dot(const plain *p, int64_t a, int64_t b)
{
    double sum = 0;
    for (size_t k = 0; k < p->dim; k++)
        sum +=
            (double)p->values[(size_t)a * p->dim + k] * (double)p->values[(size_t)b * p->dim + k];
    return sum;
}

static bool plain_same(const plain *p, int64_t a, int64_t b)
{
    for (size_t k = 0; k < p->dim; k++)
        if (p->values[(size_t)a * p->dim + k] != p->values[(size_t)b * p->dim + k]) return false;
    return true;
}

static bool plain_finite(const plain *p, int64_t row)
{
    for (size_t k = 0; k < p->dim; k++)
        if (!isfinite(p->values[(size_t)row * p->dim + k])) return false;
    return true;
}

/* -1: not finite. */
static double plain_norm(const plain *p, int64_t row)
{
    return plain_finite(p, row) ? sqrt(plain_dot(p, row, row)) : -1;
}

static void note_all(embla_alike *a, bool backwards)
{
    int64_t rows = a->source->rows;
    float *values = malloc(a->source->row->format.dim * sizeof *values);
    assert_non_null(values);
    for (int64_t i = 0; i < rows; i++) {
        int64_t row = backwards ? rows - 1 - i : i;
        bool finite = embla_alike_read(a, row, values);
        embla_alike_note(a, row, values, finite);
    }
    free(values);
}

/* Where a cosine is so near the bound that sums in another order may differ, both will do. */
static void compare_first(const embla_alike *a, const plain *p, int64_t row, double alike)
{
    int64_t first = row;
    double norm = plain_norm(p, row), close = 0;
    for (int64_t other = 0; other < row && norm > 0; other++) {
        if (a->first[other] != other || !(plain_norm(p, other) > 0)) continue;
        double cosine = plain_dot(p, row, other) / (norm * plain_norm(p, other));
        if (fabs(cosine - alike) < 1e-12) close = 1;
        if (cosine <= alike) continue;
        first = other;
        break;
    }
    if (close == 0) assert_int_equal(a->first[row], first);
    if (a->first[row] == row) {
        assert_true(a->cosine[row] == 1);
        return;
    }
    double cosine = plain_dot(p, row, a->first[row]) / (norm * plain_norm(p, a->first[row]));
    assert_near(a->cosine[row], fmin(cosine, 1), 1e-12);
}

static void compare_by(const embla_table *table, double alike, bool backwards, int threads)
{
    embla_alike a;
    plain p = plain_of(table);
    assert_ok(embla_alike_new(table, alike, &a));
    note_all(&a, backwards);
    a.threads = threads;
    assert_ok(embla_alike_find(&a));
    for (int64_t row = 0; row < p.rows; row++) {
        int64_t original = row;
        double norm = plain_norm(&p, row);
        assert_near(a.norms[row], norm, 1e-12 * fabs(norm));
        for (int64_t other = 0; other < row && norm > 0 && original == row; other++)
            if (plain_same(&p, row, other)) original = other;
        assert_int_equal(a.original[row], original);
        compare_first(&a, &p, row, alike);
    }
    embla_alike_free(&a);
    free(p.values);
}

static void compare(const embla_table *table, double alike, bool backwards)
{
    compare_by(table, alike, backwards, 0);
}

/* ---- tables ---- */

/* Every third row or so is another one again: the same, longer, turned by a little, or by so
 * much that it is near the bound; others are zeros (of both signs) or hold what is no number. */
static void plant(float *values, int64_t rows, size_t dim, uint64_t seed, bool odd)
{
    check_fill(seed, (size_t)rows * dim, values);
    for (int64_t row = 1; row < rows; row++) {
        float *x = values + (size_t)row * dim;
        uint64_t what = check_below(&seed, odd ? 16 : 12);
        const float *of = values + check_below(&seed, (uint64_t)row) * dim;
        float turn = what == 3 ? 1e-4f : what == 4 ? 1.5e-3f : 8e-4f;
        if (what < 6) memcpy(x, of, dim * sizeof *x);
        if (what == 2) /* longer */
            for (size_t k = 0; k < dim; k++) x[k] *= 1.75f;
        for (size_t k = 0; k < dim && what >= 3 && what <= 5; k++)
            x[k] *= 1 + turn * check_unit(&seed);
        if (what == 12) /* zeros of both signs */
            for (size_t k = 0; k < dim; k++) x[k] = k % 2 ? 0.0f : -0.0f;
        if (what == 13) x[check_below(&seed, dim)] = NAN;
        if (what == 14) x[check_below(&seed, dim)] = -INFINITY;
        if (what == 15) /* a zero that is one of the other sign elsewhere */
            for (size_t k = 0; k < dim; k += 2) x[k] = row % 2 ? -0.0f : 0.0f;
    }
}

static embla_table *planted(embla_dtype dtype, int64_t rows, size_t dim, uint64_t seed)
{
    float *values = malloc((size_t)rows * dim * sizeof *values);
    assert_non_null(values);
    plant(values, rows, dim, seed, true);
    embla_table *table = check_table_of(dtype, rows, dim, values);
    free(values);
    return table;
}

static void groups_are_those_of_comparing_all_rows_with_all(void **state)
{
    static const size_t dims[] = {1, 2, 3, 5, 7, 8, 9, 64, 300};
    static const double bounds[] = {0.9, 0.99, ALIKE, 0.999999999};
    (void)state;
    for (size_t d = 0; d < COUNT_OF(dims); d++) {
        for (size_t b = 0; b < COUNT_OF(bounds); b++) {
            embla_table *table = planted(EMBLA_F32, 400, dims[d], 7 + d);
            compare(table, bounds[b], b % 2 == 1);
            embla_table_free(table);
        }
    }
}

static void rows_of_every_dtype_are_compared_as_numbers(void **state)
{
    (void)state;
    for (int dtype = EMBLA_F32; embla_dtype_name((embla_dtype)dtype); dtype++) {
        if (!embla_dtype_writes((embla_dtype)dtype)) continue; /* nothing can be planted */
        embla_table *table = planted((embla_dtype)dtype, 300, 64, 21);
        compare(table, ALIKE, false);
        compare(table, 0.95, true);
        embla_table_free(table);
    }
}

static void a_view_with_gaps_between_its_rows_is_read_right(void **state)
{
    enum { ROWS = 200, DIM = 33, STRIDE = 40 };
    static float packed[ROWS * DIM], spread[ROWS * STRIDE];
    embla_table *table = NULL;
    embla_table_options options = {.row_stride = STRIDE * sizeof(float)};
    (void)state;
    plant(packed, ROWS, DIM, 5, true);
    check_fill(6, ROWS * STRIDE, spread);
    for (int row = 0; row < ROWS; row++)
        memcpy(spread + row * STRIDE, packed + row * DIM, DIM * sizeof(float));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               spread, sizeof spread, &options, &table));
    compare(table, ALIKE, false);
    embla_table_free(table);
}

static void a_zero_of_either_sign_is_the_same_number(void **state)
{
    static const float values[] = {1, 0, 2, 1, -0.0f, 2, -0.0f, 0, 0, 1, -0.0f, 3};
    embla_table *table = NULL;
    embla_alike a;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 3},
                               values, sizeof values, NULL, &table));
    compare(table, ALIKE, false);
    assert_ok(embla_alike_new(table, ALIKE, &a));
    note_all(&a, false);
    assert_ok(embla_alike_find(&a));
    assert_int_equal(a.original[1], 0);
    assert_int_equal(a.original[3], 3);
    assert_true(a.norms[2] == 0);
    embla_alike_free(&a);
    embla_table_free(table);
}

/* 1e38 and denormals side by side: neither sums nor places overflow or vanish. */
static void the_length_of_rows_does_not_matter(void **state)
{
    enum { ROWS = 120, DIM = 24 };
    static float values[ROWS * DIM];
    static const float sizes[] = {1, 1e37f, 1e-30f, 3e-42f};
    embla_table *table = NULL;
    (void)state;
    plant(values, ROWS, DIM, 11, false);
    for (int row = 0; row < ROWS; row++)
        for (int k = 0; k < DIM; k++) values[row * DIM + k] *= sizes[row % 4];
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               values, sizeof values, NULL, &table));
    compare(table, ALIKE, false);
    compare(table, 0.99, false);
    embla_table_free(table);
}

/* More rows than are put in at once, and so long that a part of them is compared first. */
static void threads_and_long_rows_change_no_group(void **state)
{
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16};
    static const double bounds[] = {0.9, 0.995, ALIKE};
    (void)state;
    for (size_t d = SLOW_BUILD; d < COUNT_OF(dtypes); d++) {
        embla_table *table = planted(dtypes[d], SLOW_BUILD ? 600 : 1100, 576, 31 + d);
        for (size_t b = 0; b < COUNT_OF(bounds); b++)
            compare_by(table, bounds[b], false, b == 0 ? 1 : 3);
        embla_table_free(table);
    }
}

/* One direction and a little of another, different for each row: no row has another's
 * direction, but all have to be compared. In full, row by row, this takes half a minute. */
static void rows_that_nearly_share_a_direction_do_not_take_long(void **state)
{
    enum { ROWS = 3000, DIM = 1024 };
    embla_table *table = NULL;
    embla_alike a;
    float *values = malloc((size_t)ROWS * DIM * sizeof *values);
    (void)state;
    assert_non_null(values);
    check_fill(41, (size_t)ROWS * DIM, values);
    for (size_t i = 0; i < (size_t)ROWS * DIM; i++)
        values[i] = (i % DIM % 7 < 3 ? -1.0f : 1.0f) + 0.02f * values[i];
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               values, (size_t)ROWS * DIM * sizeof *values, NULL, &table));
    assert_ok(embla_alike_new(table, ALIKE, &a));
    note_all(&a, false);
    a.threads = 2;
    assert_ok(embla_alike_find(&a));
    for (int64_t row = 0; row < ROWS; row++) assert_int_equal(a.first[row], row);
    embla_alike_free(&a);
    embla_table_free(table);
    free(values);
}

/* The square of 60,000 would be minutes. */
static void very_many_rows_of_one_direction_take_no_square(void **state)
{
    enum { ROWS = 60000, DIM = 16 };
    float *values = malloc(ROWS * DIM * sizeof *values);
    embla_table *table = NULL;
    embla_alike a;
    uint64_t seed = 9;
    (void)state;
    assert_non_null(values);
    for (int row = 0; row < ROWS; row++) {
        float longer = row % 2 ? 1.0f : 1 + 1e-4f * (float)row; /* half are the same, too */
        for (int k = 0; k < DIM; k++)
            values[row * DIM + k] =
                (float)(k + 1) * longer * (row % 4 == 2 ? 1 + 1e-5f * check_unit(&seed) : 1);
    }
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               values, ROWS * DIM * sizeof *values, NULL, &table));
    assert_ok(embla_alike_new(table, ALIKE, &a));
    note_all(&a, false);
    assert_ok(embla_alike_find(&a));
    for (int row = 0; row < ROWS; row++) {
        assert_int_equal(a.first[row], 0);
        if (row % 2 == 1) assert_int_equal(a.original[row], 0);
    }
    embla_alike_free(&a);
    embla_table_free(table);
    free(values);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    embla_table *table = planted(EMBLA_F32, 5000, 12, 2);
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        size_t live = embla_mem_live(), failures = 0;
        for (size_t at = 1;; at++) {
            embla_alike a = {0};
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_alike_new(table, ALIKE, &a);
            if (status == EMBLA_OK) {
                note_all(&a, false);
                status = embla_alike_find(&a);
            } else {
                assert_null(a.norms);
            }
            embla_mem_fail(0, false);
            embla_alike_free(&a);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 5); /* notes, two rows, two lists in order, cells */
    }
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(keys_have_the_order_of_their_numbers),
        cmocka_unit_test(rows_of_one_key_stay_in_their_order),
        cmocka_unit_test(groups_are_those_of_comparing_all_rows_with_all),
        cmocka_unit_test(rows_of_every_dtype_are_compared_as_numbers),
        cmocka_unit_test(a_view_with_gaps_between_its_rows_is_read_right),
        cmocka_unit_test(a_zero_of_either_sign_is_the_same_number),
        cmocka_unit_test(the_length_of_rows_does_not_matter),
        cmocka_unit_test(threads_and_long_rows_change_no_group),
        cmocka_unit_test(rows_that_nearly_share_a_direction_do_not_take_long),
        cmocka_unit_test(very_many_rows_of_one_direction_take_no_square),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
