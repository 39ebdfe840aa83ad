/* SPDX-License-Identifier: Apache-2.0 */
/* Norm, dot product and cosine of float vectors. Products of floats are exact in double and are
 * summed in double, so nothing overflows and rounding errors are small. */
#include <math.h>

#include "base/kernels.h"
#include "embla.h"
#include "table/geometry.h"

double embla_dot(const float *x, const float *y, size_t n)
{
    return embla_kernels_get()->dot(x, y, n);
}

double embla_norm(const float *x, size_t n)
{
    return sqrt(embla_dot(x, x, n));
}

double embla_cosine(const float *x, const float *y, size_t n)
{
    double norms = embla_norm(x, n) * embla_norm(y, n);
    return norms == 0.0 ? 0.0 : embla_dot(x, y, n) / norms;
}

void embla_normalize(float *x, size_t n)
{
    double norm = embla_norm(x, n);
    if (norm == 0.0) return;
    for (size_t i = 0; i < n; i++) x[i] = (float)((double)x[i] / norm);
}
