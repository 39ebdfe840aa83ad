/* SPDX-License-Identifier: Apache-2.0 */
/* Creates a decoder: checks its shape, lists its tensors and their places, and allocates memory:
 * one block each for weights, gradients and activations.
 *
 * Everything that the backward pass needs is kept, including the outputs of norms and activations.
 * For 1,024 tokens of GPT-2 124M that is 0.6 GiB, beside 1.9 GiB of weights, gradients and
 * optimizer state. So a step computes nothing twice. Gradients of activations are kept for one
 * layer at a time.
 */
#include "model/gpt.h"
#include "model/gpt_ngram.h"

#include <stdio.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"

/* ---- tensors ---- */

/* The shape of a slot as letters (V vocab, T positions, C dim, K keys, H hidden, E rows of n-grams,
 * 1), and the condition for the tensor. */
typedef enum {
    ALWAYS,
    LEARNED,
    UNTIED,
    FIRST_GAIN,
    FIRST_BIAS,
    LAST_GAIN,
    LAST_BIAS,
    GAIN,
    NORM_BIAS,
    BIAS,
    SWIGLU,
    SWIGLU_BIAS,
    NGRAM
} condition;

typedef struct {
    const char *name;
    char rows, dim;
    bool follows; /* directly after the previous tensor, without a gap */
    condition when;
} slot_kind;

static const slot_kind model_slots[EMBLA_GPT_LAYERS] = {
    [EMBLA_GPT_WTE] = {"wte", 'V', 'C', false, ALWAYS},
    [EMBLA_GPT_WPE] = {"wpe", 'T', 'C', false, LEARNED},
    [EMBLA_GPT_LM_HEAD] = {"lm_head", 'V', 'C', false, UNTIED},
    [EMBLA_GPT_NORM_FIRST_GAIN] = {"norm_first.gain", '1', 'C', false, FIRST_GAIN},
    [EMBLA_GPT_NORM_FIRST_BIAS] = {"norm_first.bias", '1', 'C', false, FIRST_BIAS},
    [EMBLA_GPT_NORM_GAIN] = {"norm.gain", '1', 'C', false, LAST_GAIN},
    [EMBLA_GPT_NORM_BIAS] = {"norm.bias", '1', 'C', false, LAST_BIAS},
};

static const slot_kind layer_slots[EMBLA_GPT_LAYER_SLOTS] = {
    [EMBLA_GPT_NORM1_GAIN] = {"norm1.gain", '1', 'C', false, GAIN},
    [EMBLA_GPT_NORM1_BIAS] = {"norm1.bias", '1', 'C', false, NORM_BIAS},
    [EMBLA_GPT_Q] = {"attn.q", 'C', 'C', false, ALWAYS},
    [EMBLA_GPT_K] = {"attn.k", 'K', 'C', true, ALWAYS},
    [EMBLA_GPT_V] = {"attn.v", 'K', 'C', true, ALWAYS},
    [EMBLA_GPT_Q_BIAS] = {"attn.q.bias", '1', 'C', false, BIAS},
    [EMBLA_GPT_K_BIAS] = {"attn.k.bias", '1', 'K', true, BIAS},
    [EMBLA_GPT_V_BIAS] = {"attn.v.bias", '1', 'K', true, BIAS},
    [EMBLA_GPT_O] = {"attn.o", 'C', 'C', false, ALWAYS},
    [EMBLA_GPT_O_BIAS] = {"attn.o.bias", '1', 'C', false, BIAS},
    [EMBLA_GPT_NORM2_GAIN] = {"norm2.gain", '1', 'C', false, GAIN},
    [EMBLA_GPT_NORM2_BIAS] = {"norm2.bias", '1', 'C', false, NORM_BIAS},
    [EMBLA_GPT_UP] = {"mlp.up", 'H', 'C', false, ALWAYS},
    [EMBLA_GPT_UP_BIAS] = {"mlp.up.bias", '1', 'H', false, BIAS},
    [EMBLA_GPT_GATE] = {"mlp.gate", 'H', 'C', false, SWIGLU},
    [EMBLA_GPT_GATE_BIAS] = {"mlp.gate.bias", '1', 'H', false, SWIGLU_BIAS},
    [EMBLA_GPT_DOWN] = {"mlp.down", 'C', 'H', false, ALWAYS},
    [EMBLA_GPT_DOWN_BIAS] = {"mlp.down.bias", '1', 'C', false, BIAS},
};

static const slot_kind ngram_slots[EMBLA_GPT_NGRAM_SLOTS] = {
    [EMBLA_GPT_NGRAM_KEY] = {"ngram.key", 'C', 'E', false, NGRAM},
    [EMBLA_GPT_NGRAM_VALUE] = {"ngram.value", 'C', 'E', true, NGRAM},
};

static bool is_present(const embla_gpt_shape *s, condition when)
{
    bool gains = !s->no_gain, swiglu = s->activation == EMBLA_ACTIVATION_SWIGLU;
    bool shifts = s->biases && s->norm == EMBLA_NORM_LAYER;
    switch (when) {
    case ALWAYS:
        return true;
    case LEARNED:
        return s->position_kind == EMBLA_POSITIONS_LEARNED;
    case UNTIED:
        return s->untied;
    case FIRST_GAIN:
        return gains && s->norm_first;
    case FIRST_BIAS:
        return shifts && s->norm_first;
    case LAST_GAIN:
        return gains && !s->no_norm_last;
    case LAST_BIAS:
        return shifts && !s->no_norm_last;
    case GAIN:
        return gains;
    case NORM_BIAS:
        return shifts;
    case BIAS:
        return s->biases;
    case SWIGLU:
        return swiglu;
    case SWIGLU_BIAS:
        return swiglu && s->biases;
    case NGRAM:
        return embla_gpt_has_ngram(s);
    }
    return false;
}

static size_t size_of(const embla_gpt_shape *s, char letter)
{
    switch (letter) {
    case 'V':
        return (size_t)s->vocab;
    case 'T':
        return s->positions;
    case 'C':
        return s->dim;
    case 'K':
        return s->dim / s->heads * s->kv_heads;
    case 'H':
        return s->hidden;
    case 'E':
        return embla_gpt_ngram_width(s);
    default:
        return 1;
    }
}

/* The list while it is built. If parts is NULL, tensors are only counted. */
typedef struct {
    const embla_gpt_shape *shape;
    embla_gpt_part *parts;
    int32_t *part_of;
    size_t count;
    uint64_t end, parameters; /* numbers with and without gaps */
} listing;

enum { LINE = 16 }; /* tensors begin at a multiple of this many numbers */

static uint64_t round_to_line(uint64_t numbers)
{
    return (numbers + LINE - 1) / LINE * LINE;
}

static void add(listing *l, const slot_kind *kind, size_t slot, const char *before)
{
    if (l->part_of) l->part_of[slot] = -1;
    if (!is_present(l->shape, kind->when)) return;
    size_t rows = size_of(l->shape, kind->rows), dim = size_of(l->shape, kind->dim);
    uint64_t numbers = (uint64_t)rows * dim, at = kind->follows ? l->end : round_to_line(l->end);
    if (l->parts) {
        embla_gpt_part *part = &l->parts[l->count];
        *part = (embla_gpt_part){.slot = slot, .rows = (int64_t)rows, .dim = dim};
        (void)snprintf(part->name, sizeof part->name, "%s%s", before, kind->name);
        part->at = (size_t)at;
        part->decays = kind->rows != '1';
        l->part_of[slot] = (int32_t)l->count;
    }
    l->count++;
    l->parameters += numbers;
    l->end = at + numbers;
}

/* In the order in which microGPT creates them, with norms where they are used. */
static void list(listing *l)
{
    char before[32];
    for (size_t slot = 0; slot < EMBLA_GPT_NORM_GAIN; slot++) add(l, &model_slots[slot], slot, "");
    for (size_t layer = 0; layer < l->shape->layers; layer++) {
        (void)snprintf(before, sizeof before, "layer%zu.", layer);
        for (size_t slot = 0; slot < EMBLA_GPT_LAYER_SLOTS; slot++)
            add(l, &layer_slots[slot], embla_gpt_slot(layer, slot), before);
    }
    for (size_t slot = EMBLA_GPT_NORM_GAIN; slot < EMBLA_GPT_LAYERS; slot++)
        add(l, &model_slots[slot], slot, "");
    for (size_t slot = 0; slot < EMBLA_GPT_NGRAM_SLOTS; slot++)
        add(l, &ngram_slots[slot], embla_gpt_ngram_slot(l->shape, slot), "");
    l->end = round_to_line(l->end);
}

/* ---- activations ---- */

/* Adds n x `numbers` values. */
static size_t add_array(embla_layout *layout, size_t n, size_t numbers)
{
    return embla_layout_add(layout, n, numbers * sizeof(float)); /* bounded by the shape */
}

static void add_layer_arrays(const embla_gpt_shape *s, size_t n, embla_gpt_places *at)
{
    embla_layout layout = {0};
    size_t dim = s->dim, kv = size_of(s, 'K'), swiglu = s->activation == EMBLA_ACTIVATION_SWIGLU;
    at->norm1 = add_array(&layout, n, dim);
    at->stats1 = add_array(&layout, n, 2);
    at->joint = add_array(&layout, n, dim + 2 * kv);
    at->attended = add_array(&layout, n, dim);
    at->attended_stats = add_array(&layout, n, s->heads);
    at->middle = add_array(&layout, n, dim);
    at->norm2 = add_array(&layout, n, dim);
    at->stats2 = add_array(&layout, n, 2);
    at->up = add_array(&layout, n, s->hidden);
    at->gate = add_array(&layout, n, swiglu * s->hidden);
    at->active = add_array(&layout, n, s->hidden);
    at->out = add_array(&layout, n, dim);
    at->layer_bytes = layout.too_large ? SIZE_MAX : layout.bytes;
}

static embla_status plan_activations(const embla_gpt_shape *s, size_t n, embla_gpt_places *out)
{
    embla_gpt_places at = {.tokens = n};
    embla_layout layout = {0};
    size_t dim = s->dim, kv = size_of(s, 'K'), swiglu = s->activation == EMBLA_ACTIVATION_SWIGLU;
    add_layer_arrays(s, n, &at);
    at.embedded = add_array(&layout, n, dim);
    at.first = add_array(&layout, n, s->norm_first * dim);
    at.first_stats = add_array(&layout, n, s->norm_first * (size_t)2);
    at.hidden = add_array(&layout, n, !s->no_norm_last * dim);
    at.hidden_stats = add_array(&layout, n, !s->no_norm_last * (size_t)2);
    at.dx = add_array(&layout, n, dim);
    at.dy = add_array(&layout, n, dim);
    at.djoint = add_array(&layout, n, dim + 2 * kv);
    size_t pair = embla_gpt_has_ngram(s) ? 2 * dim : 0, least = pair > dim ? pair : dim;
    at.dhidden = add_array(&layout, n, s->hidden > least ? s->hidden : least);
    at.dup = add_array(&layout, n, swiglu * s->hidden);
    at.grams = add_array(&layout, n, embla_gpt_ngram_width(s));
    at.dgrams = add_array(&layout, n, embla_gpt_ngram_width(s));
    at.pair = add_array(&layout, n, pair);
    at.pair_stats = add_array(&layout, n, pair > 0 ? EMBLA_GATE_STATS : 0);
    at.enriched = add_array(&layout, n, pair / 2);
    at.layers = embla_layout_add(&layout, s->layers, at.layer_bytes);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "activations of %zu tokens in %zu layers do not fit in memory", n,
                          s->layers);
    at.bytes = layout.bytes;
    *out = at;
    return EMBLA_OK;
}

static embla_status check_batch(const embla_gpt_shape *s, size_t batch, size_t length, size_t *n)
{
    uint64_t tokens;
    if (batch < 1 || length < 1)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "batch is %zu and length is %zu; both must be at least 1", batch, length);
    if (length > s->positions)
        return embla_fail(EMBLA_ERR_RANGE, "length is %zu, but the model has %zu positions", length,
                          s->positions);
    if (!embla_mul_ok(batch, length, &tokens) || !embla_size_ok(tokens, n))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu sequences of %zu tokens do not fit in memory",
                          batch, length);
    return EMBLA_OK;
}

/* Bytes of sinusoidal positions. They are not weights, but are stored beside them. */
static size_t sines_bytes(const embla_gpt_shape *s)
{
    bool any = s->position_kind == EMBLA_POSITIONS_SINUSOIDAL;
    return any ? s->positions * s->dim * sizeof(float) : 0;
}

embla_status embla_gpt_plan_memory(const embla_gpt_shape *shape, size_t batch, size_t length,
                                   embla_gpt_memory *out)
{
    embla_gpt_shape s;
    embla_gpt_places at;
    size_t n;
    int64_t rows;
    EMBLA_NEED(out);
    EMBLA_TRY(embla_gpt_shape_check(shape, &s));
    EMBLA_TRY(check_batch(&s, batch, length, &n));
    EMBLA_TRY(plan_activations(&s, n, &at));
    EMBLA_TRY(embla_gpt_ngram_count(&s, &rows));
    listing l = {.shape = &s};
    list(&l);
    uint64_t bytes = l.end * sizeof(float), total;
    uint64_t grams = (uint64_t)rows * s.ngram.dim * sizeof(float), remembered = (uint64_t)rows * 4;
    uint64_t active = embla_gpt_ngram_space(&s, n);
    if (!embla_add_ok(active, at.bytes, &active) || !embla_mul_ok(bytes, 4, &total) ||
        !embla_add_ok(total, sines_bytes(&s) + grams + remembered, &total) ||
        !embla_add_ok(total, active, &total) || total > INT64_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%" PRIu64 " parameters and %" PRIu64
                          " bytes of activations do not fit in memory",
                          l.parameters + grams / sizeof(float), active);
    *out = (embla_gpt_memory){.weights = (int64_t)(bytes + sines_bytes(&s) + grams),
                              .gradients = (int64_t)bytes,
                              .optimizer = (int64_t)(2 * bytes + remembered),
                              .activations = (int64_t)active,
                              .total = (int64_t)total,
                              .rounded = (int64_t)(l.end * sizeof(uint16_t))};
    return EMBLA_OK;
}

/* ---- new, free ---- */

/* Allocates the struct and its lists as one block. */
static embla_status new_handle(const embla_gpt_shape *shape, embla_gpt **out)
{
    embla_layout layout = {0};
    listing l = {.shape = shape};
    void *memory;
    size_t slots = embla_gpt_ngram_slot(shape, EMBLA_GPT_NGRAM_SLOTS);
    list(&l);
    uint64_t sines = (uint64_t)shape->positions * shape->dim * sizeof(float); /* no overflow */
    size_t unused;
    if (!embla_size_ok(l.end, &unused) || !embla_size_ok(sines, &unused))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %" PRIu64 " parameters", l.parameters);
    (void)embla_layout_add(&layout, 1, sizeof **out);
    size_t parts = embla_layout_add(&layout, l.count, sizeof(embla_gpt_part));
    size_t part_of = embla_layout_add(&layout, slots, sizeof(int32_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "a model", &memory));
    embla_gpt *gpt = memory;
    *gpt = (embla_gpt){.shape = *shape, .bytes = layout.bytes};
    gpt->parts = (embla_gpt_part *)(void *)((char *)memory + parts);
    gpt->part_of = (int32_t *)(void *)((char *)memory + part_of);
    gpt->size = shape->dim / shape->heads;
    gpt->joint = shape->dim + 2 * size_of(shape, 'K');
    l = (listing){.shape = &gpt->shape, .parts = gpt->parts, .part_of = gpt->part_of};
    list(&l);
    gpt->part_count = l.count;
    gpt->parameters = (int64_t)l.parameters;
    gpt->numbers = (size_t)l.end;
    *out = gpt;
    return EMBLA_OK;
}

static embla_status view_tensor(const void *values, int64_t rows, size_t dim, embla_table **out)
{
    const embla_table_options options = {.writable = true};
    size_t bytes = (size_t)rows * dim * sizeof(float);
    return embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim},
                            values, bytes, &options, out);
}

static embla_status view_tables(embla_gpt *gpt)
{
    const embla_gpt_shape *s = &gpt->shape;
    float *learned = embla_gpt_weight(gpt, EMBLA_GPT_WPE);
    float *head = embla_gpt_weight(gpt, EMBLA_GPT_LM_HEAD);
    const void *positions = learned ? learned : gpt->sines;
    EMBLA_TRY(view_tensor(embla_gpt_weight(gpt, EMBLA_GPT_WTE), s->vocab, s->dim, &gpt->tokens));
    if (positions)
        EMBLA_TRY(view_tensor(positions, (int64_t)s->positions, s->dim, &gpt->positions));
    if (head) EMBLA_TRY(view_tensor(head, s->vocab, s->dim, &gpt->head));
    return EMBLA_OK;
}

static embla_status new_memory(embla_gpt *gpt)
{
    void *memory;
    size_t sines = sines_bytes(&gpt->shape);
    EMBLA_TRY(embla_mem_many(gpt->numbers, sizeof(float), "the weights of a model", &memory));
    gpt->weights = memory;
    if (sines > 0) {
        EMBLA_TRY(embla_mem_new(sines, "the positions of a model", &memory));
        gpt->sines = memory;
        EMBLA_TRY(embla_sinusoid(0, gpt->shape.positions, gpt->shape.dim, 0, gpt->sines));
    }
    if (embla_gpt_has_ngram(&gpt->shape)) {
        EMBLA_TRY(embla_gpt_ngram_new(&gpt->shape, &gpt->grams));
        const embla_table *table = embla_gpt_ngram_table(gpt);
        gpt->parameters += embla_table_rows(table) * (int64_t)embla_table_dim(table);
    }
    return view_tables(gpt);
}

embla_status embla_gpt_blank(const embla_gpt_shape *shape, embla_gpt **out)
{
    embla_gpt_shape s;
    embla_gpt *gpt;
    if (!out) return embla_fail(EMBLA_ERR_ARGUMENT, "out is NULL");
    EMBLA_TRY(embla_gpt_shape_check(shape, &s));
    EMBLA_TRY(new_handle(&s, &gpt));
    embla_status status = new_memory(gpt);
    if (status != EMBLA_OK) {
        embla_gpt_free(gpt);
        return status;
    }
    *out = gpt;
    return EMBLA_OK;
}

void embla_gpt_free(embla_gpt *gpt)
{
    if (!gpt) return;
    embla_gpt_ngram_free(gpt->grams);
    embla_scatter_free(gpt->scatter);
    embla_table_free(gpt->head);
    embla_table_free(gpt->positions);
    embla_table_free(gpt->tokens);
    embla_mem_free(gpt->sines, sines_bytes(&gpt->shape));
    embla_mem_free(gpt->rounded, embla_gpt_bf16_bytes(gpt));
    embla_scratch_free(&gpt->scratch);
    embla_mem_free(gpt->activations, gpt->at.bytes);
    embla_mem_free(gpt->gradients, gpt->numbers * sizeof(float));
    embla_mem_free(gpt->weights, gpt->numbers * sizeof(float));
    embla_mem_free(gpt, gpt->bytes);
}

/* ---- reserve ---- */

embla_status embla_gpt_reserve(embla_gpt *gpt, size_t batch, size_t length)
{
    embla_gpt_places at;
    embla_scatter *scatter = NULL;
    void *gradients = NULL, *activations = NULL;
    size_t n;
    EMBLA_NEED(gpt);
    EMBLA_TRY(check_batch(&gpt->shape, batch, length, &n));
    if (gpt->activations && n <= gpt->at.tokens) return EMBLA_OK;
    EMBLA_TRY(plan_activations(&gpt->shape, n, &at));
    size_t bytes = gpt->gradients ? 0 : gpt->numbers * sizeof(float);
    EMBLA_TRY(embla_scatter_new(gpt->shape.vocab, n, &scatter));
    embla_status status = embla_mem_new(at.bytes, "the activations of a model", &activations);
    if (status == EMBLA_OK && bytes > 0)
        status = embla_mem_new(bytes, "the gradients of a model", &gradients);
    if (status == EMBLA_OK && gpt->grams) {
        status = embla_gpt_ngram_room(gpt, n);
        if (status != EMBLA_OK) embla_mem_free(gradients, bytes);
    }
    if (status != EMBLA_OK) {
        embla_mem_free(activations, at.bytes);
        embla_scatter_free(scatter);
        return status;
    }
    embla_mem_free(gpt->activations, gpt->at.bytes);
    embla_scatter_free(gpt->scatter);
    if (bytes > 0) gpt->gradients = gradients;
    gpt->activations = activations;
    gpt->scatter = scatter;
    gpt->at = at;
    gpt->ran = false;
    return EMBLA_OK;
}

void embla_gpt_zero_gradients(embla_gpt *gpt)
{
    if (gpt && gpt->gradients) memset(gpt->gradients, 0, gpt->numbers * sizeof(float));
}

/* ---- queries ---- */

embla_status embla_gpt_describe(const embla_gpt *gpt, embla_gpt_shape *out)
{
    EMBLA_NEED(gpt);
    EMBLA_NEED(out);
    *out = gpt->shape;
    return EMBLA_OK;
}

const embla_table *embla_gpt_tokens(const embla_gpt *gpt)
{
    return gpt ? gpt->tokens : NULL;
}

int64_t embla_gpt_parameters(const embla_gpt *gpt)
{
    return gpt ? gpt->parameters : 0;
}

size_t embla_gpt_tensor_count(const embla_gpt *gpt)
{
    return gpt ? gpt->part_count : 0;
}

embla_status embla_gpt_tensor_at(const embla_gpt *gpt, size_t n, embla_gpt_tensor *out)
{
    EMBLA_NEED(gpt);
    EMBLA_NEED(out);
    if (n >= gpt->part_count)
        return embla_fail(EMBLA_ERR_RANGE, "tensor %zu is out of range; the model has %zu tensors",
                          n, gpt->part_count);
    const embla_gpt_part *part = &gpt->parts[n];
    *out = (embla_gpt_tensor){.name = part->name,
                              .rows = part->rows,
                              .dim = part->dim,
                              .values = embla_gpt_weight(gpt, part->slot),
                              .decays = part->decays};
    if (gpt->gradients) out->gradient = embla_gpt_gradient(gpt, part->slot);
    return EMBLA_OK;
}
