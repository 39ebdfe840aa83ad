/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, logarithms, powers, sines and cosines beside the C library's in long double. Their
 * bits, which are the same on every machine, are in tests/bits.
 */
#include <float.h>
#include <math.h>

#include "check.h"

#include "base/elementary.h"

/* |got - wanted| in units in the last place of the result. */
static double units(double got, long double wanted)
{
    int exponent;
    (void)frexp((double)wanted, &exponent);
    if (exponent < DBL_MIN_EXP) exponent = DBL_MIN_EXP;
    return fabs((double)((got - wanted) / ldexpl(1.0L, exponent - DBL_MANT_DIG)));
}

/* More is allowed where long double is no more exact than double. */
static double most_units(double most)
{
    return LDBL_MANT_DIG > DBL_MANT_DIG ? most : most + 1.0;
}

/* Compares at places evenly spread from least to most, or whose logarithms are. */
static void compare(const char *name, double (*ours)(double), long double (*theirs)(long double),
                    double least, double most, bool logarithmic)
{
    enum { PLACES = 5000 };
    uint64_t seed = 1;
    for (int i = 0; i < PLACES; i++) {
        double share = (double)(check_next(&seed) >> 11) * 0x1p-53;
        double x = least + (most - least) * share;
        if (logarithmic) x = exp(x);
        double error = units(ours(x), theirs((long double)x));
        if (!(error <= most_units(*name == 'p' ? 1.0 : 0.9)))
            fail_msg("%s(%.17g): %.3f units", name, x, error);
    }
}

static void exponentials_are_near_those_of_the_c_library(void **state)
{
    (void)state;
    compare("exp", embla_exp, expl, -745, 709.7, false);
    compare("exp", embla_exp, expl, -1, 1, false);
    compare("exp", embla_exp, expl, -40, 0, true);
    compare("expm1", embla_expm1, expm1l, -45, 709.7, false);
    compare("expm1", embla_expm1, expm1l, -1, 1, false);
    compare("expm1", embla_expm1, expm1l, -700, -1, true);
}

static void logarithms_are_near_those_of_the_c_library(void **state)
{
    (void)state;
    compare("log", embla_log, logl, -740, 709, true);
    compare("log", embla_log, logl, 0.5, 2, false);
    compare("log", embla_log, logl, 0.999, 1.001, false);
    compare("log1p", embla_log1p, log1pl, -1, 3, false);
    compare("log1p", embla_log1p, log1pl, -700, 700, true);
}

static double small_power(double x)
{
    return embla_pow(x, -0.37);
}

static long double small_power_wanted(long double x)
{
    return powl(x, (long double)-0.37);
}

static double large_power(double x)
{
    return embla_pow(x, 1000.7);
}

static long double large_power_wanted(long double x)
{
    return powl(x, (long double)1000.7);
}

static void powers_are_near_those_of_the_c_library(void **state)
{
    (void)state;
    compare("pow", small_power, small_power_wanted, -700, 700, true);
    compare("pow", large_power, large_power_wanted, -0.7, 0.7, true);
}

static void sines_are_near_those_of_the_c_library(void **state)
{
    (void)state;
    compare("sin", embla_sin, sinl, -4, 4, false);
    compare("cos", embla_cos, cosl, -4, 4, false);
    compare("sin", embla_sin, sinl, -600000, 600000, false);
    compare("cos", embla_cos, cosl, -600000, 600000, false);
    compare("sin", embla_sin, sinl, 13, 42, true);
    compare("cos", embla_cos, cosl, 13, 42, true);
    compare("sin", embla_sin, sinl, -700, -1, true);
}

/* Any double: also the largest ones, and the neighbours of multiples of pi/2. */
static void angles_of_any_size_have_a_sine(void **state)
{
    uint64_t seed = 2;
    (void)state;
    for (int i = 0; i < 100000; i++) {
        uint64_t bits = check_next(&seed);
        double x;
        memcpy(&x, &bits, sizeof x);
        if (i % 4 == 0) x = (double)(bits >> 40) * 1.5707963267948966;
        if (!isfinite(x)) continue;
        assert_near(embla_sin(x), sin(x), 0x1p-52);
        assert_near(embla_cos(x), cos(x), 0x1p-52);
    }
}

static void assert_same(double got, double wanted)
{
    bool same = isnan(wanted) ? isnan(got) : got == wanted && !signbit(got) == !signbit(wanted);
    if (!same) fail_msg("%.17g, but %.17g is right", got, wanted);
}

static void the_ends_are_exact(void **state)
{
    const double tiny = 0x1p-1074, large = DBL_MAX;
    (void)state;
    const struct {
        double got, wanted;
    } cases[] = {
        {embla_exp(0.0), 1.0},
        {embla_exp(-INFINITY), 0.0},
        {embla_exp(INFINITY), INFINITY},
        {embla_exp(-746.0), 0.0},
        {embla_exp(709.79), INFINITY},
        {embla_exp(NAN), NAN},
        {embla_expm1(-0.0), -0.0},
        {embla_expm1(tiny), tiny},
        {embla_expm1(-INFINITY), -1.0},
        {embla_expm1(-50.0), -1.0},
        {embla_expm1(INFINITY), INFINITY},
        {embla_expm1(NAN), NAN},
        {embla_log(1.0), 0.0},
        {embla_log(0.0), -INFINITY},
        {embla_log(-0.0), -INFINITY},
        {embla_log(INFINITY), INFINITY},
        {embla_log(-1.0), NAN},
        {embla_log(NAN), NAN},
        {embla_log1p(-0.0), -0.0},
        {embla_log1p(-tiny), -tiny},
        {embla_log1p(-1.0), -INFINITY},
        {embla_log1p(INFINITY), INFINITY},
        {embla_log1p(-2.0), NAN},
        {embla_log1p(NAN), NAN},
        {embla_pow(3.0, 0.0), 1.0},
        {embla_pow(1.0, large), 1.0},
        {embla_pow(10.0, 309.0), INFINITY},
        {embla_pow(10.0, -324.0), 0.0},
        {embla_pow(4.0, 0.5), 2.0},
        {embla_pow(2.0, INFINITY), INFINITY},
        {embla_pow(2.0, -INFINITY), 0.0},
        {embla_pow(-2.0, 2.0), NAN},
        {embla_pow(2.0, NAN), NAN},
        {embla_sin(-0.0), -0.0},
        {embla_sin(-tiny), -tiny},
        {embla_sin(INFINITY), NAN},
        {embla_sin(NAN), NAN},
        {embla_cos(-0.0), 1.0},
        {embla_cos(-INFINITY), NAN},
    };
    for (size_t i = 0; i < COUNT_OF(cases); i++) assert_same(cases[i].got, cases[i].wanted);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(exponentials_are_near_those_of_the_c_library),
        cmocka_unit_test(logarithms_are_near_those_of_the_c_library),
        cmocka_unit_test(powers_are_near_those_of_the_c_library),
        cmocka_unit_test(sines_are_near_those_of_the_c_library),
        cmocka_unit_test(angles_of_any_size_have_a_sine),
        cmocka_unit_test(the_ends_are_exact),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
