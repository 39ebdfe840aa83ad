/* SPDX-License-Identifier: Apache-2.0 */
/* The inner loops, one set for each instruction set.
 *
 * A set is a const struct of functions. kernels_scalar.c is the readable reference; every other set
 * gives the same bits, faster, and is tested against it. The set is chosen once per process, on
 * first use. Callers have checked pointers and counts. Pointers need no alignment, and a kernel
 * cannot fail. The loops of a dtype are in its codec file (dtype.h), chosen by the same `isa`.
 */
#ifndef EMBLA_BASE_KERNELS_H
#define EMBLA_BASE_KERNELS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/isa.h"
#include "base/lines.h"
#include "base/status.h"

/* Rows to copy: row rows[i] of data goes to out + i * out_stride. */
typedef struct {
    const char *data;
    size_t row_stride, row_bytes;
    const int64_t *rows;
    size_t count;
    size_t known; /* valid entries of rows, count or more: to prefetch later rows */
    char *out;
    size_t out_stride;
    embla_write_mode mode;
    bool fetch; /* the table is larger than a cache: prefetch rows (streaming always does) */
} embla_copy_job;

/* Pairs to rotate: (first[i], second[i]) for i < pairs, step floats apart. */
typedef struct {
    float *first, *second;
    size_t step, pairs;
    const float *cosine, *sine;
} embla_rotate_job;

/* Rows for one call of `dots`: memory delivers several streams faster than one. */
enum { EMBLA_DOTS = 4 };

typedef void embla_random_fn(uint64_t seed, uint64_t row, size_t column, size_t n, float spread,
                             float *out);

typedef struct {
    const char *name;
    embla_isa isa;
    /* true if all are in 0 .. limit-1 */
    bool (*tokens_below)(const int32_t *tokens, size_t n, uint32_t limit);
    bool (*rows_below)(const int64_t *rows, size_t n, uint64_t limit);
    /* tokens to row numbers */
    void (*widen)(const int32_t *tokens, size_t n, int64_t *rows);
    /* copies rows (the gather) */
    void (*copy_rows)(const embla_copy_job *job);
    /* copies bytes, bypassing the caches */
    void (*stream)(void *out, const void *in, size_t bytes);
    /* call after streaming, before another thread reads the result */
    void (*fence)(void);
    /* out = x * scale + y */
    void (*scale_add)(const float *x, float scale, const float *y, size_t n, float *out);
    /* out = x * scale */
    void (*scale)(const float *x, float scale, size_t n, float *out);
    /* sum of x*y: products exact in double, 16 partial sums (number i goes to sum i mod 16), added
     * as a tree */
    double (*dot)(const float *x, const float *y, size_t n);
    /* the same sums, bit for bit, for EMBLA_DOTS rows at once: with y to out, with themselves to
     * squares. Either may be NULL (without out, y is not read) */
    void (*dots)(const float *const rows[EMBLA_DOTS], const float *y, size_t n, double *out,
                 double *squares);
    /* writes the indices i < n where x[i] * scale + add is not below limits[i] (never for NaN) to
     * at, in order; returns how many */
    size_t (*reach)(const float *x, float scale, float add, const float *limits, size_t n,
                    uint32_t *at);
    /* sums += weight * x, in double */
    void (*accumulate)(const float *x, double weight, size_t n, double *sums);
    /* best = x where x is larger or NaN */
    void (*maximum)(const float *x, size_t n, float *best);
    /* rotates each pair by its angle */
    void (*rotate)(const embla_rotate_job *job);
    /* numbers column .. column+n-1 of a row (column a multiple of 64): uniform in
     * [-spread, spread), or normal with standard deviation spread (random.h) */
    embla_random_fn *uniform, *normal;
} embla_kernels;

extern const embla_kernels embla_kernels_scalar;
#if EMBLA_X86
extern const embla_kernels embla_kernels_avx2, embla_kernels_avx512;
#endif
#if EMBLA_ARM
extern const embla_kernels embla_kernels_neon;
#endif

EMBLA_PRIVATE const embla_kernels *embla_kernels_get(void);
/* The entry of a table (isa.h) for the set in use. */
#define EMBLA_PICK(table) EMBLA_ISA_PICK(table, embla_kernels_get()->isa)
/* The mode for writing results of `bytes` bytes. whole_lines means that every write begins and ends
 * at a cache line. */
EMBLA_PRIVATE embla_write_mode embla_kernels_write_mode(size_t bytes, bool whole_lines);
/* The set with this name, or NULL if there is none or this CPU cannot run it. */
const embla_kernels *embla_kernels_find(const char *name);
/* For tests: use this set from now on; NULL restores the automatic choice. */
void embla_kernels_use(const embla_kernels *kernels);

#endif
