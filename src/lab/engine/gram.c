/* SPDX-License-Identifier: Apache-2.0 */
/* Two passes. The first finds the finite rows, their mean and their largest magnitude. The second
 * subtracts the mean and sums products: in float by the engine within a block of rows, in double
 * from block to block; without an engine all in double. The contribution of the mean, known in
 * double, is added at the end if it is wanted. It is often the largest by far, and rounding errors
 * of its size would hide everything else.
 *
 * The matrix is cut into tiles, and rows into lanes where there are few tiles. One thread at a time
 * works on a tile of a lane and adds its blocks in order. Both cuts are independent of the number
 * of threads, so the bits are too.
 */
#include "engine/gram.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "table/access.h"

enum {
    DIM_MOST = 32768, /* a matrix of 8 GiB */
    CHUNK = 1024,     /* rows of one piece of work in the first pass; whole words of bad */
    CHUNK_LANES = 32,
    TILE = 512,  /* columns of a tile; whole pieces */
    BLOCK = 256, /* rows of one product, which sums in float */
    TURN = 4,    /* blocks of a lane in one parallel loop, so that threads read the same rows */
    LANES_MOST = 16,
    LANES_BYTES = 32 << 20 /* bytes of all matrices, if there is more than one */
};

/* ---- the first pass ---- */

typedef struct {
    const embla_row_source *source;
    const embla_kernels *kernels;
    embla_decode_fn *decode;
    embla_gram *gram;
    size_t dim;
    double *sums; /* CHUNK_LANES x dim */
    float *space; /* CHUNK_LANES x dim: decoded rows, unless rows are used where they are */
    int64_t good[CHUNK_LANES];
    int32_t most[CHUNK_LANES]; /* bits of the largest magnitude */
} first_pass;

/* The bits of the largest magnitude. Bits of floats without a sign order as the floats do, with
 * infinity and NaN last. */
static int32_t largest_bits(const float *x, size_t n)
{
    int32_t most = 0;
    for (size_t i = 0; i < n; i++) {
        int32_t bits;
        memcpy(&bits, &x[i], sizeof bits);
        bits &= INT32_MAX;
        most = bits > most ? bits : most;
    }
    return most;
}

static void first_lane(first_pass *pass, size_t lane)
{
    enum { INFINITE = 0x7f800000 };
    int64_t rows = pass->source->rows, step = (int64_t)CHUNK_LANES * CHUNK, good = 0;
    float *space = pass->space + lane * pass->dim;
    int32_t most = 0;
    for (int64_t from = (int64_t)lane * CHUNK; from < rows; from += step) {
        int64_t to = from + CHUNK < rows ? from + CHUNK : rows;
        for (int64_t row = from; row < to; row++) {
            const float *x =
                embla_source_piece(pass->source, pass->decode, row, 0, pass->dim, space);
            int32_t bits = largest_bits(x, pass->dim);
            if (bits >= INFINITE) {
                pass->gram->bad[row / 64] |= UINT64_C(1) << (row % 64);
                continue;
            }
            most = bits > most ? bits : most;
            pass->kernels->accumulate(x, 1.0, pass->dim, pass->sums + lane * pass->dim);
            good++;
        }
    }
    pass->good[lane] = good;
    pass->most[lane] = most;
}

static embla_status first_lanes(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t lane = first; lane < end; lane++) first_lane(job, lane);
    return EMBLA_OK;
}

/* The power of two to scale by, which changes no digit. Squares of numbers between the limits, and
 * sums of them, are floats of full precision. */
static int exponent_for(float most)
{
    enum { SAFE = 40, END = 120 }; /* beyond END the power itself would not be a normal float */
    int exponent = 0;
    if (most > 0) (void)frexpf(most, &exponent);
    if (exponent > END) return END;
    if (exponent < -END) return -END;
    return exponent > SAFE || exponent < -SAFE ? exponent : 0;
}

static void first_end(first_pass *pass)
{
    embla_gram *gram = pass->gram;
    int32_t bits = 0;
    float most;
    for (size_t lane = 0; lane < CHUNK_LANES; lane++) {
        gram->rows += pass->good[lane];
        bits = pass->most[lane] > bits ? pass->most[lane] : bits;
        for (size_t i = 0; i < pass->dim; i++) gram->mean[i] += pass->sums[lane * pass->dim + i];
    }
    for (size_t i = 0; i < pass->dim && gram->rows > 0; i++) gram->mean[i] /= (double)gram->rows;
    gram->nonfinite = pass->source->rows - gram->rows;
    memcpy(&most, &bits, sizeof most);
    gram->exponent = exponent_for(most);
}

static embla_status first(const embla_row_source *source, int threads, embla_gram *gram)
{
    first_pass pass = {
        .source = source, .kernels = embla_kernels_get(), .gram = gram, .dim = gram->dim};
    size_t sums_bytes = CHUNK_LANES * gram->dim * sizeof(double);
    size_t bytes = sums_bytes + CHUNK_LANES * gram->dim * sizeof(float);
    void *memory;
    pass.decode = embla_dtype_decoder(source->row->format.dtype, pass.kernels->isa);
    EMBLA_TRY(embla_mem_new(bytes, "sums of columns", &memory));
    pass.sums = memory;
    pass.space = (float *)(void *)((char *)memory + sums_bytes);
    threads = embla_threads_for(threads, (size_t)source->rows * source->row->bytes);
    embla_status status = embla_share(threads, CHUNK_LANES, 1, first_lanes, &pass);
    if (status == EMBLA_OK) first_end(&pass);
    embla_mem_free(memory, bytes);
    return status;
}

/* ---- the second pass ---- */

typedef struct {
    const embla_row_source *source;
    const embla_kernels *kernels;
    embla_decode_fn *decode;
    embla_gram *gram;
    size_t dim, width, sides, tiles, lanes; /* width is the columns of a tile, at most TILE */
    bool plain;                             /* without an engine */
    float scale;                            /* 2^-exponent */
    float *minus;                           /* dim: the scaled and rounded mean, negated */
    double *lane_memory;                    /* (lanes - 1) matrices, for all lanes but the first */
    float *space;                           /* memory of all slots, `share` floats each */
    size_t share;
    int64_t turn;
} second_pass;

typedef struct {
    size_t row, column; /* position of the tile, counted in tiles; column >= row */
    size_t lane;
} place;

static place tile_position(const second_pass *pass, size_t task)
{
    place at = {.lane = task / pass->tiles};
    size_t left = task % pass->tiles;
    for (size_t in_row = pass->sides; left >= in_row; in_row--) {
        left -= in_row;
        at.row++;
    }
    at.column = at.row + left;
    return at;
}

/* Writes columns first .. first+n-1 of count rows, minus the mean, to out (count x n). Rows that
 * are left out become zeros, which add nothing. */
static void read_panel(const second_pass *pass, int64_t from, size_t count, size_t first, size_t n,
                       float *out)
{
    float piece[EMBLA_PIECE];
    for (size_t r = 0; r < count; r++, out += n) {
        int64_t row = from + (int64_t)r;
        if (embla_gram_left_out(pass->gram, row)) {
            memset(out, 0, n * sizeof *out);
            continue;
        }
        for (size_t i = 0; i < n; i += EMBLA_PIECE) {
            size_t part = n - i < EMBLA_PIECE ? n - i : EMBLA_PIECE;
            const float *x =
                embla_source_piece(pass->source, pass->decode, row, first + i, part, piece);
            pass->kernels->scale_add(x, pass->scale, pass->minus + first + i, part, out + i);
        }
    }
}

static double *matrix_of(const second_pass *pass, size_t lane)
{
    return lane == 0 ? pass->gram->matrix : pass->lane_memory + (lane - 1) * pass->dim * pass->dim;
}

/* The columns of the n-th tile. */
static size_t columns(const second_pass *pass, size_t n)
{
    size_t first = n * TILE;
    return pass->dim - first < TILE ? pass->dim - first : TILE;
}

/* Adds the products of the columns of a (count x m) and b (count x n) by plain loops: row by row of
 * the sums, which stays in the L1 cache. On the diagonal, where a is b, the upper triangle only. */
static void add_plain(const second_pass *pass, const embla_product *product, double *sums)
{
    for (size_t i = 0; i < product->m; i++) {
        size_t first = product->a == product->b ? i : 0;
        for (size_t row = 0; row < product->k; row++)
            pass->kernels->accumulate(product->b + row * product->n + first,
                                      (double)product->a[row * product->m + i], product->n - first,
                                      sums + i * pass->dim + first);
    }
}

static embla_status add_block(const second_pass *pass, place at, int64_t from, size_t count,
                              float *space)
{
    size_t m = columns(pass, at.row), n = columns(pass, at.column), panel = BLOCK * pass->width;
    float *a = space, *b = at.row == at.column ? a : space + panel, *out = space + 2 * panel;
    embla_product product = {.m = m,
                             .n = n,
                             .k = count,
                             .a = a,
                             .b = b,
                             .a_stride = m,
                             .b_stride = n,
                             .out = out,
                             .out_stride = n,
                             .form = EMBLA_PRODUCT_AT_B};
    read_panel(pass, from, count, at.row * TILE, m, a);
    if (b != a) read_panel(pass, from, count, at.column * TILE, n, b);
    double *sums = matrix_of(pass, at.lane) + at.row * TILE * pass->dim + at.column * TILE;
    if (pass->plain) {
        add_plain(pass, &product, sums);
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_engine_product(&product));
    for (size_t i = 0; i < m; i++)
        pass->kernels->accumulate(out + i * n, 1.0, n, sums + i * pass->dim);
    return EMBLA_OK;
}

/* Adds the blocks of one tile and lane in a turn. */
static embla_status add_tile(const second_pass *pass, size_t task, float *space)
{
    place at = tile_position(pass, task);
    int64_t rows = pass->source->rows;
    int64_t from = (pass->turn * (int64_t)pass->lanes + (int64_t)at.lane) * TURN * BLOCK;
    for (size_t i = 0; i < TURN && from < rows; i++, from += BLOCK) {
        size_t count = rows - from < BLOCK ? (size_t)(rows - from) : BLOCK;
        EMBLA_TRY(add_block(pass, at, from, count, space));
    }
    return EMBLA_OK;
}

static embla_status add_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const second_pass *pass = job;
    float *space = pass->space + slot * pass->share;
    for (size_t task = first; task < end; task++) EMBLA_TRY(add_tile(pass, task, space));
    return EMBLA_OK;
}

/* Adds the matrices of all lanes, in order. */
static embla_status add_lanes(void *job, size_t first, size_t end, size_t slot)
{
    const second_pass *pass = job;
    size_t dim = pass->dim;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        double *sums = pass->gram->matrix + i * dim;
        for (size_t lane = 1; lane < pass->lanes; lane++) {
            const double *more = matrix_of(pass, lane) + i * dim;
            for (size_t j = i; j < dim; j++) sums[j] += more[j];
        }
    }
    return EMBLA_OK;
}

static embla_status second_rows(second_pass *pass, int threads)
{
    int64_t in_turn = (int64_t)pass->lanes * TURN * BLOCK;
    int64_t turns = (pass->source->rows + in_turn - 1) / in_turn;
    for (pass->turn = 0; pass->turn < turns; pass->turn++)
        EMBLA_TRY(embla_share(threads, pass->tiles * pass->lanes, 1, add_tiles, pass));
    return embla_share(threads, pass->dim, 0, add_lanes, pass);
}

/* The size of rounding errors, estimated from the matrix before the mean is added. */
static double noise_of(const embla_gram *gram)
{
    double sum = 0;
    for (size_t i = 0; i < gram->dim; i++) {
        double square = gram->matrix[i * gram->dim + i] * gram->matrix[i * gram->dim + i];
        for (size_t j = i + 1; j < gram->dim; j++)
            square += 2 * gram->matrix[i * gram->dim + j] * gram->matrix[i * gram->dim + j];
        sum += square;
    }
    return sqrt(sum) * 0x1p-23;
}

/* Let x = d + m, where d was summed. Then sum of x x' = sum of d d' + n (mean mean' - e e'), where
 * e = mean - m is the rounding error of m. If centred, it is sum of d d' - n e e'. */
static void add_mean(const second_pass *pass, bool centred)
{
    const embla_gram *gram = pass->gram;
    double rows = (double)gram->rows, scale = (double)pass->scale;
    for (size_t i = 0; i < gram->dim; i++) {
        double mean = gram->mean[i] * scale, rest = mean + (double)pass->minus[i];
        for (size_t j = i; j < gram->dim; j++) {
            double other = gram->mean[j] * scale, other_rest = other + (double)pass->minus[j];
            double part = (centred ? 0 : mean * other) - rest * other_rest;
            gram->matrix[i * gram->dim + j] += rows * part;
        }
    }
}

static embla_status second(const embla_row_source *source, const embla_gram_options *options,
                           embla_gram *gram, size_t lanes)
{
    second_pass pass = {.source = source,
                        .kernels = embla_kernels_get(),
                        .gram = gram,
                        .dim = gram->dim,
                        .width = gram->dim < TILE ? gram->dim : TILE,
                        .sides = (gram->dim + TILE - 1) / TILE,
                        .lanes = lanes,
                        .plain = options->plain || !embla_engine_has_products(),
                        .scale = ldexpf(1.0f, -gram->exponent)};
    pass.decode = embla_dtype_decoder(source->row->format.dtype, pass.kernels->isa);
    pass.tiles = pass.sides * (pass.sides + 1) / 2;
    pass.share = (2 * BLOCK + pass.width) * pass.width;
    size_t work = (size_t)source->rows * gram->dim * sizeof(float), tasks = pass.tiles * lanes;
    int threads = embla_threads_for(options->threads, work);
    if ((size_t)threads > tasks) threads = (int)tasks;
    size_t lane_bytes = (lanes - 1) * gram->dim * gram->dim * sizeof(double);
    size_t space_bytes = (size_t)threads * pass.share * sizeof(float);
    size_t bytes = lane_bytes + space_bytes + gram->dim * sizeof(float);
    void *memory;
    EMBLA_TRY(embla_mem_new(bytes, "sums of products", &memory));
    pass.lane_memory = memory;
    pass.space = (float *)(void *)((char *)memory + lane_bytes);
    pass.minus = (float *)(void *)((char *)memory + lane_bytes + space_bytes);
    for (size_t i = 0; i < gram->dim; i++)
        pass.minus[i] = -(float)(gram->mean[i] * (double)pass.scale);
    embla_status status = second_rows(&pass, threads);
    if (status == EMBLA_OK) {
        gram->noise = noise_of(gram);
        add_mean(&pass, options->centred);
    }
    embla_mem_free(memory, bytes);
    return status;
}

/* ---- both ---- */

/* Enough lanes for many threads, within bounded memory, and at least one block for each lane. */
static size_t lanes_for(const embla_row_source *source, size_t dim)
{
    size_t matrix = dim * dim * sizeof(double), lanes = LANES_BYTES / matrix;
    int64_t blocks = (source->rows + BLOCK - 1) / BLOCK;
    if (lanes > LANES_MOST) lanes = LANES_MOST;
    if ((int64_t)lanes > blocks) lanes = (size_t)blocks;
    return lanes > 0 ? lanes : 1;
}

static embla_status gram_of(const embla_table *table, const embla_gram_options *options,
                            embla_gram *gram)
{
    const embla_row_source *source = embla_table_source(table);
    void *matrix, *mean, *bad;
    EMBLA_TRY(embla_mem_new(gram->mean_bytes, "the mean row", &mean));
    gram->mean = mean;
    EMBLA_TRY(embla_mem_new(gram->bad_bytes, "rows that are not finite", &bad));
    gram->bad = bad;
    EMBLA_TRY(embla_table_check_file(table));
    EMBLA_TRY(first(source, options->threads, gram));
    EMBLA_TRY(embla_mem_new(gram->matrix_bytes, "a matrix of dim x dim", &matrix));
    gram->matrix = matrix;
    EMBLA_TRY(second(source, options, gram, lanes_for(source, gram->dim)));
    return embla_table_check_file(table);
}

embla_status embla_gram_of(const embla_table *table, const embla_gram_options *options,
                           embla_gram *out)
{
    const size_t dim = embla_table_dim(table);
    EMBLA_TRY(embla_threads_check(options->threads));
    if (dim > DIM_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "dim is %zu; principal directions are computed for "
                          "dim at most %d",
                          dim, DIM_MOST);
    embla_gram gram = {
        .dim = dim, .mean_bytes = dim * sizeof(double), .matrix_bytes = dim * dim * sizeof(double)};
    gram.bad_bytes = ((size_t)embla_table_rows(table) + 63) / 64 * sizeof(uint64_t);
    embla_status status = gram_of(table, options, &gram);
    if (status != EMBLA_OK)
        embla_gram_free(&gram);
    else
        *out = gram;
    return status;
}

void embla_gram_free(embla_gram *gram)
{
    embla_mem_free(gram->matrix, gram->matrix_bytes);
    embla_mem_free(gram->mean, gram->mean_bytes);
    embla_mem_free(gram->bad, gram->bad_bytes);
}
