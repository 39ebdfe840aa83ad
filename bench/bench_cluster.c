/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench cluster: a sharded table, under mpirun: `mpirun -n 2 embla bench cluster`.
 *
 * A case is WHAT/DIM.
 *   sent       lookup of 8,192 tokens on each rank (as frequent as in text), with rows sent. The
 *              limit is the time of its parts, each alone: finding different rows, the exchange of
 *              counts, of row numbers and of rows, copying rows at the owner and at the caller
 *   shared     the same with rows in the memory that the ranks of a host share. The limit is the
 *              lookup with rows sent: the ratio says how many times faster it is
 *   hidden     an exchange of rows while the rank multiplies matrices: which part of its time is
 *              hidden. The limit is all of it
 *   lookup-planned, step-planned
 *              a lookup, and a lookup, sum of gradients and update of rows, with the memory of a
 *              host shared. The limit is what `embla plan --measure` says
 *   allreduce  sums of 16 million floats, against the bare call of MPI
 *   owners     how evenly different rows of 64 simulated ranks are spread over their owners: mean
 *              over maximum
 * Times are the minimum of 31 turns, each begun by all ranks together, on the slowest rank.
 */
#include <dlfcn.h>
#include <float.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "base/hash.h"
#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "bench/products.h"
#include "cluster/comm.h"
#include "cluster/sharded.h"
#include "embla_cluster.h"

enum { ROWS = 131072, TOKENS = 8192, TURNS = 31, FLOATS = 16 << 20, SIZE = 192 };
enum { SLOT_BITS = 14, SLOTS = 1 << SLOT_BITS };

/* The function of libembla_mpi that calls MPI alone. */
typedef int bare_fn(const embla_comm *comm, float *values, int count);

/* What the cases of one dim share. */
typedef struct {
    const embla_comm *comm;
    embla_sharded *sent, *shared;
    size_t dim;
    int64_t *rows;
    float *out;
    /* the parts alone */
    uint32_t *slots;
    int64_t *found, *where, *numbers, *asked;
    size_t *counts, *wanted;
    size_t unique, total;
    float *answer, *staged; /* rows */
    embla_table *staging;
    embla_optim *optim; /* of the shared table */
    float *a, *b, *c;   /* matrices of SIZE x SIZE */
    size_t products;
    bare_fn *bare;
    float *values; /* of sums */
    bool failed;
} job;

typedef void work(job *j);

static void keep(job *j, embla_status status)
{
    j->failed = j->failed || status != EMBLA_OK;
}

/* The least time of each work, in turns; that of the slowest rank. */
static void measure(job *j, work *const *works, size_t count, double *out)
{
    const embla_comm *c = j->comm;
    for (size_t i = 0; i < count; i++) out[i] = DBL_MAX;
    for (int turn = 0; turn <= TURNS && !j->failed; turn++)
        for (size_t i = 0; i < count; i++) {
            keep(j, c->barrier(c->owner, 0));
            double begun = bench_now();
            works[i](j);
            double took = bench_now() - begun;
            keep(j, c->allreduce(c->owner, &took, 1, EMBLA_COMM_TYPE_DOUBLE, EMBLA_COMM_OP_MAX));
            if (turn > 0 && took < out[i]) out[i] = took;
        }
}

/* ---- a lookup, and its parts ---- */

static void look_up_sent(job *j)
{
    keep(j, embla_sharded_lookup(j->sent, j->rows, TOKENS, j->out));
}

static void look_up_shared(job *j)
{
    keep(j, embla_sharded_lookup(j->shared, j->rows, TOKENS, j->out));
}

/* A hash table with open addresses, as small as can be. */
static void find_unique(job *j)
{
    memset(j->slots, 0, SLOTS * sizeof *j->slots);
    j->unique = 0;
    for (size_t i = 0; i < TOKENS; i++) {
        size_t at = (size_t)((uint64_t)j->rows[i] * EMBLA_GOLDEN >> (64 - SLOT_BITS));
        while (j->slots[at] && j->found[j->slots[at] - 1] != j->rows[i]) at = (at + 1) % SLOTS;
        if (!j->slots[at]) {
            j->found[j->unique++] = j->rows[i];
            j->slots[at] = (uint32_t)j->unique;
        }
        j->where[i] = (int64_t)j->slots[at] - 1;
    }
}

static void exchange_numbers(job *j)
{
    const embla_comm *c = j->comm;
    const embla_exchange e = {j->numbers, j->counts, j->asked, j->wanted, sizeof(int64_t), {0}};
    keep(j, c->alltoall(c->owner, j->counts, j->wanted, sizeof(size_t)));
    keep(j, c->alltoallv(c->owner, &e));
}

static void copy_rows(job *j)
{
    const embla_lookup_options raw = {.raw = true, .threads = 1};
    keep(j, embla_lookup_rows(embla_sharded_table(j->sent), j->asked, j->total, &raw, j->answer));
}

static void exchange_rows(job *j)
{
    const embla_comm *c = j->comm;
    const embla_exchange e = {j->answer, j->wanted, j->staged, j->counts, j->dim * sizeof(float),
                              {0}};
    keep(j, c->alltoallv(c->owner, &e));
}

static void expand(job *j)
{
    const embla_lookup_options one = {.threads = 1};
    keep(j, embla_lookup_rows(j->staging, j->where, TOKENS, &one, j->out));
}

/* Rows of this rank are not exchanged with itself, but copied like those for others. */
static void copy_own(job *j)
{
    const embla_lookup_options raw = {.raw = true, .threads = 1};
    size_t far = 0;
    for (int r = 0; r < j->comm->size; r++) far += j->counts[r];
    keep(j, embla_lookup_rows(embla_sharded_table(j->sent), j->numbers + far, j->unique - far, &raw,
                              j->staged + far * j->dim));
}

/* What the parts need: the numbers of the lookup, ordered by owner, own rows last. */
static void prepare_parts(job *j)
{
    const embla_comm *c = j->comm;
    size_t at = 0;
    find_unique(j);
    memset(j->counts, 0, (size_t)c->size * sizeof *j->counts);
    for (int step = 1; step <= c->size; step++) { /* other ranks first */
        int owner = step < c->size ? (step <= c->rank ? step - 1 : step) : c->rank;
        for (size_t u = 0; u < j->unique; u++) {
            if (embla_sharded_owner(j->sent, j->found[u]) != owner) continue;
            j->numbers[at++] = embla_sharded_local(j->sent, j->found[u]);
            if (owner != c->rank) j->counts[owner]++;
        }
    }
    keep(j, c->alltoall(c->owner, j->counts, j->wanted, sizeof(size_t)));
    j->total = 0;
    for (int r = 0; r < c->size; r++) j->total += j->wanted[r];
    free(j->asked);
    free(j->answer);
    j->asked = calloc(j->total + 1, sizeof *j->asked);
    j->answer = bench_memory((j->total + 1) * j->dim * sizeof(float));
    if (!j->asked || !j->answer) j->failed = true;
    if (!j->failed) exchange_numbers(j);
}

/* ---- hidden exchanges ---- */

static void multiply(job *j)
{
    for (size_t i = 0; i < j->products; i++)
        if (!bench_product(j->a, j->b, SIZE, SIZE, SIZE, j->c)) j->failed = true;
}

static void exchange_alone(job *j)
{
    keep(j, embla_sharded_lookup_start(j->sent, j->rows, TOKENS));
    keep(j, embla_sharded_lookup_finish(j->sent, j->out));
}

static void exchange_and_multiply(job *j)
{
    keep(j, embla_sharded_lookup_start(j->sent, j->rows, TOKENS));
    for (size_t i = 0; i < j->products && !j->failed; i++) {
        if (!bench_product(j->a, j->b, SIZE, SIZE, SIZE, j->c)) j->failed = true;
        keep(j, embla_sharded_lookup_poll(j->sent));
    }
    keep(j, embla_sharded_lookup_finish(j->sent, j->out));
}

/* Enough products to take three times as long as the exchange. */
static void choose_products(job *j)
{
    work *const both[] = {multiply, exchange_alone};
    double times[2];
    j->products = 1;
    measure(j, both, 2, times);
    if (!j->failed) j->products = (size_t)(3.0 * times[1] / times[0]) + 1;
}

/* ---- open, close ---- */

static bool open_job(job *j, const embla_comm *comm, size_t dim)
{
    static int32_t tokens[TOKENS * 64];
    const embla_sharded_options o = {.rows = ROWS,
                                     .dim = dim,
                                     .dtype = EMBLA_F32,
                                     .capacity = TOKENS,
                                     .send = true,
                                     .threads = 1};
    embla_sharded_options shared = o;
    shared.send = false;
    *j = (job){.comm = comm, .dim = dim};
    size_t ranks = (size_t)comm->size, bytes = TOKENS * dim * sizeof(float);
    j->rows = calloc(TOKENS, sizeof *j->rows);
    j->slots = calloc(SLOTS, sizeof *j->slots);
    j->found = calloc(TOKENS, sizeof *j->found);
    j->where = calloc(TOKENS, sizeof *j->where);
    j->numbers = calloc(TOKENS, sizeof *j->numbers);
    j->counts = calloc(ranks, sizeof *j->counts);
    j->wanted = calloc(ranks, sizeof *j->wanted);
    j->out = bench_memory(bytes);
    j->staged = bench_memory(bytes);
    j->a = bench_memory(3 * SIZE * SIZE * sizeof(float));
    if (!j->rows || !j->slots || !j->found || !j->where || !j->numbers || !j->counts ||
        !j->wanted || !j->out || !j->staged || !j->a || comm->size > 64 ||
        !bench_tokens(true, ROWS, TOKENS * ranks, tokens))
        return false;
    j->b = j->a + SIZE * SIZE;
    j->c = j->b + SIZE * SIZE;
    for (size_t i = 0; i < TOKENS; i++) j->rows[i] = tokens[(size_t)comm->rank * TOKENS + i];
    keep(j, embla_sharded_new(comm, &o, &j->sent));
    if (!j->failed) keep(j, embla_sharded_new(comm, &shared, &j->shared));
    if (!j->failed) keep(j, embla_sharded_init(j->sent, NULL));
    if (!j->failed) keep(j, embla_sharded_init(j->shared, NULL));
    if (!j->failed)
        keep(j,
             embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = TOKENS, .dim = dim},
                              j->staged, bytes, NULL, &j->staging));
    if (!j->failed) prepare_parts(j);
    return !j->failed;
}

static void close_job(job *j)
{
    embla_optim_free(j->optim);
    embla_table_free(j->staging);
    embla_sharded_free(j->sent);
    embla_sharded_free(j->shared);
    void *const all[] = {j->rows,   j->slots,  j->found, j->where,  j->numbers, j->asked,
                         j->counts, j->wanted, j->out,   j->staged, j->answer,  j->a};
    for (size_t i = 0; i < sizeof all / sizeof *all; i++) free(all[i]);
}

/* ---- cases ---- */

static void print(const bench_options *options, const embla_comm *comm, const char *name,
                  const char *unit, const char *limit_is, double value, double limit)
{
    const bench_result r = {.bench = "cluster",
                            .name = name,
                            .unit = unit,
                            .limit_is = limit_is,
                            .threads = 1,
                            .value = value,
                            .limit = limit};
    if (comm->rank == 0) bench_print(options, &r);
}

static void run_lookups(bench_cases *cases, job *j, bool sent, bool shared)
{
    static work *const works[] = {look_up_sent, look_up_shared, find_unique, exchange_numbers,
                                  copy_rows,    exchange_rows,  copy_own,    expand};
    enum { WORKS = sizeof works / sizeof *works };
    double times[WORKS], parts = 0.0, rows = TOKENS / 1e6;
    char name[32];
    measure(j, works, WORKS, times);
    for (size_t i = 2; i < WORKS; i++) parts += times[i];
    if (j->failed) return;
    (void)snprintf(name, sizeof name, "sent/%zu", j->dim);
    if (sent)
        print(cases->options, j->comm, name, "Mrows/s", "its parts alone", rows / times[0],
              rows / parts);
    (void)snprintf(name, sizeof name, "shared/%zu", j->dim);
    if (shared)
        print(cases->options, j->comm, name, "Mrows/s", "the same with rows sent", rows / times[1],
              rows / times[0]);
}

static void run_hidden(bench_cases *cases, job *j)
{
    static work *const works[] = {multiply, exchange_alone, exchange_and_multiply};
    double times[3];
    char name[32];
    choose_products(j);
    measure(j, works, 3, times);
    double exposed = times[2] - times[0];
    if (j->failed) return;
    (void)snprintf(name, sizeof name, "hidden/%zu", j->dim);
    print(cases->options, j->comm, name, "of the time", "all of an exchange",
          1.0 - (exposed > 0.0 ? exposed : 0.0) / times[1], 1.0);
}

/* ---- a step, beside the plan ---- */

static void make_step(job *j)
{
    embla_sharded_sums got = {0};
    look_up_shared(j);
    if (!j->failed)
        keep(j,
             embla_sharded_sum(j->shared, &(embla_sharded_batch){.rows = j->rows, .count = TOKENS},
                               j->out, &got));
    if (!j->failed) keep(j, embla_optim_step_rows(j->optim, 1e-6, got.rows, got.count, got.sums));
    if (!j->failed) keep(j, embla_sharded_publish(j->shared));
}

/* What the plan says with the speeds of this machine and the rows of this job. */
static void predict(job *j, double *lookup, double *step)
{
    embla_plan_report report = {0};
    embla_plan_options plan = {.rows = ROWS,
                               .dim = j->dim,
                               .dtype = EMBLA_F32,
                               .optimizer = EMBLA_OPTIM_ADAGRAD_ROWWISE,
                               .tokens = TOKENS,
                               .zipf = 1.0,
                               .unique = (double)j->unique / TOKENS,
                               .hosts = 1,
                               .ranks_per_host = j->comm->size};
    keep(j, embla_plan_measure(j->comm, &plan, &plan.machine));
    if (!j->failed) keep(j, embla_plan_compute(&plan, &report));
    *lookup = report.times[EMBLA_PLAN_EXCHANGE_FLAT].lookup;
    *step = report.times[EMBLA_PLAN_EXCHANGE_FLAT].step;
}

static void run_planned(bench_cases *cases, job *j)
{
    static work *const works[] = {look_up_shared, make_step};
    const embla_optim_options rule = {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE, .threads = 1};
    double times[2], lookup = 0.0, step = 0.0, rows = TOKENS / 1e6;
    char name[32];
    keep(j, embla_optim_new(embla_sharded_table(j->shared), &rule, &j->optim));
    if (!j->failed) predict(j, &lookup, &step);
    measure(j, works, 2, times);
    if (j->failed) return;
    (void)snprintf(name, sizeof name, "lookup-planned/%zu", j->dim);
    print(cases->options, j->comm, name, "Mrows/s", "the plan", rows / times[0], rows / lookup);
    (void)snprintf(name, sizeof name, "step-planned/%zu", j->dim);
    print(cases->options, j->comm, name, "Mrows/s", "the plan", rows / times[1], rows / step);
}

static int run_dim(bench_cases *cases, const embla_comm *comm, size_t dim)
{
    static const char *const kinds[] = {"sent", "shared", "hidden", "lookup-planned",
                                        "step-planned"};
    enum { KINDS = sizeof kinds / sizeof *kinds };
    bool wanted[KINDS], any = false;
    char name[32];
    job j;
    for (size_t i = 0; i < KINDS; i++) {
        (void)snprintf(name, sizeof name, "%s/%zu", kinds[i], dim);
        wanted[i] = bench_wants(cases, name, true);
        any = any || wanted[i];
    }
    if (!any || cases->options->list) return 0;
    bool ok = open_job(&j, comm, dim);
    if (ok && (wanted[0] || wanted[1])) run_lookups(cases, &j, wanted[0], wanted[1]);
    if (ok && wanted[2] && bench_has_products()) run_hidden(cases, &j);
    if (ok && (wanted[3] || wanted[4])) run_planned(cases, &j);
    ok = ok && !j.failed;
    if (!ok) cases->options->complain("a sharded table of %d x %zu: %s", ROWS, dim, embla_error());
    close_job(&j);
    return ok ? 0 : 1;
}

static void sum_floats(job *j)
{
    keep(j, j->comm->allreduce(j->comm->owner, j->values, FLOATS, EMBLA_COMM_TYPE_FLOAT,
                               EMBLA_COMM_OP_SUM));
}

static void sum_bare(job *j)
{
    if (j->bare(j->comm, j->values, FLOATS) != 0) j->failed = true;
}

static int run_allreduce(bench_cases *cases, const embla_comm *comm)
{
    static work *const works[] = {sum_floats, sum_bare};
    double times[2], bytes = FLOATS * sizeof(float) * 1e-9;
    job j = {.comm = comm, .bare = (bare_fn *)dlsym(RTLD_DEFAULT, "embla_mpi_bare_sum")};
    if (!bench_wants(cases, "allreduce", true) || cases->options->list || !j.bare) return 0;
    j.values = bench_memory(FLOATS * sizeof(float));
    if (j.values) memset(j.values, 0, FLOATS * sizeof(float)); /* sums of zeros stay zeros */
    j.failed = !j.values;
    measure(&j, works, 2, times);
    free(j.values);
    if (j.failed) {
        cases->options->complain("sums of %d floats: %s", FLOATS, embla_error());
        return 1;
    }
    print(cases->options, comm, "allreduce", "GB/s", "bare MPI", bytes / times[0],
          bytes / times[1]);
    return 0;
}

/* Different rows of each of 64 ranks, counted at their owners. */
static int run_owners(bench_cases *cases, const embla_comm *comm)
{
    enum { RANKS = 64 };
    embla_comm many =
        *embla_comm_self(); /* never called: a table over it only tells who owns what */
    const embla_sharded_options o = {
        .rows = ROWS, .dim = 1, .dtype = EMBLA_F32, .buckets = 1024, .capacity = 1, .send = true};
    embla_sharded *sharded = NULL;
    many.size = RANKS;
    if (!bench_wants(cases, "owners", true) || cases->options->list || comm->rank != 0) return 0;
    int32_t *tokens = calloc(RANKS * TOKENS, sizeof *tokens);
    unsigned char *seen = calloc(ROWS, 1);
    size_t load[RANKS] = {0}, total = 0, most = 0;
    bool ok = tokens && seen && bench_tokens(true, ROWS, RANKS * TOKENS, tokens) &&
              embla_sharded_new(&many, &o, &sharded) == EMBLA_OK;
    for (size_t r = 0; ok && r < RANKS; r++) {
        memset(seen, 0, ROWS);
        for (size_t i = 0; i < TOKENS; i++) {
            int32_t row = tokens[r * TOKENS + i];
            if (seen[row]) continue;
            seen[row] = 1;
            load[embla_sharded_owner(sharded, row)]++;
            total++;
        }
    }
    for (size_t r = 0; r < RANKS; r++) most = load[r] > most ? load[r] : most;
    embla_sharded_free(sharded);
    free(tokens);
    free(seen);
    if (ok)
        print(cases->options, comm, "owners", "rows", "all owners equal", (double)total / RANKS,
              (double)most);
    return ok ? 0 : 1;
}

int bench_cluster(const bench_options *options)
{
    static const size_t dims[] = {256, 1024};
    const embla_comm *comm;
    bench_cases cases;
    int code = bench_begin("cluster", options, &cases);
    if (code != 0) return code;
    const embla_comm_options how = {.work = "embla bench cluster"};
    if (embla_comm_open(&how, &comm) != EMBLA_OK) {
        options->complain("%s", embla_error());
        return bench_end(&cases, 1);
    }
    (void)bench_team(1); /* the ranks share the cores */
    if (comm->rank != 0 && !freopen("/dev/null", "w", stdout)) return 1;
    for (size_t i = 0; i < sizeof dims / sizeof *dims && code == 0; i++)
        code = run_dim(&cases, comm, dims[i]);
    if (code == 0) code = run_allreduce(&cases, comm);
    if (code == 0) code = run_owners(&cases, comm);
    if (code != 0 && comm->abort) comm->abort(comm->owner, embla_error());
    embla_comm_free(comm);
    return bench_end(&cases, code);
}
