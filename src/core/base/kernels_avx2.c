/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX2: like kernels_avx512.c, but a line is copied in two halves, and the ends of
 * a row by memcpy. */
#include "base/kernels_body.h"

#if EMBLA_X86
#include <immintrin.h>

EMBLA_PLAIN_KERNELS(EMBLA_AVX2)

EMBLA_AVX2 static inline void copy_part(char *out, const char *in, size_t bytes)
{
    memcpy(out, in, bytes);
}

EMBLA_AVX2 static inline void copy_line(char *out, const char *in)
{
    __m256i low = _mm256_loadu_si256((const void *)in);
    __m256i high = _mm256_loadu_si256((const void *)(in + 32));
    _mm256_storeu_si256((void *)out, low);
    _mm256_storeu_si256((void *)(out + 32), high);
}

EMBLA_AVX2 static inline void stream_line(char *out, const char *in)
{
    __m256i low = _mm256_loadu_si256((const void *)in);
    __m256i high = _mm256_loadu_si256((const void *)(in + 32));
    _mm256_stream_si256((void *)out, low);
    _mm256_stream_si256((void *)(out + 32), high);
}

EMBLA_COPY_KERNELS(EMBLA_AVX2)

static void fence(void)
{
    _mm_sfence();
}

/* Sixteen sums in four registers. */
typedef struct {
    __m256d of[4];
} sums16;

EMBLA_AVX2 static inline double tree(const sums16 *s)
{
    __m256d low = _mm256_add_pd(s->of[0], s->of[2]), high = _mm256_add_pd(s->of[1], s->of[3]);
    __m256d four = _mm256_add_pd(low, high);
    __m128d two = _mm_add_pd(_mm256_castpd256_pd128(four), _mm256_extractf128_pd(four, 1));
    return _mm_cvtsd_f64(_mm_add_sd(two, _mm_unpackhi_pd(two, two)));
}

/* One row at a time: eight sums leave no registers for another row. */
EMBLA_AVX2 static inline void dots_of(const float *x, const float *y, size_t n, double *out,
                                      double *square)
{
    enum { LANES = 16 };
    float end[2][LANES] = {{0}};
    sums16 a = {{_mm256_setzero_pd(), _mm256_setzero_pd(), _mm256_setzero_pd(),
                 _mm256_setzero_pd()}},
           b = a;
    for (size_t i = 0; i < n; i += LANES) {
        const float *p = x + i, *q = y + i;
        if (n - i < LANES) { /* zeros do not change a sum */
            memcpy(end[0], p, (n - i) * sizeof *p);
            memcpy(end[1], q, (n - i) * sizeof *q);
            p = end[0], q = end[1];
        }
        for (int j = 0; j < 4; j++) {
            __m256d u = _mm256_cvtps_pd(_mm_loadu_ps(p + 4 * j));
            __m256d v = _mm256_cvtps_pd(_mm_loadu_ps(q + 4 * j));
            if (out) a.of[j] = _mm256_add_pd(a.of[j], _mm256_mul_pd(u, v));
            if (square) b.of[j] = _mm256_add_pd(b.of[j], _mm256_mul_pd(u, u));
        }
    }
    if (out) *out = tree(&a);
    if (square) *square = tree(&b);
}

EMBLA_AVX2 static void dots(const float *const rows[EMBLA_DOTS], const float *y, size_t n,
                            double *out, double *squares)
{
    for (size_t r = 0; r < EMBLA_DOTS; r++) {
        if (out && squares)
            dots_of(rows[r], y, n, out + r, squares + r);
        else if (out)
            dots_of(rows[r], y, n, out + r, NULL);
        else
            dots_of(rows[r], rows[r], n, NULL, squares + r);
    }
}

EMBLA_AVX2 static size_t reach(const float *x, float scale_by, float add, const float *limits,
                               size_t n, uint32_t *at)
{
    __m256 factor = _mm256_set1_ps(scale_by), plus = _mm256_set1_ps(add);
    size_t found = 0, i = 0;
    for (; i + 8 <= n; i += 8) {
        __m256 u = _mm256_add_ps(_mm256_mul_ps(_mm256_loadu_ps(x + i), factor), plus);
        unsigned mask = (unsigned)_mm256_movemask_ps(
            _mm256_cmp_ps(u, _mm256_loadu_ps(limits + i), _CMP_NLT_UQ));
        for (; mask; mask &= mask - 1) at[found++] = (uint32_t)(i + (size_t)__builtin_ctz(mask));
    }
    for (; i < n; i++)
        if (!(x[i] * scale_by + add < limits[i])) at[found++] = (uint32_t)i;
    return found;
}

EMBLA_KERNEL_SET(avx2, EMBLA_ISA_AVX2);
#endif
