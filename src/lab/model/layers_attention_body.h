/* SPDX-License-Identifier: Apache-2.0 */
/* Attention for one precision: see real.h. No include guard: it is included twice.
 *
 * Of one head, a tile of scores is up to QUERIES tokens by up to KEYS earlier ones, made by one
 * product of queries (times 1 / sqrt(size), copied) and keys. Forward: the exponentials of a tile
 * take its place, over the largest score so far; what was summed before is scaled down where a
 * larger one comes. Backward: the probabilities of a tile come back from the log-sums.
 */

/* One head of one sequence. */
typedef struct {
    const REAL *q, *k, *v, *out, *dout, *stats;
    REAL *dq, *dk, *dv;
    REAL *inner;       /* dout . out of each token */
    REAL *made, *sums; /* forward: out and stats */
} OF(head);

/* Copies queries x size numbers of q, times scale, without gaps. */
static void OF(scale_queries)(const tile_of *tile, const REAL *q, size_t stride, REAL scale,
                              REAL *out)
{
    for (size_t r = 0; r < tile->queries; r++)
        for (size_t i = 0; i < tile->size; i++) out[r * tile->size + i] = q[r * stride + i] * scale;
}

/* scores = queries times keys transposed. */
static embla_status OF(scores)(const tile_of *tile, const REAL *queries, size_t q_stride,
                               const REAL *keys, size_t kv_stride, REAL *scores)
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
    return embla_product_either(tile->precision, tile->engine, &p);
}

/* Subtracts base[row] from each row. Masked scores become -infinity, so their exponential is 0. */
EMBLA_BODY void OF(lessen_body)(const tile_of *tile, const REAL *base, REAL *scores)
{
    for (size_t r = 0; r < tile->queries; r++) {
        REAL *row = scores + r * tile->keys, less = base[r];
        size_t n = visible_keys(tile, r);
        for (size_t i = 0; i < n; i++) row[i] -= less;
        for (size_t i = n; i < tile->keys; i++) row[i] = -(REAL)INFINITY;
    }
}
EMBLA_ISA_FUNCTION(void, OF(lessen), (const tile_of *tile, const REAL *base, REAL *scores),
                   OF(lessen_body)(tile, base, scores);)

/* Updates `most`, the largest score so far. If it grows, sum and out are scaled down. */
static void OF(follow_most)(const tile_of *tile, const REAL *scores, REAL *most, double *sum,
                            REAL *out, size_t out_stride)
{
    for (size_t r = 0; r < tile->queries; r++) {
        REAL here = OF(row_max)(scores + r * tile->keys, visible_keys(tile, r)), less = most[r];
        if (tile->key == 0) {
            most[r] = here;
            sum[r] = 0.0;
        } else if (here > less) {
            OF(row_exp)(&less, 1, here, &less);
            for (size_t i = 0; i < tile->size; i++) out[r * out_stride + i] *= less;
            sum[r] *= (double)less;
            most[r] = here;
        }
    }
}

/* Replaces the tile's scores by exponentials relative to the largest so far, and adds them to
 * sum. */
static void OF(raise_tile)(const tile_of *tile, REAL *scores, REAL *most, double *sum, REAL *out,
                           size_t out_stride)
{
    OF(follow_most)(tile, scores, most, sum, out, out_stride);
    EMBLA_PICK(OF(lessen))(tile, most, scores);
    OF(row_exp)(scores, tile->queries * tile->keys, 0, scores);
    for (size_t r = 0; r < tile->queries; r++)
        sum[r] += OF(row_sum)(scores + r * tile->keys, tile->keys);
}

/* Divides the rows of out by their sums. stats may be NULL. */
static void OF(finish_block)(const tile_of *tile, const REAL *most, const double *sums, REAL *out,
                             size_t out_stride, REAL *stats)
{
    for (size_t r = 0; r < tile->queries; r++) {
        REAL share = (REAL)(1.0 / sums[r]);
        for (size_t i = 0; i < tile->size; i++) out[r * out_stride + i] *= share;
        if (stats) stats[r] = (REAL)((double)most[r] + log(sums[r]));
    }
}

/* A block of queries with all keys up to its last. space: see call_of. */
static embla_status OF(forward_block)(const head_job *job, tile_of tile, const REAL *q,
                                      const REAL *k, const REAL *v, REAL *out, REAL *stats,
                                      REAL *space)
{
    size_t size = tile.size, total = tile.total;
    REAL *queries = space, *scores = queries + job->queries * size;
    REAL *most = scores + job->queries * job->keys;
    double sums[QUERIES] = {0};
    OF(scale_queries)(&tile, q, job->q_stride, (REAL)job->scale, queries);
    for (tile.key = 0; tile.key < total; tile.key += job->keys) {
        tile.keys = total - tile.key < job->keys ? total - tile.key : job->keys;
        EMBLA_TRY(OF(scores)(&tile, queries, size, k + tile.key * job->kv_stride, job->kv_stride,
                             scores));
        OF(raise_tile)(&tile, scores, most, sums, out, job->out_stride);
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
        EMBLA_TRY(embla_product_either(tile.precision, tile.engine, &p));
    }
    OF(finish_block)(&tile, most, sums, out, job->out_stride, stats);
    return EMBLA_OK;
}

/* ---- backward ---- */

/* inner[t] = dout . out of token t. */
EMBLA_BODY void OF(inner_products_body)(const head_job *job, const REAL *dout, const REAL *out,
                                        size_t size, REAL *inner)
{
    for (size_t t = 0; t < job->length; t++)
        inner[t] = OF(dot)(dout + t * job->out_stride, out + t * job->out_stride, size);
}
EMBLA_ISA_FUNCTION(void, OF(inner_products),
                   (const head_job *job, const REAL *dout, const REAL *out, size_t size,
                    REAL *inner),
                   OF(inner_products_body)(job, dout, out, size, inner);)

/* Replaces steps, the gradients of probabilities, by those of scores: p * (step - inner). */
EMBLA_BODY void OF(step_body)(const tile_of *tile, const REAL *inner, const REAL *p, REAL *steps)
{
    for (size_t r = 0; r < tile->queries; r++) {
        const REAL *restrict row = p + r * tile->keys;
        REAL *restrict step = steps + r * tile->keys, less = inner[r];
        for (size_t i = 0; i < tile->keys; i++) step[i] = row[i] * (step[i] - less);
    }
}
EMBLA_ISA_FUNCTION(void, OF(step),
                   (const tile_of *tile, const REAL *inner, const REAL *p, REAL *steps),
                   OF(step_body)(tile, inner, p, steps);)

/* Adds the contribution of one tile to dq, dk, dv. */
static embla_status OF(backward_tile)(const head_job *job, const tile_of *tile, const OF(head) * h,
                                      REAL *space)
{
    size_t size = tile->size, qs = job->q_stride, ks = job->kv_stride, os = job->out_stride;
    REAL *queries = space, *scores = queries + job->queries * size;
    REAL *steps = scores + job->queries * job->keys;
    const REAL *dout = h->dout + tile->query * os, *k = h->k + tile->key * ks;
    embla_plain_product p = {.a_stride = tile->keys, .add = true};
    OF(scale_queries)(tile, h->q + tile->query * qs, qs, (REAL)job->scale, queries);
    EMBLA_TRY(OF(scores)(tile, queries, size, k, ks, scores));
    EMBLA_TRY(OF(scores)(tile, dout, os, h->v + tile->key * ks, ks, steps));
    EMBLA_PICK(OF(lessen))(tile, h->stats + tile->query, scores);
    OF(row_exp)(scores, tile->queries * tile->keys, 0, scores);
    EMBLA_PICK(OF(step))(tile, h->inner + tile->query, scores, steps);
    p.m = tile->keys, p.n = size, p.k = tile->queries, p.form = EMBLA_PRODUCT_AT_B,
    p.out_stride = ks;
    p.a = scores, p.b = dout, p.b_stride = os, p.out = h->dv + tile->key * ks;
    EMBLA_TRY(embla_product_either(tile->precision, tile->engine, &p));
    p.a = steps, p.b = queries, p.b_stride = size, p.out = h->dk + tile->key * ks;
    EMBLA_TRY(embla_product_either(tile->precision, tile->engine, &p));
    p.m = tile->queries, p.k = tile->keys, p.form = EMBLA_PRODUCT_A_B, p.out_stride = qs;
    p.b = k, p.b_stride = ks, p.out = h->dq + tile->query * qs;
    return embla_product_either(tile->precision, tile->engine, &p);
}

static void OF(clear)(REAL *x, size_t tokens, size_t stride, size_t size)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < size; i++) x[t * stride + i] = 0;
}

static void OF(scale)(REAL *x, size_t tokens, size_t stride, size_t size, REAL scale)
{
    for (size_t t = 0; t < tokens; t++)
        for (size_t i = 0; i < size; i++) x[t * stride + i] *= scale;
}

/* One head of a group; dk and dv are added to, dq is written. */
static embla_status OF(backward_head)(const head_job *job, tile_of tile, const OF(head) * h,
                                      REAL *space)
{
    OF(clear)(h->dq, job->length, job->q_stride, tile.size);
    EMBLA_PICK(OF(inner_products))(job, h->dout, h->out, tile.size, h->inner);
    while (next_tile(job, &tile)) EMBLA_TRY(OF(backward_tile)(job, &tile, h, space));
    OF(scale)(h->dq, job->length, job->q_stride, tile.size, (REAL)job->scale);
    return EMBLA_OK;
}
