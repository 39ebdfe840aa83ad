/* SPDX-License-Identifier: Apache-2.0 */
/* macOS. A sync of a file only orders it before what is written later; that of the folder, which
 * follows a rename, reaches the medium. Direct reads are reads that the cache does not keep. There
 * is no event for loops, no folder in memory and no io_uring. */
#include "system/system_memory.h"
#include "system/system_threads.h"

#include "system/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <limits.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/param.h>
#include <sys/random.h>
#include <unistd.h>

int embla_posix_search_flag(void)
{
    return O_RDONLY;
}

struct timespec embla_posix_changed(const struct stat *found)
{
    return found->st_mtimespec;
}

/* ---- files ---- */

size_t embla_system_path(embla_handle file, char *out, size_t size)
{
    char path[MAXPATHLEN];
    if (fcntl((int)file, F_GETPATH, path) != 0) return 0;
    int length = snprintf(out, size, "%s", path);
    return length > 0 && (size_t)length < size ? (size_t)length : 0;
}

/* A second open file, because not to cache belongs to all handles of one. Its name may belong to
 * another file by now. */
embla_outcome embla_system_direct(embla_handle file, embla_handle *out)
{
    char path[MAXPATHLEN];
    embla_file_facts theirs, ours;
    if (embla_system_path(file, path, sizeof path) == 0) return embla_posix_failed();
    int fd = open(path, O_RDONLY | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return embla_posix_failed();
    if (embla_worked(embla_system_facts(file, &theirs)) &&
        embla_worked(embla_system_facts(fd, &ours)) && embla_same_file(theirs.id, ours.id) &&
        fcntl(fd, F_NOCACHE, 1) == 0) {
        *out = fd;
        return embla_posix_ended(0);
    }
    (void)close(fd);
    return embla_system_outcome(EMBLA_SYSTEM_NOT_FOUND);
}

void embla_system_forget(embla_handle file, uint64_t offset, uint64_t bytes)
{
    (void)file, (void)offset, (void)bytes;
}

/* Gives holes their space by writing the zeros that they hold. Nobody else may write there. */
static embla_outcome fill_holes(int file, off_t at, off_t end)
{
    static const char zeros[1 << 14];
    char held[sizeof zeros];
    while (at < end) {
        size_t want = end - at < (off_t)sizeof held ? (size_t)(end - at) : sizeof held;
        ssize_t got = pread(file, held, want, at);
        if (got < 0) return embla_posix_failed();
        if (got == 0) break;
        if (memcmp(held, zeros, (size_t)got) == 0 && pwrite(file, zeros, (size_t)got, at) != got)
            return embla_posix_failed();
        at += got;
    }
    return embla_posix_ended(0);
}

/* The system itself can only claim space beyond the end. */
embla_outcome embla_system_allocate(embla_handle file, uint64_t offset, uint64_t bytes)
{
    struct stat found;
    if (fstat((int)file, &found) != 0) return embla_posix_failed();
    off_t end = (off_t)(offset + bytes);
    if (end <= found.st_size) return fill_holes((int)file, (off_t)offset, end);
    fstore_t store = {.fst_flags = F_ALLOCATEALL,
                      .fst_posmode = F_PEOFPOSMODE,
                      .fst_length = end - found.st_size};
    if (fcntl((int)file, F_PREALLOCATE, &store) != 0) return embla_posix_failed();
    return embla_posix_ended(ftruncate((int)file, end));
}

embla_outcome embla_system_sync(embla_handle file)
{
    struct stat found;
    bool folder = fstat((int)file, &found) == 0 && S_ISDIR(found.st_mode);
    if (fcntl((int)file, folder ? F_FULLFSYNC : F_BARRIERFSYNC) == 0) return embla_posix_ended(0);
    return embla_posix_ended(fsync((int)file)); /* file systems that know neither */
}

embla_outcome embla_system_rename(embla_folder folder, const char *from, const char *to,
                                  bool replace)
{
    int at = embla_posix_folder(folder);
    return embla_posix_ended(replace ? renameat(at, from, at, to)
                                     : renameatx_np(at, from, at, to, RENAME_EXCL));
}

bool embla_system_lock_holder(embla_handle file, long *process, unsigned *user)
{
    (void)file, (void)process, (void)user;
    return false;
}

/* ---- memory ---- */

size_t embla_system_huge_page(void)
{
    return 0;
}

void *embla_system_take(size_t bytes)
{
    void *memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANON, -1, 0);
    return memory == MAP_FAILED ? NULL : memory;
}

void embla_system_small_pages(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

int64_t embla_system_huge_bytes(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return -1;
}

embla_outcome embla_system_map(embla_handle file, size_t bytes, embla_map_kind kind, void **out)
{
    int protection = kind == EMBLA_MAP_READ ? PROT_READ : PROT_READ | PROT_WRITE;
    int flags = kind == EMBLA_MAP_PRIVATE ? MAP_PRIVATE : MAP_SHARED;
    void *memory = mmap(NULL, bytes, protection, flags, (int)file, 0);
    if (memory == MAP_FAILED) return embla_posix_failed();
    *out = memory;
    return embla_posix_ended(0);
}

embla_outcome embla_system_resident(void *memory, size_t bytes, unsigned char *flags)
{
    return embla_posix_ended(mincore(memory, bytes, (char *)flags));
}

bool embla_system_huge_shared(void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
    return false;
}

void embla_system_touch_huge(const void *memory, size_t bytes)
{
    (void)memory, (void)bytes;
}

/* ---- threads ---- */

void embla_system_name_thread(const char *name)
{
    (void)pthread_setname_np(name);
}

int embla_system_cpus(void)
{
    long all = sysconf(_SC_NPROCESSORS_ONLN);
    return all > 0 && all < INT_MAX ? (int)all : 1;
}

/* All words share one mutex and one condition: slower if many threads sleep, but without private
 * interfaces of the system. */
static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;

void embla_system_wait(atomic_uint *word, unsigned seen)
{
    (void)pthread_mutex_lock(&lock);
    while (atomic_load(word) == seen) (void)pthread_cond_wait(&changed, &lock);
    (void)pthread_mutex_unlock(&lock);
}

/* The word has changed before the lock is taken, so a thread either sees the change or already
 * waits. All wake, because they may wait for different words. */
void embla_system_wake(atomic_uint *word, int count)
{
    (void)word, (void)count;
    (void)pthread_mutex_lock(&lock);
    (void)pthread_cond_broadcast(&changed);
    (void)pthread_mutex_unlock(&lock);
}

/* ---- the process ---- */

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

bool embla_system_random(void *out, size_t bytes)
{
    return getentropy(out, bytes) == 0;
}

const char *embla_system_memory_folder(void)
{
    return NULL;
}
