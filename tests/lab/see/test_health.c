/* SPDX-License-Identifier: Apache-2.0 */
/* The health of a table against slow sums over all rows and all pairs of rows, in long double;
 * hostile numbers; and stories260k, of whose rows 169 share one direction.
 */
#include "scratch.h"

#include <math.h>

#include "base/mem.h"
#include "embla_lab.h"
#include "slow.h"

static embla_health *health_of(const embla_table *table, embla_health_options options)
{
    embla_health *health = NULL;
    assert_ok(embla_health_new(table, &options, &health));
    assert_non_null(health);
    return health;
}

static size_t group_count(const embla_health *health)
{
    size_t count;
    (void)embla_health_groups(health, &count);
    return count;
}

static embla_health_group group_at(const embla_health *health, size_t n)
{
    size_t count;
    const embla_health_group *groups = embla_health_groups(health, &count);
    assert_true(n < count);
    return groups[n];
}

static embla_table *view(int64_t rows, size_t dim, const float *values)
{
    embla_table *table = NULL;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = rows, .dim = dim},
                               values, (size_t)rows * dim * sizeof *values, NULL, &table));
    return table;
}

/* Within 1e-12 of b, or of scale where that is larger. */
static void assert_close(double a, double b, double scale)
{
    assert_near(a, b, 1e-12 * fmax(fabs(b), scale));
}

/* ---- the slow way ---- */

typedef struct {
    int64_t rows;
    size_t dim;
    float *values;
    double *norms; /* -1: not finite */
    long double *mean;
    int64_t finite;
} plain;

static const float *row_of(const plain *p, int64_t row)
{
    return p->values + (size_t)row * p->dim;
}

static plain plain_of(const embla_table *table)
{
    plain p = {.rows = embla_table_rows(table), .dim = embla_table_dim(table)};
    p.values = malloc((size_t)p.rows * p.dim * sizeof *p.values);
    p.norms = malloc((size_t)p.rows * sizeof *p.norms);
    p.mean = calloc(p.dim, sizeof *p.mean);
    assert_true(p.values && p.norms && p.mean);
    for (int64_t row = 0; row < p.rows; row++) {
        float *x = p.values + (size_t)row * p.dim;
        long double sum = 0;
        bool finite = true;
        check_row(table, row, x);
        for (size_t k = 0; k < p.dim; k++) {
            finite = finite && isfinite(x[k]);
            sum += (long double)x[k] * (long double)x[k];
        }
        p.norms[row] = finite ? (double)sqrtl(sum) : -1;
        p.finite += finite;
        for (size_t k = 0; k < p.dim && finite; k++) p.mean[k] += (long double)x[k];
    }
    for (size_t k = 0; k < p.dim && p.finite > 0; k++) p.mean[k] /= (long double)p.finite;
    return p;
}

static void plain_free(plain *p)
{
    free(p->values);
    free(p->norms);
    free(p->mean);
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static embla_health_info info_of(const embla_health *health)
{
    embla_health_info info;
    assert_ok(embla_health_describe(health, &info));
    return info;
}

static void compare_norms(const embla_health_info *s, const plain *p)
{
    static const double shares[] = {0.001, 0.01, 0.05, 0.25, 0.5, 0.75, 0.95, 0.99, 0.999};
    double *sorted = malloc(((size_t)p->rows + 1) * sizeof *sorted);
    int64_t n = 0, bins[EMBLA_HEALTH_BINS] = {0}, all = 0;
    long double sum = 0, squares = 0;
    assert_non_null(sorted);
    for (int64_t row = 0; row < p->rows; row++)
        if (p->norms[row] >= 0) sorted[n++] = p->norms[row];
    qsort(sorted, (size_t)n, sizeof *sorted, by_size);
    for (int64_t i = 0; i < n; i++) sum += sorted[i];
    for (int64_t i = 0; i < n; i++) squares += powl(sorted[i] - sum / n, 2);
    assert_close(s->norm_min, sorted[0], 0);
    assert_close(s->norm_max, sorted[n - 1], 0);
    assert_close(s->norm_mean, (double)(sum / n), 0);
    assert_close(s->norm_deviation, (double)sqrtl(squares / n), s->norm_mean);
    for (size_t q = 0; q < COUNT_OF(shares); q++) {
        double at = shares[q] * (double)(n - 1);
        int64_t low = (int64_t)floor(at), high = (int64_t)ceil(at);
        double between = at - floor(at);
        assert_close(s->norm_quantiles[q], sorted[low] * (1 - between) + sorted[high] * between,
                     s->norm_max);
    }
    for (int64_t i = 0; i < n; i++) {
        int bin = 0;
        while (bin < EMBLA_HEALTH_BINS - 1 &&
               sorted[i] >=
                   s->norm_min + (s->norm_max - s->norm_min) * (bin + 1) / EMBLA_HEALTH_BINS)
            bin++;
        bins[s->norm_max > s->norm_min ? bin : 0]++;
    }
    for (int i = 0; i < EMBLA_HEALTH_BINS; i++) {
        all += s->norm_bins[i];
        assert_true(llabs(s->norm_bins[i] - bins[i]) <= 1); /* one on the edge may round over */
    }
    assert_int_equal(all, n);
    assert_true(s->norm_bins[0] > 0 &&
                (n == 1 || s->norm_max == s->norm_min || s->norm_bins[EMBLA_HEALTH_BINS - 1] > 0));
    free(sorted);
}

/* The mean cosine of all pairs. */
static double plain_anisotropy(const plain *p)
{
    long double sum = 0;
    int64_t pairs = 0;
    for (int64_t a = 0; a < p->rows; a++) {
        for (int64_t b = 0; b < a && p->norms[a] > 0; b++) {
            long double dot = 0;
            if (!(p->norms[b] > 0)) continue;
            for (size_t k = 0; k < p->dim; k++)
                dot += (long double)row_of(p, a)[k] * (long double)row_of(p, b)[k];
            sum += dot / ((long double)p->norms[a] * (long double)p->norms[b]);
            pairs++;
        }
    }
    return pairs > 0 ? (double)(sum / pairs) : NAN;
}

static double plain_distance(const plain *p, int64_t row)
{
    long double sum = 0;
    for (size_t k = 0; k < p->dim; k++) sum += powl((long double)row_of(p, row)[k] - p->mean[k], 2);
    return (double)sqrtl(sum);
}

static void compare_mean(const embla_health_info *s, const plain *p)
{
    long double length = 0, sum = 0, squares = 0;
    for (size_t k = 0; k < p->dim; k++) length += p->mean[k] * p->mean[k];
    assert_close(s->mean_norm, (double)sqrtl(length), s->norm_mean);
    for (int64_t row = 0; row < p->rows; row++)
        if (p->norms[row] >= 0) sum += plain_distance(p, row);
    assert_close(s->from_mean, (double)(sum / p->finite), s->norm_mean);
    for (int64_t row = 0; row < p->rows; row++)
        if (p->norms[row] >= 0) squares += powl(plain_distance(p, row) - sum / p->finite, 2);
    assert_near(s->from_mean_deviation, (double)sqrtl(squares / p->finite), 1e-9 * s->norm_max);
}

static void compare_summary(const embla_table *table, const embla_health *health)
{
    const embla_health_info info = info_of(health), *s = &info;
    plain p = plain_of(table);
    size_t zero = 0, nonfinite = 0, zeros, nonfinites;
    const int64_t *zero_rows = embla_health_zero(health, &zeros);
    const int64_t *nonfinite_rows = embla_health_nonfinite(health, &nonfinites);
    for (int64_t row = 0; row < p.rows; row++) {
        if (p.norms[row] == 0) assert_int_equal(zero_rows[zero++], row);
        if (p.norms[row] < 0) assert_int_equal(nonfinite_rows[nonfinite++], row);
    }
    assert_int_equal(zeros, zero);
    assert_int_equal(nonfinites, nonfinite);
    assert_int_equal(s->rows, p.rows);
    assert_int_equal(s->dim, p.dim);
    assert_int_equal(s->zero, zero);
    assert_int_equal(s->nonfinite, nonfinite);
    if (p.finite > 0) {
        compare_norms(s, &p);
        compare_mean(s, &p);
    }
    double anisotropy = plain_anisotropy(&p);
    if (isnan(anisotropy))
        assert_true(isnan(s->anisotropy));
    else
        assert_near(s->anisotropy, anisotropy, 1e-12);
    plain_free(&p);
}

/* By cosine with the mean of unused rows, by the definition. */
static void compare_ranking(const embla_table *table, const embla_health *health,
                            const int64_t *unused, int64_t count)
{
    plain p = plain_of(table);
    long double *to = calloc(p.dim, sizeof *to), length = 0;
    double last = INFINITY;
    assert_non_null(to);
    assert_int_equal(info_of(health).ranked_by, EMBLA_HEALTH_RANKING_UNUSED);
    size_t unused_count, ranked_count;
    const int64_t *taken = embla_health_unused(health, &unused_count);
    const embla_neighbour *ranked = embla_health_ranked(health, &ranked_count);
    assert_int_equal(unused_count, count);
    assert_int_equal(ranked_count, p.finite);
    for (int64_t i = 0; i < count; i++) {
        assert_int_equal(taken[i], unused[i]);
        for (size_t k = 0; k < p.dim; k++) to[k] += row_of(&p, unused[i])[k] / (long double)count;
    }
    for (size_t k = 0; k < p.dim; k++) {
        to[k] -= p.mean[k];
        length += to[k] * to[k];
    }
    bool *seen = calloc((size_t)p.rows, 1);
    assert_non_null(seen);
    for (int64_t n = 0; n < p.finite; n++) {
        embla_neighbour at = ranked[n];
        long double dot = 0;
        assert_true(p.norms[at.row] >= 0 && !seen[at.row] && at.score <= last);
        seen[at.row] = true;
        last = at.score;
        for (size_t k = 0; k < p.dim; k++) dot += (row_of(&p, at.row)[k] - p.mean[k]) * to[k];
        double both = plain_distance(&p, at.row) * (double)sqrtl(length);
        assert_near(at.score, both > 0 ? (double)dot / both : 0, 1e-9);
    }
    free(seen);
    free(to);
    plain_free(&p);
}

static void compare_norm_ranking(const embla_table *table, const embla_health *health)
{
    plain p = plain_of(table);
    embla_neighbour before = {-1, -1};
    size_t unused_count, ranked_count;
    const embla_neighbour *ranked = embla_health_ranked(health, &ranked_count);
    (void)embla_health_unused(health, &unused_count);
    assert_int_equal(info_of(health).ranked_by, EMBLA_HEALTH_RANKING_NORM);
    assert_int_equal(unused_count, 0);
    assert_int_equal(ranked_count, p.finite);
    for (int64_t n = 0; n < p.finite; n++) {
        const embla_neighbour at = ranked[n];
        assert_close(at.score, p.norms[at.row], 0);
        assert_true(at.score > before.score || (at.score == before.score && at.row > before.row));
        before = at;
    }
    plain_free(&p);
}

/* ---- tables ---- */

enum { ROWS = 700, DIM = 64, MOST_DIM = 256 };

/* Rows that lean to one side; some are copies, scaled copies, zeros, or hold no number. */
static void make_values(float *values, size_t dim, uint64_t seed)
{
    check_fill(seed, ROWS * dim, values);
    for (size_t row = 0; row < ROWS; row++) {
        float *x = values + row * dim;
        for (size_t k = 0; k < dim; k++) x[k] += 0.02f * (float)(k % 5);
        if (row % 50 == 7) memcpy(x, values, dim * sizeof *x);
        for (size_t k = 0; k < dim && row % 50 == 8; k++) x[k] = values[k] * 1.5f;
        for (size_t k = 0; k < dim && row % 90 == 20; k++) x[k] = 0;
        if (row % 150 == 40) x[row % dim] = row % 4 ? NAN : INFINITY;
    }
}

static embla_table *make_table(embla_dtype dtype, uint64_t seed)
{
    static float values[ROWS * MOST_DIM];
    size_t dim = check_dim(dtype, DIM);
    make_values(values, dim, seed);
    return check_table_of(dtype, ROWS, dim, values);
}

static void every_dtype_has_the_figures_of_slow_sums(void **state)
{
    (void)state;
    for (int dtype = CHECK_FIRST_DTYPE; dtype <= CHECK_LAST_DTYPE; dtype += SLOW_BUILD ? 3 : 1) {
        embla_table *table = make_table((embla_dtype)dtype, 3);
        embla_health *health = health_of(table, (embla_health_options){.untied = true});
        compare_summary(table, health);
        compare_norm_ranking(table, health);
        embla_health_free(health);
        embla_table_free(table);
    }
}

static void duplicates_and_groups_are_named(void **state)
{
    embla_table *table = make_table(EMBLA_F32, 3);
    embla_health *health = health_of(table, (embla_health_options){0});
    embla_health_group g;
    size_t copy_count;
    const embla_health_duplicate *copies = embla_health_duplicates(health, &copy_count);
    int64_t n = 0;
    (void)state;
    for (int row = 0; row < ROWS; row++) {
        bool spoilt = row % 90 == 20 || row % 150 == 40;
        if (spoilt || (row % 50 != 7 && (row % 50 != 8 || row == 8))) continue;
        assert_int_equal(copies[n].row, row);
        assert_int_equal(copies[n++].original, row % 50 == 7 ? 0 : 8);
    }
    assert_int_equal(copy_count, n);
    assert_int_equal(info_of(health).duplicates, n);
    assert_int_equal(group_count(health), 1);
    g = group_at(health, 0);
    assert_int_equal(g.count, n + 2); /* and rows 0 and 8 */
    assert_int_equal(g.rows[0], 0);
    assert_int_equal(g.rows[1], 7);
    assert_int_equal(g.rows[2], 8);
    for (int64_t i = 1; i < g.count; i++) assert_true(g.rows[i] > g.rows[i - 1]);
    assert_near(g.norm_max, 1.5 * g.norm_min, 1e-6);
    assert_true(g.cosine_min > 0.9999999 && g.cosine_min <= 1);
    compare_ranking(table, health, g.rows, g.count); /* the largest group is taken for unused */
    embla_health_free(health);
    embla_table_free(table);
}

/* Three pairs and two threes: by size, then by their first row. */
static void the_largest_group_comes_first(void **state)
{
    enum { N = 12, D = 8 };
    static const int same[N] = {0, 1, 2, 0, 1, 5, 2, 5, 8, 5, 10, 2};
    static const int64_t firsts[] = {2, 5, 0, 1}, counts[] = {3, 3, 2, 2};
    float values[N * D];
    embla_health_group g;
    (void)state;
    check_fill(4, N * D, values);
    for (int row = 0; row < N; row++)
        memcpy(values + row * D, values + same[row] * D, D * sizeof *values);
    embla_table *table = view(N, D, values);
    embla_health *health = health_of(table, (embla_health_options){0});
    assert_int_equal(group_count(health), 4);
    for (size_t i = 0; i < 4; i++) {
        g = group_at(health, i);
        assert_int_equal(g.rows[0], firsts[i]);
        assert_int_equal(g.count, counts[i]);
        for (int64_t k = 0; k < g.count; k++) assert_int_equal(same[g.rows[k]], firsts[i]);
    }
    embla_health_free(health);
    embla_table_free(table);
}

/* ---- unused rows ---- */

static void unused_rows_that_are_given_come_before_padding(void **state)
{
    embla_table *table = make_table(EMBLA_F32, 5);
    static const int64_t given[] = {3, 690, 20, 11, 40}, used[] = {3, 690, 11};
    embla_health_options options = {.tokens = 650, .unused = given, .unused_count = 5};
    int64_t padding[60], count = 0;
    (void)state;
    embla_health *health = health_of(table, options);
    compare_ranking(table, health, used, 3); /* 20 is zeros, 40 holds a NaN */
    assert_int_equal(info_of(health).padding, 50);
    embla_health_free(health);
    options = (embla_health_options){.tokens = 650};
    for (int64_t row = 651; row < ROWS; row++) padding[count++] = row; /* 650 is zeros */
    health = health_of(table, options);
    compare_ranking(table, health, padding, count);
    embla_health_free(health);
    options.untied = true;
    health = health_of(table, options);
    compare_norm_ranking(table, health);
    embla_health_free(health);
    embla_table_free(table);
}

/* Padding of zeros says nothing, nor does a list of such rows; a group does, if it is large. */
static void without_unused_rows_the_norm_ranks(void **state)
{
    enum { N = 40, D = 16 };
    static const int64_t zeros[] = {38, 39};
    float values[N * D];
    (void)state;
    check_fill(4, N * D, values);
    memset(values + 36 * D, 0, 4 * D * sizeof *values);
    memcpy(values + 9 * D, values + 4 * D, D * sizeof *values); /* two rows are too few */
    embla_table *table = view(N, D, values);
    embla_health_options options[] = {{0},
                                      {.tokens = 36},
                                      {.tokens = N},
                                      {.tokens = 10 * N},
                                      {.unused = zeros, .unused_count = 2},
                                      {.unused = zeros}};
    for (size_t i = 0; i < COUNT_OF(options); i++) {
        embla_health *health = health_of(table, options[i]);
        compare_norm_ranking(table, health);
        assert_int_equal(info_of(health).padding, i == 1 ? 4 : 0);
        embla_health_free(health);
    }
    memcpy(values + 30 * D, values + 4 * D, D * sizeof *values); /* three will do */
    embla_health *health = health_of(table, options[1]);
    compare_ranking(table, health, (const int64_t[]){4, 9, 30}, 3);
    embla_health_free(health);
    embla_table_free(table);
}

static void in_few_dims_a_shared_direction_is_no_sign(void **state)
{
    for (size_t dim = 7; dim <= 8; dim++) {
        float values[6 * 8];
        (void)state;
        check_fill(4, 6 * 8, values);
        for (int row = 1; row < 4; row++)
            memcpy(values + (size_t)row * dim, values, dim * sizeof(float));
        embla_table *table = view(6, dim, values);
        embla_health *health = health_of(table, (embla_health_options){0});
        assert_int_equal(group_count(health), 1);
        assert_int_equal(info_of(health).ranked_by,
                         dim < 8 ? EMBLA_HEALTH_RANKING_NORM : EMBLA_HEALTH_RANKING_UNUSED);
        embla_health_free(health);
        embla_table_free(table);
    }
}

/* ---- edges ---- */

static void small_and_hostile_tables_have_figures_too(void **state)
{
    static const struct {
        int64_t rows;
        size_t dim;
        float values[12];
    } cases[] = {
        {1, 1, {2}},
        {1, 1, {0}},
        {1, 1, {NAN}},
        {1, 3, {1, -2, 3}},
        {3, 1, {1, -2, 5}},
        {2, 2, {0, 0, -0.0f, 0}},
        {2, 2, {NAN, 1, 1, INFINITY}},
        {4, 3, {1, 2, 3, 1, 2, 3, 1, 2, 3, 1, 2, 3}},
        {3, 2, {3e38f, 3e38f, -3e38f, 1, 1e38f, -1e38f}},
        {3, 2, {1e-45f, 0, 3e-42f, -1e-40f, 1e-45f, 1e-45f}},
        {3, 2, {1e-45f, 0, 3e38f, 1, -INFINITY, 2}},
        {3, 4, {1, 0, 0, 0, 0, 0, 0, 0, NAN, 0, 0, 0}},
    };
    (void)state;
    for (size_t i = 0; i < COUNT_OF(cases); i++) {
        embla_table *table = view(cases[i].rows, cases[i].dim, cases[i].values);
        embla_health *health = health_of(table, (embla_health_options){.alike = 0.9});
        compare_summary(table, health);
        compare_norm_ranking(table, health);
        embla_health_free(health);
        embla_table_free(table);
    }
}

/* All rows of one direction: their mean is the table's, and no way leads from one to the other. */
static void a_table_that_is_all_one_row_ranks_by_norm(void **state)
{
    enum { N = 1000, D = 24 };
    static float values[N * D];
    (void)state;
    for (int i = 0; i < N * D; i++) values[i] = 0.1f * (float)(i % D + 1);
    embla_table *table = view(N, D, values);
    embla_health *health = health_of(table, (embla_health_options){0});
    const embla_health_info info = info_of(health), *s = &info;
    assert_int_equal(s->duplicates, N - 1);
    assert_int_equal(s->norm_bins[0], N);
    assert_near(s->anisotropy, 1, 1e-12);
    compare_norm_ranking(table, health);
    embla_health_free(health);
    for (int i = 0; i < N * D; i++) /* lengths so far apart that sums are rounded */
        values[i] *= i / D % 7 == 0 ? 1e9f : i / D % 3 == 0 ? 1.2345e-9f : 1e-4f * (float)(i / D);
    health = health_of(table, (embla_health_options){0});
    assert_int_equal(group_count(health), 1);
    compare_norm_ranking(table, health);
    embla_health_free(health);
    embla_table_free(table);
}

static void a_view_with_gaps_between_its_rows_is_read_right(void **state)
{
    enum { N = 90, D = 5, STRIDE = 7 };
    static float values[N * STRIDE];
    embla_table_options options = {.row_stride = STRIDE * sizeof(float)};
    embla_table *table = NULL;
    (void)state;
    check_fill(8, N * STRIDE, values);
    for (int row = 0; row < N; row++) values[row * STRIDE + D] = NAN;
    assert_ok(embla_table_view(&(embla_table_layout){.dtype = EMBLA_F32, .rows = N, .dim = D},
                               values, sizeof values, &options, &table));
    embla_health *health = health_of(table, (embla_health_options){0});
    compare_summary(table, health);
    embla_health_free(health);
    embla_table_free(table);
}

/* ---- the same for any number of threads ---- */

static void the_same_bits_for_any_number_of_threads(void **state)
{
    enum { N = SLOW_BUILD ? 1101 : 3001, D = 136, TOKENS = N - 11 };
    embla_table *table = check_table(EMBLA_F32, N, D, 6);
    embla_health *one = health_of(table, (embla_health_options){.threads = 1, .tokens = TOKENS});
    (void)state;
    for (int threads = 2; threads < 9; threads += 3) {
        embla_health *many =
            health_of(table, (embla_health_options){.threads = threads, .tokens = TOKENS});
        const embla_health_info x = info_of(one), y = info_of(many);
        assert_memory_equal(&x, &y, sizeof x);
        size_t count, same;
        const embla_neighbour *a = embla_health_ranked(one, &count);
        const embla_neighbour *b = embla_health_ranked(many, &same);
        assert_int_equal(count, N);
        assert_int_equal(same, N);
        for (size_t n = 0; n < N; n++) {
            assert_int_equal(a[n].row, b[n].row);
            assert_true(a[n].score == b[n].score);
        }
        embla_health_free(many);
    }
    compare_summary(table, one);
    embla_health_free(one);
    embla_table_free(table);
}

/* ---- what is refused ---- */

static void wrong_options_are_refused_with_both_numbers(void **state)
{
    static const float values[] = {1, 2, 3, 4};
    static const int64_t past[] = {0, 2}, below[] = {-1};
    embla_table *table = view(2, 2, values);
    embla_health *health = (embla_health *)(uintptr_t)values;
    static const double bounds[] = {1, 0.5, -1, NAN, 2};
    (void)state;
    embla_health_options o = {.unused = past, .unused_count = 2};
    assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_RANGE);
    assert_error_has("unused row 2 at index 1; the table has 2 rows");
    o = (embla_health_options){.unused = below, .unused_count = 1};
    assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_RANGE);
    o = (embla_health_options){.unused_count = 1};
    assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_ARGUMENT);
    o = (embla_health_options){.tokens = -1};
    assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_ARGUMENT);
    o = (embla_health_options){.threads = -1};
    assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_ARGUMENT);
    for (size_t i = 0; i < COUNT_OF(bounds); i++) {
        o = (embla_health_options){.alike = bounds[i]};
        assert_status(embla_health_new(table, &o, &health), EMBLA_ERR_ARGUMENT);
    }
    assert_status(embla_health_new(NULL, NULL, &health), EMBLA_ERR_ARGUMENT);
    assert_status(embla_health_new(table, NULL, NULL), EMBLA_ERR_ARGUMENT);
    assert_ptr_equal(health, values);
    embla_table_free(table);
}

static void no_health_answers_nothing(void **state)
{
    size_t count = 77;
    (void)state;
    embla_health_free(NULL);
    embla_health_info info;
    assert_status(embla_health_describe(NULL, &info), EMBLA_ERR_ARGUMENT);
    assert_string_equal(embla_error(), "embla_health_describe: health is NULL");
    assert_null(embla_health_groups(NULL, &count));
    assert_int_equal(count, 0);
    assert_null(embla_health_ranked(NULL, &count));
    assert_null(embla_health_nonfinite(NULL, &count));
    assert_null(embla_health_zero(NULL, &count));
    assert_null(embla_health_duplicates(NULL, &count));
    assert_null(embla_health_unused(NULL, &count));
    assert_int_equal(count, 0);
}

static void an_allocation_that_fails_is_reported_and_leaks_nothing(void **state)
{
    embla_table *table = make_table(EMBLA_F32, 3);
    (void)state;
    for (int forever = 0; forever < 2; forever++) {
        size_t live = embla_mem_live(), failures = 0;
        for (size_t at = 1;; at++) {
            embla_health *health = NULL;
            embla_health_options options = {.threads = 2};
            embla_mem_fail(at, forever == 1);
            embla_status status = embla_health_new(table, &options, &health);
            embla_mem_fail(0, false);
            assert_true((status == EMBLA_OK) == (health != NULL));
            embla_health_free(health);
            assert_int_equal(embla_mem_live(), live);
            if (status == EMBLA_OK) break;
            assert_int_equal(status, EMBLA_ERR_MEMORY);
            failures++;
        }
        assert_true(failures >= 6);
    }
    embla_table_free(table);
}

static void a_file_that_was_cut_short_is_noticed(void **state)
{
    static const char header[] = "{'descr': '<f4', 'fortran_order': False, 'shape': (64, 32), }";
    char bytes[128 + 64 * 32 * 4];
    scratch s;
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_health *health = NULL;
    (void)state;
    scratch_new(&s);
    memset(bytes, ' ', 128);
    memcpy(bytes, "\x93NUMPY\x01\x00\x76\x00", 10);
    memcpy(bytes + 10, header, sizeof header - 1);
    bytes[127] = '\n';
    memset(bytes + 128, 0, sizeof bytes - 128);
    scratch_write(scratch_path(&s, "a.npy"), bytes, sizeof bytes);
    assert_int_equal(chmod(scratch_path(&s, "a.npy"), 0644), 0);
    assert_ok(embla_checkpoint_open(s.path, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    assert_int_equal(truncate(s.path, 4096), 0);
    assert_status(embla_health_new(table, NULL, &health), EMBLA_ERR_IO);
    assert_null(health);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
    scratch_free(&s);
}

/* ---- a real one ---- */

static void stories260k_has_169_rows_of_one_direction(void **state)
{
    const char *data = getenv("EMBLA_DATA");
    char path[1024];
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_health_group g;
    (void)state;
    if (!data) {
        print_message("EMBLA_DATA is not set: skipped\n");
        skip();
    }
    (void)snprintf(path, sizeof path, "%s/stories260k/stories260K.bin", data);
    assert_ok(embla_checkpoint_open(path, NULL, &checkpoint));
    assert_ok(embla_table_open(checkpoint, NULL, NULL, &table));
    embla_health *health = health_of(table, (embla_health_options){0});
    compare_summary(table, health);
    assert_int_equal(group_count(health), 1);
    g = group_at(health, 0);
    assert_int_equal(g.count, 169);
    assert_int_equal(g.rows[0], 0);
    assert_int_equal(g.rows[1], 2);
    assert_near(g.norm_min, 2.773, 5e-4);
    assert_near(g.norm_max, 2.773, 5e-4);
    assert_true(g.cosine_min > 0.999999);
    compare_ranking(table, health, g.rows, g.count);
    embla_health_free(health);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
}

int main(void)
{
    const struct CMUnitTest tests[] = {
        cmocka_unit_test(every_dtype_has_the_figures_of_slow_sums),
        cmocka_unit_test(duplicates_and_groups_are_named),
        cmocka_unit_test(the_largest_group_comes_first),
        cmocka_unit_test(unused_rows_that_are_given_come_before_padding),
        cmocka_unit_test(without_unused_rows_the_norm_ranks),
        cmocka_unit_test(in_few_dims_a_shared_direction_is_no_sign),
        cmocka_unit_test(small_and_hostile_tables_have_figures_too),
        cmocka_unit_test(a_table_that_is_all_one_row_ranks_by_norm),
        cmocka_unit_test(a_view_with_gaps_between_its_rows_is_read_right),
        cmocka_unit_test(the_same_bits_for_any_number_of_threads),
        cmocka_unit_test(wrong_options_are_refused_with_both_numbers),
        cmocka_unit_test(no_health_answers_nothing),
        cmocka_unit_test(an_allocation_that_fails_is_reported_and_leaks_nothing),
        cmocka_unit_test(a_file_that_was_cut_short_is_noticed),
        cmocka_unit_test(stories260k_has_169_rows_of_one_direction),
    };
    return cmocka_run_group_tests(tests, NULL, NULL);
}
