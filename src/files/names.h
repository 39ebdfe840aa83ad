/* SPDX-License-Identifier: Apache-2.0 */
/* Many names, found by binary search: tensors of a file, words of a vocabulary. Sorting
 * finds duplicates in O(n log n) without a hash that an adversary could flood (C8).
 */
#ifndef EMBLA_FILES_NAMES_H
#define EMBLA_FILES_NAMES_H

#include "base/arena.h"
#include "base/status.h"

typedef struct {
    const char *bytes; /* any bytes at all; need not end with 0 */
    uint32_t length;
    uint32_t number; /* the caller's: which tensor, which token */
} embla_name;

typedef struct {
    const embla_name **sorted; /* by bytes, then by number */
    size_t count;
} embla_names;

/* An index over names[0 .. count-1], which stay where they are. Entries whose bytes are
 * NULL are left out. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_names_sort(embla_arena *arena,
                                                          const embla_name *names, size_t count,
                                                          embla_names *out);
/* The first (lowest number) with these bytes; NULL if there is none. */
const embla_name *embla_names_find(const embla_names *names, const char *bytes, size_t length);
/* The second of two that are the same; NULL if all differ. */
const embla_name *embla_names_twice(const embla_names *names);
/* How many come after another with the same bytes. */
size_t embla_names_repeats(const embla_names *names);

#endif
