/* SPDX-License-Identifier: Apache-2.0 */
/* The sign of a principal direction, which is arbitrary: fixed, so that a picture is not mirrored.
 */
#ifndef EMBLA_MAP_AXIS_H
#define EMBLA_MAP_AXIS_H

#include <math.h>
#include <stddef.h>

/* Chooses the sign that makes the largest component positive; the first one if several are equal.
 */
static inline void embla_axis_fix_sign(double *axis, size_t n)
{
    size_t largest = 0;
    for (size_t i = 1; i < n; i++)
        if (fabs(axis[i]) > fabs(axis[largest])) largest = i;
    if (axis[largest] >= 0) return;
    for (size_t i = 0; i < n; i++) axis[i] = -axis[i];
}

#endif
