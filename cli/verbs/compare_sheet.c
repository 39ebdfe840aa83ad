/* SPDX-License-Identifier: Apache-2.0 */
/* The figures of embla compare, and its picture for a file. */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "draw/compared.h"
#include "host/paths.h"
#include "verbs/compare_job.h"

const char *const cli_compare_measures[CLI_COMPARE_MEASURES] = {"cosine", "dot", "angle",
                                                                "euclidean"};

/* ---- figures ---- */

cli_figures cli_compare_rows(const float *x, const float *y, size_t dim)
{
    cli_figures f = {.norms = {embla_norm(x, dim), embla_norm(y, dim)}};
    double sum = 0;
    for (size_t k = 0; k < dim; k++) {
        double difference = (double)x[k] - (double)y[k];
        sum += difference * difference;
    }
    bool directed = f.norms[0] > 0 && f.norms[1] > 0;
    f.values[CLI_COMPARE_COSINE] = directed ? embla_cosine(x, y, dim) : NAN;
    f.values[CLI_COMPARE_DOT] = embla_dot(x, y, dim);
    f.values[CLI_COMPARE_ANGLE] =
        directed ? acos(fmax(-1, fmin(1, f.values[CLI_COMPARE_COSINE]))) * 180 / acos(-1.0) : NAN;
    f.values[CLI_COMPARE_EUCLIDEAN] = sqrt(sum);
    return f;
}

cli_figures cli_compare_pair(const cli_compare_side *side, size_t a, size_t b)
{
    return cli_compare_rows(side->values + a * side->dim, side->values + b * side->dim, side->dim);
}

const char *cli_compare_number(double value, int measure, char text[CLI_CELL])
{
    double size = fabs(value);
    bool plain = measure == CLI_COMPARE_COSINE || size == 0 || (size >= 1e-3 && size < 1e5);
    if (isnan(value))
        snprintf(text, CLI_CELL, "-");
    else
        snprintf(text, CLI_CELL,
                 measure == CLI_COMPARE_ANGLE ? "%.1f"
                 : plain                      ? "%.4f"
                                              : "%.4g",
                 size < 5e-5 && plain ? 0.0 : value); /* no -0.0000 */
    return text;
}

/* ---- a picture for a file ---- */

/* Texts of a picture, and its numbers. */
typedef struct {
    char title[160], facts[256], about[1024];
    char words[CLI_COMPARED_MOST][CLI_WORD_TEXT];
    double norms[CLI_COMPARED_MOST];
    char norm_texts[CLI_COMPARED_MOST][CLI_CELL];
    double shades[CLI_COMPARED_MOST * CLI_COMPARED_MOST];
    char texts[CLI_COMPARED_MOST * CLI_COMPARED_MOST][CLI_CELL];
} sheet_words;

static void describe_rows(const cli_args *args, const cli_compare_job *j, sheet_words *w)
{
    const char *path = args->operands[0];
    char rows[CLI_CELL];
    for (size_t i = 0; i < j->count; i++) {
        (void)cli_token_show(&j->first.asked, j->first.tokens.ids[i], false, CLI_COMPARE_WORD,
                             w->words[i]);
        w->norms[i] = cli_compare_pair(&j->first, i, i).norms[0];
        (void)cli_compare_number(w->norms[i], CLI_COMPARE_DOT, w->norm_texts[i]);
    }
    const char *name = cli_path_title(path);
    (void)cli_commas(embla_table_rows(j->first.asked.table), rows);
    if (j->count == 2) {
        snprintf(w->title, sizeof w->title, "%.60s and %.60s as arrows", w->words[0], w->words[1]);
        snprintf(w->facts, sizeof w->facts,
                 "rows of %.100s, %s x %zu; the plane through both of them", name, rows,
                 j->first.dim);
    } else {
        snprintf(w->title, sizeof w->title, "How alike rows of %.100s are", name);
        snprintf(w->facts, sizeof w->facts, "%s of each pair; the table has %s x %zu numbers",
                 cli_compare_measures[j->measure], rows, j->first.dim);
    }
}

/* -1 to 1: cosines as they are, angles from 180 degrees to 0, others as parts of the largest. */
static double shade_of(double value, int measure, double largest)
{
    if (isnan(value)) return 0;
    if (measure == CLI_COMPARE_COSINE) return value;
    if (measure == CLI_COMPARE_ANGLE) return 1 - value / 90;
    return largest > 0 ? value / largest : 0;
}

static int draw_matrix(const cli_compare_job *j, cli_sheet_kind kind, sheet_words *w)
{
    double largest = 0;
    const size_t count = j->count;
    for (size_t at = 0; at < count * count; at++) {
        w->shades[at] = cli_compare_pair(&j->first, at / count, at % count).values[j->measure];
        (void)cli_compare_number(w->shades[at], j->measure, w->texts[at]);
        if (fabs(w->shades[at]) > largest) largest = fabs(w->shades[at]);
    }
    for (size_t at = 0; at < count * count; at++)
        w->shades[at] = shade_of(w->shades[at], j->measure, largest);
    snprintf(w->about, sizeof w->about,
             "A matrix of %zu rows with each other: %s. Orange cells are positive (angles below 90 "
             "degrees), blue ones negative. On the right the norm of each row.",
             count, cli_compare_measures[j->measure]);
    const cli_matrix matrix = {.title = w->title,
                               .facts = w->facts,
                               .about = w->about,
                               .count = count,
                               .words = w->words,
                               .norms = w->norms,
                               .norm_texts = w->norm_texts,
                               .shades = w->shades,
                               .texts = w->texts};
    return cli_matrix_print(kind, &matrix);
}

static int draw_pair(const cli_compare_job *j, cli_sheet_kind kind, sheet_words *w)
{
    const cli_figures f = cli_compare_pair(&j->first, 0, 1);
    char labels[2][CLI_WORD_TEXT + 16], texts[CLI_COMPARE_MEASURES][CLI_CELL + 16];
    for (int m = 0; m < CLI_COMPARE_MEASURES; m++) {
        char number[CLI_CELL];
        snprintf(texts[m], sizeof texts[m], "%s%s", cli_compare_number(f.values[m], m, number),
                 m == CLI_COMPARE_ANGLE && !isnan(f.values[m]) ? "\u00b0" : "");
    }
    for (size_t i = 0; i < 2; i++) snprintf(labels[i], sizeof labels[i], "norm of %s", w->words[i]);
    snprintf(w->about, sizeof w->about,
             "Two arrows with a common start: %.60s of length %s and %.60s of length %s, with an "
             "angle of %s between them. Cosine %s, dot product %s.",
             w->words[0], w->norm_texts[0], w->words[1], w->norm_texts[1], texts[CLI_COMPARE_ANGLE],
             texts[CLI_COMPARE_COSINE], texts[CLI_COMPARE_DOT]);
    const cli_pair pair = {
        .title = w->title,
        .facts = w->facts,
        .about = w->about,
        .words = {w->words[0], w->words[1]},
        .rows = {j->first.values, j->first.values + j->first.dim},
        .dim = j->first.dim,
        .norms = {f.norms[0], f.norms[1]},
        .angle = f.values[CLI_COMPARE_ANGLE],
        .dot = texts[CLI_COMPARE_DOT],
        .labels = {labels[0], labels[1], "dot product", "distance", "cosine", "angle"},
        .texts = {w->norm_texts[0], w->norm_texts[1], texts[CLI_COMPARE_DOT],
                  texts[CLI_COMPARE_EUCLIDEAN], texts[CLI_COMPARE_COSINE],
                  texts[CLI_COMPARE_ANGLE]},
        .line_count = 6};
    return cli_pair_print(kind, &pair);
}

int cli_compare_sheet(const cli_args *args, const cli_compare_job *j, cli_sheet_kind kind)
{
    sheet_words *w = calloc(1, sizeof *w);
    if (!w) return cli_failed("no memory for a picture of %zu rows", j->count);
    describe_rows(args, j, w);
    int code = j->count == 2 ? draw_pair(j, kind, w) : draw_matrix(j, kind, w);
    free(w);
    return code;
}
