/* SPDX-License-Identifier: Apache-2.0 */
/* Any table, any options, any row numbers, for lookup and embed. Promises:
 *   - an accepted call writes what a simple loop over the definition writes, and no other byte: not
 *     between rows, before the first or after the last;
 *   - a refused call leaves the output untouched and sets an error message;
 *   - it is refused exactly if a row number is out of range or an argument is wrong.
 * The input also chooses kernel set, threads and the size of the result, which decides the mode of
 * writing.
 */
#include "base/kernels.h"
#include "input.h"
#include "reference.h"

enum { IDS = 64, MOST = 600, MOST_COUNT = 1 << 15, MARGIN = 64 };
/* Sizes of results that are prefetched, that use two threads, that are streamed. */
enum { AHEAD = 80 << 10, THREADED = 300 << 10, STREAMED = (4 << 20) + 4096 };

typedef struct {
    embla_dtype dtype, out_dtype;
    size_t dim, row_bytes, stride;
    int64_t rows;
    float table_scale; /* the effective scale: 1 if none was given */
    char *data;

    bool as_tokens, embed, raw;
    int64_t ids[IDS];
    size_t distinct, count; /* output i uses ids[i % distinct] */
    int64_t first_position;
    float scale;
    size_t out_bytes, out_stride;
    int threads;
} trial;

int LLVMFuzzerInitialize(int *argc, char ***argv);

/* Streams results of 4 MB and more, whatever this CPU would choose. */
int LLVMFuzzerInitialize(int *argc, char ***argv)
{
    (void)argc;
    (void)argv;
    return setenv("EMBLA_WRITE", "stream", 0);
}

static int64_t take_id(input *in, int64_t rows)
{
    static const int64_t odd[] = {-1, INT64_MIN, INT64_C(1) << 31, INT64_MAX, INT64_C(1) << 32};
    uint8_t byte = take_byte(in);
    if (byte < 250) return byte % rows;
    return byte == 255 ? rows : odd[byte - 250];
}

/* Creates the table; NULL if it is refused. */
static embla_table *take_table(input *in, trial *t)
{
    embla_table_options options = {0};
    embla_table *table = NULL;
    t->dtype = (embla_dtype)take_below(in, EMBLA_F4_E2M1 + 2);
    t->rows = (int64_t)take_below(in, 300);
    t->dim = take_below(in, MOST);
    uint8_t choice = take_byte(in);
    if (!(choice & 4)) t->rows %= 17; /* small tables are fast, and usually enough */
    if (!(choice & 8)) t->dim %= 80;
    if (!(choice & 16) && t->dtype >= EMBLA_Q3_K && t->dtype <= EMBLA_NVFP4)
        t->dim = t->dim % 3 * 256; /* whole superblocks; otherwise most tables would be refused */
    if (choice & 1) take(in, &options.scale, sizeof options.scale);
    if (choice & 2) options.row_stride = take_below(in, 4096);
    if (embla_dtype_row_bytes(t->dtype, t->dim, &t->row_bytes) != EMBLA_OK) return NULL;
    t->stride = options.row_stride ? options.row_stride : t->row_bytes;
    size_t bytes = t->rows > 0 ? (size_t)(t->rows - 1) * t->stride + t->row_bytes : 0;
    t->table_scale = options.scale == 0.0f ? 1.0f : options.scale;
    t->data = block(bytes);
    embla_status status =
        embla_table_view(&(embla_table_layout){.dtype = t->dtype, .rows = t->rows, .dim = t->dim},
                         t->data, bytes, &options, &table);
    PROMISE((status == EMBLA_OK) == (table != NULL));
    if (status == EMBLA_OK && bytes > 0) {
        embla_table *shorter = NULL;
        PROMISE(embla_table_view(
                    &(embla_table_layout){.dtype = t->dtype, .rows = t->rows, .dim = t->dim},
                    t->data, bytes - 1, &options, &shorter) == EMBLA_ERR_SHAPE);
        PROMISE(!shorter);
    }
    return table;
}

static void take_call(input *in, trial *t)
{
    uint8_t choice = take_byte(in);
    t->as_tokens = choice & 1;
    t->embed = t->as_tokens && (choice & 2);
    t->raw = !t->embed && (choice & 4);
    t->out_dtype = (embla_dtype)take_below(in, EMBLA_BF16 + 2);
    t->threads = (int)take_below(in, 5) - (choice & 8 ? 1 : 0);
    embla_kernels_use(embla_kernels_find((const char *[]){"scalar", "avx2", "avx512"}[choice % 3]));
    t->distinct = take_below(in, IDS + 1);
    for (size_t i = 0; i < t->distinct; i++) t->ids[i] = take_id(in, t->rows);
    t->count = t->distinct;
    t->scale = 0.0f;
    if (t->embed) {
        if (choice & 16) take(in, &t->scale, sizeof t->scale);
        t->first_position = take_id(in, t->rows);
    }
    size_t wide = t->out_dtype == EMBLA_BF16 || t->out_dtype == EMBLA_F16 ? 2 : 4;
    t->out_bytes = t->raw ? t->row_bytes : t->dim * wide;
    t->out_stride = choice & 32 ? take_below(in, 8192) : 0;
    /* Sometimes a large result, so that every mode of writing is tested. */
    if ((choice & 192) == 192 && t->distinct > 0) {
        size_t stride = t->out_stride > t->out_bytes ? t->out_stride : t->out_bytes;
        uint8_t how = take_byte(in);
        if (how >= 192) t->count = AHEAD / stride + 1;
        if (how >= 250) t->count = THREADED / stride + 1;
        if (how == 255 && take_byte(in) == 255) t->count = STREAMED / stride + 1;
        if (t->count > MOST_COUNT) t->count = MOST_COUNT;
    }
}

/* True if the call must be accepted. */
static bool is_right(const trial *t)
{
    if (t->threads < 0) return false;
    if (t->out_stride != 0 && t->out_stride < t->out_bytes) return false;
    if (!t->raw && t->out_dtype != 0 && t->out_dtype != EMBLA_F32 && t->out_dtype != EMBLA_F16 &&
        t->out_dtype != EMBLA_BF16)
        return false;
    if (!isfinite(t->scale)) return false;
    if (t->count == 0) return true; /* errors are reported for an empty batch too */
    if (t->embed && (t->first_position < 0 || t->first_position > t->rows ||
                     t->count > (size_t)(t->rows - t->first_position)))
        return false;
    for (size_t i = 0; i < t->distinct && i < t->count; i++) {
        int64_t id = t->as_tokens ? (int32_t)t->ids[i] : t->ids[i];
        if (id < 0 || id >= t->rows) return false;
    }
    return true;
}

/* Output row i by the definition. */
static void expect_row(const trial *t, size_t i, char *out)
{
    int64_t id = t->as_tokens ? (int32_t)t->ids[i % t->distinct] : t->ids[i % t->distinct];
    const unsigned char *row = (const unsigned char *)t->data + (size_t)id * t->stride;
    float numbers[MOST];
    if (t->raw) {
        memcpy(out, row, t->row_bytes);
        return;
    }
    for (size_t j = 0; j < t->dim; j++) {
        numbers[j] = reference_number(t->dtype, row, j, t->table_scale);
        if (!t->embed) continue;
        size_t place = (size_t)t->first_position + i;
        const unsigned char *position = (const unsigned char *)t->data + place * t->stride;
        float scaled = numbers[j] * (t->scale == 0.0f ? 1.0f : t->scale);
        numbers[j] = scaled + reference_number(t->dtype, position, j, t->table_scale);
    }
    if (t->out_dtype == EMBLA_F16 || t->out_dtype == EMBLA_BF16)
        PROMISE(embla_dtype_encode(t->out_dtype, numbers, t->dim, 0.0f, out) == EMBLA_OK);
    else
        memcpy(out, numbers, t->dim * sizeof numbers[0]);
}

/* Equal; any NaN equals any other, unless stored bytes were requested. */
static bool same_row(const trial *t, const char *a, const char *b)
{
    if (memcmp(a, b, t->out_bytes) == 0) return true;
    if (t->raw) return false;
    embla_dtype dtype = t->out_dtype ? t->out_dtype : EMBLA_F32;
    for (size_t j = 0; j < t->dim; j++) {
        float x = reference_number(dtype, (const unsigned char *)a, j, 1.0f);
        float y = reference_number(dtype, (const unsigned char *)b, j, 1.0f);
        if (!reference_same(x, y)) return false;
    }
    return true;
}

static embla_status call(const embla_table *table, const trial *t, char *out)
{
    embla_status status;
    embla_lookup_options options = {.out_stride = t->out_stride,
                                    .threads = t->threads,
                                    .raw = t->raw,
                                    .out_dtype = t->out_dtype};
    if (t->as_tokens) {
        int32_t *tokens = (int32_t *)(void *)block(t->count * sizeof *tokens);
        for (size_t i = 0; i < t->count; i++) tokens[i] = (int32_t)t->ids[i % t->distinct];
        embla_embed_options embed = {.position_table = table,
                                     .first_position = t->first_position,
                                     .scale = t->scale,
                                     .out_stride = t->out_stride,
                                     .threads = t->threads,
                                     .out_dtype = t->out_dtype};
        status = t->embed ? embla_embed(table, tokens, 1, t->count, &embed, out)
                          : embla_lookup(table, tokens, t->count, &options, out);
        free(tokens);
    } else {
        int64_t *rows = (int64_t *)(void *)block(t->count * sizeof *rows);
        for (size_t i = 0; i < t->count; i++) rows[i] = t->ids[i % t->distinct];
        status = embla_lookup_rows(table, rows, t->count, &options, out);
        free(rows);
    }
    return status;
}

static void check_call(const embla_table *table, const trial *t, size_t off)
{
    size_t stride = t->out_stride ? t->out_stride : t->out_bytes;
    if (stride < t->out_bytes) stride = t->out_bytes; /* it will be refused */
    size_t span = t->count > 0 ? (t->count - 1) * stride + t->out_bytes : 0;
    size_t total = MARGIN + off + span + MARGIN;
    char *memory = aligned_alloc(64, (total + 63) / 64 * 64), *out = memory + MARGIN + off;
    if (!memory) exit(1);
    memset(memory, 0xa5, total);
    embla_status status = call(table, t, out);
    PROMISE((status == EMBLA_OK) == is_right(t));
    PROMISE(status == EMBLA_OK || embla_error()[0] != '\0');
    /* Without positions the expected rows repeat with the ids. */
    size_t period = t->embed || t->count < t->distinct ? t->count : t->distinct;
    char *expected = block(period * t->out_bytes);
    for (size_t i = 0; status == EMBLA_OK && i < t->count; i++) {
        char *row = expected + i % period * t->out_bytes;
        if (i < period) expect_row(t, i, row);
        PROMISE(same_row(t, out + i * stride, row));
        memset(out + i * stride, 0xa5, t->out_bytes);
    }
    PROMISE(memory[0] == (char)0xa5 && memcmp(memory, memory + 1, total - 1) == 0);
    free(expected);
    free(memory);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    trial t = {0};
    embla_table *table = take_table(&in, &t);
    if (table) {
        take_call(&in, &t);
        size_t off = take_byte(&in) % 64;
        fill(&in, t.data, (size_t)(t.rows - 1) * t.stride + t.row_bytes);
        check_call(table, &t, off % 4 == 3 ? off : 0);
        embla_table_free(table);
    }
    free(t.data);
    embla_kernels_use(NULL);
    return 0;
}
