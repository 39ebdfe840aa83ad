/* SPDX-License-Identifier: Apache-2.0 */
/* What tensors of a decoder are called in others' files, and how they lie there: a list for each
 * family. Ours are named by embla_gpt_tensor_at.
 */
#ifndef EMBLA_MODEL_GPT_FAMILIES_H
#define EMBLA_MODEL_GPT_FAMILIES_H

#include "model/gpt.h"

/* What a size in a list stands for; joint: dim + 2 kv. */
enum {
    EMBLA_BY_ONE,
    EMBLA_BY_VOCAB,
    EMBLA_BY_POSITIONS,
    EMBLA_BY_DIM,
    EMBLA_BY_JOINT,
    EMBLA_BY_KV,
    EMBLA_BY_HIDDEN
};
/* When a tensor is there. */
enum { EMBLA_ALWAYS, EMBLA_IF_UNTIED, EMBLA_IF_BIASES };

typedef struct {
    uint8_t slot; /* of the model, or of a layer */
    uint8_t rows; /* EMBLA_BY_ONE: a vector of dim numbers */
    uint8_t dim;
    bool turned; /* stored dim x rows */
    uint8_t when;
    const char *name;
} embla_family_line;

typedef struct {
    const char *title; /* for messages */
    const char *layer; /* stands before a layer's number; NULL: all layers in one tensor */
    const embla_family_line *model, *layers;
    size_t model_count, layer_count;
    const char *const *others; /* ends of names that are no parameters */
} embla_family;

extern const embla_family embla_family_gpt2, embla_family_llama, embla_family_llama2c,
    embla_family_llmc, embla_family_embla;

#endif
