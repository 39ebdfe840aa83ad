/* SPDX-License-Identifier: Apache-2.0 */
/* Finds the different numbers of a list of row numbers. */
#ifndef EMBLA_LOOKUP_UNIQUE_H
#define EMBLA_LOOKUP_UNIQUE_H

#include <stddef.h>
#include <stdint.h>

#include "base/hash.h"
#include "base/status.h"

enum { EMBLA_UNIQUE_MOST = 1 << 30 }; /* maximum row numbers of a list: slots have 32 bits */

/* The hash of a row number: its high bits. */
static inline uint64_t embla_unique_hash(uint64_t row)
{
    return row * EMBLA_GOLDEN;
}

/* The number of slots for a list of `count` row numbers: a power of two, 2 to 4 slots for each. */
EMBLA_PRIVATE size_t embla_unique_slots(size_t count);
/* Writes the different rows to unique, in the order of their first occurrence, and the index of
 * each row among them to where. Returns their number. slots is memory for embla_unique_slots(count)
 * numbers; what is in it does not matter. */
EMBLA_PRIVATE size_t embla_unique_find(const int64_t *rows, size_t count, uint32_t *slots,
                                       int64_t *unique, int64_t *where);

#endif
