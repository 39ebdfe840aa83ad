/* SPDX-License-Identifier: Apache-2.0 */
/* Communities of tables whose communities are known, and of tables that have hardly any rows.
 */
#include "engine.h"

#include <math.h>

#include "base/mem.h"
#include "blobs.h"

static embla_communities *communities_of(const embla_table *table, size_t k, size_t most,
                                         int threads)
{
    embla_graph *graph = NULL;
    embla_communities *communities = NULL;
    embla_communities_options options = {.max_communities = most, .threads = threads};
    assert_ok(embla_graph_new(table, &(embla_graph_options){.k = k, .threads = threads}, &graph));
    assert_ok(embla_communities_new(graph, &options, &communities));
    embla_graph_free(graph); /* communities do not need it any more */
    return communities;
}

/* What always holds. Returns the number of communities. */
static size_t check_whole(const embla_communities *communities, int64_t rows)
{
    size_t count, labelled;
    const embla_community *list = embla_communities_list(communities, &count);
    const int32_t *labels = embla_communities_labels(communities, &labelled);
    int64_t sizes[1024] = {0};
    assert_int_equal(labelled, rows);
    for (int64_t row = 0; row < rows; row++) {
        assert_true(labels[row] >= -1 && labels[row] < (int64_t)count);
        if (labels[row] >= 0) sizes[labels[row]]++;
    }
    for (size_t c = 0; c < count; c++) {
        assert_int_equal(list[c].rows, sizes[c]);
        assert_true(sizes[c] > 0 && (c == 0 || sizes[c] <= sizes[c - 1]));
        assert_int_equal(list[c].central_count, sizes[c] < 16 ? sizes[c] : 16);
        for (size_t i = 0; i < list[c].central_count; i++)
            assert_int_equal(labels[list[c].central[i]], c);
    }
    return count;
}

static void blobs_are_communities(void **state)
{
    enum { ROWS = 1800, BLOBS = 12 };
    embla_table *table = blobs_table(ROWS, 16, BLOBS, 0.3f);
    embla_communities *communities = communities_of(table, 15, 0, 2);
    size_t count;
    (void)state;
    assert_int_equal(check_whole(communities, ROWS), BLOBS);
    const int32_t *labels = embla_communities_labels(communities, &count);
    for (size_t row = 0; row < ROWS; row++) assert_int_equal(labels[row], labels[row % BLOBS]);
    embla_communities_free(communities);
    embla_table_free(table);
}

/* More blobs than communities: those that have no ties to another are labelled -1. */
static void there_are_no_more_communities_than_asked_for(void **state)
{
    static const size_t mosts[] = {1, 2, 5, 30, 1024};
    enum { ROWS = 2000 };
    (void)state;
    for (size_t m = 0; m < COUNT_OF(mosts); m++) {
        embla_table *table = blobs_table(ROWS, 6, 40, 0.8f);
        embla_communities *communities = communities_of(table, 10, mosts[m], 1);
        size_t count = check_whole(communities, ROWS);
        assert_true(count <= mosts[m] && count >= (mosts[m] < 8 ? mosts[m] : 8));
        embla_communities_free(communities);
        embla_table_free(table);
    }
}

/* Two large groups, and five rows with ties to each other and to the second group. */
static void small_communities_join_the_nearest(void **state)
{
    enum { LARGE = 6000, ROWS = LARGE + 5, DIM = 6 };
    embla_table *table = blobs_table(ROWS, DIM, 2, 0.1f);
    float *rows = embla_table_data(table), other[DIM];
    size_t count, near = 0;
    (void)state;
    memcpy(other, rows + DIM, sizeof other);
    for (size_t i = LARGE; i < ROWS; i++)
        for (size_t k = 0; k < DIM; k++)
            rows[i * DIM + k] = other[k] + (k == 2 ? 0.9f : k == i % DIM ? 0.02f : 0.0f);
    embla_communities *communities = communities_of(table, 12, 0, 1);
    (void)check_whole(communities, ROWS);
    const int32_t *labels = embla_communities_labels(communities, &count);
    int32_t label = labels[LARGE];
    for (size_t i = LARGE; i < ROWS; i++) assert_true(labels[i] == label && label >= 0);
    for (size_t i = 0; i < LARGE; i += 2) {
        assert_true(labels[i] != label);
        near += labels[i + 1] == label;
    }
    assert_true(near > 100);
    embla_communities_free(communities);
    embla_table_free(table);
}

static void any_number_of_threads_gives_the_same_labels(void **state)
{
    enum { ROWS = 6000 };
    static const int counts[] = {1, 2, 7};
    static int32_t one[ROWS];
    embla_table *table = blobs_table(ROWS, 8, 30, 0.9f);
    (void)state;
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        size_t count;
        embla_communities *communities = communities_of(table, 12, 0, counts[c]);
        const int32_t *labels = embla_communities_labels(communities, &count);
        if (c == 0) memcpy(one, labels, sizeof one);
        assert_memory_equal(one, labels, sizeof one);
        embla_communities_free(communities);
    }
    embla_table_free(table);
}

static void tables_that_are_hardly_any(void **state)
{
    float rows[60] = {0};
    (void)state;
    for (int kind = 0; kind < 3; kind++) { /* zeros, equal rows, random rows */
        if (kind == 1)
            for (size_t i = 0; i < COUNT_OF(rows); i++) rows[i] = (float)(i % 3);
        if (kind == 2) check_fill(4, COUNT_OF(rows), rows);
        for (int64_t count = 1; count <= 20; count += count < 4 ? 1 : 8) {
            embla_table *table = NULL;
            assert_ok(
                embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = count, .dim = 3},
                                 rows, (size_t)count * 3 * sizeof *rows, NULL, &table));
            embla_communities *communities = communities_of(table, 0, 0, 1);
            assert_true(check_whole(communities, count) >= 1);
            embla_communities_free(communities);
            embla_table_free(table);
        }
    }
    float bad[] = {NAN, 0, 1, 2, 1, INFINITY};
    embla_table *table = NULL;
    for (size_t last = 1; last <= 3; last += 2) {
        size_t count;
        assert_ok(embla_table_view(
            &(embla_table_layout){.dtype = EMBLA_F32, .rows = (int64_t)last, .dim = 2}, bad,
            last * 2 * sizeof *bad, NULL, &table));
        embla_communities *communities = communities_of(table, 0, 0, 1);
        assert_int_equal(check_whole(communities, (int64_t)last), last / 2);
        assert_int_equal(embla_communities_labels(communities, &count)[0], -1);
        embla_communities_free(communities);
        embla_table_free(table);
    }
}

/* ---- failures ---- */

static bool stop(void *context, const char *what, int64_t done, int64_t total)
{
    int *left = context;
    assert_string_equal(what, "communities");
    assert_true(done <= total);
    return (*left)-- > 0;
}

static void wrong_calls_are_refused(void **state)
{
    embla_table *table = blobs_table(50, 4, 3, 0.5f);
    embla_graph *graph = NULL;
    embla_communities *communities = NULL;
    size_t count = 3;
    int left = 1;
    (void)state;
    assert_ok(embla_graph_new(table, NULL, &graph));
    assert_status(embla_communities_new(NULL, NULL, &communities), EMBLA_ERR_ARGUMENT);
    assert_status(embla_communities_new(graph, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_status(embla_communities_new(
                      graph, &(embla_communities_options){.max_communities = 1025}, &communities),
                  EMBLA_ERR_ARGUMENT);
    assert_error_has("max_communities is 1025; the maximum is 1024");
    assert_status(
        embla_communities_new(graph, &(embla_communities_options){.threads = -1}, &communities),
        EMBLA_ERR_ARGUMENT);
    embla_communities_options options = {.progress = stop, .context = &left};
    assert_status(embla_communities_new(graph, &options, &communities), EMBLA_ERR_STOPPED);
    assert_null(communities);
    left = 1000;
    assert_ok(embla_communities_new(graph, &options, &communities));
    embla_communities_free(communities);
    embla_communities_free(NULL);
    assert_null(embla_communities_list(NULL, &count));
    assert_int_equal(count, 0);
    assert_null(embla_communities_labels(NULL, &count));
    embla_graph_free(graph);
    embla_table_free(table);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    embla_table *table = blobs_table(900, 5, 7, 0.9f);
    embla_graph *graph = NULL;
    (void)state;
    assert_ok(embla_graph_new(table, &(embla_graph_options){.k = 5}, &graph));
    for (int forever = 0; forever < 2; forever++) {
        size_t failures = 0, live = embla_mem_live();
        for (size_t at = 1;; at++) {
            embla_communities *communities = NULL;
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_communities_new(
                graph, &(embla_communities_options){.threads = 1}, &communities);
            embla_mem_fail(0, false);
            embla_communities_free(communities);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_status(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 3);
    }
    embla_graph_free(graph);
    embla_table_free(table);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(blobs_are_communities),
        cmocka_unit_test(there_are_no_more_communities_than_asked_for),
        cmocka_unit_test(small_communities_join_the_nearest),
        cmocka_unit_test(any_number_of_threads_gives_the_same_labels),
        cmocka_unit_test(tables_that_are_hardly_any),
        cmocka_unit_test(wrong_calls_are_refused),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
