/* SPDX-License-Identifier: Apache-2.0 */
/* What a checkpoint is a model of, and its sizes: config.json of GPT-2, Llama and our own folders,
 * the header of llama2.c and llm.c.
 *
 * A key that says something we do not have is refused, and so is one whose value is of another
 * kind than it must be: to take the default instead would make another model of the same tensors.
 * Keys that change nothing (a cache, a seed, how softmax is rounded) are not looked at.
 */
#include "model/gpt_config.h"

#include <stdio.h>
#include <string.h>

/* No size in a config.json is more; the model's own limits are less. */
enum { SIZE_MOST = 1 << 30 };

typedef struct {
    const embla_checkpoint *cp;
    const embla_family *family;
    const char *prefix;
    const embla_entry *head;
    embla_gpt_shape shape;
} reading;

/* ---- sizes ---- */

/* A size that must be there; text: in a header, as digits. */
static embla_status take_size(const reading *r, const char *key, int64_t *out)
{
    int64_t value = 0;
    const char *text = r->family->layer || r->family == &embla_family_embla
                           ? NULL
                           : embla_checkpoint_text(r->cp, key);
    if (text) {
        for (; *text >= '0' && *text <= '9' && value <= SIZE_MOST; text++)
            value = 10 * value + (*text - '0');
        if (*text != '\0') value = 0;
    } else if (embla_checkpoint_integer(r->cp, key, &value) != EMBLA_OK) {
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: a model of %s needs '%s', and there is none",
                          r->cp->shown, r->family->title, key);
    }
    if (value < 1 || value > SIZE_MOST)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is %" PRId64 ", outside 1..%d",
                          r->cp->shown, key, value, SIZE_MOST);
    *out = value;
    return EMBLA_OK;
}

typedef struct {
    const char *key;
    size_t *out;
} wanted;

static embla_status take_list(const reading *r, const wanted *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        EMBLA_TRY(take_size(r, list[i].key, &value));
        *list[i].out = (size_t)value;
    }
    return EMBLA_OK;
}

static embla_status take_sizes(reading *r, const char *vocab, const wanted *list, size_t count)
{
    EMBLA_TRY(take_size(r, vocab, &r->shape.vocab));
    return take_list(r, list, count);
}

/* Whether config.json says something for a key: null is nothing. */
static bool is_said(const reading *r, const char *key)
{
    embla_json_kind kind = embla_checkpoint_kind(r->cp, key);
    return kind != EMBLA_JSON_NONE && kind != EMBLA_JSON_NULL;
}

/* A value of another kind is not the default: what was meant is not known. */
static embla_status no_such(const reading *r, const char *key, const char *must)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is not %s", r->cp->shown, key, must);
}

/* A size that may be missing, or null: then out keeps what it has. */
static embla_status take_size_if(const reading *r, const char *key, size_t *out)
{
    int64_t value;
    if (!is_said(r, key)) return EMBLA_OK;
    if (embla_checkpoint_integer(r->cp, key, &value) != EMBLA_OK)
        return no_such(r, key, "a whole number");
    EMBLA_TRY(take_size(r, key, &value));
    *out = (size_t)value;
    return EMBLA_OK;
}

/* A number above 0 that may be missing. 0 would stand for the default, which it is not. */
static embla_status take_real_if(const reading *r, const char *key, double *out)
{
    double value;
    if (!is_said(r, key)) return EMBLA_OK;
    if (embla_checkpoint_real(r->cp, key, &value) != EMBLA_OK)
        return no_such(r, key, "a finite number");
    if (!(value > 0.0))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is %g; it must be above 0",
                          r->cp->shown, key, value);
    *out = value;
    return EMBLA_OK;
}

/* Which of the words a text is; the first is meant where the key is missing. */
static embla_status take_word(const reading *r, const char *key, const char *const *words,
                              size_t count, size_t *out)
{
    const char *text = embla_checkpoint_text(r->cp, key);
    if (!text && is_said(r, key)) return no_such(r, key, "a text");
    for (size_t i = 0; i < count; i++)
        if (!text || strcmp(text, words[i]) == 0) {
            *out = i;
            return EMBLA_OK;
        }
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is '%.64s'; '%s'%s can be had",
                      r->cp->shown, key, text, words[0], count > 1 ? " and others" : "");
}

/* A flag that may be missing: 1 true, 0 false, -1 not said. */
static embla_status take_flag_if(const reading *r, const char *key, int *out)
{
    embla_json_kind kind = embla_checkpoint_kind(r->cp, key);
    if (is_said(r, key) && kind != EMBLA_JSON_TRUE && kind != EMBLA_JSON_FALSE)
        return no_such(r, key, "true or false");
    *out = kind == EMBLA_JSON_TRUE ? 1 : kind == EMBLA_JSON_FALSE ? 0 : -1;
    return EMBLA_OK;
}

/* Refuses a model whose flag is the other one than ours all have. */
static embla_status check_flag(const reading *r, const char *key, bool ours)
{
    int flag;
    EMBLA_TRY(take_flag_if(r, key, &flag));
    if (flag == (ours ? 0 : 1))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is %s; only %s can be had",
                          r->cp->shown, key, ours ? "false" : "true", ours ? "true" : "false");
    return EMBLA_OK;
}

static embla_status gpt2_sizes(reading *r)
{
    static const char *const names[] = {"gelu_new", "gelu_pytorch_tanh", "relu", "relu2"};
    static const embla_activation kinds[] = {EMBLA_ACTIVATION_GELU, EMBLA_ACTIVATION_GELU,
                                             EMBLA_ACTIVATION_RELU, EMBLA_ACTIVATION_RELU_SQUARED};
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {{"n_embd", &s->dim},
                            {"n_layer", &s->layers},
                            {"n_head", &s->heads},
                            {"n_positions", &s->positions}};
    size_t which = 0;
    EMBLA_TRY(take_sizes(r, "vocab_size", sizes, 4));
    EMBLA_TRY(take_size_if(r, "n_inner", &s->hidden));
    EMBLA_TRY(take_real_if(r, "layer_norm_epsilon", &s->norm_epsilon));
    EMBLA_TRY(take_word(r, "activation_function", names, 4, &which));
    EMBLA_TRY(check_flag(r, "scale_attn_weights", true));
    EMBLA_TRY(check_flag(r, "scale_attn_by_inverse_layer_idx", false));
    s->activation = kinds[which];
    s->biases = true;
    return EMBLA_OK;
}

static embla_status not_whole(const reading *r, const char *key, double share)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is %g; only whole heads are turned",
                      r->cp->shown, key, share);
}

/* One of the two objects that say how rotary positions are stretched, and theta too: stretched ones
 * need more than a shape says. */
static embla_status check_rope(reading *r, const char *object)
{
    static const char *const types[] = {"rope_type", "type"}, *const plain[] = {"default"};
    embla_gpt_shape *s = &r->shape;
    char key[64];
    size_t which;
    double theta = 0, turned = 1;
    bool said = false;
    if (!is_said(r, object)) return EMBLA_OK;
    if (embla_checkpoint_kind(r->cp, object) != EMBLA_JSON_OBJECT)
        return no_such(r, object, "an object");
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(key, sizeof key, "%s.%s", object, types[i]);
        EMBLA_TRY(take_word(r, key, plain, 1, &which));
        said = said || is_said(r, key);
    }
    (void)snprintf(key, sizeof key, "%s.factor", object);
    if (!said && is_said(r, key))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: its '%s' says no type; positions that are not stretched can be "
                          "had",
                          r->cp->shown, key);
    (void)snprintf(key, sizeof key, "%s.partial_rotary_factor", object);
    EMBLA_TRY(take_real_if(r, key, &turned));
    if (turned != 1) return not_whole(r, key, turned);
    (void)snprintf(key, sizeof key, "%s.rope_theta", object);
    EMBLA_TRY(take_real_if(r, key, &theta));
    if (theta > 0 && s->rope_theta > 0 && theta != s->rope_theta)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is %g, and another one %g",
                          r->cp->shown, key, theta, s->rope_theta);
    if (theta > 0) s->rope_theta = theta;
    return EMBLA_OK;
}

/* Theta of rotary positions, from wherever it is said. */
static embla_status take_rope(reading *r)
{
    double turned = 1;
    EMBLA_TRY(take_real_if(r, "partial_rotary_factor", &turned));
    if (turned != 1) return not_whole(r, "partial_rotary_factor", turned);
    EMBLA_TRY(take_real_if(r, "rope_theta", &r->shape.rope_theta));
    EMBLA_TRY(check_rope(r, "rope_scaling"));
    return check_rope(r, "rope_parameters");
}

/* Ours have a bias in every linear layer, or in none. */
static embla_status take_biases(reading *r)
{
    static const char *const keys[] = {"attention_bias", "mlp_bias"};
    const embla_entry *bias;
    r->shape.biases =
        embla_checkpoint_named(r->cp, "model.layers.0.self_attn.q_proj.bias", &bias) == EMBLA_OK;
    for (size_t i = 0; i < 2; i++) {
        int flag;
        EMBLA_TRY(take_flag_if(r, keys[i], &flag));
        if (flag >= 0 && (flag == 1) != r->shape.biases)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.200s: its '%s' is %s, and its attention has %s biases; all "
                              "linear layers have one, or none",
                              r->cp->shown, keys[i], flag ? "true" : "false",
                              r->shape.biases ? "its" : "no");
    }
    return EMBLA_OK;
}

static embla_status llama_sizes(reading *r)
{
    static const char *const silu[] = {"silu", "swish"};
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {{"hidden_size", &s->dim},
                            {"num_hidden_layers", &s->layers},
                            {"num_attention_heads", &s->heads},
                            {"intermediate_size", &s->hidden},
                            {"max_position_embeddings", &s->positions}};
    size_t which, head = 0;
    EMBLA_TRY(take_sizes(r, "vocab_size", sizes, 5));
    EMBLA_TRY(take_size_if(r, "num_key_value_heads", &s->kv_heads));
    EMBLA_TRY(take_size_if(r, "head_dim", &head));
    size_t each = s->heads > 0 ? s->dim / s->heads : 0;
    if (head > 0 && (each * s->heads != s->dim || head != each))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: heads of %zu numbers; %zu heads of a dim of %zu have %zu",
                          r->cp->shown, head, s->heads, s->dim, each);
    EMBLA_TRY(take_word(r, "hidden_act", silu, 2, &which));
    s->norm_epsilon = 1e-6; /* what LlamaConfig has where the key is missing */
    EMBLA_TRY(take_real_if(r, "rms_norm_eps", &s->norm_epsilon));
    EMBLA_TRY(take_rope(r));
    EMBLA_TRY(take_biases(r));
    s->norm = EMBLA_NORM_RMS;
    s->activation = EMBLA_ACTIVATION_SWIGLU;
    s->position_kind = EMBLA_POSITIONS_ROTARY;
    s->rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT;
    return EMBLA_OK;
}

static embla_status llama2c_sizes(reading *r)
{
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {
        {"dim", &s->dim},       {"hidden_dim", &s->hidden},   {"n_layers", &s->layers},
        {"n_heads", &s->heads}, {"n_kv_heads", &s->kv_heads}, {"seq_len", &s->positions}};
    s->norm = EMBLA_NORM_RMS;
    s->activation = EMBLA_ACTIVATION_SWIGLU;
    s->position_kind = EMBLA_POSITIONS_ROTARY;
    s->rope_order = EMBLA_ROPE_ORDER_INTERLEAVED;
    return take_sizes(r, "vocab_size", sizes, 6);
}

static embla_status llmc_sizes(reading *r)
{
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {{"channels", &s->dim},
                            {"num_layers", &s->layers},
                            {"num_heads", &s->heads},
                            {"max_seq_len", &s->positions}};
    s->biases = true;
    return take_sizes(r, "vocab_size", sizes, 4);
}

/* 0 or 1. */
static embla_status take_flag(const reading *r, const char *key, bool *out)
{
    int64_t value = -1;
    if (embla_checkpoint_integer(r->cp, key, &value) != EMBLA_OK || value < 0 || value > 1)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is %" PRId64 ", and must be 0 or 1",
                          r->cp->shown, key, value);
    *out = value == 1;
    return EMBLA_OK;
}

/* Those of an n-gram table, all of them, or none. */
static embla_status ngram_sizes(reading *r)
{
    embla_gpt_ngram *g = &r->shape.ngram;
    const wanted sizes[] = {
        {"ngram_heads", &g->heads}, {"ngram_orders", &g->orders}, {"ngram_dim", &g->dim}};
    int64_t layer = 0, seed = 0;
    if (embla_checkpoint_integer(r->cp, "ngram_rows", &g->rows) != EMBLA_OK) {
        g->rows = 0;
        return EMBLA_OK;
    }
    EMBLA_TRY(take_list(r, sizes, 3));
    if (g->rows < 1 || embla_checkpoint_integer(r->cp, "ngram_layer", &layer) != EMBLA_OK ||
        embla_checkpoint_integer(r->cp, "ngram_seed", &seed) != EMBLA_OK || layer < 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: an n-gram table of %" PRId64 " rows in layer %" PRId64
                          ": rows, layer and seed are needed",
                          r->cp->shown, g->rows, layer);
    g->layer = (size_t)layer;
    g->seed = (uint64_t)seed;
    return EMBLA_OK;
}

static embla_status embla_sizes(reading *r)
{
    static const char *const norms[] = {"layer", "rms"};
    static const char *const activations[] = {"gelu", "relu", "relu_squared", "swiglu"};
    static const char *const positions[] = {"learned", "sinusoidal", "rotary", "none"};
    static const char *const orders[] = {"interleaved", "half_split"};
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {
        {"hidden_size", &s->dim},           {"num_hidden_layers", &s->layers},
        {"num_attention_heads", &s->heads}, {"num_key_value_heads", &s->kv_heads},
        {"intermediate_size", &s->hidden},  {"max_position_embeddings", &s->positions}};
    size_t norm, activation, position, order;
    bool gain, last;
    EMBLA_TRY(take_sizes(r, "vocab_size", sizes, 6));
    EMBLA_TRY(take_real_if(r, "norm_epsilon", &s->norm_epsilon));
    EMBLA_TRY(take_real_if(r, "rope_theta", &s->rope_theta));
    EMBLA_TRY(take_word(r, "norm", norms, 2, &norm));
    EMBLA_TRY(take_word(r, "activation_function", activations, 4, &activation));
    EMBLA_TRY(take_word(r, "positions", positions, 4, &position));
    EMBLA_TRY(take_word(r, "rope_order", orders, 2, &order));
    EMBLA_TRY(take_flag(r, "norm_gain", &gain));
    EMBLA_TRY(take_flag(r, "biases", &s->biases));
    EMBLA_TRY(take_flag(r, "norm_first", &s->norm_first));
    EMBLA_TRY(take_flag(r, "norm_last", &last));
    EMBLA_TRY(ngram_sizes(r));
    s->norm = (embla_norm_kind)norm;
    s->activation = (embla_activation)activation;
    s->position_kind = (embla_positions_kind)position;
    s->rope_order = (embla_rope_order)order;
    s->no_gain = !gain;
    s->no_norm_last = !last;
    return EMBLA_OK;
}

/* ---- what it is ---- */

static bool has(const reading *r, const char *name)
{
    const embla_entry *entry;
    return embla_checkpoint_named(r->cp, name, &entry) == EMBLA_OK;
}

static embla_status which_family(reading *r)
{
    const char *format = embla_checkpoint_format(r->cp);
    const char *type = embla_checkpoint_text(r->cp, "model_type");
    r->prefix = "";
    if (strcmp(format, "llm.c") == 0)
        r->family = &embla_family_llmc;
    else if (strcmp(format, "llama2.c") == 0)
        r->family = &embla_family_llama2c;
    else if (strcmp(format, "safetensors") != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: a model is opened from safetensors with a config.json, from "
                          "llama2.c and from llm.c, not from %s",
                          r->cp->shown, format);
    else if (!type)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: no config.json says its 'model_type': open the model's folder",
                          r->cp->shown);
    else if (strcmp(type, "gpt2") == 0)
        r->family = &embla_family_gpt2;
    else if (strcmp(type, "llama") == 0)
        r->family = &embla_family_llama;
    else if (strcmp(type, "embla") == 0)
        r->family = &embla_family_embla;
    else
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: its model_type is '%.64s'; gpt2, llama and embla are opened",
                          r->cp->shown, type);
    if (r->family == &embla_family_llama) r->prefix = "model.";
    if (r->family == &embla_family_gpt2 && has(r, "transformer.wte.weight"))
        r->prefix = "transformer.";
    return EMBLA_OK;
}

/* Whether the head is the token table. Stored twice it is, unless it is said not to be: what was
 * untied and is equal by chance, or as it begins, stays apart. */
static embla_status find_tie(reading *r)
{
    embla_tie tie;
    const embla_entry *head;
    int flag;
    const char *name = r->family == &embla_family_llama2c ? "output.weight"
                       : r->family == &embla_family_embla ? "lm_head"
                                                          : "lm_head.weight";
    if (embla_checkpoint_kind(r->cp, "tie_word_embeddings") != EMBLA_JSON_STRING)
        EMBLA_TRY(take_flag_if(r, "tie_word_embeddings", &flag));
    EMBLA_TRY(embla_checkpoint_tie(r->cp, 0, &tie));
    if (embla_checkpoint_named(r->cp, name, &head) != EMBLA_OK) {
        if (tie.kind == EMBLA_TIE_TIED) return EMBLA_OK;
        return embla_fail(
            EMBLA_ERR_FORMAT,
            "%.200s: a model needs a head: there is no '%s', and its flag is: %s (%s)",
            r->cp->shown, name, tie.flag, embla_tie_name(tie.kind));
    }
    r->shape.untied = tie.kind != EMBLA_TIE_STORED_TWICE || strstr(tie.flag, "= false") != NULL;
    r->head = head;
    return EMBLA_OK;
}

static embla_status take_sizes_of(reading *r)
{
    if (r->family == &embla_family_gpt2) return gpt2_sizes(r);
    if (r->family == &embla_family_llama) return llama_sizes(r);
    if (r->family == &embla_family_llama2c) return llama2c_sizes(r);
    if (r->family == &embla_family_llmc) return llmc_sizes(r);
    return embla_sizes(r);
}

/* A shape that no model can have is the file's fault here, not the caller's. */
static embla_status take_shape(reading *r)
{
    char why[400];
    embla_gpt_shape whole;
    EMBLA_TRY(which_family(r));
    EMBLA_TRY(take_sizes_of(r));
    if (is_said(r, "resid_pdrop") && /* where training goes on */
        embla_checkpoint_real(r->cp, "resid_pdrop", &r->shape.dropout) != EMBLA_OK)
        return no_such(r, "resid_pdrop", "a finite number");
    EMBLA_TRY(find_tie(r));
    if (embla_gpt_shape_check(&r->shape, &whole) != EMBLA_OK) {
        (void)snprintf(why, sizeof why, "%.390s", embla_error());
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: %s", r->cp->shown, why);
    }
    r->shape = whole;
    return EMBLA_OK;
}

embla_status embla_gpt_config_read(const embla_checkpoint *checkpoint, embla_gpt_config *out)
{
    reading r = {.cp = checkpoint};
    EMBLA_TRY(take_shape(&r));
    *out = (embla_gpt_config){r.family, r.prefix, r.head, r.shape};
    return EMBLA_OK;
}
