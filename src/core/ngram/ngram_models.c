/* SPDX-License-Identifier: Apache-2.0 */
/* Hashers of known models, by name.
 *
 * The multipliers are stored here, because they come from a random generator that may change. Tests
 * compute them again.
 */
#include <stdio.h>
#include <string.h>

#include "ngram/ngram.h"

typedef struct {
    const char *name;
    embla_ngram_kind kind;
    int32_t orders, rows_per_ngram, eos;
    int32_t layers[2];  /* counted from 0 */
    size_t layer_count; /* 0 means one table for all layers */
    int64_t vocab;      /* 0 means that the fold determines it */
    int64_t base, seed, multiple;
    double ratio;
    int64_t multipliers[2][4]; /* of each layer; 0 means computed */
} model;

static const model models[] = {
    {.name = "deepseek-v4.1-flash",
     .kind = EMBLA_NGRAM_ENGRAM,
     .orders = 4,
     .rows_per_ngram = 8,
     .vocab = 99092,
     .base = 16000000,
     .layers = {1, 14},
     .layer_count = 2,
     .multipliers = {{76632096046245, 4839876093313, 35959672319349, 73987337458391},
                     {67716810739261, 51510806800915, 30921347202721, 82619226485591}}},
    {.name = "engram-demo",
     .kind = EMBLA_NGRAM_ENGRAM,
     .orders = 3,
     .rows_per_ngram = 8,
     .base = 646400,
     .layers = {1, 15},
     .layer_count = 2},
    {.name = "qwen3.8-flash-next",
     .kind = EMBLA_NGRAM_QWEN,
     .orders = 3,
     .rows_per_ngram = 8,
     .vocab = 248320,
     .base = 20000000,
     .layers = {1},
     .layer_count = 1,
     .eos = 248044,
     .seed = EMBLA_NGRAM_QWEN_SEED,
     .multiple = EMBLA_NGRAM_QWEN_MULTIPLE,
     .multipliers = {{23703573157769, 20109073645365, 8052911324071}}},
    {.name = "longcat-flash-lite",
     .kind = EMBLA_NGRAM_LONGCAT,
     .orders = 4,
     .rows_per_ngram = 4,
     .vocab = 131072,
     .ratio = 78,
     .eos = 2},
    {.name = "gemma-4-e2b", .vocab = 262144},
    {.name = "gemma-4-e4b", .vocab = 262144},
    {.name = "gemma-3n", .vocab = 262144},
};
enum { MODELS = sizeof models / sizeof models[0] };

const char *embla_ngram_model_name(size_t n)
{
    return n < MODELS ? models[n].name : NULL;
}

/* "1, 14", for messages. */
static void list_layers(const int32_t *layers, size_t count, char *text, size_t size)
{
    size_t used = 0;
    text[0] = '\0';
    for (size_t i = 0; i < count && used < size; i++) {
        int more = snprintf(text + used, size - used, "%s%" PRId32, i > 0 ? ", " : "", layers[i]);
        used += more > 0 ? (size_t)more : 0;
    }
}

embla_status embla_ngram_choose(const char *name, const int32_t *layers, size_t count,
                                int32_t layer, size_t *out)
{
    char list[200];
    *out = 0;
    if (layer == -1) return EMBLA_OK;
    if (count == 0)
        return embla_fail(EMBLA_ERR_NOT_FOUND,
                          "%.200s has one table for all layers; use layer -1 instead of %" PRId32,
                          name, layer);
    while (*out < count && layers[*out] != layer) ++*out;
    if (*out < count) return EMBLA_OK;
    list_layers(layers, count, list, sizeof list);
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "%.200s has no table at layer %" PRId32
                      "; layers with a table, counted from 0: %s",
                      name, layer, list);
}

static embla_status fail_unknown_model(const char *name)
{
    char list[200];
    size_t used = 0;
    for (size_t i = 0; i < MODELS && used < sizeof list; i++) {
        int more =
            snprintf(list + used, sizeof list - used, "%s%s", i > 0 ? ", " : "", models[i].name);
        used += more > 0 ? (size_t)more : 0;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND, "unknown model '%.100s'; known models: %s", name, list);
}

embla_status embla_ngram_pad(const embla_fold *fold, int64_t token, int32_t *out)
{
    int64_t limit = fold ? fold->tokens : INT32_MAX;
    if (token < 0 || token >= limit)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the pad token is %" PRId64 ", but the fold has only %" PRId64 " tokens",
                          token, limit);
    *out = fold ? fold->values[token] : (int32_t)token;
    return EMBLA_OK;
}

embla_status embla_ngram_new_model(const char *name, int32_t layer, const embla_fold *fold,
                                   embla_ngram **out)
{
    size_t n = 0, table = 0;
    embla_ngram *made = NULL;
    EMBLA_NEED(name);
    EMBLA_NEED(out);
    while (n < MODELS && strcmp(models[n].name, name) != 0) n++;
    if (n == MODELS) return fail_unknown_model(name);
    const model *m = &models[n];
    EMBLA_TRY(embla_ngram_choose(name, m->layers, m->layer_count, layer, &table));
    if (m->vocab == 0 && !fold)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%s: the size of its folded vocabulary is not known; pass a fold", name);
    bool engram = m->kind == EMBLA_NGRAM_ENGRAM;
    embla_ngram_parameters p = {.kind = m->kind,
                                .vocab = m->vocab > 0 ? m->vocab : fold->count,
                                .orders = m->orders,
                                .rows_per_ngram = m->rows_per_ngram,
                                .base = m->base,
                                .ratio = m->ratio,
                                .layers = m->layers,
                                .layer_count = m->layer_count,
                                .layer = engram ? m->layers[table] : (int32_t)table,
                                .seed = m->seed,
                                .eos = m->eos,
                                .multiple = m->multiple,
                                .fold = fold};
    if (m->multipliers[table][0] > 0) p.multipliers = m->multipliers[table];
    if (engram) EMBLA_TRY(embla_ngram_pad(fold, EMBLA_NGRAM_PAD_TOKEN, &p.pad));
    EMBLA_TRY(embla_ngram_new(&p, &made));
    made->layer = m->layer_count > 0 ? m->layers[table] : -1;
    *out = made;
    return EMBLA_OK;
}
