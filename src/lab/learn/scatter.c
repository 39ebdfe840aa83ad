/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a scatter (the adjoint of a lookup): which rows a batch uses, and at which positions.
 *
 * A row number and a position are packed into one 64-bit key. Keys are sorted by row with a radix
 * sort, which is stable: the positions of a row stay in order. So every sum has the order of the
 * batch, whatever the number of threads. All memory is allocated with the handle; a training step
 * allocates nothing.
 */
#include <string.h>

#include "base/checked.h"
#include "base/dtype.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/status.h"
#include "base/threads.h"
#include "learn/frozen.h"
#include "learn/scatter_sum.h"
#include "lookup/lookup.h"

/* Digits of up to 11 bits: 2,048 counters stay in the L1 cache, and a table of four million rows is
 * sorted in two passes. */
enum { DIGIT_MOST = 11, DIGITS = 1 << DIGIT_MOST };
/* Up to this many keys, insertion sort is faster than clearing the counters. */
enum { FEW = 48 };

/* ---- create, free ---- */

/* The number of bits of the numbers 0 .. n-1. */
static unsigned bits_below(uint64_t n)
{
    return n < 2 ? 0 : 64 - (unsigned)__builtin_clzll(n - 1);
}

/* Bytes needed: three numbers and a byte for each token, and one more number. */
static bool room_for(size_t most, size_t *out)
{
    uint64_t bytes;
    return embla_mul_ok(most, 3 * sizeof(uint64_t) + 1, &bytes) &&
           embla_add_ok(bytes, sizeof(uint64_t), &bytes) && embla_size_ok(bytes, out);
}

embla_status embla_scatter_new(int64_t rows, size_t capacity, embla_scatter **out)
{
    embla_scatter made = {.table_rows = rows, .most = capacity};
    void *handle = NULL;
    EMBLA_NEED(out);
    if (rows < 1 || rows > EMBLA_ROWS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be from 1 to %" PRId64,
                          rows, EMBLA_ROWS_MOST);
    made.row_bits = bits_below((uint64_t)rows);
    made.shift = bits_below(capacity);
    if (made.row_bits + made.shift > 64 || !room_for(capacity, &made.bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the capacity is %zu tokens; for a table of %" PRId64
                          " rows it must be at most %" PRIu64,
                          capacity, rows,
                          (uint64_t)1 << (64 - made.row_bits < 58 ? 64 - made.row_bits : 58));
    EMBLA_TRY(embla_mem_new(made.bytes, "the plan of a scatter", &made.memory));
    embla_status status = embla_mem_new(sizeof made, "a scatter", &handle);
    if (status != EMBLA_OK) {
        embla_mem_free(made.memory, made.bytes);
        return status;
    }
    made.keys[0] = made.memory;
    made.keys[1] = made.keys[0] + capacity;
    made.starts = (size_t *)(made.keys[1] + capacity);
    made.frozen_at = (uint8_t *)(made.starts + capacity + 1);
    made.rows = (int64_t *)made.keys[0];
    made.order = (int64_t *)made.keys[1];
    *out = handle;
    **out = made;
    return EMBLA_OK;
}

void embla_scatter_free(embla_scatter *scatter)
{
    if (!scatter) return;
    embla_mem_free(scatter->memory, scatter->bytes);
    embla_mem_free(scatter, sizeof *scatter);
}

size_t embla_scatter_count(const embla_scatter *scatter)
{
    return scatter ? scatter->count : 0;
}

const int64_t *embla_scatter_rows(const embla_scatter *scatter)
{
    return scatter ? scatter->rows : NULL;
}

/* ---- check ---- */

static embla_status check_options(const embla_scatter *s, const embla_scatter_options *options)
{
    EMBLA_TRY(embla_threads_check(options->threads));
    if (!(options->max_norm >= 0.0f))
        return embla_fail(EMBLA_ERR_ARGUMENT, "max_norm is %g; it must be 0 (no limit) or greater",
                          (double)options->max_norm);
    return embla_frozen_check(&options->frozen, s->table_rows);
}

static embla_status check_count(const embla_scatter *s, size_t count)
{
    if (count > s->most)
        return embla_fail(EMBLA_ERR_SHAPE, "count is %zu; the scatter has room for only %zu tokens",
                          count, s->most);
    return EMBLA_OK;
}

/* ---- plan ---- */

/* Insertion sort. Positions are in the low bits of a key, so keys can be compared as numbers. */
static void sort_few(uint64_t *keys, size_t count)
{
    for (size_t i = 1; i < count; i++) {
        uint64_t key = keys[i];
        size_t j = i;
        for (; j > 0 && keys[j - 1] > key; j--) keys[j] = keys[j - 1];
        keys[j] = key;
    }
}

/* One pass of a radix sort, by the digit that begins at bit `at`. */
static void sort_digit(const uint64_t *in, size_t count, unsigned at, unsigned bits, uint64_t *out)
{
    size_t places[DIGITS], sum = 0;
    uint64_t mask = (UINT64_C(1) << bits) - 1;
    memset(places, 0, ((size_t)mask + 1) * sizeof *places);
    for (size_t i = 0; i < count; i++) places[in[i] >> at & mask]++;
    for (size_t d = 0; d <= mask; d++) {
        size_t here = places[d];
        places[d] = sum;
        sum += here;
    }
    for (size_t i = 0; i < count; i++) out[places[in[i] >> at & mask]++] = in[i];
}

/* Sorts keys[0]; returns which of the two arrays has the result. All digits have the same width;
 * bits beyond the row's highest bit are zeros. */
static int sort_keys(embla_scatter *s, size_t count)
{
    int now = 0;
    if (count <= FEW) {
        sort_few(s->keys[0], count);
        return now;
    }
    unsigned passes = (s->row_bits + DIGIT_MOST - 1) / DIGIT_MOST;
    unsigned digit = passes ? (s->row_bits + passes - 1) / passes : 0;
    for (unsigned pass = 0; pass < passes; pass++, now = 1 - now) {
        unsigned at = s->shift + pass * digit;
        sort_digit(s->keys[now], count, at, at + digit > 64 ? 64 - at : digit, s->keys[1 - now]);
    }
    return now;
}

/* Splits the sorted keys, in place, into the order of positions; the other array gets the rows.
 * Without branches, because whether a row is new cannot be predicted. */
static void split_keys(embla_scatter *s, int sorted, size_t count)
{
    uint64_t *keys = s->keys[sorted], mask = (UINT64_C(1) << s->shift) - 1;
    int64_t *rows = (int64_t *)s->keys[1 - sorted], *order = (int64_t *)keys;
    size_t u = 0;
    s->starts[0] = 0;
    for (size_t i = 0; i < count; i++) {
        uint64_t row = keys[i] >> s->shift;
        size_t next = i + 1 < count ? i + 1 : i;
        size_t last = (keys[next] >> s->shift != row) | (i + 1 == count);
        rows[u] = (int64_t)row;
        order[i] = (int64_t)(keys[i] & mask);
        s->starts[u + 1] = i + 1;
        u += last;
    }
    s->count = u;
    s->rows = rows;
    s->order = order;
}

/* Removes frozen rows and their positions. */
static void remove_frozen(embla_scatter *s, const embla_frozen *frozen)
{
    size_t to = 0, at = 0, begin = 0;
    if (frozen->below == 0 && !frozen->mask && frozen->count == 0) return;
    embla_frozen_mark(frozen, s->rows, s->count, s->frozen_at);
    for (size_t u = 0; u < s->count; u++) {
        size_t end = s->starts[u + 1], n = end - begin;
        if (!s->frozen_at[u]) {
            memmove(s->order + at, s->order + begin, n * sizeof *s->order);
            s->rows[to++] = s->rows[u];
            s->starts[to] = at += n;
        }
        begin = end;
    }
    s->count = to;
}

/* Makes a plan from keys[0], which is filled and checked. */
static void make_plan(embla_scatter *s, size_t count, const embla_scatter_options *options)
{
    split_keys(s, sort_keys(s, count), count);
    remove_frozen(s, &options->frozen);
    s->tokens = count;
    s->shard = options->shard < count ? options->shard : 0;
    s->max_norm = (double)options->max_norm;
    s->threads = options->threads;
    s->by_count = options->by_count;
    s->planned = true;
}

embla_status embla_scatter_plan(embla_scatter *scatter, const int32_t *tokens, size_t count,
                                const embla_scatter_options *options)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_scatter_options defaults = {0};
    EMBLA_NEED(scatter);
    if (!options) options = &defaults;
    EMBLA_TRY(check_options(scatter, options));
    EMBLA_TRY(check_count(scatter, count));
    EMBLA_NEED_MANY(tokens, count);
    EMBLA_TRY(embla_lookup_check_tokens(tokens, count, scatter->table_rows, false));
    for (size_t i = 0; i < count; i++)
        scatter->keys[0][i] = (uint64_t)tokens[i] << scatter->shift | i;
    make_plan(scatter, count, options);
    return EMBLA_OK;
}

embla_status embla_scatter_plan_rows(embla_scatter *scatter, const int64_t *rows, size_t count,
                                     const embla_scatter_options *options)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_scatter_options defaults = {0};
    EMBLA_NEED(scatter);
    if (!options) options = &defaults;
    EMBLA_TRY(check_options(scatter, options));
    EMBLA_TRY(check_count(scatter, count));
    EMBLA_NEED_MANY(rows, count);
    EMBLA_TRY(embla_lookup_check_rows(rows, count, scatter->table_rows, "row"));
    for (size_t i = 0; i < count; i++)
        scatter->keys[0][i] = (uint64_t)rows[i] << scatter->shift | i;
    make_plan(scatter, count, options);
    return EMBLA_OK;
}

/* ---- sum ---- */

/* out has out_rows rows. */
static embla_status check_sum(const embla_scatter *s, size_t dim, uint64_t out_rows)
{
    size_t bytes;
    if (!s->planned)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the scatter has no plan; call embla_scatter_plan first");
    if (dim < 1 || dim > EMBLA_DIM_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "dim is %zu; it must be from 1 to %zu", dim,
                          EMBLA_DIM_MOST);
    if (s->tokens > out_rows) out_rows = s->tokens;
    if (!embla_span_ok(out_rows, dim * sizeof(float), dim * sizeof(float), &bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%" PRIu64 " x %zu numbers do not fit in memory",
                          out_rows, dim);
    return EMBLA_OK;
}

embla_status embla_scatter_sum(const embla_scatter *scatter, const float *gradients, size_t dim,
                               float *out)
{
    EMBLA_NEED(scatter);
    EMBLA_TRY(check_sum(scatter, dim, 0));
    EMBLA_NEED_MANY(gradients, scatter->tokens);
    EMBLA_NEED_MANY(out, scatter->count);
    return embla_scatter_run(
        &(embla_scatter_job){.plan = scatter, .gradients = gradients, .dim = dim, .out = out});
}

embla_status embla_scatter_add(const embla_scatter *scatter, const float *gradients, size_t dim,
                               float *dense)
{
    EMBLA_NEED(scatter);
    EMBLA_TRY(check_sum(scatter, dim, (uint64_t)scatter->table_rows));
    EMBLA_NEED_MANY(gradients, scatter->tokens);
    EMBLA_NEED_MANY(dense, scatter->count);
    return embla_scatter_run(&(embla_scatter_job){
        .plan = scatter, .gradients = gradients, .dim = dim, .out = dense, .dense = true});
}
