/* SPDX-License-Identifier: Apache-2.0 */
/* Reading a file from front to back, in little-endian, never past its end.
 *
 * The test is always "more than is left", a subtraction, never a sum that could wrap
 * (rules C2, C6). Bytes come through a window of memory filled by pread, so that neither
 * a file cut short nor a length that lies can raise a signal or take memory; a map over
 * a caller's bytes is its own window.
 */
#ifndef EMBLA_FILES_CURSOR_H
#define EMBLA_FILES_CURSOR_H

#include "files/map.h"

typedef struct {
    const embla_map *map;
    uint64_t at;           /* offset in the file of the next byte */
    const uint8_t *window; /* bytes of the file, from offset first on */
    uint64_t first, have;
    uint8_t *space; /* what window points to, if it is ours */
    size_t room;
} embla_cursor;

/* At offset of map. Ends with embla_cursor_end, also after a failure. */
EMBLA_PRIVATE void embla_cursor_begin(embla_cursor *c, const embla_map *map, uint64_t offset);
EMBLA_PRIVATE void embla_cursor_end(embla_cursor *c);

/* Bytes from here to the end of the file. */
static inline uint64_t embla_cursor_left(const embla_cursor *c)
{
    return c->map->size - c->at;
}

/* The next count bytes, side by side, valid until the next call; at most 64 MiB. what
 * names them in the message: "the name of tensor 3". EMBLA_ERR_FORMAT if the file ends. */
EMBLA_CHECKED embla_status embla_cursor_bytes(embla_cursor *c, uint64_t count, const char *what,
                                              const uint8_t **out);
/* Passes over count bytes; they need not be read. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_cursor_skip(embla_cursor *c, uint64_t count,
                                                           const char *what);
/* Up to count bytes from here without moving: *got is less where the file ends. For
 * scanning text. count at most 64 MiB. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_cursor_peek(embla_cursor *c, uint64_t count,
                                                           const uint8_t **out, uint64_t *got);

/* The next 1, 2, 4, 8 bytes as a number. */
EMBLA_CHECKED embla_status embla_cursor_u8(embla_cursor *c, const char *what, uint8_t *out);
EMBLA_CHECKED embla_status embla_cursor_u32(embla_cursor *c, const char *what, uint32_t *out);
EMBLA_CHECKED embla_status embla_cursor_u64(embla_cursor *c, const char *what, uint64_t *out);
EMBLA_CHECKED embla_status embla_cursor_i32(embla_cursor *c, const char *what, int32_t *out);
EMBLA_CHECKED embla_status embla_cursor_i64(embla_cursor *c, const char *what, int64_t *out);

/* Little-endian numbers in bytes that are there. */
static inline uint16_t embla_le16(const uint8_t *p)
{
    return (uint16_t)(p[0] | p[1] << 8);
}

static inline uint32_t embla_le32(const uint8_t *p)
{
    return (uint32_t)p[0] | (uint32_t)p[1] << 8 | (uint32_t)p[2] << 16 | (uint32_t)p[3] << 24;
}

static inline uint64_t embla_le64(const uint8_t *p)
{
    return (uint64_t)embla_le32(p) | (uint64_t)embla_le32(p + 4) << 32;
}

static inline void embla_put_le32(uint32_t value, uint8_t out[4])
{
    for (int i = 0; i < 4; i++) out[i] = (uint8_t)(value >> (8 * i));
}

static inline void embla_put_le64(uint64_t value, uint8_t out[8])
{
    for (int i = 0; i < 8; i++) out[i] = (uint8_t)(value >> (8 * i));
}

#endif
