/* SPDX-License-Identifier: Apache-2.0 */
/* What happens when a mapped file is cut short while its rows are being read.
 *
 * The system raises SIGBUS. With the guard installed (embla_guard in embla.h) a lost page
 * of one of our maps is replaced by zeros, the map is marked, and the call that was reading
 * ends with EMBLA_ERR_IO. Any other SIGBUS goes to whoever handled it before.
 */
#ifndef EMBLA_FILES_GUARD_H
#define EMBLA_FILES_GUARD_H

#include "files/map.h"

/* Puts map on the list of those that are guarded, takes it off. Lists that are full
 * guard no more maps: embla_map_check still works. */
void embla_guard_add(embla_map *map);
void embla_guard_drop(embla_map *map);

#endif
