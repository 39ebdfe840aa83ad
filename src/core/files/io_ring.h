/* SPDX-License-Identifier: Apache-2.0 */
/* The ring of system/ring.h with messages, and with the failures that tests inject. */
#ifndef EMBLA_FILES_IO_RING_H
#define EMBLA_FILES_IO_RING_H

#include "base/status.h"
#include "system/ring.h"

/* Opens a ring for `depth` reads at once. EMBLA_ERR_UNSUPPORTED, with the reason, if the system has
 * no io_uring or does not permit it. */
EMBLA_CHECKED embla_status embla_ring_open(unsigned depth, embla_ring *out);
/* All reads must have been popped. */
void embla_ring_close(embla_ring *ring);
/* The next result, if there is one: the bytes that were read, or a negative error number. */
bool embla_ring_pop(embla_ring *ring, uint64_t *tag, int64_t *result);

#endif
