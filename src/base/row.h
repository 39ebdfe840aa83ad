/* SPDX-License-Identifier: Apache-2.0 */
/* A row as a store holds it: the codes of its numbers, then their scales.
 *
 *   | code_bytes: dim numbers of dtype | scale_bytes: one byte a group |
 *
 * In a file the two may lie apart (two planes); whoever brings a row into memory puts them
 * together, so that a lookup touches one place. A dtype without scales is a row of its own.
 */
#ifndef EMBLA_BASE_ROW_H
#define EMBLA_BASE_ROW_H

#include "base/dtype.h"

/* n numbers from their codes and the scales of their groups, the first of which begins here. */
typedef void embla_scaled_fn(const embla_row_format *format, const unsigned char *codes,
                             const unsigned char *scales, size_t n, embla_write_mode mode,
                             float *out);

/* Of f8_e4m3 with powers of two beside it, by instruction set (codec_f8.c). */
extern embla_scaled_fn *const embla_f8_rows[EMBLA_ISA_COUNT];

/* A format that was checked, and how its rows are decoded on this CPU. */
typedef struct embla_row {
    embla_row_format format; /* scale is not 0 any more */
    const embla_dtype_info *info;
    size_t code_bytes, scale_bytes, bytes; /* of a row */
    size_t group; /* numbers that share a scale; without scales: the block of the dtype */
    embla_decode_fn *decode; /* of the dtype alone, by the set of kernels in use */
    embla_scaled_fn *scaled; /* of codes and scales together; NULL without scales */
} embla_row;

/* Checks a format. The kernels in use are asked for when it is made. */
EMBLA_CHECKED embla_status embla_row_of(const embla_row_format *format, embla_row *out);

/* A part of every row, whole groups: numbers first .. first+n-1, and where they are. */
typedef struct {
    size_t first, n;
    size_t code_at, code_bytes;   /* in the codes */
    size_t scale_at, scale_bytes; /* in the scales */
    size_t bytes;                 /* code_bytes + scale_bytes: of such a part */
} embla_row_part;

/* n = 0: all from first on. EMBLA_ERR_SHAPE unless whole groups (the last may be short where the
 * row ends), EMBLA_ERR_RANGE past the end. */
EMBLA_CHECKED embla_status embla_row_part_of(const embla_row *row, size_t first, size_t n,
                                             embla_row_part *out);

/* Decodes n numbers, whole groups of a row, from their codes and the scales of their groups (not
 * read where the format has none) to out. codes and scales need no alignment; out begins a line
 * when mode is STREAM. Cannot fail. */
static inline void embla_row_read(const embla_row *row, const void *codes, const void *scales,
                                  size_t n, embla_write_mode mode, float *out)
{
    if (row->scaled)
        row->scaled(&row->format, codes, scales, n, mode, out);
    else
        row->decode(codes, n, row->format.scale, mode, out);
}

#endif
