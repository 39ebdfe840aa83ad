/* SPDX-License-Identifier: Apache-2.0 */
/* The bound on what a tokenizer's file may cost. A file is data of a stranger: a few of its bytes
 * can ask for a text that doubles 25 times, or for a search that begins again at every byte.
 *
 *   steps of all stages together <= 256 x bytes of the text + 65536
 *   bytes that a stage writes, and bytes that the model reads <= 32 x bytes of the text + 65536
 *
 * A step is a byte that a stage reads or writes, a node of a trie, a symbol, or a part of what a
 * regular expression does. Real tokenizers take fewer than 64 steps for a byte, and no
 * normalization form makes more than 11 bytes of one. Beyond the bound a call fails, and names file
 * and stage.
 */
#ifndef EMBLA_TOKENIZER_BOUND_H
#define EMBLA_TOKENIZER_BOUND_H

#include <stddef.h>

#include "base/stop.h"

enum {
    EMBLA_BOUND_STEPS = 256,
    EMBLA_BOUND_BYTES = 32,
    EMBLA_BOUND_FREE = 65536,
    EMBLA_BOUND_LOOK = 1 << 20,   /* steps between two looks at the progress function */
    EMBLA_BOUND_PIECES = 1 << 16, /* pieces between two looks */
};

typedef struct {
    const char *file;  /* for messages */
    const char *input; /* "a text" */
    const char *stage; /* "the normalizer Replace" */
    size_t bytes;      /* of the input */
    uint64_t steps, most_steps;
    uint64_t made, most_bytes; /* bytes that the model reads */
    uint64_t look;      /* steps after which embla_bound_look is called: most_steps or less */
    embla_watch *watch; /* the caller's progress function; NULL means none */
    bool caller;        /* this is the thread that made the call */
} embla_bound;

/* Begins at 0, for an input of so many bytes. watch and caller stay. */
EMBLA_PRIVATE void embla_bound_begin(embla_bound *bound, const char *file, const char *input,
                                     size_t bytes);

/* The errors: EMBLA_ERR_UNSUPPORTED. */
EMBLA_CHECKED embla_status embla_bound_slow(const embla_bound *bound);
EMBLA_CHECKED embla_status embla_bound_large(const embla_bound *bound);

/* Calls the progress function. An error beyond the limit, or if the caller wants to stop. */
EMBLA_CHECKED embla_status embla_bound_look(embla_bound *bound);

/* Counts steps. */
EMBLA_CHECKED static inline embla_status embla_bound_add(embla_bound *bound, uint64_t steps)
{
    bound->steps += steps;
    return bound->steps <= bound->look ? EMBLA_OK : embla_bound_look(bound);
}

/* Looks now and then while pieces of a text are made or read, which are no steps. */
EMBLA_CHECKED static inline embla_status embla_bound_piece(embla_bound *bound, size_t number)
{
    return (number + 1) % EMBLA_BOUND_PIECES != 0 ? EMBLA_OK : embla_bound_look(bound);
}

/* Counts bytes that the model reads. */
EMBLA_CHECKED static inline embla_status embla_bound_make(embla_bound *bound, uint64_t bytes)
{
    bound->made += bytes;
    return bound->made <= bound->most_bytes ? EMBLA_OK : embla_bound_large(bound);
}

#endif
