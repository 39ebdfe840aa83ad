/* SPDX-License-Identifier: Apache-2.0 */
/* Files of questions that people have answered, read and nothing more: eval.c asks a table.
 *
 *   : capital-world             word1,word2,score
 *   Athens Greece Oslo Norway   tiger,cat,7.35
 *
 * Each distinct word is kept once, with a number; a question is four numbers, a pair is two
 * and a score. What kind a file is, is seen from its first line.
 */
#ifndef EMBLA_SEE_EVAL_H
#define EMBLA_SEE_EVAL_H

#include "base/arena.h"
#include "base/status.h"
#include "files/map.h"
#include "files/names.h"

enum {
    EMBLA_EVAL_LINE_BYTES = 1 << 16, /* the longest line, without its end */
    EMBLA_EVAL_LINES = 1 << 22       /* the most lines */
};

/* How many words belong together. */
typedef enum { EMBLA_EVAL_PAIRS = 2, EMBLA_EVAL_ANALOGIES = 4 } embla_eval_kind;

/* Questions from first on, up to where the next section begins. */
typedef struct {
    const char *name;
    size_t first, count;
} embla_eval_section;

typedef struct {
    embla_arena arena; /* of all that follows */
    embla_eval_kind kind;
    embla_name *words; /* each once, in the order they are met; a 0 after each; number: how
                        * often it stands in the file */
    size_t word_count;
    uint32_t *items; /* count x kind numbers of words */
    size_t count;
    embla_eval_section *sections; /* of analogies */
    size_t section_count;
    double *scores; /* of pairs, count of them, finite */
} embla_eval_file;

/* Reads map, which is to be of this kind: EMBLA_ERR_UNSUPPORTED if it is of the other one,
 * EMBLA_ERR_FORMAT with the number of the line where it is of neither. */
EMBLA_CHECKED embla_status embla_eval_read(const embla_map *map, embla_eval_kind kind,
                                           embla_eval_file *out);
void embla_eval_file_free(embla_eval_file *file);

#endif
