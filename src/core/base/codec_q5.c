/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's q5_0 and q5_1: five bits for each of 32 numbers; the fifth bits are stored separately.
 *
 *   q5_0, 22 bytes          q5_1, 24 bytes
 *   0..1   d, an f16        0..1   d, an f16
 *                           2..3   m, an f16
 *   2..5   fifth bits       4..7   fifth bits: bit i of a u32 is worth 16 in number i
 *   6..21  q[16]            8..23  q[16]: number i is the low half of q[i], i+16 the high half
 *   d * (five bits - 16)    d * five bits + m
 *
 * The product has at most 16 bits, so it is exact, and the sum is rounded once. AVX-512 computes
 * the 32 different numbers that a block can contain, then selects.
 *
 * Encoding, as in ggml's reference. q5_0: d is the number of largest magnitude divided by -16.
 * q5_1: m is the smallest number, d the range divided by 31. For NaN, infinity, or a d or m that
 * overflows f16, all numbers of the block decode to NaN, as in q8_0.
 */
#include <math.h>

#include "base/codec_neon.h"
#include "base/dtype.h"
#include "base/half.h"

enum { BLOCK = 32, HALF = 16, BYTES_0 = 22, BYTES_1 = 24 };

/* The sum of two NaNs is one or the other, depending on the CPU. So that all sets give the same
 * bits, a NaN in m is copied to d. */
static inline bool is_nan(const void *f16)
{
    return (embla_load_u16(f16) & 0x7fffu) > 0x7c00u;
}

static inline uint32_t load_u32(const unsigned char *p)
{
    return embla_load_u16(p) | (uint32_t)embla_load_u16(p + 2) << 16;
}

/* The five bits of number j, 0..31. The fifth bits are directly before the halves. */
static inline unsigned five_bits(const unsigned char *fifths, size_t j)
{
    unsigned half = j < HALF ? fifths[4 + j] & 15u : (unsigned)fifths[4 + j - HALF] >> 4;
    return half | (load_u32(fifths) >> j & 1u) << 4;
}

static void q5_0_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_0) {
        float d = embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < BLOCK; j++)
            out[i + j] = d * (float)((int)five_bits(block + 2, j) - 16);
    }
}

static void q5_1_decode(const void *in, size_t n, float scale, embla_write_mode mode, float *out)
{
    (void)mode;
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_1) {
        float m = embla_f32_from_f16(embla_load_u16(block + 2));
        float d = is_nan(block + 2) ? m : embla_f32_from_f16(embla_load_u16(block));
        for (size_t j = 0; j < BLOCK; j++) out[i + j] = d * (float)five_bits(block + 4, j) + m;
    }
}

/* Truncates x, which is not negative, to an integer, at most 31. */
static inline unsigned truncate_to_31(float x)
{
    return x >= 31.0f ? 31u : (unsigned)x;
}

/* five[j] is number j: fifth bits, then halves. */
static void store_five(const unsigned char five[BLOCK], unsigned char *fifths)
{
    uint32_t bits = 0;
    for (size_t j = 0; j < BLOCK; j++) bits |= (uint32_t)(five[j] >> 4) << j;
    embla_store_u16(fifths, (uint16_t)(bits & 0xffffu));
    embla_store_u16(fifths + 2, (uint16_t)(bits >> 16));
    for (size_t j = 0; j < HALF; j++)
        fifths[4 + j] = (unsigned char)((five[j] & 15u) | (five[j + HALF] & 15u) << 4);
}

static void q5_0_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_0) {
        unsigned char five[BLOCK];
        float largest = 0.0f; /* with its sign */
        bool finite = true;
        for (size_t j = 0; j < BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            if (fabsf(in[i + j]) > fabsf(largest)) largest = in[i + j];
        }
        float d = largest / -16.0f, inverse = d != 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(inverse)) inverse = 0.0f; /* d is below 2^-128: all numbers round to zero */
        finite = finite && fabsf(d) < EMBLA_F16_OVERFLOWS;
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        for (size_t j = 0; j < BLOCK; j++)
            five[j] = (unsigned char)(finite ? truncate_to_31(in[i + j] * inverse + 16.5f) : 16u);
        store_five(five, block + 2);
    }
}

static void q5_1_encode(const float *in, size_t n, float scale, void *out)
{
    unsigned char *block = out;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_1) {
        unsigned char five[BLOCK];
        float least = in[i], most = in[i];
        bool finite = true;
        for (size_t j = 0; j < BLOCK; j++) {
            finite = finite && isfinite(in[i + j]);
            least = in[i + j] < least ? in[i + j] : least;
            most = in[i + j] > most ? in[i + j] : most;
        }
        float d = (most - least) / 31.0f, inverse = d > 0.0f ? 1.0f / d : 0.0f;
        if (!isfinite(inverse)) inverse = 0.0f;
        finite = finite && d < EMBLA_F16_OVERFLOWS && fabsf(least) < EMBLA_F16_OVERFLOWS;
        embla_store_u16(block, finite ? embla_f16_from_f32(d) : 0x7e00u);
        embla_store_u16(block + 2, finite ? embla_f16_from_f32(least) : 0u);
        for (size_t j = 0; j < BLOCK; j++)
            five[j] =
                (unsigned char)(finite ? truncate_to_31((in[i + j] - least) * inverse + 0.5f) : 0u);
        store_five(five, block + 4);
    }
}

#if EMBLA_X86

/* The 32 times five bits, as bytes, in their order. */
EMBLA_AVX2 static inline __m256i five_bits_avx2(const char *fifths)
{
    /* byte j of the spread bits is the one that holds bit j */
    const __m256i spread = _mm256_setr_epi8(0, 0, 0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1, 1, 1, 2, 2, 2,
                                            2, 2, 2, 2, 2, 3, 3, 3, 3, 3, 3, 3, 3);
    const __m256i bit = _mm256_set1_epi64x((long long)0x8040201008040201u);
    __m128i q = _mm_loadu_si128((const void *)(fifths + 4));
    __m256i halves = _mm256_inserti128_si256(_mm256_castsi128_si256(q), _mm_srli_epi16(q, 4), 1);
    int word;
    memcpy(&word, fifths, sizeof word);
    __m256i bits = _mm256_shuffle_epi8(_mm256_set1_epi32(word), spread);
    __m256i set = _mm256_cmpeq_epi8(_mm256_and_si256(bits, bit), bit);
    halves = _mm256_and_si256(halves, _mm256_set1_epi8(15));
    return _mm256_or_si256(halves, _mm256_and_si256(set, _mm256_set1_epi8(16)));
}

/* Signed bytes j..j+7 as floats. */
EMBLA_AVX2 static inline __m256 eight_avx2(__m256i bytes, size_t j)
{
    __m128i sixteen = j < HALF ? _mm256_castsi256_si128(bytes) : _mm256_extracti128_si256(bytes, 1);
    if (j % HALF != 0) sixteen = _mm_srli_si128(sixteen, 8);
    return _mm256_cvtepi32_ps(_mm256_cvtepi8_epi32(sixteen));
}

/* The d and m of a block of q5_1, in the first two lanes. */
EMBLA_AVX2 static inline __m128 d_and_m(const char *block)
{
    int word;
    memcpy(&word, block, sizeof word);
    __m128 head = _mm_cvtph_ps(_mm_cvtsi32_si128(word));
    if (is_nan(block + 2)) head = _mm_movehdup_ps(head);
    return head;
}

EMBLA_AVX2 static void q5_0_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_0) {
        const __m256 d = _mm256_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        __m256i five = _mm256_sub_epi8(five_bits_avx2(block + 2), _mm256_set1_epi8(16));
        for (size_t j = 0; j < BLOCK; j += 8)
            embla_put_avx2(out + i + j, _mm256_mul_ps(d, eight_avx2(five, j)), mode);
    }
}

EMBLA_AVX2 static void q5_1_decode_avx2(const void *in, size_t n, float scale,
                                        embla_write_mode mode, float *out)
{
    const char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_1) {
        __m128 head = d_and_m(block);
        const __m256 d = _mm256_broadcastss_ps(head);
        const __m256 m = _mm256_broadcastss_ps(_mm_movehdup_ps(head));
        __m256i five = five_bits_avx2(block + 4);
        for (size_t j = 0; j < BLOCK; j += 8) {
            __m256 x = _mm256_add_ps(_mm256_mul_ps(d, eight_avx2(five, j)), m);
            embla_put_avx2(out + i + j, x, mode);
        }
    }
}

/* Selects 32 numbers: numbers[0] has those for five bits 0..15, numbers[1] those for 16..31. The
 * selection uses only five bits of each index: four from q, and the fifth, which each lane rotates
 * to its place. */
EMBLA_AVX512 static inline void pick_avx512(const char *fifths, const __m512 numbers[2],
                                            embla_write_mode mode, float *out)
{
    const __m512i turn =
        _mm512_setr_epi32(4, 3, 2, 1, 0, 31, 30, 29, 28, 27, 26, 25, 24, 23, 22, 21);
    const __m512i fifth = _mm512_set1_epi32(16);
    enum { FROM_A_WHERE_C_ELSE_B = 0xe4 }; /* of ternarylogic(a, b, c) */
    int word;
    memcpy(&word, fifths, sizeof word);
    __m512i q = _mm512_cvtepu8_epi32(_mm_loadu_si128((const void *)(fifths + 4)));
    __m512i bits = _mm512_rolv_epi32(_mm512_set1_epi32(word), turn);
    __m512i low = _mm512_ternarylogic_epi32(bits, q, fifth, FROM_A_WHERE_C_ELSE_B);
    __m512i high = _mm512_ternarylogic_epi32(_mm512_ror_epi32(bits, 16), _mm512_srli_epi32(q, 4),
                                             fifth, FROM_A_WHERE_C_ELSE_B);
    embla_put_avx512(out, _mm512_permutex2var_ps(numbers[0], low, numbers[1]), mode);
    embla_put_avx512(out + HALF, _mm512_permutex2var_ps(numbers[0], high, numbers[1]), mode);
}

EMBLA_AVX512 static void q5_0_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m512 below =
        _mm512_setr_ps(-16, -15, -14, -13, -12, -11, -10, -9, -8, -7, -6, -5, -4, -3, -2, -1);
    const __m512 above = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_0) {
        const __m512 d = _mm512_set1_ps(_cvtsh_ss(embla_load_u16(block)));
        const __m512 numbers[2] = {_mm512_mul_ps(d, below), _mm512_mul_ps(d, above)};
        pick_avx512(block + 2, numbers, mode, out + i);
    }
}

EMBLA_AVX512 static void q5_1_decode_avx512(const void *in, size_t n, float scale,
                                            embla_write_mode mode, float *out)
{
    const char *block = in;
    const __m512 below = _mm512_setr_ps(0, 1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15);
    const __m512 above = _mm512_add_ps(below, _mm512_set1_ps(16.0f));
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_1) {
        __m128 head = d_and_m(block);
        const __m512 d = _mm512_broadcastss_ps(head);
        const __m512 m = _mm512_broadcastss_ps(_mm_movehdup_ps(head));
        const __m512 numbers[2] = {_mm512_add_ps(_mm512_mul_ps(d, below), m),
                                   _mm512_add_ps(_mm512_mul_ps(d, above), m)};
        pick_avx512(block + 4, numbers, mode, out + i);
    }
}

#endif

#if EMBLA_ARM

/* Sixteen times five bits, as bytes: halves, and two bytes with the fifth bits. */
static inline uint8x16_t five_bits_neon(uint8x16_t halves, const unsigned char *fifths)
{
    static const uint8_t bits[16] = {1, 2, 4, 8, 16, 32, 64, 128, 1, 2, 4, 8, 16, 32, 64, 128};
    uint8x16_t spread = vcombine_u8(vdup_n_u8(fifths[0]), vdup_n_u8(fifths[1]));
    uint8x16_t set = vtstq_u8(spread, vld1q_u8(bits));
    return vorrq_u8(halves, vandq_u8(set, vdupq_n_u8(16)));
}

static void q5_0_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const unsigned char *block = in;
    const uint8x16_t middle = vdupq_n_u8(16);
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_0) {
        const float32x4_t d = embla_neon_f16(block);
        const uint8x16_t q = vld1q_u8(block + 6);
        uint8x16_t low = five_bits_neon(vandq_u8(q, vdupq_n_u8(15)), block + 2);
        uint8x16_t high = five_bits_neon(vshrq_n_u8(q, 4), block + 4);
        int8x16_t a = vreinterpretq_s8_u8(vsubq_u8(low, middle));
        int8x16_t b = vreinterpretq_s8_u8(vsubq_u8(high, middle));
        embla_sixteen_put_times(embla_sixteen_of_bytes(a), d, mode, out + i);
        embla_sixteen_put_times(embla_sixteen_of_bytes(b), d, mode, out + i + HALF);
    }
}

static void q5_1_decode_neon(const void *in, size_t n, float scale, embla_write_mode mode,
                             float *out)
{
    const unsigned char *block = in;
    (void)scale;
    for (size_t i = 0; i < n; i += BLOCK, block += BYTES_1) {
        const float32x4_t m = embla_neon_f16(block + 2);
        const float32x4_t d = is_nan(block + 2) ? m : embla_neon_f16(block);
        const uint8x16_t q = vld1q_u8(block + 8);
        uint8x16_t low = five_bits_neon(vandq_u8(q, vdupq_n_u8(15)), block + 4);
        uint8x16_t high = five_bits_neon(vshrq_n_u8(q, 4), block + 6);
        embla_sixteen x = embla_sixteen_of_bytes(vreinterpretq_s8_u8(low));
        embla_sixteen y = embla_sixteen_of_bytes(vreinterpretq_s8_u8(high));
        embla_sixteen_put(embla_sixteen_plus(embla_sixteen_times(x, d), m), mode, out + i);
        embla_sixteen_put(embla_sixteen_plus(embla_sixteen_times(y, d), m), mode, out + i + HALF);
    }
}

#endif

const embla_codec embla_codec_q5_0 = {
    .decode = EMBLA_ISA_TABLE(q5_0_decode, q5_0_decode_neon, q5_0_decode_avx2, q5_0_decode_avx512),
    .encode = {q5_0_encode}};
const embla_codec embla_codec_q5_1 = {
    .decode = EMBLA_ISA_TABLE(q5_1_decode, q5_1_decode_neon, q5_1_decode_avx2, q5_1_decode_avx512),
    .encode = {q5_1_encode}};
