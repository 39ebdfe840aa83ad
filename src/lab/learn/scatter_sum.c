/* SPDX-License-Identifier: Apache-2.0 */
/* Computes the sums of a plan: for each row its vectors, in the order of positions, in double.
 *
 * Vectors of a row are added eight at a time, column by column, so that memory delivers up to eight
 * streams. The intermediate sums are a row of doubles in the L1 cache. Meanwhile lines of later
 * vectors are prefetched (base/lines.h), because rows are visited in sorted order, so their vectors
 * are scattered in memory; scatter_loops.c has the loops. Threads share rows by the number of
 * vectors. A row with more vectors than a thread's share is divided by columns. One thread computes
 * each number, in an order that depends only on the plan.
 */
#include "learn/scatter_sum.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "learn/scatter_loops.h"

enum {
    SIDE_BY_SIDE = 8, /* vectors added at once */
    COLUMNS = 4096,   /* columns of a row at once: 32 KiB of doubles */
    UNIT = EMBLA_SCATTER_UNIT,
    PARTS = 64 /* maximum number of such sums for a norm */
};
/* Parts of the work for each thread. More parts balance better, but each begins with rows that were
 * not prefetched. */
enum { SHARES = 4, SHARE_LEAST = 64 };

/* ---- one row ---- */

/* The plan of a call, shared by all threads. */
typedef struct {
    embla_scatter_job job;
    const embla_scatter_loops *loops;
    embla_write_mode mode;
    bool fetch;        /* vectors come from memory, and rows are not longer than COLUMNS */
    size_t share;      /* cost of one piece of work (row_at_cost) */
    size_t heavy;      /* rows with more vectors than this are divided by columns */
    size_t part_width; /* columns of one of the sums for a norm: whole units */
} call;

/* The state of a thread. */
typedef struct {
    embla_fetch vectors, dense; /* prefetching: of vectors; of the rows that are added to */
    size_t base, known; /* indices into the plan's order: start of `vectors`, and its limit */
    double sums[COLUMNS], total[COLUMNS];
} worker;

/* How many of the next vectors, from i on, are added at once: limited by SIDE_BY_SIDE, by end, by
 * the shard (`stop`) and by the group of prefetched lines. */
static size_t run_length(const call *c, const worker *b, size_t i, size_t end, int64_t stop)
{
    const int64_t *order = c->job.plan->order;
    size_t most = end - i < SIDE_BY_SIDE ? end - i : SIDE_BY_SIDE, n = 1;
    if (c->fetch) {
        size_t left = b->vectors.group - ((i - b->base) & (b->vectors.group - 1));
        if (most > left) most = left;
    }
    if (order[i + most - 1] < stop) return most;
    while (n < most && order[i + n] < stop) n++;
    return n;
}

/* Computes columns first .. first+n-1 of touched row u; returns the sums. */
static double *sum_columns(const call *c, worker *b, size_t u, size_t first, size_t n)
{
    const embla_scatter *plan = c->job.plan;
    const int64_t *order = plan->order;
    size_t begin = plan->starts[u], end = plan->starts[u + 1], run;
    bool new_shard = true, first_shard = true;
    double *result = plan->shard ? b->total : b->sums;
    int64_t stop = INT64_MAX, shard = (int64_t)plan->shard;
    for (size_t i = begin; i < end; i += run) {
        const float *x[SIDE_BY_SIDE];
        if (c->fetch) embla_fetch_at(&b->vectors, order + b->base, i - b->base, b->known);
        if (shard && new_shard) stop = order[i] - order[i] % shard + shard;
        run = run_length(c, b, i, end, stop);
        for (size_t j = 0; j < run; j++)
            x[j] = c->job.gradients + (size_t)order[i + j] * c->job.dim + first;
        c->loops->add(x, run, n, new_shard, b->sums, &b->vectors);
        new_shard = false;
        if (shard && (i + run == end || order[i + run] >= stop)) {
            c->loops->fold(b->sums, n, first_shard, b->total);
            new_shard = true;
            first_shard = false;
        }
    }
    if (plan->by_count && end - begin > 1) c->loops->divide(result, n, (double)(end - begin));
    return result;
}

/* Adds the squares of columns first .. first+n-1 to their sums. first begins a unit. */
static void add_squares(const call *c, const double *sums, size_t first, size_t n, double *parts)
{
    for (size_t k = 0; k < n; k += UNIT)
        parts[(first + k) / c->part_width] +=
            c->loops->squares(sums + k, n - k < UNIT ? n - k : UNIT);
}

/* The factor that limits a row to max_norm. 1 if the norm is not finite. */
static double norm_factor(const call *c, const double *parts)
{
    double sum = 0.0, most = c->job.plan->max_norm;
    for (size_t i = 0; i < PARTS; i++) sum += parts[i];
    double norm = sqrt(sum);
    return isfinite(norm) && norm > most ? most / norm : 1.0;
}

static void put(const call *c, worker *b, size_t u, size_t first, size_t n, double *sums,
                double factor)
{
    if (factor != 1.0) c->loops->scale(sums, n, factor);
    if (c->job.dense)
        c->loops->put_dense(sums, n, c->job.out + (size_t)c->job.plan->rows[u] * c->job.dim + first,
                            &b->dense);
    else
        c->loops->put(sums, n, c->mode, c->job.out + u * c->job.dim + first);
}

/* Computes columns first .. end-1 of a row. Adds their squares to parts if given, otherwise writes
 * the sums to out. */
static void sum_row_columns(const call *c, worker *b, size_t u, size_t first, size_t end,
                            double factor, double *parts)
{
    for (size_t n; first < end; first += n) {
        n = end - first < COLUMNS ? end - first : COLUMNS;
        double *sums = sum_columns(c, b, u, first, n);
        if (parts)
            add_squares(c, sums, first, n, parts);
        else
            put(c, b, u, first, n, sums, factor);
    }
}

/* A row of one vector. */
static void run_single(const call *c, worker *b, size_t u)
{
    const embla_scatter *plan = c->job.plan;
    size_t i = plan->starts[u], dim = c->job.dim;
    const float *x = c->job.gradients + (size_t)plan->order[i] * dim;
    if (c->fetch) embla_fetch_at(&b->vectors, plan->order + b->base, i - b->base, b->known);
    if (c->job.dense)
        c->loops->join(x, dim, c->job.out + (size_t)plan->rows[u] * dim, &b->vectors, &b->dense);
    else
        c->loops->copy(x, dim, c->mode, c->job.out + u * dim, &b->vectors);
}

static void run_row(const call *c, worker *b, size_t u)
{
    const embla_scatter *plan = c->job.plan;
    size_t dim = c->job.dim;
    double parts[PARTS] = {0}, factor = 1.0;
    if (plan->max_norm > 0.0 && dim <= COLUMNS) { /* one pass is enough */
        double *sums = sum_columns(c, b, u, 0, dim);
        add_squares(c, sums, 0, dim, parts);
        put(c, b, u, 0, dim, sums, norm_factor(c, parts));
    } else if (plan->max_norm > 0.0) {
        sum_row_columns(c, b, u, 0, dim, factor, parts);
        sum_row_columns(c, b, u, 0, dim, norm_factor(c, parts), NULL);
    } else if (plan->starts[u + 1] - plan->starts[u] == 1) {
        run_single(c, b, u);
    } else {
        sum_row_columns(c, b, u, 0, dim, factor, NULL);
    }
}

/* ---- many rows ---- */

static bool is_heavy(const call *c, size_t u)
{
    return c->job.plan->starts[u + 1] - c->job.plan->starts[u] > c->heavy;
}

/* Rows u .. end-1, except the heavy ones. */
static void run_rows(const call *c, size_t u, size_t end)
{
    const embla_scatter *plan = c->job.plan;
    size_t row_bytes = c->job.dim * sizeof(float), first = u;
    worker b; /* not initialized: its doubles are written before they are read */
    b.vectors = embla_fetch_of((const char *)c->job.gradients, row_bytes, row_bytes);
    b.dense = embla_fetch_of((const char *)c->job.out, row_bytes, row_bytes);
    b.base = plan->starts[u];
    b.known = plan->starts[end] - b.base;
    for (; u < end; u++) {
        if (is_heavy(c, u)) continue;
        if (c->job.dense && c->fetch)
            embla_fetch_at(&b.dense, plan->rows + first, u - first, end - first);
        run_row(c, &b, u);
    }
    if (c->mode == EMBLA_WRITE_STREAM) embla_kernels_get()->fence();
}

/* Columns first .. end-1 of a heavy row. */
static void run_part(const call *shared, size_t u, size_t first, size_t end, double factor,
                     double *parts)
{
    call c = *shared;
    size_t stride = c.job.dim * sizeof(float), bytes = (end - first) * sizeof(float);
    worker b;
    b.vectors = embla_fetch_of((const char *)(c.job.gradients + first), stride, bytes);
    b.dense = (embla_fetch){0};
    b.base = c.job.plan->starts[u];
    b.known = c.job.plan->starts[u + 1] - b.base;
    c.fetch = end - first <= COLUMNS;
    sum_row_columns(&c, &b, u, first, end, factor, parts);
    if (c.mode == EMBLA_WRITE_STREAM) embla_kernels_get()->fence();
}

/* A heavy row: each thread computes some of its columns, which are whole widths. */
typedef struct {
    const call *call;
    size_t u;
    bool squares; /* they are summed in parts; otherwise the row is written */
    double factor, parts[PARTS];
} heavy_row;

static embla_status run_widths(void *job, size_t first, size_t end, size_t slot)
{
    heavy_row *h = job;
    size_t dim = h->call->job.dim, width = h->call->part_width, stop = end * width;
    (void)slot;
    run_part(h->call, h->u, first * width, stop < dim ? stop : dim, h->factor,
             h->squares ? h->parts : NULL);
    return EMBLA_OK;
}

static embla_status run_heavy(const call *c, size_t u, int threads)
{
    size_t widths = (c->job.dim - 1) / c->part_width + 1;
    heavy_row h = {.call = c, .u = u, .squares = c->job.plan->max_norm > 0.0, .factor = 1.0};
    if (h.squares) {
        EMBLA_TRY(embla_share(threads, widths, 0, run_widths, &h));
        h.factor = norm_factor(c, h.parts);
        h.squares = false;
    }
    return embla_share(threads, widths, 0, run_widths, &h);
}

/* The first row at or beyond cost `at`, where each vector costs one and each row one more (for
 * writing). */
static size_t row_at_cost(const embla_scatter *plan, size_t at)
{
    size_t low = 0, high = plan->count;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (plan->starts[middle] + middle < at)
            low = middle + 1;
        else
            high = middle;
    }
    return low;
}

static embla_status run_shares(void *job, size_t first, size_t end, size_t slot)
{
    const call *c = job;
    (void)slot;
    for (size_t s = first; s < end; s++) {
        size_t from = row_at_cost(c->job.plan, s * c->share);
        size_t to = row_at_cost(c->job.plan, (s + 1) * c->share);
        if (from < to) run_rows(c, from, to);
    }
    return EMBLA_OK;
}

static embla_write_mode choose_store(const embla_scatter_job *job)
{
    size_t row_bytes = job->dim * sizeof(float);
    bool whole_lines = ((uintptr_t)job->out | row_bytes) % EMBLA_LINE == 0;
    if (job->dense) return EMBLA_WRITE_PLAIN;
    return embla_kernels_write_mode(job->plan->count * row_bytes, whole_lines);
}

embla_status embla_scatter_run(const embla_scatter_job *job)
{
    const embla_scatter *plan = job->plan;
    size_t vectors = plan->starts[plan->count], work = vectors + plan->count;
    size_t row_bytes = job->dim * sizeof(float);
    call c = {.job = *job, .heavy = SIZE_MAX};
    if (plan->count == 0) return EMBLA_OK;
    c.loops = EMBLA_PICK(embla_scatter_loops_of);
    c.mode = choose_store(job);
    c.fetch = job->dim <= COLUMNS && plan->tokens * row_bytes > EMBLA_SMALL_TABLE;
    c.part_width = ((job->dim - 1) / (UNIT * PARTS) + 1) * UNIT;
    int threads = embla_threads_for(plan->threads, vectors * row_bytes);
    if (threads == 1) {
        run_rows(&c, 0, plan->count);
        return EMBLA_OK;
    }
    size_t shares = (size_t)threads * SHARES;
    c.share = work / shares + 1;
    c.heavy = c.share > SHARE_LEAST ? c.share : SHARE_LEAST;
    EMBLA_TRY(embla_share(threads, shares, 1, run_shares, &c));
    for (size_t u = 0; u < plan->count; u++)
        if (is_heavy(&c, u)) EMBLA_TRY(run_heavy(&c, u, threads));
    return EMBLA_OK;
}
