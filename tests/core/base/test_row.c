/* SPDX-License-Identifier: Apache-2.0 */
/* Row formats: what a row's bytes are, parts of it, and its numbers, by every set of kernels,
 * against a second decoder (fuzz/reference.h); and what encoding promises.
 */
#include "check.h"

#include <math.h>
#include <stdio.h>

#include "../fuzz/reference.h"
#include "base/row.h"

enum { LAST_DTYPE = EMBLA_F4_E2M1 };

static embla_row_format format_of(embla_dtype dtype, size_t dim, embla_scales scales, float scale)
{
    return (embla_row_format){.dim = dim, .dtype = dtype, .scales = scales, .scale = scale};
}

/* The formats that have scales. */
static const struct {
    embla_dtype dtype;
    embla_scales scales;
    size_t group;
} scaled[] = {
    {EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32, 32},
    {EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_128, 128},
    {EMBLA_F4_E2M1, EMBLA_SCALES_E4M3_16, 16},
    {EMBLA_F4_E2M1, EMBLA_SCALES_UE8M0_32, 32},
};

static size_t bytes_of(embla_row_format format)
{
    size_t bytes = 0;
    assert_ok(embla_row_bytes(&format, &bytes));
    return bytes;
}

/* ---- shapes ---- */

static void rows_have_the_bytes_that_models_have(void **state)
{
    (void)state;
    assert_int_equal(bytes_of(format_of(EMBLA_F8_E4M3, 256, EMBLA_SCALES_UE8M0_32, 0)), 264);
    assert_int_equal(bytes_of(format_of(EMBLA_F8_E4M3, 160, EMBLA_SCALES_NONE, 2e-4f)), 160);
    assert_int_equal(bytes_of(format_of(EMBLA_F8_E4M3, 160, EMBLA_SCALES_UE8M0_128, 0)), 162);
    assert_int_equal(bytes_of(format_of(EMBLA_F4_E2M1, 160, EMBLA_SCALES_E4M3_16, 1)), 90);
    assert_int_equal(bytes_of(format_of(EMBLA_F4_E2M1, 34, EMBLA_SCALES_UE8M0_32, 1)), 19);
    assert_int_equal(bytes_of(format_of(EMBLA_Q8_0, 160, EMBLA_SCALES_NONE, 0)), 170);
    assert_int_equal(bytes_of(format_of(EMBLA_IQ4_NL, 160, EMBLA_SCALES_NONE, 0)), 90);
    assert_int_equal(bytes_of(format_of(EMBLA_Q5_1, 160, EMBLA_SCALES_NONE, 0)), 120);
    assert_int_equal(bytes_of(format_of(EMBLA_Q3_K, 256, EMBLA_SCALES_NONE, 0)), 110);
    assert_int_equal(bytes_of(format_of(EMBLA_Q4_K, 256, EMBLA_SCALES_NONE, 0)), 144);
    assert_int_equal(bytes_of(format_of(EMBLA_BF16, 8960, EMBLA_SCALES_NONE, 0)), 17920);
    assert_int_equal(bytes_of(format_of(EMBLA_F8_E4M3, 1, EMBLA_SCALES_UE8M0_128, 0)), 2);
}

static void formats_that_cannot_be_are_refused(void **state)
{
    static const struct {
        embla_row_format format;
        embla_status status;
        const char *text;
    } cases[] = {
        {{0, EMBLA_F32, 0, 0, {0}}, EMBLA_ERR_SHAPE, "dim is 0"},
        {{EMBLA_DIM_MOST + 1, EMBLA_F32, 0, 0, {0}}, EMBLA_ERR_SHAPE, "dim is 1048577"},
        {{160, EMBLA_Q4_K, 0, 0, {0}}, EMBLA_ERR_SHAPE, "dim 160 is not a multiple of 256"},
        {{15, EMBLA_F4_E2M1, EMBLA_SCALES_E4M3_16, 0, {0}}, EMBLA_ERR_SHAPE, "dim 15"},
        {{256, (embla_dtype)0, 0, 0, {0}}, EMBLA_ERR_ARGUMENT, "dtype 0"},
        {{256, (embla_dtype)99, 0, 0, {0}}, EMBLA_ERR_ARGUMENT, "dtype 99"},
        {{256, (embla_dtype)-1, 0, 0, {0}}, EMBLA_ERR_ARGUMENT, "dtype -1"},
        {{256, EMBLA_F8_E4M3, (embla_scales)4, 0, {0}}, EMBLA_ERR_ARGUMENT, "unknown scales 4"},
        {{256, EMBLA_F8_E4M3, (embla_scales)-1, 0, {0}}, EMBLA_ERR_ARGUMENT, "unknown scales -1"},
        {{256, EMBLA_F8_E4M3, EMBLA_SCALES_E4M3_16, 0, {0}},
         EMBLA_ERR_ARGUMENT,
         "scales 3 are not possible for f8_e4m3"},
        {{256, EMBLA_F4_E2M1, EMBLA_SCALES_UE8M0_128, 0, {0}},
         EMBLA_ERR_ARGUMENT,
         "scales 2 are not possible for f4_e2m1"},
        {{256, EMBLA_F8_E5M2, EMBLA_SCALES_UE8M0_32, 0, {0}},
         EMBLA_ERR_ARGUMENT,
         "scales 1 are not possible for f8_e5m2"},
        {{256, EMBLA_Q8_0, EMBLA_SCALES_UE8M0_32, 0, {0}},
         EMBLA_ERR_ARGUMENT,
         "scales 1 are not possible for q8_0"},
        {{256, EMBLA_F32, 0, 2, {0}}, EMBLA_ERR_ARGUMENT, "f32 has no scale; scale is 2"},
        {{256, EMBLA_I8, 0, NAN, {0}}, EMBLA_ERR_ARGUMENT, "it must be finite"},
        {{256, EMBLA_F8_E4M3, 1, INFINITY, {0}}, EMBLA_ERR_ARGUMENT, "it must be finite"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        size_t bytes = 77;
        check_guarded out = check_guard(1024, 0);
        const float in[256] = {0};
        assert_status(embla_row_bytes(&cases[i].format, &bytes), cases[i].status);
        assert_error_has(cases[i].text);
        assert_int_equal(bytes, 77);
        assert_status(embla_row_decode(&cases[i].format, in, 1, (float *)(void *)out.bytes),
                      cases[i].status);
        assert_status(embla_row_encode(&cases[i].format, in, 1, out.bytes), cases[i].status);
        assert_error_has(cases[i].text);
        check_untouched(&out);
        check_guard_free(&out);
    }
}

static void missing_arguments_are_refused(void **state)
{
    embla_row_format f = format_of(EMBLA_F8_E4M3, 32, EMBLA_SCALES_UE8M0_32, 0);
    unsigned char bytes[33] = {0};
    float floats[32];
    size_t n;
    embla_row row;
    (void)state;
    assert_status(embla_row_bytes(NULL, &n), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_bytes(&f, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_of(&f, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_of(NULL, &row), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_decode(&f, NULL, 1, floats), EMBLA_ERR_ARGUMENT);
    assert_error_has("1 rows, but in is NULL");
    assert_status(embla_row_decode(&f, bytes, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("out is NULL");
    assert_status(embla_row_encode(&f, NULL, 1, bytes), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_encode(&f, floats, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_decode(NULL, bytes, 1, floats), EMBLA_ERR_ARGUMENT);
    assert_status(embla_row_decode(&f, bytes, SIZE_MAX / 33, floats), EMBLA_ERR_ARGUMENT);
    assert_error_has("do not fit in memory");
    assert_status(embla_row_decode(&f, bytes, (size_t)PTRDIFF_MAX / 128 + 1, floats),
                  EMBLA_ERR_ARGUMENT);
    assert_ok(embla_row_decode(&f, NULL, 0, NULL));
    assert_ok(embla_row_encode(&f, NULL, 0, NULL));
}

static void parts_are_whole_groups(void **state)
{
    embla_row_format f = format_of(EMBLA_F8_E4M3, 250, EMBLA_SCALES_UE8M0_32, 0);
    embla_row row;
    embla_row_part part = {.first = 77};
    (void)state;
    assert_ok(embla_row_of(&f, &row));
    assert_int_equal(row.group, 32);
    assert_int_equal(row.scale_bytes, 8);
    assert_true(row.format.scale == 1.0f);
    assert_status(embla_row_part_of(&row, 31, 32, &part), EMBLA_ERR_SHAPE);
    assert_error_has("not whole groups of 32");
    assert_status(embla_row_part_of(&row, 32, 33, &part), EMBLA_ERR_SHAPE);
    assert_status(embla_row_part_of(&row, 31, 0, &part), EMBLA_ERR_SHAPE);
    assert_status(embla_row_part_of(&row, 250, 0, &part), EMBLA_ERR_RANGE);
    assert_error_has("numbers long, is out of range; a row has 250");
    assert_status(embla_row_part_of(&row, 224, 32, &part), EMBLA_ERR_RANGE);
    assert_status(embla_row_part_of(&row, 32, SIZE_MAX, &part), EMBLA_ERR_RANGE);
    assert_status(embla_row_part_of(&row, SIZE_MAX, 32, &part), EMBLA_ERR_RANGE);
    assert_int_equal(part.first, 77);
    assert_ok(embla_row_part_of(&row, 192, 0, &part));
    assert_int_equal(part.n, 58);
    assert_int_equal(part.code_at, 192);
    assert_int_equal(part.code_bytes, 58);
    assert_int_equal(part.scale_at, 6);
    assert_int_equal(part.scale_bytes, 2);
    assert_int_equal(part.bytes, 60);
    f = format_of(EMBLA_Q4_K, 512, EMBLA_SCALES_NONE, 0);
    assert_ok(embla_row_of(&f, &row));
    assert_ok(embla_row_part_of(&row, 256, 256, &part));
    assert_int_equal(part.code_at, 144);
    assert_int_equal(part.bytes, 144);
    assert_int_equal(part.scale_at + part.scale_bytes, 0);
    assert_status(embla_row_part_of(&row, 128, 256, &part), EMBLA_ERR_SHAPE);
}

/* ---- decoding ---- */

/* count rows of these bytes by every set, every way of writing; scalar is held to the second
 * decoder, the others to scalar, bit by bit. */
static void check_rows(embla_row_format f, const unsigned char *bytes)
{
    embla_row row;
    embla_row_part whole;
    float *first = calloc(f.dim, sizeof *first);
    assert_non_null(first);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
        if (!kernels) continue;
        embla_kernels_use(kernels);
        assert_ok(embla_row_of(&f, &row));
        assert_ok(embla_row_part_of(&row, 0, 0, &whole));
        assert_int_equal(whole.bytes, row.bytes);
        for (int way = EMBLA_WRITE_PLAIN; way <= EMBLA_WRITE_STREAM; way++) {
            size_t shift = way == EMBLA_WRITE_STREAM ? 0 : 4;
            check_guarded out = check_guard(f.dim * sizeof(float), shift);
            embla_row_read(&row, bytes, bytes + whole.code_bytes, whole.n, (embla_write_mode)way,
                           (float *)(void *)out.bytes);
            kernels->fence();
            check_guards(&out);
            if (s == 0) memcpy(first, out.bytes, out.size);
            if (memcmp(out.bytes, first, out.size) != 0)
                fail_msg("%s, scales %d: %s is not scalar", row.info->name, f.scales,
                         kernels->name);
            check_guard_free(&out);
        }
    }
    embla_kernels_use(NULL);
    for (size_t i = 0; i < f.dim; i++) {
        float wanted = reference_row_number(&f, bytes, row.code_bytes, i);
        if (!reference_same(first[i], wanted))
            fail_msg("%s, scales %d, dim %zu, number %zu: %a, not %a", row.info->name, f.scales,
                     f.dim, i, (double)first[i], (double)wanted);
    }
    free(first);
}

static void any_bytes_are_what_the_second_decoder_says(void **state)
{
    static const size_t dims[] = {2, 16, 30, 32, 34, 62, 64, 126, 128, 130, 160, 250, 256, 300};
    static const float scales[] = {0.0f, 1.0f, 1.99e-4f, -3.0f, 0x1p-130f, 0x1.8p-120f, 0x1.8p125f};
    unsigned char bytes[2048];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(scaled); k++)
        for (size_t d = 0; d < COUNT_OF(dims); d++)
            for (size_t s = 0; s < COUNT_OF(scales); s++)
                for (uint64_t seed = 0; seed < 4; seed++) {
                    embla_row_format f =
                        format_of(scaled[k].dtype, dims[d], scaled[k].scales, scales[s]);
                    check_fill_bytes(seed * 1000 + d, sizeof bytes, bytes);
                    if (seed % 2 == 1) /* no NaN among the codes, scales of a usual size */
                        for (size_t i = 0; i < sizeof bytes; i++)
                            bytes[i] = i < dims[d] && bytes[i] % 128 == 127 ? 1 : bytes[i];
                    if (seed == 3)
                        for (size_t i = 0; i < sizeof bytes; i++)
                            if ((bytes[i] & 0x7f) == 0x7f) bytes[i] = 126;
                    check_rows(f, bytes);
                }
    for (int t = EMBLA_F32; t <= LAST_DTYPE; t++) {
        check_fill_bytes((uint64_t)t, sizeof bytes, bytes);
        check_rows(format_of((embla_dtype)t, 256, EMBLA_SCALES_NONE, 0), bytes);
        if (!embla_dtype_find_info((embla_dtype)t)->scaled) continue;
        for (size_t i = 0; i < sizeof bytes; i++) bytes[i] &= 0xf7; /* no NaN */
        for (size_t s = 0; s < COUNT_OF(scales); s++)
            check_rows(format_of((embla_dtype)t, 256, EMBLA_SCALES_NONE, scales[s]), bytes);
    }
}

/* Every code times every scale. */
static void every_code_meets_every_scale(void **state)
{
    unsigned char bytes[2048];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(scaled); k++)
        for (int scale = 0; scale < 256; scale++)
            for (int from = 0; from < 256; from += 64) {
                embla_row_format f = format_of(scaled[k].dtype, 64, scaled[k].scales, 0.0f);
                size_t codes = bytes_of(f) - (64 + scaled[k].group - 1) / scaled[k].group;
                memset(bytes, scale, sizeof bytes);
                for (size_t i = 0; i < codes; i++)
                    bytes[i] = (unsigned char)(from + (int)(i * 64 / codes));
                check_rows(f, bytes);
            }
}

static void known_rows_are_decoded(void **state)
{
    unsigned char row[40];
    float out[64];
    embla_row_format f = format_of(EMBLA_F8_E4M3, 33, EMBLA_SCALES_UE8M0_32, 0.0f);
    (void)state;
    memset(row, 0x38, 33); /* 1 */
    row[0] = 0x7e, row[1] = 0x81, row[2] = 0x7f, row[32] = 0xb8;
    row[33] = 128, row[34] = 0;
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == 896.0f && out[1] == -0x1p-8f && isnan(out[2]) && out[3] == 2.0f);
    assert_true(out[32] == -0x1p-127f);
    row[33] = 255, row[34] = 254;
    assert_ok(embla_row_decode(&f, row, 1, out));
    for (size_t i = 0; i < 32; i++) assert_true(isnan(out[i]));
    assert_true(out[32] == -0x1p127f);
    row[33] = 254;
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == INFINITY && out[1] == -0x1p118f);
    f.scale = 0x1p-20f; /* what is infinite stays so */
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == INFINITY && out[32] == -0x1p107f);

    f = format_of(EMBLA_F4_E2M1, 18, EMBLA_SCALES_E4M3_16, 0.5f);
    memset(row, 0, sizeof row);
    row[0] = 0x72, row[1] = 0x8f, row[8] = 0x01; /* 1, 6, -6, -0; 0.5 */
    row[9] = 0x40, row[10] = 0xc0;               /* 2, -2 */
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == 1.0f && out[1] == 6.0f && out[2] == -6.0f && out[16] == -0.5f);
    assert_true(out[3] == 0.0f && signbit(out[3]) && signbit(out[17]));
    row[10] = 0xff;
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == 1.0f && isnan(out[16]) && isnan(out[17]));
}

/* A part of a row, its codes and scales put together, has the numbers of the whole. */
static void a_part_is_a_part_of_the_whole(void **state)
{
    unsigned char bytes[512], some[512];
    float all[250], out[250];
    (void)state;
    check_fill_bytes(5, sizeof bytes, bytes);
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] &= 0x77;
    for (size_t k = 0; k < COUNT_OF(scaled); k++) {
        embla_row_format f = format_of(scaled[k].dtype, 250, scaled[k].scales, 0.3f);
        embla_row row;
        embla_row_part p;
        assert_ok(embla_row_of(&f, &row));
        assert_ok(embla_row_decode(&f, bytes, 1, all));
        for (size_t first = 0; first < 250; first += row.group)
            for (size_t n = row.group; first + n <= 250 + row.group; n += row.group) {
                assert_ok(embla_row_part_of(&row, first, first + n > 250 ? 0 : n, &p));
                memcpy(some, bytes + p.code_at, p.code_bytes);
                memcpy(some + p.code_bytes, bytes + row.code_bytes + p.scale_at, p.scale_bytes);
                embla_row_read(&row, some, some + p.code_bytes, p.n, EMBLA_WRITE_PLAIN, out);
                assert_memory_equal(out, all + first, p.n * sizeof *out);
            }
    }
}

static void rows_follow_each_other(void **state)
{
    unsigned char bytes[3 * 42];
    float out[3 * 40], one[40];
    embla_row_format f = format_of(EMBLA_F8_E4M3, 40, EMBLA_SCALES_UE8M0_32, 0.0f);
    (void)state;
    check_fill_bytes(9, sizeof bytes, bytes);
    assert_ok(embla_row_decode(&f, bytes, 3, out));
    for (size_t r = 0; r < 3; r++) {
        assert_ok(embla_row_decode(&f, bytes + 42 * r, 1, one));
        assert_memory_equal(one, out + 40 * r, sizeof one);
    }
}

/* ---- encoding ---- */

/* The largest of a group is held, and would not be with a scale one smaller. */
static void each_group_gets_the_smallest_scale(void **state)
{
    uint64_t seed = 3;
    (void)state;
    for (size_t k = 0; k < COUNT_OF(scaled); k++)
        for (int e = -140; e < 128; e++) {
            embla_row_format f = format_of(scaled[k].dtype, 34, scaled[k].scales, 0.0f);
            float in[34] = {0}, out[34], least;
            unsigned char row[64], less[64];
            size_t codes = bytes_of(f) - (34 + scaled[k].group - 1) / scaled[k].group;
            float top = ldexpf(1.0f + (float)check_below(&seed, 8) / 8.0f, e);
            in[1] = -top, in[2] = top / 2;
            if (f.scales == EMBLA_SCALES_E4M3_16 && top > 464.0f * 6.0f) continue;
            assert_ok(embla_row_encode(&f, in, 1, row));
            assert_ok(embla_row_decode(&f, row, 1, out));
            if (f.scales != EMBLA_SCALES_E4M3_16 || top >= 6 * 0x1p-6f)
                assert_near(in[1], out[1], (double)top * (codes > 20 ? 0.0625 : 0.2) + 0x1p-128);
            if (row[codes] == 0) continue;
            memcpy(less, row, sizeof row); /* a scale of one less does not hold it */
            less[codes]--;
            less[0] = f.dtype == EMBLA_F8_E4M3 ? 0x7e : 0x07;
            assert_ok(embla_row_decode(&f, less, 1, out));
            least = out[0];
            assert_true(least < top);
        }
}

/* f8 with powers of two: what was decoded is encoded without loss. */
static void f8_rows_come_back(void **state)
{
    unsigned char bytes[512], again[512];
    float first[300], back[300];
    (void)state;
    for (uint64_t seed = 0; seed < 200; seed++) {
        embla_row_format f =
            format_of(EMBLA_F8_E4M3, 1 + check_below(&(uint64_t){seed}, 300),
                      seed % 2 ? EMBLA_SCALES_UE8M0_32 : EMBLA_SCALES_UE8M0_128, 0);
        check_fill_bytes(seed, sizeof bytes, bytes);
        for (size_t i = f.dim; i < sizeof bytes; i++)
            if (bytes[i] > 246 && bytes[i] != 255) bytes[i] = 3; /* nothing infinite */
        assert_ok(embla_row_decode(&f, bytes, 1, first));
        assert_ok(embla_row_encode(&f, first, 1, again));
        assert_ok(embla_row_decode(&f, again, 1, back));
        for (size_t i = 0; i < f.dim; i++) assert_true(reference_same(first[i], back[i]));
    }
}

/* f4: half a step of its codes is at most 1 times the scale; a scale is at most 9/8 of what it
 * would have to be (one more step of three bits), as long as it is a normal number. */
static void f4_rows_come_near(void **state)
{
    float in[160], out[160];
    unsigned char row[90];
    uint64_t seed = 12;
    (void)state;
    for (int round = 0; round < 200; round++) {
        embla_row_format f = format_of(EMBLA_F4_E2M1, 160, EMBLA_SCALES_E4M3_16, 0x1p-9f);
        for (size_t i = 0; i < 160; i++) in[i] = check_unit(&seed);
        assert_ok(embla_row_encode(&f, in, 1, row));
        assert_ok(embla_row_decode(&f, row, 1, out));
        for (size_t g = 0; g < 160; g += 16) {
            float largest = 0.0f;
            for (size_t i = g; i < g + 16; i++) largest = fmaxf(largest, fabsf(in[i]));
            for (size_t i = g; i < g + 16; i++)
                assert_near(in[i], out[i], (double)largest / 6.0 * 1.126);
        }
    }
}

static void what_cannot_be_held_is_not_lost_silently(void **state)
{
    unsigned char row[64];
    float in[32] = {1.0f, NAN, -INFINITY, 3.0f}, out[32];
    embla_row_format f = format_of(EMBLA_F8_E4M3, 32, EMBLA_SCALES_UE8M0_32, 0.0f);
    (void)state;
    assert_ok(embla_row_encode(&f, in, 1, row)); /* f8: those two */
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[0] == 1.0f && isnan(out[1]) && isnan(out[2]) && out[3] == 3.0f);
    f = format_of(EMBLA_F4_E2M1, 32, EMBLA_SCALES_E4M3_16, 0.0f);
    in[16] = 3.0f;
    assert_ok(embla_row_encode(&f, in, 1, row)); /* f4: their group */
    assert_ok(embla_row_decode(&f, row, 1, out));
    for (size_t i = 0; i < 16; i++) assert_true(isnan(out[i]));
    assert_true(out[16] == 3.0f && out[17] == 0.0f);
    in[1] = 464.0f * 6.0f, in[2] = 0.0f;
    assert_ok(embla_row_encode(&f, in, 1, row));
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[1] == 2688.0f);
    in[1] = 464.0f * 6.0f + 1.0f;
    assert_ok(embla_row_encode(&f, in, 1, row));
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(isnan(out[1]) && out[16] == 3.0f);
    f.scales = EMBLA_SCALES_UE8M0_32;
    assert_ok(embla_row_encode(&f, in, 1, row));
    assert_ok(embla_row_decode(&f, row, 1, out));
    assert_true(out[1] == 3072.0f && out[16] == 0.0f);
    in[1] = NAN;
    assert_ok(embla_row_encode(&f, in, 1, row));
    assert_ok(embla_row_decode(&f, row, 1, out));
    for (size_t i = 0; i < 32; i++) assert_true(isnan(out[i]));
}

/* Zeros have the smallest scale, and keep their sign. */
static void zeros_stay_zeros(void **state)
{
    (void)state;
    for (size_t k = 0; k < COUNT_OF(scaled); k++) {
        unsigned char row[64];
        float in[32] = {0.0f, -0.0f}, out[32];
        embla_row_format f = format_of(scaled[k].dtype, 32, scaled[k].scales, 0.25f);
        assert_ok(embla_row_encode(&f, in, 1, row));
        assert_int_equal(row[bytes_of(f) - 1], 0);
        assert_ok(embla_row_decode(&f, row, 1, out));
        assert_memory_equal(in, out, sizeof in);
    }
}

/* The table's scale is taken out before groups are looked at. */
static void the_scale_of_the_table_comes_first(void **state)
{
    unsigned char row[34], plain[34];
    float in[32], out[32];
    embla_row_format f = format_of(EMBLA_F8_E4M3, 32, EMBLA_SCALES_UE8M0_32, 0x1p-12f);
    (void)state;
    for (size_t i = 0; i < 32; i++) in[i] = (float)i * 0.25f;
    assert_ok(embla_row_encode(&f, in, 1, row));
    assert_ok(embla_row_decode(&f, row, 1, out));
    f.scale = 0.0f;
    assert_ok(embla_row_encode(&f, in, 1, plain));
    assert_memory_equal(row, plain, 32);
    assert_int_equal(row[32], plain[32] + 12);
}

static void dtypes_without_scales_are_encoded_as_ever(void **state)
{
    float in[512];
    unsigned char row[8192], plain[8192];
    (void)state;
    check_fill(8, 512, in);
    for (int t = EMBLA_F32; t <= LAST_DTYPE; t++) {
        const embla_dtype_info *info = embla_dtype_find_info((embla_dtype)t);
        embla_row_format f =
            format_of((embla_dtype)t, 256, EMBLA_SCALES_NONE, info->scaled ? 0.01f : 0.0f);
        size_t bytes = bytes_of(f);
        memset(row, CHECK_MARK, sizeof row);
        if (!embla_dtype_writes((embla_dtype)t)) {
            char sentence[64];
            (void)snprintf(sentence, sizeof sentence, "%s is read-only: encoding is not supported",
                           info->name);
            assert_status(embla_row_encode(&f, in, 2, row), EMBLA_ERR_UNSUPPORTED);
            assert_error_has(sentence);
            check_marks(row, row + sizeof row);
            continue;
        }
        assert_ok(embla_row_encode(&f, in, 2, row));
        assert_ok(embla_dtype_encode((embla_dtype)t, in, 512, f.scale, plain));
        assert_memory_equal(row, plain, 2 * bytes);
        check_marks(row + 2 * bytes, row + sizeof row);
    }
}

/* Every set encodes to the same bytes, whatever the floats. */
static void every_set_encodes_alike(void **state)
{
    float in[300];
    unsigned char first[512], row[512];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(scaled); k++)
        for (uint64_t seed = 0; seed < 20; seed++) {
            embla_row_format f = format_of(scaled[k].dtype, 300, scaled[k].scales, 0.7f);
            uint64_t any = seed;
            for (size_t i = 0; i < 300; i++)
                in[i] = i % 3 != 0 || seed % 2 ? check_unit(&any) : check_any_float(&any);
            for (size_t s = 0; s < CHECK_SETS; s++) {
                const embla_kernels *kernels = embla_kernels_find(check_sets[s]);
                if (!kernels) continue;
                embla_kernels_use(kernels);
                memset(row, CHECK_MARK, sizeof row);
                assert_ok(embla_row_encode(&f, in, 1, row));
                if (s == 0) memcpy(first, row, sizeof row);
                assert_memory_equal(first, row, sizeof row);
            }
            embla_kernels_use(NULL);
        }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_have_the_bytes_that_models_have),
        cmocka_unit_test(formats_that_cannot_be_are_refused),
        cmocka_unit_test(missing_arguments_are_refused),
        cmocka_unit_test(parts_are_whole_groups),
        cmocka_unit_test(any_bytes_are_what_the_second_decoder_says),
        cmocka_unit_test(every_code_meets_every_scale),
        cmocka_unit_test(known_rows_are_decoded),
        cmocka_unit_test(a_part_is_a_part_of_the_whole),
        cmocka_unit_test(rows_follow_each_other),
        cmocka_unit_test(each_group_gets_the_smallest_scale),
        cmocka_unit_test(f8_rows_come_back),
        cmocka_unit_test(f4_rows_come_near),
        cmocka_unit_test(what_cannot_be_held_is_not_lost_silently),
        cmocka_unit_test(zeros_stay_zeros),
        cmocka_unit_test(the_scale_of_the_table_comes_first),
        cmocka_unit_test(dtypes_without_scales_are_encoded_as_ever),
        cmocka_unit_test(every_set_encodes_alike),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
