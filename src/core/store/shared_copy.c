/* SPDX-License-Identifier: Apache-2.0 */
/* The file of a shared copy: its name, its manifest, its checksums, and the checks when it is
 * opened.
 *
 *   | manifest | note | checksums of the pieces of rows | at 2 MiB: rows, with their scales |
 *
 * A file with the name of a copy is never written to or replaced. If it does not match, it is
 * refused, and the message says how to remove it.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"
#include "files/io.h"
#include "store/shared.h"

enum {
    VERSION = 1,
    NAME_MOST = 200,
    BLOCK = 1 << 20 /* bytes per read for a checksum */
};
#define PIECE ((uint64_t)64 << 20) /* bytes of a piece; doubled if there are too many */

static const char magic[8] = {'E', 'M', 'B', 'L', 'A', 'R', 'O', 'W'};
#define ORDER UINT64_C(0x0102030405060708)

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
        if (source->map->file < 0)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.256s is not a file; memory of this process cannot be shared",
                              source->map->name);
        add(&state, source->map->id.volume);
        add(&state, source->map->id.id[0]);
        add(&state, source->map->size);
        add(&state, (uint64_t)source->seconds);
        add(&state, (uint64_t)source->nanoseconds);
    }
    for (size_t i = 0; i < store->extent_count; i++) {
        const embla_extent_at *extent = &store->extents[i];
        add(&state, (uint64_t)extent->rows);
        add(&state, extent->planes);
        add(&state, extent->group);
        add(&state, extent->group_bytes);
        add(&state, extent->skipped);
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

embla_status embla_copy_expected(const embla_store *store, embla_copy_manifest *out)
{
    embla_copy_manifest m = {.order = ORDER,
                             .version = VERSION,
                             .rows = (uint64_t)store->held,
                             .row_bytes = store->row.bytes,
                             .dim = store->row.format.dim,
                             .dtype = (uint64_t)store->row.format.dtype,
                             .scales = (uint64_t)store->row.format.scales,
                             .data_at = EMBLA_COPY_DATA_AT,
                             .data_bytes = (uint64_t)store->bytes,
                             .piece_bytes = PIECE};
    size_t mapped;
    memcpy(m.magic, magic, sizeof magic);
    EMBLA_TRY(compute_identity(store, m.identity));
    if (!embla_add_ok(m.data_bytes, EMBLA_COPY_DATA_AT, &m.file_bytes) ||
        !embla_size_ok(m.file_bytes, &mapped))
        return embla_fail(EMBLA_ERR_SHAPE, "%" PRIu64 " bytes of rows do not fit in one file",
                          m.data_bytes);
    /* all checksums must fit before the rows */
    while (m.data_bytes / m.piece_bytes >=
           (EMBLA_COPY_DATA_AT - EMBLA_COPY_SUMS_AT) / sizeof(embla_copy_sum))
        m.piece_bytes *= 2;
    m.pieces = m.data_bytes / m.piece_bytes + (m.data_bytes % m.piece_bytes > 0);
    *out = m;
    return EMBLA_OK;
}

/* The names of the lock and of temporary files contain the user's number: a folder such as /dev/shm
 * is open to all users, and the files of one must not stop another. */
static embla_status set_names(const embla_store_options *options, embla_copy *c)
{
    const char *given = options->shared_name;
    const char *folder =
        options->shared_folder ? options->shared_folder : embla_system_memory_folder();
    if (!folder)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "this system has no folder for files in memory; choose one "
                          "(shared_folder)");
    if (!given)
        (void)snprintf(c->name, sizeof c->name, "embla-%016" PRIx64, c->wanted.identity[1]);
    else if (*given == '\0' || *given == '.' || embla_io_slash(given) || strlen(given) > NAME_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "'%.220s' is not a valid name for a copy; use 1 to %d bytes without '/' "
                          "that do not begin with '.'",
                          given, NAME_MOST);
    else
        (void)snprintf(c->name, sizeof c->name, "%s", given);
    unsigned user = embla_system_user();
    (void)snprintf(c->lock_name, sizeof c->lock_name, "%.200s.%u.lock", c->name, user);
    (void)snprintf(c->temporary, sizeof c->temporary, ".%.200s.%u.tmp.", c->name, user);
    (void)snprintf(c->path, sizeof c->path, "%s/%s", folder, c->name);
    if ((size_t)snprintf(c->lock_path, sizeof c->lock_path, "%s/%s", folder, c->lock_name) >=
        sizeof c->lock_path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.128s..: the folder's path is too long: %zu bytes",
                          folder, strlen(folder));
    return embla_io_open_folder(folder, &c->folder);
}

embla_status embla_copy_init(const embla_store *store, embla_copy *out)
{
    *out = (embla_copy){.store = store,
                        .options = &store->options,
                        .patience = store->options.shared_wait,
                        .folder = -1,
                        .lock = -1};
    EMBLA_TRY(embla_copy_expected(store, &out->wanted));
    return set_names(&store->options, out);
}

embla_status embla_copy_report(const embla_copy *c, const char *what, int64_t done)
{
    return embla_progress_report(c->options->progress, c->options->context, what, done,
                                 c->store->bytes);
}

/* ---- opening an existing copy ---- */

/* Reports a copy that cannot be used, and how to remove it. */
static embla_status refuse_copy(const embla_copy *c, const char *why)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s %s; remove it with 'rm %.256s', and the next process that opens the "
                      "store builds it again",
                      c->path, why, c->path);
}

/* Refuses a copy that other users could have changed. */
static embla_status check_owner(const embla_copy *c, const embla_map *map)
{
    embla_file_facts found;
    EMBLA_TRY(embla_io_facts(map->file, c->path, &found));
    if (found.user != 0 && found.user != embla_system_user())
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s belongs to user %u; only copies of user %u or of root are used. "
                          "Choose another name or folder",
                          c->path, found.user, embla_system_user());
    if (found.mode & 0022)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s is not used, because other users can write to it (mode %03o); "
                          "remove it with 'rm %.256s'",
                          c->path, found.mode & 0777u, c->path);
    return EMBLA_OK;
}

static embla_status check_copy(const embla_copy *c, const embla_map *map)
{
    embla_copy_manifest m;
    char why[224];
    EMBLA_TRY(check_owner(c, map));
    if (map->size < EMBLA_COPY_DATA_AT) return refuse_copy(c, "is too short to be a copy of rows");
    EMBLA_TRY(embla_map_read(map, 0, sizeof m, &m));
    if (memcmp(m.magic, magic, sizeof magic) != 0 || m.order != ORDER)
        return refuse_copy(c, "is not a copy of rows");
    if (m.version != VERSION) {
        (void)snprintf(why, sizeof why,
                       "has format version %" PRIu64 "; this library uses version %d", m.version,
                       VERSION);
        return refuse_copy(c, why);
    }
    embla_checksum self = embla_checksum_of(&m, offsetof(embla_copy_manifest, self));
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
    if (memcmp(&m, &c->wanted, offsetof(embla_copy_manifest, sums)) != 0)
        return refuse_copy(c, "has a manifest that does not match the files");
    if (map->size != c->wanted.file_bytes) {
        (void)snprintf(why, sizeof why, "has %" PRIu64 " bytes; expected: %" PRIu64, map->size,
                       c->wanted.file_bytes);
        return refuse_copy(c, why);
    }
    return EMBLA_OK;
}

bool embla_copy_recognised(const embla_copy_manifest *m, uint64_t size)
{
    embla_checksum self = embla_checksum_of(m, offsetof(embla_copy_manifest, self));
    return memcmp(m->magic, magic, sizeof magic) == 0 && m->order == ORDER &&
           m->version == VERSION && m->file_bytes == size && self.high == m->self[0] &&
           self.low == m->self[1];
}

embla_status embla_copy_open(const embla_copy *c, const char *name, embla_map **out)
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

/* ---- checksums of pieces ---- */

/* Uses pread, so that a truncated copy gives a status and not a signal. */
static embla_status sum_piece(embla_handle file, const embla_copy *c, uint64_t piece, void *block,
                              embla_copy_sum *out)
{
    const embla_copy_manifest *m = &c->wanted;
    uint64_t at = piece * m->piece_bytes, left = m->data_bytes - at;
    embla_checksum_state state;
    if (left > m->piece_bytes) left = m->piece_bytes;
    embla_checksum_begin(&state);
    while (left > 0) {
        size_t bytes = left < BLOCK ? (size_t)left : BLOCK, got = 0;
        EMBLA_TRY(embla_io_pread(file, c->path, EMBLA_COPY_DATA_AT + at, bytes, block, &got));
        if (got < bytes)
            return embla_fail(EMBLA_ERR_IO, "%.256s was truncated: it ends at byte %" PRIu64,
                              c->path, EMBLA_COPY_DATA_AT + at + got);
        embla_checksum_add(&state, block, bytes);
        at += bytes;
        left -= bytes;
    }
    embla_checksum found = embla_checksum_end(&state);
    *out = (embla_copy_sum){.high = found.high, .low = found.low};
    return EMBLA_OK;
}

/* The pieces from `first` on, one for each thread. */
typedef struct {
    const embla_copy *copy;
    embla_handle file;
    uint64_t first;
    char *blocks; /* BLOCK bytes for each slot */
    embla_copy_sum *out;
} summing;

static embla_status sum_pieces(void *job, size_t first, size_t end, size_t slot)
{
    const summing *s = job;
    for (uint64_t piece = s->first + first; piece < s->first + end; piece++)
        EMBLA_TRY(sum_piece(s->file, s->copy, piece, s->blocks + slot * BLOCK, &s->out[piece]));
    return EMBLA_OK;
}

/* One piece for each thread at a time. Progress is reported between them, so the caller can
 * cancel. */
static embla_status sum_all(embla_handle file, const embla_copy *c, int threads, char *blocks,
                            embla_copy_sum *out)
{
    for (uint64_t first = 0; first < c->wanted.pieces; first += (uint64_t)threads) {
        uint64_t left = c->wanted.pieces - first;
        int count = left < (uint64_t)threads ? (int)left : threads;
        EMBLA_TRY(embla_copy_report(c, "checksum", (int64_t)(first * c->wanted.piece_bytes)));
        const summing s = {.copy = c, .file = file, .first = first, .blocks = blocks, .out = out};
        EMBLA_TRY(embla_share(count, (size_t)count, 0, sum_pieces, &s));
    }
    return EMBLA_OK;
}

embla_status embla_copy_sums(embla_handle file, const embla_copy *c, embla_copy_sum *out)
{
    void *blocks = NULL;
    int threads = embla_threads_for(c->options->threads, (size_t)c->wanted.data_bytes);
    if ((uint64_t)threads > c->wanted.pieces) threads = (int)c->wanted.pieces;
    if (threads == 0) return EMBLA_OK; /* no rows */
    size_t bytes = (size_t)threads * BLOCK;
    EMBLA_TRY(embla_mem_new(bytes, "checksums of rows", &blocks));
    embla_status status = sum_all(file, c, threads, blocks, out);
    embla_mem_free(blocks, bytes);
    return status;
}
