/* SPDX-License-Identifier: Apache-2.0 */
/* What has gone wrong in other readers of .npy and of words and vectors, each with a file of
 * our own making that does the same, and the rule that refuses it. Numbers are the rows of
 * the list in docs/formats.md; the id says where it was told.
 */
#include <stdio.h>
#include <sys/resource.h>

#include "../one_table.h"
#include "base/byte_order.h"
#include "formats/vec.h"

#define NPY    (&embla_format_npy)
#define TEXT   (&embla_format_word2vec)
#define GLOVE  (&embla_format_glove)
#define BINARY (&embla_format_word2vec_bin)

#define REFUSES(format, bytes, status, rule)                                                       \
    one_refuses(format, "", NULL, bytes, sizeof(bytes) - 1, false, status, rule)

/* A version 1.0 file whose dictionary is text. */
static size_t npy(const char *text, size_t data, char out[512])
{
    size_t length = strlen(text);
    assert_in_range(length + data, 0, 500);
    memcpy(out, "\x93NUMPY\1\0", 8);
    out[8] = (char)(length & 0xff);
    out[9] = (char)(length >> 8);
    memcpy(out + 10, text, length);
    memset(out + 10 + length, 1, data);
    return 10 + length + data;
}

static void npy_refuses(const char *text, size_t data, embla_status status, const char *rule)
{
    char bytes[512];
    size_t size = npy(text, data, bytes);
    one_refuses(NPY, "", NULL, bytes, size, false, status, rule);
}

/* Kilobytes that the process has had at most; what is refused must not have raised it. */
static long most_memory(void)
{
    struct rusage usage;
    assert_int_equal(getrusage(RUSAGE_SELF, &usage), 0);
    return usage.ru_maxrss;
}

/* A reader that runs past the end of its file. Here the file is cut at every byte, in memory
 * that ends where it is cut. */
static void row_25_cve_2025_62608_mlx_heap_overflow_in_load(void **state)
{
    char bytes[512];
    size_t size = npy("{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }\n", 24, bytes);
    one_file f;
    (void)state;
    for (size_t cut = 0; cut < size; cut++) {
        assert_status(one_read(NPY, bytes, cut, NULL, &f), EMBLA_ERR_FORMAT);
        one_close(&f);
    }
    assert_ok(one_read(NPY, bytes, size, NULL, &f));
    one_close(&f);
}

/* A string of the header that ends in a backslash: what follows it was taken for escaped. */
static void row_26_dali_pr_6380_header_string_ends_in_a_backslash(void **state)
{
    (void)state;
    npy_refuses("{'descr': '<f4\\", 0, EMBLA_ERR_FORMAT, "N2");
    npy_refuses("{'descr': '<f4\\'", 0, EMBLA_ERR_FORMAT, "N2");
    npy_refuses("{'descr': '\\", 0, EMBLA_ERR_FORMAT, "N2");
    npy_refuses("{'\\", 0, EMBLA_ERR_FORMAT, "N2");
    npy_refuses("{'descr': '<f4\\', 'fortran_order': False, 'shape': (2, 3), }\n", 24,
                EMBLA_ERR_FORMAT, "N2");
}

/* 136 bytes that ask for 1.12 GiB, and 12 that ask for 3.7 GB: sizes before memory. */
static void row_27_numpy_and_ndarray_npy_allocate_what_a_shape_says(void **state)
{
    long before = most_memory();
    (void)state;
    npy_refuses("{'descr': '<f4', 'fortran_order': False, 'shape': (300000000,), }\n", 60,
                EMBLA_ERR_FORMAT, "N5");
    assert_error_has("needs 1200000000 bytes, but 60 follow");
    npy_refuses("{'descr': '>f4', 'fortran_order': True, 'shape': (30000, 10000), }\n", 60,
                EMBLA_ERR_FORMAT, "N5");
    REFUSES(NPY, "\x93NUMPY\2\0\0\0\0\xdd", EMBLA_ERR_FORMAT, "N1");
    assert_error_has("3707764736 bytes, but 0 are left, and the limit is 10000");
    assert_in_range(most_memory(), 0, before + (64 << 10));
}

/* Version 2.0 and a header of 4 GiB in a file of 12 bytes. */
static void row_28_mlx_3365_header_of_4_gib_in_12_bytes(void **state)
{
    long before = most_memory();
    (void)state;
    REFUSES(NPY, "\x93NUMPY\2\0\xff\xff\xff\xff", EMBLA_ERR_FORMAT, "N1");
    assert_error_has("4294967295 bytes");
    REFUSES(NPY, "\x93NUMPY\3\0\xff\xff\xff\xff", EMBLA_ERR_FORMAT, "N1");
    assert_in_range(most_memory(), 0, before + (64 << 10));
}

/* An array of objects is a pickle; reading it runs it. */
static void row_34_cve_2019_6446_an_array_of_objects_runs_its_pickle(void **state)
{
    char bytes[512];
    size_t size = npy("{'descr': '|O', 'fortran_order': False, 'shape': (1,), }\n", 0, bytes);
    const char pickle[] = "\x80\3cposix\nsystem\nX\4\0\0\0true\x85R.";
    const embla_open_options lenient = {.lenient = true, .as = EMBLA_BF16};
    one_file f;
    (void)state;
    memcpy(bytes + size, pickle, sizeof pickle - 1);
    one_refuses(NPY, "", NULL, bytes, size + sizeof pickle - 1, false, EMBLA_ERR_UNSUPPORTED, "N3");
    assert_error_has("pickle");
    assert_status(one_read(NPY, bytes, size + sizeof pickle - 1, &lenient, &f),
                  EMBLA_ERR_UNSUPPORTED);
    one_close(&f);
}

/* A word of length bytes before dim floats, in binary and in text. */
static void word_and_row(size_t length, size_t dim)
{
    size_t room = 64 + length + 4 * dim + 2;
    char *bytes = malloc(room);
    float *row = malloc(dim * sizeof *row);
    one_file f;
    assert_true(bytes && row);
    size_t used = (size_t)snprintf(bytes, room, "1 %zu\n", dim);
    memset(bytes + used, 'w', length);
    used += length;
    bytes[used++] = ' ';
    for (size_t i = 0; i < dim; i++, used += 4) memcpy(bytes + used, "\0\0\x80\x3f", 4);
    one_accepts(BINARY, "", NULL, bytes, used, NULL, &f);
    one_shape(&f, 1, dim);
    assert_int_equal(f.directory.labels[0].length, length);
    assert_ok(one_make(&f, 0, 1, row));
    embla_order_turn(row, sizeof *row, dim);
    assert_true(row[0] == 1.0f && row[dim - 1] == 1.0f);
    one_close(&f);
    used -= 4 * dim + 1;
    for (size_t i = 0; i < dim; i++, used += 2) memcpy(bytes + used, " 1", 2);
    one_accepts(TEXT, "", NULL, bytes, used, NULL, &f);
    one_shape(&f, 1, dim);
    assert_int_equal(f.directory.labels[0].length, length);
    assert_ok(one_make(&f, 0, 1, row));
    embla_order_turn(row, sizeof *row, dim);
    assert_true(row[0] == 1.0f && row[dim - 1] == 1.0f);
    one_close(&f);
    free(bytes);
    free(row);
}

/* distance.c keeps 50 bytes of a word, and writes the 51st. */
static void row_44_word2vec_distance_c_off_by_one_at_word_length_50(void **state)
{
    (void)state;
    for (size_t length = 47; length < 54; length++) word_and_row(length, 3);
    word_and_row(EMBLA_VEC_WORD_MOST, 3); /* a word of exactly the most there may be */
}

/* And has room for 2000 floats on the stack, whatever the header says. */
static void row_44_word2vec_distance_c_2000_floats_on_the_stack(void **state)
{
    (void)state;
    for (size_t dim = 1999; dim < 2003; dim++) word_and_row(4, dim);
    word_and_row(1, EMBLA_VEC_DIM_MOST);
}

/* scanf's %s has no end: a word longer than its room went on past it. */
static void row_44_glove_192_scanf_of_a_word_without_end(void **state)
{
    static char bytes[100000];
    (void)state;
    word_and_row(1000, 2);
    memset(bytes, 'w', sizeof bytes);
    memcpy(bytes, "1 2\n", 4);
    memcpy(bytes + sizeof bytes - 5, " 1 2\n", 5);
    one_refuses(TEXT, "", NULL, bytes, sizeof bytes, false, EMBLA_ERR_FORMAT, "W3");
    one_refuses(BINARY, "", NULL, bytes, sizeof bytes, false, EMBLA_ERR_FORMAT, "W2");
    one_refuses(GLOVE, "", NULL, bytes + 4, sizeof bytes - 4, false, EMBLA_ERR_FORMAT, "W3");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_25_cve_2025_62608_mlx_heap_overflow_in_load),
        cmocka_unit_test(row_26_dali_pr_6380_header_string_ends_in_a_backslash),
        cmocka_unit_test(row_27_numpy_and_ndarray_npy_allocate_what_a_shape_says),
        cmocka_unit_test(row_28_mlx_3365_header_of_4_gib_in_12_bytes),
        cmocka_unit_test(row_34_cve_2019_6446_an_array_of_objects_runs_its_pickle),
        cmocka_unit_test(row_44_word2vec_distance_c_off_by_one_at_word_length_50),
        cmocka_unit_test(row_44_word2vec_distance_c_2000_floats_on_the_stack),
        cmocka_unit_test(row_44_glove_192_scanf_of_a_word_without_end),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
