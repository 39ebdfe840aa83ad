/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a table beside the trunk: forward against plain loops in double written here,
 * gradients against central differences of these; the same bits for any number of threads and on
 * each instruction set.
 */
#include "reals.h"

typedef struct {
    size_t n, dim, stride;
    double epsilon;
    reals x, pair, y, stats, dy, dx, dpair; /* pair: key, then value, in n x stride */
} gate;

static gate gate_new(size_t n, size_t dim, size_t stride)
{
    gate m = {.n = n, .dim = dim, .stride = stride, .epsilon = 1e-3};
    m.x = reals_new(n * dim, 1);
    m.pair = reals_new(n * stride, 2);
    m.y = reals_new(n * dim, 0);
    m.stats = reals_new(n * EMBLA_GATE_STATS, 0);
    m.dy = reals_new(n * dim, 3);
    m.dx = reals_new(n * dim, 0);
    m.dpair = reals_new(n * stride, 9); /* to be overwritten where it is theirs */
    return m;
}

static void gate_free(gate *m)
{
    reals *all[] = {&m->x, &m->pair, &m->y, &m->stats, &m->dy, &m->dx, &m->dpair};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
}

static void forward(gate *m, int threads)
{
    embla_layer_way way = reals_way(threads);
    const float *key = m->pair.f;
    assert_ok(embla_gate_forward(&way, m->epsilon, m->x.f, key, key + m->dim, m->stride, m->n,
                                 m->dim, m->y.f, m->stats.f));
}

static void backward(gate *m, int threads)
{
    embla_layer_way way = reals_way(threads);
    const float *key = m->pair.f;
    memcpy(m->dx.f, m->dy.f, m->n * m->dim * sizeof(float));
    assert_ok(embla_gate_backward(&way, m->x.f, key, key + m->dim, m->stride, m->stats.f, m->n,
                                  m->dim, m->dx.f, m->dpair.f, m->dpair.f + m->dim));
}

/* ---- against plain loops ---- */

static double plain_rms(const double *x, size_t dim, double epsilon)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) squares += x[i] * x[i];
    return sqrt(squares / (double)dim + epsilon);
}

static void plain(gate *m)
{
    for (size_t t = 0; t < m->n; t++) {
        const double *x = m->x.d + t * m->dim, *key = m->pair.d + t * m->stride;
        double a = plain_rms(x, m->dim, m->epsilon), b = plain_rms(key, m->dim, m->epsilon);
        double *stats = m->stats.d + EMBLA_GATE_STATS * t, sum = 0;
        for (size_t i = 0; i < m->dim; i++) sum += x[i] / a * (key[i] / b);
        stats[0] = 1 / a;
        stats[1] = 1 / b;
        stats[2] = sum / (double)m->dim;
        stats[3] = 1 / (1 + exp(-sum / sqrt((double)m->dim)));
        for (size_t i = 0; i < m->dim; i++)
            m->y.d[t * m->dim + i] = x[i] + stats[3] * key[m->dim + i];
    }
}

static void it_is_what_plain_loops_give(void **state)
{
    static const size_t dims[] = {1, 2, 7, 15, 16, 17, 32, 48, 65};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        gate m = gate_new(5, dims[k], 2 * dims[k] + k % 3);
        forward(&m, 1);
        plain(&m);
        reals_agree(&m.y, 1e-6);
        reals_agree(&m.stats, 2e-6);
        gate_free(&m);
    }
}

/* Key and stream alike: the gate is sigmoid(sqrt(dim)), but for epsilon; against each other:
 * sigmoid(-sqrt(dim)). A key of zeros leaves it half open. */
static void the_gate_opens_for_a_key_like_the_stream(void **state)
{
    (void)state;
    gate m = gate_new(3, 4, 8);
    m.epsilon = 1e-12;
    for (size_t i = 0; i < 4; i++) {
        float x = m.x.f[i] = m.x.f[4 + i] = m.x.f[8 + i] = 1 + (float)i;
        m.pair.f[i] = 100 * x;
        m.pair.f[8 + i] = -0.01f * x;
        m.pair.f[16 + i] = 0;
    }
    forward(&m, 1);
    assert_near(m.stats.f[3], 1 / (1 + exp(-2.0)), 2e-7);
    assert_near(m.stats.f[4 + 3], 1 / (1 + exp(2.0)), 2e-7);
    assert_near(m.stats.f[8 + 3], 0.5, 0);
    for (size_t i = 0; i < 4; i++)
        assert_near(m.y.f[8 + i], m.x.f[8 + i] + 0.5f * m.pair.f[16 + 4 + i], 0);
    gate_free(&m);
}

/* ---- gradients ---- */

static double loss(void *context)
{
    gate *m = context;
    plain(m);
    return reals_dot(m->y.d, m->dy.d, m->y.n);
}

static void it_has_the_derivatives_of_differences(void **state)
{
    static const size_t dims[] = {1, 3, 16, 21, 40};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        size_t dim = dims[k], stride = 2 * dim + 1;
        gate m = gate_new(k < 4 ? 4 : 33, dim, stride);
        for (size_t t = 0; t < m.n; t++) /* what is between tokens is not theirs */
            m.dpair.f[t * stride + 2 * dim] = 0;
        forward(&m, 1 + (int)k % 2);
        backward(&m, 1 + (int)k % 2);
        reals_derivative(loss, &m, m.x.d, m.dx.f, m.x.n, 1, 2e-6);
        reals_derivative(loss, &m, m.pair.d, m.dpair.f, m.pair.n, 1, 2e-6);
        gate_free(&m);
    }
}

/* ---- bits ---- */

static void bits_do_not_depend_on_threads_or_sets(void **state)
{
    (void)state;
    gate a = gate_new(515, 97, 194);
    forward(&a, 1);
    backward(&a, 1);
    for (size_t i = 0; i < COUNT_OF(reals_threads); i++)
        for (size_t set = 0; set < CHECK_SETS; set++) {
            if (!embla_kernels_find(check_sets[set])) continue;
            embla_kernels_use(embla_kernels_find(check_sets[set]));
            gate b = gate_new(515, 97, 194);
            forward(&b, reals_threads[i]);
            backward(&b, reals_threads[i]);
            assert_memory_equal(a.y.f, b.y.f, a.y.n * sizeof(float));
            assert_memory_equal(a.stats.f, b.stats.f, a.stats.n * sizeof(float));
            assert_memory_equal(a.dx.f, b.dx.f, a.dx.n * sizeof(float));
            assert_memory_equal(a.dpair.f, b.dpair.f, a.dpair.n * sizeof(float));
            gate_free(&b);
        }
    embla_kernels_use(NULL);
    gate_free(&a);
}

/* y may be x; no tokens are no work. */
static void it_may_be_in_place(void **state)
{
    (void)state;
    gate m = gate_new(9, 20, 40), one = gate_new(9, 20, 40);
    embla_layer_way way = reals_way(1);
    float *x = one.x.f, *key = one.pair.f;
    forward(&m, 1);
    assert_ok(embla_gate_forward(&way, m.epsilon, x, key, key + 20, 40, 9, 20, x, one.stats.f));
    assert_memory_equal(x, m.y.f, m.y.n * sizeof(float));
    assert_ok(embla_gate_forward(&way, 1e-5, NULL, NULL, NULL, 40, 0, 20, NULL, NULL));
    assert_ok(embla_gate_backward(&way, NULL, NULL, NULL, 40, NULL, 0, 20, NULL, NULL, NULL));
    gate_free(&m);
    gate_free(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_plain_loops_give),
        cmocka_unit_test(the_gate_opens_for_a_key_like_the_stream),
        cmocka_unit_test(it_has_the_derivatives_of_differences),
        cmocka_unit_test(bits_do_not_depend_on_threads_or_sets),
        cmocka_unit_test(it_may_be_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
