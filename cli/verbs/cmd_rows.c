/* SPDX-License-Identifier: Apache-2.0 */
/* embla rows: shows which rows of a giant table the tokens of a text select.
 *
 * The hasher comes from a known model (--model) or from a checkpoint. Each token is printed with
 * its n-grams, and each n-gram with its rows. With a checkpoint the rows themselves
 * can be printed too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_store.h"

#include "core/model_text.h"
#include "core/out.h"
#include "core/token.h"
#include "core/verbs.h"
#include "core/visible.h"
#include "verbs/rows_job.h"
#include "verbs/rows_stats.h"

enum { VALUES_MOST = 64 };

typedef struct {
    cli_rows_job rows;  /* hasher, tokens, row numbers */
    embla_store *store; /* NULL means no --values */
    size_t dim, shown;  /* numbers of a row, and how many are printed */
    float *values;      /* tokens x rows_per_token x dim */
    bool counted;       /* --stats */
    cli_rows_stats stats;
} job;

static const char *const kinds[] = {"identity", "engram", "qwen", "longcat"};

static int library_error(void)
{
    return cli_failed("%s", embla_error());
}

/* ---- values ---- */

static int open_store(const cli_args *args, job *j)
{
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED};
    embla_store_info about;
    int32_t layer = cli_rows_layer(args);
    if (embla_store_open(j->rows.model.checkpoint, NULL, layer, &options, &j->store) != EMBLA_OK ||
        embla_store_describe(j->store, &about) != EMBLA_OK)
        return library_error();
    if (about.rows < j->rows.info.used)
        return cli_failed("the table has %" PRId64 " rows, but n-grams select among %" PRId64,
                          about.rows, j->rows.info.used);
    j->dim = about.format.dim;
    if (j->shown > j->dim) j->shown = j->dim;
    return CLI_DONE;
}

static int read_values(job *j)
{
    size_t count = j->rows.tokens.count * j->rows.info.rows_per_token;
    const embla_store_lookup_options options = {.rows_per_token = j->rows.info.rows_per_token};
    if (!j->store) return CLI_DONE;
    j->values =
        count <= SIZE_MAX / sizeof(float) / j->dim ? malloc(count * j->dim * sizeof(float)) : NULL;
    if (!j->values) return cli_failed("no memory for %zu rows of %zu numbers", count, j->dim);
    if (embla_store_lookup(j->store, j->rows.rows, count, &options, j->values) != EMBLA_OK)
        return library_error();
    return CLI_DONE;
}

/* ---- JSON ---- */

static void json_list(cli_json *json, const char *key, const int64_t *numbers, size_t count)
{
    if (!numbers) return;
    cli_json_open(json, key, '[');
    for (size_t i = 0; i < count; i++) cli_json_whole(json, NULL, numbers[i]);
    cli_json_close(json, ']');
}

static void json_token(const job *j, size_t t, cli_json *json)
{
    size_t columns = j->rows.info.rows_per_token, length;
    const embla_vocab *vocab = j->rows.model_name ? NULL : j->rows.model.vocab;
    const char *word = cli_word_of(vocab, j->rows.ids[t], &length);
    cli_json_open(json, NULL, '{');
    cli_json_whole(json, "token", j->rows.ids[t]);
    if (word) (void)cli_json_bytes(json, "word", word, length);
    json_list(json, "rows", j->rows.rows + t * columns, columns);
    if (j->values) {
        cli_json_open(json, "values", '[');
        for (size_t c = 0; c < columns; c++) {
            const float *row = j->values + (t * columns + c) * j->dim;
            cli_json_open(json, NULL, '[');
            for (size_t k = 0; k < j->shown; k++) cli_json_real(json, NULL, row[k]);
            cli_json_close(json, ']');
        }
        cli_json_close(json, ']');
    }
    cli_json_close(json, '}');
}

static void print_json(const job *j)
{
    const embla_ngram_info *info = &j->rows.info;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    if (j->rows.model_name) cli_json_text(&json, "model", j->rows.model_name);
    cli_json_text(&json, "hasher", kinds[info->kind]);
    cli_json_whole(&json, "layer", info->layer);
    cli_json_whole(&json, "tokens_below", info->tokens);
    if (j->rows.checksum[0]) cli_json_text(&json, "fold_checksum", j->rows.checksum);
    cli_json_whole(&json, "rows_in_table", info->rows);
    cli_json_whole(&json, "rows_used", info->used);
    cli_json_whole(&json, "orders", info->orders);
    cli_json_whole(&json, "rows_per_ngram", info->rows_per_ngram);
    cli_json_whole(&json, "rows_per_token", (int64_t)info->rows_per_token);
    json_list(&json, "multipliers", info->multipliers, (size_t)info->orders);
    json_list(&json, "sizes", info->sizes, info->rows_per_token);
    json_list(&json, "offsets", info->offsets, info->rows_per_token);
    cli_json_open(&json, "tokens", '[');
    for (size_t t = 0; t < j->rows.tokens.count; t++) json_token(j, t, &json);
    cli_json_close(&json, ']');
    if (j->counted) cli_rows_stats_json(&j->stats, &json);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- text ---- */

static void print_facts(const job *j)
{
    const embla_ngram_info *info = &j->rows.info;
    char rows[CLI_CELL], used[CLI_CELL], columns[CLI_CELL];
    if (info->kind == EMBLA_NGRAM_IDENTITY)
        cli_out_fact("hasher", "identity: the row number equals the token number");
    else
        cli_out_fact("hasher", "%s: n-grams of 2 to %d tokens, %d rows each: %s per token",
                     kinds[info->kind], (int)info->orders, (int)info->rows_per_ngram,
                     cli_plural((int64_t)info->rows_per_token, "row", columns));
    if (j->rows.checksum[0])
        cli_out_fact("fold", "%s tokens to %s, checksum %s", cli_commas(info->tokens, rows),
                     cli_commas(info->vocab, used), j->rows.checksum);
    if (info->used == info->rows)
        cli_out_fact("table", "%s", cli_plural(info->rows, "row", rows));
    else
        cli_out_fact("table", "%s, %s of them used", cli_plural(info->rows, "row", rows),
                     cli_commas(info->used, used));
    if (info->kind == EMBLA_NGRAM_ENGRAM || info->kind == EMBLA_NGRAM_QWEN) {
        char text[512] = "";
        size_t at = 0;
        for (int i = 0; i < info->orders && at < sizeof text - 64; i++) {
            at += (size_t)snprintf(text + at, sizeof text - at, i ? " xor t[-%d]" : "t", i);
            at += (size_t)snprintf(text + at, sizeof text - at, "*%" PRId64, info->multipliers[i]);
        }
        cli_out_fact("rule", "mix = %s; row = mix mod size + offset", text);
    } else if (info->kind == EMBLA_NGRAM_LONGCAT) {
        cli_out_fact("rule", "row = (t + t[-1]*V + t[-2]*V*V ..) mod size + offset, V = %" PRId64,
                     info->vocab);
    }
}

/* The tokens of an n-gram, oldest first; "." for positions before the start of the text or before
 * an EOS. */
static void ngram_text(const job *j, size_t t, size_t n, char *out, size_t size)
{
    size_t at = 0;
    bool cut = false;
    char parts[9][16];
    for (size_t s = 0; s < n; s++) {
        int64_t k = (int64_t)t - (int64_t)s;
        int32_t id = k >= 0 ? j->rows.ids[k] : j->rows.history[(int64_t)j->rows.info.history + k];
        bool ends = j->rows.info.kind != EMBLA_NGRAM_ENGRAM && id == j->rows.info.eos;
        cut = cut || id < 0 || (s > 0 && ends);
        (void)snprintf(parts[s], sizeof parts[s], cut ? "." : "%" PRId32, id);
    }
    for (size_t s = n; s-- > 0 && at < size;)
        at += (size_t)snprintf(out + at, size - at, "%s%s", parts[s], s ? " " : "");
}

static void print_values(const job *j, size_t t, size_t c)
{
    const float *row = j->values + (t * j->rows.info.rows_per_token + c) * j->dim;
    printf("      hash %-2zu row %" PRId64 ":", c % (size_t)j->rows.info.rows_per_ngram,
           j->rows.rows[t * j->rows.info.rows_per_token + c]);
    for (size_t k = 0; k < j->shown; k++) printf(" %.6g", (double)row[k]);
    printf("%s\n", j->shown < j->dim ? " .." : "");
}

/* Prints one n-gram and its rows, as many on a line as fit. */
static void print_ngram(const job *j, size_t t, size_t order, size_t label, int cell)
{
    size_t each = order == 1 ? 1 : (size_t)j->rows.info.rows_per_ngram;
    size_t first = order == 1 ? 0 : (order - 2) * each;
    const int64_t *rows = j->rows.rows + t * j->rows.info.rows_per_token + first;
    char text[160], number[CLI_CELL];
    ngram_text(j, t, order, text, sizeof text);
    int indent = 2 + (int)label;
    size_t fit = (size_t)((cli_out_width() - indent) / (cell + 2));
    if (fit < 1) fit = 1;
    if (fit >= each) fit = each;
    if (fit > 4 && fit < each) fit = 4; /* 8 rows: two lines of four read best */
    printf("  %-*s", (int)label, text);
    for (size_t h = 0; h < each; h++) {
        if (h > 0 && h % fit == 0) printf("\n%*s", indent, "");
        printf("  %*s", cell, cli_commas(rows[h], number));
    }
    putchar('\n');
    for (size_t h = 0; j->values && h < each; h++) print_values(j, t, first + h);
}

static void print_text(const cli_args *args, const job *j)
{
    const embla_vocab *vocab = j->rows.model_name ? NULL : j->rows.model.vocab;
    size_t most = j->rows.info.kind == EMBLA_NGRAM_IDENTITY ? 1 : (size_t)j->rows.info.orders;
    size_t least = most == 1 ? 1 : 2, label = 0;
    char text[160], number[CLI_CELL], shown[CLI_WORD_TEXT];
    int cell = (int)strlen(cli_commas(j->rows.info.rows - 1, number));
    if (!cli_args_flag(args, "quiet")) print_facts(j);
    for (size_t t = 0; t < j->rows.tokens.count; t++) {
        ngram_text(j, t, most, text, sizeof text);
        if (strlen(text) > label) label = strlen(text);
    }
    for (size_t t = 0; t < j->rows.tokens.count; t++) {
        size_t length;
        const char *word = cli_word_of(vocab, j->rows.ids[t], &length);
        if (word) (void)cli_word_show(word, length, false, CLI_WORD_COLUMNS, shown);
        printf("\n#%" PRId32 "%s%s\n", j->rows.ids[t], word ? "  " : "", word ? shown : "");
        for (size_t order = least; order <= most; order++) print_ngram(j, t, order, label, cell);
    }
}

/* ---- the verb ---- */

static int list(bool as_json)
{
    cli_json json = {0};
    if (as_json) cli_json_open(&json, NULL, '[');
    for (size_t n = 0; embla_ngram_model_name(n); n++)
        if (as_json)
            cli_json_text(&json, NULL, embla_ngram_model_name(n));
        else
            puts(embla_ngram_model_name(n));
    if (as_json) {
        cli_json_close(&json, ']');
        putchar('\n');
    }
    return CLI_DONE;
}

static int run_job(const cli_args *args, job *j)
{
    int code = cli_rows_hash(args, &j->rows);
    if (code == CLI_DONE && j->shown > 0) code = open_store(args, j);
    if (code == CLI_DONE) code = read_values(j);
    if (code == CLI_DONE && j->counted)
        code =
            cli_rows_stats_read(j->rows.model.checkpoint, cli_rows_layer(args), j->rows.rows,
                                j->rows.tokens.count, j->rows.info.rows_per_token, NULL, &j->stats);
    if (code != CLI_DONE) return code;
    if (cli_args_flag(args, "json"))
        print_json(j);
    else
        print_text(args, j);
    if (j->counted && !cli_args_flag(args, "json")) cli_rows_stats_print(&j->stats);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    job j = {.rows = {.model_name = cli_args_text(args, "model")},
             .counted = cli_args_flag(args, "stats")};
    if (cli_args_flag(args, "list")) return list(cli_args_flag(args, "json"));
    if (!j.rows.model_name && args->operand_count == 0)
        return cli_usage("rows needs a FILE, or --model NAME");
    if (cli_args_count(args, "values") > VALUES_MOST)
        return cli_usage("--values is %" PRId64 "; the maximum is %d",
                         cli_args_count(args, "values"), (int)VALUES_MOST);
    j.shown = cli_args_size(args, "values");
    if (j.shown > 0 && j.rows.model_name)
        return cli_usage("--values needs a FILE: --model gives row numbers only");
    if (j.counted && j.rows.model_name)
        return cli_usage("--stats needs a FILE: --model gives row numbers only");
    int code = run_job(args, &j);
    free(j.values);
    embla_store_free(j.store);
    cli_rows_free(&j.rows);
    return code;
}

static const cli_option options[] = {
    CLI_ROWS_OPTIONS,
    {.name = "values",
     .value = "N",
     .count = true,
     .standard = "0",
     .help = "also print the first N numbers of each row"},
    {.name = "stats",
     .help =
         "read the rows from disk past the page cache, token by token, and print what that costs"},
    {.name = "list", .help = "print the names of known models"},
    CLI_TOKENIZER_OPTION,
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_rows = {
    .name = "rows",
    .synopsis = "[FILE] [TOKEN]...",
    .operand = "TOKEN",
    .operands_most = CLI_OPERANDS_MOST,
    .files = 1,
    .instead = "model",
    .about = "show which rows of a giant table tokens select",
    .text = "A giant table is indexed by a hash of the last few tokens. FILE is a checkpoint that "
            "describes the hasher (config.json, GGUF keys); alternatively --model names a known "
            "model. TOKEN is a number. If FILE has a vocabulary, TOKEN is a word of it or '#5'; "
            "quote both. What is no word is text, which the tokenizer of FILE or of --tokenizer "
            "cuts. - reads one on each line from standard input. An unknown word is an error, "
            "because without it the n-grams would be others.\n\n"
            "For each token the n-grams that end in it are printed, with the row that each head "
            "selects, in head order. A dot stands for a position before the start of the text or "
            "before an end-of-text token. With --json the output is one object, which includes the "
            "constants of the hasher.",
    .example = "embla rows village t h e",
    .options = options,
    .run = run};
