/* SPDX-License-Identifier: Apache-2.0 */
/* What has gone wrong in other readers of safetensors and its index, each with a file of our
 * own making that does the same, and the rule that refuses it. Numbers are the rows of the
 * list in docs/formats.md; the id says where it was told.
 */
#include <time.h>

#include "../safetensors_file.h"

static void index_refuses(const char *text)
{
    embla_arena arena = {0};
    embla_shard_index index;
    assert_status(embla_safetensors_index(text, strlen(text), "x.index.json", &arena, &index),
                  EMBLA_ERR_FORMAT);
    st_sentence("x.index.json: ", "S13");
    embla_arena_free(&arena);
}

/* A shape of a million numbers, and four bytes of data that are there. */
static void row_30_mlx_pr_3364_shape_larger_than_data(void **state)
{
    (void)state;
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1000,1000]", "[0,4]")), 4, "S8");
    assert_error_has("has 4 bytes, but its shape needs 4000000");
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1000,1000]", "[0,4000000]")), 4, "S9");
}

/* A product that is 4 in 64 bits. */
static void row_30_safetensors_cpp_shape_wraps_to_4(void **state)
{
    (void)state;
    st_refuses(NULL, ST_A(ST_MEMBERS("I8", "[4194305,4194305,211106198978564]", "[0,4]")), 4, "S8");
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[4194305,4194305,211106198978564]", "[0,16]")), 16,
               "S8");
    assert_error_has("64 bits");
}

/* A validator that reading does not call: here reading is the validator, and what it fills
 * in is the only way to a tensor. Each of these is refused by the one call there is. */
static void row_30_safetensors_cpp_validate_is_never_called(void **state)
{
    (void)state;
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1]", "[4,8]")), 4, "S9");
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1]", "[4294967296,4294967300]")), 4, "S9");
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1]", "[9223372036854775803,9223372036854775807]")), 4,
               "S9");
    st_refuses(NULL, ST_A(ST_MEMBERS("F32", "[1]", "[4,0]")), 4, "S9");
}

#define FIRST  "{" ST_MEMBERS("F32", "[1]", "[0,4]") "}"
#define SECOND "{" ST_MEMBERS("F32", "[1]", "[4,8]") "}"

/* Two parsers that keep different ones of two same keys see different weights. */
static void row_31_safetensors_401_openasr_pr_73_duplicate_keys(void **state)
{
    (void)state;
    st_refuses(NULL, "{\"w\":" FIRST ",\"w\":" SECOND "}", 8, "S5");
    st_refuses(NULL, "{\"w\":" FIRST ",\"\\u0077\":" SECOND "}", 8, "S5");
    st_refuses(NULL, "{\"w\":" FIRST ",\"w\":" FIRST "}", 4, "S5");
    st_refuses(NULL, ST_A("\"shape\":[1]," ST_MEMBERS("F32", "[1]", "[0,4]")), 4, "S5");
    st_refuses(NULL, ST_A("\"data_offsets\":[4,8]," ST_MEMBERS("F32", "[1]", "[0,4]")), 8, "S5");
}

/* A file that is also something else: in a tail, in a hole, in padding, before the header. */
static void row_32_trail_of_bits_2023_polyglot_files(void **state)
{
    static const char zip[] = "PK\5\6\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0\0";
    const char *header = ST_A(ST_MEMBERS("F32", "[1]", "[0,4]"));
    size_t count = strlen(header);
    (void)state;
    st_file f = st_make(count, header, count, 4 + sizeof zip - 1);
    memcpy(f.bytes + f.size - (sizeof zip - 1), zip, sizeof zip - 1);
    st_refuses_file(NULL, f, false, "S9");
    st_refuses(NULL, "{\"a\":" FIRST ",\"b\":{" ST_MEMBERS("F32", "[1]", "[26,30]") "}}", 30, "S9");
    st_refuses(NULL, "{\"a\":" FIRST "} <script>", 4, "S3");
    st_refuses(NULL, "<html>{\"a\":" FIRST "}", 4, "S2");
    st_refuses(NULL, " {\"a\":" FIRST "}", 4, "S2");
    st_refuses(NULL, "{\"a\":" FIRST ",\"b\":" FIRST "}", 4, "S9");
}

/* A shard that lies where the index wants it, not where the checkpoint is. */
static void row_33_transformers_47176_diffusers_14175_weight_map_path(void **state)
{
    (void)state;
    index_refuses("{\"weight_map\":{\"a\":\"../../secret.safetensors\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"/etc/passwd\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"..\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"sub/m.safetensors\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"..\\\\m.safetensors\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"\\u002e\\u002e\\u002fm.safetensors\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"file:///etc/passwd\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"m.safetensors\\u0000\"}}");
    index_refuses("{\"weight_map\":{\"a\":\"~/m.safetensors\"}}");
}

/* Depth: brackets by the hundred thousand, in every place where one can stand. */
static void row_41_cve_2016_4425_json_depth(void **state)
{
    static const char *const fronts[] = {
        "{\"a\":", "{\"a\":{\"shape\":", "{\"a\":{\"b\":{\"c\":", "{\"__metadata__\":{\"k\":"};
    enum { DEEP = 200000 };
    char *text = malloc(DEEP + 64);
    (void)state;
    assert_non_null(text);
    for (size_t i = 0; i < COUNT_OF(fronts); i++) {
        size_t used = (size_t)snprintf(text, 64, "%s", fronts[i]);
        for (int object = 0; object < 2; object++) {
            for (size_t j = 0; j < DEEP; j++) text[used + j] = object ? "{\"\":"[j % 4] : '[';
            st_refuses_file(NULL, st_make(used + DEEP, text, used + DEEP, 0), false, "S4");
            text[used + DEEP] = 0;
            index_refuses(text);
        }
    }
    free(text);
}

/* Names that fall into one place of a hash table: what one seed makes of names is not known
 * to who made the file, and the sorting has no hash. So many names take no long time, those
 * of one hash in an unseeded table (jansson before 2.6: djb2, where "Ez" and "FY" are one)
 * among them. */
static void row_41_cve_2013_6401_hash_flood(void **state)
{
    enum { BITS = 17, NAMES = 1 << BITS };
    char *text = malloc((size_t)NAMES * 96);
    size_t used = 0;
    embla_directory d;
    (void)state;
    assert_non_null(text);
    for (uint32_t i = 0; i < NAMES; i++) {
        text[used++] = i == 0 ? '{' : ',';
        text[used++] = '"';
        for (int bit = 0; bit < BITS; bit++) {
            memcpy(text + used, i >> bit & 1 ? "Ez" : "FY", 2);
            used += 2;
        }
        used += (size_t)snprintf(text + used, 64, "\":{" ST_MEMBERS("F32", "[0]", "[0,0]") "}");
    }
    text[used++] = '}';
    clock_t begin = clock();
    st_accepts_file(NULL, st_make(used, text, used, 0), false, &d);
    assert_int_equal(d.count, NAMES);
    double seconds = (double)(clock() - begin) / CLOCKS_PER_SEC;
    if (seconds > 10) fail_msg("%d names took %.1f s", NAMES, seconds); /* one second is usual */
    embla_directory_free(&d);
    free(text);
}

/* A number as long as the file. */
static void row_41_cve_2023_26819_long_number(void **state)
{
    enum { DIGITS = 100000 };
    static const char front[] = "{\"a\":{\"dtype\":\"I8\",\"shape\":[";
    static const char *const back[] = {"],\"data_offsets\":[0,1]}}", "e1],\"data_offsets\":[0,1]}}",
                                       ".5],\"data_offsets\":[0,1]}}", ""};
    char *text = malloc(DIGITS + 128);
    (void)state;
    assert_non_null(text);
    memcpy(text, front, sizeof front - 1);
    memset(text + sizeof front - 1, '1', DIGITS);
    for (size_t i = 0; i < COUNT_OF(back); i++) {
        size_t count = sizeof front - 1 + DIGITS;
        count += (size_t)snprintf(text + count, 64, "%s", back[i]);
        st_refuses_file(NULL, st_make(count, text, count, 1), false, "S4");
    }
    free(text);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(row_30_mlx_pr_3364_shape_larger_than_data),
        cmocka_unit_test(row_30_safetensors_cpp_shape_wraps_to_4),
        cmocka_unit_test(row_30_safetensors_cpp_validate_is_never_called),
        cmocka_unit_test(row_31_safetensors_401_openasr_pr_73_duplicate_keys),
        cmocka_unit_test(row_32_trail_of_bits_2023_polyglot_files),
        cmocka_unit_test(row_33_transformers_47176_diffusers_14175_weight_map_path),
        cmocka_unit_test(row_41_cve_2016_4425_json_depth),
        cmocka_unit_test(row_41_cve_2013_6401_hash_flood),
        cmocka_unit_test(row_41_cve_2023_26819_long_number),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
