/* SPDX-License-Identifier: Apache-2.0 */
/* Two tables row by row, against a loop over all numbers in long double: by row number and by
 * a map, in every pair of dtypes, with NaN, infinities and numbers of any size.
 */
#include "scratch.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"
#include "embla_lab.h"

static embla_diff *diff_of(const embla_table *a, const embla_table *b, embla_diff_options options)
{
    embla_diff *diff = NULL;
    assert_ok(embla_diff_new(a, b, &options, &diff));
    assert_non_null(diff);
    return diff;
}

static embla_table *view(embla_dtype dtype, int64_t rows, size_t dim, const void *bytes)
{
    embla_table *table = NULL;
    size_t row_bytes;
    assert_ok(embla_dtype_row_bytes(dtype, dim, &row_bytes));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = dtype, .rows = rows, .dim = dim},
                               bytes, (size_t)rows * row_bytes, NULL, &table));
    return table;
}

/* ---- the slow way ---- */

static void read_row(const embla_table *table, int64_t row, double *out)
{
    float values[1024];
    size_t dim = embla_table_dim(table);
    if (embla_table_dtype(table) == EMBLA_F64) {
        memcpy(out, embla_table_row(table, row), dim * sizeof *out);
        return;
    }
    check_row(table, row, values);
    for (size_t k = 0; k < dim; k++) out[k] = (double)values[k];
}

typedef struct {
    bool changed, nonfinite, zero;
    double distance, cosine, difference;
} plain;

static plain compare_rows(const embla_table *a, int64_t row, const embla_table *b, int64_t other,
                          double tolerance)
{
    double x[1024], y[1024];
    long double gap = 0, dot = 0, aa = 0, bb = 0;
    plain p = {0};
    read_row(a, row, x);
    read_row(b, other, y);
    for (size_t k = 0; k < embla_table_dim(a); k++) {
        long double apart = fabsl((long double)x[k] - (long double)y[k]);
        bool same = x[k] == y[k] || (isnan(x[k]) && isnan(y[k])) || apart <= (long double)tolerance;
        p.changed = p.changed || !same;
        p.nonfinite = p.nonfinite || (!same && (!isfinite(x[k]) || !isfinite(y[k])));
        if (same && (!isfinite(x[k]) || !isfinite(y[k]))) {
            p.zero = true; /* no cosine */
            continue;
        }
        gap += apart * apart;
        dot += (long double)x[k] * (long double)y[k];
        aa += (long double)x[k] * (long double)x[k];
        bb += (long double)y[k] * (long double)y[k];
        p.difference = fmax(p.difference, (double)apart);
    }
    p.zero = p.zero || aa == 0 || bb == 0;
    p.distance = p.nonfinite ? INFINITY : (double)sqrtl(gap);
    p.cosine = p.nonfinite || p.zero ? NAN : (double)(dot / (sqrtl(aa) * sqrtl(bb)));
    if (p.nonfinite) p.difference = INFINITY;
    return p;
}

static void assert_close(double a, double b)
{
    if (isnan(b))
        assert_true(isnan(a));
    else if (isinf(b))
        assert_true(a == b);
    else
        assert_near(a, b, 1e-12 * fabs(b));
}

static embla_diff_info info_of(const embla_diff *diff)
{
    embla_diff_info info;
    assert_ok(embla_diff_describe(diff, &info));
    return info;
}

/* Each changed row is in the list once, with its figures, the farthest first. */
static void compare_list(const embla_table *a, const embla_table *b, const embla_diff *diff,
                         double tolerance)
{
    embla_diff_row before = {.row = -1, .distance = INFINITY};
    size_t count;
    const embla_diff_row *rows = embla_diff_rows(diff, &count);
    assert_int_equal(count, info_of(diff).changed);
    for (size_t n = 0; n < count; n++) {
        const embla_diff_row r = rows[n];
        plain p = compare_rows(a, r.row, b, r.other, tolerance);
        assert_true(p.changed);
        assert_close(r.distance, p.distance);
        assert_close(r.difference, p.difference);
        if (isnan(p.cosine))
            assert_true(isnan(r.cosine));
        else
            assert_near(r.cosine, p.cosine, 1e-12);
        assert_true(r.distance < before.distance ||
                    (r.distance == before.distance && r.row > before.row));
        before = r;
    }
}

static void compare(const embla_table *a, const embla_table *b, embla_diff_options options)
{
    embla_diff *diff = diff_of(a, b, options);
    const embla_diff_info info = info_of(diff), *s = &info;
    int64_t rows = embla_table_rows(a), others = embla_table_rows(b);
    int64_t same = 0, changed = 0, nonfinite = 0, alone = 0, turned = 0, left = others;
    double most = 0;
    long double distances = 0, cosines = 0;
    char *met = calloc((size_t)others, 1);
    assert_non_null(met);
    for (int64_t row = 0; row < rows; row++) {
        int64_t other = options.other ? options.other[row] : row < others ? row : -1;
        if (other < 0) {
            alone++;
            continue;
        }
        plain p = compare_rows(a, row, b, other, options.tolerance);
        left -= !met[other];
        met[other] = 1;
        same += !p.changed;
        changed += p.changed;
        nonfinite += p.nonfinite;
        if (!p.changed || p.nonfinite) continue;
        distances += p.distance;
        most = fmax(most, p.difference);
        if (!p.zero) cosines += p.cosine;
        turned += !p.zero;
    }
    assert_int_equal(s->rows[0], rows);
    assert_int_equal(s->rows[1], others);
    assert_int_equal(s->same, same);
    assert_int_equal(s->changed, changed);
    assert_int_equal(s->compared, same + changed);
    assert_int_equal(s->nonfinite, nonfinite);
    assert_int_equal(s->only[0], alone);
    assert_int_equal(s->only[1], left);
    assert_close(s->difference, most);
    assert_close(s->distance_mean,
                 changed > nonfinite ? (double)(distances / (changed - nonfinite)) : NAN);
    if (turned > 0)
        assert_near(s->cosine_mean, (double)(cosines / turned), 1e-12);
    else
        assert_true(isnan(s->cosine_mean));
    compare_list(a, b, diff, options.tolerance);
    free(met);
    embla_diff_free(diff);
}

/* ---- tables ---- */

enum { ROWS = 64, MANY = 400, DIM = 512 };

/* The same numbers, but for some rows: one number off, all of them, a sign of zero, a NaN. */
static void make_values(float *values, int rows, bool second)
{
    uint64_t seed = 5;
    check_fill(4, (size_t)rows * DIM, values);
    for (int row = 0; row < rows; row++) {
        float *x = values + row * DIM;
        uint64_t at = check_below(&seed, DIM);
        if (row % 11 == 1 && second) x[at] += 0.25f; /* in any piece of the row */
        for (int k = 0; k < DIM && row % 13 == 2 && second; k++) x[k] *= -1.25f;
        if (row % 17 == 3) x[at] = second ? -0.0f : 0.0f;
        if (row % 19 == 4) x[at] = second ? NAN : 1.0f;
        if (row % 23 == 5) x[at] = second ? 1.0f : INFINITY;
        if (row % 29 == 6) x[at] = NAN; /* in both */
        for (int k = 0; k < DIM && row % 31 == 7 && !second; k++) x[k] = 0;
    }
}

static embla_table *make_table(embla_dtype dtype, int rows, bool second)
{
    static float values[MANY * DIM];
    make_values(values, rows, second);
    return check_table_of(dtype, rows, DIM, values);
}

static void two_tables_of_any_dtypes_are_compared_as_numbers(void **state)
{
    (void)state;
    for (int one = CHECK_FIRST_DTYPE; one <= CHECK_LAST_DTYPE; one++) {
        embla_table *a = make_table((embla_dtype)one, ROWS, false);
        for (int two = CHECK_FIRST_DTYPE; two <= CHECK_LAST_DTYPE; two++) {
            embla_table *b = make_table((embla_dtype)two, ROWS, true);
            compare(a, b, (embla_diff_options){.threads = 1});
            compare(a, b, (embla_diff_options){.tolerance = 0.01});
            embla_table_free(b);
        }
        compare(a, a, (embla_diff_options){0});
        embla_table_free(a);
    }
}

static void the_same_bytes_with_another_scale_are_other_numbers(void **state)
{
    static const signed char bytes[] = {1, 2, 3, 4, 0, 0};
    embla_table *a = NULL, *b = NULL;
    embla_table_options half = {.scale = 0.5f}, one = {.scale = 1};
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_I8, .rows = 3, .dim = 2}, bytes,
                               sizeof bytes, &half, &a));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_I8, .rows = 3, .dim = 2}, bytes,
                               sizeof bytes, &one, &b));
    compare(a, b, (embla_diff_options){0});
    embla_diff *diff = diff_of(a, b, (embla_diff_options){0});
    assert_int_equal(info_of(diff).changed, 2);
    assert_int_equal(info_of(diff).same, 1);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

/* What a float would not show, what would overflow as a square, and what would vanish. */
static void f64_is_compared_in_all_its_digits(void **state)
{
    static const double first[] = {1, 2, 1e200, 3e200, 1e-200, 0, 1, 5, 1e300, -1e300};
    static const double second[] = {1, 2 + 1e-12, 1e200, 3.5e200, 2e-200, 0, 1, 5, -1e300, 1e300};
    (void)state;
    embla_table *a = view(EMBLA_F64, 5, 2, first), *b = view(EMBLA_F64, 5, 2, second);
    compare(a, b, (embla_diff_options){0});
    embla_diff *diff = diff_of(a, b, (embla_diff_options){0});
    const embla_diff_info info = info_of(diff), *s = &info;
    size_t count;
    const embla_diff_row *rows = embla_diff_rows(diff, &count);
    assert_int_equal(s->changed, 4);
    assert_int_equal(s->nonfinite, 0);
    assert_int_equal(rows[3].row, 2);
    assert_near(rows[3].distance, 1e-200, 1e-212);
    assert_near(rows[2].distance, 1e-12, 1e-15);
    embla_diff_free(diff);
    diff = diff_of(a, b, (embla_diff_options){.tolerance = 1e-9});
    assert_int_equal(info_of(diff).changed, 2);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

static void a_number_that_differs_by_the_tolerance_is_the_same(void **state)
{
    static const float first[] = {1, 2, 3}, second[] = {1.5f, 2.25f, 3.75f};
    (void)state;
    embla_table *a = view(EMBLA_F32, 3, 1, first), *b = view(EMBLA_F32, 3, 1, second);
    embla_diff *diff = diff_of(a, b, (embla_diff_options){.tolerance = 0.5});
    assert_int_equal(info_of(diff).same, 2);
    assert_int_equal(info_of(diff).changed, 1);
    assert_near(info_of(diff).difference, 0.75, 0);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

/* ---- which row with which ---- */

static void rows_past_the_end_of_the_other_are_counted(void **state)
{
    static float values[40 * 3];
    (void)state;
    check_fill(2, COUNT_OF(values), values);
    embla_table *a = view(EMBLA_F32, 40, 3, values), *b = view(EMBLA_F32, 25, 3, values);
    compare(a, b, (embla_diff_options){0});
    compare(b, a, (embla_diff_options){0});
    embla_diff *diff = diff_of(b, a, (embla_diff_options){0});
    assert_int_equal(info_of(diff).only[0], 0);
    assert_int_equal(info_of(diff).only[1], 15);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

/* Backwards, with rows left out, and with one that two rows are compared with. */
static void a_map_says_which_row_is_compared_with_which(void **state)
{
    enum { N = 300 };
    static float values[N * 4], turned[N * 4];
    int64_t other[N];
    (void)state;
    check_fill(2, N * 4, values);
    for (int row = 0; row < N; row++) {
        memcpy(turned + (N - 1 - row) * 4, values + row * 4, 4 * sizeof(float));
        other[row] = row % 7 == 3 ? -1 : N - 1 - row;
    }
    other[10] = other[11];
    embla_table *a = view(EMBLA_F32, N, 4, values), *b = view(EMBLA_F32, N, 4, turned);
    compare(a, b, (embla_diff_options){.other = other});
    embla_diff *diff = diff_of(a, b, (embla_diff_options){.other = other});
    size_t count;
    const embla_diff_row *rows = embla_diff_rows(diff, &count);
    const embla_diff_info info = info_of(diff), *s = &info;
    assert_int_equal(s->changed, 1);
    assert_int_equal(s->only[0], 42); /* 3, 10, 17 .. 297, but for 10 */
    assert_int_equal(rows[0].row, 10);
    assert_int_equal(rows[0].other, other[11]);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

/* ---- edges ---- */

static void small_and_hostile_tables_are_compared_too(void **state)
{
    static const float pairs[][2][2] = {{{1, 2}, {1, 2}},
                                        {{0, 0}, {-0.0f, 0}},
                                        {{0, 0}, {0, 1}},
                                        {{NAN, 1}, {NAN, 1}},
                                        {{NAN, 1}, {1, NAN}},
                                        {{INFINITY, 1}, {INFINITY, 2}},
                                        {{INFINITY, 1}, {-INFINITY, 1}},
                                        {{3e38f, -3e38f}, {-3e38f, 3e38f}},
                                        {{1e-45f, 0}, {3e-45f, 0}},
                                        {{1, 1}, {1, 1.0000001f}}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        for (size_t dim = 1; dim <= 2; dim++) {
            embla_table *a = view(EMBLA_F32, 1, dim, pairs[i][0]);
            embla_table *b = view(EMBLA_F32, 1, dim, pairs[i][1]);
            compare(a, b, (embla_diff_options){0});
            compare(b, a, (embla_diff_options){.tolerance = 0.5});
            embla_table_free(a);
            embla_table_free(b);
        }
    }
}

static void a_view_with_gaps_between_its_rows_is_read_right(void **state)
{
    enum { N = 60, D = 5, STRIDE = 7 };
    static float spread[N * STRIDE], packed[N * D];
    embla_table_options options = {.row_stride = STRIDE * sizeof(float)};
    embla_table *a = NULL;
    (void)state;
    check_fill(8, N * STRIDE, spread);
    for (int row = 0; row < N; row++)
        memcpy(packed + row * D, spread + row * STRIDE, D * sizeof(float));
    packed[7 * D] += 1;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = N, .dim = D},
                               spread, sizeof spread, &options, &a));
    embla_table *b = view(EMBLA_F32, N, D, packed);
    compare(a, b, (embla_diff_options){0});
    compare(b, a, (embla_diff_options){0});
    embla_diff *diff = diff_of(a, b, (embla_diff_options){0});
    assert_int_equal(info_of(diff).same, N - 1);
    embla_diff_free(diff);
    embla_table_free(a);
    embla_table_free(b);
}

static void the_same_bits_for_any_number_of_threads(void **state)
{
    embla_table *a = make_table(EMBLA_F32, MANY, false), *b = make_table(EMBLA_BF16, MANY, true);
    embla_diff *one = diff_of(a, b, (embla_diff_options){.threads = 1});
    (void)state;
    for (int threads = 2; threads < 9; threads += 3) {
        embla_diff *many = diff_of(a, b, (embla_diff_options){.threads = threads});
        const embla_diff_info s = info_of(one), t = info_of(many);
        assert_memory_equal(&s, &t, sizeof s);
        size_t count, same;
        const embla_diff_row *x = embla_diff_rows(one, &count), *y = embla_diff_rows(many, &same);
        assert_int_equal(count, same);
        assert_memory_equal(x, y, count * sizeof *x);
        embla_diff_free(many);
    }
    embla_diff_free(one);
    embla_table_free(a);
    embla_table_free(b);
}

/* ---- what is refused ---- */

static void what_does_not_fit_is_refused_with_both_numbers(void **state)
{
    static const float values[] = {1, 2, 3, 4, 5, 6};
    int64_t other[] = {0, 3}, below[] = {-2, 0};
    embla_diff *diff = (embla_diff *)(uintptr_t)values;
    static const double tolerances[] = {-1, NAN, INFINITY};
    (void)state;
    embla_table *a = view(EMBLA_F32, 2, 3, values), *b = view(EMBLA_F32, 3, 2, values);
    embla_table *c = view(EMBLA_F32, 3, 2, values);
    embla_diff_options o = {.other = other};
    assert_status(embla_diff_new(a, b, NULL, &diff), EMBLA_ERR_SHAPE);
    assert_error_has("the first table has dim 3 and the second 2");
    embla_table *d = view(EMBLA_F32, 2, 2, values);
    assert_status(embla_diff_new(d, c, &o, &diff), EMBLA_ERR_RANGE);
    assert_error_has("row 1 is mapped to row 3, but the second table has 3 rows");
    o.other = below;
    assert_status(embla_diff_new(d, c, &o, &diff), EMBLA_ERR_RANGE);
    for (size_t i = 0; i < COUNT_OF(tolerances); i++) {
        o = (embla_diff_options){.tolerance = tolerances[i]};
        assert_status(embla_diff_new(b, c, &o, &diff), EMBLA_ERR_ARGUMENT);
    }
    o = (embla_diff_options){.threads = -1};
    assert_status(embla_diff_new(b, c, &o, &diff), EMBLA_ERR_ARGUMENT);
    assert_status(embla_diff_new(NULL, c, NULL, &diff), EMBLA_ERR_ARGUMENT);
    assert_status(embla_diff_new(b, NULL, NULL, &diff), EMBLA_ERR_ARGUMENT);
    assert_status(embla_diff_new(b, c, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_ptr_equal(diff, values);
    embla_diff_free(NULL);
    embla_diff_info info;
    assert_status(embla_diff_describe(NULL, &info), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_diff_describe: diff is NULL");
    size_t count = 77;
    assert_null(embla_diff_rows(NULL, &count));
    assert_int_equal(count, 0);
    embla_table_free(a);
    embla_table_free(b);
    embla_table_free(c);
    embla_table_free(d);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    enum { N = 200000 }; /* so that each list is a block of its own */
    signed char *bytes = malloc(2 * N);
    int64_t *other = malloc(N * sizeof *other);
    (void)state;
    assert_true(bytes && other);
    for (int i = 0; i < 2 * N; i++) bytes[i] = (signed char)(i % 100);
    for (int i = 0; i < N; i++) other[i] = N - 1 - i;
    embla_table *a = view(EMBLA_I8, N, 1, bytes), *b = view(EMBLA_I8, N, 1, bytes + N / 3);
    for (int forever = 0; forever < 2; forever++) {
        size_t live = embla_mem_live(), failures = 0;
        for (size_t at = 1;; at++) {
            embla_diff *diff = NULL;
            embla_diff_options options = {.other = other, .threads = 2};
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_diff_new(a, b, &options, &diff);
            embla_mem_fail(0, false);
            assert_true((status == EMBLA_OK) == (diff != NULL));
            embla_diff_free(diff);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 6);
    }
    embla_table_free(a);
    embla_table_free(b);
    free(other);
    free(bytes);
}

static void a_file_that_was_cut_short_is_noticed(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 32), }";
    static char bytes[128 + 64 * 32 * 4];
    scratch s;
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_table *other = view(EMBLA_F32, 64, 32, bytes + 128);
    embla_diff *diff = NULL;
    (void)state;
    scratch_new(&s);
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[127] = '\n';
    scratch_write(scratch_path(&s, "a.npy"), bytes, sizeof bytes);
    assert_int_equal(chmod(s.path, 0644), 0);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    assert_int_equal(truncate(s.path, 4096), 0);
    assert_status(embla_diff_new(table, other, NULL, &diff), EMBLA_ERR_IO);
    assert_status(embla_diff_new(other, table, NULL, &diff), EMBLA_ERR_IO);
    assert_null(diff);
    embla_table_free(other);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tables_of_any_dtypes_are_compared_as_numbers),
        cmocka_unit_test(the_same_bytes_with_another_scale_are_other_numbers),
        cmocka_unit_test(f64_is_compared_in_all_its_digits),
        cmocka_unit_test(a_number_that_differs_by_the_tolerance_is_the_same),
        cmocka_unit_test(rows_past_the_end_of_the_other_are_counted),
        cmocka_unit_test(a_map_says_which_row_is_compared_with_which),
        cmocka_unit_test(small_and_hostile_tables_are_compared_too),
        cmocka_unit_test(a_view_with_gaps_between_its_rows_is_read_right),
        cmocka_unit_test(the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(what_does_not_fit_is_refused_with_both_numbers),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_file_that_was_cut_short_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
