/* SPDX-License-Identifier: Apache-2.0 */
/* The cost of a model's tables: parameters, bytes, operations for one token.
 *
 * With V rows, d dim, T positions and L layers:
 *   token table V d, positions T d, head V d (0 when tied), GPT trunk 12 L d^2
 *   lookup      one row of each table: a copy, no arithmetic
 *   head        V d multiply-adds for every token. Tying saves memory, not work. An attention
 *               layer has 4 d^2, so the head is worth V / (4 d) of them.
 *
 * Every product and sum is checked and fits in an int64_t, so a figure is either exact or refused.
 * Figures are bytes; the program converts them to GB.
 */
#include <stdio.h>
#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/status.h"
#include "embla_lab.h"

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
     "microGPT, names letter by letter: 27x16 and 1 layer, with 8 positions as it is described; "
     "the "
     "program itself has 16.",
     {.rows = 27, .dim = 16, .positions = 8, .layers = 1, .dtype = EMBLA_F32, .untied = true}},
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
    {"llama-3.1-8b",
     "Llama 3.1 8B, from its config; 8,030,261,248 parameters; rotary positions.",
     {.rows = 128256, .dim = 4096, .trunk = 6979588096, .dtype = EMBLA_BF16, .untied = true}},
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
    size_t bytes;
    EMBLA_TRY(embla_dtype_row_bytes(dtype, (size_t)dim, &bytes));
    if (bytes > INT64_MAX) return too_large("a row");
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
    return EMBLA_OK;
}

/* Adds up the parts that are known. */
static embla_status sums(const embla_cost_model *model, int64_t row_bytes, int64_t ngram_bytes,
                         embla_cost *cost)
{
    const embla_cost_part inputs[] = {cost->tokens, cost->positions, cost->ngram};
    for (size_t i = 0; i < sizeof inputs / sizeof inputs[0]; i++)
        if (!add_part(&cost->inputs, inputs[i])) return too_large("all tables");
    cost->tables = cost->inputs;
    if (!add_part(&cost->tables, cost->head)) return too_large("all tables");
    cost->total = cost->tables;
    if (!add_part(&cost->total, cost->trunk)) return too_large("the model");

    int64_t rows = 1 + (model->positions > 0), ngram = 0;
    if (model->ngram_rows > 0 && !mul(model->ngram_rows_per_token, ngram_bytes, &ngram))
        return too_large("a token's n-gram rows");
    if (!mul(rows, row_bytes, &cost->lookup_bytes) ||
        !add(cost->lookup_bytes, ngram, &cost->lookup_bytes))
        return too_large("a token's rows");
    if (cost->trunk.parameters == 0) return EMBLA_OK;
    if (!add(cost->lookup_bytes, cost->trunk.bytes, &cost->read_bytes) ||
        !add(cost->read_bytes, cost->tokens.bytes, &cost->read_bytes))
        return too_large("the bytes read for a token");
    return EMBLA_OK;
}

embla_status embla_cost_compute(const embla_cost_model *model, embla_cost *out)
{
    EMBLA_TRY(embla_options_check(model));
    embla_cost cost = {0};
    int64_t row_bytes = 0, ngram_bytes = 0;
    EMBLA_NEED(model);
    EMBLA_NEED(out);
    EMBLA_TRY(check(model));

    embla_dtype dtype = model->dtype ? model->dtype : EMBLA_F32;
    embla_dtype ngram_dtype = model->ngram_dtype ? model->ngram_dtype : dtype;
    EMBLA_TRY(row_size(dtype, model->dim, &row_bytes));
    if (model->ngram_rows > 0) {
        EMBLA_TRY(row_size(ngram_dtype, model->ngram_dim, &ngram_bytes));
        if (!add(ngram_bytes, model->ngram_scale_bytes, &ngram_bytes))
            return too_large("an n-gram row");
    }

    EMBLA_TRY(table_part("the token table", model->rows, model->dim, row_bytes, &cost.tokens));
    EMBLA_TRY(
        table_part("the position table", model->positions, model->dim, row_bytes, &cost.positions));
    EMBLA_TRY(table_part("an n-gram table", model->ngram_rows, model->ngram_dim, ngram_bytes,
                         &cost.ngram));
    EMBLA_TRY(trunk_part(model, dtype, &cost.trunk));
    if (model->untied) cost.head = cost.tokens;
    EMBLA_TRY(sums(model, row_bytes, ngram_bytes, &cost));
    cost.one_hot_madds = cost.tokens.parameters;
    cost.head_madds = cost.tokens.parameters;
    cost.head_bytes = cost.tokens.bytes;
    cost.head_layers = (double)model->rows / (4 * (double)model->dim);
    *out = cost;
    return EMBLA_OK;
}

/* ---- figures that are quoted and wrong ---- */

static bool is_shape(const embla_cost_model *model, int64_t least_rows, int64_t most_rows,
                     int64_t dim)
{
    return model->rows >= least_rows && model->rows <= most_rows && model->dim == dim;
}

const char *embla_cost_note(const embla_cost_model *model, size_t n)
{
    if (!model) return NULL;
    if (is_shape(model, 128000, 128256, 4096) && n-- == 0)
        return "524 MB is sometimes quoted for this table; it has 524 million parameters, and "
               "takes "
               "2.10 GB in f32 and 1.05 GB in bf16";
    if (is_shape(model, 8449, 8449, 768) && model->layers == 12 && n-- == 0)
        return "5.4% is sometimes quoted for this token table, as if the model had the 120 million "
               "parameters of its name; it is 6.57%";
    if (model->untied && n-- == 0)
        return "'almost all models tie' is no longer so: of the presets here only gpt2 and gemma-3 "
               "do";
    return NULL;
}
