/* SPDX-License-Identifier: Apache-2.0 */
/* Analogies against a slow search by the formulas, refusals, and the figures known of real
 * vectors (EMBLA_DATA; skipped where it is not set).
 */
#include <math.h>

#include "base/mem.h"
#include "embla_lab.h"
#include "toy.h"

enum { DIM = 24, ROWS = 3000 };

/* The score of one row by the definition. */
static double slow_score(const embla_table *table, embla_analogy_kind kind, const int64_t *rows,
                         size_t plus, size_t count, const float *x, const float *query)
{
    float row[DIM];
    double sides[2] = {1.0, 1.0};
    if (kind == EMBLA_ANALOGY_COS_ADD) return embla_cosine(x, query, DIM);
    for (size_t i = 0; i < count; i++) {
        check_row(table, rows[i], row);
        sides[i >= plus] *= (1.0 + embla_cosine(x, row, DIM)) / 2.0;
    }
    return sides[0] / (sides[1] + 1e-6);
}

/* The best k rows, found one after the other. */
static void slow(const embla_table *table, const embla_analogy_options *o, const int64_t *rows,
                 size_t plus, size_t count, size_t k, embla_neighbour *out)
{
    float x[DIM], query[DIM];
    double sums[DIM] = {0}, scores[ROWS];
    int64_t end = o->rows > 0 && o->rows < ROWS ? o->rows : embla_table_rows(table);
    for (size_t i = 0; i < count; i++) {
        check_row(table, rows[i], x);
        double norm = embla_norm(x, DIM);
        for (size_t j = 0; j < DIM && norm > 0.0; j++)
            sums[j] += (i < plus ? 1.0 : -1.0) * ((double)x[j] / norm);
    }
    for (size_t j = 0; j < DIM; j++) query[j] = (float)sums[j];
    for (int64_t r = 0; r < end; r++) {
        check_row(table, r, x);
        bool asked = !isfinite(embla_norm(x, DIM));
        for (size_t i = 0; i < count && !o->keep_words; i++) asked = asked || rows[i] == r;
        scores[r] = asked ? -HUGE_VAL : slow_score(table, o->kind, rows, plus, count, x, query);
    }
    for (size_t i = 0; i < k; i++) {
        int64_t best = -1;
        for (int64_t r = 0; r < end; r++)
            if (scores[r] > (best < 0 ? -HUGE_VAL : scores[best])) best = r;
        out[i] = (embla_neighbour){best, best < 0 ? 0.0 : scores[best]};
        if (best >= 0) scores[best] = -HUGE_VAL;
    }
}

static embla_status ask(const embla_table *table, const int64_t *plus, size_t plus_count,
                        const int64_t *minus, size_t minus_count, size_t k,
                        const embla_analogy_options *options, embla_neighbour *out,
                        embla_near_report *report)
{
    const embla_analogy_question question = {
        .plus = plus, .plus_count = plus_count, .minus = minus, .minus_count = minus_count};
    embla_analogy_options asked = options ? *options : (embla_analogy_options){0};
    asked.k = k;
    return embla_analogy(table, &question, &asked, out, report);
}

static void both_kinds_as_by_their_formulas(void **state)
{
    enum { K = 9 };
    static const size_t sides[][2] = {{2, 1}, {1, 0}, {0, 1}, {3, 3}, {16, 16}, {1, 1}};
    uint64_t seed = 3;
    float bad[DIM] = {NAN}, zero[DIM] = {0};
    (void)state;
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 7);
    assert_ok(embla_table_write(table, 11, 1, bad));
    assert_ok(embla_table_write(table, 12, 1, zero));
    /* rows that only exact sums can rank, past the first block of a scan: row 2, nearly */
    for (int64_t r = 1024; r < ROWS; r += 16) {
        float nearly[DIM];
        check_row(table, 2, nearly);
        nearly[1] = 0.2f + (float)(r / 32) * (r % 32 ? 0x1p-26f : -0x1p-26f);
        assert_ok(embla_table_write(table, r, 1, nearly));
    }
    for (int way = 0; way < 16; way++)
        for (size_t s = 0; s < COUNT_OF(sides); s++) {
            embla_analogy_options options = {.kind = (embla_analogy_kind)(way % 2),
                                             .keep_words = way / 2 % 2,
                                             .rows = way / 4 % 2 ? 5 : 0,
                                             .threads = way / 8 % 2 ? 3 : 1};
            int64_t rows[32];
            embla_neighbour got[K], wanted[K];
            embla_near_report report;
            size_t plus = sides[s][0], minus = sides[s][1];
            for (size_t i = 0; i < plus + minus; i++) {
                rows[i] = (int64_t)check_below(&seed, ROWS);
                if (rows[i] == 11) rows[i] = 12;
            }
            rows[0] = s == 3 ? 12 : (int64_t)check_below(&seed, 4); /* a row of zeros too */
            if (s == 0) rows[0] = 2;
            slow(table, &options, rows, plus, plus + minus, K, wanted);
            assert_ok(ask(table, rows, plus, rows + plus, minus, K, &options, got, &report));
            for (size_t i = 0; i < K; i++) {
                assert_int_equal(got[i].row, wanted[i].row);
                assert_true(got[i].score == wanted[i].score);
            }
            assert_int_equal(report.rows, options.rows ? 5 : ROWS);
            assert_int_equal(report.nonfinite, options.rows ? 0 : 1);
        }
    embla_table_free(table);
}

/* king - king, and a row of zeros, have no direction: any row would be an answer. */
static void a_sum_of_zero_is_refused(void **state)
{
    const int64_t rows[] = {3, 5, 3, 5};
    float twice[DIM], zero[DIM] = {0};
    embla_neighbour out[2] = {{.row = 77}}, before[2];
    const embla_analogy_options multiply = {.kind = EMBLA_ANALOGY_COS_MUL};
    (void)state;
    memcpy(before, out, sizeof out);
    embla_table *table = check_table(EMBLA_F32, ROWS, DIM, 7);
    assert_status(ask(table, rows, 1, rows, 1, 2, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("zero");
    assert_status(ask(table, rows, 2, rows + 2, 2, 2, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_lookup_rows(table, rows, 1, NULL, twice));
    for (size_t i = 0; i < DIM; i++) twice[i] *= 2.0f; /* the same direction */
    assert_ok(embla_table_write(table, 5, 1, twice));
    assert_status(ask(table, rows, 1, rows + 1, 1, 2, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_table_write(table, 5, 1, zero));
    assert_status(ask(table, rows + 1, 1, NULL, 0, 2, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_memory_equal(out, before, sizeof out);
    assert_ok(ask(table, rows, 1, rows, 1, 2, &multiply, out, NULL));
    assert_ok(ask(table, rows, 2, NULL, 0, 2, NULL, out, NULL));
    embla_table_free(table);
}

static void what_cannot_be_right_is_refused(void **state)
{
    const int64_t rows[17] = {0, 1, 2}, wrong[][1] = {{-1}, {5}, {INT64_MAX}, {INT64_MIN}};
    embla_neighbour out[2], before[2];
    float bad[DIM] = {INFINITY};
    (void)state;
    embla_table *table = check_table(EMBLA_F32, 5, DIM, 1);
    memset(out, 0x5a, sizeof out);
    memcpy(before, out, sizeof out);
    assert_status(ask(NULL, rows, 1, NULL, 0, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(ask(table, rows, 1, NULL, 0, 1, NULL, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(ask(table, rows, 0, rows, 0, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_analogy(table, NULL, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_analogy: question is NULL");
    assert_status(ask(table, NULL, 1, rows, 1, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(ask(table, rows, 17, rows, 1, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("17");
    assert_status(ask(table, rows, 1, rows, 17, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    for (size_t i = 0; i < COUNT_OF(wrong); i++) {
        assert_status(ask(table, wrong[i], 1, rows, 1, 1, NULL, out, NULL), EMBLA_ERR_RANGE);
        assert_error_has("plus[0]");
        assert_status(ask(table, rows, 1, wrong[i], 1, 1, NULL, out, NULL), EMBLA_ERR_RANGE);
        assert_error_has("minus[0]");
    }
    const embla_analogy_options odd[] = {
        {.rows = -1}, {.threads = -2}, {.kind = (embla_analogy_kind)2}};
    for (size_t i = 0; i < COUNT_OF(odd); i++)
        assert_status(ask(table, rows, 1, rows, 1, 1, &odd[i], out, NULL), EMBLA_ERR_ARGUMENT);
    assert_ok(embla_table_write(table, 1, 1, bad));
    assert_status(ask(table, rows, 2, NULL, 0, 1, NULL, out, NULL), EMBLA_ERR_ARGUMENT);
    assert_error_has("row 1 ");
    assert_memory_equal(out, before, sizeof out);
    embla_table_free(table);
}

static void every_allocation_may_fail(void **state)
{
    const int64_t rows[3] = {4, 7, 9};
    (void)state;
    embla_table *table = check_table(EMBLA_Q8_0, 50, 32, 1);
    for (int kind = EMBLA_ANALOGY_COS_ADD; kind <= EMBLA_ANALOGY_COS_MUL; kind++) {
        embla_analogy_options options = {.kind = (embla_analogy_kind)kind};
        embla_neighbour out[2] = {{-7, 0}, {-7, 0}};
        size_t at = 1, live = embla_mem_live();
        for (;; at++) {
            embla_mem_fail(at, false);
            embla_status status = ask(table, rows, 2, rows + 2, 1, 2, &options, out, NULL);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_int_equal(out[0].row, -7);
        }
        assert_true(at > 1);
        assert_true(out[0].row >= 0);
    }
    embla_table_free(table);
}

/* ---- real vectors ---- */

typedef struct {
    const char *plus[2], *minus;
    const char *answers[3];
    double scores[3]; /* 0: no more */
} known;

static void assert_known(const embla_table *table, const embla_vocab *vocab, const known *k)
{
    int64_t rows[3];
    embla_neighbour out[3];
    const char *const words[3] = {k->plus[0], k->plus[1], k->minus};
    for (size_t i = 0; i < 3; i++) {
        int32_t token = -1;
        assert_ok(embla_vocab_find(vocab, words[i], strlen(words[i]), &token));
        rows[i] = token;
    }
    assert_ok(ask(table, rows, 2, rows + 2, 1, 3, NULL, out, NULL));
    for (size_t i = 0; i < 3 && k->scores[i] > 0.0; i++) {
        assert_string_equal(embla_vocab_word(vocab, (int32_t)out[i].row, NULL), k->answers[i]);
        assert_near(out[i].score, k->scores[i], 0.0005);
    }
}

static void glove_50k(void **state)
{
    const known all[] = {
        {{"king", "woman"}, "man", {"queen", "monarch", "throne"}, {0.770, 0.684, 0.676}},
        {{"paris", "germany"}, "france", {"berlin"}, {0.885}}};
    scratch place;
    embla_checkpoint *cp = NULL;
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    (void)state;
    assert_ok(embla_checkpoint_open(scratch_glove(&place), NULL, &cp));
    assert_ok(embla_table_open(cp, NULL, NULL, &table));
    assert_ok(embla_vocab_open(cp, &vocab));
    for (size_t i = 0; i < COUNT_OF(all); i++) assert_known(table, vocab, &all[i]);
    embla_vocab_free(vocab);
    embla_table_free(table);
    embla_checkpoint_free(cp);
    scratch_free(&place);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(both_kinds_as_by_their_formulas),
        cmocka_unit_test(a_sum_of_zero_is_refused),
        cmocka_unit_test(what_cannot_be_right_is_refused),
        cmocka_unit_test(every_allocation_may_fail),
        cmocka_unit_test(glove_50k),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
