/* SPDX-License-Identifier: Apache-2.0 */
/* Counts the words of a text (word_list.h), and numbers the most frequent ones. Tokens follow
 * counts and bytes alone. */
#include "base/best.h"
#include "corpus/corpus.h"
#include "unicode/cut.h"

/* ---- counting ---- */

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
    for (size_t i = 0; i < list->count; i++) list->words[i].token = (uint32_t)most;
    embla_status status = choose(list, most, &arena, &sorted, &best);
    if (status == EMBLA_OK) status = copy_words(list, c, &sorted, &best);
    embla_arena_free(&arena);
    return status;
}

uint32_t embla_word_list_token(const embla_word_list *list, const char *word, size_t length,
                               uint32_t unknown)
{
    if (length > EMBLA_CORPUS_WORD_BYTES) return unknown;
    const embla_word_key key = embla_word_key_of(word, length, list->seed);
    const embla_counted_word *found = embla_word_list_find(list, &key);
    return found ? found->token : unknown;
}
