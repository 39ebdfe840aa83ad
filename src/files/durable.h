/* SPDX-License-Identifier: Apache-2.0 */
/* A file that is written: either all of it is there under its name, or what was there
 * before still is (rules D1, D5).
 *
 *   temporary name in the same folder, locked, space reserved, written, synced, closed,
 *   [read back by the caller,] renamed, folder synced.
 *
 * Whatever fails on the way removes the temporary file and leaves the old one. The lock says
 * that someone is at it; a file without one is a leftover. Messages call the file by the path
 * that was given.
 */
#ifndef EMBLA_FILES_DURABLE_H
#define EMBLA_FILES_DURABLE_H

#include "base/status.h"

typedef struct embla_durable embla_durable;

/* Begins to write path. Temporary files for the same path that nobody is writing any more,
 * wherever they run, are removed first. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_open(const char *path, embla_durable **out);
/* Takes the space for a file of this size at once, so that a full disk is met at the start. */
EMBLA_CHECKED embla_status embla_durable_reserve(embla_durable *d, uint64_t size);
/* Appends. Small pieces are gathered before they are written. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_write(embla_durable *d, const void *bytes,
                                                             size_t count);
/* Appends count times the same byte. */
EMBLA_CHECKED embla_status embla_durable_fill(embla_durable *d, uint8_t byte, uint64_t count);
/* Bytes appended so far. */
EMBLA_PRIVATE uint64_t embla_durable_size(const embla_durable *d);
/* Writes out, syncs and closes the temporary file; what it is called, for reading back. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_sync(embla_durable *d,
                                                            const char **temporary);
/* Gives it its name (syncs first if that has not been done), and the mode of the file that it
 * replaces. d is gone, whatever happens. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_commit(embla_durable *d);
/* The same where nothing is to be replaced: EMBLA_ERR_ARGUMENT where the name is taken. Of
 * several that want it at once only one gets it. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_durable_commit_new(embla_durable *d);
/* Removes the temporary file. d is gone. NULL is fine. */
EMBLA_PRIVATE void embla_durable_abandon(embla_durable *d);

#endif
