/* SPDX-License-Identifier: Apache-2.0 */
/* WebAssembly with the system interface WASI: files, and the process. A host gives the module some
 * folders, in which it opens files. There are no locks, no users, no permissions and one process.
 */
#include "system/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

enum { PLACEHOLDER = 1 << 30 };

int embla_posix_search_flag(void)
{
    return O_RDONLY;
}

struct timespec embla_posix_changed(const struct stat *found)
{
    return found->st_mtim;
}

/* ---- files ---- */

/* Some hosts (node) open no name that ends in a slash, and follow a link in any case. What is above
 * an open folder is not there for a program. */
int embla_posix_open(int folder, const char *name, int flags, mode_t mode)
{
    enum { LONGEST = 4096 };
    char plain[LONGEST];
    struct stat found;
    size_t length = strlen(name);
    if (length > 1 && length < LONGEST && name[length - 1] == '/') {
        while (length > 1 && name[length - 1] == '/') length--;
        memcpy(plain, name, length);
        plain[length] = '\0';
        name = plain;
        flags |= O_DIRECTORY;
    }
    if ((flags & O_NOFOLLOW) != 0 && fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 &&
        S_ISLNK(found.st_mode)) {
        errno = ELOOP;
        return -1;
    }
    int file = openat(folder, name, flags, mode);
    if (file < 0 && errno == ENOTCAPABLE && folder != AT_FDCWD) errno = ENOENT;
    return file;
}

embla_outcome embla_system_close(embla_handle file)
{
    return embla_posix_ended(file >= PLACEHOLDER ? 0 : close((int)file));
}

/* A handle cannot be duplicated. The second one only keeps a lock, and there are no locks: so it is
 * a number that the function above accepts. */
embla_outcome embla_system_again(embla_handle file, embla_handle *out)
{
    *out = file + PLACEHOLDER;
    return embla_posix_ended(0);
}

embla_outcome embla_system_direct(embla_handle file, embla_handle *out)
{
    (void)file;
    *out = EMBLA_NO_FILE;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

void embla_system_forget(embla_handle file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
}

embla_outcome embla_system_allocate(embla_handle file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

/* The host decides who may read the files that a module writes. */
embla_outcome embla_system_set_mode(embla_handle file, unsigned mode)
{
    (void)file, (void)mode;
    return embla_posix_ended(0);
}

/* A folder is open for its names only: some hosts do not sync it, and nothing is lost by that which
 * the host would not lose anyway. */
embla_outcome embla_system_sync(embla_handle file)
{
    struct stat found;
    if (fsync((int)file) == 0) return embla_posix_ended(0);
    embla_outcome done = embla_posix_failed();
    bool folder = fstat((int)file, &found) == 0 && S_ISDIR(found.st_mode);
    return folder ? embla_posix_ended(0) : done;
}

embla_outcome embla_system_space(embla_handle file, uint64_t *out)
{
    (void)file;
    *out = 0;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

size_t embla_system_path(embla_handle file, char *out, size_t size)
{
    (void)file, (void)out, (void)size;
    return 0;
}

embla_outcome embla_system_rename(embla_folder folder, const char *from, const char *to,
                                  bool replace)
{
    int at = embla_posix_folder(folder);
    if (!replace) return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
    return embla_posix_ended(renameat(at, from, at, to));
}

/* ---- locks ---- */

embla_outcome embla_system_lock(embla_handle file, embla_lock_kind kind)
{
    (void)file, (void)kind;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

void embla_system_unlock(embla_handle file)
{
    (void)file;
}

bool embla_system_lock_holder(embla_handle file, long *process, unsigned *user)
{
    (void)file, (void)process, (void)user;
    return false;
}

/* ---- an event for loops ---- */

embla_outcome embla_system_event(embla_handle *out)
{
    *out = EMBLA_NO_FILE;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

embla_outcome embla_system_signal(embla_handle event)
{
    (void)event;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

/* ---- the process ---- */

long embla_system_process(void)
{
    return 1;
}

/* The owner that all files have. */
unsigned embla_system_user(void)
{
    return 0;
}

bool embla_system_random(void *out, size_t bytes)
{
    return getentropy(out, bytes) == 0;
}

void embla_system_sleep(int64_t nanoseconds)
{
    const struct timespec time = {.tv_sec = nanoseconds / 1000000000,
                                  .tv_nsec = (long)(nanoseconds % 1000000000)};
    (void)nanosleep(&time, NULL);
}

int64_t embla_system_clock(void)
{
    struct timespec now = {0};
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (int64_t)now.tv_sec * 1000000000 + now.tv_nsec;
}

const char *embla_system_memory_folder(void)
{
    return NULL;
}
