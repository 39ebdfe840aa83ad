/* SPDX-License-Identifier: Apache-2.0 */
/* What all code that computes logits shares: a checked head with its defaults filled in, and the
 * step from a sum of products to a logit (scale, bias, soft cap), forward and backward. It uses
 * only + - * /, so every instruction set gives the same bits.
 */
#ifndef EMBLA_LEARN_HEAD_H
#define EMBLA_LEARN_HEAD_H

#include "base/status.h"
#include "embla_learn.h"

/* Copies head to *out with rows and scale filled in (never 0). Returns EMBLA_ERR_ARGUMENT for NULL,
 * for more rows than the table has, for a scale or a cap that is not finite, and for a negative
 * cap. Checks that the table's file, if it has one, is still there. */
EMBLA_CHECKED embla_status embla_head_check(const embla_head *head, embla_head *out);

/* Turns sums of products with tokens first .. first+n-1 into logits, in place: cap(scale * sum +
 * bias). head was checked. */
void embla_head_finish(const embla_head *head, int64_t first, size_t n, float *logits);

/* x = cap * tanh(x / cap), in place; cap > 0. -infinity stays, so that a masked token stays masked.
 * NaN stays. */
void embla_soft_cap(float *x, size_t n, float cap);
/* Turns gradients of capped logits into those of the logits before the cap, in place: times 1 -
 * (capped / cap)^2, and 0 where capped is -infinity. */
void embla_soft_cap_back(const float *capped, size_t n, float cap, float *gradients);

/* ---- logits a chunk at a time ---- */

/* A pass over all logits of some vectors. Its sizes depend on the shape alone, so neither chunks
 * nor bits depend on the number of threads. */
typedef struct {
    embla_head head; /* checked */
    const float *hidden;
    size_t count, dim;
    size_t chunk;   /* tokens */
    int64_t chunks; /* of all tokens */
    bool products;  /* true: by the engine; false: by engine/score.h */
    int threads;
} embla_logit_walk;

/* The logits of one chunk: token first + i of vector v at logits[(v - vector) * stride + i]. */
typedef struct {
    size_t vector, count; /* first of these vectors, counted from 0 in the call; how many */
    int64_t first, chunk; /* first token; number of the chunk */
    size_t n;             /* tokens */
    const float *logits;
    size_t stride;
    size_t slot; /* below the walk's threads; another one in each call that runs now */
} embla_logits;

/* Called once for each chunk of each block of vectors, on any thread; must not fail. */
typedef void embla_logits_fn(void *context, const embla_logits *logits);

/* Checks all arguments of a call. If count is 0, hidden and out may be NULL. */
EMBLA_CHECKED embla_status embla_walk_of(const embla_head *head, const float *hidden, size_t count,
                                         int threads, const void *out, embla_logit_walk *walk);
/* Computes the logits of vectors vector .. vector+count-1. If out is not NULL they are written to
 * it (count x rows), otherwise they are passed to `use`. If memory runs out, it fails before
 * anything is written. The caller checks the table's file afterwards. */
EMBLA_CHECKED embla_status embla_walk_run(const embla_logit_walk *walk, size_t vector, size_t count,
                                          float *out, embla_logits_fn *use, void *context);

#endif
