/* SPDX-License-Identifier: Apache-2.0 */
/* Memory that an owner keeps between calls, so that calls of the same size allocate nothing. Fresh
 * memory is dear: the system clears every page. What is in it is left from the last use.
 *
 * Only one use at a time gets the kept memory. A use inside another one, or without an owner, gets
 * memory of its own. An owner serves one thread at a time. */
#ifndef EMBLA_BASE_SCRATCH_H
#define EMBLA_BASE_SCRATCH_H

#include "base/mem.h"

/* A zeroed one is empty. */
typedef struct {
    void *memory;
    size_t bytes;
    bool busy;
} embla_scratch;

typedef struct {
    void *memory;
    size_t bytes;
    embla_scratch *owner; /* NULL: the memory belongs to this use */
} embla_scratch_use;

static inline void embla_scratch_free(embla_scratch *kept)
{
    embla_mem_free(kept->memory, kept->bytes);
    *kept = (embla_scratch){0};
}

/* kept may be NULL. Every successful begin needs an end. */
EMBLA_CHECKED static inline embla_status
embla_scratch_begin(embla_scratch *kept, size_t bytes, const char *what, embla_scratch_use *out)
{
    embla_scratch_use use = {.bytes = bytes};
    if (!kept || kept->busy) {
        EMBLA_TRY(embla_mem_new(bytes, what, &use.memory));
    } else {
        if (bytes > kept->bytes || !kept->memory) {
            embla_scratch_free(kept);
            EMBLA_TRY(embla_mem_new(bytes, what, &kept->memory));
            kept->bytes = bytes;
        }
        kept->busy = true;
        use.memory = kept->memory;
        use.owner = kept;
    }
    *out = use;
    return EMBLA_OK;
}

static inline void embla_scratch_end(const embla_scratch_use *use)
{
    if (use->owner)
        use->owner->busy = false;
    else
        embla_mem_free(use->memory, use->bytes);
}

#endif
