/* SPDX-License-Identifier: Apache-2.0 */
/* The promises of the fuzz targets for words and vectors, in text and binary:
 *   - a refused file gives an error message, and nothing is kept;
 *   - an accepted file has a word for every row, and its rows begin inside the file;
 *   - rows are decoded, all at once or one by one, or refused with an error message;
 *   - written again they read back: the same words, the same bits (a NaN as a NaN);
 *   - a file that is changed after it was opened gives rows or an error message, nothing else.
 * A file that is refused for its number of rows is tried again leniently, with the same promises.
 */
#ifndef EMBLA_FUZZ_VEC_H
#define EMBLA_FUZZ_VEC_H

#include <math.h>

#include "base/mem.h"
#include "formats/format.h"
#include "formats/vec.h"
#include "input.h"

#define VEC_NAME "fuzz.vec"

static inline embla_map *vec_open(const void *bytes, size_t size)
{
    embla_map *map = NULL;
    if (embla_map_bytes(bytes, size, VEC_NAME, &map) != EMBLA_OK) exit(1);
    return map;
}

static inline bool vec_same(const float *a, const float *b, uint64_t count)
{
    for (uint64_t i = 0; i < count; i++)
        if (memcmp(&a[i], &b[i], sizeof *a) != 0 && !(isnan(a[i]) && isnan(b[i]))) return false;
    return true;
}

/* Decodes all rows; NULL if one of them is refused. The last row alone gives the same. */
static inline float *vec_make(const embla_directory *d, const embla_map *map)
{
    const embla_entry *e = d->entries;
    float *all = (float *)(void *)block((size_t)e->bytes);
    float *one = (float *)(void *)block((size_t)(e->bytes / e->shape[0]));
    uint64_t last = e->shape[0] - 1;
    bool good = d->make(d, map, e, 0, e->shape[0], all) == EMBLA_OK;
    if (!good) PROMISE(strncmp(embla_error(), VEC_NAME ": row ", strlen(VEC_NAME ": row ")) == 0);
    bool alone = d->make(d, map, e, last, 1, one) == EMBLA_OK;
    PROMISE(alone || !good);
    PROMISE(d->make(d, map, e, last + 1, 0, one) == EMBLA_OK);
    PROMISE(d->make(d, map, e, last + 1, 1, one) == EMBLA_ERR_RANGE);
    PROMISE(d->make(d, map, e, last + 2, 0, one) == EMBLA_ERR_RANGE);
    if (good) PROMISE(vec_same(one, all + last * e->shape[1], e->shape[1]));
    free(one);
    if (good) return all;
    free(all);
    return NULL;
}

/* Writes all rows with put, after a header line if wanted. */
static inline char *vec_put(const embla_directory *d, const float *values, bool header,
                            embla_vec_put *put, size_t *size)
{
    size_t rows = (size_t)d->entries->shape[0], dim = (size_t)d->entries->shape[1];
    char *bytes = block(64 + rows * embla_vec_row_most(dim));
    *size = header ? (size_t)snprintf(bytes, 64, "%zu %zu\n", rows, dim) : 0;
    for (size_t row = 0; row < rows; row++) {
        const embla_name *label = &d->labels[row];
        bool ok = embla_vec_word_ok(label->bytes, label->length);
        *size += put(ok ? label->bytes : "#", ok ? label->length : 1, values + row * dim, dim,
                     bytes + *size);
    }
    return bytes;
}

static inline void vec_write_again(const embla_format *format, const embla_directory *d,
                                   const float *values)
{
    bool header = format != &embla_format_glove, binary = format == &embla_format_word2vec_bin;
    size_t size = 0;
    char *bytes =
        vec_put(d, values, header, binary ? embla_vec_put_binary : embla_vec_put_text, &size);
    embla_map *map = vec_open(bytes, size);
    embla_directory again = {0};
    if (!binary) PROMISE(format->sniff(map->bytes, size < 4096 ? size : 4096, size));
    PROMISE(format->read(map, NULL, &again) == EMBLA_OK);
    PROMISE(again.entries->shape[0] == d->entries->shape[0]);
    PROMISE(again.entries->shape[1] == d->entries->shape[1]);
    for (size_t row = 0; row < again.label_count; row++) {
        const embla_name *a = &again.labels[row], *b = &d->labels[row];
        if (!embla_vec_word_ok(b->bytes, b->length)) continue;
        PROMISE(a->length == b->length && memcmp(a->bytes, b->bytes, a->length) == 0);
    }
    float *back = vec_make(&again, map);
    PROMISE(back && vec_same(back, values, d->entries->bytes / sizeof *values));
    free(back);
    embla_directory_free(&again);
    embla_map_free(map);
    free(bytes);
}

static inline void vec_check(const embla_format *format, const embla_map *map,
                             const embla_directory *d)
{
    const embla_entry *e = d->entries;
    PROMISE(d->count == 1 && e->rank == 2 && e->made);
    PROMISE(e->shape[0] >= 1 && e->shape[1] >= 1 && e->shape[1] <= EMBLA_VEC_DIM_MOST);
    PROMISE(d->label_count == e->shape[0] && e->bytes == 4 * e->shape[0] * e->shape[1]);
    PROMISE(e->shape[0] * (2 * e->shape[1] + 1) <= map->size + 1);
    for (size_t i = 0; i < d->label_count; i++)
        PROMISE(d->labels[i].number == i && d->labels[i].length > 0);
    float *values = vec_make(d, map);
    if (values) vec_write_again(format, d, values);
    free(values);
}

/* The file after a change by others: only spaces; no space between two fields; spaces in place of
 * digits. */
static inline uint8_t vec_other(uint8_t byte, int way)
{
    bool space = byte == ' ' || byte == '\t', digit = byte >= '0' && byte <= '9';
    if (way == 0) return ' ';
    if (way == 1) return space ? '1' : byte;
    return digit ? ' ' : byte;
}

static inline void vec_changed(const embla_format *format, const uint8_t *data, size_t size)
{
    const embla_open_options options = {.lenient = false};
    uint8_t *bytes = (uint8_t *)block(size);
    for (int way = 0; way < 3; way++) {
        embla_map *map = vec_open(bytes, size);
        embla_directory d = {0};
        memcpy(bytes, data, size);
        PROMISE(format->read(map, &options, &d) == EMBLA_OK);
        char *rows = block((size_t)d.entries->bytes);
        for (size_t i = 0; i < size; i++)
            if (way < 2 || i % 3 == 0) bytes[i] = vec_other(bytes[i], way);
        if (d.make(&d, map, d.entries, 0, d.entries->shape[0], rows) != EMBLA_OK)
            PROMISE(strncmp(embla_error(), VEC_NAME ": ", strlen(VEC_NAME ": ")) == 0);
        free(rows);
        embla_directory_free(&d);
        embla_map_free(map);
    }
    free(bytes);
}

static inline void vec_one(const embla_format *format, const uint8_t *data, size_t size)
{
    size_t live = embla_mem_live();
    embla_map *map = vec_open(data, size);
    embla_directory strict = {0}, loose = {0};
    const embla_open_options lenient = {.lenient = true};
    bool yes = format->read(map, NULL, &strict) == EMBLA_OK;
    if (yes) vec_check(format, map, &strict);
    if (yes && size < 4096)
        vec_changed(format, data, size);
    else if (!yes)
        PROMISE(strncmp(embla_error(), VEC_NAME ": ", strlen(VEC_NAME ": ")) == 0);
    bool again = !yes && (strstr(embla_error(), "(W5)") || strstr(embla_error(), "(W1)"));
    if (again && format->read(map, &lenient, &loose) == EMBLA_OK) vec_check(format, map, &loose);
    embla_directory_free(&strict);
    embla_directory_free(&loose);
    embla_map_free(map);
    PROMISE(embla_mem_live() == live);
}

#endif
