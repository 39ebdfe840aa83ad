/* SPDX-License-Identifier: Apache-2.0 */
/* A table that is replaced while rows of it are under way (store/swap.c): a ticket brings the rows
 * of the version that it was submitted to; files that change meanwhile; and many threads that
 * submit, wait, cancel, prefetch and reload at random.
 *
 * EMBLA_TICKET_OPS sets the operations of each thread of the last test (2,500 if it is not set).
 */
#include <pthread.h>

#include "base/mem.h"
#include "files/io.h"
#include "store/tickets.h"
#include "store_tables.h"

enum { KINDS = 5, ROWS = 6000, ROW = 264 };
static const embla_store_options kinds[KINDS] = {
    {.placement = EMBLA_PLACEMENT_DIRECT},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_PREAD, .depth = 4},
    {.placement = EMBLA_PLACEMENT_DIRECT, .reader = EMBLA_READER_BUFFERED, .depth = 3},
    {.placement = EMBLA_PLACEMENT_RAM},
    {.placement = EMBLA_PLACEMENT_MAPPED},
};
static const embla_tickets_options small = {
    .max_bytes = 150000, .max_tickets = 18, .hot_bytes = 40000};
static const embla_store_lookup_options raw = {.raw = true};

/* Two versions of one table: every byte differs. */
static struct {
    table t[2];
    int kind;
    embla_swap *swap;
} o;

static void make_version(table *t, unsigned char mark)
{
    start(t, deepseek, ROWS);
    for (size_t i = 0; i < (size_t)ROWS * t->row_bytes; i++) t->truth[i] ^= mark;
    make_planes(t, 0);
}

static embla_status open_version(int which, embla_store **store, embla_tickets **tickets)
{
    const table *t = &o.t[which];
    embla_tickets_options options = small;
    if (kinds[o.kind].placement != EMBLA_PLACEMENT_DIRECT) options.hot_bytes = 0;
    *store = NULL;
    *tickets = NULL;
    EMBLA_TRY(embla_store_open_extents(&t->format, t->extents, t->count, &kinds[o.kind], store));
    embla_status status = embla_tickets_new(*store, &options, tickets);
    if (status == EMBLA_OK) return EMBLA_OK;
    embla_store_free(*store);
    *store = NULL;
    return status;
}

static void open_swap(int kind)
{
    embla_store *store;
    embla_tickets *tickets;
    o.kind = kind;
    make_version(&o.t[0], 0);
    make_version(&o.t[1], 0x5a);
    assert_ok(open_version(0, &store, &tickets));
    assert_ok(embla_swap_new(store, tickets, &o.swap));
}

static void close_swap(void)
{
    embla_swap_free(o.swap);
    finish(&o.t[0]);
    finish(&o.t[1]);
}

static embla_status reload(int which)
{
    embla_store *store;
    embla_tickets *tickets;
    EMBLA_TRY(open_version(which, &store, &tickets));
    embla_status status = embla_swap_replace(o.swap, store, tickets);
    if (status == EMBLA_OK) return EMBLA_OK;
    embla_tickets_free(tickets);
    embla_store_free(store);
    return status;
}

/* The table that a version was opened from. */
static const table *table_of(const embla_swap_version *version)
{
    const char *name = version->store->sources[0].map->name;
    return strcmp(name, o.t[0].paths[0]) == 0 ? &o.t[0] : &o.t[1];
}

/* ---- one ticket ---- */

enum { COUNT = 300 };

typedef struct {
    const embla_swap_version *version;
    embla_ticket ticket;
    size_t count;
    int64_t rows[COUNT];
    unsigned char out[COUNT * ROW];
    uint64_t flag;
} request;

static bool rows_are_right(const request *r)
{
    const table *t = table_of(r->version);
    for (size_t i = 0; i < r->count; i++)
        if (memcmp(r->out + i * ROW, t->truth + (size_t)r->rows[i] * ROW, ROW) != 0) return false;
    return true;
}

static void choose_rows(request *r, uint64_t *seed, size_t count)
{
    r->count = count;
    r->flag = 0;
    for (size_t i = 0; i < count; i++) r->rows[i] = (int64_t)check_below(seed, ROWS);
}

static void submit(request *r)
{
    const embla_ticket_request q = {
        .rows = r->rows, .count = r->count, .lookup = &raw, .out = r->out};
    r->version = embla_swap_acquire(o.swap);
    assert_ok(embla_ticket_submit(r->version->tickets, &q, &r->ticket));
}

static void tickets_bring_the_rows_of_their_own_version(void **state)
{
    static request a, b;
    size_t live = embla_mem_live(), files = embla_io_live();
    uint64_t seed = 9;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        open_swap(kind);
        size_t opened = embla_io_live(), used = embla_mem_live();
        choose_rows(&a, &seed, COUNT);
        choose_rows(&b, &seed, COUNT);
        submit(&a);
        assert_ok(reload(1));
        submit(&b);
        assert_int_equal(a.version->number, 1);
        assert_int_equal(b.version->number, 2);
        assert_true(table_of(a.version) != table_of(b.version));
        /* a ticket is not known to another version */
        assert_status(embla_ticket_wait(b.version->tickets, a.ticket), EMBLA_ERR_ARGUMENT);
        assert_status(embla_ticket_wait(a.version->tickets, b.ticket), EMBLA_ERR_ARGUMENT);
        assert_ok(embla_ticket_wait(b.version->tickets, b.ticket));
        assert_ok(embla_ticket_wait(a.version->tickets, a.ticket));
        assert_true(rows_are_right(&a) && rows_are_right(&b));
        assert_true(embla_mem_live() > used);
        embla_swap_release(o.swap, a.version); /* the last: the old version is freed */
        assert_int_equal(embla_io_live(), opened);
        assert_int_equal(embla_mem_live(), used);
        embla_swap_release(o.swap, b.version);
        assert_int_equal(embla_mem_live(), used); /* it is the current one */
        assert_ok(reload(0));                     /* nobody uses the old one: freed at once */
        assert_int_equal(embla_mem_live(), used);
        const embla_swap_version *last = embla_swap_acquire(o.swap);
        assert_int_equal(last->number, 3);
        embla_swap_release(o.swap, last);
        close_swap();
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

/* ---- what is refused ---- */

static void refuse(embla_store *store, embla_tickets *tickets, embla_status status,
                   const char *said)
{
    assert_status(embla_swap_replace(o.swap, store, tickets), status);
    assert_error_has(said);
    const embla_swap_version *v = embla_swap_acquire(o.swap);
    assert_int_equal(v->number, 1);
    embla_swap_release(o.swap, v);
}

static void versions_of_another_shape_are_refused(void **state)
{
    const embla_store_engine_options half = {.end = ROWS / 2};
    embla_store_options options = {.placement = EMBLA_PLACEMENT_READ};
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    embla_swap *swap = NULL;
    table other;
    (void)state;
    open_swap(0);
    make(&other, 0, ROWS);
    assert_ok(embla_store_open_extents(&qwen, other.extents, other.count, &options, &store));
    refuse(store, NULL, EMBLA_ERR_SHAPE, "rows of 160 f8_e4m3");
    embla_store_free(store);
    finish(&other);
    make(&other, 2, ROWS - 1);
    assert_ok(embla_store_open_extents(&deepseek, other.extents, other.count, &options, &store));
    refuse(store, NULL, EMBLA_ERR_SHAPE, "rows 0 to 5998 of 5999, the current one rows 0 to 5999");
    embla_store_free(store);
    finish(&other);
    options.engine = &half;
    assert_ok(embla_store_open_extents(&deepseek, o.t[1].extents, 1, &options, &store));
    refuse(store, NULL, EMBLA_ERR_SHAPE, "rows 0 to 2999 of 6000, the current one rows 0 to 5999");
    embla_store_free(store);
    options.engine = NULL;
    assert_ok(embla_store_open_extents(&deepseek, o.t[1].extents, 1, &options, &store));
    const embla_swap_version *v = embla_swap_acquire(o.swap);
    refuse(store, v->tickets, EMBLA_ERR_ARGUMENT, "the tickets belong to another store");
    refuse((embla_store *)(uintptr_t)v->store, v->tickets, EMBLA_ERR_ARGUMENT, "already version 1");
    assert_status(embla_swap_new(store, v->tickets, &swap), EMBLA_ERR_ARGUMENT);
    embla_swap_release(o.swap, v);
    refuse(NULL, NULL, EMBLA_ERR_ARGUMENT, "store is NULL");
    assert_status(embla_swap_replace(NULL, store, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_swap_new(NULL, NULL, &swap), EMBLA_ERR_ARGUMENT);
    assert_status(embla_swap_new(store, tickets, NULL), EMBLA_ERR_ARGUMENT);
    assert_null(swap);
    embla_swap_free(NULL);
    embla_store_free(store); /* it is still ours */
    close_swap();
}

static void every_allocation_may_fail(void **state)
{
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    (void)state;
    open_swap(0);
    assert_ok(open_version(1, &store, &tickets));
    size_t live = embla_mem_live();
    embla_swap *swap = NULL;
    for (size_t n = 1; n <= 2; n++) {
        embla_mem_fail(n, false);
        assert_status(embla_swap_new(store, tickets, &swap), EMBLA_ERR_MEMORY);
        embla_mem_fail(0, false);
        assert_null(swap);
        assert_int_equal(embla_mem_live(), live);
    }
    embla_mem_fail(1, false);
    assert_status(embla_swap_replace(o.swap, store, tickets), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_int_equal(embla_mem_live(), live);
    assert_ok(embla_swap_replace(o.swap, store, tickets));
    close_swap();
}

/* ---- files that change ---- */

/* Another file is renamed over the rows. */
static void replace_file(int of, int by)
{
    for (int plane = 0; plane < 2; plane++) {
        char other[SCRATCH_PATH + 8];
        size_t bytes = 0;
        unsigned char *all = scratch_read(o.t[by].paths[plane], &bytes);
        (void)snprintf(other, sizeof other, "%s.new", o.t[of].paths[plane]);
        scratch_write(other, all, bytes);
        assert_int_equal(rename(other, o.t[of].paths[plane]), 0);
        free(all);
    }
}

/* The engine goes on with the old rows until it reloads; then it has the new ones. */
static void a_file_that_is_replaced_is_noticed_and_reloaded(void **state)
{
    static request r;
    uint64_t seed = 10;
    (void)state;
    for (int kind = 0; kind < KINDS; kind++) {
        open_swap(kind);
        choose_rows(&r, &seed, COUNT);
        submit(&r);
        assert_ok(embla_store_check(r.version->store));
        replace_file(0, 1);
        assert_status(embla_store_check(r.version->store), EMBLA_ERR_IO);
        assert_error_has("was replaced while open");
        assert_ok(embla_ticket_wait(r.version->tickets, r.ticket));
        assert_true(rows_are_right(&r));
        embla_swap_release(o.swap, r.version);
        submit(&r); /* still the old version */
        assert_ok(embla_ticket_wait(r.version->tickets, r.ticket));
        assert_true(rows_are_right(&r));
        embla_swap_release(o.swap, r.version);
        assert_ok(reload(0));
        submit(&r);
        assert_ok(embla_ticket_wait(r.version->tickets, r.ticket));
        assert_false(rows_are_right(&r)); /* the file has the rows of the other table now */
        for (size_t i = 0; i < COUNT; i++)
            assert_memory_equal(r.out + i * ROW, o.t[1].truth + (size_t)r.rows[i] * ROW, ROW);
        assert_ok(embla_store_check(r.version->store));
        embla_swap_release(o.swap, r.version);
        assert_int_equal(unlink(o.t[0].paths[1]), 0);
        const embla_swap_version *v = embla_swap_acquire(o.swap);
        assert_status(embla_store_check(v->store), EMBLA_ERR_IO);
        assert_error_has("was removed while open");
        embla_swap_release(o.swap, v);
        assert_status(reload(0), EMBLA_ERR_NOT_FOUND); /* the current version stays */
        assert_status(embla_store_check(NULL), EMBLA_ERR_ARGUMENT);
        close_swap();
    }
}

/* A file that is cut under a ticket is a status, and `out` stays as it is. */
static void a_file_that_is_cut_is_a_status_until_it_is_reloaded(void **state)
{
    static request r;
    uint64_t seed = 11;
    (void)state;
    for (int kind = 0; kind < 3; kind++) {
        open_swap(kind);
        choose_rows(&r, &seed, COUNT);
        memset(r.out, CHECK_MARK, sizeof r.out);
        assert_int_equal(truncate(o.t[0].paths[0], 5000), 0);
        submit(&r);
        assert_status(embla_ticket_wait(r.version->tickets, r.ticket), EMBLA_ERR_IO);
        check_marks(r.out, r.out + sizeof r.out);
        assert_status(embla_store_check(r.version->store), EMBLA_ERR_IO);
        embla_swap_release(o.swap, r.version);
        assert_status(reload(0), EMBLA_ERR_SHAPE); /* too short */
        assert_ok(reload(1));
        submit(&r);
        assert_ok(embla_ticket_wait(r.version->tickets, r.ticket));
        assert_true(rows_are_right(&r));
        embla_swap_release(o.swap, r.version);
        close_swap();
    }
}

/* ---- many threads at random ---- */

enum { HELD = 6 };

typedef struct {
    uint64_t seed;
    size_t operations, submitted, cancelled, reloads;
    bool failed;
    pthread_t thread;
} worker;

static void let_go(request *r)
{
    embla_swap_release(o.swap, r->version);
    r->ticket = 0;
}

/* A new request: a ticket, or a prefetch. */
static bool begin(request *r, worker *w, bool prefetch, bool with_flag)
{
    bool large = check_below(&w->seed, 8) == 0;
    choose_rows(r, &w->seed, check_below(&w->seed, large ? COUNT : 17));
    const embla_ticket_request q = {.rows = r->rows,
                                    .count = r->count,
                                    .lookup = &raw,
                                    .out = r->out,
                                    .flag = with_flag ? &r->flag : NULL,
                                    .value = 9};
    r->version = embla_swap_acquire(o.swap);
    embla_tickets *tickets = r->version->tickets;
    embla_status status = prefetch ? embla_tickets_prefetch(tickets, &q)
                                   : embla_ticket_submit(tickets, &q, &r->ticket);
    if (r->ticket == 0) let_go(r);
    w->submitted += r->ticket != 0;
    return status == EMBLA_OK || status == EMBLA_ERR_BUSY;
}

/* One operation on one of the requests that a thread holds. */
static bool operate(request *r, worker *w)
{
    bool done = false, right = true;
    uint64_t what = check_below(&w->seed, 8);
    if (check_below(&w->seed, 300) == 0) {
        w->reloads++;
        return reload((int)check_below(&w->seed, 2)) == EMBLA_OK;
    }
    if (r->ticket == 0) return begin(r, w, what == 7, what < 2);
    embla_tickets *tickets = r->version->tickets;
    if (what > 0 && what < 4) {
        if (embla_ticket_done(tickets, r->ticket, &done) != EMBLA_OK) return false;
        return !done || rows_are_right(r);
    }
    if (what == 0) {
        w->cancelled++;
        right = embla_ticket_cancel(tickets, r->ticket) == EMBLA_OK;
    } else {
        right = embla_ticket_wait(tickets, r->ticket) == EMBLA_OK && rows_are_right(r);
    }
    let_go(r);
    return right;
}

static void *work(void *context)
{
    worker *w = context;
    request *mine = calloc(HELD, sizeof *mine);
    w->failed = !mine;
    for (size_t i = 0; i < w->operations && !w->failed; i++)
        w->failed = !operate(&mine[check_below(&w->seed, HELD)], w);
    for (size_t i = 0; mine && i < HELD; i++) {
        if (mine[i].ticket == 0) continue;
        if (embla_ticket_cancel(mine[i].version->tickets, mine[i].ticket) != EMBLA_OK)
            w->failed = true;
        let_go(&mine[i]);
    }
    free(mine);
    return NULL;
}

static void many_threads_may_do_anything(void **state)
{
    enum { THREADS = 4 };
    const char *asked = getenv("EMBLA_TICKET_OPS");
    size_t operations = asked ? (size_t)strtoull(asked, NULL, 10) : 2500;
    size_t live = embla_mem_live(), files = embla_io_live();
    (void)state;
    for (int kind = 0; kind < 4; kind++) {
        worker workers[THREADS];
        worker all = {0};
        embla_tickets_info stats;
        open_swap(kind);
        for (size_t i = 0; i < THREADS; i++) {
            workers[i] = (worker){.seed = i + 100 * (uint64_t)kind, .operations = operations};
            assert_int_equal(pthread_create(&workers[i].thread, NULL, work, &workers[i]), 0);
        }
        for (size_t i = 0; i < THREADS; i++) {
            assert_int_equal(pthread_join(workers[i].thread, NULL), 0);
            all.submitted += workers[i].submitted;
            all.cancelled += workers[i].cancelled;
            all.reloads += workers[i].reloads;
        }
        for (size_t i = 0; i < THREADS; i++) assert_false(workers[i].failed);
        assert_true(all.submitted > 0 && all.cancelled > 0 && all.reloads > 0);
        const embla_swap_version *v = embla_swap_acquire(o.swap);
        assert_int_equal(v->number, 1 + all.reloads);
        assert_ok(embla_tickets_describe(v->tickets, &stats));
        assert_true(stats.in_flight_max <= 150000);
        embla_swap_release(o.swap, v);
        close_swap();
    }
    assert_int_equal(embla_mem_live(), live);
    assert_int_equal(embla_io_live(), files);
}

int main(int argc, char **argv)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(tickets_bring_the_rows_of_their_own_version),
        cmocka_unit_test(versions_of_another_shape_are_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(a_file_that_is_replaced_is_noticed_and_reloaded),
        cmocka_unit_test(a_file_that_is_cut_is_a_status_until_it_is_reloaded),
        cmocka_unit_test(many_threads_may_do_anything),
    };
    if (argc > 1) cmocka_set_test_filter(argv[1]);
    return cmocka_run_group_tests(tests, NULL, NULL);
}
