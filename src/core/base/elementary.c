/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions from + - * / and operations on integers, which are the same on every
 * machine. Values that must be more exact than a double are sums of two doubles (Dekker, "A
 * floating-point technique for extending the available precision", 1971).
 *
 *   exponential  x = k ln 2 + r. e^r - 1 is its series; the terms r and r^2/2 are sums of two.
 *   logarithm    x = 2^k (1 + f). ln(1 + f) = 2 atanh(s), s = f / (2 + f); the terms 2 s and
 *                2 s^3 / 3 of the series are sums of two.
 *   angle        x = n pi/2 + r. Small multiples of pi/2 are subtracted in three parts (Cody and
 *                Waite, 1980). For larger angles x 2/pi is computed modulo 4 in integers: 53 bits
 *                times 192 bits of 2/pi (Payne and Hanek, 1983).
 */
#include "base/elementary.h"

#include <float.h>
#include <math.h>
#include <string.h>

__extension__ typedef unsigned __int128 wide;
__extension__ typedef __int128 wide_signed;

/* ---- bits of doubles ---- */

static uint64_t bits_of(double x)
{
    uint64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

static double double_of(uint64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* 2^k, for -1022 <= k <= 1023. */
static double power_of_two(int k)
{
    return double_of((uint64_t)(k + 1023) << 52);
}

/* x 2^k, for any k. A subnormal result is rounded once. */
static double scale(double x, int k)
{
    if (k > 1023) return x * power_of_two(1023) * power_of_two(k - 1023 < 1023 ? k - 1023 : 1023);
    if (k < -1022) return x * power_of_two(-969) * power_of_two(k + 969 > -1022 ? k + 969 : -1022);
    return x * power_of_two(k);
}

/* ---- sums of two doubles ---- */

typedef struct {
    double high, low;
} pair;

/* a + b, exactly. */
static pair add(double a, double b)
{
    double sum = a + b, part = sum - a;
    return (pair){sum, (a - (sum - part)) + (b - part)};
}

/* The same if |a| >= |b|, or if a is 0. */
static pair add_smaller(double a, double b)
{
    double sum = a + b;
    return (pair){sum, b - (sum - a)};
}

/* a b, exactly: both are split into halves of 26 bits. Neither is above 2^990. */
static pair times(double a, double b)
{
    double wide_a = 134217729.0 * a, wide_b = 134217729.0 * b; /* 2^27 + 1 */
    double a1 = wide_a - (wide_a - a), b1 = wide_b - (wide_b - b);
    double a2 = a - a1, b2 = b - b1, product = a * b;
    return (pair){product, ((a1 * b1 - product) + a1 * b2 + a2 * b1) + a2 * b2};
}

/* a b to about 104 bits. */
static pair times_pair(pair a, pair b)
{
    pair p = times(a.high, b.high);
    return add_smaller(p.high, p.low + (a.high * b.low + a.low * b.high));
}

/* c[0] + c[1] z + .. */
static double series(const double *c, size_t count, double z)
{
    double sum = c[count - 1];
    for (size_t i = count - 1; i-- > 0;) sum = sum * z + c[i];
    return sum;
}

/* ---- exponentials ---- */

/* ln 2 in two parts. The first has 42 bits, so its product with an exponent is exact. */
static const double LN2 = 0x1.62e42fefa38p-1, LN2_REST = 0x1.ef35793c7673p-45;

/* e^r - 1 for x = k ln 2 + r, with |r| <= 0.35. |x| <= 800. */
static pair exponential(pair x, int *k)
{
    static const double terms[] = {
        1.0 / 6,          1.0 / 24,          1.0 / 120,          1.0 / 720,      1.0 / 5040,
        1.0 / 40320,      1.0 / 362880,      1.0 / 3628800,      1.0 / 39916800, 1.0 / 479001600,
        1.0 / 6227020800, 1.0 / 87178291200, 1.0 / 1307674368000};
    double n = (x.high * 1.4426950408889634 + 0x1.8p52) - 0x1.8p52;
    pair r = add(x.high - n * LN2, -n * LN2_REST);
    r = add_smaller(r.high, r.low + x.low);
    pair square = times(r.high, r.high);
    double half = 0.5 * square.high, half_rest = 0.5 * square.low + r.high * r.low;
    pair sum = add_smaller(r.high, half);
    double tail = square.high * r.high * series(terms, sizeof terms / sizeof terms[0], r.high);
    *k = (int)n;
    return add_smaller(sum.high, sum.low + (r.low + half_rest + tail));
}

static double exponential_of(pair x)
{
    int k;
    if (x.high > 710.0) return INFINITY;
    if (x.high < -746.0) return 0.0;
    pair rest = exponential(x, &k), sum = add_smaller(1.0, rest.high);
    return scale(sum.high + (sum.low + rest.low), k);
}

double embla_exp(double x)
{
    return x != x ? x : exponential_of((pair){x, 0.0});
}

double embla_expm1(double x)
{
    int k;
    if (x != x || (x > -0x1p-54 && x < 0x1p-54)) return x;
    if (x > 700.0) return embla_exp(x);
    if (x < -40.0) return -1.0;
    pair rest = exponential((pair){x, 0.0}, &k);
    if (k == 0) return rest.high + rest.low;
    double power = power_of_two(k);
    pair whole = add(power, -1.0), sum = add(whole.high, rest.high * power);
    return sum.high + (sum.low + (whole.low + rest.low * power));
}

/* ---- logarithms ---- */

/* 2 s^3 / 3 to about 104 bits. */
static pair third_term(pair s)
{
    const pair two_thirds = {0x1.5555555555555p-1, 0x1.5555555555555p-55};
    return times_pair(times_pair(times_pair(s, s), s), two_thirds);
}

/* ln(2^k (1 + f)), for 1 + f between the roots of 1/2 and 2: to about 64 bits if it is the
 * exponent of a power, otherwise to 59. */
static pair logarithm(pair f, int k, bool exponent)
{
    static const double terms[] = {2.0 / 5,  2.0 / 7,  2.0 / 9,  2.0 / 11, 2.0 / 13, 2.0 / 15,
                                   2.0 / 17, 2.0 / 19, 2.0 / 21, 2.0 / 23, 2.0 / 25};
    pair under = add_smaller(2.0, f.high);
    under.low += f.low;
    double inverse = 1.0 / under.high, s = f.high * inverse;
    pair back = times(s, under.high);
    double rest = ((f.high - back.high) - back.low + f.low - s * under.low) * inverse;
    double z = s * s, tail = s * z * z * series(terms, sizeof terms / sizeof terms[0], z);
    pair cube = exponent ? third_term((pair){s, rest}) : (pair){s * z * (2.0 / 3), 0.0};
    pair sum = add_smaller(2.0 * s, cube.high);
    sum.low += 2.0 * rest + cube.low + tail;
    pair all = add_smaller(k * LN2, sum.high);
    return add_smaller(all.high, all.low + (sum.low + k * LN2_REST));
}

/* x = 2^k m for a finite x above 0, and m between the roots of 1/2 and 2. */
static double mantissa(double x, int *k)
{
    int least = x < DBL_MIN ? -54 : 0;
    uint64_t bits = bits_of(least < 0 ? x * 0x1p54 : x);
    double m = double_of((bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1023) << 52);
    *k = (int)(bits >> 52) - 1023 + least;
    if (m < 1.4142135623730951) return m;
    *k += 1;
    return 0.5 * m;
}

static pair logarithm_of(double x, bool exponent)
{
    int k;
    double m = mantissa(x, &k);
    return logarithm((pair){m - 1.0, 0.0}, k, exponent);
}

double embla_log(double x)
{
    if (x == 0.0) return -INFINITY;
    if (!(x > 0.0)) return NAN;
    if (x > DBL_MAX) return x;
    pair sum = logarithm_of(x, false);
    return sum.high + sum.low;
}

double embla_log1p(double x)
{
    int k = 0;
    if (x == -1.0) return -INFINITY;
    if (!(x > -1.0)) return NAN;
    if (x > DBL_MAX || (x > -0x1p-54 && x < 0x1p-54)) return x;
    pair f = {x, 0.0};
    if (x < -0.29 || x > 0.41) {
        pair sum = add(1.0, x);
        double m = mantissa(sum.high, &k);
        f = add(m - 1.0, scale(sum.low, -k));
    }
    pair sum = logarithm(f, k, false);
    return sum.high + sum.low;
}

double embla_pow(double x, double y)
{
    if (y == 0.0) return 1.0;
    if (!(x > 0.0) || x > DBL_MAX || y != y) return NAN;
    pair ln = logarithm_of(x, true);
    double size = y * ln.high;
    if (size > 800.0) return INFINITY;
    if (size < -800.0) return 0.0;
    if (ln.high == 0.0) return 1.0;
    pair product = times(y, ln.high);
    return exponential_of(add_smaller(product.high, product.low + y * ln.low));
}

/* ---- sines and cosines ---- */

/* The bits of 2/pi, after 64 bits of zeros. */
static const uint64_t two_over_pi[] = {
    0,
    0xa2f9836e4e441529,
    0xfc2757d1f534ddc0,
    0xdb6295993c439041,
    0xfe5163abdebbc561,
    0xb7246e3a424dd2e0,
    0x06492eea09d1921c,
    0xfe1deb1cb129a73e,
    0xe88235f52ebb4484,
    0xe99c7026b45f7e41,
    0x3991d639835339f4,
    0x9c845f8bbdf9283b,
    0x1ff897ffde05980f,
    0xef2f118b5a0a6d1f,
    0x6d367ecf27cb09b7,
    0x4f463f669e5fea2d,
    0x7527bac7ebe5f17b,
    0x3d0739f78a5292ea,
    0x6bfb5fb11f8d5d08,
    0x56033046fc7b6bab,
};

/* 64 bits of it, from this bit on. */
static uint64_t bits_from(size_t bit)
{
    size_t word = bit / 64, shift = bit % 64;
    if (shift == 0) return two_over_pi[word];
    return two_over_pi[word] << shift | two_over_pi[word + 1] >> (64 - shift);
}

/* x = (quarter + 4 n) pi/2 + rest; the rest is about pi/4 at most. For x up to 2^19. */
static pair near_rest(double x, unsigned *quarter)
{
    /* pi/2 in three parts. The first two have 33 bits: products with n are exact. */
    const double one = 0x1.921fb544p+0, two = 0x1.0b4611a6p-34, three = 0x1.3198a2e037073p-69;
    double n = (x * 0.6366197723675814 + 0x1.8p52) - 0x1.8p52;
    pair r = add(x - n * one, -n * two);
    *quarter = (unsigned)n;
    return add_smaller(r.high, r.low - n * three);
}

/* The same for any x from pi/4 on. In x = m 2^e, m is an integer. The bits of 2/pi that would make
 * multiples of 4 are left out. */
static pair far_rest(double x, unsigned *quarter)
{
    const pair half_pi = {0x1.921fb54442d18p+0, 0x1.1a62633145c07p-54};
    uint64_t bits = bits_of(x), m = (bits & UINT64_C(0xfffffffffffff)) | UINT64_C(1) << 52;
    size_t first = (size_t)(bits >> 52) - (1023 + 52 - 62); /* e + 62 */
    wide low = (wide)bits_from(first + 128) * m;
    wide middle = (wide)bits_from(first + 64) * m + (uint64_t)(low >> 64);
    uint64_t high = bits_from(first) * m + (uint64_t)(middle >> 64);
    /* 2 bits of an integer, and 128 of a fraction; from 1/2 on, it is the fraction less 1 */
    wide fraction = ((wide)high << 64 | (uint64_t)middle) << 2 | (uint64_t)low >> 62;
    wide_signed part = (wide_signed)fraction / 2;
    *quarter = (unsigned)(high >> 62) + (part < 0);
    double above = (double)part;
    pair size = {above * 0x1p-127, (double)(part - (wide_signed)above) * 0x1p-127};
    return times_pair(size, half_pi);
}

static double sine_of(pair r)
{
    static const double terms[] = {
        -1.0 / 6,        1.0 / 120,        -1.0 / 5040,          1.0 / 362880,
        -1.0 / 39916800, 1.0 / 6227020800, -1.0 / 1307674368000, 1.0 / 355687428096000};
    double z = r.high * r.high;
    double tail = r.high * z * series(terms, sizeof terms / sizeof terms[0], z);
    return r.high + (tail + r.low * (1.0 - 0.5 * z));
}

static double cosine_of(pair r)
{
    static const double terms[] = {
        1.0 / 24,        -1.0 / 720,         1.0 / 40320,         -1.0 / 3628800,
        1.0 / 479001600, -1.0 / 87178291200, 1.0 / 20922789888000};
    double z = r.high * r.high, half = 0.5 * z, most = 1.0 - half;
    double tail = z * z * series(terms, sizeof terms / sizeof terms[0], z) - r.high * r.low;
    return most + (((1.0 - most) - half) + tail);
}

/* x = quarter pi/2 + rest, for x >= 0. */
static pair rest_of(double x, unsigned *quarter)
{
    *quarter = 0;
    if (x <= 0.7853981633974483) return (pair){x, 0.0};
    return x < 524288.0 ? near_rest(x, quarter) : far_rest(x, quarter);
}

double embla_sin(double x)
{
    unsigned quarter;
    double size = x < 0.0 ? -x : x;
    if (!(size <= DBL_MAX)) return NAN;
    if (size < 0x1p-30) return x;
    pair r = rest_of(size, &quarter);
    double sine = quarter % 2 ? cosine_of(r) : sine_of(r);
    return (x < 0.0) == (quarter % 4 >= 2) ? sine : -sine;
}

double embla_cos(double x)
{
    unsigned quarter;
    double size = x < 0.0 ? -x : x;
    if (!(size <= DBL_MAX)) return NAN;
    pair r = rest_of(size, &quarter);
    double cosine = quarter % 2 ? sine_of(r) : cosine_of(r);
    return quarter % 4 == 1 || quarter % 4 == 2 ? -cosine : cosine;
}
