/* SPDX-License-Identifier: Apache-2.0 */
/* Lists that are kept between texts: they grow by doubling and are never made smaller, so texts of
 * the same size allocate nothing. */
#ifndef EMBLA_TOKENIZER_GROW_H
#define EMBLA_TOKENIZER_GROW_H

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

/* Makes room for `need` items of item_bytes each; the first `used` ones are kept. items is the
 * address of a pointer of any type, NULL at first; *room is its number of items. */
EMBLA_CHECKED static inline embla_status
embla_grow(void *items, size_t *room, size_t used, size_t need, size_t item_bytes, const char *what)
{
    void *old = NULL, *memory = NULL;
    uint64_t bytes = 0;
    size_t size = 0, count = *room < 64 ? 64 : *room * 2;
    if (need <= *room) return EMBLA_OK;
    if (count < need) count = need;
    if (!embla_mul_ok(count, item_bytes, &bytes) || !embla_size_ok(bytes, &size))
        return embla_fail(EMBLA_ERR_MEMORY, "%zu items of %zu bytes for %s do not fit in memory",
                          need, item_bytes, what);
    memcpy(&old, items, sizeof old);
    EMBLA_TRY(embla_mem_new(size, what, &memory));
    if (used > 0) memcpy(memory, old, used * item_bytes);
    embla_mem_free(old, *room * item_bytes);
    memcpy(items, &memory, sizeof memory);
    *room = count;
    return EMBLA_OK;
}

#endif
