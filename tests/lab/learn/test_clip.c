/* SPDX-License-Identifier: Apache-2.0 */
/* Lengths of gradients: against a sum in long double, against the tree written as a recursion,
 * and to the bit for all threads, sets, and ways to cut a span at subtrees.
 */
#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "embla_learn.h"

enum { LEAF = 4096 };

static float *random_floats(size_t n, uint64_t seed)
{
    float *x = malloc((n ? n : 1) * sizeof *x);
    assert_non_null(x);
    check_fill(seed, n, x);
    return x;
}

/* The tree of a span by its definition: the largest power of two of leaves to the left. */
static double tree_of(const float *x, size_t n)
{
    size_t half = LEAF;
    if (n <= LEAF) return embla_kernels_get()->dot(x, x, n);
    while (2 * half < n) half *= 2;
    return tree_of(x, half) + tree_of(x + half, n - half);
}

static double norm_of(const embla_span *spans, size_t count, int threads)
{
    double norm = -1.0;
    assert_ok(embla_clip(spans, count, 0.0, &(embla_clip_options){.threads = threads}, &norm));
    return norm;
}

static void lengths_are_those_of_the_tree(void **state)
{
    static const size_t counts[] = {
        0,      1,        17,           4095,      4096,          4097,
        8192,   3 * 4096, 5 * 4096 + 3, 63 * 4096, 64 * 4096 + 1, 200 * 4096 + 77,
        1000003};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        float *x = random_floats(counts[i], i);
        embla_span span = {x, counts[i]};
        long double sum = 0.0L;
        for (size_t k = 0; k < counts[i]; k++) sum += (long double)x[k] * (long double)x[k];
        double norm = norm_of(&span, 1, 1);
        assert_near(norm, (double)sqrtl(sum), 1e-13 * (double)sqrtl(sum));
        assert_true(norm == (counts[i] ? sqrt(tree_of(x, counts[i])) : 0.0));
        free(x);
    }
}

/* A 4 in the first leaf and, in all others, a number that changes the 4 only together with
 * others of its kind: another tree has another sum. */
static void the_shape_of_the_tree_shows(void **state)
{
    enum { LEAVES = 330 };
    float *x = calloc((size_t)LEAVES * LEAF, sizeof *x);
    (void)state;
    assert_non_null(x);
    for (size_t i = 0; i < LEAVES; i++) x[i * LEAF] = i ? 1.25f * 0x1p-26f : 2.0f;
    for (size_t leaves = 1; leaves <= LEAVES; leaves++) {
        embla_span span = {x, leaves * LEAF};
        double norm = norm_of(&span, 1, 1 + (int)(leaves % 3));
        assert_true(norm == sqrt(tree_of(x, leaves * LEAF)));
    }
    free(x);
}

static void spans_are_added_in_order(void **state)
{
    enum { SPANS = 700 }; /* more than are looked at at a time */
    static embla_span spans[SPANS];
    float *x = random_floats(3000000, 1);
    size_t used = 0;
    double sum = 0.0;
    (void)state;
    for (size_t i = 0; i < SPANS; i++) {
        size_t n = i % 50 == 3 ? 300000 : i % 7 == 0 ? 0 : i % 3 == 0 ? 1 : 37 * (i % 11);
        if (used + n > 3000000) n = 0;
        spans[i] = (embla_span){n || i % 2 ? x + used : NULL, n};
        if (n) sum += tree_of(x + used, n);
        used += n;
    }
    assert_true(used > 2000000);
    double norm = norm_of(spans, SPANS, 1);
    assert_true(norm == sqrt(sum));
    for (int threads = 0; threads <= 8; threads++)
        assert_true(norm_of(spans, SPANS, threads) == norm);
    for (int set = 0; set < CHECK_SETS; set++) {
        if (!embla_kernels_find(check_sets[set])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[set]));
        assert_true(norm_of(spans, SPANS, 3) == norm);
        embla_kernels_use(NULL);
    }
    free(x);
}

/* What processes would do: each sums aligned subtrees of a span, and one joins the roots. */
static void subtrees_join_to_the_same_bits(void **state)
{
    enum { N = 96 * LEAF + 5 }; /* 64 leaves, 32 leaves, a rest */
    float *x = random_floats(N, 3);
    embla_span all = {x, N};
    double whole = norm_of(&all, 1, 2);
    double first = tree_of(x, 64 * LEAF), second = tree_of(x + 64 * LEAF, 32 * LEAF);
    double rest = tree_of(x + 96 * LEAF, 5);
    (void)state;
    assert_true(whole == sqrt(first + (second + rest)));
    free(x);
}

static void what_is_too_long_is_scaled(void **state)
{
    enum { N = 300001 };
    (void)state;
    for (int threads = 1; threads <= 8; threads *= 2) {
        float *x = random_floats(N, 5), *y = random_floats(N, 5), *z = random_floats(40, 6), z0[40];
        memcpy(z0, z, sizeof z0);
        embla_span spans[3] = {{x, N}, {NULL, 0}, {z, 40}};
        double norm = norm_of(spans, 3, 1), got = 0.0;
        assert_ok(embla_clip(spans, 3, norm * 2.0, &(embla_clip_options){.threads = threads},
                             &got)); /* short enough */
        assert_true(got == norm);
        assert_memory_equal(x, y, N * sizeof *x);
        assert_ok(embla_clip(spans, 3, norm, &(embla_clip_options){.threads = threads},
                             &got)); /* not above */
        assert_memory_equal(x, y, N * sizeof *x);
        assert_ok(embla_clip(spans, 3, 0.25, &(embla_clip_options){.threads = threads}, &got));
        assert_true(got == norm); /* as it was */
        float scale = (float)(0.25 / norm);
        for (size_t i = 0; i < N; i++) assert_true(x[i] == y[i] * scale);
        for (size_t i = 0; i < 40; i++) assert_true(z[i] == z0[i] * scale);
        assert_near(norm_of(spans, 3, threads), 0.25, 1e-7);
        assert_ok(embla_clip(spans, 3, 0.125, &(embla_clip_options){.threads = threads}, NULL));
        assert_near(norm_of(spans, 3, threads), 0.125, 1e-7);
        free(x);
        free(y);
        free(z);
    }
}

static void odd_numbers(void **state)
{
    float big[3] = {3e38f, -3e38f, 3e38f}, small[2] = {1e-45f, -1e-45f};
    float wrong[3] = {1.0f, NAN, 2.0f}, endless[3] = {1.0f, -INFINITY, 2.0f};
    embla_span span = {big, 3};
    double norm = 0.0;
    (void)state;
    assert_ok(embla_clip(&span, 1, 1.0, &(embla_clip_options){.threads = 1},
                         &norm)); /* squares fit a double */
    assert_near(norm / 3e38, sqrt(3.0), 1e-6);
    assert_near(big[1], -1.0 / sqrt(3.0), 1e-6);
    span = (embla_span){small, 2};
    assert_ok(embla_clip(&span, 1, 1.0, &(embla_clip_options){.threads = 1}, &norm));
    assert_true(norm > 0.0 && norm < 1e-44 && small[0] > 0.0f);
    span = (embla_span){wrong, 3};
    assert_ok(embla_clip(&span, 1, 0.5, &(embla_clip_options){.threads = 1},
                         &norm)); /* nothing is scaled */
    assert_true(isnan(norm) && wrong[0] == 1.0f && wrong[2] == 2.0f);
    span = (embla_span){endless, 3};
    assert_ok(embla_clip(&span, 1, 0.5, &(embla_clip_options){.threads = 1}, &norm));
    assert_true(isinf(norm) && norm > 0.0 && endless[0] == 1.0f && endless[1] == -INFINITY);
    assert_ok(embla_clip(NULL, 0, 0.5, &(embla_clip_options){.threads = 1}, &norm));
    assert_true(norm == 0.0);
    float zeros[5] = {0};
    span = (embla_span){zeros, 5};
    assert_ok(embla_clip(&span, 1, 0.5, &(embla_clip_options){.threads = 1}, &norm));
    assert_true(norm == 0.0 && zeros[0] == 0.0f);
}

static void what_cannot_be_is_refused(void **state)
{
    float x[4] = {3.0f, 4.0f, 0.0f, 0.0f};
    embla_span spans[2] = {{x, 4}, {NULL, 2}};
    double norm = 77.0;
    (void)state;
    assert_status(embla_clip(spans, 2, 1.0, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("spans[1].values is NULL, but its count is 2");
    assert_status(embla_clip(NULL, 2, 1.0, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_clip: spans is NULL, but its count is 2");
    assert_status(embla_clip(spans, 1, 1.0, &(embla_clip_options){.threads = -3}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("threads is -3");
    assert_status(embla_clip(spans, 1, -1.0, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("norm is -1;");
    assert_status(embla_clip(spans, 1, NAN, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_clip(spans, 1, INFINITY, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("norm is inf");
    spans[1] = (embla_span){x, SIZE_MAX / 4};
    assert_status(embla_clip(spans, 2, 1.0, &(embla_clip_options){.threads = 1}, &norm),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit");
    assert_true(norm == 77.0 && x[0] == 3.0f);
}

/* It takes no memory at all. */
static void nothing_is_allocated(void **state)
{
    float *x = random_floats(2000000, 5);
    embla_span span = {x, 2000000};
    (void)state;
    embla_mem_fail(1, true);
    assert_ok(embla_clip(&span, 1, 0.5, &(embla_clip_options){.threads = 2}, NULL));
    embla_mem_fail(0, false);
    free(x);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(lengths_are_those_of_the_tree),
        cmocka_unit_test(the_shape_of_the_tree_shows),
        cmocka_unit_test(spans_are_added_in_order),
        cmocka_unit_test(subtrees_join_to_the_same_bits),
        cmocka_unit_test(what_is_too_long_is_scaled),
        cmocka_unit_test(odd_numbers),
        cmocka_unit_test(what_cannot_be_is_refused),
        cmocka_unit_test(nothing_is_allocated),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
