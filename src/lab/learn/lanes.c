/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a chunk of tokens with many rows, forward and backward, cut into lanes of rows. Eight
 * lanes keep eight threads busy. Each lane needs its own part of the gradient of hidden, so more
 * lanes would cost more than they save.
 */
#include "learn/lanes.h"

#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"

enum {
    LANES = 8,
    LANE_LEAST = 64,      /* minimum rows: a smaller product is not worth a call of the engine */
    LANE_WHOLE = 16,      /* rows of a lane are a multiple of this */
    CHUNK_MOST = 512,     /* tokens */
    FLOATS_MOST = 4 << 20 /* maximum floats of logits, and of parts */
};

/* Rows of a lane; the last may have fewer. */
static size_t lane_rows(size_t n)
{
    size_t rows = n / LANES + (n % LANES > 0);
    if (rows < LANE_LEAST) return LANE_LEAST;
    return (rows + LANE_WHOLE - 1) / LANE_WHOLE * LANE_WHOLE;
}

size_t embla_lanes_of(size_t n)
{
    size_t rows = lane_rows(n);
    return n / rows + (n % rows > 0);
}

size_t embla_lanes_chunk(size_t n, size_t dim)
{
    size_t widest = embla_lanes_of(n) * dim, chunk;
    if (n > widest) widest = n;
    chunk = FLOATS_MOST / widest;
    if (chunk > CHUNK_MOST) return CHUNK_MOST;
    return chunk > 0 ? chunk : 1;
}

/* One thread for about ten microseconds of work, which embla_threads_for takes 128 KiB to be. */
static int threads_for(const embla_lanes *lanes, size_t count)
{
    return embla_threads_for(lanes->threads, count * lanes->n * lanes->dim / 2);
}

/* A chunk. */
typedef struct {
    const embla_lanes *lanes;
    const float *x; /* its vectors, and how many */
    size_t count;
    float *dx; /* for backward */
} chunk;

static embla_status forward_lane(const embla_lanes *lanes, const float *x, size_t count,
                                 size_t lane)
{
    size_t rows = lane_rows(lanes->n), first = lane * rows;
    embla_product product = {.m = count,
                             .n = lanes->n - first < rows ? lanes->n - first : rows,
                             .k = lanes->dim,
                             .a = x,
                             .b = lanes->rows + first * lanes->stride,
                             .a_stride = lanes->dim,
                             .b_stride = lanes->stride,
                             .out = lanes->logits + first,
                             .out_stride = lanes->n,
                             .form = EMBLA_PRODUCT_A_BT};
    return embla_engine_product(&product);
}

static embla_status forward_lanes(void *job, size_t first, size_t end, size_t slot)
{
    const chunk *c = job;
    (void)slot;
    for (size_t lane = first; lane < end; lane++)
        EMBLA_TRY(forward_lane(c->lanes, c->x, c->count, lane));
    return EMBLA_OK;
}

embla_status embla_lanes_forward(const embla_lanes *lanes, const float *x, size_t count)
{
    const chunk c = {.lanes = lanes, .x = x, .count = count};
    return embla_share(threads_for(lanes, count), embla_lanes_of(lanes->n), 1, forward_lanes, &c);
}

static embla_status backward_lane(const embla_lanes *lanes, const float *x, size_t count,
                                  size_t lane)
{
    size_t rows = lane_rows(lanes->n), first = lane * rows;
    size_t mine = lanes->n - first < rows ? lanes->n - first : rows;
    embla_product to_rows = {.m = mine,
                             .n = lanes->dim,
                             .k = count,
                             .a = lanes->logits + first,
                             .b = x,
                             .a_stride = lanes->n,
                             .b_stride = lanes->dim,
                             .out = lanes->gradient ? lanes->gradient + first * lanes->dim : NULL,
                             .out_stride = lanes->dim,
                             .form = EMBLA_PRODUCT_AT_B,
                             .add = true};
    embla_product to_hidden = {.m = count,
                               .n = lanes->dim,
                               .k = mine,
                               .a = lanes->logits + first,
                               .b = lanes->rows + first * lanes->stride,
                               .a_stride = lanes->n,
                               .b_stride = lanes->stride,
                               .out =
                                   lanes->parts ? lanes->parts + lane * count * lanes->dim : NULL,
                               .out_stride = lanes->dim,
                               .form = EMBLA_PRODUCT_A_B};
    if (to_rows.out) EMBLA_TRY(embla_engine_product(&to_rows));
    if (to_hidden.out) EMBLA_TRY(embla_engine_product(&to_hidden));
    return EMBLA_OK;
}

static embla_status backward_lanes(void *job, size_t first, size_t end, size_t slot)
{
    const chunk *c = job;
    (void)slot;
    for (size_t lane = first; lane < end; lane++)
        EMBLA_TRY(backward_lane(c->lanes, c->x, c->count, lane));
    return EMBLA_OK;
}

/* Adds the parts in double and rounds once. */
static embla_status add_parts(void *job, size_t first, size_t end, size_t slot)
{
    const chunk *c = job;
    const float *all = c->lanes->parts;
    size_t n = c->count * c->lanes->dim, parts = embla_lanes_of(c->lanes->n);
    (void)slot;
    for (size_t i = first; i < end; i++) {
        double sum = (double)all[i];
        for (size_t part = 1; part < parts; part++) sum += (double)all[part * n + i];
        c->dx[i] = (float)sum;
    }
    return EMBLA_OK;
}

embla_status embla_lanes_backward(const embla_lanes *lanes, const float *x, size_t count, float *dx)
{
    const chunk c = {.lanes = lanes, .x = x, .count = count, .dx = dx};
    size_t n = count * lanes->dim, parts = embla_lanes_of(lanes->n);
    EMBLA_TRY(embla_share(threads_for(lanes, 2 * count), parts, 1, backward_lanes, &c));
    if (!lanes->parts) return EMBLA_OK;
    return embla_share(embla_threads_for(lanes->threads, n * parts * sizeof(float)), n, 0,
                       add_parts, &c);
}
