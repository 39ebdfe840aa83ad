/* SPDX-License-Identifier: Apache-2.0 */
/* Singular values are the roots of the eigenvalues of the table's Gram matrix. Values that cannot
 * be told from rounding errors are reported as 0: thousands of them would otherwise add up to
 * directions that do not exist.
 */
#include <math.h>

#include "base/elementary.h"
#include "base/mem.h"
#include "base/options.h"
#include "embla_lab.h"
#include "engine/eigen.h"
#include "engine/engine.h"
#include "engine/gram.h"

/* Turns eigenvalues, smallest first, into singular values, largest first, in the scale of the Gram
 * matrix. A table of n rows has at most n directions, or n - 1 around its mean. */
static void roots_of(const embla_gram *gram, bool centred, double *values)
{
    size_t dim = gram->dim;
    int64_t most = centred && gram->rows > 0 ? gram->rows - 1 : gram->rows;
    double least = values[dim - 1] * (double)dim * 0x1p-52;
    if (gram->noise > least) least = gram->noise;
    for (size_t i = 0; i < dim / 2; i++) {
        double swap = values[i];
        values[i] = values[dim - 1 - i];
        values[dim - 1 - i] = swap;
    }
    for (size_t i = 0; i < dim; i++)
        values[i] = (int64_t)i < most && values[i] > least ? sqrt(values[i]) : 0.0;
}

/* How many of the largest squares make up this share of their sum. */
static int64_t directions(const double *s, size_t n, double total, double share)
{
    double sum = 0;
    for (size_t i = 0; i < n; i++) {
        sum += s[i] * s[i];
        if (sum >= share * total) return (int64_t)i + 1;
    }
    return (int64_t)n;
}

static void summarize(const double *s, size_t n, embla_spectrum_report *out)
{
    double sum = 0, squares = 0, fourth = 0, entropy = 0;
    for (size_t i = 0; i < n; i++) {
        sum += s[i];
        squares += s[i] * s[i];
        fourth += s[i] * s[i] * s[i] * s[i];
    }
    if (!(sum > 0)) return;
    for (size_t i = 0; i < n && s[i] > 0; i++) entropy -= s[i] / sum * embla_log(s[i] / sum);
    out->effective_rank = embla_exp(entropy);
    out->participation = squares * squares / fourth;
    out->stable_rank = squares / (s[0] * s[0]);
    out->rank_50 = directions(s, n, squares, 0.5);
    out->rank_90 = directions(s, n, squares, 0.9);
}

static embla_status values_of(const embla_table *table, const embla_spectrum_options *options,
                              double *values, embla_spectrum_report *report)
{
    embla_gram gram;
    const embla_gram_options how = {
        .centred = options->centred, .plain = options->no_engine, .threads = options->threads};
    EMBLA_TRY(embla_gram_of(table, &how, &gram));
    embla_status status = options->no_engine
                              ? embla_eigen_plain(gram.matrix, gram.dim, 0, values, NULL, 0)
                              : embla_engine_eigen(gram.matrix, gram.dim, 0, values, NULL);
    if (status == EMBLA_OK) {
        *report = (embla_spectrum_report){
            .rows = gram.rows, .nonfinite = gram.nonfinite, .count = gram.dim};
        roots_of(&gram, options->centred, values);
        summarize(values, gram.dim, report);
        for (size_t i = 0; i < gram.dim; i++) values[i] = ldexp(values[i], gram.exponent);
    }
    embla_gram_free(&gram);
    return status;
}

embla_status embla_spectrum(const embla_table *table, const embla_spectrum_options *options,
                            double *singular, embla_spectrum_report *report)
{
    EMBLA_TRY(embla_options_check(options));
    static const embla_spectrum_options defaults;
    embla_spectrum_report made;
    void *memory;
    EMBLA_NEED(table);
    EMBLA_NEED(singular);
    EMBLA_NEED(report);
    size_t dim = embla_table_dim(table), bytes = dim * sizeof(double);
    EMBLA_TRY(embla_mem_new(bytes, "singular values", &memory));
    double *values = memory;
    embla_status status = values_of(table, options ? options : &defaults, values, &made);
    if (status == EMBLA_OK) {
        for (size_t i = 0; i < dim; i++) singular[i] = values[i];
        *report = made;
    }
    embla_mem_free(memory, bytes);
    return status;
}
