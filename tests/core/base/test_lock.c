/* SPDX-License-Identifier: Apache-2.0 */
/* The locks of base/lock.h under many threads, and the kinds of failures that a test can inject:
 * starts of threads and loads of libraries. */
#include "base/lock.h"

#include "base/injected.h"
#include "base/load.h"
#include "base/thread_system.h"
#include "check.h"

enum { THREADS = 4, TURNS = 20000 };

static embla_lock lock;
static embla_condition turned;
static embla_once once;
static int64_t sum; /* protected by the lock */
static int turn;    /* protected by the lock: whose turn it is */
static atomic_int times;

static void run_all(void *(*run)(void *), size_t count)
{
    embla_thread threads[THREADS];
    for (size_t i = 0; i < count; i++)
        assert_true(embla_worked(embla_thread_start(run, (void *)(uintptr_t)i, &threads[i])));
    for (size_t i = 0; i < count; i++) embla_system_join(threads[i]);
}

static void *add_turns(void *argument)
{
    for (int i = 0; i < TURNS; i++) {
        if (i % 8 != 0 || !embla_lock_try(&lock)) embla_lock_take(&lock);
        sum++;
        embla_lock_give(&lock);
    }
    return argument;
}

static void one_thread_at_a_time_has_a_lock(void **state)
{
    (void)state;
    run_all(add_turns, THREADS);
    assert_int_equal(sum, THREADS * TURNS);
    assert_true(embla_lock_try(&lock));
    assert_false(embla_lock_try(&lock));
    embla_lock_give(&lock);
}

/* Each thread waits for its turn, and gives it to the next. */
static void *take_turns(void *argument)
{
    int mine = (int)(uintptr_t)argument;
    for (int i = 0; i < TURNS / 20; i++) {
        embla_lock_take(&lock);
        while (turn % THREADS != mine) embla_condition_wait(&turned, &lock);
        turn++;
        if (i % 2 == 0)
            embla_condition_signal_all(&turned);
        else /* of several that wait, one must be woken for each that is wrong */
            for (int k = 0; k < THREADS; k++) embla_condition_signal(&turned);
        embla_lock_give(&lock);
    }
    return argument;
}

static void no_signal_of_a_condition_is_lost(void **state)
{
    (void)state;
    run_all(take_turns, THREADS);
    assert_int_equal(turn, THREADS * (TURNS / 20));
    assert_int_equal(atomic_load(&turned.waiting), 0);
}

static void count_once(void)
{
    embla_system_sleep(2000000); /* the others arrive meanwhile */
    atomic_fetch_add(&times, 1);
}

static void *do_once(void *argument)
{
    embla_once_run(&once, count_once);
    assert_int_equal(atomic_load(&times), 1); /* it is done, not only begun */
    return argument;
}

static void what_is_done_once_is_done_before_anyone_goes_on(void **state)
{
    (void)state;
    run_all(do_once, THREADS);
    assert_int_equal(atomic_load(&times), 1);
}

static void the_start_of_a_thread_can_fail(void **state)
{
    embla_thread threads[3];
    (void)state;
    embla_inject(EMBLA_INJECT_THREAD, 2, false, EMBLA_SYSTEM_NO_MEMORY);
    assert_true(embla_worked(embla_thread_start(do_once, NULL, &threads[0])));
    assert_false(embla_worked(embla_thread_start(do_once, NULL, &threads[1])));
    assert_true(embla_worked(embla_thread_start(do_once, NULL, &threads[2])));
    embla_system_join(threads[0]);
    embla_system_join(threads[2]);
}

static void the_load_of_a_library_can_fail(void **state)
{
    char why[128] = "";
    (void)state;
    assert_non_null(embla_load(NULL, EMBLA_LOAD_OWN, why, sizeof why));
    embla_inject(EMBLA_INJECT_LOAD, 1, true, EMBLA_SYSTEM_NO_MEMORY);
    for (int i = 0; i < 2; i++) assert_null(embla_load(NULL, EMBLA_LOAD_OWN, why, sizeof why));
    assert_string_equal(why, "the program: Cannot allocate memory");
    embla_inject(EMBLA_INJECT_LOAD, 0, false, EMBLA_SYSTEM_OK);
    assert_non_null(embla_load(NULL, EMBLA_LOAD_OWN, why, sizeof why));
    assert_null(embla_load("no such library", EMBLA_LOAD_OWN, why, sizeof why));
    assert_non_null(strstr(why, "no such library"));
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(one_thread_at_a_time_has_a_lock),
        cmocka_unit_test(no_signal_of_a_condition_is_lost),
        cmocka_unit_test(what_is_done_once_is_done_before_anyone_goes_on),
        cmocka_unit_test(the_start_of_a_thread_can_fail),
        cmocka_unit_test(the_load_of_a_library_can_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
