/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers, forward and backward: three products, each cut into blocks of its result.
 *
 * A block has a shape that depends on the sizes alone and belongs to one thread, which multiplies
 * it with the engine or with plain loops (small, or no engine). So no bit depends on the
 * number of threads; whether the engine serves is decided by the call's way and by sizes. In bf16
 * the factors are rounded once for each call.
 */
#include "base/dtype.h"
#include "base/half.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "model/layers.h"
#include "model/layers_product.h"
#include "model/layers_vec.h"

enum {
    SMALL = 1 << 17, /* with fewer multiplications, plain loops are faster than the engine */
    ROWS = 256,      /* maximum rows of a block */
    ROWS_LEAST = 96, /* minimum rows, if smaller blocks .. */
    BLOCKS = 8,      /* .. are needed to give threads this many blocks */
    COLUMNS = 384,   /* maximum columns of a block */
    ROWS_BF16 = 512, /* the same for bf16, whose factors are packed anew for each block */
    COLUMNS_BF16 = 512,
    PLAIN = 64,   /* rows and columns of a block for plain loops */
    BIAS = 256,   /* columns of a bias gradient that one thread sums */
    PIECE = 4096, /* numbers that are rounded at once */
    PARTS = 3     /* products, or sums, of one call */
};

/* ---- products by plain loops ---- */

/* The result is made in strips of two vectors of columns. The rows of b that a strip needs are read
 * where they lie, or, where b is turned or the strip is not full, copied to a panel on the stack
 * with zeros for the columns that are not there. Four rows of the result are held in registers
 * while k goes by.
 */

/* A panel: `depth` rows of a strip. */
typedef struct {
    const float *at;
    size_t stride;
    size_t depth;
} panel_of;

/* All m rows of a strip of vecs vectors, of which `columns` numbers exist. */
EMBLA_BODY void strip(const size_t vecs, const embla_plain_product *p, size_t first,
                      const panel_of *b, size_t column, size_t columns)
{
    bool turned = p->form == EMBLA_PRODUCT_AT_B, add = p->add || first > 0,
         whole = columns == vecs * EMBLA_VEC;
    size_t a_row = turned ? 1 : p->a_stride, a_deep = turned ? p->a_stride : 1;
    const float *a = (const float *)p->a + first * a_deep;
    float *out = (float *)p->out + column;
    float part[EMBLA_VEC_ROWS * 2 * EMBLA_VEC];
    embla_row_sums sums = {
        .a_row = a_row, .a_deep = a_deep, .b = b->at, .b_stride = b->stride, .count = b->depth};
    for (size_t i = 0; i < p->m;) {
        size_t rows = p->m - i < EMBLA_VEC_ROWS ? 1 : EMBLA_VEC_ROWS;
        float *to = whole ? out + i * p->out_stride : part;
        size_t stride = whole ? p->out_stride : vecs * EMBLA_VEC;
        sums.a = a + i * a_row;
        if (rows == 1)
            embla_sum_rows(1, vecs, &sums, whole && add, to, stride);
        else
            embla_sum_rows(EMBLA_VEC_ROWS, vecs, &sums, whole && add, to, stride);
        for (size_t r = 0; !whole && r < rows; r++)
            for (size_t c = 0; c < columns; c++) {
                float *at = out + (i + r) * p->out_stride + c;
                *at = add ? *at + part[r * stride + c] : part[r * stride + c];
            }
        i += rows;
    }
}

/* Copies rows first .. first+depth-1 of b for this strip. */
EMBLA_BODY void fill_panel(const embla_plain_product *p, size_t first, size_t depth, size_t column,
                           size_t columns, size_t width, float *panel)
{
    const float *b = p->b;
    if (columns < width)
        for (size_t i = 0; i < depth * width; i++) panel[i] = 0;
    if (p->form == EMBLA_PRODUCT_A_BT)
        embla_transpose(b + column * p->b_stride + first, p->b_stride, columns, depth, panel,
                        width);
    else
        for (size_t i = 0; i < depth; i++)
            for (size_t c = 0; c < columns; c++)
                panel[i * width + c] = b[(first + i) * p->b_stride + column + c];
}

/* Each number is a dot product: a few rows of a with transposed b. */
EMBLA_BODY void dots(const embla_plain_product *p)
{
    for (size_t j = 0; j < p->n; j++)
        for (size_t i = 0; i < p->m; i++) {
            const float *a = (const float *)p->a + i * p->a_stride;
            const float *b = (const float *)p->b + j * p->b_stride;
            float *out = (float *)p->out + i * p->out_stride + j, lanes[EMBLA_VEC];
            embla_vec_f32 sum = {0};
            size_t at = 0;
            for (; at + EMBLA_VEC <= p->k; at += EMBLA_VEC)
                sum += *(const embla_vec_f32 *)(a + at) * *(const embla_vec_f32 *)(b + at);
            *(embla_vec_f32 *)lanes = sum;
            for (size_t l = 0; at + l < p->k; l++) lanes[l] += a[at + l] * b[at + l];
            for (size_t half = EMBLA_VEC / 2; half > 0; half /= 2)
                for (size_t l = 0; l < half; l++) lanes[l] += lanes[l + half];
            *out = p->add ? *out + lanes[0] : lanes[0];
        }
}

EMBLA_BODY void product_body(const embla_plain_product *p)
{
    float space[EMBLA_PRODUCT_DEPTH * 2 * EMBLA_VEC];
    if (p->form == EMBLA_PRODUCT_A_BT && p->m < EMBLA_PRODUCT_FEW) {
        dots(p);
        return;
    }
    for (size_t column = 0; column < p->n; column += 2 * EMBLA_VEC) {
        size_t columns = p->n - column < 2 * EMBLA_VEC ? p->n - column : 2 * EMBLA_VEC;
        size_t vecs = columns > EMBLA_VEC ? 2 : 1, first = 0;
        bool copied = p->form == EMBLA_PRODUCT_A_BT || columns < vecs * EMBLA_VEC;
        do { /* at least once: with k = 0 the result is 0 */
            size_t left = p->k - first;
            panel_of b = {.depth = left < EMBLA_PRODUCT_DEPTH ? left : EMBLA_PRODUCT_DEPTH};
            b.at = copied ? space : (const float *)p->b + first * p->b_stride + column;
            b.stride = copied ? vecs * EMBLA_VEC : p->b_stride;
            if (copied) fill_panel(p, first, b.depth, column, columns, vecs * EMBLA_VEC, space);
            if (vecs == 2)
                strip(2, p, first, &b, column, columns);
            else
                strip(1, p, first, &b, column, columns);
            first += b.depth;
        } while (first < p->k);
    }
}

EMBLA_ISA_FUNCTION(void, plain_product, (const embla_plain_product *p), product_body(p);)

void embla_product_plain(const embla_plain_product *product)
{
    EMBLA_PICK(plain_product)(product);
}

embla_status embla_product_either(bool engine, const embla_plain_product *p)
{
    if (!engine) {
        embla_product_plain(p);
        return EMBLA_OK;
    }
    return embla_engine_product(&(embla_product){.m = p->m,
                                                 .n = p->n,
                                                 .k = p->k,
                                                 .a = p->a,
                                                 .b = p->b,
                                                 .a_stride = p->a_stride,
                                                 .b_stride = p->b_stride,
                                                 .out = p->out,
                                                 .out_stride = p->out_stride,
                                                 .form = p->form,
                                                 .add = p->add});
}

/* ---- parts of a call and their blocks ---- */

/* A product, with a bias that is added to each row (may be NULL). If `sums`: the sums of the
 * columns of a (k x n), added to out. */
typedef struct {
    embla_plain_product product;
    const float *bias;
    bool sums;
    size_t rows, columns; /* of a block */
    size_t across, blocks;
} part_of_call;

typedef struct {
    const embla_layer_way *way;
    part_of_call parts[PARTS];
    size_t count, blocks; /* parts; blocks of all of them */
    bool engine, bf16;
    float *space; /* for bf16 products: EMBLA_BF16_SPACE for each slot, or NULL */
} call;

static size_t blocks_of(size_t n, size_t size)
{
    return n / size + (n % size > 0);
}

static void add_part(call *c, const part_of_call *given)
{
    part_of_call *part = &c->parts[c->count++];
    *part = *given;
    part->across = blocks_of(part->product.n, part->columns);
    part->blocks = part->across * (part->sums ? 1 : blocks_of(part->product.m, part->rows));
    c->blocks += part->blocks;
}

/* Divides n into as few parts of at most `most` as possible, about equally long, multiples of
 * unit. */
static size_t part_length(size_t n, size_t most, size_t unit)
{
    size_t parts = blocks_of(n, most);
    return blocks_of(blocks_of(n, parts), unit) * unit;
}

static bool rounds(const embla_layer_way *way)
{
    return way->compute == EMBLA_BF16;
}

static void add_product(call *c, const embla_plain_product *product, const float *bias)
{
    enum { UNIT = 16 };
    part_of_call part = {.product = *product, .bias = bias, .rows = PLAIN, .columns = PLAIN};
    if (c->engine) {
        size_t most = rounds(c->way) ? ROWS_BF16 : ROWS;
        part.columns = part_length(product->n, rounds(c->way) ? COLUMNS_BF16 : COLUMNS, UNIT);
        size_t across = blocks_of(product->n, part.columns);
        size_t rows = blocks_of(product->m * across, BLOCKS);
        rows = rows < ROWS_LEAST ? ROWS_LEAST : rows;
        part.rows = part_length(product->m, rows < most ? rows : most, UNIT);
    }
    add_part(c, &part);
}

/* Adds the sum of each column j of a to out[j], in double, in the order of rows. */
static void sum_columns(const float *a, size_t rows, size_t stride, size_t columns, float *out)
{
    double sums[BIAS] = {0};
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) sums[j] += (double)a[i * stride + j];
    for (size_t j = 0; j < columns; j++) out[j] = (float)((double)out[j] + sums[j]);
}

static void add_bias(const float *bias, size_t rows, size_t columns, size_t stride, float *out)
{
    for (size_t i = 0; i < rows; i++)
        for (size_t j = 0; j < columns; j++) out[i * stride + j] += bias[j];
}

/* The block of the product that begins at (row, column). */
static embla_plain_product block_at(const call *c, const part_of_call *part, size_t row,
                                    size_t column)
{
    embla_plain_product p = part->product;
    size_t unit = sizeof(float), factor = c->bf16 ? sizeof(uint16_t) : unit;
    size_t a = p.form == EMBLA_PRODUCT_AT_B ? row : row * p.a_stride;
    size_t b = p.form == EMBLA_PRODUCT_A_BT ? column * p.b_stride : column;
    p.m = p.m - row < part->rows ? p.m - row : part->rows;
    p.n = p.n - column < part->columns ? p.n - column : part->columns;
    p.a = (const char *)p.a + a * factor;
    p.b = (const char *)p.b + b * factor;
    p.out = (char *)p.out + (row * p.out_stride + column) * unit;
    return p;
}

static embla_status multiply(const call *c, const embla_plain_product *p, size_t slot)
{
    if (!c->bf16) return embla_product_either(c->engine, p);
    float *space = c->space;
    if (space) space += slot * EMBLA_BF16_SPACE;
    return embla_engine_product_bf16(&(embla_product_bf16){.m = p->m,
                                                           .n = p->n,
                                                           .k = p->k,
                                                           .a = p->a,
                                                           .b = p->b,
                                                           .a_stride = p->a_stride,
                                                           .b_stride = p->b_stride,
                                                           .out = p->out,
                                                           .out_stride = p->out_stride,
                                                           .space = space,
                                                           .form = p->form,
                                                           .add = p->add});
}

static void sum_block(const part_of_call *part, size_t column)
{
    const embla_plain_product *p = &part->product;
    size_t columns = p->n - column < part->columns ? p->n - column : part->columns;
    sum_columns((const float *)p->a + column, p->k, p->a_stride, columns, (float *)p->out + column);
}

static embla_status run_block(const call *c, size_t block, size_t slot)
{
    const part_of_call *part = c->parts;
    for (; block >= part->blocks; part++) block -= part->blocks;
    size_t row = block / part->across * part->rows, column = block % part->across * part->columns;
    if (part->sums) {
        sum_block(part, column);
        return EMBLA_OK;
    }
    embla_plain_product p = block_at(c, part, row, column);
    EMBLA_TRY(multiply(c, &p, slot));
    if (part->bias) add_bias(part->bias + column, p.m, p.n, p.out_stride, p.out);
    return EMBLA_OK;
}

/* One thread for about every ten microseconds of work. */
static int threads_for(const call *c, size_t work)
{
    int threads = embla_threads_for(c->way->threads, c->engine ? work / 2 : work * 2);
    return (size_t)threads > c->blocks ? (int)c->blocks : threads;
}

static embla_status run_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const call *c = job;
    for (size_t block = first; block < end; block++) EMBLA_TRY(run_block(c, block, slot));
    return EMBLA_OK;
}

static bool engine_pays(const embla_layer_way *way, size_t n, size_t in, size_t out)
{
    return n > EMBLA_PRODUCT_FEW && n * in * out > SMALL && embla_layer_has_engine(way);
}

/* ---- factors in bf16 ---- */

/* One factor: count floats, rounded to bf16; as uint16_t for the engine, otherwise as floats. */
typedef struct {
    const float *from;
    size_t count, place;
    const void *at; /* the rounded numbers */
} rounded;

typedef struct {
    const float *from;
    size_t count;
    bool widen;
    void *to;
} rounding;

static embla_status round_pieces(void *job, size_t first, size_t end, size_t slot)
{
    const rounding *r = job;
    embla_encode_fn *encode = embla_dtype_encoder(EMBLA_BF16, embla_kernels_get()->isa);
    (void)slot;
    for (size_t i = first * PIECE; i < r->count && i < end * PIECE; i += PIECE) {
        size_t n = r->count - i < PIECE ? r->count - i : PIECE;
        uint16_t half[PIECE], *out = r->widen ? half : (uint16_t *)r->to + i;
        encode(r->from + i, n, 1.0f, out);
        for (size_t j = 0; r->widen && j < n; j++)
            ((float *)r->to)[i + j] = embla_f32_from_bf16(half[j]);
    }
    return EMBLA_OK;
}

embla_status embla_layer_round(int threads, const float *from, size_t count, bool widen, void *to)
{
    const rounding r = {.from = from, .count = count, .widen = widen, .to = to};
    return embla_share(embla_threads_for(threads, count * sizeof *from), blocks_of(count, PIECE), 0,
                       round_pieces, &r);
}

/* Rounds the factors that have no rounded copy yet, and gets memory for bf16 products if needed. */
static embla_status round_factors(call *c, rounded *factors, size_t count, int threads,
                                  embla_scratch_use *use)
{
    embla_layout layout = {0};
    size_t unit = c->engine ? sizeof(uint16_t) : sizeof(float), space;
    bool widen = c->engine && !embla_engine_has_bf16();
    for (size_t i = 0; i < count; i++) {
        if (c->engine) factors[i].at = embla_layer_rounded(c->way, factors[i].from);
        factors[i].place = embla_layout_add(&layout, factors[i].at ? 0 : factors[i].count, unit);
    }
    space =
        embla_layout_add(&layout, widen ? (size_t)threads * EMBLA_BF16_SPACE : 0, sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "the factors in bf16 do not fit in memory");
    EMBLA_TRY(embla_scratch_begin(c->way->scratch, layout.bytes,
                                  "factors of a linear layer in bf16", use));
    embla_status status = EMBLA_OK;
    for (size_t i = 0; i < count && status == EMBLA_OK; i++) {
        char *to = (char *)use->memory + factors[i].place;
        if (factors[i].at) continue;
        status =
            embla_layer_round(c->way->threads, factors[i].from, factors[i].count, !c->engine, to);
        factors[i].at = to;
    }
    if (status != EMBLA_OK) embla_scratch_end(use);
    c->space = widen ? (float *)(void *)((char *)use->memory + space) : NULL;
    c->bf16 = c->engine;
    return status;
}

/* ---- forward and backward ---- */

embla_status embla_linear_forward(const embla_layer_way *way, const float *x, size_t n, size_t in,
                                  const float *w, const float *bias, size_t out, bool add, float *y)
{
    call c = {.way = way, .engine = engine_pays(way, n, in, out)};
    rounded factors[] = {{.from = x, .count = n * in}, {.from = w, .count = out * in}};
    embla_scratch_use use = {0};
    embla_plain_product product = {.m = n,
                                   .n = out,
                                   .k = in,
                                   .a = x,
                                   .b = w,
                                   .a_stride = in,
                                   .b_stride = in,
                                   .out = y,
                                   .out_stride = out,
                                   .form = EMBLA_PRODUCT_A_BT,
                                   .add = add};
    if (n == 0 || out == 0) return EMBLA_OK;
    add_product(&c, &product, bias);
    int threads = threads_for(&c, n * in * out);
    if (rounds(way)) {
        EMBLA_TRY(round_factors(&c, factors, 2, threads, &use));
        c.parts[0].product.a = factors[0].at;
        c.parts[0].product.b = factors[1].at;
    }
    embla_status status = embla_share(threads, c.blocks, 1, run_blocks, &c);
    embla_scratch_end(&use);
    return status;
}

embla_status embla_linear_backward(const embla_layer_way *way, const float *x, const float *dy,
                                   size_t n, size_t in, const float *w, size_t out, bool add_dx,
                                   float *dx, float *dw, float *dbias)
{
    call c = {.way = way, .engine = engine_pays(way, n, in, out)};
    rounded factors[] = {{.from = dy, .count = n * out},
                         {.from = w, .count = dx ? out * in : 0},
                         {.from = x, .count = dw ? n * in : 0}};
    embla_scratch_use use = {0};
    if (n == 0 || out == 0) return EMBLA_OK;
    const void *left = dy, *matrix = w, *input = x;
    int threads = embla_threads_for(way->threads, n * in * out);
    if (rounds(way)) {
        EMBLA_TRY(round_factors(&c, factors, 3, threads, &use));
        left = factors[0].at;
        matrix = factors[1].at;
        input = factors[2].at;
    }
    embla_plain_product p = {.a = left, .a_stride = out, .b_stride = in, .out_stride = in};
    if (dx) {
        p.m = n, p.n = in, p.k = out, p.b = matrix, p.out = dx, p.form = EMBLA_PRODUCT_A_B,
        p.add = add_dx;
        add_product(&c, &p, NULL);
    }
    if (dw) {
        p.m = out, p.n = in, p.k = n, p.b = input, p.out = dw, p.form = EMBLA_PRODUCT_AT_B,
        p.add = true;
        add_product(&c, &p, NULL);
    }
    p = (embla_plain_product){.n = out, .k = n, .a = dy, .a_stride = out, .out = dbias};
    if (dbias) add_part(&c, &(part_of_call){.product = p, .sums = true, .columns = BIAS});
    embla_status status = embla_share(threads, c.blocks, 1, run_blocks, &c);
    embla_scratch_end(&use);
    return status;
}
