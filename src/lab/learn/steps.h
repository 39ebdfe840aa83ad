/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of optimizers: the loops over the numbers of a row.
 *
 * A step is a few multiplications, additions, divisions and roots for each number, in f32, in the
 * order given in steps.c, each rounded once. So every instruction set gives the same bits.
 * learn/optim.c decides which rows are updated, in what order and by which thread.
 */
#ifndef EMBLA_LEARN_STEPS_H
#define EMBLA_LEARN_STEPS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "embla_learn.h"

typedef enum {
    EMBLA_STEP_SGD,
    EMBLA_STEP_MOMENTUM,
    EMBLA_STEP_NESTEROV,
    EMBLA_STEP_ADAGRAD,
    EMBLA_STEP_ROWWISE,
    EMBLA_STEP_ADAMW,
    EMBLA_STEP_COUNT
} embla_step_kind;

/* The constants of an optimizer, the same for all its steps. The loops use the floats. */
typedef struct {
    embla_step_kind kind;
    double exact_beta1, exact_beta2, decay;
    float momentum;
    float beta1, rest1; /* and 1 - beta1 */
    float beta2, rest2;
    float epsilon;
} embla_rule;

/* The numbers of one step. They are stored for each step that rows have yet to catch up with. */
typedef struct {
    float keep; /* 1 - rate * decay: w is first multiplied by it */
    float rate; /* AdamW: rate / (1 - beta1^step) */
    float root; /* AdamW: 1 / sqrt(1 - beta2^step) */
} embla_moment;

/* Contiguous numbers: weights, their states (a: momentum, mean or squares; b: AdamW's squares; NULL
 * if the kind has none) and their gradients. The next_* arrays, if not NULL, are prefetched
 * meanwhile, as many numbers. */
typedef struct {
    float *w, *a, *b;
    const float *g;
    size_t n;
    const float *next_w, *next_a, *next_b, *next_g;
    float divisor; /* set by adagrad-rowwise: sqrt(squares) + epsilon of the row */
} embla_numbers;

/* From checked options with defaults filled in. */
embla_rule embla_rule_of(const embla_optim_options *options);
/* The numbers of a step (from 1). Returns false if an f32 cannot hold them. */
bool embla_moment_of(const embla_rule *rule, int64_t step, double rate, embla_moment *out);

/* One step. For adagrad-rowwise the numbers are one row, and a is one number. */
typedef void embla_step_fn(const embla_rule *rule, const embla_moment *moment,
                           const embla_numbers *numbers);
/* count steps with a gradient of zeros; each number is read and written once. */
typedef void embla_replay_fn(const embla_rule *rule, const embla_moment *moments, size_t count,
                             const embla_numbers *numbers);

typedef struct {
    embla_step_fn *step;
    embla_replay_fn *replay;
} embla_steps;

/* The loops of a kind for an instruction set. */
embla_steps embla_steps_of(embla_step_kind kind, embla_isa isa);

#endif
