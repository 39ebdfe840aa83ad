/* SPDX-License-Identifier: Apache-2.0 */
/* Levels, parts and their arithmetic. All loops use additions of doubles and operations on bits,
 * which every instruction set rounds alike.
 *
 * At level k a part of the high array is a multiple of the unit 2^(32k - 128), and a part of the
 * low array a multiple of 2^(32k - 160). A number below 2^31 units gives parts of at most 2^31, so
 * 2^19 of them have a sum of at most 2^50: a double represents it exactly.
 */
#include "cluster/exact.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/threads.h"

enum {
    BLOCK = EMBLA_EXACT_BLOCK,
    CHUNK = 256,   /* blocks that a thread processes at once */
    LEVELS = 9,    /* a float may have any of these.. */
    NO_NUMBER = 9, /* ..and this is the level of a NaN or an infinity */
    EXPONENT_MOST = 255
};

/* The unit of each level, and 1 / unit. */
static const double units[LEVELS] = {0x1p-128, 0x1p-96, 0x1p-64, 0x1p-32, 0x1p0,
                                     0x1p32,   0x1p64,  0x1p96,  0x1p128};
static const double scales[LEVELS] = {0x1p128, 0x1p96,  0x1p64,  0x1p32,  0x1p0,
                                      0x1p-32, 0x1p-64, 0x1p-96, 0x1p-128};

/* Adding this to a double below 2^51 rounds it to an integer, which is then in the last bits. */
static const double magic = 0x1.8p52;

EMBLA_BODY int64_t bits_of(double x)
{
    int64_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

EMBLA_BODY double double_of(int64_t bits)
{
    double x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

/* ---- adding ---- */

/* The bits of the largest absolute value of a block. A NaN has larger bits than any number. */
EMBLA_BODY uint32_t largest_body(const float *x)
{
    uint32_t most = 0;
    for (size_t i = 0; i < BLOCK; i++) {
        uint32_t bits = embla_bits(x[i]) & 0x7fffffffu;
        most = bits > most ? bits : most;
    }
    return most;
}

/* The lowest level at which a number is below 2^31 units. */
EMBLA_BODY int64_t level_of(uint32_t bits)
{
    uint32_t exponent = bits >> 23;
    return exponent == EXPONENT_MOST ? NO_NUMBER : (int64_t)((exponent + 2) / 32);
}

EMBLA_BODY void add_body(const float *x, double scale, int64_t *high, int64_t *low)
{
    for (size_t i = 0; i < BLOCK; i++) {
        double units_in_x = (double)x[i] * scale;
        double rounded = units_in_x + magic;
        double rest = units_in_x - (rounded - magic);
        high[i] += bits_of(rounded) - bits_of(magic);
        low[i] += bits_of(rest * 0x1p32 + magic) - bits_of(magic);
    }
}

/* Raises a block to a level. */
static void raise_block(int64_t *level, int64_t *parts, int64_t to)
{
    int64_t *high = parts, *low = parts + BLOCK;
    if (to <= *level) return;
    if (to == *level + 1)
        memcpy(low, high, BLOCK * sizeof *low);
    else
        memset(low, 0, BLOCK * sizeof *low);
    memset(high, 0, BLOCK * sizeof *high);
    *level = to;
}

EMBLA_BODY void take_body(float *x, size_t blocks, int64_t *levels, int64_t *parts)
{
    for (size_t b = 0; b < blocks; b++, x += BLOCK, parts += 2 * BLOCK) {
        uint32_t largest = largest_body(x);
        if (largest == 0) continue;
        raise_block(&levels[b], parts, level_of(largest));
        if (levels[b] != NO_NUMBER) add_body(x, scales[levels[b]], parts, parts + BLOCK);
        memset(x, 0, BLOCK * sizeof *x);
    }
}

EMBLA_ISA_FUNCTION(void, take, (float *x, size_t blocks, int64_t *levels, int64_t *parts),
                   take_body(x, blocks, levels, parts);)

/* ---- rounding ---- */

/* The sum of a high and a low part as a float. Carries first leave 0 <= low < 2^32. The sum is then
 * rounded to a double with an odd last bit if it is not exact, so that rounding that double to a
 * float is the only rounding that counts. */
EMBLA_BODY float round_parts(int64_t high, int64_t low, double unit)
{
    uint64_t shifted = (uint64_t)low + ((uint64_t)1 << 62); /* positive: its shift is a floor */
    int64_t whole = high + (int64_t)(shifted >> 32) - ((int64_t)1 << 30);
    int64_t fraction = (int64_t)(shifted & 0xffffffffu);
    double a = double_of(whole + bits_of(magic)) - magic;
    double b = (double_of(fraction + bits_of(magic)) - magic) * 0x1p-32;
    double sum = a + b, error = b - (sum - a);
    int64_t bits = bits_of(sum), even = ~bits & 1;
    int64_t inexact = (int64_t)(error != 0.0), outward = (int64_t)((error > 0.0) == (sum > 0.0));
    bits += (inexact & even) * (2 * outward - 1);
    return (float)(double_of(bits) * unit);
}

EMBLA_BODY void round_body(const int64_t *levels, const int64_t *parts, size_t blocks, float *out)
{
    for (size_t b = 0; b < blocks; b++, out += BLOCK, parts += 2 * BLOCK) {
        double unit = levels[b] == NO_NUMBER ? (double)NAN : units[levels[b]];
        for (size_t i = 0; i < BLOCK; i++) out[i] = round_parts(parts[i], parts[BLOCK + i], unit);
    }
}

EMBLA_ISA_FUNCTION(void, round_blocks,
                   (const int64_t *levels, const int64_t *parts, size_t blocks, float *out),
                   round_body(levels, parts, blocks, out);)

/* ---- chunks ---- */

/* Some blocks, and the numbers of the caller that belong to them. */
typedef struct {
    size_t blocks;
    float *x;
    size_t numbers; /* the last block of all may have fewer than BLOCK */
    int64_t *levels, *parts;
} chunk;

typedef void chunk_fn(const chunk *c);

static void for_chunks(const embla_exact *sums, float *x, int threads, chunk_fn *run)
{
    int64_t chunks = (int64_t)((sums->blocks + CHUNK - 1) / CHUNK);
    threads = embla_threads_for(threads, sums->bytes);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        size_t from = (size_t)i * CHUNK;
        chunk c = {.blocks = sums->blocks - from < CHUNK ? sums->blocks - from : CHUNK,
                   .x = x + from * BLOCK,
                   .levels = sums->levels + from,
                   .parts = sums->parts + from * 2 * BLOCK};
        c.numbers = c.blocks * BLOCK;
        if (sums->count - from * BLOCK < c.numbers) c.numbers = sums->count - from * BLOCK;
        run(&c);
    }
}

/* ---- memory ---- */

embla_status embla_exact_new(size_t count, embla_exact *out)
{
    embla_layout layout = {0};
    embla_exact s = {.count = count, .blocks = count / BLOCK + (count % BLOCK != 0)};
    void *memory = NULL;
    size_t levels = embla_layout_add(&layout, s.blocks + 1, sizeof(int64_t));
    size_t shared = embla_layout_add(&layout, s.blocks + 1, sizeof(int64_t));
    size_t parts = embla_layout_add(&layout, s.blocks, 2 * BLOCK * sizeof(int64_t));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu exact sums do not fit in memory", count);
    EMBLA_TRY(embla_mem_new(layout.bytes, "exact sums", &memory));
    s.bytes = layout.bytes;
    s.levels = (int64_t *)(void *)((char *)memory + levels);
    s.shared = (int64_t *)(void *)((char *)memory + shared);
    s.parts = (int64_t *)(void *)((char *)memory + parts);
    *out = s;
    return EMBLA_OK;
}

void embla_exact_free(embla_exact *sums)
{
    embla_mem_free(sums->levels, sums->bytes);
    *sums = (embla_exact){0};
}

/* ---- the calls ---- */

void embla_exact_clear(embla_exact *sums, int threads)
{
    threads = embla_threads_for(threads, sums->bytes);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t b = 0; b < sums->blocks; b++)
        memset(sums->parts + b * 2 * BLOCK, 0, 2 * BLOCK * sizeof *sums->parts);
    memset(sums->levels, 0, (sums->blocks + 1) * sizeof *sums->levels);
}

static void take_chunk(const chunk *c)
{
    size_t whole = c->numbers / BLOCK, rest = c->numbers % BLOCK;
    EMBLA_PICK(take)(c->x, whole, c->levels, c->parts);
    if (rest == 0) return;
    float last[BLOCK] = {0};
    memcpy(last, c->x + whole * BLOCK, rest * sizeof *last);
    EMBLA_PICK(take)(last, 1, c->levels + whole, c->parts + whole * 2 * BLOCK);
    memset(c->x + whole * BLOCK, 0, rest * sizeof *last);
}

static embla_status check_additions(int64_t additions)
{
    if (additions <= EMBLA_EXACT_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "sums of %" PRId64 " numbers or more; at most %d numbers have an exact sum",
                      additions, (int)EMBLA_EXACT_MOST);
}

embla_status embla_exact_take(embla_exact *sums, float *x, int threads)
{
    EMBLA_TRY(check_additions(sums->levels[sums->blocks] + 1));
    sums->levels[sums->blocks]++;
    for_chunks(sums, x, threads, take_chunk);
    return EMBLA_OK;
}

embla_status embla_exact_allreduce(embla_exact *sums, const embla_comm *comm, int threads)
{
    size_t blocks = sums->blocks;
    int64_t *levels = sums->shared;
    if (comm->size == 1) return EMBLA_OK;
    memcpy(levels, sums->levels, (blocks + 1) * sizeof *levels);
    EMBLA_TRY(
        comm->allreduce(comm->owner, levels, blocks + 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    EMBLA_TRY(check_additions(levels[blocks] * comm->size));
    int parallel = embla_threads_for(threads, sums->bytes);
    (void)parallel;
#pragma omp parallel for num_threads(parallel) if (parallel > 1) schedule(static)
    for (size_t b = 0; b < blocks; b++)
        raise_block(&sums->levels[b], sums->parts + b * 2 * BLOCK, levels[b]);
    sums->levels[blocks] = levels[blocks] * comm->size;
    return comm->allreduce(comm->owner, sums->parts, blocks * 2 * BLOCK, EMBLA_COMM_TYPE_INT64,
                           EMBLA_COMM_OP_SUM);
}

static void round_chunk(const chunk *c)
{
    size_t whole = c->numbers / BLOCK, rest = c->numbers % BLOCK;
    float last[BLOCK];
    EMBLA_PICK(round_blocks)(c->levels, c->parts, whole, c->x);
    if (rest == 0) return;
    EMBLA_PICK(round_blocks)(c->levels + whole, c->parts + whole * 2 * BLOCK, 1, last);
    memcpy(c->x + whole * BLOCK, last, rest * sizeof *last);
}

void embla_exact_round(const embla_exact *sums, float *out, int threads)
{
    for_chunks(sums, out, threads, round_chunk);
}
