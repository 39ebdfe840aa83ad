/* SPDX-License-Identifier: Apache-2.0 */
/* The checks of the doctor that need no rows: table, tokenizer, config, head, biases, positions and
 * other tables. Rows, tokens and vocab_size are three different numbers; confusing them causes most
 * errors.
 */
#include <stdio.h>
#include <string.h>

#include "see/doctor.h"

/* Fine, or an error with a remedy. */
static embla_finding fits_or(bool fits, const char *check, const char *remedy, const char *tensor)
{
    return (embla_finding){.level = fits ? EMBLA_FINDING_LEVEL_FINE : EMBLA_FINDING_LEVEL_ERROR,
                           .check = check,
                           .remedy = fits ? NULL : remedy,
                           .tensor = tensor};
}

/* ---- the table ---- */

/* How the table was found: "recognised by embed_tokens.weight", "the only tensor". Returns text. */
static const char *why_text(const embla_doctor_work *w, char text[EMBLA_SHOWN_NUMBER])
{
    size_t length = strlen(w->table.name), tail = strlen(w->why);
    bool by_name = tail <= length && strcmp(w->table.name + length - tail, w->why) == 0;
    (void)snprintf(text, EMBLA_SHOWN_NUMBER, "%s%.40s", by_name ? "recognised by " : "",
                   by_name && tail == length ? "its name" : w->why);
    return text;
}

static const char *table_shape(const embla_doctor_work *w, char text[EMBLA_SHOWN_NUMBER])
{
    return embla_show_shape((const int64_t[]){w->rows, w->dim}, 2, text);
}

static embla_status check_table(embla_doctor_work *w)
{
    char shape[EMBLA_SHOWN_NUMBER], why[EMBLA_SHOWN_NUMBER];
    size_t tensors;
    (void)embla_checkpoint_tensors(w->checkpoint, &tensors);
    if (w->has_table)
        return embla_doctor_found(w, fits_or(true, "table", NULL, w->table.name),
                                  "%.128s: %s, %s, %s", w->table.name, table_shape(w, shape),
                                  w->table.type, why_text(w, why));
    if (tensors == 0)
        return embla_doctor_found(
            w, fits_or(false, "table", "name the file that contains the weights", NULL),
            "no table: there are no tensors, only metadata");
    const char *remedy =
        w->no_matrix ? "store the table as rows x dim" : "choose the tensor with FILE::TENSOR";
    return embla_doctor_found(w, fits_or(false, "table", remedy, NULL), "no table: %s",
                              w->table_error);
}

/* ---- rows and tokens ---- */

/* Model2Vec: there is a row number and a weight for each token. */
static embla_status check_mapping(embla_doctor_work *w)
{
    const char *mapping = w->facts.mapping;
    int64_t most = w->facts.tokens, tokens = w->vocab ? embla_vocab_end(w->vocab) : 0;
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    embla_tensor weights;
    if (!mapping) return EMBLA_OK;
    if (w->vocab && tokens > most)
        EMBLA_TRY(embla_doctor_found(
            w, fits_or(false, "mapping", "store one row number for each token", mapping),
            "%.64s has %s, %.200s has %s", mapping, embla_show_count(most, "number", a),
            embla_vocab_source(w->vocab), embla_show_count(tokens, "token", b)));
    else
        EMBLA_TRY(embla_doctor_found(
            w, fits_or(true, "mapping", NULL, mapping), "%.64s maps %s to %s", mapping,
            embla_show_count(most, "token", a), embla_show_count(w->rows, "row", b)));
    embla_status status = embla_checkpoint_role(w->checkpoint, EMBLA_ROLE_WEIGHTS, &weights, NULL);
    if (embla_doctor_ends(status)) return status;
    if (status != EMBLA_OK || (weights.rank == 1 && weights.shape[0] == most)) return EMBLA_OK;
    return embla_doctor_found(
        w, fits_or(false, "mapping", "store one weight for each token", weights.name),
        "%.64s has %s, %.64s has %s", weights.name,
        embla_show_count(weights.rank > 0 ? weights.shape[0] : 1, "weight", a), mapping,
        embla_show_count(most, "number", b));
}

/* There is nothing to compare: the reason, unless another check gives it. */
static embla_status skip_tokens(embla_doctor_work *w)
{
    const embla_finding skipped = {.level = EMBLA_FINDING_LEVEL_SKIPPED, .check = "tokens"};
    if (w->no_words[0]) return embla_doctor_found(w, skipped, "no words: %s", w->no_words);
    if (w->vocab || w->vocab_error[0]) return EMBLA_OK;
    return embla_doctor_found(
        w, skipped, "the file comes without words, so rows cannot be compared with tokens");
}

static embla_status check_tokens(embla_doctor_work *w)
{
    char rows[EMBLA_SHOWN_NUMBER], tokens[EMBLA_SHOWN_NUMBER], rest[EMBLA_SHOWN_NUMBER];
    char list[EMBLA_DOCTOR_TOKENS];
    if (w->vocab_error[0])
        EMBLA_TRY(
            embla_doctor_found(w, fits_or(false, "tokens", "repair or replace the tokenizer", NULL),
                               "%s", w->vocab_error));
    if (!w->vocab || !w->has_table || w->facts.mapping) return skip_tokens(w);
    int64_t end = embla_vocab_end(w->vocab);
    const char *source = embla_vocab_source(w->vocab);
    embla_finding finding = fits_or(w->rows >= end, "tokens",
                                    "add rows to the table (and head), or remove these tokens from "
                                    "the tokenizer",
                                    w->table.name);
    (void)embla_show_count(w->rows, "row", rows);
    (void)embla_show_count(end, "token", tokens);
    (void)embla_show_count(w->rows - end, "row", rest);
    if (w->rows < end)
        return embla_doctor_found(w, finding, "%s, but %s in %.200s: no row for %s", rows, tokens,
                                  source, embla_doctor_tokens(w, w->rows, end - w->rows, list));
    if (w->rows == end)
        return embla_doctor_found(w, finding, "%s, %s in %.200s", rows, tokens, source);
    if (w->gguf) {
        finding = fits_or(false, "tokens",
                          "add placeholder tokens for the remaining rows: GGUF loaders need as "
                          "many tokens as rows",
                          w->table.name);
        return embla_doctor_found(w, finding, "%s, but %s in %.200s", rows, tokens, source);
    }
    if (strcmp(embla_checkpoint_format(w->checkpoint), "fasttext") == 0)
        return embla_doctor_found(w, finding, "%s, %s: %s of n-grams", rows, tokens, rest);
    return embla_doctor_found(w, finding, "%s, %s in %.200s: %s of padding", rows, tokens, source,
                              rest);
}

/* ---- config.json, or the format's own header ---- */

static embla_status check_vocab_size(embla_doctor_work *w)
{
    static const char *const keys[] = {"vocab_size", "text_config.vocab_size", "n_vocab",
                                       "%s.vocab_size", NULL};
    const char *key;
    int64_t said;
    char rows[EMBLA_SHOWN_NUMBER], number[EMBLA_SHOWN_NUMBER];
    if (!w->has_table || w->facts.mapping || !embla_doctor_number(w, keys, &said, &key))
        return EMBLA_OK;
    /* in other formats vocab_size counts tokens, not rows */
    bool strict = strcmp(embla_checkpoint_format(w->checkpoint), "safetensors") == 0 || w->gguf;
    bool fits = strict ? w->rows == said : w->rows >= said;
    return embla_doctor_found(
        w,
        fits_or(fits, "vocab_size",
                "set the key to the number of rows: loaders size the table by it", w->table.name),
        "%s, %s = %s", embla_show_count(w->rows, "row", rows), key,
        embla_show_commas(said, number));
}

static embla_status check_dim(embla_doctor_work *w)
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
    const char *key;
    int64_t said;
    char dim[EMBLA_SHOWN_NUMBER], number[EMBLA_SHOWN_NUMBER], set_key[128];
    if (!w->has_table || !embla_doctor_number(w, keys, &said, &key)) return EMBLA_OK;
    embla_finding finding = fits_or(
        w->dim == said, "dim",
        "config and weights belong to different models: use the matching pair", w->table.name);
    (void)embla_show_commas(w->dim, dim);
    /* Model2Vec keeps the dim before its reduction; no loader uses it */
    if (w->dim != said && strcmp(key, "hidden_dim") == 0) {
        (void)snprintf(set_key, sizeof set_key, "set hidden_dim to %.40s, the table's dim", dim);
        finding.level = EMBLA_FINDING_LEVEL_WARNING;
        finding.remedy = set_key;
    }
    return embla_doctor_found(w, finding, "the table's dim is %s, %s = %s", dim, key,
                              embla_show_commas(said, number));
}

/* ---- the head and its bias, further tables ---- */

static embla_status check_head(embla_doctor_work *w)
{
    embla_tensor head = {0};
    size_t n = 0;
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    if (!w->has_table) return EMBLA_OK;
    while (embla_doctor_next(w, EMBLA_ROLE_HEAD, &n, &head)) {
        bool fits = head.rank == 2 && head.shape[0] == w->rows && head.shape[1] == w->dim;
        EMBLA_TRY(embla_doctor_found(
            w,
            fits_or(fits, "head",
                    "resize head and table together: row i of both belongs to token i", head.name),
            "%.128s is %s, the table %s", head.name, embla_show_shape(head.shape, head.rank, a),
            table_shape(w, b)));
    }
    return EMBLA_OK;
}

static embla_status check_bias(embla_doctor_work *w)
{
    embla_tensor bias = {0}, head = {0};
    size_t n = 0, first = 0;
    int64_t rows = w->rows;
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    if (embla_doctor_next(w, EMBLA_ROLE_HEAD, &first, &head) && head.rank == 2)
        rows = head.shape[0];
    else if (!w->has_table)
        return EMBLA_OK;
    while (embla_doctor_next(w, EMBLA_ROLE_HEAD_BIAS, &n, &bias)) {
        int64_t length = bias.rank > 0 ? bias.shape[bias.rank - 1] : 1;
        EMBLA_TRY(embla_doctor_found(
            w, fits_or(length == rows, "head bias", "resize the bias with the head", bias.name),
            "%.128s has %s, the head %s", bias.name, embla_show_count(length, "number", a),
            embla_show_count(rows, "row", b)));
    }
    return EMBLA_OK;
}

static embla_status check_per_layer(embla_doctor_work *w)
{
    static const char *const keys[] = {"vocab_size_per_layer_input",
                                       "text_config.vocab_size_per_layer_input", NULL};
    embla_tensor table = {0};
    size_t n = 0;
    int64_t said;
    const char *key;
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    while (embla_doctor_next(w, EMBLA_ROLE_PER_LAYER, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!embla_doctor_number(w, keys, &said, &key)) {
            said = w->rows;
            key = "the token table's rows";
        }
        EMBLA_TRY(embla_doctor_found(
            w,
            fits_or(rows == said, "per layer",
                    "resize this table and its key together with the token table", table.name),
            "%.128s has %s, %s = %s", table.name, embla_show_count(rows, "row", a), key,
            embla_show_commas(said, b)));
    }
    return EMBLA_OK;
}

/* OPT and BART have two more rows than positions; RoBERTa's number includes them. */
static embla_status check_positions(embla_doctor_work *w)
{
    static const char *const keys[] = {"max_position_embeddings",
                                       "n_positions",
                                       "n_ctx",
                                       "text_config.max_position_embeddings",
                                       "max_seq_len",
                                       "%s.context_length",
                                       NULL};
    int64_t said, first = w->facts.first_position;
    const char *key, *type = w->facts.architecture;
    embla_tensor table = {0};
    size_t n = 0;
    char a[EMBLA_SHOWN_NUMBER], b[EMBLA_SHOWN_NUMBER];
    bool included = first > 0 && type && !strstr(type, "bart") && strcmp(type, "opt") != 0;
    while (embla_doctor_next(w, EMBLA_ROLE_POSITIONS, &n, &table)) {
        int64_t rows = table.rank > 1 ? table.shape[0] : 1;
        if (!embla_doctor_number(w, keys, &said, &key)) continue;
        bool fits = rows - first == said || (included && rows == said);
        embla_finding finding =
            fits_or(fits, "positions", "set the key to the number of positions that have a row",
                    table.name);
        if (!fits && w->gguf) finding.level = EMBLA_FINDING_LEVEL_WARNING;
        EMBLA_TRY(embla_doctor_found(
            w, finding, "%.128s has %s%s, %s = %s", table.name, embla_show_count(rows, "row", a),
            first > 0 ? ", position 0 is row 2" : "", key, embla_show_commas(said, b)));
    }
    return EMBLA_OK;
}

embla_status embla_doctor_shapes(embla_doctor_work *work)
{
    EMBLA_TRY(check_table(work));
    EMBLA_TRY(check_tokens(work));
    EMBLA_TRY(check_mapping(work));
    EMBLA_TRY(check_vocab_size(work));
    EMBLA_TRY(check_dim(work));
    EMBLA_TRY(check_head(work));
    EMBLA_TRY(check_bias(work));
    EMBLA_TRY(check_per_layer(work));
    return check_positions(work);
}
