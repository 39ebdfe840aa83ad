/* SPDX-License-Identifier: Apache-2.0 */
/* A second decoder for every dtype, written as its definition reads: one number at a time, with
 * powers of two in double. Slow, short, and sharing no code with the library. */
#ifndef EMBLA_FUZZ_REFERENCE_H
#define EMBLA_FUZZ_REFERENCE_H

#include <embla.h>
#include <math.h>
#include <string.h>

/* Not instrumented: the fuzzer should learn from the library, not from this. */
#if defined(__clang__)
#define REFERENCE static inline __attribute__((no_sanitize("coverage")))
#else
#define REFERENCE static inline
#endif

/* A small float: sign, `exponent` bits biased by `bias`, `fraction` bits. */
REFERENCE double reference_float(unsigned bits, int exponent, int fraction, int bias)
{
    int e = (int)(bits >> fraction & ((1u << exponent) - 1u));
    double f = ldexp((double)(bits & ((1u << fraction) - 1u)), -fraction);
    double sign = bits >> (exponent + fraction) & 1u ? -1.0 : 1.0;
    if (e == 0) return sign * ldexp(f, 1 - bias);
    return sign * ldexp(1.0 + f, e - bias);
}

/* The same for formats whose highest exponent is infinity and NaN. */
REFERENCE double reference_ieee(unsigned bits, int exponent, int fraction)
{
    unsigned all = (1u << exponent) - 1u;
    double sign = bits >> (exponent + fraction) & 1u ? -1.0 : 1.0;
    if ((bits >> fraction & all) != all)
        return reference_float(bits, exponent, fraction, (int)(all >> 1));
    return bits & ((1u << fraction) - 1u) ? (double)NAN : sign * (double)INFINITY;
}

REFERENCE unsigned reference_u16(const unsigned char *p)
{
    return p[0] | (unsigned)p[1] << 8;
}

#include "reference_blocks.h"
#include "reference_k.h"

/* Number i of the row at p. scale is 1 if the dtype has none. */
REFERENCE float reference_number(embla_dtype dtype, const unsigned char *p, size_t i, float scale)
{
    const unsigned char *b = p + i / 32 * (dtype == EMBLA_Q4_0 ? 18 : 34);
    float single;
    double wide;
    switch (dtype) {
    case EMBLA_F32:
        memcpy(&single, p + 4 * i, sizeof single);
        return single;
    case EMBLA_F64:
        memcpy(&wide, p + 8 * i, sizeof wide);
        return (float)wide;
    case EMBLA_F16:
        return (float)reference_ieee(reference_u16(p + 2 * i), 5, 10);
    case EMBLA_BF16:
        return (float)reference_ieee(reference_u16(p + 2 * i), 8, 7);
    case EMBLA_F8_E4M3:
        if ((p[i] & 0x7f) == 0x7f) return NAN;
        return (float)(reference_float(p[i], 4, 3, 7) * (double)scale);
    case EMBLA_F8_E5M2:
        return (float)(reference_ieee(p[i], 5, 2) * (double)scale);
    case EMBLA_I8:
        return (float)((p[i] < 128 ? p[i] : p[i] - 256) * (double)scale);
    case EMBLA_Q8_0:
        wide = b[2 + i % 32] < 128 ? b[2 + i % 32] : b[2 + i % 32] - 256;
        return (float)(reference_ieee(reference_u16(b), 5, 10) * wide);
    case EMBLA_Q4_0:
        wide = (i % 32 < 16 ? b[2 + i % 16] & 15 : b[2 + i % 16] >> 4) - 8;
        return (float)(reference_ieee(reference_u16(b), 5, 10) * wide);
    case EMBLA_Q3_K:
    case EMBLA_Q4_K:
    case EMBLA_Q5_K:
    case EMBLA_Q6_K:
    case EMBLA_IQ4_XS:
        return reference_k_number(dtype, p, i);
    case EMBLA_Q4_1:
    case EMBLA_Q5_0:
    case EMBLA_Q5_1:
    case EMBLA_IQ4_NL:
    case EMBLA_MXFP4:
    case EMBLA_NVFP4:
    case EMBLA_F4_E2M1:
        return reference_blocks_number(dtype, p, i, scale);
    }
    return NAN;
}

/* Number i of a row, codes and scales as a store has them, code_bytes of codes. */
REFERENCE float reference_row_number(const embla_row_format *format, const unsigned char *row,
                                     size_t code_bytes, size_t i)
{
    if (format->scales != EMBLA_SCALES_NONE)
        return reference_scaled(format, row, row + code_bytes, i);
    return reference_number(format->dtype, row, i, format->scale == 0.0f ? 1.0f : format->scale);
}

/* Equal in every bit, or both NaN. */
REFERENCE bool reference_same(float x, float y)
{
    return memcmp(&x, &y, sizeof x) == 0 || (isnan(x) && isnan(y));
}

#endif
