/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the NEON loops of codecs: sixteen bytes become sixteen floats, times one float, and are
 * written as a line of the result.
 */
#ifndef EMBLA_BASE_CODEC_NEON_H
#define EMBLA_BASE_CODEC_NEON_H

#include "base/dtype.h"
#include "base/half.h"

#if EMBLA_ARM

static inline uint8x16_t embla_neon_load(const void *bytes)
{
    return vld1q_u8(bytes);
}

/* An f16 in all four lanes. */
static inline float32x4_t embla_neon_f16(const void *bytes)
{
    return vcvt_f32_f16(vreinterpret_f16_u16(vdup_n_u16(embla_load_u16(bytes))));
}

/* Eight f16, times a float. */
static inline void embla_neon_put_f16(uint16x8_t halves, float32x4_t times, embla_write_mode mode,
                                      float *out)
{
    float16x8_t x = vreinterpretq_f16_u16(halves);
    embla_put_neon(out, vmulq_f32(vcvt_f32_f16(vget_low_f16(x)), times),
                   vmulq_f32(vcvt_high_f32_f16(x), times), mode);
}

/* Sixteen upper bytes of f16 whose lower bytes are 0. Small integers and tiny floats are such
 * numbers; a table gives their bytes. That takes fewer instructions than widening integers twice.
 */
static inline void embla_neon_put_upper(uint8x16_t upper, float32x4_t times, embla_write_mode mode,
                                        float *out)
{
    const uint8x16_t zero = vdupq_n_u8(0);
    embla_neon_put_f16(vreinterpretq_u16_u8(vzip1q_u8(zero, upper)), times, mode, out);
    embla_neon_put_f16(vreinterpretq_u16_u8(vzip2q_u8(zero, upper)), times, mode, out + 8);
}

/* Sixteen signed bytes. */
static inline void embla_neon_put_bytes(int8x16_t bytes, float32x4_t times, embla_write_mode mode,
                                        float *out)
{
    int16x8_t low = vmovl_s8(vget_low_s8(bytes)), high = vmovl_high_s8(bytes);
    float32x4_t a = vcvtq_f32_s32(vmovl_s16(vget_low_s16(low)));
    float32x4_t b = vcvtq_f32_s32(vmovl_high_s16(low));
    float32x4_t c = vcvtq_f32_s32(vmovl_s16(vget_low_s16(high)));
    float32x4_t d = vcvtq_f32_s32(vmovl_high_s16(high));
    embla_put_neon(out, vmulq_f32(times, a), vmulq_f32(times, b), mode);
    embla_put_neon(out + 8, vmulq_f32(times, c), vmulq_f32(times, d), mode);
}

#endif
#endif
