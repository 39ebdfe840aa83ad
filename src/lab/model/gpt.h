/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of a decoder: its tensors, and the places of weights and activations.
 *
 * Weights are one block, gradients a second one with the same layout, activations a third. A tensor
 * is found by its slot. The slot depends only on the tensor's purpose (and its layer), so its
 * random initial values do not depend on other tensors. The rows of q, k and v follow each other
 * without a gap, and so do their biases: one product computes all three.
 *
 * The n-gram table is not one of the tensors: it has its own memory (model/gpt_ngram.c).
 *
 * Letters for shapes: n tokens (B x T), C dim, D numbers in a head, K = kv_heads * D, J = C + 2K, H
 * hidden. For n-grams: N row numbers of a token, E = N times the numbers in a row.
 */
#ifndef EMBLA_MODEL_GPT_H
#define EMBLA_MODEL_GPT_H

#include "model/layers.h"

/* Slots of the model, followed by those of layer 0, layer 1, .. */
enum {
    EMBLA_GPT_WTE,             /* vocab x C */
    EMBLA_GPT_WPE,             /* positions x C; learned positions */
    EMBLA_GPT_LM_HEAD,         /* vocab x C; untied */
    EMBLA_GPT_NORM_FIRST_GAIN, /* C; norm_first */
    EMBLA_GPT_NORM_FIRST_BIAS,
    EMBLA_GPT_NORM_GAIN, /* C; the last norm */
    EMBLA_GPT_NORM_BIAS,
    EMBLA_GPT_LAYERS /* the first slot of layer 0 */
};

/* Slots of a layer: embla_gpt_slot(layer, one of these). */
enum {
    EMBLA_GPT_NORM1_GAIN, /* C */
    EMBLA_GPT_NORM1_BIAS,
    EMBLA_GPT_Q, /* C x C, K x C, K x C: together J x C */
    EMBLA_GPT_K,
    EMBLA_GPT_V,
    EMBLA_GPT_Q_BIAS, /* C, K, K: together J */
    EMBLA_GPT_K_BIAS,
    EMBLA_GPT_V_BIAS,
    EMBLA_GPT_O, /* C x C */
    EMBLA_GPT_O_BIAS,
    EMBLA_GPT_NORM2_GAIN, /* C */
    EMBLA_GPT_NORM2_BIAS,
    EMBLA_GPT_UP, /* H x C (fc1) */
    EMBLA_GPT_UP_BIAS,
    EMBLA_GPT_GATE, /* H x C; swiglu */
    EMBLA_GPT_GATE_BIAS,
    EMBLA_GPT_DOWN, /* C x H (fc2) */
    EMBLA_GPT_DOWN_BIAS,
    EMBLA_GPT_LAYER_SLOTS
};

static inline size_t embla_gpt_slot(size_t layer, size_t slot)
{
    return EMBLA_GPT_LAYERS + layer * EMBLA_GPT_LAYER_SLOTS + slot;
}

/* Slots for the n-gram table, after those of the last layer: see embla_gpt_ngram_slot. */
enum {
    EMBLA_GPT_NGRAM_KEY, /* C x E, C x E: together 2C x E */
    EMBLA_GPT_NGRAM_VALUE,
    EMBLA_GPT_NGRAM_SLOTS
};

static inline size_t embla_gpt_ngram_slot(const embla_gpt_shape *shape, size_t slot)
{
    return embla_gpt_slot(shape->layers, 0) + slot;
}

static inline bool embla_gpt_has_ngram(const embla_gpt_shape *shape)
{
    return shape->ngram.rows > 0;
}

/* N and E; 0 if there is no table. */
static inline size_t embla_gpt_ngram_columns(const embla_gpt_shape *shape)
{
    return embla_gpt_has_ngram(shape) ? (shape->ngram.orders - 1) * shape->ngram.heads : 0;
}

static inline size_t embla_gpt_ngram_width(const embla_gpt_shape *shape)
{
    return embla_gpt_ngram_columns(shape) * shape->ngram.dim;
}

/* One tensor. */
typedef struct {
    char name[40];
    size_t slot;
    int64_t rows; /* 1 means a vector */
    size_t dim;
    size_t at; /* index of its first number in weights and gradients */
    bool decays;
} embla_gpt_part;

/* Where activations lie: bytes from the start of their block; those of a layer from the start of
 * the layer's. All are f32. */
typedef struct {
    size_t tokens;   /* n that there is memory for */
    size_t embedded; /* n x C: token rows plus positions; input of layer 0 without norm_first */
    size_t first, first_stats;   /* n x C, n x 2: norm_first; then it is the input of layer 0 */
    size_t hidden, hidden_stats; /* n x C, n x 2: the last norm; without it, the output of the last
                                    layer is used */
    size_t dx, dy;               /* n x C: gradients of the residual stream and inside branches */
    size_t djoint;               /* n x J */
    size_t dhidden, dup;        /* n x H (at least n x C, with n-grams n x 2C): gradients inside the
                                   feed-forward branch, and of the keys and values of n-grams */
    size_t grams, dgrams;       /* n x E: n-gram rows of each token, concatenated */
    size_t pair, pair_stats;    /* n x 2C, n x 4: their keys and values; state of the gate */
    size_t enriched;            /* n x C: the layer's input after n-grams were added */
    size_t layers, layer_bytes; /* start of layer 0, and bytes of each layer */
    /* within a layer */
    size_t norm1, stats1;  /* n x C, n x 2 */
    size_t joint;          /* n x J: q, k, v; rotated if positions are rotary */
    size_t attended;       /* n x C: output of attention */
    size_t attended_stats; /* heads x n */
    size_t middle;         /* n x C: the stream after attention was added */
    size_t norm2, stats2;  /* n x C, n x 2 */
    size_t up, gate;       /* n x H; gate is for swiglu */
    size_t active;         /* n x H */
    size_t out;            /* n x C: output of the layer */
    size_t bytes;          /* of the whole block */
} embla_gpt_places;

typedef struct embla_gpt_grams embla_gpt_grams; /* an n-gram table: model/gpt_ngram.c */

/* Reads all rows of a table for a file, as embla_part does. read is NULL if it cannot be done. */
typedef struct {
    embla_status (*read)(void *context, uint64_t offset, size_t bytes, void *out);
    void *tokens, *head; /* contexts: of the token table, and of a separate head */
} embla_gpt_readers;

struct embla_gpt {
    embla_gpt_shape shape; /* with defaults filled in */
    size_t bytes;          /* of this block: the struct, parts, part_of */
    size_t size;           /* numbers in a head */
    size_t joint;          /* J */
    size_t numbers;        /* in weights, and in gradients; gaps between tensors are 0 */
    int64_t parameters;    /* without gaps */
    size_t part_count;     /* tensors, in the order of the list */
    embla_gpt_part *parts; /* wte, wpe, lm_head, the first norm, the layers, the last norm */
    int32_t *part_of;      /* for each slot; -1 if there is no such tensor */
    char *weights;         /* numbers floats */
    char *gradients;       /* same layout; NULL until embla_gpt_reserve */
    char *activations;     /* NULL until embla_gpt_reserve */
    embla_gpt_places at;
    bool ran;                  /* a pass has run, so hidden is valid */
    float *sines;              /* positions x C: sinusoidal positions, or NULL */
    embla_table *tokens;       /* views of wte and of wpe (or of sines; NULL: none) .. */
    embla_table *positions;    /* .. */
    embla_table *head;         /* .. and of lm_head; NULL where tied: tokens is the head */
    embla_scatter *scatter;    /* room for at.tokens */
    embla_gpt_grams *grams;    /* NULL if there is no n-gram table */
    uint16_t *rounded;         /* weights in bf16, same layout; NULL until a pass needs them */
    embla_scratch scratch;     /* of layers */
    bool trunk;                /* the model has no token rows: model/gpt_trunk.c */
    embla_gpt_readers readers; /* of these rows */
};

/* The first number of a slot's tensor, or NULL if there is no such tensor. */
static inline float *embla_gpt_weight(const embla_gpt *gpt, size_t slot)
{
    int32_t part = gpt->part_of[slot];
    return part < 0 ? NULL : (float *)(void *)gpt->weights + gpt->parts[part].at;
}

static inline float *embla_gpt_gradient(const embla_gpt *gpt, size_t slot)
{
    int32_t part = gpt->part_of[slot];
    return part < 0 ? NULL : (float *)(void *)gpt->gradients + gpt->parts[part].at;
}

/* The slot of the head: lm_head, or wte if tied. */
static inline size_t embla_gpt_head_slot(const embla_gpt *gpt)
{
    return gpt->shape.untied ? EMBLA_GPT_LM_HEAD : EMBLA_GPT_WTE;
}

/* The vectors before the head (B, T, dim) of the last embla_gpt_loss or embla_gpt_backward. */
const float *embla_gpt_hidden(const embla_gpt *gpt);
/* Rounds all weights that are factors of products to bf16. */
EMBLA_CHECKED embla_status embla_gpt_bf16_round(embla_gpt *gpt, int threads, embla_layer_bf16 *out);
/* Bytes of the rounded weights; 0 before the first use. */
size_t embla_gpt_bf16_bytes(const embla_gpt *gpt);

/* The words for kinds of positions, also in files. */
enum { EMBLA_GPT_POSITIONS = EMBLA_POSITIONS_NONE + 1 };
extern const char *const embla_gpt_positions[EMBLA_GPT_POSITIONS];

/* Checks a shape and fills in defaults. */
EMBLA_CHECKED embla_status embla_gpt_shape_check(const embla_gpt_shape *shape,
                                                 embla_gpt_shape *out);
/* EMBLA_ERR_ARGUMENT if a number of a part ("a model") is not from least to most. */
EMBLA_CHECKED embla_status embla_gpt_between(const char *part, const char *what, uint64_t is,
                                             uint64_t least, uint64_t most);
/* Creates a model with all weights 0, to be filled by the caller. */
EMBLA_CHECKED embla_status embla_gpt_blank(const embla_gpt_shape *shape, embla_gpt **out);

#endif
