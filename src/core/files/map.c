/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a file for reading, checks that it is a regular file, and maps it. */
#include "files/map.h"

#include <fcntl.h>
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
    map->fd = map->guard = -1;
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
    struct stat found;
    size_t size;
    EMBLA_TRY(embla_io_stat(map->fd, map->name, &found));
    if (!S_ISREG(found.st_mode))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s is %s, not a regular file (C1)", map->name,
                          S_ISDIR(found.st_mode)    ? "a folder"
                          : S_ISFIFO(found.st_mode) ? "a pipe"
                                                    : "a device or socket");
    if (found.st_size == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s is empty: it has 0 bytes (C1)", map->name);
    if (found.st_size < 0 || !embla_size_ok((uint64_t)found.st_size, &size))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.256s has %" PRId64 " bytes, too many to map into memory (C1)",
                          map->name, (int64_t)found.st_size);
    map->size = size;
    map->id = embla_file_id_of(&found);
    map->others_write = (found.st_mode & S_IWOTH) != 0;
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

static embla_status open_and_map(int folder, const char *name, bool follow, embla_map *map)
{
    void *bytes = NULL;
    /* O_NONBLOCK: opening a pipe must not wait for its other end. check_file refuses it. */
    int flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
    EMBLA_TRY(embla_io_open(folder, name, flags, 0, &map->fd));
    EMBLA_TRY(check_file(map));
    EMBLA_TRY(embla_io_map(map->fd, map->name, (size_t)map->size, &bytes));
    map->bytes = bytes;
    return EMBLA_OK;
}

static embla_status open_any(int folder, const char *name, const char *shown, bool follow,
                             embla_map **out)
{
    embla_map *map = NULL;
    EMBLA_TRY(new_handle(shown, &map));
    embla_status status = open_and_map(folder, name, follow, map);
    if (status != EMBLA_OK) {
        if (map->fd >= 0) embla_io_drop(map->fd);
        free_handle(map);
        return status;
    }
    map->guard = embla_guard_add(map->bytes, (size_t)map->size);
    *out = map;
    return EMBLA_OK;
}

embla_status embla_map_open(int folder, const char *name, const char *shown, bool follow,
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
    return open_any(AT_FDCWD, path, path, true, out);
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
    embla_status status = embla_io_map_private(map->fd, map->name, (size_t)map->size, &bytes);
    if (status != EMBLA_OK) {
        free_handle(made);
        return status;
    }
    made->bytes = bytes;
    made->size = map->size;
    made->id = map->id;
    made->others_write = map->others_write;
    made->fd = map->fd;
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
        if (map->fd >= 0) {
            embla_guard_remove(map->guard); /* before the unmap: see guard.c */
            embla_io_unmap((void *)(uintptr_t)map->bytes, (size_t)map->size);
            if (!of) embla_io_drop(map->fd);
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
    if (map->fd < 0) {
        if (bytes > 0) memcpy(out, map->bytes + offset, bytes);
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_io_pread(map->fd, map->name, offset, bytes, out, &got));
    if (got < bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was truncated while it was open: it had %" PRIu64
                          " bytes and now ends at byte %" PRIu64 " (C11)",
                          map->name, map->size, offset + got);
    return EMBLA_OK;
}

embla_status embla_map_modified(const embla_map *map, int64_t *seconds, int64_t *nanoseconds)
{
    struct stat now = {0};
    if (map->fd >= 0) {
        EMBLA_TRY(embla_io_stat(map->fd, map->name, &now));
        if ((uint64_t)now.st_size < map->size || now.st_size < 0)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s was truncated while it was open: it had %" PRIu64
                              " bytes and now has %" PRId64 " (C11)",
                              map->name, map->size, (int64_t)now.st_size);
    }
    if (embla_guard_lost(map->guard))
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was truncated while it was open: some of its %" PRIu64
                          " bytes could not be read (C11)",
                          map->name, map->size);
    *seconds = now.st_mtim.tv_sec;
    *nanoseconds = now.st_mtim.tv_nsec;
    return EMBLA_OK;
}

embla_status embla_map_check(const embla_map *map)
{
    int64_t seconds, nanoseconds;
    return embla_map_modified(map, &seconds, &nanoseconds);
}
