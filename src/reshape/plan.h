/* SPDX-License-Identifier: Apache-2.0 */
/* What a conversion will do, decided before a byte is written: which tensors go, under which
 * names, stored as what; which metadata and which words go along.
 */
#ifndef EMBLA_RESHAPE_PLAN_H
#define EMBLA_RESHAPE_PLAN_H

#include <sys/stat.h>

#include "reshape/labels.h"
#include "reshape/stream.h"

enum { EMBLA_TIE_SAMPLE = 64 }; /* rows of table and head that are compared, before and after */

typedef struct {
    const embla_checkpoint *cp;
    const char *path;
    const embla_convert_options *options;
    const embla_format *format;
    embla_labels_place place; /* where the format keeps words */
    bool text;                /* numbers become decimals */
    bool same_gguf; /* from GGUF to GGUF: its writer copies what the file says of itself */
    const embla_entry *tokens;                 /* the table; NULL: not known */
    const embla_entry *mapping;                /* which row of it a token has; NULL: its own */
    size_t role_count[EMBLA_ROLE_WEIGHTS + 1]; /* tensors of each role */
    bool elsewhere;                            /* path is in another folder than the source */
    bool has_tie; /* tie is the verdict on the source; none for formats of one table */
    embla_tie tie;
    embla_account *account;
    embla_arena arena;
    embla_part *parts;
    embla_stream *streams; /* one for each part */
    size_t count;
    embla_pair *pairs; /* metadata */
    size_t pair_count;
    embla_labels labels;
    const char *beside; /* NAME.vocab.txt */
    bool words_beside;  /* it will be written .. */
    bool words_replace; /* .. and words that we wrote before are there */
    embla_desk desk;
} embla_plan;

/* Fills in all but checkpoint, path, options and account, which are set. Freed with
 * embla_plan_free, also after a failure; the account is the caller's. */
EMBLA_CHECKED embla_status embla_plan_make(embla_plan *plan);
void embla_plan_free(embla_plan *plan);

/* What is at a path, not opened; *there is false if nothing is. */
EMBLA_CHECKED embla_status embla_plan_look(int folder, const char *path, int flags,
                                           struct stat *out, bool *there);
/* Refuses a path that is taken, by a file that may not be replaced or by what is no file. */
EMBLA_CHECKED embla_status embla_plan_place(const char *path, bool overwrite);
/* labels.c: which words go along, and where they go. */
EMBLA_CHECKED embla_status embla_plan_words(embla_plan *plan);

#endif
