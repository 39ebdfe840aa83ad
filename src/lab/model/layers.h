/* SPDX-License-Identifier: Apache-2.0 */
/* The layers of a decoder, forward and backward. Arrays are f32; products are computed by the
 * engine where it pays.
 *
 * What runs in parallel is cut by sizes alone and belongs to one thread: no bit depends on the
 * number of threads. "added" means that gradients are added to what is there; everything else is
 * overwritten. n counts tokens (B x T). Linear weights are stored output x input.
 */
#ifndef EMBLA_MODEL_LAYERS_H
#define EMBLA_MODEL_LAYERS_H

#include "base/scratch.h"
#include "embla_train.h"

/* Weights rounded to bf16 once for many calls: number i of `rounded` is number i of `weights`. */
typedef struct {
    const float *weights;
    const uint16_t *rounded;
    size_t count;
} embla_layer_bf16;

typedef struct {
    /* f32, or bf16: the factors of linear layers and of the head are rounded,
     * and those of attention if the CPU multiplies bf16; sums and all else stay f32 */
    embla_dtype compute;
    int threads;
    bool no_engine;         /* only plain loops */
    embla_layer_bf16 bf16;  /* matrices that need not be rounded again; may be empty */
    embla_scratch *scratch; /* kept between calls; may be NULL */
} embla_layer_way;

/* The rounded copy of a matrix that begins at w, or NULL if there is none. */
static inline const uint16_t *embla_layer_rounded(const embla_layer_way *way, const float *w)
{
    const embla_layer_bf16 *bf16 = &way->bf16;
    bool in = (uintptr_t)w - (uintptr_t)bf16->weights < bf16->count * sizeof *w;
    return in ? bf16->rounded + (w - bf16->weights) : NULL;
}

/* Rounds count floats to bf16: to is uint16_t, or floats again if widen. */
EMBLA_CHECKED embla_status embla_layer_round(int threads, const float *from, size_t count,
                                             bool widen, void *to);

/* y (n x out) = x (n x in) times the transpose of w (out x in), plus bias (out; may be NULL). If
 * `add`, the result is added to y. */
EMBLA_CHECKED embla_status embla_linear_forward(const embla_layer_way *way, const float *x,
                                                size_t n, size_t in, const float *w,
                                                const float *bias, size_t out, bool add, float *y);
/* dx (n x in; NULL if not wanted; added if add_dx). dw and dbias (may be NULL) are added. */
EMBLA_CHECKED embla_status embla_linear_backward(const embla_layer_way *way, const float *x,
                                                 const float *dy, size_t n, size_t in,
                                                 const float *w, size_t out, bool add_dx, float *dx,
                                                 float *dw, float *dbias);

/* y = (x - mean) / sqrt(variance + epsilon) * gain + bias (layer), or x / sqrt(mean square +
 * epsilon) * gain (rms). gain and bias may be NULL. stats has 2 numbers per token (mean, 1 / root),
 * for backward. */
EMBLA_CHECKED embla_status embla_norm_forward(const embla_layer_way *way, embla_norm_kind kind,
                                              double epsilon, const float *x, size_t n, size_t dim,
                                              const float *gain, const float *bias, float *y,
                                              float *stats);
/* dx is added. dgain and dbias (may be NULL) are added, in the order of tokens within fixed
 * blocks. */
EMBLA_CHECKED embla_status embla_norm_backward(const embla_layer_way *way, embla_norm_kind kind,
                                               const float *x, const float *stats, size_t n,
                                               size_t dim, const float *gain, const float *dy,
                                               float *dx, float *dgain, float *dbias);

/* y (n x hidden) from a (n x hidden). For swiglu, a is the gate; otherwise up is NULL. */
EMBLA_CHECKED embla_status embla_activation_forward(const embla_layer_way *way,
                                                    embla_activation kind, const float *a,
                                                    const float *up, size_t n, size_t hidden,
                                                    float *y);
/* da and dup are overwritten; da may be dy. */
EMBLA_CHECKED embla_status embla_activation_backward(const embla_layer_way *way,
                                                     embla_activation kind, const float *a,
                                                     const float *up, const float *dy, size_t n,
                                                     size_t hidden, float *da, float *dup);

/* Causal attention. q (B, T, heads, size), k and v (B, T, kv_heads, size). Strides are in numbers,
 * from one token to the next; q, k, v may be in one array. Scores are multiplied by 1 /
 * sqrt(size). */
typedef struct {
    size_t batch, length, heads, kv_heads, size;
    const float *q, *k, *v;
    size_t q_stride, kv_stride;
    float *out;   /* (B, T, heads * size) */
    float *stats; /* (B, heads, T): log of the sum of exponentials, for backward */
} embla_attention;

/* Works in blocks: above 64 tokens no T x T matrix is stored. Extra memory is a few blocks for each
 * thread. */
EMBLA_CHECKED embla_status embla_attention_forward(const embla_layer_way *way,
                                                   const embla_attention *a);
/* dq, dk, dv have the strides of q, k, v; they are overwritten. */
EMBLA_CHECKED embla_status embla_attention_backward(const embla_layer_way *way,
                                                    const embla_attention *a, const float *dout,
                                                    float *dq, float *dk, float *dv);
/* One new token: q (heads, size) with the keys and values of count positions (count,
 * kv_heads, size), the newest last. */
EMBLA_CHECKED embla_status embla_attention_one(const embla_layer_way *way, const float *q,
                                               const float *keys, const float *values, size_t count,
                                               size_t heads, size_t kv_heads, size_t size,
                                               float *out);

/* Rotates heads by their position, in place (see embla_rope_apply). `back` applies the inverse
 * rotation, for gradients. From each token, heads * size numbers are rotated; tokens are `stride`
 * numbers apart. The position of token i is first + i mod length. */
EMBLA_CHECKED embla_status embla_rotate_heads(const embla_layer_way *way,
                                              const embla_gpt_shape *shape, size_t size,
                                              size_t heads, size_t n, size_t length, size_t first,
                                              size_t stride, bool back, float *x);

/* The head and its loss. logits = hidden (n x dim) times table (vocab x dim) turned; mean
 * cross-entropy; gradients as embla_loss_gradients. With an engine it is embla_head_loss; small
 * ones are plain loops with the same contract. dhidden NULL: loss only. */
EMBLA_CHECKED embla_status embla_layer_loss(const embla_layer_way *way, const float *hidden,
                                            const int32_t *targets, size_t n, size_t dim,
                                            const float *table, int64_t vocab, double weight,
                                            float *dhidden, float *dtable,
                                            embla_loss_report *report);

/* The same against drawn tokens: embla_sampled_loss. dhidden and dtable are wanted. */
EMBLA_CHECKED embla_status embla_layer_sampled_loss(const embla_layer_way *way, const float *hidden,
                                                    const int32_t *targets, size_t n, size_t dim,
                                                    const float *table, int64_t vocab,
                                                    double weight, const embla_negatives *negatives,
                                                    float *dhidden, float *dtable,
                                                    embla_loss_report *report);

/* ---- dropout ---- */

typedef struct {
    double share; /* of the numbers that are dropped; 0 means no dropout */
    uint64_t seed;
} embla_dropout;
/* out (n x dim) = in times the mask of a branch; numbers that stay are divided by 1 - share. If
 * `add`, the result is added to out. */
EMBLA_CHECKED embla_status embla_dropout_apply(const embla_layer_way *way,
                                               const embla_dropout *dropout, size_t branch,
                                               const float *in, size_t n, size_t dim, bool add,
                                               float *out);

/* ---- the gate of an n-gram table ---- */

enum { EMBLA_GATE_STATS = 4 }; /* numbers per token: 1 / root of x and of key, similarity, gate */

/* y = x + gate * value, gate = sigmoid(rms(x) . rms(key) / sqrt(dim)) with rms(x) = x / sqrt(mean
 * square + epsilon). key and value have `stride` numbers from one token to the next, and may be in
 * one array. y may be x. stats (n x EMBLA_GATE_STATS) is for backward. */
EMBLA_CHECKED embla_status embla_gate_forward(const embla_layer_way *way, double epsilon,
                                              const float *x, const float *key, const float *value,
                                              size_t stride, size_t n, size_t dim, float *y,
                                              float *stats);
/* dx is the gradient of y and becomes that of x. dkey and dvalue (same stride) are overwritten. */
EMBLA_CHECKED embla_status embla_gate_backward(const embla_layer_way *way, const float *x,
                                               const float *key, const float *value, size_t stride,
                                               const float *stats, size_t n, size_t dim, float *dx,
                                               float *dkey, float *dvalue);

#endif
