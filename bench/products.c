/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/products.h"

#include "engine/engine.h"

static bool multiply(embla_product p)
{
    p.a_stride = p.form == EMBLA_PRODUCT_AT_B ? p.m : p.k;
    p.b_stride = p.form == EMBLA_PRODUCT_A_BT ? p.k : p.n;
    p.out_stride = p.n;
    p.spread = true;
    return embla_engine_product(&p) == EMBLA_OK;
}

bool bench_product_forward(const float *x, const float *w, size_t n, size_t out, size_t in,
                           float *y)
{
    return multiply((embla_product){
        .m = n, .n = out, .k = in, .a = x, .b = w, .out = y, .form = EMBLA_PRODUCT_A_BT});
}

bool bench_product_inputs(const float *dy, const float *w, size_t n, size_t out, size_t in,
                          float *dx)
{
    return multiply((embla_product){
        .m = n, .n = in, .k = out, .a = dy, .b = w, .out = dx, .form = EMBLA_PRODUCT_A_B});
}

bool bench_product_weights(const float *dy, const float *x, size_t n, size_t out, size_t in,
                           float *dw)
{
    return multiply((embla_product){
        .m = out, .n = in, .k = n, .a = dy, .b = x, .out = dw, .form = EMBLA_PRODUCT_AT_B});
}
