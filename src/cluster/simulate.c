/* SPDX-License-Identifier: Apache-2.0 */
/* Simulates the exchange of many ranks: which owner is asked for how many rows, by whom.
 *
 * The row numbers are real, of a trace or drawn by Zipf's law: so are the different rows of each
 * rank, the loads of owners and the sizes of messages. Times are not: a message costs the latency,
 * a byte 1 / bandwidth (LogGP with one gap), and a step is as slow as its busiest rank.
 *
 * The different rows of a rank do not depend on how many ranks there are. So each rank's list is
 * made once, and counted for every number of ranks.
 */
#include <string.h>

#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "cluster/cluster_plan.h"
#include "lookup/unique.h"

#define MOST_USUAL ((size_t)1 << 24)
#define PAIRS_MOST ((int64_t)1 << 28) /* pairs of ranks that are looked at */

enum { CASES_MOST = 64 }; /* numbers of ranks in one call */

/* Rows that `among` ranks ask each other for. */
typedef struct {
    int64_t among, senders; /* senders: how many of them are simulated */
    size_t buckets;
    uint32_t *owners; /* the rank of each bucket */
    uint64_t *loads;  /* rows that each rank is asked for */
    uint32_t *now;    /* the same, by the present sender */
    uint64_t most;    /* rows of the longest message */
    int64_t empty;    /* messages without a row */
} tally;

/* The row numbers and the different ones of one rank. */
typedef struct {
    size_t bytes, asked;
    int64_t *rows, *unique, *where;
    uint32_t *slots;
} batch;

/* ---- memory ---- */

static embla_status new_batch(size_t asked, batch *out)
{
    embla_layout layout = {0};
    void *memory = NULL;
    size_t rows = embla_layout_add(&layout, asked, sizeof(int64_t));
    size_t unique = embla_layout_add(&layout, asked, sizeof(int64_t));
    size_t where = embla_layout_add(&layout, asked, sizeof(int64_t));
    size_t slots = embla_layout_add(&layout, embla_unique_slots(asked), sizeof(uint32_t));
    EMBLA_TRY(embla_mem_new(layout.bytes, "the row numbers of a rank", &memory));
    char *base = memory;
    *out = (batch){.bytes = layout.bytes,
                   .asked = asked,
                   .rows = (void *)(base + rows),
                   .unique = (void *)(base + unique),
                   .where = (void *)(base + where),
                   .slots = (void *)(base + slots)};
    return EMBLA_OK;
}

static size_t lay_out(int64_t ranks, size_t buckets, size_t *loads, size_t *now)
{
    embla_layout layout = {0};
    (void)embla_layout_add(&layout, buckets, sizeof(uint32_t));
    *loads = embla_layout_add(&layout, (size_t)ranks, sizeof(uint64_t));
    *now = embla_layout_add(&layout, (size_t)ranks, sizeof(uint32_t));
    return layout.bytes;
}

static embla_status new_tally(const embla_plan_sizes *s, int64_t among, int64_t senders, tally *out)
{
    size_t loads, now, buckets = embla_plan_buckets(s, among);
    size_t bytes = lay_out(among, buckets, &loads, &now);
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(bytes, "the loads of ranks", &memory));
    char *base = memory;
    *out = (tally){.among = among,
                   .senders = senders < among ? senders : among,
                   .buckets = buckets,
                   .owners = memory,
                   .loads = (void *)(base + loads),
                   .now = (void *)(base + now)};
    for (size_t b = 0; b < buckets; b++)
        out->owners[b] = (uint32_t)embla_buckets_owner(b, buckets, among);
    return EMBLA_OK;
}

static void free_tally(tally *t)
{
    size_t loads, now;
    if (t->owners) embla_mem_free(t->owners, lay_out(t->among, t->buckets, &loads, &now));
}

/* ---- counting ---- */

static void take_rows(const embla_simulation_options *from, const embla_zipf *zipf, int64_t sender,
                      batch *b)
{
    uint64_t state = embla_splitmix64(from->seed + (uint64_t)sender * EMBLA_GOLDEN);
    if (from->trace) {
        memcpy(b->rows, from->trace + (size_t)sender * b->asked, b->asked * sizeof *b->rows);
        return;
    }
    for (size_t i = 0; i < b->asked; i++) b->rows[i] = embla_zipf_draw(zipf, &state);
}

static void count_sender(tally *t, int64_t sender, const int64_t *unique, size_t count)
{
    memset(t->now, 0, (size_t)t->among * sizeof *t->now);
    for (size_t i = 0; i < count; i++) t->now[t->owners[(size_t)unique[i] & (t->buckets - 1)]]++;
    for (int64_t r = 0; r < t->among; r++) {
        t->loads[r] += t->now[r];
        if (r == sender) continue;
        if (t->now[r] > t->most) t->most = t->now[r];
        t->empty += t->now[r] == 0;
    }
}

/* The load of the busiest owner, divided by the mean. */
static double load_max(const tally *t)
{
    uint64_t sum = 0, most = 0;
    for (int64_t r = 0; r < t->among; r++) {
        sum += t->loads[r];
        if (t->loads[r] > most) most = t->loads[r];
    }
    return sum > 0 ? (double)most * (double)t->among / (double)sum : 1.0;
}

/* ---- the result ---- */

static void fill_times(const embla_plan_sizes *s, const embla_zipf *zipf, const tally *all,
                       const tally *group, embla_simulation *out)
{
    for (int i = 0; i < EMBLA_PLAN_EXCHANGES; i++) {
        embla_plan_exchange exchange = (embla_plan_exchange)i;
        const tally *t = exchange == EMBLA_PLAN_EXCHANGE_GROUPS ? group : all;
        double share = (double)embla_plan_near(s, t->among) / (double)t->among;
        embla_plan_load load = {.asked = s->asked, .unique = out->unique * s->asked};
        load.far = load.unique * (1.0 - share);
        load.served = load.far * load_max(t);
        load.sent = load.unique * (1.0 - 1.0 / (double)t->among);
        load.touched = embla_plan_touched(s, zipf, out->unique, out->ranks, t->among);
        embla_plan_time(s, exchange, out->ranks, t->among, &load, &out->times[i]);
    }
}

static void fill(const embla_plan_sizes *s, const embla_zipf *zipf, const tally *all,
                 const tally *group, embla_simulation *out)
{
    double pairs = (double)all->senders * (double)(all->among - 1), sum = 0.0;
    for (int64_t r = 0; r < all->among; r++) sum += (double)all->loads[r];
    *out = (embla_simulation){.ranks = all->among, .senders = all->senders};
    out->unique = sum / (double)all->senders / s->asked;
    out->load_max = load_max(all);
    out->message_mean = sum / (double)all->senders / (double)all->among;
    out->message_max = (double)all->most;
    out->empty = pairs > 0.0 ? (double)all->empty / pairs : 0.0;
    fill_times(s, zipf, all, group, out);
}

/* ---- the simulation ---- */

static embla_status check(const embla_plan_sizes *s, const embla_simulation_options *from,
                          const int64_t *ranks, size_t count, const embla_simulation *out)
{
    size_t most = from->max_rows > 0 ? from->max_rows : MOST_USUAL;
    EMBLA_NEED_OF("embla_plan_simulate", "ranks", ranks);
    EMBLA_NEED_OF("embla_plan_simulate", "out", out);
    if (count < 1 || count > CASES_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "there are %zu numbers of ranks to simulate; there must be from 1 to %d",
                          count, CASES_MOST);
    if (s->asked > (double)most)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a rank asks for %.0f row numbers in a step; at most %zu are simulated",
                          s->asked, most);
    for (size_t i = 0; i < count; i++)
        if (ranks[i] < 1 || ranks[i] > (int64_t)embla_plan_buckets(s, ranks[i]))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "%" PRId64 " ranks cannot be simulated; they must be from 1 to %zu, "
                              "the number of buckets",
                              ranks[i], embla_plan_buckets(s, ranks[i]));
    if (from->trace && (double)from->count < s->asked)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the trace has %zu row numbers; a rank asks for %.0f in a step",
                          from->count, s->asked);
    for (size_t i = 0; from->trace && i < from->count; i++)
        if ((uint64_t)from->trace[i] >= (uint64_t)s->o.rows)
            return embla_fail(EMBLA_ERR_RANGE,
                              "row %" PRId64 " at index %zu of the trace is out of range; the "
                              "table has %" PRId64 " rows",
                              from->trace[i], i, s->o.rows);
    return EMBLA_OK;
}

/* How many of `ranks` ranks are simulated. */
static int64_t count_senders(const embla_simulation_options *from, size_t asked, int64_t ranks)
{
    size_t most = from->max_rows > 0 ? from->max_rows : MOST_USUAL;
    int64_t senders = (int64_t)(most / asked), pairs = PAIRS_MOST / ranks;
    if (from->trace && from->count / asked < (size_t)senders)
        senders = (int64_t)(from->count / asked);
    if (pairs < senders) senders = pairs;
    return senders < ranks ? senders : ranks;
}

static void run(const embla_simulation_options *from, const embla_zipf *zipf, batch *b,
                tally *tallies, size_t count)
{
    int64_t senders = 0;
    for (size_t i = 0; i < count; i++)
        if (tallies[i].senders > senders) senders = tallies[i].senders;
    for (int64_t sender = 0; sender < senders; sender++) {
        take_rows(from, zipf, sender, b);
        size_t unique = embla_unique_find(b->rows, b->asked, b->slots, b->unique, b->where);
        for (size_t i = 0; i < count; i++)
            if (sender < tallies[i].senders) count_sender(&tallies[i], sender, b->unique, unique);
    }
}

/* tallies: for each number of ranks one of all of them, then one of a group. */
static embla_status simulate(const embla_plan_sizes *s, const embla_simulation_options *from,
                             const int64_t *ranks, size_t count, tally *tallies,
                             embla_simulation *out)
{
    size_t asked = (size_t)s->asked;
    embla_zipf zipf;
    batch b;
    for (size_t i = 0; i < count; i++) {
        int64_t group, senders = count_senders(from, asked, ranks[i]);
        EMBLA_TRY(embla_plan_group(s, ranks[i], &group));
        EMBLA_TRY(new_tally(s, ranks[i], senders, &tallies[2 * i]));
        EMBLA_TRY(new_tally(s, group, senders, &tallies[2 * i + 1]));
    }
    EMBLA_TRY(new_batch(asked, &b));
    embla_zipf_set(&zipf, s->o.rows, s->o.zipf);
    run(from, &zipf, &b, tallies, 2 * count);
    for (size_t i = 0; i < count; i++)
        fill(s, from->trace ? NULL : &zipf, &tallies[2 * i], &tallies[2 * i + 1], &out[i]);
    embla_mem_free(b.rows, b.bytes);
    return EMBLA_OK;
}

embla_status embla_plan_simulate(const embla_plan_options *options,
                                 const embla_simulation_options *from, const int64_t *ranks,
                                 size_t count, embla_simulation *out)
{
    const embla_simulation_options defaults = {0};
    embla_plan_sizes s;
    embla_layout layout = {0};
    void *memory = NULL;
    EMBLA_TRY(embla_options_check(from));
    if (!from) from = &defaults;
    EMBLA_TRY(embla_plan_prepare(options, &s));
    EMBLA_TRY(check(&s, from, ranks, count, out));
    (void)embla_layout_add(&layout, 2 * count, sizeof(tally));
    EMBLA_TRY(embla_mem_new(layout.bytes, "the loads of ranks", &memory));
    tally *tallies = memory;
    embla_status status = simulate(&s, from, ranks, count, tallies, out);
    for (size_t i = 0; i < 2 * count; i++) free_tally(&tallies[i]);
    embla_mem_free(memory, layout.bytes);
    return status;
}
