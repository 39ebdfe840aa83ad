/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when a mapped file is cut short while its rows are being read.
 *
 * The system raises SIGBUS. With the guard installed (embla_guard in embla.h) a lost page
 * of one of our maps is replaced by zeros, the map's place is marked, and the call that was
 * reading ends with EMBLA_ERR_IO. Any other SIGBUS goes to whoever handled it before.
 */
#ifndef EMBLA_FILES_GUARD_H
#define EMBLA_FILES_GUARD_H

#include <stdbool.h>
#include <stddef.h>

/* Takes a place for a map of size bytes at base, in use from now on; -1 where all places are
 * taken: then the map is not guarded, and embla_map_check still asks for the size. */
int embla_guard_add(const void *base, size_t size);
/* Gives the place back. To be called BEFORE the map is unmapped, see guard.c. -1 is fine. */
void embla_guard_drop(int place);
/* Whether a page of the map at this place has been lost. -1: false. */
bool embla_guard_lost(int place);

#endif
