/* SPDX-License-Identifier: Apache-2.0 */
/* The row that does not match the others: by hand, at the edges, and refusals.
 */
#include <math.h>

#include "check.h"
#include "embla_lab.h"

enum { DIM = 2, ROWS = 6 };

static const float numbers[ROWS][DIM] = {{1, 0}, {10, 1}, {3, 0.1F}, {0, -2}, {0, 0}, {NAN, 1}};

static embla_table *new_table(void)
{
    embla_table *table = NULL;
    assert_int_equal(
        embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                         numbers, sizeof numbers, NULL, &table),
        EMBLA_OK);
    return table;
}

static void the_row_in_another_direction_is_odd(void **state)
{
    const int64_t rows[] = {0, 1, 3, 2};
    double cosines[4];
    size_t odd = 9;
    embla_table *table = new_table();
    (void)state;
    assert_int_equal(embla_odd_row(table, rows, 4, cosines, &odd), EMBLA_OK);
    assert_int_equal(odd, 2);
    /* by hand: units (1, 0), (10, 1) / sqrt(101), (0, -1), (3, .1) / sqrt(9.01) */
    double x = 1 + 10 / sqrt(101) + 3 / sqrt(9.01), y = 1 / sqrt(101) - 1 + 0.1 / sqrt(9.01);
    assert_true(fabs(cosines[0] - x / hypot(x, y)) < 1e-7);
    assert_true(fabs(cosines[2] + y / hypot(x, y)) < 1e-7);
    embla_table_free(table);
}

static void zeros_and_opposites_have_cosine_0_and_the_first_of_equals_is_odd(void **state)
{
    const int64_t same[] = {1, 1, 1}, zeros[] = {4, 4};
    double cosines[3];
    size_t odd = 9;
    embla_table *table = new_table();
    (void)state;
    assert_int_equal(embla_odd_row(table, same, 3, cosines, &odd), EMBLA_OK);
    assert_int_equal(odd, 0);
    assert_true(fabs(cosines[2] - 1) < 1e-12);
    assert_int_equal(embla_odd_row(table, zeros, 2, cosines, &odd), EMBLA_OK);
    assert_true(cosines[0] == 0 && cosines[1] == 0);
    embla_table_free(table);
}

static void wrong_arguments_are_refused(void **state)
{
    const int64_t rows[] = {0, 1, 5}, outside[] = {0, 6};
    double cosines[3];
    size_t odd;
    embla_table *table = new_table();
    (void)state;
    assert_int_equal(embla_odd_row(table, rows, 1, cosines, &odd), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_odd_row(NULL, rows, 2, cosines, &odd), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_odd_row(table, NULL, 2, cosines, &odd), EMBLA_ERR_ARGUMENT);
    assert_int_equal(embla_odd_row(table, rows, 3, cosines, &odd), EMBLA_ERR_ARGUMENT);
    assert_non_null(strstr(embla_error(), "row 5"));
    assert_int_equal(embla_odd_row(table, outside, 2, cosines, &odd), EMBLA_ERR_RANGE);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_row_in_another_direction_is_odd),
        cmocka_unit_test(zeros_and_opposites_have_cosine_0_and_the_first_of_equals_is_odd),
        cmocka_unit_test(wrong_arguments_are_refused)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
