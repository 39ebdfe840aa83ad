/* SPDX-License-Identifier: Apache-2.0 */
/* The table of element types against the lists of the rules, written down a second time:
 * S7 (safetensors, bits), G8 (GGUF, numbers and bytes of a block), N3 (npy, letters). A
 * type that is not in a list must not be found by that format's name.
 */
#include "check.h"

#include <strings.h>

#include "base/dtype.h"
#include "formats/element.h"
#include "gguf_types.h"

static const struct {
    uint32_t bits;
    const char *name;
} s7[] = {
    {4, "F4"},          {6, "F6_E2M3"}, {6, "F6_E3M2"}, {8, "BOOL"},    {8, "U8"},
    {8, "I8"},          {8, "F8_E5M2"}, {8, "F8_E4M3"}, {8, "F8_E8M0"}, {8, "F8_E4M3FNUZ"},
    {8, "F8_E5M2FNUZ"}, {16, "I16"},    {16, "U16"},    {16, "F16"},    {16, "BF16"},
    {32, "I32"},        {32, "U32"},    {32, "F32"},    {64, "I64"},    {64, "U64"},
    {64, "F64"},        {64, "C64"},
};

static const struct {
    const char *letters, *name;
} n3[] = {
    {"f2", "F16"}, {"f4", "F32"}, {"f8", "F64"}, {"i1", "I8"},  {"u1", "U8"},  {"i2", "I16"},
    {"u2", "U16"}, {"i4", "I32"}, {"u4", "U32"}, {"i8", "I64"}, {"u8", "U64"},
};

static void rule_s7_every_type_has_its_name_and_bits(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(s7); i++) {
        const embla_element *e = embla_element_safetensors(s7[i].name, strlen(s7[i].name));
        if (!e) fail_msg("safetensors' %s is missing", s7[i].name);
        assert_string_equal(e->name, s7[i].name);
        assert_string_equal(e->safetensors, s7[i].name);
        assert_int_equal(e->block, 1);
        assert_int_equal(e->block_bits, s7[i].bits);
    }
}

static void rule_s7_an_unknown_name_is_no_type(void **state)
{
    static const char *const unknown[] = {"",   "F",  "F128", "f32",  "F32 ", "Q4_0",
                                          "F8", "I4", "U4",   "C128", "BF1",  "BF160"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(unknown); i++)
        assert_null(embla_element_safetensors(unknown[i], strlen(unknown[i])));
    assert_null(embla_element_safetensors("F32\0", 4));
    assert_null(embla_element_safetensors("F32", 2));
}

static void rule_g8_every_id_has_its_block(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(gguf_types); i++) {
        const embla_element *e = embla_element_ggml(gguf_types[i].id);
        if (!e) fail_msg("GGUF's type %" PRIu32 " is missing", gguf_types[i].id);
        assert_string_equal(e->name, gguf_types[i].name);
        assert_int_equal(e->ggml, gguf_types[i].id);
        assert_int_equal(e->block, gguf_types[i].numbers);
        assert_int_equal(e->block_bits, 8 * gguf_types[i].bytes);
    }
}

static void rule_g8_other_ids_are_refused(void **state)
{
    static const uint32_t refused[] = {4, 5, 31, 32, 33, 36, 37, 38, 0x7FFFFFFF, 0x80000000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) assert_null(embla_element_ggml(refused[i]));
    for (uint32_t id = 43; id < 300; id++) assert_null(embla_element_ggml(id));
    assert_null(embla_element_ggml(UINT32_MAX)); /* not the -1 of a type GGUF has not */
}

static void rule_n3_every_letter_has_its_type(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(n3); i++) {
        const embla_element *e = embla_element_npy(n3[i].letters);
        if (!e) fail_msg("npy's %s is missing", n3[i].letters);
        assert_string_equal(e->name, n3[i].name);
        assert_int_equal(e->block, 1);
        assert_int_equal(e->block_bits, 8 * (n3[i].letters[1] - '0'));
    }
}

static void rule_n3_other_letters_are_refused(void **state)
{
    static const char *const refused[] = {"O",  "O8",  "V2", "S4", "U4", "c8",  "M8", "m8",
                                          "b1", "f16", "f1", "i3", "",   "<f4", "f4 "};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(refused); i++) assert_null(embla_element_npy(refused[i]));
}

/* The lists above name every row, and no row says more than they do. */
static void the_table_has_nothing_else(void **state)
{
    size_t in_s7 = 0, in_g8 = 0, in_n3 = 0, all = 0;
    (void)state;
    for (const embla_element *e; (e = embla_element_at(all)); all++) {
        in_s7 += e->safetensors != NULL;
        in_g8 += e->ggml >= 0;
        in_n3 += e->npy != NULL;
        assert_true(e->safetensors || e->ggml >= 0 || e->npy);
        assert_true(e->ggml >= -1);
        for (size_t i = 0; i < all; i++)
            assert_string_not_equal(e->name, embla_element_at(i)->name);
    }
    assert_int_equal(in_s7, COUNT_OF(s7));
    assert_int_equal(in_g8, COUNT_OF(gguf_types));
    assert_int_equal(in_n3, COUNT_OF(n3));
    assert_int_equal(all, 49);
    assert_null(embla_element_at(all));
    assert_null(embla_element_at(SIZE_MAX));
}

static void every_dtype_has_its_element(void **state)
{
    (void)state;
    for (int d = CHECK_FIRST_DTYPE; d < CHECK_LAST_DTYPE; d++) {
        const embla_dtype_info *info = embla_dtype_find_info((embla_dtype)d);
        const embla_element *e = embla_element_of((embla_dtype)d);
        assert_non_null(e);
        assert_int_equal(e->dtype, d);
        assert_int_equal(e->block, info->block);
        assert_int_equal(e->block_bits, 8 * info->block_bytes);
        assert_int_equal(strcasecmp(e->name, info->name), 0);
    }
    assert_null(embla_element_of((embla_dtype)0));
    assert_null(embla_element_of(EMBLA_F4_E2M1)); /* F4 says nothing of which is first */
    assert_null(embla_element_of((embla_dtype)(EMBLA_F4_E2M1 + 1)));
    size_t decoded = 0;
    for (size_t i = 0; embla_element_at(i); i++) decoded += embla_element_at(i)->dtype != 0;
    assert_int_equal(decoded, EMBLA_F4_E2M1 - 1);
}

static const embla_element *named(const char *name)
{
    for (size_t i = 0; embla_element_at(i); i++)
        if (strcmp(embla_element_at(i)->name, name) == 0) return embla_element_at(i);
    fail_msg("no element is called %s", name);
    return NULL;
}

static void bytes_are_whole_blocks(void **state)
{
    static const struct {
        const char *name;
        uint64_t count, bytes;
    } right[] = {
        {"F32", 0, 0},     {"F32", 3, 12},     {"BF16", 7, 14},    {"F4", 2, 1},
        {"F4", 6, 3},      {"F6_E2M3", 4, 3},  {"F6_E3M2", 12, 9}, {"Q4_0", 32, 18},
        {"Q8_0", 96, 102}, {"Q4_K", 512, 288}, {"Q1_0", 128, 18},  {"NVFP4", 64, 36},
    };
    static const struct {
        const char *name;
        uint64_t count;
    } wrong[] = {{"F4", 1},      {"F4", 7},    {"F6_E2M3", 1}, {"F6_E2M3", 2},
                 {"F6_E2M3", 6}, {"Q4_0", 31}, {"Q4_0", 33},   {"Q4_K", 128}};
    uint64_t bytes;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(right); i++) {
        assert_true(embla_element_bytes(named(right[i].name), right[i].count, &bytes));
        assert_int_equal(bytes, right[i].bytes);
    }
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        bytes = 77;
        assert_false(embla_element_bytes(named(wrong[i].name), wrong[i].count, &bytes));
        assert_int_equal(bytes, 77);
    }
}

/* Up to 2^63 - 1 bytes, and not one more, though their bits are more than 64 bits hold. */
static void bytes_fit_63_bits_or_are_refused(void **state)
{
    uint64_t bytes;
    (void)state;
    assert_true(embla_element_bytes(named("F64"), (UINT64_C(1) << 60) - 1, &bytes));
    assert_int_equal(bytes, (UINT64_C(1) << 63) - 8);
    assert_false(embla_element_bytes(named("F64"), UINT64_C(1) << 60, &bytes));
    assert_true(embla_element_bytes(named("I8"), INT64_MAX, &bytes));
    assert_int_equal(bytes, INT64_MAX);
    assert_false(embla_element_bytes(named("I8"), UINT64_C(1) << 63, &bytes));
    assert_false(embla_element_bytes(named("F32"), UINT64_MAX, &bytes));
    assert_false(embla_element_bytes(named("F64"), UINT64_MAX, &bytes));
    assert_true(embla_element_bytes(named("F4"), UINT64_MAX - 1, &bytes));
    assert_int_equal(bytes, INT64_MAX);
    assert_false(embla_element_bytes(named("Q8_0"), UINT64_MAX / 32 * 32, &bytes));
    assert_true(embla_element_bytes(named("F6_E2M3"), UINT64_C(1) << 63, &bytes));
    assert_int_equal(bytes, UINT64_C(3) << 61);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_s7_every_type_has_its_name_and_bits),
        cmocka_unit_test(rule_s7_an_unknown_name_is_no_type),
        cmocka_unit_test(rule_g8_every_id_has_its_block),
        cmocka_unit_test(rule_g8_other_ids_are_refused),
        cmocka_unit_test(rule_n3_every_letter_has_its_type),
        cmocka_unit_test(rule_n3_other_letters_are_refused),
        cmocka_unit_test(the_table_has_nothing_else),
        cmocka_unit_test(every_dtype_has_its_element),
        cmocka_unit_test(bytes_are_whole_blocks),
        cmocka_unit_test(bytes_fit_63_bits_or_are_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
