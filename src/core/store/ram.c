/* SPDX-License-Identifier: Apache-2.0 */
/* Rows in memory: of this process, of the caller, or of a view.
 *
 * Memory comes from base/mem, which requests huge pages before the first access. Then the caller's
 * callback may pin it. If a NUMA node is wanted, the memory is bound to it first. Only then rows
 * are read into it. The number of bytes on huge pages comes from /proc/self/smaps.
 */
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "base/mem.h"
#include "files/io.h"
#include "store/store.h"

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

/* ---- huge pages ---- */

/* State while smaps is parsed line by line. */
typedef struct {
    uintptr_t from, to; /* the memory in question */
    uint64_t overlap;   /* bytes of it in the current range of smaps */
    uint64_t found;
} smaps_count;

static void parse_smaps_line(smaps_count *a, const char *line)
{
    static const char *const kinds[] = {"AnonHugePages:", "ShmemPmdMapped:", "FilePmdMapped:"};
    unsigned long long from, to, kilobytes;
    if (sscanf(line, "%llx-%llx ", &from, &to) == 2) {
        uint64_t low = from > a->from ? from : a->from, high = to < a->to ? to : a->to;
        a->overlap = high > low ? high - low : 0;
        return;
    }
    for (size_t k = 0; a->overlap > 0 && k < sizeof kinds / sizeof kinds[0]; k++) {
        size_t length = strlen(kinds[k]);
        if (strncmp(line, kinds[k], length) != 0) continue;
        if (sscanf(line + length, "%llu", &kilobytes) != 1) continue;
        /* the range may be longer than our memory; count only our part */
        uint64_t bytes = (uint64_t)kilobytes * 1024;
        a->found += bytes < a->overlap ? bytes : a->overlap;
    }
}

static embla_status read_smaps(embla_handle file, smaps_count *a)
{
    static const char name[] = "/proc/self/smaps";
    char text[4096];
    size_t have = 0, got = 0;
    for (uint64_t offset = 0;; offset += got) {
        EMBLA_TRY(embla_io_pread(file, name, offset, sizeof text - 1 - have, text + have, &got));
        have += got;
        text[have] = '\0';
        char *line = text;
        for (char *end; (end = strchr(line, '\n')) != NULL; line = end + 1) {
            *end = '\0';
            parse_smaps_line(a, line);
        }
        have -= (size_t)(line - text);
        if (got == 0 || have == sizeof text - 1)
            return EMBLA_OK; /* the second cannot happen: no line is that long */
        memmove(text, line, have);
    }
}

int64_t embla_store_huge(const void *memory, size_t bytes)
{
    smaps_count a = {.from = (uintptr_t)memory, .to = (uintptr_t)memory + bytes};
    embla_handle file = -1;
    if (embla_io_open(EMBLA_HERE, "/proc/self/smaps", EMBLA_OPEN_READ, 0, &file) != EMBLA_OK)
        return -1;
    embla_status status = read_smaps(file, &a);
    embla_io_drop(file);
    return status == EMBLA_OK ? (int64_t)a.found : -1;
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
