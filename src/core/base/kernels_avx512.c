/* SPDX-License-Identifier: Apache-2.0 */
/* The kernels for AVX-512: how a line is copied and streamed; everything else comes from shared
 * bodies. lines.h and docs/decisions/002 describe prefetching and the modes of writing. */
#include "base/kernels_body.h"

#if EMBLA_X86
#include <immintrin.h>

EMBLA_PLAIN_KERNELS(EMBLA_AVX512)

/* Copies up to one line; bytes beyond the end are not accessed. */
EMBLA_AVX512 static inline void copy_part(char *out, const char *in, size_t bytes)
{
    __mmask64 mask = ((__mmask64)1 << bytes) - 1;
    _mm512_mask_storeu_epi8(out, mask, _mm512_maskz_loadu_epi8(mask, in));
}

EMBLA_AVX512 static inline void copy_line(char *out, const char *in)
{
    _mm512_storeu_si512(out, _mm512_loadu_si512(in));
}

EMBLA_AVX512 static inline void stream_line(char *out, const char *in)
{
    _mm512_stream_si512((void *)out, _mm512_loadu_si512(in));
}

EMBLA_COPY_KERNELS(EMBLA_AVX512)

static void fence(void)
{
    _mm_sfence();
}

/* Sixteen sums of each of four rows (numbers 0..7 and 8..15), added as the tree of `dot`. */
EMBLA_AVX512 static inline void trees(const __m512d low[EMBLA_DOTS], const __m512d high[EMBLA_DOTS],
                                      double out[EMBLA_DOTS])
{
    __m256d four[EMBLA_DOTS];
#pragma GCC unroll 4
    for (int r = 0; r < EMBLA_DOTS; r++) {
        __m512d eight = _mm512_add_pd(low[r], high[r]);
        four[r] = _mm256_add_pd(_mm512_castpd512_pd256(eight), _mm512_extractf64x4_pd(eight, 1));
    }
    /* two of row 0 and two of row 2; two of row 1 and two of row 3 */
    __m256d even = _mm256_add_pd(_mm256_permute2f128_pd(four[0], four[2], 0x20),
                                 _mm256_permute2f128_pd(four[0], four[2], 0x31));
    __m256d odd = _mm256_add_pd(_mm256_permute2f128_pd(four[1], four[3], 0x20),
                                _mm256_permute2f128_pd(four[1], four[3], 0x31));
    _mm256_storeu_pd(out,
                     _mm256_add_pd(_mm256_unpacklo_pd(even, odd), _mm256_unpackhi_pd(even, odd)));
}

/* Eight floats as doubles; masked lanes are zeros, which do not change a sum. */
EMBLA_AVX512 static inline __m512d doubles(const float *x, __mmask8 part, bool whole)
{
    return _mm512_cvtps_pd(whole ? _mm256_loadu_ps(x) : _mm256_maskz_loadu_ps(part, x));
}

/* The sums of four rows, numbers 0..7 and 8..15. */
typedef struct {
    __m512d with_y[2][EMBLA_DOTS], squares[2][EMBLA_DOTS];
} dots_sums;

/* Sixteen numbers of all rows, or a part of them. The product of two floats is exact in double, so
 * fusing it with the addition changes no bit. */
EMBLA_AVX512 static inline __attribute__((always_inline)) void
dots_step(const float *const x[EMBLA_DOTS], const float *y, uint32_t part, bool whole, bool with_y,
          bool with_squares, dots_sums *sums)
{
    enum { AHEAD = 1024 }; /* bytes between a line that is read and one that is prefetched */
    __m512d u, v;
#pragma GCC unroll 2
    for (int half = 0; half < 2; half++) {
        __mmask8 mask = (__mmask8)(part >> 8 * half);
        v = with_y ? doubles(y + 8 * half, mask, whole) : _mm512_setzero_pd();
#pragma GCC unroll 4
        for (int r = 0; r < EMBLA_DOTS; r++) {
            if (half == 0) _mm_prefetch((const char *)((uintptr_t)x[r] + AHEAD), _MM_HINT_T0);
            u = doubles(x[r] + 8 * half, mask, whole);
            if (with_y) sums->with_y[half][r] = _mm512_fmadd_pd(u, v, sums->with_y[half][r]);
            if (with_squares)
                sums->squares[half][r] = _mm512_fmadd_pd(u, u, sums->squares[half][r]);
        }
    }
}

/* with_y and with_squares are constants after inlining. */
EMBLA_AVX512 static inline __attribute__((always_inline)) void
dots_body(const float *const rows[EMBLA_DOTS], const float *y, size_t n, double *out,
          double *squares, bool with_y, bool with_squares)
{
    enum { LANES = 16 };
    const float *x[EMBLA_DOTS] = {rows[0], rows[1], rows[2], rows[3]};
    dots_sums sums;
#pragma GCC unroll 4
    for (int r = 0; r < EMBLA_DOTS; r++) {
        sums.with_y[0][r] = sums.with_y[1][r] = _mm512_setzero_pd();
        sums.squares[0][r] = sums.squares[1][r] = _mm512_setzero_pd();
    }
    for (; n >= LANES; n -= LANES) {
        dots_step(x, y, 0, true, with_y, with_squares, &sums);
#pragma GCC unroll 4
        for (int r = 0; r < EMBLA_DOTS; r++) x[r] += LANES;
        if (with_y) y += LANES;
    }
    if (n > 0) dots_step(x, y, (1u << n) - 1, false, with_y, with_squares, &sums);
    if (with_y) trees(sums.with_y[0], sums.with_y[1], out);
    if (with_squares) trees(sums.squares[0], sums.squares[1], squares);
}

EMBLA_AVX512 static void dots(const float *const rows[EMBLA_DOTS], const float *y, size_t n,
                              double *out, double *squares)
{
    if (out && squares)
        dots_body(rows, y, n, out, squares, true, true);
    else if (out)
        dots_body(rows, y, n, out, NULL, true, false);
    else
        dots_body(rows, NULL, n, NULL, squares, false, true);
}

EMBLA_AVX512 static size_t reach(const float *x, float scale_by, float add, const float *limits,
                                 size_t n, uint32_t *at)
{
    enum { LANES = 16 };
    __m512 factor = _mm512_set1_ps(scale_by), plus = _mm512_set1_ps(add);
    size_t found = 0;
    for (size_t i = 0; i < n; i += LANES) {
        __mmask16 there = (__mmask16)(n - i < LANES ? (1u << (n - i)) - 1 : 0xffffu);
        __m512 u = _mm512_mul_ps(_mm512_maskz_loadu_ps(there, x + i), factor);
        u = _mm512_add_ps(u, plus);
        unsigned mask = _mm512_mask_cmp_ps_mask(there, u, _mm512_maskz_loadu_ps(there, limits + i),
                                                _CMP_NLT_UQ);
        for (; mask; mask &= mask - 1) at[found++] = (uint32_t)(i + (size_t)__builtin_ctz(mask));
    }
    return found;
}

EMBLA_KERNEL_SET(avx512, EMBLA_ISA_AVX512);
#endif
