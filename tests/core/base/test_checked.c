/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic at the edges of 64 bits: right when it fits, refused with the result
 * untouched when it does not.
 */
#include "check.h"

#include "base/checked.h"

static void products_up_to_64_bits_are_exact(void **state)
{
    uint64_t out = 1;
    (void)state;
    assert_true(embla_mul_ok(0, UINT64_MAX, &out) && out == 0);
    assert_true(embla_mul_ok(1, UINT64_MAX, &out) && out == UINT64_MAX);
    assert_true(embla_mul_ok(UINT64_MAX, 1, &out) && out == UINT64_MAX);
    assert_true(embla_mul_ok(UINT32_MAX, UINT32_MAX, &out));
    assert_true(out == UINT64_C(0xFFFFFFFE00000001));
    assert_true(embla_mul_ok(UINT64_C(1) << 32, (UINT64_C(1) << 31), &out));
    assert_true(out == UINT64_C(1) << 63);
}

static void products_past_64_bits_are_refused(void **state)
{
    uint64_t out = 42;
    (void)state;
    assert_false(embla_mul_ok(UINT64_C(1) << 32, UINT64_C(1) << 32, &out));
    assert_false(embla_mul_ok(UINT64_MAX, 2, &out));
    assert_false(embla_mul_ok(UINT64_MAX, UINT64_MAX, &out));
    assert_true(out == 42);
}

static void a_product_may_be_written_over_its_factor(void **state)
{
    uint64_t x = 6;
    (void)state;
    assert_true(embla_mul_ok(x, 7, &x) && x == 42);
    assert_true(embla_add_ok(x, 7, &x) && x == 49);
}

static void sums_are_exact_or_refused(void **state)
{
    uint64_t out = 42;
    (void)state;
    assert_false(embla_add_ok(UINT64_MAX, 1, &out));
    assert_false(embla_add_ok(1, UINT64_MAX, &out));
    assert_true(out == 42);
    assert_true(embla_add_ok(UINT64_MAX, 0, &out) && out == UINT64_MAX);
    assert_true(embla_add_ok(UINT64_MAX - 1, 1, &out) && out == UINT64_MAX);
}

static void a_size_is_at_most_what_a_pointer_can_cross(void **state)
{
    size_t out = 42;
    (void)state;
    assert_false(embla_size_ok((uint64_t)PTRDIFF_MAX + 1, &out));
    assert_false(embla_size_ok(UINT64_MAX, &out));
    assert_int_equal(out, 42);
    assert_true(embla_size_ok((uint64_t)PTRDIFF_MAX, &out) && out == (size_t)PTRDIFF_MAX);
    assert_true(embla_size_ok(0, &out) && out == 0);
}

static void a_span_ends_with_the_last_thing_not_with_its_stride(void **state)
{
    size_t out = 0;
    (void)state;
    assert_true(embla_span_ok(3, 100, 8, &out) && out == 208);
    assert_true(embla_span_ok(1, UINT64_MAX, 8, &out) && out == 8);
    assert_true(embla_span_ok(0, UINT64_MAX, UINT64_MAX, &out) && out == 0);
    assert_true(embla_span_ok(5, 0, 8, &out) && out == 8);
    assert_true(embla_span_ok(UINT64_C(1) << 32, UINT64_C(1) << 30, 1, &out));
    assert_true(out == (UINT64_C(1) << 62) - (UINT64_C(1) << 30) + 1);
}

static void a_span_that_does_not_fit_is_refused(void **state)
{
    size_t out = 42;
    (void)state;
    assert_false(embla_span_ok(3, UINT64_MAX / 2 + 1, 1, &out));
    assert_false(embla_span_ok(2, UINT64_MAX, 1, &out));
    assert_false(embla_span_ok(UINT64_MAX, UINT64_MAX, 0, &out));
    assert_false(embla_span_ok(1, 0, (uint64_t)PTRDIFF_MAX + 1, &out));
    assert_false(embla_span_ok(2, (uint64_t)PTRDIFF_MAX, 1, &out));
    assert_int_equal(out, 42);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(products_up_to_64_bits_are_exact),
        cmocka_unit_test(products_past_64_bits_are_refused),
        cmocka_unit_test(a_product_may_be_written_over_its_factor),
        cmocka_unit_test(sums_are_exact_or_refused),
        cmocka_unit_test(a_size_is_at_most_what_a_pointer_can_cross),
        cmocka_unit_test(a_span_ends_with_the_last_thing_not_with_its_stride),
        cmocka_unit_test(a_span_that_does_not_fit_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
