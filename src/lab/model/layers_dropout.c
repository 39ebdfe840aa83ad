/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. Whether a number is dropped depends only on (seed, branch, token, column), so nothing
 * has to be kept between forward and backward. */
#include "base/parallel.h"
#include "base/random.h"
#include "base/threads.h"
#include "model/layers.h"

enum { GROUP = 4 * EMBLA_RANDOM_LANES };

static void keep_group(const embla_dropout *d, size_t branch, size_t token, size_t first,
                       float *keep)
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    uint64_t row = (uint64_t)branch << 48 ^ token;
    uint32_t limit = (uint32_t)(d->share * 0x1p32);
    embla_philox(d->seed, (uint32_t)(first / 4), row, EMBLA_RANDOM_DROPOUT, words);
    for (size_t i = 0; i < GROUP; i++)
        keep[i] = words[i % 4][i / 4] < limit ? 0 : (float)(1 / (1 - d->share));
}

typedef struct {
    const embla_dropout *dropout;
    size_t branch, dim;
    const float *in;
    bool add;
    float *out;
} dropping;

static void drop_token(const dropping *d, size_t token)
{
    for (size_t first = 0; first < d->dim; first += GROUP) {
        float keep[GROUP];
        keep_group(d->dropout, d->branch, token, first, keep);
        for (size_t c = first; c < d->dim && c < first + GROUP; c++) {
            size_t i = token * d->dim + c;
            float y = d->in[i] * keep[c - first];
            d->out[i] = d->add ? d->out[i] + y : y;
        }
    }
}

static embla_status drop_tokens(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t token = first; token < end; token++) drop_token(job, token);
    return EMBLA_OK;
}

embla_status embla_dropout_apply(const embla_layer_way *way, const embla_dropout *dropout,
                                 size_t branch, const float *in, size_t n, size_t dim, bool add,
                                 float *out)
{
    const dropping d = {
        .dropout = dropout, .branch = branch, .dim = dim, .in = in, .add = add, .out = out};
    int threads = embla_threads_for(way->threads, n * dim * sizeof(float));
    return embla_share(threads, n, 0, drop_tokens, &d);
}
