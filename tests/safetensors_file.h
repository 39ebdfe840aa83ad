/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of safetensors share: a file put together from the text of its header and
 * a number of data bytes, read from memory that ends where the file ends, and refused with a
 * sentence that names the file and ends with the rule.
 *
 * With EMBLA_SEEDS=FOLDER in the environment what is tried under a name is also written
 * there: that is how fuzz/corpus/safetensors and safetensors_index were made.
 */
#ifndef EMBLA_TESTS_SAFETENSORS_FILE_H
#define EMBLA_TESTS_SAFETENSORS_FILE_H

#include "check.h"

#include <stdio.h>

#include "base/mem.h"
#include "files/cursor.h"
#include "formats/safetensors.h"

#define FILE_NAME "a.safetensors"

typedef struct {
    uint8_t *bytes; /* free() them */
    size_t size;
} st_file;

/* length: what the first 8 bytes say; header: count bytes of it; then data bytes 1, 2, .. */
static inline st_file st_make(uint64_t length, const char *header, size_t count, size_t data)
{
    st_file f = {.size = 8 + count + data};
    f.bytes = malloc(f.size);
    assert_non_null(f.bytes);
    embla_put_le64(length, f.bytes);
    if (count > 0) memcpy(f.bytes + 8, header, count);
    for (size_t i = 0; i < data; i++) f.bytes[8 + count + i] = (uint8_t)(i + 1);
    return f;
}

static inline void st_seed(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[4096];
    const char *seeds = getenv("EMBLA_SEEDS");
    if (!seeds || !name) return;
    (void)snprintf(path, sizeof path, "%s/%s/%s", seeds, folder, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    if (size > 0) assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

static inline embla_status st_read(const st_file *f, bool lenient, embla_directory *out)
{
    embla_map *map = NULL;
    const embla_open_options options = {.lenient = lenient};
    *out = (embla_directory){0};
    assert_ok(embla_map_bytes(f->bytes, f->size, FILE_NAME, &map));
    embla_status status = embla_format_safetensors.read(map, lenient ? &options : NULL, out);
    embla_map_free(map);
    return status;
}

/* The last sentence begins with name and ends with the rule. */
static inline void st_sentence(const char *name, const char *rule)
{
    char end[16];
    (void)snprintf(end, sizeof end, " (%s)", rule);
    size_t length = strlen(embla_error()), tail = strlen(end);
    if (strncmp(embla_error(), name, strlen(name)) != 0)
        fail_msg("'%s' does not begin with %s", embla_error(), name);
    if (length < tail || strcmp(embla_error() + length - tail, end) != 0)
        fail_msg("'%s' does not end with%s", embla_error(), end);
}

/* Refused by this rule, and nothing is kept. f is freed. */
static inline void st_refuses_file(const char *seed, st_file f, bool lenient, const char *rule)
{
    embla_directory directory;
    size_t live = embla_mem_live();
    st_seed("safetensors", seed, f.bytes, f.size);
    embla_status status = st_read(&f, lenient, &directory);
    if (status != EMBLA_ERR_FORMAT)
        fail_msg("%s: %s", seed ? seed : "a file", embla_status_name(status));
    st_sentence(FILE_NAME ": ", rule);
    embla_directory_free(&directory);
    assert_int_equal(embla_mem_live(), live);
    free(f.bytes);
}

static inline void st_refuses(const char *seed, const char *header, size_t data, const char *rule)
{
    size_t count = strlen(header);
    st_refuses_file(seed, st_make(count, header, count, data), false, rule);
}

/* Accepted: every tensor lies in the data. f is freed; the caller frees the directory. */
static inline void st_accepts_file(const char *seed, st_file f, bool lenient, embla_directory *out)
{
    uint64_t data = 8 + embla_le64(f.bytes);
    st_seed("safetensors", seed, f.bytes, f.size);
    assert_ok(st_read(&f, lenient, out));
    assert_string_equal(out->format, "safetensors");
    for (size_t i = 0; i < out->count; i++) {
        assert_in_range(out->entries[i].bytes, 0, f.size - data);
        assert_in_range(out->entries[i].offset, data, f.size - out->entries[i].bytes);
    }
    free(f.bytes);
}

static inline void st_accepts(const char *seed, const char *header, size_t data,
                              embla_directory *out)
{
    size_t count = strlen(header);
    st_accepts_file(seed, st_make(count, header, count, data), false, out);
}

/* A header with one tensor 'a' of these members. */
#define ST_A(members) "{\"a\":{" members "}}"
/* The members of a tensor, each as JSON. */
#define ST_MEMBERS(dtype, shape, offsets)                                                          \
    "\"dtype\":\"" dtype "\",\"shape\":" shape ",\"data_offsets\":" offsets

#endif
