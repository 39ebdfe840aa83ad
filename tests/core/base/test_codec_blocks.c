/* SPDX-License-Identifier: Apache-2.0 */
/* The block formats of 4, 5 and 8 bits: q8_0, q4_0, q4_1, q5_0, q5_1, iq4_nl, mxfp4, nvfp4, and
 * f4_e2m1. Decoding: every code times every scale against a decoder written a second time, in
 * double (fuzz/reference_blocks.h), and every set and way of writing against the scalar loop.
 * Encoding: answers worked out by hand, and errors against the best any encoder could do.
 */
#include "check.h"

#include <math.h>

#include "../fuzz/reference.h"
#include "base/dtype.h"

typedef struct {
    embla_dtype dtype;
    size_t block, bytes, head; /* head: where the codes begin */
} layout;

static const layout layouts[] = {
    {EMBLA_Q8_0, 32, 34, 2},  {EMBLA_Q4_0, 32, 18, 2},  {EMBLA_Q4_1, 32, 20, 4},
    {EMBLA_Q5_0, 32, 22, 2},  {EMBLA_Q5_1, 32, 24, 4},  {EMBLA_IQ4_NL, 32, 18, 2},
    {EMBLA_MXFP4, 32, 17, 1}, {EMBLA_NVFP4, 64, 36, 4}, {EMBLA_F4_E2M1, 2, 1, 0}};

enum { MOST_BYTES = 36, MOST_BLOCK = 64 };

static float second_opinion(embla_dtype dtype, const unsigned char *p, size_t i, float scale)
{
    if (dtype == EMBLA_Q8_0 || dtype == EMBLA_Q4_0) return reference_number(dtype, p, i, scale);
    return reference_blocks_number(dtype, p, i, scale);
}

static bool has_f16(embla_dtype dtype)
{
    return dtype != EMBLA_MXFP4 && dtype != EMBLA_NVFP4 && dtype != EMBLA_F4_E2M1;
}

static bool has_least(embla_dtype dtype)
{
    return dtype == EMBLA_Q4_1 || dtype == EMBLA_Q5_1;
}

/* Scalar decode of n numbers against the second opinion. */
static void compare(embla_dtype dtype, const unsigned char *bytes, size_t n, float scale)
{
    float out[16 * MOST_BLOCK];
    assert_true(n <= COUNT_OF(out));
    embla_dtype_decoder(dtype, EMBLA_ISA_SCALAR)(bytes, n, scale, EMBLA_WRITE_PLAIN, out);
    for (size_t i = 0; i < n; i++) {
        float wanted = second_opinion(dtype, bytes, i, scale);
        if (!reference_same(out[i], wanted))
            fail_msg("%s number %zu: %a, not %a", embla_dtype_name(dtype), i, (double)out[i],
                     (double)wanted);
    }
}

/* ---- decoding ---- */

static void the_table_of_dtypes_agrees_with_the_layouts(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        const embla_dtype_info *info = embla_dtype_find_info(layouts[k].dtype);
        assert_non_null(info);
        assert_int_equal(info->block, layouts[k].block);
        assert_int_equal(info->block_bytes, layouts[k].bytes);
        assert_int_equal(info->scaled, layouts[k].dtype == EMBLA_F4_E2M1);
    }
}

/* All 2^16 values of d with all codes of a block; for those with m, also all of m. Random codes
 * over so many blocks meet every code in every place. */
static void every_f16_scale_times_every_code(void **state)
{
    static const unsigned hard[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x3c00, 0x7bff,
                                    0xfbff, 0x7c00, 0xfc00, 0x7e00, 0xfe01, 0x7c01};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        const layout *l = &layouts[k];
        uint64_t seed = k;
        if (!has_f16(l->dtype)) continue;
        for (unsigned f16 = 0; f16 < 65536; f16++) {
            unsigned char b[MOST_BYTES];
            unsigned other = hard[check_below(&seed, COUNT_OF(hard))];
            check_fill_bytes(check_next(&seed), l->bytes, b);
            b[0] = (unsigned char)(f16 & 255), b[1] = (unsigned char)(f16 >> 8);
            compare(l->dtype, b, l->block, 1.0f);
            if (!has_least(l->dtype)) continue;
            b[2] = (unsigned char)(other & 255), b[3] = (unsigned char)(other >> 8);
            compare(l->dtype, b, l->block, 1.0f);
            memcpy(b, (unsigned char[]){b[2], b[3], b[0], b[1]}, 4);
            compare(l->dtype, b, l->block, 1.0f);
        }
    }
}

/* 16 codes or 32, each in each of the 32 places, with a scale of 1 and one that is odd. */
static void every_code_in_every_place(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        const layout *l = &layouts[k];
        for (unsigned code = 0; code < 256; code++) {
            unsigned char b[MOST_BYTES];
            memset(b, (int)code, sizeof b);
            if (has_f16(l->dtype)) memcpy(b, code % 2 ? "\0\x3c" : "\x35\x2f", 2);
            if (has_least(l->dtype)) memcpy(b + 2, "\x11\xc4", 2);
            compare(l->dtype, b, l->block, 1.0f);
            for (size_t at = l->head; at < l->bytes; at++) {
                b[at] = (unsigned char)~code; /* one byte unlike the rest */
                compare(l->dtype, b, l->block, 1.0f);
                b[at] = (unsigned char)code;
            }
        }
    }
}

static void every_scale_byte_of_the_four_bit_floats(void **state)
{
    unsigned char b[MOST_BYTES];
    float out[MOST_BLOCK];
    (void)state;
    for (unsigned code = 0; code < 256; code++) {
        for (size_t j = 0; j < 16; j++) b[1 + j] = (unsigned char)(j | (15 - j) << 4);
        b[0] = (unsigned char)code;
        compare(EMBLA_MXFP4, b, 32, 1.0f);
        for (unsigned g = 0; g < 4; g++) b[g] = (unsigned char)(code + 67 * g);
        for (size_t j = 0; j < 32; j++) b[4 + j] = (unsigned char)(j % 16 | ((j + 5) % 16) << 4);
        compare(EMBLA_NVFP4, b, 64, 1.0f);
    }
    /* what the head of codec_fp4.c says of the odd ones; code 7 is 6, code 8 is minus zero */
    static const struct {
        unsigned char scale;
        float six;
    } odd[] = {{0x00, 0}, {0x7f, 0}, {0x80, 0}, {0xff, 2880}, {0x7e, 2688}, {0x01, 0x1.8p-7f}};
    for (size_t k = 0; k < COUNT_OF(odd); k++) {
        memset(b, odd[k].scale, 4);
        memset(b + 4, 0x87, 32);
        assert_ok(embla_dtype_decode(EMBLA_NVFP4, b, 64, 0.0f, out));
        assert_true(out[0] == odd[k].six && out[63] == 0.0f && !signbit(out[63]));
    }
    static const struct {
        unsigned char e;
        float six, half;
    } powers[] = {{0, 0x1.8p-125f, 0x1p-128f}, {127, 6, 0.5f}, {254, INFINITY, 0x1p126f}};
    for (size_t k = 0; k < COUNT_OF(powers); k++) {
        memset(b, 0x17, 17);
        b[0] = powers[k].e;
        assert_ok(embla_dtype_decode(EMBLA_MXFP4, b, 32, 0.0f, out));
        assert_true(out[15] == powers[k].six && out[16] == powers[k].half);
    }
    b[0] = 255;
    memset(b + 1, 0x08, 16);
    assert_ok(embla_dtype_decode(EMBLA_MXFP4, b, 32, 0.0f, out));
    for (size_t j = 0; j < 32; j++) assert_true(isnan(out[j]));
}

static void f4_e2m1_takes_a_scale_and_keeps_minus_zero(void **state)
{
    static const float scales[] = {1.0f, 0.0137f, -3.7f, 0x1p-149f, 0x1.8p-148f, 3e38f};
    unsigned char b[256];
    float out[512];
    (void)state;
    for (size_t j = 0; j < 256; j++) b[j] = (unsigned char)j;
    for (size_t s = 0; s < COUNT_OF(scales); s++) compare(EMBLA_F4_E2M1, b, 512, scales[s]);
    assert_ok(embla_dtype_decode(EMBLA_F4_E2M1, b, 512, 0.0f, out));
    assert_true(out[2 * 0x58] == 0.0f && signbit(out[2 * 0x58])); /* the low half comes first */
    assert_true(out[2 * 0x58 + 1] == 3.0f);
}

/* ---- every set, every way of writing ---- */

/* Rows that have every kind of scale among them. */
static void fill_blocks(const layout *l, uint64_t seed, size_t blocks, unsigned char *out)
{
    static const unsigned hard[] = {0x0000, 0x8001, 0x7c00, 0xfc00, 0x7e00, 0xfdff, 0x03ff};
    check_fill_bytes(seed, blocks * l->bytes, out);
    for (size_t b = 0; b < blocks && has_f16(l->dtype); b++)
        for (size_t at = 0; at < (has_least(l->dtype) ? 4u : 2u); at += 2) {
            unsigned f16 = hard[check_below(&seed, COUNT_OF(hard))];
            if (check_below(&seed, 3) != 0) continue;
            out[b * l->bytes + at] = (unsigned char)(f16 & 255);
            out[b * l->bytes + at + 1] = (unsigned char)(f16 >> 8);
        }
}

/* Memory of exactly the row's size, so that a sanitizer sees a read past it. */
static void compare_sets(const layout *l, size_t blocks, size_t in_offset, float scale)
{
    size_t n = blocks * l->block, bytes = blocks * l->bytes;
    unsigned char *space = malloc(bytes + in_offset), *in = space + in_offset;
    float *wanted = malloc(n * sizeof *wanted);
    assert_true(space && wanted);
    fill_blocks(l, 1000 * blocks + in_offset, blocks, in);
    embla_dtype_decoder(l->dtype, EMBLA_ISA_SCALAR)(in, n, scale, EMBLA_WRITE_PLAIN, wanted);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
        if (!kernels) continue;
        for (int way = EMBLA_WRITE_PLAIN; way <= EMBLA_WRITE_STREAM; way++) {
            size_t offset = way == EMBLA_WRITE_STREAM ? 0 : 4 * (blocks % 5);
            check_guarded out = check_guard(n * sizeof(float), offset);
            embla_dtype_decoder(l->dtype, kernels->isa)(in, n, scale, (embla_write_mode)way,
                                                        (float *)(void *)out.bytes);
            kernels->fence();
            if (memcmp(out.bytes, wanted, out.size) != 0)
                fail_msg("%s, %s, way %d, %zu blocks: other bits", embla_dtype_name(l->dtype),
                         check_sets[s], way, blocks);
            check_guards(&out);
            check_guard_free(&out);
        }
    }
    free(space);
    free(wanted);
}

static void every_set_and_way_gives_the_same_bits(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        bool pairs = layouts[k].block == 2;
        for (size_t blocks = 0; blocks <= (pairs ? 70u : 8u); blocks++)
            for (size_t offset = 0; offset < 4; offset++)
                compare_sets(&layouts[k], blocks, offset, pairs && offset ? -0.37f : 1.0f);
        compare_sets(&layouts[k], 300, 1, 1.0f);
    }
}

static void a_vector_loop_is_there_where_the_cpu_has_it(void **state)
{
    (void)state;
#if EMBLA_X86
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        const embla_codec *codec = embla_dtype_find_info(layouts[k].dtype)->codec;
        assert_true(codec->decode[EMBLA_ISA_AVX2] && codec->decode[EMBLA_ISA_AVX512]);
    }
#elif EMBLA_ARM
    for (size_t k = 0; k < COUNT_OF(layouts); k++)
        assert_true(embla_dtype_find_info(layouts[k].dtype)->codec->decode[EMBLA_ISA_NEON]);
#endif
}

/* ---- encoding ---- */

static void code(embla_dtype dtype, const float *in, size_t n, float scale, float *out)
{
    unsigned char bytes[20 * MOST_BYTES * 4];
    assert_true(n <= 20 * MOST_BLOCK);
    assert_ok(embla_dtype_encode(dtype, in, n, scale, bytes));
    assert_ok(embla_dtype_decode(dtype, bytes, n, scale, out));
}

static void q8_0_rounds_half_away_from_zero_and_nothing_below_it(void **state)
{
    float in[32] = {127.0f, 0.5f, -0.5f, 0x1.fffffep-2f, -0x1.fffffep-2f, 1.5f, 2.5f, -126.5f};
    unsigned char b[34];
    (void)state;
    assert_ok(embla_dtype_encode(EMBLA_Q8_0, in, 32, 0.0f, b)); /* step 1 */
    assert_memory_equal(b, "\x00\x3c\x7f\x01\xff\x00\x00\x02\x03\x81", 10);
}

static void q4_1_and_q5_1_round_as_ggml_does(void **state)
{
    float in[32];
    unsigned char q4[20], q5[24];
    (void)state;
    for (size_t j = 0; j < 32; j++) in[j] = -2.0f;
    in[0] = 13.0f, in[1] = -1.5f, in[2] = -1.5000001f, in[16] = 12.0f, in[31] = 2.0f; /* step 1 */
    assert_ok(embla_dtype_encode(EMBLA_Q4_1, in, 32, 0.0f, q4));
    assert_memory_equal(q4, "\x00\x3c\x00\xc0", 4); /* d = 1, m = -2 */
    assert_int_equal(q4[4], 15 | 14 << 4);
    assert_int_equal(q4[5], 1); /* half up */
    assert_int_equal(q4[6], 0);
    assert_int_equal(q4[19], 4 << 4);
    in[0] = 29.0f, in[16] = 28.0f, in[31] = 18.0f;
    assert_ok(embla_dtype_encode(EMBLA_Q5_1, in, 32, 0.0f, q5));
    assert_memory_equal(q5, "\x00\x3c\x00\xc0", 4);
    assert_memory_equal(q5 + 4, "\x01\x00\x01\x80", 4); /* fifth bits of 31, 30, 20 */
    assert_int_equal(q5[8], 15 | 14 << 4);
    assert_int_equal(q5[9], 1);
    assert_int_equal(q5[10], 0);
    assert_int_equal(q5[23], 4 << 4);
}

static void q5_0_rounds_as_ggml_does(void **state)
{
    float in[32] = {0};
    unsigned char q[22];
    (void)state;
    in[0] = -16.0f, in[1] = 15.0f, in[2] = 0.5f, in[16] = 16.0f, in[17] = -0.5f, in[18] = -1.5f;
    in[31] = -3.0f;
    assert_ok(embla_dtype_encode(EMBLA_Q5_0, in, 32, 0.0f, q)); /* step 1 */
    assert_memory_equal(q, "\x00\x3c", 2);
    assert_memory_equal(q + 2, "\xfe\xff\xfb\x7f", 4); /* all but numbers 0, 18, 31 */
    assert_int_equal(q[6], 0 | 15 << 4);               /* 0; 16 cut to 15, five bits 31 */
    assert_int_equal(q[7], 15 | 0 << 4);               /* 31; -0.5 + 16.5 */
    assert_int_equal(q[8], 1 | 15 << 4);               /* 0.5 + 16.5 is 17; -1.5 + 16.5 is 15 */
    assert_int_equal(q[21], 0 | 13 << 4);              /* 16; 13 */
}

/* Half a step, what rounding d and m to f16 adds, and at q5_0's short end a whole step. */
static void steps_err_by_half_a_step_at_most(void **state)
{
    static const struct {
        embla_dtype dtype;
        double steps;
    } cases[] = {{EMBLA_Q4_1, 15}, {EMBLA_Q5_0, 16}, {EMBLA_Q5_1, 31}};
    enum { N = 32 * 30 };
    static float in[N], out[N];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        check_fill(k, N, in);
        for (size_t i = 0; i < N; i++) in[i] = ldexpf(in[i], (int)(i / 32 % 16) - 6);
        code(cases[k].dtype, in, N, 0.0f, out);
        for (size_t b = 0; b < N; b += 32) {
            double least = (double)in[b], most = least, largest = least;
            for (size_t i = b; i < b + 32; i++) {
                least = fmin(least, (double)in[i]), most = fmax(most, (double)in[i]);
                if (fabs((double)in[i]) > fabs(largest)) largest = (double)in[i];
            }
            double range = has_least(cases[k].dtype) ? most - least : fabs(largest);
            double step = range / cases[k].steps;
            double slack = (range + (has_least(cases[k].dtype) ? fabs(least) : 0)) * 0x1.01p-11;
            for (size_t i = b; i < b + 32; i++) {
                bool end = cases[k].dtype == EMBLA_Q5_0 && (double)in[i] / -largest * 16 > 15.5;
                assert_near(out[i], in[i], (end ? step : step / 2) + slack);
            }
        }
    }
}

/* ---- iq4_nl ---- */

/* The nearest level, of two the upper; squared error of a block with this d. */
static unsigned level_near(double x)
{
    unsigned best = 0;
    for (unsigned c = 1; c < 16; c++)
        if (fabs(x - reference_blocks_level(c)) <= fabs(x - reference_blocks_level(best))) best = c;
    return best;
}

static double error_with(const float *in, double d)
{
    double sum = 0;
    for (size_t j = 0; j < 32; j++) {
        double gap =
            d == 0 ? (double)in[j]
                   : (double)in[j] - d * reference_blocks_level(level_near((double)in[j] / d));
        sum += gap * gap;
    }
    return sum;
}

static void iq4_nl_fits_d_to_the_levels_it_chose(void **state)
{
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        float in[32];
        unsigned char b[18];
        double largest = 0, qx = 0, qq = 0;
        check_fill(seed, 32, in);
        assert_ok(embla_dtype_encode(EMBLA_IQ4_NL, in, 32, 0.0f, b));
        for (size_t j = 0; j < 32; j++)
            if (fabs((double)in[j]) > fabs(largest)) largest = (double)in[j];
        for (size_t j = 0; j < 32; j++) {
            double x = (double)in[j], scaled = x / (largest / -127);
            unsigned c = level_near(scaled), got = reference_blocks_half(b + 2, j);
            if (got != c) /* only where the division's last bit decides */
                assert_near(fabs(scaled - reference_blocks_level(c)),
                            fabs(scaled - reference_blocks_level(got)), 1e-4);
            qx += x * x * reference_blocks_level(got) * x;
            qq += x * x * reference_blocks_level(got) * reference_blocks_level(got);
        }
        double d = reference_blocks_f16(b);
        assert_near(d, qx / qq, fabs(qx / qq) * 0x1.01p-11);
    }
}

/* Against all d of the format: the search that weights are for would find the best of them. */
static void iq4_nl_is_not_far_from_the_best_d(void **state)
{
    double sum = 0, best_sum = 0;
    (void)state;
    for (uint64_t block = 0, seed = 1; block < 40; block++) {
        float in[32], out[32];
        double largest = 0, best = 1e30, got = 0;
        for (size_t j = 0; j < 32; j++) { /* a bell, as the numbers of a model */
            in[j] = check_unit(&seed) + check_unit(&seed) + check_unit(&seed);
            largest = fmax(largest, fabs((double)in[j]));
        }
        code(EMBLA_IQ4_NL, in, 32, 0.0f, out);
        for (size_t j = 0; j < 32; j++)
            got += ((double)out[j] - (double)in[j]) * ((double)out[j] - (double)in[j]);
        for (int k = -160; k <= 160; k++)
            best = fmin(best, error_with(in, largest / 127 * k / 100));
        assert_true(got <= 1.6 * best);
        sum += got, best_sum += best;
    }
    assert_true(sum <= 1.2 * best_sum);
}

static void iq4_nl_ties_go_to_the_upper_level(void **state)
{
    float in[32] = {0};
    unsigned char b[18];
    (void)state;
    in[0] = -127.0f, in[1] = -4.5f, in[2] = -4.5000005f, in[3] = 7.0f, in[4] = 6.9999995f;
    in[5] = 121.0f, in[16] = -115.5f, in[17] = -115.50001f; /* x / d0 are these themselves */
    assert_ok(embla_dtype_encode(EMBLA_IQ4_NL, in, 32, 0.0f, b));
    assert_int_equal(b[2], 0 | 1 << 4); /* -115.5 is midway of -127 and -104 */
    assert_int_equal(b[3], 8 | 0 << 4);
    assert_int_equal(b[4], 7 | 8 << 4); /* 0 is nearest to level 8, 1 */
    assert_int_equal(b[5], 9 | 8 << 4);
    assert_int_equal(b[6], 8 | 8 << 4);
    assert_int_equal(b[7], 15 | 8 << 4);
}

/* ---- four-bit floats ---- */

/* Every midpoint and its neighbours. */
static void mxfp4_takes_the_nearest_and_of_two_the_smaller(void **state)
{
    static const float middle[] = {0.25f, 0.75f, 1.25f, 1.75f, 2.5f, 3.5f, 5.0f};
    (void)state;
    for (int power = -127; power <= 125; power++)
        for (unsigned k = 0; k < 7; k++) {
            float in[32] = {0}, x = ldexpf(middle[k], power);
            unsigned char b[17];
            in[0] = ldexpf(4.0f, power), in[1] = x, in[2] = -x;
            in[3] = nextafterf(x, INFINITY), in[4] = -in[3], in[5] = nextafterf(x, 0.0f);
            in[16] = -0.0f, in[17] = -0x1p-149f;
            assert_ok(embla_dtype_encode(EMBLA_MXFP4, in, 32, 0.0f, b));
            assert_int_equal(b[0], power + 127);
            assert_int_equal(b[1] & 15, 6);
            assert_int_equal(b[2] & 15, k);
            assert_int_equal(b[3] & 15, k ? k | 8 : 0);
            assert_int_equal(b[4] & 15, k + 1);
            assert_int_equal(b[5] & 15, (k + 1) | 8);
            assert_int_equal(b[6] & 15, k);
            assert_int_equal(b[1] >> 4, 0); /* minus zero has no code of its own */
            assert_int_equal(b[2] >> 4, 0);
        }
}

static void mxfp4_puts_the_largest_between_4_and_8(void **state)
{
    static const struct {
        float largest;
        unsigned e, code;
    } cases[] = {{4.0f, 127, 6},           {5.0f, 127, 6},     {5.0000005f, 127, 7},
                 {7.9999995f, 127, 7},     {8.0f, 128, 6},     {3.9999998f, 126, 7},
                 {0x1p-125f, 0, 6},        {0x1p-126f, 0, 4},  {0x1p-149f, 0, 0},
                 {0x1p-128f, 0, 1},        {0x1p127f, 252, 6}, {0.0f, 0, 0},
                 {0x1.fffffep127f, 252, 7}};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        float in[32] = {0};
        unsigned char b[17];
        in[31] = -cases[k].largest;
        assert_ok(embla_dtype_encode(EMBLA_MXFP4, in, 32, 0.0f, b));
        assert_int_equal(b[0], cases[k].e);
        assert_int_equal(b[16] >> 4, cases[k].code ? cases[k].code | 8 : 0);
    }
}

/* All bits of x above 0 in steps: the scale is the nearest code, of two the upper. */
static void nvfp4_scales_are_the_nearest_to_a_sixth(void **state)
{
    (void)state;
    for (unsigned c = 0; c < 0x7e; c++) {
        double below = reference_blocks_ue4m3(c), above = reference_blocks_ue4m3(c + 1);
        float sixth = (float)((below + above) / 2); /* exact */
        const float xs[] = {6.0f * nextafterf(sixth, 0.0f) * (1 - 0x1p-22f), 6.0f * sixth,
                            (float)(6.0 * below)};
        const unsigned wanted[] = {c, c + 1, c};
        for (size_t k = 0; k < 3; k++) {
            float in[64] = {0};
            unsigned char b[36];
            in[40] = -xs[k];
            assert_ok(embla_dtype_encode(EMBLA_NVFP4, in, 64, 0.0f, b));
            assert_memory_equal(b, ((unsigned char[]){0, 0, (unsigned char)wanted[k], 0}), 4);
            if (c >= 8) assert_int_equal(b[4 + 16], 15 << 4); /* -6, number 8 of group 2 */
        }
    }
}

static void nvfp4_numbers_lie_in_their_groups(void **state)
{
    float in[64];
    unsigned char b[36];
    (void)state;
    for (size_t i = 0; i < 64; i++) in[i] = 0.0f;
    in[0] = 6.0f, in[1] = 2.5f, in[9] = -2.5f, in[15] = 5.0f; /* scale 1; ties to the smaller */
    in[16] = 12.0f, in[31] = -1.0f, in[63] = 0.006f;
    assert_ok(embla_dtype_encode(EMBLA_NVFP4, in, 64, 0.0f, b));
    assert_memory_equal(b, "\x38\x40\x00\x01", 4); /* 1, 2, 0, 2^-9 */
    assert_int_equal(b[4], 7);
    assert_int_equal(b[5], 4 | 12 << 4);
    assert_int_equal(b[11], 6 << 4);
    assert_int_equal(b[12], 7);
    assert_int_equal(b[19], 9 << 4); /* -1 is -0.5 times 2 */
    assert_int_equal(b[35], 5 << 4); /* 0.006 is 3.07 times 2^-9 */
}

/* The error of a number is at most half the gap it lies in, or what lies past the end. */
static void four_bit_floats_err_by_half_a_gap(void **state)
{
    enum { N = 64 * 20 };
    static float in[N], out[N];
    (void)state;
    check_fill(3, N, in);
    code(EMBLA_MXFP4, in, N, 0.0f, out);
    for (size_t b = 0; b < N; b += 32) {
        double largest = 0;
        for (size_t i = b; i < b + 32; i++)
            if (fabs((double)in[i]) > largest) largest = fabs((double)in[i]);
        double d = ldexp(1.0, ilogb(largest) - 2);
        for (size_t i = b; i < b + 32; i++) {
            double x = fabs((double)in[i]) / d;
            assert_near(out[i], in[i], d * (x < 2 ? 0.25 : x < 4 ? 0.5 : x < 6 ? 1 : x - 6));
        }
    }
    code(EMBLA_NVFP4, in, N, 0.0f, out);
    for (size_t g = 0; g < N; g += 16) {
        double largest = 0;
        for (size_t i = g; i < g + 16; i++)
            if (fabs((double)in[i]) > largest) largest = fabs((double)in[i]);
        double d = largest / 6, step = fmax(d / 16, 0x1p-10); /* d itself errs by that */
        for (size_t i = g; i < g + 16; i++) {
            double x = fabs((double)in[i]) / d;
            assert_near(out[i], in[i], d * (x < 1.9 ? 0.25 : x < 3.8 ? 0.5 : 1) + 6 * step);
        }
    }
}

static void f4_e2m1_goes_to_the_nearest_ties_to_even(void **state)
{
    const float in[] = {0.25f, -0.25f, 0.75f,  1.25f,     -1.75f, 2.5f, 3.5f,     -5.0f,
                        5.1f,  1e30f,  -1e30f, -INFINITY, NAN,    -NAN, 0.26f,    -0.0f,
                        0.0f,  0.2f,   -0.2f,  0.74f,     1.26f,  1.7f, 2.50001f, 3.4f};
    const unsigned char wanted[] = {0, 8, 2, 2, 12, 4, 6, 14, 7, 7, 15, 15,
                                    0, 0, 1, 8, 0,  0, 8, 1,  3, 3, 5,  5};
    unsigned char out[COUNT_OF(in) / 2];
    float scaled[COUNT_OF(in)];
    (void)state;
    assert_int_equal(COUNT_OF(in), COUNT_OF(wanted));
    assert_ok(embla_dtype_encode(EMBLA_F4_E2M1, in, COUNT_OF(in), 0.0f, out));
    for (size_t i = 0; i < COUNT_OF(in); i++)
        assert_int_equal(out[i / 2] >> (i % 2 * 4) & 15, wanted[i]);
    for (size_t i = 0; i < COUNT_OF(in); i++) scaled[i] = in[i] * -0.125f;
    assert_ok(embla_dtype_encode(EMBLA_F4_E2M1, scaled, COUNT_OF(in), -0.125f, out));
    for (size_t i = 0; i < COUNT_OF(in); i++)
        assert_int_equal(out[i / 2] >> (i % 2 * 4) & 15, wanted[i]);
}

/* ---- what all encoders promise ---- */

/* A second coding changes nothing: exactly for those whose scale comes back from the largest
 * number. iq4_nl fits d anew each time; nvfp4 needs a scale of 4 * 2^-9 and more. */
static void coding_twice_is_coding_once(void **state)
{
    static const embla_dtype exact[] = {EMBLA_Q4_1,  EMBLA_Q5_0,  EMBLA_Q5_1,
                                        EMBLA_MXFP4, EMBLA_NVFP4, EMBLA_F4_E2M1};
    enum { N = 64 * 20 };
    static float in[N], once[N], again[N];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(exact); k++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            check_fill(seed, N, in);
            for (size_t i = 0; i < N; i++) in[i] = ldexpf(in[i], (int)(seed % 16) - 1);
            code(exact[k], in, N, 0.0f, once);
            code(exact[k], once, N, 0.0f, again);
            for (size_t i = 0; i < N; i++)
                if (once[i] != again[i])
                    fail_msg("%s, seed %d: %a, then %a", embla_dtype_name(exact[k]), (int)seed,
                             (double)once[i], (double)again[i]);
        }
}

/* All bytes that decode to numbers, and come back as the numbers they were. */
static void every_f4_e2m1_and_mxfp4_number_comes_back(void **state)
{
    unsigned char b[256], again[256];
    float x[512], y[32];
    (void)state;
    for (size_t j = 0; j < 256; j++) b[j] = (unsigned char)j;
    assert_ok(embla_dtype_decode(EMBLA_F4_E2M1, b, 512, 0.25f, x));
    assert_ok(embla_dtype_encode(EMBLA_F4_E2M1, x, 512, 0.25f, again));
    assert_memory_equal(b, again, 256);
    for (unsigned e = 0; e <= 252; e++) {
        for (size_t j = 0; j < 16; j++) b[1 + j] = (unsigned char)(j | (15 - j) << 4);
        b[0] = (unsigned char)e;
        assert_ok(embla_dtype_decode(EMBLA_MXFP4, b, 32, 0.0f, x));
        assert_ok(embla_dtype_encode(EMBLA_MXFP4, x, 32, 0.0f, again));
        assert_ok(embla_dtype_decode(EMBLA_MXFP4, again, 32, 0.0f, y));
        assert_int_equal(again[0], e);
        assert_memory_equal(x, y, sizeof y);
    }
}

static void zeros_and_very_small_numbers_become_zero(void **state)
{
    static const float values[] = {0.0f, -0.0f, 0x1p-149f, 1e-40f, -1e-20f};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++)
        for (size_t v = 0; v < COUNT_OF(values); v++) {
            /* mxfp4 reaches down to 2^-128 */
            bool mx = layouts[k].dtype == EMBLA_MXFP4;
            double bound = mx ? fabs((double)values[v]) / 4 + 0x1p-129 : 0.0;
            float in[64], out[64];
            for (size_t i = 0; i < 64; i++) in[i] = values[v];
            code(layouts[k].dtype, in, 64, 0.0f, out);
            for (size_t i = 0; i < 64; i++) assert_near(out[i], mx ? in[i] : 0.0f, bound);
            if (layouts[k].dtype == EMBLA_IQ4_NL && v < 4) assert_false(signbit(out[0]));
        }
}

/* What a code should be where nothing can be seen of it: no garbage in files. */
static void blocks_of_a_scale_of_0_have_the_codes_of_zero(void **state)
{
    static const struct {
        embla_dtype dtype;
        unsigned char code;
    } cases[] = {{EMBLA_Q8_0, 0}, {EMBLA_Q4_0, 0x88}, {EMBLA_Q4_1, 0},      {EMBLA_Q5_0, 0},
                 {EMBLA_Q5_1, 0}, {EMBLA_NVFP4, 0},   {EMBLA_IQ4_NL, 0x88}, {EMBLA_F4_E2M1, 0}};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        size_t bytes = 0;
        unsigned char b[2 * MOST_BYTES];
        float in[64];
        for (size_t i = 0; i < 64; i++) in[i] = i % 2 ? 1e-39f : 0.0f; /* a step below 2^-128 */
        assert_ok(embla_dtype_encode(cases[k].dtype, in, 64, 0.0f, b));
        assert_ok(embla_dtype_row_bytes(cases[k].dtype, 64, &bytes));
        if (cases[k].dtype == EMBLA_Q5_0) assert_memory_equal(b + 2, "\xff\xff\xff\xff", 4);
        if (cases[k].dtype == EMBLA_Q5_1) assert_memory_equal(b + 4, "\0\0\0\0", 4);
        for (size_t at = bytes / 2 - 8; at < bytes / 2; at++)
            assert_int_equal(b[at], cases[k].code);
    }
}

static void equal_numbers_stay_equal(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        float in[64], out[64];
        for (size_t i = 0; i < 64; i++) in[i] = 3.0f;
        code(layouts[k].dtype, in, 64, 0.0f, out);
        for (size_t i = 0; i < 64; i++) {
            assert_near(out[i], 3.0, 0.01);
            assert_true(out[i] == out[0]);
        }
    }
}

/* Formats that can say NaN lose the whole block, and no other. */
static void a_block_that_cannot_be_scaled_is_all_nan(void **state)
{
    static const float bad[] = {NAN, -NAN, INFINITY, -INFINITY, 1e7f, -1e7f, 3e38f, -3.4e38f};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        embla_dtype dtype = layouts[k].dtype;
        if (!has_f16(dtype) && dtype != EMBLA_MXFP4) continue;
        for (size_t v = 0; v < (dtype == EMBLA_MXFP4 ? 4 : COUNT_OF(bad)); v++)
            for (size_t at = 0; at < 32; at += 31) {
                float in[96], out[96];
                for (size_t i = 0; i < 96; i++) in[i] = i % 2 ? 1.0f : 2.0f;
                in[32 + at] = bad[v];
                code(dtype, in, 96, 0.0f, out);
                for (size_t i = 32; i < 64; i++) assert_true(isnan(out[i]));
                for (size_t i = 0; i < 96; i++)
                    if (i < 32 || i >= 64) assert_near(out[i], in[i], 0.13);
            }
    }
}

static void a_block_of_nothing_but_nan_is_nan(void **state)
{
    float in[64], out[64];
    unsigned char b[17];
    (void)state;
    for (size_t i = 0; i < 64; i++) in[i] = i % 3 ? NAN : 0.0f;
    for (size_t k = 0; k < COUNT_OF(layouts); k++) {
        bool says_nan = has_f16(layouts[k].dtype) || layouts[k].dtype == EMBLA_MXFP4;
        code(layouts[k].dtype, in, 64, 0.0f, out);
        for (size_t i = 0; i < 64; i++) assert_true(says_nan ? isnan(out[i]) : out[i] == 0.0f);
    }
    in[0] = INFINITY;
    assert_ok(embla_dtype_encode(EMBLA_MXFP4, in, 32, 0.0f, b));
    assert_memory_equal(b, "\xff\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0", 17);
}

/* Just inside and just outside of what an f16 holds. */
static void the_largest_scale_is_the_largest_f16(void **state)
{
    static const struct {
        embla_dtype dtype;
        float fits, least; /* a block of fits, fits.., least */
        bool nan;
    } cases[] = {
        {EMBLA_Q5_0, 16 * 65519.0f, 0, false},    {EMBLA_Q5_0, 16 * 65520.0f, 0, true},
        {EMBLA_Q5_0, -16 * 65520.0f, 0, true},    {EMBLA_Q4_1, 15 * 65519.0f, 0, false},
        {EMBLA_Q4_1, 15 * 65520.0f, 0, true},     {EMBLA_Q5_1, 31 * 65519.0f, 0, false},
        {EMBLA_Q5_1, 31 * 65520.0f, 0, true},     {EMBLA_Q4_1, -65519.0f, -65519.0f, false},
        {EMBLA_Q4_1, -65520.0f, -65520.0f, true}, {EMBLA_Q5_1, 65519.0f, 65519.0f, false},
        {EMBLA_Q5_1, 65520.0f, 65520.0f, true},   {EMBLA_Q4_1, 3.4e38f, -3.4e38f, true},
        {EMBLA_IQ4_NL, 127 * 65519.0f, 0, false}, {EMBLA_IQ4_NL, 127 * 65521.0f, 0, true},
        {EMBLA_IQ4_NL, -127 * 65521.0f, 0, true}, {EMBLA_IQ4_NL, 1e30f, -1e25f, true},
        {EMBLA_IQ4_NL, 1e17f, 1e17f, true}};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(cases); k++) {
        float in[32], out[32];
        for (size_t i = 0; i < 32; i++) in[i] = i == 5 ? cases[k].least : cases[k].fits;
        code(cases[k].dtype, in, 32, 0.0f, out);
        for (size_t i = 0; i < 32; i++) {
            assert_int_equal(isnan(out[i]) != 0, cases[k].nan);
            if (!cases[k].nan) assert_near(out[i], in[i], fabs((double)in[0]) * 0x1p-6);
        }
    }
}

static void nvfp4_has_no_nan_and_stops_at_its_ends(void **state)
{
    float in[64], out[64];
    (void)state;
    for (size_t i = 0; i < 64; i++) in[i] = 1.0f;
    in[3] = NAN, in[20] = INFINITY, in[21] = -INFINITY, in[22] = -NAN, in[40] = -1e30f;
    in[50] = 2000.0f; /* a sixth of it is 333.3, nearest 320: not ggml's 448 */
    code(EMBLA_NVFP4, in, 64, 0.0f, out);
    for (size_t i = 0; i < 16; i++) assert_near(out[i], i == 3 ? 0.0 : 1.0, 0.07);
    assert_true(out[20] == 2688.0f && out[21] == -2688.0f && out[22] == 0.0f && out[23] == 0.0f);
    assert_true(out[40] == -2688.0f && out[50] == 1920.0f);
}

/* Nothing past the row, wherever it begins; and every set encodes to the same bytes. */
static void encoders_write_their_row_and_no_more(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++)
        for (size_t blocks = 0; blocks <= 5; blocks++) {
            const layout *l = &layouts[k];
            size_t n = blocks * l->block;
            float *in = malloc((n + 1) * sizeof *in);
            unsigned char wanted[5 * MOST_BYTES];
            assert_non_null(in);
            check_fill(blocks, n, in + 1);
            embla_dtype_encoder(l->dtype, EMBLA_ISA_SCALAR)(in + 1, n, 1.0f, wanted);
            for (int isa = EMBLA_ISA_SCALAR; isa < EMBLA_ISA_COUNT; isa++) {
                if (!embla_kernels_find(check_sets[isa])) continue;
                check_guarded out = check_guard(blocks * l->bytes, 3);
                embla_dtype_encoder(l->dtype, (embla_isa)isa)(in + 1, n, 1.0f, out.bytes);
                assert_memory_equal(out.bytes, wanted, out.size);
                check_guards(&out);
                check_guard_free(&out);
            }
            free(in);
        }
}

/* Any floats at all: a status, a number or a NaN, and the same for decode on every set. */
static void any_floats_can_be_encoded(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(layouts); k++)
        for (uint64_t seed = 1; seed < 300; seed++) {
            float in[64], out[64];
            uint64_t random = seed;
            for (size_t i = 0; i < 64; i++)
                in[i] = seed % 2 ? check_any_float(&random)
                                 : ldexpf(check_unit(&random), (int)check_below(&random, 60) - 30);
            code(layouts[k].dtype, in, 64, 0.0f, out);
            for (size_t i = 0; i < 64; i++) assert_true(isnan(out[i]) || fabsf(out[i]) <= INFINITY);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_table_of_dtypes_agrees_with_the_layouts),
        cmocka_unit_test(every_f16_scale_times_every_code),
        cmocka_unit_test(every_code_in_every_place),
        cmocka_unit_test(every_scale_byte_of_the_four_bit_floats),
        cmocka_unit_test(f4_e2m1_takes_a_scale_and_keeps_minus_zero),
        cmocka_unit_test(every_set_and_way_gives_the_same_bits),
        cmocka_unit_test(a_vector_loop_is_there_where_the_cpu_has_it),
        cmocka_unit_test(q8_0_rounds_half_away_from_zero_and_nothing_below_it),
        cmocka_unit_test(q4_1_and_q5_1_round_as_ggml_does),
        cmocka_unit_test(q5_0_rounds_as_ggml_does),
        cmocka_unit_test(steps_err_by_half_a_step_at_most),
        cmocka_unit_test(iq4_nl_fits_d_to_the_levels_it_chose),
        cmocka_unit_test(iq4_nl_is_not_far_from_the_best_d),
        cmocka_unit_test(iq4_nl_ties_go_to_the_upper_level),
        cmocka_unit_test(mxfp4_takes_the_nearest_and_of_two_the_smaller),
        cmocka_unit_test(mxfp4_puts_the_largest_between_4_and_8),
        cmocka_unit_test(nvfp4_scales_are_the_nearest_to_a_sixth),
        cmocka_unit_test(nvfp4_numbers_lie_in_their_groups),
        cmocka_unit_test(four_bit_floats_err_by_half_a_gap),
        cmocka_unit_test(f4_e2m1_goes_to_the_nearest_ties_to_even),
        cmocka_unit_test(coding_twice_is_coding_once),
        cmocka_unit_test(every_f4_e2m1_and_mxfp4_number_comes_back),
        cmocka_unit_test(zeros_and_very_small_numbers_become_zero),
        cmocka_unit_test(blocks_of_a_scale_of_0_have_the_codes_of_zero),
        cmocka_unit_test(equal_numbers_stay_equal),
        cmocka_unit_test(a_block_that_cannot_be_scaled_is_all_nan),
        cmocka_unit_test(a_block_of_nothing_but_nan_is_nan),
        cmocka_unit_test(the_largest_scale_is_the_largest_f16),
        cmocka_unit_test(nvfp4_has_no_nan_and_stops_at_its_ends),
        cmocka_unit_test(encoders_write_their_row_and_no_more),
        cmocka_unit_test(any_floats_can_be_encoded),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
