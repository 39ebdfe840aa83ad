/* SPDX-License-Identifier: Apache-2.0 */
/* The one file in front of the system's file calls (system/system.h), for all systems: messages,
 * calls that a signal interrupts, short transfers, and one countdown for injected failures: a test
 * chooses which call fails, and so can check that every caller handles it. */
#include "files/io.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/injected.h"
#include "system/system_memory.h"

static atomic_size_t live;
static atomic_size_t most_at_once; /* bytes per read or write; 0 means no limit */

void embla_io_fail(size_t n, bool forever, embla_system_error error)
{
    embla_inject(EMBLA_INJECT_FILE, n, forever, error);
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

bool embla_io_must_fail(embla_outcome *out)
{
    return embla_injected(EMBLA_INJECT_FILE, out);
}

size_t embla_io_at_most(size_t bytes)
{
    size_t most = atomic_load(&most_at_once);
    if (most == 0 || most > (size_t)1 << 30)
        most = (size_t)1 << 30; /* below Linux's limit of 2 GiB per call */
    return bytes < most ? bytes : most;
}

/* Reports a call that failed. */
static embla_status refused(const char *what, const char *name, embla_outcome failed)
{
    char why[128];
    embla_status status =
        failed.error == EMBLA_SYSTEM_NOT_FOUND ? EMBLA_ERR_NOT_FOUND : EMBLA_ERR_IO;
    if (failed.error == EMBLA_SYSTEM_NO_MEMORY) status = EMBLA_ERR_MEMORY;
    embla_system_describe(failed.number, why, sizeof why);
    return embla_fail(status, "%.256s: cannot %s: %s", name, what, why);
}

static bool interrupted(embla_outcome done)
{
    return done.error == EMBLA_SYSTEM_INTERRUPTED;
}

embla_status embla_io_open(embla_folder folder, const char *name, unsigned intents, unsigned mode,
                           embla_handle *out)
{
    return embla_io_open_as(folder, name, name, intents, mode, out);
}

embla_status embla_io_open_as(embla_folder folder, const char *name, const char *shown,
                              unsigned intents, unsigned mode, embla_handle *out)
{
    embla_outcome done;
    embla_handle file = EMBLA_NO_FILE;
    do
        if (!embla_io_must_fail(&done))
            done = embla_system_open(folder, name, intents, mode, &file);
    while (interrupted(done));
    if (done.error == EMBLA_SYSTEM_LINK)
        return embla_fail(EMBLA_ERR_IO, "%.256s is a symbolic link", shown);
    if (!embla_worked(done)) {
        bool creates = (intents & (EMBLA_OPEN_CREATE | EMBLA_OPEN_NEW)) != 0;
        return refused(creates ? "create it" : "open it", shown, done);
    }
    atomic_fetch_add(&live, 1);
    *out = file;
    return EMBLA_OK;
}

embla_status embla_io_facts(embla_handle file, const char *name, embla_file_facts *out)
{
    embla_file_facts found;
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_facts(file, &found);
    if (!embla_worked(done)) return refused("get its size", name, done);
    *out = found;
    return EMBLA_OK;
}

embla_status embla_io_facts_at(embla_folder folder, const char *name, bool follow,
                               embla_file_facts *out)
{
    embla_file_facts found;
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_facts_at(folder, name, follow, &found);
    if (!embla_worked(done)) return refused("open it", name, done);
    *out = found;
    return EMBLA_OK;
}

/* Reads up to `bytes` bytes. If direct is true, stops after a part that is not whole units. */
static embla_status read_parts(embla_handle file, const char *name, uint64_t offset, size_t bytes,
                               void *out, bool direct, size_t *got)
{
    size_t done = 0;
    while (done < bytes) {
        size_t n = 0;
        embla_outcome ended;
        if (!embla_io_must_fail(&ended))
            ended = embla_system_read(file, offset + done, (char *)out + done,
                                      embla_io_at_most(bytes - done), &n);
        if (interrupted(ended)) continue;
        if (!embla_worked(ended)) return refused("read it", name, ended);
        done += n;
        if (n == 0 || (direct && n % EMBLA_DIRECT != 0))
            break; /* the end of the file; from an unaligned offset no direct read is possible */
    }
    *got = done;
    return EMBLA_OK;
}

embla_status embla_io_pread(embla_handle file, const char *name, uint64_t offset, size_t bytes,
                            void *out, size_t *got)
{
    return read_parts(file, name, offset, bytes, out, false, got);
}

embla_handle embla_io_direct(embla_handle file)
{
    embla_handle direct = EMBLA_NO_FILE;
    embla_outcome done;
    do
        if (!embla_io_must_fail(&done)) done = embla_system_direct(file, &direct);
    while (interrupted(done));
    if (!embla_worked(done)) return EMBLA_NO_FILE;
    atomic_fetch_add(&live, 1);
    return direct;
}

embla_status embla_io_pread_direct(embla_handle file, const char *name, uint64_t offset,
                                   size_t bytes, void *out, size_t *got)
{
    return read_parts(file, name, offset, bytes, out, true, got);
}

embla_status embla_io_event(embla_handle *out)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_event(out);
    if (!embla_worked(done)) return refused("create an eventfd", "tickets", done);
    atomic_fetch_add(&live, 1);
    return EMBLA_OK;
}

void embla_io_signal(embla_handle event)
{
    while (interrupted(embla_system_signal(event))) continue;
}

void embla_io_forget(embla_handle file, uint64_t offset, uint64_t bytes)
{
    embla_system_forget(file, offset, bytes);
}

embla_status embla_io_write(embla_handle file, const char *name, const void *bytes, size_t count)
{
    for (size_t done = 0; done < count;) {
        size_t n = 0;
        embla_outcome ended;
        if (!embla_io_must_fail(&ended))
            ended = embla_system_write(file, (const char *)bytes + done,
                                       embla_io_at_most(count - done), &n);
        if (interrupted(ended)) continue;
        if (!embla_worked(ended)) return refused("write it", name, ended);
        done += n;
    }
    return EMBLA_OK;
}

/* Allocates the space of a part of a file. If lenient is true, a file system that cannot do this
 * is not an error. */
static embla_status allocate(embla_handle file, const char *name, uint64_t offset, uint64_t bytes,
                             bool lenient)
{
    embla_outcome done;
    if (bytes > (uint64_t)INT64_MAX || offset > (uint64_t)INT64_MAX - bytes)
        return embla_fail(EMBLA_ERR_IO,
                          "%.256s: cannot reserve %" PRIu64 " bytes at %" PRIu64
                          ": a file ends at 2^63 at the latest",
                          name, bytes, offset);
    do
        if (!embla_io_must_fail(&done)) done = embla_system_allocate(file, offset, bytes);
    while (interrupted(done));
    if (embla_worked(done) || (lenient && done.error == EMBLA_SYSTEM_UNSUPPORTED)) return EMBLA_OK;
    char what[64];
    (void)snprintf(what, sizeof what, "reserve %" PRIu64 " bytes for it", bytes);
    return refused(what, name, done);
}

embla_status embla_io_reserve(embla_handle file, const char *name, uint64_t bytes)
{
    return allocate(file, name, 0, bytes, true);
}

embla_status embla_io_cut(embla_handle file, const char *name, uint64_t size)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_set_size(file, size);
    return embla_worked(done) ? EMBLA_OK : refused("set its length", name, done);
}

/* Finds the mode of a new file by creating an empty one. umask() can only be read by setting it,
 * which other threads would notice; /proc may be missing; a folder's default ACL replaces the
 * mask. */
static embla_status find_new_mode(embla_folder folder, const char *probe, const char *shown,
                                  unsigned *out)
{
    embla_file_facts found;
    embla_handle file = EMBLA_NO_FILE;
    EMBLA_TRY(
        embla_io_open_as(folder, probe, shown, EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW, 0666, &file));
    embla_status status = embla_io_facts(file, shown, &found);
    embla_io_remove(folder, probe);
    embla_io_drop(file);
    if (status == EMBLA_OK) *out = found.mode & 0666;
    return status;
}

embla_status embla_io_mode(embla_handle file, const char *name, embla_folder folder,
                           const char *old, const char *probe)
{
    embla_file_facts found = {.kind = EMBLA_IS_DEVICE};
    embla_outcome done;
    unsigned mode = 0;
    if (!embla_io_must_fail(&done)) done = embla_system_facts_at(folder, old, false, &found);
    /* If the old mode is unknown, fail: a private file must not become readable by everyone. */
    if (!embla_worked(done) && done.error != EMBLA_SYSTEM_NOT_FOUND)
        return refused("set its mode", name, done);
    if (embla_worked(done) && found.kind == EMBLA_REGULAR_FILE)
        mode = found.mode & 01777;
    else
        EMBLA_TRY(find_new_mode(folder, probe, name, &mode));
    done = embla_system_set_mode(file, mode);
    return embla_worked(done) ? EMBLA_OK : refused("set its mode", name, done);
}

embla_status embla_io_lock(embla_handle file, const char *name, embla_handle *keeper)
{
    embla_file_facts found;
    embla_outcome done;
    *keeper = EMBLA_NO_FILE;
    do
        if (!embla_io_must_fail(&done)) done = embla_system_lock(file, EMBLA_LOCK_ALONE);
    while (interrupted(done));
    if (done.error == EMBLA_SYSTEM_BUSY) return EMBLA_OK; /* embla_io_sweep has locked it */
    if (!embla_worked(done) && done.error != EMBLA_SYSTEM_UNSUPPORTED)
        return refused("lock it", name, done);
    done = embla_system_facts(file, &found);
    if (embla_worked(done) && found.names == 0) return EMBLA_OK; /* embla_io_sweep removed it */
    if (embla_worked(done)) done = embla_system_again(file, keeper);
    if (!embla_worked(done)) return refused("lock it", name, done);
    atomic_fetch_add(&live, 1);
    return EMBLA_OK;
}

embla_status embla_io_sync(embla_handle file, const char *name)
{
    /* A failed sync is never repeated: the system may have dropped the pages (fsyncgate). */
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_sync(file);
    return embla_worked(done) ? EMBLA_OK : refused("sync it to the disk", name, done);
}

embla_status embla_io_close(embla_handle file, const char *name)
{
    embla_outcome told, done;
    bool fails = embla_io_must_fail(&told);
    done = embla_system_close(file);
    atomic_fetch_sub(&live, 1);
    if (fails) done = told;
    return embla_worked(done) || interrupted(done) ? EMBLA_OK : refused("close it", name, done);
}

void embla_io_drop(embla_handle file)
{
    (void)embla_system_close(file);
    atomic_fetch_sub(&live, 1);
}

/* Where a rename always replaces, a second name for the file does not: the first is then removed.
 */
static embla_outcome rename_new(embla_folder folder, const char *from, const char *to)
{
    embla_outcome done = embla_system_add_name(folder, from, to);
    if (embla_worked(done)) embla_io_remove(folder, from);
    return done;
}

embla_status embla_io_rename(embla_folder folder, const char *from, const char *to,
                             const char *shown, bool replace)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_rename(folder, from, to, replace);
    if (!replace && done.error == EMBLA_SYSTEM_UNSUPPORTED) done = rename_new(folder, from, to);
    if (embla_worked(done)) return EMBLA_OK;
    if (!replace && done.error == EMBLA_SYSTEM_EXISTS)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s already exists", shown);
    return refused("rename the temporary file to it", shown, done);
}

void embla_io_remove(embla_folder folder, const char *name)
{
    (void)embla_system_remove(folder, name);
}

void embla_io_remove_folder(embla_folder folder, const char *name)
{
    (void)embla_system_remove_folder(folder, name);
}

bool embla_io_sweep(embla_folder folder, const char *name)
{
    embla_file_facts found, named;
    embla_handle file = EMBLA_NO_FILE;
    if (!embla_worked(
            embla_system_open(folder, name, EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &file)))
        return false;
    /* Remove it while the lock is held: a process that has just created it, and locks it after us,
     * then sees that it is gone. But the name may be that of a newer file by now. */
    bool unused = embla_worked(embla_system_facts(file, &found)) &&
                  found.kind == EMBLA_REGULAR_FILE &&
                  embla_worked(embla_system_lock(file, EMBLA_LOCK_ALONE)) &&
                  embla_worked(embla_system_facts_at(folder, name, false, &named)) &&
                  embla_same_file(named.id, found.id);
    if (unused) embla_io_remove(folder, name);
    (void)embla_system_close(file);
    return unused;
}

static embla_status map_file(embla_handle file, const char *name, size_t bytes, embla_map_kind kind,
                             void **out)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_map(file, bytes, kind, out);
    if (!embla_worked(done)) return refused("map it", name, done);
    atomic_fetch_add(&live, 1);
    return EMBLA_OK;
}

embla_status embla_io_map(embla_handle file, const char *name, size_t bytes, void **out)
{
    return map_file(file, name, bytes, EMBLA_MAP_READ, out);
}

embla_status embla_io_map_private(embla_handle file, const char *name, size_t bytes, void **out)
{
    return map_file(file, name, bytes, EMBLA_MAP_PRIVATE, out);
}

void embla_io_unmap(void *memory, size_t bytes)
{
    embla_system_unmap(memory, bytes);
    atomic_fetch_sub(&live, 1);
}

/* Returns the start of the pages that hold these bytes; *length is the length of those pages. */
static char *pages_of(const void *memory, size_t bytes, size_t *length, size_t *page)
{
    *page = embla_system_page();
    size_t front = (uintptr_t)memory % *page;
    *length = (front + bytes + *page - 1) / *page * *page;
    return (char *)(uintptr_t)memory - front;
}

embla_status embla_io_random(const void *memory, size_t bytes, const char *name)
{
    size_t length, page;
    embla_outcome done;
    char *start = pages_of(memory, bytes, &length, &page);
    if (!embla_io_must_fail(&done)) done = embla_system_random_order(start, length);
    return embla_worked(done)
               ? EMBLA_OK
               : refused("advise the system that it is read in random order", name, done);
}

embla_status embla_io_resident(const void *memory, size_t bytes, const char *name, int64_t *out)
{
    unsigned char flags[4096] = {0}; /* one for each page */
    size_t length, page;
    char *start = pages_of(memory, bytes, &length, &page);
    const char *first = memory, *end = first + bytes;
    int64_t found = 0;
    for (size_t at = 0; at < length; at += sizeof flags * page) {
        size_t piece = length - at < sizeof flags * page ? length - at : sizeof flags * page;
        embla_outcome done;
        if (!embla_io_must_fail(&done)) done = embla_system_resident(start + at, piece, flags);
        if (done.error == EMBLA_SYSTEM_UNSUPPORTED) {
            *out = -1;
            return EMBLA_OK;
        }
        if (!embla_worked(done))
            return refused("find out how much of it is in the page cache", name, done);
        for (size_t i = 0; i < piece / page; i++) {
            const char *low = start + at + i * page, *high = low + page;
            if (!(flags[i] & 1)) continue;
            found += ((high < end ? high : end) - (low > first ? low : first));
        }
    }
    *out = found;
    return EMBLA_OK;
}

/* Syncs the parent folder of a path to the disk. */
static embla_status sync_parent(const char *path)
{
    char parent[4096] = ".";
    embla_folder folder = EMBLA_NO_FILE;
    size_t length = strlen(path);
    while (length > 1 && path[length - 1] == '/') length--;
    while (length > 0 && path[length - 1] != '/') length--;
    if (length >= sizeof parent) return EMBLA_OK; /* systems refuse paths that long */
    if (length > 0) (void)snprintf(parent, sizeof parent, "%.*s", (int)length, path);
    EMBLA_TRY(embla_io_open_folder(parent, &folder));
    embla_status status = embla_io_sync(folder, parent);
    embla_io_drop(folder);
    return status;
}

const char *embla_io_slash(const char *path)
{
    return embla_system_slash(path);
}

embla_status embla_io_open_folder(const char *path, embla_folder *out)
{
    return embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ | EMBLA_OPEN_FOLDER, 0, out);
}

embla_status embla_io_folder(const char *path)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_make_folder(path, 0777);
    if (done.error == EMBLA_SYSTEM_EXISTS) return EMBLA_OK;
    return embla_worked(done) ? sync_parent(path) : refused("create the folder", path, done);
}

bool embla_io_readable(embla_folder folder, const char *name)
{
    return embla_system_readable(folder, name);
}

size_t embla_io_link(embla_folder folder, const char *name, char *out, size_t size)
{
    size_t length = 0;
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_link(folder, name, out, size, &length);
    if (!embla_worked(done) || length >= size) return 0;
    out[length] = '\0';
    return length;
}

size_t embla_io_path(embla_handle file, char *out, size_t size)
{
    embla_outcome done;
    return embla_io_must_fail(&done) ? 0 : embla_system_path(file, out, size);
}

embla_status embla_io_list(embla_folder folder, const char *name,
                           embla_status (*each)(void *context, const char *entry), void *context)
{
    embla_status status = EMBLA_OK;
    embla_folder again = EMBLA_NO_FILE;
    embla_names_list *list = NULL;
    const char *entry = NULL;
    embla_outcome done;
    EMBLA_TRY(embla_io_open_as(folder, ".", name, EMBLA_OPEN_READ | EMBLA_OPEN_FOLDER, 0, &again));
    if (!embla_io_must_fail(&done)) done = embla_system_list(again, &list);
    if (!embla_worked(done)) {
        embla_io_drop(again);
        return refused("list it", name, done);
    }
    while (status == EMBLA_OK) {
        if (!embla_io_must_fail(&done)) done = embla_system_list_next(list, &entry);
        if (!embla_worked(done)) status = refused("list it", name, done);
        if (status != EMBLA_OK || !entry) break;
        if (strcmp(entry, ".") == 0 || strcmp(entry, "..") == 0) continue;
        status = each(context, entry);
    }
    embla_system_list_end(list);
    atomic_fetch_sub(&live, 1);
    return status;
}

/* ---- one copy for many processes (store/shared.c) ---- */

embla_status embla_io_lock_try(embla_handle file, const char *name, bool *got)
{
    embla_outcome done;
    do
        if (!embla_io_must_fail(&done)) done = embla_system_lock(file, EMBLA_LOCK_ALONE);
    while (interrupted(done));
    if (!embla_worked(done) && done.error != EMBLA_SYSTEM_BUSY)
        return refused("lock it", name, done);
    *got = embla_worked(done);
    return EMBLA_OK;
}

bool embla_io_lock_shared(embla_handle file)
{
    embla_outcome done;
    do done = embla_system_lock(file, EMBLA_LOCK_SHARED);
    while (interrupted(done));
    return done.error != EMBLA_SYSTEM_BUSY;
}

bool embla_io_lock_holder(embla_handle file, long *process, unsigned *user)
{
    return embla_system_lock_holder(file, process, user);
}

bool embla_io_is_foreign(embla_folder folder, const char *name)
{
    embla_file_facts found;
    return embla_worked(embla_system_facts_at(folder, name, false, &found)) &&
           found.user != embla_system_user();
}

void embla_io_unlock(embla_handle file)
{
    embla_system_unlock(file);
    embla_io_drop(file);
}

embla_status embla_io_claim(embla_handle file, const char *name, uint64_t offset, uint64_t bytes)
{
    return allocate(file, name, offset, bytes, false);
}

embla_status embla_io_space(embla_handle file, const char *name, uint64_t *out)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_space(file, out);
    return embla_worked(done) ? EMBLA_OK
                              : refused("get the free space of its file system", name, done);
}

embla_status embla_io_map_shared(embla_handle file, const char *name, size_t bytes, void **out)
{
    return map_file(file, name, bytes, EMBLA_MAP_SHARED, out);
}

bool embla_io_huge_shared(void *memory, size_t bytes)
{
    return embla_system_huge_shared(memory, bytes);
}

void embla_io_touch_huge(const void *memory, size_t bytes)
{
    embla_system_touch_huge(memory, bytes);
}

embla_status embla_io_erase(embla_folder folder, const char *name, const char *shown)
{
    embla_outcome done;
    if (!embla_io_must_fail(&done)) done = embla_system_remove(folder, name);
    return embla_worked(done) ? EMBLA_OK : refused("remove it", shown, done);
}
