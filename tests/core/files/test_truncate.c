/* SPDX-License-Identifier: Apache-2.0 */
/* Files that change under a table that is open (rule C11).
 *
 * The system gives a signal to whoever reads a page that a shortened file no longer has.
 * Without the guard every lookup asks for the size first; with it a file may be cut at any
 * moment, also in the middle of a lookup: the process lives, and the call says EMBLA_ERR_IO.
 * What can end the process is tried in a child.
 */
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <time.h>

#include "convert_files.h"
#include "files/map.h"

enum { ROWS = 8192, DIM = 256, HEADER = 4096, BATCH = 2048 };

/* A table of zeros, 8 MB, that takes no space on the disk. */
static void sparse_table(const char *path)
{
    char header[HEADER];
    memset(header, ' ', sizeof header);
    memset(header, 0, 8);
    header[0] = (char)((HEADER - 8) & 255);
    header[1] = (char)((HEADER - 8) >> 8);
    int n = snprintf(header + 8, sizeof header - 8,
                     "{\"wte.weight\":{\"dtype\":\"F32\",\"shape\":[%d,%d],"
                     "\"data_offsets\":[0,%d]}}",
                     ROWS, DIM, ROWS * DIM * 4);
    header[8 + n] = ' ';
    scratch_write(path, header, sizeof header);
    assert_int_equal(truncate(path, HEADER + (off_t)ROWS * DIM * 4), 0);
}

static embla_table *open_table(const char *path, bool copy)
{
    embla_open_options options = {.copy = copy};
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    assert_ok(embla_checkpoint_open(path, &options, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    embla_checkpoint_free(checkpoint); /* the table keeps its file by itself */
    return table;
}

/* Runs body in a child and gives what waitpid gives. */
static int in_child(void (*body)(const char *path), const char *path)
{
    int status = 0;
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        body(path);
        _exit(0);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    return status;
}

static float row[DIM], batch[BATCH * DIM];

/* ---- without the guard ---- */

static void cut_between_lookups(const char *path)
{
    const int32_t last = ROWS - 1, first = 0;
    embla_table *table = open_table(path, false);
    assert_ok(embla_lookup(table, &last, 1, NULL, row));
    assert_int_equal(truncate(path, HEADER + 8192), 0);
    if (embla_lookup(table, &last, 1, NULL, row) != EMBLA_ERR_IO) _exit(1);
    if (!strstr(embla_error(), "was truncated while it was open") ||
        !strstr(embla_error(), "(C11)"))
        _exit(2);
    /* also for rows that are still there: what else is wrong nobody knows */
    if (embla_lookup(table, &first, 1, NULL, row) != EMBLA_ERR_IO) _exit(3);
    embla_table_free(table);
}

static void rule_c11_a_lookup_in_a_file_cut_short_is_refused(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    sparse_table(scratch_path(&s, "m.safetensors"));
    assert_int_equal(in_child(cut_between_lookups, s.path), 0);
    scratch_free(&s);
}

static void every_way_to_rows_asks_first(void **state)
{
    scratch s;
    const int32_t token = ROWS - 1;
    const int64_t number = ROWS - 1;
    embla_checkpoint *checkpoint = NULL;
    embla_table *late = NULL;
    (void)state;
    scratch_new(&s);
    sparse_table(scratch_path(&s, "m.safetensors"));
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    embla_table *table = open_table(s.path, false);
    embla_embed_options embed = {.sqrt_dim = true};
    embla_lookup_options raw = {.raw = true}, half = {.out_dtype = EMBLA_F16};
    assert_ok(
        embla_embed(table, &token, 1, 1, &(embla_embed_options){.position_table = table}, row));
    assert_int_equal(truncate(s.path, HEADER), 0);
    assert_status(embla_lookup(table, &token, 1, &raw, row), EMBLA_ERR_IO);
    assert_status(embla_lookup(table, &token, 1, &half, row), EMBLA_ERR_IO);
    assert_status(embla_lookup_rows(table, &number, 1, NULL, row), EMBLA_ERR_IO);
    assert_status(embla_embed(table, &token, 1, 1, &embed, row), EMBLA_ERR_IO);
    embla_table *memory = check_table(EMBLA_F32, 4, DIM, 1);
    const int32_t small = 1;
    assert_status(
        embla_embed(memory, &small, 1, 1, &(embla_embed_options){.position_table = table}, row),
        EMBLA_ERR_IO);
    embla_table_free(memory);
    assert_status(embla_table_open(checkpoint, NULL, NULL, &late), EMBLA_ERR_IO);
    assert_status(embla_checkpoint_read(checkpoint, "wte.weight", 4096, DIM * 4, row),
                  EMBLA_ERR_IO);
    assert_null(late);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

static void a_table_in_memory_outlives_its_file(void **state)
{
    scratch s;
    const int32_t token = ROWS - 1;
    (void)state;
    scratch_new(&s);
    sparse_table(scratch_path(&s, "m.safetensors"));
    embla_table *copied = open_table(s.path, true);
    assert_int_equal(chmod(s.path, 0666), 0); /* which everyone may write to: copied unasked */
    embla_table *unasked = open_table(s.path, false);
    assert_int_equal(truncate(s.path, 10), 0);
    assert_ok(embla_lookup(copied, &token, 1, NULL, row));
    assert_ok(embla_lookup(unasked, &token, 1, NULL, row));
    embla_table_free(copied);
    embla_table_free(unasked);
    scratch_free(&s);
}

/* ---- what may happen to a file ---- */

static void a_file_replaced_removed_or_grown_is_still_the_one_that_was_opened(void **state)
{
    scratch s, t;
    sample_numbers n;
    const int32_t token = 6;
    (void)state;
    scratch_new(&s);
    t = s;
    sample_model(scratch_path(&s, "m.safetensors"), &n);
    embla_table *table = open_table(s.path, false);
    for (int step = 0; step < 5; step++) {
        if (step == 1) assert_int_equal(chmod(s.path, 0), 0);
        if (step == 2) { /* grown: what was there still is */
            assert_int_equal(chmod(s.path, 0600), 0);
            assert_int_equal(truncate(s.path, 1 << 20), 0);
        }
        if (step == 3) {
            scratch_write(scratch_path(&t, "other"), "x", 1);
            assert_int_equal(rename(t.path, s.path), 0);
        }
        if (step == 4) assert_int_equal(unlink(s.path), 0);
        memset(row, 0xff, sizeof row);
        assert_ok(embla_lookup(table, &token, 1, NULL, row));
        assert_memory_equal(row, n.tokens + 6 * SAMPLE_DIM, SAMPLE_DIM * sizeof(float));
    }
    embla_table_free(table);
    scratch_free(&s);
}

/* ---- with the guard ---- */

typedef struct {
    const char *path;
    uint64_t random;
    atomic_int go;
} cutter;

/* Cuts the file a little while after it is told to go. */
static void *cut_soon(void *context)
{
    cutter *c = context;
    struct timespec pause = {.tv_nsec = (long)check_below(&c->random, 800000)};
    off_t size = HEADER + (off_t)check_below(&c->random, (uint64_t)ROWS * DIM * 4);
    while (!atomic_load(&c->go)) continue;
    (void)nanosleep(&pause, NULL);
    return truncate(c->path, size) == 0 ? NULL : context;
}

/* One round: lookups until one says that the file was cut. Returns how many went well. */
static size_t race(const char *path, uint64_t seed)
{
    int32_t tokens[BATCH];
    cutter c = {.path = path, .random = seed};
    pthread_t thread;
    void *failed = NULL;
    size_t well = 0;
    uint64_t random = seed * 3 + 1;
    time_t end = time(NULL) + 60;
    sparse_table(path);
    embla_table *table = open_table(path, false);
    if (pthread_create(&thread, NULL, cut_soon, &c) != 0) _exit(10);
    for (;; well++) {
        for (size_t i = 0; i < BATCH; i++) tokens[i] = (int32_t)check_below(&random, ROWS);
        embla_lookup_options options = {.threads = seed % 2 ? 1 : 2};
        embla_status status = embla_lookup(table, tokens, BATCH, &options, batch);
        atomic_store(&c.go, 1);
        if (status == EMBLA_ERR_IO && strstr(embla_error(), "(C11)")) break;
        if (status != EMBLA_OK) _exit(11);
        if (time(NULL) > end) _exit(12); /* it is never noticed */
    }
    /* From now on always. */
    if (embla_lookup(table, tokens, 1, NULL, row) != EMBLA_ERR_IO) _exit(13);
    if (pthread_join(thread, &failed) != 0 || failed) _exit(14);
    embla_table_free(table);
    return well;
}

static void race_many_times(const char *path)
{
    const char *asked = getenv("EMBLA_ROUNDS");
    int rounds = asked ? atoi(asked) : 100;
    size_t well = 0;
    assert_ok(embla_guard());
    assert_ok(embla_guard()); /* a second time changes nothing */
    for (int i = 0; i < rounds; i++) well += race(path, (uint64_t)i);
    print_message("%d files cut during lookups, %zu lookups before that, all reported\n", rounds,
                  well);
}

static void rule_c11_with_the_guard_a_cut_at_any_moment_is_a_status(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    int status = in_child(race_many_times, scratch_path(&s, "m.safetensors"));
    if (status != 0)
        fail_msg("the child ended with %s %d", WIFSIGNALED(status) ? "signal" : "status",
                 WIFSIGNALED(status) ? WTERMSIG(status) : WEXITSTATUS(status));
    scratch_free(&s);
}

/* Reads a page that its file no longer has, in a map that is not ours. */
static void touch_lost_page(const char *path)
{
    scratch_write(path, "x", 1);
    if (truncate(path, 8192) != 0) _exit(20);
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    volatile const char *bytes = mmap(NULL, 8192, PROT_READ, MAP_SHARED, fd, 0);
    if (fd < 0 || bytes == MAP_FAILED || truncate(path, 0) != 0) _exit(21);
    _exit(bytes[4096] == 0 ? 22 : 23);
}

static void another_map_with_the_guard(const char *path)
{
    signal(SIGBUS, SIG_DFL);
    assert_ok(embla_guard());
    touch_lost_page(path);
}

static void mine(int number, siginfo_t *info, void *context)
{
    (void)context;
    _exit(number == SIGBUS && info->si_addr ? 42 : 43);
}

static void another_map_with_a_handler_before_ours(const char *path)
{
    struct sigaction action = {0};
    action.sa_sigaction = mine;
    action.sa_flags = SA_SIGINFO;
    if (sigaction(SIGBUS, &action, NULL) != 0) _exit(24);
    assert_ok(embla_guard());
    touch_lost_page(path);
}

static void plain(int number)
{
    _exit(number == SIGBUS ? 52 : 53);
}

static void another_map_with_a_plain_handler_before_ours(const char *path)
{
    signal(SIGBUS, plain);
    assert_ok(embla_guard());
    touch_lost_page(path);
}

static void a_signal_that_is_not_ours_goes_where_it_went_before(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    int status = in_child(another_map_with_the_guard, scratch_path(&s, "x"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = in_child(another_map_with_a_handler_before_ours, s.path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 42);
    status = in_child(another_map_with_a_plain_handler_before_ours, s.path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 52);
    scratch_free(&s);
}

/* Sent by someone, not by an access: the first one counts, and no address is read from it. */
static void raise_with_the_guard(const char *path)
{
    (void)path;
    signal(SIGBUS, SIG_DFL);
    assert_ok(embla_guard());
    (void)raise(SIGBUS);
    _exit(60);
}

static void raise_ignored_with_the_guard(const char *path)
{
    signal(SIGBUS, SIG_IGN);
    assert_ok(embla_guard());
    (void)raise(SIGBUS);
    race(path, 5); /* and the guard still holds */
    _exit(61);
}

static void raise_with_a_handler_before_ours(const char *path)
{
    (void)path;
    signal(SIGBUS, plain);
    assert_ok(embla_guard());
    (void)raise(SIGBUS);
    _exit(62);
}

/* One that is taken away by its first signal, as programs do that report a crash. */
static void note(int number)
{
    (void)number;
    if (write(STDERR_FILENO, "", 0) != 0) _exit(63);
}

static void another_map_with_a_handler_for_once(const char *path)
{
    struct sigaction action = {0};
    action.sa_handler = note;
    action.sa_flags = (int)SA_RESETHAND;
    (void)alarm(240); /* should it go round and round */
    if (sigaction(SIGBUS, &action, NULL) != 0) _exit(64);
    assert_ok(embla_guard());
    touch_lost_page(path);
}

static void a_signal_that_was_sent_counts_at_once(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    int status = in_child(raise_with_the_guard, scratch_path(&s, "m.safetensors"));
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    status = in_child(raise_ignored_with_the_guard, s.path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 61);
    status = in_child(raise_with_a_handler_before_ours, s.path);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 52);
    status = in_child(another_map_with_a_handler_for_once, s.path);
    assert_true(WIFSIGNALED(status) && WTERMSIG(status) == SIGBUS);
    scratch_free(&s);
}

/* ---- threads ---- */

static void *guard_and_look(void *context)
{
    struct sigaction found;
    atomic_int *go = context;
    while (!atomic_load(go)) continue;
    if (embla_guard() != EMBLA_OK || sigaction(SIGBUS, NULL, &found) != 0) _exit(70);
    if (!(found.sa_flags & SA_SIGINFO) || !(found.sa_flags & SA_ONSTACK)) _exit(71);
    return NULL;
}

/* Who asks for the guard has it when the call returns, also where another was first. */
static void guard_by_many_threads(const char *path)
{
    pthread_t threads[8];
    atomic_int go = 0;
    (void)path;
    signal(SIGBUS, SIG_DFL);
    for (int i = 0; i < 8; i++)
        if (pthread_create(&threads[i], NULL, guard_and_look, &go) != 0) _exit(72);
    atomic_store(&go, 1);
    for (int i = 0; i < 8; i++)
        if (pthread_join(threads[i], NULL) != 0) _exit(73);
}

static void the_guard_is_there_for_whoever_asked_for_it(void **state)
{
    (void)state;
    for (int i = 0; i < 20; i++) assert_int_equal(in_child(guard_by_many_threads, ""), 0);
}

typedef struct {
    const char *path;
    atomic_int stop;
} opener;

/* Opens and closes maps of another file, which is whole: none of them may ever be marked. */
static void *open_and_close(void *context)
{
    opener *o = context;
    while (!atomic_load(&o->stop)) {
        embla_map *maps[3] = {NULL, NULL, NULL};
        for (int i = 0; i < 3; i++)
            if (embla_map_open(EMBLA_HERE, o->path, "whole", true, &maps[i]) != EMBLA_OK) _exit(80);
        for (int i = 0; i < 3; i++) {
            if (embla_map_check(maps[i]) != EMBLA_OK) _exit(81);
            embla_map_free(maps[i]);
        }
    }
    return NULL;
}

static void race_beside_openers(const char *path)
{
    char whole[SCRATCH_PATH + 8];
    pthread_t threads[2];
    opener o = {.path = whole};
    snprintf(whole, sizeof whole, "%s.whole", path);
    sparse_table(whole);
    assert_ok(embla_guard());
    for (int i = 0; i < 2; i++)
        if (pthread_create(&threads[i], NULL, open_and_close, &o) != 0) _exit(82);
    for (uint64_t i = 0; i < 40; i++) (void)race(path, 2 * i + 1);
    atomic_store(&o.stop, 1);
    for (int i = 0; i < 2; i++)
        if (pthread_join(threads[i], NULL) != 0) _exit(83);
}

static void rule_c11_files_come_and_go_while_another_is_cut(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    assert_int_equal(in_child(race_beside_openers, scratch_path(&s, "m.safetensors")), 0);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_c11_a_lookup_in_a_file_cut_short_is_refused),
        cmocka_unit_test(every_way_to_rows_asks_first),
        cmocka_unit_test(a_table_in_memory_outlives_its_file),
        cmocka_unit_test(a_file_replaced_removed_or_grown_is_still_the_one_that_was_opened),
        cmocka_unit_test(a_signal_that_is_not_ours_goes_where_it_went_before),
        cmocka_unit_test(a_signal_that_was_sent_counts_at_once),
        cmocka_unit_test(the_guard_is_there_for_whoever_asked_for_it),
        cmocka_unit_test(rule_c11_files_come_and_go_while_another_is_cut),
        cmocka_unit_test(rule_c11_with_the_guard_a_cut_at_any_moment_is_a_status),
    };
    return cmocka_run_group_tests_name("truncate", tests, NULL, NULL);
}
