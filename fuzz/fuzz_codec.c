/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a row of any dtype, or of any row format. Promises:
 *   - every kernel set, and every mode of storing, decodes to the same bits, and these are the
 *     numbers of the reference;
 *   - every kernel set encodes to the same bytes; a read-only dtype is refused, and nothing is
 *     written;
 *   - decode(encode(decode(x))) is decode(x), for dtypes that store each number separately with a
 *     scale of 1, and for rows of f8 with power-of-two scales;
 *   - rows with scales: an encoded number is within the step of its group, or NaN if it cannot be
 *     represented.
 */
#include "base/dtype.h"
#include "base/kernels.h"
#include "base/row.h"
#include "input.h"
#include "reference.h"

enum { MOST = 600 };

static const char *const sets[] = {"scalar", "avx2", "avx512"};

static void check_decoding(embla_dtype dtype, const char *row, size_t dim, float scale,
                           const float *first)
{
    static _Alignas(64) char lines[MOST * sizeof(float) + 64];
    for (size_t i = 0; i < dim; i++)
        PROMISE(reference_same(first[i],
                               reference_number(dtype, (const unsigned char *)row, i, scale)));
    for (size_t s = 0; s < 3; s++) {
        const embla_kernels *kernels = embla_kernels_find(sets[s]);
        if (!kernels) continue;
        embla_decode_fn *decode = embla_dtype_decoder(dtype, kernels->isa);
        for (int mode = EMBLA_WRITE_PLAIN; mode <= EMBLA_WRITE_STREAM; mode++) {
            size_t off = mode == EMBLA_WRITE_STREAM ? 0 : 4;
            memset(lines, 0xa5, sizeof lines);
            decode(row, dim, scale, (embla_write_mode)mode, (float *)(void *)(lines + off));
            kernels->fence();
            PROMISE(dim == 0 || memcmp(lines + off, first, dim * sizeof *first) == 0);
            PROMISE(lines[off + dim * sizeof *first] == (char)0xa5);
        }
    }
}

static void check_encoding(embla_dtype dtype, const float *numbers, size_t dim, size_t bytes,
                           float scale, char *first)
{
    char *other = block(bytes);
    if (!embla_dtype_writes(dtype)) {
        memset(other, 0xa5, bytes);
        PROMISE(embla_dtype_encode(dtype, numbers, dim, scale, other) == EMBLA_ERR_UNSUPPORTED);
        for (size_t i = 0; i < bytes; i++) PROMISE(other[i] == (char)0xa5);
        free(other);
        return;
    }
    embla_dtype_encoder(dtype, EMBLA_ISA_SCALAR)(numbers, dim, scale, first);
    for (size_t s = 1; s < 3; s++) {
        const embla_kernels *kernels = embla_kernels_find(sets[s]);
        if (!kernels) continue;
        memset(other, 0xa5, bytes);
        embla_dtype_encoder(dtype, kernels->isa)(numbers, dim, scale, other);
        PROMISE(bytes == 0 || memcmp(other, first, bytes) == 0);
    }
    free(other);
}

/* ---- row formats ---- */

/* Checks that every set and every mode of storing gives the same numbers, whole and in parts. */
static void check_row(const embla_row_format *format, const char *bytes, const float *first)
{
    static _Alignas(64) char lines[MOST * sizeof(float) + 64];
    for (size_t s = 0; s < 3; s++) {
        const embla_kernels *kernels = embla_kernels_find(sets[s]);
        embla_row row;
        embla_row_part part;
        if (!kernels) continue;
        embla_kernels_use(kernels);
        PROMISE(embla_row_of(format, &row) == EMBLA_OK);
        PROMISE(embla_row_part_of(&row, 0, 0, &part) == EMBLA_OK);
        for (int mode = EMBLA_WRITE_PLAIN; mode <= EMBLA_WRITE_STREAM; mode++) {
            size_t off = mode == EMBLA_WRITE_STREAM ? 0 : 4;
            memset(lines, 0xa5, sizeof lines);
            embla_row_read(&row, bytes, bytes + part.code_bytes, part.n, (embla_write_mode)mode,
                           (float *)(void *)(lines + off));
            kernels->fence();
            PROMISE(memcmp(lines + off, first, format->dim * sizeof *first) == 0);
            PROMISE(lines[off + format->dim * sizeof *first] == (char)0xa5);
        }
        for (size_t at = 0; at < format->dim; at += row.group) {
            size_t n = format->dim - at < row.group ? 0 : row.group;
            PROMISE(embla_row_part_of(&row, at, n, &part) == EMBLA_OK);
            char *codes = block(part.code_bytes), *scales = block(part.scale_bytes);
            memcpy(codes, bytes + part.code_at, part.code_bytes);
            memcpy(scales, bytes + row.code_bytes + part.scale_at, part.scale_bytes);
            embla_row_read(&row, codes, scales, part.n, EMBLA_WRITE_PLAIN, (float *)(void *)lines);
            PROMISE(memcmp(lines, first + at, part.n * sizeof *first) == 0);
            free(codes);
            free(scales);
        }
    }
    embla_kernels_use(NULL);
}

/* Encodes any floats to a row with scales and decodes them. A step is at most 1/16 of a number in
 * f8, a third of the largest number of a group in f4, or a step of the smallest scale. */
static void check_row_back(const embla_row_format *format, const float *in, size_t bytes)
{
    char *row = block(bytes);
    float *out = (float *)(void *)block(format->dim * sizeof *out);
    const bool f8 = format->dtype == EMBLA_F8_E4M3;
    const size_t group = format->scales == EMBLA_SCALES_E4M3_16    ? 16
                         : format->scales == EMBLA_SCALES_UE8M0_32 ? 32
                                                                   : 128;
    double scale = format->scale == 0.0f ? 1.0 : fabs((double)format->scale);
    PROMISE(embla_row_encode(format, in, 1, row) == EMBLA_OK);
    PROMISE(embla_row_decode(format, row, 1, out) == EMBLA_OK);
    for (size_t i = 0; i < format->dim; i++) {
        double x = (double)in[i], gap = fabs(x - (double)out[i]), largest = 0.0;
        if (!isfinite(in[i])) PROMISE(isnan(out[i]));
        if (isnan(out[i]) || isinf(out[i])) continue; /* a group that cannot be represented */
        for (size_t k = i / group * group; k < (i / group + 1) * group && k < format->dim; k++)
            if (isfinite(in[k])) largest = fmax(largest, fabs((double)in[k]));
        double step = f8 ? fabs(x) / 16 + largest * 0x1p-17 : largest / 3;
        PROMISE(gap <= step * 1.01 + scale * 0x1p-8 + 0x1p-126);
    }
    free(row);
    free(out);
}

static void try_row(input *in)
{
    embla_row_format format = {0};
    size_t bytes = 0;
    format.dtype = (embla_dtype)take_below(in, EMBLA_F4_E2M1 + 2);
    format.scales = (embla_scales)take_below(in, EMBLA_SCALES_E4M3_16 + 2);
    format.dim = take_below(in, MOST + 1);
    uint8_t choice = take_byte(in);
    if (choice & 1) take(in, &format.scale, sizeof format.scale);
    if (choice & 2) format.dtype = choice & 4 ? EMBLA_F4_E2M1 : EMBLA_F8_E4M3;
    if (embla_row_bytes(&format, &bytes) != EMBLA_OK) {
        PROMISE(bytes == 0);
        return;
    }
    char *row = block(bytes), *again = block(bytes);
    float *numbers = (float *)(void *)block(format.dim * sizeof *numbers);
    float *back = (float *)(void *)block(format.dim * sizeof *back);
    size_t codes = 0;
    PROMISE(embla_dtype_row_bytes(format.dtype, format.dim, &codes) == EMBLA_OK);
    fill(in, row, bytes);
    PROMISE(embla_row_decode(&format, row, 1, numbers) == EMBLA_OK);
    for (size_t i = 0; i < format.dim; i++)
        PROMISE(reference_same(
            numbers[i], reference_row_number(&format, (const unsigned char *)row, codes, i)));
    check_row(&format, row, numbers);
    if (format.scales != EMBLA_SCALES_NONE && format.dtype == EMBLA_F8_E4M3 &&
        (format.scale == 0.0f || format.scale == 1.0f)) {
        PROMISE(embla_row_encode(&format, numbers, 1, again) == EMBLA_OK);
        PROMISE(embla_row_decode(&format, again, 1, back) == EMBLA_OK);
        for (size_t i = 0; i < format.dim; i++)
            PROMISE(reference_same(back[i], numbers[i]) || isinf(numbers[i]));
    }
    fill(in, (char *)numbers, format.dim * sizeof *numbers); /* any floats at all */
    if (format.scales != EMBLA_SCALES_NONE) check_row_back(&format, numbers, bytes);
    free(row);
    free(again);
    free(numbers);
    free(back);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    uint8_t which = take_byte(&in);
    if (which >= 128) {
        try_row(&in);
        return 0;
    }
    embla_dtype dtype = (embla_dtype)(1 + which % EMBLA_F4_E2M1);
    size_t dim = take_below(&in, MOST + 1), bytes = 0;
    uint8_t choice = take_byte(&in);
    float scale = 0.0f;
    if (choice & 1) take(&in, &scale, sizeof scale);
    if (embla_dtype_row_bytes(dtype, dim, &bytes) != EMBLA_OK) {
        dim = dim / embla_dtype_find_info(dtype)->block * embla_dtype_find_info(dtype)->block;
        PROMISE(embla_dtype_row_bytes(dtype, dim, &bytes) == EMBLA_OK);
    }
    char *row = block(bytes), *again = block(bytes);
    float *numbers = (float *)(void *)block(dim * sizeof *numbers);
    float *back = (float *)(void *)block(dim * sizeof *back);
    fill(&in, row, bytes);
    memset(numbers, 0xa5, dim * sizeof *numbers);

    if (embla_dtype_decode(dtype, row, dim, scale, numbers) != EMBLA_OK) {
        for (size_t i = 0; i < dim * sizeof *numbers; i++)
            PROMISE(((char *)numbers)[i] == (char)0xa5);
    } else {
        if (scale == 0.0f) scale = 1.0f;
        check_decoding(dtype, row, dim, scale, numbers);
        check_encoding(dtype, numbers, dim, bytes, scale, again);
        if ((dtype < EMBLA_Q8_0 || dtype == EMBLA_F4_E2M1) && scale == 1.0f) {
            PROMISE(embla_dtype_decode(dtype, again, dim, 0.0f, back) == EMBLA_OK);
            for (size_t i = 0; i < dim; i++) PROMISE(reference_same(back[i], numbers[i]));
        }
        fill(&in, (char *)numbers, dim * sizeof *numbers); /* any floats at all */
        check_encoding(dtype, numbers, dim, bytes, scale, again);
    }
    free(row);
    free(again);
    free(numbers);
    free(back);
    return 0;
}
