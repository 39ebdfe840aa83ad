/* SPDX-License-Identifier: Apache-2.0 */
/* A training of several processes: how its batches are divided, and what follows a step. */
#ifndef CLI_TRAIN_TRAIN_RANKS_H
#define CLI_TRAIN_TRAIN_RANKS_H

#include "train/training.h"

/* Opens the job and reads the options about ranks. Returns the exit code, after a message. */
int cli_training_open(const cli_args *args, cli_training *t);
/* Lets the ranks train together. */
int cli_training_join(cli_training *t);

/* What to do after a step. Ranks must decide alike. */
typedef struct {
    bool stop;        /* the user has cancelled, or the output is closed */
    bool out_of_time; /* --minutes have passed, by the clock of rank 0 */
    bool save;        /* a checkpoint is due, by the clock of rank 0 */
} cli_training_plan;

/* Combines the plans of all ranks. They meet a few times a second, not after each step; until then
 * nothing is to be done. A save at a given step (--save-every) needs no meeting. */
int cli_training_decide(cli_training *t, cli_training_plan *plan);

#endif
