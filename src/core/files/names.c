/* SPDX-License-Identifier: Apache-2.0 */
/* Sorting takes at most n log n comparisons for any names; equal names are ordered by number.
 *
 * Each item holds the first eight bytes of its name as an integer. A long list is first sorted
 * by these integers (a radix sort, one byte at a time); only names whose first eight bytes are
 * equal are then compared and merge-sorted. The C library's qsort is not used, because it
 * allocates memory outside base/mem.
 */
#include "files/names.h"

#include <string.h>

#include "base/checked.h"
#include "base/mem.h"

enum { MANY = 256 }; /* from this count the radix sort is faster */

typedef struct {
    uint64_t start; /* the first eight bytes, padded with zeros; the first byte is the highest */
    const embla_name *name;
} item;

static uint64_t start_of(const char *bytes, size_t length)
{
    uint64_t start = 0;
    for (size_t i = 0; i < 8; i++) start = start << 8 | (i < length ? (uint8_t)bytes[i] : 0);
    return start;
}

/* Compares as memcmp does; a name that is a prefix of another comes before it. */
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
        bool use_right = left == middle || (right < end && comes_after(&from[left], &from[right]));
        to[i] = from[use_right ? right++ : left++];
    }
}

/* Sorts items[0 .. count-1]; spare has space for as many. Returns items or spare, whichever holds
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

/* One pass of a radix sort, by the byte of start at shift; stable. Returns false, and moves
 * nothing, if that byte is the same in all items. */
static bool radix_pass(const item *from, item *to, size_t count, unsigned shift)
{
    size_t starts[256] = {0}, next = 0;
    for (size_t i = 0; i < count; i++) starts[from[i].start >> shift & 255]++;
    if (starts[from[0].start >> shift & 255] == count) return false;
    for (size_t i = 0; i < 256; i++) {
        size_t here = starts[i];
        starts[i] = next;
        next += here;
    }
    for (size_t i = 0; i < count; i++) to[starts[from[i].start >> shift & 255]++] = from[i];
    return true;
}

/* Sorts as merge_sort does, faster for a long list. */
static item *radix_sort(item *items, item *spare, size_t count)
{
    size_t end;
    for (unsigned shift = 0; shift < 64; shift += 8) {
        if (!radix_pass(items, spare, count, shift)) continue;
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
        return embla_fail(EMBLA_ERR_MEMORY, "out of memory for an index of %zu names", used);
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
    const item *result =
        used < MANY ? merge_sort(items, items + used, used) : radix_sort(items, items + used, used);
    out->sorted = sorted;
    out->count = used;
    for (size_t i = 0; i < used; i++) out->sorted[i] = result[i].name;
    embla_mem_free(space, bytes);
    return EMBLA_OK;
}

const embla_name *embla_names_find(const embla_names *names, const char *bytes, size_t length)
{
    size_t begin = 0, end = names->count; /* the name, if there is one, is in begin .. end */
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
