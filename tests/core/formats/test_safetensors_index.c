/* SPDX-License-Identifier: Apache-2.0 */
/* The index of a checkpoint in shards, clause by clause of rule S13, and the index held
 * against the shards it speaks of.
 */
#include "safetensors_file.h"

#define INDEX_NAME      "model.safetensors.index.json"
#define MAP_OF(members) "{\"weight_map\":{" members "}}"
#define IN_FILE(file)   MAP_OF("\"a\":\"" file "\"")
#define A_FILE          "m-00001-of-00002.safetensors"
#define B_FILE          "m-00002-of-00002.safetensors"

static embla_status read_index(const char *text, size_t count, embla_arena *arena,
                               embla_shard_index *out)
{
    char *exact = malloc(count > 0 ? count : 1); /* a sanitizer sees one byte too many */
    assert_non_null(exact);
    memcpy(exact, text, count);
    embla_status status = embla_safetensors_index(exact, count, INDEX_NAME, arena, out);
    free(exact);
    return status;
}

static void refuses(const char *seed, const char *text)
{
    embla_arena arena = {0};
    embla_shard_index index = {.shard_count = 77};
    size_t live = embla_mem_live();
    st_seed("safetensors_index", seed, text, strlen(text));
    embla_status status = read_index(text, strlen(text), &arena, &index);
    if (status != EMBLA_ERR_FORMAT) fail_msg("%s: %s", seed, embla_status_name(status));
    st_sentence(INDEX_NAME ": ", "S13");
    assert_int_equal(index.shard_count, 77);
    embla_arena_free(&arena);
    assert_int_equal(embla_mem_live(), live);
}

static void accepts(const char *seed, const char *text, embla_arena *arena, embla_shard_index *out)
{
    *arena = (embla_arena){0};
    st_seed("safetensors_index", seed, text, strlen(text));
    assert_ok(read_index(text, strlen(text), arena, out));
}

static void rule_s13_tensors_find_their_shards(void **state)
{
    embla_arena arena;
    embla_shard_index index;
    (void)state;
    accepts("ok_two_shards",
            "{\"metadata\":{\"total_size\":12},\"weight_map\":{\"b\":\"" B_FILE "\",\"a\":\"" A_FILE
            "\",\"c\":\"" B_FILE "\"}}\n",
            &arena, &index);
    assert_int_equal(index.shard_count, 2);
    assert_string_equal(index.shards[0], A_FILE);
    assert_string_equal(index.shards[1], B_FILE);
    assert_int_equal(index.tensor_count, 3);
    assert_string_equal(index.tensors[0].bytes, "b");
    assert_int_equal(index.tensors[0].number, 1);
    assert_int_equal(index.tensors[1].number, 0);
    assert_int_equal(index.tensors[2].number, 1);
    assert_ptr_equal(embla_names_find(&index.by_name, "a", 1), &index.tensors[1]);
    assert_ptr_equal(embla_names_find(&index.by_name, "c", 1), &index.tensors[2]);
    assert_null(embla_names_find(&index.by_name, "d", 1));
    assert_int_equal(index.total_size, 12);
    embla_arena_free(&arena);
}

static void rule_s13_total_size_is_optional(void **state)
{
    static const struct {
        const char *seed, *text;
        int64_t total;
    } cases[] = {
        {"ok_no_metadata", IN_FILE("m"), -1},
        {"ok_no_total", "{\"metadata\":{\"x\":[{\"y\":1.5}]},\"weight_map\":{\"a\":\"m\"}}", -1},
        {"ok_total_0", "{\"metadata\":{\"total_size\":0},\"weight_map\":{\"a\":\"m\"}}", 0},
        {"ok_total_1", "{\"metadata\":{\"total_size\":1},\"weight_map\":{\"a\":\"m\"}}", 1},
        {"ok_total_real", "{\"metadata\":{\"total_size\":8.0},\"weight_map\":{\"a\":\"m\"}}", -2},
        {"ok_total_below_0", "{\"metadata\":{\"total_size\":-8},\"weight_map\":{\"a\":\"m\"}}", -2},
        {"ok_total_text", "{\"metadata\":{\"total_size\":\"8\"},\"weight_map\":{\"a\":\"m\"}}", -2},
    };
    embla_arena arena;
    embla_shard_index index;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        accepts(cases[i].seed, cases[i].text, &arena, &index);
        assert_int_equal(index.total_size, cases[i].total);
        embla_arena_free(&arena);
    }
}

static void rule_s13_the_index_is_json(void **state)
{
    (void)state;
    refuses("s13_empty", "");
    refuses("s13_array", "[]");
    refuses("s13_not_closed", "{\"weight_map\":{\"a\":\"m\"}");
    refuses("s13_not_utf8", IN_FILE("m\xff"));
    refuses("s13_after_the_end", IN_FILE("m") "x");
    refuses("s13_too_deep", "{\"metadata\":{\"x\":[[[]]]},\"weight_map\":{\"a\":\"m\"}}");
    refuses("s13_no_weight_map", "{\"metadata\":{}}");
    assert_error_has("missing");
    refuses("s13_weight_map_array", "{\"weight_map\":[\"a\",\"m\"]}");
    refuses("s13_weight_map_empty", MAP_OF(""));
    refuses("s13_metadata_text", "{\"metadata\":\"\",\"weight_map\":{\"a\":\"m\"}}");
    refuses("s13_zero_in_name", MAP_OF("\"a\\u0000\":\"m\""));
    refuses("s13_zero_in_file", MAP_OF("\"a\":\"m\\u0000/../x\""));
}

static void rule_s13_the_index_has_at_most_64_mb(void **state)
{
    enum { MOST = 64000000 };
    const size_t length = strlen(IN_FILE("m"));
    char *text = malloc(MOST + 1);
    embla_arena arena = {0};
    embla_shard_index index;
    (void)state;
    assert_non_null(text);
    memset(text, ' ', MOST + 1);
    memcpy(text, IN_FILE("m"), length);
    assert_ok(embla_safetensors_index(text, MOST, INDEX_NAME, &arena, &index));
    embla_arena_free(&arena);
    assert_status(embla_safetensors_index(text, MOST + 1, INDEX_NAME, &arena, &index),
                  EMBLA_ERR_FORMAT);
    st_sentence(INDEX_NAME ": the index has 64000001 bytes", "S13");
    free(text);
}

static void rule_s13_weight_map_is_text_to_text(void **state)
{
    (void)state;
    refuses("s13_file_is_number", MAP_OF("\"a\":1"));
    refuses("s13_file_is_null", MAP_OF("\"a\":null"));
    refuses("s13_file_is_index", MAP_OF("\"a\":{\"weight_map\":{}}"));
    refuses("s13_file_is_array", MAP_OF("\"a\":[\"m\"]"));
}

static void rule_s13_no_key_occurs_twice(void **state)
{
    (void)state;
    refuses("s13_tensor_twice", MAP_OF("\"a\":\"m\",\"a\":\"n\""));
    refuses("s13_tensor_twice_escaped", MAP_OF("\"a\":\"m\",\"\\u0061\":\"m\""));
    refuses("s13_weight_map_twice", "{\"weight_map\":{\"a\":\"m\"},\"weight_map\":{\"a\":\"n\"}}");
}

static void rule_s13_a_shard_has_a_plain_name(void **state)
{
    static const struct {
        const char *seed, *file;
    } cases[] = {
        {"s13_file_empty", ""},
        {"s13_file_dot", "."},
        {"s13_file_dots", ".."},
        {"s13_file_hidden", ".m"},
        {"s13_file_parent", "../m"},
        {"s13_file_below", "x/m"},
        {"s13_file_absolute", "/etc/passwd"},
        {"s13_file_slash_escaped", "..\\u002fm"},
        {"s13_file_backslash", "..\\\\m"},
        {"s13_file_drive", "C:m"},
        {"s13_file_two_dots_inside", "m..safetensors"},
        {"s13_file_space", "m "},
        {"s13_file_percent", "%2e%2e"},
        {"s13_file_newline", "m\\n"},
        {"s13_file_not_ascii", "caf\xc3\xa9"},
        {"s13_file_tilde", "~"},
    };
    embla_arena arena;
    embla_shard_index index;
    char text[64];
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        (void)snprintf(text, sizeof text, IN_FILE("%s"), cases[i].file);
        refuses(cases[i].seed, text);
        assert_error_has("not a plain file name");
    }
    accepts("ok_every_letter",
            MAP_OF("\"a\":\"ABCDEFGHIJKLMNOPQRSTUVWXYZ\",\"b\":\"abcdefghijklmnopqrstuvwxyz\","
                   "\"c\":\"0123456789\",\"d\":\"-_.-\",\"e\":\"m.\""),
            &arena, &index);
    assert_int_equal(index.shard_count, 5);
    embla_arena_free(&arena);
}

static void rule_s13_a_shard_name_has_at_most_255_bytes(void **state)
{
    embla_arena arena;
    embla_shard_index index;
    char name[257], text[300];
    (void)state;
    memset(name, 'm', 256);
    name[256] = 0;
    (void)snprintf(text, sizeof text, IN_FILE("%s"), name);
    refuses("s13_file_of_256", text);
    name[255] = 0;
    (void)snprintf(text, sizeof text, IN_FILE("%s"), name);
    accepts("ok_file_of_255", text, &arena, &index);
    assert_int_equal(strlen(index.shards[0]), 255);
    embla_arena_free(&arena);
}

static void rule_s13_an_index_inside_an_index_is_refused(void **state)
{
    embla_arena arena;
    embla_shard_index index;
    (void)state;
    refuses("s13_index_inside", IN_FILE(INDEX_NAME));
    assert_error_has("an index must not name another index");
    accepts("ok_json_inside_a_name", IN_FILE("json.safetensors"), &arena, &index);
    embla_arena_free(&arena);
    accepts("ok_short_name", IN_FILE("json"), &arena, &index);
    embla_arena_free(&arena);
}

static void rule_s13_shards_are_at_most_10000(void **state)
{
    char *text = malloc(10002 * 32);
    size_t used = 0;
    embla_arena arena;
    embla_shard_index index;
    (void)state;
    assert_non_null(text);
    used += (size_t)snprintf(text, 32, "{\"weight_map\":{\"again\":\"m0\"");
    for (int i = 0; i < 10000; i++)
        used += (size_t)snprintf(text + used, 32, ",\"t%d\":\"m%d\"", i, i);
    memcpy(text + used, "}}", 3);
    accepts(NULL, text, &arena, &index);
    assert_int_equal(index.shard_count, 10000);
    assert_int_equal(index.tensor_count, 10001);
    for (uint32_t i = 1; i < index.shard_count; i++)
        assert_true(strcmp(index.shards[i - 1], index.shards[i]) < 0);
    for (int i = 0; i < 10000; i += 999) {
        char tensor[16], file[16];
        (void)snprintf(tensor, sizeof tensor, "t%d", i);
        (void)snprintf(file, sizeof file, "m%d", i);
        const embla_name *found = embla_names_find(&index.by_name, tensor, strlen(tensor));
        assert_non_null(found);
        assert_string_equal(index.shards[found->number], file);
    }
    embla_arena_free(&arena);
    memcpy(text + used, ",\"t\":\"m\"}}", 11);
    refuses(NULL, text);
    assert_error_has("10001 shards; the limit is 10000");
    free(text);
}

/* ---- the index and its shards ---- */

/* Two shards: header and data bytes of each. */
typedef struct {
    embla_shard shards[2];
    embla_directory notes;
} opened;

static void open_two(const char *a, size_t a_data, const char *b, size_t b_data, opened *out)
{
    *out = (opened){0};
    st_accepts(NULL, a, a_data, &out->shards[0].directory);
    st_accepts(NULL, b, b_data, &out->shards[1].directory);
}

static void close_two(opened *o)
{
    embla_directory_free(&o->shards[0].directory);
    embla_directory_free(&o->shards[1].directory);
    embla_directory_free(&o->notes);
}

#define TENSOR(name) "\"" name "\":{" ST_MEMBERS("F32", "[1]", "[0,4]") "}"
#define EMPTY(name)  "\"" name "\":{" ST_MEMBERS("F32", "[0]", "[4,4]") "}"
#define BOTH(total)                                                                                \
    "{\"metadata\":{" total "},\"weight_map\":{\"a\":\"" A_FILE "\",\"b\":\"" B_FILE "\"}}"

static void rule_s13_an_index_that_fits_its_shards(void **state)
{
    embla_arena arena;
    embla_shard_index index;
    opened o;
    (void)state;
    accepts(NULL, BOTH("\"total_size\":8"), &arena, &index);
    open_two("{" TENSOR("a") "}", 4, "{" TENSOR("b") "}", 4, &o);
    assert_ok(embla_safetensors_index_check(&index, INDEX_NAME, o.shards, &o.notes));
    assert_int_equal(o.notes.note_count, 0);
    close_two(&o);
    embla_arena_free(&arena);
}

static void check_refuses(const char *a, const char *b, const char *says)
{
    embla_arena arena;
    embla_shard_index index;
    opened o;
    accepts(NULL, BOTH(""), &arena, &index);
    open_two(a, 4, b, 4, &o);
    size_t live = embla_mem_live();
    assert_status(embla_safetensors_index_check(&index, INDEX_NAME, o.shards, &o.notes),
                  EMBLA_ERR_FORMAT);
    assert_int_equal(embla_mem_live(), live);
    st_sentence(INDEX_NAME ": ", "S13");
    assert_error_has(says);
    close_two(&o);
    embla_arena_free(&arena);
}

static void rule_s13_a_tensor_must_be_in_its_shard(void **state)
{
    (void)state;
    check_refuses("{" TENSOR("a") "}", "{" TENSOR("c") "}",
                  "'b' should be in '" B_FILE "', but is in none of the 2 shards");
    check_refuses("{" TENSOR("b") "}", "{" TENSOR("a") "}",
                  "'a' should be in '" A_FILE "', but is in '" B_FILE "'");
}

static void rule_s13_no_tensor_is_in_two_shards(void **state)
{
    (void)state;
    check_refuses("{" TENSOR("a") "}", "{" TENSOR("b") "," EMPTY("a") "}",
                  "'a' is in both '" A_FILE "' and '" B_FILE "'");
    check_refuses("{" TENSOR("a") "," EMPTY("x") "}", "{" TENSOR("b") "," EMPTY("x") "}",
                  "'x' is in both '" A_FILE "' and '" B_FILE "'");
}

static void rule_s13_what_differs_is_noted(void **state)
{
    static const struct {
        const char *index, *note;
    } cases[] = {
        {BOTH("\"total_size\":9"), "total_size is 9, but the tensors have 8 bytes"},
        {BOTH("\"total_size\":8.0"), "total_size is not an integer"},
        {BOTH("\"total_size\":8"), NULL},
    };
    embla_arena arena;
    embla_shard_index index;
    opened o;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        accepts(NULL, cases[i].index, &arena, &index);
        open_two("{" TENSOR("a") "}", 4, "{" TENSOR("b") "," EMPTY("x") "}", 4, &o);
        assert_ok(embla_safetensors_index_check(&index, INDEX_NAME, o.shards, &o.notes));
        assert_non_null(strstr(o.notes.notes[0], "1 of 3 tensors are not in weight_map"));
        assert_int_equal(o.notes.note_count, cases[i].note ? 2 : 1);
        if (cases[i].note) assert_non_null(strstr(o.notes.notes[1], cases[i].note));
        close_two(&o);
        embla_arena_free(&arena);
    }
}

static embla_status whole(const char *text, const opened *o)
{
    embla_arena arena = {0};
    embla_shard_index index;
    embla_directory notes = {0};
    embla_status status = read_index(text, strlen(text), &arena, &index);
    if (status == EMBLA_OK)
        status = embla_safetensors_index_check(&index, INDEX_NAME, o->shards, &notes);
    embla_directory_free(&notes);
    embla_arena_free(&arena);
    return status;
}

static void every_failed_allocation_is_survived(void **state)
{
    opened o;
    (void)state;
    open_two("{" TENSOR("a") "}", 4, "{" TENSOR("b") "," EMPTY("x") "}", 4, &o);
    for (int forever = 0; forever < 2; forever++) {
        embla_status status = EMBLA_ERR_MEMORY;
        size_t n = 0;
        while (status != EMBLA_OK) {
            size_t live = embla_mem_live();
            assert_in_range(++n, 1, 100);
            embla_mem_fail(n, forever == 1);
            status = whole(BOTH("\"total_size\":9"), &o);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        }
        assert_in_range(n, 5, 100);
    }
    close_two(&o);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_s13_tensors_find_their_shards),
        cmocka_unit_test(rule_s13_total_size_is_optional),
        cmocka_unit_test(rule_s13_the_index_is_json),
        cmocka_unit_test(rule_s13_the_index_has_at_most_64_mb),
        cmocka_unit_test(rule_s13_weight_map_is_text_to_text),
        cmocka_unit_test(rule_s13_no_key_occurs_twice),
        cmocka_unit_test(rule_s13_a_shard_has_a_plain_name),
        cmocka_unit_test(rule_s13_a_shard_name_has_at_most_255_bytes),
        cmocka_unit_test(rule_s13_an_index_inside_an_index_is_refused),
        cmocka_unit_test(rule_s13_shards_are_at_most_10000),
        cmocka_unit_test(rule_s13_an_index_that_fits_its_shards),
        cmocka_unit_test(rule_s13_a_tensor_must_be_in_its_shard),
        cmocka_unit_test(rule_s13_no_tensor_is_in_two_shards),
        cmocka_unit_test(rule_s13_what_differs_is_noted),
        cmocka_unit_test(every_failed_allocation_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
