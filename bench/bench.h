/* SPDX-License-Identifier: Apache-2.0 */
/* The benchmarks of `embla bench NAME`: one function each.
 *
 * Each prints one line for a case, together with the limit it was measured against, and returns the
 * exit code of the program.
 */
#ifndef BENCH_BENCH_H
#define BENCH_BENCH_H

#include <stdbool.h>
#include <stddef.h>

/* What `embla bench all` adds to the options of a benchmark. */
typedef struct {
    const char *set;   /* a regular expression for the cases that it runs */
    const char *about; /* a title for the benchmark; NULL after it was printed */
    size_t asked_for;  /* cases so far, of all benchmarks */
    /* Called when a case begins, and with NULL before its result is printed. */
    void (*at)(const char *name);
} bench_all;

typedef struct {
    const char *case_regex; /* run the cases whose name matches; NULL means the default set */
    int threads;            /* 0 means the number of the default set */
    bool json, quiet, list;
    bench_all *all; /* NULL unless all benchmarks run */
    /* prints one error message on stderr; quoted text is made safe */
    void (*complain)(const char *format, ...) __attribute__((format(printf, 1, 2)));
} bench_options;

int bench_lookup(const bench_options *options);
int bench_open(const bench_options *options);
int bench_near(const bench_options *options);
int bench_scatter(const bench_options *options);
int bench_optim(const bench_options *options);
int bench_head(const bench_options *options);
int bench_ngram(const bench_options *options);
int bench_codec(const bench_options *options);
int bench_rows(const bench_options *options);
int bench_disk(const bench_options *options);
int bench_train(const bench_options *options);
int bench_text(const bench_options *options);
int bench_cluster(const bench_options *options);

#endif
