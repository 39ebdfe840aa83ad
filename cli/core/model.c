/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a checkpoint and finds its table, facts and vocabulary. */
#include "core/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/model_text.h"

const char *cli_as_name(size_t n)
{
    return n == 0 ? "bf16" : NULL;
}

const char *cli_model_dtype(size_t n)
{
    return embla_dtype_name((embla_dtype)(n + 1));
}

/* i8 and f4_e2m1 need a scale beside the table, which no format stores; some dtypes can only be
 * read. */
const char *cli_writable_dtype(size_t n)
{
    static const float zeros[256];
    unsigned char out[sizeof zeros * 2];
    for (int d = 1; embla_dtype_name((embla_dtype)d); d++) {
        embla_dtype dtype = (embla_dtype)d;
        if (dtype == EMBLA_I8 || dtype == EMBLA_F4_E2M1) continue;
        if (embla_dtype_encode(dtype, zeros, 256, 0, out) != EMBLA_OK) continue;
        if (n-- == 0) return embla_dtype_name(dtype);
    }
    return NULL;
}

int cli_convert_failed(const cli_args *args, embla_status status)
{
    bool nameless = status == EMBLA_ERR_ARGUMENT && !cli_args_given(args, "to") &&
                    strstr(embla_error(), "unknown file extension");
    if (nameless) return cli_usage("%s with --to FORMAT", embla_error());
    return cli_failed("%s%s", embla_error(),
                      strstr(embla_error(), "allow overwriting")   ? " with --force"
                      : strstr(embla_error(), "convert it to f32") ? ": use --dtype f32"
                                                                   : "");
}

embla_account_info cli_account_info(const embla_account *account)
{
    embla_account_info info = {0};
    if (embla_account_describe(account, &info) != EMBLA_OK) info.format = "unknown";
    return info;
}

static void copy_error(char text[CLI_SENTENCE])
{
    snprintf(text, CLI_SENTENCE, "%s", embla_error());
}

/* Reports a tensor that is not rows x dim. */
static void report_shape(cli_model *model, const embla_tensor *tensor)
{
    char shape[CLI_CELL];
    model->no_matrix = true;
    snprintf(model->table_error, CLI_SENTENCE,
             "tensor '%.128s', %s, has %zu dimensions; a table has 2, rows x dim", tensor->name,
             cli_shape_text(tensor, shape), tensor->rank);
}

/* If no tensor has rank 1 or 2, choosing one would not help; the message says so. */
static void report_no_table(cli_model *model)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(model->checkpoint, &count);
    copy_error(model->table_error);
    for (size_t n = 0; n < count; n++)
        if (tensors[n].rank == 1 || tensors[n].rank == 2) return;
    if (count > 0 && tensors[0].rank > 2) report_shape(model, &tensors[0]);
}

/* A table has rank 2; a single row may be stored with rank 1. */
static void find_table(cli_model *model)
{
    if (embla_checkpoint_role(model->checkpoint, EMBLA_ROLE_TOKENS, &model->table, &model->why) !=
        EMBLA_OK) {
        report_no_table(model);
        return;
    }
    if (model->table.rank > 2) {
        report_shape(model, &model->table);
        return;
    }
    model->has_table = true;
    model->rows = model->table.rank > 1 ? model->table.shape[0] : 1;
    model->dim = model->table.rank > 0 ? model->table.shape[model->table.rank - 1] : 1;
}

/* Whether a row of the chosen tensor belongs to a token. */
static bool has_words(embla_role role)
{
    return role == EMBLA_ROLE_TOKENS || role == EMBLA_ROLE_TOKENS_COPY || role == EMBLA_ROLE_HEAD ||
           role == EMBLA_ROLE_PER_LAYER;
}

/* Drops the vocabulary if the chosen tensor is not a table of tokens, or has too few rows. */
static void drop_foreign_words(cli_model *model)
{
    char rows[CLI_CELL], tokens[CLI_CELL];
    const embla_facts *facts = &model->facts;
    if (!model->vocab || !model->has_table || !facts->named || facts->role == EMBLA_ROLE_TOKENS)
        return;
    if (has_words(facts->role) && facts->tokens >= embla_vocab_end(model->vocab)) return;
    if (has_words(facts->role))
        snprintf(model->no_words, CLI_SENTENCE, "%s, %s", cli_plural(facts->tokens, "row", rows),
                 cli_plural(embla_vocab_end(model->vocab), "token", tokens));
    else
        snprintf(model->no_words, CLI_SENTENCE,
                 "the rows of tensor '%.128s' do not belong to tokens", model->table.name);
    embla_vocab_free(model->vocab);
    model->vocab = NULL;
}

int cli_checkpoint_open(const cli_args *args, const char *path, embla_checkpoint **out)
{
    embla_open_options options = {.lenient = cli_args_flag(args, "lenient")};
    if (cli_args_given(args, "as") &&
        embla_dtype_find(cli_args_text(args, "as"), &options.as) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    if (cli_open_path(path, &options, out) != EMBLA_OK) return cli_failed("%s", embla_error());
    return CLI_DONE;
}

int cli_model_open(const cli_args *args, const char *path, cli_model *out)
{
    cli_model model = {.path = path};
    int code = cli_checkpoint_open(args, path, &model.checkpoint);
    if (code != CLI_DONE) return code;
    find_table(&model);
    model.text = cli_text_new();
    if (!model.text) {
        cli_model_free(&model);
        return cli_failed("no memory for a model");
    }
    if (embla_checkpoint_facts(model.checkpoint, &model.facts) != EMBLA_OK) {
        cli_model_free(&model);
        return cli_failed("%s", embla_error());
    }
    embla_status status = EMBLA_ERR_NOT_FOUND;
    if (model.facts.role != EMBLA_ROLE_POSITIONS && model.facts.role != EMBLA_ROLE_TOKEN_TYPES)
        status = embla_vocab_open(model.checkpoint, &model.vocab);
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) copy_error(model.vocab_error);
    drop_foreign_words(&model);
    *out = model;
    return CLI_DONE;
}

void cli_print_notes(const cli_args *args, const embla_checkpoint *checkpoint)
{
    size_t count;
    const char *const *notes = embla_checkpoint_notes(checkpoint, &count);
    if (cli_args_flag(args, "quiet")) return;
    for (size_t n = 0; n < count; n++) cli_complain("note: %s", notes[n]);
}

void cli_model_free(cli_model *model)
{
    cli_text_free(model->text);
    embla_vocab_free(model->vocab);
    embla_checkpoint_free(model->checkpoint);
    *model = (cli_model){0};
}

const char *cli_model_why(const cli_model *model, char text[CLI_CELL])
{
    size_t length = strlen(model->table.name), tail = strlen(model->why);
    bool by_name = tail <= length && strcmp(model->table.name + length - tail, model->why) == 0;
    const char *what = by_name && tail == length ? "its name" : model->why;
    if (model->facts.named) what = "named on the command line";
    snprintf(text, CLI_CELL, "%s%.40s", by_name ? "recognised by " : "", what);
    return text;
}

/* Reads an integer, also from text: formats without a config keep their header as text. */
static bool read_integer(const embla_checkpoint *checkpoint, const char *key, int64_t *out)
{
    char *end;
    if (embla_checkpoint_integer(checkpoint, key, out) == EMBLA_OK) return true;
    const char *text = embla_checkpoint_text(checkpoint, key);
    if (!text || text[0] < '0' || text[0] > '9' || strlen(text) > 18) return false;
    long long value = strtoll(text, &end, 10);
    if (*end != '\0') return false;
    *out = value;
    return true;
}

bool cli_model_number(const cli_model *model, const char *const *keys, int64_t *out,
                      const char **key)
{
    const char *architecture = embla_checkpoint_text(model->checkpoint, "general.architecture");
    for (; *keys; keys++) {
        char name[128];
        const char *mark = strstr(*keys, "%s");
        if (mark && !architecture) continue;
        if (mark)
            snprintf(name, sizeof name, "%.*s%.64s%.40s", (int)(mark - *keys), *keys, architecture,
                     mark + 2);
        else
            snprintf(name, sizeof name, "%s", *keys);
        if (!read_integer(model->checkpoint, name, out)) continue;
        if (key) *key = mark ? mark + 3 : *keys; /* after "%s." */
        return true;
    }
    return false;
}

int64_t cli_model_tokens_end(const cli_model *model)
{
    int64_t tokens = 0;
    if (model->vocab) return embla_vocab_end(model->vocab);
    bool has_count = strcmp(embla_checkpoint_format(model->checkpoint), "llm.c") == 0 &&
                     model->facts.role == EMBLA_ROLE_TOKENS;
    return has_count && read_integer(model->checkpoint, "vocab_size", &tokens) ? tokens : -1;
}

const char *cli_model_scaling(const cli_model *model, char text[CLI_SENTENCE])
{
    if (!model->facts.scale_why) return NULL;
    snprintf(text, CLI_SENTENCE, "the model multiplies a row by %.9g after the lookup: %s",
             model->facts.scale, model->facts.scale_why);
    return text;
}

enum { TOKENS_AT_ONCE = 512 };

int cli_first_tokens(const embla_table *table, int64_t rows, int64_t *first, int64_t *sharing)
{
    int32_t tokens[TOKENS_AT_ONCE];
    int64_t found[TOKENS_AT_ONCE], end = embla_table_tokens(table);
    for (int64_t row = 0; row < rows; row++) first[row] = -1;
    for (int64_t row = 0; sharing && row < rows; row++) sharing[row] = 0;
    for (int64_t at = 0; at < end; at += TOKENS_AT_ONCE) {
        size_t count = end - at < TOKENS_AT_ONCE ? (size_t)(end - at) : TOKENS_AT_ONCE;
        for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)(at + (int64_t)i);
        if (embla_table_find_rows(table, tokens, count, found) != EMBLA_OK)
            return cli_failed("%s", embla_error());
        for (size_t i = 0; i < count; i++) {
            if (found[i] >= rows) continue;
            if (first[found[i]] < 0) first[found[i]] = tokens[i];
            if (sharing) sharing[found[i]]++;
        }
    }
    return CLI_DONE;
}

const char *cli_shape_text(const embla_tensor *tensor, char text[CLI_CELL])
{
    return embla_show_shape(tensor->shape, tensor->rank, text);
}
