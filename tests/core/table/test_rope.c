/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions. The rate of a pair is read off the library by turning the pair (1, 0)
 * at position 1, where no rate goes round, and compared with the published formulas,
 * written a second time here, and with numbers worked out in Python by the formulas of
 * Hugging Face's modeling_rope_utils.py.
 */
#include "check.h"

#include <math.h>

#define TWO_PI 6.283185307179586

static embla_rope *rope_of(size_t dim, const embla_rope_options *options)
{
    embla_rope *rope = NULL;
    assert_ok(embla_rope_new(dim, options, &rope));
    return rope;
}

/* Turns pair i of an all-zero head from (1, 0) at position 1; its angle and its length. */
static double rate_of(size_t dim, embla_rope_options options, size_t pair, double *length)
{
    float x[1024] = {0};
    const int64_t one = 1;
    bool split = options.order == EMBLA_ROPE_ORDER_HALF_SPLIT;
    size_t first = split ? pair : 2 * pair, second = split ? pair + dim / 2 : 2 * pair + 1;
    embla_rope *rope = rope_of(dim, &options);
    x[first] = 1.0f;
    assert_ok(embla_rope_apply(rope, &one, 1, 1, NULL, x));
    embla_rope_free(rope);
    for (size_t i = 0; i < dim; i++) assert_true(i == first || i == second || x[i] == 0.0f);
    if (length) *length = hypot((double)x[first], (double)x[second]);
    return atan2((double)x[second], (double)x[first]);
}

typedef double formula(const embla_rope_options *o, size_t dim, size_t pair);

static double theta_of(const embla_rope_options *o)
{
    return o->theta > 0 ? o->theta : 10000.0;
}

static double plain(const embla_rope_options *o, size_t dim, size_t pair)
{
    return 1.0 / pow(theta_of(o), (double)(2 * pair) / (double)dim);
}

static double linear(const embla_rope_options *o, size_t dim, size_t pair)
{
    return plain(o, dim, pair) / o->factor;
}

static double ntk(const embla_rope_options *o, size_t dim, size_t pair)
{
    double d = (double)dim, theta = theta_of(o);
    embla_rope_options raised = {.theta = theta * pow(o->factor, d / (d - 2))};
    return plain(&raised, dim, pair);
}

/* YaRN: what turns `turns` times over the context is pair number.. */
static double pair_turning(double turns, const embla_rope_options *o, size_t dim)
{
    double theta = theta_of(o);
    return (double)dim * log(o->context / (turns * TWO_PI)) / (2 * log(theta));
}

static double yarn(const embla_rope_options *o, size_t dim, size_t pair)
{
    double low = floor(pair_turning(o->beta_fast > 0 ? o->beta_fast : 32, o, dim));
    double high = ceil(pair_turning(o->beta_slow > 0 ? o->beta_slow : 1, o, dim));
    if (low < 0) low = 0;
    if (high > (double)(dim - 1)) high = (double)(dim - 1);
    double ramp = ((double)pair - low) / (high - low);
    if (ramp < 0) ramp = 0;
    if (ramp > 1) ramp = 1;
    return plain(o, dim, pair) * (1 - ramp) + linear(o, dim, pair) * ramp;
}

/* Llama 3.1, by wavelengths, as its authors published it. */
static double llama3(const embla_rope_options *o, size_t dim, size_t pair)
{
    double slow = o->beta_slow > 0 ? o->beta_slow : 1, fast = o->beta_fast > 0 ? o->beta_fast : 4;
    double rate = plain(o, dim, pair), wavelength = TWO_PI / rate;
    if (wavelength < o->context / fast) return rate;
    if (wavelength > o->context / slow) return rate / o->factor;
    double smooth = (o->context / wavelength - slow) / (fast - slow);
    return (1 - smooth) * rate / o->factor + smooth * rate;
}

static void every_scaling_follows_its_formula(void **state)
{
    const struct {
        formula *wanted;
        embla_rope_options options;
    } all[] = {
        {plain, {.theta = 10000.0}},
        {plain, {.theta = 500000.0}},
        {linear, {.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = 4}},
        {ntk, {.scaling = EMBLA_ROPE_SCALING_NTK, .factor = 8}},
        {ntk, {.scaling = EMBLA_ROPE_SCALING_NTK, .factor = 2.5, .theta = 1e6}},
        {yarn, {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4, .context = 4096}},
        {yarn,
         {.scaling = EMBLA_ROPE_SCALING_YARN,
          .factor = 40,
          .context = 4096,
          .theta = 1e6,
          .beta_fast = 16,
          .beta_slow = 2}},
        {llama3,
         {.scaling = EMBLA_ROPE_SCALING_LLAMA3, .factor = 8, .context = 8192, .theta = 5e5}},
        {llama3,
         {.scaling = EMBLA_ROPE_SCALING_LLAMA3,
          .factor = 32,
          .context = 8192,
          .theta = 5e5,
          .beta_fast = 6,
          .beta_slow = 1.5}},
    };
    const size_t dims[] = {16, 64, 128};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (size_t k = 0; k < COUNT_OF(dims); k++)
            for (size_t pair = 0; pair < dims[k] / 2; pair++)
                for (int order = 0; order < 2; order++) {
                    embla_rope_options options = all[i].options;
                    options.order = (embla_rope_order)order;
                    double wanted = all[i].wanted(&options, dims[k], pair);
                    assert_near(rate_of(dims[k], options, pair, NULL), wanted, wanted * 3e-7);
                }
}

static void llama3_gives_the_rates_of_llama_3_1_8b(void **state)
{
    const struct {
        size_t pair;
        double rate;
    } golden[] = {{0, 1.0},
                  {10, 0.12868737343265052},
                  {28, 0.003211445994752591},
                  {29, 0.002166570763503359},
                  {30, 0.0013718935677611381},
                  {32, 0.0005248461609929547},
                  {35, 9.556212353964683e-05},
                  {63, 3.068925988914511e-07}};
    embla_rope_options options = {
        .scaling = EMBLA_ROPE_SCALING_LLAMA3, .factor = 8, .context = 8192, .theta = 500000.0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        double length;
        assert_near(rate_of(128, options, golden[i].pair, &length), golden[i].rate,
                    golden[i].rate * 3e-7);
        assert_near(length, 1.0, 3e-7);
    }
}

static void yarn_gives_the_rates_of_a_context_times_four(void **state)
{
    const struct {
        size_t pair;
        double rate;
    } golden[] = {{0, 1.0},
                  {20, 0.05623413251903491},
                  {21, 0.047292038501684786},
                  {30, 0.009488517882700576},
                  {40, 0.0013378867023789297},
                  {45, 0.0004294025889973583},
                  {46, 0.000333380358040831},
                  {63, 2.8869549617236455e-05}};
    embla_rope_options options = {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4, .context = 4096};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(golden); i++) {
        double length;
        assert_near(rate_of(128, options, golden[i].pair, &length), golden[i].rate,
                    golden[i].rate * 3e-7);
        assert_near(length, 1.138629436111989, 3e-7);
    }
}

static void attention_multiplies_the_result(void **state)
{
    const struct {
        embla_rope_options options;
        double length;
    } all[] = {
        {{.attention = 0.5}, 0.5},
        {{.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = 4}, 1.0},
        {{.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 1, .context = 4096}, 1.0},
        {{.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 16, .context = 4096, .attention = 1.25},
         1.25},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(all); i++) {
        double length;
        (void)rate_of(64, all[i].options, 3, &length);
        assert_near(length, all[i].length, 3e-7);
    }
}

/* ---- turning ---- */

static void pairs_are_turned_by_position_times_rate(void **state)
{
    enum { DIM = 12, HEADS = 3, COUNT = 5 };
    const int64_t positions[COUNT] = {0, 1, 77, -5, 100000};
    (void)state;
    for (int order = 0; order < 2; order++) {
        embla_rope_options options = {.order = (embla_rope_order)order};
        embla_rope *rope = rope_of(DIM, &options);
        float x[COUNT * HEADS * DIM], before[COUNT * HEADS * DIM];
        check_fill(1, COUNT_OF(x), before);
        memcpy(x, before, sizeof x);
        assert_ok(embla_rope_apply(rope, positions, COUNT, HEADS, NULL, x));
        for (size_t i = 0; i < COUNT * HEADS; i++)
            for (size_t pair = 0; pair < DIM / 2; pair++) {
                size_t first = i * DIM + (order ? pair : 2 * pair);
                size_t second = order ? first + DIM / 2 : first + 1;
                double angle = (double)positions[i / HEADS] * plain(&options, DIM, pair);
                double a = (double)before[first], b = (double)before[second];
                assert_near(x[first], a * cos(angle) - b * sin(angle), 3e-7);
                assert_near(x[second], a * sin(angle) + b * cos(angle), 3e-7);
            }
        embla_rope_free(rope);
    }
}

static void turning_keeps_the_norm(void **state)
{
    enum { DIM = 128 };
    const int64_t positions[] = {0, 1, 500, 100000};
    (void)state;
    for (int order = 0; order < 2; order++) {
        embla_rope *rope = rope_of(DIM, &(embla_rope_options){.order = (embla_rope_order)order});
        for (size_t i = 0; i < COUNT_OF(positions); i++) {
            float x[DIM];
            check_fill(i, DIM, x);
            double before = embla_norm(x, DIM);
            assert_ok(embla_rope_apply(rope, &positions[i], 1, 1, NULL, x));
            assert_near(embla_norm(x, DIM), before, before * 3e-7);
        }
        embla_rope_free(rope);
    }
}

static double turned_dot(const embla_rope *rope, int64_t m, int64_t n)
{
    float q[64], k[64];
    check_fill(100, 64, q);
    check_fill(200, 64, k);
    assert_ok(embla_rope_apply(rope, &m, 1, 1, NULL, q));
    assert_ok(embla_rope_apply(rope, &n, 1, 1, NULL, k));
    return embla_dot(q, k, 64);
}

static void the_product_of_two_depends_on_their_distance(void **state)
{
    const int64_t shifts[] = {1, 50, 3000};
    (void)state;
    for (int order = 0; order < 2; order++) {
        embla_rope *rope = rope_of(64, &(embla_rope_options){.order = (embla_rope_order)order});
        for (int64_t apart = -7; apart <= 7; apart++)
            for (size_t i = 0; i < COUNT_OF(shifts); i++)
                assert_near(turned_dot(rope, 10 + apart + shifts[i], 10 + shifts[i]),
                            turned_dot(rope, 10 + apart, 10), 3e-6);
        assert_true(fabs(turned_dot(rope, 10, 10) - turned_dot(rope, 13, 10)) > 1e-3);
        embla_rope_free(rope);
    }
}

static void turning_back_is_the_inverse(void **state)
{
    enum { DIM = 64, COUNT = 6, HEADS = 2 };
    const int64_t positions[COUNT] = {0, 3, 99, 100, 4096, -1};
    (void)state;
    for (int order = 0; order < 2; order++) {
        embla_rope_options options = {.order = (embla_rope_order)order, .cached = 100};
        embla_rope *rope = rope_of(DIM, &options);
        float x[COUNT * HEADS * DIM], before[COUNT * HEADS * DIM];
        check_fill(1, COUNT_OF(x), before);
        memcpy(x, before, sizeof x);
        assert_ok(embla_rope_apply(rope, positions, COUNT, HEADS, NULL, x));
        assert_ok(embla_rope_transpose(rope, positions, COUNT, HEADS, NULL, x));
        for (size_t i = 0; i < COUNT_OF(x); i++) assert_near(x[i], before[i], 5e-7);
        embla_rope_free(rope);
    }
}

/* <R x, y> = <x, R' y>, with an attention factor too. */
static void turning_back_is_the_adjoint(void **state)
{
    enum { DIM = 32 };
    const int64_t position = 17;
    float x[DIM], y[DIM], turned[DIM], back[DIM];
    embla_rope *rope = rope_of(DIM, &(embla_rope_options){.attention = 1.7});
    (void)state;
    check_fill(1, DIM, x);
    check_fill(2, DIM, y);
    memcpy(turned, x, sizeof x);
    memcpy(back, y, sizeof y);
    assert_ok(embla_rope_apply(rope, &position, 1, 1, NULL, turned));
    assert_ok(embla_rope_transpose(rope, &position, 1, 1, NULL, back));
    assert_near(embla_dot(turned, y, DIM), embla_dot(x, back, DIM), 3e-6);
    embla_rope_free(rope);
}

/* 600 numbers: more pairs than are worked on at once. */
static void cached_positions_give_the_same_bits(void **state)
{
    enum { COUNT = 5 };
    const int64_t positions[COUNT] = {0, 1, 19, 20, 1000};
    const size_t dims[] = {2, 16, 600};
    static float x[COUNT * 2 * 600], y[COUNT * 2 * 600];
    (void)state;
    for (size_t k = 0; k < COUNT_OF(dims); k++)
        for (int order = 0; order < 2; order++) {
            embla_rope_options options = {.order = (embla_rope_order)order};
            embla_rope *without = rope_of(dims[k], &options);
            options.cached = 20;
            embla_rope *with = rope_of(dims[k], &options);
            check_fill(3, COUNT_OF(x), x);
            memcpy(y, x, sizeof x);
            assert_ok(embla_rope_apply(without, positions, COUNT, 2, NULL, x));
            assert_ok(embla_rope_apply(with, positions, COUNT, 2, NULL, y));
            assert_memory_equal(x, y, sizeof x);
            assert_ok(embla_rope_transpose(without, positions, COUNT, 2, NULL, x));
            assert_ok(embla_rope_transpose(with, positions, COUNT, 2, NULL, y));
            assert_memory_equal(x, y, sizeof x);
            embla_rope_free(without);
            embla_rope_free(with);
        }
}

static void nothing_outside_the_heads_is_written(void **state)
{
    const int64_t positions[3] = {4, 5, 6};
    (void)state;
    for (size_t dim = 2; dim <= 130; dim += 2)
        for (int order = 0; order < 2; order++) {
            embla_rope *rope =
                rope_of(dim, &(embla_rope_options){.order = (embla_rope_order)order});
            check_guarded x = check_guard(3 * 2 * dim * sizeof(float), 4 * (dim % 16));
            check_fill(dim, 3 * 2 * dim, (float *)(void *)x.bytes);
            assert_ok(embla_rope_apply(rope, positions, 3, 2, NULL, (float *)(void *)x.bytes));
            check_guards(&x);
            check_guard_free(&x);
            embla_rope_free(rope);
        }
}

/* ---- refusals ---- */

static void heads_that_cannot_be_turned_are_refused(void **state)
{
    const size_t dims[] = {0, 1, 3, 127, (1u << 20) + 2, SIZE_MAX, SIZE_MAX - 1};
    embla_rope *rope = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dims); i++)
        assert_status(embla_rope_new(dims[i], NULL, &rope), EMBLA_ERR_SHAPE);
    assert_status(embla_rope_new(64, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(rope);
}

static void options_that_cannot_be_are_refused(void **state)
{
    const embla_rope_options bad[] = {
        {.theta = 1.0},
        {.theta = -10000.0},
        {.theta = (double)NAN},
        {.theta = (double)INFINITY},
        {.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = 0.5},
        {.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = (double)NAN},
        {.scaling = EMBLA_ROPE_SCALING_LINEAR, .factor = (double)INFINITY},
        {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4},
        {.scaling = EMBLA_ROPE_SCALING_LLAMA3, .factor = 4},
        {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4, .context = (double)NAN},
        {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4, .context = (double)INFINITY},
        {.scaling = EMBLA_ROPE_SCALING_YARN,
         .factor = 4,
         .context = 4096,
         .beta_fast = 1,
         .beta_slow = 1},
        {.scaling = EMBLA_ROPE_SCALING_YARN, .factor = 4, .context = 4096, .beta_slow = -1},
        {.scaling = EMBLA_ROPE_SCALING_YARN,
         .factor = 4,
         .context = 4096,
         .beta_fast = (double)NAN},
        {.scaling = EMBLA_ROPE_SCALING_LLAMA3, .factor = 4, .context = 4096, .beta_slow = 5},
        {.attention = (double)NAN},
        {.attention = (double)INFINITY},
        {.order = (embla_rope_order)2},
        {.scaling = (embla_rope_scaling)5},
        {.scaling = (embla_rope_scaling)-1},
        {.cached = SIZE_MAX},
        {.cached = SIZE_MAX / 64 / 4},
    };
    embla_rope *rope = NULL;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++)
        assert_status(embla_rope_new(64, &bad[i], &rope), EMBLA_ERR_ARGUMENT);
    assert_null(rope);
}

static void sizes_and_pointers_are_checked_before_turning(void **state)
{
    embla_rope *rope = rope_of(8, NULL);
    float x[8] = {1, 2, 3, 4, 5, 6, 7, 8}, before[8];
    const int64_t position = 3;
    (void)state;
    memcpy(before, x, sizeof x);
    assert_status(embla_rope_apply(NULL, &position, 1, 1, NULL, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_apply(rope, NULL, 1, 1, NULL, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_apply(rope, &position, 1, 1, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_transpose(rope, NULL, 1, 1, NULL, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_apply(rope, &position, SIZE_MAX, 1, NULL, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_apply(rope, &position, 1, SIZE_MAX, NULL, x), EMBLA_ERR_ARGUMENT);
    assert_status(embla_rope_apply(rope, &position, (SIZE_MAX >> 4) + 1, 1, NULL, x),
                  EMBLA_ERR_ARGUMENT);
    assert_memory_equal(x, before, sizeof x);
    embla_rope_free(rope);
}

static void nothing_to_turn_is_no_work(void **state)
{
    embla_rope *rope = rope_of(8, NULL);
    (void)state;
    assert_ok(embla_rope_apply(rope, NULL, 0, 4, NULL, NULL));
    assert_ok(embla_rope_apply(rope, NULL, 5, 0, NULL, NULL));
    assert_ok(embla_rope_transpose(rope, NULL, 5, 0, NULL, NULL));
    embla_rope_free(rope);
}

/* Heads of 12 of which 8 are turned, two of them inside rows of 40: the same as turning
 * them apart, and nothing beside them is touched. */
static void heads_may_lie_inside_longer_rows(void **state)
{
    enum { DIM = 8, HEAD = 12, ROW = 40, HEADS = 2, COUNT = 3, AT = 5 };
    const embla_rope_layout layout = {.head_stride = HEAD, .group_stride = ROW};
    const int64_t positions[COUNT] = {0, 7, 1000};
    float x[COUNT * ROW], want[COUNT * ROW];
    uint64_t seed = 3;
    embla_rope *rope = NULL;
    (void)state;
    assert_ok(embla_rope_new(DIM, NULL, &rope));
    for (size_t i = 0; i < COUNT_OF(x); i++) x[i] = want[i] = check_unit(&seed);
    for (size_t i = 0; i < COUNT; i++)
        for (size_t h = 0; h < HEADS; h++)
            assert_ok(
                embla_rope_apply(rope, &positions[i], 1, 1, NULL, want + i * ROW + AT + h * HEAD));
    assert_ok(embla_rope_apply(rope, positions, COUNT, HEADS, &layout, x + AT));
    assert_memory_equal(x, want, sizeof x);
    embla_rope_free(rope);
}

static void heads_that_would_overlap_are_refused(void **state)
{
    const embla_rope_layout wrong[] = {{.head_stride = 7}, {.group_stride = 15}};
    const int64_t position = 1;
    float x[32] = {0};
    embla_rope *rope = NULL;
    (void)state;
    assert_ok(embla_rope_new(8, NULL, &rope));
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_status(embla_rope_apply(rope, &position, 1, 2, &wrong[i], x), EMBLA_ERR_SHAPE);
    embla_rope_free(rope);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_scaling_follows_its_formula),
        cmocka_unit_test(llama3_gives_the_rates_of_llama_3_1_8b),
        cmocka_unit_test(yarn_gives_the_rates_of_a_context_times_four),
        cmocka_unit_test(attention_multiplies_the_result),
        cmocka_unit_test(pairs_are_turned_by_position_times_rate),
        cmocka_unit_test(turning_keeps_the_norm),
        cmocka_unit_test(the_product_of_two_depends_on_their_distance),
        cmocka_unit_test(turning_back_is_the_inverse),
        cmocka_unit_test(turning_back_is_the_adjoint),
        cmocka_unit_test(cached_positions_give_the_same_bits),
        cmocka_unit_test(nothing_outside_the_heads_is_written),
        cmocka_unit_test(heads_that_cannot_be_turned_are_refused),
        cmocka_unit_test(options_that_cannot_be_are_refused),
        cmocka_unit_test(sizes_and_pointers_are_checked_before_turning),
        cmocka_unit_test(nothing_to_turn_is_no_work),
        cmocka_unit_test(heads_may_lie_inside_longer_rows),
        cmocka_unit_test(heads_that_would_overlap_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
