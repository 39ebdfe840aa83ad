/* SPDX-License-Identifier: Apache-2.0 */
/* The rows that a page works with. */
#ifndef PLAY_ROWS_H
#define PLAY_ROWS_H

#include "embla.h"
#include "embla_checkpoint.h"

/* Opens the token table. Rows in 8 bits with a scale for each row, as embla_play_write stores a
 * large table, become f32. */
EMBLA_CHECKED embla_status rows_open(const embla_checkpoint *checkpoint, embla_table **out);

#endif
