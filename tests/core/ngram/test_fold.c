/* SPDX-License-Identifier: Apache-2.0 */
/* Folds: from memory and from npy files, and everything that is no fold. */
#include <errno.h>

#include "opened.h"

#include "base/mem.h"
#include "files/io.h"
#include "ngram/ngram.h"

static const int32_t good[] = {0, 1, 0, 2, 2, 1, 3, 0};

/* An npy file, byte by byte: the header padded to 64 bytes. */
static const char *npy(const char *name, const char *descr, const char *shape, const void *data,
                       size_t bytes)
{
    toy_bytes t = {0};
    char text[118];
    memset(text, ' ', sizeof text);
    int n = snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': False, 'shape': %s, }",
                     descr, shape);
    text[n] = ' ';
    text[sizeof text - 1] = '\n';
    toy_put(&t, "\x93NUMPY\x01\x00", 8);
    toy_number(&t, sizeof text, 2);
    toy_put(&t, text, sizeof text);
    toy_put(&t, data, bytes);
    scratch_write(scratch_path(&place, name), t.bytes, t.used);
    free(t.bytes);
    return place.path;
}

static void a_fold_is_copied_and_counted(void **state)
{
    int32_t list[COUNT_OF(good)];
    embla_fold *fold = NULL;
    (void)state;
    memcpy(list, good, sizeof list);
    assert_ok(embla_fold_new(list, COUNT_OF(list), &fold));
    list[0] = 77;
    assert_int_equal(fold->tokens, 8);
    assert_int_equal(fold->count, 4);
    assert_memory_equal(fold->values, good, sizeof good);
    embla_fold_free(fold);
    static const int32_t zero[] = {0};
    assert_ok(embla_fold_new(zero, 1, &fold));
    assert_int_equal(fold->count, 1);
    embla_fold_free(fold);
    embla_fold_free(NULL);
}

static void numbers_are_given_out_in_order(void **state)
{
    static const struct {
        int32_t list[4];
        const char *sentence;
    } cases[] = {
        {{1, 0, 0, 0}, "token 0 is folded to 1; expected 0 to 0"},
        {{0, 1, 3, 2}, "token 2 is folded to 3; expected 0 to 2"},
        {{0, 0, 0, -1}, "token 3 is folded to -1; expected 0 to 1"},
        {{-1, 0, 0, 0}, "token 0 is folded to -1"},
        {{0, 1, 2, 4}, "token 3 is folded to 4; expected 0 to 3"},
    };
    embla_fold *fold = (embla_fold *)&fold;
    size_t live = embla_mem_live();
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        assert_status(embla_fold_new(cases[i].list, 4, &fold), EMBLA_ERR_FORMAT);
        assert_error_has(cases[i].sentence);
    }
    assert_status(embla_fold_new(good, 0, &fold), EMBLA_ERR_ARGUMENT);
    assert_error_has("a fold has 0 tokens; it must have 1 to 536870912");
    assert_status(embla_fold_new(good, (size_t)1 << 30, &fold), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_new(NULL, 4, &fold), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_new(good, 4, NULL), EMBLA_ERR_ARGUMENT);
    assert_ptr_equal(fold, &fold);
    assert_int_equal(embla_mem_live(), live);
}

static void a_file_is_read(void **state)
{
    embla_fold *fold = NULL;
    (void)state;
    assert_ok(embla_fold_open(npy("f.npy", "<i4", "(8,)", good, sizeof good), &fold));
    assert_int_equal(fold->tokens, 8);
    assert_int_equal(fold->count, 4);
    assert_memory_equal(fold->values, good, sizeof good);
    embla_fold_free(fold);
}

static void what_is_no_fold_is_refused(void **state)
{
    static const int32_t gap[] = {0, 2};
    static const toy_tensor tensor[] = {{"wte.weight", 6, 4, 1}};
    embla_fold *fold = NULL;
    (void)state;
    assert_status(embla_fold_open(npy("a.npy", "<i8", "(4,)", good, sizeof good), &fold),
                  EMBLA_ERR_FORMAT);
    assert_error_has("I64");
    assert_status(embla_fold_open(npy("b.npy", "<i4", "(2, 4)", good, sizeof good), &fold),
                  EMBLA_ERR_FORMAT);
    assert_error_has("2 dimensions and 32 bytes");
    assert_status(embla_fold_open(npy("c.npy", "<i4", "(2,)", gap, sizeof gap), &fold),
                  EMBLA_ERR_FORMAT);
    assert_error_has("c.npy: token 1 is folded to 2");
    assert_status(embla_fold_open(npy("d.npy", "<i4", "(9,)", good, sizeof good), &fold),
                  EMBLA_ERR_FORMAT);
    assert_status(embla_fold_open(npy("e.npy", "<i4", "(0,)", good, 0), &fold), EMBLA_ERR_FORMAT);
    assert_status(embla_fold_open(npy("g.npy", "<f4", "(8,)", good, sizeof good), &fold),
                  EMBLA_ERR_FORMAT);
    toy_safetensors(scratch_path(&place, "m.safetensors"), tensor, 1);
    assert_status(embla_fold_open(place.path, &fold), EMBLA_ERR_FORMAT);
    assert_error_has("has format safetensors; a fold must be an npy file of int32");
    assert_status(embla_fold_open(scratch_path(&place, "none"), &fold), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_fold_open(NULL, &fold), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_open("x", NULL), EMBLA_ERR_ARGUMENT);
    assert_null(fold);
}

/* Every allocation and every call to the system fails once. */
static void failures_are_statuses_and_nothing_leaks(void **state)
{
    const char *path = npy("f.npy", "<i4", "(8,)", good, sizeof good);
    size_t live = embla_mem_live(), failures = 0;
    embla_fold *fold = NULL;
    (void)state;
    for (size_t n = 1; !fold; n++) {
        embla_mem_fail(n, false);
        embla_status status = embla_fold_open(path, &fold);
        embla_mem_fail(0, false);
        if (status != EMBLA_OK) {
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_null(fold);
            assert_int_equal(embla_mem_live(), live);
            failures++;
        }
    }
    assert_true(failures > 1);
    embla_fold_free(fold);
    fold = NULL;
    for (size_t n = 1; !fold; n++) {
        embla_io_fail(n, false, EMBLA_SYSTEM_OTHER);
        embla_status status = embla_fold_open(path, &fold);
        embla_io_fail(0, false, 0);
        if (status != EMBLA_OK) {
            assert_null(fold);
            assert_int_equal(embla_mem_live(), live);
        }
    }
    embla_fold_free(fold);
    assert_int_equal(embla_mem_live(), live);
}

/* Computed by the xxhash library from the numbers as bytes. */
static void a_checksum_tells_folds_of_the_same_size_apart(void **state)
{
    static const int32_t other[] = {0, 1, 0, 2, 1, 2, 3, 0}; /* of another revision */
    embla_fold *fold = NULL, *wrong = NULL;
    char text[33];
    (void)state;
    assert_ok(embla_fold_new(good, COUNT_OF(good), &fold));
    assert_ok(embla_fold_new(other, COUNT_OF(other), &wrong));
    assert_int_equal(fold->count, wrong->count);
    embla_fold_checksum(fold, text);
    assert_string_equal(text, "75406ef0c71ba654bdb2bc76667ff860");
    embla_fold_checksum(wrong, text);
    assert_string_equal(text, "a47bfc50803f719cd471a01480de4b79");
    assert_ok(embla_fold_require(fold, "75406ef0c71ba654bdb2bc76667ff860"));
    assert_ok(embla_fold_require(fold, "75406EF0C71BA654BDB2BC76667FF860"));
    assert_status(embla_fold_require(wrong, "75406ef0c71ba654bdb2bc76667ff860"), EMBLA_ERR_FORMAT);
    assert_error_has("the fold of 8 tokens to 4 has the checksum a47bfc50803f719cd471a01480de4b79, "
                     "but 75406ef0c71ba654bdb2bc76667ff860 is required");
    assert_status(embla_fold_require(fold, "75406ef0"), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_require(fold, "75406ef0c71ba654bdb2bc76667ff86g"), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_require(fold, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_fold_require(NULL, text), EMBLA_ERR_ARGUMENT);
    embla_fold_free(fold);
    embla_fold_free(wrong);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        TEST(a_fold_is_copied_and_counted),
        TEST(numbers_are_given_out_in_order),
        TEST(a_file_is_read),
        TEST(what_is_no_fold_is_refused),
        TEST(a_checksum_tells_folds_of_the_same_size_apart),
        TEST(failures_are_statuses_and_nothing_leaks),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
