/* SPDX-License-Identifier: Apache-2.0 */
/* Attention against its definition in double (all scores at once), its gradients against central
 * differences of that; lengths on both sides of every block, heads that share keys, one array for
 * queries, keys and values; the same bits for any number of threads.
 */
#include "reals.h"

#include "engine.h"
#include "engine/engine.h"
#include "learn/softmax.h"
#include "slow.h"

/* Queries, keys and values lie in one array, with a gap after them that stays as it is. */
enum { GAP = 3 };

typedef struct {
    size_t batch, length, heads, kv_heads, size, stride;
    reals qkv, out, stats, dout, dqkv;
} attention;

static attention attention_new(size_t batch, size_t length, size_t heads, size_t kv_heads,
                               size_t size, double spread)
{
    attention a = {.batch = batch, .length = length, .heads = heads, .kv_heads = kv_heads};
    size_t n = batch * length;
    a.size = size;
    a.stride = (heads + 2 * kv_heads) * size + GAP;
    a.qkv = reals_new(n * a.stride, 31);
    a.out = reals_new(n * heads * size, 32); /* whatever was there is overwritten */
    a.stats = reals_new(n * heads, 33);
    a.dout = reals_new(n * heads * size, 34);
    a.dqkv = reals_new(n * a.stride, 35);
    for (size_t i = 0; i < a.qkv.n; i++) {
        a.qkv.f[i] = (float)(spread * a.qkv.d[i]);
        a.qkv.d[i] = (double)a.qkv.f[i];
    }
    return a;
}

static void attention_free(attention *a)
{
    reals *all[] = {&a->qkv, &a->out, &a->stats, &a->dout, &a->dqkv};
    for (size_t i = 0; i < COUNT_OF(all); i++) reals_free(all[i]);
}

static embla_attention arguments(const attention *a)
{
    const float *k = a->qkv.f + a->heads * a->size;
    return (embla_attention){.batch = a->batch,
                             .length = a->length,
                             .heads = a->heads,
                             .kv_heads = a->kv_heads,
                             .size = a->size,
                             .q = a->qkv.f,
                             .k = k,
                             .v = k + a->kv_heads * a->size,
                             .q_stride = a->stride,
                             .kv_stride = a->stride,
                             .out = a->out.f,
                             .stats = a->stats.f};
}

static embla_dtype compute = EMBLA_F32;

static embla_layer_way way_of(int threads)
{
    embla_layer_way way = reals_way(threads);
    way.compute = compute;
    return way;
}

static embla_status forward(const attention *a, int threads)
{
    embla_layer_way way = way_of(threads);
    embla_attention given = arguments(a);
    return embla_attention_forward(&way, &given);
}

static embla_status backward(const attention *a, int threads)
{
    embla_layer_way way = way_of(threads);
    embla_attention given = arguments(a);
    float *dk = a->dqkv.f + a->heads * a->size;
    return embla_attention_backward(&way, &given, a->dout.f, a->dqkv.f, dk,
                                    dk + a->kv_heads * a->size);
}

static void run_both(const attention *a, int threads)
{
    assert_ok(forward(a, threads));
    assert_ok(backward(a, threads));
}

/* ---- the definition ---- */

/* Token t of sequence b: head h of queries, keys (from heads on) or values. */
static size_t at(const attention *a, size_t b, size_t t, size_t h)
{
    return (b * a->length + t) * a->stride + h * a->size;
}

/* The probabilities of one head's tokens before t, and t; the log-sum of its scores. */
static double weigh(const attention *a, size_t b, size_t h, size_t t, double *p)
{
    const double *x = a->qkv.d;
    size_t kv = a->heads + h / (a->heads / a->kv_heads);
    double most = -INFINITY, sum = 0.0;
    for (size_t j = 0; j <= t; j++) {
        p[j] = reals_dot(x + at(a, b, t, h), x + at(a, b, j, kv), a->size) / sqrt((double)a->size);
        most = fmax(most, p[j]);
    }
    for (size_t j = 0; j <= t; j++) sum += exp(p[j] - most);
    for (size_t j = 0; j <= t; j++) p[j] = exp(p[j] - most) / sum;
    return most + log(sum);
}

/* What token t of one head has as out, and what it gives to the gradients in d. */
static void define_token(const attention *a, size_t b, size_t h, size_t t, double *p, double *out,
                         double *d)
{
    const double *x = a->qkv.d, root = 1.0 / sqrt((double)a->size);
    size_t kv = a->heads + h / (a->heads / a->kv_heads), vv = kv + a->kv_heads;
    const double *dout = a->dout.d + (b * a->length + t) * a->heads * a->size + h * a->size;
    double inner = 0.0;
    for (size_t i = 0; i < a->size; i++) {
        out[i] = 0.0;
        for (size_t j = 0; j <= t; j++) out[i] += p[j] * x[at(a, b, j, vv) + i];
        inner += out[i] * dout[i];
    }
    for (size_t j = 0; j <= t; j++) {
        double step = reals_dot(dout, x + at(a, b, j, vv), a->size);
        step = p[j] * (step - inner) * root;
        for (size_t i = 0; i < a->size; i++) {
            d[at(a, b, t, h) + i] += step * x[at(a, b, j, kv) + i];
            d[at(a, b, j, kv) + i] += step * x[at(a, b, t, h) + i];
            d[at(a, b, j, vv) + i] += p[j] * dout[i];
        }
    }
}

/* Fills the doubles: out, stats and the gradients. */
static void define(const attention *a)
{
    double *p = calloc(a->length, sizeof *p);
    assert_non_null(p);
    for (size_t t = 0; t < a->batch * a->length; t++)
        for (size_t i = 0; i < a->stride - GAP; i++) a->dqkv.d[t * a->stride + i] = 0.0;
    for (size_t b = 0; b < a->batch; b++)
        for (size_t h = 0; h < a->heads; h++)
            for (size_t t = 0; t < a->length; t++) {
                size_t out = ((b * a->length + t) * a->heads + h) * a->size;
                a->stats.d[(b * a->heads + h) * a->length + t] = weigh(a, b, h, t, p);
                define_token(a, b, h, t, p, a->out.d + out, a->dqkv.d);
            }
    free(p);
}

/* Results are the definition's, and what lies between tokens is as it was. */
static void check_definition(const attention *a, double out, double stats, double gradients)
{
    reals gap = reals_new(a->dqkv.n, 35);
    define(a);
    for (size_t t = 0; t < a->batch * a->length; t++)
        for (size_t place = (t + 1) * a->stride - GAP; place < (t + 1) * a->stride; place++)
            assert_true(a->dqkv.f[place] == gap.f[place]);
    reals_agree(&a->out, out);
    reals_agree(&a->stats, stats);
    reals_agree(&a->dqkv, gradients);
    reals_free(&gap);
}

static void attention_is_what_its_definition_says(void **state)
{
    static const size_t lengths[] = {1, 2, 3, 17, 63, 64, 65, 130, 200}, sizes[] = {4, 6, 64};
    (void)state;
    for (size_t l = 0; l < COUNT_OF(lengths); l++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            size_t kv_heads = (size_t)4 >> (l + s) % 3; /* 4, 2 or 1 */
            attention a = attention_new(2, lengths[l], 4, kv_heads, sizes[s], 1.5);
            run_both(&a, 2);
            check_definition(&a, 2e-6, 2e-6, 4e-6);
            attention_free(&a);
        }
}

/* Scores grow from tile to tile, so that what was summed must be scaled. */
static void more_keys_than_a_tile_holds_are_weighed(void **state)
{
    (void)state;
    attention a = attention_new(1, 1100, 2, 1, 4, 1.0);
    for (size_t i = 0; i < a.qkv.n; i++) {
        a.qkv.f[i] *= 1.0f + 0.002f * (float)(i / a.stride);
        a.qkv.d[i] = (double)a.qkv.f[i];
    }
    run_both(&a, 2);
    check_definition(&a, 1e-5, 2e-6, 1e-5);
    attention_free(&a);
}

static void scores_of_any_size_are_weighed(void **state)
{
    (void)state;
    for (double spread = 8.0; spread < 100.0; spread *= 5.0)
        for (size_t length = 50; length < 200; length += 100) {
            attention a = attention_new(1, length, 2, 1, 16, spread);
            run_both(&a, 1);
            /* the scores themselves have few digits after the point */
            check_definition(&a, 1e-3, 1e-6, 1e-3);
            attention_free(&a);
        }
}

/* A key or a value that is no number reaches its own token and later ones; of a value, up to
 * three before it too. */
static void what_is_no_number_stays_near(void **state)
{
    (void)state;
    for (size_t part = 0; part < 2; part++) {
        attention a = attention_new(1, 40, 2, 2, 8, 1.0);
        a.qkv.f[22 * a.stride + (part + 1) * 16] = NAN; /* of head 0, token 22 */
        assert_ok(forward(&a, 1));
        for (size_t t = 0; t < a.length; t++) {
            bool nan = a.out.f[t * 16] != a.out.f[t * 16];
            assert_true(t < 20 ? !nan : t >= 22 ? nan : true);
            assert_true(a.out.f[t * 16 + 8] == a.out.f[t * 16 + 8]); /* head 1 */
        }
        attention_free(&a);
    }
}

/* Two tokens, of which the first has a score of -x, the second 0: out is made of e^-x alone. */
static void exponentials_are_those_of_the_softmax(void **state)
{
    float qkv[6] = {0, 0, 1, 1, 0, 0}, out[2], stats[2]; /* q, k, v of each */
    embla_layer_way way = reals_way(1);
    embla_attention a = {.batch = 1, .length = 2, .heads = 1, .kv_heads = 1, .size = 1};
    (void)state;
    a.q = qkv, a.k = qkv + 1, a.v = qkv + 2, a.q_stride = a.kv_stride = 3;
    a.out = out, a.stats = stats;
    for (float x = 0.0f; x < 90.0f; x += 0.037f) {
        float e = -x;
        qkv[1] = -x;
        assert_ok(embla_attention_forward(&way, &a));
        embla_softmax_exp(&e, 1, 0.0f, &e);
        assert_true(out[1] == e * (float)(1.0 / ((double)e + 1.0)));
    }
}

/* A score that is -infinity is not looked at, as long as there is another. */
static void scores_may_be_infinite(void **state)
{
    (void)state;
    attention a = attention_new(1, 9, 1, 1, 4, 1.0);
    for (size_t t = 0; t < a.length; t++) a.qkv.f[t * a.stride] = fabsf(a.qkv.f[t * a.stride]);
    a.qkv.f[3 * a.stride + 4] = -INFINITY;
    a.qkv.f[3 * a.stride + 8] = 1e30f;
    assert_ok(forward(&a, 1));
    for (size_t t = 4; t < a.length; t++) assert_true(fabsf(a.out.f[t * 4]) < 1.0f);
    attention_free(&a);
}

static double scalar(void *context)
{
    attention *a = context;
    define(a);
    return reals_dot(a->out.d, a->dout.d, a->out.n);
}

static void attention_has_the_derivatives_of_differences(void **state)
{
    static const size_t lengths[] = {1, 3, 17, 70};
    (void)state;
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        attention a = attention_new(1, lengths[l], 4, 2, 6, 1.0);
        run_both(&a, 1);
        for (size_t t = 0; t < a.length; t += 1 + a.length / 5) /* not the gap */
            reals_derivative(scalar, &a, a.qkv.d + t * a.stride, a.dqkv.f + t * a.stride,
                             a.stride - GAP, 5, 1e-5);
        attention_free(&a);
    }
}

static void check_same(const attention *a, const attention *b)
{
    const reals *x[] = {&a->out, &a->stats, &a->dqkv}, *y[] = {&b->out, &b->stats, &b->dqkv};
    for (size_t i = 0; i < COUNT_OF(x); i++)
        assert_memory_equal(x[i]->f, y[i]->f, x[i]->n * sizeof(float));
}

static void threads_do_not_change_attention(void **state)
{
    static const size_t lengths[] = {9, 64, 193};
    (void)state;
    for (size_t l = 0; l < COUNT_OF(lengths); l++) {
        attention first = attention_new(2, lengths[l], 6, 3, 32, 1.0);
        for (size_t i = 0; i < COUNT_OF(reals_threads); i++) {
            attention other = attention_new(2, lengths[l], 6, 3, 32, 1.0);
            run_both(i == 0 ? &first : &other, reals_threads[i]);
            if (i > 0) check_same(&first, &other);
            attention_free(&other);
        }
        attention_free(&first);
    }
}

/* Rounding leaves 8 bits: the error of a sum is about 1 / 512 of its length. */
static void factors_may_be_bf16(void **state)
{
    static const size_t lengths[] = {65, 128, 200, 600}, sizes[] = {64, 40};
    (void)state;
    if (!embla_engine_has_products()) skip_because("no engine for matrix products");
    compute = EMBLA_BF16;
    embla_engine_use_bf16(1); /* also if the engine must emulate it */
    for (size_t l = 0; l < COUNT_OF(lengths) - SLOW_BUILD; l++)
        for (size_t s = 0; s < COUNT_OF(sizes); s++) {
            attention a = attention_new(2, lengths[l], 4, (size_t)4 >> (l + s) % 3, sizes[s], 1.0);
            run_both(&a, 2);
            check_definition(&a, 6e-3, 1e-3, 1e-2);
            for (size_t i = 0; i < COUNT_OF(reals_threads); i++) { /* the same bits */
                attention b = attention_new(2, a.length, 4, a.kv_heads, a.size, 1.0);
                run_both(&b, reals_threads[i]);
                check_same(&a, &b);
                attention_free(&b);
            }
            attention_free(&a);
        }
    embla_engine_use_bf16(-1);
    compute = EMBLA_F32;
}

/* A CPU that does not multiply bf16 would only lose time. */
static void without_bf16_products_attention_is_f32(void **state)
{
    (void)state;
    attention a = attention_new(1, 200, 4, 2, 64, 1.0), b = attention_new(1, 200, 4, 2, 64, 1.0);
    run_both(&a, 2);
    compute = EMBLA_BF16;
    embla_engine_use_bf16(0);
    run_both(&b, 2);
    embla_engine_use_bf16(-1);
    compute = EMBLA_F32;
    check_same(&a, &b);
    attention_free(&a), attention_free(&b);
}

static void check_sets_agree(size_t length, size_t size)
{
    attention first = attention_new(2, length, 4, 2, size, 1.0);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        attention other = attention_new(2, length, 4, 2, size, 1.0);
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        run_both(s == 0 ? &first : &other, 1);
        if (s > 0) check_same(&first, &other);
        attention_free(&other);
    }
    embla_kernels_use(NULL);
    attention_free(&first);
}

/* Without tiles, and in tiles that are too small for an engine. */
static void every_set_gives_the_bits_of_short_attention(void **state)
{
    (void)state;
    check_sets_agree(8, 4);
    check_sets_agree(37, 12);
    check_sets_agree(64, 64);
    check_sets_agree(70, 12);
}

/* A later token changes nothing before it. */
static void check_no_look_ahead(size_t length, size_t from)
{
    attention a = attention_new(1, length, 2, 2, 8, 1.0);
    assert_ok(forward(&a, 1));
    float *before = malloc(a.out.n * sizeof *before);
    assert_non_null(before);
    memcpy(before, a.out.f, a.out.n * sizeof *before);
    for (size_t i = from * a.stride; i < a.qkv.n; i++) a.qkv.f[i] = 1e3f;
    assert_ok(forward(&a, 1));
    for (size_t i = 0; i < from * 16; i++) assert_near(a.out.f[i], before[i], 0.0);
    for (size_t i = from * 16; i < a.out.n; i++) assert_near(a.out.f[i], 1e3f, 1.0);
    free(before);
    attention_free(&a);
}

static void attention_does_not_look_ahead(void **state)
{
    (void)state;
    check_no_look_ahead(140, 100);
    check_no_look_ahead(40, 30);
}

static void nothing_to_attend_to_is_fine(void **state)
{
    embla_layer_way way = reals_way(1);
    embla_attention none = {.heads = 1, .kv_heads = 1, .size = 4, .length = 3};
    float out[4] = {1, 2, 3, 4};
    (void)state;
    assert_ok(embla_attention_forward(&way, &none));
    assert_ok(embla_attention_backward(&way, &none, NULL, NULL, NULL, NULL));
    assert_ok(embla_attention_one(&way, out, out, out, 0, 1, 1, 4, out));
    assert_true(out[0] == 1.0f);
}

static void attention_survives_failed_allocations(void **state)
{
    (void)state;
    for (size_t length = 60; length <= 200; length += 140) {
        attention a = attention_new(1, length, 4, 2, 64, 1.0);
        run_both(&a, 2);
        REALS_EACH_ALLOCATION_FAILS(forward(&a, 2));
        REALS_EACH_ALLOCATION_FAILS(backward(&a, 2));
        attention_free(&a);
    }
    if (!embla_engine_has_products()) return;
    attention a = attention_new(1, 200, 4, 2, 64, 1.0);
    compute = EMBLA_BF16;
    embla_engine_use_bf16(1);
    run_both(&a, 2); /* the engine keeps memory for each thread */
    REALS_EACH_ALLOCATION_FAILS(forward(&a, 2));
    REALS_EACH_ALLOCATION_FAILS(backward(&a, 2));
    embla_engine_use_bf16(-1);
    compute = EMBLA_F32;
    attention_free(&a);
}

/* ---- one token ---- */

static void check_one(size_t count, size_t heads, size_t kv_heads, size_t size)
{
    attention a = attention_new(1, count, heads, kv_heads, size, 1.0);
    size_t width = kv_heads * size;
    reals keys = reals_new(count * width, 0), values = reals_new(count * width, 0);
    reals out = reals_new(heads * size, 0), again = reals_new(heads * size, 0);
    for (size_t t = 0; t < count; t++)
        for (size_t i = 0; i < width; i++) {
            keys.f[t * width + i] = a.qkv.f[t * a.stride + heads * size + i];
            values.f[t * width + i] = a.qkv.f[t * a.stride + heads * size + width + i];
        }
    define(&a);
    const float *q = a.qkv.f + (count - 1) * a.stride;
    for (size_t i = 0; i < COUNT_OF(reals_threads); i++) {
        embla_layer_way way = reals_way(reals_threads[i]);
        reals *to = i == 0 ? &out : &again;
        assert_ok(
            embla_attention_one(&way, q, keys.f, values.f, count, heads, kv_heads, size, to->f));
        assert_memory_equal(out.f, to->f, out.n * sizeof(float));
    }
    memcpy(out.d, a.out.d + (count - 1) * heads * size, out.n * sizeof(double));
    reals_agree(&out, 2e-6);
    reals_free(&keys), reals_free(&values), reals_free(&out), reals_free(&again);
    attention_free(&a);
}

static void one_token_more_sees_what_the_last_one_saw(void **state)
{
    static const size_t counts[] = {1, 3, 17, 65, 130, 1000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        check_one(counts[i], 4, 4, 6);
        check_one(counts[i], 4, 2, 16);
        check_one(counts[i], 12, 1, 64);
    }
    check_one(20, 150, 1, 4); /* more heads than a tile has rows */
}

/* ---- turning ---- */

/* The definition, in double: each pair is rotated by its position times its frequency. */
static void define_turn(const embla_gpt_shape *shape, size_t size, size_t heads, size_t position,
                        double *x)
{
    bool split = shape->rope_order == EMBLA_ROPE_ORDER_HALF_SPLIT;
    double theta = shape->rope_theta == 0.0 ? 10000.0 : shape->rope_theta;
    for (size_t h = 0; h < heads; h++, x += size)
        for (size_t i = 0; i < size / 2; i++) {
            double *a = x + (split ? i : 2 * i), *b = a + (split ? size / 2 : 1), was = *a;
            double angle = (double)position * pow(theta, -2.0 * (double)i / (double)size);
            *a = was * cos(angle) - *b * sin(angle);
            *b = was * sin(angle) + *b * cos(angle);
        }
}

static void check_turn(size_t size, embla_rope_order order, size_t first)
{
    enum { BATCH = 3, LENGTH = 21, HEADS = 2, AFTER = 5 };
    embla_gpt_shape shape = {.rope_order = order, .rope_theta = first % 2 ? 500.0 : 0.0};
    size_t stride = HEADS * size + AFTER, n = BATCH * LENGTH;
    reals x = reals_new(n * stride, 41), kept = reals_new(n * stride, 41);
    embla_rope_options options = {.order = order, .theta = shape.rope_theta};
    embla_rope_layout layout = {.group_stride = stride};
    embla_layer_way way = reals_way(2);
    int64_t positions[BATCH * LENGTH];
    embla_rope *rope;
    for (size_t i = 0; i < n; i++) positions[i] = (int64_t)(first + i % LENGTH);
    assert_ok(embla_rotate_heads(&way, &shape, size, HEADS, n, LENGTH, first, stride, false, x.f));
    for (size_t i = 0; i < n; i++)
        define_turn(&shape, size, HEADS, (size_t)positions[i], x.d + i * stride);
    reals_agree(&x, 2e-7); /* a pair keeps its length: few roundings, of 2^-25 each */
    assert_ok(embla_rope_new(size, &options, &rope));
    assert_ok(embla_rope_apply(rope, positions, n, HEADS, &layout, kept.f));
    assert_memory_equal(x.f, kept.f, x.n * sizeof(float));
    assert_ok(embla_rotate_heads(&way, &shape, size, HEADS, n, LENGTH, first, stride, true, x.f));
    assert_ok(embla_rope_transpose(rope, positions, n, HEADS, &layout, kept.f));
    assert_memory_equal(x.f, kept.f, x.n * sizeof(float));
    memcpy(x.d, kept.d, x.n * sizeof(double));
    reals_agree(&x, 2e-7); /* back where it was */
    embla_rope_free(rope);
    reals_free(&x);
    reals_free(&kept);
}

static void heads_are_turned_as_by_a_rope(void **state)
{
    static const size_t sizes[] = {2, 6, 64, 1028};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++)
        for (size_t first = 0; first < 2; first++) {
            check_turn(sizes[i], EMBLA_ROPE_ORDER_INTERLEAVED, 7 * first);
            check_turn(sizes[i], EMBLA_ROPE_ORDER_HALF_SPLIT, 7 * first);
        }
}

static void threads_do_not_change_turning(void **state)
{
    (void)state;
    embla_gpt_shape shape = {.rope_order = EMBLA_ROPE_ORDER_HALF_SPLIT};
    reals first = reals_new(1000 * 128, 42);
    for (size_t i = 0; i < COUNT_OF(reals_threads); i++) {
        reals other = reals_new(1000 * 128, 42), *x = i == 0 ? &first : &other;
        embla_layer_way way = reals_way(reals_threads[i]);
        assert_ok(embla_rotate_heads(&way, &shape, 64, 2, 1000, 250, 0, 128, false, x->f));
        assert_memory_equal(first.f, x->f, x->n * sizeof(float));
        reals_free(&other);
    }
    reals_free(&first);
}

static void turning_says_what_is_wrong(void **state)
{
    embla_layer_way way = reals_way(1);
    embla_gpt_shape shape = {0};
    reals x = reals_new(1028, 43);
    float kept[3] = {x.f[0], x.f[1], x.f[2]};
    (void)state;
    assert_status(embla_rotate_heads(&way, &shape, 3, 1, 1, 1, 5, 3, false, x.f), EMBLA_ERR_SHAPE);
    assert_error_has("a head has 3 numbers");
    assert_memory_equal(x.f, kept, sizeof kept);
    assert_ok(embla_rotate_heads(&way, &shape, 4, 1, 0, 1, 5, 4, false, x.f));
    assert_memory_equal(x.f, kept, sizeof kept);
    REALS_EACH_ALLOCATION_FAILS(
        embla_rotate_heads(&way, &shape, 1028, 1, 1, 1, 5, 1028, false, x.f));
    reals_free(&x);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(attention_is_what_its_definition_says),
        cmocka_unit_test(more_keys_than_a_tile_holds_are_weighed),
        cmocka_unit_test(scores_of_any_size_are_weighed),
        cmocka_unit_test(what_is_no_number_stays_near),
        cmocka_unit_test(exponentials_are_those_of_the_softmax),
        cmocka_unit_test(scores_may_be_infinite),
        cmocka_unit_test(attention_has_the_derivatives_of_differences),
        cmocka_unit_test(threads_do_not_change_attention),
        cmocka_unit_test(factors_may_be_bf16),
        cmocka_unit_test(without_bf16_products_attention_is_f32),
        cmocka_unit_test(every_set_gives_the_bits_of_short_attention),
        cmocka_unit_test(attention_does_not_look_ahead),
        cmocka_unit_test(nothing_to_attend_to_is_fine),
        cmocka_unit_test(attention_survives_failed_allocations),
        cmocka_unit_test(one_token_more_sees_what_the_last_one_saw),
        cmocka_unit_test(heads_are_turned_as_by_a_rope),
        cmocka_unit_test(threads_do_not_change_turning),
        cmocka_unit_test(turning_says_what_is_wrong),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
