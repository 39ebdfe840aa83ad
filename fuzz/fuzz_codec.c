/* SPDX-License-Identifier: Apache-2.0 */
/* Any bytes as a row of any dtype. Promises:
 *   - every kernel set, and every way of storing, decodes to the same bits, and these are
 *     the numbers of the plain reference;
 *   - every kernel set encodes to the same bytes;
 *   - decode(encode(decode(x))) is decode(x), for the dtypes that store each number alone
 *     with a scale of 1.
 */
#include "base/dtype.h"
#include "base/kernels.h"
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
        for (int store = EMBLA_STORE_PLAIN; store <= EMBLA_STORE_STREAM; store++) {
            size_t off = store == EMBLA_STORE_STREAM ? 0 : 4;
            memset(lines, 0xa5, sizeof lines);
            decode(row, dim, scale, (embla_store)store, (float *)(void *)(lines + off));
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

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
    input in = {data, size};
    embla_dtype dtype = (embla_dtype)(1 + take_below(&in, EMBLA_Q4_0));
    size_t dim = take_below(&in, MOST + 1), bytes = 0;
    uint8_t choice = take_byte(&in);
    float scale = 0.0f;
    if (choice & 1) take(&in, &scale, sizeof scale);
    if (embla_dtype_row_bytes(dtype, dim, &bytes) != EMBLA_OK) {
        dim = dim / 32 * 32;
        PROMISE(embla_dtype_row_bytes(dtype, dim, &bytes) == EMBLA_OK);
    }
    char *row = block(bytes), *again = block(bytes);
    float *numbers = (float *)(void *)block(dim * sizeof *numbers);
    float *back = (float *)(void *)block(dim * sizeof *back);
    fill(&in, row, bytes);
    memset(numbers, 0xa5, dim * sizeof *numbers);

    if (embla_decode(dtype, row, dim, scale, numbers) != EMBLA_OK) {
        for (size_t i = 0; i < dim * sizeof *numbers; i++)
            PROMISE(((char *)numbers)[i] == (char)0xa5);
    } else {
        if (scale == 0.0f) scale = 1.0f;
        check_decoding(dtype, row, dim, scale, numbers);
        check_encoding(dtype, numbers, dim, bytes, scale, again);
        if (dtype < EMBLA_Q8_0 && scale == 1.0f) {
            PROMISE(embla_decode(dtype, again, dim, 0.0f, back) == EMBLA_OK);
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
