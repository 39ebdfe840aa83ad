/* SPDX-License-Identifier: Apache-2.0 */
/* Makes the checksums of a changed compiled tokenizer right again, so that the checks behind them
 * are reached. */
#ifndef EMBLA_FUZZ_COMPILED_H
#define EMBLA_FUZZ_COMPILED_H

#include <string.h>

#include "base/checksum.h"
#include "tokenizer/compiled.h"

/* Does nothing if the places in the header are not inside the file. */
static inline void compiled_seal(uint8_t *bytes, size_t size)
{
    embla_compiled_header h;
    const size_t sums = sizeof h + EMBLA_SECTIONS * sizeof(embla_compiled_section);
    if (size < sums) return;
    memcpy(&h, bytes, sizeof h);
    if (h.tables < sums || h.tables > size) return;
    const size_t tables = (size_t)h.tables;
    uint8_t *to = bytes + sums;
    for (size_t at = tables; at < size && to + 8 <= bytes + tables; at += EMBLA_COMPILED_BLOCK) {
        size_t left = size - at;
        uint64_t sum =
            embla_checksum_of(bytes + at, left < EMBLA_COMPILED_BLOCK ? left : EMBLA_COMPILED_BLOCK)
                .low;
        memcpy(to, &sum, sizeof sum);
        to += sizeof sum;
    }
    h.checksum = 0;
    memcpy(bytes, &h, sizeof h);
    h.checksum = embla_checksum_of(bytes, tables).low;
    memcpy(bytes, &h, sizeof h);
}

#endif
