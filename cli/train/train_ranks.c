/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla train` needs of its ranks beyond cli/train/ranks.h. */
#include "train/train_ranks.h"

enum { MEETINGS = 4 }; /* in a second */

int cli_training_open(const cli_args *args, cli_training *t)
{
    t->team = (embla_team_options){.micro_batches = cli_args_size(args, "micro-batches"),
                                   .fast = cli_args_flag(args, "fast"),
                                   .shard_ngrams = cli_args_flag(args, "shard-ngrams"),
                                   .shard_tokens = cli_args_flag(args, "shard-tokens")};
    if (cli_args_given(args, "micro-batches") && t->team.micro_batches == 0)
        return cli_usage("--micro-batches is 0; the minimum is 1");
    t->joins = embla_comm_launched() || t->team.micro_batches > 0 || t->team.fast ||
               t->team.shard_ngrams || t->team.shard_tokens;
    return cli_ranks_open(args, &t->ranks);
}

int cli_training_join(cli_training *t)
{
    if (!t->joins) return CLI_DONE;
    embla_status status = embla_train_join(t->train, t->ranks.comm, &t->team);
    if (status == EMBLA_OK) return CLI_DONE;
    return status == EMBLA_ERR_ARGUMENT ? cli_usage("%s", embla_error())
                                        : cli_failed("%s", embla_error());
}

int cli_training_decide(cli_training *t, cli_training_plan *plan)
{
    int64_t step = embla_train_steps(t->train), next = (int64_t)(cli_training_pace(t) / MEETINGS);
    bool leads = !t->ranks.follows, by_step = t->save_every > 0;
    if (!cli_ranks_many(&t->ranks)) return CLI_DONE;
    bool save_now = by_step && plan->save; /* every rank knows */
    if (step < t->meeting) {
        *plan = (cli_training_plan){.save = save_now};
        return CLI_DONE;
    }
    int64_t all[4] = {plan->stop, leads && plan->out_of_time, leads && !by_step && plan->save,
                      leads ? next : 0};
    int code = cli_ranks_most(&t->ranks, all, 4);
    *plan = (cli_training_plan){
        .stop = all[0] > 0, .out_of_time = all[1] > 0, .save = save_now || all[2] > 0};
    t->meeting = step + (all[3] > 1 ? all[3] : 1);
    return code;
}
