/* SPDX-License-Identifier: Apache-2.0 */
/* The classical three steps, each of them backward stable:
 *
 *   reduce    reflections (Householder) make the matrix tridiagonal: matrix = Q T Q'
 *   iterate   rotations (QL with implicit shifts, as in LAPACK's dsteqr) make T diagonal
 *   assemble  the vectors that are wanted: rotations in reverse order, then reflections, are
 * applied to unit vectors
 *
 * The iteration runs twice. The first run finds the values and counts the rotations, the second
 * stores them: about n^2. So k vectors cost k n^2 steps and not n^3, and are orthogonal to rounding
 * however close their values are; inverse iteration would have to take care of clusters.
 *
 * Order: T is stored from its end, so that what a reduction leaves large comes last, where QL wants
 * it. Coordinate i of T is coordinate n - 1 - i of the matrix. Row k of the matrix keeps the
 * reflection that cleared it, to the right of the diagonal.
 *
 * Bits: + - * / and sqrt, in a fixed order, on every instruction set. Sums of a row go to LANES
 * sums, number i to sum i mod LANES, which are added in order.
 */
#include "engine/eigen.h"

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "base/kernels.h"
#include "base/layout.h"
#include "base/mem.h"

enum { LANES = 8, BLOCK = 64 /* vectors that are assembled at once: they stay in the L2 cache */ };

/* The matrix is scaled so that its largest number is about 1. What is smaller than this counts as
 * 0; the square of what is not is a normal number. */
#define TINY 0x1p-400

typedef struct {
    double c, s;
} rotation;

/* Rotations of one step of the iteration: they mix coordinates low, low+1, .., high. */
typedef struct {
    uint32_t low, high;
} sweep;

typedef struct {
    double *matrix;
    size_t n;
    double *diagonal, *beside; /* of T; beside[i] is between diagonal[i] and diagonal[i + 1] */
    double *d, *e;             /* copies of both, which the iteration changes */
    double *tau;               /* factors of the reflections */
    double *update, *spare;    /* w of the pending update v w' + w v'; memory for the next one */
    rotation *rotations;       /* NULL means that they are only counted */
    sweep *sweeps;
    size_t rotation_count, sweep_count;
} work;

/* An eigenvalue, and its place on the diagonal. */
typedef struct {
    double value;
    size_t at;
} found;

/* ---- loops over a row ---- */

/* Subtracts the pending update from a row, adds the row times `factor` to sums, and returns the
 * row's product with x: each reflection reads the matrix once. */
EMBLA_BODY double pass_body(double *row, const double *v, const double *w, double vi, double wi,
                            const double *x, double factor, double *sums, size_t n)
{
    double lanes[LANES] = {0}, sum = 0;
    for (size_t i = 0; i < n; i += LANES) {
        size_t count = n - i < LANES ? n - i : LANES;
        for (size_t k = 0; k < count; k++) {
            double a = row[i + k] - (vi * w[i + k] + wi * v[i + k]);
            row[i + k] = a;
            sums[i + k] += a * factor;
            lanes[k] += a * x[i + k];
        }
    }
    for (size_t k = 0; k < LANES; k++) sum += lanes[k];
    return sum;
}

EMBLA_BODY void rotate_body(double *low, double *high, rotation by, size_t n)
{
    for (size_t i = 0; i < n; i++) {
        double a = low[i], b = high[i];
        low[i] = by.c * a + by.s * b;
        high[i] = by.c * b - by.s * a;
    }
}

EMBLA_BODY void add_body(double *to, const double *from, double factor, size_t n)
{
    for (size_t i = 0; i < n; i++) to[i] += factor * from[i];
}

EMBLA_ISA_FUNCTION(double, pass_row,
                   (double *restrict row, const double *v, const double *w, double vi, double wi,
                    const double *x, double factor, double *restrict sums, size_t n),
                   return pass_body(row, v, w, vi, wi, x, factor, sums, n);)
EMBLA_ISA_FUNCTION(void, rotate_rows,
                   (double *restrict low, double *restrict high, rotation by, size_t n),
                   rotate_body(low, high, by, n);)
EMBLA_ISA_FUNCTION(void, add_row,
                   (double *restrict to, const double *restrict from, double factor, size_t n),
                   add_body(to, from, factor, n);)

/* ---- reduce ---- */

/* Makes x the vector v of a reflection 1 - tau v v', v[0] = 1, that maps x to (*beta, 0, 0, ..).
 * Returns tau. */
static double reflect(double *x, size_t n, double *beta)
{
    double largest = 0, squares = 0, first = x[0];
    for (size_t i = 1; i < n; i++) largest = fabs(x[i]) > largest ? fabs(x[i]) : largest;
    *beta = first;
    x[0] = 1;
    if (largest < TINY) {
        memset(x + 1, 0, (n - 1) * sizeof *x);
        return 0;
    }
    for (size_t i = 1; i < n; i++) squares += x[i] * x[i];
    *beta = sqrt(first * first + squares);
    if (first > 0) *beta = -*beta; /* so that first - *beta loses no digits */
    for (size_t i = 1; i < n; i++) x[i] /= first - *beta;
    return (*beta - first) / *beta;
}

/* Makes the next reflection, of what is right of the diagonal in row k. The rows below still lack
 * the pending update, of v and w->update, which begin with row k. Ends with the update of this
 * reflection pending: w = p - (tau / 2) (p . x) x, where p is tau times the matrix times x. */
static void reduce_row(work *w, size_t k, const double *v)
{
    size_t n = w->n - k - 1;
    double *x = w->matrix + k * w->n + k + 1, *p = w->spare, along = 0;
    const double *u = w->update;
    double tau = w->tau[k] = reflect(x, n, &w->beside[n - 1]);
    memset(p, 0, n * sizeof *p);
    for (size_t i = 0; i < n; i++) {
        double *a = w->matrix + (k + 1 + i) * (w->n + 1), vi = v[i + 1], ui = u[i + 1];
        a[0] -= 2 * vi * ui;
        p[i] += a[0] * x[i] + EMBLA_PICK(pass_row)(a + 1, v + i + 2, u + i + 2, vi, ui, x + i + 1,
                                                   x[i], p + i + 1, n - i - 1);
    }
    for (size_t i = 0; i < n; i++) p[i] *= tau;
    for (size_t i = 0; i < n; i++) along += p[i] * x[i];
    for (size_t i = 0; i < n; i++) p[i] -= 0.5 * tau * along * x[i];
    w->spare = w->update;
    w->update = p;
}

static void reduce(work *w)
{
    const double *v = w->update; /* there is no update before the first reflection: zeros */
    memset(w->update, 0, w->n * sizeof *w->update);
    for (size_t k = 0; k < w->n; k++) {
        double *row = w->matrix + k * (w->n + 1);
        const double *u = w->update;
        for (size_t i = 0; i < w->n - k; i++) row[i] -= v[0] * u[i] + u[0] * v[i];
        w->diagonal[w->n - 1 - k] = row[0];
        if (k + 1 < w->n) reduce_row(w, k, v);
        v = row + 1;
    }
}

/* ---- iterate ---- */

/* The length of (a, b), whose squares may be too small or too large for a double. */
static double length(double a, double b)
{
    double large = fabs(a) > fabs(b) ? fabs(a) : fabs(b), small = fabs(a) > fabs(b) ? b : a;
    if (large == 0) return 0;
    return large * sqrt(1 + small / large * (small / large));
}

/* One step: rotations from coordinate high down to low move the last number of that block towards
 * an eigenvalue at `low`. */
static void step(work *w, size_t low, size_t high)
{
    double *d = w->d, *e = w->e, shift = (d[low + 1] - d[low]) / (2 * e[low]), p = 0;
    double root = sqrt(shift * shift + 1);
    double g = d[high] - d[low] + e[low] / (shift + (shift < 0 ? -root : root));
    rotation by = {.c = 1, .s = 1};
    for (size_t i = high; i-- > low;) {
        double f = by.s * e[i], b = by.c * e[i], r = length(f, g);
        e[i + 1] = r;
        by = r == 0 ? (rotation){.c = 1} : (rotation){.c = g / r, .s = f / r};
        g = d[i + 1] - p;
        r = (d[i] - g) * by.s + 2 * by.c * b;
        p = by.s * r;
        d[i + 1] = g + p;
        g = by.c * r - b;
        if (w->rotations) w->rotations[w->rotation_count + (high - 1 - i)] = by;
    }
    d[low] -= p;
    e[low] = g;
    e[high] = 0;
    if (w->rotations) w->sweeps[w->sweep_count] = (sweep){(uint32_t)low, (uint32_t)high};
    w->rotation_count += high - low;
    w->sweep_count++;
}

static bool is_small(const work *w, size_t i)
{
    double size = fabs(w->e[i]);
    return size < TINY || size <= 0x1p-53 * (fabs(w->d[i]) + fabs(w->d[i + 1]));
}

/* Leaves the eigenvalues in w->d. False if the steps were not enough. */
static bool iterate(work *w, size_t steps)
{
    memcpy(w->d, w->diagonal, w->n * sizeof *w->d);
    memcpy(w->e, w->beside, w->n * sizeof *w->e);
    w->rotation_count = w->sweep_count = 0;
    for (size_t low = 0; low + 1 < w->n;) {
        size_t high = low;
        while (high + 1 < w->n && !is_small(w, high)) high++;
        if (high == low)
            low++;
        else if (steps-- == 0)
            return false;
        else
            step(w, low, high);
    }
    return true;
}

/* ---- assemble ---- */

/* x has n rows of `count` numbers, a column for each vector. */
static void apply_rotations(const work *w, double *x, size_t count)
{
    const rotation *by = w->rotations + w->rotation_count;
    for (size_t s = w->sweep_count; s-- > 0;)
        for (size_t i = w->sweeps[s].low; i < w->sweeps[s].high; i++)
            EMBLA_PICK(rotate_rows)(x + i * count, x + (i + 1) * count, *--by, count);
}

static void apply_reflections(const work *w, double *x, size_t count)
{
    for (size_t k = w->n - 1; k-- > 0;) {
        const double *v = w->matrix + k * w->n + k + 1;
        size_t n = w->n - k - 1;
        double along[BLOCK] = {0};
        if (w->tau[k] == 0) continue;
        for (size_t i = 0; i < n; i++)
            EMBLA_PICK(add_row)(along, x + (n - 1 - i) * count, v[i], count);
        for (size_t i = 0; i < n; i++)
            EMBLA_PICK(add_row)(x + (n - 1 - i) * count, along, -w->tau[k] * v[i], count);
    }
}

/* The vectors of `count` eigenvalues, at most BLOCK. */
static void assemble(const work *w, const found *values, size_t count, double *x, double *out)
{
    memset(x, 0, w->n * count * sizeof *x);
    for (size_t v = 0; v < count; v++) x[values[v].at * count + v] = 1;
    apply_rotations(w, x, count);
    apply_reflections(w, x, count);
    for (size_t v = 0; v < count; v++)
        for (size_t i = 0; i < w->n; i++) out[v * w->n + i] = x[(w->n - 1 - i) * count + v];
}

/* Runs the iteration again, now with memory for its rotations. */
static embla_status find_vectors(work *w, const found *values, size_t vectors, size_t steps,
                                 double *out)
{
    embla_layout layout = {0};
    void *space;
    size_t rotations = embla_layout_add(&layout, w->rotation_count, sizeof(rotation));
    size_t sweeps = embla_layout_add(&layout, w->sweep_count, sizeof(sweep));
    size_t x = embla_layout_add(&layout, w->n * BLOCK, sizeof(double));
    EMBLA_TRY(embla_mem_new(layout.bytes, "eigenvectors", &space));
    char *base = space;
    w->rotations = (void *)(base + rotations);
    w->sweeps = (void *)(base + sweeps);
    (void)iterate(w, steps); /* as the first time */
    for (size_t v = 0; v < vectors; v += BLOCK) {
        size_t count = vectors - v < BLOCK ? vectors - v : BLOCK;
        assemble(w, values + v, count, (double *)(void *)(base + x), out + v * w->n);
    }
    embla_mem_free(space, layout.bytes);
    return EMBLA_OK;
}

/* ---- the call ---- */

/* Scales the matrix by a power of two, so that no square overflows. *exponent undoes it. */
static embla_status scale(double *matrix, size_t n, int *exponent)
{
    double largest = 0;
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) {
            double size = fabs(matrix[i * n + j]);
            if (!isfinite(size))
                return embla_fail(EMBLA_ERR_UNSUPPORTED,
                                  "a %zu x %zu matrix has no eigenvalues: its number in row %zu, "
                                  "column %zu is %g",
                                  n, n, i, j, matrix[i * n + j]);
            largest = size > largest ? size : largest;
        }
    (void)frexp(largest, exponent);
    for (size_t i = 0; i < n; i++)
        for (size_t j = i; j < n; j++) matrix[i * n + j] = ldexp(matrix[i * n + j], -*exponent);
    return EMBLA_OK;
}

static int ascending(const void *a, const void *b)
{
    const found *x = a, *y = b;
    if (x->value != y->value) return x->value < y->value ? -1 : 1;
    return x->at < y->at ? -1 : x->at > y->at;
}

static embla_status solve(work *w, found *list, size_t vectors, size_t steps, double *values,
                          double *out)
{
    int exponent = 0;
    EMBLA_TRY(scale(w->matrix, w->n, &exponent));
    reduce(w);
    if (!iterate(w, steps))
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "the eigenvalues of a %zu x %zu matrix were not found in %zu steps", w->n,
                          w->n, steps);
    for (size_t i = 0; i < w->n; i++) list[i] = (found){w->d[i], i};
    qsort(list, w->n, sizeof *list, ascending);
    if (vectors > 0) EMBLA_TRY(find_vectors(w, list + w->n - vectors, vectors, steps, out));
    for (size_t i = 0; i < w->n; i++) values[i] = ldexp(list[i].value, exponent);
    return EMBLA_OK;
}

embla_status embla_eigen_plain(double *matrix, size_t n, size_t vectors, double *values,
                               double *out, size_t steps)
{
    enum { PARTS = 7 };
    size_t bytes = n * (PARTS * sizeof(double) + sizeof(found));
    void *space;
    EMBLA_TRY(embla_mem_new(bytes, "eigenvalues", &space));
    double *part = space;
    work w = {.matrix = matrix,
              .n = n,
              .diagonal = part,
              .beside = part + n,
              .d = part + 2 * n,
              .e = part + 3 * n,
              .tau = part + 4 * n,
              .update = part + 5 * n,
              .spare = part + 6 * n};
    found *list = (found *)(void *)(part + PARTS * n);
    embla_status status = solve(&w, list, vectors, steps > 0 ? steps : 30 * n, values, out);
    embla_mem_free(space, bytes);
    return status;
}
