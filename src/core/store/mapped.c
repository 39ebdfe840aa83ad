/* SPDX-License-Identifier: Apache-2.0 */
/* Rows stay in the mapped files and are read through the page cache.
 *
 * The mapping is marked for random access. A row that is not in the page cache then reads its own
 * page, not megabytes around it. If a file is truncated while its rows are read, the process would
 * be killed by a signal. Therefore opening this placement installs a signal handler (embla_guard)
 * that turns the signal into a status. A file that cannot be guarded is refused. Each lookup checks
 * before and after whether the files have changed.
 */
#include <string.h>

#include "base/kernels.h"
#include "files/io.h"
#include "store/store.h"

/* ---- opening ---- */

/* Replaces the maps of all files by private ones that may be written to. */
static embla_status make_writable(embla_store *store)
{
    for (size_t i = 0; i < store->source_count; i++) {
        embla_source *source = &store->sources[i];
        embla_map *private = NULL;
        if (source->map->file < 0) continue; /* memory of the caller */
        EMBLA_TRY(embla_map_private(source->map, &private));
        for (size_t k = 0; k < store->extent_count; k++)
            for (size_t p = 0; p < EMBLA_PLANES; p++)
                if (store->extents[k].map[p] == source->map) store->extents[k].map[p] = private;
        embla_map_free(source->map); /* the private map holds it */
        source->map = private;
        source->path = private->name;
    }
    return EMBLA_OK;
}

static embla_status open_mapped(embla_store *store)
{
    EMBLA_TRY(embla_guard());
    if (store->engine.writable) EMBLA_TRY(make_writable(store));
    for (size_t i = 0; i < store->source_count; i++) {
        const embla_map *map = store->sources[i].map;
        if (map->file >= 0 && map->guard < 0)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s cannot be protected against truncation: too many files are "
                              "open; use the placement ram, shared or read",
                              map->name);
    }
    for (size_t i = 0; i < store->extent_count; i++)
        for (size_t p = 0; p < store->extents[i].planes; p++) {
            const embla_extent_at *e = &store->extents[i];
            size_t span = (size_t)embla_extent_span(e, p);
            if (e->map[p]->file < 0) continue; /* memory of the caller, not a file */
            EMBLA_TRY(embla_io_random(e->map[p]->bytes + e->offset[p], span, e->map[p]->name));
        }
    return embla_sources_check(store);
}

/* ---- reading ---- */

/* The one or two byte ranges that make up a part of a row. */
typedef struct {
    size_t at[EMBLA_PLANES], bytes[EMBLA_PLANES]; /* offset in a plane; length, may be 0 */
    bool one; /* the scales follow the numbers, in the file and in the result */
} byte_ranges;

/* For extents with two planes, or with one. */
static byte_ranges ranges_of(const embla_store *store, const embla_row_part *part, size_t planes)
{
    size_t codes = store->row.code_bytes;
    byte_ranges r = {.at = {part->code_at, part->scale_at + (planes == 1 ? codes : 0)},
                     .bytes = {part->code_bytes, part->scale_bytes}};
    r.one = planes == 1 && r.at[0] + r.bytes[0] == r.at[1];
    if (part->scale_bytes == 0) r.one = true;
    if (r.one) r.bytes[0] = part->bytes;
    return r;
}

/* All rows are in one plane of one file, with a fixed stride, as in a table in memory. */
static void copy_single_extent(const embla_store *store, const embla_read_job *job)
{
    const embla_extent_at *e = store->extents;
    byte_ranges r = ranges_of(store, job->part, 1);
    for (size_t k = 0; k < (r.one ? 1 : EMBLA_PLANES); k++) {
        embla_copy_job copy = {.data = (const char *)e->map[0]->bytes + e->offset[0] + r.at[k],
                               .row_stride = (size_t)e->stride[0],
                               .row_bytes = r.bytes[k],
                               .rows = job->rows,
                               .count = job->count,
                               .known = job->known,
                               .out = job->out + (k == 0 ? 0 : r.bytes[0]),
                               .out_stride = job->out_stride,
                               .mode = EMBLA_WRITE_PLAIN,
                               .fetch = job->count > EMBLA_GROUP_LEAST};
        embla_kernels_get()->copy_rows(&copy);
    }
}

/* Pointers to the byte ranges of a row. The second is NULL if there is only one. */
typedef struct {
    const char *run[EMBLA_PLANES];
} row_pointers;

static row_pointers locate_row(const embla_store *store, const byte_ranges r[EMBLA_PLANES],
                               int64_t row)
{
    const embla_extent_at *e = embla_extents_find(store, row);
    const byte_ranges *my = &r[e->planes - 1];
    size_t second = e->planes - 1;
    uint64_t at = (uint64_t)(row - e->first);
    row_pointers found = {0};
    found.run[0] = (const char *)e->map[0]->bytes + embla_extent_row(e, 0, at) + my->at[0];
    if (!my->one)
        found.run[1] =
            (const char *)e->map[second]->bytes + embla_extent_row(e, second, at) + my->at[1];
    return found;
}

/* Finds count rows and prefetches their cache lines. */
static void prefetch_rows(const embla_store *store, const byte_ranges r[EMBLA_PLANES],
                          const embla_row_part *part, const int64_t *rows, size_t count,
                          row_pointers *out)
{
    for (size_t i = 0; i < count; i++) {
        out[i] = locate_row(store, r, rows[i]);
        size_t bytes = out[i].run[1] ? part->code_bytes : part->bytes;
        for (size_t k = 0; k < bytes; k += EMBLA_LINE) __builtin_prefetch(out[i].run[0] + k);
        __builtin_prefetch(out[i].run[0] + bytes - 1);
        if (out[i].run[1]) __builtin_prefetch(out[i].run[1]);
    }
}

/* Copies a group of rows while the next group is prefetched. The last prefetch is for the next
 * call, if its rows are known. */
static void copy_extents(const embla_store *store, const embla_read_job *job)
{
    const embla_row_part *part = job->part;
    const byte_ranges r[EMBLA_PLANES] = {ranges_of(store, part, 1), ranges_of(store, part, 2)};
    row_pointers groups[2][EMBLA_GROUP];
    size_t first = job->count < EMBLA_GROUP ? job->count : EMBLA_GROUP;
    prefetch_rows(store, r, part, job->rows, first, groups[0]);
    for (size_t done = 0, turn = 0; done < job->count; done += EMBLA_GROUP, turn ^= 1) {
        size_t next = done + EMBLA_GROUP, left = job->count - done;
        if (left < EMBLA_GROUP) next = job->count;
        if (next < job->known)
            prefetch_rows(store, r, part, job->rows + next,
                          job->known - next < EMBLA_GROUP ? job->known - next : EMBLA_GROUP,
                          groups[turn ^ 1]);
        for (size_t i = 0; i < next - done; i++) {
            const row_pointers *from = &groups[turn][i];
            char *out = job->out + (done + i) * job->out_stride;
            memcpy(out, from->run[0], from->run[1] ? part->code_bytes : part->bytes);
            if (from->run[1]) memcpy(out + part->code_bytes, from->run[1], part->scale_bytes);
        }
    }
}

static embla_status read_mapped(const void *owner, const embla_read_job *job)
{
    const embla_store *store = owner;
    const embla_extent_at *e = &store->extents[0];
    if (store->extent_count == 1 && e->planes == 1 && e->group == 0 && store->first == 0)
        copy_single_extent(store, job);
    else
        copy_extents(store, job);
    return EMBLA_OK;
}

/* ---- describe ---- */

static embla_status describe_mapped(const embla_store *store, embla_store_info *out)
{
    int64_t all = 0;
    for (size_t i = 0; i < store->extent_count; i++)
        for (size_t p = 0; p < store->extents[i].planes; p++) {
            const embla_extent_at *e = &store->extents[i];
            size_t span = (size_t)embla_extent_span(e, p);
            int64_t found = (int64_t)span;
            if (e->map[p]->file >= 0)
                EMBLA_TRY(embla_io_resident(e->map[p]->bytes + e->offset[p], span, e->map[p]->name,
                                            &found));
            if (found < 0) {
                out->resident = -1;
                return EMBLA_OK;
            }
            all += found;
        }
    /* gaps between rows are counted as well */
    out->resident = all < store->bytes ? all : store->bytes;
    return EMBLA_OK;
}

const embla_placement_ops embla_placement_mapped = {.name = "mapped",
                                                    .open = open_mapped,
                                                    .describe = describe_mapped,
                                                    .warm = embla_extents_warm,
                                                    .kind = {.read = read_mapped,
                                                             .check = embla_sources_check,
                                                             .reread = embla_extents_read,
                                                             .locate = embla_extents_locate,
                                                             .unit = 4096,
                                                             .at_once = 64}};
