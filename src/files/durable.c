/* SPDX-License-Identifier: Apache-2.0 */
/* The order of steps is the whole point, and must not change: temporary file in the same
 * folder, reserve, write, fsync, close, rename, fsync of the folder. A file that exists is
 * never opened for writing: someone may have it mapped.
 */
#include "files/durable.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/io.h"

enum { BUFFER = 1 << 20, NAME = 256, NAME_MOST = 200 };

struct embla_durable {
    int folder, fd; /* fd -1: synced and closed */
    uint64_t size;
    size_t used;  /* bytes waiting in buffer */
    size_t bytes; /* of this block */
    char name[NAME], temporary[NAME];
    char *path; /* of the temporary file, for reading back */
    uint8_t buffer[BUFFER];
};

typedef struct {
    int folder;
    char prefix[NAME]; /* ".NAME.tmp.": a process id and a random number follow */
} sweep;

/* Removes what a process that is gone has left; one that still runs keeps its file. */
static embla_status sweep_one(void *context, const char *entry)
{
    sweep *s = context;
    size_t length = strlen(s->prefix);
    char *end = NULL;
    if (strncmp(entry, s->prefix, length) != 0) return EMBLA_OK;
    long pid = strtol(entry + length, &end, 10);
    if (end == entry + length || *end != '.' || pid <= 0 || pid == (long)getpid()) return EMBLA_OK;
    if (kill((pid_t)pid, 0) != 0 && errno == ESRCH) embla_io_remove(s->folder, entry);
    return EMBLA_OK;
}

static embla_status make_temporary(embla_durable *d, const char *shown)
{
    uint64_t number = 0;
    sweep s = {.folder = d->folder};
    (void)snprintf(s.prefix, NAME, ".%.200s.tmp.", d->name);
    EMBLA_TRY(embla_io_list(d->folder, shown, sweep_one, &s));
    if (getrandom(&number, sizeof number, GRND_NONBLOCK) != (ssize_t)sizeof number)
        number = (uint64_t)(uintptr_t)d; /* O_EXCL still refuses a name that is taken */
    (void)snprintf(d->temporary, NAME, "%.220s%ld.%08x", s.prefix, (long)getpid(),
                   (unsigned)(number & 0xffffffffu));
    return embla_io_open(d->folder, d->temporary, O_WRONLY | O_CREAT | O_EXCL | O_NOFOLLOW, 0600,
                         &d->fd);
}

static void drop(embla_durable *d)
{
    if (d->fd >= 0) embla_io_drop(d->fd);
    if (d->folder >= 0) embla_io_drop(d->folder);
    embla_mem_free(d, d->bytes);
}

embla_status embla_durable_open(const char *path, embla_durable **out)
{
    const char *slash = strrchr(path, '/');
    const char *name = slash ? slash + 1 : path;
    size_t folder_length = slash ? (size_t)(slash - path) : 0;
    size_t bytes = sizeof(embla_durable) + folder_length + NAME + 2;
    void *memory = NULL;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "'%.128s' does not name a file", path);
    if (strlen(name) > NAME_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.128s..: the name has %zu bytes, and %d can be had",
                          name, strlen(name), NAME_MOST);
    EMBLA_TRY(embla_mem_new(bytes, "a file being written", &memory));
    embla_durable *d = memory;
    d->bytes = bytes;
    d->folder = d->fd = -1;
    d->path = (char *)(d + 1);
    memcpy(d->name, name, strlen(name) + 1);
    if (slash)
        memcpy(d->path, slash == path ? "/" : path, slash == path ? 1 : folder_length);
    else
        d->path[0] = '.';
    embla_status status = embla_io_open(AT_FDCWD, d->path, O_RDONLY | O_DIRECTORY, 0, &d->folder);
    if (status == EMBLA_OK) status = make_temporary(d, path);
    if (status != EMBLA_OK) {
        drop(d);
        return status;
    }
    (void)snprintf(d->path + strlen(d->path), NAME + 1, "/%s", d->temporary);
    *out = d;
    return EMBLA_OK;
}

embla_status embla_durable_reserve(embla_durable *d, uint64_t size)
{
    return size > 0 ? embla_io_reserve(d->fd, d->name, size) : EMBLA_OK;
}

static embla_status flush(embla_durable *d)
{
    size_t waiting = d->used;
    d->used = 0;
    return embla_io_write(d->fd, d->name, d->buffer, waiting);
}

embla_status embla_durable_write(embla_durable *d, const void *bytes, size_t count)
{
    d->size += count;
    if (count > BUFFER - d->used) EMBLA_TRY(flush(d));
    if (count > BUFFER) return embla_io_write(d->fd, d->name, bytes, count);
    if (count > 0) memcpy(d->buffer + d->used, bytes, count);
    d->used += count;
    return EMBLA_OK;
}

embla_status embla_durable_fill(embla_durable *d, uint8_t byte, uint64_t count)
{
    uint8_t some[4096];
    memset(some, byte, sizeof some);
    for (; count > sizeof some; count -= sizeof some)
        EMBLA_TRY(embla_durable_write(d, some, sizeof some));
    return embla_durable_write(d, some, (size_t)count);
}

uint64_t embla_durable_size(const embla_durable *d)
{
    return d->size;
}

embla_status embla_durable_sync(embla_durable *d, const char **temporary)
{
    if (d->fd >= 0) {
        EMBLA_TRY(flush(d));
        EMBLA_TRY(embla_io_cut(d->fd, d->name, d->size)); /* what was reserved too much */
        EMBLA_TRY(embla_io_mode(d->fd, d->name));
        EMBLA_TRY(embla_io_sync(d->fd, d->name));
        int fd = d->fd;
        d->fd = -1;
        EMBLA_TRY(embla_io_close(fd, d->name));
    }
    if (temporary) *temporary = d->path;
    return EMBLA_OK;
}

embla_status embla_durable_commit(embla_durable *d)
{
    embla_status status = embla_durable_sync(d, NULL);
    if (status == EMBLA_OK) status = embla_io_rename(d->folder, d->temporary, d->name);
    if (status != EMBLA_OK) {
        embla_durable_abandon(d);
        return status;
    }
    status = embla_io_sync(d->folder, d->name);
    drop(d);
    return status;
}

void embla_durable_abandon(embla_durable *d)
{
    if (!d) return;
    embla_io_remove(d->folder, d->temporary);
    drop(d);
}
