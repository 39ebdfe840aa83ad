/* SPDX-License-Identifier: Apache-2.0 */
/* What everyone who makes logits shares: a head with its defaults filled in and checked, and
 * what is done to a sum of products to make it a logit (scale, bias, soft cap), forward and
 * backward. The arithmetic is + - * / alone, so each instruction set gives the same bits.
 */
#ifndef EMBLA_LEARN_HEAD_H
#define EMBLA_LEARN_HEAD_H

#include "base/status.h"
#include "embla_learn.h"

/* *out is head with rows 1 .. rows of its table (never 0) and scale (never 0) filled in.
 * EMBLA_ERR_ARGUMENT for NULL, for rows beyond the table's, for a scale or a cap that is not
 * finite and for a cap below 0. Asks the table's file, if it has one, whether it is still
 * there. */
EMBLA_CHECKED embla_status embla_head_check(const embla_head *head, embla_head *out);

/* Sums of products with tokens first .. first+n-1 become logits, in place:
 * cap(scale * sum + bias). head has been checked. */
void embla_head_finish(const embla_head *head, int64_t first, size_t n, float *logits);

/* x = cap * tanh(x / cap), in place; cap > 0. -infinity stays (a token that is barred stays
 * barred), NaN stays. */
void embla_soft_cap(float *x, size_t n, float cap);
/* gradients of capped logits become those of the logits before the cap: times
 * 1 - (capped / cap)^2, in place. 0 where capped is -infinity. */
void embla_soft_cap_back(const float *capped, size_t n, float cap, float *gradients);

/* ---- logits a chunk at a time ---- */

/* What a walk over all logits of some vectors is: sizes that depend on the shape alone, so that
 * neither chunks nor bits depend on the number of threads. */
typedef struct {
    embla_head head; /* checked */
    const float *hidden;
    size_t count, dim;
    size_t chunk;   /* tokens */
    int64_t chunks; /* of all tokens */
    bool products;  /* by the engine; else by engine/score.h */
    int threads;
} embla_logit_walk;

/* The logits of one chunk: token first + i of vector v at logits[(v - vector) * stride + i]. */
typedef struct {
    size_t vector, count; /* the first of these vectors, from 0 in the call; how many */
    int64_t first, chunk; /* the first token; the number of the chunk */
    size_t n;             /* tokens */
    const float *logits;
    size_t stride;
    int thread; /* who sees it: 0 .. threads - 1 */
} embla_logits;

/* Called once for each chunk of each block of vectors, on any thread; must not fail. */
typedef void embla_logits_fn(void *context, const embla_logits *logits);

/* Checks all arguments of a call. count 0 is fine, and then hidden and out may be NULL. */
EMBLA_CHECKED embla_status embla_walk_of(const embla_head *head, const float *hidden, size_t count,
                                         int threads, const void *out, embla_logit_walk *walk);
/* Walks over the logits of vectors vector .. vector+count-1: they are written to out (count x
 * rows) if it is given, and else shown to see. Only memory can fail, before anything is written
 * or seen. The file of the table is to be asked afterwards. */
EMBLA_CHECKED embla_status embla_walk_run(const embla_logit_walk *walk, size_t vector, size_t count,
                                          float *out, embla_logits_fn *see, void *context);

#endif
