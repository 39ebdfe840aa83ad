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
    ROUND = 16384, /* blocks that ranks exchange at once: 16 MiB */
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

/* Adds the blocks that begin at number `from` of n arrays. */
EMBLA_BODY void take_body(float *const *x, size_t n, size_t from, size_t blocks, int64_t *levels,
                          int64_t *parts)
{
    for (size_t b = 0; b < blocks; b++, from += BLOCK, parts += 2 * BLOCK)
        for (size_t k = 0; k < n; k++) {
            float *block = x[k] + from;
            uint32_t largest = largest_body(block);
            if (largest == 0) continue;
            raise_block(&levels[b], parts, level_of(largest));
            if (levels[b] < NO_NUMBER) add_body(block, scales[levels[b]], parts, parts + BLOCK);
            memset(block, 0, BLOCK * sizeof *block);
        }
}

EMBLA_ISA_FUNCTION(void, take,
                   (float *const *x, size_t n, size_t from, size_t blocks, int64_t *levels,
                    int64_t *parts),
                   take_body(x, n, from, blocks, levels, parts);)

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
        double unit = levels[b] < NO_NUMBER ? units[levels[b]] : (double)NAN;
        for (size_t i = 0; i < BLOCK; i++) out[i] = round_parts(parts[i], parts[BLOCK + i], unit);
    }
}

EMBLA_ISA_FUNCTION(void, round_blocks,
                   (const int64_t *levels, const int64_t *parts, size_t blocks, float *out),
                   round_body(levels, parts, blocks, out);)

/* ---- memory ---- */

/* Blocks that ranks exchange at a time: less if there are fewer. */
static size_t round_of(const embla_exact *s)
{
    return s->blocks < ROUND ? s->blocks : ROUND;
}

embla_status embla_exact_new(size_t count, size_t ranks, embla_exact *out)
{
    embla_layout layout = {0};
    embla_exact s = {
        .count = count, .blocks = count / BLOCK + (count % BLOCK != 0), .ranks = ranks};
    void *memory = NULL;
    size_t at[6], round = ranks > 1 ? round_of(&s) + ranks : 0; /* slices may be rounded up */
    at[0] = embla_layout_add(&layout, s.blocks + 1, sizeof *s.levels);
    at[1] = embla_layout_add(&layout, s.blocks + 1, sizeof *s.shared);
    at[2] = embla_layout_add(&layout, s.blocks, 2 * BLOCK * sizeof *s.parts);
    at[3] = embla_layout_add(&layout, 2 * ranks, sizeof *s.counts);
    at[4] = embla_layout_add(&layout, round, 2 * BLOCK * sizeof *s.received);
    at[5] = embla_layout_add(&layout, 2 * round, BLOCK * sizeof *s.rounded);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu exact sums do not fit in memory", count);
    EMBLA_TRY(embla_mem_new(layout.bytes, "exact sums", &memory));
    char *block = memory;
    s.bytes = layout.bytes;
    s.levels = (int64_t *)(void *)(block + at[0]);
    s.shared = (int64_t *)(void *)(block + at[1]);
    s.parts = (int64_t *)(void *)(block + at[2]);
    s.counts = (size_t *)(void *)(block + at[3]);
    s.received = (int64_t *)(void *)(block + at[4]);
    s.rounded = (float *)(void *)(block + at[5]);
    *out = s;
    return EMBLA_OK;
}

void embla_exact_free(embla_exact *sums)
{
    embla_mem_free(sums->levels, sums->bytes);
    *sums = (embla_exact){0};
}

void embla_exact_clear(embla_exact *sums, int threads)
{
    threads = embla_threads_for(threads, sums->bytes);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t b = 0; b < sums->blocks; b++)
        memset(sums->parts + b * 2 * BLOCK, 0, 2 * BLOCK * sizeof *sums->parts);
    memset(sums->levels, 0, (sums->blocks + 1) * sizeof *sums->levels);
}

/* ---- taking numbers ---- */

static embla_status check_additions(int64_t additions)
{
    if (additions <= EMBLA_EXACT_MOST) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "sums of %" PRId64 " numbers or more; at most %d numbers have an exact sum",
                      additions, (int)EMBLA_EXACT_MOST);
}

/* The last block, if it is not full. */
static void take_rest(embla_exact *s, float *const *x, size_t n)
{
    size_t whole = s->count / BLOCK, rest = s->count % BLOCK;
    float last[BLOCK] = {0}, *const only[1] = {last};
    for (size_t k = 0; k < n && rest > 0; k++) {
        memcpy(last, x[k] + whole * BLOCK, rest * sizeof *last);
        memset(x[k] + whole * BLOCK, 0, rest * sizeof *last);
        EMBLA_PICK(take)(only, 1, 0, 1, s->levels + whole, s->parts + whole * 2 * BLOCK);
    }
}

embla_status embla_exact_take(embla_exact *sums, float *const *x, size_t n, int threads)
{
    size_t whole = sums->count / BLOCK;
    int64_t chunks = (int64_t)((whole + CHUNK - 1) / CHUNK);
    EMBLA_TRY(check_additions(sums->levels[sums->blocks] + (int64_t)n));
    sums->levels[sums->blocks] += (int64_t)n;
    threads = embla_threads_for(threads, sums->bytes);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        size_t from = (size_t)i * CHUNK, blocks = whole - from < CHUNK ? whole - from : CHUNK;
        EMBLA_PICK(take)
        (x, n, from * BLOCK, blocks, sums->levels + from, sums->parts + from * 2 * BLOCK);
    }
    take_rest(sums, x, n);
    return EMBLA_OK;
}

/* ---- sums over ranks ---- */

/* Rounds blocks from .. from + blocks - 1; parts are theirs. */
static void round_some(const embla_exact *s, size_t from, size_t blocks, const int64_t *parts,
                       int threads, float *out)
{
    int64_t chunks = (int64_t)((blocks + CHUNK - 1) / CHUNK);
    threads = embla_threads_for(threads, blocks * 2 * BLOCK * sizeof *parts);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (int64_t i = 0; i < chunks; i++) {
        size_t at = (size_t)i * CHUNK, n = blocks - at < CHUNK ? blocks - at : CHUNK;
        EMBLA_PICK(round_blocks)
        (s->levels + from + at, parts + at * 2 * BLOCK, n, out + at * BLOCK);
    }
}

/* Adds the parts of other ranks to those of rank 0: `blocks` blocks of each. */
static void add_received(embla_exact *s, size_t blocks, int threads)
{
    size_t numbers = blocks * 2 * BLOCK;
    threads = embla_threads_for(threads, s->ranks * numbers * sizeof *s->received);
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t b = 0; b < blocks; b++)
        for (size_t r = 1; r < s->ranks; r++) {
            int64_t *to = s->received + b * 2 * BLOCK;
            const int64_t *from = to + r * numbers;
            for (size_t i = 0; i < 2 * BLOCK; i++) to[i] += from[i];
        }
}

/* Rank r sums and rounds the r-th slice of some blocks; then every rank gets all slices. That sends
 * less than a sum of integers on every rank. */
static embla_status sum_some(embla_exact *s, const embla_comm *c, size_t from, size_t blocks,
                             int threads, float *out)
{
    size_t slice = (blocks + s->ranks - 1) / s->ranks, mine = 0, rank = (size_t)c->rank;
    size_t *send = s->counts, *receive = s->counts + s->ranks;
    float *all = s->rounded + slice * BLOCK;
    for (size_t r = 0; r < s->ranks; r++) {
        size_t left = r * slice < blocks ? blocks - r * slice : 0;
        send[r] = left < slice ? left : slice;
    }
    mine = send[rank];
    for (size_t r = 0; r < s->ranks; r++) receive[r] = mine;
    const embla_exchange exchange = {.send = s->parts + from * 2 * BLOCK,
                                     .send_counts = send,
                                     .receive = s->received,
                                     .receive_counts = receive,
                                     .unit = 2 * BLOCK * sizeof *s->parts};
    EMBLA_TRY(c->alltoallv(c->owner, &exchange));
    add_received(s, mine, threads);
    if (mine > 0) round_some(s, from + rank * slice, mine, s->received, threads, s->rounded);
    EMBLA_TRY(c->allgather(c->owner, s->rounded, all, slice * BLOCK * sizeof *all));
    size_t numbers = blocks * BLOCK, left = s->count - from * BLOCK;
    memcpy(out + from * BLOCK, all, (numbers < left ? numbers : left) * sizeof *out);
    return EMBLA_OK;
}

static void round_all(const embla_exact *s, int threads, float *out)
{
    size_t whole = s->count / BLOCK, rest = s->count % BLOCK;
    float last[BLOCK];
    round_some(s, 0, whole, s->parts, threads, out);
    if (rest == 0) return;
    round_some(s, whole, 1, s->parts + whole * 2 * BLOCK, 1, last);
    memcpy(out + whole * BLOCK, last, rest * sizeof *last);
}

embla_status embla_exact_sum(embla_exact *sums, const embla_comm *comm, int threads, float *out)
{
    size_t blocks = sums->blocks, round = round_of(sums);
    int64_t *levels = sums->shared;
    if (comm->size == 1) {
        round_all(sums, threads, out);
        return EMBLA_OK;
    }
    memcpy(levels, sums->levels, (blocks + 1) * sizeof *levels);
    EMBLA_TRY(
        comm->allreduce(comm->owner, levels, blocks + 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    EMBLA_TRY(check_additions(levels[blocks] * comm->size));
    int parallel = embla_threads_for(threads, sums->bytes);
    (void)parallel;
#pragma omp parallel for num_threads(parallel) if (parallel > 1) schedule(static)
    for (size_t b = 0; b < blocks; b++)
        raise_block(&sums->levels[b], sums->parts + b * 2 * BLOCK, levels[b]);
    for (size_t from = 0; from < blocks; from += round)
        EMBLA_TRY(sum_some(sums, comm, from, blocks - from < round ? blocks - from : round, threads,
                           out));
    return EMBLA_OK;
}
