/* SPDX-License-Identifier: Apache-2.0 */
/* The one way in which the library shares a loop over threads.
 *
 *   static embla_status sum_rows(void *job, size_t first, size_t end, size_t slot)
 *   {
 *       const sums *s = job;
 *       for (size_t row = first; row < end; row++) s->out[row] = sum(s, row, s->scratch[slot]);
 *       return EMBLA_OK;
 *   }
 *
 *   int parts = embla_threads_for(options->threads, bytes);   then scratch for `parts` slots, then
 *   EMBLA_TRY(embla_share(parts, rows, 0, sum_rows, &s));
 *
 * The threads are those of base/thread_pool.c, or of the host program (embla_set_parallel).
 */
#ifndef EMBLA_BASE_PARALLEL_H
#define EMBLA_BASE_PARALLEL_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

/* The body of a loop: does the indices first .. end-1 (at least one) in order, and returns at the
 * first that fails. slot is below the number of parts; no two bodies that run at the same time have
 * the same slot. A body must not wait for another one. */
typedef embla_status embla_share_fn(void *job, size_t first, size_t end, size_t slot);

EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_share_parts(size_t parts, size_t count, size_t grain,
                                                           embla_share_fn *body, void *job);

/* Does the indices 0 .. count-1, each exactly once, on up to `parts` threads, and returns when all
 * are done. What bodies wrote is then visible to the caller.
 *
 * grain 0 cuts the loop into `parts` ranges of the same length, one for each slot. This is for
 * indices of equal cost. With count == parts, each body has one index: the number of its part.
 * grain > 0 cuts it into tiles of `grain` indices; each thread takes the next tile when it is free.
 * One part, a call inside a body, and a forked child run the whole loop as one range on the calling
 * thread, with slot 0.
 *
 * If bodies fail, the result is the failure with the lowest index, with its message: the same for
 * any number of threads. Indices above it may be left out. EMBLA_ERR_ARGUMENT if the host's
 * function broke its contract (all indices are done nevertheless). EMBLA_ERR_UNSUPPORTED in a child
 * that was forked inside this loop.
 *
 * job is const here and not in the body, so that a caller may pass either. */
EMBLA_CHECKED static inline embla_status embla_share(int parts, size_t count, size_t grain,
                                                     embla_share_fn *body, const void *job)
{
    void *same = (void *)(uintptr_t)job;
    if (count == 0) return EMBLA_OK;
    if (parts <= 1) return body(same, 0, count, 0);
    return embla_share_parts((size_t)parts, count, grain, body, same);
}

/* How many bodies may run at once in the loop that this thread works on; 1 outside. */
EMBLA_PRIVATE size_t embla_share_width(void);
/* True on the thread that called the library. False in a body that another thread runs. Progress is
 * reported from the calling thread only. */
EMBLA_PRIVATE bool embla_share_is_caller(void);

#endif
