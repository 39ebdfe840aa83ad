/* SPDX-License-Identifier: Apache-2.0 */
/* Matrix products by CBLAS, that of OpenBLAS or of macOS's Accelerate: for builds without oneDNN.
 * No header is needed: the interface is a standard, and the declaration here is its own.
 */
#include <limits.h>
#include <stdio.h>
#include <string.h>

#include "engine/library.h"
#include "engine/openblas.h"

enum { ROW_MAJOR = 101, AS_IT_IS = 111, TRANSPOSED = 112 }; /* the standard's numbers */
void cblas_sgemm(int order, int form_a, int form_b, int m, int n, int k, float alpha,
                 const float *a, int a_stride, const float *b, int b_stride, float beta, float *c,
                 int c_stride);

typedef struct {
    EMBLA_LIBRARY_POINTER(cblas_sgemm)
    embla_openblas blas;
} functions;
static functions cblas;

/* The first two words of "OpenBLAS 0.3.21 NO_LAPACKE DYNAMIC_ARCH ..", and the kernels in use. */
static void print_name(const embla_openblas *blas, char name[EMBLA_LIBRARY_NAME])
{
    (void)snprintf(name, EMBLA_LIBRARY_NAME, "%s", blas->config ? blas->config() : "CBLAS");
    char *space = strchr(name, ' ');
    if (space && (space = strchr(space + 1, ' '))) *space = '\0';
    if (blas->corename) {
        size_t used = strlen(name);
        (void)snprintf(name + used, EMBLA_LIBRARY_NAME - used, " (%s)", blas->corename());
    }
}

static void load(embla_library *out)
{
    static const char *const names[] = {
        "libopenblas.so.0",
        "libopenblas.so.3",
        "libcblas.so.3",
        "libblas.so.3",
        "/System/Library/Frameworks/Accelerate.framework/Accelerate", /* macOS */
        "libopenblas.dll",                                            /* Windows */
        NULL};
    functions *table = &cblas;
    const char *missing = NULL;
    void *library = embla_library_load(names, "OpenBLAS (Debian: libopenblas0)", out->error);
    if (!library) return;
    EMBLA_LIBRARY_FIND(cblas_sgemm)
    if (missing) {
        (void)snprintf(out->error, sizeof out->error, "the installed BLAS has no %s", missing);
        return;
    }
    cblas.blas = embla_openblas_find(library);
    print_name(&cblas.blas, out->name);
    embla_openblas_warn(&cblas.blas, out->warning);
}

static size_t largest_side(const embla_product *p)
{
    const size_t sides[] = {p->m, p->n, p->k, p->a_stride, p->b_stride, p->out_stride};
    size_t largest = 0;
    for (size_t i = 0; i < sizeof sides / sizeof sides[0]; i++)
        if (sides[i] > largest) largest = sides[i];
    return largest;
}

static embla_status multiply(const embla_product *p)
{
    size_t side = largest_side(p);
    if (side > INT_MAX)
        return embla_fail(EMBLA_ERR_UNSUPPORTED,
                          "a matrix product has a side of %zu; CBLAS supports at most %d", side,
                          INT_MAX);
    embla_openblas_one_thread_begin(&cblas.blas);
    cblas.cblas_sgemm(ROW_MAJOR, p->form == EMBLA_PRODUCT_AT_B ? TRANSPOSED : AS_IT_IS,
                      p->form == EMBLA_PRODUCT_A_BT ? TRANSPOSED : AS_IT_IS, (int)p->m, (int)p->n,
                      (int)p->k, 1.0f, p->a, (int)p->a_stride, p->b, (int)p->b_stride,
                      p->add ? 1.0f : 0.0f, p->out, (int)p->out_stride);
    embla_openblas_one_thread_end(&cblas.blas);
    return EMBLA_OK;
}

const embla_product_library embla_cblas = {.load = load, .multiply = multiply};
