/* SPDX-License-Identifier: Apache-2.0 */
/* A search with a sketch:
 *
 * 1. The upper bounds of all cosines, from the sketch; of each block of rows the highest is kept.
 * 2. The best row of each of the highest blocks is scored exactly. The k-th of these scores is a
 *    limit that every row of the answer reaches.
 * 3. Rows whose bound reaches the limit are scored exactly, with the arithmetic of a scan.
 *
 * So the answer has the bits of a scan. Where too many rows reach the limit, a scan is faster.
 */
#include "near/sketch.h"

#include <string.h>

#include "base/checked.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"

enum {
    ROWS = EMBLA_SKETCH_ROWS,
    STEP = EMBLA_SKETCH_STEP,
    NUMBERS = EMBLA_SKETCH_NUMBERS,
    LEVELS = 16,
    WHOLE_MOST = 127,   /* a number of a query, rounded */
    DIM_MOST = 1 << 20, /* 15 x 127 x this is below 2^31 */
    EXACT_SHARE = 16,   /* at most one row in so many is scored exactly, else a scan is faster */
    WAITING = 16,       /* rows that memory delivers at the same time */
    SLACK = 16,         /* blocks beyond twice as many as rows of the answer: a higher limit */
    BLOCKS = 4          /* so many blocks for each row of the answer, or a scan is faster */
};

/* Rounding to float changes a number by less than this share. A sum of levels is at most 30 times
 * longer than what is left of it when the centre is subtracted: 8 times this covers it. */
#define ROUNDING 0x1p-20

/* ---- making it ---- */

enum { LANES = 16 };

/* About the squared norm of what rounding to levels of 1 / factor changes, in units of that. */
EMBLA_BODY float estimate_body(const float *row, size_t dim, float factor)
{
    float lanes[LANES] = {0}, sum = 0.0f;
    size_t i = 0;
    for (; i + LANES <= dim; i += LANES)
        for (size_t j = 0; j < LANES; j++) {
            float x = row[i + j] * factor, level = floorf(x);
            level = level < -8.0f ? -8.0f : level > 7.0f ? 7.0f : level;
            lanes[j] += (x - level - 0.5f) * (x - level - 0.5f);
        }
    for (; i < dim; i++) {
        float x = row[i] * factor, level = fminf(fmaxf(floorf(x), -8.0f), 7.0f);
        lanes[0] += (x - level - 0.5f) * (x - level - 0.5f);
    }
    for (size_t j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}

EMBLA_ISA_FUNCTION(float, estimate_change, (const float *row, size_t dim, float factor),
                   return estimate_body(row, dim, factor);)

/* Rounds a row to levels of `unit`; returns the squared norm of what that changed. */
EMBLA_BODY double round_body(const float *row, size_t dim, double unit, uint8_t *levels)
{
    const double factor = 1.0 / unit;
    double lanes[LANES] = {0}, sum = 0.0;
    for (size_t i = 0; i < dim; i += LANES)
        for (size_t j = 0; j < LANES && i + j < dim; j++) {
            double x = (double)row[i + j], level = floor(x * factor);
            level = level < -8.0 ? -8.0 : level > 7.0 ? 7.0 : level;
            double apart = x - (level + 0.5) * unit;
            lanes[j] += apart * apart;
            levels[i + j] = (uint8_t)((int)level + 8);
        }
    for (size_t j = 0; j < LANES; j++) sum += lanes[j];
    return sum;
}

EMBLA_ISA_FUNCTION(double, round_row, (const float *row, size_t dim, double unit, uint8_t *levels),
                   return round_body(row, dim, unit, levels);)

/* Puts the levels of a row into its block. */
static void pack_row(embla_sketch *sketch, int64_t row, const uint8_t *levels)
{
    static const struct {
        uint8_t byte, shift;
    } places[NUMBERS] = {{0, 0}, {1, 0}, {0, 4}, {1, 4}};
    uint8_t *out =
        sketch->levels + (size_t)(row / ROWS) * sketch->steps * STEP + (size_t)(row % ROWS) * 2;
    for (size_t i = 0; i < sketch->dim; i++) {
        uint8_t *at = out + i / NUMBERS * STEP + places[i % NUMBERS].byte;
        *at = (uint8_t)(*at | levels[i] << places[i % NUMBERS].shift);
    }
}

/* The work space of a slot: a decoded row, and its levels. */
typedef struct {
    float *row;
    uint8_t *levels;
} space;

/* Not fmax: gcc 12.2 for Arm crashes on it in a loop over a row. */
static inline double larger(double a, double b)
{
    return b > a ? b : a;
}

/* Sketches a row. Its largest number may be beyond the last level: of a few widths of a level, the
 * one that changes the row least is used. */
static void sketch_row(embla_sketch *sketch, int64_t row, const float *x, const space *s)
{
    static const double widths[] = {1.0, 0.85, 0.7, 0.55, 0.4};
    const size_t dim = sketch->dim;
    const double square = embla_kernels_get()->dot(x, x, dim), norm = sqrt(square);
    double most = 0.0, least = HUGE_VAL, unit = 0.0;
    sketch->factors[row] = sketch->errors[row] = 0.0f;
    if (square == 0.0) return;
    sketch->errors[row] = INFINITY;
    if (!(norm > 0x1p-40 && norm < 0x1p60)) return;
    for (size_t i = 0; i < dim; i++) most = larger(most, fabs((double)x[i]));
    for (size_t i = 0; i < sizeof widths / sizeof widths[0]; i++) {
        double width = most * widths[i] * (2.0 / LEVELS);
        double changed =
            (double)EMBLA_PICK(estimate_change)(x, dim, (float)(1.0 / width)) * width * width;
        if (changed >= least) continue;
        least = changed;
        unit = width;
    }
    double changed = EMBLA_PICK(round_row)(x, dim, unit, s->levels);
    pack_row(sketch, row, s->levels);
    sketch->factors[row] = (float)(unit / norm);
    sketch->errors[row] = (float)(sqrt(changed) / norm * (1.0 + ROUNDING));
}

typedef struct {
    embla_sketch *sketch;
    const space *spaces;     /* one for each slot */
    embla_decode_fn *decode; /* NULL means rows are used where they are */
} sketching;

/* Threads share the rows; no two rows have a byte in common. */
static embla_status sketch_rows(void *job, size_t first, size_t end, size_t slot)
{
    const sketching *k = job;
    const embla_row_source *source = k->sketch->source;
    const space *s = &k->spaces[slot];
    for (int64_t row = (int64_t)first; row < (int64_t)end; row++) {
        const float *x = (const float *)(const void *)embla_source_at(source, row);
        if (k->decode) {
            embla_source_decode(source, k->decode, row, s->row);
            x = s->row;
        }
        sketch_row(k->sketch, row, x, s);
    }
    return EMBLA_OK;
}

static embla_status allocate(embla_sketch *sketch)
{
    uint64_t bytes, rows = (uint64_t)sketch->blocks * ROWS;
    if (!embla_mul_ok((uint64_t)sketch->blocks, sketch->steps * STEP, &bytes) ||
        bytes > PTRDIFF_MAX / 2)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for a sketch of %" PRId64 " x %zu",
                          sketch->source->rows, sketch->dim);
    EMBLA_TRY(embla_scan_take(&sketch->arena, (size_t)bytes, 1, "a sketch", &sketch->levels));
    EMBLA_TRY(embla_scan_take(&sketch->arena, rows, sizeof(float), "factors of a sketch",
                              &sketch->factors));
    EMBLA_TRY(embla_scan_take(&sketch->arena, rows, sizeof(float), "errors of a sketch",
                              &sketch->errors));
    sketch->bytes = (size_t)bytes + 2 * sizeof(float) * (size_t)rows;
    return EMBLA_OK;
}

static embla_status build(embla_sketch *sketch, int threads, embla_arena *working)
{
    const embla_table *table = sketch->table;
    const size_t dim = sketch->dim;
    space *spaces = NULL;
    EMBLA_TRY(allocate(sketch));
    EMBLA_TRY(embla_arena_many(working, (uint64_t)threads, sizeof *spaces, "threads", &spaces));
    for (int t = 0; t < threads; t++) {
        EMBLA_TRY(embla_scan_take(working, dim, sizeof(float), "a row", &spaces[t].row));
        EMBLA_TRY(embla_scan_take(working, dim, 1, "levels of a row", &spaces[t].levels));
    }
    sketching k = {.sketch = sketch, .spaces = spaces};
    if (!embla_source_in_place(sketch->source))
        k.decode = embla_dtype_decoder(embla_table_dtype(table), embla_kernels_get()->isa);
    EMBLA_TRY(embla_table_check_file(table));
    EMBLA_TRY(embla_share(threads, (size_t)sketch->source->rows, 0, sketch_rows, &k));
    return embla_table_check_file(table);
}

static embla_status check(size_t dim, const embla_sketch_options *options)
{
    if (dim > DIM_MOST)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a sketch is for rows of at most %d numbers, and these have %zu",
                          DIM_MOST, dim);
    return embla_threads_check(options->threads);
}

embla_status embla_sketch_new(const embla_table *table, const embla_sketch_options *options,
                              embla_sketch **out)
{
    const embla_sketch_options none = {0};
    embla_arena working = {0};
    embla_sketch made = {.table = table};
    embla_sketch *sketch = NULL;
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &none;
    EMBLA_NEED(table);
    EMBLA_NEED(out);
    const int64_t rows = embla_table_rows(table);
    made.source = embla_table_source(table);
    made.dim = embla_table_dim(table);
    EMBLA_TRY(check(made.dim, options));
    made.steps = (made.dim - 1) / NUMBERS + 1;
    made.blocks = (rows - 1) / ROWS + 1;
    int threads = embla_threads_for(options->threads, (size_t)rows * made.dim);
    embla_status status = build(&made, threads, &working);
    if (status == EMBLA_OK)
        status = embla_arena_many(&made.arena, 1, sizeof *sketch, "a sketch", &sketch);
    embla_arena_free(&working);
    if (status != EMBLA_OK) {
        embla_arena_free(&made.arena);
        return status;
    }
    *sketch = made;
    *out = sketch;
    return EMBLA_OK;
}

void embla_sketch_free(embla_sketch *sketch)
{
    if (!sketch) return;
    embla_arena arena = sketch->arena; /* the arena holds the sketch itself */
    embla_arena_free(&arena);
}

size_t embla_sketch_bytes(const embla_sketch *sketch)
{
    return sketch ? sketch->bytes : 0;
}

/* ---- bounds ---- */

/* A query against a sketch. */
typedef struct {
    const embla_sketch *sketch;
    const embla_question *q;
    const float *query;
    const int64_t *exclude;
    embla_query_size size;
    embla_sketch_bound *bound;
    embla_decode_fn *decode;
    int8_t *whole; /* as embla_sketch_terms has it */
    embla_sketch_terms terms;
    float *rows; /* EMBLA_DOTS decoded rows */
    int64_t blocks;
    int16_t *bounds;  /* blocks x ROWS */
    int16_t *highest; /* blocks: the highest bound in each */
} search;

/* Rounds the query to integers. What rounding changed is part of the error. */
static void round_query(search *s)
{
    const size_t dim = s->q->dim;
    double most = 0.0, changed = 0.0, sum = 0.0, norm = s->size.norm;
    for (size_t i = 0; i < dim; i++) most = larger(most, fabs((double)s->query[i]));
    const double unit = most == 0.0 ? 1.0 : most / WHOLE_MOST;
    for (size_t i = 0; i < dim; i++) {
        double exact = (double)s->query[i] / unit, rounded = rint(exact);
        int8_t *at = s->whole + i / NUMBERS * 2 * NUMBERS + i % NUMBERS / 2 * NUMBERS + i % 2;
        at[0] = at[2] = (int8_t)rounded;
        changed += (exact - rounded) * (exact - rounded);
        sum += rounded;
    }
    double error = norm == 0.0 ? 0.0 : sqrt(changed) * unit / norm;
    s->terms = (embla_sketch_terms){.query = s->whole,
                                    .steps = s->sketch->steps,
                                    .centre = (float)(7.5 * sum),
                                    .unit = norm == 0.0 ? 0.0f : (float)(unit / norm),
                                    .add = (float)(error + 8.0 * ROUNDING),
                                    .times = (float)(1.0 + error + ROUNDING)};
}

static embla_status bound_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const search *s = job;
    const embla_sketch *k = s->sketch;
    (void)slot;
    for (size_t block = first; block < end; block++)
        s->highest[block] =
            s->bound(&s->terms, k->levels + block * k->steps * STEP, k->factors + block * ROWS,
                     k->errors + block * ROWS, s->bounds + block * ROWS);
    return EMBLA_OK;
}

/* The rows of a block: fewer at the end of those that are searched. */
static size_t rows_of_block(const search *s, int64_t block)
{
    int64_t left = s->q->rows - block * ROWS;
    return left < ROWS ? (size_t)left : ROWS;
}

/* ---- exact scores ---- */

/* Rows to score, EMBLA_DOTS at a time. They wait until memory has delivered them. */
typedef struct {
    int64_t rows[WAITING];
    size_t count;
    embla_best *best;
    int64_t nonfinite;
} waiting;

/* Scores the first rows as a scan does and adds them to the list. */
static void score_four(const search *s, waiting *w)
{
    const embla_question *q = s->q;
    const bool in_place = embla_source_in_place(q->source);
    const size_t n = w->count < EMBLA_DOTS ? w->count : EMBLA_DOTS;
    const float *rows[EMBLA_DOTS];
    double dots[EMBLA_DOTS], squares[EMBLA_DOTS];
    for (size_t i = 0; i < EMBLA_DOTS; i++) {
        const int64_t row = w->rows[i < n ? i : 0];
        const char *at = embla_source_at(q->source, row);
        rows[i] = in_place ? (const float *)(const void *)at : s->rows + i * q->dim;
        if (!in_place) embla_source_decode(q->source, s->decode, row, s->rows + i * q->dim);
    }
    q->kernels->dots(rows, s->query, q->dim, dots, squares);
    for (size_t i = 0; i < n; i++) {
        w->nonfinite += !isfinite(squares[i]);
        if (!isfinite(squares[i]) || embla_is_excluded(s->exclude, q->exclude_count, w->rows[i]))
            continue;
        double score = embla_score_of(q->measure, s->size, dots[i], squares[i]);
        embla_best_add(w->best, (embla_scored){w->rows[i], score});
    }
    w->count -= n;
    memmove(w->rows, w->rows + n, w->count * sizeof *w->rows);
}

static void add_row(const search *s, waiting *w, int64_t row)
{
    const char *at = embla_source_at(s->q->source, row);
    const size_t bytes = s->q->source->row->bytes;
    for (size_t i = 0; i < bytes; i += EMBLA_LINE) __builtin_prefetch(at + i);
    w->rows[w->count++] = row;
    if (w->count == WAITING) score_four(s, w);
}

/* The k-th best score of one row in each of the highest blocks, or -HUGE_VAL if there are fewer
 * rows. `chosen` has room for more than k + exclude_count blocks, `best` for k rows. */
static double find_limit(const search *s, embla_best *chosen, embla_best *best)
{
    waiting w = {.best = best};
    for (int64_t block = 0; block < s->blocks; block++)
        if (s->highest[block] >= embla_best_least(chosen))
            embla_best_add(chosen, (embla_scored){block, s->highest[block]});
    for (size_t i = 0; i < chosen->count; i++) {
        int64_t first = chosen->items[i].row * ROWS;
        size_t at = 0;
        for (size_t r = 1, n = rows_of_block(s, chosen->items[i].row); r < n; r++)
            if (s->bounds[first + (int64_t)r] > s->bounds[first + (int64_t)at]) at = r;
        add_row(s, &w, first + (int64_t)at);
    }
    while (w.count > 0) score_four(s, &w);
    return embla_best_least(best);
}

/* Scores all rows whose bounds reach the limit. Returns false if they are too many. */
static bool score_rows(const search *s, double limit, embla_best *best, int64_t *nonfinite)
{
    waiting w = {.best = best};
    int64_t left = s->q->rows / EXACT_SHARE + (int64_t)s->q->k;
    const int16_t least = (int16_t)floor(limit * EMBLA_SKETCH_UNITS);
    for (int64_t block = 0; block < s->blocks; block++) {
        if (s->highest[block] < least) continue;
        const int64_t first = block * ROWS, end = first + (int64_t)rows_of_block(s, block);
        for (int64_t row = first; row < end; row++) {
            if (s->bounds[row] < least) continue;
            if (left-- == 0) return false;
            add_row(s, &w, row);
        }
    }
    while (w.count > 0) score_four(s, &w);
    *nonfinite = w.nonfinite;
    return true;
}

/* ---- a query ---- */

static embla_status prepare(search *s, embla_arena *arena, embla_best *chosen, embla_best *best)
{
    const embla_question *q = s->q;
    EMBLA_TRY(embla_scan_take(arena, s->sketch->steps, 2 * NUMBERS, "a query", &s->whole));
    EMBLA_TRY(embla_scan_take(arena, EMBLA_DOTS * q->dim, sizeof(float), "rows", &s->rows));
    EMBLA_TRY(
        embla_scan_take(arena, (size_t)s->blocks, ROWS * sizeof(int16_t), "bounds", &s->bounds));
    EMBLA_TRY(embla_scan_take(arena, (size_t)s->blocks, sizeof(int16_t), "bounds", &s->highest));
    EMBLA_TRY(embla_scan_take(arena, chosen->room, sizeof(embla_scored), "the highest bounds",
                              &chosen->items));
    return embla_scan_take(arena, best->room, sizeof(embla_scored), "nearest rows", &best->items);
}

static embla_status answer(search *s, embla_arena *arena, embla_scored *out, int64_t *nonfinite,
                           bool *answered)
{
    const embla_question *q = s->q;
    embla_best chosen = {.room = 2 * q->k + q->exclude_count + SLACK}, best = {.room = q->k};
    EMBLA_TRY(prepare(s, arena, &chosen, &best));
    EMBLA_TRY(embla_table_check_file(q->table));
    round_query(s);
    size_t blocks = (size_t)s->blocks;
    int threads = embla_threads_for(q->threads, blocks * s->sketch->steps * STEP);
    EMBLA_TRY(embla_share(threads, blocks, 0, bound_blocks, s));
    double limit = find_limit(s, &chosen, &best);
    best.count = 0; /* these rows reach the limit, too, and are added again */
    *answered = limit > -HUGE_VAL && score_rows(s, limit, &best, nonfinite);
    EMBLA_TRY(embla_table_check_file(q->table));
    if (!*answered) return EMBLA_OK;
    embla_best_sort(&best);
    memcpy(out, best.items, q->k * sizeof *out);
    return EMBLA_OK;
}

embla_status embla_sketch_query(const embla_sketch *sketch, const embla_question *q,
                                const float *query, const int64_t *exclude, embla_scored *out,
                                int64_t *nonfinite, bool *answered)
{
    embla_arena arena = {0};
    search s = {.sketch = sketch,
                .q = q,
                .query = query,
                .exclude = exclude,
                .size = embla_size_of(q, query),
                .bound = EMBLA_PICK(embla_sketch_bounds),
                .decode = embla_dtype_decoder(embla_table_dtype(q->table), q->kernels->isa),
                .blocks = (q->rows - 1) / ROWS + 1};
    *answered = false;
    /* a limit needs k rows of as many blocks */
    if (q->k > (uint64_t)s.blocks / BLOCKS || q->exclude_count > (uint64_t)s.blocks / BLOCKS)
        return EMBLA_OK;
    embla_status status = answer(&s, &arena, out, nonfinite, answered);
    embla_arena_free(&arena);
    return status;
}
