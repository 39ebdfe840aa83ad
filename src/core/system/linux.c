/* SPDX-License-Identifier: Apache-2.0 */
/* Linux: files, events, and random bytes. */
#include "system/posix.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/sysmacros.h>
#include <unistd.h>

enum { NO_REPLACE = 1 }; /* of renameat2: musl has neither the function nor the number */

int embla_posix_search_flag(void)
{
    return O_PATH;
}

struct timespec embla_posix_changed(const struct stat *found)
{
    return found->st_mtim;
}

/* ---- files ---- */

/* Opens /proc/self/fd/N, not the name: the name may belong to another file by now. */
embla_outcome embla_system_direct(embla_handle file, embla_handle *out)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", (int)file);
    int fd = open(name, O_RDONLY | O_DIRECT | O_CLOEXEC | O_NOCTTY);
    if (fd < 0) return embla_posix_failed();
    *out = fd;
    return embla_posix_ended(0);
}

void embla_system_forget(embla_handle file, uint64_t offset, uint64_t bytes)
{
    (void)posix_fadvise((int)file, (off_t)offset, (off_t)bytes, POSIX_FADV_DONTNEED);
}

embla_outcome embla_system_allocate(embla_handle file, uint64_t offset, uint64_t bytes)
{
    errno = posix_fallocate((int)file, (off_t)offset, (off_t)bytes);
    embla_outcome done = embla_posix_ended(errno == 0 ? 0 : -1);
    if (done.number == EINVAL) done.error = EMBLA_SYSTEM_UNSUPPORTED; /* as file systems say it */
    return done;
}

embla_outcome embla_system_sync(embla_handle file)
{
    return embla_posix_ended(fsync((int)file));
}

size_t embla_system_path(embla_handle file, char *out, size_t size)
{
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", (int)file);
    ssize_t length = readlink(name, out, size);
    if (length < 0 || (size_t)length >= size) return 0;
    out[length] = '\0';
    return (size_t)length;
}

embla_outcome embla_system_rename(embla_folder folder, const char *from, const char *to,
                                  bool replace)
{
    int at = embla_posix_folder(folder);
    if (replace) return embla_posix_ended(renameat(at, from, at, to));
    embla_outcome done =
        embla_posix_ended((int)syscall(SYS_renameat2, at, from, at, to, NO_REPLACE));
    if (done.number == EINVAL) done.error = EMBLA_SYSTEM_UNSUPPORTED; /* as file systems say it */
    return done;
}

/* ---- locks ---- */

/* A line of /proc/locks: "1: FLOCK ADVISORY WRITE 4711 00:19:23 0 EOF", with the device in
 * hexadecimal digits. */
bool embla_system_lock_holder(embla_handle file, long *process, unsigned *user)
{
    struct stat locked, holder;
    char line[256], name[64];
    bool found = false;
    FILE *locks = fopen("/proc/locks", "re");
    if (locks && fstat((int)file, &locked) == 0)
        while (!found && fgets(line, sizeof line, locks)) {
            unsigned its_major, its_minor;
            unsigned long inode;
            found = sscanf(line, "%*u: FLOCK ADVISORY WRITE %ld %x:%x:%lu", process, &its_major,
                           &its_minor, &inode) == 4 &&
                    *process > 0 && inode == locked.st_ino && its_major == major(locked.st_dev) &&
                    its_minor == minor(locked.st_dev);
        }
    if (locks) (void)fclose(locks);
    (void)snprintf(name, sizeof name, "/proc/%ld", found ? *process : 0);
    if (!found || stat(name, &holder) != 0) return false;
    *user = holder.st_uid;
    return true;
}

/* ---- an event for loops ---- */

embla_outcome embla_system_event(embla_handle *out)
{
    int fd = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
    if (fd < 0) return embla_posix_failed();
    *out = fd;
    return embla_posix_ended(0);
}

embla_outcome embla_system_signal(embla_handle event)
{
    const uint64_t one = 1;
    return embla_posix_ended(write((int)event, &one, sizeof one) < 0 ? -1 : 0);
}

/* ---- the process ---- */

bool embla_system_random(void *out, size_t bytes)
{
    return getrandom(out, bytes, GRND_NONBLOCK) == (ssize_t)bytes;
}

const char *embla_system_memory_folder(void)
{
    return "/dev/shm";
}
