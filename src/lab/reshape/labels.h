/* SPDX-License-Identifier: Apache-2.0 */
/* The words of the rows that go to another file: inside it if its format has words, otherwise in
 * NAME.vocab.txt beside it. They are checked after they are written.
 */
#ifndef EMBLA_RESHAPE_LABELS_H
#define EMBLA_RESHAPE_LABELS_H

#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "reshape/account.h"

typedef struct {
    embla_vocab *vocab; /* owns the bytes; NULL if there are no words */
    embla_name *names;  /* one for each row; bytes NULL means that the row has no word */
    size_t count;       /* rows, or tokens if they share rows; 0 if none has a word */
    bool own;           /* they came from the file itself, not from a tokenizer beside it */
} embla_labels;

/* Finds the words of the rows of `tokens`, indexed by row. If mapped is true, a tensor maps tokens
 * to rows, and words are indexed by token. Words that cannot be used become a note. */
EMBLA_CHECKED embla_status embla_labels_find(const embla_checkpoint *checkpoint,
                                             const embla_entry *tokens, bool mapped,
                                             embla_arena *arena, embla_account *account,
                                             embla_labels *out);
void embla_labels_free(embla_labels *labels);
/* Adds a note about how many rows are named by their number. */
EMBLA_CHECKED embla_status embla_labels_note(const embla_labels *labels, embla_labels_place place,
                                             uint64_t rows, const char *format,
                                             embla_account *account);
/* Checks that words, which were read back, are the labels of `rows` rows. EMBLA_ERR_IO: the message
 * names the first row that differs. */
EMBLA_CHECKED embla_status embla_labels_check(const embla_labels *labels, embla_labels_place place,
                                              uint64_t rows, const embla_vocab *words);

#endif
