/* SPDX-License-Identifier: Apache-2.0 */
/* Chooses the words that get rows, and finds them again in the text. */
#include "wordvec/lexicon.h"

#include <math.h>
#include <string.h>

#include "base/mem.h"

/* ---- order ---- */

/* Whether a comes before b: more frequent, or equally frequent and first by bytes. */
static bool is_before(const embla_counted_word *a, const embla_counted_word *b)
{
    if (a->count != b->count) return a->count > b->count;
    int order = memcmp(a->at, b->at, a->length < b->length ? a->length : b->length);
    return order != 0 ? order < 0 : a->length < b->length;
}

/* Moves item `at` of a heap of n, whose last-placed word is on top, to its place. */
static void sift(const embla_counted_word **heap, size_t n, size_t at)
{
    for (size_t child; (child = 2 * at + 1) < n; at = child) {
        if (child + 1 < n && is_before(heap[child], heap[child + 1])) child++;
        if (!is_before(heap[at], heap[child])) return;
        const embla_counted_word *moved = heap[at];
        heap[at] = heap[child];
        heap[child] = moved;
    }
}

/* Heapsort: no memory, and never slow. */
static void sort(const embla_counted_word **list, size_t n)
{
    for (size_t i = n / 2; i-- > 0;) sift(list, n, i);
    while (n > 1) {
        const embla_counted_word *last = list[0];
        list[0] = list[--n];
        list[n] = last;
        sift(list, n, 0);
    }
}

/* ---- making ---- */

/* Copies the first `count` words of the list. */
static embla_status take_words(const embla_counted_word **list, embla_lexicon *l)
{
    uint64_t bytes = 0;
    char *text = NULL;
    size_t count = (size_t)l->count;
    for (size_t i = 0; i < count; i++) bytes += list[i]->length;
    EMBLA_TRY(embla_arena_many(&l->arena, bytes + 1, 1, "words", &text));
    EMBLA_TRY(embla_arena_many(&l->arena, count, sizeof *l->names, "words", &l->names));
    EMBLA_TRY(embla_arena_many(&l->arena, count, sizeof *l->counts, "counts", &l->counts));
    for (size_t i = 0; i < count; i++) {
        size_t length = list[i]->length;
        memcpy(text, list[i]->at, length);
        l->names[i] = (embla_name){text, (uint32_t)length, (uint32_t)i};
        l->counts[i] = (int64_t)list[i]->count;
        l->tokens += l->counts[i];
        text += length;
    }
    return EMBLA_OK;
}

static embla_status make_index(embla_lexicon *l, uint64_t seed)
{
    EMBLA_TRY(embla_word_list_new(seed, &l->index));
    for (int64_t i = 0; i < l->count; i++)
        EMBLA_TRY(embla_word_list_add(l->index, l->names[i].bytes, l->names[i].length,
                                      (uint64_t)l->counts[i], false, NULL));
    return EMBLA_OK;
}

/* A word of share f is kept with probability sqrt(s / f) + s / f, as word2vec does. Only operations
 * that are rounded exactly, so that every machine gets the same numbers. */
static embla_status make_keep(embla_lexicon *l, double sample)
{
    EMBLA_TRY(embla_arena_many(&l->arena, (uint64_t)l->count, sizeof *l->keep, "words", &l->keep));
    for (int64_t i = 0; i < l->count; i++) {
        double ratio = sample * (double)l->tokens / (double)l->counts[i];
        double kept = sample > 0 ? sqrt(ratio) + ratio : 1;
        l->keep[i] = kept < 1 ? (uint32_t)(kept * 0x1p32) : UINT32_MAX;
        l->kept += (double)l->counts[i] * (kept < 1 ? kept : 1);
    }
    return EMBLA_OK;
}

/* count^0.75 */
static double weight_of(int64_t count)
{
    double root = sqrt((double)count);
    return root * sqrt(root);
}

static embla_status make_draw(embla_lexicon *l)
{
    double all = 0, sum = 0;
    EMBLA_TRY(embla_arena_many(&l->arena, (uint64_t)l->count, sizeof *l->draw, "words", &l->draw));
    for (int64_t i = 0; i < l->count; i++) all += weight_of(l->counts[i]);
    for (int64_t i = 0; i < l->count; i++) {
        sum += weight_of(l->counts[i]);
        l->draw[i] = (uint64_t)(sum / all * 0x1p63);
    }
    l->draw[l->count - 1] = UINT64_C(1) << 63;
    return EMBLA_OK;
}

static embla_status make_all(const embla_word_list *words, int64_t least, int64_t most,
                             double sample, const embla_counted_word **list, embla_lexicon *l)
{
    size_t count = 0;
    for (size_t i = 0; i < words->count; i++)
        if ((int64_t)words->words[i].count >= least) list[count++] = &words->words[i];
    sort(list, count);
    l->count = most < (int64_t)count ? most : (int64_t)count;
    if (l->count == 0) return EMBLA_OK; /* the caller has the words for it */
    EMBLA_TRY(take_words(list, l));
    EMBLA_TRY(make_index(l, words->seed));
    EMBLA_TRY(make_keep(l, sample));
    return make_draw(l);
}

embla_status embla_lexicon_make(const embla_word_list *words, int64_t least, int64_t most,
                                double sample, embla_lexicon *out)
{
    void *list = NULL;
    size_t bytes = (words->count + 1) * sizeof(embla_counted_word *);
    *out = (embla_lexicon){0};
    EMBLA_TRY(embla_mem_new(bytes, "a list of words", &list));
    embla_status status = make_all(words, least, most, sample, list, out);
    embla_mem_free(list, bytes);
    if (status != EMBLA_OK) embla_lexicon_free(out);
    return status;
}

void embla_lexicon_free(embla_lexicon *lexicon)
{
    embla_word_list_free(lexicon->index);
    embla_arena_free(&lexicon->arena);
    *lexicon = (embla_lexicon){0};
}

/* ---- finding ---- */

int32_t embla_lexicon_find(const embla_lexicon *l, const uint8_t *word, size_t length)
{
    const embla_word_key key = embla_word_key_of(word, length, l->index->seed);
    const embla_counted_word *found = embla_word_list_find(l->index, &key);
    return found ? (int32_t)(found - l->index->words) : -1;
}

int32_t embla_lexicon_draw(const embla_lexicon *l, uint64_t random)
{
    uint64_t wanted = random >> 1;
    size_t low = 0, high = (size_t)l->count - 1;
    while (low < high) {
        size_t middle = low + (high - low) / 2;
        if (l->draw[middle] > wanted)
            high = middle;
        else
            low = middle + 1;
    }
    return (int32_t)low;
}
