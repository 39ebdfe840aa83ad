/* SPDX-License-Identifier: Apache-2.0 */
/* What readers build their lists in, and what writers compare by: the arena and the
 * checksum.
 */
#include "base/arena.h"

#include "base/checksum.h"
#include "base/mem.h"
#include "check.h"

/* ---- arena ---- */

static void an_arena_gives_zeros_on_a_boundary_of_16(void **state)
{
    embla_arena arena = {0};
    size_t live = embla_mem_live();
    uint64_t random = 3;
    (void)state;
    for (int i = 0; i < 2000; i++) {
        size_t bytes = check_below(&random, i % 100 == 0 ? 100000 : 200);
        void *memory = NULL;
        assert_ok(embla_arena_take(&arena, bytes, "a test", &memory));
        assert_int_equal((uintptr_t)memory % 16, 0);
        for (size_t j = 0; j < bytes; j++) assert_int_equal(((unsigned char *)memory)[j], 0);
        memset(memory, 0xff, bytes);
    }
    assert_true(embla_mem_live() > live && embla_mem_live() < live + 40); /* few large blocks */
    embla_arena_free(&arena);
    embla_arena_free(&arena); /* an empty one */
    assert_int_equal(embla_mem_live(), live);
}

static void an_arena_that_cannot_grow_stays_as_it_was(void **state)
{
    embla_arena arena = {0};
    size_t live = embla_mem_live(), room = 0;
    void *memory = NULL, *items = NULL;
    const char *text = NULL;
    (void)state;
    assert_ok(embla_arena_text(&arena, "a\0b", 3, &text));
    assert_memory_equal(text, "a\0b", 4);
    embla_mem_fail(1, true);
    assert_status(embla_arena_take(&arena, 5000, "a test", &memory), EMBLA_ERR_MEMORY);
    assert_status(embla_arena_grow(&arena, 1000, 0, "a list", &items, &room), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_null(memory);
    assert_null(items);
    assert_int_equal(room, 0);
    assert_status(embla_arena_take(&arena, SIZE_MAX, "a giant", &memory), EMBLA_ERR_MEMORY);
    assert_status(embla_arena_take(&arena, (size_t)PTRDIFF_MAX - 16, "a giant", &memory),
                  EMBLA_ERR_MEMORY);
    assert_status(embla_arena_grow(&arena, SIZE_MAX / 2, 0, "a list", &items, &room),
                  EMBLA_ERR_MEMORY);
    assert_memory_equal(text, "a\0b", 4);
    embla_arena_free(&arena);
    assert_int_equal(embla_mem_live(), live);
}

static void many_items_are_zeros_or_there_is_no_memory_for_them(void **state)
{
    embla_arena arena = {0};
    uint64_t *items = NULL, *none = NULL, *same = NULL;
    (void)state;
    assert_ok(embla_arena_many(&arena, 1000, sizeof *items, "a test", &items));
    assert_int_equal((uintptr_t)items % 16, 0);
    for (size_t i = 0; i < 1000; i++) assert_int_equal(items[i], 0);
    assert_ok(embla_arena_many(&arena, 0, sizeof *none, "a test", &none));
    assert_non_null(none);
    /* 2^64 bytes and 8, which 64 bits would take for 8; more than an object can have; more
     * than there is. */
    assert_status(embla_arena_many(&arena, (UINT64_C(1) << 61) + 1, 8, "a giant", &same),
                  EMBLA_ERR_MEMORY);
    assert_error_has("2305843009213693953 times 8 bytes (a giant)");
    assert_status(embla_arena_many(&arena, UINT64_C(1) << 60, 8, "a giant", &same),
                  EMBLA_ERR_MEMORY);
    embla_mem_fail(1, true);
    assert_status(embla_arena_many(&arena, 5000, 8, "a test", &same), EMBLA_ERR_MEMORY);
    embla_mem_fail(0, false);
    assert_null(same);
    embla_arena_free(&arena);
}

static void a_list_in_an_arena_keeps_what_it_has(void **state)
{
    embla_arena arena = {0};
    void *items = NULL;
    size_t room = 0;
    (void)state;
    for (uint32_t i = 0; i < 5000; i++) {
        assert_ok(embla_arena_grow(&arena, sizeof i, i, "a list", &items, &room));
        assert_true(room > i);
        ((uint32_t *)items)[i] = i * 3;
    }
    for (uint32_t i = 0; i < 5000; i++) assert_int_equal(((uint32_t *)items)[i], i * 3);
    embla_arena_free(&arena);
}

/* ---- checksum ---- */

/* The first is what the xxHash project publishes for no bytes; the others were made by its
 * shared library, all at once, of the bytes (i * 7 + 3) & 255. */
static void checksums_are_xxhashs(void **state)
{
    static const struct {
        size_t count;
        uint64_t high, low;
    } known[] = {
        {0, UINT64_C(0x99aa06d3014798d8), UINT64_C(0x6001c324468d497f)},
        {1, UINT64_C(0x22bbb76b211a39ba), UINT64_C(0x13e608bc156defed)},
        {3, UINT64_C(0xce31763cbf8245a5), UINT64_C(0xa9088dda485b481c)},
        {4, UINT64_C(0x47197970590746b1), UINT64_C(0x788a609154b0fe20)},
        {8, UINT64_C(0xe3bc8a5f46171555), UINT64_C(0x3cd024e3d63a1588)},
        {9, UINT64_C(0xc72c88247a9a56d7), UINT64_C(0xeafab1c7f123109f)},
        {16, UINT64_C(0xce0b9647ab24f884), UINT64_C(0x60d75c5e47d40a24)},
        {17, UINT64_C(0xbfd327edcc2fbd12), UINT64_C(0xeeed7654312a26d7)},
        {128, UINT64_C(0x1b1962a096bac78b), UINT64_C(0xc580008b6c92ac53)},
        {129, UINT64_C(0x293e4968c4619023), UINT64_C(0xbd91ce7ace4d385b)},
        {240, UINT64_C(0xad46c1021b076bc7), UINT64_C(0x04e0b5f034bee80b)},
        {241, UINT64_C(0xac6c3492c3d6b45d), UINT64_C(0x8beadd3a8874fe17)},
        {1024, UINT64_C(0x18bc0eaca9a33636), UINT64_C(0x9b81661c641c72b1)},
        {5000, UINT64_C(0xc98ae385d09887cc), UINT64_C(0x799aaddd7339581d)},
    };
    static unsigned char bytes[5000];
    (void)state;
    for (size_t i = 0; i < sizeof bytes; i++) bytes[i] = (unsigned char)(i * 7 + 3);
    for (size_t k = 0; k < COUNT_OF(known); k++) {
        for (size_t piece = 1; piece <= 5000; piece = piece * 3 + 1) {
            embla_checksum_state sum;
            embla_checksum_begin(&sum);
            for (size_t at = 0; at < known[k].count; at += piece)
                embla_checksum_add(&sum, bytes + at,
                                   piece < known[k].count - at ? piece : known[k].count - at);
            embla_checksum found = embla_checksum_end(&sum);
            assert_true(found.high == known[k].high && found.low == known[k].low);
        }
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(an_arena_gives_zeros_on_a_boundary_of_16),
        cmocka_unit_test(an_arena_that_cannot_grow_stays_as_it_was),
        cmocka_unit_test(many_items_are_zeros_or_there_is_no_memory_for_them),
        cmocka_unit_test(a_list_in_an_arena_keeps_what_it_has),
        cmocka_unit_test(checksums_are_xxhashs),
    };
    return cmocka_run_group_tests_name("arena", tests, NULL, NULL);
}
