/* SPDX-License-Identifier: Apache-2.0 */
/* All ranks have the same command line and read the same files, so they mostly find the same
 * errors. Until the training begins, messages are therefore held back, and the first rank that
 * failed prints its own. Later, a rank that fails prints its message and ends the job.
 */
#include "train/train_ranks.h"

#include <limits.h>
#include <sched.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum {
    HOST = 64,
    MESSAGES = 1, /* seconds for other ranks to print theirs */
    MEETINGS = 4, /* in a second */
    WRITING = 900 /* seconds to wait for ranks that read or write files */
};

bool cli_ranks_many(const cli_training *t)
{
    return t->comm && t->comm->size > 1;
}

/* ---- threads ---- */

/* The ranks on this host, this one included. */
static int ranks_here(const embla_comm *comm)
{
    char mine[HOST] = "", *all = calloc((size_t)comm->size, HOST);
    int count = 0;
    (void)gethostname(mine, sizeof mine - 1);
    if (all && comm->allgather(comm->owner, mine, all, HOST) == EMBLA_OK)
        for (int r = 0; r < comm->size; r++) count += memcmp(all + r * HOST, mine, HOST) == 0;
    free(all);
    return count > 0 ? count : 1;
}

/* Cores that this process may use: launchers often bind a process to some. */
static int cores_allowed(void)
{
    cpu_set_t allowed;
    if (sched_getaffinity(0, sizeof allowed, &allowed) != 0) return INT_MAX;
    return CPU_COUNT(&allowed);
}

/* The cores of the host are divided among its ranks, unless the user says otherwise. */
static int default_threads(const cli_training *t)
{
    long cores = sysconf(_SC_NPROCESSORS_ONLN);
    int share = cores > t->ranks_here ? (int)(cores / t->ranks_here) : 1;
    return share < cores_allowed() ? share : cores_allowed();
}

/* ---- open, close ---- */

int cli_ranks_open(const cli_args *args, cli_training *t)
{
    embla_comm_options options = {.patience = (int)cli_args_count(args, "patience")};
    t->ranks_here = 1;
    t->threads = (int)cli_args_count(args, "threads");
    t->team = (embla_team_options){.shards = (size_t)cli_args_count(args, "shards"),
                                   .fast = cli_args_flag(args, "fast"),
                                   .sharded = cli_args_flag(args, "sharded")};
    if (cli_args_given(args, "shards") && t->team.shards == 0)
        return cli_usage("--shards is 0; the minimum is 1");
    if (cli_args_count(args, "patience") > INT_MAX)
        return cli_usage("--patience is %s; the maximum is %d", cli_args_text(args, "patience"),
                         INT_MAX);
    t->joins = embla_comm_launched() || t->team.shards > 0 || t->team.fast || t->team.sharded;
    if (embla_comm_open(&options, &t->comm) != EMBLA_OK) return cli_failed("%s", embla_error());
    if (!embla_comm_launched()) return CLI_DONE;
    t->follows = t->comm->rank > 0;
    t->ranks_here = ranks_here(t->comm);
    if (t->threads == 0 && !getenv("OMP_NUM_THREADS")) t->threads = default_threads(t);
    cli_complain_hold();
    return CLI_DONE;
}

void cli_ranks_close(cli_training *t)
{
    embla_comm_close(t->comm);
    t->comm = NULL;
}

/* ---- agreeing ---- */

int cli_ranks_wait(const cli_training *t)
{
    const embla_comm *c = t->comm;
    if (!cli_ranks_many(t) || c->barrier(c->owner, WRITING) == EMBLA_OK) return CLI_DONE;
    return cli_failed("%s", embla_error());
}

int cli_ranks_agree(cli_training *t, int code)
{
    const embla_comm *c = t->comm;
    int64_t worst = 0;
    if (!cli_ranks_many(t)) {
        cli_complain_release(-1, true);
        return code;
    }
    /* the first rank that failed has the greatest number; its exit code is in the low bits */
    if (code != CLI_DONE) worst = ((int64_t)(c->size - c->rank) << 8) | (int64_t)code;
    if (c->barrier(c->owner, WRITING) != EMBLA_OK ||
        c->allreduce(c->owner, &worst, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) != EMBLA_OK) {
        cli_complain_release(c->rank, code != CLI_DONE);
        return cli_failed("%s", embla_error());
    }
    int first = c->size - (int)(worst >> 8);
    cli_complain_release(c->rank, first == c->rank);
    if (worst == 0) cli_complain_hold();
    return (int)(worst & 0xff);
}

int cli_ranks_follow(const cli_training *t, bool *decision)
{
    const embla_comm *c = t->comm;
    int64_t decided = !t->follows && *decision;
    if (cli_ranks_many(t) &&
        c->allreduce(c->owner, &decided, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    *decision = decided > 0;
    return CLI_DONE;
}

int cli_ranks_join(cli_training *t)
{
    if (!t->joins) return CLI_DONE;
    embla_status status = embla_train_join(t->train, t->comm, &t->team);
    if (status == EMBLA_OK) return CLI_DONE;
    return status == EMBLA_ERR_ARGUMENT ? cli_usage("%s", embla_error())
                                        : cli_failed("%s", embla_error());
}

int cli_ranks_decide(cli_training *t, cli_ranks_plan *plan)
{
    const embla_comm *c = t->comm;
    int64_t step = embla_train_steps(t->train), next = (int64_t)(cli_training_pace(t) / MEETINGS);
    bool leads = !t->follows, by_step = t->save_every > 0;
    if (!cli_ranks_many(t)) return CLI_DONE;
    bool save_now = by_step && plan->save; /* every rank knows */
    if (step < t->meeting) {
        *plan = (cli_ranks_plan){.save = save_now};
        return CLI_DONE;
    }
    int64_t all[4] = {plan->stop, leads && plan->out_of_time, leads && !by_step && plan->save,
                      leads ? next : 0};
    if (c->allreduce(c->owner, all, 4, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) != EMBLA_OK)
        return cli_failed("%s", embla_error());
    *plan = (cli_ranks_plan){
        .stop = all[0] > 0, .out_of_time = all[1] > 0, .save = save_now || all[2] > 0};
    t->meeting = step + (all[3] > 1 ? all[3] : 1);
    return CLI_DONE;
}

void cli_ranks_abort(const cli_training *t)
{
    (void)fflush(stdout);
    (void)sleep(MESSAGES);
    t->comm->abort(t->comm->owner, "a rank failed");
}
