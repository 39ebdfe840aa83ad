/* SPDX-License-Identifier: Apache-2.0 */
/* Scores a table with questions that people have answered. Every word is looked up once. Questions
 * go to embla_near in blocks of some thousand, so the table is read only a few times and memory
 * does not grow with the file. Correlations are sums in double, in order.
 *
 * A word without a row, or whose row has a NaN or an infinity, excludes its questions. These are
 * counted and can be listed: two scores are comparable only if they cover the same questions.
 */
#include <math.h>
#include <string.h>

#include "base/best.h"
#include "base/checked.h"
#include "base/finite.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "base/utf8.h"
#include "embla_lab.h"
#include "see/eval.h"
#include "table/access.h"
#include "unicode/unicode.h"

enum {
    ROWS_AT_ONCE = 192,    /* rows looked up together; a multiple of 2 and of 3 */
    BLOCK_LEAST = 256,     /* minimum queries of one search */
    BLOCK_MOST = 4096,     /* maximum queries of one search */
    BLOCK_BYTES = 16 << 20 /* approximate bytes of the queries of one search */
};
#define BLOCK_PRODUCTS                                                                             \
    5e10 /* multiply-adds of one search: few enough that progress is reported often */

struct embla_eval {
    embla_eval_file file; /* its arena owns names and lists */
    embla_eval_part *parts;
    size_t count;
    embla_eval_missing *missing;
    size_t missing_count;
};

typedef struct {
    const embla_table *table;
    const embla_vocab *vocab;
    embla_eval_options options;
    int64_t rows; /* rows that are searched */
    size_t dim;
    embla_eval *eval;
    embla_eval_file *file; /* the eval's */
    int64_t *row_of;       /* row of each word of the file; -1 means none */
    float *space;          /* room for ROWS_AT_ONCE rows */
    size_t space_bytes;
} job;

/* ---- words to rows ---- */

static void to_lower(char *text, size_t length)
{
    for (size_t i = 0, bytes; i < length; i += bytes) {
        const uint8_t *p = (const uint8_t *)text + i;
        bytes = embla_utf8_length(p, length - i); /* the reader has checked that it is UTF-8 */
        if (bytes == 0) return;
        (void)embla_utf8_encode(embla_char_lower_in_place(embla_utf8_code(p, bytes)), text + i);
    }
}

/* *row stays -1 if no searched row has this spelling. */
static embla_status find_spelling(const job *j, const char *word, size_t length, int64_t *row)
{
    int32_t token = -1;
    if (*row >= 0) return EMBLA_OK;
    embla_status status = embla_vocab_find(j->vocab, word, length, &token);
    if (status == EMBLA_OK && token < j->rows) *row = token;
    return status == EMBLA_ERR_NOT_FOUND ? EMBLA_OK : status;
}

/* Finds the row of a word. space has room for a blank and the word. In vocabularies that mark the
 * beginning of a word, "dog" is the end of a longer word and " dog" is the word. */
static embla_status find_word(const job *j, const embla_name *word, char *space, int64_t *row)
{
    *row = -1;
    space[0] = ' ';
    memcpy(space + 1, word->bytes, word->length);
    for (int lower = 0; lower < (j->options.exact_case ? 1 : 2); lower++) {
        if (lower) to_lower(space + 1, word->length);
        EMBLA_TRY(find_spelling(j, space, word->length + (size_t)1, row));
        EMBLA_TRY(find_spelling(j, space + 1, word->length, row));
    }
    return EMBLA_OK;
}

static embla_status look_up(const job *j, const int64_t *rows, size_t count)
{
    embla_lookup_options options = {.threads = j->options.threads};
    return embla_lookup_rows(j->table, rows, count, &options, j->space);
}

/* Words whose rows are not finite get no row. */
static embla_status leave_out_nonfinite(job *j)
{
    int64_t rows[ROWS_AT_ONCE];
    size_t words[ROWS_AT_ONCE], used = 0;
    for (size_t w = 0; w < j->file->word_count; w++) {
        if (j->row_of[w] >= 0) {
            rows[used] = j->row_of[w];
            words[used++] = w;
        }
        if (used < ROWS_AT_ONCE && w + 1 < j->file->word_count) continue;
        EMBLA_TRY(look_up(j, rows, used));
        for (size_t i = 0; i < used; i++)
            if (!embla_all_finite(j->space + i * j->dim, j->dim)) j->row_of[words[i]] = -1;
        used = 0;
    }
    return EMBLA_OK;
}

static embla_status find_words(job *j)
{
    void *memory = NULL;
    size_t longest = 0;
    for (size_t w = 0; w < j->file->word_count; w++)
        if (j->file->words[w].length > longest) longest = j->file->words[w].length;
    EMBLA_TRY(embla_arena_many(&j->file->arena, j->file->word_count, sizeof *j->row_of,
                               "rows of words", &j->row_of));
    EMBLA_TRY(embla_mem_new(longest + 1, "a word", &memory));
    embla_status status = EMBLA_OK;
    for (size_t w = 0; w < j->file->word_count && status == EMBLA_OK; w++)
        status = find_word(j, &j->file->words[w], memory, &j->row_of[w]);
    embla_mem_free(memory, longest + 1);
    return status == EMBLA_OK ? leave_out_nonfinite(j) : status;
}

/* Whether all words of a question have rows. */
static bool covered(const job *j, size_t question)
{
    const uint32_t *words = j->file->items + question * (size_t)j->file->kind;
    for (size_t i = 0; i < (size_t)j->file->kind; i++)
        if (j->row_of[words[i]] < 0) return false;
    return true;
}

static int64_t row_at(const job *j, size_t question, size_t i)
{
    return j->row_of[j->file->items[question * (size_t)j->file->kind + i]];
}

static embla_status report_progress(const job *j, const char *what, size_t done)
{
    return embla_progress_report(j->options.progress, j->options.context, what, (int64_t)done,
                                 (int64_t)j->file->count);
}

/* Lists the words without a row, the most frequent first. */
static embla_status list_missing(job *j)
{
    embla_eval *e = j->eval;
    void *memory = NULL;
    size_t count = 0;
    for (size_t w = 0; w < j->file->word_count; w++) count += j->row_of[w] < 0;
    if (count == 0) return EMBLA_OK;
    embla_eval_missing *missing = NULL;
    EMBLA_TRY(embla_arena_many(&j->file->arena, count, sizeof *missing, "missing words", &missing));
    EMBLA_TRY(embla_mem_new(count * sizeof(embla_scored), "missing words", &memory));
    embla_best list = {.items = memory, .room = count};
    for (size_t w = 0; w < j->file->word_count; w++)
        if (j->row_of[w] < 0)
            embla_best_add(&list, (embla_scored){(int64_t)w, (double)j->file->words[w].number});
    embla_best_sort(&list);
    for (size_t i = 0; i < count; i++) {
        const embla_name *word = &j->file->words[list.items[i].row];
        missing[i] = (embla_eval_missing){.word = word->bytes, .times = word->number};
    }
    embla_mem_free(memory, count * sizeof(embla_scored));
    e->missing = missing;
    e->missing_count = count;
    return EMBLA_OK;
}

/* ---- analogies ---- */

/* Questions that are searched together. */
typedef struct {
    size_t room, count;
    size_t *questions;
    float *queries;   /* room x dim */
    int64_t *exclude; /* room x 3 */
    embla_neighbour *answers;
    void *memory;
    size_t bytes;
} block;

static size_t block_room(const job *j)
{
    double products = (double)j->rows * (double)j->dim;
    double room = BLOCK_PRODUCTS / products;
    size_t most = BLOCK_BYTES / sizeof(float) / j->dim;
    size_t count = room > BLOCK_MOST ? BLOCK_MOST : room < BLOCK_LEAST ? BLOCK_LEAST : (size_t)room;
    if (count > most) count = most > 0 ? most : 1;
    return count < j->file->count ? count : j->file->count;
}

static embla_status block_new(const job *j, block *b)
{
    size_t room = block_room(j), query = (j->dim * sizeof(float) + 63) / 64 * 64;
    size_t each = query + 3 * sizeof(int64_t) + sizeof(embla_neighbour) + sizeof(size_t);
    uint64_t bytes;
    size_t size;
    if (!embla_mul_ok(room, each, &bytes) || !embla_size_ok(bytes, &size))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu questions of %zu numbers", room,
                          j->dim);
    EMBLA_TRY(embla_mem_new(size, "questions", &b->memory));
    b->bytes = size;
    b->room = room;
    b->queries = b->memory; /* the floats come first; the rest begins on a cache line */
    char *rest = (char *)b->memory + room * query;
    b->exclude = (int64_t *)(void *)rest;
    b->answers = (embla_neighbour *)(void *)(b->exclude + 3 * room);
    b->questions = (size_t *)(void *)(b->answers + room);
    return EMBLA_OK;
}

/* Makes the queries unit(b) - unit(a) + unit(c) of n questions of the block from first on. */
static embla_status make_queries(const job *j, block *b, size_t first, size_t n)
{
    EMBLA_TRY(look_up(j, b->exclude + 3 * first, 3 * n));
    for (size_t q = 0; q < n; q++) {
        const float *x[3];
        double norms[3];
        for (size_t i = 0; i < 3; i++) {
            x[i] = j->space + (3 * q + i) * j->dim;
            norms[i] = embla_norm(x[i], j->dim);
            if (norms[i] == 0) norms[i] = 1; /* a row of zeros stays zero */
        }
        float *query = b->queries + (first + q) * j->dim;
        for (size_t k = 0; k < j->dim; k++)
            query[k] = (float)((double)x[1][k] / norms[1] + (double)x[2][k] / norms[2] -
                               (double)x[0][k] / norms[0]);
    }
    return EMBLA_OK;
}

static embla_status answer_by_sum(const job *j, block *b)
{
    enum { STEP = ROWS_AT_ONCE / 3 };
    embla_near_options options = {.k = 1,
                                  .rows = j->rows,
                                  .exclude = b->exclude,
                                  .exclude_count = 3,
                                  .threads = j->options.threads};
    for (size_t q = 0; q < b->count; q++)
        for (size_t i = 0; i < 3; i++) b->exclude[3 * q + i] = row_at(j, b->questions[q], i);
    for (size_t q = 0; q < b->count; q += STEP)
        EMBLA_TRY(make_queries(j, b, q, b->count - q < STEP ? b->count - q : STEP));
    return embla_near(j->table, b->queries, b->count, &options, b->answers, NULL);
}

static embla_status answer_by_product(const job *j, size_t question, embla_neighbour *answer)
{
    int64_t plus[] = {row_at(j, question, 1), row_at(j, question, 2)};
    int64_t minus = row_at(j, question, 0);
    embla_analogy_question asked = {
        .plus = plus, .plus_count = 2, .minus = &minus, .minus_count = 1};
    embla_analogy_options options = {
        .k = 1, .rows = j->rows, .threads = j->options.threads, .kind = EMBLA_ANALOGY_COS_MUL};
    return embla_analogy(j->table, &asked, &options, answer, NULL);
}

static embla_status answer(const job *j, block *b)
{
    if (j->options.kind == EMBLA_ANALOGY_COS_ADD) return answer_by_sum(j, b);
    for (size_t q = 0; q < b->count; q++) {
        EMBLA_TRY(answer_by_product(j, b->questions[q], &b->answers[q]));
        EMBLA_TRY(report_progress(j, "questions", b->questions[q]));
    }
    return EMBLA_OK;
}

/* Counts the correct answers of a block. Its questions ascend, and so do their sections. */
static void count_correct(const job *j, const block *b, size_t *section)
{
    for (size_t q = 0; q < b->count; q++) {
        const embla_eval_section *s = j->file->sections;
        while (b->questions[q] >= s[*section].first + s[*section].count) ++*section;
        j->eval->parts[*section].covered++;
        j->eval->parts[*section].correct += b->answers[q].row == row_at(j, b->questions[q], 3);
    }
}

static embla_status score_analogies(job *j)
{
    block b = {0};
    size_t section = 0;
    for (size_t i = 0; i < j->eval->count; i++) {
        const embla_eval_section *s = &j->file->sections[i];
        j->eval->parts[i] = (embla_eval_part){.name = s->name,
                                              .syntactic = strncmp(s->name, "gram", 4) == 0,
                                              .asked = (int64_t)s->count,
                                              .spearman = NAN,
                                              .pearson = NAN};
    }
    EMBLA_TRY(block_new(j, &b));
    embla_status status = EMBLA_OK;
    for (size_t q = 0; q < j->file->count && status == EMBLA_OK; q++) {
        if (covered(j, q)) b.questions[b.count++] = q;
        if (b.count < b.room && q + 1 < j->file->count) continue;
        status = answer(j, &b);
        if (status == EMBLA_OK) {
            count_correct(j, &b, &section);
            status = report_progress(j, "questions", q + 1);
        }
        b.count = 0;
    }
    embla_mem_free(b.memory, b.bytes);
    return status;
}

/* ---- pairs ---- */

/* Divides by the largest magnitude, so that no square overflows, and subtracts the mean. Equal
 * values become exact zeros. */
static void centre(double *x, size_t n)
{
    double most = 0, sum = 0;
    for (size_t i = 0; i < n; i++)
        if (fabs(x[i]) > most) most = fabs(x[i]);
    for (size_t i = 0; i < n && most > 0; i++) sum += x[i] /= most;
    for (size_t i = 0; i < n; i++) x[i] -= sum / (double)n;
}

/* Pearson's correlation of n pairs; overwrites x and y. */
double embla_correlation(double *x, double *y, size_t n)
{
    double xy = 0, xx = 0, yy = 0;
    centre(x, n);
    centre(y, n);
    for (size_t i = 0; i < n; i++) {
        xy += x[i] * y[i];
        xx += x[i] * x[i];
        yy += y[i] * y[i];
    }
    if (xx == 0 || yy == 0) return NAN;
    double r = xy / (sqrt(xx) * sqrt(yy));
    return r > 1 ? 1 : r < -1 ? -1 : r;
}

/* The rank of each value, 1 for the smallest; equal values share the mean of their ranks. space
 * has room for n items. */
void embla_ranks_of(const double *x, size_t n, embla_scored *space, double *out)
{
    embla_best sorted = {.items = space, .room = n};
    for (size_t i = 0; i < n; i++) embla_best_add(&sorted, (embla_scored){(int64_t)i, -x[i]});
    embla_best_sort(&sorted);
    for (size_t i = 0, end; i < n; i = end) {
        for (end = i + 1; end < n && space[end].score == space[i].score;) end++;
        for (size_t k = i; k < end; k++) out[space[k].row] = (double)(i + 1 + end) / 2;
    }
}

/* Computes the cosines and scores of the covered pairs; *n is how many there are. */
static embla_status compare(const job *j, double *cosines, double *scores, size_t *n)
{
    int64_t rows[ROWS_AT_ONCE];
    size_t used = 0;
    for (size_t q = 0; q < j->file->count; q++) {
        if (covered(j, q)) {
            rows[used++] = row_at(j, q, 0);
            rows[used++] = row_at(j, q, 1);
            scores[*n + used / 2 - 1] = j->file->scores[q];
        }
        if (used < ROWS_AT_ONCE && q + 1 < j->file->count) continue;
        EMBLA_TRY(look_up(j, rows, used));
        for (size_t i = 0; i < used; i += 2, ++*n)
            cosines[*n] = embla_cosine(j->space + i * j->dim, j->space + (i + 1) * j->dim, j->dim);
        used = 0;
        EMBLA_TRY(report_progress(j, "pairs", q + 1));
    }
    return EMBLA_OK;
}

static embla_status score_pairs(job *j)
{
    size_t most = j->file->count, n = 0, each = 4 * sizeof(double) + sizeof(embla_scored);
    void *memory = NULL;
    embla_eval_part *part = j->eval->parts;
    EMBLA_TRY(embla_mem_new(most * each, "pairs", &memory)); /* no overflow: most is below 2^22 */
    double *cosines = memory, *scores = cosines + most;
    double *ranks = scores + most, *other_ranks = ranks + most;
    embla_scored *sorted = (embla_scored *)(void *)(other_ranks + most);
    embla_status status = compare(j, cosines, scores, &n);
    if (status == EMBLA_OK) {
        embla_ranks_of(cosines, n, sorted, ranks);
        embla_ranks_of(scores, n, sorted, other_ranks);
        part->covered = (int64_t)n;
        part->spearman = embla_correlation(ranks, other_ranks, n);
        part->pearson = embla_correlation(cosines, scores, n);
    }
    embla_mem_free(memory, most * each);
    return status;
}

/* ---- both ---- */

static embla_status new_parts(job *j, const char *path)
{
    embla_eval *e = j->eval;
    const char *name = NULL;
    size_t count = j->file->kind == EMBLA_EVAL_PAIRS ? 1 : j->file->section_count;
    EMBLA_TRY(embla_arena_text(&j->file->arena, path, strlen(path), &name));
    EMBLA_TRY(embla_arena_many(&j->file->arena, count, sizeof *e->parts, "scores", &e->parts));
    e->count = count;
    e->parts[0] = (embla_eval_part){.name = name, .asked = (int64_t)j->file->count};
    return EMBLA_OK;
}

static embla_status score(job *j, const char *path)
{
    void *memory = NULL;
    uint64_t bytes;
    if (!embla_mul_ok(j->dim * sizeof(float), ROWS_AT_ONCE, &bytes) ||
        !embla_size_ok(bytes, &j->space_bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %d rows of %zu numbers", ROWS_AT_ONCE,
                          j->dim);
    EMBLA_TRY(embla_mem_new(j->space_bytes, "rows", &memory));
    j->space = memory;
    EMBLA_TRY(new_parts(j, path));
    EMBLA_TRY(find_words(j));
    EMBLA_TRY(list_missing(j));
    return j->file->kind == EMBLA_EVAL_PAIRS ? score_pairs(j) : score_analogies(j);
}

static embla_status read_and_score(job *j, const char *path, embla_eval_kind kind)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(EMBLA_HERE, path, path, true, &map));
    embla_status status = embla_map_check_text(map);
    if (status == EMBLA_OK) status = embla_eval_read(map, kind, j->file);
    embla_map_free(map);
    if (status == EMBLA_OK) status = score(j, path);
    embla_mem_free(j->space, j->space_bytes);
    return status;
}

static embla_status check(const embla_table *table, const embla_eval_options *options)
{
    int64_t tokens = 0;
    if (embla_table_mapping(table, &tokens))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "%" PRId64 " tokens share the table's %" PRId64
                          " rows; an evaluation needs a row for each token",
                          tokens, embla_table_rows(table));
    if (!options) return EMBLA_OK;
    if (options->rows < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "rows is %" PRId64 "; it must be 0 or greater",
                          options->rows);
    if (options->kind != EMBLA_ANALOGY_COS_ADD && options->kind != EMBLA_ANALOGY_COS_MUL)
        return embla_fail(EMBLA_ERR_ARGUMENT, "unknown kind of analogy: %d", (int)options->kind);
    return EMBLA_OK;
}

static embla_status evaluate(const embla_table *table, const embla_vocab *vocab, const char *path,
                             const embla_eval_options *options, embla_eval_kind kind,
                             embla_eval **out)
{
    void *memory = NULL;
    EMBLA_TRY(check(table, options));
    EMBLA_TRY(embla_mem_new(sizeof(embla_eval), "scores", &memory));
    embla_eval *eval = memory;
    job j = {.table = table,
             .vocab = vocab,
             .options = options ? *options : (embla_eval_options){0},
             .rows = embla_table_rows(table),
             .dim = embla_table_dim(table),
             .eval = eval,
             .file = &eval->file};
    if (options && options->rows > 0 && options->rows < j.rows) j.rows = options->rows;
    embla_status status = read_and_score(&j, path, kind);
    if (status != EMBLA_OK) {
        embla_eval_free(eval);
        return status;
    }
    *out = eval;
    return EMBLA_OK;
}

embla_status embla_eval_new_analogies(const embla_table *table, const embla_vocab *vocab,
                                      const char *path, const embla_eval_options *options,
                                      embla_eval **out)
{
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(table);
    EMBLA_NEED(vocab);
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    return evaluate(table, vocab, path, options, EMBLA_EVAL_ANALOGIES, out);
}

embla_status embla_eval_new_pairs(const embla_table *table, const embla_vocab *vocab,
                                  const char *path, const embla_eval_options *options,
                                  embla_eval **out)
{
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(table);
    EMBLA_NEED(vocab);
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    return evaluate(table, vocab, path, options, EMBLA_EVAL_PAIRS, out);
}

void embla_eval_free(embla_eval *eval)
{
    if (!eval) return;
    embla_eval_file_free(&eval->file);
    embla_mem_free(eval, sizeof *eval);
}

const embla_eval_part *embla_eval_parts(const embla_eval *eval, size_t *count)
{
    *count = eval ? eval->count : 0;
    return eval ? eval->parts : NULL;
}

const embla_eval_missing *embla_eval_missing_words(const embla_eval *eval, size_t *count)
{
    *count = eval ? eval->missing_count : 0;
    return eval ? eval->missing : NULL;
}
