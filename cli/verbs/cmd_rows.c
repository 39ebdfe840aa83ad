/* SPDX-License-Identifier: Apache-2.0 */
/* embla rows: shows which rows of a giant table the tokens of a text select.
 *
 * The hasher comes from a known model (--model) or from a checkpoint. Each token is printed with
 * its n-grams, and each n-gram with the rows of its heads. With a checkpoint the rows themselves
 * can be printed too.
 */
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "embla_store.h"

#include "core/model.h"
#include "core/out.h"
#include "core/token.h"
#include "core/verbs.h"
#include "core/visible.h"

enum { VALUES_MOST = 64, HISTORY_MOST = 16 };

typedef struct {
    const char *model_name; /* NULL means that a checkpoint is used */
    cli_model model;        /* the checkpoint */
    embla_fold *fold;
    embla_ngram *ngram;
    embla_ngram_info info;
    char checksum[33];  /* of the fold; empty if none is used */
    embla_store *store; /* NULL means no --values */
    size_t dim, shown;  /* numbers of a row, and how many are printed */
    cli_tokens tokens;
    int32_t *ids;
    int32_t history[HISTORY_MOST]; /* the tokens before, oldest first; -1 means none */
    int64_t *rows;                 /* tokens x columns */
    float *values;                 /* tokens x columns x dim */
} job;

static const char *const kinds[] = {"identity", "engram", "qwen", "longcat"};

/* ---- reading tokens ---- */

static int library_error(void)
{
    return cli_failed("%s", embla_error());
}

/* A token number, with or without #. */
static int add_token_number(cli_tokens *tokens, const char *text)
{
    return cli_tokens_list(tokens, *text == '#' ? text + 1 : text, "TOKEN");
}

static int read_tokens(const cli_args *args, job *j)
{
    const embla_vocab *vocab = j->model_name ? NULL : j->model.vocab;
    const char *ids = cli_args_text(args, "ids");
    int code = CLI_DONE;
    if (ids && strcmp(ids, "-") == 0)
        code = cli_tokens_lines(&j->tokens, vocab, true);
    else if (ids)
        code = cli_tokens_list(&j->tokens, ids, "--ids");
    for (size_t i = j->model_name ? 0 : 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *word = args->operands[i];
        code = vocab ? cli_tokens_word(&j->tokens, vocab, word, strlen(word))
                     : add_token_number(&j->tokens, word);
    }
    if (code == CLI_DONE && vocab) code = cli_tokens_finish(&j->tokens, vocab);
    if (code == CLI_DONE && j->tokens.count == 0) code = cli_usage("rows needs a TOKEN, or --ids");
    return code;
}

/* Reads the last tokens of --history; missing older ones are -1. */
static int read_history(const cli_args *args, job *j)
{
    cli_tokens tokens = {0};
    const char *text = cli_args_text(args, "history");
    size_t room = j->info.history;
    for (size_t i = 0; i < HISTORY_MOST; i++) j->history[i] = -1;
    if (!text) return CLI_DONE;
    int code = cli_tokens_list(&tokens, text, "--history");
    for (size_t i = 0; i < room && i < tokens.count && code == CLI_DONE; i++) {
        int64_t id = tokens.ids[tokens.count - 1 - i];
        if (id < 0 || id >= j->info.tokens)
            code = cli_failed("--history: token %" PRId64
                              " is out of range; tokens are below %" PRId64,
                              id, j->info.tokens);
        else
            j->history[room - 1 - i] = (int32_t)id;
    }
    cli_tokens_free(&tokens);
    return code;
}

/* ---- hasher, row numbers, values ---- */

/* -1 means the first layer with a table. */
static int32_t layer_of(const cli_args *args)
{
    int64_t layer = cli_args_count(args, "layer");
    if (!cli_args_given(args, "layer")) return -1;
    return layer < INT32_MAX ? (int32_t)layer : INT32_MAX;
}

static int open_hasher(const cli_args *args, job *j)
{
    const char *fold = cli_args_text(args, "fold");
    int32_t layer = layer_of(args);
    if (fold && embla_fold_open(fold, &j->fold) != EMBLA_OK) return library_error();
    if (!j->model_name) {
        int code = cli_model_open(args, args->operands[0], &j->model);
        if (code != CLI_DONE) return code;
    }
    embla_status status = j->model_name
                              ? embla_ngram_new_model(j->model_name, layer, j->fold, &j->ngram)
                              : embla_ngram_open(j->model.checkpoint, layer, j->fold, &j->ngram);
    if (status != EMBLA_OK) return library_error();
    const char *wanted = cli_args_text(args, "fold-checksum");
    const embla_fold *used = embla_ngram_fold(j->ngram);
    if (wanted && !used)
        return cli_failed("--fold-checksum is %.64s, but no fold is used; give one with --fold",
                          wanted);
    if (wanted && (status = embla_fold_require(used, wanted)) != EMBLA_OK)
        return status == EMBLA_ERR_ARGUMENT ? cli_usage("--fold-checksum: %s", embla_error())
                                            : library_error();
    if (used) embla_fold_checksum(used, j->checksum);
    embla_ngram_describe(j->ngram, &j->info);
    if (j->info.history > HISTORY_MOST)
        return cli_failed("n-grams of %d tokens are unsupported; the maximum is %d",
                          (int)j->info.orders, (int)HISTORY_MOST + 1);
    return CLI_DONE;
}

static int open_store(const cli_args *args, job *j)
{
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_MAPPED};
    embla_store_info about;
    int32_t layer = layer_of(args);
    if (embla_store_open(j->model.checkpoint, NULL, layer, &options, &j->store) != EMBLA_OK ||
        embla_store_describe(j->store, &about) != EMBLA_OK)
        return library_error();
    if (about.rows < j->info.used)
        return cli_failed("the table has %" PRId64 " rows, but n-grams select among %" PRId64,
                          about.rows, j->info.used);
    j->dim = about.format.dim;
    if (j->shown > j->dim) j->shown = j->dim;
    return CLI_DONE;
}

static int compute_rows(job *j)
{
    size_t count = j->tokens.count, columns = j->info.columns;
    int32_t history[HISTORY_MOST];
    const embla_ngram_options options = {.history = j->info.history > 0 ? history : NULL};
    memcpy(history, j->history, sizeof history);
    j->ids = malloc(count * sizeof *j->ids);
    j->rows = count <= SIZE_MAX / sizeof *j->rows / columns
                  ? malloc(count * columns * sizeof *j->rows)
                  : NULL;
    if (!j->ids || !j->rows) return cli_failed("no memory for the rows of %zu tokens", count);
    for (size_t i = 0; i < count; i++) {
        if (j->tokens.ids[i] < 0 || j->tokens.ids[i] >= j->info.tokens)
            return cli_failed("token %" PRId64
                              " at index %zu is out of range; tokens are below %" PRId64,
                              j->tokens.ids[i], i, j->info.tokens);
        j->ids[i] = (int32_t)j->tokens.ids[i];
    }
    if (embla_ngram_rows(j->ngram, j->ids, 1, count, &options, j->rows) != EMBLA_OK)
        return library_error();
    return CLI_DONE;
}

static int read_values(job *j)
{
    size_t count = j->tokens.count * j->info.columns;
    const embla_store_lookup_options options = {.heads = j->info.columns};
    if (!j->store) return CLI_DONE;
    j->values =
        count <= SIZE_MAX / sizeof(float) / j->dim ? malloc(count * j->dim * sizeof(float)) : NULL;
    if (!j->values) return cli_failed("no memory for %zu rows of %zu numbers", count, j->dim);
    if (embla_store_lookup(j->store, j->rows, count, &options, j->values) != EMBLA_OK)
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
    size_t columns = j->info.columns, length;
    const embla_vocab *vocab = j->model_name ? NULL : j->model.vocab;
    const char *word = cli_word_of(vocab, j->ids[t], &length);
    cli_json_open(json, NULL, '{');
    cli_json_whole(json, "token", j->ids[t]);
    if (word) (void)cli_json_bytes(json, "word", word, length);
    json_list(json, "rows", j->rows + t * columns, columns);
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
    const embla_ngram_info *info = &j->info;
    cli_json json = {0};
    cli_json_open(&json, NULL, '{');
    if (j->model_name) cli_json_text(&json, "model", j->model_name);
    cli_json_text(&json, "hasher", kinds[info->kind]);
    cli_json_whole(&json, "layer", info->layer);
    cli_json_whole(&json, "tokens_below", info->tokens);
    if (j->checksum[0]) cli_json_text(&json, "fold_checksum", j->checksum);
    cli_json_whole(&json, "rows_in_table", info->rows);
    cli_json_whole(&json, "rows_used", info->used);
    cli_json_whole(&json, "orders", info->orders);
    cli_json_whole(&json, "heads", info->heads);
    cli_json_whole(&json, "columns", (int64_t)info->columns);
    json_list(&json, "multipliers", info->multipliers, (size_t)info->orders);
    json_list(&json, "sizes", info->sizes, info->columns);
    json_list(&json, "offsets", info->offsets, info->columns);
    cli_json_open(&json, "tokens", '[');
    for (size_t t = 0; t < j->tokens.count; t++) json_token(j, t, &json);
    cli_json_close(&json, ']');
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- text ---- */

static void print_facts(const job *j)
{
    const embla_ngram_info *info = &j->info;
    char rows[CLI_CELL], used[CLI_CELL], columns[CLI_CELL];
    if (info->kind == EMBLA_NGRAM_IDENTITY)
        cli_out_fact("hasher", "identity: the row number equals the token number");
    else
        cli_out_fact("hasher", "%s: n-grams of 2 to %d tokens, %d heads each: %s per token",
                     kinds[info->kind], (int)info->orders, (int)info->heads,
                     cli_plural((int64_t)info->columns, "row", columns));
    if (j->checksum[0])
        cli_out_fact("fold", "%s tokens to %s, checksum %s", cli_commas(info->tokens, rows),
                     cli_commas(info->vocab, used), j->checksum);
    if (info->used == info->rows)
        cli_out_fact("table", "%s rows", cli_commas(info->rows, rows));
    else
        cli_out_fact("table", "%s rows, %s of them used", cli_commas(info->rows, rows),
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
        int32_t id = k >= 0 ? j->ids[k] : j->history[(int64_t)j->info.history + k];
        bool ends = j->info.kind != EMBLA_NGRAM_ENGRAM && id == j->info.eos;
        cut = cut || id < 0 || (s > 0 && ends);
        (void)snprintf(parts[s], sizeof parts[s], cut ? "." : "%" PRId32, id);
    }
    for (size_t s = n; s-- > 0 && at < size;)
        at += (size_t)snprintf(out + at, size - at, "%s%s", parts[s], s ? " " : "");
}

static void print_values(const job *j, size_t t, size_t c)
{
    const float *row = j->values + (t * j->info.columns + c) * j->dim;
    printf("      head %-2zu row %" PRId64 ":", c % (size_t)j->info.heads,
           j->rows[t * j->info.columns + c]);
    for (size_t k = 0; k < j->shown; k++) printf(" %.6g", (double)row[k]);
    printf("%s\n", j->shown < j->dim ? " .." : "");
}

/* Prints one n-gram and the rows of its heads, as many on a line as fit. */
static void print_ngram(const job *j, size_t t, size_t order, size_t label, int cell)
{
    size_t heads = order == 1 ? 1 : (size_t)j->info.heads;
    size_t first = order == 1 ? 0 : (order - 2) * heads;
    const int64_t *rows = j->rows + t * j->info.columns + first;
    char text[160], number[CLI_CELL];
    ngram_text(j, t, order, text, sizeof text);
    int indent = 2 + (int)label;
    size_t fit = (size_t)((cli_out_width() - indent) / (cell + 2));
    if (fit < 1) fit = 1;
    if (fit >= heads) fit = heads;
    if (fit > 4 && fit < heads) fit = 4; /* 8 heads: two lines of four read best */
    printf("  %-*s", (int)label, text);
    for (size_t h = 0; h < heads; h++) {
        if (h > 0 && h % fit == 0) printf("\n%*s", indent, "");
        printf("  %*s", cell, cli_commas(rows[h], number));
    }
    putchar('\n');
    for (size_t h = 0; j->values && h < heads; h++) print_values(j, t, first + h);
}

static void print_text(const cli_args *args, const job *j)
{
    const embla_vocab *vocab = j->model_name ? NULL : j->model.vocab;
    size_t most = j->info.kind == EMBLA_NGRAM_IDENTITY ? 1 : (size_t)j->info.orders;
    size_t least = most == 1 ? 1 : 2, label = 0;
    char text[160], number[CLI_CELL], shown[CLI_WORD_TEXT];
    int cell = (int)strlen(cli_commas(j->info.rows - 1, number));
    if (!cli_args_flag(args, "quiet")) print_facts(j);
    for (size_t t = 0; t < j->tokens.count; t++) {
        ngram_text(j, t, most, text, sizeof text);
        if (strlen(text) > label) label = strlen(text);
    }
    for (size_t t = 0; t < j->tokens.count; t++) {
        size_t length;
        const char *word = cli_word_of(vocab, j->ids[t], &length);
        if (word) (void)cli_word_show(word, length, false, CLI_WORD_COLUMNS, shown);
        printf("\n#%" PRId32 "%s%s\n", j->ids[t], word ? "  " : "", word ? shown : "");
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
    int code = open_hasher(args, j);
    if (code == CLI_DONE) code = read_tokens(args, j);
    if (code == CLI_DONE) code = read_history(args, j);
    if (code == CLI_DONE && j->shown > 0) code = open_store(args, j);
    if (code == CLI_DONE) code = compute_rows(j);
    if (code == CLI_DONE) code = read_values(j);
    if (code != CLI_DONE) return code;
    if (cli_args_flag(args, "json"))
        print_json(j);
    else
        print_text(args, j);
    return CLI_DONE;
}

static int run(const cli_args *args)
{
    job j = {.model_name = cli_args_text(args, "model")};
    if (cli_args_flag(args, "list")) return list(cli_args_flag(args, "json"));
    if (!j.model_name && args->operand_count == 0)
        return cli_usage("rows needs a FILE, or --model NAME");
    if (cli_args_count(args, "values") > VALUES_MOST)
        return cli_usage("--values is %" PRId64 "; the maximum is %d",
                         cli_args_count(args, "values"), (int)VALUES_MOST);
    j.shown = (size_t)cli_args_count(args, "values");
    if (j.shown > 0 && j.model_name)
        return cli_usage("--values needs a FILE: --model gives row numbers only");
    int code = run_job(args, &j);
    free(j.values);
    free(j.rows);
    free(j.ids);
    cli_tokens_free(&j.tokens);
    embla_store_free(j.store);
    embla_ngram_free(j.ngram);
    embla_fold_free(j.fold);
    cli_model_free(&j.model);
    return code;
}

static const cli_option options[] = {
    {.name = "model",
     .value = "NAME",
     .choices = embla_ngram_model_name,
     .help = "use the hasher of a known model; all operands are then tokens"},
    {.name = "layer",
     .value = "N",
     .count = true,
     .help = "layer whose table is used (default: the first with a table)"},
    {.name = "fold",
     .value = "FILE",
     .help = "npy file of int32 that maps each token to its folded token (DeepSeek); without it "
             "tokens are used as they are"},
    {.name = "fold-checksum",
     .value = "HEX",
     .help = "fail unless the fold has this checksum; without the option it is printed"},
    {.name = "ids",
     .value = "LIST",
     .help = "token numbers, such as 2,5,7; - reads them from standard input"},
    {.name = "history",
     .value = "LIST",
     .help = "tokens before the first one, oldest first (default: the text starts there)"},
    {.name = "values",
     .value = "N",
     .count = true,
     .standard = "0",
     .help = "also print the first N numbers of each row"},
    {.name = "list", .help = "print the names of known models"},
    CLI_OPEN_OPTIONS,
    {.name = NULL}};

const cli_verb cli_verb_rows = {
    .name = "rows",
    .synopsis = "[FILE] [TOKEN]...",
    .operand = "TOKEN",
    .operands_most = CLI_OPERANDS_MOST,
    .about = "show which rows of a giant table tokens select",
    .text = "A giant table is indexed by a hash of the last few tokens. FILE is a checkpoint that "
            "describes the hasher (config.json, GGUF keys); alternatively --model names a known "
            "model. TOKEN is a number. If FILE has a vocabulary, TOKEN is a word of it or '#5'; "
            "quote both.\n\n"
            "For each token the n-grams that end in it are printed, with the row that each head "
            "selects, in head order. A dot stands for a position before the start of the text or "
            "before an end-of-text token. With --json the output is one object, which includes the "
            "constants of the hasher.",
    .example = "embla rows village t h e",
    .options = options,
    .run = run};
