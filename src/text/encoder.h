/* SPDX-License-Identifier: Apache-2.0 */
/* The struct behind embla_encoder, and the rules of the libraries that static models come from. */
#ifndef EMBLA_TEXT_ENCODER_H
#define EMBLA_TEXT_ENCODER_H

#include "embla_text.h"
#include "table/table.h"
#include "text/tokenizer.h"

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

struct embla_encoder {
    embla_tokenizer *tokenizer;
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
};

/* encoder.c; compat is not AUTO. */
const embla_compat_rules *embla_compat_rules_of(embla_compat compat);

#endif
