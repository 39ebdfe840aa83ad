/* SPDX-License-Identifier: Apache-2.0 */
/* Names and layout of a decoder's tensors in the files of other programs: one list for each family.
 * Our own names come from embla_gpt_tensor_at. */
#ifndef EMBLA_MODEL_GPT_FAMILIES_H
#define EMBLA_MODEL_GPT_FAMILIES_H

#include "model/gpt.h"

/* The sizes in a list; joint is dim + 2 kv. */
enum {
    EMBLA_BY_ONE,
    EMBLA_BY_VOCAB,
    EMBLA_BY_POSITIONS,
    EMBLA_BY_DIM,
    EMBLA_BY_JOINT,
    EMBLA_BY_KV,
    EMBLA_BY_HIDDEN
};
/* When a tensor exists. */
enum { EMBLA_ALWAYS, EMBLA_IF_UNTIED, EMBLA_IF_BIASES };

typedef struct {
    uint8_t slot; /* of the model, or of a layer */
    uint8_t rows; /* EMBLA_BY_ONE means a vector of dim numbers */
    uint8_t dim;
    bool transposed; /* stored as dim x rows */
    uint8_t when;
    const char *name;
} embla_family_line;

typedef struct {
    const char *title; /* for messages */
    const char *layer; /* precedes a layer's number; NULL means one tensor for all layers */
    const embla_family_line *model, *layers;
    size_t model_count, layer_count;
    const char *const *others; /* endings of names that are not parameters */
} embla_family;

extern const embla_family embla_family_gpt2, embla_family_llama, embla_family_llama2c,
    embla_family_llmc, embla_family_embla;

#endif
