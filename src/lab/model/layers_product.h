/* SPDX-License-Identifier: Apache-2.0 */
/* Products by plain loops: for what is too small to call an engine for, and where there is none. On
 * the calling thread; cannot fail.
 *
 * Each number of the result is a sum over k in its order, in pieces of EMBLA_PRODUCT_DEPTH that
 * are added to one another; x times a matrix turned, with fewer than EMBLA_PRODUCT_FEW rows of x,
 * is a dot product instead: 16 lanes, added as a tree. One rounding
 * for each step, so the same bits on every instruction set.
 */
#ifndef EMBLA_MODEL_LAYERS_PRODUCT_H
#define EMBLA_MODEL_LAYERS_PRODUCT_H

#include "base/status.h"
#include "embla_train.h"
#include "engine/engine.h"
#include "model/layers.h"

enum { EMBLA_PRODUCT_DEPTH = 128, EMBLA_PRODUCT_FEW = 4 };

/* out (m x n) = the product of a and b, row-major, strides in numbers; with add it is added to
 * what out holds. All are f32. */
typedef struct {
    size_t m, n, k;
    const void *a, *b;
    size_t a_stride, b_stride, out_stride;
    void *out;
    embla_product_form form;
    bool add;
} embla_plain_product;

/* Whether a layer may call the engine for products that are large enough. */
static inline bool embla_layer_has_engine(const embla_layer_way *way)
{
    return !way->no_engine && embla_engine_has_products();
}

void embla_product_plain(const embla_plain_product *product);
/* By the engine if that is asked for, else by plain loops. */
EMBLA_CHECKED embla_status embla_product_either(bool engine, const embla_plain_product *product);

#endif
