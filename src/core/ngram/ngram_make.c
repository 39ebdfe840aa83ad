/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a hasher. Constants that a file states are checked; the others are computed.
 *
 *   sizes        engram, qwen: primes from base on, consecutive in the order (table, order,
 *                hash); longcat: odd numbers, floor(ratio vocab + 2 i + 1)
 *   offsets      sums of the preceding sizes
 *   multipliers  2 r + 1 with r below H = (2^63 - 1) / vocab / 2, so that token x multiplier fits
 *                in 63 bits; r comes from numpy's default_rng(seed + 10007 layer) (engram) or
 *                from splitmix64 of seed + 10007 table (qwen)
 *
 * numpy does not guarantee that its random stream stays the same. This file implements the stream
 * that the published tables were made with.
 */
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "ngram/ngram.h"

__extension__ typedef unsigned __int128 wide;

enum { LAYER_STEP = 10007 };

/* ---- primes ---- */

/* x y modulo n, for numbers up to 2^41: y in two parts, so that no product exceeds 64 bits. */
static uint64_t product_mod(uint64_t x, uint64_t y, uint64_t n)
{
    enum { PART = 21 };
    uint64_t high = x * (y >> PART) % n;
    return ((high << PART) + x * (y & ((UINT64_C(1) << PART) - 1))) % n;
}

static uint64_t power_mod(uint64_t x, uint64_t exponent, uint64_t n)
{
    uint64_t result = 1;
    for (; exponent > 0; exponent >>= 1) {
        if (exponent & 1) result = product_mod(result, x, n);
        x = product_mod(x, x, n);
    }
    return result;
}

/* Miller-Rabin test. With these bases it is exact below 3.4e14; sizes are below 2^41. */
static bool is_prime(uint64_t n)
{
    static const uint64_t bases[] = {2, 3, 5, 7, 11, 13, 17};
    enum { BASES = sizeof bases / sizeof bases[0] };
    uint64_t odd = n - 1;
    unsigned twos = 0;
    if (n < 2) return false;
    for (size_t i = 0; i < BASES; i++)
        if (n % bases[i] == 0) return n == bases[i];
    for (; odd % 2 == 0; odd /= 2) twos++;
    for (size_t i = 0; i < BASES; i++) {
        uint64_t x = power_mod(bases[i], odd, n);
        bool passed = x == 1 || x == n - 1;
        for (unsigned k = 1; k < twos && !passed; k++) {
            x = product_mod(x, x, n);
            passed = x == n - 1;
        }
        if (!passed) return false;
    }
    return true;
}

embla_status embla_ngram_primes(int64_t base, size_t skip, size_t count, int64_t *out)
{
    int64_t at = base - 1;
    if (base < 1 || base > EMBLA_ROWS_MOST)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "base is %" PRId64
            "; it must be from 1 to 2^40 (sizes of hashes are the primes from base on)",
            base);
    for (size_t i = 0; i < skip + count; i++) {
        do at++;
        while (!is_prime((uint64_t)at));
        if (i >= skip) out[i - skip] = at;
    }
    return EMBLA_OK;
}

/* ---- numpy's default_rng: SeedSequence, PCG64 ---- */

static uint32_t seed_hash(uint32_t value, uint32_t *constant, uint32_t factor)
{
    value ^= *constant;
    *constant *= factor;
    value *= *constant;
    return value ^ value >> 16;
}

static uint32_t seed_mix(uint32_t x, uint32_t y)
{
    uint32_t value = UINT32_C(0xCA01F9DD) * x - UINT32_C(0x4973F715) * y;
    return value ^ value >> 16;
}

/* SeedSequence(entropy).generate_state(4, uint64). A pool of four words is enough here. */
static void seed_state(uint64_t entropy, uint64_t out[4])
{
    enum { POOL = 4 };
    uint32_t pool[POOL] = {(uint32_t)entropy, (uint32_t)(entropy >> 32)};
    uint32_t constant = UINT32_C(0x43B0D7E5), words[8];
    for (int i = 0; i < POOL; i++) pool[i] = seed_hash(pool[i], &constant, UINT32_C(0x931E8875));
    for (int from = 0; from < POOL; from++)
        for (int to = 0; to < POOL; to++)
            if (from != to)
                pool[to] =
                    seed_mix(pool[to], seed_hash(pool[from], &constant, UINT32_C(0x931E8875)));
    constant = UINT32_C(0x8B51F9DD);
    for (int i = 0; i < 8; i++)
        words[i] = seed_hash(pool[i % POOL], &constant, UINT32_C(0x58F38DED));
    for (int i = 0; i < 4; i++) out[i] = words[2 * i] | (uint64_t)words[2 * i + 1] << 32;
}

typedef struct {
    wide state, step;
} pcg64;

static void pcg_step(pcg64 *p)
{
    const wide factor = (wide)UINT64_C(2549297995355413924) << 64 | UINT64_C(4865540595714422341);
    p->state = p->state * factor + p->step;
}

static pcg64 pcg_seeded(uint64_t seed)
{
    uint64_t q[4];
    pcg64 p = {0};
    seed_state(seed, q);
    p.step = ((wide)q[2] << 64 | q[3]) << 1 | 1;
    pcg_step(&p);
    p.state += (wide)q[0] << 64 | q[1];
    pcg_step(&p);
    return p;
}

static uint64_t pcg_next(pcg64 *p)
{
    pcg_step(p);
    uint64_t x = (uint64_t)(p->state >> 64) ^ (uint64_t)p->state;
    unsigned rotation = (unsigned)(p->state >> 122);
    return x >> rotation | x << (-rotation & 63);
}

/* A uniform number below limit, by Lemire's method. numpy uses it for limits above 2^32. */
static uint64_t pcg_below(pcg64 *p, uint64_t limit)
{
    uint64_t threshold = (UINT64_MAX - (limit - 1)) % limit;
    wide product;
    do product = (wide)pcg_next(p) * limit;
    while ((uint64_t)product < threshold);
    return (uint64_t)(product >> 64);
}

void embla_ngram_numpy(uint64_t seed, size_t count, uint64_t *out)
{
    pcg64 p = pcg_seeded(seed);
    for (size_t i = 0; i < count; i++) out[i] = pcg_next(&p);
}

/* ---- multipliers ---- */

static uint64_t half_bound(int64_t vocab)
{
    uint64_t half = (uint64_t)(INT64_MAX / vocab / 2);
    return half > 0 ? half : 1;
}

void embla_ngram_engram_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out)
{
    pcg64 p = pcg_seeded(seed);
    for (size_t i = 0; i < orders; i++)
        out[i] = (int64_t)(2 * pcg_below(&p, half_bound(vocab)) + 1);
}

/* EMBLA_GOLDEN is added twice: here and in splitmix64 itself, as in the published code. */
void embla_ngram_qwen_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out)
{
    for (size_t i = 0; i < orders; i++)
        out[i] =
            (int64_t)(2 * (embla_splitmix64(seed + EMBLA_GOLDEN * (i + 1)) % half_bound(vocab)) +
                      1);
}

/* ---- checks ---- */

static bool is_hashed(const embla_ngram_parameters *p)
{
    return p->kind != EMBLA_NGRAM_IDENTITY;
}

static bool has_products(const embla_ngram_parameters *p)
{
    return p->kind == EMBLA_NGRAM_ENGRAM || p->kind == EMBLA_NGRAM_QWEN;
}

static embla_status check_counts(const embla_ngram_parameters *p)
{
    if (p->kind < EMBLA_NGRAM_IDENTITY || p->kind > EMBLA_NGRAM_LONGCAT)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "unknown kind of n-gram hasher: %d; kinds are 0 to %d", (int)p->kind,
                          (int)EMBLA_NGRAM_LONGCAT);
    if (p->vocab < 1 || p->vocab > EMBLA_NGRAM_VOCAB_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "vocab is %" PRId64 "; an n-gram hasher supports 1 to %d tokens",
                          p->vocab, (int)EMBLA_NGRAM_VOCAB_MOST);
    if (p->multiple < 0 || p->multiple > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "multiple is %" PRId64 "; it must be from 0 to 2^40",
                          p->multiple);
    if (p->fold && p->kind != EMBLA_NGRAM_ENGRAM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "kind %d has no fold; only engram has one",
                          (int)p->kind);
    if (p->fold && p->fold->count != p->vocab)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the fold has %" PRId64 " different numbers, but vocab is %" PRId64
                          "; every row number would be wrong",
                          p->fold->count, p->vocab);
    if (!is_hashed(p)) return EMBLA_OK;
    if (p->orders < 2 || p->orders > EMBLA_NGRAM_ORDERS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "orders is %" PRId32 "; it must be from 2 to %d",
                          p->orders, (int)EMBLA_NGRAM_ORDERS_MOST);
    if (p->rows_per_ngram < 1 || p->rows_per_ngram > EMBLA_NGRAM_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "rows_per_ngram is %" PRId32 "; it must be from 1 to %d",
                          p->rows_per_ngram, (int)EMBLA_NGRAM_ROWS_MOST);
    return EMBLA_OK;
}

/* pad and EOS must be tokens of the vocabulary. */
static embla_status check_special(const embla_ngram_parameters *p)
{
    bool padded = p->kind == EMBLA_NGRAM_ENGRAM || p->kind == EMBLA_NGRAM_IDENTITY;
    if (padded && (p->pad < 0 || p->pad >= p->vocab))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "pad is %" PRId32 ", which is not a token of the vocabulary of %" PRId64,
                          p->pad, p->vocab);
    if (!padded && (p->eos < -1 || p->eos >= p->vocab))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "eos is %" PRId32 ", which is not a token of the vocabulary of %" PRId64,
                          p->eos, p->vocab);
    if (p->kind == EMBLA_NGRAM_QWEN && p->eos < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "eos is %" PRId32
                          "; qwen needs an EOS token, which fills the positions before the start",
                          p->eos);
    if (p->eos_rule < EMBLA_NGRAM_EOS_REFERENCE || p->eos_rule > EMBLA_NGRAM_EOS_IGNORED)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown EOS rule: %d; rules are 0 to %d",
                          (int)p->eos_rule, (int)EMBLA_NGRAM_EOS_IGNORED);
    return EMBLA_OK;
}

static embla_status check_constants(const embla_ngram_parameters *p)
{
    if (p->offsets && !p->sizes)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "offsets of hashes are given, but their sizes are NULL");
    if ((p->sizes && !is_hashed(p)) || (p->multipliers && !has_products(p)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%s are given, but kind %d has none",
                          p->multipliers ? "multipliers" : "sizes of hashes", (int)p->kind);
    for (int32_t i = 0; p->multipliers && i < p->orders; i++) {
        int64_t m = p->multipliers[i];
        if (m < 1 || m % 2 == 0 || (p->vocab > 1 && m > INT64_MAX / (p->vocab - 1)))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "multiplier %" PRId32 " is %" PRId64
                              "; it must be odd, and its product with %" PRId64
                              " must be below 2^63",
                              i, m, p->vocab - 1);
    }
    return EMBLA_OK;
}

/* Finds the number of this table among the tables of the model, from 0. */
static embla_status table_number(const embla_ngram_parameters *p, size_t *out)
{
    *out = 0;
    if (p->kind == EMBLA_NGRAM_QWEN) {
        if (p->layer < 0 || p->layer >= EMBLA_NGRAM_LAYERS_MOST)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "layer is %" PRId32 "; the number of a table must be from 0 to %d",
                              p->layer, (int)EMBLA_NGRAM_LAYERS_MOST - 1);
        *out = (size_t)p->layer;
    }
    if (p->kind != EMBLA_NGRAM_ENGRAM) return EMBLA_OK;
    if (p->layer < 0 || p->seed < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "layer is %" PRId32 " and seed is %" PRId64 "; both must be 0 or greater",
                          p->layer, p->seed);
    if (p->layer_count > EMBLA_NGRAM_LAYERS_MOST || (p->layer_count > 0 && !p->layers))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "layer_count is %zu%s; at most %d layers are supported", p->layer_count,
                          p->layers ? "" : ", but layers is NULL", (int)EMBLA_NGRAM_LAYERS_MOST);
    for (size_t i = 0; i < p->layer_count; i++)
        for (size_t k = 0; k <= i; k++)
            if (p->layers[i] < 0 || (k < i && p->layers[k] == p->layers[i]))
                return embla_fail(EMBLA_ERR_ARGUMENT,
                                  "layer %" PRId32
                                  " at index %zu of the layers is negative or occurs twice",
                                  p->layers[i], i);
    while (*out < p->layer_count && p->layers[*out] != p->layer) ++*out;
    if (p->layer_count > 0 && *out == p->layer_count)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "layer %" PRId32 " is not one of the %zu layers with a table (%" PRId32
                          " to %" PRId32 ")",
                          p->layer, p->layer_count, p->layers[0], p->layers[p->layer_count - 1]);
    return EMBLA_OK;
}

/* ---- creating ---- */

static embla_status fill_sizes(embla_ngram *g, const embla_ngram_parameters *p, size_t table)
{
    if (p->sizes) {
        memcpy(g->sizes, p->sizes, g->rows_per_token * sizeof *g->sizes);
    } else if (has_products(p)) {
        EMBLA_TRY(
            embla_ngram_primes(p->base, table * g->rows_per_token, g->rows_per_token, g->sizes));
    } else {
        double most = (double)EMBLA_ROWS_MOST;
        double first = p->ratio * (double)p->vocab;
        if (!(first >= 0 && first <= most)) /* also true for NaN */
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "ratio %g times a vocabulary of %" PRId64
                              " is out of range; a hash must have 1 to 2^40 rows",
                              p->ratio, p->vocab);
        /* Added one by one as in Python: if ratio is not an integer, the order of additions
         * matters. */
        for (size_t i = 0; i < g->rows_per_token; i++)
            g->sizes[i] = (int64_t)(first + (double)(2 * i) + 1.0);
    }
    return EMBLA_OK;
}

static embla_status fill_offsets(embla_ngram *g, const embla_ngram_parameters *p)
{
    int64_t sum = 0, end = 0;
    g->wide = true;
    for (size_t i = 0; i < g->rows_per_token; i++) {
        int64_t size = g->sizes[i], at = p->offsets ? p->offsets[i] : sum;
        if (size < 1 || size > EMBLA_ROWS_MOST)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "hash %zu has %" PRId64 " rows; it must have 1 to 2^40", i, size);
        if (at < 0 || at > EMBLA_ROWS_MOST - size)
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "hash %zu has rows %" PRId64 " to %" PRId64
                              "; a table has at most 2^40 rows",
                              i, at, at + (at < 0 ? 0 : size - 1));
        if (i > 0 && at < g->offsets[i - 1])
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "hash %zu begins at row %" PRId64
                              ", before the previous hash, which begins at %" PRId64,
                              i, at, g->offsets[i - 1]);
        g->offsets[i] = at;
        g->inverses[i] = UINT64_MAX / (uint64_t)size;
        g->guesses[i] = 1.0 / (double)size * (1.0 - 0x1p-50);
        g->wide = g->wide && size >= 1 << 14 && size < (int64_t)1 << 32;
        sum = at + size;
        if (sum > end) end = sum;
    }
    g->used = end;
    return EMBLA_OK;
}

/* A sum is at most orders * (vocab - 1) * (size - 1), or vocab - 1 if size is 1. */
static embla_status fill_powers(embla_ngram *g)
{
    for (size_t c = 0; c < g->rows_per_token; c++) {
        uint64_t size = (uint64_t)g->sizes[c], vocab = (uint64_t)g->vocab, most;
        uint64_t power = 1 % size;
        if (!embla_mul_ok(vocab, size, &most) || !embla_mul_ok(most, g->orders, &most))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "the sum of %zu products of tokens below %" PRId64
                              " and numbers below %" PRId64 " exceeds 2^64",
                              g->orders, g->vocab, g->sizes[c]);
        g->wide = g->wide && most <= (uint64_t)INT64_MAX;
        for (size_t s = 0; s < c / g->rows_per_ngram + 2; s++) {
            g->powers[s * g->padded + c] = power;
            power = power * vocab % size;
        }
    }
    return EMBLA_OK;
}

static embla_status pad_rows(embla_ngram *g, int64_t multiple)
{
    int64_t step = multiple > 0 ? multiple : 1;
    int64_t rows = (g->used + step - 1) / step * step; /* both are below 2^41 */
    if (rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows padded to a multiple of %" PRId64 " become %" PRId64
                          "; a table has at most 2^40 rows",
                          g->used, step, rows);
    g->rows = rows;
    return EMBLA_OK;
}

/* Sets what load_tile (ngram.c) needs to know about each kind. */
static void fill_rules(embla_ngram *g, const embla_ngram_parameters *p)
{
    bool nothing = p->kind == EMBLA_NGRAM_LONGCAT && p->eos_rule == EMBLA_NGRAM_EOS_ZERO;
    g->stop = -1;
    if (p->kind == EMBLA_NGRAM_QWEN || p->kind == EMBLA_NGRAM_LONGCAT) {
        g->pad = -1;
        g->wall = p->eos < 0 || nothing ? 0 : (uint32_t)p->eos;
        g->wall_alone = p->eos < 0 || nothing;
        bool ends = p->kind == EMBLA_NGRAM_QWEN || p->eos_rule != EMBLA_NGRAM_EOS_IGNORED;
        g->stop = ends ? p->eos : -1;
        g->stop_nothing = nothing;
        g->filler = p->kind == EMBLA_NGRAM_QWEN ? (uint32_t)p->eos : 0;
        g->eos = p->eos;
    } else {
        g->eos = -1;
        g->pad = p->pad;
        g->filler = g->wall = (uint32_t)p->pad;
        g->wall_alone = true;
    }
    g->layer = has_products(p) ? p->layer : -1;
    g->fold = p->fold;
    g->folded = p->fold ? p->fold->values : NULL;
    g->tokens = p->fold ? p->fold->tokens : p->vocab;
}

static void fill_multipliers(embla_ngram *g, const embla_ngram_parameters *p)
{
    uint64_t seed = (uint64_t)p->seed + (uint64_t)LAYER_STEP * (uint64_t)p->layer;
    if (p->multipliers)
        memcpy(g->multipliers, p->multipliers, g->orders * sizeof *g->multipliers);
    else if (p->kind == EMBLA_NGRAM_ENGRAM)
        embla_ngram_engram_multipliers(p->vocab, seed, g->orders, g->multipliers);
    else
        embla_ngram_qwen_multipliers(p->vocab, seed, g->orders, g->multipliers);
}

static embla_status fill(embla_ngram *g, const embla_ngram_parameters *p, size_t table)
{
    fill_rules(g, p);
    g->used = p->vocab;
    if (is_hashed(p)) {
        EMBLA_TRY(fill_sizes(g, p, table));
        EMBLA_TRY(fill_offsets(g, p));
    }
    if (g->multipliers) fill_multipliers(g, p);
    if (g->powers) EMBLA_TRY(fill_powers(g));
    return pad_rows(g, p->multiple);
}

/* Allocates the hasher and all its arrays as one block. */
static embla_status allocate(const embla_ngram_parameters *p, embla_ngram **out)
{
    bool hashed = is_hashed(p), products = has_products(p);
    size_t orders = hashed ? (size_t)p->orders : 1,
           rows_per_ngram = hashed ? (size_t)p->rows_per_ngram : 1;
    size_t rows_per_token = hashed ? (orders - 1) * rows_per_ngram : 1;
    size_t listed = hashed ? (rows_per_token + 7) / 8 * 8 : 0;
    embla_layout layout = {0}; /* at most 448 x 8 numbers in an array: cannot be too large */
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_ngram));
    size_t multipliers = embla_layout_add(&layout, products ? orders : 0, sizeof(int64_t));
    size_t sizes = embla_layout_add(&layout, listed, sizeof(int64_t));
    size_t offsets = embla_layout_add(&layout, listed, sizeof(int64_t));
    size_t inverses = embla_layout_add(&layout, listed, sizeof(uint64_t));
    size_t guesses = embla_layout_add(&layout, listed, sizeof(double));
    size_t powers = embla_layout_add(&layout, products ? 0 : listed * orders, sizeof(uint64_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "an n-gram hasher", &memory));
    char *block = memory;
    embla_ngram *g = memory;
    *g = (embla_ngram){.bytes = layout.bytes,
                       .kind = p->kind,
                       .vocab = p->vocab,
                       .orders = orders,
                       .rows_per_ngram = rows_per_ngram,
                       .rows_per_token = rows_per_token,
                       .padded = listed,
                       .history = orders - 1};
    if (products) g->multipliers = (int64_t *)(void *)(block + multipliers);
    if (hashed) {
        g->sizes = (int64_t *)(void *)(block + sizes);
        g->offsets = (int64_t *)(void *)(block + offsets);
        g->inverses = (uint64_t *)(void *)(block + inverses);
        g->guesses = (double *)(void *)(block + guesses);
    }
    if (hashed && !products) g->powers = (uint64_t *)(void *)(block + powers);
    *out = g;
    return EMBLA_OK;
}

embla_status embla_ngram_new(const embla_ngram_parameters *parameters, embla_ngram **out)
{
    EMBLA_TRY(embla_options_check(parameters));
    embla_ngram *g = NULL;
    size_t table = 0;
    EMBLA_NEED(parameters);
    EMBLA_NEED(out);
    EMBLA_TRY(check_counts(parameters));
    EMBLA_TRY(check_special(parameters));
    EMBLA_TRY(check_constants(parameters));
    EMBLA_TRY(table_number(parameters, &table));
    EMBLA_TRY(allocate(parameters, &g));
    embla_status status = fill(g, parameters, table);
    if (status != EMBLA_OK) {
        embla_ngram_free(g);
        return status;
    }
    *out = g;
    return EMBLA_OK;
}

void embla_ngram_free(embla_ngram *ngram)
{
    if (!ngram) return;
    embla_fold_free(ngram->own);
    embla_mem_free(ngram, ngram->bytes);
}

const embla_fold *embla_ngram_fold(const embla_ngram *ngram)
{
    return ngram ? ngram->fold : NULL;
}

embla_status embla_ngram_describe(const embla_ngram *ngram, embla_ngram_info *out)
{
    EMBLA_NEED(ngram);
    EMBLA_NEED(out);
    bool ignored = ngram->kind == EMBLA_NGRAM_LONGCAT && ngram->eos >= 0 && ngram->stop < 0;
    *out = (embla_ngram_info){.kind = ngram->kind,
                              .tokens = ngram->tokens,
                              .vocab = ngram->vocab,
                              .rows = ngram->rows,
                              .used = ngram->used,
                              .rows_per_token = ngram->rows_per_token,
                              .history = ngram->history,
                              .orders = (int32_t)ngram->orders,
                              .rows_per_ngram = (int32_t)ngram->rows_per_ngram,
                              .layer = ngram->layer,
                              .pad = ngram->pad,
                              .eos = ngram->eos,
                              .multipliers = ngram->multipliers,
                              .sizes = ngram->sizes,
                              .offsets = ngram->offsets,
                              .folded = ngram->folded,
                              .eos_rule = ngram->stop_nothing ? EMBLA_NGRAM_EOS_ZERO
                                          : ignored           ? EMBLA_NGRAM_EOS_IGNORED
                                                              : EMBLA_NGRAM_EOS_REFERENCE};
    return EMBLA_OK;
}
