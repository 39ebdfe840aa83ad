/* SPDX-License-Identifier: Apache-2.0 */
/* What a decoder can show besides the vector of its last token. */
#ifndef EMBLA_MODEL_DECODER_H
#define EMBLA_MODEL_DECODER_H

#include "base/status.h"
#include "embla_train.h"

/* Outputs of a pass; NULL means not wanted. */
typedef struct {
    float *last;      /* dim: the last token's vector, for the head */
    float *all;       /* count x dim: the vectors of all new tokens */
    float *attention; /* layers x heads x tokens of the sequence: weights of the last token */
} embla_decoder_view;

/* embla_decoder_append, which shows more. */
EMBLA_CHECKED embla_status embla_decoder_run(embla_decoder *decoder, const int32_t *tokens,
                                             size_t count, int threads,
                                             const embla_decoder_view *view);

#endif
