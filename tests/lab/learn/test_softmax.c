/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of a softmax: against the C library in double, against themselves on every kernel
 * set to the bit, at every length around a vector's, and where numbers end.
 */
#include "check.h"

#include <math.h>

#include "learn/softmax.h"

enum { MOST = 300 };

static const float odd[] = {
    0.0f,   -0.0f,   1.0f,  -1.0f,     -87.0f, -87.4f, -87.68f, -87.7f,    -88.0f,   -200.0f,
    88.0f,  88.37f,  88.4f, 89.0f,     1e30f,  -1e30f, 1e38f,   -1e38f,    INFINITY, -INFINITY,
    1e-40f, -1e-40f, 0.5f,  -0.34657f, 3e-8f,  -3e-8f, 20.125f, -16.6355f, -103.0f,  0.34658f};

static float one_power(float x, float base)
{
    float out;
    embla_softmax_exp(&x, 1, base, &out);
    return out;
}

static void powers_are_exact_to_seven_digits(void **state)
{
    enum { COUNT = 1 << 20 };
    float *x = malloc(COUNT * sizeof *x), *out = malloc(COUNT * sizeof *out);
    double worst = 0;
    (void)state;
    for (size_t i = 0; i < COUNT; i++) x[i] = -87.33f + 175.7f * (float)i / (float)COUNT;
    embla_softmax_exp(x, COUNT, 0.0f, out);
    for (size_t i = 0; i < COUNT; i++) {
        double gap = fabs((double)out[i] / exp((double)x[i]) - 1);
        worst = gap > worst ? gap : worst;
    }
    assert_true(worst < 1.2e-7);
    for (size_t i = 0; i < COUNT; i++) x[i] *= 1e-3f; /* close to 1 */
    embla_softmax_exp(x, COUNT, 0.0f, x);
    for (size_t i = 0; i < COUNT; i++)
        assert_near(x[i], exp((double)(-87.33f + 175.7f * (float)i / (float)COUNT) * 1e-3), 2e-7);
    free(x), free(out);
}

static void powers_at_the_ends(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *set = embla_kernels_find(check_sets[s]);
        if (!set) continue;
        embla_kernels_use(set);
        float x[64], out[64]; /* a whole group, so that vectors are used */
        for (size_t i = 0; i < 64; i++) x[i] = odd[i % COUNT_OF(odd)];
        x[63] = NAN;
        embla_softmax_exp(x, 64, 0.0f, out);
        assert_true(out[0] == 1.0f && out[1] == 1.0f); /* 0 and -0: exactly */
        assert_true(out[7] == 0.0f && out[9] == 0.0f && out[15] == 0.0f && out[19] == 0.0f);
        assert_true(out[17] == 0.0f && out[28] == 0.0f);
        assert_true(isinf(out[12]) && isinf(out[14]) && isinf(out[16]) && isinf(out[18]));
        assert_true(isfinite(out[11]) && out[11] > 2e38f);
        assert_true(out[4] > 0.0f && isnan(out[63]));
        assert_true(one_power(-INFINITY, 5.0f) == 0.0f && one_power(5.0f, 5.0f) == 1.0f);
        assert_true(isnan(one_power(NAN, 1.0f)));
        assert_true(one_power(-3e38f, 3e38f) == 0.0f); /* the difference overflows */
    }
    embla_kernels_use(NULL);
}

static double plain_sum_of_powers(const float *x, size_t n, float base)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += exp((double)x[i] - (double)base);
    return sum;
}

static void sums_and_largest_are_what_they_say(void **state)
{
    float x[MOST + 1];
    uint64_t seed = 4;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = 30.0f * check_unit(&seed);
    for (size_t n = 0; n <= MOST; n++) {
        float most = -INFINITY;
        double sum = 0;
        for (size_t i = 0; i < n; i++) {
            most = fmaxf(most, x[i]);
            sum += (double)x[i];
        }
        assert_true(embla_softmax_max(x, n) == most);
        float base = n == 0 ? 0.0f : most;
        double wanted = plain_sum_of_powers(x, n, base);
        assert_near(embla_softmax_sum(x, n, base), wanted, 3e-7 * wanted);
        assert_near(embla_softmax_plain_sum(x, n), sum, 1e-12 * (double)(n + 1) * 30);
    }
}

/* A sum in float would lose what is far below 1. */
static void a_sum_keeps_what_is_small(void **state)
{
    float x[2000] = {0};
    (void)state;
    for (size_t i = 1; i < COUNT_OF(x); i++) x[i] = -25.0f;
    double wanted = 1.0 + 1999.0 * exp(-25.0);
    assert_near(embla_softmax_sum(x, COUNT_OF(x), 0.0f) - 1.0, wanted - 1.0, 1e-6 * (wanted - 1.0));
}

static void nan_and_infinity_are_kept_apart(void **state)
{
    float x[100];
    (void)state;
    for (size_t at = 0; at < COUNT_OF(x); at++) {
        for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = -1.0f - (float)i;
        x[at] = NAN;
        assert_true(embla_softmax_max(x, COUNT_OF(x)) == (at == 0 ? -2.0f : -1.0f));
        assert_true(isnan(embla_softmax_sum(x, COUNT_OF(x), -1.0f)));
        assert_true(isnan(embla_softmax_plain_sum(x, COUNT_OF(x))));
        x[at] = INFINITY;
        assert_true(embla_softmax_max(x, COUNT_OF(x)) == INFINITY);
        x[at] = -INFINITY;
        double sum = embla_softmax_sum(x, COUNT_OF(x), -1.0f);
        x[at] = -1e30f;
        assert_true(embla_softmax_sum(x, COUNT_OF(x), -1.0f) == sum);
    }
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = -INFINITY;
    assert_true(embla_softmax_max(x, COUNT_OF(x)) == -INFINITY);
    assert_true(embla_softmax_sum(x, COUNT_OF(x), 0.0f) == 0.0);
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = NAN;
    assert_true(embla_softmax_max(x, COUNT_OF(x)) == -INFINITY);
}

static void gradients_are_powers_times_a_factor(void **state)
{
    float x[MOST], out[MOST];
    uint64_t seed = 5;
    (void)state;
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t i = 0; i < MOST; i++) x[i] = out[i] = 9.0f * check_unit(&seed);
        embla_softmax_gradient(out, n, 9.0f, 0.25f, 0.0625f);
        for (size_t i = 0; i < MOST; i++)
            if (i < n)
                assert_near(out[i], exp((double)x[i] - 9.0) * 0.25 - 0.0625, 3e-8);
            else
                assert_true(out[i] == x[i]);
    }
}

/* ---- the same bits on every set ---- */

static void fill_hard(uint64_t seed, float *x, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        uint64_t kind = check_below(&seed, 16);
        x[i] = kind == 0   ? odd[check_below(&seed, COUNT_OF(odd))]
               : kind == 1 ? check_float_of((uint32_t)check_next(&seed) & 0xff7fffffu)
                           : 60.0f * check_unit(&seed);
    }
}

static void assert_bits(const void *a, const void *b, size_t bytes, const char *set, size_t n)
{
    if (memcmp(a, b, bytes) != 0) fail_msg("%s differs from scalar at %zu numbers", set, n);
}

static void every_set_gives_the_same_bits(void **state)
{
    float x[MOST], want[MOST], got[MOST];
    (void)state;
    for (size_t n = 0; n <= MOST; n++) {
        for (size_t i = 0; i < MOST; i++) want[i] = 7.0f;
        fill_hard(n, x, MOST);
        float base = n % 3 == 0 ? 0.0f : n % 3 == 1 ? 60.0f : -3.25f;
        embla_kernels_use(embla_kernels_find("scalar"));
        float most = embla_softmax_max(x, n);
        double sum = embla_softmax_sum(x, n, base), plain = embla_softmax_plain_sum(x, n);
        embla_softmax_exp(x, n, base, want);
        float gradient[MOST];
        memcpy(gradient, x, sizeof x);
        embla_softmax_gradient(gradient, n, base, 0.3f, 1e-3f);
        for (size_t s = 1; s < CHECK_SETS; s++) {
            const embla_kernels *set = embla_kernels_find(check_sets[s]);
            if (!set) continue;
            embla_kernels_use(set);
            assert_true(embla_softmax_max(x, n) == most);
            double sum_here = embla_softmax_sum(x, n, base);
            double plain_here = embla_softmax_plain_sum(x, n);
            if (!isnan(sum)) assert_bits(&sum_here, &sum, sizeof sum, check_sets[s], n);
            if (!isnan(plain)) assert_bits(&plain_here, &plain, sizeof plain, check_sets[s], n);
            for (size_t i = 0; i < MOST; i++) got[i] = 7.0f;
            embla_softmax_exp(x, n, base, got);
            assert_bits(got, want, sizeof want, check_sets[s], n);
            memcpy(got, x, sizeof x);
            embla_softmax_gradient(got, n, base, 0.3f, 1e-3f);
            assert_bits(got, gradient, sizeof gradient, check_sets[s], n);
        }
    }
    embla_kernels_use(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(powers_are_exact_to_seven_digits),
        cmocka_unit_test(powers_at_the_ends),
        cmocka_unit_test(sums_and_largest_are_what_they_say),
        cmocka_unit_test(a_sum_keeps_what_is_small),
        cmocka_unit_test(nan_and_infinity_are_kept_apart),
        cmocka_unit_test(gradients_are_powers_times_a_factor),
        cmocka_unit_test(every_set_gives_the_same_bits),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
