/* SPDX-License-Identifier: Apache-2.0 */
/* Which bytes of which files a row is.
 *
 * A giant table lies in many files (Qwen's in 128 parts), its numbers and its scales in tensors
 * of their own. An extent is a range of rows that lie a fixed number of bytes apart in each of
 * one or two planes. embla_extents_add is the proof: what it has accepted lies in its file, and
 * no product of a row with a stride overflows. embla_extents_read is the plain way to a row that
 * all others are held to.
 */
#include <string.h>

#include "base/checked.h"
#include "store/store.h"

/* ---- adding ---- */

/* The number of the source that has this map; a new one if none has. */
static embla_status source_of(embla_store *store, const embla_map *map, size_t *out)
{
    for (size_t i = store->source_count; i-- > 0;)
        if (store->sources[i].map == map) {
            *out = i;
            return EMBLA_OK;
        }
    embla_source source = {.path = map->fd < 0 ? NULL : map->name};
    void *list = store->sources;
    EMBLA_TRY(embla_arena_grow(&store->arena, sizeof *store->sources, store->source_count,
                               "a list of files", &list, &store->source_room));
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
                          "%.256s: %s %" PRIu64 " bytes apart, but each has %zu bytes", map->name,
                          what, extent->stride[plane], bytes);
    if (!embla_span_ok((uint64_t)extent->rows, extent->stride[plane], bytes, &span) ||
        !embla_add_ok(span, extent->offset[plane], &end) || end > (uint64_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s: %" PRId64 " %s, %" PRIu64 " bytes apart, from %" PRIu64
                          " on: no file is that long",
                          map->name, extent->rows, what, extent->stride[plane],
                          extent->offset[plane]);
    if (end > map->size)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%.256s: %" PRId64 " %s from %" PRIu64 " on end at %" PRIu64
                          ", but it has %" PRIu64 " bytes",
                          map->name, extent->rows, what, extent->offset[plane], end, map->size);
    return EMBLA_OK;
}

/* Fills in what follows from the row format: scales that stand behind the numbers of each row
 * are no plane of their own. */
static void join_planes(const embla_store *store, embla_extent_at *extent)
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

/* Whether a guess by the length of a part is never off by more than one (see find). */
static double guess_of(const embla_store *store)
{
    double a_row = (double)store->extent_count / (double)store->rows;
    for (size_t i = 0; i < store->extent_count; i++) {
        const embla_extent_at *e = &store->extents[i];
        double first = (double)e->first * a_row;
        double last = (double)(e->first + e->rows - 1) * a_row;
        if (first + 1.0 < (double)i || last > (double)i + 2.0) return 0.0;
    }
    return a_row;
}

embla_status embla_extents_add(embla_store *store, embla_extent_at extent)
{
    uint64_t rows, bytes;
    size_t all;
    void *list = store->extents;
    if (extent.rows < 1 || extent.rows > EMBLA_ROWS_MOST - store->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows after %" PRId64 ": a table has 1 to 2^40", extent.rows,
                          store->rows);
    rows = (uint64_t)(store->rows + extent.rows);
    if (!embla_mul_ok(rows, store->row.bytes, &bytes) || !embla_size_ok(bytes, &all))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%" PRIu64 " rows of %zu bytes are too many", rows,
                          store->row.bytes);
    join_planes(store, &extent);
    for (size_t p = 0; p < extent.planes; p++) EMBLA_TRY(check_plane(&extent, p));
    EMBLA_TRY(embla_arena_grow(&store->arena, sizeof *store->extents, store->extent_count,
                               "a list of extents", &list, &store->extent_room));
    store->extents = list;
    for (size_t p = 0; p < extent.planes; p++)
        EMBLA_TRY(source_of(store, extent.map[p], &extent.source[p]));
    extent.first = store->rows;
    store->extents[store->extent_count++] = extent;
    store->rows = (int64_t)rows;
    store->bytes = (int64_t)all;
    return EMBLA_OK;
}

void embla_extents_settle(embla_store *store)
{
    store->extents_a_row = store->extent_count > 1 ? guess_of(store) : 0.0;
}

/* ---- finding ---- */

const embla_extent_at *embla_extents_find(const embla_store *store, int64_t row)
{
    const embla_extent_at *e = store->extents;
    size_t low = 0, high = store->extent_count; /* it is in low .. high-1 */
    if (high == 1) return e;
    if (store->extents_a_row > 0.0) { /* off by one at most, by what guess_of has seen */
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
    at[0] = e->offset[0] + r * e->stride[0];
    at[1] = e->planes == 1 ? at[0] + store->row.code_bytes : e->offset[1] + r * e->stride[1];
    return e->planes > 1 && (e->map[0] != e->map[1] || at[1] < at[0]);
}

embla_status embla_extents_read(const void *owner, int64_t row, const embla_row_part *part,
                                void *out)
{
    const embla_store *store = owner;
    const embla_extent_at *e = embla_extents_find(store, row);
    uint64_t at = (uint64_t)(row - e->first), code = e->offset[0] + at * e->stride[0];
    size_t codes = store->row.code_bytes;
    bool joined = e->planes == 1 && part->scale_bytes > 0;
    uint64_t scale = joined ? code + codes : e->offset[1] + at * e->stride[1];
    const embla_map *map = joined ? e->map[0] : e->map[1];
    if (joined && part->code_at + part->code_bytes == codes && part->scale_at == 0)
        return embla_map_read(e->map[0], code + part->code_at, part->bytes, out);
    EMBLA_TRY(embla_map_read(e->map[0], code + part->code_at, part->code_bytes, out));
    if (part->scale_bytes == 0) return EMBLA_OK;
    return embla_map_read(map, scale + part->scale_at, part->scale_bytes,
                          (char *)out + part->code_bytes);
}
