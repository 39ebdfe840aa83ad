/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a file for reading, checks that it is a regular file, and maps it. */
#include "files/map.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/guard.h"
#include "files/io.h"
#include "files/packed.h"

/* Allocates the handle and a copy of the name in one block. */
static embla_status new_handle(const char *shown, embla_map **out)
{
    size_t length = strlen(shown);
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_map) + length + 1, "an open file", &memory));
    embla_map *map = memory;
    memcpy(map + 1, shown, length + 1);
    map->name = (const char *)(map + 1);
    map->file = map->guard = -1;
    atomic_store(&map->owners, 1);
    *out = map;
    return EMBLA_OK;
}

static void free_handle(embla_map *map)
{
    embla_mem_free(map, sizeof *map + strlen(map->name) + 1);
}

/* Accepts a regular file of a size that can be mapped, and refuses everything else. */
static embla_status check_file(embla_map *map)
{
    embla_file_facts found;
    size_t size;
    EMBLA_TRY(embla_io_facts(map->file, map->name, &found));
    if (found.kind != EMBLA_REGULAR_FILE)
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s is %s, not a regular file (C1)", map->name,
                          found.kind == EMBLA_IS_FOLDER ? "a folder"
                          : found.kind == EMBLA_IS_PIPE ? "a pipe"
                                                        : "a device or socket");
    if (found.size == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s is empty: it has 0 bytes (C1)", map->name);
    if (!embla_size_ok(found.size, &size))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s has %" PRId64 " bytes, too many to map into memory (C1)",
                          map->name, (int64_t)found.size);
    map->size = size;
    map->id = found.id;
    map->others_write = (found.mode & 0002) != 0;
    return EMBLA_OK;
}

/* Refuses a compressed file. */
static embla_status check_packed(const embla_map *map, bool text)
{
    uint8_t head[EMBLA_PACKED_HEAD];
    size_t have = map->size < sizeof head ? (size_t)map->size : sizeof head;
    EMBLA_TRY(embla_map_read(map, 0, have, head));
    return embla_packed_check(map->name, head, have, text);
}

embla_status embla_map_check_text(const embla_map *map)
{
    return check_packed(map, true);
}

static embla_status open_and_map(embla_folder folder, const char *name, bool follow, embla_map *map)
{
    void *bytes = NULL;
    unsigned intents = EMBLA_OPEN_READ | (follow ? 0 : EMBLA_OPEN_NO_LINK);
    EMBLA_TRY(embla_io_open(folder, name, intents, 0, &map->file));
    EMBLA_TRY(check_file(map));
    EMBLA_TRY(embla_io_map(map->file, map->name, (size_t)map->size, &bytes));
    map->bytes = bytes;
    return EMBLA_OK;
}

static embla_status open_any(embla_folder folder, const char *name, const char *shown, bool follow,
                             embla_map **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(new_handle(shown, &map));
    embla_status status = open_and_map(folder, name, follow, map);
    if (status != EMBLA_OK) {
        if (map->file >= 0) embla_io_drop(map->file);
        free_handle(map);
        return status;
    }
    map->guard = embla_guard_add(map->bytes, (size_t)map->size);
    *out = map;
    return EMBLA_OK;
}

embla_status embla_map_open(embla_folder folder, const char *name, const char *shown, bool follow,
                            embla_map **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(open_any(folder, name, shown, follow, &map));
    embla_status status = check_packed(map, false);
    if (status == EMBLA_OK)
        *out = map;
    else
        embla_map_free(map);
    return status;
}

embla_status embla_map_open_rows(const char *path, embla_map **out)
{
    return open_any(EMBLA_HERE, path, path, true, out);
}

embla_status embla_map_bytes(const void *bytes, size_t size, const char *shown, embla_map **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(new_handle(shown, &map));
    map->bytes = bytes;
    map->size = size;
    *out = map;
    return EMBLA_OK;
}

embla_status embla_map_private(embla_map *map, embla_map **out)
{
    embla_map *made = NULL;
    void *bytes = NULL;
    EMBLA_TRY(new_handle(map->name, &made));
    embla_status status = embla_io_map_private(map->file, map->name, (size_t)map->size, &bytes);
    if (status != EMBLA_OK) {
        free_handle(made);
        return status;
    }
    made->bytes = bytes;
    made->size = map->size;
    made->id = map->id;
    made->others_write = map->others_write;
    made->file = map->file;
    made->of = embla_map_hold(map);
    made->guard = embla_guard_add(made->bytes, (size_t)made->size);
    *out = made;
    return EMBLA_OK;
}

embla_map *embla_map_hold(embla_map *map)
{
    atomic_fetch_add(&map->owners, 1);
    return map;
}

void embla_map_free(embla_map *map)
{
    while (map && atomic_fetch_sub(&map->owners, 1) == 1) {
        embla_map *of = map->of;
        if (map->file >= 0) {
            embla_guard_remove(map->guard); /* before the unmap: see guard.c */
            embla_io_unmap((void *)(uintptr_t)map->bytes, (size_t)map->size);
            if (!of) embla_io_drop(map->file);
        }
        free_handle(map);
        map = of;
    }
}

embla_status embla_map_read(const embla_map *map, uint64_t offset, size_t bytes, void *out)
{
    size_t got = 0;
    if (offset > map->size || bytes > map->size - offset)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %zu bytes are needed at byte %" PRIu64
                          ", but the file has %" PRIu64 " bytes (C2)",
                          map->name, bytes, offset, map->size);
    if (map->file < 0) {
        if (bytes > 0) memcpy(out, map->bytes + offset, bytes);
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_io_pread(map->file, map->name, offset, bytes, out, &got));
    if (got < bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was truncated while it was open: it had %" PRIu64
                          " bytes and now ends at byte %" PRIu64 " (C11)",
                          map->name, map->size, offset + got);
    return EMBLA_OK;
}

embla_status embla_map_modified(const embla_map *map, int64_t *seconds, int64_t *nanoseconds)
{
    embla_file_facts now = {0};
    if (map->file >= 0) {
        EMBLA_TRY(embla_io_facts(map->file, map->name, &now));
        if (now.size < map->size)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s was truncated while it was open: it had %" PRIu64
                              " bytes and now has %" PRId64 " (C11)",
                              map->name, map->size, (int64_t)now.size);
    }
    if (embla_guard_lost(map->guard))
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was truncated while it was open: some of its %" PRIu64
                          " bytes could not be read (C11)",
                          map->name, map->size);
    *seconds = now.seconds;
    *nanoseconds = now.nanoseconds;
    return EMBLA_OK;
}

embla_status embla_map_check(const embla_map *map)
{
    int64_t seconds, nanoseconds;
    return embla_map_modified(map, &seconds, &nanoseconds);
}
