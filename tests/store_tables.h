/* SPDX-License-Identifier: Apache-2.0 */
/* Tables in files, for tests of stores: rows of giant tables' sizes (160, 264 and 144 bytes), in
 * many parts, in one plane and in two. The test keeps the bytes that it wrote.
 */
#ifndef EMBLA_TESTS_STORE_TABLES_H
#define EMBLA_TESTS_STORE_TABLES_H

#include "check.h"

#include "embla_store.h"
#include "scratch.h"

/* A table as the test made it: its rows one after the other, and where they are in files. */
typedef struct {
    scratch s;
    embla_row_format format;
    size_t row_bytes, code_bytes;
    int64_t rows;
    unsigned char *truth;
    char paths[8][SCRATCH_PATH];
    embla_extent extents[128];
    size_t count;
} table;

static inline void start(table *t, embla_row_format format, int64_t rows)
{
    *t = (table){.format = format, .rows = rows};
    scratch_new(&t->s);
    assert_ok(embla_row_bytes(&format, &t->row_bytes));
    assert_ok(embla_dtype_row_bytes(format.dtype, format.dim, &t->code_bytes));
    t->truth = malloc((size_t)rows * t->row_bytes);
    assert_non_null(t->truth);
    check_fill_bytes(t->row_bytes, (size_t)rows * t->row_bytes, t->truth);
}

static inline void finish(table *t)
{
    scratch_free(&t->s);
    free(t->truth);
}

static inline FILE *file_of(table *t, size_t n)
{
    char name[16];
    (void)snprintf(name, sizeof name, "part%zu", n);
    (void)snprintf(t->paths[n], sizeof t->paths[n], "%s", scratch_path(&t->s, name));
    FILE *file = fopen(t->paths[n], "wb");
    assert_non_null(file);
    return file;
}

static inline void put(FILE *file, const void *bytes, size_t count)
{
    assert_int_equal(fwrite(bytes, 1, count, file), count);
}

/* parts over five files, at odd places, each followed by bytes that are no rows. */
static inline void make_shards(table *t, size_t parts)
{
    static const unsigned char other[77] = {1};
    FILE *files[5];
    int64_t each = t->rows / (int64_t)parts;
    for (size_t i = 0; i < 5; i++) files[i] = file_of(t, i);
    for (size_t i = 0; i < parts; i++) {
        FILE *file = files[i % 5];
        int64_t rows = i + 1 < parts ? each : t->rows - each * (int64_t)(parts - 1);
        put(file, other, 13 + i % 64);
        t->extents[i] =
            (embla_extent){.file = t->paths[i % 5], .offset = ftell(file), .rows = rows};
        put(file, t->truth + (size_t)(each * (int64_t)i) * t->row_bytes,
            (size_t)rows * t->row_bytes);
    }
    for (size_t i = 0; i < 5; i++) assert_int_equal(fclose(files[i]), 0);
    t->count = parts;
}

/* Numbers in one file, scales in another; with gap, so many bytes after each. */
static inline void make_planes(table *t, size_t gap)
{
    FILE *codes = file_of(t, 0), *scales = file_of(t, 1);
    size_t scale_bytes = t->row_bytes - t->code_bytes;
    static const unsigned char other[64] = {2};
    put(codes, other, 9);
    put(scales, other, 5);
    for (int64_t r = 0; r < t->rows; r++) {
        const unsigned char *row = t->truth + (size_t)r * t->row_bytes;
        put(codes, row, t->code_bytes);
        put(codes, other, gap);
        put(scales, row + t->code_bytes, scale_bytes);
        put(scales, other, gap);
    }
    assert_int_equal(fclose(codes), 0);
    assert_int_equal(fclose(scales), 0);
    t->extents[0] = (embla_extent){.file = t->paths[0],
                                   .offset = 9,
                                   .stride = gap ? t->code_bytes + gap : 0,
                                   .scale_file = t->paths[1],
                                   .scale_offset = 5,
                                   .scale_stride = gap ? scale_bytes + gap : 0,
                                   .rows = t->rows};
    t->count = 1;
}

/* Whole rows in one file. */
static inline void make_joined(table *t, size_t gap)
{
    FILE *file = file_of(t, 0);
    static const unsigned char other[64] = {3};
    put(file, other, 11);
    for (int64_t r = 0; r < t->rows; r++) {
        put(file, t->truth + (size_t)r * t->row_bytes, t->row_bytes);
        put(file, other, gap);
    }
    assert_int_equal(fclose(file), 0);
    t->extents[0] = (embla_extent){.file = t->paths[0],
                                   .offset = 11,
                                   .stride = gap ? t->row_bytes + gap : 0,
                                   .scale_offset = -1,
                                   .rows = t->rows};
    t->count = 1;
}

static const embla_row_format qwen = {.dim = 160, .dtype = EMBLA_F8_E4M3, .scale = 1.99e-4f};
static const embla_row_format deepseek = {
    .dim = 256, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32};
static const embla_row_format q4_k = {.dim = 256, .dtype = EMBLA_Q4_K};

enum { TABLES = 6 };

static inline void make(table *t, int which, int64_t rows)
{
    start(t, which == 0 ? qwen : which == 1 ? q4_k : deepseek, rows);
    if (which == 0) make_shards(t, 128);
    if (which == 1) make_joined(t, 0);
    if (which == 2) make_planes(t, 0);
    if (which == 3) make_planes(t, 7);
    if (which == 4) make_joined(t, 0);
    if (which == 5) make_joined(t, 24);
}

#endif
