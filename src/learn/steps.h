/* SPDX-License-Identifier: Apache-2.0 */
/* The arithmetic of optimizers: the loops over the numbers of a row, and nothing else.
 *
 * A step is a few multiplications, additions, divisions and roots for each number, in f32, in
 * the order that stands in steps.c, each rounded once: the same bits on every instruction set.
 * Which rows, in what order, by which thread, is learn/optim.c.
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

/* What an optimizer is made of: the same for all its steps. The floats are what the loops
 * take. */
typedef struct {
    embla_step_kind kind;
    double exact_beta1, exact_beta2, decay;
    float momentum;
    float beta1, rest1; /* and 1 - beta1 */
    float beta2, rest2;
    float epsilon;
} embla_rule;

/* What one step adds to it. Kept for each step that rows have yet to catch up with. */
typedef struct {
    float keep; /* 1 - rate * decay: w is multiplied by it first */
    float rate; /* AdamW: rate / (1 - beta1^step) */
    float root; /* AdamW: 1 / sqrt(1 - beta2^step) */
} embla_moment;

/* Numbers that lie side by side: weights, what is remembered of them (a: momentum, mean or
 * squares; b: AdamW's squares; NULL where a kind has none) and their gradients. The next_*
 * are fetched meanwhile, as many numbers, where they are not NULL. */
typedef struct {
    float *w, *a, *b;
    const float *g;
    size_t n;
    const float *next_w, *next_a, *next_b, *next_g;
    float divisor; /* set by adagrad-rowwise itself: sqrt(squares) + epsilon of the row */
} embla_numbers;

/* Of options that have been checked, defaults filled in. */
embla_rule embla_rule_of(const embla_optim_options *options);
/* Of a step (from 1). False if an f32 cannot hold it. */
bool embla_moment_of(const embla_rule *rule, int64_t step, double rate, embla_moment *out);

/* One step. Of adagrad-rowwise the numbers are one row, and a is one number. */
typedef void embla_step_fn(const embla_rule *rule, const embla_moment *moment,
                           const embla_numbers *numbers);
/* count steps with a gradient of zeros, each number read and written once. */
typedef void embla_replay_fn(const embla_rule *rule, const embla_moment *moments, size_t count,
                             const embla_numbers *numbers);

typedef struct {
    embla_step_fn *step;
    embla_replay_fn *replay;
} embla_steps;

/* The loops of a kind for an instruction set. */
embla_steps embla_steps_of(embla_step_kind kind, embla_isa isa);

#endif
