/* SPDX-License-Identifier: Apache-2.0 */
/* Different row numbers by a hash table with open addresses. Only as many slots are used as the
 * list needs, so a short list is not slowed by the room for a long one. */
#include "lookup/unique.h"

#include <string.h>

static unsigned slot_bits(size_t count)
{
    unsigned bits = 4;
    while ((size_t)1 << bits < 2 * count) bits++;
    return bits;
}

size_t embla_unique_slots(size_t count)
{
    return (size_t)1 << slot_bits(count);
}

/* A slot is 1 + an index in unique; 0 means free. */
size_t embla_unique_find(const int64_t *rows, size_t count, uint32_t *slots, int64_t *unique,
                         int64_t *where)
{
    unsigned bits = slot_bits(count);
    size_t mask = ((size_t)1 << bits) - 1, found = 0;
    memset(slots, 0, (mask + 1) * sizeof *slots);
    for (size_t i = 0; i < count; i++) {
        size_t at = (size_t)(embla_unique_hash((uint64_t)rows[i]) >> (64 - bits));
        while (slots[at] != 0 && unique[slots[at] - 1] != rows[i]) at = (at + 1) & mask;
        if (slots[at] == 0) {
            unique[found++] = rows[i];
            slots[at] = (uint32_t)found;
        }
        where[i] = (int64_t)slots[at] - 1;
    }
    return found;
}
