/* SPDX-License-Identifier: Apache-2.0 */
/* A list of words: memory, growth and new words. Finding a word is inline (word_list.h). */
#include "corpus/word_list.h"

#include "base/mem.h"

enum {
    FIRST_ROOM = 1 << 12,
    PIECE = 1 << 14 /* bytes of copies that are allocated at a time */
};

/* Allocates space for `room` words and twice as many slots. */
static embla_status allocate(size_t room, embla_counted_word **words, embla_word_slot **slots)
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

embla_status embla_word_list_new(uint64_t seed, embla_word_list **out)
{
    void *memory = NULL;
    EMBLA_TRY(embla_mem_new(sizeof(embla_word_list), "a list of words", &memory));
    embla_word_list *list = memory;
    list->seed = seed;
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
    const size_t mask = larger.slot_count - 1;
    for (size_t i = 0; i < list->slot_count; i++) { /* in order, so memory is not read at random */
        if (list->slots[i].number == 0) continue;
        size_t at = list->slots[i].hash & mask;
        while (larger.slots[at].number != 0) at = (at + 1) & mask;
        larger.slots[at] = list->slots[i];
    }
    free_arrays(list);
    *list = larger;
    return EMBLA_OK;
}

/* Copies a word. Short words share a piece of memory without gaps. */
static embla_status keep_text(embla_word_list *list, const char **word, size_t length)
{
    void *memory = list->space;
    if (length > PIECE / 4) {
        EMBLA_TRY(embla_arena_take(&list->kept, length, "a word", &memory));
    } else {
        if (!list->space || list->left < length) {
            EMBLA_TRY(embla_arena_take(&list->kept, PIECE, "words", &memory));
            list->space = memory;
            list->left = PIECE;
        }
        list->space += length;
        list->left -= length;
    }
    memcpy(memory, *word, length);
    *word = memory;
    return EMBLA_OK;
}

embla_status embla_word_list_insert(embla_word_list *list, embla_word_slot *slot,
                                    const embla_word_key *key, uint64_t times, bool copy)
{
    const char *at = key->word;
    if (list->count == list->room) {
        EMBLA_TRY(grow(list));
        slot = embla_word_list_slot(list, key);
    }
    if (copy) EMBLA_TRY(keep_text(list, &at, key->length));
    list->words[list->count] = (embla_counted_word){
        .at = at, .first = key->first, .count = times, .length = (uint32_t)key->length};
    *slot = (embla_word_slot){key->hash, (uint32_t)++list->count};
    return EMBLA_OK;
}

embla_status embla_word_list_add(embla_word_list *list, const char *at, size_t length,
                                 uint64_t times, bool copy, uint32_t *index)
{
    const embla_word_key key = embla_word_key_of(at, length, list->seed);
    embla_word_slot *slot = embla_word_list_slot(list, &key);
    if (slot->number == 0) {
        EMBLA_TRY(embla_word_list_insert(list, slot, &key, times, copy));
        if (index) *index = (uint32_t)(list->count - 1);
        return EMBLA_OK;
    }
    list->words[slot->number - 1].count += times;
    if (index) *index = slot->number - 1;
    return EMBLA_OK;
}

embla_counted_word *embla_word_list_words(const embla_word_list *list, size_t *count)
{
    *count = list->count;
    return list->words;
}
