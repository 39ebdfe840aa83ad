/* SPDX-License-Identifier: Apache-2.0 */
/* Combines many vectors into one, column by column, in the order of the vectors. Sums are in
 * double, a piece of columns at a time, so nothing is allocated. Rows of a table are read where
 * they are, so a (B, T, dim) array is not needed. */
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/kernels.h"
#include "base/lines.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/status.h"
#include "base/threads.h"
#include "table/geometry.h"
#include "table/table.h"

enum {
    CHUNK = 64, /* vectors that are summed at a time */
    BLOCK = 32, /* columns that are summed in registers */
    AHEAD = 16  /* rows from the one that is added to the one that is prefetched */
};

/* Vectors to pool: those at x, or the rows of tokens, which are used where they are. */
typedef struct {
    const float *x; /* NULL means the rows of tokens */
    const embla_table *table;
    const int32_t *tokens;
    embla_decode_fn *decode;
    bool in_place;        /* vectors are floats that need no decoding */
    bool fetch;           /* the table is larger than a cache: prefetch rows */
    const float *weights; /* may be NULL */
    size_t count, dim;
} sequence;

/* Numbers first .. first+n-1 of the t-th vector. */
static const float *piece_of(const sequence *s, size_t t, size_t first, size_t n, float *space)
{
    if (s->x) return s->x + t * s->dim + first;
    int64_t row = embla_table_row_of(s->table, s->tokens[t]);
    return embla_source_piece(&s->table->source, s->decode, row, first, n, space);
}

/* ---- sums ---- */

/* Some vectors that are in place, from a column on, and what each is multiplied by. */
typedef struct {
    const float *at[CHUNK];
    double weights[CHUNK];
    size_t count;
    bool fetch;
} chunk;

/* Adds columns first .. n-1. Each is summed in the order of the vectors. */
static inline void add_rest(const chunk *c, size_t first, size_t n, double *sums)
{
    for (size_t t = 0; t < c->count && first < n; t++)
        for (size_t i = first; i < n; i++) sums[i] += c->weights[t] * (double)c->at[t][i];
}

static void add_columns_scalar(const chunk *c, size_t n, double *sums)
{
    add_rest(c, 0, n, sums);
}

#if EMBLA_X86 || EMBLA_ARM

static inline void fetch_block(const chunk *c, size_t t, size_t column)
{
    if (!c->fetch || t + AHEAD >= c->count) return;
    for (size_t k = 0; k < BLOCK; k += EMBLA_LINE / sizeof(float))
        __builtin_prefetch(c->at[t + AHEAD] + column + k);
}

#endif

#if EMBLA_X86

EMBLA_AVX2 static void add_columns_avx2(const chunk *c, size_t n, double *sums)
{
    enum { PARTS = BLOCK / 4 };
    size_t column = 0;
    for (; column + BLOCK <= n; column += BLOCK) {
        __m256d s[PARTS];
        for (size_t k = 0; k < PARTS; k++) s[k] = _mm256_loadu_pd(sums + column + 4 * k);
        for (size_t t = 0; t < c->count; t++) {
            const float *x = c->at[t] + column;
            const __m256d w = _mm256_set1_pd(c->weights[t]);
            fetch_block(c, t, column);
            for (size_t k = 0; k < PARTS; k++) {
                const __m256d y = _mm256_cvtps_pd(_mm_loadu_ps(x + 4 * k));
                s[k] = _mm256_add_pd(s[k], _mm256_mul_pd(w, y));
            }
        }
        for (size_t k = 0; k < PARTS; k++) _mm256_storeu_pd(sums + column + 4 * k, s[k]);
    }
    add_rest(c, column, n, sums);
}

EMBLA_AVX512 static void add_columns_avx512(const chunk *c, size_t n, double *sums)
{
    enum { PARTS = BLOCK / 8 };
    size_t column = 0;
    for (; column + BLOCK <= n; column += BLOCK) {
        __m512d s[PARTS];
        for (size_t k = 0; k < PARTS; k++) s[k] = _mm512_loadu_pd(sums + column + 8 * k);
        for (size_t t = 0; t < c->count; t++) {
            const float *x = c->at[t] + column;
            const __m512d w = _mm512_set1_pd(c->weights[t]);
            fetch_block(c, t, column);
            for (size_t k = 0; k < PARTS; k++) {
                const __m512d y = _mm512_cvtps_pd(_mm256_loadu_ps(x + 8 * k));
                s[k] = _mm512_add_pd(s[k], _mm512_mul_pd(w, y));
            }
        }
        for (size_t k = 0; k < PARTS; k++) _mm512_storeu_pd(sums + column + 8 * k, s[k]);
    }
    add_rest(c, column, n, sums);
}

#endif

#if EMBLA_ARM

/* The compiler would add one vector after the other to sums in memory. The products are rounded
 * before they are added, as in the other sets. */
static void add_columns_neon(const chunk *c, size_t n, double *sums)
{
    enum { PARTS = BLOCK / 2 };
    size_t column = 0;
    for (; column + BLOCK <= n; column += BLOCK) {
        float64x2_t s[PARTS];
#pragma GCC unroll 16
        for (size_t k = 0; k < PARTS; k++) s[k] = vld1q_f64(sums + column + 2 * k);
        for (size_t t = 0; t < c->count; t++) {
            const float *x = c->at[t] + column;
            const float64x2_t w = vdupq_n_f64(c->weights[t]);
            fetch_block(c, t, column);
#pragma GCC unroll 8
            for (size_t k = 0; k < PARTS; k += 2) {
                const float32x4_t four = vld1q_f32(x + 2 * k);
                const float64x2_t y = vcvt_f64_f32(vget_low_f32(four));
                s[k] = vaddq_f64(s[k], vmulq_f64(w, y));
                s[k + 1] = vaddq_f64(s[k + 1], vmulq_f64(w, vcvt_high_f64_f32(four)));
            }
        }
#pragma GCC unroll 16
        for (size_t k = 0; k < PARTS; k++) vst1q_f64(sums + column + 2 * k, s[k]);
    }
    add_rest(c, column, n, sums);
}

#endif

typedef void add_columns_fn(const chunk *c, size_t n, double *sums);
static add_columns_fn *const add_columns[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(add_columns_scalar, add_columns_neon, add_columns_avx2, add_columns_avx512);

static double weight_of(const sequence *s, size_t t)
{
    return s->weights ? (double)s->weights[t] : 1.0;
}

static void add_in_place(const sequence *s, size_t first, size_t n, double *sums)
{
    chunk c;
    c.fetch = s->fetch;
    for (size_t from = 0; from < s->count; from += c.count) {
        c.count = s->count - from < CHUNK ? s->count - from : CHUNK;
        for (size_t t = 0; t < c.count; t++) {
            c.at[t] = piece_of(s, from + t, first, n, NULL);
            c.weights[t] = weight_of(s, from + t);
        }
        EMBLA_PICK(add_columns)(&c, n, sums);
    }
}

static void add_decoded(const sequence *s, size_t first, size_t n, double *sums)
{
    const embla_kernels *kernels = embla_kernels_get();
    float space[EMBLA_PIECE];
    for (size_t t = 0; t < s->count; t++)
        kernels->accumulate(piece_of(s, t, first, n, space), weight_of(s, t), n, sums);
}

static void sum_piece(const sequence *s, size_t first, size_t n, bool mean, float *out)
{
    double sums[EMBLA_PIECE] = {0}, total = 0.0;
    if (s->in_place)
        add_in_place(s, first, n, sums);
    else
        add_decoded(s, first, n, sums);
    for (size_t t = 0; t < s->count; t++) total += weight_of(s, t);
    double divisor = mean ? total : 1.0;
    for (size_t i = 0; i < n; i++) out[i] = divisor == 0.0 ? 0.0f : (float)(sums[i] / divisor);
}

/* ---- sequences ---- */

static void pool_piece(const sequence *s, embla_pool_kind kind, size_t first, size_t n, float *out)
{
    const embla_kernels *kernels = embla_kernels_get();
    float space[EMBLA_PIECE];
    if (kind == EMBLA_POOL_MAX) {
        memcpy(out, piece_of(s, 0, first, n, space), n * sizeof *out);
        for (size_t t = 1; t < s->count; t++)
            kernels->maximum(piece_of(s, t, first, n, space), n, out);
    } else if (kind == EMBLA_POOL_LAST) {
        memcpy(out, piece_of(s, s->count - 1, first, n, space), n * sizeof *out);
    } else {
        sum_piece(s, first, n, kind == EMBLA_POOL_MEAN, out);
    }
}

static void pool_sequence(const sequence *s, const embla_pool_options *options, float *out)
{
    for (size_t first = 0; first < s->dim; first += EMBLA_PIECE) {
        size_t n = s->dim - first < EMBLA_PIECE ? s->dim - first : EMBLA_PIECE;
        if (s->count == 0)
            memset(out + first, 0, n * sizeof *out);
        else
            pool_piece(s, options->kind, first, n, out + first);
    }
    if (options->normalize) embla_normalize(out, s->dim);
}

typedef struct {
    const sequence *all; /* has the first vector or token of all sequences */
    const embla_pool_options *options;
    size_t length;
    float *out;
} pooling;

static embla_status pool_sequences(void *job, size_t first, size_t end, size_t slot)
{
    const pooling *p = job;
    const embla_pool_options *options = p->options;
    (void)slot;
    for (size_t b = first; b < end; b++) {
        size_t at = b * p->length;
        sequence s = *p->all;
        s.count = options->lengths ? options->lengths[b] : p->length;
        if (s.x) s.x += at * s.dim;
        if (s.tokens) s.tokens += at;
        if (options->weights) s.weights = options->weights + at;
        pool_sequence(&s, options, p->out + b * s.dim);
    }
    return EMBLA_OK;
}

static embla_status pool_all(const sequence *all, size_t batch, size_t length,
                             const embla_pool_options *options, float *out)
{
    const pooling p = {.all = all, .options = options, .length = length, .out = out};
    int threads = embla_threads_for(options->threads, batch * length * all->dim * sizeof(float));
    return embla_share(threads, batch, 0, pool_sequences, &p);
}

static embla_status check(const void *in, const char *name, size_t batch, size_t length, size_t dim,
                          const embla_pool_options *options, const float *out)
{
    uint64_t rows, numbers, bytes;
    size_t unused;
    EMBLA_TRY(embla_threads_check(options->threads));
    if ((unsigned)options->kind > EMBLA_POOL_LAST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown pool kind %d; kinds are 0 to %d",
                          (int)options->kind, (int)EMBLA_POOL_LAST);
    if (options->weights && options->kind != EMBLA_POOL_MEAN && options->kind != EMBLA_POOL_SUM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "pool kind %d has no weights; only mean and sum have",
                          (int)options->kind);
    if (!embla_mul_ok(batch, length, &rows) || !embla_mul_ok(rows ? rows : batch, dim, &numbers) ||
        !embla_mul_ok(numbers, sizeof(float), &bytes) || !embla_size_ok(bytes, &unused))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu x %zu x %zu floats do not fit in memory", batch,
                          length, dim);
    if (batch > 0 && dim > 0 && ((length > 0 && !in) || !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu sequences to pool, but %s is NULL", batch,
                          out ? name : "out");
    for (size_t b = 0; options->lengths && b < batch; b++)
        if (options->lengths[b] > length)
            return embla_fail(EMBLA_ERR_RANGE,
                              "the length of sequence %zu is %zu, but there are only %zu vectors",
                              b, options->lengths[b], length);
    return EMBLA_OK;
}

embla_status embla_pool(const float *x, size_t batch, size_t length, size_t dim,
                        const embla_pool_options *options, float *out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_pool_options defaults = {0};
    if (!options) options = &defaults;
    EMBLA_TRY(check(x, "x", batch, length, dim, options, out));
    if (dim == 0) return EMBLA_OK;
    return pool_all(&(sequence){.x = x, .in_place = true, .dim = dim}, batch, length, options, out);
}

/* Only the tokens that are pooled are checked: what follows the length of a sequence is padding. */
static embla_status check_tokens(const embla_table *table, const int32_t *tokens, size_t batch,
                                 size_t length, const size_t *lengths)
{
    if (!lengths) return embla_table_find_rows(table, tokens, batch * length, NULL);
    for (size_t b = 0; b < batch; b++)
        EMBLA_TRY(
            embla_table_find_rows(table, tokens ? tokens + b * length : NULL, lengths[b], NULL));
    return EMBLA_OK;
}

embla_status embla_lookup_pool(const embla_table *table, const int32_t *tokens, size_t batch,
                               size_t length, const embla_pool_options *options, float *out)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_pool_options defaults = {0};
    if (!options) options = &defaults;
    EMBLA_NEED(table);
    EMBLA_TRY(check(tokens, "tokens", batch, length, table->row.format.dim, options, out));
    EMBLA_TRY(check_tokens(table, tokens, batch, length, options->lengths));
    EMBLA_TRY(embla_table_check_file(table));
    const sequence all = {
        .table = table,
        .tokens = tokens,
        .decode = embla_dtype_decoder(table->row.format.dtype, embla_kernels_get()->isa),
        .in_place = embla_source_in_place(&table->source),
        .fetch = (uint64_t)table->source.rows * table->source.stride > EMBLA_SMALL_TABLE,
        .dim = table->row.format.dim};
    EMBLA_TRY(pool_all(&all, batch, length, options, out));
    return embla_table_check_file(table);
}
