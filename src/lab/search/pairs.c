/* SPDX-License-Identifier: Apache-2.0 */
/* Scores an encoder on sentence pairs with scores of people. Lines have fields separated by tabs:
 *
 *   genre, file, year, id, score, sentence, sentence, ..   STS Benchmark; seven fields or more
 *   .., sentence, sentence, score                          GLUE
 *   score, sentence, sentence
 *
 * The first of these that has a number in the right field is used.
 */
#include <string.h>

#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "search/corpus_lines.h"
#include "see/eval.h"

enum { FIELDS_MOST = 64, BATCH_PAIRS = EMBLA_LINES_BATCH / 2 };

typedef struct {
    const char *text;
    size_t length;
} field;

typedef struct {
    field sentences[2];
    double score;
} pair;

/* ---- lines ---- */

static size_t cut_fields(const char *line, size_t length, field out[FIELDS_MOST])
{
    size_t count = 0;
    for (size_t at = 0; at <= length && count < FIELDS_MOST;) {
        const char *tab = memchr(line + at, '\t', length - at);
        size_t end = tab ? (size_t)(tab - line) : length;
        out[count++] = (field){line + at, end - at};
        at = end + 1;
    }
    return count;
}

static bool read_number(const field *f, double *out)
{
    return f->length > 0 && embla_eval_score(f->text, f->length, out);
}

static bool read_pair(const char *line, size_t length, pair *out)
{
    field fields[FIELDS_MOST];
    size_t count = cut_fields(line, length, fields), first = 0;
    if (count >= 7 && read_number(&fields[4], &out->score))
        first = 5;
    else if (count >= 3 && read_number(&fields[count - 1], &out->score))
        first = count - 3;
    else if (count == 3 && read_number(&fields[0], &out->score))
        first = 1;
    else
        return false;
    out->sentences[0] = fields[first];
    out->sentences[1] = fields[first + 1];
    return true;
}

/* ---- scores ---- */

typedef struct {
    const char *path;
    embla_lines lines;
    const embla_eval_options *options;
    embla_line_batch *batch;
    double *cosines, *scores;
    double pending[BATCH_PAIRS]; /* scores of the pairs in the batch */
    int64_t asked;
    size_t covered;
} job;

/* Pairs in a batch are numbered 2n and 2n + 1; those of which one was dropped are left out. */
static embla_status finish_batch(job *j)
{
    embla_line_batch *b = j->batch;
    EMBLA_TRY(embla_line_batch_encode(b));
    for (size_t i = 0; i + 1 < b->count; i++) {
        if (b->numbers[i] % 2 != 0 || b->numbers[i + 1] != b->numbers[i] + 1) continue;
        const float *x = b->vectors + i * b->dim;
        j->cosines[j->covered] = embla_cosine(x, x + b->dim, b->dim);
        j->scores[j->covered++] = j->pending[b->numbers[i] / 2];
    }
    b->count = b->bytes = 0;
    return EMBLA_OK;
}

static embla_status add_pair(job *j, const pair *p)
{
    embla_line_batch *b = j->batch;
    int64_t number = (int64_t)b->count;
    bool full = false;
    j->pending[number / 2] = p->score;
    j->asked++;
    for (int s = 0; s < 2; s++)
        full = embla_line_batch_add(b, p->sentences[s].text, p->sentences[s].length, number + s);
    return full ? finish_batch(j) : EMBLA_OK;
}

static embla_status read_pairs(job *j)
{
    const embla_lines *lines = &j->lines;
    int64_t number = 0;
    for (size_t at = 0; at < lines->size;) {
        const char *line = lines->bytes + at;
        size_t length = embla_lines_next(lines, &at);
        pair p;
        number++;
        if (length == 0) continue;
        if (read_pair(line, length, &p))
            EMBLA_TRY(add_pair(j, &p));
        else if (number > 1)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: line %" PRId64 " has no score and two sentences, separated "
                              "by tabs",
                              j->path, number);
        EMBLA_TRY(embla_progress_report(j->options->progress, j->options->context, "pairs",
                                        (int64_t)at, (int64_t)lines->size));
    }
    EMBLA_TRY(finish_batch(j));
    if (j->asked > 0) return embla_map_check(lines->map);
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s: none of its %" PRId64 " lines has a score and two sentences",
                      j->path, number);
}

static embla_status score(job *j, embla_eval_part *out)
{
    const size_t most = (size_t)embla_lines_count(&j->lines);
    const size_t each = 4 * sizeof(double) + sizeof(embla_scored);
    void *memory = NULL;
    EMBLA_TRY(embla_mem_many(most, each, "pairs", &memory));
    j->cosines = memory;
    j->scores = j->cosines + most;
    double *ranks = j->scores + most, *other_ranks = ranks + most;
    embla_scored *sorted = (embla_scored *)(void *)(other_ranks + most);
    embla_status status = read_pairs(j);
    if (status == EMBLA_OK) {
        const size_t n = j->covered;
        embla_ranks_of(j->cosines, n, sorted, ranks);
        embla_ranks_of(j->scores, n, sorted, other_ranks);
        *out = (embla_eval_part){.name = j->path,
                                 .asked = j->asked,
                                 .covered = (int64_t)n,
                                 .spearman = embla_correlation(ranks, other_ranks, n),
                                 .pearson = embla_correlation(j->cosines, j->scores, n)};
    }
    embla_mem_free(memory, most * each);
    return status;
}

embla_status embla_eval_sentences(const embla_encoder *encoder, const char *path,
                                  const embla_eval_options *options, embla_eval_part *out)
{
    const embla_eval_options defaults = {0};
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(encoder);
    EMBLA_NEED(path);
    EMBLA_NEED(out);
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(job), "pairs", &memory));
    job *j = memory;
    j->path = path;
    j->options = options ? options : &defaults;
    embla_status status = embla_lines_open(path, &j->lines);
    if (status == EMBLA_OK)
        status =
            embla_line_batch_new(encoder, j->options->threads, EMBLA_NORMALIZE_MODEL, &j->batch);
    if (status == EMBLA_OK) status = score(j, out);
    embla_line_batch_free(j->batch);
    embla_lines_free(&j->lines);
    embla_mem_free(j, sizeof *j);
    return status;
}
