/* SPDX-License-Identifier: Apache-2.0 */
/* A table that the ranks of a team have divided among themselves, and its folder beside the
 * checkpoints of the training: PATH.ngram, PATH.tokens, PATH.head.
 *
 * A file of a training has no rows of such a table. They are in the folder, which is complete
 * before the file appears. No file may need the rows that a folder has when others are saved there:
 * train/train_save.c chooses one of two PATHs.
 */
#ifndef EMBLA_CLUSTER_TEAM_TABLE_H
#define EMBLA_CLUSTER_TEAM_TABLE_H

#include "cluster/sharded.h"

enum { EMBLA_TEAM_PATH = 4096 };

typedef struct {
    embla_sharded *sharded;
    const char *suffix;         /* of the folder: "ngram" */
    const char *what;           /* the rows in messages: "n-gram rows" */
    char kept[EMBLA_TEAM_PATH]; /* the folder that has the rows as they are, or "" */
} embla_team_table;

/* Waits until all ranks have updated their rows. Collective. */
EMBLA_CHECKED embla_status embla_team_table_publish(embla_team_table *table);
/* Whether a folder beside `path` has the rows as they are. */
bool embla_team_table_kept(const embla_team_table *table, const char *path);
/* Saves rows and state to the folder beside `path`, or loads them. Collective. */
EMBLA_CHECKED embla_status embla_team_table_save(embla_team_table *table, embla_optim *optim,
                                                 const char *path, int64_t step);
EMBLA_CHECKED embla_status embla_team_table_load(embla_team_table *table, embla_optim *optim,
                                                 const char *path, int64_t step);

#endif
