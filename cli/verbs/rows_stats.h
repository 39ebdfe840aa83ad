/* SPDX-License-Identifier: Apache-2.0 */
/* What it costs to read the rows of a text from disk, for `embla rows --stats`. */
#ifndef CLI_VERBS_ROWS_STATS_H
#define CLI_VERBS_ROWS_STATS_H

#include "embla_store.h"

#include "core/out.h"

typedef struct {
    embla_store_info store;
    embla_tickets_info tickets;
    int64_t cached; /* bytes by which the files grew in the page cache; -1 means unknown */
} cli_rows_stats;

/* Reads rows (tokens x columns) with the placement direct, one ticket for each token, as an engine
 * decodes. options may be NULL. Returns CLI_DONE, or another code after a message. */
int cli_rows_stats_read(const embla_checkpoint *checkpoint, int32_t layer, const int64_t *rows,
                        size_t tokens, size_t columns, const embla_tickets_options *options,
                        cli_rows_stats *out);
void cli_rows_stats_print(const cli_rows_stats *stats);
void cli_rows_stats_json(const cli_rows_stats *stats, cli_json *json);

#endif
