/* SPDX-License-Identifier: Apache-2.0 */
/* Scores of analogies and pairs, compared with slow ones made here. With EMBLA_DATA also the
 * published figures of GloVe.
 */
#include "check.h"

#include <errno.h>
#include <float.h>
#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "checkpoint/vocab.h"
#include "embla_lab.h"
#include "files/io.h"
#include "scratch.h"
#include "see/eval.h"
#include "slow.h"

/* ---- a table, its words, a file ---- */

typedef struct {
    scratch place;
    embla_table *table;
    embla_vocab *vocab;
} world;

/* Words of the rows, in order; an empty text: a row without one. */
static void words_of(world *w, const char *const *words, size_t count)
{
    embla_name names[64] = {{0}};
    assert_true(count <= COUNT_OF(names));
    for (size_t i = 0; i < count; i++)
        if (words[i][0]) names[i] = (embla_name){words[i], (uint32_t)strlen(words[i]), 0};
    assert_ok(embla_vocab_of_names(names, count, "words", &w->vocab));
}

/* "w0" .. for rows 0 .. */
static void numbered_words(world *w, size_t count)
{
    char(*texts)[16] = malloc(count * sizeof *texts);
    embla_name *names = malloc(count * sizeof *names);
    assert_true(texts && names);
    for (size_t i = 0; i < count; i++)
        names[i] = (embla_name){texts[i], (uint32_t)snprintf(texts[i], 16, "w%zu", i), 0};
    assert_ok(embla_vocab_of_names(names, count, "words", &w->vocab));
    free(names);
    free(texts);
}

static world new_world(void)
{
    world w = {.table = NULL};
    scratch_new(&w.place);
    return w;
}

static void f32_table(world *w, int64_t rows, size_t dim, const float *values)
{
    assert_ok(embla_table_new(EMBLA_F32, rows, dim, NULL, &w->table));
    assert_ok(embla_table_write(w->table, 0, (size_t)rows, values));
}

static void end_world(world *w)
{
    embla_table_free(w->table);
    embla_vocab_free(w->vocab);
    scratch_free(&w->place);
}

static const char *file_of(world *w, const char *text)
{
    const char *path = scratch_path(&w->place, "questions");
    scratch_write(path, text, strlen(text));
    return path;
}

static embla_eval_part part_of(const embla_eval *eval, size_t n)
{
    size_t count;
    const embla_eval_part *parts = embla_eval_parts(eval, &count);
    assert_true(n < count);
    return parts[n];
}

static size_t part_count(const embla_eval *eval)
{
    size_t count;
    (void)embla_eval_parts(eval, &count);
    return count;
}

/* The n-th word without a row; NULL past the last. */
static const char *missing_word(const embla_eval *eval, size_t n, int64_t *times)
{
    size_t count;
    const embla_eval_missing *missing = embla_eval_missing_words(eval, &count);
    if (n >= count) return NULL;
    if (times) *times = missing[n].times;
    return missing[n].word;
}

static void assert_part(const embla_eval *eval, size_t n, const char *name, int64_t asked,
                        int64_t covered, int64_t correct)
{
    embla_eval_part part = part_of(eval, n);
    assert_string_equal(part.name, name);
    assert_int_equal(part.asked, asked);
    assert_int_equal(part.covered, covered);
    assert_int_equal(part.correct, correct);
}

/* ---- analogies ---- */

/* The answer by the definition, in double; strictly better wins, so the lower row of two. */
static int64_t slow_answer(const embla_table *table, const int64_t q[4], int64_t rows, bool product)
{
    size_t dim = embla_table_dim(table);
    float row[3][512], x[512];
    double norms[3], best = -INFINITY;
    int64_t answer = -1;
    assert_true(dim <= 512);
    for (int i = 0; i < 3; i++) {
        check_row(table, q[i], row[i]);
        norms[i] = embla_norm(row[i], dim) > 0 ? embla_norm(row[i], dim) : 1;
    }
    for (int64_t r = 0; r < rows; r++) {
        double dots[3] = {0}, square = 0;
        bool finite = true;
        if (r == q[0] || r == q[1] || r == q[2]) continue;
        check_row(table, r, x);
        for (size_t k = 0; k < dim; k++) {
            finite = finite && isfinite(x[k]);
            square += (double)x[k] * (double)x[k];
            for (int i = 0; i < 3; i++) dots[i] += (double)x[k] * (double)row[i][k] / norms[i];
        }
        double norm = square > 0 ? sqrt(square) : 1;
        double sum = (dots[1] - dots[0] + dots[2]) / norm;
        double ratio = (1 + dots[1] / norm) * (1 + dots[2] / norm) / (1 + dots[0] / norm + 1e-6);
        double value = product ? ratio : sum;
        if (!finite || !(value > best)) continue;
        best = value;
        answer = r;
    }
    return answer;
}

enum { SECTIONS = 3 };

/* Random questions about rows 0 .. rows-1 in sections of different lengths, about half of
 * which ask for what is the answer; the counts that are right. */
static char *random_questions(const embla_table *table, int64_t rows, size_t count, bool product,
                              uint64_t seed, int64_t correct[SECTIONS])
{
    char *text = malloc(count * 64 + 128);
    size_t used = 0;
    assert_non_null(text);
    memset(correct, 0, SECTIONS * sizeof *correct);
    for (size_t i = 0; i < count; i++) {
        int64_t q[4];
        size_t section = i < count / 2 ? 0 : i < count / 2 + 3 ? 1 : 2;
        if (i == 0 || i == count / 2 || i == count / 2 + 3)
            used += (size_t)sprintf(text + used, ": %ss%zu\n", section ? "gram" : "", section);
        for (int k = 0; k < 4; k++) q[k] = (int64_t)check_below(&seed, (uint64_t)rows);
        int64_t answer = slow_answer(table, q, rows, product);
        if (check_below(&seed, 2) && answer >= 0) q[3] = answer;
        correct[section] += q[3] == answer;
        for (int k = 0; k < 4; k++)
            used += (size_t)sprintf(text + used, "w%" PRId64 "%c", q[k], k < 3 ? ' ' : '\n');
    }
    return text;
}

static void check_analogies(world *w, size_t count, bool product, uint64_t seed)
{
    int64_t correct[SECTIONS], rows = embla_table_rows(w->table), asked = 0;
    char *text = random_questions(w->table, rows, count, product, seed, correct);
    const char *path = file_of(w, text);
    for (int threads = 0; threads < 4; threads++) {
        embla_eval *eval = NULL;
        embla_eval_options options = {
            .threads = threads, .kind = product ? EMBLA_ANALOGY_COS_MUL : EMBLA_ANALOGY_COS_ADD};
        assert_ok(embla_eval_new_analogies(w->table, w->vocab, path, &options, &eval));
        assert_int_equal(part_count(eval), SECTIONS);
        asked = 0;
        for (size_t s = 0; s < SECTIONS; s++) {
            embla_eval_part part = part_of(eval, s);
            asked += part.asked;
            assert_int_equal(part.covered, part.asked);
            assert_int_equal(part.correct, correct[s]);
            assert_int_equal(part.syntactic, s > 0);
            assert_true(isnan(part.spearman) && isnan(part.pearson));
        }
        assert_int_equal(asked, count);
        assert_null(missing_word(eval, 0, NULL));
        embla_eval_free(eval);
    }
    free(text);
}

static void analogies_are_those_of_a_slow_search_in_every_dtype(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++) {
        world w = new_world();
        w.table =
            check_table((embla_dtype)dtype, 60, check_dim((embla_dtype)dtype, 64), (uint64_t)dtype);
        numbered_words(&w, 60);
        check_analogies(&w, 200, false, 3);
        check_analogies(&w, 60, true, 4);
        end_world(&w);
    }
}

static void analogies_of_many_blocks_are_counted_by_section(void **state)
{
    world w = new_world();
    (void)state;
    w.table = check_table(EMBLA_F32, 20, 32, 8);
    numbered_words(&w, 20);
    check_analogies(&w, 9000, false, 5);
    end_world(&w);
}

static void the_answer_is_that_of_embla_analogy(void **state)
{
    world w = new_world();
    uint64_t seed = 12;
    char text[128];
    (void)state;
    w.table = check_table(EMBLA_F32, 50, 32, 77);
    numbered_words(&w, 50);
    for (int i = 0; i < 40; i++)
        for (int kind = 0; kind < 2; kind++) {
            int64_t q[3];
            embla_neighbour answer;
            embla_eval *eval = NULL;
            embla_analogy_options how = {.k = 1, .kind = (embla_analogy_kind)kind};
            embla_eval_options options = {.kind = (embla_analogy_kind)kind};
            for (int k = 0; k < 3; k++) q[k] = (int64_t)check_below(&seed, 50);
            int64_t plus[] = {q[1], q[2]};
            const embla_analogy_question question = {
                .plus = plus, .plus_count = 2, .minus = &q[0], .minus_count = 1};
            assert_ok(embla_analogy(w.table, &question, &how, &answer, NULL));
            (void)snprintf(text, sizeof text, "w%d w%d w%d w%d\n", (int)q[0], (int)q[1], (int)q[2],
                           (int)answer.row);
            assert_ok(
                embla_eval_new_analogies(w.table, w.vocab, file_of(&w, text), &options, &eval));
            assert_part(eval, 0, "questions", 1, 1, 1);
            embla_eval_free(eval);
        }
    end_world(&w);
}

/* ---- words ---- */

static void words_are_found_as_they_are_then_in_lower_case(void **state)
{
    static const char *const words[] = {"Oslo",  "oslo",   "athens", "zürich", "åland",
                                        "ωμεγα", "москва", "ёлка",   "łódź",   "žižek",
                                        "őzāя",  "",       "ÿ"};
    static const float values[13 * 2] = {1, 0, 0, 1};
    static const struct {
        const char *word;
        bool exact, lower;
    } asked[] = {{"Oslo", true, true},   {"OSLO", false, true},   {"Athens", false, true},
                 {"athens", true, true}, {"ZÜRICH", false, true}, {"ÅLAND", false, true},
                 {"ΩΜΕΓΑ", false, true}, {"МОСКВА", false, true}, {"Ёлка", false, true},
                 {"ŁÓDŹ", false, true},  {"ŽIŽEK", false, true},  {"ŐZĀЯ", false, true},
                 {"Ÿ", false, true},     {"osl", false, false},   {"İ", false, false},
                 {"×", false, false}};
    char text[1024];
    (void)state;
    world w = new_world();
    f32_table(&w, 13, 2, values);
    words_of(&w, words, COUNT_OF(words));
    for (size_t i = 0; i < COUNT_OF(asked); i++)
        for (int exact = 0; exact < 2; exact++) {
            embla_eval *eval = NULL;
            embla_eval_options options = {.exact_case = exact == 1};
            int64_t times = 0;
            bool found = exact ? asked[i].exact : asked[i].lower;
            (void)snprintf(text, sizeof text, "oslo %s 1\n", asked[i].word);
            assert_ok(embla_eval_new_pairs(w.table, w.vocab, file_of(&w, text), &options, &eval));
            if (part_of(eval, 0).covered != found) fail_msg("%s: %d", asked[i].word, exact);
            const char *missing = missing_word(eval, 0, &times);
            assert_true((missing == NULL) == found);
            if (missing) assert_string_equal(missing, asked[i].word);
            if (missing) assert_int_equal(times, 1);
            embla_eval_free(eval);
        }
    end_world(&w);
}

/* "Oslo" is row 0, which is nothing like row 1; "OSLO" is row 1's. */
static void the_word_itself_goes_before_its_lower_case(void **state)
{
    static const char *const words[] = {"Oslo", "oslo", "x", "y"};
    static const float values[] = {1, 0, 0, 1, 1, 0.5f, -1, 0.25f};
    embla_eval *eval = NULL;
    (void)state;
    world w = new_world();
    f32_table(&w, 4, 2, values);
    words_of(&w, words, 4);
    /* Cosines with row 0: .89, -.97; with row 1: .45, .24: the order of scores tells. */
    assert_ok(embla_eval_new_pairs(w.table, w.vocab,
                                   file_of(&w, "Oslo x 9\nOslo y 1\nOSLO x 7\n"
                                               "OSLO y 6\n"),
                                   NULL, &eval));
    assert_near(part_of(eval, 0).spearman, 1, 1e-15);
    embla_eval_free(eval);
    end_world(&w);
}

static void a_word_with_its_space_goes_before_the_end_of_a_word(void **state)
{
    static const char *const words[] = {"dog",
                                        "\xe2\x96\x81"
                                        "dog",
                                        "\xe2\x96\x81"
                                        "cat",
                                        "fish",
                                        "\xe2\x96\x81"
                                        "Fish",
                                        "x"};
    static const float values[] = {0, 1, 1, 0, 1, 0.1f, 1, 0.3f, 0, -1, 1, 0.2f};
    embla_eval *eval = NULL;
    (void)state;
    world w = new_world();
    f32_table(&w, 6, 2, values);
    words_of(&w, words, 6);
    /* dog is row 1, DOG too; cat 2, fish 3 (there is no " fish"), Fish 4, FISH 3. */
    assert_ok(embla_eval_new_pairs(w.table, w.vocab,
                                   file_of(&w, "dog cat 9\ndog x 8\ndog fish 7\ndog Fish 2\n"
                                               "DOG FISH 7\nDOG Cat 9\nDOG Fish 2\n"),
                                   NULL, &eval));
    assert_part(eval, 0, scratch_path(&w.place, "questions"), 7, 7, 0);
    assert_near(part_of(eval, 0).spearman, 1, 1e-15);
    embla_eval_free(eval);
    end_world(&w);
}

static void rows_limit_what_is_looked_at(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d", "e", "f"};
    /* b - a + c = (-1, 2): e is nearest, then d. */
    static const float values[] = {1, 0, 0, 1, 0, 1, -1, 1, -1, 2};
    embla_eval *eval = NULL;
    embla_eval_options options = {.rows = 4};
    (void)state;
    world w = new_world();
    f32_table(&w, 5, 2, values);
    words_of(&w, words, 6);
    const char *path = file_of(&w, "a b c d\na b c e\n");
    assert_ok(embla_eval_new_analogies(w.table, w.vocab, path, NULL, &eval));
    assert_part(eval, 0, "questions", 2, 2, 1);
    assert_null(missing_word(eval, 0, NULL));
    embla_eval_free(eval);
    for (int kind = 0; kind < 2; kind++) {
        int64_t times = 0;
        options.kind = (embla_analogy_kind)kind;
        assert_ok(embla_eval_new_analogies(w.table, w.vocab, path, &options, &eval));
        assert_part(eval, 0, "questions", 2, 1, 1);
        assert_string_equal(missing_word(eval, 0, &times), "e");
        assert_int_equal(times, 1);
        embla_eval_free(eval);
    }
    path = file_of(&w, "a b 1\na e 2\na f 3\n"); /* f is beyond the table */
    options.rows = 1000;
    assert_ok(embla_eval_new_pairs(w.table, w.vocab, path, &options, &eval));
    assert_int_equal(part_of(eval, 0).covered, 2);
    assert_string_equal(missing_word(eval, 0, NULL), "f");
    embla_eval_free(eval);
    options.rows = 4;
    assert_ok(embla_eval_new_pairs(w.table, w.vocab, path, &options, &eval));
    assert_int_equal(part_of(eval, 0).covered, 1);
    embla_eval_free(eval);
    end_world(&w);
}

static void missing_words_are_listed_by_how_often_they_are_asked_for(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d", "n"};
    static const float values[] = {1, 0, 0, 1, 1, 1, -1, 1, NAN, 1};
    static const struct {
        const char *word;
        int64_t times;
    } wanted[] = {{"z", 5}, {"y", 2}, {"n", 2}, {"x", 1}, {"\xc3\xa9", 1}};
    embla_eval *eval = NULL;
    (void)state;
    world w = new_world();
    f32_table(&w, 5, 2, values);
    words_of(&w, words, 5);
    assert_ok(
        embla_eval_new_analogies(w.table, w.vocab,
                                 file_of(&w, ": one\nx y z d\na b c d\n: two\nz z y z\n: three\n"
                                             "a n c \xc3\xa9\na b z n\n"),
                                 NULL, &eval));
    assert_int_equal(part_count(eval), 3);
    assert_part(eval, 0, "one", 2, 1, 1);
    assert_part(eval, 1, "two", 1, 0, 0);
    assert_part(eval, 2, "three", 2, 0, 0);
    for (size_t i = 0; i < COUNT_OF(wanted); i++) {
        int64_t times = 0;
        assert_string_equal(missing_word(eval, i, &times), wanted[i].word);
        assert_int_equal(times, wanted[i].times);
        assert_string_equal(missing_word(eval, i, NULL), wanted[i].word);
    }
    assert_null(missing_word(eval, COUNT_OF(wanted), NULL));
    embla_eval_free(eval);
    end_world(&w);
}

/* ---- pairs ---- */

static double slow_rank(const double *x, size_t n, size_t i)
{
    double below = 0, same = 0;
    for (size_t k = 0; k < n; k++) {
        below += x[k] < x[i];
        same += x[k] == x[i];
    }
    return below + (same + 1) / 2;
}

static double slow_pearson(const double *x, const double *y, size_t n)
{
    long double mx = 0, my = 0, xy = 0, xx = 0, yy = 0;
    for (size_t i = 0; i < n; i++) mx += x[i], my += y[i];
    mx /= (long double)n, my /= (long double)n;
    for (size_t i = 0; i < n; i++) {
        xy += (x[i] - mx) * (y[i] - my);
        xx += (x[i] - mx) * (x[i] - mx);
        yy += (y[i] - my) * (y[i] - my);
    }
    return (double)(xy / sqrtl(xx * yy));
}

enum { PAIRS_MOST = 1000 };

/* Few distinct scores and pairs that come again: many ties. */
static void check_pairs(world *w, size_t count, uint64_t seed)
{
    static double cosines[PAIRS_MOST], scores[PAIRS_MOST], ranks[2][PAIRS_MOST];
    char *text = malloc(count * 64 + 1);
    size_t used = 0, dim = embla_table_dim(w->table);
    uint64_t rows = (uint64_t)embla_table_rows(w->table);
    float x[2][512];
    embla_eval *eval = NULL;
    assert_non_null(text);
    for (size_t i = 0; i < count; i++) {
        int64_t a = (int64_t)check_below(&seed, rows), b = (int64_t)check_below(&seed, rows);
        scores[i] = (double)check_below(&seed, 40) / 4;
        used += (size_t)sprintf(text + used, "w%" PRId64 "\tw%" PRId64 "\t%.2f\n", a, b, scores[i]);
        check_row(w->table, a, x[0]);
        check_row(w->table, b, x[1]);
        cosines[i] = embla_cosine(x[0], x[1], dim);
    }
    for (size_t i = 0; i < count; i++) {
        ranks[0][i] = slow_rank(cosines, count, i);
        ranks[1][i] = slow_rank(scores, count, i);
    }
    assert_ok(embla_eval_new_pairs(w->table, w->vocab, file_of(w, text), NULL, &eval));
    embla_eval_part part = part_of(eval, 0);
    assert_int_equal(part.asked, count);
    assert_int_equal(part.covered, count);
    assert_false(part.syntactic);
    assert_near(part.spearman, slow_pearson(ranks[0], ranks[1], count), 1e-12);
    assert_near(part.pearson, slow_pearson(cosines, scores, count), 1e-12);
    embla_eval_free(eval);
    free(text);
}

static void correlations_are_those_of_slow_sums_in_every_dtype(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype++) {
        world w = new_world();
        w.table = check_table((embla_dtype)dtype, 25, check_dim((embla_dtype)dtype, 32), 40);
        numbered_words(&w, 25);
        check_pairs(&w, PAIRS_MOST, (uint64_t)dtype);
        for (size_t count = 5; count < 12; count++) check_pairs(&w, count, count);
        for (size_t count = 95; count < 99; count++) check_pairs(&w, count, count); /* a block */
        end_world(&w);
    }
}

static void rows_that_lie_apart_are_scored_the_same(void **state)
{
    enum { ROWS = 40, DIM = 32, STRIDE = 3 * DIM };
    static float values[ROWS * STRIDE];
    embla_table_options apart = {.row_stride = STRIDE * sizeof(float)};
    (void)state;
    world w = new_world();
    check_fill(21, ROWS * STRIDE, values);
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = ROWS, .dim = DIM},
                               values, sizeof values, &apart, &w.table));
    numbered_words(&w, ROWS);
    check_analogies(&w, 100, false, 7);
    check_analogies(&w, 40, true, 8);
    check_pairs(&w, 200, 9);
    end_world(&w);
}

static void correlations_have_edges(void **state)
{
    static const char *const words[] = {"a", "b", "c", "zero", "nan", "inf", "huge", "tiny"};
    static const float values[] = {1,   0, 0, 1,        1,     1,     0,      0,
                                   NAN, 0, 1, INFINITY, 3e38f, 3e38f, 1e-42f, 1e-42f};
    static const struct {
        const char *text;
        int64_t covered;
        double spearman; /* NaN: none */
    } cases[] = {
        {"a b 1\n", 1, NAN},
        {"a x 1\n", 0, NAN},
        {"a b 1\na c 2\n", 2, 1},
        {"a b 2\na c 1\n", 2, -1},
        {"a b 1\na c 1\n", 2, NAN},
        {"a c 1\nc a 2\n", 2, NAN},
        {"a b 1\na c 2\na nan 3\na inf 9\ninf nan 1\n", 2, 1},
        {"a zero 1\na c 2\na a 3\n", 3, 1},
        {"a b 1\na huge 2\nhuge huge 3\n", 3, 1},
        {"a b 1\na tiny 2\ntiny tiny 3\n", 3, 1},
        {"a b -1e308\na c 1\na a 1e308\n", 3, 1},
        {"a b 1e-320\na c 2e-320\na a 3e-320\n", 3, 1},
        {"a b -1\na c 0\na a 0\n", 3, 0.86602540378443864676},
    };
    (void)state;
    world w = new_world();
    f32_table(&w, 8, 2, values);
    words_of(&w, words, 8);
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_eval *eval = NULL;
        assert_ok(embla_eval_new_pairs(w.table, w.vocab, file_of(&w, cases[i].text), NULL, &eval));
        embla_eval_part part = part_of(eval, 0);
        assert_int_equal(part.covered, cases[i].covered);
        if (isnan(cases[i].spearman)) {
            assert_true(isnan(part.spearman) && isnan(part.pearson));
        } else {
            assert_near(part.spearman, cases[i].spearman, 1e-15);
            assert_true(part.spearman <= 1 && part.pearson <= 1 && part.pearson >= -1);
            /* Cosines 0, 1/sqrt(2), 1 and scores as far apart from each other. */
            if (cases[i].covered == 3 && cases[i].spearman == 1)
                assert_near(part.pearson, 0.97228, 1e-3);
        }
        embla_eval_free(eval);
    }
    end_world(&w);
}

static void analogies_have_edges(void **state)
{
    static const char *const words[] = {"a", "b", "c", "d"};
    static const float one[] = {1}, same[] = {2, 2, 2, 2}, mixed[] = {3e38f, -1e-42f, 0, 5};
    embla_eval *eval = NULL;
    (void)state;
    for (int kind = 0; kind < 2; kind++) {
        embla_eval_options options = {.kind = (embla_analogy_kind)kind};
        world w = new_world(); /* one row of one number: nothing is left to be found */
        f32_table(&w, 1, 1, one);
        words_of(&w, words, 1);
        assert_ok(
            embla_eval_new_analogies(w.table, w.vocab, file_of(&w, "a a a a\n"), &options, &eval));
        assert_part(eval, 0, "questions", 1, 1, 0);
        embla_eval_free(eval);
        end_world(&w);
        w = new_world(); /* all rows the same: the first that is left */
        f32_table(&w, 4, 1, same);
        words_of(&w, words, 4);
        assert_ok(embla_eval_new_analogies(w.table, w.vocab,
                                           file_of(&w, "a b c d\nd c b a\na a a b\na b a d\n"),
                                           &options, &eval));
        assert_part(eval, 0, "questions", 4, 4, 3);
        embla_eval_free(eval);
        end_world(&w);
        w = new_world(); /* huge, tiny and zero rows */
        f32_table(&w, 4, 1, mixed);
        words_of(&w, words, 4);
        assert_ok(
            embla_eval_new_analogies(w.table, w.vocab, file_of(&w, "b c a d\n"), &options, &eval));
        assert_part(eval, 0, "questions", 1, 1, 1);
        embla_eval_free(eval);
        end_world(&w);
    }
}

/* ---- what can go wrong ---- */

static world small_world(void)
{
    world w = new_world();
    w.table = check_table(EMBLA_F32, 12, 32, 3);
    numbered_words(&w, 12);
    return w;
}

static void arguments_are_checked(void **state)
{
    static const int64_t rows[] = {0, 0, 0};
    embla_table *mapped = NULL;
    embla_eval *eval = NULL;
    embla_eval_options options = {.rows = -1};
    (void)state;
    world w = small_world();
    const char *path = file_of(&w, "w0 w1 w2 w3\n");
    assert_status(embla_eval_new_analogies(NULL, w.vocab, path, NULL, &eval), EMBLA_ERR_ARGUMENT);
    assert_error_has("table is NULL");
    assert_status(embla_eval_new_analogies(w.table, NULL, path, NULL, &eval), EMBLA_ERR_ARGUMENT);
    assert_status(embla_eval_new_pairs(w.table, w.vocab, NULL, NULL, &eval), EMBLA_ERR_ARGUMENT);
    assert_status(embla_eval_new_pairs(w.table, w.vocab, path, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_eval_new_analogies(w.table, w.vocab, path, &options, &eval),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("-1");
    options = (embla_eval_options){.threads = -3};
    assert_status(embla_eval_new_analogies(w.table, w.vocab, path, &options, &eval),
                  EMBLA_ERR_ARGUMENT);
    options = (embla_eval_options){.kind = (embla_analogy_kind)2};
    assert_status(embla_eval_new_analogies(w.table, w.vocab, path, &options, &eval),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_eval_new_pairs(w.table, w.vocab, path, NULL, &eval), EMBLA_ERR_UNSUPPORTED);
    assert_ok(embla_table_new(
        EMBLA_F32, 1, 4, &(embla_table_options){.token_rows = rows, .token_count = 3}, &mapped));
    assert_status(embla_eval_new_pairs(mapped, w.vocab, path, NULL, &eval), EMBLA_ERR_UNSUPPORTED);
    assert_error_has("3 tokens share the table's 1 rows");
    embla_table_free(mapped);
    assert_status(embla_eval_new_pairs(w.table, w.vocab, w.place.folder, NULL, &eval),
                  EMBLA_ERR_UNSUPPORTED);
    assert_status(embla_eval_new_pairs(w.table, w.vocab, "/nowhere/at/all", NULL, &eval),
                  EMBLA_ERR_NOT_FOUND);
    assert_null(eval);
    embla_eval_free(NULL);
    end_world(&w);
}

typedef struct {
    int64_t last, all, calls, end_at;
} watch;

static bool watching(void *context, const char *what, int64_t done, int64_t all)
{
    watch *w = context;
    assert_true(strcmp(what, "questions") == 0 || strcmp(what, "pairs") == 0);
    assert_true(done >= w->last && done <= all);
    w->last = done;
    w->all = all;
    w->calls++;
    return w->calls != w->end_at;
}

static void progress_is_told_and_can_end_the_work(void **state)
{
    int64_t correct[SECTIONS];
    (void)state;
    world w = small_world();
    char *text = random_questions(w.table, 12, 9000, false, 6, correct);
    const char *path = file_of(&w, text);
    for (int kind = 0; kind < 3; kind++) {
        watch seen = {0};
        embla_eval *eval = NULL;
        size_t live = embla_mem_live();
        embla_eval_options options = {.kind =
                                          kind == 1 ? EMBLA_ANALOGY_COS_MUL : EMBLA_ANALOGY_COS_ADD,
                                      .progress = watching,
                                      .context = &seen};
        if (kind > 0) path = file_of(&w, kind == 1 ? "w0 w1 w2 w3\nw0 w1 w2 x\n" : "w0 w1 1\n");
        embla_status (*score)(const embla_table *, const embla_vocab *, const char *,
                              const embla_eval_options *, embla_eval **) =
            kind == 2 ? embla_eval_new_pairs : embla_eval_new_analogies;
        assert_ok(score(w.table, w.vocab, path, &options, &eval));
        assert_int_equal(seen.last, seen.all);
        assert_int_equal(seen.all, kind == 0 ? 9000 : kind == 1 ? 2 : 1);
        assert_true(seen.calls >= (kind == 0 ? 3 : kind == 1 ? 2 : 1));
        embla_eval_free(eval);
        for (int64_t end_at = 1, calls = seen.calls; end_at <= calls; end_at++) {
            seen = (watch){.end_at = end_at};
            eval = NULL;
            assert_status(score(w.table, w.vocab, path, &options, &eval), EMBLA_ERR_STOPPED);
            assert_error_has("stopped by the caller: ");
            assert_null(eval);
        }
        assert_int_equal(embla_mem_live(), live);
    }
    free(text);
    end_world(&w);
}

/* The n-th allocation, or call of the system, fails: a status, no leak, no half of a result. */
static void check_failures(world *w, bool pairs, bool system_calls)
{
    const char *path = file_of(w, pairs ? "w0 w1 1\nw2 w3 4\nw5 x 3\n w8 w9 9\n"
                                        : ": a\nw0 W1 w2 w3\nw5 x w6 w7\n: b\nw8 w9 w10 w11\n");
    size_t failures = 0;
    for (size_t at = 1;; at++) {
        embla_eval *eval = NULL;
        embla_eval_options options = {.threads = 1};
        size_t live = embla_mem_live(), files = embla_io_live();
        if (system_calls)
            embla_io_fail(at, false, EMBLA_SYSTEM_OTHER);
        else
            embla_mem_fail(at, false);
        embla_status status =
            pairs ? embla_eval_new_pairs(w->table, w->vocab, path, &options, &eval)
                  : embla_eval_new_analogies(w->table, w->vocab, path, &options, &eval);
        embla_io_fail(0, false, 0);
        embla_mem_fail(0, false);
        if (status == EMBLA_OK) {
            assert_non_null(eval);
            embla_eval_free(eval);
            assert_int_equal(embla_mem_live(), live);
            break;
        }
        assert_int_equal(status, system_calls ? EMBLA_ERR_IO : EMBLA_ERR_MEMORY);
        assert_null(eval);
        assert_int_equal(embla_mem_live(), live);
        assert_int_equal(embla_io_live(), files);
        failures++;
    }
    assert_true(failures >= (system_calls ? 3 : 5));
}

static void every_allocation_and_call_of_the_system_may_fail(void **state)
{
    (void)state;
    world w = small_world();
    for (int pairs = 0; pairs < 2; pairs++)
        for (int system_calls = 0; system_calls < 2; system_calls++)
            check_failures(&w, pairs == 1, system_calls == 1);
    end_world(&w);
}

static void a_file_that_comes_in_small_pieces_is_read_the_same(void **state)
{
    (void)state;
    world w = small_world();
    embla_io_short(7);
    check_pairs(&w, 300, 2);
    check_analogies(&w, 50, false, 3);
    embla_io_short(0);
    end_world(&w);
}

/* ---- GloVe ---- */

static double accuracy(const embla_eval *eval, int syntactic, int64_t *covered, int64_t *asked)
{
    int64_t correct = 0;
    *covered = *asked = 0;
    for (size_t n = 0; n < part_count(eval); n++) {
        embla_eval_part part = part_of(eval, n);
        if (syntactic < 2 && part.syntactic != (syntactic == 1)) continue;
        correct += part.correct;
        *covered += part.covered;
        *asked += part.asked;
    }
    return (double)correct / (double)*covered;
}

static void check_google(world *w, const char *data)
{
    static const double wanted[] = {0.6596, 0.6367, 0.6465};
    char path[SCRATCH_PATH];
    embla_eval *eval = NULL;
    int64_t covered = 0, asked = 0;
    (void)snprintf(path, sizeof path, "%s/word-eval/questions-words.txt", data);
    assert_ok(embla_eval_new_analogies(w->table, w->vocab, path, NULL, &eval));
    assert_int_equal(part_count(eval), 14);
    for (int i = 0; i < 3; i++)
        assert_near(accuracy(eval, i, &covered, &asked), wanted[i], 0.00005);
    assert_int_equal(asked, 19544);
    assert_int_equal(covered, 17592);
    embla_eval_free(eval);
}

static void glove_50k_has_the_published_scores(void **state)
{
    static const struct {
        const char *file;
        int64_t covered;
        double spearman;
    } pairs[] = {{"EN-WS-353-ALL", 349, 0.5504},
                 {"EN-SIMLEX-999", 995, 0.2988},
                 {"EN-MEN-TR-3k", 2925, 0.6922},
                 {"EN-RG-65", 61, 0.7336}};
    const char *data = getenv("EMBLA_DATA");
    char path[SCRATCH_PATH];
    embla_checkpoint *glove = NULL;
    world w = {.table = NULL};
    (void)state;
    assert_ok(embla_checkpoint_open(scratch_glove(&w.place), NULL, &glove));
    assert_ok(embla_table_open(glove, NULL, NULL, &w.table));
    assert_ok(embla_vocab_open(glove, &w.vocab));
    embla_checkpoint_free(glove);
    for (size_t i = 0; i < COUNT_OF(pairs); i++) {
        embla_eval *eval = NULL;
        (void)snprintf(path, sizeof path, "%s/word-eval/%s.txt", data, pairs[i].file);
        assert_ok(embla_eval_new_pairs(w.table, w.vocab, path, NULL, &eval));
        assert_int_equal(part_of(eval, 0).covered, pairs[i].covered);
        assert_near(part_of(eval, 0).spearman, pairs[i].spearman, 0.00005);
        embla_eval_free(eval);
    }
    if (!SLOW_BUILD) check_google(&w, data);
    end_world(&w);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(analogies_are_those_of_a_slow_search_in_every_dtype),
        cmocka_unit_test(analogies_of_many_blocks_are_counted_by_section),
        cmocka_unit_test(rows_that_lie_apart_are_scored_the_same),
        cmocka_unit_test(the_answer_is_that_of_embla_analogy),
        cmocka_unit_test(words_are_found_as_they_are_then_in_lower_case),
        cmocka_unit_test(the_word_itself_goes_before_its_lower_case),
        cmocka_unit_test(a_word_with_its_space_goes_before_the_end_of_a_word),
        cmocka_unit_test(rows_limit_what_is_looked_at),
        cmocka_unit_test(missing_words_are_listed_by_how_often_they_are_asked_for),
        cmocka_unit_test(correlations_are_those_of_slow_sums_in_every_dtype),
        cmocka_unit_test(correlations_have_edges),
        cmocka_unit_test(analogies_have_edges),
        cmocka_unit_test(arguments_are_checked),
        cmocka_unit_test(progress_is_told_and_can_end_the_work),
        cmocka_unit_test(every_allocation_and_call_of_the_system_may_fail),
        cmocka_unit_test(a_file_that_comes_in_small_pieces_is_read_the_same),
        cmocka_unit_test(glove_50k_has_the_published_scores),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
