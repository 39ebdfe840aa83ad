/* SPDX-License-Identifier: Apache-2.0 */
/* The different words of a text, each with its count. Corpora of words, tokenizers that are trained
 * and word vectors count with it.
 *
 * Words are in an array, in the order in which they were met first. A hash table with open
 * addressing finds them. A slot has the hash of its word, so other words are seldom read. An entry
 * has the first bytes of its word, so the text of a short word is not read.
 *
 * Whoever wrote the text must not know the seed of the hash, or they could make words collide. It
 * is a checksum of the whole text, or a number of this process. No result depends on it.
 */
#ifndef EMBLA_CORPUS_WORD_LIST_H
#define EMBLA_CORPUS_WORD_LIST_H

#include <stdbool.h>
#include <string.h>

#include "base/arena.h"
#include "base/byte_order.h"
#include "base/hash.h"
#include "base/status.h"

typedef struct {
    const char *at; /* its bytes */
    uint64_t first; /* its first 8 bytes; a shorter word is followed by zeros */
    uint64_t count;
    uint32_t length; /* bytes */
    uint32_t token;  /* for the owner of the list */
} embla_counted_word;

typedef struct {
    uint32_t hash;   /* of the word; its low bits say which slot comes first */
    uint32_t number; /* index of the word plus 1; 0 means that the slot is free */
} embla_word_slot;

typedef struct {
    uint64_t seed;
    embla_counted_word *words;
    size_t count, room;
    embla_word_slot *slots;
    size_t slot_count; /* a power of two, twice the room, at most 2^31 */
    embla_arena kept;  /* copies of words that are in no text */
    char *space;       /* what is left of its last piece */
    size_t left;
} embla_word_list;

/* A word to find or to count. */
typedef struct {
    const char *word;
    size_t length;
    uint64_t first;
    uint32_t hash;
} embla_word_key;

EMBLA_CHECKED embla_status embla_word_list_new(uint64_t seed, embla_word_list **out);
void embla_word_list_free(embla_word_list *list);
/* Counts one word `times` times. copy: `at` does not stay in memory. *index (may be NULL) is where
 * it is among the words. */
EMBLA_CHECKED embla_status embla_word_list_add(embla_word_list *list, const char *at, size_t length,
                                               uint64_t times, bool copy, uint32_t *index);
/* The words in the order in which they were met first. Valid until the next word is added. */
embla_counted_word *embla_word_list_words(const embla_word_list *list, size_t *count);
/* Adds a word that is not in the list. slot is embla_word_list_slot(list, key). */
EMBLA_CHECKED embla_status embla_word_list_insert(embla_word_list *list, embla_word_slot *slot,
                                                  const embla_word_key *key, uint64_t times,
                                                  bool copy);

/* ---- inline, for loops over the words of a text ---- */

/* The first 8 bytes of a word as a little-endian number; a shorter word is followed by zeros. */
static inline uint64_t embla_word_first(const char *p, size_t length)
{
    uint64_t first = 0;
    if (length >= 8) {
        memcpy(&first, p, 8);
        embla_order_turn(&first, sizeof first, 1);
    } else if (length >= 4) { /* the two halves overlap */
        uint32_t low, high;
        memcpy(&low, p, 4);
        memcpy(&high, p + length - 4, 4);
        embla_order_turn(&low, sizeof low, 1);
        embla_order_turn(&high, sizeof high, 1);
        first = low | (uint64_t)high << (8 * (length - 4));
    } else {
        for (size_t i = 0; i < length; i++) first |= (uint64_t)(uint8_t)p[i] << (8 * i);
    }
    return first;
}

/* first is embla_word_first(p, length). */
static inline uint32_t embla_word_hash(const char *p, size_t length, uint64_t first, uint64_t seed)
{
    uint64_t h = embla_mix64(seed ^ length * EMBLA_GOLDEN ^ first);
    for (size_t at = 8; at < length; at += 8)
        h = embla_mix64(h ^ embla_word_first(p + at, length - at));
    return (uint32_t)h;
}

static inline embla_word_key embla_word_key_of(const void *word, size_t length, uint64_t seed)
{
    const uint64_t first = embla_word_first(word, length);
    return (embla_word_key){word, length, first, embla_word_hash(word, length, first, seed)};
}

/* The slot of a word, or the free slot where it would be. */
static inline embla_word_slot *embla_word_list_slot(const embla_word_list *list,
                                                    const embla_word_key *key)
{
    const size_t mask = list->slot_count - 1;
    for (size_t at = key->hash & mask;; at = (at + 1) & mask) {
        embla_word_slot *slot = &list->slots[at];
        if (slot->number == 0) return slot;
        if (slot->hash != key->hash) continue;
        const embla_counted_word *w = &list->words[slot->number - 1];
        if (w->first == key->first && w->length == key->length &&
            (key->length <= 8 || memcmp(w->at + 8, key->word + 8, key->length - 8) == 0))
            return slot;
    }
}

/* The entry of a word, or NULL if the list does not have it. */
static inline embla_counted_word *embla_word_list_find(const embla_word_list *list,
                                                       const embla_word_key *key)
{
    const embla_word_slot *slot = embla_word_list_slot(list, key);
    return slot->number > 0 ? &list->words[slot->number - 1] : NULL;
}

/* Counts a word. */
EMBLA_CHECKED static inline embla_status embla_word_list_count_key(embla_word_list *list,
                                                                   const embla_word_key *key,
                                                                   uint64_t times, bool copy)
{
    embla_word_slot *slot = embla_word_list_slot(list, key);
    if (slot->number == 0) return embla_word_list_insert(list, slot, key, times, copy);
    list->words[slot->number - 1].count += times;
    return EMBLA_OK;
}

/* Begins to load the slot of a word that will be counted, and then its entry: memory is slow. */
static inline void embla_word_list_fetch_slot(const embla_word_list *list,
                                              const embla_word_key *key)
{
    __builtin_prefetch(&list->slots[key->hash & (list->slot_count - 1)], 1);
}

static inline void embla_word_list_fetch_word(const embla_word_list *list,
                                              const embla_word_key *key)
{
    const uint32_t number = list->slots[key->hash & (list->slot_count - 1)].number;
    __builtin_prefetch(&list->words[number > 0 ? number - 1 : list->count], 1);
}

#endif
