/* SPDX-License-Identifier: Apache-2.0 */
/* Compares the rows of a store with its files, which are read again row by row. The files must
 * still be the ones that were opened, by name and contents. */
#include <string.h>

#include "base/hash.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "files/io.h"
#include "store/store.h"

/* State shared by all threads. */
typedef struct {
    const embla_store *store;
    int64_t count; /* rows to compare */
    uint64_t seed;
    size_t block; /* rows compared at once */
    char *memory; /* block + 1 rows for each slot */
    atomic_llong different, first;
} comparing;

enum { BLOCK_MOST = 256 };

/* The i-th row to compare. The rows are split into count equal ranges; one random row of each is
 * taken, and always the first and the last row of the store. */
static int64_t sample_row(const comparing *c, int64_t i)
{
    const embla_store *store = c->store;
    int64_t share = store->held / c->count, rest = store->held % c->count;
    int64_t low = store->first + i * share + (i < rest ? i : rest);
    uint64_t random = embla_mix64(c->seed + (uint64_t)i * EMBLA_GOLDEN);
    if (i == 0) return store->first;
    if (i == c->count - 1) return store->first + store->held - 1;
    return low + (int64_t)(random % (uint64_t)(share + (i < rest)));
}

static void count_different(comparing *c, int64_t row)
{
    long long first = atomic_load(&c->first);
    atomic_fetch_add(&c->different, 1);
    while ((first < 0 || row < first) && !atomic_compare_exchange_weak(&c->first, &first, row))
        continue;
}

static embla_status compare_block(comparing *c, int64_t number, char *memory)
{
    const embla_store *store = c->store;
    size_t bytes = store->row.bytes;
    int64_t rows[BLOCK_MOST], start = number * (int64_t)c->block;
    size_t n = c->count - start < (int64_t)c->block ? (size_t)(c->count - start) : c->block;
    embla_row_part part;
    char *plain = memory + c->block * bytes;
    EMBLA_TRY(embla_row_part_of(&store->row, 0, 0, &part));
    for (size_t i = 0; i < n; i++) rows[i] = sample_row(c, start + (int64_t)i);
    const embla_row_source source = embla_store_source(store);
    const embla_read_job job = {
        .rows = rows, .count = n, .known = n, .part = &part, .out = memory, .out_stride = bytes};
    EMBLA_TRY(embla_source_read(&source, &job));
    for (size_t i = 0; i < n; i++) {
        EMBLA_TRY(embla_extents_read(store, rows[i], &part, plain));
        if (memcmp(plain, memory + i * bytes, bytes) != 0) count_different(c, rows[i]);
    }
    return EMBLA_OK;
}

static embla_status compare_blocks(void *job, size_t first, size_t end, size_t slot)
{
    comparing *c = job;
    char *memory = c->memory + slot * (c->block + 1) * c->store->row.bytes;
    for (size_t i = first; i < end; i++) EMBLA_TRY(compare_block(c, (int64_t)i, memory));
    return EMBLA_OK;
}

static embla_status compare_all(comparing *c)
{
    enum { AT_ONCE = 1 << 20, A_READ = 4096 }; /* bytes at once; cost of a read, in bytes copied */
    size_t bytes = c->store->row.bytes;
    void *memory = NULL;
    c->block = bytes < AT_ONCE / BLOCK_MOST ? BLOCK_MOST : bytes < AT_ONCE ? AT_ONCE / bytes : 1;
    int threads = embla_threads_for(c->store->options.threads, (size_t)c->count * A_READ);
    size_t all = (c->block + 1) * bytes * (size_t)threads;
    size_t blocks = (size_t)(c->count - 1) / c->block + 1;
    EMBLA_TRY(embla_mem_new(all, "rows to compare", &memory));
    c->memory = memory;
    embla_status status = embla_share(threads, blocks, 1, compare_blocks, c);
    embla_mem_free(memory, all);
    return status;
}

/* Opens the file by its name again: it must be the one that is open. */
static embla_status check_same_file(const embla_source *source)
{
    const embla_map *map = source->map;
    embla_file_facts now = {0};
    embla_handle file = -1;
    embla_status status = embla_io_open(EMBLA_HERE, source->path, EMBLA_OPEN_READ, 0, &file);
    if (status == EMBLA_ERR_NOT_FOUND)
        return embla_fail(EMBLA_ERR_IO, "%.256s was removed while open (C11)", source->path);
    EMBLA_TRY(status);
    status = embla_io_facts(file, source->path, &now);
    embla_io_drop(file);
    EMBLA_TRY(status);
    if (!embla_same_file(now.id, map->id))
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was replaced while open: its inode is now %" PRIu64
                          ", it was %" PRIu64 " (C11)",
                          source->path, now.id.id[0], map->id.id[0]);
    if (now.size > map->size) /* embla_sources_check reports a shorter file */
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was changed while open: it has %" PRId64 " bytes, it had %" PRIu64
                          " (C11)",
                          source->path, (int64_t)now.size, map->size);
    return EMBLA_OK;
}

static embla_status check_files(const embla_store *store)
{
    for (size_t i = 0; i < store->source_count; i++)
        if (store->sources[i].path) EMBLA_TRY(check_same_file(&store->sources[i]));
    EMBLA_TRY(embla_sources_check(store));
    const embla_row_source source = embla_store_source(store);
    return embla_source_check(&source);
}

embla_status embla_store_check(const embla_store *store)
{
    EMBLA_NEED(store);
    return check_files(store);
}

embla_status embla_store_verify(const embla_store *store, int64_t sample, uint64_t seed,
                                embla_verify_report *out)
{
    EMBLA_NEED(store);
    EMBLA_NEED(out);
    if (sample < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "sample is %" PRId64 "; it must be 0 or greater",
                          sample);
    if (store->extent_count == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "a view has no file to compare its rows with");
    comparing c = {.store = store, .seed = seed, .first = -1};
    c.count = sample == 0 || sample > store->held ? store->held : sample;
    if (c.count < 2) c.count = store->held < 2 ? store->held : 2; /* the first and the last row */
    EMBLA_TRY(check_files(store));
    EMBLA_TRY(compare_all(&c));
    EMBLA_TRY(check_files(store));
    *out = (embla_verify_report){
        .rows = c.count, .different = atomic_load(&c.different), .first = atomic_load(&c.first)};
    return EMBLA_OK;
}
