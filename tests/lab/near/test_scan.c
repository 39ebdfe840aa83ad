/* SPDX-License-Identifier: Apache-2.0 */
/* The heap of the best rows against a sort, and one pass over a table against a slow one:
 * lists, blocks and their ends, rows left out, threads, long rows.
 */
#include "check.h"

#include <math.h>

#include "base/dtype.h"
#include "base/mem.h"
#include "near/scan.h"

static int by_score(const void *a, const void *b)
{
    const embla_scored *x = a, *y = b;
    if (x->score != y->score) return x->score > y->score ? -1 : 1;
    return (x->row > y->row) - (x->row < y->row);
}

/* Few different scores, so that many are equal; rows come in any order. */
static void the_best_are_those_of_a_sort(void **state)
{
    enum { MOST = 300 };
    uint64_t seed = 1;
    (void)state;
    for (size_t n = 0; n < MOST; n += 1 + n / 20)
        for (size_t room = 0; room < 60; room += 1 + room / 5) {
            embla_scored all[MOST], kept[60];
            embla_best best = {.items = kept, .room = room};
            for (size_t i = 0; i < n; i++)
                all[i] = (embla_scored){(int64_t)i, (double)check_below(&seed, 1 + n / 3)};
            for (size_t i = n; i > 1; i--) { /* shuffled */
                size_t j = check_below(&seed, i);
                embla_scored other = all[j];
                all[j] = all[i - 1];
                all[i - 1] = other;
            }
            for (size_t i = 0; i < n; i++) embla_best_add(&best, all[i]);
            size_t count = n < room ? n : room;
            assert_int_equal(best.count, count);
            qsort(all, n, sizeof *all, by_score);
            if (room > 0 && n >= room)
                assert_true(embla_best_least(&best) == all[room - 1].score);
            else if (room > 0)
                assert_true(embla_best_least(&best) == -HUGE_VAL);
            embla_best_sort(&best);
            for (size_t i = 0; i < count; i++) {
                assert_int_equal(kept[i].row, all[i].row);
                assert_true(kept[i].score == all[i].score);
            }
        }
}

/* Norms of the vectors: how far an estimate may be off depends on them. */
static double norms[EMBLA_SCAN_MOST];

/* The most that the product of row i with vector v may be above its estimate. */
static double slack(const embla_scan_sums *sums, size_t v, size_t i)
{
    return 1.01 * sums->error * sqrt(sums->squares[i]) * norms[v];
}

static void score_dot(const void *context, size_t list, const embla_scan_sums *sums, double *scores)
{
    (void)context;
    for (size_t i = 0; i < sums->n; i++) {
        scores[i] = sums->dots[list * sums->stride + i];
        if (sums->error > 0.0) scores[i] += slack(sums, list, i);
    }
}

/* All vectors together in one list: the sum of the sums, less the square. */
static void score_all(const void *context, size_t list, const embla_scan_sums *sums, double *scores)
{
    size_t count = *(const size_t *)context;
    (void)list;
    for (size_t i = 0; i < sums->n; i++) {
        scores[i] = -sums->squares[i];
        if (sums->error > 0.0) scores[i] += 1.01 * sums->error * sums->squares[i];
        for (size_t v = 0; v < count; v++) {
            scores[i] += sums->dots[v * sums->stride + i];
            if (sums->error > 0.0) scores[i] += slack(sums, v, i);
        }
    }
}

/* Compares a scan with a slow one, which sorts all rows. Returns how many rows had exact sums. */
static int64_t compare(const embla_scan *scan)
{
    size_t dim = embla_table_dim(scan->table), k = scan->k;
    float *row = malloc(dim * sizeof *row);
    embla_scored *all = malloc((size_t)scan->rows * sizeof *all);
    embla_scored *got = malloc(scan->lists * k * sizeof *got);
    int64_t wanted = 0;
    embla_scan_report report = {-1, -1};
    double *dots = malloc(scan->count * sizeof *dots);
    assert_true(row && all && got && dots);
    for (size_t v = 0; v < scan->count; v++)
        norms[v] =
            sqrt(embla_kernels_scalar.dot(scan->vectors + v * dim, scan->vectors + v * dim, dim));
    assert_ok(embla_scan_run(scan, got, &report));
    for (size_t list = 0; list < scan->lists; list++) {
        size_t n = 0;
        wanted = 0;
        for (int64_t r = 0; r < scan->rows; r++) {
            double score;
            check_row(scan->table, r, row);
            double square = embla_kernels_scalar.dot(row, row, dim);
            for (size_t v = 0; v < scan->count; v++)
                dots[v] = embla_kernels_scalar.dot(row, scan->vectors + v * dim, dim);
            const embla_scan_sums sums = {.dots = dots, .squares = &square, .stride = 1, .n = 1};
            scan->score(scan->context, list, &sums, &score);
            wanted += !isfinite(square);
            if (isfinite(square) && !(scan->exclude_count > 0 &&
                                      embla_is_excluded(scan->exclude + list * scan->exclude_count,
                                                        scan->exclude_count, r)))
                all[n++] = (embla_scored){r, score};
        }
        qsort(all, n, sizeof *all, by_score);
        for (size_t i = 0; i < k; i++) {
            assert_int_equal(got[list * k + i].row, i < n ? all[i].row : -1);
            if (i < n) assert_true(got[list * k + i].score == all[i].score);
        }
    }
    assert_int_equal(report.nonfinite, wanted);
    free(dots);
    free(got);
    free(all);
    free(row);
    return report.exact;
}

/* Rows around the ends of blocks and of four rows; one vector, several, the most. */
static void every_number_of_rows(void **state)
{
    static float vectors[EMBLA_SCAN_MOST * 64];
    const int64_t rows[] = {1, 2, 3, 4, 5, 7, 8, 63, 1023, 1024, 1025, 1030, 2051, 4099};
    const size_t counts[] = {1, 2, 5, EMBLA_SCAN_MOST};
    (void)state;
    check_fill(5, EMBLA_SCAN_MOST * 64, vectors);
    for (size_t r = 0; r < COUNT_OF(rows); r++)
        for (size_t c = 0; c < COUNT_OF(counts); c++) {
            embla_dtype dtype = (r + c) % 2 ? EMBLA_F32 : EMBLA_Q8_0;
            embla_table *table = check_table(dtype, rows[r], 64, r);
            embla_scan scan = {.table = table,
                               .rows = rows[r],
                               .vectors = vectors,
                               .count = counts[c],
                               .lists = counts[c],
                               .k = 3,
                               .threads = 1 + (int)(r % 4),
                               .score = score_dot};
            (void)compare(&scan);
            scan.lists = 1;
            scan.score = score_all;
            scan.context = &counts[c];
            scan.k = 7;
            (void)compare(&scan);
            embla_table_free(table);
        }
}

/* Every dtype, with rows that are no numbers in three of four places, and any k. */
static void rows_that_are_no_numbers_are_counted(void **state)
{
    enum { ROWS = 700, MOST = 256 };
    static float vectors[2 * MOST], bad[MOST];
    (void)state;
    check_fill(6, 2 * MOST, vectors);
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        size_t dim = check_dim((embla_dtype)d, 96);
        embla_table *table = check_table((embla_dtype)d, ROWS, dim, 3);
        for (int64_t r = 0; r < ROWS; r += 1 + r % 5) {
            memset(bad, 0, sizeof bad);
            bad[(size_t)r % dim] = r % 3 ? NAN : r % 2 ? INFINITY : -INFINITY;
            check_write(table, r, 1, bad); /* i8 has no NaN: a 0, or its end */
        }
        const int64_t exclude[4] = {5, 6, 699, -1};
        for (size_t k = 1; k <= ROWS + 1; k *= 9) {
            embla_scan scan = {.table = table,
                               .rows = ROWS - (int64_t)k % 2,
                               .vectors = vectors,
                               .count = 2,
                               .lists = 2,
                               .k = k == 729 ? ROWS : k,
                               .exclude = exclude,
                               .exclude_count = 2,
                               .threads = 2,
                               .score = score_dot};
            (void)compare(&scan);
        }
        embla_table_free(table);
    }
}

/* Rows so long that they are decoded one at a time, and the longest of blocks of four. */
static void long_rows(void **state)
{
    const size_t dims[] = {65536, 65568, 131072};
    (void)state;
    for (size_t i = 0; i < COUNT_OF(dims); i++)
        for (int f32 = 0; f32 < 2; f32++) {
            embla_table *table = check_table(f32 ? EMBLA_F32 : EMBLA_Q4_0, 9, dims[i], 3);
            float *vectors = malloc(dims[i] * sizeof *vectors);
            assert_non_null(vectors);
            check_fill(i, dims[i], vectors);
            embla_scan scan = {.table = table,
                               .rows = 9,
                               .vectors = vectors,
                               .count = 1,
                               .lists = 1,
                               .k = 9,
                               .threads = 2,
                               .score = score_dot};
            (void)compare(&scan);
            free(vectors);
            embla_table_free(table);
        }
}

/* A table of rows for the filter: usual ones, and in every third block some that it cannot judge
 * (NaN, numbers too large or too small) or that are nearly equal. */
static embla_table *table_for_filter(embla_dtype dtype, int64_t rows, size_t dim)
{
    embla_table *table = check_table(dtype, rows, dim, 17);
    float *one = malloc(dim * sizeof *one);
    assert_non_null(one);
    for (int64_t r = 1; r < rows; r++) {
        if (r / 1024 % 3 != 1 || r % 8 > 4) continue;
        check_row(table, r % 8 < 2 ? 0 : r, one); /* row 0 once more, or nearly */
        if (r % 8 == 1) one[(size_t)r % dim] = nextafterf(one[(size_t)r % dim], 1.0f);
        if (r % 8 == 2) one[(size_t)r % dim] = NAN;
        for (size_t i = 0; r % 8 > 2 && i < dim; i++) one[i] *= r % 8 == 3 ? 1e30f : 1e-30f;
        assert_ok(embla_table_write(table, r, 1, one));
    }
    free(one);
    return table;
}

/* The filter drops most rows of a usual table, and no row that belongs: any set of kernels and any
 * number of threads gives what a sort of all exact scores gives. */
static void the_filter_changes_nothing(void **state)
{
    enum { ROWS = 12000, DIM = 64 };
    static const embla_dtype dtypes[] = {EMBLA_F32, EMBLA_BF16, EMBLA_F16,
                                         EMBLA_I8,  EMBLA_Q8_0, EMBLA_Q4_0};
    static const int threads[] = {1, 2, 3, 8};
    static float query[2 * DIM];
    (void)state;
    check_fill(9, 2 * DIM, query);
    for (size_t d = 0; d < COUNT_OF(dtypes); d++) {
        embla_table *table = table_for_filter(dtypes[d], ROWS, DIM);
        check_row(table, 0, query); /* all but equal rows are the nearest */
        for (size_t s = 0; s < CHECK_SETS; s++)
            for (size_t t = 0; t < COUNT_OF(threads); t++) {
                if (!embla_kernels_find(check_sets[s])) continue;
                embla_kernels_use(embla_kernels_find(check_sets[s]));
                const embla_scan scan = {.table = table,
                                         .rows = ROWS,
                                         .vectors = query,
                                         .count = 2,
                                         .lists = 2,
                                         .k = 1 + 6 * t,
                                         .threads = threads[t],
                                         .score = score_dot};
                int64_t exact = compare(&scan);
                assert_true(exact > 0);
                /* with several threads it depends on when each learns what the others found */
                if (threads[t] == 1) assert_true(exact < ROWS * 3 / 4);
            }
        embla_kernels_use(NULL);
        embla_table_free(table);
    }
}

/* Rows that are all equal pass the filter, whatever it does: ties go to the lower row number. */
static void equal_rows_pass_the_filter(void **state)
{
    enum { ROWS = 9000, DIM = 64 }; /* whole blocks of every dtype that is written */
    static float rows[ROWS * DIM], query[DIM];
    (void)state;
    check_fill(4, DIM, query);
    for (size_t i = 0; i < ROWS * DIM; i++) rows[i] = query[i % DIM];
    for (int d = CHECK_FIRST_DTYPE; d <= CHECK_LAST_DTYPE; d++) {
        if (!embla_dtype_writes((embla_dtype)d)) continue;
        embla_table *table = check_table_of((embla_dtype)d, ROWS, DIM, rows);
        for (int threads = 1; threads <= 3; threads += 2) {
            embla_scored out[5];
            embla_scan_report report;
            norms[0] = sqrt(embla_kernels_scalar.dot(query, query, DIM));
            const embla_scan scan = {.table = table,
                                     .rows = ROWS,
                                     .vectors = query,
                                     .count = 1,
                                     .lists = 1,
                                     .k = 5,
                                     .threads = threads,
                                     .score = score_dot};
            assert_ok(embla_scan_run(&scan, out, &report));
            for (int64_t i = 0; i < 5; i++) assert_int_equal(out[i].row, i);
        }
        embla_table_free(table);
    }
}

static void every_allocation_may_fail(void **state)
{
    static float vector[32];
    (void)state;
    check_fill(5, 32, vector);
    embla_table *table = check_table(EMBLA_F16, 5000, 32, 1);
    embla_scan scan = {.table = table,
                       .rows = 5000,
                       .vectors = vector,
                       .count = 1,
                       .lists = 1,
                       .k = 5000,
                       .threads = 2,
                       .score = score_dot};
    embla_scored *out = malloc(5000 * sizeof *out);
    embla_scan_report report = {-9, -9};
    size_t at = 1, live = embla_mem_live();
    assert_non_null(out);
    for (;; at++) {
        out[0].row = -9;
        embla_mem_fail(at, false);
        embla_status status = embla_scan_run(&scan, out, &report);
        embla_mem_fail(0, false);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_MEMORY);
        assert_true(out[0].row == -9 && report.nonfinite == -9);
    }
    assert_true(at > 3);
    free(out);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(the_best_are_those_of_a_sort),
        cmocka_unit_test(every_number_of_rows),
        cmocka_unit_test(rows_that_are_no_numbers_are_counted),
        cmocka_unit_test(long_rows),
        cmocka_unit_test(the_filter_changes_nothing),
        cmocka_unit_test(equal_rows_pass_the_filter),
        cmocka_unit_test(every_allocation_may_fail),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
