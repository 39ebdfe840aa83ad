/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory: of this process, of the caller, or of a view.
 *
 * Memory comes from base/mem, which requests huge pages before the first access. Then the caller's
 * callback may pin it. If a NUMA node is wanted, the memory is bound to it first. Only then rows
 * are read into it.
 */
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "base/mem.h"
#include "files/io.h"
#include "store/store.h"
#include "system/system_memory.h"

enum { AT_ONCE = 32 };

/* ---- ram ---- */

/* A node is bound by whole pages, so they must not be shared with other memory: large blocks have
 * pages of their own (base/mem.h). */
static size_t allocated_bytes(const embla_store *store)
{
    enum { LARGE = 2 << 20 };
    return store->engine.bind && store->bytes < LARGE ? LARGE : (size_t)store->bytes;
}

static void release_memory(embla_store *store, void *memory, bool notify)
{
    const embla_store_options *o = &store->options;
    if (notify && o->released) o->released(o->context, memory, (size_t)store->bytes);
    if (!o->buffer) embla_mem_free(memory, allocated_bytes(store));
}

static embla_status allocate_memory(const embla_store *store, void **out)
{
    const embla_store_options *o = &store->options;
    size_t bytes = (size_t)store->bytes;
    if (o->buffer) {
        if ((uintptr_t)o->buffer % EMBLA_LINE != 0)
            return embla_fail(EMBLA_ERR_ARGUMENT, "the buffer for rows is not aligned to %d bytes",
                              EMBLA_LINE);
        if (o->buffer_bytes < bytes)
            return embla_fail(EMBLA_ERR_SHAPE,
                              "the buffer has %zu bytes, but %" PRId64
                              " rows of %zu bytes need %zu",
                              o->buffer_bytes, store->held, store->row.bytes, bytes);
        *out = o->buffer;
        return EMBLA_OK;
    }
    if (store->engine.bind) EMBLA_TRY(embla_numa_room(bytes, store->engine.node));
    EMBLA_TRY(embla_mem_new(allocated_bytes(store), "the rows of a store", out));
    if (o->small_pages) embla_mem_small_pages(*out, bytes);
    return EMBLA_OK;
}

/* Fills the memory. If it is bound to a node, checks afterwards that it is there. */
static embla_status fill_memory(const embla_store *store, void *memory)
{
    const embla_store_engine_options *e = &store->engine;
    EMBLA_TRY(embla_extents_fill(store, store->first, store->held, memory));
    return e->bind ? embla_numa_check(memory, (size_t)store->bytes, e->node) : EMBLA_OK;
}

static embla_status open_ram(embla_store *store)
{
    const embla_store_options *o = &store->options;
    size_t bytes = (size_t)store->bytes;
    void *memory = NULL;
    embla_status status = EMBLA_OK;
    EMBLA_TRY(allocate_memory(store, &memory));
    if (store->engine.bind) status = embla_numa_bind(memory, bytes, store->engine.node);
    if (status != EMBLA_OK) {
        release_memory(store, memory, false);
        return status;
    }
    if (o->allocated) status = o->allocated(o->context, memory, bytes);
    bool notify = o->allocated && status == EMBLA_OK;
    if (status != EMBLA_OK) {
        const char *name = embla_status_name(status);
        status = embla_fail(status, "the `allocated` callback failed for %zu bytes: %s", bytes,
                            name ? name : "unknown status");
    } else
        status = fill_memory(store, memory);
    if (status != EMBLA_OK) {
        release_memory(store, memory, notify);
        return status;
    }
    store->state = memory;
    store->data = memory;
    store->stride = store->row.bytes;
    return EMBLA_OK;
}

static void close_ram(embla_store *store)
{
    release_memory(store, store->state, store->options.allocated != NULL);
}

int64_t embla_store_huge(const void *memory, size_t bytes)
{
    embla_outcome told;
    return embla_io_must_fail(&told) ? -1 : embla_system_huge_bytes(memory, bytes);
}

static embla_status describe_ram(const embla_store *store, embla_store_info *out)
{
    out->huge_bytes = embla_store_huge(store->data, (size_t)store->bytes);
    return EMBLA_OK;
}

const embla_placement_ops embla_placement_ram = {
    .name = "ram",
    .open = open_ram,
    .describe = describe_ram,
    .close = close_ram,
    .kind = {.reread = embla_extents_read, .unit = EMBLA_LINE}};

/* ---- view ---- */

const embla_placement_ops embla_placement_view = {.name = "view", .kind = {.unit = EMBLA_LINE}};
