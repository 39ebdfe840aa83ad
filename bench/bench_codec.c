/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench codec: decodes rows to floats, with everything in cache.
 *
 * A case is FORMAT/DIM, about 32 KiB of stored rows. naive/FORMAT/DIM is the same with a simple
 * loop, one number at a time; it also verifies our result. Values count floats written. The limit
 * is memcpy of as many floats from one place in cache to another. A lookup first brings rows from
 * memory to the cache (bench rows), so this measures what decoding adds.
 */
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla_store.h"

enum { ROW_BYTES = 32768, TURNS = 21, CALLS = 64 };

typedef struct {
    const char *name;
    embla_row_format format;
} codec;

#define CODEC(name, dtype, dim, scales, scale)                                                     \
    {                                                                                              \
        name,                                                                                      \
        {                                                                                          \
            dim, dtype, scales, scale,                                                             \
            {                                                                                      \
                0                                                                                  \
            }                                                                                      \
        }                                                                                          \
    }

static const codec codecs[] = {
    CODEC("f32", EMBLA_F32, 256, EMBLA_SCALES_NONE, 0),
    CODEC("f16", EMBLA_F16, 256, EMBLA_SCALES_NONE, 0),
    CODEC("bf16", EMBLA_BF16, 256, EMBLA_SCALES_NONE, 0),
    CODEC("f8_e4m3", EMBLA_F8_E4M3, 160, EMBLA_SCALES_NONE, 0.00390625f),
    CODEC("f8_e4m3+ue8m0_32", EMBLA_F8_E4M3, 256, EMBLA_SCALES_UE8M0_32, 0),
    CODEC("f8_e4m3+ue8m0_128", EMBLA_F8_E4M3, 256, EMBLA_SCALES_UE8M0_128, 0),
    CODEC("f8_e5m2", EMBLA_F8_E5M2, 160, EMBLA_SCALES_NONE, 0),
    CODEC("i8", EMBLA_I8, 160, EMBLA_SCALES_NONE, 0.0078125f),
    CODEC("q8_0", EMBLA_Q8_0, 160, EMBLA_SCALES_NONE, 0),
    CODEC("q4_0", EMBLA_Q4_0, 160, EMBLA_SCALES_NONE, 0),
    CODEC("q4_1", EMBLA_Q4_1, 160, EMBLA_SCALES_NONE, 0),
    CODEC("q5_0", EMBLA_Q5_0, 160, EMBLA_SCALES_NONE, 0),
    CODEC("q5_1", EMBLA_Q5_1, 160, EMBLA_SCALES_NONE, 0),
    CODEC("iq4_nl", EMBLA_IQ4_NL, 160, EMBLA_SCALES_NONE, 0),
    CODEC("mxfp4", EMBLA_MXFP4, 160, EMBLA_SCALES_NONE, 0),
    CODEC("nvfp4", EMBLA_NVFP4, 256, EMBLA_SCALES_NONE, 0),
    CODEC("f4_e2m1+e4m3_16", EMBLA_F4_E2M1, 160, EMBLA_SCALES_E4M3_16, 0.0009765625f),
    CODEC("q3_k", EMBLA_Q3_K, 256, EMBLA_SCALES_NONE, 0),
    CODEC("q4_k", EMBLA_Q4_K, 256, EMBLA_SCALES_NONE, 0),
    CODEC("q5_k", EMBLA_Q5_K, 256, EMBLA_SCALES_NONE, 0),
    CODEC("q6_k", EMBLA_Q6_K, 256, EMBLA_SCALES_NONE, 0),
    CODEC("iq4_xs", EMBLA_IQ4_XS, 256, EMBLA_SCALES_NONE, 0),
};
enum { CODECS = sizeof codecs / sizeof codecs[0] };

typedef void naive_fn(const embla_row_format *format, const unsigned char *row, float *out);

typedef struct {
    const codec *codec;
    naive_fn *naive; /* NULL if there is none */
    size_t count, row_bytes;
    unsigned char *rows;
    float *out, *other; /* count x dim */
    bool by_naive, failed;
} bench_case;

/* ---- simple loops ---- */

/* A small float: sign, exponent, fraction of so many bits. */
static float small(unsigned bits, int exponent, int fraction, int bias)
{
    int e = (int)(bits >> fraction & ((1u << exponent) - 1u));
    float f = (float)(bits & ((1u << fraction) - 1u)) / (float)(1u << fraction);
    float x = e == 0 ? ldexpf(f, 1 - bias) : ldexpf(1.0f + f, e - bias);
    return bits >> (exponent + fraction) & 1u ? -x : x;
}

static float f16_at(const unsigned char *p)
{
    return small(p[0] | (unsigned)p[1] << 8, 5, 10, 15);
}

/* With a table of all codes, the usual first attempt. */
static void naive_f8(const embla_row_format *f, const unsigned char *row, float *out)
{
    static float values[256];
    if (values[1] == 0.0f)
        for (unsigned i = 0; i < 256; i++) values[i] = small(i, 4, 3, 7);
    float scale = f->scale == 0.0f ? 1.0f : f->scale;
    size_t group = f->scales == EMBLA_SCALES_UE8M0_32 ? 32 : 128;
    for (size_t i = 0; i < f->dim; i++) {
        float x = values[row[i]];
        if (f->scales != EMBLA_SCALES_NONE) x *= ldexpf(1.0f, row[f->dim + i / group] - 127);
        out[i] = x * scale;
    }
}

static void naive_q8_0(const embla_row_format *f, const unsigned char *row, float *out)
{
    for (size_t i = 0; i < f->dim; i++) {
        const unsigned char *b = row + i / 32 * 34;
        out[i] = f16_at(b) * (float)(signed char)b[2 + i % 32];
    }
}

static void naive_q4_0(const embla_row_format *f, const unsigned char *row, float *out)
{
    for (size_t i = 0; i < f->dim; i++) {
        const unsigned char *b = row + i / 32 * 18;
        int q = i % 32 < 16 ? b[2 + i % 16] & 15 : b[2 + i % 16] >> 4;
        out[i] = f16_at(b) * (float)(q - 8);
    }
}

static void naive_q4_k(const embla_row_format *f, const unsigned char *row, float *out)
{
    for (size_t i = 0; i < f->dim; i++) {
        const unsigned char *b = row + i / 256 * 144, *s = b + 4;
        size_t j = i % 256 / 32, l = i % 32;
        int q = j % 2 == 0 ? b[16 + j / 2 * 32 + l] & 15 : b[16 + j / 2 * 32 + l] >> 4;
        int scale = j < 4 ? s[j] & 63 : (s[j + 4] & 15) | s[j - 4] >> 6 << 4;
        int least = j < 4 ? s[j + 4] & 63 : s[j + 4] >> 4 | s[j] >> 6 << 4;
        out[i] = f16_at(b) * (float)scale * (float)q - f16_at(b + 2) * (float)least;
    }
}

static naive_fn *naive_of(const embla_row_format *f)
{
    if (f->dtype == EMBLA_F8_E4M3) return naive_f8;
    if (f->dtype == EMBLA_Q8_0) return naive_q8_0;
    if (f->dtype == EMBLA_Q4_0) return naive_q4_0;
    return f->dtype == EMBLA_Q4_K ? naive_q4_k : NULL;
}

/* ---- what is timed ---- */

static void run_ours(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    if (embla_row_decode(&c->codec->format, c->rows, c->count, c->out) != EMBLA_OK)
        c->failed = true;
}

static void run_naive(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    for (size_t i = 0; i < c->count; i++)
        c->naive(&c->codec->format, c->rows + i * c->row_bytes, c->out + i * c->codec->format.dim);
}

static void run_memcpy(void *context, size_t step)
{
    bench_case *c = context;
    (void)step;
    memcpy(c->out, c->other, c->count * c->codec->format.dim * sizeof(float));
    __asm__ volatile("" : : "r"(c->out) : "memory");
}

/* Verifies that decoding all rows at once equals decoding each row and, if there is a simple loop,
 * its result, bit for bit; and that there are no NaNs. */
static bool is_right(bench_case *c)
{
    const embla_row_format *f = &c->codec->format;
    run_ours(c, 0);
    for (size_t i = 0; i < c->count && !c->failed; i++) {
        const unsigned char *row = c->rows + i * c->row_bytes;
        float *want = c->other, *got = c->out + i * f->dim;
        if (embla_row_decode(f, row, 1, want) != EMBLA_OK) return false;
        if (memcmp(want, got, f->dim * sizeof *got) != 0) return false;
        if (c->naive) c->naive(f, row, want);
        if (memcmp(want, got, f->dim * sizeof *got) != 0) return false;
        for (size_t k = 0; k < f->dim; k++)
            if (!isfinite(got[k])) return false;
    }
    return !c->failed;
}

/* ---- rows ---- */

/* Encodes numbers around 0. Read-only dtypes get bytes that cannot be a NaN anywhere. */
static bool make_rows(bench_case *c)
{
    const embla_row_format *f = &c->codec->format;
    uint64_t state = 7;
    for (size_t i = 0; i < c->count * f->dim; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        c->other[i] = (float)(int32_t)(state >> 32) * 0x1p-32f;
    }
    if (embla_row_encode(f, c->other, c->count, c->rows) == EMBLA_OK) return true;
    for (size_t i = 0; i < c->count * c->row_bytes; i++) {
        state = state * UINT64_C(6364136223846793005) + UINT64_C(1442695040888963407);
        c->rows[i] = (unsigned char)(state >> 56 & 0x3bu);
    }
    return true;
}

static bool make_case(bench_case *c)
{
    const embla_row_format *f = &c->codec->format;
    if (embla_row_bytes(f, &c->row_bytes) != EMBLA_OK) return false;
    c->count = ROW_BYTES / c->row_bytes;
    c->rows = bench_memory(c->count * c->row_bytes);
    c->out = bench_memory(c->count * f->dim * sizeof *c->out);
    c->other = bench_memory(c->count * f->dim * sizeof *c->other);
    return c->rows && c->out && c->other && make_rows(c);
}

static int run_case(bench_case *c, const char *name, const bench_options *options)
{
    if (!make_case(c) || !is_right(c)) {
        options->complain("bench codec: %s: wrong numbers: %s", name, embla_error());
        return 1;
    }
    bench_times times = bench_measure(c->by_naive ? run_naive : run_ours, run_memcpy, c, TURNS,
                                      c->by_naive ? 4 : CALLS);
    double work = (double)(c->count * c->codec->format.dim * sizeof(float)) * 1e-9;
    bench_result result = {.bench = "codec",
                           .name = name,
                           .threads = 1,
                           .unit = "GB/s",
                           .limit_is = "memcpy in cache",
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

static int run_codec(bench_cases *cases, const codec *one, bool by_naive)
{
    bench_case c = {.codec = one, .naive = naive_of(&one->format), .by_naive = by_naive};
    char name[64];
    int exit_code = 0;
    if (by_naive && !c.naive) return 0;
    (void)snprintf(name, sizeof name, "%s%s/%zu", by_naive ? "naive/" : "", one->name,
                   one->format.dim);
    if (!bench_wants(cases, name, true)) return 0;
    exit_code = run_case(&c, name, cases->options);
    free(c.rows);
    free(c.out);
    free(c.other);
    return exit_code;
}

int bench_codec(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("codec", options, &cases);
    if (exit_code != 0) return exit_code;
    for (int by_naive = 0; by_naive < 2; by_naive++)
        for (size_t i = 0; i < CODECS && exit_code == 0; i++)
            exit_code = run_codec(&cases, &codecs[i], by_naive != 0);
    return bench_end(&cases, exit_code);
}
