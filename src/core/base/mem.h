/* SPDX-License-Identifier: Apache-2.0 */
/* All memory is allocated here, so that tests can make any allocation fail and count what is not
 * freed. */
#ifndef EMBLA_BASE_MEM_H
#define EMBLA_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* Allocates zeroed bytes, aligned to 64. Large blocks use huge pages if the system has them, and
 * take memory only when they are accessed. The message of EMBLA_ERR_MEMORY has the number of bytes
 * and `what`. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_mem_new(size_t bytes, const char *what, void **out);
/* The same for count items of item_bytes each, whose product may be too large for a size. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_mem_many(uint64_t count, size_t item_bytes,
                                                        const char *what, void **out);
/* Frees memory of embla_mem_new; bytes must be the same number. NULL is allowed. */
EMBLA_PRIVATE void embla_mem_free(void *memory, size_t bytes);

/* Disables huge pages for a block that has not been accessed yet. For comparisons. */
void embla_mem_small_pages(void *memory, size_t bytes);

/* The size of a page of the system. */
size_t embla_mem_page(void);
/* Whether so many bytes more can be mapped now. Only asked of the system if the process has a
 * limit; otherwise true. */
EMBLA_PRIVATE bool embla_mem_fits(size_t bytes);

/* For tests: embla_mem_page returns this from now on, as on a system with larger pages; 0 ends
 * this. */
void embla_mem_false_page(size_t bytes);
/* For tests: the n-th allocation from now fails (1 is the next); if forever, also all later ones. 0
 * ends this. */
void embla_mem_fail(size_t n, bool forever);
/* For tests: number of blocks that are not freed. */
size_t embla_mem_live(void);

#endif
