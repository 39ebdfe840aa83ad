/* SPDX-License-Identifier: Apache-2.0 */
/* Kinds of models, as initializers of an embla_gpt_shape; each test adds sizes of its own. */
#ifndef EMBLA_TESTS_GPT_SHAPES_H
#define EMBLA_TESTS_GPT_SHAPES_H

#include "embla_train.h"

/* Karpathy's microGPT: no gains, a norm before the first layer and none after the last. */
#define MICROGPT_KIND                                                                              \
    .norm = EMBLA_NORM_RMS, .activation = EMBLA_ACTIVATION_RELU, .no_gain = true, .untied = true,  \
    .norm_first = true, .no_norm_last = true

/* Llama: RMS norm, SwiGLU, rotary positions. */
#define LLAMA_KIND                                                                                 \
    .norm = EMBLA_NORM_RMS, .activation = EMBLA_ACTIVATION_SWIGLU,                                 \
    .position_kind = EMBLA_POSITIONS_ROTARY

#endif
