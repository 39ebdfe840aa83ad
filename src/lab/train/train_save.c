/* SPDX-License-Identifier: Apache-2.0 */
/* Saves a training run in one safetensors file, and loads it.
 *
 *   model.NAME                 each tensor of the model, rows x dim
 *   optimizer.NAME.mean        state of AdamW
 *   optimizer.NAME.squares
 *   ngram.table, ngram.squares rows x dim, rows x 1: only if the model has n-grams
 *   metadata                   train/train_state.c, and "checksum"
 *
 * Rows that are divided among ranks are not in the file but in folders beside it: n-gram rows in
 * FILE.ngram, token rows in FILE.tokens, those of a separate head in FILE.head. If FILE is there
 * already and needs them, the new rows go to FILE.2.ngram and so on, or back; the metadata say
 * which. The folders that are no longer needed are removed when the new file is there.
 *
 * checkpoint/saved.h writes and reads the file, and has the checksum.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/best.h"
#include "base/checked.h"
#include "files/io.h"
#include "train/train.h"

#define BEFORE "step-"
#define AFTER  ".safetensors"

enum { NAME = 96, DIGITS = 10, PATH = 4096 };

/* ---- list of tensors ---- */

static embla_status add_tensor(embla_saved *v, const embla_train *t, const embla_gpt_part *part)
{
    const embla_gpt *gpt = t->gpt;
    embla_dtype dtype = gpt->precision == EMBLA_GPT_F64 ? EMBLA_F64 : EMBLA_F32;
    size_t at = part->at * gpt->real;
    char name[NAME];
    (void)snprintf(name, sizeof name, "model.%s", part->name);
    EMBLA_TRY(embla_saved_add(v, name, dtype, part->rows, part->dim, gpt->weights + at));
    (void)snprintf(name, sizeof name, "optimizer.%s.mean", part->name);
    EMBLA_TRY(embla_saved_add(v, name, dtype, part->rows, part->dim, t->mean + at));
    (void)snprintf(name, sizeof name, "optimizer.%s.squares", part->name);
    return embla_saved_add(v, name, dtype, part->rows, part->dim, t->squares + at);
}

static embla_status list_tensors(const embla_train *t, embla_saved *v)
{
    const embla_gpt *gpt = t->gpt;
    EMBLA_TRY(embla_saved_begin(v, 3 * (uint64_t)gpt->part_count + 2));
    for (size_t i = 0; i < gpt->part_count; i++) EMBLA_TRY(add_tensor(v, t, &gpt->parts[i]));
    if (!t->ngram || t->team.sharded) return EMBLA_OK;
    embla_table *table = embla_gpt_ngram_table(t->gpt);
    embla_optim_state squares;
    EMBLA_TRY(embla_optim_state_at(t->ngram, 0, &squares));
    EMBLA_TRY(embla_saved_add(v, "ngram.table", EMBLA_F32, embla_table_rows(table),
                              embla_table_dim(table), embla_table_data(table)));
    return embla_saved_add(v, "ngram.squares", EMBLA_F32, squares.rows, squares.dim,
                           squares.values);
}

/* ---- reading ---- */

/* Opens a checkpoint: one safetensors file with the metadata of a training run. */
static embla_status open_saved(const char *path, embla_checkpoint **out, embla_train_state *state)
{
    embla_checkpoint *cp = NULL;
    EMBLA_TRY(embla_saved_open(path, "a training checkpoint", &cp));
    embla_status status = embla_train_state_read(&cp->shards[0].directory, path, state);
    if (status != EMBLA_OK) {
        embla_checkpoint_free(cp);
        return status;
    }
    *out = cp;
    return EMBLA_OK;
}

/* ---- divided rows ---- */

/* In a team, rank 0 alone writes. */
static bool writes(const embla_train *t)
{
    return t->team.rank == 0;
}

/* What the names of the folders of divided rows begin with. */
static embla_status rows_beside(const char *path, bool second, char out[PATH])
{
    int n = snprintf(out, PATH, "%s%s", path, second ? ".2" : "");
    if (n >= 0 && n < PATH) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: the path needs %d bytes, but there is room for %d", path, n,
                      (int)PATH);
}

/* Chooses the folders: those that the file at `path` does not need, or those that have the rows as
 * they are. */
static embla_status choose_rows(const embla_train *t, const char *path, bool *second)
{
    embla_checkpoint *cp = NULL;
    embla_train_state there = {0};
    char beside[PATH];
    *second = false;
    embla_status status = open_saved(path, &cp, &there);
    if (status == EMBLA_ERR_IO || status == EMBLA_ERR_MEMORY) return status;
    if (status != EMBLA_OK) return EMBLA_OK; /* no file, or none that could be loaded */
    embla_checkpoint_free(cp);
    EMBLA_TRY(rows_beside(path, there.second, beside));
    *second = t->team.has_rows(t->team.owner, beside) ? there.second : !there.second;
    return EMBLA_OK;
}

/* Saves the divided rows. Rank 0 chooses the folders. */
static embla_status save_rows(const embla_train *t, const char *path, bool *second)
{
    const embla_train_ranks *team = &t->team;
    char beside[PATH];
    embla_status status = writes(t) ? choose_rows(t, path, second) : EMBLA_OK;
    EMBLA_TRY(embla_train_agree(t, status, "it cannot read the checkpoint that it replaces", true));
    int64_t chosen = writes(t) && *second;
    EMBLA_TRY(team->total(team->owner, &chosen, 1));
    *second = chosen > 0;
    EMBLA_TRY(rows_beside(path, *second, beside));
    return team->save_rows(team->owner, t, beside);
}

static embla_status remove_entry(void *context, const char *name)
{
    embla_io_remove(*(const int *)context, name);
    return EMBLA_OK;
}

/* Removes the folders of divided rows beside a file. */
static void remove_rows(int folder, const char *name, bool second)
{
    static const char *const suffixes[] = {"ngram", "tokens", "head"};
    char rows[PATH];
    for (size_t i = 0; i < sizeof suffixes / sizeof *suffixes; i++) {
        int fd = -1,
            n = snprintf(rows, sizeof rows, "%s%s.%s", name, second ? ".2" : "", suffixes[i]);
        if (n < 0 || n >= PATH || !embla_io_readable(folder, rows) ||
            embla_io_open(folder, rows, O_RDONLY | O_DIRECTORY, 0, &fd) != EMBLA_OK)
            continue;
        if (embla_io_list(fd, rows, remove_entry, &fd) == EMBLA_OK)
            embla_io_remove_folder(folder, rows);
        embla_io_drop(fd);
    }
}

/* ---- saving ---- */

static embla_status save_all(const embla_train *t, const char *path, const embla_train_state *state,
                             embla_saved *v)
{
    embla_pair *pairs = NULL;
    size_t count = 0;
    EMBLA_TRY(list_tensors(t, v));
    EMBLA_TRY(embla_train_state_write(state, &v->arena, &pairs, &count));
    return embla_saved_write(v, pairs, count, path);
}

embla_status embla_train_save(const embla_train *train, const char *path, const char *note)
{
    embla_train_state state;
    embla_saved v = {0};
    size_t length = note ? strlen(note) : 0;
    if (!train || !path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_save: %s is NULL",
                          train ? "path" : "train");
    if (train->torn)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a load or a step of this training run failed halfway; it cannot be "
                          "saved");
    if (length >= sizeof state.saved.note)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the note has %zu bytes; it must have fewer than %zu",
                          length, sizeof state.saved.note);
    embla_train_state_of(train, &state);
    if (note) memcpy(state.saved.note, note, length + 1);
    EMBLA_TRY(embla_train_gather(train));
    if (embla_train_divided(train)) EMBLA_TRY(save_rows(train, path, &state.second));
    embla_status status = EMBLA_OK;
    if (writes(train)) status = save_all(train, path, &state, &v);
    embla_arena_free(&v.arena);
    if (status == EMBLA_OK && writes(train) && embla_train_divided(train))
        remove_rows(AT_FDCWD, path, !state.second);
    return embla_train_agree(train, status, "it cannot save the training", true);
}

embla_status embla_train_save_model(const embla_train *train, const char *folder,
                                    const char *const *words)
{
    embla_status status = EMBLA_OK;
    if (!train || !folder)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_save_model: %s is NULL",
                          train ? "folder" : "train");
    const embla_train_ranks *team = &train->team;
    if (embla_train_divided(train))
        status = team->save_model(team->owner, train->gpt, folder, words);
    else if (writes(train))
        status = embla_gpt_save(train->gpt, folder, words);
    return embla_train_agree(train, status, "it cannot save the model", true);
}

/* ---- loading ---- */

static const char cannot_load[] = "it cannot load the checkpoint";

/* In a team, no rank changes before all have checked their files. */
static embla_status check_saved(const embla_train *t, const embla_checkpoint *cp, const char *path,
                                const embla_train_state *saved, embla_saved *v)
{
    embla_train_state ours;
    embla_train_state_of(t, &ours);
    EMBLA_TRY(embla_train_state_compare(&ours, saved, path, true));
    EMBLA_TRY(list_tensors(t, v));
    return embla_saved_check(v, cp, path);
}

static embla_status copy_saved(embla_train *t, const embla_checkpoint *cp, const char *path,
                               const embla_train_state *saved, embla_saved *v)
{
    t->torn = true; /* from here on the training run changes */
    EMBLA_TRY(embla_train_agree(t, embla_saved_copy(v, cp, path), cannot_load, true));
    if (embla_train_divided(t)) {
        char beside[PATH];
        EMBLA_TRY(rows_beside(path, saved->second, beside));
        EMBLA_TRY(t->team.load_rows(t->team.owner, t, beside, saved->saved.step));
    }
    t->torn = false;
    t->step = saved->saved.step;
    t->updates = saved->updates;
    t->ahead = -1;
    return EMBLA_OK;
}

embla_status embla_train_load(embla_train *train, const char *path)
{
    embla_checkpoint *cp = NULL;
    embla_train_state saved = {0};
    embla_saved v = {0};
    if (!train || !path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_load: %s is NULL",
                          train ? "path" : "train");
    embla_status status = open_saved(path, &cp, &saved);
    if (status == EMBLA_OK) status = check_saved(train, cp, path, &saved, &v);
    status = embla_train_agree(train, status, cannot_load, true);
    if (status == EMBLA_OK) status = copy_saved(train, cp, path, &saved, &v);
    embla_arena_free(&v.arena);
    embla_checkpoint_free(cp);
    return status;
}

/* The metadata must describe a model that this file can hold, so that nobody allocates one that it
 * cannot. The file has the weights, and the state of the optimizer for each, but for rows that are
 * divided among ranks. */
static embla_status check_size(const embla_checkpoint *cp, const char *path,
                               const embla_train_saved *saved)
{
    const embla_gpt_shape *shape = &saved->shape;
    embla_gpt_memory plan;
    uint64_t size = cp->shards[0].map->size, grams, elsewhere = 0;
    embla_status status = embla_gpt_plan_memory(shape, 1, 1, &plan);
    if (status == EMBLA_ERR_MEMORY) return status;
    if (saved->sharded_tokens) /* two states for each number of one table or two */
        elsewhere = (uint64_t)shape->vocab * shape->dim * sizeof(float) * (shape->untied ? 4 : 2);
    bool fits =
        status == EMBLA_OK && (uint64_t)plan.optimizer - elsewhere <= size &&
        embla_mul_ok((uint64_t)shape->ngram.rows, shape->ngram.dim * sizeof(float), &grams) &&
        (grams <= size || saved->sharded);
    if (fits) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: it has %" PRIu64
                      " bytes, and its metadata describe a model that does not fit in them",
                      path, size);
}

embla_status embla_train_describe_saved(const char *path, embla_train_saved *out)
{
    embla_checkpoint *cp = NULL;
    embla_train_state saved;
    if (!path || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_describe_saved: %s is NULL",
                          path ? "out" : "path");
    EMBLA_TRY(open_saved(path, &cp, &saved));
    embla_status status = check_size(cp, path, &saved.saved);
    embla_checkpoint_free(cp);
    if (status == EMBLA_OK) *out = saved.saved;
    return status;
}

/* ---- folders of checkpoints ---- */

/* The steps of the checkpoints in a folder; after sorting, the highest first. */
typedef struct {
    embla_arena arena;
    embla_best steps; /* row and score are both the step, which a double represents exactly */
} checkpoint_list;

/* Parses "step-0000000020.safetensors". False for any other name. */
static bool parse_step(const char *name, int64_t *out)
{
    size_t before = sizeof BEFORE - 1;
    int64_t step = 0;
    if (strncmp(name, BEFORE, before) != 0) return false;
    const char *c = name + before;
    for (; *c >= '0' && *c <= '9'; c++) {
        if (step > EMBLA_TRAIN_STEPS_MOST / 10) return false;
        step = 10 * step + (*c - '0');
    }
    char again[NAME];
    (void)snprintf(again, sizeof again, BEFORE "%0*" PRId64 AFTER, DIGITS, step);
    if (strcmp(again, name) != 0) return false;
    *out = step;
    return true;
}

static embla_status add_checkpoint(void *context, const char *name)
{
    checkpoint_list *s = context;
    int64_t step;
    void *items = s->steps.items;
    if (!parse_step(name, &step)) return EMBLA_OK;
    EMBLA_TRY(embla_arena_grow(&s->arena, sizeof(embla_scored), s->steps.count, "checkpoints",
                               &items, &s->steps.room));
    s->steps.items = items;
    embla_best_add(&s->steps, (embla_scored){step, (double)step});
    return EMBLA_OK;
}

static embla_status checkpoint_path(const char *folder, int64_t step, char *out, size_t size)
{
    int n = snprintf(out, size, "%s/" BEFORE "%0*" PRId64 AFTER, folder, DIGITS, step);
    if (n >= 0 && (size_t)n < size) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: the path needs %d bytes, but there is room for %zu", folder, n,
                      size);
}

static embla_status list_checkpoints(int fd, const char *folder, checkpoint_list *s)
{
    EMBLA_TRY(embla_io_list(fd, folder, add_checkpoint, s));
    embla_best_sort(&s->steps);
    return EMBLA_OK;
}

/* Removes all checkpoints except the newest `keep` and the one just written. */
static embla_status remove_old(const char *folder, size_t keep, int64_t written)
{
    checkpoint_list s = {0};
    int fd = -1;
    EMBLA_TRY(embla_io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, &fd));
    embla_status status = list_checkpoints(fd, folder, &s);
    for (size_t i = keep; i < s.steps.count && status == EMBLA_OK; i++) {
        char name[NAME];
        if (s.steps.items[i].row == written) continue;
        (void)snprintf(name, sizeof name, BEFORE "%0*" PRId64 AFTER, DIGITS, s.steps.items[i].row);
        embla_io_remove(fd, name);
        remove_rows(fd, name, false);
        remove_rows(fd, name, true);
    }
    embla_io_drop(fd);
    embla_arena_free(&s.arena);
    return status;
}

/* Adds to a message of a failed save which checkpoints there still are. */
static embla_status report_kept(embla_status failed, const char *folder, int64_t step)
{
    checkpoint_list s = {0};
    char why[256];
    int fd = -1;
    (void)snprintf(why, sizeof why, "%.255s", embla_error());
    embla_status status = embla_io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, &fd);
    if (status == EMBLA_OK) {
        status = list_checkpoints(fd, folder, &s);
        embla_io_drop(fd);
    }
    size_t count = 0;
    for (size_t i = 0; i < s.steps.count; i++) count += s.steps.items[i].row != step;
    embla_arena_free(&s.arena);
    if (status != EMBLA_OK) return embla_fail(failed, "%s", why);
    if (count == 0) return embla_fail(failed, "%s; there is no earlier checkpoint", why);
    return embla_fail(failed, "%s; earlier checkpoints are kept: %zu", why, count);
}

embla_status embla_train_checkpoint(const embla_train *train, const char *folder, size_t keep,
                                    const char *note)
{
    char path[4096];
    if (!train || !folder)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_checkpoint: %s is NULL",
                          train ? "folder" : "train");
    if (keep < 1) return embla_fail(EMBLA_ERR_ARGUMENT, "keep is %zu; it must be at least 1", keep);
    EMBLA_TRY(checkpoint_path(folder, train->step, path, sizeof path));
    embla_status status = writes(train) ? embla_io_folder(folder) : EMBLA_OK;
    EMBLA_TRY(embla_train_agree(train, status, "it cannot create the folder", false));
    status = embla_train_save(train, path, note);
    if (status == EMBLA_ERR_IO) return report_kept(status, folder, train->step);
    EMBLA_TRY(status);
    if (writes(train)) status = remove_old(folder, keep, train->step);
    return embla_train_agree(train, status, "it cannot remove old checkpoints", true);
}

/* Verifies a checkpoint. */
static embla_status verify_checkpoint(const char *path)
{
    embla_checkpoint *cp = NULL;
    embla_train_state saved;
    EMBLA_TRY(open_saved(path, &cp, &saved));
    embla_status status = embla_saved_verify(cp, path);
    embla_checkpoint_free(cp);
    return status;
}

/* Finds the newest checkpoint that is not damaged. */
static embla_status find_intact(const char *folder, const checkpoint_list *s, char *path,
                                size_t size, size_t *damaged)
{
    char own[4096];
    for (size_t i = 0; i < s->steps.count; i++) {
        EMBLA_TRY(checkpoint_path(folder, s->steps.items[i].row, own, sizeof own));
        embla_status status = verify_checkpoint(own);
        if (status == EMBLA_ERR_MEMORY) return status;
        if (status != EMBLA_OK) continue;
        EMBLA_TRY(checkpoint_path(folder, s->steps.items[i].row, path, size));
        if (damaged) *damaged = i;
        return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s: all %zu checkpoints are damaged", folder,
                      s->steps.count);
}

embla_status embla_train_newest(const char *folder, char *path, size_t size, size_t *damaged)
{
    checkpoint_list s = {0};
    int fd = -1;
    if (!folder || !path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_train_newest: %s is NULL",
                          folder ? "path" : "folder");
    EMBLA_TRY(embla_io_open(AT_FDCWD, folder, O_RDONLY | O_DIRECTORY, 0, &fd));
    embla_status status = list_checkpoints(fd, folder, &s);
    embla_io_drop(fd);
    if (status == EMBLA_OK && s.steps.count == 0)
        status = embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s contains no checkpoint", folder);
    if (status == EMBLA_OK) status = find_intact(folder, &s, path, size, damaged);
    embla_arena_free(&s.arena);
    return status;
}
