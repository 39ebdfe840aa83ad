/* SPDX-License-Identifier: Apache-2.0 */
/* What pack.c (writing), pack_open.c and pack_verify.c share. */
#ifndef EMBLA_STORE_PACK_H
#define EMBLA_STORE_PACK_H

#include "base/checksum.h"
#include "checkpoint/pack_manifest.h"
#include "store/store.h"

/* Rows that are read at once: some of them, a multiple of those in a group of pages. */
int64_t embla_pack_window(const embla_pack *pack);
/* Whether a pack can be made from this store, or compared with it: it must hold all rows of its
 * table, and they must be in files. EMBLA_ERR_UNSUPPORTED otherwise. */
EMBLA_CHECKED embla_status embla_pack_check_source(const embla_store *source);
/* Adds rows first .. first+count-1 to the checksums of their blocks. end_block is called after the
 * last row of block `number`; it ends the checksum and begins the next. */
typedef embla_status embla_pack_sum_fn(void *context, int64_t number);
EMBLA_CHECKED embla_status embla_pack_sum_rows(const embla_pack *pack, embla_checksum_state *sum,
                                               const char *rows, int64_t first, int64_t count,
                                               embla_pack_sum_fn *end_block, void *context);
/* The hasher as a manifest has it, and its layer. Its lists belong to the hasher. */
EMBLA_CHECKED embla_status embla_pack_hasher_of(const embla_ngram *ngram, embla_pack_hasher *out,
                                                int32_t *layer);
void embla_pack_describe(const embla_pack *pack, embla_pack_report *out);

#endif
