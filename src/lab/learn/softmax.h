/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of a softmax over logits in a cache: exponentials, the maximum, sums and the
 * gradient. The bodies are in base/math.h, so every instruction set gives the same bits.
 */
#ifndef EMBLA_LEARN_SOFTMAX_H
#define EMBLA_LEARN_SOFTMAX_H

#include "base/status.h"

/* Lower temperatures change nothing, and keep logit / temperature finite. */
#define EMBLA_COLDEST 1e-100

/* out = e^(x - base), with a relative error below 1.2e-7 for the difference as rounded. Exactly
 * 1 at 0. Subnormal results are less exact; from -87.69 down and at -infinity the result is 0,
 * from 88.38 up it is infinity. NaN stays NaN. base is finite. out may be x. */
void embla_softmax_exp(const float *x, size_t n, float base, float *out);
/* The largest of n numbers, ignoring NaN; -infinity if there is none. */
EMBLA_PRIVATE float embla_softmax_max(const float *x, size_t n);
/* Sum of e^(x - base): exponentials in float, 16 partial sums in double (number i goes to sum
 * i mod 16), added as a tree. base is finite; it is the largest, so that nothing overflows. */
EMBLA_PRIVATE double embla_softmax_sum(const float *x, size_t n, float base);
/* The same with a temperature, all in double: the sum of e^((x - base) / temperature). inverse is
 * 1 / temperature, of at least EMBLA_COLDEST. */
double embla_softmax_mass(const float *x, size_t n, double base, double inverse);
/* The sum of x, in the order of embla_softmax_sum. */
double embla_softmax_plain_sum(const float *x, size_t n);
/* x = e^(x - base) * factor - less, in place: the gradient of logits. */
EMBLA_PRIVATE void embla_softmax_gradient(float *x, size_t n, float base, float factor, float less);

#endif
