/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of choosing a token: the luck of a token, and the cut that top-k, top-p and min-p
 * make. Inline, because loops call them.
 *
 * A candidate is an embla_scored (base/best.h): row is the token, score its logit. Every score is
 * a float widened to double, so it converts back exactly.
 */
#ifndef EMBLA_LEARN_CHOOSE_H
#define EMBLA_LEARN_CHOOSE_H

#include <math.h>
#include <stdbool.h>
#include <string.h>

#include "base/best.h"
#include "base/elementary.h"
#include "base/half.h"
#include "base/math.h"
#include "base/random.h"

/* ---- luck ---- */

/* Tokens are sampled by the Gumbel trick: the token with the highest logit / temperature + luck,
 * where luck = -ln(-ln(1 - u)), is token v with the probability of v. u is 52 bits of Philox
 * (base/random.h) at (seed, draw, token); 32 tokens share the numbers of 16 blocks. */
enum { EMBLA_LOT = 32 };

typedef uint32_t embla_luck_words[4][EMBLA_RANDOM_LANES];

/* Computes the random words of tokens 32 lot .. 32 lot + 31. Returns true if a cheap bound allows
 * any of their logits x to reach limit with its luck: -ln(-ln(1 - u)) <= -ln(u), which is at most
 * ln 2 times (leading zero bits of u + 1). */
EMBLA_BODY bool embla_body_lot(uint64_t seed, uint64_t draw, uint64_t lot, const float *x,
                               double inverse, double limit, embla_luck_words words)
{
    const uint64_t block = lot * EMBLA_RANDOM_LANES;
    uint32_t any = 0;
    embla_philox(seed, (uint32_t)block, draw, EMBLA_RANDOM_LUCK + (uint32_t)(block >> 32), words);
    for (int half = 0; half < 2; half++)
        for (int i = 0; i < EMBLA_RANDOM_LANES; i++) {
            float u = (float)(int32_t)(words[2 * half][i] >> 8);
            int32_t zeros = 24 + 127 - (int32_t)(embla_bits(u) >> 23);
            double most = (double)zeros * 0.69314718055995;
            any |= (double)x[half * EMBLA_RANDOM_LANES + i] * inverse + most >= limit;
        }
    return any != 0;
}

/* The luck of token 32 lot + i. */
static inline double embla_luck_of(embla_luck_words words, size_t i)
{
    size_t half = i / EMBLA_RANDOM_LANES, lane = i % EMBLA_RANDOM_LANES;
    uint64_t bits = (uint64_t)words[2 * half][lane] << 32 | words[2 * half + 1][lane];
    double u = ((double)(bits >> 12) + 0.5) * 0x1p-52;
    return -embla_log(-embla_log1p(-u));
}

/* ---- who takes part in the draw, and who leads it ---- */

/* The leader of the draw so far. */
typedef struct {
    double key, luck; /* logit / temperature + luck */
    embla_scored who;
} embla_leader;

/* Tokens up to `last`, in the order of candidates, take part in the draw, except those with a logit
 * below floor. */
typedef struct {
    embla_scored last;
    double floor;
} embla_cut;

static const embla_cut embla_no_cut = {{INT64_MAX, -INFINITY}, -INFINITY};

static inline bool embla_is_inside(const embla_cut *c, embla_scored who)
{
    return !embla_is_better(c->last, who) && who.score >= c->floor;
}

static inline bool embla_is_luckier(const embla_leader *a, const embla_leader *b)
{
    if (a->key != b->key) return a->key > b->key;
    if (a->luck != b->luck) return a->luck > b->luck; /* for keys that are infinite or very large */
    return a->who.row < b->who.row;
}

/* A lower bound of the keys that can beat the leader; slightly less, because keys are rounded. */
static inline double embla_limit_of(const embla_leader *best)
{
    return isinf(best->key) ? best->key : best->key - 1e-9 * (1.0 + fabs(best->key));
}

/* ---- the order of floats ---- */

/* x - most, but 0 for two equal infinities. */
static inline double embla_below(double x, double most)
{
    return x == most ? 0.0 : x - most;
}

/* Maps floats to integers in the same order; -0 maps to the integer of 0. */
static inline uint32_t embla_place_of(float x)
{
    uint32_t bits = embla_bits(x == 0.0f ? 0.0f : x);
    return bits & 0x80000000u ? ~bits : bits | 0x80000000u;
}

static inline float embla_at_place(uint32_t place)
{
    return embla_float(place & 0x80000000u ? place & 0x7fffffffu : ~place);
}

#endif
