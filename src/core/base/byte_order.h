/* SPDX-License-Identifier: Apache-2.0 */
/* The order of bytes. Files are little-endian. In memory, f32 and f64 are in the order of the
 * machine, because loops use them as numbers; so their bytes are reversed where they are read from
 * a file or written to one. All other dtypes are read byte by byte: their rows have the same bytes
 * in files and in memory. On little-endian machines nothing here does anything.
 */
#ifndef EMBLA_BASE_BYTE_ORDER_H
#define EMBLA_BASE_BYTE_ORDER_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "embla.h"

static inline bool embla_order_is_big(void)
{
    return __BYTE_ORDER__ != __ORDER_LITTLE_ENDIAN__;
}

/* Reverses the bytes of each number of `size` bytes on big-endian machines. */
static inline void embla_order_turn(void *numbers, size_t size, size_t count)
{
    if (!embla_order_is_big()) return;
    for (unsigned char *p = numbers, *end = p + size * count; p < end; p += size)
        for (size_t i = 0; i < size / 2; i++) {
            unsigned char first = p[i];
            p[i] = p[size - 1 - i];
            p[size - 1 - i] = first;
        }
}

/* Whether rows of this dtype have other bytes in memory than in files. */
static inline bool embla_order_differs(embla_dtype dtype)
{
    return embla_order_is_big() && (dtype == EMBLA_F32 || dtype == EMBLA_F64);
}

/* From the order of files to that of memory, or back, for `bytes` bytes of rows. */
static inline void embla_order_rows(embla_dtype dtype, void *rows, size_t bytes)
{
    size_t size = dtype == EMBLA_F64 ? 8 : 4;
    if (embla_order_differs(dtype)) embla_order_turn(rows, size, bytes / size);
}

#endif
