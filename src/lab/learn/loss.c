/* SPDX-License-Identifier: Apache-2.0 */
/* Cross-entropy of a head, forward and backward, without holding all logits.
 *
 * Counted tokens are processed in chunks. For each chunk:
 *
 * 1. logits by blocks of rows, one product each, and for each token and block the maximum and the
 *    sum of exponentials, while the tile is in a cache;
 * 2. the loss of each token;
 * 3. block by block again, the gradient in place of the logits, and two products from it: to the
 *    table's gradient (one thread owns a block, chunks come in order) and to a sum of the gradient
 *    of hidden (one for each group of blocks, added in order at the end).
 *
 * So there are three products in all, the gradient belongs to exactly the logits of the loss, and
 * no bit depends on the number of threads. Where rows are short and very many, a chunk that fits
 * into memory has too few tokens; then step 3 computes the logits of a block again, the same bits,
 * and no more than a tile for each thread is held.
 *
 * A tile is a block of logits, tokens x rows, stored densely: a stride of a power of two, or of the
 * whole vocabulary, would leave most of a cache unused.
 */
#include "learn/loss.h"

#include <math.h>
#include <string.h>

#include "base/elementary.h"
#include "base/kernels.h"
#include "base/layout.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "learn/head.h"
#include "learn/softmax.h"
#include "table/access.h"

enum { LINE = EMBLA_LOSS_LINE };

/* Statistics of a token's logits in a block. */
typedef struct {
    double sum, plain; /* sum of exponentials over max; sum of the logits */
    float max;
} part_of_sum;

typedef struct {
    size_t place; /* index among all tokens of the call */
    size_t target;
    double loss, z;
    float logit;             /* of the target */
    bool first;              /* no earlier token of the target's block has a logit as high */
    float base;              /* the largest logit */
    float factor, at_target; /* gradient = e^(logit - base) * factor - less; and at the target */
    bool correct;
} token;

/* Memory of one slot. */
typedef struct {
    void *rows;     /* part x dim, decoded: f32, or bf16 */
    float *logits;  /* a tile, if logits are not held */
    uint16_t *tile; /* gradients of a tile as bf16 */
    float *space;   /* for products of bf16 */
    float *line;    /* one token's logits of a block, before they are overwritten by gradients */
    double *sums;   /* sums of gradients of a block, for the bias */
} own;

typedef struct {
    embla_head head;
    const embla_row_source *source; /* the rows of the head's table */
    embla_loss_options options;
    embla_loss_gradients to;
    embla_loss_shape shape;
    const float *hidden;
    const int32_t *targets;
    size_t count, at; /* tokens of the call; the first one not in a chunk yet */
    size_t rows, dim, blocks;
    int64_t counted;
    double weight; /* factor of one token's gradient */
    float less;    /* subtracted from every gradient, for smoothing */
    bool bf16, backward;
    embla_decode_fn *decode;
    embla_encode_fn *encode;
    const embla_kernels *kernels;
    /* of the chunk */
    size_t here; /* its tokens */
    float *logits, *vectors, *sums;
    uint16_t *vectors16; /* vectors as bf16 */
    uint16_t *rounded;   /* the table as bf16, or NULL */
    part_of_sum *parts;  /* tokens x blocks */
    token *tokens;
    own *owns; /* one for each slot */
    int threads;
} job;

/* ---- how the work is cut ---- */

static size_t rows_in(const job *j, size_t block)
{
    return embla_loss_least(j->shape.block, j->rows - block * j->shape.block);
}

/* Floats from one token's row of a tile to the next; the last tile may be narrower. */
static size_t stride_of(const job *j, size_t block)
{
    return embla_loss_round_up(rows_in(j, block), LINE);
}

static float *tile_of(const job *j, size_t block, const own *o)
{
    if (j->shape.again) return o->logits;
    return j->logits + block * embla_loss_round_up(j->shape.block, LINE) * j->shape.chunk;
}

/* ---- memory: one allocation ---- */

/* Floats of all tiles of a chunk. */
static uint64_t logits_of(const job *j)
{
    if (j->shape.again) return 0;
    return ((j->blocks - 1) * embla_loss_round_up(j->shape.block, LINE) +
            stride_of(j, j->blocks - 1)) *
           j->shape.chunk;
}

static bool is_stored_as_wanted(const job *j)
{
    const embla_row_source *source = j->source;
    embla_dtype wanted = j->bf16 ? EMBLA_BF16 : EMBLA_F32;
    size_t unit = j->bf16 ? sizeof(uint16_t) : sizeof(float);
    return source->row->format.dtype == wanted && (uintptr_t)source->data % unit == 0 &&
           source->stride % unit == 0;
}

/* Whether the table is rounded once for the call. */
static bool rounds_table(const job *j)
{
    return j->bf16 && j->shape.rounds && !is_stored_as_wanted(j);
}

/* Whether no row has to be decoded when it is used. */
static bool is_in_place(const job *j)
{
    return rounds_table(j) || is_stored_as_wanted(j);
}

/* Offsets of a slot's arrays from the start of its memory. */
typedef struct {
    size_t rows, logits, tile, space, line, sums;
    bool widen; /* for CPUs without products of bf16 */
} own_places;

static own_places slot_bytes(const job *j, embla_layout *share)
{
    size_t tile = j->shape.block * j->shape.chunk + j->shape.chunk * LINE, unit = j->bf16 ? 2 : 4;
    bool narrow = j->bf16 && j->backward, widen = j->bf16 && !embla_engine_has_bf16();
    own_places at = {.widen = widen};
    at.rows = embla_layout_add(share, is_in_place(j) ? 0 : j->shape.part * j->dim, unit);
    at.logits = embla_layout_add(share, j->shape.again ? tile : 0, sizeof(float));
    at.tile = embla_layout_add(share, narrow ? tile : 0, sizeof(uint16_t));
    at.space = embla_layout_add(share, widen ? EMBLA_BF16_SPACE : 0, sizeof(float));
    at.line = embla_layout_add(share, j->shape.block, sizeof(float));
    at.sums = embla_layout_add(share, j->shape.block, sizeof(double));
    return at;
}

static embla_status allocate(job *j, embla_scratch *scratch, embla_scratch_use *use)
{
    embla_layout layout = {0}, share = {0};
    size_t chunk = j->shape.chunk, vectors = chunk * j->dim, slots = (size_t)j->threads;
    const own_places mine = slot_bytes(j, &share);
    size_t logits = embla_layout_add(&layout, logits_of(j), sizeof(float));
    size_t wide = embla_layout_add(&layout, vectors, sizeof(float));
    size_t half = embla_layout_add(&layout, j->bf16 ? vectors : 0, sizeof(uint16_t));
    size_t rounded = embla_layout_add(&layout, rounds_table(j) ? (uint64_t)j->rows * j->dim : 0,
                                      sizeof(uint16_t));
    size_t groups = j->to.hidden ? j->shape.groups : 0;
    size_t sums = embla_layout_add(&layout, groups * vectors, sizeof(float));
    size_t parts = embla_layout_add(&layout, chunk * j->blocks, sizeof(part_of_sum));
    size_t tokens = embla_layout_add(&layout, chunk, sizeof(token));
    size_t owns = embla_layout_add(&layout, slots, sizeof(own));
    size_t shares = embla_layout_add(&layout, slots, share.bytes);
    if (layout.too_large || share.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "a loss over %zu rows does not fit in memory", j->rows);
    EMBLA_TRY(embla_scratch_begin(scratch, layout.bytes, "the logits of a chunk", use));
    char *base = use->memory;
    j->logits = (float *)(void *)(base + logits);
    j->vectors = (float *)(void *)(base + wide);
    j->vectors16 = (uint16_t *)(void *)(base + half);
    j->rounded = rounds_table(j) ? (uint16_t *)(void *)(base + rounded) : NULL;
    j->sums = (float *)(void *)(base + sums);
    j->parts = (part_of_sum *)(void *)(base + parts);
    j->tokens = (token *)(void *)(base + tokens);
    j->owns = (own *)(void *)(base + owns);
    for (size_t slot = 0; slot < slots; slot++) {
        char *its = base + shares + slot * share.bytes;
        j->owns[slot] = (own){.rows = its + mine.rows,
                              .logits = (float *)(void *)(its + mine.logits),
                              .tile = (uint16_t *)(void *)(its + mine.tile),
                              .space = mine.widen ? (float *)(void *)(its + mine.space) : NULL,
                              .line = (float *)(void *)(its + mine.line),
                              .sums = (double *)(void *)(its + mine.sums)};
    }
    return EMBLA_OK;
}

/* ---- products ---- */

/* A factor of a product: floats, or bf16. */
typedef struct {
    const void *numbers;
    size_t stride;
} factor;

static void decode_row(const job *j, int64_t row, void *out)
{
    float space[EMBLA_PIECE];
    if (!j->bf16) {
        embla_source_decode(j->source, j->decode, row, out);
        return;
    }
    for (size_t i = 0; i < j->dim; i += EMBLA_PIECE) {
        size_t n = embla_loss_least(EMBLA_PIECE, j->dim - i);
        const float *piece = embla_source_piece(j->source, j->decode, row, i, n, space);
        j->encode(piece, n, 1.0f, (uint16_t *)out + i);
    }
}

/* Gives rows first .. first+n-1 (n at most a part), decoded unless they can be used where they are.
 */
static factor decode_rows(const job *j, int64_t first, size_t n, const own *o)
{
    size_t unit = j->bf16 ? sizeof(uint16_t) : sizeof(float);
    if (j->rounded) return (factor){j->rounded + (size_t)first * j->dim, j->dim};
    if (is_in_place(j))
        return (factor){embla_source_at(j->source, first), j->source->stride / unit};
    for (size_t r = 0; r < n; r++)
        decode_row(j, first + (int64_t)r, (char *)o->rows + r * j->dim * unit);
    return (factor){o->rows, j->dim};
}

static embla_status round_rows(void *call, size_t first, size_t end, size_t slot)
{
    const job *j = call;
    (void)slot;
    for (size_t r = first; r < end; r++) decode_row(j, (int64_t)r, j->rounded + r * j->dim);
    return EMBLA_OK;
}

static factor vectors_of(const job *j)
{
    return (factor){j->bf16 ? (const void *)j->vectors16 : j->vectors, j->dim};
}

static embla_status product(const job *j, const own *o, embla_product p, factor a, factor b)
{
    if (!j->bf16) {
        p.a = a.numbers, p.a_stride = a.stride;
        p.b = b.numbers, p.b_stride = b.stride;
        return embla_engine_product(&p);
    }
    embla_product_bf16 half = {.m = p.m, .n = p.n, .k = p.k, .form = p.form, .add = p.add};
    half.a = a.numbers, half.a_stride = a.stride;
    half.b = b.numbers, half.b_stride = b.stride;
    half.out = p.out, half.out_stride = p.out_stride;
    half.space = o->space;
    return embla_engine_product_bf16(&half);
}

/* Rows of a block processed at a time: all, or as many as are decoded at once. */
static size_t part_of(const job *j, size_t n)
{
    return is_in_place(j) ? n : embla_loss_least(n, j->shape.part);
}

/* ---- forward ---- */

static part_of_sum summarize_tile(const job *j, const float *logits, size_t n)
{
    part_of_sum part = {.max = embla_softmax_max(logits, n)};
    part.sum = embla_softmax_sum(logits, n, part.max == -INFINITY ? 0.0f : part.max);
    if (j->options.smoothing > 0.0) part.plain = embla_softmax_plain_sum(logits, n);
    return part;
}

/* Computes the logits of a block. */
static embla_status fill_tile(const job *j, size_t block, const own *o)
{
    size_t first = block * j->shape.block, n = rows_in(j, block), stride = stride_of(j, block);
    float *tile = tile_of(j, block, o);
    for (size_t r = 0; r < n; r += part_of(j, n)) {
        size_t some = embla_loss_least(part_of(j, n), n - r);
        embla_product p = {.m = j->here, .n = some, .k = j->dim, .form = EMBLA_PRODUCT_A_BT};
        p.out = tile + r, p.out_stride = stride;
        EMBLA_TRY(product(j, o, p, vectors_of(j), decode_rows(j, (int64_t)(first + r), some, o)));
    }
    for (size_t i = 0; i < j->here; i++)
        embla_head_finish(&j->head, (int64_t)first, n, tile + i * stride);
    return EMBLA_OK;
}

/* Remembers the logit of a token's target, which is row `at` of the block. */
static void find_target(token *t, const float *logits, size_t at)
{
    t->logit = logits[at];
    t->first = true;
    for (size_t r = 0; r < at && t->first; r++) t->first = !(logits[r] >= t->logit);
}

static embla_status forward(job *j, size_t block, const own *o)
{
    size_t first = block * j->shape.block, n = rows_in(j, block), stride = stride_of(j, block);
    EMBLA_TRY(fill_tile(j, block, o));
    for (size_t i = 0; i < j->here; i++) {
        const float *logits = tile_of(j, block, o) + i * stride;
        size_t at = j->tokens[i].target - first;
        j->parts[i * j->blocks + block] = summarize_tile(j, logits, n);
        if (at < n) find_target(&j->tokens[i], logits, at);
    }
    return EMBLA_OK;
}

static embla_status forward_blocks(void *call, size_t first, size_t end, size_t slot)
{
    job *j = call;
    for (size_t b = first; b < end; b++) EMBLA_TRY(forward(j, b, &j->owns[slot]));
    return EMBLA_OK;
}

/* ---- the loss of a token ---- */

/* Whether the target has the highest logit, and no earlier token has the same. */
static bool is_highest(const job *j, size_t i)
{
    const part_of_sum *parts = j->parts + i * j->blocks;
    const token *t = &j->tokens[i];
    size_t block = t->target / j->shape.block;
    for (size_t b = 0; b < j->blocks; b++)
        if (b < block ? parts[b].max >= t->logit : parts[b].max > t->logit) return false;
    return t->first;
}

/* Turns a token's sums of all blocks, in order, into its loss and what its gradient needs. */
static void finish_token(job *j, size_t i)
{
    const part_of_sum *parts = j->parts + i * j->blocks;
    const embla_loss_options *options = &j->options;
    token *t = &j->tokens[i];
    float max = parts[0].max;
    double sum = 0.0, plain = 0.0;
    for (size_t b = 1; b < j->blocks; b++) max = parts[b].max > max ? parts[b].max : max;
    t->base = max == -INFINITY ? 0.0f : max;
    for (size_t b = 0; b < j->blocks; b++) {
        double over = parts[b].max == -INFINITY ? 0.0 : (double)parts[b].max;
        sum += parts[b].sum * embla_exp(over - (double)t->base);
        plain += parts[b].plain;
    }
    double lse = (double)t->base + embla_log(sum), smooth = options->smoothing,
           nll = lse - (double)t->logit;
    t->z = options->z_loss > 0.0 ? options->z_loss * lse * lse : 0.0;
    t->loss = smooth > 0.0 ? (1.0 - smooth) * nll + smooth * (lse - plain / (double)j->rows) : nll;
    t->loss += t->z;
    t->correct = sum > 0.0 && is_highest(j, i);
    double both = 1.0 + 2.0 * options->z_loss * lse;
    t->factor = (float)(j->weight * both / sum);
    /* p * both - (1 - smooth) - smooth / rows, accurate also near p = 1 */
    double short_of_one = embla_expm1(-nll);
    double rest = short_of_one + (both - 1.0) * (short_of_one + 1.0) + smooth;
    t->at_target = (float)(j->weight * (rest - smooth / (double)j->rows));
}

static embla_status finish_tokens(void *call, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t i = first; i < end; i++) finish_token(call, i);
    return EMBLA_OK;
}

/* ---- backward ---- */

/* Replaces a block's logits by gradients. */
static void to_gradients(job *j, size_t block, const own *o)
{
    size_t first = block * j->shape.block, n = rows_in(j, block), stride = stride_of(j, block);
    if (j->to.bias) memset(o->sums, 0, n * sizeof *o->sums);
    for (size_t i = 0; i < j->here; i++) {
        const token *t = &j->tokens[i];
        float *row = tile_of(j, block, o) + i * stride;
        if (j->head.soft_cap != 0.0f) memcpy(o->line, row, n * sizeof *row);
        embla_softmax_gradient(row, n, t->base, t->factor, j->less);
        if (t->target - first < n) row[t->target - first] = t->at_target;
        if (j->head.soft_cap != 0.0f) embla_soft_cap_back(o->line, n, j->head.soft_cap, row);
        if (j->to.bias) j->kernels->accumulate(row, 1.0, n, o->sums);
        if (j->head.scale != 1.0f) j->kernels->scale(row, j->head.scale, n, row);
        if (j->bf16) j->encode(row, n, 1.0f, o->tile + i * stride);
    }
    for (size_t r = 0; j->to.bias && r < n; r++)
        j->to.bias[first + r] = (float)((double)j->to.bias[first + r] + o->sums[r]);
}

/* sum += gradients times rows; the first block of a group sets the sum. */
static embla_status add_to_hidden(job *j, size_t block, factor tile, bool add, float *sum,
                                  const own *o)
{
    size_t first = block * j->shape.block, n = rows_in(j, block);
    for (size_t r = 0; r < n; r += part_of(j, n)) {
        size_t some = embla_loss_least(part_of(j, n), n - r), unit = j->bf16 ? 2 : 4;
        factor a = {(const char *)tile.numbers + r * unit, tile.stride};
        embla_product p = {.m = j->here, .n = j->dim, .k = some, .form = EMBLA_PRODUCT_A_B};
        p.out = sum, p.out_stride = j->dim;
        p.add = add || r > 0;
        EMBLA_TRY(product(j, o, p, a, decode_rows(j, (int64_t)(first + r), some, o)));
    }
    return EMBLA_OK;
}

static embla_status backward(job *j, size_t group, const own *o)
{
    size_t from = group * j->blocks / j->shape.groups;
    size_t to = (group + 1) * j->blocks / j->shape.groups;
    float *sum = j->sums + group * j->shape.chunk * j->dim;
    for (size_t b = from; b < to; b++) {
        size_t first = b * j->shape.block;
        factor tile = {j->bf16 ? (const void *)o->tile : tile_of(j, b, o), stride_of(j, b)};
        if (j->shape.again) EMBLA_TRY(fill_tile(j, b, o));
        to_gradients(j, b, o);
        embla_product p = {
            .m = rows_in(j, b), .n = j->dim, .k = j->here, .form = EMBLA_PRODUCT_AT_B};
        p.out = j->to.table ? j->to.table + first * j->dim : NULL, p.out_stride = j->dim;
        p.add = true;
        if (p.out) EMBLA_TRY(product(j, o, p, tile, vectors_of(j)));
        if (j->to.hidden) EMBLA_TRY(add_to_hidden(j, b, tile, b > from, sum, o));
    }
    return EMBLA_OK;
}

static embla_status backward_groups(void *call, size_t first, size_t end, size_t slot)
{
    job *j = call;
    for (size_t g = first; g < end; g++) EMBLA_TRY(backward(j, g, &j->owns[slot]));
    return EMBLA_OK;
}

/* Adds the sums of all groups, in order. */
static embla_status add_groups(void *call, size_t first, size_t end, size_t slot)
{
    const job *j = call;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        float *restrict out = j->to.hidden + j->tokens[i].place * j->dim;
        memcpy(out, j->sums + i * j->dim, j->dim * sizeof *out);
        for (size_t g = 1; g < j->shape.groups; g++) {
            const float *restrict more = j->sums + (g * j->shape.chunk + i) * j->dim;
            for (size_t d = 0; d < j->dim; d++) out[d] += more[d];
        }
    }
    return EMBLA_OK;
}

/* ---- chunks ---- */

/* Gathers the next counted tokens. Gradients of ignored tokens between them are set to zero. */
static void gather_tokens(job *j)
{
    for (j->here = 0; j->at < j->count && j->here < j->shape.chunk; j->at++) {
        const float *vector = j->hidden + j->at * j->dim;
        if (!embla_loss_counts(&j->options, j->targets[j->at])) {
            if (j->to.hidden) memset(j->to.hidden + j->at * j->dim, 0, j->dim * sizeof(float));
            continue;
        }
        j->tokens[j->here] = (token){.place = j->at, .target = (size_t)j->targets[j->at]};
        if (j->bf16)
            j->encode(vector, j->dim, 1.0f, j->vectors16 + j->here * j->dim);
        else
            memcpy(j->vectors + j->here * j->dim, vector, j->dim * sizeof *vector);
        j->here++;
    }
}

static embla_status run_chunk(job *j)
{
    EMBLA_TRY(embla_share(j->threads, j->blocks, 1, forward_blocks, j));
    EMBLA_TRY(embla_share(j->threads, j->here, 0, finish_tokens, j));
    if (j->backward) EMBLA_TRY(embla_share(j->threads, j->shape.groups, 1, backward_groups, j));
    return j->to.hidden ? embla_share(j->threads, j->here, 0, add_groups, j) : EMBLA_OK;
}

static embla_status run_chunks(job *j, float *each, embla_loss_report *report)
{
    while (j->at < j->count) {
        gather_tokens(j);
        if (j->here == 0) break;
        EMBLA_TRY(run_chunk(j));
        for (size_t i = 0; i < j->here; i++) {
            const token *t = &j->tokens[i];
            if (each) each[t->place] = (float)t->loss;
            report->loss += t->loss;
            report->z_loss += t->z;
            report->correct += t->correct;
        }
    }
    return embla_table_check_file(j->head.table);
}

/* ---- checks ---- */

/* Checks that every target is a token or ignored, and counts the tokens. */
static embla_status count_targets(job *j)
{
    for (size_t i = 0; i < j->count; i++) {
        int32_t target = j->targets[i];
        if (!embla_loss_counts(&j->options, target)) continue;
        if (target < 0 || (size_t)target >= j->rows)
            return embla_fail(EMBLA_ERR_RANGE,
                              "target %" PRId32 " at index %zu; the head has %zu tokens, and %d is "
                              "ignored",
                              target, i, j->rows, EMBLA_TARGET_IGNORE);
        j->counted++;
    }
    return EMBLA_OK;
}

static embla_status prepare(const embla_head *head, job *j)
{
    EMBLA_TRY(embla_head_check(head, &j->head));
    EMBLA_TRY(embla_loss_check_options(&j->options));
    if (j->count > 0 && (!j->hidden || !j->targets))
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_head_loss: hidden or targets is NULL");
    if (j->to.bias && !j->head.bias)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a gradient of the bias is wanted, but the head has no bias");
    j->rows = (size_t)j->head.rows;
    j->source = embla_table_source(j->head.table);
    j->dim = embla_table_dim(j->head.table);
    EMBLA_TRY(count_targets(j));
    j->bf16 = j->options.compute == EMBLA_BF16;
    j->backward = j->to.hidden || j->to.table || j->to.bias;
    j->kernels = embla_kernels_get();
    j->decode = embla_dtype_decoder(embla_table_dtype(j->head.table), j->kernels->isa);
    j->encode = embla_dtype_encoder(EMBLA_BF16, j->kernels->isa);
    j->weight = j->options.weight == 0.0 ? 1.0 : j->options.weight;
    if (!j->options.sum && j->counted > 0) j->weight /= (double)j->counted;
    j->less = (float)(j->weight * j->options.smoothing / (double)j->rows);
    return EMBLA_OK;
}

/* Threads for a chunk: a multiply-add counts as much as moving 1/5 byte. */
static int threads_of(const job *j)
{
    double work = (double)embla_loss_least(j->shape.chunk, (size_t)j->counted) * (double)j->rows;
    work *= (double)j->dim / 5.0;
    int threads = embla_threads_for(j->options.threads, work < 1e15 ? (size_t)work : SIZE_MAX);
    return (size_t)threads > j->blocks ? (int)j->blocks : threads;
}

embla_status embla_loss_run(const embla_head *head, const float *hidden, const int32_t *targets,
                            size_t count, const embla_loss_options *options,
                            const embla_loss_gradients *gradients, float *each,
                            embla_loss_report *report, const embla_loss_shape *shape,
                            embla_scratch *scratch)
{
    job j = {.hidden = hidden, .targets = targets, .count = count};
    embla_loss_report said = {0};
    embla_scratch_use use = {0};
    embla_status status = EMBLA_OK;
    if (options) j.options = *options;
    if (gradients) j.to = *gradients;
    EMBLA_TRY(prepare(head, &j));
    j.shape = shape ? *shape : embla_loss_shape_of(j.rows, j.dim, j.bf16);
    j.blocks = (j.rows + j.shape.block - 1) / j.shape.block;
    j.shape.groups = embla_loss_least(j.shape.groups, j.blocks);
    j.threads = threads_of(&j);
    if (j.counted > 0) { /* all checks come before the first write */
        EMBLA_TRY(embla_engine_product(&(embla_product){0})); /* checks that there is an engine */
        EMBLA_TRY(allocate(&j, scratch, &use));
        if (j.rounded) status = embla_share(j.threads, j.rows, 0, round_rows, &j);
    }
    for (size_t i = 0; each && i < count; i++) each[i] = 0.0f;
    if (status == EMBLA_OK) status = run_chunks(&j, each, &said);
    embla_scratch_end(&use);
    if (status != EMBLA_OK) return status;
    said.counted = j.counted;
    said.ignored = (int64_t)count - j.counted;
    if (!j.options.sum && j.counted > 0) {
        said.loss /= (double)j.counted;
        said.z_loss /= (double)j.counted;
    }
    if (report) *report = said;
    return EMBLA_OK;
}

embla_status embla_head_loss(const embla_head *head, const embla_loss_batch *batch,
                             const embla_loss_options *options,
                             const embla_loss_gradients *gradients, embla_loss_report *report)
{
    EMBLA_TRY(embla_options_check(batch));
    EMBLA_TRY(embla_options_check(options));
    EMBLA_TRY(embla_options_check(gradients));
    EMBLA_NEED(batch);
    return embla_loss_run(head, batch->hidden, batch->targets, batch->count, options, gradients,
                          batch->each, report, NULL, NULL);
}
