/* SPDX-License-Identifier: Apache-2.0 */
/* The system's file calls behind one countdown: a test says which call fails, and every
 * caller can be seen to survive it.
 */
#include "files/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "base/checked.h"

#ifndef MADV_COLLAPSE /* Linux 5.14 and 6.1; what an older one does not know, it refuses */
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = 4096, HUGE = 2 << 20 };

static atomic_size_t live;
static atomic_size_t countdown; /* 0: off; n: the n-th call from now fails */
static atomic_bool keep_failing;
static atomic_int failing_with;
static atomic_size_t most_at_once; /* 0: no limit */

void embla_io_fail(size_t n, bool forever, int error)
{
    atomic_store(&failing_with, error);
    atomic_store(&keep_failing, forever);
    atomic_store(&countdown, n);
}

void embla_io_short(size_t bytes)
{
    atomic_store(&most_at_once, bytes);
}

size_t embla_io_live(void)
{
    return atomic_load(&live);
}

/* True, with errno set, where a test wants this call to fail. */
static bool told_to_fail(void)
{
    size_t n = atomic_load(&countdown);
    do { /* threads count together: each call counts once */
        if (n == 0) return false;
        if (n == 1 && atomic_load(&keep_failing)) break;
    } while (!atomic_compare_exchange_weak(&countdown, &n, n - 1));
    if (n > 1) return false;
    errno = atomic_load(&failing_with);
    return true;
}

static size_t at_once(size_t bytes)
{
    size_t most = atomic_load(&most_at_once);
    if (most == 0 || most > (size_t)1 << 30) most = (size_t)1 << 30; /* Linux moves no more */
    return bytes < most ? bytes : most;
}

/* The status of a call that failed with errno. */
static embla_status refused(const char *what, const char *name)
{
    int error = errno;
    char text[128] = "";
    const char *why = strerror_r(error, text, sizeof text);
    embla_status status = error == ENOENT || error == ENOTDIR ? EMBLA_ERR_NOT_FOUND : EMBLA_ERR_IO;
    if (error == ENOMEM) status = EMBLA_ERR_MEMORY;
    return embla_fail(status, "%.256s: cannot %s: %s", name, what, why);
}

embla_status embla_io_open(int folder, const char *name, int flags, unsigned mode, int *out)
{
    return embla_io_open_as(folder, name, name, flags, mode, out);
}

embla_status embla_io_open_as(int folder, const char *name, const char *shown, int flags,
                              unsigned mode, int *out)
{
    int fd = -1;
    do fd = told_to_fail() ? -1 : openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        if (errno == ELOOP) return embla_fail(EMBLA_ERR_IO, "%.256s is a symbolic link", shown);
        return refused(flags & O_CREAT ? "make it" : "open it", shown);
    }
    atomic_fetch_add(&live, 1);
    *out = fd;
    return EMBLA_OK;
}

embla_status embla_io_stat(int fd, const char *name, struct stat *out)
{
    struct stat found;
    if (told_to_fail() || fstat(fd, &found) != 0) return refused("ask for its size", name);
    *out = found;
    return EMBLA_OK;
}

embla_status embla_io_pread(int fd, const char *name, uint64_t offset, size_t bytes, void *out,
                            size_t *got)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = told_to_fail() ? -1
                                   : pread(fd, (char *)out + done, at_once(bytes - done),
                                           (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("read it", name);
        if (n == 0) break;
        done += (size_t)n;
    }
    *got = done;
    return EMBLA_OK;
}

/* By what the system calls the descriptor: a second look for the name could find another file. */
int embla_io_direct(int fd)
{
    char name[64];
    int direct = -1;
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    do direct = told_to_fail() ? -1 : open(name, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY);
    while (direct < 0 && errno == EINTR);
    if (direct >= 0) atomic_fetch_add(&live, 1);
    return direct;
}

embla_status embla_io_pread_direct(int fd, const char *name, uint64_t offset, size_t bytes,
                                   void *out, size_t *got)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = told_to_fail() ? -1
                                   : pread(fd, (char *)out + done, at_once(bytes - done),
                                           (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("read it", name);
        done += (size_t)n;
        if (n == 0 || n % EMBLA_DIRECT != 0) break; /* the file ends: what is odd cannot go on */
    }
    *got = done;
    return EMBLA_OK;
}

void embla_io_forget(int fd, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

embla_status embla_io_write(int fd, const char *name, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t n =
            told_to_fail() ? -1 : write(fd, (const char *)bytes + done, at_once(count - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("write it", name);
        done += (size_t)n;
    }
    return EMBLA_OK;
}

/* Takes the space of a part of a file; with lenient, a file system that cannot is no error. */
static embla_status allocate(int fd, const char *name, uint64_t offset, uint64_t bytes,
                             bool lenient)
{
    int error;
    if (bytes > (uint64_t)INT64_MAX || offset > (uint64_t)INT64_MAX - bytes)
        return embla_fail(EMBLA_ERR_IO, "%.256s: no file can have %" PRIu64 " bytes", name, bytes);
    do error = told_to_fail() ? errno : posix_fallocate(fd, (off_t)offset, (off_t)bytes);
    while (error == EINTR);
    if (error == 0 || (lenient && (error == EOPNOTSUPP || error == EINVAL))) return EMBLA_OK;
    errno = error;
    char what[64];
    (void)snprintf(what, sizeof what, "reserve %" PRIu64 " bytes for it", bytes);
    return refused(what, name);
}

embla_status embla_io_reserve(int fd, const char *name, uint64_t bytes)
{
    return allocate(fd, name, 0, bytes, true);
}

embla_status embla_io_cut(int fd, const char *name, uint64_t size)
{
    if (told_to_fail() || ftruncate(fd, (off_t)size) != 0) return refused("set its length", name);
    return EMBLA_OK;
}

/* That of any new file. umask can only be asked for by setting it, which other threads would
 * see; so the system's own account of this process is read. */
static mode_t new_mode(void)
{
    unsigned mask = 022;
    FILE *status = fopen("/proc/self/status", "re");
    char line[128];
    while (status && fgets(line, sizeof line, status))
        if (sscanf(line, "Umask: %o", &mask) == 1) break;
    if (status) (void)fclose(status);
    return 0666 & ~(mode_t)mask;
}

embla_status embla_io_mode(int fd, const char *name, int folder, const char *old)
{
    struct stat found;
    bool told = told_to_fail();
    bool there = !told && fstatat(folder, old, &found, AT_SYMLINK_NOFOLLOW) == 0;
    /* Not to know it is to fail: a file for few must not become one for all. */
    if (told || (!there && errno != ENOENT)) return refused("set its mode", name);
    mode_t mode = there && S_ISREG(found.st_mode) ? found.st_mode & 01777 : new_mode();
    return fchmod(fd, mode) == 0 ? EMBLA_OK : refused("set its mode", name);
}

embla_status embla_io_lock(int fd, const char *name, int *keeper)
{
    struct stat found;
    int result = -1;
    do result = told_to_fail() ? -1 : flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    bool no_locks = errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS;
    *keeper = -1;
    if (result != 0 && errno == EWOULDBLOCK) return EMBLA_OK; /* it is being swept */
    if (result != 0 && !no_locks) return refused("lock it", name);
    if (fstat(fd, &found) != 0) return refused("lock it", name);
    if (found.st_nlink == 0) return EMBLA_OK; /* it has been */
    *keeper = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (*keeper < 0) return refused("lock it", name);
    atomic_fetch_add(&live, 1);
    return EMBLA_OK;
}

embla_status embla_io_sync(int fd, const char *name)
{
    /* Never again after a failure: the system may have forgotten the pages (fsyncgate). */
    if (told_to_fail() || fsync(fd) != 0) return refused("bring it to the disk", name);
    return EMBLA_OK;
}

embla_status embla_io_close(int fd, const char *name)
{
    bool told = told_to_fail();
    int error = errno;
    int result = close(fd); /* not again where interrupted: on Linux it is closed */
    atomic_fetch_sub(&live, 1);
    if (told) {
        errno = error;
        return refused("close it", name);
    }
    return result == 0 || errno == EINTR ? EMBLA_OK : refused("close it", name);
}

void embla_io_drop(int fd)
{
    (void)close(fd);
    atomic_fetch_sub(&live, 1);
}

/* 0, or -1 with errno. A file system without RENAME_NOREPLACE has links instead: to make one
 * fails where the name is taken. */
static int rename_new(int folder, const char *from, const char *to)
{
    if (renameat2(folder, from, folder, to, RENAME_NOREPLACE) == 0) return 0;
    if (errno != EINVAL && errno != ENOSYS) return -1;
    if (linkat(folder, from, folder, to, 0) != 0) return -1;
    embla_io_remove(folder, from);
    return 0;
}

embla_status embla_io_rename(int folder, const char *from, const char *to, const char *shown,
                             bool replace)
{
    int result = told_to_fail() ? -1
                 : replace      ? renameat(folder, from, folder, to)
                                : rename_new(folder, from, to);
    if (result == 0) return EMBLA_OK;
    if (!replace && errno == EEXIST) return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s exists", shown);
    return refused("give it its name", shown);
}

void embla_io_remove(int folder, const char *name)
{
    (void)unlinkat(folder, name, 0);
}

void embla_io_sweep(int folder, const char *name)
{
    struct stat found;
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = openat(folder, name, flags);
    if (fd < 0) return;
    /* Removed while the lock is held: whoever made it just now, and locks it after us, finds
     * that it is gone. */
    if (fstat(fd, &found) == 0 && S_ISREG(found.st_mode) && flock(fd, LOCK_EX | LOCK_NB) == 0)
        embla_io_remove(folder, name);
    (void)close(fd);
}

/* An address on a boundary of 2 MiB with this much room; NULL: the system may choose. It is only
 * a hint: another thread may be faster. */
static void *roomy(size_t bytes)
{
    if (bytes < HUGE || bytes > SIZE_MAX - HUGE) return NULL;
    void *room = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (room == MAP_FAILED) return NULL;
    (void)munmap(room, bytes + HUGE);
    return (void *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
}

embla_status embla_io_map(int fd, const char *name, size_t bytes, void **out)
{
    void *memory =
        told_to_fail() ? MAP_FAILED : mmap(roomy(bytes), bytes, PROT_READ, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return refused("map it", name);
    atomic_fetch_add(&live, 1);
    *out = memory;
    return EMBLA_OK;
}

void embla_io_unmap(void *memory, size_t bytes)
{
    (void)munmap(memory, bytes);
    atomic_fetch_sub(&live, 1);
}

/* The pages that hold these bytes: their start and length. */
static char *pages_of(const void *memory, size_t bytes, size_t *length, size_t *page)
{
    *page = (size_t)sysconf(_SC_PAGESIZE);
    size_t front = (uintptr_t)memory % *page;
    *length = (front + bytes + *page - 1) / *page * *page;
    return (char *)(uintptr_t)memory - front;
}

embla_status embla_io_random(const void *memory, size_t bytes, const char *name)
{
    size_t length, page;
    char *start = pages_of(memory, bytes, &length, &page);
    if (told_to_fail() || madvise(start, length, MADV_RANDOM) != 0)
        return refused("advise the system how it is read", name);
    return EMBLA_OK;
}

embla_status embla_io_resident(const void *memory, size_t bytes, const char *name, uint64_t *out)
{
    unsigned char flags[4096]; /* one for each page: 16 MiB at a time */
    size_t length, page;
    char *start = pages_of(memory, bytes, &length, &page);
    const char *first = memory, *end = first + bytes;
    uint64_t found = 0;
    for (size_t at = 0; at < length; at += sizeof flags * page) {
        size_t piece = length - at < sizeof flags * page ? length - at : sizeof flags * page;
        if (told_to_fail() || mincore(start + at, piece, flags) != 0)
            return refused("ask what the page cache has of it", name);
        for (size_t i = 0; i < piece / page; i++) {
            const char *low = start + at + i * page, *high = low + page;
            if (!(flags[i] & 1)) continue;
            found += (size_t)((high < end ? high : end) - (low > first ? low : first));
        }
    }
    *out = found;
    return EMBLA_OK;
}

/* Brings the folder that a path lies in to the disk. */
static embla_status sync_above(const char *path)
{
    char above[4096] = ".";
    int fd = -1;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    if (length >= sizeof above) return EMBLA_OK; /* no path that the system took is so long */
    if (length > 0) (void)snprintf(above, sizeof above, "%.*s", (int)length, path);
    EMBLA_TRY(embla_io_open(AT_FDCWD, above, O_RDONLY | O_DIRECTORY, 0, &fd));
    embla_status status = embla_io_sync(fd, above);
    embla_io_drop(fd);
    return status;
}

embla_status embla_io_folder(const char *path)
{
    if (told_to_fail() || mkdir(path, 0777) != 0)
        return errno == EEXIST ? EMBLA_OK : refused("make the folder", path);
    return sync_above(path);
}

size_t embla_io_link(int folder, const char *name, char *out, size_t size)
{
    ssize_t length = told_to_fail() ? -1 : readlinkat(folder, name, out, size);
    if (length < 0 || (size_t)length >= size) return 0;
    out[length] = '\0';
    return (size_t)length;
}

embla_status embla_io_list(int folder, const char *name,
                           embla_status (*each)(void *context, const char *entry), void *context)
{
    embla_status status = EMBLA_OK;
    int fd = -1;
    EMBLA_TRY(embla_io_open_as(folder, ".", name, O_RDONLY | O_DIRECTORY, 0, &fd));
    DIR *dir = told_to_fail() ? NULL : fdopendir(fd);
    if (!dir) {
        status = refused("list it", name);
        embla_io_drop(fd);
        return status;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = told_to_fail() ? NULL : readdir(dir);
        if (!entry && errno != 0) status = refused("list it", name);
        if (!entry || status != EMBLA_OK) break;
        if (strcmp(entry->d_name, ".") == 0 || strcmp(entry->d_name, "..") == 0) continue;
        if ((status = each(context, entry->d_name)) != EMBLA_OK) break;
    }
    (void)closedir(dir);
    atomic_fetch_sub(&live, 1);
    return status;
}

/* ---- one copy for many processes (store/shared.c) ---- */

embla_status embla_io_lock_try(int fd, const char *name, bool *got)
{
    int result = -1;
    do result = told_to_fail() ? -1 : flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EWOULDBLOCK) return refused("lock it", name);
    *got = result == 0;
    return EMBLA_OK;
}

void embla_io_unlock(int fd)
{
    (void)flock(fd, LOCK_UN);
    embla_io_drop(fd);
}

embla_status embla_io_claim(int fd, const char *name, uint64_t offset, uint64_t bytes)
{
    return allocate(fd, name, offset, bytes, false);
}

embla_status embla_io_space(int fd, const char *name, uint64_t *out)
{
    struct statvfs found;
    if (told_to_fail() || fstatvfs(fd, &found) != 0) return refused("ask for free space", name);
    uint64_t unit = found.f_frsize > 0 ? found.f_frsize : found.f_bsize;
    if (!embla_mul_ok(found.f_bavail, unit, out)) *out = UINT64_MAX;
    return EMBLA_OK;
}

embla_status embla_io_map_shared(int fd, const char *name, size_t bytes, void **out)
{
    void *memory = told_to_fail()
                       ? MAP_FAILED
                       : mmap(roomy(bytes), bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);
    if (memory == MAP_FAILED) return refused("map it", name);
    atomic_fetch_add(&live, 1);
    *out = memory;
    return EMBLA_OK;
}

/* Asking for huge pages by MADV_HUGEPAGE alone is not enough: most systems grant none to files in
 * memory that way. MADV_COLLAPSE is granted, but not of nothing: hence one page of each first,
 * taken so that a full file system is an error and no signal. Done before anything is written,
 * it copies one page in 512 and makes zeros of the others. */
bool embla_io_huge_shared(void *memory, size_t bytes)
{
    int in_a_row = 0;
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at + HUGE <= bytes && in_a_row < 4; at += HUGE) {
        char *start = (char *)memory + at;
        if (madvise(start, PAGE, MADV_POPULATE_WRITE) != 0) return false;
        in_a_row = madvise(start, HUGE, MADV_COLLAPSE) == 0 ? 0 : in_a_row + 1;
    }
    return in_a_row < 4;
}

void embla_io_touch_huge(const void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += HUGE)
        (void)madvise((char *)(uintptr_t)memory + at, PAGE, MADV_POPULATE_READ);
}

embla_status embla_io_erase(int folder, const char *name, const char *shown)
{
    if (told_to_fail() || unlinkat(folder, name, 0) != 0) return refused("remove it", shown);
    return EMBLA_OK;
}
