/* SPDX-License-Identifier: Apache-2.0 */
/* Analogies such as king - man + woman: the question as rows, and its answers.
 *
 * 3CosAdd (Mikolov 2013) is a search: the sum of the unit rows is a query like any other. 3CosMul
 * (Levy and Goldberg 2014) multiplies the cosines with each row of the question, so one scan
 * compares every row with all of them.
 */
#include <math.h>

#include "base/arena.h"
#include "base/options.h"
#include "base/threads.h"
#include "embla_lab.h"
#include "near/near.h"

enum { EACH = 16, ROWS = 2 * EACH }; /* maximum rows of plus and of minus; of a question */

/* A question: the rows of plus, then the rows of minus. */
typedef struct {
    const embla_table *table;
    int64_t rows[ROWS];
    size_t plus, count;
    double norms[ROWS];
    float *vectors; /* count x dim, decoded */
} reading;

static embla_status check_rows(const embla_table *table, const int64_t *rows, size_t count,
                               const char *name)
{
    if (count > EACH)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu rows in %s; at most %d are allowed", count, name,
                          EACH);
    if (count > 0 && !rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "question.%s is NULL, but %s_count is %zu", name,
                          name, count);
    const int64_t limit = embla_table_rows(table);
    for (size_t i = 0; i < count; i++)
        if (rows[i] < 0 || rows[i] >= limit)
            return embla_fail(EMBLA_ERR_RANGE,
                              "%s[%zu] is row %" PRId64 ", and the table has %" PRId64 " rows",
                              name, i, rows[i], limit);
    return EMBLA_OK;
}

/* Decodes the rows of the question and computes their norms. */
static embla_status read_rows(reading *q, embla_arena *arena)
{
    size_t dim = embla_table_dim(q->table);
    const embla_lookup_options options = {.threads = 1};
    EMBLA_TRY(
        embla_arena_many(arena, q->count * dim, sizeof(float), "rows of a question", &q->vectors));
    EMBLA_TRY(embla_lookup_rows(q->table, q->rows, q->count, &options, q->vectors));
    for (size_t i = 0; i < q->count; i++) {
        q->norms[i] = embla_norm(q->vectors + i * dim, dim);
        if (!isfinite(q->norms[i]))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "row %" PRId64
                              " is part of the analogy, but one of its values is NaN or infinite",
                              q->rows[i]);
    }
    return EMBLA_OK;
}

/* ---- 3CosAdd ---- */

/* A sum whose numbers are all below this is zero but for rounding: those of the rows are at most 1.
 */
static const double ZERO = 1e-9;

static embla_status cos_add(const reading *q, embla_arena *arena,
                            const embla_analogy_options *options, embla_neighbour *out,
                            embla_near_report *report)
{
    size_t dim = embla_table_dim(q->table);
    float *query = NULL;
    double largest = 0.0;
    EMBLA_TRY(embla_arena_many(arena, dim, sizeof *query, "a query", &query));
    for (size_t j = 0; j < dim; j++) {
        double sum = 0.0;
        for (size_t i = 0; i < q->count; i++) {
            double part = q->norms[i] == 0.0 ? 0.0 : (double)q->vectors[i * dim + j] / q->norms[i];
            sum += i < q->plus ? part : -part;
        }
        query[j] = (float)sum;
        largest = fmax(largest, fabs(sum));
    }
    if (largest < ZERO)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the sum of the rows is zero, so it has no direction; "
                          "ask for other rows");
    const embla_near_options near = {.k = options->k,
                                     .rows = options->rows,
                                     .exclude = options->keep_words ? NULL : q->rows,
                                     .exclude_count = options->keep_words ? 0 : q->count,
                                     .threads = options->threads};
    return embla_near(q->table, query, 1, &near, out, report);
}

/* ---- 3CosMul ---- */

/* Keeps the divisor above 0 when a row has cosine -1 with a row of minus. */
static const double LEAST = 1e-6;

/* Scores of 3CosMul, or upper bounds of them if sums have an error. A cosine is then wrong by less
 * than twice the error (near.h), so each row of plus gets that much more and each row of minus that
 * much less. */
static void score_mul(const void *context, size_t list, const embla_scan_sums *sums, double *scores)
{
    const reading *q = context;
    const double slack = 2.0 * sums->error;
    (void)list;
    for (size_t i = 0; i < sums->n; i++) {
        double sides[2] = {1.0, 1.0}, norm = sqrt(sums->squares[i]);
        for (size_t v = 0; v < q->count; v++) {
            double norms = norm * q->norms[v];
            double cosine = norms == 0.0 ? 0.0 : sums->dots[v * sums->stride + i] / norms;
            if (slack > 0.0) cosine = v < q->plus ? cosine + slack : fmax(cosine - slack, -1.0);
            sides[v >= q->plus] *= (1.0 + cosine) / 2.0;
        }
        scores[i] = sides[0] / (sides[1] + LEAST);
    }
}

static embla_status cos_mul(const reading *q, embla_arena *arena,
                            const embla_analogy_options *options, embla_neighbour *out,
                            embla_near_report *report)
{
    const int64_t all = embla_table_rows(q->table);
    bool some = options->rows > 0 && options->rows < all;
    embla_scan_report scanned;
    embla_scored *answers = NULL;
    const embla_scan scan = {.table = q->table,
                             .rows = some ? options->rows : all,
                             .vectors = q->vectors,
                             .count = q->count,
                             .lists = 1,
                             .k = options->k,
                             .exclude = q->rows,
                             .exclude_count = options->keep_words ? 0 : q->count,
                             .threads = options->threads,
                             .score = score_mul,
                             .context = q};
    EMBLA_TRY(embla_arena_many(arena, options->k, sizeof *answers, "answers", &answers));
    EMBLA_TRY(embla_scan_run(&scan, answers, &scanned));
    embla_scan_copy(answers, options->k, out);
    if (report) *report = (embla_near_report){.rows = scan.rows, .nonfinite = scanned.nonfinite};
    return EMBLA_OK;
}

/* ---- checks and entry point ---- */

static embla_status check(const embla_analogy_question *question,
                          const embla_analogy_options *options)
{
    if (question->plus_count == 0 && question->minus_count == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "plus and minus are empty; an analogy needs at least one row");
    if (options->rows < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be 0 or greater",
                          options->rows);
    if (options->kind != EMBLA_ANALOGY_COS_ADD && options->kind != EMBLA_ANALOGY_COS_MUL)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown kind of analogy: %d", (int)options->kind);
    return embla_threads_check(options->threads);
}

embla_status embla_analogy(const embla_table *table, const embla_analogy_question *question,
                           const embla_analogy_options *options, embla_neighbour *out,
                           embla_near_report *report)
{
    EMBLA_TRY(embla_options_check(question));
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(table);
    EMBLA_NEED(question);
    EMBLA_NEED(out);
    embla_analogy_options asked = options ? *options : (embla_analogy_options){0};
    embla_arena arena = {0};
    reading q = {.table = table, .plus = question->plus_count};
    if (asked.k == 0) asked.k = EMBLA_NEAR_DEFAULT;
    EMBLA_TRY(check(question, &asked));
    EMBLA_TRY(check_rows(table, question->plus, question->plus_count, "plus"));
    EMBLA_TRY(check_rows(table, question->minus, question->minus_count, "minus"));
    for (size_t i = 0; i < question->plus_count; i++) q.rows[q.count++] = question->plus[i];
    for (size_t i = 0; i < question->minus_count; i++) q.rows[q.count++] = question->minus[i];
    embla_status status = read_rows(&q, &arena);
    if (status == EMBLA_OK)
        status = asked.kind == EMBLA_ANALOGY_COS_MUL ? cos_mul(&q, &arena, &asked, out, report)
                                                     : cos_add(&q, &arena, &asked, out, report);
    embla_arena_free(&arena);
    return status;
}
