/* SPDX-License-Identifier: Apache-2.0 */
/* embla lookup: prints the rows of tokens, as a picture or as data.
 *
 * All tokens are checked before the first row is printed or a file is opened for writing, so there
 * is no partial result. Rows are printed in batches, so a long list needs no more memory than a
 * short one.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "embla.h"

#include "core/answers.h"
#include "core/verbs.h"
#include "draw/picture.h"

enum { PIECE_BYTES = 4 << 20 };

typedef struct {
    cli_asked asked;
    cli_tokens tokens;
    int64_t *rows; /* the row of each token */
    size_t dim;    /* numbers of a row to print */
    int threads;
} job;

/* ---- which rows ---- */

static int tokens_of(const cli_args *args, job *j)
{
    const char *ids = cli_args_text(args, "ids");
    int code = CLI_DONE;
    if (ids && strcmp(ids, "-") == 0)
        code = cli_tokens_lines(&j->tokens, j->asked.vocab, true);
    else if (ids)
        code = cli_tokens_list(&j->tokens, ids, "--ids");
    return code == CLI_DONE ? cli_asked_tokens(args, &j->asked, &j->tokens) : code;
}

/* ---- formats ---- */

static void print_text(const job *j, size_t i, const float *values, char gap)
{
    size_t length;
    const embla_vocab *vocab = j->asked.vocab;
    const char *word = cli_word_of(vocab, j->tokens.ids[i], &length);
    printf("%" PRId64 "\t", j->tokens.ids[i]);
    if (word) (void)cli_word_write(word, length, stdout);
    for (size_t k = 0; k < j->dim; k++) printf("%c%.9g", k == 0 ? '\t' : gap, (double)values[k]);
    putchar('\n');
}

static void json_row(const job *j, size_t i, const float *values, cli_json *json)
{
    cli_json_open(json, NULL, '{');
    cli_json_whole(json, "id", j->tokens.ids[i]);
    cli_json_whole(json, "row", j->rows[i]);
    cli_token_json(&j->asked, j->tokens.ids[i], json);
    cli_json_open(json, "values", '[');
    for (size_t k = 0; k < j->dim; k++) cli_json_real(json, NULL, values[k]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

/* Little-endian f32 on every machine. */
static void print_raw(const job *j, const float *values)
{
    for (size_t k = 0; k < j->dim; k++) {
        uint32_t bits;
        unsigned char bytes[4];
        memcpy(&bits, &values[k], 4);
        for (int b = 0; b < 4; b++) bytes[b] = (unsigned char)(bits >> (8 * b));
        (void)fwrite(bytes, 1, 4, stdout);
    }
}

/* npy version 1.0: magic, length, a dictionary, and spaces so that the data begins at a multiple
 * of 64. */
static void print_npy_header(const job *j)
{
    char text[160];
    int used = snprintf(text, sizeof text,
                        "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }",
                        j->tokens.count, j->dim);
    int all = (10 + used + 1 + 63) / 64 * 64 - 10;
    (void)fwrite("\x93NUMPY\x01\x00", 1, 8, stdout);
    putchar(all & 0xff);
    putchar(all >> 8);
    printf("%s%*s\n", text, all - used - 1, "");
}

enum { PICTURE, TEXT, TSV, JSON, JSONL, NPY, RAW, FORMATS };
static const char *const format_names[FORMATS] = {"picture", "text", "tsv", "json",
                                                  "jsonl",   "npy",  "raw"};

static const char *format_name(size_t n)
{
    return n < FORMATS ? format_names[n] : NULL;
}

static int format_of(const cli_args *args)
{
    const char *name = cli_args_text(args, "format");
    for (int i = 0; i < FORMATS; i++)
        if (cli_args_given(args, "format") && strcmp(name, format_names[i]) == 0) return i;
    if (cli_args_flag(args, "json")) return JSON;
    return cli_args_flag(args, "plain") ? TEXT : PICTURE;
}

/* ---- data ---- */

static void print_row(const job *j, int format, size_t i, const float *values, cli_json *json)
{
    switch (format) {
    case TEXT:
        print_text(j, i, values, ' ');
        break;
    case TSV:
        print_text(j, i, values, '\t');
        break;
    case JSON:
        json_row(j, i, values, json);
        break;
    case JSONL:
        json->comma = false;
        json_row(j, i, values, json);
        putchar('\n');
        break;
    default:
        print_raw(j, values);
        break;
    }
}

static int print_rows(const job *j, int format, cli_json *json)
{
    size_t dim = embla_table_dim(j->asked.table), row_bytes = dim * sizeof(float);
    size_t most = row_bytes < PIECE_BYTES ? PIECE_BYTES / row_bytes : 1;
    const embla_lookup_options options = {.threads = j->threads};
    float *values = malloc(most * row_bytes);
    int code = values ? CLI_DONE : cli_failed("no memory for %zu rows", most);
    for (size_t at = 0; at < j->tokens.count && code == CLI_DONE; at += most) {
        size_t count = j->tokens.count - at < most ? j->tokens.count - at : most;
        if (embla_lookup_rows(j->asked.table, j->rows + at, count, &options, values) != EMBLA_OK)
            code = cli_failed("%s", embla_error());
        for (size_t i = 0; i < count && code == CLI_DONE; i++)
            print_row(j, format, at + i, values + i * dim, json);
    }
    free(values);
    return code;
}

static int print_data(const job *j, int format)
{
    cli_json json = {0};
    if (format == NPY) print_npy_header(j);
    if (format == JSON) {
        cli_json_open(&json, NULL, '{');
        cli_json_whole(&json, "dim", (int64_t)j->dim);
        cli_json_text(&json, "dtype", "f32");
        cli_json_open(&json, "rows", '[');
    }
    int code = print_rows(j, format, &json);
    if (format == JSON) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
    return code;
}

/* ---- picture ---- */

static int print_picture(const cli_args *args, const job *j)
{
    cli_picture picture = {.table = j->asked.table,
                           .tokens = j->tokens.ids,
                           .rows = j->rows,
                           .count = j->tokens.count,
                           .dim = j->dim,
                           .vocab = j->asked.vocab,
                           .mapped = j->asked.model.facts.mapping != NULL,
                           .color = cli_color_wanted(cli_args_text(args, "color"))};
    const embla_facts *facts = &j->asked.model.facts;
    char text[CLI_SENTENCE];
    bool drawn = true;
    int code = j->tokens.count > 0 ? cli_picture_draw(&picture, &drawn) : CLI_DONE;
    if (code == CLI_DONE && !drawn) return print_data(j, TEXT);
    if (code != CLI_DONE || cli_args_flag(args, "quiet")) return code;
    const char *scaling = cli_model_scaling(&j->asked.model, text);
    if (scaling || facts->mapping || facts->weights) putchar('\n');
    if (facts->mapping) cli_out_fact("mapping", "token>row, from tensor '%.64s'", facts->mapping);
    if (facts->weights)
        cli_out_fact("weights",
                     "rows are shown as stored; the model multiplies each by the weight of its "
                     "token, from tensor '%.64s'",
                     facts->weights);
    if (scaling) cli_out_fact("scaling", "%s", scaling);
    return code;
}

/* ---- output ---- */

static int open_output(const cli_args *args, const job *j, int format)
{
    const char *path = cli_args_text(args, "output");
    if (!path && (format == NPY || format == RAW) && isatty(STDOUT_FILENO))
        return cli_usage("%s is binary and not for a terminal; use --output FILE or a pipe",
                         format_names[format]);
    if (!path) return CLI_DONE;
    if (cli_model_has_file(&j->asked.model, path))
        return cli_failed("%s is the input file and cannot be overwritten; choose another name",
                          path);
    return cli_out_to(path, cli_args_flag(args, "force"));
}

/* ---- the verb ---- */

static int set_up(const cli_args *args, job *j)
{
    int code = cli_asked_open(args, args->operands[0], &j->asked);
    if (code != CLI_DONE) return code;
    j->dim = embla_table_dim(j->asked.table);
    j->threads = (int)cli_args_count(args, "threads");
    if (cli_args_given(args, "dim")) {
        int64_t dim = cli_args_count(args, "dim");
        if (dim < 1 || dim > (int64_t)j->dim)
            return cli_usage("--dim is %" PRId64
                             "; it must be between 1 and %zu, the dim of the table",
                             dim, j->dim);
        j->dim = (size_t)dim;
    }
    code = tokens_of(args, j);
    return code == CLI_DONE ? cli_asked_rows(&j->asked, &j->tokens, &j->rows) : code;
}

static int run(const cli_args *args)
{
    job j = {0};
    int format = format_of(args);
    if (args->operand_count < 2 && !cli_args_given(args, "ids"))
        return cli_usage("lookup needs a TOKEN, or --ids; '-' reads tokens from standard input");
    if (cli_args_flag(args, "json") && format != JSON)
        return cli_usage("--json and --format %s cannot be used together", format_names[format]);
    if (cli_args_flag(args, "plain") && format != TEXT)
        return cli_usage("--plain and --%s%s cannot be used together",
                         cli_args_flag(args, "json") ? "json" : "format ",
                         cli_args_flag(args, "json") ? "" : format_names[format]);
    int code = set_up(args, &j);
    if (code == CLI_DONE) code = open_output(args, &j, format);
    if (code == CLI_DONE)
        code = format == PICTURE ? print_picture(args, &j) : print_data(&j, format);
    code = cli_out_done(code);
    free(j.rows);
    cli_tokens_free(&j.tokens);
    cli_asked_free(&j.asked);
    return code;
}

static const cli_option options[] = {
    {.name = "ids",
     .value = "LIST",
     .help = "token numbers, such as 2,5,7; - reads them from standard input"},
    {.name = "dim",
     .value = "N",
     .count = true,
     .help = "print only the first N numbers of each row"},
    {.name = "format",
     .value = "FORMAT",
     .standard = "picture",
     .choices = format_name,
     .help = "output format"},
    {.name = "plain", .help = "same as --format text"},
    {.name = "output", .letter = 'o', .value = "FILE", .help = "write to FILE"},
    {.name = "force", .help = "replace FILE if it exists"},
    {.name = "color",
     .value = "WHEN",
     .standard = "auto",
     .choices = cli_color_name,
     .help = "use colour in the picture; auto means on a terminal, unless NO_COLOR is set"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_lookup = {
    .name = "lookup",
    .synopsis = "FILE [TOKEN]...",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = CLI_OPERANDS_MOST,
    .about = "print the rows of tokens, as a picture or as data",
    .text =
        "FILE is a checkpoint as for 'embla info'. TOKEN is a word of its vocabulary, exactly as "
        "stored (' he' with its space), or '#5' for token 5; quote both. - reads one token per "
        "line from standard input. Lines may end in CR LF. An empty line is the empty word, or an "
        "error if there is no such word. After a backslash everything is a word: '\\#5' is the "
        "word #5, '\\-' is the word -, and two backslashes begin a word with a backslash.\n\n"
        "The picture shows the tokens, their rows in the table and the result. It is as wide as "
        "the terminal (or COLUMNS); below 30 columns text is printed instead. The other formats "
        "contain all numbers, exactly:\n- text: token, word and numbers; tabs between the "
        "three;\n- tsv: the same with tabs between all numbers;\n- json: one object; null for a "
        "number that is not finite;\n- jsonl: one object per row;\n- npy, raw: little-endian "
        "f32.\nBackslashes and invisible characters in words are escaped (\\n, \\x1b). A token "
        "without a row is an error, and nothing is printed.",
    .example = "embla lookup words.vec king queen cat",
    .options = options,
    .run = run};
