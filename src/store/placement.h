/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows live. One interface, one file in store/ for each placement: ram, shared, mapped,
 * read; a placement on disk that answers later fits the same way, with larger batches.
 *
 * All placements return identical bytes; `read` is what the others are held to.
 */
#ifndef EMBLA_STORE_PLACEMENT_H
#define EMBLA_STORE_PLACEMENT_H

#include "base/arena.h"
#include "embla_store.h"
#include "lookup/source.h"

typedef struct {
    const char *name;
    /* store has its row, rows, extents, sources and options: makes the rows reachable. On failure
     * everything the placement took has been given back. */
    embla_status (*open)(embla_store *store);
    /* Fills huge_bytes, resident, shared, built. NULL: nothing to say. */
    embla_status (*describe)(const embla_store *store, embla_store_info *out);
    embla_status (*warm)(const embla_store *store,
                         const embla_store_options *options); /* or NULL */
    void (*close)(embla_store *store);
    embla_source_kind kind; /* how a lookup reaches the rows; its owner is the store */
} embla_placement;

extern const embla_placement embla_placement_ram, embla_placement_shared, embla_placement_mapped,
    embla_placement_read, embla_placement_view;

#endif
