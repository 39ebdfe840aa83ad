/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the speeds that a plan needs, with the functions that a sharded lookup uses: finding
 * different rows, gathering them, expanding them to vectors, and exchanges of the communicator.
 *
 * All ranks measure at the same time, because they share memory and network. A figure is the
 * shortest of several turns, on the slowest rank.
 */
#include <string.h>

#include "base/checked.h"
#include "base/clock.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "cluster/cluster_plan.h"
#include "cluster/comm.h"
#include "lookup/unique.h"

enum {
    TURNS = 30,
    OWNERS = 64, /* that row numbers are ordered by */
    BUCKETS = 1024,
    MOST = 1 << 16,       /* row numbers of a turn */
    TABLE_MOST = 1 << 27, /* bytes of the table */
    OUT_MOST = 1 << 26    /* bytes of the vectors */
};

/* What is timed: indexes of times. */
enum { DEDUP, OWNER, GATHER, DIRECT, EXPAND, MESSAGE, ROWS, TIMES };

typedef struct {
    const embla_comm *comm;
    embla_plan_sizes sizes;
    size_t stored; /* bytes of a row in the table: without separate scales */
    size_t asked, unique;
    int64_t *rank_of;         /* the owner of each bucket */
    embla_comm_window window; /* the rows, if ranks of a host read each other's */
    int64_t table_rows;
    embla_table *table, *staged;
    size_t bytes; /* of the arrays below, in one block */
    int64_t *rows, *found, *where, *place;
    uint32_t *slots;
    size_t *lists;            /* rows of each owner, and where they begin */
    size_t *counts;           /* rows for each rank */
    int64_t *sent, *received; /* a message for each rank */
    char *answer;             /* rows */
    float *out;
    double times[TIMES]; /* seconds of the shortest turn, on its slowest rank */
} bench;

/* ---- set up ---- */

static size_t at_most(size_t a, size_t b)
{
    return a < b ? a : b;
}

static embla_status new_arrays(bench *b)
{
    embla_layout layout = {0};
    void *memory = NULL;
    size_t n = b->asked, ranks = (size_t)b->comm->size;
    size_t rows = embla_layout_add(&layout, n, sizeof(int64_t));
    size_t found = embla_layout_add(&layout, n, sizeof(int64_t));
    size_t where = embla_layout_add(&layout, n, sizeof(int64_t));
    size_t place = embla_layout_add(&layout, n, sizeof(int64_t));
    size_t slots = embla_layout_add(&layout, embla_unique_slots(n), sizeof(uint32_t));
    size_t lists = embla_layout_add(&layout, 2 * OWNERS, sizeof(size_t));
    size_t rank_of = embla_layout_add(&layout, BUCKETS, sizeof(int64_t));
    size_t counts = embla_layout_add(&layout, ranks, sizeof(size_t));
    size_t sent = embla_layout_add(&layout, ranks, sizeof(int64_t));
    size_t received = embla_layout_add(&layout, ranks, sizeof(int64_t));
    size_t answer = embla_layout_add(&layout, n, b->stored);
    size_t out = embla_layout_add(&layout, n, b->sizes.o.dim * sizeof(float));
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu rows of %zu bytes do not fit in memory", n,
                          b->stored);
    EMBLA_TRY(embla_mem_new(layout.bytes, "rows to measure with", &memory));
    char *base = memory;
    b->bytes = layout.bytes;
    b->rows = (void *)(base + rows);
    b->found = (void *)(base + found);
    b->where = (void *)(base + where);
    b->place = (void *)(base + place);
    b->slots = (void *)(base + slots);
    b->lists = (void *)(base + lists);
    b->rank_of = (void *)(base + rank_of);
    for (size_t i = 0; i < BUCKETS; i++) b->rank_of[i] = embla_buckets_owner(i, BUCKETS, OWNERS);
    b->counts = (void *)(base + counts);
    b->sent = (void *)(base + sent);
    b->received = (void *)(base + received);
    b->answer = base + answer;
    b->out = (void *)(base + out);
    memset(b->answer, 0, layout.bytes - answer); /* no page is new when it is timed */
    return EMBLA_OK;
}

/* Memory of this rank alone, and row numbers as planned. */
static embla_status set_up(bench *b)
{
    const embla_plan_options *o = &b->sizes.o;
    size_t vector = o->dim * sizeof(float);
    EMBLA_TRY(embla_dtype_row_bytes(o->dtype, o->dim, &b->stored));
    b->table_rows = (int64_t)(TABLE_MOST / b->stored) + 1;
    if (o->rows < b->table_rows) b->table_rows = o->rows;
    b->asked = at_most((size_t)b->sizes.asked, at_most(MOST, OUT_MOST / vector + 1));
    EMBLA_TRY(new_arrays(b));
    embla_zipf zipf;
    uint64_t state = (uint64_t)b->comm->rank;
    embla_zipf_set(&zipf, b->table_rows, o->zipf);
    for (size_t i = 0; i < b->asked; i++) {
        /* frequent rows lie anywhere in memory, not side by side */
        uint64_t row = (uint64_t)embla_zipf_draw(&zipf, &state);
        b->rows[i] = (int64_t)(embla_mix64(row) % (uint64_t)b->table_rows);
    }
    b->unique = embla_unique_find(b->rows, b->asked, b->slots, b->found, b->where);
    EMBLA_TRY(embla_table_new(o->dtype, (int64_t)b->unique, o->dim, NULL, &b->staged));
    memset(embla_table_data(b->staged), 0, b->unique * embla_table_row_stride(b->staged));
    return EMBLA_OK;
}

/* The rows, in memory as a sharded table has it: a window has other pages than the rest. Counts the
 * ranks of this host, too. Collective. */
static embla_status set_up_rows(bench *b, int64_t *near)
{
    const embla_plan_options *o = &b->sizes.o;
    const embla_comm *c = b->comm;
    size_t bytes = (size_t)b->table_rows * b->stored;
    const embla_table_options writable = {.writable = true};
    *near = 1;
    if (!c->window_new || !c->window_free || c->size == 1) {
        EMBLA_TRY(embla_table_new(o->dtype, b->table_rows, o->dim, NULL, &b->table));
    } else {
        EMBLA_TRY(c->window_new(c->owner, bytes, &b->window));
        *near = 0;
        for (int r = 0; r < c->size; r++) *near += b->window.parts[r] != NULL;
        if (o->send)
            EMBLA_TRY(embla_table_new(o->dtype, b->table_rows, o->dim, NULL, &b->table));
        else
            EMBLA_TRY(embla_table_view(
                &(embla_table_layout){.dtype = o->dtype, .rows = b->table_rows, .dim = o->dim},
                b->window.parts[c->rank], bytes, &writable, &b->table));
    }
    memset(embla_table_data(b->table), 0, bytes);
    return EMBLA_OK;
}

static void tear_down(bench *b)
{
    embla_table_free(b->staged);
    embla_table_free(b->table);
    if (b->window.handle) b->comm->window_free(b->comm->owner, &b->window);
    embla_mem_free(b->rows, b->bytes);
}

/* ---- turns ---- */

static size_t owner_of(const bench *b, int64_t row)
{
    return (size_t)b->rank_of[(size_t)row % BUCKETS];
}

/* Finds the different rows and orders them by owner, as a lookup does. */
static embla_status dedup(bench *b)
{
    size_t *lists = b->lists, *at = b->lists + OWNERS;
    size_t unique = embla_unique_find(b->rows, b->asked, b->slots, b->found, b->where);
    memset(lists, 0, OWNERS * sizeof *lists);
    for (size_t u = 0; u < unique; u++) lists[owner_of(b, b->found[u])]++;
    at[0] = 0;
    for (size_t i = 1; i < OWNERS; i++) at[i] = at[i - 1] + lists[i - 1];
    for (size_t u = 0; u < unique; u++) b->place[u] = (int64_t)at[owner_of(b, b->found[u])]++;
    for (size_t i = 0; i < b->asked; i++) b->where[i] = b->place[b->where[i]];
    return EMBLA_OK;
}

static embla_status find_owners(bench *b)
{
    for (size_t i = 0; i < b->asked; i++)
        b->place[i] = b->rank_of[(size_t)b->rows[i] % BUCKETS] + b->rows[i] / BUCKETS;
    return EMBLA_OK;
}

static embla_status gather(bench *b)
{
    const embla_lookup_options raw = {.raw = true};
    return embla_lookup_rows(b->table, b->found, b->unique, &raw, b->answer);
}

/* Vectors from rows where they are, as on one host. */
static embla_status look_up(bench *b)
{
    return embla_lookup_rows(b->table, b->rows, b->asked, NULL, b->out);
}

static embla_status expand(bench *b)
{
    return embla_lookup_rows(b->staged, b->where, b->asked, NULL, b->out);
}

static embla_status message(bench *b)
{
    return b->comm->alltoall(b->comm->owner, b->sent, b->received, sizeof *b->sent);
}

/* Every rank sends as many rows to every rank. They leave from `answer` and arrive in `out`. */
static embla_status exchange(bench *b)
{
    const embla_exchange e = {.send = b->answer,
                              .send_counts = b->counts,
                              .receive = b->out,
                              .receive_counts = b->counts,
                              .unit = b->stored};
    return b->comm->alltoallv(b->comm->owner, &e);
}

/* The time of a turn is that of its slowest rank: a rank that comes last never waits. */
static embla_status time_turns(bench *b, int what, embla_status (*turn)(bench *b))
{
    const embla_comm *c = b->comm;
    double seconds[TURNS];
    for (int i = 0; i < TURNS; i++) {
        EMBLA_TRY(c->barrier(c->owner, 0));
        double begun = embla_clock_seconds();
        EMBLA_TRY(turn(b));
        seconds[i] = embla_clock_seconds() - begun;
    }
    EMBLA_TRY(c->allreduce(c->owner, seconds, TURNS, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_MAX));
    b->times[what] = seconds[0];
    for (int i = 1; i < TURNS; i++)
        if (seconds[i] < b->times[what]) b->times[what] = seconds[i];
    return EMBLA_OK;
}

static embla_status time_all(bench *b)
{
    const embla_comm *c = b->comm;
    /* rows for each rank: as many as every rank has room for */
    int64_t least =
        -(int64_t)at_most(b->unique, b->asked * b->sizes.o.dim * sizeof(float) / b->stored);
    EMBLA_TRY(c->allreduce(c->owner, &least, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
    for (int r = 0; r < c->size; r++) b->counts[r] = (size_t)-least / (size_t)c->size;
    EMBLA_TRY(time_turns(b, OWNER, find_owners));
    EMBLA_TRY(time_turns(b, DEDUP, dedup));
    EMBLA_TRY(time_turns(b, GATHER, gather));
    EMBLA_TRY(time_turns(b, DIRECT, look_up));
    EMBLA_TRY(time_turns(b, EXPAND, expand));
    if (c->size == 1) return EMBLA_OK;
    EMBLA_TRY(time_turns(b, MESSAGE, message));
    return time_turns(b, ROWS, exchange);
}

/* ---- figures ---- */

static double at_least(double a, double b)
{
    return a > b ? a : b;
}

static void compute(const bench *b, embla_plan_machine *m)
{
    double stored = (double)b->stored, here = (double)m->ranks, others = b->comm->size - 1;
    double vectors = (double)b->asked * (double)b->sizes.o.dim * sizeof(float);
    double expanded = vectors + (double)b->unique * stored;
    m->dedup = at_least(b->times[DEDUP], 1e-9) / (double)b->asked;
    m->owner = at_least(b->times[OWNER], 1e-9) / (double)b->asked;
    m->bandwidth = here * expanded / at_least(b->times[EXPAND], 1e-9);
    /* what a row at a random place costs besides its bytes: the greater of two ways to read it */
    double gathered = b->times[GATHER] / (double)b->unique - 2.0 * stored * here / m->bandwidth;
    double direct = (b->times[DIRECT] - b->times[EXPAND]) / (double)b->unique;
    m->row = at_least(at_least(gathered, direct), 0.0);
    if (b->comm->size == 1) return;
    m->latency = at_least(b->times[MESSAGE], 1e-9) / others;
    double bytes = (double)b->counts[0] * others * stored;
    /* without the messages; they take less than half of it, or else the clock was disturbed */
    double net = at_least(b->times[ROWS] - b->times[MESSAGE], 0.5 * b->times[ROWS]);
    m->network = here * bytes / at_least(net, 1e-9);
}

embla_status embla_plan_measure(const embla_comm *comm, const embla_plan_options *options,
                                embla_plan_machine *out)
{
    bench b = {.comm = comm};
    EMBLA_NEED(comm);
    EMBLA_NEED(out);
    const char *why = "its speeds cannot be measured";
    embla_status status = embla_plan_prepare(options, &b.sizes);
    if (status == EMBLA_OK) status = set_up(&b);
    status = embla_comm_agree(comm, status, why);
    embla_plan_machine machine = b.sizes.o.machine;
    if (status == EMBLA_OK) status = embla_comm_agree(comm, set_up_rows(&b, &machine.ranks), why);
    if (status == EMBLA_OK) status = time_all(&b);
    if (status == EMBLA_OK) {
        compute(&b, &machine);
        *out = machine;
    }
    tear_down(&b);
    return status;
}
