/* SPDX-License-Identifier: Apache-2.0 */
/* Equal rows are found by a checksum of their values and then compared. Rows of one direction are
 * found in a grid: two unit vectors with a cosine above c are less than sqrt(2 - 2c) apart, and so
 * are their projections on a few orthonormal directions. The projections on the first five
 * directions are sorted into cells of twice that width, so all candidates for a row lie in the 32
 * cells nearest to it. Candidates whose projections on all eight directions agree are compared in
 * full.
 *
 * Only the first rows of groups are in the grid: a hundred thousand rows of one direction cost a
 * hundred thousand comparisons, not their square. Many rows that are nearly, but not quite, of one
 * direction would need the square, because only a comparison tells them apart. So each row has a
 * limit. It depends only on earlier rows, not on threads. Threads share the work, and most
 * comparisons end after a quarter of a row.
 */
#include "see/alike.h"

#include <math.h>
#include <stdatomic.h>
#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "near/order.h"
#include "table/geometry.h"

/* Slack for rounding: projections are floats, and directions are orthonormal only to float
 * precision. */
#define SLACK 1e-6

/* An upper bound of the rounding error of a cosine. */
#define ROUNDING 1e-9

/* ---- what is stored of each row ---- */

static size_t dim_of(const embla_alike *alike)
{
    return alike->source->row->format.dim;
}

/* Values of a row that are compared first: a quarter of the row, in whole pieces. */
static size_t start_of(size_t dim)
{
    size_t start = (dim / 4 + EMBLA_PIECE - 1) / EMBLA_PIECE * EMBLA_PIECE;
    return start < dim ? start : dim;
}

/* Makes random orthonormal directions by Gram-Schmidt. It runs twice, because once loses digits
 * when few dims are left. */
static void make_directions(float *direction, size_t directions, size_t dim)
{
    const embla_kernels *kernels = embla_kernels_get();
    const uint64_t seed = UINT64_C(0x616c696b65); /* a seed that no table is likely to use */
    for (size_t i = 0; i < directions; i++) {
        float *mine = direction + i * dim;
        kernels->uniform(seed, i, 0, dim, 1.0f, mine);
        for (int twice = 0; twice < 2; twice++) {
            for (size_t j = 0; j < i; j++) {
                const float *other = direction + j * dim;
                double along = kernels->dot(mine, other, dim);
                for (size_t k = 0; k < dim; k++)
                    mine[k] = (float)((double)mine[k] - along * (double)other[k]);
            }
            embla_normalize(mine, dim);
        }
    }
}

static embla_status allocate_arrays(embla_alike *alike)
{
    embla_arena *arena = &alike->arena;
    const char *what = "notes on rows";
    uint64_t rows = (uint64_t)alike->source->rows, numbers = alike->directions * dim_of(alike);
    EMBLA_TRY(embla_arena_many(arena, numbers, sizeof(float), what, &alike->direction));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof(double), what, &alike->norms));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof(embla_checksum), what, &alike->sums));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof *alike->places, what, &alike->places));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof(int64_t), what, &alike->original));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof(int64_t), what, &alike->first));
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof(double), what, &alike->cosine));
    return embla_arena_many(arena, rows, sizeof(double), what, &alike->rest);
}

embla_status embla_alike_new(const embla_table *table, double alike, embla_alike *out)
{
    embla_alike made = {.source = embla_table_source(table), .alike = alike};
    const size_t dim = dim_of(&made);
    made.decode = embla_dtype_decoder(embla_table_dtype(table), embla_kernels_get()->isa);
    made.directions = dim < EMBLA_ALIKE_PLACES ? dim : EMBLA_ALIKE_PLACES;
    embla_status status = allocate_arrays(&made);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    make_directions(made.direction, made.directions, dim);
    *out = made;
    return EMBLA_OK;
}

void embla_alike_free(embla_alike *alike)
{
    embla_arena_free(&alike->arena);
}

bool embla_alike_read(const embla_alike *alike, int64_t row, float *values)
{
    const size_t dim = dim_of(alike);
    uint32_t found = 0;
    embla_source_decode(alike->source, alike->decode, row, values);
    for (size_t k = 0; k < dim; k++) {
        uint32_t bits;
        values[k] += 0.0f; /* -0 becomes 0, other values stay */
        memcpy(&bits, &values[k], sizeof bits);
        found |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return found == 0;
}

void embla_alike_note(embla_alike *alike, int64_t row, const float *values, bool finite)
{
    const embla_kernels *kernels = embla_kernels_get();
    size_t dim = dim_of(alike), start = start_of(dim);
    double norm = finite ? sqrt(kernels->dot(values, values, dim)) : -1;
    alike->norms[row] = norm;
    if (!(norm > 0)) return;
    alike->sums[row] = embla_checksum_of(values, dim * sizeof *values);
    alike->rest[row] = sqrt(kernels->dot(values + start, values + start, dim - start)) / norm;
    for (size_t i = 0; i < alike->directions; i++)
        alike->places[row][i] =
            (float)(kernels->dot(values, alike->direction + i * dim, dim) / norm);
}

/* ---- rows with equal values ---- */

static bool same_sum(const embla_alike *alike, int64_t a, int64_t b)
{
    return alike->sums[a].low == alike->sums[b].low && alike->sums[a].high == alike->sums[b].high;
}

static bool same_numbers(const embla_alike *alike, int64_t a, int64_t b, float *space)
{
    size_t dim = dim_of(alike);
    (void)embla_alike_read(alike, a, space);
    (void)embla_alike_read(alike, b, space + dim);
    return memcmp(space, space + dim, dim * sizeof *space) == 0;
}

/* keys has the finite rows that are not zero, sorted by checksum and then by row number. */
static void find_originals(embla_alike *alike, const embla_key *keys, size_t count, float *space)
{
    for (size_t i = 0; i < count; i++) {
        int64_t row = keys[i].row;
        /* Compare with the first row of the run. Different rows with equal checksums are
         * practically impossible and would only cost time. */
        for (size_t j = i; j-- > 0 && keys[j].key == keys[i].key;) {
            int64_t other = alike->original[keys[j].row];
            if (same_sum(alike, row, other) && same_numbers(alike, row, other, space)) {
                alike->original[row] = other;
                break;
            }
        }
    }
}

/* ---- rows of one direction ---- */

/* More axes leave fewer rows in a cell, but double the number of cells to search. Rows of 768
 * random numbers need three axes; rows of real tables, which share a common direction, need more.
 */
enum { AXES = 5 };

typedef struct {
    uint64_t key; /* hash of a cell */
    int64_t head; /* 1 + the row that was added last; 0 means an empty slot */
} slot;

typedef struct {
    slot *slots;
    uint64_t mask;
    int64_t *next; /* for each row: 1 + the row added before it in its cell; 0 means none */
    double reach;  /* the maximum distance of rows of one direction, plus slack */
    size_t axes;   /* axes of the grid: AXES, or dim if that is less */
    float *space;  /* room for two rows for each part of a shared loop */
} grid;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    z = (z ^ (z >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return z ^ (z >> 33);
}

/* Finds the slot of a cell, or the empty slot where it would be. */
static slot *slot_of(const grid *g, uint64_t key)
{
    uint64_t at = key & g->mask;
    while (g->slots[at].head != 0 && g->slots[at].key != key) at = (at + 1) & g->mask;
    return &g->slots[at];
}

/* For each axis: the cell of a projection, and the neighbouring cell on the nearer side. */
static void cells_of(const grid *g, const float *place, int64_t cells[AXES][2])
{
    for (size_t i = 0; i < g->axes; i++) {
        double at = (double)place[i] / (2 * g->reach), low = floor(at);
        cells[i][0] = (int64_t)low;
        cells[i][1] = (int64_t)low + (at - low < 0.5 ? -1 : 1);
    }
}

static uint64_t cell_key(const grid *g, int64_t cells[AXES][2], unsigned corner)
{
    uint64_t key = 0;
    for (size_t i = 0; i < g->axes; i++) key = mix(key + (uint64_t)cells[i][corner >> i & 1]);
    return key;
}

static bool near_enough(const embla_alike *alike, const grid *g, int64_t a, int64_t b)
{
    const float *x = alike->places[a], *y = alike->places[b];
    double sum = 0;
    for (size_t i = 0; i < alike->directions; i++) {
        double gap = (double)x[i] - (double)y[i];
        sum += gap * gap;
    }
    return sum <= g->reach * g->reach;
}

/* The cosine of two rows, or a lower number if it cannot exceed the threshold. The first part of
 * both rows is compared first: the rest adds at most the product of its norms. space has room for
 * two rows. */
static double cosine_of(const embla_alike *alike, int64_t row, int64_t other, const float *x,
                        float *space)
{
    const embla_kernels *kernels = embla_kernels_get();
    double norms = alike->norms[row] * alike->norms[other];
    const size_t dim = dim_of(alike), start = start_of(dim);
    const float *y = embla_source_piece(alike->source, alike->decode, other, 0, start, space + dim);
    double most = kernels->dot(x, y, start) / norms + alike->rest[row] * alike->rest[other];
    if (start == dim) return most; /* that was the whole row */
    if (most < alike->alike - ROUNDING) return -1;
    y = embla_source_piece(alike->source, alike->decode, other, 0, dim, space + dim);
    return kernels->dot(x, y, dim) / norms;
}

/* The work of one search. */
typedef struct {
    int64_t looked, compared;
} effort;

static bool is_exhausted(const effort *e)
{
    return e->looked >= EMBLA_ALIKE_LOOKED || e->compared >= EMBLA_ALIKE_COMPARED;
}

/* Finds the lowest first row, from number `from` on, with the direction of row, and lets row join
 * its group. Stops at the limits. */
static effort join_group(embla_alike *alike, const grid *g, int64_t row, int64_t from, float *space)
{
    int64_t cells[AXES][2];
    const float *x = NULL;
    effort e = {0};
    cells_of(g, alike->places[row], cells);
    for (unsigned corner = 0; corner < 1u << g->axes; corner++) {
        /* the latest row of a cell has the highest number and comes first */
        for (int64_t i = slot_of(g, cell_key(g, cells, corner))->head; i > from;
             i = g->next[i - 1]) {
            int64_t other = i - 1;
            if (is_exhausted(&e)) return e;
            e.looked++;
            if (other > alike->first[row] || !near_enough(alike, g, row, other)) continue;
            if (!x)
                x = embla_source_piece(alike->source, alike->decode, row, 0, dim_of(alike), space);
            e.compared++;
            double cosine = cosine_of(alike, row, other, x, space);
            if (!(cosine > alike->alike)) continue;
            alike->first[row] = other;
            alike->cosine[row] = cosine < 1 ? cosine : 1;
        }
    }
    return e;
}

/* Adds the first row of a group to the grid, so that later rows find it. */
static void add_to_grid(const embla_alike *alike, const grid *g, int64_t row)
{
    int64_t cells[AXES][2];
    cells_of(g, alike->places[row], cells);
    uint64_t key = cell_key(g, cells, 0);
    slot *mine = slot_of(g, key);
    g->next[row] = mine->head;
    *mine = (slot){.key = key, .head = row + 1};
}

/* Whether a row is compared: it is finite, not zero and not a duplicate. */
static bool is_compared(const embla_alike *alike, int64_t row)
{
    return alike->norms[row] > 0 && alike->original[row] == row;
}

typedef struct {
    embla_alike *alike;
    const grid *grid;
    int64_t from; /* the first row of the block */
    _Atomic int64_t looked, uncertain;
} block;

/* Compares rows of a block with the rows before the block. */
static embla_status look_back(void *job, size_t first, size_t end, size_t part)
{
    block *b = job;
    embla_alike *alike = b->alike;
    float *space = b->grid->space + part * 2 * dim_of(alike);
    int64_t looked = 0, uncertain = 0;
    for (int64_t row = b->from + (int64_t)first; row < b->from + (int64_t)end; row++) {
        alike->first[row] = row;
        alike->cosine[row] = 1;
        if (b->from == 0 || !is_compared(alike, row)) continue;
        effort e = join_group(alike, b->grid, row, 0, space);
        looked += e.looked;
        uncertain += is_exhausted(&e);
    }
    atomic_fetch_add(&b->looked, looked);
    atomic_fetch_add(&b->uncertain, uncertain);
    return EMBLA_OK;
}

/* Compares rows from .. end-1 with earlier rows, on all threads, while the grid does not change.
 * Then compares them with each other, in order; a row has fewer rows before it in its block than
 * the limits. */
static embla_status find_block(embla_alike *alike, const grid *g, int64_t from, int64_t end,
                               int threads)
{
    block b = {.alike = alike, .grid = g, .from = from};
    EMBLA_TRY(embla_share(threads, (size_t)(end - from), 8, look_back, &b));
    alike->looked += atomic_load(&b.looked);
    alike->uncertain += atomic_load(&b.uncertain);
    for (int64_t row = from; row < end; row++) {
        int64_t original = alike->original[row];
        if (original != row) {
            alike->first[row] = alike->first[original];
            alike->cosine[row] = alike->cosine[original];
        }
        if (!is_compared(alike, row) || alike->first[row] != row) continue;
        alike->looked += join_group(alike, g, row, from, g->space).looked;
        if (alike->first[row] == row) add_to_grid(alike, g, row);
    }
    return EMBLA_OK;
}

static embla_status find_groups(embla_alike *alike, const grid *g, int threads)
{
    enum { BLOCK = 512 }; /* at most EMBLA_ALIKE_COMPARED */
    int64_t rows = alike->source->rows;
    for (int64_t from = 0; from < rows; from += BLOCK)
        EMBLA_TRY(find_block(alike, g, from, rows - from < BLOCK ? rows : from + BLOCK, threads));
    return EMBLA_OK;
}

/* ---- both ---- */

/* Sorts the checksums, in memory that is freed before the grid is made. */
static embla_status sort_and_find_originals(embla_alike *alike, float *space)
{
    embla_arena arena = {0};
    int64_t rows = alike->source->rows;
    embla_key *items = NULL, *room = NULL;
    size_t count = 0;
    embla_status status =
        embla_arena_many(&arena, (uint64_t)rows, sizeof *items, "rows in order", &items);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, (uint64_t)rows, sizeof *room, "rows in order", &room);
    if (status == EMBLA_OK) {
        for (int64_t row = 0; row < rows; row++) {
            alike->original[row] = row;
            if (alike->norms[row] > 0)
                items[count++] = (embla_key){.key = alike->sums[row].low, .row = row};
        }
        embla_order(items, room, count);
        find_originals(alike, items, count, space);
    }
    embla_arena_free(&arena);
    return status;
}

static embla_status make_grid_and_find_groups(embla_alike *alike, float *space, int threads)
{
    embla_arena arena = {0};
    grid g = {.space = space, .axes = alike->directions < AXES ? alike->directions : AXES};
    uint64_t rows = (uint64_t)alike->source->rows, slots = 2;
    g.reach = sqrt(2 - 2 * alike->alike) * (1 + SLACK) + SLACK;
    while (slots < 2 * rows) slots *= 2; /* rows is at most 2^40 */
    g.mask = slots - 1;
    embla_status status = embla_arena_many(&arena, slots, sizeof(slot), "cells of rows", &g.slots);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, rows, sizeof(int64_t), "cells of rows", &g.next);
    if (status == EMBLA_OK) status = find_groups(alike, &g, threads);
    embla_arena_free(&arena);
    return status;
}

embla_status embla_alike_find(embla_alike *alike)
{
    void *space = NULL;
    int threads = alike->threads > 1 ? alike->threads : 1;
    /* no overflow: dim is at most 2^20, and threads are a few thousand */
    size_t bytes = (size_t)threads * 2 * dim_of(alike) * sizeof(float);
    EMBLA_TRY(embla_mem_new(bytes, "two rows for each thread", &space));
    embla_status status = sort_and_find_originals(alike, space);
    if (status == EMBLA_OK) status = make_grid_and_find_groups(alike, space, threads);
    embla_mem_free(space, bytes);
    return status;
}
