/* SPDX-License-Identifier: Apache-2.0 */
/* What computes the matrix products of a training. For small ones plain loops are as fast as an
 * engine, and give the same bits on every CPU. */
#include "train/train.h"

/* Multiplications of a product. Up to here plain loops were as fast as oneDNN (one thread,
 * AVX-512, dim 32 and 64); with three times as many they took about a third more time. */
enum { PLAIN_MOST = 4 << 20 };

embla_status embla_train_engine_check(const embla_train_options *o)
{
    if ((unsigned)o->engine > EMBLA_TRAIN_ENGINE_LIBRARY)
        return embla_fail(EMBLA_ERR_ARGUMENT, "engine is %d; it must be from 0 to %d",
                          (int)o->engine, (int)EMBLA_TRAIN_ENGINE_LIBRARY);
    if (o->engine == EMBLA_TRAIN_ENGINE_NONE && o->negatives > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "engine is none, but a loss against %zu sampled tokens needs an engine; "
                          "use the full loss, or another engine",
                          o->negatives);
    return EMBLA_OK;
}

/* Multiplications of the largest matrix product of a step. */
static double largest_product(const embla_gpt *gpt, const embla_train_options *o)
{
    const embla_gpt_shape *s = &gpt->shape;
    const double columns[] = {(double)s->vocab, (double)s->hidden,
                              3 * (double)s->dim, /* queries, keys and values */
                              2 * (double)embla_gpt_ngram_width(s)};
    double most = 0;
    for (size_t i = 0; i < sizeof columns / sizeof columns[0]; i++)
        if (columns[i] > most) most = columns[i];
    return (double)o->batch * (double)o->length * (double)s->dim * most;
}

embla_train_engine embla_train_engine_choose(const embla_gpt *gpt, const embla_train_options *o)
{
    if (o->engine != EMBLA_TRAIN_ENGINE_AUTO) return o->engine;
    bool plain = o->compute == EMBLA_F32 && o->negatives == 0 &&
                 largest_product(gpt, o) <= (double)PLAIN_MOST;
    return plain ? EMBLA_TRAIN_ENGINE_NONE : EMBLA_TRAIN_ENGINE_LIBRARY;
}
