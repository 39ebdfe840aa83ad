/* SPDX-License-Identifier: Apache-2.0 */
/* A hashed n-gram table beside the layers of a decoder. The last tokens select rows. The rows of a
 * token are concatenated, and one product turns them into a key and a value. The value is added to
 * the residual stream through a gate, which compares key and stream (model/layers_gate.c).
 *
 * All rows are 0 at first, so the model starts as if there were no table, and a row takes memory
 * only when it is first trained. Row numbers depend only on tokens. So the rows of the next batch
 * can be computed and sorted in advance. There are two plans: one for the last training batch,
 * whose gradients may still be needed, and one for the next batch.
 *
 * The hash is Qwen's: n-grams end at an EOS token, which also fills the positions before the start.
 * Here EOS is the last token of the vocabulary: BOS in our document corpora, end-of-text in
 * GPT-2's. For other vocabularies, the only effect is that n-grams end at that token.
 */
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/threads.h"
#include "files/durable.h"
#include "files/io.h"
#include "formats/npy.h"
#include "model/gpt_ngram.h"
#include "ngram/ngram.h"
#include "table/access.h"

/* The rows that a batch uses. */
typedef struct {
    size_t batch, length; /* 0 if there is no plan */
    int32_t *tokens;
    int64_t *rows; /* n x N */
    embla_scatter *scatter;
} plan;

/* Memory for batches of up to `tokens` tokens. */
typedef struct {
    size_t tokens, bytes;
    void *memory; /* all arrays except those of the scatters */
    plan plans[2];
    int64_t *rows;    /* n x N: for a batch without training */
    float *gradients; /* n x N x dim: gradients of the rows of the last training batch */
} room;

struct embla_gpt_grams {
    embla_ngram *hasher;
    embla_table *table; /* the handle stays valid when the rows are moved */
    embla_gpt_ngram_rows source;
    void *map; /* the shared mapping; NULL if the table has its own memory */
    size_t map_bytes;
    size_t history; /* how many earlier tokens the rows of a token depend on */
    room room;
    size_t now;   /* index of the plan of the last training batch; the other plan is for the next
                     batch */
    bool learned; /* its gradients are valid */
};

/* ---- shape ---- */

static embla_status check_between(const char *what, uint64_t is, uint64_t least, uint64_t most)
{
    return embla_gpt_between("an n-gram table", what, is, least, most);
}

embla_status embla_gpt_ngram_check(embla_gpt_shape *s)
{
    embla_gpt_ngram *g = &s->ngram;
    EMBLA_TRY(embla_options_check(g));
    if (g->rows == 0) { /* other fields are ignored */
        *g = (embla_gpt_ngram){0};
        return EMBLA_OK;
    }
    if (g->heads == 0) g->heads = 4;
    if (g->orders == 0) g->orders = 3;
    if (g->rows < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "ngram.rows is %" PRId64 "; it must be 0 (no table) or greater", g->rows);
    EMBLA_TRY(check_between("heads", g->heads, 1, EMBLA_NGRAM_ROWS_MOST));
    EMBLA_TRY(check_between("tokens in the longest n-gram", g->orders, 2, EMBLA_NGRAM_ORDERS_MOST));
    EMBLA_TRY(check_between("tokens", (uint64_t)s->vocab, 1, EMBLA_NGRAM_VOCAB_MOST));
    size_t columns = embla_gpt_ngram_columns(s);
    EMBLA_TRY(check_between("rows", (uint64_t)g->rows, columns, EMBLA_ROWS_MOST));
    if (g->dim == 0) g->dim = s->dim > columns ? s->dim / columns : 1;
    EMBLA_TRY(check_between("numbers in a row", g->dim, 1, EMBLA_DIM_MOST / columns));
    if (g->layer >= s->layers)
        return embla_fail(EMBLA_ERR_ARGUMENT, "ngram.layer is %zu, but the model has %zu layers",
                          g->layer, s->layers);
    return EMBLA_OK;
}

static embla_status new_hasher(const embla_gpt_shape *s, embla_ngram **out)
{
    int64_t columns = (int64_t)embla_gpt_ngram_columns(s);
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = s->vocab,
                                               .orders = (int32_t)s->ngram.orders,
                                               .rows_per_ngram = (int32_t)s->ngram.heads,
                                               .base = columns > 0 ? s->ngram.rows / columns : 1,
                                               .seed = (int64_t)s->ngram.seed,
                                               .eos = (int32_t)(s->vocab - 1)};
    return embla_ngram_new(&parameters, out);
}

embla_status embla_gpt_ngram_count(const embla_gpt_shape *s, int64_t *out)
{
    embla_ngram_info info = {0};
    embla_ngram *hasher;
    if (embla_gpt_has_ngram(s)) {
        EMBLA_TRY(new_hasher(s, &hasher));
        EMBLA_TRY(embla_ngram_describe(hasher, &info));
        embla_ngram_free(hasher);
    }
    *out = info.rows;
    return EMBLA_OK;
}

/* ---- memory for a batch ---- */

/* Computes the places of arrays. If there is memory, sets their addresses. */
static void place_arrays(const embla_gpt_shape *s, size_t n, room *r)
{
    size_t columns = embla_gpt_ngram_columns(s), at[6];
    embla_layout all = {0};
    for (size_t i = 0; i < 2; i++) {
        at[2 * i] = embla_layout_add(&all, n, sizeof(int32_t));
        at[2 * i + 1] = embla_layout_add(&all, n, columns * sizeof(int64_t));
    }
    at[4] = embla_layout_add(&all, n, columns * sizeof(int64_t));
    at[5] = embla_layout_add(&all, n, columns * s->ngram.dim * sizeof(float));
    r->tokens = n;
    r->bytes = all.too_large ? SIZE_MAX : all.bytes;
    if (!r->memory) return;
    char *memory = r->memory;
    for (size_t i = 0; i < 2; i++) {
        r->plans[i].tokens = (int32_t *)(void *)(memory + at[2 * i]);
        r->plans[i].rows = (int64_t *)(void *)(memory + at[2 * i + 1]);
    }
    r->rows = (int64_t *)(void *)(memory + at[4]);
    r->gradients = (float *)(void *)(memory + at[5]);
}

size_t embla_gpt_ngram_space(const embla_gpt_shape *s, size_t n)
{
    room r = {0};
    if (embla_gpt_has_ngram(s)) place_arrays(s, n, &r);
    return r.bytes;
}

static void free_room(room *r)
{
    for (size_t i = 0; i < 2; i++) embla_scatter_free(r->plans[i].scatter);
    embla_mem_free(r->memory, r->memory ? r->bytes : 0);
}

static embla_status allocate_room(const embla_gpt *gpt, size_t n, room *r)
{
    const embla_gpt_shape *s = &gpt->shape;
    int64_t rows = embla_table_rows(gpt->grams->table);
    place_arrays(s, n, r);
    if (r->bytes == SIZE_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "n-grams of %zu tokens do not fit in memory", n);
    EMBLA_TRY(embla_mem_new(r->bytes, "the n-grams of a batch", &r->memory));
    place_arrays(s, n, r);
    for (size_t i = 0; i < 2; i++)
        EMBLA_TRY(embla_scatter_new(rows, n * embla_gpt_ngram_columns(s), &r->plans[i].scatter));
    return EMBLA_OK;
}

embla_status embla_gpt_ngram_room(const embla_gpt *gpt, size_t n)
{
    room made = {0};
    embla_status status = allocate_room(gpt, n, &made);
    if (status != EMBLA_OK) {
        free_room(&made);
        return status;
    }
    free_room(&gpt->grams->room);
    gpt->grams->room = made;
    gpt->grams->learned = false;
    return EMBLA_OK;
}

/* ---- new, free ---- */

static embla_status new_table(const embla_gpt_shape *s, embla_gpt_grams *g)
{
    embla_ngram_info info;
    EMBLA_TRY(new_hasher(s, &g->hasher));
    EMBLA_TRY(embla_ngram_describe(g->hasher, &info));
    g->history = info.history;
    return embla_table_new(EMBLA_F32, info.rows, s->ngram.dim, NULL, &g->table);
}

embla_status embla_gpt_ngram_new(const embla_gpt_shape *shape, embla_gpt_grams **out)
{
    void *memory;
    EMBLA_TRY(embla_mem_new(sizeof **out, "an n-gram table", &memory));
    embla_gpt_grams *g = memory;
    embla_status status = new_table(shape, g);
    if (status != EMBLA_OK) {
        embla_gpt_ngram_free(g);
        return status;
    }
    *out = g;
    return EMBLA_OK;
}

void embla_gpt_ngram_free(embla_gpt_grams *g)
{
    if (!g) return;
    free_room(&g->room);
    embla_table_free(g->table);
    if (g->map) embla_io_unmap(g->map, g->map_bytes);
    embla_ngram_free(g->hasher);
    embla_mem_free(g, sizeof *g);
}

/* ---- rows of a batch ---- */

/* Computes the rows of a batch and sorts them. */
static embla_status make_plan(const embla_gpt_grams *g, const int32_t *tokens, size_t batch,
                              size_t length, int threads, plan *p)
{
    const embla_ngram_options options = {.threads = threads};
    const embla_scatter_options order = {.threads = threads};
    embla_ngram_info info;
    EMBLA_TRY(embla_ngram_describe(g->hasher, &info));
    p->batch = p->length = 0;
    EMBLA_TRY(embla_ngram_rows(g->hasher, tokens, batch, length, &options, p->rows));
    EMBLA_TRY(
        embla_scatter_plan_rows(p->scatter, p->rows, batch * length * info.rows_per_token, &order));
    memcpy(p->tokens, tokens, batch * length * sizeof *tokens);
    p->batch = batch;
    p->length = length;
    return EMBLA_OK;
}

static bool is_plan_of(const plan *p, const int32_t *tokens, size_t batch, size_t length)
{
    return p->batch == batch && p->length == length &&
           memcmp(p->tokens, tokens, batch * length * sizeof *tokens) == 0;
}

/* Gets the rows of a batch. For training, its plan becomes the current one. */
static embla_status batch_rows(embla_gpt_grams *g, const embla_layer_way *way,
                               const int32_t *tokens, size_t batch, size_t length, bool learns,
                               const int64_t **rows)
{
    const embla_ngram_options options = {.threads = way->threads};
    plan *next = &g->room.plans[1 - g->now], *now = &g->room.plans[g->now];
    bool had = is_plan_of(next, tokens, batch, length);
    *rows = had ? next->rows : learns ? now->rows : g->room.rows;
    if (!learns)
        return had ? EMBLA_OK
                   : embla_ngram_rows(g->hasher, tokens, batch, length, &options, g->room.rows);
    g->learned = false;
    if (had)
        g->now = 1 - g->now;
    else
        return make_plan(g, tokens, batch, length, way->threads, now);
    now->batch = now->length = 0;
    return EMBLA_OK;
}

void embla_gpt_ngram_source(embla_gpt *gpt, const embla_gpt_ngram_rows *rows)
{
    gpt->grams->source = *rows;
}

const embla_gpt_ngram_rows *embla_gpt_ngram_where(const embla_gpt *gpt)
{
    return &gpt->grams->source;
}

/* ---- forward, backward ---- */

static embla_status look_up(const embla_gpt *gpt, const int64_t *rows, size_t count, int threads,
                            float *out)
{
    const embla_gpt_ngram_rows *source = &gpt->grams->source;
    const embla_lookup_options options = {.threads = threads};
    if (!source->away) return embla_lookup_rows(gpt->grams->table, rows, count, &options, out);
    if (!source->vectors)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "the rows of the n-gram table are kept by the training; use the model that "
            "the training saves");
    memcpy(out, source->vectors, count * gpt->shape.ngram.dim * sizeof *out);
    return EMBLA_OK;
}

/* Looks up rows, projects them to key and value, and computes out = x + gate * value. */
static embla_status add_grams(const embla_gpt *gpt, const embla_layer_way *way, const int64_t *rows,
                              size_t n, const embla_gpt_ngram_arrays *a, const float *x, float *out)
{
    const embla_gpt_shape *s = &gpt->shape;
    const float *w = embla_gpt_weight(gpt, embla_gpt_ngram_slot(s, EMBLA_GPT_NGRAM_KEY));
    EMBLA_TRY(look_up(gpt, rows, n * embla_gpt_ngram_columns(s), way->threads, a->grams));
    EMBLA_TRY(embla_linear_forward(way, a->grams, n, embla_gpt_ngram_width(s), w, NULL, 2 * s->dim,
                                   false, a->pair));
    return embla_gate_forward(way, s->norm_epsilon, x, a->pair, a->pair + s->dim, 2 * s->dim, n,
                              s->dim, out, a->stats);
}

static float *array(const embla_gpt *gpt, size_t place_arrays)
{
    return (float *)(void *)(gpt->activations + place_arrays);
}

static embla_gpt_ngram_arrays arrays_of(const embla_gpt *gpt)
{
    return (embla_gpt_ngram_arrays){.grams = array(gpt, gpt->at.grams),
                                    .pair = array(gpt, gpt->at.pair),
                                    .stats = array(gpt, gpt->at.pair_stats)};
}

embla_status embla_gpt_ngram_forward(const embla_gpt *gpt, const embla_layer_way *way,
                                     const int32_t *tokens, size_t batch, size_t length,
                                     bool learns, const float *x, float *out)
{
    const embla_gpt_ngram_arrays a = arrays_of(gpt);
    const int64_t *rows = NULL;
    EMBLA_TRY(batch_rows(gpt->grams, way, tokens, batch, length, learns, &rows));
    return add_grams(gpt, way, rows, batch * length, &a, x, out);
}

embla_status embla_gpt_ngram_backward(const embla_gpt *gpt, const embla_layer_way *way, size_t n,
                                      const float *x, float *dx, float *dkey)
{
    const embla_gpt_shape *s = &gpt->shape;
    const embla_gpt_ngram_arrays a = arrays_of(gpt);
    embla_gpt_grams *g = gpt->grams;
    size_t key = embla_gpt_ngram_slot(s, EMBLA_GPT_NGRAM_KEY), stride = 2 * s->dim;
    float *dpair = array(gpt, gpt->at.dhidden), *dgrams = array(gpt, gpt->at.dgrams);
    EMBLA_TRY(embla_gate_backward(way, x, a.pair, a.pair + s->dim, stride, a.stats, n, s->dim, dx,
                                  dpair, dpair + s->dim));
    EMBLA_TRY(embla_linear_backward(way, a.grams, dpair, n, embla_gpt_ngram_width(s),
                                    embla_gpt_weight(gpt, key), stride, false, dgrams, dkey, NULL));
    EMBLA_TRY(
        embla_scatter_sum(g->room.plans[g->now].scatter, dgrams, s->ngram.dim, g->room.gradients));
    g->learned = true;
    return EMBLA_OK;
}

embla_status embla_gpt_ngram_more(const embla_gpt *gpt, const embla_layer_way *way,
                                  const int32_t *tokens, size_t before, size_t n,
                                  const embla_gpt_ngram_arrays *a, float *x)
{
    const embla_gpt_grams *g = gpt->grams;
    int32_t history[EMBLA_NGRAM_ORDERS_MOST];
    const embla_ngram_options options = {.history = history, .threads = way->threads};
    for (size_t i = 0; i < g->history; i++) { /* oldest first */
        size_t back = g->history - i;
        history[i] = back <= before ? tokens[-(ptrdiff_t)back] : -1;
    }
    EMBLA_TRY(embla_ngram_rows(g->hasher, tokens, 1, n, &options, a->rows));
    return add_grams(gpt, way, a->rows, n, a, x, x);
}

/* ---- gradients, prefetch ---- */

embla_table *embla_gpt_ngram_table(embla_gpt *gpt)
{
    return gpt && gpt->grams ? gpt->grams->table : NULL;
}

const embla_ngram *embla_gpt_ngram_hasher(const embla_gpt *gpt)
{
    return gpt && gpt->grams ? gpt->grams->hasher : NULL;
}

static embla_status check_has_table(const embla_gpt *gpt, const char *call)
{
    EMBLA_NEED_OF(call, "gpt", gpt);
    if (!gpt->grams)
        return embla_fail(EMBLA_ERR_NOT_FOUND, "%s: the model has no n-gram table", call);
    return EMBLA_OK;
}

embla_status embla_gpt_ngram_gradients(const embla_gpt *gpt, const int64_t **rows,
                                       const float **gradients, size_t *count)
{
    EMBLA_TRY(check_has_table(gpt, "embla_gpt_ngram_gradients"));
    EMBLA_NEED(rows);
    EMBLA_NEED(gradients);
    EMBLA_NEED(count);
    const embla_gpt_grams *g = gpt->grams;
    if (!g->learned)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "there are no n-gram gradients; call embla_gpt_backward first");
    *rows = embla_scatter_rows(g->room.plans[g->now].scatter);
    *count = embla_scatter_count(g->room.plans[g->now].scatter);
    *gradients = g->room.gradients;
    return EMBLA_OK;
}

/* Prefetches the rows of a plan. */
static void prefetch_rows(const embla_table *table, const embla_scatter *scatter)
{
    enum { LINE = 64 };
    const int64_t *rows = embla_scatter_rows(scatter);
    size_t count = embla_scatter_count(scatter);
    const embla_row_source *source = embla_table_source(table);
    const size_t bytes = source->row->bytes;
    for (size_t i = 0; i < count; i++) {
        const char *row = embla_source_at(source, rows[i]);
        for (size_t at = 0; at < bytes; at += LINE) __builtin_prefetch(row + at, 1, 2);
    }
}

embla_status embla_gpt_ngram_prefetch(embla_gpt *gpt, const int32_t *tokens, size_t batch,
                                      size_t length, const embla_gpt_options *options)
{
    EMBLA_TRY(embla_options_check(options));
    int threads = options ? options->threads : 0;
    uint64_t n;
    EMBLA_TRY(check_has_table(gpt, "embla_gpt_ngram_prefetch"));
    EMBLA_TRY(embla_threads_check(threads));
    if (!tokens || batch < 1 || length < 1)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "embla_gpt_ngram_prefetch: batch is %zu and length is %zu%s; both must be at least 1",
            batch, length, tokens ? "" : ", and tokens is NULL");
    embla_gpt_grams *g = gpt->grams;
    if (!embla_mul_ok(batch, length, &n) || n > g->room.tokens)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%zu sequences of %zu tokens: the model has memory for only %zu tokens; "
                          "call embla_gpt_reserve",
                          batch, length, g->room.tokens);
    plan *next = &g->room.plans[1 - g->now];
    if (!is_plan_of(next, tokens, batch, length))
        EMBLA_TRY(make_plan(g, tokens, batch, length, threads, next));
    prefetch_rows(g->table, next->scatter);
    return EMBLA_OK;
}

/* ---- sharing rows with other processes ---- */

/* The bytes of the table, which has no gaps between rows. */
static size_t bytes_of(const embla_table *t)
{
    return (size_t)embla_table_rows(t) * embla_table_row_stride(t);
}

/* Writes the table as an npy file. The name must not exist yet. */
static embla_status write_npy(const embla_table *t, const char *path, size_t *header)
{
    char bytes[EMBLA_NPY_HEADER_MOST];
    const uint64_t shape[] = {(uint64_t)embla_table_rows(t), embla_table_dim(t)};
    embla_durable *file = NULL;
    embla_handle handle = -1;
    embla_status status = embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ, 0, &handle);
    if (status == EMBLA_OK) {
        embla_io_drop(handle);
        return embla_fail(EMBLA_ERR_ARGUMENT, "%.256s already exists", path);
    }
    if (status != EMBLA_ERR_NOT_FOUND) return status;
    *header = embla_npy_header(embla_element_of(EMBLA_F32), 2, shape, bytes);
    EMBLA_TRY(embla_durable_open(path, &file));
    status = embla_durable_write(file, bytes, *header);
    if (status == EMBLA_OK) status = embla_durable_write(file, embla_table_row(t, 0), bytes_of(t));
    if (status == EMBLA_OK) return embla_durable_commit_new(file);
    embla_durable_abandon(file);
    return status;
}

static embla_status map_file(const char *path, size_t bytes, void **out)
{
    embla_file_facts found;
    embla_handle handle;
    EMBLA_TRY(embla_io_open(EMBLA_HERE, path, EMBLA_OPEN_READ | EMBLA_OPEN_WRITE, 0, &handle));
    embla_status status = embla_io_facts(handle, path, &found);
    if (status == EMBLA_OK && found.size != bytes)
        status = embla_fail(EMBLA_ERR_IO, "%.256s has %" PRId64 " bytes, but %zu were written",
                            path, (int64_t)found.size, bytes);
    if (status == EMBLA_OK) status = embla_io_map_shared(handle, path, bytes, out);
    embla_io_drop(handle);
    return status;
}

embla_status embla_gpt_ngram_share(embla_gpt *gpt, const char *path)
{
    size_t header = 0;
    void *map = NULL;
    EMBLA_TRY(check_has_table(gpt, "embla_gpt_ngram_share"));
    if (!path || !*path)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_gpt_ngram_share: the path is %s",
                          path ? "empty" : "NULL");
    embla_gpt_grams *g = gpt->grams;
    embla_table *t = g->table;
    EMBLA_TRY(write_npy(t, path, &header));
    size_t bytes = header + bytes_of(t);
    embla_status status = map_file(path, bytes, &map);
    if (status != EMBLA_OK) {
        embla_io_remove(EMBLA_HERE, path);
        return status;
    }
    embla_table_move(t, (char *)map + header);
    if (g->map) embla_io_unmap(g->map, g->map_bytes);
    g->map = map;
    g->map_bytes = bytes;
    return EMBLA_OK;
}
