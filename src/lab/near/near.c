/* SPDX-License-Identifier: Apache-2.0 */
/* The nearest rows to queries: checks, the choice between scans, sketches and products, and the
 * search by products for many queries.
 *
 * A tile of rows is multiplied with many queries at a time, and the products are searched while
 * they are in a cache, so rows x queries scores are never stored. Products are floats with rounding
 * errors, so each gives an upper bound of the exact score. The rows with the highest bounds are
 * scored again in double, as a scan does. If the k-th of these scores is above every bound that
 * was dropped, no other row can belong to the answer. If it is not (rows that are nearly equal),
 * the query is answered by a scan.
 */
#include "near/near.h"

#include <string.h>

#include "base/checked.h"
#include "base/kernels.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "engine/engine.h"
#include "near/sketch.h"

enum {
    PASS_BYTES = 8 << 20, /* of lists and of queries in one pass over the table */
    QUERIES = 256,        /* in one product */
    TILE_ROWS = 512,
    TILE_LEAST = 64,
    LEAST_BYTES =
        4 << 20, /* of TILE_LEAST decoded rows for one thread; longer rows make smaller tiles */
    TILE_BYTES = 24 << 20, /* of decoded rows in a tile, for all threads together */
    SLACK = 8,             /* rows kept beyond k, so that a near tie does not fail the proof */
    FEW = 4                /* up to so many queries a scan is faster */
};

/* ---- few queries: scans ---- */

/* Answers the queries with the sketch, one by one, and those by a scan where it saves nothing. */
static embla_status sketch_all(const embla_question *q, embla_scored *out, int64_t *nonfinite)
{
    for (size_t i = 0; i < q->count; i++) {
        const float *query = q->queries + i * q->dim;
        const int64_t *exclude = q->exclude_count > 0 ? q->exclude + i * q->exclude_count : NULL;
        bool answered = false;
        EMBLA_TRY(
            embla_sketch_query(q->sketch, q, query, exclude, out + i * q->k, nonfinite, &answered));
        if (!answered)
            EMBLA_TRY(embla_scan_queries(q, query, exclude, 1, out + i * q->k, nonfinite));
    }
    return EMBLA_OK;
}

/* ---- many queries: products ---- */

/* How a row's product with a query becomes an upper bound of the exact score. */
typedef enum {
    ROW_PLAIN, /* product * scale + add */
    ROW_ODD,   /* too large or too small for floats: scored in double at once */
    ROW_OUT    /* has a NaN or an infinity */
} row_kind;

typedef struct {
    float scale, add;
    row_kind kind;
} row_bound;

typedef struct {
    float *rows;       /* tile x dim, unless rows are used where they are */
    float *products;   /* tile x QUERIES */
    double *squares;   /* tile */
    row_bound *bounds; /* tile */
    float *limits;     /* of each query: lower bounds cannot enter its list */
    embla_best *best;  /* of each query: rows with their bounds as scores */
    int64_t nonfinite;
    bool failed; /* the engine refused a product */
} worker;

/* One pass over the table for some of the queries. */
typedef struct {
    const embla_question *q;
    size_t first, count;     /* queries of this pass */
    embla_decode_fn *decode; /* NULL means rows are used where they are */
    size_t stride;           /* floats from one row of a tile to the next */
    size_t tile;             /* rows */
    size_t keep;
    float *scaled;           /* count x dim: queries of norm 1 (Euclidean: at most 2) */
    embla_query_size *sizes; /* count */
    double unit;             /* Euclidean: every query was multiplied with this */
    double error;            /* maximum error of a product of a row and a query of norm 1 */
    worker *workers;         /* one for each slot */
    int threads;
    embla_scored *out; /* count x k */
    bool *again;       /* count: true for a query that a scan must answer */
} many;

/* The float above x, so that rounding to float keeps an upper bound. */
static float above(double x)
{
    return nextafterf((float)x, INFINITY);
}

/* For cosine and dot product, queries are scaled to norm 1. For Euclidean distance, all queries are
 * multiplied by one power of two that gives the longest a norm between 1 and 2; x.q - x.x/2 then
 * orders rows as distances do. */
static void scale_queries(many *m)
{
    const embla_question *q = m->q;
    double longest = 0.0;
    int exponent = 0;
    for (size_t i = 0; i < m->count; i++) {
        m->sizes[i] = embla_size_of(q, q->queries + (m->first + i) * q->dim);
        if (m->sizes[i].norm > longest) longest = m->sizes[i].norm;
    }
    (void)frexp(longest, &exponent);
    m->unit = longest == 0.0 ? 1.0 : ldexp(1.0, 1 - exponent);
    for (size_t i = 0; i < m->count; i++) {
        const float *query = q->queries + (m->first + i) * q->dim;
        double norm = m->sizes[i].norm;
        double factor = q->measure == EMBLA_MEASURE_EUCLIDEAN ? m->unit
                        : norm == 0.0                         ? 0.0
                                                              : 1.0 / norm;
        for (size_t j = 0; j < q->dim; j++)
            m->scaled[i * q->dim + j] = (float)((double)query[j] * factor);
    }
}

/* The exact score in the units of bounds. */
static double bound_of_score(const many *m, embla_query_size size, double score)
{
    if (m->q->measure == EMBLA_MEASURE_COSINE) return score;
    if (m->q->measure == EMBLA_MEASURE_DOT) return size.norm == 0.0 ? 0.0 : score / size.norm;
    return 0.5 * m->unit * (size.square - score * score);
}

/* The same, minus what rounding in double may have added. */
static double lower_bound_of_score(const many *m, embla_query_size size, double score)
{
    double bound = bound_of_score(m, size, score);
    if (m->q->measure != EMBLA_MEASURE_EUCLIDEAN) return bound;
    return bound - 0x1p-40 * m->unit * (size.square + score * score);
}

/* Any sum of dim products of floats, in any order, is wrong by at most dim * 2^-24 |x||q|; `error`
 * also covers what is rounded before and after. Outside of these norms a product could overflow or
 * underflow. */
static row_bound bound_of_row(const many *m, double square)
{
    const double least = 0x1p-40, most = 0x1p60;
    double norm = sqrt(square);
    row_bound row = {.scale = 1.0f, .kind = ROW_PLAIN};
    if (!isfinite(square)) return (row_bound){.kind = ROW_OUT};
    if (square == 0.0) return row; /* all products are exactly 0 */
    if (norm < least || norm > most) return (row_bound){.kind = ROW_ODD};
    if (m->q->measure == EMBLA_MEASURE_COSINE) {
        row.scale = (float)(1.0 / norm);
        row.add = above(m->error);
    } else if (m->q->measure == EMBLA_MEASURE_DOT) {
        row.add = above(m->error * norm);
    } else {
        double half = 0.5 * square * m->unit;
        if (half > most) return (row_bound){.kind = ROW_ODD};
        row.add = above(2.0 * m->error * norm - half + 0x1p-22 * half);
    }
    return row;
}

/* Decodes rows first .. first+n-1 of the table and computes their squares and bounds. */
static const float *prepare_tile(const many *m, worker *w, int64_t first, size_t n)
{
    const embla_question *q = m->q;
    const float *rows = (const float *)(const void *)embla_source_at(q->source, first);
    size_t i = 0;
    if (m->decode) {
        rows = w->rows;
        for (size_t r = 0; r < n; r++)
            embla_source_decode(q->source, m->decode, first + (int64_t)r, w->rows + r * q->dim);
    }
    for (; i + EMBLA_DOTS <= n; i += EMBLA_DOTS) {
        const float *at = rows + i * m->stride;
        const float *four[EMBLA_DOTS] = {at, at + m->stride, at + 2 * m->stride,
                                         at + 3 * m->stride};
        q->kernels->dots(four, NULL, q->dim, NULL, w->squares + i);
    }
    for (; i < n; i++)
        w->squares[i] = q->kernels->dot(rows + i * m->stride, rows + i * m->stride, q->dim);
    for (i = 0; i < n; i++) {
        w->bounds[i] = bound_of_row(m, w->squares[i]);
        w->nonfinite += w->bounds[i].kind == ROW_OUT;
    }
    return rows;
}

/* Adds a row to the list of a query (a number in this pass), unless the row is left out. */
static void add_candidate(const many *m, worker *w, size_t query, int64_t row, float bound)
{
    const embla_question *q = m->q;
    embla_best *best = &w->best[query];
    if (q->exclude_count > 0 &&
        embla_is_excluded(q->exclude + (m->first + query) * q->exclude_count, q->exclude_count,
                          row))
        return;
    embla_best_add(best, (embla_scored){row, isnan(bound) ? HUGE_VAL : (double)bound});
    /* an equal bound need not enter: the proof allows dropped bounds up to the worst kept one */
    if (best->count == best->room)
        w->limits[query] = nextafterf((float)best->items[0].score, INFINITY);
}

/* Finds candidates in the products of a tile with queries from .. from+n-1 of this pass. */
static void search_products(const many *m, worker *w, int64_t first, size_t rows, size_t from,
                            size_t n)
{
    uint32_t at[QUERIES];
    for (size_t r = 0; r < rows; r++) {
        const float *products = w->products + r * n;
        row_bound b = w->bounds[r];
        if (b.kind != ROW_PLAIN) continue;
        size_t found = m->q->kernels->reach(products, b.scale, b.add, w->limits + from, n, at);
        for (size_t i = 0; i < found; i++)
            add_candidate(m, w, from + at[i], first + (int64_t)r,
                          products[at[i]] * b.scale + b.add);
    }
}

static void add_odd_row(const many *m, worker *w, int64_t row, const float *numbers, double square)
{
    const embla_question *q = m->q;
    for (size_t i = 0; i < m->count; i++) {
        const float *query = q->queries + (m->first + i) * q->dim;
        double score = embla_score_of(q->measure, m->sizes[i],
                                      q->kernels->dot(numbers, query, q->dim), square);
        float bound = above(bound_of_score(m, m->sizes[i], score));
        if (bound >= w->limits[i]) add_candidate(m, w, i, row, bound);
    }
}

static embla_status search_tile(const many *m, worker *w, int64_t tile)
{
    const embla_question *q = m->q;
    if (embla_watch_step(q->watch, false, 0)) return embla_watch_say(q->watch);
    int64_t first = tile * (int64_t)m->tile;
    size_t n = q->rows - first < (int64_t)m->tile ? (size_t)(q->rows - first) : m->tile;
    const float *rows = prepare_tile(m, w, first, n);
    for (size_t from = 0; from < m->count && !w->failed; from += QUERIES) {
        size_t queries = m->count - from < QUERIES ? m->count - from : QUERIES;
        const embla_product product = {.m = n,
                                       .n = queries,
                                       .k = q->dim,
                                       .a = rows,
                                       .b = m->scaled + from * q->dim,
                                       .a_stride = m->stride,
                                       .b_stride = q->dim,
                                       .out_stride = queries,
                                       .out = w->products,
                                       .form = EMBLA_PRODUCT_A_BT};
        w->failed = embla_engine_product(&product) != EMBLA_OK;
        if (!w->failed) search_products(m, w, first, n, from, queries);
        if (embla_watch_step(q->watch, embla_share_is_caller(), (int64_t)(n * queries)))
            return embla_watch_say(q->watch);
    }
    for (size_t r = 0; r < n; r++)
        if (w->bounds[r].kind == ROW_ODD)
            add_odd_row(m, w, first + (int64_t)r, rows + r * m->stride, w->squares[r]);
    return EMBLA_OK;
}

static embla_status search_tiles(void *job, size_t first, size_t end, size_t slot)
{
    const many *m = job;
    for (size_t i = first; i < end; i++) EMBLA_TRY(search_tile(m, &m->workers[slot], (int64_t)i));
    return EMBLA_OK;
}

/* Joins all threads' candidates of a query and scores them in double. Returns false if a row that
 * was dropped may belong to the answer. */
static bool score_candidates(const many *m, worker *w, size_t query, embla_best *answer)
{
    const embla_question *q = m->q;
    embla_best *best = &m->workers[0].best[query];
    const float *numbers = q->queries + (m->first + query) * q->dim;
    bool right = true;
    for (int t = 1; t < m->threads; t++) embla_best_join(best, &m->workers[t].best[query]);
    for (size_t i = 0; i < best->count; i++) {
        int64_t row = best->items[i].row;
        const float *x = (const float *)(const void *)embla_source_at(q->source, row);
        if (m->decode) {
            embla_source_decode(q->source, m->decode, row, w->rows);
            x = w->rows;
        }
        double square = q->kernels->dot(x, x, q->dim), dot = q->kernels->dot(x, numbers, q->dim);
        double score = embla_score_of(q->measure, m->sizes[query], dot, square);
        /* an exact score above its bound means that the engine's errors are larger than assumed */
        right &= lower_bound_of_score(m, m->sizes[query], score) <= best->items[i].score;
        embla_best_add(answer, (embla_scored){row, score});
    }
    if (best->count < best->room) return right; /* none was dropped */
    return right &&
           lower_bound_of_score(m, m->sizes[query], answer->items[0].score) > best->items[0].score;
}

static embla_status answer_queries(void *job, size_t first, size_t end, size_t slot)
{
    const many *m = job;
    const size_t k = m->q->k;
    for (size_t i = first; i < end; i++) {
        embla_best best = {.items = m->out + i * k, .room = k};
        m->again[i] = !score_candidates(m, &m->workers[slot], i, &best);
        embla_best_sort(&best);
        for (size_t j = best.count; j < k; j++) best.items[j] = (embla_scored){.row = -1};
    }
    return EMBLA_OK;
}

static embla_status run_many(const many *m)
{
    size_t tiles = (size_t)(m->q->rows - 1) / m->tile + 1;
    EMBLA_TRY(embla_share(m->threads, tiles, 1, search_tiles, m));
    EMBLA_TRY(embla_share(m->threads, m->count, 16, answer_queries, m));
    for (int t = 0; t < m->threads; t++)
        for (size_t i = 0; m->workers[t].failed && i < m->count; i++) m->again[i] = true;
    return EMBLA_OK;
}

/* ---- memory for it ---- */

static embla_status new_array(embla_arena *arena, size_t count, size_t size, void *out)
{
    return embla_scan_take(arena, count, size, "a search of many queries", out);
}

static embla_status new_worker(const many *m, embla_arena *arena, worker *w)
{
    embla_scored *items = NULL;
    if (m->decode) EMBLA_TRY(new_array(arena, m->tile * m->q->dim, sizeof(float), &w->rows));
    EMBLA_TRY(new_array(arena, m->tile * QUERIES, sizeof(float), &w->products));
    EMBLA_TRY(new_array(arena, m->tile, sizeof(double), &w->squares));
    EMBLA_TRY(new_array(arena, m->tile, sizeof(row_bound), &w->bounds));
    EMBLA_TRY(new_array(arena, m->count, sizeof(float), &w->limits));
    EMBLA_TRY(new_array(arena, m->count, sizeof(embla_best), &w->best));
    EMBLA_TRY(new_array(arena, m->count * m->keep, sizeof *items, &items));
    for (size_t i = 0; i < m->count; i++) {
        w->limits[i] = -INFINITY;
        w->best[i] = (embla_best){.items = items + i * m->keep, .room = m->keep};
    }
    return EMBLA_OK;
}

/* Rows in a tile: few enough that all threads get tiles and decoded rows stay small. */
static size_t rows_of_tile(const many *m)
{
    const embla_question *q = m->q;
    size_t threads = (size_t)m->threads, tile = TILE_ROWS;
    size_t least = LEAST_BYTES / (q->dim * sizeof(float));
    if (least > TILE_LEAST || !m->decode) least = TILE_LEAST;
    if (least < EMBLA_DOTS) least = EMBLA_DOTS;
    if (m->decode && tile * q->dim * sizeof(float) * threads > TILE_BYTES)
        tile = TILE_BYTES / (q->dim * sizeof(float) * threads);
    while (tile > TILE_LEAST && (uint64_t)q->rows / tile < 4 * threads) tile /= 2;
    return tile < least ? least : tile;
}

static embla_status prepare(many *m, embla_arena *arena)
{
    EMBLA_TRY(new_array(arena, m->count * m->q->dim, sizeof(float), &m->scaled));
    EMBLA_TRY(new_array(arena, m->count, sizeof(embla_query_size), &m->sizes));
    EMBLA_TRY(new_array(arena, (size_t)m->threads, sizeof(worker), &m->workers));
    m->tile = rows_of_tile(m);
    for (int t = 0; t < m->threads; t++) EMBLA_TRY(new_worker(m, arena, &m->workers[t]));
    return EMBLA_OK;
}

/* Candidates kept for each query. */
static size_t kept(const embla_question *q)
{
    return (q->k < (uint64_t)q->rows ? q->k : (size_t)q->rows) + SLACK;
}

/* One pass over the table for queries first .. first+count-1. */
static embla_status search_by_products(const embla_question *q, size_t first, size_t count,
                                       int threads, embla_scored *out, bool *again,
                                       int64_t *nonfinite)
{
    /* Rows of a file are copied first: if the file is cut short, the fault must not happen inside
     * the engine, where no signal can be handled (engine/onednn.c). */
    bool mapped = embla_table_placement(q->table) == EMBLA_PLACEMENT_MAPPED;
    bool in_place = !mapped && embla_source_in_place(q->source);
    embla_arena arena = {0};
    many m = {.q = q,
              .first = first,
              .count = count,
              .stride = in_place ? q->source->stride / sizeof(float) : q->dim,
              .keep = kept(q),
              .error = 1.1 * 0x1p-24 * (double)(q->dim + 16),
              .threads = threads,
              .out = out + first * q->k,
              .again = again + first};
    if (!in_place) m.decode = embla_dtype_decoder(embla_table_dtype(q->table), q->kernels->isa);
    embla_status status = prepare(&m, &arena);
    if (status == EMBLA_OK) {
        scale_queries(&m);
        status = run_many(&m);
        *nonfinite = 0;
        for (int t = 0; t < threads; t++) *nonfinite += m.workers[t].nonfinite;
    }
    embla_arena_free(&arena);
    return status;
}

/* Answers the queries marked in again by scans, several queries at a time. */
static embla_status rescan(const embla_question *q, const bool *again, embla_scored *out,
                           embla_arena *arena, size_t *asked)
{
    size_t most = embla_scan_at_once(q), n = 0, where[EMBLA_SCAN_MOST];
    float *queries = NULL;
    int64_t *exclude = NULL, nonfinite;
    embla_scored *answers = NULL;
    EMBLA_TRY(new_array(arena, most * q->dim, sizeof *queries, &queries));
    EMBLA_TRY(new_array(arena, most * q->exclude_count, sizeof *exclude, &exclude));
    EMBLA_TRY(new_array(arena, most * q->k, sizeof *answers, &answers));
    for (size_t i = 0; i <= q->count; i++) {
        if (i < q->count && again[i]) {
            memcpy(queries + n * q->dim, q->queries + i * q->dim, q->dim * sizeof(float));
            if (q->exclude_count > 0)
                memcpy(exclude + n * q->exclude_count, q->exclude + i * q->exclude_count,
                       q->exclude_count * sizeof(int64_t));
            where[n++] = i;
        }
        if (n < most && (i < q->count || n == 0)) continue;
        EMBLA_TRY(embla_scan_queries(q, queries, exclude, n, answers, &nonfinite));
        for (size_t j = 0; j < n; j++)
            memcpy(out + where[j] * q->k, answers + j * q->k, q->k * sizeof *out);
        EMBLA_TRY(embla_near_step(q, 0)); /* products have counted them */
        *asked += n;
        n = 0;
    }
    return EMBLA_OK;
}

/* How many queries one pass over the table serves; 0 means that lists are too long for products. */
static size_t pass_queries(const embla_question *q, int threads)
{
    uint64_t list = (uint64_t)kept(q) * sizeof(embla_scored) * (uint64_t)threads;
    uint64_t by_lists = PASS_BYTES / list, by_queries = PASS_BYTES / (q->dim * sizeof(float));
    uint64_t most = by_lists < by_queries ? by_lists : by_queries;
    if (most >= QUERIES) most = most / QUERIES * QUERIES;
    return most < FEW ? 0 : most < q->count ? (size_t)most : q->count;
}

/* Answers all queries by products, and by scans those for which the proof failed. */
static embla_status product_all(const embla_question *q, int threads, embla_arena *arena,
                                embla_scored *out, int64_t *nonfinite, embla_near_ways *ways)
{
    size_t step = pass_queries(q, threads), asked = 0;
    bool *again = NULL;
    EMBLA_TRY(new_array(arena, q->count, sizeof(bool), &again));
    EMBLA_TRY(embla_table_check_file(q->table));
    for (size_t i = 0; i < q->count; i += step) {
        size_t n = q->count - i < step ? q->count - i : step;
        EMBLA_TRY(search_by_products(q, i, n, threads, out, again, nonfinite));
    }
    EMBLA_TRY(embla_table_check_file(q->table));
    EMBLA_TRY(rescan(q, again, out, arena, &asked));
    if (ways) *ways = (embla_near_ways){.by_product = q->count - asked, .again = asked};
    return EMBLA_OK;
}

/* ---- checks and entry points ---- */

/* "cosine", "dot", "euclidean" */
const char *embla_measure_name(embla_measure measure)
{
    static const char *const names[] = {"cosine", "dot", "euclidean"};
    return (unsigned)measure < sizeof names / sizeof names[0] ? names[measure] : NULL;
}

static embla_status check_queries(const float *queries, size_t count, size_t dim)
{
    for (size_t i = 0; i < count; i++)
        for (size_t j = 0; j < dim; j++)
            if (!isfinite(queries[i * dim + j]))
                return embla_fail(EMBLA_ERR_ARGUMENT,
                                  "query %zu is not finite: its value %zu is %g", i, j,
                                  (double)queries[i * dim + j]);
    return EMBLA_OK;
}

static embla_status check(const embla_question *q, const embla_near_options *options)
{
    uint64_t numbers;
    if (options->rows < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be 0 or greater",
                          options->rows);
    if (!embla_measure_name(options->measure))
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown measure: %d", (int)options->measure);
    if (options->exclude_count > 0 && !options->exclude && q->count > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "exclude is NULL, but exclude_count is %zu",
                          options->exclude_count);
    if (options->sketch && options->sketch->table != q->table)
        return embla_fail(
            EMBLA_ERR_ARGUMENT, "the sketch belongs to another table, of %" PRId64 " x %zu",
            embla_table_rows(options->sketch->table), embla_table_dim(options->sketch->table));
    EMBLA_TRY(embla_threads_check(options->threads));
    if (q->count == 0) return EMBLA_OK;
    if (!embla_mul_ok(q->count, q->k, &numbers) ||
        !embla_mul_ok(numbers, sizeof(embla_neighbour), &numbers) || numbers > PTRDIFF_MAX ||
        !embla_mul_ok(q->count, q->dim * sizeof(float), &numbers) || numbers > PTRDIFF_MAX ||
        !embla_mul_ok(q->count, q->exclude_count, &numbers) || numbers > PTRDIFF_MAX / 8)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu queries with %zu rows each do not fit in memory",
                          q->count, q->k);
    return check_queries(q->queries, q->count, q->dim);
}

/* Scores of distances are negative until here, so that the larger is always the nearer. */
static void copy_answers(const embla_question *q, const embla_scored *answers, embla_neighbour *out)
{
    embla_scan_copy(answers, q->count * q->k, out);
    for (size_t i = 0; q->measure == EMBLA_MEASURE_EUCLIDEAN && i < q->count * q->k; i++)
        out[i].score = out[i].row < 0 ? 0.0 : 0.0 - out[i].score;
}

/* Threads for products: rows * dim * count stands for the bytes that a thread would read in the
 * same time. */
static int threads_for(const embla_question *q)
{
    double bytes = (double)q->rows * (double)q->dim * (double)q->count;
    return embla_threads_for(q->threads, bytes < 1e15 ? (size_t)bytes : (size_t)1e15);
}

/* Answers are written to a copy first: a later allocation may fail, and then out stays untouched.
 */
static embla_status answer(const embla_question *q, embla_near_way way, embla_neighbour *out,
                           int64_t *nonfinite, embla_near_ways *ways)
{
    embla_arena arena = {0};
    embla_scored *answers = NULL;
    int threads = threads_for(q);
    bool products = way == EMBLA_NEAR_BY_PRODUCT || (way == EMBLA_NEAR_CHOOSE && q->count > FEW);
    products = products && pass_queries(q, threads) > 0 && embla_engine_has_products();
    bool sketch = way == EMBLA_NEAR_CHOOSE && q->sketch && q->count <= FEW &&
                  q->measure == EMBLA_MEASURE_COSINE;
    if (ways) *ways = (embla_near_ways){0};
    embla_status status = new_array(&arena, q->count * q->k, sizeof(embla_scored), &answers);
    if (status == EMBLA_OK)
        status = products ? product_all(q, threads, &arena, answers, nonfinite, ways)
                 : sketch ? sketch_all(q, answers, nonfinite)
                          : embla_scan_all(q, answers, nonfinite);
    if (status == EMBLA_OK) copy_answers(q, answers, out);
    embla_arena_free(&arena);
    return status;
}

embla_status embla_near_by(embla_near_way way, const embla_table *table, const float *queries,
                           size_t count, const embla_near_options *options, embla_neighbour *out,
                           embla_near_report *report, embla_near_ways *ways)
{
    const embla_near_options none = {0};
    embla_watch watch;
    int64_t nonfinite = 0;
    if (!options) options = &none;
    embla_watch_begin(&watch, options->progress, options->context, "near");
    bool some = options->rows > 0 && options->rows < embla_table_rows(table);
    embla_question q = {.table = table,
                        .source = embla_table_source(table),
                        .queries = queries,
                        .count = count,
                        .k = options->k > 0 ? options->k : EMBLA_NEAR_DEFAULT,
                        .dim = embla_table_dim(table),
                        .rows = some ? options->rows : embla_table_rows(table),
                        .exclude = options->exclude,
                        .exclude_count = options->exclude_count,
                        .threads = options->threads,
                        .measure = options->measure,
                        .sketch = options->sketch,
                        .kernels = embla_kernels_get(),
                        .watch = &watch};
    EMBLA_TRY(check(&q, options));
    uint64_t pairs;
    watch.total = embla_mul_ok(count, (uint64_t)q.rows, &pairs) && pairs <= INT64_MAX
                      ? (int64_t)pairs
                      : INT64_MAX;
    if (count > 0) EMBLA_TRY(answer(&q, way, out, &nonfinite, ways));
    if (report) *report = (embla_near_report){.rows = q.rows, .nonfinite = nonfinite};
    return EMBLA_OK;
}

embla_status embla_near(const embla_table *table, const float *queries, size_t count,
                        const embla_near_options *options, embla_neighbour *out,
                        embla_near_report *report)
{
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(table);
    EMBLA_NEED_MANY(queries, count);
    EMBLA_NEED_MANY(out, count);
    return embla_near_by(EMBLA_NEAR_CHOOSE, table, queries, count, options, out, report, NULL);
}
