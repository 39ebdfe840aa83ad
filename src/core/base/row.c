/* SPDX-License-Identifier: Apache-2.0 */
/* Row formats: numbers of a dtype, and for some dtypes a scale for each group of them.
 *
 *   number = value of its code * scale of its group * scale of the table
 *
 * The first product is exact in a float (a few bits each), or overflows to infinity. The second
 * product is rounded once, or not at all if the table's scale is 1. The loops for f8 rows are in
 * codec_f8.c; this file has those for f4, the checks of formats, and encoding.
 */
#include "base/row.h"

#include <math.h>

#include "base/checked.h"
#include "base/codec_neon.h"
#include "base/half.h"
#include "base/kernels.h"
#include "base/options.h"

typedef unsigned char byte;

/* ---- one scale, one number ---- */

static const float e2m1[16] = {0.0f,  0.5f,  1.0f,  1.5f,  2.0f,  3.0f,  4.0f,  6.0f,
                               -0.0f, -0.5f, -1.0f, -1.5f, -2.0f, -3.0f, -4.0f, -6.0f};

EMBLA_BODY float scale_of(embla_scales scales, byte code)
{
    return scales == EMBLA_SCALES_E4M3_16 ? embla_f32_from_e4m3(code) : embla_f32_from_ue8m0(code);
}

/* Numbers of a group, as a power of two; 0 means no scales. */
EMBLA_BODY unsigned group_bits(embla_scales scales)
{
    if (scales == EMBLA_SCALES_UE8M0_32) return 5;
    if (scales == EMBLA_SCALES_UE8M0_128) return 7;
    return scales == EMBLA_SCALES_E4M3_16 ? 4 : 0;
}

/* ---- rows of f4_e2m1: number i is the low half of byte i/2 if i is even ---- */

__attribute__((noinline)) static void f4_numbers(const byte *codes, size_t n, float group,
                                                 float scale, float *out)
{
    for (size_t i = 0; i < n; i++) {
        unsigned code = i % 2 == 0 ? codes[i / 2] & 15u : (unsigned)codes[i / 2] >> 4;
        out[i] = e2m1[code] * group * scale;
    }
}

static void f4_scalar(const embla_row_format *f, const byte *codes, const byte *scales, size_t n,
                      embla_write_mode mode, float *out)
{
    size_t group = (size_t)1 << group_bits(f->scales);
    (void)mode;
    for (size_t i = 0; i < n; i += group)
        f4_numbers(codes + i / 2, n - i < group ? n - i : group, scale_of(f->scales, *scales++),
                   f->scale, out + i);
}

#if EMBLA_X86

/* The same as scale_of, with hardware conversions. */
EMBLA_AVX2 static inline float scale_avx2(embla_scales scales, byte code)
{
    if (scales != EMBLA_SCALES_E4M3_16) return embla_f32_from_ue8m0(code);
    if ((code & 0x7f) == 0x7f) return embla_f32_from_e4m3(code);
    return _cvtsh_ss((unsigned short)((code & 0x80u) << 8 | (code & 0x7fu) << 7)) * 256.0f;
}

/* Eight numbers: each code is shifted to the low bits of its lane; three bits select, the fourth is
 * the sign. */
EMBLA_AVX2 static inline __m256 f4_eight(const byte *codes, __m256 values)
{
    int32_t eight;
    memcpy(&eight, codes, sizeof eight);
    const __m256i down = _mm256_setr_epi32(0, 4, 8, 12, 16, 20, 24, 28);
    __m256i code = _mm256_srlv_epi32(_mm256_set1_epi32(eight), down);
    __m256i sign = _mm256_slli_epi32(_mm256_srli_epi32(code, 3), 31);
    return _mm256_xor_ps(_mm256_permutevar8x32_ps(values, code), _mm256_castsi256_ps(sign));
}

EMBLA_AVX2 static void f4_avx2(const embla_row_format *f, const byte *codes, const byte *scales,
                               size_t n, embla_write_mode mode, float *out)
{
    const __m256 values = _mm256_loadu_ps(e2m1), times = _mm256_set1_ps(f->scale);
    const unsigned bits = group_bits(f->scales);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const __m256 d = _mm256_set1_ps(scale_avx2(f->scales, scales[i >> bits]));
        __m256 low = _mm256_mul_ps(f4_eight(codes + i / 2, values), d);
        __m256 high = _mm256_mul_ps(f4_eight(codes + i / 2 + 4, values), d);
        embla_put_avx2(out + i, _mm256_mul_ps(low, times), mode);
        embla_put_avx2(out + i + 8, _mm256_mul_ps(high, times), mode);
    }
    if (i < n)
        f4_numbers(codes + i / 2, n - i, scale_of(f->scales, scales[i >> bits]), f->scale, out + i);
}

/* Sixteen numbers from eight bytes; the selection uses only the four low bits of a lane. */
EMBLA_AVX512 static inline __m512 f4_sixteen(const byte *codes, __m512 values)
{
    const __m512i spread = _mm512_set_epi32(7, 7, 6, 6, 5, 5, 4, 4, 3, 3, 2, 2, 1, 1, 0, 0);
    const __m512i down = _mm512_set1_epi64((long long)4 << 32); /* odd lanes by 4 */
    int64_t eight;
    memcpy(&eight, codes, sizeof eight);
    __m512i x = _mm512_shuffle_epi8(_mm512_set1_epi64(eight), spread);
    return _mm512_permutexvar_ps(_mm512_srlv_epi32(x, down), values);
}

/* The scales of sixteen groups, the same as scale_of. */
EMBLA_AVX512 static inline void scales_16(embla_scales scales, const byte *codes, size_t groups,
                                          float *out)
{
    const __mmask16 there = (__mmask16)(groups < 16 ? (1u << groups) - 1u : 0xffffu);
    const __m128i x = _mm_maskz_loadu_epi8(there, codes);
    if (scales == EMBLA_SCALES_E4M3_16) {
        __m256i half = _mm256_slli_epi16(_mm256_cvtepi8_epi16(x), 7);
        half = _mm256_and_si256(half, _mm256_set1_epi16((short)0xbfff));
        __m512 y = _mm512_mul_ps(_mm512_cvtph_ps(half), _mm512_set1_ps(256.0f));
        __m128i most = _mm_set1_epi8(0x7f);
        __mmask16 lost = _mm_cmpeq_epi8_mask(_mm_and_si128(x, most), most);
        const __m512 nan = _mm512_castsi512_ps(_mm512_set1_epi32(0x7fc00000));
        __m512 sign = _mm512_and_ps(y, _mm512_set1_ps(-0.0f));
        y = _mm512_mask_or_ps(y, lost, sign, nan);
        _mm512_storeu_ps(out, y);
    } else {
        __m512i y = _mm512_slli_epi32(_mm512_cvtepu8_epi32(x), 23);
        __mmask16 odd =
            _mm_cmpeq_epi8_mask(x, _mm_setzero_si128()) | _mm_cmpeq_epi8_mask(x, _mm_set1_epi8(-1));
        y = _mm512_mask_or_epi32(y, odd, y, _mm512_set1_epi32(0x400000));
        _mm512_storeu_si512(out, y);
    }
}

EMBLA_AVX512 static void f4_avx512(const embla_row_format *f, const byte *codes, const byte *scales,
                                   size_t n, embla_write_mode mode, float *out)
{
    const __m512 values = _mm512_loadu_ps(e2m1), times = _mm512_set1_ps(f->scale);
    const unsigned bits = group_bits(f->scales);
    float groups[16];
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        size_t g = i >> bits;
        if ((i & ((16u << bits) - 1)) == 0)
            scales_16(f->scales, scales + g, ((n - 1) >> bits) + 1 - g, groups);
        __m512 x = _mm512_mul_ps(f4_sixteen(codes + i / 2, values), _mm512_set1_ps(groups[g % 16]));
        embla_put_avx512(out + i, _mm512_mul_ps(x, times), mode);
    }
    if (i < n)
        f4_numbers(codes + i / 2, n - i, scale_of(f->scales, scales[i >> bits]), f->scale, out + i);
}

#endif

#if EMBLA_ARM

/* The same as scale_of, with the CPU's conversion. */
static inline float scale_neon(embla_scales scales, byte code)
{
    if (scales != EMBLA_SCALES_E4M3_16) return embla_f32_from_ue8m0(code);
    if ((code & 0x7f) == 0x7f) return embla_f32_from_e4m3(code);
    uint16_t half = (uint16_t)((code & 0x80u) << 8 | (code & 0x7fu) << 7);
    return vgetq_lane_f32(vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(half))), 0) * 256.0f;
}

static void f4_neon(const embla_row_format *f, const byte *codes, const byte *scales, size_t n,
                    embla_write_mode mode, float *out)
{
    static const uint8_t upper[16] = {0x00, 0x38, 0x3c, 0x3e, 0x40, 0x42, 0x44, 0x46,
                                      0x80, 0xb8, 0xbc, 0xbe, 0xc0, 0xc2, 0xc4, 0xc6};
    const uint8x16_t table = vld1q_u8(upper); /* e2m1, as the upper bytes of f16 */
    const float32x4_t times = vdupq_n_f32(f->scale);
    const unsigned bits = group_bits(f->scales);
    size_t i = 0;
    for (; i + 16 <= n; i += 16) {
        const float32x4_t d = vdupq_n_f32(scale_neon(f->scales, scales[i >> bits]));
        uint8x8_t q = vld1_u8(codes + i / 2);
        uint8x16_t even = vcombine_u8(vand_u8(q, vdup_n_u8(15)), vdup_n_u8(0));
        uint8x16_t odd = vcombine_u8(vshr_n_u8(q, 4), vdup_n_u8(0));
        uint8x16_t x = vqtbl1q_u8(table, vzip1q_u8(even, odd));
        embla_sixteen_put_times(embla_sixteen_times(embla_sixteen_of_upper(x), d), times, mode,
                                out + i);
    }
    if (i < n)
        f4_numbers(codes + i / 2, n - i, scale_of(f->scales, scales[i >> bits]), f->scale, out + i);
}

#endif

static embla_scaled_fn *const f4_rows[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(f4_scalar, f4_neon, f4_avx2, f4_avx512);

/* ---- checking formats ---- */

static embla_status check_scales(const embla_row_format *format, const embla_dtype_info *info)
{
    embla_scales scales = format->scales;
    if ((unsigned)scales > EMBLA_SCALES_E4M3_16)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown scales %d; scales are 0 to %d", (int)scales,
                          EMBLA_SCALES_E4M3_16);
    if (scales == EMBLA_SCALES_NONE) return EMBLA_OK;
    if (format->dtype == EMBLA_F8_E4M3 && scales != EMBLA_SCALES_E4M3_16) return EMBLA_OK;
    if (format->dtype == EMBLA_F4_E2M1 && scales != EMBLA_SCALES_UE8M0_128) return EMBLA_OK;
    return embla_fail(
        EMBLA_ERR_ARGUMENT,
        "scales %d are not possible for %s; f8_e4m3 supports 1 and 2, f4_e2m1 supports 1 and 3",
        (int)scales, info->name);
}

embla_status embla_row_of(const embla_row_format *format, embla_row *out)
{
    embla_row row = {0};
    embla_isa isa = embla_kernels_get()->isa;
    if (!format || !out) return embla_fail(EMBLA_ERR_ARGUMENT, "the row format or out is NULL");
    EMBLA_TRY(embla_options_check(format));
    EMBLA_TRY(embla_dtype_check(format->dtype, &row.info));
    EMBLA_TRY(check_scales(format, row.info));
    if (format->dim < 1 || format->dim > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_SHAPE, "dim is %zu; it must be from 1 to %zu", format->dim,
                          EMBLA_DIM_MOST);
    EMBLA_TRY(embla_dtype_row_bytes(format->dtype, format->dim, &row.code_bytes));
    row.format = *format;
    EMBLA_TRY(embla_dtype_scale(format->dtype, format->scale, &row.format.scale));
    row.group = row.info->block;
    row.decode = embla_dtype_decoder(format->dtype, isa);
    if (format->scales != EMBLA_SCALES_NONE) {
        row.group = (size_t)1 << group_bits(format->scales);
        row.scale_bytes = (format->dim + row.group - 1) / row.group;
        row.scaled = EMBLA_ISA_PICK(format->dtype == EMBLA_F8_E4M3 ? embla_f8_rows : f4_rows, isa);
    }
    row.bytes = row.code_bytes + row.scale_bytes;
    *out = row;
    return EMBLA_OK;
}

embla_status embla_row_part_of(const embla_row *row, size_t first, size_t n, embla_row_part *out)
{
    const size_t dim = row->format.dim, group = row->group;
    if (first == 0 && n == 0) { /* the whole row: no divisions */
        *out = (embla_row_part){.n = dim,
                                .code_bytes = row->code_bytes,
                                .scale_bytes = row->scale_bytes,
                                .bytes = row->bytes};
        return EMBLA_OK;
    }
    if (first >= dim || n > dim - first)
        return embla_fail(EMBLA_ERR_RANGE,
                          "the part of a row from number %zu on, %zu numbers long, is out of "
                          "range; a row has %zu",
                          first, n, dim);
    if (n == 0) n = dim - first;
    if (first % group != 0 || (n % group != 0 && first + n != dim))
        return embla_fail(EMBLA_ERR_SHAPE,
                          "numbers %zu to %zu of a row are not whole groups of %zu", first,
                          first + n - 1, group);
    embla_row_part part = {.first = first, .n = n};
    part.code_at = embla_dtype_bytes(row->info, first);
    part.code_bytes = embla_dtype_bytes(row->info, n);
    if (row->scale_bytes > 0) {
        part.scale_at = first / group;
        part.scale_bytes = (n + group - 1) / group;
    }
    part.bytes = part.code_bytes + part.scale_bytes;
    *out = part;
    return EMBLA_OK;
}

/* ---- public functions ---- */

embla_status embla_row_bytes(const embla_row_format *format, size_t *out)
{
    embla_row row;
    EMBLA_NEED(out);
    EMBLA_TRY(embla_row_of(format, &row));
    *out = row.bytes;
    return EMBLA_OK;
}

/* The checks that decode and encode share. */
static embla_status check_rows(const embla_row_format *format, const void *in, size_t count,
                               const void *out, embla_row *row)
{
    uint64_t bytes, floats;
    size_t size;
    EMBLA_TRY(embla_row_of(format, row));
    if (count > 0 && (!in || !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows, but %s is NULL", count, in ? "out" : "in");
    if (!embla_mul_ok(count, row->bytes, &bytes) || !embla_size_ok(bytes, &size) ||
        !embla_mul_ok(count, format->dim * sizeof(float), &floats) || !embla_size_ok(floats, &size))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows of %zu numbers do not fit in memory", count,
                          format->dim);
    return EMBLA_OK;
}

embla_status embla_row_decode(const embla_row_format *format, const void *rows, size_t count,
                              float *out)
{
    embla_row row;
    const byte *in = rows;
    EMBLA_TRY(check_rows(format, rows, count, out, &row));
    for (size_t i = 0; i < count; i++, in += row.bytes)
        embla_row_read(&row, in, in + row.code_bytes, format->dim, EMBLA_WRITE_PLAIN,
                       out + i * format->dim);
    return EMBLA_OK;
}

/* ---- encoding ---- */

/* The smallest power of two, at least 2^-127, whose product with 448 (f8) or 6 (f4) is not below
 * largest. 448 is 0.875 * 2^9, 6 is 0.75 * 2^3. */
static byte ue8m0_for(float largest, bool f8)
{
    int exponent;
    float fraction = frexpf(largest, &exponent);
    if (largest == 0.0f) return 0;
    exponent -= f8 ? 9 : 3;
    if (fraction > (f8 ? 0.875f : 0.75f)) exponent++;
    return (byte)(exponent < -127 ? 0 : exponent + 127);
}

/* The smallest e4m3 whose product with 6 is not below largest. A scale that rounds to 448 becomes
 * 448, so that a table scale chosen for the largest number does not overflow by rounding. Above
 * that the scale is NaN: the loss is not silent. */
static byte e4m3_for(float largest)
{
    byte code = 0;
    if (largest > 464.0f * 6.0f) return 0x7f;
    while (code < 0x7e && embla_f32_from_e4m3(code) * 6.0f < largest) code++;
    return code;
}

/* Encodes a group, already divided by the table's scale. In f8 a NaN or an infinity becomes NaN. f4
 * has no NaN, so the group's scale becomes NaN. */
static byte encode_group(const embla_row *row, embla_encode_fn *encode, const float *x, size_t n,
                         byte *codes)
{
    const bool f8 = row->format.dtype == EMBLA_F8_E4M3;
    float largest = 0.0f;
    bool finite = true;
    for (size_t i = 0; i < n; i++) {
        if (isfinite(x[i]))
            largest = fmaxf(largest, fabsf(x[i]));
        else
            finite = false;
    }
    bool small = row->format.scales == EMBLA_SCALES_E4M3_16;
    byte scale = small ? e4m3_for(largest) : ue8m0_for(largest, f8);
    if (!f8 && (!finite || (small && scale == 0x7f))) {
        memset(codes, 0, n / 2);
        return small ? 0x7f : 255;
    }
    float by = scale_of(row->format.scales, scale);
    encode(x, n, by == 0.0f ? 1.0f : by, codes);
    return scale;
}

static void encode_row(const embla_row *row, embla_encode_fn *encode, const float *in, byte *out)
{
    float x[128];
    const size_t dim = row->format.dim;
    byte *scales = out + row->code_bytes;
    for (size_t i = 0; i < dim; i += row->group) {
        size_t n = dim - i < row->group ? dim - i : row->group;
        for (size_t j = 0; j < n; j++) x[j] = in[i + j] / row->format.scale;
        *scales++ = encode_group(row, encode, x, n, out + embla_dtype_bytes(row->info, i));
    }
}

embla_status embla_row_encode(const embla_row_format *format, const float *in, size_t count,
                              void *out)
{
    embla_row row;
    byte *rows = out;
    EMBLA_TRY(check_rows(format, in, count, out, &row));
    EMBLA_TRY(embla_dtype_check_writes(format->dtype));
    embla_encode_fn *encode = embla_dtype_encoder(format->dtype, embla_kernels_get()->isa);
    for (size_t i = 0; i < count; i++) {
        if (row.scaled)
            encode_row(&row, encode, in + i * format->dim, rows + i * row.bytes);
        else
            encode(in + i * format->dim, format->dim, row.format.scale, rows + i * row.bytes);
    }
    return EMBLA_OK;
}
