/* SPDX-License-Identifier: Apache-2.0 */
/* What the test programs share: cmocka, a random number generator that is independent of the
 * library's own, memory between guard bytes, and loops over all kernel sets and all dtypes.
 *
 *   for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
 *       embla_table *table = check_table((embla_dtype)d, 20, check_dim((embla_dtype)d, 96), 1);
 */
#ifndef EMBLA_TESTS_CHECK_H
#define EMBLA_TESTS_CHECK_H

#include <inttypes.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>

#include <cmocka.h>

#include "base/hash.h"
#include "base/kernels.h"
#include "embla.h"

#define COUNT_OF(array) (sizeof(array) / sizeof(array)[0])

/* A call that must succeed; its sentence is printed when it does not. */
#define assert_ok(call)                                                                            \
    do {                                                                                           \
        embla_status ok_status = (call);                                                           \
        if (ok_status != EMBLA_OK)                                                                 \
            fail_msg("%s: %s", embla_status_name(ok_status), embla_error());                       \
    } while (0)

#define assert_status(call, wanted)                                                                \
    assert_string_equal(embla_status_name(call), embla_status_name(wanted))

/* Skips the test and says why: tests/skipped.sh prints the reasons at the end of a run. */
#define skip_because(why)                                                                          \
    do {                                                                                           \
        print_message("%s\n", (why));                                                              \
        skip();                                                                                    \
    } while (0)

/* The sentence of the last failure holds this text. */
#define assert_error_has(text)                                                                     \
    do {                                                                                           \
        if (!strstr(embla_error(), (text)))                                                        \
            fail_msg("'%s' is not in '%s'", (text), embla_error());                                \
    } while (0)

/* |a - b| <= tolerance; false for a NaN. */
#define assert_near(a, b, tolerance)                                                               \
    do {                                                                                           \
        double near_a = (double)(a), near_b = (double)(b), near_gap = near_a - near_b;             \
        if (!((near_gap < 0 ? -near_gap : near_gap) <= (tolerance)))                               \
            fail_msg("%.17g is not near %.17g (%.3g apart)", near_a, near_b, near_gap);            \
    } while (0)

/* ---- random numbers: splitmix64 ---- */

static inline uint64_t check_next(uint64_t *state)
{
    return embla_mix64(*state += EMBLA_GOLDEN);
}

static inline uint64_t check_below(uint64_t *state, uint64_t limit)
{
    return check_next(state) % limit;
}

/* In [-1, 1). */
static inline float check_unit(uint64_t *state)
{
    return (float)((double)(check_next(state) >> 40) * 0x1p-23 - 1.0);
}

static inline float check_float_of(uint32_t bits)
{
    float x;
    memcpy(&x, &bits, sizeof x);
    return x;
}

static inline uint32_t check_bits_of(float x)
{
    uint32_t bits;
    memcpy(&bits, &x, sizeof bits);
    return bits;
}

/* Any float at all, NaN and infinity included. */
static inline float check_any_float(uint64_t *state)
{
    return check_float_of((uint32_t)check_next(state));
}

/* In (-1, 1), of many sizes, so that a sum of products depends on its order. */
static inline void check_fill(uint64_t seed, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++)
        out[i] = check_unit(&seed) / (float)(1 << check_below(&seed, 12));
}

static inline void check_fill_bytes(uint64_t seed, size_t n, void *out)
{
    unsigned char *bytes = out;
    for (size_t i = 0; i < n; i++) bytes[i] = (unsigned char)check_next(&seed);
}

/* ---- memory between guard bytes ---- */

enum { CHECK_GUARD = 128, CHECK_MARK = 0xA5 };

typedef struct {
    unsigned char *block; /* all of it */
    unsigned char *bytes; /* what the test may use */
    size_t size, total;
} check_guarded;

/* size bytes that begin offset bytes past a line. Every byte is CHECK_MARK. */
static inline check_guarded check_guard(size_t size, size_t offset)
{
    check_guarded g = {.size = size};
    g.total = (size + offset + 3 * (size_t)CHECK_GUARD) / 64 * 64;
    g.block = aligned_alloc(64, g.total);
    assert_non_null(g.block);
    g.bytes = g.block + CHECK_GUARD + offset;
    memset(g.block, CHECK_MARK, g.total);
    return g;
}

static inline void check_marks(const unsigned char *from, const unsigned char *to)
{
    for (const unsigned char *p = from; p < to; p++)
        if (*p != CHECK_MARK)
            fail_msg("a byte was written %zu bytes from the end", (size_t)(to - p));
}

/* Nothing was written outside. */
static inline void check_guards(const check_guarded *g)
{
    check_marks(g->block, g->bytes);
    check_marks(g->bytes + g->size, g->block + g->total);
}

/* Nothing was written at all. */
static inline void check_untouched(const check_guarded *g)
{
    check_marks(g->block, g->block + g->total);
}

static inline void check_guard_free(check_guarded *g)
{
    free(g->block);
}

/* ---- what there is to try ---- */

#include "check_k.h"

static const char *const check_sets[] = {"scalar", "neon", "avx2", "avx512"};
enum { CHECK_SETS = sizeof check_sets / sizeof check_sets[0] };

enum { CHECK_FIRST_DTYPE = EMBLA_F32, CHECK_LAST_DTYPE = EMBLA_F4_E2M1 };

/* The scale of our tables, for a dtype that takes one beside its bytes; otherwise 0. */
static inline float check_scale(embla_dtype dtype)
{
    if (dtype == EMBLA_F4_E2M1) return 0.25f; /* its largest number is 6 */
    bool scaled = dtype == EMBLA_F8_E4M3 || dtype == EMBLA_F8_E5M2 || dtype == EMBLA_I8;
    return scaled ? 0.0078125f : 0.0f;
}

/* Whether the library writes the dtype. It only reads superblocks. */
static inline bool check_writes(embla_dtype dtype)
{
    return !(dtype >= EMBLA_Q3_K && dtype <= EMBLA_Q6_K) && dtype != EMBLA_IQ4_XS;
}

/* Numbers in a block. */
static inline size_t check_block(embla_dtype dtype)
{
    if (!check_writes(dtype)) return CHECK_SUPER;
    if (dtype == EMBLA_F4_E2M1) return 2;
    return dtype < EMBLA_Q8_0 ? 1 : dtype == EMBLA_NVFP4 ? 64 : 32;
}

/* dim, or the next larger whole number of blocks. */
static inline size_t check_dim(embla_dtype dtype, size_t dim)
{
    size_t block = check_block(dtype);
    return (dim + block - 1) / block * block;
}

/* A table of zeros. dim is a whole number of blocks. */
static inline embla_table *check_zeros(embla_dtype dtype, int64_t rows, size_t dim)
{
    embla_table *table = NULL;
    embla_table_options options = {.scale = check_scale(dtype)};
    assert_ok(embla_table_new(dtype, rows, dim, &options, &table));
    return table;
}

/* Writes `count` rows from row `first` on, as exactly as the dtype can hold them. The library must
 * refuse to write a dtype that it only reads; then the rows are encoded here. */
static inline void check_write(embla_table *table, int64_t first, size_t count, const float *values)
{
    embla_dtype dtype = embla_table_dtype(table);
    size_t dim = embla_table_dim(table), bytes = embla_table_row_bytes(table);
    if (check_writes(dtype)) {
        assert_ok(embla_table_write(table, first, count, values));
        return;
    }
    assert_status(embla_table_write(table, first, count, values), EMBLA_ERR_UNSUPPORTED);
    unsigned char *to = embla_table_data(table);
    to += (size_t)first * embla_table_row_stride(table);
    for (size_t i = 0; i < count; i++, to += embla_table_row_stride(table)) {
        memset(to, 0, bytes);
        for (size_t k = 0; k < dim / CHECK_SUPER; k++)
            check_k_encode(dtype, values + i * dim + k * CHECK_SUPER,
                           to + k * (bytes / (dim / CHECK_SUPER)));
    }
}

/* A table of random numbers, none of them NaN. */
static inline embla_table *check_table(embla_dtype dtype, int64_t rows, size_t dim, uint64_t seed)
{
    embla_table *table = check_zeros(dtype, rows, dim);
    embla_init_options init = {.seed = seed, .spread = 0.25f, .threads = 1};
    if (check_writes(dtype)) {
        assert_ok(embla_table_init(table, &init));
    } else {
        embla_table *floats = check_zeros(EMBLA_F32, rows, dim);
        assert_status(embla_table_init(table, &init), EMBLA_ERR_UNSUPPORTED);
        assert_ok(embla_table_init(floats, &init));
        check_write(table, 0, (size_t)rows, embla_table_data(floats));
        embla_table_free(floats);
    }
    return table;
}

/* A table of these numbers (rows x dim), as exactly as the dtype can hold them. */
static inline embla_table *check_table_of(embla_dtype dtype, int64_t rows, size_t dim,
                                          const float *values)
{
    embla_table *table = check_zeros(dtype, rows, dim);
    check_write(table, 0, (size_t)rows, values);
    return table;
}

/* A row as floats, by embla_dtype_decode, which test_dtype.c checks. */
static inline void check_row(const embla_table *table, int64_t row, float *out)
{
    embla_dtype dtype = embla_table_dtype(table);
    assert_ok(embla_dtype_decode(dtype, embla_table_row(table, row), embla_table_dim(table),
                                 check_scale(dtype) != 0.0f ? embla_table_scale(table) : 0.0f,
                                 out));
}

#endif
