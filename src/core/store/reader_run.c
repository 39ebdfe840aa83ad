/* SPDX-License-Identifier: Apache-2.0 */
/* How a reader reads: with a ring of the kernel, or with threads.
 *
 * With a ring, the thread that starts a gather also submits its reads, and the thread that waits
 * for it takes the results ("reaps"). So a gather whose reads fit in the free slots wakes no
 * thread. The reader's own thread reaps only if there are reads that had no slot, or gathers that
 * nobody waits for (`complete`).
 *
 * Only one thread reaps at a time. It may sleep in the kernel until there are `count` results,
 * and nobody else may take one away meanwhile. Other threads wait for it.
 *
 * Without a ring, each thread of the reader has one slot: it takes a read, reads, and copies. Where
 * the system has no threads, the thread that starts a gather does that, until nothing is left.
 */

#include "store/gather.h"

/* ---- the queue of gathers ---- */

static void append(embla_reader *r, embla_gather *g)
{
    g->after = NULL;
    if (r->last)
        r->last->after = g;
    else
        r->first = g;
    r->last = g;
}

static embla_gather *take_first(embla_reader *r)
{
    embla_gather *g = r->first;
    r->first = g->after;
    if (!r->first) r->last = NULL;
    return g;
}

static void remove_gather(embla_reader *r, const embla_gather *g)
{
    embla_gather *list = r->first;
    r->first = r->last = NULL;
    for (embla_gather *next; list; list = next) {
        next = list->after;
        if (list != g) append(r, list);
    }
}

/* Begins the next read, in a free slot. A gather with more to read goes to the end of the queue. */
static size_t begin_read(embla_reader *r)
{
    embla_gather *g = take_first(r);
    size_t i = r->free_slots[--r->free_count];
    r->slots[i] = (embla_slot){.gather = g, .read = embla_gather_next(g, r->slot_bytes)};
    if (g->next < g->count) append(r, g);
    g->flying++;
    r->flying++;
    g->reads++;
    g->pages += (int64_t)(r->slots[i].read.bytes / EMBLA_DIRECT);
    return i;
}

/* Marks a gather as ended. Those with `complete` are put on a list: call it without the lock. */
static void end_if_complete(embla_reader *r, embla_gather *g, embla_gather **list)
{
    if (g->flying > 0 || g->next < g->count) return;
    g->ended = true;
    if (g->complete) {
        r->notified--;
        g->after = *list;
        *list = g;
    } else if (r->waiters > 0) {
        embla_condition_signal_all(&r->ended);
    }
}

static void end_read(embla_reader *r, size_t i, embla_gather **list)
{
    embla_gather *g = r->slots[i].gather;
    r->free_slots[r->free_count++] = (uint32_t)i;
    r->flying--;
    g->flying--;
    end_if_complete(r, g, list);
}

/* Under the lock, which is released for the calls. */
static void call_complete(embla_reader *r, embla_gather *list)
{
    if (!list) return;
    embla_lock_give(&r->lock);
    while (list) {
        embla_gather *g = list;
        list = g->after; /* before the gather belongs to someone else */
        g->complete(g);
    }
    embla_lock_take(&r->lock);
}

/* ---- with a ring ---- */

static void copy_slot(embla_reader *r, size_t i, int64_t result)
{
    const embla_slot *slot = &r->slots[i];
    embla_gather_copy(slot->gather, r->store, &slot->read, r->pages + i * r->slot_bytes, result);
}

/* The disk has written to memory, not to the cache of this CPU. */
static void prefetch_slot(const embla_reader *r, size_t i)
{
    const embla_slot *slot = &r->slots[i];
    const embla_row_piece *p = &slot->gather->pieces[slot->read.first];
    const char *row = r->pages + i * r->slot_bytes + (p->at - slot->read.offset);
    for (size_t k = 0; k < 256; k += 64) __builtin_prefetch(row + k);
}

/* Queues reads in all free slots. */
static void queue_reads(embla_reader *r)
{
    while (r->first && r->free_count > 0) {
        size_t i = begin_read(r);
        const embla_page_read *read = &r->slots[i].read;
        embla_ring_queue(&r->ring, r->direct[read->source], read->offset,
                         r->pages + i * r->slot_bytes, read->bytes, i);
    }
}

/* Submits queued reads. If the kernel refuses them, the next thread that reaps sees it too. */
static void submit(embla_reader *r)
{
    if (r->ring.queued > 0) (void)embla_ring_submit(&r->ring);
}

/* The next result. If the kernel accepts no more reads (a filter that was installed after the ring
 * was opened), a queued read is taken back: copy_slot then reads in another way. */
static bool next_result(embla_reader *r, bool refused, size_t *slot, int64_t *result)
{
    uint64_t tag;
    if (embla_ring_pop(&r->ring, &tag, result)) {
        *slot = (size_t)tag;
        return true;
    }
    if (!refused || !embla_ring_withdraw(&r->ring, &tag)) return false;
    r->ring.queued = 0;
    *slot = (size_t)tag;
    *result = -1;
    return true;
}

/* Copies all results there are, then queues more reads. */
static void take_results(embla_reader *r, bool refused, embla_gather **list)
{
    enum { AT_ONCE = 64 };
    size_t slots[AT_ONCE], n;
    int64_t results[AT_ONCE];
    do {
        for (n = 0; n < AT_ONCE && next_result(r, refused, &slots[n], &results[n]);) n++;
        if (n == 0) break;
        embla_lock_give(&r->lock);
        for (size_t i = 0; i < n; i++) prefetch_slot(r, slots[i]);
        for (size_t i = 0; i < n; i++) copy_slot(r, slots[i], results[i]);
        embla_lock_take(&r->lock);
        for (size_t i = 0; i < n; i++) end_read(r, slots[i], list);
        queue_reads(r);
    } while (n == AT_ONCE);
}

/* Submits what is queued, waits for `count` results, and takes all there are. Under the lock, which
 * is released meanwhile; nobody else may reap. */
static void reap(embla_reader *r, size_t count)
{
    embla_gather *list = NULL;
    uint32_t queued = r->ring.queued;
    bool refused = false;
    r->reaping = true;
    r->ring.queued = 0;
    if (queued > 0 || count > 0) {
        embla_lock_give(&r->lock);
        refused = !embla_worked(embla_ring_wait(&r->ring, queued, (uint32_t)count));
        if (refused) embla_system_sleep(100000); /* reads that were accepted go on */
        embla_lock_take(&r->lock);
    }
    take_results(r, refused, &list);
    r->reaping = false;
    call_complete(r, list);
}

/* How many results are worth waking up for: all that a gather waits for, or, if there are reads
 * without a slot, a quarter of the slots, so that a call submits several. */
static size_t worth_waking(const embla_reader *r, const embla_gather *g)
{
    size_t some = r->depth / 4 + 1, count = g ? g->flying : 1;
    if (r->first && (!g || g->next < g->count || count > some)) count = some;
    if (count == 0) count = 1;
    return count < r->flying ? count : r->flying;
}

static bool needs_thread(const embla_reader *r)
{
    return !r->reaping && (r->first || r->notified > 0);
}

/* Before a thread that has reaped leaves: what it has queued is submitted, and another thread
 * continues. */
static void hand_over(embla_reader *r)
{
    submit(r);
    if (r->reaping) return;
    if (r->waiters > 0) embla_condition_signal_all(&r->ended);
    if (needs_thread(r) && r->idle > 0) {
        r->wakes++;
        embla_condition_signal(&r->work);
    }
}

void *embla_reader_reap_all(void *reader)
{
    embla_reader *r = reader;
    embla_lock_take(&r->lock);
    while (!r->stopping) {
        if (needs_thread(r)) {
            reap(r, worth_waking(r, NULL));
            if (r->waiters > 0 && !needs_thread(r)) hand_over(r);
            continue;
        }
        submit(r);
        r->idle++;
        embla_condition_wait(&r->work, &r->lock);
        r->idle--;
    }
    embla_lock_give(&r->lock);
    return NULL;
}

/* ---- with threads ---- */

/* Reads the pages of a slot. Returns the bytes that were read; -1 means failed: then
 * embla_gather_copy reports why. */
static int64_t read_pages(embla_reader *r, size_t i)
{
    const embla_page_read *read = &r->slots[i].read;
    const embla_map *map = r->store->sources[read->source].map;
    char *memory = r->pages + i * r->slot_bytes;
    embla_handle direct = r->direct[read->source];
    size_t got = 0;
    embla_status status =
        direct >= 0
            ? embla_io_pread_direct(direct, map->name, read->offset, read->bytes, memory, &got)
            : embla_io_pread(map->file, map->name, read->offset, read->needed, memory, &got);
    if (direct < 0) embla_io_forget(map->file, read->offset, read->bytes);
    return status == EMBLA_OK ? (int64_t)got : -1;
}

/* One read, in a slot of this thread: there are as many as threads. Under the lock, which is
 * released meanwhile. */
static void read_next(embla_reader *r)
{
    embla_gather *list = NULL;
    size_t i = begin_read(r);
    embla_lock_give(&r->lock);
    copy_slot(r, i, read_pages(r, i));
    embla_lock_take(&r->lock);
    end_read(r, i, &list);
    call_complete(r, list);
}

void *embla_reader_read_all(void *reader)
{
    embla_reader *r = reader;
    embla_lock_take(&r->lock);
    while (!r->stopping) {
        if (r->first) {
            read_next(r);
            continue;
        }
        r->idle++;
        embla_condition_wait(&r->work, &r->lock);
        r->idle--;
    }
    embla_lock_give(&r->lock);
    return NULL;
}

/* Wakes as many threads as there are reads. */
static void wake_threads(embla_reader *r, const embla_gather *g)
{
    if (g->count >= r->idle) {
        r->wakes += r->idle;
        embla_condition_signal_all(&r->work);
        return;
    }
    r->wakes += g->count;
    for (size_t i = 0; i < g->count; i++) embla_condition_signal(&r->work);
}

/* ---- gathers ---- */

embla_status embla_reader_start(embla_reader *r, embla_gather *g)
{
    embla_gather *list = NULL;
    bool ring = r->kind == EMBLA_READER_IO_URING;
    EMBLA_TRY(embla_origin_check(&r->origin, "this store"));
    embla_gather_sort(g);
    embla_lock_take(&r->lock);
    if (g->complete) r->notified++;
    if (g->count == 0)
        end_if_complete(r, g, &list);
    else
        append(r, g);
    if (r->alone) {
        while (r->first) read_next(r);
    } else if (!ring) {
        wake_threads(r, g);
    } else {
        if (r->free_count == 0 && !r->reaping) reap(r, 0);
        queue_reads(r);
        hand_over(r);
    }
    call_complete(r, list);
    embla_lock_give(&r->lock);
    return EMBLA_OK;
}

void embla_reader_wait(embla_reader *r, embla_gather *g)
{
    embla_lock_take(&r->lock);
    r->waiters++;
    bool ring = r->kind == EMBLA_READER_IO_URING;
    if (!g->ended && ring && !r->reaping) reap(r, 0); /* often all results are already there */
    while (!g->ended) {
        if (ring && !r->reaping)
            reap(r, worth_waking(r, g));
        else
            embla_condition_wait(&r->ended, &r->lock);
    }
    r->waiters--;
    if (ring) hand_over(r);
    embla_lock_give(&r->lock);
}

bool embla_reader_poll(embla_reader *r, embla_gather *g)
{
    embla_lock_take(&r->lock);
    if (!g->ended && r->kind == EMBLA_READER_IO_URING && !r->reaping) {
        reap(r, 0);
        hand_over(r);
    }
    bool ended = g->ended;
    embla_lock_give(&r->lock);
    return ended;
}

bool embla_reader_drop(embla_reader *r, embla_gather *g, void (*complete)(embla_gather *gather))
{
    embla_lock_take(&r->lock);
    bool mine = g->ended && !g->complete;
    if (!g->ended) {
        if (g->next < g->count) remove_gather(r, g);
        g->next = g->count;
        mine = g->ended = g->flying == 0;
        if (g->complete && mine) r->notified--;
        if (!g->complete && !mine) {
            g->complete = complete;
            r->notified++;
        }
        if (r->kind == EMBLA_READER_IO_URING) hand_over(r);
    }
    embla_lock_give(&r->lock);
    return mine;
}

size_t embla_reader_wakes(embla_reader *r)
{
    embla_lock_take(&r->lock);
    size_t wakes = r->wakes;
    embla_lock_give(&r->lock);
    return wakes;
}
