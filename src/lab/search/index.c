/* SPDX-License-Identifier: Apache-2.0 */
/* An index: the vectors of the lines of a corpus as one table, and where each line begins. A
 * search encodes the questions and asks embla_near. Text is not copied: the corpus stays mapped.
 */
#include "search/index.h"

#include <string.h>

#include "base/mem.h"
#include "base/options.h"
#include "base/stop.h"

/* ---- making ---- */

embla_status embla_index_begin(const embla_encoder *encoder, const char *corpus, embla_index **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_index), "an index", &memory));
    embla_index *index = memory;
    index->encoder = encoder;
    embla_status status = embla_lines_open(corpus, &index->lines);
    if (status == EMBLA_OK)
        *out = index;
    else
        embla_index_free(index);
    return status;
}

void embla_index_free(embla_index *index)
{
    if (!index) return;
    embla_table_free(index->table);
    embla_lines_free(&index->lines);
    embla_arena_free(&index->arena);
    embla_mem_free(index, sizeof *index);
}

typedef struct {
    embla_index *index;
    const embla_index_options *options;
    embla_line_batch *batch;
    int64_t *begin, *number;
    int64_t rows; /* so far */
} job;

/* Numbers of a batch are the numbers of lines. */
static embla_status finish_batch(job *j)
{
    embla_line_batch *b = j->batch;
    EMBLA_TRY(embla_line_batch_encode(b));
    EMBLA_TRY(embla_table_write(j->index->table, j->rows, b->count, b->vectors));
    for (size_t i = 0; i < b->count; i++) {
        j->begin[j->rows] = (int64_t)(b->texts[i] - j->index->lines.bytes);
        j->number[j->rows++] = b->numbers[i];
    }
    b->count = b->bytes = 0;
    return EMBLA_OK;
}

static embla_status encode_lines(job *j)
{
    const embla_lines *lines = &j->index->lines;
    int64_t number = 0;
    for (size_t at = 0; at < lines->size; number++) {
        const char *line = lines->bytes + at;
        size_t length = embla_lines_next(lines, &at);
        if (length == 0 || !embla_line_batch_add(j->batch, line, length, number)) continue;
        EMBLA_TRY(finish_batch(j));
        EMBLA_TRY(embla_progress_report(j->options->progress, j->options->context, "encode",
                                        (int64_t)at, (int64_t)lines->size));
    }
    EMBLA_TRY(finish_batch(j));
    EMBLA_TRY(embla_map_check(lines->map));
    if (j->rows > 0) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_SHAPE,
                      "%.200s: none of its %" PRId64 " lines has a token of the model",
                      lines->map->name, number);
}

static embla_status make(job *j)
{
    embla_index *index = j->index;
    const int64_t lines = index->line_count = embla_lines_count(&index->lines);
    const embla_dtype dtype = j->options->dtype ? j->options->dtype : EMBLA_F32;
    const uint64_t room = (uint64_t)lines + 1; /* a batch may be written after the last row */
    EMBLA_TRY(embla_arena_many(&index->arena, room, sizeof *j->begin, "lines", &j->begin));
    EMBLA_TRY(embla_arena_many(&index->arena, room, sizeof *j->number, "lines", &j->number));
    EMBLA_TRY(
        embla_line_batch_new(index->encoder, j->options->threads, EMBLA_NORMALIZE_YES, &j->batch));
    EMBLA_TRY(embla_table_new(dtype, lines + 1, j->batch->dim, NULL, &index->table));
    EMBLA_TRY(encode_lines(j));
    embla_table_shrink(index->table, j->rows);
    index->begin = j->begin;
    index->number = j->number;
    return EMBLA_OK;
}

embla_status embla_index_new(const embla_encoder *encoder, const char *corpus,
                             const embla_index_options *options, embla_index **out)
{
    const embla_index_options defaults = {0};
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &defaults;
    EMBLA_NEED(encoder);
    EMBLA_NEED(corpus);
    EMBLA_NEED(out);
    if (options->dtype != 0 && options->dtype != EMBLA_F32 && options->dtype != EMBLA_F16 &&
        options->dtype != EMBLA_BF16)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "an index of dtype %d (%s) was asked for; f32, f16 and bf16 are possible",
                          (int)options->dtype,
                          embla_dtype_name(options->dtype) ? embla_dtype_name(options->dtype)
                                                           : "unknown");
    job j = {.options = options};
    EMBLA_TRY(embla_index_begin(encoder, corpus, &j.index));
    embla_status status = make(&j);
    embla_line_batch_free(j.batch);
    if (status == EMBLA_OK)
        *out = j.index;
    else
        embla_index_free(j.index);
    return status;
}

/* ---- queries ---- */

embla_status embla_index_describe(const embla_index *index, embla_index_info *out)
{
    EMBLA_NEED(index);
    EMBLA_NEED(out);
    const embla_table *table = index->table;
    const int64_t rows = embla_table_rows(table);
    *out = (embla_index_info){.lines = index->line_count,
                              .rows = rows,
                              .bytes = rows * (int64_t)embla_table_row_bytes(table),
                              .text_bytes = (int64_t)index->lines.size,
                              .dim = embla_table_dim(table),
                              .dtype = embla_table_dtype(table),
                              .stored = index->stored};
    return EMBLA_OK;
}

const char *embla_index_line(const embla_index *index, int64_t row, size_t *length, int64_t *number)
{
    if (!index || (uint64_t)row >= (uint64_t)embla_table_rows(index->table)) return NULL;
    size_t at = (size_t)index->begin[row];
    const char *text = index->lines.bytes + at;
    *length = embla_lines_next(&index->lines, &at);
    if (number) *number = index->number[row] + 1;
    return text;
}

/* ---- search ---- */

static embla_status search(const embla_index *index, const embla_texts *texts, size_t k,
                           const embla_search_options *asked, float *vectors,
                           embla_encoded *details, embla_neighbour *out)
{
    const embla_search_options none = {0};
    if (!asked) asked = &none;
    const size_t count = texts->count;
    const embla_encode_options how = {.normalize = EMBLA_NORMALIZE_YES,
                                      .threads = asked->threads,
                                      .progress = asked->progress,
                                      .context = asked->context};
    const embla_near_options options = {
        .k = k, .threads = asked->threads, .progress = asked->progress, .context = asked->context};
    EMBLA_TRY(embla_map_check(index->lines.map));
    EMBLA_TRY(embla_table_check_file(index->table));
    EMBLA_TRY(embla_encoder_encode(index->encoder, texts, &how, vectors, details));
    if (asked->distinct)
        EMBLA_TRY(embla_index_distinct(index, vectors, count, &options, out));
    else
        EMBLA_TRY(embla_near(index->table, vectors, count, &options, out, NULL));
    EMBLA_TRY(embla_table_check_file(index->table));
    for (size_t i = 0; i < count; i++)
        for (size_t n = 0; details[i].tokens == 0 && n < k; n++)
            out[i * k + n] = (embla_neighbour){.row = -1};
    return EMBLA_OK;
}

embla_status embla_index_search(const embla_index *index, const embla_texts *texts, size_t k,
                                const embla_search_options *options, embla_neighbour *out,
                                embla_encoded *details)
{
    embla_arena arena = {0};
    embla_encoded *found = NULL;
    float *vectors = NULL;
    EMBLA_TRY(embla_options_check(options));
    EMBLA_NEED(index);
    EMBLA_NEED(texts);
    EMBLA_TRY(embla_options_check(texts));
    const size_t count = texts->count;
    if (count == 0) return EMBLA_OK;
    EMBLA_NEED(texts->texts);
    EMBLA_NEED(texts->lengths);
    EMBLA_NEED(out);
    const uint64_t row = embla_table_dim(index->table) * sizeof *vectors;
    embla_status status = embla_arena_many(&arena, count, (size_t)row, "vectors", &vectors);
    if (status == EMBLA_OK)
        status = embla_arena_many(&arena, count, sizeof *found, "texts", &found);
    if (status == EMBLA_OK) status = search(index, texts, k, options, vectors, found, out);
    if (status == EMBLA_OK && details) memcpy(details, found, count * sizeof *details);
    embla_arena_free(&arena);
    return status;
}
