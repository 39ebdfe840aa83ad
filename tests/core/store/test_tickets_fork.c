/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets and fork: whatever a child does with the tickets that it has from its parent is refused
 * with a sentence, never waits, and takes nothing from the parent, whose tickets then end as if
 * there were no child. With every placement and every reader.
 */
#include "check.h"

#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/wait.h>
#include <unistd.h>

#include "store_tables.h"

enum { ROWS = 6000, TICKETS = 12, EACH = 400, PATIENCE = 60 };

static const embla_store_options kinds[] = {
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_IO_URING, .depth = 5},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_IO_URING},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_PREAD, .depth = 3},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_BUFFERED, .depth = 3},
    {.placement = EMBLA_PLACEMENT_RAM},
    {.placement = EMBLA_PLACEMENT_MAPPED},
    {.placement = EMBLA_PLACEMENT_READ},
    {.placement = EMBLA_PLACEMENT_SHARED},
};

/* Tickets under way: plain ones, some with a flag, or all with an eventfd. */
typedef struct {
    table t;
    embla_store *store;
    embla_tickets *tickets;
    bool flags;
    int64_t rows[TICKETS][EACH];
    unsigned char *out[TICKETS];
    embla_ticket ids[TICKETS];
    uint64_t ended[TICKETS];
} job;

static const embla_store_lookup_options raw = {.raw = true};

static embla_ticket_request request(job *j, size_t i)
{
    return (embla_ticket_request){.rows = j->rows[i],
                                  .count = EACH,
                                  .lookup = &raw,
                                  .out = j->out[i],
                                  .flag = j->flags && i % 2 ? &j->ended[i] : NULL,
                                  .value = i + 1};
}

/* Returns false if the system does not have this reader. */
static bool begin(job *j, const embla_store_options *kind, bool flags, bool event)
{
    embla_store_options options = *kind;
    bool hot = kind->placement == EMBLA_PLACEMENT_DIRECT;
    const embla_tickets_options how = {.event = event, .hot_bytes = hot ? 1 << 16 : 0};
    uint64_t seed = 9;
    memset(j, 0, sizeof *j);
    j->flags = flags;
    make(&j->t, 2, ROWS);
    options.shared_folder = j->t.s.folder;
    embla_status status =
        embla_store_open_extents(&j->t.format, j->t.extents, j->t.count, &options, &j->store);
    if (status == EMBLA_ERR_UNSUPPORTED) {
        print_message("not on this system: %s\n", embla_error());
        finish(&j->t);
        return false;
    }
    assert_ok(status);
    assert_ok(embla_tickets_new(j->store, &how, &j->tickets));
    for (size_t i = 0; i < TICKETS; i++) {
        j->out[i] = calloc(EACH, j->t.row_bytes);
        assert_non_null(j->out[i]);
        for (size_t k = 0; k < EACH; k++) j->rows[i][k] = (int64_t)check_below(&seed, ROWS);
    }
    return true;
}

static void submit_all(job *j)
{
    for (size_t i = 0; i < TICKETS; i++) {
        const embla_ticket_request q = request(j, i);
        assert_ok(embla_ticket_submit(j->tickets, &q, &j->ids[i]));
    }
}

/* The parent: all tickets end, with their rows. */
static void wait_all(job *j)
{
    for (size_t i = 0; i < TICKETS; i++) {
        assert_ok(embla_ticket_wait(j->tickets, j->ids[i]));
        if (j->flags && i % 2) assert_int_equal(j->ended[i], i + 1);
        for (size_t k = 0; k < EACH; k++)
            assert_memory_equal(j->out[i] + k * j->t.row_bytes,
                                j->t.truth + (size_t)j->rows[i][k] * j->t.row_bytes,
                                j->t.row_bytes);
    }
}

static void end(job *j)
{
    embla_tickets_free(j->tickets);
    embla_store_free(j->store);
    for (size_t i = 0; i < TICKETS; i++) free(j->out[i]);
    finish(&j->t);
}

/* ---- a child ---- */

static bool refuses(embla_status status)
{
    return status == EMBLA_ERR_UNSUPPORTED && strstr(embla_error(), "was forked from it");
}

/* Every call, in a child. Returns the number of the first that is not refused, 0 if all are. */
static int try_all(job *j, bool frees)
{
    embla_ticket other = 0;
    embla_tickets_info stats;
    embla_swap *swap = NULL;
    bool done = false;
    embla_ticket_request q = request(j, 0);
    q.flag = NULL;
    for (size_t i = 0; i < TICKETS; i++) {
        if (!refuses(embla_ticket_done(j->tickets, j->ids[i], &done)) || done) return 1;
        if (!refuses(embla_ticket_wait(j->tickets, j->ids[i]))) return 2;
        if (!refuses(embla_ticket_cancel(j->tickets, j->ids[i]))) return 3;
    }
    if (!refuses(embla_ticket_submit(j->tickets, &q, &other)) || other != 0) return 4;
    if (!refuses(embla_tickets_prefetch(j->tickets, &q))) return 5;
    if (!refuses(embla_tickets_describe(j->tickets, &stats))) return 6;
    if (embla_tickets_event(j->tickets) != -1) return 7;
    if (!refuses(embla_swap_new(j->store, j->tickets, &swap)) || swap) return 8;
    if (!frees) return 0;
    embla_tickets_free(j->tickets);
    embla_store_free(j->store);
    return 0;
}

/* Forks a child that makes every call. What it does not survive, or waits for, is a failure. */
static void fork_one(job *j, bool frees)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)signal(SIGALRM, SIG_DFL);
        (void)alarm(PATIENCE / 2);
        _exit(try_all(j, frees));
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_false(WIFSIGNALED(status)); /* SIGALRM: it waited */
    assert_int_equal(WEXITSTATUS(status), 0);
}

static void a_child_is_refused_and_the_parent_completes(void **state)
{
    size_t tried = 0;
    (void)state;
    for (size_t kind = 0; kind < COUNT_OF(kinds); kind++)
        for (int way = 0; way < 3; way++) { /* plain, with flags, with an eventfd */
            job j;
            if (!begin(&j, &kinds[kind], way == 1, way == 2)) break;
            for (int round = 0; round < 2; round++) {
                (void)alarm(PATIENCE);
                submit_all(&j);
                fork_one(&j, round == 1);
                wait_all(&j);
                tried++;
            }
            (void)alarm(0);
            end(&j);
        }
    assert_true(tried >= 6 * 3 * 2); /* a system may lack io_uring */
}

/* ---- a fork while other threads use the tickets ---- */

static atomic_bool stop;

static void *use_tickets(void *context)
{
    job *j = context;
    while (!atomic_load(&stop)) {
        embla_tickets_info stats;
        assert_ok(embla_tickets_describe(j->tickets, &stats));
    }
    return NULL;
}

/* The child then has a lock that nobody will ever release. */
static void a_child_waits_for_no_lock(void **state)
{
    pthread_t threads[3];
    job j;
    (void)state;
    assert_true(begin(&j, &kinds[2], false, false));
    atomic_store(&stop, false);
    (void)alarm(PATIENCE);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_create(&threads[i], NULL, use_tickets, &j), 0);
    for (int round = 0; round < 30; round++) {
        submit_all(&j);
        fork_one(&j, true);
        wait_all(&j);
    }
    atomic_store(&stop, true);
    for (size_t i = 0; i < COUNT_OF(threads); i++)
        assert_int_equal(pthread_join(threads[i], NULL), 0);
    (void)alarm(0);
    end(&j);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_child_is_refused_and_the_parent_completes),
        cmocka_unit_test(a_child_waits_for_no_lock),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
