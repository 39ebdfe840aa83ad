/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of the rows for all processes of a machine: a file in memory (tmpfs) that every process
 * maps. shared_copy.c has its layout. Processes that use a copy hold a shared lock of its file, so
 * that sweep.c knows which copies nobody uses.
 *
 * A process that needs a missing copy takes a lock, looks again, and builds the copy under a
 * temporary name. The manifest is written last and read back; only then the file is renamed. So a
 * file with the final name is always complete, even if a builder is killed: the system releases its
 * lock, and the next builder removes the leftover. The lock only saves work: if two processes build
 * at once, the first to rename wins, and the other uses its copy.
 */
#include <stdio.h>
#include <string.h>

#include "base/lines.h"
#include "base/mem.h"
#include "files/io.h"
#include "store/shared.h"

enum { MARK_TRIES = 100 }; /* milliseconds */
enum { BUILD_TRIES = 3 };  /* a copy may be swept as soon as it is built, if a user asks for that */

#define UNSHARE_WAIT 1.0                  /* seconds */
#define STEP         ((uint64_t)64 << 20) /* bytes reserved between two progress reports */

typedef struct {
    embla_map *map;
    const char *path;
    bool built;
} held;

/* ---- building ---- */

/* The most frequent failure: tmpfs is often smaller than memory. */
static embla_status check_space(const embla_copy *c)
{
    uint64_t free_bytes = 0, needed = c->wanted.data_bytes + EMBLA_COPY_SUMS_AT;
    needed += c->wanted.pieces * sizeof(embla_copy_sum);
    EMBLA_TRY(embla_io_space(c->folder, c->path, &free_bytes));
    if (needed > free_bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s needs %" PRIu64 " bytes, but its folder has only %" PRIu64
                          " bytes free",
                          c->path, needed, free_bytes);
    return EMBLA_OK;
}

/* Reserves all space before the first write through the mapping. Otherwise a full file system would
 * raise a signal. */
static embla_status reserve_space(const embla_copy *c, embla_handle file, char *memory)
{
    const embla_copy_manifest *m = &c->wanted;
    bool huge = true;
    EMBLA_TRY(
        embla_io_claim(file, c->path, 0, EMBLA_COPY_SUMS_AT + m->pieces * sizeof(embla_copy_sum)));
    for (uint64_t at = 0, bytes; at < m->data_bytes; at += bytes) {
        bytes = m->data_bytes - at < STEP ? m->data_bytes - at : STEP;
        EMBLA_TRY(embla_copy_report(c, "reserve", (int64_t)at));
        if (huge) huge = embla_io_huge_shared(memory + EMBLA_COPY_DATA_AT + at, (size_t)bytes);
        EMBLA_TRY(embla_io_claim(file, c->path, EMBLA_COPY_DATA_AT + at, bytes));
    }
    return EMBLA_OK;
}

/* Writes rows and checksums, then the manifest. */
static embla_status write_all(const embla_copy *c, embla_handle file, char *memory)
{
    embla_copy_manifest m = c->wanted;
    embla_copy_sum *sums = (embla_copy_sum *)(void *)(memory + EMBLA_COPY_SUMS_AT);
    EMBLA_TRY(reserve_space(c, file, memory));
    EMBLA_TRY(
        embla_extents_fill(c->store, c->store->first, c->store->held, memory + EMBLA_COPY_DATA_AT));
    EMBLA_TRY(embla_copy_sums(file, c, sums));
    embla_checksum of_sums = embla_checksum_of(sums, (size_t)m.pieces * sizeof(embla_copy_sum));
    m.sums[0] = of_sums.high;
    m.sums[1] = of_sums.low;
    embla_checksum self = embla_checksum_of(&m, offsetof(embla_copy_manifest, self));
    m.self[0] = self.high;
    m.self[1] = self.low;
    embla_copy_note note = embla_copy_note_of(c->store);
    memcpy(memory + EMBLA_COPY_NOTE_AT, &note, sizeof note);
    memcpy(memory, &m, sizeof m);
    return EMBLA_OK;
}

/* Writes the file and closes the descriptor, also on failure. */
static embla_status write_file(const embla_copy *c, embla_handle file)
{
    void *memory = NULL;
    size_t bytes = (size_t)c->wanted.file_bytes;
    embla_status status = embla_io_cut(file, c->path, bytes);
    if (status == EMBLA_OK) status = embla_io_map_shared(file, c->path, bytes, &memory);
    if (status == EMBLA_OK) status = write_all(c, file, memory);
    if (memory) embla_io_unmap(memory, bytes);
    if (status == EMBLA_OK)
        status = embla_io_sync(file, c->path); /* in case the folder is on a disk */
    if (status == EMBLA_OK) return embla_io_close(file, c->path);
    embla_io_drop(file);
    return status;
}

/* Readable for users who can read all source files, writable for nobody. */
static embla_status file_mode(const embla_store *store, unsigned *out)
{
    unsigned mode = 0444;
    for (size_t i = 0; i < store->source_count; i++) {
        embla_file_facts found;
        const embla_map *map = store->sources[i].map;
        EMBLA_TRY(embla_io_facts(map->file, map->name, &found));
        mode &= found.mode;
    }
    *out = mode | 0400;
    return EMBLA_OK;
}

/* Marks an open copy as used, so that nobody sweeps it. EMBLA_ERR_NOT_FOUND, and the copy is
 * closed, if it was swept before that. A sweeper or a builder holds the other lock for an instant
 * only; a process that keeps it longer is not waited for. */
static embla_status mark_used(const embla_copy *c, embla_map **map)
{
    embla_file_facts found = {0};
    for (int i = 0; i < MARK_TRIES && !embla_io_lock_shared((*map)->file); i++)
        embla_system_sleep(1000000);
    /* if the system does not tell, the copy is complete and can be used */
    if (embla_io_facts((*map)->file, c->path, &found) != EMBLA_OK || found.names > 0)
        return EMBLA_OK;
    embla_map_free(*map);
    *map = NULL;
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s was removed while it was opened", c->path);
}

/* Writes a complete copy under a temporary name, checks it and renames it. *taken is true if the
 * name exists by then. */
static embla_status build(const embla_copy *c, embla_map **out, bool *taken)
{
    embla_map *map = NULL;
    char temporary[EMBLA_COPY_NAME];
    unsigned mode = 0;
    embla_handle file = -1, keeper = -1;
    embla_copy_sweep_dead(c->folder, c->path); /* they may take the space */
    EMBLA_TRY(check_space(c));
    EMBLA_TRY(file_mode(c->store, &mode));
    EMBLA_TRY(embla_copy_temporary(c, mode, temporary, &file, &keeper));
    embla_status status = write_file(c, file);
    if (status == EMBLA_OK) status = embla_copy_open(c, temporary, &map);
    if (status == EMBLA_OK) {
        status = embla_io_rename(c->folder, temporary, c->name, c->path, false);
        *taken = status == EMBLA_ERR_ARGUMENT;
    }
    if (status == EMBLA_OK) {
        *out = map;
    } else {
        embla_map_free(map);
        embla_io_remove(c->folder, temporary);
    }
    embla_io_drop(keeper);
    return status == EMBLA_OK ? mark_used(c, out) : status;
}

/* ---- the placement ---- */

static embla_status find(const embla_copy *c, embla_map **out)
{
    EMBLA_TRY(embla_copy_open(c, c->name, out));
    return mark_used(c, out);
}

/* Opens the copy, or builds it if there is none. */
static embla_status find_or_build(embla_copy *c, embla_map **out, bool *built)
{
    embla_status status = find(c, out);
    if (status == EMBLA_OK)
        embla_io_sweep(c->folder, c->lock_name); /* leftover of a killed process */
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    if (c->store->options.found_only) return embla_copy_why_missing(c);
    EMBLA_TRY(embla_copy_lock(c));
    for (int i = 0; i < BUILD_TRIES && status == EMBLA_ERR_NOT_FOUND; i++) {
        bool taken = false;
        status = find(c, out);
        if (status != EMBLA_ERR_NOT_FOUND) break;
        status = build(c, out, &taken);
        *built = status == EMBLA_OK;
        if (taken) status = find(c, out);
    }
    embla_copy_unlock(c);
    return status;
}

/* Replaces the map by a private one that may be written to, and which holds it. */
static embla_status make_writable(embla_map **map)
{
    embla_map *private = NULL;
    embla_status status = embla_map_private(*map, &private);
    embla_map_free(*map);
    *map = private;
    return status;
}

static embla_status shared_open(embla_store *store)
{
    embla_copy c;
    embla_map *map = NULL;
    void *memory = NULL;
    bool built = false;
    const char *path = NULL;
    EMBLA_TRY(embla_copy_init(store, &c));
    embla_status status = embla_arena_text(&store->arena, c.path, strlen(c.path), &path);
    if (status == EMBLA_OK) status = embla_mem_new(sizeof(held), "a shared copy", &memory);
    if (status == EMBLA_OK) status = find_or_build(&c, &map, &built);
    if (status == EMBLA_OK && store->engine.writable) status = make_writable(&map);
    embla_io_drop(c.folder);
    if (status != EMBLA_OK || !map) {
        embla_mem_free(memory, sizeof(held));
        return status;
    }
    *(held *)memory = (held){.map = map, .path = path, .built = built};
    store->state = memory;
    store->data = (const char *)map->bytes + EMBLA_COPY_DATA_AT;
    store->stride = store->row.bytes;
    return EMBLA_OK;
}

static void shared_close(embla_store *store)
{
    held *h = store->state;
    embla_map_free(h->map);
    embla_mem_free(h, sizeof *h);
    store->state = NULL;
}

static embla_status shared_check(const void *owner)
{
    const embla_store *store = owner;
    const held *h = store->state;
    return embla_map_check(h->map);
}

static embla_status shared_describe(const embla_store *store, embla_store_info *out)
{
    const held *h = store->state;
    EMBLA_TRY(embla_map_check(h->map));
    embla_io_touch_huge(store->data, (size_t)store->bytes);
    out->huge_bytes = embla_store_huge(store->data, (size_t)store->bytes);
    out->resident = store->bytes;
    out->shared = h->path;
    out->built = h->built;
    return EMBLA_OK;
}

/* Compares the stored checksums with those of the rows as they are now. */
static embla_status compare_sums(const embla_copy *c, const embla_map *map, embla_copy_sum *sums)
{
    embla_copy_manifest m;
    uint64_t pieces = c->wanted.pieces;
    size_t bytes = (size_t)pieces * sizeof(embla_copy_sum);
    EMBLA_TRY(embla_map_read(map, 0, sizeof m, &m));
    EMBLA_TRY(embla_map_read(map, EMBLA_COPY_SUMS_AT, bytes, sums));
    embla_checksum found = embla_checksum_of(sums, bytes);
    if (found.high != m.sums[0] || found.low != m.sums[1])
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s: its checksums are damaged; remove it with 'rm %.256s'", c->path,
                          c->path);
    EMBLA_TRY(embla_copy_sums(map->file, c, sums + pieces));
    for (uint64_t i = 0; i < pieces; i++)
        if (sums[i].high != sums[pieces + i].high || sums[i].low != sums[pieces + i].low)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s: rows have changed since they were copied, from row %" PRIu64
                              " on, within %" PRIu64 " bytes; remove it with 'rm %.256s'",
                              c->path, i * m.piece_bytes / m.row_bytes, m.piece_bytes, c->path);
    return EMBLA_OK;
}

/* Verifies all rows. Reading them also brings them back from swap. */
static embla_status shared_warm(const embla_store *store, const embla_store_options *options)
{
    const held *h = store->state;
    embla_copy c = {.store = store, .options = options, .folder = -1, .lock = -1};
    void *sums = NULL;
    EMBLA_TRY(embla_copy_expected(store, &c.wanted));
    (void)snprintf(c.path, sizeof c.path, "%s", h->path);
    size_t bytes = 2 * (size_t)c.wanted.pieces * sizeof(embla_copy_sum);
    if (bytes == 0) return EMBLA_OK;
    EMBLA_TRY(embla_mem_new(bytes, "checksums of rows", &sums));
    embla_status status = compare_sums(&c, h->map, sums);
    embla_mem_free(sums, bytes);
    return status;
}

/* Removes the copy if the name still belongs to it. The caller holds the lock. */
static embla_status unlink_copy(const embla_copy *c, const embla_map *map)
{
    embla_file_facts found;
    embla_handle file = -1;
    EMBLA_TRY(embla_io_open_as(c->folder, c->name, c->path, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0,
                               &file));
    embla_status status = embla_io_facts(file, c->path, &found);
    embla_io_drop(file);
    if (status != EMBLA_OK) return status;
    if (!embla_same_file(found.id, map->id))
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s has been replaced by another copy", c->path);
    return embla_io_erase(c->folder, c->name, c->path);
}

embla_status embla_store_unshare(const embla_store *store)
{
    embla_copy c;
    EMBLA_NEED(store);
    if (store->placement != &embla_placement_shared)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the store has placement '%s', so it has no shared copy",
                          store->placement->name);
    const held *h = store->state;
    const embla_store_options no_progress = {0}; /* the caller's context may no longer be valid */
    EMBLA_TRY(embla_copy_init(store, &c));
    c.options = &no_progress;
    c.patience = UNSHARE_WAIT;
    embla_status status = embla_copy_lock(&c);
    if (status == EMBLA_OK) {
        status = unlink_copy(&c, h->map);
        embla_copy_unlock(&c);
    }
    embla_io_drop(c.folder);
    return status;
}

const embla_placement_ops embla_placement_shared = {
    .name = "shared",
    .open = shared_open,
    .describe = shared_describe,
    .warm = shared_warm,
    .close = shared_close,
    .kind = {.check = shared_check, .reread = embla_extents_read, .unit = EMBLA_LINE}};
