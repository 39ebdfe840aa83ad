/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmarks of `embla bench NAME`: one function each.
 *
 * Each prints one line for a case, with the limit it was measured against beside
 * it, and returns the exit code of the program.
 */
#ifndef EMBLA_BENCH_BENCH_H
#define EMBLA_BENCH_BENCH_H

#include <stdbool.h>

typedef struct {
    const char *case_regex; /* run the cases whose name matches; NULL: the default set */
    int threads;            /* 0: the default set's own */
    bool json, quiet, list;
    /* says on stderr what went wrong: one sentence, whatever it quotes made harmless */
    void (*complain)(const char *format, ...) __attribute__((format(printf, 1, 2)));
} embla_bench_options;

int embla_bench_lookup(const embla_bench_options *options);
int embla_bench_open(const embla_bench_options *options);
int embla_bench_near(const embla_bench_options *options);
int embla_bench_scatter(const embla_bench_options *options);
int embla_bench_optim(const embla_bench_options *options);
int embla_bench_head(const embla_bench_options *options);
int embla_bench_ngram(const embla_bench_options *options);
int embla_bench_codec(const embla_bench_options *options);
int embla_bench_rows(const embla_bench_options *options);
int embla_bench_train(const embla_bench_options *options);

#endif
