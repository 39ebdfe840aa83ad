/* SPDX-License-Identifier: Apache-2.0 */
/* The handle: made of a row format, extents and a placement; asked about, compared, freed.
 *
 *   embla_store_begin -> embla_extents_add .. -> embla_store_finish
 *
 * Whoever has rows in files comes this way: open_extents below, and find.c for checkpoints.
 */
#include "store/store.h"

#include <fcntl.h>
#include <string.h>

#include "base/checked.h"
#include "base/failure.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/threads.h"
#include "files/io.h"

static const embla_placement_ops *placement_of(embla_placement placement)
{
    switch (placement) {
    case EMBLA_PLACEMENT_RAM:
        return &embla_placement_ram;
    case EMBLA_PLACEMENT_SHARED:
        return &embla_placement_shared;
    case EMBLA_PLACEMENT_MAPPED:
        return &embla_placement_mapped;
    case EMBLA_PLACEMENT_READ:
        return &embla_placement_read;
    case EMBLA_PLACEMENT_VIEW:
        return &embla_placement_view;
    }
    return NULL;
}

const char *embla_placement_name(embla_placement placement)
{
    const embla_placement_ops *ops = placement_of(placement);
    return ops ? ops->name : NULL;
}

/* ---- making ---- */

/* Strings that the store has to keep. */
static embla_status keep_text(embla_store *store, const char **text)
{
    if (!*text) return EMBLA_OK;
    return embla_arena_text(&store->arena, *text, strlen(*text), text);
}

static embla_status take_options(embla_store *store, const embla_store_options *options)
{
    embla_store_options *o = &store->options;
    if (options) *o = *options;
    store->placement = placement_of(o->placement);
    if (!store->placement)
        return embla_fail(EMBLA_ERR_ARGUMENT, "placement %d: there is no such placement",
                          (int)o->placement);
    if (!store->placement->open)
        return embla_fail(EMBLA_ERR_ARGUMENT, "no file can be opened as a %s; use embla_store_view",
                          store->placement->name);
    EMBLA_TRY(embla_threads_check(o->threads));
    if (o->buffer && o->placement != EMBLA_PLACEMENT_RAM)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a buffer is for the placement ram, not for %s",
                          store->placement->name);
    EMBLA_TRY(keep_text(store, &o->shared_folder));
    return keep_text(store, &o->shared_name);
}

embla_status embla_store_begin(const embla_row_format *format, const embla_store_options *options,
                               embla_store **out)
{
    embla_row row;
    void *memory = NULL;
    EMBLA_TRY(embla_row_of(format, &row));
    EMBLA_TRY(embla_mem_new(sizeof(embla_store), "a store", &memory));
    embla_store *store = memory;
    store->row = row;
    embla_status status = take_options(store, options);
    store->placement = NULL; /* nothing to close yet */
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    *out = store;
    return EMBLA_OK;
}

embla_status embla_store_finish(embla_store *store, embla_store **out)
{
    const embla_placement_ops *placement = placement_of(store->options.placement);
    embla_extents_settle(store);
    embla_status status = placement->open(store);
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    store->placement = placement;
    *out = store;
    return EMBLA_OK;
}

void embla_store_free(embla_store *store)
{
    if (!store) return;
    if (store->placement && store->placement->close) store->placement->close(store);
    for (size_t i = 0; i < store->source_count; i++) embla_map_free(store->sources[i].map);
    embla_arena_free(&store->arena);
    embla_mem_free(store, sizeof *store);
}

/* ---- rows of any files ---- */

/* The map of a file that a caller named: the one there is, or a new one. */
static embla_status map_of(const embla_store *store, const char *path, embla_map **out)
{
    for (size_t i = store->source_count; i-- > 0;) {
        embla_map *map = store->sources[i].map;
        if (strcmp(map->name, path) != 0) continue;
        *out = embla_map_hold(map);
        return EMBLA_OK;
    }
    return embla_map_open(AT_FDCWD, path, path, true, out);
}

static embla_status add_extent(embla_store *store, const embla_extent *given)
{
    const embla_row *row = &store->row;
    bool scales = row->scale_bytes > 0, follow = scales && given->scale_offset == -1;
    const char *scale_file = given->scale_file ? given->scale_file : given->file;
    embla_extent_at e = {.rows = given->rows};
    embla_map *maps[EMBLA_PLANES] = {NULL, NULL};
    if (!given->file) return embla_fail(EMBLA_ERR_ARGUMENT, "the file of an extent is NULL");
    if (given->offset < 0 || (scales && given->scale_offset < -1))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s: rows at %" PRId64 ", scales at %" PRId64,
                          given->file, given->offset, given->scale_offset);
    if (follow && given->scale_file)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s: scales that follow their rows are not in a file of their own",
                          given->file);
    e.offset[0] = (uint64_t)given->offset;
    e.stride[0] = given->stride ? given->stride : follow ? row->bytes : row->code_bytes;
    e.offset[1] = follow ? e.offset[0] + row->code_bytes : (uint64_t)given->scale_offset;
    e.stride[1] = follow                ? e.stride[0]
                  : given->scale_stride ? given->scale_stride
                                        : row->scale_bytes;
    embla_status status = map_of(store, given->file, &maps[0]);
    if (status == EMBLA_OK && scales && strcmp(scale_file, given->file) == 0)
        maps[1] = embla_map_hold(maps[0]);
    else if (status == EMBLA_OK && scales)
        status = map_of(store, scale_file, &maps[1]);
    for (size_t p = 0; p < EMBLA_PLANES; p++) e.map[p] = maps[p];
    if (status == EMBLA_OK) status = embla_extents_add(store, e);
    for (size_t p = 0; p < EMBLA_PLANES; p++) embla_map_free(maps[p]); /* sources hold them */
    return status;
}

embla_status embla_store_open_extents(const embla_row_format *format, const embla_extent *extents,
                                      size_t count, const embla_store_options *options,
                                      embla_store **out)
{
    embla_store *store = NULL;
    embla_status status = EMBLA_OK;
    if (!format || !extents || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_open_extents: %s is NULL",
                          !format    ? "the format"
                          : !extents ? "the list of extents"
                                     : "out");
    if (count == 0) return embla_fail(EMBLA_ERR_ARGUMENT, "a store of 0 extents has no rows");
    EMBLA_TRY(embla_store_begin(format, options, &store));
    for (size_t i = 0; i < count && status == EMBLA_OK; i++)
        status = add_extent(store, &extents[i]);
    if (status != EMBLA_OK) {
        embla_store_free(store);
        return status;
    }
    return embla_store_finish(store, out);
}

/* ---- view ---- */

embla_status embla_store_view(const embla_row_format *format, int64_t rows, const void *data,
                              size_t data_bytes, size_t stride, embla_store **out)
{
    embla_store *store = NULL;
    size_t needed = 0, all;
    uint64_t bytes;
    embla_row row;
    if (!format || !data || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_view: %s is NULL",
                          !format ? "the format"
                          : !data ? "data"
                                  : "out");
    EMBLA_TRY(embla_row_of(format, &row));
    if (stride == 0) stride = row.bytes;
    if (rows < 1 || rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%" PRId64 " rows: a table has 1 to 2^40", rows);
    if (stride < row.bytes)
        return embla_fail(EMBLA_ERR_SHAPE, "a row stride of %zu bytes is less than a row's %zu",
                          stride, row.bytes);
    if (!embla_span_ok((uint64_t)rows, stride, row.bytes, &needed) ||
        !embla_mul_ok((uint64_t)rows, row.bytes, &bytes) || !embla_size_ok(bytes, &all))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRId64 " rows, %zu bytes apart, do not fit in memory", rows, stride);
    if (data_bytes < needed)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%" PRId64 " rows, %zu bytes apart, need %zu bytes, and there are %zu",
                          rows, stride, needed, data_bytes);
    EMBLA_TRY(embla_store_begin(format, NULL, &store));
    store->placement = &embla_placement_view;
    store->options.placement = EMBLA_PLACEMENT_VIEW;
    store->rows = rows;
    store->bytes = (int64_t)all;
    store->data = data;
    store->stride = stride;
    *out = store;
    return EMBLA_OK;
}

/* ---- files that change ---- */

embla_status embla_sources_check(const embla_store *store)
{
    for (size_t i = 0; i < store->source_count; i++) {
        const embla_source *source = &store->sources[i];
        int64_t seconds, nanoseconds;
        EMBLA_TRY(embla_map_look(source->map, &seconds, &nanoseconds));
        if (seconds != source->seconds || nanoseconds != source->nanoseconds)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s was changed while open: at %" PRId64 ".%09" PRId64
                              ", and was last changed at %" PRId64 ".%09" PRId64 " (C11)",
                              source->map->name, seconds, nanoseconds, source->seconds,
                              source->nanoseconds);
    }
    return EMBLA_OK;
}

/* ---- rows to memory ---- */

/* bytes of each row from at on. */
static void copy_part(const embla_store *store, const embla_rows_job *job, size_t at, size_t bytes,
                      char *out)
{
    bool large = (uint64_t)store->rows * store->stride > EMBLA_SMALL_TABLE;
    embla_copy_job copy = {.data = store->data + at,
                           .row_stride = store->stride,
                           .row_bytes = bytes,
                           .rows = job->rows,
                           .count = job->count,
                           .known = job->known,
                           .out = out,
                           .out_stride = job->out_stride,
                           .mode = job->mode,
                           .fetch = large && job->count > EMBLA_GROUP_LEAST};
    embla_kernels_get()->copy_rows(&copy);
}

embla_status embla_store_fetch(const embla_store *store, const embla_rows_job *job)
{
    const embla_row_part *part = job->part;
    size_t codes = store->row.code_bytes;
    if (store->placement->fetch) return store->placement->fetch(store, job);
    if (part->scale_bytes > 0 &&
        (part->code_at + part->code_bytes != codes || part->scale_at > 0)) {
        copy_part(store, job, part->code_at, part->code_bytes, job->out);
        copy_part(store, job, codes + part->scale_at, part->scale_bytes,
                  job->out + part->code_bytes);
    } else { /* scales stand right behind */
        copy_part(store, job, part->code_at, part->bytes, job->out);
    }
    if (job->mode == EMBLA_WRITE_STREAM) embla_kernels_get()->fence();
    return EMBLA_OK;
}

/* ---- questions ---- */

embla_status embla_store_describe(const embla_store *store, embla_store_info *out)
{
    if (!store || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_describe: %s is NULL",
                          store ? "out" : "the store");
    embla_store_info info = {.format = store->row.format,
                             .rows = store->rows,
                             .row_bytes = store->row.bytes,
                             .parts = store->extent_count,
                             .placement = store->options.placement,
                             .bytes = store->bytes,
                             .huge_bytes = -1,
                             .resident = store->bytes};
    if (store->placement->describe) EMBLA_TRY(store->placement->describe(store, &info));
    *out = info;
    return EMBLA_OK;
}

embla_status embla_store_warm(const embla_store *store, const embla_store_options *options)
{
    if (!store) return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_warm: the store is NULL");
    if (options) EMBLA_TRY(embla_threads_check(options->threads));
    const embla_store_options none = {0};
    if (!store->placement->warm) return EMBLA_OK;
    return store->placement->warm(store, options ? options : &none);
}

/* ---- compared with the files ---- */

/* What all threads see. */
typedef struct {
    const embla_store *store;
    int64_t count; /* rows that are compared */
    uint64_t seed;
    size_t block; /* of them at once */
    char *memory; /* for each thread block + 1 rows */
    atomic_llong different, first;
    embla_failure failure;
} comparing;

enum { BLOCK_MOST = 256 };

/* The i-th row to compare: one of each of count equal shares, the first and the last of all. */
static int64_t row_at(const comparing *c, int64_t i)
{
    int64_t share = c->store->rows / c->count, rest = c->store->rows % c->count;
    int64_t low = i * share + (i < rest ? i : rest);
    uint64_t z = c->seed + (uint64_t)i * UINT64_C(0x9E3779B97F4A7C15); /* splitmix64 */
    if (i == 0) return 0;
    if (i == c->count - 1) return c->store->rows - 1;
    z = (z ^ (z >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    z = (z ^ (z >> 27)) * UINT64_C(0x94D049BB133111EB);
    z ^= z >> 31;
    return low + (int64_t)(z % (uint64_t)(share + (i < rest)));
}

static void different_at(comparing *c, int64_t row)
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
    for (size_t i = 0; i < n; i++) rows[i] = row_at(c, start + (int64_t)i);
    embla_rows_job job = {
        .rows = rows, .count = n, .known = n, .part = &part, .out = memory, .out_stride = bytes};
    EMBLA_TRY(embla_store_fetch(store, &job));
    for (size_t i = 0; i < n; i++) {
        EMBLA_TRY(embla_extents_read(store, rows[i], &part, plain));
        if (memcmp(plain, memory + i * bytes, bytes) != 0) different_at(c, rows[i]);
    }
    return EMBLA_OK;
}

static embla_status compare_all(comparing *c)
{
    enum { AT_ONCE = 1 << 20, A_READ = 4096 }; /* bytes; what a read costs, as bytes moved */
    size_t bytes = c->store->row.bytes;
    void *memory = NULL;
    c->block = bytes < AT_ONCE / BLOCK_MOST ? BLOCK_MOST : bytes < AT_ONCE ? AT_ONCE / bytes : 1;
    int threads = embla_threads_for(c->store->options.threads, (size_t)c->count * A_READ);
    size_t each = (c->block + 1) * bytes, all = each * (size_t)threads;
    int64_t blocks = (c->count - 1) / (int64_t)c->block + 1;
    EMBLA_TRY(embla_mem_new(all, "rows to compare", &memory));
    c->memory = memory;
#pragma omp parallel for num_threads(threads) schedule(dynamic) if (threads > 1)
    for (int64_t i = 0; i < blocks; i++) {
        if (embla_failure_any(&c->failure)) continue;
        embla_failure_keep(&c->failure,
                           compare_block(c, i, c->memory + (size_t)embla_threads_mine() * each));
    }
    embla_mem_free(memory, all);
    return embla_failure_say(&c->failure);
}

/* Looks for a file by its name once more: it must be the one that is open. */
static embla_status same_file(const embla_source *source)
{
    const embla_map *map = source->map;
    struct stat now = {0};
    int fd = -1;
    embla_status status = embla_io_open(AT_FDCWD, source->path, O_RDONLY | O_NONBLOCK, 0, &fd);
    if (status == EMBLA_ERR_NOT_FOUND)
        return embla_fail(EMBLA_ERR_IO, "%.256s was removed while open (C11)", source->path);
    EMBLA_TRY(status);
    status = embla_io_stat(fd, source->path, &now);
    embla_io_drop(fd);
    EMBLA_TRY(status);
    if ((uint64_t)now.st_dev != map->device || (uint64_t)now.st_ino != map->inode)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was replaced while open: it is file %" PRIu64
                          " now, and was %" PRIu64 " (C11)",
                          source->path, (uint64_t)now.st_ino, map->inode);
    if ((uint64_t)now.st_size > map->size) /* if it is less, embla_sources_check says so */
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was changed while open: %" PRId64 " bytes, and had %" PRIu64
                          " (C11)",
                          source->path, (int64_t)now.st_size, map->size);
    return EMBLA_OK;
}

static embla_status check_all(const embla_store *store)
{
    for (size_t i = 0; i < store->source_count; i++)
        if (store->sources[i].path) EMBLA_TRY(same_file(&store->sources[i]));
    EMBLA_TRY(embla_sources_check(store));
    return store->placement->check ? store->placement->check(store) : EMBLA_OK;
}

embla_status embla_store_verify(const embla_store *store, int64_t sample, uint64_t seed,
                                embla_verify_report *out)
{
    if (!store || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_store_verify: %s is NULL",
                          store ? "out" : "the store");
    if (sample < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a sample of %" PRId64 " rows is below 0", sample);
    if (store->extent_count == 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a view has no file that it could be compared with");
    comparing c = {.store = store, .seed = seed, .first = -1, .failure = EMBLA_NO_FAILURE};
    c.count = sample == 0 || sample > store->rows ? store->rows : sample;
    if (c.count < 2) c.count = store->rows < 2 ? store->rows : 2; /* the first and the last */
    EMBLA_TRY(check_all(store));
    EMBLA_TRY(compare_all(&c));
    EMBLA_TRY(check_all(store));
    *out = (embla_verify_report){
        .rows = c.count, .different = atomic_load(&c.different), .first = atomic_load(&c.first)};
    return EMBLA_OK;
}
