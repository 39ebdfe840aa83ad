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
/* The same where messages call it something else. */
EMBLA_CHECKED embla_status embla_io_open_as(int folder, const char *name, const char *shown,
                                            int flags, unsigned mode, int *out);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_stat(int fd, const char *name, struct stat *out);
/* Up to bytes from offset; *got is less only where the file ends. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_pread(int fd, const char *name, uint64_t offset,
                                                        size_t bytes, void *out, size_t *got);
/* The file that fd is, opened once more for reads past the page cache (O_DIRECT). -1 where the
 * system does not have that: no error. */
int embla_io_direct(int fd);
enum { EMBLA_DIRECT = 4096 }; /* what offset, bytes and memory of such a read are multiples of */
/* embla_io_pread for such a descriptor. An error where the file system refuses after all. */
EMBLA_CHECKED embla_status embla_io_pread_direct(int fd, const char *name, uint64_t offset,
                                                 size_t bytes, void *out, size_t *got);
/* These bytes were read once and will not be again: the page cache may drop them. Never fails. */
void embla_io_forget(int fd, uint64_t offset, uint64_t bytes);
/* All of it. */
EMBLA_CHECKED embla_status embla_io_write(int fd, const char *name, const void *bytes,
                                          size_t count);
/* Takes the space a file will need, so that a full disk is met at once. A file system that
 * cannot do it is no error. */
EMBLA_CHECKED embla_status embla_io_reserve(int fd, const char *name, uint64_t bytes);
/* The length becomes size. */
EMBLA_CHECKED embla_status embla_io_cut(int fd, const char *name, uint64_t size);
/* The mode becomes that of the file called old in the folder, which this one will replace,
 * but for setuid and setgid; where there is none, that of any new file of this process. */
EMBLA_CHECKED embla_status embla_io_mode(int fd, const char *name, int folder, const char *old);
/* Locks a file that was just made, for as long as *keeper is open. That is a second
 * descriptor of it: the first can be closed, and that be looked at, without letting go.
 * *keeper is -1 where someone has taken the file for a leftover and removed it: make another.
 * A file system that knows no locks is no error: there embla_io_sweep removes nothing. */
EMBLA_CHECKED embla_status embla_io_lock(int fd, const char *name, int *keeper);
EMBLA_CHECKED embla_status embla_io_sync(int fd, const char *name);
/* The descriptor is gone in any case. */
EMBLA_CHECKED embla_status embla_io_close(int fd, const char *name);
/* The same where nothing could be lost: a file that was only read. */
EMBLA_PRIVATE void embla_io_drop(int fd);
/* shown is what messages call the file. Without replace: EMBLA_ERR_ARGUMENT where the name is
 * taken, and of several that want it at once only one gets it. */
EMBLA_CHECKED embla_status embla_io_rename(int folder, const char *from, const char *to,
                                           const char *shown, bool replace);
/* Never fails: there is nothing that could be done. */
EMBLA_PRIVATE void embla_io_remove(int folder, const char *name);
/* Removes a regular file that nobody has locked by embla_io_lock. Never fails either. */
void embla_io_sweep(int folder, const char *name);
/* A read-only map of the whole file. */
EMBLA_CHECKED embla_status embla_io_map(int fd, const char *name, size_t bytes, void **out);
EMBLA_PRIVATE void embla_io_unmap(void *memory, size_t bytes);
/* This part of a map is read in no order: a page that is touched brings no others with it. */
EMBLA_CHECKED embla_status embla_io_random(const void *memory, size_t bytes, const char *name);
/* How many of these bytes of a map are in the page cache. */
EMBLA_CHECKED embla_status embla_io_resident(const void *memory, size_t bytes, const char *name,
                                             uint64_t *out);

/* Makes a folder, and brings its name to the disk. One that is there is no error. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_folder(const char *path);

/* Where a symbolic link points, with a 0 after it: its length; 0 if name is no link, or one
 * that does not fit. */
size_t embla_io_link(int folder, const char *name, char *out, size_t size);

/* The names in a folder, which messages call name, but "." and "..": one call of each for each,
 * until each fails or there are no more. Order as the system gives it. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_list(int folder, const char *name,
                                                       embla_status (*each)(void *context,
                                                                            const char *entry),
                                                       void *context);

/* ---- one copy for many processes (store/shared.c) ---- */

/* Locks a file that all who want something agree on, unless someone else has it: *got. Ends when
 * the last descriptor of that open is closed, however the process ends, or by embla_io_unlock.
 * EMBLA_ERR_IO also where the file system knows no locks. */
EMBLA_CHECKED embla_status embla_io_lock_try(int fd, const char *name, bool *got);
/* Lets go, also where a forked child has the descriptor too, and closes it. */
void embla_io_unlock(int fd);
/* Takes the space of bytes from offset on, or fails: there a write through a map raises no
 * signal. */
EMBLA_CHECKED embla_status embla_io_claim(int fd, const char *name, uint64_t offset,
                                          uint64_t bytes);
/* Bytes that are free on the file system of an open file. */
EMBLA_CHECKED embla_status embla_io_space(int fd, const char *name, uint64_t *out);
/* A map that can be written to, of the whole file, on a boundary of 2 MiB. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_map_shared(int fd, const char *name, size_t bytes,
                                                             void **out);
/* Puts such a map, from and to a boundary of 2 MiB, on huge pages, before it is written to. Raises
 * no signal. False: the system does not grant it, or there is no more room. */
bool embla_io_huge_shared(void *memory, size_t bytes);
/* Makes the system map a page of each 2 MiB of a map, all of them where that is a huge one: it
 * counts only what is mapped. Raises no signal. */
void embla_io_touch_huge(const void *memory, size_t bytes);
/* The name goes; who has the file open keeps it. */
EMBLA_CHECKED embla_status embla_io_erase(int folder, const char *name, const char *shown);

/* For tests: the n-th call from now fails with this error number (1 is the next); with
 * forever, so do all after it. n = 0 ends this. */
void embla_io_fail(size_t n, bool forever, int error);
/* For tests: reads and writes move at most this many bytes at a time; 0: no limit. */
void embla_io_short(size_t bytes);
/* For tests: descriptors and maps handed out and not given back. */
size_t embla_io_live(void);

#endif
