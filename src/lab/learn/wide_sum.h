/* SPDX-License-Identifier: Apache-2.0 */
/* The sum of doubles that are 0 or greater, without rounding: a long integer in words of 32 bits.
 * It does not depend on the order of the numbers, and sums of several processes are added word by
 * word. It is for squares of floats, and of rows of them.
 */
#ifndef EMBLA_LEARN_WIDE_SUM_H
#define EMBLA_LEARN_WIDE_SUM_H

#include "base/status.h"

enum {
    EMBLA_WIDE_WORDS = 24,   /* 768 bits; the last word counts numbers that are not finite */
    EMBLA_WIDE_LOWEST = -384 /* the exponent of the lowest bit */
};

/* A zeroed struct is 0. Up to 2^30 numbers can be added. */
typedef struct {
    int64_t words[EMBLA_WIDE_WORDS];
} embla_wide_sum;

/* Adds x. Bits below 2^-384 are dropped: the square of a float has none. x is below 2^300, infinite
 * or NaN. */
EMBLA_PRIVATE void embla_wide_add(embla_wide_sum *sum, double x);
/* The sum as a double; NaN if a number was not finite. */
EMBLA_PRIVATE double embla_wide_round(const embla_wide_sum *sum);

#endif
