/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks have the same command line and read the same files, so they mostly find the same
 * errors. Until the work begins, messages are therefore held back, and the first rank that failed
 * prints its own. Later, a rank that fails prints its message and ends the job.
 */
#include "train/ranks.h"

#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "host/host.h"
#include "system/system_threads.h"

enum {
    HOST = 64,
    MESSAGES = 1 /* seconds for other ranks to print theirs */
};

bool cli_ranks_many(const cli_ranks *ranks)
{
    return ranks->comm && ranks->comm->size > 1;
}

/* ---- threads ---- */

/* The ranks on this host, this one included. */
static int ranks_here(const embla_comm *comm)
{
    char mine[HOST] = "", *all = calloc((size_t)comm->size, HOST);
    int count = 0;
    cli_host_name(mine, sizeof mine);
    if (all && comm->allgather(comm->owner, mine, all, HOST) == EMBLA_OK)
        for (int r = 0; r < comm->size; r++) count += memcmp(all + r * HOST, mine, HOST) == 0;
    free(all);
    return count > 0 ? count : 1;
}

/* The CPUs of the host are divided among its ranks, unless the user says otherwise. A launcher may
 * have bound this process to some. */
static int default_threads(const cli_ranks *ranks)
{
    int all = cli_host_cpus(), share = all > ranks->here ? all / ranks->here : 1;
    return share < embla_system_cpus() ? share : embla_system_cpus();
}

/* ---- open, close ---- */

/* MPI starts when all processes of the job have started it. It waits for ever for one that runs
 * another program, or a verb that does without MPI, and cannot be stopped from outside. */
static const char start_took_long[] =
    "embla: MPI waits for a process of the job that has not started it: that one runs "
    "another verb, which does without MPI, or has ended; all ranks must run the same\n";

int cli_ranks_join(const cli_args *args, int patience, const embla_comm **out)
{
    enum { USUAL = 45, TIMES = 4 }; /* seconds of patience; processes may start slowly */
    char work[64];
    (void)snprintf(work, sizeof work, "embla %s", args->verb->name);
    const embla_comm_options options = {.patience = patience, .work = work};
    unsigned seconds = patience > 0 ? (unsigned)patience : USUAL;
    cli_time_limit(seconds < UINT_MAX / TIMES ? TIMES * seconds : UINT_MAX, start_took_long);
    embla_status status = embla_comm_open(&options, out);
    cli_time_limit(0, NULL);
    return status == EMBLA_OK ? CLI_DONE : cli_failed("%s", embla_error());
}

int cli_ranks_open(const cli_args *args, cli_ranks *ranks)
{
    ranks->here = 1;
    ranks->threads = (int)cli_args_count(args, "threads");
    if (cli_args_count(args, "patience") > INT_MAX)
        return cli_usage("--patience is %s; the maximum is %d", cli_args_text(args, "patience"),
                         INT_MAX);
    int code = cli_ranks_join(args, (int)cli_args_count(args, "patience"), &ranks->comm);
    if (code != CLI_DONE || !embla_comm_launched()) return code;
    ranks->follows = ranks->comm->rank > 0;
    ranks->here = ranks_here(ranks->comm);
    if (ranks->threads == 0 && !getenv("OMP_NUM_THREADS")) ranks->threads = default_threads(ranks);
    cli_complain_hold();
    return CLI_DONE;
}

void cli_ranks_close(cli_ranks *ranks)
{
    embla_comm_free(ranks->comm);
    ranks->comm = NULL;
}

/* ---- agreeing ---- */

int cli_ranks_wait(const cli_ranks *ranks)
{
    const embla_comm *c = ranks->comm;
    if (!cli_ranks_many(ranks) || c->barrier(c->owner, EMBLA_COMM_SAVING) == EMBLA_OK)
        return CLI_DONE;
    return cli_failed("%s", embla_error());
}

int cli_ranks_agree(const cli_ranks *ranks, int code, bool ready)
{
    const embla_comm *c = ranks->comm;
    int64_t worst = 0;
    if (!cli_ranks_many(ranks)) {
        cli_complain_release(-1, true);
        return code;
    }
    /* the first rank that failed has the greatest number; its exit code is in the low bits */
    if (code != CLI_DONE) worst = ((int64_t)(c->size - c->rank) << 8) | (int64_t)code;
    if (c->barrier(c->owner, EMBLA_COMM_SAVING) != EMBLA_OK ||
        c->allreduce(c->owner, &worst, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) != EMBLA_OK) {
        cli_complain_release(c->rank, code != CLI_DONE);
        return cli_failed("%s", embla_error());
    }
    int first = c->size - (int)(worst >> 8);
    cli_complain_release(c->rank, first == c->rank);
    if (worst == 0 && !ready) cli_complain_hold();
    return (int)(worst & 0xff);
}

int cli_ranks_most(const cli_ranks *ranks, int64_t *values, size_t count)
{
    const embla_comm *c = ranks->comm;
    if (!cli_ranks_many(ranks) ||
        c->allreduce(c->owner, values, count, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) == EMBLA_OK)
        return CLI_DONE;
    return cli_failed("%s", embla_error());
}

int cli_ranks_follow(const cli_ranks *ranks, bool *decision)
{
    int64_t decided = !ranks->follows && *decision;
    int code = cli_ranks_most(ranks, &decided, 1);
    *decision = decided > 0;
    return code;
}

void cli_ranks_abort(const cli_ranks *ranks)
{
    (void)fflush(stdout);
    embla_system_sleep((int64_t)MESSAGES * 1000000000);
    ranks->comm->abort(ranks->comm->owner, "a rank failed");
}
