/* SPDX-License-Identifier: Apache-2.0 */
/* Elementary functions from + - * / and operations on integers, which are the same on every
 * machine. Values that must be more exact than a double are sums of two doubles (Dekker, "A
 * floating-point technique for extending the available precision", 1971).
 *
 *   exponential  x = k ln 2 + r. e^r - 1 is its series; the terms r and r^2/2 are sums of two.
 *   logarithm    x = 2^k c (1 + r), where c is one of 47 numbers whose logarithms are known. ln(1
 *                + r) is its series.
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

/* x without its last 27 bits. A product of two such numbers is exact. */
static double first_half(double x)
{
    return double_of(bits_of(x) & ~UINT64_C(0x7ffffff));
}

/* a b to about 104 bits. */
static pair times_pair(pair a, pair b)
{
    pair p = times(a.high, b.high);
    return add_smaller(p.high, p.low + (a.high * b.low + a.low * b.high));
}

/* c[0] + c[1] z + ..: even and odd terms by themselves, so that a processor computes both at once.
 */
static inline double series(const double *c, size_t count, double z)
{
    double square = z * z, even = 0.0, odd = 0.0;
    for (size_t i = count; i-- > 0;) {
        if (i % 2 == 0) even = even * square + c[i];
        if (i % 2 == 1) odd = odd * square + c[i];
    }
    return even + z * odd;
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
    double most = first_half(r.high), half = 0.5 * most * most; /* r^2 / 2 and its rest */
    double rest = 0.5 * (r.high - most) * (r.high + most) + r.high * r.low;
    pair sum = add_smaller(r.high, half);
    double cube = r.high * r.high * r.high;
    double tail = cube * series(terms, sizeof terms / sizeof terms[0], r.high);
    *k = (int)n;
    return add_smaller(sum.high, sum.low + (r.low + rest + tail));
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

/* For c = 45/64 .. 91/64: 1/c, rounded to 24 bits, and minus its logarithm in two parts. The first
 * is a multiple of 2^-42, as LN2 is, so it is exact to add a multiple of that. */
static const struct {
    double inverse, log, rest;
} centers[] = {
    {0x1.6c16c2p+0, -0x1.68ac8589c7p-2, 0x1.7c4b66c4ed185p-44},
    {0x1.642c86p+0, -0x1.522ae1b38ap-2, -0x1.ea5708169fcafp-45},
    {0x1.5c9882p+0, -0x1.3c25255333p-2, -0x1.7aad4b5d39007p-46},
    {0x1.555556p+0, -0x1.269623134ep-2, 0x1.1d61f10477b7ap-44},
    {0x1.4e5e0ap+0, -0x1.1178e6c27ep-2, -0x1.1e058ce29909cp-44},
    {0x1.47ae14p+0, -0x1.f991c3cb3cp-3, 0x1.91f04cd814834p-44},
    {0x1.414142p+0, -0x1.d10383e656p-3, 0x1.9b37e7528118fp-47},
    {0x1.3b13b2p+0, -0x1.a93ed8c8aep-3, 0x1.8d643502c76bep-45},
    {0x1.3521dp+0, -0x1.823c18551ap-3, -0x1.deddb9a6873d8p-46},
    {0x1.2f684cp+0, -0x1.5bf407b544p-3, 0x1.27823eb67ed71p-46},
    {0x1.29e412p+0, -0x1.365fc6c15ap-3, 0x1.ff7c0afc6347p-44},
    {0x1.24924ap+0, -0x1.1178ee227ep-3, -0x1.15f78ce7507f2p-45},
    {0x1.1f7048p+0, -0x1.da72783844p-4, -0x1.a81401fa7c1dep-46},
    {0x1.1a7b96p+0, -0x1.9335e4d594p-4, -0x1.3105c3abd3d2fp-45},
    {0x1.15b1e6p+0, -0x1.4d31165208p-4, 0x1.53c2582f4d745p-48},
    {0x1.111112p+0, -0x1.08599959e4p-4, 0x1.96ddd6f24e582p-46},
    {0x1.0c9714p+0, -0x1.894a8349f8p-5, -0x1.9311a8ba3266p-44},
    {0x1.08421p+0, -0x1.0415c89e78p-5, 0x1.dfdc7f46c6fcp-44},
    {0x1.041042p+0, -0x1.0205a3893p-6, -0x1.599b27cdc18c1p-44},
    {0x1p+0, 0.0, 0.0},
    {0x1.f81f82p-1, 0x1.fc0a890fcp-7, 0x1.f207cf6d3a147p-50},
    {0x1.f07c2p-1, 0x1.f82990e78p-6, 0x1.9c0267c68b48fp-45},
    {0x1.e9131ap-1, 0x1.77459be33p-5, -0x1.16e54e58198f4p-44},
    {0x1.e1e1e2p-1, 0x1.f0a30a0118p-5, -0x1.d589e8336993cp-45},
    {0x1.dae608p-1, 0x1.341d7461bcp-4, 0x1.1dd129980db66p-44},
    {0x1.d41d42p-1, 0x1.6f0d272e58p-4, -0x1.4b3441b665813p-44},
    {0x1.cd8568p-1, 0x1.a926d8a4acp-4, 0x1.56fe50bd4c547p-44},
    {0x1.c71c72p-1, 0x1.e27074e2bp-4, -0x1.a302c2af05591p-45},
    {0x1.c0e07p-1, 0x1.0d77e8cd08p-3, 0x1.cb4cd2ee31f2cp-44},
    {0x1.bacf92p-1, 0x1.29552c42p-3, -0x1.5a447f44cd6a7p-44},
    {0x1.b4e81cp-1, 0x1.44d2b38cb8p-3, -0x1.6b841614c5ae7p-46},
    {0x1.af286cp-1, 0x1.5ff3060a7ap-3, -0x1.8566f183c169cp-44},
    {0x1.a98ef6p-1, 0x1.7ab890410ep-3, -0x1.bdb8072534a2dp-45},
    {0x1.a41a42p-1, 0x1.9525a80f46p-3, -0x1.290f37d9ffa39p-44},
    {0x1.9ec8eap-1, 0x1.af3c91880cp-3, -0x1.c331a31ae832p-55},
    {0x1.99999ap-1, 0x1.c8ff7a79aap-3, -0x1.7694f68a22edfp-45},
    {0x1.948b1p-1, 0x1.e27075e2bp-3, -0x1.a322c2af02ae7p-44},
    {0x1.8f9c18p-1, 0x1.fb918bd5e4p-3, -0x1.bc72aaaf291dcp-47},
    {0x1.8acb9p-1, 0x1.0a3250a739p-2, 0x1.dfbee7f9aadb9p-47},
    {0x1.861862p-1, 0x1.1675c97abap-2, 0x1.8448e731cbb19p-44},
    {0x1.818182p-1, 0x1.22941e6cf8p-2, -0x1.a5baef5ee0d23p-44},
    {0x1.7d05f4p-1, 0x1.2e8e2bee12p-2, -0x1.67a1e99b7212dp-45},
    {0x1.78a4c8p-1, 0x1.3a64c59694p-2, 0x1.7a79cbcd73b26p-44},
    {0x1.745d18p-1, 0x1.4618ba21c6p-2, -0x1.3582f48772f77p-46},
    {0x1.702e06p-1, 0x1.51aad7c2ep-2, -0x1.f4810db0aebacp-44},
    {0x1.6c16c2p-1, 0x1.5d1bda5581p-2, -0x1.8c19dc9cd7ae3p-44},
    {0x1.681682p-1, 0x1.686c8039b1p-2, 0x1.2d1d90af1d814p-44},
};
enum { FIRST_CENTER = 45 };

/* ln(2^k m), for m between the roots of 1/2 and 2. With `exponent` (of a power) it has 8 more
 * bits. */
static pair logarithm(pair m, int k, bool exponent)
{
    static const double terms[] = {1.0 / 3, -1.0 / 4, 1.0 / 5, -1.0 / 6,
                                   1.0 / 7, -1.0 / 8, 1.0 / 9, -1.0 / 10};
    const size_t at = (size_t)(64.0 * m.high + 0.5) - FIRST_CENTER;
    const double inverse = centers[at].inverse, half = first_half(m.high);
    /* m / c = 1 + r: the products are exact, because both factors have few bits */
    pair r = add(half * inverse - 1.0, (m.high - half) * inverse);
    r = add_smaller(r.high, r.low + m.low * inverse);
    double square = r.high * r.high;
    double tail = square * r.high * series(terms, sizeof terms / sizeof terms[0], r.high);
    pair sum = add_smaller(k * LN2 + centers[at].log, r.high);
    double rest = r.low + (k * LN2_REST + centers[at].rest);
    if (!exponent) return add_smaller(sum.high, sum.low + (rest + (tail - 0.5 * square)));
    pair exact = times(r.high, r.high);
    pair more = add_smaller(sum.high, -0.5 * exact.high);
    rest += sum.low - 0.5 * exact.low - r.high * r.low;
    return add_smaller(more.high, more.low + (rest + tail));
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
    return logarithm((pair){m, 0.0}, k, exponent);
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
    pair whole = add(1.0, x);
    double m = mantissa(whole.high, &k);
    pair sum = logarithm((pair){m, scale(whole.low, -k)}, k, false);
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

/* The double nearest to x. What is left of x, the difference, stays in it. Compilers do this by a
 * function of their run-time library, and with that function zig links its own, slower memcpy. */
static double take_nearest(wide_signed *x)
{
    bool negative = *x < 0;
    wide size = negative ? -(wide)*x : (wide)*x;
    int shift = 0;
    while (size >> shift >> 53) shift++;
    uint64_t kept = (uint64_t)(size >> shift);
    wide rest = size - ((wide)kept << shift), half = (wide)1 << shift >> 1;
    if (rest > half || (half && rest == half && kept % 2)) kept++;
    wide_signed left = (wide_signed)(size - ((wide)kept << shift));
    *x = negative ? -left : left;
    double nearest = (double)(int64_t)kept * power_of_two(shift);
    return negative ? -nearest : nearest;
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
    double above = take_nearest(&part), below = take_nearest(&part);
    return times_pair((pair){above * 0x1p-127, below * 0x1p-127}, half_pi);
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
