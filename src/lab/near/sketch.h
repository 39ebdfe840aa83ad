/* SPDX-License-Identifier: Apache-2.0 */
/* A sketch: the direction of every row in 4 bits a number, with a bound on what rounding changed.
 *
 * Number i of a row of norm 1 is about factor * (level - 7.5), where level is from 0 to 15. The
 * error of a row is the norm of the difference. So the cosine of the row with a query is at most
 * that of the sketch plus the error, and a search needs the row itself only where this upper bound
 * is high (docs/decisions/011).
 *
 * Rows are in blocks of 32. A block has a step of 64 bytes for every four numbers: two bytes for
 * each row. The first byte has number 0 in its low bits and number 2 in its high bits, the second
 * byte numbers 1 and 3. So one vector has the levels of 32 rows side by side.
 */
#ifndef EMBLA_NEAR_SKETCH_H
#define EMBLA_NEAR_SKETCH_H

#include "near/near.h"

enum {
    EMBLA_SKETCH_ROWS = 32,   /* in a block; the last block has rows of zeros at its end */
    EMBLA_SKETCH_NUMBERS = 4, /* of each row in a step */
    EMBLA_SKETCH_STEP = 64,   /* bytes */
    EMBLA_SKETCH_UNITS = 8192 /* a bound of 1 as an integer; bounds are rounded up */
};

struct embla_sketch {
    embla_arena arena;
    const embla_table *table;
    const embla_row_source *source; /* the rows of the table */
    size_t dim;
    size_t steps; /* in a block */
    int64_t blocks;
    uint8_t *levels; /* blocks x steps x EMBLA_SKETCH_STEP */
    /* Of each row. A row of zeros has both 0. A row that cannot be sketched (a NaN, an infinity, a
     * very large or small norm) has the error INFINITY. */
    float *factors, *errors;
    size_t bytes;
};

/* A query. The upper bound of a row is
 *   (sum of level x number of the query - centre) * unit * factor + add + times * error. */
typedef struct {
    const int8_t *query; /* 8 bytes for a step: numbers 0, 1, 0, 1, 2, 3, 2, 3 of it */
    size_t steps;
    float centre, unit, add, times;
} embla_sketch_terms;

/* Writes the upper bounds of a block's rows, as integers; returns the highest. */
typedef int16_t embla_sketch_bound(const embla_sketch_terms *terms, const uint8_t *block,
                                   const float *factors, const float *errors, int16_t *bounds);
extern embla_sketch_bound *const embla_sketch_bounds[EMBLA_ISA_COUNT];

/* Answers one query by cosine, with the bits of a scan. *answered is false where the sketch would
 * save nothing: then nothing is written, and a scan must answer. */
EMBLA_CHECKED embla_status embla_sketch_query(const embla_sketch *sketch, const embla_question *q,
                                              const float *query, const int64_t *exclude,
                                              embla_scored *out, int64_t *nonfinite,
                                              bool *answered);

#endif
