/* SPDX-License-Identifier: Apache-2.0 */
/* The cut of top-k or top-p in logits that are computed again in each pass and not stored. */
#ifndef EMBLA_LEARN_SIEVE_H
#define EMBLA_LEARN_SIEVE_H

#include "learn/choose.h"
#include "learn/head.h"

enum {
    EMBLA_SIEVE_BITS = 12, /* bits of a logit that one pass finds */
    EMBLA_SIEVE_BUCKETS = 1 << EMBLA_SIEVE_BITS
};

/* A pass counts the tokens inside the cut by a few bits of their logits, mapped to integers in
 * order. Only logits whose higher bits equal those of `among` count. */
typedef struct {
    const embla_logit_walk *walk; /* of one vector */
    float most;                   /* the largest logit */
    double inverse, unit;         /* unit is the mass of the likeliest token, as an integer */
    embla_cut cut;
    uint32_t among;
    unsigned shift, above; /* bits below and above the counted ones */
    uint64_t *tallies;     /* threads x {counts, masses} x EMBLA_SIEVE_BUCKETS */
    /* of each chunk: tokens with the cut's logit; NULL means that tallies are wanted */
    int64_t *ties;
    float tie;
} embla_sieve;

/* Moves the cut to the token where, from the likeliest on, `most` tokens or the share of the total
 * mass is reached; 0 disables either. */
EMBLA_CHECKED embla_status embla_sieve_move(embla_sieve *s, uint64_t most, double share);

#endif
