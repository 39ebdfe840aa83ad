/* SPDX-License-Identifier: Apache-2.0 */
/* Checked arithmetic on sizes. Returns true and sets *out if the exact result fits; otherwise *out
 * is unchanged. */
#ifndef EMBLA_BASE_CHECKED_H
#define EMBLA_BASE_CHECKED_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

static inline bool embla_mul_ok(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t result;
    if (__builtin_mul_overflow(a, b, &result)) return false;
    *out = result;
    return true;
}

static inline bool embla_add_ok(uint64_t a, uint64_t b, uint64_t *out)
{
    uint64_t result;
    if (__builtin_add_overflow(a, b, &result)) return false;
    *out = result;
    return true;
}

/* A possible size of one object in memory: at most PTRDIFF_MAX. */
static inline bool embla_size_ok(uint64_t bytes, size_t *out)
{
    if (bytes > (uint64_t)PTRDIFF_MAX) return false;
    *out = (size_t)bytes;
    return true;
}

/* As a size; the largest one for what is larger. */
static inline size_t embla_size_most(uint64_t n)
{
    return n > (uint64_t)PTRDIFF_MAX ? (size_t)PTRDIFF_MAX : (size_t)n;
}

/* Bytes from the start of the first of count objects to the end of the last, if each has size bytes
 * and begins stride bytes after the previous one. */
static inline bool embla_span_ok(uint64_t count, uint64_t stride, uint64_t size, size_t *out)
{
    uint64_t bytes = 0;
    if (count > 0 &&
        !(embla_mul_ok(count - 1, stride, &bytes) && embla_add_ok(bytes, size, &bytes)))
        return false;
    return embla_size_ok(bytes, out);
}

#endif
