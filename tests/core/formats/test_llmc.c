/* SPDX-License-Identifier: Apache-2.0 */
/* llm.c's GPT-2 checkpoints: a test for each clause of rules L1 to L3, then the writer: what
 * it refuses, and that a file read and written again is the same file, whatever fails.
 */
#include "formats/llmc.h"

#include "models.h"

#define FORMAT (&embla_format_llmc)

/* The header's fields by number. */
enum { MAGIC, VERSION, T, V, L, NH, C, VP, FIELDS };

typedef struct {
    int64_t field[FIELDS];
} header;

/* 2 layers of 2 heads, 4 channels, 5 tokens on 6 rows, 3 positions. */
static header plain(void)
{
    return (header){{20240326, 3, 3, 5, 2, 2, 4, 6}};
}

/* Numbers in all tensors, by llm.c's own sum. */
static int64_t parameters(const header *h)
{
    int64_t c = h->field[C], l = h->field[L];
    return h->field[VP] * c + h->field[T] * c + l * (12 * c * c + 13 * c) + 2 * c;
}

/* A file of this header; its numbers are 0, 1, 2 .. as bits. */
static model_file file_of(const header *h, int64_t numbers)
{
    model_file f = {.size = 0};
    for (size_t i = 0; i < FIELDS; i++) put_i32(&f, h->field[i]);
    while (f.size < EMBLA_LLMC_HEADER) put_i32(&f, 0);
    for (int64_t i = 0; i < numbers; i++) {
        uint8_t bytes[4];
        embla_put_le32((uint32_t)i, bytes);
        put(&f, bytes, h->field[VERSION] == 5 ? 2 : 4);
    }
    return f;
}

static model_file whole(const header *h)
{
    return file_of(h, parameters(h));
}

/* One field changed, the rest of the file as it was. */
static void refuses_field(int which, int64_t value, const char *seed, const char *rule)
{
    header h = plain();
    char number[32];
    int64_t numbers = parameters(&h);
    h.field[which] = value;
    model_file f = file_of(&h, numbers);
    refuses(FORMAT, &f, seed, rule);
    snprintf(number, sizeof number, "%" PRId64, value);
    assert_error_has(number);
}

/* ---- what is read ---- */

static void a_model_has_sixteen_tensors_in_order(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    embla_directory d;
    (void)state;
    accepts(FORMAT, &f, "ok_f32", NULL, &d);
    assert_int_equal(d.count, 16);
    entry_is(&d, 0, "wte", 1024, 6, 4, 0);
    entry_is(&d, 1, "wpe", 1120, 3, 4, 0);
    entry_is(&d, 2, "ln1w", 1168, 2, 4, 0);
    entry_is(&d, 3, "ln1b", 1200, 2, 4, 0);
    entry_is(&d, 4, "qkvw", 1232, 2, 12, 4);
    entry_is(&d, 5, "qkvb", 1616, 2, 12, 0);
    entry_is(&d, 6, "attprojw", 1712, 2, 4, 4);
    entry_is(&d, 7, "attprojb", 1840, 2, 4, 0);
    entry_is(&d, 8, "ln2w", 1872, 2, 4, 0);
    entry_is(&d, 9, "ln2b", 1904, 2, 4, 0);
    entry_is(&d, 10, "fcw", 1936, 2, 16, 4);
    entry_is(&d, 11, "fcb", 2448, 2, 16, 0);
    entry_is(&d, 12, "fcprojw", 2576, 2, 4, 16);
    entry_is(&d, 13, "fcprojb", 3088, 2, 4, 0);
    entry_is(&d, 14, "lnfw", 3120, 4, 0, 0);
    entry_is(&d, 15, "lnfb", 3136, 4, 0, 0);
    assert_int_equal(f.size, 3152);
    assert_string_equal(d.entries[0].element->name, "F32");
    assert_int_equal(d.tokens, 5);
    assert_string_equal(pair_of(&d, "max_seq_len"), "3");
    assert_string_equal(pair_of(&d, "vocab_size"), "5");
    assert_string_equal(pair_of(&d, "num_layers"), "2");
    assert_string_equal(pair_of(&d, "num_heads"), "2");
    assert_string_equal(pair_of(&d, "channels"), "4");
    assert_string_equal(pair_of(&d, "padded_vocab_size"), "6");
    embla_directory_free(&d);
}

static void version_5_is_bf16(void **state)
{
    header h = plain();
    embla_directory d;
    (void)state;
    h.field[VERSION] = 5;
    model_file f = whole(&h);
    accepts(FORMAT, &f, "ok_bf16", NULL, &d);
    assert_string_equal(d.entries[0].element->name, "BF16");
    entry_is(&d, 15, "lnfb", f.size - 8, 4, 0, 0);
    embla_directory_free(&d);
}

static void the_limits_themselves_are_accepted(void **state)
{
    header h = {{20240326, 5, 1, 1, 1024, 1, 1, 4097}};
    embla_directory d;
    (void)state;
    model_file f = whole(&h);
    accepts(FORMAT, &f, NULL, NULL, &d);
    assert_int_equal(d.entries[0].shape[0], 4097);
    assert_int_equal(d.entries[2].shape[0], 1024);
    embla_directory_free(&d);
}

/* ---- L1 ---- */

static void rule_l1_another_magic_number_is_refused(void **state)
{
    (void)state;
    refuses_field(MAGIC, 20240325, "l1_magic", "L1");
}

static void rule_l1_versions_other_than_3_and_5_are_refused(void **state)
{
    const int64_t versions[] = {0, 1, 2, 4, 6, -1};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        header h = plain();
        model_file f = whole(&h);
        embla_put_le32((uint32_t)versions[i], f.bytes + 4);
        refuses_with(FORMAT, &f, versions[i] == 4 ? "l1_version_4" : NULL, EMBLA_ERR_UNSUPPORTED,
                     "L1", NULL);
    }
}

static void rule_l1_no_size_is_zero(void **state)
{
    const char *const seeds[FIELDS] = {
        [T] = "l1_max_seq_len_0", [V] = "l1_vocab_size_0", [L] = "l1_num_layers_0",
        [NH] = "l1_num_heads_0",  [C] = "l1_channels_0",   [VP] = "l1_padded_0"};
    (void)state;
    for (int i = T; i <= VP; i++) refuses_field(i, 0, seeds[i], "L1");
}

static void rule_l1_rows_are_tokens_and_a_little_padding(void **state)
{
    (void)state;
    refuses_field(V, 7, "l1_more_tokens_than_rows", "L1");
    refuses_field(VP, 5 + 4097, "l1_padding_4097", "L1");
}

static void rule_l1_channels_are_whole_heads(void **state)
{
    (void)state;
    refuses_field(NH, 3, "l1_heads_3_of_4", "L1");
    refuses_field(NH, INT32_MAX, NULL, "L1");
}

static void rule_l1_at_most_1024_layers(void **state)
{
    (void)state;
    refuses_field(L, 1025, "l1_layers_1025", "L1");
    refuses_field(L, INT32_MAX, NULL, "L1");
}

static void rule_l1_the_size_is_exact(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    (void)state;
    f.size--;
    refuses(FORMAT, &f, "l1_one_byte_short", "L1");
    assert_error_has("3152");
    assert_error_has("3151");
    f.size += 2;
    refuses(FORMAT, &f, "l1_one_byte_more", "L1");
    f.size = 1024;
    refuses(FORMAT, &f, "l1_header_alone", "L1");
    f.size = 1023;
    refuses(FORMAT, &f, "l1_header_cut", "L1");
    assert_error_has("1023 bytes, but the header has 1024");
    f.size = 20;
    refuses(FORMAT, &f, "l1_twenty_bytes", "L1");
    f.size = 3;
    refuses(FORMAT, &f, "l1_three_bytes", "L1");
}

/* Sizes that wrap must not come out as the size of a small file. */
static void rule_l1_products_and_sums_are_checked(void **state)
{
    header h = plain();
    (void)state;
    h.field[NH] = 1;
    h.field[C] = INT32_MAX;
    model_file f = file_of(&h, 0);
    refuses(FORMAT, &f, "l1_product_wraps", "L1");
    h.field[L] = 1024; /* each tensor is below 2^63 bytes, all of them are not below 2^64 */
    h.field[C] = 23725000;
    f = file_of(&h, 0);
    refuses(FORMAT, &f, "l1_sum_wraps", "L1");
    assert_error_has("2^64");
}

/* ---- L2, L3 ---- */

static void rule_l2_other_files_are_named(void **state)
{
    const struct {
        int64_t magic;
        const char *what, *seed;
    } files[] = {
        {20240527, "the state of a training run", "l2_training_state"},
        {20240520, "tokens for training", "l2_tokens"},
        {20240522, "an evaluation set", "l2_eval"},
        {20240328, "a tokenizer", "l2_tokenizer"},
        {20240327, "its tests", "l2_debug_state"},
        {20240801, "Llama 3 tokens", "l2_tokens_llama3"},
        {20240803, "a Llama 3 model", "l2_model_llama3"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(files); i++) {
        model_file f = {.size = 0};
        put_i32(&f, files[i].magic);
        put_i32(&f, 1);
        assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
        refuses_with(FORMAT, &f, files[i].seed, EMBLA_ERR_UNSUPPORTED, "L2", NULL);
        assert_error_has(files[i].what);
    }
}

static void rule_l3_no_size_is_below_zero(void **state)
{
    const char *const seeds[FIELDS] = {
        [T] = "l3_max_seq_len", [V] = "l3_vocab_size", [L] = "l3_num_layers",
        [NH] = "l3_num_heads",  [C] = "l3_channels",   [VP] = "l3_padded"};
    (void)state;
    for (int i = T; i <= VP; i++) {
        refuses_field(i, -1, seeds[i], "L3");
        refuses_field(i, INT32_MIN, NULL, "L3");
    }
}

static void sniff_knows_the_magic_number(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    (void)state;
    assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
    assert_false(FORMAT->sniff(f.bytes, 3, 3));
    f.bytes[0] ^= 1; /* another of llm.c's numbers */
    assert_true(FORMAT->sniff(f.bytes, 4, 4));
    f.bytes[3] ^= 1;
    assert_false(FORMAT->sniff(f.bytes, f.size, f.size));
}

static void every_failure_of_reading_is_survived(void **state)
{
    header h = plain();
    model_file f = whole(&h);
    (void)state;
    survives_failures(FORMAT, &f);
    survives_short_reads(FORMAT, &f);
    survives_a_cut(FORMAT, &f);
}

/* ---- the writer ---- */

static embla_status read_part(void *context, uint64_t offset, size_t bytes, void *out)
{
    memcpy(out, (const uint8_t *)context + offset, bytes);
    return EMBLA_OK;
}

static embla_status read_nothing(void *context, uint64_t offset, size_t bytes, void *out)
{
    (void)context, (void)offset, (void)bytes, (void)out;
    return embla_fail(EMBLA_ERR_IO, "a part that cannot be read");
}

typedef struct {
    model_file f;
    embla_directory d;
    embla_part parts[20];
    embla_pair pairs[8];
    embla_contents contents;
} written;

/* The contents of a file, as they are handed to a writer; last tensor first, since a writer
 * finds them by name. */
static void contents_of(written *w, const header *h)
{
    w->f = whole(h);
    accepts(FORMAT, &w->f, NULL, NULL, &w->d);
    for (size_t i = 0; i < 16; i++) {
        const embla_entry *e = &w->d.entries[15 - i];
        w->parts[i] = (embla_part){.name = e->name,
                                   .element = e->element,
                                   .rank = e->rank,
                                   .bytes = e->bytes,
                                   .read = read_part,
                                   .context = w->f.bytes + e->offset};
        memcpy(w->parts[i].shape, e->shape, sizeof e->shape);
    }
    memcpy(w->pairs, w->d.pairs, w->d.pair_count * sizeof *w->pairs);
    w->contents = (embla_contents){.parts = w->parts,
                                   .count = 16,
                                   .pairs = w->pairs,
                                   .pair_count = w->d.pair_count,
                                   .tokens = w->d.tokens};
}

/* Part 15 is wte, 14 wpe, 13 ln1w, .. 0 lnfb. */
enum { WTE = 15, WPE = 14, LN1W = 13, QKVW = 11, LNFB = 0 };

static embla_status write_to(const char *path, const embla_contents *contents)
{
    embla_durable *out = NULL;
    embla_status status = embla_durable_open(path, &out);
    if (status != EMBLA_OK) return status;
    status = FORMAT->write(out, contents);
    if (status == EMBLA_OK) return embla_durable_commit(out);
    embla_durable_abandon(out);
    return status;
}

static void what_was_read_is_written_the_same(void **state)
{
    static written w;
    scratch folder;
    (void)state;
    scratch_new(&folder);
    const char *path = scratch_path(&folder, "model.bin");
    for (int64_t version = 3; version <= 5; version += 2) {
        header h = plain();
        h.field[VERSION] = version;
        contents_of(&w, &h);
        assert_ok(write_to(path, &w.contents));
        assert_true(scratch_holds(path, w.f.bytes, w.f.size));
        embla_directory_free(&w.d);
    }
    assert_int_equal(scratch_count(&folder, NULL), 1);
    scratch_free(&folder);
}

/* Whatever fails, either the new file is there or the old one still is, and no other. */
static void every_failure_of_writing_leaves_the_old_file(void **state)
{
    static written w;
    header h = plain();
    scratch folder;
    (void)state;
    scratch_new(&folder);
    const char *path = scratch_path(&folder, "model.bin");
    contents_of(&w, &h);
    for (int kind = 0; kind < 4; kind++) {
        bool memory = kind < 2, forever = kind % 2 == 1;
        embla_status status = EMBLA_OK;
        size_t n = 0;
        do {
            scratch_write(path, "old", 3);
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(++n, forever);
            else
                embla_io_fail(++n, forever, EMBLA_SYSTEM_OTHER);
            status = write_to(path, &w.contents);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status == EMBLA_OK) break;
            assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
            /* the new one only where nothing but the folder was not synced */
            assert_true(scratch_holds(path, "old", 3) ||
                        (!memory && scratch_holds(path, w.f.bytes, w.f.size)));
            if (!forever) assert_int_equal(scratch_count(&folder, NULL), 1);
        } while (n < 100);
        assert_status(status, EMBLA_OK);
        assert_true(n > 1);
        assert_true(scratch_holds(path, w.f.bytes, w.f.size));
    }
    embla_directory_free(&w.d);
    scratch_free(&folder);
}

static void a_part_that_cannot_be_read_ends_the_writing(void **state)
{
    static written w;
    header h = plain();
    scratch folder;
    (void)state;
    scratch_new(&folder);
    const char *path = scratch_path(&folder, "model.bin");
    contents_of(&w, &h);
    w.parts[QKVW].read = read_nothing;
    assert_status(write_to(path, &w.contents), EMBLA_ERR_IO);
    assert_error_has("a part that cannot be read");
    assert_int_equal(scratch_count(&folder, NULL), 0);
    embla_directory_free(&w.d);
    scratch_free(&folder);
}

/* Bytes that their place decides. */
static embla_status read_pattern(void *context, uint64_t offset, size_t bytes, void *out)
{
    (void)context;
    for (size_t i = 0; i < bytes; i++) ((uint8_t *)out)[i] = (uint8_t)((offset + i) * 37 >> 8);
    return EMBLA_OK;
}

static void a_tensor_of_several_pieces_is_whole(void **state)
{
    enum { ROWS = 700001 };
    static written w;
    header h = {{20240326, 3, 1, 1, 1, 1, 1, 1}};
    scratch folder;
    size_t size = 0;
    (void)state;
    scratch_new(&folder);
    const char *path = scratch_path(&folder, "model.bin");
    contents_of(&w, &h);
    w.parts[WTE].shape[0] = ROWS;
    w.parts[WTE].bytes = 4 * ROWS;
    w.parts[WTE].read = read_pattern;
    w.contents.tokens = ROWS;
    assert_ok(write_to(path, &w.contents));
    unsigned char *bytes = scratch_read(path, &size);
    assert_int_equal(size, 1024 + 4 * (ROWS + 1 + 25 + 2));
    for (size_t i = 0; i < 4 * ROWS; i++)
        if (bytes[1024 + i] != (uint8_t)(i * 37 >> 8)) fail_msg("byte %zu of wte is wrong", i);
    free(bytes);
    embla_directory_free(&w.d);
    scratch_free(&folder);
}

/* The plan of contents, changed by change, is refused, and says why. */
static void plan_refuses(void (*change)(written *), embla_status status, const char *why)
{
    static written w;
    header h = plain();
    embla_llmc model;
    memset(&model, CHECK_MARK, sizeof model);
    contents_of(&w, &h);
    change(&w);
    assert_status(embla_llmc_plan(&w.contents, &model), status);
    assert_error_has(why);
    check_marks((unsigned char *)&model, (unsigned char *)(&model + 1));
    embla_directory_free(&w.d);
}

static void no_wpe(written *w)
{
    w->parts[WPE].name = "transformer.wpe.weight";
}
static void one_more(written *w)
{
    w->parts[16] = (embla_part){.name = "lm_head"};
    w->contents.count = 17;
}
static void wte_f16(written *w)
{
    w->parts[WTE].element = embla_element_of(EMBLA_F16);
}
static void qkvw_bf16(written *w)
{
    w->parts[QKVW].element = embla_element_of(EMBLA_BF16);
}
static void qkvw_turned(written *w)
{
    w->parts[QKVW].shape[1] = 4;
    w->parts[QKVW].shape[2] = 12;
}
static void lnfb_rank_2(written *w)
{
    w->parts[LNFB].rank = 2;
    w->parts[LNFB].shape[1] = 1;
}
static void wte_rank_1(written *w)
{
    w->parts[WTE].rank = 1;
}
static void wte_giant(written *w)
{
    w->parts[WTE].shape[0] = (uint64_t)1 << 31;
}
static void wpe_empty(written *w)
{
    w->parts[WPE].shape[0] = 0;
}
static void wte_bytes(written *w)
{
    w->parts[WTE].bytes -= 4;
}
static void no_heads(written *w)
{
    w->contents.pair_count = 3; /* max_seq_len, vocab_size, num_layers */
}
static void heads_no_number(written *w)
{
    w->pairs[3].value = "2.0";
}
static void heads_giant(written *w)
{
    w->pairs[3].value = "99999999999999999999999999";
}
static void heads_3(written *w)
{
    w->pairs[3].value = "3";
}
static void tokens_7(written *w)
{
    w->contents.tokens = 7;
}
static void layers_1025(written *w)
{
    for (size_t i = 2; i <= LN1W; i++) {
        w->parts[i].shape[0] = 1025;
        w->parts[i].bytes = w->parts[i].bytes / 2 * 1025;
    }
}
/* All the shapes agree, and the largest has more numbers than 64 bits can count. */
static void all_giant(written *w)
{
    for (size_t i = 0; i < 16; i++) {
        w->parts[i].bytes = 4;
        for (uint32_t k = 0; k < w->parts[i].rank; k++) {
            uint64_t *size = &w->parts[i].shape[k];
            if (*size == 2) *size = 1024;                     /* layers */
            if (*size % 4 == 0 && *size < 1024) *size <<= 28; /* channels */
            w->parts[i].bytes *= *size;
        }
    }
}

static void the_writer_says_what_is_missing_or_does_not_fit(void **state)
{
    (void)state;
    plan_refuses(no_wpe, EMBLA_ERR_UNSUPPORTED, "none is called 'wpe'");
    plan_refuses(one_more, EMBLA_ERR_UNSUPPORTED, "17 cannot be written");
    plan_refuses(wte_f16, EMBLA_ERR_UNSUPPORTED, "'wte' is F16");
    plan_refuses(qkvw_bf16, EMBLA_ERR_UNSUPPORTED, "'qkvw' is BF16");
    plan_refuses(qkvw_turned, EMBLA_ERR_SHAPE, "'qkvw' is 2 x 4 x 12");
    plan_refuses(qkvw_turned, EMBLA_ERR_SHAPE, "must be 2 x 12 x 4");
    plan_refuses(lnfb_rank_2, EMBLA_ERR_SHAPE, "'lnfb' is 4 x 1");
    plan_refuses(wte_rank_1, EMBLA_ERR_SHAPE, "dimension 1 of 'wte'");
    plan_refuses(wte_giant, EMBLA_ERR_SHAPE, "2147483648");
    plan_refuses(wpe_empty, EMBLA_ERR_SHAPE, "dimension 0 of 'wpe' is 0");
    plan_refuses(wte_bytes, EMBLA_ERR_SHAPE, "'wte' has 92 bytes, but 24");
    plan_refuses(no_heads, EMBLA_ERR_UNSUPPORTED, "is 'num_heads' with");
    plan_refuses(heads_no_number, EMBLA_ERR_UNSUPPORTED, "'num_heads'");
    plan_refuses(heads_giant, EMBLA_ERR_UNSUPPORTED, "'num_heads'");
    plan_refuses(heads_3, EMBLA_ERR_UNSUPPORTED, "3 heads");
    plan_refuses(tokens_7, EMBLA_ERR_SHAPE, "7 tokens, but 'wte' has only 6");
    plan_refuses(layers_1025, EMBLA_ERR_UNSUPPORTED, "1025 layers");
    plan_refuses(all_giant, EMBLA_ERR_SHAPE, "2^64");
}

static void tokens_come_from_the_contents_the_pair_or_the_rows(void **state)
{
    static written w;
    header h = plain();
    embla_llmc model;
    (void)state;
    contents_of(&w, &h);
    w.contents.tokens = 4;
    assert_ok(embla_llmc_plan(&w.contents, &model));
    assert_int_equal(model.tokens, 4);
    w.contents.tokens = 0;
    assert_ok(embla_llmc_plan(&w.contents, &model));
    assert_int_equal(model.tokens, 5);
    uint8_t bytes[EMBLA_LLMC_HEADER];
    memset(bytes, CHECK_MARK, sizeof bytes);
    embla_llmc_header(&model, bytes);
    assert_memory_equal(bytes, w.f.bytes, sizeof bytes);
    w.pairs[1].key = "something";
    assert_ok(embla_llmc_plan(&w.contents, &model));
    assert_int_equal(model.tokens, 6);
    embla_directory_free(&w.d);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_has_sixteen_tensors_in_order),
        cmocka_unit_test(version_5_is_bf16),
        cmocka_unit_test(the_limits_themselves_are_accepted),
        cmocka_unit_test(rule_l1_another_magic_number_is_refused),
        cmocka_unit_test(rule_l1_versions_other_than_3_and_5_are_refused),
        cmocka_unit_test(rule_l1_no_size_is_zero),
        cmocka_unit_test(rule_l1_rows_are_tokens_and_a_little_padding),
        cmocka_unit_test(rule_l1_channels_are_whole_heads),
        cmocka_unit_test(rule_l1_at_most_1024_layers),
        cmocka_unit_test(rule_l1_the_size_is_exact),
        cmocka_unit_test(rule_l1_products_and_sums_are_checked),
        cmocka_unit_test(rule_l2_other_files_are_named),
        cmocka_unit_test(rule_l3_no_size_is_below_zero),
        cmocka_unit_test(sniff_knows_the_magic_number),
        cmocka_unit_test(every_failure_of_reading_is_survived),
        cmocka_unit_test(what_was_read_is_written_the_same),
        cmocka_unit_test(every_failure_of_writing_leaves_the_old_file),
        cmocka_unit_test(a_part_that_cannot_be_read_ends_the_writing),
        cmocka_unit_test(a_tensor_of_several_pieces_is_whole),
        cmocka_unit_test(the_writer_says_what_is_missing_or_does_not_fit),
        cmocka_unit_test(tokens_come_from_the_contents_the_pair_or_the_rows),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
