/* SPDX-License-Identifier: Apache-2.0 */
/* Many small things that live and end together: the names and lists of one file. All of
 * it passes through base/mem, a block at a time. A zeroed arena is an empty one.
 */
#ifndef EMBLA_BASE_ARENA_H
#define EMBLA_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct embla_arena_block embla_arena_block;

typedef struct {
    embla_arena_block *last;
} embla_arena;

/* bytes zero bytes, on a boundary of 16, until the arena is freed. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_take(embla_arena *arena, size_t bytes,
                                                          const char *what, void **out);
/* The same for count items of item_bytes each; out is the address of a pointer to them, of any
 * type. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_many(embla_arena *arena, uint64_t count,
                                                          size_t item_bytes, const char *what,
                                                          void *out);
/* A copy of length bytes, with a 0 after them. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_text(embla_arena *arena, const void *bytes,
                                                          size_t length, const char **out);
EMBLA_PRIVATE void embla_arena_free(embla_arena *arena);

/* A list that grows: doubles where it is full, so that *items has room for one more.
 * *items and *room begin as NULL and 0. What it outgrows stays in the arena: at most as
 * much again as the list itself. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_grow(embla_arena *arena, size_t item_bytes,
                                                          size_t used, const char *what,
                                                          void **items, size_t *room);

#endif
