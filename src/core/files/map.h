/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is read. It is opened and checked once and never opened by name again (rule C1).
 *
 * Headers are read into memory with embla_map_read, which cannot raise a signal. Rows are used
 * in place, through a read-only map. Reading a map whose file was truncated raises SIGBUS, so
 * embla_map_check compares the file's size before and after rows are read (C11). A map may have
 * several owners; the last one to free it closes the file.
 */
#ifndef EMBLA_FILES_MAP_H
#define EMBLA_FILES_MAP_H

#include <stdatomic.h>

#include "base/status.h"
#include "system/system.h"

typedef struct embla_map {
    const char *name;     /* for messages: the path as it was given */
    const uint8_t *bytes; /* the whole file; read only parts that have been checked */
    uint64_t size;
    embla_file_id id;
    bool others_write;    /* the file's mode lets everyone write to it */
    embla_handle file;    /* -1 means the caller's bytes, see embla_map_bytes */
    int guard;            /* entry in the guard's list, see files/guard.h; -1 means none */
    struct embla_map *of; /* the map whose file this one shares (embla_map_private); else NULL */
    atomic_size_t owners; /* its decrements release and acquire: the last owner closes the file
                             after all others have read it */
} embla_map;

/* Opens a regular file relative to folder; EMBLA_HERE means the current folder. Messages call the
 * file `shown`. follow: name may be a symbolic link. A compressed file is EMBLA_ERR_UNSUPPORTED. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_open(embla_folder folder, const char *name,
                                                        const char *shown, bool follow,
                                                        embla_map **out);
/* The same for a file of rows alone: its bytes may be anything, and none of them is read. */
EMBLA_CHECKED embla_status embla_map_open_rows(const char *path, embla_map **out);
/* EMBLA_ERR_UNSUPPORTED if the file of a text is a zip archive. embla_map_open has refused other
 * compressed files. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_check_text(const embla_map *map);
/* A map of bytes that stay the caller's: for tests, fuzzers, and parts of files. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_bytes(const void *bytes, size_t size,
                                                         const char *shown, embla_map **out);
/* A second map of the same open file, which may be written to: only this process sees what is
 * written. Holds the first. */
EMBLA_CHECKED embla_status embla_map_private(embla_map *map, embla_map **out);
/* Adds an owner. Returns map. */
EMBLA_PRIVATE embla_map *embla_map_hold(embla_map *map);
/* Removes an owner; the last one closes the file. NULL is allowed. */
EMBLA_PRIVATE void embla_map_free(embla_map *map);

/* Reads exactly these bytes with pread. EMBLA_ERR_IO if the file has become shorter. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_read(const embla_map *map, uint64_t offset,
                                                        size_t bytes, void *out);
/* EMBLA_ERR_IO if the file has become shorter, or if a page of it was lost. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_map_check(const embla_map *map);
/* The same, and also returns the time of the last modification; 0 for a caller's bytes. */
EMBLA_CHECKED embla_status embla_map_modified(const embla_map *map, int64_t *seconds,
                                              int64_t *nanoseconds);

#endif
