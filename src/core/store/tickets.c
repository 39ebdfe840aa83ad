/* SPDX-License-Identifier: Apache-2.0 */
/* Tickets: a request for rows is checked, its rows are located, and their pages are read while the
 * caller computes. See tickets.h for the states of a ticket.
 *
 * Rows are read into memory of the ticket, never to `out`: a cancelled ticket need not wait for
 * the disk, and one that fails leaves `out` as it is.
 */
#include "store/tickets.h"

#include "base/clock.h"

#include <stdatomic.h>
#include <string.h>

#include "base/layout.h"
#include "base/mem.h"
#include "base/options.h"
#include "files/io.h"
#include "lookup/batch.h"
#include "store/bundles.h"

enum { MOST = 65536, BYTES = 32 << 20, COUNT = 256, COUNT_MOST = 65535 };

static void lock(embla_tickets *t)
{
    embla_lock_take(&t->lock);
}

static void unlock(embla_tickets *t)
{
    embla_lock_give(&t->lock);
}

/* Waits for a ticket to change its state. */
static void wait_changed(embla_tickets *t)
{
    t->waiting++;
    embla_condition_wait(&t->changed, &t->lock);
    t->waiting--;
}

/* ---- open, free ---- */

static embla_status allocate(const embla_store *store, const embla_tickets_options *o,
                             embla_tickets **out)
{
    embla_layout layout = {0};
    void *block = NULL;
    size_t count = o->max_tickets ? o->max_tickets : COUNT,
           bytes = o->max_bytes ? o->max_bytes : BYTES;
    size_t self = embla_layout_add(&layout, 1, sizeof(embla_tickets));
    size_t slots = embla_layout_add(&layout, count, sizeof(embla_ticket_slot));
    size_t memory = embla_layout_add(&layout, bytes, 1);
    if (layout.too_large)
        return embla_fail(EMBLA_ERR_MEMORY, "%zu tickets with %zu bytes do not fit in memory",
                          count, bytes);
    EMBLA_TRY(embla_mem_new(layout.bytes, "tickets", &block));
    char *base = block;
    embla_tickets *t = (void *)(base + self);
    *t = (embla_tickets){.store = store,
                         .origin = embla_origin_here(),
                         .reader = embla_direct_reader(store),
                         .source = embla_store_source(store),
                         .block = layout.bytes,
                         .most = o->max_rows ? o->max_rows : MOST,
                         .bytes = bytes,
                         .count = count,
                         .memory = base + memory,
                         .slots = (void *)(base + slots),
                         .event = -1};
    *out = t;
    return EMBLA_OK;
}

static embla_status check_options(const embla_store *store, const embla_tickets_options *o)
{
    EMBLA_TRY(embla_options_check(o));
    bool hot = o->hot_bytes > 0 || o->hot_count > 0 || o->hot_file;
    if (o->max_tickets > COUNT_MOST || o->max_rows > EMBLA_GATHER_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu tickets of %zu rows; at most %d of %d are possible", o->max_tickets,
                          o->max_rows, COUNT_MOST, EMBLA_GATHER_MOST);
    if (hot && !embla_direct_reader(store))
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "hot rows are only for the placement direct, not for %s",
                          store->placement->name);
    if (hot && o->hot_bytes == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "there are hot rows to keep, but hot_bytes is 0: set their memory");
    if (o->hot_count > 0 && !o->hot_rows)
        return embla_fail(EMBLA_ERR_ARGUMENT, "hot_count is %zu, but hot_rows is NULL",
                          o->hot_count);
    return EMBLA_OK;
}

embla_status embla_tickets_new(const embla_store *store, const embla_tickets_options *options,
                               embla_tickets **out)
{
    static const embla_tickets_options none;
    const embla_tickets_options *o = options ? options : &none;
    embla_tickets *t = NULL;
    EMBLA_NEED(store);
    EMBLA_NEED(out);
    EMBLA_TRY(check_options(store, o));
    EMBLA_TRY(allocate(store, o, &t));
    embla_status status = o->event ? embla_io_event(&t->event) : EMBLA_OK;
    if (status == EMBLA_OK && o->hot_bytes > 0) status = embla_hot_open(store, o, &t->hot);
    if (status != EMBLA_OK) {
        embla_tickets_free(t);
        return status;
    }
    *out = t;
    return EMBLA_OK;
}

embla_status embla_tickets_check(const embla_tickets *t)
{
    return embla_origin_check(&t->origin, "the store and its tickets");
}

static void cancel(embla_ticket_slot *s);

/* Cancels all tickets, and waits for the reads that are under way. */
static void end_all(embla_tickets *t)
{
    lock(t);
    for (size_t i = 0; i < t->count; i++)
        if (t->slots[i].state != TICKET_FREE && !t->slots[i].cancelled) cancel(&t->slots[i]);
    while (t->live > 0) wait_changed(t);
    unlock(t);
}

/* A forked child only gives its copy of the memory back: the tickets are the parent's. */
void embla_tickets_free(embla_tickets *t)
{
    if (!t) return;
    if (embla_origin_is_here(&t->origin)) end_all(t);
    embla_hot_close(t->hot);
    if (t->event >= 0) embla_io_drop(t->event);
    embla_mem_free(t, t->block);
}

int embla_tickets_event(const embla_tickets *t)
{
    return t && embla_origin_is_here(&t->origin) ? (int)t->event : -1;
}

/* ---- finishing ---- */

/* Checks the files that were read. Pieces are sorted by file. */
static embla_status check_files(const embla_ticket_slot *s)
{
    const embla_gather *g = &s->gather;
    for (size_t i = 0; i < g->count; i++)
        if (i == 0 || g->pieces[i].source != g->pieces[i - 1].source)
            EMBLA_TRY(embla_sources_check_one(&s->owner->store->sources[g->pieces[i].source]));
    return EMBLA_OK;
}

/* Keeps the rows that were read among the hot rows. */
static void keep_rows(const embla_ticket_slot *s)
{
    embla_hot *hot = s->owner->hot;
    if (!hot || s->call.part.bytes != s->owner->store->row.bytes || s->gather.count == 0) return;
    size_t rows_per_ngram = embla_hot_rows_per_ngram(hot);
    embla_hot_lock(hot);
    for (size_t i = 0; i + rows_per_ngram <= s->call.count; i += rows_per_ngram)
        embla_hot_insert(hot, s->rows + i, s->staging + i * s->call.part.bytes);
    embla_hot_unlock(hot);
}

/* Decodes the rows in staging to out. */
static embla_status decode(embla_ticket_slot *s)
{
    EMBLA_TRY(embla_failure_say(&s->gather.failure));
    EMBLA_TRY(check_files(s));
    keep_rows(s);
    if (s->prefetch) return EMBLA_OK;
    for (size_t i = 0; i < s->call.count; i++) s->rows[i] = (int64_t)i;
    s->call.rows = s->rows;
    embla_lookup_from_staging(&s->call, s->staging, s->call.count);
    return embla_lookup_run(&s->call);
}

/* Announces that a ticket has ended. Under the lock; nobody uses the ticket afterwards but the
 * thread that waits for it. */
static void announce(embla_ticket_slot *s)
{
    embla_tickets *t = s->owner;
    bool failed = embla_failure_any(&s->gather.failure);
    if (s->flag) __atomic_store_n(s->flag, failed ? UINT64_MAX : s->value, __ATOMIC_RELEASE);
    t->stats.reads += s->gather.reads;
    t->stats.bytes_read += s->gather.pages * EMBLA_DIRECT;
    embla_ticket_time(t, s);
    s->state = TICKET_DONE;
    if (t->event >= 0 && !s->prefetch) embla_io_signal(t->event);
    if (s->prefetch) embla_ticket_release(s);
    if (t->waiting > 0) embla_condition_signal_all(&t->changed);
}

/* Called by the reader when the reads of a ticket have ended: one that notifies, or a cancelled
 * one. */
static void complete(embla_gather *gather)
{
    embla_ticket_slot *s = (embla_ticket_slot *)(void *)gather;
    embla_tickets *t = s->owner;
    lock(t);
    if (s->cancelled) {
        embla_ticket_release(s);
        unlock(t);
        return;
    }
    s->state = TICKET_FINISHING;
    unlock(t);
    embla_failure_keep(&gather->failure, decode(s));
    lock(t);
    announce(s);
    unlock(t);
}

/* Finishes a plain ticket whose reads have ended. */
static void finish(embla_ticket_slot *s)
{
    embla_failure_keep(&s->gather.failure, decode(s));
    lock(s->owner);
    announce(s);
    unlock(s->owner);
}

/* ---- submitting ---- */

static embla_status count_rows(const embla_tickets *t, const embla_ticket_request *q,
                               embla_ngram_info *info, size_t *count)
{
    EMBLA_TRY(embla_options_check(q));
    EMBLA_TRY(embla_options_check(q->lookup));
    *count = q->count;
    if (q->ngram) {
        EMBLA_TRY(embla_ngram_describe(q->ngram, info));
        if (info->rows > t->store->rows)
            return embla_fail(EMBLA_ERR_SHAPE,
                              "the hasher is for a table with %" PRId64
                              " rows, but the store has %" PRId64,
                              info->rows, t->store->rows);
        *count = q->length > t->most ? SIZE_MAX : q->length * info->rows_per_token;
    }
    if (*count > t->most)
        return embla_fail(EMBLA_ERR_ARGUMENT, "%zu row numbers in a ticket; its maximum is %zu",
                          *count, t->most);
    if (!q->ngram && q->count > 0 && !q->rows)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu rows are requested, but the list of row numbers is NULL", q->count);
    return EMBLA_OK;
}

/* Computes or copies the row numbers, and checks the whole request. */
static embla_status prepare(embla_ticket_slot *s, const embla_ticket_request *q, size_t count,
                            size_t columns)
{
    embla_store_lookup_options lookup = {0};
    if (q->lookup && !s->prefetch) lookup = *q->lookup;
    if (lookup.rows_per_token == 0 && q->ngram) lookup.rows_per_token = columns;
    if (lookup.threads == 0) lookup.threads = 1;
    if (q->ngram) {
        const embla_ngram_options options = {.history = q->history, .threads = 1};
        EMBLA_TRY(embla_ngram_rows(q->ngram, q->tokens, 1, q->length, &options, s->rows));
    } else if (count > 0) {
        memcpy(s->rows, q->rows, count * sizeof *s->rows);
    }
    /* a prefetch writes nothing; the check wants to see some memory */
    void *out = s->prefetch ? s->staging : q->out;
    s->call = embla_batch_call(&s->owner->source, s->rows, count, &lookup, out);
    s->call.raw = s->call.raw || s->prefetch;
    return embla_lookup_check(&s->call);
}

/* Rows that are looked for at once: whole n-grams, of the hot rows and of the bundles if they have
 * a common multiple that fits. Otherwise n-grams of the bundles are rarely found. */
static size_t rows_at_once(const embla_tickets *t)
{
    size_t bundle = t->store->bundles ? t->store->bundles->rows_per_ngram : 1;
    size_t hot = t->hot ? embla_hot_rows_per_ngram(t->hot) : 1, both = hot;
    while (both % bundle != 0) both += hot;
    if (both > EMBLA_HOT_GROUP) both = hot;
    return EMBLA_HOT_GROUP / both * both;
}

typedef struct {
    size_t hot, fixed; /* rows found among the hot rows; those of them in the fixed set */
} found_rows;

/* Copies hot rows to staging, and lists the pieces of the others. */
static found_rows locate(embla_ticket_slot *s)
{
    const embla_tickets *t = s->owner;
    const embla_row_part *part = &s->call.part;
    size_t count = s->call.count, step = rows_at_once(t);
    found_rows all = {0};
    embla_gather_init(&s->gather, t->store, s->rows, part, s->staging, part->bytes,
                      s->gather.pieces);
    if (t->hot) embla_hot_lock(t->hot);
    for (size_t i = 0; i < count; i += step) {
        size_t n = count - i < step ? count - i : step;
        uint32_t fixed = 0, found = 0;
        if (t->hot)
            found = embla_hot_find(t->hot, s->rows + i, n, part, s->staging + i * part->bytes,
                                   part->bytes, &fixed);
        all.hot += (size_t)__builtin_popcount(found);
        all.fixed += fixed;
        embla_gather_add(&s->gather, i, n, found);
    }
    if (t->hot) embla_hot_unlock(t->hot);
    return all;
}

/* Rows that are in memory: the ticket ends at once. */
static embla_status look_up_now(embla_ticket_slot *s)
{
    EMBLA_TRY(embla_source_check(s->call.source));
    EMBLA_TRY(embla_lookup_run(&s->call));
    EMBLA_TRY(embla_source_check(s->call.source));
    lock(s->owner);
    announce(s);
    unlock(s->owner);
    return EMBLA_OK;
}

/* The number of rows of a request that the store has. */
static size_t count_held(const embla_ticket_slot *s)
{
    const embla_store *store = s->owner->store;
    size_t held = 0;
    if (store->held == store->rows) return s->call.count;
    for (size_t i = 0; i < s->call.count; i++) held += embla_store_holds(store, s->rows[i]);
    return held;
}

static void count_request(embla_ticket_slot *s, found_rows found)
{
    embla_tickets *t = s->owner;
    size_t hot = found.hot;
    size_t held = count_held(s);
    lock(t);
    t->stats.hot_fixed += (int64_t)found.fixed;
    t->stats.bundled += (int64_t)s->gather.bundled;
    t->stats.tokens += (int64_t)s->call.token_total;
    t->stats.asked += (int64_t)s->call.count;
    t->stats.hot += (int64_t)hot;
    t->stats.bytes_useful += (int64_t)((held - hot) * s->call.part.bytes);
    unlock(t);
}

static embla_status start(embla_ticket_slot *s, const embla_ticket_request *q, size_t count,
                          size_t columns)
{
    embla_tickets *t = s->owner;
    EMBLA_TRY(prepare(s, q, count, columns));
    s->flag = s->prefetch ? NULL : q->flag;
    s->value = q->value;
    s->begun = embla_clock_ns();
    s->notifies = s->prefetch || s->flag || t->event >= 0;
    if (!t->reader) {
        embla_gather_init(&s->gather, t->store, s->rows, &s->call.part, NULL, 0, NULL);
        count_request(s, (found_rows){0});
        return look_up_now(s);
    }
    found_rows found = locate(s);
    if (!s->prefetch) count_request(s, found);
    if (s->notifies) s->gather.complete = complete;
    return embla_reader_start(t->reader, &s->gather);
}

/* Takes a ticket and starts it. If that fails, there is no ticket. */
static embla_status submit(embla_tickets *t, const embla_ticket_request *q, bool prefetch,
                           embla_ticket *out)
{
    embla_ngram_info info = {0};
    embla_ticket_slot *s = NULL;
    size_t count = 0;
    EMBLA_TRY(embla_tickets_check(t));
    EMBLA_TRY(count_rows(t, q, &info, &count));
    lock(t);
    embla_status status = embla_ticket_take(t, count, &s);
    embla_ticket id = status == EMBLA_OK ? s->id : 0;
    unlock(t);
    EMBLA_TRY(status);
    s->prefetch = prefetch;
    status = start(s, q, count, info.rows_per_token);
    lock(t);
    if (status != EMBLA_OK)
        embla_ticket_release(s);
    else if (!prefetch)
        s->used = false; /* a prefetch may have ended by now */
    unlock(t);
    if (status == EMBLA_OK && out) *out = id;
    return status;
}

embla_status embla_ticket_submit(embla_tickets *t, const embla_ticket_request *request,
                                 embla_ticket *out)
{
    EMBLA_NEED_OF("embla_ticket_submit", "tickets", t);
    EMBLA_NEED(request);
    EMBLA_NEED(out);
    return submit(t, request, false, out);
}

embla_status embla_tickets_prefetch(embla_tickets *t, const embla_ticket_request *request)
{
    EMBLA_NEED_OF("embla_tickets_prefetch", "tickets", t);
    EMBLA_NEED(request);
    EMBLA_TRY(embla_tickets_check(t));
    EMBLA_TRY(embla_options_check(request)); /* also if there are no hot rows */
    embla_status status = t->hot ? submit(t, request, true, NULL) : EMBLA_ERR_BUSY;
    lock(t);
    t->stats.prefetched++;
    if (status != EMBLA_OK) t->stats.dropped++;
    if (status == EMBLA_ERR_BUSY && t->hot) t->stats.busy--; /* counted as dropped */
    unlock(t);
    return status == EMBLA_ERR_BUSY ? EMBLA_OK : status;
}

/* ---- tickets ---- */

/* Finds a ticket for a call of this thread. Under the lock. */
static embla_status find(embla_tickets *t, embla_ticket id, embla_ticket_slot **out)
{
    size_t i = (size_t)(id & 0xffff);
    embla_ticket_slot *s = i < t->count ? &t->slots[i] : NULL;
    if (id == 0 || !s || s->id != id || s->state == TICKET_FREE || s->cancelled || s->prefetch)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "there is no ticket %" PRIu64 "; %zu tickets are in use", id, t->live);
    if (s->used)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "ticket %" PRIu64 " is used by another thread; a ticket is for 1 thread "
                          "at a time",
                          id);
    *out = s;
    return EMBLA_OK;
}

/* Whether a thread that calls done or wait has to finish the ticket itself. */
static bool is_ours(const embla_ticket_slot *s)
{
    return s->state == TICKET_READING && !s->notifies;
}

embla_status embla_ticket_done(embla_tickets *t, embla_ticket ticket, bool *done)
{
    embla_ticket_slot *s = NULL;
    EMBLA_NEED_OF("embla_ticket_done", "tickets", t);
    EMBLA_NEED(done);
    EMBLA_TRY(embla_tickets_check(t));
    lock(t);
    embla_status status = find(t, ticket, &s);
    bool ours = status == EMBLA_OK && is_ours(s);
    bool ended = status == EMBLA_OK && s->state == TICKET_DONE;
    if (ours) s->used = true;
    unlock(t);
    EMBLA_TRY(status);
    if (ours) {
        ended = embla_reader_poll(t->reader, &s->gather);
        if (ended) finish(s);
        lock(t);
        s->used = false;
        unlock(t);
    }
    *done = ended;
    return EMBLA_OK;
}

embla_status embla_ticket_wait(embla_tickets *t, embla_ticket ticket)
{
    embla_ticket_slot *s = NULL;
    int64_t begun = 0;
    EMBLA_NEED_OF("embla_ticket_wait", "tickets", t);
    EMBLA_TRY(embla_tickets_check(t));
    lock(t);
    embla_status status = find(t, ticket, &s);
    if (status != EMBLA_OK) {
        unlock(t);
        return status;
    }
    s->used = true;
    if (s->state != TICKET_DONE) begun = embla_clock_ns();
    if (is_ours(s)) {
        unlock(t);
        embla_reader_wait(t->reader, &s->gather);
        finish(s);
        lock(t);
    }
    while (s->state != TICKET_DONE) wait_changed(t);
    if (begun != 0) t->stats.blocked += embla_clock_ns() - begun;
    t->stats.tickets++;
    status = embla_failure_say(&s->gather.failure);
    embla_ticket_release(s);
    unlock(t);
    return status;
}

/* Under the lock, which may be released meanwhile. */
static void cancel(embla_ticket_slot *s)
{
    embla_tickets *t = s->owner;
    s->used = true;
    while (s->state == TICKET_FINISHING) wait_changed(t); /* a thread is writing to out */
    if (s->state == TICKET_FREE) return;                  /* a prefetch has ended meanwhile */
    t->stats.cancelled++;
    if (s->state == TICKET_READING) {
        s->cancelled = true;
        if (!embla_reader_drop(t->reader, &s->gather, complete)) return;
    }
    embla_ticket_release(s);
}

embla_status embla_ticket_cancel(embla_tickets *t, embla_ticket ticket)
{
    embla_ticket_slot *s = NULL;
    EMBLA_NEED_OF("embla_ticket_cancel", "tickets", t);
    EMBLA_TRY(embla_tickets_check(t));
    lock(t);
    embla_status status = find(t, ticket, &s);
    if (status == EMBLA_OK) cancel(s);
    unlock(t);
    return status;
}
