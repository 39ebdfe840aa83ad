/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of embla_store: extents, which say where rows are in files, and a placement, which
 * brings rows to memory. For store/ and table/. */
#ifndef EMBLA_STORE_STORE_H
#define EMBLA_STORE_STORE_H

#include "base/row.h"
#include "files/map.h"
#include "store/placement.h"

/* Rows first .. first+rows-1. The bytes of row r in a plane are at offset[plane] + (r - first) *
 * stride[plane] of map[plane]. They lie inside the file. */
typedef struct {
    int64_t first, rows;
    const embla_map *map[EMBLA_PLANES]; /* the second is NULL without scales */
    uint64_t offset[EMBLA_PLANES];
    uint64_t stride[EMBLA_PLANES];
    /* A pack (store/pack.h) has `group` rows in each `group_bytes` bytes, so that no row crosses a
     * page. 0 means no groups. */
    uint64_t group, group_bytes;
    uint64_t skipped; /* rows of its first group that the store does not hold */
    /* Set by embla_extents_add. */
    size_t source[EMBLA_PLANES]; /* indices into store->sources */
    size_t planes;               /* 1 or 2; 1 if the scales follow the numbers of each row */
    size_t bytes[EMBLA_PLANES];  /* bytes of a row in each plane */
} embla_extent_at;

typedef struct embla_bundles embla_bundles; /* store/bundles.h */

/* The state of a file when the store was opened. Later checks must find the same (C11). */
typedef struct {
    embla_map *map;               /* a reference is held */
    const char *path;             /* to find the file again (verify); NULL if there is no file */
    int64_t seconds, nanoseconds; /* time of the last change */
} embla_source;

struct embla_store {
    embla_row row;
    int64_t rows;        /* of the table; row numbers are below this */
    int64_t first, held; /* rows first .. first+held-1 are in the store; all, unless options.engine
                            says other */
    int64_t bytes;       /* held x row.bytes */
    const embla_placement_ops *placement;
    const char *data; /* row r is at data + (r - first) * stride; NULL if the rows are not in
                         memory */
    size_t stride;
    void *state; /* owned by the placement */

    embla_arena arena;        /* extents, sources and their names */
    embla_extent_at *extents; /* ascending, without gaps; a view has none */
    size_t extent_count, extent_room;
    double extents_a_row;  /* row x this is about the index of its extent; 0 if the extents differ
                              too much in length */
    embla_source *sources; /* the files, without duplicates */
    size_t source_count, source_room;
    embla_store_options options;       /* as opened; strings are in the arena */
    embla_bundles *bundles;            /* rows of frequent n-grams, side by side; NULL means none */
    embla_store_engine_options engine; /* options.engine points here */
};

/* The offset in its file of row `row` of an extent, counted from its first. */
static inline uint64_t embla_extent_row(const embla_extent_at *extent, size_t plane, uint64_t row)
{
    uint64_t at = extent->offset[plane];
    if (extent->group > 0) {
        row += extent->skipped;
        at += row / extent->group * extent->group_bytes;
        row %= extent->group;
    }
    return at + row * extent->stride[plane];
}

/* Bytes from the start of a plane's first row to the end of its last. */
static inline uint64_t embla_extent_span(const embla_extent_at *extent, size_t plane)
{
    return embla_extent_row(extent, plane, (uint64_t)extent->rows - 1) - extent->offset[plane] +
           extent->bytes[plane];
}

/* Whether the store has a row of the table. */
static inline bool embla_store_holds(const embla_store *store, int64_t row)
{
    return (uint64_t)(row - store->first) < (uint64_t)store->held;
}

/* store/extents.c. Finds the extent of a row, which the store must hold. */
const embla_extent_at *embla_extents_find(const embla_store *store, int64_t row);
/* Checks that the rows lie inside their files, and appends those that the store holds.
 * extent.first is set. The maps of both planes become sources of the store, which holds references
 * to them. */
EMBLA_CHECKED embla_status embla_extents_add(embla_store *store, embla_extent_at extent);
/* Call after the last embla_extents_add: makes embla_extents_find fast. */
void embla_extents_settle(embla_store *store);
/* Two functions of a source kind (lookup/source.h) that all placements share; the owner is a store.
 * embla_extents_read reads a part of one row with pread. It is the reference for all placements,
 * and never raises a signal. */
EMBLA_CHECKED embla_status embla_extents_read(const void *owner, int64_t row,
                                              const embla_row_part *part, void *out);
bool embla_extents_locate(const void *owner, int64_t row, uint64_t at[EMBLA_PLANES]);
/* Copies whole rows first .. first+count-1 to memory, without gaps. Uses large, parallel reads that
 * bypass the page cache if the system supports it (O_DIRECT). Numbers and scales are joined.
 * EMBLA_ERR_RANGE if the store does not hold them. */
EMBLA_CHECKED embla_status embla_extents_fill(const embla_store *store, int64_t first,
                                              int64_t count, char *memory);
/* Reads all rows of the files, to bring them into the page cache. */
EMBLA_CHECKED embla_status embla_extents_warm(const embla_store *store,
                                              const embla_store_options *options);

/* store/store.c. Creates a store without rows. Call embla_extents_add next, then embla_store_finish
 * or embla_store_free. options may be NULL; strings are copied. */
EMBLA_CHECKED embla_status embla_store_begin(const embla_row_format *format,
                                             const embla_store_options *options, embla_store **out);
/* Opens the placement. On failure the store is freed. */
EMBLA_CHECKED embla_status embla_store_finish(embla_store *store, embla_store **out);
/* store/pack_open.c. Opens a pack; layer must be that of its table, or -1. */
EMBLA_CHECKED embla_status embla_store_open_pack(const embla_checkpoint *checkpoint, int32_t layer,
                                                 const embla_store_options *options,
                                                 embla_store **out);
/* store/ram.c. Bytes of this memory that are on huge pages; -1 if unknown. */
int64_t embla_store_huge(const void *memory, size_t bytes);
/* store/store.c. EMBLA_ERR_IO if a file was truncated or changed. */
EMBLA_CHECKED embla_status embla_sources_check(const void *store);
/* The same for one file. */
EMBLA_CHECKED embla_status embla_sources_check_one(const embla_source *source);
/* store/numa.c. Binds memory to a NUMA node; it begins on a page. EMBLA_ERR_UNSUPPORTED if there is
 * no such node or the system refuses. */
EMBLA_CHECKED embla_status embla_numa_bind(void *memory, size_t bytes, int node);
/* EMBLA_ERR_MEMORY if a node has less than `bytes` bytes of memory left. */
EMBLA_CHECKED embla_status embla_numa_room(size_t bytes, int node);
/* EMBLA_ERR_UNSUPPORTED if a page of the memory is on another node. All pages must have been
 * written to. */
EMBLA_CHECKED embla_status embla_numa_check(const void *memory, size_t bytes, int node);
/* store/store_lookup.c. The store as a source for a lookup. */
embla_row_source embla_store_source(const embla_store *store);

#endif
