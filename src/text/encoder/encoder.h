/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_encoder, and the rules of the libraries that static models come from. */
#ifndef EMBLA_ENCODER_ENCODER_H
#define EMBLA_ENCODER_ENCODER_H

#include <stdatomic.h>

#include "base/checksum.h"
#include "embla_text.h"
#include "encoder/subwords.h"
#include "table/row_mean.h"
#include "tokenizer/tokenize.h"

typedef enum {
    EMBLA_DIVISOR_ADD,  /* norm + 1e-32 */
    EMBLA_DIVISOR_LEAST /* at least 1e-12 */
} embla_divisor;

/* What a library does with the tokens of a text. */
typedef struct {
    const char *name;
    bool drop_unknown; /* unknown tokens are left out */
    bool weighted;     /* the tensors `mapping` and `weights` are used */
    bool truncates;    /* truncation of tokenizer.json is applied */
    bool pads;         /* padding to a fixed length of tokenizer.json is applied */
    bool clips;        /* a token past the last row is the last row */
    size_t most;       /* tokens of a text; 0 means no limit */
    bool limit_first;  /* the limit also counts unknown tokens */
    embla_divisor divisor;
} embla_compat_rules;

/* Memory for the work of calls, which no call uses now. A call takes one by exchange and gives it
 * back: there is no lock. If all are in use, it makes another; what finds no free slot afterwards
 * is freed. Behind a pointer, because calls have a const encoder, and copies of it share the pool
 * (embla_fit makes one). */
enum { EMBLA_ENCODER_SLOTS = 8 };
typedef struct {
    _Atomic(embla_tokenized *) slots[EMBLA_ENCODER_SLOTS]; /* NULL means free */
} embla_encoder_pool;

struct embla_encoder {
    embla_tokenizer *tokenizer;
    embla_encoder_pool *pool; /* of this tokenizer */
    embla_table *table;
    double *weights; /* by token; NULL means that there are none */
    size_t weight_count;
    embla_compat compat; /* never AUTO */
    bool asked;          /* the caller chose compat: its limits apply */
    const char *why;
    bool normalize;
    double scale;      /* multiplies the mean: what a checkpoint does with its rows */
    size_t characters; /* of a typical token: a text has at most so many for each token */
    embla_compat_rules rules;
    embla_subwords *subwords; /* for words without a row; NULL means none */
    int64_t *counts;          /* how often each word occurs; NULL means unknown */
    size_t count_count;
    float *components; /* component_count x dim, removed from every vector; NULL means none */
    size_t component_count, component_bytes;
};

/* encoder.c; compat is not AUTO. */
const embla_compat_rules *embla_compat_rules_of(embla_compat compat);
bool embla_compat_is_st(embla_compat compat);
EMBLA_CHECKED embla_status embla_encoder_pool_new(embla_encoder_pool **out);
/* No call may use the encoder any more, and its tokenizer must still be open. */
void embla_encoder_pool_free(embla_encoder_pool *pool);

/* encoder_words.c: whether the checkpoint is a file of word vectors. */
bool embla_encoder_has_words(const embla_checkpoint *checkpoint);
/* Whether a file of words has the name of those that are written beside a table: NAME.vocab.txt. */
bool embla_names_rows(const char *file);
/* Makes the tokenizer of the checkpoint's words, and finds their counts and n-grams.
 * EMBLA_ERR_NOT_FOUND if it has no words. */
EMBLA_CHECKED embla_status embla_encoder_open_words(const embla_checkpoint *checkpoint,
                                                    embla_encoder *encoder);
/* The mean of the first *count words of a text, whose tokens and offsets are in e. *count becomes
 * the number of those that have a vector; if it is 0, nothing is written. */
EMBLA_CHECKED embla_status embla_encoder_word_mean(const embla_encoder *encoder,
                                                   const embla_row_mean *mean, embla_tokenized *e,
                                                   const char *text, size_t *count, float *out);

/* encoder_fit.c: the checksum of everything that decides what vector a text has. Reads all rows. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_encoder_checksum(const embla_encoder *encoder,
                                                                embla_checksum *out);
/* Reads a file of embla_fit, which must have been made for this model. */
EMBLA_CHECKED embla_status embla_encoder_read_fit(const char *path, embla_encoder *encoder);
/* Removes the components from a vector with all its numbers. */
void embla_encoder_remove(const embla_encoder *encoder, float *out);

#endif
