/* SPDX-License-Identifier: Apache-2.0 */
/* One copy for all processes (store/shared.c): who makes it, who finds it, what is refused, and
 * what is left behind when anything on the way fails or is stopped. tests/crash/kill_shared.c
 * kills builders; this one runs them into errors.
 *
 * fstatvfs, posix_fallocate and madvise are this program's own where a test wants them to be:
 * a full folder, and a system without huge pages.
 */
#include <errno.h>
#include <math.h>
#include <pthread.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/mman.h>
#include <sys/statvfs.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <time.h>

#include "base/checksum.h"
#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"
#include "slow.h"
#include "store/store.h"

static uint64_t free_bytes; /* what fstatvfs says; 0: the truth */
static long full_after;     /* calls of posix_fallocate that succeed; -1: all */
static bool no_advice;      /* madvise knows nothing of huge pages */

/* Instead of the C library's. */
int fstatvfs(int fd, struct statvfs *out)
{
    (void)fd;
    memset(out, 0, sizeof *out);
    out->f_frsize = 1;
    out->f_bavail = free_bytes ? free_bytes : (uint64_t)1 << 40;
    return 0;
}

int posix_fallocate(int fd, off_t offset, off_t bytes)
{
    if (full_after >= 0 && full_after-- == 0) return ENOSPC;
    return syscall(SYS_fallocate, fd, 0, offset, bytes) == 0 ? 0 : errno;
}

int madvise(void *memory, size_t bytes, int advice)
{
    if (no_advice && (advice == 22 || advice == 23 || advice == 25)) {
        errno = EINVAL;
        return -1;
    }
    return (int)syscall(SYS_madvise, memory, bytes, advice);
}

enum { DIM = 64, SCALES = 2, ROW = DIM + SCALES, MANIFEST = 17 * 8 + 2 * 8, DATA_AT = 2 << 20 };

/* Two files: of the first 40 % of rows numbers and scales lie apart, of the others together. */
typedef struct {
    scratch s, shared;
    char files[2][SCRATCH_PATH];
    embla_row_format format;
    embla_extent extents[2];
    embla_store_options options;
    int64_t rows;
    unsigned char *expected; /* rows x ROW */
} given;

static void given_new(given *g, int64_t rows)
{
    int64_t first = rows * 2 / 5;
    *g = (given){.rows = rows};
    full_after = -1;
    free_bytes = 0;
    no_advice = false;
    scratch_new(&g->s);
    (void)snprintf(g->shared.folder, sizeof g->shared.folder, "/dev/shm/embla-test-XXXXXX");
    assert_non_null(mkdtemp(g->shared.folder));
    g->expected = malloc((size_t)rows * ROW + 1);
    assert_non_null(g->expected);
    check_fill_bytes(7, (size_t)rows * ROW, g->expected);
    unsigned char *bytes = calloc(1, (size_t)rows * ROW + 100);
    assert_non_null(bytes);
    for (int64_t r = 0; r < first; r++) {
        memcpy(bytes + 10 + r * DIM, g->expected + r * ROW, DIM);
        memcpy(bytes + 10 + first * DIM + r * SCALES, g->expected + r * ROW + DIM, SCALES);
    }
    for (int i = 0; i < 2; i++)
        (void)snprintf(g->files[i], SCRATCH_PATH, "%s/%d.bin", g->s.folder, i);
    scratch_write(g->files[0], bytes, (size_t)first * ROW + 10);
    memcpy(bytes + 64, g->expected + first * ROW, (size_t)(rows - first) * ROW);
    scratch_write(g->files[1], bytes, (size_t)(rows - first) * ROW + 64);
    free(bytes);
    g->format = (embla_row_format){
        .dim = DIM, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32, .scale = 1};
    g->extents[0] = (embla_extent){
        .file = g->files[0], .offset = 10, .scale_offset = 10 + first * DIM, .rows = first};
    g->extents[1] =
        (embla_extent){.file = g->files[1], .offset = 64, .scale_offset = -1, .rows = rows - first};
    g->options = (embla_store_options){
        .placement = EMBLA_PLACEMENT_SHARED, .shared_folder = g->shared.folder, .threads = 1};
}

static void given_free(given *g)
{
    full_after = -1;
    free(g->expected);
    scratch_free(&g->s);
    scratch_free(&g->shared);
}

static embla_status open_it(const given *g, embla_store **out)
{
    return embla_store_open_extents(&g->format, g->extents, 2, &g->options, out);
}

static embla_store *opened(const given *g)
{
    embla_store *store = NULL;
    assert_ok(open_it(g, &store));
    return store;
}

static embla_store_info info_of(const embla_store *store)
{
    embla_store_info info;
    assert_ok(embla_store_describe(store, &info));
    return info;
}

/* All rows, as they must be. */
static void check_rows(const given *g, const embla_store *store)
{
    assert_int_equal(store->stride, ROW);
    assert_memory_equal(store->data, g->expected, (size_t)g->rows * ROW);
}

/* The path of the one copy that there is. */
static char *only_copy(given *g)
{
    embla_store *store = opened(g);
    char *path = strdup(info_of(store).shared);
    embla_store_free(store);
    return path;
}

/* A refusal with this in its sentence, and what to do; the file stays as it is. */
static void check_refused(const given *g, const char *path, embla_status wanted, const char *text)
{
    size_t before = 0, after = 0;
    embla_store *store = NULL;
    unsigned char *old = scratch_read(path, &before);
    assert_status(open_it(g, &store), wanted);
    assert_null(store);
    assert_error_has(text);
    unsigned char *now = scratch_read(path, &after);
    if (old || now) {
        assert_int_equal(before, after);
        assert_memory_equal(old, now, before);
    }
    free(old);
    free(now);
}

/* ---- one builds, the others find ---- */

/* Whether this system puts files in memory on huge pages when asked to. */
static bool huge_pages_granted(void)
{
    if (EMULATED) return false; /* qemu answers every advice with success, and follows none */
    enum { HUGE = 2 << 20 };
    char path[] = "/dev/shm/embla-probe-XXXXXX";
    int fd = mkstemp(path);
    bool granted = false;
    assert_true(fd >= 0);
    assert_int_equal(unlink(path) | ftruncate(fd, HUGE), 0);
    char *room = mmap(NULL, 2 * HUGE, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);
    char *at = (char *)(((uintptr_t)room + HUGE - 1) & ~(uintptr_t)(HUGE - 1));
    if (mmap(at, HUGE, PROT_READ | PROT_WRITE, MAP_SHARED | MAP_FIXED, fd, 0) == at) {
        *at = 1;
        granted = syscall(SYS_madvise, at, HUGE, 25) == 0; /* MADV_COLLAPSE */
    }
    (void)munmap(room, 2 * HUGE);
    close(fd);
    return granted;
}

/* All whole huge pages of the rows are, and rows can be fetched in any order. */
static void rows_are_on_huge_pages(void **state)
{
    enum { MANY = 3000 };
    given g;
    int64_t rows[MANY];
    char *out = malloc((size_t)MANY * ROW);
    embla_row_part part;
    uint64_t seed = 5;
    (void)state;
    given_new(&g, 150000);                 /* 9.9 MB */
    for (int turn = 0; turn < 2; turn++) { /* the one who builds, and one who finds */
        embla_store *store = opened(&g);
        assert_true(info_of(store).built == (turn == 0));
        if (huge_pages_granted()) assert_int_equal(info_of(store).huge_bytes, 4 * (2 << 20));
        assert_ok(embla_row_part_of(&store->row, 0, 0, &part));
        for (int i = 0; i < MANY; i++) rows[i] = (int64_t)check_below(&seed, 150000);
        rows[0] = 0;
        rows[1] = 149999;
        const embla_row_source source = embla_store_source(store);
        const embla_read_job job = {.rows = rows,
                                    .count = MANY,
                                    .known = MANY,
                                    .part = &part,
                                    .out = out,
                                    .out_stride = ROW};
        assert_ok(embla_source_read(&source, &job));
        for (int i = 0; i < MANY; i++)
            assert_memory_equal(out + i * ROW, g.expected + rows[i] * ROW, ROW);
        embla_store_free(store);
    }
    free(out);
    given_free(&g);
}

static void the_first_builds_and_later_ones_find(void **state)
{
    given g;
    struct stat found;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    given_new(&g, 1000);
    embla_store *first = opened(&g), *second = opened(&g);
    embla_store_info a = info_of(first), b = info_of(second);
    assert_true(a.built);
    assert_false(b.built);
    assert_string_equal(a.shared, b.shared);
    assert_int_equal(a.placement, EMBLA_PLACEMENT_SHARED);
    assert_int_equal(a.bytes, 1000 * ROW);
    assert_int_equal(a.resident, a.bytes);
    check_rows(&g, first);
    check_rows(&g, second);
    assert_true(first->data != second->data);
    assert_int_equal((uintptr_t)first->data % DATA_AT, 0);
    assert_int_equal(scratch_count(&g.shared, NULL), 1); /* no lock, no temporary file */
    assert_int_equal(stat(a.shared, &found), 0);
    assert_int_equal(found.st_mode & 07777, 0444);
    assert_int_equal(found.st_size, DATA_AT + 1000 * ROW);
    embla_store_free(first);
    check_rows(&g, second);
    embla_store_free(second);
    second = opened(&g);
    assert_false(info_of(second).built);
    embla_store_free(second);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    given_free(&g);
}

/* It can be read by those who can read all of its files. */
static void a_copy_is_as_private_as_its_files(void **state)
{
    static const unsigned modes[][3] = {
        {0600, 0644, 0400}, {0640, 0644, 0440}, {0666, 0755, 0444}, {0604, 0644, 0404}};
    given g;
    struct stat found;
    (void)state;
    given_new(&g, 10);
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(g.files[0], modes[i][0]), 0);
        assert_int_equal(chmod(g.files[1], modes[i][1]), 0);
        char *path = only_copy(&g);
        assert_int_equal(stat(path, &found), 0);
        assert_int_equal(found.st_mode & 07777, modes[i][2]);
        assert_int_equal(unlink(path), 0);
        free(path);
    }
    given_free(&g);
}

static void set_time(const char *path, long seconds, long nanoseconds)
{
    struct timespec times[2] = {{.tv_sec = seconds, .tv_nsec = nanoseconds},
                                {.tv_sec = seconds, .tv_nsec = nanoseconds}};
    assert_int_equal(utimensat(AT_FDCWD, path, times, 0), 0);
}

/* Another file with the same bytes and the same time. */
static void replace(const char *path)
{
    char other[SCRATCH_PATH + 8];
    size_t bytes = 0;
    unsigned char *all = scratch_read(path, &bytes);
    (void)snprintf(other, sizeof other, "%s.other", path);
    scratch_write(other, all, bytes);
    assert_int_equal(rename(other, path), 0);
    free(all);
}

/* "embla-" and 16 hex digits, the same for the same rows, another for any others. */
static void the_name_is_made_of_what_the_rows_are(void **state)
{
    static const char *const what[] = {"nothing", "scale",   "threads",     "last rows",
                                       "rows",    "offset",  "file",        "dtype",
                                       "scales",  "seconds", "nanoseconds", "another file"};
    given g;
    char *names[COUNT_OF(what)];
    (void)state;
    given_new(&g, 100);
    set_time(g.files[1], 1000, 5);
    for (size_t i = 0; i < COUNT_OF(what); i++) {
        given h = g;
        if (i == 1) h.format.scale = 2;
        if (i == 2) h.options.threads = 3;
        if (i == 3) h.extents[1].rows = 59;
        if (i == 4) h.extents[0].rows = 39;
        if (i == 5) h.extents[1].offset = 63;
        if (i == 6) h.extents[0] = h.extents[1];
        if (i == 7 || i == 8) h.format.scales = EMBLA_SCALES_NONE;
        if (i == 7) h.format.dtype = EMBLA_F8_E5M2;
        if (i == 9) set_time(g.files[1], 1001, 5);
        if (i == 10) set_time(g.files[1], 1001, 6);
        if (i == 11) replace(g.files[1]), set_time(g.files[1], 1001, 6);
        names[i] = only_copy(&h);
        const char *name = strrchr(names[i], '/') + 1;
        assert_int_equal(strncmp(name, "embla-", 6), 0);
        assert_int_equal(strspn(name + 6, "0123456789abcdef"), 16);
        assert_int_equal(strlen(name), 22);
        for (size_t k = 0; k < i; k++) {
            bool same = strcmp(names[i], names[k]) == 0, must = i < 3;
            if (same != must) fail_msg("%s and %s: %s", what[i], what[k], names[i]);
        }
    }
    /* the copy of "file" is swept: its first row is in the file that changes afterwards */
    assert_int_equal(scratch_count(&g.shared, NULL), COUNT_OF(what) - 3);
    for (size_t i = 0; i < COUNT_OF(what); i++) free(names[i]);
    given_free(&g);
}

/* Rows at the same places of the same two files, but of the one or of the other. */
static void the_name_says_which_file_it_is(void **state)
{
    given g;
    char *names[2];
    (void)state;
    given_new(&g, 100);
    for (int i = 0; i < 2; i++) {
        embla_store *store = NULL;
        embla_extent extents[3] = {g.extents[1], g.extents[1], g.extents[1]};
        for (int k = 0; k < 3; k++) extents[k].rows = 10;
        extents[1].file = g.files[0];
        extents[2].file = g.files[i];
        assert_ok(embla_store_open_extents(&g.format, extents, 3, &g.options, &store));
        names[i] = strdup(info_of(store).shared);
        embla_store_free(store);
    }
    assert_string_not_equal(names[0], names[1]);
    free(names[0]);
    free(names[1]);
    given_free(&g);
}

static void rows_of_every_size_and_number(void **state)
{
    static const int64_t counts[] = {3, 7, 64, 31775, 31776, 100000}; /* 2 MiB: 31775.03 rows */
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        for (int threads = 1; threads <= 3; threads += 2) {
            given g;
            given_new(&g, counts[i]);
            g.options.threads = threads;
            no_advice = i % 2;
            embla_store *store = opened(&g);
            check_rows(&g, store);
            assert_ok(embla_store_warm(store, NULL));
            int64_t huge = info_of(store).huge_bytes;
            assert_in_range((uint64_t)(huge + 1), 0, (uint64_t)(counts[i] * ROW + 1));
            if (no_advice) assert_true(huge <= 0);
            embla_store_free(store);
            given_free(&g);
        }
    }
}

/* Longer than one piece: 64 MiB have their own checksum. */
static void a_damaged_row_is_found_in_its_piece(void **state)
{
    given g;
    (void)state;
    given_new(&g, 1100000); /* 72.6 MB */
    g.options.threads = 2;
    embla_store *store = opened(&g);
    check_rows(&g, store);
    assert_ok(embla_store_warm(store, NULL));
    char *path = strdup(info_of(store).shared);
    assert_int_equal(chmod(path, 0600), 0);
    int fd = open(path, O_RDWR);
    static const struct {
        off_t at;
        const char *text;
    } damage[] = {{DATA_AT + 5, "from row 0 on"},
                  {DATA_AT + (64 << 20) - 1, "from row 0 on"},
                  {DATA_AT + (64 << 20), "from row 1016800 on"},
                  {DATA_AT + 1100000 * ROW - 1, "from row 1016800 on"},
                  {4096 + 17, "its checksums are damaged"}};
    for (size_t i = 0; i < COUNT_OF(damage); i++) {
        unsigned char byte = 0;
        assert_int_equal(pread(fd, &byte, 1, damage[i].at), 1);
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, damage[i].at), 1);
        assert_status(embla_store_warm(store, NULL), EMBLA_ERR_IO);
        assert_error_has(damage[i].text);
        assert_error_has("rm ");
        byte ^= 1;
        assert_int_equal(pwrite(fd, &byte, 1, damage[i].at), 1);
    }
    assert_ok(embla_store_warm(store, NULL));
    close(fd);
    embla_store_free(store);
    free(path);
    given_free(&g);
}

/* ---- what is refused ---- */

static void names_and_folders_are_checked(void **state)
{
    static const char *const bad[] = {"", ".", "..", ".hidden", "a/b", "/abs"};
    char name[256];
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 10);
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        g.options.shared_name = bad[i];
        assert_status(open_it(&g, &store), EMBLA_ERR_ARGUMENT);
        assert_error_has("is not a valid name for a copy");
    }
    memset(name, 'n', sizeof name);
    name[201] = '\0';
    g.options.shared_name = name;
    assert_status(open_it(&g, &store), EMBLA_ERR_ARGUMENT);
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    name[200] = '\0';
    store = opened(&g);
    assert_string_equal(strrchr(info_of(store).shared, '/') + 1, name);
    embla_store_free(store);
    store = NULL;
    g.options.shared_folder = "/nowhere/at/all";
    assert_status(open_it(&g, &store), EMBLA_ERR_NOT_FOUND);
    assert_error_has("/nowhere/at/all");
    g.options.shared_folder = g.files[0];
    assert_status(open_it(&g, &store), EMBLA_ERR_NOT_FOUND);
    char *folder = malloc(3000);
    memset(folder, '/', 2999);
    folder[2999] = '\0';
    g.options.shared_folder = folder;
    assert_status(open_it(&g, &store), EMBLA_ERR_ARGUMENT);
    free(folder);
    assert_null(store);
    given_free(&g);
}

static void a_copy_that_does_not_fit_is_refused_and_left(void **state)
{
    given g, other;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 10);
    g.options.shared_name = "mine";
    char *path = only_copy(&g);
    /* Other rows under a name that was given. */
    other = g;
    other.extents[1].rows = 4;
    check_refused(&other, path, EMBLA_ERR_FORMAT, "contains 10 rows of 66 bytes from other files");
    assert_error_has("(expected: 8 rows of 66 bytes)");
    assert_error_has("rm /dev/shm/embla-test-");
    /* Every bit of the manifest counts. */
    int fd = open(path, O_RDONLY);
    assert_int_equal(chmod(path, 0600), 0);
    close(fd);
    fd = open(path, O_RDWR);
    for (off_t at = 0; at < MANIFEST; at++) {
        unsigned char byte = 0;
        assert_int_equal(pread(fd, &byte, 1, at), 1);
        byte ^= (unsigned char)(1 << at % 8);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
        assert_status(open_it(&g, &store), EMBLA_ERR_FORMAT);
        assert_error_has("rm ");
        byte ^= (unsigned char)(1 << at % 8);
        assert_int_equal(pwrite(fd, &byte, 1, at), 1);
    }
    embla_store_free(opened(&g));
    /* Longer, shorter, much shorter. */
    assert_int_equal(ftruncate(fd, DATA_AT + 10 * ROW + 1), 0);
    check_refused(&g, path, EMBLA_ERR_FORMAT, "has 2097813 bytes; expected: 2097812");
    assert_int_equal(ftruncate(fd, DATA_AT + 10 * ROW - 1), 0);
    check_refused(&g, path, EMBLA_ERR_FORMAT, "has 2097811 bytes; expected: 2097812");
    assert_int_equal(ftruncate(fd, 100), 0);
    check_refused(&g, path, EMBLA_ERR_FORMAT, "too short");
    assert_int_equal(ftruncate(fd, 0), 0);
    check_refused(&g, path, EMBLA_ERR_FORMAT, "empty");
    close(fd);
    free(path);
    given_free(&g);
}

/* A manifest whose checksum is right, of another version or with another layout. */
static void a_copy_of_another_version_is_refused(void **state)
{
    given g;
    uint64_t words[MANIFEST / 8];
    (void)state;
    given_new(&g, 10);
    char *path = only_copy(&g);
    assert_int_equal(chmod(path, 0600), 0);
    int fd = open(path, O_RDWR);
    static const struct {
        size_t word;
        const char *text;
    } changes[] = {{2, "has format version 2; this library uses version 1"},
                   {10, "has a manifest that does not match the files"},
                   {12, "has a manifest that does not match the files"},
                   {13, "has a manifest that does not match the files"},
                   {5, "has a manifest that does not match the files"}};
    for (size_t i = 0; i < COUNT_OF(changes); i++) {
        embla_checksum_state sum;
        uint64_t changed[MANIFEST / 8];
        assert_int_equal(pread(fd, words, sizeof words, 0), sizeof words);
        memcpy(changed, words, sizeof words);
        changed[changes[i].word]++;
        embla_checksum_begin(&sum);
        embla_checksum_add(&sum, changed, sizeof changed - 16);
        embla_checksum self = embla_checksum_end(&sum);
        changed[MANIFEST / 8 - 2] = self.high;
        changed[MANIFEST / 8 - 1] = self.low;
        assert_int_equal(pwrite(fd, changed, sizeof changed, 0), sizeof changed);
        check_refused(&g, path, EMBLA_ERR_FORMAT, changes[i].text);
        assert_int_equal(pwrite(fd, words, sizeof words, 0), sizeof words);
    }
    embla_store_free(opened(&g));
    close(fd);
    free(path);
    given_free(&g);
}

static void what_is_no_file_of_ours_is_refused(void **state)
{
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 10);
    g.options.shared_name = "mine";
    char *path = only_copy(&g);
    static const unsigned modes[] = {0464, 0446, 0666, 0644 | 0020};
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        assert_int_equal(chmod(path, modes[i]), 0);
        check_refused(&g, path, EMBLA_ERR_IO, "other users can write to it");
    }
    assert_int_equal(chmod(path, 0644), 0); /* by its owner alone */
    embla_store_free(opened(&g));
    if (geteuid() == 0) {
        assert_int_equal(chown(path, 12345, 12345), 0);
        check_refused(&g, path, EMBLA_ERR_IO, "belongs to user 12345");
        assert_error_has("Choose another name");
    }
    char kept[SCRATCH_PATH];
    (void)snprintf(kept, sizeof kept, "%s/kept", g.shared.folder);
    assert_int_equal(rename(path, kept), 0);
    assert_int_equal(symlink("kept", path), 0);
    assert_status(open_it(&g, &store), EMBLA_ERR_IO);
    assert_error_has("symbolic link");
    assert_int_equal(unlink(path), 0);
    assert_int_equal(mkdir(path, 0700), 0);
    assert_status(open_it(&g, &store), EMBLA_ERR_UNSUPPORTED);
    assert_int_equal(rmdir(path), 0);
    assert_int_equal(mkfifo(path, 0600), 0);
    assert_status(open_it(&g, &store), EMBLA_ERR_UNSUPPORTED);
    assert_int_equal(scratch_count(&g.shared, NULL), 2);
    assert_null(store);
    free(path);
    given_free(&g);
}

static void rows_of_a_process_cannot_be_shared(void **state)
{
    given g;
    embla_store *store = NULL, *out = NULL;
    embla_map *map = NULL;
    (void)state;
    given_new(&g, 10);
    assert_ok(embla_map_bytes(g.expected, 10 * ROW, "bytes", &map));
    assert_ok(embla_store_begin(&g.format, &g.options, &store));
    embla_extent_at extent = {
        .rows = 10, .map = {map, map}, .offset = {0, DIM}, .stride = {ROW, ROW}};
    assert_ok(embla_extents_add(store, extent));
    embla_map_free(map);
    assert_status(embla_store_finish(store, &out), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("cannot be shared");
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    given_free(&g);
}

static void a_full_folder_is_a_status(void **state)
{
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 200000); /* 13.2 MB */
    free_bytes = 1000;
    assert_status(open_it(&g, &store), EMBLA_ERR_IO);
    assert_error_has(
        "needs 13204112 bytes, but its folder has only 1000"); /* rows, page, one checksum */
    free_bytes = 13204111;
    assert_status(open_it(&g, &store), EMBLA_ERR_IO);
    free_bytes = 13204112;
    embla_store_free(opened(&g));
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    given_free(&g);
    for (long calls = 0; calls < 2; calls++) { /* it was free when we looked */
        given_new(&g, 200000);
        no_advice = calls;
        full_after = calls;
        assert_status(open_it(&g, &store), EMBLA_ERR_IO);
        assert_error_has("cannot reserve");
        assert_error_has("No space left");
        assert_int_equal(scratch_count(&g.shared, NULL), 0);
        given_free(&g);
    }
    assert_null(store);
}

/* ---- found only, and unshare ---- */

static void found_only_makes_nothing(void **state)
{
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 10);
    g.options.found_only = true;
    assert_status(open_it(&g, &store), EMBLA_ERR_NOT_FOUND);
    assert_error_has("there is no shared copy");
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    g.options.found_only = false;
    free(only_copy(&g));
    g.options.found_only = true;
    store = opened(&g);
    assert_false(info_of(store).built);
    embla_store_free(store);
    given_free(&g);
}

static void unshare_takes_the_name_and_leaves_the_rows(void **state)
{
    given g;
    (void)state;
    given_new(&g, 1000);
    embla_store *a = opened(&g), *b = opened(&g);
    assert_ok(embla_store_unshare(a));
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    check_rows(&g, a);
    check_rows(&g, b);
    assert_ok(b->placement->kind.check(b));
    assert_status(embla_store_unshare(b), EMBLA_ERR_NOT_FOUND);
    embla_store *c = opened(&g);
    assert_true(info_of(c).built);
    assert_status(embla_store_unshare(b), EMBLA_ERR_NOT_FOUND); /* it is c's now */
    assert_error_has("has been replaced by another copy");
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    assert_ok(embla_store_unshare(c));
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    embla_store_free(a);
    embla_store_free(b);
    embla_store_free(c);
    assert_status(embla_store_unshare(NULL), EMBLA_ERR_ARGUMENT);
    g.options.placement = EMBLA_PLACEMENT_RAM;
    a = opened(&g);
    assert_status(embla_store_unshare(a), EMBLA_ERR_ARGUMENT);
    assert_error_has("'ram'");
    embla_store_free(a);
    given_free(&g);
}

/* ---- whatever fails ---- */

static void whatever_fails_leaves_a_whole_copy_or_none(void **state)
{
    static const embla_system_error errors[] = {EMBLA_SYSTEM_OTHER, EMBLA_SYSTEM_NO_SPACE,
                                                EMBLA_SYSTEM_REFUSED};
    given g;
    size_t failed = 0;
    (void)state;
    given_new(&g, 40000); /* 2.6 MB: more than a huge page */
    size_t live = embla_io_live(), memory = embla_mem_live();
    for (size_t e = 0; e < COUNT_OF(errors); e++) {
        for (int forever = 0; forever < 2; forever++) {
            for (size_t n = 1;; n++) {
                embla_store *store = NULL;
                embla_io_fail(n, forever, errors[e]);
                embla_status status = open_it(&g, &store);
                embla_io_fail(0, false, 0);
                if (n > 100) fail_msg("call %zu still fails", n);
                if (status != EMBLA_OK) {
                    failed++;
                    assert_null(store);
                    assert_int_equal(status, EMBLA_ERR_IO);
                    assert_int_equal(scratch_count(&g.shared, NULL), 0);
                } else {
                    check_rows(&g, store);
                    assert_ok(embla_store_unshare(store));
                    embla_store_free(store);
                }
                assert_int_equal(embla_io_live(), live);
                assert_int_equal(embla_mem_live(), memory);
                if (status == EMBLA_OK && n > 40) break;
            }
        }
    }
    assert_true(failed > 100);
    given_free(&g);
}

/* The same where the copy is there: found, warmed, removed; and described, which may end without
 * a number of huge pages. */
static void whatever_fails_of_one_that_is_found(void **state)
{
    given g;
    size_t failed = 0;
    (void)state;
    given_new(&g, 1000);
    size_t live = embla_io_live(), memory = embla_mem_live();
    free(only_copy(&g));
    for (size_t n = 1; n < 40; n++) {
        embla_store *store = NULL;
        embla_store_info info = {0};
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = open_it(&g, &store);
        if (status == EMBLA_OK) status = embla_store_warm(store, NULL);
        if (status == EMBLA_OK) status = embla_store_unshare(store);
        embla_io_fail(0, false, 0);
        failed += status != EMBLA_OK;
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        if (store && embla_store_describe(store, &info) == EMBLA_OK)
            assert_true(n > 1 && info.huge_bytes <= info.bytes);
        embla_io_fail(0, false, 0);
        embla_store_free(store);
        assert_int_equal(embla_io_live(), live);
        assert_int_equal(embla_mem_live(), memory);
        assert_int_equal(scratch_count(&g.shared, NULL), status != EMBLA_OK);
        if (status == EMBLA_OK) free(only_copy(&g));
    }
    assert_true(failed > 12);
    given_free(&g);
}

static void no_memory_leaves_nothing(void **state)
{
    given g;
    size_t failed = 0;
    (void)state;
    given_new(&g, 1000);
    size_t live = embla_io_live(), memory = embla_mem_live();
    for (size_t n = 1; n < 40; n++) {
        embla_store *store = NULL;
        embla_mem_fail(n, false);
        embla_status status = open_it(&g, &store);
        if (status == EMBLA_OK) status = embla_store_warm(store, NULL);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            failed++;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
        }
        if (!store) assert_int_equal(scratch_count(&g.shared, NULL), 0);
        if (store) assert_ok(embla_store_unshare(store));
        embla_store_free(store);
        assert_int_equal(embla_io_live(), live);
        assert_int_equal(embla_mem_live(), memory);
    }
    assert_true(failed > 5);
    given_free(&g);
}

typedef struct {
    long calls, stop_at; /* 0: never */
    int64_t last, bytes;
    const char *what;  /* the last phase */
    const char *touch; /* a file that is changed on the way */
    const char *lock;  /* a file that is there while rows are read */
    const char *make;  /* a file that somebody makes meanwhile */
    long pause;        /* milliseconds */
    long release_at;   /* the call at which a holder of the lock is let go; 0: none */
    int release;
} watched;

static bool watch(void *context, const char *what, int64_t done, int64_t bytes)
{
    watched *w = context;
    w->calls++;
    if (!w->what || strcmp(w->what, what) != 0) w->last = 0; /* another phase */
    w->what = what;
    assert_true(done >= w->last && done <= bytes);
    w->last = done;
    w->bytes = bytes;
    if (w->lock && done > 0) assert_int_equal(access(w->lock, F_OK), 0);
    if (w->make) scratch_write(w->make, "theirs", 6);
    if (w->touch) assert_int_equal(utimensat(AT_FDCWD, w->touch, NULL, 0), 0);
    struct timespec pause = {.tv_sec = w->pause / 1000, .tv_nsec = w->pause % 1000 * 1000000};
    if (w->pause) (void)nanosleep(&pause, NULL);
    if (w->calls == w->release_at) (void)close(w->release);
    return w->calls != w->stop_at;
}

static void progress_is_told_and_can_stop_it(void **state)
{
    given g;
    watched w = {0};
    (void)state;
    given_new(&g, 200000);
    g.options.progress = watch;
    g.options.context = &w;
    embla_store *store = opened(&g);
    long all = w.calls;
    assert_true(all >= 3); /* its space, rows, checksums */
    assert_int_equal(w.bytes, 200000 * ROW);
    assert_string_equal(w.what, "checksum");
    w = (watched){0};
    embla_store_options warm = {.progress = watch, .context = &w};
    assert_ok(embla_store_warm(store, &warm));
    assert_true(w.calls > 0);
    w = (watched){.stop_at = 1};
    assert_status(embla_store_warm(store, &warm), EMBLA_ERR_STOPPED);
    assert_ok(embla_store_unshare(store));
    embla_store_free(store);
    store = NULL;
    for (long n = 1; n <= all; n++) {
        w = (watched){.stop_at = n};
        assert_status(open_it(&g, &store), EMBLA_ERR_STOPPED);
        assert_error_has("stopped by the caller: ");
        assert_int_equal(scratch_count(&g.shared, NULL), 0);
    }
    assert_null(store);
    given_free(&g);
}

static void a_file_that_changes_meanwhile_is_not_published(void **state)
{
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 1000);
    watched w = {.touch = g.files[1]};
    g.options.progress = watch;
    g.options.context = &w;
    assert_status(open_it(&g, &store), EMBLA_ERR_IO);
    assert_error_has("was changed while open");
    assert_null(store);
    assert_int_equal(scratch_count(&g.shared, NULL), 0);
    given_free(&g);
}

/* Not even where somebody takes the name without the lock. */
static void nothing_that_has_the_name_is_replaced(void **state)
{
    given g;
    embla_store *store = NULL;
    char path[SCRATCH_PATH];
    (void)state;
    given_new(&g, 1000);
    (void)snprintf(path, sizeof path, "%s/mine", g.shared.folder);
    watched w = {.make = path};
    g.options.shared_name = "mine";
    g.options.progress = watch;
    g.options.context = &w;
    assert_status(open_it(&g, &store), EMBLA_ERR_FORMAT);
    assert_error_has("too short to be a copy");
    assert_null(store);
    assert_true(scratch_holds(path, "theirs", 6));
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    given_free(&g);
}

static void a_copy_that_is_cut_short_is_a_status(void **state)
{
    given g;
    embla_store_info info;
    (void)state;
    given_new(&g, 200000);
    embla_store *store = opened(&g);
    char *path = strdup(info_of(store).shared);
    assert_ok(store->placement->kind.check(store));
    assert_int_equal(chmod(path, 0600), 0);
    assert_int_equal(truncate(path, DATA_AT + 100), 0);
    assert_status(store->placement->kind.check(store), EMBLA_ERR_IO);
    assert_error_has("was truncated while it was open");
    assert_status(embla_store_describe(store, &info), EMBLA_ERR_IO);
    assert_status(embla_store_warm(store, NULL), EMBLA_ERR_IO);
    assert_error_has("was truncated");
    embla_store_free(store);
    free(path);
    given_free(&g);
}

/* ---- leftovers and locks ---- */

/* "mine.UID.lock", ".mine.UID.tmp.0123456789abcdef" in the folder of copies. */
static const char *beside(given *g, const char *before, const char *after)
{
    static char path[SCRATCH_PATH];
    (void)snprintf(path, sizeof path, "%s/%smine.%u%s", g->shared.folder, before,
                   (unsigned)geteuid(), after);
    return path;
}

static void leftovers_of_a_dead_builder_are_swept(void **state)
{
    given g;
    (void)state;
    given_new(&g, 1000);
    g.options.shared_name = "mine";
    scratch_write(beside(&g, ".", ".tmp.0123456789abcdef"), "half", 4);
    scratch_write(beside(&g, "", ".lock"), "", 0);
    embla_store *store = opened(&g);
    assert_true(info_of(store).built);
    check_rows(&g, store);
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    embla_store_free(store);
    /* Killed after the copy had its name. */
    scratch_write(beside(&g, "", ".lock"), "", 0);
    store = opened(&g);
    assert_false(info_of(store).built);
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    embla_store_free(store);
    given_free(&g);
}

/* Another process has the lock until *release is closed, however long that takes; removes: it
 * takes the lock away with it. */
static pid_t hold_lock(given *g, bool removes, int *release)
{
    int ready[2], held[2];
    char byte = 0;
    assert_int_equal(pipe(ready) | pipe(held), 0);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        int fd = open(beside(g, "", ".lock"), O_RDWR | O_CREAT, 0600);
        close(held[1]);
        bool ok = fd >= 0 && flock(fd, LOCK_EX) == 0 && write(ready[1], &byte, 1) == 1;
        ok = ok && read(held[0], &byte, 1) == 0;
        if (removes) (void)unlink(beside(g, "", ".lock"));
        free(g->expected);
        _exit(ok ? 0 : 1);
    }
    assert_int_equal(read(ready[0], &byte, 1), 1);
    close(ready[0]);
    close(ready[1]);
    close(held[0]);
    *release = held[1];
    return child;
}

static void join(pid_t child)
{
    int status = -1;
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
}

static void who_comes_second_waits(void **state)
{
    given g;
    watched w = {0};
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 1000);
    g.options.shared_name = "mine";
    g.options.progress = watch;
    g.options.context = &w;
    for (int removes = 0; removes < 2; removes++) {
        w = (watched){.lock = beside(&g, "", ".lock"), .release_at = 5};
        pid_t child = hold_lock(&g, removes, &w.release);
        store = opened(&g);
        assert_true(w.calls >= 5);
        assert_int_equal(scratch_count(&g.shared, NULL), 1);
        assert_ok(embla_store_unshare(store));
        embla_store_free(store);
        join(child);
    }
    /* The user may not want to wait. */
    int release;
    w = (watched){.stop_at = 2};
    pid_t child = hold_lock(&g, false, &release);
    store = NULL;
    assert_status(open_it(&g, &store), EMBLA_ERR_STOPPED);
    assert_error_has("stopped by the caller: wait, ");
    assert_null(store);
    assert_int_equal(scratch_count(&g.shared, ".lock"), 1); /* it is still the other's */
    close(release);
    join(child);
    given_free(&g);
}

/* Who does not want to wait is told that the copy is being made, or that nobody makes one. */
static void a_copy_that_is_being_made_is_busy(void **state)
{
    given g;
    watched w = {0};
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 1000);
    g.options.shared_name = "mine";
    g.options.found_only = true;
    g.options.progress = watch;
    g.options.context = &w;
    assert_status(open_it(&g, &store), EMBLA_ERR_NOT_FOUND);
    int release;
    pid_t child = hold_lock(&g, false, &release);
    assert_status(open_it(&g, &store), EMBLA_ERR_BUSY);
    assert_error_has("is building this copy");
    close(release);
    join(child);
    assert_status(open_it(&g, &store), EMBLA_ERR_NOT_FOUND); /* the lock is nobody's */
    assert_error_has("there is no shared copy");
    g.options.found_only = false;
    store = opened(&g);
    long calls = w.calls;
    g.options.context = NULL;
    child = hold_lock(&g, false, &release);
    assert_status(embla_store_unshare(store), EMBLA_ERR_BUSY);
    close(release);
    join(child);
    assert_ok(embla_store_unshare(store));
    assert_int_equal(w.calls, calls); /* the context of the opening may be gone */
    embla_store_free(store);
    given_free(&g);
}

/* ---- a deadline, and who holds the lock ---- */

static void who_waits_too_long_is_told_for_whom(void **state)
{
    given g;
    embla_store *store = NULL;
    char holder[64];
    int release;
    (void)state;
    given_new(&g, 1000);
    g.options.shared_name = "mine";
    g.options.shared_wait = 0.2;
    pid_t child = hold_lock(&g, false, &release);
    struct timespec begun, ended;
    (void)clock_gettime(CLOCK_MONOTONIC, &begun);
    assert_status(open_it(&g, &store), EMBLA_ERR_BUSY);
    (void)clock_gettime(CLOCK_MONOTONIC, &ended);
    assert_null(store);
    (void)snprintf(holder, sizeof holder, "process %ld of user %u is building", (long)child,
                   (unsigned)geteuid());
    if (access("/proc/locks", R_OK) == 0)
        assert_error_has(holder);
    else
        assert_error_has("another process is building");
    assert_error_has("waited 0.2 s, the limit is 0.2 s");
    assert_error_has(beside(&g, "", ".lock"));
    double waited =
        (double)(ended.tv_sec - begun.tv_sec) + 1e-9 * (double)(ended.tv_nsec - begun.tv_nsec);
    assert_true(waited >= 0.2);
    close(release);
    join(child);
    store = opened(&g); /* the same deadline, and nobody holds the lock */
    embla_store_free(store);
    static const double bad[] = {-1, -0.001, NAN};
    for (size_t i = 0; i < COUNT_OF(bad); i++) {
        store = NULL;
        g.options.shared_wait = bad[i];
        assert_status(open_it(&g, &store), EMBLA_ERR_ARGUMENT);
        assert_error_has("shared_wait is");
    }
    given_free(&g);
}

static void a_lock_that_is_a_link_is_named(void **state)
{
    given g;
    embla_store *store = NULL;
    (void)state;
    given_new(&g, 10);
    g.options.shared_name = "mine";
    assert_int_equal(symlink("elsewhere", beside(&g, "", ".lock")), 0);
    assert_status(open_it(&g, &store), EMBLA_ERR_IO);
    assert_error_has(beside(&g, "", ".lock"));
    assert_error_has("is a symbolic link");
    assert_null(store);
    given_free(&g);
}

/* Another user holds a lock under our name, and has a folder under the fixed part of a temporary
 * name. Neither keeps us from building. */
static void another_user_cannot_stop_us(void **state)
{
    enum { NOBODY = 65534 };
    static const unsigned modes[] = {0600, 0666};
    embla_store *store = NULL;
    given g;
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can act as another user: skipped\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(modes); i++) {
        given_new(&g, 1000);
        assert_int_equal(chmod(g.shared.folder, 01777) | chmod(g.s.folder, 0755), 0);
        for (int file = 0; file < 2; file++) assert_int_equal(chmod(g.files[file], 0644), 0);
        g.options.shared_name = "mine";
        g.options.shared_wait = 0.5;
        /* we are nobody; root is the other user, and root's lock of our name is held */
        assert_int_equal(seteuid(NOBODY), 0);
        const char *lock = beside(&g, "", ".lock");
        assert_int_equal(seteuid(0), 0);
        int fd = open(lock, O_RDWR | O_CREAT, modes[i]);
        assert_true(fd >= 0 && fchmod(fd, modes[i]) == 0 && flock(fd, LOCK_EX) == 0);
        char blocking[SCRATCH_PATH];
        (void)snprintf(blocking, sizeof blocking, "%s/.mine.%u.tmp", g.shared.folder, NOBODY);
        assert_int_equal(mkdir(blocking, 0700), 0);
        assert_int_equal(seteuid(NOBODY), 0);
        g.options.found_only = true;
        embla_status absent = open_it(&g, &store);
        g.options.found_only = false;
        embla_status status = open_it(&g, &store);
        bool built = status == EMBLA_OK && info_of(store).built;
        embla_status removed = status == EMBLA_OK ? embla_store_unshare(store) : status;
        assert_int_equal(seteuid(0), 0);
        assert_status(absent, EMBLA_ERR_NOT_FOUND);
        assert_ok(status);
        assert_true(built);
        check_rows(&g, store);
        assert_ok(removed);
        assert_int_equal(scratch_count(&g.shared, NULL), 2); /* what root has there */
        embla_store_free(store);
        store = NULL;
        close(fd);
        given_free(&g);
    }
}

/* Of two that build without a lock, as above, one wins; the other uses its copy. */
static void two_may_build_at_once(void **state)
{
    enum { NOBODY = 65534, CHILDREN = 4 };
    given g;
    pid_t children[CHILDREN];
    (void)state;
    if (geteuid() != 0) {
        print_message("only root can act as another user: skipped\n");
        skip();
    }
    given_new(&g, 100000);
    assert_int_equal(chmod(g.shared.folder, 01777) | chmod(g.s.folder, 0755), 0);
    for (int file = 0; file < 2; file++) assert_int_equal(chmod(g.files[file], 0644), 0);
    g.options.shared_name = "mine";
    char lock[SCRATCH_PATH];
    (void)snprintf(lock, sizeof lock, "%s/mine.%u.lock", g.shared.folder, NOBODY);
    scratch_write(lock, "", 0); /* root's */
    for (int i = 0; i < CHILDREN; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] == 0) {
            embla_store *store = NULL;
            bool good = setuid(NOBODY) == 0 && open_it(&g, &store) == EMBLA_OK &&
                        memcmp(store->data, g.expected, (size_t)g.rows * ROW) == 0;
            if (!good) fprintf(stderr, "%s\n", embla_error());
            embla_store_free(store);
            free(g.expected);
            _exit(good ? 0 : 1);
        }
    }
    for (int i = 0; i < CHILDREN; i++) join(children[i]);
    assert_int_equal(scratch_count(&g.shared, NULL), 2); /* the lock and the copy */
    given_free(&g);
}

/* A lock ends by embla_io_unlock though a forked child has the descriptor as well. */
static void a_forked_child_keeps_no_lock(void **state)
{
    scratch s;
    embla_handle fd = -1, other = -1;
    bool got = false;
    (void)state;
    scratch_new(&s);
    assert_ok(embla_io_open(EMBLA_HERE, scratch_path(&s, "lock"),
                            EMBLA_OPEN_READ | EMBLA_OPEN_CREATE, 0600, &fd));
    assert_ok(embla_io_lock_try(fd, "lock", &got));
    assert_true(got);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) {
        (void)pause();
        _exit(0);
    }
    assert_ok(embla_io_open(EMBLA_HERE, s.path, EMBLA_OPEN_READ, 0, &other));
    assert_ok(embla_io_lock_try(other, "lock", &got));
    assert_false(got);
    embla_io_unlock(fd);
    assert_ok(embla_io_lock_try(other, "lock", &got));
    assert_true(got);
    embla_io_unlock(other);
    assert_int_equal(kill(child, SIGKILL), 0);
    assert_int_equal(waitpid(child, NULL, 0), child);
    scratch_free(&s);
}

/* Of several that begin at once, processes or threads, one builds. */
static void of_many_at_once_one_builds(void **state)
{
    enum { MANY = 6 };
    given g;
    int built[2], go[2];
    (void)state;
    given_new(&g, 20000);
    watched w = {.pause = 2};
    g.options.progress = watch;
    g.options.context = &w;
    assert_int_equal(pipe(built) | pipe(go), 0);
    pid_t children[MANY];
    for (int i = 0; i < MANY; i++) {
        children[i] = fork();
        assert_true(children[i] >= 0);
        if (children[i] > 0) continue;
        char byte = 0;
        embla_store *store = NULL;
        embla_store_info info = {0};
        close(go[1]);
        (void)!read(go[0], &byte, 1); /* ends when the parent closes it */
        bool ok = open_it(&g, &store) == EMBLA_OK &&
                  embla_store_describe(store, &info) == EMBLA_OK &&
                  memcmp(store->data, g.expected, (size_t)g.rows * ROW) == 0;
        byte = (char)info.built;
        ok = ok && write(built[1], &byte, 1) == 1;
        embla_store_free(store);
        free(g.expected);
        _exit(ok ? 0 : 1);
    }
    close(go[0]);
    close(go[1]);
    int sum = 0;
    for (int i = 0; i < MANY; i++) {
        char byte = 0;
        join(children[i]);
        assert_int_equal(read(built[0], &byte, 1), 1);
        sum += byte;
    }
    close(built[0]);
    close(built[1]);
    assert_int_equal(sum, 1);
    assert_int_equal(scratch_count(&g.shared, NULL), 1);
    given_free(&g);
}

typedef struct {
    const given *g;
    bool built, right;
} one_thread;

static void *in_thread(void *context)
{
    one_thread *t = context;
    embla_store *store = NULL;
    embla_store_info info = {0};
    t->right = open_it(t->g, &store) == EMBLA_OK &&
               embla_store_describe(store, &info) == EMBLA_OK &&
               memcmp(store->data, t->g->expected, (size_t)t->g->rows * ROW) == 0;
    t->built = info.built;
    embla_store_free(store);
    return NULL;
}

static void of_many_threads_one_builds(void **state)
{
    enum { MANY = 4 };
    given g;
    pthread_t threads[MANY];
    one_thread results[MANY];
    int sum = 0;
    (void)state;
    given_new(&g, 20000);
    for (int i = 0; i < MANY; i++) {
        results[i] = (one_thread){.g = &g};
        assert_int_equal(pthread_create(&threads[i], NULL, in_thread, &results[i]), 0);
    }
    for (int i = 0; i < MANY; i++) {
        assert_int_equal(pthread_join(threads[i], NULL), 0);
        assert_true(results[i].right);
        sum += results[i].built;
    }
    assert_int_equal(sum, 1);
    given_free(&g);
}

/* /dev/shm is where copies go if nobody says otherwise. */
static void the_standard_folder_is_dev_shm(void **state)
{
    given g;
    (void)state;
    given_new(&g, 10);
    g.options.shared_folder = NULL;
    embla_store *store = opened(&g);
    assert_int_equal(strncmp(info_of(store).shared, "/dev/shm/embla-", 15), 0);
    assert_ok(embla_store_unshare(store));
    embla_store_free(store);
    given_free(&g);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_first_builds_and_later_ones_find),
        cmocka_unit_test(rows_are_on_huge_pages),
        cmocka_unit_test(a_copy_is_as_private_as_its_files),
        cmocka_unit_test(the_name_is_made_of_what_the_rows_are),
        cmocka_unit_test(the_name_says_which_file_it_is),
        cmocka_unit_test(rows_of_every_size_and_number),
        cmocka_unit_test(a_damaged_row_is_found_in_its_piece),
        cmocka_unit_test(names_and_folders_are_checked),
        cmocka_unit_test(a_copy_that_does_not_fit_is_refused_and_left),
        cmocka_unit_test(a_copy_of_another_version_is_refused),
        cmocka_unit_test(what_is_no_file_of_ours_is_refused),
        cmocka_unit_test(rows_of_a_process_cannot_be_shared),
        cmocka_unit_test(a_full_folder_is_a_status),
        cmocka_unit_test(found_only_makes_nothing),
        cmocka_unit_test(unshare_takes_the_name_and_leaves_the_rows),
        cmocka_unit_test(whatever_fails_leaves_a_whole_copy_or_none),
        cmocka_unit_test(whatever_fails_of_one_that_is_found),
        cmocka_unit_test(no_memory_leaves_nothing),
        cmocka_unit_test(progress_is_told_and_can_stop_it),
        cmocka_unit_test(a_file_that_changes_meanwhile_is_not_published),
        cmocka_unit_test(nothing_that_has_the_name_is_replaced),
        cmocka_unit_test(a_copy_that_is_cut_short_is_a_status),
        cmocka_unit_test(leftovers_of_a_dead_builder_are_swept),
        cmocka_unit_test(who_comes_second_waits),
        cmocka_unit_test(a_copy_that_is_being_made_is_busy),
        cmocka_unit_test(who_waits_too_long_is_told_for_whom),
        cmocka_unit_test(a_lock_that_is_a_link_is_named),
        cmocka_unit_test(another_user_cannot_stop_us),
        cmocka_unit_test(two_may_build_at_once),
        cmocka_unit_test(a_forked_child_keeps_no_lock),
        cmocka_unit_test(of_many_at_once_one_builds),
        cmocka_unit_test(of_many_threads_one_builds),
        cmocka_unit_test(the_standard_folder_is_dev_shm),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
