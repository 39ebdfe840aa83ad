/* SPDX-License-Identifier: Apache-2.0 */
/* Prints a plan: the verdict, the table from 1 to 16,384 hosts, the parts of a step, what to do,
 * and a simulation. Everything that is a model's figure says so.
 */
#include <inttypes.h>
#include <math.h>
#include <stdio.h>

#include "core/out.h"
#include "verbs/plan_run.h"

enum { SENTENCE = 512 };

static const char *const exchanges[] = {"flat", "two-level", "groups"};
static const char *const verdicts[] = {"one-host", "fits", "latency", "memory"};

/* ---- figures ---- */

/* "1.23 ms": three digits. */
static const char *time_text(double seconds, char text[CLI_CELL])
{
    static const char *const units[] = {"s", "ms", "us", "ns"};
    int unit = 0;
    while (unit < 3 && seconds > 0 && seconds < 0.9995) {
        seconds *= 1000;
        unit++;
    }
    (void)snprintf(text, CLI_CELL, "%.3g %s", seconds, units[unit]);
    return text;
}

static const char *bytes_text(double bytes, char text[CLI_CELL])
{
    return cli_size(bytes < 9e18 ? (int64_t)(bytes + 0.5) : INT64_MAX, text);
}

static const char *speed_text(double speed, char text[CLI_CELL])
{
    char size[CLI_CELL];
    (void)snprintf(text, CLI_CELL, "%.50s/s", bytes_text(speed, size));
    return text;
}

/* What takes longest in a flat lookup. */
static const char *limit_of(const cli_plan *p, const embla_plan_report *plan)
{
    const embla_plan_times *t = &plan->times[EMBLA_PLAN_EXCHANGE_FLAT];
    const double parts[] = {t->gather.seconds + t->expand.seconds, t->dedup.seconds,
                            t->numbers.seconds + t->rows.seconds, t->latency};
    static const char *const names[] = {"memory", "dedup", "network", "messages"};
    size_t most = 0;
    if (plan->host_bytes > p->options.machine.memory) return "no room";
    for (size_t i = 1; i < sizeof parts / sizeof parts[0]; i++)
        if (parts[i] > parts[most]) most = i;
    return names[most];
}

/* ---- sentences ---- */

const char *cli_plan_verdict(const cli_plan *p, char *text, size_t size)
{
    const embla_plan_report *plan = &p->plan;
    const embla_plan_times *flat = &plan->times[EMBLA_PLAN_EXCHANGE_FLAT];
    char a[CLI_CELL], b[CLI_CELL], c[CLI_CELL];
    bytes_text((double)p->options.machine.memory, b);
    switch (plan->verdict) {
    case EMBLA_PLAN_VERDICT_ONE_HOST:
        (void)snprintf(text, size, "This table fits one host: no cluster is needed.");
        break;
    case EMBLA_PLAN_VERDICT_FITS:
        (void)snprintf(text, size,
                       "This table needs at least %s of %s; on %s a flat exchange is right: "
                       "its bytes take longer than its messages.",
                       cli_plural(plan->min_hosts, "host", a), b,
                       cli_plural(plan->hosts, "host", c));
        break;
    case EMBLA_PLAN_VERDICT_LATENCY:
        (void)snprintf(text, size,
                       "This table fits %s, but the messages of a flat exchange (%s) take longer "
                       "than its bytes (%s).",
                       cli_plural(plan->hosts, "host", a), time_text(flat->latency, b),
                       time_text(flat->numbers.seconds + flat->rows.seconds, c));
        break;
    case EMBLA_PLAN_VERDICT_MEMORY:
        if (plan->min_hosts > 0)
            (void)snprintf(text, size,
                           "This table does not fit %s: each would hold %s, more than %s. Use at "
                           "least %" PRId64 " hosts.",
                           cli_plural(plan->hosts, "host", a),
                           bytes_text((double)plan->host_bytes, c), b, plan->min_hosts);
        else
            (void)snprintf(text, size,
                           "No number of hosts with %s each is enough; use more --memory, or a "
                           "smaller --dim, --dtype, --optimizer or --tokens.",
                           b);
        break;
    }
    return text;
}

/* The smallest power of two of tokens at which bytes take as long as messages; 0 if none does. */
static int64_t tokens_needed(const cli_plan *p)
{
    embla_plan_options o = p->options;
    embla_plan_report plan;
    o.hosts = p->plan.hosts;
    for (o.tokens = 1; o.tokens <= 1 << 28; o.tokens *= 2) {
        if (embla_plan_compute(&o, &plan) != EMBLA_OK) return 0;
        const embla_plan_times *t = &plan.times[EMBLA_PLAN_EXCHANGE_FLAT];
        if (t->latency <= t->numbers.seconds + t->rows.seconds) return o.tokens;
    }
    return 0;
}

const char *cli_plan_advice(const cli_plan *p, size_t n, char *text, size_t size)
{
    const embla_plan_report *plan = &p->plan;
    const embla_plan_times *two = &plan->times[EMBLA_PLAN_EXCHANGE_TWO_LEVEL];
    const embla_plan_times *groups = &plan->times[EMBLA_PLAN_EXCHANGE_GROUPS];
    const embla_plan_times *flat = &plan->times[EMBLA_PLAN_EXCHANGE_FLAT];
    char a[CLI_CELL], b[CLI_CELL], c[CLI_CELL];
    int64_t tokens = tokens_needed(p);
    if (plan->verdict != EMBLA_PLAN_VERDICT_LATENCY) return NULL;
    if (tokens > 0 && n-- == 0)
        (void)snprintf(text, size,
                       "Use larger batches: from %s tokens on each rank, bytes take "
                       "longer than messages.",
                       cli_commas(tokens, a));
    else if (p->options.ranks_per_host > 1 && n-- == 0)
        (void)snprintf(text, size,
                       "Start one rank with more threads on each host: %s ranks "
                       "instead of %s.",
                       cli_commas(plan->hosts, a), cli_commas(plan->ranks, b));
    else if (two->lookup < flat->lookup && n-- == 0)
        (void)snprintf(text, size,
                       "Exchange in two levels: a lookup of %s instead of %s. The "
                       "library does not have it; your own communicator can.",
                       time_text(two->lookup, a), time_text(flat->lookup, b));
    else if (plan->group_fits && plan->group < plan->ranks && groups->lookup < flat->lookup &&
             n-- == 0)
        (void)snprintf(text, size,
                       "Give each group of %s ranks a copy of the table: a lookup of "
                       "%s, a step of %s with the sums of all groups. The library "
                       "does not have it; a communicator for each group does the "
                       "lookups.",
                       cli_commas(plan->group, a), time_text(groups->lookup, b),
                       time_text(groups->step, c));
    else if (n-- == 0)
        (void)snprintf(text, size,
                       "Start the lookup of the next batch before this one is "
                       "computed (embla_sharded_lookup_start): %s of waiting is "
                       "hidden.",
                       time_text(flat->latency + flat->numbers.seconds + flat->rows.seconds, a));
    else
        return NULL;
    return text;
}

/* ---- text ---- */

static void print_facts(const cli_plan *p)
{
    const embla_plan_options *o = &p->options;
    const embla_plan_report *plan = &p->plan;
    char a[CLI_CELL], b[CLI_CELL], c[CLI_CELL], d[CLI_CELL];
    cli_out_fact("table", "%s x %s in %s: %s of rows, %s for the optimizer (%s)",
                 cli_commas(o->rows, a), cli_commas((int64_t)o->dim, b), embla_dtype_name(o->dtype),
                 bytes_text((double)o->rows * (double)plan->row_bytes, c),
                 bytes_text((double)o->rows * (double)plan->state_bytes, d), p->optimizer);
    cli_out_fact("a step",
                 "%s tokens on each rank, %s each; %.3g%% of the row numbers are "
                 "different (%s)",
                 cli_commas(o->tokens, a),
                 cli_plural(o->rows_per_token > 0 ? o->rows_per_token : 1, "row", b),
                 100 * plan->unique, o->unique > 0 ? "given" : "Zipf's law");
    cli_out_fact("a host", "%s, network %s, %s a message, memory %s (%s)",
                 bytes_text((double)o->machine.memory, a), speed_text(o->machine.network, b),
                 time_text(o->machine.latency, c), speed_text(o->machine.bandwidth, d),
                 !p->measured ? "assumed"
                 : p->job[0]  ? "measured"
                              : "memory measured, network assumed");
    if (p->measured)
        cli_out_fact("measured",
                     "with %s: %s to find out if a row number is new, %s to reach a row",
                     p->job[0] ? p->job : "one process", time_text(o->machine.dedup, a),
                     time_text(o->machine.row, b));
}

static void print_hosts(const cli_plan *p)
{
    static const char *const heads[] = {"hosts",     "each holds", "lookup",   "step",
                                        "two-level", "groups",     "tokens/s", "limit"};
    cli_grid grid = {.columns = 8};
    char text[CLI_CELL];
    for (size_t i = 0; i < grid.columns; i++) cli_grid_put(&grid, "%s", heads[i]);
    for (size_t i = 0; i < p->host_count; i++) {
        const embla_plan_report *plan = &p->hosts[i];
        const embla_plan_times *t = plan->times;
        double tokens = (double)p->options.tokens * (double)plan->ranks;
        bool grouped = plan->group < plan->ranks && plan->group_fits;
        cli_grid_put(&grid, "%s", cli_commas(plan->hosts, text));
        cli_grid_put(&grid, "%s", bytes_text((double)plan->host_bytes, text));
        cli_grid_put(&grid, "%s", time_text(t[EMBLA_PLAN_EXCHANGE_FLAT].lookup, text));
        cli_grid_put(&grid, "%s", time_text(t[EMBLA_PLAN_EXCHANGE_FLAT].step, text));
        cli_grid_put(&grid, "%s", time_text(t[EMBLA_PLAN_EXCHANGE_TWO_LEVEL].step, text));
        cli_grid_put(&grid, "%s",
                     grouped ? time_text(t[EMBLA_PLAN_EXCHANGE_GROUPS].step, text) : "-");
        cli_grid_put(&grid, "%.3g", tokens / t[plan->fastest].step);
        cli_grid_put(&grid, "%s", limit_of(p, plan));
    }
    cli_grid_print(&grid, "rrrrrrrl");
}

/* Parts that a plan does not have are left out. */
static void add_part(cli_grid *grid, const char *name, double bytes, double seconds)
{
    char text[CLI_CELL];
    if (bytes == 0 && seconds == 0) return;
    cli_grid_put(grid, "%s", name);
    cli_grid_put(grid, "%s", bytes > 0 ? bytes_text(bytes, text) : "-");
    cli_grid_put(grid, "%s", time_text(seconds, text));
}

static void print_parts(const cli_plan *p)
{
    const embla_plan_report *plan = &p->plan;
    const embla_plan_times *t = &plan->times[EMBLA_PLAN_EXCHANGE_FLAT];
    cli_grid grid = {.columns = 3};
    char a[CLI_CELL], b[CLI_CELL];
    printf("\nOn %s, each rank and step, with a flat exchange:\n\n",
           cli_plural(plan->hosts, "host", a));
    cli_grid_put(&grid, "part");
    cli_grid_put(&grid, "bytes");
    cli_grid_put(&grid, "time");
    add_part(&grid, "find rows and owners", t->dedup.bytes, t->dedup.seconds);
    add_part(&grid, "send row numbers", t->numbers.bytes, t->numbers.seconds);
    add_part(&grid, "gather rows", t->gather.bytes, t->gather.seconds);
    add_part(&grid, "send rows", t->rows.bytes, t->rows.seconds);
    add_part(&grid, "expand to vectors", t->expand.bytes, t->expand.seconds);
    add_part(&grid, "messages", 0, t->latency);
    add_part(&grid, "lookup", 0, t->lookup);
    if (!p->options.frozen) {
        add_part(&grid, "gradients to owners", t->backward.bytes, t->backward.seconds);
        add_part(&grid, "optimizer", t->optimizer.bytes, t->optimizer.seconds);
        add_part(&grid, "step", 0, t->step);
    }
    cli_grid_print(&grid, "lrr");
    putchar('\n');
    cli_out_fact("memory", "%s of rows, %s of optimizer state",
                 bytes_text((double)plan->host_rows, a), bytes_text((double)plan->host_state, b));
    cli_out_fact("", "%s of buffers, %s in all", bytes_text((double)plan->host_buffers, a),
                 bytes_text((double)plan->host_bytes, b));
    if (plan->wire > 0)
        cli_out_fact("network", "a lookup sends %s for each token", bytes_text(plan->wire, a));
    if (plan->ranks > 1)
        cli_out_fact("stops", "messages take longer than bytes from about %s ranks on",
                     cli_commas((int64_t)fmin(plan->flat_limit + 1, 1e15), a));
}

static void print_simulation(const cli_plan *p)
{
    static const char *const heads[] = {"ranks",   "sample", "unique",    "load",  "message",
                                        "longest", "flat",   "two-level", "groups"};
    cli_grid grid = {.columns = 9};
    char text[CLI_CELL];
    printf("\nModel, simulated with %s:\nlookups of the busiest ranks; messages are in rows.\n\n",
           p->trace ? "the row numbers of the trace" : "drawn row numbers");
    for (size_t i = 0; i < grid.columns; i++) cli_grid_put(&grid, "%s", heads[i]);
    for (size_t i = 0; i < p->rank_count; i++) {
        const embla_simulation *s = &p->found[i];
        cli_grid_put(&grid, "%s", cli_commas(s->ranks, text));
        cli_grid_put(&grid, "%s", cli_commas(s->senders, text));
        cli_grid_put(&grid, "%.3g%%", 100 * s->unique);
        cli_grid_put(&grid, "%s%.2f", s->senders < s->ranks ? "<" : "", s->load_max);
        cli_grid_put(&grid, "%.3g", s->message_mean);
        cli_grid_put(&grid, "%s", cli_commas((int64_t)s->message_max, text));
        for (int e = 0; e < EMBLA_PLAN_EXCHANGES; e++)
            cli_grid_put(&grid, "%s", time_text(s->times[e].lookup, text));
    }
    cli_grid_print(&grid, "rrrrrrrrr");
}

void cli_plan_print(const cli_plan *p)
{
    char text[SENTENCE];
    cli_out_wrapped(cli_plan_verdict(p, text, sizeof text), 0, 0);
    for (size_t n = 0; cli_plan_advice(p, n, text, sizeof text); n++)
        cli_out_wrapped(text, printf("%zu. ", n + 1), 3);
    putchar('\n');
    print_facts(p);
    putchar('\n');
    print_hosts(p);
    print_parts(p);
    if (p->rank_count > 0) print_simulation(p);
    printf("\nAll times are a model's; %s.\n",
           p->measured ? "only the speeds of this machine were measured" : "nothing was measured");
}

/* ---- JSON ---- */

static void json_part(cli_json *json, const char *key, embla_plan_part part)
{
    cli_json_open(json, key, '{');
    cli_json_real(json, "bytes", part.bytes);
    cli_json_real(json, "seconds", part.seconds);
    cli_json_close(json, '}');
}

static void json_times(cli_json *json, const embla_plan_times *all, bool frozen)
{
    cli_json_open(json, "exchanges", '{');
    for (int e = 0; e < EMBLA_PLAN_EXCHANGES; e++) {
        const embla_plan_times *t = &all[e];
        cli_json_open(json, exchanges[e], '{');
        json_part(json, "dedup", t->dedup);
        json_part(json, "numbers", t->numbers);
        json_part(json, "gather", t->gather);
        json_part(json, "rows", t->rows);
        json_part(json, "expand", t->expand);
        cli_json_real(json, "latency_seconds", t->latency);
        cli_json_real(json, "lookup_seconds", t->lookup);
        cli_json_real(json, "overlapped_seconds", t->overlapped);
        if (!frozen) {
            json_part(json, "backward", t->backward);
            json_part(json, "optimizer", t->optimizer);
        }
        cli_json_real(json, "step_seconds", t->step);
        cli_json_close(json, '}');
    }
    cli_json_close(json, '}');
}

static void json_plan(cli_json *json, const char *key, const cli_plan *p,
                      const embla_plan_report *plan)
{
    cli_json_open(json, key, '{');
    cli_json_count(json, "hosts", plan->hosts);
    cli_json_count(json, "ranks", plan->ranks);
    cli_json_count(json, "buckets", (int64_t)plan->buckets);
    cli_json_text(json, "verdict", verdicts[plan->verdict]);
    cli_json_text(json, "limit", limit_of(p, plan));
    cli_json_count(json, "host_rows_bytes", plan->host_rows);
    cli_json_count(json, "host_state_bytes", plan->host_state);
    cli_json_count(json, "host_buffer_bytes", plan->host_buffers);
    cli_json_count(json, "host_bytes", plan->host_bytes);
    cli_json_real(json, "bytes_per_token", plan->wire);
    cli_json_real(json, "flat_limit_ranks", plan->flat_limit);
    cli_json_count(json, "group", plan->group);
    cli_json_bool(json, "group_fits", plan->group_fits);
    cli_json_text(json, "fastest", exchanges[plan->fastest]);
    json_times(json, plan->times, p->options.frozen);
    cli_json_close(json, '}');
}

static void json_machine(cli_json *json, const cli_plan *p)
{
    const embla_plan_machine *m = &p->options.machine;
    cli_json_open(json, "machine", '{');
    cli_json_bool(json, "measured", p->measured);
    cli_json_text(json, "measured_with", p->measured && p->job[0] ? p->job : NULL);
    cli_json_count(json, "memory_bytes", m->memory);
    cli_json_real(json, "network_bytes_per_second", m->network);
    cli_json_real(json, "latency_seconds", m->latency);
    cli_json_real(json, "memory_bytes_per_second", m->bandwidth);
    cli_json_real(json, "dedup_seconds", m->dedup);
    cli_json_real(json, "row_seconds", m->row);
    cli_json_close(json, '}');
}

static void json_simulation(cli_json *json, const cli_plan *p)
{
    cli_json_open(json, "simulation", '[');
    for (size_t i = 0; i < p->rank_count; i++) {
        const embla_simulation *s = &p->found[i];
        cli_json_open(json, NULL, '{');
        cli_json_bool(json, "measured", false);
        cli_json_count(json, "ranks", s->ranks);
        cli_json_count(json, "senders", s->senders);
        cli_json_real(json, "unique", s->unique);
        cli_json_real(json, "load_max", s->load_max);
        cli_json_real(json, "message_rows_mean", s->message_mean);
        cli_json_real(json, "message_rows_max", s->message_max);
        cli_json_real(json, "empty_messages", s->empty);
        json_times(json, s->times, p->options.frozen);
        cli_json_close(json, '}');
    }
    cli_json_close(json, ']');
}

void cli_plan_json(const cli_plan *p)
{
    const embla_plan_options *o = &p->options;
    cli_json json = {0};
    char text[SENTENCE];
    cli_json_open(&json, NULL, '{');
    cli_json_text(&json, "kind", "model");
    cli_json_bool(&json, "measured", false);
    cli_json_text(&json, "verdict", cli_plan_verdict(p, text, sizeof text));
    cli_json_open(&json, "advice", '[');
    for (size_t n = 0; cli_plan_advice(p, n, text, sizeof text); n++)
        cli_json_text(&json, NULL, text);
    cli_json_close(&json, ']');
    cli_json_count(&json, "rows", o->rows);
    cli_json_count(&json, "dim", (int64_t)o->dim);
    cli_json_text(&json, "dtype", embla_dtype_name(o->dtype));
    cli_json_text(&json, "optimizer", p->optimizer);
    cli_json_count(&json, "row_bytes", (int64_t)p->plan.row_bytes);
    cli_json_count(&json, "state_bytes", (int64_t)p->plan.state_bytes);
    cli_json_count(&json, "table_bytes", p->plan.table);
    cli_json_count(&json, "min_hosts", p->plan.min_hosts);
    cli_json_count(&json, "tokens", o->tokens);
    cli_json_count(&json, "per_token", o->rows_per_token > 0 ? o->rows_per_token : 1);
    cli_json_real(&json, "unique", p->plan.unique);
    json_machine(&json, p);
    json_plan(&json, "plan", p, &p->plan);
    cli_json_open(&json, "hosts", '[');
    for (size_t i = 0; i < p->host_count; i++) json_plan(&json, NULL, p, &p->hosts[i]);
    cli_json_close(&json, ']');
    if (p->rank_count > 0) json_simulation(&json, p);
    cli_json_close(&json, '}');
    putchar('\n');
}
