/* SPDX-License-Identifier: Apache-2.0 */
/* Products of a chunk of tokens with many rows, forward and backward, cut into lanes of rows. Eight
 * lanes keep eight threads busy. Each lane needs its own part of the gradient of hidden, so more
 * lanes would cost more than they save.
 */
#include "learn/lanes.h"

#include "base/failure.h"
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
static int team_for(const embla_lanes *lanes, size_t count)
{
    int team = embla_threads_for(lanes->threads, count * lanes->n * lanes->dim / 2);
    size_t most = embla_lanes_of(lanes->n);
    return (size_t)team > most ? (int)most : team;
}

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

embla_status embla_lanes_forward(const embla_lanes *lanes, const float *x, size_t count)
{
    embla_failure failed = EMBLA_NO_FAILURE;
    int team = team_for(lanes, count);
    (void)team; /* without OpenMP */
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
    for (size_t lane = 0; lane < embla_lanes_of(lanes->n); lane++)
        embla_failure_keep(&failed, forward_lane(lanes, x, count, lane));
    return embla_failure_say(&failed);
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

/* Adds the parts in double and rounds once. */
static void add_parts(const embla_lanes *lanes, size_t count, float *dx)
{
    size_t n = count * lanes->dim, parts = embla_lanes_of(lanes->n);
    int team = embla_threads_for(lanes->threads, n * parts * sizeof(float));
    (void)team;
#pragma omp parallel for num_threads(team) schedule(static)
    for (size_t i = 0; i < n; i++) {
        double sum = (double)lanes->parts[i];
        for (size_t part = 1; part < parts; part++) sum += (double)lanes->parts[part * n + i];
        dx[i] = (float)sum;
    }
}

embla_status embla_lanes_backward(const embla_lanes *lanes, const float *x, size_t count, float *dx)
{
    embla_failure failed = EMBLA_NO_FAILURE;
    int team = team_for(lanes, 2 * count);
    (void)team;
#pragma omp parallel for num_threads(team) schedule(dynamic, 1)
    for (size_t lane = 0; lane < embla_lanes_of(lanes->n); lane++)
        embla_failure_keep(&failed, backward_lane(lanes, x, count, lane));
    EMBLA_TRY(embla_failure_say(&failed));
    if (lanes->parts) add_parts(lanes, count, dx);
    return EMBLA_OK;
}
