/* SPDX-License-Identifier: Apache-2.0 */
/* The seams below every reader: file calls that can be made to fail (files/io), opened
 * files (files/map), the cursor.
 *
 * Each file call is made to fail by the seam itself, which is how every caller is tested;
 * so the seam comes first: it must name the call and the file, fail as often as it was
 * told, and give the same bytes however little a call moves at a time.
 */
#include <errno.h>
#include <sys/mman.h>

#include "base/mem.h"
#include "files/cursor.h"
#include "files/guard.h"
#include "files/io.h"
#include "files/map.h"
#include "scratch.h"

/* ---- io ---- */

static embla_status count_entry(void *context, const char *entry)
{
    (void)entry;
    ++*(size_t *)context;
    return EMBLA_OK;
}

/* The calls of io.h that can be told to fail, but close, which has its own test. fd is of a file
 * that may be written, folder where it is. */
enum {
    OPEN,
    STAT,
    READ,
    WRITE,
    RESERVE,
    CUT,
    MODE,
    LOCK,
    SYNC,
    RENAME,
    MAP,
    LIST_OPEN,
    LIST_BEGIN,
    LIST_NEXT,
    IO_CALLS
};

static const struct {
    const char *sentence; /* a part of it */
    size_t n;             /* which call of the function fails */
} io_calls[IO_CALLS] = {
    [OPEN] = {"file: cannot open it", 1},
    [STAT] = {"file: cannot get its size", 1},
    [READ] = {"file: cannot read it", 1},
    [WRITE] = {"file: cannot write it", 1},
    [RESERVE] = {"file: cannot reserve 100 bytes for it", 1},
    [CUT] = {"file: cannot set its length", 1},
    [MODE] = {"file: cannot set its mode", 1},
    [LOCK] = {"file: cannot lock it", 1},
    [SYNC] = {"file: cannot sync it to the disk", 1},
    [RENAME] = {"its path: cannot rename the temporary file to it", 1},
    [MAP] = {"file: cannot map it", 1},
    [LIST_OPEN] = {"file: cannot open it", 1},
    [LIST_BEGIN] = {"file: cannot list it", 2},
    [LIST_NEXT] = {"file: cannot list it", 4},
};

static embla_status io_call(int which, embla_folder folder, embla_handle fd)
{
    embla_file_facts found;
    unsigned char byte = 7;
    size_t got = 0, entries = 0;
    void *memory = NULL;
    embla_handle again = -1;
    embla_status status = EMBLA_ERR_ARGUMENT;
    switch (which) {
    case OPEN:
        if ((status = embla_io_open(folder, "file", EMBLA_OPEN_READ, 0, &again)) == EMBLA_OK)
            embla_io_drop(again);
        return status;
    case STAT:
        return embla_io_facts(fd, "file", &found);
    case READ:
        return embla_io_pread(fd, "file", 0, 1, &byte, &got);
    case WRITE:
        return embla_io_write(fd, "file", &byte, 1);
    case RESERVE:
        return embla_io_reserve(fd, "file", 100);
    case CUT:
        return embla_io_cut(fd, "file", 50);
    case MODE:
        return embla_io_mode(fd, "file", folder, "other", "probe");
    case LOCK:
        if ((status = embla_io_lock(fd, "file", &again)) == EMBLA_OK) embla_io_drop(again);
        return status;
    case SYNC:
        return embla_io_sync(fd, "file");
    case RENAME:
        return embla_io_rename(folder, "file", "other", "its path", true);
    case MAP:
        if ((status = embla_io_map(fd, "file", 50, &memory)) == EMBLA_OK)
            embla_io_unmap(memory, 50);
        return status;
    default:
        return embla_io_list(folder, "file", count_entry, &entries);
    }
}

typedef struct {
    scratch s;
    embla_folder folder;
    embla_handle fd;
    size_t live;
} io_place;

static io_place io_begin(void)
{
    io_place p = {.live = embla_io_live(), .folder = -1, .fd = -1};
    scratch_new(&p.s);
    assert_ok(
        embla_io_open(EMBLA_HERE, p.s.folder, EMBLA_OPEN_READ | EMBLA_OPEN_FOLDER, 0, &p.folder));
    assert_ok(embla_io_open(p.folder, "file", EMBLA_OPEN_READ | EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW,
                            0600, &p.fd));
    assert_ok(embla_io_write(p.fd, "file", "some bytes", 10));
    return p;
}

static void io_end(io_place *p)
{
    embla_io_fail(0, false, 0);
    embla_io_drop(p->fd);
    embla_io_drop(p->folder);
    assert_int_equal(embla_io_live(), p->live);
    scratch_free(&p->s);
}

static void every_call_fails_with_the_error_it_was_told_and_names_its_file(void **state)
{
    static const struct {
        embla_system_error error;
        const char *text;
    } errors[] = {{EMBLA_SYSTEM_OTHER, "Input/output error"},
                  {EMBLA_SYSTEM_NO_SPACE, "No space left on device"},
                  {EMBLA_SYSTEM_REFUSED, "Permission denied"}};
    (void)state;
    io_place p = io_begin();
    for (int which = 0; which < IO_CALLS; which++) {
        for (size_t e = 0; e < COUNT_OF(errors); e++) {
            size_t live = embla_io_live();
            embla_io_fail(io_calls[which].n, false, errors[e].error);
            assert_status(io_call(which, p.folder, p.fd), EMBLA_ERR_IO);
            assert_error_has(io_calls[which].sentence);
            assert_error_has(errors[e].text);
            assert_int_equal(embla_io_live(), live);
            if (which != RENAME) assert_ok(io_call(which, p.folder, p.fd)); /* it was once */
        }
    }
    io_end(&p);
}

static void a_failed_close_gives_its_descriptor_back(void **state)
{
    (void)state;
    io_place p = io_begin();
    for (int told = 0; told < 2; told++) {
        embla_handle fd = -1;
        size_t live = embla_io_live();
        assert_ok(embla_io_open(p.folder, "file", EMBLA_OPEN_READ, 0, &fd));
        if (told) embla_io_fail(1, false, EMBLA_SYSTEM_OTHER);
        assert_status(embla_io_close(fd, "file"), told ? EMBLA_ERR_IO : EMBLA_OK);
        if (told) assert_error_has("file: cannot close it: Input/output error");
        assert_int_equal(embla_io_live(), live);
        assert_int_equal(fcntl((int)fd, F_GETFD), -1);
    }
    io_end(&p);
}

static void forever_lasts_until_it_is_ended(void **state)
{
    embla_file_facts found;
    (void)state;
    io_place p = io_begin();
    embla_io_fail(3, true, EMBLA_SYSTEM_OTHER);
    for (int i = 1; i < 3; i++) assert_ok(embla_io_facts(p.fd, "file", &found));
    for (int i = 0; i < 5; i++) assert_status(embla_io_facts(p.fd, "file", &found), EMBLA_ERR_IO);
    embla_io_fail(0, false, 0);
    assert_ok(embla_io_facts(p.fd, "file", &found));
    io_end(&p);
}

static void no_memory_and_no_file_have_a_status_of_their_own(void **state)
{
    embla_handle fd = -1;
    (void)state;
    io_place p = io_begin();
    embla_io_fail(1, false, EMBLA_SYSTEM_NO_MEMORY);
    assert_status(embla_io_open(p.folder, "file", EMBLA_OPEN_READ, 0, &fd), EMBLA_ERR_MEMORY);
    assert_status(embla_io_open(p.folder, "none", EMBLA_OPEN_READ, 0, &fd), EMBLA_ERR_NOT_FOUND);
    assert_error_has("none: cannot open it: No such file");
    assert_status(embla_io_open(p.folder, "file/below", EMBLA_OPEN_READ, 0, &fd),
                  EMBLA_ERR_NOT_FOUND);
    assert_int_equal(symlinkat("file", (int)p.folder, "link"), 0);
    assert_status(embla_io_open(p.folder, "link", EMBLA_OPEN_READ | EMBLA_OPEN_NO_LINK, 0, &fd),
                  EMBLA_ERR_IO);
    assert_error_has("link is a symbolic link");
    assert_int_equal(fd, -1);
    io_end(&p);
}

static void an_interrupted_call_is_taken_up_again(void **state)
{
    static const int again[] = {OPEN, READ, WRITE, RESERVE, LOCK};
    (void)state;
    io_place p = io_begin();
    for (size_t i = 0; i < COUNT_OF(again); i++) {
        embla_io_fail(1, false, EMBLA_SYSTEM_INTERRUPTED);
        assert_ok(io_call(again[i], p.folder, p.fd));
    }
    /* Linux has closed it all the same. */
    embla_handle fd = -1;
    assert_ok(embla_io_open(p.folder, "file", EMBLA_OPEN_READ, 0, &fd));
    embla_io_fail(1, false, EMBLA_SYSTEM_INTERRUPTED);
    embla_status status = embla_io_close(fd, "file");
    assert_true(status == EMBLA_OK || status == EMBLA_ERR_IO);
    assert_int_equal(fcntl((int)fd, F_GETFD), -1);
    io_end(&p);
}

static void a_file_system_that_cannot_reserve_is_no_error(void **state)
{
    (void)state;
    io_place p = io_begin();
    embla_io_fail(1, false, EMBLA_SYSTEM_UNSUPPORTED);
    assert_ok(embla_io_reserve(p.fd, "file", 100));
    assert_status(embla_io_reserve(p.fd, "file", (uint64_t)INT64_MAX + 1), EMBLA_ERR_IO);
    assert_error_has("cannot reserve 9223372036854775808 bytes at 0");
    io_end(&p);
}

/* A lock ends with its keeper, not with the first descriptor. */
static void what_is_locked_is_not_swept(void **state)
{
    embla_handle fd = -1, keeper = -1, second = -1;
    struct stat found;
    (void)state;
    io_place p = io_begin();
    assert_ok(embla_io_open(p.folder, "made", EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW, 0600, &fd));
    assert_ok(embla_io_lock(fd, "made", &keeper));
    assert_true(keeper >= 0);
    embla_io_sweep(p.folder, "made");
    assert_ok(embla_io_close(fd, "made"));
    embla_io_sweep(p.folder, "made");
    assert_ok(embla_io_open(p.folder, "made", EMBLA_OPEN_WRITE, 0, &fd));
    assert_ok(embla_io_lock(fd, "made", &second)); /* another has it */
    assert_int_equal(second, -1);
    embla_io_drop(keeper);
    assert_int_equal(fstatat((int)p.folder, "made", &found, 0), 0);
    embla_io_sweep(p.folder, "made");
    assert_int_equal(fstatat((int)p.folder, "made", &found, 0), -1);
    assert_ok(embla_io_lock(fd, "made", &second)); /* swept before it was locked */
    assert_int_equal(second, -1);
    embla_io_drop(fd);
    /* What can never be one of ours. */
    assert_int_equal(symlinkat("file", (int)p.folder, "link"), 0);
    assert_int_equal(mkfifoat((int)p.folder, "pipe", 0600), 0);
    assert_int_equal(mkdirat((int)p.folder, "folder", 0700), 0);
    embla_io_sweep(p.folder, "link");
    embla_io_sweep(p.folder, "pipe");
    embla_io_sweep(p.folder, "folder");
    embla_io_sweep(p.folder, "none");
    assert_int_equal(scratch_count(&p.s, NULL), 4);
    io_end(&p);
}

static void a_file_system_without_locks_is_no_error(void **state)
{
    embla_handle keeper = -1;
    (void)state;
    io_place p = io_begin();
    embla_io_fail(1, false, EMBLA_SYSTEM_UNSUPPORTED);
    assert_ok(embla_io_lock(p.fd, "file", &keeper));
    assert_true(keeper >= 0);
    embla_io_drop(keeper);
    io_end(&p);
}

/* However little a call moves, the bytes are the same, and so is where the file ends. */
static void short_reads_and_writes_give_the_same_bytes(void **state)
{
    unsigned char bytes[1000], back[1200];
    (void)state;
    check_fill_bytes(5, sizeof bytes, bytes);
    for (size_t most = 1; most <= 7; most++) {
        size_t got = 0;
        embla_handle fd = -1;
        io_place p = io_begin();
        embla_io_short(most);
        assert_ok(embla_io_open(p.folder, "short",
                                EMBLA_OPEN_READ | EMBLA_OPEN_WRITE | EMBLA_OPEN_NEW, 0600, &fd));
        assert_ok(embla_io_write(fd, "short", bytes, sizeof bytes));
        assert_ok(embla_io_pread(fd, "short", 0, sizeof back, back, &got));
        assert_int_equal(got, sizeof bytes);
        assert_memory_equal(back, bytes, sizeof bytes);
        assert_ok(embla_io_pread(fd, "short", 990, 5, back, &got));
        assert_int_equal(got, 5);
        assert_memory_equal(back, bytes + 990, 5);
        embla_io_fail(40, false, EMBLA_SYSTEM_INTERRUPTED); /* amid a transfer */
        assert_ok(embla_io_pread(fd, "short", 3, 900, back, &got));
        assert_memory_equal(back, bytes + 3, 900);
        embla_io_fail(40, false, EMBLA_SYSTEM_OTHER);
        assert_status(embla_io_pread(fd, "short", 0, sizeof back, back, &got), EMBLA_ERR_IO);
        embla_io_short(0);
        embla_io_drop(fd);
        io_end(&p);
    }
}

static embla_status stop_at_once(void *context, const char *entry)
{
    (void)context, (void)entry;
    return embla_fail(EMBLA_ERR_RANGE, "enough");
}

static void a_list_has_every_name_but_the_folders_own(void **state)
{
    size_t entries = 0;
    (void)state;
    io_place p = io_begin();
    for (int i = 0; i < 20; i++) {
        char name[32];
        snprintf(name, sizeof name, "entry %d", i);
        scratch_write(scratch_path(&p.s, name), "", 0);
    }
    assert_ok(embla_io_list(p.folder, "folder", count_entry, &entries));
    assert_int_equal(entries, 21);
    assert_ok(embla_io_list(p.folder, "folder", count_entry, &entries)); /* from the start again */
    assert_int_equal(entries, 42);
    assert_status(embla_io_list(p.folder, "folder", stop_at_once, NULL), EMBLA_ERR_RANGE);
    embla_io_remove(p.folder, "entry 3");
    embla_io_remove(p.folder, "not there");
    assert_int_equal(scratch_count(&p.s, "entry"), 19);
    io_end(&p);
}

/* ---- map ---- */

static void rule_c1_what_is_not_a_regular_file_is_refused(void **state)
{
    scratch s;
    embla_map *map = NULL;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    scratch_new(&s);
    assert_int_equal(mkfifo(scratch_path(&s, "pipe"), 0600), 0);
    assert_status(embla_map_open(EMBLA_HERE, s.path, "pipe", true, &map), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("pipe is a pipe, not a regular file (C1)");
    assert_status(embla_map_open(EMBLA_HERE, s.folder, "the folder", true, &map),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("the folder is a folder, not a regular file (C1)");
    assert_status(embla_map_open(EMBLA_HERE, "/dev/null", "null", true, &map),
                  EMBLA_ERR_UNSUPPORTED);
    assert_error_has("null is a device or socket, not a regular file (C1)");
    scratch_write(scratch_path(&s, "empty"), "", 0);
    assert_status(embla_map_open(EMBLA_HERE, s.path, "empty", true, &map), EMBLA_ERR_FORMAT);
    assert_error_has("empty is empty: it has 0 bytes (C1)");
    assert_status(embla_map_open(EMBLA_HERE, scratch_path(&s, "none"), "none", true, &map),
                  EMBLA_ERR_NOT_FOUND);
    assert_null(map);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    scratch_free(&s);
}

static void rule_c1_a_link_is_followed_only_where_it_may_be(void **state)
{
    scratch s;
    embla_map *map = NULL;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "file"), "abc", 3);
    assert_int_equal(symlink("file", scratch_path(&s, "link")), 0);
    assert_status(embla_map_open(EMBLA_HERE, s.path, "link", false, &map), EMBLA_ERR_IO);
    assert_error_has("is a symbolic link");
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "link", true, &map));
    assert_string_equal(map->name, "link");
    assert_int_equal(map->size, 3);
    assert_memory_equal(map->bytes, "abc", 3);
    assert_false(map->others_write);
    embla_map_free(map);
    assert_int_equal(chmod(scratch_path(&s, "file"), 0666), 0);
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "file", false, &map));
    assert_true(map->others_write);
    embla_map_free(map);
    scratch_free(&s);
}

static void a_map_lives_until_its_last_owner_lets_go(void **state)
{
    scratch s;
    embla_map *map = NULL;
    size_t live = embla_io_live(), memory = embla_mem_live();
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "file"), "abc", 3);
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "file", true, &map));
    assert_int_equal(embla_io_live(), live + 2); /* descriptor and map */
    assert_ptr_equal(embla_map_hold(map), map);
    embla_map_free(map);
    assert_int_equal(embla_io_live(), live + 2);
    assert_memory_equal(map->bytes, "abc", 3);
    embla_map_free(map);
    embla_map_free(NULL);
    assert_int_equal(embla_io_live(), live);
    assert_int_equal(embla_mem_live(), memory);
    scratch_free(&s);
}

static void rule_c11_a_file_cut_short_is_noticed_one_grown_is_not(void **state)
{
    scratch s;
    embla_map *map = NULL;
    unsigned char back[10];
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "file"), "0123456789", 10);
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "file", true, &map));
    assert_ok(embla_map_check(map));
    assert_int_equal(truncate(s.path, 20), 0);
    assert_ok(embla_map_check(map));
    assert_ok(embla_map_read(map, 0, 10, back));
    assert_int_equal(truncate(s.path, 4), 0);
    assert_status(embla_map_check(map), EMBLA_ERR_IO);
    assert_error_has("file was truncated while it was open: it had 10 bytes and now has 4 (C11)");
    assert_ok(embla_map_read(map, 0, 4, back));
    assert_status(embla_map_read(map, 2, 5, back), EMBLA_ERR_IO);
    assert_error_has("it had 10 bytes and now ends at byte 4 (C11)");
    embla_map_free(map);
    scratch_free(&s);
}

static void rule_c2_a_read_past_the_end_of_a_map_is_refused(void **state)
{
    embla_map *map = NULL;
    unsigned char back[16] = {0};
    (void)state;
    assert_ok(embla_map_bytes("0123456789", 10, "bytes", &map));
    assert_ok(embla_map_read(map, 3, 7, back));
    assert_memory_equal(back, "3456789", 7);
    assert_ok(embla_map_read(map, 10, 0, back));
    assert_status(embla_map_read(map, 4, 7, back), EMBLA_ERR_FORMAT);
    assert_error_has("bytes: 7 bytes are needed at byte 4, but the file has 10 bytes (C2)");
    assert_status(embla_map_read(map, 11, 0, back), EMBLA_ERR_FORMAT);
    assert_status(embla_map_read(map, UINT64_MAX, SIZE_MAX, back), EMBLA_ERR_FORMAT);
    assert_ok(embla_map_check(map));
    embla_map_free(map);
}

/* A place that was given back carries no mark of the map before. */
static void places_of_the_guard_are_used_again(void **state)
{
    enum { MANY = 5000 };
    static int places[MANY];
    static const char bytes[MANY];
    int none = 0;
    (void)state;
    for (int round = 0; round < 2; round++, none = 0) {
        for (int i = 0; i < MANY; i++) {
            places[i] = embla_guard_add(bytes + i, 1);
            assert_false(embla_guard_lost(places[i]));
            none += places[i] < 0;
        }
        assert_int_equal(none, MANY - 4096);
        for (int i = 0; i < MANY; i++) embla_guard_remove(places[i]);
    }
}

static void many_maps_at_once_are_guarded_or_at_least_work(void **state)
{
    enum { MANY = 300 };
    scratch s;
    embla_map *maps[MANY];
    size_t live = embla_io_live();
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "file"), "abc", 3);
    for (int round = 0; round < 2; round++) {
        for (int i = 0; i < MANY; i++)
            assert_ok(embla_map_open(EMBLA_HERE, s.path, "file", true, &maps[i]));
        for (int i = 0; i < MANY; i++) embla_map_free(maps[(i * 7 + 3) % MANY]);
    }
    assert_int_equal(embla_io_live(), live);
    scratch_free(&s);
}

/* ---- cursor ---- */

enum { LONG = 300000 };

/* Twice the same bytes: a file, whose window must be filled again and again, and memory. */
static void a_window_is_filled_again_wherever_a_piece_begins(void **state)
{
    scratch s;
    embla_map *maps[2] = {NULL, NULL};
    unsigned char *bytes = malloc(LONG);
    (void)state;
    assert_non_null(bytes);
    check_fill_bytes(11, LONG, bytes);
    scratch_new(&s);
    scratch_write(scratch_path(&s, "long"), bytes, LONG);
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "long", true, &maps[0]));
    assert_ok(embla_map_bytes(bytes, LONG, "long", &maps[1]));
    for (int m = 0; m < 2; m++) {
        for (uint64_t seed = 0; seed < 12; seed++) {
            uint64_t random = seed, at = 0, got = 0;
            embla_cursor c;
            const uint8_t *p = NULL;
            size_t memory = embla_mem_live();
            embla_cursor_begin(&c, maps[m], 0);
            while (embla_cursor_left(&c) > 0) {
                uint64_t most = seed < 4 ? 70000 : seed < 8 ? 40 : 9001;
                uint64_t count = check_below(&random, most) + 1;
                assert_int_equal(c.at, at);
                assert_ok(embla_cursor_peek(&c, count, &p, &got));
                assert_int_equal(got, count < LONG - at ? count : LONG - at);
                assert_memory_equal(p, bytes + at, got);
                if (count > LONG - at) break;
                if (check_below(&random, 3) == 0) {
                    assert_ok(embla_cursor_skip(&c, count, "a gap"));
                } else {
                    assert_ok(embla_cursor_bytes(&c, count, "a piece", &p));
                    assert_memory_equal(p, bytes + at, count);
                }
                at += count;
            }
            embla_cursor_end(&c);
            assert_int_equal(embla_mem_live(), memory);
        }
    }
    embla_map_free(maps[0]);
    embla_map_free(maps[1]);
    scratch_free(&s);
    free(bytes);
}

static void rule_c2_a_piece_longer_than_what_is_left_is_refused(void **state)
{
    static const uint64_t wrong[] = {5, 6, UINT64_MAX, UINT64_MAX - 4, (uint64_t)1 << 63};
    embla_map *map = NULL;
    embla_cursor c;
    const uint8_t *p = NULL;
    uint64_t got = 9;
    (void)state;
    assert_ok(embla_map_bytes("0123456789", 10, "bytes", &map));
    embla_cursor_begin(&c, map, 6);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        char number[64];
        snprintf(number, sizeof number, "needs %" PRIu64 " bytes, but only 4 are left (C2)",
                 wrong[i]);
        assert_status(embla_cursor_bytes(&c, wrong[i], "a name", &p), EMBLA_ERR_FORMAT);
        assert_error_has("bytes: a name at byte 6");
        assert_error_has(number);
        assert_status(embla_cursor_skip(&c, wrong[i], "a name"), EMBLA_ERR_FORMAT);
        assert_error_has(number);
        assert_int_equal(c.at, 6);
        assert_null(p);
    }
    assert_ok(embla_cursor_peek(&c, UINT64_MAX, &p, &got));
    assert_int_equal(got, 4);
    assert_ok(embla_cursor_bytes(&c, 4, "the rest", &p));
    assert_ok(embla_cursor_bytes(&c, 0, "nothing", &p));
    assert_ok(embla_cursor_peek(&c, 1, &p, &got));
    assert_int_equal(got, 0);
    embla_cursor_end(&c);
    embla_cursor_begin(&c, map, 99); /* past the end is the end */
    assert_int_equal(embla_cursor_left(&c), 0);
    embla_cursor_end(&c);
    embla_map_free(map);
}

static void rule_c5_no_piece_takes_more_memory_than_the_file_has_bytes(void **state)
{
    scratch s;
    embla_map *map = NULL;
    embla_cursor c;
    const uint8_t *p = NULL;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "large"), "x", 1);
    assert_int_equal(truncate(s.path, ((off_t)64 << 20) + 2), 0); /* a hole: no space on disk */
    assert_ok(embla_map_open(EMBLA_HERE, s.path, "large", true, &map));
    embla_cursor_begin(&c, map, 0);
    assert_ok(embla_cursor_bytes(&c, 0, "nothing yet", &p));
    assert_ok(embla_cursor_bytes(&c, 1, "a byte", &p));
    assert_status(embla_cursor_bytes(&c, ((uint64_t)64 << 20) + 1, "a piece", &p),
                  EMBLA_ERR_FORMAT);
    assert_error_has("the limit is 67108864 (C5)");
    assert_int_equal(c.at, 1);
    assert_int_equal(c.room, 65536);
    assert_int_equal(truncate(s.path, 5), 0);
    assert_status(embla_cursor_bytes(&c, 70000, "a piece", &p), EMBLA_ERR_IO);
    embla_cursor_end(&c);
    embla_map_free(map);
    scratch_free(&s);
}

static void rule_c6_numbers_are_little_endian_at_any_byte(void **state)
{
    static const unsigned char bytes[] = {0xfe, 0x34, 0x92, 0x78, 0x56, 0x34, 0xf2, 1,    2,
                                          3,    4,    5,    6,    7,    0x88, 0xff, 0xff, 0xff,
                                          0xff, 0xfe, 0xff, 0xff, 0xff, 0xff, 0xff, 0xff, 0x7f};
    embla_map *map = NULL;
    embla_cursor c;
    uint8_t u8 = 0, put[8];
    uint32_t u32 = 0;
    uint64_t u64 = 0;
    int32_t i32 = 0;
    int64_t i64 = 0;
    (void)state;
    assert_ok(embla_map_bytes(bytes, sizeof bytes, "bytes", &map));
    embla_cursor_begin(&c, map, 0);
    assert_ok(embla_cursor_u8(&c, "u8", &u8));
    assert_ok(embla_cursor_skip(&c, 2, "u16"));
    assert_ok(embla_cursor_u32(&c, "u32", &u32));
    assert_ok(embla_cursor_u64(&c, "u64", &u64));
    assert_ok(embla_cursor_i32(&c, "i32", &i32));
    assert_ok(embla_cursor_i64(&c, "i64", &i64));
    assert_int_equal(u8, 0xfe);
    assert_int_equal(embla_le16(bytes + 1), 0x9234);
    assert_true(u32 == 0xf2345678u);
    assert_true(u64 == UINT64_C(0x8807060504030201));
    assert_int_equal(i32, -1);
    assert_true(i64 == INT64_C(0x7ffffffffffffffe));
    assert_status(embla_cursor_u8(&c, "u8", &u8), EMBLA_ERR_FORMAT);
    embla_cursor_end(&c);
    embla_cursor_begin(&c, map, sizeof bytes - 7); /* each, one byte short, writes nothing */
    assert_status(embla_cursor_u64(&c, "u64", &u64), EMBLA_ERR_FORMAT);
    assert_status(embla_cursor_i64(&c, "i64", &i64), EMBLA_ERR_FORMAT);
    assert_ok(embla_cursor_skip(&c, 4, "some"));
    assert_status(embla_cursor_u32(&c, "u32", &u32), EMBLA_ERR_FORMAT);
    assert_status(embla_cursor_i32(&c, "i32", &i32), EMBLA_ERR_FORMAT);
    assert_true(u64 == UINT64_C(0x8807060504030201) && i32 == -1);
    embla_cursor_end(&c);
    embla_put_le64(UINT64_C(0x8807060504030201), put);
    assert_memory_equal(put, bytes + 7, 8);
    embla_put_le32(0xf2345678u, put);
    assert_memory_equal(put, bytes + 3, 4);
    embla_map_free(map);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_call_fails_with_the_error_it_was_told_and_names_its_file),
        cmocka_unit_test(a_failed_close_gives_its_descriptor_back),
        cmocka_unit_test(forever_lasts_until_it_is_ended),
        cmocka_unit_test(no_memory_and_no_file_have_a_status_of_their_own),
        cmocka_unit_test(an_interrupted_call_is_taken_up_again),
        cmocka_unit_test(a_file_system_that_cannot_reserve_is_no_error),
        cmocka_unit_test(what_is_locked_is_not_swept),
        cmocka_unit_test(a_file_system_without_locks_is_no_error),
        cmocka_unit_test(short_reads_and_writes_give_the_same_bytes),
        cmocka_unit_test(a_list_has_every_name_but_the_folders_own),
        cmocka_unit_test(rule_c1_what_is_not_a_regular_file_is_refused),
        cmocka_unit_test(rule_c1_a_link_is_followed_only_where_it_may_be),
        cmocka_unit_test(a_map_lives_until_its_last_owner_lets_go),
        cmocka_unit_test(rule_c11_a_file_cut_short_is_noticed_one_grown_is_not),
        cmocka_unit_test(rule_c2_a_read_past_the_end_of_a_map_is_refused),
        cmocka_unit_test(places_of_the_guard_are_used_again),
        cmocka_unit_test(many_maps_at_once_are_guarded_or_at_least_work),
        cmocka_unit_test(a_window_is_filled_again_wherever_a_piece_begins),
        cmocka_unit_test(rule_c2_a_piece_longer_than_what_is_left_is_refused),
        cmocka_unit_test(rule_c5_no_piece_takes_more_memory_than_the_file_has_bytes),
        cmocka_unit_test(rule_c6_numbers_are_little_endian_at_any_byte),
    };
    return cmocka_run_group_tests_name("io", tests, NULL, NULL);
}
