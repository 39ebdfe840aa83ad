/* SPDX-License-Identifier: Apache-2.0 */
/* Small checkpoints for tests, written byte by byte without the library: safetensors, whole
 * and in shards, and GGUF, with F32 tensors of numbers that a seed decides.
 */
#ifndef EMBLA_TESTS_TOY_H
#define EMBLA_TESTS_TOY_H

#include "scratch.h"

typedef struct {
    const char *name;
    uint64_t rows, dim; /* dim 0: one dimension, rows numbers */
    uint64_t seed;      /* tensors of one seed and shape hold the same numbers */
} toy_tensor;

typedef struct {
    unsigned char *bytes;
    size_t used, room;
} toy_bytes;

static inline void toy_put(toy_bytes *t, const void *bytes, size_t count)
{
    if (t->used + count > t->room) {
        t->room = 2 * (t->used + count);
        t->bytes = realloc(t->bytes, t->room);
        assert_non_null(t->bytes);
    }
    if (count > 0) memcpy(t->bytes + t->used, bytes, count);
    t->used += count;
}

static inline void toy_number(toy_bytes *t, uint64_t value, int bytes)
{
    for (int i = 0; i < bytes; i++) {
        unsigned char c = (unsigned char)(value >> (8 * i));
        toy_put(t, &c, 1);
    }
}

/* Numbers of `size` bytes as files have them: the lowest byte first. */
static inline void toy_numbers(toy_bytes *t, const void *numbers, size_t size, size_t count)
{
    for (size_t i = 0; i < count; i++) {
        const unsigned char *number = (const unsigned char *)numbers + i * size;
        uint64_t value = 0;
        if (size == 8)
            memcpy(&value, number, 8);
        else if (size == 4) {
            uint32_t word;
            memcpy(&word, number, 4);
            value = word;
        } else if (size == 2) {
            uint16_t half;
            memcpy(&half, number, 2);
            value = half;
        } else
            value = *number;
        toy_number(t, value, (int)size);
    }
}

/* Numbers of a type of safetensors: "BF16" has 16 bits. */
static inline void toy_typed(toy_bytes *t, const char *type, const void *numbers, size_t bytes)
{
    size_t bits = strtoul(type + strcspn(type, "0123456789"), NULL, 10);
    size_t size = bits < 8 ? 1 : bits / 8;
    toy_numbers(t, numbers, size, bytes / size);
}

static inline uint64_t toy_size(const toy_tensor *t)
{
    return t->rows * (t->dim > 0 ? t->dim : 1);
}

static inline float toy_value(uint64_t seed, uint64_t i)
{
    uint64_t state = seed * 1000003 + i;
    return check_unit(&state);
}

static inline void toy_data(toy_bytes *t, const toy_tensor *tensor)
{
    for (uint64_t i = 0; i < toy_size(tensor); i++) {
        float value = toy_value(tensor->seed, i);
        toy_numbers(t, &value, sizeof value, 1);
    }
}

static inline void toy_safetensors(const char *path, const toy_tensor *tensors, size_t count)
{
    toy_bytes header = {0}, file = {0};
    uint64_t offset = 0;
    char text[512];
    toy_put(&header, "{", 1);
    for (size_t i = 0; i < count; i++) {
        const toy_tensor *t = &tensors[i];
        uint64_t end = offset + 4 * toy_size(t);
        int n = snprintf(text, sizeof text, "%s\"%s\":{\"dtype\":\"F32\",\"shape\":[%" PRIu64,
                         i > 0 ? "," : "", t->name, t->rows);
        toy_put(&header, text, (size_t)n);
        n = t->dim > 0 ? snprintf(text, sizeof text, ",%" PRIu64, t->dim) : 0;
        toy_put(&header, text, (size_t)n);
        n = snprintf(text, sizeof text, "],\"data_offsets\":[%" PRIu64 ",%" PRIu64 "]}", offset,
                     end);
        toy_put(&header, text, (size_t)n);
        offset = end;
    }
    toy_put(&header, "}", 1);
    while (header.used % 8 != 0) toy_put(&header, " ", 1);
    toy_number(&file, header.used, 8);
    toy_put(&file, header.bytes, header.used);
    for (size_t i = 0; i < count; i++) toy_data(&file, &tensors[i]);
    scratch_write(path, file.bytes, file.used);
    free(header.bytes);
    free(file.bytes);
}

/* Each tensor in a shard of its own, and the index. */
static inline void toy_sharded(scratch *s, const toy_tensor *tensors, size_t count)
{
    toy_bytes index = {0};
    char text[512], shard[64];
    toy_put(&index, "{\"weight_map\":{", 15);
    for (size_t i = 0; i < count; i++) {
        (void)snprintf(shard, sizeof shard, "model-%05zu-of-%05zu.safetensors", i + 1, count);
        int n = snprintf(text, sizeof text, "%s\"%s\":\"%s\"", i > 0 ? "," : "", tensors[i].name,
                         shard);
        toy_put(&index, text, (size_t)n);
        toy_safetensors(scratch_path(s, shard), &tensors[i], 1);
    }
    toy_put(&index, "}}", 2);
    scratch_write(scratch_path(s, "model.safetensors.index.json"), index.bytes, index.used);
    free(index.bytes);
}

static inline void toy_string(toy_bytes *t, const char *text)
{
    toy_number(t, strlen(text), 8);
    toy_put(t, text, strlen(text));
}

/* A GGUF with architecture and, if words > 0, so many tokens "w0", "w1", .. */
static inline void toy_gguf(const char *path, const char *architecture, size_t words,
                            const toy_tensor *tensors, size_t count)
{
    toy_bytes t = {0};
    uint64_t offset = 0;
    char text[32];
    toy_put(&t, "GGUF", 4);
    toy_number(&t, 3, 4);
    toy_number(&t, count, 8);
    toy_number(&t, words > 0 ? 2 : 1, 8);
    toy_string(&t, "general.architecture");
    toy_number(&t, 8, 4);
    toy_string(&t, architecture);
    if (words > 0) {
        toy_string(&t, "tokenizer.ggml.tokens");
        toy_number(&t, 9, 4);
        toy_number(&t, 8, 4);
        toy_number(&t, words, 8);
        for (size_t i = 0; i < words; i++) {
            (void)snprintf(text, sizeof text, "w%zu", i);
            toy_string(&t, text);
        }
    }
    for (size_t i = 0; i < count; i++) {
        toy_string(&t, tensors[i].name);
        toy_number(&t, tensors[i].dim > 0 ? 2 : 1, 4);
        if (tensors[i].dim > 0) toy_number(&t, tensors[i].dim, 8);
        toy_number(&t, tensors[i].rows, 8);
        toy_number(&t, 0, 4); /* F32 */
        toy_number(&t, offset, 8);
        offset += (4 * toy_size(&tensors[i]) + 31) / 32 * 32;
    }
    for (size_t i = 0; i < count; i++) {
        while (t.used % 32 != 0) toy_number(&t, 0, 1);
        toy_data(&t, &tensors[i]);
    }
    while (t.used % 32 != 0) toy_number(&t, 0, 1);
    scratch_write(path, t.bytes, t.used);
    free(t.bytes);
}

static inline void toy_text(const char *path, const char *text)
{
    scratch_write(path, text, strlen(text));
}

#endif
