/* SPDX-License-Identifier: Apache-2.0 */
/* How every benchmark measures: the thing and its limit in turns, in the same run, and
 * the median of each. What carries over to another machine is the ratio.
 */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/bench.h"

/* One of the two things timed. step counts up over all calls of both, so that each call
 * can take other memory than the one before. */
typedef void bench_fn(void *context, size_t step);

typedef struct {
    double seconds, limit_seconds; /* medians, for one call */
} bench_times;

/* Times ours and limit in turns, `turns` times each, `calls` calls a turn. */
bench_times bench_measure(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                          size_t calls);

/* Sets OpenMP's default number of threads and returns the number before. */
int bench_team(int threads);
/* The same as bench_measure, while OpenMP's default is `threads`: for libraries that start threads
 * of their own. */
bench_times bench_measure_team(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                               size_t calls, int threads);

typedef struct {
    const char *bench, *name, *unit, *limit_is;
    int threads;
    double value, limit; /* higher is better */
} bench_result;

/* One line: JSON, or text for people with a heading before the first. */
void bench_print(const bench_options *options, const bench_result *result);

/* Memory on huge pages where the system has them, every page touched; free() takes it
 * back. NULL if there is none to be had. */
void *bench_memory(size_t bytes);

/* Reads all bytes once, as so many streams side by side in each thread, and returns a sum of
 * them, so that nobody leaves the reading out; and the number of streams, 1 to 16, that reads
 * fastest here: the limit of whoever must read the same. */
uint64_t bench_read(const void *data, size_t bytes, size_t streams, int threads);
size_t bench_streams(const void *data, size_t bytes, int threads);

/* The bytes first .. end-1, whole lines but for the last thread, that this thread of an OpenMP
 * team has to copy. */
void bench_share(size_t bytes, size_t *first, size_t *end);
/* memcpy by several threads. */
void bench_copy(void *out, const void *in, size_t bytes, int threads);

/* Bytes of the last-level cache, or a guess. */
size_t bench_cache(void);

/* The path of a file, which is not made yet, in a new folder in $TMPDIR, or /tmp; one at a time.
 * Both go when it is dropped, and where a signal ends the program. NULL: no folder, by errno. */
const char *bench_file(const char *name);
void bench_file_drop(void);

#endif
