/* SPDX-License-Identifier: Apache-2.0 */
/* Many reads at once by io_uring: reads are queued in memory that the kernel shares, one call
 * submits them, and their results come back in any order.
 *
 * The calls of the kernel are made here, without liburing: see
 * docs/decisions/028-rows-from-disk-by-tickets.md. One thread at a time may queue, submit or pop.
 * Only embla_ring_wait may run beside them, in one thread.
 */
#ifndef EMBLA_FILES_RING_H
#define EMBLA_FILES_RING_H

#include <stdbool.h>
#include <stdint.h>

#include "base/status.h"

struct io_uring_sqe;
struct io_uring_cqe;

typedef struct {
    int fd; /* -1 means not open */
    void *rings;
    size_t rings_bytes;
    struct io_uring_sqe *entries;
    size_t entries_bytes;
    uint32_t *sent_head, *sent_tail, *slots, sent_mask; /* submission queue */
    uint32_t *done_head, *done_tail, done_mask;         /* completion queue */
    const struct io_uring_cqe *done;
    uint32_t queued; /* reads that are queued and not yet submitted */
} embla_ring;

/* Opens a ring for `depth` reads at once. EMBLA_ERR_UNSUPPORTED, with the reason, if the kernel has
 * no io_uring or does not permit it. */
EMBLA_CHECKED embla_status embla_ring_open(unsigned depth, embla_ring *out);
/* All reads must have been popped. */
void embla_ring_close(embla_ring *ring);
/* Queues a read. tag comes back with its result. At most `depth` reads may be queued or not yet
 * popped. */
void embla_ring_queue(embla_ring *ring, int fd, uint64_t offset, void *memory, size_t bytes,
                      uint64_t tag);
/* Submits what is queued. Returns 0, or the kernel's error number: what it has not accepted stays
 * queued. */
int embla_ring_submit(embla_ring *ring);
/* Submits `queued` reads and waits for `count` results that were not popped before. Returns 0 or an
 * error number. The caller has set ring->queued to 0 under its lock. */
int embla_ring_wait(const embla_ring *ring, uint32_t queued, uint32_t count);
/* The next result, if there is one: the bytes that were read, or a negative error number. */
bool embla_ring_pop(embla_ring *ring, uint64_t *tag, int64_t *result);
/* Takes back a read that was queued and that the kernel has not accepted. */
bool embla_ring_withdraw(embla_ring *ring, uint64_t *tag);

#endif
