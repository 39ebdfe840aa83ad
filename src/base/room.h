/* SPDX-License-Identifier: Apache-2.0 */
/* One block of memory for many arrays that live and end together, where an arena would be too
 * many blocks: first each is given its place, then the block is taken. A zeroed room is empty.
 */
#ifndef EMBLA_BASE_ROOM_H
#define EMBLA_BASE_ROOM_H

#include "base/checked.h"

typedef struct {
    size_t bytes;
    bool over; /* more than there can be */
} embla_room;

/* The place of count things of size bytes, on a line of its own. */
static inline size_t embla_room_add(embla_room *room, size_t count, size_t size)
{
    enum { LINE = 64 };
    size_t at = room->bytes;
    uint64_t bytes;
    if (!embla_mul_ok(count, size, &bytes) || !embla_add_ok(bytes, at + LINE - 1, &bytes) ||
        !embla_size_ok(bytes, &room->bytes)) {
        room->over = true;
        return 0;
    }
    room->bytes = room->bytes / LINE * LINE;
    return at;
}

#endif
