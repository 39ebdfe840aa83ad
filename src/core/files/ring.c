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
#include "files/ring.h"

#include <errno.h>
#include <linux/io_uring.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "files/io.h"

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

static embla_status unsupported(const char *what)
{
    int error = errno;
    char text[128] = "";
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "io_uring cannot be used: %s: %s", what,
                      strerror_r(error, text, sizeof text));
}

static embla_status map_queues(embla_ring *ring, const struct io_uring_params *p)
{
    size_t sent = p->sq_off.array + p->sq_entries * sizeof(uint32_t);
    size_t done = p->cq_off.cqes + p->cq_entries * sizeof(struct io_uring_cqe);
    int prot = PROT_READ | PROT_WRITE, flags = MAP_SHARED | MAP_POPULATE;
    ring->rings_bytes = sent > done ? sent : done;
    ring->entries_bytes = p->sq_entries * sizeof(struct io_uring_sqe);
    void *rings = embla_io_must_fail()
                      ? MAP_FAILED
                      : mmap(NULL, ring->rings_bytes, prot, flags, ring->fd, IORING_OFF_SQ_RING);
    if (rings == MAP_FAILED) return unsupported("mmap of its queues");
    ring->rings = rings;
    void *entries = embla_io_must_fail()
                        ? MAP_FAILED
                        : mmap(NULL, ring->entries_bytes, prot, flags, ring->fd, IORING_OFF_SQES);
    if (entries == MAP_FAILED) return unsupported("mmap of its entries");
    ring->entries = entries;
    return EMBLA_OK;
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
    ring->done = (const struct io_uring_cqe *)(const void *)(base + p->cq_off.cqes);
}

embla_status embla_ring_open(unsigned depth, embla_ring *out)
{
    struct io_uring_params p = {0};
    embla_ring ring = {.fd = -1};
    ring.fd = embla_io_must_fail() ? -1 : (int)syscall(SYS_io_uring_setup, depth, &p);
    if (ring.fd < 0) return unsupported("io_uring_setup");
    embla_io_count(1);
    errno = ENOSYS;
    embla_status status = p.features & IORING_FEAT_SINGLE_MMAP
                              ? map_queues(&ring, &p)
                              : unsupported("the kernel is older than 5.4");
    if (status != EMBLA_OK) {
        embla_ring_close(&ring);
        return status;
    }
    find_counters(&ring, &p);
    *out = ring;
    return EMBLA_OK;
}

void embla_ring_close(embla_ring *ring)
{
    if (ring->entries) (void)munmap(ring->entries, ring->entries_bytes);
    if (ring->rings) (void)munmap(ring->rings, ring->rings_bytes);
    if (ring->fd >= 0) embla_io_drop(ring->fd);
    *ring = (embla_ring){.fd = -1};
}

/* ---- reads ---- */

void embla_ring_queue(embla_ring *ring, int fd, uint64_t offset, void *memory, size_t bytes,
                      uint64_t tag)
{
    uint32_t tail = *ring->sent_tail, at = tail & ring->sent_mask;
    ring->entries[at] = (struct io_uring_sqe){.opcode = IORING_OP_READ,
                                              .fd = fd,
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
int embla_ring_wait(const embla_ring *ring, uint32_t queued, uint32_t count)
{
    while (queued > 0 || count > 0) {
        unsigned flags = count > 0 ? IORING_ENTER_GETEVENTS : 0;
        long n = syscall(SYS_io_uring_enter, ring->fd, queued, count, flags, NULL, (size_t)0);
        if (n < 0 && (errno == EINTR || errno == EAGAIN || errno == EBUSY)) continue;
        if (n < 0) return errno;
        if ((uint32_t)n >= queued) return 0; /* it has also waited, unless a signal came */
        queued -= (uint32_t)n;
    }
    return 0;
}

int embla_ring_submit(embla_ring *ring)
{
    int error = embla_ring_wait(ring, ring->queued, 0);
    ring->queued = error == 0 ? 0 : *ring->sent_tail - load(ring->sent_head);
    return error;
}

bool embla_ring_pop(embla_ring *ring, uint64_t *tag, int64_t *result)
{
    uint32_t head = *ring->done_head;
    if (head == load(ring->done_tail)) return false;
    const struct io_uring_cqe *done = &ring->done[head & ring->done_mask];
    *tag = done->user_data;
    *result = done->res;
    store(ring->done_head, head + 1);
    if (embla_io_must_fail()) *result = -errno;
    if (*result > 0) *result = (int64_t)embla_io_at_most((size_t)*result);
    return true;
}

bool embla_ring_withdraw(embla_ring *ring, uint64_t *tag)
{
    uint32_t tail = *ring->sent_tail;
    if (tail == load(ring->sent_head)) return false;
    *tag = ring->entries[(tail - 1) & ring->sent_mask].user_data;
    store(ring->sent_tail, tail - 1);
    return true;
}
