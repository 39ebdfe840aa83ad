/* SPDX-License-Identifier: Apache-2.0 */
/* Replaces a table by another version of it while threads look rows up.
 *
 * Each version counts its users. A lock protects the counts and the pointer to the current version,
 * and is held for a few instructions only. The thread that releases an old version last frees it.
 */

#include "base/lock.h"
#include "base/mem.h"
#include "store/tickets.h"

typedef struct {
    embla_swap_version held; /* first, so that it leads to its version */
    embla_store *store;
    size_t users;
} version;

struct embla_swap {
    embla_lock lock;
    version *current;
};

static void free_version(version *v)
{
    if (!v) return;
    embla_tickets_free(v->held.tickets);
    embla_store_free(v->store);
    embla_mem_free(v, sizeof *v);
}

static embla_status new_version(embla_store *store, embla_tickets *tickets, version **out)
{
    void *memory = NULL;
    if (tickets && tickets->store != store)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the tickets belong to another store than the one that is given");
    if (tickets) EMBLA_TRY(embla_tickets_check(tickets));
    EMBLA_TRY(embla_mem_new(sizeof(version), "a version of a table", &memory));
    version *v = memory;
    *v = (version){.held = {.store = store, .tickets = tickets}, .store = store};
    *out = v;
    return EMBLA_OK;
}

/* Numbers a version, and its tickets: a ticket of another version that is used by mistake is then
 * refused, and never taken for one of this version. */
static void set_number(version *v, uint64_t number)
{
    embla_tickets *t = v->held.tickets;
    uint64_t least = (number & 0xffff) << 32;
    v->held.number = number;
    if (!t) return;
    embla_lock_take(&t->lock);
    if (t->generation < least) t->generation = least;
    embla_lock_give(&t->lock);
}

embla_status embla_swap_new(embla_store *store, embla_tickets *tickets, embla_swap **out)
{
    version *v = NULL;
    void *memory = NULL;
    EMBLA_NEED(store);
    EMBLA_NEED(out);
    EMBLA_TRY(embla_mem_new(sizeof(embla_swap), "a table that is replaced", &memory));
    embla_status status = new_version(store, tickets, &v);
    if (status != EMBLA_OK) {
        embla_mem_free(memory, sizeof(embla_swap));
        return status;
    }
    embla_swap *swap = memory;
    set_number(v, 1);
    swap->current = v;
    *out = swap;
    return EMBLA_OK;
}

void embla_swap_free(embla_swap *swap)
{
    if (!swap) return;
    free_version(swap->current);
    embla_mem_free(swap, sizeof *swap);
}

const embla_swap_version *embla_swap_acquire(embla_swap *swap)
{
    if (!swap) return NULL;
    embla_lock_take(&swap->lock);
    version *v = swap->current;
    v->users++;
    embla_lock_give(&swap->lock);
    return &v->held;
}

void embla_swap_release(embla_swap *swap, const embla_swap_version *held)
{
    version *v = (version *)(uintptr_t)held;
    if (!swap || !v) return;
    embla_lock_take(&swap->lock);
    bool last = --v->users == 0 && v != swap->current;
    embla_lock_give(&swap->lock);
    if (last) free_version(v);
}

/* Callers have made room for vectors of the old version. */
static embla_status check_same_shape(const embla_store *old, const embla_store *new)
{
    const embla_row_format *a = &old->row.format, *b = &new->row.format;
    if (a->dim != b->dim || a->dtype != b->dtype || a->scales != b->scales)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the new version has rows of %zu %s with scales %d, the current one rows "
                          "of %zu %s with scales %d",
                          b->dim, embla_dtype_name(b->dtype), (int)b->scales, a->dim,
                          embla_dtype_name(a->dtype), (int)a->scales);
    if (old->rows != new->rows || old->first != new->first || old->held != new->held)
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the new version has rows %" PRId64 " to %" PRId64 " of %" PRId64
                          ", the current one rows %" PRId64 " to %" PRId64 " of %" PRId64,
                          new->first, new->first + new->held - 1, new->rows, old->first,
                          old->first + old->held - 1, old->rows);
    return EMBLA_OK;
}

embla_status embla_swap_replace(embla_swap *swap, embla_store *store, embla_tickets *tickets)
{
    version *v = NULL;
    EMBLA_NEED(swap);
    EMBLA_NEED(store);
    const embla_swap_version *now = embla_swap_acquire(swap);
    embla_status status = check_same_shape(now->store, store);
    if (now->store == store)
        status =
            embla_fail(EMBLA_ERR_ARGUMENT, "the store is already version %" PRIu64, now->number);
    embla_swap_release(swap, now);
    EMBLA_TRY(status);
    EMBLA_TRY(new_version(store, tickets, &v));
    embla_lock_take(&swap->lock);
    version *old = swap->current;
    set_number(v, old->held.number + 1);
    swap->current = v;
    bool unused = old->users == 0;
    embla_lock_give(&swap->lock);
    if (unused) free_version(old);
    return EMBLA_OK;
}
