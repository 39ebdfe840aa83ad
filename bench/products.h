/* SPDX-License-Identifier: Apache-2.0 */
/* The bare products of a linear layer or a head, by the library's own engine on all its threads:
 * the limit of everything that must compute them. w is out x in, row-major; x has n vectors.
 * Each returns false if the engine failed; embla_error() then says why.
 */
#ifndef BENCH_PRODUCTS_H
#define BENCH_PRODUCTS_H

#include <stdbool.h>
#include <stddef.h>

/* y (n x out) = x (n x in) times the transpose of w. */
bool bench_product_forward(const float *x, const float *w, size_t n, size_t out, size_t in,
                           float *y);
/* dx (n x in) = dy (n x out) times w. */
bool bench_product_inputs(const float *dy, const float *w, size_t n, size_t out, size_t in,
                          float *dx);
/* dw (out x in) = the transpose of dy (n x out) times x (n x in). */
bool bench_product_weights(const float *dy, const float *x, size_t n, size_t out, size_t in,
                           float *dw);

#endif
