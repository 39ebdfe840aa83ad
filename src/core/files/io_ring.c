/* SPDX-License-Identifier: Apache-2.0 */
/* Opens and closes a ring, and counts it among the open files. */
#include "files/io_ring.h"

#include "files/io.h"

embla_status embla_ring_open(unsigned depth, embla_ring *out)
{
    const char *what = "io_uring_setup";
    embla_outcome done;
    char why[128];
    if (!embla_io_must_fail(&done)) done = embla_ring_setup(depth, out, &what);
    if (embla_worked(done)) {
        embla_io_count(1);
        return EMBLA_OK;
    }
    embla_system_describe(done.number, why, sizeof why);
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "io_uring cannot be used: %s: %s", what, why);
}

void embla_ring_close(embla_ring *ring)
{
    embla_ring_release(ring);
    if (ring->file >= 0) embla_io_drop(ring->file);
    *ring = (embla_ring){.file = EMBLA_NO_FILE};
}

bool embla_ring_pop(embla_ring *ring, uint64_t *tag, int64_t *result)
{
    embla_outcome told;
    if (!embla_ring_next(ring, tag, result)) return false;
    if (embla_io_must_fail(&told)) *result = -told.number;
    if (*result > 0) *result = (int64_t)embla_io_at_most((size_t)*result);
    return true;
}
