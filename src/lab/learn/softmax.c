/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over one token's logits of one block. These are a few KiB, so the second pass (the sum
 * needs the maximum first) reads them from the first-level cache.
 */
#include "learn/softmax.h"

#include "base/kernels.h"
#include "base/math.h"

/* Exponentials are summed a piece at a time; a piece is a multiple of EMBLA_SUMS. */
enum { PIECE = 256 };

EMBLA_BODY double sum_body(const float *x, size_t n, float base)
{
    double sums[EMBLA_SUMS] = {0};
    float piece[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        size_t count = n - i < PIECE ? n - i : PIECE;
        embla_exp_row_f32(x + i, count, base, piece);
        embla_add_row(piece, count, sums);
    }
    return embla_add_tree(sums);
}

EMBLA_BODY double mass_body(const float *x, size_t n, double base, double inverse)
{
    double sums[EMBLA_SUMS] = {0};
    size_t i = 0;
    for (; i + EMBLA_SUMS <= n; i += EMBLA_SUMS)
        for (size_t j = 0; j < EMBLA_SUMS; j++)
            sums[j] += embla_exp_below(((double)x[i + j] - base) * inverse);
    for (size_t j = 0; i + j < n; j++)
        sums[j] += embla_exp_below(((double)x[i + j] - base) * inverse);
    return embla_add_tree(sums);
}

EMBLA_BODY void gradient_body(float *x, size_t n, float base, float factor, float less)
{
    for (size_t i = 0; i < n; i++) x[i] = embla_exp_clamp(x[i] - base);
    for (size_t i = 0; i < n; i++) x[i] = embla_exp_near(x[i]) * factor - less;
}

EMBLA_ISA_FUNCTION(void, exponentials, (const float *x, size_t n, float base, float *out),
                   embla_exp_row_f32(x, n, base, out);)
EMBLA_ISA_FUNCTION(float, maximum, (const float *x, size_t n), return embla_max_row_f32(x, n);)
EMBLA_ISA_FUNCTION(double, sum, (const float *x, size_t n, float base),
                   return sum_body(x, n, base);)
EMBLA_ISA_FUNCTION(double, mass, (const float *x, size_t n, double base, double inverse),
                   return mass_body(x, n, base, inverse);)
EMBLA_ISA_FUNCTION(double, plain_sum, (const float *x, size_t n), return embla_sum_row_f32(x, n);)
EMBLA_ISA_FUNCTION(void, gradient, (float *x, size_t n, float base, float factor, float less),
                   gradient_body(x, n, base, factor, less);)

void embla_softmax_exp(const float *x, size_t n, float base, float *out)
{
    EMBLA_PICK(exponentials)(x, n, base, out);
}

float embla_softmax_max(const float *x, size_t n)
{
    return EMBLA_PICK(maximum)(x, n);
}

double embla_softmax_sum(const float *x, size_t n, float base)
{
    return EMBLA_PICK(sum)(x, n, base);
}

double embla_softmax_mass(const float *x, size_t n, double base, double inverse)
{
    return EMBLA_PICK(mass)(x, n, base, inverse);
}

double embla_softmax_plain_sum(const float *x, size_t n)
{
    return EMBLA_PICK(plain_sum)(x, n);
}

void embla_softmax_gradient(float *x, size_t n, float base, float factor, float less)
{
    EMBLA_PICK(gradient)(x, n, base, factor, less);
}
