/* SPDX-License-Identifier: Apache-2.0 */
/* Models opened from checkpoints and saved as folders: what is saved is opened again bit for
 * bit in all three forms; names and shapes are those of GPT2LMHeadModel and LlamaForCausalLM,
 * written down here a second time; files of llm.c and llama2.c put together by hand; and folders
 * with something wrong in them, made from good ones.
 */
#include "gpt_models.h"
#include "opened.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "embla_train.h"
#include "files/io.h"
#include "files/json.h"
#include "model/gpt.h"

/* ---- models ---- */

static embla_gpt_shape gpt2_like(void)
{
    return (embla_gpt_shape){.vocab = 11,
                             .dim = 12,
                             .layers = 2,
                             .heads = 3,
                             .hidden = 20,
                             .positions = 9,
                             .norm_epsilon = 3e-5,
                             .biases = true};
}

static embla_gpt_shape llama_like(void)
{
    return (embla_gpt_shape){.vocab = 11,
                             .dim = 16,
                             .layers = 2,
                             .heads = 4,
                             .kv_heads = 2,
                             .hidden = 20,
                             .positions = 9,
                             LLAMA_KIND,
                             .rope_theta = 500000,
                             .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT,
                             .untied = true};
}

static embla_gpt_shape microgpt_like(void)
{
    return (embla_gpt_shape){
        .vocab = 11, .dim = 16, .layers = 1, .heads = 4, .positions = 9, MICROGPT_KIND};
}

static embla_gpt *model(const embla_gpt_shape *shape)
{
    return random_gpt(shape, 7);
}

static embla_gpt_tensor tensor_of(const embla_gpt *gpt, const char *name)
{
    embla_gpt_tensor tensor;
    for (size_t i = 0; i < embla_gpt_tensor_count(gpt); i++) {
        assert_ok(embla_gpt_tensor_at(gpt, i, &tensor));
        if (strcmp(tensor.name, name) == 0) return tensor;
    }
    fail_msg("no tensor %s", name);
    return tensor;
}

static const float *values_of(const embla_gpt *gpt, const char *name)
{
    return tensor_of(gpt, name).values;
}

static void assert_same_shape(const embla_gpt_shape *a, const embla_gpt_shape *b)
{
    assert_int_equal(a->vocab, b->vocab);
    assert_int_equal(a->dim, b->dim);
    assert_int_equal(a->layers, b->layers);
    assert_int_equal(a->heads, b->heads);
    assert_int_equal(a->kv_heads, b->kv_heads);
    assert_int_equal(a->hidden, b->hidden);
    assert_int_equal(a->positions, b->positions);
    assert_int_equal(a->norm, b->norm);
    assert_int_equal(a->activation, b->activation);
    assert_int_equal(a->position_kind, b->position_kind);
    assert_true(a->norm_epsilon == b->norm_epsilon);
    assert_true(a->dropout == b->dropout);
    if (a->position_kind == EMBLA_POSITIONS_ROTARY) {
        assert_true(a->rope_theta == b->rope_theta);
        assert_int_equal(a->rope_order, b->rope_order);
    }
    assert_int_equal(a->no_gain, b->no_gain);
    assert_int_equal(a->biases, b->biases);
    assert_int_equal(a->untied, b->untied);
    assert_int_equal(a->norm_first, b->norm_first);
    assert_int_equal(a->no_norm_last, b->no_norm_last);
}

static void assert_same_model(const embla_gpt *a, const embla_gpt *b)
{
    assert_same_shape(&a->shape, &b->shape);
    assert_int_equal(embla_gpt_tensor_count(a), embla_gpt_tensor_count(b));
    for (size_t i = 0; i < embla_gpt_tensor_count(a); i++) {
        embla_gpt_tensor x, y;
        assert_ok(embla_gpt_tensor_at(a, i, &x));
        assert_ok(embla_gpt_tensor_at(b, i, &y));
        assert_string_equal(x.name, y.name);
        assert_int_equal(x.rows, y.rows);
        assert_int_equal(x.dim, y.dim);
        assert_memory_equal(x.values, y.values, (size_t)x.rows * x.dim * sizeof(float));
    }
}

/* Opens name in the folder as a model, "" for the folder itself. */
static embla_status open_model(const char *name, embla_gpt **out)
{
    embla_checkpoint *cp = opened(name);
    embla_status status = embla_gpt_open(cp, out);
    embla_checkpoint_free(cp);
    return status;
}

static embla_gpt *reopened(void)
{
    embla_gpt *gpt = NULL;
    assert_ok(open_model("", &gpt));
    return gpt;
}

/* ---- there and back ---- */

static void goes_round(const embla_gpt_shape *shape, const char *type)
{
    embla_gpt *gpt = model(shape);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    embla_checkpoint *cp = opened("");
    assert_string_equal(embla_checkpoint_text(cp, "model_type"), type);
    embla_tie tie;
    assert_ok(embla_checkpoint_tie(cp, 0, &tie));
    assert_int_equal(tie.kind, shape->untied ? EMBLA_TIE_UNTIED : EMBLA_TIE_TIED);
    assert_false(tie.conflict);
    embla_checkpoint_free(cp);
    assert_int_equal(scratch_count(&place, NULL), 2); /* config.json, model.safetensors */
    embla_gpt *back = reopened();
    assert_same_model(gpt, back);
    embla_gpt_free(back);
    embla_gpt_free(gpt);
}

static void gpt2_goes_round_bit_for_bit(void **state)
{
    embla_gpt_shape s = gpt2_like();
    (void)state;
    goes_round(&s, "gpt2");
    s.untied = true;
    goes_round(&s, "gpt2");
    s.activation = EMBLA_ACTIVATION_RELU;
    s.hidden = 0;
    goes_round(&s, "gpt2");
    s.activation = EMBLA_ACTIVATION_RELU_SQUARED;
    s.dropout = 0.1;
    goes_round(&s, "gpt2");
}

static void llama_goes_round_bit_for_bit(void **state)
{
    embla_gpt_shape s = llama_like();
    (void)state;
    goes_round(&s, "llama");
    s.biases = true;
    goes_round(&s, "llama");
    s.biases = s.untied = false;
    s.kv_heads = 4;
    s.dropout = 0.25;
    goes_round(&s, "llama");
    s.rope_theta = 10000.1;
    s.norm_epsilon = 0.1 + 0.2; /* seventeen digits */
    goes_round(&s, "llama");
}

static void other_shapes_go_round_bit_for_bit(void **state)
{
    embla_gpt_shape s = microgpt_like();
    (void)state;
    goes_round(&s, "embla");
    s = gpt2_like();
    s.biases = false; /* GPT-2 always has them */
    goes_round(&s, "embla");
    s = gpt2_like();
    s.position_kind = EMBLA_POSITIONS_SINUSOIDAL;
    goes_round(&s, "embla");
    s = gpt2_like();
    s.kv_heads = 1;
    s.dropout = 0.5;
    goes_round(&s, "embla");
    s = gpt2_like();
    s.norm_first = true;
    s.activation = EMBLA_ACTIVATION_SWIGLU;
    goes_round(&s, "embla");
    s.activation = EMBLA_ACTIVATION_GELU; /* all but the first norm is GPT-2's */
    goes_round(&s, "embla");
    s = gpt2_like();
    s.activation = EMBLA_ACTIVATION_SWIGLU;
    goes_round(&s, "embla");
    s = llama_like();
    s.no_norm_last = true;
    s.rope_order = EMBLA_ROPE_ORDER_INTERLEAVED;
    goes_round(&s, "embla");
    s = llama_like();
    s.position_kind = EMBLA_POSITIONS_NONE;
    s.activation = EMBLA_ACTIVATION_RELU_SQUARED;
    goes_round(&s, "embla");
    s = gpt2_like();
    s.norm = EMBLA_NORM_RMS;
    goes_round(&s, "embla");
    s = llama_like();
    s.norm = EMBLA_NORM_LAYER;
    goes_round(&s, "embla");
    s = gpt2_like();
    s.no_norm_last = true;
    goes_round(&s, "embla");
}

/* Tiles of what is read: more outputs than one has, and inputs that are no multiple of it. */
static void large_tensors_go_round_bit_for_bit(void **state)
{
    embla_gpt_shape s = gpt2_like();
    (void)state;
    s.dim = 63; /* and more numbers than are written at a time */
    s.hidden = 5003;
    s.vocab = 2000;
    goes_round(&s, "gpt2");
    s = llama_like();
    s.vocab = 9000;
    s.hidden = 20011;
    goes_round(&s, "llama");
}

/* A model that was untied stays so, though both tables are the same. */
static void untied_tables_that_are_equal_stay_two(void **state)
{
    embla_gpt_shape s = llama_like();
    embla_gpt *gpt = model(&s);
    embla_gpt_tensor a = tensor_of(gpt, "wte"), b = tensor_of(gpt, "lm_head");
    (void)state;
    memcpy(b.values, a.values, (size_t)a.rows * a.dim * sizeof(float));
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    embla_gpt *back = reopened();
    assert_same_model(gpt, back);
    embla_gpt_free(back);
    embla_gpt_free(gpt);
}

/* ---- what others expect to find ---- */

typedef struct {
    const char *name;
    int64_t rows, dim; /* dim 0: a vector */
} expected;

/* Exactly these; "N" in a name stands for both layers. */
static void has_exactly(const expected *list, size_t count)
{
    embla_checkpoint *cp = opened("");
    size_t found = 0;
    for (size_t i = 0; i < count; i++) {
        const char *number = strchr(list[i].name, 'N');
        for (int layer = 0; layer < (number ? 2 : 1); layer++) {
            char name[128];
            embla_tensor tensor;
            (void)snprintf(name, sizeof name, "%s", list[i].name);
            if (number) name[number - list[i].name] = (char)('0' + layer);
            assert_ok(embla_checkpoint_find(cp, name, &tensor));
            assert_string_equal(tensor.type, "F32");
            assert_int_equal(tensor.rank, list[i].dim > 0 ? 2 : 1);
            assert_int_equal(tensor.shape[0], list[i].rows);
            if (list[i].dim > 0) assert_int_equal(tensor.shape[1], list[i].dim);
            found++;
        }
    }
    assert_int_equal(tensor_count(cp), found);
    embla_checkpoint_free(cp);
}

static const expected gpt2_names[] = {
    {"transformer.wte.weight", 11, 12},
    {"transformer.wpe.weight", 9, 12},
    {"transformer.h.N.ln_1.weight", 12, 0},
    {"transformer.h.N.ln_1.bias", 12, 0},
    {"transformer.h.N.attn.c_attn.weight", 12, 36},
    {"transformer.h.N.attn.c_attn.bias", 36, 0},
    {"transformer.h.N.attn.c_proj.weight", 12, 12},
    {"transformer.h.N.attn.c_proj.bias", 12, 0},
    {"transformer.h.N.ln_2.weight", 12, 0},
    {"transformer.h.N.ln_2.bias", 12, 0},
    {"transformer.h.N.mlp.c_fc.weight", 12, 20},
    {"transformer.h.N.mlp.c_fc.bias", 20, 0},
    {"transformer.h.N.mlp.c_proj.weight", 20, 12},
    {"transformer.h.N.mlp.c_proj.bias", 12, 0},
    {"transformer.ln_f.weight", 12, 0},
    {"transformer.ln_f.bias", 12, 0},
    {"lm_head.weight", 11, 12},
};

/* Number i of a tensor in the folder. */
static float number_at(const char *name, size_t i)
{
    embla_checkpoint *cp = opened("");
    float value;
    assert_ok(embla_checkpoint_read(cp, name, (int64_t)(i * sizeof value), sizeof value, &value));
    embla_checkpoint_free(cp);
    return value;
}

static void a_gpt2_folder_has_the_names_and_shapes_of_gpt2(void **state)
{
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s);
    int64_t number;
    double real;
    (void)state;
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    has_exactly(gpt2_names, COUNT_OF(gpt2_names) - 1); /* tied: no head */
    /* input x output: q, k, v side by side */
    assert_true(number_at("transformer.h.1.attn.c_attn.weight", 5 * 36 + 3) ==
                values_of(gpt, "layer1.attn.q")[3 * 12 + 5]);
    assert_true(number_at("transformer.h.0.attn.c_attn.weight", 5 * 36 + 12 + 3) ==
                values_of(gpt, "layer0.attn.k")[3 * 12 + 5]);
    assert_true(number_at("transformer.h.1.attn.c_attn.weight", 11 * 36 + 35) ==
                values_of(gpt, "layer1.attn.v")[11 * 12 + 11]);
    assert_true(number_at("transformer.h.1.attn.c_attn.bias", 13) ==
                values_of(gpt, "layer1.attn.k.bias")[1]);
    assert_true(number_at("transformer.h.0.attn.c_proj.weight", 2 * 12 + 9) ==
                values_of(gpt, "layer0.attn.o")[9 * 12 + 2]);
    assert_true(number_at("transformer.h.1.mlp.c_fc.weight", 4 * 20 + 19) ==
                values_of(gpt, "layer1.mlp.up")[19 * 12 + 4]);
    assert_true(number_at("transformer.h.1.mlp.c_proj.weight", 17 * 12 + 1) ==
                values_of(gpt, "layer1.mlp.down")[1 * 20 + 17]);
    assert_true(number_at("transformer.h.1.ln_2.bias", 3) ==
                values_of(gpt, "layer1.norm2.bias")[3]);
    assert_true(number_at("transformer.ln_f.weight", 3) == values_of(gpt, "norm.gain")[3]);
    embla_checkpoint *cp = opened("");
    assert_string_equal(embla_checkpoint_text(cp, "format"), "pt");
    assert_string_equal(embla_checkpoint_text(cp, "activation_function"), "gelu_new");
    assert_ok(embla_checkpoint_integer(cp, "n_embd", &number));
    assert_int_equal(number, 12);
    assert_ok(embla_checkpoint_integer(cp, "n_inner", &number));
    assert_int_equal(number, 20);
    assert_ok(embla_checkpoint_real(cp, "layer_norm_epsilon", &real));
    assert_true(real == 3e-5);
    embla_checkpoint_free(cp);
    embla_gpt_free(gpt);
    s.untied = true;
    gpt = model(&s);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    has_exactly(gpt2_names, COUNT_OF(gpt2_names));
    embla_gpt_free(gpt);
}

static const expected llama_names[] = {
    {"model.embed_tokens.weight", 11, 16},
    {"model.layers.N.input_layernorm.weight", 16, 0},
    {"model.layers.N.self_attn.q_proj.weight", 16, 16},
    {"model.layers.N.self_attn.k_proj.weight", 8, 16},
    {"model.layers.N.self_attn.v_proj.weight", 8, 16},
    {"model.layers.N.self_attn.o_proj.weight", 16, 16},
    {"model.layers.N.post_attention_layernorm.weight", 16, 0},
    {"model.layers.N.mlp.gate_proj.weight", 20, 16},
    {"model.layers.N.mlp.up_proj.weight", 20, 16},
    {"model.layers.N.mlp.down_proj.weight", 16, 20},
    {"model.norm.weight", 16, 0},
    {"lm_head.weight", 11, 16},
    {"model.layers.N.self_attn.q_proj.bias", 16, 0},
    {"model.layers.N.self_attn.k_proj.bias", 8, 0},
    {"model.layers.N.self_attn.v_proj.bias", 8, 0},
    {"model.layers.N.self_attn.o_proj.bias", 16, 0},
    {"model.layers.N.mlp.gate_proj.bias", 20, 0},
    {"model.layers.N.mlp.up_proj.bias", 20, 0},
    {"model.layers.N.mlp.down_proj.bias", 16, 0},
};

static void a_llama_folder_has_the_names_and_shapes_of_llama(void **state)
{
    embla_gpt_shape s = llama_like();
    embla_gpt *gpt = model(&s);
    (void)state;
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    has_exactly(llama_names, 12);
    assert_true(number_at("model.layers.1.mlp.gate_proj.weight", 37) ==
                values_of(gpt, "layer1.mlp.gate")[37]);
    assert_true(number_at("model.layers.1.mlp.up_proj.weight", 37) ==
                values_of(gpt, "layer1.mlp.up")[37]);
    assert_true(number_at("model.layers.0.self_attn.k_proj.weight", 37) ==
                values_of(gpt, "layer0.attn.k")[37]);
    embla_gpt_free(gpt);
    s.biases = true;
    gpt = model(&s);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    has_exactly(llama_names, COUNT_OF(llama_names));
    embla_gpt_free(gpt);
}

/* What a model says of some tokens. */
static void hidden_of(embla_gpt *gpt, float *out)
{
    static const int32_t tokens[] = {3, 1, 4, 1, 5, 9, 2, 6};
    embla_loss_report report;
    assert_ok(embla_gpt_reserve(gpt, 1, 8));
    assert_ok(embla_gpt_loss(
        gpt, &(embla_gpt_batch){.tokens = tokens, .targets = tokens, .batch = 1, .length = 8}, NULL,
        &report));
    memcpy(out, embla_gpt_hidden(gpt), 8 * gpt->shape.dim * sizeof(float));
}

/* Logits of all tokens after the last of hidden (8 x dim). */
static void logits_of(embla_gpt *gpt, const float *hidden, double *out)
{
    const embla_gpt_shape *s = &gpt->shape;
    const float *head = values_of(gpt, s->untied ? "lm_head" : "wte"), *last = hidden + 7 * s->dim;
    for (int64_t v = 0; v < s->vocab; v++) {
        out[v] = 0;
        for (size_t c = 0; c < s->dim; c++)
            out[v] += (double)head[(size_t)v * s->dim + c] * (double)last[c];
    }
}

/* Four kinds of positions, tied and untied, in the shapes of GPT-2 and of Llama. */
static void each_kind_of_positions_opens_again_with_the_same_logits(void **state)
{
    (void)state;
    for (int kind = 0; kind < 16; kind++) {
        embla_gpt_shape s = kind & 8 ? llama_like() : gpt2_like();
        float before[8 * 16], after[8 * 16];
        double a[11], b[11];
        s.position_kind = (embla_positions_kind)(kind & 3);
        s.untied = kind & 4;
        const char *type = embla_gpt_family(&s);
        bool known =
            s.position_kind == (kind & 8 ? EMBLA_POSITIONS_ROTARY : EMBLA_POSITIONS_LEARNED);
        assert_string_equal(type, !known ? "embla" : kind & 8 ? "llama" : "gpt2");
        goes_round(&s, type);
        embla_gpt *gpt = model(&s), *back = reopened();
        hidden_of(gpt, before);
        hidden_of(back, after);
        assert_memory_equal(before, after, 8 * s.dim * sizeof(float));
        logits_of(gpt, before, a);
        logits_of(back, after, b);
        assert_memory_equal(a, b, sizeof a);
        embla_gpt_free(back);
        embla_gpt_free(gpt);
    }
    assert_null(embla_gpt_family(NULL));
}

/* Pairs side by side become pairs half a head apart: other rows, the same model. */
static void interleaved_heads_are_saved_in_the_order_of_llama(void **state)
{
    embla_gpt_shape s = llama_like();
    float before[8 * 16], after[8 * 16];
    (void)state;
    s.rope_order = EMBLA_ROPE_ORDER_INTERLEAVED;
    s.biases = true;
    embla_gpt *gpt = model(&s);
    hidden_of(gpt, before);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    embla_gpt *back = reopened();
    assert_int_equal(back->shape.rope_order, EMBLA_ROPE_ORDER_HALF_SPLIT);
    const float *a = values_of(gpt, "layer1.attn.k"), *b = values_of(back, "layer1.attn.k");
    assert_memory_equal(b, a, 16 * sizeof(float));
    assert_memory_equal(b + 16, a + 32, 16 * sizeof(float));
    assert_memory_equal(b + 32, a + 16, 16 * sizeof(float));
    assert_memory_equal(b + 7 * 16, a + 7 * 16, 16 * sizeof(float));
    hidden_of(back, after);
    for (size_t i = 0; i < COUNT_OF(before); i++) assert_near(after[i], before[i], 1e-4);
    embla_gpt_free(back);
    embla_gpt_free(gpt);
}

/* ---- folders made from good ones ---- */

enum { HELD_MOST = 64 };

typedef struct {
    char name[128];
    const char *type;
    embla_dtype dtype;
    size_t rank, count;
    int64_t shape[EMBLA_TENSOR_RANK_MAX];
    float *values;
} held;

typedef struct {
    held list[HELD_MOST];
    size_t count;
    char *config;
} bag;

/* The tensors and config.json of a model of this shape, as they are saved. */
static bag *bag_of(const embla_gpt_shape *shape)
{
    embla_gpt *gpt = model(shape);
    bag *b = calloc(1, sizeof *b);
    size_t bytes;
    assert_non_null(b);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    embla_gpt_free(gpt);
    embla_checkpoint *cp = opened("");
    for (; b->count < tensor_count(cp); b->count++) {
        held *h = &b->list[b->count];
        const embla_tensor tensor = embla_checkpoint_tensors(cp, &bytes)[b->count];
        assert_true(b->count < HELD_MOST - 1);
        *h = (held){.type = "F32", .dtype = EMBLA_F32, .rank = tensor.rank};
        (void)snprintf(h->name, sizeof h->name, "%s", tensor.name);
        memcpy(h->shape, tensor.shape, sizeof h->shape);
        h->count = (size_t)tensor.bytes / sizeof(float);
        h->values = malloc((size_t)tensor.bytes);
        assert_non_null(h->values);
        assert_ok(embla_checkpoint_read(cp, h->name, 0, (size_t)tensor.bytes, h->values));
    }
    embla_checkpoint_free(cp);
    b->config = (char *)scratch_read(scratch_path(&place, "config.json"), &bytes);
    return b;
}

static void bag_free(bag *b)
{
    for (size_t i = 0; i < b->count; i++) free(b->list[i].values);
    free(b->config);
    free(b);
}

static held *held_of(bag *b, const char *name)
{
    for (size_t i = 0; i < b->count; i++)
        if (strcmp(b->list[i].name, name) == 0) return &b->list[i];
    fail_msg("no tensor %s", name);
    return NULL;
}

static void drop(bag *b, const char *name)
{
    held *h = held_of(b, name);
    free(h->values);
    *h = b->list[--b->count];
}

/* One more, of rows x dim zeros (dim 0: a vector). */
static void more(bag *b, const char *name, int64_t rows, int64_t dim)
{
    held *h = &b->list[b->count++];
    *h = (held){.type = "F32", .dtype = EMBLA_F32, .rank = dim > 0 ? 2 : 1};
    (void)snprintf(h->name, sizeof h->name, "%s", name);
    h->shape[0] = rows;
    h->shape[1] = dim;
    h->count = (size_t)(rows * (dim > 0 ? dim : 1));
    h->values = calloc(h->count, sizeof(float));
    assert_non_null(h->values);
}

/* The line of a key in config.json gets another value; NULL: the line goes. */
static void set(bag *b, const char *key, const char *value)
{
    char quoted[64];
    size_t room = strlen(b->config) + 256;
    char *made = malloc(room);
    assert_non_null(made);
    (void)snprintf(quoted, sizeof quoted, "  \"%s\": ", key);
    char *at = strstr(b->config, quoted);
    if (!at) fail_msg("no %s in %s", key, b->config);
    size_t length = strcspn(at, "\n");
    const char *comma = at[length - 1] == ',' ? "," : "";
    char *rest = at + length;
    *at = '\0';
    if (value)
        (void)snprintf(made, room, "%s%s%s%s%s", b->config, quoted, value, comma, rest);
    else
        (void)snprintf(made, room, "%s%s", b->config, rest + 1);
    free(b->config);
    b->config = made;
}

static size_t real_bytes(embla_dtype dtype)
{
    return dtype == EMBLA_F64                                 ? 8
           : dtype == EMBLA_F16 || dtype == EMBLA_BF16        ? 2
           : dtype == EMBLA_F8_E4M3 || dtype == EMBLA_F8_E5M2 ? 1
                                                              : 4;
}

/* Writes the folder. */
static void bag_write(const bag *b)
{
    toy_bytes header = {0}, file = {0};
    size_t at = 0;
    char text[512];
    toy_put(&header, "{", 1);
    for (size_t i = 0; i < b->count; i++) {
        const held *h = &b->list[i];
        size_t bytes = h->count * (h->dtype ? real_bytes(h->dtype) : 8);
        int n = snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[",
                         i > 0 ? "," : "", h->name, h->type);
        for (size_t k = 0; k < h->rank; k++)
            n += snprintf(text + n, sizeof text - (size_t)n, "%s%" PRId64, k > 0 ? "," : "",
                          h->shape[k]);
        n += snprintf(text + n, sizeof text - (size_t)n, "],\"data_offsets\":[%zu,%zu]}", at,
                      at + bytes);
        toy_put(&header, text, (size_t)n);
        at += bytes;
    }
    toy_put(&header, "}", 1);
    while (header.used % 8 != 0) toy_put(&header, " ", 1);
    toy_number(&file, header.used, 8);
    toy_put(&file, header.bytes, header.used);
    for (size_t i = 0; i < b->count; i++) {
        const held *h = &b->list[i];
        size_t bytes = h->count * (h->dtype ? real_bytes(h->dtype) : 8);
        void *stored = calloc(1, bytes);
        assert_non_null(stored);
        if (h->dtype) assert_ok(embla_dtype_encode(h->dtype, h->values, h->count, 0, stored));
        toy_put(&file, stored, bytes);
        free(stored);
    }
    scratch_write(scratch_path(&place, "model.safetensors"), file.bytes, file.used);
    toy_text(scratch_path(&place, "config.json"), b->config);
    free(header.bytes);
    free(file.bytes);
}

/* Writes the folder, and opens it as the shape's model. */
static embla_gpt *bag_open(bag *b)
{
    bag_write(b);
    return reopened();
}

/* Written and refused, with a sentence that has this text; the bag is gone. */
static void refuses(bag *b, embla_status status, const char *text)
{
    embla_gpt *gpt = NULL;
    size_t live = embla_mem_live();
    bag_write(b);
    assert_status(open_model("", &gpt), status);
    assert_error_has(text);
    assert_null(gpt);
    assert_int_equal(embla_mem_live(), live);
    bag_free(b);
}

/* ---- what others write ---- */

/* The hub's gpt2: no prefix, masks beside the weights, no key for the tie. */
static void gpt2_without_a_prefix_and_with_masks_is_opened(void **state)
{
    embla_gpt_shape s = gpt2_like();
    bag *b = bag_of(&s);
    embla_gpt *gpt = model(&s);
    (void)state;
    for (size_t i = 0; i < b->count; i++)
        memmove(b->list[i].name, b->list[i].name + 12, strlen(b->list[i].name) - 11);
    more(b, "h.0.attn.bias", 9, 9);
    more(b, "h.1.attn.bias", 9, 9);
    more(b, "h.1.attn.masked_bias", 1, 0);
    b->list[b->count - 2].type = "I64";
    b->list[b->count - 2].dtype = 0;
    set(b, "tie_word_embeddings", NULL);
    embla_gpt *back = bag_open(b);
    assert_same_model(gpt, back);
    embla_gpt_free(back);
    more(b, "h.2.attn.biases", 9, 9);
    refuses(b, EMBLA_ERR_UNSUPPORTED, "'h.2.attn.biases' (9 x 9) is not part of a model of GPT-2");
    embla_gpt_free(gpt);
}

/* A head that is the table, stored once more. */
static void a_head_that_is_stored_twice_is_tied(void **state)
{
    embla_gpt_shape s = gpt2_like();
    bag *b = bag_of(&s);
    embla_gpt *gpt = model(&s);
    (void)state;
    more(b, "lm_head.weight", 11, 12);
    memcpy(b->list[b->count - 1].values, held_of(b, "transformer.wte.weight")->values,
           11 * 12 * sizeof(float));
    embla_gpt *back = bag_open(b);
    assert_same_model(gpt, back);
    embla_gpt_free(back);
    b->list[b->count - 1].values[7] += 1; /* they differ after all */
    back = bag_open(b);
    assert_true(back->shape.untied);
    embla_gpt_free(back);
    embla_gpt_free(gpt);
    bag_free(b);
}

/* Defaults of the configuration classes, where keys are missing or null. */
static void keys_that_are_missing_have_their_defaults(void **state)
{
    embla_gpt_shape s = gpt2_like();
    s.hidden = 48;
    bag *b = bag_of(&s);
    (void)state;
    set(b, "n_inner", "null");
    set(b, "layer_norm_epsilon", NULL);
    set(b, "activation_function", NULL);
    set(b, "resid_pdrop", "0.1");
    embla_gpt *gpt = bag_open(b);
    assert_int_equal(gpt->shape.hidden, 48);
    assert_true(gpt->shape.norm_epsilon == 1e-5);
    assert_int_equal(gpt->shape.activation, EMBLA_ACTIVATION_GELU);
    assert_true(gpt->shape.dropout == 0.1);
    embla_gpt_free(gpt);
    bag_free(b);
    s = llama_like();
    s.kv_heads = 4;
    b = bag_of(&s);
    more(b, "model.layers.0.self_attn.rotary_emb.inv_freq", 2, 0);
    set(b, "num_key_value_heads", NULL);
    set(b, "rms_norm_eps", NULL);
    set(b, "rope_theta", NULL);
    set(b, "head_dim", NULL);
    set(b, "rope_scaling", "{\"rope_type\": \"default\"}");
    gpt = bag_open(b);
    assert_int_equal(gpt->shape.kv_heads, 4);
    assert_true(gpt->shape.norm_epsilon == 1e-6);
    assert_true(gpt->shape.rope_theta == 10000);
    embla_gpt_free(gpt);
    set(b, "rope_scaling", "null,\n  \"rope_parameters\": {\"rope_theta\": 77.5}");
    gpt = bag_open(b);
    assert_true(gpt->shape.rope_theta == 77.5);
    embla_gpt_free(gpt);
    bag_free(b);
}

static void every_float_type_is_decoded(void **state)
{
    static const struct {
        const char *type;
        embla_dtype dtype;
        double near;
    } types[] = {{"F64", EMBLA_F64, 0},
                 {"F16", EMBLA_F16, 1e-3},
                 {"BF16", EMBLA_BF16, 8e-3},
                 {"F8_E4M3", EMBLA_F8_E4M3, 0.13},
                 {"F8_E5M2", EMBLA_F8_E5M2, 0.26}};
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s);
    (void)state;
    for (size_t t = 0; t < COUNT_OF(types); t++) {
        bag *b = bag_of(&s);
        for (size_t i = 0; i < b->count; i++) {
            b->list[i].type = types[t].type;
            b->list[i].dtype = types[t].dtype;
        }
        embla_gpt *back = bag_open(b);
        const char *names[] = {"wte", "layer1.attn.v", "layer0.mlp.down", "norm.gain"};
        for (size_t n = 0; n < 4; n++) {
            embla_gpt_tensor tensor = tensor_of(back, names[n]);
            const float *got = tensor.values, *wanted = values_of(gpt, names[n]);
            for (size_t i = 0; i < (size_t)tensor.rows * tensor.dim; i++) {
                double gap = fabs((double)got[i] - (double)wanted[i]);
                assert_true(gap <=
                            types[t].near * fabs((double)wanted[i]) + 2e-3 * (types[t].near > 0));
            }
        }
        embla_gpt_free(back);
        bag_free(b);
    }
    embla_gpt_free(gpt);
}

/* ---- what is refused ---- */

static void tensors_that_are_not_right_are_refused(void **state)
{
    embla_gpt_shape s = gpt2_like(), l = llama_like(), m = microgpt_like();
    bag *b = bag_of(&s);
    (void)state;
    drop(b, "transformer.h.1.ln_2.bias");
    refuses(b, EMBLA_ERR_FORMAT, "'transformer.h.1.ln_2.bias' (12) is missing");
    b = bag_of(&s);
    held_of(b, "transformer.h.0.mlp.c_fc.weight")->shape[0] = 20;
    held_of(b, "transformer.h.0.mlp.c_fc.weight")->shape[1] = 12;
    refuses(b, EMBLA_ERR_FORMAT,
            "'transformer.h.0.mlp.c_fc.weight' is 20 x 12; the model's sizes require 12 x 20");
    b = bag_of(&s);
    held_of(b, "transformer.ln_f.weight")->rank = 2;
    held_of(b, "transformer.ln_f.weight")->shape[1] = 1;
    refuses(b, EMBLA_ERR_FORMAT,
            "'transformer.ln_f.weight' is 12 x 1; the model's sizes require 12");
    b = bag_of(&s);
    more(b, "transformer.h.2.ln_1.weight", 12, 0);
    refuses(b, EMBLA_ERR_UNSUPPORTED, "'transformer.h.2.ln_1.weight' (12) is not part of a model");
    b = bag_of(&s);
    held_of(b, "transformer.wpe.weight")->type = "I64";
    held_of(b, "transformer.wpe.weight")->dtype = 0;
    refuses(b, EMBLA_ERR_UNSUPPORTED, "'transformer.wpe.weight' has type I64; supported: f32,");
    b = bag_of(&l);
    drop(b, "model.layers.1.self_attn.k_proj.weight");
    refuses(b, EMBLA_ERR_FORMAT, "'model.layers.1.self_attn.k_proj.weight' (8 x 16) is missing");
    b = bag_of(&l);
    more(b, "model.layers.0.self_attn.q_norm.weight", 4, 0);
    refuses(b, EMBLA_ERR_UNSUPPORTED, "q_norm.weight' (4) is not part of a model of Llama");
    b = bag_of(&l);
    drop(b, "lm_head.weight");
    refuses(b, EMBLA_ERR_FORMAT,
            "there is no 'lm_head.weight', and the weights are not tied: tie_word");
    b = bag_of(&m);
    drop(b, "layer0.attn.o");
    refuses(b, EMBLA_ERR_FORMAT, "'layer0.attn.o' (16 x 16) is missing");
    b = bag_of(&m);
    more(b, "layer0.attn.z", 16, 16);
    refuses(b, EMBLA_ERR_UNSUPPORTED, "'layer0.attn.z' (16 x 16) is not part of a model of embla");
}

typedef struct {
    size_t form;
    const char *key, *value;
    embla_status status;
    const char *text;
} wrong_key;

static const wrong_key wrong_keys[] = {
    {0, "n_head", NULL, EMBLA_ERR_FORMAT, "GPT-2 needs 'n_head'"},
    {0, "n_layer", "0", EMBLA_ERR_FORMAT, "its 'n_layer' is 0"},
    {0, "n_layer", "-2", EMBLA_ERR_FORMAT, "'n_layer' is -2"},
    {0, "n_layer", "3", EMBLA_ERR_FORMAT, "'transformer.h.2.ln_1.weight' (12) is missing"},
    {0, "n_layer", "1", EMBLA_ERR_UNSUPPORTED, "'transformer.h.1."},
    {0, "n_layer", "1000000000", EMBLA_ERR_FORMAT, "1000000000 layers"},
    {0, "n_layer", "9223372036854775807", EMBLA_ERR_FORMAT, "it must be from 1 to"},
    {0, "n_embd", "1.5", EMBLA_ERR_FORMAT, "needs 'n_embd'"},
    {0, "n_embd", "24", EMBLA_ERR_FORMAT,
     "wte.weight' is 11 x 12; the model's sizes require 11 x 24"},
    {0, "n_head", "5", EMBLA_ERR_FORMAT,
     "dim is 12, which is not a multiple of the number of heads, 5"},
    {0, "n_inner", "0", EMBLA_ERR_FORMAT, "'n_inner' is 0"},
    {0, "n_inner", "21", EMBLA_ERR_FORMAT, "is 12 x 20; the model's sizes require 12 x 21"},
    {0, "n_positions", "10", EMBLA_ERR_FORMAT, "wpe.weight' is 9 x 12"},
    {0, "vocab_size", "12", EMBLA_ERR_FORMAT, "is 11 x 12; the model's sizes require 12 x 12"},
    {0, "activation_function", "\"gelu\"", EMBLA_ERR_UNSUPPORTED,
     "'activation_function' is 'gelu'; supported: 'gelu_new'"},
    {0, "layer_norm_epsilon", "0.0", EMBLA_ERR_UNSUPPORTED, "'layer_norm_epsilon' is 0"},
    {0, "resid_pdrop", "1.0", EMBLA_ERR_FORMAT, "dropout is 1"},
    {0, "model_type", "\"bert\"", EMBLA_ERR_UNSUPPORTED,
     "its model_type is 'bert'; supported: gpt2, llama and embla"},
    {0, "model_type", "\"embla\"", EMBLA_ERR_FORMAT, "embla needs 'hidden_size'"},
    {0, "model_type", "7", EMBLA_ERR_UNSUPPORTED, "'model_type' is unknown"},
    {1, "head_dim", "8", EMBLA_ERR_UNSUPPORTED,
     "its head_dim is 8; only dim / heads is supported (4 heads, dim 16: 4"},
    {1, "hidden_act", "\"gelu\"", EMBLA_ERR_UNSUPPORTED, "'hidden_act' is 'gelu'"},
    {1, "rope_scaling", "{\"rope_type\": \"llama3\"}", EMBLA_ERR_UNSUPPORTED,
     "'rope_scaling.rope_type' is 'llama3'"},
    {1, "rope_scaling", "{\"type\": \"linear\"}", EMBLA_ERR_UNSUPPORTED, "'linear'"},
    {1, "rope_scaling", "null, \"rope_parameters\": {\"rope_type\": \"yarn\"}",
     EMBLA_ERR_UNSUPPORTED, "'yarn'"},
    {1, "rope_theta", "-1.0", EMBLA_ERR_UNSUPPORTED, "'rope_theta' is -1"},
    {1, "num_key_value_heads", "3", EMBLA_ERR_FORMAT,
     "heads is 4, which is not a multiple of kv_heads, 3"},
    {1, "num_key_value_heads", "1", EMBLA_ERR_FORMAT, "the model's sizes require 4 x 16"},
    {1, "intermediate_size", NULL, EMBLA_ERR_FORMAT, "Llama needs 'intermediate_size'"},
    {2, "norm_gain", "2", EMBLA_ERR_FORMAT, "its 'norm_gain' is 2; it must be 0 or 1"},
    {2, "biases", NULL, EMBLA_ERR_FORMAT, "'biases' is -1"},
    {2, "norm_first", "true", EMBLA_ERR_FORMAT, "'norm_first' is -1"},
    {2, "norm", "\"batch\"", EMBLA_ERR_UNSUPPORTED, "'norm' is 'batch'; supported: 'layer'"},
    {2, "positions", "\"alibi\"", EMBLA_ERR_UNSUPPORTED, "'alibi'"},
    {2, "activation_function", "\"swiglu\"", EMBLA_ERR_FORMAT, "'layer0.mlp.gate' (64 x 16) is m"},
    {2, "vocab_size", "1000000000", EMBLA_ERR_FORMAT, "bytes, but its tensors have"},
    {2, "hidden_size", "1048576", EMBLA_ERR_FORMAT, "bytes, but its tensors have"},
    {2, "max_position_embeddings", "16777216", EMBLA_ERR_FORMAT, "bytes, but its tensors have"},
    {0, "scale_attn_weights", "false", EMBLA_ERR_UNSUPPORTED,
     "'scale_attn_weights' is false; only true"},
    {0, "scale_attn_by_inverse_layer_idx", "true", EMBLA_ERR_UNSUPPORTED,
     "_layer_idx' is true; only false"},
    {0, "scale_attn_weights", "1", EMBLA_ERR_FORMAT, "'scale_attn_weights' is not true or false"},
    {0, "activation_function", "3", EMBLA_ERR_FORMAT, "'activation_function' is not a string"},
    {0, "layer_norm_epsilon", "\"1e-3\"", EMBLA_ERR_FORMAT,
     "'layer_norm_epsilon' is not a finite number"},
    {0, "layer_norm_epsilon", "1e999", EMBLA_ERR_FORMAT, "'layer_norm_epsilon' is not a finite"},
    {0, "n_inner", "\"20\"", EMBLA_ERR_FORMAT, "'n_inner' is not an integer"},
    {0, "resid_pdrop", "\"0.5\"", EMBLA_ERR_FORMAT, "'resid_pdrop' is not a finite number"},
    {0, "tie_word_embeddings", "0", EMBLA_ERR_FORMAT, "'tie_word_embeddings' is not true or false"},
    {0, "tie_word_embeddings", "\"false\"", EMBLA_ERR_FORMAT, "the model has no head"},
    {0, "vocab_size", "99999999999999999999", EMBLA_ERR_FORMAT, "needs 'vocab_size'"},
    {1, "attention_bias", "true", EMBLA_ERR_UNSUPPORTED,
     "its 'attention_bias' is true, but its attention has no"},
    {1, "mlp_bias", "true", EMBLA_ERR_UNSUPPORTED,
     "its 'mlp_bias' is true, but its attention has no"},
    {1, "attention_bias", "\"yes\"", EMBLA_ERR_FORMAT, "'attention_bias' is not true or false"},
    {1, "rope_scaling", "{\"factor\": 8.0}", EMBLA_ERR_UNSUPPORTED,
     "'rope_scaling.factor' is given without a type"},
    {1, "rope_scaling", "{\"rope_type\": 3}", EMBLA_ERR_FORMAT,
     "'rope_scaling.rope_type' is not a string"},
    {1, "rope_scaling", "\"linear\"", EMBLA_ERR_FORMAT, "'rope_scaling' is not an object"},
    {1, "rope_scaling", "null, \"rope_parameters\": {\"type\": \"linear\", \"factor\": 2}",
     EMBLA_ERR_UNSUPPORTED, "'rope_parameters.type' is 'linear'"},
    {1, "rope_scaling", "null, \"rope_parameters\": {\"rope_theta\": 5.0}", EMBLA_ERR_FORMAT,
     "'rope_parameters.rope_theta' is 5, but elsewhere it is 500000"},
    {1, "rope_scaling", "null, \"partial_rotary_factor\": 0.5", EMBLA_ERR_UNSUPPORTED,
     "is 0.5; only rotary embeddings over the whole head"},
    {1, "rope_scaling", "{\"partial_rotary_factor\": 0.25}", EMBLA_ERR_UNSUPPORTED,
     "'rope_scaling.partial_rotary_factor' is 0.25"},
    {1, "rope_theta", "\"500\"", EMBLA_ERR_FORMAT, "'rope_theta' is not a finite number"},
    {1, "rms_norm_eps", "true", EMBLA_ERR_FORMAT, "'rms_norm_eps' is not a finite number"},
    {1, "hidden_act", "3", EMBLA_ERR_FORMAT, "'hidden_act' is not a string"},
    {1, "head_dim", "\"8\"", EMBLA_ERR_FORMAT, "'head_dim' is not an integer"},
    {2, "norm", "3", EMBLA_ERR_FORMAT, "'norm' is not a string"},
    {2, "rope_order", "1", EMBLA_ERR_FORMAT, "'rope_order' is not a string"},
};

static void keys_that_are_not_right_are_refused(void **state)
{
    embla_gpt_shape shapes[] = {gpt2_like(), llama_like(), microgpt_like()};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong_keys); i++) {
        const wrong_key *w = &wrong_keys[i];
        bag *b = bag_of(&shapes[w->form]);
        set(b, w->key, w->value);
        refuses(b, w->status, w->text);
    }
}

/* Keys that change nothing, or say what is so, are not in the way. */
static void keys_that_change_nothing_are_passed_over(void **state)
{
    static const wrong_key fine[] = {
        {0, "reorder_and_upcast_attn", "true", EMBLA_OK, NULL}, /* the same sums, in f32 */
        {0, "scale_attn_weights", "null", EMBLA_OK, NULL},
        {0, "tie_word_embeddings", "\"true\"", EMBLA_OK, NULL},
        {1, "rope_scaling", "{\"type\": \"default\", \"factor\": 8.0}", EMBLA_OK, NULL},
        {1, "rope_scaling", "{\"rope_theta\": 500000, \"partial_rotary_factor\": 1.0}", EMBLA_OK,
         NULL},
        {1, "rope_scaling", "null, \"partial_rotary_factor\": 1", EMBLA_OK, NULL},
        {1, "attention_bias", NULL, EMBLA_OK, NULL},
        {1, "mlp_bias", "null", EMBLA_OK, NULL},
    };
    embla_gpt_shape shapes[] = {gpt2_like(), llama_like()};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(fine); i++) {
        bag *b = bag_of(&shapes[fine[i].form]);
        embla_gpt *gpt = model(&shapes[fine[i].form]);
        set(b, fine[i].key, fine[i].value);
        embla_gpt *back = bag_open(b);
        assert_same_model(gpt, back);
        embla_gpt_free(back);
        embla_gpt_free(gpt);
        bag_free(b);
    }
}

/* Flags of biases are held against the tensors that are there. */
static void flags_of_biases_are_held_against_tensors(void **state)
{
    embla_gpt_shape s = llama_like();
    (void)state;
    s.biases = true;
    bag *b = bag_of(&s);
    set(b, "mlp_bias", NULL);
    embla_gpt_free(bag_open(b));
    set(b, "attention_bias", "false");
    refuses(b, EMBLA_ERR_UNSUPPORTED, "its 'attention_bias' is false, but its attention has its");
}

static void what_is_no_model_is_refused(void **state)
{
    static const toy_tensor one[] = {{"token_embd.weight", 4, 4, 1}};
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s), *out = NULL;
    embla_checkpoint *cp;
    (void)state;
    toy_gguf(scratch_path(&place, "a.gguf"), "llama", 0, one, 1);
    assert_status(open_model("a.gguf", &out), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("not from gguf");
    toy_safetensors(scratch_path(&place, "a.safetensors"), one, 1);
    assert_status(open_model("a.safetensors", &out), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("open the model's folder");
    cp = opened("a.safetensors");
    assert_status(embla_gpt_open(NULL, &out), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_gpt_open: checkpoint is NULL");
    assert_status(embla_gpt_open(cp, NULL), EMBLA_ERR_ARGUMENT);
    embla_checkpoint_free(cp);
    assert_null(out);
    embla_gpt_free(gpt);
}

/* ---- llm.c and llama2.c, by hand ---- */

/* Number i of a file's tensors, all together. */
static float file_number(size_t i)
{
    return (float)i * 0.25f - 100.0f;
}

static void put_numbers(toy_bytes *t, size_t count, bool bf16)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits = check_bits_of(file_number(i));
        toy_number(t, bf16 ? bits >> 16 : bits, bf16 ? 2 : 4);
    }
}

static float rounded(float x, bool bf16)
{
    return bf16 ? check_float_of(check_bits_of(x) & 0xffff0000u) : x;
}

/* Our tensor is these numbers of the file. */
static void is_from(const embla_gpt *gpt, const char *name, size_t first, bool bf16)
{
    embla_gpt_tensor tensor = tensor_of(gpt, name);
    const float *values = tensor.values;
    for (size_t i = 0; i < (size_t)tensor.rows * tensor.dim; i++)
        if (values[i] != rounded(file_number(first + i), bf16))
            fail_msg("number %zu of %s is not number %zu of the file", i, name, first + i);
}

/* 5 positions, 7 tokens in 8 rows, 2 layers, 2 heads, 4 channels. */
static void llmc_is_opened(void **state)
{
    enum { P = 5, N = 7, ROWS = 8, L = 2, D = 4 };
    const size_t wpe = ROWS * D, ln1w = wpe + P * D, ln1b = ln1w + L * D, qkvw = ln1b + L * D;
    const size_t qkvb = qkvw + L * 3 * D * D, projw = qkvb + L * 3 * D, projb = projw + L * D * D;
    const size_t ln2w = projb + L * D, ln2b = ln2w + L * D, fcw = ln2b + L * D;
    const size_t fcb = fcw + L * 4 * D * D, downw = fcb + L * 4 * D, downb = downw + L * 4 * D * D;
    const size_t lnfw = downb + L * D, lnfb = lnfw + D, end = lnfb + D;
    (void)state;
    for (int bf16 = 0; bf16 < 2; bf16++) {
        const int32_t fields[] = {20240326, bf16 ? 5 : 3, P, N, L, 2, D, ROWS};
        toy_bytes t = {0};
        embla_gpt *gpt = NULL;
        for (size_t i = 0; i < 256; i++) toy_number(&t, i < 8 ? (uint64_t)fields[i] : 0, 4);
        put_numbers(&t, end, bf16 == 1);
        scratch_write(scratch_path(&place, "m.bin"), t.bytes, t.used);
        free(t.bytes);
        assert_ok(open_model("m.bin", &gpt));
        const embla_gpt_shape *s = &gpt->shape;
        assert_int_equal(s->vocab, N); /* padding is left out */
        assert_int_equal(s->positions, P);
        assert_int_equal(s->hidden, 4 * D);
        assert_int_equal(s->heads, 2);
        assert_true(s->biases && !s->untied && s->norm_epsilon == 1e-5);
        is_from(gpt, "wte", 0, bf16);
        is_from(gpt, "wpe", wpe, bf16);
        is_from(gpt, "layer1.norm1.gain", ln1w + D, bf16);
        is_from(gpt, "layer0.norm1.bias", ln1b, bf16);
        is_from(gpt, "layer1.attn.q", qkvw + 3 * D * D, bf16);
        is_from(gpt, "layer1.attn.k", qkvw + 4 * D * D, bf16);
        is_from(gpt, "layer0.attn.v", qkvw + 2 * D * D, bf16);
        is_from(gpt, "layer1.attn.v.bias", qkvb + 5 * D, bf16);
        is_from(gpt, "layer1.attn.o", projw + D * D, bf16);
        is_from(gpt, "layer0.attn.o.bias", projb, bf16);
        is_from(gpt, "layer1.norm2.gain", ln2w + D, bf16);
        is_from(gpt, "layer1.norm2.bias", ln2b + D, bf16);
        is_from(gpt, "layer1.mlp.up", fcw + 4 * D * D, bf16);
        is_from(gpt, "layer1.mlp.up.bias", fcb + 4 * D, bf16);
        is_from(gpt, "layer0.mlp.down", downw, bf16);
        is_from(gpt, "layer1.mlp.down.bias", downb + D, bf16);
        is_from(gpt, "norm.gain", lnfw, bf16);
        is_from(gpt, "norm.bias", lnfb, bf16);
        embla_gpt_free(gpt);
    }
}

/* dim 8, hidden 6, 2 layers, 4 heads, 2 of keys and values, 5 tokens, 3 positions. */
static void llama2c_is_opened(void **state)
{
    enum { D = 8, F = 6, L = 2, KV = 4, N = 5, P = 3 };
    const size_t norm1 = N * D, wq = norm1 + L * D, wk = wq + L * D * D, wv = wk + L * KV * D;
    const size_t wo = wv + L * KV * D, norm2 = wo + L * D * D, w1 = norm2 + L * D;
    const size_t w2 = w1 + L * F * D, w3 = w2 + L * F * D, norm = w3 + L * F * D, turns = norm + D;
    const size_t head = turns + 2 * P;
    (void)state;
    for (int untied = 0; untied < 2; untied++) {
        const int32_t fields[] = {D, F, L, 4, 2, untied ? -N : N, P};
        toy_bytes t = {0};
        embla_gpt *gpt = NULL;
        for (size_t i = 0; i < 7; i++) toy_number(&t, (uint32_t)fields[i], 4);
        put_numbers(&t, head + (untied ? N * D : 0), false);
        scratch_write(scratch_path(&place, "m.bin"), t.bytes, t.used);
        free(t.bytes);
        assert_ok(open_model("m.bin", &gpt));
        const embla_gpt_shape *s = &gpt->shape;
        assert_int_equal(s->vocab, N);
        assert_int_equal(s->kv_heads, 2);
        assert_int_equal(s->positions, P);
        assert_int_equal(s->rope_order, EMBLA_ROPE_ORDER_INTERLEAVED);
        assert_int_equal(s->untied, untied);
        is_from(gpt, "wte", 0, false);
        is_from(gpt, "layer1.norm1.gain", norm1 + D, false);
        is_from(gpt, "layer1.attn.q", wq + D * D, false);
        is_from(gpt, "layer1.attn.k", wk + KV * D, false);
        is_from(gpt, "layer0.attn.v", wv, false);
        is_from(gpt, "layer1.attn.o", wo + D * D, false);
        is_from(gpt, "layer1.norm2.gain", norm2 + D, false);
        is_from(gpt, "layer1.mlp.gate", w1 + F * D, false);
        is_from(gpt, "layer1.mlp.down", w2 + F * D, false);
        is_from(gpt, "layer1.mlp.up", w3 + F * D, false);
        is_from(gpt, "norm.gain", norm, false);
        if (untied) is_from(gpt, "lm_head", head, false);
        embla_gpt_free(gpt);
    }
}

/* ---- words ---- */

static embla_gpt *model_of(int64_t vocab)
{
    embla_gpt_shape s = microgpt_like();
    s.vocab = vocab;
    return model(&s);
}

/* tokenizer.json as a tree; embla_json_free it. */
static embla_json_value *tokenizer(void)
{
    size_t bytes = 0;
    embla_json_value *tree = NULL;
    unsigned char *text = scratch_read(scratch_path(&place, "tokenizer.json"), &bytes);
    assert_non_null(text);
    assert_ok(embla_json_read(text, bytes, "tokenizer.json", 16, "T1", &tree));
    free(text);
    return tree;
}

static const char *kind_of(const embla_json_value *tree, const char *part)
{
    const char *type = embla_json_string(embla_json_get(embla_json_get(tree, part), "type"), NULL);
    return type ? type : "null";
}

static int64_t token_in(const embla_json_value *tree, const char *word)
{
    int64_t token = -1;
    const embla_json_value *vocab = embla_json_get(embla_json_get(tree, "model"), "vocab");
    (void)embla_json_integer(embla_json_get(vocab, word), &token);
    return token;
}

static int64_t bos_of_config(void)
{
    embla_checkpoint *cp = opened("");
    int64_t token = -1;
    (void)!embla_checkpoint_integer(cp, "bos_token_id", &token);
    embla_checkpoint_free(cp);
    return token;
}

static void characters_become_a_tokenizer_of_characters(void **state)
{
    static const char *const words[] = {"\n", " ", "\"", "\\", "a", "\xc3\xa9", "\x01", NULL};
    embla_gpt *gpt = model_of(8);
    embla_vocab *vocab = NULL;
    size_t length;
    (void)state;
    assert_ok(embla_gpt_save(gpt, place.folder, words));
    embla_json_value *tree = tokenizer();
    assert_string_equal(kind_of(tree, "model"), "WordLevel");
    assert_string_equal(kind_of(tree, "pre_tokenizer"), "Split");
    assert_string_equal(kind_of(tree, "decoder"), "Fuse");
    const embla_json_value *cut = embla_json_get(tree, "pre_tokenizer");
    assert_string_equal(
        embla_json_string(embla_json_get(embla_json_get(cut, "pattern"), "Regex"), NULL),
        "[\\s\\S]");
    for (int64_t i = 0; i < 7; i++) assert_int_equal(token_in(tree, words[i]), i);
    assert_int_equal(token_in(tree, "<|7|>"), 7);
    const embla_json_value *added = embla_json_get(tree, "added_tokens");
    assert_int_equal(embla_json_count(added), 1);
    assert_string_equal(
        embla_json_string(embla_json_get(embla_json_item(added, 0), "content"), NULL), "<|7|>");
    embla_json_free(tree);
    assert_int_equal(bos_of_config(), 7);
    embla_checkpoint *cp = opened("");
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_int_equal(embla_vocab_count(vocab), 8);
    for (int32_t i = 0; i < 7; i++)
        assert_string_equal(embla_vocab_word(vocab, i, &length), words[i]);
    embla_vocab_free(vocab);
    embla_checkpoint_free(cp);
    embla_gpt_free(gpt);
}

static void bytes_become_a_tokenizer_of_bytes(void **state)
{
    static const struct {
        int64_t byte;
        const char *character;
    } known[] = {{0, "\xc4\x80"},   {10, "\xc4\x8a"},  {32, "\xc4\xa0"},  {'!', "!"},
                 {'~', "~"},        {127, "\xc4\xa1"}, {161, "\xc2\xa1"}, {173, "\xc5\x83"},
                 {174, "\xc2\xae"}, {255, "\xc3\xbf"}};
    char text[256][2];
    const char *words[258];
    embla_gpt *gpt = model_of(258);
    (void)state;
    for (int i = 0; i < 256; i++) {
        text[i][0] = (char)i;
        text[i][1] = '\0';
        words[i] = text[i];
    }
    words[256] = "<bos>";
    words[257] = NULL;
    assert_ok(embla_gpt_save(gpt, place.folder, words));
    embla_json_value *tree = tokenizer();
    assert_string_equal(kind_of(tree, "model"), "BPE");
    assert_string_equal(kind_of(tree, "pre_tokenizer"), "ByteLevel");
    assert_string_equal(kind_of(tree, "decoder"), "ByteLevel");
    const embla_json_value *merges = embla_json_get(embla_json_get(tree, "model"), "merges");
    assert_int_equal(embla_json_what(merges), EMBLA_JSON_ARRAY);
    for (size_t i = 0; i < COUNT_OF(known); i++)
        assert_int_equal(token_in(tree, known[i].character), known[i].byte);
    assert_int_equal(token_in(tree, "<bos>"), 256);
    assert_int_equal(embla_json_count(embla_json_get(tree, "added_tokens")), 2);
    assert_int_equal(bos_of_config(), -1); /* two could be it */
    embla_json_free(tree);
    words[200] = NULL; /* not all bytes: and the others are no UTF-8 */
    assert_status(embla_gpt_save(gpt, place.folder, words), EMBLA_ERR_ARGUMENT);
    assert_error_has("the text of token 128 (1 bytes) is not valid UTF-8");
    embla_gpt_free(gpt);
}

static void words_become_a_tokenizer_of_words(void **state)
{
    static const char *const words[] = {"the", "cat", "<", "a<b>"},
                             *const twice[] = {"a", "b", "c", "b"},
                             *const clash[] = {"a", "", "<|1|>", "b"};
    embla_gpt *gpt = model_of(4);
    (void)state;
    assert_ok(embla_gpt_save(gpt, place.folder, words));
    embla_json_value *tree = tokenizer();
    assert_string_equal(kind_of(tree, "model"), "WordLevel");
    assert_string_equal(kind_of(tree, "pre_tokenizer"), "WhitespaceSplit");
    assert_string_equal(kind_of(tree, "decoder"), "null");
    assert_string_equal(
        embla_json_string(embla_json_get(embla_json_get(tree, "model"), "unk_token"), NULL),
        "<unk>");
    assert_int_equal(embla_json_count(embla_json_get(tree, "added_tokens")), 0);
    embla_json_free(tree);
    assert_int_equal(bos_of_config(), -1);
    assert_status(embla_gpt_save(gpt, place.folder, twice), EMBLA_ERR_ARGUMENT);
    assert_error_has("tokens 1 and 3 have the same text, 'b'");
    assert_status(embla_gpt_save(gpt, place.folder, clash), EMBLA_ERR_ARGUMENT);
    assert_error_has("tokens 1 and 2 have the same text, '<|1|>'");
    embla_gpt_free(gpt);
}

/* Words that our rule leaves whole are cut by it; <unk> neither begins nor ends a text. */
static void words_of_a_corpus_are_cut_by_its_rule(void **state)
{
    static const char *const words[] = {"the", "don't", ",", "\n", "<unk>"}, *const lines[] = {
                                                                                 "a", "b", "c",
                                                                                 "<unk>", "<bos>"};
    embla_gpt *gpt = model_of(5);
    (void)state;
    assert_ok(embla_gpt_save(gpt, place.folder, words));
    embla_json_value *tree = tokenizer();
    assert_string_equal(kind_of(tree, "model"), "WordLevel");
    assert_string_equal(kind_of(tree, "pre_tokenizer"), "Split");
    assert_string_equal(kind_of(tree, "decoder"), "null");
    assert_string_equal(
        embla_json_string(embla_json_get(embla_json_get(tree, "pre_tokenizer"), "behavior"), NULL),
        "Removed");
    assert_int_equal(embla_json_count(embla_json_get(tree, "added_tokens")), 1);
    embla_json_free(tree);
    assert_int_equal(bos_of_config(), -1);
    assert_ok(embla_gpt_save(gpt, place.folder, lines)); /* words, though each is a character */
    tree = tokenizer();
    assert_string_equal(kind_of(tree, "decoder"), "null");
    embla_json_free(tree);
    assert_int_equal(bos_of_config(), 4);
    embla_gpt_free(gpt);
}

/* ---- the folder ---- */

static void the_folder_is_made_where_it_is_missing(void **state)
{
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s), *back = NULL;
    (void)state;
    char folder[SCRATCH_PATH];
    (void)snprintf(folder, sizeof folder, "%s", scratch_path(&place, "new"));
    assert_ok(embla_gpt_save(gpt, folder, NULL));
    assert_ok(open_model("new", &back));
    assert_same_model(gpt, back);
    embla_gpt_free(back);
    assert_ok(embla_gpt_save(gpt, folder, NULL)); /* once more, over itself */
    assert_status(embla_gpt_save(gpt, scratch_path(&place, "no/such"), NULL), EMBLA_ERR_NOT_FOUND);
    assert_error_has("cannot create the folder");
    assert_status(embla_gpt_save(gpt, scratch_path(&place, "new/config.json"), NULL),
                  EMBLA_ERR_NOT_FOUND);
    assert_status(embla_gpt_save(gpt, "", NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gpt_save(gpt, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("embla_gpt_save: folder is NULL");
    assert_status(embla_gpt_save(NULL, folder, NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(unlink(scratch_path(&place, "new/config.json")), 0);
    assert_int_equal(unlink(scratch_path(&place, "new/model.safetensors")), 0);
    embla_gpt_free(gpt);
}

/* ---- what fails on the way ---- */

static const char *const few_words[] = {"a", "b", "c", "d", "e", "f", "g", "h", "i", "j", NULL};

static void each_allocation_may_fail(void **state)
{
    embla_gpt_shape shapes[] = {gpt2_like(), llama_like(), microgpt_like()};
    (void)state;
    for (size_t n = 0; n < 3; n++) {
        embla_gpt *gpt = model(&shapes[n]), *out = NULL;
        size_t live = embla_mem_live(), failures = 0;
        for (size_t at = 1;; at++) {
            embla_mem_fail(at, n % 2 == 1);
            embla_status status = embla_gpt_save(gpt, place.folder, few_words);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), 0);
            assert_int_equal(scratch_count(&place, ".tmp."), 0);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 5);
        embla_checkpoint *cp = opened("");
        live = embla_mem_live();
        for (size_t at = 1;; at++) {
            embla_mem_fail(at, n % 2 == 1);
            embla_status status = embla_gpt_open(cp, &out);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            assert_null(out);
            assert_int_equal(embla_mem_live(), live);
        }
        assert_same_model(gpt, out);
        embla_gpt_free(out);
        embla_checkpoint_free(cp);
        embla_gpt_free(gpt);
    }
}

/* A file is there whole, the old one or the new one, whichever call fails. */
static void each_call_of_the_system_may_fail(void **state)
{
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s), *out = NULL;
    size_t failures = 0, live = embla_mem_live();
    (void)state;
    for (size_t n = 1;; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_NO_SPACE);
        embla_status status = embla_gpt_save(gpt, place.folder, few_words);
        embla_io_fail(0, false, 0);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), 0);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_IO);
        assert_int_equal(scratch_count(&place, ".tmp."), 0);
        failures++;
    }
    assert_true(failures > 30);
    embla_checkpoint *cp = opened("");
    failures = 0;
    for (size_t n = 1;; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_gpt_open(cp, &out);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_IO);
        assert_null(out);
        failures++;
    }
    assert_true(failures > 20);
    assert_same_model(gpt, out);
    embla_gpt_free(out);
    embla_checkpoint_free(cp);
    embla_gpt_free(gpt);
}

/* Until the weights have their name, the folder is what it was, or no model at all. */
static void a_folder_that_was_not_finished_is_seen(void **state)
{
    embla_gpt_shape s = gpt2_like();
    embla_gpt *gpt = model(&s);
    embla_checkpoint *cp = NULL;
    bool seen = false;
    (void)state;
    for (size_t n = 1; n < 1000; n++) {
        embla_io_fail(n, true, EMBLA_SYSTEM_OTHER); /* as if the process ended there */
        embla_status status = embla_gpt_save(gpt, place.folder, NULL);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) break;
        bool config = scratch_count(&place, "config.json") > 0;
        if (access(scratch_path(&place, "model.safetensors"), F_OK) == 0) continue;
        if (config) {
            assert_int_not_equal(embla_checkpoint_open(place.folder, NULL, &cp), EMBLA_OK);
            seen = true;
        }
        (void)scratch_each(&place, scratch_remove, NULL);
    }
    assert_true(seen);
    embla_gpt_free(gpt);
}

/* The real one: opened, saved as a Llama, opened again, the same model. */
static void stories260k_goes_round(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH];
    embla_checkpoint *cp = NULL;
    embla_gpt *gpt = NULL;
    static float before[8 * 64], after[8 * 64];
    (void)state;
    if (!data) skip_because("EMBLA_DATA is not set");
    (void)snprintf(path, sizeof path, "%s/stories260k/stories260K.bin", data);
    assert_ok(embla_checkpoint_open(path, NULL, &cp));
    assert_ok(embla_gpt_open(cp, &gpt));
    embla_checkpoint_free(cp);
    assert_int_equal(embla_gpt_parameters(gpt), 260032);
    assert_ok(embla_gpt_save(gpt, place.folder, NULL));
    embla_gpt *back = reopened();
    hidden_of(gpt, before);
    hidden_of(back, after);
    for (size_t i = 0; i < COUNT_OF(before); i++) assert_near(after[i], before[i], 1e-4);
    embla_gpt_free(back);
    embla_gpt_free(gpt);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(gpt2_goes_round_bit_for_bit),
        TEST(llama_goes_round_bit_for_bit),
        TEST(other_shapes_go_round_bit_for_bit),
        TEST(large_tensors_go_round_bit_for_bit),
        TEST(each_kind_of_positions_opens_again_with_the_same_logits),
        TEST(untied_tables_that_are_equal_stay_two),
        TEST(a_gpt2_folder_has_the_names_and_shapes_of_gpt2),
        TEST(a_llama_folder_has_the_names_and_shapes_of_llama),
        TEST(interleaved_heads_are_saved_in_the_order_of_llama),
        TEST(gpt2_without_a_prefix_and_with_masks_is_opened),
        TEST(a_head_that_is_stored_twice_is_tied),
        TEST(keys_that_are_missing_have_their_defaults),
        TEST(every_float_type_is_decoded),
        TEST(tensors_that_are_not_right_are_refused),
        TEST(keys_that_are_not_right_are_refused),
        TEST(keys_that_change_nothing_are_passed_over),
        TEST(flags_of_biases_are_held_against_tensors),
        TEST(what_is_no_model_is_refused),
        TEST(llmc_is_opened),
        TEST(llama2c_is_opened),
        TEST(characters_become_a_tokenizer_of_characters),
        TEST(bytes_become_a_tokenizer_of_bytes),
        TEST(words_become_a_tokenizer_of_words),
        TEST(words_of_a_corpus_are_cut_by_its_rule),
        TEST(the_folder_is_made_where_it_is_missing),
        TEST(each_allocation_may_fail),
        TEST(each_call_of_the_system_may_fail),
        TEST(a_folder_that_was_not_finished_is_seen),
        TEST(stories260k_goes_round),
    };
    return cmocka_run_group_tests_name("gpt_files", tests, NULL, NULL);
}
