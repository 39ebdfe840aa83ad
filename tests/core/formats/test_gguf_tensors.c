/* SPDX-License-Identifier: Apache-2.0 */
/* Reading the tensors of a GGUF file: one test for each clause of rules G7 to G11, each with
 * a file made for it that is right but for the one thing. Header and keys are in
 * test_gguf.c.
 */
#include <stdio.h>

#include "gguf_bytes.h"
#include "gguf_types.h"

/* ---- G7 ---- */

static const uint64_t one_number[4] = {1, 1, 1, 1};

/* One tensor of this name; its one number follows. */
static void tensor_called(gguf_bytes *g, const char *name)
{
    add_head(g, 3, 1, 0);
    add_tensor(g, name, 1, one_number, 0, 0);
    add_padding(g, 32);
    add_fill(g, 4);
}

static void rule_g7_a_name_has_1_to_63_bytes(void **state)
{
    gguf_bytes g = {0};
    char name[65] = "";
    (void)state;
    tensor_called(&g, "");
    gguf_refused(&g, "(G7)");
    memset(name, 'n', 63);
    tensor_called(&g, name);
    opened file = gguf_accepted(&g);
    assert_string_equal(file.directory.entries[0].name, name);
    gguf_close(&file);
    name[63] = 'n';
    tensor_called(&g, name);
    gguf_refused(&g, "(G7)");
    assert_error_has("64 bytes; the limit is 63");
    tensor_called(&g, "n");
    memset(g.bytes + 24, 0xff, 8); /* its length */
    gguf_refused(&g, "(G7)");
}

static void rule_g7_a_name_with_a_0_in_it_is_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    tensor_called(&g, "weight");
    g.bytes[24 + 8 + 3] = 0;
    gguf_refused(&g, "(G7)");
}

static void rule_g7_a_name_that_occurs_twice_is_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 3, 0);
    add_tensor(&g, "same", 1, one_number, 0, 0);
    add_tensor(&g, "other", 1, one_number, 0, 32);
    add_tensor(&g, "same", 1, one_number, 0, 64);
    add_padding(&g, 32);
    add_fill(&g, 96);
    gguf_refused(&g, "(G7)");
    assert_error_has("'same' occurs twice");
}

static void rule_g7_a_tensor_has_1_to_4_dimensions(void **state)
{
    static const uint32_t wrong[] = {0, 5, 8, 9, 1U << 30, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        gguf_bytes g = {0};
        tensor_called(&g, "n");
        for (int k = 0; k < 4; k++) g.bytes[24 + 9 + k] = (uint8_t)(wrong[i] >> (8 * k));
        gguf_refused(&g, "(G7)");
    }
}

static void shapes_are_turned_round(void **state)
{
    static const uint64_t dims[4] = {2, 3, 4, 5};
    (void)state;
    for (uint32_t rank = 1; rank <= 4; rank++) {
        gguf_bytes g = {0};
        uint64_t bytes = 4;
        for (uint32_t i = 0; i < rank; i++) bytes *= dims[i];
        add_head(&g, 3, 1, 0);
        add_tensor(&g, "t", rank, dims, 0, 0);
        add_padding(&g, 32);
        add_fill(&g, bytes);
        opened file = gguf_accepted(&g);
        const embla_entry *entry = &file.directory.entries[0];
        assert_int_equal(entry->rank, rank);
        for (uint32_t i = 0; i < rank; i++) assert_int_equal(entry->shape[i], dims[rank - 1 - i]);
        assert_int_equal(entry->bytes, bytes);
        assert_false(entry->made);
        gguf_close(&file);
    }
}

static void tensor_of(gguf_bytes *g, uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint32_t type)
{
    uint64_t dims[4] = {a, b, c, d};
    add_head(g, 3, 1, 0);
    add_tensor(g, "t", 4, dims, type, 0);
    add_padding(g, 32);
    add_fill(g, 64);
}

static void rule_g7_a_dimension_is_at_most_2_to_40(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    tensor_of(&g, (UINT64_C(1) << 40) + 1, 1, 1, 1, 0);
    gguf_refused(&g, "(G7)");
    tensor_of(&g, 1, UINT64_MAX, 1, 1, 0);
    gguf_refused(&g, "(G7)");
    tensor_of(&g, UINT64_C(1) << 40, 1, 1, 1, 0);
    gguf_refused(&g, "(G10)"); /* well formed, but not there */
}

static void rule_g7_a_product_of_dimensions_that_wraps_is_refused(void **state)
{
    const uint64_t big = UINT64_C(1) << 32, most = UINT64_C(1) << 40;
    gguf_bytes g = {0};
    (void)state;
    tensor_of(&g, big, big, 1, 1, 0); /* 2^64 is 0 in 64 bits */
    gguf_refused(&g, "(G7)");
    tensor_of(&g, most, most, most, most, 0);
    gguf_refused(&g, "(G7)");
    tensor_of(&g, 3, UINT64_C(0x5555555556), UINT64_C(1) << 24, 2, 0);
    gguf_refused(&g, "(G7)");
    tensor_of(&g, most, most, 0, 1, 0); /* a 0 that comes too late */
    gguf_refused(&g, "(G7)");
}

static void rule_g7_a_tensor_with_a_zero_dimension_is_listed(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 2, 0);
    add_table(&g, "nothing", 0, 4, 0);
    add_table(&g, "something", 1, 4, 0); /* at the same place: nothing takes no room */
    add_padding(&g, 32);
    size_t data = g.used;
    add_fill(&g, 16);
    opened file = gguf_accepted(&g);
    assert_int_equal(file.directory.count, 2);
    assert_int_equal(file.directory.entries[0].bytes, 0);
    assert_int_equal(file.directory.entries[0].shape[0], 0);
    assert_int_equal(file.directory.entries[0].shape[1], 4);
    assert_int_equal(file.directory.entries[1].offset, data);
    gguf_close(&file);
}

/* ---- G8 ---- */

static void rule_g8_every_type_has_its_size(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gguf_types); i++) {
        gguf_bytes g = {0};
        uint64_t dims[2] = {2 * (uint64_t)gguf_types[i].numbers, 3};
        uint64_t bytes = 2 * 3 * (uint64_t)gguf_types[i].bytes;
        add_head(&g, 3, 2, 0);
        add_tensor(&g, "first", 2, dims, gguf_types[i].id, 0);
        add_tensor(&g, "second", 1, one_number, 24, (bytes + 31) / 32 * 32);
        add_padding(&g, 32);
        add_fill(&g, bytes);
        add_padding(&g, 32);
        add_fill(&g, 1);
        opened file = gguf_accepted(&g);
        assert_int_equal(file.directory.entries[0].bytes, bytes);
        assert_string_equal(file.directory.entries[0].element->name, gguf_types[i].name);
        gguf_close(&file);
    }
}

static void rule_g8_unknown_types_are_refused(void **state)
{
    static const uint32_t unknown[] = {4,  5,  31, 32, 33,  36,       37,
                                       38, 43, 44, 64, 255, 1U << 31, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(unknown); i++) {
        gguf_bytes g = {0};
        char number[32];
        (void)snprintf(number, sizeof number, "unknown type %u ", (unsigned)unknown[i]);
        tensor_of(&g, 256, 1, 1, 1, unknown[i]);
        gguf_refused(&g, "(G8)");
        assert_error_has(number);
    }
    for (uint32_t id = 0, have = 0; id < 100; id++) { /* and no others */
        bool is_known = have < COUNT_OF(gguf_types) && gguf_types[have].id == id;
        have += is_known;
        assert_int_equal(embla_element_ggml(id) != NULL, is_known);
    }
}

/* ---- G9 ---- */

static void rule_g9_rows_are_whole_blocks(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gguf_types); i++) {
        gguf_bytes g = {0};
        if (gguf_types[i].numbers == 1) continue;
        tensor_of(&g, gguf_types[i].numbers / 2, 2, 1, 1,
                  gguf_types[i].id); /* whole blocks in all */
        gguf_refused(&g, "(G9)");
        tensor_of(&g, gguf_types[i].numbers + 1, 1, 1, 1, gguf_types[i].id);
        gguf_refused(&g, "(G9)");
    }
}

static void rule_g9_a_size_that_wraps_is_refused(void **state)
{
    const uint64_t most = UINT64_C(1) << 40;
    gguf_bytes g = {0};
    (void)state;
    tensor_of(&g, most, UINT64_C(1) << 22, 1, 1, 0); /* 2^64 bytes */
    gguf_refused(&g, "(G9)");
    tensor_of(&g, most, UINT64_C(1) << 21, 1, 1, 0); /* 2^63 */
    gguf_refused(&g, "(G9)");
    tensor_of(&g, most, UINT64_C(1) << 23, 1, 1, 24); /* 2^63, padding would not wrap */
    gguf_refused(&g, "(G9)");
    tensor_of(&g, 0, most, most, 1, 0); /* nothing, of a shape that wraps */
    gguf_refused(&g, "(G9)");
}

/* ---- G10 ---- */

/* Two tables of 12 bytes; the second begins at offset. */
static void two_tables(gguf_bytes *g, uint64_t first, uint64_t second)
{
    add_head(g, 3, 2, 0);
    add_table(g, "a", 1, 3, first);
    add_table(g, "b", 1, 3, second);
    add_padding(g, 32);
    add_fill(g, 256);
}

static void rule_g10_offsets_are_on_the_alignment(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    two_tables(&g, 0, 12);
    gguf_refused(&g, "(G10)");
    assert_error_has("not a multiple of the alignment, 32");
    two_tables(&g, 1, 32);
    gguf_refused(&g, "(G10)");
}

static void rule_g10_holes_and_overlaps_are_refused(void **state)
{
    static const uint64_t wrong[] = {0, 64, 96, UINT64_C(1) << 63, UINT64_MAX - 31};
    gguf_bytes g = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        two_tables(&g, 0, wrong[i]);
        gguf_refused(&g, "(G10)");
        assert_error_has("those before it end at 32");
    }
    two_tables(&g, 32, 0); /* not in order */
    gguf_refused(&g, "(G10)");
    two_tables(&g, 32, 64); /* a hole before the first */
    gguf_refused(&g, "(G10)");
}

static void rule_g10_every_tensor_lies_in_the_file(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    two_tables(&g, 0, 32);
    size_t data = g.used - 256;
    free(g.bytes);
    for (size_t cut = 0; cut < 44; cut++) {
        g = (gguf_bytes){0};
        two_tables(&g, 0, 32);
        g.used = data + cut;
        gguf_refused(&g, "(G10)");
    }
    two_tables(&g, 0, 32);
    g.used = data + 44; /* the last one's padding may be missing */
    opened file = gguf_accepted(&g);
    assert_int_equal(file.directory.entries[1].offset, data + 32);
    assert_int_equal(file.directory.note_count, 0);
    gguf_close(&file);
}

static void bytes_after_the_last_tensor_are_noted(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    two_tables(&g, 0, 32);
    opened file = gguf_accepted(&g);
    assert_int_equal(file.directory.note_count, 1);
    assert_string_equal(file.directory.notes[0], "192 bytes follow the last tensor");
    gguf_close(&file);
}

static void rule_c2_a_file_cut_anywhere_is_refused(void **state)
{
    gguf_bytes whole = {0};
    (void)state;
    add_small_model(&whole);
    for (size_t length = 0; length < whole.used; length++) {
        opened file = gguf_open(whole.bytes, length);
        assert_status(file.status, EMBLA_ERR_FORMAT);
        gguf_close(&file);
    }
    opened file = gguf_accepted(&whole);
    gguf_close(&file);
}

/* ---- G11 ---- */

static void rule_g11_a_sum_of_sizes_that_wraps_is_refused(void **state)
{
    const uint64_t dims[2] = {UINT64_C(1) << 40, UINT64_C(1) << 20}; /* 2^62 bytes */
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 5, 0);
    for (uint64_t i = 0; i < 5; i++) {
        char name[2] = {(char)('a' + i), 0};
        add_tensor(&g, name, 2, dims, 0, i << 62);
    }
    gguf_refused(&g, "(G11)");
    assert_error_has("tensor 'd'");
}

static void rule_g11_header_and_sizes_that_wrap_are_refused(void **state)
{
    const uint64_t dims[2] = {UINT64_C(1) << 40, UINT64_C(1) << 20}; /* 2^62 bytes */
    const uint64_t last[2] = {(UINT64_C(1) << 40) - 16, UINT64_C(1) << 20};
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 5, 0);
    for (uint64_t i = 0; i < 3; i++) {
        char name[2] = {(char)('a' + i), 0};
        add_tensor(&g, name, 2, dims, 0, i << 62);
    }
    add_tensor(&g, "d", 2, last, 0, UINT64_C(3) << 62);  /* 2^26 bytes are left */
    const uint64_t rest[1] = {(UINT64_C(1) << 26) - 32}; /* up to 2^64 - 32 in all */
    add_tensor(&g, "e", 1, rest, 24, (UINT64_C(3) << 62) + 4 * (last[0] << 20));
    add_padding(&g, 32);
    add_fill(&g, 64);
    gguf_refused(&g, "(G11)");
    assert_error_has("follow a header of");
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_g7_a_name_has_1_to_63_bytes),
        cmocka_unit_test(rule_g7_a_name_with_a_0_in_it_is_refused),
        cmocka_unit_test(rule_g7_a_name_that_occurs_twice_is_refused),
        cmocka_unit_test(rule_g7_a_tensor_has_1_to_4_dimensions),
        cmocka_unit_test(shapes_are_turned_round),
        cmocka_unit_test(rule_g7_a_dimension_is_at_most_2_to_40),
        cmocka_unit_test(rule_g7_a_product_of_dimensions_that_wraps_is_refused),
        cmocka_unit_test(rule_g7_a_tensor_with_a_zero_dimension_is_listed),
        cmocka_unit_test(rule_g8_every_type_has_its_size),
        cmocka_unit_test(rule_g8_unknown_types_are_refused),
        cmocka_unit_test(rule_g9_rows_are_whole_blocks),
        cmocka_unit_test(rule_g9_a_size_that_wraps_is_refused),
        cmocka_unit_test(rule_g10_offsets_are_on_the_alignment),
        cmocka_unit_test(rule_g10_holes_and_overlaps_are_refused),
        cmocka_unit_test(rule_g10_every_tensor_lies_in_the_file),
        cmocka_unit_test(bytes_after_the_last_tensor_are_noted),
        cmocka_unit_test(rule_c2_a_file_cut_anywhere_is_refused),
        cmocka_unit_test(rule_g11_a_sum_of_sizes_that_wraps_is_refused),
        cmocka_unit_test(rule_g11_header_and_sizes_that_wrap_are_refused),
    };
    return cmocka_run_group_tests_name("gguf_tensors", tests, NULL, NULL);
}
