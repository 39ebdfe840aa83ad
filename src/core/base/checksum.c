/* SPDX-License-Identifier: Apache-2.0 */
/* xxHash, compiled from its header, so no library is needed at run time. */
#include "base/checksum.h"

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

embla_checksum embla_checksum_end(const embla_checksum_state *state)
{
    XXH128_hash_t hash = XXH3_128bits_digest((const XXH3_state_t *)(const void *)state->space);
    return (embla_checksum){.high = hash.high64, .low = hash.low64};
}
