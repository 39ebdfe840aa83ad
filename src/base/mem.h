/* SPDX-License-Identifier: Apache-2.0 */
/* The one door for memory. All allocation passes here, so that every allocation can
 * be made to fail in a test, once or from then on, and be accounted for.
 */
#ifndef EMBLA_BASE_MEM_H
#define EMBLA_BASE_MEM_H

#include <stdbool.h>
#include <stddef.h>

#include "base/status.h"

/* bytes zero bytes at *out, on a boundary of 64. Large blocks are on huge pages
 * where the system grants them, and cost nothing until they are touched.
 * EMBLA_ERR_MEMORY says how many bytes were asked for, and what for. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_mem_new(size_t bytes, const char *what, void **out);
/* Gives back what embla_mem_new gave, with the same number of bytes. NULL is fine. */
EMBLA_PRIVATE void embla_mem_free(void *memory, size_t bytes);

/* Asks for no huge pages after all, for a block that has not been touched yet: for whoever
 * compares. */
void embla_mem_small_pages(void *memory, size_t bytes);

/* For tests: the n-th allocation from now fails (1 is the next); with forever, so do
 * all after it. 0 ends this. */
void embla_mem_fail(size_t n, bool forever);
/* For tests: blocks handed out and not given back. */
size_t embla_mem_live(void);

#endif
