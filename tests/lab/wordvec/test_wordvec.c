/* SPDX-License-Identifier: Apache-2.0 */
/* Learning words (wordvec). The arithmetic of a window is held against finite differences of its
 * loss in double; the training against itself: any number of threads, any instruction set, resumed
 * or not, gives the same bits. And words that are used alike must get rows alike.
 */
#include "comma_locale.h"
#include "embla_wordvec.h"

#include <errno.h>
#include <math.h>

#include "base/mem.h"
#include "files/io.h"
#include "scratch.h"
#include "slow.h"
#include "wordvec/window.h"
#include "wordvec/wordvec.h"

/* ---- the arithmetic of a window ---- */

enum { STRIDE = 48, DIM = 37, ROWS = 12 };

typedef struct {
    float inputs[ROWS][STRIDE], outputs[ROWS][STRIDE];
} rows_of;

static void random_rows(rows_of *r, uint64_t seed)
{
    *r = (rows_of){0};
    for (size_t i = 0; i < ROWS; i++)
        for (size_t k = 0; k < DIM; k++) {
            r->inputs[i][k] = check_unit(&seed) * 0.5f;
            r->outputs[i][k] = check_unit(&seed) * 0.5f;
        }
}

static embla_window window_on(rows_of *r, size_t inputs, size_t outputs, float rate)
{
    embla_window w = {.input_count = inputs,
                      .output_count = outputs,
                      .stride = STRIDE,
                      .rate = rate,
                      .wants_loss = true};
    for (size_t i = 0; i < inputs; i++) {
        w.inputs[i] = r->inputs[i];
        w.times[i] = i == 1 ? 2 : 1;
    }
    for (size_t i = 0; i < outputs; i++) w.outputs[i] = r->outputs[i];
    return w;
}

static double minus_ln_sigmoid(double x)
{
    return log1p(exp(-x));
}

/* The loss of a window, in double. */
static double loss_of(const embla_window *w, bool cbow)
{
    double loss = 0, mean[STRIDE] = {0};
    for (size_t a = 0; cbow && a < w->input_count; a++)
        for (size_t k = 0; k < STRIDE; k++)
            mean[k] += (double)w->inputs[a][k] / (double)w->input_count;
    for (size_t a = 0; a < (cbow ? 1 : w->input_count); a++)
        for (size_t b = 0; b < w->output_count; b++) {
            double x = 0;
            for (size_t k = 0; k < STRIDE; k++)
                x += (cbow ? mean[k] : (double)w->inputs[a][k]) * (double)w->outputs[b][k];
            loss += (cbow ? 1 : (double)w->times[a]) * minus_ln_sigmoid(b == 0 ? x : -x);
        }
    return loss;
}

/* Each number must move against the gradient of the loss, by finite differences. In CBOW inputs get
 * the gradient of their mean: as many times as there are inputs. */
static void check_window(bool cbow, size_t inputs, size_t outputs)
{
    const double h = 1e-3, rate = 1e-2;
    rows_of before, moved;
    random_rows(&before, 5 + inputs * 100 + outputs);
    moved = before;
    embla_window w = window_on(&moved, inputs, outputs, (float)rate);
    (cbow ? embla_window_cbow : embla_window_skipgram)(&w);
    embla_window at = window_on(&before, inputs, outputs, 0);
    assert_near(w.loss, loss_of(&at, cbow), 1e-3);
    for (size_t side = 0; side < 2; side++)
        for (size_t i = 0; i < (side ? outputs : inputs); i++)
            for (size_t k = 0; k < STRIDE; k++) {
                float *x = side ? &before.outputs[i][k] : &before.inputs[i][k], old = *x;
                float y = side ? moved.outputs[i][k] : moved.inputs[i][k];
                if (k >= DIM) {
                    assert_true(y == 0); /* padding stays 0 */
                    continue;
                }
                *x = old + (float)h;
                double up = (double)*x, more = loss_of(&at, cbow);
                *x = old - (float)h;
                double gradient = (more - loss_of(&at, cbow)) / (up - (double)*x);
                *x = old;
                if (cbow && !side) gradient *= (double)inputs;
                assert_near((double)y - (double)old, -rate * gradient, 2e-6);
            }
}

static void windows_follow_the_gradient(void **state)
{
    (void)state;
    for (size_t inputs = 1; inputs <= 10; inputs += 3)
        for (size_t outputs = 1; outputs <= ROWS; outputs++) {
            check_window(false, inputs, outputs);
            check_window(true, inputs, outputs);
        }
}

/* ---- texts ---- */

typedef struct {
    scratch s;
    char text[SCRATCH_PATH];
} place;

/* Sentences in which animals and days are used alike: "the cat eats", "on monday we go". */
static void write_story(place *p, size_t sentences)
{
    static const char *const animals[] = {"cat", "dog", "horse", "mouse"};
    static const char *const days[] = {"monday", "tuesday", "friday", "sunday"};
    static const char *const does[] = {"eats", "sleeps", "runs", "hides"};
    static const char *const where[] = {"home", "town", "church", "market"};
    uint64_t seed = 11;
    char *bytes = malloc(64 * sentences);
    size_t used = 0;
    assert_non_null(bytes);
    for (size_t i = 0; i < sentences; i++)
        used += (size_t)(check_below(&seed, 2)
                             ? sprintf(bytes + used, "the %s %s here\n",
                                       animals[check_below(&seed, 4)], does[check_below(&seed, 4)])
                             : sprintf(bytes + used, "on %s we go to %s\n",
                                       days[check_below(&seed, 4)], where[check_below(&seed, 4)]));
    scratch_new(&p->s);
    (void)snprintf(p->text, sizeof p->text, "%s", scratch_path(&p->s, "story"));
    scratch_write(p->text, bytes, used);
    free(bytes);
}

static const embla_wordvec_options small = {
    .dim = 20, .window = 3, .epochs = 3, .sample = -1, .min_count = 1, .seed = 1};

static embla_wordvec *open_words(const place *p, const embla_wordvec_options *options)
{
    embla_wordvec *w = NULL;
    assert_ok(embla_wordvec_new(p->text, options, &w));
    return w;
}

static void train_to(embla_wordvec *w, int64_t step)
{
    embla_wordvec_info info;
    assert_ok(embla_wordvec_describe(w, &info));
    embla_wordvec_report r = info.progress;
    while (r.step < step && r.step < r.steps) assert_ok(embla_wordvec_step(w, &r));
}

/* A copy of all rows. */
static float *rows_copied(embla_wordvec *w, size_t *bytes)
{
    const embla_table *table = NULL;
    assert_ok(embla_wordvec_table(w, &table));
    *bytes = (size_t)embla_table_rows(table) * embla_table_row_stride(table);
    float *copy = calloc(1, *bytes);
    assert_non_null(copy);
    memcpy(copy, embla_table_row(table, 0),
           *bytes - embla_table_row_stride(table) + embla_table_row_bytes(table));
    return copy;
}

static float *train_all(const place *p, const embla_wordvec_options *options, size_t *bytes)
{
    embla_wordvec *w = open_words(p, options);
    train_to(w, INT64_MAX);
    float *rows = rows_copied(w, bytes);
    embla_wordvec_free(w);
    return rows;
}

/* ---- learning ---- */

static double cosine_of(embla_wordvec *w, const char *a, const char *b)
{
    const embla_table *table = NULL;
    int32_t x, y;
    assert_ok(embla_wordvec_table(w, &table));
    assert_ok(embla_vocab_find(embla_wordvec_vocab(w), a, strlen(a), &x));
    assert_ok(embla_vocab_find(embla_wordvec_vocab(w), b, strlen(b), &y));
    return embla_cosine(embla_table_row(table, x), embla_table_row(table, y), 20);
}

static void check_meaning(const embla_wordvec_options *options)
{
    place p;
    embla_wordvec_report r = {0};
    write_story(&p, 6000);
    embla_wordvec *w = open_words(&p, options);
    double first = 0;
    for (r.steps = 1; r.step < r.steps;) {
        assert_ok(embla_wordvec_step(w, &r));
        if (r.step == 1) first = r.loss;
    }
    assert_true(r.loss < first);
    assert_status(embla_wordvec_step(w, NULL), EMBLA_ERR_RANGE);
    assert_true(cosine_of(w, "cat", "dog") > cosine_of(w, "cat", "tuesday") + 0.3);
    assert_true(cosine_of(w, "monday", "sunday") > cosine_of(w, "monday", "eats") + 0.3);
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

static void words_used_alike_get_rows_alike(void **state)
{
    embla_wordvec_options options = small;
    (void)state;
    options.epochs = 12;
    check_meaning(&options);
    options.kind = EMBLA_WORDVEC_CBOW;
    check_meaning(&options);
    options.kind = EMBLA_WORDVEC_SKIPGRAM;
    options.min_gram = 3;
    options.max_gram = 5;
    options.buckets = 5000;
    check_meaning(&options);
}

/* The options whose code differs. */
static const embla_wordvec_options kinds[] = {
    {.dim = 20, .window = 3, .epochs = 2, .sample = -1, .min_count = 1, .seed = 1},
    {.dim = 33, .window = 5, .epochs = 2, .min_count = 1, .seed = 2, .kind = EMBLA_WORDVEC_CBOW},
    {.dim = 16,
     .phrases = 30,
     .epochs = 2,
     .sample = 0.1,
     .min_count = 1,
     .min_gram = 2,
     .max_gram = 4,
     .buckets = 1 << 20,
     .negatives = 9}};

static void threads_and_sets_do_not_matter(void **state)
{
    place p;
    (void)state;
    write_story(&p, SLOW_BUILD ? 800 : 3000);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        embla_wordvec_options options = kinds[i];
        size_t bytes, again;
        options.threads = 1;
        float *rows = train_all(&p, &options, &bytes);
        for (int threads = 2; threads <= 8; threads += 3) {
            options.threads = threads;
            float *others = train_all(&p, &options, &again);
            assert_int_equal(again, bytes);
            assert_memory_equal(others, rows, bytes);
            free(others);
        }
        for (size_t set = 0; set < CHECK_SETS; set++) {
            const embla_kernels *kernels = embla_kernels_find(check_sets[set]);
            if (!kernels) continue;
            const embla_kernels *old = embla_kernels_get();
            embla_kernels_use(kernels);
            float *others = train_all(&p, &options, &again);
            embla_kernels_use(old);
            assert_memory_equal(others, rows, bytes);
            free(others);
        }
        options.seed++;
        float *others = train_all(&p, &options, &again);
        assert_true(memcmp(others, rows, bytes) != 0);
        free(others);
        free(rows);
    }
    scratch_free(&p.s);
}

/* A text of many words: enough changes for threads to share. */
static void threads_share_a_merge(void **state)
{
    place p;
    uint64_t seed = 3;
    const size_t most = SLOW_BUILD ? 300000 : 900000;
    char *bytes = malloc(most);
    size_t used = 0, length, again;
    (void)state;
    assert_non_null(bytes);
    while (used < most - 10)
        used += (size_t)sprintf(bytes + used, "w%d%c", (int)check_below(&seed, 4000),
                                check_below(&seed, 9) ? ' ' : '\n');
    scratch_new(&p.s);
    (void)snprintf(p.text, sizeof p.text, "%s", scratch_path(&p.s, "text"));
    scratch_write(p.text, bytes, used);
    free(bytes);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        embla_wordvec_options options = kinds[i];
        options.dim = 64;
        options.epochs = 1;
        options.threads = 1;
        float *rows = train_all(&p, &options, &length);
        for (options.threads = 2; options.threads <= 5; options.threads += SLOW_BUILD ? 3 : 1) {
            float *others = train_all(&p, &options, &again);
            assert_memory_equal(others, rows, length);
            free(others);
        }
        free(rows);
    }
    scratch_free(&p.s);
}

static void hogwild_learns_too(void **state)
{
    embla_wordvec_options options = small;
    (void)state;
    options.epochs = 12;
    options.hogwild = true;
    options.threads = 1; /* with more, threads race on purpose */
    check_meaning(&options);
}

/* ---- states and results ---- */

static void a_resumed_training_is_the_same(void **state)
{
    place p;
    (void)state;
    write_story(&p, 3000);
    for (size_t i = 0; i < COUNT_OF(kinds); i++) {
        size_t bytes, again;
        float *rows = train_all(&p, &kinds[i], &bytes);
        embla_wordvec *w = open_words(&p, &kinds[i]);
        train_to(w, 7);
        assert_ok(embla_wordvec_save(w, scratch_path(&p.s, "state")));
        embla_wordvec_free(w);
        w = open_words(&p, &kinds[i]);
        assert_ok(embla_wordvec_load(w, p.s.path));
        embla_wordvec_info info;
        assert_ok(embla_wordvec_describe(w, &info));
        assert_int_equal(info.progress.step, 7);
        train_to(w, INT64_MAX);
        float *others = rows_copied(w, &again);
        assert_memory_equal(others, rows, bytes);
        embla_wordvec_free(w);
        free(others);
        free(rows);
    }
    scratch_free(&p.s);
}

/* A state is loaded in another locale: its numbers have a decimal point in each. */
static void a_locale_is_no_other_training(void **state)
{
    place p;
    (void)state;
    write_story(&p, 300);
    embla_wordvec *w = open_words(&p, &small);
    assert_ok(embla_wordvec_save(w, scratch_path(&p.s, "state")));
    comma_locale_begin();
    embla_status status = embla_wordvec_load(w, p.s.path);
    comma_locale_end();
    assert_ok(status);
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

static void another_training_is_refused(void **state)
{
    place p;
    embla_wordvec_options options = small;
    (void)state;
    write_story(&p, 1000);
    embla_wordvec *w = open_words(&p, &small);
    train_to(w, 2);
    assert_ok(embla_wordvec_save(w, scratch_path(&p.s, "state")));
    embla_wordvec_free(w);
    options.window = 4;
    w = open_words(&p, &options);
    assert_status(embla_wordvec_load(w, scratch_path(&p.s, "state")), EMBLA_ERR_ARGUMENT);
    assert_error_has("was saved with window 3, not 4");
    embla_wordvec_free(w);
    FILE *file = fopen(p.text, "ab");
    assert_non_null(file);
    (void)fputs("more\n", file);
    (void)fclose(file);
    w = open_words(&p, &small);
    assert_status(embla_wordvec_load(w, scratch_path(&p.s, "state")), EMBLA_ERR_ARGUMENT);
    assert_error_has("of another text");
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

/* Each part of the file: the words stay as they were. */
static void damage_is_noticed(void **state)
{
    place p;
    size_t size = 0;
    (void)state;
    write_story(&p, 1000);
    embla_wordvec *w = open_words(&p, &small);
    train_to(w, 2);
    assert_ok(embla_wordvec_save(w, scratch_path(&p.s, "state")));
    unsigned char *bytes = scratch_read(p.s.path, &size);
    assert_non_null(bytes);
    for (size_t at = size - 1; at > size / 2; at -= size / 9) {
        bytes[at] ^= 4;
        scratch_write(p.s.path, bytes, size);
        assert_status(embla_wordvec_load(w, p.s.path), EMBLA_ERR_FORMAT);
        bytes[at] ^= 4;
        assert_ok(embla_wordvec_step(w, NULL)); /* not torn */
    }
    scratch_write(p.s.path, bytes, size - 10);
    assert_status(embla_wordvec_load(w, p.s.path), EMBLA_ERR_FORMAT);
    free(bytes);
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

static void results_open_as_tables(void **state)
{
    place p;
    (void)state;
    write_story(&p, 1500);
    embla_wordvec_options options = kinds[2];
    embla_wordvec *w = open_words(&p, &options);
    train_to(w, INT64_MAX);
    const embla_table *rows = NULL;
    assert_ok(embla_wordvec_table(w, &rows));
    assert_ok(embla_wordvec_write(w, scratch_path(&p.s, "out.safetensors")));
    embla_checkpoint *cp = NULL;
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    embla_subwords *sub = NULL;
    assert_ok(embla_checkpoint_open(p.s.path, NULL, &cp));
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_ok(embla_vocab_open(cp, &vocab));
    assert_int_equal(embla_table_rows(table), embla_table_rows(rows));
    for (int64_t i = 0; i < embla_table_rows(rows); i++) {
        assert_memory_equal(embla_table_row(table, i), embla_table_row(rows, i),
                            options.dim * sizeof(float));
        assert_string_equal(embla_vocab_word(vocab, (int32_t)i, NULL),
                            embla_vocab_word(embla_wordvec_vocab(w), (int32_t)i, NULL));
    }
    /* a word that the text has: its mean without its own row; one that it does not have */
    assert_ok(embla_subwords_open(cp, &sub));
    assert_int_equal(embla_subwords_dim(sub), options.dim);
    float seen[16], unseen[16];
    size_t grams = 0;
    int32_t cat;
    assert_ok(embla_vocab_find(vocab, "cat", 3, &cat));
    assert_ok(embla_subwords_vector(sub, "cat", 3, seen, &grams));
    for (size_t k = 0; k < options.dim; k++) {
        double all = (double)((const float *)embla_table_row(rows, cat))[k] * (double)(grams + 1);
        assert_near(seen[k] * (double)grams,
                    all - (double)w->context.input[(size_t)cat * w->context.stride + k], 1e-5);
    }
    assert_ok(embla_subwords_vector(sub, "cats", 4, unseen, NULL));
    assert_true(embla_cosine(seen, unseen, options.dim) > 0.5);
    assert_status(embla_subwords_vector(sub, "\x01\x02", 2, unseen, NULL), EMBLA_ERR_NOT_FOUND);
    embla_subwords_free(sub);
    embla_vocab_free(vocab);
    embla_table_free(table);
    embla_checkpoint_free(cp);
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

/* ---- refusals ---- */

static void refused(const char *bytes, size_t size, const embla_wordvec_options *options,
                    embla_status wanted, const char *sentence)
{
    scratch s;
    embla_wordvec *w = NULL;
    scratch_new(&s);
    scratch_write(scratch_path(&s, "text"), bytes, size);
    assert_status(embla_wordvec_new(s.path, options, &w), wanted);
    assert_error_has(sentence);
    assert_null(w);
    scratch_free(&s);
}

static void hostile_texts_and_options(void **state)
{
    embla_wordvec_options o = small;
    (void)state;
    refused("", 0, &o, EMBLA_ERR_FORMAT, "is empty");
    refused(" \n", 2, &o, EMBLA_ERR_SHAPE, "has 0 words");
    refused("one one one", 11, &o, EMBLA_ERR_SHAPE, "1 of these occur 1 times or more");
    o.min_count = 5;
    refused("a b c d", 7, &o, EMBLA_ERR_SHAPE, "0 of these occur 5 times or more");
    o = small;
    o.dim = 1 << 20;
    refused("a b", 3, &o, EMBLA_ERR_ARGUMENT, "dim is 1048576; it must be 1 to 16384");
    o = small;
    o.window = 51;
    refused("a b", 3, &o, EMBLA_ERR_ARGUMENT, "window is 51");
    o = small;
    o.negatives = 64;
    refused("a b", 3, &o, EMBLA_ERR_ARGUMENT, "negatives is 64");
    o = small;
    o.rate = NAN;
    refused("a b", 3, &o, EMBLA_ERR_ARGUMENT, "rate is nan");
    o = small;
    o.min_gram = 5;
    o.max_gram = 3;
    refused("a b", 3, &o, EMBLA_ERR_ARGUMENT, "min_gram is 5; it must be 1 to 3");
    o.min_gram = 3;
    o.hogwild = true;
    refused("a b", 3, &o, EMBLA_ERR_UNSUPPORTED, "hogwild works without n-grams");
    o = small;
    o.reserved[1] = 1;
    refused("a b", 3, &o, EMBLA_ERR_UNSUPPORTED, "reserved");
}

/* Any bytes at all are a text. */
static void binary_texts_are_texts(void **state)
{
    enum { SIZE = 200000 };
    char *bytes = malloc(SIZE);
    (void)state;
    assert_non_null(bytes);
    for (int clean = 0; clean <= EMBLA_WORDVEC_CLEAN_LETTERS; clean++)
        for (int giant = 0; giant < 2; giant++) {
            embla_wordvec_options o = small;
            place p;
            o.clean = (embla_wordvec_clean)clean;
            o.epochs = 1;
            check_fill_bytes(5, SIZE, bytes);
            if (giant) memset(bytes + 1000, 'x', SIZE - 2000); /* one word of 198,000 bytes */
            scratch_new(&p.s);
            (void)snprintf(p.text, sizeof p.text, "%s", scratch_path(&p.s, "text"));
            scratch_write(p.text, bytes, SIZE);
            embla_wordvec *w = open_words(&p, &o);
            embla_wordvec_info info;
            assert_ok(embla_wordvec_describe(w, &info));
            if (giant) assert_true(info.text.too_long >= 1);
            train_to(w, INT64_MAX);
            embla_wordvec_free(w);
            scratch_free(&p.s);
        }
    free(bytes);
}

static void a_text_that_is_cut_is_noticed(void **state)
{
    place p;
    embla_wordvec_report r;
    (void)state;
    write_story(&p, 3000);
    embla_wordvec *w = open_words(&p, &small);
    assert_ok(embla_wordvec_step(w, &r));
    assert_int_equal(truncate(p.text, 100), 0);
    assert_status(embla_wordvec_step(w, &r), EMBLA_ERR_IO);
    assert_ok(embla_wordvec_save(w, scratch_path(&p.s, "state"))); /* no row has changed */
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

static void rows_that_have_diverged_are_not_written(void **state)
{
    place p;
    (void)state;
    write_story(&p, 300);
    embla_wordvec_options options = kinds[0];
    embla_wordvec *w = open_words(&p, &options);
    assert_ok(embla_wordvec_check(w));
    embla_wordvec_free(w);
    options.rate = 10;
    options.epochs = 20;
    w = open_words(&p, &options);
    train_to(w, INT64_MAX);
    assert_status(embla_wordvec_check(w), EMBLA_ERR_RANGE);
    assert_error_has("rows are NaN or infinite");
    assert_error_has("a lower rate than 10");
    assert_status(embla_wordvec_write(w, scratch_path(&p.s, "out.safetensors")), EMBLA_ERR_RANGE);
    assert_int_not_equal(access(p.s.path, F_OK), 0);
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

/* Nobody typed the name of the words' file: what others wrote there stays. */
static void words_beside_a_result_are_replaced_only_if_they_are_ours(void **state)
{
    static const char mine[] = "a list of mine\n";
    place p;
    (void)state;
    write_story(&p, 300);
    embla_wordvec_options options = kinds[0];
    embla_wordvec *w = open_words(&p, &options);
    size_t size = 0;
    scratch_write(scratch_path(&p.s, "out.vocab.txt"), mine, sizeof mine - 1);
    assert_status(embla_wordvec_write_check(scratch_path(&p.s, "out.safetensors")),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("out.vocab.txt exists and was not written by Embla");
    assert_status(embla_wordvec_write(w, p.s.path), EMBLA_ERR_ARGUMENT);
    unsigned char *bytes = scratch_read(scratch_path(&p.s, "out.vocab.txt"), &size);
    assert_int_equal(size, sizeof mine - 1);
    assert_memory_equal(bytes, mine, size);
    free(bytes);
    assert_ok(embla_wordvec_write(w, scratch_path(&p.s, "new.safetensors")));
    assert_ok(embla_wordvec_write(w, p.s.path)); /* our own words are replaced */
    scratch_write(scratch_path(&p.s, "new.npy"), mine, sizeof mine - 1);
    assert_status(embla_wordvec_write(w, scratch_path(&p.s, "new.safetensors")),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("new.npy too");
    embla_wordvec_free(w);
    scratch_free(&p.s);
}

/* ---- failures ---- */

static embla_status everything(const place *p, scratch *s, const embla_wordvec_options *o)
{
    embla_wordvec *w = NULL;
    embla_checkpoint *cp = NULL;
    embla_subwords *sub = NULL;
    float row[16];
    embla_status status = embla_wordvec_new(p->text, o, &w);
    if (status == EMBLA_OK) status = embla_wordvec_step(w, NULL);
    if (status == EMBLA_OK) status = embla_wordvec_save(w, scratch_path(s, "state"));
    if (status == EMBLA_OK) status = embla_wordvec_load(w, scratch_path(s, "state"));
    if (status == EMBLA_OK) status = embla_wordvec_write(w, scratch_path(s, "x.safetensors"));
    if (status == EMBLA_OK) status = embla_checkpoint_open(s->path, NULL, &cp);
    if (status == EMBLA_OK) status = embla_subwords_open(cp, &sub);
    if (status == EMBLA_OK) status = embla_subwords_vector(sub, "cats", 4, row, NULL);
    embla_subwords_free(sub);
    embla_checkpoint_free(cp);
    embla_wordvec_free(w);
    return status;
}

static void every_failure_is_reported(void **state)
{
    place p;
    embla_wordvec_options o = kinds[2];
    (void)state;
    write_story(&p, 300);
    o.threads = 1;
    for (int memory = 0; memory < 2; memory++) {
        size_t failed = 0;
        for (size_t at = 1;; at++) {
            scratch s;
            scratch_new(&s);
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(at, false);
            else
                embla_io_fail(at, false, EMBLA_SYSTEM_OTHER);
            embla_status status = everything(&p, &s, &o);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            scratch_free(&s);
            failed += status != EMBLA_OK;
            if (memory && status != EMBLA_OK) assert_status(status, EMBLA_ERR_MEMORY);
            if (status == EMBLA_OK && at > 100) break;
        }
        assert_true(failed > 20);
    }
    scratch_free(&p.s);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(windows_follow_the_gradient),
        cmocka_unit_test(words_used_alike_get_rows_alike),
        cmocka_unit_test(threads_and_sets_do_not_matter),
        cmocka_unit_test(threads_share_a_merge),
        cmocka_unit_test(hogwild_learns_too),
        cmocka_unit_test(a_resumed_training_is_the_same),
        cmocka_unit_test(a_locale_is_no_other_training),
        cmocka_unit_test(another_training_is_refused),
        cmocka_unit_test(damage_is_noticed),
        cmocka_unit_test(results_open_as_tables),
        cmocka_unit_test(words_beside_a_result_are_replaced_only_if_they_are_ours),
        cmocka_unit_test(hostile_texts_and_options),
        cmocka_unit_test(binary_texts_are_texts),
        cmocka_unit_test(a_text_that_is_cut_is_noticed),
        cmocka_unit_test(rows_that_have_diverged_are_not_written),
        cmocka_unit_test(every_failure_is_reported)};
    return cmocka_run_group_tests(tests, NULL, NULL);
}
