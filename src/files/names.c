/* SPDX-License-Identifier: Apache-2.0 */
/* Sorted in at most n log n comparisons whatever the names are; names that are the same stay
 * in the order of their numbers. The first eight bytes of a name travel with its pointer, as
 * a number: many names are dealt out by it, a byte at a time, and only those that begin alike
 * are compared and merged. The C library's qsort would do, but it takes memory behind the
 * back of base/mem.
 */
#include "files/names.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { MANY = 256 }; /* from here on dealing out is faster */

typedef struct {
    uint64_t start; /* the first eight bytes, zeros where there are fewer, first byte highest */
    const embla_name *name;
} item;

static uint64_t start_of(const char *bytes, size_t length)
{
    uint64_t start = 0;
    for (size_t i = 0; i < 8; i++) start = start << 8 | (i < length ? (uint8_t)bytes[i] : 0);
    return start;
}

/* Below, at or above zero, as memcmp does; a name that is the beginning of another comes
 * before it. */
static int compare_bytes(const char *a, size_t a_length, const char *b, size_t b_length)
{
    size_t both = a_length < b_length ? a_length : b_length;
    int order = both > 0 ? memcmp(a, b, both) : 0;
    return order != 0 ? order : (a_length > b_length) - (a_length < b_length);
}

static bool comes_after(const item *a, const item *b)
{
    if (a->start != b->start) return a->start > b->start;
    int order = compare_bytes(a->name->bytes, a->name->length, b->name->bytes, b->name->length);
    return order != 0 ? order > 0 : a->name->number > b->name->number;
}

static void merge(const item *from, size_t begin, size_t middle, size_t end, item *to)
{
    size_t left = begin, right = middle;
    for (size_t i = begin; i < end; i++) {
        bool take_right = left == middle || (right < end && comes_after(&from[left], &from[right]));
        to[i] = from[take_right ? right++ : left++];
    }
}

/* Sorts items[0 .. count-1]; spare has room for as many. Returns which of the two holds
 * the result. */
static item *merge_sort(item *items, item *spare, size_t count)
{
    for (size_t width = 1; width < count; width *= 2) {
        for (size_t begin = 0; begin < count; begin += 2 * width) {
            size_t middle = count - begin > width ? begin + width : count;
            size_t end = count - begin > 2 * width ? begin + 2 * width : count;
            merge(items, begin, middle, end, spare);
        }
        item *swap = items;
        items = spare;
        spare = swap;
    }
    return items;
}

/* By the byte of start at shift; items that have the same keep their order. False if all have
 * the same: nothing was moved. */
static bool deal(const item *from, item *to, size_t count, unsigned shift)
{
    size_t places[256] = {0}, place = 0;
    for (size_t i = 0; i < count; i++) places[from[i].start >> shift & 255]++;
    if (places[from[0].start >> shift & 255] == count) return false;
    for (size_t i = 0; i < 256; i++) {
        size_t here = places[i];
        places[i] = place;
        place += here;
    }
    for (size_t i = 0; i < count; i++) to[places[from[i].start >> shift & 255]++] = from[i];
    return true;
}

/* As merge_sort, for many. */
static item *deal_and_merge(item *items, item *spare, size_t count)
{
    size_t end;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!deal(items, spare, count, shift)) continue;
        item *swap = items;
        items = spare;
        spare = swap;
    }
    for (size_t begin = 0; begin < count; begin = end) {
        for (end = begin + 1; end < count && items[end].start == items[begin].start;) end++;
        const item *sorted = merge_sort(items + begin, spare + begin, end - begin);
        if (sorted != items + begin) memcpy(items + begin, sorted, (end - begin) * sizeof *items);
    }
    return items;
}

embla_status embla_names_sort(embla_arena *arena, const embla_name *names, size_t count,
                              embla_names *out)
{
    size_t used = 0, bytes = 0, next = 0;
    void *sorted = NULL, *space = NULL;
    for (size_t i = 0; i < count; i++) used += names[i].bytes != NULL;
    if (!embla_span_ok(used, 2 * sizeof(item), 2 * sizeof(item), &bytes))
        return embla_fail(EMBLA_ERR_MEMORY, "no memory for an index of %zu names", used);
    if (used == 0) {
        *out = (embla_names){0};
        return EMBLA_OK;
    }
    EMBLA_TRY(embla_arena_many(arena, used, sizeof(embla_name *), "an index of names", &sorted));
    EMBLA_TRY(embla_mem_new(bytes, "sorting names", &space));
    item *items = space;
    for (size_t i = 0; i < count; i++)
        if (names[i].bytes)
            items[next++] = (item){start_of(names[i].bytes, names[i].length), &names[i]};
    const item *result = used < MANY ? merge_sort(items, items + used, used)
                                     : deal_and_merge(items, items + used, used);
    out->sorted = sorted;
    out->count = used;
    for (size_t i = 0; i < used; i++) out->sorted[i] = result[i].name;
    embla_mem_free(space, bytes);
    return EMBLA_OK;
}

const embla_name *embla_names_find(const embla_names *names, const char *bytes, size_t length)
{
    size_t begin = 0, end = names->count; /* the answer, if any, is at begin .. end */
    while (begin < end) {
        size_t middle = begin + (end - begin) / 2;
        const embla_name *name = names->sorted[middle];
        if (compare_bytes(name->bytes, name->length, bytes, length) < 0)
            begin = middle + 1;
        else
            end = middle;
    }
    if (begin == names->count) return NULL;
    const embla_name *name = names->sorted[begin];
    return compare_bytes(name->bytes, name->length, bytes, length) == 0 ? name : NULL;
}

static bool same(const embla_name *a, const embla_name *b)
{
    return a->length == b->length && compare_bytes(a->bytes, a->length, b->bytes, b->length) == 0;
}

const embla_name *embla_names_twice(const embla_names *names)
{
    for (size_t i = 1; i < names->count; i++)
        if (same(names->sorted[i - 1], names->sorted[i])) return names->sorted[i];
    return NULL;
}

size_t embla_names_repeats(const embla_names *names)
{
    size_t repeats = 0;
    for (size_t i = 1; i < names->count; i++)
        repeats += same(names->sorted[i - 1], names->sorted[i]);
    return repeats;
}
