/* SPDX-License-Identifier: Apache-2.0 */
/* Rotates heads by their position, for rotary positions. */
#include "base/elementary.h"
#include "base/kernels.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "model/layers.h"

enum { PAIRS = 256 }; /* pairs of a head that are rotated at a time */

/* Rotation by one position: all tokens at that position, in all sequences. */
typedef struct {
    const embla_gpt_shape *shape;
    size_t size, heads, n, length, first, stride;
    bool back;
    const double *rates; /* frequency of each pair */
    float *x;
} rotation;

static void turn(const rotation *t, float *x, size_t pair, size_t n, const double *cosine,
                 const double *sine)
{
    bool split = t->shape->rope_order == EMBLA_ROPE_ORDER_HALF_SPLIT;
    float c[PAIRS], s[PAIRS];
    for (size_t i = 0; i < n; i++) c[i] = (float)cosine[i], s[i] = (float)sine[i];
    for (size_t h = 0; h < t->heads; h++, x += t->size) {
        embla_rotate_job job = {.first = x + (split ? pair : 2 * pair),
                                .step = split ? 1 : 2,
                                .pairs = n,
                                .cosine = c,
                                .sine = s};
        job.second = split ? job.first + t->size / 2 : job.first + 1;
        embla_kernels_get()->rotate(&job);
    }
}

static void rotate_position(const rotation *t, size_t p)
{
    double cosine[PAIRS], sine[PAIRS];
    for (size_t pair = 0; pair < t->size / 2; pair += PAIRS) {
        size_t left = t->size / 2 - pair, n = left < PAIRS ? left : PAIRS;
        for (size_t i = 0; i < n; i++) {
            double angle = (double)(t->first + p) * t->rates[pair + i];
            cosine[i] = embla_cos(angle);
            sine[i] = t->back ? -embla_sin(angle) : embla_sin(angle);
        }
        for (size_t token = p; token < t->n; token += t->length)
            turn(t, t->x + token * t->stride, pair, n, cosine, sine);
    }
}

static embla_status rotate_positions(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t p = first; p < end; p++) rotate_position(job, p);
    return EMBLA_OK;
}

embla_status embla_rotate_heads(const embla_layer_way *way, const embla_gpt_shape *shape,
                                size_t size, size_t heads, size_t n, size_t length, size_t first,
                                size_t stride, bool back, float *x)
{
    double few[PAIRS], *rates = few;
    double theta = shape->rope_theta == 0.0 ? 10000.0 : shape->rope_theta;
    size_t positions = n < length ? n : length, bytes = size / 2 * sizeof(double);
    void *memory = NULL;
    if (size % 2 != 0)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "a head has %zu numbers; rotary positions need an even number", size);
    if (size / 2 > PAIRS) {
        EMBLA_TRY(embla_mem_new(bytes, "the frequencies of a rotary embedding", &memory));
        rates = memory;
    }
    for (size_t i = 0; i < size / 2; i++)
        rates[i] = embla_pow(theta, -2.0 * (double)i / (double)size);
    rotation t = {.shape = shape,
                  .size = size,
                  .heads = heads,
                  .n = n,
                  .length = length,
                  .first = first,
                  .stride = stride,
                  .back = back,
                  .rates = rates,
                  .x = x};
    int threads = embla_threads_for(way->threads, 2 * n * heads * size * sizeof(float));
    embla_status status = embla_share(threads, positions, 0, rotate_positions, &t);
    embla_mem_free(memory, bytes);
    return status;
}
