/* SPDX-License-Identifier: Apache-2.0 */
/* Memory of the process: pages, large blocks, the nodes of a machine (NUMA), and what happens when
 * a mapped file is cut short. base/mem.c and files/guard.c are in front of it. */
#ifndef EMBLA_SYSTEM_SYSTEM_MEMORY_H
#define EMBLA_SYSTEM_SYSTEM_MEMORY_H

#include "system/system.h"

/* ---- pages and blocks ---- */

/* The size of a page: 4, 16 or 64 KiB. */
size_t embla_system_page(void);
/* The size of a huge page that is worth aligning memory to; 0 means none. */
size_t embla_system_huge_page(void);
/* Maps `bytes` bytes of zeros, a multiple of the page, aligned to a huge page if they fill one.
 * They take memory only when they are accessed. NULL if there is none. */
void *embla_system_take(size_t bytes);
void embla_system_give(void *memory, size_t bytes);
/* Small blocks, aligned to `alignment`, of which `bytes` is a multiple. */
void *embla_system_take_block(size_t alignment, size_t bytes);
void embla_system_give_block(void *block);
/* Asks for huge pages for memory that has not been accessed yet; it may stay without. */
void embla_system_huge_pages(void *memory, size_t bytes);
/* Disables huge pages for mapped memory that has not been accessed yet. */
void embla_system_small_pages(void *memory, size_t bytes);
/* How many of these bytes are on huge pages; -1 if the system does not tell. */
int64_t embla_system_huge_bytes(const void *memory, size_t bytes);
/* Whether the address space of the process has a limit. */
bool embla_system_is_limited(void);

/* ---- nodes ---- */

/* Whether the process may use memory of a node; *highest is the last one that it may use. */
embla_outcome embla_system_node(int node, bool *allowed, int *highest);
/* Binds whole pages to a node, and moves those that exist. */
embla_outcome embla_system_bind(void *memory, size_t bytes, int node);
/* On which node an address is. */
embla_outcome embla_system_node_of(const void *address, int *node);
/* Bytes of a node that are free, or that the page cache would give back; 0 if the system does not
 * tell. */
uint64_t embla_system_node_room(int node);

/* ---- lost pages ---- */

/* Installs a handler for reads of a mapped file beyond its end. The handler calls is_ours with the
 * address; if that returns true, it replaces the page by zeros. is_ours may run at any time in any
 * thread, and must call nothing that is not safe in a signal handler. */
embla_outcome embla_system_guard(bool (*is_ours)(uintptr_t address));

#endif
