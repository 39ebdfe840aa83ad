/* SPDX-License-Identifier: Apache-2.0 */
/* Repulsion by a grid, in the manner of FIt-SNE (Linderman et al. 2019) and of particle-mesh Ewald
 * sums: every point is spread over the 4 x 4 nearest nodes with the weights of a cubic B-spline;
 * the grid is convolved with 1 / (1 + d^2); and the field at a point is a sum over its 16 nodes
 * with the same weights, its slope a sum with their derivatives.
 *
 * The convolution is a product of Hartley transforms. The grid is padded to twice its size, so that
 * nothing wraps around. Its kernel is divided by the transform of the spline, once for spreading
 * and once for reading, which makes the spline an interpolation.
 *
 * Points are sorted by the row of the grid where they are. Each row of the grid is summed by one
 * thread, over its points in a fixed order.
 */
#include "map/repel.h"

#include <math.h>
#include <string.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "map/hartley.h"

#define SPACING 0.5f /* between nodes; the kernel has its half width at 1 */

enum {
    WIDE = EMBLA_HARTLEY_WIDE,
    SIZE_LEAST = 64,
    MARGIN = 5, /* nodes that splines need beyond the points */
    REACH = 4   /* nodes of a spline */
};

struct embla_repel {
    int32_t count;
    int threads;
    size_t bytes; /* of this struct and the arrays of points */
    /* for each point: its cell, its place in that cell (0 to 1), and points in order of rows */
    int32_t (*cells)[2];
    float (*at)[2];
    int32_t *order,
        *begin; /* begin: the first of each row of the grid, EMBLA_HARTLEY_MOST / 2 + 1 */
    /* the grid */
    size_t nodes;            /* on each axis; a transform has twice that size */
    float spacing;           /* between nodes */
    float *grid;             /* nodes x nodes: first points, later the field */
    float *half;             /* nodes x size: grid transformed along one axis, transposed */
    float *kernel;           /* (nodes + 1) x size: the kernel's transform */
    float *turns, *columns;  /* size; size x WIDE for each slot */
    uint32_t *places;        /* size: embla_hartley_place of each row */
    float own[REACH][REACH]; /* field of a node at nodes that are 0 to 3 away on each axis */
    int grid_threads;        /* which have columns */
    size_t grid_bytes;
};

/* ---- transforms ---- */

/* Transforms the columns or rows from number `at` on, WIDE of them. columns is space for them. */
typedef void transform_fn(const embla_repel *r, size_t at, float *columns);

typedef struct {
    const embla_repel *repel;
    transform_fn *transform;
} transforming;

static embla_status transform_some(void *job, size_t first, size_t end, size_t slot)
{
    const transforming *t = job;
    const embla_repel *r = t->repel;
    float *columns = r->columns + slot * 2 * r->nodes * WIDE;
    for (size_t i = first; i < end; i++) t->transform(r, i * WIDE, columns);
    return EMBLA_OK;
}

/* For the numbers 0, WIDE, 2 * WIDE .. up to `last`. */
static embla_status transform_all(const embla_repel *r, transform_fn *transform, size_t last)
{
    const transforming t = {r, transform};
    return embla_share(r->grid_threads, last / WIDE + 1, 0, transform_some, &t);
}

/* Where row `at` of the input of a transform is put. */
static float *place_of(const embla_repel *r, float *columns, size_t at)
{
    return columns + (size_t)r->places[at] * WIDE;
}

/* Puts WIDE numbers, which are `step` apart, as a row. */
static void put_row(const embla_repel *r, float *columns, size_t at, const float *numbers,
                    size_t step)
{
    float *row = place_of(r, columns, at);
    for (size_t i = 0; i < WIDE; i++) row[i] = numbers[i * step];
}

static void put_zeros(const embla_repel *r, float *columns, size_t at)
{
    memset(place_of(r, columns, at), 0, WIDE * sizeof *columns);
}

/* Transforms 16 columns of the grid along y, and writes them as rows of half. */
static void transform_y(const embla_repel *r, size_t x, float *columns)
{
    size_t nodes = r->nodes, size = 2 * nodes;
    for (size_t y = 0; y < nodes; y++) put_row(r, columns, y, r->grid + y * nodes + x, 1);
    for (size_t y = nodes; y < size; y++) put_zeros(r, columns, y);
    embla_hartley(columns, size, r->turns);
    for (size_t i = 0; i < WIDE; i++)
        for (size_t v = 0; v < size; v++) r->half[(x + i) * size + v] = columns[v * WIDE + i];
}

/* Transforms 16 columns of half along x, multiplies them with the kernel, and transforms back. The
 * places of the second transform exchange pairs of rows. */
static void multiply(const embla_repel *r, size_t v, float *columns)
{
    size_t nodes = r->nodes, size = 2 * nodes;
    float swap[WIDE];
    for (size_t x = 0; x < nodes; x++) put_row(r, columns, x, r->half + x * size + v, 1);
    for (size_t x = nodes; x < size; x++) put_zeros(r, columns, x);
    embla_hartley(columns, size, r->turns);
    for (size_t u = 0; u < size; u++) {
        const float *kernel = r->kernel + (u <= nodes ? u : size - u) * size + v;
        for (size_t i = 0; i < WIDE; i++) columns[u * WIDE + i] *= kernel[i];
    }
    for (size_t u = 0; u < size; u++) {
        size_t place = r->places[u];
        if (place <= u) continue;
        memcpy(swap, columns + u * WIDE, sizeof swap);
        memcpy(columns + u * WIDE, columns + place * WIDE, sizeof swap);
        memcpy(columns + place * WIDE, swap, sizeof swap);
    }
    embla_hartley(columns, size, r->turns);
    for (size_t x = 0; x < nodes; x++)
        memcpy(r->half + x * size + v, columns + x * WIDE, WIDE * sizeof *columns);
}

/* Transforms 16 rows of half back along y, and writes them as columns of the grid. */
static void transform_back(const embla_repel *r, size_t x, float *columns)
{
    size_t nodes = r->nodes, size = 2 * nodes;
    for (size_t v = 0; v < size; v++) put_row(r, columns, v, r->half + x * size + v, size);
    embla_hartley(columns, size, r->turns);
    for (size_t y = 0; y < nodes; y++)
        memcpy(r->grid + y * nodes + x, columns + y * WIDE, WIDE * sizeof *columns);
}

static embla_status convolve(const embla_repel *r)
{
    EMBLA_TRY(transform_all(r, transform_y, r->nodes - 1));
    EMBLA_TRY(transform_all(r, multiply, 2 * r->nodes - 1));
    return transform_all(r, transform_back, r->nodes - 1);
}

/* ---- the kernel ---- */

/* 1 / (1 + d^2) for a distance of x and y nodes, around the circle of the transform. */
static float kernel_at(const embla_repel *r, size_t x, size_t y)
{
    size_t size = 2 * r->nodes;
    float dx = (float)(x <= r->nodes ? x : size - x) * r->spacing;
    float dy = (float)(y <= r->nodes ? y : size - y) * r->spacing;
    return 1.0f / (1.0f + dx * dx + dy * dy);
}

/* 1 / the square of the spline's transform. */
static float sharpen(const embla_repel *r, size_t u)
{
    size_t from_end = 2 * r->nodes - u, k = u < from_end ? u : from_end;
    float cosine = k < r->nodes ? r->turns[2 * k] : -1.0f;
    float spline = (2.0f + cosine) / 3.0f;
    return 1.0f / (spline * spline);
}

/* The kernel along y, for the columns x to x + 15 up to `nodes`, as rows of kernel. */
static void kernel_y(const embla_repel *r, size_t x, float *columns)
{
    size_t size = 2 * r->nodes, n = r->nodes + 1 - x < WIDE ? r->nodes + 1 - x : WIDE;
    for (size_t y = 0; y < size; y++) {
        float *row = place_of(r, columns, y);
        for (size_t i = 0; i < WIDE; i++) row[i] = kernel_at(r, x + i, y);
    }
    embla_hartley(columns, size, r->turns);
    for (size_t i = 0; i < n; i++)
        for (size_t v = 0; v < size; v++) r->kernel[(x + i) * size + v] = columns[v * WIDE + i];
}

/* The kernel along x. It is even, so half of it is known from the other half. The factor of both
 * transforms, size^2, is divided out here. */
static void kernel_x(const embla_repel *r, size_t v, float *columns)
{
    size_t nodes = r->nodes, size = 2 * nodes;
    float scale = 1.0f / ((float)size * (float)size);
    for (size_t x = 0; x < size; x++)
        put_row(r, columns, x, r->kernel + (x <= nodes ? x : size - x) * size + v, 1);
    embla_hartley(columns, size, r->turns);
    for (size_t u = 0; u <= nodes; u++)
        for (size_t i = 0; i < WIDE; i++)
            r->kernel[u * size + v + i] =
                columns[u * WIDE + i] * (scale * sharpen(r, u) * sharpen(r, v + i));
}

static embla_status make_kernel(embla_repel *r)
{
    size_t nodes = r->nodes;
    embla_hartley_turns(2 * nodes, r->turns);
    for (size_t i = 0; i < 2 * nodes; i++)
        r->places[i] = (uint32_t)embla_hartley_place(i, 2 * nodes);
    EMBLA_TRY(transform_all(r, kernel_y, nodes));
    EMBLA_TRY(transform_all(r, kernel_x, 2 * nodes - 1));
    memset(r->grid, 0, nodes * nodes * sizeof *r->grid);
    r->grid[REACH * nodes + REACH] = 1.0f;
    EMBLA_TRY(convolve(r));
    for (size_t y = 0; y < REACH; y++)
        for (size_t x = 0; x < REACH; x++) r->own[y][x] = r->grid[(REACH + y) * nodes + REACH + x];
    return EMBLA_OK;
}

/* ---- points and nodes ---- */

/* The weights of the four nodes around a place (0 to 1) between the second and the third. */
static void spline_weights(float t, float w[REACH])
{
    float s = 1.0f - t;
    w[0] = s * s * s / 6.0f;
    w[1] = (4.0f + t * t * (3.0f * t - 6.0f)) / 6.0f;
    w[2] = (4.0f + s * s * (3.0f * s - 6.0f)) / 6.0f;
    w[3] = t * t * t / 6.0f;
}

/* Their derivatives, for a step from one node to the next. */
static void spline_slopes(float t, float w[REACH])
{
    float s = 1.0f - t;
    w[0] = -0.5f * s * s;
    w[1] = t * (1.5f * t - 2.0f);
    w[2] = -s * (1.5f * s - 2.0f);
    w[3] = 0.5f * t * t;
}

/* Finds the cell of each point, and sorts points by the row of their cell. */
static void find_cells(embla_repel *r, const float *xy, const float least[2])
{
    int32_t rows = (int32_t)r->nodes;
    float nodes_per_unit = 1.0f / r->spacing;
    memset(r->begin, 0, (r->nodes + 1) * sizeof *r->begin);
    for (int32_t i = 0; i < r->count; i++) {
        for (int axis = 0; axis < 2; axis++) {
            float at = (xy[2 * (size_t)i + (size_t)axis] - least[axis]) * nodes_per_unit + 1.5f;
            r->cells[i][axis] = (int32_t)at;
            r->at[i][axis] = at - (float)r->cells[i][axis];
        }
        r->begin[r->cells[i][1] + 1]++;
    }
    for (int32_t y = 0; y < rows; y++) r->begin[y + 1] += r->begin[y];
    for (int32_t i = 0; i < r->count; i++) r->order[r->begin[r->cells[i][1]]++] = i;
    for (int32_t y = rows; y > 0; y--) r->begin[y] = r->begin[y - 1];
    r->begin[0] = 0;
}

/* Sums one row of the grid: points of cells in rows y - 2 to y + 1 reach it. */
static void spread_row(const embla_repel *r, int32_t y)
{
    float *row = r->grid + (size_t)y * r->nodes;
    memset(row, 0, r->nodes * sizeof *row);
    for (int32_t from = y - 2; from <= y + 1; from++) {
        if (from < 0 || from >= (int32_t)r->nodes) continue;
        for (int32_t k = r->begin[from]; k < r->begin[from + 1]; k++) {
            int32_t i = r->order[k];
            float across[REACH], down[REACH];
            spline_weights(r->at[i][0], across);
            spline_weights(r->at[i][1], down);
            float *to = row + r->cells[i][0] - 1, weight = down[y - from + 1];
            for (size_t n = 0; n < REACH; n++) to[n] += weight * across[n];
        }
    }
}

/* How often two nodes of a spline are 0 to 3 apart, in both directions, and the slope of that. */
static void pair_weights(const float w[REACH], const float slopes[REACH], float pairs[REACH],
                         float pair_slopes[REACH])
{
    for (size_t gap = 0; gap < REACH; gap++) {
        pairs[gap] = pair_slopes[gap] = 0;
        for (size_t i = 0; i + gap < REACH; i++) {
            pairs[gap] += w[i] * w[i + gap];
            pair_slopes[gap] += w[i] * slopes[i + gap] + slopes[i] * w[i + gap];
        }
        if (gap > 0) pairs[gap] *= 2;
        if (gap > 0) pair_slopes[gap] *= 2;
    }
}

/* A point's spline: weights of its nodes on each axis, and their slopes. */
typedef struct {
    float w[2][REACH], slopes[2][REACH];
} spline;

/* What the point itself adds to its field and to the slopes of it. The grid does not give exactly 1
 * and 0, which matters for points that are far from all others. */
static void own_part(const embla_repel *r, const spline *at, float out[3])
{
    float pairs[2][REACH], slopes[2][REACH];
    for (size_t axis = 0; axis < 2; axis++)
        pair_weights(at->w[axis], at->slopes[axis], pairs[axis], slopes[axis]);
    out[0] = out[1] = out[2] = 0;
    for (size_t y = 0; y < REACH; y++)
        for (size_t x = 0; x < REACH; x++) {
            out[0] += r->own[y][x] * pairs[1][y] * pairs[0][x];
            out[1] += 0.5f * r->own[y][x] * pairs[1][y] * slopes[0][x];
            out[2] += 0.5f * r->own[y][x] * slopes[1][y] * pairs[0][x];
        }
}

/* The field at a point, and half of its slope downwards, which is the force. */
static void read_point(const embla_repel *r, int32_t i, float *field, float force[2])
{
    const float *from =
        r->grid + ((size_t)r->cells[i][1] - 1) * r->nodes + (size_t)r->cells[i][0] - 1;
    float sums[3] = {0}, own[3];
    spline at;
    for (size_t axis = 0; axis < 2; axis++) {
        spline_weights(r->at[i][axis], at.w[axis]);
        spline_slopes(r->at[i][axis], at.slopes[axis]);
    }
    for (size_t m = 0; m < REACH; m++, from += r->nodes) {
        float line = 0, slope = 0;
        for (size_t n = 0; n < REACH; n++) {
            line += at.w[0][n] * from[n];
            slope += at.slopes[0][n] * from[n];
        }
        sums[0] += at.w[1][m] * line;
        sums[1] += at.w[1][m] * slope;
        sums[2] += at.slopes[1][m] * line;
    }
    own_part(r, &at, own);
    *field = sums[0] - own[0];
    force[0] = -0.5f * (sums[1] - own[1]) / r->spacing;
    force[1] = -0.5f * (sums[2] - own[2]) / r->spacing;
}

/* ---- the grid ---- */

static void free_grid(embla_repel *r)
{
    embla_mem_free(r->grid, r->grid_bytes);
    r->grid = NULL;
    r->nodes = 0;
}

/* A grid of so many nodes. Its size follows from the points alone, never from the threads. */
static embla_status new_grid(embla_repel *r, size_t nodes, float spacing)
{
    size_t size = 2 * nodes;
    void *memory;
    free_grid(r);
    r->grid_threads = embla_threads_for(r->threads, 16 * size * size);
    size_t numbers = nodes * nodes + nodes * size + (nodes + 1) * size + 2 * size +
                     (size_t)r->grid_threads * size * WIDE;
    r->grid_bytes = numbers * sizeof(float);
    EMBLA_TRY(embla_mem_new(r->grid_bytes, "the grid of a layout", &memory));
    r->nodes = nodes;
    r->spacing = spacing;
    r->grid = memory;
    r->half = r->grid + nodes * nodes;
    r->kernel = r->half + nodes * size;
    r->turns = r->kernel + (nodes + 1) * size;
    r->places = (uint32_t *)(void *)(r->turns + size);
    r->columns = r->turns + 2 * size;
    embla_status status = make_kernel(r);
    if (status != EMBLA_OK) free_grid(r);
    return status;
}

/* Makes the grid large enough. Points that are extremely far apart get a coarser one. */
static embla_status fit_grid(embla_repel *r, float span)
{
    size_t nodes = SIZE_LEAST / 2;
    float spacing = SPACING;
    while (span > (float)(nodes - MARGIN) * spacing && nodes < EMBLA_HARTLEY_MOST / 2) nodes *= 2;
    while (span > (float)(nodes - MARGIN) * spacing) spacing *= 2.0f;
    if (r->grid && r->nodes == nodes && r->spacing == spacing) return EMBLA_OK;
    return new_grid(r, nodes, spacing);
}

embla_status embla_repel_new(int32_t count, int threads, embla_repel **out)
{
    size_t rows = EMBLA_HARTLEY_MOST / 2 + 1, points = (size_t)count;
    size_t bytes = sizeof(embla_repel) + points * (2 * sizeof(int32_t) + 2 * sizeof(float)) +
                   (points + rows) * sizeof(int32_t);
    void *memory;
    EMBLA_TRY(embla_mem_new(bytes, "the cells of points", &memory));
    embla_repel *r = memory;
    *r = (embla_repel){.count = count, .threads = threads, .bytes = bytes};
    r->cells = (int32_t(*)[2])(void *)(r + 1);
    r->at = (float(*)[2])(void *)(r->cells + points);
    r->order = (int32_t *)(void *)(r->at + points);
    r->begin = r->order + points;
    *out = r;
    return EMBLA_OK;
}

void embla_repel_free(embla_repel *repel)
{
    if (!repel) return;
    free_grid(repel);
    embla_mem_free(repel, repel->bytes);
}

/* ---- all points ---- */

static embla_status spread_rows(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t y = first; y < end; y++) spread_row(job, (int32_t)y);
    return EMBLA_OK;
}

typedef struct {
    const embla_repel *repel;
    float *field, *force;
} reading;

static embla_status read_points(void *job, size_t first, size_t end, size_t slot)
{
    const reading *to = job;
    (void)slot;
    for (size_t i = first; i < end; i++)
        read_point(to->repel, (int32_t)i, &to->field[i], to->force + 2 * i);
    return EMBLA_OK;
}

embla_status embla_repel_run(embla_repel *repel, const float *xy, float *field, float *force)
{
    float least[2] = {xy[0], xy[1]}, most[2] = {xy[0], xy[1]};
    for (size_t i = 0; i < 2 * (size_t)repel->count; i++) {
        size_t axis = i % 2;
        least[axis] = xy[i] < least[axis] ? xy[i] : least[axis];
        most[axis] = xy[i] > most[axis] ? xy[i] : most[axis];
    }
    float across = most[0] - least[0], down = most[1] - least[1];
    EMBLA_TRY(fit_grid(repel, across > down ? across : down));
    find_cells(repel, xy, least);
    size_t count = (size_t)repel->count;
    int threads = embla_threads_for(repel->threads, count * 64);
    const reading to = {repel, field, force};
    EMBLA_TRY(embla_share(threads, repel->nodes, 4, spread_rows, repel));
    EMBLA_TRY(convolve(repel));
    return embla_share(threads, count, 0, read_points, &to);
}
