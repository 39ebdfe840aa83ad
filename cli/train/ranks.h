/* SPDX-License-Identifier: Apache-2.0 */
/* The job that mpirun started, and what its processes (ranks) must agree on. Rank 0 prints and
 * writes files; the others follow. Without mpirun it is a job of one rank.
 */
#ifndef CLI_TRAIN_RANKS_H
#define CLI_TRAIN_RANKS_H

#include "embla_cluster.h"

#include "core/args.h"

typedef struct {
    const embla_comm *comm; /* of the job, or of this process alone */
    bool follows;           /* rank 0, another process, prints and writes files */
    int here;               /* ranks on this host */
    int threads;            /* of --threads, or the default in a job; 0 means the library's */
} cli_ranks;

/* Joins the job of MPI, or makes one of this process alone. All ranks must run the same verb. A
 * rank that waits too long for the others to start ends with a sentence. patience is that of
 * embla_comm_options. Returns the exit code, after a message. */
int cli_ranks_join(const cli_args *args, int patience, const embla_comm **out);
/* Opens the job and reads --patience and --threads. Messages are held back until the ranks agree.
 * Returns the exit code, after a message. */
int cli_ranks_open(const cli_args *args, cli_ranks *ranks);
void cli_ranks_close(cli_ranks *ranks);
/* Whether there are several. */
bool cli_ranks_many(const cli_ranks *ranks);
/* The exit code of the first rank that failed in setting up. That rank alone prints its message.
 * ready: this was the last part of it, and from now on every rank prints its own messages. */
int cli_ranks_agree(const cli_ranks *ranks, int code, bool ready);
/* Every rank gets the maxima of all ranks. */
int cli_ranks_most(const cli_ranks *ranks, int64_t *values, size_t count);
/* Every rank gets what rank 0 decides. */
int cli_ranks_follow(const cli_ranks *ranks, bool *decision);
/* Waits until all ranks are here, for long: rank 0 may be writing files. */
int cli_ranks_wait(const cli_ranks *ranks);
/* Ends the other ranks after a failure of this one, whose message was printed. */
void cli_ranks_abort(const cli_ranks *ranks);

#endif
