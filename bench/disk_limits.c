/* SPDX-License-Identifier: Apache-2.0 */
/* Bare reads of a disk. The ring is the library's own (files/io_ring.h), because a limit must be
 * measured with the same calls of the kernel; the pool is plain threads with pread. */
#include "bench/disk_limits.h"

#include <fcntl.h>
#include <pthread.h>
#include <stdatomic.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "bench/measure.h"
#include "files/io_ring.h"

enum { THREADS = 16 };

struct bench_disk_limits {
    int fd;
    unsigned depth;
    embla_ring ring;
    char *pages; /* one for each read, or for each thread */
};

bench_disk_limits *bench_disk_open(const char *path, unsigned depth)
{
    bench_disk_limits *l = calloc(1, sizeof *l);
    if (!l) return NULL;
    *l = (bench_disk_limits){.depth = depth, .ring = {.file = EMBLA_NO_FILE}};
    l->fd = open(path, O_RDONLY | O_DIRECT | O_CLOEXEC);
    l->pages = aligned_alloc(BENCH_PAGE,
                             (size_t)BENCH_PAGE * (depth > THREADS ? depth : (unsigned)THREADS));
    if (l->fd < 0 || !l->pages) {
        bench_disk_close(l);
        return NULL;
    }
    if (embla_ring_open(depth, &l->ring) != EMBLA_OK) l->ring.file = -1;
    return l;
}

void bench_disk_close(bench_disk_limits *l)
{
    if (!l) return;
    embla_ring_close(&l->ring);
    if (l->fd >= 0) (void)close(l->fd);
    free(l->pages);
    free(l);
}

/* Submits as many reads as have ended, a quarter of the depth at a time. */
bool bench_disk_ring(bench_disk_limits *l, const uint64_t *offsets, size_t count)
{
    size_t sent = 0, done = 0;
    bool good = l->ring.file >= 0;
    while (good && done < count) {
        uint64_t tag;
        int64_t result;
        for (; sent < count && sent < l->depth; sent++) /* the first reads */
            embla_ring_queue(&l->ring, l->fd, offsets[sent], l->pages + sent * BENCH_PAGE,
                             BENCH_PAGE, sent);
        size_t flying = sent - done, some = l->depth / 4 + 1;
        uint32_t queued = l->ring.queued;
        l->ring.queued = 0;
        good = embla_worked(
            embla_ring_wait(&l->ring, queued, (uint32_t)(flying < some ? flying : some)));
        while (embla_ring_pop(&l->ring, &tag, &result)) {
            done++;
            if (result != BENCH_PAGE) good = false;
            if (sent == count) continue;
            embla_ring_queue(&l->ring, l->fd, offsets[sent++], l->pages + tag * BENCH_PAGE,
                             BENCH_PAGE, tag);
        }
    }
    return good;
}

typedef struct {
    bench_disk_limits *limits;
    const uint64_t *offsets;
    size_t count;
    atomic_size_t next;
    atomic_int threads;
    atomic_bool failed;
} pool;

static void *read_some(void *context)
{
    pool *p = context;
    char *page = p->limits->pages + (size_t)atomic_fetch_add(&p->threads, 1) * BENCH_PAGE;
    for (size_t i; (i = atomic_fetch_add(&p->next, 1)) < p->count;)
        if (pread(p->limits->fd, page, BENCH_PAGE, (off_t)p->offsets[i]) != BENCH_PAGE)
            atomic_store(&p->failed, true);
    return NULL;
}

bool bench_disk_pool(bench_disk_limits *l, const uint64_t *offsets, size_t count)
{
    pool p = {.limits = l, .offsets = offsets, .count = count};
    pthread_t threads[THREADS];
    size_t started = 0;
    while (started < THREADS && pthread_create(&threads[started], NULL, read_some, &p) == 0)
        started++;
    for (size_t i = 0; i < started; i++) (void)pthread_join(threads[i], NULL);
    return started == THREADS && !atomic_load(&p.failed);
}

/* Field 8 of fio's terse output is the number of reads in a second. */
double bench_disk_fio(const char *path, unsigned depth)
{
    char command[4608], line[4096] = "";
    const char *at = line;
    if (strchr(path, '\'')) return 0;
    (void)snprintf(command, sizeof command,
                   "fio --name=embla --filename='%.3800s' --readonly --rw=randread --bs=4k "
                   "--direct=1 --ioengine=io_uring --iodepth=%u --runtime=1 --time_based "
                   "--output-format=terse --terse-version=3 2>/dev/null",
                   path, depth);
    FILE *pipe = popen(command, "r");
    if (!pipe) return 0;
    if (!fgets(line, sizeof line, pipe)) line[0] = '\0';
    (void)pclose(pipe);
    for (int field = 1; field < 8 && at; field++) {
        at = strchr(at, ';');
        if (at) at++;
    }
    return at ? strtod(at, NULL) : 0;
}

void bench_disk_print(const bench_options *options, const char *name, const char *unit,
                      double value, double limit, const char *limit_is)
{
    const bench_result result = {.bench = "disk",
                                 .name = name,
                                 .threads = 1,
                                 .unit = unit,
                                 .limit_is = limit_is,
                                 .value = value,
                                 .limit = limit};
    bench_print(options, &result);
}
