/* SPDX-License-Identifier: Apache-2.0 */
/* Sharded tables over 1 to 4 ranks (threads), with and without shared memory: every row is where it
 * should be, lookups give the rows of a whole table, and training gives the bits of one process. */
#include "check.h"

#include "base/mem.h"
#include "cluster/comm.h"
#include "cluster/sharded.h"
#include "embla_cluster.h"
#include "thread_comm.h"

enum { ROWS = 1000, DIM = 24, RANKS = 4, SHARDS = 12, PER_SHARD = 40, STEPS = 20 };
enum { BATCH = SHARDS * PER_SHARD };

/* How the ranks of a test are placed. */
typedef struct {
    int ranks, per_host;
    bool send;
} place;
static const place places[] = {{1, 1, false}, {2, 2, false}, {3, 3, false}, {4, 4, false},
                               {1, 1, true},  {2, 2, true},  {3, 3, true},  {4, 4, true},
                               {4, 2, false}, {3, 2, false}, {4, 1, false}};

static void run(const place *p, thread_body *body, void *context)
{
    thread_result results[THREAD_RANKS_MOST];
    thread_comm_hosts(p->ranks, p->per_host, body, context, results);
    thread_comm_check(p->ranks, results);
}

/* A body fails with a sentence instead of an assertion. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return embla_fail(EMBLA_ERR_ARGUMENT, "line %d: %s", __LINE__, #condition);            \
    } while (0)

/* ---- places of rows ---- */

typedef struct {
    int64_t rows;
    size_t buckets;
    bool send;
} sizes;

static embla_status every_row_once(const embla_comm *comm, void *context)
{
    const sizes *z = context;
    embla_sharded *s;
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = z->rows, .dim = 1, .dtype = EMBLA_F32, .buckets = z->buckets, .capacity = 1},
        &s));
    int64_t used = 0, rows = embla_table_rows(embla_sharded_table(s));
    for (int64_t local = 0; local < rows; local++) {
        int64_t row = embla_sharded_global(s, local);
        if (row < 0) continue;
        must(row < z->rows);
        must(embla_sharded_owner(s, row) == comm->rank);
        must(embla_sharded_local(s, row) == local);
        used++;
    }
    EMBLA_TRY(comm->allreduce(comm->owner, &used, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM));
    must(used == z->rows);
    must(embla_sharded_owner(s, -1) == -1 && embla_sharded_owner(s, z->rows) == -1);
    must(embla_sharded_local(s, z->rows) == -1);
    must(embla_sharded_global(s, rows) == -1 && embla_sharded_global(s, -1) == -1);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_places(void **state)
{
    (void)state;
    static sizes all[] = {{1, 0, false},    {27, 0, false},    {15, 16, false},
                          {1000, 4, false}, {1000, 64, false}, {70000, 0, false}};
    for (size_t i = 0; i < COUNT_OF(all); i++)
        for (int ranks = 1; ranks <= RANKS; ranks++)
            thread_comm_run(ranks, every_row_once, &all[i]);
}

static embla_status usual_buckets(const embla_comm *comm, void *context)
{
    static const struct {
        int64_t rows;
        size_t buckets;
    } wanted[] = {{27, 16}, {8449, 32}, {50257, 128}, {262144, 1024}, {1 << 30, 1024}};
    (void)context;
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        embla_sharded *s;
        EMBLA_TRY(embla_sharded_new(
            comm,
            &(embla_sharded_options){
                .rows = wanted[i].rows, .dim = 1, .dtype = EMBLA_F32, .capacity = 1},
            &s));
        must(s->options.buckets == wanted[i].buckets);
        embla_sharded_free(s);
    }
    return EMBLA_OK;
}

static void test_usual_buckets(void **state)
{
    (void)state;
    assert_ok(usual_buckets(embla_comm_self(), NULL));
}

/* ---- lookup ---- */

typedef struct {
    embla_dtype dtype;
    bool send, in_parts, filled;
    const embla_table *whole;
    float *vectors; /* ROWS x DIM: what a lookup in the whole table gives */
} looked;

static embla_status open_of(const embla_comm *comm, const looked *l, size_t dim,
                            embla_sharded **out)
{
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = ROWS, .dim = dim, .dtype = l->dtype, .capacity = 300, .send = l->send},
        out));
    if (l->filled) return embla_sharded_fill(*out, l->whole);
    return embla_sharded_init(*out, &(embla_init_options){.seed = 7});
}

static embla_status looks_up(const embla_comm *comm, void *context)
{
    const looked *l = context;
    size_t dim = embla_table_dim(l->whole);
    embla_sharded *s;
    int64_t rows[300];
    float *out = malloc(300 * dim * sizeof *out);
    uint64_t random = 100 + (uint64_t)comm->rank;
    must(out);
    EMBLA_TRY(open_of(comm, l, dim, &s));
    for (int turn = 0; turn < 5; turn++) {
        /* rank 1 asks for nothing in turn 2; many numbers occur more than once */
        size_t count = turn == 2 && comm->rank == 1 ? 0 : 300 - (size_t)turn * 50;
        for (size_t i = 0; i < count; i++)
            rows[i] = (int64_t)(check_next(&random) % (turn == 0 ? 10 : ROWS));
        if (l->in_parts) {
            EMBLA_TRY(embla_sharded_lookup_start(s, rows, count));
            for (int k = 0; k < 3; k++) EMBLA_TRY(embla_sharded_lookup_poll(s));
            EMBLA_TRY(embla_sharded_lookup_finish(s, out));
        } else {
            EMBLA_TRY(embla_sharded_lookup(s, rows, count, out));
        }
        for (size_t i = 0; i < count; i++)
            must(memcmp(out + i * dim, l->vectors + (size_t)rows[i] * dim, dim * sizeof *out) == 0);
    }
    embla_sharded_free(s);
    free(out);
    return EMBLA_OK;
}

static void test_lookup(void **state)
{
    (void)state;
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_Q8_0};
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        size_t dim = check_dim(dtypes[d], DIM);
        embla_table *whole;
        float *vectors = malloc(ROWS * dim * sizeof *vectors);
        int64_t all[ROWS];
        assert_ok(embla_table_new(dtypes[d], ROWS, dim, NULL, &whole));
        assert_ok(embla_table_init(whole, &(embla_init_options){.seed = 7}));
        for (int64_t r = 0; r < ROWS; r++) all[r] = r;
        assert_ok(embla_lookup_rows(whole, all, ROWS, NULL, vectors));
        for (size_t i = 0; i < COUNT_OF(places); i++)
            for (int how = 0; how < 3; how++) {
                looked l = {dtypes[d], places[i].send, how == 1, how == 2, whole, vectors};
                run(&places[i], looks_up, &l);
            }
        free(vectors);
        embla_table_free(whole);
    }
}

/* Xavier's spread depends on the number of rows: of the whole table, not of a rank's part. */
static embla_status xavier(const embla_comm *comm, void *context)
{
    const embla_table *whole = context;
    const embla_init_options how = {.seed = 3, .kind = EMBLA_INIT_XAVIER};
    embla_sharded *s;
    float out[DIM];
    EMBLA_TRY(embla_sharded_new(
        comm, &(embla_sharded_options){.rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 1},
        &s));
    EMBLA_TRY(embla_sharded_init(s, &how));
    for (int64_t row = 0; row < ROWS; row += 37) {
        EMBLA_TRY(embla_sharded_lookup(s, &row, 1, out));
        must(memcmp(out, embla_table_row(whole, row), sizeof out) == 0);
    }
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_xavier(void **state)
{
    (void)state;
    embla_table *whole;
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &whole));
    assert_ok(embla_table_init(whole, &(embla_init_options){.seed = 3, .kind = EMBLA_INIT_XAVIER}));
    for (int ranks = 1; ranks <= RANKS; ranks++) thread_comm_run(ranks, xavier, whole);
    embla_table_free(whole);
}

/* ---- training ---- */

typedef struct {
    embla_optim_options optim;
    embla_dtype dtype;
    bool send;
    unsigned char *table; /* ROWS rows as stored, written by their owners */
    float *states[2];     /* ROWS x dim of each state */
} trained;

/* The rows of step `step`: some are frequent. */
static void batch_of(int step, int64_t rows[BATCH])
{
    uint64_t random = 1000 + (uint64_t)step;
    for (size_t i = 0; i < BATCH; i++) {
        uint64_t x = check_next(&random);
        rows[i] = (int64_t)(x % 4 == 0 ? (x >> 8) % 5 : (x >> 8) % ROWS);
    }
}

/* A gradient that depends on the row's numbers and on its position in the batch. */
static void gradient_of(const float *vector, size_t position, float *out)
{
    for (size_t c = 0; c < DIM; c++)
        out[c] = vector[c] * 0.01f + (float)((position * 31 + c * 17) % 101) * 1e-3f - 0.05f;
}

static embla_status copy_out(embla_sharded *s, embla_optim *optim, trained *t)
{
    embla_table *mine = embla_sharded_table(s);
    size_t bytes = embla_table_row_bytes(mine);
    for (int64_t local = 0; local < embla_table_rows(mine); local++) {
        int64_t row = embla_sharded_global(s, local);
        embla_optim_state state;
        if (row < 0) continue;
        memcpy(t->table + (size_t)row * bytes, embla_table_row(mine, local), bytes);
        for (size_t n = 0; n < 2 && embla_optim_state_at(optim, n, &state) == EMBLA_OK; n++)
            memcpy(t->states[n] + (size_t)row * DIM, state.values + (size_t)local * state.dim,
                   state.dim * sizeof(float));
    }
    return EMBLA_OK;
}

static embla_status trains(const embla_comm *comm, void *context)
{
    embla_sharded_sums got = {0};
    trained *t = context;
    size_t first = (size_t)comm->rank * SHARDS / (size_t)comm->size;
    size_t end = ((size_t)comm->rank + 1) * SHARDS / (size_t)comm->size;
    size_t count = (end - first) * PER_SHARD, lengths[SHARDS];
    embla_sharded *s;
    embla_optim *optim;
    float *vectors = malloc(BATCH * DIM * sizeof *vectors);
    must(vectors);
    for (size_t i = 0; i < SHARDS; i++) lengths[i] = PER_SHARD;
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = ROWS, .dim = DIM, .dtype = t->dtype, .capacity = BATCH, .send = t->send},
        &s));
    EMBLA_TRY(embla_sharded_init(s, NULL));
    EMBLA_TRY(embla_optim_new(embla_sharded_table(s), &t->optim, &optim));
    for (int step = 0; step < STEPS; step++) {
        int64_t all[BATCH];
        const int64_t *rows = all + first * PER_SHARD;
        batch_of(step, all);
        EMBLA_TRY(embla_sharded_lookup(s, rows, count, vectors));
        for (size_t i = 0; i < count; i++)
            gradient_of(vectors + i * DIM, first * PER_SHARD + i, vectors + i * DIM);
        EMBLA_TRY(embla_sharded_sum(
            s,
            &(embla_sharded_batch){
                .rows = rows, .count = count, .lengths = lengths, .micro_batches = end - first},
            vectors, &got));
        EMBLA_TRY(embla_optim_step_rows(optim, 0.1, got.rows, got.count, got.sums));
        EMBLA_TRY(embla_sharded_publish(s));
    }
    EMBLA_TRY(embla_optim_catch_up(optim, NULL, 0));
    EMBLA_TRY(copy_out(s, optim, t));
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    embla_optim_free(optim);
    embla_sharded_free(s);
    free(vectors);
    return EMBLA_OK;
}

/* The same training in one process, with a table, a scatter and an optimizer. */
static void train_alone(trained *t)
{
    embla_table *table;
    embla_scatter *scatter;
    embla_optim *optim;
    float *vectors = malloc(BATCH * DIM * sizeof *vectors),
          *sums = malloc(BATCH * DIM * sizeof *sums);
    assert_ok(embla_table_new(t->dtype, ROWS, DIM, NULL, &table));
    assert_ok(embla_table_init(table, NULL));
    assert_ok(embla_scatter_new(ROWS, BATCH, &scatter));
    assert_ok(embla_optim_new(table, &t->optim, &optim));
    for (int step = 0; step < STEPS; step++) {
        int64_t rows[BATCH];
        batch_of(step, rows);
        assert_ok(embla_lookup_rows(table, rows, BATCH, NULL, vectors));
        for (size_t i = 0; i < BATCH; i++) gradient_of(vectors + i * DIM, i, vectors + i * DIM);
        assert_ok(embla_scatter_plan_rows(scatter, rows, BATCH,
                                          &(embla_scatter_options){.shard = PER_SHARD}));
        assert_ok(embla_scatter_sum(scatter, vectors, DIM, sums));
        assert_ok(embla_optim_step_rows(optim, 0.1, embla_scatter_rows(scatter),
                                        embla_scatter_count(scatter), sums));
    }
    assert_ok(embla_optim_catch_up(optim, NULL, 0));
    size_t bytes = embla_table_row_bytes(table);
    memcpy(t->table, embla_table_data(table), ROWS * bytes);
    embla_optim_state state;
    for (size_t n = 0; n < 2 && embla_optim_state_at(optim, n, &state) == EMBLA_OK; n++)
        for (size_t row = 0; row < ROWS; row++)
            memcpy(t->states[n] + row * DIM, state.values + row * state.dim,
                   state.dim * sizeof(float));
    embla_optim_free(optim);
    embla_scatter_free(scatter);
    embla_table_free(table);
    free(vectors);
    free(sums);
}

static trained new_trained(const embla_optim_options *optim, embla_dtype dtype)
{
    trained t = {.optim = *optim, .dtype = dtype};
    t.table = calloc(ROWS, DIM * sizeof(float));
    for (size_t n = 0; n < 2; n++) t.states[n] = calloc(ROWS, DIM * sizeof(float));
    return t;
}

static void free_trained(trained *t)
{
    free(t->table);
    for (size_t n = 0; n < 2; n++) free(t->states[n]);
}

static void test_training(void **state)
{
    (void)state;
    static const embla_optim_options optims[] = {
        {.kind = EMBLA_OPTIM_SGD},
        {.kind = EMBLA_OPTIM_SGD, .momentum = 0.9, .catch_up = true},
        {.kind = EMBLA_OPTIM_ADAGRAD_ROWWISE},
        {.kind = EMBLA_OPTIM_ADAMW, .decay = 0.01}};
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16};
    for (size_t o = 0; o < COUNT_OF(optims); o++)
        for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
            trained alone = new_trained(&optims[o], dtypes[d]);
            train_alone(&alone);
            for (size_t i = 0; i < COUNT_OF(places); i++) {
                trained t = new_trained(&optims[o], dtypes[d]);
                t.send = places[i].send;
                run(&places[i], trains, &t);
                assert_memory_equal(t.table, alone.table, ROWS * DIM * sizeof(float));
                for (size_t n = 0; n < 2; n++)
                    assert_memory_equal(t.states[n], alone.states[n], ROWS * DIM * sizeof(float));
                free_trained(&t);
            }
            free_trained(&alone);
        }
}

/* ---- what is wrong ---- */

static embla_status one_is_wrong(const embla_comm *comm, void *context)
{
    embla_sharded_sums got = {0};
    const embla_sharded_options *o = context;
    embla_sharded *s;
    float out[2 * DIM];
    int64_t rows[2] = {5, comm->rank == 1 ? ROWS : 6};
    EMBLA_TRY(embla_sharded_new(comm, o, &s));
    EMBLA_TRY(embla_sharded_init(s, NULL));
    embla_status status = embla_sharded_lookup(s, rows, 2, out);
    if (comm->rank == 1) {
        must(status == EMBLA_ERR_RANGE);
        must(strstr(embla_error(), "row 1000 at index 1 is out of range: the table has 1000 rows"));
    } else {
        must(status == EMBLA_OK);
    }
    rows[1] = 6; /* the next call works on all ranks */
    EMBLA_TRY(embla_sharded_lookup(s, rows, 2, out));
    /* a sum with a wrong row fails on all */
    rows[1] = comm->rank == 1 ? -1 : 6;
    status = embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = 2}, out, &got);
    must(status == EMBLA_ERR_RANGE);
    if (comm->rank != 1) must(strstr(embla_error(), "rank 1 failed"));
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_one_is_wrong(void **state)
{
    (void)state;
    for (int send = 0; send < 2; send++) {
        embla_sharded_options o = {
            .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 2, .send = send};
        for (int ranks = 2; ranks <= RANKS; ranks++) thread_comm_run(ranks, one_is_wrong, &o);
    }
}

static void test_refused(void **state)
{
    embla_sharded_sums got = {0};
    (void)state;
    const embla_comm *self = embla_comm_self();
    const embla_sharded_options good = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 4};
    embla_sharded *s = NULL;
    embla_sharded_options o = good;
    o.rows = 0;
    assert_status(embla_sharded_new(self, &o, &s), EMBLA_ERR_ARGUMENT);
    o = good, o.buckets = 48;
    assert_status(embla_sharded_new(self, &o, &s), EMBLA_ERR_ARGUMENT);
    assert_error_has("buckets is 48; it must be a power of two, at most 65536");
    o = good, o.capacity = 0;
    assert_status(embla_sharded_new(self, &o, &s), EMBLA_ERR_ARGUMENT);
    o = good, o.dim = 0;
    assert_status(embla_sharded_new(self, &o, &s), EMBLA_ERR_SHAPE);
    o = good, o.reserved[0] = 1;
    assert_status(embla_sharded_new(self, &o, &s), EMBLA_ERR_UNSUPPORTED);
    embla_comm many = *self;
    many.size = 20;
    o = good, o.buckets = 16;
    assert_status(embla_sharded_new(&many, &o, &s), EMBLA_ERR_ARGUMENT);
    assert_error_has("20 ranks share 16 buckets");
    assert_ok(embla_sharded_new(self, &good, &s));
    float out[5 * DIM];
    int64_t rows[5] = {0};
    assert_status(embla_sharded_lookup(s, rows, 5, out), EMBLA_ERR_ARGUMENT);
    assert_error_has("count is 5; the capacity is 4 row numbers");
    assert_status(embla_sharded_lookup_finish(s, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_sharded_lookup_poll(s), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_sharded_lookup_start(s, rows, 2));
    assert_status(embla_sharded_lookup_start(s, rows, 2), EMBLA_ERR_BUSY);
    assert_ok(embla_sharded_lookup_finish(s, out));
    size_t lengths[2] = {1, 2};
    assert_status(
        embla_sharded_sum(s,
                          &(embla_sharded_batch){
                              .rows = rows, .count = 2, .lengths = lengths, .micro_batches = 2},
                          out, &got),
        EMBLA_ERR_SHAPE);
    assert_error_has("the lengths of 2 micro-batches sum to 3, but there are 2 rows");
    embla_table *other;
    assert_ok(embla_table_new(EMBLA_F32, ROWS, DIM + 1, NULL, &other));
    assert_status(embla_sharded_fill(s, other), EMBLA_ERR_SHAPE);
    embla_table_free(other);
    embla_sharded_free(s);
    embla_sharded_free(NULL);
}

/* Every allocation fails once; nothing is left behind. */
static void test_no_memory(void **state)
{
    embla_sharded_sums got = {0};
    (void)state;
    const embla_comm *self = embla_comm_self();
    for (int send = 0; send < 2; send++) {
        embla_status status = EMBLA_ERR_MEMORY;
        const embla_sharded_options o = {
            .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 8, .send = send};
        size_t before = embla_mem_live();
        for (size_t n = 1; status != EMBLA_OK; n++) {
            embla_sharded *s = NULL;
            float vectors[4 * DIM] = {0};
            const int64_t rows[4] = {1, 2, 1, 999};
            embla_mem_fail(n, false);
            status = embla_sharded_new(self, &o, &s);
            if (status == EMBLA_OK) status = embla_sharded_lookup(s, rows, 4, vectors);
            if (status == EMBLA_OK)
                status = embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = 4},
                                           vectors, &got);
            embla_mem_fail(0, false);
            if (status != EMBLA_OK) assert_int_equal(status, EMBLA_ERR_MEMORY);
            embla_sharded_free(s);
            assert_int_equal(embla_mem_live(), before);
            assert_true(n < 100);
        }
    }
}

/* Rank after rank has no memory for one part of a sum: all get that failure at the same call, and
 * the next sum works. *context is the number of the allocation that fails; 0 when none is left. */
static embla_status one_has_no_memory(const embla_comm *comm, void *context)
{
    embla_sharded_sums got = {0};
    size_t *failing = context;
    const embla_sharded_options o = {.rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 8};
    const int64_t rows[4] = {1, 2, 1, 999};
    float gradients[4 * DIM] = {0};
    embla_sharded *s;
    EMBLA_TRY(embla_sharded_new(comm, &o, &s));
    if (comm->rank == 0) embla_mem_fail(*failing, false);
    EMBLA_TRY(embla_comm_agree(comm, EMBLA_OK, "all begin"));
    embla_status status =
        embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = 4}, gradients, &got);
    if (status != EMBLA_OK)
        must(status == EMBLA_ERR_MEMORY &&
             (strstr(embla_error(), "no memory for") || strstr(embla_error(), " failed: ")));
    EMBLA_TRY(embla_comm_agree(comm, EMBLA_OK, "all have ended"));
    if (comm->rank == 0) {
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) *failing = 0;
    }
    EMBLA_TRY(embla_comm_agree(comm, EMBLA_OK, "memory is there again"));
    EMBLA_TRY(
        embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = 4}, gradients, &got));
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_one_has_no_memory(void **state)
{
    (void)state;
    size_t before = embla_mem_live(), tried = 0;
    for (size_t failing = 1; failing != 0; failing += failing != 0) {
        thread_comm_run(RANKS, one_has_no_memory, &failing);
        assert_int_equal(embla_mem_live(), before);
        tried++;
    }
    assert_in_range(tried, RANKS * 5, 1000); /* five buffers or more on each rank */
}

/* ---- very many rows ---- */

/* 2^31 + 5 rows: row numbers pass 32 bits. Memory is taken only where rows are written. */
static embla_status giant(const embla_comm *comm, void *context)
{
    embla_sharded_sums got = {0};
    enum { D = 16 };
    const int64_t total = ((int64_t)1 << 31) + 5;
    embla_sharded *s;
    embla_optim *optim;
    float out[5 * D], gradients[5 * D];
    int64_t rows[5];
    (void)context;
    for (int i = 0; i < 5; i++) rows[i] = total - 1 - i;
    for (size_t i = 0; i < 5 * D; i++) gradients[i] = (float)(comm->rank + 1);
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = total, .dim = D, .dtype = EMBLA_F32, .capacity = 5, .send = true},
        &s));
    EMBLA_TRY(embla_optim_new(embla_sharded_table(s), &(embla_optim_options){0}, &optim));
    EMBLA_TRY(
        embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = 5}, gradients, &got));
    EMBLA_TRY(embla_optim_step_rows(optim, 1.0, got.rows, got.count, got.sums));
    EMBLA_TRY(embla_sharded_publish(s));
    EMBLA_TRY(embla_sharded_lookup(s, rows, 5, out));
    float sum = -(float)(comm->size * (comm->size + 1) / 2);
    for (size_t i = 0; i < 5 * D; i++) must(out[i] == sum);
    embla_optim_free(optim);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_giant(void **state)
{
    (void)state;
    for (int ranks = 1; ranks <= RANKS; ranks += 3) thread_comm_run(ranks, giant, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(test_places),
        cmocka_unit_test(test_usual_buckets),
        cmocka_unit_test(test_lookup),
        cmocka_unit_test(test_xavier),
        cmocka_unit_test(test_training),
        cmocka_unit_test(test_one_is_wrong),
        cmocka_unit_test(test_refused),
        cmocka_unit_test(test_no_memory),
        cmocka_unit_test(test_one_has_no_memory),
        cmocka_unit_test(test_giant),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
