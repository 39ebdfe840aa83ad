/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of systems without io_uring: it cannot be set up, so nothing else of it is called. */
#include "system/ring.h"

embla_outcome embla_ring_setup(unsigned depth, embla_ring *out, const char **what)
{
    (void)depth;
    *out = (embla_ring){.file = EMBLA_NO_FILE};
    *what = "this system has none";
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

void embla_ring_release(embla_ring *ring)
{
    (void)ring;
}

void embla_ring_queue(embla_ring *ring, embla_handle file, uint64_t offset, void *memory,
                      size_t bytes, uint64_t tag)
{
    (void)ring, (void)file, (void)offset, (void)memory, (void)bytes, (void)tag;
}

embla_outcome embla_ring_submit(embla_ring *ring)
{
    (void)ring;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

embla_outcome embla_ring_wait(const embla_ring *ring, uint32_t queued, uint32_t count)
{
    (void)ring, (void)queued, (void)count;
    return embla_system_outcome(EMBLA_SYSTEM_UNSUPPORTED);
}

bool embla_ring_next(embla_ring *ring, uint64_t *tag, int64_t *result)
{
    (void)ring, (void)tag, (void)result;
    return false;
}

bool embla_ring_withdraw(embla_ring *ring, uint64_t *tag)
{
    (void)ring, (void)tag;
    return false;
}
