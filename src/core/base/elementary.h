/* SPDX-License-Identifier: Apache-2.0 */
/* Exponentials, logarithms, powers, sines and cosines in double, with the same bits on every
 * machine. Those of the C library differ in the last bit from one library to another (glibc, musl,
 * macOS, Windows), so no result that is promised to be the same may use them.
 *
 * The error is below 0.9 units in the last place, of powers below 1. A NaN gives a NaN. Rounding is
 * to nearest.
 */
#ifndef EMBLA_BASE_ELEMENTARY_H
#define EMBLA_BASE_ELEMENTARY_H

#include "base/status.h"

EMBLA_PRIVATE double embla_exp(double x);
/* e^x - 1, with all its digits near 0. */
EMBLA_PRIVATE double embla_expm1(double x);
/* ln x: -infinity for 0, NaN below 0. */
EMBLA_PRIVATE double embla_log(double x);
/* ln(1 + x), with all its digits near 0. */
EMBLA_PRIVATE double embla_log1p(double x);
/* x^y for a finite x above 0; NaN for any other x. */
EMBLA_PRIVATE double embla_pow(double x, double y);
/* Of angles of any size, in radians; NaN for an infinite one. */
EMBLA_PRIVATE double embla_sin(double x);
EMBLA_PRIVATE double embla_cos(double x);

#endif
