/* SPDX-License-Identifier: Apache-2.0 */
/* Converts tokens to row numbers, one tile of tokens at a time.
 *
 *   load: the value that each token is hashed as (folded), and how many tokens before it belong
 *         to its n-grams; the start of the sequence, EOS and barriers end an n-gram
 *   hash: mix_n = x_t m_0 ^ x_(t-1) m_1 ^ .. ^ x_(t-n+1) m_(n-1), a running xor over orders n;
 *         the row of hash h is offset + mix_n mod size. LongCat: a sum of x times powers.
 *
 * A division takes 20 to 40 cycles, and a token needs up to 24 of them. So the remainder is
 * computed by multiplication. Let i = floor((2^64 - 1) / p). Then 2^64 / p - i is at most 1, so
 * floor(x i / 2^64) is floor(x / p) or one less, for every x below 2^64. One correction is enough.
 *
 * AVX-512 has no 64 x 64 -> 128 bit multiplication, so it uses eight doubles: x times g, where g is
 * 1 / p less one part in 2^50. If x / p is below 2^49, the rounded product is below x / p, but by
 * less than 1, in any rounding mode. So its floor is again floor(x / p) or one less. All other
 * steps are in integers, so both methods give the same bits.
 */
#include "ngram/ngram.h"

#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"

#if EMBLA_X86
#include <immintrin.h>
#endif

enum { TILE = 256, REACH = EMBLA_NGRAM_ORDERS_MOST - 1 };

__extension__ typedef unsigned __int128 wide;

/* Tokens first .. first+count-1 of a sequence, and the tokens before them that n-grams need. */
typedef struct {
    size_t count;
    uint32_t seen[REACH + TILE]; /* history + count: the value each token is hashed as */
    uint8_t reach[TILE];         /* count: how many tokens before it belong to its n-grams */
} tile;

typedef void hash_fn(const embla_ngram *g, const tile *t, int64_t *restrict rows);

/* The arguments of one call, checked. */
typedef struct {
    const embla_ngram *ngram;
    hash_fn *hash;
    const int32_t *tokens, *history; /* (B, T), (B, history) or NULL */
    const uint8_t *barrier;          /* (B, T) or NULL */
    size_t batch, length;
    int64_t *rows; /* (B, T, rows_per_token) */
} job;

/* ---- checks ---- */

static bool has_barrier(const job *j, size_t at)
{
    return j->barrier && j->barrier[at] != 0;
}

/* One pass over the tokens. The bad token is searched for only if there is one. */
static embla_status check_tokens(const job *j)
{
    const embla_ngram *g = j->ngram;
    enum { FEW = 16 }; /* up to here a loop is faster than a call of the kernel */
    size_t count = j->batch * j->length;
    if (count > FEW && embla_kernels_get()->tokens_below(j->tokens, count, (uint32_t)g->tokens))
        return EMBLA_OK;
    for (size_t i = 0; i < count; i++)
        if ((j->tokens[i] < 0 || j->tokens[i] >= g->tokens) && !has_barrier(j, i))
            return embla_fail(
                EMBLA_ERR_RANGE,
                "token %" PRId32
                " at position %zu of sequence %zu is out of range; tokens are 0 to %" PRId64,
                j->tokens[i], i % j->length, i / j->length, g->tokens - 1);
    return EMBLA_OK;
}

static embla_status check_history(const job *j)
{
    const embla_ngram *g = j->ngram;
    size_t count = j->history ? j->batch * g->history : 0;
    for (size_t i = 0; i < count; i++)
        if (j->history[i] < -1 || j->history[i] >= g->tokens)
            return embla_fail(EMBLA_ERR_RANGE,
                              "token %" PRId32 " at index %zu of the history of sequence %zu is "
                              "out of range; tokens are 0 to %" PRId64 ", or -1 for none",
                              j->history[i], i % g->history, i / g->history, g->tokens - 1);
    return EMBLA_OK;
}

static embla_status check(const job *j, const embla_ngram_options *options)
{
    uint64_t count, numbers;
    size_t bytes;
    EMBLA_NEED_OF("embla_ngram_rows", "ngram", j->ngram);
    if (options) EMBLA_TRY(embla_threads_check(options->threads));
    if (!embla_mul_ok(j->batch, j->length, &count) ||
        !embla_mul_ok(count, j->ngram->rows_per_token * sizeof(int64_t), &numbers) ||
        !embla_size_ok(numbers, &bytes))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%zu sequences of %zu tokens with %zu row numbers each do not fit in memory", j->batch,
            j->length, j->ngram->rows_per_token);
    if (count == 0) return EMBLA_OK;
    if (!j->tokens || !j->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_ngram_rows: %s is NULL for %" PRIu64 " tokens",
                          j->tokens ? "rows" : "tokens", count);
    EMBLA_TRY(check_history(j));
    return check_tokens(j);
}

/* ---- loading a tile ---- */

/* Stores a token at index k. *run is the number of tokens before the next one that belong to its
 * n-grams. */
EMBLA_BODY void store_token(const embla_ngram *g, int32_t token, bool barred, size_t k, size_t *run,
                            tile *t)
{
    size_t h = g->history;
    bool alone = false, end = true;
    if (barred) {
        t->seen[k] = g->wall;
        alone = g->wall_alone;
    } else if (token < 0) { /* no token: before the start */
        t->seen[k] = g->filler;
    } else if (token == g->stop) {
        t->seen[k] = g->stop_nothing ? 0 : (uint32_t)token;
        alone = g->stop_nothing;
    } else {
        t->seen[k] = (uint32_t)(g->folded ? g->folded[token] : token);
        end = false;
    }
    if (k >= h) t->reach[k - h] = (uint8_t)(alone ? 0 : *run);
    *run = end ? 0 : *run < h ? *run + 1 : h;
}

static void load_tile(const job *j, size_t sequence, size_t first, tile *t)
{
    const embla_ngram *g = j->ngram;
    const int32_t *tokens = j->tokens + sequence * j->length;
    const int32_t *before = j->history ? j->history + sequence * g->history : NULL;
    const uint8_t *barrier = j->barrier ? j->barrier + sequence * j->length : NULL;
    size_t h = g->history, run = 0, k = 0;
    for (; first + k < h && k < h; k++) /* index first + k of the history */
        store_token(g, before ? before[first + k] : -1, false, k, &run, t);
    size_t end = h + t->count; /* from here on, index k is token first + k - h */
    if (barrier || g->stop >= 0) {
        for (; k < end; k++) {
            size_t at = first + k - h;
            store_token(g, tokens[at], barrier && barrier[at], k, &run, t);
        }
        return;
    }
    for (; k < 2 * h && k < end; k++) store_token(g, tokens[first + k - h], false, k, &run, t);
    memset(t->reach + k - h, (int)h, end - k); /* no n-gram ends early any more */
    for (; k < end; k++) {
        int32_t token = tokens[first + k - h];
        t->seen[k] = (uint32_t)(g->folded ? g->folded[token] : token);
    }
}

/* ---- hashing ---- */

EMBLA_BODY uint64_t modulo(uint64_t x, uint64_t size, uint64_t inverse)
{
    uint64_t rest = x - (uint64_t)((wide)x * inverse >> 64) * size;
    return rest >= size ? rest - size : rest;
}

/* Returns a pointer to token i; the orders-1 tokens before it precede it in memory. If the n-gram
 * ends early, the window is built in `space`, padded with the filler. */
EMBLA_BODY const uint32_t *token_window(const embla_ngram *g, const tile *t, size_t i,
                                        size_t orders, uint32_t space[REACH + 1])
{
    const uint32_t *own = t->seen + (orders - 1) + i;
    if (t->reach[i] == orders - 1) return own;
    for (size_t s = 0; s < orders; s++)
        *(space + REACH - s) = s <= t->reach[i] ? *(own - s) : g->filler;
    return space + REACH;
}

/* For the usual values, orders and rows_per_ngram are constants, so that the loops are unrolled. */
EMBLA_BODY void hash_products(const embla_ngram *g, const tile *t, size_t orders,
                              size_t rows_per_ngram, int64_t *restrict rows)
{
    const int64_t *restrict multipliers = g->multipliers, *restrict offsets = g->offsets;
    const int64_t *restrict sizes = g->sizes;
    const uint64_t *restrict inverses = g->inverses;
    uint32_t space[REACH + 1];
    for (size_t i = 0; i < t->count; i++) {
        const uint32_t *x = token_window(g, t, i, orders, space);
        uint64_t mix = x[0] * (uint64_t)multipliers[0];
        for (size_t s = 1, c = 0; s < orders; s++) {
            mix ^= *(x - s) * (uint64_t)multipliers[s];
            for (size_t k = 0; k < rows_per_ngram; k++, c++)
                rows[c] = offsets[c] + (int64_t)modulo(mix, (uint64_t)sizes[c], inverses[c]);
        }
        rows += (orders - 1) * rows_per_ngram;
    }
}

/* Each column has its own size and powers, so its own sum. The sum does not overflow
 * (ngram_make.c). */
EMBLA_BODY void hash_powers(const embla_ngram *g, const tile *t, size_t orders,
                            size_t rows_per_ngram, int64_t *restrict rows)
{
    const int64_t *restrict offsets = g->offsets, *restrict sizes = g->sizes;
    const uint64_t *restrict inverses = g->inverses, *restrict powers = g->powers;
    size_t padded = g->padded;
    uint32_t space[REACH + 1];
    for (size_t i = 0; i < t->count; i++) {
        const uint32_t *x = token_window(g, t, i, orders, space);
        for (size_t order = 2, c = 0; order <= orders; order++)
            for (size_t k = 0; k < rows_per_ngram; k++, c++) {
                uint64_t sum = x[0];
                for (size_t s = 1; s < order; s++) sum += *(x - s) * powers[s * padded + c];
                rows[c] = offsets[c] + (int64_t)modulo(sum, (uint64_t)sizes[c], inverses[c]);
            }
        rows += (orders - 1) * rows_per_ngram;
    }
}

#if EMBLA_X86
/* Row numbers of hashes c .. c+7; x is below 2^63. */
EMBLA_AVX512 EMBLA_BODY __m512i rows_512(const embla_ngram *g, size_t c, __m512i x,
                                         __m512d as_double)
{
    __m512i size = _mm512_loadu_si512(g->sizes + c);
    __m512d quotient = _mm512_mul_pd(as_double, _mm512_loadu_pd(g->guesses + c));
    __m512i rest = _mm512_sub_epi64(x, _mm512_mullo_epi64(_mm512_cvttpd_epi64(quotient), size));
    rest = _mm512_min_epu64(
        rest, _mm512_sub_epi64(rest, size)); /* a negative number is very large here */
    return _mm512_add_epi64(rest, _mm512_loadu_si512(g->offsets + c));
}

/* rows_per_ngram is a multiple of 8. */
EMBLA_AVX512 EMBLA_BODY void products_512(const embla_ngram *g, const tile *t, size_t orders,
                                          size_t rows_per_ngram, int64_t *restrict rows)
{
    uint32_t space[REACH + 1];
    for (size_t i = 0; i < t->count; i++) {
        const uint32_t *x = token_window(g, t, i, orders, space);
        uint64_t mix = x[0] * (uint64_t)g->multipliers[0];
        for (size_t s = 1, c = 0; s < orders; s++) {
            mix ^= *(x - s) * (uint64_t)g->multipliers[s];
            __m512i wide_mix = _mm512_set1_epi64((int64_t)mix);
            __m512d as_double = _mm512_set1_pd((double)(int64_t)mix);
            for (size_t k = 0; k < rows_per_ngram; k += 8, c += 8)
                _mm512_storeu_si512(rows + c, rows_512(g, c, wide_mix, as_double));
        }
        rows += (orders - 1) * rows_per_ngram;
    }
}

/* Powers are below 2^32, so the products fit in 64 bits. Beyond the order of a column they are
 * 0. */
EMBLA_AVX512 EMBLA_BODY void powers_512(const embla_ngram *g, const tile *t, size_t orders,
                                        size_t rows_per_token, int64_t *restrict rows)
{
    size_t padded = (rows_per_token + 7) / 8 * 8;
    uint32_t space[REACH + 1] = {0};
    for (size_t i = 0; i < t->count; i++) {
        const uint32_t *x = token_window(g, t, i, orders, space);
        for (size_t c = 0; c < rows_per_token; c += 8) {
            __m512i sum = _mm512_set1_epi64(x[0]);
            for (size_t s = 1; s < orders; s++)
                sum = _mm512_add_epi64(
                    sum, _mm512_mul_epu32(_mm512_set1_epi64(*(x - s)),
                                          _mm512_loadu_si512(g->powers + s * padded + c)));
            unsigned left = rows_per_token - c < 8 ? (unsigned)(rows_per_token - c) : 8;
            _mm512_mask_storeu_epi64(rows + c, (__mmask8)((1U << left) - 1),
                                     rows_512(g, c, sum, _mm512_cvtepi64_pd(sum)));
        }
        rows += rows_per_token;
    }
}
#endif

/* ---- constants for common shapes; orders are history + 1 ---- */

static void identity(const embla_ngram *g, const tile *t, int64_t *restrict rows)
{
    (void)g;
    for (size_t i = 0; i < t->count; i++) rows[i] = t->seen[i];
}

static void products(const embla_ngram *g, const tile *t, int64_t *restrict rows)
{
    if (g->rows_per_ngram == 8 && g->history == 3)
        hash_products(g, t, 4, 8, rows);
    else if (g->rows_per_ngram == 8 && g->history == 2)
        hash_products(g, t, 3, 8, rows);
    else
        hash_products(g, t, g->history + 1, g->rows_per_ngram, rows);
}

static void powers(const embla_ngram *g, const tile *t, int64_t *restrict rows)
{
    if (g->rows_per_ngram == 4 && g->history == 3)
        hash_powers(g, t, 4, 4, rows);
    else
        hash_powers(g, t, g->history + 1, g->rows_per_ngram, rows);
}

#if EMBLA_X86
EMBLA_AVX512 static void products_avx512(const embla_ngram *g, const tile *t,
                                         int64_t *restrict rows)
{
    if (g->rows_per_ngram == 8 && g->history == 3)
        products_512(g, t, 4, 8, rows);
    else if (g->rows_per_ngram == 8 && g->history == 2)
        products_512(g, t, 3, 8, rows);
    else
        products_512(g, t, g->history + 1, g->rows_per_ngram, rows);
}

EMBLA_AVX512 static void powers_avx512(const embla_ngram *g, const tile *t, int64_t *restrict rows)
{
    if (g->rows_per_ngram == 4 && g->history == 3)
        powers_512(g, t, 4, 12, rows);
    else
        powers_512(g, t, g->history + 1, g->rows_per_token, rows);
}
#endif

static hash_fn *const products_for[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(products, NULL, NULL, products_avx512);
static hash_fn *const powers_for[EMBLA_ISA_COUNT] =
    EMBLA_ISA_TABLE(powers, NULL, NULL, powers_avx512);

static hash_fn *choose_hash(const embla_ngram *g)
{
    if (g->kind == EMBLA_NGRAM_IDENTITY) return identity;
    bool sums = g->kind == EMBLA_NGRAM_LONGCAT;
    bool vectors =
        g->wide && (sums || g->rows_per_ngram % 8 == 0); /* the vector loops support these sizes */
    embla_isa isa = vectors ? embla_kernels_get()->isa : EMBLA_ISA_SCALAR;
    return sums ? EMBLA_ISA_PICK(powers_for, isa) : EMBLA_ISA_PICK(products_for, isa);
}

/* Computes the rows of one tile: tokens first .. first+TILE-1, or fewer at the end. */
static void run_tile(const job *j, size_t sequence, size_t first)
{
    tile t;
    t.count = j->length - first < TILE ? j->length - first : TILE;
    load_tile(j, sequence, first, &t);
    j->hash(j->ngram, &t, j->rows + (sequence * j->length + first) * j->ngram->rows_per_token);
}

/* Tiles are numbered through all sequences. */
static embla_status run_tiles(void *with, size_t first, size_t end, size_t slot)
{
    const job *j = with;
    const size_t each = (j->length + TILE - 1) / TILE; /* tiles of a sequence */
    size_t sequence = 0, number = first;               /* of the tile in its sequence */
    (void)slot;
    if (first > 0) { /* a division takes as long as the rows of a token */
        sequence = first / each;
        number = first % each;
    }
    for (size_t n = first; n < end; n++) {
        run_tile(j, sequence, number * TILE);
        if (++number == each) {
            number = 0;
            sequence++;
        }
    }
    return EMBLA_OK;
}

embla_status embla_ngram_rows(const embla_ngram *ngram, const int32_t *tokens, size_t batch,
                              size_t length, const embla_ngram_options *options, int64_t *rows)
{
    EMBLA_TRY(embla_options_check(options));
    job j = {.ngram = ngram,
             .tokens = tokens,
             .history = options ? options->history : NULL,
             .barrier = options ? options->barrier : NULL,
             .batch = batch,
             .length = length,
             .rows = rows};
    EMBLA_TRY(check(&j, options));
    j.hash = choose_hash(ngram);
    int threads = embla_threads_for(options ? options->threads : 0,
                                    batch * length * ngram->rows_per_token * sizeof *rows);
    return embla_share(threads, batch * ((length + TILE - 1) / TILE), 0, run_tiles, &j);
}
