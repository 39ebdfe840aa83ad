/* SPDX-License-Identifier: Apache-2.0 */
/* Four rows are read side by side, each a quarter of the block from the next: four streams without
 * gaps are faster than one. Lines are prefetched some time before they are needed.
 *
 * f32, bf16 and q8_0 are decoded in registers, by loops written by hand. Other dtypes are decoded
 * to memory, EMBLA_PIECE numbers of four rows at a time, and then multiplied as f32. Every loop
 * loads its lanes from memory and stores them again, so a row may come in pieces.
 */
#include "engine/score.h"

#include <string.h>

#include "base/half.h"
#include "base/kernels.h"

enum {
    LANES = 16,
    ROWS = 4,    /* side by side */
    AHEAD = 1024 /* bytes between what is multiplied and what is asked for */
};

/* n numbers (a multiple of LANES) of some rows times some vectors, onto the lanes of row r and
 * vector v at lanes + (v * ROWS + r) * LANES. */
typedef struct {
    const char *rows[ROWS];
    const float *vectors;
    size_t n, stride; /* from one vector to the next */
    size_t side;      /* rows: ROWS or 1 */
    size_t count;     /* vectors: 1 .. EMBLA_SCORE_VECTORS */
    float *lanes;
} sums;

typedef void sums_fn(const sums *s);

/* ---- scalar: the readable truth ---- */

EMBLA_BODY void body_lanes(float *lanes, const float *x, const float *y)
{
    for (size_t j = 0; j < LANES; j++) lanes[j] += x[j] * y[j];
}

static void f32_scalar(const sums *s)
{
    for (size_t v = 0; v < s->count; v++)
        for (size_t r = 0; r < s->side; r++)
            for (size_t i = 0; i < s->n; i += LANES) {
                float x[LANES];
                memcpy(x, s->rows[r] + i * sizeof *x, sizeof x);
                body_lanes(s->lanes + (v * ROWS + r) * LANES, x, s->vectors + v * s->stride + i);
            }
}

static void bf16_scalar(const sums *s)
{
    for (size_t v = 0; v < s->count; v++)
        for (size_t r = 0; r < s->side; r++)
            for (size_t i = 0; i < s->n; i += LANES) {
                float x[LANES];
                for (size_t j = 0; j < LANES; j++)
                    x[j] = embla_f32_from_bf16(embla_load_u16(s->rows[r] + 2 * (i + j)));
                body_lanes(s->lanes + (v * ROWS + r) * LANES, x, s->vectors + v * s->stride + i);
            }
}

enum { Q8 = 2 * LANES, Q8_BYTES = 34 }; /* numbers and bytes of a block of q8_0 */

static void q8_0_scalar(const sums *s)
{
    for (size_t v = 0; v < s->count; v++)
        for (size_t r = 0; r < s->side; r++)
            for (size_t i = 0; i < s->n; i += Q8) {
                const char *block = s->rows[r] + i / Q8 * Q8_BYTES;
                const signed char *q = (const signed char *)block + 2;
                const float *y = s->vectors + v * s->stride + i;
                float d = embla_f32_from_f16(embla_load_u16(block)), pairs[LANES], ds[LANES];
                for (size_t j = 0; j < LANES; j++) {
                    pairs[j] = (float)q[j] * y[j] + (float)q[j + LANES] * y[j + LANES];
                    ds[j] = d;
                }
                body_lanes(s->lanes + (v * ROWS + r) * LANES, pairs, ds);
            }
}

#if EMBLA_X86

/* ---- AVX-512: a lane of a sum is a lane of a vector ---- */

/* Sixteen numbers of a row, at bytes. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_at(embla_dtype dtype, const char *bytes)
{
    if (dtype == EMBLA_F32) return _mm512_loadu_ps(bytes);
    __m512i half = _mm512_cvtepu16_epi32(_mm256_loadu_si256((const void *)bytes));
    return _mm512_castsi512_ps(_mm512_slli_epi32(half, 16));
}

/* side, count and dtype are constants where this is put, so that all sums are in registers. */
EMBLA_AVX512 EMBLA_BODY void wide_sums(const sums *s, size_t first, size_t side, size_t count,
                                       embla_dtype dtype)
{
    const size_t size = dtype == EMBLA_F32 ? 4 : 2;
    float *lanes = s->lanes + first * ROWS * LANES;
    const float *y = s->vectors + first * s->stride;
    const char *rows[ROWS];
    __m512 sum[EMBLA_SCORE_VECTORS][ROWS], x[ROWS];
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        rows[r] = s->rows[r];
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            sum[v][r] = _mm512_loadu_ps(lanes + (v * ROWS + r) * LANES);
    }
    for (size_t i = 0; i < s->n; i += LANES) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            x[r] = wide_at(dtype, rows[r] + i * size);
            if (dtype == EMBLA_F32 || i % (2 * LANES) == 0)
                __builtin_prefetch(rows[r] + i * size + AHEAD);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512 h = _mm512_loadu_ps(y + v * s->stride + i);
#pragma GCC unroll 4
            for (size_t r = 0; r < side; r++)
                sum[v][r] = _mm512_add_ps(sum[v][r], _mm512_mul_ps(x[r], h));
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++)
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            _mm512_storeu_ps(lanes + (v * ROWS + r) * LANES, sum[v][r]);
}

/* Sixteen signed bytes as floats. */
EMBLA_AVX512 EMBLA_BODY __m512 wide_bytes(const char *bytes)
{
    return _mm512_cvtepi32_ps(_mm512_cvtepi8_epi32(_mm_loadu_si128((const void *)bytes)));
}

/* The scales of four rows are converted together: shuffles are what there is too little of. */
EMBLA_AVX512 EMBLA_BODY void wide_q8_0(const sums *s, size_t first, size_t side, size_t count)
{
    float *lanes = s->lanes + first * ROWS * LANES;
    const float *y = s->vectors + first * s->stride;
    const char *rows[ROWS];
    __m512 sum[EMBLA_SCORE_VECTORS][ROWS], low[ROWS], high[ROWS];
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        rows[r] = s->rows[r];
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            sum[v][r] = _mm512_loadu_ps(lanes + (v * ROWS + r) * LANES);
    }
    const size_t end = s->n / Q8 * Q8_BYTES;
    for (size_t at = 0; at < end; at += Q8_BYTES, y += Q8) {
        float scales[ROWS];
        uint64_t halves = 0;
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++)
            halves |= (uint64_t)embla_load_u16(rows[r] + at) << 16 * r;
        _mm_storeu_ps(scales, _mm_cvtph_ps(_mm_cvtsi64_si128((long long)halves)));
        __asm__("" : "+m"(scales)); /* through memory: from there a broadcast is free */
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            __builtin_prefetch(rows[r] + at + AHEAD);
            low[r] = wide_bytes(rows[r] + at + 2);
            high[r] = wide_bytes(rows[r] + at + 2 + LANES);
        }
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++) {
            __m512 h = _mm512_loadu_ps(y + v * s->stride);
            __m512 g = _mm512_loadu_ps(y + v * s->stride + LANES);
#pragma GCC unroll 4
            for (size_t r = 0; r < side; r++) {
                __m512 pairs = _mm512_add_ps(_mm512_mul_ps(low[r], h), _mm512_mul_ps(high[r], g));
                sum[v][r] =
                    _mm512_add_ps(sum[v][r], _mm512_mul_ps(pairs, _mm512_set1_ps(scales[r])));
            }
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++)
#pragma GCC unroll 4
        for (size_t v = 0; v < count; v++)
            _mm512_storeu_ps(lanes + (v * ROWS + r) * LANES, sum[v][r]);
}

/* ---- AVX2: a sum is two vectors; vectors are taken one after the other, the second time from
 * a cache, since there are only registers for one ---- */

EMBLA_AVX2 EMBLA_BODY __m256 narrow_at(embla_dtype dtype, const char *bytes)
{
    if (dtype == EMBLA_F32) return _mm256_loadu_ps((const float *)(const void *)bytes);
    __m256i half = _mm256_cvtepu16_epi32(_mm_loadu_si128((const void *)bytes));
    return _mm256_castsi256_ps(_mm256_slli_epi32(half, 16));
}

EMBLA_AVX2 EMBLA_BODY void narrow_sums(const sums *s, size_t v, size_t side, embla_dtype dtype)
{
    enum { HALF = LANES / 2 };
    const size_t size = dtype == EMBLA_F32 ? 4 : 2;
    float *lanes = s->lanes + v * ROWS * LANES;
    const float *y = s->vectors + v * s->stride;
    __m256 low[ROWS], high[ROWS];
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        low[r] = _mm256_loadu_ps(lanes + r * LANES);
        high[r] = _mm256_loadu_ps(lanes + r * LANES + HALF);
    }
    for (size_t i = 0; i < s->n; i += LANES) {
        __m256 h = _mm256_loadu_ps(y + i), g = _mm256_loadu_ps(y + i + HALF);
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *at = s->rows[r] + i * size;
            __builtin_prefetch(at + AHEAD);
            low[r] = _mm256_add_ps(low[r], _mm256_mul_ps(narrow_at(dtype, at), h));
            high[r] = _mm256_add_ps(high[r], _mm256_mul_ps(narrow_at(dtype, at + HALF * size), g));
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        _mm256_storeu_ps(lanes + r * LANES, low[r]);
        _mm256_storeu_ps(lanes + r * LANES + HALF, high[r]);
    }
}

/* Eight signed bytes as floats, times y. */
EMBLA_AVX2 EMBLA_BODY __m256 narrow_bytes(const char *bytes, const float *y)
{
    __m256i q = _mm256_cvtepi8_epi32(_mm_loadl_epi64((const void *)bytes));
    return _mm256_mul_ps(_mm256_cvtepi32_ps(q), _mm256_loadu_ps(y));
}

EMBLA_AVX2 EMBLA_BODY void narrow_q8_0(const sums *s, size_t v, size_t side)
{
    float *lanes = s->lanes + v * ROWS * LANES;
    const float *y = s->vectors + v * s->stride;
    __m256 low[ROWS], high[ROWS];
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        low[r] = _mm256_loadu_ps(lanes + r * LANES);
        high[r] = _mm256_loadu_ps(lanes + r * LANES + 8);
    }
    for (size_t i = 0; i < s->n; i += Q8) {
#pragma GCC unroll 4
        for (size_t r = 0; r < side; r++) {
            const char *block = s->rows[r] + i / Q8 * Q8_BYTES;
            __builtin_prefetch(block + AHEAD);
            const __m256 d = _mm256_cvtph_ps(_mm_set1_epi16((short)embla_load_u16(block)));
            __m256 first =
                _mm256_add_ps(narrow_bytes(block + 2, y + i), narrow_bytes(block + 18, y + i + 16));
            __m256 second = _mm256_add_ps(narrow_bytes(block + 10, y + i + 8),
                                          narrow_bytes(block + 26, y + i + 24));
            low[r] = _mm256_add_ps(low[r], _mm256_mul_ps(first, d));
            high[r] = _mm256_add_ps(high[r], _mm256_mul_ps(second, d));
        }
    }
#pragma GCC unroll 4
    for (size_t r = 0; r < side; r++) {
        _mm256_storeu_ps(lanes + r * LANES, low[r]);
        _mm256_storeu_ps(lanes + r * LANES + 8, high[r]);
    }
}

/* ---- the loops of each dtype, by how many rows and vectors there are ---- */

#define WIDE(name, body, ...)                                                                      \
    EMBLA_AVX512 static void name##_avx512(const sums *s)                                          \
    {                                                                                              \
        if (s->side == ROWS && s->count == EMBLA_SCORE_VECTORS) {                                  \
            body(s, 0, ROWS, EMBLA_SCORE_VECTORS __VA_ARGS__);                                     \
            return;                                                                                \
        }                                                                                          \
        for (size_t v = 0; v < s->count; v++) {                                                    \
            if (s->side == ROWS)                                                                   \
                body(s, v, ROWS, 1 __VA_ARGS__);                                                   \
            else                                                                                   \
                body(s, v, 1, 1 __VA_ARGS__);                                                      \
        }                                                                                          \
    }
#define NARROW(name, body, ...)                                                                    \
    EMBLA_AVX2 static void name##_avx2(const sums *s)                                              \
    {                                                                                              \
        for (size_t v = 0; v < s->count; v++) {                                                    \
            if (s->side == ROWS)                                                                   \
                body(s, v, ROWS __VA_ARGS__);                                                      \
            else                                                                                   \
                body(s, v, 1 __VA_ARGS__);                                                         \
        }                                                                                          \
    }
#define COMMA ,
WIDE(f32, wide_sums, COMMA EMBLA_F32)
WIDE(bf16, wide_sums, COMMA EMBLA_BF16)
WIDE(q8_0, wide_q8_0, )
NARROW(f32, narrow_sums, COMMA EMBLA_F32)
NARROW(bf16, narrow_sums, COMMA EMBLA_BF16)
NARROW(q8_0, narrow_q8_0, )

#define SETS(name)                                                                                 \
    {                                                                                              \
        name##_scalar, name##_avx2, name##_avx512                                                  \
    }
#else
#define SETS(name)                                                                                 \
    {                                                                                              \
        name##_scalar                                                                              \
    }
#endif

static sums_fn *const f32_sums[EMBLA_ISA_COUNT] = SETS(f32);
static sums_fn *const bf16_sums[EMBLA_ISA_COUNT] = SETS(bf16);
static sums_fn *const q8_0_sums[EMBLA_ISA_COUNT] = SETS(q8_0);

/* ---- a few rows ---- */

typedef struct {
    const embla_stored *stored;
    embla_decode_fn *decode;
    sums_fn *f32, *own; /* own: for the dtype as it is stored; NULL: it is decoded */
    const float *vectors;
    size_t count;
    float *out;
    size_t out_stride;
} pass;

/* Numbers from column `first` on, decoded; what is past the end of a row is 0 times 0. */
static void sum_decoded(const pass *p, const char *const *rows, size_t side, size_t first,
                        float *lanes)
{
    const embla_stored *stored = p->stored;
    float space[ROWS][EMBLA_PIECE], ends[EMBLA_SCORE_VECTORS][LANES];
    for (size_t at = first; at < stored->dim; at += EMBLA_PIECE) {
        size_t n = stored->dim - at < EMBLA_PIECE ? stored->dim - at : EMBLA_PIECE;
        size_t whole = n / LANES * LANES, rest = n - whole;
        sums s = {.vectors = p->vectors + at,
                  .n = whole,
                  .stride = stored->dim,
                  .side = side,
                  .count = p->count,
                  .lanes = lanes};
        for (size_t r = 0; r < side; r++) {
            const char *bytes = rows[r] + embla_dtype_bytes(stored->info, at);
            p->decode(bytes, n, stored->scale, EMBLA_WRITE_PLAIN, space[r]);
            if (rest > 0) memset(space[r] + n, 0, (LANES - rest) * sizeof space[r][0]);
            s.rows[r] = (const char *)space[r];
        }
        p->f32(&s);
        if (rest == 0) continue;
        memset(ends, 0, sizeof ends);
        for (size_t v = 0; v < p->count; v++)
            memcpy(ends[v], s.vectors + v * s.stride + whole, rest * sizeof ends[v][0]);
        for (size_t r = 0; r < side; r++) s.rows[r] = (const char *)(space[r] + whole);
        s.vectors = ends[0];
        s.stride = s.n = LANES;
        p->f32(&s);
    }
}

static float tree(float lanes[LANES])
{
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) lanes[j] += lanes[j + half];
    return lanes[0];
}

/* Rows first + at, first + at + apart ..: side of them. */
static void sum_rows(const pass *p, int64_t first, size_t at, size_t apart, size_t side)
{
    float lanes[EMBLA_SCORE_VECTORS * ROWS * LANES];
    size_t whole = p->own ? p->stored->dim / LANES * LANES : 0;
    sums s = {.vectors = p->vectors,
              .n = whole,
              .stride = p->stored->dim,
              .side = side,
              .count = p->count,
              .lanes = lanes};
    memset(lanes, 0, p->count * ROWS * LANES * sizeof lanes[0]);
    for (size_t r = 0; r < side; r++)
        s.rows[r] = p->stored->data + ((size_t)first + at + r * apart) * p->stored->stride;
    if (whole > 0) p->own(&s);
    if (whole < p->stored->dim) {
        const char *rows[ROWS] = {s.rows[0], s.rows[1], s.rows[2], s.rows[3]};
        sum_decoded(p, rows, side, whole, lanes);
    }
    for (size_t v = 0; v < p->count; v++)
        for (size_t r = 0; r < side; r++)
            p->out[v * p->out_stride + at + r * apart] = tree(lanes + (v * ROWS + r) * LANES);
}

static sums_fn *loops_of(sums_fn *const *sets, embla_isa isa)
{
    while (!sets[isa]) isa = (embla_isa)(isa - 1); /* scalar is always there */
    return sets[isa];
}

void embla_score_rows(const embla_stored *rows, int64_t first, size_t n, const float *vectors,
                      size_t count, float *out, size_t out_stride)
{
    embla_isa isa = embla_kernels_get()->isa;
    pass p = {.stored = rows,
              .decode = embla_dtype_decoder(rows->dtype, isa),
              .f32 = loops_of(f32_sums, isa),
              .out_stride = out_stride};
    p.own = rows->dtype == EMBLA_F32    ? p.f32
            : rows->dtype == EMBLA_BF16 ? loops_of(bf16_sums, isa)
            : rows->dtype == EMBLA_Q8_0 ? loops_of(q8_0_sums, isa)
                                        : NULL;
    for (size_t v = 0; v < count; v += EMBLA_SCORE_VECTORS) {
        size_t quarter = n / ROWS;
        p.count = count - v < EMBLA_SCORE_VECTORS ? count - v : EMBLA_SCORE_VECTORS;
        p.vectors = vectors + v * rows->dim;
        p.out = out + v * out_stride;
        for (size_t i = 0; i < quarter; i++) sum_rows(&p, first, i, quarter, ROWS);
        for (size_t i = ROWS * quarter; i < n; i++) sum_rows(&p, first, i, 0, 1);
    }
}
