/* SPDX-License-Identifier: Apache-2.0 */
/* The memory of tickets: one block, from which each ticket takes the first gap that is large
 * enough. Few tickets are under way at once, so a list is searched. And the statistics. */

#include "base/checked.h"
#include "base/clock.h"
#include "files/io.h"
#include "store/tickets.h"

/* ---- memory ---- */

static uint64_t whole_lines(uint64_t bytes)
{
    return (bytes + 63) / 64 * 64;
}

/* Bytes for a ticket of `rows` rows, which is at most tickets->most. */
static size_t bytes_of(const embla_tickets *t, size_t rows)
{
    uint64_t n = rows, planes = t->store->row.scale_bytes > 0 ? EMBLA_PLANES : 1;
    return embla_size_most(whole_lines(n * sizeof(int64_t)) +
                           whole_lines(n * planes * sizeof(embla_row_piece)) +
                           whole_lines(n * t->store->row.bytes));
}

/* Finds a gap of this many bytes: after *after, or at the beginning if that is NULL. */
static bool find_gap(const embla_tickets *t, size_t bytes, embla_ticket_slot **after)
{
    size_t end = 0;
    *after = NULL;
    for (embla_ticket_slot *s = t->first; s; s = s->after) {
        if (s->offset - end >= bytes) return true;
        end = s->offset + s->bytes;
        *after = s;
    }
    return t->bytes - end >= bytes;
}

static void insert_after(embla_tickets *t, embla_ticket_slot *s, embla_ticket_slot *after)
{
    s->offset = after ? after->offset + after->bytes : 0;
    s->before = after;
    s->after = after ? after->after : t->first;
    if (s->after) s->after->before = s;
    if (after)
        after->after = s;
    else
        t->first = s;
}

embla_status embla_ticket_take(embla_tickets *t, size_t rows, embla_ticket_slot **out)
{
    size_t bytes = bytes_of(t, rows);
    embla_ticket_slot *after, *s;
    if (bytes > t->bytes)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a ticket of %zu rows needs %zu bytes, but all tickets have %zu: set "
                          "bytes when you open them",
                          rows, bytes, t->bytes);
    if (t->live == t->count) {
        t->stats.busy++;
        return embla_fail(EMBLA_ERR_BUSY, "all %zu tickets are in use; %zu is the maximum", t->live,
                          t->count);
    }
    if (!find_gap(t, bytes, &after)) {
        t->stats.busy++;
        return embla_fail(EMBLA_ERR_BUSY,
                          "a ticket of %zu rows needs %zu bytes, but %" PRId64
                          " of %zu are in use: wait for a ticket first",
                          rows, bytes, t->stats.in_flight, t->bytes);
    }
    while (t->slots[t->next].state != TICKET_FREE) t->next = (t->next + 1) % t->count;
    s = &t->slots[t->next];
    *s = (embla_ticket_slot){.owner = t,
                             .id = ++t->generation << 16 | t->next,
                             .state = TICKET_READING,
                             .used = true,
                             .bytes = bytes};
    insert_after(t, s, after);
    t->live++;
    t->stats.in_flight += (int64_t)bytes;
    if (t->stats.in_flight > t->stats.in_flight_max) t->stats.in_flight_max = t->stats.in_flight;
    char *memory = t->memory + s->offset;
    s->rows = (int64_t *)(void *)memory;
    s->staging = memory + bytes - whole_lines(rows * t->store->row.bytes);
    s->gather.pieces = (embla_row_piece *)(void *)(memory + whole_lines(rows * sizeof(int64_t)));
    *out = s;
    return EMBLA_OK;
}

void embla_ticket_release(embla_ticket_slot *s)
{
    embla_tickets *t = s->owner;
    if (s->before)
        s->before->after = s->after;
    else
        t->first = s->after;
    if (s->after) s->after->before = s->before;
    t->stats.in_flight -= (int64_t)s->bytes;
    t->live--;
    s->state = TICKET_FREE;
    s->id = 0;
    if (t->waiting > 0) embla_condition_signal_all(&t->changed);
}

/* ---- statistics ---- */

/* Class c has the times from (8 + c % 8) * 2^(c / 8 - 1) ns on, c from 8 on; times below 8 ns are
 * their own class. */
static size_t class_of(uint64_t ns)
{
    if (ns < 8) return (size_t)ns;
    unsigned top = 63 - (unsigned)__builtin_clzll(ns);
    return (size_t)(top - 2) * 8 + (size_t)(ns >> (top - 3) & 7);
}

static int64_t time_of(size_t class)
{
    return class < 8 ? (int64_t) class : (int64_t)(8 + class % 8) << (class / 8 - 1);
}

void embla_ticket_time(embla_tickets *t, const embla_ticket_slot *s)
{
    int64_t ns = embla_clock_ns() - s->begun;
    t->times[class_of(ns > 0 ? (uint64_t)ns : 0)]++;
}

/* The time that `share` of all tickets did not exceed. */
static int64_t quantile(const embla_tickets *t, double share)
{
    uint64_t all = 0, sum = 0;
    for (size_t i = 0; i < EMBLA_TICKET_TIMES; i++) all += t->times[i];
    for (size_t i = 0; i < EMBLA_TICKET_TIMES; i++) {
        sum += t->times[i];
        if (sum > 0 && (double)sum >= share * (double)all) return time_of(i);
    }
    return 0;
}

embla_status embla_tickets_describe(const embla_tickets *tickets, embla_tickets_info *out)
{
    embla_tickets *t = (embla_tickets *)(uintptr_t)tickets; /* its lock guards the counts */
    EMBLA_NEED(tickets);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_tickets_check(t));
    embla_lock_take(&t->lock);
    embla_tickets_info stats = t->stats;
    stats.p50 = quantile(t, 0.5);
    stats.p99 = quantile(t, 0.99);
    embla_lock_give(&t->lock);
    if (t->hot) embla_hot_count(t->hot, &stats.hot_rows, &stats.hot_bytes);
    *out = stats;
    return EMBLA_OK;
}
