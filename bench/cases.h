/* SPDX-License-Identifier: Apache-2.0 */
/* What benchmarks share before they measure: which of their cases are asked for, and tokens as
 * text has them.
 */
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
    regex_t regex;
    size_t asked_for; /* cases so far */
} bench_cases;

/* 0; or the exit code, after a complaint, if --case is no regular expression. */
int bench_begin(const char *bench, const bench_options *options, bench_cases *out);
/* Whether this case is to be run: its name matches --case; without --case, it is standard. With
 * --list its name is printed, and it is not to be run. */
bool bench_wants(bench_cases *cases, const char *name, bool standard);
/* The exit code: that of the cases that ran, or 2, after a complaint, if there were none. */
int bench_end(bench_cases *cases, int exit_code);

/* The cases of head that are losses; bench_head runs them after its own. */
int bench_loss(bench_cases *cases);

/* count tokens below rows, always the same ones: all alike likely, or (zipf) token k with a
 * likelihood of 1 / (k + 1). false: no memory. */
bool bench_tokens(bool zipf, int64_t rows, size_t count, int32_t *out);

#endif
