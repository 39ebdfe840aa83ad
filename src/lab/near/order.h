/* SPDX-License-Identifier: Apache-2.0 */
/* Sorts rows by a number: a radix sort of 64-bit keys, eight bits at a time. The sort is stable, so
 * rows with equal keys stay in the order of their row numbers. Its time does not depend on the
 * numbers. The caller provides the memory.
 */
#ifndef EMBLA_NEAR_ORDER_H
#define EMBLA_NEAR_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t key;
    int64_t row;
} embla_key;

/* A double as a key that sorts the smallest first. 0 and -0 have the same key; a NaN sorts last. */
static inline uint64_t embla_key_up(double value)
{
    uint64_t bits;
    value += 0.0;
    if (value != value) return UINT64_MAX;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The same for the largest first. */
static inline uint64_t embla_key_down(double value)
{
    return embla_key_up(-value);
}

/* Sorts count items by key; space has room for count items. */
static inline void embla_order(embla_key *items, embla_key *space, size_t count)
{
    embla_key *from = items, *to = space;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t begin[257] = {0};
        for (size_t i = 0; i < count; i++) begin[(from[i].key >> shift & 255) + 1]++;
        if (count == 0 || begin[(from[0].key >> shift & 255) + 1] == count)
            continue; /* all keys share this digit */
        for (size_t digit = 0; digit < 256; digit++) begin[digit + 1] += begin[digit];
        for (size_t i = 0; i < count; i++) to[begin[from[i].key >> shift & 255]++] = from[i];
        embla_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != items && count > 0) memcpy(items, from, count * sizeof *items);
}

#endif
