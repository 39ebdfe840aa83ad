/* SPDX-License-Identifier: Apache-2.0 */
/* What `embla plan` has computed, and what it reads from the machine. */
#ifndef CLI_VERBS_PLAN_RUN_H
#define CLI_VERBS_PLAN_RUN_H

#include "embla_cluster.h"

#include "core/args.h"

enum { CLI_PLAN_HOSTS = 9, CLI_PLAN_RANKS = 16 };

typedef struct {
    embla_plan_options options;
    const char *optimizer;                   /* as typed */
    embla_plan_report plan;                  /* for --hosts, or for as many as are needed */
    embla_plan_report hosts[CLI_PLAN_HOSTS]; /* for 1 to 16,384 hosts */
    size_t host_count;
    bool measured; /* the speeds of the machine are */
    char job[64];  /* what they were measured with: "2 ranks of Open MPI 4.1.4"; "" for one process,
                      which has no network */
    const char *trace;
    int64_t *rows; /* of the trace */
    size_t row_count;
    int64_t ranks[CLI_PLAN_RANKS];
    size_t rank_count; /* 0 means that nothing is simulated */
    embla_simulation found[CLI_PLAN_RANKS];
} cli_plan;

/* Measures the speeds of this machine and sets options.machine; under mpirun also ranks_per_host
 * and hosts, unless given. *speaks: this rank is the one that prints. CLI_DONE, or CLI_FAILED after
 * a message. A fuzzer replaces it. */
int cli_plan_measure(const cli_args *args, cli_plan *p, bool *speaks);
/* Reads the row numbers of p->trace, which the caller frees. A fuzzer replaces it. */
int cli_plan_read(cli_plan *p);

/* Simulates p->ranks. A fuzzer replaces it. */
int cli_plan_simulate(cli_plan *p);

/* Prints everything. */
void cli_plan_print(const cli_plan *p);
void cli_plan_json(const cli_plan *p);
/* The verdict as a sentence. Returns text. */
const char *cli_plan_verdict(const cli_plan *p, char *text, size_t size);
/* The n-th thing to do if messages take longer than bytes; NULL past the last. Returns text. */
const char *cli_plan_advice(const cli_plan *p, size_t n, char *text, size_t size);

#endif
