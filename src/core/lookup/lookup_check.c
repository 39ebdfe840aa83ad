/* SPDX-License-Identifier: Apache-2.0 */
/* The first step of a lookup: finds every error in a call before anything is written. A call for no
 * rows is checked as well, so that errors show up before the first batch that is not empty. */
#include <math.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/threads.h"
#include "lookup/lookup.h"

/* ---- tokens and row numbers ---- */

static embla_status out_of_range(const char *what, int64_t number, size_t i, const char *whose,
                                 int64_t limit, const char *unit)
{
    return embla_fail(EMBLA_ERR_RANGE,
                      "%s %" PRId64 " at index %zu is out of range: the %s has %" PRId64 " %s",
                      what, number, i, whose, limit, unit);
}

/* One pass by the kernel. Only if it finds a number out of range, a second pass finds which one. */
embla_status embla_lookup_check_rows(const int64_t *rows, size_t count, int64_t limit,
                                     const char *what)
{
    size_t i = 0;
    if (embla_kernels_get()->rows_below(rows, count, (uint64_t)limit)) return EMBLA_OK;
    while ((uint64_t)rows[i] < (uint64_t)limit) i++;
    return out_of_range(what, rows[i], i, "table", limit, "rows");
}

embla_status embla_lookup_check_tokens(const int32_t *tokens, size_t count, int64_t limit,
                                       bool mapped)
{
    uint32_t end = limit > INT32_MAX ? (uint32_t)INT32_MAX + 1u : (uint32_t)limit;
    size_t i = 0;
    if (embla_kernels_get()->tokens_below(tokens, count, end)) return EMBLA_OK;
    while ((uint32_t)tokens[i] < end) i++;
    return out_of_range("token", tokens[i], i, mapped ? "mapping" : "table", limit,
                        mapped ? "tokens" : "rows");
}

static embla_status check_positions(const embla_lookup_call *call)
{
    int64_t rows = call->positions->rows, first = call->first_position;
    if (call->position_rows)
        return embla_lookup_check_rows(call->position_rows, call->count, rows, "position");
    if (first < 0 || first > rows || call->length > (uint64_t)(rows - first))
        return embla_fail(EMBLA_ERR_RANGE,
                          "%zu positions from %" PRId64
                          " on are out of range; the position table has %" PRId64 " rows",
                          call->length, first, rows);
    return EMBLA_OK;
}

/* The rows exist; the source must hold them. */
static embla_status check_held(const embla_row_source *s, const int64_t *rows, size_t count)
{
    if (s->held == 0 || s->zeros) return EMBLA_OK;
    for (size_t i = 0; i < count; i++)
        if (!embla_source_holds(s, rows[i]))
            return embla_fail(EMBLA_ERR_RANGE,
                              "row %" PRId64 " at index %zu is not held here: only rows %" PRId64
                              " to %" PRId64 " of %" PRId64 " were opened",
                              rows[i], i, s->first, s->first + s->held - 1, s->rows);
    return EMBLA_OK;
}

static embla_status check_numbers(const embla_lookup_call *call)
{
    if (!call->tokens && !call->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu rows are requested, but the list of row numbers or tokens is NULL",
                          call->count);
    if (!call->out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows are requested, but out is NULL",
                          call->count);
    if (call->positions) EMBLA_TRY(check_positions(call));
    if (!call->tokens) {
        EMBLA_TRY(embla_lookup_check_rows(call->rows, call->count, call->source->rows, "row"));
        return check_held(call->source, call->rows, call->count);
    }
    return embla_lookup_check_tokens(call->tokens, call->count,
                                     call->token_rows ? call->token_count : call->source->rows,
                                     call->token_rows != NULL);
}

/* ---- vectors ---- */

static embla_status check_raw(embla_lookup_call *call)
{
    if (call->sum) return embla_fail(EMBLA_ERR_ARGUMENT, "stored bytes cannot be added");
    if (call->scale != 1.0f)
        return embla_fail(EMBLA_ERR_ARGUMENT, "stored bytes cannot be scaled; scale is %g",
                          (double)call->scale);
    call->copy = true;
    call->out_dtype = EMBLA_F32; /* not used */
    call->vector_bytes = call->part.bytes;
    return EMBLA_OK;
}

/* Determines the contents of a vector and its bytes. */
static embla_status check_vector(embla_lookup_call *call)
{
    const embla_row *row = call->source->row;
    const char *name = embla_dtype_name(call->out_dtype);
    if (call->out_dtype == 0) call->out_dtype = EMBLA_F32;
    if (call->scale == 0.0f) call->scale = 1.0f;
    if (!isfinite(call->scale))
        return embla_fail(EMBLA_ERR_ARGUMENT, "the scale is %g; it must be finite",
                          (double)call->scale);
    EMBLA_TRY(embla_row_part_of(row, call->first, call->columns, &call->part));
    if (call->raw) return check_raw(call);
    if (call->out_dtype != EMBLA_F32 && call->out_dtype != EMBLA_BF16 &&
        call->out_dtype != EMBLA_F16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "out_dtype is %s (%d); a lookup writes f32, bf16, f16 or raw bytes",
                          name ? name : "unknown", (int)call->out_dtype);
    call->copy = call->out_dtype == row->format.dtype && call->scale == 1.0f && !call->sum &&
                 !call->positions;
    call->vector_bytes = embla_dtype_bytes(embla_dtype_find_info(call->out_dtype), call->part.n);
    return EMBLA_OK;
}

/* True if the inner vectors fit between the outer ones. */
static bool fits_between(size_t inner, size_t inner_stride, size_t outer_stride, size_t bytes)
{
    size_t span = 0;
    return embla_span_ok(inner, inner_stride, bytes, &span) && outer_stride >= span;
}

static embla_status check_stride(const char *name, size_t stride, size_t bytes)
{
    if (stride == 0 || stride >= bytes) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE, "the %s stride is %zu bytes, less than a vector's %zu", name,
                      stride, bytes);
}

/* Either the vectors of a token or those of the same place in each token are next to each other; no
 * vectors overlap. */
static embla_status check_strides(embla_lookup_call *call)
{
    size_t bytes = call->vector_bytes, vectors = call->sum ? 1 : call->rows_per_token, span, last;
    uint64_t step, end;
    EMBLA_TRY(check_stride(call->rows_per_token > 1 || call->sum ? "token" : "output",
                           call->token_stride, bytes));
    EMBLA_TRY(check_stride("row", call->row_stride, bytes));
    if (call->sum && call->row_stride != 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "row_stride is %zu, but a sum has one vector for each token",
                          call->row_stride);
    if (call->row_stride == 0) call->row_stride = bytes;
    if (!embla_mul_ok(vectors, call->row_stride, &step)) step = UINT64_MAX;
    if (call->token_stride == 0) call->token_stride = (size_t)step;
    if (vectors == 1) call->row_stride = call->token_stride;
    if (!embla_span_ok(call->token_total, call->token_stride, 0, &last) ||
        !embla_span_ok(vectors, call->row_stride, bytes, &span) ||
        !embla_add_ok(last, span, &end) || !embla_size_ok(end, &span))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "%zu tokens of %zu vectors, %zu and %zu bytes apart, do not fit in memory",
            call->token_total, vectors, call->token_stride, call->row_stride);
    if (vectors > 1 && !fits_between(vectors, call->row_stride, call->token_stride, bytes) &&
        !fits_between(call->token_total, call->token_stride, call->row_stride, bytes))
        return embla_fail(EMBLA_ERR_SHAPE,
                          "strides of %zu (token) and %zu (row) make vectors of %zu bytes "
                          "overlap: %zu tokens of %zu",
                          call->token_stride, call->row_stride, bytes, call->token_total, vectors);
    return EMBLA_OK;
}

/* ---- the whole call ---- */

/* A prefetch does not pay for few rows, or for a table that stays in a cache. */
static bool worth_prefetching(const embla_lookup_call *call, uint64_t rows)
{
    return call->count > EMBLA_GROUP_LEAST && rows * call->stride > EMBLA_SMALL_TABLE;
}

static void find_rows(embla_lookup_call *call)
{
    const embla_row_source *s = call->source;
    if (!s->data || s->held > 0) return; /* embla_source_read knows which rows are held */
    call->stride = s->stride;
    call->codes = s->data + call->part.code_at;
    call->scales = s->data + s->row->code_bytes + call->part.scale_at;
    call->prefetch = worth_prefetching(call, (uint64_t)s->rows);
}

void embla_lookup_from_staging(embla_lookup_call *call, const char *staging, size_t count)
{
    call->stride = call->part.bytes;
    call->codes = staging;
    call->scales = staging + call->part.code_bytes;
    call->prefetch = worth_prefetching(call, count);
}

embla_status embla_lookup_check(embla_lookup_call *call)
{
    const embla_row_source *s = call->source;
    EMBLA_TRY(embla_threads_check(call->threads));
    if (call->rows_per_token == 0) call->rows_per_token = 1;
    call->token_total =
        call->rows_per_token == 1 ? call->count : call->count / call->rows_per_token;
    if (call->token_total * call->rows_per_token != call->count)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "%zu row numbers cannot be divided into tokens with %zu rows each",
                          call->count, call->rows_per_token);
    EMBLA_TRY(check_vector(call));
    EMBLA_TRY(check_strides(call));
    if (call->positions && call->positions->row->format.dim != s->row->format.dim)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the token table has dim %zu, but the position table has dim %zu",
                          s->row->format.dim, call->positions->row->format.dim);
    find_rows(call);
    return call->count == 0 ? EMBLA_OK : check_numbers(call);
}

/* The second check detects a file that was truncated during the lookup; then out must not be
 * used. */
embla_status embla_lookup_perform(embla_lookup_call *call)
{
    EMBLA_TRY(embla_lookup_check(call));
    if (call->count == 0) return EMBLA_OK;
    EMBLA_TRY(embla_source_check(call->source));
    EMBLA_TRY(embla_source_check(call->positions));
    EMBLA_TRY(embla_lookup_run(call));
    EMBLA_TRY(embla_source_check(call->source));
    return embla_source_check(call->positions);
}
