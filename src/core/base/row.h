/* SPDX-License-Identifier: Apache-2.0 */
/* A row as a store keeps it: the codes of its numbers, then their scales.
 *
 *   | code_bytes: dim numbers of dtype | scale_bytes: one byte a group |
 *
 * In a file the two may be separate (two planes). They are joined when a row is brought into
 * memory, so that a lookup accesses one place. Without scales, a row is only its codes.
 */
#ifndef EMBLA_BASE_ROW_H
#define EMBLA_BASE_ROW_H

#include "base/dtype.h"

/* Decodes n numbers from their codes and the scales of their groups. The first number begins a
 * group. */
typedef void embla_scaled_fn(const embla_row_format *format, const unsigned char *codes,
                             const unsigned char *scales, size_t n, embla_write_mode mode,
                             float *out);

/* For f8_e4m3 with power-of-two scales, by instruction set (codec_f8.c). */
extern embla_scaled_fn *const embla_f8_rows[EMBLA_ISA_COUNT];

/* A checked format, and how its rows are decoded on this CPU. */
typedef struct embla_row {
    embla_row_format format; /* scale is never 0 here */
    const embla_dtype_info *info;
    size_t code_bytes, scale_bytes, bytes; /* of a row */
    size_t group; /* numbers that share a scale; without scales, the block of the dtype */
    embla_decode_fn *decode; /* for codes without scales, for the kernels in use */
    embla_scaled_fn *scaled; /* for codes with scales; NULL without scales */
} embla_row;

/* Checks a format. The decoder is chosen here, for the kernels in use. */
EMBLA_CHECKED embla_status embla_row_of(const embla_row_format *format, embla_row *out);

/* A part of every row, in whole groups: numbers first .. first+n-1, and their places. */
typedef struct {
    size_t first, n;
    size_t code_at, code_bytes;   /* in the codes */
    size_t scale_at, scale_bytes; /* in the scales */
    size_t bytes;                 /* code_bytes + scale_bytes */
} embla_row_part;

/* n = 0 means all from first on. EMBLA_ERR_SHAPE unless whole groups (the last group of a row may
 * be short), EMBLA_ERR_RANGE beyond the end. */
EMBLA_CHECKED embla_status embla_row_part_of(const embla_row *row, size_t first, size_t n,
                                             embla_row_part *out);

/* Decodes n numbers, whole groups of a row, from their codes and the scales of their groups (not
 * read if the format has none) to out. codes and scales need no alignment; out begins a cache line
 * if mode is STREAM. Cannot fail. */
static inline void embla_row_read(const embla_row *row, const void *codes, const void *scales,
                                  size_t n, embla_write_mode mode, float *out)
{
    if (row->scaled)
        row->scaled(&row->format, codes, scales, n, mode, out);
    else
        row->decode(codes, n, row->format.scale, mode, out);
}

#endif
