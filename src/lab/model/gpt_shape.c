/* SPDX-License-Identifier: Apache-2.0 */
/* Checks the shape of a decoder and fills in defaults. Everything that creates or opens a model
 * starts here, so later code can rely on it: sizes are consistent, and no product of them
 * overflows. */
#include <math.h>

#include "base/dtype.h"
#include "base/options.h"
#include "model/gpt.h"
#include "model/gpt_ngram.h"

/* With these bounds, every count of numbers is below 2^59. */
enum { LAYERS_MOST = 1 << 12, HIDDEN_MOST = 1 << 24, POSITIONS_MOST = 1 << 24 };

embla_status embla_gpt_between(const char *part, const char *what, uint64_t is, uint64_t least,
                               uint64_t most)
{
    if (is >= least && is <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "%s with %" PRIu64 " %s; it must have %" PRIu64 " to %" PRIu64, part, is,
                      what, least, most);
}

static embla_status check_between(const char *what, uint64_t is, uint64_t least, uint64_t most)
{
    return embla_gpt_between("a model", what, is, least, most);
}

const char *const embla_gpt_positions[EMBLA_GPT_POSITIONS] = {"learned", "sinusoidal", "rotary",
                                                              "none"};

const char *embla_positions_name(embla_positions_kind kind)
{
    return (unsigned)kind < EMBLA_GPT_POSITIONS ? embla_gpt_positions[kind] : NULL;
}

static embla_status check_kind(const char *what, int kind, int last)
{
    if (kind >= 0 && kind <= last) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s is %d; it must be from 0 to %d", what, kind, last);
}

static embla_status check_sizes(const embla_gpt_shape *s)
{
    if (s->vocab < 1 || s->vocab > INT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "vocab is %" PRId64 "; it must be from 1 to %d",
                          s->vocab, INT32_MAX);
    EMBLA_TRY(check_between("numbers in a row (dim)", s->dim, 1, EMBLA_DIM_MOST));
    EMBLA_TRY(check_between("layers", s->layers, 1, LAYERS_MOST));
    EMBLA_TRY(check_between("heads", s->heads, 1, s->dim));
    EMBLA_TRY(check_between("heads of keys and values (kv_heads)", s->kv_heads, 1, s->heads));
    EMBLA_TRY(
        check_between("numbers in the feed-forward layer (hidden)", s->hidden, 1, HIDDEN_MOST));
    EMBLA_TRY(check_between("positions", s->positions, 1, POSITIONS_MOST));
    if (s->dim % s->heads != 0)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "dim is %zu, which is not a multiple of the number of heads, %zu", s->dim,
                          s->heads);
    if (s->heads % s->kv_heads != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "heads is %zu, which is not a multiple of kv_heads, %zu",
                          s->heads, s->kv_heads);
    if (s->position_kind == EMBLA_POSITIONS_ROTARY && s->dim / s->heads % 2 != 0)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "rotary positions need an even number of values in a head, but dim %zu "
                          "divided by the number of heads, %zu, is %zu",
                          s->dim, s->heads, s->dim / s->heads);
    return EMBLA_OK;
}

static embla_status check_kinds(const embla_gpt_shape *s)
{
    EMBLA_TRY(check_kind("norm", (int)s->norm, EMBLA_NORM_RMS));
    EMBLA_TRY(check_kind("activation", (int)s->activation, EMBLA_ACTIVATION_SWIGLU));
    EMBLA_TRY(check_kind("position_kind", (int)s->position_kind, EMBLA_POSITIONS_NONE));
    EMBLA_TRY(check_kind("rope_order", (int)s->rope_order, EMBLA_ROPE_ORDER_HALF_SPLIT));
    if (!(s->norm_epsilon > 0 && isfinite(s->norm_epsilon)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "norm_epsilon is %g; it must be finite and above 0",
                          s->norm_epsilon);
    if (!(s->rope_theta > 0 && isfinite(s->rope_theta)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "rope_theta is %g; it must be finite and above 0",
                          s->rope_theta);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return embla_fail(EMBLA_ERR_ARGUMENT, "dropout is %g; it must be 0 or greater and below 1",
                          s->dropout);
    if (s->no_gain && s->biases)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "biases and no_gain are both set, but a norm without a gain has no bias");
    return EMBLA_OK;
}

embla_status embla_gpt_shape_check(const embla_gpt_shape *shape, embla_gpt_shape *out)
{
    EMBLA_TRY(embla_options_check(shape));
    if (!shape) return embla_fail(EMBLA_ERR_ARGUMENT, "the shape is NULL");
    embla_gpt_shape s = *shape;
    if (s.kv_heads == 0) s.kv_heads = s.heads;
    if (s.hidden == 0 && s.dim <= EMBLA_DIM_MOST) s.hidden = 4 * s.dim;
    if (s.norm_epsilon == 0) s.norm_epsilon = 1e-5;
    if (s.rope_theta == 0) s.rope_theta = 10000;
    EMBLA_TRY(check_kinds(&s));
    EMBLA_TRY(check_sizes(&s));
    EMBLA_TRY(embla_gpt_ngram_check(&s));
    *out = s;
    return EMBLA_OK;
}

/* The most heads, no more than s has, that divide dim into equal parts; even ones for rotary
 * positions, which turn pairs. */
static size_t fit_heads(const embla_gpt_shape *s)
{
    size_t heads = s->heads < s->dim ? s->heads : s->dim;
    size_t unit = s->position_kind == EMBLA_POSITIONS_ROTARY ? 2 : 1;
    while (heads > 1 && s->dim % (heads * unit) != 0) heads--;
    return heads;
}

/* Sizes that are not valid are left as they are: embla_gpt_new refuses them. */
void embla_gpt_resize(embla_gpt_shape *shape, size_t dim, size_t heads)
{
    size_t old_dim = shape->dim, old_heads = shape->heads;
    if (dim > 0) shape->dim = dim;
    if (shape->dim > EMBLA_DIM_MOST) return;
    shape->heads = heads > 0 ? heads : fit_heads(shape);
    if (shape->hidden > 0 && shape->dim != old_dim)
        shape->hidden = (shape->hidden * shape->dim / old_dim + 7) / 8 * 8;
    if (shape->kv_heads == 0 || shape->heads == old_heads || shape->heads > EMBLA_DIM_MOST) return;
    shape->kv_heads = shape->kv_heads * shape->heads / old_heads;
    if (shape->kv_heads == 0) shape->kv_heads = 1;
    while (shape->heads % shape->kv_heads != 0) shape->kv_heads--;
}
