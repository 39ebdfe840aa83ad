/* SPDX-License-Identifier: Apache-2.0 */
/* Where rows live. One interface, one file in store/ for each placement: ram, shared, mapped,
 * read; a placement on disk that answers later fits the same way, with larger batches.
 *
 * All placements return identical bytes; `read` is what the others are held to.
 */
#ifndef EMBLA_STORE_PLACEMENT_H
#define EMBLA_STORE_PLACEMENT_H

#include "base/arena.h"
#include "base/row.h"
#include "embla_store.h"

/* Rows to fetch: part of row rows[i] goes to out + i * out_stride. */
typedef struct {
    const int64_t *rows; /* they exist */
    size_t count;
    size_t known; /* entries of rows that may be read, count or more: those to ask for ahead */
    const embla_row_part *part;
    char *out;
    size_t out_stride;
    embla_write_mode mode; /* of writing; STREAM: parts, out and out_stride are whole lines. Rows
                            that a file holds are written plainly whatever it says. */
} embla_rows_job;

typedef struct {
    const char *name;
    /* store has its row, rows, extents, sources and options: makes the rows reachable. On failure
     * everything the placement took has been given back. */
    embla_status (*open)(embla_store *store);
    /* Rows to job->out. NULL: rows are in memory, at store->data. */
    embla_status (*fetch)(const embla_store *store, const embla_rows_job *job);
    /* Whether rows are still what they were: asked before a lookup and after it. NULL: they are. */
    embla_status (*check)(const embla_store *store);
    /* Fills huge_bytes, resident, shared, built. NULL: nothing to say. */
    embla_status (*describe)(const embla_store *store, embla_store_info *out);
    embla_status (*warm)(const embla_store *store,
                         const embla_store_options *options); /* or NULL */
    void (*close)(embla_store *store);
    /* What it costs to touch a row's bytes: memory comes in lines, a file in pages. */
    size_t unit;
    /* Rows that a fetch is best given at once: a few where they are copied from memory, as many
     * as there are where reads wait for each other. */
    size_t at_once;
    bool distinct; /* worth finding duplicates before a fetch */
} embla_placement_ops;

extern const embla_placement_ops embla_placement_ram, embla_placement_shared,
    embla_placement_mapped, embla_placement_read, embla_placement_view;

#endif
