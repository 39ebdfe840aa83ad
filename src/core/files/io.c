/* SPDX-License-Identifier: Apache-2.0 */
/* The system's file calls, with one countdown for injected failures: a test chooses which call
 * fails, and so can check that every caller handles it. */
#include "files/io.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdatomic.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include "base/checked.h"
#include "files/same_file.h"

#ifndef MADV_COLLAPSE /* since Linux 6.1; MADV_POPULATE_* since 5.14; older kernels reject them */
#define MADV_COLLAPSE 25
#endif
#ifndef MADV_POPULATE_READ
#define MADV_POPULATE_READ  22
#define MADV_POPULATE_WRITE 23
#endif

enum { PAGE = 4096, HUGE = 2 << 20 };

static atomic_size_t live;
static atomic_size_t countdown; /* n: the n-th call from now fails; 0 means off */
static atomic_bool keep_failing;
static atomic_int failing_with;
static atomic_size_t most_at_once; /* bytes per read or write; 0 means no limit */

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

void embla_io_count(size_t opened)
{
    atomic_fetch_add(&live, opened);
}

bool embla_io_must_fail(void)
{
    size_t n = atomic_load(&countdown);
    do { /* the count is shared by all threads; each call counts once */
        if (n == 0) return false;
        if (n == 1 && atomic_load(&keep_failing)) break;
    } while (!atomic_compare_exchange_weak(&countdown, &n, n - 1));
    if (n > 1) return false;
    errno = atomic_load(&failing_with);
    return true;
}

size_t embla_io_at_most(size_t bytes)
{
    size_t most = atomic_load(&most_at_once);
    if (most == 0 || most > (size_t)1 << 30)
        most = (size_t)1 << 30; /* below Linux's limit of 2 GiB per call */
    return bytes < most ? bytes : most;
}

/* Reports a call that failed with errno. */
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
    do fd = embla_io_must_fail() ? -1 : openat(folder, name, flags | O_CLOEXEC | O_NOCTTY, mode);
    while (fd < 0 && errno == EINTR);
    if (fd < 0) {
        if (errno == ELOOP && flags & O_NOFOLLOW)
            return embla_fail(EMBLA_ERR_IO, "%.256s is a symbolic link", shown);
        return refused(flags & O_CREAT ? "create it" : "open it", shown);
    }
    atomic_fetch_add(&live, 1);
    *out = fd;
    return EMBLA_OK;
}

embla_status embla_io_stat(int fd, const char *name, struct stat *out)
{
    struct stat found;
    if (embla_io_must_fail() || fstat(fd, &found) != 0) return refused("get its size", name);
    *out = found;
    return EMBLA_OK;
}

embla_status embla_io_pread(int fd, const char *name, uint64_t offset, size_t bytes, void *out,
                            size_t *got)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = embla_io_must_fail()
                        ? -1
                        : pread(fd, (char *)out + done, embla_io_at_most(bytes - done),
                                (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("read it", name);
        if (n == 0) break;
        done += (size_t)n;
    }
    *got = done;
    return EMBLA_OK;
}

/* Opens /proc/self/fd/N, not the name: the name may belong to another file by now. */
int embla_io_direct(int fd)
{
    char name[64];
    int direct = -1;
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", fd);
    do direct = embla_io_must_fail() ? -1 : open(name, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY);
    while (direct < 0 && errno == EINTR);
    if (direct >= 0) atomic_fetch_add(&live, 1);
    return direct;
}

embla_status embla_io_pread_direct(int fd, const char *name, uint64_t offset, size_t bytes,
                                   void *out, size_t *got)
{
    size_t done = 0;
    while (done < bytes) {
        ssize_t n = embla_io_must_fail()
                        ? -1
                        : pread(fd, (char *)out + done, embla_io_at_most(bytes - done),
                                (off_t)(offset + done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("read it", name);
        done += (size_t)n;
        if (n == 0 || n % EMBLA_DIRECT != 0)
            break; /* the end of the file; from an unaligned offset no direct read is possible */
    }
    *got = done;
    return EMBLA_OK;
}

embla_status embla_io_event(int *out)
{
    int fd = embla_io_must_fail() ? -1 : eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return refused("create an eventfd", "tickets");
    atomic_fetch_add(&live, 1);
    *out = fd;
    return EMBLA_OK;
}

void embla_io_signal(int fd)
{
    const uint64_t one = 1;
    while (write(fd, &one, sizeof one) < 0 && errno == EINTR) continue;
}

void embla_io_forget(int fd, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise(fd, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

embla_status embla_io_write(int fd, const char *name, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        ssize_t n = embla_io_must_fail()
                        ? -1
                        : write(fd, (const char *)bytes + done, embla_io_at_most(count - done));
        if (n < 0 && errno == EINTR) continue;
        if (n < 0) return refused("write it", name);
        done += (size_t)n;
    }
    return EMBLA_OK;
}

/* Allocates the space of a part of a file. If lenient is true, a file system that cannot do this
 * is not an error. */
static embla_status allocate(int fd, const char *name, uint64_t offset, uint64_t bytes,
                             bool lenient)
{
    int error;
    if (bytes > (uint64_t)INT64_MAX || offset > (uint64_t)INT64_MAX - bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s: cannot reserve %" PRIu64 " bytes at %" PRIu64
                          ": a file ends at 2^63 at the latest",
                          name, bytes, offset);
    do error = embla_io_must_fail() ? errno : posix_fallocate(fd, (off_t)offset, (off_t)bytes);
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
    if (embla_io_must_fail() || ftruncate(fd, (off_t)size) != 0)
        return refused("set its length", name);
    return EMBLA_OK;
}

/* Finds the mode of a new file by creating an empty one. umask() can only be read by setting it,
 * which other threads would notice; /proc may be missing; a folder's default ACL replaces the
 * mask. */
static embla_status find_new_mode(int folder, const char *probe, const char *shown, mode_t *out)
{
    struct stat found;
    int fd = -1;
    EMBLA_TRY(embla_io_open_as(folder, probe, shown, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0666,
                               &fd));
    embla_status status = embla_io_stat(fd, shown, &found);
    embla_io_remove(folder, probe);
    embla_io_drop(fd);
    if (status == EMBLA_OK) *out = found.st_mode & 0666;
    return status;
}

embla_status embla_io_mode(int fd, const char *name, int folder, const char *old, const char *probe)
{
    struct stat found;
    mode_t mode = 0;
    bool told = embla_io_must_fail();
    bool there = !told && fstatat(folder, old, &found, AT_SYMLINK_NOFOLLOW) == 0;
    /* If the old mode is unknown, fail: a private file must not become readable by everyone. */
    if (told || (!there && errno != ENOENT)) return refused("set its mode", name);
    if (there && S_ISREG(found.st_mode))
        mode = found.st_mode & 01777;
    else
        EMBLA_TRY(find_new_mode(folder, probe, name, &mode));
    return fchmod(fd, mode) == 0 ? EMBLA_OK : refused("set its mode", name);
}

embla_status embla_io_lock(int fd, const char *name, int *keeper)
{
    struct stat found;
    int result = -1;
    do result = embla_io_must_fail() ? -1 : flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    bool no_locks = errno == ENOLCK || errno == EOPNOTSUPP || errno == EINVAL || errno == ENOSYS;
    *keeper = -1;
    if (result != 0 && errno == EWOULDBLOCK) return EMBLA_OK; /* embla_io_sweep has locked it */
    if (result != 0 && !no_locks) return refused("lock it", name);
    if (fstat(fd, &found) != 0) return refused("lock it", name);
    if (found.st_nlink == 0) return EMBLA_OK; /* embla_io_sweep has removed it */
    *keeper = fcntl(fd, F_DUPFD_CLOEXEC, 0);
    if (*keeper < 0) return refused("lock it", name);
    atomic_fetch_add(&live, 1);
    return EMBLA_OK;
}

embla_status embla_io_sync(int fd, const char *name)
{
    /* A failed fsync is never repeated: the system may have dropped the pages (fsyncgate). */
    if (embla_io_must_fail() || fsync(fd) != 0) return refused("sync it to the disk", name);
    return EMBLA_OK;
}

embla_status embla_io_close(int fd, const char *name)
{
    bool told = embla_io_must_fail();
    int error = errno;
    int result = close(fd); /* not repeated after EINTR: on Linux fd is closed even then */
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

/* Renames a file unless the new name exists. Returns 0, or -1 with errno set. On a file system
 * without RENAME_NOREPLACE it makes a hard link, which also fails if the name exists. */
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
    int result = embla_io_must_fail() ? -1
                 : replace            ? renameat(folder, from, folder, to)
                                      : rename_new(folder, from, to);
    if (result == 0) return EMBLA_OK;
    if (!replace && errno == EEXIST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s already exists", shown);
    return refused("rename the temporary file to it", shown);
}

void embla_io_remove(int folder, const char *name)
{
    (void)unlinkat(folder, name, 0);
}

void embla_io_remove_folder(int folder, const char *name)
{
    (void)unlinkat(folder, name, AT_REMOVEDIR);
}

bool embla_io_sweep(int folder, const char *name)
{
    struct stat found, named;
    int flags = O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY | O_CLOEXEC;
    int fd = openat(folder, name, flags);
    if (fd < 0) return false;
    /* Remove it while the lock is held: a process that has just created it, and locks it after us,
     * then sees that it is gone. But the name may be that of a newer file by now. */
    bool unused = fstat(fd, &found) == 0 && S_ISREG(found.st_mode) &&
                  flock(fd, LOCK_EX | LOCK_NB) == 0 &&
                  fstatat(folder, name, &named, AT_SYMLINK_NOFOLLOW) == 0 &&
                  embla_same_file(embla_file_id_of(&named), embla_file_id_of(&found));
    if (unused) embla_io_remove(folder, name);
    (void)close(fd);
    return unused;
}

/* Finds an address aligned to 2 MiB with `bytes` free bytes after it; NULL means the system may
 * choose. The address is only a hint: another thread may map something there first. */
static void *find_huge_aligned(size_t bytes)
{
    if (bytes < HUGE || bytes > SIZE_MAX - HUGE) return NULL;
    void *found = mmap(NULL, bytes + HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    if (found == MAP_FAILED) return NULL;
    (void)munmap(found, bytes + HUGE);
    return (void *)(((uintptr_t)found + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
}

static embla_status map_file(int fd, const char *name, size_t bytes, int protection, int flags,
                             void **out)
{
    void *memory = embla_io_must_fail()
                       ? MAP_FAILED
                       : mmap(find_huge_aligned(bytes), bytes, protection, flags, fd, 0);
    if (memory == MAP_FAILED) return refused("map it", name);
    atomic_fetch_add(&live, 1);
    *out = memory;
    return EMBLA_OK;
}

embla_status embla_io_map(int fd, const char *name, size_t bytes, void **out)
{
    return map_file(fd, name, bytes, PROT_READ, MAP_SHARED, out);
}

embla_status embla_io_map_private(int fd, const char *name, size_t bytes, void **out)
{
    /* without MAP_NORESERVE the system would set memory aside for a copy of the whole file */
    return map_file(fd, name, bytes, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_NORESERVE, out);
}

void embla_io_unmap(void *memory, size_t bytes)
{
    (void)munmap(memory, bytes);
    atomic_fetch_sub(&live, 1);
}

/* Returns the start of the pages that hold these bytes; *length is the length of those pages. */
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
    if (embla_io_must_fail() || madvise(start, length, MADV_RANDOM) != 0)
        return refused("advise the system that it is read in random order", name);
    return EMBLA_OK;
}

embla_status embla_io_resident(const void *memory, size_t bytes, const char *name, uint64_t *out)
{
    unsigned char flags[4096]; /* one for each page; they cover 16 MiB */
    size_t length, page;
    char *start = pages_of(memory, bytes, &length, &page);
    const char *first = memory, *end = first + bytes;
    uint64_t found = 0;
    for (size_t at = 0; at < length; at += sizeof flags * page) {
        size_t piece = length - at < sizeof flags * page ? length - at : sizeof flags * page;
        if (embla_io_must_fail() || mincore(start + at, piece, flags) != 0)
            return refused("find out how much of it is in the page cache", name);
        for (size_t i = 0; i < piece / page; i++) {
            const char *low = start + at + i * page, *high = low + page;
            if (!(flags[i] & 1)) continue;
            found += (size_t)((high < end ? high : end) - (low > first ? low : first));
        }
    }
    *out = found;
    return EMBLA_OK;
}

/* Syncs the parent folder of a path to the disk. */
static embla_status sync_parent(const char *path)
{
    char parent[4096] = ".";
    int fd = -1;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    if (length >= sizeof parent) return EMBLA_OK; /* mkdir rejects paths that long (PATH_MAX) */
    if (length > 0) (void)snprintf(parent, sizeof parent, "%.*s", (int)length, path);
    EMBLA_TRY(embla_io_open(AT_FDCWD, parent, O_RDONLY | O_DIRECTORY, 0, &fd));
    embla_status status = embla_io_sync(fd, parent);
    embla_io_drop(fd);
    return status;
}

embla_status embla_io_folder(const char *path)
{
    if (embla_io_must_fail() || mkdir(path, 0777) != 0)
        return errno == EEXIST ? EMBLA_OK : refused("create the folder", path);
    return sync_parent(path);
}

bool embla_io_readable(int folder, const char *name)
{
    return faccessat(folder, name, R_OK, AT_EACCESS) == 0;
}

size_t embla_io_link(int folder, const char *name, char *out, size_t size)
{
    ssize_t length = embla_io_must_fail() ? -1 : readlinkat(folder, name, out, size);
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
    DIR *dir = embla_io_must_fail() ? NULL : fdopendir(fd);
    if (!dir) {
        status = refused("list it", name);
        embla_io_drop(fd);
        return status;
    }
    for (;;) {
        errno = 0;
        struct dirent *entry = embla_io_must_fail() ? NULL : readdir(dir);
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
    do result = embla_io_must_fail() ? -1 : flock(fd, LOCK_EX | LOCK_NB);
    while (result != 0 && errno == EINTR);
    if (result != 0 && errno != EWOULDBLOCK) return refused("lock it", name);
    *got = result == 0;
    return EMBLA_OK;
}

bool embla_io_lock_shared(int fd)
{
    int result = -1;
    do result = flock(fd, LOCK_SH | LOCK_NB);
    while (result != 0 && errno == EINTR);
    return result == 0 || errno != EWOULDBLOCK;
}

/* A line of /proc/locks: "1: FLOCK ADVISORY WRITE 4711 00:19:23 0 EOF", with the device in
 * hexadecimal digits. */
bool embla_io_lock_holder(int fd, long *process, unsigned *user)
{
    struct stat file, holder;
    char line[256], name[64];
    bool found = false;
    FILE *locks = fopen("/proc/locks", "re");
    if (locks && fstat(fd, &file) == 0)
        while (!found && fgets(line, sizeof line, locks)) {
            unsigned its_major, its_minor;
            unsigned long inode;
            found = sscanf(line, "%*u: FLOCK ADVISORY WRITE %ld %x:%x:%lu", process, &its_major,
                           &its_minor, &inode) == 4 &&
                    *process > 0 && inode == file.st_ino && its_major == major(file.st_dev) &&
                    its_minor == minor(file.st_dev);
        }
    if (locks) (void)fclose(locks);
    (void)snprintf(name, sizeof name, "/proc/%ld", found ? *process : 0);
    if (!found || stat(name, &holder) != 0) return false;
    *user = holder.st_uid;
    return true;
}

bool embla_io_is_foreign(int folder, const char *name)
{
    struct stat found;
    return fstatat(folder, name, &found, AT_SYMLINK_NOFOLLOW) == 0 && found.st_uid != geteuid();
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
    if (embla_io_must_fail() || fstatvfs(fd, &found) != 0)
        return refused("get the free space of its file system", name);
    uint64_t unit = found.f_frsize > 0 ? found.f_frsize : found.f_bsize;
    if (!embla_mul_ok(found.f_bavail, unit, out)) *out = UINT64_MAX;
    return EMBLA_OK;
}

embla_status embla_io_map_shared(int fd, const char *name, size_t bytes, void **out)
{
    return map_file(fd, name, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, out);
}

/* MADV_HUGEPAGE alone is not enough: most systems do not use huge pages for files in memory.
 * MADV_COLLAPSE works, but needs at least one existing page in each 2 MiB. MADV_POPULATE_WRITE
 * creates that page; if the file system is full it returns an error and raises no signal. Before
 * anything is written, a collapse copies one page of 512 and fills the others with zeros. */
bool embla_io_huge_shared(void *memory, size_t bytes)
{
    int failures = 0; /* in a row */
    (void)madvise(memory, bytes, MADV_HUGEPAGE);
    for (size_t at = 0; at + HUGE <= bytes && failures < 4; at += HUGE) {
        char *start = (char *)memory + at;
        if (madvise(start, PAGE, MADV_POPULATE_WRITE) != 0) return false;
        failures = madvise(start, HUGE, MADV_COLLAPSE) == 0 ? 0 : failures + 1;
    }
    return failures < 4;
}

void embla_io_touch_huge(const void *memory, size_t bytes)
{
    for (size_t at = 0; at < bytes; at += HUGE)
        (void)madvise((char *)(uintptr_t)memory + at, PAGE, MADV_POPULATE_READ);
}

embla_status embla_io_erase(int folder, const char *name, const char *shown)
{
    if (embla_io_must_fail() || unlinkat(folder, name, 0) != 0) return refused("remove it", shown);
    return EMBLA_OK;
}
