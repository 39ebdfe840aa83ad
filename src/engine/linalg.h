/* SPDX-License-Identifier: Apache-2.0 */
/* Dense algebra, behind one door: matrix products by oneDNN (or CBLAS, a choice of the build)
 * and eigenvalues by LAPACKE. The libraries are loaded when they are first needed: a program
 * that only reads rows neither waits for them nor needs them installed (decision 010).
 * Part of libembla_lab; libembla knows nothing of it.
 *
 * EMBLA_ERR_UNSUPPORTED, with the package to install, where a library is not there.
 */
#ifndef EMBLA_ENGINE_LINALG_H
#define EMBLA_ENGINE_LINALG_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"
#include "embla_lab.h"

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
/* Whether products can be had at all: the first one loads the engine. */
bool embla_linalg_has_engine(void);
/* The same with a and b as bf16 (uint16_t) and sums in float, on the calling thread. Where the
 * CPU does not multiply bf16 both are widened, a block at a time, in space: so many floats, or
 * NULL to have them allocated. */
enum { EMBLA_BF16_SPACE = 384 << 10 };
typedef struct {
    size_t m, n, k;
    const uint16_t *a, *b;
    size_t a_stride, b_stride, out_stride;
    float *out;
    float *space;
    embla_product_form form;
    bool add;
} embla_product_bf16;
EMBLA_CHECKED embla_status embla_linalg_product_bf16(const embla_product_bf16 *product);
/* Whether the CPU, and the engine, multiply bf16 without widening it. */
bool embla_linalg_has_bf16(void);
/* For tests: let the engine multiply bf16 where it can, though the CPU has no instructions for
 * it (it then takes others), or not at all; less than 0 goes back to what the CPU has. */
void embla_linalg_use_bf16(int use);
/* Eigenvalues of the symmetric n x n matrix, smallest first, to values. With vectors > 0 the
 * vectors of the largest so many go to out (vectors x n, the largest last), of length 1, the
 * sign as it comes. matrix is overwritten; only one triangle of it is looked at. */
EMBLA_CHECKED embla_status embla_linalg_eigen(double *matrix, size_t n, size_t vectors,
                                              double *values, double *out);
/* Its name, what is wrong with it and a product for everyone: embla_engine_.. in embla_lab.h. */

#endif
