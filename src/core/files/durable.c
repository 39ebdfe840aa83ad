/* SPDX-License-Identifier: Apache-2.0 */
/* The order of the steps must not change: temporary file in the same folder, reserve, write,
 * fsync, close, rename, fsync of the folder. An existing file is never opened for writing,
 * because another process may have mapped it.
 *
 * A temporary file is a leftover if it is not locked. The process number in its name does not
 * tell: another container may have a process of the same number. The lock ends when the last
 * handle is closed. A second handle (keeper) holds it until the rename, so that the
 * first can be closed, and its close checked, before the rename (D1).
 */
#include "files/durable.h"

#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "files/io.h"

enum { BUFFER = 1 << 20, NAME = 256, NAME_MOST = 200, TRIES = 100 };

struct embla_durable {
    embla_folder folder;
    embla_handle file;   /* -1 after the file was synced and closed */
    embla_handle keeper; /* the handle that holds the lock */
    uint64_t size;
    size_t used;  /* bytes in buffer that are not written yet */
    size_t bytes; /* size of this block of memory */
    char name[NAME], temporary[NAME];
    const char *shown; /* the path as the caller passed it, for messages */
    char *path;        /* the path of the temporary file, for reading it back */
    uint8_t buffer[BUFFER];
};

/* ---- what is there before ---- */

embla_status embla_durable_facts(embla_folder folder, const char *path, bool follow,
                                 embla_file_facts *out, bool *there)
{
    embla_status status = embla_io_facts_at(folder, path, follow, out);
    *there = status == EMBLA_OK;
    return status == EMBLA_ERR_NOT_FOUND ? EMBLA_OK : status;
}

/* Links and devices are never replaced: the rename would replace the link, not its target, and a
 * device should not be replaced at all. */
embla_status embla_durable_target(const char *path, bool overwrite)
{
    embla_file_facts found;
    bool there = false;
    EMBLA_TRY(embla_durable_facts(EMBLA_HERE, path, false, &found, &there));
    if (!there) return EMBLA_OK; /* embla_durable_open reports a missing folder */
    if (found.kind != EMBLA_REGULAR_FILE)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s is %s; choose the name of a file", path,
                          found.kind == EMBLA_IS_FOLDER ? "a folder"
                          : found.kind == EMBLA_IS_LINK ? "a symbolic link"
                                                        : "a device or a pipe");
    if (!overwrite)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.256s already exists (%" PRId64
                          " bytes); choose another name or allow overwriting",
                          path, (int64_t)found.size);
    return EMBLA_OK;
}

/* ---- a file being written ---- */

typedef struct {
    embla_folder folder;
    char prefix[NAME]; /* ".NAME.tmp."; a process number, a dot and 8 hex digits follow it */
} sweep;

/* Removes an entry only if its whole name has exactly the form of our temporary names. */
static embla_status sweep_one(void *context, const char *entry)
{
    sweep *s = context;
    size_t length = strlen(s->prefix);
    if (strncmp(entry, s->prefix, length) != 0) return EMBLA_OK;
    const char *number = entry + length;
    size_t digits = strspn(number, "0123456789");
    if (digits == 0 || number[digits] != '.') return EMBLA_OK;
    const char *random = number + digits + 1;
    if (strspn(random, "0123456789abcdef") == 8 && random[8] == '\0')
        embla_io_sweep(s->folder, entry);
    return EMBLA_OK;
}

static void close_all(embla_durable *d)
{
    if (d->file >= 0) embla_io_drop(d->file);
    if (d->keeper >= 0) embla_io_drop(d->keeper);
    if (d->folder >= 0) embla_io_drop(d->folder);
    embla_mem_free(d, d->bytes);
}

/* Tries once to create and lock a temporary file. keeper stays -1 if the sweep of another process
 * removed it before it was locked. */
static embla_status try_temporary(embla_durable *d, const char *prefix, uint64_t try)
{
    uint64_t number = 0;
    if (!embla_system_random(&number, sizeof number))
        number = (uint64_t)(uintptr_t)d; /* EMBLA_OPEN_NEW refuses a name that exists */
    (void)snprintf(d->temporary, NAME, "%.220s%ld.%08x", prefix, embla_system_process(),
                   (unsigned)((number + try) & 0xffffffffu));
    EMBLA_TRY(embla_io_open_as(d->folder, d->temporary, d->shown, EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW,
                               0600, &d->file));
    embla_status status = embla_io_lock(d->file, d->shown, &d->keeper);
    if (d->keeper >= 0) return EMBLA_OK;
    embla_io_remove(d->folder, d->temporary);
    embla_io_drop(d->file);
    d->file = -1;
    return status;
}

static embla_status make_temporary(embla_durable *d)
{
    sweep s = {.folder = d->folder};
    (void)snprintf(s.prefix, NAME, ".%.200s.tmp.", d->name);
    EMBLA_TRY(embla_io_list(d->folder, d->path, sweep_one, &s));
    for (uint64_t try = 0; d->keeper < 0; try++) {
        if (try == TRIES)
            return embla_fail(EMBLA_ERR_IO,
                              "%.256s: another process removed its temporary file %d times; "
                              "do other processes write to this folder?",
                              d->shown, TRIES);
        EMBLA_TRY(try_temporary(d, s.prefix, try));
    }
    return EMBLA_OK;
}

/* Allocates one block: the struct, the path of the temporary file, the caller's path. */
static embla_status new_durable(const char *path, const char *name, embla_durable **out)
{
    size_t folder_length = (size_t)(name - path), length = strlen(path);
    size_t bytes = sizeof(embla_durable) + folder_length + NAME + 2 + length + 1;
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "a file being written", &memory));
    embla_durable *d = memory;
    d->bytes = bytes;
    d->folder = d->file = d->keeper = -1;
    d->path = (char *)(d + 1);
    char *shown = d->path + folder_length + NAME + 2;
    memcpy(shown, path, length + 1);
    d->shown = shown;
    memcpy(d->name, name, strlen(name) + 1);
    if (folder_length > 1) folder_length--; /* close_all the last slash, but keep "/" */
    memcpy(d->path, folder_length > 0 ? path : ".", folder_length > 0 ? folder_length : 1);
    *out = d;
    return EMBLA_OK;
}

embla_status embla_durable_open(const char *path, embla_durable **out)
{
    const char *slash = embla_io_slash(path);
    const char *name = slash ? slash + 1 : path;
    embla_durable *d = NULL;
    if (*name == '\0' || strcmp(name, ".") == 0 || strcmp(name, "..") == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "'%.128s' does not name a file", path);
    if (strlen(name) > NAME_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.128s..: the file name has %zu bytes; it may have at most %d", name,
                          strlen(name), NAME_MOST);
    EMBLA_TRY(new_durable(path, name, &d));
    embla_status status = embla_io_open_folder(d->path, &d->folder);
    if (status == EMBLA_OK) status = make_temporary(d);
    if (status != EMBLA_OK) {
        close_all(d);
        return status;
    }
    (void)snprintf(d->path + strlen(d->path), NAME + 1, "/%s", d->temporary);
    *out = d;
    return EMBLA_OK;
}

embla_status embla_durable_reserve(embla_durable *d, uint64_t size)
{
    return size > 0 ? embla_io_reserve(d->file, d->shown, size) : EMBLA_OK;
}

/* Sets the mode of the finished file. The name of the probe has the form of a temporary name, so
 * that a probe whose process was killed is swept like one. */
static embla_status set_mode(embla_durable *d)
{
    char probe[NAME];
    size_t last = strlen(d->temporary) - 1;
    memcpy(probe, d->temporary, last + 2);
    probe[last] = probe[last] == '0' ? '1' : '0';
    return embla_io_mode(d->file, d->shown, d->folder, d->name, probe);
}

static embla_status flush(embla_durable *d)
{
    size_t waiting = d->used;
    d->used = 0;
    return embla_io_write(d->file, d->shown, d->buffer, waiting);
}

embla_status embla_durable_write(embla_durable *d, const void *bytes, size_t count)
{
    d->size += count;
    if (count > BUFFER - d->used) EMBLA_TRY(flush(d));
    if (count > BUFFER) return embla_io_write(d->file, d->shown, bytes, count);
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
    if (d->file >= 0) {
        EMBLA_TRY(flush(d));
        EMBLA_TRY(embla_io_cut(d->file, d->shown, d->size)); /* more may have been reserved */
        EMBLA_TRY(set_mode(d));
        EMBLA_TRY(embla_io_sync(d->file, d->shown));
        embla_handle file = d->file;
        d->file = -1;
        EMBLA_TRY(embla_io_close(file, d->shown));
    }
    if (temporary) *temporary = d->path;
    return EMBLA_OK;
}

static embla_status commit(embla_durable *d, bool replace)
{
    embla_status status = embla_durable_sync(d, NULL);
    if (status == EMBLA_OK)
        status = embla_io_rename(d->folder, d->temporary, d->name, d->shown, replace);
    if (status != EMBLA_OK) {
        embla_durable_abandon(d);
        return status;
    }
    status = embla_io_sync(d->folder, d->shown);
    close_all(d);
    return status;
}

embla_status embla_durable_commit(embla_durable *d)
{
    return commit(d, true);
}

embla_status embla_durable_commit_new(embla_durable *d)
{
    return commit(d, false);
}

void embla_durable_abandon(embla_durable *d)
{
    if (!d) return;
    embla_io_remove(d->folder, d->temporary);
    close_all(d);
}
