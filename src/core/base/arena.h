/* SPDX-License-Identifier: Apache-2.0 */
/* Memory for many small objects that are freed together, such as the names and lists of one file.
 * It is allocated through base/mem in blocks. A zeroed arena is empty. */
#ifndef EMBLA_BASE_ARENA_H
#define EMBLA_BASE_ARENA_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct embla_arena_block embla_arena_block;

typedef struct {
    embla_arena_block *last;
} embla_arena;

/* Allocates zeroed bytes, aligned to 16, valid until the arena is freed. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_take(embla_arena *arena, size_t bytes,
                                                          const char *what, void **out);
/* The same for count items of item_bytes each. out is the address of a pointer of any type. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_many(embla_arena *arena, uint64_t count,
                                                          size_t item_bytes, const char *what,
                                                          void *out);
/* Copies length bytes and appends a 0. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_text(embla_arena *arena, const void *bytes,
                                                          size_t length, const char **out);
EMBLA_PRIVATE void embla_arena_free(embla_arena *arena);

/* Makes room for one more item in a list, which doubles when it is full. *items and *room begin as
 * NULL and 0. Outgrown lists stay in the arena: together they are not larger than the current
 * list. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_arena_grow(embla_arena *arena, size_t item_bytes,
                                                          size_t used, const char *what,
                                                          void **items, size_t *room);

#endif
