/* SPDX-License-Identifier: Apache-2.0 */
/* Whether numbers are numbers. */
#ifndef EMBLA_BASE_FINITE_H
#define EMBLA_BASE_FINITE_H

#include <math.h>
#include <stdbool.h>
#include <stddef.h>

/* Whether none of n numbers is a NaN or an infinity. */
static inline bool embla_all_finite(const float *x, size_t n)
{
    for (size_t i = 0; i < n; i++)
        if (!isfinite(x[i])) return false;
    return true;
}

#endif
