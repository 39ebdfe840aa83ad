/* SPDX-License-Identifier: Apache-2.0 */
/* llama2.c's models: a test for each clause of our rules LL1 to LL4, and a real model. There
 * is no magic number: what is refused here must not be recognised either.
 */
#include "models.h"

#define FORMAT (&embla_format_llama2c)

enum { DIM, HIDDEN, LAYERS, HEADS, KV_HEADS, VOCAB, SEQUENCE, FIELDS };

typedef struct {
    int64_t field[FIELDS];
} header;

/* 2 layers of 2 heads of 4 numbers, one of them with keys and values; 5 tokens, tied. */
static header plain(void)
{
    return (header){{8, 6, 2, 2, 1, 5, 3}};
}

/* Numbers in all tensors, by run.c's own sum. */
static int64_t parameters(const header *h)
{
    const int64_t *f = h->field;
    int64_t v = f[VOCAB] < 0 ? -f[VOCAB] : f[VOCAB], d = f[DIM], n = f[LAYERS];
    int64_t size = d / f[HEADS];
    int64_t all = v * d + n * d + n * d * (f[HEADS] * size) + 2 * n * d * (f[KV_HEADS] * size) +
                  n * (f[HEADS] * size) * d + n * d + 3 * n * d * f[HIDDEN] + d +
                  2 * (f[SEQUENCE] * size / 2);
    return f[VOCAB] < 0 ? all + v * d : all;
}

static model_file file_of(const header *h, int64_t numbers)
{
    model_file f = {.size = 0};
    for (size_t i = 0; i < FIELDS; i++) put_i32(&f, h->field[i]);
    put_floats(&f, (size_t)numbers, 0);
    return f;
}

static model_file whole(const header *h)
{
    return file_of(h, parameters(h));
}

/* Refused, and not recognised. */
static void refuses_file(const model_file *f, const char *seed, const char *rule)
{
    size_t head = f->size < 4096 ? f->size : 4096;
    uint8_t *exact = malloc(head > 0 ? head : 1);
    assert_non_null(exact);
    memcpy(exact, f->bytes, head);
    assert_false(FORMAT->sniff(exact, head, f->size));
    free(exact);
    refuses(FORMAT, f, seed, rule);
}

static void refuses_field(int which, int64_t value, const char *seed, const char *rule)
{
    header h = plain();
    char number[32];
    int64_t numbers = parameters(&h);
    h.field[which] = value;
    model_file f = file_of(&h, numbers);
    refuses_file(&f, seed, rule);
    snprintf(number, sizeof number, "%" PRId64, value);
    if (strcmp(rule, "LL1") == 0) assert_error_has(number);
}

/* ---- what is read ---- */

static void a_tied_model_has_thirteen_tensors_in_order(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    embla_directory d;
    (void)state;
    assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
    accepts(FORMAT, &f, "ok_tied", NULL, &d);
    assert_int_equal(d.count, 13);
    entry_is(&d, 0, "tok_embeddings.weight", 28, 5, 8, 0);
    entry_is(&d, 1, "layers.attention_norm.weight", 188, 2, 8, 0);
    entry_is(&d, 2, "layers.attention.wq.weight", 252, 2, 8, 8);
    entry_is(&d, 3, "layers.attention.wk.weight", 764, 2, 4, 8);
    entry_is(&d, 4, "layers.attention.wv.weight", 1020, 2, 4, 8);
    entry_is(&d, 5, "layers.attention.wo.weight", 1276, 2, 8, 8);
    entry_is(&d, 6, "layers.ffn_norm.weight", 1788, 2, 8, 0);
    entry_is(&d, 7, "layers.feed_forward.w1.weight", 1852, 2, 6, 8);
    entry_is(&d, 8, "layers.feed_forward.w2.weight", 2236, 2, 8, 6);
    entry_is(&d, 9, "layers.feed_forward.w3.weight", 2620, 2, 6, 8);
    entry_is(&d, 10, "norm.weight", 3004, 8, 0, 0);
    entry_is(&d, 11, "rope.freqs_cos", 3036, 3, 2, 0);
    entry_is(&d, 12, "rope.freqs_sin", 3060, 3, 2, 0);
    assert_int_equal(f.size, 3084);
    assert_int_equal(d.tokens, 5);
    assert_string_equal(pair_of(&d, "dim"), "8");
    assert_string_equal(pair_of(&d, "hidden_dim"), "6");
    assert_string_equal(pair_of(&d, "n_layers"), "2");
    assert_string_equal(pair_of(&d, "n_heads"), "2");
    assert_string_equal(pair_of(&d, "n_kv_heads"), "1");
    assert_string_equal(pair_of(&d, "vocab_size"), "5");
    assert_string_equal(pair_of(&d, "seq_len"), "3");
    assert_string_equal(pair_of(&d, "tie_word_embeddings"), "true");
    embla_directory_free(&d);
}

static void a_vocab_size_below_zero_has_a_head_of_its_own(void **state)
{
    header h = plain();
    embla_directory d;
    (void)state;
    h.field[VOCAB] = -5;
    model_file f = whole(&h);
    assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
    accepts(FORMAT, &f, "ok_untied", NULL, &d);
    assert_int_equal(d.count, 14);
    entry_is(&d, 13, "output.weight", f.size - 160, 5, 8, 0);
    assert_int_equal(d.tokens, 5);
    assert_string_equal(pair_of(&d, "vocab_size"), "5");
    assert_string_equal(pair_of(&d, "tie_word_embeddings"), "false");
    embla_directory_free(&d);
}

/* A dim of 640 begins 80 02, as a pickle does: it must not be taken for one. */
static void a_dim_of_640_is_not_a_pickle(void **state)
{
    header h = {{640, 1, 1, 1, 1, 1, 1}};
    uint8_t head[28];
    (void)state;
    for (size_t i = 0; i < FIELDS; i++) embla_put_le32((uint32_t)h.field[i], head + 4 * i);
    assert_true(FORMAT->sniff(head, sizeof head, 28 + 4 * (uint64_t)parameters(&h)));
    assert_false(embla_format_pickle.sniff(head, sizeof head, 28 + 4 * (uint64_t)parameters(&h)));
}

static void a_real_model_is_read(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char path[4096];
    embla_map *map = NULL;
    embla_directory d = {0};
    const embla_format *format = NULL;
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: no real model\n");
        skip();
    }
    snprintf(path, sizeof path, "%s/stories260k/stories260K.bin", data);
    assert_ok(embla_map_open(EMBLA_HERE, path, path, true, &map));
    assert_ok(embla_format_of(map, &format));
    assert_ptr_equal(format, FORMAT);
    assert_ok(FORMAT->read(map, NULL, &d));
    const char *const keys[] = {"dim",        "hidden_dim", "n_layers", "n_heads",
                                "n_kv_heads", "vocab_size", "seq_len",  "tie_word_embeddings"};
    const char *const values[] = {"64", "172", "5", "8", "4", "512", "512", "true"};
    for (size_t i = 0; i < COUNT_OF(keys); i++)
        assert_string_equal(pair_of(&d, keys[i]), values[i]);
    assert_int_equal(d.count, 13);
    entry_is(&d, 0, "tok_embeddings.weight", 28, 512, 64, 0);
    entry_is(&d, 12, "rope.freqs_sin", map->size - 8192, 512, 4, 0);
    /* Position 0 is turned by nothing, position 1 by one radian in the first pair: the
     * tensors lie where the list says. */
    uint8_t number[4];
    assert_ok(embla_map_read(map, d.entries[11].offset, 4, number));
    assert_float_equal(check_float_of(embla_le32(number)), 1.0f, 0);
    assert_ok(embla_map_read(map, d.entries[11].offset + 16, 4, number));
    assert_float_equal(check_float_of(embla_le32(number)), 0.5403023f, 1e-6f);
    assert_ok(embla_map_read(map, d.entries[12].offset + 16, 4, number));
    assert_float_equal(check_float_of(embla_le32(number)), 0.8414710f, 1e-6f);
    embla_directory_free(&d);
    embla_map_free(map);
}

/* ---- LL1, LL2 ---- */

static void rule_ll1_every_field_is_at_least_1(void **state)
{
    const char *const seeds[FIELDS] = {"ll1_dim_0",     "ll1_hidden_dim_0", "ll1_n_layers_0",
                                       "ll1_n_heads_0", "ll1_n_kv_heads_0", "ll1_vocab_size_0",
                                       "ll1_seq_len_0"};
    (void)state;
    for (int i = 0; i < FIELDS; i++) refuses_field(i, 0, seeds[i], "LL1");
}

static void rule_ll1_only_vocab_size_may_be_below_zero(void **state)
{
    const char *const seeds[FIELDS] = {"ll1_dim_negative",        "ll1_hidden_dim_negative",
                                       "ll1_n_layers_negative",   "ll1_n_heads_negative",
                                       "ll1_n_kv_heads_negative", NULL,
                                       "ll1_seq_len_negative"};
    (void)state;
    for (int i = 0; i < FIELDS; i++)
        if (i != VOCAB) refuses_field(i, -2, seeds[i], "LL1");
    refuses_field(VOCAB, INT32_MIN, "ll1_vocab_size_lowest", "LL1");
}

static void rule_ll1_no_field_is_beyond_what_models_have(void **state)
{
    (void)state;
    refuses_field(DIM, 65537, "ll1_dim_65537", "LL1");
    refuses_field(HIDDEN, (1 << 20) + 1, "ll1_hidden_dim_beyond", "LL1");
    refuses_field(LAYERS, 1025, "ll1_n_layers_1025", "LL1");
    refuses_field(HEADS, 65537, "ll1_n_heads_65537", "LL1");
    refuses_field(KV_HEADS, 65537, "ll1_n_kv_heads_65537", "LL1");
    refuses_field(SEQUENCE, (1 << 24) + 1, "ll1_seq_len_beyond", "LL1");
    /* vocab_size may be anything an int32 holds; its file would be large. */
    refuses_field(VOCAB, INT32_MAX, "ll3_vocab_size_highest", "LL3");
}

static void refuses_heads(int64_t dim, int64_t heads, int64_t kv_heads, const char *seed)
{
    header h = {{dim, 1, 1, heads, kv_heads, 1, 1}};
    model_file f = whole(&h);
    refuses_file(&f, seed, "LL2");
}

static void rule_ll2_dim_is_whole_heads_of_even_length(void **state)
{
    (void)state;
    refuses_heads(8, 3, 1, "ll2_heads_3_of_8");
    refuses_heads(9, 3, 1, "ll2_odd_head");
}

static void rule_ll2_heads_are_whole_groups(void **state)
{
    (void)state;
    refuses_heads(8, 2, 4, "ll2_more_kv_heads");
    refuses_heads(12, 6, 4, "ll2_kv_heads_4_of_6");
}

/* ---- LL3, LL4 ---- */

static void rule_ll3_the_size_is_exact(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    (void)state;
    f.size--;
    refuses_file(&f, "ll3_one_byte_short", "LL3");
    assert_error_has("3084");
    assert_error_has("3083");
    f.size += 2;
    refuses_file(&f, "ll3_one_byte_more", "LL3");
    f.size = 28;
    refuses_file(&f, "ll3_header_alone", "LL3");
    f.size = 27;
    refuses_file(&f, "ll3_header_cut", "LL3");
    f.size = 0;
    refuses_file(&f, "ll3_empty", "LL3");
}

/* The sign decides whether a head is due: with the other one the size is wrong. */
static void rule_ll3_a_head_is_there_if_and_only_if_it_is_said(void **state)
{
    (void)state;
    refuses_field(VOCAB, -5, "ll3_head_missing", "LL3");
    header h = plain();
    h.field[VOCAB] = -5;
    model_file f = whole(&h);
    f.bytes[4 * VOCAB] = 5;
    memset(f.bytes + 4 * VOCAB + 1, 0, 3);
    refuses_file(&f, "ll3_head_not_said", "LL3");
}

static void rule_ll4_later_exports_are_recognised_and_refused(void **state)
{
    model_file f = {.size = 0};
    (void)state;
    put_i32(&f, 0x616b3432);
    assert_true(FORMAT->sniff(f.bytes, 4, 4));
    refuses(FORMAT, &f, "ll4_magic_alone", "LL3");
    for (int version = 1; version <= 2; version++) {
        f.size = 4;
        put_i32(&f, version);
        refuses_with(FORMAT, &f, version == 1 ? "ll4_version_1" : "ll4_version_2",
                     EMBLA_ERR_UNSUPPORTED, "LL4", NULL);
    }
    assert_error_has("version 2");
}

static void every_failure_is_survived(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    (void)state;
    survives_failures(FORMAT, &f);
    survives_short_reads(FORMAT, &f);
    survives_a_cut(FORMAT, &f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_tied_model_has_thirteen_tensors_in_order),
        cmocka_unit_test(a_vocab_size_below_zero_has_a_head_of_its_own),
        cmocka_unit_test(a_dim_of_640_is_not_a_pickle),
        cmocka_unit_test(a_real_model_is_read),
        cmocka_unit_test(rule_ll1_every_field_is_at_least_1),
        cmocka_unit_test(rule_ll1_only_vocab_size_may_be_below_zero),
        cmocka_unit_test(rule_ll1_no_field_is_beyond_what_models_have),
        cmocka_unit_test(rule_ll2_dim_is_whole_heads_of_even_length),
        cmocka_unit_test(rule_ll2_heads_are_whole_groups),
        cmocka_unit_test(rule_ll3_the_size_is_exact),
        cmocka_unit_test(rule_ll3_a_head_is_there_if_and_only_if_it_is_said),
        cmocka_unit_test(rule_ll4_later_exports_are_recognised_and_refused),
        cmocka_unit_test(every_failure_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
