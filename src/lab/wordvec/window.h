/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of one window: a word, its neighbours, and words drawn at random (negatives).
 *
 * Rows have `stride` floats, a multiple of EMBLA_WINDOW_LANES; those past dim are 0 and stay 0. The
 * loops are plain C, compiled for each instruction set, and sum in a fixed order: the same bits
 * everywhere.
 */
#ifndef EMBLA_WORDVEC_WINDOW_H
#define EMBLA_WORDVEC_WINDOW_H

#include <stdbool.h>
#include <stddef.h>

enum {
    EMBLA_WINDOW_LANES = 16,
    EMBLA_WINDOW_MOST = 50,   /* words on each side */
    EMBLA_NEGATIVES_MOST = 63 /* and the word itself */
};

typedef struct {
    float *inputs[2 * EMBLA_WINDOW_MOST];     /* rows of the neighbours; skip-gram: each once */
    float times[2 * EMBLA_WINDOW_MOST];       /* skip-gram: how often each occurs in the window */
    float *outputs[EMBLA_NEGATIVES_MOST + 1]; /* the word's own row first, then the negatives' */
    size_t input_count, output_count;
    size_t stride;
    float rate;
    bool wants_loss;
    double loss;  /* sum of -ln p over the window's pairs, if wanted */
    double pairs; /* how many pairs of a word and its own neighbour that is */
} embla_window;

/* Skip-gram: each input predicts the output. p = sigmoid(input . output) for the word itself, and
 * 1 - sigmoid for a negative. Each row moves by rate times the gradient of sum ln p, computed with
 * the rows as they were. */
void embla_window_skipgram(embla_window *window);
/* CBOW: the mean of the inputs predicts the output. Each input moves by the gradient of the mean,
 * not divided by their number, as in word2vec. Here an input may occur twice. */
void embla_window_cbow(embla_window *window);

#endif
