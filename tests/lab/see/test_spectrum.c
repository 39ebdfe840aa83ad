/* SPDX-License-Identifier: Apache-2.0 */
/* Sums of products and singular values, against plain loops in double and Jacobi's rotations:
 * every dtype, sizes around the edges of tiles, blocks and lanes, rows that are not finite,
 * numbers at both ends of float. And the same bits for any number of threads.
 */
#include "engine.h"

#include <errno.h>
#include <math.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "engine/gram.h"
#include "files/io.h"
#include "scratch.h"
#include "slow.h"

/* ---- the slow way ---- */

typedef struct {
    size_t dim;
    int64_t rows, nonfinite;
    double *mean, *matrix;
} slow;

static bool finite_row(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

/* Twice over the table: the mean, then the products of what is left of it. */
static slow slow_gram(const embla_table *table, bool centred)
{
    slow s = {.dim = embla_table_dim(table)};
    int64_t rows = embla_table_rows(table);
    float *x = malloc(s.dim * sizeof *x);
    s.mean = calloc(s.dim, sizeof *s.mean);
    s.matrix = calloc(s.dim * s.dim, sizeof *s.matrix);
    for (int pass = 0; pass < 2; pass++) {
        for (int64_t row = 0; row < rows; row++) {
            check_row(table, row, x);
            if (!finite_row(x, s.dim)) {
                s.nonfinite += pass;
                continue;
            }
            s.rows += pass;
            for (size_t i = 0; i < s.dim; i++) {
                double a = (double)x[i] - (centred && pass == 1 ? s.mean[i] : 0);
                if (pass == 0) s.mean[i] += a;
                for (size_t j = i; pass == 1 && j < s.dim; j++)
                    s.matrix[i * s.dim + j] += a * ((double)x[j] - (centred ? s.mean[j] : 0));
            }
        }
        int64_t count = pass == 0 ? 0 : s.rows;
        if (pass == 0) {
            for (int64_t row = 0; row < rows; row++) {
                check_row(table, row, x);
                count += finite_row(x, s.dim);
            }
            for (size_t i = 0; count > 0 && i < s.dim; i++) s.mean[i] /= (double)count;
        }
    }
    free(x);
    return s;
}

static void slow_free(slow *s)
{
    free(s->mean);
    free(s->matrix);
}

/* Eigenvalues of the symmetric matrix whose upper half is given, largest first. */
static void jacobi(double *m, size_t n, double *values)
{
    double trace = 0;
    for (size_t i = 0; i < n; i++) {
        trace += m[i * n + i];
        for (size_t j = 0; j < i; j++) m[i * n + j] = m[j * n + i];
    }
    bool more = true;
    for (int sweep = 0; sweep < 30 && more; sweep++) {
        more = false;
        for (size_t p = 0; p < n; p++)
            for (size_t q = p + 1; q < n; q++) {
                if (fabs(m[p * n + q]) <= 1e-16 * trace) continue;
                more = true;
                double theta = (m[q * n + q] - m[p * n + p]) / (2 * m[p * n + q]);
                double t = (theta >= 0 ? 1 : -1) / (fabs(theta) + sqrt(theta * theta + 1));
                double c = 1 / sqrt(t * t + 1), s = t * c;
                for (size_t k = 0; k < n; k++) {
                    double a = m[k * n + p], b = m[k * n + q];
                    m[k * n + p] = c * a - s * b;
                    m[k * n + q] = s * a + c * b;
                }
                for (size_t k = 0; k < n; k++) {
                    double a = m[p * n + k], b = m[q * n + k];
                    m[p * n + k] = c * a - s * b;
                    m[q * n + k] = s * a + c * b;
                }
            }
    }
    for (size_t i = 0; i < n; i++) {
        double value = m[i * n + i];
        size_t at = i;
        for (; at > 0 && values[at - 1] < value; at--) values[at] = values[at - 1];
        values[at] = value;
    }
}

/* ---- sums of products ---- */

static void check_gram_by(const embla_table *table, bool centred, bool plain)
{
    slow s = slow_gram(table, centred);
    embla_gram g;
    size_t live = embla_mem_live();
    const embla_gram_options options = {.centred = centred, .plain = plain, .threads = 2};
    assert_ok(embla_gram_of(table, &options, &g));
    assert_int_equal(g.dim, s.dim);
    assert_int_equal(g.rows, s.rows);
    assert_int_equal(g.nonfinite, s.nonfinite);
    double scale = ldexp(1, g.exponent), most = 0;
    for (size_t i = 0; i < s.dim; i++) most = fmax(most, s.matrix[i * s.dim + i]);
    for (size_t i = 0; i < s.dim; i++) {
        assert_near(g.mean[i], s.mean[i], 1e-12 * (fabs(s.mean[i]) + sqrt(most)));
        for (size_t j = i; j < s.dim; j++)
            assert_near(g.matrix[i * s.dim + j] * scale * scale, s.matrix[i * s.dim + j],
                        3e-6 * most);
    }
    embla_gram_free(&g);
    assert_int_equal(embla_mem_live(), live);
    slow_free(&s);
}

static void check_gram(const embla_table *table, bool centred)
{
    check_gram_by(table, centred, false);
    check_gram_by(table, centred, true);
}

static void sums_of_products_are_those_of_double(void **state)
{
    /* rows: around a block (512), a turn (2048), a chunk (1024); dim: around a piece and a tile */
    static const struct {
        int64_t rows;
        size_t dim;
    } sizes[] = {{1, 1},     {1, 9},     {2, 1},     {3, 5},     {511, 4},   {512, 3},  {513, 7},
                 {1025, 16}, {2049, 33}, {40000, 3}, {600, 257}, {520, 511}, {30, 513}, {70, 1030}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        embla_table *table = check_table(EMBLA_F32, sizes[s].rows, sizes[s].dim, s + 1);
        check_gram(table, false);
        check_gram(table, true);
        embla_table_free(table);
    }
}

static void every_dtype_is_summed(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++) {
        embla_table *table = check_table((embla_dtype)dtype, SLOW_BUILD ? 150 : 600,
                                         check_dim((embla_dtype)dtype, 288), 5);
        check_gram(table, true);
        check_gram(table, false);
        embla_table_free(table);
    }
}

/* Rows with something between them, and floats that no float pointer may point to. */
static void views_with_strides_are_summed(void **state)
{
    enum { ROWS = 700, DIM = 9 };
    (void)state;
    for (size_t offset = 0; offset < 2; offset++) {
        embla_table_options options = {.row_stride = DIM * 4 + 5 + 3 * (1 - offset)};
        size_t bytes = ROWS * options.row_stride + offset;
        unsigned char *data = malloc(bytes);
        uint64_t seed = 77;
        memset(data, 0xff, bytes); /* NaN between the rows */
        for (size_t i = 0; i < (size_t)ROWS * DIM; i++) {
            float x = check_unit(&seed) + 3.0f;
            memcpy(data + offset + i / DIM * options.row_stride + i % DIM * 4, &x, 4);
        }
        embla_table *table = NULL;
        assert_ok(
            embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                             data + offset, bytes - offset, &options, &table));
        check_gram(table, true);
        check_gram(table, false);
        embla_table_free(table);
        free(data);
    }
}

static void rows_that_are_not_finite_are_left_out(void **state)
{
    enum { ROWS = 1500, DIM = 21 };
    static const int64_t bad[] = {0, 63, 64, 511, 512, 1023, 1024, 1499};
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 3);
    float *data = embla_table_data(table);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        data[bad[i] * DIM + (int64_t)(i * 3 % DIM)] = i % 3 == 0   ? NAN
                                                      : i % 3 == 1 ? INFINITY
                                                                   : -INFINITY;
    check_gram(table, false);
    check_gram(table, true);
    embla_gram g;
    assert_ok(embla_gram_of(table, &(embla_gram_options){.threads = 1}, &g));
    assert_int_equal(g.nonfinite, COUNT_OF(bad));
    for (int64_t row = 0, next = 0; row < ROWS; row++) {
        bool is = next < (int64_t)COUNT_OF(bad) && row == bad[next];
        assert_int_equal(embla_gram_left_out(&g, row), is);
        next += is;
    }
    embla_gram_free(&g);
    embla_table_free(table);
}

static void the_ends_of_float_are_summed(void **state)
{
    static const float sizes[] = {3e38f, 1e38f, 1e25f, 1e12f, 1e-12f, 1e-25f, 1e-38f, 1e-41f};
    enum { ROWS = 600, DIM = 6 };
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        embla_table *table = check_table(EMBLA_F32, ROWS, DIM, s);
        float *data = embla_table_data(table);
        uint64_t seed = s;
        for (size_t i = 0; i < (size_t)ROWS * DIM; i++) data[i] = check_unit(&seed) * sizes[s];
        check_gram(table, false);
        check_gram(table, true);
        embla_table_free(table);
    }
    /* doubles that no float holds: the row is not finite */
    double wide[4] = {1, 2, 1e300, 4};
    embla_table *table = NULL;
    embla_gram g;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F64, .rows = 2, .dim = 2}, wide,
                               sizeof wide, NULL, &table));
    assert_ok(embla_gram_of(table, &(embla_gram_options){.threads = 1}, &g));
    assert_true(g.rows == 1 && g.nonfinite == 1 && g.matrix[0] == 1 && g.matrix[1] == 2);
    embla_gram_free(&g);
    embla_table_free(table);
}

/* Two neighbouring floats: their mean is none, and what rounding it leaves is half of all there
 * is around it. */
static void a_mean_that_is_no_float(void **state)
{
    float rows[2] = {1000.0f, nextafterf(1000.0f, 2000.0f)};
    double step = (double)rows[1] - (double)rows[0], s;
    embla_table *table = NULL;
    embla_spectrum_report summary;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 1}, rows,
                               sizeof rows, NULL, &table));
    assert_ok(embla_spectrum(table, &(embla_spectrum_options){.centred = true}, &s, &summary));
    assert_near(s, step / sqrt(2), 1e-6 * step);
    embla_table_free(table);
}

/* A mean a thousand times as large as what is around it does not hide that. */
static void a_large_mean_does_no_harm(void **state)
{
    enum { ROWS = 3000, DIM = 8 };
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 9);
    float *data = embla_table_data(table);
    for (size_t i = 0; i < (size_t)ROWS * DIM; i++) data[i] += 1000.0f;
    double s[DIM], wanted[DIM];
    embla_spectrum_report summary;
    slow exact = slow_gram(table, true), whole = slow_gram(table, false);
    check_gram(table, true);
    assert_ok(embla_spectrum(table, NULL, s, &summary));
    jacobi(whole.matrix, DIM, wanted);
    for (size_t i = 0; i < DIM; i++)
        assert_near(s[i], sqrt(wanted[i]), 1e-4 * sqrt(exact.matrix[0]));
    slow_free(&exact);
    slow_free(&whole);
    embla_table_free(table);
}

static void check_threads(const embla_table *table, embla_gram_options options)
{
    static const int counts[] = {2, 3, 5, 16};
    embla_gram one, more;
    options.threads = 1;
    assert_ok(embla_gram_of(table, &options, &one));
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        const char *const sets[] = {"scalar", "neon", "avx2", "avx512"};
        const embla_kernels *set = embla_kernels_find(sets[c % 3]), *before = embla_kernels_get();
        if (options.plain && set) embla_kernels_use(set);
        options.threads = counts[c];
        assert_ok(embla_gram_of(table, &options, &more));
        embla_kernels_use(before);
        assert_memory_equal(one.mean, more.mean, one.mean_bytes);
        assert_memory_equal(one.matrix, more.matrix, one.matrix_bytes);
        assert_true(one.noise == more.noise);
        embla_gram_free(&more);
    }
    embla_gram_free(&one);
}

/* And without an engine any kernel set, too. */
static void any_number_of_threads_gives_the_same_bits(void **state)
{
    static const struct {
        int64_t rows;
        size_t dim;
    } sizes[] = {{70001, 24}, {3000, 700}, {5000, 1100}};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(sizes); s++) {
        embla_table *table =
            check_table(s == 1 ? EMBLA_BF16 : EMBLA_F32, sizes[s].rows, sizes[s].dim, 11);
        check_threads(table, (embla_gram_options){.centred = s != 1});
        check_threads(table, (embla_gram_options){.centred = s != 1, .plain = true});
        embla_table_free(table);
    }
}

/* ---- singular values ---- */

static void check_summary(const double *s, size_t n, const embla_spectrum_report *got)
{
    double sum = 0, squares = 0, fourth = 0, entropy = 0, part = 0;
    int64_t half = 0, most = 0;
    for (size_t i = 0; i < n; i++) {
        sum += s[i];
        squares += pow(s[i], 2);
        fourth += pow(s[i], 4);
    }
    for (size_t i = 0; i < n; i++) {
        if (s[i] > 0) entropy -= s[i] / sum * log(s[i] / sum);
        if (part < 0.5 * squares) half = (int64_t)i + 1;
        if (part < 0.9 * squares) most = (int64_t)i + 1;
        part += s[i] * s[i];
    }
    assert_int_equal(got->count, n);
    assert_near(got->effective_rank, exp(entropy), 1e-9 * (double)n);
    assert_near(got->participation, squares * squares / fourth, 1e-9 * (double)n);
    assert_near(got->stable_rank, squares / (s[0] * s[0]), 1e-9 * (double)n);
    assert_int_equal(got->rank_50, half);
    assert_int_equal(got->rank_90, most);
}

static void check_spectrum(const embla_table *table, bool centred)
{
    slow g = slow_gram(table, centred);
    double *s = malloc(g.dim * sizeof *s), *wanted = malloc(g.dim * sizeof *s);
    embla_spectrum_options options = {.centred = centred};
    embla_spectrum_report summary;
    assert_ok(embla_spectrum(table, &options, s, &summary));
    jacobi(g.matrix, g.dim, wanted);
    assert_int_equal(summary.rows, g.rows);
    assert_int_equal(summary.nonfinite, g.nonfinite);
    for (size_t i = 0; i < g.dim; i++) {
        double exact = wanted[i] > 0 ? sqrt(wanted[i]) : 0;
        if (i > 0) assert_true(s[i] <= s[i - 1]);
        /* near 0 the root makes much of little */
        assert_near(s[i], exact, exact > 0.01 * s[0] ? 1e-5 * s[0] : 4e-4 * s[0]);
    }
    check_summary(s, g.dim, &summary);
    free(s), free(wanted);
    slow_free(&g);
}

static void singular_values_are_those_of_double(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype += SLOW_BUILD ? 3 : 1) {
        embla_table *table =
            check_table((embla_dtype)dtype, 900, check_dim((embla_dtype)dtype, 64), 21);
        check_spectrum(table, false);
        check_spectrum(table, true);
        embla_table_free(table);
    }
    static const size_t sizes[][2] = {{1, 1}, {1, 5}, {7, 1}, {3, 3}, {40, 90}, {90, 40}};
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        embla_table *table = check_table(EMBLA_F32, (int64_t)sizes[i][0], sizes[i][1], i);
        check_spectrum(table, false);
        if (sizes[i][0] > 1) check_spectrum(table, true);
        embla_table_free(table);
    }
}

/* What there cannot be is 0, and not 1/3000 of the largest, ninety times. */
static void no_more_directions_than_rows(void **state)
{
    double s[90];
    embla_spectrum_report summary;
    (void)state;
    embla_table *table = check_table(EMBLA_F32, 40, 90, 1);
    assert_ok(embla_spectrum(table, NULL, s, &summary));
    assert_true(s[39] > 0 && s[40] == 0 && s[89] == 0);
    assert_true(summary.effective_rank <= 40);
    assert_ok(embla_spectrum(table, &(embla_spectrum_options){.centred = true}, s, &summary));
    assert_true(s[38] > 0 && s[39] == 0);
    embla_table_free(table);
}

/* Every row a multiple of one: one direction, whatever rounding says. */
static void a_table_of_one_direction(void **state)
{
    enum { ROWS = 2000, DIM = 100 };
    double s[DIM];
    embla_spectrum_report summary;
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
    float *data = embla_table_data(table);
    for (int64_t row = 1; row < ROWS; row++)
        for (int64_t i = 0; i < DIM; i++) data[row * DIM + i] = data[i] * (float)(row % 64 - 20);
    assert_ok(embla_spectrum(table, NULL, s, &summary));
    assert_near(summary.effective_rank, 1, 1e-12);
    assert_true(summary.rank_50 == 1 && summary.rank_90 == 1 && s[1] == 0);
    for (int64_t row = 1; row < ROWS; row++) memcpy(data + row * DIM, data, DIM * sizeof(float));
    assert_ok(embla_spectrum(table, NULL, s, &summary)); /* all rows equal */
    assert_near(s[0], sqrt(ROWS) * embla_norm(data, DIM), 1e-9 * s[0]);
    assert_near(summary.stable_rank, 1, 1e-12);
    assert_true(s[1] == 0);
    assert_ok(embla_spectrum(table, &(embla_spectrum_options){.centred = true}, s, &summary));
    assert_true(s[0] == 0 && summary.effective_rank == 0 && summary.rank_50 == 0);
    embla_table_free(table);
}

static void tables_of_nothing(void **state)
{
    double s[4] = {9, 9, 9, 9};
    float zeros[12] = {0}, nans[8];
    embla_table *table = NULL;
    embla_spectrum_report summary;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 3, .dim = 4},
                               zeros, sizeof zeros, NULL, &table));
    assert_ok(embla_spectrum(table, NULL, s, &summary));
    assert_true(s[0] == 0 && s[3] == 0 && summary.rows == 3 && summary.nonfinite == 0);
    assert_true(summary.effective_rank == 0 && summary.participation == 0 && summary.rank_90 == 0);
    embla_table_free(table);
    for (size_t i = 0; i < 8; i++) nans[i] = NAN;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 2, .dim = 4}, nans,
                               sizeof nans, NULL, &table));
    for (int centred = 0; centred < 2; centred++) {
        assert_ok(
            embla_spectrum(table, &(embla_spectrum_options){.centred = centred == 1}, s, &summary));
        assert_true(s[0] == 0 && summary.rows == 0 && summary.nonfinite == 2);
        assert_true(summary.stable_rank == 0);
    }
    embla_table_free(table);
}

/* Powers of two move values and nothing else. */
static void scale_is_kept_at_the_ends_of_float(void **state)
{
    enum { ROWS = 300, DIM = 12 };
    static const int powers[] = {120, 60, 30, -30, -60, -100};
    double plain[DIM], s[DIM];
    embla_spectrum_report summary, same;
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 4);
    float *data = embla_table_data(table), *copy = malloc(ROWS * DIM * sizeof(float));
    memcpy(copy, data, ROWS * DIM * sizeof(float));
    assert_ok(embla_spectrum(table, NULL, plain, &summary));
    for (size_t p = 0; p < COUNT_OF(powers); p++) {
        for (size_t i = 0; i < (size_t)ROWS * DIM; i++) data[i] = ldexpf(copy[i], powers[p]);
        assert_ok(embla_spectrum(table, NULL, s, &same));
        for (size_t i = 0; i < DIM; i++)
            assert_near(s[i], ldexp(plain[i], powers[p]), 1e-6 * ldexp(plain[0], powers[p]));
        assert_near(same.effective_rank, summary.effective_rank, 1e-6);
    }
    free(copy);
    embla_table_free(table);
}

/* ---- what can go wrong ---- */

static void wrong_calls_are_refused(void **state)
{
    double s[4] = {5};
    embla_spectrum_report summary = {.rows = 7};
    embla_table *table = check_table(EMBLA_F32, 4, 4, 1), *wide = NULL;
    (void)state;
    assert_status(embla_spectrum(NULL, NULL, s, &summary), EMBLA_ERR_ARGUMENT);
    assert_status(embla_spectrum(table, NULL, NULL, &summary), EMBLA_ERR_ARGUMENT);
    assert_status(embla_spectrum(table, NULL, s, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_spectrum(table, &(embla_spectrum_options){.threads = -1}, s, &summary),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("threads is -1");
    assert_ok(embla_table_new(EMBLA_F32, 1, 32769, NULL, &wide));
    assert_status(embla_spectrum(wide, NULL, s, &summary), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("32769");
    assert_true(s[0] == 5 && summary.rows == 7);
    embla_table_free(wide);
    embla_table_free(table);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    embla_table *table = check_table(EMBLA_F16, 600, 20, 1);
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        for (size_t at = 1;; at++) {
            double s[20] = {5};
            embla_spectrum_report summary = {.rows = 7};
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_spectrum(table, NULL, s, &summary);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_true(s[0] == 5 && summary.rows == 7);
            failures++;
        }
        assert_int_equal(failures, 7);
    }
    embla_table_free(table);
}

/* A file that is cut short is not read as if it were whole. */
static void a_file_that_was_cut_is_noticed(void **state)
{
    enum { ROWS = 64, DIM = 16, HEADER = 128 };
    static unsigned char bytes[HEADER + ROWS * DIM * 4];
    double s[DIM] = {5};
    embla_spectrum_report summary;
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    scratch folder;
    (void)state;
    scratch_new(&folder);
    memset(bytes, ' ', HEADER);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    int n = snprintf((char *)bytes + 10, HEADER - 10,
                     "{'descr': '<f4', 'fortran_order': False, 'shape': (%d, %d), }", ROWS, DIM);
    bytes[10 + n] = ' ';
    bytes[HEADER - 1] = '\n';
    const char *path = scratch_path(&folder, "t.npy");
    scratch_write(path, bytes, sizeof bytes);
    assert_ok(embla_checkpoint_open(path, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    embla_checkpoint_free(checkpoint);
    for (size_t at = 1; at <= 2; at++) { /* asked before the first row, and after the last */
        s[0] = 5;
        embla_io_fail(at, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_spectrum(table, NULL, s, &summary);
        embla_io_fail(0, false, 0);
        assert_status(status, EMBLA_ERR_IO);
        assert_true(s[0] == 5);
    }
    assert_ok(embla_spectrum(table, NULL, s, &summary));
    s[0] = 5;
    assert_int_equal(truncate(path, HEADER + 64), 0);
    assert_status(embla_spectrum(table, NULL, s, &summary), EMBLA_ERR_IO);
    assert_true(s[0] == 5);
    embla_table_free(table);
    scratch_free(&folder);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(sums_of_products_are_those_of_double),
        cmocka_unit_test(every_dtype_is_summed),
        cmocka_unit_test(views_with_strides_are_summed),
        cmocka_unit_test(rows_that_are_not_finite_are_left_out),
        cmocka_unit_test(the_ends_of_float_are_summed),
        cmocka_unit_test(a_mean_that_is_no_float),
        cmocka_unit_test(a_large_mean_does_no_harm),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(singular_values_are_those_of_double),
        cmocka_unit_test(no_more_directions_than_rows),
        cmocka_unit_test(a_table_of_one_direction),
        cmocka_unit_test(tables_of_nothing),
        cmocka_unit_test(scale_is_kept_at_the_ends_of_float),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_file_that_was_cut_is_noticed),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
