/* SPDX-License-Identifier: Apache-2.0 */
/* The gate of a table beside the trunk: forward against plain loops written here, gradients
 * against finite differences in double, float against double; the same bits for any number of
 * threads and on each instruction set.
 */
#include "reals.h"

static const embla_gpt_precision both[] = {EMBLA_GPT_F32, EMBLA_GPT_F64};

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

static void *after(void *at, size_t numbers, embla_gpt_precision p)
{
    return (char *)at + numbers * embla_real_bytes(p);
}

static void forward(gate *m, embla_gpt_precision p, int threads)
{
    embla_layer_way way = reals_way(p, threads);
    void *key = reals_at(&m->pair, p);
    assert_ok(embla_gate_forward(&way, m->epsilon, reals_at(&m->x, p), key, after(key, m->dim, p),
                                 m->stride, m->n, m->dim, reals_at(&m->y, p),
                                 reals_at(&m->stats, p)));
}

static void backward(gate *m, embla_gpt_precision p, int threads)
{
    embla_layer_way way = reals_way(p, threads);
    void *key = reals_at(&m->pair, p), *dkey = reals_at(&m->dpair, p);
    memcpy(reals_at(&m->dx, p), reals_at(&m->dy, p), m->n * m->dim * embla_real_bytes(p));
    assert_ok(embla_gate_backward(&way, reals_at(&m->x, p), key, after(key, m->dim, p), m->stride,
                                  reals_at(&m->stats, p), m->n, m->dim, reals_at(&m->dx, p), dkey,
                                  after(dkey, m->dim, p)));
}

/* ---- against plain loops ---- */

static double plain_rms(const double *x, size_t dim, double epsilon)
{
    double squares = 0;
    for (size_t i = 0; i < dim; i++) squares += x[i] * x[i];
    return sqrt(squares / (double)dim + epsilon);
}

static void plain(const gate *m, size_t t, double *out)
{
    const double *x = m->x.d + t * m->dim, *key = m->pair.d + t * m->stride;
    double a = plain_rms(x, m->dim, m->epsilon), b = plain_rms(key, m->dim, m->epsilon), sum = 0;
    for (size_t i = 0; i < m->dim; i++) sum += x[i] / a * (key[i] / b);
    double g = 1 / (1 + exp(-sum / sqrt((double)m->dim)));
    for (size_t i = 0; i < m->dim; i++) out[i] = x[i] + g * key[m->dim + i];
}

static void it_is_what_plain_loops_give(void **state)
{
    static const size_t dims[] = {1, 2, 7, 15, 16, 17, 32, 48, 65};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        size_t dim = dims[k];
        gate m = gate_new(5, dim, 2 * dim + k % 3);
        double *want = malloc(dim * sizeof *want);
        forward(&m, EMBLA_GPT_F64, 1);
        forward(&m, EMBLA_GPT_F32, 1);
        for (size_t t = 0; t < m.n; t++) {
            plain(&m, t, want);
            reals_near(m.y.d + t * dim, want, dim, 1e-13);
        }
        reals_agree(&m.y, 1e-6);
        reals_agree(&m.stats, 2e-6);
        free(want);
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
        double x = m.x.d[i] = m.x.d[4 + i] = m.x.d[8 + i] = 1 + (double)i;
        m.pair.d[i] = 100 * x;
        m.pair.d[8 + i] = -0.01 * x;
        m.pair.d[16 + i] = 0;
    }
    forward(&m, EMBLA_GPT_F64, 1);
    assert_near(m.stats.d[3], 1 / (1 + exp(-2.0)), 1e-7);
    assert_near(m.stats.d[4 + 3], 1 / (1 + exp(2.0)), 1e-7);
    assert_near(m.stats.d[8 + 3], 0.5, 0);
    for (size_t i = 0; i < 4; i++)
        assert_near(m.y.d[8 + i], m.x.d[8 + i] + 0.5 * m.pair.d[16 + 4 + i], 0);
    gate_free(&m);
}

/* ---- gradients ---- */

static double loss(void *context)
{
    gate *m = context;
    forward(m, EMBLA_GPT_F64, 1);
    return reals_dot(m->y.d, m->dy.d, m->y.n);
}

static void it_has_the_derivatives_of_differences(void **state)
{
    static const size_t dims[] = {1, 3, 16, 21};
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++) {
        size_t dim = dims[k], stride = 2 * dim + 1;
        gate m = gate_new(4, dim, stride);
        for (size_t t = 0; t < m.n; t++) /* what is between tokens is not theirs */
            m.dpair.d[t * stride + 2 * dim] = 0;
        forward(&m, EMBLA_GPT_F64, 1);
        backward(&m, EMBLA_GPT_F64, 1);
        reals_derivative(loss, &m, m.x.d, m.dx.d, m.x.n, 1);
        reals_derivative(loss, &m, m.pair.d, m.dpair.d, m.pair.n, 1);
        gate_free(&m);
    }
}

static void floats_are_near_doubles(void **state)
{
    (void)state;
    gate m = gate_new(33, 40, 80);
    for (size_t p = 0; p < 2; p++) {
        forward(&m, both[p], 2);
        backward(&m, both[p], 2);
    }
    reals_agree(&m.dx, 1e-6);
    reals_agree(&m.dpair, 2e-6);
    gate_free(&m);
}

/* ---- bits ---- */

static void bits_do_not_depend_on_threads_or_sets(void **state)
{
    (void)state;
    gate a = gate_new(515, 97, 194);
    forward(&a, EMBLA_GPT_F32, 1);
    backward(&a, EMBLA_GPT_F32, 1);
    for (size_t i = 0; i < COUNT_OF(reals_threads); i++)
        for (size_t set = 0; set < CHECK_SETS; set++) {
            if (!embla_kernels_find(check_sets[set])) continue;
            embla_kernels_use(embla_kernels_find(check_sets[set]));
            gate b = gate_new(515, 97, 194);
            forward(&b, EMBLA_GPT_F32, reals_threads[i]);
            backward(&b, EMBLA_GPT_F32, reals_threads[i]);
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
    for (size_t p = 0; p < 2; p++) {
        embla_layer_way way = reals_way(both[p], 1);
        void *x = reals_at(&one.x, both[p]), *key = reals_at(&one.pair, both[p]);
        forward(&m, both[p], 1);
        assert_ok(embla_gate_forward(&way, m.epsilon, x, key, after(key, 20, both[p]), 40, 9, 20, x,
                                     reals_at(&one.stats, both[p])));
        assert_memory_equal(x, reals_at(&m.y, both[p]), m.y.n * embla_real_bytes(both[p]));
        assert_ok(embla_gate_forward(&way, 1e-5, NULL, NULL, NULL, 40, 0, 20, NULL, NULL));
        assert_ok(embla_gate_backward(&way, NULL, NULL, NULL, 40, NULL, 0, 20, NULL, NULL, NULL));
    }
    gate_free(&m);
    gate_free(&one);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(it_is_what_plain_loops_give),
        cmocka_unit_test(the_gate_opens_for_a_key_like_the_stream),
        cmocka_unit_test(it_has_the_derivatives_of_differences),
        cmocka_unit_test(floats_are_near_doubles),
        cmocka_unit_test(bits_do_not_depend_on_threads_or_sets),
        cmocka_unit_test(it_may_be_in_place),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
