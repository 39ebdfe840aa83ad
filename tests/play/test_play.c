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
    assert_has(play_about(model), "{\"rows\":302,\"dim\":32,\"positions\":16,\"kind\":\"learned\","
                                  "\"model\":true,\"tied\":false,\"words\":[\"the\",\"a\",");
    assert_has(play_about(model), "\"<bos>\"]}");
    play_close(model);
    model = opened(DEMO "/five.vec");
    assert_has(play_about(model), "{\"rows\":5,\"dim\":4,\"positions\":0,\"kind\":\"none\","
                                  "\"model\":false,\"tied\":false,");
    play_close(model);
    play_close(NULL);
}

static void a_text_becomes_tokens(void **state)
{
    (void)state;
    play_model *model = opened(STORY);
    assert_string_equal(checked(play_tokens(model, "the cat sat")),
                        "{\"tokens\":[{\"id\":0,\"text\":\"the\"},{\"id\":66,\"text\":\"cat\"},"
                        "{\"id\":20,\"text\":\"sat\"}]}");
    assert_string_equal(checked(play_tokens(model, "")), "{\"tokens\":[]}");
    play_close(model);
    model = opened(DEMO "/words.vec");
    assert_has(play_tokens(model, "the"), "{\"error\":\"this table has words, but no tokenizer\"}");
    play_close(model);
}

/* A number as the answers have it. */
static const char *digits(float number)
{
    static char text[32];
    snprintf(text, sizeof text, "%.9g", (double)number);
    return text;
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
    const char *answer = checked(play_embed(model, ids, 2, 3));
    snprintf(wanted, sizeof wanted, "{\"rows\":[[%s,", digits(rows[0]));
    assert_has(answer, wanted);
    snprintf(wanted, sizeof wanted, "],\"sums\":[[%s,", digits(sums[0]));
    assert_has(answer, wanted);
    snprintf(wanted, sizeof wanted, ",%s]]}", digits(sums[2 * DIM - 1]));
    assert_has(answer, wanted);
    assert_has(play_embed(model, ids, 2, 15),
               "{\"error\":\"2 positions from 15 on are out of range");
    assert_has(play_embed(model, (const int32_t[]){302}, 1, 0),
               "{\"error\":\"token 302 at index 0 is out of range: the table has 302 rows\"}");
    assert_string_equal(checked(play_embed(model, ids, 0, 0)),
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
    assert_has(play_near(model, 66, 2), "{\"near\":[{\"id\":38,\"score\":0.9123889");
    assert_has(play_compare(model, 66, 38), "\"cosine\":0.9123889");
    assert_has(play_compare(model, 66, 300), "{\"error\":\"token 300 at index 1");
    assert_has(play_near(model, 300, 2), "{\"error\":\"token 300");
    assert_string_equal(checked(play_near(model, 66, 0)), "{\"near\":[]}");
    play_close(model);
    model = opened(DEMO "/five.vec"); /* row 0 . row 2 = 0.07 in the documents */
    assert_has(play_compare(model, 0, 2), "\"dot\":0.07");
    assert_has(play_near(model, 0, 64), "\"score\":-0."); /* all four others, and no empty place */
    assert_false(strstr(checked(play_near(model, 0, 1000)), "-1,") != NULL);
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
    assert_has(play_plane(model), wanted);
    assert_has(play_plane(model), "],\"share\":[0.07");
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

static void strange_words_are_quoted(void **state)
{
    static const char vec[] = "3 1\na\"b 1\nc\\d 2\n\xc3\xa9\x01 nan\n";
    scratch s;
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "strange.vec"), vec, sizeof vec - 1);
    play_model *model = opened(s.path);
    assert_has(play_about(model), "[\"a\\\"b\",\"c\\\\d\",\"\xc3\xa9\\u0001\"]");
    assert_has(play_embed(model, (const int32_t[]){2}, 1, 0), "[[null]]");
    play_close(model);
    scratch_free(&s);
}

static void what_cannot_be_opened_has_a_reason(void **state)
{
    (void)state;
    assert_null(play_open(DEMO "/nothing"));
    assert_non_null(strstr(play_error(), "nothing"));
    assert_null(play_train(DEMO "/nothing", &(play_choices){0}));
    assert_non_null(strstr(play_error(), "nothing"));
    assert_null(play_train(DEMO "/names.txt", &(play_choices){.dim = 5, .positions = 3}));
    assert_true(strlen(play_error()) > 0);
    assert_has(play_version(), "{\"version\":\"0.");
}

static void a_step_moves_the_rows_that_it_read(void **state)
{
    const play_choices choices = {.steps = 200};
    (void)state;
    play_training *t = play_train(DEMO "/names.txt", &choices);
    if (!t) fail_msg("%s", play_error());
    assert_has(play_train_about(t), "{\"vocab\":27,\"dim\":16,\"steps\":200,\"parameters\":4192,"
                                    "\"tied\":false,\"guessing\":3.2958");
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
    assert_has(play_train_plane(t), "{\"xy\":[[");
    assert_has(play_train_sample(t, 0.8, 7), "{\"tokens\":[");
    assert_has(play_train_sample(t, 0.8, 7), "\"spaces\":false}");
    assert_has(play_train_sample(t, -1, 7), "{\"error\":");
    play_train_close(t);
    play_train_close(NULL);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_model_says_what_it_is),
        cmocka_unit_test(a_text_becomes_tokens),
        cmocka_unit_test(a_vector_is_row_plus_position),
        cmocka_unit_test(rows_are_compared_and_found),
        cmocka_unit_test(king_less_man_plus_woman_is_queen),
        cmocka_unit_test(rows_are_points_of_a_plane),
        cmocka_unit_test(the_next_word_has_a_probability),
        cmocka_unit_test(strange_words_are_quoted),
        cmocka_unit_test(what_cannot_be_opened_has_a_reason),
        cmocka_unit_test(a_step_moves_the_rows_that_it_read),
    };
    return cmocka_run_group_tests_name("play", tests, NULL, NULL);
}
