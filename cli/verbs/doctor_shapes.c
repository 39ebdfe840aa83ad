/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `embla doctor` that need no rows: table, tokenizer, config, head, biases,
 * positions and other tables. Rows, tokens and vocab_size are three different numbers; confusing
 * them causes most errors.
 */
#include <stdio.h>
#include <string.h>

#include "verbs/doctor.h"

static const char *shape_of(int64_t rows, int64_t dim, char text[CLI_CELL])
{
    char a[CLI_CELL], b[CLI_CELL];
    snprintf(text, CLI_CELL, "%.27s x %.27s", cli_commas(rows, a), cli_commas(dim, b));
    return text;
}

static void check_table(cli_doctor *d)
{
    const cli_model *m = &d->model;
    char shape[CLI_CELL], why[CLI_CELL];
    size_t tensors;
    (void)embla_checkpoint_tensors(m->checkpoint, &tensors);
    if (m->has_table)
        cli_found(d, CLI_FINE, "table", NULL, "%.128s: %s, %s, %s", m->table.name,
                  shape_of(m->rows, m->dim, shape), m->table.type, cli_model_why(m, why));
    else if (tensors == 0)
        cli_found(d, CLI_ERROR, "table", "name the file that contains the weights",
                  "no table: there are no tensors, only metadata");
    else if (m->no_matrix)
        cli_found(d, CLI_ERROR, "table", "store the table as rows x dim", "no table: %s",
                  m->table_error);
    else
        cli_found(d, CLI_ERROR, "table", "choose the tensor with FILE::TENSOR", "no table: %s",
                  m->table_error);
}

/* ---- rows and tokens ---- */

/* Model2Vec: the row number of every token must exist in the table. */
static void check_mapping(cli_doctor *d)
{
    const cli_model *m = &d->model;
    const char *mapping = m->facts.mapping;
    int64_t most = m->facts.tokens, tokens = m->vocab ? embla_vocab_end(m->vocab) : 0;
    char a[CLI_CELL], b[CLI_CELL];
    embla_tensor weights;
    if (!mapping) return;
    if (m->vocab && tokens > most)
        cli_found(d, CLI_ERROR, "mapping", "store one row number for each token",
                  "%.64s has %s, %.200s has %s", mapping, cli_plural(most, "number", a),
                  embla_vocab_source(m->vocab), cli_plural(tokens, "token", b));
    else
        cli_found(d, CLI_FINE, "mapping", NULL, "%.64s maps %s to %s", mapping,
                  cli_plural(most, "token", a), cli_plural(m->rows, "row", b));
    if (embla_checkpoint_role(m->checkpoint, EMBLA_ROLE_WEIGHTS, &weights, NULL) == EMBLA_OK &&
        (weights.rank != 1 || weights.shape[0] != most))
        cli_found(d, CLI_ERROR, "mapping", "store one weight for each token",
                  "%.64s has %s, %.64s has %s", weights.name,
                  cli_plural(weights.rank > 0 ? weights.shape[0] : 1, "weight", a), mapping,
                  cli_plural(most, "number", b));
}

static void check_tokens(cli_doctor *d)
{
    const cli_model *m = &d->model;
    char rows[CLI_CELL], tokens[CLI_CELL], rest[CLI_CELL], list[640];
    if (m->vocab_error[0])
        cli_found(d, CLI_ERROR, "tokens", "repair or replace the tokenizer", "%s", m->vocab_error);
    if (!m->vocab || !m->has_table || m->facts.mapping) {
        if (m->no_words[0])
            cli_found(d, CLI_SKIPPED, "tokens", NULL, "no words: %s", m->no_words);
        else if (!m->vocab && !m->vocab_error[0])
            cli_found(d, CLI_SKIPPED, "tokens", NULL,
                      "the file comes without words, so rows cannot be compared with tokens");
        return;
    }
    int64_t end = embla_vocab_end(m->vocab);
    const char *source = embla_vocab_source(m->vocab);
    (void)cli_plural(m->rows, "row", rows);
    (void)cli_plural(end, "token", tokens);
    if (m->rows < end)
        cli_found(d, CLI_ERROR, "tokens",
                  "add rows to the table (and head), or remove these tokens from the tokenizer",
                  "%s, but %s in %.200s: no row for %s", rows, tokens, source,
                  cli_doctor_tokens(d, m->rows, end - m->rows, list));
    else if (d->gguf && m->rows != end)
        cli_found(d, CLI_ERROR, "tokens",
                  "add placeholder tokens for the remaining rows: GGUF loaders need as many tokens "
                  "as rows",
                  "%s, but %s in %.200s", rows, tokens, source);
    else if (m->rows > end && strcmp(embla_checkpoint_format(m->checkpoint), "fasttext") == 0)
        cli_found(d, CLI_FINE, "tokens", NULL, "%s, %s: %s of n-grams", rows, tokens,
                  cli_plural(m->rows - end, "row", rest));
    else if (m->rows > end)
        cli_found(d, CLI_FINE, "tokens", NULL, "%s, %s in %.200s: %s of padding", rows, tokens,
                  source, cli_plural(m->rows - end, "row", rest));
    else
        cli_found(d, CLI_FINE, "tokens", NULL, "%s, %s in %.200s", rows, tokens, source);
}

/* ---- config.json, or the format's own header ---- */

static void check_vocab_size(cli_doctor *d)
{
    static const char *const keys[] = {"vocab_size", "text_config.vocab_size", "n_vocab",
                                       "%s.vocab_size", NULL};
    const cli_model *m = &d->model;
    const char *key;
    int64_t said;
    char rows[CLI_CELL], number[CLI_CELL];
    if (!m->has_table || m->facts.mapping || !cli_model_number(m, keys, &said, &key)) return;
    /* in other formats vocab_size counts tokens, not rows */
    bool strict = strcmp(embla_checkpoint_format(m->checkpoint), "safetensors") == 0 || d->gguf;
    bool fits = strict ? m->rows == said : m->rows >= said;
    cli_found(d, fits ? CLI_FINE : CLI_ERROR, "vocab_size",
              fits ? NULL : "set the key to the number of rows: loaders size the table by it",
              "%s, %s = %s", cli_plural(m->rows, "row", rows), key, cli_commas(said, number));
}

static void check_dim(cli_doctor *d)
{
    static const char *const keys[] = {"embedding_size",
                                       "word_embed_proj_dim",
                                       "hidden_size",
                                       "n_embd",
                                       "d_model",
                                       "dim",
                                       "text_config.hidden_size",
                                       "hidden_dim",
                                       "channels",
                                       "%s.embedding_length",
                                       NULL};
    const cli_model *m = &d->model;
    static char set_key[2 * CLI_CELL]; /* a remedy must outlive this function */
    const char *key;
    int64_t said;
    char dim[CLI_CELL], number[CLI_CELL];
    if (!m->has_table || !cli_model_number(m, keys, &said, &key)) return;
    bool fits = m->dim == said;
    /* Model2Vec keeps the dim before its reduction; no loader uses it */
    bool harmless = strcmp(key, "hidden_dim") == 0;
    (void)snprintf(set_key, sizeof set_key, "set hidden_dim to %.40s, the table's dim",
                   cli_commas(m->dim, dim));
    cli_found(d,
              fits       ? CLI_FINE
              : harmless ? CLI_WARNING
                         : CLI_ERROR,
              "dim",
              fits       ? NULL
              : harmless ? set_key
                         : "config and weights belong to different models: use the matching pair",
              "the table's dim is %s, %s = %s", cli_commas(m->dim, dim), key,
              cli_commas(said, number));
}

/* ---- the head and its bias, further tables ---- */

static void check_head(cli_doctor *d)
{
    const cli_model *m = &d->model;
    embla_tensor head = {0};
    size_t n = 0;
    char a[CLI_CELL], b[CLI_CELL];
    if (!m->has_table) return;
    while (cli_doctor_next(d, EMBLA_ROLE_HEAD, &n, &head)) {
        bool fits = head.rank == 2 && head.shape[0] == m->rows && head.shape[1] == m->dim;
        cli_found(d, fits ? CLI_FINE : CLI_ERROR, "head",
                  fits ? NULL : "resize head and table together: row i of both belongs to token i",
                  "%.128s is %s, the table %s", head.name, cli_shape_text(&head, a),
                  shape_of(m->rows, m->dim, b));
    }
}

static void check_bias(cli_doctor *d)
{
    const cli_model *m = &d->model;
    embla_tensor bias = {0}, head = {0};
    size_t n = 0, first = 0;
    int64_t rows = m->rows;
    char a[CLI_CELL], b[CLI_CELL];
    if (cli_doctor_next(d, EMBLA_ROLE_HEAD, &first, &head) && head.rank == 2)
        rows = head.shape[0];
    else if (!m->has_table)
        return;
    while (cli_doctor_next(d, EMBLA_ROLE_HEAD_BIAS, &n, &bias)) {
        int64_t length = bias.rank > 0 ? bias.shape[bias.rank - 1] : 1;
        bool fits = length == rows;
        cli_found(d, fits ? CLI_FINE : CLI_ERROR, "head bias",
                  fits ? NULL : "resize the bias with the head", "%.128s has %s, the head %s",
                  bias.name, cli_plural(length, "number", a), cli_plural(rows, "row", b));
    }
}

static void check_per_layer(cli_doctor *d)
{
    static const char *const keys[] = {"vocab_size_per_layer_input",
                                       "text_config.vocab_size_per_layer_input", NULL};
    embla_tensor table = {0};
    size_t n = 0;
    int64_t said;
    const char *key;
    char a[CLI_CELL], b[CLI_CELL];
    while (cli_doctor_next(d, EMBLA_ROLE_PER_LAYER, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!cli_model_number(&d->model, keys, &said, &key)) {
            said = d->model.rows;
            key = "the token table's rows";
        }
        cli_found(d, rows == said ? CLI_FINE : CLI_ERROR, "per layer",
                  rows == said ? NULL
                               : "resize this table and its key together with the token table",
                  "%.128s has %s, %s = %s", table.name, cli_plural(rows, "row", a), key,
                  cli_commas(said, b));
    }
}

/* OPT and BART have two more rows than positions; RoBERTa's number includes them. */
static void check_positions(cli_doctor *d)
{
    static const char *const keys[] = {"max_position_embeddings",
                                       "n_positions",
                                       "n_ctx",
                                       "text_config.max_position_embeddings",
                                       "max_seq_len",
                                       "%s.context_length",
                                       NULL};
    int64_t said, first = d->model.facts.first_position;
    const char *key, *type = d->model.facts.architecture;
    embla_tensor table = {0};
    size_t n = 0;
    char a[CLI_CELL], b[CLI_CELL];
    bool included = first > 0 && type && !strstr(type, "bart") && strcmp(type, "opt") != 0;
    while (cli_doctor_next(d, EMBLA_ROLE_POSITIONS, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!cli_model_number(&d->model, keys, &said, &key)) continue;
        bool fits = rows == said + first || (included && rows == said);
        cli_level level = fits ? CLI_FINE : d->gguf ? CLI_WARNING : CLI_ERROR;
        cli_found(d, level, "positions",
                  fits ? NULL : "set the key to the number of positions that have a row",
                  "%.128s has %s%s, %s = %s", table.name, cli_plural(rows, "row", a),
                  first > 0 ? ", position 0 is row 2" : "", key, cli_commas(said, b));
    }
}

void cli_doctor_shapes(cli_doctor *d)
{
    check_table(d);
    check_tokens(d);
    check_mapping(d);
    check_vocab_size(d);
    check_dim(d);
    check_head(d);
    check_bias(d);
    check_per_layer(d);
    check_positions(d);
}
