/* SPDX-License-Identifier: Apache-2.0 */
/* Saves a training run in one safetensors file, and loads it.
 *
 *   model.NAME                 each tensor of the model, rows x dim
 *   optimizer.NAME.mean        state of AdamW
 *   optimizer.NAME.squares
 *   ngram.table, ngram.squares rows x dim, rows x 1: only if the model has n-grams
 *   metadata                   train/train_state.c, and "checksum"
 *
 * Rows that the model does not have are not in the file; cluster/team_files.c saves them beside it.
 *
 * checkpoint/saved.h writes and reads the file, and has the checksum.
 */
#include <stdio.h>
#include <string.h>

#include "base/best.h"
#include "base/checked.h"
#include "files/io.h"
#include "model/gpt_ngram.h"
#include "train/train_shared.h"

#define BEFORE "step-"
#define AFTER  ".safetensors"

enum { NAME = 96, DIGITS = 10 };

/* ---- list of tensors ---- */

static embla_status add_tensor(embla_saved *v, const embla_train *t, const embla_gpt_part *part)
{
    const embla_gpt *gpt = t->gpt;
    size_t at = part->at * sizeof(float);
    char name[NAME];
    (void)snprintf(name, sizeof name, "model.%s", part->name);
    EMBLA_TRY(embla_saved_add(v, name, EMBLA_F32, part->rows, part->dim, gpt->weights + at));
    (void)snprintf(name, sizeof name, "optimizer.%s.mean", part->name);
    EMBLA_TRY(embla_saved_add(v, name, EMBLA_F32, part->rows, part->dim, t->mean + at));
    (void)snprintf(name, sizeof name, "optimizer.%s.squares", part->name);
    return embla_saved_add(v, name, EMBLA_F32, part->rows, part->dim, t->squares + at);
}

static embla_status list_tensors(const embla_train *t, embla_saved *v)
{
    const embla_gpt *gpt = t->gpt;
    EMBLA_TRY(embla_saved_begin(v, 3 * (uint64_t)gpt->part_count + 2));
    for (size_t i = 0; i < gpt->part_count; i++) EMBLA_TRY(add_tensor(v, t, &gpt->parts[i]));
    if (!t->ngram || embla_gpt_ngram_where(gpt)->away) return EMBLA_OK;
    embla_table *table = embla_gpt_ngram_table(t->gpt);
    embla_optim_state squares;
    EMBLA_TRY(embla_optim_state_at(t->ngram, 0, &squares));
    EMBLA_TRY(embla_saved_add(v, "ngram.table", EMBLA_F32, embla_table_rows(table),
                              embla_table_dim(table), embla_table_data(table)));
    return embla_saved_add(v, "ngram.squares", EMBLA_F32, squares.rows, squares.dim,
                           squares.values);
}

/* ---- saving ---- */

embla_status embla_train_write(const embla_train *t, const char *path,
                               const embla_train_state *state)
{
    embla_saved v = {0};
    embla_pair *pairs = NULL;
    size_t count = 0;
    embla_status status = list_tensors(t, &v);
    if (status == EMBLA_OK) status = embla_train_state_write(state, &v.arena, &pairs, &count);
    if (status == EMBLA_OK) status = embla_saved_write(&v, pairs, count, path);
    embla_arena_free(&v.arena);
    return status;
}

embla_status embla_train_save(const embla_train *train, const char *path, const char *note)
{
    embla_train_state state;
    size_t length = note ? strlen(note) : 0;
    EMBLA_NEED(train);
    EMBLA_NEED(path);
    if (train->torn)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a load or a step of this training run failed halfway; it cannot be "
                          "saved");
    if (length >= sizeof state.saved.note)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the note has %zu bytes; it must have fewer than %zu",
                          length, sizeof state.saved.note);
    embla_train_state_of(train, &state);
    if (note) memcpy(state.saved.note, note, length + 1);
    return train->shared ? train->shared->save(train, path, &state)
                         : embla_train_write(train, path, &state);
}

embla_status embla_train_save_model(const embla_train *train, const char *folder,
                                    const char *const *words)
{
    EMBLA_NEED(train);
    EMBLA_NEED(folder);
    return train->shared ? train->shared->save_model(train, folder, words)
                         : embla_gpt_save(train->gpt, folder, words);
}

/* ---- loading ---- */

embla_status embla_train_file_open(const char *path, embla_train_file *out)
{
    *out = (embla_train_file){.path = path};
    EMBLA_TRY(embla_saved_open(path, "a training checkpoint", &out->checkpoint));
    return embla_train_state_read(&out->checkpoint->shards[0].directory, path, &out->state);
}

void embla_train_file_close(embla_train_file *file)
{
    embla_arena_free(&file->tensors.arena);
    embla_checkpoint_free(file->checkpoint);
}

embla_status embla_train_file_check(const embla_train *t, const embla_train_state *ours,
                                    embla_train_file *file)
{
    EMBLA_TRY(embla_train_state_compare(ours, &file->state, file->path, true));
    EMBLA_TRY(list_tensors(t, &file->tensors));
    return embla_saved_check(&file->tensors, file->checkpoint, file->path);
}

embla_status embla_train_file_copy(embla_train *t, const embla_train_file *file)
{
    t->torn = true; /* from here on the training run changes */
    return embla_saved_copy(&file->tensors, file->checkpoint, file->path);
}

void embla_train_file_done(embla_train *t, const embla_train_file *file)
{
    t->torn = false;
    t->step = t->first = file->state.saved.step;
    t->skipped = 0;
    t->updates = file->state.updates;
    t->ahead = -1;
}

static embla_status load_alone(embla_train *t, embla_train_file *file)
{
    embla_train_state ours;
    embla_train_state_of(t, &ours);
    EMBLA_TRY(embla_train_file_check(t, &ours, file));
    EMBLA_TRY(embla_train_file_copy(t, file));
    embla_train_file_done(t, file);
    return EMBLA_OK;
}

embla_status embla_train_load(embla_train *train, const char *path)
{
    embla_train_file file;
    EMBLA_NEED(train);
    EMBLA_NEED(path);
    if (train->shared) return train->shared->load(train, path);
    embla_status status = embla_train_file_open(path, &file);
    if (status == EMBLA_OK) status = load_alone(train, &file);
    embla_train_file_close(&file);
    return status;
}

/* The metadata must describe a model that this file can hold, so that nobody allocates one that it
 * cannot. The file has the weights, and the state of the optimizer for each, but for rows that are
 * beside it. */
static embla_status check_size(const embla_train_file *file)
{
    const embla_gpt_shape *shape = &file->state.saved.shape;
    embla_gpt_memory plan;
    uint64_t size = file->checkpoint->shards[0].map->size, grams, elsewhere = 0;
    embla_status status = embla_gpt_plan_memory(shape, 1, 1, &plan);
    if (status == EMBLA_ERR_MEMORY) return status;
    if (file->state.split.tokens) /* two states for each number of one table or two */
        elsewhere = (uint64_t)shape->vocab * shape->dim * sizeof(float) * (shape->untied ? 4 : 2);
    bool fits =
        status == EMBLA_OK && (uint64_t)plan.optimizer - elsewhere <= size &&
        embla_mul_ok((uint64_t)shape->ngram.rows, shape->ngram.dim * sizeof(float), &grams) &&
        (grams <= size || file->state.split.ngrams);
    if (fits) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: it has %" PRIu64
                      " bytes, and its metadata describe a model that does not fit in them",
                      file->path, size);
}

embla_status embla_train_describe_saved(const char *path, embla_train_saved *out)
{
    embla_train_file file;
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    embla_status status = embla_train_file_open(path, &file);
    if (status == EMBLA_OK) status = check_size(&file);
    if (status == EMBLA_OK) *out = file.state.saved;
    embla_train_file_close(&file);
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

static embla_status list_checkpoints(embla_handle handle, const char *folder, checkpoint_list *s)
{
    EMBLA_TRY(embla_io_list(handle, folder, add_checkpoint, s));
    embla_best_sort(&s->steps);
    return EMBLA_OK;
}

embla_status embla_train_remove_old(const char *folder, size_t keep, int64_t written,
                                    void (*beside)(embla_folder folder, const char *name))
{
    checkpoint_list s = {0};
    embla_handle handle = -1;
    EMBLA_TRY(embla_io_open_folder(folder, &handle));
    embla_status status = list_checkpoints(handle, folder, &s);
    for (size_t i = keep; i < s.steps.count && status == EMBLA_OK; i++) {
        char name[NAME];
        if (s.steps.items[i].row == written) continue;
        (void)snprintf(name, sizeof name, BEFORE "%0*" PRId64 AFTER, DIGITS, s.steps.items[i].row);
        embla_io_remove(handle, name);
        if (beside) beside(handle, name);
    }
    embla_io_drop(handle);
    embla_arena_free(&s.arena);
    return status;
}

embla_status embla_train_report_kept(embla_status failed, const char *folder, int64_t step)
{
    checkpoint_list s = {0};
    char why[256];
    embla_handle handle = -1;
    (void)snprintf(why, sizeof why, "%.255s", embla_error());
    embla_status status = embla_io_open_folder(folder, &handle);
    if (status == EMBLA_OK) {
        status = list_checkpoints(handle, folder, &s);
        embla_io_drop(handle);
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
    EMBLA_NEED(train);
    EMBLA_NEED(folder);
    if (keep < 1) return embla_fail(EMBLA_ERR_ARGUMENT, "keep is %zu; it must be at least 1", keep);
    EMBLA_TRY(checkpoint_path(folder, train->step, path, sizeof path));
    if (train->shared) return train->shared->checkpoint(train, folder, path, keep, note);
    EMBLA_TRY(embla_io_folder(folder));
    embla_status status = embla_train_save(train, path, note);
    if (status == EMBLA_ERR_IO) return embla_train_report_kept(status, folder, train->step);
    EMBLA_TRY(status);
    return embla_train_remove_old(folder, keep, train->step, NULL);
}

/* Verifies a checkpoint. */
static embla_status verify_checkpoint(const char *path)
{
    embla_train_file file;
    embla_status status = embla_train_file_open(path, &file);
    if (status == EMBLA_OK) status = embla_saved_verify(file.checkpoint, path);
    embla_train_file_close(&file);
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
    embla_handle handle = -1;
    EMBLA_NEED(folder);
    EMBLA_NEED(path);
    EMBLA_TRY(embla_io_open_folder(folder, &handle));
    embla_status status = list_checkpoints(handle, folder, &s);
    embla_io_drop(handle);
    if (status == EMBLA_OK && s.steps.count == 0)
        status = embla_fail(EMBLA_ERR_NOT_FOUND, "%.200s contains no checkpoint", folder);
    if (status == EMBLA_OK) status = find_intact(folder, &s, path, size, damaged);
    embla_arena_free(&s.arena);
    return status;
}
