/* SPDX-License-Identifier: Apache-2.0 */
/* What Linux and macOS share beyond posix_files.c: owners, locks, memory and the process. */
#include "system/system_memory.h"

#include "system/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <sys/statvfs.h>
#include <time.h>
#include <unistd.h>

/* ---- files ---- */

int embla_posix_open(int folder, const char *name, int flags, mode_t mode)
{
    return openat(folder, name, flags, mode);
}

/* Not repeated after EINTR: the descriptor is closed even then. */
embla_outcome embla_system_close(embla_handle file)
{
    return embla_posix_ended(close((int)file));
}

embla_outcome embla_system_again(embla_handle file, embla_handle *out)
{
    int fd = fcntl((int)file, F_DUPFD_CLOEXEC, 0);
    if (fd < 0) return embla_posix_failed();
    *out = fd;
    return embla_posix_ended(0);
}

embla_outcome embla_system_set_mode(embla_handle file, unsigned mode)
{
    return embla_posix_ended(fchmod((int)file, (mode_t)mode));
}

embla_outcome embla_system_space(embla_handle file, uint64_t *out)
{
    struct statvfs found;
    if (fstatvfs((int)file, &found) != 0) return embla_posix_failed();
    uint64_t unit = found.f_frsize > 0 ? found.f_frsize : found.f_bsize;
    *out = found.f_bavail > UINT64_MAX / unit ? UINT64_MAX : found.f_bavail * unit;
    return embla_posix_ended(0);
}

embla_outcome embla_system_lock(embla_handle file, embla_lock_kind kind)
{
    int how = kind == EMBLA_LOCK_SHARED ? LOCK_SH : LOCK_EX;
    embla_outcome done = embla_posix_ended(flock((int)file, how | LOCK_NB));
    if (done.number == ENOLCK || done.number == EINVAL) done.error = EMBLA_SYSTEM_UNSUPPORTED;
    return done;
}

void embla_system_unlock(embla_handle file)
{
    (void)flock((int)file, LOCK_UN);
}

/* ---- memory ---- */

size_t embla_system_page(void)
{
    return (size_t)sysconf(_SC_PAGESIZE);
}

void embla_system_give(void *memory, size_t bytes)
{
    (void)munmap(memory, bytes);
}

void *embla_system_take_block(size_t alignment, size_t bytes)
{
    return aligned_alloc(alignment, bytes);
}

void embla_system_give_block(void *block)
{
    free(block);
}

bool embla_system_is_limited(void)
{
    struct rlimit space, data;
    return (getrlimit(RLIMIT_AS, &space) == 0 && space.rlim_cur != RLIM_INFINITY) ||
           (getrlimit(RLIMIT_DATA, &data) == 0 && data.rlim_cur != RLIM_INFINITY);
}

void embla_system_unmap(void *memory, size_t bytes)
{
    (void)munmap(memory, bytes);
}

embla_outcome embla_system_random_order(void *memory, size_t bytes)
{
    return embla_posix_ended(madvise(memory, bytes, MADV_RANDOM));
}

/* ---- the process ---- */

long embla_system_process(void)
{
    return (long)getpid();
}

unsigned embla_system_user(void)
{
    return (unsigned)geteuid();
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
