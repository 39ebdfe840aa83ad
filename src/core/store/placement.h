/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows are kept. One interface, and one file in store/ for each placement: ram, shared,
 * mapped, read, direct.
 *
 * All placements return the same bytes; `read` is the reference.
 */
#ifndef EMBLA_STORE_PLACEMENT_H
#define EMBLA_STORE_PLACEMENT_H

#include "base/arena.h"
#include "embla_store.h"
#include "lookup/source.h"

typedef struct {
    const char *name;
    /* Makes the rows accessible. The store already has its row, rows, extents, sources and options.
     * On failure the placement has released everything it allocated. */
    embla_status (*open)(embla_store *store);
    /* Fills huge_bytes, resident, shared, built. NULL means there is nothing to fill in. */
    embla_status (*describe)(const embla_store *store, embla_store_info *out);
    embla_status (*warm)(const embla_store *store,
                         const embla_store_options *options); /* may be NULL */
    void (*close)(embla_store *store);
    embla_source_kind kind; /* how a lookup accesses the rows; its owner is the store */
} embla_placement_ops;

extern const embla_placement_ops embla_placement_ram, embla_placement_shared,
    embla_placement_mapped, embla_placement_read, embla_placement_direct, embla_placement_view;

#endif
