/* SPDX-License-Identifier: Apache-2.0 */
/* Rows of files of words and vectors: made in any range, written and read back bit for bit,
 * with every allocation and file call failing once; and, where EMBLA_DATA is set, 50,000 rows
 * of real GloVe against strtof.
 */
#include <math.h>
#include <stdio.h>

#include "files/decimal.h"
#include "vec_bytes.h"

static const embla_format *const formats[] = {&embla_format_word2vec, &embla_format_glove,
                                              &embla_format_word2vec_bin};

/* ---- rows ---- */

static void rows_outside_the_file_are_refused(void **state)
{
    one_file f;
    float values[4];
    (void)state;
    ACCEPTS(TEXT, NULL, "2 2\nthe 1 -2\nof 3 4\n", &f);
    assert_status(one_make(&f, 2, 1, values), EMBLA_ERR_RANGE);
    assert_status(one_make(&f, 0, 3, values), EMBLA_ERR_RANGE);
    assert_status(one_make(&f, 1, UINT64_MAX, values), EMBLA_ERR_RANGE);
    assert_ok(one_make(&f, 2, 0, values));
    one_close(&f);
    ACCEPTS(BINARY, NULL, "1 2\nthe " ONE_TWO, &f);
    assert_status(one_make(&f, 1, 1, values), EMBLA_ERR_RANGE);
    assert_ok(one_make(&f, 1, 0, values));
    one_close(&f);
}

/* Someone writes to the file between opening and making: no row, but no harm. */
static void a_file_that_changes_is_noticed(void **state)
{
    one_file f;
    float values[4];
    (void)state;
    ACCEPTS(TEXT, NULL, "2 2\nthe 1 -2\nof 3 4\n", &f);
    memcpy(f.bytes + 4, "the 1 2 3", 9);
    assert_status(one_make(&f, 0, 1, values), EMBLA_ERR_FORMAT);
    one_sentence("W3");
    memcpy(f.bytes + 4, "         ", 9);
    assert_status(one_make(&f, 0, 1, values), EMBLA_ERR_FORMAT);
    memcpy(f.bytes + 4, "thex1 -2 ", 9);
    assert_status(one_make(&f, 0, 1, values), EMBLA_ERR_FORMAT);
    one_sentence("W4");
    memcpy(f.bytes + 4, "the91 -2 ", 9);
    assert_status(one_make(&f, 0, 1, values), EMBLA_ERR_FORMAT);
    one_sentence("W4");
    one_close(&f);
}

/* ---- writing ---- */

static void words_that_can_be_written(void **state)
{
    char longest[1025];
    (void)state;
    memset(longest, 'w', sizeof longest);
    assert_true(embla_vec_word_ok("the", 3));
    assert_true(embla_vec_word_ok("\xc2\xa0", 2));
    assert_true(embla_vec_word_ok("\xff", 1));
    assert_true(embla_vec_word_ok(longest, 1024));
    assert_false(embla_vec_word_ok(longest, 1025));
    assert_false(embla_vec_word_ok("", 0));
    assert_false(embla_vec_word_ok(NULL, 0));
    assert_false(embla_vec_word_ok("a b", 3));
    assert_false(embla_vec_word_ok("a\tb", 3));
    assert_false(embla_vec_word_ok("a\n", 2));
    assert_false(embla_vec_word_ok("\ra", 2));
    assert_false(embla_vec_word_ok("a\0b", 3));
}

/* A table of any floats at all but NaN, whose bits text does not keep. */
static float *any_floats(size_t count)
{
    uint64_t seed = 3;
    float *values = malloc(count * sizeof *values);
    assert_non_null(values);
    for (size_t i = 0; i < count; i++)
        while (isnan(values[i] = check_any_float(&seed))) continue;
    embla_order_turn(values, sizeof *values, count); /* as files have them */
    return values;
}

static void what_is_written_reads_back(void **state)
{
    scratch s;
    const size_t rows = 700, dim = 333; /* several blocks */
    float *values = any_floats(rows * dim), *back = malloc(rows * dim * sizeof *back);
    embla_name *labels = calloc(rows, sizeof *labels);
    char words[700][8];
    (void)state;
    assert_true(back && labels);
    for (size_t i = 0; i < rows; i++) {
        int length = snprintf(words[i], sizeof words[i], "w%zu", i);
        labels[i] = (embla_name){words[i], (uint32_t)length, (uint32_t)i};
    }
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        one_source source;
        embla_part part = one_part(&source, values, EMBLA_F32, 2, rows, dim);
        const embla_contents contents = {
            .parts = &part, .count = 1, .labels = labels, .label_count = rows};
        const char *path = scratch_path(&s, "table");
        size_t size = 0;
        one_file f;
        assert_ok(one_write(formats[i], path, &contents));
        unsigned char *bytes = scratch_read(path, &size);
        assert_true(formats[i]->sniff(bytes, 4096, size));
        one_accepts(formats[i], "vec", NULL, bytes, size, NULL, &f);
        one_shape(&f, rows, dim);
        one_label(&f, 699, "w699");
        assert_ok(one_make(&f, 0, rows, back));
        assert_memory_equal(back, values, rows * dim * sizeof *values);
        assert_ok(one_make(&f, 500, 1, back));
        assert_memory_equal(back, values + 500 * dim, dim * sizeof *values);
        one_close(&f);
        free(bytes);
    }
    scratch_free(&s);
    free(values);
    free(back);
    free(labels);
}

static void words_that_cannot_be_written_are_row_numbers(void **state)
{
    scratch s;
    one_source source;
    float values[] = {1, 2, 3, 4, 5, 6, 7, 8};
    const embla_name labels[] = {{"the", 3, 0}, {NULL, 0, 1}, {"a b", 3, 2}, {"x", 1, 3}};
    (void)state;
    scratch_new(&s);
    embla_order_turn(values, sizeof *values, COUNT_OF(values));
    embla_part part = one_part(&source, values, EMBLA_F32, 2, 4, 2);
    embla_contents contents = {.parts = &part, .count = 1, .labels = labels, .label_count = 4};
    const char *path = scratch_path(&s, "a");
    assert_ok(one_write(TEXT, path, &contents));
    const char *wanted = "4 2\nthe 1 2\n#1 3 4\n#2 5 6\nx 7 8\n";
    assert_true(scratch_holds(path, wanted, strlen(wanted)));
    part = one_part(&source, values, EMBLA_F32, 2, 4, 2);
    contents.label_count = 0;
    assert_ok(one_write(GLOVE, path, &contents));
    wanted = "#0 1 2\n#1 3 4\n#2 5 6\n#3 7 8\n";
    assert_true(scratch_holds(path, wanted, strlen(wanted)));
    part = one_part(&source, values, EMBLA_F32, 2, 1, 2);
    assert_ok(one_write(BINARY, path, &contents));
    assert_true(scratch_holds(path, "1 2\n#0 \0\0\x80\x3f\0\0\0\x40\n", 16));
    scratch_free(&s);
}

static void what_these_files_do_not_hold_is_not_written(void **state)
{
    scratch s;
    one_source source;
    const float values[8] = {0};
    (void)state;
    scratch_new(&s);
    const char *path = scratch_path(&s, "a");
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        embla_part parts[2] = {one_part(&source, values, EMBLA_F16, 2, 2, 2)};
        embla_contents contents = {.parts = parts, .count = 1};
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        assert_error_has("F16");
        parts[0] = one_part(&source, values, EMBLA_F32, 1, 4, 0);
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        parts[0] = one_part(&source, values, EMBLA_F32, 2, 0, 4);
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        parts[0] = one_part(&source, values, EMBLA_F32, 2, 4, 0);
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        parts[0] = one_part(&source, values, EMBLA_F32, 2, 1, 65537);
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        assert_error_has("1 x 65537");
        parts[0] = one_part(&source, values, EMBLA_F32, 2, UINT64_C(1) << 31, 2);
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        parts[0] = parts[1] = one_part(&source, values, EMBLA_F32, 2, 2, 2);
        contents.count = 2;
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_SHAPE);
        contents.count = 1;
        source.fail_after = 1;
        assert_status(one_write(formats[i], path, &contents), EMBLA_ERR_IO);
        parts[0] = one_part(&source, values, EMBLA_F32, 2, 2, 1);
        assert_status(one_write(formats[i], path, &contents),
                      formats[i] == GLOVE ? EMBLA_ERR_SHAPE : EMBLA_OK);
        (void)unlink(path);
        assert_int_equal(scratch_count(&s, NULL), 0);
    }
    scratch_free(&s);
}

/* The longest row of each kind fits the room there is said to be for it. */
static void a_row_fits_its_room(void **state)
{
    static float values[100];
    char word[EMBLA_VEC_WORD_MOST];
    (void)state;
    uint32_t bits = check_bits_of(-1e-10f); /* a float of 9 digits comes soon */
    while (embla_decimal_write(check_float_of(bits), word) < EMBLA_DECIMAL_MOST) bits++;
    for (size_t i = 0; i < COUNT_OF(values); i++) values[i] = check_float_of(bits);
    memset(word, 'w', sizeof word);
    check_guarded g = check_guard(embla_vec_row_most(COUNT_OF(values)), 0);
    size_t text = embla_vec_put_text(word, sizeof word, values, COUNT_OF(values), (char *)g.bytes);
    assert_int_equal(text, g.size);
    check_guards(&g);
    size_t binary =
        embla_vec_put_binary(word, sizeof word, values, COUNT_OF(values), (char *)g.bytes);
    assert_int_equal(binary, sizeof word + 1 + sizeof values + 1);
    check_guards(&g);
    check_guard_free(&g);
}

/* ---- failures ---- */

typedef struct {
    const embla_format *format;
    const char *path;
} job;

static embla_status read_and_make(void *context)
{
    const job *j = context;
    embla_map *map = NULL;
    embla_directory directory = {0};
    float rows[6];
    EMBLA_TRY(embla_map_open(EMBLA_HERE, j->path, j->path, true, &map));
    embla_status status = j->format->read(map, NULL, &directory);
    if (status == EMBLA_OK) status = directory.make(&directory, map, directory.entries, 0, 3, rows);
    embla_directory_free(&directory);
    embla_map_free(map);
    return status;
}

static embla_status write_one(void *context)
{
    static const float values[20] = {1.0f};
    const job *j = context;
    one_source source;
    embla_part part = one_part(&source, values, EMBLA_F32, 2, 10, 2);
    const embla_contents contents = {.parts = &part, .count = 1};
    return one_write(j->format, j->path, &contents);
}

static void every_failure_is_reported_and_leaves_nothing(void **state)
{
    static const char text[] = "3 2\nthe 1 2\nof 3 4\nthe 5 6\n";
    static const char binary[] = "3 2\nthe " ONE_TWO "of " ONE_TWO "the " ONE_TWO;
    scratch s;
    (void)state;
    scratch_new(&s);
    job j = {.path = scratch_path(&s, "a")};
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        j.format = formats[i];
        if (j.format == BINARY)
            scratch_write(j.path, binary, sizeof binary - 1);
        else
            scratch_write(j.path, text + (j.format == GLOVE ? 4 : 0),
                          strlen(text) - (j.format == GLOVE ? 4 : 0));
        one_failing(read_and_make, &j, true);
        one_failing(read_and_make, &j, false);
        one_failing(write_one, &j, true);
        one_failing(write_one, &j, false);
        assert_int_equal(scratch_count(&s, NULL), 1);
    }
    scratch_free(&s);
}

/* A real file read through windows, with lines and words across their edges. */
static void a_file_longer_than_a_window_reads_as_one_in_memory(void **state)
{
    scratch s;
    const size_t rows = 3000, dim = 100;
    float *values = any_floats(rows * dim), *back = malloc(rows * dim * sizeof *back);
    (void)state;
    assert_non_null(back);
    scratch_new(&s);
    const char *path = scratch_path(&s, "a");
    for (size_t i = 0; i < COUNT_OF(formats); i++) {
        one_source source;
        embla_part part = one_part(&source, values, EMBLA_F32, 2, rows, dim);
        const embla_contents contents = {.parts = &part, .count = 1};
        embla_map *map = NULL;
        embla_directory directory = {0};
        assert_ok(one_write(formats[i], path, &contents));
        assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
        assert_in_range(map->size, 1 << 20, 1 << 23);
        assert_ok(formats[i]->read(map, NULL, &directory));
        assert_int_equal(directory.entries[0].shape[0], rows);
        assert_int_equal(directory.labels[2999].length, 5);
        assert_ok(directory.make(&directory, map, directory.entries, 0, rows, back));
        assert_memory_equal(back, values, rows * dim * sizeof *values);
        embla_directory_free(&directory);
        embla_map_free(map);
    }
    scratch_free(&s);
    free(values);
    free(back);
}

/* ---- real vectors ---- */

static void fifty_thousand_rows_of_glove(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char command[3 * SCRATCH_PATH];
    const size_t rows = 50000, dim = 100;
    embla_map *map = NULL;
    const embla_format *format = NULL;
    embla_directory directory = {0};
    scratch s;
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: no real vectors are read\n");
        skip();
    }
    scratch_new(&s);
    const char *path = scratch_path(&s, "glove.txt");
    (void)snprintf(command, sizeof command, "xz -dc '%s'/glove-50k/*.xz > '%s'", data, path);
    assert_int_equal(system(command), 0);
    assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
    assert_ok(embla_format_of(map, &format));
    assert_string_equal(format->name, "glove");
    assert_ok(format->read(map, NULL, &directory));
    assert_int_equal(directory.entries[0].shape[0], rows);
    assert_int_equal(directory.entries[0].shape[1], dim);
    assert_int_equal(directory.note_count, 0);
    assert_memory_equal(directory.labels[0].bytes, "the", 4);
    float *values = malloc(rows * dim * sizeof *values), *value = values;
    assert_non_null(values);
    assert_ok(directory.make(&directory, map, directory.entries, 0, rows, values));
    embla_order_turn(values, sizeof *values, rows * dim);
    assert_true(values[0] == -0.038194f && values[1] == -0.24487f && values[99] == 0.27062f);
    /* every number again, by strtof */
    const char *p = (const char *)map->bytes;
    for (size_t row = 0; row < rows; row++, p++) {
        p = strchr(p, ' ');
        for (size_t column = 0; column < dim; column++, value++) {
            char *end;
            if (check_bits_of(strtof(p, &end)) != check_bits_of(*value))
                fail_msg("row %zu, column %zu: %a", row, column, (double)*value);
            p = end;
        }
    }
    free(values);
    embla_directory_free(&directory);
    embla_map_free(map);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rows_outside_the_file_are_refused),
        cmocka_unit_test(a_file_that_changes_is_noticed),
        cmocka_unit_test(words_that_can_be_written),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(words_that_cannot_be_written_are_row_numbers),
        cmocka_unit_test(what_these_files_do_not_hold_is_not_written),
        cmocka_unit_test(a_row_fits_its_room),
        cmocka_unit_test(every_failure_is_reported_and_leaves_nothing),
        cmocka_unit_test(a_file_longer_than_a_window_reads_as_one_in_memory),
        cmocka_unit_test(fifty_thousand_rows_of_glove),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
