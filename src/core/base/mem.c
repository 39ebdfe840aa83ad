/* SPDX-License-Identifier: Apache-2.0 */
/* Memory comes from the C library for small blocks and from anonymous mappings for large ones. A
 * gather reads rows at random, so a large table on 4 KiB pages misses the TLB on every row. 2 MiB
 * pages, requested before the first access, avoid that. A mapping is also zero without being
 * written: a table of 8 GB of which three rows are used takes three pages. */
#include "base/mem.h"

#include <inttypes.h>
#include <stdatomic.h>
#include <stdint.h>
#include <string.h>

#include "base/checked.h"
#include "base/injected.h"
#include "system/system_memory.h"

/* Blocks of at least LARGE bytes are mapped, in multiples of it: it is a multiple of every page,
 * and most systems have huge pages of this size. */
enum { LARGE = 2 << 20, LINE = 64 };

static atomic_size_t live;
static atomic_size_t false_page; /* 0 means none */

void embla_mem_fail(size_t n, bool forever)
{
    embla_inject(EMBLA_INJECT_MEMORY, n, forever, EMBLA_SYSTEM_NO_MEMORY);
}

size_t embla_mem_live(void)
{
    return atomic_load(&live);
}

size_t embla_mem_page(void)
{
    size_t page = atomic_load_explicit(&false_page, memory_order_relaxed);
    return page > 0 ? page : embla_system_page();
}

void embla_mem_false_page(size_t bytes)
{
    atomic_store(&false_page, bytes);
}

/* Rounds up to whole cache lines for small blocks, to multiples of LARGE for large ones. */
static bool round_up(size_t bytes, size_t *out)
{
    size_t unit = bytes >= LARGE ? LARGE : LINE;
    if (bytes > (size_t)PTRDIFF_MAX - 2 * (size_t)LARGE) return false;
    *out = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    return true;
}

embla_status embla_mem_new(size_t bytes, const char *what, void **out)
{
    size_t rounded;
    void *memory = NULL;
    embla_outcome told;
    if (!embla_injected(EMBLA_INJECT_MEMORY, &told) && round_up(bytes, &rounded)) {
        memory =
            rounded >= LARGE ? embla_system_take(rounded) : embla_system_take_block(LINE, rounded);
        if (memory && rounded < LARGE) memset(memory, 0, rounded);
    }
    if (!memory) return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes (%s)", bytes, what);
    atomic_fetch_add(&live, 1);
    *out = memory;
    return EMBLA_OK;
}

embla_status embla_mem_many(uint64_t count, size_t item_bytes, const char *what, void **out)
{
    uint64_t all;
    size_t bytes;
    if (!embla_mul_ok(count, item_bytes, &all) || !embla_size_ok(all, &bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %" PRIu64 " times %zu bytes (%s)", count,
                          item_bytes, what);
    return embla_mem_new(bytes, what, out);
}

void embla_mem_free(void *memory, size_t bytes)
{
    size_t rounded;
    if (!memory || !round_up(bytes, &rounded)) return;
    if (rounded >= LARGE)
        embla_system_give(memory, rounded);
    else
        embla_system_give_block(memory);
    atomic_fetch_sub(&live, 1);
}

void embla_mem_small_pages(void *memory, size_t bytes)
{
    size_t rounded;
    if (round_up(bytes, &rounded) && rounded >= LARGE) embla_system_small_pages(memory, rounded);
}

bool embla_mem_fits(size_t bytes)
{
    static atomic_int limited = -1;
    int known = atomic_load_explicit(&limited, memory_order_relaxed);
    if (known < 0) {
        known = embla_system_is_limited();
        atomic_store_explicit(&limited, known, memory_order_relaxed);
    }
    if (known == 0) return true;
    size_t page = embla_system_page(), whole = (bytes + page - 1) / page * page;
    void *space = embla_system_take(whole);
    if (space) embla_system_give(space, whole);
    return space != NULL;
}
