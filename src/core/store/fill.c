/* SPDX-License-Identifier: Apache-2.0 */
/* Copies many rows from files to memory.
 *
 * Threads share the blocks of rows. A thread reads a block with one large read per plane into its
 * own buffer, then copies the rows to their destination: direct reads (O_DIRECT) need whole pages,
 * and rows are not page-aligned. Direct reads bypass the page cache, so the data is in memory once.
 * Through the page cache a table of 50 GB would take 100 GB. If the system does not support direct
 * reads, the page cache is asked to drop the pages afterwards.
 *
 * Warming does the opposite: it reads rows only to bring them into the page cache.
 */
#include <string.h>

#include "base/mem.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"
#include "files/io.h"
#include "store/store.h"

enum { WINDOW = 4 << 20 }; /* approximate bytes per read */

/* State shared by all threads. */
typedef struct {
    const embla_store *store;
    const embla_store_options *options;
    int64_t first, count; /* rows */
    int64_t block;        /* rows read at once */
    char *memory;
    embla_handle *direct; /* for each source: a file for direct reads, or -1 */
    size_t list_bytes;
    char *staging; /* staging_bytes for each slot, aligned to EMBLA_DIRECT */
    size_t staging_bytes;
    int threads;
    atomic_llong done;    /* bytes */
    atomic_bool buffered; /* some reads went through the page cache */
    int64_t bytes;        /* total */
    const char *what;     /* for progress */
    int64_t reported;     /* last value passed to progress; used by the calling thread only */
} filling;

/* ---- one block ---- */

/* Reads `bytes` bytes of a source, from offset on, into staging. *at points to the first of
 * them. */
static embla_status read_window(filling *f, size_t source, uint64_t offset, size_t bytes,
                                char *staging, const char **at)
{
    const embla_map *map = f->store->sources[source].map;
    size_t front = offset % EMBLA_DIRECT, got = 0;
    size_t whole = (front + bytes + EMBLA_DIRECT - 1) / EMBLA_DIRECT * EMBLA_DIRECT;
    if (f->direct[source] >= 0 &&
        embla_io_pread_direct(f->direct[source], map->name, offset - front, whole, staging, &got) ==
            EMBLA_OK &&
        got >= front + bytes) {
        *at = staging + front;
        return EMBLA_OK;
    }
    /* Fallback; if the direct read failed or was short, this read reports the error. */
    EMBLA_TRY(embla_map_read(map, offset, bytes, staging));
    if (map->file >= 0) embla_io_forget(map->file, offset, bytes);
    atomic_store(&f->buffered, true);
    *at = staging;
    return EMBLA_OK;
}

/* Copies rows first .. first+count-1 of an extent to out. */
static embla_status fill_rows(filling *f, const embla_extent_at *e, int64_t first, int64_t count,
                              char *staging, char *out)
{
    size_t row_bytes = f->store->row.bytes, n = (size_t)count;
    uint64_t row = (uint64_t)(first - e->first);
    for (size_t p = 0; p < e->planes; p++) {
        size_t bytes = e->bytes[p], stride = (size_t)e->stride[p];
        uint64_t offset = embla_extent_row(e, p, row);
        size_t span = (size_t)(embla_extent_row(e, p, row + n - 1) - offset) + bytes;
        char *to = p == 0 ? out : out + e->bytes[0];
        const char *from = NULL;
        EMBLA_TRY(read_window(f, e->source[p], offset, span, staging, &from));
        if (span == n * row_bytes && stride == row_bytes) {
            memcpy(to, from, span);
            continue;
        }
        for (size_t i = 0; i < n; i++)
            memcpy(to + i * row_bytes, from + (embla_extent_row(e, p, row + i) - offset), bytes);
    }
    return EMBLA_OK;
}

/* Copies one block. Its rows may lie in several extents. */
static embla_status fill_block(filling *f, int64_t number, char *staging, int64_t *bytes)
{
    int64_t row = f->first + number * f->block, end = f->first + f->count;
    size_t row_bytes = f->store->row.bytes;
    if (end - row > f->block) end = row + f->block;
    *bytes = (end - row) * (int64_t)row_bytes;
    for (int64_t next; row < end; row = next) {
        const embla_extent_at *e = embla_extents_find(f->store, row);
        next = e->first + e->rows < end ? e->first + e->rows : end;
        EMBLA_TRY(fill_rows(f, e, row, next - row, staging,
                            f->memory + (size_t)(row - f->first) * row_bytes));
    }
    return EMBLA_OK;
}

/* Reports progress, only from the calling thread. */
static embla_status report_progress(filling *f, int64_t done)
{
    const embla_store_options *o = f->options;
    if (!o->progress || !embla_share_is_caller() || done <= f->reported) return EMBLA_OK;
    f->reported = done;
    return embla_progress_report(o->progress, o->context, f->what, done, f->bytes);
}

/* ---- all blocks ---- */

/* Chooses the block size: the number of rows, at the largest stride, that fit in a window. */
static void choose_block(filling *f)
{
    uint64_t stride = 1, row = 1; /* a group of rows counts as one row, at the end */
    const embla_store *store = f->store;
    for (size_t i = 0; i < store->extent_count; i++) {
        const embla_extent_at *e = &store->extents[i];
        for (size_t p = 0; p < e->planes; p++) {
            uint64_t each = e->group > 0 ? e->group_bytes / e->group + 1 : e->stride[p];
            uint64_t last = e->group > 0 ? 2 * e->group_bytes : e->bytes[p];
            if (each > stride) stride = each;
            if (last > row) row = last;
        }
    }
    f->block = stride < WINDOW ? (int64_t)(WINDOW / stride) : 1;
    if (f->block > f->count) f->block = f->count;
    size_t span = (size_t)((uint64_t)(f->block - 1) * stride + row);
    f->staging_bytes = (span / EMBLA_DIRECT + 3) * EMBLA_DIRECT; /* one page before, one after */
    f->threads = embla_threads_for(f->options->threads, (size_t)f->bytes);
}

static embla_status fill_blocks(void *job, size_t first, size_t end, size_t slot)
{
    filling *f = job;
    for (size_t i = first; i < end; i++) {
        int64_t bytes = 0;
        EMBLA_TRY(fill_block(f, (int64_t)i, f->staging + slot * f->staging_bytes, &bytes));
        EMBLA_TRY(report_progress(f, atomic_fetch_add(&f->done, bytes) + bytes));
    }
    return EMBLA_OK;
}

/* The page cache can drop a page only when all its data has been read. Now it has been. */
static void drop_page_cache(const filling *f)
{
    const embla_store *store = f->store;
    for (size_t i = 0; i < store->source_count; i++) {
        uint64_t low = UINT64_MAX, high = 0;
        for (size_t k = 0; k < store->extent_count; k++)
            for (size_t p = 0; p < store->extents[k].planes; p++) {
                const embla_extent_at *e = &store->extents[k];
                uint64_t end = e->offset[p] + embla_extent_span(e, p);
                if (e->source[p] != i) continue;
                if (e->offset[p] < low) low = e->offset[p];
                if (end > high) high = end;
            }
        low = low / EMBLA_DIRECT * EMBLA_DIRECT; /* whole pages */
        if (store->sources[i].map->file >= 0)
            embla_io_forget(store->sources[i].map->file, low, high - low + EMBLA_DIRECT);
    }
}

static embla_status open_direct(filling *f)
{
    const embla_store *store = f->store;
    void *memory = NULL;
    f->list_bytes = store->source_count * sizeof *f->direct;
    EMBLA_TRY(embla_mem_new(f->list_bytes, "the list of files", &memory));
    f->direct = memory;
    for (size_t i = 0; i < store->source_count; i++)
        f->direct[i] =
            store->sources[i].map->file >= 0 ? embla_io_direct(store->sources[i].map->file) : -1;
    return EMBLA_OK;
}

embla_status embla_extents_fill(const embla_store *store, int64_t first, int64_t count,
                                char *memory)
{
    filling f = {.store = store,
                 .what = "copy",
                 .options = &store->options,
                 .first = first,
                 .count = count,
                 .memory = memory,
                 .bytes = count * (int64_t)store->row.bytes};
    void *staging = NULL;
    if (count == 0) return EMBLA_OK;
    if (!embla_store_holds(store, first) || count > store->first + store->held - first)
        return embla_fail(EMBLA_ERR_RANGE,
                          "%" PRId64 " rows from row %" PRId64
                          " on are to be copied, but the store "
                          "has %" PRId64 " rows from row %" PRId64 " on",
                          count, first, store->held, store->first);
    choose_block(&f);
    size_t staging_all = f.staging_bytes * (size_t)f.threads + EMBLA_DIRECT;
    EMBLA_TRY(embla_mem_new(staging_all, "the read buffers", &staging));
    f.staging = (char *)staging + (EMBLA_DIRECT - (uintptr_t)staging % EMBLA_DIRECT);
    embla_status status = open_direct(&f);
    if (status == EMBLA_OK) {
        status = embla_share(f.threads, (size_t)((count - 1) / f.block + 1), 1, fill_blocks, &f);
        if (atomic_load(&f.buffered)) drop_page_cache(&f);
        for (size_t i = 0; i < store->source_count; i++)
            if (f.direct[i] >= 0) embla_io_drop(f.direct[i]);
    }
    embla_mem_free(f.direct, f.list_bytes);
    embla_mem_free(staging, staging_all);
    EMBLA_TRY(status);
    EMBLA_TRY(report_progress(&f, f.bytes)); /* another thread may have finished last */
    return embla_sources_check(store);
}

/* ---- warming ---- */

/* A plane of an extent, which is read in windows. */
typedef struct {
    filling *filling;
    const embla_map *map;
    uint64_t offset, span;
} warming;

/* Reads windows and discards the data. */
static embla_status warm_windows(void *job, size_t first, size_t end, size_t slot)
{
    const warming *w = job;
    filling *f = w->filling;
    for (size_t i = first; i < end; i++) {
        uint64_t at = (uint64_t)i * WINDOW;
        size_t bytes = w->span - at < WINDOW ? (size_t)(w->span - at) : WINDOW;
        EMBLA_TRY(
            embla_map_read(w->map, w->offset + at, bytes, f->staging + slot * f->staging_bytes));
        EMBLA_TRY(report_progress(f, atomic_fetch_add(&f->done, (int64_t)bytes) + (int64_t)bytes));
    }
    return EMBLA_OK;
}

static embla_status warm_all(filling *f)
{
    for (size_t i = 0; i < f->store->extent_count; i++) {
        const embla_extent_at *e = &f->store->extents[i];
        for (size_t p = 0; p < e->planes; p++) {
            const warming w = {f, e->map[p], e->offset[p], embla_extent_span(e, p)};
            size_t windows = (size_t)((w.span - 1) / WINDOW) + 1;
            EMBLA_TRY(embla_share(f->threads, windows, 1, warm_windows, &w));
        }
    }
    return EMBLA_OK;
}

embla_status embla_extents_warm(const embla_store *store, const embla_store_options *options)
{
    filling f = {.store = store, .options = options, .what = "read"};
    void *staging = NULL;
    for (size_t i = 0; i < store->extent_count; i++)
        for (size_t p = 0; p < store->extents[i].planes; p++) {
            int64_t span = (int64_t)embla_extent_span(&store->extents[i], p);
            /* extents of sparse files can overlap, so the sum could overflow */
            f.bytes = span > INT64_MAX - f.bytes ? INT64_MAX : f.bytes + span;
        }
    f.threads = embla_threads_for(options->threads, (size_t)f.bytes);
    f.staging_bytes = f.bytes < WINDOW ? (size_t)f.bytes : WINDOW;
    size_t all = (size_t)f.threads * f.staging_bytes;
    EMBLA_TRY(embla_mem_new(all, "the read buffers", &staging));
    f.staging = staging;
    embla_status status = warm_all(&f);
    embla_mem_free(staging, all);
    EMBLA_TRY(status);
    EMBLA_TRY(report_progress(&f, f.bytes));
    return embla_sources_check(store);
}
