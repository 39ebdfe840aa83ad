/* SPDX-License-Identifier: Apache-2.0 */
/* What the engine's outside libraries have in common: how they are loaded, and the functions
 * that engine.c calls. onednn.c and lapacke.c are compiled only if their header was found at
 * build time.
 */
#ifndef EMBLA_ENGINE_LIBRARY_H
#define EMBLA_ENGINE_LIBRARY_H

#include "engine/engine.h"

enum { EMBLA_LIBRARY_NAME = 64, EMBLA_LIBRARY_SENTENCE = 256 };

/* Filled by load. A library with an error must not be called. */
typedef struct {
    char name[EMBLA_LIBRARY_NAME];        /* for bug reports: "oneDNN 2.6.3" */
    char error[EMBLA_LIBRARY_SENTENCE];   /* why the library cannot be used, or empty */
    char warning[EMBLA_LIBRARY_SENTENCE]; /* why the library is slow, or empty */
    bool bf16;                            /* the CPU has bf16 instructions that it uses */
} embla_library;

/* A library of matrix products. The factors are not empty and the strides are valid. */
typedef struct {
    void (*load)(embla_library *out);
    embla_status (*multiply)(const embla_product *product);
    /* Returns false, and leaves out as it is, if the library cannot multiply these factors.
     * NULL means the library has no bf16 products. */
    bool (*multiply_bf16)(const embla_product_bf16 *product, embla_status *status);
    /* Prepared bf16 products; all three are NULL if the library has none. */
    embla_status (*prepare_bf16)(const embla_product_bf16 *product, embla_prepared **out);
    embla_status (*run)(const embla_prepared *prepared);
    void (*prepared_free)(embla_prepared *prepared);
} embla_product_library;

/* A library of eigenvalues; n is at least 1. */
typedef struct {
    void (*load)(embla_library *out);
    embla_status (*eigen)(double *matrix, size_t n, size_t vectors, double *values, double *out);
} embla_eigen_library;

extern const embla_product_library embla_onednn, embla_cblas;
extern const embla_eigen_library embla_lapacke;

/* Declares a pointer to a library's function, of the type that its header declares, so that the
 * compiler checks every call. */
#define EMBLA_LIBRARY_POINTER(name) __typeof__(name) *name;
/* Sets that pointer in *table; needs the locals library and missing. */
#define EMBLA_LIBRARY_FIND(name)                                                                   \
    table->name = (__typeof__(table->name))embla_library_symbol(library, #name, &missing);

/* Loads the first of names (ended by NULL) that the system has; it stays loaded until the
 * process ends. Returns NULL if there is none, and writes a sentence that names the package. */
void *embla_library_load(const char *const *names, const char *package,
                         char error[EMBLA_LIBRARY_SENTENCE]);
/* EMBLA_ERR_MEMORY if the process may not map so many bytes now. OpenBLAS waits for ever for a
 * buffer that it cannot get, and oneDNN ends the process: both are asked only if there is room. */
EMBLA_CHECKED embla_status embla_library_reserve(size_t bytes, const char *library);
/* Returns NULL if the library has no such symbol, and then sets *missing if it was NULL. */
void *embla_library_symbol(void *library, const char *name, const char **missing);

#endif
