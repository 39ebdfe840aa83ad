/* SPDX-License-Identifier: Apache-2.0 */
/* A file of a training has no n-gram rows if they are divided: they are in the folder PATH.ngram,
 * which is complete before the file appears.
 */
#include "cluster/team_grams.h"

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "cluster/sharded.h"
#include "files/io.h"
#include "model/gpt_ngram.h"

enum { PATH = 4096 };

struct embla_team_grams {
    embla_sharded *sharded;
    const embla_ngram *hasher;
    size_t bytes;        /* of this block */
    size_t columns, dim; /* rows of a token, numbers of a row */
    int64_t *rows;       /* of a batch */
    float *vectors;      /* of these rows */
    int threads;
    char kept[PATH]; /* the folder that has the rows as they are, or "" */
};

/* ---- new, free ---- */

static embla_status new_block(const embla_train *t, embla_team_grams **out, size_t *capacity)
{
    const embla_gpt_shape *s = &t->gpt->shape;
    size_t tokens = t->options.batch * t->options.length; /* int32_t of each are allocated */
    embla_layout layout = {0};
    uint64_t rows = 0;
    void *memory = NULL;
    (void)embla_layout_add(&layout, 1, sizeof(embla_team_grams));
    if (!embla_mul_ok(tokens, embla_gpt_ngram_columns(s), &rows)) layout.too_large = true;
    size_t numbers = embla_layout_add(&layout, (size_t)rows, sizeof(int64_t));
    size_t vectors = embla_layout_add(&layout, (size_t)rows, s->ngram.dim * sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the n-grams of %zu tokens do not fit in memory",
                          tokens);
    EMBLA_TRY(embla_mem_new(layout.bytes, "the n-gram rows of a batch", &memory));
    char *block = memory;
    embla_team_grams *g = memory;
    *g = (embla_team_grams){.hasher = embla_gpt_ngram_hasher(t->gpt),
                            .bytes = layout.bytes,
                            .columns = embla_gpt_ngram_columns(s),
                            .dim = s->ngram.dim,
                            .rows = (int64_t *)(void *)(block + numbers),
                            .vectors = (float *)(void *)(block + vectors),
                            .threads = t->options.threads};
    *capacity = (size_t)rows;
    *out = g;
    return EMBLA_OK;
}

static embla_status new_table(const embla_comm *comm, const embla_train *t, size_t capacity,
                              embla_team_grams *g, embla_optim **optim)
{
    embla_table *whole = embla_gpt_ngram_table(t->gpt);
    const embla_sharded_options options = {.rows = embla_table_rows(whole),
                                           .dim = g->dim,
                                           .dtype = EMBLA_F32,
                                           .capacity = capacity,
                                           .threads = g->threads};
    const embla_optim_options rows = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE, .threads = g->threads};
    EMBLA_TRY(embla_sharded_new(comm, &options, &g->sharded));
    EMBLA_TRY(embla_sharded_fill(g->sharded, whole));
    return embla_comm_agree(comm, embla_optim_new(embla_sharded_table(g->sharded), &rows, optim),
                            "it has no memory for the optimizer of n-gram rows");
}

embla_status embla_team_grams_new(const embla_comm *comm, const embla_train *train,
                                  embla_team_grams **out, embla_optim **optim)
{
    embla_team_grams *g = NULL;
    size_t capacity = 0;
    embla_status status = new_block(train, &g, &capacity);
    status = embla_comm_agree(comm, status, "it has no memory for n-gram rows");
    if (status == EMBLA_OK && g) status = new_table(comm, train, capacity, g, optim);
    if (status != EMBLA_OK) {
        embla_optim_free(*optim);
        *optim = NULL;
        embla_team_grams_free(g);
        return status;
    }
    *out = g;
    return EMBLA_OK;
}

void embla_team_grams_free(embla_team_grams *g)
{
    if (!g) return;
    embla_sharded_free(g->sharded);
    embla_mem_free(g, g->bytes);
}

/* ---- a step ---- */

void embla_team_grams_use(embla_team_grams *g, embla_gpt *gpt)
{
    (void)g;
    embla_gpt_ngram_source(gpt, &(embla_gpt_ngram_rows){.away = true});
}

embla_status embla_team_grams_fetch(embla_team_grams *g, const int32_t *tokens, size_t batch,
                                    size_t length)
{
    const embla_ngram_options options = {.threads = g->threads};
    size_t count = batch * length * g->columns;
    embla_status status = EMBLA_OK;
    if (count > 0) status = embla_ngram_rows(g->hasher, tokens, batch, length, &options, g->rows);
    /* without rows this rank still takes part */
    embla_status got =
        embla_sharded_lookup(g->sharded, g->rows, status == EMBLA_OK ? count : 0, g->vectors);
    return status != EMBLA_OK ? status : got;
}

void embla_team_grams_give(const embla_team_grams *g, embla_gpt *gpt, size_t first)
{
    const embla_gpt_ngram_rows rows = {.away = true,
                                       .vectors = g->vectors + first * g->columns * g->dim};
    embla_gpt_ngram_source(gpt, &rows);
}

embla_status embla_team_grams_sum(embla_team_grams *g, const int64_t *rows, size_t count,
                                  const size_t *lengths, size_t pieces, const float *gradients,
                                  embla_train_rows *out)
{
    const float *sums = NULL;
    out->dim = g->dim;
    EMBLA_TRY(embla_sharded_sum(g->sharded, rows, count, lengths, pieces, gradients, &out->rows,
                                &sums, &out->count));
    memcpy(&out->values, &sums, sizeof sums); /* memory of the table, which we may change */
    return EMBLA_OK;
}

embla_status embla_team_grams_publish(embla_team_grams *g)
{
    g->kept[0] = '\0';
    return embla_sharded_publish(g->sharded);
}

/* ---- files ---- */

static embla_status folder_of(const char *path, const char *name, char out[PATH])
{
    int n = snprintf(out, PATH, "%s.ngram%s", path, name);
    if (n >= 0 && n < PATH) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s: the path needs %d bytes, but there is room for %d", path, n,
                      (int)PATH);
}

/* Rows of this step may be there already, without a file (a crash in between) or with one. The file
 * goes first, so that no file is left without its rows. */
static embla_status make_way(const char *path, const char *folder)
{
    char index[PATH];
    EMBLA_TRY(folder_of(path, "/" EMBLA_SHARDED_INDEX, index));
    EMBLA_TRY(embla_io_folder(folder));
    if (!embla_io_readable(AT_FDCWD, index)) return EMBLA_OK;
    embla_io_remove(AT_FDCWD, path);
    embla_io_remove(AT_FDCWD, index);
    return EMBLA_OK;
}

embla_status embla_team_grams_save(embla_team_grams *g, embla_optim *optim, const char *path,
                                   int64_t step)
{
    const embla_comm *comm = g->sharded->comm;
    char folder[PATH];
    EMBLA_TRY(folder_of(path, "", folder));
    if (strcmp(folder, g->kept) == 0) return EMBLA_OK; /* no row has changed since */
    embla_status status = comm->rank == 0 ? make_way(path, folder) : EMBLA_OK;
    EMBLA_TRY(embla_comm_agree(comm, status, "it cannot create the folder of n-gram rows"));
    EMBLA_TRY(embla_sharded_save(g->sharded, optim, folder, step));
    memcpy(g->kept, folder, sizeof folder);
    return EMBLA_OK;
}

embla_status embla_team_grams_load(embla_team_grams *g, embla_optim *optim, const char *path,
                                   int64_t step)
{
    int64_t saved = 0;
    char folder[PATH];
    g->kept[0] = '\0';
    EMBLA_TRY(folder_of(path, "", folder));
    EMBLA_TRY(embla_sharded_load(g->sharded, optim, folder, &saved));
    if (saved != step)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s has the n-gram rows of step %" PRId64
                          ", but the checkpoint is of step %" PRId64,
                          folder, saved, step);
    memcpy(g->kept, folder, sizeof folder);
    return EMBLA_OK;
}

/* What rank 0 writes. */
typedef struct {
    embla_gpt *gpt;
    const char *folder;
    const char *const *words;
} model;

static embla_status write_model(void *context, embla_sharded_read *read, void *rows)
{
    const model *m = context;
    embla_gpt_ngram_source(m->gpt,
                           &(embla_gpt_ngram_rows){.away = true, .read = read, .context = rows});
    embla_status status = embla_gpt_save(m->gpt, m->folder, m->words);
    embla_gpt_ngram_source(m->gpt, &(embla_gpt_ngram_rows){.away = true});
    return status;
}

embla_status embla_team_grams_save_model(embla_team_grams *g, embla_gpt *gpt, const char *folder,
                                         const char *const *words)
{
    model m = {gpt, folder, words};
    return embla_sharded_stream(g->sharded, write_model, &m);
}
