/* SPDX-License-Identifier: Apache-2.0 */
/* The index of names: compared with a search from front to back over names that are short,
 * alike and full of zeros, because that is where a comparison goes wrong.
 */
#include "check.h"

#include "base/mem.h"
#include "files/names.h"

enum { MOST = 2000 };

typedef struct {
    embla_arena arena;
    embla_name list[MOST];
    char bytes[MOST * 32];
    size_t count, used;
    embla_names index;
} names;

static void add(names *n, const void *bytes, size_t length, uint32_t number)
{
    char *copy = n->bytes + n->used;
    if (length > 0) memcpy(copy, bytes, length);
    n->used += length;
    n->list[n->count++] = (embla_name){copy, (uint32_t)length, number};
}

static void sort(names *n)
{
    assert_ok(embla_names_sort(&n->arena, n->list, n->count, &n->index));
}

static void done(names *n)
{
    embla_arena_free(&n->arena);
    n->count = n->used = 0;
}

static int compare(const embla_name *a, const embla_name *b)
{
    size_t both = a->length < b->length ? a->length : b->length;
    int order = memcmp(a->bytes, b->bytes, both);
    if (order != 0) return order;
    if (a->length != b->length) return a->length < b->length ? -1 : 1;
    return (a->number > b->number) - (a->number < b->number);
}

/* The answers of a search from front to back. */
static const embla_name *first_of(const names *n, const embla_name *wanted)
{
    const embla_name *first = NULL;
    for (size_t i = 0; i < n->count; i++) {
        const embla_name *name = &n->list[i];
        if (!name->bytes || name->length != wanted->length ||
            memcmp(name->bytes, wanted->bytes, wanted->length) != 0)
            continue;
        if (!first || name->number < first->number) first = name;
    }
    return first;
}

static void check_all(const names *n)
{
    size_t there = 0, repeats = 0;
    for (size_t i = 0; i < n->count; i++) {
        if (!n->list[i].bytes) continue;
        there++;
        const embla_name *first = first_of(n, &n->list[i]);
        repeats += first != &n->list[i];
        assert_ptr_equal(embla_names_find(&n->index, n->list[i].bytes, n->list[i].length), first);
    }
    assert_int_equal(n->index.count, there);
    for (size_t i = 1; i < n->index.count; i++)
        assert_true(compare(n->index.sorted[i - 1], n->index.sorted[i]) < 0);
    assert_int_equal(embla_names_repeats(&n->index), repeats);
    assert_int_equal(embla_names_twice(&n->index) != NULL, repeats > 0);
}

static void random_names_are_found_as_by_a_search_from_front_to_back(void **state)
{
    static names n;
    uint64_t seed = 7;
    (void)state;
    for (size_t round = 0; round < 60; round++) {
        size_t count = round < 20 ? round : check_below(&seed, 400);
        size_t longest = 1 + check_below(&seed, 20), letters = 1 + check_below(&seed, 3);
        for (size_t i = 0; i < count; i++) {
            unsigned char word[32];
            size_t length = check_below(&seed, longest + 1);
            for (size_t j = 0; j < length; j++)
                word[j] =
                    (unsigned char)(check_below(&seed, 2) * 255 * check_below(&seed, letters));
            add(&n, word, length, (uint32_t)(count - i)); /* highest number first */
            if (check_below(&seed, 10) == 0) n.list[i].bytes = NULL;
        }
        sort(&n);
        check_all(&n);
        done(&n);
    }
}

static void names_that_differ_late_or_in_length_only_are_told_apart(void **state)
{
    static names n;
    static const struct {
        const char *bytes;
        size_t length;
    } all[] = {{"", 0},         {"\0", 1},         {"\0\0", 2},      {"a", 1},
               {"a\0", 2},      {"a\0\0", 3},      {"a\0b", 3},      {"ab", 2},
               {"abcdefgh", 8}, {"abcdefgh\0", 9}, {"abcdefghi", 9}, {"abcdefghij", 10},
               {"abcdefgz", 8}, {"\x7f", 1},       {"\x80", 1},      {"\xff", 1},
               {"\xff\xff", 2}};
    (void)state;
    for (size_t i = COUNT_OF(all); i-- > 0;) add(&n, all[i].bytes, all[i].length, (uint32_t)i);
    sort(&n);
    check_all(&n);
    for (size_t i = 0; i < COUNT_OF(all); i++) assert_int_equal(n.index.sorted[i]->number, i);
    assert_null(embla_names_find(&n.index, "b", 1));
    assert_null(embla_names_find(&n.index, "\xff\xff\xff", 3));
    assert_null(embla_names_find(&n.index, "abcdefg", 7));
    done(&n);
}

static void of_the_same_names_the_lowest_number_is_found(void **state)
{
    static names n;
    (void)state;
    add(&n, "x", 1, 9);
    add(&n, "x", 1, 3);
    add(&n, "y", 1, 0);
    add(&n, "x", 1, 5);
    sort(&n);
    assert_int_equal(embla_names_find(&n.index, "x", 1)->number, 3);
    assert_int_equal(embla_names_twice(&n.index)->number, 5);
    assert_int_equal(embla_names_repeats(&n.index), 2);
    done(&n);
}

static void no_names_are_no_error(void **state)
{
    static names n;
    (void)state;
    sort(&n);
    assert_int_equal(n.index.count, 0);
    assert_null(embla_names_find(&n.index, "x", 1));
    assert_null(embla_names_find(&n.index, NULL, 0));
    assert_null(embla_names_twice(&n.index));
    assert_int_equal(embla_names_repeats(&n.index), 0);
    n.list[0] = n.list[1] = (embla_name){0};
    n.count = 2; /* both without bytes */
    sort(&n);
    assert_int_equal(n.index.count, 0);
    done(&n);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    static names n;
    (void)state;
    for (uint32_t i = 0; i < MOST; i++) add(&n, &i, sizeof i, i);
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        for (size_t at = 1;; at++) {
            embla_names index = {NULL, 77};
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_names_sort(&n.arena, n.list, n.count, &index);
            embla_mem_fail(0, false);
            embla_arena_free(&n.arena);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            assert_null(index.sorted);
            assert_int_equal(index.count, 77);
            failures++;
        }
        assert_int_equal(failures, 2); /* the index, and the space to sort in */
    }
    done(&n);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(random_names_are_found_as_by_a_search_from_front_to_back),
        cmocka_unit_test(names_that_differ_late_or_in_length_only_are_told_apart),
        cmocka_unit_test(of_the_same_names_the_lowest_number_is_found),
        cmocka_unit_test(no_names_are_no_error),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
