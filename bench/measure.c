/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, medians, memory to measure in, and the line that is printed: 80 columns, T for
 * threads. */
#include "bench/measure.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

enum { MOST_TURNS = 101 };

static double now(void)
{
    struct timespec t;
    (void)clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static int by_size(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;
    return (x > y) - (x < y);
}

static double median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

embla_bench_times embla_bench_measure(embla_bench_fn *ours, embla_bench_fn *limit, void *context,
                                      size_t turns, size_t calls)
{
    double times[2][MOST_TURNS];
    embla_bench_fn *const both[2] = {limit, ours};
    size_t step = 0;
    if (turns > MOST_TURNS) turns = MOST_TURNS;
    for (size_t turn = 0; turn < turns + 1; turn++) { /* the first is to warm up */
        for (size_t which = 0; which < 2; which++) {
            double start = now();
            for (size_t call = 0; call < calls; call++) both[which](context, step++);
            if (turn > 0) times[which][turn - 1] = (now() - start) / (double)calls;
        }
    }
    return (embla_bench_times){.limit_seconds = median(times[0], turns),
                               .seconds = median(times[1], turns)};
}

void embla_bench_print(const embla_bench_options *options, const embla_bench_result *result)
{
    static bool headed;
    double ratio = result->value / result->limit;
    if (options->json) {
        printf("{\"bench\":\"%s\",\"case\":\"%s\",\"threads\":%d,\"value\":%.4g,\"unit\":\"%s\","
               "\"limit\":%.4g,\"limit_is\":\"%s\",\"ratio\":%.3f}\n",
               result->bench, result->name, result->threads, result->value, result->unit,
               result->limit, result->limit_is, ratio);
    } else {
        if (!headed && !options->quiet)
            printf("%-36s %2s %7s %7s %-7s %5s %s\n", "case", "T", "value", "limit", "unit",
                   "ratio", "limit is");
        printf("%-36s %2d %7.4g %7.4g %-7s %5.2f %s\n", result->name, result->threads,
               result->value, result->limit, result->unit, ratio, result->limit_is);
        headed = true;
    }
    (void)fflush(stdout);
}

void *embla_bench_memory(size_t bytes)
{
    size_t huge = (size_t)2 << 20, rounded = (bytes + huge - 1) / huge * huge;
    void *memory = aligned_alloc(huge, rounded);
    if (!memory) return NULL;
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
    memset(memory, 1, rounded);
    return memory;
}

size_t embla_bench_cache(void)
{
    long bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
    return bytes > 0 ? (size_t)bytes : (size_t)32 << 20;
}
