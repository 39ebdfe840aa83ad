/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is read: opened once, checked, never opened by name again (rule C1).
 *
 * Headers are read into memory with embla_map_read, which cannot raise a signal; rows stay
 * where they are, in a read-only map. A map of a file that someone cuts short is a trap:
 * embla_map_check asks the system for the size before and after rows are taken (C11).
 * Several owners may hold one; the last to let go closes it.
 */
#ifndef EMBLA_FILES_MAP_H
#define EMBLA_FILES_MAP_H

#include <stdatomic.h>

#include "base/status.h"

typedef struct embla_map {
    const char *name;     /* for messages: the path as it was given */
    const uint8_t *bytes; /* the whole file; only what has been checked may be read */
    uint64_t size;
    uint64_t device, inode;
    bool others_write; /* the file's mode lets everyone write to it */
    int fd;            /* -1: bytes of a caller, see embla_map_bytes */
    int place;         /* where the guard has it, see files/guard.h; -1: nowhere */
    atomic_size_t owners;
} embla_map;

/* Opens a regular file below folder (AT_FDCWD: the current one); shown is what messages
 * call it. follow: a symbolic link may stand for it. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_open(int folder, const char *name,
                                                        const char *shown, bool follow,
                                                        embla_map **out);
/* The same over bytes that the caller keeps: for tests, fuzzers, and parts of files. */
EMBLA_CHECKED embla_status embla_map_bytes(const void *bytes, size_t size, const char *shown,
                                           embla_map **out);
/* One owner more. Returns map. */
embla_map *embla_map_hold(embla_map *map);
/* One owner less. NULL is fine. */
EMBLA_PRIVATE void embla_map_free(embla_map *map);

/* Exactly these bytes, by pread. EMBLA_ERR_IO if the file ends before. */
EMBLA_CHECKED embla_status embla_map_read(const embla_map *map, uint64_t offset, size_t bytes,
                                          void *out);
/* EMBLA_ERR_IO if the file is no longer as long as it was, or a page of it was lost. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_check(const embla_map *map);
/* The same, and when it was last changed; 0 of bytes of a caller. */
EMBLA_CHECKED embla_status embla_map_look(const embla_map *map, int64_t *seconds,
                                          int64_t *nanoseconds);

#endif
