/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the words of a text, and numbers the most frequent ones.
 *
 * The different words are in a hash table with open addressing. They are not copied: a word is its
 * place in the text. The seed of the hash is the checksum of the whole text, so nobody can write a
 * text whose words collide: each change of a word changes the seed. The order of the table has no
 * influence on tokens, which follow counts and bytes alone.
 */
#include <string.h>

#include "base/best.h"
#include "base/checked.h"
#include "base/checksum.h"
#include "base/hash.h"
#include "base/mem.h"
#include "corpus/corpus.h"
#include "unicode/cut.h"

typedef embla_counted_word counted;

struct embla_word_list {
    uint64_t seed;
    counted *words;
    size_t count, room;
    uint32_t *slots;   /* index of a word plus 1; 0 means empty */
    size_t slot_count; /* a power of two, at least twice as many as words */
    uint32_t unknown;  /* the token of all words that have none */
    embla_arena kept;  /* copies of words that are in no text */
};

enum { FIRST_ROOM = 1 << 12 };

/* ---- create, free, grow ---- */

/* Allocates space for `room` words and twice as many slots. */
static embla_status allocate(size_t room, counted **words, uint32_t **slots)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(room * sizeof **words, "the words of a text", &memory));
    *words = memory;
    embla_status status =
        embla_mem_new(2 * room * sizeof **slots, "an index of the words of a text", &memory);
    *slots = memory;
    if (status != EMBLA_OK) embla_mem_free(*words, room * sizeof **words);
    return status;
}

embla_status embla_word_list_new(const void *text, size_t bytes, embla_word_list **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_word_list), "a list of words", &memory));
    embla_word_list *list = memory;
    list->seed = embla_checksum_of(text, bytes).low;
    list->room = FIRST_ROOM;
    list->slot_count = 2 * list->room;
    embla_status status = allocate(list->room, &list->words, &list->slots);
    if (status != EMBLA_OK) {
        embla_mem_free(list, sizeof *list);
        return status;
    }
    *out = list;
    return EMBLA_OK;
}

static void free_arrays(embla_word_list *list)
{
    embla_mem_free(list->words, list->room * sizeof *list->words);
    embla_mem_free(list->slots, list->slot_count * sizeof *list->slots);
}

void embla_word_list_free(embla_word_list *list)
{
    if (!list) return;
    free_arrays(list);
    embla_arena_free(&list->kept);
    embla_mem_free(list, sizeof *list);
}

static uint64_t hash(const embla_word_list *list, const char *at, size_t length)
{
    uint64_t h = list->seed + length, piece;
    for (; length >= sizeof piece; at += sizeof piece, length -= sizeof piece) {
        memcpy(&piece, at, sizeof piece);
        h = embla_splitmix64(h ^ piece);
    }
    piece = 0;
    memcpy(&piece, at, length);
    return embla_splitmix64(h ^ piece);
}

/* The slot of a word, or the empty one where it would be. */
static size_t find_slot(const embla_word_list *list, const char *at, size_t length)
{
    size_t mask = list->slot_count - 1, slot = (size_t)hash(list, at, length) & mask;
    for (; list->slots[slot] != 0; slot = (slot + 1) & mask) {
        const counted *w = &list->words[list->slots[slot] - 1];
        if (w->length == length && memcmp(w->at, at, length) == 0) break;
    }
    return slot;
}

static embla_status grow(embla_word_list *list)
{
    embla_word_list larger = *list;
    if (list->room > UINT32_MAX / 4)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the text has more than %zu different words, the maximum", list->room);
    larger.room *= 2;
    larger.slot_count *= 2;
    EMBLA_TRY(allocate(larger.room, &larger.words, &larger.slots));
    memcpy(larger.words, list->words, list->count * sizeof *list->words);
    for (size_t i = 0; i < list->count; i++)
        larger.slots[find_slot(&larger, list->words[i].at, list->words[i].length)] =
            (uint32_t)(i + 1);
    free_arrays(list);
    *list = larger;
    return EMBLA_OK;
}

/* ---- counting ---- */

embla_status embla_word_list_add(embla_word_list *list, const char *at, size_t length,
                                 uint64_t times, bool copy, uint32_t *index)
{
    size_t slot = find_slot(list, at, length);
    if (list->slots[slot] == 0) {
        if (list->count == list->room) {
            EMBLA_TRY(grow(list));
            slot = find_slot(list, at, length);
        }
        if (copy) EMBLA_TRY(embla_arena_text(&list->kept, at, length, &at));
        list->words[list->count] = (counted){.at = at, .length = (uint32_t)length};
        list->slots[slot] = (uint32_t)++list->count;
    }
    list->words[list->slots[slot] - 1].count += times;
    if (index) *index = list->slots[slot] - 1;
    return EMBLA_OK;
}

embla_counted_word *embla_word_list_words(const embla_word_list *list, size_t *count)
{
    *count = list->count;
    return list->words;
}

embla_status embla_word_list_count(embla_word_list *list, const char *text, size_t length,
                                   uint64_t *count)
{
    const char *end = text + length, *at;
    for (size_t used; (used = embla_next_word(text, (size_t)(end - text), &at)) > 0;
         text = at + used) {
        if (used <= EMBLA_CORPUS_WORD_BYTES)
            EMBLA_TRY(embla_word_list_add(list, at, used, 1, false, NULL));
        ++*count;
    }
    return EMBLA_OK;
}

/* ---- numbering ---- */

/* The most frequent words, the most frequent first; of equally frequent ones the first in the order
 * of their bytes. A row of `best` is an index in `sorted`. */
static embla_status choose(const embla_word_list *list, size_t most, embla_arena *arena,
                           embla_names *sorted, embla_best *best)
{
    embla_name *names = NULL;
    EMBLA_TRY(embla_arena_many(arena, list->count, sizeof *names, "words", &names));
    for (size_t i = 0; i < list->count; i++)
        names[i] = (embla_name){list->words[i].at, list->words[i].length, (uint32_t)i};
    EMBLA_TRY(embla_names_sort(arena, names, list->count, sorted));
    best->room = most;
    EMBLA_TRY(embla_arena_many(arena, most, sizeof *best->items, "frequent words", &best->items));
    for (size_t i = 0; i < sorted->count; i++)
        embla_best_add(
            best, (embla_scored){(int64_t)i, (double)list->words[sorted->sorted[i]->number].count});
    embla_best_sort(best);
    return EMBLA_OK;
}

static embla_status copy_words(embla_word_list *list, embla_corpus *c, const embla_names *sorted,
                               const embla_best *best)
{
    embla_name *words = NULL;
    EMBLA_TRY(embla_arena_many(&c->arena, best->count, sizeof *words, "words", &words));
    for (size_t i = 0; i < best->count; i++) {
        const embla_name *chosen = sorted->sorted[best->items[i].row];
        words[i] = (embla_name){NULL, chosen->length, (uint32_t)i};
        EMBLA_TRY(embla_arena_text(&c->arena, chosen->bytes, chosen->length, &words[i].bytes));
        list->words[chosen->number].token = (uint32_t)i;
    }
    c->words = words;
    c->word_count = best->count;
    return embla_names_sort(&c->arena, words, best->count, &c->index);
}

embla_status embla_word_list_number(embla_word_list *list, const char *name, embla_corpus *c)
{
    size_t most = c->options.max_words > 0 ? (size_t)c->options.max_words : EMBLA_CORPUS_WORDS_MOST;
    embla_arena arena = {0};
    embla_names sorted = {0};
    embla_best best = {0};
    if (list->count == 0)
        return embla_fail(EMBLA_ERR_FORMAT, "%.256s has no word of at most %d bytes", name,
                          (int)EMBLA_CORPUS_WORD_BYTES);
    if (most > list->count) most = list->count;
    list->unknown = (uint32_t)most;
    for (size_t i = 0; i < list->count; i++) list->words[i].token = list->unknown;
    embla_status status = choose(list, most, &arena, &sorted, &best);
    if (status == EMBLA_OK) status = copy_words(list, c, &sorted, &best);
    embla_arena_free(&arena);
    return status;
}

uint32_t embla_word_list_token(const embla_word_list *list, const char *word, size_t length)
{
    uint32_t found =
        length > EMBLA_CORPUS_WORD_BYTES ? 0 : list->slots[find_slot(list, word, length)];
    return found > 0 ? list->words[found - 1].token : list->unknown;
}
