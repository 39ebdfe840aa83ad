/* SPDX-License-Identifier: Apache-2.0 */
/* The Hartley transform against its definition, and repulsion by a grid against a sum over all
 * pairs in double.
 */
#include "check.h"

#include <math.h>

#include "base/mem.h"
#include "map/hartley.h"
#include "map/repel.h"

enum { WIDE = EMBLA_HARTLEY_WIDE };

static void a_transform_is_a_sum_of_cosines_and_sines(void **state)
{
    enum { MOST = 256 };
    static float in[MOST * WIDE], placed[MOST * WIDE], turns[MOST];
    const double turn = 2 * acos(-1.0);
    (void)state;
    for (size_t size = 2; size <= MOST; size *= 2) {
        check_fill(size, size * WIDE, in);
        embla_hartley_turns(size, turns);
        for (size_t x = 0; x < size; x++)
            memcpy(placed + embla_hartley_place(x, size) * WIDE, in + x * WIDE, WIDE * sizeof *in);
        embla_hartley(placed, size, turns);
        for (size_t u = 0; u < size; u++)
            for (size_t i = 0; i < WIDE; i++) {
                double sum = 0, most = 0;
                for (size_t x = 0; x < size; x++) {
                    double angle = turn * (double)(u * x % size) / (double)size;
                    sum += (double)in[x * WIDE + i] * (cos(angle) + sin(angle));
                    most += fabs((double)in[x * WIDE + i]);
                }
                assert_near(placed[u * WIDE + i], sum, 1e-6 * most);
            }
    }
}

static void every_set_of_kernels_gives_the_same_transform(void **state)
{
    enum { SIZE = 512 };
    static float one[SIZE * WIDE], other[SIZE * WIDE], turns[SIZE];
    (void)state;
    embla_hartley_turns(SIZE, turns);
    check_fill(3, SIZE * WIDE, one);
    embla_kernels_use(embla_kernels_find("scalar"));
    embla_hartley(one, SIZE, turns);
    for (size_t s = 0; s < CHECK_SETS; s++) {
        if (!embla_kernels_find(check_sets[s])) continue;
        embla_kernels_use(embla_kernels_find(check_sets[s]));
        check_fill(3, SIZE * WIDE, other);
        embla_hartley(other, SIZE, turns);
        assert_memory_equal(one, other, sizeof one);
    }
    embla_kernels_use(NULL);
}

/* Points around a few centres, so that some are near each other and others far away. */
static void make_points(int32_t count, double span, float *xy)
{
    uint64_t seed = (uint64_t)count;
    for (size_t i = 0; i < (size_t)count; i++)
        for (size_t axis = 0; axis < 2; axis++)
            xy[2 * i + axis] = (float)(span * (0.45 * cos((double)(i % 7 + 3 * axis)) +
                                               0.05 * (double)check_unit(&seed)));
}

/* The largest errors, in parts of a term (1) and of the largest force of one point (0.33). */
static void compare_with_pairs(int32_t count, double span, double tolerance)
{
    size_t n = (size_t)count;
    float *xy = malloc(2 * n * sizeof *xy), *force = malloc(2 * n * sizeof *force);
    float *field = malloc(n * sizeof *field);
    embla_repel *repel = NULL;
    make_points(count, span, xy);
    assert_ok(embla_repel_new(count, 2, &repel));
    assert_ok(embla_repel_run(repel, xy, field, force));
    double all = 0, all_found = 0;
    for (size_t i = 0; i < n; i++) {
        double sum = 0, x = 0, y = 0;
        for (size_t j = 0; j < n; j++) {
            if (j == i) continue;
            double dx = (double)xy[2 * i] - (double)xy[2 * j];
            double dy = (double)xy[2 * i + 1] - (double)xy[2 * j + 1];
            double near = 1 / (1 + dx * dx + dy * dy);
            sum += near;
            x += dx * near * near;
            y += dy * near * near;
        }
        double size = fmax(1, sum);
        assert_near(field[i], sum, tolerance * size);
        assert_near(force[2 * i], x, tolerance * size);
        assert_near(force[2 * i + 1], y, tolerance * size);
        all += sum;
        all_found += (double)field[i];
    }
    assert_near(all_found, all, 0.03 * all + 1e-5);
    embla_repel_free(repel);
    free(xy), free(force), free(field);
}

static void repulsion_is_that_of_all_pairs(void **state)
{
    (void)state;
    compare_with_pairs(1, 1, 0.05);
    compare_with_pairs(2, 1, 0.05);
    compare_with_pairs(300, 0.001, 0.05);
    compare_with_pairs(1000, 10, 0.05);
    compare_with_pairs(2000, 60, 0.05);
    compare_with_pairs(2000, 300, 0.05);
}

/* From one run to the next, points may spread and come together: the grid follows. */
static void a_grid_follows_its_points(void **state)
{
    static const double spans[] = {1, 200, 3, 1e6, 40, 0};
    enum { POINTS = 100 };
    float xy[2 * POINTS], field[POINTS], force[2 * POINTS], fresh[2 * POINTS];
    embla_repel *repel = NULL, *other = NULL;
    (void)state;
    assert_ok(embla_repel_new(POINTS, 1, &repel));
    for (size_t s = 0; s < COUNT_OF(spans); s++) {
        make_points(POINTS, spans[s], xy);
        assert_ok(embla_repel_run(repel, xy, field, force));
        assert_ok(embla_repel_new(POINTS, 1, &other));
        assert_ok(embla_repel_run(other, xy, field, fresh));
        embla_repel_free(other);
        assert_memory_equal(force, fresh, sizeof force);
    }
    embla_repel_free(repel);
}

static void any_number_of_threads_gives_the_same_bits(void **state)
{
    enum { POINTS = 20000 };
    static float xy[2 * POINTS], field[POINTS], force[2 * POINTS], one[2 * POINTS];
    static const int counts[] = {1, 2, 7};
    (void)state;
    make_points(POINTS, 120, xy);
    for (size_t c = 0; c < COUNT_OF(counts); c++) {
        embla_repel *repel = NULL;
        assert_ok(embla_repel_new(POINTS, counts[c], &repel));
        assert_ok(embla_repel_run(repel, xy, field, c == 0 ? one : force));
        embla_repel_free(repel);
        if (c > 0) assert_memory_equal(one, force, sizeof one);
    }
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    float xy[4] = {0, 0, 50, 1}, field[2], force[4];
    size_t live = embla_mem_live(), failures = 0;
    (void)state;
    for (size_t at = 1;; at++, failures++) {
        embla_repel *repel = NULL;
        embla_mem_fail(at, false);
        embla_status status = embla_repel_new(2, 1, &repel);
        if (status == EMBLA_OK) status = embla_repel_run(repel, xy, field, force);
        embla_mem_fail(0, false);
        embla_repel_free(repel);
        assert_int_equal(embla_mem_live(), live);
        if (status == EMBLA_OK) break;
        assert_status(status, EMBLA_ERR_MEMORY);
    }
    assert_int_equal(failures, 2);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(a_transform_is_a_sum_of_cosines_and_sines),
        cmocka_unit_test(every_set_of_kernels_gives_the_same_transform),
        cmocka_unit_test(repulsion_is_that_of_all_pairs),
        cmocka_unit_test(a_grid_follows_its_points),
        cmocka_unit_test(any_number_of_threads_gives_the_same_bits),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
