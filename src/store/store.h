/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind embla_store: which bytes of which files a row is (extents), and a placement
 * that brings rows to memory. For store/ and table/.
 */
#ifndef EMBLA_STORE_STORE_H
#define EMBLA_STORE_STORE_H

#include "base/row.h"
#include "files/map.h"
#include "store/placement.h"

/* Rows first .. first+rows-1: row r's bytes of a plane are at
 * offset[plane] + (r - first) * stride[plane] of file[plane]; they lie inside the file. */
typedef struct {
    int64_t first, rows;
    const embla_map *map[EMBLA_PLANES]; /* the second is NULL without scales */
    uint64_t offset[EMBLA_PLANES];
    uint64_t stride[EMBLA_PLANES];
    /* Filled in by embla_extents_add. */
    size_t source[EMBLA_PLANES]; /* whose files these are: numbers of store->sources */
    size_t planes;               /* 1 or 2; 1 where scales follow the numbers of each row */
    size_t bytes[EMBLA_PLANES];  /* of a row, in each plane */
} embla_extent_at;

/* What a file was when the store was opened: a later look must find the same (C11). */
typedef struct {
    embla_map *map;               /* held */
    const char *path;             /* to find it once more, for verify; NULL: not known */
    int64_t seconds, nanoseconds; /* when it was last changed */
} embla_source;

struct embla_store {
    embla_row row;
    int64_t rows;
    int64_t bytes; /* rows x row.bytes */
    const embla_placement *placement;
    const char *data; /* rows are in memory: row r is at data + r * stride; NULL: they are not */
    size_t stride;
    void *state; /* the placement's own */

    embla_arena arena;        /* extents, sources and their names */
    embla_extent_at *extents; /* ascending, without gaps; none of a view */
    size_t extent_count, extent_room;
    double extents_a_row;  /* parts are about equally long: row x this is about the extent; or 0 */
    embla_source *sources; /* the files, each once */
    size_t source_count, source_room;
    embla_store_options options; /* as it was opened; strings in the arena */
};

/* Bytes from the start of a plane's first row to the end of its last. */
static inline uint64_t embla_extent_span(const embla_extent_at *extent, size_t plane)
{
    return (uint64_t)(extent->rows - 1) * extent->stride[plane] + extent->bytes[plane];
}

/* store/extents.c. The extent of a row that exists. */
const embla_extent_at *embla_extents_find(const embla_store *store, int64_t row);
/* Checks that rows lie in their files and adds them at the end; extent.first is filled in. Both
 * planes have their maps already, which become sources of the store: one owner more. */
EMBLA_CHECKED embla_status embla_extents_add(embla_store *store, embla_extent_at extent);
/* After the last of them: makes finding quick. */
void embla_extents_settle(embla_store *store);
/* The two functions of a source kind (lookup/source.h) that are the same for all placements: the
 * owner is a store. embla_extents_read reads part of one row with pread: all placements are
 * compared with it. It raises no signal, whatever happens to the file. */
EMBLA_CHECKED embla_status embla_extents_read(const void *owner, int64_t row,
                                              const embla_row_part *part, void *out);
bool embla_extents_locate(const void *owner, int64_t row, uint64_t at[EMBLA_PLANES]);
/* Rows first .. first+count-1, whole, one after the other, to memory: large reads past the page
 * cache where the system can (O_DIRECT), many at once; planes are put together. */
EMBLA_CHECKED embla_status embla_extents_fill(const embla_store *store, int64_t first,
                                              int64_t count, char *memory);
/* All rows of the files into the page cache, by reading them. */
EMBLA_CHECKED embla_status embla_extents_warm(const embla_store *store,
                                              const embla_store_options *options);

/* store/store.c. A store without rows: embla_extents_add comes next, then embla_store_finish, or
 * embla_store_free. Options may be NULL; what they point to is copied. */
EMBLA_CHECKED embla_status embla_store_begin(const embla_row_format *format,
                                             const embla_store_options *options, embla_store **out);
/* Opens the placement. On failure the store is gone, too. */
EMBLA_CHECKED embla_status embla_store_finish(embla_store *store, embla_store **out);
/* store/ram.c. Bytes of this memory that are on huge pages, as the system says; -1: not known. */
int64_t embla_store_huge(const void *memory, size_t bytes);
/* store/store.c. EMBLA_ERR_IO if a file is no longer what it was: shorter, or changed. */
EMBLA_CHECKED embla_status embla_sources_check(const void *store);
/* store/store_lookup.c. The store as a lookup sees it. */
embla_row_source embla_store_source(const embla_store *store);

#endif
