/* SPDX-License-Identifier: Apache-2.0 */
/* Every dtype against a decoder written a second time here, from the format's definition:
 * with ldexp, in double. A small float is sign, exponent, fraction; what a number is
 * encoded to is found by searching all codes for the nearest, ties to the even code.
 * Past the largest number the code after it (infinity, or NaN in e4m3) stands for the
 * number it would be if the format went on.
 */
#include "check.h"

#include <math.h>

#include "base/dtype.h"

/* ---- small floats, a second time ---- */

typedef struct {
    embla_dtype dtype;
    int fraction_bits, bias;
    unsigned bytes;
    uint32_t past; /* the code after that of the largest number */
    bool infinite; /* past is infinity, and codes above it NaN; else past is NaN */
} format;

static const format formats[] = {
    {EMBLA_F16, 10, 15, 2, 0x7c00, true},
    {EMBLA_BF16, 7, 127, 2, 0x7f80, true},
    {EMBLA_F8_E4M3, 3, 7, 1, 0x7f, false},
    {EMBLA_F8_E5M2, 2, 15, 1, 0x7c, true},
};

static uint32_t sign_of(const format *f)
{
    return 1u << (8 * f->bytes - 1);
}

/* The number a code without its sign stands for, as if there were no infinity or NaN. */
static double magnitude_of(const format *f, uint32_t code)
{
    uint32_t exponent = code >> f->fraction_bits;
    double fraction = code & ((1u << f->fraction_bits) - 1u);
    double one = (double)(1u << f->fraction_bits);
    if (exponent == 0) return ldexp(fraction / one, 1 - f->bias);
    return ldexp(1.0 + fraction / one, (int)exponent - f->bias);
}

static double number_of(const format *f, uint32_t code)
{
    uint32_t magnitude = code & (sign_of(f) - 1u);
    double x = magnitude_of(f, magnitude);
    if (magnitude == f->past && f->infinite) x = (double)INFINITY;
    if (magnitude > f->past || (magnitude == f->past && !f->infinite)) x = (double)NAN;
    return code & sign_of(f) ? -x : x;
}

/* The nearest code, by bisection over the magnitudes, which grow with their codes. */
static uint32_t nearest_code(const format *f, float x)
{
    uint32_t low = 0, high = f->past, sign = signbit(x) ? sign_of(f) : 0u;
    double wanted = fabs((double)x);
    if (wanted >= magnitude_of(f, high)) return sign | high;
    while (high - low > 1) {
        uint32_t middle = (low + high) / 2;
        if (magnitude_of(f, middle) <= wanted)
            low = middle;
        else
            high = middle;
    }
    double below = wanted - magnitude_of(f, low), above = magnitude_of(f, high) - wanted;
    if (below < above || (below == above && low % 2 == 0)) return sign | low;
    return sign | high;
}

static uint32_t code_at(const format *f, const unsigned char *bytes, size_t i)
{
    if (f->bytes == 1) return bytes[i];
    return bytes[2 * i] | (uint32_t)bytes[2 * i + 1] << 8;
}

static void all_codes(const format *f, unsigned char *bytes)
{
    for (uint32_t code = 0; code < 2 * sign_of(f); code++) {
        bytes[f->bytes * code] = (unsigned char)(code & 0xff);
        if (f->bytes == 2) bytes[2 * code + 1] = (unsigned char)(code >> 8);
    }
}

static bool same_number(double wanted, float got)
{
    if (isnan(wanted)) return isnan(got);
    return (double)got == wanted && !signbit(got) == !signbit(wanted);
}

static void every_code_decodes_to_its_number(void **state)
{
    static unsigned char bytes[2 * 65536];
    static float out[65536];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++) {
        const format *f = &formats[k];
        size_t codes = 2 * sign_of(f);
        all_codes(f, bytes);
        assert_ok(embla_dtype_decode(f->dtype, bytes, codes, 0.0f, out));
        for (uint32_t code = 0; code < codes; code++)
            if (!same_number(number_of(f, code), out[code]))
                fail_msg("%s %#x: %g, not %g", embla_dtype_name(f->dtype), code, (double)out[code],
                         number_of(f, code));
    }
}

static void every_code_comes_back_from_its_number(void **state)
{
    static unsigned char bytes[2 * 65536], again[2 * 65536];
    static float numbers[65536];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++) {
        const format *f = &formats[k];
        size_t codes = 2 * sign_of(f);
        all_codes(f, bytes);
        assert_ok(embla_dtype_decode(f->dtype, bytes, codes, 0.0f, numbers));
        assert_ok(embla_dtype_encode(f->dtype, numbers, codes, 0.0f, again));
        for (uint32_t code = 0; code < codes; code++) {
            uint32_t back = code_at(f, again, code);
            bool nan = isnan(number_of(f, code));
            if (nan ? !isnan(number_of(f, back)) || (back ^ code) & sign_of(f) : back != code)
                fail_msg("%s %#x came back as %#x", embla_dtype_name(f->dtype), code, back);
        }
    }
}

static void check_encoding(const format *f, const float *numbers, size_t n, unsigned char *space)
{
    assert_ok(embla_dtype_encode(f->dtype, numbers, n, 0.0f, space));
    for (size_t i = 0; i < n; i++) {
        uint32_t got = code_at(f, space, i), wanted = nearest_code(f, numbers[i]);
        if (isnan(numbers[i])) {
            assert_true(isnan(number_of(f, got)));
        } else if (got != wanted) {
            fail_msg("%s of %a is %#x, not %#x", embla_dtype_name(f->dtype), (double)numbers[i],
                     got, wanted);
        }
    }
}

/* A midpoint of neighbours, and the floats next to it, are where rounding turns. */
static void midpoints_go_to_the_even_code(void **state)
{
    static float numbers[4 * 65536];
    static unsigned char space[2 * 4 * 65536];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++) {
        const format *f = &formats[k];
        size_t n = 0;
        for (uint32_t code = 0; code < f->past; code++) {
            double middle = (magnitude_of(f, code) + magnitude_of(f, code + 1)) / 2;
            float x = (float)middle;
            assert_true((double)x == middle); /* these formats are narrow enough */
            numbers[n++] = x;
            numbers[n++] = -x;
            numbers[n++] = nextafterf(x, 0.0f);
            numbers[n++] = nextafterf(x, INFINITY);
        }
        check_encoding(f, numbers, n, space);
    }
}

static void any_float_goes_to_the_nearest_code(void **state)
{
    enum { N = 20000 };
    static float numbers[N];
    static unsigned char space[2 * N];
    uint64_t seed = 7;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++) {
        for (size_t i = 0; i < N / 2; i++) numbers[i] = check_any_float(&seed);
        for (size_t i = N / 2; i < N; i++) /* where the narrow formats have their numbers */
            numbers[i] = ldexpf(check_unit(&seed), (int)check_below(&seed, 48) - 28);
        check_encoding(&formats[k], numbers, N, space);
    }
}

static void overflow_goes_where_the_header_says(void **state)
{
    const struct {
        embla_dtype dtype;
        float in;
        uint32_t code;
    } cases[] = {
        {EMBLA_F16, 65504.0f, 0x7bff},      {EMBLA_F16, 65519.996f, 0x7bff},
        {EMBLA_F16, 65520.0f, 0x7c00},      {EMBLA_F16, -INFINITY, 0xfc00},
        {EMBLA_BF16, 0x1.fep127f, 0x7f7f},  {EMBLA_BF16, 0x1.fffffep127f, 0x7f80},
        {EMBLA_BF16, -INFINITY, 0xff80},    {EMBLA_F8_E5M2, 57344.0f, 0x7b},
        {EMBLA_F8_E5M2, 61439.996f, 0x7b},  {EMBLA_F8_E5M2, 61440.0f, 0x7c},
        {EMBLA_F8_E5M2, -INFINITY, 0xfc},   {EMBLA_F8_E4M3, 448.0f, 0x7e},
        {EMBLA_F8_E4M3, 464.0f, 0x7e},      {EMBLA_F8_E4M3, 464.00003f, 0x7f},
        {EMBLA_F8_E4M3, -0x1.0p127f, 0xff}, {EMBLA_F8_E4M3, INFINITY, 0x7f},
        {EMBLA_F16, 0x1p-25f, 0x0000},      {EMBLA_F16, 0x1.000002p-25f, 0x0001},
        {EMBLA_F8_E4M3, 0x1p-10f, 0x00},    {EMBLA_F8_E4M3, -0x1.000002p-10f, 0x81},
        {EMBLA_F8_E5M2, 0x1.8p-16f, 0x02},  {EMBLA_F16, -0.0f, 0x8000},
        {EMBLA_BF16, 0x1p-149f, 0x0000},    {EMBLA_BF16, 0x1.8p-133f, 0x0002},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned char out[2] = {0, 0};
        assert_ok(embla_dtype_encode(cases[i].dtype, &cases[i].in, 1, 0.0f, out));
        assert_int_equal(out[0] | out[1] << 8, cases[i].code);
    }
}

static void nan_stays_nan_with_its_sign(void **state)
{
    const uint32_t nans[] = {0x7fc00000, 0xffc00000, 0x7f800001,
                             0xff800001, 0x7fffffff, 0xffffffff};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++)
        for (size_t i = 0; i < COUNT_OF(nans); i++) {
            const format *f = &formats[k];
            float in = check_float_of(nans[i]);
            unsigned char out[2] = {0, 0};
            assert_ok(embla_dtype_encode(f->dtype, &in, 1, 0.0f, out));
            uint32_t code = code_at(f, out, 0);
            assert_true(isnan(number_of(f, code)));
            assert_int_equal(!(code & sign_of(f)), !(nans[i] >> 31));
        }
}

static void a_scale_multiplies_f8_numbers(void **state)
{
    const float scales[] = {0.5f, 3.0f, 0.0123f, -2.0f};
    unsigned char bytes[256], again[256];
    float numbers[256], scaled[256];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(formats); k++) {
        const format *f = &formats[k];
        if (f->bytes != 1) continue;
        all_codes(f, bytes);
        for (size_t s = 0; s < COUNT_OF(scales); s++) {
            assert_ok(embla_dtype_decode(f->dtype, bytes, 256, scales[s], scaled));
            for (uint32_t code = 0; code < 256; code++) {
                float wanted = (float)number_of(f, code) * scales[s];
                assert_true(same_number((double)wanted, scaled[code]));
                numbers[code] = (float)code * 0.37f - 20.0f;
            }
            assert_ok(embla_dtype_encode(f->dtype, numbers, 256, scales[s], again));
            for (uint32_t i = 0; i < 256; i++)
                assert_int_equal(again[i], nearest_code(f, numbers[i] / scales[s]));
        }
    }
}

/* ---- f32, f64, i8 ---- */

static void f32_is_copied_bit_for_bit(void **state)
{
    float in[500], out[500];
    unsigned char stored[2000];
    uint64_t seed = 3;
    (void)state;
    for (size_t i = 0; i < 500; i++) in[i] = check_any_float(&seed);
    assert_ok(embla_dtype_encode(EMBLA_F32, in, 500, 0.0f, stored));
    assert_memory_equal(stored, in, sizeof in);
    assert_ok(embla_dtype_decode(EMBLA_F32, stored, 500, 0.0f, out));
    assert_memory_equal(out, in, sizeof in);
}

static void f64_rounds_to_the_nearest_float(void **state)
{
    const double in[] = {0.1, -1e300, 1e-300, 1.0 + 0x1p-24, 1.0 + 0x1.000002p-24, 0x1.ffffffp127};
    const float wanted[] = {0.1f, -INFINITY, 0.0f, 1.0f, 1.0f + 0x1p-23f, INFINITY};
    float out[COUNT_OF(in)], back[COUNT_OF(in)];
    double wide[COUNT_OF(in)];
    (void)state;
    assert_ok(embla_dtype_decode(EMBLA_F64, in, COUNT_OF(in), 0.0f, out));
    assert_memory_equal(out, wanted, sizeof out);
    assert_ok(embla_dtype_encode(EMBLA_F64, out, COUNT_OF(in), 0.0f, wide));
    for (size_t i = 0; i < COUNT_OF(in); i++) assert_true(wide[i] == (double)out[i]);
    assert_ok(embla_dtype_decode(EMBLA_F64, wide, COUNT_OF(in), 0.0f, back));
    assert_memory_equal(back, out, sizeof out);
}

static void every_i8_is_its_number_times_the_scale(void **state)
{
    const float scales[] = {0.0f, 1.0f, 0.25f, -0.031f};
    signed char bytes[256], again[256];
    float out[256];
    (void)state;
    for (int i = 0; i < 256; i++) bytes[i] = (signed char)(i - 128);
    for (size_t s = 0; s < COUNT_OF(scales); s++) {
        float scale = scales[s] == 0.0f ? 1.0f : scales[s];
        assert_ok(embla_dtype_decode(EMBLA_I8, bytes, 256, scales[s], out));
        for (int i = 0; i < 256; i++) assert_true(out[i] == (float)(i - 128) * scale);
        assert_ok(embla_dtype_encode(EMBLA_I8, out, 256, scales[s], again));
        assert_memory_equal(again, bytes, 256);
    }
}

static void i8_rounds_ties_to_even_and_stops_at_its_ends(void **state)
{
    const float in[] = {0.5f,   1.5f,    2.5f,    -0.5f, -1.5f,  -2.5f,    126.5f,    127.4f,
                        127.5f, 1000.0f, -128.5f, -1e9f, 1e-30f, INFINITY, -INFINITY, 0.49999997f};
    const signed char wanted[] = {0,   2,   2,    0,    -2, -2,  126,  127,
                                  127, 127, -128, -128, 0,  127, -128, 0};
    signed char out[COUNT_OF(in)];
    (void)state;
    assert_ok(embla_dtype_encode(EMBLA_I8, in, COUNT_OF(in), 0.0f, out));
    assert_memory_equal(out, wanted, sizeof out);
}

/* ---- blocks ---- */

/* From ggml's block_q8_0 and block_q4_0, number i of a row. */
static double q8_0_number(const unsigned char *bytes, size_t i)
{
    const unsigned char *block = bytes + i / 32 * 34;
    int q = block[2 + i % 32];
    return number_of(&formats[0], code_at(&formats[0], block, 0)) * (q > 127 ? q - 256 : q);
}

static double q4_0_number(const unsigned char *bytes, size_t i)
{
    const unsigned char *block = bytes + i / 32 * 18;
    unsigned q = block[2 + i % 16];
    int half = (int)(i % 32 < 16 ? q & 15 : q >> 4);
    return number_of(&formats[0], code_at(&formats[0], block, 0)) * (half - 8);
}

static void blocks_decode_as_ggml_lays_them_out(void **state)
{
    enum { N = 32 * 200 };
    static unsigned char bytes[N / 32 * 34];
    static float out[N];
    (void)state;
    check_fill_bytes(11, sizeof bytes, bytes);
    assert_ok(embla_dtype_decode(EMBLA_Q8_0, bytes, N, 0.0f, out));
    for (size_t i = 0; i < N; i++) assert_true(same_number(q8_0_number(bytes, i), out[i]));
    assert_ok(embla_dtype_decode(EMBLA_Q4_0, bytes, N, 0.0f, out));
    for (size_t i = 0; i < N; i++) assert_true(same_number(q4_0_number(bytes, i), out[i]));
}

/* Half a step of the block, and what rounding the step itself to f16 adds. */
static void q8_0_errs_by_half_a_step_at_most(void **state)
{
    enum { N = 32 * 50 };
    static float in[N], out[N];
    static unsigned char bytes[N / 32 * 34];
    (void)state;
    check_fill(5, N, in);
    for (size_t i = 0; i < N; i++) in[i] = ldexpf(in[i], (int)(i / 32 % 16) - 6);
    assert_ok(embla_dtype_encode(EMBLA_Q8_0, in, N, 0.0f, bytes));
    assert_ok(embla_dtype_decode(EMBLA_Q8_0, bytes, N, 0.0f, out));
    for (size_t b = 0; b < N; b += 32) {
        double largest = 0;
        for (size_t i = b; i < b + 32; i++)
            if (fabs((double)in[i]) > largest) largest = fabs((double)in[i]);
        double bound = largest / 127 * (0.5 + 127 * 0x1p-11 + 1e-5);
        for (size_t i = b; i < b + 32; i++) assert_near(out[i], in[i], bound);
    }
}

/* The largest magnitude is exact up to the f16 step; its opposite is one step short. */
static void q4_0_errs_by_half_a_step_or_one_at_the_short_end(void **state)
{
    enum { N = 32 * 50 };
    static float in[N], out[N];
    static unsigned char bytes[N / 32 * 18];
    (void)state;
    check_fill(6, N, in);
    assert_ok(embla_dtype_encode(EMBLA_Q4_0, in, N, 0.0f, bytes));
    assert_ok(embla_dtype_decode(EMBLA_Q4_0, bytes, N, 0.0f, out));
    for (size_t b = 0; b < N; b += 32) {
        double largest = 0;
        for (size_t i = b; i < b + 32; i++)
            if (fabs((double)in[i]) > fabs(largest)) largest = (double)in[i];
        double step = fabs(largest) / 8, slack = step * (8 * 0x1p-11 + 1e-5);
        for (size_t i = b; i < b + 32; i++) {
            bool short_end = (double)in[i] / -largest * 8 > 7.5;
            assert_near(out[i], in[i], (short_end ? step : step / 2) + slack);
        }
    }
}

static void blocks_round_as_ggml_does(void **state)
{
    float in[32] = {0};
    unsigned char q8[34], q4[18];
    (void)state;
    in[0] = 127.0f, in[1] = 2.5f, in[2] = -2.5f, in[3] = 0.49f, in[31] = -127.0f; /* step 1 */
    assert_ok(embla_dtype_encode(EMBLA_Q8_0, in, 32, 0.0f, q8));
    assert_int_equal(q8[0] | q8[1] << 8, 0x3c00);
    assert_int_equal(q8[2], 127);
    assert_int_equal(q8[3], 3); /* half away from zero */
    assert_int_equal(q8[4], 256 - 3);
    assert_int_equal(q8[5], 0);
    assert_int_equal(q8[33], 256 - 127);

    memset(in, 0, sizeof in);
    in[0] = -8.0f, in[1] = 7.0f, in[16] = 8.0f, in[17] = -0.5f, in[18] = -1.5f; /* step 1 */
    assert_ok(embla_dtype_encode(EMBLA_Q4_0, in, 32, 0.0f, q4));
    assert_int_equal(q4[0] | q4[1] << 8, 0x3c00);
    assert_int_equal(q4[2], 0 | 15 << 4); /* -8, and 8 cut to 7 */
    assert_int_equal(q4[3], 15 | 8 << 4); /* 7, and -0.5 + 8.5 cut to 8 */
    assert_int_equal(q4[4], 8 | 7 << 4);
}

static void a_block_of_zeros_is_zeros(void **state)
{
    const float values[] = {0.0f, -0.0f, 0x1p-149f, 1e-40f};
    (void)state;
    for (int d = EMBLA_Q8_0; d <= EMBLA_Q4_0; d++)
        for (size_t k = 0; k < COUNT_OF(values); k++) {
            float in[32], out[32];
            unsigned char bytes[34];
            for (size_t i = 0; i < 32; i++) in[i] = values[k];
            assert_ok(embla_dtype_encode((embla_dtype)d, in, 32, 0.0f, bytes));
            assert_ok(embla_dtype_decode((embla_dtype)d, bytes, 32, 0.0f, out));
            for (size_t i = 0; i < 32; i++) assert_true(out[i] == 0.0f);
        }
}

static void a_block_that_cannot_be_scaled_is_all_nan(void **state)
{
    const float bad[] = {NAN, INFINITY, -INFINITY, 1e7f, -1e7f, 3e38f};
    (void)state;
    for (int d = EMBLA_Q8_0; d <= EMBLA_Q4_0; d++)
        for (size_t k = 0; k < COUNT_OF(bad); k++)
            for (size_t at = 0; at < 32; at += 31) {
                float in[64], out[64];
                unsigned char bytes[68];
                for (size_t i = 0; i < 64; i++) in[i] = 1.0f;
                in[at] = bad[k];
                assert_ok(embla_dtype_encode((embla_dtype)d, in, 64, 0.0f, bytes));
                assert_ok(embla_dtype_decode((embla_dtype)d, bytes, 64, 0.0f, out));
                for (size_t i = 0; i < 32; i++) assert_true(isnan(out[i]));
                for (size_t i = 32; i < 64; i++) assert_near(out[i], 1.0, 0.01);
            }
}

/* ---- names, sizes, scales ---- */

static void every_dtype_is_found_by_its_name(void **state)
{
    static const char *const names[] = {NULL,      "f32",   "f64",   "f16",    "bf16", "f8_e4m3",
                                        "f8_e5m2", "i8",    "q8_0",  "q4_0",   "q4_1", "q5_0",
                                        "q5_1",    "q3_k",  "q4_k",  "q5_k",   "q6_k", "iq4_nl",
                                        "iq4_xs",  "mxfp4", "nvfp4", "f4_e2m1"};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_dtype found;
        assert_string_equal(embla_dtype_name((embla_dtype)d), names[d]);
        assert_ok(embla_dtype_find(names[d], &found));
        assert_int_equal(found, d);
    }
    assert_null(embla_dtype_name((embla_dtype)0));
    assert_null(embla_dtype_name((embla_dtype)(CHECK_LAST_DTYPE + 1)));
    assert_null(embla_dtype_name((embla_dtype)-1));
}

static void an_unknown_name_is_answered_with_the_names_there_are(void **state)
{
    embla_dtype found = EMBLA_I8;
    (void)state;
    assert_status(embla_dtype_find("float", &found), EMBLA_ERR_NOT_FOUND);
    assert_error_has("'float'");
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++)
        assert_error_has(embla_dtype_name((embla_dtype)d));
    assert_status(embla_dtype_find("", &found), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_dtype_find("F32", &found), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_dtype_find(NULL, &found), EMBLA_ERR_ARGUMENT);
    assert_status(embla_dtype_find("f32", NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(found, EMBLA_I8);
}

static void a_row_has_the_bytes_of_its_blocks(void **state)
{
    static const size_t of_256[] = {0,   1024, 2048, 512, 512, 256, 256, 256, 272, 144, 160,
                                    176, 192,  110,  144, 176, 210, 144, 136, 136, 144, 128};
    size_t bytes = 42;
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        assert_ok(embla_dtype_row_bytes((embla_dtype)d, 256, &bytes));
        assert_int_equal(bytes, of_256[d]);
        assert_int_equal(EMBLA_PIECE % embla_dtype_find_info((embla_dtype)d)->block, 0);
        assert_ok(embla_dtype_row_bytes((embla_dtype)d, 0, &bytes));
        assert_int_equal(bytes, 0);
    }
    assert_status(embla_dtype_row_bytes(EMBLA_F32, 64, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_dtype_row_bytes((embla_dtype)0, 64, &bytes), EMBLA_ERR_ARGUMENT);
    assert_status(embla_dtype_row_bytes((embla_dtype)(CHECK_LAST_DTYPE + 1), 64, &bytes),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_dtype_row_bytes(EMBLA_F64, SIZE_MAX / 8 + 1, &bytes), EMBLA_ERR_ARGUMENT);
    assert_status(embla_dtype_row_bytes(EMBLA_I8, SIZE_MAX, &bytes), EMBLA_ERR_ARGUMENT);
    assert_int_equal(bytes, 0);
}

static void a_row_is_a_whole_number_of_blocks(void **state)
{
    size_t bytes = 42;
    (void)state;
    for (int d = EMBLA_Q8_0; d <= EMBLA_Q4_0; d++) {
        float in[33] = {0};
        unsigned char out[40];
        assert_status(embla_dtype_row_bytes((embla_dtype)d, 33, &bytes), EMBLA_ERR_SHAPE);
        assert_error_has("33");
        assert_error_has("32");
        assert_status(embla_dtype_encode((embla_dtype)d, in, 33, 0.0f, out), EMBLA_ERR_SHAPE);
        assert_status(embla_dtype_decode((embla_dtype)d, out, 31, 0.0f, in), EMBLA_ERR_SHAPE);
    }
    assert_int_equal(bytes, 42);
}

static void a_scale_is_only_for_those_that_take_one(void **state)
{
    float x[256] = {0};
    unsigned char stored[2048] = {0};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        embla_dtype dtype = (embla_dtype)d;
        bool takes = check_scale(dtype) != 0.0f;
        embla_status wanted = takes ? EMBLA_OK : EMBLA_ERR_ARGUMENT;
        assert_status(embla_dtype_decode(dtype, stored, 256, 2.0f, x), wanted);
        assert_status(embla_dtype_encode(dtype, x, 256, 2.0f, stored), wanted);
        assert_status(embla_dtype_decode(dtype, stored, 256, NAN, x), EMBLA_ERR_ARGUMENT);
        assert_status(embla_dtype_encode(dtype, x, 256, INFINITY, stored), EMBLA_ERR_ARGUMENT);
    }
}

static void null_is_refused_unless_there_is_nothing_to_do(void **state)
{
    float x[4] = {0};
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d < EMBLA_Q8_0; d++) {
        embla_dtype dtype = (embla_dtype)d;
        assert_status(embla_dtype_decode(dtype, NULL, 4, 0.0f, x), EMBLA_ERR_ARGUMENT);
        assert_status(embla_dtype_encode(dtype, x, 4, 0.0f, NULL), EMBLA_ERR_ARGUMENT);
        assert_ok(embla_dtype_decode(dtype, NULL, 0, 0.0f, NULL));
        assert_ok(embla_dtype_encode(dtype, NULL, 0, 0.0f, NULL));
    }
    assert_status(embla_dtype_decode((embla_dtype)0, x, 4, 0.0f, x), EMBLA_ERR_ARGUMENT);
}

/* What a table says of itself can be handed back. */
static void a_scale_of_1_is_taken_by_all(void **state)
{
    (void)state;
    for (int d = 1; embla_dtype_name((embla_dtype)d); d++) {
        embla_table *table = check_zeros((embla_dtype)d, 2, 256);
        float out[256];
        assert_ok(embla_dtype_decode(embla_table_dtype(table), embla_table_row(table, 1), 256,
                                     embla_table_scale(table), out));
        embla_table_free(table);
    }
}

/* Whether a dtype is written is the same for every set, and what embla_dtype_encode does. */
static void dtypes_that_are_read_are_not_written(void **state)
{
    static const bool written[] = {false, true, true,  true, true, true,  true,  true,
                                   true,  true, true,  true, true, false, false, false,
                                   false, true, false, true, true, true};
    float x[256] = {0};
    (void)state;
    for (int d = 0; d <= CHECK_LAST_DTYPE + 1; d++) {
        bool writes = d <= CHECK_LAST_DTYPE && written[d];
        assert_int_equal(embla_dtype_writes((embla_dtype)d), writes);
        if (!embla_dtype_name((embla_dtype)d)) continue;
        check_guarded out = check_guard(2048, 0);
        assert_status(embla_dtype_encode((embla_dtype)d, x, 256, 0.0f, out.bytes),
                      writes ? EMBLA_OK : EMBLA_ERR_UNSUPPORTED);
        if (!writes) assert_error_has("is read-only: encoding is not supported");
        if (!writes) check_untouched(&out);
        for (int isa = 0; isa < EMBLA_ISA_COUNT; isa++) {
            assert_int_equal(embla_dtype_encoder((embla_dtype)d, (embla_isa)isa) != NULL, writes);
            assert_non_null(embla_dtype_decoder((embla_dtype)d, (embla_isa)isa));
        }
        check_guard_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(dtypes_that_are_read_are_not_written),
        cmocka_unit_test(every_code_decodes_to_its_number),
        cmocka_unit_test(every_code_comes_back_from_its_number),
        cmocka_unit_test(midpoints_go_to_the_even_code),
        cmocka_unit_test(any_float_goes_to_the_nearest_code),
        cmocka_unit_test(overflow_goes_where_the_header_says),
        cmocka_unit_test(nan_stays_nan_with_its_sign),
        cmocka_unit_test(a_scale_multiplies_f8_numbers),
        cmocka_unit_test(f32_is_copied_bit_for_bit),
        cmocka_unit_test(f64_rounds_to_the_nearest_float),
        cmocka_unit_test(every_i8_is_its_number_times_the_scale),
        cmocka_unit_test(i8_rounds_ties_to_even_and_stops_at_its_ends),
        cmocka_unit_test(blocks_decode_as_ggml_lays_them_out),
        cmocka_unit_test(q8_0_errs_by_half_a_step_at_most),
        cmocka_unit_test(q4_0_errs_by_half_a_step_or_one_at_the_short_end),
        cmocka_unit_test(blocks_round_as_ggml_does),
        cmocka_unit_test(a_block_of_zeros_is_zeros),
        cmocka_unit_test(a_block_that_cannot_be_scaled_is_all_nan),
        cmocka_unit_test(every_dtype_is_found_by_its_name),
        cmocka_unit_test(an_unknown_name_is_answered_with_the_names_there_are),
        cmocka_unit_test(a_row_has_the_bytes_of_its_blocks),
        cmocka_unit_test(a_row_is_a_whole_number_of_blocks),
        cmocka_unit_test(a_scale_is_only_for_those_that_take_one),
        cmocka_unit_test(null_is_refused_unless_there_is_nothing_to_do),
        cmocka_unit_test(a_scale_of_1_is_taken_by_all),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
