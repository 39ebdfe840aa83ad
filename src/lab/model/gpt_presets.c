/* SPDX-License-Identifier: Apache-2.0 */
/* Presets: well-known shapes, each with default options for training.
 *
 * microgpt is Karpathy's program of that name. Only its initial weights differ: it draws all of
 * them with standard deviation 0.08; embla_gpt_new uses 0.08 / sqrt(2 * layers) at the end of a
 * branch.
 *
 * gpt2 has the shape of GPT-2 124M. Rates, betas, decay, clip and steps are those of nanoGPT's
 * train.py. It uses 480 sequences of 1,024 tokens per step, we use 4, so that a step fits in any
 * machine; change --batch first. nanoGPT has no biases; GPT-2 has them.
 *
 * gpt2-mini and llama-mini are the two families at a size for ten minutes on two cores, for texts
 * of about a megabyte tokenized by character. Betas, decay, warm-up and the last rate are those of
 * nanoGPT's config/train_shakespeare_char.py. Its rate of 1e-3 and initial weights of 0.02 are for
 * larger models. With them, 400 steps of 8 x 64 characters of Shakespeare (dim 128) end at a
 * validation loss of 2.40; with 3e-3 and 0.06 at 2.14.
 *
 * For ANDREA only the sizes of the tensors are known. Norms and activation are taken from microgpt,
 * whose parameter count has the same formula; the rest from gpt2 and gpt2-mini.
 */
#include <string.h>

#include "model/layers.h"

/* nanoGPT's values for web text, shared by all presets except microgpt and the small ones. */
#define USUAL                                                                                      \
    .beta1 = 0.9, .beta2 = 0.95, .epsilon = 1e-8, .decay = 0.1, .clip = 1,                         \
    .schedule = EMBLA_SCHEDULE_COSINE

/* For a small model and few tokens per step: a longer memory of squared gradients. */
#define MINI                                                                                       \
    .rate = 2e-3, .final_rate = 1e-4, .warm_up = 100, .beta1 = 0.9, .beta2 = 0.99,                 \
    .epsilon = 1e-8, .decay = 0.1, .clip = 1, .schedule = EMBLA_SCHEDULE_COSINE, .spread = 0.05

/* Only tables and linear layers: microgpt and similar models. */
#define BARE                                                                                       \
    .positions = 1024, .norm = EMBLA_NORM_RMS, .activation = EMBLA_ACTIVATION_RELU,                \
    .no_gain = true, .untied = true, .norm_first = true, .no_norm_last = true

static const struct {
    const char *name;
    embla_gpt_preset preset;
} presets[] = {
    {"microgpt",
     {.shape = {.vocab = 27,
                .dim = 16,
                .layers = 1,
                .heads = 4,
                .hidden = 64,
                .positions = 16,
                .norm = EMBLA_NORM_RMS,
                .activation = EMBLA_ACTIVATION_RELU,
                .norm_epsilon = 1e-5,
                .no_gain = true,
                .untied = true,
                .norm_first = true,
                .no_norm_last = true},
      .batch = 1,
      .length = 16,
      .steps = 1000,
      .rate = 0.01,
      .final_rate = 0.00001, /* at step 999, on the line that reaches 0 at step 1000 */
      .beta1 = 0.85,
      .beta2 = 0.99,
      .epsilon = 1e-8,
      .schedule = EMBLA_SCHEDULE_LINEAR,
      .spread = 0.08}},
    {"gpt2",
     {.shape = {.vocab = 50257,
                .dim = 768,
                .layers = 12,
                .heads = 12,
                .positions = 1024,
                .biases = true},
      .batch = 4,
      .length = 1024,
      .steps = 600000,
      .rate = 6e-4,
      .final_rate = 6e-5,
      .warm_up = 2000,
      .spread = 0.02,
      USUAL}},
    {"gpt2-mini",
     {.shape = {.dim = 192, .layers = 4, .heads = 6, .positions = 128, .biases = true},
      .batch = 12,
      .length = 128,
      .steps = 2500,
      MINI}},
    {"andrea-12m",
     {.shape = {.vocab = 2305, .dim = 384, .layers = 6, .heads = 12, BARE},
      .batch = 4,
      .length = 1024,
      .steps = 20000,
      .rate = 1e-3,
      .final_rate = 1e-4,
      .warm_up = 500,
      .spread = 0.02,
      USUAL}},
    {"andrea-120m",
     {.shape = {.vocab = 8449, .dim = 768, .layers = 12, .heads = 12, BARE},
      .batch = 4,
      .length = 1024,
      .steps = 100000,
      .rate = 6e-4,
      .final_rate = 6e-5,
      .warm_up = 2000,
      .spread = 0.02,
      USUAL}},
    {"llama-mini",
     {.shape = {.dim = 192,
                .layers = 4,
                .heads = 6,
                .kv_heads = 2,
                .hidden = 512, /* 8/3 of dim, as in Llama */
                .positions = 128,
                .norm = EMBLA_NORM_RMS,
                .activation = EMBLA_ACTIVATION_SWIGLU,
                .position_kind = EMBLA_POSITIONS_ROTARY,
                .rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT, /* the order of queries and keys in
                                                              Hugging Face's files */
                .untied = true},
      .batch = 12,
      .length = 128,
      .steps = 2500,
      MINI}},
};

enum { PRESETS = sizeof presets / sizeof presets[0] };

const char *embla_gpt_preset_name(size_t n)
{
    return n < PRESETS ? presets[n].name : NULL;
}

embla_status embla_gpt_preset_find(const char *name, embla_gpt_preset *out)
{
    EMBLA_NEED(name);
    EMBLA_NEED(out);
    for (size_t n = 0; n < PRESETS; n++) {
        if (strcmp(presets[n].name, name) != 0) continue;
        *out = presets[n].preset;
        return EMBLA_OK;
    }
    return embla_fail(EMBLA_ERR_NOT_FOUND,
                      "unknown preset '%.64s'; presets are microgpt, gpt2, gpt2-mini, andrea-12m, "
                      "andrea-120m and llama-mini",
                      name);
}

static embla_schedule schedule_of(const embla_gpt_preset *preset, int64_t steps, double rate,
                                  embla_schedule_kind kind)
{
    embla_schedule s = {.rate = rate < 0 ? preset->rate : rate,
                        .steps = steps > 0 ? steps : preset->steps,
                        .warm_up = preset->warm_up,
                        .kind = kind};
    if (s.warm_up > s.steps / 10) s.warm_up = s.steps / 10;
    if (kind == EMBLA_SCHEDULE_WSD) s.decay = s.steps / 5;
    s.final = s.rate;
    if (kind != EMBLA_SCHEDULE_CONSTANT && preset->rate > 0) /* exact if the rate is the preset's */
        s.final = s.rate == preset->rate ? preset->final_rate
                                         : s.rate * (preset->final_rate / preset->rate);
    return s;
}

embla_status embla_gpt_preset_options(const embla_gpt_preset *preset, int64_t steps, double rate,
                                      embla_schedule_kind kind, embla_train_options *out)
{
    EMBLA_NEED(preset);
    EMBLA_NEED(out);
    *out = (embla_train_options){.batch = preset->batch,
                                 .length = preset->length,
                                 .schedule = schedule_of(preset, steps, rate, kind),
                                 .beta1 = preset->beta1,
                                 .beta2 = preset->beta2,
                                 .epsilon = preset->epsilon,
                                 .decay = preset->decay,
                                 .clip = preset->clip};
    return EMBLA_OK;
}
