/* SPDX-License-Identifier: Apache-2.0 */
/* Dense algebra, behind one door: matrix products by oneDNN (or CBLAS, a choice of the build)
 * and eigenvalues by LAPACKE. The libraries are loaded when they are first needed: a program
 * that only reads rows neither waits for them nor needs them installed (decision 010).
 * Part of libembla_lab; libembla knows nothing of it.
 *
 * EMBLA_ERR_UNSUPPORTED, with the package to install, where a library is not there.
 */
#ifndef EMBLA_BASE_LINALG_H
#define EMBLA_BASE_LINALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef enum {
    EMBLA_A_BT = 0, /* a (m x k) times b (n x k) turned: rows by queries */
    EMBLA_A_B = 1,  /* a (m x k) times b (k x n) */
    EMBLA_AT_B = 2  /* a (k x m) turned, times b (k x n) */
} embla_product_form;

/* out (m x n) = the product of a and b, row-major, strides in numbers; with add it is added to
 * what out holds. */
typedef struct {
    size_t m, n, k;
    const float *a, *b;
    size_t a_stride, b_stride, out_stride;
    float *out;
    embla_product_form form;
    bool add;
    bool spread; /* over threads of the engine's own, unless called inside a parallel region */
} embla_product;

/* Runs on the calling thread alone, inside a parallel region or not, and then gives the same
 * bits for the same sizes on this machine; spread over threads, bits depend on their number.
 * Any number of threads may call at once. */
EMBLA_CHECKED embla_status embla_linalg_product(const embla_product *product);
/* The same with a and b as bf16 (uint16_t) and sums in float; only EMBLA_A_BT, on the calling
 * thread. */
typedef struct {
    size_t m, n, k;
    const uint16_t *a, *b;
    size_t a_stride, b_stride, out_stride;
    float *out;
} embla_product_bf16;
EMBLA_CHECKED embla_status embla_linalg_product_bf16(const embla_product_bf16 *product);
/* Eigenvalues of the symmetric n x n matrix, smallest first, to values. With vectors > 0 the
 * vectors of the largest so many go to out (vectors x n, the largest last), of length 1, the
 * sign as it comes. matrix is overwritten; only one triangle of it is looked at. */
EMBLA_CHECKED embla_status embla_linalg_eigen(double *matrix, size_t n, size_t vectors,
                                              double *values, double *out);
/* Its name, what is wrong with it and a product for everyone: embla_engine_.. in embla_lab.h. */

#endif
