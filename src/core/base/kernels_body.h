/* SPDX-License-Identifier: Apache-2.0 */
/* Kernels written once in C and compiled for every set: copying, built from a set's own way to copy
 * a line, and plain arithmetic, which the compiler vectorises for the set of the enclosing
 * function. Results do not depend on the width of a vector: every number has its own lane, and the
 * build forbids fusing a multiplication with an addition. */
#ifndef EMBLA_BASE_KERNELS_BODY_H
#define EMBLA_BASE_KERNELS_BODY_H

#include <string.h>

#include "base/kernels.h"
#include "base/random.h"

/* What a set provides for copying: whole lines, and parts of lines at a row's ends. */
typedef void embla_copy_fn(char *out, const char *in);
typedef void embla_part_fn(char *out, const char *in, size_t bytes);

/* Copies one row. Streaming needs out aligned to a line. */
EMBLA_BODY void embla_body_copy_row(char *out, const char *in, size_t bytes, embla_write_mode mode,
                                    embla_fetch *fetch, embla_copy_fn *line, embla_part_fn *part)
{
    size_t i = 0;
    if (mode == EMBLA_WRITE_STREAM) {
        i = (size_t)(-(uintptr_t)out) % EMBLA_LINE;
        if (i > bytes) i = bytes;
        if (i > 0) part(out, in, i);
    }
    for (; i + EMBLA_LINE <= bytes; i += EMBLA_LINE) {
        if (fetch) embla_fetch_line(fetch);
        if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write(out + i);
        line(out + i, in + i);
    }
    if (i == bytes) return;
    if (fetch) embla_fetch_line(fetch);
    if (mode != EMBLA_WRITE_STREAM && bytes >= EMBLA_LINE) /* a whole line is faster than a part */
        line(out + bytes - EMBLA_LINE, in + bytes - EMBLA_LINE);
    else
        part(out + i, in + i, bytes - i);
}

/* Copies all rows, group by group. mode and fetched are constants after inlining. */
EMBLA_BODY void embla_body_copy_rows(const embla_copy_job *job, embla_write_mode mode, bool fetched,
                                     embla_copy_fn *line, embla_part_fn *part)
{
    const embla_copy_job j = *job; /* a local copy: writes through out cannot change it */
    const char *in;
    char *out = j.out;
    size_t bytes = j.row_bytes + embla_fetch_offset(j.data, j.row_stride);
    bool one_more = (bytes - 1) / EMBLA_LINE > (j.row_bytes - 1) / EMBLA_LINE;
    embla_fetch fetch = embla_fetch_of(j.data, j.row_stride, bytes);
    if (!fetched && j.row_bytes == EMBLA_LINE) { /* microGPT's 16 floats: only the copy */
        for (size_t i = 0; i < j.count; i++, out += j.out_stride) {
            if (mode == EMBLA_WRITE_AHEAD) embla_fetch_to_write(out);
            line(out, j.data + (size_t)j.rows[i] * j.row_stride);
        }
        return;
    }
    if (fetched && bytes <= EMBLA_SHORT_ROW) {
        for (size_t i = 0; i < j.count; i++, out += j.out_stride) {
            if (i + EMBLA_GROUP < j.known)
                embla_fetch_row(j.data + (size_t)j.rows[i + EMBLA_GROUP] * j.row_stride, bytes);
            in = j.data + (size_t)j.rows[i] * j.row_stride;
            embla_body_copy_row(out, in, j.row_bytes, mode, NULL, line, part);
        }
        return;
    }
    for (size_t i = 0; i < j.count; i++, out += j.out_stride) {
        if (fetched) embla_fetch_at(&fetch, j.rows, i, j.known);
        in = j.data + (size_t)j.rows[i] * j.row_stride;
        if (fetched && one_more) embla_fetch_line(&fetch);
        embla_body_copy_row(out, in, j.row_bytes, mode, fetched ? &fetch : NULL, line, part);
    }
}

EMBLA_BODY bool embla_body_tokens_below(const int32_t *tokens, size_t n, uint32_t limit)
{
    uint32_t above = 0;
    for (size_t i = 0; i < n; i++) above |= (uint32_t)tokens[i] >= limit;
    return !above;
}

EMBLA_BODY bool embla_body_rows_below(const int64_t *rows, size_t n, uint64_t limit)
{
    uint64_t above = 0;
    for (size_t i = 0; i < n; i++) above |= (uint64_t)rows[i] >= limit;
    return !above;
}

EMBLA_BODY void embla_body_widen(const int32_t *tokens, size_t n, int64_t *rows)
{
    for (size_t i = 0; i < n; i++) rows[i] = tokens[i];
}

EMBLA_BODY void embla_body_scale_add(const float *restrict x, float scale, const float *restrict y,
                                     size_t n, float *restrict out)
{
    for (size_t i = 0; i < n; i++) out[i] = x[i] * scale + y[i];
}

EMBLA_BODY void embla_body_scale(const float *x, float scale, size_t n, float *out)
{
    for (size_t i = 0; i < n; i++) out[i] = x[i] * scale;
}

/* Sixteen partial sums; numbers beyond the end are zeros, which do not change a sum. */
EMBLA_BODY double embla_body_dot(const float *x, const float *y, size_t n)
{
    enum { LANES = 16 };
    double sums[LANES] = {0};
    size_t i = 0;
    for (; i + LANES <= n; i += LANES)
        for (size_t j = 0; j < LANES; j++) sums[j] += (double)x[i + j] * (double)y[i + j];
    for (size_t j = 0; i + j < n; j++) sums[j] += (double)x[i + j] * (double)y[i + j];
    for (size_t half = LANES / 2; half > 0; half /= 2)
        for (size_t j = 0; j < half; j++) sums[j] += sums[j + half];
    return sums[0];
}

/* One row after the other; a set with more registers processes all rows at once. */
EMBLA_BODY void embla_body_dots(const float *const rows[EMBLA_DOTS], const float *y, size_t n,
                                double *out, double *squares)
{
    for (size_t r = 0; r < EMBLA_DOTS; r++) {
        if (out) out[r] = embla_body_dot(rows[r], y, n);
        if (squares) squares[r] = embla_body_dot(rows[r], rows[r], n);
    }
}

/* Few indices reach their limit, so most groups need only one test. */
EMBLA_BODY size_t embla_body_reach(const float *x, float scale, float add, const float *limits,
                                   size_t n, uint32_t *at)
{
    enum { GROUP = 32 };
    size_t found = 0;
    for (size_t i = 0; i < n; i += GROUP) {
        size_t end = n - i < GROUP ? n : i + GROUP;
        uint32_t any = 0;
        for (size_t j = i; j < end; j++) any |= !(x[j] * scale + add < limits[j]);
        for (size_t j = i; any && j < end; j++)
            if (!(x[j] * scale + add < limits[j])) at[found++] = (uint32_t)j;
    }
    return found;
}

EMBLA_BODY void embla_body_accumulate(const float *restrict x, double weight, size_t n,
                                      double *restrict sums)
{
    for (size_t i = 0; i < n; i++) sums[i] += weight * (double)x[i];
}

EMBLA_BODY void embla_body_maximum(const float *restrict x, size_t n, float *restrict best)
{
    for (size_t i = 0; i < n; i++) best[i] = best[i] >= x[i] || best[i] != best[i] ? best[i] : x[i];
}

EMBLA_BODY void embla_body_rotate(const embla_rotate_job *job)
{
    float *restrict first = job->first, *restrict second = job->second;
    const float *restrict cosine = job->cosine, *restrict sine = job->sine;
    for (size_t i = 0; i < job->pairs; i++) {
        float a = first[i * job->step], b = second[i * job->step];
        first[i * job->step] = a * cosine[i] - b * sine[i];
        second[i * job->step] = a * sine[i] + b * cosine[i];
    }
}

/* A row of random numbers, a group at a time; the last group may be incomplete. */
#define EMBLA_BODY_RANDOM(group, seed, row, column, n, spread, out)                                \
    do {                                                                                           \
        enum { GROUP = 4 * EMBLA_RANDOM_LANES };                                                   \
        float numbers[GROUP];                                                                      \
        for (size_t i = 0; i < (n); i += GROUP) {                                                  \
            size_t left = (n)-i < GROUP ? (n)-i : GROUP;                                           \
            group(seed, (uint32_t)(((column) + i) / 4), row, spread, numbers);                     \
            memcpy((out) + i, numbers, left * sizeof numbers[0]);                                  \
        }                                                                                          \
    } while (0)

/* The functions of one set that are compiled from shared bodies. */
#define EMBLA_PLAIN_KERNELS(TARGET)                                                                \
    TARGET static bool tokens_below(const int32_t *tokens, size_t n, uint32_t limit)               \
    {                                                                                              \
        return embla_body_tokens_below(tokens, n, limit);                                          \
    }                                                                                              \
    TARGET static bool rows_below(const int64_t *rows, size_t n, uint64_t limit)                   \
    {                                                                                              \
        return embla_body_rows_below(rows, n, limit);                                              \
    }                                                                                              \
    TARGET static void widen(const int32_t *tokens, size_t n, int64_t *rows)                       \
    {                                                                                              \
        embla_body_widen(tokens, n, rows);                                                         \
    }                                                                                              \
    TARGET static void scale_add(const float *x, float factor, const float *y, size_t n,           \
                                 float *out)                                                       \
    {                                                                                              \
        embla_body_scale_add(x, factor, y, n, out);                                                \
    }                                                                                              \
    TARGET static void scale(const float *x, float factor, size_t n, float *out)                   \
    {                                                                                              \
        embla_body_scale(x, factor, n, out);                                                       \
    }                                                                                              \
    TARGET static double dot(const float *x, const float *y, size_t n)                             \
    {                                                                                              \
        return embla_body_dot(x, y, n);                                                            \
    }                                                                                              \
    TARGET static void accumulate(const float *x, double weight, size_t n, double *sums)           \
    {                                                                                              \
        embla_body_accumulate(x, weight, n, sums);                                                 \
    }                                                                                              \
    TARGET static void maximum(const float *x, size_t n, float *best)                              \
    {                                                                                              \
        embla_body_maximum(x, n, best);                                                            \
    }                                                                                              \
    TARGET static void rotate(const embla_rotate_job *job)                                         \
    {                                                                                              \
        embla_body_rotate(job);                                                                    \
    }                                                                                              \
    TARGET static void uniform(uint64_t seed, uint64_t row, size_t column, size_t n, float spread, \
                               float *out)                                                         \
    {                                                                                              \
        EMBLA_BODY_RANDOM(embla_uniform_group, seed, row, column, n, spread, out);                 \
    }                                                                                              \
    TARGET static void normal(uint64_t seed, uint64_t row, size_t column, size_t n, float spread,  \
                              float *out)                                                          \
    {                                                                                              \
        EMBLA_BODY_RANDOM(embla_normal_group, seed, row, column, n, spread, out);                  \
    }

/* The copy functions of one set, from its copy_line, stream_line and copy_part: compiled for each
 * mode of writing, and for rows in memory and in a cache. */
#define EMBLA_COPY_KERNELS(TARGET)                                                                 \
    TARGET static void copy_rows(const embla_copy_job *job)                                        \
    {                                                                                              \
        if (job->mode == EMBLA_WRITE_STREAM)                                                       \
            embla_body_copy_rows(job, EMBLA_WRITE_STREAM, true, stream_line, copy_part);           \
        else if (job->mode == EMBLA_WRITE_AHEAD && job->fetch)                                     \
            embla_body_copy_rows(job, EMBLA_WRITE_AHEAD, true, copy_line, copy_part);              \
        else if (job->mode == EMBLA_WRITE_AHEAD)                                                   \
            embla_body_copy_rows(job, EMBLA_WRITE_AHEAD, false, copy_line, copy_part);             \
        else if (job->fetch)                                                                       \
            embla_body_copy_rows(job, EMBLA_WRITE_PLAIN, true, copy_line, copy_part);              \
        else                                                                                       \
            embla_body_copy_rows(job, EMBLA_WRITE_PLAIN, false, copy_line, copy_part);             \
    }                                                                                              \
    TARGET static void stream(void *out, const void *in, size_t bytes)                             \
    {                                                                                              \
        embla_body_copy_row(out, in, bytes, EMBLA_WRITE_STREAM, NULL, stream_line, copy_part);     \
    }

/* The set itself; its functions have the names of its fields. */
#define EMBLA_KERNEL_SET(SET, ISA)                                                                 \
    const embla_kernels embla_kernels_##SET = {                                                    \
        .name = #SET,                                                                              \
        .isa = ISA,                                                                                \
        .tokens_below = tokens_below,                                                              \
        .rows_below = rows_below,                                                                  \
        .widen = widen,                                                                            \
        .copy_rows = copy_rows,                                                                    \
        .stream = stream,                                                                          \
        .fence = fence,                                                                            \
        .scale_add = scale_add,                                                                    \
        .scale = scale,                                                                            \
        .dot = dot,                                                                                \
        .dots = dots,                                                                              \
        .reach = reach,                                                                            \
        .accumulate = accumulate,                                                                  \
        .maximum = maximum,                                                                        \
        .rotate = rotate,                                                                          \
        .uniform = uniform,                                                                        \
        .normal = normal,                                                                          \
    }

#endif
