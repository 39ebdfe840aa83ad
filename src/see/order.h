/* SPDX-License-Identifier: Apache-2.0 */
/* Rows put in the order of a number: a radix sort of 64-bit keys, eight bits at a time. It
 * keeps rows of the same key in the order they came in, so ties go by row number, and its
 * time does not depend on what the numbers are. Memory is the caller's.
 */
#ifndef EMBLA_SEE_ORDER_H
#define EMBLA_SEE_ORDER_H

#include <stddef.h>
#include <stdint.h>
#include <string.h>

typedef struct {
    uint64_t key;
    int64_t row;
} embla_key;

/* Doubles as keys, the smallest first: 0 and -0 are the same, a NaN is the last. */
static inline uint64_t embla_key_up(double value)
{
    uint64_t bits;
    value += 0.0;
    if (value != value) return UINT64_MAX;
    memcpy(&bits, &value, sizeof bits);
    return bits >> 63 ? ~bits : bits | UINT64_C(1) << 63;
}

/* The largest first. */
static inline uint64_t embla_key_down(double value)
{
    return embla_key_up(-value);
}

/* Sorts items by key; space has room for as many. */
static inline void embla_order(embla_key *items, embla_key *space, size_t count)
{
    embla_key *from = items, *to = space;
    for (int shift = 0; shift < 64; shift += 8) {
        size_t begin[257] = {0};
        for (size_t i = 0; i < count; i++) begin[(from[i].key >> shift & 255) + 1]++;
        if (count == 0 || begin[(from[0].key >> shift & 255) + 1] == count)
            continue; /* one digit */
        for (size_t digit = 0; digit < 256; digit++) begin[digit + 1] += begin[digit];
        for (size_t i = 0; i < count; i++) to[begin[from[i].key >> shift & 255]++] = from[i];
        embla_key *swap = from;
        from = to;
        to = swap;
    }
    if (from != items && count > 0) memcpy(items, from, count * sizeof *items);
}

#endif
