/* SPDX-License-Identifier: Apache-2.0 */
/* Reads a little-endian file from front to back, never past its end.
 *
 * Every length is compared with the number of bytes left, which is a subtraction. A sum of offset
 * and length could overflow (rules C2, C6). Bytes are read with pread into a window in memory.
 * So a truncated file raises no signal, and a wrong length allocates no memory. If the map is of
 * a caller's bytes, those bytes are the window.
 */
#ifndef EMBLA_FILES_CURSOR_H
#define EMBLA_FILES_CURSOR_H

#include "files/map.h"

typedef struct {
    const embla_map *map;
    uint64_t at;           /* offset of the next byte in the file */
    const uint8_t *window; /* bytes first .. first + have - 1 of the file */
    uint64_t first, have;
    uint8_t *space; /* the window's memory, if the cursor owns it */
    size_t room;    /* bytes of space */
} embla_cursor;

/* Starts at an offset of map. Call embla_cursor_end afterwards, also after a failure. */
EMBLA_PRIVATE void embla_cursor_begin(embla_cursor *c, const embla_map *map, uint64_t offset);
EMBLA_PRIVATE void embla_cursor_end(embla_cursor *c);

/* The number of bytes between the cursor and the end of the file. */
static inline uint64_t embla_cursor_left(const embla_cursor *c)
{
    return c->map->size - c->at;
}

/* Reads the next count bytes, at most 64 MiB; they are contiguous and valid until the next call.
 * what names them in a message, e.g. "the name of tensor 3". EMBLA_ERR_FORMAT if fewer are left. */
EMBLA_CHECKED embla_status embla_cursor_bytes(embla_cursor *c, uint64_t count, const char *what,
                                              const uint8_t **out);
/* Skips count bytes without reading them. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_cursor_skip(embla_cursor *c, uint64_t count,
                                                           const char *what);
/* Reads up to count bytes, at most 64 MiB, without moving the cursor; for scanning text. *got is
 * smaller than count if the file ends before. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_cursor_peek(embla_cursor *c, uint64_t count,
                                                           const uint8_t **out, uint64_t *got);

/* Read the next 1, 4 or 8 bytes as a number. */
EMBLA_CHECKED embla_status embla_cursor_u8(embla_cursor *c, const char *what, uint8_t *out);
EMBLA_CHECKED embla_status embla_cursor_u32(embla_cursor *c, const char *what, uint32_t *out);
EMBLA_CHECKED embla_status embla_cursor_u64(embla_cursor *c, const char *what, uint64_t *out);
EMBLA_CHECKED embla_status embla_cursor_i32(embla_cursor *c, const char *what, int32_t *out);
EMBLA_CHECKED embla_status embla_cursor_i64(embla_cursor *c, const char *what, int64_t *out);

/* Little-endian numbers from and to bytes in memory. */
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
