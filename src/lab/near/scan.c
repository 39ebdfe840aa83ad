/* SPDX-License-Identifier: Apache-2.0 */
/* The table is cut into blocks of rows, and threads share the blocks. In each block:
 *
 * 1. Estimate: sums of all rows with all vectors in float, at the speed of memory
 *    (engine/estimate.h). Their error is bounded, so each gives an upper bound of a score.
 * 2. Filter: rows whose bounds are below the worst score kept in every list are dropped.
 * 3. Exact sums in double of the rows that are left, and their scores into the lists.
 *
 * Steps 1 and 2 save time and change no result. Where they would save none (lists that are not
 * full yet, rows that are nearly equal) a block goes straight to step 3. There four rows are read
 * side by side, because memory serves four streams nearly twice as fast as one. Each thread keeps
 * its own best rows; in the end they are joined.
 */
#include "near/scan.h"

#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/estimate.h"
#include "near/near.h"

enum {
    LIST_BYTES = 8 << 20,    /* of lists in one scan */
    BLOCK_BYTES = 256 << 10, /* of stored rows in a block, about */
    BLOCK_ROWS = 1024,       /* in a block, at most */
    SIDE_BY_SIDE = 65536,    /* longer rows are decoded one at a time: 4 MiB at most */
    FILTER_VECTORS = 2,      /* floats in memory times fewer vectors: exact sums are as fast */
    FILTER_SHARE = 4,        /* the filter pays while it leaves at most a row in so many.. */
    PAUSE_MOST = 64          /* ..and else pauses for 1, 2, 4 .. blocks, up to so many */
};

/* What one thread needs. */
typedef struct {
    float *decoded;   /* EMBLA_DOTS x dim, unless rows are used where they are */
    float *estimates; /* (count + 1) x BLOCK_ROWS */
    double *dots;     /* count x BLOCK_ROWS */
    double *squares;  /* BLOCK_ROWS */
    double *scores;   /* BLOCK_ROWS */
    uint32_t *kept;   /* BLOCK_ROWS: rows of the block that need exact sums, in order */
    bool *passes;     /* BLOCK_ROWS */
    embla_best *best; /* lists */
    size_t pause;     /* blocks until the filter is tried again */
    size_t paused;    /* length of the last pause; 0 when the filter pays */
    embla_scan_report report;
} worker;

typedef struct {
    const embla_scan *scan;
    const embla_row_source *source; /* the rows of the scan's table */
    const embla_kernels *kernels;
    embla_estimate estimate;
    embla_decode_fn *decode; /* NULL: rows are used where they are */
    size_t dim, block;       /* rows in a block */
    bool filters;            /* estimates come first; see FILTER_VECTORS */
    worker *workers;         /* one for each slot */
    int threads;
} pass;

/* ---- exact sums ---- */

/* Gives n rows as floats. Rows that must be decoded are decoded a piece of each in turn, so that
 * memory is read in n streams. */
static void decode_rows(const pass *p, const worker *w, const int64_t *rows, size_t n,
                        const float **out)
{
    const embla_row *format = p->source->row;
    for (size_t r = 0; r < n; r++)
        out[r] = p->decode ? w->decoded + r * p->dim
                           : (const float *)(const void *)embla_source_at(p->source, rows[r]);
    for (size_t first = 0; p->decode && first < p->dim; first += EMBLA_PIECE) {
        size_t length = p->dim - first < EMBLA_PIECE ? p->dim - first : EMBLA_PIECE;
        size_t offset = embla_dtype_bytes(format->info, first);
        for (size_t r = 0; r < n; r++)
            p->decode(embla_source_at(p->source, rows[r]) + offset, length, format->format.scale,
                      EMBLA_WRITE_PLAIN, w->decoded + r * p->dim + first);
    }
}

/* Sums of EMBLA_DOTS rows: entries at[0], at[1] .. of w->kept. */
static void sum_four(const pass *p, worker *w, int64_t first, const size_t *at)
{
    const embla_scan *scan = p->scan;
    const float *rows[EMBLA_DOTS];
    int64_t numbers[EMBLA_DOTS];
    double sums[EMBLA_DOTS], squares[EMBLA_DOTS];
    for (size_t r = 0; r < EMBLA_DOTS; r++) numbers[r] = first + w->kept[at[r]];
    decode_rows(p, w, numbers, EMBLA_DOTS, rows);
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
    int64_t number = first + w->kept[at];
    decode_rows(p, w, &number, 1, &row);
    for (size_t v = 0; v < scan->count; v++)
        w->dots[v * BLOCK_ROWS + at] = p->kernels->dot(row, scan->vectors + v * p->dim, p->dim);
    w->squares[at] = p->kernels->dot(row, row, p->dim);
}

/* Exact sums of the n rows in w->kept. */
static void sum_kept(const pass *p, worker *w, int64_t first, size_t n)
{
    size_t quarter = p->decode && p->dim > SIDE_BY_SIDE ? 0 : n / EMBLA_DOTS;
    for (size_t i = 0; i < quarter; i++) {
        const size_t at[EMBLA_DOTS] = {i, i + quarter, i + 2 * quarter, i + 3 * quarter};
        sum_four(p, w, first, at);
    }
    for (size_t i = EMBLA_DOTS * quarter; i < n; i++) sum_one(p, w, first, i);
}

/* ---- the filter ---- */

static bool lists_are_full(const pass *p, const worker *w)
{
    for (size_t list = 0; list < p->scan->lists; list++)
        if (w->best[list].count < w->best[list].room) return false;
    return true;
}

/* Puts those of n rows into w->kept that may belong into a list; returns how many they are. */
static size_t filter(const pass *p, worker *w, int64_t first, size_t n)
{
    const embla_scan *scan = p->scan;
    size_t kept = 0;
    embla_estimate_rows(&p->estimate, first, n, w->estimates, BLOCK_ROWS, w->dots, w->squares);
    for (size_t i = 0; i < n; i++) /* NaN is not inside the range either */
        w->passes[i] =
            !(w->squares[i] >= EMBLA_ESTIMATE_LEAST && w->squares[i] <= EMBLA_ESTIMATE_MOST);
    const embla_scan_sums sums = {.dots = w->dots,
                                  .squares = w->squares,
                                  .stride = BLOCK_ROWS,
                                  .n = n,
                                  .error = p->estimate.error};
    for (size_t list = 0; list < scan->lists; list++) {
        double least = embla_best_least(&w->best[list]);
        scan->score(scan->context, list, &sums, w->scores);
        for (size_t i = 0; i < n; i++) w->passes[i] |= !(w->scores[i] < least);
    }
    for (size_t i = 0; i < n; i++) {
        w->kept[kept] = (uint32_t)i;
        kept += w->passes[i];
    }
    return kept;
}

/* The rows of a block that need exact sums: to w->kept; returns how many they are. */
static size_t choose_rows(const pass *p, worker *w, int64_t first, size_t n)
{
    if (p->filters && w->pause == 0 && lists_are_full(p, w)) {
        size_t kept = filter(p, w, first, n);
        w->paused = kept <= n / FILTER_SHARE ? 0 : w->paused == 0 ? 1 : 2 * w->paused;
        if (w->paused > PAUSE_MOST) w->paused = PAUSE_MOST;
        w->pause = w->paused;
        return kept;
    }
    if (w->pause > 0) w->pause--;
    for (size_t i = 0; i < n; i++) w->kept[i] = (uint32_t)i;
    return n;
}

/* ---- blocks ---- */

/* Adds the n rows of w->kept to a list, if they are good enough. */
static void add_to_list(const pass *p, worker *w, size_t list, int64_t first, size_t n)
{
    const embla_scan *scan = p->scan;
    embla_best *best = &w->best[list];
    const int64_t *exclude =
        scan->exclude_count > 0 ? scan->exclude + list * scan->exclude_count : NULL;
    double least = embla_best_least(best);
    for (size_t i = 0; i < n; i++) {
        embla_scored row = {.row = first + w->kept[i], .score = w->scores[i]};
        if (row.score < least || !isfinite(w->squares[i])) continue;
        if (embla_is_excluded(exclude, scan->exclude_count, row.row)) continue;
        embla_best_add(best, row);
        least = embla_best_least(best);
    }
}

static void scan_block(const pass *p, worker *w, int64_t block)
{
    const embla_scan *scan = p->scan;
    int64_t first = block * (int64_t)p->block;
    size_t n = scan->rows - first < (int64_t)p->block ? (size_t)(scan->rows - first) : p->block;
    n = choose_rows(p, w, first, n);
    sum_kept(p, w, first, n);
    w->report.exact += (int64_t)n;
    for (size_t i = 0; i < n; i++) w->report.nonfinite += !isfinite(w->squares[i]);
    const embla_scan_sums sums = {
        .dots = w->dots, .squares = w->squares, .stride = BLOCK_ROWS, .n = n};
    for (size_t list = 0; list < scan->lists; list++) {
        scan->score(scan->context, list, &sums, w->scores);
        add_to_list(p, w, list, first, n);
    }
}

static embla_status scan_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const pass *p = job;
    for (size_t i = first; i < end; i++) scan_block(p, &p->workers[slot], (int64_t)i);
    return EMBLA_OK;
}

/* ---- memory ---- */

embla_status embla_scan_take(embla_arena *arena, uint64_t count, size_t size, const char *what,
                             void *out)
{
    uint64_t bytes;
    void *memory = NULL;
    if (!embla_mul_ok(count, size, &bytes) || bytes > (uint64_t)PTRDIFF_MAX - EMBLA_LINE)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %" PRIu64 " times %zu bytes (%s)", count,
                          size, what);
    EMBLA_TRY(embla_arena_take(arena, (size_t)bytes + EMBLA_LINE, what, &memory));
    memory = (void *)(((uintptr_t)memory + EMBLA_LINE - 1) / EMBLA_LINE * EMBLA_LINE);
    memcpy(out, &memory, sizeof memory);
    return EMBLA_OK;
}

/* The pages of a list are touched only as far as rows are kept in it, so a large k costs little. */
static embla_status new_lists(const pass *p, embla_arena *arena, worker *w)
{
    const embla_scan *scan = p->scan;
    size_t room = scan->k < (uint64_t)scan->rows ? scan->k : (size_t)scan->rows;
    EMBLA_TRY(
        embla_scan_take(arena, scan->lists, sizeof(embla_best), "lists of nearest rows", &w->best));
    for (size_t list = 0; list < scan->lists; list++) {
        embla_best *best = &w->best[list];
        best->room = room;
        EMBLA_TRY(embla_scan_take(arena, room, sizeof(embla_scored), "nearest rows", &best->items));
    }
    return EMBLA_OK;
}

static embla_status new_worker(const pass *p, embla_arena *arena, worker *w)
{
    const size_t count = p->scan->count;
    size_t side_by_side = p->dim > SIDE_BY_SIDE ? 1 : EMBLA_DOTS;
    if (p->decode)
        EMBLA_TRY(embla_scan_take(arena, side_by_side * p->dim, sizeof(float), "decoded rows",
                                  &w->decoded));
    EMBLA_TRY(embla_scan_take(arena, (count + 1) * BLOCK_ROWS, sizeof(float), "estimates of sums",
                              &w->estimates));
    EMBLA_TRY(embla_scan_take(arena, count * BLOCK_ROWS, sizeof(double), "sums of rows", &w->dots));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(double), "squares of rows", &w->squares));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(double), "scores of rows", &w->scores));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(uint32_t), "rows of a block", &w->kept));
    EMBLA_TRY(embla_scan_take(arena, BLOCK_ROWS, sizeof(bool), "rows of a block", &w->passes));
    return new_lists(p, arena, w);
}

static embla_status prepare(const embla_scan *scan, embla_arena *arena, pass *p)
{
    const embla_row_source *source = embla_table_source(scan->table);
    const embla_row *row = source->row;
    uint64_t bytes = (uint64_t)scan->rows * row->format.dim * sizeof(float); /* both are bounded */
    *p = (pass){
        .scan = scan, .source = source, .kernels = embla_kernels_get(), .dim = row->format.dim};
    if (!embla_source_in_place(source))
        p->decode = embla_dtype_decoder(row->format.dtype, p->kernels->isa);
    p->filters = p->decode || scan->count >= FILTER_VECTORS;
    p->block = BLOCK_BYTES / row->bytes / EMBLA_DOTS * EMBLA_DOTS;
    if (p->block > BLOCK_ROWS) p->block = BLOCK_ROWS;
    if (p->block < EMBLA_DOTS) p->block = EMBLA_DOTS;
    p->threads = embla_threads_for(scan->threads, (size_t)bytes);
    EMBLA_TRY(embla_estimate_new(source, scan->vectors, scan->count, arena, &p->estimate));
    EMBLA_TRY(embla_scan_take(arena, (size_t)p->threads, sizeof(worker), "threads", &p->workers));
    for (int t = 0; t < p->threads; t++) EMBLA_TRY(new_worker(p, arena, &p->workers[t]));
    return EMBLA_OK;
}

/* ---- a scan ---- */

/* Joins the lists of all threads in those of the first, sorts them and copies them to out. */
static void join_lists(const pass *p, embla_scored *out, embla_scan_report *report)
{
    const embla_scan *scan = p->scan;
    *report = (embla_scan_report){0};
    for (int t = 0; t < p->threads; t++) {
        report->nonfinite += p->workers[t].report.nonfinite;
        report->exact += p->workers[t].report.exact;
    }
    for (size_t list = 0; list < scan->lists; list++) {
        embla_best *best = &p->workers[0].best[list];
        for (int t = 1; t < p->threads; t++) embla_best_join(best, &p->workers[t].best[list]);
        embla_best_sort(best);
        memcpy(out + list * scan->k, best->items, best->count * sizeof *out);
        for (size_t i = best->count; i < scan->k; i++)
            out[list * scan->k + i] = (embla_scored){.row = -1};
    }
}

embla_status embla_scan_run(const embla_scan *scan, embla_scored *out, embla_scan_report *report)
{
    embla_arena arena = {0};
    pass p;
    embla_status status = prepare(scan, &arena, &p);
    if (status == EMBLA_OK) status = embla_table_check_file(scan->table);
    if (status == EMBLA_OK)
        status = embla_share(p.threads, (size_t)(scan->rows - 1) / p.block + 1, 1, scan_blocks, &p);
    if (status == EMBLA_OK) status = embla_table_check_file(scan->table);
    if (status == EMBLA_OK) join_lists(&p, out, report);
    embla_arena_free(&arena);
    return status;
}

/* ---- the nearest rows to a few queries ---- */

/* One loop for each measure, so that no loop branches on it. */
static void score_exact(embla_query_size query, const double *restrict dots,
                        const double *restrict squares, size_t n, double *restrict scores)
{
    if (query.measure == EMBLA_MEASURE_DOT)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_MEASURE_DOT, query, dots[i], squares[i]);
    else if (query.measure == EMBLA_MEASURE_COSINE)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_MEASURE_COSINE, query, dots[i], squares[i]);
    else
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_score_of(EMBLA_MEASURE_EUCLIDEAN, query, dots[i], squares[i]);
}

static void score_bounds(embla_query_size query, double error, const double *restrict dots,
                         const double *restrict squares, size_t n, double *restrict scores)
{
    if (query.measure == EMBLA_MEASURE_DOT)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_bound_of(EMBLA_MEASURE_DOT, query, dots[i], squares[i], error);
    else if (query.measure == EMBLA_MEASURE_COSINE)
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_bound_of(EMBLA_MEASURE_COSINE, query, dots[i], squares[i], error);
    else
        for (size_t i = 0; i < n; i++)
            scores[i] = embla_bound_of(EMBLA_MEASURE_EUCLIDEAN, query, dots[i], squares[i], error);
}

static void score_query(const void *context, size_t list, const embla_scan_sums *sums,
                        double *scores)
{
    const embla_query_size query = ((const embla_query_size *)context)[list];
    const double *dots = sums->dots + list * sums->stride;
    if (sums->error > 0.0)
        score_bounds(query, sums->error, dots, sums->squares, sums->n, scores);
    else
        score_exact(query, dots, sums->squares, sums->n, scores);
}

embla_status embla_scan_queries(const embla_question *q, const float *queries,
                                const int64_t *exclude, size_t count, embla_scored *out,
                                int64_t *nonfinite)
{
    embla_query_size sizes[EMBLA_SCAN_MOST];
    embla_scan_report report;
    for (size_t i = 0; i < count; i++) sizes[i] = embla_size_of(q, queries + i * q->dim);
    const embla_scan scan = {.table = q->table,
                             .rows = q->rows,
                             .vectors = queries,
                             .count = count,
                             .lists = count,
                             .k = q->k,
                             .exclude = exclude,
                             .exclude_count = q->exclude_count,
                             .threads = q->threads,
                             .score = score_query,
                             .context = sizes};
    EMBLA_TRY(embla_scan_run(&scan, out, &report));
    *nonfinite = report.nonfinite;
    return EMBLA_OK;
}

size_t embla_scan_at_once(const embla_question *q)
{
    uint64_t room = q->k < (uint64_t)q->rows ? q->k : (uint64_t)q->rows;
    uint64_t lists = LIST_BYTES / sizeof(embla_scored) / room;
    return lists < 1 ? 1 : lists < EMBLA_SCAN_MOST ? (size_t)lists : EMBLA_SCAN_MOST;
}

embla_status embla_scan_all(const embla_question *q, embla_scored *out, int64_t *nonfinite)
{
    size_t step = embla_scan_at_once(q);
    for (size_t i = 0; i < q->count; i += step) {
        size_t n = q->count - i < step ? q->count - i : step;
        EMBLA_TRY(
            embla_scan_queries(q, q->queries + i * q->dim,
                               q->exclude_count > 0 ? q->exclude + i * q->exclude_count : NULL, n,
                               out + i * q->k, nonfinite));
        EMBLA_TRY(embla_near_step(q, n));
    }
    return EMBLA_OK;
}
