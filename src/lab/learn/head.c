/* SPDX-License-Identifier: Apache-2.0 */
/* The head: products of hidden vectors with the rows of a table, turned into logits. A few vectors
 * take one pass over the table at the speed of memory (engine/score.c), and so do the vectors of a
 * small model, whose results are then the same on every machine. More vectors are multiplied by the
 * engine in tiles of fixed size, one thread for each tile, so no result depends on the number of
 * threads.
 */
#include "learn/head.h"

#include <math.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/math.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "engine/score.h"
#include "table/access.h"

embla_status embla_head_check(const embla_head *head, embla_head *out)
{
    EMBLA_TRY(embla_options_check(head));
    if (!head || !head->table) return embla_fail(EMBLA_ERR_ARGUMENT, "head or its table is NULL");
    const int64_t rows = embla_table_rows(head->table);
    if (head->rows < 0 || head->rows > rows)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the head has %" PRId64 " tokens, but its table has %" PRId64 " rows",
                          head->rows, rows);
    if ((head->rows ? head->rows : rows) > (int64_t)INT32_MAX + 1)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the head has %" PRId64 " tokens; a token is an int32_t, so at "
                          "most 2147483648 are possible",
                          head->rows ? head->rows : rows);
    if (!isfinite(head->scale))
        return embla_fail(EMBLA_ERR_ARGUMENT, "the head's scale is %g; it must be finite",
                          (double)head->scale);
    if (!isfinite(head->soft_cap) || head->soft_cap < 0.0f)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the head's soft cap is %g; it must be finite and 0 or greater",
                          (double)head->soft_cap);
    EMBLA_TRY(embla_table_check_file(head->table));
    *out = *head;
    if (out->rows == 0) out->rows = rows;
    if (out->scale == 0.0f) out->scale = 1.0f;
    return EMBLA_OK;
}

EMBLA_BODY void soft_cap_body(float *x, size_t n, float cap)
{
    for (size_t i = 0; i < n; i++)
        x[i] = embla_select(x[i] == -INFINITY, x[i], cap * embla_tanh(x[i] / cap));
}

EMBLA_BODY void soft_cap_back_body(const float *restrict capped, size_t n, float cap,
                                   float *restrict gradients)
{
    for (size_t i = 0; i < n; i++) {
        float t = capped[i] / cap, s = t * t;
        float slope = s > 1.0f ? 0.0f : 1.0f - s;
        gradients[i] = gradients[i] * slope;
    }
}

EMBLA_BODY void scale_bias_body(float *restrict x, size_t n, float scale,
                                const float *restrict bias)
{
    if (bias)
        for (size_t i = 0; i < n; i++) x[i] = x[i] * scale + bias[i];
    else
        for (size_t i = 0; i < n; i++) x[i] = x[i] * scale;
}

EMBLA_ISA_FUNCTION(void, soft_cap, (float *x, size_t n, float cap), soft_cap_body(x, n, cap);)
EMBLA_ISA_FUNCTION(void, soft_cap_back,
                   (const float *capped, size_t n, float cap, float *gradients),
                   soft_cap_back_body(capped, n, cap, gradients);)
EMBLA_ISA_FUNCTION(void, scale_bias, (float *x, size_t n, float scale, const float *bias),
                   scale_bias_body(x, n, scale, bias);)

void embla_soft_cap(float *x, size_t n, float cap)
{
    EMBLA_PICK(soft_cap)(x, n, cap);
}

void embla_soft_cap_back(const float *capped, size_t n, float cap, float *gradients)
{
    EMBLA_PICK(soft_cap_back)(capped, n, cap, gradients);
}

void embla_head_finish(const embla_head *head, int64_t first, size_t n, float *logits)
{
    const float *bias = head->bias ? head->bias + first : NULL;
    bool plain = head->scale == 1.0f && !bias; /* times 1 changes nothing */
    if (!plain) EMBLA_PICK(scale_bias)(logits, n, head->scale, bias);
    if (head->soft_cap != 0.0f) embla_soft_cap(logits, n, head->soft_cap);
}

/* ---- logits a chunk at a time ---- */

enum {
    FEW = 4,               /* up to so many vectors take a pass over the table, more use products */
    BLOCK = 128,           /* vectors of one product */
    CHUNK_BYTES = 1 << 20, /* approximate bytes of stored rows in a chunk of a pass */
    TILE_BYTES = 2 << 20,  /* approximate bytes of floats in a chunk of products */
    CHUNK_LEAST = 64,      /* tokens */
    CHUNK_MOST = 1024,
    TILE_MOST = 512,
    CHUNKS_MOST = 1 << 16,
    SMALL = 1 << 17,       /* up to so many multiplications, the engine is not used */
    DIM_PRODUCTS = 1 << 16 /* longer rows make tiles too large for products */
};

static size_t chunk_of(const embla_logit_walk *walk)
{
    size_t row_bytes = embla_table_row_bytes(walk->head.table);
    size_t most = walk->products ? TILE_MOST : CHUNK_MOST;
    size_t chunk =
        walk->products ? TILE_BYTES / (walk->dim * sizeof(float)) : CHUNK_BYTES / row_bytes;
    if (chunk > most) chunk = most;
    if (chunk < CHUNK_LEAST) chunk = CHUNK_LEAST;
    if ((size_t)walk->head.rows / chunk >= CHUNKS_MOST)
        chunk = (size_t)walk->head.rows / CHUNKS_MOST + 1;
    return (uint64_t)walk->head.rows < chunk ? (size_t)walk->head.rows : chunk;
}

embla_status embla_walk_of(const embla_head *head, const float *hidden, size_t count, int threads,
                           const void *out, embla_logit_walk *walk)
{
    uint64_t bytes, numbers;
    embla_logit_walk w = {.hidden = hidden, .count = count};
    EMBLA_TRY(embla_head_check(head, &w.head));
    EMBLA_TRY(embla_threads_check(threads));
    if (count > 0 && (!hidden || !out))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu vectors, but %s is NULL", count,
                          hidden ? "out" : "hidden");
    w.dim = embla_table_dim(w.head.table);
    if (!embla_mul_ok(count, (uint64_t)w.head.rows, &bytes) ||
        !embla_mul_ok(bytes, sizeof(float), &bytes) ||
        !embla_mul_ok(count, w.dim * sizeof(float), &numbers) || bytes > PTRDIFF_MAX ||
        numbers > PTRDIFF_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu vectors of %zu numbers for %" PRId64 " tokens do not fit in memory",
                          count, w.dim, w.head.rows);
    double multiplications = (double)w.head.rows * (double)w.dim * (double)count;
    w.products = count > FEW && w.dim <= DIM_PRODUCTS && multiplications > SMALL &&
                 embla_engine_has_products();
    w.chunk = chunk_of(&w);
    w.chunks = (w.head.rows - 1) / (int64_t)w.chunk + 1;
    double work =
        (double)w.head.rows * (double)embla_table_row_bytes(w.head.table) * (double)(count + 1);
    w.threads = embla_threads_for(threads, work < 1e15 ? (size_t)work : (size_t)1e15);
    *walk = w;
    return EMBLA_OK;
}

typedef struct {
    const embla_logit_walk *walk;
    const embla_row_source *source; /* the rows of the head's table */
    size_t vector, count;           /* vectors of this run */
    float *out;
    embla_logits_fn *use;
    void *context;
    embla_decode_fn *decode;
    bool in_place;              /* rows are used as floats where they are */
    char *space;                /* of each slot: logits, then decoded rows */
    size_t logits_bytes, bytes; /* bytes of one slot's logits, and of all its memory */
} run;

/* Gives rows first .. first+n-1 as floats, decoded to space if needed. */
static const float *tile_of(const run *r, int64_t first, size_t n, float *space, size_t *stride)
{
    *stride = r->walk->dim;
    if (r->in_place) {
        *stride = r->source->stride / sizeof(float);
        return (const float *)(const void *)embla_source_at(r->source, first);
    }
    for (size_t i = 0; i < n; i++)
        embla_source_decode(r->source, r->decode, first + (int64_t)i, space + i * r->walk->dim);
    return space;
}

/* Computes the sums of products of a chunk with a block of vectors. If the engine refuses (it had
 * no memory), engine/score.h does it: slower, but right. */
static void compute_sums(const run *r, const embla_logits *l, float *logits, float *space)
{
    const embla_logit_walk *w = r->walk;
    const float *hidden = w->hidden + l->vector * w->dim;
    embla_product product = {.m = l->count,
                             .n = l->n,
                             .k = w->dim,
                             .a = hidden,
                             .a_stride = w->dim,
                             .out = logits,
                             .out_stride = l->stride,
                             .form = EMBLA_PRODUCT_A_BT};
    if (w->products) {
        product.b = tile_of(r, l->first, l->n, space, &product.b_stride);
        if (embla_engine_product(&product) == EMBLA_OK) return;
    }
    embla_score(&(embla_score_job){.rows = r->source,
                                   .first = l->first,
                                   .n = l->n,
                                   .vectors = hidden,
                                   .count = l->count,
                                   .dots = logits,
                                   .stride = l->stride});
}

static void compute_chunk(const run *r, int64_t chunk, size_t block, size_t slot)
{
    const embla_logit_walk *w = r->walk;
    embla_logits l = {.chunk = chunk, .slot = slot};
    char *mine = r->space + slot * r->bytes;
    float *logits = (float *)(void *)mine;
    size_t from = block * BLOCK;
    l.first = chunk * (int64_t)w->chunk;
    l.n = w->head.rows - l.first < (int64_t)w->chunk ? (size_t)(w->head.rows - l.first) : w->chunk;
    l.vector = r->vector + from;
    l.count = r->count - from < BLOCK ? r->count - from : BLOCK;
    l.stride = w->chunk;
    if (r->out) {
        l.stride = (size_t)w->head.rows;
        logits = r->out + from * l.stride + (size_t)l.first;
    }
    compute_sums(r, &l, logits, (float *)(void *)(mine + r->logits_bytes));
    for (size_t v = 0; v < l.count; v++)
        embla_head_finish(&w->head, l.first, l.n, logits + v * l.stride);
    l.logits = logits;
    if (r->use) r->use(r->context, &l);
}

/* Index i is a chunk of a block: all chunks of the first block, then of the next. */
static embla_status compute_chunks(void *job, size_t first, size_t end, size_t slot)
{
    const run *r = job;
    size_t chunks = (size_t)r->walk->chunks;
    for (size_t i = first; i < end; i++) compute_chunk(r, (int64_t)(i % chunks), i / chunks, slot);
    return EMBLA_OK;
}

embla_status embla_walk_run(const embla_logit_walk *walk, size_t vector, size_t count, float *out,
                            embla_logits_fn *use, void *context)
{
    const embla_row_source *source = embla_table_source(walk->head.table);
    size_t blocks = count / BLOCK + (count % BLOCK > 0);
    void *space = NULL;
    run r = {.walk = walk,
             .source = source,
             .vector = vector,
             .count = count,
             .out = out,
             .use = use,
             .context = context,
             .decode = embla_dtype_decoder(source->row->format.dtype, embla_kernels_get()->isa)};
    r.in_place = embla_source_in_place(source);
    if (count == 0) return EMBLA_OK;
    if (!out) r.logits_bytes = (count < BLOCK ? count : BLOCK) * walk->chunk * sizeof(float);
    r.bytes = r.logits_bytes;
    if (walk->products && !r.in_place) r.bytes += walk->chunk * walk->dim * sizeof(float);
    r.bytes = (r.bytes / EMBLA_LINE + 1) * EMBLA_LINE;
    EMBLA_TRY(embla_mem_new((size_t)walk->threads * r.bytes, "logits of a chunk", &space));
    r.space = space;
    embla_status status =
        embla_share(walk->threads, blocks * (size_t)walk->chunks, 1, compute_chunks, &r);
    embla_mem_free(space, (size_t)walk->threads * r.bytes);
    return status;
}

embla_status embla_head_logits(const embla_head *head, const float *hidden, size_t count,
                               const embla_head_options *options, float *out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_logit_walk walk;
    EMBLA_TRY(embla_walk_of(head, hidden, count, options ? options->threads : 0, out, &walk));
    EMBLA_TRY(embla_walk_run(&walk, 0, count, out, NULL, NULL));
    return embla_table_check_file(walk.head.table);
}
