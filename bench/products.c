/* SPDX-License-Identifier: Apache-2.0 */
#include "bench/products.h"

#include <stdlib.h>
#include <string.h>

#include "base/parallel.h"
#include "bench/measure.h"
#include "engine/engine.h"

/* ---- parts ---- */

/* A part of the longer side of a product: its first row or column, and how many it has. */
typedef struct {
    bool of_rows;
    size_t first, some;
} part;

static part part_of(size_t m, size_t n, size_t which, size_t parts)
{
    size_t side = m >= n ? m : n, first = side * which / parts;
    return (part){.of_rows = m >= n, .first = first, .some = side * (which + 1) / parts - first};
}

/* Works for both types of products. */
#define CUT(p, cut)                                                                                \
    do {                                                                                           \
        if ((cut)->of_rows) {                                                                      \
            (p)->a +=                                                                              \
                (p)->form == EMBLA_PRODUCT_AT_B ? (cut)->first : (cut)->first * (p)->a_stride;     \
            (p)->out += (cut)->first * (p)->out_stride;                                            \
            (p)->m = (cut)->some;                                                                  \
        } else {                                                                                   \
            (p)->b +=                                                                              \
                (p)->form == EMBLA_PRODUCT_A_BT ? (cut)->first * (p)->b_stride : (cut)->first;     \
            (p)->out += (cut)->first;                                                              \
            (p)->n = (cut)->some;                                                                  \
        }                                                                                          \
    } while (0)

/* ---- f32 ---- */

typedef struct {
    const embla_product *product;
    size_t parts;
} shared_product;

static embla_status multiply_parts(void *job, size_t first, size_t end, size_t slot)
{
    const shared_product *s = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        embla_product p = *s->product;
        part cut = part_of(p.m, p.n, i, s->parts);
        CUT(&p, &cut);
        EMBLA_TRY(embla_engine_product(&p));
    }
    return EMBLA_OK;
}

/* The product on all threads of this case: one part for each. */
static bool multiply(const embla_product *product)
{
    const shared_product s = {.product = product, .parts = (size_t)bench_threads()};
    return embla_share(bench_threads(), s.parts, 0, multiply_parts, &s) == EMBLA_OK;
}

bool bench_layer_run(const bench_layer *l)
{
    const embla_product y = {.m = l->n,
                             .n = l->out,
                             .k = l->in,
                             .a = l->x,
                             .b = l->w,
                             .a_stride = l->in,
                             .b_stride = l->in,
                             .out = l->y,
                             .out_stride = l->out,
                             .form = EMBLA_PRODUCT_A_BT};
    if (!multiply(&y)) return false;
    if (!l->dy) return true;
    const embla_product dx = {.m = l->n,
                              .n = l->in,
                              .k = l->out,
                              .a = l->dy,
                              .b = l->w,
                              .a_stride = l->out,
                              .b_stride = l->in,
                              .out = l->dx,
                              .out_stride = l->in,
                              .form = EMBLA_PRODUCT_A_B};
    const embla_product dw = {.m = l->out,
                              .n = l->in,
                              .k = l->n,
                              .a = l->dy,
                              .b = l->x,
                              .a_stride = l->out,
                              .b_stride = l->in,
                              .out = l->dw,
                              .out_stride = l->in,
                              .form = EMBLA_PRODUCT_AT_B};
    return multiply(&dx) && multiply(&dw);
}

bool bench_has_products(void)
{
    return embla_engine_has_products();
}

bool bench_product(const float *a, const float *b, size_t m, size_t k, size_t n, float *out)
{
    const embla_product product = {.m = m,
                                   .n = n,
                                   .k = k,
                                   .a = a,
                                   .b = b,
                                   .a_stride = k,
                                   .b_stride = n,
                                   .out = out,
                                   .out_stride = n,
                                   .form = EMBLA_PRODUCT_A_B};
    return multiply(&product);
}

/* ---- bf16 ---- */

enum { PRODUCTS = 3 };

struct bench_bare {
    size_t count, parts;        /* products, and parts of each */
    embla_prepared *products[]; /* y, dx and dw of each block, or y alone, part by part */
};

static bool prepare(bench_bare *bare, embla_product_bf16 product)
{
    for (size_t i = 0; i < bare->parts; i++) {
        embla_product_bf16 p = product;
        part cut = part_of(p.m, p.n, i, bare->parts);
        embla_prepared **to = &bare->products[bare->count * bare->parts + i];
        CUT(&p, &cut);
        if (cut.some > 0 && embla_engine_prepare_bf16(&p, to) != EMBLA_OK) return false;
    }
    bare->count++;
    return true;
}

/* The products of outputs first .. first + some - 1. */
static bool prepare_block(const bench_layer *l, size_t first, size_t some, size_t block,
                          bench_bare *bare)
{
    const uint16_t *w = (const uint16_t *)l->w + first * l->in;
    if (!prepare(bare, (embla_product_bf16){.m = l->n,
                                            .n = some,
                                            .k = l->in,
                                            .a = l->x,
                                            .b = w,
                                            .a_stride = l->in,
                                            .b_stride = l->in,
                                            .out = l->y,
                                            .out_stride = block,
                                            .form = EMBLA_PRODUCT_A_BT}))
        return false;
    if (!l->dy) return true;
    return prepare(bare, (embla_product_bf16){.m = l->n,
                                              .n = l->in,
                                              .k = some,
                                              .a = l->dy,
                                              .b = w,
                                              .a_stride = block,
                                              .b_stride = l->in,
                                              .out = l->dx,
                                              .out_stride = l->in,
                                              .form = EMBLA_PRODUCT_A_B,
                                              .add = first > 0}) &&
           prepare(bare, (embla_product_bf16){.m = some,
                                              .n = l->in,
                                              .k = l->n,
                                              .a = l->dy,
                                              .b = l->x,
                                              .a_stride = block,
                                              .b_stride = l->in,
                                              .out = l->dw + first * l->in,
                                              .out_stride = l->in,
                                              .form = EMBLA_PRODUCT_AT_B});
}

static bench_bare *in_blocks(const bench_layer *l, size_t block)
{
    size_t blocks = (l->out + block - 1) / block, parts = (size_t)bench_threads();
    bench_bare *bare =
        calloc(1, sizeof *bare + PRODUCTS * blocks * parts * sizeof(embla_prepared *));
    if (!bare) return NULL;
    bare->parts = parts;
    for (size_t first = 0; first < l->out; first += block) {
        size_t left = l->out - first;
        if (prepare_block(l, first, left < block ? left : block, block, bare)) continue;
        bare->count++; /* the one that failed may have parts */
        bench_bare_free(bare);
        return NULL;
    }
    return bare;
}

static embla_status run_parts(void *job, size_t first, size_t end, size_t slot)
{
    embla_prepared *const *parts = job;
    (void)slot;
    for (size_t i = first; i < end; i++)
        if (parts[i]) EMBLA_TRY(embla_engine_run(parts[i]));
    return EMBLA_OK;
}

bool bench_bare_run(const bench_bare *bare)
{
    for (size_t i = 0; i < bare->count; i++)
        if (embla_share((int)bare->parts, bare->parts, 0, run_parts,
                        &bare->products[i * bare->parts]) != EMBLA_OK)
            return false;
    return true;
}

void bench_bare_free(bench_bare *bare)
{
    if (!bare) return;
    for (size_t i = 0; i < bare->count * bare->parts; i++) embla_prepared_free(bare->products[i]);
    free(bare);
}

/* The shortest of a few runs; a negative number if the engine failed. */
static double seconds_of(const bench_bare *bare)
{
    enum { TRIES = 3 };
    double best = -1;
    for (int i = 0; i < TRIES; i++) {
        double before = bench_now();
        if (!bench_bare_run(bare)) return -1;
        double seconds = bench_now() - before;
        if (best < 0 || seconds < best) best = seconds;
    }
    return best;
}

bench_bare *bench_bare_new(const bench_layer *layer, size_t most, int threads)
{
    static const size_t blocks[] = {1024, 2048, 4096, 8192, 16384, SIZE_MAX};
    bench_bare *best = NULL;
    double best_seconds = 0;
    size_t last = 0;
    int before = bench_team(threads);
    if (most > layer->out) most = layer->out;
    for (size_t i = 0; i < sizeof blocks / sizeof blocks[0]; i++) {
        size_t block = blocks[i] < most ? blocks[i] : most;
        if (block == last) break;
        last = block;
        bench_bare *bare = in_blocks(layer, block);
        double seconds = bare ? seconds_of(bare) : -1;
        bool better = seconds >= 0 && (!best || seconds < best_seconds);
        if (better) best_seconds = seconds;
        bench_bare_free(better ? best : bare);
        if (better) best = bare;
    }
    (void)bench_team(before);
    return best;
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
