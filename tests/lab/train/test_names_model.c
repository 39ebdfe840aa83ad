/* SPDX-License-Identifier: Apache-2.0 */
/* microGPT learns names, five times over, each with another seed: vowels grow alike, the loss
 * comes down to where it is known to come down to, and what is made looks like names.
 *
 * The loss is the mean over the last 100 of 1,000 steps, one name each, at 16 positions: 2.28,
 * give or take 0.08, for names as the file has them (the most frequent ones first), and 0.08 more
 * for names drawn from all of them, which have been seen less. Names and vowels are of the second
 * kind.
 *
 * How alike letters are: from the rows of a..z (not of BOS) their mean row is taken away, then
 * the mean cosine of the 10 pairs of vowels a e i o u is compared with that of the 105 pairs of
 * a vowel and a consonant (y is one). What rows have in common says nothing about who is near
 * to whom; of random rows both means are about -1/25. Skips where EMBLA_DATA is not set.
 */
#include "scratch.h"

#include <math.h>

#include "embla_train.h"

enum { SEEDS = 5, STEPS = 1000, LETTERS = 26, DIM = 16, NAMES = 20, LONGEST = 15, LAST = 100 };

static const double LEAST_AFTER = 0.4; /* seen: 0.62 and more */
static embla_corpus *corpora[SEEDS];
static embla_gpt *models[SEEDS];
static double before[SEEDS], after[SEEDS], drawn[SEEDS], in_order[SEEDS];

/* ---- how alike vowels are ---- */

static bool vowel(int letter)
{
    return strchr("aeiou", 'a' + letter) != NULL;
}

static void centred(const embla_gpt *gpt, double rows[LETTERS][DIM])
{
    embla_gpt_tensor wte;
    assert_ok(embla_gpt_tensor_at(gpt, 0, &wte));
    assert_string_equal(wte.name, "wte");
    assert_int_equal(wte.rows, LETTERS + 1);
    assert_int_equal(wte.dim, DIM);
    const float *values = wte.values;
    for (size_t k = 0; k < DIM; k++) {
        double mean = 0;
        for (size_t i = 0; i < LETTERS; i++) mean += (double)values[i * DIM + k] / LETTERS;
        for (size_t i = 0; i < LETTERS; i++) rows[i][k] = (double)values[i * DIM + k] - mean;
    }
}

static double cosine(const double *a, const double *b)
{
    double ab = 0, aa = 0, bb = 0;
    for (size_t k = 0; k < DIM; k++) ab += a[k] * b[k], aa += a[k] * a[k], bb += b[k] * b[k];
    return ab / sqrt(aa * bb);
}

/* Mean cosine among vowels less that of vowels to consonants. */
static double alike(const embla_gpt *gpt)
{
    double rows[LETTERS][DIM], vowels = 0, others = 0;
    int vowel_pairs = 0, other_pairs = 0;
    centred(gpt, rows);
    for (int a = 0; a < LETTERS; a++)
        for (int b = a + 1; b < LETTERS; b++) {
            if (!vowel(a) && !vowel(b)) continue;
            double c = cosine(rows[a], rows[b]);
            if (vowel(a) && vowel(b))
                vowels += c, vowel_pairs++;
            else
                others += c, other_pairs++;
        }
    assert_int_equal(vowel_pairs, 10);
    assert_int_equal(other_pairs, 105);
    return vowels / vowel_pairs - others / other_pairs;
}

/* ---- a training ---- */

static void learn(embla_gpt *gpt, const embla_corpus *corpus, const embla_gpt_preset *preset,
                  double *last)
{
    embla_train *train = NULL;
    embla_train_report report;
    embla_train_options options = {.batch = preset->batch,
                                   .length = preset->length,
                                   .schedule = {.rate = preset->rate,
                                                .final = preset->final_rate,
                                                .steps = STEPS,
                                                .warm_up = preset->warm_up,
                                                .kind = preset->schedule},
                                   .beta1 = preset->beta1,
                                   .beta2 = preset->beta2,
                                   .epsilon = preset->epsilon,
                                   .decay = preset->decay,
                                   .clip = preset->clip,
                                   .threads = 1};
    assert_ok(embla_train_new(gpt, corpus, &options, &train));
    *last = 0;
    for (int64_t step = 0; step < STEPS; step++) {
        assert_ok(embla_train_step(train, &report));
        assert_int_equal(report.step, step);
        assert_false(report.skipped);
        if (step >= STEPS - LAST) *last += report.loss / LAST;
    }
    embla_train_free(train);
}

static int train_all(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH];
    embla_gpt_preset preset;
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: names.txt is not here\n");
        return 0;
    }
    (void)snprintf(path, sizeof path, "%s/names/names.txt", data);
    assert_ok(embla_gpt_preset_find("microgpt", &preset));
    for (size_t s = 0; s < SEEDS; s++) {
        embla_corpus_options options = {.documents = true, .seed = s + 1};
        embla_corpus *file = NULL;
        embla_gpt *other = NULL;
        assert_ok(embla_corpus_open(path, &options, &corpora[s]));
        assert_int_equal(embla_corpus_vocab(corpora[s]), preset.shape.vocab);
        assert_ok(embla_gpt_new(&preset.shape, s + 1, preset.spread, &models[s]));
        before[s] = alike(models[s]);
        learn(models[s], corpora[s], &preset, &drawn[s]);
        after[s] = alike(models[s]);
        options.in_order = true;
        assert_ok(embla_corpus_open(path, &options, &file));
        assert_ok(embla_gpt_new(&preset.shape, s + 1, preset.spread, &other));
        learn(other, file, &preset, &in_order[s]);
        embla_gpt_free(other);
        embla_corpus_free(file);
    }
    return 0;
}

static int free_all(void **state)
{
    (void)state;
    for (size_t s = 0; s < SEEDS; s++) {
        embla_gpt_free(models[s]);
        embla_corpus_free(corpora[s]);
    }
    return 0;
}

/* ---- what must have come of it ---- */

static void vowels_grow_alike(void **state)
{
    double mean = 0;
    (void)state;
    if (!models[0]) skip_because("EMBLA_DATA is not set");
    for (size_t s = 0; s < SEEDS; s++) {
        print_message("seed %zu: vowels nearer to each other by %.3f before, %.3f after\n", s + 1,
                      before[s], after[s]);
        assert_true(after[s] > LEAST_AFTER);
        assert_true(after[s] > before[s]);
        mean += before[s] / SEEDS;
    }
    print_message("mean before: %.3f\n", mean);
    assert_near(mean, 0, 0.1);
}

static void the_loss_comes_down(void **state)
{
    double mean = 0;
    (void)state;
    if (!models[0]) skip_because("EMBLA_DATA is not set");
    for (size_t s = 0; s < SEEDS; s++) {
        print_message("seed %zu: loss %.3f in the file's order, %.3f drawn\n", s + 1, in_order[s],
                      drawn[s]);
        assert_near(in_order[s], 2.28, 0.08);
        mean += drawn[s] / SEEDS;
    }
    print_message("mean of those drawn: %.3f\n", mean);
    assert_near(mean, 2.36, 0.08);
}

/* One name by sampling, at most LONGEST letters; returns how many. */
static size_t name_of(embla_decoder *d, const embla_corpus *corpus, size_t n, char *out)
{
    embla_head head;
    embla_choice choice = {.token = embla_corpus_bos(corpus)};
    float hidden[DIM];
    size_t used = 0;
    embla_decoder_reset(d);
    assert_ok(embla_decoder_head(d, &head));
    for (; used < LONGEST; used++) {
        const int32_t token = (int32_t)choice.token;
        const embla_sample_options options = {
            .temperature = 0.5, .seed = 7, .step = (int64_t)(n * 100 + used), .threads = 1};
        assert_ok(
            embla_decoder_append(d, &token, 1, &(embla_decoder_options){.threads = 1}, hidden));
        assert_ok(embla_head_sample(&head, hidden, 1, &options, &choice));
        if (choice.token == embla_corpus_bos(corpus)) break;
        out[used] = embla_corpus_word(corpus, choice.token, NULL)[0];
    }
    out[used] = '\0';
    return used;
}

static void names_look_like_names(void **state)
{
    (void)state;
    if (!models[0]) skip_because("EMBLA_DATA is not set");
    for (size_t s = 0; s < SEEDS; s++) {
        embla_decoder *d = NULL;
        size_t letters = 0, with_vowels = 0, sane = 0;
        assert_ok(embla_decoder_new(models[s], LONGEST + 1, &d));
        for (size_t n = 0; n < NAMES; n++) {
            char name[LONGEST + 1];
            size_t length = name_of(d, corpora[s], n, name);
            print_message("%s%s", name, n + 1 < NAMES ? " " : "\n");
            assert_int_equal(strspn(name, "abcdefghijklmnopqrstuvwxyz"), length);
            letters += length;
            with_vowels += strpbrk(name, "aeiouy") != NULL;
            sane += length >= 2 && length < LONGEST;
        }
        assert_true(letters >= 4 * NAMES && letters <= 8 * NAMES);
        assert_true(with_vowels >= NAMES - 1);
        assert_true(sane >= NAMES - 2);
        embla_decoder_free(d);
    }
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(vowels_grow_alike),
        cmocka_unit_test(the_loss_comes_down),
        cmocka_unit_test(names_look_like_names),
    };
    return cmocka_run_group_tests_name("names_model", tests, train_all, free_all);
}
