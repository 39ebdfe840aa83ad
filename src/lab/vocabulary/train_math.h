/* SPDX-License-Identifier: Apache-2.0 */
/* Functions of positive numbers. They use exactly rounded operations only, so their results have
 * the same bits on every machine. */
#ifndef EMBLA_VOCABULARY_TRAIN_MATH_H
#define EMBLA_VOCABULARY_TRAIN_MATH_H

#include <math.h>

/* The natural logarithm of a positive number: that of the power of 2, and the series of
 * log((1 + s) / (1 - s)) for the rest. */
static inline double embla_log_of(double x)
{
    int power = 0;
    double m = frexp(x, &power);
    if (m < 0.70710678118654752) {
        m *= 2;
        power--;
    }
    double s = (m - 1) / (m + 1), z = s * s, sum = 0;
    for (int k = 23; k >= 3; k -= 2) sum = (sum + 1.0 / k) * z;
    return (double)power * 0x1.62e42fefa39efp-1 + (2 * s + 2 * s * sum);
}

/* The derivative of the logarithm of the gamma function: its asymptotic series, from 7 up. */
static inline double embla_digamma_of(double x)
{
    double below = 0;
    while (x < 7) {
        below -= 1 / x;
        x += 1;
    }
    x -= 0.5;
    double z = 1 / (x * x);
    return below + embla_log_of(x) + z / 24 - z * z * 7 / 960 + z * z * z * 31 / 8064 -
           z * z * z * z * 127 / 30720;
}

#endif
