/* SPDX-License-Identifier: Apache-2.0 */
/* The safetensors writer (S14): where tensors and data lie, what is refused before a byte is
 * written, and that whatever is written reads back as it was.
 */
#include <errno.h>

#include "files/io.h"
#include "safetensors_file.h"
#include "scratch.h"

static embla_status read_part(void *context, uint64_t offset, size_t bytes, void *out)
{
    memcpy(out, (const uint8_t *)context + offset, bytes);
    return EMBLA_OK;
}

static embla_part part(const char *name, const char *type, uint64_t rows, uint64_t dim, void *bytes)
{
    embla_part p = {.name = name, .rank = 2, .shape = {rows, dim}, .read = read_part};
    for (size_t i = 0; embla_element_at(i); i++)
        if (strcmp(embla_element_at(i)->name, type) == 0) p.element = embla_element_at(i);
    assert_non_null(p.element);
    assert_true(embla_element_bytes(p.element, rows * dim, &p.bytes));
    p.context = bytes;
    return p;
}

/* Refused with this status and rule; nothing is kept. */
static void refuses(const embla_contents *contents, embla_status wanted, const char *rule)
{
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 77, live = embla_mem_live();
    uint32_t *order = NULL;
    assert_status(embla_safetensors_header(contents, &arena, &bytes, &length, &order), wanted);
    st_sentence("", rule);
    assert_null(bytes);
    assert_int_equal(length, 77);
    embla_arena_free(&arena);
    assert_int_equal(embla_mem_live(), live);
}

static void refuses_part(embla_part p, embla_status wanted, const char *rule)
{
    embla_contents contents = {.parts = &p, .count = 1};
    refuses(&contents, wanted, rule);
}

static void rule_s14_header_to_the_byte(void **state)
{
    static const char wanted[] =
        "{\"__metadata__\":{\"k\":\"v\"},"
        "\"d\":{\"dtype\":\"F64\",\"shape\":[1,1],\"data_offsets\":[0,8]},"
        "\"a\":{\"dtype\":\"F32\",\"shape\":[1,3],\"data_offsets\":[8,20]},"
        "\"c\":{\"dtype\":\"I32\",\"shape\":[2,1],\"data_offsets\":[20,28]},"
        "\"b\":{\"dtype\":\"BF16\",\"shape\":[0,2],\"data_offsets\":[28,28]},"
        "\"e\":{\"dtype\":\"I8\",\"shape\":[1,1],\"data_offsets\":[28,29]},"
        "\"f\":{\"dtype\":\"F4\",\"shape\":[1,2],\"data_offsets\":[29,30]}}";
    const embla_part parts[] = {part("f", "F4", 1, 2, NULL),  part("e", "I8", 1, 1, NULL),
                                part("c", "I32", 2, 1, NULL), part("b", "BF16", 0, 2, NULL),
                                part("a", "F32", 1, 3, NULL), part("d", "F64", 1, 1, NULL)};
    static const uint32_t order_wanted[] = {5, 4, 2, 3, 1, 0};
    const embla_pair pair = {"k", "v"};
    const embla_contents contents = {
        .parts = parts, .count = COUNT_OF(parts), .pairs = &pair, .pair_count = 1};
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint32_t *order = NULL;
    (void)state;
    assert_ok(embla_safetensors_header(&contents, &arena, &bytes, &length, &order));
    assert_int_equal(length % 64, 0);
    assert_int_equal(embla_le64(bytes), length - 8);
    assert_memory_equal(bytes + 8, wanted, strlen(wanted));
    assert_in_range(length - 8 - strlen(wanted), 0, 63); /* no more than is needed */
    for (size_t i = 8 + strlen(wanted); i < length; i++) assert_int_equal(bytes[i], 0x20);
    assert_memory_equal(order, order_wanted, sizeof order_wanted);
    embla_arena_free(&arena);
}

static void rule_s14_padding_for_every_length(void **state)
{
    char name[130];
    (void)state;
    for (size_t i = 1; i < sizeof name; i++) {
        embla_arena arena = {0};
        uint8_t *bytes = NULL;
        size_t length = 0;
        uint32_t *order = NULL;
        memset(name, 'n', i);
        name[i] = 0;
        const embla_part p = part(name, "F32", 1, 1, NULL);
        const embla_contents contents = {.parts = &p, .count = 1};
        assert_ok(embla_safetensors_header(&contents, &arena, &bytes, &length, &order));
        assert_int_equal(length % 64, 0);
        assert_int_equal(embla_le64(bytes), length - 8);
        embla_arena_free(&arena);
    }
}

static void rule_s14_nothing_at_all_is_a_file(void **state)
{
    const embla_contents contents = {0};
    embla_arena arena = {0};
    uint8_t *bytes = NULL;
    size_t length = 0;
    uint32_t *order = NULL;
    embla_directory d;
    (void)state;
    assert_ok(embla_safetensors_header(&contents, &arena, &bytes, &length, &order));
    assert_int_equal(length, 64);
    st_file f = {malloc(length), length};
    assert_non_null(f.bytes);
    memcpy(f.bytes, bytes, length);
    embla_arena_free(&arena);
    st_accepts_file(NULL, f, false, &d);
    assert_int_equal(d.count, 0);
    embla_directory_free(&d);
}

static void rule_s14_types_safetensors_has_not_are_refused(void **state)
{
    (void)state;
    for (size_t i = 0; embla_element_at(i); i++) {
        const embla_element *e = embla_element_at(i);
        if (e->safetensors) continue;
        refuses_part(part("blk.0", e->name, 1, e->block, NULL), EMBLA_ERR_UNSUPPORTED, "S7");
        assert_error_has("'blk.0'");
        assert_error_has(e->name);
    }
}

static void rule_s14_a_header_above_100_mb_is_refused(void **state)
{
    enum { PARTS = 4100, NAME = 4096 }; /* each byte of a name is written as six */
    char *names = malloc((size_t)PARTS * (NAME + 1));
    embla_part *parts = calloc(PARTS, sizeof *parts);
    (void)state;
    assert_non_null(names);
    assert_non_null(parts);
    memset(names, 1, (size_t)PARTS * (NAME + 1));
    for (size_t i = 0; i < PARTS; i++) {
        char *name = names + i * (NAME + 1);
        (void)snprintf(name, 5, "%04zu", i);
        name[4] = 1;
        name[NAME] = 0;
        parts[i] = part(name, "I8", 1, 1, NULL);
    }
    embla_contents contents = {.parts = parts, .count = PARTS};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S14");
    assert_error_has("the limit is 100000000");
    free(parts);
    free(names);
}

/* What our own reader refuses is not written. */
static void names_the_reader_refuses_are_not_written(void **state)
{
    char name[4098];
    (void)state;
    memset(name, 'n', 4097);
    name[4097] = 0;
    refuses_part(part(name, "I8", 1, 1, NULL), EMBLA_ERR_UNSUPPORTED, "S11");
    refuses_part(part("", "I8", 1, 1, NULL), EMBLA_ERR_UNSUPPORTED, "S11");
    refuses_part(part("__metadata__", "I8", 1, 1, NULL), EMBLA_ERR_UNSUPPORTED, "S11");
    refuses_part(part("caf\xe9", "I8", 1, 1, NULL), EMBLA_ERR_UNSUPPORTED, "S11");
    const embla_part twice[] = {part("a", "I8", 1, 1, NULL), part("b", "F32", 1, 1, NULL),
                                part("a", "F32", 1, 1, NULL)};
    const embla_contents contents = {.parts = twice, .count = 3};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S5");
    assert_error_has("'a' occurs twice");
}

static void shapes_and_bytes_must_agree(void **state)
{
    embla_part p = part("a", "F32", 2, 3, NULL);
    (void)state;
    p.bytes--;
    refuses_part(p, EMBLA_ERR_SHAPE, "S8");
    p = part("a", "F32", 2, 3, NULL);
    p.rank = 9;
    refuses_part(p, EMBLA_ERR_SHAPE, "S8");
    p = part("a", "I8", 0, 3, NULL);
    p.shape[1] = UINT64_C(1) << 63; /* a number that no header can have */
    refuses_part(p, EMBLA_ERR_SHAPE, "S8");
    p = part("a", "I8", 0, 3, NULL);
    p.shape[0] = p.shape[1] = UINT64_C(1) << 32;
    refuses_part(p, EMBLA_ERR_SHAPE, "S8");
    p = part("a", "F4", 1, 2, NULL);
    p.shape[1] = 3;
    refuses_part(p, EMBLA_ERR_SHAPE, "S8");
    embla_part large[] = {part("a", "I8", INT64_MAX, 1, NULL), part("b", "I8", INT64_MAX, 1, NULL),
                          part("c", "I8", INT64_MAX, 1, NULL)};
    embla_contents contents = {.parts = large, .count = 3};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S9");
    contents.count = 1;
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S9");
}

static void counts_have_limits(void **state)
{
    embla_part p = part("a", "I8", 1, 1, NULL);
    embla_contents contents = {.parts = &p, .count = 1000001}; /* only the count is looked at */
    (void)state;
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S11");
    contents = (embla_contents){.pair_count = 65537};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S10");
}

static void metadata_the_reader_refuses_is_not_written(void **state)
{
    char *large = malloc(10000001);
    (void)state;
    assert_non_null(large);
    memset(large, 'v', 10000000);
    large[10000000] = 0;
    embla_pair pairs[] = {{"k", large}, {"j", ""}};
    embla_contents contents = {.pairs = pairs, .pair_count = 2};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S10");
    free(large);
    pairs[0] = (embla_pair){"j", "v"};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S5");
    pairs[0] = (embla_pair){"k", "\xff"};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S2");
    pairs[0] = (embla_pair){"\xff", "v"};
    refuses(&contents, EMBLA_ERR_UNSUPPORTED, "S2");
}

/* ---- to a file and back ---- */

static const char *const odd_name =
    "a \"quoted\" \\ back\\slash\n\t\x01\x1f\x7f caf\xc3\xa9 \xf0\x9f\x98\x80";

static embla_status write_path(const char *path, const embla_contents *contents)
{
    embla_durable *d = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = embla_format_safetensors.write(d, contents);
    if (status == EMBLA_OK) return embla_durable_commit(d);
    embla_durable_abandon(d);
    return status;
}

static void what_is_written_reads_back(void **state)
{
    enum { LARGE = 3 * (1 << 20) + 17 }; /* more than is copied at a time */
    uint8_t *large = malloc(LARGE), small[24];
    const embla_pair pairs[] = {{"format", "pt"}, {odd_name, odd_name}, {"", ""}};
    scratch s;
    embla_map *map = NULL;
    embla_directory d = {0};
    (void)state;
    assert_non_null(large);
    check_fill_bytes(1, LARGE, large);
    check_fill_bytes(2, sizeof small, small);
    const embla_part parts[] = {part(odd_name, "I8", LARGE, 1, large),
                                part("x", "F32", 2, 3, small), part("empty", "F16", 0, 3, NULL)};
    const embla_contents contents = {.parts = parts, .count = 3, .pairs = pairs, .pair_count = 3};
    scratch_new(&s);
    const char *path = scratch_path(&s, "a.safetensors");
    assert_ok(write_path(path, &contents));
    assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
    assert_ok(embla_format_safetensors.read(map, NULL, &d));
    assert_int_equal(d.count, 3);
    assert_int_equal(d.note_count, 0);
    assert_string_equal(d.entries[0].name, "x");
    assert_int_equal(d.entries[0].offset % 64, 0);
    assert_memory_equal(map->bytes + d.entries[0].offset, small, sizeof small);
    assert_string_equal(d.entries[1].name, "empty");
    assert_string_equal(d.entries[2].name, odd_name);
    assert_memory_equal(map->bytes + d.entries[2].offset, large, LARGE);
    assert_int_equal(d.pair_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_string_equal(d.pairs[i].key, pairs[i].key);
        assert_string_equal(d.pairs[i].value, pairs[i].value);
    }
    embla_directory_free(&d);
    embla_map_free(map);
    scratch_free(&s);
    free(large);
}

static embla_status fail_to_read(void *context, uint64_t offset, size_t bytes, void *out)
{
    (void)context, (void)offset, (void)bytes, (void)out;
    embla_say("no more");
    return EMBLA_ERR_IO;
}

static void a_part_that_cannot_be_read_is_no_file(void **state)
{
    uint8_t byte = 1;
    embla_part p = part("a", "I8", 1, 1, &byte);
    embla_contents contents = {.parts = &p, .count = 1};
    scratch s;
    (void)state;
    p.read = fail_to_read;
    scratch_new(&s);
    assert_status(write_path(scratch_path(&s, "a.safetensors"), &contents), EMBLA_ERR_IO);
    assert_int_equal(scratch_count(&s, NULL), 0);
    scratch_free(&s);
}

static void every_failure_is_survived(void **state)
{
    uint8_t bytes[8] = {1, 2, 3, 4, 5, 6, 7, 8};
    const embla_part parts[] = {part("a", "F32", 1, 2, bytes), part("b", "I8", 1, 1, bytes)};
    const embla_pair pair = {"k", "v"};
    const embla_contents contents = {.parts = parts, .count = 2, .pairs = &pair, .pair_count = 1};
    scratch s;
    (void)state;
    scratch_new(&s);
    const char *path = scratch_path(&s, "a.safetensors");
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
                embla_io_fail(n, forever, EMBLA_SYSTEM_NO_SPACE);
            status = write_path(path, &contents);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status != EMBLA_OK) assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
        }
        assert_in_range(n, 3, 100);
    }
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_s14_header_to_the_byte),
        cmocka_unit_test(rule_s14_padding_for_every_length),
        cmocka_unit_test(rule_s14_nothing_at_all_is_a_file),
        cmocka_unit_test(rule_s14_types_safetensors_has_not_are_refused),
        cmocka_unit_test(rule_s14_a_header_above_100_mb_is_refused),
        cmocka_unit_test(names_the_reader_refuses_are_not_written),
        cmocka_unit_test(shapes_and_bytes_must_agree),
        cmocka_unit_test(counts_have_limits),
        cmocka_unit_test(metadata_the_reader_refuses_is_not_written),
        cmocka_unit_test(what_is_written_reads_back),
        cmocka_unit_test(a_part_that_cannot_be_read_is_no_file),
        cmocka_unit_test(every_failure_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
