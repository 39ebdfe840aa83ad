/* SPDX-License-Identifier: Apache-2.0 */
/* What a table over many hosts costs: a published table of figures, computed again; Zipf's law
 * against sums over all rows; memory against what optimizers allocate; loads of simulated owners.
 */
#include <math.h>

#include "check.h"

#include "base/mem.h"
#include "cluster/cluster_plan.h"
#include "cluster/comm.h"
#include "embla_cluster.h"

enum { FLAT = EMBLA_PLAN_EXCHANGE_FLAT, TWO = EMBLA_PLAN_EXCHANGE_TWO_LEVEL };

static embla_plan_report plan_of(embla_plan_options options)
{
    embla_plan_report plan;
    assert_ok(embla_plan_compute(&options, &plan));
    return plan;
}

/* ---- time ---- */

/* Rows of bf16 of a vocabulary, and n-gram rows of fp8 with scales. */
static const embla_plan_options vocabulary = {.rows = 128256,
                                              .dim = 4096,
                                              .dtype = EMBLA_BF16,
                                              .frozen = true,
                                              .tokens = 65536,
                                              .unique = 0.07,
                                              .out_bytes = 8192};
static const embla_plan_options engram = {.rows = 384006168,
                                          .dim = 256,
                                          .dtype = EMBLA_F8_E4M3,
                                          .scale_bytes = 8,
                                          .frozen = true,
                                          .tokens = 8192,
                                          .rows_per_token = 48,
                                          .unique = 0.5,
                                          .out_bytes = 256};

/* A published figure has two or three digits. */
static void assert_digits(double value, double published, double unit)
{
    assert_near(value, published, 0.501 * unit);
}

static void the_model_gives_the_published_table(void **state)
{
    embla_plan_options longer = engram;
    longer.tokens = 65536;
    longer.unique = 0.41;
    /* bytes for a token; ms of network, memory, messages flat and in two levels; million tokens/s
     */
    const struct {
        const embla_plan_options *workload;
        int64_t hosts;
        double wire, net, mem, flat, two, flat_speed, two_speed;
        double flat_unit, two_unit, speed_unit[2];
    } table[] = {
        {&vocabulary, 2, 287, 0.75, 3.25, 0.006, 0.02, 20.1, 20.1, 0.001, 0.01, {0.1, 0.1}},
        {&vocabulary, 64, 565, 1.48, 3.25, 0.38, 0.10, 18.1, 19.6, 0.01, 0.01, {0.1, 0.1}},
        {&vocabulary, 1024, 573, 1.50, 3.25, 6.1, 0.38, 7.0, 18.0, 0.1, 0.01, {0.1, 0.1}},
        {&vocabulary, 16384, 574, 1.50, 3.25, 98, 1.5, 0.65, 13.7, 1, 0.1, {0.01, 0.1}},
        {&engram, 2, 3264, 1.07, 1.28, 0.006, 0.02, 6.4, 3.8, 0.001, 0.01, {0.1, 0.1}},
        {&engram, 64, 6426, 2.11, 1.28, 0.38, 0.10, 3.3, 1.9, 0.01, 0.01, {0.1, 0.1}},
        {&engram, 1024, 6522, 2.14, 1.28, 6.1, 0.38, 1.0, 1.8, 0.1, 0.01, {0.1, 0.1}},
        {&engram, 16384, 6528, 2.14, 1.28, 98, 1.5, 0.08, 1.4, 1, 0.1, {0.01, 0.1}},
        {&longer, 1024, 5348, 14.0, 9.1, 6.1, 0.38, 3.3, 2.3, 0.1, 0.01, {0.1, 0.1}}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(table); i++) {
        embla_plan_options o = *table[i].workload;
        o.hosts = table[i].hosts;
        embla_plan_report plan = plan_of(o);
        const embla_plan_times *flat = &plan.times[FLAT], *two = &plan.times[TWO];
        double tokens = 1e-6 * (double)o.tokens, ms = 1e3;
        assert_digits(plan.wire, table[i].wire, 1.0);
        assert_digits(ms * (flat->numbers.seconds + flat->rows.seconds), table[i].net,
                      table[i].net < 10 ? 0.01 : 0.1);
        assert_digits(ms * (flat->gather.seconds + flat->expand.seconds), table[i].mem,
                      o.tokens == 65536 && o.rows_per_token == 48 ? 0.1 : 0.01);
        assert_digits(ms * flat->latency, table[i].flat, table[i].flat_unit);
        assert_digits(ms * two->latency, table[i].two, table[i].two_unit);
        assert_digits(tokens / flat->overlapped, table[i].flat_speed, table[i].speed_unit[0]);
        assert_digits(tokens / two->overlapped, table[i].two_speed, table[i].speed_unit[1]);
    }
}

/* About 360 ranks and 2,300 ranks. */
static void a_flat_exchange_stops_where_messages_take_longer_than_bytes(void **state)
{
    embla_plan_options o = engram;
    (void)state;
    o.hosts = 64;
    o.machine.memory = INT64_C(64000000000);
    assert_near(plan_of(o).flat_limit, 356.5, 1.0);
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_FITS);
    o.hosts = 350;
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_FITS);
    o.hosts = 365;
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_LATENCY);
    o.tokens = 65536;
    o.unique = 0.41;
    assert_near(plan_of(o).flat_limit, 2340, 10.0);
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_FITS);
}

static void a_step_is_the_sum_of_its_parts(void **state)
{
    (void)state;
    for (int64_t hosts = 1; hosts <= 4096; hosts *= 4) {
        embla_plan_report plan = plan_of((embla_plan_options){.rows = 1000000000,
                                                              .dim = 128,
                                                              .tokens = 8192,
                                                              .zipf = 1,
                                                              .hosts = hosts,
                                                              .optimizer = EMBLA_OPTIM_ADAMW});
        for (int e = 0; e < EMBLA_PLAN_EXCHANGES; e++) {
            const embla_plan_times *t = &plan.times[e];
            double lookup = t->dedup.seconds + t->numbers.seconds + t->gather.seconds +
                            t->rows.seconds + t->expand.seconds + t->latency;
            assert_near(t->lookup, lookup, 1e-12);
            assert_near(t->step, lookup + t->backward.seconds + t->optimizer.seconds, 1e-12);
            assert_true(t->overlapped <= t->lookup);
            assert_true(plan.times[plan.fastest].step <= t->step ||
                        (e == EMBLA_PLAN_EXCHANGE_GROUPS && !plan.group_fits));
        }
    }
}

/* Ranks of one host read each other's rows: nothing is sent, unless it is wanted. */
static void one_host_sends_no_rows(void **state)
{
    embla_plan_options o = {.rows = 1000000,
                            .dim = 64,
                            .tokens = 8192,
                            .zipf = 1,
                            .hosts = 1,
                            .ranks_per_host = 4,
                            .frozen = true};
    (void)state;
    embla_plan_report window = plan_of(o);
    o.send = true;
    embla_plan_report sent = plan_of(o);
    assert_true(window.wire == 0.0 && window.times[FLAT].latency == 0.0);
    assert_true(window.times[FLAT].gather.bytes == 0.0);
    assert_true(sent.wire > 0.0 && sent.times[FLAT].latency > 0.0);
    assert_true(window.times[FLAT].lookup < sent.times[FLAT].lookup);
    o.send = false;
    o.hosts = 2; /* half of the rows are on the other host */
    assert_near(plan_of(o).wire / sent.wire, 0.5 / 0.75, 1e-12);
}

/* ---- Zipf's law ---- */

/* By the definition: one minus the chance that no draw gives the row, summed over all rows. */
static double unique_by_definition(int64_t rows, double exponent, double draws)
{
    double sum = 0.0, unique = 0.0;
    for (int64_t i = rows; i >= 1; i--) sum += pow((double)i, -exponent);
    for (int64_t i = 1; i <= rows; i++)
        unique += 1.0 - pow(1.0 - pow((double)i, -exponent) / sum, draws);
    return unique;
}

static void different_rows_are_those_of_the_definition(void **state)
{
    const int64_t rows[] = {1, 2, 100, 4096, 4097, 50257, 251816};
    const double exponents[] = {0.0, 0.5, 0.99, 1.0, 1.2, 3.0};
    const double draws[] = {1, 100, 65536};
    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t e = 0; e < COUNT_OF(exponents); e++)
            for (size_t d = 0; d < COUNT_OF(draws); d++) {
                embla_zipf zipf;
                double wanted = unique_by_definition(rows[r], exponents[e], draws[d]);
                embla_zipf_set(&zipf, rows[r], exponents[e]);
                assert_near(embla_zipf_unique(&zipf, draws[d]), wanted, 1e-6 * wanted);
            }
}

static void draws_are_as_frequent_as_the_law_says(void **state)
{
    enum { DRAWS = 1 << 20, ROWS = 1000 };
    static int64_t counts[ROWS];
    (void)state;
    for (double exponent = 0.0; exponent < 2.0; exponent += 0.5) {
        embla_zipf zipf;
        uint64_t seed = 7;
        double sum = 0.0;
        memset(counts, 0, sizeof counts);
        embla_zipf_set(&zipf, ROWS, exponent);
        for (int i = 0; i < DRAWS; i++) {
            int64_t row = embla_zipf_draw(&zipf, &seed);
            assert_true(row >= 0 && row < ROWS);
            counts[row]++;
        }
        for (int i = 1; i <= ROWS; i++) sum += pow(i, -exponent);
        for (int i = 0; i < ROWS; i++) {
            double wanted = DRAWS * pow(i + 1, -exponent) / sum;
            assert_near((double)counts[i], wanted, 5.0 * sqrt(wanted) + 1.0);
        }
    }
}

static void a_table_of_a_trillion_rows_is_no_slower(void **state)
{
    embla_zipf zipf;
    uint64_t seed = 1;
    (void)state;
    embla_zipf_set(&zipf, INT64_C(1) << 40, 1.0);
    double unique = embla_zipf_unique(&zipf, 65536);
    assert_true(unique > 40000 && unique < 65536);
    for (int i = 0; i < 1000; i++) {
        int64_t row = embla_zipf_draw(&zipf, &seed);
        assert_true(row >= 0 && row < INT64_C(1) << 40);
    }
}

/* ---- memory ---- */

static void state_is_what_an_optimizer_allocates(void **state)
{
    enum { ROWS = 16, DIM = 32 };
    const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16};
    (void)state;
    for (int kind = 0; embla_optim_name((embla_optim_kind)kind); kind++)
        for (int momentum = 0; momentum < 2; momentum++)
            for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
                const embla_optim_options options = {
                    .kind = (embla_optim_kind)kind,
                    .momentum = momentum && kind == EMBLA_OPTIM_SGD ? 0.9 : 0};
                embla_table *table = check_table(dtypes[d], ROWS, DIM, 1);
                embla_optim *optim;
                embla_optim_state part;
                size_t bytes = 0;
                assert_ok(embla_optim_new(table, &options, &optim));
                for (size_t n = 0; embla_optim_state_at(optim, n, &part) == EMBLA_OK; n++)
                    bytes += part.dim * sizeof(float);
                embla_plan_report plan =
                    plan_of((embla_plan_options){.rows = ROWS,
                                                 .dim = DIM,
                                                 .dtype = dtypes[d],
                                                 .tokens = 1,
                                                 .optimizer = (embla_optim_kind)kind,
                                                 .momentum = momentum});
                assert_int_equal(plan.state_bytes, bytes);
                assert_int_equal(plan.row_bytes, embla_table_row_bytes(table));
                embla_optim_free(optim);
                embla_table_free(table);
            }
}

/* The largest vocabulary of the published models is 4.2 GB in bf16. */
static void every_vocabulary_fits_one_host(void **state)
{
    embla_plan_options o = {.rows = 128256,
                            .dim = 16384,
                            .dtype = EMBLA_BF16,
                            .tokens = 4096,
                            .zipf = 1,
                            .optimizer = EMBLA_OPTIM_ADAMW,
                            .machine = {.memory = INT64_C(64000000000)}};
    (void)state;
    embla_plan_report plan = plan_of(o);
    assert_int_equal(plan.verdict, EMBLA_PLAN_VERDICT_ONE_HOST);
    assert_int_equal(plan.hosts, 1);
    assert_int_equal(plan.table, INT64_C(128256) * 16384 * (2 + 12));
    o.hosts = 8;
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_ONE_HOST);
}

static void the_number_of_hosts_is_the_smallest_that_fits(void **state)
{
    embla_plan_options o = {.rows = 1000000000, .dim = 128, .tokens = 1024, .zipf = 1};
    (void)state;
    for (int kind = 0; embla_optim_name((embla_optim_kind)kind); kind++) {
        o.optimizer = (embla_optim_kind)kind;
        o.hosts = 0;
        o.machine.memory = INT64_C(100000000000);
        embla_plan_report plan = plan_of(o);
        assert_true(plan.min_hosts > 1);
        assert_int_equal(plan.hosts, plan.min_hosts);
        assert_true(plan.host_bytes <= o.machine.memory);
        assert_int_equal(plan.host_bytes, plan.host_rows + plan.host_state + plan.host_buffers);
        assert_true(plan.host_rows * plan.hosts >= 1000000000 * INT64_C(512));
        o.hosts = plan.min_hosts - 1;
        assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_MEMORY);
    }
    o.machine.memory = 1000;
    o.hosts = 0;
    assert_int_equal(plan_of(o).min_hosts, 0);
    assert_int_equal(plan_of(o).verdict, EMBLA_PLAN_VERDICT_MEMORY);
}

/* ---- refusals ---- */

static void refuse(embla_plan_options options, embla_status wanted)
{
    embla_plan_report plan, before;
    memset(&plan, 0x5a, sizeof plan);
    memcpy(&before, &plan, sizeof plan);
    assert_status(embla_plan_compute(&options, &plan), wanted);
    assert_memory_equal(&plan, &before, sizeof plan);
}

static void sizes_that_are_missing_or_too_large_are_refused(void **state)
{
    const embla_plan_options bad[] = {
        {.dim = 4, .tokens = 1},
        {.rows = -1, .dim = 4, .tokens = 1},
        {.rows = INT64_C(1) << 62, .dim = 4, .tokens = 1},
        {.rows = 4, .tokens = 1},
        {.rows = 4, .dim = (size_t)1 << 31, .tokens = 1},
        {.rows = INT64_C(1) << 40, .dim = (size_t)1 << 20, .tokens = 1},
        {.rows = 4, .dim = 4},
        {.rows = 4, .dim = 4, .tokens = INT64_MAX},
        {.rows = 4, .dim = 4, .tokens = 1 << 20, .rows_per_token = 1 << 20},
        {.rows = 4, .dim = 4, .tokens = 1, .rows_per_token = -1},
        {.rows = 4, .dim = 4, .tokens = 1, .hosts = 65537},
        {.rows = 4, .dim = 4, .tokens = 1, .hosts = 65536, .ranks_per_host = 2},
        {.rows = 4, .dim = 4, .tokens = 1, .hosts = 32, .buckets = 16},
        {.rows = 4, .dim = 4, .tokens = 1, .buckets = 3},
        {.rows = 4, .dim = 4, .tokens = 1, .hosts = 4, .group = 3},
        {.rows = 4, .dim = 4, .tokens = 1, .zipf = -1},
        {.rows = 4, .dim = 4, .tokens = 1, .zipf = NAN},
        {.rows = 4, .dim = 4, .tokens = 1, .unique = 1.5},
        {.rows = 4, .dim = 4, .tokens = 1, .scale_bytes = SIZE_MAX},
        {.rows = 4, .dim = 4, .tokens = 1, .out_bytes = SIZE_MAX},
        {.rows = 4, .dim = 4, .tokens = 1, .machine = {.memory = -1}},
        {.rows = 4, .dim = 4, .tokens = 1, .machine = {.network = -1}},
        {.rows = 4, .dim = 4, .tokens = 1, .machine = {.latency = INFINITY}},
        {.rows = 4, .dim = 4, .tokens = 1, .optimizer = (embla_optim_kind)9},
        {.rows = 4, .dim = 4, .tokens = 1, .dtype = (embla_dtype)99},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuse(bad[i], EMBLA_ERR_ARGUMENT);
    refuse((embla_plan_options){.rows = 4, .dim = 32, .tokens = 1, .dtype = EMBLA_Q4_0},
           EMBLA_ERR_UNSUPPORTED);
    refuse((embla_plan_options){.rows = 4, .dim = 33, .tokens = 1, .dtype = EMBLA_Q4_0},
           EMBLA_ERR_SHAPE);
    refuse((embla_plan_options){.rows = 4, .dim = 4, .tokens = 1, .reserved = {1}},
           EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_plan_compute(NULL, NULL), EMBLA_ERR_ARGUMENT);
}

/* ---- simulation ---- */

/* The bar of owner loads: at most 1.15 times the mean, for words of a language at 64 ranks. */
static void the_load_of_owners_is_even_at_64_ranks(void **state)
{
    const int64_t rows[] = {50257, 128256, 251816, 1000000, 1000000000};
    const int64_t tokens[] = {8192, 65536}, ranks = 64;
    (void)state;
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t t = 0; t < COUNT_OF(tokens); t++) {
            const embla_plan_options o = {
                .rows = rows[r], .dim = 64, .tokens = tokens[t], .zipf = 1};
            embla_simulation found;
            assert_ok(embla_plan_simulate(&o, NULL, &ranks, 1, &found));
            assert_int_equal(found.senders, 64);
            assert_true(found.load_max >= 1.0 && found.load_max <= 1.15);
            embla_plan_options planned = o;
            planned.hosts = 64;
            embla_plan_report plan = plan_of(planned);
            assert_near(found.unique, plan.unique, 0.01 * plan.unique);
            assert_near(found.times[FLAT].lookup, plan.times[FLAT].lookup,
                        0.15 * plan.times[FLAT].lookup);
        }
}

/* 16 buckets on 2 ranks: rank 0 owns the even rows. */
static void a_trace_is_counted_exactly(void **state)
{
    const int64_t trace[] = {0, 0, 1, 9, /* rank 0: three different rows, two of them at rank 1 */
                             3, 3, 3, 3, /* rank 1: one, of its own */
                             5, 5, 5, 5 /* nobody's */};
    const embla_simulation_options from = {.trace = trace, .count = COUNT_OF(trace)};
    const embla_plan_options o = {.rows = 16, .dim = 4, .tokens = 4};
    const int64_t ranks[] = {2, 1};
    embla_simulation found[2];
    (void)state;
    assert_ok(embla_plan_simulate(&o, &from, ranks, 2, found));
    assert_int_equal(found[0].ranks, 2);
    assert_int_equal(found[0].senders, 2);
    assert_near(found[0].unique, 4.0 / 8, 1e-12);
    assert_near(found[0].load_max, 3.0 / 2, 1e-12); /* row 0 at rank 0; rows 1, 9, 3 at rank 1 */
    assert_near(found[0].message_max, 2.0, 0);
    assert_near(found[0].empty, 0.5, 0); /* rank 1 asks rank 0 for nothing */
    assert_int_equal(found[1].senders, 1);
    assert_near(found[1].load_max, 1.0, 0);
    assert_near(found[1].unique, 3.0 / 4, 1e-12);
}

/* Each rank owns its share of the buckets; a power of two of ranks owns no two neighbours. */
static void owners_have_even_shares_of_the_buckets(void **state)
{
    (void)state;
    for (int64_t ranks = 1; ranks <= 256; ranks = ranks < 8 ? ranks + 1 : 2 * ranks) {
        int64_t counts[256] = {0};
        for (size_t bucket = 0; bucket < 1024; bucket++) {
            int64_t owner = embla_buckets_owner(bucket, 1024, ranks);
            assert_true(owner >= 0 && owner < ranks);
            counts[owner]++;
            if (ranks > 1 && (ranks & (ranks - 1)) == 0 && bucket > 0)
                assert_int_not_equal(owner, embla_buckets_owner(bucket - 1, 1024, ranks));
        }
        for (int64_t r = 0; r < ranks; r++)
            assert_int_equal(counts[r], (r + 1) * 1024 / ranks - r * 1024 / ranks);
    }
}

static void all_ranks_at_one_row_are_all_load_at_one_owner(void **state)
{
    enum { RANKS = 64, TOKENS = 16 };
    static int64_t trace[RANKS * TOKENS];
    const embla_simulation_options from = {.trace = trace, .count = RANKS * TOKENS};
    const embla_plan_options o = {.rows = 1000000, .dim = 4, .tokens = TOKENS};
    const int64_t ranks = RANKS;
    embla_simulation found;
    (void)state;
    for (size_t i = 0; i < RANKS * TOKENS; i++) trace[i] = 777;
    assert_ok(embla_plan_simulate(&o, &from, &ranks, 1, &found));
    assert_near(found.load_max, 64.0, 0);
    assert_near(found.unique, 1.0 / TOKENS, 1e-12);
}

static void many_ranks_are_simulated_by_some_of_them(void **state)
{
    const embla_plan_options o = {.rows = 1000000, .dim = 64, .tokens = 1024, .zipf = 1};
    const embla_simulation_options from = {.max_rows = 1 << 18};
    const int64_t ranks[] = {1, 256, 16384, 65536};
    embla_simulation found[4], again[4];
    (void)state;
    assert_ok(embla_plan_simulate(&o, &from, ranks, 4, found));
    assert_int_equal(found[0].senders, 1);
    assert_int_equal(found[1].senders, 256);
    assert_int_equal(found[2].senders, 256);
    assert_int_equal(found[3].senders, 256);
    assert_true(found[3].empty > 0.9 && found[3].times[TWO].lookup < found[3].times[FLAT].lookup);
    assert_ok(embla_plan_simulate(&o, &from, ranks, 4, again));
    assert_memory_equal(found, again, sizeof found);
}

static void simulations_that_are_impossible_are_refused(void **state)
{
    const int64_t trace[] = {1, 2, 16, -1}, ranks[] = {2, 0};
    const embla_plan_options o = {.rows = 16, .dim = 4, .tokens = 2};
    embla_simulation_options from = {.trace = trace, .count = 4};
    embla_simulation found;
    (void)state;
    assert_status(embla_plan_simulate(&o, &from, ranks, 1, &found), EMBLA_ERR_RANGE);
    assert_error_has("row 16 at index 2");
    from.trace = trace + 3;
    from.count = 1;
    assert_status(embla_plan_simulate(&o, &from, ranks, 1, &found), EMBLA_ERR_SHAPE);
    from = (embla_simulation_options){.max_rows = 1};
    assert_status(embla_plan_simulate(&o, &from, ranks, 1, &found), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plan_simulate(&o, NULL, ranks, 2, &found), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plan_simulate(&o, NULL, ranks, 0, &found), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plan_simulate(&o, NULL, NULL, 1, &found), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plan_simulate(&o, NULL, ranks, 1, NULL), EMBLA_ERR_ARGUMENT);
}

/* ---- measure ---- */

static void measured_speeds_are_possible(void **state)
{
    const embla_plan_options o = {.rows = 100000,
                                  .dim = 64,
                                  .tokens = 4096,
                                  .zipf = 1,
                                  .machine = {.memory = 12345, .network = 1e9}};
    embla_plan_machine m;
    (void)state;
    assert_ok(embla_plan_measure(embla_comm_self(), &o, &m));
    assert_int_equal(m.ranks, 1);
    assert_true(m.bandwidth > 1e6 && m.bandwidth < 1e14);
    assert_true(m.dedup > 0 && m.dedup < 1e-4 && m.row >= 0 && m.row < 1e-3);
    assert_int_equal(m.memory, 12345); /* one process has no network: as they were given */
    assert_true(m.network == 1e9 && m.latency == 2e-6);
    assert_status(embla_plan_measure(NULL, &o, &m), EMBLA_ERR_ARGUMENT);
    assert_status(embla_plan_measure(embla_comm_self(), NULL, &m), EMBLA_ERR_ARGUMENT);
}

/* A communicator of two ranks, of which there is only this one: it answers itself. */
typedef struct {
    void *parts[2];
    bool refuse; /* there are no windows */
    int windows; /* that are not freed */
} alone;

static embla_status echo(void *owner, const void *send, void *receive, size_t bytes)
{
    (void)owner;
    memmove(receive, send, 2 * bytes);
    return EMBLA_OK;
}

static embla_status echo_items(void *owner, const embla_exchange *e)
{
    (void)owner;
    memmove(e->receive, e->send, (e->send_counts[0] + e->send_counts[1]) * e->unit);
    return EMBLA_OK;
}

static embla_status reduce_nothing(void *owner, void *values, size_t count, embla_comm_type type,
                                   embla_comm_op op)
{
    (void)owner, (void)values, (void)count, (void)type, (void)op;
    return EMBLA_OK;
}

static embla_status wait_for_nobody(void *owner, int seconds)
{
    (void)owner, (void)seconds;
    return EMBLA_OK;
}

static embla_status open_window(void *owner, size_t bytes, embla_comm_window *out)
{
    alone *a = owner;
    if (a->refuse) return EMBLA_ERR_MEMORY;
    a->parts[0] = calloc(bytes, 1);
    a->windows++;
    *out = (embla_comm_window){.parts = a->parts, .handle = a->parts[0]};
    return EMBLA_OK;
}

static void close_window(void *owner, embla_comm_window *window)
{
    ((alone *)owner)->windows--;
    free(window->handle);
}

static void two_ranks_also_measure_their_network(void **state)
{
    const embla_plan_options o = {.rows = 10000, .dim = 64, .tokens = 1024, .zipf = 1};
    alone own = {0};
    const embla_comm comm = {.owner = &own,
                             .size = 2,
                             .alltoall = echo,
                             .alltoallv = echo_items,
                             .allreduce = reduce_nothing,
                             .barrier = wait_for_nobody,
                             .window_new = open_window,
                             .window_free = close_window};
    embla_plan_machine m = {0};
    (void)state;
    assert_ok(embla_plan_measure(&comm, &o, &m));
    assert_int_equal(m.ranks, 1); /* the other one is on another host */
    assert_true(m.latency > 0 && m.latency < 1e-3 && m.latency != 2e-6);
    assert_true(m.network > 1e6 && m.network < 1e13 && m.network != 25e9);
    assert_int_equal(own.windows, 0);
    own.refuse = true;
    memset(&m, 0, sizeof m);
    assert_status(embla_plan_measure(&comm, &o, &m), EMBLA_ERR_MEMORY);
    assert_true(m.network == 0 && own.windows == 0);
}

static void without_memory_they_fail_and_keep_nothing(void **state)
{
    const embla_plan_options o = {.rows = 1000, .dim = 8, .tokens = 64, .zipf = 1};
    const int64_t ranks[] = {2, 4};
    embla_simulation found[2];
    embla_plan_machine m;
    size_t live = embla_mem_live();
    (void)state;
    for (int which = 0; which < 2; which++) {
        embla_status status = EMBLA_ERR_MEMORY;
        size_t n = 0;
        for (; status != EMBLA_OK; n++) {
            embla_mem_fail(n + 1, false);
            status = which ? embla_plan_measure(embla_comm_self(), &o, &m)
                           : embla_plan_simulate(&o, NULL, ranks, 2, found);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(embla_mem_live(), live);
        }
        embla_mem_fail(0, false);
        assert_true(n > 3);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_model_gives_the_published_table),
        cmocka_unit_test(a_flat_exchange_stops_where_messages_take_longer_than_bytes),
        cmocka_unit_test(a_step_is_the_sum_of_its_parts),
        cmocka_unit_test(one_host_sends_no_rows),
        cmocka_unit_test(different_rows_are_those_of_the_definition),
        cmocka_unit_test(draws_are_as_frequent_as_the_law_says),
        cmocka_unit_test(a_table_of_a_trillion_rows_is_no_slower),
        cmocka_unit_test(state_is_what_an_optimizer_allocates),
        cmocka_unit_test(every_vocabulary_fits_one_host),
        cmocka_unit_test(the_number_of_hosts_is_the_smallest_that_fits),
        cmocka_unit_test(sizes_that_are_missing_or_too_large_are_refused),
        cmocka_unit_test(the_load_of_owners_is_even_at_64_ranks),
        cmocka_unit_test(a_trace_is_counted_exactly),
        cmocka_unit_test(owners_have_even_shares_of_the_buckets),
        cmocka_unit_test(all_ranks_at_one_row_are_all_load_at_one_owner),
        cmocka_unit_test(many_ranks_are_simulated_by_some_of_them),
        cmocka_unit_test(simulations_that_are_impossible_are_refused),
        cmocka_unit_test(measured_speeds_are_possible),
        cmocka_unit_test(two_ranks_also_measure_their_network),
        cmocka_unit_test(without_memory_they_fail_and_keep_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
