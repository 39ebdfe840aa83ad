/* SPDX-License-Identifier: Apache-2.0 */
/* Opening a file for reading: one open, one look at what it is, one map. */
#include "files/map.h"

#include <fcntl.h>
#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "files/guard.h"
#include "files/io.h"

/* The handle, with the name messages use in the same block. */
static embla_status new_handle(const char *shown, embla_map **out)
{
    size_t length = strlen(shown);
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_map) + length + 1, "an open file", &memory));
    embla_map *map = memory;
    memcpy(map + 1, shown, length + 1);
    map->name = (const char *)(map + 1);
    map->fd = map->place = -1;
    atomic_store(&map->owners, 1);
    *out = map;
    return EMBLA_OK;
}

static void free_handle(embla_map *map)
{
    embla_mem_free(map, sizeof *map + strlen(map->name) + 1);
}

/* A regular file of a size we can map; everything else is refused. */
static embla_status look_at(embla_map *map)
{
    struct stat found;
    size_t size;
    EMBLA_TRY(embla_io_stat(map->fd, map->name, &found));
    if (!S_ISREG(found.st_mode))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s is %s, not a file (C1)", map->name,
                          S_ISDIR(found.st_mode)    ? "a folder"
                          : S_ISFIFO(found.st_mode) ? "a pipe"
                                                    : "a device or socket");
    if (found.st_size == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s is empty: 0 bytes (C1)", map->name);
    if (found.st_size < 0 || !embla_size_ok((uint64_t)found.st_size, &size))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.256s: %" PRId64 " bytes cannot be mapped (C1)",
                          map->name, (int64_t)found.st_size);
    map->size = size;
    map->device = (uint64_t)found.st_dev;
    map->inode = (uint64_t)found.st_ino;
    map->others_write = (found.st_mode & S_IWOTH) != 0;
    return EMBLA_OK;
}

static embla_status open_and_map(int folder, const char *name, bool follow, embla_map *map)
{
    void *bytes = NULL;
    /* Not to wait for a pipe's other end: what it is, is asked once it is open. */
    int flags = O_RDONLY | O_NONBLOCK | (follow ? 0 : O_NOFOLLOW);
    EMBLA_TRY(embla_io_open(folder, name, flags, 0, &map->fd));
    EMBLA_TRY(look_at(map));
    EMBLA_TRY(embla_io_map(map->fd, map->name, (size_t)map->size, &bytes));
    map->bytes = bytes;
    return EMBLA_OK;
}

embla_status embla_map_open(int folder, const char *name, const char *shown, bool follow,
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
    map->place = embla_guard_add(map->bytes, (size_t)map->size);
    *out = map;
    return EMBLA_OK;
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

embla_map *embla_map_hold(embla_map *map)
{
    atomic_fetch_add(&map->owners, 1);
    return map;
}

void embla_map_free(embla_map *map)
{
    if (!map || atomic_fetch_sub(&map->owners, 1) > 1) return;
    if (map->fd >= 0) {
        embla_guard_drop(map->place); /* first: see guard.c */
        embla_io_unmap((void *)(uintptr_t)map->bytes, (size_t)map->size);
        embla_io_drop(map->fd);
    }
    free_handle(map);
}

embla_status embla_map_read(const embla_map *map, uint64_t offset, size_t bytes, void *out)
{
    size_t got = 0;
    if (offset > map->size || bytes > map->size - offset)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %zu bytes from %" PRIu64 " on, but it has %" PRIu64 " (C2)",
                          map->name, bytes, offset, map->size);
    if (map->fd < 0) {
        if (bytes > 0) memcpy(out, map->bytes + offset, bytes);
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_io_pread(map->fd, map->name, offset, bytes, out, &got));
    if (got < bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s was cut short while open: it ends at %" PRIu64
                          ", and had %" PRIu64 " bytes (C11)",
                          map->name, offset + got, map->size);
    return EMBLA_OK;
}

embla_status embla_map_look(const embla_map *map, int64_t *seconds, int64_t *nanoseconds)
{
    struct stat now = {0};
    if (map->fd >= 0) {
        EMBLA_TRY(embla_io_stat(map->fd, map->name, &now));
        if ((uint64_t)now.st_size < map->size || now.st_size < 0)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s was cut short while open: %" PRId64 " bytes, and had %" PRIu64
                              " (C11)",
                              map->name, (int64_t)now.st_size, map->size);
    }
    if (embla_guard_lost(map->place))
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s: a part of its %" PRIu64 " bytes was lost while open (C11)",
                          map->name, map->size);
    *seconds = now.st_mtim.tv_sec;
    *nanoseconds = now.st_mtim.tv_nsec;
    return EMBLA_OK;
}

embla_status embla_map_check(const embla_map *map)
{
    int64_t seconds, nanoseconds;
    return embla_map_look(map, &seconds, &nanoseconds);
}
