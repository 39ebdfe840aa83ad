/* SPDX-License-Identifier: Apache-2.0 */
/* What everyone who makes logits shares: a head with its defaults filled in and checked, and
 * what is done to a sum of products to make it a logit (scale, bias, soft cap), forward and
 * backward. The arithmetic is + - * / alone, so each instruction set gives the same bits.
 */
#ifndef EMBLA_LEARN_HEAD_H
#define EMBLA_LEARN_HEAD_H

#include "base/half.h"
#include "base/isa.h"
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
} embla_walk;

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
                                         int threads, const void *out, embla_walk *walk);
/* Walks over the logits of vectors vector .. vector+count-1: they are written to out (count x
 * rows) if it is given, and else shown to see. Only memory can fail, before anything is written
 * or seen. The file of the table is to be asked afterwards. */
EMBLA_CHECKED embla_status embla_walk_run(const embla_walk *walk, size_t vector, size_t count,
                                          float *out, embla_logits_fn *see, void *context);

/* tanh with a relative error below 2e-7. Below 0.625 an odd polynomial (Cephes' tanhf), above
 * it 1 - 2 / (exp(2x) + 1), where exp is by 2^n times a polynomial; from 9.1 on it is 1. */
EMBLA_BODY float embla_body_tanh(float x)
{
    float size = embla_float(embla_bits(x) & 0x7fffffffu);
    float a = size < 10.0f ? size : 10.0f; /* a NaN becomes 10, and is put back at the end */
    float z = a * a;
    float p = -5.70498872745e-3f;
    p = p * z + 2.06390887954e-2f;
    p = p * z - 5.37397155531e-2f;
    p = p * z + 1.33314422036e-1f;
    p = p * z - 3.33332819422e-1f;
    p = p * z * a + a;
    float y = a + a;
    int32_t n = (int32_t)(y * 1.44269504088896341f + 0.5f);
    float f = (float)n;
    float r = y - f * 0.693359375f + f * 2.12194440e-4f;
    float e = 1.9875691500e-4f;
    e = e * r + 1.3981999507e-3f;
    e = e * r + 8.3334519073e-3f;
    e = e * r + 4.1665795894e-2f;
    e = e * r + 1.6666665459e-1f;
    e = e * r + 5.0000001201e-1f;
    e = e * (r * r) + r + 1.0f;
    e = e * embla_float((uint32_t)(n + 127) << 23);
    float q = 1.0f - 2.0f / (e + 1.0f);
    float t = a < 0.625f ? p : q;
    t = embla_float(embla_bits(t) | (embla_bits(x) & 0x80000000u));
    return x != x ? x : t;
}

#endif
