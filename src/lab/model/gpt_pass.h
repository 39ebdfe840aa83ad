/* SPDX-License-Identifier: Apache-2.0 */
/* One forward or backward pass of a decoder. gpt.c runs it; gpt_embed.c has its first part.
 *
 * A model without its token rows (model/gpt_trunk.h) makes a pass in two halves, because its head
 * and its loss are computed elsewhere: forward up to the hidden vectors, and backward from their
 * gradients.
 */
#ifndef EMBLA_MODEL_GPT_PASS_H
#define EMBLA_MODEL_GPT_PASS_H

#include "model/gpt.h"

typedef struct {
    const embla_gpt *gpt;
    const embla_gpt_shape *shape;
    embla_layer_way way;
    size_t batch, length, n;
    const int32_t *tokens, *targets;
    double weight;
    embla_dropout dropout;
    embla_negatives negatives;
    float *gradients;  /* where those of the weights are added */
    const float *rows; /* n x C: the token rows, if the model does not have them; else NULL */
    float *drows;      /* n x C: gets their gradients; may be rows */
} embla_gpt_pass;

/* The gradient of a slot's tensor, or NULL if there is no such tensor. */
static inline float *embla_pass_gradient(const embla_gpt_pass *p, size_t slot)
{
    int32_t part = p->gpt->part_of[slot];
    return part < 0 ? NULL : p->gradients + p->gpt->parts[part].at;
}

/* An array of the pass, at a place of its activations. */
static inline float *embla_pass_array(const embla_gpt_pass *p, size_t place)
{
    return (float *)(void *)(p->gpt->activations + place);
}

/* Bytes of the residual stream. */
static inline size_t embla_pass_bytes(const embla_gpt_pass *p)
{
    return p->n * p->shape->dim * sizeof(float);
}

EMBLA_CHECKED embla_status embla_gpt_embed_forward(const embla_gpt_pass *pass);
EMBLA_CHECKED embla_status embla_gpt_embed_backward(const embla_gpt_pass *pass);

/* A batch, and what its pass uses instead of what the model has. */
typedef struct {
    embla_gpt_batch batch;
    const float *rows; /* n x C: the token rows; NULL means those of the model */
    float *gradients;  /* laid out as the weights; NULL means those of the model */
} embla_gpt_given;

/* embla_gpt_backward of what is given. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gpt_pass_learn(embla_gpt *gpt,
                                                              const embla_gpt_given *given,
                                                              const embla_gpt_options *options,
                                                              embla_loss_report *report);

/* The first half of a pass: writes the hidden vectors (n x C). learns: with dropout, and the second
 * half may follow. The model has no token rows. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gpt_pass_forward(embla_gpt *gpt,
                                                                const embla_gpt_given *given,
                                                                const embla_gpt_options *options,
                                                                bool learns, float *hidden);
/* The second half, from the gradients of the hidden vectors (n x C). Gradients of weights are
 * added, those of the token rows are written to drows (n x C), which may be given->rows. again: the
 * first half was not the model's last pass, so its activations are computed again. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gpt_pass_backward(embla_gpt *gpt,
                                                                 const embla_gpt_given *given,
                                                                 const embla_gpt_options *options,
                                                                 bool again, const float *dhidden,
                                                                 float *drows);

#endif
