/* SPDX-License-Identifier: Apache-2.0 */
/* What stands behind embla_ngram and embla_fold. Everything that could be refused was refused
 * when they were made: embla_ngram_rows relies on it and checks tokens only.
 *
 * One column is one head of one order. Its row number is offset + (mix mod size), and mix mod
 * size is taken by a multiplication with `inverses` or `guesses`, see ngram.c.
 */
#ifndef EMBLA_NGRAM_NGRAM_H
#define EMBLA_NGRAM_NGRAM_H

#include "base/status.h"
#include "embla_store.h"

enum {
    EMBLA_NGRAM_ORDERS_MOST = 8,
    EMBLA_NGRAM_HEADS_MOST = 64,
    EMBLA_NGRAM_LAYERS_MOST = 256,
    /* The bound of multipliers is then above 2^32, where numpy draws as we do. */
    EMBLA_NGRAM_VOCAB_MOST = 1 << 29
};

struct embla_fold {
    size_t bytes; /* of this block, values included */
    int64_t tokens, count;
    int32_t *values; /* tokens; each is in 0 .. count-1 */
};

struct embla_ngram {
    size_t bytes; /* of this block, all arrays included */
    embla_ngram_kind kind;
    int64_t tokens, vocab; /* what comes in, what is hashed: below these */
    int64_t rows, used;
    size_t orders, heads, columns, history;
    size_t padded; /* columns, up to a multiple of 8: so many numbers every array of them has */
    int32_t layer, pad, eos;
    const int32_t *folded; /* tokens; NULL: they are hashed as they come */
    embla_fold *own;       /* what folded belongs to, if it is not the caller's */

    /* What a token is seen as. */
    uint32_t filler;   /* engram, qwen: stands where an n-gram does not reach; longcat: 0 */
    uint32_t wall;     /* a token with a barrier.. */
    bool wall_alone;   /* ..and whether it has no tokens before it either */
    int32_t stop;      /* the token that n-grams of later ones do not pass; -1: there is none */
    bool stop_nothing; /* where it stands itself nothing counts */

    int64_t *multipliers;     /* orders; NULL: longcat, identity */
    int64_t *sizes, *offsets; /* columns; NULL: identity */
    uint64_t *inverses;       /* columns: floor((2^64 - 1) / size) */
    double *guesses;          /* columns: a little less than 1 / size */
    bool wide;                /* guesses are good enough: sizes from 2^14 to 2^32, mix below 2^63 */
    uint64_t *powers;         /* longcat: orders x padded columns, vocab^s mod size; 0 where the
                                 order of a column does not reach s */
};

enum { EMBLA_NGRAM_QWEN_SEED = 1234, EMBLA_NGRAM_QWEN_MULTIPLE = 128, EMBLA_NGRAM_PAD_TOKEN = 2 };

/* Which of the layers that have a table is meant: its place among them. name is the model's. */
EMBLA_CHECKED embla_status embla_ngram_choose(const char *name, const int32_t *layers, size_t count,
                                              int32_t layer, size_t *out);
/* What a token that stands before the start counts as; fold may be NULL. */
EMBLA_CHECKED embla_status embla_ngram_pad(const embla_fold *fold, int64_t token, int32_t *out);

/* Room for tokens values, all 0. EMBLA_ERR_ARGUMENT for none, or more than there can be. */
EMBLA_CHECKED embla_status embla_fold_room(uint64_t tokens, embla_fold **out);
/* Whether its values are given out in order; fills count. name is what the sentence calls it. */
EMBLA_CHECKED embla_status embla_fold_check(embla_fold *fold, const char *name);

/* The constants of the rules, for who has to compare them with a file's. out: columns. */
EMBLA_CHECKED embla_status embla_ngram_primes(int64_t base, size_t skip, size_t count,
                                              int64_t *out);
void embla_ngram_engram_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out);
void embla_ngram_qwen_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out);
/* numpy's default_rng(seed): its first numbers of 64 bits. For the rules above, and for tests
 * that hold it against what numpy says. */
void embla_ngram_numpy(uint64_t seed, size_t count, uint64_t *out);

#endif
