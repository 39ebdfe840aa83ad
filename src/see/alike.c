/* SPDX-License-Identifier: Apache-2.0 */
/* Equal rows are found by a checksum of their numbers, and compared. Rows of one direction are
 * found in a grid: two unit vectors of a cosine above c are less than sqrt(2 - 2c) apart, and
 * not farther where they are seen from a few directions at right angles. Their places as seen
 * from the first five are put into cells twice that wide, so that what may be alike lies in one
 * of the 32 cells nearest to a row. What agrees seen from all eight is compared in full.
 *
 * Only the first rows of groups are in the grid: a hundred thousand rows of one direction cost
 * a hundred thousand comparisons, not their square. What does cost the square is many rows
 * that are nearly, but not quite, of one direction: nothing but comparing tells them apart. So
 * threads share that, and most of it ends after a quarter of a row.
 */
#include "see/alike.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/threads.h"
#include "see/order.h"

/* Places are floats, and directions are at right angles only as floats can be. */
#define SLACK 1e-6

/* What rounding may add to a cosine, or take from it: far less than this. */
#define ROUNDING 1e-9

/* ---- what is noted of each row ---- */

/* Numbers of a row that are compared first: a quarter, in whole pieces. */
static size_t start_of(const embla_table *table)
{
    size_t start = (table->dim / 4 + EMBLA_PIECE - 1) / EMBLA_PIECE * EMBLA_PIECE;
    return start < table->dim ? start : table->dim;
}

/* Random rows, by Gram and Schmidt: twice, since once loses digits where few dims are left. */
static void make_directions(float *direction, size_t directions, size_t dim)
{
    const embla_kernels *kernels = embla_kernels_get();
    const uint64_t seed = UINT64_C(0x616c696b65); /* not one that a table is likely to be made by */
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

static embla_status take_all(embla_alike *alike)
{
    embla_arena *arena = &alike->arena;
    const char *what = "notes on rows";
    uint64_t rows = (uint64_t)alike->table->rows, numbers = alike->directions * alike->table->dim;
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
    embla_alike made = {.table = table, .alike = alike};
    made.decode = embla_dtype_decoder(table->dtype, embla_kernels_get()->isa);
    made.directions = table->dim < EMBLA_ALIKE_PLACES ? table->dim : EMBLA_ALIKE_PLACES;
    embla_status status = take_all(&made);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    make_directions(made.direction, made.directions, table->dim);
    *out = made;
    return EMBLA_OK;
}

void embla_alike_free(embla_alike *alike)
{
    embla_arena_free(&alike->arena);
}

bool embla_alike_read(const embla_alike *alike, int64_t row, float *values)
{
    const embla_table *table = alike->table;
    uint32_t found = 0;
    alike->decode(embla_table_at(table, row), table->dim, table->scale, EMBLA_WRITE_PLAIN, values);
    for (size_t k = 0; k < table->dim; k++) {
        uint32_t bits;
        values[k] += 0.0f; /* -0 becomes 0, all others stay */
        memcpy(&bits, &values[k], sizeof bits);
        found |= (bits & 0x7f800000u) == 0x7f800000u;
    }
    return found == 0;
}

void embla_alike_note(embla_alike *alike, int64_t row, const float *values, bool finite)
{
    const embla_kernels *kernels = embla_kernels_get();
    embla_checksum_state state;
    size_t dim = alike->table->dim, start = start_of(alike->table);
    double norm = finite ? sqrt(kernels->dot(values, values, dim)) : -1;
    alike->norms[row] = norm;
    if (!(norm > 0)) return;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, values, dim * sizeof *values);
    alike->sums[row] = embla_checksum_end(&state);
    alike->rest[row] = sqrt(kernels->dot(values + start, values + start, dim - start)) / norm;
    for (size_t i = 0; i < alike->directions; i++)
        alike->places[row][i] =
            (float)(kernels->dot(values, alike->direction + i * dim, dim) / norm);
}

/* ---- rows of the same numbers ---- */

static bool same_sum(const embla_alike *alike, int64_t a, int64_t b)
{
    return alike->sums[a].low == alike->sums[b].low && alike->sums[a].high == alike->sums[b].high;
}

static bool same_numbers(const embla_alike *alike, int64_t a, int64_t b, float *space)
{
    size_t dim = alike->table->dim;
    (void)embla_alike_read(alike, a, space);
    (void)embla_alike_read(alike, b, space + dim);
    return memcmp(space, space + dim, dim * sizeof *space) == 0;
}

/* keys: rows that are neither zero nor without a number, by checksum, then by row number. */
static void find_originals(embla_alike *alike, const embla_key *keys, size_t count, float *space)
{
    for (size_t i = 0; i < count; i++) {
        int64_t row = keys[i].row;
        /* Back to the first of the run: two sums that are the same of different rows are never
         * seen, but would only make this slower. */
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

/* More axes leave fewer rows in a cell, but twice as many cells to look into. Rows of 768 random
 * numbers need three; those of real tables, which lean to one side, more. */
enum { AXES = 5 };

typedef struct {
    uint64_t key; /* of a cell */
    int64_t head; /* one more than the row that came to it last; 0: an empty slot */
} slot;

typedef struct {
    slot *slots;
    uint64_t mask;
    int64_t *next; /* by row: one more than the row before it in its cell, 0: none */
    double reach;  /* the farthest that rows of one direction are apart, and the slack */
    size_t axes;   /* of the grid: AXES, or dim */
    float *space;  /* two rows for each thread */
} grid;

static uint64_t mix(uint64_t z)
{
    z = (z ^ (z >> 33)) * UINT64_C(0xff51afd7ed558ccd);
    z = (z ^ (z >> 33)) * UINT64_C(0xc4ceb9fe1a85ec53);
    return z ^ (z >> 33);
}

/* The slot of a cell, or the empty one where it would be. */
static slot *slot_of(const grid *g, uint64_t key)
{
    uint64_t at = key & g->mask;
    while (g->slots[at].head != 0 && g->slots[at].key != key) at = (at + 1) & g->mask;
    return &g->slots[at];
}

/* Along each axis the cell of a place, and the one next to it on the nearer side. */
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

/* The cosine of two rows, if it may be above what counts as alike; else something that is not.
 * The start of both is looked at first: with the rest the cosine is no more than the product of
 * their lengths. space: two rows. */
static double cosine_of(const embla_alike *alike, int64_t row, int64_t other, const float *x,
                        float *space)
{
    const embla_table *table = alike->table;
    const embla_kernels *kernels = embla_kernels_get();
    double norms = alike->norms[row] * alike->norms[other];
    size_t start = start_of(table);
    const float *y = embla_table_piece(table, alike->decode, other, 0, start, space + table->dim);
    double most = kernels->dot(x, y, start) / norms + alike->rest[row] * alike->rest[other];
    if (most < alike->alike - ROUNDING) return -1;
    y = embla_table_piece(table, alike->decode, other, 0, table->dim, space + table->dim);
    return kernels->dot(x, y, table->dim) / norms;
}

/* The lowest first row, from number `from` on, that shares the direction of row. */
static void join(embla_alike *alike, const grid *g, int64_t row, int64_t from, float *space)
{
    const embla_table *table = alike->table;
    int64_t cells[AXES][2];
    const float *x = NULL;
    cells_of(g, alike->places[row], cells);
    for (unsigned corner = 0; corner < 1u << g->axes; corner++) {
        /* in a cell the latest row, which has the highest number, is first */
        for (int64_t i = slot_of(g, cell_key(g, cells, corner))->head; i > from;
             i = g->next[i - 1]) {
            int64_t other = i - 1;
            if (other > alike->first[row] || !near_enough(alike, g, row, other)) continue;
            if (!x) x = embla_table_piece(table, alike->decode, row, 0, table->dim, space);
            double cosine = cosine_of(alike, row, other, x, space);
            if (!(cosine > alike->alike)) continue;
            alike->first[row] = other;
            alike->cosine[row] = cosine < 1 ? cosine : 1;
        }
    }
}

/* A row that is first of its group: later ones find it. */
static void put_in(const embla_alike *alike, const grid *g, int64_t row)
{
    int64_t cells[AXES][2];
    cells_of(g, alike->places[row], cells);
    uint64_t key = cell_key(g, cells, 0);
    slot *mine = slot_of(g, key);
    g->next[row] = mine->head;
    *mine = (slot){.key = key, .head = row + 1};
}

/* Whether a row is compared at all: not zero, not without a number, no duplicate. */
static bool compared(const embla_alike *alike, int64_t row)
{
    return alike->norms[row] > 0 && alike->original[row] == row;
}

/* Rows from .. end-1 with those before them, on all threads: nothing is put in meanwhile. Then
 * with each other, in order. */
static void find_block(embla_alike *alike, const grid *g, int64_t from, int64_t end, int threads)
{
    size_t two = 2 * alike->table->dim;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(dynamic, 8)
    for (int64_t row = from; row < end; row++) {
        alike->first[row] = row;
        alike->cosine[row] = 1;
        if (from > 0 && compared(alike, row))
            join(alike, g, row, 0, g->space + (size_t)embla_threads_mine() * two);
    }
    for (int64_t row = from; row < end; row++) {
        int64_t original = alike->original[row];
        if (original != row) {
            alike->first[row] = alike->first[original];
            alike->cosine[row] = alike->cosine[original];
        }
        if (!compared(alike, row) || alike->first[row] != row) continue;
        join(alike, g, row, from, g->space);
        if (alike->first[row] == row) put_in(alike, g, row);
    }
}

static void find_groups(embla_alike *alike, const grid *g, int threads)
{
    enum { BLOCK = 512 };
    int64_t rows = alike->table->rows;
    for (int64_t from = 0; from < rows; from += BLOCK)
        find_block(alike, g, from, rows - from < BLOCK ? rows : from + BLOCK, threads);
}

/* ---- both ---- */

/* The checksums in order, in memory that is given back before the grid is made. */
static embla_status originals(embla_alike *alike, float *space)
{
    embla_arena arena = {0};
    int64_t rows = alike->table->rows;
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

static embla_status groups(embla_alike *alike, float *space, int threads)
{
    embla_arena arena = {0};
    grid g = {.space = space, .axes = alike->directions < AXES ? alike->directions : AXES};
    uint64_t rows = (uint64_t)alike->table->rows, slots = 2;
    g.reach = sqrt(2 - 2 * alike->alike) * (1 + SLACK) + SLACK;
    while (slots < 2 * rows) slots *= 2; /* rows is at most 2^40 */
    g.mask = slots - 1;
    embla_status status = embla_arena_many(&arena, slots, sizeof(slot), "cells of rows", &g.slots);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, rows, sizeof(int64_t), "cells of rows", &g.next);
    if (status == EMBLA_OK) find_groups(alike, &g, threads);
    embla_arena_free(&arena);
    return status;
}

embla_status embla_alike_find(embla_alike *alike)
{
    void *space = NULL;
    int threads = alike->threads > 1 ? alike->threads : 1;
    /* dim is at most 2^20, threads are some thousand at most */
    size_t bytes = (size_t)threads * 2 * alike->table->dim * sizeof(float);
    EMBLA_TRY(embla_mem_new(bytes, "two rows for each thread", &space));
    embla_status status = originals(alike, space);
    if (status == EMBLA_OK) status = groups(alike, space, threads);
    embla_mem_free(space, bytes);
    return status;
}
