/* SPDX-License-Identifier: Apache-2.0 */
/* Levels, parts and their arithmetic. All loops use additions of doubles and operations on bits,
 * which every instruction set rounds alike.
 *
 * At level k a part of the high array is a multiple of the unit 2^(32k - 128), and a part of the
 * low array a multiple of 2^(32k - 160). A number below 2^31 units gives parts of at most 2^31, so
 * 2^19 of them have a sum of at most 2^50: a double represents it exactly.
 *
 * Ranks exchange parts in rounds, because all at once would need as much memory again. What a round
 * sends to rank 0, 1, .. must follow each other. So tiles are kept in that order: the first tiles
 * of all slices, then the next ones.
 */
#include "cluster/exact.h"

#include <math.h>
#include <string.h>

#include "base/half.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"

enum {
    BLOCK = EMBLA_EXACT_BLOCK,
    TILE = EMBLA_EXACT_TILE / BLOCK, /* blocks of a tile */
    NUMBERS = TILE * 2 * BLOCK,      /* parts of a tile: 64 KiB */
    ROUND = 256,   /* tiles that ranks exchange at once, if there are fewer ranks: 16 MiB */
    EMPTY = -1,    /* the level of a block that is 0, and whose parts were not written */
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
    if (*level != EMPTY && to == *level + 1)
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
        if (levels[b] == EMPTY) {
            memset(out, 0, BLOCK * sizeof *out);
            continue;
        }
        double unit = levels[b] < NO_NUMBER ? units[levels[b]] : (double)NAN;
        for (size_t i = 0; i < BLOCK; i++) out[i] = round_parts(parts[i], parts[BLOCK + i], unit);
    }
}

EMBLA_ISA_FUNCTION(void, round_blocks,
                   (const int64_t *levels, const int64_t *parts, size_t blocks, float *out),
                   round_body(levels, parts, blocks, out);)

/* ---- memory ---- */

/* Tiles of each rank in the round that begins at tile k of a slice. */
static size_t tiles_at(const embla_exact *s, size_t k)
{
    return s->slice - k < s->round ? s->slice - k : s->round;
}

/* The parts of a tile. */
static int64_t *parts_of(const embla_exact *s, size_t tile)
{
    size_t rank = tile / s->slice, k = tile % s->slice, begin = k / s->round * s->round;
    return s->parts + (begin * s->ranks + rank * tiles_at(s, begin) + k - begin) * NUMBERS;
}

/* Blocks of rank r in that round. */
static size_t blocks_at(const embla_exact *s, size_t r, size_t k)
{
    size_t from = (r * s->slice + k) * TILE, most = tiles_at(s, k) * TILE;
    size_t left = from < s->blocks ? s->blocks - from : 0;
    return left < most ? left : most;
}

embla_status embla_exact_new(size_t count, size_t ranks, embla_exact *out)
{
    embla_layout layout = {0};
    size_t each = ranks < ROUND ? ROUND / ranks : 1;
    embla_exact s = {.count = count,
                     .blocks = count / BLOCK + (count % BLOCK != 0),
                     .ranks = ranks,
                     .slice = embla_exact_slice(count, ranks) / EMBLA_EXACT_TILE};
    void *memory = NULL;
    size_t at[4];
    s.round = s.slice < each ? s.slice : each;
    at[0] = embla_layout_add(&layout, s.blocks + 1, sizeof *s.levels);
    at[1] = embla_layout_add(&layout, s.slice * ranks, NUMBERS * sizeof *s.parts);
    at[2] = embla_layout_add(&layout, 2 * ranks, sizeof *s.counts);
    at[3] =
        embla_layout_add(&layout, ranks > 1 ? s.round * ranks : 0, NUMBERS * sizeof *s.received);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu exact sums do not fit in memory", count);
    EMBLA_TRY(embla_mem_new(layout.bytes, "exact sums", &memory));
    char *block = memory;
    s.bytes = layout.bytes;
    s.levels = (int64_t *)(void *)(block + at[0]);
    s.parts = (int64_t *)(void *)(block + at[1]);
    s.counts = (size_t *)(void *)(block + at[2]);
    s.received = (int64_t *)(void *)(block + at[3]);
    embla_exact_clear(&s);
    *out = s;
    return EMBLA_OK;
}

void embla_exact_free(embla_exact *sums)
{
    embla_mem_free(sums->levels, sums->bytes);
    *sums = (embla_exact){0};
}

void embla_exact_clear(embla_exact *sums)
{
    for (size_t b = 0; b < sums->blocks; b++) sums->levels[b] = EMPTY;
    sums->levels[sums->blocks] = 0;
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
        EMBLA_PICK(take)
        (only, 1, 0, 1, s->levels + whole, parts_of(s, whole / TILE) + whole % TILE * 2 * BLOCK);
    }
}

typedef struct {
    const embla_exact *sums;
    float *const *x; /* n arrays */
    size_t n;
} taking;

/* All blocks that are full. */
static embla_status take_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const taking *t = job;
    size_t whole = t->sums->count / BLOCK;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        size_t from = i * TILE, blocks = whole - from < TILE ? whole - from : TILE;
        EMBLA_PICK(take)
        (t->x, t->n, from * BLOCK, blocks, t->sums->levels + from, parts_of(t->sums, i));
    }
    return EMBLA_OK;
}

embla_status embla_exact_take(embla_exact *sums, float *const *x, size_t n, int threads)
{
    const taking t = {.sums = sums, .x = x, .n = n};
    size_t tiles = (sums->count / BLOCK + TILE - 1) / TILE;
    EMBLA_TRY(check_additions(sums->levels[sums->blocks] + (int64_t)n));
    sums->levels[sums->blocks] += (int64_t)n;
    EMBLA_TRY(embla_share(embla_threads_for(threads, sums->bytes), tiles, 0, take_tiles, &t));
    take_rest(sums, x, n);
    return EMBLA_OK;
}

/* ---- sums over ranks ---- */

/* Rounds blocks from .. from + blocks - 1; parts are theirs. The last one may not be full. */
static void round_some(const embla_exact *s, size_t from, size_t blocks, const int64_t *parts,
                       float *out)
{
    size_t whole = s->count / BLOCK, full = from + blocks > whole ? whole - from : blocks;
    float last[BLOCK];
    EMBLA_PICK(round_blocks)(s->levels + from, parts, full, out + from * BLOCK);
    if (full == blocks) return;
    EMBLA_PICK(round_blocks)(s->levels + whole, parts + full * 2 * BLOCK, 1, last);
    memcpy(out + whole * BLOCK, last, s->count % BLOCK * sizeof *last);
}

/* Adds the parts of other ranks to those of rank 0, which gave `blocks` blocks, and rounds. Does so
 * for a tile, which begins at block `from` of these. first: its number among all blocks. */
static void add_tile(const embla_exact *s, size_t first, size_t from, size_t blocks, float *out)
{
    size_t n = blocks - from < TILE ? blocks - from : TILE;
    int64_t *to = s->received + from * 2 * BLOCK;
    for (size_t r = 1; r < s->ranks; r++) {
        const int64_t *other = to + r * blocks * 2 * BLOCK;
        for (size_t i = 0; i < n * 2 * BLOCK; i++) to[i] += other[i];
    }
    round_some(s, first, n, to, out);
}

/* A round: this rank has its `blocks` blocks from all ranks. The first one is number `first` among
 * all blocks. */
typedef struct {
    const embla_exact *sums;
    size_t first, blocks;
    float *out;
} receiving;

static embla_status add_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const receiving *r = job;
    (void)slot;
    for (size_t i = first; i < end; i++)
        add_tile(r->sums, r->first + i * TILE, i * TILE, r->blocks, r->out);
    return EMBLA_OK;
}

/* Gets the parts of tiles k, k + 1, .. of this rank's slice from all ranks. */
static embla_status sum_round(embla_exact *s, const embla_comm *c, size_t k, int threads,
                              float *out)
{
    size_t rank = (size_t)c->rank, mine = blocks_at(s, rank, k);
    size_t *send = s->counts, *receive = s->counts + s->ranks;
    for (size_t r = 0; r < s->ranks; r++) {
        send[r] = blocks_at(s, r, k);
        receive[r] = mine;
    }
    const embla_exchange exchange = {.send = s->parts + k * s->ranks * NUMBERS,
                                     .send_counts = send,
                                     .receive = s->received,
                                     .receive_counts = receive,
                                     .unit = 2 * BLOCK * sizeof *s->parts};
    EMBLA_TRY(c->alltoallv(c->owner, &exchange));
    const receiving r = {
        .sums = s, .first = (rank * s->slice + k) * TILE, .blocks = mine, .out = out};
    return embla_share(embla_threads_for(threads, s->ranks * mine * exchange.unit),
                       (mine + TILE - 1) / TILE, 0, add_tiles, &r);
}

/* Raises all blocks of a tile to the levels of all ranks. */
static void raise_tile(const embla_exact *s, size_t tile, const int64_t *levels)
{
    int64_t *parts = parts_of(s, tile);
    for (size_t b = tile * TILE; b < s->blocks && b < (tile + 1) * TILE; b++, parts += 2 * BLOCK)
        raise_block(&s->levels[b], parts, levels[b] == EMPTY ? 0 : levels[b]);
}

typedef struct {
    const embla_exact *sums;
    const int64_t *levels; /* of all ranks */
    float *out;
} summing;

/* Alone, a rank has the sums already. */
static embla_status raise_or_round(void *job, size_t first, size_t end, size_t slot)
{
    const summing *m = job;
    const embla_exact *s = m->sums;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        size_t left = s->blocks - i * TILE;
        if (s->ranks == 1)
            round_some(s, i * TILE, left < TILE ? left : TILE, parts_of(s, i), m->out);
        else
            raise_tile(s, i, m->levels);
    }
    return EMBLA_OK;
}

embla_status embla_exact_sum(embla_exact *sums, const embla_comm *comm, const int64_t *levels,
                             int threads, float *out)
{
    embla_exact *s = sums;
    const summing m = {.sums = s, .levels = levels, .out = out};
    size_t tiles = (s->blocks + TILE - 1) / TILE;
    bool alone = s->ranks == 1;
    if (!alone) EMBLA_TRY(check_additions(levels[s->blocks] * comm->size));
    EMBLA_TRY(embla_share(embla_threads_for(threads, s->bytes), tiles, 0, raise_or_round, &m));
    for (size_t k = 0; k < s->slice && !alone; k += s->round)
        EMBLA_TRY(sum_round(s, comm, k, threads, out));
    return EMBLA_OK;
}
