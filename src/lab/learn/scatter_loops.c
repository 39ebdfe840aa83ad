/* SPDX-License-Identifier: Apache-2.0 */
/* The loops of scatter_sum.c for each instruction set. Each number has its own sum, and vectors are
 * added in their order, so all sets give the same bits.
 */
#include "learn/scatter_loops.h"

#include <string.h>

enum { LANES = 16 /* floats in a line; partial sums of a norm */ };

/* Prefetches up to `lines` more lines, at once, so that the state stays in registers. */
EMBLA_BODY void prefetch_lines(embla_fetch *f, size_t lines)
{
    size_t turn = f->turn, offset = f->offset;
    for (; lines > 0 && offset < f->end; lines--) {
        __builtin_prefetch(f->rows[turn] + offset);
        if (++turn < f->count) continue;
        turn = 0;
        offset += EMBLA_LINE;
    }
    f->turn = turn;
    f->offset = offset;
}

/* sums (+)= x[0] + x[1] + .. + x[n-1], from column c on. Sums start at -0, which changes no number
 * that is added to it. */
EMBLA_BODY void add_body(const float *const *x, size_t n, size_t c, size_t columns, bool first,
                         double *sums, embla_fetch *fetch)
{
    for (; c < columns; c++) {
        double s = first ? -0.0 : sums[c];
        if (c % LANES == 0) prefetch_lines(fetch, n);
        for (size_t j = 0; j < n; j++) s += (double)x[j][c];
        sums[c] = s;
    }
}

/* A finished shard is rounded to float, as if a process had sent it. */
EMBLA_BODY void fold_body(const double *restrict sums, size_t columns, bool first,
                          double *restrict total)
{
    for (size_t k = 0; k < columns; k++)
        total[k] = (first ? -0.0 : total[k]) + (double)(float)sums[k];
}

EMBLA_BODY void divide_body(double *sums, size_t columns, double by)
{
    for (size_t k = 0; k < columns; k++) sums[k] /= by;
}

EMBLA_BODY void scale_body(double *sums, size_t columns, double by)
{
    for (size_t k = 0; k < columns; k++) sums[k] *= by;
}

/* The sum of up to UNIT squares: sixteen partial sums, added as a tree. */
EMBLA_BODY double squares_body(const double *x, size_t n)
{
    double sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t k = 0; k < LANES; k++) sums[k] += x[i + k] * x[i + k];
    for (size_t k = 0; i + k < n; k++) sums[k] += x[i + k] * x[i + k];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t k = 0; k < half; k++) sums[k] += sums[k + half];
    return sums[0];
}

EMBLA_BODY void put_body(const double *restrict sums, size_t columns, embla_write_mode mode,
                         float *restrict out)
{
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write((const char *)(out + c));
        for (size_t k = 0; k < LANES; k++) out[c + k] = (float)sums[c + k];
    }
    for (; c < columns; c++) out[c] = (float)sums[c];
}

EMBLA_BODY void put_dense_body(const double *restrict sums, size_t columns, float *restrict out,
                               embla_fetch *fetch)
{
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        embla_fetch_line(fetch);
        for (size_t k = 0; k < LANES; k++) out[c + k] = (float)((double)out[c + k] + sums[c + k]);
    }
    if (c < columns) embla_fetch_line(fetch);
    for (; c < columns; c++) out[c] = (float)((double)out[c] + sums[c]);
}

/* A row of a single vector is a copy of that vector. */
EMBLA_BODY void copy_body(const float *restrict x, size_t columns, embla_write_mode mode,
                          float *restrict out, embla_fetch *fetch)
{
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        embla_fetch_line(fetch);
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write((const char *)(out + c));
        memcpy(out + c, x + c, LANES * sizeof *out);
    }
    if (c < columns) {
        embla_fetch_line(fetch);
        memcpy(out + c, x + c, (columns - c) * sizeof *out);
    }
}

/* Adds a single vector to a row of the dense gradient. The sum of two floats, rounded to double and
 * then to float, equals their sum in float: a double has more than twice as many digits. */
EMBLA_BODY void join_body(const float *restrict x, size_t columns, float *restrict out,
                          embla_fetch *vectors, embla_fetch *dense)
{
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        embla_fetch_line(vectors);
        embla_fetch_line(dense);
        for (size_t k = 0; k < LANES; k++) out[c + k] += x[c + k];
    }
    if (c < columns) {
        embla_fetch_line(vectors);
        embla_fetch_line(dense);
    }
    for (; c < columns; c++) out[c] += x[c];
}

#define NOTHING
/* Functions that are the same for every instruction set. */
#define PLAIN_LOOPS(SET, ATTRIBUTE)                                                                \
    ATTRIBUTE static void fold_##SET(const double *sums, size_t columns, bool first,               \
                                     double *total)                                                \
    {                                                                                              \
        fold_body(sums, columns, first, total);                                                    \
    }                                                                                              \
    ATTRIBUTE static void divide_##SET(double *sums, size_t columns, double by)                    \
    {                                                                                              \
        divide_body(sums, columns, by);                                                            \
    }                                                                                              \
    ATTRIBUTE static void scale_##SET(double *sums, size_t columns, double by)                     \
    {                                                                                              \
        scale_body(sums, columns, by);                                                             \
    }                                                                                              \
    ATTRIBUTE static double squares_##SET(const double *x, size_t n)                               \
    {                                                                                              \
        return squares_body(x, n);                                                                 \
    }                                                                                              \
    ATTRIBUTE static void put_dense_##SET(const double *sums, size_t columns, float *out,          \
                                          embla_fetch *fetch)                                      \
    {                                                                                              \
        put_dense_body(sums, columns, out, fetch);                                                 \
    }                                                                                              \
    ATTRIBUTE static void join_##SET(const float *x, size_t columns, float *out,                   \
                                     embla_fetch *vectors, embla_fetch *dense)                     \
    {                                                                                              \
        join_body(x, columns, out, vectors, dense);                                                \
    }

#define LOOPS(SET)                                                                                 \
    static const embla_scatter_loops loops_##SET = {add_##SET,       fold_##SET,    divide_##SET,  \
                                                    scale_##SET,     squares_##SET, put_##SET,     \
                                                    put_dense_##SET, copy_##SET,    join_##SET}

PLAIN_LOOPS(scalar, NOTHING)

static void add_scalar(const float *const *x, size_t n, size_t columns, bool first, double *sums,
                       embla_fetch *fetch)
{
    add_body(x, n, 0, columns, first, sums, fetch);
}

static void put_scalar(const double *sums, size_t columns, embla_write_mode mode, float *out)
{
    put_body(sums, columns, mode, out);
}

static void copy_scalar(const float *x, size_t columns, embla_write_mode mode, float *out,
                        embla_fetch *fetch)
{
    copy_body(x, columns, mode, out, fetch);
}

LOOPS(scalar);

#if EMBLA_X86
PLAIN_LOOPS(avx2, EMBLA_AVX2)
PLAIN_LOOPS(avx512, EMBLA_AVX512)

/* With intrinsics: compilers load whole vectors and split them before they widen them. */
EMBLA_AVX2 static void add_avx2(const float *const *x, size_t n, size_t columns, bool first,
                                double *sums, embla_fetch *fetch)
{
    enum { WIDE = 4, VECTORS = 4 };
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        __m256d s[VECTORS];
        prefetch_lines(fetch, n);
#pragma GCC unroll 4
        for (size_t k = 0; k < VECTORS; k++)
            s[k] = first ? _mm256_set1_pd(-0.0) : _mm256_loadu_pd(sums + c + WIDE * k);
        for (size_t j = 0; j < n; j++) {
            const float *from = x[j] + c;
#pragma GCC unroll 4
            for (size_t k = 0; k < VECTORS; k++)
                s[k] = _mm256_add_pd(s[k], _mm256_cvtps_pd(_mm_loadu_ps(from + WIDE * k)));
        }
#pragma GCC unroll 4
        for (size_t k = 0; k < VECTORS; k++) _mm256_storeu_pd(sums + c + WIDE * k, s[k]);
    }
    add_body(x, n, c, columns, first, sums, fetch);
}

EMBLA_AVX512 static void add_avx512(const float *const *x, size_t n, size_t columns, bool first,
                                    double *sums, embla_fetch *fetch)
{
    enum { WIDE = 8, VECTORS = 4 };
    size_t c = 0;
    for (; c + 2 * LANES <= columns; c += 2 * LANES) {
        __m512d s[VECTORS];
        prefetch_lines(fetch, 2 * n);
#pragma GCC unroll 4
        for (size_t k = 0; k < VECTORS; k++)
            s[k] = first ? _mm512_set1_pd(-0.0) : _mm512_loadu_pd(sums + c + WIDE * k);
        for (size_t j = 0; j < n; j++) {
            const float *from = x[j] + c;
#pragma GCC unroll 4
            for (size_t k = 0; k < VECTORS; k++)
                s[k] = _mm512_add_pd(s[k], _mm512_cvtps_pd(_mm256_loadu_ps(from + WIDE * k)));
        }
#pragma GCC unroll 4
        for (size_t k = 0; k < VECTORS; k++) _mm512_storeu_pd(sums + c + WIDE * k, s[k]);
    }
    add_body(x, n, c, columns, first, sums, fetch);
}

/* Only whole lines are streamed, so there is no remainder then. */
EMBLA_AVX2 static void put_avx2(const double *sums, size_t columns, embla_write_mode mode,
                                float *out)
{
    if (mode != EMBLA_WRITE_STREAM) {
        put_body(sums, columns, mode, out);
        return;
    }
    for (size_t c = 0; c < columns; c += 4)
        _mm_stream_ps(out + c, _mm256_cvtpd_ps(_mm256_loadu_pd(sums + c)));
}

EMBLA_AVX2 static void copy_avx2(const float *x, size_t columns, embla_write_mode mode, float *out,
                                 embla_fetch *fetch)
{
    if (mode != EMBLA_WRITE_STREAM) {
        copy_body(x, columns, mode, out, fetch);
        return;
    }
    for (size_t c = 0; c < columns; c += LANES) {
        embla_fetch_line(fetch);
        _mm256_stream_ps(out + c, _mm256_loadu_ps(x + c));
        _mm256_stream_ps(out + c + LANES / 2, _mm256_loadu_ps(x + c + LANES / 2));
    }
}

EMBLA_AVX512 static void put_avx512(const double *sums, size_t columns, embla_write_mode mode,
                                    float *out)
{
    if (mode != EMBLA_WRITE_STREAM) {
        put_body(sums, columns, mode, out);
        return;
    }
    for (size_t c = 0; c < columns; c += LANES) {
        __m256 low = _mm512_cvtpd_ps(_mm512_loadu_pd(sums + c));
        __m256 high = _mm512_cvtpd_ps(_mm512_loadu_pd(sums + c + LANES / 2));
        _mm512_stream_ps(out + c, _mm512_insertf32x8(_mm512_castps256_ps512(low), high, 1));
    }
}

EMBLA_AVX512 static void copy_avx512(const float *x, size_t columns, embla_write_mode mode,
                                     float *out, embla_fetch *fetch)
{
    if (mode != EMBLA_WRITE_STREAM) {
        copy_body(x, columns, mode, out, fetch);
        return;
    }
    for (size_t c = 0; c < columns; c += LANES) {
        embla_fetch_line(fetch);
        _mm512_stream_ps(out + c, _mm512_loadu_ps(x + c));
    }
}

LOOPS(avx2);
LOOPS(avx512);
#endif

#if EMBLA_ARM
PLAIN_LOOPS(neon, NOTHING)

static void add_neon(const float *const *x, size_t n, size_t columns, bool first, double *sums,
                     embla_fetch *fetch)
{
    enum { WIDE = 2, VECTORS = 8 };
    size_t c = 0;
    for (; c + LANES <= columns; c += LANES) {
        float64x2_t s[VECTORS];
        prefetch_lines(fetch, n);
#pragma GCC unroll 8
        for (size_t k = 0; k < VECTORS; k++)
            s[k] = first ? vdupq_n_f64(-0.0) : vld1q_f64(sums + c + WIDE * k);
        for (size_t j = 0; j < n; j++) {
            const float *from = x[j] + c;
#pragma GCC unroll 4
            for (size_t k = 0; k < VECTORS; k += 2) {
                const float32x4_t four = vld1q_f32(from + WIDE * k);
                s[k] = vaddq_f64(s[k], vcvt_f64_f32(vget_low_f32(four)));
                s[k + 1] = vaddq_f64(s[k + 1], vcvt_high_f64_f32(four));
            }
        }
#pragma GCC unroll 8
        for (size_t k = 0; k < VECTORS; k++) vst1q_f64(sums + c + WIDE * k, s[k]);
    }
    add_body(x, n, c, columns, first, sums, fetch);
}

/* Only whole lines are streamed, so there is no remainder then. */
static void put_neon(const double *sums, size_t columns, embla_write_mode mode, float *out)
{
    if (mode != EMBLA_WRITE_STREAM) {
        put_body(sums, columns, mode, out);
        return;
    }
    for (size_t c = 0; c < columns; c += 8) {
        float32x4_t low =
            vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(sums + c)), vld1q_f64(sums + c + 2));
        float32x4_t high =
            vcvt_high_f32_f64(vcvt_f32_f64(vld1q_f64(sums + c + 4)), vld1q_f64(sums + c + 6));
        embla_put_neon(out + c, low, high, mode);
    }
}

static void copy_neon(const float *x, size_t columns, embla_write_mode mode, float *out,
                      embla_fetch *fetch)
{
    if (mode != EMBLA_WRITE_STREAM) {
        copy_body(x, columns, mode, out, fetch);
        return;
    }
    for (size_t c = 0; c < columns; c += LANES) {
        embla_fetch_line(fetch);
        for (size_t k = c; k < c + LANES; k += 8)
            embla_put_neon(out + k, vld1q_f32(x + k), vld1q_f32(x + k + 4), mode);
    }
}

LOOPS(neon);
#endif

const embla_scatter_loops *const embla_scatter_loops_of[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(&loops_scalar, &loops_neon, &loops_avx2, &loops_avx512);
