/* SPDX-License-Identifier: Apache-2.0 */
/* embla lookup: prints the rows of tokens, as a picture or as data.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/vectors.h"
#include "core/verbs.h"
#include "draw/picture.h"
#include "draw/tables.h"
#include "host/paths.h"

static int make_rows(const void *context, size_t at, size_t count, float *out)
{
    const cli_vectors *v = context;
    return cli_asked_vectors(&v->asked, v->tokens.ids + at, v->rows + at, count, v->threads, out);
}

static int print_data(const cli_vectors *v)
{
    return cli_vectors_print(v, &(cli_vectors_source){.context = v, .make = make_rows});
}

static int print_picture(const cli_args *args, const cli_vectors *v)
{
    const cli_picture picture = {.table = v->asked.table,
                                 .tokens = cli_vectors_tokens(v),
                                 .dim = v->dim,
                                 .color = cli_color_wanted(cli_args_text(args, "color"))};
    const embla_facts *facts = &v->asked.model.facts;
    char text[CLI_SENTENCE];
    bool drawn = v->asked.unseen.count == 0; /* the picture is of rows */
    int code = v->tokens.count > 0 && drawn ? cli_picture_draw(&picture, &drawn) : CLI_DONE;
    if (code == CLI_DONE && !drawn) return print_data(v);
    if (code != CLI_DONE || cli_args_flag(args, "quiet")) return code;
    const char *scaling = cli_model_scaling(&v->asked.model, text);
    if (scaling || facts->mapping || facts->weights) putchar('\n');
    cli_vectors_facts(v);
    if (scaling) cli_out_fact("scaling", "%s", scaling);
    return code;
}

/* ---- a picture for a file ---- */

static int read_row(const void *context, int64_t row, float *out)
{
    if (embla_lookup_rows(context, &row, 1, NULL, out) == EMBLA_OK) return CLI_DONE;
    return cli_failed("%s", embla_error());
}

typedef struct {
    char title[128], facts[256], about[512], heading[128], result[128];
} words;

static void write_words(const cli_args *args, const cli_vectors *v, size_t numbers, words *w)
{
    const char *path = args->operands[0];
    const size_t dim = embla_table_dim(v->asked.table);
    char rows[CLI_CELL], wide[CLI_CELL], count[CLI_CELL], shown[64] = "";
    (void)cli_commas(embla_table_rows(v->asked.table), rows);
    (void)cli_commas((int64_t)dim, wide);
    (void)cli_plural((int64_t)v->tokens.count, "token", count);
    if (numbers < dim) snprintf(shown, sizeof shown, "; the first %zu numbers are shown", numbers);
    snprintf(w->title, sizeof w->title, "Lookup in %.100s", cli_path_title(path));
    snprintf(w->facts, sizeof w->facts, "%s: the row of each is copied%s", count, shown);
    snprintf(w->heading, sizeof w->heading, "table, %.40s x %.40s", rows, wide);
    snprintf(w->result, sizeof w->result, "result, %zu x %.40s", v->tokens.count, wide);
    int used = snprintf(w->about, sizeof w->about,
                        "On the left %s, in the middle rows of a table of %s rows with %s numbers "
                        "each, on the right the result. Blue numbers are negative, orange ones "
                        "positive. Rows of the tokens:",
                        count, rows, wide);
    for (size_t i = 0; i < v->tokens.count && used < 400; i++)
        used += snprintf(w->about + used, sizeof w->about - (size_t)used, " %lld",
                         (long long)v->rows[i]);
}

static int print_sheet(const cli_args *args, const cli_vectors *v, cli_sheet_kind kind)
{
    words w;
    const size_t shown = cli_tables_shown(v->tokens.count, 1),
                 dim = embla_table_dim(v->asked.table);
    const size_t numbers = cli_vectors_numbers(args, v);
    float *values = malloc((shown * dim + 1) * sizeof *values);
    if (!values) return cli_failed("no memory for %zu rows", shown);
    int code = shown > 0 ? make_rows(v, 0, shown, values) : CLI_DONE;
    write_words(args, v, numbers, &w);
    const cli_tables tables = {.title = w.title,
                               .facts = w.facts,
                               .about = w.about,
                               .asked = &v->asked,
                               .tokens = v->tokens.ids,
                               .count = v->tokens.count,
                               .views = {{.heading = w.heading,
                                          .all = embla_table_rows(v->asked.table),
                                          .chosen = v->rows,
                                          .context = v->asked.table,
                                          .read = read_row}},
                               .view_count = 1,
                               .results = values,
                               .result = w.result,
                               .dim = dim,
                               .numbers = numbers};
    if (code == CLI_DONE) code = cli_tables_print(kind, &tables);
    free(values);
    return code;
}

/* ---- the verb ---- */

static int print(const cli_args *args, const cli_vectors *v)
{
    cli_sheet_kind kind;
    if (cli_vectors_is_sheet(v->form, &kind)) return print_sheet(args, v, kind);
    return v->form == CLI_VECTORS_PICTURE ? print_picture(args, v) : print_data(v);
}

static int run(const cli_args *args)
{
    cli_vectors v;
    int code = cli_vectors_open(args, true, false, &v);
    if (code == CLI_DONE) code = cli_vectors_redirect(args, v.form);
    if (code == CLI_DONE) code = print(args, &v);
    code = cli_out_done(code);
    cli_vectors_free(&v);
    return code;
}

static const cli_option options[] = {CLI_VECTORS_OPTIONS, CLI_OPEN_OPTIONS, {.name = NULL}};

const cli_verb cli_verb_lookup = {
    .name = "lookup",
    .synopsis = "FILE [TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .about = "print the rows of tokens, as a picture or as data",
    .text =
        "FILE is a checkpoint as for 'embla info'. TOKEN is a word of its vocabulary, exactly as "
        "stored (' he' with its space), or '#5' for token 5; quote both. - reads one token per "
        "line from standard input. Lines may end in CR LF. An unknown word is skipped with a note, "
        "and the exit code is 3. It is an error if no other is left, and for npy, raw and fvecs, "
        "whose rows have no words beside them. After a backslash everything is a word: '\\#5' is "
        "the "
        "word #5, '\\-' is the word -, and two backslashes begin a word with a backslash. If the "
        "file "
        "has rows of n-grams ('embla words --subwords', fastText's .bin), a word that it does not "
        "have gets the mean of its n-grams; its token is printed as - (null in JSON).\n\n"
        "The picture shows the tokens, their rows in the table and the result. It is as wide as "
        "the terminal (or COLUMNS); below 30 columns text is printed instead. The other formats "
        "contain all numbers, exactly:\n- text: token, word and numbers; tabs between the "
        "three;\n- tsv: the same with tabs between all numbers;\n- json: one object; null for a "
        "number that is not finite;\n- jsonl: one object per row;\n- npy, raw: little-endian "
        "f32.\n\nWith --output the extension of FILE chooses the format: .svg, .png and .html are "
        "the "
        "picture with colours for the numbers (8 of a row, or those of --dim, up to 64), .txt is "
        "text, .json JSON. --format allows any name, but never a text in a file named .png.\n\n"
        "What is no word is text: the tokenizer of the model (in its folder, in the GGUF, or "
        "--tokenizer) cuts it, and each of its tokens gets a row.\n\nBackslashes and invisible "
        "characters in words are escaped (\\n, \\x1b). A token "
        "without a row is an error, and nothing is printed.",
    .example = "embla lookup words.vec king queen cat",
    .options = options,
    .run = run};
