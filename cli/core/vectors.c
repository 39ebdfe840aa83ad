/* SPDX-License-Identifier: Apache-2.0 */
/* Prints vectors of tokens as text, JSON, npy or raw numbers.
 */
#include "core/vectors.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/ending.h"
#include "core/inputs.h"
#include "draw/tables.h"
#include "host/host.h"

enum { PIECE_BYTES = 4 << 20 };

/* ---- options ---- */

static const char *const formats[] = {"picture", "svg",   "png", "html", "text",  "tsv",
                                      "json",    "jsonl", "npy", "raw",  "fvecs", "sql"};
enum { FORMATS = sizeof formats / sizeof formats[0] };

const char *cli_vectors_format(size_t n)
{
    return n < CLI_VECTORS_SQL ? formats[n] : NULL;
}

const char *cli_vectors_text_format(size_t n)
{
    n += CLI_VECTORS_TEXT;
    return n < FORMATS ? formats[n] : NULL;
}

int cli_vectors_choose(const cli_args *args, cli_choices list, bool plain, cli_vectors_form *out)
{
    const char *format = cli_args_given(args, "format") ? cli_args_text(args, "format") : NULL;
    const bool json = cli_args_flag(args, "json");
    const char *name = format ? format : json ? "json" : plain ? "text" : NULL;
    if (json && strcmp(name, "json") != 0)
        return cli_usage("--json and --format %s cannot be used together", name);
    if (plain && strcmp(name, "text") != 0)
        return cli_usage("--plain and --%s%s cannot be used together", format ? "format " : "",
                         name);
    int code = cli_ending_choose(args, list, name, &name);
    if (code != CLI_DONE) return code;
    if (!name) name = list(0);
    for (int i = 0; i < FORMATS; i++)
        if (strcmp(name, formats[i]) == 0) *out = (cli_vectors_form)i;
    return CLI_DONE;
}

bool cli_vectors_is_sheet(cli_vectors_form form, cli_sheet_kind *kind)
{
    bool sheet = form >= CLI_VECTORS_SVG && form <= CLI_VECTORS_HTML;
    if (sheet) *kind = (cli_sheet_kind)(form - CLI_VECTORS_SVG);
    return sheet;
}

static int read_tokens(const cli_args *args, cli_vectors *v)
{
    const char *ids = cli_args_text(args, "ids");
    int code = CLI_DONE;
    v->tokens.strict = v->tokens.strict || v->form == CLI_VECTORS_NPY ||
                       v->form == CLI_VECTORS_RAW || v->form == CLI_VECTORS_FVECS;
    if (v->unseen) cli_asked_allow_unseen(&v->asked, &v->tokens);
    code = cli_asked_allow_text(args, false, &v->asked, &v->tokens);
    if (code != CLI_DONE) return code;
    if (ids && strcmp(ids, "-") == 0)
        code = cli_tokens_lines(&v->tokens, v->asked.vocab, true);
    else if (ids)
        code = cli_tokens_list(&v->tokens, ids, "--ids");
    return code == CLI_DONE ? cli_asked_tokens(args, &v->asked, &v->tokens) : code;
}

int cli_vectors_open(const cli_args *args, bool unseen, bool sequence, cli_vectors *v)
{
    *v = (cli_vectors){.threads = (int)cli_args_count(args, "threads"),
                       .tokens.strict = sequence,
                       .unseen = unseen};
    if (args->operand_count < 2 && !cli_args_given(args, "ids"))
        return cli_usage("%s needs a TOKEN, or --ids; '-' reads tokens from standard input",
                         args->verb->name);
    int code = cli_vectors_choose(args, cli_vectors_format, cli_args_flag(args, "plain"), &v->form);
    if (code == CLI_DONE) code = cli_asked_open(args, args->operands[0], &v->asked);
    if (code != CLI_DONE) return code;
    v->dim = embla_table_dim(v->asked.table);
    if (cli_args_given(args, "dim")) {
        int64_t dim = cli_args_count(args, "dim");
        if (dim < 1 || dim > (int64_t)v->dim)
            return cli_usage("--dim is %" PRId64
                             "; it must be between 1 and %zu, the dim of the table",
                             dim, v->dim);
        v->dim = cli_as_size(dim);
    }
    code = read_tokens(args, v);
    return code == CLI_DONE ? cli_asked_rows(&v->asked, &v->tokens, &v->rows) : code;
}

void cli_vectors_free(cli_vectors *v)
{
    free(v->rows);
    cli_tokens_free(&v->tokens);
    cli_asked_free(&v->asked);
}

int cli_vectors_redirect(const cli_args *args, cli_vectors_form form)
{
    const char *path = cli_args_text(args, "output");
    int code = path ? cli_inputs_check(args, path) : CLI_DONE;
    if (code != CLI_DONE) return code;
    if (path) return cli_out_to(path, cli_args_flag(args, "force"));
    bool binary = form == CLI_VECTORS_NPY || form == CLI_VECTORS_RAW || form == CLI_VECTORS_FVECS ||
                  form == CLI_VECTORS_PNG;
    if (binary && cli_is_terminal(CLI_STDOUT))
        return cli_usage("%s is binary and not for a terminal; use --output FILE or a pipe",
                         formats[form]);
    return CLI_DONE;
}

/* ---- formats ---- */

static void print_text(const cli_vectors *v, size_t i, const float *values, char gap)
{
    int64_t token = v->tokens.ids[i];
    size_t length;
    if (token >= 0)
        printf("%" PRId64 "\t", token);
    else
        fputs("-\t", stdout);
    if (token < 0 || cli_word_of(v->asked.vocab, token, &length)) cli_token_write(&v->asked, token);
    for (size_t k = 0; k < v->dim; k++) printf("%c%.9g", k == 0 ? '\t' : gap, (double)values[k]);
    putchar('\n');
}

static void json_vector(const cli_vectors *v, const cli_vectors_source *source, size_t i,
                        const float *values, cli_json *json)
{
    cli_json_open(json, NULL, '{');
    if (v->tokens.ids[i] >= 0) {
        cli_json_whole(json, "id", v->tokens.ids[i]);
        cli_json_whole(json, "row", v->rows[i]);
    } else {
        cli_json_text(json, "id", NULL);
        cli_json_text(json, "row", NULL);
    }
    cli_token_json(&v->asked, v->tokens.ids[i], json);
    if (source->json_token) source->json_token(source->context, i, json);
    cli_json_open(json, "values", '[');
    for (size_t k = 0; k < v->dim; k++) cli_json_real(json, NULL, values[k]);
    cli_json_close(json, ']');
    cli_json_close(json, '}');
}

void cli_vectors_raw(const float *values, size_t dim)
{
    unsigned char bytes[4096];
    size_t used = 0;
    for (size_t k = 0; k < dim; k++) {
        uint32_t bits;
        memcpy(&bits, &values[k], 4);
        for (int b = 0; b < 4; b++) bytes[used++] = (unsigned char)(bits >> (8 * b));
        if (used < sizeof bytes && k + 1 < dim) continue;
        (void)fwrite(bytes, 1, used, stdout);
        used = 0;
    }
}

void cli_vectors_fvecs(const float *values, size_t dim)
{
    for (int b = 0; b < 4; b++) putchar((int)(dim >> (8 * b) & 0xff));
    cli_vectors_raw(values, dim);
}

void cli_vectors_npy(size_t rows, size_t dim)
{
    char text[160];
    int used =
        snprintf(text, sizeof text,
                 "{'descr': '<f4', 'fortran_order': False, 'shape': (%zu, %zu), }", rows, dim);
    int all = (10 + used + 1 + 63) / 64 * 64 - 10;
    (void)fwrite("\x93NUMPY\x01\x00", 1, 8, stdout);
    putchar(all & 0xff);
    putchar(all >> 8);
    printf("%s%*s\n", text, all - used - 1, "");
}

static void print_vector(const cli_vectors *v, const cli_vectors_source *source, size_t i,
                         const float *values, cli_json *json)
{
    switch (v->form) {
    case CLI_VECTORS_PICTURE:
    case CLI_VECTORS_TEXT:
        print_text(v, i, values, ' ');
        break;
    case CLI_VECTORS_TSV:
        print_text(v, i, values, '\t');
        break;
    case CLI_VECTORS_JSON:
        json_vector(v, source, i, values, json);
        break;
    case CLI_VECTORS_JSONL:
        json->comma = false;
        json_vector(v, source, i, values, json);
        putchar('\n');
        break;
    case CLI_VECTORS_FVECS:
        cli_vectors_fvecs(values, v->dim);
        break;
    default:
        cli_vectors_raw(values, v->dim);
        break;
    }
}

static int print_vectors(const cli_vectors *v, const cli_vectors_source *source, cli_json *json)
{
    size_t dim = embla_table_dim(v->asked.table), bytes = dim * sizeof(float);
    size_t most = bytes < PIECE_BYTES ? PIECE_BYTES / bytes : 1;
    float *values = malloc(most * bytes);
    int code = values ? CLI_DONE : cli_failed("no memory for %zu rows", most);
    for (size_t at = 0; at < v->tokens.count && code == CLI_DONE; at += most) {
        size_t count = v->tokens.count - at < most ? v->tokens.count - at : most;
        code = source->make(source->context, at, count, values);
        for (size_t i = 0; i < count && code == CLI_DONE; i++)
            print_vector(v, source, at + i, values + i * dim, json);
    }
    free(values);
    return code;
}

int cli_vectors_print(const cli_vectors *v, const cli_vectors_source *source)
{
    cli_json json = {0};
    if (v->form == CLI_VECTORS_NPY) cli_vectors_npy(v->tokens.count, v->dim);
    if (v->form == CLI_VECTORS_JSON) {
        cli_json_open(&json, NULL, '{');
        cli_json_whole(&json, "dim", (int64_t)v->dim);
        cli_json_text(&json, "dtype", "f32");
        if (source->json) source->json(source->context, &json);
        cli_json_open(&json, "rows", '[');
    }
    int code = print_vectors(v, source, &json);
    if (v->form == CLI_VECTORS_JSON) {
        cli_json_close(&json, ']');
        cli_json_close(&json, '}');
        putchar('\n');
    }
    return code;
}

/* ---- pictures ---- */

size_t cli_vectors_numbers(const cli_args *args, const cli_vectors *v)
{
    const size_t most = cli_args_given(args, "dim") ? CLI_TABLES_WIDE : CLI_TABLES_NUMBERS;
    return v->dim < most ? v->dim : most;
}

cli_pen_tokens cli_vectors_tokens(const cli_vectors *v)
{
    return (cli_pen_tokens){.tokens = v->tokens.ids,
                            .rows = v->rows,
                            .count = v->tokens.count,
                            .vocab = v->asked.vocab,
                            .mapped = v->asked.model.facts.mapping != NULL};
}

void cli_vectors_facts(const cli_vectors *v)
{
    const embla_facts *facts = &v->asked.model.facts;
    if (facts->mapping) cli_out_fact("mapping", "token>row, from tensor '%.64s'", facts->mapping);
    if (facts->weights)
        cli_out_fact("weights",
                     "rows are shown as stored; the model multiplies each by the weight of its "
                     "token, from tensor '%.64s'",
                     facts->weights);
}
