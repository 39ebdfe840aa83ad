/* SPDX-License-Identifier: Apache-2.0 */
/* Ties of a graph, as in t-SNE (van der Maaten and Hinton 2008). A point divides a weight of 1
 * among its neighbours by a Gaussian of their distance. The width of the Gaussian is chosen for
 * each point, so that dense and sparse regions look alike. The tie of two points is the mean of
 * what each gives to the other.
 *
 * t-SNE counts neighbours by the entropy of the weights. Here their number is 1 / sum of squares,
 * which needs no logarithm and so has the same bits on every CPU.
 */
#include <math.h>

#include "base/math.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "map/graph.h"

enum { SEARCHES = 40 }; /* steps to find a width */

/* ---- the weights that a point gives ---- */

/* Squared distance of unit rows, 0 for the nearest. */
static double farther(const embla_neighbour *near, size_t i)
{
    double apart = 2.0 * (near[0].score - near[i].score);
    return apart > 0.0 ? apart : 0.0;
}

/* Writes e^(-steepness * distance) and returns the number of neighbours that they stand for. */
static double give(const embla_neighbour *near, size_t k, double steepness, double *weights)
{
    double sum = 0.0, squares = 0.0;
    for (size_t i = 0; i < k; i++) {
        weights[i] = embla_exp_below(-steepness * farther(near, i));
        sum += weights[i];
        squares += weights[i] * weights[i];
    }
    return sum * sum / squares;
}

/* The weights of a point's k neighbours, which stand for `wanted` of them; their sum is 1. If more
 * than that are equally near, all of these have the same weight. */
static void divide_weight(const embla_neighbour *near, size_t k, double wanted, double *weights)
{
    double low = 0.0, high = 1.0, sum = 0.0;
    double scale = farther(near, k - 1);
    if (scale > 0.0) {
        int searches = 0;
        for (; searches < SEARCHES && give(near, k, high / scale, weights) > wanted; searches++) {
            low = high;
            high *= 2.0;
        }
        for (searches = 0; searches < SEARCHES && high - low > 1e-6 * high; searches++) {
            double middle = (low + high) / 2.0;
            if (give(near, k, middle / scale, weights) > wanted)
                low = middle;
            else
                high = middle;
        }
    }
    (void)give(near, k, scale > 0.0 ? high / scale : 0.0, weights);
    for (size_t i = 0; i < k; i++) sum += weights[i];
    for (size_t i = 0; i < k; i++) weights[i] /= sum;
}

/* ---- both directions ---- */

typedef struct {
    int32_t to;
    float weight;
} half_tie;

typedef struct {
    const embla_graph *graph;
    size_t k;
    int32_t count;
    int32_t *rows;
    int32_t *point_of;  /* of each row; -1 if it is not finite */
    half_tie *given;    /* count x k: what each point gives, sorted by the other point */
    half_tie *received; /* count x k: what points receive, sorted by the giving point */
    int64_t *begin;     /* count + 1: where the received ones of each point begin */
    int64_t *start;     /* count + 1: where the ties of each point begin */
    int32_t *to;        /* of each tie, as embla_ties has it */
    float *weight;
} joining;

static void give_from(const joining *j, int32_t point)
{
    double weights[EMBLA_TIES_MOST];
    size_t k = j->k;
    const embla_neighbour *near = j->graph->near + (size_t)j->rows[point] * j->graph->k;
    half_tie *given = j->given + (size_t)point * k;
    divide_weight(near, k, (double)k / 3.0 > 1.0 ? (double)k / 3.0 : 1.0, weights);
    for (size_t i = 0; i < k; i++) {
        half_tie one = {j->point_of[near[i].row], (float)weights[i]};
        size_t at = i;
        for (; at > 0 && given[at - 1].to > one.to; at--) given[at] = given[at - 1];
        given[at] = one;
    }
}

/* Sorts what is given by who receives it. Points give in order, so the givers stay in order. */
static void receive_all(const joining *j)
{
    int64_t count = j->count, k = (int64_t)j->k;
    for (int64_t i = 0; i < count * k; i++) j->begin[j->given[i].to + 1]++;
    for (int64_t i = 0; i < count; i++) j->begin[i + 1] += j->begin[i];
    for (int64_t i = 0; i < count * k; i++)
        j->received[j->begin[j->given[i].to]++] = (half_tie){(int32_t)(i / k), j->given[i].weight};
    for (int64_t i = count; i > 0; i--) j->begin[i] = j->begin[i - 1]; /* they moved by one point */
    j->begin[0] = 0;
}

/* Merges what a point gives and receives. Returns the number of ties; with to, also writes them. */
static int64_t merge(const joining *j, int32_t point, int32_t *to, float *weight)
{
    const half_tie *a = j->given + (size_t)point * j->k, *a_end = a + j->k;
    const half_tie *b = j->received + j->begin[point], *b_end = j->received + j->begin[point + 1];
    int64_t count = 0;
    while (a < a_end || b < b_end) {
        int32_t other = b == b_end || (a < a_end && a->to < b->to) ? a->to : b->to;
        float sum = 0.0f;
        bool gives = a < a_end && a->to == other, takes = b < b_end && b->to == other;
        if (gives) sum += (a++)->weight;
        if (takes) sum += (b++)->weight;
        if (!(sum > 0.0f)) continue;
        if (to) to[count] = other;
        if (to) weight[count] = sum * 0.5f;
        count++;
    }
    return count;
}

static void find_points(const joining *j)
{
    int32_t point = 0;
    for (int64_t row = 0; row < j->graph->rows; row++) {
        j->point_of[row] = j->graph->is_finite[row] ? point : -1;
        if (j->graph->is_finite[row]) j->rows[point++] = (int32_t)row;
    }
}

/* ---- all points ---- */

static embla_status give_all(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t i = first; i < end; i++) give_from(job, (int32_t)i);
    return EMBLA_OK;
}

static embla_status count_ties(void *job, size_t first, size_t end, size_t slot)
{
    const joining *j = job;
    (void)slot;
    for (size_t i = first; i < end; i++) j->start[i + 1] = merge(j, (int32_t)i, NULL, NULL);
    return EMBLA_OK;
}

static embla_status write_ties(void *job, size_t first, size_t end, size_t slot)
{
    const joining *j = job;
    (void)slot;
    for (size_t i = first; i < end; i++)
        (void)merge(j, (int32_t)i, j->to + j->start[i], j->weight + j->start[i]);
    return EMBLA_OK;
}

/* All ties, from memory of `working` into memory of `arena`. */
static embla_status join_all(joining *j, int threads, embla_arena *working, embla_arena *arena,
                             embla_ties *out)
{
    const char *what = "the ties of rows";
    uint64_t count = (uint64_t)j->count, halves = count * j->k;
    threads = embla_threads_for(threads, (size_t)halves * 256);
    EMBLA_TRY(embla_arena_many(working, halves, sizeof(half_tie), what, &j->given));
    EMBLA_TRY(embla_arena_many(working, halves, sizeof(half_tie), what, &j->received));
    EMBLA_TRY(embla_arena_many(working, count + 1, sizeof(int64_t), what, &j->begin));
    if (j->k > 0) EMBLA_TRY(embla_share(threads, (size_t)count, 0, give_all, j));
    receive_all(j);
    EMBLA_TRY(embla_share(threads, (size_t)count, 0, count_ties, j));
    for (int32_t i = 0; i < j->count; i++) j->start[i + 1] += j->start[i];
    uint64_t ties = (uint64_t)j->start[j->count];
    EMBLA_TRY(embla_arena_many(arena, ties, sizeof *out->to, what, &out->to));
    EMBLA_TRY(embla_arena_many(arena, ties, sizeof *out->weight, what, &out->weight));
    j->to = out->to;
    j->weight = out->weight;
    return embla_share(threads, (size_t)count, 0, write_ties, j);
}

embla_status embla_ties_of(const embla_graph *graph, size_t most, int threads, embla_arena *arena,
                           embla_ties *out)
{
    const char *what = "the ties of rows";
    embla_arena working = {0};
    embla_ties ties = {.count = (int32_t)graph->finite};
    joining j = {.graph = graph, .count = ties.count};
    j.k = graph->k < most ? graph->k : most;
    uint64_t count = (uint64_t)graph->finite;
    EMBLA_TRY(embla_arena_many(arena, count, sizeof *ties.rows, what, &ties.rows));
    EMBLA_TRY(embla_arena_many(arena, count + 1, sizeof *ties.start, what, &ties.start));
    j.rows = ties.rows;
    j.start = ties.start;
    embla_status status =
        embla_arena_many(&working, (uint64_t)graph->rows, sizeof *j.point_of, what, &j.point_of);
    if (status == EMBLA_OK) {
        find_points(&j);
        status = join_all(&j, threads, &working, arena, &ties);
    }
    embla_arena_free(&working);
    if (status == EMBLA_OK) *out = ties;
    return status;
}
