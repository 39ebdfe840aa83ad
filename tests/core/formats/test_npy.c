/* SPDX-License-Identifier: Apache-2.0 */
/* .npy: one test for each clause of rules N1 to N6, arrays that must be turned or swapped
 * against a loop over every number, the header that is written against NumPy's own bytes, and
 * every allocation and file call failing once.
 */
#include <stdio.h>

#include "files/cursor.h"
#include "formats/npy.h"
#include "one_table.h"

#define FORMAT (&embla_format_npy)

typedef struct {
    uint8_t *bytes; /* free() them */
    size_t size;
} made_file;

/* The dictionary as it is given, then data bytes 1, 2, .. */
static made_file make_file(int major, const char *text, size_t data)
{
    size_t length = strlen(text), prefix = major == 1 ? 10 : 12;
    made_file f = {.size = prefix + length + data};
    f.bytes = calloc(1, f.size + 12);
    assert_non_null(f.bytes);
    memcpy(f.bytes, "\x93NUMPY", 6);
    f.bytes[6] = (uint8_t)major;
    for (size_t i = 8; i < prefix; i++) f.bytes[i] = (uint8_t)(length >> (8 * (i - 8)));
    memcpy(f.bytes + prefix, text, length);
    for (size_t i = 0; i < data; i++) f.bytes[prefix + length + i] = (uint8_t)(i + 1);
    return f;
}

static void refuses_with(const char *seed, made_file f, embla_status status, const char *rule)
{
    one_refuses(FORMAT, "npy", seed, f.bytes, f.size, false, status, rule);
    free(f.bytes);
}

/* Refused by N2, in version 1.0. */
static void refuses_text(const char *seed, const char *text)
{
    refuses_with(seed, make_file(1, text, 24), EMBLA_ERR_FORMAT, "N2");
}

static void accepts(const char *seed, made_file f, const embla_open_options *options, one_file *out)
{
    one_accepts(FORMAT, "npy", seed, f.bytes, f.size, options, out);
    free(f.bytes);
}

static void accepts_text(const char *seed, int major, const char *text, size_t data)
{
    one_file f;
    accepts(seed, make_file(major, text, data), NULL, &f);
    one_close(&f);
}

/* What NumPy writes, for a type and a shape. */
#define DICTIONARY(descr, order, shape)                                                            \
    "{'descr': '" descr "', 'fortran_order': " order ", 'shape': " shape ", }\n"

/* ---- N1 ---- */

static void rule_n1_the_magic_number_is_needed(void **state)
{
    made_file f = make_file(1, DICTIONARY("<f4", "False", "(2, 3)"), 24);
    (void)state;
    assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
    for (size_t i = 0; i < 6; i++) {
        f.bytes[i] ^= 1;
        assert_false(FORMAT->sniff(f.bytes, f.size, f.size));
        one_refuses(FORMAT, "npy", i == 0 ? "n1_magic" : NULL, f.bytes, f.size, false,
                    EMBLA_ERR_FORMAT, "N1");
        f.bytes[i] ^= 1;
    }
    assert_false(FORMAT->sniff(f.bytes, 5, 5));
    free(f.bytes);
}

static void rule_n1_versions_1_2_and_3_are_read(void **state)
{
    (void)state;
    accepts_text("ok_version_1", 1, DICTIONARY("<f4", "False", "(2, 3)"), 24);
    accepts_text("ok_version_2", 2, DICTIONARY("<f4", "False", "(2, 3)"), 24);
    accepts_text("ok_version_3", 3, DICTIONARY("<f4", "False", "(2, 3)"), 24);
}

static void rule_n1_other_versions_are_refused_by_number(void **state)
{
    (void)state;
    refuses_with("n1_version_0", make_file(0, DICTIONARY("<f4", "False", "(2, 3)"), 24),
                 EMBLA_ERR_UNSUPPORTED, "N1");
    refuses_with("n1_version_4", make_file(4, DICTIONARY("<f4", "False", "(2, 3)"), 24),
                 EMBLA_ERR_UNSUPPORTED, "N1");
    assert_error_has("version 4.0");
    made_file f = make_file(1, DICTIONARY("<f4", "False", "(2, 3)"), 24);
    f.bytes[7] = 1;
    refuses_with("n1_version_1_1", f, EMBLA_ERR_UNSUPPORTED, "N1");
    assert_error_has("version 1.1");
}

static void rule_n1_a_header_above_10000_bytes_is_refused(void **state)
{
    static char text[10002];
    const char *dictionary = "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), }";
    (void)state;
    memset(text, ' ', sizeof text - 1);
    memcpy(text, dictionary, strlen(dictionary));
    text[9999] = '\n';
    text[10000] = '\0';
    accepts_text(NULL, 1, text, 24); /* of exactly 10,000 */
    text[9999] = ' ';
    text[10000] = '\n';
    refuses_with(NULL, make_file(1, text, 24), EMBLA_ERR_FORMAT, "N1");
    assert_error_has("10001 bytes");
    refuses_with(NULL, make_file(2, text, 24), EMBLA_ERR_FORMAT, "N1");
    made_file f = make_file(2, "", 0);
    f.bytes[11] = 0xff; /* 4 GB */
    refuses_with("n1_4_gb", f, EMBLA_ERR_FORMAT, "N1");
    f = make_file(1, "{}", 0);
    f.bytes[8] = 0x11;
    f.bytes[9] = 0x27; /* 10,001 */
    refuses_with("n1_10001", f, EMBLA_ERR_FORMAT, "N1");
}

static void rule_n1_a_header_that_ends_after_the_file_is_refused(void **state)
{
    made_file f = make_file(1, DICTIONARY("<f4", "False", "(2, 3)"), 0);
    (void)state;
    f.size--;
    refuses_with("n1_header_past_the_end", f, EMBLA_ERR_FORMAT, "N1");
    for (size_t size = 4; size < 12; size++) {
        f = make_file(2, "", 0);
        f.size = size;
        refuses_with(size == 4    ? "n1_half_a_magic"
                     : size == 6  ? "n1_magic_alone"
                     : size == 8  ? "n1_no_length"
                     : size == 11 ? "n1_half_a_length"
                                  : NULL,
                     f, EMBLA_ERR_FORMAT, "N1");
    }
    refuses_with("n2_no_header", make_file(2, "", 0), EMBLA_ERR_FORMAT, "N2");
}

/* ---- N2 ---- */

static void rule_n2_keys_in_any_order_and_either_quote(void **state)
{
    (void)state;
    accepts_text("ok_order", 1, "{'shape': (2, 3), 'fortran_order': False, 'descr': '<f4'}\n", 24);
    accepts_text("ok_quotes", 1,
                 "{\"descr\": \"<f4\", \"fortran_order\": False, 'shape': (2, 3)}\n", 24);
    accepts_text("ok_no_spaces", 1, "{'descr':'<f4','fortran_order':False,'shape':(2,3)}\n", 24);
    accepts_text("ok_many_spaces", 1,
                 "{  'descr'  :  '<f4',  'fortran_order'  :  False,  'shape'  :  (2,  3,  ),  }  "
                 "\n",
                 24);
}

static void rule_n2_each_key_once(void **state)
{
    (void)state;
    refuses_text("n2_twice", "{'descr': '<f4', 'descr': '<f4', 'fortran_order': False, 'shape': "
                             "(2, 3)}\n");
    assert_error_has("occurs twice");
    refuses_text(NULL, "{'descr': '<f4', 'shape': (6,), 'shape': (2, 3), 'fortran_order': True}\n");
    refuses_text("n2_other_key", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3), 'x': "
                                 "1}\n");
    assert_error_has("key 'x' is unknown");
    refuses_text("n2_key_like_descr", "{'desct': '<f4', 'fortran_order': False, 'shape': (6,)}\n");
    refuses_text("n2_key_like_order", "{'descr': '<f4', 'Fortran_order': False, 'shape': (6,)}\n");
    refuses_text("n2_key_like_shape", "{'descr': '<f4', 'fortran_order': False, 'Shape': (6,)}\n");
    refuses_text("n2_no_shape", "{'descr': '<f4', 'fortran_order': False}\n");
    assert_error_has("no key 'shape'");
    refuses_text("n2_no_order", "{'descr': '<f4', 'shape': (2, 3)}\n");
    assert_error_has("no key 'fortran_order'");
    refuses_text("n2_no_descr", "{'fortran_order': False, 'shape': (2, 3)}\n");
    assert_error_has("no key 'descr'");
    refuses_text("n2_empty", "{}\n");
}

static void rule_n2_no_escapes_and_only_printable_ascii(void **state)
{
    (void)state;
    refuses_text("n2_escape", "{'descr': '\\x3cf4', 'fortran_order': False, 'shape': (2, 3)}\n");
    refuses_text(NULL, "{'de\\scr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n");
    refuses_text("n2_not_ascii", "{'descr': '<f4\xc3\xa9', 'fortran_order': False, 'shape': (2, "
                                 "3)}\n");
    refuses_text("n2_newline_inside", "{'descr': '<f4\n', 'fortran_order': False, 'shape': (2, "
                                      "3)}\n");
    refuses_with(
        "n2_not_ascii_version_3",
        make_file(3, "{'descr': '<f4', 'fortran_order': False, 'sh\xc3\xa4pe': (2, 3)}\n", 24),
        EMBLA_ERR_FORMAT, "N2");
}

static void rule_n2_the_grammar_and_nothing_else(void **state)
{
    static const struct {
        const char *seed, *text;
    } bad[] = {
        {"n2_no_brace", "'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_not_closed", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)\n"},
        {"n2_no_newline", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}"},
        {"n2_more_after", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n\n"},
        {"n2_tab", "{'descr':\t'<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_space_first", " {'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_space_before_comma", "{'descr': '<f4' , 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_two_commas", "{'descr': '<f4',, 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_no_comma", "{'descr': '<f4' 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_no_colon", "{'descr' '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_key_no_string", "{descr: '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_string_open", "{'descr': '<f4"},
        {"n2_quotes_mixed", "{'descr\": '<f4', 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_order_number", "{'descr': '<f4', 'fortran_order': 0, 'shape': (2, 3)}\n"},
        {"n2_order_small", "{'descr': '<f4', 'fortran_order': false, 'shape': (2, 3)}\n"},
        {"n2_order_cut", "{'descr': '<f4', 'fortran_order': Fal"},
        {"n2_descr_number", "{'descr': 4, 'fortran_order': False, 'shape': (2, 3)}\n"},
        {"n2_call", "{'descr': __import__('os'), 'fortran_order': False, 'shape': (2, 3)}\n"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(bad); i++) refuses_text(bad[i].seed, bad[i].text);
}

#define SHAPE(shape) DICTIONARY("<f4", "False", shape)

static void rule_n2_shapes(void **state)
{
    one_file f;
    (void)state;
    accepts("ok_scalar", make_file(1, SHAPE("()"), 4), NULL, &f);
    assert_int_equal(f.directory.entries[0].rank, 0);
    one_close(&f);
    accepts("ok_one_row", make_file(1, SHAPE("(6,)"), 24), NULL, &f);
    assert_int_equal(f.directory.entries[0].rank, 1);
    assert_int_equal(f.directory.entries[0].shape[0], 6);
    one_close(&f);
    accepts_text("ok_comma_at_the_end", 1, SHAPE("(2, 3,)"), 24);
    accepts_text("ok_rank_8", 1, SHAPE("(1, 1, 1, 1, 1, 2, 3, 1)"), 24);
    accepts_text("ok_no_rows", 1, SHAPE("(0, 3)"), 0);
    accepts_text("ok_no_columns", 1, SHAPE("(3, 0)"), 0);
    refuses_text("n2_shape_one_number", SHAPE("(6)"));
    assert_error_has("',' of a shape of one dimension");
    refuses_text("n2_shape_comma", SHAPE("(,)"));
    refuses_text("n2_shape_two_commas", SHAPE("(2,,3)"));
    refuses_text("n2_shape_no_comma", SHAPE("(2 3)"));
    refuses_text("n2_shape_list", SHAPE("[2, 3]"));
    refuses_text("n2_shape_sign", SHAPE("(-2, 3)"));
    refuses_text("n2_shape_float", SHAPE("(2.0, 3)"));
    refuses_text("n2_shape_hex", SHAPE("(0x2, 3)"));
    refuses_text("n2_shape_words", SHAPE("(True, 3)"));
    refuses_text("n2_shape_space", SHAPE("( 2, 3)"));
    refuses_text("n2_shape_open", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3");
    refuses_text("n2_shape_no_number", "{'descr': '<f4', 'fortran_order': False, 'shape': (2, ");
    refuses_text("n2_20_digits", SHAPE("(00000000000000000002, 3)"));
    accepts_text("ok_19_digits", 1, SHAPE("(0000000000000000002, 3)"), 24);
}

static void rule_n2_a_number_of_python_2_ends_in_l_before_version_3(void **state)
{
    (void)state;
    accepts_text("ok_python_2", 1, SHAPE("(2L, 3L)"), 24);
    accepts_text("ok_python_2_version_2", 2, SHAPE("(6L,)"), 24);
    refuses_with("n2_python_2_version_3", make_file(3, SHAPE("(2L, 3L)"), 24), EMBLA_ERR_FORMAT,
                 "N2");
    refuses_text("n2_two_l", SHAPE("(2LL, 3)"));
}

/* ---- N3 ---- */

static void rule_n3_the_numbers_that_are_read(void **state)
{
    static const struct {
        const char *descr, *name;
        size_t bytes;
    } types[] = {{"f2", "F16", 2}, {"f4", "F32", 4}, {"f8", "F64", 8}, {"i1", "I8", 1},
                 {"i2", "I16", 2}, {"i4", "I32", 4}, {"i8", "I64", 8}, {"u1", "U8", 1},
                 {"u2", "U16", 2}, {"u4", "U32", 4}, {"u8", "U64", 8}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(types); i++) {
        for (const char *order = "<>=|"; *order; order++) {
            char text[128], seed[32];
            one_file f;
            (void)snprintf(text, sizeof text,
                           "{'descr': '%c%s', 'fortran_order': False, 'shape': (2, 3), }\n", *order,
                           types[i].descr);
            (void)snprintf(seed, sizeof seed, "ok_%s%s", *order == '<' ? "" : "big_",
                           types[i].descr);
            accepts(*order == '<' || *order == '>' ? seed : NULL,
                    make_file(1, text, 6 * types[i].bytes), NULL, &f);
            assert_string_equal(f.directory.entries[0].element->name, types[i].name);
            assert_string_equal(f.directory.entries[0].name, "array");
            assert_int_equal(f.directory.entries[0].bytes, 6 * types[i].bytes);
            assert_int_equal(f.directory.entries[0].made, *order == '>' && types[i].bytes > 1);
            one_close(&f);
        }
    }
}

static void rule_n3_python_objects_are_a_pickle(void **state)
{
    (void)state;
    refuses_with("n3_objects", make_file(1, DICTIONARY("|O", "False", "(2, 3)"), 24),
                 EMBLA_ERR_UNSUPPORTED, "N3");
    assert_error_has("pickle");
    refuses_with(NULL, make_file(1, DICTIONARY("O", "False", "(2, 3)"), 24), EMBLA_ERR_UNSUPPORTED,
                 "N3");
    assert_error_has("pickle");
    refuses_with(NULL, make_file(1, DICTIONARY("|O8", "False", "(2, 3)"), 24),
                 EMBLA_ERR_UNSUPPORTED, "N3");
    assert_error_has("pickle");
}

static void rule_n3_other_types_are_refused(void **state)
{
    static const char *const known[] = {"|V2", ">V2", "<V4", "|S5",  "<U3",    "<c8",
                                        "<M8", "<m8", "|b1", "<c16", "<M8[ns]"};
    static const char *const unknown[] = {
        "",    "<",   "<f",   "<f3",  "<f16", "f4",
        "<x4", "!f4", "<f4 ", "<i16", "u1",   "<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4<f4"};
    char text[160];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(known); i++) {
        (void)snprintf(text, sizeof text,
                       "{'descr': '%s', 'fortran_order': False, 'shape': (6,)}\n", known[i]);
        refuses_with(i == 0   ? "n3_void"
                     : i == 4 ? "n3_text"
                              : NULL,
                     make_file(1, text, 24), EMBLA_ERR_UNSUPPORTED, "N3");
    }
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        (void)snprintf(text, sizeof text,
                       "{'descr': '%s', 'fortran_order': False, 'shape': (6,)}\n", unknown[i]);
        refuses_with(i == 0    ? "n3_empty"
                     : i == 1  ? "n3_order_alone"
                     : i == 3  ? "n3_f3"
                     : i == 5  ? "n3_no_order"
                     : i == 11 ? "n3_long"
                               : NULL,
                     make_file(1, text, 24), EMBLA_ERR_FORMAT, "N3");
    }
}

static void rule_n3_a_type_of_several_fields_is_refused(void **state)
{
    (void)state;
    refuses_with("n3_fields",
                 make_file(1,
                           "{'descr': [('a', '<f4'), ('b', '<i4')], 'fortran_order': False, "
                           "'shape': (3,)}\n",
                           24),
                 EMBLA_ERR_UNSUPPORTED, "N3");
}

static void rule_n3_v2_is_bf16_where_the_caller_says_so(void **state)
{
    const embla_open_options as = {.as = EMBLA_BF16};
    one_file f;
    (void)state;
    refuses_with("n3_v2", make_file(1, DICTIONARY("<V2", "False", "(2, 3)"), 12),
                 EMBLA_ERR_UNSUPPORTED, "N3");
    assert_error_has("the option as = bf16");
    accepts(NULL, make_file(1, DICTIONARY("<V2", "False", "(2, 3)"), 12), &as, &f);
    assert_string_equal(f.directory.entries[0].element->name, "BF16");
    assert_false(f.directory.entries[0].made);
    one_close(&f);
    refuses_with(NULL, make_file(1, DICTIONARY("|V2", "False", "(2, 3)"), 12),
                 EMBLA_ERR_UNSUPPORTED, "N3");
    assert_error_has("'|V2' is 2 bytes without a type; if they are bf16, open the file with the "
                     "option as = bf16");
    accepts(NULL, make_file(1, DICTIONARY("|V2", "False", "(2, 3)"), 12), &as, &f);
    assert_string_equal(f.directory.entries[0].element->name, "BF16");
    one_close(&f);
    accepts(NULL, make_file(1, DICTIONARY("<f2", "False", "(2, 3)"), 12), &as, &f);
    assert_string_equal(f.directory.entries[0].element->name, "F16"); /* says what it is */
    one_close(&f);
}

/* ---- N4 ---- */

static void rule_n4_numbers_may_begin_anywhere_with_a_note(void **state)
{
    one_file f;
    char text[80];
    (void)state;
    for (int length = 58; length < 75; length++) {
        (void)snprintf(text, sizeof text, "%-*s\n", length,
                       "{'descr': '<f4', 'fortran_order': False, 'shape': (2, 3)}");
        accepts(length == 58 ? "ok_n4_offset" : NULL, make_file(1, text, 24), NULL, &f);
        assert_int_equal(f.directory.entries[0].offset, 11 + length);
        assert_int_equal(f.directory.note_count, (11 + length) % 16 != 0);
        if (f.directory.note_count > 0) one_note(&f, "(N4)");
        one_close(&f);
    }
}

/* ---- N5 ---- */

static void rule_n5_numbers_end_where_the_file_ends(void **state)
{
    const embla_open_options lenient = {.lenient = true};
    one_file f;
    (void)state;
    refuses_with("n5_short", make_file(1, SHAPE("(2, 3)"), 23), EMBLA_ERR_FORMAT, "N5");
    assert_error_has("needs 24 bytes, but 23 follow");
    refuses_with("n5_tail", make_file(1, SHAPE("(2, 3)"), 25), EMBLA_ERR_FORMAT, "N5");
    accepts(NULL, make_file(1, SHAPE("(2, 3)"), 25), &lenient, &f);
    one_note(&f, "1 bytes after the array are ignored (N5)");
    one_close(&f);
    made_file cut = make_file(1, SHAPE("(2, 3)"), 23);
    one_refuses(FORMAT, "npy", NULL, cut.bytes, cut.size, true, EMBLA_ERR_FORMAT, "N5");
    free(cut.bytes);
}

static void rule_n5_products_that_wrap_are_refused(void **state)
{
    (void)state;
    refuses_with("n5_wraps", make_file(1, SHAPE("(4294967296, 4294967296)"), 0), EMBLA_ERR_FORMAT,
                 "N5");
    refuses_with("n5_bytes_wrap", make_file(1, SHAPE("(4611686018427387904,)"), 0),
                 EMBLA_ERR_FORMAT, "N5");
    refuses_with("n5_largest", make_file(1, SHAPE("(9999999999999999999, 1)"), 24),
                 EMBLA_ERR_FORMAT, "N5");
}

static void rule_n5_more_than_8_dimensions_are_refused(void **state)
{
    (void)state;
    refuses_with("n5_rank_9", make_file(1, SHAPE("(1, 1, 1, 1, 1, 1, 1, 2, 3)"), 24),
                 EMBLA_ERR_UNSUPPORTED, "N5");
}

/* Number i of an array counted as C does, where the file counts as order says. */
static size_t place(bool fortran, size_t rows, size_t dim, size_t i)
{
    return fortran ? i % dim * rows + i / dim : i;
}

/* All rows, and every range of rows, against a loop over single bytes. */
static void check_made(const char *seed, const char *descr, size_t size, bool fortran, size_t rows,
                       size_t dim)
{
    char text[128];
    one_file f;
    size_t bytes = rows * dim * size;
    (void)snprintf(text, sizeof text, "{'descr': '%s', 'fortran_order': %s, 'shape': (%zu, %zu)}\n",
                   descr, fortran ? "True" : "False", rows, dim);
    made_file file = make_file(1, text, bytes);
    const uint8_t *data = file.bytes + file.size - bytes;
    check_fill_bytes(rows * dim, bytes, file.bytes + file.size - bytes);
    uint8_t *wanted = malloc(bytes);
    assert_non_null(wanted);
    for (size_t i = 0; i < rows * dim; i++)
        for (size_t b = 0; b < size; b++)
            wanted[i * size + b] =
                data[place(fortran, rows, dim, i) * size + (descr[0] == '>' ? size - 1 - b : b)];
    one_accepts(FORMAT, "npy", seed, file.bytes, file.size, NULL, &f);
    assert_int_equal(f.directory.entries[0].made, descr[0] == '>' || fortran);
    size_t step = rows < 8 ? 1 : rows / 5;
    for (size_t first = 0; first <= rows; first += step)
        for (size_t count = 0; count <= rows - first; count += step) {
            check_guarded g = check_guard(count * dim * size, 1);
            assert_ok(one_make(&f, first, count, g.bytes));
            if (count > 0)
                assert_memory_equal(g.bytes, wanted + first * dim * size, count * dim * size);
            check_guards(&g);
            check_guard_free(&g);
        }
    one_close(&f);
    free(wanted);
    free(file.bytes);
}

static void rule_n5_columns_are_turned_into_rows(void **state)
{
    (void)state;
    check_made("ok_columns_f4", "<f4", 4, true, 2, 3);
    check_made(NULL, "<f4", 4, true, 1, 1);
    check_made("ok_columns_i1", "|i1", 1, true, 5, 40);
    check_made("ok_columns_f2", "<f2", 2, true, 33, 17);
    check_made("ok_columns_f8", "<f8", 8, true, 7, 16);
    check_made(NULL, "<f4", 4, true, 9001, 5); /* several blocks of rows */
    check_made(NULL, "<f4", 4, true, 3, 1000); /* several blocks of columns */
}

static void rule_n5_big_endian_numbers_are_swapped(void **state)
{
    (void)state;
    check_made(NULL, ">f4", 4, false, 2, 3);
    check_made(NULL, ">f2", 2, false, 5, 7);
    check_made(NULL, ">f8", 8, false, 3, 4);
    check_made("ok_columns_big_u8", ">u8", 8, true, 6, 5);
    check_made(NULL, ">f4", 4, true, 100, 37);
}

static void rule_n5_one_row_and_one_number_are_made_too(void **state)
{
    one_file f;
    uint8_t out[24];
    (void)state;
    accepts("ok_big_row", make_file(1, DICTIONARY(">f4", "True", "(6,)"), 24), NULL, &f);
    assert_true(f.directory.entries[0].made);
    assert_ok(one_make(&f, 0, 1, out));
    assert_memory_equal(out, "\4\3\2\1\10\7\6\5", 8);
    one_close(&f);
    accepts("ok_big_scalar", make_file(1, DICTIONARY(">f2", "True", "()"), 2), NULL, &f);
    assert_ok(one_make(&f, 0, 1, out));
    assert_memory_equal(out, "\2\1", 2);
    one_close(&f);
    accepts("ok_fortran_row", make_file(1, DICTIONARY("<f4", "True", "(6,)"), 24), NULL, &f);
    assert_false(f.directory.entries[0].made); /* lies there as it is */
    one_close(&f);
    accepts("ok_fortran_no_rows", make_file(1, DICTIONARY("<f4", "True", "(0, 5)"), 0), NULL, &f);
    assert_ok(one_make(&f, 0, 0, out));
    one_close(&f);
}

static void rule_n5_more_than_two_dimensions_are_not_turned(void **state)
{
    one_file f;
    uint8_t out[24];
    (void)state;
    accepts("ok_fortran_rank_3", make_file(1, DICTIONARY("<f4", "True", "(1, 2, 3)"), 24), NULL,
            &f);
    assert_status(one_make(&f, 0, 1, out), EMBLA_ERR_UNSUPPORTED);
    one_sentence("N5");
    one_close(&f);
    accepts("ok_big_rank_3", make_file(1, DICTIONARY(">f4", "False", "(2, 1, 3)"), 24), NULL, &f);
    assert_ok(one_make(&f, 1, 1, out));
    assert_memory_equal(out, "\20\17\16\15", 4);
    one_close(&f);
}

static void rows_outside_the_array_are_refused(void **state)
{
    one_file f;
    uint8_t out[24];
    (void)state;
    accepts("ok_fortran", make_file(1, DICTIONARY("<f4", "True", "(2, 3)"), 24), NULL, &f);
    assert_status(one_make(&f, 2, 1, out), EMBLA_ERR_RANGE);
    assert_status(one_make(&f, 0, 3, out), EMBLA_ERR_RANGE);
    assert_status(one_make(&f, 3, 0, out), EMBLA_ERR_RANGE);
    assert_status(one_make(&f, 1, UINT64_MAX, out), EMBLA_ERR_RANGE);
    one_close(&f);
}

/* ---- N6 ---- */

/* An archive of arrays is none of ours; who refuses it says why. */
static void rule_n6_an_archive_is_not_read(void **state)
{
    uint8_t zip[80] = "PK\3\4";
    const embla_format *format = NULL;
    embla_map *map = NULL;
    embla_directory directory = {0};
    (void)state;
    memcpy(zip + 4, "\x14\0\0\0\0\0\0\0\0\0\0\0\0\0\4\0\0\0\4\0\0\0\5\0\0\0w.npy1234", 35);
    assert_false(FORMAT->sniff(zip, sizeof zip, sizeof zip));
    assert_ok(embla_map_bytes(zip, sizeof zip, ONE_NAME, &map));
    embla_status status = embla_format_of(map, &format);
    if (status == EMBLA_OK) status = format->read(map, NULL, &directory);
    assert_true(status == EMBLA_ERR_UNSUPPORTED || status == EMBLA_ERR_FORMAT);
    one_sentence("N6");
    embla_directory_free(&directory);
    embla_map_free(map);
}

/* ---- writing ---- */

/* Byte for byte what NumPy 1.24 writes for these. */
static void the_header_is_that_of_numpy(void **state)
{
    char head[EMBLA_NPY_HEADER_MOST];
    const uint64_t shape[EMBLA_TENSOR_RANK_MAX] = {3, 4};
    const char *text = "{'descr': '<f4', 'fortran_order': False, 'shape': (3, 4), }";
    (void)state;
    assert_int_equal(embla_npy_header(embla_element_of(EMBLA_F32), 2, shape, head), 128);
    assert_memory_equal(head, "\x93NUMPY\1\0\x76\0", 10);
    assert_memory_equal(head + 10, text, strlen(text));
    for (size_t i = 10 + strlen(text); i < 127; i++) assert_int_equal(head[i], ' ');
    assert_int_equal(head[127], '\n');
    embla_npy_header(embla_element_of(EMBLA_I8), 1, shape, head);
    assert_memory_equal(head + 10, "{'descr': '|i1', 'fortran_order': False, 'shape': (3,), } ",
                        58);
    /* the room for the first dimension to grow, where it decides */
    const uint64_t edge[] = {10, 1000000000000000000, 10000000000000000};
    const uint64_t over[] = {10, 1000000000000000000, 100000000000000000};
    assert_int_equal(embla_npy_header(embla_element_of(EMBLA_F32), 3, edge, head), 128);
    assert_int_equal(embla_npy_header(embla_element_of(EMBLA_F32), 3, over, head), 192);
    embla_npy_header(embla_element_of(EMBLA_F64), 0, shape, head);
    assert_memory_equal(head + 10, "{'descr': '<f8', 'fortran_order': False, 'shape': (), } ", 56);
}

static void the_longest_header_fits(void **state)
{
    check_guarded g = check_guard(EMBLA_NPY_HEADER_MOST, 0);
    uint64_t shape[EMBLA_TENSOR_RANK_MAX];
    (void)state;
    for (size_t i = 0; i < EMBLA_TENSOR_RANK_MAX; i++) shape[i] = UINT64_MAX;
    for (uint32_t rank = 0; rank <= EMBLA_TENSOR_RANK_MAX; rank++) {
        size_t length = embla_npy_header(embla_element_of(EMBLA_F32), rank, shape, (char *)g.bytes);
        assert_in_range(length, 64, EMBLA_NPY_HEADER_MOST);
        assert_int_equal(length % 64, 0);
    }
    check_guards(&g);
    check_guard_free(&g);
}

/* What is written reads back, for every dtype there is a name for. */
static void what_is_written_reads_back(void **state)
{
    scratch s;
    const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_F64, EMBLA_F16, EMBLA_I8};
    const size_t rows = 70, dim = 1001; /* above one block, in f32 */
    (void)state;
    scratch_new(&s);
    uint8_t *data = malloc(rows * dim * 8);
    assert_non_null(data);
    check_fill_bytes(5, rows * dim * 8, data);
    for (size_t i = 0; i < COUNT_OF(dtypes); i++) {
        one_source source;
        embla_part part = one_part(&source, data, dtypes[i], 2, rows, dim);
        const embla_contents contents = {.parts = &part, .count = 1};
        const char *path = scratch_path(&s, "a.npy");
        size_t size = 0;
        one_file f;
        assert_ok(one_write(FORMAT, path, &contents));
        unsigned char *bytes = scratch_read(path, &size);
        one_accepts(FORMAT, "npy", NULL, bytes, size, NULL, &f);
        one_shape(&f, rows, dim);
        assert_ptr_equal(f.directory.entries[0].element, part.element);
        assert_int_equal(f.directory.note_count, 0);
        assert_int_equal(f.directory.entries[0].offset % 64, 0);
        assert_memory_equal(bytes + f.directory.entries[0].offset, data, part.bytes);
        one_close(&f);
        free(bytes);
    }
    free(data);
    scratch_free(&s);
}

static void what_npy_does_not_have_is_not_written(void **state)
{
    scratch s;
    one_source source;
    const uint8_t data[64] = {0};
    (void)state;
    scratch_new(&s);
    embla_part parts[2] = {one_part(&source, data, EMBLA_BF16, 2, 2, 3)};
    embla_contents contents = {.parts = parts, .count = 1};
    assert_status(one_write(FORMAT, scratch_path(&s, "a.npy"), &contents), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("BF16");
    assert_error_has("the option dtype = f32");
    parts[0] = one_part(&source, data, EMBLA_Q8_0, 2, 1, 32);
    assert_status(one_write(FORMAT, scratch_path(&s, "a.npy"), &contents), EMBLA_ERR_UNSUPPORTED);
    parts[0] = parts[1] = one_part(&source, data, EMBLA_F32, 2, 2, 3);
    contents.count = 2;
    assert_status(one_write(FORMAT, scratch_path(&s, "a.npy"), &contents), EMBLA_ERR_SHAPE);
    contents.count = 0;
    assert_status(one_write(FORMAT, scratch_path(&s, "a.npy"), &contents), EMBLA_ERR_SHAPE);
    contents.count = 1;
    source.fail_after = 1;
    assert_status(one_write(FORMAT, scratch_path(&s, "a.npy"), &contents), EMBLA_ERR_IO);
    assert_int_equal(scratch_count(&s, NULL), 0);
    scratch_free(&s);
}

/* ---- failures ---- */

static embla_status read_and_make(void *context)
{
    embla_map *map = NULL;
    embla_directory directory = {0};
    float rows[100 * 20];
    EMBLA_TRY(embla_map_open(EMBLA_HERE, context, context, true, &map));
    embla_status status = FORMAT->read(map, NULL, &directory);
    if (status == EMBLA_OK)
        status = directory.make(&directory, map, directory.entries, 0, 100, rows);
    embla_directory_free(&directory);
    embla_map_free(map);
    return status;
}

static embla_status write_one(void *context)
{
    static const float data[200] = {1.0f};
    one_source source;
    embla_part part = one_part(&source, data, EMBLA_F32, 2, 20, 10);
    const embla_contents contents = {.parts = &part, .count = 1};
    return one_write(FORMAT, context, &contents);
}

static void every_failure_is_reported_and_leaves_nothing(void **state)
{
    scratch s;
    char path[SCRATCH_PATH];
    (void)state;
    scratch_new(&s);
    made_file f = make_file(1, DICTIONARY(">f4", "True", "(100, 20)"), 8000);
    assert_true((f.size - 8000) % 16 != 0); /* there is a note, which takes memory too */
    (void)snprintf(path, sizeof path, "%s", scratch_path(&s, "a.npy"));
    scratch_write(path, f.bytes, f.size);
    one_failing(read_and_make, path, true);
    one_failing(read_and_make, path, false);
    one_failing(write_one, path, true);
    one_failing(write_one, path, false);
    assert_int_equal(scratch_count(&s, NULL), 1);
    free(f.bytes);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_n1_the_magic_number_is_needed),
        cmocka_unit_test(rule_n1_versions_1_2_and_3_are_read),
        cmocka_unit_test(rule_n1_other_versions_are_refused_by_number),
        cmocka_unit_test(rule_n1_a_header_above_10000_bytes_is_refused),
        cmocka_unit_test(rule_n1_a_header_that_ends_after_the_file_is_refused),
        cmocka_unit_test(rule_n2_keys_in_any_order_and_either_quote),
        cmocka_unit_test(rule_n2_each_key_once),
        cmocka_unit_test(rule_n2_no_escapes_and_only_printable_ascii),
        cmocka_unit_test(rule_n2_the_grammar_and_nothing_else),
        cmocka_unit_test(rule_n2_shapes),
        cmocka_unit_test(rule_n2_a_number_of_python_2_ends_in_l_before_version_3),
        cmocka_unit_test(rule_n3_the_numbers_that_are_read),
        cmocka_unit_test(rule_n3_python_objects_are_a_pickle),
        cmocka_unit_test(rule_n3_other_types_are_refused),
        cmocka_unit_test(rule_n3_a_type_of_several_fields_is_refused),
        cmocka_unit_test(rule_n3_v2_is_bf16_where_the_caller_says_so),
        cmocka_unit_test(rule_n4_numbers_may_begin_anywhere_with_a_note),
        cmocka_unit_test(rule_n5_numbers_end_where_the_file_ends),
        cmocka_unit_test(rule_n5_products_that_wrap_are_refused),
        cmocka_unit_test(rule_n5_more_than_8_dimensions_are_refused),
        cmocka_unit_test(rule_n5_columns_are_turned_into_rows),
        cmocka_unit_test(rule_n5_big_endian_numbers_are_swapped),
        cmocka_unit_test(rule_n5_one_row_and_one_number_are_made_too),
        cmocka_unit_test(rule_n5_more_than_two_dimensions_are_not_turned),
        cmocka_unit_test(rows_outside_the_array_are_refused),
        cmocka_unit_test(rule_n6_an_archive_is_not_read),
        cmocka_unit_test(the_header_is_that_of_numpy),
        cmocka_unit_test(the_longest_header_fits),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(what_npy_does_not_have_is_not_written),
        cmocka_unit_test(every_failure_is_reported_and_leaves_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
