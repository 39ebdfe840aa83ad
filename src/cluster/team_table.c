/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that have not changed since they were saved or loaded are not written again to the same
 * folder.
 */
#include "cluster/team_table.h"

#include <stdio.h>
#include <string.h>

#include "files/io.h"

enum { PATH = EMBLA_TEAM_PATH, SENTENCE = 80 };

embla_status embla_team_table_publish(embla_team_table *t)
{
    t->kept[0] = '\0';
    return embla_sharded_publish(t->sharded);
}

static embla_status folder_of(const embla_team_table *t, const char *path, const char *name,
                              char out[PATH])
{
    int n = snprintf(out, PATH, "%s.%s%s", path, t->suffix, name);
    if (n >= 0 && n < PATH) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: the path needs %d bytes, but there is room for %d", path, n,
                      (int)PATH);
}

/* Rows of this step may be there already, without a file that needs them: a save may have been
 * interrupted before its file was there. */
static embla_status make_way(const embla_team_table *t, const char *path, const char *folder)
{
    char index[PATH];
    EMBLA_TRY(folder_of(t, path, "/" EMBLA_SHARDED_INDEX, index));
    EMBLA_TRY(embla_io_folder(folder));
    if (embla_io_readable(EMBLA_HERE, index)) embla_io_remove(EMBLA_HERE, index);
    return EMBLA_OK;
}

bool embla_team_table_kept(const embla_team_table *t, const char *path)
{
    size_t n = strlen(path);
    return strncmp(t->kept, path, n) == 0 && t->kept[n] == '.' &&
           strcmp(t->kept + n + 1, t->suffix) == 0;
}

embla_status embla_team_table_save(embla_team_table *t, embla_optim *optim, const char *path,
                                   int64_t step)
{
    const embla_comm *comm = t->sharded->comm;
    char folder[PATH], why[SENTENCE];
    if (embla_team_table_kept(t, path)) return EMBLA_OK; /* no row has changed since */
    EMBLA_TRY(folder_of(t, path, "", folder));
    (void)snprintf(why, sizeof why, "it cannot create the folder of %s", t->what);
    embla_status status = comm->rank == 0 ? make_way(t, path, folder) : EMBLA_OK;
    EMBLA_TRY(embla_comm_agree(comm, status, why));
    EMBLA_TRY(embla_sharded_save(t->sharded, optim, folder, step));
    memcpy(t->kept, folder, sizeof folder);
    return EMBLA_OK;
}

embla_status embla_team_table_load(embla_team_table *t, embla_optim *optim, const char *path,
                                   int64_t step)
{
    int64_t saved = 0;
    char folder[PATH];
    t->kept[0] = '\0';
    EMBLA_TRY(folder_of(t, path, "", folder));
    EMBLA_TRY(embla_sharded_load(t->sharded, optim, folder, &saved));
    if (saved != step)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has the %s of step %" PRId64
                          ", but the checkpoint is of step %" PRId64,
                          folder, t->what, saved, step);
    memcpy(t->kept, folder, sizeof folder);
    return EMBLA_OK;
}
