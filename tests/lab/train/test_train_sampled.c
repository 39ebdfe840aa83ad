/* SPDX-License-Identifier: Apache-2.0 */
/* Training with a loss against drawn tokens: its gradients against finite differences of the loss
 * that it reports, what it learns beside the full loss, the same bits for any number of threads.
 */
#include <math.h>

#include "check.h"
#include "engine.h"
#include "gpt_models.h"
#include "name_corpus.h"

#include "train/train.h"

enum { VOCAB = 60, BATCH = 2, LENGTH = 7, NEGATIVES = 25 };

static embla_gpt_shape shape_of(bool untied)
{
    return (embla_gpt_shape){.vocab = VOCAB,
                             .dim = 12,
                             .layers = 1,
                             .heads = 2,
                             .positions = LENGTH,
                             .biases = true,
                             .untied = untied};
}

static double loss_of(embla_gpt *gpt, const int32_t *tokens, const int32_t *targets, int64_t step)
{
    const embla_gpt_options options = {.negatives = NEGATIVES, .seed = 3, .step = step};
    embla_loss_report report;
    assert_ok(embla_gpt_backward(
        gpt,
        &(embla_gpt_batch){.tokens = tokens, .targets = targets, .batch = BATCH, .length = LENGTH},
        &options, &report));
    return report.loss;
}

static void check_gradients(bool untied)
{
    const double h = 4e-3;
    int32_t tokens[BATCH * LENGTH], targets[BATCH * LENGTH];
    embla_gpt_shape shape = shape_of(untied);
    embla_gpt *gpt = random_gpt(&shape, 5);
    uint64_t seed = 9;
    size_t checked = 0;
    for (size_t i = 0; i < BATCH * LENGTH; i++) {
        tokens[i] = (int32_t)check_below(&seed, VOCAB);
        targets[i] = i % 5 == 4 ? EMBLA_TARGET_IGNORE : (int32_t)check_below(&seed, VOCAB);
    }
    assert_ok(embla_gpt_reserve(gpt, BATCH, LENGTH));
    for (size_t n = 0; n < embla_gpt_tensor_count(gpt); n++) {
        embla_gpt_tensor x;
        assert_ok(embla_gpt_tensor_at(gpt, n, &x));
        for (int k = 0; k < 12; k++) {
            size_t at = check_below(&seed, (uint64_t)x.rows * x.dim);
            float was = x.values[at];
            embla_gpt_zero_gradients(gpt);
            (void)loss_of(gpt, tokens, targets, 4);
            double gradient = (double)x.gradient[at];
            x.values[at] = was + (float)h;
            double above = loss_of(gpt, tokens, targets, 4), up = (double)x.values[at];
            x.values[at] = was - (float)h;
            double below = loss_of(gpt, tokens, targets, 4), down = (double)x.values[at];
            x.values[at] = was;
            assert_near(gradient, (above - below) / (up - down), 3e-4 + 0.01 * fabs(gradient));
            checked += fabs(gradient) > 3e-3;
        }
    }
    assert_true(checked > 40);
    double one = loss_of(gpt, tokens, targets, 4), other = loss_of(gpt, tokens, targets, 5);
    assert_true(one == loss_of(gpt, tokens, targets, 4) && one != other); /* drawn by step */
    embla_gpt_free(gpt);
}

static void gradients_are_those_of_the_loss_that_is_reported(void **state)
{
    (void)state;
    SKIP_WITHOUT_ENGINE();
    check_gradients(false);
    check_gradients(true);
}

/* ---- trainings ---- */

typedef struct {
    embla_gpt *gpt;
    embla_corpus *corpus;
    embla_train *train;
} trained;

/* A text of words: name by name. */
static trained start(size_t negatives, int threads)
{
    static char text[3000 * NAME_MOST];
    const embla_corpus_options words = {
        .kind = EMBLA_CORPUS_WORDS, .max_words = 200, .validation = 0.1, .seed = 3};
    const embla_train_options options = {
        .batch = 8,
        .schedule = {.rate = 0.01, .final = 0.001, .steps = 150, .kind = EMBLA_SCHEDULE_COSINE},
        .threads = threads,
        .negatives = negatives};
    embla_gpt_shape shape = shape_of(false);
    trained t = {.corpus = open_text(&words, text, write_names(text, 3000, 5, 11))};
    shape.vocab = embla_corpus_vocab(t.corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &t.gpt));
    assert_ok(embla_train_new(t.gpt, t.corpus, &options, &t.train));
    return t;
}

static void stop(trained *t)
{
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
}

/* Few drawn tokens are a biased loss; with more of them the result comes near that of the full one.
 */
static void with_more_drawn_tokens_it_learns_as_the_full_loss_does(void **state)
{
    SKIP_WITHOUT_ENGINE();
    const size_t counts[] = {0, 20, 60, 199};
    double first, after[4];
    (void)state;
    for (int i = 0; i < 4; i++) {
        trained t = start(counts[i], 1);
        assert_ok(embla_train_validate(t.train, 0, &first));
        for (int n = 0; n < 150; n++) assert_ok(embla_train_step(t.train, NULL));
        assert_ok(embla_train_validate(t.train, 0, &after[i]));
        print_message("%3zu drawn: %.3f, at first %.3f\n", counts[i], after[i], first);
        assert_true(after[i] < first - 0.5);
        stop(&t);
    }
    assert_true(after[1] > after[2] && after[2] > after[3]);
    assert_true(fabs(after[3] - after[0]) < 0.1);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    SKIP_WITHOUT_ENGINE();
    trained t[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        t[i] = start(60, i + 1);
        for (int n = 0; n < 5; n++) assert_ok(embla_train_step(t[i].train, NULL));
        assert_memory_equal(t[i].gpt->weights, t[0].gpt->weights,
                            t[0].gpt->numbers * sizeof(float));
    }
    for (int i = 0; i < 3; i++) stop(&t[i]);
}

static void a_checkpoint_remembers_it_and_what_cannot_be_is_refused(void **state)
{
    trained a = start(60, 1), b = start(61, 1);
    embla_train *train = NULL;
    scratch s;
    const embla_train_options more = {
        .batch = 1, .schedule = {.rate = 1, .steps = 1}, .negatives = 201};
    (void)state;
    scratch_new(&s);
    assert_ok(embla_train_save(a.train, scratch_path(&s, "a.safetensors"), NULL));
    assert_ok(embla_train_load(a.train, s.path));
    assert_status(embla_train_load(b.train, s.path), EMBLA_ERR_ARGUMENT);
    assert_error_has("negatives 60, but this one has 61");
    assert_status(embla_train_new(a.gpt, a.corpus, &more, &train), EMBLA_ERR_ARGUMENT);
    assert_error_has("negatives is 201; it must be below the vocabulary's");
    scratch_free(&s);
    stop(&a);
    stop(&b);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(gradients_are_those_of_the_loss_that_is_reported),
        cmocka_unit_test(with_more_drawn_tokens_it_learns_as_the_full_loss_does),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_checkpoint_remembers_it_and_what_cannot_be_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
