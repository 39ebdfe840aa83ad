/* SPDX-License-Identifier: Apache-2.0 */
/* Three ways through, chosen once for a call:
 *
 *   copy    stored bytes are the wanted bytes: one kernel copies row after row
 *   decode  floats are wanted, just as they are stored: the dtype's codec writes them
 *   work    each row passes through small arrays that stay in the first-level cache:
 *           stored bytes -> floats -> (scale, add position) -> wanted dtype -> out
 *
 * Row numbers are handled in tiles: tokens are widened to row numbers here, the one
 * place where that happens, and below it nothing sees a token. Threads take tiles, each
 * output row is written by one thread, so the result does not depend on how many
 * there are.
 */
#include "table/gather.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/status.h"
#include "base/threads.h"

/* Row numbers handled at once, at most. */
enum { TILE = 256 };

/* What a call has decided, shared by all its threads. */
typedef struct plan {
    const embla_gather_job *job;
    const embla_kernels *kernels;
    void (*piece)(const struct plan *p, int64_t row, size_t i, size_t first, size_t n);
    embla_decode_fn *decode, *decode_position;
    embla_encode_fn *narrow; /* NULL: the result is f32 */
    const embla_dtype_info *out_info;
    bool copy;        /* stored bytes are the wanted bytes */
    bool fetch;       /* rows come from memory, not from a cache */
    bool arithmetic;  /* rows are scaled or added to */
    bool in_place;    /* floats can be written straight to out */
    size_t row_bytes; /* of an output row */
    size_t tile;      /* rows in a tile: TILE, or fewer so that every thread has its share */
    embla_write_mode mode;
} plan;

/* ---- check ---- */

static embla_status bad_row(size_t i, int64_t row, const embla_table *table, const char *what)
{
    return embla_fail(EMBLA_ERR_RANGE,
                      "%s %" PRId64 " at place %zu: the table has %" PRId64 " rows", what, row, i,
                      table->rows);
}

/* One pass by the kernel, then one to find the culprit. */
static embla_status check_rows(const int64_t *rows, size_t count, const embla_table *table,
                               const char *what)
{
    uint64_t limit = (uint64_t)table->rows;
    size_t i = 0;
    if (embla_kernels_get()->rows_below(rows, count, limit)) return EMBLA_OK;
    while ((uint64_t)rows[i] < limit) i++;
    return bad_row(i, rows[i], table, what);
}

static embla_status check_tokens(const int32_t *tokens, size_t count, const embla_table *table)
{
    uint32_t limit = table->rows > INT32_MAX ? (uint32_t)INT32_MAX + 1u : (uint32_t)table->rows;
    size_t i = 0;
    if (embla_kernels_get()->tokens_below(tokens, count, limit)) return EMBLA_OK;
    while ((uint32_t)tokens[i] < limit) i++;
    return bad_row(i, tokens[i], table, "token");
}

static embla_status check_positions(const embla_gather_job *job)
{
    const embla_table *positions = job->positions;
    if (job->position_rows)
        return check_rows(job->position_rows, job->count, positions, "position");
    if (job->first_position < 0 || job->first_position > positions->rows ||
        job->length > (uint64_t)(positions->rows - job->first_position))
        return embla_fail(EMBLA_ERR_RANGE,
                          "%zu positions from %" PRId64 ": the position table has %" PRId64 " rows",
                          job->length, job->first_position, positions->rows);
    return EMBLA_OK;
}

static embla_write_mode choose_mode(const embla_gather_job *job, size_t row_bytes)
{
    bool whole_lines = ((uintptr_t)job->out | job->out_stride | row_bytes) % EMBLA_LINE == 0;
    return embla_kernels_write_mode(job->count * row_bytes, whole_lines);
}

/* The shape of the output; what it holds is not looked at. */
static embla_status check_output(embla_gather_job *job, plan *p)
{
    size_t row_bytes = job->table->row_bytes, span;
    const char *name = embla_dtype_name(job->out_dtype);
    if (job->out_dtype == 0) job->out_dtype = EMBLA_F32;
    if (!job->raw) {
        if (job->out_dtype != EMBLA_F32 && job->out_dtype != EMBLA_BF16 &&
            job->out_dtype != EMBLA_F16)
            return embla_fail(EMBLA_ERR_UNSUPPORTED,
                              "rows are given as f32, bf16, f16 or raw, not %s (%d)",
                              name ? name : "dtype", (int)job->out_dtype);
        EMBLA_TRY(embla_dtype_row_bytes(job->out_dtype, job->table->dim, &row_bytes));
    }
    if (job->out_stride == 0) job->out_stride = row_bytes;
    if (job->out_stride < row_bytes)
        return embla_fail(EMBLA_ERR_SHAPE, "an output stride of %zu bytes is less than a row's %zu",
                          job->out_stride, row_bytes);
    if (!embla_span_ok(job->count, job->out_stride, row_bytes, &span))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows, %zu bytes apart, do not fit in memory",
                          job->count, job->out_stride);
    p->row_bytes = row_bytes;
    p->mode = choose_mode(job, row_bytes);
    return EMBLA_OK;
}

/* Asked before rows are taken from files, and again after: a file cut short in between
 * has been noticed then, and what was written to out is not what it should be. */
static embla_status check_files(const embla_gather_job *job)
{
    EMBLA_TRY(embla_table_check_file(job->table));
    return embla_table_check_file(job->positions);
}

/* What is wrong is refused even if no row is wanted: a program must not pass until its
 * first batch that is not empty. */
static embla_status check(embla_gather_job *job, plan *p)
{
    const embla_table *positions = job->positions;
    if (!job->table) return embla_fail(EMBLA_ERR_ARGUMENT, "the table is NULL");
    EMBLA_TRY(embla_threads_check(job->threads));
    if (!isfinite(job->scale))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a scale of %g is not a number", (double)job->scale);
    EMBLA_TRY(check_output(job, p));
    if (positions && positions->dim != job->table->dim)
        return embla_fail(EMBLA_ERR_SHAPE, "tokens have dim %zu but positions %zu", job->table->dim,
                          positions->dim);
    if (job->count == 0) return EMBLA_OK;
    if (!job->tokens && !job->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows wanted, but their numbers are NULL",
                          job->count);
    if (!job->out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows wanted, but out is NULL", job->count);
    if (positions) EMBLA_TRY(check_positions(job));
    EMBLA_TRY(job->tokens ? check_tokens(job->tokens, job->count, job->table)
                          : check_rows(job->rows, job->count, job->table, "row"));
    return check_files(job);
}

/* ---- work ---- */

static int64_t position_of(const embla_gather_job *job, size_t i)
{
    return job->position_rows ? job->position_rows[i]
                              : job->first_position + (int64_t)(i % job->length);
}

/* Numbers first .. first+n-1 of output row i, which comes from row `row`. */
static void work_piece(const plan *p, int64_t row, size_t i, size_t first, size_t n)
{
    const embla_gather_job *job = p->job;
    float decoded[EMBLA_PIECE], position[EMBLA_PIECE], result[EMBLA_PIECE];
    char narrowed[2 * EMBLA_PIECE];
    char *out = job->out + i * job->out_stride + embla_dtype_bytes(p->out_info, first);
    size_t out_bytes = embla_dtype_bytes(p->out_info, n);
    if (p->mode == EMBLA_WRITE_AHEAD)
        for (size_t k = 0; k < out_bytes; k += EMBLA_LINE) embla_fetch_to_write(out + k);
    const float *x = embla_table_piece(job->table, p->decode, row, first, n, decoded);
    float *sum = p->in_place && p->mode != EMBLA_WRITE_STREAM ? (float *)(void *)out : result;
    if (job->positions) {
        const float *y = embla_table_piece(job->positions, p->decode_position, position_of(job, i),
                                           first, n, position);
        p->kernels->scale_add(x, job->scale, y, n, sum);
        x = sum;
    } else if (p->arithmetic) {
        p->kernels->scale(x, job->scale, n, sum);
        x = sum;
    }
    const void *bytes = x;
    if (p->narrow) {
        p->narrow(x, n, 1.0f, narrowed);
        bytes = narrowed;
    }
    if (bytes == (const void *)out) return;
    if (p->mode == EMBLA_WRITE_STREAM)
        p->kernels->stream(out, bytes, out_bytes);
    else
        memcpy(out, bytes, out_bytes);
}

/* The same where decoding is all there is to do. */
static void decode_piece(const plan *p, int64_t row, size_t i, size_t first, size_t n)
{
    const embla_table *table = p->job->table;
    const char *in = embla_table_at(table, row) + embla_dtype_bytes(table->info, first);
    char *out = p->job->out + i * p->job->out_stride + first * sizeof(float);
    p->decode(in, n, table->scale, p->mode, (float *)(void *)out);
}

/* One output row, a piece at a time, with lines of later rows fetched in between. */
static void work_row(const plan *p, embla_fetch *fetch, int64_t row, size_t i)
{
    const embla_table *table = p->job->table;
    for (size_t first = 0; first < table->dim; first += EMBLA_PIECE) {
        size_t n = table->dim - first < EMBLA_PIECE ? table->dim - first : EMBLA_PIECE;
        size_t bytes = p->fetch ? embla_dtype_bytes(table->info, n) : 0;
        for (size_t k = 0; k < bytes; k += EMBLA_LINE) embla_fetch_line(fetch);
        p->piece(p, row, i, first, n);
    }
}

static void run_tile(const plan *p, int64_t tile)
{
    const embla_gather_job *job = p->job;
    size_t start = (size_t)tile * p->tile;
    size_t n = job->count - start < p->tile ? job->count - start : p->tile;
    const embla_table *table = job->table;
    int64_t widened[TILE + EMBLA_GROUP];
    const int64_t *rows = widened;
    size_t known = job->count - start;
    if (known > TILE + EMBLA_GROUP) known = TILE + EMBLA_GROUP;
    if (job->rows)
        rows = job->rows + start;
    else
        p->kernels->widen(job->tokens + start, known, widened);
    if (p->copy) {
        embla_copy_job copy = {.data = table->data,
                               .row_stride = table->row_stride,
                               .row_bytes = table->row_bytes,
                               .rows = rows,
                               .count = n,
                               .known = known,
                               .out = job->out + start * job->out_stride,
                               .out_stride = job->out_stride,
                               .mode = p->mode,
                               .fetch = p->fetch};
        p->kernels->copy_rows(&copy);
    } else {
        embla_fetch fetch = embla_fetch_of(table->data, table->row_stride, table->row_bytes);
        for (size_t i = 0; i < n; i++) {
            if (p->fetch) embla_fetch_at(&fetch, rows, i, known);
            work_row(p, &fetch, rows[i], start + i);
        }
    }
    if (p->mode == EMBLA_WRITE_STREAM) p->kernels->fence();
}

/* The largest tile up to TILE that gives all threads the same number of them. */
static size_t choose_tile(size_t count, int threads)
{
    size_t share = (count - 1) / (size_t)threads + 1, tiles = (share - 1) / TILE + 1;
    return (share - 1) / tiles + 1;
}

static void choose_work(plan *p)
{
    const embla_gather_job *job = p->job;
    embla_isa isa = p->kernels->isa;
    p->decode = embla_dtype_decoder(job->table->dtype, isa);
    p->out_info = embla_dtype_find_info(job->out_dtype);
    if (job->positions) p->decode_position = embla_dtype_decoder(job->positions->dtype, isa);
    if (job->out_dtype != EMBLA_F32) p->narrow = embla_dtype_encoder(job->out_dtype, isa);
    p->in_place = !p->narrow && ((uintptr_t)job->out | job->out_stride) % sizeof(float) == 0;
    p->piece = p->in_place && !p->arithmetic ? decode_piece : work_piece;
}

embla_status embla_gather(embla_gather_job *job)
{
    plan p = {.job = job, .kernels = embla_kernels_get()};
    if (job->scale == 0.0f) job->scale = 1.0f;
    EMBLA_TRY(check(job, &p));
    if (job->count == 0) return EMBLA_OK;

    const embla_table *table = job->table;
    p.arithmetic = job->positions || job->scale != 1.0f;
    p.copy = job->raw || (job->out_dtype == table->dtype && !p.arithmetic);
    p.fetch = job->count > EMBLA_GROUP_LEAST &&
              (size_t)table->rows * table->row_stride > EMBLA_SMALL_TABLE;
    if (!p.copy) choose_work(&p);
    int threads = embla_threads_for(job->threads, job->count * p.row_bytes);
    p.tile = choose_tile(job->count, threads);
    int64_t tiles = (int64_t)((job->count - 1) / p.tile + 1);
    if (threads == 1) { /* a parallel region, even of one thread, costs more than a row */
        for (int64_t tile = 0; tile < tiles; tile++) run_tile(&p, tile);
        return check_files(job);
    }
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t tile = 0; tile < tiles; tile++) run_tile(&p, tile);
    return check_files(job);
}
