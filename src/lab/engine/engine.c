/* SPDX-License-Identifier: Apache-2.0 */
/* The interface to the libraries of matrix products and eigenvalues: loads them once, checks the
 * arguments, widens bf16 to f32 if the CPU cannot multiply it, and computes eigenvalues by plain
 * loops (eigen.c) if there is no LAPACK.
 *
 * A product runs on the calling thread unless `spread` is set. Callers divide their work into tiles
 * of fixed size, so results do not depend on the number of threads.
 */
#include "engine/engine.h"

#include <stdatomic.h>
#include <stdio.h>
#include <string.h>

#include "base/lock.h"
#include "base/mem.h"
#include "base/parallel.h"
#include "embla_lab.h"
#include "engine/eigen.h"
#include "engine/library.h"

#if defined(EMBLA_ENGINE_ONEDNN)
static const embla_product_library *const products = &embla_onednn;
#elif defined(EMBLA_ENGINE_CBLAS)
static const embla_product_library *const products = &embla_cblas;
#else
static const embla_product_library *const products = NULL;
#endif
#ifdef EMBLA_WITH_LAPACKE
static const embla_eigen_library *const lapack = &embla_lapacke;
#else
static const embla_eigen_library *const lapack = NULL;
#endif

/* The largest matrix of eigenvalues: above it, 32-bit LAPACK integers overflow. */
enum { EIGEN_SIDE = 32768 };

/* ---- loading ---- */

static embla_once products_once, lapack_once;
static embla_library products_state = {.name = "none"}, lapack_state;
static atomic_bool lapack_loaded;
static atomic_int bf16_wanted = -1; /* set by tests; see embla_engine_use_bf16 */
static atomic_size_t failing;       /* likewise; see embla_engine_fail */

static void load_products(void)
{
    if (products)
        products->load(&products_state);
    else
        (void)snprintf(products_state.error, sizeof products_state.error,
                       "this build has no engine for matrix products (EMBLA_ENGINE=none)");
}

static void load_lapack(void)
{
    lapack->load(&lapack_state);
    atomic_store(&lapack_loaded, true);
}

static embla_status check_products(void)
{
    if (embla_engine_has_products()) return EMBLA_OK;
    return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s", products_state.error);
}

bool embla_engine_has_products(void)
{
    embla_once_run(&products_once, load_products);
    return !*products_state.error;
}

bool embla_engine_has_bf16(void)
{
    int wanted = atomic_load_explicit(&bf16_wanted, memory_order_relaxed);
    embla_once_run(&products_once, load_products);
    return wanted < 0 ? products_state.bf16 : wanted > 0;
}

void embla_engine_use_bf16(int use)
{
    atomic_store(&bf16_wanted, use);
}

const char *embla_engine_name(void)
{
    embla_once_run(&products_once, load_products);
    return products_state.name;
}

const char *embla_engine_warning(void)
{
    embla_once_run(&products_once, load_products);
    if (*products_state.error) return products_state.error;
    if (*products_state.warning) return products_state.warning;
    /* A warning must not load LAPACK, so it is about LAPACK only after its first use. */
    return atomic_load(&lapack_loaded) && *lapack_state.warning ? lapack_state.warning : NULL;
}

/* ---- products ---- */

static void clear(float *out, size_t m, size_t n, size_t stride)
{
    for (size_t i = 0; i < m; i++) memset(out + i * stride, 0, n * sizeof *out);
}

static embla_status check_strides(embla_product_form form, size_t m, size_t n, size_t k,
                                  size_t a_stride, size_t b_stride, size_t out_stride)
{
    size_t a_width = form == EMBLA_PRODUCT_AT_B ? m : k;
    size_t b_width = form == EMBLA_PRODUCT_A_BT ? k : n;
    if (a_stride < a_width || b_stride < b_width || out_stride < n)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "the strides of a product are %zu, %zu and %zu; its rows have %zu, %zu "
                          "and %zu numbers",
                          a_stride, b_stride, out_stride, a_width, b_width, n);
    return EMBLA_OK;
}

/* Address space, measured under `ulimit -v`: each thread in a product uses 10 to 40 MiB; OpenBLAS
 * takes 128 MiB for itself and for each call, and stacks for its threads. */
enum { PRODUCT_THREAD = 48 << 20, EIGEN_LOAD = 448 << 20, EIGEN_CALL = 288 << 20 };

/* All threads of a loop may be in a product at once. */
static embla_status reserve_products(void)
{
    return embla_library_reserve(embla_share_width() * PRODUCT_THREAD, products_state.name);
}

void embla_engine_fail(size_t n)
{
    atomic_store(&failing, n);
}

/* EMBLA_ERR_MEMORY if a test wants this product to fail. */
static embla_status check_failing(void)
{
    size_t left = atomic_load_explicit(&failing, memory_order_relaxed);
    while (left > 0 && !atomic_compare_exchange_weak(&failing, &left, left - 1)) continue;
    return left == 1 ? embla_fail(EMBLA_ERR_MEMORY, "a test lets a product fail") : EMBLA_OK;
}

embla_status embla_engine_product(const embla_product *product)
{
    embla_product p = *product;
    EMBLA_TRY(check_strides(p.form, p.m, p.n, p.k, p.a_stride, p.b_stride, p.out_stride));
    EMBLA_TRY(check_products());
    if (p.m == 0 || p.n == 0) return EMBLA_OK;
    if (p.k == 0) {
        if (!p.add) clear(p.out, p.m, p.n, p.out_stride);
        return EMBLA_OK;
    }
    EMBLA_TRY(reserve_products());
    EMBLA_TRY(check_failing());
    return products->multiply(&p);
}

/* ---- products of bf16 ---- */

/* Converts rows x n numbers to f32 and packs the rows together. */
static void widen(const uint16_t *in, size_t stride, size_t rows, size_t n, float *out)
{
    for (size_t r = 0; r < rows; r++) {
        for (size_t i = 0; i < n; i++) {
            uint32_t bits = (uint32_t)in[r * stride + i] << 16;
            memcpy(&out[r * n + i], &bits, sizeof bits);
        }
    }
}

static size_t minimum(size_t a, size_t b)
{
    return a < b ? a : b;
}

/* The largest m, n and k of a widened block. A block of a and one of b fill EMBLA_BF16_SPACE. */
enum { BLOCK_M = 256, BLOCK_N = 512, BLOCK_K = 512 };
_Static_assert((BLOCK_M + BLOCK_N) * BLOCK_K == EMBLA_BF16_SPACE, "room for both blocks");

/* Widens the block of a that begins at row i and depth k of the product. */
static void widen_a(const embla_product_bf16 *p, size_t i, size_t k, embla_product *block,
                    float *to)
{
    bool transposed = p->form == EMBLA_PRODUCT_AT_B;
    block->a = to;
    block->a_stride = transposed ? block->m : block->k;
    if (transposed)
        widen(p->a + k * p->a_stride + i, p->a_stride, block->k, block->m, to);
    else
        widen(p->a + i * p->a_stride + k, p->a_stride, block->m, block->k, to);
}

/* Widens the block of b that begins at column j and depth k of the product. */
static void widen_b(const embla_product_bf16 *p, size_t j, size_t k, embla_product *block,
                    float *to)
{
    bool transposed = p->form == EMBLA_PRODUCT_A_BT;
    block->b = to;
    block->b_stride = transposed ? block->k : block->n;
    if (transposed)
        widen(p->b + j * p->b_stride + k, p->b_stride, block->n, block->k, to);
    else
        widen(p->b + k * p->b_stride + j, p->b_stride, block->k, block->n, to);
}

static embla_status multiply_widened(const embla_product_bf16 *p, float *space)
{
    embla_product block = {.form = p->form, .out_stride = p->out_stride};
    for (size_t k = 0; k < p->k; k += BLOCK_K) {
        block.k = minimum(BLOCK_K, p->k - k);
        block.add = p->add || k > 0;
        for (size_t j = 0; j < p->n; j += BLOCK_N) {
            block.n = minimum(BLOCK_N, p->n - j);
            widen_b(p, j, k, &block, space + BLOCK_M * BLOCK_K);
            for (size_t i = 0; i < p->m; i += BLOCK_M) {
                block.m = minimum(BLOCK_M, p->m - i);
                block.out = p->out + i * p->out_stride + j;
                widen_a(p, i, k, &block, space);
                EMBLA_TRY(products->multiply(&block));
            }
        }
    }
    return EMBLA_OK;
}

/* Without bf16 instructions, widening first is faster than the engine's own bf16 product. */
static bool multiply_native(const embla_product_bf16 *p, embla_status *status)
{
    return products->multiply_bf16 && embla_engine_has_bf16() && products->multiply_bf16(p, status);
}

embla_status embla_engine_product_bf16(const embla_product_bf16 *product)
{
    embla_product_bf16 copy = *product, *p = &copy;
    size_t bytes = EMBLA_BF16_SPACE * sizeof(float);
    embla_status status = EMBLA_OK;
    void *space;
    EMBLA_TRY(check_strides(p->form, p->m, p->n, p->k, p->a_stride, p->b_stride, p->out_stride));
    EMBLA_TRY(check_products());
    if (p->m == 0 || p->n == 0) return EMBLA_OK;
    if (p->k == 0) {
        if (!p->add) clear(p->out, p->m, p->n, p->out_stride);
        return EMBLA_OK;
    }
    EMBLA_TRY(reserve_products());
    if (multiply_native(p, &status)) return status;
    if (p->space) return multiply_widened(p, p->space);
    EMBLA_TRY(embla_mem_new(bytes, "bf16 widened to f32", &space));
    status = multiply_widened(p, space);
    embla_mem_free(space, bytes);
    return status;
}

embla_status embla_engine_prepare_bf16(const embla_product_bf16 *product, embla_prepared **out)
{
    embla_product_bf16 p = *product;
    EMBLA_TRY(check_strides(p.form, p.m, p.n, p.k, p.a_stride, p.b_stride, p.out_stride));
    EMBLA_TRY(check_products());
    if (p.m == 0 || p.n == 0 || p.k == 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "a prepared product of %zu x %zu by %zu x %zu is empty", p.m, p.k, p.k,
                          p.n);
    if (!products->prepare_bf16 || !embla_engine_has_bf16())
        return embla_fail(EMBLA_ERR_UNSUPPORTED, "%s does not multiply bf16 on this CPU",
                          products_state.name);
    return products->prepare_bf16(&p, out);
}

embla_status embla_engine_run(const embla_prepared *prepared)
{
    return products->run(prepared);
}

void embla_prepared_free(embla_prepared *prepared)
{
    if (prepared) products->prepared_free(prepared);
}

/* ---- eigenvalues ---- */

embla_status embla_engine_eigen(double *matrix, size_t n, size_t vectors, double *values,
                                double *out)
{
    if (n > EIGEN_SIDE || vectors > n)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%zu eigenvectors of a %zu x %zu matrix; the largest matrix is %d x %d, "
                          "and it has as many eigenvectors as rows",
                          vectors, n, n, EIGEN_SIDE, EIGEN_SIDE);
    if (n == 0) return EMBLA_OK;
    if (!lapack) return embla_eigen_plain(matrix, n, vectors, values, out, 0);
    if (!atomic_load(&lapack_loaded)) EMBLA_TRY(embla_library_reserve(EIGEN_LOAD, "LAPACK"));
    embla_once_run(&lapack_once, load_lapack);
    if (*lapack_state.error) return embla_eigen_plain(matrix, n, vectors, values, out, 0);
    EMBLA_TRY(embla_library_reserve(EIGEN_CALL, "LAPACK"));
    return lapack->eigen(matrix, n, vectors, values, out);
}
