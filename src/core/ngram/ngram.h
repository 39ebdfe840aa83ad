/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of embla_ngram and embla_fold. All parameters are checked when they are created, so
 * embla_ngram_rows checks only the tokens.
 *
 * Each row number of a token has a hash of its own. It is offset + (mix mod size). The remainder is
 * computed by multiplication with `inverses` or `guesses` (ngram.c).
 */
#ifndef EMBLA_NGRAM_NGRAM_H
#define EMBLA_NGRAM_NGRAM_H

#include "base/status.h"
#include "embla_store.h"

enum {
    EMBLA_NGRAM_ORDERS_MOST = 8,
    EMBLA_NGRAM_ROWS_MOST = 64,
    EMBLA_NGRAM_LAYERS_MOST = 256,
    /* with this limit, the bound of the multipliers is above 2^32, where numpy uses the same
     * algorithm */
    EMBLA_NGRAM_VOCAB_MOST = 1 << 29
};

struct embla_fold {
    size_t bytes; /* of this block, including the values */
    int64_t tokens, count;
    int32_t *values; /* tokens; each is in 0 .. count-1 */
};

struct embla_ngram {
    size_t bytes; /* of this block, including all arrays */
    embla_ngram_kind kind;
    int64_t tokens, vocab; /* tokens are below `tokens`; hashed values are below `vocab` */
    int64_t rows, used;
    size_t orders, rows_per_ngram, rows_per_token, history;
    size_t
        padded; /* rows_per_token, rounded up to a multiple of 8: the length of the arrays below */
    int32_t layer, pad, eos;
    const int32_t *folded;  /* tokens; NULL means that tokens are hashed unchanged */
    const embla_fold *fold; /* the fold that folded belongs to */
    embla_fold *own;        /* the same; NULL if the caller owns it */

    /* How a token is hashed. */
    uint32_t filler;   /* engram, qwen: fills an n-gram that ends early; longcat: 0 */
    uint32_t wall;     /* the value of a token with a barrier */
    bool wall_alone;   /* such a token has no tokens before it either */
    int32_t stop;      /* the token that ends n-grams (EOS); -1 if there is none */
    bool stop_nothing; /* the EOS token itself is hashed as 0, without tokens before it */

    int64_t *multipliers;     /* orders; NULL for longcat and identity */
    int64_t *sizes, *offsets; /* rows_per_token; NULL for identity */
    uint64_t *inverses;       /* the same: floor((2^64 - 1) / size) */
    double *guesses;          /* the same: slightly less than 1 / size */
    bool wide;        /* guesses are exact enough: sizes from 2^14 to 2^32, mix below 2^63 */
    uint64_t *powers; /* longcat: orders x padded, vocab^s mod size; 0 beyond a column's order */
};

enum { EMBLA_NGRAM_QWEN_SEED = 1234, EMBLA_NGRAM_QWEN_MULTIPLE = 128, EMBLA_NGRAM_PAD_TOKEN = 2 };

/* Finds the index of a layer in the list of layers with a table. name is the model's. */
EMBLA_CHECKED embla_status embla_ngram_choose(const char *name, const int32_t *layers, size_t count,
                                              int32_t layer, size_t *out);
/* The value for positions before the start; fold may be NULL. */
EMBLA_CHECKED embla_status embla_ngram_pad(const embla_fold *fold, int64_t token, int32_t *out);

/* Creates a fold with `tokens` values, all 0. EMBLA_ERR_ARGUMENT if tokens is 0 or too large. */
EMBLA_CHECKED embla_status embla_fold_room(uint64_t tokens, embla_fold **out);
/* Checks that the values were assigned in order, and sets count. name is used in messages. */
EMBLA_CHECKED embla_status embla_fold_check(embla_fold *fold, const char *name);

/* The constants as the models' rules define them, to compare them with those of a file. out has
 * `rows_per_token` entries. */
EMBLA_CHECKED embla_status embla_ngram_primes(int64_t base, size_t skip, size_t count,
                                              int64_t *out);
void embla_ngram_engram_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out);
void embla_ngram_qwen_multipliers(int64_t vocab, uint64_t seed, size_t orders, int64_t *out);
/* The first 64-bit numbers of numpy's default_rng(seed). Used above, and by tests that compare it
 * with numpy. */
void embla_ngram_numpy(uint64_t seed, size_t count, uint64_t *out);

#endif
