/* SPDX-License-Identifier: Apache-2.0 */
/* The memory seam, and every public function that allocates behind it: its n-th
 * allocation fails, once or from then on, for n = 1, 2, .. until the call succeeds.
 * Each failure must give EMBLA_ERR_MEMORY, leak nothing and leave the output alone.
 */
#include "check.h"

#include <stdio.h>

#include "base/scratch.h"
#include "system/system_memory.h"

static const size_t HUGE_PAGE = (size_t)2 << 20;

/* ---- the seam ---- */

static void memory_is_zeroed_and_on_a_line(void **state)
{
    const size_t sizes[] = {
        0, 1, 63, 64, 65, 4096, HUGE_PAGE - 1, HUGE_PAGE, HUGE_PAGE + 1, 3 * HUGE_PAGE + 7};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        void *memory = NULL;
        size_t live = embla_mem_live();
        assert_ok(embla_mem_new(sizes[i], "a test", &memory));
        assert_int_equal(embla_mem_live(), live + 1);
        assert_int_equal((uintptr_t)memory % 64, 0);
        unsigned char *bytes = memory;
        if (embla_system_huge_page() && sizes[i] >= HUGE_PAGE)
            assert_int_equal((uintptr_t)memory % HUGE_PAGE, 0);
        for (size_t j = 0; j < sizes[i]; j += j < 8192 ? 1 : 1021) assert_int_equal(bytes[j], 0);
        if (sizes[i] > 0) memset(bytes, 0xff, sizes[i]);
        embla_mem_free(memory, sizes[i]);
        assert_int_equal(embla_mem_live(), live);
    }
}

static void items_that_do_not_fit_are_refused(void **state)
{
    void *memory = NULL;
    size_t live = embla_mem_live();
    (void)state;
    assert_status(embla_mem_many(SIZE_MAX / 8 + 2, 8, "a test", &memory), EMBLA_ERR_MEMORY);
    assert_status(embla_mem_many(UINT64_MAX, SIZE_MAX, "a test", &memory), EMBLA_ERR_MEMORY);
    assert_null(memory);
    assert_ok(embla_mem_many(3, 8, "a test", &memory));
    assert_int_equal(embla_mem_live(), live + 1);
    embla_mem_free(memory, 24);
}

static void memory_given_back_comes_zeroed_again(void **state)
{
    (void)state;
    for (int round = 0; round < 20; round++) {
        void *memory = NULL;
        assert_ok(embla_mem_new(1000, "a test", &memory));
        for (size_t j = 0; j < 1000; j++) assert_int_equal(((unsigned char *)memory)[j], 0);
        memset(memory, 0xff, 1000);
        embla_mem_free(memory, 1000);
    }
}

static void more_than_there_can_be_is_refused_with_its_size(void **state)
{
    const size_t sizes[] = {SIZE_MAX, (size_t)PTRDIFF_MAX + 1, (size_t)PTRDIFF_MAX,
                            (size_t)1 << 62};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(sizes); i++) {
        char number[32];
        void *memory = &number;
        size_t live = embla_mem_live();
        assert_status(embla_mem_new(sizes[i], "a giant", &memory), EMBLA_ERR_MEMORY);
        snprintf(number, sizeof number, "%zu", sizes[i]);
        assert_error_has(number);
        assert_error_has("a giant");
        assert_ptr_equal(memory, &number);
        assert_int_equal(embla_mem_live(), live);
    }
}

static void nothing_may_be_given_back(void **state)
{
    size_t live = embla_mem_live();
    (void)state;
    embla_mem_free(NULL, 100);
    embla_table_free(NULL);
    embla_rope_free(NULL);
    assert_int_equal(embla_mem_live(), live);
}

static void the_third_allocation_fails_once(void **state)
{
    void *memory[4] = {NULL};
    (void)state;
    embla_mem_fail(3, false);
    for (int i = 0; i < 4; i++)
        assert_status(embla_mem_new(10, "a test", &memory[i]),
                      i == 2 ? EMBLA_ERR_MEMORY : EMBLA_OK);
    for (int i = 0; i < 4; i++) embla_mem_free(memory[i], 10);
}

static void from_the_second_allocation_on_all_fail(void **state)
{
    void *memory[4] = {NULL};
    (void)state;
    embla_mem_fail(2, true);
    for (int i = 0; i < 4; i++)
        assert_status(embla_mem_new(10, "a test", &memory[i]), i > 0 ? EMBLA_ERR_MEMORY : EMBLA_OK);
    embla_mem_fail(0, false);
    assert_ok(embla_mem_new(10, "a test", &memory[1]));
    embla_mem_free(memory[0], 10);
    embla_mem_free(memory[1], 10);
}

/* ---- every function that allocates ---- */

/* *out as a table or a rope on the way in and on the way out, to see if it changes. */
static embla_status make_small_table(void **out)
{
    embla_table *table = *out;
    embla_status status = embla_table_new(EMBLA_F32, 5, 4, NULL, &table);
    *out = table;
    return status;
}

static embla_status make_large_table(void **out)
{
    embla_table *table = *out;
    embla_status status = embla_table_new(EMBLA_BF16, 4096, 1024, NULL, &table);
    *out = table;
    return status;
}

static embla_status make_view(void **out)
{
    static const float data[20];
    embla_table *table = *out;
    embla_status status =
        embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 5, .dim = 4}, data,
                         sizeof data, NULL, &table);
    *out = table;
    return status;
}

static embla_status make_rope(void **out)
{
    embla_rope *rope = *out;
    embla_status status = embla_rope_new(64, NULL, &rope);
    *out = rope;
    return status;
}

static embla_status make_cached_rope(void **out)
{
    embla_rope_options options = {.cached = 100};
    embla_rope *rope = *out;
    embla_status status = embla_rope_new(64, &options, &rope);
    *out = rope;
    return status;
}

static void free_table(void *table)
{
    embla_table_free(table);
}

static void free_rope(void *rope)
{
    embla_rope_free(rope);
}

static const struct {
    embla_status (*make)(void **out);
    void (*free)(void *made);
    size_t allocations;
} makers[] = {
    {make_small_table, free_table, 2}, {make_large_table, free_table, 2},
    {make_view, free_table, 1},        {make_rope, free_rope, 1},
    {make_cached_rope, free_rope, 1},
};

static void fail_each_allocation(bool forever)
{
    for (size_t i = 0; i < COUNT_OF(makers); i++) {
        size_t live = embla_mem_live(), n = 1;
        for (;; n++) {
            char untouched;
            void *made = &untouched;
            embla_mem_fail(n, forever);
            embla_status status = makers[i].make(&made);
            embla_mem_fail(0, false);
            if (status == EMBLA_OK) {
                makers[i].free(made);
                break;
            }
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_error_has("no memory");
            assert_ptr_equal(made, &untouched);
            assert_int_equal(embla_mem_live(), live);
            assert_ok(makers[i].make(&made)); /* a retry works */
            makers[i].free(made);
            assert_int_equal(embla_mem_live(), live);
        }
        assert_int_equal(n, makers[i].allocations + 1);
        assert_int_equal(embla_mem_live(), live);
    }
}

static void every_allocation_may_fail_once(void **state)
{
    (void)state;
    fail_each_allocation(false);
}

static void every_allocation_may_fail_from_then_on(void **state)
{
    (void)state;
    fail_each_allocation(true);
}

/* ---- those that must not allocate ---- */

static void work_on_tables_needs_no_memory(void **state)
{
    embla_table *table = check_table(EMBLA_Q8_0, 50, 64, 1);
    embla_rope *rope = NULL;
    int32_t tokens[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    int64_t rows[8] = {3, 1, 4, 1, 5, 9, 2, 6};
    static float out[8 * 64], pooled[64];
    (void)state;
    assert_ok(embla_rope_new(64, NULL, &rope));
    embla_mem_fail(1, true);
    embla_status all[] = {
        embla_table_init(table, NULL),
        embla_lookup(table, tokens, 8, NULL, out),
        embla_lookup_rows(table, rows, 8, NULL, out),
        embla_embed(table, tokens, 2, 4, &(embla_embed_options){.position_table = table}, out),
        embla_table_write(table, 0, 8, out),
        embla_pool(out, 1, 8, 64, NULL, pooled),
        embla_rope_apply(rope, rows, 8, 1, NULL, out),
        embla_sinusoid(0, 8, 64, 0.0, out),
    };
    embla_mem_fail(0, false);
    for (size_t i = 0; i < COUNT_OF(all); i++) assert_ok(all[i]);
    embla_table_free(table);
    embla_rope_free(rope);
}

static void no_memory_for_a_giant_table_is_a_status(void **state)
{
    embla_table *table = NULL;
    size_t live = embla_mem_live();
    (void)state;
    assert_status(embla_table_new(EMBLA_I8, INT64_C(1) << 40, (size_t)1 << 20, NULL, &table),
                  EMBLA_ERR_MEMORY);
    assert_error_has("1152921504606846976");
    assert_null(table);
    assert_int_equal(embla_mem_live(), live);
}

/* Kept memory is used again, grows, and serves one use at a time. */
static void scratch_is_kept_between_uses(void **state)
{
    embla_scratch kept = {0};
    embla_scratch_use outer = {0}, inner = {0};
    size_t live = embla_mem_live();
    (void)state;
    assert_ok(embla_scratch_begin(&kept, 100, "a use", &outer));
    void *first = outer.memory;
    assert_ok(embla_scratch_begin(&kept, 100, "a use inside", &inner));
    assert_true(inner.memory != first);
    embla_scratch_end(&inner);
    embla_scratch_end(&outer);
    assert_int_equal(embla_mem_live(), live + 1);
    embla_mem_fail(1, false); /* no memory is asked for */
    assert_ok(embla_scratch_begin(&kept, 60, "a smaller use", &outer));
    assert_true(outer.memory == first);
    embla_scratch_end(&outer);
    assert_status(embla_scratch_begin(&kept, 200, "a larger use", &outer), EMBLA_ERR_MEMORY);
    assert_int_equal(embla_mem_live(), live);
    assert_ok(embla_scratch_begin(&kept, 200, "a larger use", &outer));
    embla_scratch_end(&outer);
    embla_scratch_free(&kept);
    assert_ok(embla_scratch_begin(NULL, 10, "a use without an owner", &outer));
    embla_scratch_end(&outer);
    assert_int_equal(embla_mem_live(), live);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(memory_is_zeroed_and_on_a_line),
        cmocka_unit_test(items_that_do_not_fit_are_refused),
        cmocka_unit_test(memory_given_back_comes_zeroed_again),
        cmocka_unit_test(more_than_there_can_be_is_refused_with_its_size),
        cmocka_unit_test(nothing_may_be_given_back),
        cmocka_unit_test(the_third_allocation_fails_once),
        cmocka_unit_test(from_the_second_allocation_on_all_fail),
        cmocka_unit_test(every_allocation_may_fail_once),
        cmocka_unit_test(every_allocation_may_fail_from_then_on),
        cmocka_unit_test(work_on_tables_needs_no_memory),
        cmocka_unit_test(no_memory_for_a_giant_table_is_a_status),
        cmocka_unit_test(scratch_is_kept_between_uses),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
