/* SPDX-License-Identifier: Apache-2.0 */
/* The inside of embla_tickets, for tickets.c (the calls) and ticket_memory.c (memory, statistics).
 *
 * A ticket goes through these states, under the lock of its owner:
 *
 *   FREE -> READING -> (FINISHING) -> DONE -> FREE
 *
 * READING: its rows are being read into its own memory. FINISHING: a thread decodes them to `out`.
 * A plain ticket is finished by the thread that waits for it; one with a flag or an eventfd by the
 * thread that took the last result from the disk. A cancelled ticket goes from READING to FREE when
 * its last read has ended.
 *
 * The caller's flag is the one thing that is read without the lock: the thread that finishes writes
 * `out`, then stores the flag with release order; the caller loads it with acquire order and may
 * then read `out` and free both. Nothing of the caller is touched after that store.
 */
#ifndef EMBLA_STORE_TICKETS_H
#define EMBLA_STORE_TICKETS_H

#include "base/lock.h"
#include "base/origin.h"
#include "lookup/lookup.h"
#include "store/hot.h"
#include "store/reader.h"

typedef enum { TICKET_FREE, TICKET_READING, TICKET_FINISHING, TICKET_DONE } embla_ticket_state;

typedef struct embla_ticket_slot embla_ticket_slot;

struct embla_ticket_slot {
    embla_gather gather; /* first, so that a gather leads to its ticket; its failure is the
                            ticket's */
    embla_tickets *owner;
    embla_ticket id;
    embla_ticket_state state;
    bool notifies;  /* has a flag, or there is an eventfd; or it is a prefetch */
    bool prefetch;  /* only for the hot rows */
    bool cancelled; /* nobody waits */
    bool used;      /* a thread is in a call with this ticket */
    embla_lookup_call call;
    uint64_t *flag;
    uint64_t value;
    int64_t begun; /* ns */
    int64_t *rows;
    char *staging; /* stored bytes of the part of each row */

    /* The ticket's memory: a range of the owner's. Ranges in use are a list, by offset. */
    size_t offset, bytes;
    embla_ticket_slot *before, *after;
};

enum { EMBLA_TICKET_TIMES = 64 * 8 }; /* classes of times: eight for each power of two */

struct embla_tickets {
    const embla_store *store;
    embla_origin origin;  /* see embla_tickets_check */
    embla_reader *reader; /* NULL if the rows do not come from the disk */
    embla_hot *hot;       /* NULL means none */
    embla_row_source source;
    size_t block; /* bytes of this block */
    size_t most, bytes, count;
    char *memory; /* `bytes` of it, for tickets */
    embla_ticket_slot *slots;
    embla_handle event; /* EMBLA_NO_FILE means none */

    embla_lock lock; /* for all that follows, and the states of tickets */
    embla_condition changed;
    embla_ticket_slot *first; /* in use, by offset */
    size_t live;              /* in use */
    size_t waiting;           /* threads that wait for `changed` */
    size_t next;              /* where to look for a free slot */
    uint64_t generation;
    embla_tickets_info stats;
    uint32_t times[EMBLA_TICKET_TIMES];
};

/* EMBLA_ERR_UNSUPPORTED in a forked child. The child has a copy of the tickets, but neither the
 * threads that end them nor reads of its own: what it took from the ring of the kernel, the parent
 * would miss. The lock may be held by a thread that the child does not have. So every call checks
 * this before it touches anything. */
EMBLA_CHECKED embla_status embla_tickets_check(const embla_tickets *tickets);

/* ticket_memory.c. Takes a free slot and memory for `rows` rows; EMBLA_ERR_BUSY if there is none
 * now. Under the lock. */
EMBLA_CHECKED embla_status embla_ticket_take(embla_tickets *tickets, size_t rows,
                                             embla_ticket_slot **out);
/* Makes the slot and its memory free. Under the lock. */
void embla_ticket_release(embla_ticket_slot *ticket);
/* Counts the time since a ticket began. Under the lock. */
void embla_ticket_time(embla_tickets *tickets, const embla_ticket_slot *ticket);

#endif
