/* SPDX-License-Identifier: Apache-2.0 */
/* A second decoder for the block formats of 4 and 5 bits, written as their layouts read: one number
 * at a time, in double. It uses no table of the library and not the order of its loops.
 *
 * Included by reference.h, whose helpers it uses, before reference_k.h, which uses those of this
 * file.
 */
#ifndef EMBLA_FUZZ_REFERENCE_BLOCKS_H
#define EMBLA_FUZZ_REFERENCE_BLOCKS_H

/* The halves of 16 bytes: all low halves before all high ones. */
REFERENCE unsigned reference_blocks_half(const unsigned char *q, size_t i)
{
    return q[i % 16] / (i < 16 ? 1u : 16u) % 16u;
}

/* Bit i of bytes whose lowest bit comes first. */
REFERENCE unsigned reference_blocks_bit(const unsigned char *bytes, size_t i)
{
    return (unsigned)bytes[i / 8] >> (i % 8) & 1u;
}

/* e2m1: sign, two bits of exponent biased by 1, one of fraction. */
REFERENCE double reference_blocks_e2m1(unsigned code)
{
    return reference_float(code, 2, 1, 1);
}

/* As in ggml, whose integer table has only one zero. */
REFERENCE double reference_blocks_e2m1_ggml(unsigned code)
{
    return code == 8 ? 0.0 : reference_blocks_e2m1(code);
}

/* e8m0: a power of two or NaN. */
REFERENCE double reference_blocks_e8m0(unsigned code)
{
    return code == 255 ? (double)NAN : ldexp(1.0, (int)code - 127);
}

/* nvfp4's scale: e4m3 without a sign, whose NaN is 0. */
REFERENCE double reference_blocks_ue4m3(unsigned code)
{
    return code == 0x7f ? 0.0 : reference_float(code % 128u, 4, 3, 7);
}

REFERENCE double reference_blocks_level(unsigned code)
{
    static const double up[8] = {1, 13, 25, 38, 53, 69, 89, 113};
    static const double down[8] = {10, 22, 35, 49, 65, 83, 104, 127};
    return code < 8 ? -down[7 - code] : up[code - 8];
}

REFERENCE double reference_blocks_f16(const unsigned char *p)
{
    return reference_ieee(reference_u16(p), 5, 10);
}

/* Number i of the row at p. */
REFERENCE float reference_blocks_number(embla_dtype dtype, const unsigned char *p, size_t i,
                                        float scale)
{
    size_t b = i / 32, j = i % 32;
    switch (dtype) {
    case EMBLA_Q4_1:
        p += 20 * b;
        return (float)(reference_blocks_f16(p) * reference_blocks_half(p + 4, j) +
                       reference_blocks_f16(p + 2));
    case EMBLA_Q5_0:
        p += 22 * b;
        return (float)(reference_blocks_f16(p) * (reference_blocks_half(p + 6, j) +
                                                  16.0 * reference_blocks_bit(p + 2, j) - 16.0));
    case EMBLA_Q5_1:
        p += 24 * b;
        return (float)(reference_blocks_f16(p) * (reference_blocks_half(p + 8, j) +
                                                  16.0 * reference_blocks_bit(p + 4, j)) +
                       reference_blocks_f16(p + 2));
    case EMBLA_IQ4_NL:
        p += 18 * b;
        return (float)(reference_blocks_f16(p) *
                       reference_blocks_level(reference_blocks_half(p + 2, j)));
    case EMBLA_MXFP4:
        p += 17 * b;
        return (float)(reference_blocks_e8m0(p[0]) *
                       reference_blocks_e2m1_ggml(reference_blocks_half(p + 1, j)));
    case EMBLA_NVFP4: {
        size_t group = i % 64 / 16, k = i % 16; /* 8 bytes for each group */
        p += 36 * (i / 64);
        unsigned byte = p[4 + 8 * group + k % 8], code = k < 8 ? byte % 16u : byte / 16u;
        return (float)(reference_blocks_ue4m3(p[group]) * reference_blocks_e2m1_ggml(code));
    }
    case EMBLA_F4_E2M1:
        return (float)(reference_blocks_e2m1(i % 2 == 0 ? p[i / 2] % 16u : p[i / 2] / 16u) *
                       (double)scale);
    default:
        return NAN;
    }
}

#endif
