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
#include <stdio.h>
#include <string.h>

#include "files/io.h"
#include "store/shared.h"

_Static_assert(EMBLA_COPY_NOTE_AT + sizeof(embla_copy_note) <= EMBLA_COPY_SUMS_AT,
               "the note ends before the checksums");

typedef struct {
    embla_folder folder;
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
    embla_copy_note note = {.device = source->map->id.volume,
                            .inode = source->map->id.id[0],
                            .size = source->map->size,
                            .seconds = source->seconds,
                            .nanoseconds = source->nanoseconds};
    size_t length = embla_io_path(source->map->file, note.path, sizeof note.path);
    note.path[length] = '\0';
    return note;
}

/* Whether the file of a note is certainly gone, or certainly not the same any more. A path may lead
 * elsewhere in another container, or after a disk was unmounted: then the device is another one,
 * and nothing is certain. */
static bool is_outdated(embla_copy_note *note)
{
    embla_file_facts now = {0};
    note->path[sizeof note->path - 1] = '\0';
    const char *slash = embla_io_slash(note->path);
    if (!slash) return false; /* unknown */
    embla_status status = embla_io_facts_at(EMBLA_HERE, note->path, true, &now);
    if (status == EMBLA_ERR_NOT_FOUND) {
        note->path[slash == note->path ? 1 : slash - note->path] = '\0'; /* its folder */
        return embla_io_facts_at(EMBLA_HERE, note->path, true, &now) == EMBLA_OK &&
               now.id.volume == note->device;
    }
    return status == EMBLA_OK && now.id.volume == note->device &&
           (now.id.id[0] != note->inode || now.size != note->size || now.seconds != note->seconds ||
            now.nanoseconds != note->nanoseconds);
}

/* ---- one file ---- */

/* Whether an open file is a complete copy of this user. */
static bool is_copy(embla_handle file, const char *name, embla_copy_note *note, uint64_t *bytes)
{
    embla_file_facts found = {0};
    embla_copy_manifest m;
    size_t got = 0;
    if (embla_io_facts(file, name, &found) != EMBLA_OK || found.kind != EMBLA_REGULAR_FILE ||
        found.user != embla_system_user() || found.size < EMBLA_COPY_DATA_AT)
        return false;
    *bytes = found.size;
    if (embla_io_pread(file, name, 0, sizeof m, &m, &got) != EMBLA_OK || got < sizeof m ||
        !embla_copy_recognised(&m, *bytes))
        return false;
    return embla_io_pread(file, name, EMBLA_COPY_NOTE_AT, sizeof *note, note, &got) == EMBLA_OK &&
           got == sizeof *note;
}

/* Removes a copy if nobody uses it. */
static embla_status remove_copy(embla_folder folder, embla_handle file, const char *name,
                                bool *removed)
{
    embla_file_facts found = {0};
    bool got = false;
    EMBLA_TRY(embla_io_lock_try(file, name, &got));
    if (!got) return EMBLA_OK;
    EMBLA_TRY(embla_io_facts(file, name, &found));
    if (found.names == 0) return EMBLA_OK; /* another process was faster */
    EMBLA_TRY(embla_io_erase(folder, name, name));
    *removed = true;
    return EMBLA_OK;
}

static embla_status sweep_copy(sweeping *s, const char *entry)
{
    embla_copy_note note = {0};
    uint64_t bytes = 0;
    bool removed = false;
    embla_handle file = -1;
    embla_status status = EMBLA_OK;
    if (embla_io_open(s->folder, entry, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &file) != EMBLA_OK)
        return EMBLA_OK; /* not ours */
    if (is_copy(file, entry, &note, &bytes)) {
        if (s->unused || is_outdated(&note)) status = remove_copy(s->folder, file, entry, &removed);
        s->report.copies += removed;
        s->report.bytes += removed ? (int64_t)bytes : 0;
        s->report.kept += !removed;
    }
    embla_io_unlock(file);
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
    unsigned user = embla_system_user();
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

void embla_copy_sweep_dead(embla_folder folder, const char *path)
{
    sweeping s = {.folder = folder, .path = path};
    embla_status status = embla_io_list(folder, path, sweep_entry, &s);
    (void)status; /* whoever builds the copy lists the folder again, and reports what is wrong */
}

embla_status embla_store_sweep(const char *folder, bool unused, embla_sweep_report *out)
{
    sweeping s = {
        .path = folder ? folder : embla_system_memory_folder(), .named = true, .unused = unused};
    if (!s.path)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "this system has no folder for files in memory; name the folder of the "
                          "copies");
    EMBLA_TRY(embla_io_open_folder(s.path, &s.folder));
    embla_status status = embla_io_list(s.folder, s.path, sweep_entry, &s);
    embla_io_drop(s.folder);
    EMBLA_TRY(status);
    if (out) *out = s.report;
    return EMBLA_OK;
}
