/* SPDX-License-Identifier: Apache-2.0 */
/* Numbers that look random, from numbers in order: splitmix64 (Steele, Lea and Flood, "Fast
 * Splittable Pseudorandom Number Generators", 2014).
 *
 * Header only, and without other headers of the library: benchmarks include it too
 * (docs/decisions/018).
 */
#ifndef EMBLA_BASE_HASH_H
#define EMBLA_BASE_HASH_H

#include <stddef.h>
#include <stdint.h>

#define EMBLA_GOLDEN UINT64_C(0x9E3779B97F4A7C15) /* 2^64 / the golden ratio */

/* The finishing steps of splitmix64: each bit of x changes about half of the bits. */
static inline uint64_t embla_mix64(uint64_t x)
{
    x = (x ^ (x >> 30)) * UINT64_C(0xBF58476D1CE4E5B9);
    x = (x ^ (x >> 27)) * UINT64_C(0x94D049BB133111EB);
    return x ^ (x >> 31);
}

/* splitmix64 in state x. The next state is x + EMBLA_GOLDEN. */
static inline uint64_t embla_splitmix64(uint64_t x)
{
    return embla_mix64(x + EMBLA_GOLDEN);
}

/* A key of row numbers, in their order: of an n-gram. Files have it (docs/formats.md, packs). */
static inline uint64_t embla_hash_rows(const int64_t *rows, size_t count)
{
    uint64_t key = count;
    for (size_t i = 0; i < count; i++) key = embla_splitmix64(key ^ (uint64_t)rows[i]);
    return key;
}

#endif
