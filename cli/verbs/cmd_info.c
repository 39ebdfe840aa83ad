/* SPDX-License-Identifier: Apache-2.0 */
/* embla info: shows what a checkpoint contains, from its header.
 *
 * At most 64 rows are read, to compare table and head, so that the answer is immediate for a file
 * of any size.
 */
#include <stdio.h>
#include <string.h>

#include "embla_store.h"

#include "core/model.h"
#include "core/out.h"
#include "core/tie_json.h"
#include "core/verbs.h"

enum { SAMPLE = 64, COLUMNS = 5, ROLES = EMBLA_ROLE_WEIGHTS };

typedef struct {
    cli_model model;
    const char *path;
    const embla_tensor *tensors;
    int64_t file_bytes, tensor_bytes;
    size_t tensor_count, files, others; /* others: tensors without a role */
    int64_t other_bytes;
    bool all;
    bool has_tie;
    embla_tie tie;
    char tie_error[CLI_SENTENCE];
} report;

static void add_up(report *r)
{
    const embla_file *files = embla_checkpoint_files(r->model.checkpoint, &r->files);
    for (size_t n = 0; n < r->files; n++) r->file_bytes += files[n].bytes;
    r->tensors = embla_checkpoint_tensors(r->model.checkpoint, &r->tensor_count);
    for (size_t n = 0; n < r->tensor_count; n++) {
        const embla_tensor *tensor = &r->tensors[n];
        r->tensor_bytes += tensor->bytes;
        if (tensor->role != EMBLA_ROLE_NONE) continue;
        r->others++;
        r->other_bytes += tensor->bytes;
    }
    r->has_tie = embla_checkpoint_tie(r->model.checkpoint, SAMPLE, &r->tie) == EMBLA_OK;
    if (!r->has_tie) snprintf(r->tie_error, sizeof r->tie_error, "%s", embla_error());
}

/* Several tensors could be the table, so the user must choose one of the printed list. */
static bool is_ambiguous(const report *r)
{
    size_t candidates = 0;
    for (size_t n = 0; n < r->tensor_count; n++)
        candidates += r->tensors[n].role == EMBLA_ROLE_TOKENS;
    return !r->model.has_table && candidates > 1;
}

/* ---- text ---- */

typedef struct {
    char cells[COLUMNS][CLI_CELL];
} line;

static line line_of(const report *r, const embla_tensor *tensor)
{
    line out;
    snprintf(out.cells[0], CLI_CELL, "%s",
             tensor->role == EMBLA_ROLE_NONE ? "-" : embla_role_name(tensor->role));
    (void)cli_shape_text(tensor, out.cells[1]);
    snprintf(out.cells[2], CLI_CELL, "%s", tensor->type);
    (void)cli_size(tensor->bytes, out.cells[3]);
    snprintf(out.cells[4], CLI_CELL, "%.2f%%",
             r->tensor_bytes > 0 ? 100 * (double)tensor->bytes / (double)r->tensor_bytes : 0.0);
    return out;
}

/* On a terminal that is too narrow the name has its own line. */
static void print_line(const line *l, const int *widths, const char *name)
{
    int used = (int)strlen(name);
    for (size_t i = 0; i < COLUMNS; i++) used += widths[i] + 2;
    printf("%-*s  %*s  %-*s  %*s  %*s  ", widths[0], l->cells[0], widths[1], l->cells[1], widths[2],
           l->cells[2], widths[3], l->cells[3], widths[4], l->cells[4]);
    if (!cli_out_fits(used)) printf("\n  ");
    cli_out_safe(name);
    putchar('\n');
}

/* Calls visit for every tensor to list: all of them in file order, or only tables, by role. */
static void for_each_listed(const report *r, bool all, void *context,
                            void (*visit)(const report *r, const embla_tensor *tensor,
                                          void *context))
{
    for (int role = 1; role <= (all ? 1 : ROLES); role++)
        for (size_t n = 0; n < r->tensor_count; n++)
            if (all || (int)r->tensors[n].role == role) visit(r, &r->tensors[n], context);
}

static void update_widths(const report *r, const embla_tensor *tensor, void *context)
{
    int *widths = context;
    line l = line_of(r, tensor);
    for (size_t i = 0; i < COLUMNS; i++)
        if ((int)strlen(l.cells[i]) > widths[i]) widths[i] = (int)strlen(l.cells[i]);
}

static void print_tensor(const report *r, const embla_tensor *tensor, void *context)
{
    line l = line_of(r, tensor);
    print_line(&l, context, tensor->name);
}

static void print_tensors(const report *r)
{
    static const line heads = {{"role", "rows x dim", "type", "size", "share"}};
    int widths[COLUMNS];
    if (r->tensor_count == (r->all ? 0 : r->others)) return;
    for (size_t i = 0; i < COLUMNS; i++) widths[i] = (int)strlen(heads.cells[i]);
    for_each_listed(r, r->all, widths, update_widths);
    putchar('\n');
    print_line(&heads, widths, "tensor");
    for_each_listed(r, r->all, widths, print_tensor);
}

static void print_rows(const report *r)
{
    const cli_model *model = &r->model;
    char rows[CLI_CELL], tokens[CLI_CELL], rest[CLI_CELL];
    int64_t most = model->facts.tokens, end = cli_model_tokens_end(model);
    if (end < 0 || !model->has_table) return;
    (void)cli_plural(model->rows, "row", rows);
    (void)cli_plural(end, "token", tokens);
    if (model->facts.mapping)
        cli_out_fact("rows", "%s for %s: a mapping tensor assigns them", rows, tokens);
    else if (most < end)
        cli_out_fact("rows", "%s, %s: %s without a row", rows, tokens,
                     cli_plural(end - most, "token", rest));
    else if (most > end && strcmp(embla_checkpoint_format(model->checkpoint), "fasttext") == 0)
        cli_out_fact("rows", "%s, %s: %s of n-grams", rows, tokens,
                     cli_plural(most - end, "row", rest));
    else if (most > end)
        cli_out_fact("rows", "%s, %s: %s of padding", rows, tokens,
                     cli_plural(most - end, "row", rest));
    else
        cli_out_fact("rows", "%s, %s: one for each", rows, tokens);
}

static void print_vocab(const report *r)
{
    const embla_vocab *vocab = r->model.vocab;
    char words[CLI_CELL], last[CLI_CELL];
    if (r->model.vocab_error[0]) {
        cli_out_fact("vocabulary", "cannot be read: %s", r->model.vocab_error);
    } else if (r->model.no_words[0]) {
        cli_out_fact("vocabulary", "no words: %s", r->model.no_words);
    } else if (!vocab) {
        cli_out_fact("vocabulary", "none: the file comes without words");
    } else if (embla_vocab_count(vocab) == embla_vocab_end(vocab)) {
        cli_out_fact("vocabulary", "%s, from %s",
                     cli_plural(embla_vocab_count(vocab), "word", words),
                     embla_vocab_source(vocab));
    } else {
        cli_out_fact("vocabulary", "%s, from %s; the last is token %s",
                     cli_plural(embla_vocab_count(vocab), "word", words), embla_vocab_source(vocab),
                     cli_commas(embla_vocab_end(vocab) - 1, last));
    }
    print_rows(r);
}

static void print_positions(const report *r)
{
    int64_t first = r->model.facts.first_position;
    for (size_t n = 0; n < r->tensor_count; n++) {
        const embla_tensor *tensor = &r->tensors[n];
        char rows[CLI_CELL], positions[CLI_CELL];
        if (tensor->role != EMBLA_ROLE_POSITIONS || tensor->rank != 2) continue;
        if (first > 0 && tensor->shape[0] > first)
            cli_out_fact("positions", "%s: position 0 is row %d, so %s",
                         cli_plural(tensor->shape[0], "row", rows), (int)first,
                         cli_plural(tensor->shape[0] - first, "position", positions));
        else
            cli_out_fact("positions", "%s", cli_plural(tensor->shape[0], "position", positions));
    }
}

/* Finds a giant table and its hasher. False if there is none, or if the user chose a tensor. */
static bool giant_of(const report *r, embla_store_info *info, embla_ngram_info *ngram,
                     char fold[33])
{
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_READ};
    embla_store *store = NULL;
    embla_ngram *hasher = NULL;
    if (r->model.facts.named ||
        embla_store_open(r->model.checkpoint, NULL, -1, &options, &store) != EMBLA_OK)
        return false;
    bool found = embla_store_describe(store, info) == EMBLA_OK;
    *ngram = (embla_ngram_info){0};
    fold[0] = '\0';
    if (embla_ngram_open(r->model.checkpoint, -1, NULL, &hasher) == EMBLA_OK)
        found = embla_ngram_describe(hasher, ngram) == EMBLA_OK && found;
    if (embla_ngram_fold(hasher)) embla_fold_checksum(embla_ngram_fold(hasher), fold);
    embla_ngram_free(hasher);
    embla_store_free(store);
    return found;
}

static void print_giant(const report *r)
{
    embla_store_info info;
    embla_ngram_info ngram;
    char rows[CLI_CELL], parts[CLI_CELL], size[CLI_CELL], named[CLI_CELL] = "", fold[33];
    if (!giant_of(r, &info, &ngram, fold)) return;
    if (ngram.rows_per_token > 0)
        (void)snprintf(named, sizeof named, "; %zu for each token, see 'embla rows'",
                       ngram.rows_per_token);
    cli_out_fact("giant table", "%s of %zu %s (%zu bytes), %s, %s%s",
                 cli_plural(info.rows, "row", rows), info.format.dim,
                 embla_dtype_name(info.format.dtype), info.row_bytes,
                 cli_plural((int64_t)info.parts, "part", parts), cli_size(info.bytes, size), named);
    if (fold[0])
        cli_out_fact("fold", "%s tokens to %s, checksum %s", cli_commas(ngram.tokens, rows),
                     cli_commas(ngram.vocab, parts), fold);
}

static void json_giant(const report *r, cli_json *json)
{
    embla_store_info info;
    embla_ngram_info ngram;
    char fold[33];
    if (!giant_of(r, &info, &ngram, fold)) {
        cli_json_text(json, "giant_table", NULL);
        return;
    }
    cli_json_open(json, "giant_table", '{');
    cli_json_whole(json, "rows", info.rows);
    cli_json_whole(json, "dim", (int64_t)info.format.dim);
    cli_json_text(json, "dtype", embla_dtype_name(info.format.dtype));
    cli_json_whole(json, "row_bytes", (int64_t)info.row_bytes);
    cli_json_whole(json, "parts", (int64_t)info.parts);
    cli_json_whole(json, "bytes", info.bytes);
    if (ngram.rows_per_token > 0)
        cli_json_whole(json, "rows_for_each_token", (int64_t)ngram.rows_per_token);
    else
        cli_json_text(json, "rows_for_each_token", NULL);
    if (fold[0]) cli_json_text(json, "fold_checksum", fold);
    cli_json_close(json, '}');
}

static void print_text(const report *r)
{
    const cli_model *model = &r->model;
    const embla_facts *facts = &model->facts;
    size_t note_count;
    const char *const *notes = embla_checkpoint_notes(model->checkpoint, &note_count);
    char files[CLI_CELL], size[CLI_CELL], text[CLI_SENTENCE];
    cli_out_fact("checkpoint", "%s", r->path);
    cli_out_fact("format", "%s, %s, %s", embla_checkpoint_format(model->checkpoint),
                 cli_plural((int64_t)r->files, "file", files), cli_size(r->file_bytes, size));
    if (facts->architecture)
        cli_out_fact("architecture", "%.128s (%s)", facts->architecture, facts->architecture_why);
    print_tensors(r);
    putchar('\n');
    if (r->others > 0)
        cli_out_fact("other", "%s, %s%s", cli_plural((int64_t)r->others, "tensor", files),
                     cli_size(r->other_bytes, size), r->all ? "" : "; --all lists them");
    if (r->tensor_count == 0) cli_out_fact("tensors", "none");
    if (model->has_table)
        cli_out_fact("token table", "%s, %s", model->table.name, cli_model_why(model, size));
    else if (model->no_matrix)
        cli_out_fact("token table", "none: %s", model->table_error);
    else if (r->tensor_count > 0 && !is_ambiguous(r))
        cli_out_fact("token table", "none is recognised by its name; choose one with FILE::TENSOR");
    if (r->has_tie && r->tie.kind != EMBLA_TIE_NO_TABLE && !model->no_matrix &&
        (!model->facts.named || model->facts.role == EMBLA_ROLE_TOKENS))
        cli_out_fact("tied", "%s", embla_tie_text(&r->tie, text, sizeof text));
    else if (!r->has_tie && model->has_table)
        cli_out_fact("tied", "unknown: %s", r->tie_error);
    print_giant(r);
    print_vocab(r);
    print_positions(r);
    if (cli_model_scaling(model, text)) cli_out_fact("scaling", "%s", text);
    for (size_t n = 0; n < note_count; n++) cli_out_fact("note", "%s", notes[n]);
}

/* ---- JSON ---- */

static void json_tensor(const report *r, const embla_tensor *tensor, void *context)
{
    cli_json *json = context;
    const char *dtype = tensor->dtype ? embla_dtype_name(tensor->dtype) : NULL;
    cli_json_open(json, NULL, '{');
    cli_json_text(json, "role",
                  tensor->role == EMBLA_ROLE_NONE ? NULL : embla_role_name(tensor->role));
    cli_json_text(json, "name", tensor->name);
    cli_json_open(json, "shape", '[');
    for (size_t i = 0; i < tensor->rank; i++) cli_json_whole(json, NULL, tensor->shape[i]);
    cli_json_close(json, ']');
    cli_json_text(json, "type", tensor->type);
    cli_json_text(json, "dtype", dtype);
    cli_json_whole(json, "bytes", tensor->bytes);
    cli_json_real(json, "share",
                  r->tensor_bytes > 0 ? (double)tensor->bytes / (double)r->tensor_bytes : 0.0);
    cli_json_text(json, "file", tensor->file);
    if (tensor->offset >= 0)
        cli_json_whole(json, "offset", tensor->offset);
    else
        cli_json_text(json, "offset", NULL);
    cli_json_close(json, '}');
}

static void json_vocab(const report *r, cli_json *json)
{
    const cli_model *model = &r->model;
    int64_t most = model->facts.tokens, end = cli_model_tokens_end(model);
    if (model->vocab) {
        cli_json_open(json, "vocab", '{');
        cli_json_text(json, "source", embla_vocab_source(model->vocab));
        cli_json_whole(json, "words", embla_vocab_count(model->vocab));
        cli_json_whole(json, "tokens", end);
        cli_json_close(json, '}');
    } else {
        cli_json_text(json, "vocab", NULL);
    }
    if (end < 0 || !model->has_table) {
        cli_json_text(json, "padding_rows", NULL);
        cli_json_text(json, "tokens_without_row", NULL);
        return;
    }
    cli_json_whole(json, "padding_rows", most > end ? most - end : 0);
    cli_json_whole(json, "tokens_without_row", end > most ? end - most : 0);
}

static void json_positions(const report *r, cli_json *json)
{
    int64_t first = r->model.facts.first_position;
    cli_json_open(json, "positions", '[');
    for (size_t n = 0; n < r->tensor_count; n++) {
        const embla_tensor *tensor = &r->tensors[n];
        if (tensor->role != EMBLA_ROLE_POSITIONS || tensor->rank != 2) continue;
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", tensor->name);
        cli_json_whole(json, "rows", tensor->shape[0]);
        cli_json_whole(json, "first_row", first);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

static void json_head(const report *r, cli_json *json)
{
    const cli_model *model = &r->model;
    size_t count;
    const embla_file *files = embla_checkpoint_files(model->checkpoint, &count);
    cli_json_text(json, "checkpoint", r->path);
    cli_json_text(json, "format", embla_checkpoint_format(model->checkpoint));
    cli_json_open(json, "files", '[');
    for (size_t n = 0; n < count; n++) {
        cli_json_open(json, NULL, '{');
        cli_json_text(json, "name", files[n].name);
        cli_json_whole(json, "bytes", files[n].bytes);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
    cli_json_whole(json, "bytes", r->file_bytes);
    cli_json_text(json, "architecture", model->facts.architecture);
    if (model->has_table) {
        cli_json_open(json, "table", '{');
        cli_json_text(json, "name", model->table.name);
        cli_json_whole(json, "rows", model->rows);
        cli_json_whole(json, "dim", model->dim);
        cli_json_text(json, "type", model->table.type);
        cli_json_text(json, "why", model->why);
        cli_json_close(json, '}');
    } else {
        cli_json_text(json, "table", NULL);
    }
}

static void print_json(const report *r)
{
    const cli_model *model = &r->model;
    cli_json json = {0};
    size_t note_count;
    const char *const *notes = embla_checkpoint_notes(model->checkpoint, &note_count);
    char text[CLI_SENTENCE];
    cli_json_open(&json, NULL, '{');
    json_head(r, &json);
    cli_json_open(&json, "tables", '[');
    for_each_listed(r, false, &json, json_tensor);
    cli_json_close(&json, ']');
    if (r->all) {
        cli_json_open(&json, "tensors", '[');
        for_each_listed(r, true, &json, json_tensor);
        cli_json_close(&json, ']');
    }
    cli_json_open(&json, "others", '{');
    cli_json_whole(&json, "tensors", (int64_t)r->others);
    cli_json_whole(&json, "bytes", r->other_bytes);
    cli_json_close(&json, '}');
    if (r->has_tie)
        cli_tie_json(&r->tie, &json, "tied");
    else
        cli_json_text(&json, "tied", NULL);
    json_giant(r, &json);
    json_vocab(r, &json);
    json_positions(r, &json);
    cli_json_text(&json, "scaling", cli_model_scaling(model, text));
    cli_json_open(&json, "notes", '[');
    for (size_t n = 0; n < note_count; n++) cli_json_text(&json, NULL, notes[n]);
    cli_json_close(&json, ']');
    cli_json_text(&json, "error", model->table_error[0] ? model->table_error : NULL);
    cli_json_close(&json, '}');
    putchar('\n');
}

/* ---- the verb ---- */

static int run(const cli_args *args)
{
    report r = {.path = args->operands[0], .all = cli_args_flag(args, "all")};
    int code = cli_model_open(args, r.path, &r.model);
    if (code != CLI_DONE) return code;
    add_up(&r);
    if (cli_args_flag(args, "json"))
        print_json(&r);
    else
        print_text(&r);
    if (is_ambiguous(&r)) {
        (void)fflush(stdout); /* print the list before the message */
        code = cli_failed("%s", r.model.table_error);
    }
    cli_model_free(&r.model);
    return code;
}

static const cli_option options[] = {
    {.name = "all", .help = "list every tensor"}, CLI_OPEN_OPTIONS, {.name = NULL}};

const cli_verb cli_verb_info = {
    .name = "info",
    .synopsis = "FILE",
    .operand = "FILE",
    .operands_least = 1,
    .operands_most = 1,
    .files = 1,
    .about = "show what a checkpoint contains: tables, vocabulary and head",
    .text =
        "FILE is a checkpoint: a file (safetensors, GGUF, npy, word2vec text or binary, GloVe, "
        "fastText, llm.c, llama2.c), an index of shards, or a model's folder; FILE::TENSOR "
        "selects the tensor to use as the table. The format is detected from the file's "
        "contents.\n\n"
        "Prints:\n- the format;\n- the tables, with their roles and their shares of all bytes;\n- "
        "whether the head is tied to the table, and how that was decided;\n- the source of the "
        "vocabulary, and how many rows belong to tokens.\nOnly the header of a binary file is "
        "read, and at most 64 rows of table and head.\n\n"
        "A file without a table (only a vocabulary) is accepted. If several tensors could be "
        "the table, they are listed and the exit code is 1.",
    .example = "embla info village",
    .options = options,
    .run = run};
