/* SPDX-License-Identifier: Apache-2.0 */
/* Linear layers, norms and activations: results against their definitions in double, gradients
 * against central differences of these; the same bits for any number of threads and, where no
 * engine has a part in it, on every instruction set.
 */
#include "reals.h"

#include "base/half.h"
#include "engine.h"
#include "engine/engine.h"

/* ---- linear ---- */

typedef struct {
    size_t n, in, out;
    reals x, w, bias, y, dy, dx, dw, dbias;
} linear;

static linear linear_new(size_t n, size_t in, size_t out)
{
    return (linear){.n = n,
                    .in = in,
                    .out = out,
                    .x = reals_new(n * in, 1),
                    .w = reals_new(out * in, 2),
                    .bias = reals_new(out, 3),
                    .y = reals_new(n * out, 4),
                    .dy = reals_new(n * out, 5),
                    .dx = reals_new(n * in, 6),
                    .dw = reals_new(out * in, 7),
                    .dbias = reals_new(out, 8)};
}

static void linear_free(linear *l)
{
    reals *all[] = {&l->x, &l->w, &l->bias, &l->y, &l->dy, &l->dx, &l->dw, &l->dbias};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
}

static embla_status forward(linear *l, const embla_layer_way *way, bool bias, bool add)
{
    return embla_linear_forward(way, l->x.f, l->n, l->in, l->w.f, bias ? l->bias.f : NULL, l->out,
                                add, l->y.f);
}

static embla_status backward(linear *l, const embla_layer_way *way, bool add)
{
    return embla_linear_backward(way, l->x.f, l->dy.f, l->n, l->in, l->w.f, l->out, add, l->dx.f,
                                 l->dw.f, l->dbias.f);
}

/* The definition, in double. */
static void define_forward(linear *l, bool bias, bool add)
{
    for (size_t t = 0; t < l->n; t++)
        for (size_t o = 0; o < l->out; o++) {
            double sum = reals_dot(l->x.d + t * l->in, l->w.d + o * l->in, l->in);
            double *y = l->y.d + t * l->out + o;
            if (bias) sum += l->bias.d[o];
            *y = add ? *y + sum : sum;
        }
}

static void define_products_back(linear *l, bool add)
{
    for (size_t i = 0; !add && i < l->dx.n; i++) l->dx.d[i] = 0.0;
    for (size_t t = 0; t < l->n; t++)
        for (size_t o = 0; o < l->out; o++)
            for (size_t i = 0; i < l->in; i++) {
                double d = l->dy.d[t * l->out + o];
                l->dx.d[t * l->in + i] += d * l->w.d[o * l->in + i];
                l->dw.d[o * l->in + i] += d * l->x.d[t * l->in + i];
            }
}

static void define_bias_back(linear *l)
{
    for (size_t i = 0; i < l->dy.n; i++) l->dbias.d[i % l->out] += l->dy.d[i];
}

/* A float has 24 bits: sums of up to 771 products are off by a few 1e-7 of their length. */
static void check_agrees(const linear *l)
{
    const reals *all[] = {&l->y, &l->dx, &l->dw, &l->dbias};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_agree(all[i], 2e-6);
}

static void check_linear(size_t n, size_t in, size_t out, bool bias, bool add)
{
    linear l = linear_new(n, in, out);
    embla_layer_way way = reals_way(2);
    assert_ok(forward(&l, &way, bias, add));
    assert_ok(backward(&l, &way, add));
    define_forward(&l, bias, add);
    define_products_back(&l, add);
    define_bias_back(&l);
    check_agrees(&l);
    linear_free(&l);
}

static void linear_layers_are_sums_of_products(void **state)
{
    static const size_t tokens[] = {1, 3, 4, 5, 17, 65}, ins[] = {1, 4, 6, 16, 17, 130, 300},
                        outs[] = {1, 15, 16, 27, 33, 64};
    (void)state;
    for (size_t t = 0; t < COUNT_OF(tokens); t++)
        for (size_t i = 0; i < COUNT_OF(ins); i++)
            for (size_t o = 0; o < COUNT_OF(outs); o++)
                check_linear(tokens[t], ins[i], outs[o], (t + i) % 2 == 0, (i + o) % 2 == 0);
}

static void large_linear_layers_are_sums_of_products(void **state)
{
    (void)state;
    check_linear(257, 130, 771, true, false);
    check_linear(300, 399, 65, false, true);
    check_linear(70, 65, 131, true, true);
}

static void a_linear_layer_of_nothing_changes_nothing(void **state)
{
    float x[4] = {0}, y[4] = {1, 2, 3, 4};
    embla_layer_way way = reals_way(1);
    (void)state;
    assert_ok(embla_linear_forward(&way, x, 0, 2, x, NULL, 2, false, y));
    assert_ok(embla_linear_forward(&way, x, 2, 2, x, NULL, 0, false, y));
    assert_ok(embla_linear_backward(&way, x, x, 0, 2, x, 2, false, y, y, y));
    assert_true(y[0] == 1.0f && y[3] == 4.0f);
    assert_ok(embla_linear_forward(&way, x, 2, 0, x, NULL, 2, false, y)); /* an empty sum */
    assert_true(y[0] == 0.0f && y[3] == 0.0f);
}

static void gradients_that_are_not_wanted_are_left_out(void **state)
{
    embla_layer_way way = reals_way(1);
    linear l = linear_new(5, 6, 7);
    reals dw = reals_new(42, 7), dbias = reals_new(7, 8);
    (void)state;
    assert_ok(backward(&l, &way, false));
    assert_ok(embla_linear_backward(&way, l.x.f, l.dy.f, 5, 6, l.w.f, 7, false, NULL, dw.f, NULL));
    assert_ok(
        embla_linear_backward(&way, l.x.f, l.dy.f, 5, 6, l.w.f, 7, false, NULL, NULL, dbias.f));
    assert_memory_equal(dw.f, l.dw.f, 42 * sizeof(float));
    assert_memory_equal(dbias.f, l.dbias.f, 7 * sizeof(float));
    reals_free(&dw);
    reals_free(&dbias);
    linear_free(&l);
}

/* Runs a linear layer, and gives all it writes as one array of bytes. */
static void *linear_bytes(size_t n, size_t in, size_t out, const embla_layer_way *way,
                          size_t *bytes)
{
    linear l = linear_new(n, in, out);
    const reals *all[] = {&l.y, &l.dx, &l.dw, &l.dbias};
    size_t at = 0;
    assert_ok(forward(&l, way, true, false));
    assert_ok(backward(&l, way, true));
    *bytes = (l.y.n + l.dx.n + l.dw.n + l.dbias.n) * sizeof(float);
    char *kept = malloc(*bytes);
    assert_non_null(kept);
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        memcpy(kept + at, all[i]->f, all[i]->n * sizeof(float));
        at += all[i]->n * sizeof(float);
    }
    linear_free(&l);
    return kept;
}

static void check_threads(size_t n, size_t in, size_t out, embla_layer_way way)
{
    size_t bytes;
    way.threads = 1;
    void *first = linear_bytes(n, in, out, &way, &bytes);
    for (size_t i = 1; i < COUNT_OF(reals_threads); i++) {
        way.threads = reals_threads[i];
        void *other = linear_bytes(n, in, out, &way, &bytes);
        assert_memory_equal(first, other, bytes);
        free(other);
    }
    free(first);
}

static void threads_do_not_change_linear_layers(void **state)
{
    (void)state;
    embla_layer_way way = reals_way(1);
    check_threads(5, 6, 7, way);
    check_threads(130, 129, 200, way);
    check_threads(1, 300, 900, way);
    check_threads(300, 256, 800, way);
    way.compute = EMBLA_BF16;
    check_threads(130, 129, 200, way);
    check_threads(5, 16, 64, way);
}

static void every_set_gives_the_bits_of_plain_loops(void **state)
{
    (void)state;
    for (size_t n = 1; n < 12; n += 5) {
        size_t bytes;
        embla_layer_way way = reals_way(1);
        embla_kernels_use(embla_kernels_find("scalar"));
        void *first = linear_bytes(n, 77, 45, &way, &bytes);
        for (size_t s = 1; s < CHECK_SETS; s++) {
            if (!embla_kernels_find(check_sets[s])) continue;
            embla_kernels_use(embla_kernels_find(check_sets[s]));
            void *other = linear_bytes(n, 77, 45, &way, &bytes);
            assert_memory_equal(first, other, bytes);
            free(other);
        }
        embla_kernels_use(NULL);
        free(first);
    }
}

/* The doubles become what bf16 makes of the floats. */
static void round_doubles(reals *x)
{
    for (size_t i = 0; i < x->n; i++)
        x->d[i] = (double)embla_f32_from_bf16(embla_bf16_from_f32(x->f[i]));
}

/* rounded: the matrix is rounded before, and memory is kept between the calls */
static void check_bf16(size_t n, size_t in, size_t out, bool rounded)
{
    embla_layer_way way = reals_way(2);
    linear l = linear_new(n, in, out);
    embla_scratch scratch = {0};
    uint16_t *w = malloc(in * out * sizeof *w);
    assert_non_null(w);
    for (size_t i = 0; i < in * out; i++) w[i] = embla_bf16_from_f32(l.w.f[i]);
    way.compute = EMBLA_BF16;
    if (rounded) {
        way.bf16 = (embla_layer_bf16){.weights = l.w.f, .rounded = w, .count = in * out};
        way.scratch = &scratch;
    }
    assert_ok(forward(&l, &way, true, false));
    assert_ok(backward(&l, &way, true));
    round_doubles(&l.x);
    round_doubles(&l.w);
    define_forward(&l, true, false);
    define_bias_back(&l); /* a sum, not a product: nothing is rounded */
    round_doubles(&l.dy);
    define_products_back(&l, true);
    check_agrees(&l);
    embla_scratch_free(&scratch);
    free(w);
    linear_free(&l);
}

static void bf16_rounds_the_factors_of_products(void **state)
{
    (void)state;
    for (int rounded = 0; rounded < 2; rounded++) {
        check_bf16(3, 16, 20, rounded);
        check_bf16(65, 130, 129, rounded);
        if (no_engine()) continue;
        embla_engine_use_bf16(0);
        check_bf16(65, 130, 129, rounded);
        embla_engine_use_bf16(-1);
    }
}

static void linear_layers_survive_failed_allocations(void **state)
{
    embla_layer_way way = reals_way(2);
    linear small = linear_new(5, 16, 20), large = linear_new(65, 130, 129);
    (void)state;
    way.compute = EMBLA_BF16;
    assert_ok(forward(&large, &way, true, false));
    assert_ok(backward(&large, &way, true)); /* what the engine keeps is there now */
    REALS_EACH_ALLOCATION_FAILS(forward(&small, &way, true, false));
    REALS_EACH_ALLOCATION_FAILS(backward(&small, &way, true));
    REALS_EACH_ALLOCATION_FAILS(forward(&large, &way, true, false));
    REALS_EACH_ALLOCATION_FAILS(backward(&large, &way, true));
    linear_free(&small);
    linear_free(&large);
}

/* ---- norms ---- */

typedef struct {
    embla_norm_kind kind;
    size_t n, dim;
    bool gains, biases;
    reals x, gain, bias, y, stats, dy, dx, dgain, dbias;
} norm;

static const double epsilon = 1e-5;

static norm norm_new(embla_norm_kind kind, size_t n, size_t dim, bool gains, bool biases)
{
    norm m = {.kind = kind, .n = n, .dim = dim, .gains = gains, .biases = biases};
    m.x = reals_new(n * dim, 11);
    m.gain = reals_new(dim, 12);
    m.bias = reals_new(dim, 13);
    m.y = reals_new(n * dim, 0);
    m.stats = reals_new(2 * n, 0);
    m.dy = reals_new(n * dim, 14);
    m.dx = reals_new(n * dim, 0);
    m.dgain = reals_new(dim, 0);
    m.dbias = reals_new(dim, 0);
    return m;
}

static void norm_free(norm *m)
{
    reals *all[] = {&m->x,  &m->gain, &m->bias,  &m->y,    &m->stats,
                    &m->dy, &m->dx,   &m->dgain, &m->dbias};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
}

static void norm_forward(norm *m, int threads)
{
    embla_layer_way way = reals_way(threads);
    assert_ok(embla_norm_forward(&way, m->kind, epsilon, m->x.f, m->n, m->dim,
                                 m->gains ? m->gain.f : NULL, m->biases ? m->bias.f : NULL, m->y.f,
                                 m->stats.f));
}

static embla_status norm_backward(norm *m, int threads)
{
    embla_layer_way way = reals_way(threads);
    return embla_norm_backward(&way, m->kind, m->x.f, m->stats.f, m->n, m->dim,
                               m->gains ? m->gain.f : NULL, m->dy.f, m->dx.f,
                               m->gains ? m->dgain.f : NULL, m->biases ? m->dbias.f : NULL);
}

/* The definition, in double. */
static void define_norm(norm *m)
{
    for (size_t t = 0; t < m->n; t++) {
        const double *x = m->x.d + t * m->dim;
        double mean = 0.0, square = 0.0;
        for (size_t i = 0; m->kind == EMBLA_NORM_LAYER && i < m->dim; i++)
            mean += x[i] / (double)m->dim;
        for (size_t i = 0; i < m->dim; i++) square += (x[i] - mean) * (x[i] - mean);
        double slope = 1.0 / sqrt(square / (double)m->dim + epsilon);
        m->stats.d[2 * t] = mean;
        m->stats.d[2 * t + 1] = slope;
        for (size_t i = 0; i < m->dim; i++) {
            double y = (x[i] - mean) * slope * (m->gains ? m->gain.d[i] : 1.0);
            m->y.d[t * m->dim + i] = y + (m->biases ? m->bias.d[i] : 0.0);
        }
    }
}

static double norm_scalar(void *context)
{
    norm *m = context;
    define_norm(m);
    return reals_dot(m->y.d, m->dy.d, m->y.n);
}

static void check_norm(embla_norm_kind kind, size_t n, size_t dim, bool gains, bool biases)
{
    norm m = norm_new(kind, n, dim, gains, biases);
    norm_forward(&m, 2);
    assert_ok(norm_backward(&m, 2));
    define_norm(&m);
    double tolerance = dim > 2 ? 1e-5 : 1e-2; /* of one or two numbers little is left */
    reals_agree(&m.y, tolerance);
    reals_agree(&m.stats, tolerance);
    reals_derivative(norm_scalar, &m, m.x.d, m.dx.f, m.x.n, 1, tolerance);
    if (gains) reals_derivative(norm_scalar, &m, m.gain.d, m.dgain.f, dim, 1, tolerance);
    if (biases) reals_derivative(norm_scalar, &m, m.bias.d, m.dbias.f, dim, 1, tolerance);
    for (size_t i = 0; i < dim; i++)
        assert_true((gains || m.dgain.f[i] == 0.0f) && (biases || m.dbias.f[i] == 0.0f));
    norm_free(&m);
}

static void norms_have_the_derivatives_of_differences(void **state)
{
    static const size_t dims[] = {1, 2, 6, 16, 17, 33, 64, 130};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dims); i++)
        for (size_t k = 0; k < 8; k++)
            check_norm(k & 1 ? EMBLA_NORM_RMS : EMBLA_NORM_LAYER, 1 + 3 * i, dims[i], k & 2, k & 4);
    check_norm(EMBLA_NORM_LAYER, 131, 24, true, true); /* three blocks of tokens */
}

static void norm_gradients_are_added(void **state)
{
    (void)state;
    norm once = norm_new(EMBLA_NORM_LAYER, 9, 20, true, true);
    norm_forward(&once, 1);
    assert_ok(norm_backward(&once, 1));
    reals before = reals_new(9 * 20, 0);
    memcpy(before.f, once.dx.f, 180 * sizeof(float));
    assert_ok(norm_backward(&once, 1)); /* x + x: exact */
    for (size_t i = 0; i < 180; i++) assert_true(once.dx.f[i] == 2.0f * before.f[i]);
    reals_free(&before);
    norm_free(&once);
}

static void a_row_of_equal_numbers_is_the_bias(void **state)
{
    (void)state;
    norm m = norm_new(EMBLA_NORM_LAYER, 1, 40, true, true);
    for (size_t i = 0; i < 40; i++) m.x.f[i] = 3.5f;
    norm_forward(&m, 1);
    for (size_t i = 0; i < 40; i++) assert_true(m.y.f[i] == m.bias.f[i]);
    assert_near(m.stats.f[1], 1.0 / sqrt(epsilon), 1e-4);
    norm_free(&m);
}

/* Everything a norm writes, compared with that of another run. */
static void same_norm(const norm *a, const norm *b)
{
    const reals *x[] = {&a->y, &a->stats, &a->dx, &a->dgain, &a->dbias};
    const reals *y[] = {&b->y, &b->stats, &b->dx, &b->dgain, &b->dbias};
    for (size_t i = 0; i < COUNT_OF(x); i++)
        assert_memory_equal(x[i]->f, y[i]->f, x[i]->n * sizeof(float));
}

static void threads_do_not_change_norms(void **state)
{
    (void)state;
    for (size_t kind = 0; kind < 2; kind++) {
        norm first = norm_new((embla_norm_kind)kind, 2500, 97, true, true);
        for (size_t i = 0; i < COUNT_OF(reals_threads); i++) {
            norm other = norm_new((embla_norm_kind)kind, 2500, 97, true, true);
            norm *m = i == 0 ? &first : &other;
            norm_forward(m, reals_threads[i]);
            assert_ok(norm_backward(m, reals_threads[i]));
            same_norm(&first, m);
            norm_free(&other);
        }
        norm_free(&first);
    }
}

static void every_set_gives_the_bits_of_norms(void **state)
{
    (void)state;
    norm first = norm_new(EMBLA_NORM_LAYER, 70, 83, true, true);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        norm other = norm_new(EMBLA_NORM_LAYER, 70, 83, true, true);
        norm *m = s == 0 ? &first : &other;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        norm_forward(m, 1);
        assert_ok(norm_backward(m, 1));
        same_norm(&first, m);
        norm_free(&other);
    }
    embla_kernels_use(NULL);
    norm_free(&first);
}

static void norms_survive_failed_allocations(void **state)
{
    (void)state;
    norm m = norm_new(EMBLA_NORM_RMS, 200, 300, true, false);
    norm_forward(&m, 1);
    REALS_EACH_ALLOCATION_FAILS(norm_backward(&m, 2));
    norm_free(&m);
}

/* ---- activations ---- */

typedef struct {
    embla_activation kind;
    size_t n;
    reals a, up, y, dy, da, dup;
} activation;

static activation activation_new(embla_activation kind, size_t n, double spread)
{
    activation x = {.kind = kind, .n = n};
    x.a = reals_new(n, 21);
    x.up = reals_new(n, 22);
    x.y = reals_new(n, 0);
    x.dy = reals_new(n, 23);
    x.da = reals_new(n, 0);
    x.dup = reals_new(n, 0);
    for (size_t i = 0; i < n; i++) {
        x.a.f[i] = (float)(spread * x.a.d[i]);
        x.a.d[i] = (double)x.a.f[i];
    }
    return x;
}

static void activation_free(activation *x)
{
    reals *all[] = {&x->a, &x->up, &x->y, &x->dy, &x->da, &x->dup};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
}

static void activate(activation *x, int threads)
{
    embla_layer_way way = reals_way(threads);
    assert_ok(embla_activation_forward(&way, x->kind, x->a.f,
                                       x->kind == EMBLA_ACTIVATION_SWIGLU ? x->up.f : NULL, 1, x->n,
                                       x->y.f));
}

static void activate_back(activation *x, int threads, bool in_place)
{
    embla_layer_way way = reals_way(threads);
    bool swiglu = x->kind == EMBLA_ACTIVATION_SWIGLU;
    if (in_place) memcpy(x->da.f, x->dy.f, x->n * sizeof(float));
    assert_ok(embla_activation_backward(&way, x->kind, x->a.f, swiglu ? x->up.f : NULL,
                                        in_place ? x->da.f : x->dy.f, x->n, 1, x->da.f,
                                        swiglu ? x->dup.f : NULL));
}

static double define_activation(embla_activation kind, double a, double up)
{
    switch (kind) {
    case EMBLA_ACTIVATION_GELU:
        return 0.5 * a *
               (1.0 + tanh(sqrt(2.0 / 3.14159265358979323846) * (a + 0.044715 * a * a * a)));
    case EMBLA_ACTIVATION_RELU:
        return fmax(a, 0.0);
    case EMBLA_ACTIVATION_RELU_SQUARED:
        return fmax(a, 0.0) * fmax(a, 0.0);
    case EMBLA_ACTIVATION_SWIGLU:
        break;
    }
    return a / (1.0 + exp(-a)) * up;
}

/* Numbers are independent: the definition and its differences of each, in double. At 0, where the
 * slope of relu jumps, there are no differences. */
static void define_slopes(activation *x)
{
    const double h = 1e-5;
    for (size_t i = 0; i < x->n; i++) {
        double a = x->a.d[i], up = x->up.d[i], share = x->dy.d[i] / (2 * h);
        x->y.d[i] = define_activation(x->kind, a, up);
        x->da.d[i] =
            share * (define_activation(x->kind, a + h, up) - define_activation(x->kind, a - h, up));
        if (fabs(a) < h) x->da.d[i] = (double)x->da.f[i];
        x->dup.d[i] =
            share * (define_activation(x->kind, a, up + h) - define_activation(x->kind, a, up - h));
    }
}

static void activations_have_the_derivatives_of_differences(void **state)
{
    static const double spreads[] = {0.5, 4.0, 30.0};
    (void)state;
    for (int kind = EMBLA_ACTIVATION_GELU; kind <= EMBLA_ACTIVATION_SWIGLU; kind++)
        for (size_t s = 0; s < COUNT_OF(spreads); s++) {
            activation x = activation_new((embla_activation)kind, 1301, spreads[s]);
            activate(&x, 2);
            activate_back(&x, 2, s % 2 == 0);
            define_slopes(&x);
            reals_agree(&x.y, 1e-6);
            reals_agree(&x.da, 1e-6);
            reals_agree(&x.dup, 1e-6);
            activation_free(&x);
        }
}

/* Far out a number is passed on or stopped; a NaN stays one; at 0 nothing passes. */
static void activations_are_right_at_the_ends(void **state)
{
    (void)state;
    for (int kind = EMBLA_ACTIVATION_GELU; kind <= EMBLA_ACTIVATION_SWIGLU; kind++) {
        activation x = activation_new((embla_activation)kind, 83, 1.0);
        float given[] = {1e3f, -1e3f, 0.0f, -0.0f, NAN};
        for (size_t i = 0; i < x.n; i++) { /* in vectors and after them */
            x.a.f[i] = given[i % 5];
            x.up.f[i] = x.dy.f[i] = 1.0f;
        }
        activate(&x, 1);
        activate_back(&x, 1, false);
        double far = kind == EMBLA_ACTIVATION_RELU_SQUARED ? 1e6 : 1e3;
        double slope = kind == EMBLA_ACTIVATION_RELU_SQUARED ? 2e3 : 1.0;
        double middle =
            kind == EMBLA_ACTIVATION_GELU || kind == EMBLA_ACTIVATION_SWIGLU ? 0.5 : 0.0;
        double y[] = {far, 0.0, 0.0, 0.0}, da[] = {slope, 0.0, middle, middle};
        for (size_t i = 0; i < x.n; i++) {
            if (i % 5 == 4) {
                assert_true(isnan(x.y.f[i]));
                continue;
            }
            assert_true((double)x.y.f[i] == y[i % 5] && (double)x.da.f[i] == da[i % 5]);
        }
        activation_free(&x);
    }
}

/* A number alone, and among others in a vector. */
static void activations_do_not_depend_on_the_place(void **state)
{
    activation x = activation_new(EMBLA_ACTIVATION_GELU, 640, 2.0);
    embla_layer_way way = reals_way(1);
    (void)state;
    activate(&x, 1);
    for (size_t i = 0; i < x.n; i++) {
        float y;
        assert_ok(embla_activation_forward(&way, EMBLA_ACTIVATION_GELU, x.a.f + i, NULL, 1, 1, &y));
        assert_true(y == x.y.f[i]);
    }
    activation_free(&x);
}

static void same_activation(const activation *a, const activation *b)
{
    const reals *x[] = {&a->y, &a->da, &a->dup}, *y[] = {&b->y, &b->da, &b->dup};
    for (size_t i = 0; i < COUNT_OF(x); i++)
        assert_memory_equal(x[i]->f, y[i]->f, x[i]->n * sizeof(float));
}

static void check_same_activations(embla_activation kind, bool sets)
{
    size_t n = 100001, count = sets ? (size_t)CHECK_SETS : COUNT_OF(reals_threads);
    activation first = activation_new(kind, n, 5.0);
    for (size_t i = 0; i < count; i++) {
        if (sets && !embla_kernels_find(check_sets[i])) continue;
        activation other = activation_new(kind, n, 5.0), *x = i == 0 ? &first : &other;
        if (sets) embla_kernels_use(embla_kernels_find(check_sets[i]));
        activate(x, sets ? 1 : reals_threads[i]);
        activate_back(x, sets ? 1 : reals_threads[i], false);
        same_activation(&first, x);
        activation_free(&other);
    }
    embla_kernels_use(NULL);
    activation_free(&first);
}

static void neither_threads_nor_sets_change_activations(void **state)
{
    (void)state;
    for (int kind = EMBLA_ACTIVATION_GELU; kind <= EMBLA_ACTIVATION_SWIGLU; kind++) {
        check_same_activations((embla_activation)kind, false);
        check_same_activations((embla_activation)kind, true);
    }
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(linear_layers_are_sums_of_products),
        cmocka_unit_test(large_linear_layers_are_sums_of_products),
        cmocka_unit_test(a_linear_layer_of_nothing_changes_nothing),
        cmocka_unit_test(gradients_that_are_not_wanted_are_left_out),
        cmocka_unit_test(threads_do_not_change_linear_layers),
        cmocka_unit_test(every_set_gives_the_bits_of_plain_loops),
        cmocka_unit_test(bf16_rounds_the_factors_of_products),
        cmocka_unit_test(linear_layers_survive_failed_allocations),
        cmocka_unit_test(norms_have_the_derivatives_of_differences),
        cmocka_unit_test(norm_gradients_are_added),
        cmocka_unit_test(a_row_of_equal_numbers_is_the_bias),
        cmocka_unit_test(threads_do_not_change_norms),
        cmocka_unit_test(every_set_gives_the_bits_of_norms),
        cmocka_unit_test(norms_survive_failed_allocations),
        cmocka_unit_test(activations_have_the_derivatives_of_differences),
        cmocka_unit_test(activations_do_not_depend_on_the_place),
        cmocka_unit_test(activations_are_right_at_the_ends),
        cmocka_unit_test(neither_threads_nor_sets_change_activations),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
