/* SPDX-License-Identifier: Apache-2.0 */
/* A job for mpirun: trains a sharded table as the embedding and the head of a model without layers,
 * and writes what the tests of mpi.sh compare.
 *   usage: sharded_job train OPTIMIZER DTYPE STEPS THREADS FOLDER     loss, FOLDER/rows.safetensors
 *          sharded_job load OPTIMIZER DTYPE STEPS THREADS FOLDER      the same from FOLDER/save
 *          sharded_job saves FOLDER           saves again and again, until it is killed
 *          sharded_job check FOLDER           loads the save of `saves` and verifies it
 *          sharded_job waits SECONDS          exchanges until a rank is lost
 *          sharded_job starves                rank 1 has no memory; no rank waits for it
 *          sharded_job leaves SECONDS         as waits, but a rank that notices closes everything
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "base/mem.h"
#include "cluster/sharded.h"
#include "embla_cluster.h"

enum { ROWS = 5000, DIM = 32, SHARDS = 12, TOKENS = 16, BATCH = SHARDS * TOKENS };

static const embla_comm *comm;

static void must(embla_status status)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "%s\n", embla_error());
    fflush(stderr);
    if (comm && comm->abort) comm->abort(comm->owner, embla_error());
    exit(1);
}

static uint64_t mix(uint64_t x)
{
    x = (x ^ (x >> 30)) * 0xbf58476d1ce4e5b9u;
    x = (x ^ (x >> 27)) * 0x94d049bb133111ebu;
    return x ^ (x >> 31);
}

typedef struct {
    embla_sharded *s;
    embla_optim *optim;
    size_t first, count, shards, lengths[SHARDS];
    float *vectors, *gradients, *dense;
} training;

static void begin(training *t, embla_optim_kind kind, embla_dtype dtype, int threads)
{
    size_t from = (size_t)comm->rank * SHARDS / (size_t)comm->size;
    size_t end = ((size_t)comm->rank + 1) * SHARDS / (size_t)comm->size;
    *t = (training){.first = from * TOKENS, .count = (end - from) * TOKENS, .shards = end - from};
    for (size_t i = 0; i < SHARDS; i++) t->lengths[i] = TOKENS;
    const embla_sharded_options o = {.rows = ROWS,
                                     .dim = DIM,
                                     .dtype = dtype,
                                     .capacity = BATCH,
                                     .send = getenv("SEND") != NULL,
                                     .threads = threads};
    must(embla_sharded_new(comm, &o, &t->s));
    must(embla_sharded_init(t->s, &(embla_init_options){.seed = 1}));
    const embla_optim_options how = {
        .kind = kind, .momentum = kind == EMBLA_OPTIM_SGD ? 0.9 : 0.0, .threads = threads};
    must(embla_optim_new(embla_sharded_table(t->s), &how, &t->optim));
    size_t numbers = (size_t)embla_table_rows(embla_sharded_table(t->s)) * DIM;
    t->vectors = calloc(BATCH * DIM, sizeof(float));
    t->gradients = calloc(BATCH * DIM, sizeof(float));
    t->dense = calloc(numbers, sizeof(float));
    if (!t->vectors || !t->gradients || !t->dense) exit(1);
}

static void end(training *t)
{
    embla_optim_free(t->optim);
    embla_sharded_free(t->s);
    free(t->vectors);
    free(t->gradients);
    free(t->dense);
}

/* Looks up a batch, predicts the next token from each, and moves all rows. */
static double step(training *t, int64_t number)
{
    embla_sharded_sums got = {0};
    int64_t rows[BATCH];
    int32_t targets[BATCH];
    embla_loss_report report;
    embla_table *table = embla_sharded_table(t->s);
    for (size_t i = 0; i < t->count; i++) {
        uint64_t x = mix((uint64_t)number * BATCH + t->first + i);
        rows[i] = (int64_t)(x % 3 == 0 ? x / 3 % 20 : x / 3 % ROWS);
        targets[i] = (int32_t)((rows[i] * 7 + 1) % ROWS);
    }
    must(embla_sharded_lookup(t->s, rows, t->count, t->vectors));
    must(embla_sharded_loss(t->s,
                            &(embla_sharded_loss_batch){.hidden = t->vectors,
                                                        .targets = targets,
                                                        .count = t->count,
                                                        .lengths = t->lengths,
                                                        .micro_batches = t->shards},
                            NULL, t->gradients, t->dense, &report));
    must(embla_sharded_sum(
        t->s,
        &(embla_sharded_batch){
            .rows = rows, .count = t->count, .lengths = t->lengths, .micro_batches = t->shards},
        t->gradients, &got));
    for (size_t i = 0; i < got.count; i++)
        for (size_t c = 0; c < DIM; c++)
            t->dense[(size_t)got.rows[i] * DIM + c] += got.sums[i * DIM + c];
    must(embla_optim_step(t->optim, 0.05, t->dense));
    memset(t->dense, 0, (size_t)embla_table_rows(table) * DIM * sizeof(float));
    must(embla_sharded_publish(t->s));
    return report.loss;
}

static embla_optim_kind kind_of(const char *name)
{
    for (int k = 0; embla_optim_name((embla_optim_kind)k); k++)
        if (strcmp(embla_optim_name((embla_optim_kind)k), name) == 0) return (embla_optim_kind)k;
    exit(2);
}

static int train(char **argv, bool load)
{
    training t;
    embla_dtype dtype;
    char path[4096];
    double loss = 0.0;
    int64_t from = 0, steps = strtoll(argv[4], NULL, 10);
    must(embla_dtype_find(argv[3], &dtype));
    begin(&t, kind_of(argv[2]), dtype, atoi(argv[5]));
    (void)snprintf(path, sizeof path, "%s/save", argv[6]);
    if (load) must(embla_sharded_load(t.s, t.optim, path, &from));
    for (int64_t i = from; i < steps; i++) {
        loss = step(&t, i);
        if (!load && i == steps / 2 - 1) must(embla_sharded_save(t.s, t.optim, path, i + 1));
    }
    (void)snprintf(path, sizeof path, "%s/rows.safetensors", argv[6]);
    must(embla_sharded_export(t.s, path, "rows"));
    if (comm->rank == 0) printf("loss %a\n", loss);
    end(&t);
    return 0;
}

/* Every row of save n is n. */
static int saves(const char *folder)
{
    embla_sharded *s;
    const embla_sharded_options o = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 1, .send = true};
    must(embla_sharded_new(comm, &o, &s));
    embla_table *table = embla_sharded_table(s);
    float *rows = embla_table_data(table);
    for (int64_t n = 1; n < 1000000; n++) {
        for (size_t i = 0; i < (size_t)embla_table_rows(table) * DIM; i++) rows[i] = (float)n;
        must(embla_sharded_save(s, NULL, folder, n));
        if (comm->rank == 0) printf("saved %lld\n", (long long)n), fflush(stdout);
    }
    embla_sharded_free(s);
    return 0;
}

static int check(const char *folder)
{
    embla_sharded *s;
    int64_t n;
    const embla_sharded_options o = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 1, .send = true};
    must(embla_sharded_new(comm, &o, &s));
    must(embla_sharded_load(s, NULL, folder, &n));
    for (int64_t local = 0; local < embla_table_rows(embla_sharded_table(s)); local++) {
        const float *row = embla_table_row(embla_sharded_table(s), local);
        for (size_t c = 0; c < DIM && embla_sharded_global(s, local) >= 0; c++)
            if (row[c] != (float)n) {
                fprintf(stderr, "a row of save %lld has %g\n", (long long)n, (double)row[c]);
                return 1;
            }
    }
    if (comm->rank == 0) printf("save %lld\n", (long long)n);
    embla_sharded_free(s);
    return 0;
}

static int waits(double seconds)
{
    training t;
    time_t end_at = time(NULL) + (time_t)seconds;
    begin(&t, EMBLA_OPTIM_SGD, EMBLA_F32, 1);
    for (int64_t i = 0;; i++) {
        int64_t over = time(NULL) > end_at;
        (void)step(&t, i);
        must(comm->allreduce(comm->owner, &over, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX));
        if (over) break;
        if (i == 0 && comm->rank == 0) printf("started\n"), fflush(stdout);
        (void)usleep(10000);
    }
    end(&t);
    return 0;
}

static void expect(bool fact, const char *what)
{
    if (fact) return;
    fprintf(stderr, "rank %d: not true: %s (%s)\n", comm->rank, what, embla_error());
    comm->abort(comm->owner, what);
}

/* From the n-th allocation on, rank 1 has no memory. 0 ends this. */
static void starve(size_t n)
{
    if (comm->rank == 1) embla_mem_fail(n, true);
}

/* Rank 1 has no memory. Sums and lookups whose buffers are there need none. Without memory for a
 * window, rows are sent; without memory for anything, no rank gets a table. */
static int starves(void)
{
    static float many[20000], out[2 * DIM];
    embla_sharded *s = NULL;
    embla_sharded_options o = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 2, .send = true};
    const int64_t rows[2] = {1, ROWS - 1};
    starve(1);
    embla_status status = comm->allreduce(comm->owner, many, sizeof many / sizeof *many,
                                          EMBLA_COMM_TYPE_FLOAT, EMBLA_COMM_OP_SUM);
    starve(0);
    expect(status == EMBLA_OK, "a sum needs no memory");
    must(embla_sharded_new(comm, &o, &s));
    must(embla_sharded_lookup(s, rows, 2, out));
    starve(1);
    status = embla_sharded_lookup(s, rows, 2, out);
    starve(0);
    expect(status == EMBLA_OK, "the second lookup needs no memory");
    embla_sharded_free(s);
    o.send = false;
    for (size_t n = 1; n <= 8; n++) {
        s = NULL;
        if (comm->rank == 1) embla_mem_fail(n, false);
        status = embla_sharded_new(comm, &o, &s);
        starve(0);
        int64_t failed = status != EMBLA_OK;
        must(comm->allreduce(comm->owner, &failed, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM));
        expect(failed == 0 || failed == comm->size, "all have a table, or none");
        if (s) must(embla_sharded_lookup(s, rows, 2, out));
        embla_sharded_free(s);
    }
    if (comm->rank == 0) printf("no rank waited\n");
    return 0;
}

/* Shares memory, and looks up until a rank is lost. Then nothing waits for it. */
static int leaves(double seconds)
{
    training t;
    time_t end_at = time(NULL) + (time_t)seconds;
    int64_t over = 0;
    int rank = comm->rank;
    begin(&t, EMBLA_OPTIM_SGD, EMBLA_F32, 1);
    if (comm->rank == 0) printf("started\n"), fflush(stdout);
    while (over == 0) {
        over = time(NULL) > end_at;
        if (comm->allreduce(comm->owner, &over, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_MAX) !=
            EMBLA_OK)
            break;
        (void)usleep(10000);
    }
    fprintf(stderr, "%s\n", embla_error());
    end(&t);
    embla_comm_free(comm);
    fprintf(stderr, "rank %d has left\n", rank);
    _exit(1);
}

int main(int argc, char **argv)
{
    const char *patience = getenv("PATIENCE");
    int status = 2;
    const embla_comm_options how = {.patience = patience ? atoi(patience) : 0,
                                    .library = getenv("EMBLA_MPI_LIBRARY")};
    must(embla_comm_open(&how, &comm));
    if (argc == 7 && strcmp(argv[1], "train") == 0) status = train(argv, false);
    if (argc == 7 && strcmp(argv[1], "load") == 0) status = train(argv, true);
    if (argc == 3 && strcmp(argv[1], "saves") == 0) status = saves(argv[2]);
    if (argc == 3 && strcmp(argv[1], "check") == 0) status = check(argv[2]);
    if (argc == 3 && strcmp(argv[1], "waits") == 0) status = waits(atof(argv[2]));
    if (argc == 2 && strcmp(argv[1], "starves") == 0) status = starves();
    if (argc == 3 && strcmp(argv[1], "leaves") == 0) status = leaves(atof(argv[2]));
    if (argc == 2 && strcmp(argv[1], "name") == 0) {
        if (comm->rank == 0) printf("%s, %d ranks\n", comm->name, comm->size);
        status = 0;
    }
    embla_comm_free(comm);
    return status;
}
