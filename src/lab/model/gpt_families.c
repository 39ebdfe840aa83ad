/* SPDX-License-Identifier: Apache-2.0 */
/* The lists of model/gpt_families.h. GPT-2 stores linear layers as input x output (Conv1D), we
 * store output x input. llama2.c and llm.c have one tensor for all layers. */
#include "model/gpt_families.h"

/* Short names, so that a tensor fits on a line. */
enum {
    ONE = EMBLA_BY_ONE,
    V = EMBLA_BY_VOCAB,
    T = EMBLA_BY_POSITIONS,
    C = EMBLA_BY_DIM,
    J = EMBLA_BY_JOINT,
    K = EMBLA_BY_KV,
    H = EMBLA_BY_HIDDEN
};
enum { ALWAYS = EMBLA_ALWAYS, IF_UNTIED = EMBLA_IF_UNTIED, IF_BIASES = EMBLA_IF_BIASES };

static const embla_family_line gpt2_model[] = {
    {EMBLA_GPT_WTE, V, C, false, ALWAYS, "wte.weight"},
    {EMBLA_GPT_WPE, T, C, false, ALWAYS, "wpe.weight"},
    {EMBLA_GPT_LM_HEAD, V, C, false, IF_UNTIED, "lm_head.weight"},
    {EMBLA_GPT_NORM_GAIN, ONE, C, false, ALWAYS, "ln_f.weight"},
    {EMBLA_GPT_NORM_BIAS, ONE, C, false, ALWAYS, "ln_f.bias"},
};
static const embla_family_line gpt2_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, ONE, C, false, ALWAYS, "ln_1.weight"},
    {EMBLA_GPT_NORM1_BIAS, ONE, C, false, ALWAYS, "ln_1.bias"},
    {EMBLA_GPT_Q, J, C, true, ALWAYS, "attn.c_attn.weight"},
    {EMBLA_GPT_Q_BIAS, ONE, J, false, ALWAYS, "attn.c_attn.bias"},
    {EMBLA_GPT_O, C, C, true, ALWAYS, "attn.c_proj.weight"},
    {EMBLA_GPT_O_BIAS, ONE, C, false, ALWAYS, "attn.c_proj.bias"},
    {EMBLA_GPT_NORM2_GAIN, ONE, C, false, ALWAYS, "ln_2.weight"},
    {EMBLA_GPT_NORM2_BIAS, ONE, C, false, ALWAYS, "ln_2.bias"},
    {EMBLA_GPT_UP, H, C, true, ALWAYS, "mlp.c_fc.weight"},
    {EMBLA_GPT_UP_BIAS, ONE, H, false, ALWAYS, "mlp.c_fc.bias"},
    {EMBLA_GPT_DOWN, C, H, true, ALWAYS, "mlp.c_proj.weight"},
    {EMBLA_GPT_DOWN_BIAS, ONE, C, false, ALWAYS, "mlp.c_proj.bias"},
};
static const char *const gpt2_others[] = {".attn.bias", ".attn.masked_bias", NULL}; /* masks */
const embla_family embla_family_gpt2 = {"GPT-2", "h.", gpt2_model, gpt2_layers, 5, 12, gpt2_others};

static const embla_family_line llama_model[] = {
    {EMBLA_GPT_WTE, V, C, false, ALWAYS, "embed_tokens.weight"},
    {EMBLA_GPT_LM_HEAD, V, C, false, IF_UNTIED, "lm_head.weight"},
    {EMBLA_GPT_NORM_GAIN, ONE, C, false, ALWAYS, "norm.weight"},
};
static const embla_family_line llama_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, ONE, C, false, ALWAYS, "input_layernorm.weight"},
    {EMBLA_GPT_Q, C, C, false, ALWAYS, "self_attn.q_proj.weight"},
    {EMBLA_GPT_K, K, C, false, ALWAYS, "self_attn.k_proj.weight"},
    {EMBLA_GPT_V, K, C, false, ALWAYS, "self_attn.v_proj.weight"},
    {EMBLA_GPT_O, C, C, false, ALWAYS, "self_attn.o_proj.weight"},
    {EMBLA_GPT_Q_BIAS, ONE, C, false, IF_BIASES, "self_attn.q_proj.bias"},
    {EMBLA_GPT_K_BIAS, ONE, K, false, IF_BIASES, "self_attn.k_proj.bias"},
    {EMBLA_GPT_V_BIAS, ONE, K, false, IF_BIASES, "self_attn.v_proj.bias"},
    {EMBLA_GPT_O_BIAS, ONE, C, false, IF_BIASES, "self_attn.o_proj.bias"},
    {EMBLA_GPT_NORM2_GAIN, ONE, C, false, ALWAYS, "post_attention_layernorm.weight"},
    {EMBLA_GPT_UP, H, C, false, ALWAYS, "mlp.up_proj.weight"},
    {EMBLA_GPT_GATE, H, C, false, ALWAYS, "mlp.gate_proj.weight"},
    {EMBLA_GPT_DOWN, C, H, false, ALWAYS, "mlp.down_proj.weight"},
    {EMBLA_GPT_UP_BIAS, ONE, H, false, IF_BIASES, "mlp.up_proj.bias"},
    {EMBLA_GPT_GATE_BIAS, ONE, H, false, IF_BIASES, "mlp.gate_proj.bias"},
    {EMBLA_GPT_DOWN_BIAS, ONE, C, false, IF_BIASES, "mlp.down_proj.bias"},
};
static const char *const llama_others[] = {".self_attn.rotary_emb.inv_freq", NULL};
const embla_family embla_family_llama = {"Llama", "layers.", llama_model, llama_layers,
                                         3,       16,        llama_others};

static const embla_family_line llama2c_model[] = {
    {EMBLA_GPT_WTE, V, C, false, ALWAYS, "tok_embeddings.weight"},
    {EMBLA_GPT_LM_HEAD, V, C, false, IF_UNTIED, "output.weight"},
    {EMBLA_GPT_NORM_GAIN, ONE, C, false, ALWAYS, "norm.weight"},
};
static const embla_family_line llama2c_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, ONE, C, false, ALWAYS, "layers.attention_norm.weight"},
    {EMBLA_GPT_Q, C, C, false, ALWAYS, "layers.attention.wq.weight"},
    {EMBLA_GPT_K, K, C, false, ALWAYS, "layers.attention.wk.weight"},
    {EMBLA_GPT_V, K, C, false, ALWAYS, "layers.attention.wv.weight"},
    {EMBLA_GPT_O, C, C, false, ALWAYS, "layers.attention.wo.weight"},
    {EMBLA_GPT_NORM2_GAIN, ONE, C, false, ALWAYS, "layers.ffn_norm.weight"},
    {EMBLA_GPT_GATE, H, C, false, ALWAYS, "layers.feed_forward.w1.weight"},
    {EMBLA_GPT_DOWN, C, H, false, ALWAYS, "layers.feed_forward.w2.weight"},
    {EMBLA_GPT_UP, H, C, false, ALWAYS, "layers.feed_forward.w3.weight"},
};
static const char *const llama2c_others[] = {"rope.freqs_cos", "rope.freqs_sin", NULL};
const embla_family embla_family_llama2c = {"llama2.c", NULL, llama2c_model, llama2c_layers,
                                           3,          9,    llama2c_others};

static const embla_family_line llmc_model[] = {
    {EMBLA_GPT_WTE, V, C, false, ALWAYS, "wte"}, /* rows beyond the vocabulary are padding */
    {EMBLA_GPT_WPE, T, C, false, ALWAYS, "wpe"},
    {EMBLA_GPT_NORM_GAIN, ONE, C, false, ALWAYS, "lnfw"},
    {EMBLA_GPT_NORM_BIAS, ONE, C, false, ALWAYS, "lnfb"},
};
static const embla_family_line llmc_layers[] = {
    {EMBLA_GPT_NORM1_GAIN, ONE, C, false, ALWAYS, "ln1w"},
    {EMBLA_GPT_NORM1_BIAS, ONE, C, false, ALWAYS, "ln1b"},
    {EMBLA_GPT_Q, J, C, false, ALWAYS, "qkvw"},
    {EMBLA_GPT_Q_BIAS, ONE, J, false, ALWAYS, "qkvb"},
    {EMBLA_GPT_O, C, C, false, ALWAYS, "attprojw"},
    {EMBLA_GPT_O_BIAS, ONE, C, false, ALWAYS, "attprojb"},
    {EMBLA_GPT_NORM2_GAIN, ONE, C, false, ALWAYS, "ln2w"},
    {EMBLA_GPT_NORM2_BIAS, ONE, C, false, ALWAYS, "ln2b"},
    {EMBLA_GPT_UP, H, C, false, ALWAYS, "fcw"},
    {EMBLA_GPT_UP_BIAS, ONE, H, false, ALWAYS, "fcb"},
    {EMBLA_GPT_DOWN, C, H, false, ALWAYS, "fcprojw"},
    {EMBLA_GPT_DOWN_BIAS, ONE, C, false, ALWAYS, "fcprojb"},
};
static const char *const no_others[] = {NULL};
const embla_family embla_family_llmc = {"llm.c", NULL, llmc_model, llmc_layers, 4, 12, no_others};

/* Our own folders use the names of embla_gpt_tensor_at. */
const embla_family embla_family_embla = {"embla", NULL, NULL, NULL, 0, 0, no_others};
