/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues by plain loops (engine/eigen.c): what defines them, matrices whose values are known,
 * matrices that are hard (close values, graded numbers, both ends of double), LAPACK where there is
 * one, the same bits on every kernel set, and failures. */
#include "check.h"

#include <math.h>
#include <stdlib.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "engine/eigen.h"
#include "engine/engine.h"

typedef double number_fn(size_t i, size_t j, size_t n);

static uint64_t seed;

static double random_number(size_t i, size_t j, size_t n)
{
    (void)i, (void)j, (void)n;
    return (double)check_unit(&seed);
}

static double zero(size_t i, size_t j, size_t n)
{
    (void)i, (void)j, (void)n;
    return 0;
}

static double identity(size_t i, size_t j, size_t n)
{
    (void)n;
    return i == j;
}

/* W+: pairs of values that agree to nearly all digits. */
static double wilkinson(size_t i, size_t j, size_t n)
{
    if (i == j) return fabs((double)i - (double)(n - 1) / 2);
    return i + 1 == j || j + 1 == i;
}

/* Values 2 cos(k pi / (n + 1)). */
static double path(size_t i, size_t j, size_t n)
{
    (void)n;
    return i + 1 == j || j + 1 == i;
}

/* n - 1 values 0, and the sum of squares. */
static double rank_one(size_t i, size_t j, size_t n)
{
    (void)n;
    return (double)((i + 1) * (j + 1));
}

static double hilbert(size_t i, size_t j, size_t n)
{
    (void)n;
    return 1 / (double)(i + j + 1);
}

static double clustered(size_t i, size_t j, size_t n)
{
    return identity(i, j, n) + 1e-13 * random_number(i, j, n);
}

/* Ten times each value. LAPACK's dstemr gives up on it. */
static double repeated(size_t i, size_t j, size_t n)
{
    (void)n;
    return (i == j ? (double)(i / 10) : 0) + 1e-15 * (double)(i + j);
}

static double graded_down(size_t i, size_t j, size_t n)
{
    return pow(0.7, (double)(i + j)) * (1 + identity(i, j, n) + 0.1 * random_number(i, j, n));
}

static double graded_up(size_t i, size_t j, size_t n)
{
    return graded_down(n - 1 - i, n - 1 - j, n);
}

/* Numbers so small beside the others that their squares are 0. */
static double gaps(size_t i, size_t j, size_t n)
{
    (void)n;
    return i == j ? (double)(i % 2) : 1e-200 * path(i, j, n);
}

/* Left of the diagonal, which must not be read, are NaNs. */
static double *make(number_fn *number, size_t n)
{
    double *m = malloc(n * n * sizeof *m);
    assert_non_null(m);
    seed = n;
    for (size_t i = 0; i < n; i++)
        for (size_t j = 0; j < n; j++) m[i * n + j] = j < i ? NAN : number(i, j, n);
    return m;
}

static double at(const double *m, size_t n, size_t i, size_t j)
{
    return i < j ? m[i * n + j] : m[j * n + i];
}

typedef struct {
    double *values, *vectors;
} solution;

static solution solve(number_fn *number, size_t n, size_t vectors)
{
    double *m = make(number, n);
    solution s = {malloc(n * sizeof *s.values), malloc((vectors * n + 1) * sizeof *s.vectors)};
    size_t live = embla_mem_live();
    assert_ok(embla_eigen_plain(m, n, vectors, s.values, s.vectors, 0));
    assert_int_equal(embla_mem_live(), live);
    free(m);
    return s;
}

static void solution_free(solution *s)
{
    free(s->values);
    free(s->vectors);
}

static double dot(const double *x, const double *y, size_t n)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) sum += x[i] * y[i];
    return sum;
}

/* The length of matrix * x - value * x. */
static double residual(const double *m, size_t n, const double *x, double value)
{
    double squares = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = -value * x[i];
        for (size_t j = 0; j < n; j++) sum += at(m, n, i, j) * x[j];
        squares += sum * sum;
    }
    return sqrt(squares);
}

static double norm_of(const solution *s, size_t n)
{
    return fmax(fabs(s->values[0]), fabs(s->values[n - 1]));
}

static void check(number_fn *number, size_t n, size_t vectors)
{
    const double close = 4e-16 * (double)(n + 8);
    double *m = make(number, n), trace = 0;
    solution s = solve(number, n, vectors);
    double norm = norm_of(&s, n);
    for (size_t i = 0; i < n; i++) {
        trace += s.values[i] - m[i * n + i];
        if (i > 0) assert_true(s.values[i] >= s.values[i - 1]);
    }
    assert_near(trace, 0, close * (double)n * norm);
    for (size_t v = 0; v < vectors; v++) {
        const double *x = s.vectors + v * n;
        assert_true(residual(m, n, x, s.values[n - vectors + v]) <= close * norm);
        for (size_t w = 0; w <= v; w++) assert_near(dot(x, s.vectors + w * n, n), v == w, close);
    }
    solution_free(&s);
    free(m);
}

static number_fn *const all[] = {random_number, zero,     identity,    wilkinson,
                                 path,          rank_one, hilbert,     clustered,
                                 repeated,      gaps,     graded_down, graded_up};

static void eigenvalues_and_vectors_are_what_defines_them(void **state)
{
    static const size_t sizes[] = {1, 2, 3, 4, 8, 21, 65, 130};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(all); k++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            check(all[k], sizes[s], sizes[s]);
            check(all[k], sizes[s], (sizes[s] + 1) / 3);
        }
    check(random_number, 400, 70);
}

static void known_values_are_found(void **state)
{
    enum { N = 40 };
    const double pi = acos(-1);
    solution s = solve(path, N, 0);
    (void)state;
    for (size_t i = 0; i < N; i++)
        assert_near(s.values[i], -2 * cos((double)(i + 1) * pi / (N + 1)), 1e-14);
    solution_free(&s);
    s = solve(rank_one, N, 0);
    assert_near(s.values[N - 1] / (N * (N + 1) * (2 * N + 1) / 6.0), 1, 1e-14);
    for (size_t i = 0; i + 1 < N; i++) assert_near(s.values[i] / s.values[N - 1], 0, 1e-15);
    solution_free(&s);
    s = solve(wilkinson, 21, 0);
    assert_near(s.values[20], 10.746194182903393, 1e-14);
    assert_near(s.values[19], 10.746194182903322, 1e-14);
    assert_near(s.values[0], -1.1254415221199843, 1e-14);
    solution_free(&s);
    s = solve(identity, N, 0);
    for (size_t i = 0; i < N; i++) assert_true(s.values[i] == 1);
    solution_free(&s);
    s = solve(zero, N, 0);
    for (size_t i = 0; i < N; i++) assert_true(s.values[i] == 0);
    solution_free(&s);
}

static void values_are_those_of_lapack(void **state)
{
    static const size_t sizes[] = {1, 2, 17, 64, 150};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(all); k++)
        for (size_t i = 0; i < COUNT_OF(sizes); i++) {
            size_t n = sizes[i];
            solution s = solve(all[k], n, 0);
            double *m = make(all[k], n), *values = malloc(n * sizeof *values);
            assert_ok(embla_engine_eigen(m, n, 0, values, NULL)); /* eigen.c if there is none */
            for (size_t j = 0; j < n; j++)
                assert_near(values[j], s.values[j], 4e-16 * (double)(n + 8) * norm_of(&s, n));
            solution_free(&s);
            free(m), free(values);
        }
}

/* Scaled by a power of two, all digits are the same. */
static void both_ends_of_double_are_like_the_middle(void **state)
{
    static const int exponents[] = {1000, 500, -500, -1000};
    enum { N = 33 };
    solution s = solve(random_number, N, N);
    (void)state;
    for (size_t k = 0; k < COUNT_OF(exponents); k++) {
        double *m = make(random_number, N), values[N], vectors[N * N];
        for (size_t i = 0; i < (size_t)N * N; i++) m[i] = ldexp(m[i], exponents[k]);
        assert_ok(embla_eigen_plain(m, N, N, values, vectors, 0));
        for (size_t i = 0; i < N; i++) assert_true(values[i] == ldexp(s.values[i], exponents[k]));
        assert_memory_equal(vectors, s.vectors, sizeof vectors);
        free(m);
    }
    double tiny[4] = {0, 0x1p-1074, 0, 0}, values[2];
    assert_ok(embla_eigen_plain(tiny, 2, 0, values, NULL, 0));
    assert_true(values[0] == -0x1p-1074 && values[1] == 0x1p-1074);
    solution_free(&s);
}

static void every_kernel_set_gives_the_same_bits(void **state)
{
    static const char *const sets[] = {"neon", "avx2", "avx512"};
    enum { N = 150 };
    const embla_kernels *before = embla_kernels_get();
    (void)state;
    embla_kernels_use(embla_kernels_find("scalar"));
    solution s = solve(random_number, N, N);
    for (size_t k = 0; k < COUNT_OF(sets); k++) {
        if (!embla_kernels_find(sets[k])) continue;
        embla_kernels_use(embla_kernels_find(sets[k]));
        solution other = solve(random_number, N, N);
        assert_memory_equal(s.values, other.values, N * sizeof *s.values);
        assert_memory_equal(s.vectors, other.vectors, N * N * sizeof *s.vectors);
        solution_free(&other);
    }
    embla_kernels_use(before);
    solution_free(&s);
}

static void what_has_no_eigenvalues_is_a_status(void **state)
{
    static const double bad[] = {NAN, INFINITY, -INFINITY};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        double m[9] = {1, 0, 0, 0, 1, bad[i], 0, 0, 1}, values[3] = {7, 7, 7}, out[9] = {7};
        assert_status(embla_eigen_plain(m, 3, 3, values, out, 0), EMBLA_ERR_UNSUPPORTED);
        assert_error_has("3 x 3");
        assert_error_has("row 1, column 2");
        assert_true(values[0] == 7 && values[2] == 7 && out[0] == 7);
    }
}

static void an_iteration_that_does_not_end_is_a_status(void **state)
{
    double *m = make(random_number, 20), values[20] = {7}, out[20] = {7};
    size_t live = embla_mem_live();
    (void)state;
    assert_status(embla_eigen_plain(m, 20, 1, values, out, 5), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("20 x 20");
    assert_error_has("in 5 steps");
    assert_true(values[0] == 7 && out[0] == 7);
    assert_int_equal(embla_mem_live(), live);
    free(m);
}

static void every_allocation_may_fail(void **state)
{
    size_t live = embla_mem_live();
    (void)state;
    for (size_t nth = 1; nth <= 2; nth++) {
        double *m = make(random_number, 20), values[20] = {7}, out[20] = {7};
        embla_mem_fail(nth, false);
        assert_status(embla_eigen_plain(m, 20, 1, values, out, 0), EMBLA_ERR_MEMORY);
        embla_mem_fail(0, false);
        assert_true(values[0] == 7 && out[0] == 7);
        assert_int_equal(embla_mem_live(), live);
        free(m);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(eigenvalues_and_vectors_are_what_defines_them),
        cmocka_unit_test(known_values_are_found),
        cmocka_unit_test(values_are_those_of_lapack),
        cmocka_unit_test(both_ends_of_double_are_like_the_middle),
        cmocka_unit_test(every_kernel_set_gives_the_same_bits),
        cmocka_unit_test(what_has_no_eigenvalues_is_a_status),
        cmocka_unit_test(an_iteration_that_does_not_end_is_a_status),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
