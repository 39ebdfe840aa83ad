/* SPDX-License-Identifier: Apache-2.0 */
/* Handles the truncation of a mapped file while its rows are being read.
 *
 * The system raises SIGBUS for that. If the guard is installed (embla_guard in embla.h), it
 * replaces the lost page by zeros and marks the map as lost, and the call that was reading
 * returns EMBLA_ERR_IO. Any other SIGBUS is passed to the handler that was installed before.
 */
#ifndef EMBLA_FILES_GUARD_H
#define EMBLA_FILES_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Adds a map of size bytes at base to the guard's list and returns its entry. Returns -1 if the
 * list is full; the map is then not guarded, but embla_map_check still compares the size. */
int embla_guard_add(const void *base, size_t size);
/* Removes an entry. Call it BEFORE the map is unmapped, see guard.c. -1 is allowed. */
void embla_guard_remove(int entry);
/* True if a page of this entry's map has been lost; false for -1. */
bool embla_guard_lost(int entry);

#endif
