/* SPDX-License-Identifier: Apache-2.0 */
/* Loops over one token's logits of one block: a few KiB, so the second pass over them (the sum
 * needs the largest first) finds them in the first-level cache.
 *
 * The truth is the scalar loops. Of a clamp beside a polynomial compilers make branches, so the
 * vector loops are written out: the same steps in the same order.
 */
#include "learn/softmax.h"

#include <math.h>

#include "base/half.h"
#include "base/kernels.h"

#if EMBLA_X86
#include <immintrin.h>
#endif

enum { LANES = 16, PIECE = 256 };

/* x is kept to LEAST .. MOST, where 2^n has a float's exponent: 2^-127 comes out as 0, 2^128
 * as infinity. Adding MAGIC (1.5 * 2^23) leaves n in the last bits. */
#define LEAST (-88.0f)
#define MOST  89.0f
#define LOG2E 1.44269504f
#define MAGIC 12582912.0f
#define LN2   0.693359375f /* less REST */
#define REST  2.12194440e-4f
enum { EXPONENT = 127 - 0x4b400000 }; /* MAGIC + n as an integer, plus this: 127 + n */

/* e^r for r in -ln(2)/2 .. ln(2)/2: 1 + r + r^2 times this (Cephes' expf). */
#define P0 1.9875691500e-4f
#define P1 1.3981999507e-3f
#define P2 8.3334519073e-3f
#define P3 4.1665795894e-2f
#define P4 1.6666665459e-1f
#define P5 5.0000001201e-1f

/* ---- scalar ---- */

/* x - base, kept to where powers are. A NaN fails both comparisons, and stays. */
static inline float difference(float x, float base)
{
    float d = x - base;
    d = LEAST > d ? LEAST : d;
    return MOST < d ? MOST : d;
}

/* e^d */
static inline float power(float d)
{
    float shifted = d * LOG2E + MAGIC, n = shifted - MAGIC;
    float r = (d - n * LN2) + n * REST;
    float p = (((((P0 * r + P1) * r + P2) * r + P3) * r + P4) * r + P5) * (r * r) + r + 1.0f;
    return p * embla_float((embla_bits(shifted) + (uint32_t)EXPONENT) << 23);
}

/* Two loops: see above. */
static void powers_scalar(const float *x, size_t n, float base, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = difference(x[i], base);
    for (size_t i = 0; i < n; i++) out[i] = power(out[i]);
}

static float max_scalar(const float *x, size_t n)
{
    float best = -INFINITY;
    for (size_t i = 0; i < n; i++) best = x[i] > best ? x[i] : best;
    return best;
}

static double tree(double sums[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

/* Number i goes to sum i mod LANES. */
static void add_scalar(const float *x, size_t n, double sums[LANES])
{
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) sums[j] += (double)x[i + j];
    for (size_t j = 0; i + j < n; j++) sums[j] += (double)x[i + j];
}

static void raise_and_add(const float *x, size_t n, float base, double sums[LANES])
{
    float piece[PIECE];
    for (size_t i = 0; i < n; i += PIECE) {
        size_t count = n - i < PIECE ? n - i : PIECE;
        powers_scalar(x + i, count, base, piece);
        add_scalar(piece, count, sums);
    }
}

static double sum_scalar(const float *x, size_t n, float base)
{
    double sums[LANES] = {0};
    raise_and_add(x, n, base, sums);
    return tree(sums);
}

static void gradient_scalar(float *x, size_t n, float base, float factor, float less)
{
    powers_scalar(x, n, base, x);
    for (size_t i = 0; i < n; i++) x[i] = x[i] * factor - less;
}

#if EMBLA_X86

/* DEEP groups side by side: each number's steps wait for one another, so that one group alone
 * would leave the CPU idle most of the time. */
enum { DEEP = 4 };
#define EACH for (size_t v = 0; v < DEEP; v++)

/* The loops for vectors of WIDTH floats; M and I make the names of intrinsics. max and min give
 * their second operand where one is a NaN. */
#define VECTOR_LOOPS(SET, TARGET, WIDTH, REAL, M, I)                                               \
    TARGET static inline __attribute__((always_inline)) void raise_##SET(REAL d[DEEP], float base) \
    {                                                                                              \
        const REAL magic = M##_set1_ps(MAGIC);                                                     \
        REAL shifted[DEEP], n[DEEP], p[DEEP];                                                      \
        EACH d[v] = M##_sub_ps(d[v], M##_set1_ps(base));                                           \
        EACH d[v] = M##_max_ps(M##_set1_ps(LEAST), d[v]);                                          \
        EACH d[v] = M##_min_ps(M##_set1_ps(MOST), d[v]);                                           \
        EACH shifted[v] = M##_mul_ps(d[v], M##_set1_ps(LOG2E));                                    \
        EACH shifted[v] = M##_add_ps(shifted[v], magic);                                           \
        EACH n[v] = M##_sub_ps(shifted[v], magic);                                                 \
        EACH d[v] = M##_sub_ps(d[v], M##_mul_ps(n[v], M##_set1_ps(LN2)));                          \
        EACH d[v] = M##_add_ps(d[v], M##_mul_ps(n[v], M##_set1_ps(REST)));                         \
        EACH p[v] = M##_add_ps(M##_mul_ps(M##_set1_ps(P0), d[v]), M##_set1_ps(P1));                \
        EACH p[v] = M##_add_ps(M##_mul_ps(p[v], d[v]), M##_set1_ps(P2));                           \
        EACH p[v] = M##_add_ps(M##_mul_ps(p[v], d[v]), M##_set1_ps(P3));                           \
        EACH p[v] = M##_add_ps(M##_mul_ps(p[v], d[v]), M##_set1_ps(P4));                           \
        EACH p[v] = M##_add_ps(M##_mul_ps(p[v], d[v]), M##_set1_ps(P5));                           \
        EACH p[v] = M##_mul_ps(p[v], M##_mul_ps(d[v], d[v]));                                      \
        EACH p[v] = M##_add_ps(M##_add_ps(p[v], d[v]), M##_set1_ps(1.0f));                         \
        EACH                                                                                       \
        {                                                                                          \
            __m##I##i two = M##_castps_si##I(shifted[v]);                                          \
            two = M##_slli_epi32(M##_add_epi32(two, M##_set1_epi32(EXPONENT)), 23);                \
            d[v] = M##_mul_ps(p[v], M##_castsi##I##_ps(two));                                      \
        }                                                                                          \
    }                                                                                              \
    TARGET static void powers_##SET(const float *x, size_t n, float base, float *out)              \
    {                                                                                              \
        REAL d[DEEP];                                                                              \
        size_t i = 0;                                                                              \
        for (; i + DEEP * (WIDTH) <= n; i += DEEP * (WIDTH)) {                                     \
            EACH d[v] = M##_loadu_ps(x + i + v * (WIDTH));                                         \
            raise_##SET(d, base);                                                                  \
            EACH M##_storeu_ps(out + i + v * (WIDTH), d[v]);                                       \
        }                                                                                          \
        powers_scalar(x + i, n - i, base, out + i);                                                \
    }                                                                                              \
    TARGET static float max_##SET(const float *x, size_t n)                                        \
    {                                                                                              \
        REAL best[DEEP];                                                                           \
        float all[DEEP * (WIDTH)];                                                                 \
        size_t i = 0;                                                                              \
        EACH best[v] = M##_set1_ps(-INFINITY);                                                     \
        for (; i + DEEP * (WIDTH) <= n; i += DEEP * (WIDTH))                                       \
            EACH best[v] = M##_max_ps(M##_loadu_ps(x + i + v * (WIDTH)), best[v]);                 \
        EACH M##_storeu_ps(all + v * (WIDTH), best[v]);                                            \
        float most = max_scalar(x + i, n - i), other = max_scalar(all, DEEP * (WIDTH));            \
        return other > most ? other : most;                                                        \
    }                                                                                              \
    TARGET static double sum_##SET(const float *x, size_t n, float base)                           \
    {                                                                                              \
        double sums[LANES] = {0};                                                                  \
        REAL d[DEEP];                                                                              \
        size_t i = 0;                                                                              \
        for (; i + DEEP * (WIDTH) <= n; i += DEEP * (WIDTH)) {                                     \
            EACH d[v] = M##_loadu_ps(x + i + v * (WIDTH));                                         \
            raise_##SET(d, base);                                                                  \
            add_##SET(d, sums);                                                                    \
        }                                                                                          \
        raise_and_add(x + i, n - i, base, sums);                                                   \
        return tree(sums);                                                                         \
    }                                                                                              \
    TARGET static void gradient_##SET(float *x, size_t n, float base, float factor, float less)    \
    {                                                                                              \
        REAL d[DEEP];                                                                              \
        size_t i = 0;                                                                              \
        for (; i + DEEP * (WIDTH) <= n; i += DEEP * (WIDTH)) {                                     \
            EACH d[v] = M##_loadu_ps(x + i + v * (WIDTH));                                         \
            raise_##SET(d, base);                                                                  \
            EACH d[v] = M##_sub_ps(M##_mul_ps(d[v], M##_set1_ps(factor)), M##_set1_ps(less));      \
            EACH M##_storeu_ps(x + i + v * (WIDTH), d[v]);                                         \
        }                                                                                          \
        gradient_scalar(x + i, n - i, base, factor, less);                                         \
    }

/* In the order of the numbers: vector v holds numbers 16v .. of its group, lane 0 .. 15. */
EMBLA_AVX512 static inline void add_avx512(const __m512 d[DEEP], double sums[LANES])
{
    __m512d low = _mm512_loadu_pd(sums), high = _mm512_loadu_pd(sums + 8);
    EACH
    {
        low = _mm512_add_pd(low, _mm512_cvtps_pd(_mm512_castps512_ps256(d[v])));
        high = _mm512_add_pd(high, _mm512_cvtps_pd(_mm512_extractf32x8_ps(d[v], 1)));
    }
    _mm512_storeu_pd(sums, low);
    _mm512_storeu_pd(sums + 8, high);
}
VECTOR_LOOPS(avx512, EMBLA_AVX512, 16, __m512, _mm512, 512)

EMBLA_AVX2 static inline void add_avx2(const __m256 d[DEEP], double sums[LANES])
{
    EACH
    {
        double *to = sums + v % 2 * 8;
        __m256d low = _mm256_cvtps_pd(_mm256_castps256_ps128(d[v]));
        __m256d high = _mm256_cvtps_pd(_mm256_extractf128_ps(d[v], 1));
        _mm256_storeu_pd(to, _mm256_add_pd(_mm256_loadu_pd(to), low));
        _mm256_storeu_pd(to + 4, _mm256_add_pd(_mm256_loadu_pd(to + 4), high));
    }
}
VECTOR_LOOPS(avx2, EMBLA_AVX2, 8, __m256, _mm256, 256)

#endif

/* ---- the sets ---- */

static const struct {
    void (*powers)(const float *x, size_t n, float base, float *out);
    float (*max)(const float *x, size_t n);
    double (*sum)(const float *x, size_t n, float base);
    void (*gradient)(float *x, size_t n, float base, float factor, float less);
} sets[EMBLA_ISA_COUNT] = {
    [EMBLA_ISA_SCALAR] = {powers_scalar, max_scalar, sum_scalar, gradient_scalar},
#if EMBLA_X86
    [EMBLA_ISA_AVX2] = {powers_avx2, max_avx2, sum_avx2, gradient_avx2},
    [EMBLA_ISA_AVX512] = {powers_avx512, max_avx512, sum_avx512, gradient_avx512},
#endif
};

void embla_softmax_powers(const float *x, size_t n, float base, float *out)
{
    sets[embla_kernels_get()->isa].powers(x, n, base, out);
}

float embla_softmax_max(const float *x, size_t n)
{
    return sets[embla_kernels_get()->isa].max(x, n);
}

double embla_softmax_sum(const float *x, size_t n, float base)
{
    return sets[embla_kernels_get()->isa].sum(x, n, base);
}

/* Simple enough for any compiler to make vectors of. */
double embla_softmax_plain_sum(const float *x, size_t n)
{
    double sums[LANES] = {0};
    add_scalar(x, n, sums);
    return tree(sums);
}

void embla_softmax_gradient(float *x, size_t n, float base, float factor, float less)
{
    sets[embla_kernels_get()->isa].gradient(x, n, base, factor, less);
}
