/* SPDX-License-Identifier: Apache-2.0 */
/* Dropout. Whether a number is dropped depends only on (seed, branch, token, column), so nothing
 * has to be kept between forward and backward. */
#include "base/random.h"
#include "base/threads.h"
#include "model/layers.h"

enum { GROUP = 4 * EMBLA_RANDOM_LANES };

static void keep_group(const embla_dropout *d, size_t branch, size_t token, size_t first,
                       double *keep)
{
    uint32_t words[4][EMBLA_RANDOM_LANES];
    uint64_t row = (uint64_t)branch << 48 ^ token;
    uint32_t limit = (uint32_t)(d->share * 0x1p32);
    embla_philox(d->seed, (uint32_t)(first / 4), row, EMBLA_RANDOM_DROPOUT, words);
    for (size_t i = 0; i < GROUP; i++)
        keep[i] = words[i % 4][i / 4] < limit ? 0 : 1 / (1 - d->share);
}

void embla_dropout_apply(const embla_layer_way *way, const embla_dropout *dropout, size_t branch,
                         const void *in, size_t n, size_t dim, bool add, void *out)
{
    int threads = embla_threads_for(way->threads, n * dim * embla_real_bytes(way->precision));
    (void)threads;
#pragma omp parallel for num_threads(threads) if (threads > 1) schedule(static)
    for (size_t token = 0; token < n; token++)
        for (size_t first = 0; first < dim; first += GROUP) {
            double keep[GROUP];
            keep_group(dropout, branch, token, first, keep);
            for (size_t c = first; c < dim && c < first + GROUP; c++) {
                size_t i = token * dim + c;
                if (way->precision == EMBLA_GPT_F64) {
                    double y = ((const double *)in)[i] * keep[c - first], *to = out;
                    to[i] = add ? to[i] + y : y;
                } else {
                    float y = ((const float *)in)[i] * (float)keep[c - first], *to = out;
                    to[i] = add ? to[i] + y : y;
                }
            }
        }
}
