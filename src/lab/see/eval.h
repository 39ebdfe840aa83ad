/* SPDX-License-Identifier: Apache-2.0 */
/* Reads files of questions that people have answered; eval.c scores a table with them.
 *
 *   : capital-world             word1,word2,score
 *   Athens Greece Oslo Norway   tiger,cat,7.35
 *
 * Each distinct word is stored once, with a number. A question is four such numbers; a pair is two
 * and a score. The kind of a file is detected from its first line.
 */
#ifndef EMBLA_SEE_EVAL_H
#define EMBLA_SEE_EVAL_H

#include "base/arena.h"
#include "base/best.h"
#include "base/status.h"
#include "files/map.h"
#include "files/names.h"

enum {
    EMBLA_EVAL_LINE_BYTES = 1 << 16, /* maximum bytes of a line, without its end */
    EMBLA_EVAL_LINES = 1 << 22       /* maximum lines of a file */
};

/* The number of words of a question or a pair. */
typedef enum { EMBLA_EVAL_PAIRS = 2, EMBLA_EVAL_ANALOGIES = 4 } embla_eval_kind;

/* Questions from first on, until the next section begins. */
typedef struct {
    const char *name;
    size_t first, count;
} embla_eval_section;

typedef struct {
    embla_arena arena; /* memory of everything below */
    embla_eval_kind kind;
    embla_name *words; /* each word once, in the order of the file, with a 0 after it; number is how
                          often it occurs */
    size_t word_count;
    uint32_t *items; /* count x kind word numbers */
    size_t count;
    embla_eval_section *sections; /* sections of analogies */
    size_t section_count;
    double *scores; /* scores of pairs: count finite numbers */
} embla_eval_file;

/* Reads map as a file of this kind. Returns EMBLA_ERR_UNSUPPORTED if it is of the other kind,
 * EMBLA_ERR_FORMAT with the line number if it is of neither. */
EMBLA_CHECKED embla_status embla_eval_read(const embla_map *map, embla_eval_kind kind,
                                           embla_eval_file *out);
void embla_eval_file_free(embla_eval_file *file);

/* Reads a finite decimal number: [+-] digits [. digits] [e [+-] digits], with at least one digit
 * beside the point. Up to 15 digits and powers of ten up to 22 give the nearest double; beyond that
 * the result is within a few units in the last place. The locale has no effect. */
bool embla_eval_score(const void *text, size_t length, double *out);

/* eval.c: the linear correlation of n numbers; NaN if one side is constant. The mean is subtracted
 * from both in place. */
double embla_correlation(double *x, double *y, size_t n);
/* The rank of each value, 1 for the smallest; equal values share the mean of their ranks. space
 * has room for n items. */
void embla_ranks_of(const double *x, size_t n, embla_scored *space, double *out);

#endif
