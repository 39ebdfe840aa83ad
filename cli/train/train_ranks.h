/* SPDX-License-Identifier: Apache-2.0 */
/* A training of several processes: the job that mpirun started, and what its ranks must agree on.
 * Rank 0 prints and writes files; the others follow.
 */
#ifndef CLI_TRAIN_TRAIN_RANKS_H
#define CLI_TRAIN_TRAIN_RANKS_H

#include "train/training.h"

/* Opens the job, or a job of this process alone, and reads the options about ranks. Returns the
 * exit code, after a message. */
int cli_ranks_open(const cli_args *args, cli_training *t);
void cli_ranks_close(cli_training *t);
/* The exit code of the first rank that failed in setting up. That rank alone prints its message. */
int cli_ranks_agree(cli_training *t, int code);
/* Every rank gets what rank 0 decides. */
int cli_ranks_follow(const cli_training *t, bool *decision);
/* Lets the ranks train together. */
int cli_ranks_join(cli_training *t);

/* What to do after a step. Ranks must decide alike. */
typedef struct {
    bool stop;        /* the user has cancelled, or the output is closed */
    bool out_of_time; /* --minutes have passed, by the clock of rank 0 */
    bool save;        /* a checkpoint is due, by the clock of rank 0 */
} cli_ranks_plan;

/* Combines the plans of all ranks. They meet a few times a second, not after each step; until then
 * nothing is to be done. A save at a given step (--save-every) needs no meeting. */
int cli_ranks_decide(cli_training *t, cli_ranks_plan *plan);
/* Waits until all ranks are here, for long: rank 0 may be writing files. */
int cli_ranks_wait(const cli_training *t);
/* Ends the other ranks after a failure of this one, whose message was printed. */
void cli_ranks_abort(const cli_training *t);

/* Whether there are several processes. */
bool cli_ranks_many(const cli_training *t);

#endif
