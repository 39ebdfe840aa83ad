/* SPDX-License-Identifier: Apache-2.0 */
/* Rotary positions (Su et al., "RoFormer", 2021): pair i of a head's numbers is rotated by the
 * angle position * rate[i], rate[i] = theta^(-2i/dim). There are no parameters. The dot product of
 * a rotated query and a rotated key depends on their distance.
 *
 * A longer context than in training is reached by changing the rates:
 *   linear  all are divided by factor (Chen et al., "Position Interpolation", 2023)
 *   ntk     theta is raised, so that the slowest pair is divided by factor, the fastest is not
 *   yarn    pairs that rotate more than beta_fast times in the trained context are kept, those that
 *           rotate less than beta_slow times are divided, with a ramp over the pair number between
 *           (Peng et al., "YaRN", 2023, 3.2)
 *   llama3  the same with a ramp over the number of rotations (Llama 3.1's rope_scaling)
 */
#include <math.h>
#include <string.h>

#include "base/checked.h"
#include "base/elementary.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/status.h"

#define TWO_PI 6.283185307179586

/* One allocation: this struct, then rate (pairs doubles), then for each cached position pairs
 * cosines and pairs sines. */
struct embla_rope {
    size_t dim, pairs, cached, bytes;
    embla_rope_order order;
    double attention;
    double *rate;
    float *turns;
};

/* The pair number, as a real number, of a pair that rotates `turns` times in the trained
 * context. */
static double yarn_pair(double turns, size_t dim, double context, double theta)
{
    return (double)dim * embla_log(context / (turns * TWO_PI)) / (2.0 * embla_log(theta));
}

/* The part of the rate that is kept: 1 means unchanged, 0 means divided by factor. */
static double kept_share(const embla_rope_options *o, size_t dim, size_t pair, double rate)
{
    if (o->scaling == EMBLA_ROPE_SCALING_YARN) {
        double low = floor(yarn_pair(o->beta_fast, dim, o->context, o->theta));
        double high = ceil(yarn_pair(o->beta_slow, dim, o->context, o->theta));
        low = fmin(fmax(low, 0.0), (double)dim - 1.0);
        high = fmin(fmax(high, 0.0), (double)dim - 1.0);
        if (high <= low) high = low + 0.001;
        return 1.0 - fmin(fmax(((double)pair - low) / (high - low), 0.0), 1.0);
    }
    double turns = o->context * rate / TWO_PI;
    return fmin(fmax((turns - o->beta_slow) / (o->beta_fast - o->beta_slow), 0.0), 1.0);
}

static double pair_rate(const embla_rope_options *o, size_t dim, size_t pair)
{
    double d = (double)dim, theta = o->theta;
    if (o->scaling == EMBLA_ROPE_SCALING_NTK && dim > 2)
        theta *= embla_pow(o->factor, d / (d - 2.0));
    double rate = embla_pow(theta, -2.0 * (double)pair / d);
    if (o->scaling == EMBLA_ROPE_SCALING_LINEAR) return rate / o->factor;
    if (o->scaling == EMBLA_ROPE_SCALING_YARN || o->scaling == EMBLA_ROPE_SCALING_LLAMA3) {
        double part = kept_share(o, dim, pair, rate);
        return rate * part + rate / o->factor * (1.0 - part);
    }
    return rate;
}

/* Fills in defaults and checks the options. */
static embla_status check_options(embla_rope_options *o)
{
    bool ramp = o->scaling == EMBLA_ROPE_SCALING_YARN || o->scaling == EMBLA_ROPE_SCALING_LLAMA3;
    if ((unsigned)o->order > EMBLA_ROPE_ORDER_HALF_SPLIT ||
        (unsigned)o->scaling > EMBLA_ROPE_SCALING_LLAMA3)
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "rope order is %d and scaling is %d; order must be 0 or 1, scaling from 0 to 4",
            (int)o->order, (int)o->scaling);
    if (o->theta == 0.0) o->theta = 10000.0;
    if (o->factor == 0.0) o->factor = 1.0;
    if (o->beta_fast == 0.0) o->beta_fast = o->scaling == EMBLA_ROPE_SCALING_LLAMA3 ? 4.0 : 32.0;
    if (o->beta_slow == 0.0) o->beta_slow = 1.0;
    if (!(o->theta > 1.0) || isinf(o->theta))
        return embla_fail(EMBLA_ERR_ARGUMENT, "theta is %g; it must be finite and above 1",
                          o->theta);
    if (!(o->factor >= 1.0) || isinf(o->factor))
        return embla_fail(EMBLA_ERR_ARGUMENT, "factor is %g; it must be finite and at least 1",
                          o->factor);
    if (ramp && (!(o->context >= 1.0) || isinf(o->context)))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "context is %g; yarn and llama3 need the context length of training, at least 1",
            o->context);
    if (ramp && !(o->beta_slow > 0.0 && o->beta_fast > o->beta_slow && isfinite(o->beta_fast)))
        return embla_fail(
            EMBLA_ERR_ARGUMENT,
            "beta_fast is %g and beta_slow is %g; beta_fast must be greater, and beta_slow above 0",
            o->beta_fast, o->beta_slow);
    if (o->attention == 0.0)
        o->attention =
            o->scaling == EMBLA_ROPE_SCALING_YARN ? 0.1 * embla_log(o->factor) + 1.0 : 1.0;
    if (!isfinite(o->attention))
        return embla_fail(EMBLA_ERR_ARGUMENT, "attention is %g; it must be finite", o->attention);
    return EMBLA_OK;
}

/* Cosines and sines of pairs first .. first+n-1 at a position. */
static void cosines_at(const embla_rope *rope, int64_t position, size_t first, size_t n,
                       float *cosine, float *sine)
{
    for (size_t i = 0; i < n; i++) {
        double angle = (double)position * rope->rate[first + i];
        cosine[i] = (float)(embla_cos(angle) * rope->attention);
        sine[i] = (float)(embla_sin(angle) * rope->attention);
    }
}

embla_status embla_rope_new(size_t dim, const embla_rope_options *options, embla_rope **out)
{
    EMBLA_TRY(embla_options_check(options));
    embla_rope_options o = {0};
    uint64_t floats, bytes;
    size_t size;
    void *memory;
    EMBLA_NEED(out);
    if (options) o = *options;
    if (dim < 2 || dim % 2 != 0 || dim > 1u << 20)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "dim is %zu; a rotary embedding needs an even number, at most %u", dim,
                          1u << 20);
    EMBLA_TRY(check_options(&o));
    if (!embla_mul_ok(o.cached, dim, &floats) || !embla_mul_ok(floats, sizeof(float), &bytes) ||
        !embla_add_ok(bytes, sizeof(embla_rope) + dim / 2 * sizeof(double), &bytes) ||
        !embla_size_ok(bytes, &size))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu cached positions do not fit in memory",
                          o.cached);
    EMBLA_TRY(embla_mem_new(size, "a rotary embedding", &memory));
    embla_rope *rope = memory;
    *rope = (embla_rope){.dim = dim,
                         .pairs = dim / 2,
                         .bytes = size,
                         .order = o.order,
                         .attention = o.attention,
                         .rate = (double *)(void *)(rope + 1)};
    rope->turns = (float *)(void *)(rope->rate + rope->pairs);
    for (size_t i = 0; i < rope->pairs; i++) rope->rate[i] = pair_rate(&o, dim, i);
    for (size_t p = 0; p < o.cached; p++)
        cosines_at(rope, (int64_t)p, 0, rope->pairs, rope->turns + p * dim,
                   rope->turns + p * dim + rope->pairs);
    rope->cached = o.cached;
    *out = rope;
    return EMBLA_OK;
}

void embla_rope_free(embla_rope *rope)
{
    if (rope) embla_mem_free(rope, rope->bytes);
}

/* Rotates pairs first .. first+n-1 of all heads of one group. */
static void rotate_heads(const embla_rope *rope, float *x, size_t heads, size_t head_stride,
                         size_t first, size_t n, const float *cosine, const float *sine)
{
    const embla_kernels *kernels = embla_kernels_get();
    bool split = rope->order == EMBLA_ROPE_ORDER_HALF_SPLIT;
    for (size_t h = 0; h < heads; h++) {
        float *head = x + h * head_stride;
        embla_rotate_job job = {.first = split ? head + first : head + 2 * first,
                                .step = split ? 1 : 2,
                                .pairs = n,
                                .cosine = cosine,
                                .sine = sine};
        job.second = split ? job.first + rope->pairs : job.first + 1;
        kernels->rotate(&job);
    }
}

/* Rotates all heads of one group by one position, a piece of the pairs at a time. */
static void rotate_group(const embla_rope *rope, int64_t position, bool back, float *x,
                         size_t heads, size_t head_stride)
{
    enum { PIECE = 256 };
    for (size_t first = 0; first < rope->pairs; first += PIECE) {
        size_t n = rope->pairs - first < PIECE ? rope->pairs - first : PIECE;
        float cosine[PIECE], sine[PIECE];
        if ((uint64_t)position < rope->cached) {
            const float *turns = rope->turns + (size_t)position * rope->dim + first;
            memcpy(cosine, turns, n * sizeof *turns);
            memcpy(sine, turns + rope->pairs, n * sizeof *turns);
        } else {
            cosines_at(rope, position, first, n, cosine, sine);
        }
        for (size_t j = 0; back && j < n; j++) sine[j] = -sine[j];
        rotate_heads(rope, x, heads, head_stride, first, n, cosine, sine);
    }
}

/* Fills in the strides of a layout, and refuses heads that overlap. */
static embla_status check_layout(const embla_rope *rope, size_t count, size_t heads,
                                 const embla_rope_layout *given, embla_rope_layout *out)
{
    size_t group, floats, bytes;
    embla_rope_layout layout = {0};
    if (given) layout = *given;
    if (layout.head_stride == 0) layout.head_stride = rope->dim;
    if (layout.head_stride < rope->dim)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the head stride is %zu floats, less than the %zu that are rotated",
                          layout.head_stride, rope->dim);
    if (!embla_span_ok(heads, layout.head_stride, rope->dim, &group) ||
        (layout.group_stride == 0 &&
         __builtin_mul_overflow(heads, layout.head_stride, &layout.group_stride)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu heads, %zu floats apart, do not fit in memory",
                          heads, layout.head_stride);
    if (layout.group_stride < group)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the group stride is %zu floats, less than a group's %zu",
                          layout.group_stride, group);
    if (!embla_span_ok(count, layout.group_stride, group, &floats) ||
        !embla_span_ok(floats, sizeof(float), sizeof(float), &bytes))
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu x %zu heads of %zu floats do not fit in memory",
                          count, heads, rope->dim);
    *out = layout;
    return EMBLA_OK;
}

static embla_status apply(const embla_rope *rope, const int64_t *positions, size_t count,
                          size_t heads, const embla_rope_layout *given, float *x, bool back)
{
    embla_rope_layout layout;
    if (!rope) return embla_fail(EMBLA_ERR_ARGUMENT, "the rotary embedding is NULL");
    EMBLA_TRY(check_layout(rope, count, heads, given, &layout));
    if (count == 0 || heads == 0) return EMBLA_OK;
    if (!positions || !x)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu positions, but %s is NULL", count,
                          x ? "positions" : "x");
    for (size_t i = 0; i < count; i++)
        rotate_group(rope, positions[i], back, x + i * layout.group_stride, heads,
                     layout.head_stride);
    return EMBLA_OK;
}

embla_status embla_rope_apply(const embla_rope *rope, const int64_t *positions, size_t count,
                              size_t heads, const embla_rope_layout *layout, float *x)
{
    EMBLA_TRY(embla_options_check(layout));
    return apply(rope, positions, count, heads, layout, x, false);
}

embla_status embla_rope_transpose(const embla_rope *rope, const int64_t *positions, size_t count,
                                  size_t heads, const embla_rope_layout *layout, float *x)
{
    EMBLA_TRY(embla_options_check(layout));
    return apply(rope, positions, count, heads, layout, x, true);
}
