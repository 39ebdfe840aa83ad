/* SPDX-License-Identifier: Apache-2.0 */
/* The placement direct: which reader is chosen and why, what it reads, and what happens when the
 * system forbids io_uring, a file is cut short, or many threads look up rows at once.
 * tests/core/store/test_store.c compares its rows with those of the other placements.
 */
#include "check.h"

#include <errno.h>
#include <linux/filter.h>
#include <linux/seccomp.h>
#include <pthread.h>
#include <sys/prctl.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/injected.h"
#include "base/mem.h"
#include "files/io.h"
#include "files/io_ring.h"
#include "store/gather.h"
#include "store_tables.h"

static embla_status open_with(const table *t, embla_reader_kind reader, int depth,
                              embla_store **out)
{
    const embla_store_options options = {
        .placement = EMBLA_PLACEMENT_DIRECT, .reader = reader, .depth = depth};
    return embla_store_open_extents(&t->format, t->extents, t->count, &options, out);
}

/* Looks up random rows as stored bytes, and compares them with what was written. */
static embla_status look_up(const table *t, const embla_store *store, uint64_t seed, size_t count)
{
    const embla_store_lookup_options raw = {.raw = true, .threads = 1};
    int64_t *rows = malloc(count * sizeof *rows);
    unsigned char *out = malloc(count * t->row_bytes);
    assert_true(rows && out);
    for (size_t i = 0; i < count; i++) rows[i] = (int64_t)check_below(&seed, (uint64_t)t->rows);
    embla_status status = embla_store_lookup(store, rows, count, &raw, out);
    for (size_t i = 0; i < count && status == EMBLA_OK; i++)
        assert_memory_equal(out + i * t->row_bytes, t->truth + (size_t)rows[i] * t->row_bytes,
                            t->row_bytes);
    free(out);
    free(rows);
    return status;
}

static embla_reader_kind reader_of(const embla_store *store, const char **why)
{
    embla_store_info info;
    assert_ok(embla_store_describe(store, &info));
    if (why) *why = info.reader_why;
    return info.reader;
}

/* ---- choosing ---- */

static void readers_have_names(void **state)
{
    (void)state;
    assert_string_equal(embla_reader_name(EMBLA_READER_AUTO), "auto");
    assert_string_equal(embla_reader_name(EMBLA_READER_IO_URING), "io_uring");
    assert_string_equal(embla_reader_name(EMBLA_READER_PREAD), "pread");
    assert_string_equal(embla_reader_name(EMBLA_READER_BUFFERED), "buffered");
    assert_null(embla_reader_name((embla_reader_kind)4));
    assert_null(embla_reader_name((embla_reader_kind)-1));
}

static void options_that_cannot_be_are_refused(void **state)
{
    table t;
    embla_store *store = NULL;
    size_t live = embla_mem_live();
    (void)state;
    make(&t, 0, 200);
    assert_status(open_with(&t, (embla_reader_kind)4, 0, &store), EMBLA_ERR_ARGUMENT);
    assert_error_has("unknown reader: 4");
    assert_status(open_with(&t, EMBLA_READER_AUTO, -1, &store), EMBLA_ERR_ARGUMENT);
    assert_error_has("depth is -1; it must be from 0 to 1024");
    assert_status(open_with(&t, EMBLA_READER_PREAD, 129, &store), EMBLA_ERR_ARGUMENT);
    assert_error_has("depth is 129; it must be from 0 to 128");
    const embla_store_options ram = {.depth = 3};
    assert_status(embla_store_open_extents(&t.format, t.extents, t.count, &ram, &store),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("only for the placement direct");
    assert_null(store);
    assert_int_equal(embla_mem_live(), live);
    finish(&t);
}

static void every_depth_returns_the_rows(void **state)
{
    static const int depths[] = {1, 2, 3, 16, 128};
    table t;
    (void)state;
    make(&t, 3, 5000);
    for (int reader = EMBLA_READER_AUTO; reader <= EMBLA_READER_BUFFERED; reader++)
        for (size_t i = 0; i < COUNT_OF(depths); i++) {
            embla_store *store = NULL;
            embla_status status = open_with(&t, (embla_reader_kind)reader, depths[i], &store);
            if (status == EMBLA_ERR_UNSUPPORTED) continue; /* io_uring, or O_DIRECT */
            assert_ok(status);
            assert_ok(look_up(&t, store, 1, 3000));
            assert_ok(look_up(&t, store, 2, 1));
            embla_store_free(store);
        }
    finish(&t);
}

/* Makes a call of the system fail from now on, in this process. */
static void forbid(int call)
{
    struct sock_filter filter[] = {
        BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(struct seccomp_data, nr)),
        BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, (unsigned)call, 0, 1),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | EPERM),
        BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW),
    };
    struct sock_fprog program = {.len = COUNT_OF(filter), .filter = filter};
    if (prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0 ||
        syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, SECCOMP_FILTER_FLAG_TSYNC, &program) != 0)
        _exit(77);
}

/* Runs a test in a child, whose exit code says what is wrong; 77 means that there are no
 * filters here. */
/* Whether the test was possible here. */
static bool in_a_child(const table *t, int (*test)(const table *t))
{
    int status = 0;
    pid_t child = fork();
    if (child == 0) _exit(test(t));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    if (WEXITSTATUS(status) == 77) return false;
    assert_int_equal(WEXITSTATUS(status), 0);
    return true;
}

static int without_io_uring(const table *t)
{
    embla_store *store = NULL;
    const char *why = NULL;
    embla_store *plain = NULL;
    if (open_with(t, EMBLA_READER_PREAD, 0, &plain) != EMBLA_OK) return 77; /* no O_DIRECT */
    embla_store_free(plain);
    forbid(SYS_io_uring_setup);
    if (open_with(t, EMBLA_READER_IO_URING, 0, &store) != EMBLA_ERR_UNSUPPORTED) return 1;
    if (!strstr(embla_error(), "io_uring_setup: Operation not permitted")) return 2;
    if (open_with(t, EMBLA_READER_AUTO, 0, &store) != EMBLA_OK) return 3;
    if (reader_of(store, &why) != EMBLA_READER_PREAD) return 4;
    if (!why || !strstr(why, "Operation not permitted")) return 5;
    if (look_up(t, store, 3, 5000) != EMBLA_OK) return 6;
    embla_store_free(store);
    return 0;
}

static int with_a_filter_that_comes_later(const table *t)
{
    embla_store *store = NULL;
    if (open_with(t, EMBLA_READER_IO_URING, 0, &store) != EMBLA_OK) return 77;
    if (look_up(t, store, 3, 500) != EMBLA_OK) return 1;
    forbid(SYS_io_uring_enter);
    if (look_up(t, store, 4, 500) != EMBLA_OK) return 2;
    embla_store_free(store);
    return 0;
}

static void a_filter_that_forbids_io_uring_leaves_threads(void **state)
{
    table t;
    (void)state;
    make(&t, 2, 5000);
    bool possible = in_a_child(&t, without_io_uring);
    possible = in_a_child(&t, with_a_filter_that_comes_later) && possible;
    finish(&t);
    if (!possible) skip_because("this system has no io_uring, or no filters");
}

/* tmpfs accepts O_DIRECT since Linux 6.6, and refuses it before. */
static void a_file_in_tmpfs_is_read(void **state)
{
    const char *before = getenv("TMPDIR");
    table t;
    embla_store *store = NULL;
    (void)state;
    if (access("/dev/shm", W_OK) != 0) skip_because("/dev/shm cannot be written");
    assert_int_equal(setenv("TMPDIR", "/dev/shm", 1), 0);
    make(&t, 0, 5000);
    assert_int_equal(before ? setenv("TMPDIR", before, 1) : unsetenv("TMPDIR"), 0);
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 0, &store));
    print_message("tmpfs: the reader is %s\n", embla_reader_name(reader_of(store, NULL)));
    assert_ok(look_up(&t, store, 5, 5000));
    embla_store_free(store);
    finish(&t);
}

/* The second file cannot be opened for direct reads: all are read through the page cache. */
static void a_file_without_direct_reads_is_read_through_the_page_cache(void **state)
{
    table t;
    size_t found = 0;
    (void)state;
    make(&t, 2, 3000);
    for (size_t n = 1; n < 40; n++) {
        embla_store *store = NULL;
        const char *why = NULL;
        embla_io_fail(n, false, EMBLA_SYSTEM_UNSUPPORTED);
        embla_status status = open_with(&t, EMBLA_READER_AUTO, 0, &store);
        embla_io_fail(0, false, 0);
        if (status != EMBLA_OK) continue;
        if (reader_of(store, &why) == EMBLA_READER_BUFFERED) {
            assert_non_null(why);
            assert_non_null(strstr(why, "cannot be read past the page cache"));
            found++;
        }
        assert_ok(look_up(&t, store, n, 300));
        embla_store_free(store);
    }
    assert_true(found >= 2);
    finish(&t);
}

/* ---- what is read ---- */

/* The reads and the pages of a gather of these rows. */
static embla_gather gather_rows(const embla_store *store, const int64_t *rows, size_t count,
                                char *out)
{
    embla_row_part part;
    embla_row_piece *pieces = malloc(2 * count * sizeof *pieces);
    embla_gather g;
    assert_non_null(pieces);
    assert_ok(embla_row_part_of(&store->row, 0, 0, &part));
    embla_gather_init(&g, store, rows, &part, out, part.bytes, pieces);
    for (size_t i = 0; i < count; i++) embla_gather_add(&g, i, 1, 0);
    assert_ok(embla_reader_start(embla_direct_reader(store), &g));
    embla_reader_wait(embla_direct_reader(store), &g);
    assert_ok(embla_failure_say(&g.failure));
    free(pieces);
    g.pieces = NULL;
    return g;
}

static void a_page_is_read_once_for_all_its_rows(void **state)
{
    static char out[4000 * 264];
    int64_t rows[4000];
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 1, 4000); /* rows of 144 bytes from byte 11 on, one after the other */
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 0, &store));
    for (size_t i = 0; i < 4000; i++) rows[i] = 20; /* bytes 2891 to 3034: page 0 */
    embla_gather g = gather_rows(store, rows, 4000, out);
    assert_int_equal(g.reads, 1);
    assert_int_equal(g.pages, 1);
    rows[7] = 28; /* bytes 4043 to 4186: pages 0 and 1 */
    g = gather_rows(store, rows, 4000, out);
    assert_int_equal(g.reads, 1);
    assert_int_equal(g.pages, 2);
    for (size_t i = 0; i < 4000; i++) rows[i] = (int64_t)(i * 1237 % 4000);
    g = gather_rows(store, rows, 4000, out);
    assert_true(g.pages <= 141 + 141 / 3 + 2); /* the last page of a read may be read again */
    assert_true(g.reads <= g.pages);
    for (size_t i = 0; i < 4000; i++)
        assert_memory_equal(out + i * 144, t.truth + (size_t)rows[i] * 144, 144);
    embla_store_free(store);
    finish(&t);
}

static void a_split_plane_source_reads_both_planes(void **state)
{
    char out[264];
    const int64_t row = 1500;
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, 3000);
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 0, &store));
    embla_gather g = gather_rows(store, &row, 1, out);
    assert_int_equal(g.reads, 2);
    assert_memory_equal(out, t.truth + 1500 * t.row_bytes, t.row_bytes);
    embla_store_free(store);
    finish(&t);
}

static void a_small_gather_wakes_no_thread(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 0, 30000);
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 64, &store));
    if (reader_of(store, NULL) == EMBLA_READER_IO_URING) {
        for (uint64_t i = 0; i < 100; i++) assert_ok(look_up(&t, store, i, 16));
        assert_int_equal(embla_reader_wakes(embla_direct_reader(store)), 0);
    }
    embla_store_free(store);
    finish(&t);
}

static void the_page_cache_does_not_grow(void **state)
{
    table t;
    embla_store *store = NULL;
    int64_t resident = 1;
    (void)state;
    make(&t, 1, 30000);
    int fd = open(t.paths[0], O_RDWR);
    assert_true(fd >= 0);
    assert_int_equal(fsync(fd), 0);
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 0, &store));
    (void)posix_fadvise(fd, 0, 0, POSIX_FADV_DONTNEED);
    const embla_map *map = store->sources[0].map;
    assert_ok(embla_io_resident(map->bytes, (size_t)map->size, "test", &resident));
    if (resident == 0 && reader_of(store, NULL) != EMBLA_READER_BUFFERED) {
        assert_ok(look_up(&t, store, 9, 20000));
        assert_ok(embla_io_resident(map->bytes, (size_t)map->size, "test", &resident));
        assert_int_equal(resident, 0);
    } else {
        print_message("the file stays in the page cache here: not tested\n");
    }
    assert_int_equal(close(fd), 0);
    embla_store_free(store);
    finish(&t);
}

/* ---- failures ---- */

static void a_file_that_is_cut_or_changed_is_noticed(void **state)
{
    (void)state;
    for (int reader = EMBLA_READER_AUTO; reader <= EMBLA_READER_BUFFERED; reader++) {
        table t;
        embla_store *store = NULL;
        make(&t, 4, 3000);
        embla_status status = open_with(&t, (embla_reader_kind)reader, 0, &store);
        if (status == EMBLA_OK) {
            assert_ok(look_up(&t, store, 1, 100));
            assert_int_equal(truncate(t.paths[0], 100), 0);
            assert_status(look_up(&t, store, 1, 100), EMBLA_ERR_IO);
            assert_error_has("truncated while it was open");
            embla_store_free(store);
        }
        finish(&t);
    }
}

/* A direct read that fails is tried again through the page cache; only if that fails too is there
 * an error. */
static void reads_that_fail_are_tried_in_another_way(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, 3000);
    for (int reader = EMBLA_READER_AUTO; reader <= EMBLA_READER_BUFFERED; reader++) {
        if (open_with(&t, (embla_reader_kind)reader, 0, &store) != EMBLA_OK) continue;
        for (size_t n = 3; n < 20; n++) { /* the first two are checks of the files */
            embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
            assert_ok(look_up(&t, store, n, 40));
            embla_io_fail(n, true, EMBLA_SYSTEM_OTHER);
            assert_status(look_up(&t, store, n, 40), EMBLA_ERR_IO);
            assert_error_has("Input/output error");
            embla_io_fail(0, false, 0);
        }
        assert_ok(look_up(&t, store, 1, 400));
        embla_store_free(store);
    }
    finish(&t);
}

static void a_fork_cannot_use_the_reader_of_its_parent(void **state)
{
    table t;
    embla_store *store = NULL;
    int status = 0;
    (void)state;
    make(&t, 0, 1000);
    assert_ok(open_with(&t, EMBLA_READER_AUTO, 0, &store));
    pid_t child = fork();
    if (child == 0) {
        int64_t row = 1;
        char out[160];
        const embla_store_lookup_options raw = {.raw = true};
        bool refused = embla_store_lookup(store, &row, 1, &raw, out) == EMBLA_ERR_UNSUPPORTED &&
                       strstr(embla_error(), "was forked from it: open this store again");
        embla_store_free(store);
        _exit(refused ? 0 : 1);
    }
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status) && WEXITSTATUS(status) == 0);
    assert_ok(look_up(&t, store, 1, 100));
    embla_store_free(store);
    finish(&t);
}

/* ---- many threads ---- */

typedef struct {
    const table *t;
    const embla_store *store;
    uint64_t seed;
} asking;

static void *ask(void *context)
{
    asking *a = context;
    for (uint64_t i = 0; i < 30; i++)
        if (look_up(a->t, a->store, a->seed * 100 + i, 1 + (size_t)(i * 37 % 300)) != EMBLA_OK)
            return context;
    return NULL;
}

static void many_threads_may_look_up_rows_at_once(void **state)
{
    enum { THREADS = 6 };
    (void)state;
    for (int reader = EMBLA_READER_AUTO; reader <= EMBLA_READER_BUFFERED; reader++) {
        table t;
        embla_store *store = NULL;
        pthread_t threads[THREADS];
        asking each[THREADS];
        make(&t, 0, 30000);
        if (open_with(&t, (embla_reader_kind)reader, 8, &store) == EMBLA_OK) {
            for (size_t i = 0; i < THREADS; i++) {
                each[i] = (asking){.t = &t, .store = store, .seed = i};
                assert_int_equal(pthread_create(&threads[i], NULL, ask, &each[i]), 0);
            }
            for (size_t i = 0; i < THREADS; i++) {
                void *failed = NULL;
                assert_int_equal(pthread_join(threads[i], &failed), 0);
                assert_null(failed);
            }
            embla_store_free(store);
        }
        finish(&t);
    }
}

/* The reader starts with fewer threads, and needs at least one. */
static void a_reader_works_with_the_threads_that_start(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 0, 200);
    for (size_t n = 1; n <= 3; n++) {
        embla_inject(EMBLA_INJECT_THREAD, n, true, EMBLA_SYSTEM_NO_MEMORY);
        embla_status status = open_with(&t, EMBLA_READER_BUFFERED, 4, &store);
        embla_inject(EMBLA_INJECT_THREAD, 0, false, EMBLA_SYSTEM_OK);
        assert_status(status, n == 1 ? EMBLA_ERR_MEMORY : EMBLA_OK);
        if (n > 1) embla_store_free(store);
    }
    assert_error_has("a reader needs at least 1 of 4 threads, and the system grants 0");
    finish(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(readers_have_names),
        cmocka_unit_test(options_that_cannot_be_are_refused),
        cmocka_unit_test(a_reader_works_with_the_threads_that_start),
        cmocka_unit_test(every_depth_returns_the_rows),
        cmocka_unit_test(a_filter_that_forbids_io_uring_leaves_threads),
        cmocka_unit_test(a_file_in_tmpfs_is_read),
        cmocka_unit_test(a_file_without_direct_reads_is_read_through_the_page_cache),
        cmocka_unit_test(a_page_is_read_once_for_all_its_rows),
        cmocka_unit_test(a_split_plane_source_reads_both_planes),
        cmocka_unit_test(a_small_gather_wakes_no_thread),
        cmocka_unit_test(the_page_cache_does_not_grow),
        cmocka_unit_test(a_file_that_is_cut_or_changed_is_noticed),
        cmocka_unit_test(reads_that_fail_are_tried_in_another_way),
        cmocka_unit_test(a_fork_cannot_use_the_reader_of_its_parent),
        cmocka_unit_test(many_threads_may_look_up_rows_at_once),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
