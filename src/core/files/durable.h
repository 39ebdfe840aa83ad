/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written: the name holds either the complete new file or what it held before
 * (rules D1, D5).
 *
 *   temporary name in the same folder, locked, space reserved, written, synced, closed,
 *   [read back by the caller,] renamed, folder synced.
 *
 * If a step fails, the temporary file is removed and the old file stays. The lock means that a
 * process is still writing; a temporary file without a lock is a leftover. Messages call the
 * file by the path that the caller passed.
 */
#ifndef EMBLA_FILES_DURABLE_H
#define EMBLA_FILES_DURABLE_H

#include <stdbool.h>

#include "base/status.h"
#include "system/system.h"

typedef struct embla_durable embla_durable;

/* Gets the facts of a path, which need not be readable; of a link itself if follow is false. *there
 * is false if nothing is there. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_facts(embla_folder folder, const char *path,
                                                             bool follow, embla_file_facts *out,
                                                             bool *there);
/* Checks that path can be written: nothing is there, or a regular file that may be replaced. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_target(const char *path, bool overwrite);

/* Begins to write path. First removes temporary files of the same path that no process, on any
 * host, is still writing. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_open(const char *path, embla_durable **out);
/* Reserves the space of a file of this size, so that a full disk is noticed at the start. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_reserve(embla_durable *d, uint64_t size);
/* Appends count bytes. Small pieces are buffered. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_write(embla_durable *d, const void *bytes,
                                                             size_t count);
/* Appends the same byte count times. */
EMBLA_CHECKED embla_status embla_durable_fill(embla_durable *d, uint8_t byte, uint64_t count);
/* The number of bytes appended so far. */
EMBLA_PRIVATE uint64_t embla_durable_size(const embla_durable *d);
/* Flushes, syncs and closes the temporary file. *temporary is its path, for reading it back; it
 * may be NULL. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_sync(embla_durable *d,
                                                            const char **temporary);
/* Renames the temporary file to its final name, after a sync if there was none. The new file has
 * the mode of the file it replaces. d is freed, also on failure. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_commit(embla_durable *d);
/* The same, but never replaces a file: EMBLA_ERR_ARGUMENT if the name exists. If several
 * processes try at once, exactly one succeeds. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_commit_new(embla_durable *d);
/* Removes the temporary file and frees d. NULL is allowed. */
EMBLA_PRIVATE void embla_durable_abandon(embla_durable *d);

#endif
