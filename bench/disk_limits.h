/* SPDX-License-Identifier: Apache-2.0 */
/* What the disk can do: bare loops that read one page of 4 KiB for each row, past the page cache,
 * and do nothing with it. */
#ifndef BENCH_DISK_LIMITS_H
#define BENCH_DISK_LIMITS_H

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bench/cases.h"

enum { BENCH_PAGE = 4096 };

typedef struct bench_disk_limits bench_disk_limits;

/* Opens a file for bare reads, `depth` at once. NULL if it cannot be read this way. */
bench_disk_limits *bench_disk_open(const char *path, unsigned depth);
void bench_disk_close(bench_disk_limits *limits);
/* Reads the pages at these offsets with io_uring; false if a read fails. */
bool bench_disk_ring(bench_disk_limits *limits, const uint64_t *offsets, size_t count);
/* The same with a pool of 16 threads that is started for the call. */
bool bench_disk_pool(bench_disk_limits *limits, const uint64_t *offsets, size_t count);
/* Random reads in a second according to fio, of the same size and depth; 0 if there is no fio. */
double bench_disk_fio(const char *path, unsigned depth);

/* disk_pack.c: the cases of packs. Returns an exit code, after a message. */
int bench_disk_pack(bench_cases *cases);

/* Prints a result of `embla bench disk`, which has one thread. */
void bench_disk_print(const bench_options *options, const char *name, const char *unit,
                      double value, double limit, const char *limit_is);

#endif
