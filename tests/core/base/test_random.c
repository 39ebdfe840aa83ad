/* SPDX-License-Identifier: Apache-2.0 */
/* Random numbers by counter: the generator's published answers, the accuracy of the
 * logarithm and the sine made here, moments, and checksums that no machine may change.
 */
#include "check.h"

#include <math.h>

#include "base/byte_order.h"
#include "base/hash.h"
#include "base/random.h"

#define TWO_PI 6.283185307179586

/* From kat_vectors of Random123, the authors' own library. */
static void philox_gives_its_published_answers(void **state)
{
    static const struct {
        uint32_t counter[4], key[2], answer[4];
    } known[] = {
        {{0, 0, 0, 0}, {0, 0}, {0x6627e8d5, 0xe169c58d, 0xbc57ac4c, 0x9b00dbd8}},
        {{0xffffffff, 0xffffffff, 0xffffffff, 0xffffffff},
         {0xffffffff, 0xffffffff},
         {0x408f276d, 0x41c83b0e, 0xa20bc7c6, 0x6d5451fd}},
        {{0x243f6a88, 0x85a308d3, 0x13198a2e, 0x03707344},
         {0xa4093822, 0x299f31d0},
         {0xd16cfe09, 0x94fdcceb, 0x5001e420, 0x24126ea1}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++)
        for (uint32_t lane = 0; lane < EMBLA_RANDOM_LANES; lane += EMBLA_RANDOM_LANES - 1) {
            uint32_t words[4][EMBLA_RANDOM_LANES];
            const uint32_t *c = known[i].counter, *k = known[i].key;
            embla_philox(k[0] | (uint64_t)k[1] << 32, c[0] - lane, c[1] | (uint64_t)c[2] << 32,
                         c[3], words);
            for (int w = 0; w < 4; w++) assert_int_equal(words[w][lane], known[i].answer[w]);
        }
}

/* All k near both ends, where the sum cancels, and a stride of the rest. */
static void the_logarithm_is_right_to_21_bits(void **state)
{
    const uint32_t top = 1u << 24;
    (void)state;
    for (uint32_t k = 1; k <= top; k += k < 10000 || k > top - 10000 ? 1 : 331) {
        double wanted = -2.0 * log((double)k / (double)top);
        assert_near(embla_minus_2_ln(k), wanted, fabs(wanted) * 0x1p-21);
    }
    assert_true(embla_minus_2_ln(top) == 0.0f);
}

static void sine_and_cosine_are_right_to_22_bits(void **state)
{
    const uint32_t top = 1u << 24;
    (void)state;
    for (uint32_t k = 0; k < top; k += k % (top / 8) < 300 ? 1 : 331) {
        float sine, cosine;
        double angle = TWO_PI * (double)k / (double)top;
        embla_turn_of(k, &sine, &cosine);
        assert_near(sine, sin(angle), 0x1p-22);
        assert_near(cosine, cos(angle), 0x1p-22);
    }
}

static void quarter_turns_are_exact(void **state)
{
    const float sines[] = {0, 1, 0, -1}, cosines[] = {1, 0, -1, 0};
    (void)state;
    for (uint32_t quarter = 0; quarter < 4; quarter++) {
        float sine, cosine;
        embla_turn_of(quarter << 22, &sine, &cosine);
        assert_true(sine == sines[quarter] && cosine == cosines[quarter]);
    }
}

/* ---- tables ---- */

static embla_table *random_table(int64_t rows, size_t dim, const embla_init_options *options)
{
    embla_table *table = NULL;
    assert_ok(embla_table_new(EMBLA_F32, rows, dim, NULL, &table));
    assert_ok(embla_table_init(table, options));
    return table;
}

/* Mean, and mean of the 2nd, 3rd and 4th powers, of numbers divided by spread. */
static void moments(const embla_table *table, double spread, double out[4])
{
    const float *x = embla_table_row(table, 0);
    size_t n = (size_t)embla_table_rows(table) * embla_table_dim(table);
    memset(out, 0, 4 * sizeof *out);
    for (size_t i = 0; i < n; i++) {
        double y = (double)x[i] / spread, power = 1;
        for (int k = 0; k < 4; k++) out[k] += (power *= y) / (double)n;
    }
}

/* Tolerances are five standard errors of 320,000 numbers. */
static void normal_numbers_have_the_moments_of_a_normal(void **state)
{
    embla_init_options options = {.seed = 2026};
    embla_table *table = random_table(1000, 320, &options);
    double m[4];
    (void)state;
    moments(table, 1.0 / sqrt(320.0), m);
    assert_near(m[0], 0, 0.009);
    assert_near(m[1], 1, 0.0126);
    assert_near(m[2], 0, 0.035);
    assert_near(m[3], 3, 0.09);
    embla_table_free(table);
}

static void xavier_numbers_are_uniform_and_in_bounds(void **state)
{
    embla_init_options options = {.seed = 2026, .kind = EMBLA_INIT_XAVIER};
    embla_table *table = random_table(1000, 320, &options);
    float spread = (float)sqrt(2.0 / 1320.0);
    const float *x = embla_table_row(table, 0);
    double m[4];
    (void)state;
    moments(table, (double)spread, m);
    assert_near(m[0], 0, 0.0052);
    assert_near(m[1], 1.0 / 3, 0.0027);
    assert_near(m[2], 0, 0.0034);
    assert_near(m[3], 1.0 / 5, 0.0024);
    for (size_t i = 0; i < 320000; i++) assert_true(x[i] >= -spread && x[i] < spread);
    embla_table_free(table);
}

static void normal_numbers_stay_within_six_spreads(void **state)
{
    embla_init_options options = {.seed = 5, .spread = 2.0f};
    embla_table *table = random_table(1000, 320, &options);
    const float *x = embla_table_row(table, 0);
    (void)state;
    for (size_t i = 0; i < 320000; i++) assert_true(fabsf(x[i]) < 12.0f);
    embla_table_free(table);
}

static void an_element_does_not_depend_on_the_shape(void **state)
{
    (void)state;
    for (int kind = EMBLA_INIT_NORMAL; kind <= EMBLA_INIT_XAVIER; kind++) {
        embla_init_options options = {.seed = 9, .spread = 1.0f, .kind = (embla_init_kind)kind};
        embla_table *small = random_table(7, 3, &options), *large = random_table(20, 777, &options);
        for (int64_t row = 0; row < 7; row++)
            assert_memory_equal(embla_table_row(small, row), embla_table_row(large, row),
                                3 * sizeof(float));
        embla_table_free(small);
        embla_table_free(large);
    }
}

static void an_element_does_not_depend_on_the_threads(void **state)
{
    (void)state;
    for (int kind = EMBLA_INIT_NORMAL; kind <= EMBLA_INIT_XAVIER; kind++) {
        embla_init_options options = {.seed = 9, .threads = 1, .kind = (embla_init_kind)kind};
        embla_table *one = random_table(1100, 300, &options);
        for (int threads = 2; threads <= 8; threads++) {
            options.threads = threads;
            embla_table *many = random_table(1100, 300, &options);
            assert_memory_equal(embla_table_row(one, 0), embla_table_row(many, 0), 1100 * 300 * 4);
            embla_table_free(many);
        }
        embla_table_free(one);
    }
}

static void seed_row_and_kind_each_change_the_numbers(void **state)
{
    embla_init_options options = {.seed = 1, .spread = 1.0f};
    embla_table *first = random_table(2, 64, &options);
    (void)state;
    assert_memory_not_equal(embla_table_row(first, 0), embla_table_row(first, 1), 256);
    for (int bit = 1; bit < 64; bit += 31) { /* both halves of the seed count */
        options.seed = 1 | UINT64_C(1) << bit;
        embla_table *other = random_table(2, 64, &options);
        assert_memory_not_equal(embla_table_row(first, 0), embla_table_row(other, 0), 256);
        embla_table_free(other);
    }
    options.seed = 1;
    options.kind = EMBLA_INIT_XAVIER;
    embla_table *uniform = random_table(2, 64, &options);
    assert_memory_not_equal(embla_table_row(first, 0), embla_table_row(uniform, 0), 256);
    embla_table_free(uniform);
    embla_table_free(first);
}

/* Rows past 2^32 differ from those 2^32 before them: no 32-bit row number. */
static void the_upper_half_of_a_row_number_counts(void **state)
{
    float low[64], high[64];
    (void)state;
    embla_kernels_get()->normal(1, 5, 0, 64, 1.0f, low);
    embla_kernels_get()->normal(1, 5 + (UINT64_C(1) << 32), 0, 64, 1.0f, high);
    assert_memory_not_equal(low, high, sizeof low);
}

static uint64_t fnv1a(const unsigned char *bytes, size_t n)
{
    uint64_t hash = UINT64_C(0xcbf29ce484222325);
    for (size_t i = 0; i < n; i++) hash = (hash ^ bytes[i]) * UINT64_C(0x100000001b3);
    return hash;
}

/* If one of these changes, every model trained from a seed changes with it. */
static void the_numbers_of_a_seed_never_change(void **state)
{
    const uint64_t golden[] = {UINT64_C(0x95c6f2c1dd6e2b62), UINT64_C(0xe11abb2d2c46fe88)};
    (void)state;
    enum { NUMBERS = 1000 * 96 };
    uint32_t *bits = malloc(NUMBERS * sizeof *bits);
    assert_non_null(bits);
    for (int kind = EMBLA_INIT_NORMAL; kind <= EMBLA_INIT_XAVIER; kind++) {
        embla_init_options options = {
            .seed = 20261115, .spread = 0.02f, .kind = (embla_init_kind)kind};
        embla_table *table = random_table(1000, 96, &options);
        memcpy(bits, embla_table_row(table, 0), NUMBERS * sizeof *bits);
        embla_order_turn(bits, sizeof *bits, NUMBERS);
        uint64_t hash = fnv1a((const unsigned char *)bits, NUMBERS * sizeof *bits);
        if (hash != golden[kind]) fail_msg("kind %d: %#" PRIx64, kind, hash);
        embla_table_free(table);
    }
    free(bits);
}

static void init_refuses_what_cannot_be(void **state)
{
    embla_table *table = check_table(EMBLA_F32, 4, 4, 1);
    float before[16];
    const embla_init_options bad[] = {{.spread = -1.0f},    {.spread = NAN},
                                      {.spread = INFINITY}, {.spread = 3e38f},
                                      {.threads = -1},      {.kind = (embla_init_kind)2}};
    (void)state;
    memcpy(before, embla_table_row(table, 0), sizeof before);
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(embla_table_init(table, &bad[i]), EMBLA_ERR_ARGUMENT);
    assert_status(embla_table_init(NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_memory_equal(before, embla_table_row(table, 0), sizeof before);
    embla_table_free(table);
}

static void splitmix64_gives_its_published_answers(void **state)
{
    (void)state;
    assert_true(embla_splitmix64(0) == UINT64_C(0xE220A8397B1DCDAF));
    assert_true(embla_splitmix64(EMBLA_GOLDEN) == UINT64_C(0x6E789E6AA1B965F4));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(splitmix64_gives_its_published_answers),
        cmocka_unit_test(philox_gives_its_published_answers),
        cmocka_unit_test(the_logarithm_is_right_to_21_bits),
        cmocka_unit_test(sine_and_cosine_are_right_to_22_bits),
        cmocka_unit_test(quarter_turns_are_exact),
        cmocka_unit_test(normal_numbers_have_the_moments_of_a_normal),
        cmocka_unit_test(xavier_numbers_are_uniform_and_in_bounds),
        cmocka_unit_test(normal_numbers_stay_within_six_spreads),
        cmocka_unit_test(an_element_does_not_depend_on_the_shape),
        cmocka_unit_test(an_element_does_not_depend_on_the_threads),
        cmocka_unit_test(seed_row_and_kind_each_change_the_numbers),
        cmocka_unit_test(the_upper_half_of_a_row_number_counts),
        cmocka_unit_test(the_numbers_of_a_seed_never_change),
        cmocka_unit_test(init_refuses_what_cannot_be),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
