/* SPDX-License-Identifier: Apache-2.0 */
/* Causal attention in tiles of scores that are computed, used and discarded (Dao et al.,
 * "FlashAttention", 2022). Short sequences need neither tiles nor the engine.
 *
 * Forward, a unit of work is a block of queries of one head. Backward, it is all heads of one
 * sequence that share keys and values, in order, because they add to the same gradients. One thread
 * processes a unit, and tiles depend only on sizes. So results do not depend on the number of
 * threads.
 */
#include <math.h>
#include <string.h>

#include "base/dtype.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "learn/softmax.h"
#include "model/layers.h"
#include "model/layers_attention_rows.h"
#include "model/layers_product.h"
#include "model/real.h"

enum {
    QUERIES = 128,   /* maximum rows of a tile */
    KEYS = 512,      /* maximum columns of a tile */
    KEYS_BACK = 128, /* the same for backward, where half of each diagonal tile is wasted */
    SMALL = 1 << 17, /* with fewer multiplications, plain loops are faster than the engine */
    SHORT = 64,      /* maximum length of a sequence without tiles */
    SHORT_ROWS = 4,  /* rows processed at once for them */
    STACK = 4096     /* numbers that need no allocation */
};

/* Shared by all tiles of a call. */
typedef struct {
    size_t length, queries, keys; /* tokens; rows and columns of a tile */
    size_t q_stride, kv_stride, out_stride;
    double scale;
} head_job;

/* Tokens query .. query+queries-1 with positions key .. key+keys-1. */
typedef struct {
    embla_gpt_precision precision;
    bool engine;
    bool all; /* no masking: every row uses every key */
    size_t size, query, queries, key, keys;
    size_t total; /* keys of all tiles */
} tile_of;

/* Shared by all heads of short sequences. Rows of numbers are `wide` numbers apart, rows of scores
 * `keys`; both are multiples of a VEC. There are `rows` rows. */
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

/* For rows that may be long. */
#define row_max_f32 embla_softmax_max
#define row_exp_f32 embla_softmax_exp
#define row_sum_f32 embla_softmax_plain_sum
#define row_max_f64 embla_max_row_f64
#define row_exp_f64 embla_exp_row_f64
#define row_sum_f64 embla_sum_row_f64

#define EMBLA_REAL 32
#include "model/layers_attention_body.h"
#include "model/layers_attention_short_body.h"
#undef EMBLA_REAL
#define EMBLA_REAL 64
#include "model/layers_attention_body.h"
#include "model/layers_attention_short_body.h"
#undef EMBLA_REAL

/* ---- a call ---- */

typedef struct {
    const embla_layer_way *way;
    const embla_attention *a;
    const void *dout;
    void *dq, *dk, *dv;
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

static short_job short_of(const embla_layer_way *way, const embla_attention *a)
{
    size_t vec = 64 / embla_real_bytes(way->precision);
    return (short_job){.length = a->length,
                       .size = a->size,
                       .rows = blocks_of(a->length, SHORT_ROWS) * SHORT_ROWS,
                       .wide = blocks_of(a->size, vec) * vec,
                       .keys = blocks_of(a->length, vec) * vec,
                       .q_stride = a->q_stride,
                       .kv_stride = a->kv_stride,
                       .out_stride = a->heads * a->size,
                       .scale = 1.0 / sqrt((double)a->size)};
}

static call call_of(const embla_layer_way *way, const embla_attention *a, size_t keys)
{
    size_t unit = 64 / embla_real_bytes(way->precision);
    call c = {.way = way, .a = a, .group = a->heads / a->kv_heads};
    c.job = (head_job){.length = a->length,
                       .queries = a->length < QUERIES ? a->length : QUERIES,
                       .keys = a->length < keys ? a->length : keys,
                       .q_stride = a->q_stride,
                       .kv_stride = a->kv_stride,
                       .out_stride = a->heads * a->size,
                       .scale = 1.0 / sqrt((double)a->size)};
    c.tile = (tile_of){.precision = way->precision, .size = a->size};
    c.tile.engine = way->precision == EMBLA_GPT_F32 && a->length > SHORT &&
                    c.job.queries * c.job.keys * a->size > SMALL && embla_engine_has_products();
    c.bf16 = c.tile.engine && way->compute == EMBLA_BF16 && embla_engine_has_bf16();
    c.small = short_of(way, a);
    c.blocks = blocks_of(a->length, c.job.queries);
    c.each = c.job.queries * (a->size + (c.bf16 ? 3 : 2) * c.job.keys + 1) + a->length;
    c.each = (c.each + unit - 1) / unit * unit;
    return c;
}

#include "model/layers_attention_bf16_body.h"

typedef embla_status unit_fn(const call *c, size_t unit, char *space);

typedef struct {
    const call *call;
    unit_fn *f;
    char *space; /* call->each numbers for each slot */
} units_job;

static embla_status run_units(void *job, size_t first, size_t end, size_t slot)
{
    const units_job *u = job;
    char *space = u->space + slot * u->call->each * embla_real_bytes(u->call->way->precision);
    for (size_t unit = first; unit < end; unit++) EMBLA_TRY(u->f(u->call, unit, space));
    return EMBLA_OK;
}

/* work is the number of multiplications of all units. */
static embla_status run(call *c, unit_fn *f, size_t work)
{
    double stack[STACK];
    embla_layout layout = {0};
    embla_scratch_use use;
    int threads = embla_threads_for(c->way->threads, work);
    if ((size_t)threads > c->units) threads = (int)c->units;
    units_job u = {.call = c, .f = f, .space = (char *)stack};
    if (threads <= 1 && c->each <= STACK && !c->bf16)
        return embla_share(1, c->units, 1, run_units, &u);
    (void)embla_layout_add(&layout, c->each * (size_t)threads, embla_real_bytes(c->way->precision));
    size_t rounded = embla_layout_add(&layout, c->bf16 ? rounded_numbers(c) : 0, sizeof(uint16_t));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the tiles of attention do not fit in memory");
    EMBLA_TRY(embla_scratch_begin(c->way->scratch, layout.bytes, "tiles of attention", &use));
    u.space = use.memory;
    embla_status status = EMBLA_OK;
    if (c->bf16) status = round_heads(c, threads, (uint16_t *)(void *)(u.space + rounded));
    if (status == EMBLA_OK) status = embla_share(threads, c->units, 1, run_units, &u);
    embla_scratch_end(&use);
    return status;
}

/* ---- forward ---- */

/* Later blocks have more keys, so they are started first. */
static embla_status forward_unit(const call *c, size_t unit, char *space)
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
    if (c->bf16)
        return forward_block_bf16(c, tile, b, h, (float *)a->out + out, (float *)a->stats + stats,
                                  (float *)(void *)space);
    if (tile.precision == EMBLA_GPT_F64)
        return forward_block_f64(&c->job, tile, (const double *)a->q + q, (const double *)a->k + k,
                                 (const double *)a->v + k, (double *)a->out + out,
                                 (double *)a->stats + stats, (double *)(void *)space);
    return forward_block_f32(&c->job, tile, (const float *)a->q + q, (const float *)a->k + k,
                             (const float *)a->v + k, (float *)a->out + out,
                             (float *)a->stats + stats, (float *)(void *)space);
}

/* ---- backward ---- */

#define BACKWARD_UNIT(NAME, TYPE, HEAD, CLEAR, BACKWARD)                                           \
    static embla_status NAME(const call *c, size_t unit, TYPE *space)                              \
    {                                                                                              \
        const embla_attention *a = c->a;                                                           \
        size_t b = unit / a->kv_heads, kv = unit % a->kv_heads, first = b * a->length;             \
        size_t k = first * a->kv_stride + kv * a->size;                                            \
        TYPE *dk = (TYPE *)c->dk + k, *dv = (TYPE *)c->dv + k;                                     \
        CLEAR(dk, a->length, a->kv_stride, a->size);                                               \
        CLEAR(dv, a->length, a->kv_stride, a->size);                                               \
        for (size_t h = kv * c->group; h < (kv + 1) * c->group; h++) {                             \
            size_t q = first * a->q_stride + h * a->size;                                          \
            size_t out = first * c->job.out_stride + h * a->size;                                  \
            HEAD head = {.q = (const TYPE *)a->q + q,                                              \
                         .k = (const TYPE *)a->k + k,                                              \
                         .v = (const TYPE *)a->v + k,                                              \
                         .out = (const TYPE *)a->out + out,                                        \
                         .dout = (const TYPE *)c->dout + out,                                      \
                         .stats = (const TYPE *)a->stats + (b * a->heads + h) * a->length,         \
                         .dq = (TYPE *)c->dq + q,                                                  \
                         .dk = dk,                                                                 \
                         .dv = dv,                                                                 \
                         .inner = space};                                                          \
            EMBLA_TRY(BACKWARD(&c->job, c->tile, &head, space + a->length));                       \
        }                                                                                          \
        return EMBLA_OK;                                                                           \
    }
BACKWARD_UNIT(group_f32, float, head_f32, clear_f32, backward_head_f32)
BACKWARD_UNIT(group_f64, double, head_f64, clear_f64, backward_head_f64)

static embla_status backward_unit(const call *c, size_t unit, char *space)
{
    if (c->way->precision == EMBLA_GPT_F64) return group_f64(c, unit, (double *)(void *)space);
    if (c->bf16) return group_bf16(c, unit, (float *)(void *)space);
    return group_f32(c, unit, (float *)(void *)space);
}

/* ---- short sequences ---- */

#define SHORT_UNITS(TYPE, HEAD, FORWARD, BACK, FORWARD_UNIT, BACK_UNIT)                            \
    static void FORWARD_UNIT(const call *c, size_t unit, TYPE *space)                              \
    {                                                                                              \
        const embla_attention *a = c->a;                                                           \
        size_t b = unit / a->heads, h = unit % a->heads, first = b * a->length;                    \
        size_t k = first * a->kv_stride + h / c->group * a->size;                                  \
        HEAD head = {.q = (const TYPE *)a->q + first * a->q_stride + h * a->size,                  \
                     .k = (const TYPE *)a->k + k,                                                  \
                     .v = (const TYPE *)a->v + k,                                                  \
                     .made = (TYPE *)a->out + first * c->small.out_stride + h * a->size,           \
                     .sums = (TYPE *)a->stats + unit * a->length};                                 \
        EMBLA_PICK(FORWARD)(&c->small, &head, space);                                              \
    }                                                                                              \
    static void BACK_UNIT(const call *c, size_t unit, TYPE *space)                                 \
    {                                                                                              \
        const embla_attention *a = c->a;                                                           \
        size_t b = unit / a->kv_heads, kv = unit % a->kv_heads, first = b * a->length;             \
        size_t k = first * a->kv_stride + kv * a->size;                                            \
        for (size_t i = 0; i < c->group; i++) {                                                    \
            bool last = i + 1 == c->group;                                                         \
            size_t h = kv * c->group + i, q = first * a->q_stride + h * a->size;                   \
            size_t out = first * c->small.out_stride + h * a->size;                                \
            HEAD head = {.q = (const TYPE *)a->q + q,                                              \
                         .k = (const TYPE *)a->k + k,                                              \
                         .v = (const TYPE *)a->v + k,                                              \
                         .out = (const TYPE *)a->out + out,                                        \
                         .dout = (const TYPE *)c->dout + out,                                      \
                         .stats = (const TYPE *)a->stats + (b * a->heads + h) * a->length,         \
                         .dq = (TYPE *)c->dq + q,                                                  \
                         .dk = last ? (TYPE *)c->dk + k : NULL,                                    \
                         .dv = last ? (TYPE *)c->dv + k : NULL};                                   \
            EMBLA_PICK(BACK)(&c->small, &head, i > 0, space);                                      \
        }                                                                                          \
    }
SHORT_UNITS(float, head_f32, short_forward_f32, short_back_f32, short_unit_f32, short_group_f32)
SHORT_UNITS(double, head_f64, short_forward_f64, short_back_f64, short_unit_f64, short_group_f64)

static embla_status short_unit(const call *c, size_t unit, char *space)
{
    if (c->way->precision == EMBLA_GPT_F64)
        short_unit_f64(c, unit, (double *)(void *)space);
    else
        short_unit_f32(c, unit, (float *)(void *)space);
    return EMBLA_OK;
}

static embla_status short_group(const call *c, size_t unit, char *space)
{
    if (c->way->precision == EMBLA_GPT_F64)
        short_group_f64(c, unit, (double *)(void *)space);
    else
        short_group_f32(c, unit, (float *)(void *)space);
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
                                      const void *dout, void *dq, void *dk, void *dv)
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
static embla_status one_unit(const call *c, size_t unit, char *space)
{
    const embla_attention *a = c->a;
    tile_of tile = c->tile;
    size_t k = unit * a->size;
    for (size_t first = 0; first < c->group; first += c->job.queries) {
        size_t q = (unit * c->group + first) * a->size;
        tile.queries = c->group - first < c->job.queries ? c->group - first : c->job.queries;
        EMBLA_TRY(forward_block_f32(&c->job, tile, (const float *)a->q + q, (const float *)a->k + k,
                                    (const float *)a->v + k, (float *)a->out + q, NULL,
                                    (float *)(void *)space));
    }
    return EMBLA_OK;
}

embla_status embla_attention_one(const embla_layer_way *way, const float *q, const float *keys,
                                 const float *values, size_t count, size_t heads, size_t kv_heads,
                                 size_t size, float *out)
{
    embla_layer_way f32 = {.precision = EMBLA_GPT_F32, .threads = way->threads};
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
    call c = {.way = &f32, .a = &a, .group = heads / kv_heads, .units = kv_heads};
    c.job = (head_job){.queries = c.group < QUERIES ? c.group : QUERIES,
                       .keys = count < KEYS ? count : KEYS,
                       .q_stride = size,
                       .kv_stride = a.kv_stride,
                       .out_stride = size,
                       .scale = 1.0 / sqrt((double)size)};
    c.tile = (tile_of){.precision = EMBLA_GPT_F32, .size = size, .all = true, .total = count};
    c.each = (c.job.queries * (size + c.job.keys + 1) + 15) / 16 * 16;
    return run(&c, one_unit, count * heads * size * 2);
}
