/* SPDX-License-Identifier: Apache-2.0 */
#include "search/corpus_lines.h"

#include <string.h>

#include "base/mem.h"

/* ---- lines ---- */

embla_status embla_lines_open(const char *path, embla_lines *out)
{
    embla_map *map = NULL;
    EMBLA_TRY(embla_map_open(EMBLA_HERE, path, path, true, &map));
    embla_status status = embla_map_check_text(map);
    if (status == EMBLA_OK)
        *out = (embla_lines){map, (const char *)map->bytes, (size_t)map->size};
    else
        embla_map_free(map);
    return status;
}

void embla_lines_free(embla_lines *lines)
{
    embla_map_free(lines->map);
    *lines = (embla_lines){0};
}

size_t embla_lines_next(const embla_lines *lines, size_t *at)
{
    const char *begin = lines->bytes + *at, *end = memchr(begin, '\n', lines->size - *at);
    size_t length = end ? (size_t)(end - begin) : lines->size - *at;
    *at += length + (end ? 1 : 0);
    return length > 0 && begin[length - 1] == '\r' ? length - 1 : length;
}

int64_t embla_lines_count(const embla_lines *lines)
{
    int64_t count = 0;
    for (size_t at = 0; at < lines->size; count++) (void)embla_lines_next(lines, &at);
    return count;
}

embla_status embla_lines_sum(const embla_lines *lines, embla_checksum *out)
{
    EMBLA_TRY(embla_map_check(lines->map));
    *out = embla_checksum_of(lines->bytes, lines->size);
    return embla_map_check(lines->map);
}

/* ---- batches ---- */

embla_status embla_line_batch_new(const embla_encoder *encoder, int threads,
                                  embla_normalize_kind normalize, embla_line_batch **out)
{
    embla_encoder_info info;
    void *memory = NULL, *vectors = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_line_batch), "a batch of lines", &memory));
    embla_line_batch *b = memory;
    EMBLA_TRY(embla_encoder_describe(encoder, &info));
    b->encoder = encoder;
    b->dim = info.dim;
    b->options = (embla_encode_options){.normalize = normalize, .threads = threads};
    embla_status status =
        embla_mem_new(EMBLA_LINES_BATCH * b->dim * sizeof(float), "vectors", &vectors);
    b->vectors = vectors;
    if (status == EMBLA_OK)
        *out = b;
    else
        embla_line_batch_free(b);
    return status;
}

void embla_line_batch_free(embla_line_batch *b)
{
    if (!b) return;
    embla_mem_free(b->vectors, EMBLA_LINES_BATCH * b->dim * sizeof(float));
    embla_mem_free(b, sizeof *b);
}

bool embla_line_batch_add(embla_line_batch *b, const char *text, size_t length, int64_t number)
{
    b->texts[b->count] = text;
    b->lengths[b->count] = length;
    b->numbers[b->count++] = number;
    b->bytes += length;
    return b->count == EMBLA_LINES_BATCH || b->bytes >= EMBLA_LINES_BYTES;
}

embla_status embla_line_batch_encode(embla_line_batch *b)
{
    size_t kept = 0;
    const embla_texts texts = {.texts = b->texts, .lengths = b->lengths, .count = b->count};
    EMBLA_TRY(embla_encoder_encode(b->encoder, &texts, &b->options, b->vectors, b->details));
    for (size_t i = 0; i < b->count; i++) {
        if (b->details[i].tokens == 0) continue;
        if (kept < i)
            memcpy(b->vectors + kept * b->dim, b->vectors + i * b->dim, b->dim * sizeof(float));
        b->texts[kept] = b->texts[i];
        b->lengths[kept] = b->lengths[i];
        b->numbers[kept] = b->numbers[i];
        b->details[kept++] = b->details[i];
    }
    b->count = kept;
    return EMBLA_OK;
}
