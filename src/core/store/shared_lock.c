/* SPDX-License-Identifier: Apache-2.0 */
/* Who builds a shared copy: the lock, and the names of unfinished files.
 *
 * The folder is usually open to all users, so a file of another user may have any name that can be
 * guessed. The name of a temporary file is therefore random. A lock that belongs to another user is
 * not waited for: the copy is built without it. A lock of this user is waited for until a deadline.
 */
#include <stdio.h>
#include <string.h>

#include "files/io.h"
#include "store/shared.h"

enum { TRIES = 100 };

/* ---- the lock ---- */

/* Reports that another process holds the lock, and which one if the system tells. */
static embla_status fail_busy(const embla_copy *c, embla_handle file)
{
    char who[96] = "another process", limit[64] = "";
    long process = 0;
    unsigned user = 0;
    if (embla_io_lock_holder(file, &process, &user))
        (void)snprintf(who, sizeof who, "process %ld of user %u", process, user);
    if (c->waited > 0)
        (void)snprintf(limit, sizeof limit, "; waited %.3g s, the limit is %.3g s", c->waited,
                       c->patience);
    return embla_fail(EMBLA_ERR_BUSY, "%.256s: %s is building this copy (it holds %.256s)%s",
                      c->path, who, c->lock_path, limit);
}

/* Waits for the lock. Progress is reported now and then, so the caller can cancel. */
static embla_status wait_for_lock(embla_copy *c, embla_handle file)
{
    double pause = 0.001;
    for (;;) {
        bool got = false;
        EMBLA_TRY(embla_io_lock_try(file, c->lock_path, &got));
        if (got) return EMBLA_OK;
        EMBLA_TRY(embla_copy_report(c, "wait", 0));
        if (c->patience > 0 && c->waited >= c->patience) return fail_busy(c, file);
        if (c->patience > 0 && pause > c->patience - c->waited) pause = c->patience - c->waited;
        embla_system_sleep((int64_t)(pause * 1e9));
        c->waited += pause;
        if (pause < 0.05) pause *= 2;
    }
}

/* Opens the lock, or creates it. *foreign is true, and no file is open, if its name belongs
 * to another user. */
static embla_status open_lock(const embla_copy *c, bool create, embla_handle *out, bool *foreign)
{
    const unsigned intents = EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK;
    embla_file_facts found = {0};
    embla_handle file = -1;
    embla_status status =
        embla_io_open_as(c->folder, c->lock_name, c->lock_path, intents, 0, &file);
    if (status == EMBLA_ERR_NOT_FOUND && create)
        status = embla_io_open_as(c->folder, c->lock_name, c->lock_path,
                                  intents | EMBLA_OPEN_CREATE, 0600, &file);
    if (status != EMBLA_OK) {
        *foreign = embla_io_is_foreign(c->folder, c->lock_name);
        return *foreign ? EMBLA_OK : status;
    }
    status = embla_io_facts(file, c->lock_path, &found);
    *foreign = status == EMBLA_OK && found.user != embla_system_user();
    if (status == EMBLA_OK && !*foreign)
        *out = file;
    else
        embla_io_drop(file);
    return status;
}

/* If the lock file was removed while we waited, it is created again. */
embla_status embla_copy_lock(embla_copy *c)
{
    for (;;) {
        embla_file_facts found = {0};
        embla_handle file = -1;
        bool foreign = false;
        embla_status status = open_lock(c, true, &file, &foreign);
        if (foreign) return EMBLA_OK;
        if (status == EMBLA_OK) status = wait_for_lock(c, file);
        if (status == EMBLA_OK) status = embla_io_facts(file, c->lock_path, &found);
        if (status == EMBLA_OK && found.names > 0) {
            c->lock = file;
            return EMBLA_OK;
        }
        if (file >= 0) embla_io_unlock(file);
        if (status == EMBLA_OK) continue;
        embla_io_sweep(c->folder, c->lock_name); /* unless another process holds it */
        return status;
    }
}

/* The file is removed while the lock is held: processes that wait for it notice that it is gone. */
void embla_copy_unlock(embla_copy *c)
{
    if (c->lock < 0) return;
    embla_io_remove(c->folder, c->lock_name);
    embla_io_unlock(c->lock);
    c->lock = -1;
}

embla_status embla_copy_why_missing(const embla_copy *c)
{
    bool got = true, foreign = false;
    embla_handle file = -1;
    embla_status status = open_lock(c, false, &file, &foreign);
    if (status == EMBLA_OK && !foreign) {
        status = embla_io_lock_try(file, c->lock_path, &got);
        if (status == EMBLA_OK && !got) status = fail_busy(c, file);
        embla_io_unlock(file);
    }
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) return status;
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.256s: there is no shared copy", c->path);
}

/* ---- temporary files ---- */

/* Removes an entry that has exactly the form of a temporary name, unless its builder is alive. */
static embla_status sweep_one(void *context, const char *entry)
{
    const embla_copy *c = context;
    size_t length = strlen(c->temporary);
    if (strncmp(entry, c->temporary, length) == 0 &&
        strspn(entry + length, "0123456789abcdef") == 16 && entry[length + 16] == '\0')
        embla_io_sweep(c->folder, entry);
    return EMBLA_OK;
}

embla_status embla_copy_temporary(const embla_copy *c, unsigned mode, char name[EMBLA_COPY_NAME],
                                  embla_handle *file, embla_handle *keeper)
{
    EMBLA_TRY(embla_io_list(c->folder, c->path, sweep_one, (void *)(uintptr_t)c));
    for (int try = 0; try < TRIES; try++) {
        uint64_t number = 0;
        if (!embla_system_random(&number, sizeof number))
            number = (uint64_t)embla_system_process() << 32 |
                     (uint64_t)try; /* O_EXCL refuses an existing name */
        (void)snprintf(name, EMBLA_COPY_NAME, "%.230s%016" PRIx64, c->temporary, number);
        EMBLA_TRY(embla_io_open_as(c->folder, name, c->path,
                                   EMBLA_OPEN_READ | EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW, mode,
                                   file));
        embla_status status = embla_io_lock(*file, c->path, keeper);
        if (status == EMBLA_OK && *keeper >= 0) return EMBLA_OK;
        embla_io_remove(c->folder, name);
        embla_io_drop(*file);
        EMBLA_TRY(status);
    }
    return embla_fail(EMBLA_ERR_IO,
                      "%.256s: another process removed its temporary file %d times; do other "
                      "processes write to this folder?",
                      c->path, TRIES);
}
