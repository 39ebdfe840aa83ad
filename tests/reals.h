/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of layers share. An array is floats, which the library reads and writes, and
 * doubles, for the plain definitions that the tests write down. Both begin with the same numbers.
 * Gradients, in float, are compared with central differences of a definition, in double.
 */
#ifndef EMBLA_TESTS_REALS_H
#define EMBLA_TESTS_REALS_H

#include <math.h>

#include "base/mem.h"
#include "check.h"
#include "model/layers.h"

typedef struct {
    float *f;
    double *d;
    size_t n;
} reals;

static const int reals_threads[] = {1, 2, 3, 8};

/* Floats in [-1, 1), and the same as doubles; seed 0: zeros. */
static inline reals reals_new(size_t n, uint64_t seed)
{
    reals x = {.f = calloc(n + 1, sizeof(float)), .d = calloc(n + 1, sizeof(double)), .n = n};
    assert_true(x.f && x.d);
    for (size_t i = 0; seed && i < n; i++) x.d[i] = (double)(x.f[i] = check_unit(&seed));
    return x;
}

static inline void reals_free(reals *x)
{
    free(x->f);
    free(x->d);
}

static inline embla_layer_way reals_way(int threads)
{
    return (embla_layer_way){.compute = EMBLA_F32, .threads = threads};
}

/* The length of a - b is below tolerance times that of b (or below it, where b is short). */
static inline void reals_near(const double *a, const double *b, size_t n, double tolerance)
{
    double gap = 0.0, all = 0.0;
    for (size_t i = 0; i < n; i++) {
        gap += (a[i] - b[i]) * (a[i] - b[i]);
        all += b[i] * b[i];
    }
    if (!(sqrt(gap) <= tolerance * (sqrt(all) + 1e-3)))
        fail_msg("%.3g apart, of %.3g, in %zu numbers", sqrt(gap), sqrt(all), n);
}

/* The floats are near the doubles. */
static inline void reals_agree(const reals *x, double tolerance)
{
    double *wide = malloc((x->n + 1) * sizeof *wide);
    assert_non_null(wide);
    for (size_t i = 0; i < x->n; i++) wide[i] = (double)x->f[i];
    reals_near(wide, x->d, x->n, tolerance);
    free(wide);
}

static inline double reals_dot(const double *a, const double *b, size_t n)
{
    double sum = 0.0;
    for (size_t i = 0; i < n; i++) sum += a[i] * b[i];
    return sum;
}

typedef double reals_fn(void *context);

/* The derivative of f, a sum in double, by x[i]: the error is about 1e-9 of f. */
static inline double reals_slope(reals_fn *f, void *context, double *x, size_t i)
{
    const double h = 1e-5, kept = x[i];
    x[i] = kept + h;
    double above = f(context);
    x[i] = kept - h;
    double below = f(context);
    x[i] = kept;
    return (above - below) / (2.0 * h);
}

/* gradient[i] is the derivative of f by x[i], for every step-th i, to `tolerance` of the largest
 * of these derivatives. */
static inline void reals_derivative(reals_fn *f, void *context, double *x, const float *gradient,
                                    size_t n, size_t step, double tolerance)
{
    double *slopes = calloc(n + 1, sizeof *slopes), largest = 0.0;
    assert_non_null(slopes);
    for (size_t i = 0; i < n; i += step) {
        slopes[i] = reals_slope(f, context, x, i);
        largest = fmax(largest, fabs(slopes[i]));
    }
    for (size_t i = 0; i < n; i += step)
        if (!(fabs(slopes[i] - (double)gradient[i]) <= tolerance * largest + 1e-7))
            fail_msg("number %zu of %zu: %.9g, but by differences %.9g (largest %.3g)", i, n,
                     (double)gradient[i], slopes[i], largest);
    free(slopes);
}

/* The n-th allocation fails, for each n until all succeed: a status, and nothing is held. */
#define REALS_EACH_ALLOCATION_FAILS(call)                                                          \
    do {                                                                                           \
        size_t each_live = embla_mem_live(), each_at = 1;                                          \
        for (;; each_at++) {                                                                       \
            embla_mem_fail(each_at, false);                                                        \
            embla_status each_status = (call);                                                     \
            embla_mem_fail(0, false);                                                              \
            assert_int_equal(embla_mem_live(), each_live);                                         \
            if (each_status == EMBLA_OK) break;                                                    \
            assert_status(each_status, EMBLA_ERR_MEMORY);                                          \
            assert_true(each_at < 100);                                                            \
        }                                                                                          \
        assert_true(each_at > 1);                                                                  \
    } while (0)

#endif
