/* SPDX-License-Identifier: Apache-2.0 */
/* A batch of row numbers in which some occur more than once: each different row is fetched once,
 * in the order in which it is first seen, and handed to all places that want it.
 *
 *   rows -> unique rows, and for each place which of them
 *   unique rows -> stored bytes, one after the other (staging)
 *   places -> staging -> vectors, by the loop of every lookup (rows.c)
 *
 * Where rows are in memory nothing is staged: the second look at a row finds it in a cache, and
 * copying all of them once more costs more than that saves. What is different is still counted.
 */
#include <string.h>

#include "base/mem.h"
#include "base/room.h"
#include "table/rows.h"

struct embla_batch {
    const embla_store *store;
    size_t bytes; /* of this block */
    size_t most;
    uint32_t *slots; /* a hash table: 1 + place in unique; 0: free. 2 to 4 for each row number */
    int64_t *unique; /* different rows, as first seen */
    int64_t *place;  /* for each row number, which of them */
    char *staging;   /* their stored bytes; NULL: rows are in memory */
    char *given;     /* a row as the placement has it, and as the file has it: to compare */
    char *again;
    size_t every;       /* see embla_batch_verify */
    uint64_t looked_at; /* rows that could have been verified so far */
    embla_batch_stats stats;
};

enum { MOST = 1 << 30 }; /* row numbers of a batch: slots have 32 bits */

/* ---- making ---- */

/* Slots for so many row numbers: a power of two. */
static unsigned slot_bits(size_t count)
{
    unsigned bits = 4;
    while ((size_t)1 << bits < 2 * count) bits++;
    return bits;
}

embla_status embla_batch_new(const embla_store *store, size_t most, embla_batch **out)
{
    embla_room room = {0};
    void *memory = NULL;
    if (!store || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_batch_new: %s is NULL",
                          store ? "out" : "the store");
    if (most < 1 || most > MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a batch of %zu row numbers: 1 to %d can be had",
                          most, MOST);
    size_t row_bytes = store->row.bytes, self = embla_room_add(&room, 1, sizeof(embla_batch));
    size_t slots = embla_room_add(&room, (size_t)1 << slot_bits(most), sizeof(uint32_t));
    size_t unique = embla_room_add(&room, most, sizeof(int64_t));
    size_t place = embla_room_add(&room, most, sizeof(int64_t));
    size_t given = embla_room_add(&room, 2, row_bytes);
    size_t staging = embla_room_add(&room, store->placement->distinct ? most : 0, row_bytes);
    if (room.over)
        return embla_fail(EMBLA_ERR_MEMORY, "a batch of %zu rows of %zu bytes: no memory has that",
                          most, row_bytes);
    EMBLA_TRY(embla_mem_new(room.bytes, "a batch of row numbers", &memory));
    char *base = memory;
    embla_batch *batch = (void *)(base + self);
    *batch = (embla_batch){.store = store,
                           .bytes = room.bytes,
                           .most = most,
                           .slots = (void *)(base + slots),
                           .unique = (void *)(base + unique),
                           .place = (void *)(base + place),
                           .staging = store->placement->distinct ? base + staging : NULL,
                           .given = base + given,
                           .again = base + given + row_bytes};
    *out = batch;
    return EMBLA_OK;
}

void embla_batch_free(embla_batch *batch)
{
    if (batch) embla_mem_free(batch, batch->bytes);
}

/* ---- which rows are different ---- */

static uint64_t mixed(uint64_t x)
{
    return x * UINT64_C(0x9E3779B97F4A7C15); /* 2^64 / the golden ratio */
}

/* Fills unique and place; returns how many are different. Only slots for these row numbers are
 * used, so a small lookup does not pay for a large batch. */
static size_t find_unique(embla_batch *batch, const int64_t *rows, size_t count)
{
    unsigned bits = slot_bits(count);
    uint32_t *slots = batch->slots;
    size_t mask = ((size_t)1 << bits) - 1, found = 0;
    memset(slots, 0, (mask + 1) * sizeof *slots);
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(mixed((uint64_t)rows[i]) >> (64 - bits));
        while (slots[at] != 0 && batch->unique[slots[at] - 1] != rows[i]) at = (at + 1) & mask;
        if (slots[at] == 0) {
            batch->unique[found++] = rows[i];
            slots[at] = (uint32_t)found;
        }
        batch->place[i] = (int64_t)slots[at] - 1;
    }
    return found;
}

/* ---- statistics ---- */

/* What has to be touched, in units of 2^bits, to have bytes from at on, beginning with unit
 * *next. */
static uint64_t touched(uint64_t at, size_t bytes, unsigned bits, uint64_t *next)
{
    uint64_t first = at >> bits, last;
    if (bytes == 0) return 0;
    last = (at + bytes - 1) >> bits;
    if (first < *next) first = *next;
    *next = last + 1;
    return last + 1 - first;
}

/* Where codes and scales of a row are: in memory, or in a file. apart: not in the same one. */
static bool places(const embla_store *store, int64_t row, uint64_t at[EMBLA_PLANES])
{
    if (store->data) {
        at[0] = (uint64_t)(uintptr_t)store->data + (uint64_t)row * store->stride;
        at[1] = at[0] + store->row.code_bytes;
        return false;
    }
    const embla_extent_at *e = embla_extents_find(store, row);
    uint64_t r = (uint64_t)(row - e->first);
    at[0] = e->offset[0] + r * e->stride[0];
    at[1] = e->planes == 1 ? at[0] + store->row.code_bytes : e->offset[1] + r * e->stride[1];
    return e->planes > 1 && (e->map[0] != e->map[1] || at[1] < at[0]);
}

static int64_t bytes_touched(const embla_batch *batch, size_t unique, const embla_row_part *part)
{
    const embla_store *store = batch->store;
    unsigned bits = (unsigned)__builtin_ctzll(store->placement->unit); /* a power of two */
    uint64_t units = 0, at[EMBLA_PLANES];
    for (size_t i = 0; i < unique; i++) {
        uint64_t next = 0;
        bool apart = places(store, batch->unique[i], at);
        units += touched(at[0] + part->code_at, part->code_bytes, bits, &next);
        if (apart) next = 0;
        units += touched(at[1] + part->scale_at, part->scale_bytes, bits, &next);
    }
    return (int64_t)(units << bits);
}

void embla_batch_statistics(const embla_batch *batch, embla_batch_stats *out)
{
    if (batch && out) *out = batch->stats;
}

/* ---- verify ---- */

embla_status embla_batch_verify(embla_batch *batch, size_t every)
{
    if (!batch) return embla_fail(EMBLA_ERR_ARGUMENT, "embla_batch_verify: the batch is NULL");
    if (every > 0 && batch->store->extent_count == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "rows in the caller's memory: there is no file to compare them with");
    batch->every = every;
    return EMBLA_OK;
}

/* Row number i of unique, by the placement (or as it was staged) and by the file. */
static embla_status verify_row(const embla_batch *batch, size_t i, const embla_row_part *part)
{
    int64_t row = batch->unique[i];
    const char *given = batch->given;
    if (batch->staging) {
        given = batch->staging + i * part->bytes;
    } else {
        const embla_rows_job job = {.rows = &row,
                                    .count = 1,
                                    .known = 1,
                                    .part = part,
                                    .out = batch->given,
                                    .out_stride = part->bytes};
        EMBLA_TRY(embla_store_fetch(batch->store, &job));
    }
    EMBLA_TRY(embla_extents_read(batch->store, row, part, batch->again));
    for (size_t k = 0; k < part->bytes; k++)
        if (given[k] != batch->again[k])
            return embla_fail(
                EMBLA_ERR_IO,
                "row %" PRId64 " is not what its file has: byte %zu of %zu is 0x%02x, "
                "and 0x%02x there",
                row, k, part->bytes, (unsigned char)given[k], (unsigned char)batch->again[k]);
    return EMBLA_OK;
}

/* About one row in `every`: which ones depends on how many there were before, and on nothing
 * else; not on a pattern of heads, either. */
static embla_status verify_some(embla_batch *batch, size_t unique, const embla_row_part *part,
                                int64_t *verified)
{
    if (batch->every == 0) return EMBLA_OK;
    for (size_t i = 0; i < unique; i++) {
        if ((mixed(++batch->looked_at) >> 32) % batch->every != 0) continue;
        EMBLA_TRY(verify_row(batch, i, part));
        ++*verified;
    }
    return EMBLA_OK;
}

/* ---- lookup ---- */

/* Different rows to staging. Nothing of the caller's has been written. */
static embla_status stage(const embla_batch *batch, const embla_rows_call *call, size_t unique)
{
    embla_rows_call fetch = *call;
    fetch.tokens = fetch.count = unique;
    fetch.heads = 1;
    fetch.token_stride = fetch.head_stride = fetch.vector_bytes = call->part.bytes;
    fetch.sum = false;
    fetch.copy = true;
    fetch.out = batch->staging;
    const embla_rows_source source = embla_rows_of(batch->store, &fetch);
    return embla_rows_run(&fetch, &source, batch->unique);
}

embla_status embla_batch_lookup(embla_batch *batch, const int64_t *rows, size_t count,
                                const embla_rows_options *options, void *out)
{
    embla_rows_call call;
    int64_t verified = 0;
    if (!batch) return embla_fail(EMBLA_ERR_ARGUMENT, "embla_batch_lookup: the batch is NULL");
    if (count > batch->most)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows: the batch has room for %zu", count,
                          batch->most);
    const embla_store *store = batch->store;
    EMBLA_TRY(embla_rows_check(store, rows, count, options, out, &call));
    size_t unique = count > 0 ? find_unique(batch, rows, count) : 0;
    if (count > 0) EMBLA_TRY(embla_rows_files(store));
    embla_rows_source source = embla_rows_of(store, &call);
    if (batch->staging) {
        EMBLA_TRY(stage(batch, &call, unique));
        if (count > 0) EMBLA_TRY(embla_rows_files(store));
        source = embla_rows_parts(&call, batch->staging, unique);
        rows = batch->place;
    }
    EMBLA_TRY(verify_some(batch, unique, &call.part, &verified));
    EMBLA_TRY(embla_rows_run(&call, &source, rows));
    if (!batch->staging && count > 0) EMBLA_TRY(embla_rows_files(store));
    embla_batch_stats *stats = &batch->stats;
    stats->calls++;
    stats->asked += (int64_t)count;
    stats->unique += (int64_t)unique;
    stats->bytes_read += bytes_touched(batch, unique, &call.part);
    stats->bytes_useful += (int64_t)(unique * call.part.bytes);
    stats->verified += verified;
    return EMBLA_OK;
}
