/* SPDX-License-Identifier: Apache-2.0 */
/* The store handle: created from a row format, extents and a placement.
 *
 *   embla_store_begin -> embla_extents_add .. -> embla_store_finish
 *
 * Every store of files is created this way: by embla_store_open_extents below, and by find.c for
 * checkpoints.
 */
#include "store/store.h"

#include <string.h>

#include "base/byte_order.h"
#include "base/checked.h"
#include "base/failure.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/threads.h"
#include "files/io.h"
#include "store/bundles.h"

static const embla_placement_ops *placement_of(embla_placement placement)
{
    switch (placement) {
    case EMBLA_PLACEMENT_RAM:
        return &embla_placement_ram;
    case EMBLA_PLACEMENT_SHARED:
        return &embla_placement_shared;
    case EMBLA_PLACEMENT_MAPPED:
        return &embla_placement_mapped;
    case EMBLA_PLACEMENT_READ:
        return &embla_placement_read;
    case EMBLA_PLACEMENT_VIEW:
        return &embla_placement_view;
    case EMBLA_PLACEMENT_DIRECT:
        return &embla_placement_direct;
    }
    return NULL;
}

const char *embla_placement_name(embla_placement placement)
{
    const embla_placement_ops *ops = placement_of(placement);
    return ops ? ops->name : NULL;
}

/* ---- create, free ---- */

/* Copies a string into the store's arena. */
static embla_status copy_text(embla_store *store, const char **text)
{
    if (!*text) return EMBLA_OK;
    return embla_arena_text(&store->arena, *text, strlen(*text), text);
}

static embla_status copy_engine(embla_store *store)
{
    embla_store_options *o = &store->options;
    const embla_store_engine_options *e = o->engine;
    bool ram = o->placement == EMBLA_PLACEMENT_RAM;
    bool mapped = o->placement == EMBLA_PLACEMENT_MAPPED || o->placement == EMBLA_PLACEMENT_SHARED;
    if (!e) return EMBLA_OK;
    EMBLA_TRY(embla_options_check(e));
    if (e->first < 0 || e->end < 0 || (e->end > 0 && e->end <= e->first))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the range of rows begins at %" PRId64 " and ends before %" PRId64
                          "; it must have at least one row",
                          e->first, e->end);
    if (e->writable && !ram && !mapped)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "writable is only for the placements mapped and shared, not for %s",
                          store->placement->name);
    if (e->bind && !ram)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "only the placement ram can be bound to NUMA node %d, not %s", e->node,
                          store->placement->name);
    if (e->execute && o->placement != EMBLA_PLACEMENT_DIRECT)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "execute is only for the placement direct, not for %s",
                          store->placement->name);
    store->engine = *e;
    o->engine = &store->engine;
    return EMBLA_OK;
}

static embla_status copy_options(embla_store *store, const embla_store_options *options)
{
    embla_store_options *o = &store->options;
    if (options) *o = *options;
    store->placement = placement_of(o->placement);
    if (!store->placement)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown placement: %d", (int)o->placement);
    if (!store->placement->open)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a file cannot be opened with placement %s; use embla_store_view",
                          store->placement->name);
    EMBLA_TRY(embla_threads_check(o->threads));
    if (o->buffer && o->placement != EMBLA_PLACEMENT_RAM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a buffer is only for the placement ram, not for %s",
                          store->placement->name);
    if ((o->reader != EMBLA_READER_AUTO || o->depth != 0) && o->placement != EMBLA_PLACEMENT_DIRECT)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "reader (%d) and depth (%d) are only for the placement direct, not for %s",
            (int)o->reader, o->depth, store->placement->name);
    EMBLA_TRY(copy_engine(store));
    if (!(o->shared_wait >= 0))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "shared_wait is %g s; it must be 0 (no limit) or greater",
                          o->shared_wait);
    EMBLA_TRY(copy_text(store, &o->shared_folder));
    return copy_text(store, &o->shared_name);
}

embla_status embla_store_begin(const embla_row_format *format, const embla_store_options *options,
                               embla_store **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_row row;
    void *memory = NULL;
    EMBLA_TRY(embla_row_of(format, &row));
    EMBLA_TRY(embla_mem_new(sizeof(embla_store), "a store", &memory));
    embla_store *store = memory;
    store->row = row;
    embla_status status = copy_options(store, options);
    store->placement = NULL; /* nothing to close yet */
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    *out = store;
    return EMBLA_OK;
}

/* The rows that the store holds, now that the number of rows is known. */
static embla_status set_range(embla_store *store)
{
    const embla_store_engine_options *e = &store->engine;
    int64_t end = e->end > 0 ? e->end : store->rows;
    if (e->first >= store->rows || end > store->rows)
        return embla_fail(EMBLA_ERR_RANGE,
                          "the range of rows begins at %" PRId64 " and ends before %" PRId64
                          ", but the table has %" PRId64 " rows",
                          e->first, end > e->first ? end : e->first, store->rows);
    store->first = e->first;
    return EMBLA_OK;
}

/* Rows of a store are used as they are in the file, also where they are mapped. */
static embla_status check_order(const embla_store *store)
{
    embla_dtype dtype = store->row.format.dtype;
    if (!embla_order_differs(dtype)) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "rows of %s are little-endian in files, but this machine is big-endian, so "
                      "their bytes cannot be used in place; open a table, which copies them",
                      embla_dtype_name(dtype));
}

embla_status embla_store_finish(embla_store *store, embla_store **out)
{
    const embla_placement_ops *placement = placement_of(store->options.placement);
    embla_status status = check_order(store);
    if (status == EMBLA_OK) status = set_range(store);
    embla_extents_settle(store);
    if (status == EMBLA_OK) status = placement->open(store);
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    store->placement = placement;
    *out = store;
    return EMBLA_OK;
}

void embla_store_free(embla_store *store)
{
    if (!store) return;
    if (store->placement && store->placement->close) store->placement->close(store);
    for (size_t i = 0; i < store->source_count; i++) embla_map_free(store->sources[i].map);
    embla_bundles_free(store->bundles);
    embla_arena_free(&store->arena);
    embla_mem_free(store, sizeof *store);
}

/* ---- stores of extents ---- */

/* Finds the map of a file among the sources, or opens the file. */
static embla_status find_or_open_map(const embla_store *store, const char *path, embla_map **out)
{
    for (size_t i = store->source_count; i-- > 0;) {
        embla_map *map = store->sources[i].map;
        if (strcmp(map->name, path) != 0) continue;
        *out = embla_map_hold(map);
        return EMBLA_OK;
    }
    return embla_map_open_rows(path, out);
}

static embla_status add_extent(embla_store *store, const embla_extent *given)
{
    const embla_row *row = &store->row;
    bool scales = row->scale_bytes > 0, follow = scales && given->scale_offset == -1;
    const char *scale_file = given->scale_file ? given->scale_file : given->file;
    embla_extent_at e = {.rows = given->rows};
    embla_map *maps[EMBLA_PLANES] = {NULL, NULL};
    EMBLA_TRY(embla_options_check(given));
    if (!given->file) return embla_fail(EMBLA_ERR_ARGUMENT, "the file of an extent is NULL");
    if (given->offset < 0 || (scales && given->scale_offset < -1))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s: the offset of the rows is %" PRId64
                          " and that of the scales %" PRId64 "; neither may be negative",
                          given->file, given->offset, given->scale_offset);
    if (follow && given->scale_file)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%.256s: scale_file must be NULL if the scales follow the rows (scale_offset -1)",
            given->file);
    e.offset[0] = (uint64_t)given->offset;
    e.stride[0] = given->stride ? given->stride : follow ? row->bytes : row->code_bytes;
    e.offset[1] = follow ? e.offset[0] + row->code_bytes : (uint64_t)given->scale_offset;
    e.stride[1] = follow                ? e.stride[0]
                  : given->scale_stride ? given->scale_stride
                                        : row->scale_bytes;
    embla_status status = find_or_open_map(store, given->file, &maps[0]);
    if (status == EMBLA_OK && scales && strcmp(scale_file, given->file) == 0)
        maps[1] = embla_map_hold(maps[0]);
    else if (status == EMBLA_OK && scales)
        status = find_or_open_map(store, scale_file, &maps[1]);
    for (size_t p = 0; p < EMBLA_PLANES; p++) e.map[p] = maps[p];
    if (status == EMBLA_OK) status = embla_extents_add(store, e);
    for (size_t p = 0; p < EMBLA_PLANES; p++)
        embla_map_free(maps[p]); /* the sources hold their own references */
    return status;
}

embla_status embla_store_open_extents(const embla_row_format *format, const embla_extent *extents,
                                      size_t count, const embla_store_options *options,
                                      embla_store **out)
{
    embla_store *store = NULL;
    embla_status status = EMBLA_OK;
    EMBLA_NEED(format);
    EMBLA_NEED(extents);
    EMBLA_NEED(out);
    if (count == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "count is 0; a store needs at least one extent");
    EMBLA_TRY(embla_store_begin(format, options, &store));
    for (size_t i = 0; i < count && status == EMBLA_OK; i++)
        status = add_extent(store, &extents[i]);
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    return embla_store_finish(store, out);
}

/* ---- view ---- */

embla_status embla_store_view(const embla_row_format *format, int64_t rows, const void *data,
                              size_t data_bytes, size_t stride, embla_store **out)
{
    embla_store *store = NULL;
    size_t needed = 0, all;
    uint64_t bytes;
    embla_row row;
    EMBLA_NEED(format);
    EMBLA_NEED(data);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_row_of(format, &row));
    if (stride == 0) stride = row.bytes;
    if (rows < 1 || rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be from 1 to 2^40",
                          rows);
    if (stride < row.bytes)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the row stride is %zu bytes, less than a row's %zu bytes", stride,
                          row.bytes);
    if (!embla_span_ok((uint64_t)rows, stride, row.bytes, &needed) ||
        !embla_mul_ok((uint64_t)rows, row.bytes, &bytes) || !embla_size_ok(bytes, &all))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows, %zu bytes apart, do not fit in memory", rows, stride);
    if (data_bytes < needed)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%" PRId64
                          " rows, %zu bytes apart, need %zu bytes, but data_bytes is %zu",
                          rows, stride, needed, data_bytes);
    EMBLA_TRY(embla_store_begin(format, NULL, &store));
    store->placement = &embla_placement_view;
    store->options.placement = EMBLA_PLACEMENT_VIEW;
    store->rows = store->held = rows;
    store->bytes = (int64_t)all;
    store->data = data;
    store->stride = stride;
    *out = store;
    return EMBLA_OK;
}

/* ---- changed files ---- */

embla_status embla_sources_check_one(const embla_source *source)
{
    int64_t seconds, nanoseconds;
    EMBLA_TRY(embla_map_modified(source->map, &seconds, &nanoseconds));
    if (seconds == source->seconds && nanoseconds == source->nanoseconds) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_IO,
                      "%.256s was changed while open: at %" PRId64 ".%09" PRId64
                      ", last known change at %" PRId64 ".%09" PRId64 " (C11)",
                      source->map->name, seconds, nanoseconds, source->seconds,
                      source->nanoseconds);
}

embla_status embla_sources_check(const void *owner)
{
    const embla_store *store = owner;
    for (size_t i = 0; i < store->source_count; i++)
        EMBLA_TRY(embla_sources_check_one(&store->sources[i]));
    return EMBLA_OK;
}

/* ---- describe, warm ---- */

embla_status embla_store_describe(const embla_store *store, embla_store_info *out)
{
    EMBLA_NEED(store);
    EMBLA_NEED(out);
    embla_store_info info = {.format = store->row.format,
                             .rows = store->rows,
                             .first = store->first,
                             .end = store->first + store->held,
                             .row_bytes = store->row.bytes,
                             .parts = store->extent_count,
                             .placement = store->options.placement,
                             .bytes = store->bytes,
                             .huge_bytes = -1,
                             .resident = store->bytes};
    if (store->placement->describe) EMBLA_TRY(store->placement->describe(store, &info));
    *out = info;
    return EMBLA_OK;
}

embla_status embla_store_warm(const embla_store *store, const embla_store_options *options)
{
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(store);
    if (options) EMBLA_TRY(embla_threads_check(options->threads));
    const embla_store_options none = {0};
    if (!store->placement->warm) return EMBLA_OK;
    return store->placement->warm(store, options ? options : &none);
}
