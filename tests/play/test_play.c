/* SPDX-License-Identifier: Apache-2.0 */
/* What the page of `embla play` asks for: answers are those of the library, with all digits, and
 * what is refused is a sentence. same_bits.sh compares a training with the program's.
 */
#include "scratch.h"

#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "embla_train.h"
#include "play.h"

#define STORY DEMO "/story"

/* A copy of the answer, which the next call does not change. */
static const char *checked(const char *answer)
{
    static char copy[1 << 16];
    assert_non_null(answer);
    size_t length = strlen(answer);
    assert_in_range(length, 2, sizeof copy - 1);
    memcpy(copy, answer, length + 1);
    return copy;
}

/* The same in memory of its own, to compare two answers. */
static const char *kept(const char *answer)
{
    static char copy[1 << 16];
    const char *text = checked(answer);
    memcpy(copy, text, strlen(text) + 1);
    return copy;
}

#define assert_has(answer, text)                                                                   \
    do {                                                                                           \
        const char *has_answer = checked(answer);                                                  \
        if (!strstr(has_answer, (text))) fail_msg("'%s' is not in %.300s", (text), has_answer);    \
    } while (0)

static play_model *opened(const char *path)
{
    play_model *model = play_open(path);
    if (!model) fail_msg("%s: %s", path, play_error());
    return model;
}

static void a_model_says_what_it_is(void **state)
{
    (void)state;
    play_model *model = opened(STORY);
    assert_has(play_about(model),
               "{\"rows\":302,\"dim\":32,\"positions\":16,\"kind\":\"learned\","
               "\"model\":true,\"bos\":301,\"leads\":true,\"tied\":false,\"head\":true,"
               "\"words\":[\"the\",\"a\",");
    assert_has(play_about(model), "\"<bos>\"]}");
    play_close(model);
    model = opened(DEMO "/five.vec");
    assert_has(play_about(model),
               "{\"rows\":5,\"dim\":4,\"positions\":0,\"kind\":\"none\","
               "\"model\":false,\"bos\":-1,\"leads\":false,\"tied\":false,\"head\":false,");
    play_close(model);
    play_close(NULL);
}

static void a_text_becomes_tokens(void **state)
{
    (void)state;
    play_model *model = opened(STORY);
    assert_string_equal(
        checked(play_tokens(model, "the cat sat")),
        "{\"vocab\":302,\"tokens\":[{\"id\":0,\"text\":\"the\",\"begin\":0,\"end\":3},"
        "{\"id\":66,\"text\":\"cat\",\"begin\":4,\"end\":7},"
        "{\"id\":20,\"text\":\"sat\",\"begin\":8,\"end\":11}]}");
    assert_string_equal(checked(play_tokens(model, "")), "{\"vocab\":302,\"tokens\":[]}");
    assert_has(play_text(model, (const int32_t[]){0, 66, 20}, 3), "{\"text\":\"the cat sat\"}");
    play_close(model);
    model = opened(DEMO "/words.vec");
    assert_string_equal(checked(play_tokens(model, " cat\n  Qat")),
                        "{\"vocab\":300,\"tokens\":[{\"id\":66,\"text\":\"cat\",\"begin\":1,"
                        "\"end\":4},{\"id\":-1,\"text\":\"Qat\",\"begin\":7,\"end\":10}]}");
    play_close(model);
}

/* A number as the answers have it. */
static const char *digits(float number)
{
    static char text[32];
    snprintf(text, sizeof text, "%.9g", (double)number);
    return text;
}

static void a_list_of_words_is_no_tokenizer(void **state)
{
    static const char words[] = "cat\ndog\nthe cat\n";
    static const char table[] =
        "\x3b\0\0\0\0\0\0\0"
        "{\"w\":{\"dtype\":\"F32\",\"shape\":[3,1],\"data_offsets\":[0,12]}} "
        "    \0\0\0\0\0\0\0\0\0\0\0";
    scratch s;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "table.vocab.txt"), words, sizeof words - 1);
    scratch_write(scratch_path(&s, "table.safetensors"), table, 8 + 0x3b + 12);
    play_model *model = opened(s.path);
    const char *answer = checked(play_tokens(model, "dog bird"));
    assert_has(answer, "\"tokens\":[{\"id\":1,");
    assert_has(answer, "{\"id\":-1,\"text\":\"bird\",");
    play_close(model);
    scratch_free(&s);
}

static void a_vector_is_row_plus_position(void **state)
{
    static const int32_t ids[] = {66, 20};
    enum { DIM = 32 };
    float sums[2 * DIM], rows[2 * DIM];
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL, *positions = NULL;
    char wanted[64];
    (void)state;
    assert_ok(embla_checkpoint_open(STORY, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    assert_ok(embla_table_open(checkpoint, "wpe", NULL, &positions));
    const embla_embed_options options = {.position_table = positions, .first_position = 3};
    assert_ok(embla_embed(table, ids, 1, 2, &options, sums));
    assert_ok(embla_lookup(table, ids, 2, NULL, rows));

    play_model *model = opened(STORY);
    const char *answer = checked(play_embed(model, ids, 2, 3, -1));
    snprintf(wanted, sizeof wanted, "{\"rows\":[[%s,", digits(rows[0]));
    assert_has(answer, wanted);
    snprintf(wanted, sizeof wanted, "],\"sums\":[[%s,", digits(sums[0]));
    assert_has(answer, wanted);
    snprintf(wanted, sizeof wanted, ",%s]]}", digits(sums[2 * DIM - 1]));
    assert_has(answer, wanted);
    assert_has(play_embed(model, ids, 2, 15, -1),
               "{\"error\":\"2 positions from 15 on are out of range");
    assert_has(play_embed(model, (const int32_t[]){302}, 1, 0, -1),
               "{\"error\":\"token 302 at index 0 is out of range: the table has 302 rows\"}");
    assert_string_equal(checked(play_embed(model, ids, 0, 0, -1)),
                        "{\"rows\":[],\"positions\":[],\"sums\":[]}");
    play_close(model);
    embla_table_free(positions);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
}

static void rows_are_compared_and_found(void **state)
{
    (void)state;
    play_model *model = opened(DEMO "/words.vec");
    assert_has(play_near(model, 66, 2, 0), "{\"near\":[{\"id\":38,\"score\":0.9123889");
    assert_has(play_compare(model, 66, 38, 0), "\"cosine\":0.9123889");
    assert_has(play_compare(model, 66, 300, 0), "{\"error\":\"token 300 at index 1");
    assert_has(play_near(model, 300, 2, 0), "{\"error\":\"token 300");
    assert_string_equal(checked(play_near(model, 66, 0, 0)), "{\"near\":[]}");
    play_close(model);
    model = opened(DEMO "/five.vec"); /* row 0 . row 2 = 0.07 in the documents */
    assert_has(play_compare(model, 0, 2, 0), "\"dot\":0.07");
    assert_has(play_near(model, 0, 64, 0),
               "\"score\":-0."); /* all four others, and no empty place */
    assert_false(strstr(checked(play_near(model, 0, 1000, 0)), "-1,") != NULL);
    play_close(model);
}

static void king_less_man_plus_woman_is_queen(void **state)
{
    static const int32_t king = 34;
    int32_t plus[17] = {king}, minus[17] = {0};
    size_t length;
    (void)state;
    play_model *model = opened(DEMO "/words.vec");
    embla_vocab *vocab = NULL;
    embla_checkpoint *checkpoint = NULL;
    assert_ok(embla_checkpoint_open(DEMO "/words.vec", NULL, &checkpoint));
    assert_ok(embla_vocab_open(checkpoint, &vocab));
    assert_ok(embla_vocab_find(vocab, "woman", 5, &plus[1]));
    assert_ok(embla_vocab_find(vocab, "man", 3, &minus[0]));
    assert_string_equal(embla_vocab_word(vocab, 48, &length), "queen");
    assert_has(play_analogy(model, plus, 2, minus, 1, 3, 0),
               "{\"near\":[{\"id\":48,\"score\":0.8998");
    assert_has(play_analogy(model, plus, 2, minus, 1, 3, 1), "{\"id\":34,");
    assert_has(play_analogy(model, plus, 17, minus, 1, 3, 0),
               "{\"error\":\"a question has at most 16");
    assert_has(play_analogy(model, plus, 1, plus, 1, 3, 0), "{\"error\":");
    embla_vocab_free(vocab);
    embla_checkpoint_free(checkpoint);
    play_close(model);
}

static void rows_are_points_of_a_plane(void **state)
{
    float xy[2 * 300];
    char wanted[80];
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_checkpoint_open(DEMO "/words.vec", NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    assert_ok(embla_plane(table, &(embla_plane_options){.no_engine = true}, xy, NULL));
    play_model *model = opened(DEMO "/words.vec");
    snprintf(wanted, sizeof wanted, "{\"xy\":[[%.9g,%.9g],", (double)xy[0], (double)xy[1]);
    assert_has(play_plane(model, NULL, 0), wanted);
    assert_has(play_plane(model, NULL, 0), "],\"share\":[0.07");
    play_close(model);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
}

static void the_next_word_has_a_probability(void **state)
{
    static const int32_t ids[] = {301, 0, 34}; /* <bos> the king */
    (void)state;
    play_model *model = opened(STORY);
    const char *answer = checked(play_predict(model, ids, 3, 1, 2));
    assert_has(answer, "{\"next\":[{\"id\":63,\"logit\":8.8678");
    assert_has(answer, "\"probability\":0.526773");
    assert_has(answer,
               ",\"each\":[{\"id\":301,\"logit\":0,\"probability\":1,\"rank\":0},{\"id\":0,");
    assert_has(answer, ",\"loss\":");
    assert_has(play_predict(model, ids, 3, 0.1, 1), "\"probability\":0.99999");
    assert_has(play_predict(model, ids, 3, -1, 1), "{\"error\":");
    assert_has(play_predict(model, ids, 0, 1, 1), "{\"error\":");
    play_close(model);
    model = opened(DEMO "/words.vec");
    assert_has(play_predict(model, ids, 1, 1, 1), "{\"error\":\"this is a table without a model");
    play_close(model);
}

static void positions_of_any_kind_can_be_shown(void **state)
{
    static const int32_t ids[] = {66, 20};
    float waves[64];
    char wanted[64];
    (void)state;
    play_model *model = opened(STORY);
    assert_ok(embla_sinusoid(0, 2, 32, 0, waves));
    snprintf(wanted, sizeof wanted, "],\"positions\":[[%s,", digits(waves[0]));
    assert_has(play_embed(model, ids, 2, 0, EMBLA_POSITIONS_SINUSOIDAL), wanted);
    /* 4 heads of 8 numbers: pair 0 of position 1 is rotated by 1 radian */
    assert_has(play_embed(model, ids, 2, 0, EMBLA_POSITIONS_ROTARY),
               "]],\"degrees\":[[0,0,0,0],[57.29577951308232");
    const char *none = checked(play_embed(model, ids, 2, 0, EMBLA_POSITIONS_NONE));
    assert_true(strstr(none, "]]}") && !strstr(none, "positions") && !strstr(none, "degrees"));
    play_close(model);
    model = opened(DEMO "/words.vec");
    assert_has(play_tokens(model, "#5 cat #300 #x"),
               "{\"id\":5,\"text\":\"#5\",\"begin\":0,\"end\":2},{\"id\":66,");
    assert_has(play_tokens(model, "#300 #x"), "[{\"id\":-1,\"text\":\"#300\",");
    assert_has(play_embed(model, ids, 2, 0, EMBLA_POSITIONS_LEARNED),
               "{\"error\":\"this model has no table of positions\"}");
    play_close(model);
}

static void a_one_hot_product_is_the_row(void **state)
{
    (void)state;
    play_model *model = opened(DEMO "/five.vec");
    assert_string_equal(checked(play_one_hot(model, 2)),
                        "{\"row\":[-0.899999976,0.100000001,0.200000003,-0.300000012],"
                        "\"same\":true,\"multiplications\":20,\"by_zero\":16}");
    assert_has(play_one_hot(model, 5), "{\"error\":\"token 5 at index 0 is out of range");
    play_close(model);
}

static void the_head_has_rows_of_its_own(void **state)
{
    const int32_t flew = 190, laid = 191; /* rows of any two words */
    const char *table;
    (void)state;
    play_model *model = opened(STORY);
    table = kept(play_compare(model, flew, laid, 0));
    assert_string_not_equal(checked(play_compare(model, flew, laid, 1)), table);
    table = kept(play_near(model, 66, 2, 0));
    assert_string_not_equal(checked(play_near(model, 66, 2, 1)), table);
    play_close(model);
    model = opened(DEMO "/words.vec"); /* without a head the table is asked */
    table = kept(play_near(model, 66, 2, 0));
    assert_string_equal(checked(play_near(model, 66, 2, 1)), table);
    play_close(model);
}

static void vectors_are_compared(void **state)
{
    (void)state;
    assert_string_equal(play_compare_vectors((const float[]){3, 4}, (const float[]){-4, 3}, 2),
                        "{\"norms\":[5,5],\"dot\":0,\"cosine\":0}");
}

static void a_tokenizer_is_learned_from_a_text(void **state)
{
    scratch s;
    static const char text[] = "low low low low low lower lower newer newer wider wider\n";
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "low.txt"), text, sizeof text - 1);
    char to[sizeof s.path + 8];
    snprintf(to, sizeof to, "%s.json", s.path);
    play_cutter *cutter = play_cutter_train(s.path, to, 261); /* bytes, the special one, 4 merges */
    if (!cutter) fail_msg("%s", play_error());
    const char *cut = checked(play_cut(cutter, "low lower"));
    assert_has(cut, "{\"vocab\":261,\"tokens\":[");
    assert_has(cut, "\"text\":\"low\",\"begin\":0,\"end\":3}");
    assert_has(cut, "\"text\":\"er\",\"begin\":7,\"end\":9}]}");
    play_cutter_close(cutter);
    play_cutter_close(NULL);
    assert_null(play_cutter_train(DEMO "/nothing", to, 300));
    assert_non_null(strstr(play_error(), "nothing"));
    (void)remove(to);
    scratch_free(&s);
}

static void costs_are_those_of_the_library(void **state)
{
    const play_sizes andrea = {
        .rows = 8449, .dim = 768, .positions = 1024, .layers = 12, .untied = 1};
    const play_sizes nothing = {.rows = 5};
    (void)state;
    assert_has(play_cost(&andrea, "f32", NULL),
               "{\"tokens\":{\"parameters\":6488832,\"bytes\":25955328}");
    assert_has(play_cost(&andrea, "bf16", NULL),
               "\"total\":{\"parameters\":98698752,\"bytes\":197397504}");
    assert_has(play_cost(&andrea, "f32", NULL),
               "\"one_hot_madds\":6488832,\"head_madds\":6488832,");
    assert_has(play_cost(&nothing, "f32", NULL), "{\"error\":");
    assert_has(play_cost(&andrea, "f33", NULL), "{\"error\":");
    assert_has(play_cost(&(play_sizes){0}, "f32", "gpt2"), /* tied */
               "{\"tokens\":{\"parameters\":38597376,\"bytes\":154389504}");
    assert_has(play_cost(&nothing, "f32", "gpt9"), "{\"error\":");
    assert_has(play_cost_models(), "\"name\":\"gpt2\"");
}

static void tokens_select_rows_of_an_ngram_table(void **state)
{
    static const int32_t the[] = {22, 10, 7};
    (void)state;
    assert_has(play_ngram(DEMO "/village", the, 3), "\"tokens\":[{\"id\":22,\"rows\":[");
    assert_has(play_ngram(DEMO "/village", (const int32_t[]){-1}, 1), "{\"error\":");
    assert_has(play_ngram(DEMO "/names", the, 3), "{\"error\":");
}

static void strange_words_are_quoted(void **state)
{
    static const char vec[] = "3 1\na\"b 1\nc\\d 2\n\xc3\xa9\x01 nan\n";
    scratch s;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "strange.vec"), vec, sizeof vec - 1);
    play_model *model = opened(s.path);
    assert_has(play_about(model), "[\"a\\\"b\",\"c\\\\d\",\"\xc3\xa9\\u0001\"]");
    assert_has(play_embed(model, (const int32_t[]){2}, 1, 0, -1), "[[null]]");
    play_close(model);
    scratch_free(&s);
}

static void what_cannot_be_opened_has_a_reason(void **state)
{
    (void)state;
    assert_null(play_open(DEMO "/nothing"));
    assert_non_null(strstr(play_error(), "nothing"));
    assert_null(play_train(DEMO "/nothing", NULL, &(play_choices){0}));
    assert_non_null(strstr(play_error(), "nothing"));
    assert_null(play_train(DEMO "/names.txt", NULL, &(play_choices){.dim = 5, .positions = 3}));
    assert_true(strlen(play_error()) > 0);
    assert_has(play_version(), "{\"version\":\"0.");
}

static void a_step_moves_the_rows_that_it_read(void **state)
{
    const play_choices choices = {.steps = 200};
    (void)state;
    play_training *t = play_train(DEMO "/names.txt", NULL, &choices);
    if (!t) fail_msg("%s", play_error());
    assert_has(play_train_about(t),
               "{\"vocab\":27,\"dim\":16,\"positions\":16,\"steps\":200,\"parameters\":4192,"
               "\"documents\":782,\"tied\":false,\"guessing\":3.2958");
    assert_has(play_train_about(t), "\"words\":[\"a\",\"b\"");
    assert_has(play_train_about(t), "\"<bos>\"]}");
    const char *first = checked(play_train_steps(t, 1));
    const char *read = strstr(first, "\"read\":"), *moved = strstr(first, "\"moved\":");
    assert_true(strncmp(first, "{\"step\":1,\"loss\":3.", 19) == 0 && read && moved);
    /* after one step only the rows of its tokens have changed: the same list twice */
    size_t length = (size_t)(strchr(read, ']') - read) - strlen("\"read\":");
    assert_memory_equal(read + strlen("\"read\":"), moved + strlen("\"moved\":"), length);
    assert_has(play_train_steps(t, 0), "{\"step\":1,");
    assert_has(play_train_steps(t, 199), "{\"step\":200,");
    assert_has(play_train_near(t, 0, 3), "{\"near\":[{\"id\":");
    assert_has(play_train_plane(t, NULL), "{\"xy\":[[");
    assert_has(play_train_sample(t, 0.8, 7), "{\"tokens\":[");
    assert_has(play_train_sample(t, 0.8, 7), "],\"text\":\"");
    assert_has(play_train_sample(t, -1, 7), "{\"error\":");
    play_train_close(t);
    play_train_close(NULL);
}

/* The plane of the first rows stays, while the rows move on it. */
static void a_plane_can_stay_while_rows_move(void **state)
{
    const play_choices choices = {.steps = 50};
    enum { NUMBERS = 27 * 16 };
    float first[NUMBERS];
    const char *before;
    (void)state;
    play_training *t = play_train(DEMO "/names.txt", NULL, &choices);
    if (!t) fail_msg("%s", play_error());
    memcpy(first, play_train_rows(t), sizeof first);
    assert_non_null(play_train_positions(t));
    before = kept(play_train_plane(t, NULL));
    assert_string_equal(checked(play_train_plane(t, first)), before);
    assert_has(play_train_steps(t, 50), "{\"step\":50,");
    assert_string_not_equal(checked(play_train_plane(t, first)), before);
    assert_memory_not_equal(first, play_train_rows(t), sizeof first);
    memcpy(first, play_train_rows(t), sizeof first);
    before = kept(play_train_plane(t, NULL));
    assert_string_equal(checked(play_train_plane(t, first)), before);
    play_train_close(t);
    t = play_train(DEMO "/names.txt", NULL, &(play_choices){.positions = 4});
    if (!t) fail_msg("%s", play_error());
    assert_null(play_train_positions(t));
    play_train_close(t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_says_what_it_is),
        cmocka_unit_test(a_text_becomes_tokens),
        cmocka_unit_test(a_list_of_words_is_no_tokenizer),
        cmocka_unit_test(a_vector_is_row_plus_position),
        cmocka_unit_test(rows_are_compared_and_found),
        cmocka_unit_test(king_less_man_plus_woman_is_queen),
        cmocka_unit_test(rows_are_points_of_a_plane),
        cmocka_unit_test(the_next_word_has_a_probability),
        cmocka_unit_test(positions_of_any_kind_can_be_shown),
        cmocka_unit_test(a_one_hot_product_is_the_row),
        cmocka_unit_test(the_head_has_rows_of_its_own),
        cmocka_unit_test(vectors_are_compared),
        cmocka_unit_test(a_tokenizer_is_learned_from_a_text),
        cmocka_unit_test(costs_are_those_of_the_library),
        cmocka_unit_test(tokens_select_rows_of_an_ngram_table),
        cmocka_unit_test(strange_words_are_quoted),
        cmocka_unit_test(what_cannot_be_opened_has_a_reason),
        cmocka_unit_test(a_step_moves_the_rows_that_it_read),
        cmocka_unit_test(a_plane_can_stay_while_rows_move),
    };
    return cmocka_run_group_tests_name("play", tests, NULL, NULL);
}
