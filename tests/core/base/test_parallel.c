/* SPDX-License-Identifier: Apache-2.0 */
/* Loops shared over our own threads: each index once, slots of their own, the failure with the
 * lowest index; forks, limits, and threads that sleep.
 *
 * Cases that need a process in which the pool has not begun come first, and fork.
 */
#include "check.h"

#include <pthread.h>
#include <sched.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/clock.h"
#include "base/cpus.h"
#include "base/parallel.h"
#include "base/thread_pool.h"
#include "scratch.h"
#include "share_trial.h"
#include "slow.h"
#include "system/linux_quota.h"

enum { SKIPPED = 77, USER = 54321 };

/* A process with threads cannot fork under ThreadSanitizer and be watched. */
#if defined(__SANITIZE_THREAD__) || FEATURE(thread_sanitizer)
enum { CAN_FORK = 0 };
#else
enum { CAN_FORK = 1 };
#endif

static void check_many_shapes(void)
{
    static const int parts[] = {0, 1, 2, 3, 8, 31};
    static const size_t counts[] = {0, 1, 2, 3, 7, 31, 32, 33, 1000, COUNT_MOST};
    static const size_t grains[] = {0, 1, 2, 7, 64, COUNT_MOST, SIZE_MAX};
    for (size_t p = 0; p < COUNT_OF(parts); p++)
        for (size_t c = 0; c < COUNT_OF(counts); c++)
            for (size_t g = 0; g < COUNT_OF(grains); g++)
                if (!share_is_right(&shared_trial, parts[p], counts[c], grains[g]))
                    fail_msg("%d parts, %zu indices, grain %zu: %s", parts[p], counts[c], grains[g],
                             embla_error());
}

/* ---- processes of their own ---- */

static int status_of(pid_t child)
{
    int status = -1;
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    if (WIFSIGNALED(status)) fail_msg("the child ended by signal %d", WTERMSIG(status));
    return WEXITSTATUS(status);
}

/* Runs f in a child, which ends after a minute at the latest. */
static int run_child(int (*f)(void))
{
    pid_t child = fork();
    if (child == 0) {
        (void)alarm(60);
        _exit(f());
    }
    return status_of(child);
}

static int on_one_cpu(void)
{
    cpu_set_t all, one;
    CPU_ZERO(&one);
    if (sched_getaffinity(0, sizeof all, &all) != 0) return SKIPPED;
    for (size_t cpu = 0; cpu < CPU_SETSIZE && CPU_COUNT(&one) == 0; cpu++)
        if (CPU_ISSET(cpu, &all)) CPU_SET(cpu, &one);
    if (sched_setaffinity(0, sizeof one, &one) != 0) return SKIPPED;
    if (unsetenv("OMP_NUM_THREADS") != 0) return SKIPPED;
    return embla_cpus() == 1 && embla_default_threads() == 1 ? 0 : 1;
}

static int with_omp_num_threads(void)
{
    if (setenv("OMP_NUM_THREADS", " 3,2", 1) != 0) return SKIPPED;
    return embla_default_threads() == 3 ? 0 : 1;
}

static int with_no_number(void)
{
    if (setenv("OMP_NUM_THREADS", "many", 1) != 0) return SKIPPED;
    return embla_default_threads() == embla_cpus() ? 0 : 1;
}

static void the_number_of_threads_follows_cpus_and_environment(void **state)
{
    (void)state;
    if (!CAN_FORK) skip_because("no fork under ThreadSanitizer: skipped");
    int one = run_child(on_one_cpu);
    assert_int_equal(run_child(with_omp_num_threads), 0);
    assert_int_equal(run_child(with_no_number), 0);
    if (one == SKIPPED) skip_because("the CPUs of a process cannot be chosen: skipped");
    assert_int_equal(one, 0);
}

static int limited(rlim_t most)
{
    const struct rlimit limit = {most, most};
    if (geteuid() == 0 && setuid(USER) != 0) return SKIPPED;
    if (setrlimit(RLIMIT_NPROC, &limit) != 0) return SKIPPED;
    for (int turn = 0; turn < 20; turn++)
        if (!share_is_right(&shared_trial, 8, 1000, turn % 2 ? 1 : 0)) return 1;
    int threads = embla_pool_threads();
    if (threads > 7) return 2;
    if (most == 1 && threads > 0) return SKIPPED; /* this process may ignore the limit */
    return geteuid() == USER && threads > (int)most - 1 ? 3 : 0;
}

static int limited_to_1(void)
{
    return limited(1);
}

static int limited_to_3(void)
{
    return limited(3);
}

static void refused_threads_are_done_without(void **state)
{
    (void)state;
    if (!CAN_FORK) skip_because("no fork under ThreadSanitizer: skipped");
    int alone = run_child(limited_to_1), few = run_child(limited_to_3);
    if (alone == SKIPPED || few == SKIPPED)
        skip_because("this process may ignore a limit of threads: skipped");
    assert_int_equal(alone, 0);
    assert_int_equal(few, 0);
}

/* ---- the quota of a control group ---- */

static void put(scratch *s, const char *name, const char *text)
{
    FILE *file = fopen(scratch_path(s, name), "w");
    assert_non_null(file);
    assert_true(fputs(text, file) >= 0);
    assert_int_equal(fclose(file), 0);
}

static int quota(scratch *s, const char *groups)
{
    char proc[SCRATCH_PATH];
    put(s, "cgroup", groups);
    (void)snprintf(proc, sizeof proc, "%s", scratch_path(s, "cgroup"));
    return embla_linux_quota(proc, s->folder);
}

static void make_folders(scratch *s)
{
    static const char *const names[] = {"a", "a/b", "cpu", "cpu/job"};
    scratch_new(s);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        assert_int_equal(mkdir(scratch_path(s, names[i]), 0700), 0);
}

static void remove_folders(scratch *s)
{
    static const char *const names[] = {"a/b/cpu.max",
                                        "a/cpu.max",
                                        "cpu.max",
                                        "cgroup",
                                        "cpu/job/cpu.cfs_quota_us",
                                        "cpu/job/cpu.cfs_period_us"};
    static const char *const folders[] = {"a/b", "a", "cpu/job", "cpu", ""};
    for (size_t i = 0; i < COUNT_OF(names); i++) (void)unlink(scratch_path(s, names[i]));
    for (size_t i = 0; i < COUNT_OF(folders); i++)
        assert_int_equal(rmdir(scratch_path(s, folders[i])), 0);
}

static void quotas_of_control_groups_are_rounded_up(void **state)
{
    scratch s;
    (void)state;
    make_folders(&s);
    assert_int_equal(embla_linux_quota("/nowhere", s.folder), 0);
    assert_int_equal(quota(&s, "0::/a/b\n"), 0);
    put(&s, "a/b/cpu.max", "max 100000\n");
    assert_int_equal(quota(&s, "0::/a/b\n"), 0);
    put(&s, "a/b/cpu.max", "150000 100000\n");
    assert_int_equal(quota(&s, "0::/a/b\n"), 2);
    put(&s, "a/cpu.max", "50000 100000\n"); /* the group above has less */
    assert_int_equal(quota(&s, "0::/a/b\n"), 1);
    assert_int_equal(quota(&s, "0::/not/here\n"), 0);
    put(&s, "cpu.max", "400000 100000\n"); /* the container's own group, under another path */
    assert_int_equal(quota(&s, "0::/not/here\n"), 4);
    assert_int_equal(quota(&s, "0::/\n"), 4);
    put(&s, "cpu/job/cpu.cfs_quota_us", "-1\n");
    put(&s, "cpu/job/cpu.cfs_period_us", "100000\n");
    assert_int_equal(quota(&s, "5:memory:/a\n4:cpuacct,cpu:/job\n"), 0);
    put(&s, "cpu/job/cpu.cfs_quota_us", "250001\n");
    assert_int_equal(quota(&s, "5:memory:/a\n4:cpuacct,cpu:/job\n"), 3);
    assert_int_equal(quota(&s, "4:cpuacct:/job\nnonsense\n"), 0);
    remove_folders(&s);
}

/* ---- our own pool ---- */

static void every_index_is_done_once(void **state)
{
    (void)state;
    check_many_shapes();
}

static embla_status note_range(void *job, size_t first, size_t end, size_t slot)
{
    size_t *starts = job;
    if (end != first + 1 || slot != first) return embla_fail(EMBLA_ERR_SHAPE, "not its own index");
    starts[slot]++;
    return EMBLA_OK;
}

static void as_many_indices_as_parts_give_each_part_its_own(void **state)
{
    (void)state;
    for (int turn = 0; turn < 200; turn++) {
        size_t counts[7] = {0};
        assert_ok(embla_share(7, 7, 0, note_range, counts));
        for (size_t i = 0; i < 7; i++) assert_int_equal(counts[i], 1);
    }
}

/* Repeats a slow loop until other threads have helped: on a busy machine they may come late. */
static void share_with_help(trial *t)
{
    int64_t end = embla_clock_ns() + 30 * (int64_t)1000000000;
    do {
        assert_true(share_is_right(t, 4, 1, 0));
        trial_new(t, 4);
        t->slow = true;
        assert_ok(embla_share(4, 100, 1, try_range, t));
        assert_true(each_once(t, 100));
    } while (atomic_load(&t->helped) == 0 && embla_clock_ns() < end);
    assert_true(atomic_load(&t->helped) > 0);
}

static void other_threads_help(void **state)
{
    (void)state;
    share_with_help(&shared_trial);
    assert_true(embla_pool_threads() >= 1);
}

static embla_status check_mask(void *job, size_t first, size_t end, size_t slot)
{
    atomic_size_t *seen = job;
    sigset_t mask;
    (void)first, (void)end, (void)slot;
    wait_us(100);
    if (embla_share_is_caller()) return EMBLA_OK;
    if (pthread_sigmask(SIG_BLOCK, NULL, &mask) != 0 || sigismember(&mask, SIGTERM) != 1 ||
        sigismember(&mask, SIGPROF) != 1 || sigismember(&mask, SIGBUS) != 0)
        return embla_fail(EMBLA_ERR_SHAPE, "another mask");
    atomic_fetch_add(seen, 1);
    return EMBLA_OK;
}

static void threads_of_the_pool_take_no_signals(void **state)
{
    atomic_size_t seen = 0;
    sigset_t before, after;
    int64_t end = embla_clock_ns() + 30 * (int64_t)1000000000;
    (void)state;
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &before), 0);
    while (atomic_load(&seen) == 0 && embla_clock_ns() < end)
        assert_ok(embla_share(4, 100, 1, check_mask, &seen));
    assert_true(atomic_load(&seen) > 0);
    assert_int_equal(pthread_sigmask(SIG_BLOCK, NULL, &after), 0);
    assert_int_equal(sigismember(&before, SIGTERM), sigismember(&after, SIGTERM));
}

/* A helper begins, and works for longer than the caller polls. */
static embla_status help_slowly(void *job, size_t first, size_t end, size_t slot)
{
    const struct timespec longer = {0, 10 * 1000 * 1000};
    atomic_size_t *begun = job;
    int64_t limit = embla_clock_ns() + 1000 * 1000 * (int64_t)1000;
    (void)first, (void)end, (void)slot;
    if (embla_share_is_caller()) {
        while (atomic_load(begun) == 0 && embla_clock_ns() < limit) wait_us(10);
        return EMBLA_OK;
    }
    atomic_fetch_add(begun, 1);
    (void)nanosleep(&longer, NULL);
    return EMBLA_OK;
}

static void a_caller_that_sleeps_is_woken_by_the_last_helper(void **state)
{
    int64_t end = embla_clock_ns() + 30 * (int64_t)1000000000;
    size_t helped = 0;
    (void)state;
    (void)alarm(60); /* a caller that nobody wakes sleeps for ever */
    while (helped < 5 && embla_clock_ns() < end) {
        atomic_size_t begun = 0;
        assert_ok(embla_share(2, 2, 1, help_slowly, &begun));
        helped += atomic_load(&begun);
    }
    (void)alarm(0);
    assert_true(helped > 0);
}

static void count_help(void *call, size_t index)
{
    atomic_size_t *calls = call;
    atomic_fetch_add(&calls[index == EMBLA_POOL_THREAD], 1);
}

static void a_place_is_open_to_its_own_threads_alone(void **state)
{
    (void)state;
    atomic_size_t calls[2] = {0};
    embla_place *place = embla_place_open(count_help, calls, true);
    assert_non_null(place);
    assert_false(embla_place_help(place, EMBLA_POOL_THREAD));
    assert_true(embla_place_help(place, 3));
    assert_int_equal(embla_place_close(place), EMBLA_PLACE_EMPTY);
    assert_false(embla_place_help(place, 3)); /* closed */
    assert_int_equal(atomic_load(&calls[0]), 1);
    assert_int_equal(atomic_load(&calls[1]), 0);
    place = embla_place_open(count_help, calls, false);
    assert_non_null(place);
    assert_false(embla_place_help(place, 3));
    assert_true(embla_place_help(place, EMBLA_POOL_THREAD));
    (void)embla_place_close(place); /* a thread of the pool may have looked in */
    assert_int_equal(atomic_load(&calls[0]), 1);
}

/* Helper 0 stays inside until helper 1 is refused. */
typedef struct {
    embla_place *place;
    atomic_int inside, refused;
} stay;

static void stay_inside(void *call, size_t index)
{
    stay *s = call;
    int64_t end = embla_clock_ns() + 10 * (int64_t)1000000000;
    if (index != 0) return;
    atomic_store(&s->inside, 1);
    while (atomic_load(&s->refused) == 0 && embla_clock_ns() < end) wait_us(10);
}

static void *help_once(void *with)
{
    stay *s = with;
    (void)embla_place_help(s->place, 0);
    return NULL;
}

/* The place is closed while helper 0 is inside; then nobody may enter any more. */
static void *help_until_refused(void *with)
{
    stay *s = with;
    int64_t end = embla_clock_ns() + 5 * (int64_t)1000000000;
    bool entered = true;
    while (entered && embla_clock_ns() < end) entered = embla_place_help(s->place, 1);
    if (!entered) atomic_store(&s->refused, 1);
    return NULL;
}

static void nobody_enters_a_place_that_is_being_closed(void **state)
{
    stay s = {0};
    pthread_t first, second;
    (void)state;
    s.place = embla_place_open(stay_inside, &s, true);
    assert_non_null(s.place);
    assert_int_equal(pthread_create(&first, NULL, help_once, &s), 0);
    while (atomic_load(&s.inside) == 0) wait_us(10);
    assert_int_equal(pthread_create(&second, NULL, help_until_refused, &s), 0);
    assert_int_equal(embla_place_close(s.place), EMBLA_PLACE_WAITED);
    assert_int_equal(pthread_join(first, NULL), 0);
    assert_int_equal(pthread_join(second, NULL), 0);
    assert_int_equal(atomic_load(&s.refused), 1);
}

typedef struct {
    atomic_size_t inner, wrong;
} nest;

static embla_status inner_range(void *job, size_t first, size_t end, size_t slot)
{
    nest *n = job;
    if (first != 0 || end != 10 || slot != 0) atomic_fetch_add(&n->wrong, 1);
    atomic_fetch_add(&n->inner, 1);
    return EMBLA_OK;
}

static embla_status outer_range(void *job, size_t first, size_t end, size_t slot)
{
    nest *n = job;
    (void)slot;
    if (embla_default_threads() != 1 || embla_share_width() != 4) atomic_fetch_add(&n->wrong, 1);
    for (size_t i = first; i < end; i++) EMBLA_TRY(embla_share(4, 10, 1, inner_range, n));
    return EMBLA_OK;
}

static void a_loop_in_a_loop_stays_on_its_thread(void **state)
{
    (void)state;
    for (size_t turn = 0; turn < 100; turn++) {
        nest n = {0};
        assert_ok(embla_share(4, 40, turn % 2, outer_range, &n));
        assert_int_equal(atomic_load(&n.inner), 40);
        assert_int_equal(atomic_load(&n.wrong), 0);
        assert_int_equal(embla_share_width(), 1);
        assert_true(embla_share_is_caller());
    }
}

enum { CALLERS = 8 };

static void *call_often(void *seed_of)
{
    uint64_t seed = *(const uint64_t *)seed_of;
    trial *t = malloc(sizeof *t);
    bool right = t != NULL;
    for (int turn = 0; right && turn < steps_of(1000); turn++) {
        size_t count = 1 + (size_t)check_below(&seed, 500), grain = (size_t)check_below(&seed, 4);
        right = share_is_right(t, 1 + (int)check_below(&seed, 6), count, grain);
    }
    free(t);
    return right ? NULL : seed_of;
}

static void many_threads_call_at_once(void **state)
{
    pthread_t threads[CALLERS];
    uint64_t seeds[CALLERS];
    (void)state;
    for (size_t i = 0; i < CALLERS; i++) {
        seeds[i] = i + 1;
        assert_int_equal(pthread_create(&threads[i], NULL, call_often, &seeds[i]), 0);
    }
    for (size_t i = 0; i < CALLERS; i++) {
        void *wrong = NULL;
        assert_int_equal(pthread_join(threads[i], &wrong), 0);
        assert_null(wrong);
    }
}

static void the_failure_with_the_lowest_index_is_returned(void **state)
{
    static const int parts[] = {1, 2, 3, 8};
    (void)state;
    for (int turn = 0; turn < steps_of(400); turn++) {
        trial *t = &shared_trial;
        int p = parts[turn % 4];
        trial_new(t, (size_t)p);
        t->fail_from = 300;
        assert_status(embla_share(p, 1000, (size_t)(turn / 4 % 3), try_range, t), EMBLA_ERR_RANGE);
        assert_string_equal(embla_error(), "index 301 fails");
        assert_true(each_once(t, 302)); /* what comes before is done */
    }
}

static double cpu_seconds(void)
{
    struct rusage used;
    assert_int_equal(getrusage(RUSAGE_SELF, &used), 0);
    return (double)(used.ru_utime.tv_sec + used.ru_stime.tv_sec) +
           1e-6 * (double)(used.ru_utime.tv_usec + used.ru_stime.tv_usec);
}

/* CPU time of this process: other processes do not count in it. */
static void threads_without_work_sleep(void **state)
{
    const struct timespec second = {1, 0};
    (void)state;
    for (int turn = 0; turn < 1000; turn++)
        assert_true(share_is_right(&shared_trial, 4, 200, (size_t)(turn % 2)));
    share_with_help(&shared_trial); /* a thread polls after useful work only */
    double before = cpu_seconds();
    (void)nanosleep(&second, NULL);
    double used = cpu_seconds() - before;
    if (used >= (SLOW_BUILD ? 0.05 : 0.001)) /* a sanitizer has a thread of its own */
        fail_msg("%.6f s of CPU time in a second without work", used);
}

/* ---- forks ---- */

static int work_in_child(void)
{
    for (size_t turn = 0; turn < 20; turn++) {
        if (!share_is_right(&shared_trial, 4, 100, turn % 2)) return 1;
        if (atomic_load(&shared_trial.helped) > 0) return 2;
    }
    if (embla_default_threads() != 1) return 3;
    return embla_set_parallel(NULL, NULL, 2) == EMBLA_ERR_UNSUPPORTED ? 0 : 4;
}

static void a_forked_child_works_alone(void **state)
{
    (void)state;
    if (!CAN_FORK) skip_because("no fork under ThreadSanitizer: skipped");
    share_with_help(&shared_trial);
    assert_int_equal(run_child(work_in_child), 0);
    assert_true(share_is_right(&shared_trial, 4, 1000, 1));
    pid_t child = fork(); /* one that ends by exit() */
    if (child == 0) {
        (void)alarm(60);
        exit(work_in_child());
    }
    assert_int_equal(status_of(child), 0);
}

static void *call_until(void *stop)
{
    trial *t = malloc(sizeof *t);
    bool right = t != NULL;
    while (right && !atomic_load((atomic_bool *)stop)) right = share_is_right(t, 4, 300, 1);
    free(t);
    return right ? NULL : stop;
}

static void a_child_forked_during_a_loop_works_alone(void **state)
{
    pthread_t thread;
    atomic_bool stop = false;
    void *wrong = NULL;
    (void)state;
    if (!CAN_FORK) skip_because("no fork under ThreadSanitizer: skipped");
    assert_int_equal(pthread_create(&thread, NULL, call_until, &stop), 0);
    for (int turn = 0; turn < steps_of(50); turn++) assert_int_equal(run_child(work_in_child), 0);
    atomic_store(&stop, true);
    assert_int_equal(pthread_join(thread, &wrong), 0);
    assert_null(wrong);
}

/* The calling thread forks in a body while others are inside. The child must not wait for them. */
static embla_status fork_range(void *job, size_t first, size_t end, size_t slot)
{
    pid_t *child = job;
    (void)first, (void)end, (void)slot;
    wait_us(500);
    if (embla_share_is_caller() && *child < 0) {
        *child = fork();
        if (*child == 0) (void)alarm(60);
    }
    return EMBLA_OK;
}

static void a_child_forked_inside_a_loop_does_not_hang(void **state)
{
    (void)state;
    if (!CAN_FORK) skip_because("no fork under ThreadSanitizer: skipped");
    int forked = 0;
    for (int turn = 0; turn < 100 && forked < 20; turn++) {
        pid_t child = -1;
        embla_status status = embla_share(4, 40, 1, fork_range, &child);
        if (child == 0) _exit(status == EMBLA_OK || status == EMBLA_ERR_UNSUPPORTED ? 0 : 1);
        assert_ok(status);
        if (child < 0) continue; /* others were faster than the calling thread */
        assert_int_equal(status_of(child), 0);
        forked++;
    }
    assert_true(forked > 0);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_number_of_threads_follows_cpus_and_environment),
        cmocka_unit_test(refused_threads_are_done_without),
        cmocka_unit_test(quotas_of_control_groups_are_rounded_up),
        cmocka_unit_test(every_index_is_done_once),
        cmocka_unit_test(as_many_indices_as_parts_give_each_part_its_own),
        cmocka_unit_test(other_threads_help),
        cmocka_unit_test(threads_of_the_pool_take_no_signals),
        cmocka_unit_test(a_caller_that_sleeps_is_woken_by_the_last_helper),
        cmocka_unit_test(a_place_is_open_to_its_own_threads_alone),
        cmocka_unit_test(nobody_enters_a_place_that_is_being_closed),
        cmocka_unit_test(a_loop_in_a_loop_stays_on_its_thread),
        cmocka_unit_test(many_threads_call_at_once),
        cmocka_unit_test(the_failure_with_the_lowest_index_is_returned),
        cmocka_unit_test(threads_without_work_sleep),
        cmocka_unit_test(a_forked_child_works_alone),
        cmocka_unit_test(a_child_forked_during_a_loop_works_alone),
        cmocka_unit_test(a_child_forked_inside_a_loop_does_not_hang),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
