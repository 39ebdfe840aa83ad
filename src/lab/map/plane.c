/* SPDX-License-Identifier: Apache-2.0 */
/* PCA of all rows, or of some (the basis): the mean is subtracted, the two directions of the
 * largest variance are computed from sums of products, and each row is projected on them in double.
 * Nothing is random and no rows are sampled: the same table always gives the same picture.
 */
#include <float.h>
#include <math.h>

#include "base/kernels.h"
#include "base/mem.h"
#include "base/options.h"
#include "base/parallel.h"
#include "base/threads.h"
#include "embla_lab.h"
#include "engine/eigen.h"
#include "engine/engine.h"
#include "engine/gram.h"
#include "map/axis.h"
#include "table/access.h"

typedef struct {
    const embla_row_source *source;
    const embla_gram *gram;
    bool whole; /* gram is that of the table, not of a basis */
    embla_decode_fn *decode;
    const double *axis[2]; /* of norm 1; NULL means that there is none */
    double middle[2];      /* projections of the mean on them */
    float *xy;             /* two numbers for each row */
} projection;

/* Four partial sums, so that one addition need not wait for the one before. */
static double along(const float *x, const double *axis, size_t n)
{
    double sums[4] = {0};
    size_t i = 0;
    for (; i + 4 <= n; i += 4)
        for (size_t lane = 0; lane < 4; lane++) sums[lane] += (double)x[i + lane] * axis[i + lane];
    for (; i < n; i++) sums[i % 4] += (double)x[i] * axis[i];
    return (sums[0] + sums[1]) + (sums[2] + sums[3]);
}

/* A projection of huge numbers may not fit in a float. */
static float float_of(double x)
{
    if (x > FLT_MAX) return FLT_MAX;
    if (x < -FLT_MAX) return -FLT_MAX;
    return (float)x;
}

static void project(const projection *on, int64_t row)
{
    float *xy = on->xy + 2 * row;
    float space[EMBLA_PIECE];
    double sums[2] = {0, 0};
    size_t dim = on->gram->dim;
    bool finite = !on->whole || !embla_gram_left_out(on->gram, row);
    for (size_t i = 0; i < dim && finite; i += EMBLA_PIECE) {
        size_t n = dim - i < EMBLA_PIECE ? dim - i : EMBLA_PIECE;
        const float *x = embla_source_piece(on->source, on->decode, row, i, n, space);
        for (size_t k = 0; k < n && !on->whole; k++) finite = finite && isfinite(x[k]);
        for (size_t a = 0; a < 2; a++)
            if (on->axis[a]) sums[a] += along(x, on->axis[a] + i, n);
    }
    for (size_t a = 0; a < 2; a++) xy[a] = finite ? float_of(sums[a] - on->middle[a]) : NAN;
}

static embla_status project_rows(void *job, size_t first, size_t end, size_t slot)
{
    (void)slot;
    for (size_t row = first; row < end; row++) project(job, (int64_t)row);
    return EMBLA_OK;
}

static embla_status project_all(projection *on, int threads)
{
    size_t dim = on->gram->dim, rows = (size_t)on->source->rows;
    for (size_t a = 0; a < 2; a++)
        for (size_t i = 0; i < dim && on->axis[a]; i++)
            on->middle[a] += on->gram->mean[i] * on->axis[a][i];
    return embla_share(embla_threads_for(threads, rows * on->source->row->bytes), rows, 0,
                       project_rows, on);
}

/* The share of all variance. The sum of all eigenvalues may be below zero by rounding. */
static double share_of(const double *values, size_t dim, size_t axis)
{
    double sum = 0;
    for (size_t i = 0; i < dim; i++) sum += values[i] > 0 ? values[i] : 0;
    if (axis >= dim || !(values[dim - 1 - axis] > 0)) return 0;
    return values[dim - 1 - axis] / sum;
}

/* space has dim eigenvalues, then the eigenvectors, the largest last. */
static embla_status plane_of(const embla_table *table, bool whole, const embla_gram_options *how,
                             embla_gram *gram, double *space, float *xy, embla_plane_report *report)
{
    size_t dim = gram->dim, vectors = dim < 2 ? dim : 2;
    double *values = space, *axes = space + dim;
    EMBLA_TRY(how->plain ? embla_eigen_plain(gram->matrix, dim, vectors, values, axes, 0)
                         : embla_engine_eigen(gram->matrix, dim, vectors, values, axes));
    projection on = {.source = embla_table_source(table), .gram = gram, .whole = whole, .xy = xy};
    on.decode = embla_dtype_decoder(embla_table_dtype(table), embla_kernels_get()->isa);
    for (size_t a = 0; a < vectors; a++) {
        double *axis = axes + (vectors - 1 - a) * dim;
        embla_axis_fix_sign(axis, dim);
        /* a variance that is only rounding error has no direction */
        if (values[dim - 1 - a] > gram->noise) on.axis[a] = axis;
    }
    EMBLA_TRY(project_all(&on, how->threads));
    EMBLA_TRY(embla_table_check_file(table));
    *report = (embla_plane_report){.rows = on.source->rows};
    for (int64_t row = 0; row < on.source->rows; row++)
        report->nonfinite += isnan(xy[2 * row]) ? 1 : 0;
    report->rows -= report->nonfinite;
    for (size_t a = 0; a < 2; a++) report->share[a] = on.axis[a] ? share_of(values, dim, a) : 0;
    return EMBLA_OK;
}

static embla_status compute(const embla_table *table, const embla_table *basis,
                            const embla_gram_options *how, float *xy, embla_plane_report *report)
{
    embla_gram gram;
    void *space;
    size_t bytes = 3 * embla_table_dim(table) * sizeof(double);
    EMBLA_TRY(embla_gram_of(basis, how, &gram));
    embla_status status = embla_mem_new(bytes, "the principal directions", &space);
    if (status == EMBLA_OK) {
        status = plane_of(table, basis == table, how, &gram, space, xy, report);
        embla_mem_free(space, bytes);
    }
    embla_gram_free(&gram);
    return status;
}

/* Copies the rows of the basis to a table of their own. */
static embla_status copy_basis(const embla_table *table, const embla_plane_options *options,
                               embla_table **out)
{
    const embla_lookup_options how = {.threads = options->threads};
    embla_table *basis = NULL;
    if (options->basis_count == 0 || options->basis_count > (size_t)INT64_MAX)
        return embla_fail(EMBLA_ERR_ARGUMENT, "the basis has %zu rows; it must have at least 1",
                          options->basis_count);
    EMBLA_TRY(embla_table_check_rows(table, options->basis, options->basis_count));
    EMBLA_TRY(embla_table_new(EMBLA_F32, (int64_t)options->basis_count, embla_table_dim(table),
                              NULL, &basis));
    embla_status status = embla_lookup_rows(table, options->basis, options->basis_count, &how,
                                            embla_table_data(basis));
    if (status != EMBLA_OK) {
        embla_table_free(basis);
        return status;
    }
    *out = basis;
    return EMBLA_OK;
}

embla_status embla_plane(const embla_table *table, const embla_plane_options *options, float *xy,
                         embla_plane_report *report)
{
    EMBLA_TRY(embla_options_check(options));
    const embla_gram_options how = {.centred = true,
                                    .plain = options && options->no_engine,
                                    .threads = options ? options->threads : 0};
    embla_plane_report found = {0};
    embla_table *basis = NULL;
    EMBLA_NEED(table);
    EMBLA_NEED(xy);
    if (options && options->basis) EMBLA_TRY(copy_basis(table, options, &basis));
    embla_status status = compute(table, basis ? basis : table, &how, xy, &found);
    embla_table_free(basis);
    if (status == EMBLA_OK && report) *report = found;
    return status;
}
