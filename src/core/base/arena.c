/* SPDX-License-Identifier: Apache-2.0 */
/* A chain of blocks. Each is at least twice as large as the previous one, up to a limit, so that a
 * small file needs one small block, and a large file a few large blocks. */
#include "base/arena.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"
#include "base/status.h"

enum { UNIT = 16, FIRST = 4096, MOST = 1 << 20 };

struct embla_arena_block {
    embla_arena_block *before;
    size_t size, used; /* bytes, including this header */
};

#define HEAD ((sizeof(embla_arena_block) + UNIT - 1) / UNIT * UNIT)

static embla_status new_block(embla_arena *arena, size_t bytes, const char *what)
{
    size_t size = arena->last ? arena->last->size : FIRST / 2;
    void *memory = NULL;
    size = size < MOST / 2 ? 2 * size : MOST;
    if (bytes > (size_t)PTRDIFF_MAX - HEAD)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes (%s)", bytes, what);
    if (size < bytes + HEAD) size = bytes + HEAD;
    EMBLA_TRY(embla_mem_new(size, what, &memory));
    embla_arena_block *block = memory;
    *block = (embla_arena_block){.before = arena->last, .size = size, .used = HEAD};
    arena->last = block;
    return EMBLA_OK;
}

embla_status embla_arena_take(embla_arena *arena, size_t bytes, const char *what, void **out)
{
    if (bytes > (size_t)PTRDIFF_MAX - UNIT)
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %zu bytes (%s)", bytes, what);
    bytes = (bytes + UNIT - 1) / UNIT * UNIT;
    if (!arena->last || bytes > arena->last->size - arena->last->used)
        EMBLA_TRY(new_block(arena, bytes, what));
    *out = (char *)arena->last + arena->last->used;
    arena->last->used += bytes;
    return EMBLA_OK;
}

embla_status embla_arena_many(embla_arena *arena, uint64_t count, size_t item_bytes,
                              const char *what, void *out)
{
    uint64_t all;
    size_t bytes;
    void *memory = NULL;
    if (!embla_mul_ok(count, item_bytes, &all) || !embla_size_ok(all, &bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for %" PRIu64 " times %zu bytes (%s)", count,
                          item_bytes, what);
    EMBLA_TRY(embla_arena_take(arena, bytes, what, &memory));
    memcpy(out, &memory, sizeof memory);
    return EMBLA_OK;
}

embla_status embla_arena_text(embla_arena *arena, const void *bytes, size_t length,
                              const char **out)
{
    void *copy = NULL;
    EMBLA_TRY(embla_arena_take(arena, length + 1, "a name", &copy));
    if (length > 0) memcpy(copy, bytes, length);
    *out = copy;
    return EMBLA_OK;
}

embla_status embla_arena_grow(embla_arena *arena, size_t item_bytes, size_t used, const char *what,
                              void **items, size_t *room)
{
    void *longer = NULL;
    size_t more = *room > 0 ? *room * 2 : 8;
    if (used < *room) return EMBLA_OK;
    EMBLA_TRY(embla_arena_many(arena, more, item_bytes, what, &longer));
    if (used > 0) memcpy(longer, *items, used * item_bytes);
    *items = longer;
    *room = more;
    return EMBLA_OK;
}

void embla_arena_free(embla_arena *arena)
{
    while (arena->last) {
        embla_arena_block *block = arena->last;
        arena->last = block->before;
        embla_mem_free(block, block->size);
    }
}
