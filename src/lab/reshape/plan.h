/* SPDX-License-Identifier: Apache-2.0 */
/* The plan of a conversion, made before anything is written: which tensors are written, with which
 * names and types, and which metadata and words.
 */
#ifndef EMBLA_RESHAPE_PLAN_H
#define EMBLA_RESHAPE_PLAN_H

#include "reshape/labels.h"
#include "reshape/stream.h"

enum { EMBLA_TIE_SAMPLE = 64 }; /* rows of table and head that are compared, in both files */

typedef struct {
    embla_stream_buffers buffers;
    const embla_checkpoint *cp;
    const char *path;
    const embla_convert_options *options;
    const embla_format *format;
    const embla_entry *tokens;                 /* the token table; NULL if unknown */
    const embla_entry *mapping;                /* maps tokens to rows; NULL: token i has row i */
    size_t role_count[EMBLA_ROLE_WEIGHTS + 1]; /* number of tensors of each role */
    embla_tie tie;                             /* if has_tie */
    embla_account *account;
    embla_arena arena;
    embla_part *parts;
    embla_stream *streams; /* one for each part */
    size_t count;
    embla_pair *pairs; /* metadata */
    size_t pair_count;
    embla_labels labels;
    const char *beside; /* NAME.vocab.txt */
    bool words_beside;  /* it will be written */
    bool words_replace; /* it exists, with words that we wrote */
    bool copies_keys;   /* from the same format: the writer copies all keys and words */
    bool elsewhere;     /* path is in another folder than the source */
    bool has_tie;       /* false for formats that hold one table */
} embla_plan;

/* Makes the plan; the caller has set cp, path, options and account. Call embla_plan_free
 * afterwards, also after a failure. The account stays the caller's. */
EMBLA_CHECKED embla_status embla_plan_make(embla_plan *plan);
void embla_plan_free(embla_plan *plan);

/* labels.c: plans which words are written, and where. */
EMBLA_CHECKED embla_status embla_plan_words(embla_plan *plan);

#endif
