/* SPDX-License-Identifier: Apache-2.0 */
/* Sharded tables where a rank fails, is slow, or calls too early: no rank waits for one that has
 * left, and what was refused changes nothing. */
#include "check.h"

#include <math.h>
#include <sched.h>
#include <stdatomic.h>

#include "base/mem.h"
#include "cluster/sharded.h"
#include "engine.h"
#include "engine/engine.h"
#include "scratch.h"
#include "thread_comm.h"

enum { ROWS = 1000, DIM = 24, RANKS = 4, COUNT = 6 };

/* A body fails with a sentence instead of an assertion. */
#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return embla_fail(EMBLA_ERR_ARGUMENT, "line %d: %s", __LINE__, #condition);            \
    } while (0)

static embla_status open_one(const embla_comm *comm, bool send, embla_sharded **out)
{
    const embla_sharded_options o = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = COUNT, .send = send};
    EMBLA_TRY(embla_sharded_new(comm, &o, out));
    return embla_sharded_init(*out, &(embla_init_options){.seed = 7});
}

/* ---- a lookup under way ---- */

static _Thread_local int under_way; /* exchanges that this rank has started and not ended */

static embla_status counted_start(void *owner, const embla_exchange *e, void **request)
{
    under_way++;
    return thread_start(owner, e, request);
}

static embla_status counted_poll(void *owner, void *request, bool wait, bool *done)
{
    embla_status status = thread_poll(owner, request, wait, done);
    if (*done) under_way--;
    return status;
}

#define busy(call) must((call) == EMBLA_ERR_BUSY && strstr(embla_error(), "a lookup is under way"))

static embla_status everything_waits(const embla_comm *comm, void *context)
{
    embla_sharded_sums got = {0};
    const bool *send = context;
    const int64_t rows[COUNT] = {1, 2, 3, 1, 999, 500};
    const int32_t targets[COUNT] = {0};
    float out[COUNT * DIM], again[COUNT * DIM];
    embla_comm ours = *comm;
    embla_sharded *s;
    embla_table *whole;
    ours.start = counted_start;
    ours.poll = counted_poll;
    EMBLA_TRY(open_one(&ours, *send, &s));
    EMBLA_TRY(embla_table_new(EMBLA_F32, ROWS, DIM, NULL, &whole));
    EMBLA_TRY(embla_sharded_lookup(s, rows, COUNT, again));
    EMBLA_TRY(embla_sharded_lookup_start(s, rows, COUNT));
    busy(embla_sharded_lookup_start(s, rows, COUNT));
    busy(embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = COUNT}, again, &got));
    busy(embla_sharded_loss(
        s, &(embla_sharded_loss_batch){.hidden = again, .targets = targets, .count = COUNT}, NULL,
        NULL, NULL, NULL));
    busy(embla_sharded_save(s, NULL, "/nonexistent/folder", 1));
    busy(embla_sharded_load(s, NULL, "/nonexistent/folder", NULL));
    busy(embla_sharded_export(s, "/nonexistent/folder/x", "x"));
    busy(embla_sharded_init(s, NULL));
    busy(embla_sharded_fill(s, whole));
    busy(embla_sharded_publish(s));
    EMBLA_TRY(embla_sharded_lookup_finish(s, out));
    must(memcmp(out, again, sizeof out) == 0);
    EMBLA_TRY(
        embla_sharded_sum(s, &(embla_sharded_batch){.rows = rows, .count = COUNT}, again, &got));
    /* whoever frees the table ends the lookup: nobody writes to its memory afterwards */
    EMBLA_TRY(embla_sharded_lookup_start(s, rows, COUNT));
    EMBLA_TRY(embla_sharded_lookup_poll(s));
    embla_table_free(whole);
    embla_sharded_free(s);
    must(under_way == 0);
    return EMBLA_OK;
}

static void nothing_else_is_done_during_a_lookup(void **unused)
{
    (void)unused;
    for (int send = 0; send < 2; send++) {
        bool sends = send > 0;
        for (int ranks = 1; ranks <= RANKS; ranks++)
            thread_comm_run(ranks, everything_waits, &sends);
    }
}

/* ---- options that may differ ---- */

static embla_status one_has_wrong_options(const embla_comm *comm, void *context)
{
    embla_sharded_options o = {.rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = COUNT};
    embla_sharded *s = NULL;
    (void)context;
    for (int turn = 0; turn < 4; turn++) {
        embla_sharded_options wrong = o;
        wrong.capacity = turn == 0 ? 0 : COUNT;
        wrong.threads = turn == 1 ? -1 : 0;
        wrong.reserved[0] = turn == 2;
        const embla_sharded_options *theirs = turn == 3 ? NULL : &wrong;
        embla_status status = embla_sharded_new(comm, comm->rank == 1 ? theirs : &o, &s);
        must(status == (turn == 2 ? EMBLA_ERR_UNSUPPORTED : EMBLA_ERR_ARGUMENT) && !s);
        must((comm->rank == 1) == !strstr(embla_error(), "rank 1 failed"));
    }
    EMBLA_TRY(embla_sharded_new(comm, &o, &s));
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void wrong_options_of_one_rank_are_refused_on_all(void **unused)
{
    (void)unused;
    for (int ranks = 2; ranks <= RANKS; ranks++)
        thread_comm_run(ranks, one_has_wrong_options, NULL);
}

/* ---- no memory ---- */

/* One rank has no memory for the rows that it asks for. The others get theirs all the same. */
static embla_status one_cannot_stage(const embla_comm *comm, void *context)
{
    const size_t *failing = context;
    const int64_t rows[COUNT] = {1, 2, 3, 1, 999, 500 + comm->rank};
    float wanted[COUNT * DIM], out[COUNT * DIM];
    embla_sharded *s, *fresh;
    EMBLA_TRY(open_one(comm, true, &s));
    EMBLA_TRY(open_one(comm, true, &fresh));
    EMBLA_TRY(embla_sharded_lookup(s, rows, COUNT, wanted));
    if (comm->rank == 0) embla_mem_fail(*failing, false);
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    embla_status status = embla_sharded_lookup(fresh, rows, COUNT, out);
    int64_t failed = status == EMBLA_ERR_MEMORY;
    must(failed || status == EMBLA_OK);
    must(failed || memcmp(out, wanted, sizeof out) == 0);
    EMBLA_TRY(comm->allreduce(comm->owner, &failed, 1, EMBLA_COMM_TYPE_INT64, EMBLA_COMM_OP_SUM));
    must(failed == 1);
    if (comm->rank == 0) embla_mem_fail(0, false);
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    EMBLA_TRY(embla_sharded_lookup(fresh, rows, COUNT, out));
    must(memcmp(out, wanted, sizeof out) == 0);
    embla_sharded_free(fresh);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void a_rank_without_memory_for_its_rows_takes_part(void **unused)
{
    (void)unused;
    size_t before = embla_mem_live();
    for (size_t failing = 1; failing <= RANKS; failing++) {
        thread_comm_run(RANKS, one_cannot_stage, &failing);
        assert_int_equal(embla_mem_live(), before);
    }
}

/* ---- an engine that fails ---- */

typedef struct {
    size_t failing; /* product; 0 when none is left */
    bool fast;
} products;

static embla_status one_cannot_multiply(const embla_comm *comm, void *context)
{
    products *p = context;
    float hidden[COUNT * DIM], gradient[COUNT * DIM];
    int32_t targets[COUNT];
    const size_t lengths[3] = {2, 3, 1};
    const embla_sharded_loss_options options = {.fast = p->fast};
    embla_sharded *s;
    embla_loss_report first, report;
    EMBLA_TRY(open_one(comm, false, &s));
    for (size_t i = 0; i < COUNT * DIM; i++) hidden[i] = (float)(i % 13) * 0.1f;
    for (size_t i = 0; i < COUNT; i++) targets[i] = (int32_t)(i * 100) + comm->rank;
    float *table = calloc((size_t)embla_table_rows(embla_sharded_table(s)) * DIM, sizeof *table);
    must(table);
    EMBLA_TRY(embla_sharded_loss(s,
                                 &(embla_sharded_loss_batch){.hidden = hidden,
                                                             .targets = targets,
                                                             .count = COUNT,
                                                             .lengths = lengths,
                                                             .micro_batches = 3},
                                 &options, gradient, table, &first));
    if (comm->rank == 0) embla_engine_fail(p->failing);
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    embla_status status = embla_sharded_loss(s,
                                             &(embla_sharded_loss_batch){.hidden = hidden,
                                                                         .targets = targets,
                                                                         .count = COUNT,
                                                                         .lengths = lengths,
                                                                         .micro_batches = 3},
                                             &options, gradient, table, &report);
    if (status != EMBLA_OK)
        must(status == EMBLA_ERR_MEMORY &&
             (strstr(embla_error(), "lets a product fail") || strstr(embla_error(), " failed: ")));
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    if (comm->rank == 0) {
        embla_engine_fail(0);
        if (status == EMBLA_OK) p->failing = 0;
    }
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    EMBLA_TRY(embla_sharded_loss(s,
                                 &(embla_sharded_loss_batch){.hidden = hidden,
                                                             .targets = targets,
                                                             .count = COUNT,
                                                             .lengths = lengths,
                                                             .micro_batches = 3},
                                 &options, gradient, table, &report));
    must(memcmp(&first, &report, sizeof report) == 0);
    free(table);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void a_product_that_fails_on_one_rank_fails_the_loss_on_all(void **unused)
{
    (void)unused;
    SKIP_WITHOUT_ENGINE();
    for (int fast = 0; fast < 2; fast++) {
        size_t tried = 0;
        products p = {1, fast > 0};
        for (; p.failing > 0; p.failing += p.failing > 0 ? 3 : 0, tried++)
            thread_comm_run(3, one_cannot_multiply, &p);
        assert_in_range(tried, 9, 1000);
    }
}

/* ---- a file that takes long ---- */

/* What rank 1 waits in. */
enum { NOTHING, SUM, BARRIER, PATIENT_BARRIER };
static atomic_int inside, found;

static embla_status seen_allreduce(void *owner, void *values, size_t count, embla_comm_type type,
                                   embla_comm_op op)
{
    atomic_store(&inside, SUM);
    embla_status status = thread_allreduce(owner, values, count, type, op);
    atomic_store(&inside, NOTHING);
    return status;
}

static embla_status seen_barrier(void *owner, int seconds)
{
    atomic_store(&inside, seconds == EMBLA_COMM_SAVING ? PATIENT_BARRIER : BARRIER);
    embla_status status = thread_barrier(owner, seconds);
    atomic_store(&inside, NOTHING);
    return status;
}

/* Reads the rows and then writes until the other rank waits for it. */
static embla_status writes_long(void *context, embla_sharded_read *read, void *const *rows)
{
    float row[DIM];
    (void)context;
    for (uint64_t i = 0; i < ROWS; i++) EMBLA_TRY(read(rows[0], i * sizeof row, sizeof row, row));
    while (atomic_load(&inside) == NOTHING) (void)sched_yield();
    atomic_store(&found, atomic_load(&inside));
    return EMBLA_OK;
}

static embla_status exports_slowly(const embla_comm *comm, void *context)
{
    embla_comm ours = *comm;
    embla_sharded *s;
    (void)context;
    if (comm->rank > 0) {
        ours.allreduce = seen_allreduce;
        ours.barrier = seen_barrier;
    }
    EMBLA_TRY(open_one(&ours, true, &s));
    EMBLA_TRY(embla_sharded_stream(&s, 1, writes_long, NULL));
    embla_sharded_free(s);
    return EMBLA_OK;
}

/* Rank 0 may write for a long time between two reads. */
static void ranks_wait_for_a_file_as_long_as_for_any_save(void **unused)
{
    (void)unused;
    thread_comm_run(2, exports_slowly, NULL);
    assert_int_equal(atomic_load(&found), PATIENT_BARRIER);
}

/* ---- rows that no file can hold ---- */

static embla_status saves_what_no_file_holds(const embla_comm *comm, void *context)
{
    const embla_sharded_options o = {
        .rows = ROWS, .dim = DIM, .dtype = EMBLA_F4_E2M1, .capacity = COUNT};
    const char *folder = context;
    char path[SCRATCH_PATH];
    embla_sharded *s = NULL;
    EMBLA_TRY(embla_sharded_new(comm, &o, &s));
    must(embla_sharded_save(s, NULL, folder, 1) == EMBLA_ERR_UNSUPPORTED);
    must(comm->rank > 0 || strstr(embla_error(), "f4_e2m1"));
    snprintf(path, sizeof path, "%s/x.safetensors", folder);
    must(embla_sharded_export(s, path, "x") == EMBLA_ERR_UNSUPPORTED);
    must(comm->rank > 0 || strstr(embla_error(), "f4_e2m1"));
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void a_dtype_that_no_file_has_is_refused_by_save_and_export(void **unused)
{
    scratch s;
    (void)unused;
    scratch_new(&s);
    for (int ranks = 1; ranks <= 2; ranks++)
        thread_comm_run(ranks, saves_what_no_file_holds, s.folder);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(nothing_else_is_done_during_a_lookup),
        cmocka_unit_test(wrong_options_of_one_rank_are_refused_on_all),
        cmocka_unit_test(a_rank_without_memory_for_its_rows_takes_part),
        cmocka_unit_test(a_product_that_fails_on_one_rank_fails_the_loss_on_all),
        cmocka_unit_test(a_dtype_that_no_file_has_is_refused_by_save_and_export),
        cmocka_unit_test(ranks_wait_for_a_file_as_long_as_for_any_save),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
