/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a model from a checkpoint, with the tensor names of GPT-2, Llama, llama2.c, llm.c or our
 * own folders. gpt_config.c reads the sizes.
 *
 * Each family has a list of our tensors with their names and layout in the file. All names and
 * shapes are checked before a model is allocated, so wrong sizes in a file cost no memory. Then
 * each tensor is read a tile at a time and decoded to f32. An unknown tensor is an error: ignoring
 * it would change the results. GPT-2 stores linear layers as input x output (Conv1D), we store
 * output x input.
 */
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/mem.h"
#include "checkpoint/checkpoint.h"
#include "model/gpt_config.h"
#include "model/gpt_ngram.h"

/* ---- state of an open ---- */

enum { NAME = 160, SHAPE_TEXT = EMBLA_TENSOR_RANK_MAX * 23 + 1 };
enum { TILE = 1 << 16, TILE_INPUTS = 16, TILE_OUTPUTS = TILE / TILE_INPUTS };

typedef struct {
    const embla_checkpoint *cp;
    const embla_family *family;
    const char *prefix;
    embla_gpt_shape shape;
    uint8_t *used;  /* one for each tensor of the checkpoint */
    uint8_t *raw;   /* TILE stored numbers, at most 8 bytes each */
    float *numbers; /* TILE decoded numbers */
    embla_gpt *gpt;
} opening;

enum { RAW = TILE * sizeof(double), SPACE = RAW + TILE * sizeof(float) };

/* ---- shape ---- */

static void mark_used(opening *o, const embla_entry *entry)
{
    o->used[entry - o->cp->entries] = 1;
}

static embla_status read_config(opening *o)
{
    embla_gpt_config config;
    EMBLA_TRY(embla_gpt_config_read(o->cp, &config));
    o->family = config.family;
    o->prefix = config.prefix;
    o->shape = config.shape;
    if (config.head) mark_used(o, config.head); /* even if it is only a copy of the token table */
    return EMBLA_OK;
}

/* ---- names and shapes ---- */

static uint64_t size_of(const embla_gpt_shape *s, uint8_t letter)
{
    const uint64_t kv = (uint64_t)(s->dim / s->heads * s->kv_heads);
    const uint64_t sizes[] = {[EMBLA_BY_ONE] = 1,
                              [EMBLA_BY_VOCAB] = (uint64_t)s->vocab,
                              [EMBLA_BY_POSITIONS] = s->positions,
                              [EMBLA_BY_DIM] = s->dim,
                              [EMBLA_BY_JOINT] = s->dim + 2 * kv,
                              [EMBLA_BY_KV] = kv,
                              [EMBLA_BY_HIDDEN] = s->hidden};
    return sizes[letter];
}

/* "2 x 12 x 4", for messages. */
static const char *shape_text(const uint64_t *shape, size_t rank, char out[SHAPE_TEXT])
{
    size_t used = 0;
    (void)snprintf(out, SHAPE_TEXT, "one number");
    for (size_t i = 0; i < rank && i < EMBLA_TENSOR_RANK_MAX; i++)
        used += (size_t)snprintf(out + used, SHAPE_TEXT - used, "%s%" PRIu64, i > 0 ? " x " : "",
                                 shape[i]);
    return out;
}

static bool is_float(embla_dtype dtype)
{
    return dtype == EMBLA_F32 || dtype == EMBLA_F64 || dtype == EMBLA_F16 || dtype == EMBLA_BF16 ||
           dtype == EMBLA_F8_E4M3 || dtype == EMBLA_F8_E5M2;
}

/* Finds a tensor and checks its shape and type. If `more`, its first size may be larger
 * (padding). */
static embla_status find_tensor(opening *o, const char *name, const uint64_t *shape, size_t rank,
                                bool more, const embla_entry **out)
{
    char has_text[SHAPE_TEXT], must[SHAPE_TEXT];
    const embla_entry *entry = NULL;
    if (embla_checkpoint_named(o->cp, name, &entry) != EMBLA_OK)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: tensor '%.128s' (%s) is missing", o->cp->shown,
                          name, shape_text(shape, rank, must));
    bool fits = entry->rank == rank;
    for (size_t i = 0; fits && i < rank; i++)
        fits = entry->shape[i] == shape[i] || (more && i == 0 && entry->shape[0] > shape[0]);
    if (!fits)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%.128s' is %s; the model's sizes require %s",
                          o->cp->shown, name, shape_text(entry->shape, entry->rank, has_text),
                          shape_text(shape, rank, must));
    if (!is_float(entry->element->dtype))
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.200s: tensor '%.128s' has type %s; supported: f32, f64, f16, bf16 and f8",
            o->cp->shown, name, entry->element->name);
    mark_used(o, entry);
    *out = entry;
    return EMBLA_OK;
}

static bool exists(const embla_gpt_shape *s, const embla_family_line *l)
{
    return l->when == EMBLA_ALWAYS || (l->when == EMBLA_IF_UNTIED ? s->untied : s->biases);
}

static embla_status find_line_tensor(opening *o, const embla_family_line *l, bool in_layer,
                                     size_t layer, const embla_entry **out)
{
    char name[NAME];
    uint64_t shape[3];
    size_t rank = 0;
    uint64_t rows = size_of(&o->shape, l->rows), dim = size_of(&o->shape, l->dim);
    if (in_layer && o->family->layer)
        (void)snprintf(name, sizeof name, "%s%s%zu.%s", o->prefix, o->family->layer, layer,
                       l->name);
    else
        (void)snprintf(name, sizeof name, "%s%s",
                       !in_layer && l->slot == EMBLA_GPT_LM_HEAD ? "" : o->prefix, l->name);
    if (in_layer && !o->family->layer) shape[rank++] = o->shape.layers;
    if (l->rows != EMBLA_BY_ONE) shape[rank++] = l->transposed ? dim : rows;
    shape[rank++] = l->transposed ? rows : dim;
    bool padded = o->family == &embla_family_llmc && !in_layer && l->slot == EMBLA_GPT_WTE;
    return find_tensor(o, name, shape, rank, padded, out);
}

/* ---- numbers ---- */

/* Reads and decodes count numbers, at most TILE, from number `at` on. */
static embla_status read_numbers(opening *o, const embla_entry *entry, uint64_t at, size_t count,
                                 float *out)
{
    size_t size;
    EMBLA_TRY(embla_dtype_row_bytes(entry->element->dtype, 1, &size));
    EMBLA_TRY(embla_entry_read(o->cp, entry, at * size, count * size, o->raw));
    embla_order_rows(entry->element->dtype, o->raw, count * size);
    return embla_dtype_decode(entry->element->dtype, o->raw, count, 0, out);
}

static embla_status read_tensor(opening *o, const embla_entry *entry, uint64_t at, uint64_t count,
                                float *out)
{
    for (uint64_t done = 0; done < count; done += TILE) {
        size_t n = count - done < TILE ? (size_t)(count - done) : TILE;
        EMBLA_TRY(read_numbers(o, entry, at + done, n, out + done));
    }
    return EMBLA_OK;
}

/* Fills out (rows x dim) from a tensor dim x rows. A tile of inputs at a time, so that writes fill
 * cache lines. */
static embla_status read_transposed(opening *o, const embla_entry *entry, size_t rows, size_t dim,
                                    float *out)
{
    for (size_t i = 0; i < dim; i += TILE_INPUTS)
        for (size_t j = 0; j < rows; j += TILE_OUTPUTS) {
            size_t inputs = dim - i < TILE_INPUTS ? dim - i : TILE_INPUTS;
            size_t outputs = rows - j < TILE_OUTPUTS ? rows - j : TILE_OUTPUTS;
            for (size_t n = 0; n < inputs; n++)
                EMBLA_TRY(read_numbers(o, entry, (uint64_t)(i + n) * rows + j, outputs,
                                       o->numbers + n * outputs));
            for (size_t m = 0; m < outputs; m++)
                for (size_t n = 0; n < inputs; n++)
                    out[(j + m) * dim + i + n] = o->numbers[n * outputs + m];
        }
    return EMBLA_OK;
}

/* Finds the tensor of a line. If the model is already allocated, fills its weights. */
static embla_status read_line(opening *o, const embla_family_line *l, bool in_layer, size_t layer)
{
    const embla_entry *entry = NULL;
    if (!exists(&o->shape, l)) return EMBLA_OK;
    EMBLA_TRY(find_line_tensor(o, l, in_layer, layer, &entry));
    if (!o->gpt) return EMBLA_OK;
    uint64_t rows = size_of(&o->shape, l->rows), dim = size_of(&o->shape, l->dim);
    uint64_t first = in_layer && !o->family->layer ? layer * rows * dim : 0;
    float *out = embla_gpt_weight(o->gpt, in_layer ? embla_gpt_slot(layer, l->slot) : l->slot);
    if (l->transposed) return read_transposed(o, entry, (size_t)rows, (size_t)dim, out);
    return read_tensor(o, entry, first, rows * dim, out);
}

static embla_status read_lines(opening *o)
{
    const embla_family *f = o->family;
    for (size_t i = 0; i < f->model_count; i++) EMBLA_TRY(read_line(o, &f->model[i], false, 0));
    for (size_t layer = 0; layer < o->shape.layers; layer++)
        for (size_t i = 0; i < f->layer_count; i++)
            EMBLA_TRY(read_line(o, &f->layers[i], true, layer));
    return EMBLA_OK;
}

/* Reads the n-gram table. */
static embla_status read_ngram_table(opening *o)
{
    embla_table *table = embla_gpt_ngram_table(o->gpt);
    const embla_entry *entry = NULL;
    const uint64_t shape[] = {(uint64_t)embla_table_rows(table), embla_table_dim(table)};
    EMBLA_TRY(find_tensor(o, EMBLA_GPT_NGRAM_NAME, shape, 2, false, &entry));
    return read_tensor(o, entry, 0, shape[0] * shape[1], embla_table_data(table));
}

/* Reads a model from our own folder, each tensor by our name. */
static embla_status read_own(opening *o)
{
    const embla_gpt *gpt = o->gpt;
    for (size_t i = 0; gpt && i < gpt->part_count; i++) {
        const embla_gpt_part *part = &gpt->parts[i];
        const embla_entry *entry = NULL;
        const uint64_t shape[] = {(uint64_t)part->rows, part->dim};
        size_t skip = part->decays ? 0 : 1; /* vectors are the tensors without decay */
        EMBLA_TRY(find_tensor(o, part->name, shape + skip, 2 - skip, false, &entry));
        EMBLA_TRY(read_tensor(o, entry, 0, (uint64_t)part->rows * part->dim,
                              (float *)(void *)gpt->weights + part->at));
    }
    return gpt && gpt->grams ? read_ngram_table(o) : EMBLA_OK;
}

/* Our names exist only after the model is allocated. So refuse sizes that need much more memory
 * than the file has. */
static embla_status check_own(const opening *o)
{
    embla_gpt_memory plan;
    uint64_t bytes = 0;
    for (size_t i = 0; i < o->cp->count; i++) bytes += o->cp->entries[i].bytes;
    EMBLA_TRY(embla_gpt_plan_memory(&o->shape, 1, 1, &plan));
    if ((uint64_t)plan.weights / 2 > bytes + TILE)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: its sizes require %" PRId64
                          " bytes, but its tensors have %" PRIu64,
                          o->cp->shown, plan.weights, bytes);
    return EMBLA_OK;
}

/* Every tensor must be used, except those that are not parameters. */
static embla_status check_others(const opening *o)
{
    char text[SHAPE_TEXT];
    for (size_t i = 0; i < o->cp->count; i++) {
        const embla_entry *entry = &o->cp->entries[i];
        size_t length = strlen(entry->name);
        bool known = o->used[i];
        for (const char *const *other = o->family->others; !known && *other; other++) {
            size_t end = strlen(*other);
            known = length >= end && strcmp(entry->name + length - end, *other) == 0;
        }
        if (!known)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.200s: tensor '%.128s' (%s) is not part of a model of %s",
                              o->cp->shown, entry->name,
                              shape_text(entry->shape, entry->rank, text), o->family->title);
    }
    return EMBLA_OK;
}

static embla_status open_model(opening *o)
{
    EMBLA_TRY(read_config(o));
    bool own = o->family == &embla_family_embla;
    EMBLA_TRY(own ? check_own(o) : read_lines(o));
    if (!own) EMBLA_TRY(check_others(o));
    EMBLA_TRY(embla_gpt_blank(&o->shape, &o->gpt));
    EMBLA_TRY(own ? read_own(o) : read_lines(o));
    return own ? check_others(o) : EMBLA_OK;
}

embla_status embla_gpt_open(const embla_checkpoint *checkpoint, embla_gpt **out)
{
    opening o = {.cp = checkpoint};
    void *memory = NULL;
    EMBLA_NEED(checkpoint);
    EMBLA_NEED(out);
    size_t bytes = SPACE + checkpoint->count;
    EMBLA_TRY(embla_mem_new(bytes, "a model being opened", &memory));
    o.raw = memory;
    o.numbers = (float *)(void *)(o.raw + RAW);
    o.used = o.raw + SPACE;
    embla_status status = open_model(&o);
    embla_mem_free(memory, bytes);
    if (status != EMBLA_OK) {
        embla_gpt_free(o.gpt);
        return status;
    }
    *out = o.gpt;
    return EMBLA_OK;
}
