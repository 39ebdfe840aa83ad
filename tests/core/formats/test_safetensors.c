/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors reader, rule by rule (S1 to S12): what is accepted, what is refused, and
 * with which sentence. Then what no rule of the format names: memory that fails, calls to
 * the system that fail, a file cut short while open, and real files.
 */
#include <errno.h>

#include "files/io.h"
#include "safetensors_file.h"
#include "scratch.h"

#define TWO                                                                                        \
    "{\"b\":{" ST_MEMBERS("F32", "[2,3]", "[4,28]") "},\"a\":{" ST_MEMBERS("F16", "[2]",           \
                                                                           "[0,4]") "}}"

static void two_tensors_are_read(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_f32_two_tensors", TWO, 28, &d);
    assert_int_equal(d.count, 2);
    assert_string_equal(d.entries[0].name, "b"); /* in the order of the header */
    assert_string_equal(d.entries[0].element->name, "F32");
    assert_int_equal(d.entries[0].rank, 2);
    assert_int_equal(d.entries[0].shape[0], 2);
    assert_int_equal(d.entries[0].shape[1], 3);
    assert_int_equal(d.entries[0].bytes, 24);
    assert_int_equal(d.entries[0].offset, 8 + strlen(TWO) + 4);
    assert_false(d.entries[0].made);
    assert_string_equal(d.entries[1].name, "a");
    assert_int_equal(d.entries[1].offset, 8 + strlen(TWO));
    embla_directory_free(&d);
}

static void no_tensors_are_fine(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_no_tensors", "{}", 0, &d);
    assert_int_equal(d.count, 0);
    embla_directory_free(&d);
    st_accepts("ok_only_metadata", "{\"__metadata__\":{}}", 0, &d);
    assert_int_equal(d.count + d.pair_count, 0);
    embla_directory_free(&d);
}

static void a_file_is_known_by_its_first_bytes(void **state)
{
    const embla_format *f = &embla_format_safetensors;
    uint8_t head[16] = {2, 0, 0, 0, 0, 0, 0, 0, '{', '}'};
    (void)state;
    assert_string_equal(f->name, "safetensors");
    assert_string_equal(f->extension, ".safetensors");
    assert_false(f->one_table);
    assert_true(f->sniff(head, 10, 10));
    assert_true(f->sniff(head, 9, 9)); /* cut short: read says so */
    assert_false(f->sniff(head, 8, 8));
    assert_false(f->sniff(head, 0, 0));
    head[8] = '\n';
    assert_true(f->sniff(head, 10, 10));
    head[8] = '[';
    assert_false(f->sniff(head, 10, 10));
    head[8] = '{';
    head[4] = 1; /* a length of 4 GB: the first words of a text look like this */
    assert_false(f->sniff(head, 10, 10));
}

static void rule_s1_a_file_below_8_bytes_is_refused(void **state)
{
    (void)state;
    st_file f = st_make(2, "", 0, 0);
    f.size = 7;
    st_refuses_file("s1_seven_bytes", f, false, "S1");
    assert_error_has("7 bytes");
    f = st_make(2, "", 0, 0);
    f.size = 0;
    st_refuses_file("s1_empty", f, false, "S1");
}

static void rule_s1_the_length_has_limits(void **state)
{
    static const struct {
        const char *seed;
        uint64_t length;
        const char *says;
    } cases[] = {
        {"s1_length_0", 0, "it must be 2 to 100000000"},
        {"s1_length_1", 1, "it must be 2 to 100000000"},
        {"s1_length_100000001", 100000001, "100000001 bytes; it must be"},
        {"s1_length_2_to_63", UINT64_C(1) << 63, "9223372036854775808 bytes; it must be"},
        {"s1_length_all_ones", UINT64_MAX, "18446744073709551615 bytes; it must be"},
        {"s1_length_minus_8", UINT64_MAX - 7, "it must be 2 to"},
        {"s1_length_100000000", 100000000, "100000000 bytes, but only 2 are left"},
        {"s1_length_one_too_many", 3, "3 bytes, but only 2 are left"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        st_refuses_file(cases[i].seed, st_make(cases[i].length, "{}", 2, 0), false, "S1");
        assert_error_has(cases[i].says);
    }
}

static void rule_s2_the_first_byte_is_a_brace(void **state)
{
    embla_directory d;
    (void)state;
    st_refuses("s2_array", "[]", 0, "S2");
    assert_error_has("0x5b");
    st_refuses("s2_byte_order_mark", "\xef\xbb\xbf{}", 0, "S2");
    st_refuses("s2_leading_space", " {}", 0, "S2");
    st_refuses("s2_leading_newline", "\n{}", 0, "S2");
    st_accepts_file("ok_lenient_leading_space", st_make(7, "\t\r\n  {}", 7, 0), true, &d);
    embla_directory_free(&d);
    st_refuses_file("s2_lenient_only_spaces", st_make(4, "    ", 4, 0), true, "S2");
    st_refuses_file("s2_lenient_array", st_make(4, "  []", 4, 0), true, "S2");
    st_refuses_file("s2_lenient_vertical_tab", st_make(3, "\v{}", 3, 0), true, "S2");
}

static void rule_s2_the_header_is_utf8(void **state)
{
    static const struct {
        const char *seed, *name;
    } cases[] = {
        {"s2_utf8_continuation", "\x80"},      {"s2_utf8_overlong", "\xc0\xaf"},
        {"s2_utf8_surrogate", "\xed\xa0\x80"}, {"s2_utf8_cut", "\xe2\x82"},
        {"s2_utf8_above", "\xf4\x90\x80\x80"}, {"s2_utf8_latin1", "caf\xe9"},
    };
    embla_directory d;
    char header[128];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(header, sizeof header, "{\"%s\":{" ST_MEMBERS("I8", "[0]", "[0,0]") "}}",
                       cases[i].name);
        st_refuses(cases[i].seed, header, 0, "S2");
        assert_error_has("UTF-8");
    }
    st_accepts(
        "ok_utf8_name",
        "{\"caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80\":{" ST_MEMBERS("I8", "[0]", "[0,0]") "}}", 0,
        &d);
    assert_string_equal(d.entries[0].name, "caf\xc3\xa9 \xe2\x82\xac \xf0\x9f\x98\x80");
    embla_directory_free(&d);
}

static void rule_s3_only_white_space_follows_the_header(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_padded_spaces", "{}      ", 0, &d);
    embla_directory_free(&d);
    st_accepts("ok_padded_others", "{} \t\r\n", 0, &d);
    embla_directory_free(&d);
    st_refuses("s3_second_object", "{}{}", 0, "S3");
    st_refuses("s3_letter", "{} x", 0, "S3");
    assert_error_has("0x78");
    st_refuses("s3_form_feed", "{} \f", 0, "S3");
    st_refuses_file("s3_zero", st_make(4, "{}\0 ", 4, 0), false, "S3");
}

static void rule_s4_the_header_is_json(void **state)
{
    static const struct {
        const char *seed, *header;
    } cases[] = {
        {"s4_not_closed", "{\"a\":{"},
        {"s4_string_not_closed", "{\"a"},
        {"s4_ends_in_backslash", "{\"a\\"},
        {"s4_comment", "{/* */}"},
        {"s4_trailing_comma", ST_A(ST_MEMBERS("I8", "[1,]", "[0,1]"))},
        {"s4_trailing_comma_in_object", "{\"a\":{\"dtype\":\"I8\",}}"},
        {"s4_not_a_number", ST_A(ST_MEMBERS("I8", "[NaN]", "[0,1]"))},
        {"s4_infinity", ST_A(ST_MEMBERS("I8", "[Infinity]", "[0,1]"))},
        {"s4_single_quotes", "{'a':{}}"},
        {"s4_lone_surrogate", "{\"\\ud800\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}"},
        {"s4_raw_control", "{\"\n\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}"},
        {"s4_wrong_bracket", "{\"a\":{"
                             "\"shape\":[}]"},
        {"s4_missing_colon", "{\"a\"{}}"},
        {"s4_no_value_of_a_tensor", "{\"a\":}"},
        {"s4_no_value_of_a_member", "{\"a\":{\"dtype\":}}"},
        {"s4_no_value_in_metadata", "{\"__metadata__\":{\"k\":}}"},
        {"s4_no_second_offset", ST_A("\"data_offsets\":[0,]")},
        {"s4_offsets_not_closed", "{\"a\":{\"data_offsets\":[0,1"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++)
        st_refuses(cases[i].seed, cases[i].header, 1, "S4");
}

static void rule_s4_there_are_two_levels(void **state)
{
    (void)state;
    st_refuses("s4_object_in_object", "{\"a\":{\"b\":{}}}", 0, "S4");
    st_refuses("s4_object_in_array", ST_A("\"shape\":[{}]"), 0, "S4");
    st_refuses("s4_array_in_array", ST_A("\"shape\":[[]]"), 0, "S4");
    st_refuses("s4_array_for_tensor", "{\"a\":[]}", 0, "S4");
    st_refuses("s4_number_for_tensor", "{\"a\":7}", 0, "S4");
    st_refuses("s4_null_for_tensor", "{\"a\":null}", 0, "S4");
    st_refuses("s4_text_for_tensor", "{\"a\":\"F32\"}", 0, "S4");
    char header[256] = "{\"";
    memset(header + 2, 'n', 130);
    memcpy(header + 132, "\":7}", 5);
    st_refuses("s4_number_for_a_long_name", header, 0, "S4");
    header[1] = '\'';
    memcpy(header + 130, "' is", 5); /* 128 bytes of it are shown */
    assert_error_has(header + 1);
}

static void rule_s4_numbers_are_natural(void **state)
{
    static const struct {
        const char *seed, *shape;
    } cases[] = {
        {"s4_minus", "[-1]"},
        {"s4_minus_zero", "[-0]"},
        {"s4_plus", "[+1]"},
        {"s4_fraction", "[1.0]"},
        {"s4_exponent", "[1e0]"},
        {"s4_exponent_capital", "[1E0]"},
        {"s4_leading_zero", "[01]"},
        {"s4_hexadecimal", "[0x1]"},
        {"s4_2_to_63", "[9223372036854775808]"},
        {"s4_2_to_64_plus_1", "[18446744073709551617]"},
        {"s4_21_digits", "[100000000000000000001]"},
        {"s4_40_digits", "[1000000000000000000000000000000000000000]"},
    };
    embla_directory d;
    char header[128];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(header, sizeof header, ST_A(ST_MEMBERS("I8", "%s", "[0,1]")),
                       cases[i].shape);
        st_refuses(cases[i].seed, header, 1, "S4");
    }
    st_refuses("s4_offset_minus", ST_A(ST_MEMBERS("I8", "[1]", "[-1,1]")), 1, "S4");
    st_accepts("ok_dim_2_to_63_minus_1", ST_A(ST_MEMBERS("I8", "[0,9223372036854775807]", "[0,0]")),
               0, &d);
    assert_int_equal(d.entries[0].shape[1], INT64_MAX);
    embla_directory_free(&d);
    st_accepts("ok_minus_in_name", "{\"-1.5e+3\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", 1, &d);
    embla_directory_free(&d);
}

static void rule_s5_no_key_occurs_twice(void **state)
{
#define ONE "{" ST_MEMBERS("I8", "[1]", "[0,1]") "}"
    (void)state;
    st_refuses("s5_tensor_twice", "{\"a\":" ONE ",\"a\":" ONE "}", 1, "S5");
    st_refuses("s5_tensor_twice_escaped", "{\"a\":" ONE ",\"\\u0061\":" ONE "}", 1, "S5");
    st_refuses("s5_member_twice", ST_A("\"dtype\":\"I8\"," ST_MEMBERS("I8", "[1]", "[0,1]")), 1,
               "S5");
    st_refuses("s5_metadata_twice", "{\"__metadata__\":{},\"__metadata__\":{}}", 0, "S5");
    st_refuses("s5_pair_twice", "{\"__metadata__\":{\"k\":\"1\",\"k\":\"2\"}}", 0, "S5");
#undef ONE
}

static void rule_s6_a_tensor_has_three_members(void **state)
{
    embla_directory d;
    (void)state;
    st_refuses("s6_no_members", ST_A(""), 0, "S6");
    st_refuses("s6_no_dtype", ST_A("\"shape\":[1],\"data_offsets\":[0,1]"), 1, "S6");
    st_refuses("s6_no_shape", ST_A("\"dtype\":\"I8\",\"data_offsets\":[0,1]"), 1, "S6");
    st_refuses("s6_no_offsets", ST_A("\"dtype\":\"I8\",\"shape\":[1]"), 1, "S6");
    st_refuses("s6_unknown_member", ST_A(ST_MEMBERS("I8", "[1]", "[0,1]") ",\"x\":0"), 1, "S6");
    assert_error_has("4 members");
    st_refuses("s6_wrong_name", ST_A("\"Dtype\":\"I8\",\"shape\":[1],\"data_offsets\":[0,1]"), 1,
               "S6");
    st_accepts("ok_members_in_any_order",
               ST_A("\"data_offsets\":[0,1],\"shape\":[1],\"dtype\":\"I8\""), 1, &d);
    embla_directory_free(&d);
}

static void rule_s7_every_dtype_has_its_size(void **state)
{
    embla_directory d;
    char header[160], seed[64];
    size_t types = 0;
    (void)state;
    for (size_t i = 0; embla_element_at(i); i++) {
        const embla_element *e = embla_element_at(i);
        if (!e->safetensors) continue;
        types++;
        unsigned bytes = 8 * e->block_bits / 8; /* of 8 numbers */
        (void)snprintf(header, sizeof header, ST_A(ST_MEMBERS("%s", "[2,4]", "[0,%u]")),
                       e->safetensors, bytes);
        (void)snprintf(seed, sizeof seed, "ok_%s", e->safetensors);
        for (char *c = seed; *c; c++)
            if (*c >= 'A' && *c <= 'Z') *c = (char)(*c + 'a' - 'A');
        st_accepts(seed, header, bytes, &d);
        assert_ptr_equal(d.entries[0].element, e);
        assert_int_equal(d.entries[0].bytes, bytes);
        embla_directory_free(&d);
    }
    assert_int_equal(types, 22);
}

static void rule_s7_an_unknown_dtype_is_refused(void **state)
{
    (void)state;
    st_refuses("s7_unknown", ST_A(ST_MEMBERS("F128", "[1]", "[0,16]")), 16, "S7");
    assert_error_has("'F128'");
    st_refuses("s7_lower_case", ST_A(ST_MEMBERS("f32", "[1]", "[0,4]")), 4, "S7");
    st_refuses("s7_of_gguf", ST_A(ST_MEMBERS("Q4_0", "[32]", "[0,18]")), 18, "S7");
    st_refuses("s7_of_40_letters",
               ST_A(ST_MEMBERS("FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF", "[1]", "[0,1]")), 1,
               "S7");
    assert_error_has("'FFFFFFFFFFFFFFFFFFFFFFFFFFFFFFFF'"); /* 32 of them */
    st_refuses("s7_empty", ST_A(ST_MEMBERS("", "[1]", "[0,1]")), 1, "S7");
    st_refuses("s7_number", ST_A("\"dtype\":8,\"shape\":[1],\"data_offsets\":[0,1]"), 1, "S7");
}

static void rule_s8_the_shape_gives_the_bytes(void **state)
{
    (void)state;
    st_refuses("s8_too_few_bytes", ST_A(ST_MEMBERS("F32", "[2]", "[0,4]")), 4, "S8");
    assert_error_has("has 4 bytes, but its shape needs 8");
    st_refuses("s8_too_many_bytes", ST_A(ST_MEMBERS("F32", "[1]", "[0,8]")), 8, "S8");
    st_refuses("s8_zero_dim_with_bytes", ST_A(ST_MEMBERS("F32", "[0]", "[0,4]")), 4, "S8");
    st_refuses("s8_f4_half_a_byte", ST_A(ST_MEMBERS("F4", "[3]", "[0,2]")), 2, "S8");
    st_refuses("s8_f4_half_a_byte_down", ST_A(ST_MEMBERS("F4", "[3]", "[0,1]")), 1, "S8");
    st_refuses("s8_f6_part_of_a_byte", ST_A(ST_MEMBERS("F6_E2M3", "[5]", "[0,4]")), 4, "S8");
    st_refuses("s8_product_wraps_to_0", ST_A(ST_MEMBERS("F32", "[4294967296,4294967296]", "[0,0]")),
               0, "S8");
    st_refuses("s8_bytes_wrap_to_0", ST_A(ST_MEMBERS("F32", "[4611686018427387904]", "[0,0]")), 0,
               "S8");
    st_refuses("s8_bits_wrap_to_8", ST_A(ST_MEMBERS("I8", "[2305843009213693953]", "[0,1]")), 1,
               "S8");
}

static void rule_s8_the_shape_is_0_to_8_numbers(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_rank_0", ST_A(ST_MEMBERS("F64", "[]", "[0,8]")), 8, &d);
    assert_int_equal(d.entries[0].rank, 0);
    embla_directory_free(&d);
    st_accepts("ok_rank_8", ST_A(ST_MEMBERS("I8", "[1,2,1,1,1,1,1,3]", "[0,6]")), 6, &d);
    assert_int_equal(d.entries[0].rank, 8);
    assert_int_equal(d.entries[0].shape[7], 3);
    embla_directory_free(&d);
    st_accepts("ok_zero_dim", ST_A(ST_MEMBERS("F32", "[3,0,5]", "[0,0]")), 0, &d);
    embla_directory_free(&d);
    st_refuses("s8_rank_9", ST_A(ST_MEMBERS("I8", "[1,1,1,1,1,1,1,1,1]", "[0,1]")), 1, "S8");
    assert_error_has("more than 8 dimensions");
    st_refuses("s8_shape_is_number", ST_A(ST_MEMBERS("I8", "1", "[0,1]")), 1, "S8");
    st_refuses("s8_shape_is_null", ST_A(ST_MEMBERS("I8", "null", "[0,1]")), 1, "S8");
    st_refuses("s8_dim_is_text", ST_A(ST_MEMBERS("I8", "[\"1\"]", "[0,1]")), 1, "S8");
    st_refuses("s8_dim_is_true", ST_A(ST_MEMBERS("I8", "[1,true]", "[0,1]")), 1, "S8");
}

static void rule_s9_offsets_are_two_numbers(void **state)
{
    (void)state;
    st_refuses("s9_one_offset", ST_A(ST_MEMBERS("I8", "[1]", "[1]")), 1, "S9");
    st_refuses("s9_three_offsets", ST_A(ST_MEMBERS("I8", "[1]", "[0,1,1]")), 1, "S9");
    st_refuses("s9_first_is_text", ST_A(ST_MEMBERS("I8", "[1]", "[\"0\",1]")), 1, "S9");
    st_refuses("s9_second_is_null", ST_A(ST_MEMBERS("I8", "[1]", "[0,null]")), 1, "S9");
    st_refuses("s9_offsets_are_number", ST_A(ST_MEMBERS("I8", "[1]", "2")), 1, "S9");
    st_refuses("s9_end_before_begin", ST_A(ST_MEMBERS("I8", "[1]", "[1,0]")), 1, "S9");
    assert_error_has("begins at 1 but ends before that, at 0");
    st_refuses("s9_end_past_the_data", ST_A(ST_MEMBERS("I8", "[2]", "[0,2]")), 1, "S9");
    assert_error_has("'a' ends at 2, but there are only 1 bytes of data (S9)");
    st_refuses("s9_end_2_to_63_minus_1",
               ST_A(ST_MEMBERS("I8", "[1]", "[9223372036854775806,9223372036854775807]")), 1, "S9");
}

#define PAIR(a_shape, a_offsets, b_shape, b_offsets)                                               \
    "{\"a\":{" ST_MEMBERS("I8", a_shape, a_offsets) "},\"b\":{" ST_MEMBERS("I8", b_shape,          \
                                                                           b_offsets) "}}"

static void rule_s9_a_hole_between_tensors_is_refused(void **state)
{
    (void)state;
    st_refuses("s9_hole", PAIR("[2]", "[0,2]", "[2]", "[3,5]"), 5, "S9");
    assert_error_has("'b' begins at 3, but the one before it ends at 2: a gap");
    st_refuses("s9_hole_at_front", ST_A(ST_MEMBERS("I8", "[1]", "[1,2]")), 2, "S9");
}

static void rule_s9_an_overlap_is_refused(void **state)
{
    (void)state;
    st_refuses("s9_overlap", PAIR("[3]", "[0,3]", "[3]", "[2,5]"), 5, "S9");
    assert_error_has("they overlap");
    st_refuses("s9_same_bytes_twice", PAIR("[2]", "[0,2]", "[2]", "[0,2]"), 2, "S9");
    st_refuses("s9_one_inside_the_other", PAIR("[4]", "[0,4]", "[2]", "[1,3]"), 4, "S9");
}

static void rule_s9_a_tail_is_refused(void **state)
{
    (void)state;
    st_refuses("s9_tail", ST_A(ST_MEMBERS("I8", "[1]", "[0,1]")), 2, "S9");
    assert_error_has("ends at 1, but there are 2 bytes of data");
    st_refuses("s9_tail_no_tensors", "{}", 1, "S9");
    st_refuses("s9_cut_short", ST_A(ST_MEMBERS("I8", "[2]", "[0,2]")), 1, "S9");
}

static void rule_s9_empty_tensors_tile_in_order(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_empty_between",
               "{\"a\":{" ST_MEMBERS("I8", "[2]", "[0,2]") "},\"e\":{" ST_MEMBERS(
                   "F32", "[0]",
                   "[2,2]") "},\"f\":{" ST_MEMBERS("F32", "[0,4]",
                                                   "[2,2]") "},"
                                                            "\"b\":{" ST_MEMBERS("I8", "[1]",
                                                                                 "[2,3]") "}}",
               3, &d);
    assert_int_equal(d.count, 4);
    embla_directory_free(&d);
    st_accepts("ok_empty_at_end", PAIR("[2]", "[0,2]", "[0]", "[2,2]"), 2, &d);
    embla_directory_free(&d);
    st_refuses("s9_empty_inside", PAIR("[2]", "[0,2]", "[0]", "[1,1]"), 2, "S9");
    st_refuses("s9_empty_past_the_end", PAIR("[2]", "[0,2]", "[0]", "[3,3]"), 2, "S9");
}

/* Any order in the header; the order of data is found by sorting. */
static void rule_s9_many_tensors_in_any_order(void **state)
{
    enum { MANY = 300 };
    static char header[MANY * 80];
    uint64_t random = 9;
    uint32_t order[MANY];
    embla_directory d;
    (void)state;
    for (int round = 0; round < 20; round++) {
        size_t used = 0;
        for (uint32_t i = 0; i < MANY; i++) {
            uint32_t j = (uint32_t)check_below(&random, i + 1);
            order[i] = order[j];
            order[j] = i;
        }
        for (uint32_t i = 0; i < MANY; i++)
            used += (size_t)snprintf(header + used, sizeof header - used,
                                     "%c\"t%u\":{" ST_MEMBERS("I8", "[3]", "[%u,%u]") "}",
                                     i == 0 ? '{' : ',', order[i], 3 * order[i], 3 * order[i] + 3);
        header[used++] = '}';
        st_accepts_file(NULL, st_make(used, header, used, 3 * MANY), false, &d);
        for (uint32_t i = 0; i < MANY; i++)
            assert_int_equal(d.entries[i].offset, 8 + used + 3 * order[i]);
        embla_directory_free(&d);
    }
}

static void rule_s10_metadata_is_text(void **state)
{
    embla_directory d;
    (void)state;
    st_accepts("ok_metadata", "{\"__metadata__\":{\"format\":\"pt\",\"\":\"\\u00e9\\n\"}}", 0, &d);
    assert_int_equal(d.pair_count, 2);
    assert_string_equal(d.pairs[0].key, "format");
    assert_string_equal(d.pairs[0].value, "pt");
    assert_string_equal(d.pairs[1].key, "");
    assert_string_equal(d.pairs[1].value, "\xc3\xa9\n");
    embla_directory_free(&d);
    st_refuses("s10_number", "{\"__metadata__\":{\"k\":1}}", 0, "S10");
    st_refuses("s10_null", "{\"__metadata__\":{\"k\":null}}", 0, "S10");
    st_refuses("s10_array", "{\"__metadata__\":{\"k\":[]}}", 0, "S10");
    st_refuses("s10_metadata_is_text", "{\"__metadata__\":\"pt\"}", 0, "S10");
    st_refuses("s10_metadata_is_null", "{\"__metadata__\":null}", 0, "S10");
    /* a tensor whose name is as long */
    st_accepts("ok_name_of_12_letters", "{\"__metadata_.\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}",
               1, &d);
    assert_int_equal(d.count, 1);
    assert_int_equal(d.pair_count, 0);
    embla_directory_free(&d);
    char header[256] = "{\"__metadata__\":{\"";
    size_t used = strlen(header);
    memset(header + used, 'k', 130);
    memcpy(header + used + 130, "\":1}}", 6);
    st_refuses("s10_number_of_a_long_key", header, 0, "S10");
    header[used - 1] = '\'';
    memcpy(header + used + 128, "' in", 5); /* 128 bytes of it are shown */
    assert_error_has(header + used - 1);
}

static void rule_s10_metadata_has_limits(void **state)
{
    enum { MOST = 10000000, PAIRS = 65536 };
    static const char front[] = "{\"__metadata__\":{\"k\":\"";
    char *header = malloc(MOST + 64);
    embla_directory d;
    (void)state;
    assert_non_null(header);
    size_t used = strlen(front);
    memcpy(header, front, used);
    memset(header + used, 'v', MOST);
    used += MOST - 1; /* and the key is one byte */
    memcpy(header + used, "\"}}", 3);
    st_accepts_file(NULL, st_make(used + 3, header, used + 3, 0), false, &d);
    assert_int_equal(strlen(d.pairs[0].value), MOST - 1);
    embla_directory_free(&d);
    header[used] = 'v';
    memcpy(header + used + 1, "\"}}", 3);
    st_refuses_file(NULL, st_make(used + 4, header, used + 4, 0), false, "S10");
    assert_error_has("10000001 bytes");
    for (size_t pairs = PAIRS; pairs <= PAIRS + 1; pairs++) {
        used = (size_t)snprintf(header, 64, "{\"__metadata__\":{\"k\":\"\"");
        for (size_t i = 1; i < pairs; i++)
            used += (size_t)snprintf(header + used, 32, ",\"%zu\":\"\"", i);
        memcpy(header + used, "}}", 2);
        st_file f = st_make(used + 2, header, used + 2, 0);
        if (pairs == PAIRS) {
            st_accepts_file(NULL, f, false, &d);
            assert_int_equal(d.pair_count, PAIRS);
            embla_directory_free(&d);
        } else {
            st_refuses_file(NULL, f, false, "S10");
            assert_error_has("at least 65537 members; the limit is 65536");
        }
    }
    free(header);
}

static void rule_s11_names_have_1_to_4096_bytes(void **state)
{
    char header[4300], name[4098];
    embla_directory d;
    (void)state;
    st_refuses("s11_empty_name", "{\"\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", 1, "S11");
    memset(name, 'n', 4097);
    name[4097] = 0;
    (void)snprintf(header, sizeof header, "{\"%s\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", name);
    st_refuses("s11_name_of_4097", header, 1, "S11");
    name[4096] = 0;
    (void)snprintf(header, sizeof header, "{\"%s\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", name);
    st_accepts(NULL, header, 1, &d);
    assert_int_equal(strlen(d.entries[0].name), 4096);
    embla_directory_free(&d);
    st_accepts("ok_path_as_name", "{\"../../etc/passwd\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}",
               1, &d); /* names are data, never paths */
    embla_directory_free(&d);
}

static void rule_s11_no_name_holds_a_zero(void **state)
{
    embla_directory d;
    (void)state;
    st_refuses("s11_zero_in_name", "{\"a\\u0000b\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", 1,
               "S11");
    st_refuses("s11_zero_in_metadata", "{\"__metadata__\":{\"k\":\"\\u0000\"}}", 0, "S11");
    st_accepts("ok_escaped_backslash", "{\"\\\\u0000\":{" ST_MEMBERS("I8", "[1]", "[0,1]") "}}", 1,
               &d);
    assert_string_equal(d.entries[0].name, "\\u0000");
    embla_directory_free(&d);
}

/* Tensors of no bytes, one more than there may be; without it they are accepted. */
static void rule_s11_tensors_are_at_most_a_million(void **state)
{
    enum { MOST = 1000000 };
    static const char members[] = "\":{" ST_MEMBERS("I8", "[0]", "[0,0]") "}";
    size_t piece = sizeof members + 8, used = 0;
    char *header = malloc(piece * (MOST + 2));
    embla_directory d;
    (void)state;
    assert_non_null(header);
    for (size_t i = 0; i < MOST; i++)
        used +=
            (size_t)snprintf(header + used, piece, "%c\"%05zx%s", i == 0 ? '{' : ',', i, members);
    header[used] = '}';
    st_accepts_file(NULL, st_make(used + 1, header, used + 1, 0), false, &d);
    assert_int_equal(d.count, MOST);
    embla_directory_free(&d);
    used += (size_t)snprintf(header + used, piece, ",\"fffff%s", members);
    header[used++] = '}';
    st_refuses_file(NULL, st_make(used, header, used, 0), false, "S11");
    assert_error_has("more than 1000000 tensors");
    free(header);
}

/* A header takes memory by what is in it: not by what a tree of it would. */
static void a_hostile_header_takes_no_more_memory_than_it_has_bytes(void **state)
{
    static const char *const pieces[] = {"\"\":0,", "\"a\":{},", "1,", "\"\":[],"};
    static const char *const fronts[] = {"{", "{", "{\"a\":{\"shape\":[", "{\"a\":{"};
    enum { MANY = 1000000 };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(pieces); i++) {
        size_t length = strlen(pieces[i]), used = strlen(fronts[i]);
        char *header = malloc(used + MANY * length);
        embla_directory d = {0};
        assert_non_null(header);
        memcpy(header, fronts[i], used);
        for (size_t j = 0; j < MANY; j++, used += length) memcpy(header + used, pieces[i], length);
        st_file f = st_make(used, header, used, 0);
        size_t live = embla_mem_live();
        assert_status(st_read(&f, false, &d), EMBLA_ERR_FORMAT);
        embla_directory_free(&d);
        assert_int_equal(embla_mem_live(), live);
        free(f.bytes);
        free(header);
    }
}

static void rule_s12_data_need_not_be_aligned(void **state)
{
    static const char *const notes[] = {NULL, "a multiple of 1, not of 4",
                                        "a multiple of 2, not of 4", "a multiple of 1, not of 4"};
    embla_directory d;
    char header[64];
    (void)state;
    for (size_t pad = 0; pad < 4; pad++) {
        size_t used =
            (size_t)snprintf(header, sizeof header, ST_A(ST_MEMBERS("F32", "[1]", "[0,4]")));
        while ((8 + used) % 4 != pad) header[used++] = ' ';
        st_accepts_file(NULL, st_make(used, header, used, 4), false, &d);
        assert_int_equal(d.note_count, notes[pad] != NULL);
        if (notes[pad]) assert_non_null(strstr(d.notes[0], notes[pad]));
        embla_directory_free(&d);
    }
}

/* ---- failures ---- */

#define WHOLE                                                                                      \
    "{\"__metadata__\":{\"k\":\"v\"},\"a\":{" ST_MEMBERS(                                          \
        "F32", "[2]", "[0,8]") "},\"b\":{" ST_MEMBERS("I8", "[1]", "[8,9]") "}} "

static embla_status try_path(const char *path)
{
    embla_map *map = NULL;
    embla_directory directory = {0};
    embla_status status = embla_map_open(EMBLA_HERE, path, path, true, &map);
    if (status == EMBLA_OK) status = embla_format_safetensors.read(map, NULL, &directory);
    embla_directory_free(&directory);
    embla_map_free(map);
    return status;
}

/* The n-th allocation or call to the system fails, once or from then on, until none does:
 * the status says which it was, and nothing is kept. */
static void every_failure_is_survived(void **state)
{
    st_file f = st_make(strlen(WHOLE), WHOLE, strlen(WHOLE), 9);
    scratch s;
    (void)state;
    scratch_new(&s);
    const char *path = scratch_path(&s, "a.safetensors");
    scratch_write(path, f.bytes, f.size);
    for (int kind = 0; kind < 4; kind++) {
        bool memory = kind < 2, forever = kind % 2 == 1;
        embla_status status = EMBLA_ERR_ARGUMENT;
        size_t n = 0;
        while (status != EMBLA_OK) {
            size_t live = embla_mem_live(), open = embla_io_live();
            assert_in_range(++n, 1, 100);
            if (memory)
                embla_mem_fail(n, forever);
            else
                embla_io_fail(n, forever, EMBLA_SYSTEM_OTHER);
            status = try_path(path);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status != EMBLA_OK) assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
        }
        assert_in_range(n, 4, 100); /* header, list and order; open, stat, map and read */
    }
    scratch_free(&s);
    free(f.bytes);
}

static void a_file_cut_while_open_is_an_error(void **state)
{
    st_file f = st_make(strlen(WHOLE), WHOLE, strlen(WHOLE), 9);
    embla_directory directory = {0};
    embla_map *map = NULL;
    scratch s;
    (void)state;
    scratch_new(&s);
    const char *path = scratch_path(&s, "a.safetensors");
    scratch_write(path, f.bytes, f.size);
    assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
    assert_int_equal(truncate(path, 40), 0);
    assert_status(embla_format_safetensors.read(map, NULL, &directory), EMBLA_ERR_IO);
    assert_error_has("was truncated");
    embla_directory_free(&directory);
    embla_map_free(map);
    scratch_free(&s);
    free(f.bytes);
}

static void every_beginning_of_a_file_is_refused(void **state)
{
    st_file whole = st_make(strlen(WHOLE), WHOLE, strlen(WHOLE), 9);
    (void)state;
    for (size_t size = 0; size < whole.size; size++) {
        st_file f = {.bytes = malloc(size + 1), .size = size};
        assert_non_null(f.bytes);
        memcpy(f.bytes, whole.bytes, size);
        st_refuses_file(NULL, f, false, size < 8 + strlen(WHOLE) ? "S1" : "S9");
    }
    free(whole.bytes);
}

/* ---- real files ---- */

typedef struct {
    const char *file, *tensor, *element;
    uint32_t rank;
    uint64_t rows, dim;
} real_tensor;

static void real_files_are_read(void **state)
{
    static const real_tensor real[] = {
        {"use-lite-8k/model.safetensors", "embedding.weight", "F32", 2, 8002, 256},
        {"model2vec-mini/float32/model.safetensors", "embeddings", "F32", 2, 29528, 2},
        {"model2vec-mini/float16/model.safetensors", "embeddings", "F16", 2, 29528, 2},
        {"model2vec-mini/int8/model.safetensors", "embeddings", "I8", 2, 29528, 2},
        {"model2vec-mini/vocab-quantized/model.safetensors", "embeddings", "F32", 2, 128, 64},
        {"model2vec-mini/vocab-quantized/model.safetensors", "mapping", "I32", 1, 29524, 0},
        {"model2vec-mini/vocab-quantized/model.safetensors", "weights", "F64", 1, 29524, 0},
    };
    const char *data = getenv("EMBLA_DATA");
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: no real files\n");
        skip();
    }
    for (size_t i = 0; i < COUNT_OF(real); i++) {
        char path[4096];
        embla_map *map = NULL;
        embla_directory d = {0};
        const embla_entry *found = NULL;
        (void)snprintf(path, sizeof path, "%s/%s", data, real[i].file);
        assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
        assert_true(embla_format_safetensors.sniff(map->bytes, 4096, map->size));
        assert_ok(embla_format_safetensors.read(map, NULL, &d));
        for (size_t j = 0; j < d.count; j++)
            if (strcmp(d.entries[j].name, real[i].tensor) == 0) found = &d.entries[j];
        assert_non_null(found);
        assert_string_equal(found->element->name, real[i].element);
        assert_int_equal(found->rank, real[i].rank);
        assert_int_equal(found->shape[0], real[i].rows);
        if (found->rank == 2) assert_int_equal(found->shape[1], real[i].dim);
        assert_int_equal(d.note_count, 0);
        embla_directory_free(&d);
        embla_map_free(map);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(two_tensors_are_read),
        cmocka_unit_test(no_tensors_are_fine),
        cmocka_unit_test(a_file_is_known_by_its_first_bytes),
        cmocka_unit_test(rule_s1_a_file_below_8_bytes_is_refused),
        cmocka_unit_test(rule_s1_the_length_has_limits),
        cmocka_unit_test(rule_s2_the_first_byte_is_a_brace),
        cmocka_unit_test(rule_s2_the_header_is_utf8),
        cmocka_unit_test(rule_s3_only_white_space_follows_the_header),
        cmocka_unit_test(rule_s4_the_header_is_json),
        cmocka_unit_test(rule_s4_there_are_two_levels),
        cmocka_unit_test(rule_s4_numbers_are_natural),
        cmocka_unit_test(rule_s5_no_key_occurs_twice),
        cmocka_unit_test(rule_s6_a_tensor_has_three_members),
        cmocka_unit_test(rule_s7_every_dtype_has_its_size),
        cmocka_unit_test(rule_s7_an_unknown_dtype_is_refused),
        cmocka_unit_test(rule_s8_the_shape_gives_the_bytes),
        cmocka_unit_test(rule_s8_the_shape_is_0_to_8_numbers),
        cmocka_unit_test(rule_s9_offsets_are_two_numbers),
        cmocka_unit_test(rule_s9_a_hole_between_tensors_is_refused),
        cmocka_unit_test(rule_s9_an_overlap_is_refused),
        cmocka_unit_test(rule_s9_a_tail_is_refused),
        cmocka_unit_test(rule_s9_empty_tensors_tile_in_order),
        cmocka_unit_test(rule_s9_many_tensors_in_any_order),
        cmocka_unit_test(rule_s10_metadata_is_text),
        cmocka_unit_test(rule_s10_metadata_has_limits),
        cmocka_unit_test(rule_s11_names_have_1_to_4096_bytes),
        cmocka_unit_test(rule_s11_no_name_holds_a_zero),
        cmocka_unit_test(rule_s11_tensors_are_at_most_a_million),
        cmocka_unit_test(a_hostile_header_takes_no_more_memory_than_it_has_bytes),
        cmocka_unit_test(rule_s12_data_need_not_be_aligned),
        cmocka_unit_test(every_failure_is_survived),
        cmocka_unit_test(a_file_cut_while_open_is_an_error),
        cmocka_unit_test(every_beginning_of_a_file_is_refused),
        cmocka_unit_test(real_files_are_read),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
