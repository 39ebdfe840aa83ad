/* SPDX-License-Identifier: Apache-2.0 */
/* embla compare: norms, dot products, cosines, angles and distances of a few rows.
 *
 * With --with the same figures come from a second table. Rows of two tables can be multiplied only
 * if the tables have the same dim; pairs of words can be compared in any two tables.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/form.h"
#include "core/verbs.h"
#include "draw/compared.h"
#include "verbs/compare_job.h"

/* Tokens of a table for people, so that a matrix fits a terminal. */
enum { TABLE_TOKENS = 10 };

/* ---- tables for people ---- */

/* The rows of one token in both tables. */
static cli_figures across_of(const cli_compare_job *j, size_t i)
{
    size_t at = i * j->first.dim;
    return cli_compare_rows(j->first.values + at, j->second.values + at, j->first.dim);
}

static const char *word_of(const cli_compare_job *j, size_t i, size_t columns,
                           char text[CLI_WORD_TEXT])
{
    (void)cli_token_show(&j->first.asked, j->first.tokens.ids[i], j->ascii, columns, text);
    return text;
}

static void put_number(cli_grid *grid, double value, int measure)
{
    char text[CLI_CELL];
    cli_grid_put(grid, "%s", cli_compare_number(value, measure, text));
}

static void print_figures(const cli_figures *f)
{
    static const char *const labels[CLI_COMPARE_MEASURES] = {"cosine", "dot product", "angle",
                                                             "distance"};
    static const int order[CLI_COMPARE_MEASURES] = {CLI_COMPARE_DOT, CLI_COMPARE_EUCLIDEAN,
                                                    CLI_COMPARE_COSINE, CLI_COMPARE_ANGLE};
    char text[CLI_CELL];
    for (size_t i = 0; i < CLI_COMPARE_MEASURES; i++) {
        int m = order[i];
        bool none = isnan(f->values[m]);
        cli_out_fact(labels[m], "%s%s",
                     none ? "none: a row of zeros has no direction"
                          : cli_compare_number(f->values[m], m, text),
                     none || m != CLI_COMPARE_ANGLE ? "" : " degrees");
    }
}

static void print_pair(const cli_compare_job *j)
{
    cli_figures f = cli_compare_pair(&j->first, 0, 1);
    char word[CLI_WORD_TEXT], text[CLI_CELL];
    for (size_t i = 0; i < 2; i++)
        cli_out_fact("norm", "%s, %s", cli_compare_number(f.norms[i], CLI_COMPARE_DOT, text),
                     word_of(j, i, CLI_WORD_COLUMNS, word));
    print_figures(&f);
}

/* Every pair of three or more rows. */
static void print_matrix(const cli_compare_job *j)
{
    char word[CLI_WORD_TEXT], align[TABLE_TOKENS + 3] = "lr";
    cli_grid grid = {.columns = j->count + 2};
    memset(align + 2, 'r', j->count);
    cli_grid_put(&grid, "%s", cli_compare_measures[j->measure]);
    cli_grid_put(&grid, "norm");
    for (size_t b = 0; b < j->count; b++)
        cli_grid_put(&grid, "%s", word_of(j, b, CLI_COMPARE_WORD, word));
    for (size_t a = 0; a < j->count; a++) {
        cli_grid_put(&grid, "%s", word_of(j, a, CLI_COMPARE_WORD, word));
        put_number(&grid, cli_compare_pair(&j->first, a, a).norms[0], CLI_COMPARE_DOT);
        for (size_t b = 0; b < j->count; b++)
            put_number(&grid, cli_compare_pair(&j->first, a, b).values[j->measure], j->measure);
    }
    cli_grid_print(&grid, align);
}

static void print_side(const char *label, const char *path, const cli_compare_side *s)
{
    char rows[CLI_CELL];
    cli_out_fact(label, "%s, %s x %zu", path, cli_commas(embla_table_rows(s->asked.table), rows),
                 s->dim);
}

/* Each token in both tables. */
static void print_across(const cli_compare_job *j)
{
    char word[CLI_WORD_TEXT];
    cli_grid grid = {.columns = j->across ? 7 : 3};
    cli_grid_put(&grid, "token");
    cli_grid_put(&grid, "norm 1");
    cli_grid_put(&grid, "norm 2");
    for (int m = 0; m < CLI_COMPARE_MEASURES && j->across; m++)
        cli_grid_put(&grid, "%s", cli_compare_measures[m]);
    for (size_t i = 0; i < j->count; i++) {
        cli_grid_put(&grid, "%s", word_of(j, i, CLI_COMPARE_WORD, word));
        put_number(&grid, cli_compare_pair(&j->first, i, i).norms[0], CLI_COMPARE_DOT);
        put_number(&grid, cli_compare_pair(&j->second, i, i).norms[0], CLI_COMPARE_DOT);
        for (int m = 0; m < CLI_COMPARE_MEASURES && j->across; m++)
            put_number(&grid, across_of(j, i).values[m], m);
    }
    cli_grid_print(&grid, j->across ? "lrrrrrr" : "lrr");
}

/* Each pair of tokens in both tables. */
static void print_pairs_of_both(const cli_compare_job *j)
{
    char a[CLI_WORD_TEXT], b[CLI_WORD_TEXT];
    cli_grid grid = {.columns = 4};
    cli_grid_put(&grid, "%s", cli_compare_measures[j->measure]);
    cli_grid_put(&grid, "table 1");
    cli_grid_put(&grid, "table 2");
    cli_grid_put(&grid, "difference");
    for (size_t i = 0; i < j->count; i++) {
        for (size_t k = i + 1; k < j->count; k++) {
            double one = cli_compare_pair(&j->first, i, k).values[j->measure];
            double two = cli_compare_pair(&j->second, i, k).values[j->measure];
            cli_grid_put(&grid, "%s, %s", word_of(j, i, CLI_COMPARE_WORD, a),
                         word_of(j, k, CLI_COMPARE_WORD, b));
            put_number(&grid, one, j->measure);
            put_number(&grid, two, j->measure);
            put_number(&grid, two - one, j->measure);
        }
    }
    cli_grid_print(&grid, "lrrr");
}

static void print_table(const cli_args *args, const cli_compare_job *j)
{
    if (!j->two && j->count == 2) {
        print_pair(j);
    } else if (!j->two) {
        print_matrix(j);
    } else {
        print_side("table 1", args->operands[0], &j->first);
        print_side("table 2", cli_args_text(args, "with"), &j->second);
        putchar('\n');
        print_across(j);
        if (j->count > 1) putchar('\n');
        if (j->count > 1) print_pairs_of_both(j);
    }
}

/* ---- text and JSON for programs ---- */

static void text_line(const cli_compare_side *x, size_t a, const cli_compare_side *y, size_t b,
                      const cli_figures *f)
{
    cli_token_write(&x->asked, x->tokens.ids[a]);
    printf("\t%" PRId64 "\t", x->tokens.ids[a]);
    cli_token_write(&y->asked, y->tokens.ids[b]);
    printf("\t%" PRId64 "\t%.9g\t%.9g", y->tokens.ids[b], f->norms[0], f->norms[1]);
    for (int m = 0; m < CLI_COMPARE_MEASURES; m++) printf("\t%.9g", f->values[m]);
    putchar('\n');
}

static void text_pairs(const cli_compare_side *s)
{
    for (size_t a = 0; a < s->tokens.count; a++) {
        for (size_t b = a + 1; b < s->tokens.count; b++) {
            cli_figures f = cli_compare_pair(s, a, b);
            text_line(s, a, s, b, &f);
        }
    }
}

static void print_text(const cli_compare_job *j)
{
    text_pairs(&j->first);
    if (!j->two) return;
    if (j->count > 1) putchar('\n');
    text_pairs(&j->second);
    if (j->count > 1 && j->across) putchar('\n');
    for (size_t i = 0; i < j->count && j->across; i++) {
        cli_figures f = across_of(j, i);
        text_line(&j->first, i, &j->second, i, &f);
    }
}

static void json_figures(const cli_figures *f, size_t a, size_t b, cli_json *json)
{
    cli_json_open(json, NULL, '{');
    cli_json_whole(json, "a", (int64_t)a);
    cli_json_whole(json, "b", (int64_t)b);
    for (int m = 0; m < CLI_COMPARE_MEASURES; m++)
        cli_json_real(json, cli_compare_measures[m], f->values[m]);
    cli_json_close(json, '}');
}

static void json_side(const cli_compare_side *s, cli_json *json)
{
    cli_json_whole(json, "rows", embla_table_rows(s->asked.table));
    cli_json_whole(json, "dim", (int64_t)s->dim);
    cli_json_open(json, "tokens", '[');
    for (size_t i = 0; i < s->tokens.count; i++) {
        cli_json_open(json, NULL, '{');
        cli_token_json(&s->asked, s->tokens.ids[i], json);
        cli_json_whole(json, "id", s->tokens.ids[i]);
        cli_json_whole(json, "row", s->rows[i]);
        cli_json_real(json, "norm", cli_compare_pair(s, i, i).norms[0]);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_open(json, "pairs", '[');
    for (size_t a = 0; a < s->tokens.count; a++) {
        for (size_t b = a + 1; b < s->tokens.count; b++) {
            cli_figures f = cli_compare_pair(s, a, b);
            json_figures(&f, a, b, json);
        }
    }
    cli_json_close(json, ']');
}

static void print_json(const cli_compare_job *j)
{
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    json_side(&j->first, &json);
    if (j->two) {
        cli_json_open(&json, "with", '{');
        json_side(&j->second, &json);
        cli_json_close(&json, '}');
    }
    if (j->across) {
        cli_json_open(&json, "across", '[');
        for (size_t i = 0; i < j->count; i++) {
            cli_figures f = across_of(j, i);
            json_figures(&f, i, i, &json);
        }
        cli_json_close(&json, ']');
    }
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

static int read_side(const cli_args *args, const char *path, const cli_tokens *tokens,
                     cli_compare_side *s)
{
    const size_t count = tokens->count;
    int code = cli_asked_rows(&s->asked, tokens, &s->rows);
    if (code != CLI_DONE) return code;
    s->dim = embla_table_dim(s->asked.table);
    s->values = calloc(count, s->dim * sizeof *s->values);
    if (!s->values) return cli_failed("no memory for %zu rows of %s", count, path);
    const embla_lookup_options options = {.threads = (int)cli_args_count(args, "threads")};
    if (embla_lookup_rows(s->asked.table, s->rows, count, &options, s->values) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    for (size_t i = 0; i < count && code == CLI_DONE; i++)
        code = cli_asked_check_row(&s->asked, tokens->ids[i], s->values + i * s->dim,
                                   "cannot be compared");
    return code;
}

static void free_side(cli_compare_side *s)
{
    free(s->values);
    free(s->rows);
    cli_tokens_free(&s->tokens);
    cli_asked_free(&s->asked);
}

/* Finds the tokens of the first table in the second by their words, or by their numbers where a
 * token has no word. */
static int find_in_second(const char *path, cli_compare_job *j)
{
    cli_compare_side *to = &j->second;
    char text[CLI_WORD_TEXT];
    int code = CLI_DONE;
    for (size_t i = 0; i < j->count && code == CLI_DONE; i++) {
        size_t length;
        int64_t id = j->first.tokens.ids[i];
        int32_t found = 0;
        const char *word = cli_word_of(j->first.asked.vocab, id, &length);
        if (!word || !to->asked.vocab)
            code = cli_tokens_add(&to->tokens, id);
        else if (embla_vocab_find(to->asked.vocab, word, length, &found) == EMBLA_OK)
            code = cli_tokens_add(&to->tokens, found);
        else
            code = cli_failed("%s has no token '%s'; --with needs a table that has all of them",
                              path, word_of(j, i, CLI_WORD_COLUMNS, text));
    }
    return code;
}

static int open_second(const cli_args *args, cli_compare_job *j)
{
    const char *path = cli_args_text(args, "with");
    int code = cli_asked_open(args, path, &j->second.asked);
    if (code == CLI_DONE) code = find_in_second(path, j);
    if (code == CLI_DONE) code = read_side(args, path, &j->second.tokens, &j->second);
    if (code != CLI_DONE) return code;
    j->across = j->first.dim == j->second.dim;
    if (j->count == 1 && !j->across)
        return cli_failed("the rows of one token have dim %zu and %zu, so they have no cosine; "
                          "give two tokens to compare them in both tables",
                          j->first.dim, j->second.dim);
    return CLI_DONE;
}

static int set_up(const cli_args *args, cli_form form, cli_compare_job *j)
{
    const char *path = args->operands[0], *measure = cli_args_text(args, "measure");
    j->two = cli_args_given(args, "with");
    j->ascii = !cli_utf8_wanted();
    while (strcmp(cli_compare_measures[j->measure], measure) != 0) j->measure++;
    int code = cli_asked_open(args, path, &j->first.asked);
    j->first.tokens.split = true;
    j->first.tokens.least = j->two ? 1 : 2;
    if (code == CLI_DONE) code = cli_asked_tokens(args, &j->first.asked, &j->first.tokens);
    if (code != CLI_DONE) return code;
    j->count = j->first.tokens.count;
    if (j->count == 0 && args->operand_count > 1)
        return cli_usage("standard input is empty: compare needs at least 2 tokens, or 1 and "
                         "--with");
    if (j->count < (j->two ? 1 : 2))
        return cli_usage("compare has %zu token%s; it needs at least 2, or 1 and --with", j->count,
                         j->count == 1 ? "" : "s");
    cli_sheet_kind kind;
    const bool picture = cli_form_is_sheet(form, &kind);
    if (form == CLI_FORM_TABLE && j->count > TABLE_TOKENS)
        return cli_usage("compare has %zu tokens, but a table has at most %d; use --format text "
                         "or --json",
                         j->count, TABLE_TOKENS);
    if (picture && j->count > CLI_COMPARED_MOST)
        return cli_usage("compare has %zu tokens, but a picture has at most %d; use --format text "
                         "or --json",
                         j->count, (int)CLI_COMPARED_MOST);
    if (picture && j->two)
        return cli_usage("a picture shows one table; leave --with out, or use --format table");
    code = read_side(args, path, &j->first.tokens, &j->first);
    return code == CLI_DONE && j->two ? open_second(args, j) : code;
}

static int print_as(const cli_args *args, cli_form form, const cli_compare_job *j)
{
    cli_sheet_kind kind;
    if (cli_form_is_sheet(form, &kind)) return cli_compare_sheet(args, j, kind);
    if (form == CLI_FORM_JSON)
        print_json(j);
    else if (form == CLI_FORM_TABLE)
        print_table(args, j);
    else
        print_text(j);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    cli_compare_job j = {0};
    cli_form form;
    if (args->operand_count < 2)
        return cli_usage("compare needs a TOKEN; '-' reads tokens from standard input");
    int code = cli_form_read(args, &form);
    if (code == CLI_DONE) code = set_up(args, form, &j);
    if (code == CLI_DONE) code = cli_form_redirect(args, form);
    if (code == CLI_DONE) code = print_as(args, form, &j);
    code = cli_out_done(code);
    free_side(&j.first);
    free_side(&j.second);
    return code;
}

static const char *measure_name(size_t n)
{
    return n < CLI_COMPARE_MEASURES ? cli_compare_measures[n] : NULL;
}

static const cli_option options[] = {
    {.name = "with",
     .value = "OTHER",
     .reads = CLI_READS_FILE,
     .help = "compare the same tokens in the table OTHER too, and each with itself"},
    {.name = "measure",
     .value = "MEASURE",
     .standard = "cosine",
     .choices = measure_name,
     .help = "what the table of three or more tokens shows; angles are in degrees"},
    CLI_FORM_OPTIONS("picture.svg, .png, .html, pairs.txt or .json"),
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_compare = {
    .name = "compare",
    .synopsis = "FILE TOKEN [TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "show how alike the rows of tokens are",
    .text =
        "FILE is a checkpoint as for 'embla info'. TOKEN is a word or '#5' as for 'embla "
        "lookup'; - reads them from standard input, one on each line or all on one line. An "
        "unknown word is skipped with a note, and the exit code is 3, if two others are left.\n\n"
        "For two tokens, the table has the norms of their rows, the dot product, the distance, the "
        "cosine and the angle. For three to 10 tokens it is a matrix of one measure. A picture "
        "(--output FILE.svg, .png or .html) shows two rows as arrows, and three to 24 as a matrix "
        "in colours.\n\n"
        "--with OTHER looks up the same tokens in a second table. If both tables have the same "
        "dim, the row of each token is compared with its row in OTHER. Each pair of tokens is "
        "compared in both tables, whatever their dims are.\n\n"
        "The text format has one line per pair: token, id, token, id, norm, norm, cosine, dot, "
        "angle and distance, separated by tabs. With --with the pairs of OTHER follow after an "
        "empty line, then each token in both tables. A row of zeros has no cosine and no angle "
        "(nan, null in JSON).",
    .example = "embla compare words.vec cat dog tuesday",
    .options = options,
    .run = run};
