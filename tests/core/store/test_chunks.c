/* SPDX-License-Identifier: Apache-2.0 */
/* What engines ask of a store: its memory in chunks that can be registered one by one, a private
 * mapping that may be written to, and a range of rows for each rank.
 */
#include <errno.h>
#include <pthread.h>
#include <sys/wait.h>

#include "base/mem.h"
#include "files/io.h"
#include "store/gather.h"
#include "store_tables.h"

enum { PAGE = 4096, WAYS = 7 };
static const embla_placement places[WAYS] = {
    EMBLA_PLACEMENT_RAM,    EMBLA_PLACEMENT_SHARED, EMBLA_PLACEMENT_MAPPED, EMBLA_PLACEMENT_READ,
    EMBLA_PLACEMENT_DIRECT, EMBLA_PLACEMENT_DIRECT, EMBLA_PLACEMENT_DIRECT};
static const embla_reader_kind readers[WAYS] = {
    0, 0, 0, 0, 0, EMBLA_READER_PREAD, EMBLA_READER_BUFFERED};

static embla_status open_way(const table *t, int way, const embla_store_engine_options *engine,
                             embla_store **out)
{
    const embla_store_options options = {.placement = places[way],
                                         .reader = readers[way],
                                         .shared_folder = t->s.folder,
                                         .threads = 2,
                                         .engine = engine};
    return embla_store_open_extents(&t->format, t->extents, t->count, &options, out);
}

static embla_store *opened(const table *t, int way, const embla_store_engine_options *engine)
{
    embla_store *store = NULL;
    assert_ok(open_way(t, way, engine, &store));
    return store;
}

/* ---- chunks ---- */

enum { CHUNKS = 4096 };
static embla_chunk chunks[CHUNKS];

static bool covered(size_t count, const void *memory, size_t bytes)
{
    uintptr_t at = (uintptr_t)memory, end = at + bytes;
    for (size_t i = 0; i < count && at < end; i++) {
        uintptr_t from = (uintptr_t)chunks[i].memory;
        if (at >= from && at < from + chunks[i].bytes) at = from + chunks[i].bytes;
    }
    return at >= end;
}

/* Ascending, apart or with a page border between them, none too long, every byte readable. */
static void check_chunks(size_t count, size_t most, bool whole_pages)
{
    volatile unsigned char sum = 0;
    for (size_t i = 0; i < count; i++) {
        uintptr_t from = (uintptr_t)chunks[i].memory;
        assert_true(chunks[i].bytes > 0 && chunks[i].bytes <= most);
        if (i > 0) {
            uintptr_t before = (uintptr_t)chunks[i - 1].memory + chunks[i - 1].bytes;
            assert_true(before <= from);
            if (before == from) assert_int_equal(from % PAGE, 0);
            assert_true((before - 1) / PAGE != from / PAGE); /* no page is in two chunks */
        }
        if (whole_pages) assert_int_equal(from % PAGE + chunks[i].bytes % PAGE, 0);
        for (size_t k = 0; k < chunks[i].bytes; k += 512)
            sum = (unsigned char)(sum + ((const unsigned char *)chunks[i].memory)[k]);
    }
}

static void all_rows_are_in_chunks_that_share_no_page(void **state)
{
    static const size_t sizes[] = {PAGE, 3 * PAGE + 5, 1 << 20, 0};
    (void)state;
    if (sysconf(_SC_PAGESIZE) != PAGE) skip_because("pages have another size here");
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, 3000);
        for (int way = 0; way < 3; way++) {
            embla_store *store = opened(&t, way, NULL);
            for (size_t k = 0; k < COUNT_OF(sizes); k++) {
                size_t count = 0;
                assert_ok(embla_store_chunks(store, sizes[k], CHUNKS, chunks, &count));
                assert_true(count > 0 && count < CHUNKS);
                check_chunks(count, sizes[k] ? sizes[k] : (size_t)1 << 30, way > 0);
                for (size_t i = 0; way == 2 && i < store->extent_count; i++)
                    for (size_t p = 0; p < store->extents[i].planes; p++) {
                        const embla_extent_at *e = &store->extents[i];
                        assert_true(covered(count, e->map[p]->bytes + e->offset[p],
                                            (size_t)embla_extent_span(e, p)));
                    }
                if (way < 2) assert_true(covered(count, store->data, (size_t)store->bytes));
                if (way == 0) { /* nothing but the rows */
                    const embla_chunk *last = &chunks[count - 1];
                    assert_ptr_equal(chunks[0].memory, store->data);
                    assert_ptr_equal((char *)last->memory + last->bytes,
                                     store->data + store->bytes);
                }
                if (way < 2 && sizes[k] == 0) assert_int_equal(count, 1);
            }
            embla_store_free(store);
        }
        finish(&t);
    }
}

/* As on Arm, where pages have 16 or 64 KiB. The bytes are not read: the real pages end earlier. */
static void borders_of_chunks_are_on_pages_of_any_size(void **state)
{
    static const size_t pages[] = {16 << 10, 64 << 10};
    table t;
    (void)state;
    make(&t, 0, 3000);
    for (size_t i = 0; i < COUNT_OF(pages); i++) {
        embla_store *store = opened(&t, 2, NULL);
        size_t count = 0;
        embla_mem_false_page(pages[i]);
        assert_status(embla_store_chunks(store, pages[i] - 1, CHUNKS, chunks, &count),
                      EMBLA_ERR_ARGUMENT);
        assert_ok(embla_store_chunks(store, pages[i], CHUNKS, chunks, &count));
        embla_mem_false_page(0);
        assert_true(count > 1 && count < CHUNKS);
        for (size_t k = 0; k < count; k++) {
            assert_int_equal((uintptr_t)chunks[k].memory % pages[i], 0);
            assert_int_equal(chunks[k].bytes, pages[i]);
        }
        embla_store_free(store);
    }
    finish(&t);
}

static void chunks_that_cannot_be_are_refused(void **state)
{
    size_t count = 99;
    table t;
    (void)state;
    make(&t, 2, 500);
    for (int way = 3; way < WAYS; way++) {
        embla_store *store = opened(&t, way, NULL);
        assert_status(embla_store_chunks(store, 0, CHUNKS, chunks, &count), EMBLA_ERR_UNSUPPORTED);
        assert_error_has("holds none of its 500 rows in memory");
        embla_store_free(store);
    }
    embla_store *store = opened(&t, 2, NULL);
    assert_status(embla_store_chunks(store, 100, CHUNKS, chunks, &count), EMBLA_ERR_ARGUMENT);
    assert_error_has("at most 100 bytes, less than a page");
    assert_status(embla_store_chunks(store, 0, 1, NULL, &count), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_chunks(store, 0, 1, chunks, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_store_chunks(NULL, 0, 1, chunks, &count), EMBLA_ERR_ARGUMENT);
    assert_int_equal(count, 99);
    /* the number alone; then fewer than there are */
    size_t page = (size_t)sysconf(_SC_PAGESIZE);
    assert_ok(embla_store_chunks(store, page, 0, NULL, &count));
    assert_true(count > 2);
    memset(chunks, 0, sizeof chunks);
    size_t again = 0;
    assert_ok(embla_store_chunks(store, page, 2, chunks, &again));
    assert_int_equal(again, count);
    assert_non_null(chunks[1].memory);
    assert_null(chunks[2].memory);
    embla_mem_fail(1, false);
    assert_status(embla_store_chunks(store, page, 2, chunks, &again), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    embla_store_free(store);
    finish(&t);
}

/* ---- writable ---- */

static const embla_store_engine_options writable = {.writable = true};
static const embla_store_lookup_options raw = {.raw = true};

/* What is written stays in this process: not in the file, not in the copy, not in other stores. */
static void a_writable_mapping_is_private(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    (void)state;
    for (int which = 0; which < TABLES; which++)
        for (int way = 1; way < 3; way++) {
            table t;
            unsigned char row[264], other[264];
            const int64_t first = 0;
            size_t count = 0, before = 0, after = 0;
            make(&t, which, 400);
            embla_store *store = opened(&t, way, &writable), *plain = opened(&t, way, NULL);
            unsigned char *old = scratch_read(t.paths[0], &before);
            assert_ok(embla_store_chunks(store, 0, CHUNKS, chunks, &count));
            for (size_t i = 0; i < count; i++) {
                unsigned char *bytes = chunks[i].memory;
                for (size_t k = 0; k < chunks[i].bytes; k++) bytes[k] ^= 0xff;
            }
            assert_ok(embla_store_lookup(store, &first, 1, &raw, row));
            assert_ok(embla_store_lookup(plain, &first, 1, &raw, other));
            assert_memory_equal(other, t.truth, t.row_bytes);
            for (size_t k = 0; k < t.row_bytes; k++) assert_int_equal(row[k] ^ 0xff, other[k]);
            unsigned char *now = scratch_read(t.paths[0], &after);
            assert_int_equal(before, after);
            assert_memory_equal(old, now, before);
            free(old);
            free(now);
            embla_store_free(plain);
            embla_store_free(store);
            finish(&t);
        }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

/* In a child, because a signal would end it. Returns 0 if all was right. */
static int write_to_what_is_lost(const table *t)
{
    unsigned char row[264];
    const int64_t last = t->rows - 1;
    embla_store *store = NULL;
    size_t count = 0;
    if (open_way(t, 2, &writable, &store) != EMBLA_OK ||
        embla_store_lookup(store, &last, 1, &raw, row) != EMBLA_OK ||
        embla_store_chunks(store, 0, CHUNKS, chunks, &count) != EMBLA_OK)
        return 1;
    if (truncate(t->paths[0], 5000) != 0) return 2;
    volatile unsigned char *bytes = chunks[0].memory;
    bytes[chunks[0].bytes - 1] = 1;
    if (embla_store_lookup(store, &last, 1, &raw, row) != EMBLA_ERR_IO) return 3;
    embla_store_free(store);
    return 0;
}

static void a_file_that_is_cut_under_a_writable_mapping_is_a_status(void **state)
{
    table t;
    int status = -1;
    (void)state;
    make(&t, 4, 3000);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(write_to_what_is_lost(&t));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_int_equal(status, 0);
    finish(&t);
}

static void every_failure_of_a_writable_mapping_is_a_status(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    table t;
    (void)state;
    make(&t, 2, 100);
    embla_store_free(opened(&t, 1, NULL)); /* the copy is there */
    for (int way = 1; way < 3; way++)
        for (int of_memory = 0; of_memory < 2; of_memory++)
            for (size_t n = 1;; n++) {
                embla_store *store = NULL;
                if (of_memory)
                    embla_mem_fail(n, false);
                else
                    embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
                embla_status status = open_way(&t, way, &writable, &store);
                embla_mem_fail(0, false);
                embla_io_fail(0, false, 0);
                embla_store_free(store);
                assert_int_equal(embla_mem_live(), live);
                assert_int_equal(embla_io_live(), files);
                if (status == EMBLA_OK) break;
                assert_status(status, of_memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
                assert_true(n < 1000);
            }
    finish(&t);
}

/* ---- ranges ---- */

enum { ROWS = 1500, ASKED = 700 };
static const embla_store_engine_options ranges[] = {
    {.first = 0, .end = 500}, {.first = 500, .end = 501}, {.first = 501}};

static void random_rows(uint64_t *seed, int64_t first, int64_t end, int64_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++)
        rows[i] = first + (int64_t)check_below(seed, (uint64_t)(end - first));
}

static void check_truth(const table *t, const int64_t *rows, size_t count, const unsigned char *out,
                        int64_t first, int64_t end)
{
    static const unsigned char zeros[264];
    for (size_t i = 0; i < count; i++) {
        bool held = rows[i] >= first && rows[i] < end;
        assert_memory_equal(out + i * t->row_bytes,
                            held ? t->truth + (size_t)rows[i] * t->row_bytes : zeros, t->row_bytes);
    }
}

/* The rows by a lookup, by a batch and by a ticket. */
static void check_three_ways(const table *t, const embla_store *store, const int64_t *rows,
                             size_t count, int64_t first, int64_t end)
{
    static unsigned char out[ASKED * 264];
    embla_batch *batch = NULL;
    embla_tickets *tickets = NULL;
    embla_ticket ticket;
    bool direct = store->placement == &embla_placement_direct, held = false;
    const embla_tickets_options hot = {.hot_bytes = direct ? 50000 : 0};
    for (size_t i = 0; i < count; i++) held = held || embla_store_holds(store, rows[i]);
    assert_ok(embla_store_lookup(store, rows, count, &raw, out));
    check_truth(t, rows, count, out, first, end);
    assert_ok(embla_batch_new(store, ASKED, &batch));
    assert_ok(embla_batch_verify(batch, 3));
    memset(out, 1, sizeof out);
    assert_ok(embla_batch_lookup(batch, rows, count, &raw, out));
    check_truth(t, rows, count, out, first, end);
    embla_batch_free(batch);
    assert_ok(embla_tickets_new(store, &hot, &tickets));
    for (int again = 0; again < 2; again++) { /* then some are hot */
        embla_tickets_info stats;
        memset(out, 1, sizeof out);
        const embla_ticket_request q = {.rows = rows, .count = count, .lookup = &raw, .out = out};
        assert_ok(embla_ticket_submit(tickets, &q, &ticket));
        assert_ok(embla_ticket_wait(tickets, ticket));
        check_truth(t, rows, count, out, first, end);
        assert_ok(embla_tickets_describe(tickets, &stats));
        if (again && direct && held) assert_true(stats.hot > 0);
        assert_true(stats.bytes_useful >= 0);
    }
    embla_tickets_free(tickets);
}

static void a_range_has_its_rows_and_no_others(void **state)
{
    size_t live = embla_mem_live(), files = embla_io_live();
    uint64_t seed = 3;
    (void)state;
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, ROWS);
        for (int way = 0; way < WAYS; way++)
            for (size_t r = 0; r < COUNT_OF(ranges); r++) {
                int64_t rows[ASKED];
                unsigned char out[264];
                char said[64];
                embla_store_info info;
                embla_verify_report verified;
                embla_store *store = opened(&t, way, &ranges[r]);
                assert_ok(embla_store_describe(store, &info));
                const int64_t first = info.first, end = info.end;
                assert_int_equal(first, ranges[r].first);
                assert_int_equal(end, ranges[r].end ? ranges[r].end : ROWS);
                random_rows(&seed, first, end, rows, ASKED);
                rows[0] = first;
                rows[1] = end - 1;
                check_three_ways(&t, store, rows, ASKED, first, end);
                assert_int_equal(info.rows, ROWS);
                assert_int_equal(info.bytes, (end - first) * (int64_t)t.row_bytes);
                assert_ok(embla_store_verify(store, 0, 1, &verified));
                assert_true(verified.rows == end - first && verified.different == 0);
                rows[0] = first > 0 ? first - 1 : end;
                (void)snprintf(said, sizeof said, "row %" PRId64 " at index 0 is not held here",
                               rows[0]);
                assert_status(embla_store_lookup(store, rows, 1, &raw, out), EMBLA_ERR_RANGE);
                assert_error_has(said);
                (void)snprintf(said, sizeof said, "only rows %" PRId64 " to %" PRId64 " of 1500",
                               first, end - 1);
                assert_error_has(said);
                rows[0] = ROWS;
                assert_status(embla_store_lookup(store, rows, 1, &raw, out), EMBLA_ERR_RANGE);
                assert_error_has("out of range");
                embla_store_free(store);
            }
        finish(&t);
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

/* With zeros, what all ranks look up adds up to the rows of the whole table. */
static void the_sum_over_all_ranks_is_the_whole_table(void **state)
{
    static float whole[ASKED * 256], sum[ASKED * 256], part[ASKED * 256];
    static const embla_store_lookup_options ways[] = {{.rows_per_token = 1},
                                                      {.rows_per_token = 7, .threads = 2}};
    uint64_t seed = 4;
    (void)state;
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, ROWS);
        embla_store *all = opened(&t, 3, NULL);
        for (int way = 0; way < WAYS; way++)
            for (size_t w = 0; w < COUNT_OF(ways); w++) {
                int64_t rows[ASKED];
                size_t numbers = ASKED * t.format.dim;
                random_rows(&seed, 0, ROWS, rows, ASKED);
                assert_ok(embla_store_lookup(all, rows, ASKED, &ways[w], whole));
                memset(sum, 0, sizeof sum);
                for (size_t r = 0; r < COUNT_OF(ranges); r++) {
                    embla_store_engine_options range = ranges[r];
                    range.zeros = true;
                    embla_store *store = opened(&t, way, &range);
                    int64_t end = range.end ? range.end : ROWS;
                    if (w == 0) check_three_ways(&t, store, rows, ASKED, range.first, end);
                    memset(part, 1, sizeof part);
                    assert_ok(embla_store_lookup(store, rows, ASKED, &ways[w], part));
                    for (size_t i = 0; i < numbers; i++) sum[i] += part[i];
                    embla_store_free(store);
                }
                for (size_t i = 0; i < numbers; i++)
                    if (!(sum[i] == whole[i]) && !(sum[i] != sum[i] && whole[i] != whole[i]))
                        fail_msg("number %zu is %g, not %g", i, (double)sum[i], (double)whole[i]);
            }
        embla_store_free(all);
        finish(&t);
    }
}

/* A rank fills memory for its own rows only. */
static void a_buffer_has_room_for_the_rows_of_a_range(void **state)
{
    table t;
    embla_store *store = NULL;
    (void)state;
    make(&t, 2, ROWS);
    size_t bytes = 500 * t.row_bytes;
    char *buffer = aligned_alloc(64, (bytes + 63) / 64 * 64);
    assert_non_null(buffer);
    embla_store_options options = {.placement = EMBLA_PLACEMENT_RAM,
                                   .buffer = buffer,
                                   .buffer_bytes = bytes - 1,
                                   .engine = &ranges[0]};
    assert_status(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store),
                  EMBLA_ERR_SHAPE);
    assert_error_has("500 rows of 264 bytes need 132000");
    options.buffer_bytes = bytes;
    assert_ok(embla_store_open_extents(&t.format, t.extents, t.count, &options, &store));
    assert_memory_equal(buffer, t.truth, bytes);
    embla_store_free(store);
    free(buffer);
    finish(&t);
}

/* ---- threads of the caller ---- */

enum { POOL = 64 };

typedef struct {
    void (*work)(void *argument);
    void *argument;
    pthread_t thread;
} task;

static struct {
    task tasks[POOL];
    size_t count, most; /* at most so many are granted */
} pool;

static void *run_task(void *context)
{
    const task *t = context;
    t->work(t->argument);
    return NULL;
}

static bool execute(void *context, void (*work)(void *argument), void *argument)
{
    assert_ptr_equal(context, &pool);
    if (pool.count == pool.most) return false;
    task *t = &pool.tasks[pool.count++];
    t->work = work;
    t->argument = argument;
    return pthread_create(&t->thread, NULL, run_task, t) == 0;
}

/* It returns all of them when the store is freed. */
static void a_reader_runs_on_threads_of_the_caller(void **state)
{
    static const size_t most[] = {POOL, 2, 0};
    const embla_store_engine_options engine = {.execute = execute, .context = &pool};
    uint64_t seed = 6;
    (void)state;
    for (int way = 4; way < WAYS; way++)
        for (size_t m = 0; m < COUNT_OF(most); m++) {
            table t;
            int64_t rows[ASKED];
            embla_store *store = NULL;
            embla_store_info info;
            make(&t, 2, ROWS);
            pool.count = 0;
            pool.most = most[m];
            size_t live = embla_mem_live();
            embla_status status = open_way(&t, way, &engine, &store);
            if (most[m] == 0) {
                assert_status(status, EMBLA_ERR_MEMORY);
                assert_error_has("the caller's `execute` grants 0");
                assert_int_equal(embla_mem_live(), live);
                finish(&t);
                continue;
            }
            assert_ok(status);
            assert_ok(embla_store_describe(store, &info));
            bool ring = info.reader == EMBLA_READER_IO_URING;
            size_t wanted = ring ? 1 : (size_t)info.depth;
            assert_int_equal(pool.count, wanted < most[m] ? wanted : most[m]);
            assert_int_equal(embla_direct_reader(store)->thread_count, pool.count);
            random_rows(&seed, 0, ROWS, rows, ASKED);
            check_three_ways(&t, store, rows, ASKED, 0, ROWS);
            embla_store_free(store);
            for (size_t i = 0; i < pool.count; i++)
                assert_int_equal(pthread_join(pool.tasks[i].thread, NULL), 0);
            finish(&t);
        }
}

static void engine_options_that_cannot_be_are_refused(void **state)
{
    static const struct {
        embla_store_engine_options engine;
        int way;
        embla_status status;
        const char *said;
    } wrong[] = {
        {{.first = -1}, 0, EMBLA_ERR_ARGUMENT, "begins at -1 and ends before 0"},
        {{.first = 7, .end = 7}, 0, EMBLA_ERR_ARGUMENT, "begins at 7 and ends before 7"},
        {{.first = 2000},
         2,
         EMBLA_ERR_RANGE,
         "begins at 2000 and ends before 2000, but the table "
         "has 1500 rows"},
        {{.end = 1501}, 4, EMBLA_ERR_RANGE, "ends before 1501, but the table has 1500 rows"},
        {{.writable = true}, 4, EMBLA_ERR_ARGUMENT, "not for direct"},
        {{.bind = true}, 1, EMBLA_ERR_ARGUMENT, "NUMA node 0, not shared"},
        {{.execute = execute}, 3, EMBLA_ERR_ARGUMENT, "execute is only for the placement direct"},
        {{.reserved = {1}}, 0, EMBLA_ERR_UNSUPPORTED, "reserved"},
    };
    size_t live = embla_mem_live();
    table t;
    (void)state;
    make(&t, 0, ROWS);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        embla_store *store = NULL;
        assert_status(open_way(&t, wrong[i].way, &wrong[i].engine, &store), wrong[i].status);
        assert_error_has(wrong[i].said);
        assert_null(store);
    }
    assert_int_equal(embla_mem_live(), live);
    finish(&t);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        /* First: cmocka takes SIGBUS for itself before each test, and what the child installs must
         * not have been installed by its parent. */
        cmocka_unit_test(a_file_that_is_cut_under_a_writable_mapping_is_a_status),
        cmocka_unit_test(all_rows_are_in_chunks_that_share_no_page),
        cmocka_unit_test(borders_of_chunks_are_on_pages_of_any_size),
        cmocka_unit_test(chunks_that_cannot_be_are_refused),
        cmocka_unit_test(a_writable_mapping_is_private),
        cmocka_unit_test(every_failure_of_a_writable_mapping_is_a_status),
        cmocka_unit_test(a_range_has_its_rows_and_no_others),
        cmocka_unit_test(the_sum_over_all_ranks_is_the_whole_table),
        cmocka_unit_test(a_buffer_has_room_for_the_rows_of_a_range),
        cmocka_unit_test(a_reader_runs_on_threads_of_the_caller),
        cmocka_unit_test(engine_options_that_cannot_be_are_refused),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
