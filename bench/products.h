/* SPDX-License-Identifier: Apache-2.0 */
/* The bare products of a linear layer or a head, by the library's engine, one part for each thread:
 * the limit for code that must compute them. */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

/* Results are f32. A block is a number of outputs: y and dy hold one block at a time, so that small
 * blocks stay in a cache. */
typedef struct {
    size_t n, out, in; /* vectors, outputs, inputs */
    const void *x;     /* n x in */
    const void *w;     /* out x in */
    const void *dy;    /* n x block; NULL means forward only. f32 may use y */
    float *y;          /* n x block: x times the transpose of w */
    float *dx;         /* n x in: dy times w */
    float *dw;         /* out x in: the transpose of dy times x */
} bench_layer;

/* Computes all products of f32 factors, all outputs at once. Returns false if the engine failed;
 * embla_error() then says why. */
bool bench_layer_run(const bench_layer *layer);

/* Whether the engine computes products; the first call loads it. */
bool bench_has_products(void);
/* out (m x n) = a (m x k) times b (k x n), in f32, on all threads. Returns false if the engine
 * failed. */
bool bench_product(const float *a, const float *b, size_t m, size_t k, size_t n, float *out);

/* The products of bf16 factors, prepared: both factors of each lie in the layout that the engine
 * prefers. What a product of stored rows costs beyond this is the cost of their layout. */
typedef struct bench_bare bench_bare;

/* Prepares the products of a layer in blocks of at most `most` outputs: those with which they are
 * fastest on this many threads. Returns NULL if the engine failed. */
bench_bare *bench_bare_new(const bench_layer *layer, size_t most, int threads);
void bench_bare_free(bench_bare *bare);
bool bench_bare_run(const bench_bare *bare);

/* Whether the engine multiplies bf16 with the CPU's own instructions. If not, its f32 products are
 * faster, and they are the limit of bf16 too. */
bool bench_has_bf16(void);
/* Rounds count numbers to bf16, toward 0. */
void bench_bf16(const float *in, size_t count, uint16_t *out);

#endif
