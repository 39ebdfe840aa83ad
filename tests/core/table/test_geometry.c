/* SPDX-License-Identifier: Apache-2.0 */
/* Dot, norm, cosine and normalising, against a loop in long double, and where floats
 * would overflow, vanish or cancel.
 */
#include "check.h"

#include "table/geometry.h"
#include <float.h>
#include <math.h>

static void dot_is_right_to_the_last_bits_of_a_double(void **state)
{
    float x[1000], y[1000];
    (void)state;
    check_fill(1, 1000, x);
    check_fill(2, 1000, y);
    for (size_t n = 0; n <= 1000; n += n < 130 ? 1 : 87) {
        long double sum = 0, magnitudes = 0;
        for (size_t i = 0; i < n; i++) {
            sum += (long double)x[i] * (long double)y[i];
            magnitudes += fabsl((long double)x[i] * (long double)y[i]);
        }
        assert_near(embla_dot(x, y, n), (double)sum,
                    (double)magnitudes * (double)(n + 1) * 0x1p-53);
    }
}

/* Sixteen partial sums by i mod 16, added as a tree: the order docs/numerics.md states. */
static void dot_sums_in_the_stated_order(void **state)
{
    float x[100], y[100];
    (void)state;
    check_fill(3, 100, x);
    check_fill(4, 100, y);
    for (size_t n = 0; n <= 100; n++) {
        double sums[16] = {0};
        for (size_t i = 0; i < n; i++) sums[i % 16] += (double)x[i] * (double)y[i];
        for (size_t half = 8; half > 0; half /= 2)
            for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
        assert_true(embla_dot(x, y, n) == sums[0]);
    }
}

static void large_and_small_numbers_neither_overflow_nor_vanish(void **state)
{
    float large[3] = {FLT_MAX, -FLT_MAX, FLT_MAX}, small[2] = {0x1p-149f, 0x1p-149f};
    (void)state;
    assert_near(embla_norm(large, 3) / ((double)FLT_MAX * sqrt(3.0)), 1.0, 1e-15);
    assert_near(embla_norm(small, 2) / (0x1p-149 * sqrt(2.0)), 1.0, 1e-15);
    assert_near(embla_cosine(large, large, 3), 1.0, 1e-15);
    assert_near(embla_cosine(small, small, 2), 1.0, 1e-15);
    embla_normalize(large, 3);
    assert_near(embla_norm(large, 3), 1.0, 1e-7);
    embla_normalize(small, 2);
    assert_near(embla_norm(small, 2), 1.0, 1e-7);
}

static void cosine_knows_same_opposite_and_square(void **state)
{
    const float east[2] = {3, 0}, north[2] = {0, 5}, west[2] = {-0.5f, 0}, between[2] = {1, 1};
    (void)state;
    assert_true(embla_cosine(east, east, 2) == 1.0);
    assert_true(embla_cosine(east, west, 2) == -1.0);
    assert_true(embla_cosine(east, north, 2) == 0.0);
    assert_near(embla_cosine(east, between, 2), sqrt(0.5), 1e-15);
}

static void cosine_with_a_zero_vector_is_0(void **state)
{
    const float zero[3] = {0, -0.0f, 0}, x[3] = {1, 2, 3};
    (void)state;
    assert_true(embla_cosine(zero, x, 3) == 0.0);
    assert_true(embla_cosine(x, zero, 3) == 0.0);
    assert_true(embla_cosine(zero, zero, 3) == 0.0);
}

static void normalising_divides_by_the_norm(void **state)
{
    float x[2] = {3, 4};
    (void)state;
    embla_normalize(x, 2);
    assert_true(x[0] == 0.6f && x[1] == 0.8f);
    for (size_t n = 1; n <= 130; n++) {
        check_guarded y = check_guard(n * sizeof(float), 4 * (n % 16));
        check_fill(n, n, (float *)(void *)y.bytes);
        embla_normalize((float *)(void *)y.bytes, n);
        assert_near(embla_norm((const float *)(const void *)y.bytes, n), 1.0, 1e-7);
        check_guards(&y);
        check_guard_free(&y);
    }
}

static void a_zero_vector_is_left_as_it_is(void **state)
{
    float x[3] = {0, -0.0f, 0}, before[3] = {0, -0.0f, 0};
    (void)state;
    embla_normalize(x, 3);
    assert_memory_equal(x, before, sizeof x);
}

static void nan_is_not_hidden(void **state)
{
    float x[20] = {0}, y[20] = {1};
    (void)state;
    x[19] = NAN;
    assert_true(isnan(embla_dot(x, y, 20)));
    assert_true(isnan(embla_norm(x, 20)));
    assert_true(isnan(embla_cosine(x, y, 20)));
}

static void of_no_numbers_all_are_0(void **state)
{
    (void)state;
    assert_true(embla_dot(NULL, NULL, 0) == 0.0);
    assert_true(embla_norm(NULL, 0) == 0.0);
    assert_true(embla_cosine(NULL, NULL, 0) == 0.0);
    embla_normalize(NULL, 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dot_is_right_to_the_last_bits_of_a_double),
        cmocka_unit_test(dot_sums_in_the_stated_order),
        cmocka_unit_test(large_and_small_numbers_neither_overflow_nor_vanish),
        cmocka_unit_test(cosine_knows_same_opposite_and_square),
        cmocka_unit_test(cosine_with_a_zero_vector_is_0),
        cmocka_unit_test(normalising_divides_by_the_norm),
        cmocka_unit_test(a_zero_vector_is_left_as_it_is),
        cmocka_unit_test(nan_is_not_hidden),
        cmocka_unit_test(of_no_numbers_all_are_0),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
