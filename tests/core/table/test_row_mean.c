/* SPDX-License-Identifier: Apache-2.0 */
/* The mean of rows in one pass, against rows that are decoded and added one by one. */
#include "check.h"

#include "table/row_mean.h"

enum { ROWS = 40, TOKENS = 70, MOST = 700 };

static int32_t tokens[TOKENS];
static double weights[ROWS];
static float row[MOST], wanted[MOST], got[MOST + 1];

static void choose_tokens(uint64_t seed)
{
    for (size_t i = 0; i < TOKENS; i++) tokens[i] = (int32_t)check_below(&seed, ROWS);
    for (size_t i = 0; i < ROWS; i++) weights[i] = (double)check_unit(&seed);
}

/* Column by column, in the order of the tokens. */
static void plain_mean(const embla_table *table, size_t count, const double *w)
{
    double sums[MOST] = {0};
    float floats[MOST] = {0};
    bool doubles = w || embla_table_dtype(table) == EMBLA_F64;
    size_t dim = embla_table_dim(table);
    for (size_t t = 0; t < count; t++) {
        int64_t number = 0;
        assert_ok(embla_table_find_rows(table, &tokens[t], 1, &number));
        check_row(table, number, row);
        for (size_t i = 0; i < dim; i++) {
            floats[i] += row[i];
            sums[i] += (w ? w[tokens[t]] : 1.0) * (double)row[i];
        }
    }
    for (size_t i = 0; i < dim; i++)
        wanted[i] = doubles ? (float)(sums[i] / (double)count) : floats[i] / (float)count;
}

static void compare(const embla_table *table, size_t dim, size_t count, const double *w)
{
    embla_row_mean mean = embla_row_mean_of(table, dim, w);
    plain_mean(table, count, w);
    got[dim] = 7.0f;
    embla_row_mean_write(&mean, tokens, count, got);
    for (size_t i = 0; i < dim; i++)
        if (check_bits_of(got[i]) != check_bits_of(wanted[i]))
            fail_msg("%s, column %zu of %zu, %zu tokens: %.9g, expected %.9g",
                     embla_dtype_name(embla_table_dtype(table)), i, dim, count, (double)got[i],
                     (double)wanted[i]);
    assert_true(got[dim] == 7.0f);
}

static void every_dtype_and_set_gives_the_bits_of_a_plain_loop(void **state)
{
    const size_t dims[] = {1, 2, 63, 64, 65, 128, 255, 256, 300, 700}, counts[] = {1, 2, 9, TOKENS};
    (void)state;
    choose_tokens(5);
    for (size_t set = 0; set < CHECK_SETS; set++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[set]);
        if (!kernels) continue;
        embla_kernels_use(kernels);
        for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
            for (size_t k = 0; k < COUNT_OF(dims); k++) {
                size_t dim = check_dim((embla_dtype)d, dims[k]);
                if (dim > MOST) continue;
                embla_table *table = check_table((embla_dtype)d, ROWS, dim, 3 + k);
                for (size_t n = 0; n < COUNT_OF(counts); n++) {
                    compare(table, dim, counts[n], NULL);
                    compare(table, dim, counts[n], weights);
                    compare(table, (dim + 1) / 2, counts[n], NULL);
                    compare(table, (dim + 1) / 2, counts[n], weights);
                }
                embla_table_free(table);
            }
        }
    }
    embla_kernels_use(NULL);
}

static void a_mapping_and_a_stride_are_used(void **state)
{
    static float values[8 * 80];
    int64_t rows_of[ROWS];
    embla_table *table = NULL;
    uint64_t seed = 9;
    (void)state;
    choose_tokens(6);
    check_fill(1, COUNT_OF(values), values);
    for (size_t i = 0; i < ROWS; i++) rows_of[i] = (int64_t)check_below(&seed, 8);
    const embla_table_options options = {
        .row_stride = 80 * sizeof(float), .token_rows = rows_of, .token_count = ROWS};
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 8, .dim = 77},
                               values, sizeof values, &options, &table));
    compare(table, 77, TOKENS, NULL);
    compare(table, 70, TOKENS, weights);
    embla_table_free(table);
}

static void rows_of_a_large_table_are_prefetched_and_the_same(void **state)
{
    (void)state;
    choose_tokens(7);
    embla_table *table = check_table(EMBLA_F32, 4000, 100, 2);
    assert_true(embla_row_mean_of(table, 100, NULL).fetch);
    compare(table, 100, TOKENS, NULL);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_and_set_gives_the_bits_of_a_plain_loop),
        cmocka_unit_test(a_mapping_and_a_stride_are_used),
        cmocka_unit_test(rows_of_a_large_table_are_prefetched_and_the_same),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
