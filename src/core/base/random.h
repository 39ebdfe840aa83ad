/* SPDX-License-Identifier: Apache-2.0 */
/* Counter-based random numbers: number (row, column) of a table is a function of the seed and its
 * index. So it is the same on every machine, for any number of threads and any instruction set, and
 * there is no state.
 *
 * The generator is Philox4x32-10 (Salmon et al., "Parallel Random Numbers: As Easy as 1, 2, 3", SC
 * 2011): ten rounds turn a counter of four words and a key of two into four random words. Here: key
 * = seed; counter = {column / 4, row, row >> 32, purpose}; column c uses word c % 4.
 *
 * The bodies below are compiled once for each instruction set. They use only operations that IEEE
 * 754 rounds exactly (+ - * / sqrt and conversions of integers below 2^24), no library logarithm or
 * sine. So they give the same bits everywhere.
 */
#ifndef EMBLA_BASE_RANDOM_H
#define EMBLA_BASE_RANDOM_H

#include <math.h>
#include <stdint.h>

#include "base/half.h"
#include "base/isa.h"

enum { EMBLA_RANDOM_LANES = 16 }; /* blocks computed at once */

/* The purpose of random numbers, so that no two uses share any. */
enum {
    EMBLA_RANDOM_UNIFORM = 0,
    EMBLA_RANDOM_NORMAL = 1,
    EMBLA_RANDOM_DRAWN = 3, /* negatives of a sampled loss */
    EMBLA_RANDOM_PLACE = 4, /* start of a sequence in a stream */
    EMBLA_RANDOM_ORDER = 5, /* of documents */
    EMBLA_RANDOM_DROPOUT = 8,
    EMBLA_RANDOM_LUCK = 64 /* and up: sampled tokens */
};

/* Words of LANES consecutive blocks: words[w][i] is word w of block `first` + i. */
EMBLA_BODY void embla_philox(uint64_t seed, uint32_t first, uint64_t row, uint32_t purpose,
                             uint32_t words[4][EMBLA_RANDOM_LANES])
{
    uint32_t key0 = (uint32_t)seed, key1 = (uint32_t)(seed >> 32);
    for (uint32_t i = 0; i < EMBLA_RANDOM_LANES; i++) {
        words[0][i] = first + i;
        words[1][i] = (uint32_t)row;
        words[2][i] = (uint32_t)(row >> 32);
        words[3][i] = purpose;
    }
    for (int round = 0; round < 10; round++) {
        for (int i = 0; i < EMBLA_RANDOM_LANES; i++) {
            uint64_t a = (uint64_t)words[0][i] * 0xD2511F53u;
            uint64_t b = (uint64_t)words[2][i] * 0xCD9E8D57u;
            words[0][i] = (uint32_t)(b >> 32) ^ words[1][i] ^ key0;
            words[2][i] = (uint32_t)(a >> 32) ^ words[3][i] ^ key1;
            words[1][i] = (uint32_t)b;
            words[3][i] = (uint32_t)a;
        }
        key0 += 0x9E3779B9u;
        key1 += 0xBB67AE85u;
    }
}

/* -2 ln(u) for u = k / 2^24, k in 1 .. 2^24; relative error below 2^-23.5. u = m 2^e with
 * m in [sqrt(1/2), sqrt(2)); ln(1+f) by the polynomial of the Cephes library's logf. */
EMBLA_BODY float embla_minus_2_ln(uint32_t k)
{
    uint32_t bits = embla_bits((float)(int32_t)k * 0x1p-24f) - 0x3f3504f3u;
    float e = (float)((int32_t)bits >> 23);
    float f = embla_float((bits & 0x7fffffu) + 0x3f3504f3u) - 1.0f;
    float p = 7.0376836292e-2f;
    p = p * f - 1.1514610310e-1f;
    p = p * f + 1.1676998740e-1f;
    p = p * f - 1.2420140846e-1f;
    p = p * f + 1.4249322787e-1f;
    p = p * f - 1.6668057665e-1f;
    p = p * f + 2.0000714765e-1f;
    p = p * f - 2.4999993993e-1f;
    p = p * f + 3.3333331174e-1f;
    float ff = f * f;
    float tail = p * (f * ff) - 2.12194440e-4f * e - 0.5f * ff;
    return -2.0f * (f + tail + 0.693359375f * e);
}

/* Sine and cosine of 2 pi k / 2^24. The nearest quarter turn is subtracted exactly. */
EMBLA_BODY void embla_turn_of(uint32_t k, float *sine, float *cosine)
{
    uint32_t quarter = (k + (1u << 21)) >> 22;
    float r = (float)((int32_t)k - (int32_t)(quarter << 22)) * (float)(6.283185307179586 / 0x1p24);
    float rr = r * r;
    float s = -1.9515295891e-4f;
    s = s * rr + 8.3321608736e-3f;
    s = s * rr - 1.6666654611e-1f;
    s = s * rr * r + r;
    float c = 2.443315711809948e-5f;
    c = c * rr - 1.388731625493765e-3f;
    c = c * rr + 4.166664568298827e-2f;
    c = c * (rr * rr) - 0.5f * rr + 1.0f;
    uint32_t odd = 0u - (quarter & 1u); /* all ones if sine and cosine are exchanged */
    uint32_t sbits = (embla_bits(s) & ~odd) | (embla_bits(c) & odd);
    uint32_t cbits = (embla_bits(c) & ~odd) | (embla_bits(s) & odd);
    *sine = embla_float(sbits ^ (quarter & 2u) << 30);
    *cosine = embla_float(cbits ^ ((quarter + 1u) & 2u) << 30);
}

/* One group: 4 * LANES numbers in column order. */
EMBLA_BODY void embla_uniform_group(uint64_t seed, uint32_t first, uint64_t row, float spread,
                                    float out[4 * EMBLA_RANDOM_LANES])
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    embla_philox(seed, first, row, EMBLA_RANDOM_UNIFORM, words);
    for (int i = 0; i < EMBLA_RANDOM_LANES; i++)
        for (int w = 0; w < 4; w++)
            out[4 * i + w] = ((float)(int32_t)(words[w][i] >> 8) * 0x1p-23f - 1.0f) * spread;
}

/* Box-Muller: two words give two normal numbers, none beyond 5.77 spreads. */
EMBLA_BODY void embla_normal_group(uint64_t seed, uint32_t first, uint64_t row, float spread,
                                   float out[4 * EMBLA_RANDOM_LANES])
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    float numbers[4][EMBLA_RANDOM_LANES];
    embla_philox(seed, first, row, EMBLA_RANDOM_NORMAL, words);
    for (int half = 0; half < 4; half += 2) {
        for (int i = 0; i < EMBLA_RANDOM_LANES; i++) {
            float sine, cosine;
            float radius = sqrtf(embla_minus_2_ln((words[half][i] >> 8) + 1u)) * spread;
            embla_turn_of(words[half + 1][i] >> 8, &sine, &cosine);
            numbers[half][i] = radius * cosine;
            numbers[half + 1][i] = radius * sine;
        }
    }
    for (int i = 0; i < EMBLA_RANDOM_LANES; i++)
        for (int w = 0; w < 4; w++) out[4 * i + w] = numbers[w][i];
}

#endif
