/* SPDX-License-Identifier: Apache-2.0 */
/* Clocks, medians, memory for measurements, and the printed line: 80 columns, T for threads. */
#include "bench/measure.h"

#include <signal.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "base/parallel.h"
#include "base/x86.h"

enum { MOST_TURNS = 101 };

double bench_now(void)
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

double bench_median(double *values, size_t n)
{
    qsort(values, n, sizeof *values, by_size);
    return n % 2 ? values[n / 2] : 0.5 * (values[n / 2 - 1] + values[n / 2]);
}

bench_times bench_measure(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                          size_t calls)
{
    double times[2][MOST_TURNS];
    bench_fn *const both[2] = {limit, ours};
    size_t step = 0;
    if (turns > MOST_TURNS) turns = MOST_TURNS;
    for (size_t turn = 0; turn < turns + 1; turn++) { /* the first turn is a warm-up */
        for (size_t which = 0; which < 2; which++) {
            double start = bench_now();
            for (size_t call = 0; call < calls; call++) both[which](context, step++);
            if (turn > 0) times[which][turn - 1] = (bench_now() - start) / (double)calls;
        }
    }
    return (bench_times){.limit_seconds = bench_median(times[0], turns),
                         .seconds = bench_median(times[1], turns)};
}

int bench_threads(void)
{
    return embla_default_threads();
}

int bench_team(int threads)
{
    int before = bench_threads();
    if (embla_set_parallel(NULL, NULL, threads) != EMBLA_OK) abort(); /* a loop is shared now */
    return before;
}

bench_times bench_measure_team(bench_fn *ours, bench_fn *limit, void *context, size_t turns,
                               size_t calls, int threads)
{
    int before = bench_team(threads);
    bench_times times = bench_measure(ours, limit, context, turns, calls);
    (void)bench_team(before);
    return times;
}

void bench_print(const bench_options *options, const bench_result *result)
{
    static bool headed;
    double ratio = result->value / result->limit;
    if (options->all) options->all->at(NULL);
    if (options->json) {
        printf("{\"bench\":\"%s\",\"case\":\"%s\",\"threads\":%d,\"value\":%.4g,\"unit\":\"%s\","
               "\"limit\":%.4g,\"limit_is\":\"%s\",\"ratio\":%.4g}\n",
               result->bench, result->name, result->threads, result->value, result->unit,
               result->limit, result->limit_is, ratio);
    } else {
        if (!headed && !options->quiet)
            printf("%-36s %2s %7s %7s %-7s %5s %s\n", "case", "T", "value", "limit", "unit",
                   "ratio", "limit is");
        if (options->all && options->all->about && !options->quiet) {
            printf("%s: %s\n", result->bench, options->all->about);
            options->all->about = NULL;
        }
        printf("%-36s %2d %7.4g %7.4g %-7s %5.*f %s\n", result->name, result->threads,
               result->value, result->limit, result->unit, ratio < 0.01 ? 5 : 2, ratio,
               result->limit_is);
        if (result->instead)
            printf("  the %s is %.*f times faster than the %s\n", result->limit_is,
                   ratio > 0.1 ? 1 : 0, 1 / ratio, result->instead);
        headed = true;
    }
    (void)fflush(stdout);
    if (options->all) options->all->at(result->name);
}

enum { LINE = 64 };

/* Eight sums, a line at a time: the compiler vectorises them. */
static uint64_t read_streams(const char *data, size_t bytes, size_t streams)
{
    enum { LANES = LINE / sizeof(uint64_t) };
    uint64_t sums[LANES] = {0};
    size_t part = bytes / streams / LINE * LINE;
    for (size_t i = 0; i < part; i += LINE)
        for (size_t s = 0; s < streams; s++) {
            const char *line = data + s * part + i;
            uint64_t numbers[LANES];
            __builtin_prefetch(line + 16 * (size_t)LINE);
            memcpy(numbers, line, sizeof numbers);
            for (size_t j = 0; j < LANES; j++) sums[j] += numbers[j];
        }
    for (size_t j = 1; j < LANES; j++) sums[0] += sums[j];
    return sums[0];
}

void bench_shared(int threads, size_t count, size_t grain, embla_share_fn *body, const void *job)
{
    if (embla_share(threads, count, grain, body, job) != EMBLA_OK) abort();
}

enum { READ_BLOCK = 1 << 20 };

typedef struct {
    const char *data;
    size_t streams;
    atomic_uint_fast64_t *sum;
} reading;

static embla_status read_blocks(void *job, size_t first, size_t end, size_t slot)
{
    const reading *r = job;
    uint64_t sum = 0;
    (void)slot;
    for (size_t b = first; b < end; b++)
        sum += read_streams(r->data + b * READ_BLOCK, READ_BLOCK, r->streams);
    (void)atomic_fetch_add_explicit(r->sum, sum, memory_order_relaxed);
    return EMBLA_OK;
}

uint64_t bench_read(const void *data, size_t bytes, size_t streams, int threads)
{
    atomic_uint_fast64_t sum = 0;
    size_t blocks = bytes / READ_BLOCK;
    bench_shared(threads, blocks, 1, read_blocks,
                 &(reading){.data = data, .streams = streams, .sum = &sum});
    return atomic_load(&sum) +
           read_streams((const char *)data + blocks * READ_BLOCK, bytes % READ_BLOCK, 1);
}

size_t bench_streams(const void *data, size_t bytes, int threads)
{
    enum { MOST = 16, TRIES = 3 };
    static volatile uint64_t kept;
    size_t best = 1;
    double least = 0.0;
    for (size_t streams = 1; streams <= MOST; streams *= 2) {
        double times[TRIES];
        for (size_t i = 0; i < TRIES; i++) {
            double start = bench_now();
            kept = bench_read(data, bytes, streams, threads);
            times[i] = bench_now() - start;
        }
        double typical = bench_median(times, TRIES);
        if (streams == 1 || typical < least) {
            least = typical;
            best = streams;
        }
    }
    (void)kept;
    return best;
}

typedef struct {
    char *out;
    const char *in;
    size_t all, offset, bytes;
} copying;

/* first and end count lines; the last may be shorter. */
static embla_status copy_lines(void *job, size_t first, size_t end, size_t slot)
{
    const copying *c = job;
    size_t from = first * LINE, to = end * LINE < c->bytes ? end * LINE : c->bytes;
    (void)slot;
    for (size_t part; from < to; from += part) {
        size_t at = (c->offset + from) % c->all;
        part = c->all - at < to - from ? c->all - at : to - from;
        memcpy(c->out + from, c->in + at, part);
    }
    return EMBLA_OK;
}

void bench_copy_round(void *out, const void *in, size_t all, size_t offset, size_t bytes,
                      int threads)
{
    const copying c = {.out = out, .in = in, .all = all, .offset = offset, .bytes = bytes};
    bench_shared(threads, (bytes + LINE - 1) / LINE, 0, copy_lines, &c);
}

void bench_copy(void *out, const void *in, size_t bytes, int threads)
{
    bench_copy_round(out, in, bytes, 0, bytes, threads);
}

void *bench_memory(size_t bytes)
{
    size_t huge = (size_t)2 << 20, rounded = (bytes + huge - 1) / huge * huge;
    void *memory = aligned_alloc(huge, rounded);
    if (!memory) return NULL;
    (void)madvise(memory, rounded, MADV_HUGEPAGE);
    memset(memory, 1, rounded);
    return memory;
}

bool bench_has_avx2(void)
{
    static atomic_int known; /* 0 means not asked yet */
    int answer = atomic_load_explicit(&known, memory_order_relaxed);
    if (answer == 0) {
        answer = 1;
#if defined(__x86_64__)
        if (embla_x86_features() & EMBLA_X86_AVX2) answer = 2;
#endif
        atomic_store_explicit(&known, answer, memory_order_relaxed);
    }
    return answer == 2;
}

size_t bench_cache(void)
{
    long bytes = 0;
#ifdef _SC_LEVEL3_CACHE_SIZE /* glibc knows it */
    bytes = sysconf(_SC_LEVEL3_CACHE_SIZE);
#endif
    return bytes > 0 ? (size_t)bytes : (size_t)32 << 20;
}

/* ---- temporary files ---- */

/* For the signal handler: what it must remove. */
enum { FILES_MOST = 4 };
static char folder[256], paths[FILES_MOST][sizeof folder + 32];

void bench_file_drop(void)
{
    for (int i = 0; i < FILES_MOST; i++) {
        if (paths[i][0]) (void)unlink(paths[i]);
        paths[i][0] = '\0';
    }
    if (folder[0]) (void)rmdir(folder);
    folder[0] = '\0';
}

static void on_signal(int number)
{
    bench_file_drop();
    (void)signal(number, SIG_DFL);
    (void)raise(number);
}

static bool make_folder(void)
{
    const char *where = getenv("TMPDIR");
    if (signal(SIGINT, on_signal) == SIG_IGN) (void)signal(SIGINT, SIG_IGN);
    if (signal(SIGTERM, on_signal) == SIG_IGN) (void)signal(SIGTERM, SIG_IGN);
    if (!where || !*where || strlen(where) > sizeof folder - 24) where = "/tmp";
    (void)snprintf(folder, sizeof folder, "%s/embla-bench-XXXXXX", where);
    if (mkdtemp(folder)) return true;
    folder[0] = '\0';
    return false;
}

const char *bench_file(const char *name)
{
    int free_one = 0;
    if (!folder[0] && !make_folder()) return NULL;
    while (free_one + 1 < FILES_MOST && paths[free_one][0]) free_one++;
    (void)snprintf(paths[free_one], sizeof paths[free_one], "%s/%s", folder, name);
    return paths[free_one];
}
