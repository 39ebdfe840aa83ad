/* SPDX-License-Identifier: Apache-2.0 */
/* Opens a checkpoint and finds in it what every verb asks for first. What is known here
 * about architectures is only what no tensor says: where positions begin, and what is done
 * to a row after the lookup.
 */
#include "core/model.h"

#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

const char *cli_as_name(size_t n)
{
    return n == 0 ? "bf16" : NULL;
}

const char *cli_model_dtype(size_t n)
{
    return embla_dtype_name((embla_dtype)(n + 1));
}

static void keep(char text[CLI_SENTENCE])
{
    snprintf(text, CLI_SENTENCE, "%s", embla_error());
}

/* The sentence where no tensor could be the table, whichever was chosen. */
static void find_shape(cli_model *model, const embla_tensor *tensor)
{
    char shape[CLI_CELL];
    model->no_matrix = true;
    snprintf(model->table_error, CLI_SENTENCE,
             "tensor '%.128s', %s, has %zu dimensions; a table has 2, rows x dim", tensor->name,
             cli_shape_text(tensor, shape), tensor->rank);
}

/* Several tensors, and not one of rank 2: naming one would not help. */
static void find_no_table(cli_model *model)
{
    size_t count;
    const embla_tensor *tensors = embla_checkpoint_tensors(model->checkpoint, &count);
    keep(model->table_error);
    for (size_t n = 0; n < count; n++)
        if (tensors[n].rank == 1 || tensors[n].rank == 2) return;
    if (count > 0 && tensors[0].rank > 2) find_shape(model, &tensors[0]);
}

/* A table is rank 2; word vectors of one row may come as rank 1. */
static void find_table(cli_model *model)
{
    if (embla_checkpoint_role(model->checkpoint, EMBLA_ROLE_TOKENS, &model->table, &model->why) !=
        EMBLA_OK) {
        find_no_table(model);
        return;
    }
    if (model->table.rank > 2) {
        find_shape(model, &model->table);
        return;
    }
    model->has_table = true;
    model->rows = model->table.rank > 1 ? model->table.shape[0] : 1;
    model->dim = model->table.rank > 0 ? model->table.shape[model->table.rank - 1] : 1;
    model->has_mapping = embla_checkpoint_role(model->checkpoint, EMBLA_ROLE_MAPPING,
                                               &model->mapping, NULL) == EMBLA_OK;
}

/* A tensor that was chosen by name is taken as the token table; what would it be had it not
 * been chosen? Positions, say, have no words. */
static void find_role(const char *path, const embla_open_options *options, cli_model *model)
{
    const char *mark = NULL;
    embla_checkpoint *plain = NULL;
    embla_tensor tensor = {0};
    for (const char *at = strstr(path, "::"); at; at = strstr(at + 1, "::")) mark = at;
    char *base = mark ? strndup(path, (size_t)(mark - path)) : NULL;
    model->role = model->has_table ? model->table.role : EMBLA_ROLE_NONE;
    if (base && cli_open_path(base, options, &plain) == EMBLA_OK &&
        embla_checkpoint_find(plain, mark + 2, &tensor) == EMBLA_OK) {
        model->named = true;
        model->role = tensor.role;
    }
    embla_checkpoint_free(plain);
    free(base);
}

/* A tensor that was chosen and is not the token table: the words are its own only if it has a
 * row for each. */
static void find_words(cli_model *model)
{
    char rows[CLI_CELL], tokens[CLI_CELL];
    if (!model->vocab || !model->has_table || !model->named || model->role == EMBLA_ROLE_TOKENS ||
        cli_model_tokens_most(model) >= embla_vocab_end(model->vocab))
        return;
    snprintf(model->no_words, CLI_SENTENCE, "%s, %s",
             cli_plural(cli_model_tokens_most(model), "row", rows),
             cli_plural(embla_vocab_end(model->vocab), "token", tokens));
    embla_vocab_free(model->vocab);
    model->vocab = NULL;
}

int cli_model_open(const cli_args *args, const char *path, cli_model *out)
{
    cli_model model = {0};
    embla_open_options options = {.lenient = cli_args_flag(args, "lenient")};
    if (cli_args_given(args, "as") &&
        embla_dtype_find(cli_args_text(args, "as"), &options.as) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    if (cli_open_path(path, &options, &model.checkpoint) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    find_table(&model);
    find_role(path, &options, &model);
    embla_status status = EMBLA_ERR_NOT_FOUND;
    if (model.role != EMBLA_ROLE_POSITIONS && model.role != EMBLA_ROLE_TOKEN_TYPES)
        status = embla_vocab_open(model.checkpoint, &model.vocab);
    if (status != EMBLA_OK && status != EMBLA_ERR_NOT_FOUND) keep(model.vocab_error);
    find_words(&model);
    *out = model;
    return CLI_DONE;
}

void cli_model_free(cli_model *model)
{
    embla_vocab_free(model->vocab);
    embla_checkpoint_free(model->checkpoint);
    *model = (cli_model){0};
}

const char *cli_model_why(const cli_model *model, char text[CLI_CELL])
{
    size_t length = strlen(model->table.name), tail = strlen(model->why);
    bool by_name = tail <= length && strcmp(model->table.name + length - tail, model->why) == 0;
    const char *what = by_name && tail == length ? "its name" : model->why;
    if (model->named) what = "named on the command line";
    snprintf(text, CLI_CELL, "%s%.40s", by_name ? "known by " : "", what);
    return text;
}

bool cli_model_has_file(const cli_model *model, const char *path)
{
    struct stat that, ours;
    size_t count;
    const embla_file *files = embla_checkpoint_files(model->checkpoint, &count);
    if (stat(path, &that) != 0) return false;
    for (size_t n = 0; n < count; n++)
        if (stat(files[n].name, &ours) == 0 && ours.st_dev == that.st_dev &&
            ours.st_ino == that.st_ino)
            return true;
    return false;
}

const char *cli_model_architecture(const cli_model *model, const char **key)
{
    static const char *const keys[] = {"model_type", "general.architecture",
                                       "text_config.model_type"};
    for (size_t i = 0; i < sizeof keys / sizeof keys[0]; i++) {
        const char *text = embla_checkpoint_text(model->checkpoint, keys[i]);
        if (!text) continue;
        if (key) *key = keys[i];
        return text;
    }
    return NULL;
}

/* A number, or text that is one: formats without a config keep their header as text. */
static bool number_at(const embla_checkpoint *checkpoint, const char *key, int64_t *out)
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
        if (!number_at(model->checkpoint, name, out)) continue;
        if (key) *key = mark ? mark + 3 : *keys; /* after "%s." */
        return true;
    }
    return false;
}

static bool listed(const char *word, const char *const *list)
{
    for (; word && *list; list++)
        if (strcmp(word, *list) == 0) return true;
    return false;
}

int64_t cli_model_first_position(const cli_model *model)
{
    static const char *const offset[] = {"opt",         "bart",  "mbart",     "roberta",
                                         "xlm-roberta", "mpnet", "camembert", NULL};
    if (strcmp(embla_checkpoint_format(model->checkpoint), "gguf") == 0) return 0;
    return listed(cli_model_architecture(model, NULL), offset) ? 2 : 0;
}

int64_t cli_model_tokens_most(const cli_model *model)
{
    if (!model->has_mapping) return model->rows;
    return model->mapping.rank == 1 ? model->mapping.shape[0] : 0;
}

int64_t cli_model_tokens_end(const cli_model *model)
{
    int64_t tokens = 0;
    if (model->vocab) return embla_vocab_end(model->vocab);
    bool counts = strcmp(embla_checkpoint_format(model->checkpoint), "llm.c") == 0 &&
                  model->role == EMBLA_ROLE_TOKENS;
    return counts && number_at(model->checkpoint, "vocab_size", &tokens) ? tokens : -1;
}

const char *cli_model_scaling(const cli_model *model)
{
    static const char *const root[] = {"gemma",   "gemma2",       "gemma3", "gemma3_text",
                                       "gemma3n", "gemma3n_text", NULL};
    static const char *const factor[] = {"granite", "granitemoe", NULL};
    const char *type = cli_model_architecture(model, NULL);
    if (listed(type, root)) return "the model multiplies a row by sqrt(dim) after the lookup";
    if (listed(type, factor))
        return "the model multiplies a row by embedding_multiplier after the lookup";
    return NULL;
}

const char *cli_shape_text(const embla_tensor *tensor, char text[CLI_CELL])
{
    size_t used = 0;
    snprintf(text, CLI_CELL, "%s", tensor->rank == 0 ? "1" : "");
    for (size_t i = 0; i < tensor->rank && used < CLI_CELL; i++) {
        char digits[CLI_CELL];
        used += (size_t)snprintf(text + used, CLI_CELL - used, "%s%s", i > 0 ? " x " : "",
                                 cli_commas(tensor->shape[i], digits));
    }
    return text;
}
