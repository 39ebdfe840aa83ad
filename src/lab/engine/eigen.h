/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues of symmetric matrices by plain loops: where there is no LAPACK, and for the same bits
 * on every CPU. */
#ifndef EMBLA_ENGINE_EIGEN_H
#define EMBLA_ENGINE_EIGEN_H

#include <stddef.h>

#include "base/status.h"

/* As embla_engine_eigen (engine.h), for n of at least 1. At most `steps` steps of the iteration are
 * taken; 0 means 30 n, of which matrices need about 2 n. EMBLA_ERR_UNSUPPORTED if that is not
 * enough, or if a number is not finite. A failed call leaves values and out as they are. */
EMBLA_CHECKED embla_status embla_eigen_plain(double *matrix, size_t n, size_t vectors,
                                             double *values, double *out, size_t steps);

#endif
