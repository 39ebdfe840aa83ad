/* SPDX-License-Identifier: Apache-2.0 */
/* Zipf's law: expected numbers of different rows, and draws.
 *
 * Draws use rejection-inversion (Hoermann and Derflinger, "Rejection-Inversion to Generate Variates
 * from Monotone Discrete Distributions", 1996), which needs no table and a logarithm or two for
 * each draw. Those come from the C library, so a draw may differ between two of them.
 */
#include "cluster/zipf.h"

#include <math.h>

#include "base/elementary.h"
#include "base/hash.h"

enum {
    EXACT = 4096, /* rows that are summed one by one; the others are an integral */
    PANELS = 256  /* of that integral */
};

/* ---- sums ---- */

/* The integral of t^-exponent from 1 to x; its inverse. expm1 and log1p keep them exact where the
 * exponent is close to 1. */
static double integral(double exponent, double x)
{
    double e = 1.0 - exponent, l = embla_log(x);
    return fabs(e * l) < 1e-12 ? l : embla_expm1(e * l) / e;
}

static double inverse(double exponent, double y)
{
    double e = 1.0 - exponent;
    if (fabs(e * y) < 1e-12) return embla_exp(y);
    double t = e * y;
    return embla_exp(embla_log1p(t > -1.0 ? t : -1.0) / e);
}

/* The chance that a row of probability p is among the draws. */
static double chance(double p, double draws)
{
    return -embla_expm1(draws * embla_log1p(-p));
}

/* The integral of `chance` over the ranks from a to b, by Simpson's rule on a logarithmic scale. */
static double chances(const embla_zipf *z, double draws, double a, double b)
{
    double low = embla_log(a), step = (embla_log(b) - low) / PANELS, sum = 0.0;
    for (int i = 0; i <= 2 * PANELS; i++) {
        double x = embla_exp(low + step * i / 2);
        double weight = i == 0 || i == 2 * PANELS ? 1.0 : i % 2 == 1 ? 4.0 : 2.0;
        sum += weight * x * chance(embla_pow(x, -z->exponent) / z->sum, draws);
    }
    return sum * step / 6.0;
}

double embla_zipf_unique(const embla_zipf *z, double draws)
{
    int exact = z->rows < EXACT ? (int)z->rows : EXACT;
    double sum = 0.0;
    if (!(draws > 0.0)) return 0.0;
    for (int i = 1; i <= exact; i++)
        sum += chance(fmin(1.0, embla_pow(i, -z->exponent) / z->sum), draws);
    if (z->rows > exact) sum += chances(z, draws, exact + 0.5, z->rows + 0.5);
    return fmin(sum, fmin(draws, z->rows));
}

/* ---- draws ---- */

void embla_zipf_set(embla_zipf *z, int64_t rows, double exponent)
{
    int exact = rows < EXACT ? (int)rows : EXACT;
    double n = (double)rows, sum = 0.0;
    for (int i = exact; i >= 1; i--) sum += embla_pow(i, -exponent);
    if (n > exact) sum += integral(exponent, n + 0.5) - integral(exponent, exact + 0.5);
    *z = (embla_zipf){
        .rows = n,
        .exponent = exponent,
        .sum = sum,
        .first = integral(exponent, 1.5) - 1.0,
        .last = integral(exponent, n + 0.5),
        .near = 2.0 - inverse(exponent, integral(exponent, 2.5) - embla_pow(2.0, -exponent))};
}

int64_t embla_zipf_draw(const embla_zipf *z, uint64_t *state)
{
    for (;;) {
        double random = (double)(embla_mix64(*state += EMBLA_GOLDEN) >> 11) * 0x1p-53;
        double y = z->last + random * (z->first - z->last), x = inverse(z->exponent, y);
        double k = floor(x + 0.5);
        k = k < 1.0 ? 1.0 : k > z->rows ? z->rows : k;
        if (k - x <= z->near || y >= integral(z->exponent, k + 0.5) - embla_pow(k, -z->exponent))
            return (int64_t)k - 1;
    }
}
