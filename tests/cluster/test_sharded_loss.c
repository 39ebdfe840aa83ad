/* SPDX-License-Identifier: Apache-2.0 */
/* The loss over a sharded head: the same bits for 1 to 4 ranks, and the numbers of embla_head_loss.
 */
#include "check.h"

#include <math.h>

#include "cluster/sharded.h"
#include "embla_cluster.h"
#include "engine.h"
#include "thread_comm.h"

enum { ROWS = 300, DIM = 40, SHARDS = 6, TOKENS = 32, ALL = SHARDS * TOKENS };

typedef struct {
    embla_dtype dtype;
    bool fast;
    int threads;
    float spread;
    const float *hidden;
    const int32_t *targets;
    float *gradient; /* ALL x DIM, written by the ranks that have the tokens */
    float *table;    /* ROWS x DIM, written by owners */
    embla_loss_report report;
} job;

#define must(condition)                                                                            \
    do {                                                                                           \
        if (!(condition))                                                                          \
            return embla_fail(EMBLA_ERR_ARGUMENT, "line %d: %s", __LINE__, #condition);            \
    } while (0)

static embla_status body(const embla_comm *comm, void *context)
{
    job *j = context;
    size_t first = (size_t)comm->rank * SHARDS / (size_t)comm->size;
    size_t end = ((size_t)comm->rank + 1) * SHARDS / (size_t)comm->size;
    size_t lengths[SHARDS], at = first * TOKENS, count = (end - first) * TOKENS;
    embla_loss_report report;
    embla_sharded *s;
    for (size_t i = 0; i < SHARDS; i++) lengths[i] = TOKENS;
    EMBLA_TRY(embla_sharded_new(
        comm,
        &(embla_sharded_options){
            .rows = ROWS, .dim = DIM, .dtype = j->dtype, .capacity = ALL, .threads = j->threads},
        &s));
    EMBLA_TRY(embla_sharded_init(s, &(embla_init_options){.seed = 5, .spread = j->spread}));
    int64_t mine = embla_table_rows(embla_sharded_table(s));
    float *table = calloc((size_t)mine * DIM, sizeof *table);
    must(table);
    EMBLA_TRY(embla_sharded_loss(s,
                                 &(embla_sharded_loss_batch){.hidden = j->hidden + at * DIM,
                                                             .targets = j->targets + at,
                                                             .count = count,
                                                             .lengths = lengths,
                                                             .micro_batches = end - first},
                                 &(embla_sharded_loss_options){.fast = j->fast, .weight = 2.0},
                                 j->gradient + at * DIM, table, &report));
    for (int64_t local = 0; local < mine; local++) {
        int64_t row = embla_sharded_global(s, local);
        if (row >= 0)
            memcpy(j->table + row * DIM, table + local * DIM, DIM * sizeof *table);
        else
            for (size_t c = 0; c < DIM; c++) must(table[local * DIM + (int64_t)c] == 0.0f);
    }
    if (comm->rank == 0) j->report = report;
    EMBLA_TRY(comm->barrier(comm->owner, 0));
    must(memcmp(&j->report, &report, sizeof report) == 0); /* the same on all ranks */
    /* without gradients: the same loss */
    embla_loss_report again;
    EMBLA_TRY(embla_sharded_loss(s,
                                 &(embla_sharded_loss_batch){.hidden = j->hidden + at * DIM,
                                                             .targets = j->targets + at,
                                                             .count = count,
                                                             .lengths = lengths,
                                                             .micro_batches = end - first},
                                 &(embla_sharded_loss_options){.fast = j->fast}, NULL, NULL,
                                 &again));
    must(again.loss == report.loss || (isnan(again.loss) && isnan(report.loss)));
    free(table);
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void fill(float *hidden, int32_t *targets)
{
    uint64_t random = 9;
    for (size_t i = 0; i < ALL * DIM; i++)
        hidden[i] = (float)((double)(check_next(&random) >> 40) * 0x1p-23 - 1.0);
    for (size_t i = 0; i < ALL; i++)
        targets[i] = i % 13 == 0 ? EMBLA_TARGET_IGNORE : (int32_t)(check_next(&random) % ROWS);
}

static job new_job(const float *hidden, const int32_t *targets)
{
    return (job){.dtype = EMBLA_F32,
                 .hidden = hidden,
                 .targets = targets,
                 .gradient = calloc(ALL * DIM, sizeof(float)),
                 .table = calloc(ROWS * DIM, sizeof(float))};
}

static void free_job(job *j)
{
    free(j->gradient);
    free(j->table);
}

/* embla_head_loss on the whole table. */
static void alone(job *j)
{
    embla_table *whole;
    assert_ok(embla_table_new(j->dtype, ROWS, DIM, NULL, &whole));
    assert_ok(embla_table_init(whole, &(embla_init_options){.seed = 5, .spread = j->spread}));
    const embla_loss_options options = {
        .weight = 2.0, .has_ignore = true, .ignore = EMBLA_TARGET_IGNORE};
    const embla_loss_gradients gradients = {.hidden = j->gradient, .table = j->table};
    assert_ok(embla_head_loss(
        &(embla_head){.table = whole},
        &(embla_loss_batch){.hidden = j->hidden, .targets = j->targets, .count = ALL}, &options,
        &gradients, &j->report));
    embla_table_free(whole);
}

static void compare(const job *a, const job *b, double tolerance)
{
    assert_near(a->report.loss, b->report.loss, tolerance * b->report.loss);
    assert_int_equal(a->report.counted, b->report.counted);
    assert_int_equal(a->report.ignored, b->report.ignored);
    assert_int_equal(a->report.correct, b->report.correct);
    for (size_t i = 0; i < ALL * DIM; i++) assert_near(a->gradient[i], b->gradient[i], tolerance);
    for (size_t i = 0; i < ROWS * DIM; i++) assert_near(a->table[i], b->table[i], tolerance);
}

static void test_same_bits(void **state)
{
    (void)state;
    static float hidden[ALL * DIM];
    static int32_t targets[ALL];
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16};
    static const float spreads[] = {0.0f, 3.0f}; /* logits of some size, and large ones */
    SKIP_WITHOUT_ENGINE();
    fill(hidden, targets);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++)
        for (size_t k = 0; k < COUNT_OF(spreads); k++) {
            job one = new_job(hidden, targets), head = new_job(hidden, targets);
            one.dtype = head.dtype = dtypes[d];
            one.spread = head.spread = spreads[k];
            thread_comm_run(1, body, &one);
            alone(&head);
            compare(&one, &head, 2e-6);
            for (int ranks = 1; ranks <= 4; ranks++)
                for (int threads = 1; threads <= 2; threads++) {
                    job j = new_job(hidden, targets);
                    j.dtype = dtypes[d];
                    j.spread = spreads[k];
                    j.threads = threads;
                    thread_comm_run(ranks, body, &j);
                    assert_memory_equal(&j.report, &one.report, sizeof one.report);
                    assert_memory_equal(j.gradient, one.gradient, ALL * DIM * sizeof(float));
                    assert_memory_equal(j.table, one.table, ROWS * DIM * sizeof(float));
                    j.fast = true;
                    memset(j.gradient, 0, ALL * DIM * sizeof(float));
                    thread_comm_run(ranks, body, &j);
                    compare(&j, &one, 2e-6);
                    free_job(&j);
                }
            free_job(&head);
            free_job(&one);
        }
}

/* A NaN in hidden makes the loss and that token's gradient NaN, on all ranks. */
static void test_nan(void **state)
{
    (void)state;
    static float hidden[ALL * DIM];
    static int32_t targets[ALL];
    SKIP_WITHOUT_ENGINE();
    fill(hidden, targets);
    hidden[50 * DIM + 3] = NAN;
    job j = new_job(hidden, targets);
    for (int ranks = 1; ranks <= 3; ranks += 2) {
        thread_comm_run(ranks, body, &j);
        assert_true(isnan(j.report.loss));
        for (size_t c = 0; c < DIM; c++) {
            assert_true(isnan(j.gradient[50 * DIM + c]));
            assert_true(isfinite(j.gradient[49 * DIM + c]));
        }
        assert_true(isnan(j.table[0]));
    }
    free_job(&j);
}

static embla_status wrong(const embla_comm *comm, void *context)
{
    embla_sharded *s;
    float hidden[DIM] = {0};
    int32_t target = comm->rank == 1 ? ROWS : 0;
    (void)context;
    EMBLA_TRY(embla_sharded_new(
        comm, &(embla_sharded_options){.rows = ROWS, .dim = DIM, .dtype = EMBLA_F32, .capacity = 1},
        &s));
    embla_status status = embla_sharded_loss(
        s, &(embla_sharded_loss_batch){.hidden = hidden, .targets = &target, .count = 1}, NULL,
        NULL, NULL, NULL);
    must(status == EMBLA_ERR_RANGE);
    must(strstr(embla_error(), comm->rank == 1 ? "target 0 is 300" : "rank 1 failed"));
    embla_sharded_free(s);
    return EMBLA_OK;
}

static void test_wrong(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    thread_comm_run(2, wrong, NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(test_same_bits), cmocka_unit_test(test_nan),
                                       cmocka_unit_test(test_wrong)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
