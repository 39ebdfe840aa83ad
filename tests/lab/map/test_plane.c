/* SPDX-License-Identifier: Apache-2.0 */
/* The plane of two main directions: against power iteration in double over the explicit
 * covariance, and by what defines it: variance along the axes, none of it shared, signs.
 */
#include "engine.h"
#include "slow.h"

#include <float.h>
#include <math.h>

#include "base/mem.h"

/* ---- the slow way ---- */

typedef struct {
    size_t dim, rows;
    double *x; /* rows x dim, the mean taken off; rows that are not finite left at NaN */
    double total;
} slow;

static slow slow_rows(const embla_table *table)
{
    slow s = {.dim = embla_table_dim(table), .rows = (size_t)embla_table_rows(table)};
    float *row = malloc(s.dim * sizeof *row);
    double *mean = calloc(s.dim, sizeof *mean), count = 0;
    s.x = malloc(s.rows * s.dim * sizeof *s.x);
    for (size_t r = 0; r < s.rows; r++) {
        bool finite = true;
        check_row(table, (int64_t)r, row);
        for (size_t i = 0; i < s.dim; i++) finite = finite && isfinite(row[i]);
        for (size_t i = 0; i < s.dim; i++) {
            s.x[r * s.dim + i] = finite ? (double)row[i] : NAN;
            if (finite) mean[i] += (double)row[i];
        }
        count += finite;
    }
    for (size_t k = 0; k < s.rows * s.dim; k++) {
        s.x[k] -= mean[k % s.dim] / count;
        if (!isnan(s.x[k])) s.total += s.x[k] * s.x[k];
    }
    free(row), free(mean);
    return s;
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* The direction of the largest variance at right angles to `other` (NULL: any); returns the
 * variance along it, times the rows. */
static double slow_axis(const slow *s, const double *other, double *axis)
{
    double value = 0, *next = malloc(s->dim * sizeof *next);
    for (size_t i = 0; i < s->dim; i++) axis[i] = 1.0 / (double)(i + 3) + (i % 2 ? 0.3 : -0.2);
    for (int step = 0; step < 400; step++) {
        double off = other ? dot(axis, other, s->dim) : 0;
        for (size_t i = 0; i < s->dim; i++) axis[i] -= other ? off * other[i] : 0;
        double length = sqrt(dot(axis, axis, s->dim));
        for (size_t i = 0; i < s->dim; i++) axis[i] /= length;
        memset(next, 0, s->dim * sizeof *next);
        for (size_t r = 0; r < s->rows; r++) {
            const double *x = s->x + r * s->dim;
            if (isnan(x[0])) continue;
            double along = dot(x, axis, s->dim);
            for (size_t i = 0; i < s->dim; i++) next[i] += along * x[i];
        }
        value = dot(next, axis, s->dim);
        if (step < 399) memcpy(axis, next, s->dim * sizeof *axis);
    }
    size_t largest = 0;
    for (size_t i = 1; i < s->dim; i++)
        if (fabs(axis[i]) > fabs(axis[largest])) largest = i;
    double sign = axis[largest] < 0 ? -1 : 1;
    for (size_t i = 0; i < s->dim; i++) axis[i] *= sign;
    free(next);
    return value;
}

static void check_plane(const embla_table *table, int64_t nonfinite)
{
    slow s = slow_rows(table);
    double *axes[2] = {malloc(s.dim * sizeof(double)), malloc(s.dim * sizeof(double))}, values[2];
    float *xy = malloc(s.rows * 2 * sizeof *xy);
    embla_plane_report report;
    values[0] = slow_axis(&s, NULL, axes[0]);
    values[1] = slow_axis(&s, axes[0], axes[1]);
    assert_ok(embla_plane(table, &(embla_plane_options){.threads = 2}, xy, &report));
    assert_int_equal(report.rows, (int64_t)s.rows - nonfinite);
    assert_int_equal(report.nonfinite, nonfinite);
    double size = sqrt(values[0]);
    for (int a = 0; a < 2; a++) {
        assert_near(report.share[a], values[a] / s.total, 1e-6);
        for (size_t r = 0; r < s.rows; r++) {
            if (isnan(s.x[r * s.dim])) {
                assert_true(isnan(xy[2 * r + (size_t)a]));
                continue;
            }
            assert_near(xy[2 * r + (size_t)a], dot(s.x + r * s.dim, axes[a], s.dim), 2e-5 * size);
        }
    }
    free(axes[0]), free(axes[1]), free(xy), free(s.x);
}

/* A table of which two directions stand out, the second half as far as the first. */
static embla_table *two_directions(embla_dtype dtype, int64_t rows, size_t dim, uint64_t seed,
                                   double size)
{
    embla_table *table = check_table(dtype, rows, dim, seed);
    float *x = malloc(dim * sizeof *x);
    for (int64_t row = 0; row < rows; row++) {
        float a = check_unit(&seed), b = check_unit(&seed) * 0.5f;
        for (size_t i = 0; i < dim; i++) {
            float noise = check_unit(&seed) * 0.02f;
            float first = sinf((float)(3 * i + 1)), second = cosf((float)(5 * i * i + 2));
            x[i] = (float)((double)(0.4f + a * first + b * second + noise) * size);
        }
        check_write(table, row, 1, x);
    }
    free(x);
    return table;
}

static void points_are_projections_on_the_main_directions(void **state)
{
    static const size_t sizes[][2] = {{3, 2}, {50, 3}, {700, 40}, {600, 257}, {30, 600}, {2, 5}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        embla_table *table = two_directions(EMBLA_F32, (int64_t)sizes[i][0], sizes[i][1], i, 1);
        if (sizes[i][0] > 2) check_plane(table, 0);
        embla_table_free(table);
    }
}

static void every_dtype_has_a_plane(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype += SLOW_BUILD ? 3 : 1) {
        embla_table *table =
            two_directions((embla_dtype)dtype, 300, check_dim((embla_dtype)dtype, 288), 5, 0.3);
        check_plane(table, 0);
        embla_table_free(table);
    }
}

static void rows_that_are_not_finite_are_no_points(void **state)
{
    (void)state;
    embla_table *table = two_directions(EMBLA_F32, 130, 12, 5, 1);
    float *data = embla_table_data(table);
    data[0] = NAN;
    data[64 * 12 + 11] = INFINITY;
    data[129 * 12 + 5] = -INFINITY;
    check_plane(table, 3);
    embla_table_free(table);
}

/* Of 1e38 and of 1e-38 the picture is the same. */
static void scale_does_not_matter(void **state)
{
    enum { ROWS = 200, DIM = 10 };
    static const double sizes[] = {1e37, 1e20, 1e-20, 1e-36};
    static float plain[2 * ROWS], xy[2 * ROWS];
    embla_plane_report report, same;
    (void)state;
    embla_table *table = two_directions(EMBLA_F32, ROWS, DIM, 5, 1);
    assert_ok(embla_plane(table, &(embla_plane_options){.threads = 1}, plain, &report));
    embla_table_free(table);
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        table = two_directions(EMBLA_F32, ROWS, DIM, 5, sizes[s]);
        assert_ok(embla_plane(table, &(embla_plane_options){.threads = 1}, xy, &same));
        assert_near(same.share[0], report.share[0], 1e-5);
        for (size_t i = 0; i < COUNT_OF(xy); i++)
            assert_near((double)xy[i] / sizes[s], plain[i], 1e-4);
        embla_table_free(table);
    }
    /* further out than a float can say: at its end, not at infinity */
    static float far[4 * 100];
    for (size_t i = 0; i < COUNT_OF(far); i++) far[i] = i / 100 % 2 ? 3e38f : -3e38f;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 100},
                               far, sizeof far, NULL, &table));
    assert_ok(embla_plane(table, &(embla_plane_options){.threads = 1}, xy, NULL));
    assert_true(xy[0] == -FLT_MAX && xy[2] == FLT_MAX && isfinite(xy[1]));
    embla_table_free(table);
}

static void tables_without_two_directions(void **state)
{
    float one[4] = {1, 2, 3, 6}, xy[8], equal[8] = {5, 6, 5, 6, 5, 6, 5, 6}, nan[2] = {NAN, 1};
    float line[8] = {0.1f, 0.3f, 0.2f, 0.6f, 0.3f, 0.9f, 0.4f, 1.2f};
    embla_plane_report report;
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 1}, one,
                               sizeof one, NULL, &table)); /* dim 1 */
    assert_ok(embla_plane(table, NULL, xy, &report));
    for (size_t i = 0; i < 4; i++) assert_true(xy[2 * i] == one[i] - 3 && xy[2 * i + 1] == 0);
    assert_true(report.share[0] == 1 && report.share[1] == 0);
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 4}, one,
                               sizeof one, NULL, &table)); /* one row */
    assert_ok(embla_plane(table, NULL, xy, &report));
    assert_true(xy[0] == 0 && xy[1] == 0 && report.share[0] == 0 && report.rows == 1);
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 2},
                               equal, sizeof equal, NULL, &table));
    assert_ok(embla_plane(table, NULL, xy, &report));
    for (size_t i = 0; i < 8; i++) assert_true(xy[i] == 0);
    assert_true(report.share[0] == 0 && report.share[1] == 0);
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 2}, line,
                               sizeof line, NULL, &table));
    assert_ok(embla_plane(table, NULL, xy, &report));
    for (size_t i = 0; i < 4; i++) {
        assert_near(xy[2 * i], sqrt(0.1) * ((double)i - 1.5), 1e-5);
        assert_true(xy[2 * i + 1] == 0); /* and not what rounding left */
    }
    assert_near(report.share[0], 1, 1e-6);
    assert_true(report.share[1] == 0);
    embla_table_free(table);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 1, .dim = 2}, nan,
                               sizeof nan, NULL, &table));
    assert_ok(embla_plane(table, NULL, xy, &report));
    assert_true(isnan(xy[0]) && isnan(xy[1]) && report.rows == 0 && report.nonfinite == 1);
    embla_table_free(table);
}

/* The largest component of an axis is positive: a row that has only that one lies right, or up,
 * of one that has it not. */
static void signs_are_fixed(void **state)
{
    float rows[] = {-9, 0, 0, 9, 0, 0, 0, -4, 0, 0, 4, 0, 0, 0, 1, 0, 0, -1}, xy[12];
    embla_table *table = NULL;
    (void)state;
    for (int flip = 0; flip < 2; flip++) {
        for (size_t i = 0; i < COUNT_OF(rows); i++) rows[i] = -rows[i];
        assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 6, .dim = 3},
                                   rows, sizeof rows, NULL, &table));
        assert_ok(embla_plane(table, NULL, xy, NULL));
        for (size_t r = 0; r < 6; r++) {
            assert_near(xy[2 * r], rows[3 * r], 1e-6);
            assert_near(xy[2 * r + 1], rows[3 * r + 1], 1e-6);
        }
        embla_table_free(table);
    }
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    enum { ROWS = 20000, DIM = 60 };
    static float one[2 * ROWS], more[2 * ROWS];
    static const int counts[] = {2, 3, 8};
    embla_plane_report report, other;
    (void)state;
    embla_table *table = check_table(EMBLA_F16, ROWS, DIM, 3);
    memset(&report, 0, sizeof report);
    memset(&other, 0, sizeof other);
    assert_ok(embla_plane(table, &(embla_plane_options){.threads = 1}, one, &report));
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        assert_ok(embla_plane(table, &(embla_plane_options){.threads = counts[c]}, more, &other));
        assert_memory_equal(one, more, sizeof one);
        assert_true(report.share[0] == other.share[0] && report.share[1] == other.share[1]);
    }
    embla_table_free(table);
}

static void wrong_calls_are_refused(void **state)
{
    float xy[8] = {5};
    embla_plane_report report = {.rows = 7};
    embla_table *table = check_table(EMBLA_F32, 4, 4, 1);
    (void)state;
    assert_status(embla_plane(NULL, NULL, xy, &report), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plane(table, NULL, NULL, &report), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plane(table, &(embla_plane_options){.threads = -2}, xy, &report),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("threads is -2");
    assert_true(xy[0] == 5 && report.rows == 7);
    embla_table_free(table);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    embla_table *table = check_table(EMBLA_BF16, 60, 20, 1);
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        for (size_t at = 1;; at++) {
            float xy[120] = {5};
            embla_plane_report report = {.rows = 7};
            embla_mem_fail(at, forever == 1);
            embla_status status =
                embla_plane(table, &(embla_plane_options){.threads = 1}, xy, &report);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_true(xy[0] == 5 && report.rows == 7);
            failures++;
        }
        assert_in_range(failures, 7, 8); /* one more for eigenvalues without LAPACK */
    }
    embla_table_free(table);
}

/* A basis has its own plane, and all rows are projected on it. */
static void a_basis_has_its_own_plane(void **state)
{
    enum { ROWS = 40, DIM = 6, BASIS = 5 };
    static const int64_t basis[BASIS] = {3, 8, 30, 31, 39};
    float xy[2 * ROWS], own[2 * BASIS], row[DIM];
    embla_table *table = NULL, *part = NULL;
    embla_plane_report report, wanted;
    (void)state;
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &table));
    assert_ok(embla_table_init(table, &(embla_init_options){.seed = 5}));
    ((float *)embla_table_data(table))[7 * DIM + 2] = NAN;  /* not in the basis */
    ((float *)embla_table_data(table))[30 * DIM + 1] = NAN; /* row 2 of the basis */
    assert_ok(embla_table_new(EMBLA_F32, BASIS, DIM, NULL, &part));
    for (int64_t i = 0; i < BASIS; i++) {
        assert_ok(embla_lookup_rows(table, &basis[i], 1, NULL, row));
        assert_ok(embla_table_write(part, i, 1, row));
    }
    const embla_plane_options options = {.basis = basis, .basis_count = BASIS, .threads = 2};
    assert_ok(embla_plane(table, &options, xy, &report));
    assert_ok(embla_plane(part, NULL, own, &wanted));
    for (size_t i = 0; i < BASIS; i++)
        for (size_t a = 0; a < 2 && i != 2; a++)
            assert_true(xy[2 * basis[i] + (int64_t)a] == own[2 * i + a]);
    assert_true(isnan(own[4]) && isnan(xy[60]) && isfinite(xy[4])); /* row 2 of the table */
    assert_true(report.share[0] == wanted.share[0] && report.share[1] == wanted.share[1]);
    assert_true(isnan(xy[14]) && isnan(xy[15]) && isfinite(xy[16]));
    assert_int_equal(report.rows, ROWS - 2);
    assert_int_equal(report.nonfinite, 2);
    assert_status(embla_plane(table,
                              &(embla_plane_options){.basis = &(int64_t){ROWS}, .basis_count = 1},
                              xy, NULL),
                  EMBLA_ERR_RANGE);
    assert_status(embla_plane(table, &(embla_plane_options){.basis = basis}, xy, NULL),
                  EMBLA_ERR_ARGUMENT);
    embla_table_free(part);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(points_are_projections_on_the_main_directions),
        cmocka_unit_test(every_dtype_has_a_plane),
        cmocka_unit_test(rows_that_are_not_finite_are_no_points),
        cmocka_unit_test(scale_does_not_matter),
        cmocka_unit_test(tables_without_two_directions),
        cmocka_unit_test(signs_are_fixed),
        cmocka_unit_test(a_basis_has_its_own_plane),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
