/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the NEON loops of codecs and of engine/score.h: sixteen stored numbers become sixteen
 * floats in four registers, a line of a result.
 */
#ifndef EMBLA_BASE_CODEC_NEON_H
#define EMBLA_BASE_CODEC_NEON_H

#include "base/half.h"
#include "base/lines.h"

#if EMBLA_ARM

typedef struct {
    float32x4_t of[4];
} embla_sixteen;

/* ---- from stored numbers ---- */

EMBLA_BODY embla_sixteen embla_sixteen_of_f16(uint16x8_t first, uint16x8_t second)
{
    float16x8_t a = vreinterpretq_f16_u16(first), b = vreinterpretq_f16_u16(second);
    return (embla_sixteen){{vcvt_f32_f16(vget_low_f16(a)), vcvt_high_f32_f16(a),
                            vcvt_f32_f16(vget_low_f16(b)), vcvt_high_f32_f16(b)}};
}

EMBLA_BODY embla_sixteen embla_sixteen_of_bf16(uint16x8_t a, uint16x8_t b)
{
    return (embla_sixteen){{vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(a), 16)),
                            vreinterpretq_f32_u32(vshll_high_n_u16(a, 16)),
                            vreinterpretq_f32_u32(vshll_n_u16(vget_low_u16(b), 16)),
                            vreinterpretq_f32_u32(vshll_high_n_u16(b, 16))}};
}

EMBLA_BODY embla_sixteen embla_sixteen_of_bytes(int8x16_t bytes)
{
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    return (embla_sixteen){
        {vcvtq_f32_s32(vmovl_s16(vget_low_s16(low))), vcvtq_f32_s32(vmovl_high_s16(low)),
         vcvtq_f32_s32(vmovl_s16(vget_low_s16(high))), vcvtq_f32_s32(vmovl_high_s16(high))}};
}

/* The upper bytes of f16 whose lower bytes are 0. Small integers and tiny floats are such numbers:
 * a table gives their bytes. That takes fewer instructions than widening integers twice. */
EMBLA_BODY embla_sixteen embla_sixteen_of_upper(uint8x16_t upper)
{
    const uint8x16_t zero = vdupq_n_u8(0);
    return embla_sixteen_of_f16(vreinterpretq_u16_u8(vzip1q_u8(zero, upper)),
                                vreinterpretq_u16_u8(vzip2q_u8(zero, upper)));
}

/* An f16 in all four lanes. */
EMBLA_BODY float32x4_t embla_neon_f16(const void *bytes)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(embla_load_u16(bytes))));
}

/* Eight numbers of two bytes. */
EMBLA_BODY uint16x8_t embla_neon_u16(const void *bytes)
{
    return vreinterpretq_u16_u8(vld1q_u8(bytes));
}

/* ---- four-bit codes: numbers of a table ---- */

EMBLA_BODY uint8x16_t embla_neon_low_half(uint8x16_t table, uint8x16_t codes)
{
    return vqtbl1q_u8(table, vandq_u8(codes, vdupq_n_u8(15)));
}

EMBLA_BODY uint8x16_t embla_neon_high_half(uint8x16_t table, uint8x16_t codes)
{
    return vqtbl1q_u8(table, vshrq_n_u8(codes, 4));
}

/* ---- arithmetic and writing ---- */

EMBLA_BODY embla_sixteen embla_sixteen_times(embla_sixteen x, float32x4_t times)
{
    return (embla_sixteen){{vmulq_f32(times, x.of[0]), vmulq_f32(times, x.of[1]),
                            vmulq_f32(times, x.of[2]), vmulq_f32(times, x.of[3])}};
}

EMBLA_BODY embla_sixteen embla_sixteen_plus(embla_sixteen x, float32x4_t y)
{
    return (embla_sixteen){{vaddq_f32(x.of[0], y), vaddq_f32(x.of[1], y), vaddq_f32(x.of[2], y),
                            vaddq_f32(x.of[3], y)}};
}

EMBLA_BODY void embla_sixteen_put(embla_sixteen x, embla_write_mode mode, float *out)
{
    embla_put_neon(out, x.of[0], x.of[1], mode);
    embla_put_neon(out + 8, x.of[2], x.of[3], mode);
}

/* x times a float, written. */
EMBLA_BODY void embla_sixteen_put_times(embla_sixteen x, float32x4_t times, embla_write_mode mode,
                                        float *out)
{
    embla_sixteen_put(embla_sixteen_times(x, times), mode, out);
}

#endif
#endif
