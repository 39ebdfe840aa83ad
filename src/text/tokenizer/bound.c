/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on what a tokenizer's file may cost: where it begins, its two errors, and the progress
 * function of a long text. */
#include "tokenizer/bound.h"

static void look_later(embla_bound *bound)
{
    uint64_t look = bound->steps + EMBLA_BOUND_LOOK;
    bound->look = bound->watch && look < bound->most_steps ? look : bound->most_steps;
}

void embla_bound_begin(embla_bound *bound, const char *file, const char *input, size_t bytes)
{
    *bound = (embla_bound){.file = file,
                           .input = input,
                           .stage = "the tokenizer",
                           .bytes = bytes,
                           .most_steps = (uint64_t)bytes * EMBLA_BOUND_STEPS + EMBLA_BOUND_FREE,
                           .most_bytes = (uint64_t)bytes * EMBLA_BOUND_BYTES + EMBLA_BOUND_FREE,
                           .watch = bound->watch,
                           .caller = bound->caller};
    look_later(bound);
}

embla_status embla_bound_look(embla_bound *bound)
{
    if (bound->steps > bound->most_steps) return embla_bound_slow(bound);
    look_later(bound);
    return embla_watch_step(bound->watch, bound->caller, 0) ? embla_watch_say(bound->watch)
                                                            : EMBLA_OK;
}

embla_status embla_bound_slow(const embla_bound *bound)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s: %s needs more than %" PRIu64 " steps for %s of %zu bytes; the limit "
                      "is %d for each byte and %d more",
                      bound->file, bound->stage, bound->most_steps, bound->input, bound->bytes,
                      EMBLA_BOUND_STEPS, EMBLA_BOUND_FREE);
}

embla_status embla_bound_large(const embla_bound *bound)
{
    return embla_fail(EMBLA_ERR_UNSUPPORTED,
                      "%.256s: %s makes more than %" PRIu64 " bytes of %s of %zu bytes; the limit "
                      "is %d for each byte and %d more",
                      bound->file, bound->stage, bound->most_bytes, bound->input, bound->bytes,
                      EMBLA_BOUND_BYTES, EMBLA_BOUND_FREE);
}
