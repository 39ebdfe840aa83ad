/* SPDX-License-Identifier: Apache-2.0 */
/* Sinusoidal positions against their formula, written a second time here. */
#include "check.h"

#include <math.h>

/* sin(p / base^(2i/dim)) for column 2i, the cosine for column 2i + 1. */
static double formula(int64_t position, size_t column, size_t dim, double base, double *angle)
{
    *angle = (double)position / pow(base, (double)(2 * (column / 2)) / (double)dim);
    return column % 2 == 0 ? sin(*angle) : cos(*angle);
}

/* A float's rounding, and what the last bit of the angle makes of it far out. */
static void check_positions(int64_t first, size_t count, size_t dim, double base)
{
    check_guarded out = check_guard(count * dim * sizeof(float), 4);
    const float *x = (const float *)(const void *)out.bytes;
    assert_ok(embla_sinusoid(first, count, dim, base, (float *)(void *)out.bytes));
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < dim; j++) {
            double angle,
                wanted = formula(first + (int64_t)i, j, dim, base == 0.0 ? 1e4 : base, &angle);
            assert_near(x[i * dim + j], wanted, 0x1p-24 + fabs(angle) * 0x1p-50);
        }
    check_guards(&out);
    check_guard_free(&out);
}

static void columns_follow_the_formula(void **state)
{
    const size_t dims[] = {1, 2, 3, 16, 17, 64, 301, 768};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dims); i++) check_positions(0, 20, dims[i], 0.0);
    check_positions(0, 10, 64, 500000.0);
    check_positions(0, 10, 64, 0.5);
}

static void far_and_negative_positions_follow_the_formula(void **state)
{
    (void)state;
    check_positions(1000000, 5, 64, 0.0);
    check_positions(INT64_C(1) << 32, 5, 33, 0.0);
    check_positions(-10, 20, 16, 0.0);
}

static void position_0_is_zeros_and_ones(void **state)
{
    float x[5];
    (void)state;
    assert_ok(embla_sinusoid(0, 1, 5, 0.0, x));
    for (size_t j = 0; j < 5; j++) assert_true(x[j] == (float)(j % 2));
}

static void a_later_start_gives_the_later_rows(void **state)
{
    float all[40 * 6], tail[10 * 6];
    (void)state;
    assert_ok(embla_sinusoid(0, 40, 6, 0.0, all));
    assert_ok(embla_sinusoid(30, 10, 6, 0.0, tail));
    assert_memory_equal(tail, all + 30 * 6, sizeof tail);
}

static void the_result_serves_as_a_position_table(void **state)
{
    float places[10 * 8], out[2 * 8];
    const int32_t ids[2] = {1, 1};
    embla_table *view = NULL, *zeros = NULL;
    (void)state;
    assert_ok(embla_sinusoid(0, 10, 8, 0.0, places));
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 10, .dim = 8},
                               places, sizeof places, NULL, &view));
    assert_ok(embla_table_new(EMBLA_F32, 3, 8, NULL, &zeros));
    assert_ok(embla_embed(zeros, ids, 1, 2,
                          &(embla_embed_options){.position_table = view, .first_position = 4},
                          out));
    assert_memory_equal(out, places + 4 * 8, sizeof out);
    embla_table_free(view);
    embla_table_free(zeros);
}

static void what_cannot_be_is_refused(void **state)
{
    float x[4] = {9, 9, 9, 9};
    (void)state;
    assert_status(embla_sinusoid(0, 1, 4, -1.0, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(0, 1, 4, (double)NAN, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(0, 1, 4, (double)INFINITY, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(INT64_MAX, 2, 2, 0.0, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(0, SIZE_MAX, 4, 0.0, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(0, (SIZE_MAX >> 2) + 1, 1, 0.0, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sinusoid(0, 1, 4, 0.0, NULL), EMBLA_ERR_ARGUMENT);
    assert_true(x[0] == 9 && x[3] == 9);
    assert_ok(embla_sinusoid(INT64_MAX, 1, 2, 0.0, x));
    assert_ok(embla_sinusoid(0, 0, 4, 0.0, NULL));
    assert_ok(embla_sinusoid(0, 4, 0, 0.0, NULL));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(columns_follow_the_formula),
        cmocka_unit_test(far_and_negative_positions_follow_the_formula),
        cmocka_unit_test(position_0_is_zeros_and_ones),
        cmocka_unit_test(a_later_start_gives_the_later_rows),
        cmocka_unit_test(the_result_serves_as_a_position_table),
        cmocka_unit_test(what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
