/* SPDX-License-Identifier: Apache-2.0 */
/* Saves a model as a folder that other programs can open: config.json, model.safetensors,
 * tokenizer.json.
 *
 * If GPT2LMHeadModel or LlamaForCausalLM supports the shape, their keys, names and layouts are
 * used: GPT-2 stores linear layers as input x output, and no head if it is tied; Llama has rotary
 * pairs in Hugging Face's order, for which rows of q and k are permuted. Any other shape is saved
 * with our own names and model_type "embla", for embla_gpt_open. Numbers are f32.
 *
 * All files are complete and synced under temporary names before the first is renamed. The weights
 * are renamed last: a folder without them is incomplete.
 */
#include <stdio.h>
#include <string.h>

#include "base/arena.h"
#include "base/byte_order.h"
#include "files/durable.h"
#include "files/io.h"
#include "files/json_out.h"
#include "formats/format.h"
#include "model/gpt_ngram.h"
#include "model/gpt_tokenizer.h"
#include "model/gpt_trunk.h"

/* ---- forms of files ---- */

typedef struct {
    uint8_t slot;    /* of the model, or of a layer */
    bool joint;      /* q, k and v in one tensor */
    bool transposed; /* stored as input x output */
    bool paired;     /* rows are rotary pairs, which must be permuted */
    const char *name;
} line;

typedef struct {
    const char *layer; /* precedes a layer's number */
    const line *model, *layers;
    size_t model_count, layer_count;
} form;

static const line gpt2_model[] = {
    {EMBLA_GPT_WTE, false, false, false, "transformer.wte.weight"},
    {EMBLA_GPT_WPE, false, false, false, "transformer.wpe.weight"},
    {EMBLA_GPT_NORM_GAIN, false, false, false, "transformer.ln_f.weight"},
    {EMBLA_GPT_NORM_BIAS, false, false, false, "transformer.ln_f.bias"},
    {EMBLA_GPT_LM_HEAD, false, false, false, "lm_head.weight"},
};
static const line gpt2_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, false, false, false, "ln_1.weight"},
    {EMBLA_GPT_NORM1_BIAS, false, false, false, "ln_1.bias"},
    {EMBLA_GPT_Q, true, true, false, "attn.c_attn.weight"},
    {EMBLA_GPT_Q_BIAS, true, false, false, "attn.c_attn.bias"},
    {EMBLA_GPT_O, false, true, false, "attn.c_proj.weight"},
    {EMBLA_GPT_O_BIAS, false, false, false, "attn.c_proj.bias"},
    {EMBLA_GPT_NORM2_GAIN, false, false, false, "ln_2.weight"},
    {EMBLA_GPT_NORM2_BIAS, false, false, false, "ln_2.bias"},
    {EMBLA_GPT_UP, false, true, false, "mlp.c_fc.weight"},
    {EMBLA_GPT_UP_BIAS, false, false, false, "mlp.c_fc.bias"},
    {EMBLA_GPT_DOWN, false, true, false, "mlp.c_proj.weight"},
    {EMBLA_GPT_DOWN_BIAS, false, false, false, "mlp.c_proj.bias"},
};
static const form gpt2_form = {"transformer.h.", gpt2_model, gpt2_layers, 5, 12};

static const line llama_model[] = {
    {EMBLA_GPT_WTE, false, false, false, "model.embed_tokens.weight"},
    {EMBLA_GPT_NORM_GAIN, false, false, false, "model.norm.weight"},
    {EMBLA_GPT_LM_HEAD, false, false, false, "lm_head.weight"},
};
static const line llama_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, false, false, false, "input_layernorm.weight"},
    {EMBLA_GPT_Q, false, false, true, "self_attn.q_proj.weight"},
    {EMBLA_GPT_Q_BIAS, false, false, true, "self_attn.q_proj.bias"},
    {EMBLA_GPT_K, false, false, true, "self_attn.k_proj.weight"},
    {EMBLA_GPT_K_BIAS, false, false, true, "self_attn.k_proj.bias"},
    {EMBLA_GPT_V, false, false, false, "self_attn.v_proj.weight"},
    {EMBLA_GPT_V_BIAS, false, false, false, "self_attn.v_proj.bias"},
    {EMBLA_GPT_O, false, false, false, "self_attn.o_proj.weight"},
    {EMBLA_GPT_O_BIAS, false, false, false, "self_attn.o_proj.bias"},
    {EMBLA_GPT_NORM2_GAIN, false, false, false, "post_attention_layernorm.weight"},
    {EMBLA_GPT_GATE, false, false, false, "mlp.gate_proj.weight"},
    {EMBLA_GPT_GATE_BIAS, false, false, false, "mlp.gate_proj.bias"},
    {EMBLA_GPT_UP, false, false, false, "mlp.up_proj.weight"},
    {EMBLA_GPT_UP_BIAS, false, false, false, "mlp.up_proj.bias"},
    {EMBLA_GPT_DOWN, false, false, false, "mlp.down_proj.weight"},
    {EMBLA_GPT_DOWN_BIAS, false, false, false, "mlp.down_proj.bias"},
};
static const form llama_form = {"model.layers.", llama_model, llama_layers, 3, 16};

/* Finds the form that has this shape. NULL means our own. */
static const form *form_of(const embla_gpt_shape *s)
{
    bool plain = !s->no_gain && !s->norm_first && !s->no_norm_last && !embla_gpt_has_ngram(s);
    if (plain && s->norm == EMBLA_NORM_LAYER && s->biases && s->kv_heads == s->heads &&
        s->activation != EMBLA_ACTIVATION_SWIGLU && s->position_kind == EMBLA_POSITIONS_LEARNED)
        return &gpt2_form;
    if (plain && s->norm == EMBLA_NORM_RMS && s->activation == EMBLA_ACTIVATION_SWIGLU &&
        s->position_kind == EMBLA_POSITIONS_ROTARY)
        return &llama_form;
    return NULL;
}

const char *embla_gpt_family(const embla_gpt_shape *shape)
{
    if (!shape) return NULL;
    embla_gpt_shape s = *shape;
    if (s.kv_heads == 0) s.kv_heads = s.heads;
    const form *f = form_of(&s);
    return f == &gpt2_form ? "gpt2" : f == &llama_form ? "llama" : "embla";
}

/* ---- state of a save ---- */

enum { CONFIG, TOKENIZER, MODEL, FILES };

typedef struct {
    const embla_gpt *gpt;
    const form *form;
    embla_arena arena;
    embla_gpt_words words;
    embla_part *parts;
    size_t part_count;
    embla_durable *files[FILES];
} saving;

/* ---- tensors ---- */

/* Where the numbers of a tensor come from. */
typedef struct {
    const char *values; /* f32 */
    size_t rows, dim;
    bool transposed;
    size_t paired; /* numbers in a head whose rows are permuted; 0 means no permutation */
} source;

/* The row of the interleaved order that is row r of Hugging Face's order. */
static size_t split_row(size_t r, size_t size)
{
    size_t first = r / size * size, at = r - first, half = size / 2;
    return first + (at < half ? 2 * at : 2 * (at - half) + 1);
}

/* Copies count numbers of the transposed matrix (dim x rows), from number `first` on. */
static void read_transposed(const source *s, size_t first, size_t count, float *out)
{
    const float *values = (const float *)(const void *)s->values;
    size_t i = first / s->rows, j = first % s->rows;
    for (size_t n = 0; n < count; n++) {
        out[n] = values[j * s->dim + i];
        if (++j == s->rows) j = 0, i++;
    }
}

/* Copies bytes of rows in Hugging Face's order. */
static void read_split(const source *s, size_t offset, size_t bytes, char *out)
{
    size_t row_bytes = s->dim * sizeof(float);
    for (size_t done = 0; done < bytes;) {
        size_t row = (offset + done) / row_bytes, at = (offset + done) % row_bytes;
        size_t some = row_bytes - at < bytes - done ? row_bytes - at : bytes - done;
        memcpy(out + done, s->values + split_row(row, s->paired) * row_bytes + at, some);
        done += some;
    }
}

/* Writers ask for whole numbers, because their pieces are a power of two bytes. */
static embla_status read_part(void *context, uint64_t offset, size_t bytes, void *out)
{
    const source *s = context;
    if (s->paired > 0)
        read_split(s, (size_t)offset, bytes, out);
    else if (!s->transposed)
        memcpy(out, s->values + offset, bytes);
    else
        read_transposed(s, (size_t)offset / sizeof(float), bytes / sizeof(float), out);
    embla_order_turn(out, sizeof(float), bytes / sizeof(float));
    return EMBLA_OK;
}

/* Adds a tensor: the slot (if joint, with the next two) under this name. */
static embla_status add_part(saving *w, size_t slot, const line *l, const char *name)
{
    const embla_gpt *gpt = w->gpt;
    const embla_gpt_part *ours = &gpt->parts[gpt->part_of[slot]];
    bool matrix = ours->decays, joint = l && l->joint;
    embla_part *part = &w->parts[w->part_count];
    source *s = NULL;
    EMBLA_TRY(embla_arena_many(&w->arena, 1, sizeof *s, "a tensor to be written", &s));
    EMBLA_TRY(embla_arena_text(&w->arena, name, strlen(name), &part->name));
    *s = (source){.values = (const char *)embla_gpt_weight(gpt, slot),
                  .rows = matrix ? (size_t)ours->rows : 1,
                  .dim = ours->dim,
                  .transposed = l && l->transposed};
    if (joint && matrix) s->rows = gpt->joint;
    if (joint && !matrix) s->dim = gpt->joint;
    part->element = embla_element_of(EMBLA_F32);
    if (matrix) part->shape[part->rank++] = s->transposed ? s->dim : s->rows;
    part->shape[part->rank++] = s->transposed ? s->rows : s->dim;
    part->bytes = (uint64_t)s->rows * s->dim * sizeof(float);
    if (l && l->paired && gpt->shape.rope_order == EMBLA_ROPE_ORDER_INTERLEAVED) {
        s->paired = gpt->size;
        if (!matrix) s->rows = s->dim, s->dim = 1; /* a bias has one number for each row */
    }
    part->read = read_part;
    part->context = s;
    w->part_count++;
    return EMBLA_OK;
}

/* Adds rows that the model does not have. */
static embla_status add_kept(saving *w, size_t slot, const char *name)
{
    const embla_gpt *gpt = w->gpt;
    const embla_gpt_shape *s = &gpt->shape;
    if (!gpt->readers.read) return embla_gpt_check_rows(gpt);
    w->parts[w->part_count++] =
        (embla_part){.name = name,
                     .element = embla_element_of(EMBLA_F32),
                     .rank = 2,
                     .shape = {(uint64_t)s->vocab, s->dim},
                     .bytes = (uint64_t)s->vocab * s->dim * sizeof(float),
                     .read = gpt->readers.read,
                     .context = slot == EMBLA_GPT_WTE ? gpt->readers.tokens : gpt->readers.head};
    return EMBLA_OK;
}

/* Adds a tensor of the model, if it has one. */
static embla_status add_line(saving *w, const line *l)
{
    const embla_gpt *gpt = w->gpt;
    bool rows = l->slot == EMBLA_GPT_WTE || (l->slot == EMBLA_GPT_LM_HEAD && gpt->shape.untied);
    if (gpt->part_of[l->slot] >= 0) return add_part(w, l->slot, l, l->name);
    return gpt->trunk && rows ? add_kept(w, l->slot, l->name) : EMBLA_OK;
}

/* Adds the n-gram table. */
static embla_status add_grams(saving *w)
{
    const embla_table *table = embla_gpt_ngram_table((embla_gpt *)(uintptr_t)w->gpt);
    const embla_gpt_ngram_rows *rows = embla_gpt_ngram_where(w->gpt);
    embla_part *part = &w->parts[w->part_count++];
    source *s = NULL;
    if (rows->away && !rows->read)
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "the rows of the n-gram table are kept by the training; save the model with "
            "embla_train_save_model");
    EMBLA_TRY(embla_arena_many(&w->arena, 1, sizeof *s, "a tensor to be written", &s));
    *s = (source){.values = embla_table_row(table, 0),
                  .rows = (size_t)embla_table_rows(table),
                  .dim = embla_table_dim(table)};
    *part = (embla_part){.name = EMBLA_GPT_NGRAM_NAME,
                         .element = embla_element_of(EMBLA_F32),
                         .rank = 2,
                         .shape = {s->rows, s->dim},
                         .bytes = (uint64_t)s->rows * s->dim * sizeof(float),
                         .read = rows->away ? rows->read : read_part,
                         .context = rows->away ? rows->context : s};
    return EMBLA_OK;
}

static embla_status list_parts(saving *w)
{
    const embla_gpt *gpt = w->gpt;
    const form *f = w->form;
    char name[160];
    EMBLA_TRY(
        embla_arena_many(&w->arena, gpt->part_count + 3, sizeof *w->parts, "tensors", &w->parts));
    for (size_t i = 0; !f && i < gpt->part_count; i++)
        EMBLA_TRY(add_part(w, gpt->parts[i].slot, NULL, gpt->parts[i].name));
    if (!f && gpt->trunk) EMBLA_TRY(add_kept(w, EMBLA_GPT_WTE, "wte"));
    if (!f && gpt->trunk && gpt->shape.untied) EMBLA_TRY(add_kept(w, EMBLA_GPT_LM_HEAD, "lm_head"));
    if (gpt->grams) EMBLA_TRY(add_grams(w));
    for (size_t i = 0; f && i < f->model_count; i++) EMBLA_TRY(add_line(w, &f->model[i]));
    for (size_t layer = 0; f && layer < gpt->shape.layers; layer++)
        for (size_t i = 0; i < f->layer_count; i++) {
            size_t slot = embla_gpt_slot(layer, f->layers[i].slot);
            if (gpt->part_of[slot] < 0) continue;
            (void)snprintf(name, sizeof name, "%s%zu.%s", f->layer, layer, f->layers[i].name);
            EMBLA_TRY(add_part(w, slot, &f->layers[i], name));
        }
    return EMBLA_OK;
}

static embla_status write_model(saving *w)
{
    const embla_pair pairs[] = {{"format", "pt"}}; /* transformers requires it */
    const embla_contents contents = {
        .parts = w->parts, .count = w->part_count, .pairs = pairs, .pair_count = 1};
    const embla_format *format = NULL;
    EMBLA_TRY(embla_format_find("safetensors", &format));
    return format->write(w->files[MODEL], &contents);
}

/* ---- config.json ---- */

static void write_gpt2_config(embla_json_out *t, const embla_gpt_shape *s)
{
    static const char *const activations[] = {"gelu_new", "relu", "relu2"};
    embla_json_say_text(t, "activation_function", activations[s->activation]);
    embla_json_say_real(t, "attn_pdrop",
                        0.0); /* we have dropout only at the end of residual branches */
    embla_json_say_real(t, "embd_pdrop", 0.0);
    embla_json_say_real(t, "initializer_range", 0.02);
    embla_json_say_real(t, "layer_norm_epsilon", s->norm_epsilon);
    embla_json_say_text(t, "model_type", "gpt2");
    embla_json_say_whole(t, "n_embd", (int64_t)s->dim);
    embla_json_say_whole(t, "n_head", (int64_t)s->heads);
    embla_json_say_whole(t, "n_inner", (int64_t)s->hidden);
    embla_json_say_whole(t, "n_layer", (int64_t)s->layers);
    embla_json_say_whole(t, "n_positions", (int64_t)s->positions);
    embla_json_say_flag(t, "reorder_and_upcast_attn", false);
    embla_json_say_flag(t, "scale_attn_by_inverse_layer_idx", false);
    embla_json_say_flag(t, "scale_attn_weights", true);
}

static void write_sizes(embla_json_out *t, const embla_gpt_shape *s)
{
    embla_json_say_whole(t, "hidden_size", (int64_t)s->dim);
    embla_json_say_whole(t, "intermediate_size", (int64_t)s->hidden);
    embla_json_say_whole(t, "max_position_embeddings", (int64_t)s->positions);
    embla_json_say_whole(t, "num_attention_heads", (int64_t)s->heads);
    embla_json_say_whole(t, "num_hidden_layers", (int64_t)s->layers);
    embla_json_say_whole(t, "num_key_value_heads", (int64_t)s->kv_heads);
    embla_json_say_real(t, "rope_theta", s->rope_theta);
}

static void write_llama_config(embla_json_out *t, const embla_gpt_shape *s)
{
    embla_json_say_flag(t, "attention_bias", s->biases);
    embla_json_say_real(t, "attention_dropout", 0.0);
    embla_json_say_whole(t, "head_dim", (int64_t)(s->dim / s->heads));
    embla_json_say_text(t, "hidden_act", "silu");
    embla_json_say_real(t, "initializer_range", 0.02);
    embla_json_say_flag(t, "mlp_bias", s->biases);
    embla_json_say_text(t, "model_type", "llama");
    embla_json_say_whole(t, "pretraining_tp", 1);
    embla_json_say_real(t, "rms_norm_eps", s->norm_epsilon);
    embla_json_say_key(t, "rope_scaling");
    embla_json_say(t, "null");
    write_sizes(t, s);
}

/* Keys that only embla_gpt_open reads; flags are 0 or 1. */
static void write_own_config(embla_json_out *t, const embla_gpt_shape *s)
{
    static const char *const activations[] = {"gelu", "relu", "relu_squared", "swiglu"};
    embla_json_say_text(t, "activation_function", activations[s->activation]);
    embla_json_say_whole(t, "biases", s->biases);
    embla_json_say_text(t, "model_type", "embla");
    embla_json_say_text(t, "norm", s->norm == EMBLA_NORM_RMS ? "rms" : "layer");
    embla_json_say_real(t, "norm_epsilon", s->norm_epsilon);
    embla_json_say_whole(t, "norm_first", s->norm_first);
    embla_json_say_whole(t, "norm_gain", !s->no_gain);
    embla_json_say_whole(t, "norm_last", !s->no_norm_last);
    if (embla_gpt_has_ngram(s)) {
        embla_json_say_whole(t, "ngram_dim", (int64_t)s->ngram.dim);
        embla_json_say_whole(t, "ngram_heads", (int64_t)s->ngram.heads);
        embla_json_say_whole(t, "ngram_layer", (int64_t)s->ngram.layer);
        embla_json_say_whole(t, "ngram_orders", (int64_t)s->ngram.orders);
        embla_json_say_whole(t, "ngram_rows", s->ngram.rows);
        embla_json_say_whole(t, "ngram_seed", (int64_t)s->ngram.seed);
    }
    embla_json_say_text(t, "positions", embla_gpt_positions[s->position_kind]);
    embla_json_say_text(t, "rope_order",
                        s->rope_order == EMBLA_ROPE_ORDER_HALF_SPLIT ? "half_split"
                                                                     : "interleaved");
    write_sizes(t, s);
}

static embla_status write_config(saving *w)
{
    const embla_gpt_shape *s = &w->gpt->shape;
    embla_json_out t = {.out = w->files[CONFIG]};
    embla_json_say(&t, "{\n  \"architectures\": [\"%s\"]",
                   w->form == &gpt2_form    ? "GPT2LMHeadModel"
                   : w->form == &llama_form ? "LlamaForCausalLM"
                                            : "EmblaForCausalLM");
    if (w->form == &gpt2_form)
        write_gpt2_config(&t, s);
    else if (w->form == &llama_form)
        write_llama_config(&t, s);
    else
        write_own_config(&t, s);
    embla_json_say_real(&t, "resid_pdrop", s->dropout);
    embla_json_say_token(&t, "bos_token_id", w->words.bos);
    embla_json_say_token(&t, "eos_token_id", w->words.bos);
    embla_json_say_flag(&t, "tie_word_embeddings", !s->untied);
    embla_json_say_text(&t, "torch_dtype", "float32");
    embla_json_say_flag(&t, "use_cache", true);
    embla_json_say_whole(&t, "vocab_size", s->vocab);
    embla_json_say(&t, "\n}\n");
    return t.status;
}

/* ---- the folder ---- */

static embla_status open_file(saving *w, const char *folder, int which)
{
    static const char *const names[] = {"config.json", "tokenizer.json", "model.safetensors"};
    size_t length = strlen(folder), room = length + 1 + sizeof "model.safetensors";
    char *path = NULL;
    EMBLA_TRY(embla_arena_many(&w->arena, room, 1, "a path", &path));
    (void)snprintf(path, room, "%s/%s", folder, names[which]);
    return embla_durable_open(path, &w->files[which]);
}

static embla_status write_folder(saving *w, const char *folder, const char *const *words)
{
    EMBLA_TRY(list_parts(w));
    if (words) EMBLA_TRY(embla_gpt_words_check(&w->arena, words, w->gpt->shape.vocab, &w->words));
    EMBLA_TRY(embla_io_folder(folder));
    EMBLA_TRY(open_file(w, folder, CONFIG));
    EMBLA_TRY(write_config(w));
    if (words) {
        EMBLA_TRY(open_file(w, folder, TOKENIZER));
        EMBLA_TRY(embla_gpt_tokenizer_write(&w->words, w->files[TOKENIZER]));
    }
    EMBLA_TRY(open_file(w, folder, MODEL));
    EMBLA_TRY(write_model(w));
    for (int i = 0; i < FILES; i++)
        if (w->files[i]) EMBLA_TRY(embla_durable_sync(w->files[i], NULL));
    for (int i = 0; i < FILES; i++) {
        embla_durable *file = w->files[i];
        w->files[i] = NULL;
        if (file) EMBLA_TRY(embla_durable_commit(file));
    }
    return EMBLA_OK;
}

embla_status embla_gpt_save(const embla_gpt *gpt, const char *folder, const char *const *words)
{
    saving w = {.gpt = gpt, .words = {.bos = -1}};
    EMBLA_NEED(gpt);
    EMBLA_NEED(folder);
    if (!*folder)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_gpt_save: the folder's name is empty");
    w.form = form_of(&gpt->shape);
    embla_status status = write_folder(&w, folder, words);
    for (int i = 0; i < FILES; i++) embla_durable_abandon(w.files[i]);
    embla_arena_free(&w.arena);
    return status;
}
