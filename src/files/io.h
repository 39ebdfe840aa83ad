/* SPDX-License-Identifier: Apache-2.0 */
/* The one door for file calls: what the system offers, each with its sentence when it
 * fails, and each of them made to fail by a test, once or from then on.
 *
 * name is what messages call the file. Interrupted calls are taken up again.
 */
#ifndef EMBLA_FILES_IO_H
#define EMBLA_FILES_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <sys/stat.h>

#include "base/status.h"

/* Opens name below folder (AT_FDCWD: the current one). EMBLA_ERR_NOT_FOUND where there is
 * no such file, EMBLA_ERR_IO for any other refusal. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_open(int folder, const char *name, int flags,
                                                       unsigned mode, int *out);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_stat(int fd, const char *name, struct stat *out);
/* Up to bytes from offset; *got is less only where the file ends. */
EMBLA_CHECKED embla_status embla_io_pread(int fd, const char *name, uint64_t offset, size_t bytes,
                                          void *out, size_t *got);
/* All of it. */
EMBLA_CHECKED embla_status embla_io_write(int fd, const char *name, const void *bytes,
                                          size_t count);
/* Takes the space a file will need, so that a full disk is met at once. A file system that
 * cannot do it is no error. */
EMBLA_CHECKED embla_status embla_io_reserve(int fd, const char *name, uint64_t bytes);
/* The length becomes size; the mode what a new file of this process would have. */
EMBLA_CHECKED embla_status embla_io_cut(int fd, const char *name, uint64_t size);
EMBLA_CHECKED embla_status embla_io_mode(int fd, const char *name);
EMBLA_CHECKED embla_status embla_io_sync(int fd, const char *name);
/* The descriptor is gone in any case. */
EMBLA_CHECKED embla_status embla_io_close(int fd, const char *name);
/* The same where nothing could be lost: a file that was only read. */
EMBLA_PRIVATE void embla_io_drop(int fd);
EMBLA_CHECKED embla_status embla_io_rename(int folder, const char *from, const char *to);
/* Never fails: there is nothing that could be done. */
void embla_io_remove(int folder, const char *name);
/* A read-only map of the whole file. */
EMBLA_CHECKED embla_status embla_io_map(int fd, const char *name, size_t bytes, void **out);
void embla_io_unmap(void *memory, size_t bytes);

/* Where a symbolic link points, with a 0 after it: its length; 0 if name is no link, or one
 * that does not fit. */
size_t embla_io_link(int folder, const char *name, char *out, size_t size);

/* The names in a folder but "." and "..": one call of each for each, until each fails or
 * there are no more. Order as the system gives it. */
EMBLA_CHECKED embla_status embla_io_list(int folder, const char *name,
                                         embla_status (*each)(void *context, const char *entry),
                                         void *context);

/* For tests: the n-th call from now fails with this error number (1 is the next); with
 * forever, so do all after it. n = 0 ends this. */
EMBLA_PRIVATE void embla_io_fail(size_t n, bool forever, int error);
/* For tests: reads and writes move at most this many bytes at a time; 0: no limit. */
EMBLA_PRIVATE void embla_io_short(size_t bytes);
/* For tests: descriptors and maps handed out and not given back. */
EMBLA_PRIVATE size_t embla_io_live(void);

#endif
