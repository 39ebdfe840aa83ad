/* SPDX-License-Identifier: Apache-2.0 */
/* From the arguments of `rows` and `trace` to row numbers. */
#include "verbs/rows_job.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "core/inputs.h"
#include "core/model_text.h"
#include "core/out.h"
#include "core/verbs.h"

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

static int read_tokens(const cli_args *args, cli_rows_job *j)
{
    const embla_vocab *vocab = j->model_name ? NULL : j->model.vocab;
    const char *ids = cli_args_text(args, "ids");
    int code = CLI_DONE;
    if (!j->model_name) j->tokens.texts = &j->model;
    j->tokens.notes = !cli_args_flag(args, "quiet");
    j->tokens.strict = true; /* an n-gram without one of its tokens is another one */
    if (ids && strcmp(ids, "-") == 0)
        code = cli_tokens_lines(&j->tokens, vocab, true);
    else if (ids)
        code = cli_tokens_list(&j->tokens, ids, "--ids");
    for (size_t i = j->model_name ? 0 : 1; i < args->operand_count && code == CLI_DONE; i++) {
        const char *word = args->operands[i];
        if (strcmp(word, "-") == 0)
            code = cli_tokens_lines(&j->tokens, vocab, !vocab);
        else
            code = vocab ? cli_tokens_word(&j->tokens, vocab, word, strlen(word))
                         : add_token_number(&j->tokens, word);
    }
    if (code == CLI_DONE && vocab) code = cli_tokens_finish(&j->tokens, vocab);
    if (code == CLI_DONE && j->tokens.count == 0)
        code = cli_usage("%s needs a TOKEN, or --ids", args->verb->name);
    return code;
}

/* Reads the last tokens of --history; missing older ones are -1. */
static int read_history(const cli_args *args, cli_rows_job *j)
{
    cli_tokens tokens = {0};
    const char *text = cli_args_text(args, "history");
    size_t room = j->info.history;
    for (size_t i = 0; i < CLI_ROWS_HISTORY; i++) j->history[i] = -1;
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

/* ---- hasher, row numbers ---- */

int32_t cli_rows_layer(const cli_args *args)
{
    return cli_args_given(args, "layer") ? (int32_t)cli_args_count(args, "layer") : -1;
}

/* --fold-checksum. Another revision of the tokenizer gives another fold, and so other rows. */
static int check_fold(const cli_args *args, cli_rows_job *j)
{
    const char *wanted = cli_args_text(args, "fold-checksum");
    const embla_fold *used = embla_ngram_fold(j->ngram);
    if (wanted && !used)
        return cli_failed("--fold-checksum is %.64s, but no fold is used; give one with --fold",
                          wanted);
    embla_status status = wanted ? embla_fold_require(used, wanted) : EMBLA_OK;
    if (status == EMBLA_ERR_ARGUMENT) return cli_usage("--fold-checksum: %s", embla_error());
    if (status != EMBLA_OK) return library_error();
    if (used) embla_fold_checksum(used, j->checksum);
    return CLI_DONE;
}

static int open_hasher(const cli_args *args, cli_rows_job *j)
{
    const char *fold = cli_args_text(args, "fold");
    int32_t layer = cli_rows_layer(args);
    if (fold && embla_fold_open(cli_input_path(fold), &j->fold) != EMBLA_OK) return library_error();
    if (!j->model_name) {
        int code = cli_model_open(args, args->operands[0], &j->model);
        if (code == CLI_DONE) code = cli_model_use_tokenizer(args, &j->model);
        if (code != CLI_DONE) return code;
        cli_print_notes(args, j->model.checkpoint);
    } else if (cli_args_given(args, "tokenizer")) {
        return cli_usage("--tokenizer needs a FILE: with --model tokens are numbers");
    }
    embla_status status = j->model_name
                              ? embla_ngram_new_model(j->model_name, layer, j->fold, &j->ngram)
                              : embla_ngram_open(j->model.checkpoint, layer, j->fold, &j->ngram);
    if (status != EMBLA_OK) return library_error();
    int code = check_fold(args, j);
    if (code != CLI_DONE) return code;
    if (embla_ngram_describe(j->ngram, &j->info) != EMBLA_OK) return library_error();
    if (j->info.history > CLI_ROWS_HISTORY)
        return cli_failed("n-grams of %d tokens are unsupported; the maximum is %d",
                          (int)j->info.orders, (int)CLI_ROWS_HISTORY + 1);
    return CLI_DONE;
}

static int compute_rows(cli_rows_job *j)
{
    size_t count = j->tokens.count, columns = j->info.rows_per_token;
    int32_t history[CLI_ROWS_HISTORY];
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

int cli_rows_hash(const cli_args *args, cli_rows_job *j)
{
    int code = open_hasher(args, j);
    if (code == CLI_DONE) code = read_tokens(args, j);
    if (code == CLI_DONE) code = read_history(args, j);
    return code == CLI_DONE ? compute_rows(j) : code;
}

void cli_rows_free(cli_rows_job *j)
{
    free(j->rows);
    free(j->ids);
    cli_tokens_free(&j->tokens);
    embla_ngram_free(j->ngram);
    embla_fold_free(j->fold);
    cli_model_free(&j->model);
}
