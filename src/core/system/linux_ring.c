/* SPDX-License-Identifier: Apache-2.0 */
/* io_uring with two calls of the kernel: io_uring_setup and io_uring_enter.
 *
 * Head and tail of both queues are counters that never wrap back; an index is counter & mask. We
 * write the tail of the submission queue and the head of the completion queue with release order,
 * and read the two that the kernel writes with acquire order. There is always a place in both
 * queues, because the caller never has more than `depth` reads at once.
 *
 * What each pair orders:
 * - tail of the submissions: we release the entry, the kernel acquires it. Its head comes back by
 *   acquire, but an entry is only reused after the result of a later or the same read was popped.
 * - tail of the completions: the kernel releases the result and the bytes that were read, we
 *   acquire them. Head: we release it after the result was copied; the kernel then reuses the
 * place. Our own two counters are read plainly: only threads that hold the owner's lock write them.
 */
#include "system/ring.h"

#include "system/posix.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

/* The kernel shares these counters; C11 atomics of its plain integers have the same layout. */
static uint32_t load(const uint32_t *counter)
{
    return __atomic_load_n(counter, __ATOMIC_ACQUIRE);
}

static void store(uint32_t *counter, uint32_t value)
{
    __atomic_store_n(counter, value, __ATOMIC_RELEASE);
}

/* ---- open, close ---- */

static bool map_queue(embla_ring *ring, size_t bytes, off_t which, void **out)
{
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    void *memory = mmap(NULL, bytes, prot, flags, (int)ring->file, which);
    if (memory == MAP_FAILED) return false;
    *out = memory;
    return true;
}

/* Returns what failed; NULL means nothing. */
static const char *map_queues(embla_ring *ring, const struct io_uring_params *p)
{
    size_t sent = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t done = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    ring->rings_bytes = sent > done ? sent : done;
    ring->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    if (!map_queue(ring, ring->rings_bytes, IORING_OFF_SQ_RING, &ring->rings))
        return "mmap of its queues";
    if (!map_queue(ring, ring->entries_bytes, IORING_OFF_SQES, &ring->entries))
        return "mmap of its entries";
    return NULL;
}

static void find_counters(embla_ring *ring, const struct io_uring_params *p)
{
    char *base = ring->rings;
    ring->sent_head = (uint32_t *)(void *)(base + p->sq_off.head);
    ring->sent_tail = (uint32_t *)(void *)(base + p->sq_off.tail);
    ring->sent_mask = p->sq_entries - 1;
    ring->slots = (uint32_t *)(void *)(base + p->sq_off.array);
    ring->done_head = (uint32_t *)(void *)(base + p->cq_off.head);
    ring->done_tail = (uint32_t *)(void *)(base + p->cq_off.tail);
    ring->done_mask = p->cq_entries - 1;
    ring->done = base + p->cq_off.cqes;
}

embla_outcome embla_ring_setup(unsigned depth, embla_ring *out, const char **what)
{
    struct io_uring_params p = {0};
    embla_ring ring = {.file = EMBLA_NO_FILE};
    int fd = (int)syscall(SYS_io_uring_setup, depth, &p);
    *what = "io_uring_setup";
    if (fd < 0) return embla_posix_failed();
    ring.file = fd;
    errno = ENOSYS;
    *what = p.features & IORING_FEAT_SINGLE_MMAP ? map_queues(&ring, &p)
                                                 : "the kernel is older than 5.4";
    if (*what) {
        embla_outcome failed = embla_posix_failed();
        embla_ring_release(&ring);
        (void)close(fd);
        return failed;
    }
    find_counters(&ring, &p);
    *out = ring;
    return embla_posix_ended(0);
}

void embla_ring_release(embla_ring *ring)
{
    if (ring->entries) (void)munmap(ring->entries, ring->entries_bytes);
    if (ring->rings) (void)munmap(ring->rings, ring->rings_bytes);
}

/* ---- reads ---- */

void embla_ring_queue(embla_ring *ring, embla_handle file, uint64_t offset, void *memory,
                      size_t bytes, uint64_t tag)
{
    uint32_t tail = *ring->sent_tail, at = tail & ring->sent_mask;
    struct io_uring_sqe *entries = ring->entries;
    entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                        .fd = (int)file,
                                        .off = offset,
                                        .addr = (uint64_t)(uintptr_t)memory,
                                        .len = (uint32_t)bytes,
                                        .user_data = tag};
    ring->slots[at] = at;
    store(ring->sent_tail, tail + 1);
    ring->queued++;
}

/* Several threads may be here at once: the kernel takes entries from the front, whoever queued
 * them, and each call takes as many as its thread has queued. */
embla_outcome embla_ring_wait(const embla_ring *ring, uint32_t queued, uint32_t count)
{
    while (queued > 0 || count > 0) {
        unsigned flags = count > 0 ? IORING_ENTER_GETEVENTS : 0;
        long n =
            syscall(SYS_io_uring_enter, (int)ring->file, queued, count, flags, NULL, (size_t)0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY)) continue;
        if (n < 0) return embla_posix_failed();
        if ((uint32_t)n >= queued) break; /* it has also waited, unless a signal came */
        queued -= (uint32_t)n;
    }
    return embla_posix_ended(0);
}

embla_outcome embla_ring_submit(embla_ring *ring)
{
    embla_outcome ended = embla_ring_wait(ring, ring->queued, 0);
    ring->queued = embla_worked(ended) ? 0 : *ring->sent_tail - load(ring->sent_head);
    return ended;
}

bool embla_ring_next(embla_ring *ring, uint64_t *tag, int64_t *result)
{
    uint32_t head = *ring->done_head;
    if (head == load(ring->done_tail)) return false;
    const struct io_uring_cqe *done = ring->done;
    done += head & ring->done_mask;
    *tag = done->user_data;
    *result = done->res;
    store(ring->done_head, head + 1);
    return true;
}

bool embla_ring_withdraw(embla_ring *ring, uint64_t *tag)
{
    uint32_t tail = *ring->sent_tail;
    if (tail == load(ring->sent_head)) return false;
    const struct io_uring_sqe *entries = ring->entries;
    *tag = entries[(tail - 1) & ring->sent_mask].user_data;
    store(ring->sent_tail, tail - 1);
    return true;
}
