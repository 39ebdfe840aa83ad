/* SPDX-License-Identifier: Apache-2.0 */
/* What a conversion will do, decided before a byte is written: which tensors go, under which
 * names, stored as what; which metadata and which words go along.
 */
#ifndef EMBLA_RESHAPE_PLAN_H
#define EMBLA_RESHAPE_PLAN_H

#include "reshape/labels.h"
#include "reshape/stream.h"

typedef struct {
    const embla_checkpoint *cp;
    const char *path;
    const embla_convert_options *options;
    const embla_format *format;
    embla_labels_place place; /* where the format keeps words */
    bool text;                /* numbers become decimals */
    bool same_gguf; /* from GGUF to GGUF: its writer copies what the file says of itself */
    const embla_entry *tokens; /* the table; NULL: not known */
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
    embla_desk desk;
} embla_plan;

/* Fills in all but checkpoint, path, options and account, which are set. Freed with
 * embla_plan_free, also after a failure; the account is the caller's. */
EMBLA_CHECKED embla_status embla_plan_make(embla_plan *plan);
void embla_plan_free(embla_plan *plan);

#endif
