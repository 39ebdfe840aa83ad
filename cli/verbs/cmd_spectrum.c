/* SPDX-License-Identifier: Apache-2.0 */
/* embla spectrum: shows how many directions a table uses: rank figures and a chart of the
 * singular values on a log scale; also as JSON or SVG.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>

#include "embla_lab.h"

#include "core/answers.h"
#include "core/verbs.h"
#include "draw/svg.h"

typedef struct {
    const cli_args *args;
    cli_asked asked;
    embla_spectrum_report report;
    double *s; /* singular values, largest first; sum.count of them */
    size_t top;
    bool centred, utf8;
} job;

static const char *engine_name(size_t n)
{
    static const char *const names[] = {"auto", "none"};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

static bool no_engine(const cli_args *args)
{
    return strcmp(cli_args_text(args, "engine"), "none") == 0;
}

static int set_up(job *j)
{
    const cli_args *args = j->args;
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code != CLI_DONE) return code;
    size_t dim = embla_table_dim(j->asked.table);
    int64_t top = cli_args_count(args, "top");
    embla_spectrum_options options = {.threads = (int)cli_args_count(args, "threads"),
                                      .centred = cli_args_flag(args, "centred"),
                                      .no_engine = no_engine(args)};
    j->centred = options.centred;
    j->utf8 = cli_utf8_wanted();
    j->s = malloc(dim * sizeof *j->s);
    if (!j->s) return cli_failed("no memory for %zu singular values", dim);
    if (embla_spectrum(j->asked.table, &options, j->s, &j->report) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    bool all = cli_args_flag(args, "json") && !cli_args_given(args, "top");
    j->top = all || (uint64_t)top > dim ? dim : (size_t)top;
    const char *warning = options.no_engine ? NULL : embla_engine_warning();
    if (warning && !cli_args_flag(args, "quiet")) cli_complain("note: %s", warning);
    return CLI_DONE;
}

/* The number of singular values that are not 0. */
static size_t count_positive(const job *j)
{
    size_t count = 0;
    while (count < j->report.count && j->s[count] > 0) count++;
    return count;
}

/* ---- the picture ---- */

enum { TALL = 8, WIDE = 60 }; /* lines, and columns at most */

/* The bottom of the log axis: one to four decades below the largest value. */
static double axis_bottom(const job *j)
{
    double largest = j->s[0], least = j->s[count_positive(j) - 1];
    if (least > largest / 10) return largest / 10;
    return least < largest / 10000 ? largest / 10000 : least * 0.9;
}

/* The block of one column, which shows the largest of its values between bottom and s[0]. */
static const char *block_at(const job *j, double bottom, size_t column, size_t columns, int line)
{
    double value = j->s[column * j->report.count / columns];
    double share = value > bottom ? log(value / bottom) / log(j->s[0] / bottom) : 0;
    return cli_out_block(share, TALL, line, j->utf8);
}

static void print_picture(const job *j)
{
    char cell[CLI_CELL];
    double bottom = axis_bottom(j);
    size_t room = (size_t)(cli_out_width() - CLI_LABEL);
    size_t wide = room < WIDE ? room : WIDE,
           columns = j->report.count < wide ? j->report.count : wide;
    for (int line = TALL - 1; line >= 0; line--) {
        size_t last = columns;
        cell[0] = '\0';
        if (line == TALL - 1) (void)snprintf(cell, sizeof cell, "%.4g", j->s[0]);
        if (line == TALL / 2) (void)snprintf(cell, sizeof cell, "%.4g", sqrt(j->s[0] * bottom));
        while (last > 0 && block_at(j, bottom, last - 1, columns, line)[0] == ' ') last--;
        printf("%*s %s", CLI_LABEL - 2, cell, j->utf8 ? "│" : "|");
        for (size_t i = 0; i < last; i++) fputs(block_at(j, bottom, i, columns, line), stdout);
        putchar('\n');
    }
    printf("%*.4g %s", CLI_LABEL - 2, bottom, j->utf8 ? "└" : "+");
    for (size_t i = 0; i < columns; i++) fputs(j->utf8 ? "─" : "-", stdout);
    printf("\n%*s1", CLI_LABEL, "");
    (void)cli_commas((int64_t)j->report.count, cell);
    if (j->report.count > 1) printf("%*s", columns > 6 ? (int)columns - 1 : 2, cell);
    putchar('\n');
}

/* ---- text ---- */

static void print_largest(const job *j)
{
    char text[900];
    size_t used = 0, i = 0;
    for (; i < j->top && used + 32 < sizeof text; i++)
        used += (size_t)snprintf(text + used, sizeof text - used, "%s%.5g", i ? " " : "", j->s[i]);
    if (i < j->top) (void)snprintf(text + used, sizeof text - used, " ..; --json prints all");
    if (j->top > 0) cli_out_fact("largest", "%s", text);
}

static void print_table(const job *j)
{
    const embla_tensor *tensor = &j->asked.model.table;
    char shape[CLI_CELL], rows[CLI_CELL], dim[CLI_CELL];
    cli_out_fact("table", "%s, %s, %s%s", tensor->name, cli_shape_text(tensor, shape), tensor->type,
                 j->centred ? ", mean row subtracted" : "");
    if (j->report.nonfinite > 0)
        cli_out_fact("left out", "%s with a NaN or an infinity",
                     cli_plural(j->report.nonfinite, "row", rows));
    int64_t most = j->centred && j->report.rows > 0 ? j->report.rows - 1 : j->report.rows;
    if (most < (int64_t)j->report.count)
        cli_out_fact("note", "%s can use at most %s of %s directions",
                     cli_plural(j->report.rows, "row", rows), cli_commas(most, shape),
                     cli_commas((int64_t)j->report.count, dim));
}

static void print_text(const job *j)
{
    const embla_spectrum_report *report = &j->report;
    char half[CLI_CELL], most[CLI_CELL], dim[CLI_CELL];
    print_table(j);
    if (count_positive(j) == 0) {
        cli_out_fact("directions", report->rows == 0 ? "none: no row is finite"
                                   : j->centred      ? "none: all rows are equal"
                                                     : "none: all numbers are zero");
        return;
    }
    (void)cli_commas((int64_t)report->count, dim);
    cli_out_fact("effective", "rank %.2f of %s, from the entropy of the singular values",
                 report->effective_rank, dim);
    cli_out_fact("participation", "%.2f of %s, from their squares, so large values count more",
                 report->participation, dim);
    cli_out_fact("stable rank", "%.2f, the sum of squares divided by the largest square",
                 report->stable_rank);
    cli_out_fact("50 %, 90 %", "of the sum of squares are in the first %s and %s of %s directions",
                 cli_commas(report->rank_50, half), cli_commas(report->rank_90, most), dim);
    if (!j->centred && report->rank_50 == 1 && report->count > 2 &&
        report->rows > (int64_t)report->count)
        cli_out_fact("", "-> one direction dominates; if it is the mean row, --centred removes it");
    print_largest(j);
    putchar('\n');
    print_picture(j);
}

/* ---- JSON ---- */

static void print_json(const job *j)
{
    const embla_spectrum_report *report = &j->report;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "checkpoint", j->args->operands[0]);
    cli_json_text(&json, "tensor", j->asked.model.table.name);
    cli_json_whole(&json, "rows", embla_table_rows(j->asked.table));
    cli_json_whole(&json, "dim", (int64_t)report->count);
    cli_json_whole(&json, "nonfinite", report->nonfinite);
    cli_json_bool(&json, "centred", j->centred);
    cli_json_real(&json, "effective_rank", report->effective_rank);
    cli_json_real(&json, "participation", report->participation);
    cli_json_real(&json, "stable_rank", report->stable_rank);
    cli_json_whole(&json, "directions_50", report->rank_50);
    cli_json_whole(&json, "directions_90", report->rank_90);
    cli_json_open(&json, "singular_values", '[');
    for (size_t i = 0; i < j->top; i++) cli_json_real(&json, NULL, j->s[i]);
    cli_json_close(&json, ']');
    cli_json_text(&json, "engine", no_engine(j->args) ? "none" : embla_engine_name());
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the chart ---- */

static void draw_marks(const cli_svg *svg, const job *j)
{
    struct {
        double at;
        const char *what;
    } marks[] = {{(double)j->report.rank_50, "50 % of squares"},
                 {(double)j->report.rank_90, "90 % of squares"},
                 {j->report.effective_rank, "effective rank"}};
    char text[CLI_CELL];
    for (size_t i = 1; i < 3; i++) /* from left to right */
        for (size_t k = i; k > 0 && marks[k].at < marks[k - 1].at; k--) {
            double at = marks[k].at;
            const char *what = marks[k].what;
            marks[k] = marks[k - 1];
            marks[k - 1].at = at;
            marks[k - 1].what = what;
        }
    for (int i = 0; i < 3; i++) {
        (void)snprintf(text, sizeof text, "%s: %.4g", marks[i].what, marks[i].at);
        cli_svg_mark(svg, marks[i].at, i, text);
    }
}

static int draw(const void *context)
{
    const job *j = context;
    char subtitle[256], shape[CLI_CELL];
    size_t count = count_positive(j);
    double *x = malloc((j->report.count + 1) * sizeof *x);
    if (!x) return cli_failed("no memory for %zu points", j->report.count);
    for (size_t i = 0; i < j->report.count; i++) x[i] = (double)(i + 1);
    (void)snprintf(subtitle, sizeof subtitle, "%.120s, %s%s", j->asked.model.table.name,
                   cli_shape_text(&j->asked.model.table, shape),
                   j->centred ? ", mean row subtracted" : "");
    cli_svg svg = {.title = "Singular values",
                   .subtitle = subtitle,
                   .width = 760,
                   .height = 440,
                   .x = {.least = 1,
                         .most = (double)(j->report.count > 1 ? j->report.count : 2),
                         .label = "direction",
                         .tight = true},
                   .y = {.least = count ? j->s[count - 1] : 0.1,
                         .most = count ? j->s[0] : 1,
                         .label = "singular value",
                         .log = true}};
    cli_svg_open(&svg);
    if (count > 0) draw_marks(&svg, j);
    cli_svg_line(&svg, "a", x, j->s, count);
    if (count <= 200) cli_svg_points(&svg, "a", x, j->s, count, 2.5);
    cli_svg_close(&svg);
    free(x);
    return CLI_DONE;
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    job j = {.args = args};
    if (cli_args_flag(args, "force") && !cli_args_given(args, "plot"))
        return cli_usage("--force needs --plot FILE");
    int code = cli_asked_check_plot(args);
    if (code == CLI_DONE) code = set_up(&j);
    if (code == CLI_DONE) code = cli_asked_plot(args, draw, &j);
    if (code == CLI_DONE) {
        if (cli_args_flag(args, "json"))
            print_json(&j);
        else
            print_text(&j);
        if (cli_args_given(args, "plot")) cli_out_written(args, cli_args_text(args, "plot"), true);
    }
    free(j.s);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    {.name = "centred", .help = "subtract the mean row first"},
    {.name = "top",
     .letter = 'k',
     .value = "N",
     .standard = "10",
     .count = true,
     .help = "number of singular values to print; --json prints all unless this is given"},
    {.name = "engine",
     .value = "NAME",
     .standard = "auto",
     .choices = engine_name,
     .help =
         "library for matrix products and eigenvalues; none means plain loops, whose bits do not "
         "depend on the CPU"},
    {.name = "plot", .value = "FILE", .help = "draw the singular values to FILE (SVG)"},
    {.name = "force", .help = "replace FILE if it exists"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_spectrum = {
    .name = "spectrum",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "show the singular values: how many directions a table uses",
    .text = "FILE is a checkpoint as for 'embla info'. The rows of a table can spread over dim "
            "directions; the singular values tell how far they do in each. A few large values mean "
            "that most of the capacity is unused, or that all rows share a direction. That "
            "direction is often their mean; --centred subtracts it.\n\n"
            "The effective rank is exp of the entropy of the singular values, normalised to sum to "
            "1. The participation is (sum of squares)^2 / sum of fourth powers. The stable rank is "
            "the sum of squares / the largest square.\n\n"
            "The singular values are computed from the dim x dim matrix of column products. Values "
            "below about 1/3000 of the largest are lost in rounding and printed as 0. The chart "
            "has a log scale. Rows with a NaN or an infinity are left out and counted.",
    .example = "embla spectrum words.vec",
    .options = options,
    .run = run};
