/* SPDX-License-Identifier: Apache-2.0 */
/* What OpenBLAS offers beyond CBLAS. It may be the BLAS behind cblas.c, behind lapacke.c, or
 * behind both; with another BLAS every function here does nothing.
 */
#ifndef EMBLA_ENGINE_OPENBLAS_H
#define EMBLA_ENGINE_OPENBLAS_H

#include "engine/library.h"

/* Each pointer is NULL if the library is another BLAS. */
typedef struct {
    char *(*corename)(void), *(*config)(void);
    int (*get_threads)(void);
    void (*set_threads)(int);
} embla_openblas;

embla_openblas embla_openblas_find(void *library);

/* OpenBLAS has one number of threads for the whole process. It is 1 from the first begin until
 * the last end, then what it was before. */
void embla_openblas_one_thread_begin(const embla_openblas *blas);
void embla_openblas_one_thread_end(const embla_openblas *blas);

/* Writes a sentence if OpenBLAS uses kernels that are older than this CPU. */
void embla_openblas_warn(const embla_openblas *blas, char warning[EMBLA_LIBRARY_SENTENCE]);

#endif
