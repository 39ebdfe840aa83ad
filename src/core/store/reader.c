/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a reader: chooses how to read, and allocates everything it will use.
 *
 *   io_uring   all files can be read past the page cache (O_DIRECT), and the kernel permits a ring
 *   pread      the same with threads: many containers forbid io_uring
 *   buffered   some file cannot: tmpfs, some network file systems. Threads read it through the
 *              page cache, which is asked to drop the pages afterwards
 */
#include "store/reader.h"

#include <stdio.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "store/bundles.h"
#include "store/gather.h"

enum { DEPTH_MOST = 1024, THREADS_MOST = 128 };
enum { DEPTH_DEFAULT = 64, THREADS_DEFAULT = 16 };

static const char *const names[] = {"auto", "io_uring", "pread", "buffered"};

const char *embla_reader_name(embla_reader_kind kind)
{
    return (unsigned)kind < sizeof names / sizeof names[0] ? names[kind] : NULL;
}

/* ---- choosing ---- */

static void close_direct(embla_reader *r)
{
    for (size_t i = 0; i < r->store->source_count; i++) {
        if (r->direct[i] >= 0) embla_io_drop(r->direct[i]);
        r->direct[i] = -1;
    }
}

/* Opens each file for direct reads, and tries one. Returns false, with the reason in r->why, if a
 * file cannot be read this way. */
static bool open_direct(embla_reader *r)
{
    for (size_t i = 0; i < r->store->source_count; i++) {
        const embla_map *map = r->store->sources[i].map;
        size_t got = 0;
        if (map->file < 0) continue; /* memory of the caller */
        r->direct[i] = embla_io_direct(map->file);
        if (r->direct[i] >= 0 &&
            embla_io_pread_direct(r->direct[i], map->name, 0, EMBLA_DIRECT, r->pages, &got) ==
                EMBLA_OK &&
            got > 0)
            continue;
        (void)snprintf(r->why, sizeof r->why,
                       "%.128s cannot be read past the page cache (O_DIRECT)", map->name);
        close_direct(r);
        return false;
    }
    return true;
}

/* Opens a ring, and reads a page with it: kernels before 5.6 have no such read. */
static bool open_ring(embla_reader *r)
{
    uint64_t tag = 0;
    int64_t result = 1;
    size_t i = 0;
    if (embla_ring_open((unsigned)r->depth, &r->ring) != EMBLA_OK) {
        (void)snprintf(r->why, sizeof r->why, "%.255s", embla_error());
        return false;
    }
    while (i < r->store->source_count && r->direct[i] < 0) i++;
    if (i == r->store->source_count) return true; /* no files at all */
    embla_ring_queue(&r->ring, r->direct[i], 0, r->pages, EMBLA_DIRECT, 0);
    r->ring.queued = 0;
    embla_outcome ended = embla_ring_wait(&r->ring, 1, 1);
    bool worked = embla_worked(ended);
    if (worked && embla_ring_pop(&r->ring, &tag, &result) && result > 0) return true;
    char text[128];
    embla_system_describe(worked ? (int)-result : ended.number, text, sizeof text);
    (void)snprintf(r->why, sizeof r->why, "io_uring cannot be used: a read failed: %s", text);
    embla_ring_close(&r->ring);
    return false;
}

/* The depth has been chosen for `wanted`; threads are fewer. */
static embla_status choose_kind(embla_reader *r, embla_reader_kind wanted)
{
    bool automatic = wanted == EMBLA_READER_AUTO;
    r->kind = EMBLA_READER_BUFFERED;
    if (wanted == EMBLA_READER_BUFFERED) return EMBLA_OK;
    if (open_direct(r)) {
        r->kind = EMBLA_READER_PREAD;
        if (wanted == EMBLA_READER_PREAD) return EMBLA_OK;
        if (open_ring(r)) r->kind = EMBLA_READER_IO_URING;
    }
    if (automatic || r->kind == wanted) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "the reader %s is not possible: %s", names[wanted],
                      r->why);
}

/* ---- memory ---- */

/* The largest piece of a row, from any byte of a page on; and a few pages, so that neighbouring
 * rows are read together. */
static size_t slot_bytes(const embla_store *store)
{
    enum { LEAST = 4 * EMBLA_DIRECT };
    size_t most = store->row.bytes + EMBLA_PACK_NUMBER + EMBLA_DIRECT - 1;
    most = (most + EMBLA_DIRECT - 1) / EMBLA_DIRECT * EMBLA_DIRECT;
    return most < LEAST ? LEAST : most;
}

static embla_status allocate(const embla_store *store, size_t depth, embla_reader **out)
{
    embla_layout layout = {0};
    void *memory = NULL;
    size_t each = slot_bytes(store), self = embla_layout_add(&layout, 1, sizeof(embla_reader));
    size_t slots = embla_layout_add(&layout, depth, sizeof(embla_slot));
    size_t free_slots = embla_layout_add(&layout, depth, sizeof(uint32_t));
    size_t direct = embla_layout_add(&layout, store->source_count, sizeof(int));
    size_t threads = embla_layout_add(&layout, THREADS_MOST, sizeof(embla_thread));
    size_t pages = embla_layout_add(&layout, depth, each);
    (void)embla_layout_add(&layout, 1, EMBLA_DIRECT); /* to align the pages */
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu reads of %zu bytes do not fit in memory", depth,
                          each);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the pages of a reader", &memory));
    char *base = memory;
    embla_reader *r = (void *)(base + self);
    *r = (embla_reader){.store = store,
                        .bytes = layout.bytes,
                        .depth = depth,
                        .slot_bytes = each,
                        .slots = (void *)(base + slots),
                        .free_slots = (void *)(base + free_slots),
                        .free_count = depth,
                        .direct = (void *)(base + direct),
                        .threads = (void *)(base + threads),
                        .origin = embla_origin_here(),
                        .ring = {.file = -1}};
    uintptr_t first = (uintptr_t)(base + pages), over = first % EMBLA_DIRECT;
    r->pages = base + pages + (over ? EMBLA_DIRECT - over : 0);
    for (size_t i = 0; i < depth; i++) r->free_slots[i] = (uint32_t)(depth - 1 - i);
    for (size_t i = 0; i < store->source_count; i++) r->direct[i] = -1;
    *out = r;
    return EMBLA_OK;
}

/* ---- threads ---- */

static void *read_until_closed(void *reader)
{
    const embla_reader *r = reader;
    return r->kind == EMBLA_READER_IO_URING ? embla_reader_reap_all(reader)
                                            : embla_reader_read_all(reader);
}

/* The same on a thread of the caller, which cannot be joined. */
static void run_for_caller(void *reader)
{
    embla_reader *r = reader;
    (void)read_until_closed(r);
    embla_lock_take(&r->lock);
    r->running--;
    embla_condition_signal_all(&r->ended);
    embla_lock_give(&r->lock);
}

/* Asks the caller for threads. */
static void borrow_threads(embla_reader *r, size_t wanted)
{
    const embla_store_engine_options *e = &r->store->engine;
    while (r->thread_count < wanted) {
        embla_lock_take(&r->lock);
        r->running++;
        embla_lock_give(&r->lock);
        if (!e->execute(e->context, run_for_caller, r)) break;
        r->thread_count++;
    }
    if (r->thread_count == wanted) return;
    embla_lock_take(&r->lock);
    r->running--; /* the last one was refused */
    embla_lock_give(&r->lock);
}

static void make_threads(embla_reader *r, size_t wanted)
{
    while (r->thread_count < wanted) {
        embla_outcome made = embla_thread_start(read_until_closed, r, &r->threads[r->thread_count]);
        if (made.error == EMBLA_SYSTEM_UNSUPPORTED) r->alone = true;
        if (!embla_worked(made)) return;
        r->thread_count++;
    }
}

static embla_status start_threads(embla_reader *r)
{
    bool theirs = r->store->engine.execute != NULL;
    size_t wanted = r->kind == EMBLA_READER_IO_URING ? 1 : r->depth;
    if (theirs)
        borrow_threads(r, wanted);
    else
        make_threads(r, wanted);
    if (r->thread_count > 0 || r->alone) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_MEMORY, "a reader needs at least 1 of %zu threads, and %s grants 0",
                      wanted, theirs ? "the caller's `execute`" : "the system");
}

/* ---- open, close ---- */

static embla_status choose_depth(const embla_store_options *o, size_t *depth)
{
    bool threads = o->reader == EMBLA_READER_PREAD || o->reader == EMBLA_READER_BUFFERED;
    int most = threads ? THREADS_MOST : DEPTH_MOST;
    if (!embla_reader_name(o->reader))
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown reader: %d; readers are 0 to %d",
                          (int)o->reader, EMBLA_READER_BUFFERED);
    if (o->depth < 0 || o->depth > most)
        return embla_fail(EMBLA_ERR_ARGUMENT, "depth is %d; it must be from 0 to %d", o->depth,
                          most);
    *depth = o->depth > 0 ? (size_t)o->depth : threads ? THREADS_DEFAULT : DEPTH_DEFAULT;
    return EMBLA_OK;
}

embla_status embla_reader_open(const embla_store *store, embla_reader **out)
{
    embla_reader *r = NULL;
    size_t depth = 0;
    EMBLA_TRY(choose_depth(&store->options, &depth));
    EMBLA_TRY(allocate(store, depth, &r));
    embla_status status = choose_kind(r, store->options.reader);
    if (status == EMBLA_OK && r->kind != EMBLA_READER_IO_URING) {
        size_t most = store->options.depth > 0 ? THREADS_MOST : THREADS_DEFAULT;
        if (r->depth > most) r->depth = most;
    }
    if (status == EMBLA_OK) status = start_threads(r);
    if (status != EMBLA_OK) {
        embla_reader_close(r);
        return status;
    }
    *out = r;
    return EMBLA_OK;
}

void embla_reader_close(embla_reader *r)
{
    if (!r) return;
    if (embla_origin_is_here(&r->origin)) { /* a forked child has none of the threads */
        embla_lock_take(&r->lock);
        r->stopping = true;
        embla_condition_signal_all(&r->work);
        while (r->running > 0) embla_condition_wait(&r->ended, &r->lock);
        embla_lock_give(&r->lock);
        bool own = !r->store->engine.execute;
        for (size_t i = 0; own && i < r->thread_count; i++) embla_system_join(r->threads[i]);
    }
    embla_ring_close(&r->ring);
    close_direct(r);
    embla_mem_free(r, r->bytes);
}

void embla_reader_describe(const embla_reader *r, embla_store_info *out)
{
    out->reader = r->kind;
    out->depth = (int)r->depth;
    out->reader_why = r->why[0] ? r->why : NULL;
    out->resident = 0;
}
