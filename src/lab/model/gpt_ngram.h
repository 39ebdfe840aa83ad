/* SPDX-License-Identifier: Apache-2.0 */
/* The n-gram table of a model (gpt_ngram.c): rows named by the last few tokens, which become a key
 * and a value and are added to the stream through a gate. N, E and C are explained in gpt.h.
 */
#ifndef EMBLA_MODEL_GPT_NGRAM_H
#define EMBLA_MODEL_GPT_NGRAM_H

#include "model/gpt.h"

#define EMBLA_GPT_NGRAM_NAME "ngram.table" /* in files of our own */

/* Where rows are, if the model does not have them. */
typedef struct {
    bool away;            /* the table has no rows; everything else is only used then */
    const float *vectors; /* n x N x dim: the rows of the next passes; NULL means not there */
    /* Reads all rows for a file, as embla_part does; NULL means not there. */
    embla_status (*read)(void *context, uint64_t offset, size_t bytes, void *out);
    void *context;
} embla_gpt_ngram_rows;

/* The model has an n-gram table. */
EMBLA_PRIVATE void embla_gpt_ngram_source(embla_gpt *gpt, const embla_gpt_ngram_rows *rows);
const embla_gpt_ngram_rows *embla_gpt_ngram_where(const embla_gpt *gpt);

/* Checks the n-gram part of a shape, and replaces each 0 by its default. The rest of the shape was
 * checked before. */
EMBLA_CHECKED embla_status embla_gpt_ngram_check(embla_gpt_shape *shape);
/* The number of rows of the table: those asked for and a few more. 0 means no table. */
EMBLA_CHECKED embla_status embla_gpt_ngram_count(const embla_gpt_shape *shape, int64_t *out);
/* Bytes that a batch of n tokens needs besides its activations. SIZE_MAX means overflow. */
size_t embla_gpt_ngram_space(const embla_gpt_shape *shape, size_t n);
/* Creates the hasher and a table of zeros. */
EMBLA_CHECKED embla_status embla_gpt_ngram_new(const embla_gpt_shape *shape, embla_gpt_grams **out);
void embla_gpt_ngram_free(embla_gpt_grams *grams);
/* Reserves memory for n tokens. If it fails, what was reserved before is kept. */
EMBLA_CHECKED embla_status embla_gpt_ngram_room(const embla_gpt *gpt, size_t n);

/* The hasher of the table; NULL if there is none. */
EMBLA_PRIVATE const embla_ngram *embla_gpt_ngram_hasher(const embla_gpt *gpt);
/* Announces the batch that embla_gpt_backward or embla_gpt_loss will get next: its rows are hashed
 * and prefetched now. This changes speed only. Of options, only threads is used. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_gpt_ngram_prefetch(embla_gpt *gpt,
                                                                  const int32_t *tokens,
                                                                  size_t batch, size_t length,
                                                                  const embla_gpt_options *options);

/* Arrays in which rows of n-grams become a key and a value: n x N, n x E, n x 2C, n x 4. */
typedef struct {
    int64_t *rows;
    float *grams, *pair, *stats;
} embla_gpt_ngram_arrays;

/* out = x (n x C) plus the gated values of the batch's n-grams. `learns` must be true if
 * embla_gpt_ngram_backward follows. */
EMBLA_CHECKED embla_status embla_gpt_ngram_forward(const embla_gpt *gpt, const embla_layer_way *way,
                                                   const int32_t *tokens, size_t batch,
                                                   size_t length, bool learns, const float *x,
                                                   float *out);
/* Changes dx from the gradient of out into that of x, and adds to the gradients of the two tensors,
 * of which that of the keys is dkey. */
EMBLA_CHECKED embla_status embla_gpt_ngram_backward(const embla_gpt *gpt,
                                                    const embla_layer_way *way, size_t n,
                                                    const float *x, float *dx, float *dkey);
/* Like forward, for n tokens of one sequence that come after `before` other tokens. x is changed in
 * place. */
EMBLA_CHECKED embla_status embla_gpt_ngram_more(const embla_gpt *gpt, const embla_layer_way *way,
                                                const int32_t *tokens, size_t before, size_t n,
                                                const embla_gpt_ngram_arrays *arrays, float *x);

#endif
