/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of `embla doctor` that need no rows: table, tokenizer, config, head, biases,
 * positions and further tables against each other. Rows, tokens and vocab_size are three
 * numbers; most harm is done where someone takes one for another.
 */
#include <stdio.h>
#include <string.h>

#include "doctor.h"

static const char *shape_of(int64_t rows, int64_t dim, char text[EMBLA_CELL])
{
    char a[EMBLA_CELL], b[EMBLA_CELL];
    snprintf(text, EMBLA_CELL, "%.27s x %.27s", embla_commas(rows, a), embla_commas(dim, b));
    return text;
}

static void check_table(embla_doctor *d)
{
    const embla_model *m = &d->model;
    char shape[EMBLA_CELL], why[EMBLA_CELL];
    if (m->has_table)
        embla_found(d, EMBLA_FINE, "table", NULL, "%.128s: %s, %s, %s", m->table.name,
                    shape_of(m->rows, m->dim, shape), m->table.type, embla_model_why(m, why));
    else if (embla_checkpoint_count(m->checkpoint) == 0)
        embla_found(d, EMBLA_ERROR, "table", "name the file that holds the weights",
                    "no table: there are no tensors, only metadata");
    else if (m->no_matrix)
        embla_found(d, EMBLA_ERROR, "table", "write the table as rows x dim", "no table: %s",
                    m->table_error);
    else
        embla_found(d, EMBLA_ERROR, "table", "name the tensor that is meant, FILE::TENSOR",
                    "no table: %s", m->table_error);
}

/* ---- rows and tokens ---- */

/* Model2Vec: every token's row number must be one of the table's. */
static void check_mapping(embla_doctor *d)
{
    const embla_model *m = &d->model;
    int64_t most = embla_model_tokens_most(m), tokens = m->vocab ? embla_vocab_end(m->vocab) : 0;
    char a[EMBLA_CELL], b[EMBLA_CELL];
    embla_tensor weights;
    if (!m->has_mapping) return;
    if (m->vocab && tokens > most)
        embla_found(d, EMBLA_ERROR, "mapping", "write a row number for each token",
                    "%.64s has %s, %.200s has %s", m->mapping.name, embla_plural(most, "number", a),
                    embla_vocab_source(m->vocab), embla_plural(tokens, "token", b));
    else
        embla_found(d, EMBLA_FINE, "mapping", NULL, "%.64s gives %s one of %s", m->mapping.name,
                    embla_plural(most, "token", a), embla_plural(m->rows, "row", b));
    if (embla_checkpoint_role(m->checkpoint, EMBLA_ROLE_WEIGHTS, &weights, NULL) == EMBLA_OK &&
        (weights.rank != 1 || weights.shape[0] != most))
        embla_found(d, EMBLA_ERROR, "mapping", "write a weight for each token",
                    "%.64s has %s, %.64s has %s", weights.name,
                    embla_plural(weights.rank > 0 ? weights.shape[0] : 1, "weight", a),
                    m->mapping.name, embla_plural(most, "number", b));
}

static void check_tokens(embla_doctor *d)
{
    const embla_model *m = &d->model;
    char rows[EMBLA_CELL], tokens[EMBLA_CELL], rest[EMBLA_CELL], list[640];
    if (m->vocab_error[0])
        embla_found(d, EMBLA_ERROR, "tokens", "mend or replace the tokenizer", "%s",
                    m->vocab_error);
    if (!m->vocab || !m->has_table || m->has_mapping) {
        if (m->no_words[0])
            embla_found(d, EMBLA_SKIPPED, "tokens", NULL, "no words: %s", m->no_words);
        else if (!m->vocab && !m->vocab_error[0])
            embla_found(d, EMBLA_SKIPPED, "tokens", NULL,
                        "no words come with the file: rows cannot be compared with tokens");
        return;
    }
    int64_t end = embla_vocab_end(m->vocab);
    const char *source = embla_vocab_source(m->vocab);
    (void)embla_plural(m->rows, "row", rows);
    (void)embla_plural(end, "token", tokens);
    if (m->rows < end)
        embla_found(d, EMBLA_ERROR, "tokens",
                    "add rows to the table (and head), or take these tokens out of the tokenizer",
                    "%s, but %s in %.200s: no row for %s", rows, tokens, source,
                    embla_doctor_tokens(d, m->rows, end - m->rows, list));
    else if (d->gguf && m->rows != end)
        embla_found(d, EMBLA_ERROR, "tokens",
                    "add placeholder tokens for the rest of the rows: loaders of GGUF want as "
                    "many tokens as rows",
                    "%s, but %s in %.200s", rows, tokens, source);
    else if (m->rows > end && strcmp(embla_checkpoint_format(m->checkpoint), "fasttext") == 0)
        embla_found(d, EMBLA_FINE, "tokens", NULL, "%s, %s: %s of n-grams", rows, tokens,
                    embla_plural(m->rows - end, "row", rest));
    else if (m->rows > end)
        embla_found(d, EMBLA_FINE, "tokens", NULL, "%s, %s in %.200s: %s of padding", rows, tokens,
                    source, embla_plural(m->rows - end, "row", rest));
    else
        embla_found(d, EMBLA_FINE, "tokens", NULL, "%s, %s in %.200s", rows, tokens, source);
}

/* ---- config.json, or what a format keeps in its place ---- */

static void check_vocab_size(embla_doctor *d)
{
    static const char *const keys[] = {"vocab_size", "text_config.vocab_size", "n_vocab",
                                       "%s.vocab_size", NULL};
    const embla_model *m = &d->model;
    const char *key;
    int64_t said;
    char rows[EMBLA_CELL], number[EMBLA_CELL];
    if (!m->has_table || m->has_mapping || !embla_model_number(m, keys, &said, &key)) return;
    /* headers of other formats count tokens, not rows */
    bool strict = strcmp(embla_checkpoint_format(m->checkpoint), "safetensors") == 0 || d->gguf;
    bool fits = strict ? m->rows == said : m->rows >= said;
    embla_found(d, fits ? EMBLA_FINE : EMBLA_ERROR, "vocab_size",
                fits ? NULL : "set the key to the number of rows: a loader makes the table by it",
                "%s, %s = %s", embla_plural(m->rows, "row", rows), key, embla_commas(said, number));
}

static void check_dim(embla_doctor *d)
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
    const embla_model *m = &d->model;
    const char *key;
    int64_t said;
    char dim[EMBLA_CELL], number[EMBLA_CELL];
    if (!m->has_table || !embla_model_number(m, keys, &said, &key)) return;
    bool fits = m->dim == said;
    /* Model2Vec keeps the width it began with; nothing is made by it */
    bool harmless = strcmp(key, "hidden_dim") == 0;
    embla_found(d,
                fits       ? EMBLA_FINE
                : harmless ? EMBLA_WARNING
                           : EMBLA_ERROR,
                "dim",
                fits       ? NULL
                : harmless ? "set the key to the numbers in a row"
                           : "config and weights are of different models: find the right pair",
                "rows of %s, %s = %s", embla_plural(m->dim, "number", dim), key,
                embla_commas(said, number));
}

/* ---- the head and what goes with it ---- */

static void check_head(embla_doctor *d)
{
    const embla_model *m = &d->model;
    embla_tensor head = {0};
    size_t n = 0;
    char a[EMBLA_CELL], b[EMBLA_CELL];
    if (!m->has_table) return;
    while (embla_doctor_next(d, EMBLA_ROLE_HEAD, &n, &head)) {
        bool fits = head.rank == 2 && head.shape[0] == m->rows && head.shape[1] == m->dim;
        embla_found(d, fits ? EMBLA_FINE : EMBLA_ERROR, "head",
                    fits ? NULL : "resize head and table together: row i of both is token i",
                    "%.128s is %s, the table %s", head.name, embla_shape_text(&head, a),
                    shape_of(m->rows, m->dim, b));
    }
}

static void check_bias(embla_doctor *d)
{
    const embla_model *m = &d->model;
    embla_tensor bias = {0}, head = {0};
    size_t n = 0, first = 0;
    int64_t rows = m->rows;
    char a[EMBLA_CELL], b[EMBLA_CELL];
    if (embla_doctor_next(d, EMBLA_ROLE_HEAD, &first, &head) && head.rank == 2)
        rows = head.shape[0];
    else if (!m->has_table)
        return;
    while (embla_doctor_next(d, EMBLA_ROLE_HEAD_BIAS, &n, &bias)) {
        int64_t length = bias.rank > 0 ? bias.shape[bias.rank - 1] : 1;
        bool fits = length == rows;
        embla_found(d, fits ? EMBLA_FINE : EMBLA_ERROR, "head bias",
                    fits ? NULL : "resize the bias with the head", "%.128s has %s, the head %s",
                    bias.name, embla_plural(length, "number", a), embla_plural(rows, "row", b));
    }
}

static void check_per_layer(embla_doctor *d)
{
    static const char *const keys[] = {"vocab_size_per_layer_input",
                                       "text_config.vocab_size_per_layer_input", NULL};
    embla_tensor table = {0};
    size_t n = 0;
    int64_t said;
    const char *key;
    char a[EMBLA_CELL], b[EMBLA_CELL];
    while (embla_doctor_next(d, EMBLA_ROLE_PER_LAYER, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!embla_model_number(&d->model, keys, &said, &key)) {
            said = d->model.rows;
            key = "the token table's rows";
        }
        embla_found(d, rows == said ? EMBLA_FINE : EMBLA_ERROR, "per layer",
                    rows == said ? NULL : "resize this table with the token table, and its key",
                    "%.128s has %s, %s = %s", table.name, embla_plural(rows, "row", a), key,
                    embla_commas(said, b));
    }
}

/* OPT and BART keep two rows more than positions; RoBERTa's number counts them in. */
static void check_positions(embla_doctor *d)
{
    static const char *const keys[] = {"max_position_embeddings",
                                       "n_positions",
                                       "n_ctx",
                                       "text_config.max_position_embeddings",
                                       "max_seq_len",
                                       "%s.context_length",
                                       NULL};
    int64_t said, first = embla_model_first_position(&d->model);
    const char *key, *type = embla_model_architecture(&d->model, NULL);
    embla_tensor table = {0};
    size_t n = 0;
    char a[EMBLA_CELL], b[EMBLA_CELL];
    bool counted_in = first > 0 && type && !strstr(type, "bart") && strcmp(type, "opt") != 0;
    while (embla_doctor_next(d, EMBLA_ROLE_POSITIONS, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!embla_model_number(&d->model, keys, &said, &key)) continue;
        bool fits = rows == said + first || (counted_in && rows == said);
        embla_level level = fits ? EMBLA_FINE : d->gguf ? EMBLA_WARNING : EMBLA_ERROR;
        embla_found(d, level, "positions",
                    fits ? NULL : "set the key to the positions that have a row",
                    "%.128s has %s%s, %s = %s", table.name, embla_plural(rows, "row", a),
                    first > 0 ? ", position 0 is row 2" : "", key, embla_commas(said, b));
    }
}

void embla_doctor_shapes(embla_doctor *d)
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
