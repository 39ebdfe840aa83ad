/* SPDX-License-Identifier: Apache-2.0 */
/* embla plan: computes what a table over many hosts costs, and where that stops.
 *
 * The verdict comes first, because most tables fit one host. Everything is a model of sizes and
 * speeds; --measure replaces assumed speeds by those of this machine, --trace drawn row numbers by
 * real ones. The times remain a model's.
 */
#include <errno.h>
#include <inttypes.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/amount.h"
#include "core/model.h"
#include "core/verbs.h"
#include "verbs/plan_run.h"

static const char *optimizer_name(size_t n)
{
    static const char *const names[] = {
        "adamw", "adagrad-rowwise", "adagrad", "sgd", "momentum", "none", NULL};
    return n < sizeof names / sizeof names[0] ? names[n] : NULL;
}

/* ---- options ---- */

static void set_optimizer(const char *name, embla_plan_options *o)
{
    o->frozen = strcmp(name, "none") == 0;
    o->momentum = strcmp(name, "momentum") == 0;
    o->optimizer = EMBLA_OPTIM_SGD;
    for (int kind = 0; embla_optim_name((embla_optim_kind)kind); kind++)
        if (strcmp(name, embla_optim_name((embla_optim_kind)kind)) == 0)
            o->optimizer = (embla_optim_kind)kind;
}

/* A number from 0 to `most`. */
static int read_share(const cli_args *args, const char *name, double most, double *out)
{
    int code = cli_amount_read(args, name, CLI_AMOUNT_COUNT, out);
    if (code == CLI_DONE && *out > most)
        code = cli_usage("--%s is %.60s; the maximum is %g", name, cli_args_text(args, name), most);
    return code;
}

static int read_machine(const cli_args *args, embla_plan_machine *m)
{
    int code = cli_amount_whole(args, "memory", CLI_AMOUNT_BYTES, &m->memory);
    if (code == CLI_DONE) code = cli_amount_read(args, "network", CLI_AMOUNT_SPEED, &m->network);
    if (code == CLI_DONE) code = cli_amount_read(args, "latency", CLI_AMOUNT_TIME, &m->latency);
    if (code == CLI_DONE)
        code = cli_amount_read(args, "bandwidth", CLI_AMOUNT_SPEED, &m->bandwidth);
    if (code == CLI_DONE &&
        (m->memory == 0 || m->network <= 0 || m->latency <= 0 || m->bandwidth <= 0))
        code = cli_usage("--memory, --network, --latency and --bandwidth must be greater than 0");
    return code;
}

/* Sizes that are counts. The library checks their ranges; here a 0 that was typed is refused, which
 * the library would take for the default. */
static int read_sizes(const cli_args *args, embla_plan_options *o)
{
    int64_t dim = 0, scales = 0;
    const struct {
        const char *name;
        int64_t *to;
        bool zero;
    } counts[] = {{"rows", &o->rows, false},      {"dim", &dim, false},
                  {"tokens", &o->tokens, false},  {"per-token", &o->rows_per_token, false},
                  {"scale-bytes", &scales, true}, {"ranks-per-host", &o->ranks_per_host, false},
                  {"hosts", &o->hosts, false},    {"group", &o->group, false}};
    for (size_t i = 0; i < sizeof counts / sizeof counts[0]; i++) {
        if (!cli_args_text(args, counts[i].name)) continue;
        int code = cli_amount_whole(args, counts[i].name, CLI_AMOUNT_COUNT, counts[i].to);
        if (code != CLI_DONE) return code;
        if (*counts[i].to == 0 && !counts[i].zero)
            return cli_usage("--%s is 0; the minimum is 1", counts[i].name);
    }
    o->dim = cli_as_size(dim);
    o->scale_bytes = (size_t)scales;
    return CLI_DONE;
}

static int read_options(const cli_args *args, cli_plan *p)
{
    embla_plan_options *o = &p->options;
    const char *const needed[] = {"rows", "dim"};
    for (size_t i = 0; i < 2; i++)
        if (!cli_args_given(args, needed[i]))
            return cli_usage("plan needs --%s; see 'embla help plan'", needed[i]);
    int code = read_sizes(args, o);
    if (code == CLI_DONE) code = read_machine(args, &o->machine);
    if (code == CLI_DONE) code = read_share(args, "zipf", 10.0, &o->zipf);
    if (code == CLI_DONE && cli_args_given(args, "unique")) {
        code = read_share(args, "unique", 1.0, &o->unique);
        if (code == CLI_DONE && o->unique == 0)
            code = cli_usage("--unique is 0; it must be greater than 0");
    }
    if (code != CLI_DONE) return code;
    p->optimizer = cli_args_text(args, "optimizer");
    set_optimizer(p->optimizer, o);
    o->send = cli_args_flag(args, "send");
    if (embla_dtype_find(cli_args_text(args, "dtype"), &o->dtype) != EMBLA_OK)
        return cli_usage("%s", embla_error());
    return CLI_DONE;
}

/* Parses "1,2,64". */
static int read_list(const char *text, cli_plan *p)
{
    char *end = NULL;
    for (const char *at = text;; at = end + 1) {
        errno = 0;
        long long number = *at >= '0' && *at <= '9' ? strtoll(at, &end, 10) : -1;
        if (number < 1 || (*end != ',' && *end != '\0'))
            return cli_usage("--ranks: '%.60s' is not a list of numbers such as 1,2,64", text);
        if (errno == ERANGE)
            return cli_usage("--ranks: '%.60s' has a number that does not fit in 64 bits", text);
        if (p->rank_count == CLI_PLAN_RANKS)
            return cli_usage("--ranks has more than %d numbers", CLI_PLAN_RANKS);
        p->ranks[p->rank_count++] = number;
        if (*end == '\0') return CLI_DONE;
    }
}

/* The numbers of ranks to simulate. */
static int read_ranks(const cli_args *args, cli_plan *p)
{
    static const int64_t usual[] = {1, 4, 16, 64, 256, 1024, 4096, 16384};
    const char *text = cli_args_text(args, "ranks");
    p->trace = cli_args_text(args, "trace");
    if (text) return read_list(text, p);
    if (!p->trace && !cli_args_flag(args, "simulate")) return CLI_DONE;
    memcpy(p->ranks, usual, sizeof usual);
    p->rank_count = sizeof usual / sizeof usual[0];
    return CLI_DONE;
}

/* ---- the verb ---- */

/* The plan itself, then the same table on 1 to 16,384 hosts. A number of hosts that is impossible
 * (too many ranks) ends the list. */
static int compute(cli_plan *p)
{
    static const int64_t hosts[CLI_PLAN_HOSTS] = {1, 2, 4, 16, 64, 256, 1024, 4096, 16384};
    embla_plan_options o = p->options;
    if (embla_plan_compute(&o, &p->plan) != EMBLA_OK) return cli_usage("%s", embla_error());
    o.group = 0;
    for (size_t i = 0; i < CLI_PLAN_HOSTS; i++) {
        o.hosts = hosts[i];
        if (embla_plan_compute(&o, &p->hosts[i]) != EMBLA_OK) break;
        p->host_count++;
    }
    return p->rank_count > 0 ? cli_plan_simulate(p) : CLI_DONE;
}

static int run(const cli_args *args)
{
    cli_plan *p = calloc(1, sizeof *p);
    bool speaks = true;
    if (!p) return cli_failed("no memory for a plan");
    int code = read_options(args, p);
    if (code == CLI_DONE) code = read_ranks(args, p);
    if (code == CLI_DONE && embla_plan_compute(&p->options, &p->plan) != EMBLA_OK)
        code = cli_usage("%s", embla_error());
    if (code == CLI_DONE && p->trace) code = cli_plan_read(p);
    if (code == CLI_DONE && cli_args_flag(args, "measure"))
        code = cli_plan_measure(args, p, &speaks);
    if (code == CLI_DONE && speaks) code = compute(p);
    if (code == CLI_DONE && speaks) {
        if (cli_args_flag(args, "json"))
            cli_plan_json(p);
        else
            cli_plan_print(p);
    }
    free(p->rows);
    free(p);
    return code;
}

#define AMOUNT(option, unit, zero, meaning)                                                        \
    {                                                                                              \
        .name = option, .value = unit, .standard = zero, .help = meaning                           \
    }
static const cli_option options[] = {
    AMOUNT("rows", "N", NULL, "rows of the table: 1e9, 10G or 1,000,000"),
    AMOUNT("dim", "N", NULL, "embedding dimension"),
    {.name = "dtype",
     .value = "DTYPE",
     .standard = "f32",
     .choices = cli_model_dtype,
     .help = "dtype of the rows"},
    AMOUNT("scale-bytes", "N", "0", "bytes of scales per row, beside its numbers"),
    {.name = "optimizer",
     .value = "NAME",
     .standard = "adamw",
     .choices = optimizer_name,
     .help = "optimizer of the rows; none means that they are only looked up"},
    AMOUNT("tokens", "N", "65536", "tokens of each rank and step"),
    AMOUNT("per-token", "N", "1", "rows looked up per token"),
    AMOUNT("zipf", "X", "1",
           "exponent of Zipf's law for rows; 0 means that all are equally frequent"),
    AMOUNT("unique", "X", NULL, "share of different rows in a batch, instead of --zipf"),
    AMOUNT("hosts", "N", NULL, "number of hosts (default: as many as the table needs)"),
    AMOUNT("ranks-per-host", "N", "1", "processes on each host"),
    AMOUNT("memory", "SIZE", "512GB", "memory of a host for rows, optimizer state and buffers"),
    AMOUNT("network", "SPEED", "25GB/s", "network of a host, in each direction; 200Gbit/s also"),
    AMOUNT("latency", "TIME", "2us", "time of each message of a rank"),
    AMOUNT("bandwidth", "SPEED", "200GB/s", "memory bandwidth of a host"),
    AMOUNT("group", "N", NULL,
           "ranks that share a copy of the table in groups (default: up to 256)"),
    {.name = "send", .help = "send rows even between ranks of one host"},
    {.name = "measure",
     .help = "measure latency, network and memory of this machine, and use them; under mpirun, "
             "those of its ranks"},
    {.name = "simulate", .help = "simulate ranks with row numbers drawn by --zipf"},
    {.name = "trace",
     .value = "FILE",
     .reads = CLI_READS_FILE,
     .help = "simulate ranks with the row numbers of FILE: .npy of 'embla trace' or of tokens, "
             "llm.c .bin, numbers as text, or raw 64-bit integers"},
    {.name = "ranks",
     .value = "LIST",
     .help = "numbers of ranks to simulate (default: 1 to 16,384)"},
    {.name = NULL}};

const cli_verb cli_verb_plan = {
    .name = "plan",
    .synopsis = "--rows N --dim N",
    .about = "compute what a table over many hosts costs, and where that stops",
    .text =
        "Says first whether the table fits one host: then no cluster is needed. Then prints the "
        "memory of each host, the bytes and the time of a training step by part, and the same for "
        "1 to 16,384 hosts. The column 'limit' names what takes longest in a lookup, or says that "
        "there is no room. If messages take longest, the plan lists what to do.\n\n"
        "All times are a model's: bytes divided by speeds, and a latency for each message. The "
        "share of different rows in a batch follows from --zipf. --measure measures the speeds "
        "of this machine in a second or two. Only --bandwidth and the costs of rows are measured "
        "without mpirun.\n\n"
        "--simulate and --trace count rows one by one: each rank takes its tokens from the trace, "
        "finds its different rows and asks their owners. 'load' is the busiest owner divided by "
        "the mean. If 'sample', the ranks that were simulated, is smaller than 'ranks', 'load' is "
        "an upper estimate.\n\n"
        "kB, MB and GB are decimal. docs/cluster.md has the formulas.",
    .example = "embla plan --rows 1e9 --dim 128 --optimizer adagrad-rowwise --hosts 4",
    .options = options,
    .ranks = true,
    .run = run};
