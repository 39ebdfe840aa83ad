/* SPDX-License-Identifier: Apache-2.0 */
/* Sinusoidal positions (Vaswani et al., "Attention Is All You Need", 2017, 3.5): a fixed formula
 * for any position. Angles and sines are computed in double. */
#include <math.h>

#include "base/checked.h"
#include "base/elementary.h"
#include "base/status.h"

embla_status embla_sinusoid(int64_t first, size_t count, size_t dim, double base, float *out)
{
    uint64_t numbers;
    size_t span;
    int64_t last;
    if (base == 0.0) base = 10000.0;
    if (!(base > 0.0) || isinf(base))
        return embla_fail(EMBLA_ERR_ARGUMENT, "the base is %g; it must be finite and above 0",
                          base);
    if (!embla_mul_ok(count, dim, &numbers) ||
        !embla_span_ok(numbers, sizeof *out, sizeof *out, &span) ||
        __builtin_add_overflow(first, (int64_t)(count > 0 ? count - 1 : 0), &last))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu rows of %zu numbers from position %" PRId64
                          " on do not fit in memory",
                          count, dim, first);
    if (numbers > 0 && !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu positions are requested, but out is NULL",
                          count);
    for (size_t column = 0; column < dim; column++) {
        double rate = embla_pow(base, -(double)(column - column % 2) / (double)dim);
        for (size_t i = 0; i < count; i++) {
            double angle = (double)(first + (int64_t)i) * rate;
            out[i * dim + column] = (float)(column % 2 ? embla_cos(angle) : embla_sin(angle));
        }
    }
    return EMBLA_OK;
}
