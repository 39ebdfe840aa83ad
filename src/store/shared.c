/* SPDX-License-Identifier: Apache-2.0 */
/* One copy of the rows for all processes of a machine: a file in memory (tmpfs) that every process
 * maps.
 *
 *   | manifest | checksums of the pieces of rows | at 2 MiB: rows, with their scales |
 *
 * A process that needs a missing copy takes a lock, looks again, and builds the copy under a
 * temporary name. The manifest is written last and read back; only then the file is renamed. So a
 * file with the final name is always complete, even if a builder is killed: the system releases its
 * lock, and the next builder removes the leftover. A file with the final name is never written to
 * or replaced. If it does not match, it is refused, and the message says how to remove it.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/checked.h"
#include "base/checksum.h"
#include "base/failure.h"
#include "base/lines.h"
#include "base/mem.h"
#include "base/stop.h"
#include "base/threads.h"
#include "files/io.h"
#include "store/store.h"

enum {
    VERSION = 1,
    SUMS_AT = 4096,
    DATA_AT = 2 << 20, /* rows begin on a huge page */
    NAME = 256,
    NAME_MOST = 200,
    BLOCK = 1 << 20 /* bytes per read for a checksum */
};
#define PIECE        ((uint64_t)64 << 20) /* bytes of a piece; doubled if there are too many */
#define UNSHARE_WAIT INT64_C(1000000000)  /* nanoseconds */
#define STEP         ((uint64_t)64 << 20) /* bytes reserved between two progress reports */

static const char magic[8] = "EMBLAROW";
#define ORDER UINT64_C(0x0102030405060708)

/* The header of a copy, in the byte order of this machine. Without padding. */
typedef struct {
    char magic[8];
    uint64_t order, version;
    uint64_t identity[2]; /* of the files: see compute_identity */
    uint64_t rows, row_bytes, dim, dtype, scales;
    uint64_t data_at, data_bytes, file_bytes;
    uint64_t piece_bytes, pieces;
    uint64_t sums[2]; /* checksum of the pieces' checksums */
    uint64_t self[2]; /* checksum of all fields above */
} manifest;

typedef struct {
    uint64_t high, low;
} sum;

/* The copy that a store needs. */
typedef struct {
    const embla_store *store;
    const embla_store_options *options; /* progress and threads of this call */
    int64_t patience;                   /* nanoseconds to wait for the lock; 0 means no limit */
    int folder, lock;                   /* -1 means not open */
    char path[1024];                    /* for messages and the user */
    char name[NAME], lock_name[NAME], temporary[NAME];
    manifest wanted; /* without sums and self */
} copy;

typedef struct {
    embla_map *map;
    const char *path;
    bool built;
} held;

/* ---- name and manifest of a copy ---- */

static void add(embla_checksum_state *state, uint64_t number)
{
    embla_checksum_add(state, &number, sizeof number);
}

/* Hashes which bytes of which files the rows are, and the files' sizes and times of change. Equal
 * identities mean equal rows. The scale of the table is not included, because rows are kept as
 * stored. */
static embla_status compute_identity(const embla_store *store, uint64_t out[2])
{
    embla_checksum_state state;
    embla_checksum_begin(&state);
    add(&state, VERSION);
    add(&state, store->row.format.dim);
    add(&state, store->row.format.dtype);
    add(&state, store->row.format.scales);
    for (size_t i = 0; i < store->source_count; i++) {
        const embla_source *source = &store->sources[i];
        if (source->map->fd < 0)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s is not a file; memory of this process cannot be shared",
                              source->map->name);
        add(&state, source->map->device);
        add(&state, source->map->inode);
        add(&state, source->map->size);
        add(&state, (uint64_t)source->seconds);
        add(&state, (uint64_t)source->nanoseconds);
    }
    for (size_t i = 0; i < store->extent_count; i++) {
        const embla_extent_at *extent = &store->extents[i];
        add(&state, (uint64_t)extent->rows);
        add(&state, extent->planes);
        for (size_t plane = 0; plane < extent->planes; plane++) {
            add(&state, extent->source[plane]);
            add(&state, extent->offset[plane]);
            add(&state, extent->stride[plane]);
        }
    }
    embla_checksum found = embla_checksum_end(&state);
    out[0] = found.high;
    out[1] = found.low;
    return EMBLA_OK;
}

static embla_status expected_manifest(const embla_store *store, manifest *out)
{
    manifest m = {.order = ORDER,
                  .version = VERSION,
                  .rows = (uint64_t)store->rows,
                  .row_bytes = store->row.bytes,
                  .dim = store->row.format.dim,
                  .dtype = (uint64_t)store->row.format.dtype,
                  .scales = (uint64_t)store->row.format.scales,
                  .data_at = DATA_AT,
                  .data_bytes = (uint64_t)store->bytes,
                  .piece_bytes = PIECE};
    size_t mapped;
    memcpy(m.magic, magic, sizeof magic);
    EMBLA_TRY(compute_identity(store, m.identity));
    if (!embla_add_ok(m.data_bytes, DATA_AT, &m.file_bytes) ||
        !embla_size_ok(m.file_bytes, &mapped))
        return embla_fail(EMBLA_ERR_SHAPE, "%" PRIu64 " bytes of rows do not fit in one file",
                          m.data_bytes);
    /* all checksums must fit before the rows */
    while (m.data_bytes / m.piece_bytes >= (DATA_AT - SUMS_AT) / sizeof(sum)) m.piece_bytes *= 2;
    m.pieces = m.data_bytes / m.piece_bytes + (m.data_bytes % m.piece_bytes > 0);
    *out = m;
    return EMBLA_OK;
}

static embla_status set_names(const embla_store_options *options, copy *c)
{
    const char *given = options->shared_name;
    const char *folder = options->shared_folder ? options->shared_folder : "/dev/shm";
    if (!given)
        (void)snprintf(c->name, NAME, "embla-%016" PRIx64, c->wanted.identity[1]);
    else if (*given == '\0' || *given == '.' || strchr(given, '/') || strlen(given) > NAME_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "'%.220s' is not a valid name for a copy; use 1 to %d bytes without '/' "
                          "that do not begin with '.'",
                          given, NAME_MOST);
    else
        (void)snprintf(c->name, NAME, "%s", given);
    if ((size_t)snprintf(c->path, sizeof c->path, "%s/%s", folder, c->name) >= sizeof c->path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.128s..: the folder's path is too long: %zu bytes",
                          folder, strlen(folder));
    (void)snprintf(c->lock_name, NAME, "%.200s.lock", c->name);
    (void)snprintf(c->temporary, NAME, ".%.200s.tmp", c->name);
    return embla_io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, &c->folder);
}

/* On failure no descriptor is open. */
static embla_status init_copy(const embla_store *store, copy *out)
{
    *out = (copy){.store = store, .options = &store->options, .folder = -1, .lock = -1};
    EMBLA_TRY(expected_manifest(store, &out->wanted));
    return set_names(&store->options, out);
}

static embla_status report(const copy *c, const char *what, int64_t done)
{
    return embla_progress_report(c->options->progress, c->options->context, what, done,
                                 c->store->bytes);
}

/* ---- opening an existing copy ---- */

static embla_checksum checksum_of(const void *bytes, size_t count)
{
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, bytes, count);
    return embla_checksum_end(&state);
}

/* Reports a copy that cannot be used, and how to remove it. */
static embla_status refuse_copy(const copy *c, const char *why)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s %s; remove it with 'rm %.256s', and the next process that opens the "
                      "store builds it again",
                      c->path, why, c->path);
}

/* Refuses a copy that other users could have changed. */
static embla_status check_owner(const copy *c, const embla_map *map)
{
    struct stat found;
    EMBLA_TRY(embla_io_stat(map->fd, c->path, &found));
    if (found.st_uid != 0 && found.st_uid != geteuid())
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s belongs to user %u; only copies of user %u or of root are used. "
                          "Choose another name or folder",
                          c->path, (unsigned)found.st_uid, (unsigned)geteuid());
    if (found.st_mode & (S_IWGRP | S_IWOTH))
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s is not used, because other users can write to it (mode %03o); "
                          "remove it with 'rm %.256s'",
                          c->path, (unsigned)found.st_mode & 0777u, c->path);
    return EMBLA_OK;
}

static embla_status check_copy(const copy *c, const embla_map *map)
{
    manifest m;
    char why[224];
    EMBLA_TRY(check_owner(c, map));
    if (map->size < DATA_AT) return refuse_copy(c, "is too short to be a copy of rows");
    EMBLA_TRY(embla_map_read(map, 0, sizeof m, &m));
    if (memcmp(m.magic, magic, sizeof magic) != 0 || m.order != ORDER)
        return refuse_copy(c, "is not a copy of rows");
    if (m.version != VERSION) {
        (void)snprintf(why, sizeof why,
                       "has format version %" PRIu64 "; this library uses version %d", m.version,
                       VERSION);
        return refuse_copy(c, why);
    }
    embla_checksum self = checksum_of(&m, offsetof(manifest, self));
    if (self.high != m.self[0] || self.low != m.self[1])
        return refuse_copy(c, "has a damaged manifest");
    if (memcmp(m.identity, c->wanted.identity, sizeof m.identity) != 0) {
        (void)snprintf(
            why, sizeof why,
            "contains %" PRIu64 " rows of %" PRIu64
            " bytes from other files, or from an older version of these (expected: %" PRIu64
            " rows of %" PRIu64 " bytes)",
            m.rows, m.row_bytes, c->wanted.rows, c->wanted.row_bytes);
        return refuse_copy(c, why);
    }
    if (memcmp(&m, &c->wanted, offsetof(manifest, sums)) != 0)
        return refuse_copy(c, "has a manifest that does not match the files");
    if (map->size != c->wanted.file_bytes) {
        (void)snprintf(why, sizeof why, "has %" PRIu64 " bytes; expected: %" PRIu64, map->size,
                       c->wanted.file_bytes);
        return refuse_copy(c, why);
    }
    return EMBLA_OK;
}

/* Opens and checks a copy. EMBLA_ERR_NOT_FOUND if there is none. */
static embla_status open_copy(const copy *c, const char *name, embla_map **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(c->folder, name, c->path, false, &map));
    embla_status status = check_copy(c, map);
    if (status == EMBLA_OK)
        *out = map;
    else
        embla_map_free(map);
    return status;
}

/* ---- the lock ---- */

static embla_status fail_busy(const copy *c)
{
    return embla_fail(EMBLA_ERR_BUSY, "%.256s: another process is building this copy", c->path);
}

/* Waits for the lock. Progress is reported now and then, so the caller can cancel. */
static embla_status wait_for_lock(const copy *c, int fd)
{
    struct timespec pause = {.tv_nsec = 1000000};
    for (int64_t waited = 0; c->patience == 0 || waited < c->patience; waited += pause.tv_nsec) {
        bool got = false;
        EMBLA_TRY(embla_io_lock_try(fd, c->path, &got));
        if (got) return EMBLA_OK;
        EMBLA_TRY(report(c, "wait", 0));
        (void)nanosleep(&pause, NULL);
        if (pause.tv_nsec < 50000000) pause.tv_nsec *= 2;
    }
    return fail_busy(c);
}

/* If the lock file was removed while we waited, it is created again. */
static embla_status take_lock(copy *c)
{
    const int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK;
    for (;;) {
        struct stat found = {0};
        int fd = -1;
        embla_status status = embla_io_open_as(c->folder, c->lock_name, c->path, flags, 0, &fd);
        if (status == EMBLA_ERR_NOT_FOUND)
            status = embla_io_open_as(c->folder, c->lock_name, c->path, flags | O_CREAT, 0600, &fd);
        if (status != EMBLA_OK) return status;
        status = wait_for_lock(c, fd);
        if (status == EMBLA_OK) status = embla_io_stat(fd, c->path, &found);
        if (status == EMBLA_OK && found.st_nlink > 0) {
            c->lock = fd;
            return EMBLA_OK;
        }
        embla_io_unlock(fd);
        if (status == EMBLA_OK) continue;
        embla_io_sweep(c->folder, c->lock_name); /* unless another process holds it */
        return status;
    }
}

/* Why a copy is missing: EMBLA_ERR_BUSY if another process holds its lock, otherwise
 * EMBLA_ERR_NOT_FOUND. */
static embla_status why_missing(const copy *c)
{
    bool got = false;
    int fd = -1;
    embla_status status = embla_io_open_as(c->folder, c->lock_name, c->path,
                                           O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd);
    if (status == EMBLA_OK) {
        status = embla_io_lock_try(fd, c->path, &got);
        embla_io_unlock(fd);
        if (status == EMBLA_OK && !got) return fail_busy(c);
    }
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) return status;
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s: there is no shared copy", c->path);
}

/* The file is removed while the lock is held: processes that wait for it notice that it is gone. */
static void drop_lock(copy *c)
{
    embla_io_remove(c->folder, c->lock_name);
    embla_io_unlock(c->lock);
    c->lock = -1;
}

/* ---- checksums of pieces ---- */

/* Uses pread, so that a truncated copy gives a status and not a signal. */
static embla_status sum_piece(int fd, const copy *c, uint64_t piece, void *block, sum *out)
{
    const manifest *m = &c->wanted;
    uint64_t at = piece * m->piece_bytes, left = m->data_bytes - at;
    embla_checksum_state state;
    if (left > m->piece_bytes) left = m->piece_bytes;
    embla_checksum_begin(&state);
    while (left > 0) {
        size_t bytes = left < BLOCK ? (size_t)left : BLOCK, got = 0;
        EMBLA_TRY(embla_io_pread(fd, c->path, DATA_AT + at, bytes, block, &got));
        if (got < bytes)
            return embla_fail(EMBLA_ERR_IO, "%.256s was truncated: it ends at byte %" PRIu64,
                              c->path, DATA_AT + at + got);
        embla_checksum_add(&state, block, bytes);
        at += bytes;
        left -= bytes;
    }
    embla_checksum found = embla_checksum_end(&state);
    *out = (sum){.high = found.high, .low = found.low};
    return EMBLA_OK;
}

/* One piece for each thread at a time. Progress is reported between them, so the caller can
 * cancel. */
static embla_status sum_all(int fd, const copy *c, int threads, char *blocks, sum *out)
{
    embla_failure failure = EMBLA_NO_FAILURE;
    for (uint64_t first = 0; first < c->wanted.pieces; first += (uint64_t)threads) {
        uint64_t left = c->wanted.pieces - first;
        int count = left < (uint64_t)threads ? (int)left : threads;
        EMBLA_TRY(report(c, "checksum", (int64_t)(first * c->wanted.piece_bytes)));
#pragma omp parallel for num_threads(threads) schedule(static, 1) if (threads > 1)
        for (int i = 0; i < count; i++) {
            uint64_t piece = first + (uint64_t)i;
            embla_failure_keep(&failure,
                               sum_piece(fd, c, piece, blocks + (size_t)i * BLOCK, &out[piece]));
        }
        EMBLA_TRY(embla_failure_say(&failure));
    }
    return EMBLA_OK;
}

static embla_status compute_sums(int fd, const copy *c, sum *out)
{
    void *blocks = NULL;
    int threads = embla_threads_for(c->options->threads, (size_t)c->wanted.data_bytes);
    if ((uint64_t)threads > c->wanted.pieces) threads = (int)c->wanted.pieces;
    if (threads == 0) return EMBLA_OK; /* no rows */
    size_t bytes = (size_t)threads * BLOCK;
    EMBLA_TRY(embla_mem_new(bytes, "checksums of rows", &blocks));
    embla_status status = sum_all(fd, c, threads, blocks, out);
    embla_mem_free(blocks, bytes);
    return status;
}

/* ---- building ---- */

/* The most frequent failure: tmpfs is often smaller than memory. */
static embla_status check_space(const copy *c)
{
    uint64_t free_bytes = 0, needed = c->wanted.data_bytes + SUMS_AT;
    needed += c->wanted.pieces * sizeof(sum);
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
static embla_status reserve_space(const copy *c, int fd, char *memory)
{
    const manifest *m = &c->wanted;
    bool huge = true;
    EMBLA_TRY(embla_io_claim(fd, c->path, 0, SUMS_AT + m->pieces * sizeof(sum)));
    for (uint64_t at = 0, bytes; at < m->data_bytes; at += bytes) {
        bytes = m->data_bytes - at < STEP ? m->data_bytes - at : STEP;
        EMBLA_TRY(report(c, "reserve", (int64_t)at));
        if (huge) huge = embla_io_huge_shared(memory + DATA_AT + at, (size_t)bytes);
        EMBLA_TRY(embla_io_claim(fd, c->path, DATA_AT + at, bytes));
    }
    return EMBLA_OK;
}

/* Writes rows and checksums, then the manifest. */
static embla_status write_all(const copy *c, int fd, char *memory)
{
    manifest m = c->wanted;
    sum *sums = (sum *)(void *)(memory + SUMS_AT);
    EMBLA_TRY(reserve_space(c, fd, memory));
    EMBLA_TRY(embla_extents_fill(c->store, 0, c->store->rows, memory + DATA_AT));
    EMBLA_TRY(compute_sums(fd, c, sums));
    embla_checksum of_sums = checksum_of(sums, (size_t)m.pieces * sizeof(sum));
    m.sums[0] = of_sums.high;
    m.sums[1] = of_sums.low;
    embla_checksum self = checksum_of(&m, offsetof(manifest, self));
    m.self[0] = self.high;
    m.self[1] = self.low;
    memcpy(memory, &m, sizeof m);
    return EMBLA_OK;
}

/* Writes the file and closes the descriptor, also on failure. */
static embla_status write_file(const copy *c, int fd)
{
    void *memory = NULL;
    size_t bytes = (size_t)c->wanted.file_bytes;
    embla_status status = embla_io_cut(fd, c->path, bytes);
    if (status == EMBLA_OK) status = embla_io_map_shared(fd, c->path, bytes, &memory);
    if (status == EMBLA_OK) status = write_all(c, fd, memory);
    if (memory) embla_io_unmap(memory, bytes);
    if (status == EMBLA_OK)
        status = embla_io_sync(fd, c->path); /* in case the folder is on a disk */
    if (status == EMBLA_OK) return embla_io_close(fd, c->path);
    embla_io_drop(fd);
    return status;
}

/* Readable for users who can read all source files, writable for nobody. */
static embla_status file_mode(const embla_store *store, unsigned *out)
{
    unsigned mode = 0444;
    for (size_t i = 0; i < store->source_count; i++) {
        struct stat found;
        const embla_map *map = store->sources[i].map;
        EMBLA_TRY(embla_io_stat(map->fd, map->name, &found));
        mode &= (unsigned)found.st_mode;
    }
    *out = mode | 0400;
    return EMBLA_OK;
}

/* The caller holds the lock, so any file with the temporary name is a leftover. */
static embla_status build(const copy *c, embla_map **out)
{
    embla_map *map = NULL;
    unsigned mode = 0;
    int fd = -1;
    embla_io_remove(c->folder, c->temporary);
    EMBLA_TRY(check_space(c));
    EMBLA_TRY(file_mode(c->store, &mode));
    EMBLA_TRY(embla_io_open_as(c->folder, c->temporary, c->path,
                               O_RDWR | O_CREAT | O_EXCL | O_NOFOLLOW, mode, &fd));
    embla_status status = write_file(c, fd);
    if (status == EMBLA_OK) status = open_copy(c, c->temporary, &map);
    if (status == EMBLA_OK)
        status = embla_io_rename(c->folder, c->temporary, c->name, c->path, false);
    if (status == EMBLA_OK) {
        *out = map;
        return EMBLA_OK;
    }
    embla_map_free(map);
    embla_io_remove(c->folder, c->temporary);
    return status;
}

/* ---- the placement ---- */

/* Opens the copy, or builds it if there is none. */
static embla_status find_or_build(copy *c, embla_map **out, bool *built)
{
    embla_status status = open_copy(c, c->name, out);
    if (status == EMBLA_OK)
        embla_io_sweep(c->folder, c->lock_name); /* leftover of a killed process */
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    if (c->store->options.found_only) return why_missing(c);
    EMBLA_TRY(take_lock(c));
    status = open_copy(c, c->name, out);
    if (status == EMBLA_ERR_NOT_FOUND) {
        status = build(c, out);
        *built = status == EMBLA_OK;
    }
    drop_lock(c);
    return status;
}

static embla_status shared_open(embla_store *store)
{
    copy c;
    embla_map *map = NULL;
    void *memory = NULL;
    bool built = false;
    const char *path = NULL;
    EMBLA_TRY(init_copy(store, &c));
    embla_status status = embla_arena_text(&store->arena, c.path, strlen(c.path), &path);
    if (status == EMBLA_OK) status = embla_mem_new(sizeof(held), "a shared copy", &memory);
    if (status == EMBLA_OK) status = find_or_build(&c, &map, &built);
    embla_io_drop(c.folder);
    if (status != EMBLA_OK) {
        embla_mem_free(memory, sizeof(held));
        return status;
    }
    *(held *)memory = (held){.map = map, .path = path, .built = built};
    store->state = memory;
    store->data = (const char *)map->bytes + DATA_AT;
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
static embla_status compare_sums(const copy *c, const embla_map *map, sum *sums)
{
    manifest m;
    uint64_t pieces = c->wanted.pieces;
    size_t bytes = (size_t)pieces * sizeof(sum);
    EMBLA_TRY(embla_map_read(map, 0, sizeof m, &m));
    EMBLA_TRY(embla_map_read(map, SUMS_AT, bytes, sums));
    embla_checksum found = checksum_of(sums, bytes);
    if (found.high != m.sums[0] || found.low != m.sums[1])
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s: its checksums are damaged; remove it with 'rm %.256s'", c->path,
                          c->path);
    EMBLA_TRY(compute_sums(map->fd, c, sums + pieces));
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
    copy c = {.store = store, .options = options, .folder = -1, .lock = -1};
    void *sums = NULL;
    EMBLA_TRY(expected_manifest(store, &c.wanted));
    (void)snprintf(c.path, sizeof c.path, "%s", h->path);
    size_t bytes = 2 * (size_t)c.wanted.pieces * sizeof(sum);
    if (bytes == 0) return EMBLA_OK;
    EMBLA_TRY(embla_mem_new(bytes, "checksums of rows", &sums));
    embla_status status = compare_sums(&c, h->map, sums);
    embla_mem_free(sums, bytes);
    return status;
}

/* Removes the copy if the name still belongs to it. The caller holds the lock. */
static embla_status unlink_copy(const copy *c, const embla_map *map)
{
    struct stat found;
    int fd = -1;
    EMBLA_TRY(
        embla_io_open_as(c->folder, c->name, c->path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK, 0, &fd));
    embla_status status = embla_io_stat(fd, c->path, &found);
    embla_io_drop(fd);
    if (status != EMBLA_OK) return status;
    if ((uint64_t)found.st_dev != map->device || (uint64_t)found.st_ino != map->inode)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s has been replaced by another copy", c->path);
    return embla_io_erase(c->folder, c->name, c->path);
}

embla_status embla_store_unshare(const embla_store *store)
{
    copy c;
    if (!store) return embla_fail(EMBLA_ERR_ARGUMENT, "store is NULL");
    if (store->placement != &embla_placement_shared)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the store has placement '%s', so it has no shared copy",
                          store->placement->name);
    const held *h = store->state;
    const embla_store_options no_progress = {0}; /* the caller's context may no longer be valid */
    EMBLA_TRY(init_copy(store, &c));
    c.options = &no_progress;
    c.patience = UNSHARE_WAIT;
    embla_status status = take_lock(&c);
    if (status == EMBLA_OK) {
        status = unlink_copy(&c, h->map);
        drop_lock(&c);
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
