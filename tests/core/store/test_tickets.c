/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: the rows they bring are those of a lookup, with every reader and every placement; what
 * happens to memory, flags and hot rows; and failures. test_reload.c has many threads at random.
 */
#include "check.h"

#include <errno.h>
#include <poll.h>
#include <sys/wait.h>
#include <time.h>

#include "base/mem.h"
#include "files/io.h"
#include "store/reader.h"
#include "store_tables.h"

enum { KINDS = 5 };
static const embla_store_options kinds[KINDS] = {
    {.placement = EMBLA_PLACEMENT_DIRECT},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_PREAD, .depth = 4},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_BUFFERED, .depth = 3},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_IO_URING, .depth = 5},
    {.placement = EMBLA_PLACEMENT_RAM},
};

/* Opens the store; false if the system does not have this reader. */
static bool open_kind(const table *t, int kind, embla_store **out)
{
    embla_status status =
        embla_store_open_extents(&t->format, t->extents, t->count, &kinds[kind], out);
    if (status == EMBLA_ERR_UNSUPPORTED) return false;
    assert_ok(status);
    return true;
}

static void random_rows(const table *t, uint64_t *seed, int64_t *rows, size_t count)
{
    for (size_t i = 0; i < count; i++) rows[i] = (int64_t)check_below(seed, (uint64_t)t->rows);
}

/* ---- the same as a lookup ---- */

static const embla_store_lookup_options ways[] = {
    {.raw = true},
    {.rows_per_token = 4},
    {.rows_per_token = 8, .sum = true},
    {.rows_per_token = 2, .out_dtype = EMBLA_BF16, .scale = 0.5f},
    {.first_column = 32, .columns = 64, .out_dtype = EMBLA_F16},
    {.rows_per_token = 2, .token_stride = 4096, .row_stride = 1536},
};

static void tickets_return_what_a_lookup_returns(void **state)
{
    enum { COUNT = 600 };
    static unsigned char wanted[COUNT * 2048], out[COUNT * 2048];
    size_t live = embla_mem_live(), files = embla_io_live();
    uint64_t seed = 5;
    (void)state;
    for (int which = 0; which < TABLES; which++) {
        table t;
        make(&t, which, 4000);
        for (int kind = 0; kind < KINDS; kind++) {
            embla_store *store = NULL;
            embla_tickets *tickets = NULL;
            if (!open_kind(&t, kind, &store)) continue;
            assert_ok(embla_tickets_new(store, NULL, &tickets));
            for (size_t w = 0; w < COUNT_OF(ways); w++) {
                if (w == 4 && t.format.dim == 256 && t.format.dtype == EMBLA_Q4_K) continue;
                int64_t rows[COUNT];
                embla_ticket ticket = 0;
                size_t count = w == 0 ? COUNT : 8 * (1 + check_below(&seed, 50));
                random_rows(&t, &seed, rows, count);
                memset(wanted, 1, sizeof wanted);
                memset(out, 1, sizeof out);
                assert_ok(embla_store_lookup(store, rows, count, &ways[w], wanted));
                const embla_ticket_request q = {
                    .rows = rows, .count = count, .lookup = &ways[w], .out = out};
                assert_ok(embla_ticket_submit(tickets, &q, &ticket));
                memset(rows, 0xff, sizeof rows); /* they are no longer needed */
                assert_true(ticket != 0);
                assert_ok(embla_ticket_wait(tickets, ticket));
                assert_memory_equal(out, wanted, sizeof out);
            }
            embla_tickets_free(tickets);
            embla_store_free(store);
        }
        finish(&t);
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

static void tokens_and_their_history_select_the_rows(void **state)
{
    enum { TOKENS = 9, ROWS = 2000 };
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 500,
                                               .orders = 3,
                                               .rows_per_ngram = 4,
                                               .base = 200,
                                               .eos = 3,
                                               .seed = 1234};
    const int32_t tokens[TOKENS] = {7, 44, 499, 3, 8, 9, 10, 7, 44}, history[2] = {-1, 12};
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    embla_ticket ticket;
    int64_t rows[TOKENS * 8];
    static float wanted[TOKENS * 8 * 160], out[TOKENS * 8 * 160];
    table t;
    (void)state;
    assert_ok(embla_ngram_new(&parameters, &ngram));
    assert_ok(embla_ngram_describe(ngram, &info));
    assert_true(info.rows_per_token == 8 && info.rows <= ROWS);
    make(&t, 0, ROWS);
    assert_true(open_kind(&t, 0, &store));
    assert_ok(embla_tickets_new(store, NULL, &tickets));
    const embla_ngram_options before = {.history = history};
    assert_ok(embla_ngram_rows(ngram, tokens, 1, TOKENS, &before, rows));
    assert_ok(embla_store_lookup(store, rows, TOKENS * 8, NULL, wanted));
    embla_ticket_request q = {
        .ngram = ngram, .tokens = tokens, .length = TOKENS, .history = history, .out = out};
    assert_ok(embla_ticket_submit(tickets, &q, &ticket));
    assert_ok(embla_ticket_wait(tickets, ticket));
    assert_memory_equal(out, wanted, sizeof out);
    const int32_t wrong[1] = {500};
    q.tokens = wrong;
    q.length = 1;
    assert_status(embla_ticket_submit(tickets, &q, &ticket), EMBLA_ERR_RANGE);
    embla_tickets_info stats;
    assert_ok(embla_tickets_describe(tickets, &stats));
    assert_int_equal(stats.tokens, TOKENS);
    assert_int_equal(stats.asked, TOKENS * 8);
    assert_int_equal(stats.in_flight, 0);
    embla_tickets_free(tickets);
    embla_store_free(store);
    embla_ngram_free(ngram);
    finish(&t);
}

/* ---- one ticket ---- */

typedef struct {
    table t;
    embla_store *store;
    embla_tickets *tickets;
    int64_t rows[1000];
    unsigned char out[1000 * 264];
} opened;

static opened o; /* too large for a stack */

static void open_tickets(int which, int kind, const embla_tickets_options *options)
{
    uint64_t seed = 11;
    make(&o.t, which, 6000);
    if (!open_kind(&o.t, kind, &o.store)) {
        finish(&o.t);
        skip_because("this system has no such reader");
    }
    assert_ok(embla_tickets_new(o.store, options, &o.tickets));
    random_rows(&o.t, &seed, o.rows, 1000);
    memset(o.out, CHECK_MARK, sizeof o.out);
}

static void close_tickets(void)
{
    embla_tickets_free(o.tickets);
    embla_store_free(o.store);
    finish(&o.t);
}

static const embla_store_lookup_options raw = {.raw = true};

static embla_ticket_request first_rows(size_t count)
{
    return (embla_ticket_request){.rows = o.rows, .count = count, .lookup = &raw, .out = o.out};
}

static void check_out(size_t count)
{
    for (size_t i = 0; i < count; i++)
        assert_memory_equal(o.out + i * o.t.row_bytes,
                            o.t.truth + (size_t)o.rows[i] * o.t.row_bytes, o.t.row_bytes);
}

static void a_ticket_that_has_ended_is_gone(void **state)
{
    embla_ticket ticket;
    bool done = false;
    (void)state;
    open_tickets(0, 0, NULL);
    embla_ticket_request q = first_rows(16);
    assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
    for (size_t i = 0; !done; i++) {
        assert_ok(embla_ticket_done(o.tickets, ticket, &done));
        (void)poll(NULL, 0, 1);
        assert_true(i < 30000);
    }
    check_out(16); /* before it is waited for */
    assert_ok(embla_ticket_wait(o.tickets, ticket));
    assert_status(embla_ticket_wait(o.tickets, ticket), EMBLA_ERR_ARGUMENT);
    assert_error_has("there is no ticket");
    assert_status(embla_ticket_done(o.tickets, ticket, &done), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ticket_cancel(o.tickets, ticket), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ticket_wait(o.tickets, 0), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ticket_wait(o.tickets, UINT64_MAX), EMBLA_ERR_ARGUMENT);
    q.count = 0; /* a ticket for nothing */
    assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
    assert_ok(embla_ticket_wait(o.tickets, ticket));
    close_tickets();
}

static void a_cancelled_ticket_writes_nothing(void **state)
{
    embla_tickets_info stats;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_tickets(0, kind, NULL);
        for (size_t i = 0; i < 60; i++) {
            embla_ticket_request q = first_rows(1 + i * 16);
            embla_ticket ticket;
            uint64_t flag = 0;
            if (i % 3 == 1) q.flag = &flag;
            assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
            if (i % 3 == 2) (void)poll(NULL, 0, 1);
            assert_ok(embla_ticket_cancel(o.tickets, ticket));
            if (i % 3 != 1) check_marks(o.out, o.out + sizeof o.out);
            memset(o.out, CHECK_MARK, sizeof o.out); /* it is ours again */
            (void)poll(NULL, 0, 1);
            check_marks(o.out, o.out + sizeof o.out);
        }
        assert_ok(embla_tickets_describe(o.tickets, &stats));
        assert_int_equal(stats.cancelled, 60);
        close_tickets();
    }
}

static void tickets_are_refused_when_memory_is_used_up(void **state)
{
    /* room for two tickets of 100 rows: 100 x (160 + 24) bytes, in whole lines */
    const embla_tickets_options options = {.max_bytes = 37300, .max_rows = 300, .max_tickets = 3};
    embla_ticket tickets[4];
    embla_tickets_info stats;
    (void)state;
    open_tickets(0, 0, &options);
    embla_ticket_request q = first_rows(100);
    assert_ok(embla_ticket_submit(o.tickets, &q, &tickets[0]));
    assert_ok(embla_ticket_submit(o.tickets, &q, &tickets[1]));
    assert_status(embla_ticket_submit(o.tickets, &q, &tickets[2]), EMBLA_ERR_BUSY);
    assert_error_has("wait for a ticket first");
    assert_ok(embla_ticket_wait(o.tickets, tickets[0]));
    assert_ok(embla_ticket_submit(o.tickets, &q, &tickets[2])); /* in the gap before the other */
    q.count = 1;
    assert_ok(embla_ticket_submit(o.tickets, &q, &tickets[0]));
    q.count = 0;
    assert_status(embla_ticket_submit(o.tickets, &q, &tickets[3]), EMBLA_ERR_BUSY);
    assert_error_has("all 3 tickets are in use");
    for (size_t i = 0; i < 3; i++) assert_ok(embla_ticket_wait(o.tickets, tickets[i]));
    q.count = 250;
    assert_status(embla_ticket_submit(o.tickets, &q, &tickets[0]), EMBLA_ERR_ARGUMENT);
    assert_error_has("but all tickets have 37300");
    q.count = 301;
    assert_status(embla_ticket_submit(o.tickets, &q, &tickets[0]), EMBLA_ERR_ARGUMENT);
    assert_error_has("its maximum is 300");
    assert_ok(embla_tickets_describe(o.tickets, &stats));
    assert_int_equal(stats.busy, 2);
    assert_int_equal(stats.in_flight, 0);
    assert_true(stats.in_flight_max <= 37300 && stats.in_flight_max > 36000);
    close_tickets();
}

static void a_flag_and_an_eventfd_tell_that_a_ticket_has_ended(void **state)
{
    const embla_tickets_options with_event = {.event = true};
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t flag = 0, count = 0;
        embla_ticket ticket, other;
        bool done = false;
        if (kind == 3) continue; /* as 0 */
        open_tickets(0, kind, &with_event);
        embla_ticket_request q = first_rows(700); /* more than there are slots */
        q.flag = &flag;
        q.value = 77;
        assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
        for (size_t i = 0; __atomic_load_n(&flag, __ATOMIC_ACQUIRE) != 77; i++) {
            (void)poll(NULL, 0, 1); /* nobody waits for it */
            assert_true(i < 30000);
        }
        check_out(700);
        struct pollfd event = {.fd = embla_tickets_event(o.tickets), .events = POLLIN};
        assert_int_equal(poll(&event, 1, 30000), 1);
        assert_int_equal(read(event.fd, &count, sizeof count), sizeof count);
        assert_int_equal(count, 1);
        assert_ok(embla_ticket_done(o.tickets, ticket, &done));
        assert_true(done);
        assert_ok(embla_ticket_wait(o.tickets, ticket));
        q.flag = NULL;
        assert_ok(embla_ticket_submit(o.tickets, &q, &other));
        assert_int_equal(poll(&event, 1, 30000), 1);
        assert_ok(embla_ticket_wait(o.tickets, other));
        close_tickets();
    }
}

/* Nothing but the flag orders what the finishing thread writes and this one reads: the loop takes
 * no lock. Under the thread sanitizer a weaker store is a race. (It sees no reads by cmocka.) */
static void a_flag_alone_orders_the_rows(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_tickets(0, kind, NULL);
        for (uint64_t i = 1; i <= 200; i++) {
            uint64_t flag = 0, seen;
            embla_ticket ticket;
            embla_ticket_request q = first_rows(1 + i % 40);
            q.flag = &flag;
            q.value = i;
            memset(o.out, CHECK_MARK, sizeof o.out);
            assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
            while ((seen = __atomic_load_n(&flag, __ATOMIC_ACQUIRE)) == 0) continue;
            assert_int_equal(seen, i);
            for (size_t r = 0; r < q.count; r++)
                assert_true(memcmp(o.out + r * o.t.row_bytes,
                                   o.t.truth + (size_t)o.rows[r] * o.t.row_bytes,
                                   o.t.row_bytes) == 0);
            assert_ok(embla_ticket_wait(o.tickets, ticket));
        }
        close_tickets();
    }
}

static void a_ticket_of_a_decode_step_wakes_no_thread(void **state)
{
    embla_store_info info;
    (void)state;
    open_tickets(0, 0, NULL);
    assert_ok(embla_store_describe(o.store, &info));
    embla_ticket_request q = first_rows(16);
    for (size_t i = 0; i < 50 && info.reader == EMBLA_READER_IO_URING; i++) {
        embla_ticket tickets[3];
        for (size_t k = 0; k < 3; k++) assert_ok(embla_ticket_submit(o.tickets, &q, &tickets[k]));
        for (size_t k = 3; k-- > 0;) assert_ok(embla_ticket_wait(o.tickets, tickets[k]));
        assert_int_equal(embla_reader_wakes(embla_direct_reader(o.store)), 0);
    }
    close_tickets();
}

static void nothing_is_allocated_after_opening(void **state)
{
    const embla_tickets_options hot = {.hot_bytes = 100000};
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_tickets(2, kind, &hot);
        embla_mem_fail(1, true);
        for (size_t i = 0; i < 20; i++) {
            embla_ticket ticket;
            embla_ticket_request q = first_rows(50 * i);
            assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
            assert_ok(embla_tickets_prefetch(o.tickets, &q));
            assert_ok(embla_ticket_wait(o.tickets, ticket));
        }
        embla_mem_fail(0, false);
        close_tickets();
    }
}

static void every_allocation_of_opening_may_fail(void **state)
{
    const embla_tickets_options hot = {.hot_bytes = 100000, .event = true};
    (void)state;
    open_tickets(2, 0, NULL);
    size_t live = embla_mem_live(), files = embla_io_live();
    for (size_t n = 1;; n++) {
        embla_tickets *tickets = NULL;
        embla_mem_fail(n, false);
        embla_status status = embla_tickets_new(o.store, &hot, &tickets);
        embla_mem_fail(0, false);
        embla_tickets_free(tickets);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_MEMORY);
        assert_true(n < 10);
    }
    close_tickets();
}

static void requests_that_cannot_be_are_refused(void **state)
{
    embla_ticket ticket = 0;
    embla_tickets *tickets = NULL;
    (void)state;
    open_tickets(0, 0, NULL);
    embla_ticket_request q = first_rows(4);
    o.rows[2] = 6000;
    assert_status(embla_ticket_submit(o.tickets, &q, &ticket), EMBLA_ERR_RANGE);
    assert_error_has("row 6000 at index 2 is out of range");
    o.rows[2] = 0;
    q.out = NULL;
    assert_status(embla_ticket_submit(o.tickets, &q, &ticket), EMBLA_ERR_ARGUMENT);
    q = first_rows(4);
    q.rows = NULL;
    assert_status(embla_ticket_submit(o.tickets, &q, &ticket), EMBLA_ERR_ARGUMENT);
    q = first_rows(4);
    q.reserved[1] = 1;
    assert_status(embla_ticket_submit(o.tickets, &q, &ticket), EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_ticket_submit(NULL, &q, &ticket), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ticket_submit(o.tickets, NULL, &ticket), EMBLA_ERR_ARGUMENT);
    assert_status(embla_ticket_submit(o.tickets, &q, NULL), EMBLA_ERR_ARGUMENT);
    assert_int_equal(ticket, 0);
    assert_int_equal(embla_tickets_event(o.tickets), -1);
    const embla_tickets_options wrong[] = {{.max_tickets = 65536},
                                           {.max_rows = SIZE_MAX},
                                           {.hot_count = 1, .hot_bytes = 1000},
                                           {.hot_rows = o.rows, .hot_count = 1},
                                           {.hot_bytes = 100}};
    for (size_t i = 0; i < COUNT_OF(wrong); i++)
        assert_status(embla_tickets_new(o.store, &wrong[i], &tickets), EMBLA_ERR_ARGUMENT);
    assert_null(tickets);
    embla_tickets_free(NULL);
    close_tickets();
}

/* ---- failures ---- */

static void a_ticket_that_fails_leaves_the_output_untouched(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        embla_ticket ticket;
        uint64_t flag = 0;
        open_tickets(2, kind, NULL);
        embla_ticket_request q = first_rows(40);
        for (int with_flag = 0; with_flag < 2; with_flag++) {
            q.flag = with_flag ? &flag : NULL;
            q.value = 5;
            embla_io_fail(1, true, EMBLA_SYSTEM_OTHER);
            assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
            embla_status status = embla_ticket_wait(o.tickets, ticket);
            embla_io_fail(0, false, 0);
            assert_status(status, EMBLA_ERR_IO);
            assert_error_has("Input/output error");
            check_marks(o.out, o.out + sizeof o.out);
        }
        assert_true(flag == UINT64_MAX);
        assert_ok(embla_ticket_submit(o.tickets, &q, &ticket)); /* it goes on */
        assert_ok(embla_ticket_wait(o.tickets, ticket));
        check_out(40);
        assert_true(flag == 5);
        close_tickets();
    }
}

static void a_file_that_is_cut_fails_its_tickets(void **state)
{
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        embla_ticket ticket;
        open_tickets(4, kind, NULL);
        embla_ticket_request q = first_rows(400);
        assert_int_equal(truncate(o.t.paths[0], 5000), 0);
        assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
        assert_status(embla_ticket_wait(o.tickets, ticket), EMBLA_ERR_IO);
        assert_error_has("truncated while it was open");
        check_marks(o.out, o.out + sizeof o.out);
        close_tickets();
    }
}

/* Its size stays the same; only the time of its last change tells. */
static void a_file_that_is_written_to_fails_its_tickets(void **state)
{
    const struct timespec times[2] = {{.tv_nsec = UTIME_OMIT}, {.tv_sec = 1000}};
    embla_ticket ticket;
    (void)state;
    open_tickets(2, 0, NULL);
    embla_ticket_request q = first_rows(40);
    assert_int_equal(utimensat(AT_FDCWD, o.t.paths[1], times, 0), 0); /* the scales */
    assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
    assert_status(embla_ticket_wait(o.tickets, ticket), EMBLA_ERR_IO);
    assert_error_has("was changed while open");
    check_marks(o.out, o.out + sizeof o.out);
    close_tickets();
}

/* An open file keeps its rows. */
static void a_file_that_is_removed_keeps_its_rows(void **state)
{
    embla_ticket ticket;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_tickets(4, kind, NULL);
        embla_ticket_request q = first_rows(500);
        assert_int_equal(unlink(o.t.paths[0]), 0);
        assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
        assert_ok(embla_ticket_wait(o.tickets, ticket));
        check_out(500);
        close_tickets();
    }
}

static void tickets_that_nobody_waits_for_are_freed(void **state)
{
    size_t live = embla_mem_live();
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        uint64_t flag;
        embla_ticket ticket;
        if (kind == 3) continue;
        open_tickets(0, kind, NULL);
        for (size_t i = 0; i < 20; i++) {
            embla_ticket_request q = first_rows(i * 40);
            q.flag = i % 2 ? &flag : NULL;
            assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
        }
        close_tickets();
    }
    assert_int_equal(embla_mem_live(), live);
}

/* ---- hot rows ---- */

static embla_tickets_info fetch_rows(size_t count)
{
    embla_tickets_info stats;
    embla_ticket ticket;
    embla_ticket_request q = first_rows(count);
    memset(o.out, CHECK_MARK, sizeof o.out);
    assert_ok(embla_ticket_submit(o.tickets, &q, &ticket));
    assert_ok(embla_ticket_wait(o.tickets, ticket));
    check_out(count);
    assert_ok(embla_tickets_describe(o.tickets, &stats));
    return stats;
}

static void hot_rows_are_read_once(void **state)
{
    const embla_tickets_options hot = {.hot_bytes = 1 << 20};
    (void)state;
    open_tickets(2, 0, &hot);
    embla_tickets_info first = fetch_rows(1000), second = fetch_rows(1000);
    assert_int_equal(first.hot, 0);
    assert_int_equal(second.hot, 1000);
    assert_int_equal(second.reads, first.reads);
    assert_true(second.hot_rows <= 1000 && second.hot_rows > 800); /* some rows are the same */
    assert_true(second.hot_bytes <= 1 << 20);
    close_tickets();
}

static void the_budget_of_hot_rows_is_never_passed(void **state)
{
    (void)state;
    for (size_t budget = 1000; budget < 60000; budget = budget * 3 / 2) {
        const embla_tickets_options hot = {.hot_bytes = budget};
        open_tickets(4, 0, &hot);
        for (size_t i = 0; i < 10; i++) {
            embla_tickets_info stats = fetch_rows(100 * i);
            assert_true(stats.hot_bytes <= (int64_t)budget);
            assert_true(stats.hot_rows * 264 < stats.hot_bytes);
        }
        close_tickets();
    }
}

/* The first rows are kept whatever is read; others come and go. */
static void fixed_rows_stay(void **state)
{
    int64_t fixed[] = {5, 17, 5, 100, 5999, 0};
    const embla_tickets_options hot = {
        .hot_bytes = 6000, .hot_rows = fixed, .hot_count = COUNT_OF(fixed)};
    (void)state;
    open_tickets(4, 0, &hot);
    embla_tickets_info before = fetch_rows(1000);
    memcpy(o.rows, fixed, sizeof fixed);
    embla_tickets_info after = fetch_rows(COUNT_OF(fixed));
    assert_int_equal(after.hot - before.hot, COUNT_OF(fixed));
    assert_int_equal(after.reads, before.reads);
    close_tickets();
    int64_t outside = 6000;
    const embla_tickets_options wrong = {.hot_bytes = 6000, .hot_rows = &outside, .hot_count = 1};
    open_tickets(4, 0, NULL);
    embla_tickets *tickets = NULL;
    assert_status(embla_tickets_new(o.store, &wrong, &tickets), EMBLA_ERR_RANGE);
    assert_error_has("hot row 6000 at index 0 is out of range");
    close_tickets();
}

static void hot_rows_come_from_a_file(void **state)
{
    static const char header[] = "\x93NUMPY\x01\x00\x76\x00{'descr': '<i8', 'fortran_order': "
                                 "False, 'shape': (3,), }";
    unsigned char npy[128 + 24];
    const int64_t rows[3] = {4, 40, 400};
    scratch s;
    (void)state;
    memset(npy, ' ', 128);
    memcpy(npy, header, sizeof header - 1);
    npy[127] = '\n';
    memcpy(npy + 128, rows, sizeof rows);
    scratch_new(&s);
    scratch_write(scratch_path(&s, "hot.npy"), npy, sizeof npy);
    const embla_tickets_options hot = {.hot_bytes = 6000, .hot_file = s.path};
    open_tickets(4, 0, &hot);
    memcpy(o.rows, rows, sizeof rows);
    assert_int_equal(fetch_rows(3).hot, 3);
    npy[22] = 'f'; /* '<f8' */
    embla_tickets *tickets = NULL;
    scratch_write(scratch_path(&s, "hot.npy"), npy, sizeof npy);
    assert_status(embla_tickets_new(o.store, &hot, &tickets), EMBLA_ERR_FORMAT);
    assert_error_has("a list of rows is an npy file");
    close_tickets();
    scratch_free(&s);
}

static void a_prefetched_row_is_hot(void **state)
{
    const embla_tickets_options hot = {.hot_bytes = 1 << 20};
    embla_tickets_info stats;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_tickets(2, kind, &hot);
        embla_ticket_request q = first_rows(300);
        q.out = NULL;
        assert_ok(embla_tickets_prefetch(o.tickets, &q));
        for (size_t i = 0; i < 30000; i++) {
            assert_ok(embla_tickets_describe(o.tickets, &stats));
            if (stats.in_flight == 0) break;
            (void)poll(NULL, 0, 1);
        }
        assert_int_equal(stats.asked, 0);
        assert_int_equal(fetch_rows(300).hot, 300);
        close_tickets();
    }
    open_tickets(2, 0, NULL); /* without hot rows it does nothing */
    embla_ticket_request q = first_rows(300);
    assert_ok(embla_tickets_prefetch(o.tickets, &q));
    assert_ok(embla_tickets_describe(o.tickets, &stats));
    assert_true(stats.prefetched == 1 && stats.dropped == 1 && stats.reads == 0);
    close_tickets();
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tickets_return_what_a_lookup_returns),
        cmocka_unit_test(tokens_and_their_history_select_the_rows),
        cmocka_unit_test(a_ticket_that_has_ended_is_gone),
        cmocka_unit_test(a_cancelled_ticket_writes_nothing),
        cmocka_unit_test(tickets_are_refused_when_memory_is_used_up),
        cmocka_unit_test(a_flag_and_an_eventfd_tell_that_a_ticket_has_ended),
        cmocka_unit_test(a_flag_alone_orders_the_rows),
        cmocka_unit_test(a_ticket_of_a_decode_step_wakes_no_thread),
        cmocka_unit_test(nothing_is_allocated_after_opening),
        cmocka_unit_test(every_allocation_of_opening_may_fail),
        cmocka_unit_test(requests_that_cannot_be_are_refused),
        cmocka_unit_test(a_ticket_that_fails_leaves_the_output_untouched),
        cmocka_unit_test(a_file_that_is_cut_fails_its_tickets),
        cmocka_unit_test(a_file_that_is_written_to_fails_its_tickets),
        cmocka_unit_test(a_file_that_is_removed_keeps_its_rows),
        cmocka_unit_test(tickets_that_nobody_waits_for_are_freed),
        cmocka_unit_test(hot_rows_are_read_once),
        cmocka_unit_test(the_budget_of_hot_rows_is_never_passed),
        cmocka_unit_test(fixed_rows_stay),
        cmocka_unit_test(hot_rows_come_from_a_file),
        cmocka_unit_test(a_prefetched_row_is_hot),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
