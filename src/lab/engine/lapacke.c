/* SPDX-License-Identifier: Apache-2.0 */
/* Eigenvalues of symmetric matrices by LAPACKE, always on one thread: with more threads OpenBLAS
 * gives other bits.
 */
#include <lapacke.h>
#include <stdio.h>
#include <string.h>

#include "base/mem.h"
#include "engine/library.h"
#include "engine/openblas.h"

#define LAPACK_FUNCTIONS(X) X(LAPACKE_dsytrd) X(LAPACKE_dsterf) X(LAPACKE_dstemr) X(LAPACKE_dormtr)
typedef struct {
    LAPACK_FUNCTIONS(EMBLA_LIBRARY_POINTER)
    embla_openblas blas;
} functions;
static functions lapack;

static void load(embla_library *out)
{
    static const char *const names[] = {"liblapacke.so.3", NULL};
    functions *table = &lapack;
    const char *missing = NULL;
    void *library = embla_library_load(names, "LAPACKE (Debian: liblapacke)", out->error);
    if (!library) return;
    LAPACK_FUNCTIONS(EMBLA_LIBRARY_FIND)
    if (missing) (void)snprintf(out->error, sizeof out->error, "%s has no %s", names[0], missing);
    lapack.blas = embla_openblas_find(library);
    embla_openblas_warn(&lapack.blas, out->warning);
}

/* The matrix is reduced to tridiagonal form once. All eigenvalues are computed from that form,
 * and so are the few eigenvectors: much less work than computing every eigenvector. */
enum { DIAGONAL, OFF_DIAGONAL, REFLECTORS, COPY, OFF_COPY, SELECTED, PARTS };

static lapack_int largest_vectors(size_t n, size_t vectors, double *parts[PARTS],
                                  lapack_int *support, double *out)
{
    lapack_int size = (lapack_int)n, count = 0, tryrac = 1;
    lapack_int first = size - (lapack_int)vectors + 1;
    return lapack.LAPACKE_dstemr(LAPACK_COL_MAJOR, 'V', 'I', size, parts[COPY], parts[OFF_COPY],
                                 0.0, 0.0, first, size, &count, parts[SELECTED], out, size,
                                 (lapack_int)vectors, support, &tryrac);
}

static lapack_int solve(double *matrix, size_t n, size_t vectors, double *parts[PARTS],
                        lapack_int *support, double *out)
{
    lapack_int size = (lapack_int)n;
    lapack_int info =
        lapack.LAPACKE_dsytrd(LAPACK_COL_MAJOR, 'L', size, matrix, size, parts[DIAGONAL],
                              parts[OFF_DIAGONAL], parts[REFLECTORS]);
    if (info != 0) return info;
    memcpy(parts[COPY], parts[DIAGONAL], n * sizeof(double));
    memcpy(parts[OFF_COPY], parts[OFF_DIAGONAL], n * sizeof(double));
    if (vectors > 0) info = largest_vectors(n, vectors, parts, support, out);
    if (info == 0 && vectors > 0)
        info = lapack.LAPACKE_dormtr(LAPACK_COL_MAJOR, 'L', 'L', 'N', size, (lapack_int)vectors,
                                     matrix, size, parts[REFLECTORS], out, size);
    if (info == 0) info = lapack.LAPACKE_dsterf(size, parts[DIAGONAL], parts[OFF_DIAGONAL]);
    return info;
}

static embla_status eigen(double *matrix, size_t n, size_t vectors, double *values, double *out)
{
    size_t bytes = (PARTS * n + 2 * vectors + n * vectors) * sizeof(double);
    double *parts[PARTS];
    void *space;
    EMBLA_TRY(embla_mem_new(bytes, "eigenvalues", &space));
    for (size_t i = 0; i < PARTS; i++) parts[i] = (double *)space + i * n;
    double *support = (double *)space + PARTS * n, *found = support + 2 * vectors;
    embla_openblas_one_thread_begin(&lapack.blas);
    lapack_int info = solve(matrix, n, vectors, parts, (lapack_int *)(void *)support, found);
    embla_openblas_one_thread_end(&lapack.blas);
    if (info == 0) {
        memcpy(values, parts[DIAGONAL], n * sizeof *values);
        if (vectors > 0) memcpy(out, found, n * vectors * sizeof *out);
    }
    embla_mem_free(space, bytes);
    if (info == LAPACK_WORK_MEMORY_ERROR || info == LAPACK_TRANSPOSE_MEMORY_ERROR)
        return embla_fail(EMBLA_ERR_MEMORY,
                          "out of memory for the eigenvalues of a %zu x %zu matrix", n, n);
    if (info != 0)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "LAPACK found no eigenvalues of a %zu x %zu matrix (LAPACK status %d)", n,
                          n, (int)info);
    return EMBLA_OK;
}

const embla_eigen_library embla_lapacke = {.load = load, .eigen = eigen};
