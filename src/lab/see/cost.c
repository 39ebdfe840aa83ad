/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a model's tables: parameters, bytes, operations for one token.
 *
 * With V rows, d dim, T positions and L layers:
 *   token table V d, positions T d, head V d (0 when tied), GPT trunk 12 L d^2
 *   lookup      one row of each table: a copy, no arithmetic
 *   head        V d multiply-adds for every token. Tying saves memory, not work. An attention
 *               layer has 4 d^2, so the head is worth V / (4 d) of them.
 *
 * A published model is computed from its sizes in one dtype; a checkpoint is added up from its
 * tensors, which may have several.
 *
 * Every product and sum is checked and fits in an int64_t, so a figure is either exact or refused.
 * Figures are bytes; the program converts them to GB.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/status.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_store.h"

/* A multiple of the block size of every dtype. */
#define BLOCKS 256

/* ---- published models ---- */

typedef struct {
    const char *name;
    const char *about;
    embla_cost_model model;
} preset;

/* trunk is the published total minus the tables. A model is left out if it is published in mixed
 * dtypes with a rounded total. */
static const preset presets[] = {
    {"microgpt",
     "microGPT, names letter by letter, from its program; 4,192 parameters.",
     {.rows = 27, .dim = 16, .positions = 16, .layers = 1, .dtype = EMBLA_F32, .untied = true}},
    {"gpt2",
     "GPT-2 small, from its config; 124,439,808 parameters with norms and biases.",
     {.rows = 50257, .dim = 768, .positions = 1024, .trunk = 85056000, .dtype = EMBLA_F32}},
    {"andrea-12m",
     "ANDREA-12M, from its model card; 12,780,288 parameters.",
     {.rows = 2305,
      .dim = 384,
      .positions = 1024,
      .layers = 6,
      .dtype = EMBLA_F32,
      .untied = true}},
    {"andrea-120m",
     "ANDREA-120M, from its model card; 98,698,752 parameters, 120M is its name.",
     {.rows = 8449,
      .dim = 768,
      .positions = 1024,
      .layers = 12,
      .dtype = EMBLA_F32,
      .untied = true}},
    {"andrea-480m",
     "ANDREA-480M, with the vocabulary of ANDREA-120M, which its family is said to share; "
     "480,513,024 parameters.",
     {.rows = 8449,
      .dim = 1536,
      .positions = 1024,
      .layers = 16,
      .dtype = EMBLA_F32,
      .untied = true}},
    {"llama-3.1-8b",
     "Llama 3.1 8B, from its config; 8,030,261,248 parameters; rotary positions.",
     {.rows = 128256, .dim = 4096, .trunk = 6979588096, .dtype = EMBLA_BF16, .untied = true}},
    {"llama-3.1-70b",
     "Llama 3.1 70B, from its config; 70,553,706,496 parameters; rotary positions.",
     {.rows = 128256, .dim = 8192, .trunk = 68452360192, .dtype = EMBLA_BF16, .untied = true}},
    {"llama-3.1-405b",
     "Llama 3.1 405B, from its config; 405,853,388,800 parameters; rotary positions.",
     {.rows = 128256, .dim = 16384, .trunk = 401650696192, .dtype = EMBLA_BF16, .untied = true}},
    {"gemma-3",
     "Gemma 3 4B without its vision tower, from its config; 262,208 rows, of which 262,145 are "
     "tokens; rotary positions.",
     {.rows = 262208, .dim = 2560, .trunk = 3209010688, .dtype = EMBLA_BF16}},
    {"deepseek-v4.1-flash",
     "DeepSeek-V4.1-Flash, from its config: two hashed n-gram tables of 384 million rows, fp8 with "
     "8 scale bytes a row. The rest of the model (552 billion parameters as published, token "
     "table and head among them, in mixed dtypes) is not counted.",
     {.rows = 129280,
      .dim = 5120,
      .ngram_rows = INT64_C(384006168) + 384016682,
      .ngram_dim = 256,
      .ngram_scale_bytes = 8,
      .ngram_rows_per_token = 48,
      .dtype = EMBLA_BF16,
      .ngram_dtype = EMBLA_F8_E4M3,
      .untied = true}},
    {"qwen3.8-flash-next",
     "Qwen3.8-Flash-Next, from its config: one hashed n-gram table of 320 million rows, fp8 with "
     "one scale. Its trunk, about 124 billion parameters, is not counted.",
     {.rows = 248320,
      .dim = 2560,
      .ngram_rows = 320001536,
      .ngram_dim = 160,
      .ngram_rows_per_token = 16,
      .dtype = EMBLA_BF16,
      .ngram_dtype = EMBLA_F8_E4M3,
      .untied = true}},
};
#define PRESETS (sizeof presets / sizeof presets[0])

const char *embla_cost_preset_name(size_t n)
{
    return n < PRESETS ? presets[n].name : NULL;
}

const char *embla_cost_preset_about(size_t n)
{
    return n < PRESETS ? presets[n].about : NULL;
}

embla_status embla_cost_preset(const char *name, embla_cost_model *out)
{
    char names[256] = "";
    size_t used = 0;
    EMBLA_NEED(name);
    EMBLA_NEED(out);
    for (size_t i = 0; i < PRESETS; i++) {
        if (strcmp(presets[i].name, name) == 0) {
            *out = presets[i].model;
            return EMBLA_OK;
        }
        int wrote =
            snprintf(names + used, sizeof names - used, "%s%s", i ? ", " : "", presets[i].name);
        if (wrote > 0 && (size_t)wrote < sizeof names - used) used += (size_t)wrote;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND, "unknown preset '%.64s'; known presets: %s", name,
                      names);
}

/* ---- arithmetic ---- */

static bool mul(int64_t a, int64_t b, int64_t *out)
{
    uint64_t product;
    if (!embla_mul_ok((uint64_t)a, (uint64_t)b, &product) || product > INT64_MAX) return false;
    *out = (int64_t)product;
    return true;
}

static bool add(int64_t a, int64_t b, int64_t *out)
{
    uint64_t sum;
    if (!embla_add_ok((uint64_t)a, (uint64_t)b, &sum) || sum > INT64_MAX) return false;
    *out = (int64_t)sum;
    return true;
}

static embla_status too_large(const char *what)
{
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s does not fit in 64 bits", what);
}

static embla_status table_part(const char *what, int64_t rows, int64_t dim, int64_t row_bytes,
                               embla_cost_part *out)
{
    embla_cost_part part;
    if (!mul(rows, dim, &part.parameters) || !mul(rows, row_bytes, &part.bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%s of %" PRId64 " x %" PRId64 " does not fit in 64 bits", what, rows,
                          dim);
    *out = part;
    return EMBLA_OK;
}

static embla_status row_size(embla_dtype dtype, int64_t dim, int64_t *out)
{
    size_t bytes, numbers;
    if (!embla_size_ok((uint64_t)dim, &numbers))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a row of %" PRId64 " %s numbers does not fit in memory", dim,
                          embla_dtype_name(dtype));
    EMBLA_TRY(embla_dtype_row_bytes(dtype, numbers, &bytes));
    if ((uint64_t)bytes > INT64_MAX) return too_large("a row");
    *out = (int64_t)bytes;
    return EMBLA_OK;
}

/* The shapes of a trunk's tensors are unknown, so its numbers are rounded up to whole blocks. */
static embla_status trunk_part(const embla_cost_model *model, embla_dtype dtype,
                               embla_cost_part *out)
{
    embla_cost_part part = {model->trunk, 0};
    int64_t block_bytes = 0, tail;
    EMBLA_TRY(row_size(dtype, BLOCKS, &block_bytes));
    if (model->layers > 0 && !(mul(model->dim, model->dim, &part.parameters) &&
                               mul(part.parameters, model->layers, &part.parameters) &&
                               mul(part.parameters, 12, &part.parameters)))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a trunk with layers %" PRId64 " and dim %" PRId64
                          " does not fit in 64 bits",
                          model->layers, model->dim);
    tail = (part.parameters % BLOCKS * block_bytes + BLOCKS - 1) / BLOCKS;
    if (!mul(part.parameters / BLOCKS, block_bytes, &part.bytes) ||
        !add(part.bytes, tail, &part.bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the bytes of a trunk of %" PRId64 " parameters do not fit in 64 bits",
                          part.parameters);
    *out = part;
    return EMBLA_OK;
}

static bool add_part(embla_cost_part *sum, embla_cost_part part)
{
    return add(sum->parameters, part.parameters, &sum->parameters) &&
           add(sum->bytes, part.bytes, &sum->bytes);
}

static embla_status check(const embla_cost_model *model)
{
    const struct {
        const char *name;
        int64_t value, least;
    } sizes[] = {{"rows", model->rows, 1},
                 {"dim", model->dim, 1},
                 {"positions", model->positions, 0},
                 {"layers", model->layers, 0},
                 {"trunk", model->trunk, 0},
                 {"n-gram rows", model->ngram_rows, 0},
                 {"n-gram dim", model->ngram_dim, model->ngram_rows > 0},
                 {"n-gram scale bytes", model->ngram_scale_bytes, 0},
                 {"n-gram rows for a token", model->ngram_rows_per_token, model->ngram_rows > 0}};
    for (size_t i = 0; i < sizeof sizes / sizeof sizes[0]; i++)
        if (sizes[i].value < sizes[i].least)
            return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %" PRId64 "; it must be at least %" PRId64,
                              sizes[i].name, sizes[i].value, sizes[i].least);
    if (model->layers > 0 && model->trunk > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the trunk is specified twice: by %" PRId64 " layers and by %" PRId64
                          " parameters",
                          model->layers, model->trunk);
    if (model->untied && model->headless)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a model cannot be untied and headless: an untied "
                                              "head is a table, and headless means none");
    return EMBLA_OK;
}

/* Bytes of one row of each table; 0 for a table that the model does not have. */
typedef struct {
    int64_t token, position, ngram;
} row_bytes;

/* Adds up the parts that are known. */
static embla_status sums(const embla_cost_model *model, const row_bytes *row, embla_cost *cost)
{
    const embla_cost_part inputs[] = {cost->tokens, cost->positions, cost->ngram};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (!add_part(&cost->inputs, inputs[i])) return too_large("all tables");
    cost->tables = cost->inputs;
    if (!add_part(&cost->tables, cost->head)) return too_large("all tables");
    cost->total = cost->tables;
    if (!add_part(&cost->total, cost->trunk)) return too_large("the model");

    int64_t ngram = 0;
    if (!mul(model->ngram_rows_per_token, row->ngram, &ngram))
        return too_large("a token's n-gram rows");
    if (!add(row->token, row->position, &cost->lookup_bytes) ||
        !add(cost->lookup_bytes, ngram, &cost->lookup_bytes))
        return too_large("a token's rows");
    if (cost->trunk.parameters == 0) return EMBLA_OK;
    if (!add(cost->lookup_bytes, cost->trunk.bytes, &cost->read_bytes) ||
        !add(cost->read_bytes, cost->head_bytes, &cost->read_bytes))
        return too_large("the bytes read for a token");
    return EMBLA_OK;
}

/* The rest, when the parts are known: work for one token, and the sums. */
static embla_status finish(const embla_cost_model *model, const row_bytes *row, embla_cost *cost)
{
    cost->one_hot_madds = cost->tokens.parameters;
    if (!model->headless) {
        cost->head_madds = cost->tokens.parameters;
        cost->head_bytes = model->untied ? cost->head.bytes : cost->tokens.bytes;
        cost->head_layers = (double)model->rows / (4 * (double)model->dim);
    }
    return sums(model, row, cost);
}

embla_status embla_cost_compute(const embla_cost_model *model, embla_cost *out)
{
    EMBLA_TRY(embla_options_check(model));
    embla_cost cost = {0};
    row_bytes row = {0};
    EMBLA_NEED(model);
    EMBLA_NEED(out);
    EMBLA_TRY(check(model));

    embla_dtype dtype = model->dtype ? model->dtype : EMBLA_F32;
    embla_dtype ngram_dtype = model->ngram_dtype ? model->ngram_dtype : dtype;
    EMBLA_TRY(row_size(dtype, model->dim, &row.token));
    if (model->positions > 0) row.position = row.token;
    if (model->ngram_rows > 0) {
        EMBLA_TRY(row_size(ngram_dtype, model->ngram_dim, &row.ngram));
        if (!add(row.ngram, model->ngram_scale_bytes, &row.ngram))
            return too_large("an n-gram row");
    }

    EMBLA_TRY(table_part("the token table", model->rows, model->dim, row.token, &cost.tokens));
    EMBLA_TRY(
        table_part("the position table", model->positions, model->dim, row.token, &cost.positions));
    EMBLA_TRY(
        table_part("an n-gram table", model->ngram_rows, model->ngram_dim, row.ngram, &cost.ngram));
    EMBLA_TRY(trunk_part(model, dtype, &cost.trunk));
    if (model->untied) cost.head = cost.tokens;
    EMBLA_TRY(finish(model, &row, &cost));
    *out = cost;
    return EMBLA_OK;
}

/* ---- a checkpoint ---- */

enum { TIE_SAMPLE = 1024 }; /* rows of table and head that are compared */

/* A checkpoint whose tensors are added up. */
typedef struct {
    const embla_checkpoint *checkpoint;
    embla_tensor tokens, positions, head; /* name NULL: there is none */
    embla_cost_model model;
    embla_cost cost;
    row_bytes row;
} account;

static embla_status tensor_part(const embla_tensor *tensor, embla_cost_part *out)
{
    embla_cost_part part = {1, tensor->bytes};
    for (size_t i = 0; i < tensor->rank; i++)
        if (!mul(part.parameters, tensor->shape[i], &part.parameters))
            return too_large("the number of parameters of a tensor");
    *out = part;
    return EMBLA_OK;
}

static embla_status count_tokens(account *a)
{
    EMBLA_TRY(embla_checkpoint_role(a->checkpoint, EMBLA_ROLE_TOKENS, &a->tokens, NULL));
    const embla_tensor *t = &a->tokens;
    if (t->rank > 2 || t->rank < 1)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "tensor '%.128s' has %zu dimensions; a table has 2, rows x dim", t->name,
                          t->rank);
    a->model.rows = t->rank > 1 ? t->shape[0] : 1;
    a->model.dim = t->shape[t->rank - 1];
    a->model.dtype = t->dtype;
    if (a->model.rows < 1 || a->model.dim < 1)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "tensor '%.128s' is %" PRId64 " x %" PRId64 "; a table has at least one "
                          "row and one number in it",
                          t->name, a->model.rows, a->model.dim);
    EMBLA_TRY(tensor_part(t, &a->cost.tokens));
    a->row.token = t->bytes / a->model.rows;
    return EMBLA_OK;
}

static embla_status count_positions(account *a)
{
    embla_tensor *t = &a->positions;
    embla_status status = embla_checkpoint_role(a->checkpoint, EMBLA_ROLE_POSITIONS, t, NULL);
    if (status == EMBLA_ERR_MEMORY) return status;
    if (status != EMBLA_OK || t->rank != 2 || t->shape[0] < 1 ||
        strcmp(t->name, a->tokens.name) == 0) {
        t->name = NULL; /* there is none, or none that is added to rows of tokens */
        return EMBLA_OK;
    }
    a->model.positions = t->shape[0];
    a->row.position = t->bytes / t->shape[0];
    return tensor_part(t, &a->cost.positions);
}

/* A head that the file lacks counts if a flag or the architecture says that the model has one. */
static embla_status count_head(account *a)
{
    embla_tie tie;
    EMBLA_TRY(embla_checkpoint_tie(a->checkpoint, TIE_SAMPLE, &tie));
    const bool missing = tie.kind == EMBLA_TIE_HEAD_MISSING,
               unknown = missing && strcmp(tie.flag, "not set") == 0;
    a->model.untied = tie.kind == EMBLA_TIE_UNTIED || (missing && !unknown);
    a->model.headless = tie.kind == EMBLA_TIE_NO_HEAD || tie.kind == EMBLA_TIE_NO_TABLE || unknown;
    if (missing && !unknown) a->cost.head = a->cost.tokens;
    if (tie.kind != EMBLA_TIE_UNTIED && tie.kind != EMBLA_TIE_STORED_TWICE) return EMBLA_OK;
    EMBLA_TRY(embla_checkpoint_role(a->checkpoint, EMBLA_ROLE_HEAD, &a->head, NULL));
    return a->model.untied ? tensor_part(&a->head, &a->cost.head) : EMBLA_OK;
}

/* The n-gram table, if there is one. */
static embla_status count_ngrams(account *a)
{
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_READ};
    embla_store *store = NULL;
    embla_ngram *hasher = NULL;
    embla_store_info table = {0};
    embla_ngram_info ngram = {.rows_per_token = 1};
    embla_status status = embla_store_open(a->checkpoint, NULL, -1, &options, &store);
    if (status != EMBLA_OK) return status == EMBLA_ERR_MEMORY ? status : EMBLA_OK;
    status = embla_store_describe(store, &table);
    if (status == EMBLA_OK && embla_ngram_open(a->checkpoint, -1, NULL, &hasher) == EMBLA_OK)
        status = embla_ngram_describe(hasher, &ngram);
    embla_ngram_free(hasher);
    embla_store_free(store);
    EMBLA_TRY(status);
    a->model.ngram_rows = table.rows;
    a->model.ngram_dim = (int64_t)table.format.dim;
    a->model.ngram_rows_per_token = (int64_t)ngram.rows_per_token;
    a->model.ngram_dtype = table.format.dtype;
    a->row.ngram = (int64_t)table.row_bytes;
    size_t numbers = 0;
    EMBLA_TRY(embla_dtype_row_bytes(table.format.dtype, table.format.dim, &numbers));
    a->model.ngram_scale_bytes = a->row.ngram - (int64_t)numbers;
    return table_part("an n-gram table", table.rows, a->model.ngram_dim, a->row.ngram,
                      &a->cost.ngram);
}

/* Whether a tensor is a constant that training leaves alone. */
static bool is_constant(const embla_tensor *tensor)
{
    static const char *const tails[] = {".attn.bias",       ".attn.masked_bias", "position_ids",
                                        ".inv_freq",        "rope.freqs_cos",    "rope.freqs_sin",
                                        "rope_freqs.weight"};
    const size_t length = strlen(tensor->name);
    if (tensor->role == EMBLA_ROLE_MAPPING) return true;
    for (size_t i = 0; i < sizeof tails / sizeof tails[0]; i++) {
        const size_t tail = strlen(tails[i]);
        if (length < tail || strcmp(tensor->name + length - tail, tails[i]) != 0) continue;
        return i > 0 || tensor->rank > 2; /* ".attn.bias": a mask, not a vector of biases */
    }
    return false;
}

static bool is_tensor(const embla_tensor *a, const embla_tensor *b)
{
    return a->name && strcmp(a->name, b->name) == 0;
}

/* All other tensors. The n-gram table is subtracted, because it may be several of them. */
static embla_status count_trunk(account *a)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(a->checkpoint, &count);
    embla_cost_part all = {0}, part = {0};
    for (size_t i = 0; i < count; i++) {
        const embla_tensor *t = &tensors[i];
        if (is_tensor(&a->tokens, t) || is_tensor(&a->positions, t) || is_tensor(&a->head, t) ||
            is_constant(t))
            continue;
        EMBLA_TRY(tensor_part(t, &part));
        if (!add_part(&all, part)) return too_large("the trunk");
    }
    const embla_cost_part ngram = a->cost.ngram;
    all.parameters -= all.parameters < ngram.parameters ? all.parameters : ngram.parameters;
    all.bytes -= all.bytes < ngram.bytes ? all.bytes : ngram.bytes;
    a->cost.trunk = all;
    a->model.trunk = all.parameters;
    return EMBLA_OK;
}

embla_status embla_cost_checkpoint(const embla_checkpoint *checkpoint, embla_cost_model *model,
                                   embla_cost *out)
{
    account a = {.checkpoint = checkpoint};
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(out);
    EMBLA_TRY(count_tokens(&a));
    EMBLA_TRY(count_positions(&a));
    EMBLA_TRY(count_head(&a));
    EMBLA_TRY(count_ngrams(&a));
    EMBLA_TRY(count_trunk(&a));
    EMBLA_TRY(finish(&a.model, &a.row, &a.cost));
    if (model) *model = a.model;
    *out = a.cost;
    return EMBLA_OK;
}
