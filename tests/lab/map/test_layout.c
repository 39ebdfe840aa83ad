/* SPDX-License-Identifier: Apache-2.0 */
/* Graphs against embla_near, and layouts by what they are for: how many of the nearest rows stay
 * nearest on the plane, beside PCA.
 */
#include "engine.h"
#include "nearest.h"

#include <math.h>
#include <stdio.h>

#include "base/mem.h"
#include "blobs.h"
#include "map/graph.h"
#include "slow.h"

static embla_graph *graph_of(const embla_table *table, size_t k, int threads)
{
    embla_graph *graph = NULL;
    assert_ok(embla_graph_new(table, &(embla_graph_options){.k = k, .threads = threads}, &graph));
    return graph;
}

/* ---- graphs ---- */

static void a_graph_has_the_nearest_rows(void **state)
{
    enum { ROWS = 2500, DIM = 12, K = 7 };
    embla_table *table = blobs_table(ROWS, DIM, 9, 0.7f);
    float row[DIM];
    (void)state;
    ((float *)embla_table_data(table))[3 * DIM + 4] = NAN;
    embla_graph *graph = graph_of(table, K, 2);
    for (int64_t i = 0; i < ROWS; i += 83) {
        size_t count;
        embla_neighbour wanted[K];
        const embla_neighbour *found = embla_graph_near(graph, i, &count);
        check_row(table, i, row);
        assert_ok(nearest(table, row, 1, K,
                          &(embla_near_options){.exclude = &i, .exclude_count = 1}, wanted, NULL));
        assert_int_equal(count, K);
        assert_memory_equal(found, wanted, sizeof wanted);
    }
    static const int64_t none[] = {3, -1, ROWS};
    for (size_t i = 0; i < COUNT_OF(none); i++) {
        size_t count = 5;
        assert_null(embla_graph_near(graph, none[i], &count));
        assert_int_equal(count, 0);
    }
    embla_graph_free(graph);
    embla_table_free(table);
}

static void a_graph_has_no_more_neighbours_than_rows(void **state)
{
    float rows[] = {1, 2, NAN, 1, 2, 1, 5, 4};
    size_t count;
    embla_table *table = NULL;
    (void)state;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = 4, .dim = 2}, rows,
                               sizeof rows, NULL, &table));
    embla_graph *graph = graph_of(table, 0, 0);
    assert_non_null(embla_graph_near(graph, 0, &count));
    assert_int_equal(count, 2);
    embla_graph_free(graph);
    embla_table_free(table);
}

/* The weight of the tie from one point to another; 0 if there is none. */
static float tie_of(const embla_ties *ties, int32_t from, int32_t to)
{
    for (int64_t t = ties->start[from]; t < ties->start[from + 1]; t++)
        if (ties->to[t] == to) return ties->weight[t];
    return 0;
}

static void ties_are_symmetric(void **state)
{
    enum { ROWS = 700 };
    embla_table *table = blobs_table(ROWS, 10, 8, 0.6f);
    embla_arena arena = {0};
    embla_ties ties;
    double all = 0;
    (void)state;
    ((float *)embla_table_data(table))[5] = NAN;
    embla_graph *graph = graph_of(table, 12, 2);
    assert_ok(embla_ties_of(graph, EMBLA_TIES_MOST, 2, &arena, &ties));
    assert_int_equal(ties.count, ROWS - 1);
    for (int32_t i = 0; i < ties.count; i++) {
        size_t count;
        const embla_neighbour *near = embla_graph_near(graph, ties.rows[i], &count);
        assert_int_equal(ties.rows[i], i + 1);
        for (size_t n = 0; n < count / 2; n++) /* the farther half may be beyond the width */
            assert_true(tie_of(&ties, i, (int32_t)near[n].row - 1) > 0);
        for (int64_t t = ties.start[i]; t < ties.start[i + 1]; t++) {
            assert_true(ties.to[t] != i && ties.weight[t] > 0);
            assert_true(t == ties.start[i] || ties.to[t] > ties.to[t - 1]);
            assert_true(tie_of(&ties, ties.to[t], i) == ties.weight[t]);
            all += (double)ties.weight[t];
        }
    }
    assert_near(all, ties.count, 1e-3);
    embla_arena_free(&arena);
    embla_graph_free(graph);
    embla_table_free(table);
}

/* ---- layouts ---- */

/* The share of the 10 nearest rows of every 7th row that are among its 10 nearest points. */
static double kept(const embla_graph *graph, const float *xy, int64_t rows)
{
    enum { NEAREST = 10 };
    int64_t hits = 0, all = 0;
    for (int64_t i = 0; i < rows; i += 7) {
        size_t count;
        const embla_neighbour *near = embla_graph_near(graph, i, &count);
        for (size_t n = 0; n < NEAREST; n++) {
            const float *a = xy + 2 * i, *b = xy + 2 * near[n].row;
            float apart = hypotf(a[0] - b[0], a[1] - b[1]);
            int64_t nearer = 0;
            for (int64_t j = 0; j < rows; j++)
                nearer += j != i && hypotf(a[0] - xy[2 * j], a[1] - xy[2 * j + 1]) < apart;
            hits += nearer < NEAREST;
            all++;
        }
    }
    return (double)hits / (double)all;
}

static void neighbours_stay_neighbours(void **state)
{
    enum { ROWS = 2100, DIM = 20, BLOBS = 30 };
    static float xy[2 * ROWS], plane[2 * ROWS];
    embla_layout_report report;
    (void)state;
    embla_table *table = blobs_table(ROWS, DIM, BLOBS, 0.3f);
    embla_graph *graph = graph_of(table, 30, 2);
    assert_ok(embla_layout(table, graph, &(embla_layout_options){.threads = 2}, xy, &report));
    assert_ok(embla_plane(table, NULL, plane, NULL));
    assert_true(report.rows == ROWS && report.nonfinite == 0);
    double ours = kept(graph, xy, ROWS), flat = kept(graph, plane, ROWS);
    print_message("nearest rows kept: %.3f; by PCA: %.3f\n", ours, flat);
    assert_true(ours > 0.4 && ours > 3 * flat);
    /* a point is nearer to the middle of its own blob than to any other */
    double middle[BLOBS][2] = {{0}};
    for (size_t i = 0; i < (size_t)2 * ROWS; i++)
        middle[i / 2 % BLOBS][i % 2] += (double)xy[i] / (ROWS / BLOBS);
    for (size_t i = 0; i < ROWS; i++) {
        size_t best = 0;
        double least = INFINITY;
        for (size_t b = 0; b < BLOBS; b++) {
            double apart =
                hypot((double)xy[2 * i] - middle[b][0], (double)xy[2 * i + 1] - middle[b][1]);
            if (apart < least) best = b;
            if (apart < least) least = apart;
        }
        assert_int_equal(best, i % BLOBS);
    }
    embla_graph_free(graph);
    embla_table_free(table);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    enum { ROWS = SLOW_BUILD ? 6000 : 12000, DIM = 8 };
    static float one[2 * ROWS], more[2 * ROWS];
    static const int counts[] = {2, 7};
    (void)state;
    embla_table *table = blobs_table(ROWS, DIM, 50, 0.5f);
    for (size_t c = 0; c <= COUNT_OF(counts); c++) {
        int threads = c == 0 ? 1 : counts[c - 1];
        embla_graph *graph = graph_of(table, 15, threads);
        embla_layout_options options = {.steps = steps_of(60), .threads = threads};
        assert_ok(embla_layout(table, graph, &options, c == 0 ? one : more, NULL));
        embla_graph_free(graph);
        if (c > 0) assert_memory_equal(one, more, sizeof one);
    }
    embla_table_free(table);
}

/* A layout of each instruction set. One may begin elsewhere, because PCA depends on it, so the
 * table has exact products: its plane is the same. */
static void every_instruction_set_gives_the_same_bits(void **state)
{
    enum { ROWS = 400, DIM = 3 };
    static float one[2 * ROWS], other[2 * ROWS], plane[2 * ROWS], first[2 * ROWS];
    (void)state;
    embla_table *table = check_zeros(EMBLA_F32, ROWS, DIM);
    float *rows = embla_table_data(table);
    for (size_t i = 0; i < (size_t)ROWS * DIM; i++) rows[i] = (float)(i * i % 17) - 8.0f;
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        embla_graph *graph = graph_of(table, 10, 1);
        assert_ok(embla_plane(table, NULL, s == 0 ? first : plane, NULL));
        bool same = s == 0 || memcmp(first, plane, sizeof plane) == 0;
        embla_layout_options options = {.steps = 100, .threads = 1};
        assert_ok(embla_layout(table, graph, &options, s == 0 ? one : other, NULL));
        if (s > 0 && same) assert_memory_equal(one, other, sizeof one);
        if (!same) print_message("%s: another plane, not compared\n", check_sets[s]);
        embla_graph_free(graph);
    }
    embla_kernels_use(NULL);
    embla_table_free(table);
}

/* ---- tables that are hardly any ---- */

static void lay_out(int64_t rows, size_t dim, float *values, float *xy)
{
    embla_table *table = NULL;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim},
                               values, (size_t)rows * dim * sizeof *values, NULL, &table));
    embla_graph *graph = graph_of(table, 0, 1);
    embla_layout_report report;
    int64_t points = 0;
    const embla_layout_options options = {.steps = SLOW_BUILD ? 300 : 0};
    assert_ok(embla_layout(table, graph, &options, xy, &report));
    for (int64_t i = 0; i < rows; i++) {
        bool finite = true;
        for (size_t k = 0; k < dim; k++) finite = finite && isfinite(values[(size_t)i * dim + k]);
        assert_true(finite ? isfinite(xy[2 * i]) && isfinite(xy[2 * i + 1])
                           : isnan(xy[2 * i]) && isnan(xy[2 * i + 1]));
        points += finite;
    }
    assert_true(report.rows == points && report.nonfinite == rows - points);
    embla_graph_free(graph);
    embla_table_free(table);
}

static void few_rows_have_a_layout(void **state)
{
    float rows[] = {1, 2, 3, -4, 5, 1, 0.5f, 9}, xy[8];
    (void)state;
    for (int64_t count = 1; count <= 4; count++) {
        lay_out(count, 2, rows, xy);
        if (count == 1) assert_true(xy[0] == 0 && xy[1] == 0);
        if (count > 1) assert_true(hypotf(xy[0] - xy[2], xy[1] - xy[3]) > 0);
    }
}

static void rows_that_are_not_finite_are_no_points(void **state)
{
    float rows[40], none[] = {NAN, 1, INFINITY, 0}, xy[40];
    (void)state;
    check_fill(1, COUNT_OF(rows), rows);
    rows[0] = NAN;
    rows[21] = -INFINITY;
    lay_out(20, 2, rows, xy);
    lay_out(2, 2, none, xy);
}

static void equal_rows_and_rows_of_zeros_have_a_layout(void **state)
{
    enum { ROWS = 300, DIM = 4 };
    static float rows[ROWS * DIM], xy[2 * ROWS];
    (void)state;
    lay_out(ROWS, DIM, rows, xy); /* all zeros */
    for (size_t i = 0; i < COUNT_OF(rows); i++) rows[i] = (float)(i % DIM);
    lay_out(ROWS, DIM, rows, xy); /* all equal */
    float most[2] = {0};
    for (size_t i = 0; i < COUNT_OF(xy); i++) most[i % 2] = fmaxf(most[i % 2], fabsf(xy[i]));
    assert_true(most[0] > 0.1f && most[1] > 0.1f); /* they do not stay in one place */
    for (size_t i = 0; i < COUNT_OF(rows) / 2; i++) rows[i] = (float)(i * 7 % 11) - 5.0f;
    lay_out(ROWS, DIM, rows, xy); /* half of them */
    memset(rows, 0, 30 * DIM * sizeof *rows);
    lay_out(ROWS, DIM, rows, xy); /* and some of zeros */
    for (size_t i = 0; i < COUNT_OF(rows); i++) rows[i] *= 1e37f;
    lay_out(ROWS, DIM, rows, xy);
}

/* ---- failures ---- */

typedef struct {
    int calls, stop_at;
    char what[16];
    int64_t last, total;
} caller;

static bool count_calls(void *context, const char *what, int64_t done, int64_t total)
{
    caller *c = context;
    if (strcmp(what, c->what) == 0) assert_true(done >= c->last);
    (void)snprintf(c->what, sizeof c->what, "%s", what);
    c->last = done;
    c->total = total;
    return ++c->calls != c->stop_at;
}

static void progress_is_reported_and_can_stop(void **state)
{
    float xy[400] = {5};
    embla_table *table = blobs_table(200, 6, 4, 0.3f);
    embla_graph *graph = NULL;
    caller c = {0}, stopping = {.stop_at = 1};
    (void)state;
    embla_graph_options options = {.progress = count_calls, .context = &stopping};
    assert_status(embla_graph_new(table, &options, &graph), EMBLA_ERR_STOPPED);
    assert_null(graph);
    options.context = &c;
    assert_ok(embla_graph_new(table, &options, &graph));
    assert_true(c.calls >= 2 && c.last == 200 && c.total == 200);
    embla_layout_options how = {.steps = 50, .progress = count_calls, .context = &c};
    c = (caller){.stop_at = 4};
    assert_status(embla_layout(table, graph, &how, xy, NULL), EMBLA_ERR_STOPPED);
    assert_error_has("of 50 done");
    assert_true(xy[0] == 5);
    c = (caller){0};
    assert_ok(embla_layout(table, graph, &how, xy, NULL));
    assert_true(c.last == 50 && c.total == 50);
    embla_graph_free(graph);
    embla_table_free(table);
}

static void wrong_calls_are_refused(void **state)
{
    float xy[8] = {5};
    embla_table *table = check_table(EMBLA_F32, 4, 4, 1), *other = check_table(EMBLA_F32, 5, 4, 1);
    embla_graph *graph = NULL;
    (void)state;
    assert_status(embla_graph_new(NULL, NULL, &graph), EMBLA_ERR_ARGUMENT);
    assert_status(embla_graph_new(table, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_graph_new(table, &(embla_graph_options){.k = 1025}, &graph),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("k is 1025; the maximum is 1024");
    assert_status(embla_graph_new(table, &(embla_graph_options){.threads = -1}, &graph),
                  EMBLA_ERR_ARGUMENT);
    assert_null(graph);
    graph = graph_of(table, 2, 1);
    assert_status(embla_layout(NULL, graph, NULL, xy, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_layout(table, NULL, NULL, xy, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_layout(table, graph, NULL, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_layout(other, graph, NULL, xy, NULL), EMBLA_ERR_SHAPE);
    assert_error_has("the graph has 4 rows, and the table has 5");
    assert_status(embla_layout(table, graph, &(embla_layout_options){.steps = -1}, xy, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_status(embla_layout(table, graph, &(embla_layout_options){.threads = -2}, xy, NULL),
                  EMBLA_ERR_ARGUMENT);
    assert_true(xy[0] == 5);
    embla_graph_free(graph);
    embla_graph_free(NULL);
    embla_table_free(table);
    embla_table_free(other);
}

static embla_status make_layout(const embla_table *table, float *xy)
{
    embla_graph *graph = NULL;
    EMBLA_TRY(embla_graph_new(table, &(embla_graph_options){.threads = 1}, &graph));
    embla_status status =
        embla_layout(table, graph, &(embla_layout_options){.steps = 30, .threads = 1}, xy, NULL);
    embla_graph_free(graph);
    return status;
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    (void)state;
    embla_table *table = blobs_table(60, 20, 3, 0.5f);
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        for (size_t at = 1;; at++) {
            float xy[120] = {5};
            embla_mem_fail(at, forever == 1);
            embla_status status = make_layout(table, xy);
            embla_mem_fail(0, false);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            assert_true(xy[0] == 5);
            failures++;
        }
        assert_true(failures > 10);
    }
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_graph_has_the_nearest_rows),
        cmocka_unit_test(a_graph_has_no_more_neighbours_than_rows),
        cmocka_unit_test(ties_are_symmetric),
        cmocka_unit_test(neighbours_stay_neighbours),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(every_instruction_set_gives_the_same_bits),
        cmocka_unit_test(few_rows_have_a_layout),
        cmocka_unit_test(rows_that_are_not_finite_are_no_points),
        cmocka_unit_test(equal_rows_and_rows_of_zeros_have_a_layout),
        cmocka_unit_test(progress_is_reported_and_can_stop),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
