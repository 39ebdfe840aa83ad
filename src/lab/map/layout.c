/* SPDX-License-Identifier: Apache-2.0 */
/* t-SNE (van der Maaten and Hinton 2008) of the ties of a graph. Tied points attract each other,
 * all points repel each other, and gradient descent with momentum finds the positions. As in
 * openTSNE (Policar et al. 2019), the first third of the steps multiplies the attraction by 12,
 * which lets points pass each other and find their region.
 *
 * Every step computes all new positions from the old ones, and each point's forces are summed by
 * one thread in a fixed order. So the number of threads does not matter.
 */
#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/math.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/stop.h"
#include "base/threads.h"
#include "map/graph.h"
#include "map/repel.h"

enum { STEPS_UNASKED = 750, STEPS_MOST = 100000, REPORT_EVERY = 5, LANES = 16 };

/* Attraction in the first third of the steps; the first positions' standard deviation along x, and
 * the largest random number that is added to them, so that points that coincide can part. */
#define EXAGGERATION 12.0f
#define START        1e-4
#define START_NOISE  1e-6f
#define STEP_MOST    5.0f /* the largest move of a point in one step */

typedef struct {
    const embla_ties *ties;
    float *xy, *next;   /* count x 2: positions before and after a step */
    float *force;       /* count x 2: repulsion */
    float *field;       /* count */
    float *move, *gain; /* count x 2: the last move; a factor that grows while its sign stays */
    embla_repel *repel;
    int threads;
} descent;

/* What changes from the first part of the descent to the second. */
typedef struct {
    float repulsion, momentum;
} phase;

/* ---- one step ---- */

/* The attraction of a point: the sum of weight * (other - own) / (1 + d^2), in 16 partial sums that
 * are added as a tree. */
EMBLA_BODY void attract_body(const embla_ties *ties, const float *xy, int32_t point, float out[2])
{
    float sums[2][LANES] = {{0}};
    float x = xy[2 * (size_t)point], y = xy[2 * (size_t)point + 1];
    int64_t tie = ties->start[point], end = ties->start[point + 1];
    for (; tie < end; tie += LANES) {
        int64_t n = end - tie < LANES ? end - tie : LANES;
        float dx[LANES] = {0}, dy[LANES] = {0}, weight[LANES] = {0};
        for (int64_t i = 0; i < n; i++) {
            size_t other = 2 * (size_t)ties->to[tie + i];
            dx[i] = xy[other] - x;
            dy[i] = xy[other + 1] - y;
            weight[i] = ties->weight[tie + i];
        }
        for (size_t i = 0; i < LANES; i++) {
            float pull = weight[i] / (1.0f + (dx[i] * dx[i] + dy[i] * dy[i]));
            sums[0][i] += pull * dx[i];
            sums[1][i] += pull * dy[i];
        }
    }
    for (size_t axis = 0; axis < 2; axis++) {
        for (size_t half = LANES / 2; half > 0; half /= 2)
            for (size_t i = 0; i < half; i++) sums[axis][i] += sums[axis][i + half];
        out[axis] = sums[axis][0];
    }
}
EMBLA_ISA_FUNCTION(void, attract,
                   (const embla_ties *ties, const float *xy, int32_t point, float out[2]),
                   attract_body(ties, xy, point, out);)

/* Moves a point. A gain grows while the force keeps the direction of the last move, and shrinks
 * when it turns (Jacobs 1988). */
static void move_point(const descent *d, const phase *p, int32_t point)
{
    float pull[2], length = 0;
    size_t at = 2 * (size_t)point;
    EMBLA_PICK(attract)(d->ties, d->xy, point, pull);
    for (size_t i = 0; i < 2; i++) {
        float force = pull[i] + p->repulsion * d->force[at + i], *gain = &d->gain[at + i];
        bool same = (force > 0) == (d->move[at + i] > 0);
        *gain = same ? *gain + 0.2f : *gain * 0.8f;
        if (*gain < 0.01f) *gain = 0.01f;
        d->move[at + i] = p->momentum * d->move[at + i] + *gain * force;
        length += d->move[at + i] * d->move[at + i];
    }
    if (length > STEP_MOST * STEP_MOST) {
        float shorter = STEP_MOST / sqrtf(length);
        for (size_t i = 0; i < 2; i++) d->move[at + i] *= shorter;
    }
    for (size_t i = 0; i < 2; i++) d->next[at + i] = d->xy[at + i] + d->move[at + i];
}

typedef struct {
    const descent *descent;
    phase phase;
} moving;

static embla_status move_points(void *job, size_t first, size_t end, size_t slot)
{
    const moving *m = job;
    (void)slot;
    for (size_t i = first; i < end; i++) move_point(m->descent, &m->phase, (int32_t)i);
    return EMBLA_OK;
}

/* The forces are those of t-SNE times the number of points over the exaggeration: so the rate of
 * the descent is 1 for any number of points. */
static embla_status step(descent *d, float exaggeration)
{
    int32_t count = d->ties->count;
    EMBLA_TRY(embla_repel_run(d->repel, d->xy, d->field, d->force));
    double sum = embla_sum_row_f32(d->field, (size_t)count);
    moving m = {.descent = d, .phase.momentum = exaggeration > 1.0f ? 0.5f : 0.8f};
    if (sum > 0.0) m.phase.repulsion = (float)((double)count / ((double)exaggeration * sum));
    int threads = embla_threads_for(d->threads, (size_t)d->ties->start[count] * 32);
    EMBLA_TRY(embla_share(threads, (size_t)count, 256, move_points, &m));
    float *swap = d->xy;
    d->xy = d->next;
    d->next = swap;
    return EMBLA_OK;
}

/* ---- the first positions ---- */

/* The positions of embla_plane, scaled to START. */
static void scale_start(descent *d, const float *plane)
{
    int32_t count = d->ties->count;
    double square = 0;
    for (int32_t i = 0; i < count; i++) {
        double x = (double)plane[2 * (size_t)d->ties->rows[i]];
        square += x * x / (double)count; /* the mean is 0 */
    }
    double scale = square > 0 ? START / sqrt(square) : 0;
    for (int32_t i = 0; i < count; i++) {
        float noise[2];
        size_t row = (size_t)d->ties->rows[i];
        embla_kernels_get()->uniform(0, (uint64_t)row, 0, 2, START_NOISE, noise);
        for (size_t axis = 0; axis < 2; axis++) {
            d->xy[2 * (size_t)i + axis] =
                (float)((double)plane[2 * row + axis] * scale) + noise[axis];
            d->gain[2 * (size_t)i + axis] = 1.0f;
        }
    }
}

static embla_status start(descent *d, const embla_table *table, embla_arena *working)
{
    const char *what = "the positions of rows";
    embla_arena arena = {0};
    float *plane = NULL;
    uint64_t numbers = 2 * (uint64_t)d->ties->count;
    float **arrays[] = {&d->xy, &d->next, &d->force, &d->move, &d->gain, &d->field};
    for (size_t i = 0; i < sizeof arrays / sizeof arrays[0]; i++)
        EMBLA_TRY(embla_arena_many(working, numbers, sizeof(float), what, arrays[i]));
    embla_status status = embla_arena_many(&arena, 2 * (uint64_t)embla_table_rows(table),
                                           sizeof *plane, what, &plane);
    if (status == EMBLA_OK)
        status = embla_plane(table, &(embla_plane_options){.threads = d->threads}, plane, NULL);
    if (status == EMBLA_OK) scale_start(d, plane);
    embla_arena_free(&arena);
    return status;
}

/* ---- the whole descent ---- */

/* Writes positions around their mean; NaN for rows that are no points. */
static void write_positions(const descent *d, int64_t rows, float *xy)
{
    int32_t count = d->ties->count;
    double mean[2] = {0, 0};
    for (size_t i = 0; i < 2 * (size_t)count; i++) mean[i % 2] += (double)d->xy[i] / (double)count;
    for (int64_t i = 0; i < 2 * rows; i++) xy[i] = NAN;
    for (size_t i = 0; i < 2 * (size_t)count; i++)
        xy[2 * (size_t)d->ties->rows[i / 2] + i % 2] = (float)((double)d->xy[i] - mean[i % 2]);
}

static embla_status descend(descent *d, const embla_layout_options *options)
{
    int steps = options->steps > 0 ? options->steps : STEPS_UNASKED;
    for (int i = 0; i < steps; i++) {
        if (i % REPORT_EVERY == 0)
            EMBLA_TRY(
                embla_progress_report(options->progress, options->context, "layout", i, steps));
        EMBLA_TRY(step(d, i < steps / 3 ? EXAGGERATION : 1.0f));
    }
    return embla_progress_report(options->progress, options->context, "layout", steps, steps);
}

static embla_status run(const embla_table *table, const embla_graph *graph,
                        const embla_layout_options *options, embla_arena *working, float *xy)
{
    embla_ties ties;
    descent d = {.ties = &ties, .threads = options->threads};
    EMBLA_TRY(embla_ties_of(graph, EMBLA_TIES_MOST, options->threads, working, &ties));
    EMBLA_TRY(start(&d, table, working));
    if (ties.count > 0) {
        EMBLA_TRY(embla_repel_new(ties.count, options->threads, &d.repel));
        embla_status status = descend(&d, options);
        embla_repel_free(d.repel);
        if (status != EMBLA_OK) return status;
    }
    write_positions(&d, embla_table_rows(table), xy);
    return EMBLA_OK;
}

static embla_status check(const embla_table *table, const embla_graph *graph,
                          const embla_layout_options *options)
{
    if (graph->rows != embla_table_rows(table))
        return embla_fail(EMBLA_ERR_SHAPE,
                          "the graph has %" PRId64 " rows, and the table has %" PRId64, graph->rows,
                          embla_table_rows(table));
    if (options->steps < 0 || options->steps > STEPS_MOST)
        return embla_fail(EMBLA_ERR_ARGUMENT, "steps is %d; it must be between 0 and %d",
                          options->steps, STEPS_MOST);
    return embla_threads_check(options->threads);
}

embla_status embla_layout(const embla_table *table, const embla_graph *graph,
                          const embla_layout_options *options, float *xy,
                          embla_layout_report *report)
{
    const embla_layout_options none = {0};
    embla_arena working = {0};
    EMBLA_TRY(embla_options_check(options));
    if (!options) options = &none;
    EMBLA_NEED(table);
    EMBLA_NEED(graph);
    EMBLA_NEED(xy);
    EMBLA_TRY(check(table, graph, options));
    embla_status status = run(table, graph, options, &working, xy);
    embla_arena_free(&working);
    if (status == EMBLA_OK && report)
        *report =
            (embla_layout_report){.rows = graph->finite, .nonfinite = graph->rows - graph->finite};
    return status;
}
