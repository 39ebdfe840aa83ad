/* SPDX-License-Identifier: Apache-2.0 */
/* Loops on the threads of a host (embla_set_parallel), which may do anything but change a result.
 */
#include "check.h"

#include "base/cpus.h"
#include "base/parallel.h"
#include "share_host.h"
#include "share_trial.h"
#include "slow.h"

/* Sums of small and inexact numbers: they depend on the rounding mode and on flushing. */
static embla_status sum_small(void *job, size_t first, size_t end, size_t slot)
{
    float *out = job;
    (void)slot;
    for (size_t i = first; i < end; i++) {
        volatile float sum = 1e-39f, step = 1.0f / (float)(i + 3), tiny = 1e-38f;
        for (int k = 0; k < 50; k++) sum = sum * 0.7f + tiny * step;
        volatile float large = 0.0f;
        for (int k = 0; k < 50; k++) large = large + step;
        out[2 * i] = sum;
        out[2 * i + 1] = large;
    }
    return EMBLA_OK;
}

enum { SUMS = 256 };

static void check_bits_on(host *h)
{
    static float alone[2 * SUMS], shared[2 * SUMS];
    assert_ok(embla_share(1, SUMS, 0, sum_small, alone));
    assert_ok(embla_set_parallel(run_on_host, h, HOST_PARTS));
    for (size_t turn = 0; turn < 20; turn++) {
        memset(shared, 0xff, sizeof shared);
        assert_ok(embla_share(5, SUMS, turn % 2, sum_small, shared));
        assert_memory_equal(shared, alone, sizeof alone);
    }
    assert_false(atomic_load(&h->wrong));
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

static void check_host(host *h)
{
    assert_ok(embla_set_parallel(run_on_host, h, HOST_PARTS));
    assert_int_equal(embla_default_threads(), HOST_PARTS);
    for (int parts = 1; parts < 9; parts++)
        for (size_t grain = 0; grain < 3; grain++)
            assert_true(share_is_right(&shared_trial, parts, 100, grain));
    assert_false(atomic_load(&h->wrong));
    assert_ok(embla_set_parallel(NULL, NULL, 0));
    check_bits_on(h);
}

static void any_threads_of_a_host_do(void **state)
{
    int many = 3 * embla_cpus();
    host backwards = plain_host(0);
    host hosts[] = {plain_host(0), plain_host(1), plain_host(2), plain_host(-1),
                    plain_host(many < HOST_PARTS ? many : HOST_PARTS)};
    (void)state;
    backwards.reversed = true;
    check_host(&backwards);
    for (size_t i = 0; i < COUNT_OF(hosts); i++) check_host(&hosts[i]);
}

static void the_rounding_of_a_host_changes_no_bit(void **state)
{
    static const int rounding[] = {FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO, FE_TONEAREST};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(rounding); i++) {
        host h = plain_host(3);
        h.rounding = rounding[i];
        h.flush = i % 2 ? 0x8040 : 0; /* FTZ and DAZ */
        check_bits_on(&h);
    }
}

static void the_rounding_of_the_caller_holds_in_all_threads(void **state)
{
    static float alone[2 * SUMS], shared[2 * SUMS];
    (void)state;
    assert_int_equal(fesetround(FE_UPWARD), 0);
    embla_status first = embla_share(1, SUMS, 0, sum_small, alone), second = EMBLA_OK;
    bool same = true;
    for (int turn = 0; turn < 50; turn++) {
        second = embla_share(4, SUMS, 1, sum_small, shared);
        same = same && memcmp(alone, shared, sizeof alone) == 0;
    }
    assert_int_equal(fesetround(FE_TONEAREST), 0);
    assert_ok(first);
    assert_ok(second);
    assert_true(same);
    assert_ok(embla_share(1, SUMS, 0, sum_small, shared));
    assert_memory_not_equal(alone, shared, sizeof alone); /* else this proves nothing */
}

/* Both fail, the lower index later. */
static embla_status fail_in_turn(void *job, size_t first, size_t end, size_t slot)
{
    (void)job, (void)end, (void)slot;
    if (first == 0) wait_us(200000);
    return embla_fail(EMBLA_ERR_RANGE, "index %zu fails", first);
}

static void a_failure_with_a_lower_index_counts_even_if_it_comes_later(void **state)
{
    host h = plain_host(-1);
    (void)state;
    assert_ok(embla_set_parallel(run_on_host, &h, 2));
    for (size_t grain = 0; grain < 2; grain++) {
        assert_status(embla_share(2, 2, grain, fail_in_turn, NULL), EMBLA_ERR_RANGE);
        assert_string_equal(embla_error(), "index 0 fails");
    }
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

static void a_host_gets_no_more_parts_than_its_threads(void **state)
{
    host h = plain_host(0);
    (void)state;
    h.most = 3;
    assert_ok(embla_set_parallel(run_on_host, &h, 3));
    assert_true(share_is_right(&shared_trial, 8, 100, 0));
    assert_true(share_is_right(&shared_trial, 8, 100, 1));
    assert_false(atomic_load(&h.wrong));
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

/* The rows are complete nevertheless. */
static void check_broken(embla_parallel_run run, host *h, const char *message)
{
    assert_ok(embla_set_parallel(run, h, HOST_PARTS));
    for (size_t grain = 0; grain < 2; grain++) {
        trial_new(&shared_trial, 4);
        shared_trial.slow = true;
        assert_status(embla_share(4, 8, grain, try_range, &shared_trial), EMBLA_ERR_ARGUMENT);
        assert_error_has(message);
        assert_true(each_once(&shared_trial, 8));
    }
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

static void call_too_many(void *context, size_t count, embla_parallel_part part, void *job)
{
    run_on_host(context, count, part, job);
    part(job, count + 1000000);
}

static void call_none(void *context, size_t count, embla_parallel_part part, void *job)
{
    (void)context, (void)count, (void)part, (void)job;
}

/* A host that returns while a part still runs, and calls one again after everything. */
static struct {
    embla_parallel_part part;
    void *job;
    pthread_t thread;
} early;
static atomic_bool begun;

static void *call_early(void *unused)
{
    early.part(early.job, 0);
    return unused;
}

static embla_status begin_range(void *job, size_t first, size_t end, size_t slot)
{
    atomic_store(&begun, true);
    if (!embla_share_is_caller()) wait_us(300000); /* the others are done long before */
    return try_range(job, first, end, slot);
}

static void return_early(void *context, size_t count, embla_parallel_part part, void *job)
{
    (void)context;
    early.part = part;
    early.job = job;
    atomic_store(&begun, false);
    if (pthread_create(&early.thread, NULL, call_early, NULL) != 0) return;
    while (!atomic_load(&begun)) wait_us(10);
    for (size_t i = 1; i < count; i++) part(job, i);
}

static void a_host_that_drops_or_repeats_a_part_is_an_error(void **state)
{
    host drops = plain_host(0), repeats = plain_host(0), fine = plain_host(0);
    (void)state;
    drops.drop = 2;
    repeats.twice = 1;
    check_broken(run_on_host, &drops, "did not call part 2 of 4");
    check_broken(run_on_host, &repeats, "called part 1 twice, of 4");
    check_broken(call_none, &fine, "did not call part 0 of 4");
    check_broken(call_too_many, &fine, "part 1000004");
}

static void a_host_that_returns_early_is_an_error(void **state)
{
    (void)state;
    assert_ok(embla_set_parallel(return_early, NULL, 4));
    trial_new(&shared_trial, 4);
    assert_status(embla_share(4, 8, 0, begin_range, &shared_trial), EMBLA_ERR_ARGUMENT);
    assert_error_has("returned before");
    assert_true(each_once(&shared_trial, 8));
    assert_int_equal(pthread_join(early.thread, NULL), 0);
    early.part(early.job, 1); /* the call is over: nothing happens */
    assert_true(each_once(&shared_trial, 8));
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

static embla_status change_host(void *job, size_t first, size_t end, size_t slot)
{
    (void)first, (void)end, (void)slot;
    if (embla_set_parallel(NULL, NULL, 0) == EMBLA_ERR_BUSY) atomic_fetch_add((atomic_int *)job, 1);
    return EMBLA_OK;
}

static void the_host_cannot_change_during_a_call(void **state)
{
    host h = plain_host(2);
    atomic_int refused = 0;
    (void)state;
    assert_ok(embla_share(4, 40, 1, change_host, &refused));
    assert_int_equal(atomic_load(&refused), 40);
    assert_ok(embla_set_parallel(run_on_host, &h, 4));
    assert_ok(embla_share(4, 40, 1, change_host, &refused));
    assert_int_equal(atomic_load(&refused), 80);
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

static void *change_often(void *stop)
{
    static host h;
    h = plain_host(0);
    while (!atomic_load((atomic_bool *)stop)) {
        if (embla_set_parallel(run_on_host, &h, HOST_PARTS) == EMBLA_OK) wait_us(10);
        if (embla_set_parallel(NULL, NULL, 0) == EMBLA_OK) wait_us(10);
    }
    return embla_set_parallel(NULL, NULL, 0) == EMBLA_OK ? NULL : stop;
}

static void the_host_may_change_between_calls_of_another_thread(void **state)
{
    pthread_t thread;
    atomic_bool stop = false;
    void *wrong = NULL;
    bool right = true;
    (void)state;
    assert_int_equal(pthread_create(&thread, NULL, change_often, &stop), 0);
    for (int turn = 0; turn < steps_of(5000); turn++)
        right = right && share_is_right(&shared_trial, 3, 50, (size_t)(turn % 3));
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
    assert_true(right);
}

static void a_wrong_number_of_threads_is_refused(void **state)
{
    (void)state;
    assert_status(embla_set_parallel(run_on_host, NULL, 0), EMBLA_ERR_ARGUMENT);
    assert_status(embla_set_parallel(run_on_host, NULL, -1), EMBLA_ERR_ARGUMENT);
    assert_status(embla_set_parallel(run_on_host, NULL, 4097), EMBLA_ERR_ARGUMENT);
    assert_status(embla_set_parallel(NULL, NULL, -1), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_set_parallel(NULL, NULL, 5));
    assert_int_equal(embla_default_threads(), 5);
    assert_ok(embla_set_parallel(NULL, NULL, 0));
}

/* A test that fails must not leave its host to the next one. */
static int forget_host(void **state)
{
    (void)state;
    return embla_set_parallel(NULL, NULL, 0) == EMBLA_OK ? 0 : -1;
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test_teardown(any_threads_of_a_host_do, forget_host),
        cmocka_unit_test_teardown(the_rounding_of_a_host_changes_no_bit, forget_host),
        cmocka_unit_test(the_rounding_of_the_caller_holds_in_all_threads),
        cmocka_unit_test_teardown(a_failure_with_a_lower_index_counts_even_if_it_comes_later,
                                  forget_host),
        cmocka_unit_test_teardown(a_host_gets_no_more_parts_than_its_threads, forget_host),
        cmocka_unit_test_teardown(a_host_that_drops_or_repeats_a_part_is_an_error, forget_host),
        cmocka_unit_test_teardown(a_host_that_returns_early_is_an_error, forget_host),
        cmocka_unit_test_teardown(the_host_cannot_change_during_a_call, forget_host),
        cmocka_unit_test_teardown(the_host_may_change_between_calls_of_another_thread, forget_host),
        cmocka_unit_test(a_wrong_number_of_threads_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
