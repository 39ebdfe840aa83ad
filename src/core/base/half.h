/* SPDX-License-Identifier: Apache-2.0 */
/* Conversion of single small floats in integer arithmetic: the reference for the vector loops.
 * Conversions to fewer bits round to nearest, ties to even. A NaN stays a NaN of the same sign and
 * becomes quiet, bit for bit as with F16C. */
#ifndef EMBLA_BASE_HALF_H
#define EMBLA_BASE_HALF_H

#include <stdint.h>
#include <string.h>

static inline uint32_t embla_bits(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static inline float embla_float(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline float embla_f32_from_bf16(uint16_t h)
{
    return embla_float((uint32_t)h << 16);
}

static inline uint16_t embla_bf16_from_f32(float x)
{
    uint32_t bits = embla_bits(x);
    if ((bits & 0x7fffffffu) > 0x7f800000u) return (uint16_t)(bits >> 16 | 0x40u);
    return (uint16_t)((bits + 0x7fffu + (bits >> 16 & 1u)) >> 16);
}

static inline float embla_f32_from_f16(uint16_t h)
{
    uint32_t sign = (uint32_t)(h & 0x8000u) << 16;
    uint32_t exponent = h >> 10 & 31u, fraction = h & 0x3ffu;
    if (exponent == 31)
        return embla_float(sign | 0x7f800000u | fraction << 13 | (fraction ? 0x400000u : 0u));
    if (exponent == 0) /* zero and subnormals: fraction * 2^-24, exact */
        return embla_float(sign | embla_bits((float)fraction * 0x1p-24f));
    return embla_float(sign | (exponent + 112u) << 23 | fraction << 13);
}

/* f8 e4m3: with its fields shifted up by 7 it is an f16 that is too small by a factor of 256. 0x7f
 * is NaN. */
static inline float embla_f32_from_e4m3(unsigned char code)
{
    uint32_t sign = (code & 0x80u) << 24, magnitude = code & 0x7fu;
    float x = embla_f32_from_f16((uint16_t)(magnitude << 7)) * 256.0f;
    return embla_float(sign | (magnitude == 0x7f ? 0x7fc00000u : embla_bits(x)));
}

/* 2^(code - 127). 2^-127 is subnormal and 255 is NaN: both need one more bit. */
static inline float embla_f32_from_ue8m0(unsigned char code)
{
    return embla_float((uint32_t)code << 23 | (code == 0 || code == 255 ? 0x400000u : 0u));
}

/* The magnitude of a finite float in a format with `kept` bits of fraction, whose exponent is
 * biased by 127 - `rebias` and whose smallest step is 2^-`lowest`. Below the normal numbers, adding
 * a power of two whose last bit is that step does the rounding. */
static inline uint32_t embla_narrow(uint32_t magnitude, unsigned kept, unsigned rebias,
                                    unsigned lowest)
{
    unsigned drop = 23u - kept;
    if (magnitude < (rebias + 1u) << 23) {
        float magic = embla_float((127u + 23u - lowest) << 23);
        return embla_bits(embla_float(magnitude) + magic) - embla_bits(magic);
    }
    uint32_t rounded = magnitude + (1u << (drop - 1u)) - 1u + (magnitude >> drop & 1u);
    return (rounded - (rebias << 23)) >> drop;
}

#define EMBLA_F16_OVERFLOWS 65520.0f /* from here on numbers round to an infinite f16 */

static inline uint16_t embla_f16_from_f32(float x)
{
    uint32_t bits = embla_bits(x), magnitude = bits & 0x7fffffffu, result;
    if (magnitude > 0x7f800000u)
        result = 0x7e00u | (magnitude >> 13 & 0x3ffu);
    else if (embla_float(magnitude) >= EMBLA_F16_OVERFLOWS)
        result = 0x7c00u;
    else
        result = embla_narrow(magnitude, 10, 112, 24);
    return (uint16_t)((bits >> 16 & 0x8000u) | result);
}

static inline uint16_t embla_load_u16(const void *p)
{
    const unsigned char *b = p;
    return (uint16_t)(b[0] | b[1] << 8);
}

static inline void embla_store_u16(void *p, uint16_t value)
{
    unsigned char *b = p;
    b[0] = (unsigned char)(value & 0xffu);
    b[1] = (unsigned char)(value >> 8);
}

#endif
