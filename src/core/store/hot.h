/* SPDX-License-Identifier: Apache-2.0 */
/* Rows that are kept in memory, within a budget of bytes: a fixed set, usually the most frequent
 * rows of a corpus, and a part in which rows that were read replace those not used for a while. */
#ifndef EMBLA_STORE_HOT_H
#define EMBLA_STORE_HOT_H

#include "store/store.h"

typedef struct embla_hot embla_hot;

/* Allocates at most hot_bytes, and reads the fixed rows: those of hot_rows and then those of
 * hot_file, until seven eighths of the memory are used. With hot_rows_per_ngram, the rows of an
 * n-gram are kept and replaced together. */
EMBLA_CHECKED embla_status embla_hot_open(const embla_store *store,
                                          const embla_tickets_options *options, embla_hot **out);
void embla_hot_close(embla_hot *hot);
/* Locks the rows, for embla_hot_find and embla_hot_insert. */
void embla_hot_lock(embla_hot *hot);
void embla_hot_unlock(embla_hot *hot);
enum { EMBLA_HOT_GROUP = 32 };
/* Copies a part of each of these rows, at most EMBLA_HOT_GROUP, to out + i * stride if it is here.
 * Bit i of the result tells whether row i was. *fixed grows by the rows that were in the fixed
 * set. */
uint32_t embla_hot_find(embla_hot *hot, const int64_t *rows, size_t count,
                        const embla_row_part *part, char *out, size_t stride, uint32_t *fixed);
/* The rows that are kept together. */
size_t embla_hot_rows_per_ngram(const embla_hot *hot);
/* Keeps the whole rows of an n-gram, unless they are already here. */
void embla_hot_insert(embla_hot *hot, const int64_t *rows, const char *bytes);
/* The rows that are kept, and the bytes that were allocated. */
void embla_hot_count(embla_hot *hot, int64_t *rows, int64_t *bytes);

#endif
