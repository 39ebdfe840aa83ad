/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops of engine/score.c: a few rows, as they are stored, times a few vectors. There is
 * one loop for each dtype that is decoded in registers and for each instruction set.
 */
#ifndef EMBLA_ENGINE_SCORE_LOOPS_H
#define EMBLA_ENGINE_SCORE_LOOPS_H

#include "engine/score.h"

enum {
    EMBLA_SCORE_LANES = 16,
    EMBLA_SCORE_ROWS = 4 /* side by side */
};

/* Adds the products of n numbers of some rows with some vectors to lanes in memory, so that a row
 * may come in pieces. n is a number of whole blocks of the dtype; only the last piece of a row may
 * have an n that is not a multiple of EMBLA_SCORE_LANES. */
typedef struct {
    const char *rows[EMBLA_SCORE_ROWS];
    const float *vectors;
    size_t n, stride;     /* from one vector to the next */
    size_t side;          /* rows: EMBLA_SCORE_ROWS or 1 */
    size_t count;         /* vectors: 1 .. EMBLA_SCORE_VECTORS */
    float scale;          /* of the dtype */
    const int16_t *whole; /* the vectors as integers: for squares of q8_0 */
    bool from_zero;       /* the lanes are written, not added to */
    float *lanes;         /* count x EMBLA_SCORE_ROWS x EMBLA_SCORE_LANES */
    float *squares;       /* EMBLA_SCORE_ROWS x EMBLA_SCORE_LANES; NULL means not wanted */
} embla_score_sums;

typedef void embla_score_loop(const embla_score_sums *s);

/* The loop that decodes dtype in registers; NULL if there is none. There always is one for f32. */
embla_score_loop *embla_score_loop_for(embla_dtype dtype, embla_isa isa);

#if EMBLA_ARM
embla_score_loop embla_score_f32_neon, embla_score_bf16_neon, embla_score_f16_neon,
    embla_score_i8_neon, embla_score_q8_0_neon;
#endif

#endif
