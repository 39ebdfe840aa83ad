/* SPDX-License-Identifier: Apache-2.0 */
/* embla_lab.h - what is done to a table: see what it costs.
 *
 * The rules of embla.h hold here too. Link libembla_lab, which links libembla.
 */
#ifndef EMBLA_LAB_H
#define EMBLA_LAB_H

#include "embla.h"

#ifdef __cplusplus
extern "C" {
#endif

/* ---- cost: parameters, bytes and operations ---- */

/* The tables of a model. Zero leaves a part out. */
typedef struct {
    int64_t rows;              /* of the token table; at least 1 */
    int64_t dim;               /* at least 1 */
    int64_t positions;         /* rows of a learned position table */
    int64_t layers;            /* of a GPT trunk: 12 * layers * dim^2 parameters */
    int64_t trunk;             /* parameters outside the tables, where known; instead of layers */
    int64_t ngram_rows;        /* rows of all hashed n-gram tables together */
    int64_t ngram_dim;         /* numbers in one of their rows */
    int64_t ngram_scale_bytes; /* of scales, kept beside each of their rows */
    int64_t ngram_per_token;   /* of their rows, looked up for one token */
    embla_dtype dtype;         /* of token table, positions, head and trunk; 0: f32 */
    embla_dtype ngram_dtype;   /* 0: the same */
    bool untied;               /* the head is a table of its own */
} embla_cost_model;

/* One part of it. */
typedef struct {
    int64_t parameters;
    int64_t bytes;
} embla_cost_part;

typedef struct {
    embla_cost_part tokens, positions, head, ngram, trunk; /* a tied head is 0 here */
    embla_cost_part tables;                                /* all of them but the trunk */
    embla_cost_part total;
    int64_t lookup_bytes;  /* read for one token: its row, its position's, its n-gram rows */
    int64_t one_hot_madds; /* multiply-adds if the token's row were a one-hot product */
    int64_t head_madds;    /* multiply-adds of the head for one token, tied or not */
    int64_t head_bytes;    /* read by the head for one token */
} embla_cost;

/* Works out what model costs. EMBLA_ERR_ARGUMENT for a size that is missing, below
 * zero or too large for 64 bits, EMBLA_ERR_SHAPE for a dim that is not whole blocks. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_of(const embla_cost_model *model, embla_cost *out);

/* The name of the n-th published model, from 0. NULL past the last. */
EMBLA_API const char *embla_cost_preset_name(size_t n);
/* What it is and where its figures come from. NULL past the last. */
EMBLA_API const char *embla_cost_preset_about(size_t n);
/* EMBLA_ERR_NOT_FOUND lists the names there are. */
EMBLA_API EMBLA_CHECKED embla_status embla_cost_preset(const char *name, embla_cost_model *out);

#ifdef __cplusplus
}
#endif
#endif
