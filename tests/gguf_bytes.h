/* SPDX-License-Identifier: Apache-2.0 */
/* GGUF files for tests, byte by byte: as the format says, or as it forbids. Nothing here
 * comes from the library, so that a mistake there is not repeated. Files end up in a block
 * of exactly their size: a sanitizer sees one byte too far.
 */
#ifndef EMBLA_TESTS_GGUF_BYTES_H
#define EMBLA_TESTS_GGUF_BYTES_H

#include "base/mem.h"
#include "check.h"
#include "formats/gguf.h"

#define SHOWN "some/file.gguf" /* what messages call it */

typedef struct {
    uint8_t *bytes;
    size_t used, room;
} gguf_bytes;

static inline void add(gguf_bytes *g, const void *bytes, size_t count)
{
    if (g->used + count > g->room) {
        g->room = 2 * (g->used + count) + 64;
        g->bytes = realloc(g->bytes, g->room);
        assert_non_null(g->bytes);
    }
    if (count > 0) memcpy(g->bytes + g->used, bytes, count);
    g->used += count;
}

/* value in so many bytes, lowest first. */
static inline void add_number(gguf_bytes *g, uint64_t value, size_t bytes)
{
    for (size_t i = 0; i < bytes; i++) {
        uint8_t byte = (uint8_t)(value >> (8 * i));
        add(g, &byte, 1);
    }
}

static inline void add_text(gguf_bytes *g, const char *text)
{
    add_number(g, strlen(text), 8);
    add(g, text, strlen(text));
}

static inline void add_head(gguf_bytes *g, uint32_t version, uint64_t tensors, uint64_t keys)
{
    add(g, "GGUF", 4);
    add_number(g, version, 4);
    add_number(g, tensors, 8);
    add_number(g, keys, 8);
}

static inline void add_key(gguf_bytes *g, const char *key, uint32_t type)
{
    add_text(g, key);
    add_number(g, type, 4);
}

static inline void add_key_u32(gguf_bytes *g, const char *key, uint32_t value)
{
    add_key(g, key, EMBLA_GGUF_U32);
    add_number(g, value, 4);
}

static inline void add_key_text(gguf_bytes *g, const char *key, const char *value)
{
    add_key(g, key, EMBLA_GGUF_STRING);
    add_text(g, value);
}

static inline void add_array(gguf_bytes *g, const char *key, uint32_t element, uint64_t count)
{
    add_key(g, key, EMBLA_GGUF_ARRAY);
    add_number(g, element, 4);
    add_number(g, count, 8);
}

/* dims fastest first, as in the file. */
static inline void add_tensor(gguf_bytes *g, const char *name, uint32_t rank, const uint64_t *dims,
                              uint32_t type, uint64_t offset)
{
    add_text(g, name);
    add_number(g, rank, 4);
    for (uint32_t i = 0; i < rank; i++) add_number(g, dims[i], 8);
    add_number(g, type, 4);
    add_number(g, offset, 8);
}

/* A table of rows x dim floats. */
static inline void add_table(gguf_bytes *g, const char *name, uint64_t rows, uint64_t dim,
                             uint64_t offset)
{
    uint64_t dims[2] = {dim, rows};
    add_tensor(g, name, 2, dims, 0, offset);
}

static inline void add_padding(gguf_bytes *g, size_t alignment)
{
    while (g->used % alignment != 0) add_number(g, 0, 1);
}

static inline void add_fill(gguf_bytes *g, size_t count)
{
    for (size_t i = 0; i < count; i++) add_number(g, i * 7 + 1, 1);
}

/* Two words, three keys beside them; then 2 x 4 floats. */
static inline void add_small_model(gguf_bytes *g)
{
    add_head(g, 3, 1, 4);
    add_key_text(g, "general.architecture", "gpt2");
    add_array(g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 2);
    add_text(g, "he");
    add_text(g, "<0x0A>");
    add_array(g, "tokenizer.ggml.scores", EMBLA_GGUF_F32, 2);
    add_number(g, 0x3f800000, 4);
    add_number(g, 0xbf800000, 4);
    add_array(g, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, 2);
    add_number(g, 1, 4);
    add_number(g, 6, 4);
    add_table(g, "token_embd.weight", 2, 4, 0);
    add_padding(g, 32);
    add_fill(g, 32);
}

/* A file that is open. */
typedef struct {
    uint8_t *bytes;
    embla_map *map;
    embla_directory directory;
    embla_status status; /* of reading it */
} opened;

/* Reads count bytes. Ends with gguf_close, whatever the status is. */
static inline opened gguf_open(const void *bytes, size_t count)
{
    opened file = {.bytes = malloc(count > 0 ? count : 1)};
    assert_non_null(file.bytes);
    if (count > 0) memcpy(file.bytes, bytes, count);
    file.status = embla_map_bytes(file.bytes, count, SHOWN, &file.map);
    if (file.status == EMBLA_OK)
        file.status = embla_format_gguf.read(file.map, NULL, &file.directory);
    return file;
}

static inline void gguf_close(opened *file)
{
    embla_directory_free(&file->directory);
    embla_map_free(file->map);
    free(file->bytes);
}

/* The file must be accepted; g is gone. */
static inline opened gguf_accepted(gguf_bytes *g)
{
    opened file = gguf_open(g->bytes, g->used);
    free(g->bytes);
    *g = (gguf_bytes){0};
    if (file.status != EMBLA_OK) fail_msg("refused: %s", embla_error());
    return file;
}

/* The file must be refused, with this status and a sentence that begins with the file's name
 * and ends with this rule, and nothing may stay behind. g is gone. */
static inline void gguf_refused_as(gguf_bytes *g, embla_status status, const char *rule)
{
    size_t live = embla_mem_live(), length;
    opened file = gguf_open(g->bytes, g->used);
    free(g->bytes);
    *g = (gguf_bytes){0};
    assert_status(file.status, status);
    assert_memory_equal(embla_error(), SHOWN, strlen(SHOWN));
    length = strlen(embla_error());
    if (length < strlen(rule) || strcmp(embla_error() + length - strlen(rule), rule) != 0)
        fail_msg("'%s' does not end with '%s'", embla_error(), rule);
    gguf_close(&file);
    assert_int_equal(embla_mem_live(), live);
}

static inline void gguf_refused(gguf_bytes *g, const char *rule)
{
    gguf_refused_as(g, EMBLA_ERR_FORMAT, rule);
}

#endif
