/* SPDX-License-Identifier: Apache-2.0 */
/* Training with frozen parts: what is frozen keeps its bytes, all else learns as it would without;
 * the gradient norm is that of what learns; a checkpoint remembers what is frozen.
 */
#include <math.h>
#include <stdio.h>

#include "check.h"
#include "gpt_shapes.h"
#include "name_corpus.h"

#include "train/train.h"

enum { ROWS = 5 }; /* of below:N */

static const embla_gpt_shape shapes[] = {
    {.dim = 16, .layers = 2, .heads = 4, .positions = 16, .biases = true},
    {.dim = 16, .layers = 1, .heads = 4, .positions = 16, .biases = true, .untied = true},
    {.dim = 16, .layers = 1, .heads = 4, .positions = 16, MICROGPT_KIND},
    {.dim = 16, .layers = 1, .heads = 4, .positions = 16, .ngram = {.rows = 100, .heads = 2}},
};

typedef struct {
    embla_gpt *gpt;
    embla_corpus *corpus;
    embla_train *train;
} trained;

static embla_train_options options_of(unsigned freeze, int64_t below)
{
    return (embla_train_options){.batch = 3,
                                 .schedule = {.rate = 0.01, .final = 0.001, .steps = 20},
                                 .decay = 0.1,
                                 .freeze = freeze,
                                 .freeze_below = below};
}

static trained start_with(const embla_gpt_shape *kind, const embla_train_options *options)
{
    char text[400 * NAME_MOST];
    const embla_corpus_options stream = {.validation = 0.1, .seed = 3};
    trained t = {.corpus = open_text(&stream, text, write_names(text, 400, 16, 11))};
    embla_gpt_shape shape = *kind;
    shape.vocab = embla_corpus_vocab(t.corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &t.gpt));
    assert_ok(embla_train_new(t.gpt, t.corpus, options, &t.train));
    return t;
}

static trained start(const embla_gpt_shape *kind, unsigned freeze, int64_t below)
{
    const embla_train_options options = options_of(freeze, below);
    return start_with(kind, &options);
}

static void stop(trained *t)
{
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
}

static double step(trained *t)
{
    embla_train_report report;
    assert_ok(embla_train_step(t->train, &report));
    assert_false(report.skipped);
    return report.norm;
}

/* How many numbers at the front of a tensor are frozen, by the definition in embla_train.h. */
static size_t frozen_numbers(const embla_gpt_tensor *x, unsigned freeze, int64_t below)
{
    bool tokens = strcmp(x->name, "wte") == 0, head = strcmp(x->name, "lm_head") == 0;
    bool positions = strcmp(x->name, "wpe") == 0, ngram = strncmp(x->name, "ngram", 5) == 0;
    bool trunk = !tokens && !head && !positions && !ngram;
    size_t all = (size_t)x->rows * x->dim;
    if (tokens && (freeze & EMBLA_FREEZE_TOKENS)) return all;
    if (positions && (freeze & EMBLA_FREEZE_POSITIONS)) return all;
    if (trunk && (freeze & EMBLA_FREEZE_TRUNK)) return all;
    return tokens || head ? (size_t)below * x->dim : 0;
}

/* Compares all tensors after some steps with the initial ones, and if `free_one` is given with
 * those of a training in which nothing is frozen. */
static void check_tensors(const trained *t, const embla_gpt *first, const trained *free_one,
                          unsigned freeze, int64_t below)
{
    for (size_t i = 0; i < embla_gpt_tensor_count(first); i++) {
        embla_gpt_tensor a, b, c;
        assert_ok(embla_gpt_tensor_at(first, i, &a));
        assert_ok(embla_gpt_tensor_at(t->gpt, i, &b));
        size_t frozen = frozen_numbers(&a, freeze, below), all = (size_t)a.rows * a.dim;
        size_t bytes = (all - frozen) * sizeof(float);
        assert_memory_equal(a.values, b.values, frozen * sizeof(float));
        if (frozen < all)
            assert_int_not_equal(memcmp(a.values + frozen, b.values + frozen, bytes), 0);
        if (!free_one) continue;
        assert_ok(embla_gpt_tensor_at(free_one->gpt, i, &c));
        assert_memory_equal(b.values + frozen, c.values + frozen, bytes);
    }
}

static void check_kind(const embla_gpt_shape *kind, unsigned freeze, int64_t below)
{
    trained t = start(kind, freeze, below), free_one = start(kind, 0, 0);
    embla_gpt *first = NULL;
    embla_gpt_shape shape = t.gpt->shape;
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &first));
    (void)step(&t);
    (void)step(&free_one); /* one step from the same weights has the same gradients */
    check_tensors(&t, first, &free_one, freeze, below);
    for (int i = 0; i < 6; i++) (void)step(&t);
    check_tensors(&t, first, NULL, freeze, below);
    embla_gpt_free(first);
    stop(&t);
    stop(&free_one);
}

static void what_is_frozen_keeps_its_bytes_and_all_else_learns(void **state)
{
    (void)state;
    for (size_t i = 0; i < COUNT_OF(shapes); i++) {
        for (unsigned freeze = 0; freeze < 7; freeze++) {
            check_kind(&shapes[i], freeze, 0);
            check_kind(&shapes[i], freeze, ROWS);
        }
        if (shapes[i].untied || shapes[i].ngram.rows > 0) check_kind(&shapes[i], 7, 0);
    }
}

/* Squares of norms of parts add up to that of the whole. */
static void the_norm_is_that_of_what_learns(void **state)
{
    const unsigned all = EMBLA_FREEZE_TOKENS | EMBLA_FREEZE_POSITIONS | EMBLA_FREEZE_TRUNK;
    (void)state;
    double squares[4];
    for (unsigned i = 0; i < 4; i++) {
        /* each part alone, then all three */
        const embla_train_options o = options_of(i < 3 ? all & ~(1u << i) : 0, 0);
        trained t = start_with(&shapes[0], &o);
        double norm = step(&t);
        squares[i] = norm * norm;
        stop(&t);
    }
    assert_near(squares[0] + squares[1] + squares[2], squares[3], 1e-6 * squares[3]);
    for (int i = 0; i < 3; i++) assert_true(squares[i] > 1e-6 && squares[i] < squares[3]);
}

/* A small norm: all that learns is clipped by the norm of what learns. */
static void any_number_of_threads_gives_the_same_bits(void **state)
{
    trained t[3];
    (void)state;
    for (int i = 0; i < 3; i++) {
        embla_train_options o = options_of(EMBLA_FREEZE_TRUNK, ROWS);
        o.threads = i + 1;
        o.clip = 1e-3;
        t[i] = start_with(&shapes[1], &o);
        for (int n = 0; n < 5; n++) assert_true(step(&t[i]) > 1e-3);
        assert_memory_equal(t[i].gpt->weights, t[0].gpt->weights,
                            t[0].gpt->numbers * sizeof(float));
    }
    for (int i = 0; i < 3; i++) stop(&t[i]);
}

static void a_checkpoint_remembers_what_is_frozen(void **state)
{
    scratch s;
    trained a = start(&shapes[0], EMBLA_FREEZE_POSITIONS, ROWS), same, other, none;
    embla_train_saved saved;
    (void)state;
    scratch_new(&s);
    for (int i = 0; i < 3; i++) (void)step(&a);
    assert_ok(embla_train_save(a.train, scratch_path(&s, "a.safetensors"), NULL));
    for (int i = 0; i < 3; i++) (void)step(&a);
    assert_ok(embla_train_describe_saved(s.path, &saved));
    assert_int_equal(saved.options.freeze, EMBLA_FREEZE_POSITIONS);
    assert_int_equal(saved.options.freeze_below, ROWS);
    same = start(&shapes[0], EMBLA_FREEZE_POSITIONS, ROWS);
    assert_ok(embla_train_load(same.train, s.path));
    for (int i = 0; i < 3; i++) (void)step(&same);
    assert_memory_equal(a.gpt->weights, same.gpt->weights, a.gpt->numbers * sizeof(float));
    other = start(&shapes[0], EMBLA_FREEZE_POSITIONS, ROWS + 1);
    assert_status(embla_train_load(other.train, s.path), EMBLA_ERR_ARGUMENT);
    assert_error_has("freeze_below 5, but this one has 6");
    none = start(&shapes[0], 0, 0);
    assert_status(embla_train_load(none.train, s.path), EMBLA_ERR_ARGUMENT);
    assert_error_has("freeze 2, but this one has 0");
    /* nothing frozen: the file has no such keys, as before there were any */
    assert_ok(embla_train_save(none.train, scratch_path(&s, "b.safetensors"), NULL));
    embla_checkpoint *cp = NULL;
    assert_ok(embla_checkpoint_open(s.path, NULL, &cp));
    assert_null(embla_saved_value(&cp->shards[0].directory, "options.freeze"));
    assert_non_null(embla_saved_value(&cp->shards[0].directory, "options.seed"));
    embla_checkpoint_free(cp);
    assert_ok(embla_train_load(none.train, s.path));
    stop(&a);
    stop(&same);
    stop(&other);
    stop(&none);
    scratch_free(&s);
}

static void what_cannot_be_frozen_is_refused(void **state)
{
    trained t = start(&shapes[0], 0, 0);
    embla_gpt_shape rotary = {.vocab = 30, .dim = 16, .layers = 1, .heads = 4, .positions = 16};
    embla_gpt *gpt = NULL;
    embla_train *train = NULL;
    (void)state;
    rotary.position_kind = EMBLA_POSITIONS_ROTARY;
    assert_ok(embla_gpt_new(&rotary, 1, 0, &gpt));
#define REFUSED(model, freeze, below, sentence)                                                    \
    do {                                                                                           \
        const embla_train_options o = options_of(freeze, below);                                   \
        assert_status(embla_train_new(model, t.corpus, &o, &train), EMBLA_ERR_ARGUMENT);           \
        assert_error_has(sentence);                                                                \
        assert_null(train);                                                                        \
    } while (0)
    REFUSED(t.gpt, 8, 0, "freeze is 8; it must be from 0 to 7");
    REFUSED(t.gpt, 0, -1, "freeze_below is -1");
    REFUSED(t.gpt, 0, 1000, "freeze_below is 1000");
    REFUSED(t.gpt, 7, 0, "tensors of the model are frozen");
    REFUSED(t.gpt, 6, t.gpt->shape.vocab, "tensors of the model are frozen");
    REFUSED(gpt, EMBLA_FREEZE_POSITIONS, 0,
            "no learned positions to freeze; its positions are: rotary");
    embla_gpt_free(gpt);
    stop(&t);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(what_is_frozen_keeps_its_bytes_and_all_else_learns),
        cmocka_unit_test(the_norm_is_that_of_what_learns),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(a_checkpoint_remembers_what_is_frozen),
        cmocka_unit_test(what_cannot_be_frozen_is_refused),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
