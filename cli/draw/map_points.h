/* SPDX-License-Identifier: Apache-2.0 */
/* What a map shows of the rows of a table: positions, norms, nearest rows and communities. */
#ifndef CLI_DRAW_MAP_POINTS_H
#define CLI_DRAW_MAP_POINTS_H

#include "embla_lab.h"

#include "draw/map_frame.h"

/* Computes places, norms, near and, if asked, communities of a map. map->neighbours becomes smaller
 * if there are fewer other rows. CLI_DONE, or CLI_FAILED after a message. */
int cli_map_compute(const embla_table *table, int threads, bool quiet, bool communities,
                    cli_map *map);
/* Frees what it has allocated. */
void cli_map_release(cli_map *map);

#endif
