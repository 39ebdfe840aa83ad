/* SPDX-License-Identifier: Apache-2.0 */
/* Rows no longer than they may be: every dtype against the definition in double, rows that are
 * short or not finite kept byte for byte, and what is refused.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"

enum { MOST_DIM = 1024 };

static double length(const float *x, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += (double)x[i] * (double)x[i];
    return sqrt(sum);
}

/* Rows 0 .. 19 are short, the others long. */
static embla_table *mixed(embla_dtype dtype, size_t dim)
{
    embla_table *table = check_table(dtype, 40, dim, 7);
    float row[MOST_DIM];
    for (int64_t r = 0; r < 20; r++) {
        check_row(table, r, row);
        for (size_t i = 0; i < dim; i++) row[i] *= 0.125f;
        check_write(table, r, 1, row);
    }
    return table;
}

static void rows_that_are_too_long_are_shortened_in_every_dtype(void **state)
{
    static const size_t dims[] = {32, 64, 288, 544};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++)
        for (size_t s = 0; s < COUNT_OF(dims); s++) {
            size_t dim = check_dim((embla_dtype)d, dims[s]);
            embla_table *table = mixed((embla_dtype)d, dim), *before = mixed((embla_dtype)d, dim);
            bool writes = check_writes((embla_dtype)d); /* if not, all rows stay as they are */
            size_t bytes = embla_table_row_bytes(table);
            float most = 0.125f * sqrtf((float)dim);
            float scale = check_scale((embla_dtype)d);
            assert_status(embla_table_limit_norm(table, NULL, 0, most,
                                                 &(embla_limit_norm_options){.threads = 1}),
                          writes ? EMBLA_OK : EMBLA_ERR_UNSUPPORTED);
            for (int64_t r = 0; r < 40; r++) {
                unsigned char want[MOST_DIM * 8];
                float row[MOST_DIM];
                check_row(before, r, row);
                double norm = length(row, dim);
                assert_int_equal(norm > (double)most, r >= 20);
                memcpy(want, embla_table_row(before, r), bytes);
                for (size_t i = 0; i < dim; i++)
                    row[i] = (float)((double)row[i] * ((double)most / norm));
                if (r >= 20 && writes)
                    assert_ok(embla_encode((embla_dtype)d, row, dim, scale, want));
                assert_memory_equal(embla_table_row(table, r), want, bytes);
            }
            embla_table_free(before);
            embla_table_free(table);
        }
}

static void an_f32_row_has_the_length_asked_for(void **state)
{
    static const size_t dims[] = {1, 3, 17, 33, 100, 256, 257, 1000};
    (void)state;
    for (size_t s = 0; s < COUNT_OF(dims); s++) {
        embla_table *table = check_table(EMBLA_F32, 9, dims[s], 3);
        float row[MOST_DIM], was[MOST_DIM];
        const int64_t rows[] = {2, 3, 8};
        float *data = embla_table_data(table);
        for (size_t i = 0; i < dims[s]; i++) data[5 * dims[s] + i] = 1e-3f;
        for (int64_t r = 0; r < 9; r++) {
            check_row(table, r, was);
            const float most = 0.75f * (float)length(was, dims[s]);
            bool named = r == 2 || r == 3 || r == 8;
            assert_ok(embla_table_limit_norm(table, rows, 3, INFINITY,
                                             &(embla_limit_norm_options){.threads = 2}));
            assert_ok(embla_table_limit_norm(table, &r, named ? 1 : 0, most,
                                             &(embla_limit_norm_options){.threads = 2}));
            check_row(table, r, row);
            if (!named)
                assert_memory_equal(row, was, dims[s] * sizeof *row);
            else
                assert_near(length(row, dims[s]), most, 1e-6 * (double)most);
        }
        embla_table_free(table);
    }
}

static void rows_that_are_not_finite_stay_as_they_are(void **state)
{
    enum { DIM = 40 };
    float data[4][DIM], before[4][DIM];
    embla_table *table = NULL;
    (void)state;
    for (size_t r = 0; r < 4; r++)
        for (size_t i = 0; i < DIM; i++) data[r][i] = 2.0f;
    data[0][7] = NAN;
    data[1][39] = -INFINITY;
    for (size_t i = 0; i < DIM; i++) data[2][i] = 3e38f; /* long, but finite */
    for (size_t i = 0; i < DIM; i++) data[3][i] = 1e-42f;
    memcpy(before, data, sizeof data);
    assert_ok(embla_table_view(EMBLA_F32, 4, DIM, data, sizeof data,
                               &(embla_table_options){.writable = true}, &table));
    assert_ok(
        embla_table_limit_norm(table, NULL, 99, 1.0f, &(embla_limit_norm_options){.threads = 2}));
    assert_memory_equal(data[0], before[0], sizeof data[0]);
    assert_memory_equal(data[1], before[1], sizeof data[1]);
    assert_near(length(data[2], DIM), 1.0, 1e-6);
    assert_memory_equal(data[3], before[3], sizeof data[3]);
    embla_table_free(table);
}

/* What is read, not written, is refused also where no row is too long. */
static void dtypes_that_are_only_read_are_refused(void **state)
{
    static const embla_dtype dtypes[] = {EMBLA_Q3_K, EMBLA_Q4_K, EMBLA_Q5_K, EMBLA_Q6_K,
                                         EMBLA_IQ4_XS};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        embla_table *table = check_zeros(dtypes[i], 3, 256);
        size_t bytes = 3 * embla_table_row_bytes(table);
        unsigned char *data = embla_table_data(table), before[1024];
        check_fill_bytes(i, bytes, data);
        memcpy(before, data, bytes);
        assert_status(
            embla_table_limit_norm(table, NULL, 0, 0.5f, &(embla_limit_norm_options){.threads = 1}),
            EMBLA_ERR_UNSUPPORTED);
        assert_error_has("is read-only: encoding is not supported");
        assert_memory_equal(data, before, bytes);
        embla_table_free(table);
    }
}

static void threads_and_kernels_change_nothing(void **state)
{
    static const int threads[] = {1, 2, 3, 4, 8};
    size_t bytes = 3000 * 100 * sizeof(float);
    (void)state;
    embla_table *want = check_table(EMBLA_F32, 3000, 100, 5);
    embla_kernels_use(embla_kernels_find("scalar"));
    assert_ok(
        embla_table_limit_norm(want, NULL, 0, 2.5f, &(embla_limit_norm_options){.threads = 1}));
    for (size_t k = 0; k < CHECK_SETS; k++)
        for (size_t t = 0; t < COUNT_OF(threads); t++) {
            const embla_kernels *set = embla_kernels_find(check_sets[k]);
            if (!set) continue;
            embla_kernels_use(set);
            embla_table *table = check_table(EMBLA_F32, 3000, 100, 5);
            assert_ok(embla_table_limit_norm(table, NULL, 0, 2.5f,
                                             &(embla_limit_norm_options){.threads = threads[t]}));
            assert_memory_equal(embla_table_data(table), embla_table_data(want), bytes);
            embla_table_free(table);
        }
    embla_kernels_use(NULL);
    embla_table_free(want);
}

static void what_is_wrong_is_refused_and_nothing_changes(void **state)
{
    const int64_t outside[] = {0, 4}, twice[] = {1, 1}, down[] = {2, 1}, minus[] = {-1};
    const float data[4] = {9.0f, 9.0f, 9.0f, 9.0f};
    embla_table *table = check_table(EMBLA_F32, 4, 8, 1), *view = NULL;
    float before[32];
    (void)state;
    memcpy(before, embla_table_data(table), sizeof before);
    assert_status(
        embla_table_limit_norm(NULL, NULL, 0, 1.0f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("NULL");
    assert_status(
        embla_table_limit_norm(table, NULL, 0, 0.0f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("above 0");
    assert_status(
        embla_table_limit_norm(table, NULL, 0, -1.0f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_status(
        embla_table_limit_norm(table, NULL, 0, NAN, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_status(
        embla_table_limit_norm(table, NULL, 0, 1e-3f, &(embla_limit_norm_options){.threads = -1}),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("threads is -1");
    assert_status(
        embla_table_limit_norm(table, outside, 2, 1e-3f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_RANGE);
    assert_error_has("row 4 at index 1 is out of range: the table has 4 rows");
    assert_status(
        embla_table_limit_norm(table, minus, 1, 1e-3f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_RANGE);
    assert_error_has("row -1 at index 0");
    assert_status(
        embla_table_limit_norm(table, twice, 2, 1e-3f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("row 1 at index 1 follows row 1");
    assert_status(
        embla_table_limit_norm(table, down, 2, 1e-3f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_memory_equal(embla_table_data(table), before, sizeof before);
    assert_ok(embla_table_view(EMBLA_F32, 1, 4, data, sizeof data, NULL, &view));
    assert_status(
        embla_table_limit_norm(view, NULL, 0, 1.0f, &(embla_limit_norm_options){.threads = 1}),
        EMBLA_ERR_ARGUMENT);
    assert_error_has("read-only");
    assert_ok(embla_table_limit_norm(table, down, 0, 1e-3f,
                                     &(embla_limit_norm_options){.threads = 1})); /* none of them */
    assert_memory_equal(embla_table_data(table), before, sizeof before);
    embla_table_free(view);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_that_are_too_long_are_shortened_in_every_dtype),
        cmocka_unit_test(an_f32_row_has_the_length_asked_for),
        cmocka_unit_test(rows_that_are_not_finite_stay_as_they_are),
        cmocka_unit_test(dtypes_that_are_only_read_are_refused),
        cmocka_unit_test(threads_and_kernels_change_nothing),
        cmocka_unit_test(what_is_wrong_is_refused_and_nothing_changes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
