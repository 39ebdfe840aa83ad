/* SPDX-License-Identifier: Apache-2.0 */
/* The engine: matrix products by oneDNN or CBLAS (chosen when Embla is built) and eigenvalues
 * by LAPACKE. engine.c is the door to all three; onednn.c, cblas.c and lapacke.c each know one
 * library. A library is loaded at its first use, so a program that only reads rows neither
 * waits for it nor needs it installed (decision 010). Part of libembla_lab, not of libembla.
 *
 * If the library of products is missing, every product returns EMBLA_ERR_UNSUPPORTED and names the
 * package to install. Without LAPACKE, eigenvalues are computed by eigen.c (decision 034).
 * embla_lab.h declares the engine's name and its warning.
 */
#ifndef EMBLA_ENGINE_ENGINE_H
#define EMBLA_ENGINE_ENGINE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* How the factors of a product are stored, both row-major. */
typedef enum {
    EMBLA_PRODUCT_A_BT = 0, /* a is m x k, b is n x k: a times the transpose of b */
    EMBLA_PRODUCT_A_B = 1,  /* a is m x k, b is k x n */
    EMBLA_PRODUCT_AT_B = 2  /* a is k x m, b is k x n: the transpose of a times b */
} embla_product_form;

/* out (m x n) = the product of a and b. Strides count numbers, not bytes. */
typedef struct {
    size_t m, n, k;
    const float *a, *b;
    size_t a_stride, b_stride, out_stride;
    float *out;
    embla_product_form form;
    bool add; /* add the product to out instead of replacing out */
} embla_product;

/* A product runs on the calling thread, and the same sizes give the same bits on the same machine.
 * Any number of threads may call at once. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_engine_product(const embla_product *product);
/* Whether products are available. The first call loads the library. */
EMBLA_PRIVATE bool embla_engine_has_products(void);

/* The same product with a and b in bf16, summed in f32. If the CPU has no bf16 instructions, blocks
 * of a and b are first widened to f32 in `space`. `space` holds EMBLA_BF16_SPACE floats; NULL means
 * the call allocates them. */
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
EMBLA_CHECKED embla_status embla_engine_product_bf16(const embla_product_bf16 *product);
/* A bf16 product that is prepared once and run many times. Preparing copies both factors into the
 * layout that the engine prefers, so what is written to a and b afterwards has no effect.
 * EMBLA_ERR_UNSUPPORTED if the engine does not multiply bf16 by itself. */
typedef struct embla_prepared embla_prepared;
EMBLA_CHECKED embla_status embla_engine_prepare_bf16(const embla_product_bf16 *product,
                                                     embla_prepared **out);
/* Computes the product into the `out` it was prepared with. */
EMBLA_CHECKED embla_status embla_engine_run(const embla_prepared *prepared);
void embla_prepared_free(embla_prepared *prepared);
/* Whether the CPU and the engine multiply bf16 without widening it. */
bool embla_engine_has_bf16(void);
/* For tests: 1 sends bf16 to the engine even if the CPU lacks bf16 instructions, 0 always
 * widens, -1 restores the default. */
void embla_engine_use_bf16(int use);
/* For tests: the n-th embla_engine_product from now fails (1 is the next); 0 ends this. */
void embla_engine_fail(size_t n);

/* Computes the eigenvalues of a symmetric n x n matrix, smallest first, into values. If vectors
 * is greater than 0, the eigenvectors of the largest `vectors` eigenvalues go to out (vectors x
 * n, the largest last); each has length 1 and an arbitrary sign. The matrix is overwritten, and
 * only one triangle of it is read. */
EMBLA_CHECKED embla_status embla_engine_eigen(double *matrix, size_t n, size_t vectors,
                                              double *values, double *out);

#endif
