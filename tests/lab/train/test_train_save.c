/* SPDX-License-Identifier: Apache-2.0 */
/* A training that is saved, lost and taken up again ends with the bits of one that was not; what
 * is damaged, of another model, of other options or of another corpus is refused and changes
 * nothing; a disk that is full costs no checkpoint that was there. Every allocation and every call
 * to the system fails once.
 */
#include <errno.h>
#include <math.h>
#include <signal.h>
#include <stdio.h>
#include <sys/mount.h>
#include <sys/resource.h>
#include <sys/wait.h>

#include "check.h"
#include "gpt_shapes.h"
#include "name_corpus.h"
#include "scratch.h"

#include "base/mem.h"
#include "files/io.h"
#include "train/train.h"

/* ---- trainings ---- */

static size_t names_of(char *out, uint64_t seed)
{
    return write_names(out, 150, 8, seed);
}

/* All that a training is made of, so that tests can change each. */
typedef struct {
    embla_gpt_shape shape;
    embla_train_options options;
    embla_corpus_options corpus;
    uint64_t text; /* seed of it */
} recipe;

typedef struct {
    embla_gpt *gpt;
    embla_corpus *corpus;
    embla_train *train;
} trained;

static trained start(const recipe *r)
{
    trained t = {0};
    char text[4096];
    embla_gpt_shape shape = r->shape;
    t.corpus = open_text(&r->corpus, text, names_of(text, r->text));
    if (shape.vocab == 0) shape.vocab = embla_corpus_vocab(t.corpus);
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &t.gpt));
    assert_ok(embla_train_new(t.gpt, t.corpus, &r->options, &t.train));
    return t;
}

static void stop(trained *t)
{
    embla_train_free(t->train);
    embla_gpt_free(t->gpt);
    embla_corpus_free(t->corpus);
}

static void steps(trained *t, int count)
{
    for (int i = 0; i < count; i++) assert_ok(embla_train_step(t->train, NULL));
}

/* All bytes that a checkpoint holds. */
typedef struct {
    unsigned char *bytes;
    size_t count;
} blob;

static void blob_add(blob *b, const void *bytes, size_t count)
{
    b->bytes = realloc(b->bytes, b->count + count);
    assert_non_null(b->bytes);
    memcpy(b->bytes + b->count, bytes, count);
    b->count += count;
}

static blob blob_of(const trained *t)
{
    blob b = {0};
    size_t bytes = t->gpt->numbers * sizeof(float);
    blob_add(&b, &t->train->step, sizeof t->train->step);
    blob_add(&b, &t->train->updates, sizeof t->train->updates);
    blob_add(&b, t->gpt->weights, bytes);
    blob_add(&b, t->train->mean, bytes);
    blob_add(&b, t->train->squares, bytes);
    embla_table *table = embla_gpt_ngram_table(t->gpt);
    if (table) {
        embla_optim_state squares;
        assert_ok(embla_optim_state_at(t->train->ngram, 0, &squares));
        blob_add(&b, squares.values, (size_t)squares.rows * sizeof(float));
        blob_add(&b, embla_table_data(table),
                 (size_t)embla_table_rows(table) * embla_table_row_bytes(table));
    }
    return b;
}

static void assert_holds(const trained *t, const blob *wanted)
{
    blob b = blob_of(t);
    assert_int_equal(b.count, wanted->count);
    assert_memory_equal(b.bytes, wanted->bytes, b.count);
    free(b.bytes);
}

#define SCHEDULE                                                                                   \
    {                                                                                              \
        .rate = 0.01, .final = 0.001, .steps = 40, .warm_up = 4, .kind = EMBLA_SCHEDULE_COSINE     \
    }

static const recipe recipes[] = {
    {.shape = {.dim = 8, .layers = 1, .heads = 2, .positions = 8, MICROGPT_KIND},
     .options = {.batch = 2, .schedule = SCHEDULE, .beta1 = 0.85},
     .corpus = {.documents = true, .seed = 5}},
    {.shape = {.dim = 12, .layers = 2, .heads = 3, .positions = 9, .biases = true, .dropout = 0.2},
     .options = {.batch = 2,
                 .length = 7,
                 .schedule = SCHEDULE,
                 .decay = 0.1,
                 .clip = 0.5,
                 .seed = UINT64_MAX},
     .corpus = {.seed = 6}},
    {.shape = {.dim = 12,
               .layers = 1,
               .heads = 2,
               .kv_heads = 1,
               .positions = 9,
               LLAMA_KIND,
               .rope_theta = 500},
     .options = {.batch = 3, .schedule = SCHEDULE, .decay = 0.1, .compute = EMBLA_BF16},
     .corpus = {.in_order = true, .validation = -1}},
    {.shape = {.dim = 8, .layers = 1, .heads = 2, .positions = 8, .biases = true, .dropout = 0.1},
     .options = {.batch = 2, .schedule = SCHEDULE, .decay = 0.1, .clip = 0.5},
     .corpus = {.documents = true, .validation = 0.2}},
    {.shape = {.dim = 8,
               .layers = 1,
               .heads = 2,
               .positions = 8,
               .ngram = {.rows = 60, .heads = 2, .seed = 3}},
     .options = {.batch = 2, .schedule = SCHEDULE, .clip = 0.5, .ngram_rate = 0.1},
     .corpus = {.documents = true}},
};

/* ---- going on ---- */

static void a_training_that_was_saved_goes_on_with_the_same_bits(void **state)
{
    scratch s;
    (void)state;
    scratch_new(&s);
    (void)scratch_path(&s, "saved.safetensors");
    for (size_t i = 0; i < COUNT_OF(recipes); i++)
        for (int first = 0; first <= 20; first += i == 1 ? 5 : 10) {
            trained whole = start(&recipes[i]), begun = start(&recipes[i]);
            steps(&whole, 20);
            steps(&begun, first);
            assert_ok(embla_train_save(begun.train, s.path, NULL));
            stop(&begun);
            recipe other = recipes[i]; /* threads may be another number */
            other.options.threads = 2;
            trained resumed = start(&other);
            steps(&resumed, 3); /* and steps that were made are forgotten */
            assert_ok(embla_train_load(resumed.train, s.path));
            assert_int_equal(embla_train_steps(resumed.train), first);
            steps(&resumed, 20 - first);
            blob b = blob_of(&whole);
            assert_holds(&resumed, &b);
            free(b.bytes);
            stop(&whole);
            stop(&resumed);
        }
    scratch_free(&s);
}

static void steps_left_out_are_counted_apart(void **state)
{
    scratch s;
    trained a = start(&recipes[0]), b = start(&recipes[0]);
    float *number = a.gpt->tokens ? embla_gpt_weight(a.gpt, EMBLA_GPT_LM_HEAD) : NULL, kept;
    (void)state;
    scratch_new(&s);
    steps(&a, 2);
    kept = *number;
    *number = NAN;
    steps(&a, 1);
    *number = kept;
    assert_int_equal(a.train->updates, 2);
    assert_ok(embla_train_save(a.train, scratch_path(&s, "x"), ""));
    assert_ok(embla_train_load(b.train, s.path));
    steps(&a, 2);
    steps(&b, 2);
    blob wanted = blob_of(&a);
    assert_holds(&b, &wanted);
    free(wanted.bytes);
    stop(&a);
    stop(&b);
    scratch_free(&s);
}

static void what_was_saved_can_be_asked_for(void **state)
{
    static const char note[] = "text=/a \"b\"\\c\nkeep=3\nname=\xc3\xa9\x01";
    scratch s;
    (void)state;
    scratch_new(&s);
    for (size_t i = 0; i < COUNT_OF(recipes); i++) {
        trained t = start(&recipes[i]);
        embla_train_saved saved;
        embla_train_options options = t.train->options;
        steps(&t, 3);
        assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), note));
        memset(&saved, 0x55, sizeof saved);
        assert_ok(embla_train_describe_saved(s.path, &saved));
        assert_string_equal(saved.note, note);
        assert_int_equal(saved.step, 3);
        assert_true(saved.options.schedule.rate == options.schedule.rate);
        assert_true(saved.options.seed == options.seed);
        assert_int_equal(saved.options.threads, 0);
        assert_true(saved.corpus.validation == recipes[i].corpus.validation);
        assert_true(saved.corpus.seed == recipes[i].corpus.seed);
        assert_int_equal(saved.corpus.in_order, recipes[i].corpus.in_order);
        /* All of it made anew takes what was saved. */
        recipe again = {.shape = saved.shape, .options = saved.options, .corpus = saved.corpus};
        trained u = start(&again);
        assert_ok(embla_train_load(u.train, s.path));
        blob wanted = blob_of(&t);
        assert_holds(&u, &wanted);
        free(wanted.bytes);
        stop(&u);
        stop(&t);
    }
    scratch_free(&s);
}

static void the_same_training_is_the_same_file(void **state)
{
    scratch s;
    size_t count = 0;
    recipe two = recipes[1];
    (void)state;
    scratch_new(&s);
    two.options.threads = 2;
    trained a = start(&recipes[1]), b = start(&two);
    steps(&a, 5);
    steps(&b, 5);
    assert_ok(embla_train_save(a.train, scratch_path(&s, "a"), "n"));
    unsigned char *bytes = scratch_read(s.path, &count);
    assert_ok(embla_train_save(b.train, scratch_path(&s, "b"), "n"));
    assert_true(scratch_holds(s.path, bytes, count));
    free(bytes);
    stop(&a);
    stop(&b);
    scratch_free(&s);
}

/* ---- what is another ---- */

static void refuse(const char *path, const recipe *other, embla_status status, const char *sentence)
{
    trained t = start(other);
    steps(&t, 1);
    blob before = blob_of(&t);
    assert_status(embla_train_load(t.train, path), status);
    assert_error_has(sentence);
    assert_holds(&t, &before);
    steps(&t, 1); /* it is as it was */
    free(before.bytes);
    stop(&t);
}

static void another_model_option_or_corpus_is_refused(void **state)
{
    scratch s;
    recipe mine = recipes[0];
    (void)state;
    scratch_new(&s);
    trained t = start(&mine);
    steps(&t, 2);
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), NULL));
    stop(&t);
#define OTHER(field, value, status, sentence)                                                      \
    do {                                                                                           \
        recipe other = mine;                                                                       \
        other.field = (value);                                                                     \
        refuse(s.path, &other, status, sentence);                                                  \
    } while (0)
    OTHER(shape.dim, 16, EMBLA_ERR_SHAPE, "the saved model has dim 8, but this one has 16");
    OTHER(shape.layers, 2, EMBLA_ERR_SHAPE, "has layers 1, but this one has 2");
    OTHER(shape.heads, 4, EMBLA_ERR_SHAPE, "has heads 2, but this one has 4");
    OTHER(shape.hidden, 5, EMBLA_ERR_SHAPE, "has hidden 32, but this one has 5");
    OTHER(shape.positions, 9, EMBLA_ERR_SHAPE, "positions 8, but this one has 9");
    OTHER(shape.vocab, 99, EMBLA_ERR_SHAPE, "this one has 99");
    OTHER(shape.dropout, 0.5, EMBLA_ERR_SHAPE, "dropout 0, but this one has 0.5");
    OTHER(shape.norm, EMBLA_NORM_LAYER, EMBLA_ERR_SHAPE, "has norm 1, but this one has 0");
    OTHER(shape.activation, EMBLA_ACTIVATION_GELU, EMBLA_ERR_SHAPE, "activation");
    OTHER(shape.norm_epsilon, 1e-6, EMBLA_ERR_SHAPE, "norm_epsilon");
    OTHER(shape.untied, false, EMBLA_ERR_SHAPE, "has untied 1, but this one has 0");
    OTHER(shape.no_gain, false, EMBLA_ERR_SHAPE, "no_gain");
    OTHER(shape.norm_first, false, EMBLA_ERR_SHAPE, "norm_first");
    OTHER(shape.no_norm_last, false, EMBLA_ERR_SHAPE, "no_norm_last");
    OTHER(shape.position_kind, EMBLA_POSITIONS_NONE, EMBLA_ERR_SHAPE, "position_kind");
    OTHER(shape.ngram.rows, 50, EMBLA_ERR_SHAPE, "ngram.rows 0");
    OTHER(options.batch, 3, EMBLA_ERR_ARGUMENT,
          "the saved training run has batch 2, but this one has 3");
    OTHER(options.length, 4, EMBLA_ERR_ARGUMENT, "has length 8, but this one has 4");
    OTHER(options.schedule.rate, 0.02, EMBLA_ERR_ARGUMENT, "schedule.rate 0.01");
    OTHER(options.schedule.final, 0.002, EMBLA_ERR_ARGUMENT, "schedule.final");
    OTHER(options.schedule.steps, 41, EMBLA_ERR_ARGUMENT, "schedule.steps 40, but this one has 41");
    OTHER(options.schedule.warm_up, 5, EMBLA_ERR_ARGUMENT, "schedule.warm_up");
    OTHER(options.schedule.decay, 5, EMBLA_ERR_ARGUMENT, "schedule.decay");
    OTHER(options.schedule.kind, EMBLA_SCHEDULE_LINEAR, EMBLA_ERR_ARGUMENT, "schedule.kind");
    OTHER(options.beta1, 0.86, EMBLA_ERR_ARGUMENT, "beta1 0.8");
    OTHER(options.beta2, 0.9, EMBLA_ERR_ARGUMENT, "beta2 0.9");
    OTHER(options.epsilon, 1e-9, EMBLA_ERR_ARGUMENT, "epsilon 1");
    OTHER(options.decay, 0.5, EMBLA_ERR_ARGUMENT, "has decay 0, but this one has 0.5");
    OTHER(options.clip, 0.5, EMBLA_ERR_ARGUMENT, "has clip 0, but this one has 0.5");
    OTHER(options.ngram_rate, 0.5, EMBLA_ERR_ARGUMENT, "ngram_rate");
    OTHER(options.engine, EMBLA_TRAIN_ENGINE_LIBRARY, EMBLA_ERR_ARGUMENT,
          "has no_engine 1, but this one has 0");
    OTHER(options.compute, EMBLA_BF16, EMBLA_ERR_ARGUMENT, "has compute 1, but this one has 4");
    OTHER(options.seed, 7, EMBLA_ERR_ARGUMENT, "has seed 0, but this one has 7");
    OTHER(corpus.seed, 7, EMBLA_ERR_ARGUMENT, "the corpus of the saved training run has seed 5");
    OTHER(corpus.in_order, true, EMBLA_ERR_ARGUMENT, "in_order 0, but this one has 1");
    OTHER(corpus.validation, 0.25, EMBLA_ERR_ARGUMENT, "validation 0, but this one has 0.25");
    OTHER(text, 1, EMBLA_ERR_ARGUMENT, "the corpus of the saved training run has ");
    recipe bytes = mine;
    bytes.corpus.kind = EMBLA_CORPUS_BYTES;
    bytes.shape.vocab = 0;
    refuse(s.path, &bytes, EMBLA_ERR_SHAPE, "vocab");
    scratch_free(&s);
}

/* As many tokens, as many different ones: one letter is another. */
static void a_corpus_of_other_text_is_refused_with_both_checksums(void **state)
{
    scratch s;
    char text[4096], sum[33];
    trained t = start(&recipes[0]), other = {0};
    embla_gpt_shape shape = t.gpt->shape;
    (void)state;
    scratch_new(&s);
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), NULL));
    size_t bytes = names_of(text, 0);
    for (size_t i = 0; i + 1 < bytes; i++) {
        if (text[i] == '\n' || text[i + 1] == '\n' || text[i] == text[i + 1]) continue;
        char kept = text[i];
        text[i] = text[i + 1];
        text[i + 1] = kept;
        break;
    }
    other.corpus = open_text(&recipes[0].corpus, text, bytes);
    assert_int_equal(embla_corpus_tokens(other.corpus), embla_corpus_tokens(t.corpus));
    assert_int_equal(embla_corpus_vocab(other.corpus), embla_corpus_vocab(t.corpus));
    assert_ok(embla_gpt_new(&shape, 1, 0.08, &other.gpt));
    assert_ok(embla_train_new(other.gpt, other.corpus, &recipes[0].options, &other.train));
    assert_status(embla_train_load(other.train, s.path), EMBLA_ERR_ARGUMENT);
    assert_error_has("the same number of tokens, but different ones");
    embla_sum_text(t.train->sum, sum);
    assert_error_has(sum);
    embla_sum_text(other.train->sum, sum);
    assert_error_has(sum);
    /* The same tokens by other letters. */
    embla_corpus_free(other.corpus);
    embla_train_free(other.train);
    bytes = names_of(text, 0);
    for (size_t i = 0; i < bytes; i++)
        if (text[i] != '\n') text[i] = (char)(text[i] - 'a' + 'A');
    other.corpus = open_text(&recipes[0].corpus, text, bytes);
    assert_ok(embla_train_new(other.gpt, other.corpus, &recipes[0].options, &other.train));
    assert_status(embla_train_load(other.train, s.path), EMBLA_ERR_ARGUMENT);
    stop(&t);
    stop(&other);
    scratch_free(&s);
}

static void arguments_that_cannot_be_are_refused(void **state)
{
    trained t = start(&recipes[0]);
    embla_train_saved saved;
    char path[64], *long_note = malloc(5000);
    (void)state;
    assert_non_null(long_note);
    memset(long_note, 'x', 4999);
    long_note[4096] = '\0';
    assert_status(embla_train_save(NULL, "x", NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_save(t.train, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_save(t.train, "/nowhere/x", long_note), EMBLA_ERR_ARGUMENT);
    assert_error_has("the note has 4096 bytes; it must have fewer than 4096");
    assert_status(embla_train_load(NULL, "x"), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_load(t.train, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_load(t.train, "/nowhere/x"), EMBLA_ERR_NOT_FOUND);
    assert_status(embla_train_describe_saved(NULL, &saved), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_describe_saved("x", NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_checkpoint(NULL, "x", 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_checkpoint(t.train, NULL, 1, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_checkpoint(t.train, "x", 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("keep is 0; it must be at least 1");
    assert_status(embla_train_newest(NULL, path, sizeof path, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_newest("x", NULL, 0, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_train_newest("/nowhere", path, sizeof path, NULL), EMBLA_ERR_NOT_FOUND);
    free(long_note);
    stop(&t);
}

/* ---- damage ---- */

static void every_damage_is_noticed_and_changes_nothing(void **state)
{
    scratch s;
    size_t count = 0, sums = 0;
    trained t = start(&recipes[4]), u = start(&recipes[4]);
    (void)state;
    scratch_new(&s);
    steps(&t, 4);
    steps(&u, 2);
    blob before = blob_of(&u);
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), "a note"));
    unsigned char *bytes = scratch_read(s.path, &count);
    for (size_t at = 0; at < count; at += 1 + count / 601) {
        bytes[at] ^= 1;
        scratch_write(s.path, bytes, count);
        bytes[at] ^= 1;
        embla_status status = embla_train_load(u.train, s.path);
        if (status == EMBLA_OK) fail_msg("byte %zu was changed, and nobody saw it", at);
        if (status == EMBLA_ERR_FORMAT && strstr(embla_error(), "is damaged")) sums++;
    }
    assert_true(sums > 100);
    for (size_t cut = 0; cut < count; cut += 1 + count / 97) {
        scratch_write(s.path, bytes, cut);
        assert_true(embla_train_load(u.train, s.path) != EMBLA_OK);
    }
    assert_holds(&u, &before);
    scratch_write(s.path, bytes, count);
    assert_ok(embla_train_load(u.train, s.path));
    free(bytes);
    free(before.bytes);
    stop(&t);
    stop(&u);
    scratch_free(&s);
}

/* The header with `from` changed to `to`, which is as long. */
static void with(const char *path, const unsigned char *bytes, size_t count, const char *from,
                 const char *to)
{
    unsigned char *copy = malloc(count);
    size_t length = strlen(from), at = 0;
    assert_non_null(copy);
    assert_int_equal(strlen(to), length);
    memcpy(copy, bytes, count);
    while (at + length < count && memcmp(copy + at, from, length) != 0) at++;
    if (at + length >= count) fail_msg("there is no %s", from);
    memcpy(copy + at, to, length);
    scratch_write(path, copy, count);
    free(copy);
}

static void metadata_that_cannot_be_is_refused(void **state)
{
    static const struct {
        const char *from, *to, *sentence;
        embla_status status;
    } cases[] = {
        {"\"embla.training\"", "\"embla.trainingx", "", EMBLA_ERR_FORMAT},
        {"embla.training", "embla.trbining", "is not a training checkpoint", EMBLA_ERR_FORMAT},
        {"embla.training\":\"1", "embla.training\":\"2", "version '2'", EMBLA_ERR_UNSUPPORTED},
        {"\"note\"", "\"nope\"", "the note has 0 bytes", EMBLA_ERR_FORMAT},
        {"options.batch\":\"2", "options.batch\":\"x", "'options.batch' is 'x'", EMBLA_ERR_FORMAT},
        {"options.batch\":\"2", "options.botch\":\"2", "'options.batch' is '(missing)'",
         EMBLA_ERR_FORMAT},
        {"options.seed\":\"18446744073709551615", "options.seed\":\"18446744073709551616",
         "'options.seed'", EMBLA_ERR_FORMAT},
        {"model.biases\":\"1", "model.biases\":\"2", "'model.biases' is '2'", EMBLA_ERR_FORMAT},
        {"model.layers\":\"2", "model.layers\":\"9", "does not fit in them", EMBLA_ERR_FORMAT},
        {"p-59", "p+59", "'model.", EMBLA_ERR_FORMAT},
        {"p-59", "q-59", "'model.", EMBLA_ERR_FORMAT},
        {"p-59", "p-5x", "'model.", EMBLA_ERR_FORMAT},
        {"\"updates\":\"4", "\"updates\":\"5", "5 updates, but only 4 steps", EMBLA_ERR_FORMAT},
        {"\"step\":\"4", "\"step\":\"-", "'step' is '-'", EMBLA_ERR_FORMAT},
    };
    scratch s;
    size_t count = 0;
    embla_train_saved saved, before;
    trained t = start(&recipes[1]);
    (void)state;
    scratch_new(&s);
    steps(&t, 4);
    t.train->options.clip = 0; /* so that the first real is dropout */
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), NULL));
    unsigned char *bytes = scratch_read(s.path, &count);
    memset(&saved, 0x33, sizeof saved);
    before = saved;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        const char *from = cases[i].from, *to = cases[i].to;
        char found[5] = {0}, other[5] = {0};
        if (strlen(from) == 4) { /* whatever exponent the first real has */
            char *at = strstr((char *)bytes + 8, "p-");
            assert_non_null(at);
            memcpy(found, at, 4);
            memcpy(other, at, 4);
            for (int k = 0; k < 4; k++)
                if (from[k] != to[k]) other[k] = to[k];
            from = found;
            to = other;
        }
        with(s.path, bytes, count, from, to);
        embla_status status = embla_train_describe_saved(s.path, &saved);
        if (status != cases[i].status) fail_msg("case %zu: %s", i, embla_error());
        assert_error_has(cases[i].sentence);
        assert_memory_equal(&saved, &before, sizeof saved);
        assert_true(embla_train_load(t.train, s.path) != EMBLA_OK);
    }
    free(bytes);
    stop(&t);
    scratch_free(&s);
}

/* What is compared with nothing, and read all the same. */
static void metadata_is_in_the_checksum(void **state)
{
    scratch s;
    size_t count = 0;
    trained t = start(&recipes[0]);
    (void)state;
    scratch_new(&s);
    steps(&t, 4);
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), "a note"));
    unsigned char *bytes = scratch_read(s.path, &count);
    with(s.path, bytes, count, "a note", "b note");
    assert_status(embla_train_load(t.train, s.path), EMBLA_ERR_FORMAT);
    assert_error_has("is damaged: its contents have the checksum ");
    with(s.path, bytes, count, "\"step\":\"4", "\"step\":\"9");
    assert_status(embla_train_load(t.train, s.path), EMBLA_ERR_FORMAT);
    assert_error_has("is damaged");
    with(s.path, bytes, count, "\"F32\"", "\"I32\"");
    assert_status(embla_train_load(t.train, s.path), EMBLA_ERR_FORMAT);
    assert_error_has("bytes of I32; expected");
    assert_int_equal(embla_train_steps(t.train), 4);
    free(bytes);
    stop(&t);
    scratch_free(&s);
}

static void a_note_that_is_too_long_is_refused(void **state)
{
    static const char before[] = "{\"__metadata__\":{\"embla.training\":\"1\",\"note\":\"";
    static const char after[] =
        "\"},\"t\":{\"dtype\":\"F32\",\"shape\":[1],\"data_offsets\":[0,4]}}";
    char file[8192] = {0};
    embla_train_saved saved;
    scratch s;
    (void)state;
    scratch_new(&s);
    for (size_t length = 4095; length <= 4096; length++) {
        int n = snprintf(file + 8, sizeof file - 8, "%s%*s%s", before, (int)length, "x", after);
        file[0] = (char)(n & 255);
        file[1] = (char)(n >> 8);
        memset(file + 8 + n, 0, 4);
        scratch_write(scratch_path(&s, "x"), file, 8 + (size_t)n + 4);
        assert_status(embla_train_describe_saved(s.path, &saved), EMBLA_ERR_FORMAT);
        assert_error_has(length == 4096 ? "the note has 4096 bytes" : "'step' is '(missing)'");
    }
    scratch_free(&s);
}

static void other_files_are_no_checkpoints(void **state)
{
    static const char words[] = "2 2\na 1 2\nb 3 4\n";
    scratch s;
    embla_train_saved saved;
    trained t = start(&recipes[0]);
    (void)state;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "words.txt"), words, sizeof words - 1);
    assert_status(embla_train_describe_saved(s.path, &saved), EMBLA_ERR_FORMAT);
    assert_error_has("instead of one safetensors file");
    scratch_write(scratch_path(&s, "empty"), "", 0);
    assert_true(embla_train_describe_saved(s.path, &saved) != EMBLA_OK);
    assert_ok(embla_gpt_save(t.gpt, scratch_path(&s, "model"), NULL));
    assert_status(embla_train_describe_saved(scratch_path(&s, "model/model.safetensors"), &saved),
                  EMBLA_ERR_FORMAT);
    assert_error_has("is not a training checkpoint");
    assert_int_equal(unlink(s.path), 0);
    assert_int_equal(unlink(scratch_path(&s, "model/config.json")), 0);
    stop(&t);
    scratch_free(&s);
}

/* ---- folders ---- */

static void remove_folder(const char *folder)
{
    scratch inner;
    (void)snprintf(inner.folder, sizeof inner.folder, "%.255s", folder);
    scratch_free(&inner);
}

static void old_checkpoints_go_when_the_new_one_is_there(void **state)
{
    scratch s, in;
    char folder[256], path[512];
    size_t damaged = 9;
    trained t = start(&recipes[0]);
    (void)state;
    scratch_new(&s);
    (void)snprintf(folder, sizeof folder, "%.200s/checkpoints", s.folder);
    for (int i = 0; i < 6; i++) {
        assert_ok(embla_train_checkpoint(t.train, folder, 3, "n"));
        assert_ok(embla_train_checkpoint(t.train, folder, 3, "n")); /* again: replaced */
        steps(&t, 2);
    }
    (void)snprintf(in.folder, sizeof in.folder, "%.255s", folder);
    assert_int_equal(scratch_count(&in, NULL), 3);
    assert_int_equal(access(scratch_path(&in, "step-0000000006.safetensors"), F_OK), 0);
    assert_ok(embla_train_newest(folder, path, sizeof path, &damaged));
    assert_string_equal(path, scratch_path(&in, "step-0000000010.safetensors"));
    assert_int_equal(damaged, 0);
    /* Names that are not ours stay, and are no checkpoints. */
    scratch_write(scratch_path(&in, "step-9.safetensors"), "x", 1);
    scratch_write(scratch_path(&in, "step-0000000099.safetensors.bak"), "x", 1);
    scratch_write(scratch_path(&in, "step-00000000099.safetensors"), "x", 1);
    scratch_write(scratch_path(&in, "step-99999999999999999999.safetensors"), "x", 1);
    scratch_write(scratch_path(&in, "notes"), "x", 1);
    assert_ok(embla_train_newest(folder, path, sizeof path, &damaged));
    assert_int_equal(damaged, 0);
    /* One of a higher step stays, and so does the one just written. */
    scratch_write(scratch_path(&in, "step-0000000077.safetensors"), "x", 1);
    assert_ok(embla_train_checkpoint(t.train, folder, 1, "n"));
    assert_int_equal(access(scratch_path(&in, "step-0000000077.safetensors"), F_OK), 0);
    assert_int_equal(access(scratch_path(&in, "step-0000000012.safetensors"), F_OK), 0);
    assert_int_equal(access(scratch_path(&in, "step-0000000010.safetensors"), F_OK), -1);
    assert_int_equal(scratch_count(&in, NULL), 7);
    assert_ok(embla_train_newest(folder, path, sizeof path, &damaged));
    assert_int_equal(damaged, 1);
    assert_status(embla_train_newest(folder, path, 10, &damaged), EMBLA_ERR_ARGUMENT);
    assert_error_has("room for 10");
    remove_folder(folder);
    stop(&t);
    scratch_free(&s);
}

static void the_newest_that_is_whole_is_found(void **state)
{
    scratch s;
    char path[512] = "untouched";
    size_t damaged = 9, count = 0;
    trained t = start(&recipes[0]);
    (void)state;
    scratch_new(&s);
    assert_status(embla_train_newest(s.folder, path, sizeof path, &damaged), EMBLA_ERR_NOT_FOUND);
    assert_error_has("contains no checkpoint");
    for (int i = 0; i < 4; i++) {
        assert_ok(embla_train_checkpoint(t.train, s.folder, 9, NULL));
        steps(&t, 1);
    }
    unsigned char *bytes = scratch_read(scratch_path(&s, "step-0000000003.safetensors"), &count);
    bytes[count - 9] ^= 4; /* a number */
    scratch_write(s.path, bytes, count);
    scratch_write(scratch_path(&s, "step-0000000002.safetensors"), bytes, count / 2);
    assert_ok(embla_train_newest(s.folder, path, sizeof path, &damaged));
    assert_int_equal(damaged, 2);
    assert_string_equal(path, scratch_path(&s, "step-0000000001.safetensors"));
    assert_ok(embla_train_load(t.train, path));
    assert_int_equal(embla_train_steps(t.train), 1);
    scratch_write(scratch_path(&s, "step-0000000001.safetensors"), "", 0);
    scratch_write(scratch_path(&s, "step-0000000000.safetensors"), "{}", 2);
    (void)strcpy(path, "untouched");
    damaged = 9;
    assert_status(embla_train_newest(s.folder, path, sizeof path, &damaged), EMBLA_ERR_NOT_FOUND);
    assert_error_has("all 4 checkpoints are damaged");
    assert_string_equal(path, "untouched");
    assert_int_equal(damaged, 9);
    free(bytes);
    stop(&t);
    scratch_free(&s);
}

/* ---- what fails ---- */

/* Each call that touches files, with the n-th allocation or system call failing. */
static embla_status call(int which, trained *t, scratch *s)
{
    char path[512];
    switch (which) {
    case 0:
        return embla_train_save(t->train, scratch_path(s, "x"), "new");
    case 1:
        return embla_train_load(t->train, scratch_path(s, "x"));
    case 2:
        return embla_train_checkpoint(t->train, s->folder, 1, "new");
    case 3:
        return embla_train_newest(s->folder, path, sizeof path, NULL);
    default: {
        embla_train_saved saved;
        return embla_train_describe_saved(scratch_path(s, "x"), &saved);
    }
    }
}

/* The old file is whole, or the new one is. */
static void assert_whole(scratch *s)
{
    embla_train_saved saved;
    char path[512];
    trained t = start(&recipes[4]);
    assert_ok(embla_train_load(t.train, scratch_path(s, "x")));
    assert_ok(embla_train_describe_saved(s->path, &saved));
    assert_true(strcmp(saved.note, "old") == 0 || strcmp(saved.note, "new") == 0);
    assert_ok(embla_train_newest(s->folder, path, sizeof path, NULL));
    assert_int_equal(scratch_count(s, ".tmp."), 0);
    stop(&t);
}

static void fail_each(bool memory, bool forever)
{
    for (int which = 0; which < 5; which++) {
        size_t at = 1, failed = 0;
        for (;; at++, failed++) {
            scratch s;
            trained t = start(&recipes[4]);
            scratch_new(&s);
            assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), "old"));
            assert_ok(embla_train_checkpoint(t.train, s.folder, 1, "old"));
            steps(&t, 2);
            blob before = blob_of(&t);
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory) embla_mem_fail(at, forever);
            if (!memory)
                embla_io_fail(at, forever, which == 2 ? EMBLA_SYSTEM_NO_SPACE : EMBLA_SYSTEM_OTHER);
            embla_status status = call(which, &t, &s);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status != EMBLA_OK && which == 2 && !memory && !forever &&
                strstr(embla_error(), "write it"))
                assert_error_has("earlier checkpoints are kept: 1");
            assert_whole(&s);
            if (which != 1)
                assert_holds(&t, &before);
            else if (t.train->torn) { /* neither: it says so, and can be loaded again */
                assert_true(status != EMBLA_OK);
                assert_status(embla_train_step(t.train, NULL), EMBLA_ERR_ARGUMENT);
                assert_error_has("load a checkpoint first");
                double loss;
                assert_status(embla_train_validate(t.train, 0, &loss), EMBLA_ERR_ARGUMENT);
                assert_status(embla_train_save(t.train, s.path, NULL), EMBLA_ERR_ARGUMENT);
                assert_ok(embla_train_load(t.train, scratch_path(&s, "x")));
                steps(&t, 1);
            } else if (status != EMBLA_OK) {
                assert_holds(&t, &before);
            }
            free(before.bytes);
            stop(&t);
            scratch_free(&s);
            if (status == EMBLA_OK && at > (memory ? 12u : 40u)) break;
            if (memory && status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
        }
        assert_true(failed >= (memory ? 3u : 5u));
    }
}

static void every_allocation_may_fail(void **state)
{
    (void)state;
    fail_each(true, false);
    fail_each(true, true);
}

static void every_call_to_the_system_may_fail(void **state)
{
    (void)state;
    fail_each(false, false);
}

static void reads_and_writes_may_be_short(void **state)
{
    scratch s;
    trained t = start(&recipes[1]), u = start(&recipes[1]);
    (void)state;
    scratch_new(&s);
    steps(&t, 2);
    blob wanted = blob_of(&t);
    embla_io_short(777);
    assert_ok(embla_train_save(t.train, scratch_path(&s, "x"), NULL));
    assert_ok(embla_train_load(u.train, s.path));
    embla_io_short(0);
    assert_holds(&u, &wanted);
    free(wanted.bytes);
    stop(&t);
    stop(&u);
    scratch_free(&s);
}

/* A file system of 64 KiB, where we may make one; else files of at most that size. */
static bool make_small(const char *folder)
{
    if (mount("tmpfs", folder, "tmpfs", 0, "size=64k") == 0) return true;
    const struct rlimit limit = {1 << 15, 1 << 15};
    (void)signal(SIGXFSZ, SIG_IGN);
    assert_int_equal(setrlimit(RLIMIT_FSIZE, &limit), 0);
    return false;
}

/* Whoever has no checkpoint yet is not told that some are kept. */
static void a_first_checkpoint_that_fails_promises_no_other(void **state)
{
    scratch s;
    size_t told = 0;
    trained t = start(&recipes[4]);
    (void)state;
    scratch_new(&s);
    for (size_t at = 1; at < 30; at++) {
        embla_io_fail(at, false, EMBLA_SYSTEM_NO_SPACE);
        embla_status status = embla_train_checkpoint(t.train, s.folder, 1, NULL);
        embla_io_fail(0, false, 0);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_IO);
        assert_null(strstr(embla_error(), "are kept"));
        told += strstr(embla_error(), "there is no earlier checkpoint") != NULL;
    }
    assert_true(told > 5);
    stop(&t);
    scratch_free(&s);
}

/* In a child of its own: the limit stays. */
static int fill_the_disk(const char *folder)
{
    char path[512];
    size_t damaged = 9;
    bool mounted = make_small(folder);
    trained small = start(&recipes[0]), large = start(&recipes[1]);
    int result = 1;
    assert_ok(embla_train_checkpoint(small.train, folder, 1, "small"));
    steps(&large, 1);
    recipe big = recipes[1];
    big.shape.dim = 48;
    big.shape.layers = 6;
    trained huge = start(&big);
    steps(&huge, 3);
    embla_status status = embla_train_checkpoint(huge.train, folder, 1, "huge");
    if (status == EMBLA_ERR_IO && strstr(embla_error(), "earlier checkpoints are kept: 1") &&
        strstr(embla_error(), mounted ? "No space left" : "too large") &&
        embla_train_newest(folder, path, sizeof path, &damaged) == EMBLA_OK && damaged == 0 &&
        strstr(path, "step-0000000000") && embla_train_load(small.train, path) == EMBLA_OK)
        result = mounted ? 0 : 3;
    if (result == 1) print_message("%d: %s\n", (int)status, embla_error());
    stop(&small);
    stop(&large);
    stop(&huge);
    if (mounted && umount(folder) != 0) result = 2;
    return result;
}

static void a_full_disk_keeps_the_old_checkpoint_and_says_so(void **state)
{
    scratch s;
    int status = 0;
    (void)state;
    scratch_new(&s);
    pid_t child = fork();
    assert_true(child >= 0);
    if (child == 0) _exit(fill_the_disk(s.folder));
    assert_int_equal(waitpid(child, &status, 0), child);
    assert_true(WIFEXITED(status));
    print_message("by %s\n", WEXITSTATUS(status) == 0 ? "a small tmpfs" : "a limit on file size");
    assert_true(WEXITSTATUS(status) == 0 || WEXITSTATUS(status) == 3);
    scratch_free(&s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_training_that_was_saved_goes_on_with_the_same_bits),
        cmocka_unit_test(steps_left_out_are_counted_apart),
        cmocka_unit_test(what_was_saved_can_be_asked_for),
        cmocka_unit_test(the_same_training_is_the_same_file),
        cmocka_unit_test(another_model_option_or_corpus_is_refused),
        cmocka_unit_test(a_corpus_of_other_text_is_refused_with_both_checksums),
        cmocka_unit_test(arguments_that_cannot_be_are_refused),
        cmocka_unit_test(every_damage_is_noticed_and_changes_nothing),
        cmocka_unit_test(metadata_that_cannot_be_is_refused),
        cmocka_unit_test(metadata_is_in_the_checksum),
        cmocka_unit_test(a_note_that_is_too_long_is_refused),
        cmocka_unit_test(other_files_are_no_checkpoints),
        cmocka_unit_test(old_checkpoints_go_when_the_new_one_is_there),
        cmocka_unit_test(the_newest_that_is_whole_is_found),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(every_call_to_the_system_may_fail),
        cmocka_unit_test(reads_and_writes_may_be_short),
        cmocka_unit_test(a_full_disk_keeps_the_old_checkpoint_and_says_so),
        cmocka_unit_test(a_first_checkpoint_that_fails_promises_no_other),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
