/* SPDX-License-Identifier: Apache-2.0 */
/* What models cost, and the rows of n-gram tables. */
#include <stdlib.h>
#include <string.h>

#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_store.h"

#include "answer.h"
#include "play.h"

/* ---- costs ---- */

static void answer_part(const char *key, const embla_cost_part *part)
{
    answer_open(key, '{');
    answer_whole("parameters", part->parameters);
    answer_whole("bytes", part->bytes);
    answer_close('{');
}

const char *play_cost(const play_sizes *sizes, const char *dtype, const char *name)
{
    embla_cost_model model = {.rows = (int64_t)sizes->rows,
                              .dim = (int64_t)sizes->dim,
                              .positions = (int64_t)sizes->positions,
                              .layers = (int64_t)sizes->layers};
    embla_cost cost;
    embla_status status = name ? embla_cost_preset(name, &model) : EMBLA_OK;
    model.untied = sizes->untied != 0;
    if (status == EMBLA_OK) status = embla_dtype_find(dtype, &model.dtype);
    if (status == EMBLA_OK) status = embla_cost_compute(&model, &cost);
    if (status != EMBLA_OK) return answer_failed();
    answer_begin();
    answer_part("tokens", &cost.tokens);
    answer_part("positions", &cost.positions);
    answer_part("head", &cost.head);
    answer_part("ngram", &cost.ngram);
    answer_part("trunk", &cost.trunk);
    answer_part("tables", &cost.tables);
    answer_part("total", &cost.total);
    answer_whole("lookup_bytes", cost.lookup_bytes);
    answer_whole("one_hot_madds", cost.one_hot_madds);
    answer_whole("head_madds", cost.head_madds);
    answer_open("notes", '[');
    const char *note;
    for (size_t n = 0; (note = embla_cost_note(&model, n)); n++)
        answer_text(NULL, note, strlen(note));
    answer_close('[');
    return answer_end();
}

const char *play_cost_models(void)
{
    const char *name;
    answer_begin();
    answer_open("models", '[');
    for (size_t n = 0; (name = embla_cost_preset_name(n)); n++) {
        const char *about = embla_cost_preset_about(n);
        embla_cost_model model;
        if (embla_cost_preset(name, &model) != EMBLA_OK) return answer_failed();
        const char *type = embla_dtype_name(model.dtype ? model.dtype : EMBLA_F32);
        answer_open(NULL, '{');
        answer_text("name", name, strlen(name));
        answer_text("about", about, about ? strlen(about) : 0);
        answer_whole("rows", model.rows);
        answer_whole("dim", model.dim);
        answer_whole("positions", model.positions);
        answer_whole("layers", model.layers);
        answer_text("dtype", type, strlen(type));
        answer_bool("untied", model.untied);
        answer_close('{');
    }
    answer_close('[');
    return answer_end();
}

/* ---- n-grams ---- */

typedef struct {
    embla_checkpoint *checkpoint;
    embla_ngram *ngram;
    embla_ngram_info info;
    embla_store *store;
    embla_store_info about;
    int64_t *rows; /* count x rows_per_token */
    float *values; /* as many rows of the table */
} ngrams;

static embla_status open_ngrams(ngrams *n, const char *path)
{
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED};
    embla_status status = embla_checkpoint_open(path, NULL, &n->checkpoint);
    if (status == EMBLA_OK) status = embla_ngram_open(n->checkpoint, -1, NULL, &n->ngram);
    if (status == EMBLA_OK) status = embla_ngram_describe(n->ngram, &n->info);
    if (status == EMBLA_OK)
        status = embla_store_open(n->checkpoint, NULL, n->info.layer, &options, &n->store);
    return status == EMBLA_OK ? embla_store_describe(n->store, &n->about) : status;
}

static void answer_ngrams(const ngrams *n, const int32_t *ids, size_t count)
{
    const size_t each = n->info.rows_per_token, dim = n->about.format.dim;
    answer_begin();
    answer_whole("table", n->about.rows);
    answer_whole("dim", (int64_t)dim);
    answer_open("tokens", '[');
    for (size_t i = 0; i < count; i++) {
        answer_open(NULL, '{');
        answer_whole("id", ids[i]);
        answer_open("rows", '[');
        for (size_t k = 0; k < each; k++) answer_whole(NULL, n->rows[i * each + k]);
        answer_close('[');
        answer_rows("values", n->values + i * each * dim, each, dim);
        answer_close('{');
    }
    answer_close('[');
}

const char *play_ngram(const char *path, const int32_t *ids, size_t count)
{
    ngrams n = {0};
    embla_status status = open_ngrams(&n, path);
    const size_t rows = count * n.info.rows_per_token;
    if (status == EMBLA_OK) {
        n.rows = calloc(rows + 1, sizeof *n.rows);
        n.values = calloc(rows + 1, n.about.format.dim * sizeof *n.values);
        status = n.rows && n.values ? embla_ngram_rows(n.ngram, ids, 1, count, NULL, n.rows)
                                    : answer_no_memory();
    }
    if (status == EMBLA_OK) status = embla_store_lookup(n.store, n.rows, rows, NULL, n.values);
    if (status == EMBLA_OK) answer_ngrams(&n, ids, count);
    free(n.values);
    free(n.rows);
    embla_store_free(n.store);
    embla_ngram_free(n.ngram);
    embla_checkpoint_free(n.checkpoint);
    return status == EMBLA_OK ? answer_end() : answer_failed();
}
