/* SPDX-License-Identifier: Apache-2.0 */
/* fastText's .bin and .ftz: a test for each clause of rules F1 to F6, each with one number
 * of a good model changed. tests/peers/fasttext_bin.py compares with the real program.
 */
#include <math.h>

#include "models.h"

#define FORMAT (&embla_format_fasttext)

static void refuses_model(const fasttext_model *m, const char *seed, const char *rule)
{
    model_file f = fasttext_file(m);
    refuses(FORMAT, &f, seed, rule);
}

/* ---- what is read ---- */

static void a_skipgram_model_has_two_tables_and_its_words(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    embla_directory d;
    (void)state;
    accepts(FORMAT, &f, "ok_skipgram", NULL, &d);
    assert_int_equal(d.count, 2);
    entry_is(&d, 0, "input", f.size - (9 + 15) * 4 - 17, 5, 3, 0);
    entry_is(&d, 1, "output", f.size - 9 * 4, 3, 3, 0);
    assert_string_equal(d.entries[0].element->name, "F32");
    assert_int_equal(d.entries[0].bytes, 60);
    assert_float_equal(check_float_of(embla_le32(f.bytes + d.entries[0].offset)), 0.5f, 0);
    assert_float_equal(check_float_of(embla_le32(f.bytes + d.entries[1].offset)), 100.5f, 0);
    assert_int_equal(d.tokens, 3);
    assert_int_equal(d.label_count, 3);
    for (size_t i = 0; i < 3; i++) {
        assert_int_equal(d.labels[i].number, i);
        assert_int_equal(d.labels[i].length, strlen(m.names[i]));
        assert_memory_equal(d.labels[i].bytes, m.names[i], strlen(m.names[i]));
    }
    assert_string_equal(pair_of(&d, "dim"), "3");
    assert_string_equal(pair_of(&d, "minn"), "3");
    assert_string_equal(pair_of(&d, "maxn"), "6");
    assert_string_equal(pair_of(&d, "bucket"), "2");
    assert_string_equal(pair_of(&d, "model"), "sg");
    assert_string_equal(pair_of(&d, "loss"), "ns");
    assert_int_equal(d.note_count, 1);
    assert_string_equal(d.notes[0], "rows are as stored; fastText's vector of a word is the mean "
                                    "of its row and the rows of its n-grams");
    embla_directory_free(&d);
}

static void labels_of_a_classifier_are_not_rows_of_input(void **state)
{
    fasttext_model m = fasttext_quantized();
    embla_directory d;
    (void)state;
    m.quantized = 0;
    m.pruned = -1;
    m.input.rows = 6;
    m.input.floats = 6;
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_supervised", NULL, &d);
    entry_is(&d, 1, "output", f.size - 4, 1, 1, 0);
    assert_int_equal(d.label_count, 2);
    assert_int_equal(d.tokens, 2);
    assert_string_equal(pair_of(&d, "model"), "sup");
    embla_directory_free(&d);
    /* The flag for a quantized output means nothing where input is not quantized. */
    m.output_quantized = 1;
    f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_output_flag_alone", NULL, &d);
    assert_int_equal(d.count, 2);
    embla_directory_free(&d);
}

static void a_quantized_model_is_checked_and_noted(void **state)
{
    fasttext_model m = fasttext_quantized();
    model_file f = fasttext_file(&m);
    embla_directory d;
    char note[128];
    (void)state;
    accepts(FORMAT, &f, "ok_quantized", NULL, &d);
    assert_int_equal(d.count, 1);
    entry_is(&d, 0, "output", f.size - 4, 1, 1, 0);
    assert_int_equal(d.note_count, 1);
    snprintf(note, sizeof note,
             "input is product-quantized (%d bytes) and cannot be read as a table",
             1 + 16 + 4 + 4 + 16 + 1024 + 4 + 16 + 1024);
    assert_string_equal(d.notes[0], note);
    assert_int_equal(d.label_count, 0); /* they would be those of output */
    assert_int_equal(d.tokens, 0);
    embla_directory_free(&d);
}

static void quantized_in_pieces_of_different_widths(void **state)
{
    fasttext_model m = fasttext_pieces();
    model_file f = fasttext_file(&m);
    embla_directory d;
    (void)state;
    accepts(FORMAT, &f, "ok_quantized_pieces", NULL, &d);
    entry_is(&d, 0, "output", f.size - 12, 1, 3, 0);
    embla_directory_free(&d);
    m.input.codes = 4; /* as `fasttext quantize -dsub 20` writes it: one piece, cut short */
    m.input.code_bytes = 4;
    memcpy(m.input.quantizer, (int32_t[]){3, 1, 20, 3}, sizeof m.input.quantizer);
    f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_quantized_width_above_dim", NULL, &d);
    embla_directory_free(&d);
}

static void quantized_without_pruning_and_with_its_output_too(void **state)
{
    fasttext_model m = fasttext_quantized();
    embla_directory d;
    (void)state;
    m.pruned = -1;
    m.input = (fasttext_matrix){
        .rows = 6, .dim = 1, .codes = 6, .code_bytes = 6, .quantizer = {1, 1, 1, 1}};
    m.output_quantized = 1;
    m.output = (fasttext_matrix){
        .rows = 1, .dim = 1, .codes = 1, .code_bytes = 1, .quantizer = {1, 1, 1, 1}};
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_quantized_both", NULL, &d);
    assert_int_equal(d.count, 0);
    assert_int_equal(d.note_count, 2);
    assert_non_null(strstr(d.notes[1], "output is product-quantized"));
    embla_directory_free(&d);
}

static void a_model_of_buckets_alone_and_one_without_buckets(void **state)
{
    fasttext_model m = fasttext_plain();
    embla_directory d;
    (void)state;
    m.arguments[FT_BUCKET] = 0;
    m.arguments[FT_MINN] = m.arguments[FT_MAXN] = 0;
    m.input.rows = 3;
    m.input.floats = 9;
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_no_buckets", NULL, &d);
    entry_is(&d, 0, "input", d.entries[0].offset, 3, 3, 0);
    embla_directory_free(&d);
    m = fasttext_quantized(); /* labels, and no words */
    m.quantized = 0;
    m.pruned = -1;
    m.words = 0;
    m.size = 1;
    m.names[0] = "__label__a";
    m.types[0] = 1;
    m.names[1] = NULL;
    m.input.floats = 4;
    f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_no_words", NULL, &d);
    assert_int_equal(d.label_count, 0);
    embla_directory_free(&d);
}

static void sniff_knows_the_magic_number(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    (void)state;
    assert_true(FORMAT->sniff(f.bytes, f.size, f.size));
    assert_true(FORMAT->sniff(f.bytes, 4, 4));
    assert_false(FORMAT->sniff(f.bytes, 3, 3));
    f.bytes[0] ^= 1;
    assert_false(FORMAT->sniff(f.bytes, f.size, f.size));
}

/* ---- F1 ---- */

static void rule_f1_another_magic_number_is_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.magic++;
    refuses_model(&m, "f1_magic", "F1");
    assert_error_has("793712315");
}

static void rule_f1_other_versions_are_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    const int32_t versions[] = {10, 13, -1, INT32_MAX};
    embla_directory d;
    (void)state;
    for (size_t i = 0; i < COUNT_OF(versions); i++) {
        m.version = versions[i];
        model_file f = fasttext_file(&m);
        refuses_with(FORMAT, &f,
                     i == 0   ? "f1_version_10"
                     : i == 1 ? "f1_version_13"
                              : NULL,
                     EMBLA_ERR_UNSUPPORTED, "F1", NULL);
    }
    m.version = 11;
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_version_11", NULL, &d);
    embla_directory_free(&d);
}

/* ---- F2 ---- */

static void refuses_argument(int which, int32_t value, const char *seed)
{
    fasttext_model m = fasttext_plain();
    char number[16];
    m.arguments[which] = value;
    refuses_model(&m, seed, "F2");
    snprintf(number, sizeof number, "%" PRId32, value);
    assert_error_has(number);
}

static void rule_f2_dim_is_1_to_65536(void **state)
{
    (void)state;
    refuses_argument(FT_DIM, 0, "f2_dim_0");
    refuses_argument(FT_DIM, 65537, "f2_dim_65537");
    refuses_argument(FT_DIM, -3, NULL);
}

static void rule_f2_lengths_of_n_grams_are_0_to_64(void **state)
{
    (void)state;
    refuses_argument(FT_MINN, -1, "f2_minn_negative");
    refuses_argument(FT_MINN, 65, "f2_minn_65");
    refuses_argument(FT_MAXN, -1, "f2_maxn_negative");
    refuses_argument(FT_MAXN, 65, "f2_maxn_65");
}

static void rule_f2_minn_above_maxn_is_refused_but_no_n_grams_are_fine(void **state)
{
    fasttext_model m = fasttext_plain();
    embla_directory d;
    (void)state;
    m.arguments[FT_MAXN] = 0; /* as `fasttext -maxn 0` writes it */
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, "ok_maxn_0", NULL, &d);
    assert_int_equal(d.note_count, 0);
    embla_directory_free(&d);
    m.arguments[FT_MINN] = 4;
    m.arguments[FT_MAXN] = 3;
    refuses_model(&m, "f2_minn_above_maxn", "F2");
}

static void rule_f2_bucket_loss_and_model_are_in_range(void **state)
{
    (void)state;
    refuses_argument(FT_BUCKET, -1, "f2_bucket_negative");
    refuses_argument(FT_LOSS, 0, "f2_loss_0");
    refuses_argument(FT_LOSS, 5, "f2_loss_5");
    refuses_argument(FT_MODEL, 0, "f2_model_0");
    refuses_argument(FT_MODEL, 4, "f2_model_4");
}

static void rule_f2_every_loss_and_model_has_its_name(void **state)
{
    const char *const losses[] = {"hs", "ns", "softmax", "one-vs-all"};
    fasttext_model m = fasttext_plain();
    embla_directory d;
    (void)state;
    for (int32_t loss = 1; loss <= 4; loss++) {
        m.arguments[FT_LOSS] = loss;
        m.arguments[FT_MODEL] = 1;
        model_file f = fasttext_file(&m);
        accepts(FORMAT, &f, NULL, NULL, &d);
        assert_string_equal(pair_of(&d, "loss"), losses[loss - 1]);
        assert_string_equal(pair_of(&d, "model"), "cbow");
        embla_directory_free(&d);
    }
}

static void rule_f2_the_threshold_is_a_finite_number(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.t = (double)NAN;
    refuses_model(&m, "f2_t_nan", "F2");
    m.t = -(double)INFINITY;
    refuses_model(&m, "f2_t_infinite", "F2");
}

/* ---- F3 ---- */

static void rule_f3_size_is_words_and_labels(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.size = 4;
    refuses_model(&m, "f3_size_is_not_the_sum", "F3");
    assert_error_has("the dictionary has 4 entries, but 3 words and 0 labels");
    m.size = INT32_MIN; /* what the sum of the next two wraps to */
    m.words = INT32_MAX;
    m.labels = 1;
    refuses_model(&m, "f3_sum_wraps", "F3");
    assert_error_has("the dictionary has -2147483648 entries, but");
}

static void rule_f3_counts_below_zero_are_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.words = -1;
    m.labels = 4;
    refuses_model(&m, "f3_words_negative", "F3");
    m.words = 4;
    m.labels = -1;
    refuses_model(&m, "f3_labels_negative", "F3");
    m = fasttext_plain();
    m.tokens = -1;
    refuses_model(&m, "f3_tokens_negative", "F3");
}

static void rule_f3_a_dictionary_longer_than_the_file_is_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.size = m.words = INT32_MAX;
    refuses_model(&m, "f3_size_beyond_the_file", "F3");
    assert_error_has("bytes are left for them");
    m = fasttext_plain();
    model_file f = fasttext_file(&m);
    m.size = m.words = (int32_t)((f.size - 92) / 10 + 1); /* one word too many */
    refuses_model(&m, "f3_size_one_too_many", "F3");
    assert_error_has("bytes are left for them");
}

static void rule_f3_n_grams_kept_are_minus_1_or_fit_the_file(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.pruned = -2;
    refuses_model(&m, "f3_pruned_minus_2", "F3");
    m.pruned = INT64_MAX;
    refuses_model(&m, "f3_pruned_beyond_the_file", "F3");
    assert_error_has("bytes are left for them");
    m.pruned = INT64_MIN;
    refuses_model(&m, NULL, "F3");
}

static void rule_f3_n_grams_move_to_where_they_can(void **state)
{
    const struct {
        int which;
        int32_t value;
        const char *seed;
    } wrong[] = {{0, -1, "f3_move_from_negative"},
                 {0, 4, "f3_move_from_past_buckets"},
                 {1, -1, "f3_move_to_negative"},
                 {1, 2, "f3_move_to_past_kept"}};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        fasttext_model m = fasttext_quantized();
        m.moves[1][wrong[i].which] = wrong[i].value;
        refuses_model(&m, wrong[i].seed, "F3");
    }
}

/* The file ends inside a word: others loop for ever here. */
static void rule_f3_a_file_that_ends_inside_a_word_is_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    (void)state;
    f.bytes[64] = f.bytes[68] = 1; /* one word, */
    f.size = 92;
    for (int i = 0; i < 20; i++) put_u8(&f, 'x'); /* and its end is not there */
    refuses(FORMAT, &f, "f3_cut_inside_a_word", "F3");
    assert_error_has("ends inside word 0");
    f.bytes[64] = f.bytes[68] = 2; /* the first of two takes it all */
    memset(f.bytes + 92 + 10, 0, 10);
    refuses(FORMAT, &f, "f3_nothing_left_for_a_word", "F3");
    assert_error_has("ends inside word 1");
}

static void rule_f3_words_have_at_most_4096_bytes(void **state)
{
    static char word[4098];
    fasttext_model m = fasttext_plain();
    embla_directory d;
    (void)state;
    memset(word, 'w', 4097);
    m.names[1] = word;
    refuses_model(&m, "f3_word_of_4097", "F3");
    assert_error_has("4096");
    word[4096] = '\0';
    model_file f = fasttext_file(&m);
    accepts(FORMAT, &f, NULL, NULL, &d);
    assert_int_equal(d.labels[1].length, 4096);
    embla_directory_free(&d);
}

static void rule_f3_counts_and_types_of_words(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.counts[2] = -1;
    refuses_model(&m, "f3_count_negative", "F3");
    m = fasttext_plain();
    m.types[2] = 2;
    refuses_model(&m, "f3_type_2", "F3");
    assert_error_has("type 2");
    m = fasttext_plain();
    m.types[1] = 1;
    refuses_model(&m, "f3_label_among_words", "F3");
    m = fasttext_quantized();
    m.types[2] = 0;
    refuses_model(&m, "f3_word_among_labels", "F3");
}

static void rule_f3_a_cut_after_a_word_is_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    (void)state;
    f.bytes[64] = f.bytes[68] = 1; /* one word: 10 bytes suffice for it to be believed */
    f.size = 92 + 5 + 5;
    refuses(FORMAT, &f, "f3_cut_inside_a_count", "C2");
    f.size = 92 + 5 + 8;
    refuses(FORMAT, &f, "f3_cut_before_a_type", "C2");
}

/* ---- F4 ---- */

static void refuses_shapes(bool output, const char *seed, int64_t rows, int64_t dim)
{
    fasttext_model m = fasttext_plain();
    fasttext_matrix *matrix = output ? &m.output : &m.input;
    matrix->rows = rows;
    matrix->dim = dim;
    refuses_model(&m, seed, "F4");
}

static void rule_f4_rows_are_words_and_buckets(void **state)
{
    (void)state;
    refuses_shapes(false, "f4_input_rows", 4, 3);
    refuses_shapes(false, "f4_input_rows_0", 0, 3);
    refuses_shapes(false, "f4_input_rows_negative", -5, 3);
    refuses_shapes(false, NULL, INT64_MAX, 3);
}

static void rule_f4_numbers_in_a_row_are_dim(void **state)
{
    (void)state;
    refuses_shapes(false, "f4_input_dim", 5, 2);
    refuses_shapes(false, "f4_input_dim_0", 5, 0);
    refuses_shapes(false, NULL, 5, INT64_MIN);
    refuses_shapes(true, "f4_output_dim", 3, 4);
}

static void rule_f4_output_rows_are_words_or_labels(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    refuses_shapes(true, "f4_output_rows", 5, 3);
    m.output.rows = 2;
    refuses_model(&m, "f4_output_rows_of_a_classifier", "F4");
}

static void rule_f4_no_rows_at_all_are_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.size = m.words = 0;
    m.names[0] = NULL;
    m.arguments[FT_BUCKET] = 0;
    m.input = m.output = (fasttext_matrix){.dim = 3};
    refuses_model(&m, "f4_no_rows", "F4");
}

static void rule_f4_a_matrix_longer_than_the_file_is_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    (void)state;
    m.arguments[FT_BUCKET] = INT32_MAX;
    m.arguments[FT_DIM] = 65536;
    m.input = (fasttext_matrix){.rows = 3 + (int64_t)INT32_MAX, .dim = 65536};
    refuses_model(&m, "f4_beyond_the_file", "F4");
    m = fasttext_plain();
    m.output.floats = 8;
    refuses_model(&m, "f4_output_cut", "F4");
}

/* ---- F5 ---- */

static void rule_f5_pruned_requires_quantized(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.quantized = 0;
    m.input.floats = 4;
    refuses_model(&m, "f5_pruned_but_dense", "F5");
    m.pruned = 0;
    m.input.rows = 2;
    m.input.floats = 2;
    refuses_model(&m, "f5_pruned_to_none_but_dense", "F5");
}

static void rule_f5_flags_are_0_or_1(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.quantized = 2;
    refuses_model(&m, "f5_flag_2", "F5");
    m = fasttext_quantized();
    m.output_quantized = 255;
    refuses_model(&m, "f5_output_flag_255", "F5");
    m = fasttext_quantized();
    m.input.norms = 7;
    refuses_model(&m, "f5_norms_flag_7", "F5");
}

static void rule_f5_shape_of_a_quantized_matrix(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.input.rows = 6; /* words and all buckets, but it is pruned */
    refuses_model(&m, "f5_rows_as_if_not_pruned", "F5");
    m = fasttext_quantized();
    m.input.dim = 4;
    refuses_model(&m, "f5_dim", "F5");
}

static void rule_f5_codes_are_rows_times_pieces(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.input.codes = 5;
    m.input.code_bytes = 5;
    refuses_model(&m, "f5_codes_5", "F5");
    m.input.codes = -1;
    m.input.code_bytes = 0;
    refuses_model(&m, "f5_codes_negative", "F5");
    m.input.codes = INT32_MAX;
    refuses_model(&m, "f5_codes_beyond_the_file", "F5");
}

static void rule_f5_pieces_and_widths_agree(void **state)
{
    const struct {
        int32_t quantizer[4];
        const char *seed;
    } wrong[] = {
        {{2, 2, 2, 1}, "f5_quantizer_dim"},
        {{3, 3, 2, 1}, "f5_pieces"},
        {{3, 2, 2, 2}, "f5_last_width"},
        {{3, 2, 0, 1}, "f5_width_0"},
        {{3, 0, 2, 1}, "f5_pieces_0"},
        {{3, 2, -2, 1}, "f5_width_negative"},
        {{3, 1, 2, 3}, "f5_too_few_pieces"},
        {{3, INT32_MAX, 1, 1}, "f5_pieces_beyond"},
        {{3, 1, INT32_MAX, 2}, "f5_width_beyond"},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        fasttext_model m = fasttext_pieces();
        memcpy(m.input.quantizer, wrong[i].quantizer, sizeof wrong[i].quantizer);
        refuses_model(&m, wrong[i].seed, "F5");
        assert_error_has("the quantizer has");
    }
}

static void rule_f5_norms_are_a_byte_for_each_row(void **state)
{
    fasttext_model m = fasttext_quantized();
    (void)state;
    m.input.norm_quantizer[0] = 2;
    refuses_model(&m, "f5_norm_quantizer", "F5");
    m = fasttext_quantized();
    model_file f = fasttext_file(&m);
    f.size = 92 + 14 + 13 + 20 + 16 + 1 + 1 + 16 + 4 + 4 + 16 + 1024; /* after the quantizer */
    refuses(FORMAT, &f, "f5_norms_cut", "F5");
    assert_error_has("norms of 4 rows follow, but only 0");
}

static void rule_f5_256_centroids_for_each_number(void **state)
{
    fasttext_model m = fasttext_quantized();
    model_file f = fasttext_file(&m);
    (void)state;
    f.size = 92 + 14 + 13 + 20 + 16 + 1 + 1 + 16 + 4 + 4 + 16 + 1023;
    refuses(FORMAT, &f, "f5_centroids_cut", "F5");
    assert_error_has("1024");
    assert_error_has("1023");
}

/* ---- F6, and all of it ---- */

static void rule_f6_bytes_after_the_output_are_refused(void **state)
{
    fasttext_model m = fasttext_plain();
    model_file f = fasttext_file(&m);
    (void)state;
    put_u8(&f, 0);
    refuses(FORMAT, &f, "f6_tail", "F6");
}

static void every_beginning_of_a_model_is_refused(void **state)
{
    fasttext_model plain = fasttext_plain(), quantized = fasttext_quantized();
    model_file f = fasttext_file(&plain);
    (void)state;
    refuses_every_beginning(FORMAT, &f);
    f = fasttext_file(&quantized);
    assert_int_equal(f.size, 2286);
    refuses_every_beginning(FORMAT, &f);
    /* One seed for each number that a cut can fall into. */
    for (size_t size = 0; size < 92; size += 4) {
        char name[32];
        snprintf(name, sizeof name, "c2_cut_at_%zu", size);
        save_seed("fasttext", name, f.bytes, size);
    }
    const size_t later[] = {139, 143, 155,  156,  157,  165,  173,  181,  185,
                            189, 193, 1225, 1229, 1233, 1237, 2265, 2266, 2274};
    for (size_t i = 0; i < COUNT_OF(later); i++) {
        char name[32];
        snprintf(name, sizeof name, "c2_cut_at_%zu", later[i]);
        save_seed("fasttext", name, f.bytes, later[i]);
    }
}

static void every_failure_is_survived(void **state)
{
    fasttext_model plain = fasttext_plain(), quantized = fasttext_quantized();
    model_file f = fasttext_file(&plain);
    (void)state;
    survives_failures(FORMAT, &f);
    survives_short_reads(FORMAT, &f);
    survives_a_cut(FORMAT, &f);
    f = fasttext_file(&quantized);
    survives_failures(FORMAT, &f);
    survives_short_reads(FORMAT, &f);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_skipgram_model_has_two_tables_and_its_words),
        cmocka_unit_test(labels_of_a_classifier_are_not_rows_of_input),
        cmocka_unit_test(a_quantized_model_is_checked_and_noted),
        cmocka_unit_test(quantized_in_pieces_of_different_widths),
        cmocka_unit_test(quantized_without_pruning_and_with_its_output_too),
        cmocka_unit_test(a_model_of_buckets_alone_and_one_without_buckets),
        cmocka_unit_test(sniff_knows_the_magic_number),
        cmocka_unit_test(rule_f1_another_magic_number_is_refused),
        cmocka_unit_test(rule_f1_other_versions_are_refused),
        cmocka_unit_test(rule_f2_dim_is_1_to_65536),
        cmocka_unit_test(rule_f2_lengths_of_n_grams_are_0_to_64),
        cmocka_unit_test(rule_f2_minn_above_maxn_is_refused_but_no_n_grams_are_fine),
        cmocka_unit_test(rule_f2_bucket_loss_and_model_are_in_range),
        cmocka_unit_test(rule_f2_every_loss_and_model_has_its_name),
        cmocka_unit_test(rule_f2_the_threshold_is_a_finite_number),
        cmocka_unit_test(rule_f3_size_is_words_and_labels),
        cmocka_unit_test(rule_f3_counts_below_zero_are_refused),
        cmocka_unit_test(rule_f3_a_dictionary_longer_than_the_file_is_refused),
        cmocka_unit_test(rule_f3_n_grams_kept_are_minus_1_or_fit_the_file),
        cmocka_unit_test(rule_f3_n_grams_move_to_where_they_can),
        cmocka_unit_test(rule_f3_a_file_that_ends_inside_a_word_is_refused),
        cmocka_unit_test(rule_f3_words_have_at_most_4096_bytes),
        cmocka_unit_test(rule_f3_counts_and_types_of_words),
        cmocka_unit_test(rule_f3_a_cut_after_a_word_is_refused),
        cmocka_unit_test(rule_f4_rows_are_words_and_buckets),
        cmocka_unit_test(rule_f4_numbers_in_a_row_are_dim),
        cmocka_unit_test(rule_f4_output_rows_are_words_or_labels),
        cmocka_unit_test(rule_f4_no_rows_at_all_are_refused),
        cmocka_unit_test(rule_f4_a_matrix_longer_than_the_file_is_refused),
        cmocka_unit_test(rule_f5_pruned_requires_quantized),
        cmocka_unit_test(rule_f5_flags_are_0_or_1),
        cmocka_unit_test(rule_f5_shape_of_a_quantized_matrix),
        cmocka_unit_test(rule_f5_codes_are_rows_times_pieces),
        cmocka_unit_test(rule_f5_pieces_and_widths_agree),
        cmocka_unit_test(rule_f5_norms_are_a_byte_for_each_row),
        cmocka_unit_test(rule_f5_256_centroids_for_each_number),
        cmocka_unit_test(rule_f6_bytes_after_the_output_are_refused),
        cmocka_unit_test(every_beginning_of_a_model_is_refused),
        cmocka_unit_test(every_failure_is_survived),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
