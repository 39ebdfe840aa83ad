/* SPDX-License-Identifier: Apache-2.0 */
/* The plane of a film: one linear map for all moments, so that what moves on the page has moved.
 * A plane of each moment's own would turn without cause.
 *
 * The two main directions are found by orthogonal iteration on the rows of the last moment: plain
 * loops in double, always the same bits, and no LAPACK. A film has few rows.
 */
#include <math.h>
#include <string.h>

#include "base/finite.h"
#include "base/hash.h"
#include "map/axis.h"
#include "map/film.h"

enum { ROUNDS = 300 };

/* The rows of one moment: their mean is subtracted, and rows that are not finite are 0. */
typedef struct {
    size_t count, dim;
    float *read;    /* count x dim */
    double *x;      /* the same, less the mean */
    double *mean;   /* dim */
    bool *finite;   /* count */
    double total;   /* the sum of squares of x */
    double *matrix; /* of sum_squares; NULL means that the rows are read */
} moment_rows;

static double dot(const double *x, const double *y, size_t n)
{
    double sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t lane = 0; lane < 4; lane++) sums[lane] += x[i + lane] * y[i + lane];
    for (; i < n; i++) sums[i % 4] += x[i] * y[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

static embla_status take(embla_arena *arena, size_t count, size_t bytes, void *out)
{
    return embla_arena_many(arena, count, bytes, "the plane of a film", out);
}

static embla_status new_rows(const embla_film *film, embla_arena *arena, moment_rows *out)
{
    *out = (moment_rows){.count = film->count, .dim = film->dim};
    EMBLA_TRY(take(arena, film->count * film->dim, sizeof *out->read, &out->read));
    EMBLA_TRY(take(arena, film->count * film->dim, sizeof *out->x, &out->x));
    EMBLA_TRY(take(arena, film->dim, sizeof *out->mean, &out->mean));
    return take(arena, film->count, sizeof *out->finite, &out->finite);
}

/* Fills rows with those of a moment. */
static void read_moment(const embla_film *film, size_t moment, moment_rows *rows)
{
    size_t dim = film->dim, kept = 0;
    embla_film_rows(film, moment, 0, film->count, rows->read);
    memset(rows->mean, 0, dim * sizeof *rows->mean);
    for (size_t r = 0; r < film->count; r++) {
        const float *from = rows->read + r * dim;
        rows->finite[r] = embla_all_finite(from, dim);
        if (!rows->finite[r]) continue;
        for (size_t i = 0; i < dim; i++) rows->mean[i] += (double)from[i];
        kept++;
    }
    for (size_t i = 0; i < dim && kept > 0; i++) rows->mean[i] /= (double)kept;
    rows->total = 0;
    for (size_t r = 0; r < film->count; r++) {
        const float *from = rows->read + r * dim;
        double *x = rows->x + r * dim;
        if (rows->finite[r])
            for (size_t i = 0; i < dim; i++) x[i] = (double)from[i] - rows->mean[i];
        else
            memset(x, 0, dim * sizeof *x);
        rows->total += dot(x, x, dim);
    }
}

/* ---- axes ---- */

/* Removes from axis what it has of `other` (NULL: nothing), and gives it the norm 1. An axis that
 * is only rounding error becomes 0: false. */
static bool normalize(double *axis, const double *other, size_t dim)
{
    double before = sqrt(dot(axis, axis, dim)), along = other ? dot(axis, other, dim) : 0;
    for (size_t i = 0; i < dim && other; i++) axis[i] -= along * other[i];
    double norm = sqrt(dot(axis, axis, dim));
    bool good = norm > 1e-9 * before && isfinite(norm);
    for (size_t i = 0; i < dim; i++) axis[i] = good ? axis[i] / norm : 0;
    return good;
}

/* The covariance, times the rows: dim x dim, where dim is not much larger than the rows; a round
 * reads it in place of them. */
static void sum_squares(moment_rows *rows, double *matrix)
{
    size_t dim = rows->dim;
    for (size_t r = 0; r < rows->count; r++) {
        const double *x = rows->x + r * dim;
        for (size_t i = 0; i < dim; i++)
            for (size_t k = 0; k < dim; k++) matrix[i * dim + k] += x[i] * x[k];
    }
    rows->matrix = matrix;
}

/* to = the covariance times axis: the sum over rows of (row . axis) * row. */
static void apply(const moment_rows *rows, const double *axis, double *to)
{
    size_t dim = rows->dim;
    memset(to, 0, dim * sizeof *to);
    for (size_t i = 0; i < dim && rows->matrix; i++) to[i] = dot(rows->matrix + i * dim, axis, dim);
    for (size_t r = 0; r < rows->count && !rows->matrix; r++) {
        const double *x = rows->x + r * dim;
        double along = dot(x, axis, dim);
        for (size_t i = 0; i < dim; i++) to[i] += along * x[i];
    }
}

/* One round: the next axis, at a right angle to `other`. Returns how far it has turned. */
static double turn(const moment_rows *rows, const double *other, double *axis, double *space)
{
    apply(rows, axis, space);
    (void)normalize(space, other, rows->dim);
    double turned = 1 - fabs(dot(axis, space, rows->dim));
    memcpy(axis, space, rows->dim * sizeof *axis);
    return dot(axis, axis, rows->dim) > 0 ? turned : 0;
}

/* The two directions of the largest variance; 0 where there is none. space: dim numbers. */
static void main_axes(const moment_rows *rows, double *axes, double *space)
{
    size_t dim = rows->dim;
    for (size_t i = 0; i < 2 * dim; i++) /* any start that is at a right angle to neither */
        axes[i] = (double)embla_splitmix64(i) / 18446744073709551616.0 - 0.5;
    for (size_t a = 0; a < 2; a++) (void)normalize(axes + a * dim, a ? axes : NULL, dim);
    for (int round = 0; round < ROUNDS; round++) {
        double turned = turn(rows, NULL, axes, space);
        turned += turn(rows, axes, axes + dim, space);
        if (turned < 1e-11) break; /* an angle of 5e-6: no pixel */
    }
    for (size_t a = 0; a < 2; a++) embla_axis_fix_sign(axes + a * dim, dim);
}

/* The axes from row to row that were asked for. */
static embla_status pair_axes(const embla_film *film, const moment_rows *rows, double *axes)
{
    size_t dim = film->dim;
    for (size_t a = 0; a < 2; a++) {
        size_t from = (size_t)film->axes[2 * a], to = (size_t)film->axes[2 * a + 1];
        if (!rows->finite[from] || !rows->finite[to]) continue; /* diverged: no direction */
        for (size_t i = 0; i < dim; i++)
            axes[a * dim + i] = rows->x[to * dim + i] - rows->x[from * dim + i];
        if (!normalize(axes + a * dim, a ? axes : NULL, dim))
            return embla_fail(EMBLA_ERR_ARGUMENT,
                              "the axis from row %" PRId64 " to row %" PRId64 " has %s; choose "
                              "other rows for the axes",
                              film->rows[from], film->rows[to],
                              a ? "the direction of the other axis" : "no length");
    }
    return EMBLA_OK;
}

/* ---- moments ---- */

static void project_moment(const moment_rows *rows, const double *axes, const double middle[2],
                           double *xy, double share[2])
{
    double along[2];
    share[0] = share[1] = 0;
    for (size_t a = 0; a < 2; a++) {
        const double *axis = axes + a * rows->dim;
        double mean = dot(rows->mean, axis, rows->dim);
        for (size_t r = 0; r < rows->count; r++) {
            along[a] = dot(rows->x + r * rows->dim, axis, rows->dim);
            share[a] += along[a] * along[a];
            xy[2 * r + a] = rows->finite[r] ? along[a] + mean - middle[a] : NAN;
        }
        share[a] = rows->total > 0 ? share[a] / rows->total : 0;
    }
}

embla_status embla_film_project(const embla_film *film, embla_arena *arena, embla_film_view *out)
{
    moment_rows rows;
    double *axes, *space, *matrix, middle[2], largest = 0;
    size_t numbers = 2 * film->count;
    EMBLA_TRY(new_rows(film, arena, &rows));
    EMBLA_TRY(take(arena, 2 * film->dim, sizeof *axes, &axes));
    EMBLA_TRY(take(arena, film->dim, sizeof *space, &space));
    EMBLA_TRY(take(arena, film->taken * numbers, sizeof *out->xy, &out->xy));
    EMBLA_TRY(take(arena, film->taken * 2, sizeof *out->share, &out->share));
    read_moment(film, film->taken - 1, &rows);
    if (!film->axes && film->dim <= film->count) {
        EMBLA_TRY(take(arena, film->dim * film->dim, sizeof *matrix, &matrix));
        sum_squares(&rows, matrix);
    }
    if (film->axes)
        EMBLA_TRY(pair_axes(film, &rows, axes));
    else
        main_axes(&rows, axes, space);
    for (size_t a = 0; a < 2; a++) middle[a] = dot(rows.mean, axes + a * film->dim, film->dim);
    for (size_t m = 0; m < film->taken; m++) {
        read_moment(film, m, &rows);
        project_moment(&rows, axes, middle, out->xy + m * numbers, out->share + 2 * m);
    }
    for (size_t i = 0; i < film->taken * numbers; i++) /* one scale for all: false for a NaN */
        if (fabs(out->xy[i]) > largest) largest = fabs(out->xy[i]);
    for (size_t i = 0; i < film->taken * numbers && largest > 0; i++) out->xy[i] /= largest;
    return EMBLA_OK;
}
