/* SPDX-License-Identifier: Apache-2.0 */
/* Decimal numbers: read as strtof reads them, bit for bit, and written with as few digits as
 * read back. Random text goes where it is hard: near the middle between two floats, at both
 * ends of the range, with more digits than any integer holds. EMBLA_DECIMAL_TRIES in the
 * environment sets how many numbers are tried; the default is a million.
 */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "comma_locale.h"
#include "files/decimal.h"

static uint64_t tries(void)
{
    const char *set = getenv("EMBLA_DECIMAL_TRIES");
    return set ? strtoull(set, NULL, 10) : 1000000;
}

/* From memory that ends where the text ends. */
static bool reads(const char *text, float *out)
{
    size_t length = strlen(text);
    uint8_t *exact = malloc(length > 0 ? length : 1);
    assert_non_null(exact);
    memcpy(exact, text, length);
    bool whole = embla_decimal_read(exact, exact + length, out) == exact + length;
    assert_int_equal(whole, embla_decimal_is(exact, length));
    free(exact);
    return whole;
}

static void as_strtof(const char *text)
{
    float ours = 77.0f, theirs = strtof(text, NULL);
    if (!reads(text, &ours) || check_bits_of(ours) != check_bits_of(theirs))
        fail_msg("'%s': %a, and strtof has %a", text, (double)ours, (double)theirs);
}

/* ---- reading ---- */

static void rule_w4_numbers_are_digits_with_a_fraction_and_an_exponent(void **state)
{
    static const char *const good[] = {"0",
                                       "-0",
                                       "+0",
                                       "1",
                                       "007",
                                       "-12.5",
                                       "+3.25",
                                       "1e5",
                                       "1E5",
                                       "1e+5",
                                       "1e-5",
                                       "1.5e05",
                                       "0.000000000000",
                                       "123456789012345678901",
                                       "1e-400",
                                       "1e400",
                                       "-1e400",
                                       "0e999999999999",
                                       "1e99999999999999999999",
                                       "1e-99999999999999999999",
                                       "00000000000000000000000001.5",
                                       "12345678.12345678"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(good); i++) as_strtof(good[i]);
}

static void rule_w4_what_is_no_number_is_refused(void **state)
{
    static const char *const bad[] = {
        "",    "+",  "-",    ".",    ".5",   "5.",   "-.5", "1e",  "1e+",    "e5",
        "0x1", "0x", "1..2", "1.2.", "--1",  "+-1",  "1,5", "1_0", " 1",     "1 ",
        "1f",  "na", "nanx", "in",   "infi", "1e5.", "i",   "n",   "nan(1)", "\xd9\xa1"};
    float value = 5.0f;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        if (reads(bad[i], &value)) fail_msg("'%s' was taken for a number", bad[i]);
}

static void rule_w4_nan_and_inf_in_any_case(void **state)
{
    static const char *const words[] = {"nan",  "NaN", "NAN",  "-nan", "+nan",     "inf",
                                        "-Inf", "INF", "+inf", "-inf", "infinity", "-Infinity"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(words); i++) as_strtof(words[i]);
}

static void rule_w4_too_large_is_infinite_and_too_small_is_zero(void **state)
{
    float value;
    (void)state;
    assert_true(reads("3.5e38", &value) && isinf(value) && value > 0);
    assert_true(reads("-1e39", &value) && isinf(value) && value < 0);
    assert_true(reads("-1e-60", &value) && check_bits_of(value) == 0x80000000);
    as_strtof("3.4028235677973366e38"); /* the middle between the largest float and 2^128 */
    as_strtof("3.40282356779733661637539395458142568447e38");
    as_strtof("3.40282356779733661637539395458142568448e38");
    as_strtof("7.0064923216240853546186479164495e-46"); /* half of the smallest */
    as_strtof("7.0064923216240853546186479164496e-46");
    as_strtof("7.0064923216240853546186479164495806564013097093825788587e-46");
    /* the middle between 1 and the next float, and a little more after 128 digits */
    as_strtof("1.000000059604644775390625000000000000000000000000000000000000000000000000000000000"
              "0000000000000000000000000000000000000000000000000000000000000000000000000000000");
    as_strtof("1.000000059604644775390625000000000000000000000000000000000000000000000000000000000"
              "0000000000000000000000000000000000000000000000000000000000000000000000000000011");
    as_strtof("1.17549428e-38"); /* the largest subnormal and around it */
    as_strtof("1.17549421e-38");
}

/* A number ends where its text can no longer be one; nothing after it is looked at. */
static void a_number_ends_at_the_first_byte_that_is_none_of_it(void **state)
{
    const uint8_t text[] = "1.25 rest";
    float value = 0.0f;
    (void)state;
    assert_ptr_equal(embla_decimal_read(text, text + sizeof text - 1, &value), text + 4);
    assert_true(value == 1.25f);
    assert_ptr_equal(embla_decimal_read(text, text + 3, &value), text + 3);
    assert_true(value == 1.2f);
    assert_null(embla_decimal_read(text + 5, text + sizeof text - 1, &value));
    assert_null(embla_decimal_read(text, text, &value));
    assert_true(value == 1.2f); /* untouched */
}

/* One number of each kind that is hard to round. */
static void hard_text(uint64_t *seed, uint64_t kind, char out[400])
{
    uint64_t bits = check_next(seed);
    int n = (int)check_below(seed, 120);
    float f = check_float_of((uint32_t)bits & 0x7fffffff), g;
    if (kind == 0) { /* a float with some of its digits */
        (void)snprintf(out, 400, "%.*g", n % 20, isfinite(f) ? (double)f : 1.5);
    } else if (kind == 1) { /* a double of any size */
        double d = ldexp(1.0 + (double)(bits >> 12) * 0x1p-52, n * 3 - 180);
        (void)snprintf(out, 400, "%.*e", n % 25, d);
    } else if (kind == 2) { /* digits, a point, digits, an exponent */
        (void)snprintf(out, 400, "%" PRIu64 ".%" PRIu64 "e%d", bits >> (n % 64),
                       check_next(seed) >> (n * 7 % 64), n - 60);
    } else if (kind == 3) { /* the middle between two floats, or just beside it */
        f = check_float_of((uint32_t)(bits % 0x7f7fffff));
        g = nextafterf(f, INFINITY);
        double middle = ((double)f + (double)g) / 2;
        if (bits >> 62 == 1) middle = nextafter(middle, INFINITY);
        if (bits >> 62 == 2) middle = nextafter(middle, 0.0);
        (void)snprintf(out, 400, "-%.*e", n, middle);
    } else if (kind == 4) { /* as files of vectors have them */
        (void)snprintf(out, 400, "%.*f", n % 9, (double)(int64_t)bits * 0x1p-62);
    } else { /* very many digits */
        int zeros = n % 60, used = snprintf(out, 400, "0.%0*d", zeros + 1, 0);
        for (int i = 0; i <= n + 60; i++) out[used++] = (char)('0' + check_next(seed) % 10);
        out[used] = '\0';
    }
}

static void rule_w4_every_bit_is_that_of_strtof(void **state)
{
    char text[400];
    uint64_t seed = 1;
    (void)state;
    for (uint64_t i = 0; i < tries(); i++) {
        hard_text(&seed, i % 6, text);
        as_strtof(text);
    }
}

static void rule_w4_no_locale_is_looked_at(void **state)
{
    float value;
    char text[EMBLA_DECIMAL_MOST];
    (void)state;
    comma_locale_begin();
    assert_true(reads("1.5", &value) && value == 1.5f);
    assert_false(reads("1,5", &value));
    /* by way of strtof: more digits than an integer holds, beside the middle of two floats */
    assert_true(reads("1.00000005960464477539062500000000000001", &value));
    assert_int_equal(check_bits_of(value), 0x3f800001);
    assert_int_equal(embla_decimal_write(1.5f, text), 3);
    assert_memory_equal(text, "1.5", 3);
    comma_locale_end();
}

/* ---- writing ---- */

static void writes(float value, const char *wanted)
{
    check_guarded g = check_guard(EMBLA_DECIMAL_MOST, 0);
    size_t length = embla_decimal_write(value, (char *)g.bytes);
    if (length != strlen(wanted) || memcmp(g.bytes, wanted, length) != 0)
        fail_msg("%a is written as '%.*s', not '%s'", (double)value, (int)length, (char *)g.bytes,
                 wanted);
    check_guards(&g);
    check_guard_free(&g);
}

static void numbers_are_written_as_people_write_them(void **state)
{
    (void)state;
    writes(0.0f, "0");
    writes(-0.0f, "-0");
    writes(1.0f, "1");
    writes(-0.1f, "-0.1");
    writes(0.3f, "0.3");
    writes(12.5f, "12.5");
    writes(1e8f, "100000000");
    writes(1e9f, "1e9");
    writes(0.0001f, "0.0001");
    writes(0.00001f, "1e-5");
    writes(1.5e-7f, "1.5e-7");
    writes(16777216.0f, "16777216");
    writes(3.40282347e38f, "3.4028235e38");
    writes(0x1p-149f, "1e-45");
    writes(-1.00000001e-45f, "-1e-45");
    writes(0x1p-126f, "1.1754944e-38");
    writes(9.9999998e-5f, "0.0001");
    writes(INFINITY, "inf");
    writes(-INFINITY, "-inf");
    writes(NAN, "nan");
    writes(check_float_of(0xffc00123), "nan");
}

/* Digits of a text without its zeros at both ends. */
static int digits_of(const char *text)
{
    int all = 0, zeros = 0;
    for (; *text && *text != 'e'; text++) {
        if (*text < '0' || *text > '9' || (all == 0 && *text == '0')) continue;
        all++;
        zeros = *text == '0' ? zeros + 1 : 0;
    }
    return all - zeros;
}

/* The fewest digits of printf that read back. */
static int fewest(float value)
{
    char text[64];
    for (int digits = 1; digits < 9; digits++) {
        (void)snprintf(text, sizeof text, "%.*e", digits - 1, (double)value);
        if (strtof(text, NULL) == value) return digits_of(text);
    }
    (void)snprintf(text, sizeof text, "%.8e", (double)value);
    return digits_of(text);
}

static void every_float_reads_back_and_has_no_digit_too_many(void **state)
{
    char text[EMBLA_DECIMAL_MOST + 1];
    uint64_t seed = 2;
    (void)state;
    for (uint64_t i = 0; i < tries() / 4; i++) { /* printf, the judge, is slow */
        uint32_t bits = (uint32_t)check_next(&seed);
        if (i % 4 == 1) bits = (bits & 0x807fffff) | (uint32_t)(100 + i % 60) << 23;
        if (i % 4 == 2) bits &= 0xff800000; /* 2^n */
        if (i % 4 == 3) bits &= 0x80ffffff; /* subnormal */
        float value = check_float_of(bits), back = 0.0f;
        if (isnan(value)) continue;
        size_t length = embla_decimal_write(value, text);
        assert_in_range(length, 1, EMBLA_DECIMAL_MOST);
        text[length] = '\0';
        if (!reads(text, &back) || check_bits_of(back) != bits ||
            check_bits_of(strtof(text, NULL)) != bits)
            fail_msg("%a is written as '%s', which is %a", (double)value, text, (double)back);
        if (isfinite(value) && digits_of(text) > fewest(value))
            fail_msg("%a is written as '%s'; %d digits do", (double)value, text, fewest(value));
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_w4_numbers_are_digits_with_a_fraction_and_an_exponent),
        cmocka_unit_test(rule_w4_what_is_no_number_is_refused),
        cmocka_unit_test(rule_w4_nan_and_inf_in_any_case),
        cmocka_unit_test(rule_w4_too_large_is_infinite_and_too_small_is_zero),
        cmocka_unit_test(a_number_ends_at_the_first_byte_that_is_none_of_it),
        cmocka_unit_test(rule_w4_every_bit_is_that_of_strtof),
        cmocka_unit_test(rule_w4_no_locale_is_looked_at),
        cmocka_unit_test(numbers_are_written_as_people_write_them),
        cmocka_unit_test(every_float_reads_back_and_has_no_digit_too_many),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
