/* SPDX-License-Identifier: Apache-2.0 */
/* The window of a cursor has 64 KiB. It is larger only if one piece is larger, and never larger
 * than the file.
 */
#include "files/cursor.h"

#include <string.h>

#include "base/mem.h"

#define WINDOW    ((uint64_t)64 << 10)
#define MOST_ONCE ((uint64_t)64 << 20)

void embla_cursor_begin(embla_cursor *c, const embla_map *map, uint64_t offset)
{
    *c = (embla_cursor){.map = map, .at = offset < map->size ? offset : map->size};
    if (map->file >= 0) return;
    c->window = map->bytes; /* a caller's bytes cannot be truncated */
    c->have = map->size;
}

void embla_cursor_end(embla_cursor *c)
{
    embla_mem_free(c->space, c->room);
    c->space = NULL;
    c->room = 0;
}

/* Reads the file so that the window has the next count bytes; the caller has checked that the
 * file has them. */
static embla_status fill(embla_cursor *c, uint64_t count)
{
    uint64_t left = embla_cursor_left(c), wanted = count < WINDOW ? WINDOW : count;
    if (c->at >= c->first && c->at - c->first <= c->have && count <= c->have - (c->at - c->first))
        return EMBLA_OK;
    if (wanted > left) wanted = left;
    if (wanted > c->room) {
        void *memory = NULL;
        embla_cursor_end(c);
        c->window = NULL;
        c->have = 0;
        EMBLA_TRY(embla_mem_new((size_t)wanted, "a part of a file", &memory));
        c->space = memory;
        c->room = (size_t)wanted;
    }
    c->have = 0;
    EMBLA_TRY(embla_map_read(c->map, c->at, (size_t)wanted, c->space));
    c->window = c->space;
    c->first = c->at;
    c->have = wanted;
    return EMBLA_OK;
}

/* The next byte in the window. There may be no window if nothing has been read. */
static const uint8_t *here(const embla_cursor *c)
{
    return c->window ? c->window + (c->at - c->first) : (const uint8_t *)"";
}

static embla_status too_far(const embla_cursor *c, uint64_t count, const char *what)
{
    return embla_fail(EMBLA_ERR_FORMAT,
                      "%.256s: %.128s at byte %" PRIu64 " needs %" PRIu64
                      " bytes, but only %" PRIu64 " are left (C2)",
                      c->map->name, what, c->at, count, embla_cursor_left(c));
}

embla_status embla_cursor_bytes(embla_cursor *c, uint64_t count, const char *what,
                                const uint8_t **out)
{
    if (count > embla_cursor_left(c)) return too_far(c, count, what);
    if (count > MOST_ONCE)
        return embla_fail(EMBLA_ERR_FORMAT,
                          "%.256s: %.128s at byte %" PRIu64 " has %" PRIu64
                          " bytes; the limit is %" PRIu64 " (C5)",
                          c->map->name, what, c->at, count, MOST_ONCE);
    EMBLA_TRY(fill(c, count));
    *out = here(c);
    c->at += count;
    return EMBLA_OK;
}

embla_status embla_cursor_skip(embla_cursor *c, uint64_t count, const char *what)
{
    if (count > embla_cursor_left(c)) return too_far(c, count, what);
    c->at += count;
    return EMBLA_OK;
}

embla_status embla_cursor_peek(embla_cursor *c, uint64_t count, const uint8_t **out, uint64_t *got)
{
    uint64_t left = embla_cursor_left(c);
    if (count > left) count = left;
    if (count > MOST_ONCE) count = MOST_ONCE;
    EMBLA_TRY(fill(c, count));
    *out = here(c);
    *got = count;
    return EMBLA_OK;
}

embla_status embla_cursor_u8(embla_cursor *c, const char *what, uint8_t *out)
{
    const uint8_t *p;
    EMBLA_TRY(embla_cursor_bytes(c, 1, what, &p));
    *out = *p;
    return EMBLA_OK;
}

embla_status embla_cursor_u32(embla_cursor *c, const char *what, uint32_t *out)
{
    const uint8_t *p;
    EMBLA_TRY(embla_cursor_bytes(c, 4, what, &p));
    *out = embla_le32(p);
    return EMBLA_OK;
}

embla_status embla_cursor_u64(embla_cursor *c, const char *what, uint64_t *out)
{
    const uint8_t *p;
    EMBLA_TRY(embla_cursor_bytes(c, 8, what, &p));
    *out = embla_le64(p);
    return EMBLA_OK;
}

embla_status embla_cursor_i32(embla_cursor *c, const char *what, int32_t *out)
{
    uint32_t value;
    EMBLA_TRY(embla_cursor_u32(c, what, &value));
    memcpy(out, &value, sizeof *out);
    return EMBLA_OK;
}

embla_status embla_cursor_i64(embla_cursor *c, const char *what, int64_t *out)
{
    uint64_t value;
    EMBLA_TRY(embla_cursor_u64(c, what, &value));
    memcpy(out, &value, sizeof *out);
    return EMBLA_OK;
}
