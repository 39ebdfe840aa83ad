/* SPDX-License-Identifier: Apache-2.0 */
/* The writer that survives (files/durable; rules D1, D5): the order of its steps, what is
 * left behind when each of them fails, and whose temporary files it may touch.
 *
 * The random part of a temporary file's name is made by this program's own getrandom, so
 * that a test can put something in its place beforehand; its own syscall has a renameat2 that can
 * be one that an old system does not have.
 */
#include "files/durable.h"

#include <dlfcn.h>
#include <errno.h>
#include <signal.h>
#include <stdarg.h>
#include <sys/file.h>
#include <sys/random.h>
#include <sys/syscall.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"

static uint32_t next_name = 1;
static bool no_random, same_name;

/* Instead of the C library's. */
ssize_t getrandom(void *out, size_t bytes, unsigned flags)
{
    uint64_t number = same_name ? next_name : next_name++;
    (void)flags;
    if (no_random) return -1;
    if (bytes > sizeof number) bytes = sizeof number;
    memcpy(out, &number, bytes);
    return (ssize_t)bytes;
}

static int no_rename_new; /* an error number: what an old system says */

/* Instead of the C library's: it passes on every call but renameat2. */
long syscall(long number, ...)
{
    static long (*real)(long, ...);
    long arguments[6];
    va_list list;
    if (number == SYS_renameat2 && no_rename_new) {
        errno = no_rename_new;
        return -1;
    }
    if (!real) *(void **)&real = dlsym(RTLD_NEXT, "syscall");
    va_start(list, number);
    for (int i = 0; i < 6; i++) arguments[i] = va_arg(list, long);
    va_end(list);
    return real(number, arguments[0], arguments[1], arguments[2], arguments[3], arguments[4],
                arguments[5]);
}

static const char old_bytes[] = "what was there before", new_bytes[] = "what is new";

/* Writes new_bytes to path by every call there is. */
static embla_status write_all(const char *path)
{
    embla_durable *d = NULL;
    const char *temporary = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = embla_durable_reserve(d, 1000);
    if (status == EMBLA_OK) status = embla_durable_write(d, new_bytes, 5);
    if (status == EMBLA_OK) status = embla_durable_write(d, new_bytes + 5, sizeof new_bytes - 6);
    if (status == EMBLA_OK) status = embla_durable_fill(d, 0, 1);
    if (status == EMBLA_OK) status = embla_durable_sync(d, &temporary);
    if (status == EMBLA_OK) {
        assert_true(scratch_holds(temporary, new_bytes, sizeof new_bytes));
        return embla_durable_commit(d);
    }
    embla_durable_abandon(d);
    return status;
}

/* ---- what a good run does ---- */

static void a_file_gets_its_name_only_when_it_is_complete(void **state)
{
    scratch s, t;
    embla_durable *d = NULL;
    const char *temporary = NULL;
    struct stat found;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    scratch_new(&s);
    t = s;
    next_name = 0xabcdef01;
    assert_ok(embla_durable_open(scratch_path(&s, "out.bin"), &d));
    char name[64];
    snprintf(name, sizeof name, ".out.bin.tmp.%ld.abcdef01", (long)getpid());
    assert_int_equal(stat(scratch_path(&t, name), &found), 0);
    assert_int_equal(found.st_mode & 0777, 0600);
    assert_ok(embla_durable_write(d, new_bytes, sizeof new_bytes));
    assert_int_equal(embla_durable_size(d), sizeof new_bytes);
    assert_int_equal(scratch_count(&s, NULL), 1);
    assert_ok(embla_durable_sync(d, &temporary));
    assert_string_equal(temporary, t.path);
    assert_true(scratch_holds(temporary, new_bytes, sizeof new_bytes));
    assert_ok(embla_durable_sync(d, &temporary)); /* it has been */
    assert_int_equal(access(s.path, F_OK), -1);
    assert_ok(embla_durable_commit(d));
    assert_true(scratch_holds(s.path, new_bytes, sizeof new_bytes));
    assert_int_equal(scratch_count(&s, NULL), 1);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    scratch_free(&s);
}

/* The n-th call of the system fails, for n = 1, 2, ..: the sentences tell the order. */
static void rule_d1_the_steps_come_in_this_order(void **state)
{
    static const char *const steps[] = {": cannot open it",    ": cannot open it",
                                        "cannot list it",      "out: cannot create it",
                                        "out: cannot lock it", "cannot reserve",
                                        "cannot write it",     "cannot set its length",
                                        "cannot set its mode", "out: cannot create it",
                                        "cannot get its size", "sync it to the disk",
                                        "cannot close it",     "rename the temporary file to it",
                                        "sync it to the disk"};
    scratch s;
    size_t step = 0;
    (void)state;
    scratch_new(&s);
    (void)scratch_path(&s, "out");
    for (size_t n = 1; n < 100; n++) {
        (void)unlink(s.path); /* the same folder each time: a list is a call for each name */
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = write_all(s.path);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) break;
        assert_int_equal(status, EMBLA_ERR_IO);
        /* What people read has the path as it was given, or the folder of it. */
        assert_error_has(s.folder);
        if (!strstr(embla_error(), "list it") && !strstr(embla_error(), "open it"))
            assert_int_equal(strncmp(embla_error(), s.path, strlen(s.path)), 0);
        assert_null(strstr(embla_error(), ".tmp."));
        if (step > 0 && step < COUNT_OF(steps) && !strstr(embla_error(), steps[step]) &&
            strstr(embla_error(), steps[step - 1]))
            continue;
        assert_true(step < COUNT_OF(steps));
        assert_error_has(steps[step]);
        step++;
    }
    assert_int_equal(step, COUNT_OF(steps));
    scratch_free(&s);
}

/* Whatever fails, once or from then on: all of the old file or all of the new one, and no
 * other file. */
static void whatever_fails_leaves_the_old_file_or_the_new_one(void **state)
{
    static const embla_system_error errors[] = {EMBLA_SYSTEM_OTHER, EMBLA_SYSTEM_NO_SPACE,
                                                EMBLA_SYSTEM_REFUSED, EMBLA_SYSTEM_INTERRUPTED};
    scratch s;
    size_t live = embla_io_live(), memory = embla_mem_live(), failed = 0;
    (void)state;
    scratch_new(&s);
    (void)scratch_path(&s, "out");
    for (size_t e = 0; e < COUNT_OF(errors); e++) {
        for (int forever = 0; forever < (errors[e] == EMBLA_SYSTEM_INTERRUPTED ? 1 : 2);
             forever++) {
            for (size_t n = 1;; n++) {
                scratch_write(s.path, old_bytes, sizeof old_bytes);
                embla_io_fail(n, forever, errors[e]);
                embla_status status = write_all(s.path);
                embla_io_fail(0, false, 0);
                if (n > 100) fail_msg("call %zu still fails", n);
                bool old = scratch_holds(s.path, old_bytes, sizeof old_bytes);
                bool new = scratch_holds(s.path, new_bytes, sizeof new_bytes);
                assert_true(old || new);
                assert_int_equal(scratch_count(&s, NULL), 1);
                assert_int_equal(embla_io_live(), live);
                assert_int_equal(embla_mem_live(), memory);
                if (status == EMBLA_OK) assert_true(new);
                /* Only the sync of the folder comes after the new name. */
                if (status != EMBLA_OK && new) assert_error_has("sync it to the disk");
                if (status != EMBLA_OK) failed++;
                if (status == EMBLA_OK && errors[e] != EMBLA_SYSTEM_INTERRUPTED) break;
                if (errors[e] == EMBLA_SYSTEM_INTERRUPTED && n > 20)
                    break; /* some calls are taken up again */
            }
        }
    }
    assert_true(failed > 100);
    scratch_free(&s);
}

static void no_memory_leaves_the_old_file(void **state)
{
    scratch s;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "out"), old_bytes, sizeof old_bytes);
    embla_mem_fail(1, false);
    assert_status(write_all(s.path), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_true(scratch_holds(s.path, old_bytes, sizeof old_bytes));
    assert_int_equal(scratch_count(&s, NULL), 1);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    scratch_free(&s);
}

/* ---- bytes ---- */

/* Pieces shorter and longer than the buffer, runs of one byte, short writes. */
static void pieces_of_any_size_follow_each_other(void **state)
{
    enum { MOST = 5 << 20 };
    static const size_t sizes[] = {0,      1, 7, 4096, 4097, (1 << 20) - 1, 1 << 20, (1 << 20) + 1,
                                   3 << 20};
    scratch s;
    unsigned char *source = malloc(MOST), *whole = calloc(1, 40 << 20);
    (void)state;
    assert_true(source && whole);
    check_fill_bytes(3, MOST, source);
    scratch_new(&s);
    for (uint64_t seed = 1; seed <= 6; seed++) {
        embla_durable *d = NULL;
        uint64_t random = seed;
        size_t used = 0;
        embla_io_short(seed % 2 ? 0 : 100000 + 7 * seed);
        assert_ok(embla_durable_open(scratch_path(&s, "out"), &d));
        if (seed % 3 == 0) assert_ok(embla_durable_reserve(d, 40 << 20));
        for (int i = 0; i < 12; i++) {
            size_t count = sizes[check_below(&random, COUNT_OF(sizes))];
            if (check_below(&random, 3) == 0) {
                assert_ok(embla_durable_fill(d, (uint8_t)i, count));
                memset(whole + used, i, count);
            } else {
                size_t from = check_below(&random, MOST - count);
                assert_ok(embla_durable_write(d, source + from, count));
                memcpy(whole + used, source + from, count);
            }
            used += count;
            assert_int_equal(embla_durable_size(d), used);
        }
        assert_ok(embla_durable_commit(d)); /* what was reserved too much is cut off */
        embla_io_short(0);
        assert_true(scratch_holds(s.path, whole, used));
    }
    free(source);
    free(whole);
    scratch_free(&s);
}

static void a_full_disk_is_met_at_the_start(void **state)
{
    scratch s;
    embla_durable *d = NULL;
    (void)state;
    scratch_new(&s);
    assert_ok(embla_durable_open(scratch_path(&s, "out"), &d));
    assert_ok(embla_durable_reserve(d, 0));
    embla_io_fail(1, false, EMBLA_SYSTEM_NO_SPACE);
    assert_status(embla_durable_reserve(d, 123456), EMBLA_ERR_IO);
    char sentence[SCRATCH_PATH + 100];
    snprintf(sentence, sizeof sentence,
             "%s: cannot reserve 123456 bytes for it: No space left on device", s.path);
    assert_string_equal(embla_error(), sentence);
    assert_status(embla_durable_reserve(d, UINT64_MAX), EMBLA_ERR_IO);
    embla_durable_abandon(d);
    embla_durable_abandon(NULL);
    assert_int_equal(scratch_count(&s, NULL), 0);
    scratch_free(&s);
}

static void the_mode_is_that_of_any_new_file(void **state)
{
    static const mode_t masks[] = {022, 027, 077, 0};
    scratch s;
    struct stat found;
    (void)state;
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(masks); i++) {
        mode_t before = umask(masks[i]);
        assert_ok(write_all(scratch_path(&s, "out")));
        (void)umask(before);
        assert_int_equal(stat(s.path, &found), 0);
        assert_int_equal(found.st_mode & 07777, 0666 & ~masks[i]);
        assert_int_equal(unlink(s.path), 0);
    }
    scratch_free(&s);
}

/* The mask is found without /proc: below a root that has none, as in a small container. */
static void the_mode_of_a_new_file_needs_no_proc(void **state)
{
    scratch s;
    struct stat found;
    int ended = -1;
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can change its root folder: skipped\n");
        skip();
    }
    scratch_new(&s);
    pid_t child = fork();
    if (child == 0) {
        (void)umask(077);
        bool in = chroot(s.folder) == 0 && chdir("/") == 0;
        _exit(in && write_all("/out") == EMBLA_OK ? 0 : 1);
    }
    assert_true(child > 0);
    assert_int_equal(waitpid(child, &ended, 0), child);
    assert_int_equal(ended, 0);
    assert_int_equal(stat(scratch_path(&s, "out"), &found), 0);
    assert_int_equal(found.st_mode & 07777, 0600);
    assert_int_equal(scratch_count(&s, NULL), 1); /* no probe is left */
    scratch_free(&s);
}

/* But that of the file that is replaced, where there is one: who could not read it before
 * cannot read it now. What a link points to is not replaced. */
static void a_file_that_is_replaced_passes_its_mode_on(void **state)
{
    static const mode_t modes[] = {0600, 0640, 0444, 0755, 0666, 01644, 04755, 02640, 0};
    scratch s, t;
    struct stat found;
    (void)state;
    scratch_new(&s);
    t = s;
    mode_t before = umask(022);
    scratch_write(scratch_path(&s, "out"), old_bytes, sizeof old_bytes);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        if (modes[i] == 0 && geteuid() != 0) continue; /* only root reads such a file back */
        assert_int_equal(chmod(s.path, modes[i]), 0);
        assert_ok(write_all(s.path));
        assert_int_equal(stat(s.path, &found), 0);
        assert_int_equal(found.st_mode & 07777, modes[i] & 01777);
    }
    scratch_write(scratch_path(&t, "target"), old_bytes, sizeof old_bytes);
    assert_int_equal(chmod(t.path, 0600) | unlink(s.path) | symlink("target", s.path), 0);
    assert_ok(write_all(s.path));
    assert_int_equal(lstat(s.path, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0644);
    (void)umask(before);
    scratch_free(&s);
}

/* ---- what stands in the way ---- */

static void rule_d1_a_name_that_is_taken_is_never_written_to(void **state)
{
    scratch s, t;
    char name[64];
    embla_durable *d = NULL;
    (void)state;
    scratch_new(&s);
    t = s;
    (void)scratch_path(&s, "out");
    for (int link = 0; link < 2; link++) {
        int fd = -1;
        scratch_write(scratch_path(&t, "precious"), old_bytes, sizeof old_bytes);
        next_name = 77;
        snprintf(name, sizeof name, ".out.tmp.%ld.0000004d", (long)getpid());
        if (link) {
            assert_int_equal(symlink("precious", scratch_path(&t, name)), 0);
        } else { /* of someone who is at it */
            scratch_write(scratch_path(&t, name), old_bytes, sizeof old_bytes);
            fd = open(t.path, O_RDONLY | O_CLOEXEC);
            assert_int_equal(flock(fd, LOCK_EX | LOCK_NB), 0);
        }
        assert_status(embla_durable_open(s.path, &d), EMBLA_ERR_IO);
        assert_error_has("/out: cannot create it: File exists");
        assert_null(d);
        assert_true(scratch_holds(t.path, old_bytes, sizeof old_bytes));
        assert_true(scratch_holds(scratch_path(&t, "precious"), old_bytes, sizeof old_bytes));
        scratch_remove(&s, name);
        assert_ok(write_all(s.path)); /* by another name it can be done */
        if (fd >= 0) assert_int_equal(close(fd), 0);
    }
    no_random = true;
    assert_ok(write_all(s.path));
    no_random = false;
    assert_int_equal(scratch_count(&s, NULL), 2);
    scratch_free(&s);
}

/* ---- where nothing is to be replaced ---- */

static embla_status write_new(const char *path)
{
    embla_durable *d = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = embla_durable_write(d, new_bytes, sizeof new_bytes);
    if (status == EMBLA_OK) return embla_durable_commit_new(d);
    embla_durable_abandon(d);
    return status;
}

static void a_new_file_replaces_nothing(void **state)
{
    static const int systems[] = {0, ENOSYS, EINVAL};
    scratch s;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(systems); i++) {
        char sentence[SCRATCH_PATH + 20];
        no_rename_new = systems[i];
        scratch_write(scratch_path(&s, "out"), old_bytes, sizeof old_bytes);
        assert_status(write_new(s.path), EMBLA_ERR_ARGUMENT);
        snprintf(sentence, sizeof sentence, "%s already exists", s.path);
        assert_string_equal(embla_error(), sentence);
        assert_true(scratch_holds(s.path, old_bytes, sizeof old_bytes));
        assert_int_equal(unlink(s.path) | symlink("nowhere", s.path), 0);
        assert_status(write_new(s.path), EMBLA_ERR_ARGUMENT);
        assert_int_equal(unlink(s.path), 0);
        assert_ok(write_new(s.path));
        assert_true(scratch_holds(s.path, new_bytes, sizeof new_bytes));
        assert_int_equal(scratch_count(&s, NULL), 1);
    }
    no_rename_new = EROFS; /* any other refusal is one */
    assert_int_equal(unlink(s.path), 0);
    assert_status(write_new(s.path), EMBLA_ERR_IO);
    assert_error_has("/out: cannot rename the temporary file to it: Read-only file system");
    no_rename_new = 0;
    assert_int_equal(scratch_count(&s, NULL), 0);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    scratch_free(&s);
}

/* Runs body in so many children at once; how many of them ended with 0. Any other end than
 * 0 or 1 fails. */
static int in_children(int count, int (*body)(const char *path), const char *path)
{
    int well = 0, gate[2];
    pid_t children[16];
    char byte;
    assert_true(count <= 16 && pipe(gate) == 0);
    for (int i = 0; i < count; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        (void)alarm(240);
        (void)close(gate[1]);
        while (read(gate[0], &byte, 1) > 0) continue; /* until all are there */
        _exit(body(path));
    }
    assert_int_equal(close(gate[0]) | close(gate[1]), 0);
    for (int i = 0; i < count; i++) {
        int status = 0;
        assert_int_equal(waitpid(children[i], &status, 0), children[i]);
        assert_true(WIFEXITED(status) && WEXITSTATUS(status) < 2);
        well += WEXITSTATUS(status) == 0;
    }
    return well;
}

static int want_the_name(const char *path)
{
    embla_status status = write_new(path);
    if (status == EMBLA_OK) return 0;
    return status == EMBLA_ERR_ARGUMENT && strstr(embla_error(), " exists") ? 1 : 2;
}

static void of_several_that_want_a_new_name_one_gets_it(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    (void)scratch_path(&s, "out");
    for (int round = 0; round < 40; round++) {
        no_rename_new = round % 2 ? ENOSYS : 0;
        assert_int_equal(in_children(8, want_the_name, s.path), 1);
        assert_true(scratch_holds(s.path, new_bytes, sizeof new_bytes));
        assert_int_equal(scratch_count(&s, NULL), 1);
        assert_int_equal(unlink(s.path), 0);
    }
    no_rename_new = 0;
    scratch_free(&s);
}

static int write_often(const char *path)
{
    for (int i = 0; i < 200; i++)
        if (write_all(path) != EMBLA_OK) {
            print_message("%s\n", embla_error());
            return 2;
        }
    return 0;
}

/* Each sweeps before it writes, at any moment of the others' writing; also if each uses one
 * temporary name again and again. */
static void writers_of_one_path_do_not_sweep_each_other(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    (void)scratch_path(&s, "out");
    for (int round = 0; round < 2; round++) {
        same_name = round == 1;
        assert_int_equal(in_children(6, write_often, s.path), 6);
        assert_true(scratch_holds(s.path, new_bytes, sizeof new_bytes));
        assert_int_equal(scratch_count(&s, NULL), 1);
    }
    same_name = false;
    scratch_free(&s);
}

/* ---- leftovers ---- */

static void leave(scratch *s, const char *name)
{
    scratch_write(scratch_path(s, name), "half", 4);
}

/* By its name it could be ours, and nobody has it locked; whose process number it has does
 * not matter: numbers are others in another container. */
static void what_nobody_writes_any_more_is_swept_and_nothing_else(void **state)
{
    static const char *const foreign[] = {
        ".other.tmp.1.0badcafe", ".out.tmp.1",           ".out.tmp.1x.0badcafe",
        ".out.tmp.-1.0badcafe",  "out.tmp.1.0badcafe",   ".out.tmp.x1.0badcafe",
        ".out.tmp.1.",           ".out.tmp..0badcafe",   ".out.tmp.1.0badcaf",
        ".out.tmp.1.0badcafe0",  ".out.tmp.1.0badcafe~", ".out.tmp.1.0badcafe.npy",
        ".out.tmp.1.0BADCAFE",   ".out.tmp.1.0badcafg",  ".out.tmp.2024.budget",
        ".out.tmp. 1.0badcafe",  ".out.tmp.1.0badcafe ", ".out.tmp.+1.0badcafe"};
    char name[64];
    scratch s;
    (void)state;
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(foreign); i++) leave(&s, foreign[i]);
    leave(&s, ".out.tmp.1.0badcafe"); /* a process that is always there */
    leave(&s, ".out.tmp.99999999999999999999.00000000");
    snprintf(name, sizeof name, ".out.tmp.%ld.0badcafe", (long)getpid());
    leave(&s, name);
    snprintf(name, sizeof name, ".out.tmp.%ld.0badcafe", (long)getppid());
    leave(&s, name);
    assert_ok(write_all(scratch_path(&s, "out")));
    assert_int_equal(scratch_count(&s, NULL), COUNT_OF(foreign) + 1);
    for (size_t i = 0; i < COUNT_OF(foreign); i++)
        assert_int_equal(access(scratch_path(&s, foreign[i]), F_OK), 0);
    scratch_free(&s);
}

/* Until it has its name, also once it is synced and closed. */
static void what_someone_writes_is_not_swept(void **state)
{
    scratch s;
    embla_durable *first = NULL;
    const char *temporary = NULL;
    (void)state;
    scratch_new(&s);
    assert_ok(embla_durable_open(scratch_path(&s, "out"), &first));
    assert_ok(embla_durable_write(first, old_bytes, sizeof old_bytes));
    assert_ok(write_all(s.path));
    assert_int_equal(scratch_count(&s, NULL), 2);
    assert_ok(embla_durable_sync(first, &temporary));
    assert_ok(write_all(s.path));
    assert_true(scratch_holds(temporary, old_bytes, sizeof old_bytes));
    assert_ok(embla_durable_commit(first));
    assert_true(scratch_holds(s.path, old_bytes, sizeof old_bytes));
    assert_int_equal(scratch_count(&s, NULL), 1);
    scratch_free(&s);
}

/* kill -9 in the middle of writing: the next run sweeps. */
static void a_killed_writer_leaves_the_old_file_and_the_next_sweeps(void **state)
{
    scratch s;
    int ready[2];
    char byte = 0;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "out"), old_bytes, sizeof old_bytes);
    assert_int_equal(pipe(ready), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        embla_durable *d = NULL;
        (void)alarm(240); /* should the test end without it */
        if (embla_durable_open(s.path, &d) != EMBLA_OK ||
            embla_durable_fill(d, 1, 3 << 20) != EMBLA_OK || write(ready[1], "x", 1) != 1)
            _exit(1);
        for (;;) (void)pause();
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    assert_int_equal(scratch_count(&s, ".out.tmp."), 1);
    assert_ok(write_all(s.path)); /* while it lives its file is its own */
    assert_int_equal(scratch_count(&s, ".out.tmp."), 1);
    scratch_write(s.path, old_bytes, sizeof old_bytes);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    assert_true(scratch_holds(s.path, old_bytes, sizeof old_bytes));
    assert_int_equal(scratch_count(&s, ".out.tmp."), 1);
    assert_ok(write_all(s.path));
    assert_int_equal(scratch_count(&s, NULL), 1);
    assert_int_equal(close(ready[0]) | close(ready[1]), 0);
    scratch_free(&s);
}

static void rule_d5_who_has_the_old_file_open_keeps_it(void **state)
{
    scratch s;
    struct stat before, after;
    char back[sizeof old_bytes];
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "out"), old_bytes, sizeof old_bytes);
    int fd = open(s.path, O_RDONLY | O_CLOEXEC);
    assert_true(fd >= 0);
    assert_int_equal(fstat(fd, &before), 0);
    assert_ok(write_all(s.path));
    assert_int_equal(pread(fd, back, sizeof back, 0), sizeof back);
    assert_memory_equal(back, old_bytes, sizeof back);
    assert_int_equal(stat(s.path, &after), 0);
    assert_true(after.st_ino != before.st_ino);
    assert_int_equal(close(fd), 0);
    scratch_free(&s);
}

static void a_link_is_replaced_not_followed(void **state)
{
    scratch s, t;
    struct stat found;
    (void)state;
    scratch_new(&s);
    t = s;
    scratch_write(scratch_path(&t, "target"), old_bytes, sizeof old_bytes);
    assert_int_equal(symlink("target", scratch_path(&s, "out")), 0);
    assert_ok(write_all(s.path));
    assert_true(scratch_holds(t.path, old_bytes, sizeof old_bytes));
    assert_int_equal(lstat(s.path, &found), 0);
    assert_true(S_ISREG(found.st_mode));
    scratch_free(&s);
}

/* ---- paths ---- */

static void a_path_that_names_no_file_is_refused(void **state)
{
    static const char *const names[] = {"", "/", ".", "..", "folder/", "a/..", "a/."};
    embla_durable *d = NULL;
    scratch s;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(names); i++) {
        assert_status(embla_durable_open(names[i], &d), EMBLA_ERR_ARGUMENT);
        assert_error_has("does not name a file");
    }
    scratch_new(&s);
    assert_status(embla_durable_open(scratch_path(&s, "none/out"), &d), EMBLA_ERR_NOT_FOUND);
    assert_error_has("none: cannot open it");
    scratch_write(scratch_path(&s, "file"), "x", 1);
    assert_status(embla_durable_open(scratch_path(&s, "file/out"), &d), EMBLA_ERR_NOT_FOUND);
    assert_null(d);
    assert_int_equal(mkdir(scratch_path(&s, "folder"), 0700), 0);
    assert_status(write_all(s.path), EMBLA_ERR_IO); /* a folder has the name */
    assert_error_has("folder: cannot rename the temporary file to it");
    assert_int_equal(scratch_count(&s, NULL), 2);
    scratch_free(&s);
}

static void paths_may_be_bare_relative_or_doubly_slashed(void **state)
{
    scratch s;
    char here[SCRATCH_PATH];
    (void)state;
    scratch_new(&s);
    assert_non_null(getcwd(here, sizeof here));
    assert_int_equal(chdir(s.folder), 0);
    assert_ok(write_all("bare"));
    assert_ok(write_all("./dotted"));
    assert_ok(write_all(".//slashed"));
    assert_ok(write_all("-dash"));
    assert_ok(write_all("two words \xc3\xa9\n"));
    assert_int_equal(chdir(here), 0);
    assert_int_equal(scratch_count(&s, NULL), 5);
    scratch_free(&s);
}

/* The whole name is in the temporary file's: two long names do not meet, and what is left
 * of one is found again. */
static void long_names_are_kept_whole_or_refused(void **state)
{
    char name[301];
    scratch s;
    size_t longest = 0;
    (void)state;
    scratch_new(&s);
    for (size_t length = 180; length <= 300; length++) {
        embla_durable *d = NULL;
        memset(name, 'n', length);
        name[length] = '\0';
        embla_status status = embla_durable_open(scratch_path(&s, name), &d);
        if (status != EMBLA_OK) {
            char number[32];
            snprintf(number, sizeof number, "the file name has %zu bytes", length);
            assert_int_equal(status, EMBLA_ERR_ARGUMENT);
            assert_error_has(number);
            continue;
        }
        longest = length;
        assert_int_equal(scratch_count(&s, name), 1);
        assert_int_equal(scratch_count(&s, ".tmp."), 1);
        embla_durable_abandon(d);
        assert_int_equal(scratch_count(&s, NULL), 0);
    }
    assert_true(longest >= 200);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_file_gets_its_name_only_when_it_is_complete),
        cmocka_unit_test(rule_d1_the_steps_come_in_this_order),
        cmocka_unit_test(whatever_fails_leaves_the_old_file_or_the_new_one),
        cmocka_unit_test(no_memory_leaves_the_old_file),
        cmocka_unit_test(pieces_of_any_size_follow_each_other),
        cmocka_unit_test(a_full_disk_is_met_at_the_start),
        cmocka_unit_test(the_mode_is_that_of_any_new_file),
        cmocka_unit_test(the_mode_of_a_new_file_needs_no_proc),
        cmocka_unit_test(a_file_that_is_replaced_passes_its_mode_on),
        cmocka_unit_test(rule_d1_a_name_that_is_taken_is_never_written_to),
        cmocka_unit_test(a_new_file_replaces_nothing),
        cmocka_unit_test(of_several_that_want_a_new_name_one_gets_it),
        cmocka_unit_test(writers_of_one_path_do_not_sweep_each_other),
        cmocka_unit_test(what_nobody_writes_any_more_is_swept_and_nothing_else),
        cmocka_unit_test(what_someone_writes_is_not_swept),
        cmocka_unit_test(a_killed_writer_leaves_the_old_file_and_the_next_sweeps),
        cmocka_unit_test(rule_d5_who_has_the_old_file_open_keeps_it),
        cmocka_unit_test(a_link_is_replaced_not_followed),
        cmocka_unit_test(a_path_that_names_no_file_is_refused),
        cmocka_unit_test(paths_may_be_bare_relative_or_doubly_slashed),
        cmocka_unit_test(long_names_are_kept_whole_or_refused),
    };
    return cmocka_run_group_tests_name("durable", tests, NULL, NULL);
}
