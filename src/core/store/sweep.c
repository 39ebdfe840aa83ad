/* SPDX-License-Identifier: Apache-2.0 */
/* Removes shared copies that nobody needs. A killed engine leaves its copy behind. Its successor
 * finds the copy again; but if the table has changed meanwhile, the copy has another name and the
 * old one would stay in memory until the machine is restarted.
 *
 * A process that uses a copy holds a shared lock of its file, and the system releases the locks of
 * a killed process. A copy is dead if nobody holds its lock, and the file that it was made from is
 * no longer the same. It is removed while this process holds its lock alone; a process that opens
 * it at that moment sees that it is gone (shared.c).
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "files/io.h"
#include "store/shared.h"

_Static_assert(EMBLA_COPY_NOTE_AT + sizeof(embla_copy_note) <= EMBLA_COPY_SUMS_AT,
               "the note ends before the checksums");

typedef struct {
    int folder;
    const char *path; /* of the folder, for messages */
    bool named;       /* also copies that a user has named */
    bool unused;      /* not only dead copies */
    embla_sweep_report report;
} sweeping;

/* ---- the note ---- */

/* The path is absolute, because the process that reads it may be in another folder. */
embla_copy_note embla_copy_note_of(const embla_store *store)
{
    const embla_source *source = &store->sources[store->extents[0].source[0]];
    embla_copy_note note = {.device = source->map->id.device,
                            .inode = source->map->id.inode,
                            .size = source->map->size,
                            .seconds = source->seconds,
                            .nanoseconds = source->nanoseconds};
    char name[64];
    (void)snprintf(name, sizeof name, "/proc/self/fd/%d", source->map->fd);
    size_t length = embla_io_link(AT_FDCWD, name, note.path, sizeof note.path);
    note.path[length] = '\0';
    return note;
}

/* Finds a file or folder by its path. */
static embla_status stat_path(const char *path, struct stat *out)
{
    int fd = -1;
    EMBLA_TRY(embla_io_open(AT_FDCWD, path, O_RDONLY | O_NONBLOCK | O_NOCTTY, 0, &fd));
    embla_status status = embla_io_stat(fd, path, out);
    embla_io_drop(fd);
    return status;
}

/* Whether the file of a note is certainly gone, or certainly not the same any more. A path may lead
 * elsewhere in another container, or after a disk was unmounted: then the device is another one,
 * and nothing is certain. */
static bool is_outdated(embla_copy_note *note)
{
    const embla_file_id was = {note->device, note->inode};
    struct stat now = {0};
    note->path[sizeof note->path - 1] = '\0';
    if (note->path[0] != '/') return false; /* unknown */
    embla_status status = stat_path(note->path, &now);
    if (status == EMBLA_ERR_NOT_FOUND) {
        char *end = strrchr(note->path, '/');
        end[end == note->path] = '\0'; /* its folder */
        return stat_path(note->path, &now) == EMBLA_OK && (uint64_t)now.st_dev == note->device;
    }
    return status == EMBLA_OK && (uint64_t)now.st_dev == note->device &&
           (!embla_same_file(embla_file_id_of(&now), was) || (uint64_t)now.st_size != note->size ||
            now.st_mtim.tv_sec != note->seconds || now.st_mtim.tv_nsec != note->nanoseconds);
}

/* ---- one file ---- */

/* Whether an open file is a complete copy of this user. */
static bool is_copy(int fd, const char *name, embla_copy_note *note, uint64_t *bytes)
{
    struct stat found = {0};
    embla_copy_manifest m;
    size_t got = 0;
    if (embla_io_stat(fd, name, &found) != EMBLA_OK || !S_ISREG(found.st_mode) ||
        found.st_uid != geteuid() || found.st_size < EMBLA_COPY_DATA_AT)
        return false;
    *bytes = (uint64_t)found.st_size;
    if (embla_io_pread(fd, name, 0, sizeof m, &m, &got) != EMBLA_OK || got < sizeof m ||
        !embla_copy_recognised(&m, *bytes))
        return false;
    return embla_io_pread(fd, name, EMBLA_COPY_NOTE_AT, sizeof *note, note, &got) == EMBLA_OK &&
           got == sizeof *note;
}

/* Removes a copy if nobody uses it. */
static embla_status remove_copy(int folder, int fd, const char *name, bool *removed)
{
    struct stat found = {0};
    bool got = false;
    EMBLA_TRY(embla_io_lock_try(fd, name, &got));
    if (!got) return EMBLA_OK;
    EMBLA_TRY(embla_io_stat(fd, name, &found));
    if (found.st_nlink == 0) return EMBLA_OK; /* another process was faster */
    EMBLA_TRY(embla_io_erase(folder, name, name));
    *removed = true;
    return EMBLA_OK;
}

static embla_status sweep_copy(sweeping *s, const char *entry)
{
    embla_copy_note note = {0};
    uint64_t bytes = 0;
    bool removed = false;
    int fd = -1;
    embla_status status = EMBLA_OK;
    if (embla_io_open(s->folder, entry, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_NOCTTY, 0, &fd) !=
        EMBLA_OK)
        return EMBLA_OK; /* not ours */
    if (is_copy(fd, entry, &note, &bytes)) {
        if (s->unused || is_outdated(&note)) status = remove_copy(s->folder, fd, entry, &removed);
        s->report.copies += removed;
        s->report.bytes += removed ? (int64_t)bytes : 0;
        s->report.kept += !removed;
    }
    embla_io_unlock(fd);
    return status;
}

/* Whether a name is `before`, 16 hexadecimal digits and `after`. */
static bool has_form(const char *entry, const char *before, const char *after)
{
    size_t length = strlen(before);
    return strncmp(entry, before, length) == 0 &&
           strspn(entry + length, "0123456789abcdef") == 16 &&
           strcmp(entry + length + 16, after) == 0;
}

/* Whether an entry is the lock or the unfinished file of a copy with a name of our own. */
static bool is_leftover(const char *entry)
{
    char lock[32], middle[32], head[32];
    size_t named = strlen(".embla-") + 16; /* ".embla-<16 digits>.<user>.tmp.<16 digits>" */
    unsigned user = (unsigned)geteuid();
    (void)snprintf(lock, sizeof lock, ".%u.lock", user);
    (void)snprintf(middle, sizeof middle, ".%u.tmp.", user);
    if (has_form(entry, "embla-", lock)) return true;
    if (strlen(entry) < named) return false;
    (void)snprintf(head, sizeof head, "%.*s", (int)named, entry);
    return has_form(head, ".embla-", "") && has_form(entry + named, middle, "");
}

static embla_status sweep_entry(void *context, const char *entry)
{
    sweeping *s = context;
    if (is_leftover(entry)) {
        s->report.leftover += embla_io_sweep(s->folder, entry);
        return EMBLA_OK;
    }
    return s->named || has_form(entry, "embla-", "") ? sweep_copy(s, entry) : EMBLA_OK;
}

/* ---- a folder ---- */

void embla_copy_sweep_dead(int folder, const char *path)
{
    sweeping s = {.folder = folder, .path = path};
    embla_status status = embla_io_list(folder, path, sweep_entry, &s);
    (void)status; /* whoever builds the copy lists the folder again, and reports what is wrong */
}

embla_status embla_store_sweep(const char *folder, bool unused, embla_sweep_report *out)
{
    sweeping s = {.path = folder ? folder : "/dev/shm", .named = true, .unused = unused};
    EMBLA_TRY(embla_io_open(AT_FDCWD, s.path, O_RDONLY | O_DIRECTORY, 0, &s.folder));
    embla_status status = embla_io_list(s.folder, s.path, sweep_entry, &s);
    embla_io_drop(s.folder);
    EMBLA_TRY(status);
    if (out) *out = s.report;
    return EMBLA_OK;
}
