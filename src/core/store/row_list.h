/* SPDX-License-Identifier: Apache-2.0 */
/* A list of row numbers in a file: the rows, or the n-grams, of a corpus, most frequent first. For
 * hot rows and for the bundles of a pack. */
#ifndef EMBLA_STORE_ROW_LIST_H
#define EMBLA_STORE_ROW_LIST_H

#include "base/status.h"

/* Takes count row numbers, whole n-grams. *enough ends the list. */
typedef embla_status embla_row_list_fn(void *context, const int64_t *rows, size_t count,
                                       bool *enough);

/* Calls `add` with the numbers of a list, in order and some hundreds at a time. The file is one of
 *   an npy file of int64 with one dimension, a multiple of `rows_per_ngram` numbers
 *   an npy file of int64 with two dimensions, the second `rows_per_ngram`
 *   a pack with bundles of `rows_per_ngram` rows, or any if it is 1 */
EMBLA_CHECKED embla_status embla_row_list_read(const char *path, size_t rows_per_ngram,
                                               embla_row_list_fn *add, void *context);

#endif
