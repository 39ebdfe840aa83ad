/* SPDX-License-Identifier: Apache-2.0 */
/* XXH3-128 of bytes, at once or in pieces: to detect whether data was damaged. Not secure against
 * an attacker. */
#ifndef EMBLA_BASE_CHECKSUM_H
#define EMBLA_BASE_CHECKSUM_H

#include <stddef.h>
#include <stdint.h>

#include "base/status.h"

typedef struct {
    uint64_t high, low;
} embla_checksum;

typedef struct {
    _Alignas(64) unsigned char space[640];
} embla_checksum_state;

EMBLA_PRIVATE void embla_checksum_begin(embla_checksum_state *state);
EMBLA_PRIVATE void embla_checksum_add(embla_checksum_state *state, const void *bytes, size_t count);
/* Adds `count` numbers of `size` bytes (1 to 8) as little-endian ones, on every machine. */
EMBLA_PRIVATE void embla_checksum_numbers(embla_checksum_state *state, const void *numbers,
                                          size_t size, size_t count);
EMBLA_PRIVATE embla_checksum embla_checksum_end(const embla_checksum_state *state);
/* All at once. */
static inline embla_checksum embla_checksum_of(const void *bytes, size_t count)
{
    embla_checksum_state state;
    embla_checksum_begin(&state);
    embla_checksum_add(&state, bytes, count);
    return embla_checksum_end(&state);
}

#endif
