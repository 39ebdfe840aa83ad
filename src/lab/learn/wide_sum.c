/* SPDX-License-Identifier: Apache-2.0 */
/* A double is an integer of 53 bits times a power of two. Shifted to a multiple of 32 bits, it is
 * three words of the sum. Words have 64 bits, so that 2^30 numbers are added without carries.
 */
#include "learn/wide_sum.h"

#include <math.h>

enum { BITS = 32, DIGITS = 53, WORDS = EMBLA_WIDE_WORDS - 1 };

static const uint64_t mask = 0xffffffffu;

void embla_wide_add(embla_wide_sum *sum, double x)
{
    int exponent = 0;
    if (x == 0.0) return;
    if (!isfinite(x)) {
        sum->words[WORDS]++;
        return;
    }
    uint64_t digits = (uint64_t)ldexp(frexp(x, &exponent), DIGITS);
    int shift = exponent - DIGITS - EMBLA_WIDE_LOWEST;
    if (shift < 0) { /* no square of a float is so small */
        digits = shift > -DIGITS ? digits >> -shift : 0;
        shift = 0;
    }
    int64_t *word = sum->words + shift / BITS;
    int rest = shift % BITS;
    uint64_t low = (digits & mask) << rest, high = (digits >> BITS) << rest;
    word[0] += (int64_t)(low & mask);
    word[1] += (int64_t)((low >> BITS) + (high & mask));
    word[2] += (int64_t)(high >> BITS);
}

double embla_wide_round(const embla_wide_sum *sum)
{
    int64_t words[WORDS], carry = 0;
    double out = 0.0;
    if (sum->words[WORDS] > 0) return NAN;
    for (int i = 0; i < WORDS; i++) {
        int64_t word = sum->words[i] + carry;
        words[i] = (int64_t)((uint64_t)word & mask);
        carry = word >> BITS;
    }
    /* the words are now the digits of the sum, so their sum from the lowest on has one value */
    for (int i = 0; i < WORDS; i++) out += ldexp((double)words[i], BITS * i + EMBLA_WIDE_LOWEST);
    return out;
}
