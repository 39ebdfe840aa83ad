/* SPDX-License-Identifier: Apache-2.0 */
/* A second decoder for ggml's superblocks and for rows with scales: one number at a time, every bit
 * read at its place. Products and differences are computed in double, where they are exact or round
 * as in float, and converted to float where the definition says so. Included by reference.h. */
#ifndef EMBLA_FUZZ_REFERENCE_K_H
#define EMBLA_FUZZ_REFERENCE_K_H

#include <embla_store.h>

/* Bits first .. first+count-1 of the number whose bits lie in p, the lowest first. */
REFERENCE int reference_bits(const unsigned char *p, size_t first, size_t count)
{
    int value = 0;
    for (size_t i = 0; i < count; i++) value |= (p[(first + i) / 8] >> (first + i) % 8 & 1) << i;
    return value;
}

REFERENCE double reference_k_half(const unsigned char *p)
{
    return reference_ieee(reference_u16(p), 5, 10);
}

REFERENCE int reference_signed(unsigned char byte)
{
    return byte < 128 ? byte : byte - 256;
}

/* scale times q, both rounded to float: (d * scale) * q. */
REFERENCE float reference_twice(double d, int scale, int q)
{
    float group = (float)(d * scale);
    return (float)((double)group * q);
}

/* 110 bytes: 32 of third bits, 64 of pairs of bits, 12 of scales, d. */
REFERENCE float reference_q3_k(const unsigned char *b, size_t e)
{
    const unsigned char *s = b + 96;
    size_t half = e / 128, quarter = e % 128 / 32, l = e % 32, k = e / 16;
    int q = reference_bits(b + 32 + 32 * half + l, 2 * quarter, 2);
    if (reference_bits(b + l, 4 * half + quarter, 1) == 0) q -= 4;
    int scale = reference_bits(s + k % 8, k < 8 ? 0 : 4, 4);
    scale += 16 * reference_bits(s + 8 + k % 4, 2 * (k / 4), 2);
    return reference_twice(reference_k_half(b + 108), scale - 32, q);
}

/* 210 bytes: 128 of lower halves, 64 of pairs of bits, 16 scales, d. */
REFERENCE float reference_q6_k(const unsigned char *b, size_t e)
{
    const unsigned char *low = b + (e < 128 ? 0 : 64), *high = b + 128 + (e < 128 ? 0 : 32);
    size_t at = e % 128, l = at % 32;
    int q = 0;
    if (at < 32)
        q = reference_bits(low + l, 0, 4) + 16 * reference_bits(high + l, 0, 2);
    else if (at < 64)
        q = reference_bits(low + l + 32, 0, 4) + 16 * reference_bits(high + l, 2, 2);
    else if (at < 96)
        q = reference_bits(low + l, 4, 4) + 16 * reference_bits(high + l, 4, 2);
    else
        q = reference_bits(low + l + 32, 4, 4) + 16 * reference_bits(high + l, 6, 2);
    return reference_twice(reference_k_half(b + 208), reference_signed(b[192 + e / 16]), q - 32);
}

/* d, dmin, 12 bytes of scales and offsets; then (q5_K) 32 bytes of fifth bits; then codes. */
REFERENCE float reference_q45_k(const unsigned char *b, size_t e, bool five)
{
    const unsigned char *s = b + 4, *codes = b + (five ? 48 : 16);
    size_t j = e / 32, l = e % 32;
    int q = reference_bits(codes + 32 * (j / 2) + l, j % 2 * 4, 4), scale = 0, offset = 0;
    if (five) q += 16 * reference_bits(b + 16 + l, j, 1);
    if (j < 4) {
        scale = reference_bits(s + j, 0, 6);
        offset = reference_bits(s + j + 4, 0, 6);
    } else {
        scale = reference_bits(s + j + 4, 0, 4) + 16 * reference_bits(s + j - 4, 6, 2);
        offset = reference_bits(s + j + 4, 4, 4) + 16 * reference_bits(s + j, 6, 2);
    }
    float least = (float)(reference_k_half(b + 2) * offset);
    return (float)((double)reference_twice(reference_k_half(b), scale, q) - (double)least);
}

/* 136 bytes: d, two bits of each scale, four bits of each scale, codes. */
REFERENCE float reference_iq4_xs(const unsigned char *b, size_t e)
{
    static const int value[] = {-127, -104, -83, -65, -49, -35, -22, -10,
                                1,    13,   25,  38,  53,  69,  89,  113};
    size_t group = e / 32;
    int scale = reference_bits(b + 4, 4 * group, 4) + 16 * reference_bits(b + 2, 2 * group, 2);
    int code = reference_bits(b + 8 + 16 * group + e % 16, e % 32 < 16 ? 0 : 4, 4);
    return reference_twice(reference_k_half(b), scale - 32, value[code]);
}

REFERENCE float reference_k_number(embla_dtype dtype, const unsigned char *p, size_t i)
{
    size_t block = i / 256, e = i % 256;
    if (dtype == EMBLA_Q3_K) return reference_q3_k(p + 110 * block, e);
    if (dtype == EMBLA_Q4_K) return reference_q45_k(p + 144 * block, e, false);
    if (dtype == EMBLA_Q5_K) return reference_q45_k(p + 176 * block, e, true);
    if (dtype == EMBLA_Q6_K) return reference_q6_k(p + 210 * block, e);
    return reference_iq4_xs(p + 136 * block, e);
}

/* ---- rows with scales ---- */

REFERENCE double reference_k_e4m3(unsigned char code)
{
    return (code & 0x7f) == 0x7f ? (double)NAN : reference_float(code, 4, 3, 7);
}

REFERENCE double reference_k_e8m0(unsigned char code)
{
    return code == 255 ? (double)NAN : ldexp(1.0, code - 127);
}

REFERENCE double reference_k_e2m1(int code)
{
    static const double value[] = {0, 0.5, 1, 1.5, 2, 3, 4, 6};
    return code < 8 ? value[code] : -value[code - 8];
}

/* Number i of a row that has scales, from its codes and its scales. */
REFERENCE float reference_scaled(const embla_row_format *format, const unsigned char *codes,
                                 const unsigned char *scales, size_t i)
{
    size_t group = format->scales == EMBLA_SCALES_UE8M0_32    ? 32
                   : format->scales == EMBLA_SCALES_UE8M0_128 ? 128
                                                              : 16;
    unsigned char s = scales[i / group];
    double times =
        format->scales == EMBLA_SCALES_E4M3_16 ? reference_k_e4m3(s) : reference_k_e8m0(s);
    double value = format->dtype == EMBLA_F8_E4M3
                       ? reference_k_e4m3(codes[i])
                       : reference_k_e2m1(reference_bits(codes + i / 2, i % 2 * 4, 4));
    float product = (float)(value * times); /* exact, or too large */
    double scale = format->scale == 0.0f ? 1.0 : (double)format->scale;
    return (float)((double)product * scale);
}

#endif
