/* SPDX-License-Identifier: Apache-2.0 */
/* Memory comes from the C library for small blocks and from anonymous mappings for large ones. A
 * gather reads rows at random, so a large table on 4 KiB pages misses the TLB on every row. 2 MiB
 * pages, requested before the first access, avoid that. A mapping is also zero without being
 * written: a table of 8 GB of which three rows are used takes three pages. */
#include "base/mem.h"

#include <stdatomic.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>

#include "base/status.h"

enum { HUGE = 2 << 20, LINE = 64 };

static atomic_size_t live;
static atomic_size_t countdown; /* 0 means off; n means that the n-th allocation from now fails */
static atomic_bool keep_failing;

void embla_mem_fail(size_t n, bool forever)
{
    atomic_store(&keep_failing, forever);
    atomic_store(&countdown, n);
}

size_t embla_mem_live(void)
{
    return atomic_load(&live);
}

static bool told_to_fail(void)
{
    size_t n = atomic_load(&countdown);
    do { /* threads share the countdown: each call counts once */
        if (n == 0) return false;
        if (n == 1 && atomic_load(&keep_failing)) return true;
    } while (!atomic_compare_exchange_weak(&countdown, &n, n - 1));
    return n == 1;
}

/* Maps memory aligned to a huge page: maps one huge page more and unmaps both ends. */
static void *map(size_t bytes)
{
    size_t asked = bytes + HUGE;
    char *base = mmap(NULL, asked, PROT_READ | PROT_WRITE,
                      MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (base == MAP_FAILED) return NULL;
    size_t front = (HUGE - (uintptr_t)base % HUGE) % HUGE;
    if (front > 0) (void)munmap(base, front);
    if (front < HUGE) (void)munmap(base + front + bytes, HUGE - front);
    (void)madvise(base + front, bytes, MADV_HUGEPAGE); /* works without huge pages too */
    return base + front;
}

/* Rounds up to whole cache lines for small blocks, to whole huge pages for large ones. */
static bool round_up(size_t bytes, size_t *out)
{
    size_t unit = bytes >= HUGE ? HUGE : LINE;
    if (bytes > (size_t)PTRDIFF_MAX - 2 * (size_t)HUGE) return false;
    *out = bytes == 0 ? unit : (bytes + unit - 1) / unit * unit;
    return true;
}

embla_status embla_mem_new(size_t bytes, const char *what, void **out)
{
    size_t rounded;
    void *memory = NULL;
    if (!told_to_fail() && round_up(bytes, &rounded)) {
        memory = rounded >= HUGE ? map(rounded) : aligned_alloc(LINE, rounded);
        if (memory && rounded < HUGE) memset(memory, 0, rounded);
    }
    if (!memory) return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes (%s)", bytes, what);
    atomic_fetch_add(&live, 1);
    *out = memory;
    return EMBLA_OK;
}

void embla_mem_free(void *memory, size_t bytes)
{
    size_t rounded;
    if (!memory || !round_up(bytes, &rounded)) return;
    if (rounded >= HUGE)
        (void)munmap(memory, rounded);
    else
        free(memory);
    atomic_fetch_sub(&live, 1);
}

void embla_mem_small_pages(void *memory, size_t bytes)
{
    size_t rounded;
    if (round_up(bytes, &rounded) && rounded >= HUGE)
        (void)madvise(memory, rounded,
                      MADV_NOHUGEPAGE); /* a failure means that the system has no huge pages */
}
