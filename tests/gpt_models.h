/* SPDX-License-Identifier: Apache-2.0 */
/* Small random models for tests. */
#ifndef EMBLA_TESTS_GPT_MODELS_H
#define EMBLA_TESTS_GPT_MODELS_H

#include "check.h"
#include "gpt_shapes.h"

/* A model in f32 whose gains and biases are random too, so that none hides behind a 1 or a 0. */
static inline embla_gpt *random_gpt(const embla_gpt_shape *shape, uint64_t seed)
{
    embla_gpt *gpt = NULL;
    embla_gpt_tensor tensor;
    assert_ok(embla_gpt_new(shape, 3, 0.3, &gpt));
    for (size_t i = 0; i < embla_gpt_tensor_count(gpt); i++) {
        assert_ok(embla_gpt_tensor_at(gpt, i, &tensor));
        float *values = tensor.values;
        for (size_t k = 0; !tensor.decays && k < tensor.dim; k++)
            values[k] += 0.3f * check_unit(&seed);
    }
    return gpt;
}

#endif
