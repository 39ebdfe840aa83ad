/* SPDX-License-Identifier: Apache-2.0 */
/* Attention with factors in bf16, for CPUs that multiply bf16.
 * No include guard: it is included once, by layers_attention.c, after what it uses.
 *
 * Queries (times 1 / sqrt(size)), keys, values and the gradient of the output are rounded once for
 * each call. Probabilities and the gradients of scores are computed in f32 and rounded tile by
 * tile. All sums are f32.
 */

/* ---- rounding ---- */

static size_t rounded_numbers(const call *c)
{
    const embla_attention *a = c->a;
    size_t heads = (c->dout ? 2 : 1) * a->heads + 2 * a->kv_heads;
    return a->batch * a->length * heads * a->size;
}

static void round_numbers(const float *in, size_t n, float scale, uint16_t *out)
{
    enum { PIECE = 256 };
    embla_encode_fn *encode = embla_dtype_encoder(EMBLA_BF16, embla_kernels_get()->isa);
    float scaled[PIECE];
    if (scale == 1.0f) {
        encode(in, n, 1.0f, out);
        return;
    }
    for (size_t i = 0; i < n; i += PIECE) {
        size_t some = n - i < PIECE ? n - i : PIECE;
        for (size_t j = 0; j < some; j++) scaled[j] = in[i + j] * scale;
        encode(scaled, some, 1.0f, out + i);
    }
}

/* One head of a sequence: tokens are `stride` numbers apart in x, and follow each other in out. */
static void round_head(const call *c, const float *x, size_t stride, size_t heads, size_t head,
                       float scale, uint16_t *out)
{
    size_t length = c->a->length, size = c->a->size, b = head / heads, h = head % heads;
    const float *from = x + b * length * stride + h * size;
    for (size_t t = 0; t < length; t++)
        round_numbers(from + t * stride, size, scale, out + (head * length + t) * size);
}

static embla_status round_queries(void *job, size_t first, size_t end, size_t slot)
{
    const call *c = job;
    const embla_attention *a = c->a;
    (void)slot;
    for (size_t head = first; head < end; head++) {
        round_head(c, a->q, a->q_stride, a->heads, head, (float)c->job.scale, c->q);
        if (c->dout) round_head(c, c->dout, c->job.out_stride, a->heads, head, 1.0f, c->dout16);
    }
    return EMBLA_OK;
}

static embla_status round_keys(void *job, size_t first, size_t end, size_t slot)
{
    const call *c = job;
    const embla_attention *a = c->a;
    (void)slot;
    for (size_t head = first; head < end; head++) {
        round_head(c, a->k, a->kv_stride, a->kv_heads, head, 1.0f, c->k);
        round_head(c, a->v, a->kv_stride, a->kv_heads, head, 1.0f, c->v);
    }
    return EMBLA_OK;
}

static embla_status round_heads(call *c, int threads, uint16_t *memory)
{
    const embla_attention *a = c->a;
    size_t queries = a->batch * a->heads, keys = a->batch * a->kv_heads;
    size_t each = a->length * a->size;
    c->q = memory;
    c->k = c->q + queries * each;
    c->v = c->k + keys * each;
    c->dout16 = c->v + keys * each;
    EMBLA_TRY(embla_share(threads, queries, 0, round_queries, c));
    return embla_share(threads, keys, 0, round_keys, c);
}

/* Copies the numbers of a head of some tokens to where tokens are `stride` numbers apart. */
static void spread_head(const float *in, size_t tokens, size_t size, size_t stride, float *out)
{
    for (size_t t = 0; t < tokens; t++) memcpy(out + t * stride, in + t * size, size * sizeof *in);
}

/* ---- forward ---- */

/* scores = queries times keys transposed; both are rounded heads. */
static embla_status scores_bf16(const tile_of *tile, const uint16_t *queries, const uint16_t *keys,
                                float *scores)
{
    return embla_engine_product_bf16(&(embla_product_bf16){.m = tile->queries,
                                                           .n = tile->keys,
                                                           .k = tile->size,
                                                           .a = queries,
                                                           .b = keys,
                                                           .a_stride = tile->size,
                                                           .b_stride = tile->size,
                                                           .out = scores,
                                                           .out_stride = tile->keys,
                                                           .form = EMBLA_PRODUCT_A_BT});
}

/* Zeros and rounds a row of a tile of which n numbers are not masked. */
static void round_row(embla_encode_fn *encode, float *row, size_t n, size_t keys, uint16_t *out)
{
    memset(row + n, 0, (keys - n) * sizeof *row);
    encode(row, keys, 1.0f, out);
}

/* The same as raise_tile, and the exponentials are rounded: row by row, while a row is in the
 * L1 cache. */
static void raise_rows_bf16(const tile_of *tile, float *scores, float *most, double *sums,
                            float *out, size_t out_stride, uint16_t *rounded)
{
    embla_encode_fn *encode = embla_dtype_encoder(EMBLA_BF16, embla_kernels_get()->isa);
    tile_of one = *tile;
    one.queries = 1;
    for (size_t r = 0; r < tile->queries; r++) {
        float *row = scores + r * tile->keys;
        size_t n = visible_keys(tile, r);
        one.query = tile->query + r;
        follow_most(&one, row, most + r, sums + r, out + r * out_stride, out_stride);
        embla_softmax_exp(row, n, most[r], row);
        sums[r] += embla_softmax_plain_sum(row, n);
        round_row(encode, row, n, tile->keys, rounded + r * tile->keys);
    }
}

/* The same as forward_block_f32. Sums are next to each other until they are complete: far apart,
 * the rows of a tile would share a few sets of a cache. */
static embla_status forward_block_bf16(const call *c, tile_of tile, size_t b, size_t h, float *out,
                                       float *stats, float *space)
{
    const head_job *job = &c->job;
    size_t size = tile.size, kv = b * c->a->kv_heads + h / c->group;
    const uint16_t *k = c->k + kv * job->length * size, *v = c->v + kv * job->length * size;
    const uint16_t *q = c->q + ((b * c->a->heads + h) * job->length + tile.query) * size;
    float *made = space, *scores = made + job->queries * size;
    float *most = scores + job->queries * job->keys;
    uint16_t *rounded = (uint16_t *)(void *)(most + job->queries);
    double sums[QUERIES] = {0};
    for (tile.key = 0; tile.key < tile.total; tile.key += job->keys) {
        tile.keys = tile.total - tile.key < job->keys ? tile.total - tile.key : job->keys;
        EMBLA_TRY(scores_bf16(&tile, q, k + tile.key * size, scores));
        raise_rows_bf16(&tile, scores, most, sums, made, size, rounded);
        EMBLA_TRY(embla_engine_product_bf16(&(embla_product_bf16){.m = tile.queries,
                                                                  .n = size,
                                                                  .k = tile.keys,
                                                                  .a = rounded,
                                                                  .b = v + tile.key * size,
                                                                  .a_stride = tile.keys,
                                                                  .b_stride = size,
                                                                  .out = made,
                                                                  .out_stride = size,
                                                                  .form = EMBLA_PRODUCT_A_B,
                                                                  .add = tile.key > 0}));
    }
    finish_block(&tile, most, sums, made, size, stats);
    spread_head(made, tile.queries, size, job->out_stride, out);
    return EMBLA_OK;
}

/* ---- backward ---- */

/* One head of one sequence, rounded, and where its gradients go. */
typedef struct {
    const uint16_t *q, *k, *v, *dout;
    const float *stats;
    float *dq, *dk, *dv, *inner;
} head_bf16;

/* The same as step_tile, for n numbers of one row. */
EMBLA_ISA_FUNCTION(void, step_row, (const float *restrict p, size_t n, float less, float *step),
                   for (size_t i = 0; i < n; i++) step[i] = p[i] * (step[i] - less);)

/* Turns scores into probabilities and steps into gradients of scores, and rounds both, row by
 * row. */
static void step_rows_bf16(const tile_of *tile, const head_bf16 *h, float *scores, float *steps,
                           uint16_t *p16, uint16_t *steps16)
{
    embla_encode_fn *encode = embla_dtype_encoder(EMBLA_BF16, embla_kernels_get()->isa);
    for (size_t r = 0; r < tile->queries; r++) {
        size_t at = r * tile->keys, n = visible_keys(tile, r);
        embla_softmax_exp(scores + at, n, h->stats[tile->query + r], scores + at);
        EMBLA_PICK(step_row)(scores + at, n, h->inner[tile->query + r], steps + at);
        round_row(encode, scores + at, n, tile->keys, p16 + at);
        round_row(encode, steps + at, n, tile->keys, steps16 + at);
    }
}

/* The same as backward_tile_f32. */
static embla_status backward_tile_bf16(const head_job *job, const tile_of *tile, const head_bf16 *h,
                                       float *space)
{
    size_t size = tile->size;
    float *scores = space, *steps = scores + job->queries * job->keys;
    uint16_t *p16 = (uint16_t *)(void *)(steps + job->queries * job->keys);
    uint16_t *steps16 = p16 + job->queries * job->keys;
    const uint16_t *dout = h->dout + tile->query * size, *k = h->k + tile->key * size;
    const uint16_t *q = h->q + tile->query * size;
    embla_product_bf16 p = {.a_stride = tile->keys, .b_stride = size, .add = true};
    EMBLA_TRY(scores_bf16(tile, q, k, scores));
    EMBLA_TRY(scores_bf16(tile, dout, h->v + tile->key * size, steps));
    step_rows_bf16(tile, h, scores, steps, p16, steps16);
    p.m = tile->keys, p.n = size, p.k = tile->queries, p.form = EMBLA_PRODUCT_AT_B;
    p.out_stride = job->kv_stride;
    p.a = p16, p.b = dout, p.out = h->dv + tile->key * job->kv_stride;
    EMBLA_TRY(embla_engine_product_bf16(&p));
    p.a = steps16, p.b = q, p.out = h->dk + tile->key * job->kv_stride;
    EMBLA_TRY(embla_engine_product_bf16(&p));
    p.m = tile->queries, p.k = tile->keys, p.form = EMBLA_PRODUCT_A_B;
    p.b = k, p.out = h->dq + tile->query * job->q_stride, p.out_stride = job->q_stride;
    return embla_engine_product_bf16(&p);
}

static embla_status backward_head_bf16(const head_job *job, tile_of tile, const head_bf16 *h,
                                       float *space)
{
    clear_rows(h->dq, job->length, job->q_stride, tile.size);
    while (next_tile(job, &tile)) EMBLA_TRY(backward_tile_bf16(job, &tile, h, space));
    scale_rows(h->dq, job->length, job->q_stride, tile.size, (float)job->scale);
    return EMBLA_OK;
}

/* All heads of one sequence that share keys and values. Their gradients are summed next to each
 * other, as in forward. */
static embla_status group_bf16(const call *c, size_t unit, float *space)
{
    const embla_attention *a = c->a;
    size_t b = unit / a->kv_heads, kv = unit % a->kv_heads, first = b * a->length;
    size_t k = first * a->kv_stride + kv * a->size, each = a->length * a->size;
    float *dq = space + a->length, *dk = dq + each, *dv = dk + each;
    head_job job = c->job;
    job.q_stride = job.kv_stride = a->size;
    memset(dk, 0, 2 * each * sizeof *dk);
    for (size_t h = kv * c->group; h < (kv + 1) * c->group; h++) {
        size_t out = first * c->job.out_stride + h * a->size, head = b * a->heads + h;
        head_bf16 here = {.q = c->q + head * each,
                          .k = c->k + unit * each,
                          .v = c->v + unit * each,
                          .dout = c->dout16 + head * each,
                          .stats = a->stats + head * a->length,
                          .dq = dq,
                          .dk = dk,
                          .dv = dv,
                          .inner = space};
        EMBLA_PICK(inner_products)
        (&c->job, c->dout + out, a->out + out, a->size, here.inner);
        EMBLA_TRY(backward_head_bf16(&job, c->tile, &here, dv + each));
        spread_head(dq, a->length, a->size, a->q_stride, c->dq + first * a->q_stride + h * a->size);
    }
    spread_head(dk, a->length, a->size, a->kv_stride, c->dk + k);
    spread_head(dv, a->length, a->size, a->kv_stride, c->dv + k);
    return EMBLA_OK;
}
