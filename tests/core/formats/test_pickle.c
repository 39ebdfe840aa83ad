/* SPDX-License-Identifier: Apache-2.0 */
/* Pickles and zip archives: recognised before any other format is asked, and refused with a
 * sentence that says what they are (rules P, N6). Files of other formats that begin with
 * the same bytes must not be taken for pickles.
 */
#include "models.h"

#define FORMAT (&embla_format_pickle)

static void put_text(model_file *f, const char *text)
{
    put(f, text, strlen(text));
}

/* A member of a zip: stored, with its length; flags and length as they are to be said. */
static void put_member(model_file *f, const char *name, int flags, int64_t said, size_t bytes)
{
    put(f, "PK\x03\x04\x14\x00", 6);
    put_u8(f, flags);
    put(f, "\0\0\0\0\0\0\0\0\0\0\0", 11); /* flags, method, time, date, checksum */
    put_i32(f, said);
    put_i32(f, said);
    put_u8(f, (int)(strlen(name) & 255));
    put_u8(f, (int)(strlen(name) >> 8));
    put_u8(f, 3); /* extra bytes after the name */
    put_u8(f, 0);
    put_text(f, name);
    put(f, "abc", 3);
    for (size_t i = 0; i < bytes; i++) put_u8(f, 'd');
}

/* Seeds go where pickles are fuzzed: with llama2.c's models, which begin alike. */
static void refuses_because(const model_file *f, const char *seed, const char *rule,
                            const char *why)
{
    save_seed("llama2c", seed, f->bytes, f->size);
    assert_true(FORMAT->sniff(f->bytes, f->size, f->size));
    refuses_with(FORMAT, f, NULL, EMBLA_ERR_UNSUPPORTED, rule, NULL);
    assert_error_has(why);
}

/* ---- pickles ---- */

static void rule_p_every_protocol_is_refused(void **state)
{
    const char *const programs[] = {
        "\x80\x02}q",
        "\x80\x03]q",
        "\x80\x04\x95\x11",
        "\x80\x05\x95\x11",
        "\x80\x02\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.", /* torch, before 1.6 */
        "\x80\x02",
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(programs); i++) {
        model_file f = {.size = 0};
        put_text(&f, programs[i]);
        refuses_because(&f,
                        i == 0   ? "p_protocol_2"
                        : i == 2 ? "p_protocol_4"
                        : i == 4 ? "p_torch_legacy"
                        : i == 5 ? "p_two_bytes"
                                 : NULL,
                        "P",
                        "this is a pickle, which can run any program when it is loaded; convert "
                        "it to safetensors in a sandbox");
    }
}

static void rule_p_torch_magic_without_a_protocol_is_refused(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_text(&f, "L119547037146038801333356L\n.");
    refuses_because(&f, "p_torch_text", "P", "this is a pickle");
    f.size = 0;
    put_text(&f, "\x8a\x0a\x6c\xfc\x9c\x46\xf9\x20\x6a\xa8\x50\x19.");
    refuses_because(&f, "p_torch_long", "P", "this is a pickle");
}

static void rule_p_what_begins_alike_is_left_to_its_format(void **state)
{
    const struct {
        const char *bytes;
        size_t size;
    } others[] = {
        {"\x80\x02\0\0\0\0\0\0{\"", 10},          /* safetensors, a header of 640 */
        {"\x80\x05\x28\0\0\0\0\0{\"", 10},        /* the third byte an instruction */
        {"\x80\x05\x28\0\0\0\0\0 {", 10},         /* lenient safetensors */
        {"\x80\x02\0\0\x01\0\0\0\x02\0\0\0", 12}, /* llama2.c, a dim of 640 */
        {"\x80\x01q", 3},
        {"\x80\x06\x95", 3}, /* no such protocol */
        {"\x80", 1},
        {"\x81\x02q", 3},
        {"PK\x05\x06", 4},
        {"PK\x03", 3},
        {"", 0},
        {"L1195\n", 6},
        {"\x80\x02\x99", 3},
        {"\x80\x02\x01", 3},
        {"GGUF\x03\0\0\0", 8},
        {"\x93NUMPY", 6},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(others); i++) {
        char seed[32];
        snprintf(seed, sizeof seed, "p_begins_alike_%zu", i);
        save_seed("llama2c", seed, others[i].bytes, others[i].size);
        if (FORMAT->sniff((const uint8_t *)others[i].bytes, others[i].size, others[i].size))
            fail_msg("case %zu was taken for a pickle", i);
    }
    /* Too short to be anything else, or with data where a header would have its brace. */
    assert_true(FORMAT->sniff((const uint8_t *)"\x80\x05\x28\0\0\0\0\0", 8, 8));
    assert_true(FORMAT->sniff((const uint8_t *)"\x80\x05\x28\0\0\0\0\0q", 9, 9));
    save_seed("llama2c", "p_mark_and_no_brace", "\x80\x05\x28\0\0\0\0\0q", 9);
    assert_true(FORMAT->sniff((const uint8_t *)"\x80\x05\x28\0\0\0\0\0\0", 9, 9));
    save_seed("llama2c", "p_mark_and_zeros", "\x80\x05\x28\0\0\0\0\0\0", 9);
}

/* A file is of the first format that says so: pickles are asked for first. */
static void rule_p_pickles_are_asked_for_first(void **state)
{
    embla_map *map = NULL;
    const embla_format *format = NULL;
    (void)state;
    assert_ptr_equal(embla_format_at(0), FORMAT);
    assert_ok(embla_map_bytes("\x80\x04\x95\x11\0\0\0\0\0\0\0}", 12, "model.bin", &map));
    assert_ok(embla_format_of(map, &format));
    assert_ptr_equal(format, FORMAT);
    embla_map_free(map);
}

static void rule_p_a_file_too_short_to_look_at_is_refused_too(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    refuses_with(FORMAT, &f, NULL, EMBLA_ERR_UNSUPPORTED, "P", NULL);
}

static void it_can_never_be_written(void **state)
{
    (void)state;
    assert_null(FORMAT->write);
}

static void rule_p_a_pickle_of_gensim_names_the_way_to_convert_it(void **state)
{
    (void)state;
    model_file f = {.size = 0};
    put_text(&f, "\x80\x04\x95\x11");
    put(&f, "\0\0\0\0\0\0\0\x8c\x1a", 9);
    put_text(&f, "gensim.models.keyedvectors\x94\x8c\x0cKeyedVectors");
    refuses_because(&f, "p_gensim", "P", "embla.gensim.from_gensim");
}

/* ---- zip archives ---- */

static void rule_p_a_zip_with_a_pickle_in_it_is_refused(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_member(&f, "archive/data.pkl", 8, 0, 40); /* lengths come after the data */
    refuses_because(&f, "p_zip_torch", "P", "this is a pickle");
    f.size = 0;
    put_member(&f, "archive/version", 0, 2, 2);
    put_member(&f, "a.npy", 0, 5, 5);
    put_member(&f, "archive/data.pkl", 0, 40, 40);
    put_member(&f, "archive/data/0", 0, 4, 4);
    refuses_because(&f, "p_zip_torch_later_member", "P", "this is a pickle");
}

static void rule_n6_a_zip_of_arrays_is_refused(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_member(&f, "vectors.npy", 0, 5, 5);
    put_member(&f, "words.npy", 0, 0, 0);
    put_text(&f, "PK\x01\x02 and the list of members, which is not looked at");
    refuses_because(&f, "n6_npz", "N6", "this is an npz archive of arrays such as 'vectors.npy'");
    f.size = 0;
    put_member(&f, "vectors.npy", 8, 0, 0); /* its length comes later: what follows is data */
    put_member(&f, "data.pkl", 0, 5, 5);
    refuses_because(&f, "n6_npz_streamed", "N6", "this is an npz archive");
    f.size = 0;
    put_member(&f, "vectors.npy", 0, UINT32_MAX, 5); /* as numpy.savez writes it */
    refuses_because(&f, "n6_npz_64_bit_lengths", "N6", "this is an npz archive");
}

static void rule_p_any_other_zip_is_named_by_its_first_member(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_member(&f, "readme.txt", 0, 5, 5);
    put_member(&f, "vectors.npy", 0, 5, 5);
    refuses_because(&f, "p_zip_other", "P", "its first member is 'readme.txt'");
    f.size = 0;
    put_text(&f, "PK\x03\x04");
    refuses_because(&f, "p_zip_magic_alone", "P", "this is a zip archive");
    f.size = 0;
    put_member(&f, "a", 0, 5, 5);
    refuses_because(&f, "p_zip_short_name", "P", "'a'");
    f.size = 0; /* a name longer than the file */
    put_member(&f, "x.npy", 0, 5, 5);
    f.bytes[27] = 0xff;
    refuses_because(&f, "p_zip_name_beyond_the_file", "P", "this is a zip archive");
}

static void a_long_name_is_cut_and_made_one_line(void **state)
{
    static char name[1000];
    model_file f = {.size = 0};
    (void)state;
    memset(name, 'n', sizeof name - 1);
    name[1] = '\n';
    put_member(&f, name, 0, 5, 5);
    refuses_because(&f, "p_zip_long_name", "P", "'n?nnn");
    assert_true(strlen(embla_error()) < 300);
}

/* Ten thousand members are not walked one by one to the end. */
static void at_most_64_members_are_looked_at(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    for (int i = 0; i < 64; i++) put_member(&f, "a.npy", 0, 1, 1);
    put_member(&f, "data.pkl", 0, 1, 1);
    refuses_because(&f, "n6_npz_of_64", "N6", "this is an npz archive");
    f.size = 0;
    for (int i = 0; i < 63; i++) put_member(&f, "a.npy", 0, 1, 1);
    put_member(&f, "data.pkl", 0, 1, 1);
    refuses_because(&f, NULL, "P", "this is a pickle");
}

static void every_beginning_of_a_zip_is_refused(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_member(&f, "a.npy", 0, 5, 5);
    put_member(&f, "archive/data.pkl", 0, 5, 5);
    for (size_t size = f.size; size > 0; size--) {
        f.size = size;
        refuses_with(FORMAT, &f, NULL, EMBLA_ERR_UNSUPPORTED,
                     size >= 43 + 30 + 16 ? "P"
                     : size >= 30 + 5     ? "N6"
                                          : "P",
                     NULL);
    }
}

static void every_failure_is_survived(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_member(&f, "archive/version", 0, 2, 2);
    put_member(&f, "archive/data.pkl", 0, 40, 40);
    survives_failures(FORMAT, &f);
    survives_short_reads(FORMAT, &f);
    survives_a_cut(FORMAT, &f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(rule_p_every_protocol_is_refused),
        cmocka_unit_test(rule_p_a_pickle_of_gensim_names_the_way_to_convert_it),
        cmocka_unit_test(rule_p_torch_magic_without_a_protocol_is_refused),
        cmocka_unit_test(rule_p_what_begins_alike_is_left_to_its_format),
        cmocka_unit_test(rule_p_pickles_are_asked_for_first),
        cmocka_unit_test(rule_p_a_file_too_short_to_look_at_is_refused_too),
        cmocka_unit_test(it_can_never_be_written),
        cmocka_unit_test(rule_p_a_zip_with_a_pickle_in_it_is_refused),
        cmocka_unit_test(rule_n6_a_zip_of_arrays_is_refused),
        cmocka_unit_test(rule_p_any_other_zip_is_named_by_its_first_member),
        cmocka_unit_test(a_long_name_is_cut_and_made_one_line),
        cmocka_unit_test(at_most_64_members_are_looked_at),
        cmocka_unit_test(every_beginning_of_a_zip_is_refused),
        cmocka_unit_test(every_failure_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
