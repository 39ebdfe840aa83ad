/* SPDX-License-Identifier: Apache-2.0 */
/* Strings and the numbers they stand for, as a tree with one edge for each byte: the strings of a
 * vocabulary that a text begins with are found in one pass.
 *
 * It is a double array (Aoe 1989): the child of state s for byte c is cell base[s] + c, if the
 * check of that cell is s. No string of a hostile file makes a search slow.
 */
#ifndef EMBLA_TOKENIZER_TRIE_H
#define EMBLA_TOKENIZER_TRIE_H

#include "base/status.h"

typedef struct {
    uint32_t base;  /* cell of the child for byte 0; EMBLA_TRIE_ENDS is set if a string ends here */
    uint32_t check; /* the parent; EMBLA_TRIE_FREE for a free cell and for the root */
} embla_trie_cell;

#define EMBLA_TRIE_FREE UINT32_MAX
#define EMBLA_TRIE_ENDS (UINT32_C(1) << 31)

typedef struct {
    embla_trie_cell *cells; /* cell 0 is the root */
    int32_t *values;        /* of the cells where a string ends */
    size_t count;           /* a base plus 255 is always below it */
} embla_trie;

typedef struct {
    const char *bytes;
    uint32_t length;
    int32_t value; /* 0 or more */
} embla_trie_key;

/* Builds a trie. The keys are sorted here; of equal ones the last counts. Empty ones are left
 * out. */
EMBLA_PRIVATE EMBLA_CHECKED embla_status embla_trie_build(embla_trie *trie, embla_trie_key *keys,
                                                          size_t count);
EMBLA_PRIVATE void embla_trie_free(embla_trie *trie);

/* Follows the edge for byte c; returns false, with *state unchanged, if there is none. */
static inline bool embla_trie_step(const embla_trie *trie, uint32_t *state, uint8_t c)
{
    uint32_t next = (trie->cells[*state].base & ~EMBLA_TRIE_ENDS) + c;
    if (trie->cells[next].check != *state) return false;
    *state = next;
    return true;
}

/* The value of the string that ends at a state; -1 if none does. */
static inline int32_t embla_trie_value(const embla_trie *trie, uint32_t state)
{
    return trie->cells[state].base & EMBLA_TRIE_ENDS ? trie->values[state] : -1;
}

/* Follows the edges of a string from a state; the value at its end, -1 if it is not in the trie. */
static inline int32_t embla_trie_find(const embla_trie *trie, uint32_t state, const char *bytes,
                                      size_t length)
{
    for (size_t i = 0; i < length; i++)
        if (!embla_trie_step(trie, &state, (uint8_t)bytes[i])) return -1;
    return embla_trie_value(trie, state);
}

#endif
