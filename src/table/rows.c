/* SPDX-License-Identifier: Apache-2.0 */
/* Three ways through, chosen once for a call:
 *
 *   copy    stored bytes are the wanted bytes: one kernel copies row after row to out
 *   direct  rows are in memory: each is decoded where it lies, while lines of the rows that come
 *           later are asked for, a line of each in turn (base/lines.h)
 *   staged  they are not, or a part's codes and scales lie apart: bytes of up to 32 rows are
 *           brought to a small array in the first-level cache, then decoded
 *
 * Decoding from random places without asking ahead takes 2 to 3 times as long as copying the
 * rows; asked ahead in this way 1.5 times, staged 1.6 times. Asking for whole rows some way ahead
 * is slower than both: lines of one row arrive one after the other, those of many side by side.
 *
 * Decoded numbers go straight to out, or pass through arrays of 1,024 where they are added,
 * scaled or narrowed. Rows with more are worked on part by part. Each output vector is written by
 * one thread, so the result does not depend on how many there are. Nothing is allocated.
 */
#include "table/rows.h"

#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/failure.h"
#include "base/kernels.h"
#include "base/threads.h"

enum { TILE = 256 };       /* row numbers handled at once, at most, unless a store asks for more */
enum { STAGED = 32 };      /* rows staged at once, at most.. */
enum { STAGE = 18 << 10 }; /* ..in so many bytes: a row of Gemma's per-layer table fits */
enum { NUMBERS = 1024 };   /* of a row that pass through arrays at once; whole groups */

/* ---- check ---- */

static embla_status check_rows(const embla_store *store, const int64_t *rows, size_t count)
{
    uint64_t limit = (uint64_t)store->rows;
    size_t i = 0;
    if (embla_kernels_get()->rows_below(rows, count, limit)) return EMBLA_OK;
    while ((uint64_t)rows[i] < limit) i++;
    return embla_fail(EMBLA_ERR_RANGE,
                      "row %" PRId64 " at place %zu: the table has %" PRId64 " rows", rows[i], i,
                      store->rows);
}

/* What a vector is. */
static embla_status check_vector(const embla_rows_options *options, embla_rows_call *call)
{
    const char *name = embla_dtype_name(options->out_dtype);
    call->out_dtype = options->out_dtype == 0 ? EMBLA_F32 : options->out_dtype;
    call->scale = options->scale == 0.0f ? 1.0f : options->scale;
    call->sum = options->sum;
    if (!isfinite(call->scale))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a scale of %g is not a number", (double)call->scale);
    EMBLA_TRY(embla_row_part_of(call->row, options->first, options->columns, &call->part));
    if (options->raw) {
        if (options->sum) return embla_fail(EMBLA_ERR_ARGUMENT, "stored bytes cannot be added");
        if (call->scale != 1.0f)
            return embla_fail(EMBLA_ERR_ARGUMENT, "stored bytes cannot be scaled, by %g",
                              (double)call->scale);
        call->copy = true;
        call->out_dtype = EMBLA_F32; /* not looked at */
        call->vector_bytes = call->part.bytes;
        return EMBLA_OK;
    }
    if (call->out_dtype != EMBLA_F32 && call->out_dtype != EMBLA_BF16 &&
        call->out_dtype != EMBLA_F16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "rows are given as f32, bf16, f16 or raw, not %s (%d)",
                          name ? name : "dtype", (int)call->out_dtype);
    call->copy = call->out_dtype == call->row->format.dtype && call->scale == 1.0f && !call->sum;
    call->vector_bytes = embla_dtype_bytes(embla_dtype_find_info(call->out_dtype), call->part.n);
    return EMBLA_OK;
}

/* Whether outer vectors are far enough apart to have the inner ones between them. A stride is
 * never less than a vector. */
static bool nested(size_t inner, size_t inner_stride, size_t outer_stride, size_t bytes)
{
    size_t span;
    return embla_span_ok(inner, inner_stride, bytes, &span) && outer_stride >= span;
}

/* Vectors of a token side by side, or tokens of a head; none over another. */
static embla_status check_strides(const embla_rows_options *options, embla_rows_call *call)
{
    size_t bytes = call->vector_bytes, vectors = call->sum ? 1 : call->heads, span, most;
    uint64_t step, end;
    const size_t asked[2] = {options->token_stride, options->head_stride};
    for (size_t i = 0; i < 2; i++)
        if (asked[i] != 0 && asked[i] < bytes)
            return embla_fail(EMBLA_ERR_SHAPE,
                              "a %s stride of %zu bytes is less than a vector's %zu",
                              i == 0 ? "token" : "head", asked[i], bytes);
    if (call->sum && asked[1] != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "a head stride of %zu: a sum is one vector a token",
                          asked[1]);
    call->head_stride = asked[1] ? asked[1] : bytes;
    if (!embla_mul_ok(vectors, call->head_stride, &step)) step = UINT64_MAX;
    call->token_stride = asked[0] ? asked[0] : (size_t)step;
    if (vectors == 1) call->head_stride = call->token_stride;
    if (!embla_span_ok(call->tokens, call->token_stride, 0, &most) ||
        !embla_span_ok(vectors, call->head_stride, bytes, &span) ||
        !embla_add_ok(most, span, &end) || !embla_size_ok(end, &span))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%zu tokens of %zu vectors, %zu and %zu bytes apart, do not fit in memory",
            call->tokens, vectors, call->token_stride, call->head_stride);
    if (!nested(vectors, call->head_stride, call->token_stride, bytes) &&
        !nested(call->tokens, call->token_stride, call->head_stride, bytes))
        return embla_fail(
            EMBLA_ERR_SHAPE,
            "strides of %zu (token) and %zu (head) put vectors of %zu bytes over each "
            "other: %zu tokens of %zu",
            call->token_stride, call->head_stride, bytes, call->tokens, vectors);
    return EMBLA_OK;
}

embla_status embla_rows_check(const embla_store *store, const int64_t *rows, size_t count,
                              const embla_rows_options *options, void *out, embla_rows_call *call)
{
    static const embla_rows_options none;
    if (!options) options = &none;
    if (!store) return embla_fail(EMBLA_ERR_ARGUMENT, "the store is NULL");
    *call = (embla_rows_call){.row = &store->row,
                              .count = count,
                              .heads = options->heads ? options->heads : 1,
                              .threads = options->threads,
                              .out = out};
    EMBLA_TRY(embla_threads_check(options->threads));
    if (count % call->heads != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "%zu rows are no whole number of tokens with %zu each",
                          count, call->heads);
    call->tokens = count / call->heads;
    EMBLA_TRY(check_vector(options, call));
    EMBLA_TRY(check_strides(options, call));
    if (count == 0) return EMBLA_OK;
    if (!rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows wanted, but their numbers are NULL", count);
    if (!out) return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows wanted, but out is NULL", count);
    return check_rows(store, rows, count);
}

/* ---- work ---- */

/* What a call has decided, shared by all its threads. */
typedef struct {
    const embla_rows_call *call;
    const embla_rows_source *source;
    const int64_t *rows;
    const embla_kernels *kernels;
    embla_encode_fn *narrow; /* NULL: the result is f32 */
    const embla_dtype_info *out_info;
    bool line;     /* vectors follow each other, head_stride apart, token after token */
    bool in_place; /* floats can be written straight to out */
    size_t tile;   /* rows in a tile; of a sum, whole tokens */
    size_t piece;  /* numbers of a row worked on at once */
    embla_write_mode mode;
} plan;

/* One thread's way through a tile: where the next row goes, and what a sum has come to. */
typedef struct {
    const plan *p;
    embla_row_part part; /* that is worked on now */
    size_t head;
    char *token; /* the vectors of the token */
    unsigned now;
    float sums[2][NUMBERS], numbers[NUMBERS];
    char narrowed[2 * NUMBERS];
} walk;

/* Part of n rows to out, stride apart: codes, then scales. known are the row numbers that may be
 * read, n or more. */
static embla_status bring(const plan *p, const embla_row_part *part, const int64_t *rows, size_t n,
                          size_t known, char *out, size_t stride, embla_write_mode mode)
{
    const embla_rows_source *s = p->source;
    const embla_row_part *whole = &p->call->part;
    if (!s->data) {
        const embla_rows_job job = {.rows = rows,
                                    .count = n,
                                    .known = known,
                                    .part = part,
                                    .out = out,
                                    .out_stride = stride,
                                    .mode = mode};
        return embla_store_fetch(s->store, &job);
    }
    size_t codes = s->code_at + (part->code_at - whole->code_at);
    size_t scales = s->scale_at + (part->scale_at - whole->scale_at);
    bool together = part->scale_bytes == 0 || scales == codes + part->code_bytes;
    embla_copy_job job = {.data = s->data + codes,
                          .row_stride = s->stride,
                          .row_bytes = together ? part->bytes : part->code_bytes,
                          .rows = rows,
                          .count = n,
                          .known = known,
                          .out = out,
                          .out_stride = stride,
                          .mode = mode,
                          .fetch = s->fetch};
    p->kernels->copy_rows(&job);
    if (together) return EMBLA_OK;
    job.data = s->data + scales;
    job.row_bytes = part->scale_bytes;
    job.out = out + part->code_bytes;
    p->kernels->copy_rows(&job);
    return EMBLA_OK;
}

/* Stored bytes to out: all rows of a tile at once where they go one after the other, else those
 * of one token (a tile may begin and end inside one). */
static embla_status copy_tile(const plan *p, size_t start, size_t n)
{
    const embla_rows_call *call = p->call;
    for (size_t i = start; i < start + n;) {
        size_t head = i % call->heads, left = start + n - i;
        size_t run = p->line || left < call->heads - head ? left : call->heads - head;
        char *out =
            p->line ? call->out + i * call->head_stride
                    : call->out + i / call->heads * call->token_stride + head * call->head_stride;
        EMBLA_TRY(bring(p, &call->part, p->rows + i, run, call->count - i, out, call->head_stride,
                        p->mode));
        i += run;
    }
    return EMBLA_OK;
}

/* Floats that are complete, but for the scale, to out. */
static void finish(walk *w, float *x, char *out)
{
    const plan *p = w->p;
    size_t n = w->part.n, bytes = embla_dtype_bytes(p->out_info, n);
    bool stream = p->mode == EMBLA_WRITE_STREAM;
    const void *result = x;
    if (p->mode == EMBLA_WRITE_AHEAD)
        for (size_t k = 0; k < bytes; k += EMBLA_LINE) embla_fetch_to_write(out + k);
    if (p->call->scale != 1.0f) p->kernels->scale(x, p->call->scale, n, x);
    if (p->narrow) {
        result = stream ? w->narrowed : out;
        p->narrow(x, n, 1.0f, stream ? w->narrowed : out);
    }
    if (stream)
        p->kernels->stream(out, result, bytes);
    else if (result != out)
        memcpy(out, result, bytes);
}

/* The part of one row, at in, to wherever it is wanted. */
static void put(walk *w, const char *in)
{
    const plan *p = w->p;
    const embla_rows_call *call = p->call;
    bool last = w->head + 1 == call->heads;
    char *out = w->token + (call->sum ? 0 : w->head * call->head_stride) +
                embla_dtype_bytes(p->out_info, w->part.first - call->part.first);
    if (p->in_place) {
        embla_row_read(call->row, &w->part, in, p->mode, (float *)(void *)out);
    } else if (!call->sum) {
        embla_row_read(call->row, &w->part, in, EMBLA_WRITE_PLAIN, w->numbers);
        finish(w, w->numbers, out);
    } else {
        if (w->head == 0) {
            embla_row_read(call->row, &w->part, in, EMBLA_WRITE_PLAIN, w->sums[w->now]);
        } else {
            embla_row_read(call->row, &w->part, in, EMBLA_WRITE_PLAIN, w->numbers);
            p->kernels->scale_add(w->numbers, 1.0f, w->sums[w->now], w->part.n, w->sums[!w->now]);
            w->now = !w->now;
        }
        if (last) finish(w, w->sums[w->now], out);
    }
    w->head = last ? 0 : w->head + 1;
    if (last) w->token += call->token_stride;
}

/* Bytes past the start of a line at which a row of the source may begin, at most: so many more
 * have to be asked for, to have its last line. */
static size_t past_line(const char *data, size_t stride)
{
    uintptr_t low = (uintptr_t)data | stride | EMBLA_LINE;
    return EMBLA_LINE - (size_t)(low & -low);
}

/* Rows decoded where they lie. */
static void direct_tile(walk *w, const int64_t *rows, size_t n, size_t known)
{
    const embla_rows_source *s = w->p->source;
    const char *data = s->data + s->code_at + (w->part.code_at - w->p->call->part.code_at);
    size_t bytes = w->part.bytes + past_line(data, s->stride);
    size_t lines = s->fetch ? (bytes - 1) / EMBLA_LINE + 1 : 0;
    embla_fetch fetch = embla_fetch_of(data, s->stride, bytes);
    for (size_t i = 0; i < n; i++) {
        if (lines > 0) embla_fetch_at(&fetch, rows, i, known);
        for (size_t k = 0; k < lines; k++) embla_fetch_line(&fetch);
        put(w, data + (size_t)rows[i] * s->stride);
    }
}

static embla_status staged_tile(walk *w, const int64_t *rows, size_t n, size_t known)
{
    char stage[STAGE];
    size_t bytes = w->part.bytes, most = STAGE / bytes;
    if (most > STAGED) most = STAGED;
    for (size_t i = 0; i < n; i += most) {
        size_t some = n - i < most ? n - i : most;
        EMBLA_TRY(
            bring(w->p, &w->part, rows + i, some, known - i, stage, bytes, EMBLA_WRITE_PLAIN));
        for (size_t k = 0; k < some; k++) put(w, stage + k * bytes);
    }
    return EMBLA_OK;
}

/* A tile, piece by piece; nearly always there is one. */
static embla_status decode_tile(const plan *p, size_t start, size_t n)
{
    const embla_rows_call *call = p->call;
    const embla_row_part *whole = &call->part;
    const embla_rows_source *s = p->source;
    walk w; /* its arrays are written before they are read */
    w.p = p;
    w.now = 0;
    for (size_t first = 0; first < whole->n; first += p->piece) {
        size_t numbers = whole->n - first < p->piece ? whole->n - first : p->piece;
        EMBLA_TRY(embla_row_part_of(call->row, whole->first + first, numbers, &w.part));
        w.head = start % call->heads;
        w.token = call->out + start / call->heads * call->token_stride;
        bool together = w.part.scale_bytes == 0 ||
                        (numbers == whole->n && s->scale_at == s->code_at + whole->code_bytes);
        if (s->data && together)
            direct_tile(&w, p->rows + start, n, call->count - start);
        else
            EMBLA_TRY(staged_tile(&w, p->rows + start, n, call->count - start));
    }
    return EMBLA_OK;
}

static embla_status run_tile(const plan *p, int64_t tile)
{
    size_t start = (size_t)tile * p->tile, left = p->call->count - start;
    size_t n = left < p->tile ? left : p->tile;
    embla_status status = p->call->copy ? copy_tile(p, start, n) : decode_tile(p, start, n);
    if (p->mode == EMBLA_WRITE_STREAM) p->kernels->fence();
    return status;
}

/* ---- plan ---- */

static embla_write_mode choose_mode(const plan *p)
{
    const embla_rows_call *c = p->call;
    size_t bytes = c->tokens * (c->sum ? 1 : c->heads) * c->vector_bytes;
    bool whole_lines =
        ((uintptr_t)c->out | c->token_stride | c->head_stride | c->vector_bytes) % EMBLA_LINE == 0;
    embla_write_mode mode = embla_kernels_write_mode(bytes, whole_lines);
    /* What is asked for ahead is what follows in memory: it must be what comes next. */
    return mode == EMBLA_WRITE_AHEAD && !p->line ? EMBLA_WRITE_PLAIN : mode;
}

/* The largest piece, whole groups, that arrays have room for. */
static size_t choose_piece(const plan *p)
{
    const embla_row_part *part = &p->call->part;
    size_t most = p->in_place ? part->n : NUMBERS;
    if (part->bytes > STAGE) { /* it may have to be staged; no number takes more than 8 bytes */
        size_t fit = STAGE / 9 / EMBLA_PIECE * EMBLA_PIECE;
        if (most > fit) most = fit;
    }
    return most;
}

/* The largest tile of whole units, up to so many rows, that gives all threads the same number of
 * them. */
static size_t choose_tile(size_t count, size_t unit, size_t tile, int threads)
{
    size_t units = count / unit, most = unit < tile ? tile / unit : 1;
    size_t share = (units - 1) / (size_t)threads + 1, tiles = (share - 1) / most + 1;
    return ((share - 1) / tiles + 1) * unit;
}

static int choose_threads(const embla_rows_call *call)
{
    uint64_t bytes;
    size_t moved = SIZE_MAX;
    if (embla_mul_ok(call->count, call->part.bytes + call->vector_bytes, &bytes) &&
        !embla_size_ok(bytes, &moved))
        moved = SIZE_MAX;
    return embla_threads_for(call->threads, moved);
}

embla_status embla_rows_run(const embla_rows_call *call, const embla_rows_source *source,
                            const int64_t *rows)
{
    plan p = {.call = call, .source = source, .rows = rows, .kernels = embla_kernels_get()};
    if (call->count == 0) return EMBLA_OK;
    p.out_info = embla_dtype_find_info(call->out_dtype);
    p.line =
        call->tokens == 1 || call->sum || call->token_stride == call->heads * call->head_stride;
    p.in_place =
        call->out_dtype == EMBLA_F32 && call->scale == 1.0f && !call->sum &&
        ((uintptr_t)call->out | call->token_stride | call->head_stride) % sizeof(float) == 0;
    if (call->out_dtype != EMBLA_F32)
        p.narrow = embla_dtype_encoder(call->out_dtype, p.kernels->isa);
    p.mode = choose_mode(&p);
    p.piece = choose_piece(&p);
    int threads = choose_threads(call);
    size_t most = source->data || source->store->placement->at_once < TILE
                      ? TILE
                      : source->store->placement->at_once;
    p.tile = choose_tile(call->count, call->sum ? call->heads : 1, most, threads);
    int64_t tiles = (int64_t)((call->count - 1) / p.tile + 1);
    if (threads == 1) { /* a parallel region, even of one thread, costs more than a row */
        for (int64_t tile = 0; tile < tiles; tile++) EMBLA_TRY(run_tile(&p, tile));
        return EMBLA_OK;
    }
    embla_failure failure = EMBLA_NO_FAILURE;
#pragma omp parallel for num_threads(threads) schedule(static)
    for (int64_t tile = 0; tile < tiles; tile++)
        if (!embla_failure_any(&failure)) embla_failure_keep(&failure, run_tile(&p, tile));
    return embla_failure_say(&failure);
}

/* ---- the public call ---- */

static bool ask_ahead(const embla_rows_call *call, uint64_t rows, size_t stride)
{
    return call->count > EMBLA_GROUP_LEAST && rows * stride > EMBLA_SMALL_TABLE;
}

embla_rows_source embla_rows_of(const embla_store *store, const embla_rows_call *call)
{
    return (embla_rows_source){.data = store->data,
                               .store = store,
                               .stride = store->stride,
                               .code_at = call->part.code_at,
                               .scale_at = store->row.code_bytes + call->part.scale_at,
                               .fetch = ask_ahead(call, (uint64_t)store->rows, store->stride)};
}

embla_rows_source embla_rows_parts(const embla_rows_call *call, const char *parts, size_t count)
{
    return (embla_rows_source){.data = parts,
                               .stride = call->part.bytes,
                               .scale_at = call->part.code_bytes,
                               .fetch = ask_ahead(call, count, call->part.bytes)};
}

embla_status embla_rows_files(const embla_store *store)
{
    return store->placement->check ? store->placement->check(store) : EMBLA_OK;
}

embla_status embla_store_lookup(const embla_store *store, const int64_t *rows, size_t count,
                                const embla_rows_options *options, void *out)
{
    embla_rows_call call;
    EMBLA_TRY(embla_rows_check(store, rows, count, options, out, &call));
    if (count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_rows_files(store));
    const embla_rows_source source = embla_rows_of(store, &call);
    EMBLA_TRY(embla_rows_run(&call, &source, rows));
    return embla_rows_files(store);
}
