/* SPDX-License-Identifier: Apache-2.0 */
/* ggml's superblocks: every set of kernels and every way of writing against a second decoder,
 * which asks for every bit by its place (fuzz/reference_k.h), and a few numbers by hand.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "../fuzz/reference.h"
#include "base/dtype.h"

enum { SUPER = 256, MOST_BYTES = 210 };

static const embla_dtype dtypes[] = {EMBLA_Q3_K, EMBLA_Q4_K, EMBLA_Q5_K, EMBLA_Q6_K, EMBLA_IQ4_XS};
static const size_t bytes_of[] = {110, 144, 176, 210, 136};
/* Where the f16s are: d, and dmin or d once more. */
static const size_t d_at[] = {108, 0, 0, 208, 0}, other_at[] = {108, 2, 2, 208, 0};

static void put_u16(unsigned char *p, unsigned value)
{
    p[0] = (unsigned char)(value & 255u);
    p[1] = (unsigned char)(value >> 8);
}

/* n superblocks at p: every set, every way of writing, out of line too. The second decoder says
 * what is right; sets agree in the bits of a NaN as well. */
static void check_decode(embla_dtype dtype, const unsigned char *p, size_t n)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    size_t dim = n * SUPER, bytes = n * info->block_bytes;
    float *first = calloc(dim + 1, sizeof *first);
    assert_non_null(first);
    embla_dtype_decoder(dtype, EMBLA_ISA_SCALAR)(p, dim, 1.0f, EMBLA_WRITE_PLAIN, first);
    for (size_t i = 0; i < dim; i++) {
        float wanted = reference_number(dtype, p, i, 1.0f);
        if (!reference_same(first[i], wanted))
            fail_msg("%s, number %zu: %a, not %a", info->name, i, (double)first[i], (double)wanted);
    }
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
        if (!kernels) continue;
        for (int way = EMBLA_WRITE_PLAIN; way <= EMBLA_WRITE_STREAM; way++) {
            size_t shift = way == EMBLA_WRITE_STREAM ? 0 : 4;
            check_guarded in = check_guard(bytes, s + (size_t)way);
            check_guarded out = check_guard(dim * sizeof(float), shift);
            memcpy(in.bytes, p, bytes);
            embla_dtype_decoder(dtype, kernels->isa)(in.bytes, dim, 1.0f, (embla_write_mode)way,
                                                     (float *)(void *)out.bytes);
            kernels->fence();
            check_guards(&out);
            if (dim > 0) assert_memory_equal(out.bytes, first, dim * sizeof(float));
            check_guard_free(&in);
            check_guard_free(&out);
        }
    }
    free(first);
}

static void any_bytes_are_what_the_second_decoder_says(void **state)
{
    unsigned char row[3 * MOST_BYTES];
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++)
        for (size_t n = 0; n <= 3; n++)
            for (uint64_t seed = 0; seed < 40; seed++) {
                check_fill_bytes(seed * 100 + t, n * bytes_of[t], row);
                check_decode(dtypes[t], row, n);
            }
}

/* Zero, subnormal, the largest, infinite, not a number, of both signs: also where a scale of 0
 * meets an infinity, and where both parts of a difference are infinite. */
static void every_kind_of_d_is_decoded(void **state)
{
    static const unsigned kinds[] = {0x0000, 0x8000, 0x0001, 0x83ff, 0x0400, 0x3c00,
                                     0x7bff, 0x7c00, 0xfc00, 0x7e01, 0xfd55};
    unsigned char row[MOST_BYTES];
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++)
        for (size_t a = 0; a < COUNT_OF(kinds); a++)
            for (size_t b = 0; b < COUNT_OF(kinds); b++) {
                check_fill_bytes(t + 7, sizeof row, row);
                if (a == b) memset(row, 0, sizeof row); /* scales of 0, or -32 */
                put_u16(row + other_at[t], kinds[b]);
                put_u16(row + d_at[t], kinds[a]);
                check_decode(dtypes[t], row, 1);
            }
}

/* One byte at a time takes each of its bits, all of them and none: every bit is where the layout
 * has it, and nowhere else. */
static void every_bit_is_in_its_place(void **state)
{
    static const unsigned char values[] = {0, 1, 2, 4, 8, 16, 32, 64, 128, 255};
    unsigned char row[MOST_BYTES];
    float wanted[SUPER], out[SUPER];
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++)
        for (size_t at = 0; at < bytes_of[t]; at++)
            for (size_t v = 0; v < COUNT_OF(values); v++) {
                memset(row, 0, sizeof row);
                put_u16(row + other_at[t], 0x3400);
                put_u16(row + d_at[t], 0x3c00);
                row[at] = values[v];
                for (size_t i = 0; i < SUPER; i++)
                    wanted[i] = reference_number(dtypes[t], row, i, 1.0f);
                for (size_t s = 0; s < CHECK_SETS; s++) {
                    const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
                    if (!kernels) continue;
                    embla_dtype_decoder(dtypes[t], kernels->isa)(row, SUPER, 1.0f,
                                                                 EMBLA_WRITE_PLAIN, out);
                    for (size_t i = 0; i < SUPER; i++)
                        if (!reference_same(out[i], wanted[i]))
                            fail_msg("%s %s: byte %zu = %d, number %zu", check_sets[s],
                                     embla_dtype_name(dtypes[t]), at, row[at], i);
                }
            }
}

/* The order of roundings: d * scale, times the code, less dmin * offset. With d = 1 + 2^-10 and
 * a scale of 63 the first product has 16 bits, times 31 it has 21: only the difference rounds. */
static void products_round_in_their_order(void **state)
{
    unsigned char row[176] = {0};
    float out[SUPER];
    (void)state;
    put_u16(row, 0x3c01);
    put_u16(row + 2, 0x0001);                      /* 2^-24 */
    row[4] = 63, row[8] = 3;                       /* group 0 */
    row[16] = 0xff, row[48] = 0xff, row[49] = 0x2; /* codes 31 and 2 */
    assert_ok(embla_dtype_decode(EMBLA_Q5_K, row, SUPER, 0.0f, out));
    assert_true(out[0] == (float)(63.0 * (1.0 + 0x1p-10) * 31.0 - 3 * 0x1p-24));
    assert_true(out[1] == (float)(63.0 * (1.0 + 0x1p-10) * 2.0 - 3 * 0x1p-24));
    assert_true(out[2] == -3 * 0x1p-24f);
    assert_true(out[32] == 0.0f); /* group 1: fifth bit without a scale */
}

/* A few by hand, from the layout. */
static void known_superblocks_are_decoded(void **state)
{
    unsigned char row[MOST_BYTES] = {0};
    float out[SUPER];
    (void)state;
    put_u16(row + 108, 0x4000); /* q3_K: d = 2, all scales -32, all bits 0: -4 */
    assert_ok(embla_dtype_decode(EMBLA_Q3_K, row, SUPER, 0.0f, out));
    assert_true(out[0] == 256.0f && out[255] == 256.0f);
    row[96] = 0x01, row[104] = 0x02; /* scale 0: 1 | 2 << 4 = 33, one above 32 */
    row[0] = 0x01, row[32] = 0x03;   /* number 0: 3 | 4 = 7, less 4 */
    assert_ok(embla_dtype_decode(EMBLA_Q3_K, row, SUPER, 0.0f, out));
    assert_true(out[0] == 6.0f && out[1] == -8.0f && out[16] == 256.0f);

    memset(row, 0, sizeof row);
    put_u16(row + 208, 0x3800); /* q6_K: d = 0.5 */
    row[192] = 0xff, row[207] = 2;
    row[0] = 0x1f, row[128] = 0x31; /* number 0: 15 | 16, number 64: 1 | 48 */
    assert_ok(embla_dtype_decode(EMBLA_Q6_K, row, SUPER, 0.0f, out));
    assert_true(out[0] == 0.5f && out[1] == 16.0f);
    assert_true(out[64] == 0.0f && out[255] == -32.0f); /* scale 4 is 0 */

    memset(row, 0, sizeof row);
    put_u16(row, 0x3c00); /* iq4_xs: d = 1, scale of group 7: 15 | 3 << 4 = 63, so 31 */
    put_u16(row + 2, 0xc000);
    row[7] = 0xf0, row[8 + 16 * 7] = 0xf8;
    assert_ok(embla_dtype_decode(EMBLA_IQ4_XS, row, SUPER, 0.0f, out));
    assert_true(out[0] == -32.0f * -127.0f);
    assert_true(out[224] == 31.0f && out[240] == 31.0f * 113.0f && out[225] == 31.0f * -127.0f);
}

static void superblocks_are_read_not_written(void **state)
{
    const float in[SUPER] = {1.0f};
    char sentence[64];
    (void)state;
    for (size_t t = 0; t < COUNT_OF(dtypes); t++) {
        check_guarded out = check_guard(MOST_BYTES, 0);
        const char *name = embla_dtype_name(dtypes[t]);
        size_t bytes = 0;
        (void)snprintf(sentence, sizeof sentence, "%s is read-only: encoding is not supported",
                       name);
        assert_status(embla_dtype_encode(dtypes[t], in, SUPER, 0.0f, out.bytes),
                      EMBLA_ERR_UNSUPPORTED);
        assert_error_has(sentence);
        assert_status(embla_dtype_encode(dtypes[t], in, 0, 0.0f, out.bytes), EMBLA_ERR_UNSUPPORTED);
        check_untouched(&out);
        assert_false(embla_dtype_writes(dtypes[t]));
        for (int isa = 0; isa < EMBLA_ISA_COUNT; isa++)
            assert_null(embla_dtype_encoder(dtypes[t], (embla_isa)isa));
        assert_status(embla_dtype_row_bytes(dtypes[t], 160, &bytes), EMBLA_ERR_SHAPE);
        assert_error_has("dim 160 is not a multiple of 256");
        assert_ok(embla_dtype_row_bytes(dtypes[t], 3 * SUPER, &bytes));
        assert_int_equal(bytes, 3 * bytes_of[t]);
        assert_status(embla_dtype_decode(dtypes[t], in, SUPER, 2.0f, (float *)(void *)out.bytes),
                      EMBLA_ERR_ARGUMENT);
        assert_error_has("has no scale; scale is");
        check_guard_free(&out);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(any_bytes_are_what_the_second_decoder_says),
        cmocka_unit_test(every_kind_of_d_is_decoded),
        cmocka_unit_test(every_bit_is_in_its_place),
        cmocka_unit_test(products_round_in_their_order),
        cmocka_unit_test(known_superblocks_are_decoded),
        cmocka_unit_test(superblocks_are_read_not_written),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
