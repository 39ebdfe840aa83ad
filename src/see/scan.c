/* SPDX-License-Identifier: Apache-2.0 */
/* A block of rows at a time, shared out over threads. Inside a block four rows are read side
 * by side, each a quarter of the block from the next: memory serves four streams nearly twice
 * as fast as one. Rows that are not f32 are decoded four at a time, into memory that stays in
 * a cache. Each thread keeps its own best rows; in the end they go into one list.
 */
#include "see/near.h"

#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/threads.h"
#include "table/table.h"

enum {
    LIST_BYTES = 8 << 20,    /* of lists in one scan */
    BLOCK_BYTES = 256 << 10, /* of stored rows in a block, about */
    BLOCK_ROWS = 1024,       /* in a block, at most */
    SIDE_BY_SIDE = 65536     /* longer rows are decoded one at a time: 4 MiB at most */
};

/* ---- one thread's part ---- */

typedef struct {
    float *decoded;  /* EMBLA_DOTS x dim, where rows are not used as they lie */
    double *dots;    /* count x BLOCK_ROWS */
    double *squares; /* BLOCK_ROWS */
    double *scores;  /* BLOCK_ROWS */
    embla_best *best;
    int64_t nonfinite;
} worker;

typedef struct {
    const embla_scan *scan;
    const embla_kernels *kernels;
    embla_decode_fn *decode; /* NULL: rows are used where they lie */
    size_t dim, block;       /* rows in a block */
    worker *workers;
    int threads;
} pass;

/* Rows as floats, a piece of each in turn where they are decoded: streams side by side. */
static void take_rows(const pass *p, const worker *w, const int64_t *rows, size_t n,
                      const float **out)
{
    const embla_table *table = p->scan->table;
    for (size_t r = 0; r < n; r++)
        out[r] = p->decode ? w->decoded + r * p->dim
                           : (const float *)(const void *)embla_table_at(table, rows[r]);
    for (size_t first = 0; p->decode && first < p->dim; first += EMBLA_PIECE) {
        size_t length = p->dim - first < EMBLA_PIECE ? p->dim - first : EMBLA_PIECE;
        size_t offset = embla_dtype_bytes(table->info, first);
        for (size_t r = 0; r < n; r++)
            p->decode(embla_table_at(table, rows[r]) + offset, length, table->scale,
                      EMBLA_WRITE_PLAIN, w->decoded + r * p->dim + first);
    }
}

/* The sums of EMBLA_DOTS rows, places at[0], at[1] .. of the block. */
static void sum_four(const pass *p, worker *w, int64_t first, const size_t *at)
{
    const embla_scan *scan = p->scan;
    const float *rows[EMBLA_DOTS];
    int64_t numbers[EMBLA_DOTS];
    double sums[EMBLA_DOTS], squares[EMBLA_DOTS];
    for (size_t r = 0; r < EMBLA_DOTS; r++) numbers[r] = first + (int64_t)at[r];
    take_rows(p, w, numbers, EMBLA_DOTS, rows);
    for (size_t v = 0; v < scan->count; v++) {
        p->kernels->dots(rows, scan->vectors + v * p->dim, p->dim, sums, v == 0 ? squares : NULL);
        for (size_t r = 0; r < EMBLA_DOTS; r++) w->dots[v * BLOCK_ROWS + at[r]] = sums[r];
    }
    for (size_t r = 0; r < EMBLA_DOTS; r++) w->squares[at[r]] = squares[r];
}

static void sum_one(const pass *p, worker *w, int64_t first, size_t at)
{
    const embla_scan *scan = p->scan;
    const float *row;
    int64_t number = first + (int64_t)at;
    take_rows(p, w, &number, 1, &row);
    for (size_t v = 0; v < scan->count; v++)
        w->dots[v * BLOCK_ROWS + at] = p->kernels->dot(row, scan->vectors + v * p->dim, p->dim);
    w->squares[at] = p->kernels->dot(row, row, p->dim);
}

static void sum_block(const pass *p, worker *w, int64_t first, size_t n)
{
    size_t quarter = p->decode && p->dim > SIDE_BY_SIDE ? 0 : n / EMBLA_DOTS;
    for (size_t i = 0; i < quarter; i++) {
        const size_t at[EMBLA_DOTS] = {i, i + quarter, i + 2 * quarter, i + 3 * quarter};
        sum_four(p, w, first, at);
    }
    for (size_t i = EMBLA_DOTS * quarter; i < n; i++) sum_one(p, w, first, i);
}

/* Rows of the block that belong into a list, so far. */
static void keep(const pass *p, worker *w, size_t list, int64_t first, size_t n)
{
    const embla_scan *scan = p->scan;
    embla_best *best = &w->best[list];
    const int64_t *leave_out = scan->left_out > 0 ? scan->leave_out + list * scan->left_out : NULL;
    double least = embla_best_least(best);
    for (size_t i = 0; i < n; i++) {
        embla_scored row = {.row = first + (int64_t)i, .score = w->scores[i]};
        if (row.score < least || !isfinite(w->squares[i])) continue;
        if (embla_is_left_out(leave_out, scan->left_out, row.row)) continue;
        embla_best_add(best, row);
        least = embla_best_least(best);
    }
}

static void do_block(const pass *p, worker *w, int64_t block)
{
    const embla_scan *scan = p->scan;
    int64_t first = block * (int64_t)p->block;
    size_t n = scan->rows - first < (int64_t)p->block ? (size_t)(scan->rows - first) : p->block;
    sum_block(p, w, first, n);
    for (size_t i = 0; i < n; i++) w->nonfinite += !isfinite(w->squares[i]);
    for (size_t list = 0; list < scan->lists; list++) {
        scan->score(scan->context, list, w->dots, BLOCK_ROWS, w->squares, n, w->scores);
        keep(p, w, list, first, n);
    }
}

static void run(const pass *p)
{
    int64_t blocks = (p->scan->rows - 1) / (int64_t)p->block + 1;
#pragma omp parallel num_threads(p->threads) if (p->threads > 1)
    {
        worker *w = &p->workers[embla_threads_mine()];
#pragma omp for schedule(dynamic)
        for (int64_t block = 0; block < blocks; block++) do_block(p, w, block);
    }
}

/* ---- all of it ---- */

embla_status embla_scan_take(embla_arena *arena, size_t count, size_t size, const char *what,
                             void *out)
{
    uint64_t bytes;
    void *memory = NULL;
    if (!embla_mul_ok(count, size, &bytes) || bytes > (uint64_t)PTRDIFF_MAX - EMBLA_LINE)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu times %zu bytes (%s)", count, size,
                          what);
    EMBLA_TRY(embla_arena_take(arena, (size_t)bytes + EMBLA_LINE, what, &memory));
    memory = (void *)(((uintptr_t)memory + EMBLA_LINE - 1) / EMBLA_LINE * EMBLA_LINE);
    memcpy(out, &memory, sizeof memory);
    return EMBLA_OK;
}

/* Memory of a list is used only as far as rows are kept in it: asking for much costs little. */
static embla_status new_worker(const pass *p, embla_arena *arena, worker *w)
{
    const embla_scan *scan = p->scan;
    size_t side_by_side = p->dim > SIDE_BY_SIDE ? 1 : EMBLA_DOTS;
    size_t room = scan->k < (uint64_t)scan->rows ? scan->k : (size_t)scan->rows;
    if (p->decode)
        EMBLA_TRY(embla_scan_take(arena, side_by_side * p->dim, sizeof(float), "decoded rows",
                                  &w->decoded));
    EMBLA_TRY(
        embla_scan_take(arena, scan->count * BLOCK_ROWS, sizeof(double), "sums of rows", &w->dots));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(double), "squares of rows", &w->squares));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(double), "scores of rows", &w->scores));
    EMBLA_TRY(
        embla_scan_take(arena, scan->lists, sizeof(embla_best), "lists of nearest rows", &w->best));
    for (size_t list = 0; list < scan->lists; list++) {
        embla_best *best = &w->best[list];
        best->room = room;
        EMBLA_TRY(embla_scan_take(arena, room, sizeof(embla_scored), "nearest rows", &best->items));
    }
    return EMBLA_OK;
}

static embla_status prepare(const embla_scan *scan, embla_arena *arena, pass *p)
{
    const embla_table *table = scan->table;
    uint64_t bytes = (uint64_t)scan->rows * table->dim * sizeof(float); /* both are bounded */
    *p = (pass){.scan = scan, .kernels = embla_kernels_get(), .dim = table->dim};
    if (!embla_table_in_place(table))
        p->decode = embla_dtype_decoder(table->dtype, p->kernels->isa);
    p->block = BLOCK_BYTES / table->row_bytes / EMBLA_DOTS * EMBLA_DOTS;
    if (p->block > BLOCK_ROWS) p->block = BLOCK_ROWS;
    if (p->block < EMBLA_DOTS) p->block = EMBLA_DOTS;
    p->threads = embla_threads_for(scan->threads, (size_t)bytes);
    EMBLA_TRY(embla_scan_take(arena, (size_t)p->threads, sizeof(worker), "threads", &p->workers));
    for (int t = 0; t < p->threads; t++) EMBLA_TRY(new_worker(p, arena, &p->workers[t]));
    return EMBLA_OK;
}

/* Every thread's lists into those of the first, and to out. */
static void put_together(const pass *p, embla_scored *out, int64_t *nonfinite)
{
    const embla_scan *scan = p->scan;
    *nonfinite = 0;
    for (int t = 0; t < p->threads; t++) *nonfinite += p->workers[t].nonfinite;
    for (size_t list = 0; list < scan->lists; list++) {
        embla_best *best = &p->workers[0].best[list];
        for (int t = 1; t < p->threads; t++) embla_best_join(best, &p->workers[t].best[list]);
        embla_best_sort(best);
        memcpy(out + list * scan->k, best->items, best->count * sizeof *out);
        for (size_t i = best->count; i < scan->k; i++)
            out[list * scan->k + i] = (embla_scored){.row = -1};
    }
}

embla_status embla_scan_run(const embla_scan *scan, embla_scored *out, int64_t *nonfinite)
{
    embla_arena arena = {0};
    pass p;
    embla_status status = prepare(scan, &arena, &p);
    if (status == EMBLA_OK) status = embla_table_check_file(scan->table);
    if (status == EMBLA_OK) {
        run(&p);
        status = embla_table_check_file(scan->table);
    }
    if (status == EMBLA_OK) put_together(&p, out, nonfinite);
    embla_arena_free(&arena);
    return status;
}

/* ---- the nearest rows to a few queries ---- */

/* One loop for each measure, without a embla_question inside. */
static void score_rows(const void *context, size_t list, const double *restrict dots, size_t stride,
                       const double *restrict squares, size_t n, double *restrict scores)
{
    const embla_query_size query = ((const embla_query_size *)context)[list];
    dots += list * stride;
    if (query.measure == EMBLA_DOT)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_DOT, query, dots[i], squares[i]);
    else if (query.measure == EMBLA_COSINE)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_COSINE, query, dots[i], squares[i]);
    else
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_EUCLIDEAN, query, dots[i], squares[i]);
}

embla_status embla_scan_queries(const embla_question *q, const float *queries,
                                const int64_t *leave_out, size_t count, embla_scored *out,
                                int64_t *nonfinite)
{
    embla_query_size sizes[EMBLA_SCAN_MOST];
    for (size_t i = 0; i < count; i++) sizes[i] = embla_size_of(q, queries + i * q->dim);
    const embla_scan scan = {.table = q->table,
                             .rows = q->rows,
                             .vectors = queries,
                             .count = count,
                             .lists = count,
                             .k = q->k,
                             .leave_out = leave_out,
                             .left_out = q->left_out,
                             .threads = q->threads,
                             .score = score_rows,
                             .context = sizes};
    return embla_scan_run(&scan, out, nonfinite);
}

size_t embla_scan_at_once(const embla_question *q)
{
    uint64_t room = q->k < (uint64_t)q->rows ? q->k : (uint64_t)q->rows;
    uint64_t lists = LIST_BYTES / sizeof(embla_scored) / room;
    return lists < 1 ? 1 : lists < EMBLA_SCAN_MOST ? (size_t)lists : EMBLA_SCAN_MOST;
}
