/* SPDX-License-Identifier: Apache-2.0 */
/* A sorted index of names, searched by bisection: the tensors of a file, the words of a
 * vocabulary. Sorting finds duplicates in O(n log n). There is no hash table that a hostile file
 * could fill with collisions (C8).
 */
#ifndef EMBLA_FILES_NAMES_H
#define EMBLA_FILES_NAMES_H

#include "base/arena.h"
#include "base/status.h"

typedef struct {
    const char *bytes; /* any bytes; need not end with 0 */
    uint32_t length;
    uint32_t number; /* set by the caller: which tensor, which token */
} embla_name;

typedef struct {
    const embla_name **sorted; /* by bytes, then by number */
    size_t count;
} embla_names;

/* Makes an index of names[0 .. count-1]; the names must stay in memory. Names whose bytes are
 * NULL are left out. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_names_sort(embla_arena *arena,
                                                          const embla_name *names, size_t count,
                                                          embla_names *out);
/* Finds the name with these bytes, of several the one with the lowest number; NULL if there is
 * none. */
EMBLA_PRIVATE const embla_name *embla_names_find(const embla_names *names, const char *bytes,
                                                 size_t length);
/* Finds the second of two equal names; NULL if all differ. */
const embla_name *embla_names_twice(const embla_names *names);
/* Counts the names that repeat an earlier one. */
size_t embla_names_repeats(const embla_names *names);

#endif
