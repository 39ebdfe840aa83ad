/* SPDX-License-Identifier: Apache-2.0 */
/* Wide sums: exact, and the same for every order and every division. */
#include <float.h>
#include <math.h>

#include "check.h"

#include "learn/wide_sum.h"

enum { COUNT = 300 };

/* Squares of floats of all sizes. */
static void fill(double x[COUNT], uint64_t seed, int low, int high)
{
    for (size_t i = 0; i < COUNT; i++) {
        int exponent = low + (int)check_below(&seed, (uint64_t)(high - low + 1));
        double f = (double)ldexpf(1.0f + (float)(check_next(&seed) >> 41) * 0x1p-23f, exponent);
        x[i] = f * f;
    }
}

static void every_order_and_division_gives_the_same_bits(void **unused)
{
    (void)unused;
    double x[COUNT];
    static const int ranges[][2] = {{-149, 127}, {-20, 0}, {-149, -100}, {90, 127}};
    for (size_t r = 0; r < COUNT_OF(ranges); r++) {
        embla_wide_sum up = {0}, down = {0}, odd = {0};
        fill(x, r + 1, ranges[r][0], ranges[r][1]);
        for (size_t i = 0; i < COUNT; i++) {
            embla_wide_add(&up, x[i]);
            embla_wide_add(&down, x[COUNT - 1 - i]);
        }
        for (size_t i = 1; i < COUNT; i += 2) embla_wide_add(&odd, x[i]);
        embla_wide_sum parts = {0};
        for (size_t i = 0; i < COUNT; i += 2) embla_wide_add(&parts, x[i]);
        for (size_t i = 0; i < EMBLA_WIDE_WORDS; i++) parts.words[i] += odd.words[i];
        double wanted = embla_wide_round(&up);
        assert_true(embla_wide_round(&down) == wanted);
        assert_true(embla_wide_round(&parts) == wanted);
        long double sum = 0;
        for (size_t i = 0; i < COUNT; i++) sum += (long double)x[i];
        assert_true(fabsl((long double)wanted - sum) <= sum * 0x1p-51L);
    }
}

static void single_numbers_stay_as_they_are(void **unused)
{
    (void)unused;
    static const double x[] = {0.0,
                               1.0,
                               0x1.fffffffffffffp0,
                               0x1p-298,
                               0x1.8p-380,
                               0x1p299,
                               (double)FLT_MAX * (double)FLT_MAX,
                               0x1.0000000000001p-33};
    for (size_t i = 0; i < COUNT_OF(x); i++) {
        embla_wide_sum sum = {0};
        embla_wide_add(&sum, x[i]);
        assert_true(embla_wide_round(&sum) == x[i]);
    }
}

/* Small numbers beside a large one are not lost. */
static void nothing_is_rounded_before_the_end(void **unused)
{
    (void)unused;
    embla_wide_sum sum = {0};
    embla_wide_add(&sum, 0x1p100);
    for (int i = 0; i < 1 << 20; i++) embla_wide_add(&sum, 0x1p29);
    assert_true(embla_wide_round(&sum) == 0x1p100 + 0x1p49);
}

static void what_is_not_finite_makes_a_nan(void **unused)
{
    (void)unused;
    embla_wide_sum nan = {0}, infinite = {0};
    embla_wide_add(&nan, NAN);
    embla_wide_add(&infinite, INFINITY);
    embla_wide_add(&infinite, 1.0);
    assert_true(isnan(embla_wide_round(&nan)));
    assert_true(isnan(embla_wide_round(&infinite)));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_order_and_division_gives_the_same_bits),
        cmocka_unit_test(single_numbers_stay_as_they_are),
        cmocka_unit_test(nothing_is_rounded_before_the_end),
        cmocka_unit_test(what_is_not_finite_makes_a_nan),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
