/* SPDX-License-Identifier: Apache-2.0 */
/* Lists the memory of a store in chunks, so that an engine can pin it or register it with a GPU
 * piece by piece: registering a large range at once may take minutes or fail.
 *
 *   rows -> ranges of addresses, whole pages for files -> sorted, joined where they touch -> cut
 *
 * A page belongs to one chunk only, because a page can be registered only once.
 */
#include <stdlib.h>

#include "base/mem.h"
#include "store/store.h"

#define MOST ((size_t)1 << 30) /* bytes of a chunk, unless the caller says other */

/* Addresses from .. to-1. */
typedef struct {
    uintptr_t from, to;
} range;

/* A range of a mapped file, extended to whole pages: a map consists of whole pages. */
static range whole_pages(const void *memory, size_t bytes, size_t page)
{
    uintptr_t from = (uintptr_t)memory, to = from + bytes;
    return (range){.from = from / page * page, .to = (to + page - 1) / page * page};
}

static int compare_ranges(const void *a, const void *b)
{
    const range *x = a, *y = b;
    return (x->from > y->from) - (x->from < y->from);
}

/* Joins ranges that overlap or touch. They are sorted. Returns their number. */
static size_t join_ranges(range *ranges, size_t count)
{
    size_t kept = 0;
    for (size_t i = 1; i < count; i++) {
        range *last = &ranges[kept];
        if (ranges[i].from > last->to)
            ranges[++kept] = ranges[i];
        else if (ranges[i].to > last->to)
            last->to = ranges[i].to;
    }
    return kept + 1;
}

/* The ranges of rows in mapped files: one for each plane of an extent. */
static size_t list_extents(const embla_store *store, size_t page, range *out)
{
    size_t count = 0;
    for (size_t i = 0; i < store->extent_count; i++)
        for (size_t p = 0; p < store->extents[i].planes; p++) {
            const embla_extent_at *e = &store->extents[i];
            const uint8_t *memory = e->map[p]->bytes + e->offset[p];
            size_t bytes = (size_t)embla_extent_span(e, p);
            /* memory of the caller (file -1) need not be whole pages */
            out[count++] = whole_pages(memory, bytes, e->map[p]->file < 0 ? 1 : page);
        }
    qsort(out, count, sizeof *out, compare_ranges);
    return join_ranges(out, count);
}

/* Appends the chunks of a range. All borders but the first and the last are on pages. */
static void cut_range(range r, size_t most, size_t page, embla_chunk *out, size_t room,
                      size_t *count)
{
    while (r.from < r.to) {
        uintptr_t end = r.to;
        if (r.to - r.from > most) end = (r.from + most) / page * page;
        if (*count < room)
            out[*count] = (embla_chunk){.memory = (void *)r.from, .bytes = (size_t)(end - r.from)};
        ++*count;
        r.from = end;
    }
}

static embla_status list_mapped(const embla_store *store, size_t most, size_t page,
                                embla_chunk *out, size_t room, size_t *count)
{
    void *memory = NULL;
    size_t bytes = store->extent_count * EMBLA_PLANES * sizeof(range);
    EMBLA_TRY(embla_mem_new(bytes, "the chunks of a store", &memory));
    const range *ranges = memory;
    size_t n = list_extents(store, page, memory);
    for (size_t i = 0; i < n; i++) cut_range(ranges[i], most, page, out, room, count);
    embla_mem_free(memory, bytes);
    return EMBLA_OK;
}

embla_status embla_store_chunks(const embla_store *store, size_t most, size_t capacity,
                                embla_chunk *out, size_t *count)
{
    size_t page = embla_mem_page(), found = 0;
    if (!store || !count || (!out && capacity > 0))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_chunks: %s is NULL",
                          !store   ? "the store"
                          : !count ? "count"
                                   : "out");
    if (most == 0) most = MOST;
    if (most < page)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a chunk has at most %zu bytes, less than a page of %zu bytes", most,
                          page);
    if (store->placement == &embla_placement_mapped) {
        EMBLA_TRY(list_mapped(store, most, page, out, capacity, &found));
    } else if (store->data) {
        size_t bytes = (size_t)(store->held - 1) * store->stride + store->row.bytes;
        bool file = store->placement == &embla_placement_shared;
        cut_range(whole_pages(store->data, bytes, file ? page : 1), most, page, out, capacity,
                  &found);
    } else {
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the placement %s holds none of its %" PRId64
                          " rows in memory, so there is nothing to register",
                          store->placement->name, store->held);
    }
    *count = found;
    return EMBLA_OK;
}
