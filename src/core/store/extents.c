/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the bytes of a row in the files of a store.
 *
 * A giant table is stored in many files (Qwen's in 128 parts), with numbers and scales in separate
 * tensors. An extent is a range of rows with a fixed stride, in one or two planes (numbers,
 * scales). embla_extents_add checks every extent: its rows lie inside the file, and row x stride
 * does not overflow. embla_extents_read reads one row in the simplest way; it is the reference for
 * all placements.
 */
#include <string.h>

#include "base/checked.h"
#include "store/store.h"

/* ---- adding ---- */

/* The index of the source with this map. Adds a source if there is none. */
static embla_status find_or_add_source(embla_store *store, const embla_map *map, size_t *out)
{
    for (size_t i = store->source_count; i-- > 0;)
        if (store->sources[i].map == map) {
            *out = i;
            return EMBLA_OK;
        }
    embla_source source = {.path = map->file < 0 ? NULL : map->name};
    void *list = store->sources;
    EMBLA_TRY(embla_arena_grow(&store->arena, sizeof *store->sources, store->source_count,
                               "the list of files", &list, &store->source_room));
    store->sources = list;
    EMBLA_TRY(embla_map_modified(map, &source.seconds, &source.nanoseconds));
    source.map = embla_map_hold((embla_map *)(uintptr_t)map);
    *out = store->source_count;
    store->sources[store->source_count++] = source;
    return EMBLA_OK;
}

static embla_status check_plane(const embla_extent_at *extent, size_t plane)
{
    const char *what = plane == 0 ? "rows" : "scales";
    const embla_map *map = extent->map[plane];
    size_t bytes = extent->bytes[plane], span;
    uint64_t end;
    if (extent->stride[plane] < bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.256s: the stride of its %s is %" PRIu64
                          " bytes, less than the %zu bytes of one",
                          map->name, what, extent->stride[plane], bytes);
    uint64_t units = (uint64_t)extent->rows, apart = extent->stride[plane], last = bytes;
    if (extent->group > 0) { /* the last group is whole */
        units = (units - 1) / extent->group + 1;
        apart = last = extent->group_bytes;
    }
    if (!embla_span_ok(units, apart, last, &span) ||
        !embla_add_ok(span, extent->offset[plane], &end) || end > (uint64_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s: %" PRId64 " %s, %" PRIu64 " bytes apart, from byte %" PRIu64
                          " on do not fit in any file",
                          map->name, extent->rows, what, extent->stride[plane],
                          extent->offset[plane]);
    if (end > map->size)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.256s: %" PRId64 " %s from byte %" PRIu64 " on end at byte %" PRIu64
                          ", but the file has %" PRIu64 " bytes",
                          map->name, extent->rows, what, extent->offset[plane], end, map->size);
    return EMBLA_OK;
}

/* Sets planes and bytes from the row format. Scales that follow the numbers of each row are not a
 * plane of their own. */
static void set_planes(const embla_store *store, embla_extent_at *extent)
{
    const embla_row *row = &store->row;
    bool scales = row->scale_bytes > 0;
    bool joined = scales && extent->map[0] == extent->map[1] &&
                  extent->stride[0] == extent->stride[1] && extent->stride[0] >= row->bytes &&
                  extent->offset[1] >= extent->offset[0] &&
                  extent->offset[1] - extent->offset[0] == row->code_bytes;
    extent->planes = scales && !joined ? 2 : 1;
    extent->bytes[0] = joined ? row->bytes : row->code_bytes;
    extent->bytes[1] = extent->planes == 2 ? row->scale_bytes : 0;
}

/* Extents per row, if row x this is at most one extent off for every row (embla_extents_find);
 * otherwise 0. */
static double extents_per_row(const embla_store *store)
{
    double per_row = (double)store->extent_count / (double)store->rows;
    for (size_t i = 0; i < store->extent_count; i++) {
        const embla_extent_at *e = &store->extents[i];
        double first = (double)e->first * per_row;
        double last = (double)(e->first + e->rows - 1) * per_row;
        if (first + 1.0 < (double)i || last > (double)i + 2.0) return 0.0;
    }
    return per_row;
}

/* Cuts an extent to the rows that the store holds. Returns false if it holds none of them. */
static bool cut_extent(const embla_store_engine_options *range, embla_extent_at *e)
{
    int64_t end = e->first + e->rows, low = e->first > range->first ? e->first : range->first;
    if (range->end > 0 && range->end < end) end = range->end;
    if (low >= end) return false;
    uint64_t before = (uint64_t)(low - e->first);
    for (size_t p = 0; p < e->planes; p++)
        e->offset[p] += e->group > 0 ? before / e->group * e->group_bytes : before * e->stride[p];
    if (e->group > 0) e->skipped = before % e->group;
    e->first = low;
    e->rows = end - low;
    return true;
}

embla_status embla_extents_add(embla_store *store, embla_extent_at extent)
{
    uint64_t rows, bytes;
    size_t all;
    void *list = store->extents;
    if (extent.rows < 1 || extent.rows > EMBLA_ROWS_MOST - store->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows after %" PRId64
                          " rows; a table must have 1 to 2^40 rows",
                          extent.rows, store->rows);
    rows = (uint64_t)(store->rows + extent.rows);
    if (!embla_mul_ok(rows, store->row.bytes, &bytes) || !embla_size_ok(bytes, &all))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%" PRIu64 " rows of %zu bytes do not fit in memory",
                          rows, store->row.bytes);
    set_planes(store, &extent);
    for (size_t p = 0; p < extent.planes; p++) EMBLA_TRY(check_plane(&extent, p));
    extent.first = store->rows;
    if (!cut_extent(&store->engine, &extent)) {
        store->rows = (int64_t)rows;
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_arena_grow(&store->arena, sizeof *store->extents, store->extent_count,
                               "the list of extents", &list, &store->extent_room));
    store->extents = list;
    for (size_t p = 0; p < extent.planes; p++)
        EMBLA_TRY(find_or_add_source(store, extent.map[p], &extent.source[p]));
    store->extents[store->extent_count++] = extent;
    store->rows = (int64_t)rows;
    store->held += extent.rows;
    store->bytes = store->held * (int64_t)store->row.bytes; /* `bytes` did not overflow */
    return EMBLA_OK;
}

void embla_extents_settle(embla_store *store)
{
    bool whole = store->held == store->rows && store->extent_count > 1;
    store->extents_a_row = whole ? extents_per_row(store) : 0.0;
}

/* ---- finding ---- */

const embla_extent_at *embla_extents_find(const embla_store *store, int64_t row)
{
    const embla_extent_at *e = store->extents;
    size_t low = 0, high = store->extent_count; /* the extent is in low .. high-1 */
    if (high == 1) return e;
    if (store->extents_a_row > 0.0) { /* at most one off, as extents_per_row has checked */
        size_t i = (size_t)((double)row * store->extents_a_row);
        if (i >= high) i = high - 1;
        while (row < e[i].first) i--;
        while (row - e[i].first >= e[i].rows) i++;
        return &e[i];
    }
    while (high - low > 1) {
        size_t middle = low + (high - low) / 2;
        if (row < e[middle].first)
            high = middle;
        else
            low = middle;
    }
    return &e[low];
}

/* ---- reading ---- */

bool embla_extents_locate(const void *owner, int64_t row, uint64_t at[EMBLA_PLANES])
{
    const embla_store *store = owner;
    const embla_extent_at *e = embla_extents_find(store, row);
    uint64_t r = (uint64_t)(row - e->first);
    at[0] = embla_extent_row(e, 0, r);
    at[1] = e->planes == 1 ? at[0] + store->row.code_bytes : embla_extent_row(e, 1, r);
    return e->planes > 1 && (e->map[0] != e->map[1] || at[1] < at[0]);
}

embla_status embla_extents_read(const void *owner, int64_t row, const embla_row_part *part,
                                void *out)
{
    const embla_store *store = owner;
    const embla_extent_at *e = embla_extents_find(store, row);
    uint64_t at = (uint64_t)(row - e->first), code = embla_extent_row(e, 0, at);
    size_t codes = store->row.code_bytes;
    bool joined = e->planes == 1 && part->scale_bytes > 0;
    uint64_t scale = joined ? code + codes : embla_extent_row(e, 1, at);
    const embla_map *map = joined ? e->map[0] : e->map[1];
    if (joined && part->code_at + part->code_bytes == codes && part->scale_at == 0)
        return embla_map_read(e->map[0], code + part->code_at, part->bytes, out);
    EMBLA_TRY(embla_map_read(e->map[0], code + part->code_at, part->code_bytes, out));
    if (part->scale_bytes == 0) return EMBLA_OK;
    return embla_map_read(map, scale + part->scale_at, part->scale_bytes,
                          (char *)out + part->code_bytes);
}
