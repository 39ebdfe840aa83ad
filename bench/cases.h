/* SPDX-License-Identifier: Apache-2.0 */
/* Shared by the benchmarks: which cases are requested, on how many threads they run, and tokens
 * distributed as in text. */
#ifndef BENCH_CASES_H
#define BENCH_CASES_H

#include <regex.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench.h"

typedef struct {
    const char *bench;
    const bench_options *options;
    regex_t regex;    /* of --case */
    regex_t set;      /* of bench all */
    size_t asked_for; /* cases so far */
} bench_cases;

/* Returns 0, or an exit code after an error message if --case is not a regular expression. */
int bench_begin(const char *bench, const bench_options *options, bench_cases *out);
/* True if this case is to be run: its name matches --case or, without --case, it is in the default
 * set. In bench all it is in the set of that benchmark, and BENCH/NAME matches --case if that is
 * given. With --list its name is printed, and it is not run. */
bool bench_wants(bench_cases *cases, const char *name, bool standard);
/* The exit code: that of the cases that ran, or 2, after an error message, if there were none.
 * bench all itself notices that there were none. */
int bench_end(bench_cases *cases, int exit_code);

/* On how many threads a case runs if --threads is not given. */
typedef enum {
    BENCH_ALONE, /* always one, whatever --threads says */
    BENCH_ONE,
    BENCH_TWO,
    BENCH_BOTH /* one, then two */
} bench_usual;

typedef struct {
    size_t count;
    int threads[2];
} bench_teams;

/* The numbers of threads on which to run a case, one after the other. bench all takes one thread,
 * then all of them. */
bench_teams bench_teams_for(const bench_options *options, bench_usual usual);

/* The cases of bench head for losses; bench_head runs them after its own. */
int bench_loss(bench_cases *cases);

/* Generates count tokens below rows, always the same ones: uniform, or (zipf) token k with
 * probability proportional to 1 / (k + 1). Returns false if there is not enough memory. */
bool bench_tokens(bool zipf, int64_t rows, size_t count, int32_t *out);

/* The row numbers of `count` tokens of a text, by the hasher of a known model with `heads` columns,
 * mapped into a table of that many rows. The text is read from $EMBLA_DATA/enwiki100 by xz. Returns
 * false if it is not there. */
bool bench_text_rows(const char *model, size_t count, size_t heads, int64_t table_rows,
                     int64_t *rows);

#endif
