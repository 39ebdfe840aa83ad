/* SPDX-License-Identifier: Apache-2.0 */
/* Threads that the system refuses: the pool works with fewer, and the results are the same. Each
 * case is a process of its own, because a limit cannot be raised again.
 */
#include "check.h"

#include <pthread.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "base/thread_pool.h"

enum { WANTED = 8, USER = 54321, DIM = 64, ROWS = 512, TOKENS = 65536, SKIPPED = 77 };

static void *do_nothing(void *nothing)
{
    return nothing;
}

/* Whether the limit is enforced: a process with privileges may ignore it. */
static bool is_limited(void)
{
    pthread_t threads[WANTED];
    int count = 0;
    while (count < WANTED && pthread_create(&threads[count], NULL, do_nothing, NULL) == 0)
        (void)pthread_join(threads[count++], NULL);
    return count < WANTED;
}

/* At most `most` processes and threads of this user, this one included. Root becomes a user who
 * has no others. */
static bool limit_threads(rlim_t most)
{
    const struct rlimit limit = {most, most};
    if (geteuid() == 0 && setuid(USER) != 0) return false;
    return setrlimit(RLIMIT_NPROC, &limit) == 0;
}

/* Looks up many rows with more threads than there can be. */
static bool lookup_is_right(void)
{
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 1);
    int32_t *tokens = malloc(TOKENS * sizeof *tokens);
    float *out = malloc((size_t)TOKENS * DIM * sizeof *out), *one = malloc(DIM * sizeof *one);
    const embla_lookup_options options = {.threads = WANTED};
    bool right = table && tokens && out && one;
    for (int i = 0; right && i < TOKENS; i++) tokens[i] = (i * 7) % ROWS;
    right = right && embla_lookup(table, tokens, TOKENS, &options, out) == EMBLA_OK;
    for (int i = 0; right && i < TOKENS; i++)
        right = embla_lookup(table, &tokens[i], 1, NULL, one) == EMBLA_OK &&
                memcmp(one, out + (size_t)i * DIM, DIM * sizeof *one) == 0;
    embla_table_free(table);
    free(tokens);
    free(out);
    free(one);
    return right;
}

static int run_limited(rlim_t most)
{
    if (!limit_threads(most)) return SKIPPED;
    if (most == 1 && is_limited() == false) return SKIPPED;
    if (!lookup_is_right()) return 2;
    int helpers = embla_pool_threads(); /* beside this one */
    if (most == 1 && helpers > 0) return 3;
    return geteuid() == USER && helpers >= (int)most ? 4 : 0;
}

/* Nothing may ask for threads before this: a forked child then uses one thread alone. */
static void refused_threads_are_done_without(void **state)
{
    static const rlim_t limits[] = {1, 2, 3, 5};
    (void)state;
    for (int turn = 0; turn < 40; turn++) {
        int status = -1;
        pid_t child = fork();
        assert_true(child >= 0);
        if (child == 0) _exit(run_limited(limits[turn % (int)COUNT_OF(limits)]));
        assert_int_equal(waitpid(child, &status, 0), child);
        if (WIFEXITED(status) && WEXITSTATUS(status) == SKIPPED) {
            print_message("this process may ignore a limit of threads: skipped\n");
            skip();
        }
        assert_int_equal(status, 0);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {cmocka_unit_test(refused_threads_are_done_without)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
