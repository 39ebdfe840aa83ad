/* SPDX-License-Identifier: Apache-2.0 */
/* Measures the speeds that a plan needs, with the functions that a sharded lookup uses: finding
 * different rows, gathering them, expanding them to vectors, and exchanges of the communicator.
 *
 * All ranks measure at the same time, because they share memory and network. A figure is the
 * shortest of several turns, on the slowest rank.
 */
#include <string.h>
#include <time.h>

#include "base/checked.h"
#include "base/hash.h"
#include "base/layout.h"
#include "base/mem.h"
#include "cluster/cluster_plan.h"
#include "cluster/comm.h"
#include "lookup/unique.h"

enum {
    TURNS = 30,
    MOST = 1 << 16,       /* row numbers of a turn */
    TABLE_MOST = 1 << 27, /* bytes of the table */
    OUT_MOST = 1 << 26    /* bytes of the vectors */
};

/* What is timed: indexes of times. */
enum { DEDUP, GATHER, EXPAND, MESSAGE, ROWS, TIMES };

typedef struct {
    const embla_comm *comm;
    embla_plan_sizes sizes;
    size_t stored; /* bytes of a row in the table: without separate scales */
    size_t asked, unique;
    embla_table *table, *staged;
    size_t bytes; /* of the arrays below, in one block */
    int64_t *rows, *found, *where;
    uint32_t *slots;
    size_t *counts;           /* rows for each rank */
    int64_t *sent, *received; /* a message for each rank */
    char *answer;             /* rows */
    float *out;
    double times[TIMES]; /* seconds of the shortest turn */
} bench;

static double seconds_now(void)
{
    struct timespec now;
    (void)clock_gettime(CLOCK_MONOTONIC, &now);
    return (double)now.tv_sec + 1e-9 * (double)now.tv_nsec;
}

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
    size_t slots = embla_layout_add(&layout, embla_unique_slots(n), sizeof(uint32_t));
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
    b->slots = (void *)(base + slots);
    b->counts = (void *)(base + counts);
    b->sent = (void *)(base + sent);
    b->received = (void *)(base + received);
    b->answer = base + answer;
    b->out = (void *)(base + out);
    memset(b->answer, 0, layout.bytes - answer); /* no page is new when it is timed */
    return EMBLA_OK;
}

/* A table of the planned rows, or of as many as memory may have; row numbers as planned. */
static embla_status set_up(bench *b)
{
    const embla_plan_options *o = &b->sizes.o;
    size_t vector = o->dim * sizeof(float);
    EMBLA_TRY(embla_dtype_row_bytes(o->dtype, o->dim, &b->stored));
    int64_t rows = (int64_t)(TABLE_MOST / b->stored) + 1;
    if (o->rows < rows) rows = o->rows;
    b->asked = at_most((size_t)b->sizes.asked, at_most(MOST, OUT_MOST / vector + 1));
    EMBLA_TRY(new_arrays(b));
    EMBLA_TRY(embla_table_new(o->dtype, rows, o->dim, NULL, &b->table));
    memset(embla_table_data(b->table), 0, (size_t)rows * embla_table_row_stride(b->table));
    embla_zipf zipf;
    uint64_t state = (uint64_t)b->comm->rank;
    embla_zipf_set(&zipf, rows, o->zipf);
    for (size_t i = 0; i < b->asked; i++) {
        /* frequent rows lie anywhere in memory, not side by side */
        uint64_t row = (uint64_t)embla_zipf_draw(&zipf, &state);
        b->rows[i] = (int64_t)(embla_mix64(row) % (uint64_t)rows);
    }
    b->unique = embla_unique_find(b->rows, b->asked, b->slots, b->found, b->where);
    EMBLA_TRY(embla_table_new(o->dtype, (int64_t)b->unique, o->dim, NULL, &b->staged));
    memset(embla_table_data(b->staged), 0, b->unique * embla_table_row_stride(b->staged));
    return EMBLA_OK;
}

static void tear_down(bench *b)
{
    embla_table_free(b->staged);
    embla_table_free(b->table);
    embla_mem_free(b->rows, b->bytes);
}

/* ---- turns ---- */

static embla_status dedup(bench *b)
{
    (void)embla_unique_find(b->rows, b->asked, b->slots, b->found, b->where);
    return EMBLA_OK;
}

static embla_status gather(bench *b)
{
    const embla_lookup_options raw = {.raw = true};
    return embla_lookup_rows(b->table, b->found, b->unique, &raw, b->answer);
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

static embla_status time_turns(bench *b, int what, embla_status (*turn)(bench *b))
{
    double best = 1e30;
    EMBLA_TRY(b->comm->barrier(b->comm->owner, 0));
    for (int i = 0; i < TURNS; i++) {
        double begun = seconds_now();
        EMBLA_TRY(turn(b));
        double seconds = seconds_now() - begun;
        if (seconds < best) best = seconds;
    }
    b->times[what] = best;
    return EMBLA_OK;
}

static embla_status time_all(bench *b)
{
    const embla_comm *c = b->comm;
    /* rows for each rank: as many as every rank has room for */
    int64_t least =
        -(int64_t)at_most(b->unique, b->asked * b->sizes.o.dim * sizeof(float) / b->stored);
    EMBLA_TRY(c->allreduce(c->owner, &least, 1, EMBLA_COMM_INT64, EMBLA_COMM_MAX));
    for (int r = 0; r < c->size; r++) b->counts[r] = (size_t)-least / (size_t)c->size;
    EMBLA_TRY(time_turns(b, DEDUP, dedup));
    EMBLA_TRY(time_turns(b, GATHER, gather));
    EMBLA_TRY(time_turns(b, EXPAND, expand));
    if (c->size > 1) {
        EMBLA_TRY(time_turns(b, MESSAGE, message));
        EMBLA_TRY(time_turns(b, ROWS, exchange));
    }
    return c->allreduce(c->owner, b->times, TIMES, EMBLA_COMM_DOUBLE, EMBLA_COMM_MAX);
}

/* ---- figures ---- */

/* The ranks of this host; 1 if the communicator cannot tell. */
static embla_status count_near(const embla_comm *c, int64_t *out)
{
    embla_window window = {0};
    int64_t near = 0;
    *out = 1;
    if (c->size == 1 || !c->window_new || !c->window_free) return EMBLA_OK;
    EMBLA_TRY(c->window_new(c->owner, sizeof(int64_t), &window));
    for (int r = 0; r < c->size; r++) near += window.parts[r] != NULL;
    c->window_free(c->owner, &window);
    EMBLA_TRY(c->allreduce(c->owner, &near, 1, EMBLA_COMM_INT64, EMBLA_COMM_MAX));
    *out = near;
    return EMBLA_OK;
}

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
    m->bandwidth = here * expanded / at_least(b->times[EXPAND], 1e-9);
    double row = b->times[GATHER] / (double)b->unique - 2.0 * stored * here / m->bandwidth;
    m->row = at_least(row, 0.0);
    if (b->comm->size == 1) return;
    m->latency = at_least(b->times[MESSAGE], 1e-9) / others;
    double bytes = (double)b->counts[0] * others * stored;
    m->network = here * bytes / at_least(b->times[ROWS] - b->times[MESSAGE], 1e-9);
}

embla_status embla_plan_measure(const embla_comm *comm, const embla_plan_options *options,
                                embla_plan_machine *out)
{
    bench b = {.comm = comm};
    if (!comm || !out)
        return embla_fail(EMBLA_ERR_ARGUMENT, "embla_plan_measure: %s is NULL",
                          comm ? "out" : "the communicator");
    embla_status status = embla_plan_prepare(options, &b.sizes);
    if (status == EMBLA_OK) status = set_up(&b);
    status = embla_comm_agree(comm, status, "its speeds cannot be measured");
    embla_plan_machine machine = b.sizes.o.machine;
    if (status == EMBLA_OK) status = count_near(comm, &machine.ranks);
    if (status == EMBLA_OK) status = time_all(&b);
    if (status == EMBLA_OK) {
        compute(&b, &machine);
        *out = machine;
    }
    tear_down(&b);
    return status;
}
