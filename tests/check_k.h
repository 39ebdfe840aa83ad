/* SPDX-License-Identifier: Apache-2.0 */
/* The library reads ggml's superblocks and does not write them. So that tests can have tables of
 * these dtypes too, this file encodes them in the simplest way: one scale for 256 numbers, every
 * group's own scale is 1. The rounding is coarse, but every number decodes to a value near it.
 * A superblock with a NaN or an infinity becomes all NaN, as in the library's block formats.
 * No include guard: it is included by check.h, whose macros it needs.
 */
#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include "embla.h"

enum { CHECK_SUPER = 256 };

/* Sets bits first .. first+count-1 of the bytes at p, the lowest bit first. They are 0 before. */
static inline void check_k_bits(unsigned char *p, size_t first, size_t count, unsigned value)
{
    for (size_t i = 0; i < count; i++)
        p[(first + i) / 8] |= (unsigned char)((value >> i & 1u) << (first + i) % 8);
}

/* x / step to the nearest integer between least and most. */
static inline int check_k_round(float x, float step, int least, int most)
{
    float q = step > 0.0f ? x / step : 0.0f;
    int n = (int)(q < 0.0f ? q - 0.5f : q + 0.5f);
    return n < least ? least : n > most ? most : n;
}

/* q3_k: 32 bytes of third bits, 64 of pairs of bits, 12 of scales, d. Codes are -4 .. 3. */
static inline void check_k_q3(const float *x, float step, unsigned char *b)
{
    for (size_t group = 0; group < 16; group++) { /* 33 is a scale of 1 */
        check_k_bits(b + 96 + group % 8, group < 8 ? 0 : 4, 4, 33u & 15u);
        check_k_bits(b + 104 + group % 4, 2 * (group / 4), 2, 33u >> 4);
    }
    for (size_t i = 0; i < CHECK_SUPER; i++) {
        unsigned q = (unsigned)(check_k_round(x[i], step, -4, 3) + 4);
        size_t half = i / 128, quarter = i % 128 / 32, at = i % 32;
        check_k_bits(b + 32 + 32 * half + at, 2 * quarter, 2, q & 3u);
        check_k_bits(b + at, 4 * half + quarter, 1, q >> 2);
    }
}

/* q4_k and q5_k: d, dmin, 12 bytes of scales and offsets, for q5_k 32 bytes of fifth bits, then
 * codes. A number is step * code - (-least). */
static inline void check_k_q45(const float *x, float step, float least, bool five, unsigned char *b)
{
    unsigned char *codes = b + (five ? 48 : 16);
    memset(b + 4, 1, 12); /* groups 0 .. 3: scale and offset 1; the upper bits of the rest are 0 */
    memset(b + 12, 0x11, 4);
    for (size_t i = 0; i < CHECK_SUPER; i++) {
        unsigned q = (unsigned)check_k_round(x[i] - least, step, 0, five ? 31 : 15);
        size_t group = i / 32, at = i % 32;
        check_k_bits(codes + 32 * (group / 2) + at, group % 2 * 4, 4, q & 15u);
        if (five) check_k_bits(b + 16 + at, group, 1, q >> 4);
    }
}

/* q6_k: 128 bytes of lower halves, 64 of pairs of bits, 16 scales, d. Codes are -32 .. 31. */
static inline void check_k_q6(const float *x, float step, unsigned char *b)
{
    memset(b + 192, 1, 16);
    for (size_t i = 0; i < CHECK_SUPER; i++) {
        unsigned q = (unsigned)(check_k_round(x[i], step, -32, 31) + 32);
        size_t half = i / 128, quarter = i % 128 / 32, at = i % 32;
        check_k_bits(b + 64 * half + 32 * (quarter % 2) + at, quarter < 2 ? 0 : 4, 4, q & 15u);
        check_k_bits(b + 128 + 32 * half + at, 2 * quarter, 2, q >> 4);
    }
}

/* iq4_xs: d, two bits of each scale, four bits of each scale, codes of 16 uneven levels. */
static inline void check_k_iq4_xs(const float *x, float step, unsigned char *b)
{
    static const int levels[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                 1,    13,   25,  38,  53,  69,  89,  113};
    for (size_t group = 0; group < 8; group++) {
        check_k_bits(b + 4, 4 * group, 4, 33u & 15u);
        check_k_bits(b + 2, 2 * group, 2, 33u >> 4);
    }
    for (size_t i = 0; i < CHECK_SUPER; i++) {
        unsigned code = 0;
        int q = check_k_round(x[i], step, -127, 113);
        while (code < 15 && 2 * q > levels[code] + levels[code + 1]) code++;
        check_k_bits(b + 8 + 16 * (i / 32) + i % 16, i % 32 < 16 ? 0 : 4, 4, code);
    }
}

/* An f16 at p. Returns the number that it is. */
static inline float check_k_half(float x, unsigned char *p)
{
    float back;
    assert_ok(embla_dtype_encode(EMBLA_F16, &x, 1, 0.0f, p));
    assert_ok(embla_dtype_decode(EMBLA_F16, p, 1, 0.0f, &back));
    return back;
}

/* One superblock; bytes of it, all 0, at b. */
static inline void check_k_encode(embla_dtype dtype, const float *x, unsigned char *b)
{
    float least = 0.0f, most = 0.0f;
    bool finite = true;
    for (size_t i = 0; i < CHECK_SUPER; i++) {
        finite = finite && x[i] - x[i] == 0.0f;
        least = x[i] < least ? x[i] : least;
        most = x[i] > most ? x[i] : most;
    }
    float size = most > -least ? most : -least, nan = check_float_of(0x7fc00000);
    switch (dtype) {
    case EMBLA_Q3_K:
        check_k_q3(x, check_k_half(finite ? size / 4.0f : nan, b + 108), b);
        return;
    case EMBLA_Q4_K:
    case EMBLA_Q5_K: {
        float range = (most - least) / (dtype == EMBLA_Q5_K ? 31.0f : 15.0f);
        float step = check_k_half(finite ? range : nan, b), offset = check_k_half(-least, b + 2);
        check_k_q45(x, step, -offset, dtype == EMBLA_Q5_K, b);
        return;
    }
    case EMBLA_Q6_K:
        check_k_q6(x, check_k_half(finite ? size / 32.0f : nan, b + 208), b);
        return;
    default:
        assert_int_equal(dtype, EMBLA_IQ4_XS);
        check_k_iq4_xs(x, check_k_half(finite ? size / 127.0f : nan, b), b);
    }
}
