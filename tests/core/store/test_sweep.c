/* SPDX-License-Identifier: Apache-2.0 */
/* Copies that killed processes leave behind (store/sweep.c): which are removed, and which stay. A
 * copy that a process has open stays, whatever is asked; so does one that somebody may want again.
 */
#include <errno.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"
#include "store/shared.h"

enum { DIM = 64, ROWS = 300 };

/* A file of rows, and a folder in memory for its copies. */
typedef struct {
    scratch s, shared;
    char file[SCRATCH_PATH];
    embla_row_format format;
    embla_extent extent;
    embla_store_options options;
} given;

static void write_rows(const char *path, unsigned char mark)
{
    unsigned char bytes[DIM * ROWS];
    memset(bytes, mark, sizeof bytes);
    scratch_write(path, bytes, sizeof bytes);
}

static void given_new(given *g)
{
    *g = (given){0};
    scratch_new(&g->s);
    (void)snprintf(g->shared.folder, sizeof g->shared.folder, "/dev/shm/embla-test-XXXXXX");
    assert_non_null(mkdtemp(g->shared.folder));
    (void)snprintf(g->file, sizeof g->file, "%s/rows", g->s.folder);
    write_rows(g->file, 1);
    g->format = (embla_row_format){.dim = DIM, .dtype = EMBLA_F8_E4M3, .scale = 1};
    g->extent = (embla_extent){.file = g->file, .rows = ROWS};
    g->options = (embla_store_options){
        .placement = EMBLA_PLACEMENT_SHARED, .shared_folder = g->shared.folder, .threads = 1};
}

static void given_free(given *g)
{
    scratch_free(&g->s);
    scratch_free(&g->shared);
}

static embla_store *opened(const given *g)
{
    embla_store *store = NULL;
    assert_ok(embla_store_open_extents(&g->format, &g->extent, 1, &g->options, &store));
    return store;
}

/* Another copy: of the same file without its last row. */
static embla_store *other_opened(const given *g)
{
    given h = *g;
    h.extent.rows--;
    return opened(&h);
}

/* Renames another file over the rows. */
static void replace(const given *g)
{
    char other[SCRATCH_PATH + 8];
    (void)snprintf(other, sizeof other, "%s.other", g->file);
    write_rows(other, 2);
    assert_int_equal(rename(other, g->file), 0);
}

static embla_sweep_report sweep(const given *g, bool unused)
{
    embla_sweep_report report;
    assert_ok(embla_store_sweep(g->shared.folder, unused, &report));
    return report;
}

static size_t copies(const given *g)
{
    return scratch_count(&g->shared, NULL);
}

/* ---- processes ---- */

/* A process that has the copy open, or is in the middle of building it. */
static pid_t start_owner(const given *g, embla_progress_fn stop)
{
    int ready[2];
    char byte = 0;
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)prctl(PR_SET_PDEATHSIG, SIGKILL); /* it must not outlive a test that fails */
        embla_store *store = NULL;
        embla_store_options options = g->options;
        options.progress = stop;
        options.context = &ready[1];
        if (embla_store_open_extents(&g->format, &g->extent, 1, &options, &store) != EMBLA_OK)
            _exit(1);
        if (write(ready[1], "r", 1) != 1) _exit(2);
        for (;;) (void)pause();
    }
    close(ready[1]);
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    return child;
}

static void kill_owner(pid_t child)
{
    int status = 0;
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFSIGNALED(status));
}

/* Tells the parent that rows are being copied, and stays there. */
static bool stop_in_copy(void *context, const char *what, int64_t done, int64_t all)
{
    const int *ready = context;
    (void)done;
    (void)all;
    if (strcmp(what, "copy") != 0) return true;
    if (write(*ready, "c", 1) != 1) _exit(2);
    for (;;) (void)pause();
}

/* ---- dead copies ---- */

static void change_time(const given *g)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    assert_int_equal(utimensat(AT_FDCWD, g->file, times, 0), 0);
}

static void remove_file(const given *g)
{
    assert_int_equal(unlink(g->file), 0);
}

static void cut(const given *g)
{
    assert_int_equal(truncate(g->file, DIM), 0);
}

/* Killed with SIGKILL; then the file is another one. The next that builds a copy cleans up. */
static void the_copy_of_a_killed_process_is_swept_when_its_file_has_changed(void **state)
{
    static void (*const change[])(const given *) = {replace, change_time, remove_file, cut};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(change); i++) {
        given g, next;
        given_new(&g);
        given_new(&next);
        next.options.shared_folder = g.shared.folder;
        pid_t owner = start_owner(&g, NULL);
        assert_int_equal(copies(&g), 1);
        change[i](&g);
        embla_store *store = opened(&next); /* the owner lives: its copy stays */
        assert_int_equal(copies(&g), 2);
        assert_ok(embla_store_unshare(store));
        embla_store_free(store);
        kill_owner(owner);
        assert_int_equal(copies(&g), 1); /* it would stay for ever */
        store = opened(&next);
        assert_int_equal(copies(&g), 1);
        assert_ok(embla_store_unshare(store));
        embla_store_free(store);
        assert_int_equal(copies(&g), 0);
        given_free(&g);
        given_free(&next);
    }
}

/* An engine that is started again finds its copy. */
static void the_copy_of_a_killed_process_stays_while_its_file_is_the_same(void **state)
{
    given g;
    embla_store_info info;
    (void)state;
    given_new(&g);
    kill_owner(start_owner(&g, NULL));
    embla_store *other = other_opened(&g);
    assert_int_equal(copies(&g), 2);
    embla_sweep_report report = sweep(&g, false);
    assert_true(report.copies == 0 && report.bytes == 0 && report.kept == 2);
    embla_store *store = opened(&g);
    assert_ok(embla_store_describe(store, &info));
    assert_false(info.built);
    embla_store_free(store);
    /* asked for all that nobody uses: one is in use here */
    report = sweep(&g, true);
    assert_true(report.copies == 1 && report.kept == 1);
    assert_int_equal(report.bytes, EMBLA_COPY_DATA_AT + DIM * ROWS);
    embla_store_free(other);
    assert_int_equal(sweep(&g, true).copies, 1);
    assert_int_equal(copies(&g), 0);
    given_free(&g);
}

static void a_killed_builder_leaves_nothing_behind(void **state)
{
    given g;
    (void)state;
    given_new(&g);
    pid_t builder = start_owner(&g, stop_in_copy);
    assert_int_equal(copies(&g), 2); /* the lock and the unfinished file */
    assert_int_equal(sweep(&g, true).leftover, 0);
    assert_int_equal(copies(&g), 2); /* it still builds */
    kill_owner(builder);
    assert_int_equal(sweep(&g, false).leftover, 2);
    assert_int_equal(copies(&g), 0);
    kill_owner(start_owner(&g, stop_in_copy));
    embla_store *other = other_opened(&g); /* building another one sweeps too */
    assert_int_equal(copies(&g), 1);
    embla_store_free(other);
    given_free(&g);
}

/* Building another copy never removes one that a user has named; a user may ask for it. */
static void a_named_copy_is_swept_only_if_asked_for(void **state)
{
    static const char *const names[] = {"mine", "embla-mine", "embla-0123456789abcdef.bak"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        given g;
        given_new(&g);
        g.options.shared_name = names[i];
        kill_owner(start_owner(&g, NULL));
        replace(&g);
        g.options.shared_name = NULL;
        embla_store *store = opened(&g);
        assert_int_equal(copies(&g), 2);
        embla_sweep_report report = sweep(&g, false);
        assert_true(report.copies == 1 && report.kept == 1);
        embla_store_free(store);
        given_free(&g);
    }
}

/* ---- what stays ---- */

static char *copy_path(const given *g)
{
    embla_store_info info;
    embla_store *store = opened(g);
    assert_ok(embla_store_describe(store, &info));
    char *path = strdup(info.shared);
    embla_store_free(store);
    return path;
}

static void write_at(const char *path, off_t at, const void *bytes, size_t count)
{
    assert_int_equal(chmod(path, 0600), 0);
    int fd = open(path, O_RDWR);
    assert_int_equal(pwrite(fd, bytes, count, at), count);
    assert_int_equal(close(fd), 0);
}

/* Another container has another disk at the path; or nothing is known about the file. */
static void a_copy_of_a_file_that_is_not_certain_stays(void **state)
{
    (void)state;
    for (int what = 0; what < 4; what++) {
        given g;
        embla_copy_note note;
        given_new(&g);
        char *path = copy_path(&g);
        int fd = open(path, O_RDONLY);
        assert_int_equal(pread(fd, &note, sizeof note, EMBLA_COPY_NOTE_AT), sizeof note);
        assert_int_equal(close(fd), 0);
        if (what == 0 || what == 2) note.device++;
        if (what == 1) memset(note.path, 0, sizeof note.path);
        if (what == 3) (void)snprintf(note.path, sizeof note.path, "/no/such/folder/rows");
        write_at(path, EMBLA_COPY_NOTE_AT, &note, sizeof note);
        if (what < 2) replace(&g);
        if (what == 2) remove_file(&g);
        embla_sweep_report report = sweep(&g, false);
        assert_true(report.copies == 0 && report.kept == 1);
        report = sweep(&g, true);
        assert_true(report.copies == 1 && report.kept == 0);
        free(path);
        given_free(&g);
    }
}

static void files_that_are_not_copies_stay(void **state)
{
    static const char *const names[] = {"embla-0123456789abcdef", "embla-0123456789abcdee", "other",
                                        ".embla-0123456789abcdef.0.tmp.0123456789abcdeg",
                                        "embla-0123456789abcdef.1.lock.old"};
    static unsigned char zeros[EMBLA_COPY_DATA_AT + 100];
    given g;
    (void)state;
    given_new(&g);
    for (size_t i = 0; i < COUNT_OF(names); i++)
        scratch_write(scratch_path(&g.shared, names[i]), zeros, i == 0 ? sizeof zeros : 10);
    char *path = copy_path(&g);
    unsigned char damage = 0xee;
    write_at(path, 40, &damage, 1); /* the manifest does not match its checksum */
    assert_int_equal(symlink(path, scratch_path(&g.shared, "embla-aaaaaaaaaaaaaaaa")), 0);
    assert_int_equal(mkdir(scratch_path(&g.shared, "embla-bbbbbbbbbbbbbbbb"), 0700), 0);
    replace(&g);
    size_t before = copies(&g);
    embla_sweep_report report = sweep(&g, true);
    assert_true(report.copies == 0 && report.kept == 0 && report.leftover == 0);
    assert_int_equal(copies(&g), before);
    free(path);
    given_free(&g);
}

static void a_folder_that_is_not_there_is_said(void **state)
{
    embla_sweep_report report = {.kept = 77};
    (void)state;
    assert_status(embla_store_sweep("/no/such/folder", false, &report), EMBLA_ERR_NOT_FOUND);
    assert_error_has("/no/such/folder");
    assert_int_equal(report.kept, 77);
}

enum { MANY = 4096 };

/* How many calls are left until the one that is to fail. */
static size_t calls_left(void)
{
    embla_file_facts found;
    size_t left = 1;
    while (embla_io_facts(STDERR_FILENO, "counting", &found) == EMBLA_OK) left++;
    return left;
}

static void every_failure_is_a_status(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    given g;
    (void)state;
    given_new(&g);
    embla_store *used = other_opened(&g);
    size_t held = embla_io_live(), calls = 0;
    for (size_t n = 0; n <= calls; n++) {
        free(copy_path(&g));
        embla_io_fail(n > 0 ? n : MANY, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_store_sweep(g.shared.folder, true, NULL);
        if (n == 0) calls = MANY - calls_left();
        embla_io_fail(0, false, 0);
        assert_int_equal(embla_io_live(), held);
        assert_true(status == EMBLA_OK || (n > 0 && status == EMBLA_ERR_IO));
        assert_true(copies(&g) >= 1); /* the one that is used */
    }
    assert_in_range(calls, 5, 100);
    embla_store_free(used);
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
    given_free(&g);
}

/* ---- at once ---- */

static given shared_given;
static atomic_bool ended, lost;

/* Opens the copy again and again. While it is open, its name must lead to it. */
static void *open_often(void *context)
{
    const given *g = context;
    for (int i = 0; i < 150 && !atomic_load(&lost); i++) {
        embla_store *store = NULL;
        embla_store_info info;
        struct stat named = {0};
        if (embla_store_open_extents(&g->format, &g->extent, 1, &g->options, &store) != EMBLA_OK ||
            embla_store_describe(store, &info) != EMBLA_OK) {
            fprintf(stderr, "%s\n", embla_error());
            atomic_store(&lost, true);
            return NULL;
        }
        for (int k = 0; k < 20; k++)
            if (stat(info.shared, &named) != 0 || store->data[0] != 1) atomic_store(&lost, true);
        embla_store_free(store);
    }
    return NULL;
}

static void *sweep_often(void *context)
{
    const given *g = context;
    while (!atomic_load(&ended))
        if (embla_store_sweep(g->shared.folder, true, NULL) != EMBLA_OK) atomic_store(&lost, true);
    return NULL;
}

static void a_copy_that_is_being_opened_is_never_swept(void **state)
{
    enum { OPENERS = 2 };
    pthread_t openers[OPENERS], sweeper;
    (void)state;
    given_new(&shared_given);
    atomic_store(&ended, false);
    assert_int_equal(pthread_create(&sweeper, NULL, sweep_often, &shared_given), 0);
    for (int i = 0; i < OPENERS; i++)
        assert_int_equal(pthread_create(&openers[i], NULL, open_often, &shared_given), 0);
    for (int i = 0; i < OPENERS; i++) assert_int_equal(pthread_join(openers[i], NULL), 0);
    atomic_store(&ended, true);
    assert_int_equal(pthread_join(sweeper, NULL), 0);
    assert_false(atomic_load(&lost));
    (void)sweep(&shared_given, true);
    assert_int_equal(copies(&shared_given), 0);
    given_free(&shared_given);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_copy_of_a_killed_process_is_swept_when_its_file_has_changed),
        cmocka_unit_test(the_copy_of_a_killed_process_stays_while_its_file_is_the_same),
        cmocka_unit_test(a_killed_builder_leaves_nothing_behind),
        cmocka_unit_test(a_named_copy_is_swept_only_if_asked_for),
        cmocka_unit_test(a_copy_of_a_file_that_is_not_certain_stays),
        cmocka_unit_test(files_that_are_not_copies_stay),
        cmocka_unit_test(a_folder_that_is_not_there_is_said),
        cmocka_unit_test(every_failure_is_a_status),
        cmocka_unit_test(a_copy_that_is_being_opened_is_never_swept),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
