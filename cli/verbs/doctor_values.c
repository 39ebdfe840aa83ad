/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `embla doctor` that read rows: tied head, equal copies, NaN and infinities, rows
 * of zeros. All rows are read, a few megabytes at a time.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/progress.h"
#include "core/tie_text.h"
#include "verbs/doctor.h"

enum { PIECE = 4 << 20 };

/* ---- tied ---- */

static void check_tie(cli_doctor *d)
{
    embla_tie tie;
    embla_tensor head = {0};
    size_t n = 0;
    if (d->model.no_matrix) return; /* reported by check_table */
    char text[CLI_SENTENCE], bytes[CLI_CELL], rows[CLI_CELL];
    if (embla_checkpoint_tie(d->model.checkpoint, 0, &tie) != EMBLA_OK) {
        if (!d->model.has_table) return; /* reported by check_table */
        cli_found(d, CLI_ERROR, "tied", "choose the tensor with FILE::TENSOR", "%s", embla_error());
        return;
    }
    (void)cli_tie_text(&tie, text);
    bool has_head = cli_doctor_next(d, EMBLA_ROLE_HEAD, &n, &head);
    if (tie.conflict)
        cli_found(d, CLI_ERROR, "tied",
                  "set the flag to false: some loaders keep both tensors, others drop the head",
                  "%s; the largest difference in %s is %.6g", text,
                  cli_plural(tie.rows_compared, "row", rows), tie.difference);
    else if (tie.kind == EMBLA_TIE_STORED_TWICE)
        cli_found(d, CLI_WARNING, "tied",
                  "set tie_word_embeddings to true and remove the head (a GGUF needs no flag)",
                  "%s; storing it once would save %s bytes", text,
                  cli_commas(has_head ? head.bytes : 0, bytes));
    else if (tie.kind == EMBLA_TIE_HEAD_MISSING && strcmp(tie.flag, "not set") == 0)
        cli_found(d, CLI_WARNING, "tied",
                  "put the model's config.json beside the file: it says whether the model has its "
                  "own head",
                  "there is no head, and neither a flag nor a known architecture says whether the "
                  "model has one (case %s)",
                  tie.rule);
    else if (tie.kind == EMBLA_TIE_HEAD_MISSING)
        cli_found(d, CLI_ERROR, "tied",
                  "find the file with the head, or set tie_word_embeddings to true if the model "
                  "was trained so",
                  "%s", text);
    else if (tie.kind == EMBLA_TIE_NO_TABLE && has_head)
        cli_found(d, CLI_ERROR, "tied",
                  "set tie_word_embeddings to true if the head is also the table",
                  "there is a head but no table, and no flag says that the head is the table");
    else if (tie.kind != EMBLA_TIE_NO_TABLE)
        cli_found(d, CLI_FINE, "tied", NULL, "%s", text);
}

/* ---- copies ---- */

/* Compares the bytes of a and b: 1 means equal, 0 different, -1 a read error. */
static int compare_bytes(cli_doctor *d, const embla_tensor *a, const embla_tensor *b, char *space)
{
    for (int64_t at = 0; at < a->bytes; at += PIECE) {
        size_t bytes = (size_t)(a->bytes - at < PIECE ? a->bytes - at : PIECE);
        if (embla_checkpoint_read(d->model.checkpoint, a->name, at, bytes, space) != EMBLA_OK ||
            embla_checkpoint_read(d->model.checkpoint, b->name, at, bytes, space + PIECE) !=
                EMBLA_OK)
            return -1;
        if (memcmp(space, space + PIECE, bytes) != 0) return 0;
    }
    return 1;
}

static void check_copy(cli_doctor *d, const embla_tensor *of, const embla_tensor *copy, char *space)
{
    char a[CLI_CELL], b[CLI_CELL];
    bool alike = strcmp(of->type, copy->type) == 0 && of->bytes == copy->bytes;
    int equal = alike ? compare_bytes(d, of, copy, space) : 0;
    if (equal < 0)
        cli_found(d, CLI_ERROR, "copies",
                  "repair or download the file again: it cannot be read to its end", "%s",
                  embla_error());
    else if (!alike)
        cli_found(d, CLI_WARNING, "copies", "change a table and its copies together",
                  "%.128s is %s, %s, but %.128s is %s, %s", copy->name, cli_shape_text(copy, a),
                  copy->type, of->name, cli_shape_text(of, b), of->type);
    else
        cli_found(d, equal ? CLI_FINE : CLI_WARNING, "copies",
                  equal ? NULL : "change a table and its copies together", "%.128s %s %.128s",
                  copy->name, equal ? "equals" : "differs from", of->name);
}

static void check_copies(cli_doctor *d)
{
    static const embla_role roles[][2] = {{EMBLA_ROLE_TOKENS, EMBLA_ROLE_TOKENS_COPY},
                                          {EMBLA_ROLE_HEAD, EMBLA_ROLE_HEAD_COPY}};
    char *space = malloc(2 * PIECE);
    for (size_t i = 0; i < 2 && space; i++) {
        embla_tensor of, copy;
        size_t n = 0;
        if (embla_checkpoint_role(d->model.checkpoint, roles[i][0], &of, NULL) != EMBLA_OK)
            continue;
        while (cli_doctor_next(d, roles[i][1], &n, &copy)) check_copy(d, &of, &copy, space);
    }
    d->no_memory = d->no_memory || !space;
    free(space);
}

/* ---- numbers ---- */

typedef struct {
    int64_t not_finite, first_not_finite; /* rows with a NaN or an infinity */
    int64_t zero, first_zero;             /* rows of zeros */
    int64_t zero_padding;                 /* rows of zeros without a token; not counted in zero */
} tally;

static void count_row(tally *t, const float *values, size_t dim, int64_t row, int64_t tokens)
{
    bool finite = true, zero = true;
    for (size_t k = 0; k < dim; k++) {
        finite = finite && isfinite(values[k]);
        zero = zero && values[k] == 0.0f;
    }
    if (!finite && t->not_finite++ == 0) t->first_not_finite = row;
    if (zero && row >= tokens) t->zero_padding++;
    if (zero && row < tokens && t->zero++ == 0) t->first_zero = row;
}

/* False after an error (see embla_error) or an interrupt. */
static bool count_rows(cli_doctor *d, const embla_table *table, int64_t tokens, tally *t)
{
    int64_t rows = embla_table_rows(table);
    size_t dim = embla_table_dim(table), most = PIECE / (dim * sizeof(float));
    const embla_lookup_options options = {.threads = d->threads};
    cli_progress progress;
    bool good = true;
    if (most == 0) most = 1;
    float *values = malloc(most * dim * sizeof *values);
    int64_t *numbers = malloc(most * sizeof *numbers);
    d->no_memory = d->no_memory || !values || !numbers;
    cli_progress_begin(&progress, d->quiet);
    for (int64_t at = 0; at < rows && good && values && numbers; at += (int64_t)most) {
        size_t count = rows - at < (int64_t)most ? (size_t)(rows - at) : most;
        for (size_t i = 0; i < count; i++) numbers[i] = at + (int64_t)i;
        good = embla_lookup_rows(table, numbers, count, &options, values) == EMBLA_OK;
        for (size_t i = 0; i < count && good; i++)
            count_row(t, values + i * dim, dim, numbers[i], tokens);
        good = good && cli_progress_step(&progress, "reading",
                                         (at + (int64_t)count) * (int64_t)(dim * sizeof *values),
                                         rows * (int64_t)(dim * sizeof *values));
    }
    free(numbers);
    free(values);
    cli_progress_end(&progress, "interrupted");
    return good;
}

static void report_numbers(cli_doctor *d, const embla_tensor *tensor, const tally *t)
{
    char a[CLI_CELL], b[CLI_CELL], word[640];
    bool tokens = tensor->role == EMBLA_ROLE_TOKENS || tensor->role == EMBLA_ROLE_HEAD;
    if (t->not_finite > 0)
        cli_found(d, CLI_ERROR, "numbers",
                  "such a row makes every sum with it NaN or infinite: restore it from an earlier "
                  "checkpoint",
                  "%.128s: a NaN or an infinity in %s, the first is %s", tensor->name,
                  cli_plural(t->not_finite, "row", a),
                  tokens ? cli_doctor_tokens(d, t->first_not_finite, 1, word)
                         : cli_commas(t->first_not_finite, b));
    if (t->zero > 1)
        cli_found(
            d, CLI_WARNING, "zeros",
            "these are often tokens that were never trained: exclude them from statistics",
            "%.128s: all zero in %s, the first is %s", tensor->name, cli_plural(t->zero, "row", a),
            tokens ? cli_doctor_tokens(d, t->first_zero, 1, word) : cli_commas(t->first_zero, b));
    else if (t->zero + t->zero_padding > 0)
        cli_found(d, CLI_FINE, "zeros", NULL, "%.128s: all zero in %s%s", tensor->name,
                  cli_plural(t->zero + t->zero_padding, "row", a),
                  t->zero == 0 ? ", of padding" : "");
    if (t->not_finite == 0)
        cli_found(d, CLI_FINE, "numbers", NULL, "%.128s: all are finite", tensor->name);
}

static void check_numbers(cli_doctor *d, const embla_tensor *tensor)
{
    const embla_table_options by_row = {.by_row = true}; /* check_mapping checks the mapping */
    embla_table *table = NULL;
    tally t = {0};
    bool of_tokens = tensor->role != EMBLA_ROLE_POSITIONS;
    int64_t end = cli_model_tokens_end(&d->model);
    int64_t tokens = of_tokens && end >= 0 && !d->model.facts.mapping ? end : INT64_MAX;
    if (tensor->rank > 2 && d->model.no_matrix) return; /* reported by check_table */
    if (tensor->dtype == 0) {
        cli_found(d, CLI_WARNING, "type", "convert it with the tool that wrote it",
                  "%.128s is stored as %s, which is unsupported: its rows were not checked",
                  tensor->name, tensor->type);
        return;
    }
    if (embla_table_open(d->model.checkpoint, tensor->name, &by_row, &table) == EMBLA_OK &&
        count_rows(d, table, tokens, &t))
        report_numbers(d, tensor, &t);
    else
        cli_found(d, CLI_ERROR, "numbers",
                  "make sure that the file is complete: its rows cannot be read", "%s",
                  embla_error());
    embla_table_free(table);
}

/* The library checks a mapping when it opens the table. */
static void check_mapping(cli_doctor *d)
{
    embla_table *table = NULL;
    if (d->model.facts.mapping &&
        embla_table_open(d->model.checkpoint, NULL, NULL, &table) == EMBLA_ERR_FORMAT)
        cli_found(d, CLI_ERROR, "mapping", "store the mapping of this table as I32 or I64", "%s",
                  embla_error());
    embla_table_free(table);
}

void cli_doctor_values(cli_doctor *d)
{
    static const embla_role roles[] = {EMBLA_ROLE_TOKENS, EMBLA_ROLE_HEAD, EMBLA_ROLE_PER_LAYER,
                                       EMBLA_ROLE_POSITIONS};
    check_tie(d);
    check_copies(d);
    check_mapping(d);
    for (size_t i = 0; i < sizeof roles / sizeof roles[0]; i++) {
        embla_tensor tensor = {0};
        size_t n = 0;
        while (cli_doctor_next(d, roles[i], &n, &tensor)) check_numbers(d, &tensor);
    }
}
