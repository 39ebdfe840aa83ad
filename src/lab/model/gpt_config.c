/* SPDX-License-Identifier: Apache-2.0 */
/* Reads family and sizes of a model: from config.json of GPT-2, Llama and our own folders, or from
 * the header of llama2.c and llm.c.
 *
 * A key with an unsupported value is refused, and so is a value of the wrong type. Using the
 * default instead would give a different model with the same tensors. Keys that do not change
 * results (cache, seed, rounding of softmax) are not read.
 */
#include "model/gpt_config.h"

#include <stdio.h>
#include <string.h>

/* Upper limit for sizes in config.json; the limits of a model are smaller. */
enum { SIZE_MOST = 1 << 30 };

typedef struct {
    const embla_checkpoint *cp;
    const embla_family *family;
    const char *prefix;
    const embla_entry *head;
    embla_gpt_shape shape;
} reading;

/* ---- sizes ---- */

/* Reads a required size. A header stores it as a text of digits. */
static embla_status read_size(const reading *r, const char *key, int64_t *out)
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
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: a model of %s needs '%s', which is missing",
                          r->cp->shown, r->family->title, key);
    }
    if (value < 1 || value > SIZE_MOST)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: its '%s' is %" PRId64 "; it must be from 1 to %d", r->cp->shown,
                          key, value, SIZE_MOST);
    *out = value;
    return EMBLA_OK;
}

typedef struct {
    const char *key;
    size_t *out;
} wanted;

static embla_status read_size_list(const reading *r, const wanted *list, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        int64_t value;
        EMBLA_TRY(read_size(r, list[i].key, &value));
        *list[i].out = (size_t)value;
    }
    return EMBLA_OK;
}

static embla_status read_sizes(reading *r, const char *vocab, const wanted *list, size_t count)
{
    EMBLA_TRY(read_size(r, vocab, &r->shape.vocab));
    return read_size_list(r, list, count);
}

/* True if config.json has a value for a key. null does not count. */
static bool is_set(const reading *r, const char *key)
{
    embla_json_kind kind = embla_checkpoint_kind(r->cp, key);
    return kind != EMBLA_JSON_NONE && kind != EMBLA_JSON_NULL;
}

/* Reports a value of the wrong type; the default is not used instead. */
static embla_status fail_wrong_type(const reading *r, const char *key, const char *must)
{
    return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is not %s", r->cp->shown, key, must);
}

/* Reads an optional size. If it is missing or null, out is unchanged. */
static embla_status read_optional_size(const reading *r, const char *key, size_t *out)
{
    int64_t value;
    if (!is_set(r, key)) return EMBLA_OK;
    if (embla_checkpoint_integer(r->cp, key, &value) != EMBLA_OK)
        return fail_wrong_type(r, key, "an integer");
    EMBLA_TRY(read_size(r, key, &value));
    *out = (size_t)value;
    return EMBLA_OK;
}

/* Reads an optional number above 0. 0 is refused, because 0 means the default in a shape. */
static embla_status read_optional_real(const reading *r, const char *key, double *out)
{
    double value;
    if (!is_set(r, key)) return EMBLA_OK;
    if (embla_checkpoint_real(r->cp, key, &value) != EMBLA_OK)
        return fail_wrong_type(r, key, "a finite number");
    if (!(value > 0.0))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is %g; it must be above 0",
                          r->cp->shown, key, value);
    *out = value;
    return EMBLA_OK;
}

/* Finds the index of a string in a list of words. A missing key means the first word. */
static embla_status read_word(const reading *r, const char *key, const char *const *words,
                              size_t count, size_t *out)
{
    const char *text = embla_checkpoint_text(r->cp, key);
    if (!text && is_set(r, key)) return fail_wrong_type(r, key, "a string");
    for (size_t i = 0; i < count; i++)
        if (!text || strcmp(text, words[i]) == 0) {
            *out = i;
            return EMBLA_OK;
        }
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is '%.64s'; supported: '%s'%s",
                      r->cp->shown, key, text, words[0], count > 1 ? " and others" : "");
}

/* Reads an optional flag: 1 true, 0 false, -1 missing. */
static embla_status read_optional_flag(const reading *r, const char *key, int *out)
{
    embla_json_kind kind = embla_checkpoint_kind(r->cp, key);
    if (is_set(r, key) && kind != EMBLA_JSON_TRUE && kind != EMBLA_JSON_FALSE)
        return fail_wrong_type(r, key, "true or false");
    *out = kind == EMBLA_JSON_TRUE ? 1 : kind == EMBLA_JSON_FALSE ? 0 : -1;
    return EMBLA_OK;
}

/* Refuses a flag with a value that we do not support. */
static embla_status check_flag(const reading *r, const char *key, bool ours)
{
    int flag;
    EMBLA_TRY(read_optional_flag(r, key, &flag));
    if (flag == (ours ? 0 : 1))
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%.200s: its '%s' is %s; only %s is supported",
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
    EMBLA_TRY(read_sizes(r, "vocab_size", sizes, 4));
    EMBLA_TRY(read_optional_size(r, "n_inner", &s->hidden));
    EMBLA_TRY(read_optional_real(r, "layer_norm_epsilon", &s->norm_epsilon));
    EMBLA_TRY(read_word(r, "activation_function", names, 4, &which));
    EMBLA_TRY(check_flag(r, "scale_attn_weights", true));
    EMBLA_TRY(check_flag(r, "scale_attn_by_inverse_layer_idx", false));
    s->activation = kinds[which];
    s->biases = true;
    return EMBLA_OK;
}

static embla_status fail_partial_rotary(const reading *r, const char *key, double share)
{
    return embla_fail(
        EMBLA_ERR_UNSUPPORTED,
        "%.200s: its '%s' is %g; only rotary embeddings over the whole head are supported",
        r->cp->shown, key, share);
}

/* Checks one of the two objects that describe the scaling of rotary positions, and reads theta.
 * Scaling is not supported, because a shape cannot express it. */
static embla_status check_rope(reading *r, const char *object)
{
    static const char *const types[] = {"rope_type", "type"}, *const plain[] = {"default"};
    embla_gpt_shape *s = &r->shape;
    char key[64];
    size_t which;
    double theta = 0, rotated = 1;
    bool has_type = false;
    if (!is_set(r, object)) return EMBLA_OK;
    if (embla_checkpoint_kind(r->cp, object) != EMBLA_JSON_OBJECT)
        return fail_wrong_type(r, object, "an object");
    for (size_t i = 0; i < 2; i++) {
        (void)snprintf(key, sizeof key, "%s.%s", object, types[i]);
        EMBLA_TRY(read_word(r, key, plain, 1, &which));
        has_type = has_type || is_set(r, key);
    }
    (void)snprintf(key, sizeof key, "%s.factor", object);
    if (!has_type && is_set(r, key))
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.200s: its '%s' is given without a type; scaled rotary positions are not supported",
            r->cp->shown, key);
    (void)snprintf(key, sizeof key, "%s.partial_rotary_factor", object);
    EMBLA_TRY(read_optional_real(r, key, &rotated));
    if (rotated != 1) return fail_partial_rotary(r, key, rotated);
    (void)snprintf(key, sizeof key, "%s.rope_theta", object);
    EMBLA_TRY(read_optional_real(r, key, &theta));
    if (theta > 0 && s->rope_theta > 0 && theta != s->rope_theta)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is %g, but elsewhere it is %g",
                          r->cp->shown, key, theta, s->rope_theta);
    if (theta > 0) s->rope_theta = theta;
    return EMBLA_OK;
}

/* Reads theta of rotary positions from any of its keys. */
static embla_status read_rope(reading *r)
{
    double rotated = 1;
    EMBLA_TRY(read_optional_real(r, "partial_rotary_factor", &rotated));
    if (rotated != 1) return fail_partial_rotary(r, "partial_rotary_factor", rotated);
    EMBLA_TRY(read_optional_real(r, "rope_theta", &r->shape.rope_theta));
    EMBLA_TRY(check_rope(r, "rope_scaling"));
    return check_rope(r, "rope_parameters");
}

/* We support a bias in every linear layer, or in none. */
static embla_status read_biases(reading *r)
{
    static const char *const keys[] = {"attention_bias", "mlp_bias"};
    const embla_entry *bias;
    r->shape.biases =
        embla_checkpoint_named(r->cp, "model.layers.0.self_attn.q_proj.bias", &bias) == EMBLA_OK;
    for (size_t i = 0; i < 2; i++) {
        int flag;
        EMBLA_TRY(read_optional_flag(r, keys[i], &flag));
        if (flag >= 0 && (flag == 1) != r->shape.biases)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "%.200s: its '%s' is %s, but its attention has %s biases; either all "
                              "linear layers must have a bias, or none",
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
    EMBLA_TRY(read_sizes(r, "vocab_size", sizes, 5));
    EMBLA_TRY(read_optional_size(r, "num_key_value_heads", &s->kv_heads));
    EMBLA_TRY(read_optional_size(r, "head_dim", &head));
    size_t each = s->heads > 0 ? s->dim / s->heads : 0;
    if (head > 0 && (each * s->heads != s->dim || head != each))
        return embla_fail(
            EMBLA_ERR_UNSUPPORTED,
            "%.200s: its head_dim is %zu; only dim / heads is supported (%zu heads, dim %zu: %zu)",
            r->cp->shown, head, s->heads, s->dim, each);
    EMBLA_TRY(read_word(r, "hidden_act", silu, 2, &which));
    s->norm_epsilon = 1e-6; /* the default of LlamaConfig */
    EMBLA_TRY(read_optional_real(r, "rms_norm_eps", &s->norm_epsilon));
    EMBLA_TRY(read_rope(r));
    EMBLA_TRY(read_biases(r));
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
    return read_sizes(r, "vocab_size", sizes, 6);
}

static embla_status llmc_sizes(reading *r)
{
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {{"channels", &s->dim},
                            {"num_layers", &s->layers},
                            {"num_heads", &s->heads},
                            {"max_seq_len", &s->positions}};
    s->biases = true;
    return read_sizes(r, "vocab_size", sizes, 4);
}

/* Reads a flag stored as 0 or 1. */
static embla_status read_flag(const reading *r, const char *key, bool *out)
{
    int64_t value = -1;
    if (embla_checkpoint_integer(r->cp, key, &value) != EMBLA_OK || value < 0 || value > 1)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s: its '%s' is %" PRId64 "; it must be 0 or 1",
                          r->cp->shown, key, value);
    *out = value == 1;
    return EMBLA_OK;
}

/* Reads all sizes of an n-gram table, or none. */
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
    EMBLA_TRY(read_size_list(r, sizes, 3));
    if (g->rows < 1 || embla_checkpoint_integer(r->cp, "ngram_layer", &layer) != EMBLA_OK ||
        embla_checkpoint_integer(r->cp, "ngram_seed", &seed) != EMBLA_OK || layer < 0)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: its n-gram table has %" PRId64 " rows in layer %" PRId64
                          "; ngram_rows, ngram_layer and ngram_seed are required",
                          r->cp->shown, g->rows, layer);
    g->layer = (size_t)layer;
    g->seed = (uint64_t)seed;
    return EMBLA_OK;
}

static embla_status embla_sizes(reading *r)
{
    static const char *const norms[] = {"layer", "rms"};
    static const char *const activations[] = {"gelu", "relu", "relu_squared", "swiglu"};
    static const char *const orders[] = {"interleaved", "half_split"};
    embla_gpt_shape *s = &r->shape;
    const wanted sizes[] = {
        {"hidden_size", &s->dim},           {"num_hidden_layers", &s->layers},
        {"num_attention_heads", &s->heads}, {"num_key_value_heads", &s->kv_heads},
        {"intermediate_size", &s->hidden},  {"max_position_embeddings", &s->positions}};
    size_t norm, activation, position, order;
    bool gain, last;
    EMBLA_TRY(read_sizes(r, "vocab_size", sizes, 6));
    EMBLA_TRY(read_optional_real(r, "norm_epsilon", &s->norm_epsilon));
    EMBLA_TRY(read_optional_real(r, "rope_theta", &s->rope_theta));
    EMBLA_TRY(read_word(r, "norm", norms, 2, &norm));
    EMBLA_TRY(read_word(r, "activation_function", activations, 4, &activation));
    EMBLA_TRY(read_word(r, "positions", embla_gpt_positions, EMBLA_GPT_POSITIONS, &position));
    EMBLA_TRY(read_word(r, "rope_order", orders, 2, &order));
    EMBLA_TRY(read_flag(r, "norm_gain", &gain));
    EMBLA_TRY(read_flag(r, "biases", &s->biases));
    EMBLA_TRY(read_flag(r, "norm_first", &s->norm_first));
    EMBLA_TRY(read_flag(r, "norm_last", &last));
    EMBLA_TRY(ngram_sizes(r));
    s->norm = (embla_norm_kind)norm;
    s->activation = (embla_activation)activation;
    s->position_kind = (embla_positions_kind)position;
    s->rope_order = (embla_rope_order)order;
    s->no_gain = !gain;
    s->no_norm_last = !last;
    return EMBLA_OK;
}

/* ---- family, tied head, shape ---- */

static bool has_tensor(const reading *r, const char *name)
{
    const embla_entry *entry;
    return embla_checkpoint_named(r->cp, name, &entry) == EMBLA_OK;
}

static embla_status find_family(reading *r)
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
                          "%.200s: a model can be opened from safetensors with a config.json, from "
                          "llama2.c or from llm.c, but not from %s",
                          r->cp->shown, format);
    else if (!type)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: 'model_type' is unknown, because there is no config.json with "
                          "it; open the model's folder",
                          r->cp->shown);
    else if (strcmp(type, "gpt2") == 0)
        r->family = &embla_family_gpt2;
    else if (strcmp(type, "llama") == 0)
        r->family = &embla_family_llama;
    else if (strcmp(type, "embla") == 0)
        r->family = &embla_family_embla;
    else
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%.200s: its model_type is '%.64s'; supported: gpt2, llama and embla",
                          r->cp->shown, type);
    if (r->family == &embla_family_llama) r->prefix = "model.";
    if (r->family == &embla_family_gpt2 && has_tensor(r, "transformer.wte.weight"))
        r->prefix = "transformer.";
    return EMBLA_OK;
}

/* Determines whether the head is the token table. If both are stored and equal, they are tied,
 * unless config.json says they are not: equal untied tables stay separate. */
static embla_status find_tie(reading *r)
{
    embla_tie tie;
    const embla_entry *head;
    int flag;
    const char *name = r->family == &embla_family_llama2c ? "output.weight"
                       : r->family == &embla_family_embla ? "lm_head"
                                                          : "lm_head.weight";
    if (embla_checkpoint_kind(r->cp, "tie_word_embeddings") != EMBLA_JSON_STRING)
        EMBLA_TRY(read_optional_flag(r, "tie_word_embeddings", &flag));
    EMBLA_TRY(embla_checkpoint_tie(r->cp, 0, &tie));
    if (embla_checkpoint_named(r->cp, name, &head) != EMBLA_OK) {
        if (tie.kind == EMBLA_TIE_TIED) return EMBLA_OK;
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: the model has no head: there is no '%s', and the weights are "
                          "not tied: %s (%s)",
                          r->cp->shown, name, tie.flag, embla_tie_name(tie.kind));
    }
    r->shape.untied = tie.kind != EMBLA_TIE_STORED_TWICE || strstr(tie.flag, "= false") != NULL;
    r->head = head;
    return EMBLA_OK;
}

static embla_status read_family_sizes(reading *r)
{
    if (r->family == &embla_family_gpt2) return gpt2_sizes(r);
    if (r->family == &embla_family_llama) return llama_sizes(r);
    if (r->family == &embla_family_llama2c) return llama2c_sizes(r);
    if (r->family == &embla_family_llmc) return llmc_sizes(r);
    return embla_sizes(r);
}

/* Reads the shape. An impossible shape is reported as an error of the file. */
static embla_status read_shape(reading *r)
{
    char why[400];
    embla_gpt_shape whole;
    EMBLA_TRY(find_family(r));
    EMBLA_TRY(read_family_sizes(r));
    if (is_set(r, "resid_pdrop") && /* needed if training continues */
        embla_checkpoint_real(r->cp, "resid_pdrop", &r->shape.dropout) != EMBLA_OK)
        return fail_wrong_type(r, "resid_pdrop", "a finite number");
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
    EMBLA_TRY(read_shape(&r));
    *out = (embla_gpt_config){r.family, r.prefix, r.head, r.shape};
    return EMBLA_OK;
}
