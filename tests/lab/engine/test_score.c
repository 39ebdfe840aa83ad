/* SPDX-License-Identifier: Apache-2.0 */
/* Products of stored rows with a few vectors: in every dtype and on every instruction set, the
 * same bits as the scalar loops, and estimates that stay within their error. Rows with a NaN or an
 * infinity must never look usual to whoever reads estimates.
 */
#include "check.h"

#include <math.h>

#include "base/half.h"
#include "engine/estimate.h"
#include "table/access.h"

enum { ROWS = 23, DIM_MOST = 4096, VECTORS = 6, DTYPE_LAST = EMBLA_F4_E2M1 };

/* Dims that are whole blocks of every dtype, and some that are only whole numbers. */
static const size_t dims[] = {1, 15, 16, 33, 256, 300, 512, 4096};

static bool has_dim(embla_dtype dtype, size_t dim)
{
    return dim % embla_dtype_find_info(dtype)->block == 0;
}

/* Rows of random bytes: any code there is, NaN and infinity where the dtype has them. */
static embla_table *table_of_bytes(embla_dtype dtype, size_t dim, unsigned char *bytes)
{
    embla_table *table = NULL;
    size_t all = ROWS * embla_dtype_bytes(embla_dtype_find_info(dtype), dim);
    check_fill_bytes(dim, all, bytes);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = dtype, .rows = ROWS, .dim = dim},
                               bytes, all, NULL, &table));
    return table;
}

/* The same with exponents in the middle: f16 numbers of a block stay below 2^-3. */
static embla_table *table_of(embla_dtype dtype, size_t dim, unsigned char *bytes)
{
    const embla_dtype_info *info = embla_dtype_find_info(dtype);
    const size_t block = info->block_bytes, all = ROWS * embla_dtype_bytes(info, dim);
    if (embla_dtype_writes(dtype)) return check_table(dtype, ROWS, dim, dim);
    embla_table *table = table_of_bytes(dtype, dim, bytes);
    bool at_end = dtype == EMBLA_Q3_K || dtype == EMBLA_Q6_K; /* where d is; others have it first */
    for (size_t at = 0; at < all; at += block) {
        bytes[at + (at_end ? block - 1 : 1)] &= 0xab;
        if (dtype == EMBLA_Q4_K || dtype == EMBLA_Q5_K) bytes[at + 3] &= 0xab;
    }
    return table;
}

/* Vectors of all kinds: usual, one number far above the rest, huge, tiny, zero. */
static void fill_vectors(size_t dim, float *vectors)
{
    const float factors[VECTORS] = {1.0f, 1.0f, 1e30f, 1e-38f, 0.0f, 1000.0f};
    check_fill(dim + 1, VECTORS * dim, vectors);
    vectors[dim] = 1e6f;
    for (size_t v = 0; v < VECTORS; v++)
        for (size_t i = 0; i < dim; i++) vectors[v * dim + i] *= factors[v];
}

static double exact(const float *x, const float *y, size_t n)
{
    return embla_kernels_scalar.dot(x, y, n);
}

/* ---- one dtype and dim ---- */

static float vectors[VECTORS * DIM_MOST], row[DIM_MOST];
static unsigned char space[ROWS * DIM_MOST * sizeof(double)];

static void check_bits(const embla_table *table, size_t count)
{
    const embla_row_source *stored = embla_table_source(table);
    float wanted[VECTORS * ROWS], got[VECTORS * ROWS];
    embla_score_job job = {.rows = stored,
                           .first = 1,
                           .n = ROWS - 1,
                           .vectors = vectors,
                           .count = count,
                           .dots = wanted,
                           .stride = ROWS};
    memset(wanted, 0, sizeof wanted);
    embla_kernels_use(&embla_kernels_scalar);
    embla_score(&job);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        memset(got, 0, sizeof got);
        job.dots = got;
        embla_score(&job);
        for (size_t i = 0; i < VECTORS * ROWS; i++)
            if (check_bits_of(got[i]) != check_bits_of(wanted[i]))
                fail_msg("%s, %s, dim %zu: %a, not %a", check_sets[s], stored->row->info->name,
                         stored->row->format.dim, (double)got[i], (double)wanted[i]);
    }
    embla_kernels_use(NULL);
}

static void check_estimates(const embla_table *table, size_t count)
{
    const embla_row_source *stored = embla_table_source(table);
    const size_t dim = stored->row->format.dim;
    double dots[VECTORS * ROWS], squares[ROWS];
    float floats[(VECTORS + 1) * ROWS];
    embla_arena arena = {0};
    embla_estimate e;
    assert_ok(embla_estimate_new(stored, vectors, count, &arena, &e));
    assert_true(e.error > 0.0 && e.error < 1e-2);
    embla_estimate_rows(&e, 0, ROWS, floats, ROWS, dots, squares);
    for (int64_t r = 0; r < ROWS; r++) {
        check_row(table, r, row);
        double square = exact(row, row, dim);
        bool usual = squares[r] >= EMBLA_ESTIMATE_LEAST && squares[r] <= EMBLA_ESTIMATE_MOST;
        if (!isfinite(square)) assert_false(usual);
        if (!usual) continue;
        assert_true(fabs(squares[r] - square) <= e.error * square);
        for (size_t v = 0; v < count; v++) {
            const float *vector = vectors + v * dim;
            double most = e.error * sqrt(square) * sqrt(exact(vector, vector, dim));
            double apart = fabs(dots[v * ROWS + (size_t)r] - exact(row, vector, dim));
            if (!(apart <= most))
                fail_msg("%s, dim %zu, vector %zu: off by %g, at most %g", stored->row->info->name,
                         dim, v, apart, most);
        }
    }
    embla_arena_free(&arena);
}

static void for_all(void (*check)(const embla_table *table, size_t count))
{
    for (int d = EMBLA_F32; d <= DTYPE_LAST; d++)
        for (size_t i = 0; i < COUNT_OF(dims); i++) {
            if (!has_dim((embla_dtype)d, dims[i])) continue;
            embla_table *usual = table_of((embla_dtype)d, dims[i], space);
            fill_vectors(dims[i], vectors);
            for (size_t count = 1; count <= VECTORS; count++) check(usual, count);
            embla_table_free(usual);
        }
}

/* ---- the tests ---- */

static void every_set_has_the_bits_of_scalar(void **state)
{
    (void)state;
    for_all(check_bits);
}

static void estimates_are_within_their_error(void **state)
{
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        for_all(check_estimates);
    }
    embla_kernels_use(NULL);
}

/* Rows of a usual size are trusted, so that a search need not compute exact sums of them. */
static void usual_rows_are_trusted(void **state)
{
    (void)state;
    for (int d = EMBLA_F32; d <= DTYPE_LAST; d++) {
        embla_table *table = table_of((embla_dtype)d, 512, space);
        const embla_row_source *stored = embla_table_source(table);
        double dots[ROWS], squares[ROWS];
        float floats[2 * ROWS];
        embla_arena arena = {0};
        embla_estimate e;
        fill_vectors(512, vectors);
        assert_ok(embla_estimate_new(stored, vectors, 1, &arena, &e));
        embla_estimate_rows(&e, 0, ROWS, floats, ROWS, dots, squares);
        for (size_t r = 0; r < ROWS; r++)
            assert_true(squares[r] >= EMBLA_ESTIMATE_LEAST && squares[r] <= EMBLA_ESTIMATE_MOST);
        embla_arena_free(&arena);
        embla_table_free(table);
    }
}

static void rows_with_nan_or_infinity_are_not_trusted(void **state)
{
    size_t nonfinite = 0;
    (void)state;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        for (int d = EMBLA_F32; d <= DTYPE_LAST; d++)
            for (size_t i = 0; i < COUNT_OF(dims); i++) {
                if (!has_dim((embla_dtype)d, dims[i])) continue;
                embla_table *table = table_of_bytes((embla_dtype)d, dims[i], space);
                fill_vectors(dims[i], vectors);
                check_estimates(table, 1 + i % VECTORS);
                for (int64_t r = 0; r < ROWS; r++) {
                    check_row(table, r, row);
                    nonfinite += isfinite(exact(row, row, dims[i])) ? 0 : 1;
                }
                embla_table_free(table);
            }
    }
    embla_kernels_use(NULL);
    assert_true(nonfinite > 100);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_set_has_the_bits_of_scalar),
        cmocka_unit_test(estimates_are_within_their_error),
        cmocka_unit_test(usual_rows_are_trusted),
        cmocka_unit_test(rows_with_nan_or_infinity_are_not_trusted),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
