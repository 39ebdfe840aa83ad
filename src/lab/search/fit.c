/* SPDX-License-Identifier: Apache-2.0 */
/* Fits weights and common components to a corpus. The components are the eigenvectors of the
 * largest eigenvalues of the sum of x times its transpose, over the vectors x of a sample of lines;
 * the mean is not subtracted, so the first component is mostly the mean itself.
 *
 * encoder/encoder_fit.c has the format of the file, and reads it.
 */
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/json_text.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"
#include "checkpoint/saved.h"
#include "encoder/encoder.h"
#include "engine/engine.h"
#include "engine/gram.h"
#include "search/corpus_lines.h"
#include "search/weights.h"
#include "table/access.h"

enum { COMPONENTS_UNASKED = 10, LINES_UNASKED = 200000, PAIRS = 6 };

typedef struct {
    embla_fit_options options; /* with the defaults filled in */
    embla_encoder encoder;     /* the caller's, with the new weights */
    embla_arena arena;
    float *weights; /* tokens; NULL means none */
    double *wide;   /* the same, as an encoder has them */
    size_t tokens;
    embla_table *table; /* the vectors of the sample */
    float *components;
    char model[EMBLA_SUM_TEXT];
    embla_fit_report report;
} job;

/* ---- weights ---- */

static embla_status make_weights(job *j)
{
    j->report.weights = "none";
    if (j->options.a <= 0) return EMBLA_OK;
    j->tokens = j->encoder.tokenizer->token_end;
    EMBLA_TRY(embla_arena_many(&j->arena, j->tokens, sizeof(float), "weights", &j->weights));
    EMBLA_TRY(embla_arena_many(&j->arena, j->tokens, sizeof(double), "weights", &j->wide));
    EMBLA_TRY(embla_sif_weights(&j->encoder, j->options.a, j->options.counts, j->tokens, j->weights,
                                &j->report.weights));
    for (size_t i = 0; i < j->tokens; i++) j->wide[i] = (double)j->weights[i];
    j->encoder.weights = j->wide;
    j->encoder.weight_count = j->tokens;
    j->report.a = j->options.a;
    return EMBLA_OK;
}

/* ---- vectors of a sample of lines ---- */

static embla_status finish_batch(job *j, embla_line_batch *b)
{
    EMBLA_TRY(embla_line_batch_encode(b));
    EMBLA_TRY(embla_table_write(j->table, j->report.used, b->count, b->vectors));
    j->report.used += (int64_t)b->count;
    for (size_t i = 0; i < b->count; i++) {
        j->report.tokens += (int64_t)b->details[i].tokens;
        j->report.unknown += (int64_t)b->details[i].unknown;
    }
    b->count = b->bytes = 0;
    return EMBLA_OK;
}

/* Encodes `wanted` of `all` lines, evenly spread. */
static embla_status encode_lines(job *j, const embla_lines *lines, embla_line_batch *b)
{
    const int64_t all = j->report.lines;
    const int64_t wanted = j->options.lines < all ? j->options.lines : all;
    int64_t n = 0, due = 0;
    for (size_t at = 0; at < lines->size; n++) {
        const char *line = lines->bytes + at;
        size_t length = embla_lines_next(lines, &at);
        due += wanted;
        if (due < all) continue;
        due -= all;
        if (!embla_line_batch_add(b, line, length, n)) continue;
        EMBLA_TRY(finish_batch(j, b));
        EMBLA_TRY(embla_progress_report(j->options.progress, j->options.context, "encode",
                                        (int64_t)at, (int64_t)lines->size));
    }
    return finish_batch(j, b);
}

static embla_status encode_sample(job *j, const char *corpus)
{
    embla_lines lines;
    embla_line_batch *b = NULL;
    EMBLA_TRY(embla_lines_open(corpus, &lines));
    j->report.lines = embla_lines_count(&lines);
    int64_t rows = j->report.lines < j->options.lines ? j->report.lines : j->options.lines;
    embla_status status =
        embla_line_batch_new(&j->encoder, j->options.threads, EMBLA_NORMALIZE_NO, &b);
    if (status == EMBLA_OK) status = embla_table_new(EMBLA_F32, rows + 1, b->dim, NULL, &j->table);
    if (status == EMBLA_OK) status = encode_lines(j, &lines, b);
    if (status == EMBLA_OK) status = embla_map_check(lines.map);
    embla_line_batch_free(b);
    embla_lines_free(&lines);
    EMBLA_TRY(status);
    if (j->report.used > 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.200s: none of its %" PRId64 " lines has a token of the model", corpus,
                      j->report.lines);
}

/* ---- components ---- */

/* Writes a component with the sign that makes its largest number positive. */
static void copy_component(const double *from, size_t dim, float *out)
{
    size_t largest = 0;
    for (size_t i = 1; i < dim; i++)
        if (fabs(from[i]) > fabs(from[largest])) largest = i;
    for (size_t i = 0; i < dim; i++) out[i] = (float)(from[largest] < 0 ? -from[i] : from[i]);
}

static embla_status find_components(job *j, const embla_gram *gram, size_t wanted)
{
    const size_t dim = gram->dim;
    double *values = NULL, *vectors = NULL, all = 0, in = 0;
    EMBLA_TRY(embla_arena_many(&j->arena, dim, sizeof *values, "eigenvalues", &values));
    EMBLA_TRY(embla_arena_many(&j->arena, wanted * dim, sizeof *vectors, "vectors", &vectors));
    EMBLA_TRY(embla_arena_many(&j->arena, wanted * dim, sizeof(float), "vectors", &j->components));
    for (size_t i = 0; i < dim; i++) all += gram->matrix[i * dim + i];
    EMBLA_TRY(embla_engine_eigen(gram->matrix, dim, wanted, values, vectors));
    size_t found = 0;
    while (found < wanted && values[dim - 1 - found] > gram->noise &&
           values[dim - 1 - found] > values[dim - 1] * 0x1p-40) {
        copy_component(vectors + (wanted - 1 - found) * dim, dim, j->components + found * dim);
        in += values[dim - 1 - found];
        found++;
    }
    j->report.components = found;
    j->report.share = all > 0 ? in / all : 0.0;
    return EMBLA_OK;
}

static embla_status make_components(job *j)
{
    embla_gram gram;
    size_t dim = embla_table_dim(j->table), wanted = (size_t)j->options.components;
    if (j->options.components <= 0 || dim < 2) return EMBLA_OK;
    if (wanted > dim - 1) wanted = dim - 1; /* something must be left */
    embla_table_shrink(j->table, j->report.used);
    EMBLA_TRY(embla_gram_of(j->table, &(embla_gram_options){.threads = j->options.threads}, &gram));
    embla_status status = EMBLA_OK;
    if (gram.nonfinite > 0)
        status = embla_fail(EMBLA_ERR_FORMAT,
                            "%" PRId64 " of %" PRId64 " lines have a vector with a NaN or an "
                            "infinity: rows of the model are not finite",
                            gram.nonfinite, j->report.used);
    if (status == EMBLA_OK) status = find_components(j, &gram, wanted);
    embla_gram_free(&gram);
    return status;
}

/* ---- the file ---- */

static embla_status write_fit(job *j, const char *path)
{
    embla_saved saved = {0};
    char a[EMBLA_JSON_DIGITS], lines[32];
    embla_pair pairs[PAIRS + 1] = {
        {"format", "embla.fit"},        {"version", "1"}, {"model", j->model},
        {"weights", j->report.weights}, {"a", a},         {"lines", lines}};
    embla_json_digits(j->report.a, 9, a);
    (void)snprintf(lines, sizeof lines, "%" PRId64, j->report.used);
    embla_status status = embla_saved_begin(&saved, 2);
    if (status == EMBLA_OK && j->report.components > 0)
        status = embla_saved_add(&saved, "components", EMBLA_F32, (int64_t)j->report.components,
                                 embla_table_dim(j->table), j->components);
    if (status == EMBLA_OK && j->weights)
        status = embla_saved_add(&saved, "weights", EMBLA_F32, (int64_t)j->tokens, 1, j->weights);
    if (status == EMBLA_OK) status = embla_saved_write(&saved, pairs, PAIRS, path);
    embla_arena_free(&saved.arena);
    return status;
}

/* ---- the call ---- */

static embla_status check(const embla_encoder *encoder, const embla_fit_options *o)
{
    if (encoder->component_count > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the encoder already has a fit with %zu components; open it without",
                          encoder->component_count);
    if (o && !isfinite(o->a))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a is %g; it must be finite", o->a);
    if (o && o->lines < 0)
        return embla_fail(EMBLA_ERR_ARGUMENT, "lines is %" PRId64 "; it must be 0 or greater",
                          o->lines);
    return EMBLA_OK;
}

static void fill_defaults(job *j, const embla_fit_options *o)
{
    if (o) j->options = *o;
    if (j->options.a == 0 && (j->encoder.compat == EMBLA_COMPAT_WORDS || j->options.counts))
        j->options.a = 1e-3;
    if (j->options.components == 0) j->options.components = COMPONENTS_UNASKED;
    if (j->options.lines == 0) j->options.lines = LINES_UNASKED;
}

embla_status embla_fit(const embla_encoder *encoder, const char *corpus, const char *path,
                       const embla_fit_options *options, embla_fit_report *report)
{
    embla_checksum sum;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(encoder);
    EMBLA_NEED(corpus);
    EMBLA_NEED(path);
    EMBLA_TRY(check(encoder, options));
    job j = {.encoder = *encoder};
    fill_defaults(&j, options);
    EMBLA_TRY(embla_encoder_checksum(encoder, &sum));
    embla_sum_text(sum, j.model);
    embla_status status = make_weights(&j);
    if (status == EMBLA_OK) status = encode_sample(&j, corpus);
    if (status == EMBLA_OK) status = make_components(&j);
    if (status == EMBLA_OK) status = write_fit(&j, path);
    if (status == EMBLA_OK && report) *report = j.report;
    embla_table_free(j.table);
    embla_arena_free(&j.arena);
    return status;
}
