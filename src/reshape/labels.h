/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the rows on their way to another file: as labels inside it where the format
 * has them, in NAME.vocab.txt beside it where it has not, and checked after they are written.
 */
#ifndef EMBLA_RESHAPE_LABELS_H
#define EMBLA_RESHAPE_LABELS_H

#include "formats/checkpoint.h"
#include "formats/vocab.h"
#include "reshape/account.h"

/* How a format keeps words. */
typedef enum {
    EMBLA_LABELS_BESIDE, /* not at all: NAME.vocab.txt */
    EMBLA_LABELS_VEC,    /* one for each row, without spaces; "#row" for a row without */
    EMBLA_LABELS_GGUF    /* tokenizer.ggml.tokens; "[PADrow]" for a row without */
} embla_labels_place;

typedef struct {
    embla_vocab *vocab; /* holds the bytes; NULL: there are no words */
    embla_name *names;  /* one for each row; bytes NULL: it has none */
    size_t count;       /* rows (or tokens, where rows are shared), or 0: none has a word */
    bool own;           /* they came with the file itself, not with a tokenizer beside it */
} embla_labels;

/* The words of the rows of tokens, by row; mapped: a tensor beside says which row is whose,
 * and words stay by token. What was not to be had is worth a note. */
EMBLA_CHECKED embla_status embla_labels_find(const embla_checkpoint *checkpoint,
                                             const embla_entry *tokens, bool mapped,
                                             embla_arena *arena, embla_account *account,
                                             embla_labels *out);
void embla_labels_free(embla_labels *labels);
/* Notes how many rows will be called by their number. */
EMBLA_CHECKED embla_status embla_labels_note(const embla_labels *labels, embla_labels_place place,
                                             uint64_t rows, const char *format,
                                             embla_account *account);
/* words, read back, are the labels of so many rows. EMBLA_ERR_IO names the first that is not. */
EMBLA_CHECKED embla_status embla_labels_check(const embla_labels *labels, embla_labels_place place,
                                              uint64_t rows, const embla_vocab *words);

#endif
