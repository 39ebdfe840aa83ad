/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/products.h"

#include <string.h>
#include <time.h>

#include "engine/engine.h"

/* One product; all strides are in numbers. */
static bool multiply(embla_dtype dtype, const embla_product *p, const void *a, const void *b)
{
    embla_product f32 = *p;
    f32.a = a;
    f32.b = b;
    f32.spread = true;
    if (dtype != EMBLA_BF16) return embla_engine_product(&f32) == EMBLA_OK;
    return embla_engine_product_bf16(&(embla_product_bf16){.m = p->m,
                                                           .n = p->n,
                                                           .k = p->k,
                                                           .a = a,
                                                           .b = b,
                                                           .a_stride = p->a_stride,
                                                           .b_stride = p->b_stride,
                                                           .out = p->out,
                                                           .out_stride = p->out_stride,
                                                           .form = p->form,
                                                           .add = p->add,
                                                           .spread = true}) == EMBLA_OK;
}

/* The products of outputs first .. first + some - 1. */
static bool run_block(const bench_layer *l, size_t first, size_t some, size_t block)
{
    size_t number = l->dtype == EMBLA_BF16 ? sizeof(uint16_t) : sizeof(float);
    const char *w = (const char *)l->w + first * l->in * number;
    const embla_product y = {.m = l->n,
                             .n = some,
                             .k = l->in,
                             .a_stride = l->in,
                             .b_stride = l->in,
                             .out = l->y,
                             .out_stride = block,
                             .form = EMBLA_PRODUCT_A_BT};
    if (!multiply(l->dtype, &y, l->x, w)) return false;
    if (!l->dy) return true;
    const embla_product dx = {.m = l->n,
                              .n = l->in,
                              .k = some,
                              .a_stride = block,
                              .b_stride = l->in,
                              .out = l->dx,
                              .out_stride = l->in,
                              .form = EMBLA_PRODUCT_A_B,
                              .add = first > 0};
    const embla_product dw = {.m = some,
                              .n = l->in,
                              .k = l->n,
                              .a_stride = block,
                              .b_stride = l->in,
                              .out = l->dw + first * l->in,
                              .out_stride = l->in,
                              .form = EMBLA_PRODUCT_AT_B};
    return multiply(l->dtype, &dx, l->dy, w) && multiply(l->dtype, &dw, l->dy, l->x);
}

bool bench_layer_run(const bench_layer *layer, size_t block)
{
    for (size_t first = 0; first < layer->out; first += block) {
        size_t left = layer->out - first;
        if (!run_block(layer, first, left < block ? left : block, block)) return false;
    }
    return true;
}

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

size_t bench_layer_block(const bench_layer *layer, size_t most)
{
    static const size_t blocks[] = {1024, 2048, 4096, 8192, 16384, SIZE_MAX};
    enum { TRIES = 3 };
    size_t best_block = layer->out < most ? layer->out : most;
    double best = 1e300;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        size_t block = blocks[i] < layer->out ? blocks[i] : layer->out;
        if (block > most) continue;
        for (size_t t = 0; t < TRIES; t++) {
            double before = now();
            if (!bench_layer_run(layer, block)) return best_block;
            double seconds = now() - before;
            if (seconds < best) best = seconds, best_block = block;
        }
        if (block == layer->out) break;
    }
    return best_block;
}

bool bench_has_bf16(void)
{
    return embla_engine_has_products() && embla_engine_has_bf16();
}

void bench_bf16(const float *in, size_t count, uint16_t *out)
{
    for (size_t i = 0; i < count; i++) {
        uint32_t bits;
        memcpy(&bits, &in[i], sizeof bits);
        out[i] = (uint16_t)(bits >> 16);
    }
}
