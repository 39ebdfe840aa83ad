/* SPDX-License-Identifier: Apache-2.0 */
/* An index in a file: safetensors with a checksum (checkpoint/saved.h).
 *
 *   vectors   rows x dim, F32, F16 or BF16   of norm 1
 *   begin     rows x 1, I64   where each line begins in the corpus, ascending
 *   number    rows x 1, I64   the number of each line, from 0, ascending
 *   metadata  format "embla.index", version "2", lines; the checksums `model`, `corpus` and
 *             `lists` (begin, number and lines; version 1 had none)
 *
 * The file's own checksum is not verified when an index is opened, because that would read all
 * vectors; embla_index_verify does it. What is read is checked: the lists have their checksum, and
 * every line begins inside the corpus, which has the right checksum, after a line end.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "checkpoint/saved.h"
#include "encoder/encoder.h"
#include "search/index.h"

enum { PAIRS = 6 };

static const char ours[] = "embla.index";

/* ---- writing ---- */

static embla_status add_numbers(embla_saved *saved, const char *name, int64_t rows,
                                const int64_t *at)
{
    EMBLA_TRY(embla_saved_add(saved, name, EMBLA_F64, rows, 1, (void *)(uintptr_t)at));
    saved->tensors[saved->count - 1].element = embla_element_safetensors("I64", 3);
    return EMBLA_OK;
}

static embla_status sum_both(const embla_index *index, char model[EMBLA_SUM_TEXT],
                             char corpus[EMBLA_SUM_TEXT])
{
    embla_checksum sum;
    EMBLA_TRY(embla_encoder_checksum(index->encoder, &sum));
    embla_sum_text(sum, model);
    EMBLA_TRY(embla_lines_sum(&index->lines, &sum));
    embla_sum_text(sum, corpus);
    return EMBLA_OK;
}

/* The checksum of what is read when an index is opened, apart from the other checksums. */
static void sum_lists(const embla_index *index, char out[EMBLA_SUM_TEXT])
{
    const size_t rows = (size_t)embla_table_rows(index->table);
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_numbers(&state, &index->line_count, sizeof index->line_count, 1);
    embla_checksum_numbers(&state, index->begin, sizeof *index->begin, rows);
    embla_checksum_numbers(&state, index->number, sizeof *index->number, rows);
    embla_sum_text(embla_checksum_end(&state), out);
}

embla_status embla_index_write(const embla_index *index, const char *path)
{
    embla_saved saved = {0};
    char model[EMBLA_SUM_TEXT], corpus[EMBLA_SUM_TEXT], lists[EMBLA_SUM_TEXT], lines[32];
    embla_pair pairs[PAIRS + 1] = {{"format", ours},   {"version", "2"}, {"model", model},
                                   {"corpus", corpus}, {"lines", lines}, {"lists", lists}};
    EMBLA_NEED(index);
    EMBLA_NEED(path);
    const embla_table *table = index->table;
    const int64_t rows = embla_table_rows(table);
    (void)snprintf(lines, sizeof lines, "%" PRId64, index->line_count);
    EMBLA_TRY(sum_both(index, model, corpus));
    sum_lists(index, lists);
    embla_status status = embla_saved_begin(&saved, 3);
    if (status == EMBLA_OK)
        status =
            embla_saved_add(&saved, "vectors", embla_table_dtype(table), rows,
                            embla_table_dim(table), (void *)(uintptr_t)embla_table_row(table, 0));
    if (status == EMBLA_OK) status = add_numbers(&saved, "begin", rows, index->begin);
    if (status == EMBLA_OK) status = add_numbers(&saved, "number", rows, index->number);
    if (status == EMBLA_OK) status = embla_saved_write(&saved, pairs, PAIRS, path);
    embla_arena_free(&saved.arena);
    return status;
}

/* ---- opening ---- */

static embla_status check_sums(const embla_index *index, const embla_directory *d, const char *path)
{
    const char *model = embla_saved_value(d, "model"), *corpus = embla_saved_value(d, "corpus");
    char model_found[EMBLA_SUM_TEXT], corpus_found[EMBLA_SUM_TEXT];
    EMBLA_TRY(sum_both(index, model_found, corpus_found));
    bool other = !model || strcmp(model, model_found) != 0;
    if (!other && corpus && strcmp(corpus, corpus_found) == 0) return EMBLA_OK;
    const char *said = other ? model : corpus;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%.200s was made for another %s: the checksum in it is %.64s, now it is %s",
                      path, other ? "model or fit" : "corpus", said ? said : "missing",
                      other ? model_found : corpus_found);
}

/* Reads a list of `rows` numbers, ascending and below `limit`. */
static embla_status read_numbers(embla_index *index, const embla_checkpoint *cp, const char *name,
                                 int64_t limit, const int64_t **out)
{
    const uint64_t rows = (uint64_t)embla_table_rows(index->table);
    const embla_entry *e = NULL;
    int64_t *numbers = NULL, least = 0;
    if (embla_checkpoint_named(cp, name, &e) != EMBLA_OK)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is an index of %" PRIu64 " rows, but has no tensor '%s'",
                          cp->shown, rows, name);
    if (e->rank != 2 || e->element != embla_element_safetensors("I64", 3) || e->shape[0] != rows ||
        e->shape[1] != 1)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s: tensor '%s' has %" PRIu64 " bytes of %s; expected: %" PRIu64
                          " numbers of I64",
                          cp->shown, name, e->bytes, e->element->name, rows);
    EMBLA_TRY(embla_arena_many(&index->arena, rows, sizeof *numbers, "lines", &numbers));
    EMBLA_TRY(embla_entry_numbers(cp, e, sizeof *numbers, (size_t)rows, numbers));
    for (uint64_t i = 0; i < rows; i++) {
        if (numbers[i] < least || numbers[i] >= limit)
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: '%s' %" PRIu64 " is %" PRId64
                              "; it must be at least %" PRId64 " and below %" PRId64,
                              cp->shown, name, i, numbers[i], least, limit);
        least = numbers[i] + 1;
    }
    *out = numbers;
    return EMBLA_OK;
}

/* The file must be an index of a known version. */
static embla_status check_format(const embla_directory *d, const char *path)
{
    const char *format = embla_saved_value(d, "format"), *version = embla_saved_value(d, "version");
    if (format && strcmp(format, ours) == 0 && version &&
        (strcmp(version, "1") == 0 || strcmp(version, "2") == 0))
        return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is not an index: its format is %.32s, version %.32s", path,
                      format ? format : "not said", version ? version : "not said");
}

static embla_status check_lists(const embla_index *index, const embla_directory *d,
                                const char *path)
{
    const char *said = embla_saved_value(d, "lists");
    char found[EMBLA_SUM_TEXT];
    if (!said && strcmp(embla_saved_value(d, "version"), "1") == 0) return EMBLA_OK;
    sum_lists(index, found);
    if (said && strcmp(said, found) == 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.200s is damaged: its list of lines has the checksum %s, but %.64s is "
                      "recorded",
                      path, found, said ? said : "none");
}

static embla_status fill(embla_index *index, const embla_checkpoint *cp, const char *path)
{
    const embla_directory *d = &cp->shards[0].directory;
    const char *lines = embla_saved_value(d, "lines");
    embla_encoder_info info;
    EMBLA_TRY(check_format(d, path));
    EMBLA_TRY(check_sums(index, d, path));
    EMBLA_TRY(embla_encoder_describe(index->encoder, &info));
    embla_status status = embla_table_open(cp, "vectors", NULL, &index->table);
    if (status == EMBLA_ERR_NOT_FOUND)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.200s is an index, but none of its %zu tensors is "
                          "'vectors'",
                          path, cp->count);
    EMBLA_TRY(status);
    if (embla_table_dim(index->table) != info.dim)
        return embla_fail(EMBLA_ERR_FORMAT, "%.200s has vectors of dim %zu, the model of %zu", path,
                          embla_table_dim(index->table), info.dim);
    index->line_count = lines ? strtoll(lines, NULL, 10) : 0;
    EMBLA_TRY(read_numbers(index, cp, "begin", (int64_t)index->lines.size, &index->begin));
    EMBLA_TRY(read_numbers(index, cp, "number", index->line_count, &index->number));
    const int64_t rows = embla_table_rows(index->table);
    for (int64_t i = 0; i < rows; i++)
        if (index->begin[i] > 0 && index->lines.bytes[index->begin[i] - 1] != '\n')
            return embla_fail(EMBLA_ERR_FORMAT,
                              "%.200s: 'begin' %" PRId64 " is %" PRId64
                              ", where no line of the corpus begins",
                              path, i, index->begin[i]);
    index->stored = true;
    return check_lists(index, d, path);
}

embla_status embla_index_verify(const char *path)
{
    embla_checkpoint *cp = NULL;
    EMBLA_NEED(path);
    EMBLA_TRY(embla_saved_open(path, "an index", &cp));
    embla_status status = check_format(&cp->shards[0].directory, path);
    if (status == EMBLA_OK) status = embla_saved_verify(cp, path);
    embla_checkpoint_free(cp);
    return status;
}

embla_status embla_index_open(const char *path, const embla_encoder *encoder, const char *corpus,
                              embla_index **out)
{
    embla_checkpoint *cp = NULL;
    embla_index *index = NULL;
    EMBLA_NEED(path);
    EMBLA_NEED(encoder);
    EMBLA_NEED(corpus);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_saved_open(path, "an index", &cp));
    embla_status status = embla_index_begin(encoder, corpus, &index);
    if (status == EMBLA_OK) status = fill(index, cp, path);
    embla_checkpoint_free(cp);
    if (status == EMBLA_OK)
        *out = index;
    else
        embla_index_free(index);
    return status;
}
