/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in tiles of scores that are computed, used and discarded (Dao et al.,
 * "FlashAttention", 2022). Short sequences need neither tiles nor the engine.
 *
 * Forward, a unit of work is a block of queries of one head. Backward, it is all heads of one
 * sequence that share keys and values, in order, because they add to the same gradients. One thread
 * processes a unit, and tiles depend only on sizes. So results do not depend on the number of
 * threads.
 *
 * Of one head, a tile of scores is up to QUERIES tokens by up to KEYS earlier ones, made by one
 * product of queries (times 1 / sqrt(size), copied) and keys. Forward: the exponentials of a tile
 * take its place, over the largest score so far; what was summed before is scaled down where a
 * larger one comes. Backward: the probabilities of a tile come back from the log-sums.
 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/elementary.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "learn/softmax.h"
#include "model/layers.h"
#include "model/layers_product.h"
#include "model/layers_vec.h"

enum {
    QUERIES = 128,   /* maximum rows of a tile */
    KEYS = 512,      /* maximum columns of a tile */
    KEYS_BACK = 128, /* the same for backward, where half of each diagonal tile is wasted */
    SMALL = 1 << 17, /* with fewer multiplications, plain loops are faster than the engine */
    SHORT = 64,      /* maximum length of a sequence without tiles */
    SHORT_ROWS = EMBLA_VEC_ROWS, /* rows processed at once for them */
    STACK = 4096                 /* numbers that need no allocation */
};

/* Shared by all tiles of a call. */
typedef struct {
    size_t length, queries, keys; /* tokens; rows and columns of a tile */
    size_t q_stride, kv_stride, out_stride;
    double scale;
} head_job;

/* Tokens query .. query+queries-1 with positions key .. key+keys-1. */
typedef struct {
    bool engine;
    bool all; /* no masking: every row uses every key */
    size_t size, query, queries, key, keys;
    size_t total; /* keys of all tiles */
} tile_of;

/* Shared by all heads of short sequences. Rows of numbers are `wide` numbers apart, rows of scores
 * `keys`; both are multiples of EMBLA_VEC. There are `rows` rows. */
typedef struct {
    size_t length, size, rows, wide, keys;
    size_t q_stride, kv_stride, out_stride;
    double scale;
} short_job;

/* How many scores of a row are not masked. */
static inline size_t visible_keys(const tile_of *tile, size_t row)
{
    size_t most = tile->query + row + 1; /* positions 0 .. query + row */
    if (tile->all) return tile->keys;
    if (most <= tile->key) return 0;
    return most - tile->key < tile->keys ? most - tile->key : tile->keys;
}

/* Goes to the next tile of a backward pass: for each block of keys, all blocks of queries that see
 * it. A tile without keys is before the first. Returns false after the last. */
static bool next_tile(const head_job *job, tile_of *tile)
{
    bool begins = tile->keys == 0;
    tile->query += tile->queries;
    if (begins || tile->query >= job->length) {
        tile->key = begins ? 0 : tile->key + job->keys;
        if (tile->key >= job->length) return false;
        tile->query = tile->key / job->queries * job->queries;
    }
    size_t queries = job->length - tile->query, keys = job->length - tile->key;
    tile->queries = queries < job->queries ? queries : job->queries;
    tile->keys = keys < job->keys ? keys : job->keys;
    return true;
}

/* ---- tiles, forward ---- */

/* One head of one sequence. */
typedef struct {
    const float *q, *k, *v, *out, *dout, *stats;
    float *dq, *dk, *dv;
    float *inner;       /* dout . out of each token */
    float *made, *sums; /* forward: out and stats */
} one_head;

/* Copies queries x size numbers of q, times scale, without gaps. */
static void scale_queries(const tile_of *tile, const float *q, size_t stride, float scale,
                          float *out)
{
    for (size_t r = 0; r < tile->queries; r++)
        for (size_t i = 0; i < tile->size; i++) out[r * tile->size + i] = q[r * stride + i] * scale;
}

/* scores = queries times keys transposed. */
static embla_status scores_f32(const tile_of *tile, const float *queries, size_t q_stride,
                               const float *keys, size_t kv_stride, float *scores)
{
    embla_plain_product p = {.m = tile->queries,
                             .n = tile->keys,
                             .k = tile->size,
                             .a = queries,
                             .b = keys,
                             .a_stride = q_stride,
                             .b_stride = kv_stride,
                             .out = scores,
                             .out_stride = tile->keys,
                             .form = EMBLA_PRODUCT_A_BT};
    return embla_product_either(tile->engine, &p);
}

/* Subtracts base[row] from each row. Masked scores become -infinity, so their exponential is 0. */
EMBLA_BODY void lessen_body(const tile_of *tile, const float *base, float *scores)
{
    for (size_t r = 0; r < tile->queries; r++) {
        float *row = scores + r * tile->keys, less = base[r];
        size_t n = visible_keys(tile, r);
        for (size_t i = 0; i < n; i++) row[i] -= less;
        for (size_t i = n; i < tile->keys; i++) row[i] = -INFINITY;
    }
}
EMBLA_ISA_FUNCTION(void, lessen, (const tile_of *tile, const float *base, float *scores),
                   lessen_body(tile, base, scores);)

/* Updates `most`, the largest score so far. If it grows, sum and out are scaled down. */
static void follow_most(const tile_of *tile, const float *scores, float *most, double *sum,
                        float *out, size_t out_stride)
{
    for (size_t r = 0; r < tile->queries; r++) {
        float here = embla_softmax_max(scores + r * tile->keys, visible_keys(tile, r)),
              less = most[r];
        if (tile->key == 0) {
            most[r] = here;
            sum[r] = 0.0;
        } else if (here > less) {
            embla_softmax_exp(&less, 1, here, &less);
            for (size_t i = 0; i < tile->size; i++) out[r * out_stride + i] *= less;
            sum[r] *= (double)less;
            most[r] = here;
        }
    }
}

/* Replaces the tile's scores by exponentials relative to the largest so far, and adds them to
 * sum. */
static void raise_tile(const tile_of *tile, float *scores, float *most, double *sum, float *out,
                       size_t out_stride)
{
    follow_most(tile, scores, most, sum, out, out_stride);
    EMBLA_PICK(lessen)(tile, most, scores);
    embla_softmax_exp(scores, tile->queries * tile->keys, 0, scores);
    for (size_t r = 0; r < tile->queries; r++)
        sum[r] += embla_softmax_plain_sum(scores + r * tile->keys, tile->keys);
}

/* Divides the rows of out by their sums. stats may be NULL. */
static void finish_block(const tile_of *tile, const float *most, const double *sums, float *out,
                         size_t out_stride, float *stats)
{
    for (size_t r = 0; r < tile->queries; r++) {
        float share = (float)(1.0 / sums[r]);
        for (size_t i = 0; i < tile->size; i++) out[r * out_stride + i] *= share;
        if (stats) stats[r] = (float)((double)most[r] + embla_log(sums[r]));
    }
}

/* A block of queries with all keys up to its last. space: see call_of. */
static embla_status forward_block_f32(const head_job *job, tile_of tile, const float *q,
                                      const float *k, const float *v, float *out, float *stats,
                                      float *space)
{
    size_t size = tile.size, total = tile.total;
    float *queries = space, *scores = queries + job->queries * size;
    float *most = scores + job->queries * job->keys;
    double sums[QUERIES] = {0};
    scale_queries(&tile, q, job->q_stride, (float)job->scale, queries);
    for (tile.key = 0; tile.key < total; tile.key += job->keys) {
        tile.keys = total - tile.key < job->keys ? total - tile.key : job->keys;
        EMBLA_TRY(scores_f32(&tile, queries, size, k + tile.key * job->kv_stride, job->kv_stride,
                             scores));
        raise_tile(&tile, scores, most, sums, out, job->out_stride);
        embla_plain_product p = {.m = tile.queries,
                                 .n = size,
                                 .k = tile.keys,
                                 .a = scores,
                                 .b = v + tile.key * job->kv_stride,
                                 .a_stride = tile.keys,
                                 .b_stride = job->kv_stride,
                                 .out = out,
                                 .out_stride = job->out_stride,
                                 .form = EMBLA_PRODUCT_A_B,
                                 .add = tile.key > 0};
        EMBLA_TRY(embla_product_either(tile.engine, &p));
    }
    finish_block(&tile, most, sums, out, job->out_stride, stats);
    return EMBLA_OK;
}

/* ---- tiles, backward ---- */

/* a . b in double, rounded once. Groups of 16 numbers go to 16 partial sums, which are added as a
 * tree. The remaining numbers are added in order. */
EMBLA_BODY float dot(const float *a, const float *b, size_t n)
{
    embla_vec_f64 low = {0}, high = {0};
    double sums[EMBLA_SUMS];
    size_t i = 0;
    for (; i + EMBLA_VEC <= n; i += EMBLA_VEC) {
        low += EMBLA_WIDEN(a + i) * EMBLA_WIDEN(b + i);
        high += EMBLA_WIDEN(a + i + 8) * EMBLA_WIDEN(b + i + 8);
    }
    *(embla_vec_f64 *)sums = low;
    *(embla_vec_f64 *)(sums + 8) = high;
    double sum = embla_add_tree(sums);
    for (; i < n; i++) sum += (double)a[i] * (double)b[i];
    return (float)sum;
}

/* inner[t] = dout . out of token t. */
EMBLA_BODY void inner_products_body(const head_job *job, const float *dout, const float *out,
                                    size_t size, float *inner)
{
    for (size_t t = 0; t < job->length; t++)
        inner[t] = dot(dout + t * job->out_stride, out + t * job->out_stride, size);
}
EMBLA_ISA_FUNCTION(void, inner_products,
                   (const head_job *job, const float *dout, const float *out, size_t size,
                    float *inner),
                   inner_products_body(job, dout, out, size, inner);)

/* Replaces steps, the gradients of probabilities, by those of scores: p * (step - inner). */
EMBLA_BODY void step_body(const tile_of *tile, const float *inner, const float *p, float *steps)
{
    for (size_t r = 0; r < tile->queries; r++) {
        const float *restrict row = p + r * tile->keys;
        float *restrict step = steps + r * tile->keys, less = inner[r];
        for (size_t i = 0; i < tile->keys; i++) step[i] = row[i] * (step[i] - less);
    }
}
EMBLA_ISA_FUNCTION(void, step_tile,
                   (const tile_of *tile, const float *inner, const float *p, float *steps),
                   step_body(tile, inner, p, steps);)

/* Adds the contribution of one tile to dq, dk, dv. */
static embla_status backward_tile_f32(const head_job *job, const tile_of *tile, const one_head *h,
                                      float *space)
{
    size_t size = tile->size, qs = job->q_stride, ks = job->kv_stride, os = job->out_stride;
    float *queries = space, *scores = queries + job->queries * size;
    float *steps = scores + job->queries * job->keys;
    const float *dout = h->dout + tile->query * os, *k = h->k + tile->key * ks;
    embla_plain_product p = {.a_stride = tile->keys, .add = true};
    scale_queries(tile, h->q + tile->query * qs, qs, (float)job->scale, queries);
    EMBLA_TRY(scores_f32(tile, queries, size, k, ks, scores));
    EMBLA_TRY(scores_f32(tile, dout, os, h->v + tile->key * ks, ks, steps));
    EMBLA_PICK(lessen)(tile, h->stats + tile->query, scores);
    embla_softmax_exp(scores, tile->queries * tile->keys, 0, scores);
    EMBLA_PICK(step_tile)(tile, h->inner + tile->query, scores, steps);
    p.m = tile->keys, p.n = size, p.k = tile->queries, p.form = EMBLA_PRODUCT_AT_B,
    p.out_stride = ks;
    p.a = scores, p.b = dout, p.b_stride = os, p.out = h->dv + tile->key * ks;
    EMBLA_TRY(embla_product_either(tile->engine, &p));
    p.a = steps, p.b = queries, p.b_stride = size, p.out = h->dk + tile->key * ks;
    EMBLA_TRY(embla_product_either(tile->engine, &p));
    p.m = tile->queries, p.k = tile->keys, p.form = EMBLA_PRODUCT_A_B, p.out_stride = qs;
    p.b = k, p.b_stride = ks, p.out = h->dq + tile->query * qs;
    return embla_product_either(tile->engine, &p);
}

static void clear_rows(float *x, size_t tokens, size_t stride, size_t size)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < size; i++) x[t * stride + i] = 0;
}

static void scale_rows(float *x, size_t tokens, size_t stride, size_t size, float scale)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < size; i++) x[t * stride + i] *= scale;
}

/* One head of a group; dk and dv are added to, dq is written. */
static embla_status backward_head_f32(const head_job *job, tile_of tile, const one_head *h,
                                      float *space)
{
    clear_rows(h->dq, job->length, job->q_stride, tile.size);
    EMBLA_PICK(inner_products)(job, h->dout, h->out, tile.size, h->inner);
    while (next_tile(job, &tile)) EMBLA_TRY(backward_tile_f32(job, &tile, h, space));
    scale_rows(h->dq, job->length, job->q_stride, tile.size, (float)job->scale);
    return EMBLA_OK;
}

#include "model/layers_attention_short_body.h"

/* ---- a call ---- */

typedef struct {
    const embla_layer_way *way;
    const embla_attention *a;
    const float *dout;
    float *dq, *dk, *dv;
    head_job job;
    tile_of tile;
    size_t units, blocks; /* units of work; blocks of queries */
    size_t group;         /* heads that share keys and values */
    size_t each;          /* numbers of scratch space for each slot */
    short_job small;
    bool bf16; /* factors are rounded */
    /* in bf16, head after head: (B, heads, T, size) and (B, kv_heads, T, size); or NULL */
    uint16_t *q, *k, *v, *dout16;
} call;

static size_t blocks_of(size_t n, size_t size)
{
    return n / size + (n % size > 0);
}

static short_job short_of(const embla_attention *a)
{
    return (short_job){.length = a->length,
                       .size = a->size,
                       .rows = blocks_of(a->length, SHORT_ROWS) * SHORT_ROWS,
                       .wide = blocks_of(a->size, EMBLA_VEC) * EMBLA_VEC,
                       .keys = blocks_of(a->length, EMBLA_VEC) * EMBLA_VEC,
                       .q_stride = a->q_stride,
                       .kv_stride = a->kv_stride,
                       .out_stride = a->heads * a->size,
                       .scale = 1.0 / sqrt((double)a->size)};
}

static call call_of(const embla_layer_way *way, const embla_attention *a, size_t keys)
{
    call c = {.way = way, .a = a, .group = a->heads / a->kv_heads};
    c.job = (head_job){.length = a->length,
                       .queries = a->length < QUERIES ? a->length : QUERIES,
                       .keys = a->length < keys ? a->length : keys,
                       .q_stride = a->q_stride,
                       .kv_stride = a->kv_stride,
                       .out_stride = a->heads * a->size,
                       .scale = 1.0 / sqrt((double)a->size)};
    c.tile = (tile_of){.size = a->size};
    c.tile.engine = a->length > SHORT && c.job.queries * c.job.keys * a->size > SMALL &&
                    embla_layer_has_engine(way);
    c.bf16 = c.tile.engine && way->compute == EMBLA_BF16 && embla_engine_has_bf16();
    c.small = short_of(a);
    c.blocks = blocks_of(a->length, c.job.queries);
    c.each = c.job.queries * (a->size + (c.bf16 ? 3 : 2) * c.job.keys + 1) + a->length;
    c.each = blocks_of(c.each, EMBLA_VEC) * EMBLA_VEC;
    return c;
}

#include "model/layers_attention_bf16_body.h"

typedef embla_status unit_fn(const call *c, size_t unit, float *space);

typedef struct {
    const call *call;
    unit_fn *f;
    float *space; /* call->each numbers for each slot */
} units_job;

static embla_status run_units(void *job, size_t first, size_t end, size_t slot)
{
    const units_job *u = job;
    float *space = u->space + slot * u->call->each;
    for (size_t unit = first; unit < end; unit++) EMBLA_TRY(u->f(u->call, unit, space));
    return EMBLA_OK;
}

/* work is the number of multiplications of all units. */
static embla_status run(call *c, unit_fn *f, size_t work)
{
    float stack[STACK];
    embla_layout layout = {0};
    embla_scratch_use use;
    int threads = embla_threads_for(c->way->threads, work);
    if ((size_t)threads > c->units) threads = (int)c->units;
    units_job u = {.call = c, .f = f, .space = stack};
    if (threads <= 1 && c->each <= STACK && !c->bf16)
        return embla_share(1, c->units, 1, run_units, &u);
    (void)embla_layout_add(&layout, c->each * (size_t)threads, sizeof(float));
    size_t rounded = embla_layout_add(&layout, c->bf16 ? rounded_numbers(c) : 0, sizeof(uint16_t));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the tiles of attention do not fit in memory");
    EMBLA_TRY(embla_scratch_begin(c->way->scratch, layout.bytes, "tiles of attention", &use));
    u.space = use.memory;
    embla_status status = EMBLA_OK;
    if (c->bf16)
        status = round_heads(c, threads, (uint16_t *)(void *)((char *)use.memory + rounded));
    if (status == EMBLA_OK) status = embla_share(threads, c->units, 1, run_units, &u);
    embla_scratch_end(&use);
    return status;
}

/* ---- forward ---- */

/* Later blocks have more keys, so they are started first. */
static embla_status forward_unit(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    size_t heads = a->batch * a->heads, b = unit % heads / a->heads, h = unit % a->heads;
    tile_of tile = c->tile;
    tile.query = (c->blocks - 1 - unit / heads) * c->job.queries;
    size_t left = a->length - tile.query, first = b * a->length;
    tile.queries = left < c->job.queries ? left : c->job.queries;
    tile.total = tile.query + tile.queries;
    size_t q = (first + tile.query) * a->q_stride + h * a->size;
    size_t k = first * a->kv_stride + h / c->group * a->size;
    size_t out = (first + tile.query) * c->job.out_stride + h * a->size;
    size_t stats = (b * a->heads + h) * a->length + tile.query;
    if (c->bf16) return forward_block_bf16(c, tile, b, h, a->out + out, a->stats + stats, space);
    return forward_block_f32(&c->job, tile, a->q + q, a->k + k, a->v + k, a->out + out,
                             a->stats + stats, space);
}

/* ---- backward ---- */

static embla_status group_f32(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    size_t b = unit / a->kv_heads, kv = unit % a->kv_heads, first = b * a->length;
    size_t k = first * a->kv_stride + kv * a->size;
    float *dk = c->dk + k, *dv = c->dv + k;
    clear_rows(dk, a->length, a->kv_stride, a->size);
    clear_rows(dv, a->length, a->kv_stride, a->size);
    for (size_t h = kv * c->group; h < (kv + 1) * c->group; h++) {
        size_t q = first * a->q_stride + h * a->size;
        size_t out = first * c->job.out_stride + h * a->size;
        one_head head = {.q = a->q + q,
                         .k = a->k + k,
                         .v = a->v + k,
                         .out = a->out + out,
                         .dout = c->dout + out,
                         .stats = a->stats + (b * a->heads + h) * a->length,
                         .dq = c->dq + q,
                         .dk = dk,
                         .dv = dv,
                         .inner = space};
        EMBLA_TRY(backward_head_f32(&c->job, c->tile, &head, space + a->length));
    }
    return EMBLA_OK;
}

static embla_status backward_unit(const call *c, size_t unit, float *space)
{
    return c->bf16 ? group_bf16(c, unit, space) : group_f32(c, unit, space);
}

/* ---- short sequences ---- */

static embla_status short_unit(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    size_t b = unit / a->heads, h = unit % a->heads, first = b * a->length;
    size_t k = first * a->kv_stride + h / c->group * a->size;
    one_head head = {.q = a->q + first * a->q_stride + h * a->size,
                     .k = a->k + k,
                     .v = a->v + k,
                     .made = a->out + first * c->small.out_stride + h * a->size,
                     .sums = a->stats + unit * a->length};
    EMBLA_PICK(short_forward)(&c->small, &head, space);
    return EMBLA_OK;
}

static embla_status short_group(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    size_t b = unit / a->kv_heads, kv = unit % a->kv_heads, first = b * a->length;
    size_t k = first * a->kv_stride + kv * a->size;
    for (size_t i = 0; i < c->group; i++) {
        bool last = i + 1 == c->group;
        size_t h = kv * c->group + i, q = first * a->q_stride + h * a->size;
        size_t out = first * c->small.out_stride + h * a->size;
        one_head head = {.q = a->q + q,
                         .k = a->k + k,
                         .v = a->v + k,
                         .out = a->out + out,
                         .dout = c->dout + out,
                         .stats = a->stats + (b * a->heads + h) * a->length,
                         .dq = c->dq + q,
                         .dk = last ? c->dk + k : NULL,
                         .dv = last ? c->dv + k : NULL};
        EMBLA_PICK(short_back)(&c->small, &head, i > 0, space);
    }
    return EMBLA_OK;
}

/* Numbers needed: q, v, transposed k, a few rows of scores and of the result. Backward: dk, dv, q,
 * k, dout, transposed k and v, all probabilities and their gradients. */
static size_t short_forward_space(const short_job *s)
{
    return (2 * s->rows + SHORT_ROWS) * s->wide + (s->size + SHORT_ROWS) * s->keys;
}

static size_t short_back_space(const short_job *s)
{
    return 5 * s->rows * s->wide + 2 * (s->size + s->rows) * s->keys;
}

/* ---- forward and backward ---- */

embla_status embla_attention_forward(const embla_layer_way *way, const embla_attention *a)
{
    if (a->batch == 0 || a->length == 0 || a->heads == 0 || a->size == 0) return EMBLA_OK;
    size_t work = a->batch * a->heads * a->length * a->length / 2 * a->size;
    call c = call_of(way, a, KEYS);
    if (a->length <= SHORT) {
        c.units = a->batch * a->heads;
        c.each = short_forward_space(&c.small);
        return run(&c, short_unit, work);
    }
    c.units = a->batch * a->heads * c.blocks;
    return run(&c, forward_unit, work);
}

embla_status embla_attention_backward(const embla_layer_way *way, const embla_attention *a,
                                      const float *dout, float *dq, float *dk, float *dv)
{
    if (a->batch == 0 || a->length == 0 || a->heads == 0 || a->size == 0) return EMBLA_OK;
    size_t work = a->batch * a->heads * a->length * a->length * 5 / 4 * a->size;
    call c = call_of(way, a, KEYS_BACK);
    c.dout = dout, c.dq = dq, c.dk = dk, c.dv = dv;
    c.units = a->batch * a->kv_heads;
    if (c.bf16) c.each += 3 * a->length * a->size; /* gradients of a head */
    if (a->length > SHORT) return run(&c, backward_unit, work);
    c.each = short_back_space(&c.small);
    return run(&c, short_group, work);
}

/* ---- one new token ---- */

/* The heads that share keys and values are the rows of one tile without masking. */
static embla_status one_unit(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    tile_of tile = c->tile;
    size_t k = unit * a->size;
    for (size_t first = 0; first < c->group; first += c->job.queries) {
        size_t q = (unit * c->group + first) * a->size;
        tile.queries = c->group - first < c->job.queries ? c->group - first : c->job.queries;
        EMBLA_TRY(forward_block_f32(&c->job, tile, a->q + q, a->k + k, a->v + k, a->out + q, NULL,
                                    space));
    }
    return EMBLA_OK;
}

embla_status embla_attention_one(const embla_layer_way *way, const float *q, const float *keys,
                                 const float *values, size_t count, size_t heads, size_t kv_heads,
                                 size_t size, float *out)
{
    const embla_layer_way plain = {.threads = way->threads};
    embla_attention a = {.batch = 1,
                         .length = count,
                         .heads = heads,
                         .kv_heads = kv_heads,
                         .size = size,
                         .q = q,
                         .k = keys,
                         .v = values,
                         .q_stride = size,
                         .kv_stride = kv_heads * size,
                         .out = out};
    if (count == 0 || heads == 0 || size == 0) return EMBLA_OK;
    call c = {.way = &plain, .a = &a, .group = heads / kv_heads, .units = kv_heads};
    c.job = (head_job){.queries = c.group < QUERIES ? c.group : QUERIES,
                       .keys = count < KEYS ? count : KEYS,
                       .q_stride = size,
                       .kv_stride = a.kv_stride,
                       .out_stride = size,
                       .scale = 1.0 / sqrt((double)size)};
    c.tile = (tile_of){.size = size, .all = true, .total = count};
    c.each = blocks_of(c.job.queries * (size + c.job.keys + 1), EMBLA_VEC) * EMBLA_VEC;
    return run(&c, one_unit, count * heads * size * 2);
}
