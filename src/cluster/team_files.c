/* SPDX-License-Identifier: Apache-2.0 */
/* Files of a team. Rank 0 writes the file of a training, every rank reads it.
 *
 * Rows that are divided among ranks are not in the file but in folders beside it: n-gram rows in
 * FILE.ngram, token rows in FILE.tokens, those of a separate head in FILE.head. If FILE is there
 * already and needs them, the new rows go to FILE.2.ngram and so on, or back; the metadata say
 * which. The folders that are no longer needed are removed when the new file is there.
 */
#include <stdio.h>

#include "cluster/comm.h"
#include "cluster/team_model.h"
#include "cluster/team_table.h"
#include "cluster/train_team.h"
#include "files/io.h"

enum { PATH = EMBLA_TEAM_PATH };

typedef embla_team team;

/* Rank 0 alone writes. */
static bool writes(const team *w)
{
    return w->comm->rank == 0;
}

static bool divided(const team *w)
{
    return w->grams || w->tokens;
}

/* EMBLA_OK if all ranks have EMBLA_OK. Other ranks may take long to answer: they read or write. */
static embla_status agree(const team *w, embla_status status, const char *what)
{
    const embla_comm *c = w->comm;
    embla_status waited = c->barrier(c->owner, EMBLA_COMM_SAVING);
    if (status == EMBLA_OK) EMBLA_TRY(waited); /* a failure of this rank comes first */
    return embla_comm_agree(c, status, what);
}

embla_train_split embla_team_split(const embla_team *w)
{
    return (embla_train_split){.micro_batches = w->options.micro_batches,
                               .fast = w->options.fast,
                               .ngrams = w->options.shard_ngrams,
                               .tokens = w->options.shard_tokens};
}

/* ---- divided rows ---- */

/* What the names of the folders of divided rows begin with. */
static embla_status rows_beside(const char *path, bool second, char out[PATH])
{
    int n = snprintf(out, PATH, "%s%s", path, second ? ".2" : "");
    if (n >= 0 && n < PATH) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: the path needs %d bytes, but there is room for %d", path, n,
                      (int)PATH);
}

/* Whether the folders beside `path` have the divided rows as they are. */
static bool has_rows(const team *w, const char *path)
{
    return (!w->grams || embla_team_grams_kept(w->grams, path)) &&
           (!w->tokens || embla_team_tokens_kept(w->tokens, path));
}

/* Chooses the folders: those that the file at `path` does not need, or those that have the rows as
 * they are. */
static embla_status choose_rows(const team *w, const char *path, bool *second)
{
    embla_train_file there;
    char beside[PATH];
    *second = false;
    embla_status status = embla_train_file_open(path, &there);
    embla_train_file_close(&there);
    if (status == EMBLA_ERR_IO || status == EMBLA_ERR_MEMORY) return status;
    if (status != EMBLA_OK) return EMBLA_OK; /* no file, or none that could be loaded */
    EMBLA_TRY(rows_beside(path, there.state.split.second, beside));
    *second = has_rows(w, beside) ? there.state.split.second : !there.state.split.second;
    return EMBLA_OK;
}

/* Saves the divided rows. Rank 0 chooses the folders. */
static embla_status save_rows(const team *w, const embla_train *t, const char *path, bool *second)
{
    const embla_comm *c = w->comm;
    char beside[PATH];
    embla_status status = writes(w) ? choose_rows(w, path, second) : EMBLA_OK;
    EMBLA_TRY(agree(w, status, "it cannot read the checkpoint that it replaces"));
    int64_t chosen = writes(w) && *second;
    EMBLA_TRY(c->allreduce(c->owner, &chosen, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM));
    *second = chosen > 0;
    EMBLA_TRY(rows_beside(path, *second, beside));
    if (w->grams) EMBLA_TRY(embla_team_grams_save(w->grams, t->ngram, beside, t->step));
    return w->tokens ? embla_team_tokens_save(w->tokens, beside, t->step) : EMBLA_OK;
}

static embla_status load_rows(const team *w, const embla_train *t, const embla_train_file *file)
{
    char beside[PATH];
    int64_t step = file->state.saved.step;
    EMBLA_TRY(rows_beside(file->path, file->state.split.second, beside));
    if (w->grams) EMBLA_TRY(embla_team_grams_load(w->grams, t->ngram, beside, step));
    return w->tokens ? embla_team_tokens_load(w->tokens, beside, step) : EMBLA_OK;
}

static embla_status remove_entry(void *context, const char *name)
{
    embla_io_remove(*(const embla_folder *)context, name);
    return EMBLA_OK;
}

/* Removes the folders of divided rows beside a file. */
static void remove_rows(embla_folder folder, const char *name, bool second)
{
    static const char *const suffixes[] = {"ngram", "tokens", "head"};
    char rows[PATH];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        embla_folder handle = -1;
        int n = snprintf(rows, sizeof rows, "%s%s.%s", name, second ? ".2" : "", suffixes[i]);
        if (n < 0 || n >= PATH || !embla_io_readable(folder, rows) ||
            embla_io_open(folder, rows, EMBLA_OPEN_READ | EMBLA_OPEN_FOLDER, 0, &handle) !=
                EMBLA_OK)
            continue;
        if (embla_io_list(handle, rows, remove_entry, &handle) == EMBLA_OK)
            embla_io_remove_folder(folder, rows);
        embla_io_drop(handle);
    }
}

static void remove_beside(embla_folder folder, const char *name)
{
    remove_rows(folder, name, false);
    remove_rows(folder, name, true);
}

/* ---- saving ---- */

embla_status embla_team_save(const embla_train *t, const char *path, embla_train_state *state)
{
    const team *w = t->team;
    embla_status status = EMBLA_OK;
    state->split = embla_team_split(w);
    EMBLA_TRY(embla_team_gather(w, t, t->mean, false));
    EMBLA_TRY(embla_team_gather(w, t, t->squares, false));
    if (divided(w)) EMBLA_TRY(save_rows(w, t, path, &state->split.second));
    if (writes(w)) status = embla_train_write(t, path, state);
    if (status == EMBLA_OK && writes(w) && divided(w))
        remove_rows(EMBLA_HERE, path, !state->split.second);
    return agree(w, status, "it cannot save the training");
}

embla_status embla_team_checkpoint(const embla_train *t, const char *folder, const char *path,
                                   size_t keep, const char *note)
{
    const team *w = t->team;
    embla_status status = writes(w) ? embla_io_folder(folder) : EMBLA_OK;
    EMBLA_TRY(embla_comm_agree(w->comm, status, "it cannot create the folder"));
    status = embla_train_save(t, path, note);
    if (status == EMBLA_ERR_IO) return embla_train_report_kept(status, folder, t->step);
    EMBLA_TRY(status);
    if (writes(w)) status = embla_train_remove_old(folder, keep, t->step, remove_beside);
    return agree(w, status, "it cannot remove old checkpoints");
}

embla_status embla_team_save_model(const embla_train *t, const char *folder,
                                   const char *const *words)
{
    const team *w = t->team;
    embla_status status = EMBLA_OK;
    if (divided(w))
        status = embla_team_model_save(w->grams, w->tokens, t->gpt, folder, words);
    else if (writes(w))
        status = embla_gpt_save(t->gpt, folder, words);
    return agree(w, status, "it cannot save the model");
}

/* ---- loading ---- */

/* No rank changes before all have checked their files. */
static embla_status load_file(const team *w, embla_train *t, embla_train_file *file)
{
    static const char cannot[] = "it cannot load the checkpoint";
    embla_train_state ours;
    embla_train_state_of(t, &ours);
    ours.split = embla_team_split(w);
    embla_status status = embla_train_file_open(file->path, file);
    if (status == EMBLA_OK) status = embla_train_file_check(t, &ours, file);
    EMBLA_TRY(agree(w, status, cannot));
    EMBLA_TRY(agree(w, embla_train_file_copy(t, file), cannot));
    if (divided(w)) EMBLA_TRY(load_rows(w, t, file));
    embla_train_file_done(t, file);
    return EMBLA_OK;
}

embla_status embla_team_load(embla_train *t, const char *path)
{
    embla_train_file file = {.path = path};
    embla_status status = load_file(t->team, t, &file);
    embla_train_file_close(&file);
    return status;
}

embla_status embla_team_describe_saved(const char *path, embla_team_options *out)
{
    embla_train_file file;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    embla_status status = embla_train_file_open(path, &file);
    const embla_train_split *split = &file.state.split;
    if (status == EMBLA_OK)
        *out = (embla_team_options){.micro_batches = split->micro_batches,
                                    .fast = split->fast,
                                    .shard_ngrams = split->ngrams,
                                    .shard_tokens = split->tokens};
    embla_train_file_close(&file);
    return status;
}
