/* SPDX-License-Identifier: Apache-2.0 */
/* Reading GGUF: one test for each clause of rules G1 to G6, G12 and G13 (what comes before
 * the tensors), each with a file made for it that is right but for the one thing; what is
 * accepted is looked at too. Tensors are in test_gguf_tensors.c; writing, failures of memory
 * and disk, and real files in test_gguf_write.c.
 */
#include <stdio.h>
#include <sys/mman.h>

#include "base/byte_text.h"
#include "gguf_bytes.h"

/* ---- G1 ---- */

static void versions_2_and_3_are_read(void **state)
{
    (void)state;
    for (uint32_t version = 2; version <= 3; version++) {
        gguf_bytes g = {0};
        add_head(&g, version, 0, 0);
        opened file = gguf_accepted(&g);
        assert_int_equal(embla_gguf_of(&file.directory)->version, version);
        assert_int_equal(file.directory.count, 0);
        assert_string_equal(file.directory.format, "gguf");
        gguf_close(&file);
    }
}

static void rule_g1_another_magic_number_is_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 0);
    g.bytes[3] = 'T';
    assert_false(embla_format_gguf.sniff(g.bytes, g.used, g.used));
    assert_false(embla_format_gguf.sniff((const uint8_t *)"GGUF", 3, 3));
    assert_true(embla_format_gguf.sniff((const uint8_t *)"GGUF", 4, 4));
    gguf_refused(&g, "(G1)");
}

static void rule_g1_versions_0_1_4_are_refused(void **state)
{
    static const uint32_t versions[] = {0, 1, 4, 0x30003, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        gguf_bytes g = {0};
        char number[32];
        (void)snprintf(number, sizeof number, "version %u is", (unsigned)versions[i]);
        add_head(&g, versions[i], 0, 0);
        gguf_refused_as(&g, EMBLA_ERR_UNSUPPORTED, "(G1)");
        assert_error_has(number);
    }
}

static void rule_g1_big_endian_has_its_own_message(void **state)
{
    static const uint32_t versions[] = {0x02000000, 0x03000000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        gguf_bytes g = {0};
        add_head(&g, versions[i], 0, 0);
        gguf_refused_as(&g, EMBLA_ERR_UNSUPPORTED, "(G1)");
        assert_error_has("big-endian");
    }
}

static void rule_c2_a_header_cut_short_is_refused(void **state)
{
    (void)state;
    for (size_t length = 0; length < 24; length++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 0);
        g.used = length;
        gguf_refused(&g, "(C2)");
    }
}

/* ---- G2 ---- */

static void rule_g2_more_tensors_than_bytes_are_refused(void **state)
{
    static const uint64_t counts[] = {3, UINT64_C(1) << 32, UINT64_C(1) << 61, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, counts[i], 0);
        add_fill(&g, 3 * 24 - 1);
        gguf_refused(&g, "(G2)");
        assert_error_has("tensors, but only 71 bytes");
    }
}

static void rule_g2_more_keys_than_bytes_are_refused(void **state)
{
    static const uint64_t counts[] = {6, UINT64_C(1) << 32, UINT64_C(1) << 60, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(counts); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, counts[i]);
        add_fill(&g, 6 * 13 - 1);
        gguf_refused(&g, "(G2)");
        assert_error_has("keys, but only 77 bytes");
    }
}

/* A file of so many bytes that begins with g, and is zeros from there on; g is gone. */
static embla_status read_huge(gguf_bytes *g, size_t size)
{
    embla_directory directory = {0};
    embla_map *map = NULL;
    uint8_t *bytes = mmap(NULL, size, PROT_READ | PROT_WRITE,
                          MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    assert_true(bytes != MAP_FAILED);
    memcpy(bytes, g->bytes, g->used);
    free(g->bytes);
    assert_ok(embla_map_bytes(bytes, size, SHOWN, &map));
    embla_status status = embla_format_gguf.read(map, NULL, &directory);
    embla_directory_free(&directory);
    embla_map_free(map);
    (void)munmap(bytes, size);
    return status;
}

static void rule_g2_a_million_and_one_are_refused(void **state)
{
    (void)state;
    for (int tensors = 0; tensors < 2; tensors++) {
        gguf_bytes g = {0};
        add_head(&g, 3, tensors ? 1000001 : 0, tensors ? 0 : 1000001);
        assert_status(read_huge(&g, 30000000), EMBLA_ERR_FORMAT);
        assert_error_has("the limit is 1000000 (G2)");
    }
}

/* ---- G3 ---- */

static void rule_g3_a_key_longer_than_the_file_is_refused(void **state)
{
    static const uint64_t lengths[] = {100, UINT64_C(1) << 31, UINT64_C(1) << 63, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_number(&g, lengths[i], 8);
        add_fill(&g, 50);
        gguf_refused(&g, "(G3)");
    }
}

static void key_of(gguf_bytes *g, size_t length)
{
    add_head(g, 3, 0, 1);
    add_number(g, length, 8);
    for (size_t i = 0; i < length; i++) add(g, "k", 1);
    add_number(g, EMBLA_GGUF_U8, 4);
    add_number(g, 7, 1);
}

static void rule_g3_a_key_has_at_most_65535_bytes(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    key_of(&g, 65535);
    opened file = gguf_accepted(&g);
    gguf_close(&file);
    key_of(&g, 65536);
    gguf_refused(&g, "(G3)");
    assert_error_has("65536 bytes; the limit is 65535");
}

static void rule_g3_an_empty_key_is_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    key_of(&g, 0);
    gguf_refused(&g, "(G3)");
}

static void rule_g3_a_key_that_is_not_ascii_is_refused(void **state)
{
    static const char *const keys[] = {"caf\xc3\xa9", "\x80", "\xff"};
    gguf_bytes g = {0};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(keys); i++) {
        add_head(&g, 3, 0, 1);
        add_key_u32(&g, keys[i], 1);
        gguf_refused(&g, "(G3)");
    }
    key_of(&g, 5); /* a 0 would end the key for us, and not for others */
    g.bytes[24 + 8 + 2] = 0;
    gguf_refused(&g, "(G3)");
}

static void rule_g3_a_key_that_occurs_twice_is_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 3);
    add_key_u32(&g, "a.key", 1);
    add_key_u32(&g, "a.kez", 1);
    add_key_text(&g, "a.key", "text");
    gguf_refused(&g, "(G3)");
    assert_error_has("'a.key' occurs twice");
}

static void rule_g3_a_value_longer_than_the_file_is_refused(void **state)
{
    static const uint64_t lengths[] = {11, UINT64_C(1) << 31, UINT64_MAX - 7, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_key(&g, "text", EMBLA_GGUF_STRING);
        add_number(&g, lengths[i], 8);
        add_fill(&g, 10);
        gguf_refused(&g, "(G3)");
    }
}

static void rule_g3_a_value_has_at_most_64_mib(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_key(&g, "text", EMBLA_GGUF_STRING);
        add_number(&g, (64 << 20) + more, 8);
        assert_status(read_huge(&g, 65 << 20), more ? EMBLA_ERR_FORMAT : EMBLA_OK);
        if (more) assert_error_has("67108865 bytes; the limit is 67108864 (G3)");
    }
}

static void rule_g3_a_string_in_an_array_longer_than_the_file_is_refused(void **state)
{
    static const uint64_t lengths[] = {12, UINT64_C(1) << 32, UINT64_MAX};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(lengths); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_array(&g, "words", EMBLA_GGUF_STRING, 2);
        add_text(&g, "he");
        add_number(&g, lengths[i], 8);
        add_fill(&g, 11);
        gguf_refused(&g, "(G3)");
    }
}

/* ---- G4 ---- */

static void every_type_of_value_is_read(void **state)
{
    gguf_bytes g = {0};
    int64_t number = 0;
    double real = 0;
    (void)state;
    add_head(&g, 3, 0, 13);
    add_key(&g, "u8", 0), add_number(&g, 0xff, 1);
    add_key(&g, "i8", 1), add_number(&g, 0xfe, 1);
    add_key(&g, "u16", 2), add_number(&g, 0xffff, 2);
    add_key(&g, "i16", 3), add_number(&g, 0xfffd, 2);
    add_key(&g, "u32", 4), add_number(&g, 0xffffffff, 4);
    add_key(&g, "i32", 5), add_number(&g, 0x80000000, 4);
    add_key(&g, "f32", 6), add_number(&g, 0xc0200000, 4); /* -2.5 */
    add_key(&g, "bool", 7), add_number(&g, 1, 1);
    add_key_text(&g, "string", "text");
    add_key(&g, "u64", 10), add_number(&g, UINT64_C(0x7fffffffffffffff), 8);
    add_key(&g, "i64", 11), add_number(&g, UINT64_C(1) << 63, 8);
    add_key(&g, "f64", 12), add_number(&g, UINT64_C(0x3ff8000000000000), 8); /* 1.5 */
    add_array(&g, "array", 5, 3), add_number(&g, 1, 4), add_number(&g, 2, 8);
    opened file = gguf_accepted(&g);
    static const struct {
        const char *key;
        int64_t value;
    } numbers[] = {{"u8", 255},        {"i8", -2},          {"u16", 65535},
                   {"i16", -3},        {"u32", 4294967295}, {"i32", INT32_MIN},
                   {"u64", INT64_MAX}, {"i64", INT64_MIN},  {"bool", 1}};
    for (size_t i = 0; i < COUNT_OF(numbers); i++) {
        assert_ok(embla_gguf_number(&file.directory, file.map, numbers[i].key, &number));
        assert_true(number == numbers[i].value);
        assert_string_equal(
            embla_gguf_type_name(embla_gguf_find(&file.directory, numbers[i].key)->type),
            numbers[i].key);
    }
    assert_ok(embla_gguf_real(&file.directory, file.map, "f32", &real));
    assert_true(real == -2.5);
    assert_ok(embla_gguf_real(&file.directory, file.map, "f64", &real));
    assert_true(real == 1.5);
    assert_int_equal(embla_gguf_find(&file.directory, "array")->count, 3);
    assert_string_equal(embla_gguf_type_name(13), "?");
    assert_int_equal(embla_gguf_type_bytes(13), 0);
    gguf_close(&file);
}

static void rule_g4_a_type_above_12_is_refused(void **state)
{
    static const uint32_t types[] = {13, 255, UINT32_MAX};
    (void)state;
    for (size_t i = 0; i < 2 * COUNT_OF(types); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        if (i % 2 == 0)
            add_key(&g, "key", types[i / 2]);
        else
            add_array(&g, "key", types[i / 2], 1);
        add_fill(&g, 16);
        gguf_refused(&g, "(G4)");
    }
}

static void rule_g4_a_bool_is_0_or_1(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_key(&g, "yes", EMBLA_GGUF_BOOL);
        add_number(&g, value, 1);
        if (value > 1) {
            gguf_refused(&g, "(G4)");
        } else {
            opened file = gguf_accepted(&g);
            gguf_close(&file);
        }
    }
}

static void rule_g4_a_bool_in_an_array_is_0_or_1(void **state)
{
    static const size_t wrong[] = {0, 4095, 4096, 9999, 10000};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_array(&g, "yes", EMBLA_GGUF_BOOL, 10000);
        for (size_t k = 0; k < 10000; k++) add_number(&g, k == wrong[i] ? 2 : k % 2, 1);
        if (wrong[i] < 10000) {
            gguf_refused(&g, "(G4)");
        } else {
            opened file = gguf_accepted(&g);
            gguf_close(&file);
        }
    }
}

static void rule_g4_arrays_of_arrays_are_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 1);
    add_array(&g, "deep", EMBLA_GGUF_ARRAY, 1);
    for (int i = 0; i < 100; i++) add_number(&g, EMBLA_GGUF_ARRAY, 4), add_number(&g, 1, 8);
    gguf_refused(&g, "(G4)");
    assert_error_has("array of arrays");
}

static void rule_g4_an_array_longer_than_the_file_is_refused(void **state)
{
    static const uint64_t sizes[] = {1, 1, 2, 2, 4, 4, 4, 1, 8, 0, 8, 8, 8};
    (void)state;
    for (uint32_t type = 0; type < 13; type++) {
        if (type == EMBLA_GGUF_ARRAY) continue;
        uint64_t counts[] = {64 / sizes[type] + 1,
                             UINT64_MAX / sizes[type] + 1 + (sizes[type] == 1), UINT64_MAX};
        for (size_t i = 0; i < COUNT_OF(counts); i++) {
            gguf_bytes g = {0};
            if (counts[i] < 2) counts[i] = UINT64_MAX; /* the sum above wrapped */
            add_head(&g, 3, 0, 1);
            add_array(&g, "numbers", type, counts[i]);
            for (int k = 0; k < 64; k++) add_number(&g, 0, 1);
            gguf_refused(&g, "(G4)");
            assert_error_has("bytes are left");
        }
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_array(&g, "numbers", type, 64 / sizes[type]);
        for (int k = 0; k < 64; k++) add_number(&g, 0, 1);
        opened file = gguf_accepted(&g); /* exactly what there is */
        gguf_close(&file);
    }
}

static void rule_g4_an_array_has_at_most_2_to_28_elements(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_array(&g, "numbers", EMBLA_GGUF_U8, (1 << 28) + more);
        assert_status(read_huge(&g, ((size_t)1 << 28) + 4096), more ? EMBLA_ERR_FORMAT : EMBLA_OK);
        if (more) assert_error_has("268435457 elements; the limit is 268435456 (G4)");
    }
}

/* A hole in a file costs nothing and reads as empty strings: without this limit 2^28 of them, in a
 * file of a few kilobytes on the disk, take seconds for each key. */
static void rule_g4_all_arrays_have_at_most_2_to_24_strings_and_bools(void **state)
{
    (void)state;
    for (uint64_t more = 0; more < 2; more++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 3);
        add_array(&g, "bools", EMBLA_GGUF_BOOL, 3);
        for (int i = 0; i < 3; i++) add_number(&g, 1, 1);
        add_array(&g, "numbers", EMBLA_GGUF_U8, 1);
        add_number(&g, 1, 1);
        add_array(&g, "strings", EMBLA_GGUF_STRING, (1 << 24) - 3 + more);
        assert_status(read_huge(&g, ((size_t)8 << 24) + 4096), more ? EMBLA_ERR_FORMAT : EMBLA_OK);
        if (more)
            assert_error_has("up to key 'strings' have 16777217 strings and bools together; the "
                             "limit is 16777216 (G4)");
    }
}

/* ---- G5 ---- */

static void rule_g5_getters_refuse_other_types(void **state)
{
    gguf_bytes g = {0};
    int64_t number = 42;
    double real = 42;
    embla_arena arena = {0};
    embla_name *names = NULL;
    size_t count = 42;
    const embla_gguf_key *key = NULL;
    (void)state;
    add_head(&g, 3, 0, 5);
    add_key_text(&g, "text", "1");
    add_key_u32(&g, "number", 1);
    add_key(&g, "real", EMBLA_GGUF_F32), add_number(&g, 0, 4);
    add_array(&g, "bytes", EMBLA_GGUF_I8, 4), add_number(&g, 0, 4);
    add_key(&g, "large", EMBLA_GGUF_U64), add_number(&g, UINT64_C(1) << 63, 8);
    opened file = gguf_accepted(&g);
    static const char *const not_numbers[] = {"text", "real", "bytes", "large"};
    for (size_t i = 0; i < COUNT_OF(not_numbers); i++) {
        assert_status(embla_gguf_number(&file.directory, file.map, not_numbers[i], &number),
                      EMBLA_ERR_FORMAT);
        assert_error_has("(G5)");
    }
    static const char *const not_reals[] = {"text", "number", "bytes", "large"};
    for (size_t i = 0; i < COUNT_OF(not_reals); i++)
        assert_status(embla_gguf_real(&file.directory, file.map, not_reals[i], &real),
                      EMBLA_ERR_FORMAT);
    static const char *const not_strings[] = {"text", "number", "bytes"};
    for (size_t i = 0; i < COUNT_OF(not_strings); i++)
        assert_status(
            embla_gguf_strings(&file.directory, file.map, not_strings[i], &arena, &names, &count),
            EMBLA_ERR_FORMAT);
    assert_status(embla_gguf_array(&file.directory, file.map, "bytes", EMBLA_GGUF_F32, &key),
                  EMBLA_ERR_FORMAT);
    assert_error_has("is an array of i8, not an array of f32 (G5)");
    assert_status(embla_gguf_array(&file.directory, file.map, "real", EMBLA_GGUF_F32, &key),
                  EMBLA_ERR_FORMAT);
    assert_status(embla_gguf_number(&file.directory, file.map, "none", &number),
                  EMBLA_ERR_NOT_FOUND);
    assert_status(embla_gguf_real(&file.directory, file.map, "none", &real), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_gguf_strings(&file.directory, file.map, "none", &arena, &names, &count),
                  EMBLA_ERR_NOT_FOUND);
    assert_true(number == 42 && real == 42 && count == 42 && !names && !key); /* untouched */
    assert_ok(embla_gguf_array(&file.directory, file.map, "bytes", EMBLA_GGUF_I8, &key));
    assert_true(embla_gguf_has(&file.directory, "number"));
    assert_false(embla_gguf_has(&file.directory, "numbe"));
    embla_arena_free(&arena);
    gguf_close(&file);
}

static void getters_find_nothing_in_other_formats(void **state)
{
    embla_directory other = {.format = "npy"}, none = {0};
    (void)state;
    assert_null(embla_gguf_of(&other));
    assert_null(embla_gguf_of(&none));
    assert_false(embla_gguf_has(&other, "general.architecture"));
    assert_int_equal(embla_gguf_tokens(&other), 0);
}

/* The small model with another type and length of the array beside the tokens. */
static void beside(gguf_bytes *g, const char *key, uint32_t element, uint64_t count)
{
    add_head(g, 3, 0, 2);
    add_array(g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 3);
    for (int i = 0; i < 3; i++) add_text(g, "word");
    add_array(g, key, element, count);
    for (int i = 0; i < 64; i++) add_number(g, 0, 1);
}

static void rule_g5_scores_and_types_are_of_their_type_and_length(void **state)
{
    static const struct {
        const char *key;
        uint32_t right;
    } arrays[] = {{"tokenizer.ggml.scores", 6}, {"tokenizer.ggml.token_type", 5}};
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        for (uint32_t type = 0; type < 13; type++) {
            gguf_bytes g = {0};
            if (type == EMBLA_GGUF_ARRAY) continue;
            beside(&g, arrays[i].key, type, 3);
            if (type != arrays[i].right) {
                gguf_refused(&g, "(G5)");
            } else {
                opened file = gguf_accepted(&g);
                assert_int_equal(embla_gguf_tokens(&file.directory), 3);
                gguf_close(&file);
            }
        }
        for (uint64_t count = 0; count < 6; count++) {
            gguf_bytes g = {0};
            if (count == 3) continue;
            beside(&g, arrays[i].key, arrays[i].right, count);
            gguf_refused(&g, "(G5)");
            assert_error_has("but there are 3 tokens");
        }
    }
}

static void rule_g5_tokens_are_strings(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 1);
    add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_I32, 2);
    add_number(&g, 0, 8);
    gguf_refused(&g, "(G5)");
    add_head(&g, 3, 0, 1);
    add_key_text(&g, "tokenizer.ggml.tokens", "the");
    gguf_refused(&g, "(G5)");
}

static void rule_g5_scores_without_tokens_are_refused(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_head(&g, 3, 0, 1);
    add_array(&g, "tokenizer.ggml.scores", EMBLA_GGUF_F32, 1);
    add_number(&g, 0, 4);
    gguf_refused(&g, "(G5)");
}

static void strings_of_an_array_come_with_their_places(void **state)
{
    gguf_bytes g = {0};
    embla_arena arena = {0};
    embla_name *names = NULL;
    size_t count = 0;
    (void)state;
    add_head(&g, 3, 0, 1);
    add_array(&g, "words", EMBLA_GGUF_STRING, 3);
    add_text(&g, "the");
    add_text(&g, "");
    add_number(&g, 4, 8), add(&g, "a\0b\xff", 4);
    opened file = gguf_accepted(&g);
    assert_ok(embla_gguf_strings(&file.directory, file.map, "words", &arena, &names, &count));
    assert_int_equal(count, 3);
    assert_string_equal(names[0].bytes, "the");
    assert_int_equal(names[1].length, 0);
    assert_int_equal(names[2].length, 4);
    assert_memory_equal(names[2].bytes, "a\0b\xff", 5); /* and a 0 */
    for (size_t i = 0; i < 3; i++) assert_int_equal(names[i].number, i);
    embla_arena_free(&arena);
    gguf_close(&file);
}

/* ---- G6 ---- */

static void rule_g6_alignment_is_a_u32(void **state)
{
    (void)state;
    for (uint32_t type = 0; type < 13; type++) {
        gguf_bytes g = {0};
        if (type == EMBLA_GGUF_U32 || type == EMBLA_GGUF_BOOL) continue;
        add_head(&g, 3, 0, 1);
        if (type == EMBLA_GGUF_ARRAY)
            add_array(&g, "general.alignment", EMBLA_GGUF_U32, 1);
        else
            add_key(&g, "general.alignment", type);
        add_number(&g, type == EMBLA_GGUF_STRING ? 8 : 32, 8);
        add_number(&g, 32, 8);
        gguf_refused(&g, "(G6)");
    }
}

static void rule_g6_alignment_is_a_power_of_two_from_8_to_65536(void **state)
{
    static const uint32_t wrong[] = {0,  1,          2,          4,       7,      9,
                                     24, 33,         65535,      65544,   131072, 1U << 31,
                                     96, 0xfffffff8, UINT32_MAX, 1U << 20};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 1);
        add_key_u32(&g, "general.alignment", wrong[i]);
        gguf_refused(&g, "(G6)");
    }
    for (uint32_t right = 8; right <= 65536; right *= 2) {
        gguf_bytes g = {0};
        add_head(&g, 3, 2, 1);
        add_key_u32(&g, "general.alignment", right);
        add_table(&g, "a", 1, 3, 0);
        add_table(&g, "b", 2, 1, right < 12 ? 16 : right);
        add_padding(&g, right);
        size_t data = g.used;
        add_fill(&g, 12);
        add_padding(&g, right);
        size_t second = g.used;
        add_fill(&g, 8);
        opened file = gguf_accepted(&g);
        assert_int_equal(embla_gguf_of(&file.directory)->alignment, right);
        assert_int_equal(file.directory.entries[0].offset, data);
        assert_int_equal(file.directory.entries[1].offset, second);
        gguf_close(&file);
    }
}

/* ---- G12 ---- */

static void rule_g12_a_byte_token_is_two_hex_digits(void **state)
{
    static const char *const wrong[] = {"<0x-1>",  "<0x+1>", "<0x 1>",  "<0xG0>", "<0x0>",
                                        "<0x000>", "<0X41>", "0x41",    "",       "<0x41",
                                        "<0x4>>",  "A",      "<0x41>x", "<1x41>"};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        for (uint32_t type = 1; type <= 6; type += 5) {
            gguf_bytes g = {0};
            add_head(&g, 3, 0, 2);
            add_array(&g, "tokenizer.ggml.tokens", EMBLA_GGUF_STRING, 2);
            add_text(&g, "<0x00>");
            add_text(&g, wrong[i]);
            add_array(&g, "tokenizer.ggml.token_type", EMBLA_GGUF_I32, 2);
            add_number(&g, 6, 4);
            add_number(&g, type, 4);
            if (type == 6) {
                gguf_refused(&g, "(G12)");
                assert_error_has("token 1 has the type BYTE");
            } else { /* text of another type is just text */
                opened file = gguf_accepted(&g);
                gguf_close(&file);
            }
        }
    }
}

static void bytes_are_read_from_both_cases(void **state)
{
    (void)state;
    for (unsigned value = 0; value < 256; value++) {
        char text[8];
        (void)snprintf(text, sizeof text, value % 2 ? "<0x%02X>" : "<0x%02x>", value);
        assert_int_equal(embla_byte_token(text, 6), value);
    }
    assert_int_equal(embla_byte_token("<0x-1>", 6), -1);
    assert_int_equal(embla_byte_token("<0x1:>", 6), -1);
    assert_int_equal(embla_byte_token("<0x1`>", 6), -1);
    assert_int_equal(embla_byte_token("<0x1@>", 6), -1);
    assert_int_equal(embla_byte_token("<0xg1>", 6), -1);
    assert_int_equal(embla_byte_token("<0x00>", 5), -1);
}

/* ---- G13 ---- */

static const uint64_t one_number[4] = {1, 1, 1, 1};

/* One tensor of this name; its one number follows. */
static void tensor_called(gguf_bytes *g, const char *name)
{
    add_head(g, 3, 1, 0);
    add_tensor(g, name, 1, one_number, 0, 0);
    add_padding(g, 32);
    add_fill(g, 4);
}

/* A file of one tensor that says it is number no of count, tensors in all. */
static opened split_of(int64_t no, int64_t count, int64_t tensors)
{
    gguf_bytes g = {0};
    add_head(&g, 3, 1, 3);
    add_key(&g, "split.no", EMBLA_GGUF_I64), add_number(&g, (uint64_t)no, 8);
    add_key(&g, "split.count", EMBLA_GGUF_I64), add_number(&g, (uint64_t)count, 8);
    add_key(&g, "split.tensors.count", EMBLA_GGUF_I64), add_number(&g, (uint64_t)tensors, 8);
    add_tensor(&g, "n", 1, one_number, 0, 0);
    add_padding(&g, 32);
    add_fill(&g, 4);
    return gguf_accepted(&g);
}

static void rule_g13_split_numbers_are_in_range(void **state)
{
    static const struct {
        int64_t no, count, tensors;
        bool right;
    } cases[] = {
        {0, 1, 1, true},   {4, 5, 9, true},  {999, 1000, 1, true},     {0, 1001, 9, false},
        {0, -1, 9, false}, {5, 5, 9, false}, {-1, 5, 9, false},        {0, 5, 0, false},
        {0, 5, -1, false}, {0, 1, 2, false}, {0, INT64_MAX, 9, false}, {INT64_MIN, 2, 9, false},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        unsigned number = 77, count = 77;
        uint64_t tensors = 77;
        opened file = split_of(cases[i].no, cases[i].count, cases[i].tensors);
        embla_status status =
            embla_gguf_split(&file.directory, file.map, &number, &count, &tensors);
        assert_status(status, cases[i].right ? EMBLA_OK : EMBLA_ERR_FORMAT);
        if (!cases[i].right) assert_error_has("(G13)");
        assert_int_equal(number, cases[i].right ? cases[i].no : 77);
        assert_int_equal(count, cases[i].right ? cases[i].count : 77);
        assert_int_equal(tensors, cases[i].right ? cases[i].tensors : 77);
        gguf_close(&file);
    }
}

static void a_file_that_is_not_split_is_0_of_1(void **state)
{
    unsigned number = 77, count = 77;
    uint64_t tensors = 77;
    gguf_bytes g = {0};
    (void)state;
    tensor_called(&g, "n");
    opened file = gguf_accepted(&g);
    assert_ok(embla_gguf_split(&file.directory, file.map, &number, &count, &tensors));
    assert_true(number == 0 && count == 1 && tensors == 1);
    gguf_close(&file);
    file = split_of(9, 0, 9); /* joined again: split.count is 0 */
    assert_ok(embla_gguf_split(&file.directory, file.map, &number, &count, &tensors));
    assert_true(number == 0 && count == 1 && tensors == 1);
    gguf_close(&file);
}

static void rule_g13_split_keys_come_together(void **state)
{
    static const char *const keys[] = {"split.no", "split.tensors.count"};
    unsigned number, count;
    uint64_t tensors;
    (void)state;
    for (size_t i = 0; i < 2; i++) {
        gguf_bytes g = {0};
        add_head(&g, 3, 0, 2);
        add_key_u32(&g, "split.count", 2);
        add_key_u32(&g, keys[i], 1);
        opened file = gguf_accepted(&g);
        assert_status(embla_gguf_split(&file.directory, file.map, &number, &count, &tensors),
                      EMBLA_ERR_FORMAT);
        assert_error_has(keys[1 - i]);
        assert_error_has("(G13)");
        gguf_close(&file);
    }
    gguf_bytes g = {0};
    add_head(&g, 3, 0, 1);
    add_key_text(&g, "split.count", "two");
    opened file = gguf_accepted(&g);
    assert_status(embla_gguf_split(&file.directory, file.map, &number, &count, &tensors),
                  EMBLA_ERR_FORMAT);
    assert_error_has("(G5)");
    gguf_close(&file);
}

static void rule_g13_names_of_siblings(void **state)
{
    char out[256] = "untouched", longest[300];
    (void)state;
    assert_ok(embla_gguf_split_name("m-00001-of-00005.gguf", 0, 5, out));
    assert_string_equal(out, "m-00001-of-00005.gguf");
    assert_ok(embla_gguf_split_name("m-00003-of-01000.gguf", 999, 1000, out));
    assert_string_equal(out, "m-01000-of-01000.gguf");
    static const char *const wrong[] = {"m.gguf",
                                        "-00001-of-00005.gguf",
                                        "m-00000-of-00005.gguf",
                                        "m-00006-of-00005.gguf",
                                        "m-00001-of-00004.gguf",
                                        "m-0001-of-00005.gguf",
                                        "m-0000x-of-00005.gguf",
                                        "m-00001-of-0000x.gguf",
                                        "m-00001-of-00005.ggu",
                                        "m-00001-of-00005.GGUF",
                                        "m_00001-of-00005.gguf",
                                        "m-00001_of-00005.gguf",
                                        "../m-00001-of-00005.gguf",
                                        "",
                                        "m-00001-of-00005.gguf.gguf"};
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(embla_gguf_split_name(wrong[i], 1, 5, out), EMBLA_ERR_FORMAT);
        assert_error_has("(G13)");
        assert_string_equal(out, "m-01000-of-01000.gguf");
    }
    assert_status(embla_gguf_split_name("m-00001-of-00005.gguf", 5, 5, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gguf_split_name("m-00001-of-00000.gguf", 0, 0, out), EMBLA_ERR_ARGUMENT);
    assert_status(embla_gguf_split_name("m-00001-of-01001.gguf", 0, 1001, out), EMBLA_ERR_ARGUMENT);
    for (size_t length = 255; length <= 256; length++) {
        memset(longest, 'm', length);
        memcpy(longest + length - 20, "-00001-of-00005.gguf", 21);
        assert_status(embla_gguf_split_name(longest, 4, 5, out),
                      length == 255 ? EMBLA_OK : EMBLA_ERR_FORMAT);
        assert_int_equal(strlen(out), 255);
    }
}

/* ---- what people see ---- */

static void text_becomes_pairs(void **state)
{
    gguf_bytes g = {0};
    char text[1026];
    (void)state;
    memset(text, 't', sizeof text);
    add_head(&g, 3, 0, 6);
    add_key_text(&g, "general.architecture", "llama");
    add_key_u32(&g, "number", 1);
    text[1024] = 0;
    add_key_text(&g, "long", text);
    text[1024] = 't', text[1025] = 0;
    add_key_text(&g, "longer", text);
    add_key_text(&g, "empty", "");
    add_key(&g, "zero", EMBLA_GGUF_STRING), add_number(&g, 3, 8), add(&g, "a\0b", 3);
    opened file = gguf_accepted(&g);
    assert_int_equal(file.directory.pair_count, 3);
    assert_string_equal(file.directory.pairs[0].key, "general.architecture");
    assert_string_equal(file.directory.pairs[0].value, "llama");
    assert_string_equal(file.directory.pairs[1].key, "long");
    assert_int_equal(strlen(file.directory.pairs[1].value), 1024);
    assert_string_equal(file.directory.pairs[2].key, "empty");
    assert_string_equal(file.directory.pairs[2].value, "");
    gguf_close(&file);
}

static void keys_say_where_they_are(void **state)
{
    gguf_bytes g = {0};
    (void)state;
    add_small_model(&g);
    opened file = gguf_accepted(&g);
    const embla_gguf *gguf = embla_gguf_of(&file.directory);
    uint64_t at = 24;
    assert_int_equal(gguf->count, 4);
    for (size_t i = 0; i < gguf->count; i++) { /* one after the other, no gap */
        assert_int_equal(gguf->keys[i].first, at);
        assert_memory_equal(file.bytes + at + 8, gguf->keys[i].key, strlen(gguf->keys[i].key));
        assert_true(gguf->keys[i].value < gguf->keys[i].end);
        at = gguf->keys[i].end;
    }
    assert_int_equal(gguf->keys[2].element, EMBLA_GGUF_F32);
    assert_int_equal(gguf->keys[2].end - gguf->keys[2].value, 8);
    assert_int_equal(gguf->data % 32, 0);
    assert_int_equal(file.directory.entries[0].offset, gguf->data);
    assert_memory_equal(file.bytes + file.directory.entries[0].offset, "\x01\x08\x0f", 3);
    assert_ok(embla_gguf_vocab_check(&file.directory, file.map));
    gguf_close(&file);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(versions_2_and_3_are_read),
        cmocka_unit_test(rule_g1_another_magic_number_is_refused),
        cmocka_unit_test(rule_g1_versions_0_1_4_are_refused),
        cmocka_unit_test(rule_g1_big_endian_has_its_own_message),
        cmocka_unit_test(rule_c2_a_header_cut_short_is_refused),
        cmocka_unit_test(rule_g2_more_tensors_than_bytes_are_refused),
        cmocka_unit_test(rule_g2_more_keys_than_bytes_are_refused),
        cmocka_unit_test(rule_g2_a_million_and_one_are_refused),
        cmocka_unit_test(rule_g3_a_key_longer_than_the_file_is_refused),
        cmocka_unit_test(rule_g3_a_key_has_at_most_65535_bytes),
        cmocka_unit_test(rule_g3_an_empty_key_is_refused),
        cmocka_unit_test(rule_g3_a_key_that_is_not_ascii_is_refused),
        cmocka_unit_test(rule_g3_a_key_that_occurs_twice_is_refused),
        cmocka_unit_test(rule_g3_a_value_longer_than_the_file_is_refused),
        cmocka_unit_test(rule_g3_a_value_has_at_most_64_mib),
        cmocka_unit_test(rule_g3_a_string_in_an_array_longer_than_the_file_is_refused),
        cmocka_unit_test(every_type_of_value_is_read),
        cmocka_unit_test(rule_g4_a_type_above_12_is_refused),
        cmocka_unit_test(rule_g4_a_bool_is_0_or_1),
        cmocka_unit_test(rule_g4_a_bool_in_an_array_is_0_or_1),
        cmocka_unit_test(rule_g4_arrays_of_arrays_are_refused),
        cmocka_unit_test(rule_g4_an_array_longer_than_the_file_is_refused),
        cmocka_unit_test(rule_g4_an_array_has_at_most_2_to_28_elements),
        cmocka_unit_test(rule_g4_all_arrays_have_at_most_2_to_24_strings_and_bools),
        cmocka_unit_test(rule_g5_getters_refuse_other_types),
        cmocka_unit_test(getters_find_nothing_in_other_formats),
        cmocka_unit_test(rule_g5_scores_and_types_are_of_their_type_and_length),
        cmocka_unit_test(rule_g5_tokens_are_strings),
        cmocka_unit_test(rule_g5_scores_without_tokens_are_refused),
        cmocka_unit_test(strings_of_an_array_come_with_their_places),
        cmocka_unit_test(rule_g6_alignment_is_a_u32),
        cmocka_unit_test(rule_g6_alignment_is_a_power_of_two_from_8_to_65536),
        cmocka_unit_test(rule_g12_a_byte_token_is_two_hex_digits),
        cmocka_unit_test(bytes_are_read_from_both_cases),
        cmocka_unit_test(rule_g13_split_numbers_are_in_range),
        cmocka_unit_test(a_file_that_is_not_split_is_0_of_1),
        cmocka_unit_test(rule_g13_split_keys_come_together),
        cmocka_unit_test(rule_g13_names_of_siblings),
        cmocka_unit_test(text_becomes_pairs),
        cmocka_unit_test(keys_say_where_they_are),
    };
    return cmocka_run_group_tests_name("gguf", tests, NULL, NULL);
}
