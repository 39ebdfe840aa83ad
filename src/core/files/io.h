/* SPDX-License-Identifier: Apache-2.0 */
/* Every file call of the library goes through this header. Each function reports a failure
 * with a message, and a test can make any of them fail, once or from then on.
 *
 * name is the file's name in messages. Calls that a signal interrupts are repeated. What a file is
 * opened for, and what is known of it, has the words of system/system.h.
 */
#ifndef EMBLA_FILES_IO_H
#define EMBLA_FILES_IO_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "system/system.h"

/* Opens name relative to folder; EMBLA_HERE means the current folder. EMBLA_ERR_NOT_FOUND if
 * there is no such file, EMBLA_ERR_IO for any other error. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_open(embla_folder folder, const char *name,
                                                       unsigned intents, unsigned mode,
                                                       embla_handle *out);
/* Opens a folder, to list it and to open its files. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_open_folder(const char *path, embla_folder *out);
/* See embla_system_slash. */
EMBLA_PRIVATE const char *embla_io_slash(const char *path);
/* The same as embla_io_open, but messages call the file `shown`. */
EMBLA_CHECKED embla_status embla_io_open_as(embla_folder folder, const char *name,
                                            const char *shown, unsigned intents, unsigned mode,
                                            embla_handle *out);
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_facts(embla_handle file, const char *name,
                                                        embla_file_facts *out);
/* The same for a name, which need not be readable; for a link itself if follow is false. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_facts_at(embla_folder folder, const char *name,
                                                           bool follow, embla_file_facts *out);
/* Reads up to `bytes` bytes from offset. *got is smaller only if the file ends before that. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_pread(embla_handle file, const char *name,
                                                        uint64_t offset, size_t bytes, void *out,
                                                        size_t *got);
/* Opens a file a second time, for reads that bypass the page cache. Returns EMBLA_NO_FILE if the
 * system does not support that; this is not an error. */
embla_handle embla_io_direct(embla_handle file);
enum { EMBLA_DIRECT = 4096 }; /* alignment of the offset, size and memory of such a read */
/* embla_io_pread for such a handle. Fails if the file system rejects direct reads. */
EMBLA_CHECKED embla_status embla_io_pread_direct(embla_handle file, const char *name,
                                                 uint64_t offset, size_t bytes, void *out,
                                                 size_t *got);
/* Creates an event for loops (an eventfd on Linux), and adds 1 to the count of one. */
EMBLA_CHECKED embla_status embla_io_event(embla_handle *out);
void embla_io_signal(embla_handle event);
/* Tells the system that these bytes will not be read again, so the page cache may drop them.
 * Never fails. */
void embla_io_forget(embla_handle file, uint64_t offset, uint64_t bytes);
/* Writes all count bytes. */
EMBLA_CHECKED embla_status embla_io_write(embla_handle file, const char *name, const void *bytes,
                                          size_t count);
/* Reserves the space a file will need, so that a full disk is noticed before anything is
 * written. It is not an error if the file system cannot reserve space. */
EMBLA_CHECKED embla_status embla_io_reserve(embla_handle file, const char *name, uint64_t bytes);
/* Sets the file's length to size. */
EMBLA_CHECKED embla_status embla_io_cut(embla_handle file, const char *name, uint64_t size);
/* Sets the file's mode to that of the file `old` in the folder, which it will replace, without
 * the setuid and setgid bits. If there is no such file: the mode of a new file. To find it, an
 * empty file with the name `probe` is created in the folder and removed. */
EMBLA_CHECKED embla_status embla_io_mode(embla_handle file, const char *name, embla_folder folder,
                                         const char *old, const char *probe);
/* Locks a file that was just created, for as long as *keeper is open. *keeper is a second
 * handle of the file, so the first one can be closed, and its close checked, without
 * releasing the lock. *keeper is -1 if another process took the file for a leftover and removed
 * it; the caller then creates another file. It is not an error if the file system has no locks;
 * there embla_io_sweep removes nothing. */
EMBLA_CHECKED embla_status embla_io_lock(embla_handle file, const char *name, embla_handle *keeper);
EMBLA_CHECKED embla_status embla_io_sync(embla_handle file, const char *name);
/* Closes a file. It is closed even if this fails. */
EMBLA_CHECKED embla_status embla_io_close(embla_handle file, const char *name);
/* The same for a file that was only read, where a failure loses nothing. */
EMBLA_PRIVATE void embla_io_drop(embla_handle file);
/* Renames a file; messages call it `shown`. If replace is false, an existing file of that name
 * is EMBLA_ERR_ARGUMENT; if several processes try at once, exactly one succeeds. */
EMBLA_CHECKED embla_status embla_io_rename(embla_folder folder, const char *from, const char *to,
                                           const char *shown, bool replace);
/* Removes a file. Failure is not reported: the caller could do nothing about it. */
EMBLA_PRIVATE void embla_io_remove(embla_folder folder, const char *name);
/* Removes an empty folder. Never fails either. */
EMBLA_PRIVATE void embla_io_remove_folder(embla_folder folder, const char *name);
/* Removes a regular file that nobody has locked with embla_io_lock or embla_io_lock_shared. Returns
 * whether nobody had. Never fails either. */
bool embla_io_sweep(embla_folder folder, const char *name);
/* Maps the whole file read-only. */
EMBLA_CHECKED embla_status embla_io_map(embla_handle file, const char *name, size_t bytes,
                                        void **out);
/* The same, but the memory may be written to. Only this process sees what is written. */
EMBLA_CHECKED embla_status embla_io_map_private(embla_handle file, const char *name, size_t bytes,
                                                void **out);
EMBLA_PRIVATE void embla_io_unmap(void *memory, size_t bytes);
/* Tells the system that this part of a map is read in random order, so it does not read ahead. */
EMBLA_CHECKED embla_status embla_io_random(const void *memory, size_t bytes, const char *name);
/* Counts how many of these bytes of a map are in the page cache; -1 if the system does not tell. */
EMBLA_CHECKED embla_status embla_io_resident(const void *memory, size_t bytes, const char *name,
                                             int64_t *out);

/* Creates a folder and syncs its name to the disk. An existing folder is not an error. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_folder(const char *path);

/* Whether this user may read a file of the folder. False also if there is none, or if links lead
 * nowhere. */
EMBLA_PRIVATE bool embla_io_readable(embla_folder folder, const char *name);

/* Writes the target of a symbolic link to out, with a 0 after it, and returns its length. Returns
 * 0 if name is not a link, or if the target does not fit. */
size_t embla_io_link(embla_folder folder, const char *name, char *out, size_t size);
/* Writes the path of an open file to out and returns its length; 0 if the system does not tell. */
size_t embla_io_path(embla_handle file, char *out, size_t size);

/* Calls each() for every entry of a folder except "." and "..", in the system's order, until
 * each() fails. Messages call the folder `name`. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_list(embla_folder folder, const char *name,
                                                       embla_status (*each)(void *context,
                                                                            const char *entry),
                                                       void *context);

/* ---- one copy for many processes (store/shared.c) ---- */

/* Tries to lock a file; *got is false if another process holds the lock. The lock ends with
 * embla_io_unlock, or when the last handle of that open file is closed, also if the process
 * dies. EMBLA_ERR_IO also if the file system has no locks. */
EMBLA_CHECKED embla_status embla_io_lock_try(embla_handle file, const char *name, bool *got);
/* Marks an open file as used until it is closed, also if the process dies. Several processes may do
 * so. Returns false if another process holds the lock now. Does nothing if there are no locks. */
bool embla_io_lock_shared(embla_handle file);
/* Finds which process holds the lock of an open file, and its user. Returns false if the system
 * does not tell: without /proc, or if the process is in another container. */
bool embla_io_lock_holder(embla_handle file, long *process, unsigned *user);
/* Whether a name of the folder belongs to another user. A link belongs to who made it. */
bool embla_io_is_foreign(embla_folder folder, const char *name);
/* Releases the lock, even if a forked child also has the file, and closes it. */
void embla_io_unlock(embla_handle file);
/* Allocates the space of `bytes` bytes from offset, or fails. Afterwards a write to them through
 * a map cannot raise SIGBUS. */
EMBLA_CHECKED embla_status embla_io_claim(embla_handle file, const char *name, uint64_t offset,
                                          uint64_t bytes);
/* Finds how many bytes are free on the file system of an open file. */
EMBLA_CHECKED embla_status embla_io_space(embla_handle file, const char *name, uint64_t *out);
/* Maps the whole file for reading and writing, aligned to 2 MiB. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_io_map_shared(embla_handle file, const char *name,
                                                             size_t bytes, void **out);
/* Backs such a map with huge pages before it is written to; memory and bytes are multiples of
 * 2 MiB. Raises no signal. Returns false if the system does not grant huge pages, or if there is
 * no more space. */
bool embla_io_huge_shared(void *memory, size_t bytes);
/* Maps one page of each 2 MiB; a huge page is mapped whole that way. The system's count of huge
 * pages includes only mapped ones. Raises no signal. */
void embla_io_touch_huge(const void *memory, size_t bytes);
/* Removes the file's name. Processes that have the file open can still use it. */
EMBLA_CHECKED embla_status embla_io_erase(embla_folder folder, const char *name, const char *shown);

/* For tests: the n-th call from now fails with this error; 1 is the next call. If forever
 * is true, all later calls fail, too. n = 0 switches this off. */
void embla_io_fail(size_t n, bool forever, embla_system_error error);
/* For tests: reads and writes transfer at most this many bytes per call; 0 means no limit. */
void embla_io_short(size_t bytes);
/* For tests: the number of handles and maps that are open. */
size_t embla_io_live(void);

/* What files/ring.c shares with these tests. embla_io_must_fail returns true, with its outcome, if
 * this call has to fail. embla_io_at_most is the number of bytes that a transfer of `bytes` bytes
 * may have. embla_io_count counts handles that it has opened; embla_io_drop closes them. */
bool embla_io_must_fail(embla_outcome *out);
size_t embla_io_at_most(size_t bytes);
void embla_io_count(size_t opened);

#endif
