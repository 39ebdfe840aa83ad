/* SPDX-License-Identifier: Apache-2.0 */
/* Files and folders of systems like Unix. Where they differ, the function is in the file of the
 * system. */
#include "system/posix.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

/* ---- errors ---- */

static embla_system_error class_of(int number)
{
    switch (number) {
    case ENOENT:
    case ENOTDIR:
        return EMBLA_SYSTEM_NOT_FOUND;
    case EEXIST:
        return EMBLA_SYSTEM_EXISTS;
    case EAGAIN:
    case EBUSY:
        return EMBLA_SYSTEM_BUSY;
    case ENOSPC:
    case EDQUOT:
        return EMBLA_SYSTEM_NO_SPACE;
    case ENOMEM:
        return EMBLA_SYSTEM_NO_MEMORY;
    case EACCES:
    case EPERM:
    case EROFS:
#ifdef ENOTCAPABLE
    case ENOTCAPABLE:
#endif
        return EMBLA_SYSTEM_REFUSED;
    case ENOSYS:
    case EOPNOTSUPP:
        return EMBLA_SYSTEM_UNSUPPORTED;
    case EINTR:
        return EMBLA_SYSTEM_INTERRUPTED;
    default:
        return EMBLA_SYSTEM_OTHER;
    }
}

embla_outcome embla_posix_failed(void)
{
    return (embla_outcome){.error = class_of(errno), .number = errno};
}

embla_outcome embla_posix_ended(int result)
{
    return result == 0 ? (embla_outcome){.error = EMBLA_SYSTEM_OK} : embla_posix_failed();
}

embla_outcome embla_system_outcome(embla_system_error error)
{
    static const int numbers[] = {
        [EMBLA_SYSTEM_OK] = 0,
        [EMBLA_SYSTEM_NOT_FOUND] = ENOENT,
        [EMBLA_SYSTEM_EXISTS] = EEXIST,
        [EMBLA_SYSTEM_BUSY] = EAGAIN,
        [EMBLA_SYSTEM_NO_SPACE] = ENOSPC,
        [EMBLA_SYSTEM_NO_MEMORY] = ENOMEM,
        [EMBLA_SYSTEM_REFUSED] = EACCES,
        [EMBLA_SYSTEM_UNSUPPORTED] = EOPNOTSUPP,
        [EMBLA_SYSTEM_LINK] = ELOOP,
        [EMBLA_SYSTEM_INTERRUPTED] = EINTR,
        [EMBLA_SYSTEM_OTHER] = EIO,
    };
    return (embla_outcome){.error = error, .number = numbers[error]};
}

/* strerror_r returns the text in glibc, and 0 in other C libraries. */
static const char *text_returned(const char *text, const char *written)
{
    (void)written;
    return text;
}

static const char *text_written(int result, const char *written)
{
    (void)result; /* what did not fit is cut off */
    return written;
}

void embla_system_describe(int number, char *out, size_t size)
{
    char text[128] = "";
    const char *found =
        _Generic(strerror_r(number, text, sizeof text), char *: text_returned, int: text_written)(
            strerror_r(number, text, sizeof text), text);
    (void)snprintf(out, size, "%s", found);
}

/* ---- open files ---- */

int embla_posix_folder(embla_folder folder)
{
    return folder == EMBLA_HERE ? AT_FDCWD : (int)folder;
}

static int open_flags(unsigned intents)
{
    int flags = O_CLOEXEC | O_NOCTTY;
    unsigned both = EMBLA_OPEN_READ | EMBLA_OPEN_WRITE;
    if ((intents & both) == 0)
        flags |= embla_posix_search_flag();
    else if ((intents & both) == both)
        flags |= O_RDWR;
    else
        flags |= intents & EMBLA_OPEN_WRITE ? O_WRONLY : O_RDONLY | O_NONBLOCK;
    if (intents & EMBLA_OPEN_CREATE) flags |= O_CREAT;
    if (intents & EMBLA_OPEN_NEW) flags |= O_CREAT | O_EXCL;
    if (intents & (EMBLA_OPEN_NEW | EMBLA_OPEN_NO_LINK)) flags |= O_NOFOLLOW;
    if (intents & EMBLA_OPEN_FOLDER) flags |= O_DIRECTORY;
    return flags;
}

embla_outcome embla_system_open(embla_folder folder, const char *name, unsigned intents,
                                unsigned mode, embla_handle *out)
{
    int flags = open_flags(intents);
    int fd = embla_posix_open(embla_posix_folder(folder), name, flags, (mode_t)mode);
    embla_outcome done = embla_posix_ended(fd < 0 ? -1 : 0);
    if (fd < 0 && done.number == ELOOP && (flags & O_NOFOLLOW) != 0) done.error = EMBLA_SYSTEM_LINK;
    if (fd >= 0) *out = fd;
    return done;
}

static embla_file_kind kind_of(mode_t mode)
{
    if (S_ISREG(mode)) return EMBLA_REGULAR_FILE;
    if (S_ISDIR(mode)) return EMBLA_IS_FOLDER;
    if (S_ISLNK(mode)) return EMBLA_IS_LINK;
    return S_ISFIFO(mode) ? EMBLA_IS_PIPE : EMBLA_IS_DEVICE;
}

embla_outcome embla_posix_facts(const struct stat *found, embla_file_facts *out)
{
    struct timespec changed = embla_posix_changed(found);
    if (found->st_size < 0)
        return (embla_outcome){.error = EMBLA_SYSTEM_OTHER, .number = EOVERFLOW};
    *out = (embla_file_facts){.id = {(uint64_t)found->st_dev, {(uint64_t)found->st_ino, 0}},
                              .kind = kind_of(found->st_mode),
                              .size = (uint64_t)found->st_size,
                              .seconds = changed.tv_sec,
                              .nanoseconds = changed.tv_nsec,
                              .mode = found->st_mode & 07777,
                              .user = found->st_uid,
                              .names = (uint64_t)found->st_nlink};
    return (embla_outcome){.error = EMBLA_SYSTEM_OK};
}

embla_outcome embla_system_facts(embla_handle file, embla_file_facts *out)
{
    struct stat found;
    if (fstat((int)file, &found) != 0) return embla_posix_failed();
    return embla_posix_facts(&found, out);
}

embla_outcome embla_system_facts_at(embla_folder folder, const char *name, bool follow,
                                    embla_file_facts *out)
{
    struct stat found;
    int flags = follow ? 0 : AT_SYMLINK_NOFOLLOW;
    if (fstatat(embla_posix_folder(folder), name, &found, flags) != 0) return embla_posix_failed();
    return embla_posix_facts(&found, out);
}

embla_outcome embla_system_read(embla_handle file, uint64_t offset, void *out, size_t bytes,
                                size_t *got)
{
    ssize_t n = pread((int)file, out, bytes, (off_t)offset);
    if (n < 0) return embla_posix_failed();
    *got = (size_t)n;
    return (embla_outcome){.error = EMBLA_SYSTEM_OK};
}

embla_outcome embla_system_write(embla_handle file, const void *bytes, size_t count,
                                 size_t *written)
{
    ssize_t n = write((int)file, bytes, count);
    if (n < 0) return embla_posix_failed();
    *written = (size_t)n;
    return (embla_outcome){.error = EMBLA_SYSTEM_OK};
}

embla_outcome embla_system_set_size(embla_handle file, uint64_t size)
{
    return embla_posix_ended(ftruncate((int)file, (off_t)size));
}

/* ---- names ---- */

embla_outcome embla_system_remove(embla_folder folder, const char *name)
{
    return embla_posix_ended(unlinkat(embla_posix_folder(folder), name, 0));
}

embla_outcome embla_system_add_name(embla_folder folder, const char *name, const char *second)
{
    int at = embla_posix_folder(folder);
    return embla_posix_ended(linkat(at, name, at, second, 0));
}

embla_outcome embla_system_remove_folder(embla_folder folder, const char *name)
{
    return embla_posix_ended(unlinkat(embla_posix_folder(folder), name, AT_REMOVEDIR));
}

embla_outcome embla_system_make_folder(const char *path, unsigned mode)
{
    return embla_posix_ended(mkdir(path, (mode_t)mode));
}

const char *embla_system_slash(const char *path)
{
    return strrchr(path, '/');
}

bool embla_system_readable(embla_folder folder, const char *name)
{
    return faccessat(embla_posix_folder(folder), name, R_OK, AT_EACCESS) == 0;
}

embla_outcome embla_system_link(embla_folder folder, const char *name, char *out, size_t size,
                                size_t *length)
{
    ssize_t n = readlinkat(embla_posix_folder(folder), name, out, size);
    if (n < 0) return embla_posix_failed();
    *length = (size_t)n;
    return (embla_outcome){.error = EMBLA_SYSTEM_OK};
}

/* embla_names_list is a DIR: it has no members of its own. */
embla_outcome embla_system_list(embla_folder folder, embla_names_list **out)
{
    DIR *dir = fdopendir((int)folder);
    if (!dir) return embla_posix_failed();
    *out = (embla_names_list *)(void *)dir;
    return (embla_outcome){.error = EMBLA_SYSTEM_OK};
}

embla_outcome embla_system_list_next(embla_names_list *list, const char **name)
{
    errno = 0;
    struct dirent *entry = readdir((DIR *)(void *)list);
    *name = entry ? entry->d_name : NULL;
    return embla_posix_ended(!entry && errno != 0 ? -1 : 0);
}

void embla_system_list_end(embla_names_list *list)
{
    (void)closedir((DIR *)(void *)list);
}
