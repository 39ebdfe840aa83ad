/* SPDX-License-Identifier: Apache-2.0 */
/* The layout of one block of memory with several arrays. Add each array first and keep its offset;
 * then allocate `bytes`. The arrays are freed together, and need only one allocation. A zeroed
 * layout is empty. */
#ifndef EMBLA_BASE_LAYOUT_H
#define EMBLA_BASE_LAYOUT_H

#include "base/checked.h"

typedef struct {
    size_t bytes;
    bool too_large; /* the arrays do not fit in memory; no offset is valid */
} embla_layout;

/* Adds an array of `count` elements of `size` bytes, which begins on a line of 64 bytes. Returns
 * its offset in the block. */
static inline size_t embla_layout_add(embla_layout *layout, uint64_t count, size_t size)
{
    enum { LINE = 64 };
    size_t at = layout->bytes;
    uint64_t bytes;
    if (!embla_mul_ok(count, size, &bytes) || !embla_add_ok(bytes, at + LINE - 1, &bytes) ||
        !embla_size_ok(bytes, &layout->bytes)) {
        layout->too_large = true;
        return 0;
    }
    layout->bytes = layout->bytes / LINE * LINE;
    return at;
}

#endif
