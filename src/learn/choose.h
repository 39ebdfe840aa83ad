/* SPDX-License-Identifier: Apache-2.0 */
/* The small parts of choosing a token: exponentials, the luck of a token, and the cut that top-k,
 * top-p and min-p make. Inline, because loops call them.
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
#include "base/half.h"
#include "base/random.h"

/* ---- sums of exponentials ---- */

/* e^d for d <= 0, relative error below 1e-14; 0 from -708 down and for NaN. 2^n times the
 * exponential series of what is left; n is read from the last bits of a sum that has no others. */
EMBLA_BODY double embla_body_power(double d)
{
    double c = d > -708.0 ? d : -708.0;
    double shifted = c * 1.4426950408889634 + 0x1.8p52, n = shifted - 0x1.8p52;
    double r = c - n * 0x1.62e42fefap-1 - n * 0x1.cf79abc9e3b3ap-40;
    double p = 1.0 / 39916800.0;
    p = p * r + 1.0 / 3628800.0;
    p = p * r + 1.0 / 362880.0;
    p = p * r + 1.0 / 40320.0;
    p = p * r + 1.0 / 5040.0;
    p = p * r + 1.0 / 720.0;
    p = p * r + 1.0 / 120.0;
    p = p * r + 1.0 / 24.0;
    p = p * r + 1.0 / 6.0;
    p = p * r + 0.5;
    p = p * r + 1.0;
    p = p * r + 1.0;
    uint64_t bits;
    double scale;
    memcpy(&bits, &shifted, sizeof bits);
    bits = (bits + 1023u) << 52;
    memcpy(&scale, &bits, sizeof scale);
    return d > -708.0 ? p * scale : 0.0;
}

/* The sum of e^((x - base) / temperature) over n logits: 16 partial sums, added as a tree.
 * base is finite and not below any of them; inverse is 1 / temperature. */
EMBLA_BODY double embla_body_mass(const float *x, size_t n, double base, double inverse)
{
    enum { LANES = 16 };
    double sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++)
            sums[j] += embla_body_power(((double)x[i + j] - base) * inverse);
    for (size_t j = 0; i + j < n; j++)
        sums[j] += embla_body_power(((double)x[i + j] - base) * inverse);
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

/* ---- luck ---- */

/* Tokens are drawn by Gumbel's trick: the one with the highest logit / temperature + luck,
 * luck = -ln(-ln(1 - u)), is token v with the probability of v. u is 52 bits of Philox
 * (base/random.h) at (seed, draw, token): 32 tokens share the numbers of 16 blocks. */
enum { EMBLA_LOT = 32 };

typedef uint32_t embla_luck_words[4][EMBLA_RANDOM_LANES];

/* The random words of tokens 32 lot .. 32 lot + 31; true if, by a bound that is cheap, any of
 * their logits x could reach limit with its luck: -ln(-ln(1 - u)) <= -ln(u), and that is at
 * most ln 2 times how many bits of u are 0 before the first 1, plus 1. */
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
    return -log(-log1p(-u));
}

/* ---- who is in the draw, and who leads ---- */

/* Who leads the draw. */
typedef struct {
    double key, luck; /* logit / temperature + luck */
    embla_scored who;
} embla_leader;

/* What stands before the cut takes part in the draw: tokens likelier than it, and itself; and
 * no logit below floor. */
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
    if (a->luck != b->luck) return a->luck > b->luck; /* keys that are infinite or very large */
    return a->who.row < b->who.row;
}

/* A leader that is not ahead of what it could be; keys are rounded, so a little less. */
static inline double embla_limit_of(const embla_leader *best)
{
    return isinf(best->key) ? best->key : best->key - 1e-9 * (1.0 + fabs(best->key));
}

/* ---- the order of floats ---- */

/* What there is to add to most to have x; an infinity is as likely as another. */
static inline double embla_below(double x, double most)
{
    return x == most ? 0.0 : x - most;
}

/* Floats in their order as whole numbers; -0 is 0. */
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
