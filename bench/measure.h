/* SPDX-License-Identifier: Apache-2.0 */
/* How every benchmark measures: our code and its limit in turns, in the same run, and the median of
 * each. The ratio is comparable between machines. */
#ifndef BENCH_MEASURE_H
#define BENCH_MEASURE_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "base/parallel.h"
#include "bench/bench.h"

/* One of the two functions that are timed. step counts the calls of both, so that each call can use
 * other memory than the previous one. */
typedef void bench_fn(void *context, size_t step);

typedef struct {
    double seconds, limit_seconds; /* medians, for one call */
} bench_times;

/* Times ours and limit in turns, `turns` times each, `calls` calls a turn. */
bench_times bench_measure(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                          size_t calls);

/* The median of n values, which are sorted. */
double bench_median(double *values, size_t n);

/* Seconds of a clock that only goes forward. */
double bench_now(void);

/* The library's default number of threads. */
int bench_threads(void);
/* Sets it and returns the number before. */
int bench_team(int threads);
/* The same as bench_measure, while the default is `threads`. */
bench_times bench_measure_team(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                               size_t calls, int threads);

typedef struct {
    const char *bench, *name, *unit, *limit_is;
    int threads;
    double value, limit; /* higher is better */
    /* what the limit does not do, for a line that says how many times faster it is than that: "the
     * product with one-hot vectors"; NULL means no such line. JSON does not have it. */
    const char *instead;
} bench_result;

/* Prints one line: JSON, or text with a heading before the first. */
void bench_print(const bench_options *options, const bench_result *result);

/* Memory on huge pages if the system has them, with every page accessed. Release it with free().
 * NULL if there is not enough. */
void *bench_memory(size_t bytes);

/* bench_read reads all bytes once, with `streams` streams in each thread, and returns a sum, so
 * that the compiler cannot omit the reads. bench_streams finds the number of streams, 1 to 16, that
 * is fastest here: the limit for code that must read the same bytes. */
uint64_t bench_read(const void *data, size_t bytes, size_t streams, int threads);
size_t bench_streams(const void *data, size_t bytes, int threads);

/* The loop of a limit, on the same threads as the library's. Bodies cannot fail. */
void bench_shared(int threads, size_t count, size_t grain, embla_share_fn *body, const void *job);
/* memcpy with several threads. The second reads from an offset on in a block of `all` bytes, again
 * from its start after its end. */
void bench_copy(void *out, const void *in, size_t bytes, int threads);
void bench_copy_round(void *out, const void *in, size_t all, size_t offset, size_t bytes,
                      int threads);

/* Bytes of the last-level cache, or an estimate. */
size_t bench_cache(void);

/* Whether loops of AVX2 may run on this CPU. It is asked once: in a virtual machine that is slow.
 */
bool bench_has_avx2(void);

/* The path of a file, not created yet, in a new folder in $TMPDIR or /tmp. Up to four files are in
 * the same folder. bench_file_drop removes all of it, or a signal that ends the program. NULL if
 * the folder cannot be created (errno). */
const char *bench_file(const char *name);
void bench_file_drop(void);

#endif
