/* SPDX-License-Identifier: Apache-2.0 */
/* xxHash, compiled from its header, so no library is needed at run time. */
#include "base/checksum.h"

#include <string.h>

#include "base/byte_order.h"

#define XXH_INLINE_ALL
#include <xxhash.h>

_Static_assert(sizeof(XXH3_state_t) <= sizeof(embla_checksum_state), "room for xxHash's state");
_Static_assert(_Alignof(XXH3_state_t) <= _Alignof(embla_checksum_state), "its boundary");

void embla_checksum_begin(embla_checksum_state *state)
{
    (void)XXH3_128bits_reset((XXH3_state_t *)(void *)state->space);
}

void embla_checksum_add(embla_checksum_state *state, const void *bytes, size_t count)
{
    (void)XXH3_128bits_update((XXH3_state_t *)(void *)state->space, bytes, count);
}

void embla_checksum_numbers(embla_checksum_state *state, const void *numbers, size_t size,
                            size_t count)
{
    const unsigned char *from = numbers;
    if (!embla_order_is_big()) {
        embla_checksum_add(state, numbers, size * count);
        return;
    }
    for (size_t i = 0; i < count; i++, from += size) {
        unsigned char number[8];
        memcpy(number, from, size);
        embla_order_turn(number, size, 1);
        embla_checksum_add(state, number, size);
    }
}

embla_checksum embla_checksum_end(const embla_checksum_state *state)
{
    XXH128_hash_t hash = XXH3_128bits_digest((const XXH3_state_t *)(const void *)state->space);
    return (embla_checksum){.high = hash.high64, .low = hash.low64};
}
