/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of every dtype: as stored, and decoded by lookups. Row formats with scales, random tables,
 * embed and pool. */
#include <stdlib.h>
#include <string.h>

#include "bits.h"

enum { ROWS = 40, COUNT = 300 };

/* ---- dtypes ---- */

/* Bytes of a block of 256 numbers, and where its one or two f16 are. 0 is no superblock. */
typedef struct {
    size_t bytes, halves[2];
} superblock;

static superblock superblock_of(embla_dtype dtype)
{
    switch (dtype) {
    case EMBLA_Q3_K:
        return (superblock){110, {108, 108}};
    case EMBLA_Q4_K:
        return (superblock){144, {0, 2}};
    case EMBLA_Q5_K:
        return (superblock){176, {0, 2}};
    case EMBLA_Q6_K:
        return (superblock){210, {208, 208}};
    case EMBLA_IQ4_XS:
        return (superblock){136, {0, 0}};
    default:
        return (superblock){0};
    }
}

/* Random bytes are valid rows of a superblock dtype, if the f16 in them are finite. */
static void fill_superblocks(embla_table *table, superblock block, uint64_t seed)
{
    unsigned char *bytes = embla_table_data(table);
    size_t count = (size_t)embla_table_rows(table) * embla_table_row_bytes(table);
    for (size_t i = 0; i < count; i++) bytes[i] = (unsigned char)bits_below(&seed, 256);
    for (size_t i = 0; i < count; i += block.bytes)
        for (size_t h = 0; h < 2; h++) { /* 2^-6 .. 2^-2, either sign */
            unsigned char *high = bytes + i + block.halves[h] + 1;
            *high = (unsigned char)((*high & 0x8fu) | 0x20u);
        }
}

static embla_table *table_of(embla_dtype dtype, size_t *dim)
{
    superblock block = superblock_of(dtype);
    embla_table *table = NULL;
    *dim = block.bytes > 0 ? 512 : dtype == EMBLA_F4_E2M1 || dtype < EMBLA_Q8_0 ? 190 : 192;
    if (block.bytes == 0) return bits_table(dtype, ROWS, *dim, 100 + (uint64_t)dtype);
    OK(embla_table_new(dtype, ROWS, *dim, NULL, &table));
    fill_superblocks(table, block, 100 + (uint64_t)dtype);
    return table;
}

/* Stored rows; f32 and f64 have the byte order of the machine. */
static void note_rows(embla_dtype dtype, const void *rows, size_t bytes, const char *before,
                      const char *after)
{
    const char *name = embla_dtype_name(dtype);
    if (dtype == EMBLA_F32)
        bits_note_f32(rows, bytes / 4, "%s%s%s", before, name, after);
    else if (dtype == EMBLA_F64)
        bits_note_f64(rows, bytes / 8, "%s%s%s", before, name, after);
    else
        bits_note(rows, bytes, "%s%s%s", before, name, after);
}

static void note_lookups(embla_dtype dtype)
{
    const embla_dtype outputs[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    const char *name = embla_dtype_name(dtype);
    size_t dim;
    embla_table *table = table_of(dtype, &dim);
    size_t bytes = embla_table_row_bytes(table);
    int32_t *tokens = bits_tokens(3, COUNT, ROWS);
    unsigned char *out = bits_room(COUNT * (dim * 4 + bytes));
    embla_lookup_options options = {.threads = bits_threads, .raw = true};
    note_rows(dtype, embla_table_row(table, 0), ROWS * bytes, "stored.", "");
    OK(embla_lookup(table, tokens, COUNT, &options, out));
    note_rows(dtype, out, COUNT * bytes, "lookup.", ".raw");
    options.raw = false;
    for (size_t i = 0; i < COUNT_OF(outputs); i++) {
        options.out_dtype = outputs[i];
        OK(embla_lookup(table, tokens, COUNT, &options, out));
        if (i == 0) {
            float *floats = bits_room(COUNT * dim * 4);
            memcpy(floats, out, COUNT * dim * 4);
            bits_note_f32(floats, COUNT * dim, "lookup.%s.f32", name);
            free(floats);
        } else {
            bits_note(out, COUNT * dim * 2, "lookup.%s.%s", name, embla_dtype_name(outputs[i]));
        }
    }
    free(out);
    free(tokens);
    embla_table_free(table);
}

/* Scales beside the numbers of a row, for every dtype that takes them. */
static void note_scaled(embla_dtype dtype, embla_scales scales, const char *name)
{
    const embla_row_format format = {.dim = 200, .dtype = dtype, .scales = scales, .scale = 0.7f};
    size_t bytes;
    float *numbers = bits_numbers(17, ROWS * format.dim);
    OK(embla_row_bytes(&format, &bytes));
    unsigned char *rows = bits_room(ROWS * bytes);
    OK(embla_row_encode(&format, numbers, ROWS, rows));
    bits_note(rows, ROWS * bytes, "row.%s.%s.stored", embla_dtype_name(dtype), name);
    OK(embla_row_decode(&format, rows, ROWS, numbers));
    bits_note_f32(numbers, ROWS * format.dim, "row.%s.%s.decoded", embla_dtype_name(dtype), name);
    free(rows);
    free(numbers);
}

/* ---- random tables ---- */

static void note_init(embla_dtype dtype, embla_init_kind kind, const char *name)
{
    const embla_init_options options = {.seed = 7, .kind = kind, .threads = bits_threads};
    embla_table *table = NULL;
    OK(embla_table_new(dtype, 65, 192, NULL, &table));
    OK(embla_table_init(table, &options));
    const int64_t rows = 65;
    float *out = bits_room((size_t)rows * 192 * 4);
    int32_t tokens[65];
    for (int32_t i = 0; i < 65; i++) tokens[i] = i;
    OK(embla_lookup(table, tokens, 65, NULL, out));
    bits_note_f32(out, 65 * 192, "init.%s.%s", name, embla_dtype_name(dtype));
    free(out);
    embla_table_free(table);
}

/* ---- embed, pool, geometry ---- */

static void note_embed(void)
{
    enum { DIM = 96, BATCH = 5, LENGTH = 20 };
    embla_table *table = bits_table(EMBLA_BF16, ROWS, DIM, 5);
    embla_table *positions = bits_table(EMBLA_F32, LENGTH + 3, DIM, 6);
    int32_t *tokens = bits_tokens(7, BATCH * LENGTH, ROWS);
    float *out = bits_room(BATCH * LENGTH * DIM * 4);
    embla_embed_options options = {.threads = bits_threads};
    OK(embla_embed(table, tokens, BATCH, LENGTH, &options, out));
    bits_note_f32(out, BATCH * LENGTH * DIM, "embed.tokens");
    options.position_table = positions;
    options.first_position = 2;
    OK(embla_embed(table, tokens, BATCH, LENGTH, &options, out));
    bits_note_f32(out, BATCH * LENGTH * DIM, "embed.positions");
    options.sqrt_dim = true;
    options.scale = 0.3f;
    OK(embla_embed(table, tokens, BATCH, LENGTH, &options, out));
    bits_note_f32(out, BATCH * LENGTH * DIM, "embed.positions.scaled");
    options.out_dtype = EMBLA_BF16;
    OK(embla_embed(table, tokens, BATCH, LENGTH, &options, out));
    bits_note(out, BATCH * LENGTH * DIM * 2, "embed.positions.bf16");
    free(out);
    free(tokens);
    embla_table_free(positions);
    embla_table_free(table);
}

static void note_pool(void)
{
    enum { DIM = 77, BATCH = 6, LENGTH = 19 };
    static const char *const names[] = {"mean", "sum", "max", "last"};
    const size_t lengths[BATCH] = {19, 1, 0, 7, 18, 2};
    float *x = bits_numbers(8, BATCH * LENGTH * DIM), *weights = bits_numbers(9, BATCH * LENGTH);
    float out[BATCH * DIM];
    embla_table *table = bits_table(EMBLA_I8, ROWS, DIM, 10);
    int32_t *tokens = bits_tokens(11, BATCH * LENGTH, ROWS);
    for (int kind = 0; kind < 4; kind++) {
        embla_pool_options options = {
            .lengths = lengths, .threads = bits_threads, .kind = (embla_pool_kind)kind};
        OK(embla_pool(x, BATCH, LENGTH, DIM, &options, out));
        bits_note_f32(out, BATCH * DIM, "pool.%s", names[kind]);
        options.normalize = true;
        OK(embla_lookup_pool(table, tokens, BATCH, LENGTH, &options, out));
        bits_note_f32(out, BATCH * DIM, "pool.rows.%s.normalized", names[kind]);
    }
    const embla_pool_options weighted = {.weights = weights, .threads = bits_threads};
    OK(embla_pool(x, BATCH, LENGTH, DIM, &weighted, out));
    bits_note_f32(out, BATCH * DIM, "pool.mean.weighted");
    free(tokens);
    embla_table_free(table);
    free(weights);
    free(x);
}

static void note_geometry(void)
{
    enum { MOST = 140 };
    float *x = bits_numbers(12, MOST), *y = bits_numbers(13, MOST);
    double out[3][MOST];
    for (size_t n = 0; n < MOST; n++) {
        out[0][n] = embla_dot(x, y, n);
        out[1][n] = embla_norm(x, n);
        out[2][n] = embla_cosine(x, y, n);
    }
    bits_note_f64(out[0], MOST, "geometry.dot");
    bits_note_f64(out[1], MOST, "geometry.norm");
    bits_note_f64(out[2], MOST, "geometry.cosine");
    free(y);
    free(x);
}

void bits_rows(void)
{
    for (int dtype = EMBLA_F32; dtype <= EMBLA_F4_E2M1; dtype++) note_lookups((embla_dtype)dtype);
    note_scaled(EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32, "ue8m0_32");
    note_scaled(EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_128, "ue8m0_128");
    note_scaled(EMBLA_F4_E2M1, EMBLA_SCALES_UE8M0_32, "ue8m0_32");
    note_scaled(EMBLA_F4_E2M1, EMBLA_SCALES_E4M3_16, "e4m3_16");
    note_init(EMBLA_F32, EMBLA_INIT_NORMAL, "normal");
    note_init(EMBLA_F32, EMBLA_INIT_XAVIER, "xavier");
    note_init(EMBLA_BF16, EMBLA_INIT_NORMAL, "normal");
    note_init(EMBLA_Q8_0, EMBLA_INIT_XAVIER, "xavier");
    note_embed();
    note_pool();
    note_geometry();
}
