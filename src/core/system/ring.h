/* SPDX-License-Identifier: Apache-2.0 */
/* Many reads at once by io_uring: reads are queued in memory that the kernel shares, one call
 * submits them, and their results come back in any order.
 *
 * The calls of the kernel are made here, without liburing: see
 * docs/decisions/028-rows-from-disk-by-tickets.md. One thread at a time may queue, submit or pop.
 * Only embla_ring_wait may run beside them, in one thread.
 */
#ifndef EMBLA_SYSTEM_RING_H
#define EMBLA_SYSTEM_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "system/system.h"

typedef struct {
    embla_handle file; /* EMBLA_NO_FILE means not open */
    void *rings;
    size_t rings_bytes;
    void *entries;
    size_t entries_bytes;
    uint32_t *sent_head, *sent_tail, *slots, sent_mask; /* submission queue */
    uint32_t *done_head, *done_tail, done_mask;         /* completion queue */
    const void *done;
    uint32_t queued; /* reads that are queued and not yet submitted */
} embla_ring;

/* Sets up a ring for `depth` reads at once. If it fails, *what names the step. Released by
 * embla_ring_release. */
embla_outcome embla_ring_setup(unsigned depth, embla_ring *out, const char **what);
/* Unmaps the queues, and leaves the file to be closed. All reads must have ended. */
void embla_ring_release(embla_ring *ring);
/* Queues a read. tag comes back with its result. At most `depth` reads may be queued or not yet
 * ended. */
void embla_ring_queue(embla_ring *ring, embla_handle file, uint64_t offset, void *memory,
                      size_t bytes, uint64_t tag);
/* Submits what is queued. What the kernel has not accepted stays queued. */
embla_outcome embla_ring_submit(embla_ring *ring);
/* Submits `queued` reads and waits for `count` results that were not taken before. The caller has
 * set ring->queued to 0 under its lock. */
embla_outcome embla_ring_wait(const embla_ring *ring, uint32_t queued, uint32_t count);
/* Takes the next result, if there is one: the bytes that were read, or a negative error number. */
bool embla_ring_next(embla_ring *ring, uint64_t *tag, int64_t *result);
/* Takes back a read that was queued and that the kernel has not accepted. */
bool embla_ring_withdraw(embla_ring *ring, uint64_t *tag);

#endif
