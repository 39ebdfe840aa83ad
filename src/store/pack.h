/* SPDX-License-Identifier: Apache-2.0 */
/* What pack.c (writing), pack_open.c and pack_verify.c share. */
#ifndef EMBLA_STORE_PACK_H
#define EMBLA_STORE_PACK_H

#include "base/checksum.h"
#include "formats/pack_manifest.h"
#include "store/store.h"

/* Rows that are read at once: some of them, a multiple of those in a group of pages. */
int64_t embla_pack_window(const embla_pack *pack);
void embla_pack_describe(const embla_pack *pack, embla_pack_report *out);

#endif
