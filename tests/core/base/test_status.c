/* SPDX-License-Identifier: Apache-2.0 */
/* The message per thread and the names of statuses. */
#include "check.h"

#include <pthread.h>
#include <stdio.h>

#include "base/status.h"

static void failing_keeps_the_sentence_and_returns_the_status(void **state)
{
    (void)state;
    assert_status(embla_fail(EMBLA_ERR_RANGE, "row %d of %d", 7, 5), EMBLA_ERR_RANGE);
    assert_string_equal(embla_error(), "row 7 of 5");
}

static void a_later_failure_replaces_the_sentence(void **state)
{
    (void)state;
    assert_status(embla_fail(EMBLA_ERR_RANGE, "a long first sentence"), EMBLA_ERR_RANGE);
    assert_status(embla_fail(EMBLA_ERR_IO, "second"), EMBLA_ERR_IO);
    assert_string_equal(embla_error(), "second");
}

static void a_sentence_that_is_too_long_is_cut(void **state)
{
    char text[2000];
    (void)state;
    memset(text, 'x', sizeof text - 1);
    text[sizeof text - 1] = '\0';
    assert_status(embla_fail(EMBLA_ERR_FORMAT, "%s", text), EMBLA_ERR_FORMAT);
    size_t length = strlen(embla_error());
    assert_true(length >= 255 && length < sizeof text - 1);
    assert_memory_equal(embla_error(), text, length);
}

/* Says what it found at the start, then fails with a sentence of its own. */
static void *other_thread(void *found)
{
    *(bool *)found = embla_error()[0] == '\0';
    if (embla_fail(EMBLA_ERR_IO, "from the other thread") != EMBLA_ERR_IO) *(bool *)found = false;
    if (strcmp(embla_error(), "from the other thread") != 0) *(bool *)found = false;
    return NULL;
}

static void each_thread_has_its_own_sentence(void **state)
{
    pthread_t thread;
    bool other_was_right = false;
    (void)state;
    assert_status(embla_fail(EMBLA_ERR_RANGE, "from this thread"), EMBLA_ERR_RANGE);
    assert_int_equal(pthread_create(&thread, NULL, other_thread, &other_was_right), 0);
    assert_int_equal(pthread_join(thread, NULL), 0);
    assert_true(other_was_right);
    assert_string_equal(embla_error(), "from this thread");
}

static void success_leaves_the_sentence_alone(void **state)
{
    size_t bytes;
    (void)state;
    assert_status(embla_fail(EMBLA_ERR_RANGE, "before"), EMBLA_ERR_RANGE);
    assert_ok(embla_dtype_row_bytes(EMBLA_F32, 4, &bytes));
    assert_string_equal(embla_error(), "before");
}

static void every_status_has_a_name_of_its_own(void **state)
{
    (void)state;
    for (int i = EMBLA_OK; i <= EMBLA_ERR_BUSY; i++) {
        assert_non_null(embla_status_name((embla_status)i));
        for (int j = EMBLA_OK; j < i; j++)
            assert_string_not_equal(embla_status_name((embla_status)i),
                                    embla_status_name((embla_status)j));
    }
    assert_null(embla_status_name((embla_status)(EMBLA_ERR_BUSY + 1)));
    assert_null(embla_status_name((embla_status)-1));
}

static embla_status stops_at_the_first_failure(int *reached)
{
    *reached = 1;
    EMBLA_TRY(EMBLA_OK);
    *reached = 2;
    EMBLA_TRY(embla_fail(EMBLA_ERR_SHAPE, "here"));
    *reached = 3;
    return EMBLA_OK;
}

static void try_returns_the_first_failure(void **state)
{
    int reached = 0;
    (void)state;
    assert_status(stops_at_the_first_failure(&reached), EMBLA_ERR_SHAPE);
    assert_int_equal(reached, 2);
}

static void the_version_is_that_of_the_header(void **state)
{
    int major, minor, patch;
    (void)state;
    assert_int_equal(sscanf(embla_version(), "%d.%d.%d", &major, &minor, &patch), 3);
    assert_int_equal(major, EMBLA_VERSION_MAJOR);
    assert_int_equal(minor, EMBLA_VERSION_MINOR);
    assert_int_equal(patch, EMBLA_VERSION_PATCH);
    assert_true(strlen(embla_build_info()) > 0);
}

static void a_sentence_is_one_line_whatever_it_quotes(void **state)
{
    embla_dtype dtype;
    (void)state;
    assert_status(embla_dtype_find("a\nb\x1b[31m", &dtype), EMBLA_ERR_NOT_FOUND);
    assert_null(strpbrk(embla_error(), "\n\x1b"));
    assert_error_has("a?b?[31m");
    assert_error_has("q4_0");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(failing_keeps_the_sentence_and_returns_the_status),
        cmocka_unit_test(a_later_failure_replaces_the_sentence),
        cmocka_unit_test(a_sentence_that_is_too_long_is_cut),
        cmocka_unit_test(each_thread_has_its_own_sentence),
        cmocka_unit_test(success_leaves_the_sentence_alone),
        cmocka_unit_test(every_status_has_a_name_of_its_own),
        cmocka_unit_test(try_returns_the_first_failure),
        cmocka_unit_test(the_version_is_that_of_the_header),
        cmocka_unit_test(a_sentence_is_one_line_whatever_it_quotes),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
