/* SPDX-License-Identifier: Apache-2.0 */
/* The shape of a decoder: what can be had, and what 0 stands for. Everything that makes or opens
 * a model begins here, so that what comes after may rely on it: sizes fit each other, and no
 * product of them overflows.
 */
#include <math.h>

#include "base/dtype.h"
#include "base/options.h"
#include "model/gpt.h"
#include "model/gpt_ngram.h"

/* Bounds that keep every count of numbers below 2^59. */
enum { LAYERS_MOST = 1 << 12, HIDDEN_MOST = 1 << 24, POSITIONS_MOST = 1 << 24 };

static embla_status check_between(const char *what, uint64_t is, uint64_t least, uint64_t most)
{
    if (is >= least && is <= most) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT,
                      "a model with %" PRIu64 " %s: %" PRIu64 " to %" PRIu64 " can be had", is,
                      what, least, most);
}

static embla_status check_kind(const char *what, int kind, int last)
{
    if (kind >= 0 && kind <= last) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_ARGUMENT, "%s %d is not one of 0..%d", what, kind, last);
}

static embla_status check_sizes(const embla_gpt_shape *s)
{
    if (s->vocab < 1 || s->vocab > INT32_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a vocabulary of %" PRId64 " tokens: 1 to %d can be had", s->vocab,
                          INT32_MAX);
    EMBLA_TRY(check_between("numbers in a row", s->dim, 1, EMBLA_DIM_MOST));
    EMBLA_TRY(check_between("layers", s->layers, 1, LAYERS_MOST));
    EMBLA_TRY(check_between("heads", s->heads, 1, s->dim));
    EMBLA_TRY(check_between("heads of keys and values", s->kv_heads, 1, s->heads));
    EMBLA_TRY(check_between("numbers in the feed-forward part", s->hidden, 1, HIDDEN_MOST));
    EMBLA_TRY(check_between("positions", s->positions, 1, POSITIONS_MOST));
    if (s->dim % s->heads != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "%zu numbers in a row cannot be shared by %zu heads",
                          s->dim, s->heads);
    if (s->heads % s->kv_heads != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "%zu heads cannot share %zu heads of keys and values",
                          s->heads, s->kv_heads);
    if (s->position_kind == EMBLA_POSITIONS_ROTARY && s->dim / s->heads % 2 != 0)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "rotary positions turn pairs, but %zu numbers in %zu heads are %zu each",
                          s->dim, s->heads, s->dim / s->heads);
    return EMBLA_OK;
}

static embla_status check_rest(const embla_gpt_shape *s)
{
    EMBLA_TRY(check_kind("norm", (int)s->norm, EMBLA_NORM_RMS));
    EMBLA_TRY(check_kind("activation", (int)s->activation, EMBLA_ACTIVATION_SWIGLU));
    EMBLA_TRY(check_kind("kind of positions", (int)s->position_kind, EMBLA_POSITIONS_NONE));
    EMBLA_TRY(check_kind("rotary order", (int)s->rope_order, EMBLA_ROPE_ORDER_HALF_SPLIT));
    if (!(s->norm_epsilon > 0 && isfinite(s->norm_epsilon)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a norm's epsilon of %g: it must be above 0",
                          s->norm_epsilon);
    if (!(s->rope_theta > 0 && isfinite(s->rope_theta)))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a rotary theta of %g: it must be above 0",
                          s->rope_theta);
    if (!(s->dropout >= 0 && s->dropout < 1))
        return embla_fail(EMBLA_ERR_ARGUMENT, "a dropout of %g: it must be 0 or more, and below 1",
                          s->dropout);
    if (s->no_gain && s->biases)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "biases are asked for, but norms without a gain have no bias either");
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
    EMBLA_TRY(check_rest(&s));
    EMBLA_TRY(check_sizes(&s));
    EMBLA_TRY(embla_gpt_ngram_check(&s));
    *out = s;
    return EMBLA_OK;
}

embla_status embla_gpt_precision_check(const embla_gpt_shape *s, embla_gpt_precision precision)
{
    EMBLA_TRY(check_kind("precision", (int)precision, EMBLA_GPT_F64));
    if (precision == EMBLA_GPT_F64 && embla_gpt_has_ngram(s))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "an n-gram table of %" PRId64 " rows: a model in f64 has none, in f32 "
                          "it can",
                          s->ngram.rows);
    return EMBLA_OK;
}
