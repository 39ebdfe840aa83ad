/* SPDX-License-Identifier: Apache-2.0 */
/* embla health: finds broken rows and under-trained tokens of a table.
 *
 * Facts come first, the worst with a remedy after an arrow, as in `doctor`; then the tokens that
 * look least trained. Padding and rows known to be unused are named once and left out of that list,
 * because they cannot be trained.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla.h"
#include "embla_lab.h"

#include "core/answers.h"
#include "core/out.h"
#include "core/tie_json.h"
#include "core/verbs.h"
#include "draw/svg.h"

enum { NAMED = 12, GROUPS_SHOWN = 5, TIE_SAMPLE = 64 };

static const char *const quantile_names[EMBLA_HEALTH_QUANTILES] = {
    "0.1%", "1%", "5%", "25%", "50%", "75%", "95%", "99%", "99.9%"};

typedef struct {
    const cli_args *args;
    cli_asked asked;
    embla_tensor tensor; /* the table or the head */
    bool head;           /* tensor is the head and not also the table */
    bool has_tie;
    embla_tie tie;
    int64_t tokens; /* rows from here on are padding; 0 means no padding */
    embla_health *health;
    embla_health_info info;
    embla_neighbour *ranked; /* the first --top that belong to tokens */
    cli_rank rank;
    bool utf8;
} job;

/* ---- which table ---- */

static bool has_separate_head(const job *j)
{
    return j->has_tie && (j->tie.kind == EMBLA_TIE_UNTIED || j->tie.kind == EMBLA_TIE_HEAD_MISSING);
}

/* Uses the head instead of the table. If they are one tensor, the table is kept. */
static int open_head(job *j)
{
    cli_asked *asked = &j->asked;
    embla_tensor head;
    if (asked->model.facts.named) return cli_usage("--head cannot be used with FILE::TENSOR");
    if (j->has_tie && (j->tie.kind == EMBLA_TIE_TIED || j->tie.kind == EMBLA_TIE_INVERTED))
        return CLI_DONE;
    if (embla_checkpoint_role(asked->model.checkpoint, EMBLA_ROLE_HEAD, &head, NULL) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    embla_table_free(asked->table);
    asked->table = NULL;
    if (embla_table_open(asked->model.checkpoint, head.name, NULL, &asked->table) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    j->tensor = head;
    j->head = true;
    return CLI_DONE;
}

/* Rows past the last word are padding, except in fastText files, where they are n-grams. */
static int64_t count_tokens(const job *j)
{
    const cli_model *model = &j->asked.model;
    int64_t end = cli_model_tokens_end(model);
    bool ngrams = strcmp(embla_checkpoint_format(model->checkpoint), "fasttext") == 0;
    return end > 0 && !model->facts.mapping && !ngrams ? end : 0;
}

static int set_up(job *j)
{
    const cli_args *args = j->args;
    int64_t top = cli_args_count(args, "top");
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code != CLI_DONE) return code;
    j->tensor = j->asked.model.table;
    /* a chosen tensor says nothing about tying, unless it is the token table */
    bool judged = !j->asked.model.facts.named || j->asked.model.facts.role == EMBLA_ROLE_TOKENS;
    j->has_tie =
        judged && embla_checkpoint_tie(j->asked.model.checkpoint, TIE_SAMPLE, &j->tie) == EMBLA_OK;
    if (cli_args_flag(args, "head")) code = open_head(j);
    if (code == CLI_DONE) code = cli_asked_find_tokens(&j->asked);
    if (code != CLI_DONE) return code;
    bool named_head = j->asked.model.facts.named && j->asked.model.facts.role == EMBLA_ROLE_HEAD;
    j->head = j->head || named_head;
    j->tokens = count_tokens(j);
    j->utf8 = cli_utf8_wanted();
    const embla_health_options options = {.tokens = j->tokens,
                                          .threads = (int)cli_args_count(args, "threads"),
                                          .untied = has_separate_head(j) && !j->head};
    if (embla_health_new(j->asked.table, &options, &j->health) != EMBLA_OK ||
        embla_health_describe(j->health, &j->info) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    j->rank = (cli_rank){.asked = &j->asked,
                         .form = CLI_RANK_TABLE,
                         .utf8 = j->utf8,
                         .rows = j->info.rows,
                         .top = (size_t)(top < j->info.rows ? top : j->info.rows)};
    return CLI_DONE;
}

/* ---- the least trained ---- */

static bool is_padding(const job *j, int64_t row)
{
    return j->tokens > 0 && row >= j->tokens;
}

static int compare_rows(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* The first --top rows of the ranking that are neither padding nor unused. */
static int list_ranked(job *j)
{
    size_t count, all, used = 0;
    const int64_t *rows = embla_health_unused(j->health, &count);
    const embla_neighbour *at = embla_health_ranked(j->health, &all);
    int64_t *unused = malloc((count + 1) * sizeof *unused);
    j->ranked = malloc((j->rank.top + 1) * sizeof *j->ranked);
    if (!j->ranked || !unused) {
        free(unused);
        return cli_failed("no memory for %zu rows", j->rank.top);
    }
    if (count > 0) memcpy(unused, rows, count * sizeof *unused);
    qsort(unused, count, sizeof *unused, compare_rows);
    for (size_t n = 0; n < all && used < j->rank.top; n++) {
        if (is_padding(j, at[n].row) ||
            bsearch(&at[n].row, unused, count, sizeof *unused, compare_rows))
            continue;
        j->ranked[used++] = at[n];
    }
    j->ranked[used] = (embla_neighbour){.row = -1};
    free(unused);
    return CLI_DONE;
}

/* ---- defects ---- */

typedef struct {
    int64_t zero, duplicates; /* rows of tokens */
} defects;

static defects count_defects(const job *j)
{
    defects d = {0};
    size_t zeros, copies;
    const int64_t *zero = embla_health_zero(j->health, &zeros);
    const embla_health_duplicate *copy = embla_health_duplicates(j->health, &copies);
    for (size_t n = 0; n < zeros; n++) d.zero += !is_padding(j, zero[n]);
    for (size_t n = 0; n < copies; n++) d.duplicates += !is_padding(j, copy[n].row);
    return d;
}

/* As in `doctor`: a row that is not finite is an error; duplicates and more than one row of zeros
 * are warnings. */
static int exit_code(const job *j)
{
    defects d = count_defects(j);
    bool strict = cli_args_flag(j->args, "strict") && (d.zero > 1 || d.duplicates > 0);
    return j->info.nonfinite > 0 || strict ? CLI_WANTING : CLI_DONE;
}

/* ---- facts ---- */

/* "<unk>, </s>, .. and 157 more": the tokens of rows. Reads at most NAMED + 1 rows. */
static const char *token_names(const job *j, const int64_t *rows, int64_t count, char text[800])
{
    size_t used = 0;
    char word[CLI_WORD_TEXT], cell[CLI_CELL];
    text[0] = '\0';
    int64_t shown = count < NAMED + 2 ? count : NAMED; /* naming one is shorter than "and 1 more" */
    for (int64_t i = 0; i < shown && used < 640; i++) {
        int64_t row = rows[i], token = cli_asked_token(&j->asked, row, NULL);
        (void)cli_token_show(&j->asked, token, !j->utf8, 16, word);
        if (token < 0) snprintf(word, sizeof word, "row %" PRId64, row);
        const char *quote = strchr(word, ',') && word[0] != '"' ? "\"" : "";
        used += (size_t)snprintf(text + used, 800 - used, "%s%s%s%s", i > 0 ? ", " : "", quote,
                                 word, quote);
    }
    if (count > shown)
        snprintf(text + used, 800 - used, " and %s more", cli_commas(count - shown, cell));
    return text;
}

static void print_rows(const job *j, const char *label, const int64_t *rows, size_t count,
                       const char *remedy)
{
    char text[800], many[CLI_CELL];
    if (count == 0) {
        cli_out_fact(label, "none");
        return;
    }
    cli_out_fact(label, "%s: %s", cli_plural((int64_t)count, "row", many),
                 token_names(j, rows, (int64_t)count, text));
    if (remedy) cli_out_fact("", "-> %s", remedy);
}

static void print_groups(const job *j)
{
    char text[800], rows[CLI_CELL];
    size_t count;
    int64_t left = 0;
    const embla_health_group *g = embla_health_groups(j->health, &count);
    if (count == 0) cli_out_fact("parallel rows", "none");
    for (size_t i = 0; i < count; i++, g++) {
        if (i >= GROUPS_SHOWN) {
            left += g->count;
            continue;
        }
        cli_out_fact(i == 0 ? "parallel rows" : "",
                     "%s, cosine with the first row at least %.8f, norm %.4g to %.4g: %s",
                     cli_plural(g->count, "row", rows), g->cosine_min, g->norm_min, g->norm_max,
                     token_names(j, g->rows, g->count, text));
    }
    if (left > 0)
        cli_out_fact("", "and %s in %s", cli_plural(left, "row", rows),
                     cli_plural((int64_t)(count - GROUPS_SHOWN), "further group", text));
    if (j->info.uncertain > 0)
        cli_out_fact("",
                     "not compared with all rows of nearly their direction, because there are too "
                     "many: %s, which may belong to another group",
                     cli_plural(j->info.uncertain, "row", rows));
    if (count > 0 && j->info.dim < 8)
        cli_out_fact("", "-> with a dim of %s many rows share a direction by chance",
                     cli_commas(j->info.dim, rows));
    else if (count > 0)
        cli_out_fact(
            "", "-> usually tokens that training never saw: avoid them in inputs, or train them");
}

/* ---- norms ---- */

enum { TALL = 6 }; /* lines of the histogram */

/* The part of one column that is on one line. */
static const char *histogram_block(int64_t count, int64_t most, int line, bool utf8)
{
    return cli_out_block((double)count / (double)most, TALL, line, utf8);
}

static void print_histogram(const job *j)
{
    const embla_health_info *s = &j->info;
    char cell[CLI_CELL], right[CLI_CELL];
    int64_t most = 1, bins[EMBLA_HEALTH_BINS] = {0};
    /* a narrow terminal merges two bins into one column */
    int each = cli_out_width() < CLI_LABEL + EMBLA_HEALTH_BINS ? 2 : 1;
    int columns = EMBLA_HEALTH_BINS / each;
    for (int i = 0; i < EMBLA_HEALTH_BINS; i++) bins[i / each] += s->norm_bins[i];
    for (int i = 0; i < columns; i++)
        if (bins[i] > most) most = bins[i];
    for (int line = TALL - 1; line >= 0; line--) {
        int last = columns;
        while (last > 0 && histogram_block(bins[last - 1], most, line, j->utf8)[0] == ' ') last--;
        printf("%*s %s", CLI_LABEL - 2, line == TALL - 1 ? cli_commas(most, cell) : "",
               j->utf8 ? "│" : "|");
        for (int i = 0; i < last; i++) fputs(histogram_block(bins[i], most, line, j->utf8), stdout);
        putchar('\n');
    }
    printf("%*d %s", CLI_LABEL - 2, 0, j->utf8 ? "└" : "+");
    for (int i = 0; i < columns; i++) fputs(j->utf8 ? "─" : "-", stdout);
    int wide = columns - snprintf(right, sizeof right, "%.4g", s->norm_max);
    printf("\n%*s%-*.4g%s\n\n", CLI_LABEL, "", wide, s->norm_min, right);
}

static void print_norms(const job *j)
{
    const embla_health_info *s = &j->info;
    static cli_grid grid;
    if (s->nonfinite == s->rows) return;
    cli_out_fact("norms", "mean %.4g, standard deviation %.4g, from %.4g to %.4g", s->norm_mean,
                 s->norm_deviation, s->norm_min, s->norm_max);
    putchar('\n');
    print_histogram(j);
    grid = (cli_grid){.columns = EMBLA_HEALTH_QUANTILES + 1};
    cli_grid_put(&grid, "%-*s", CLI_LABEL - 2, "quantile");
    for (int i = 0; i < EMBLA_HEALTH_QUANTILES; i++) cli_grid_put(&grid, "%s", quantile_names[i]);
    cli_grid_put(&grid, "norm");
    for (int i = 0; i < EMBLA_HEALTH_QUANTILES; i++)
        cli_grid_put(&grid, "%.3g", s->norm_quantiles[i]);
    cli_grid_print(&grid, "lrrrrrrrrr");
    putchar('\n');
}

/* ---- text ---- */

static void print_table_fact(const job *j)
{
    char shape[CLI_CELL], tie[CLI_SENTENCE], rows[CLI_CELL];
    cli_out_fact(j->head ? "head" : "table", "%s, %s, %s", j->tensor.name,
                 cli_shape_text(&j->tensor, shape), j->tensor.type);
    if (j->has_tie && j->tie.kind != EMBLA_TIE_NO_TABLE && j->tie.kind != EMBLA_TIE_NO_HEAD)
        cli_out_fact("tied", "%s", embla_tie_text(&j->tie, tie, sizeof tie));
    if (j->info.padding > 0)
        cli_out_fact("padding", "%s past the last token", cli_plural(j->info.padding, "row", rows));
}

static void print_ranked(const job *j)
{
    size_t unused;
    char rows[CLI_CELL];
    bool by_unused = j->info.ranked_by == EMBLA_HEALTH_RANKING_UNUSED;
    const int64_t *first = embla_health_unused(j->health, &unused);
    if (j->rank.top == 0 || j->ranked[0].row < 0) return;
    putchar('\n');
    if (by_unused && is_padding(j, first[0]))
        cli_out_fact("under-trained",
                     "tokens with the direction of padding, by cosine with the mean of %s, after "
                     "the table's mean is subtracted:",
                     cli_plural((int64_t)unused, "row", rows));
    else if (by_unused)
        cli_out_fact("under-trained",
                     "tokens with the direction of the group of %s, by cosine with its mean, after "
                     "the table's mean is subtracted:",
                     cli_plural((int64_t)unused, "row", rows));
    else
        cli_out_fact(
            "shortest rows", "%s. This may mean nothing: frequent tokens can have short rows too.",
            has_separate_head(j) && !j->head ? "by norm, because the head is a separate table"
                                             : "by norm, because no rows are known to be unused");
    putchar('\n');
    cli_rank_print(&j->rank, j->ranked, by_unused ? 1 : j->info.norm_quantiles[4]);
}

static void print_text(const job *j)
{
    const embla_health_info *s = &j->info;
    size_t nonfinite, zeros, copies;
    const int64_t *nonfinite_rows = embla_health_nonfinite(j->health, &nonfinite);
    const int64_t *zero_rows = embla_health_zero(j->health, &zeros);
    const embla_health_duplicate *duplicates = embla_health_duplicates(j->health, &copies);
    int64_t copy_rows[NAMED + 1] = {0};
    for (size_t i = 0; i < copies && i < NAMED + 1; i++) copy_rows[i] = duplicates[i].row;
    print_table_fact(j);
    print_norms(j);
    print_rows(j, "not finite", nonfinite_rows, nonfinite,
               "such a row makes every sum with it NaN or infinite: restore it from an earlier "
               "checkpoint");
    print_rows(j, "zeros", zero_rows, zeros,
               count_defects(j).zero > 1
                   ? "these are often tokens that were never trained: exclude them from statistics"
                   : NULL);
    print_rows(
        j, "duplicates", copy_rows, copies,
        "the model cannot distinguish their tokens: were rows copied when the table was extended?");
    print_groups(j);
    if (isfinite(s->anisotropy))
        cli_out_fact("anisotropy", "%.4f, the mean cosine of two rows%s", s->anisotropy,
                     s->anisotropy > 0.2 ? ""
                                         : "; 0 means that rows point in all directions equally");
    if (s->anisotropy > 0.2)
        cli_out_fact(
            "", "-> rows share a common direction: subtract the mean row before comparing them");
    if (s->nonfinite < s->rows)
        cli_out_fact(
            "mean row",
            "norm %.4g; the mean distance of rows from it is %.4g, standard deviation %.4g",
            s->mean_norm, s->from_mean, s->from_mean_deviation);
    print_ranked(j);
}

/* ---- JSON ---- */

static void json_rows(cli_json *json, const char *key, const int64_t *rows, size_t count)
{
    cli_json_open(json, key, '[');
    for (size_t n = 0; n < count; n++) cli_json_whole(json, NULL, rows[n]);
    cli_json_close(json, ']');
}

static void json_duplicates(cli_json *json, const job *j)
{
    size_t count;
    const embla_health_duplicate *copy = embla_health_duplicates(j->health, &count);
    cli_json_open(json, "duplicates", '[');
    for (size_t n = 0; n < count; n++) {
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "row", copy[n].row);
        cli_json_whole(json, "of", copy[n].original);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_norms(cli_json *json, const embla_health_info *s)
{
    cli_json_open(json, "norms", '{');
    cli_json_real(json, "min", s->norm_min);
    cli_json_real(json, "max", s->norm_max);
    cli_json_real(json, "mean", s->norm_mean);
    cli_json_real(json, "deviation", s->norm_deviation);
    cli_json_open(json, "quantiles", '{');
    for (int i = 0; i < EMBLA_HEALTH_QUANTILES; i++)
        cli_json_real(json, quantile_names[i], s->norm_quantiles[i]);
    cli_json_close(json, '}');
    cli_json_open(json, "bins", '[');
    for (int i = 0; i < EMBLA_HEALTH_BINS; i++) cli_json_whole(json, NULL, s->norm_bins[i]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

static void json_groups(cli_json *json, const job *j)
{
    size_t count;
    const embla_health_group *g = embla_health_groups(j->health, &count);
    cli_json_open(json, "groups", '[');
    for (size_t i = 0; i < count; i++, g++) {
        cli_json_open(json, NULL, '{');
        cli_json_whole(json, "count", g->count);
        cli_json_real(json, "norm_least", g->norm_min);
        cli_json_real(json, "norm_most", g->norm_max);
        cli_json_real(json, "cosine_least", g->cosine_min);
        json_rows(json, "rows", g->rows, (size_t)g->count);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_ranked(cli_json *json, const job *j)
{
    size_t unused;
    bool by_unused = j->info.ranked_by == EMBLA_HEALTH_RANKING_UNUSED;
    (void)embla_health_unused(j->health, &unused);
    cli_json_text(json, "ranked_by", by_unused ? "unused" : "norm");
    cli_json_whole(json, "unused", (int64_t)unused);
    cli_json_open(json, "under_trained", '[');
    for (size_t i = 0; i < j->rank.top && j->ranked[i].row >= 0; i++) {
        int64_t token = cli_asked_token(&j->asked, j->ranked[i].row, NULL);
        cli_json_open(json, NULL, '{');
        cli_token_json(&j->asked, token, json);
        cli_json_whole(json, "id", token);
        cli_json_whole(json, "row", j->ranked[i].row);
        cli_json_real(json, "score", j->ranked[i].score);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void print_json(const job *j, int code)
{
    const embla_health_info *s = &j->info;
    size_t nonfinite, zeros;
    const int64_t *nonfinite_rows = embla_health_nonfinite(j->health, &nonfinite);
    const int64_t *zero_rows = embla_health_zero(j->health, &zeros);
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "checkpoint", j->args->operands[0]);
    cli_json_text(&json, "tensor", j->tensor.name);
    embla_role role = j->asked.model.facts.named ? j->asked.model.facts.role : EMBLA_ROLE_TOKENS;
    cli_json_text(&json, "role", embla_role_name(j->head ? EMBLA_ROLE_HEAD : role));
    cli_json_text(&json, "tie", j->has_tie ? embla_tie_name(j->tie.kind) : NULL);
    cli_json_bool(&json, "good", code == CLI_DONE);
    cli_json_whole(&json, "rows", s->rows);
    cli_json_whole(&json, "dim", s->dim);
    cli_json_whole(&json, "padding", s->padding);
    json_rows(&json, "nonfinite", nonfinite_rows, nonfinite);
    json_rows(&json, "zero", zero_rows, zeros);
    json_duplicates(&json, j);
    json_norms(&json, s);
    cli_json_real(&json, "anisotropy", s->anisotropy);
    cli_json_real(&json, "mean_norm", s->mean_norm);
    cli_json_real(&json, "from_mean", s->from_mean);
    cli_json_real(&json, "from_mean_deviation", s->from_mean_deviation);
    cli_json_whole(&json, "uncertain", s->uncertain);
    json_groups(&json, j);
    json_ranked(&json, j);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the picture ---- */

static int draw(const void *context)
{
    const job *j = context;
    const embla_health_info *s = &j->info;
    char title[256], subtitle[256], rows[CLI_CELL], text[CLI_CELL];
    int64_t most = 1;
    for (int i = 0; i < EMBLA_HEALTH_BINS; i++)
        if (s->norm_bins[i] > most) most = s->norm_bins[i];
    snprintf(title, sizeof title, "Norms of %.200s", j->tensor.name);
    snprintf(subtitle, sizeof subtitle, "%s of %s; mean %.4g, standard deviation %.4g",
             cli_plural(s->rows, "row", rows), cli_plural(s->dim, "number", text), s->norm_mean,
             s->norm_deviation);
    cli_svg svg = {
        .title = title,
        .subtitle = subtitle,
        .width = 760,
        .height = 420,
        .x = {.least = s->norm_min, .most = s->norm_max, .label = "norm of a row", .tight = true},
        .y = {.least = 0, .most = (double)most, .label = "rows"}};
    bool one = !(s->norm_max > s->norm_min); /* all norms are equal: one bar in the middle */
    double least = one ? s->norm_min * 0.99 : s->norm_min;
    cli_svg_open(&svg);
    cli_svg_bars(&svg, s->norm_bins, one ? 1 : EMBLA_HEALTH_BINS, least,
                 one ? s->norm_max * 1.01 : s->norm_max, "rows");
    snprintf(text, sizeof text, "median %.4g", s->norm_quantiles[4]);
    cli_svg_mark(&svg, s->norm_quantiles[4], 0, text);
    cli_svg_close(&svg);
    return CLI_DONE;
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    job j = {.args = args};
    int code = cli_asked_check_plot(args);
    if (code == CLI_DONE) code = set_up(&j);
    if (code == CLI_DONE) code = list_ranked(&j);
    if (code == CLI_DONE) code = cli_asked_plot(args, draw, &j);
    if (code == CLI_DONE) {
        code = exit_code(&j);
        if (cli_args_flag(args, "json"))
            print_json(&j, code);
        else
            print_text(&j);
        if (cli_args_given(args, "plot")) cli_out_written(args, cli_args_text(args, "plot"), true);
    }
    free(j.ranked);
    embla_health_free(j.health);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    {.name = "top",
     .letter = 'k',
     .value = "N",
     .standard = "10",
     .count = true,
     .help = "number of under-trained tokens to list"},
    {.name = "head", .help = "analyse the head instead of the token table"},
    {.name = "strict", .help = "treat rows of zeros and duplicate rows as problems"},
    {.name = "plot", .value = "FILE", .help = "draw the histogram of norms to FILE (SVG)"},
    {.name = "force", .help = "replace FILE if it exists"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_health = {
    .name = "health",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "report norms, broken and duplicate rows, and under-trained tokens",
    .text =
        "FILE is a checkpoint as for 'embla info'. Reports for all rows:\n- the norms;\n- rows "
        "with a NaN or an infinity, rows of zeros, and duplicate rows;\n- groups of rows with the "
        "same direction (cosine above 0.999999 with the first of the group), which training never "
        "separated;\n- anisotropy: whether all rows share a common direction.\n\n"
        "Then it lists the tokens that look least trained, after 'Fishing for Magikarp' (Land and "
        "Bartolo, 2024). If table and head are one tensor, and for a head, tokens are ranked by "
        "cosine with the unused rows. These are the rows past the last token or, if there are "
        "none, the largest group with the same direction; the unused rows themselves are not "
        "listed. If the head is a separate tensor, or no row is known to be unused, tokens are "
        "ranked by norm, the smallest first. No model is run, so a token in the list is a "
        "candidate, not a verdict.\n\n"
        "The exit code is 3 if a row is not finite. With --strict it is also 3 if more than one "
        "token has a row of zeros, or two tokens have equal rows.",
    .example = "embla health words.vec",
    .options = options,
    .run = run};
