/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench disk: rows of 160 bytes of a table that is a file, physically written, with the
 * placement direct. Rows are those of the n-grams of a text (16 for each token), or random ones if
 * there is no text. A set of rows is used again only after many others; the file is not in the page
 * cache.
 *
 *   trace/distinct    different rows of a prefill; limit: all its rows
 *   step/faults       steps of 16 rows (one token); limit: a map with MADV_RANDOM, fault after
 *                     fault; goal 2.86 (0.35 of the time)
 *   step/cold         rows of these faults that were not in the page cache, by mincore; limit: all
 *   prefill/ring      32,768 rows (2,048 tokens) by one ticket, decoded to f32; limit: a bare loop
 *                     with io_uring that reads the different pages at the same depth; goal 0.9
 *   prefill/fio       its reads; limit: fio, 4 KiB random reads at the same depth; goal 0.85
 *   prefill/cpu       rows in a second of CPU time; limit: a pool of 16 threads with pread; goal 2
 *   prefill/reads     different pages of a prefill; limit: reads; goal 0.98
 *   prefill/cache     pages that were read and are not in the page cache; limit: all; goal 1
 *   prefill/resident  memory that a store and its tickets may take, and 4 MiB; limit: what they
 *                     take for 16 prefills; goal 1
 *   pread/pool        prefills by threads; limit: a bare pool of 16 threads; goal 0.8
 *   repeats/reads     a prefill in which nine of ten rows are repeats: how many times fewer reads;
 *                     limit: 5; goal 1
 *   hidden/step       a step with 1 ms of computing between submit and wait: the share of its time
 *                     that the wait does not take; limit: 1; goal 0.95
 *   wait/done         waits for tickets that have ended; limit: 1 us each; goal 1
 *   hot/step          rows of steps that are hot; limit: 150 ns a row; goal 1
 *
 * disk_pack.c has the cases of packs. The file has 4 GiB in $TMPDIR or /tmp, and is removed at the
 * end; BENCH_GIB sets another size. BENCH_DISK names a file to use instead; it is only read.
 * BENCH_DEPTH sets the depth (64).
 */
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/resource.h>
#include <unistd.h>

#include "base/hash.h"
#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/disk_limits.h"
#include "bench/measure.h"
#include "embla_store.h"

enum { HEADS = 16, TOKENS = 2048, SETS = 16, COUNT = TOKENS * HEADS, TURNS = 5, ROW = 160 };
enum { FAULTS = 4096 }; /* steps of step/faults that are remembered */

static const embla_row_format format = {.dim = ROW, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-12f};

typedef struct {
    const bench_options *options;
    bench_cases cases;
    const char *path;
    uint64_t bytes;
    unsigned depth;
    int fd;
    const char *map; /* of the whole file, marked for random access */
    bench_disk_limits *limits;
    embla_store *store, *threads; /* the best reader; pread */
    embla_tickets *tickets, *thread_tickets;
    int64_t *rows;      /* SETS x COUNT */
    uint64_t *offsets;  /* SETS x COUNT: the different pages of each set, in their order .. */
    size_t pages[SETS]; /* .. and their number */
    float *out;
    size_t step;                        /* the next token whose rows nobody has used */
    size_t faults[FAULTS], fault_count; /* the first row of each step by faults */
    bool failed;
} session;

/* ---- the file ---- */

static uint64_t wanted_bytes(void)
{
    const char *text = getenv("BENCH_GIB");
    long gib = text ? strtol(text, NULL, 10) : 0;
    return (uint64_t)(gib >= 1 && gib <= 1024 ? gib : 4) << 30;
}

/* Writes random bytes without bit 6, so that no f8 is NaN. */
static bool write_file(session *s)
{
    enum { WORDS = (4 << 20) / sizeof(uint64_t) };
    uint64_t *block = malloc(WORDS * sizeof *block);
    int fd = s->path ? open(s->path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0600) : -1;
    bool good = block && fd >= 0;
    for (uint64_t at = 0; good && at < s->bytes; at += WORDS * sizeof *block) {
        for (size_t i = 0; i < WORDS; i++)
            block[i] = embla_splitmix64((at + i) * EMBLA_GOLDEN) & UINT64_C(0xBFBFBFBFBFBFBFBF);
        good = write(fd, block, WORDS * sizeof *block) == (ssize_t)(WORDS * sizeof *block);
    }
    good = good && fsync(fd) == 0;
    if (fd >= 0 && close(fd) != 0) good = false;
    free(block);
    return good;
}

static bool open_file(session *s)
{
    s->path = getenv("BENCH_DISK");
    s->bytes = wanted_bytes();
    if (!s->path) {
        s->path = bench_file("table");
        if (!write_file(s)) return false;
    }
    s->fd = open(s->path, O_RDONLY | O_CLOEXEC);
    off_t end = s->fd < 0 ? -1 : lseek(s->fd, 0, SEEK_END);
    if (end < (off_t)COUNT * BENCH_PAGE) return false;
    s->bytes = (uint64_t)end / BENCH_PAGE * BENCH_PAGE;
    (void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
    void *map = mmap(NULL, s->bytes, PROT_READ, MAP_SHARED, s->fd, 0);
    if (map == MAP_FAILED) return false;
    s->map = map;
    return madvise(map, s->bytes, MADV_RANDOM) == 0;
}

/* For each page of the file a byte; its lowest bit is set if the page is in the page cache. NULL if
 * the system does not tell. */
static unsigned char *cache_flags(const session *s)
{
    unsigned char *flags = malloc(s->bytes / BENCH_PAGE);
    if (flags && mincore((void *)(uintptr_t)s->map, s->bytes, flags) == 0) return flags;
    free(flags);
    return NULL;
}

/* Pages of the file that are in the page cache. */
static size_t cached_pages(const session *s)
{
    size_t found = 0;
    unsigned char *flags = cache_flags(s);
    for (size_t i = 0; flags && i < s->bytes / BENCH_PAGE; i++) found += flags[i] & 1;
    free(flags);
    return found;
}

static bool open_store(session *s, embla_reader_kind reader, int depth, embla_store **store,
                       embla_tickets **tickets)
{
    const embla_store_options options = {
        .placement = EMBLA_PLACEMENT_DIRECT, .reader = reader, .depth = depth};
    const embla_extent extent = {.file = s->path, .rows = (int64_t)(s->bytes / ROW)};
    return embla_store_open_extents(&format, &extent, 1, &options, store) == EMBLA_OK &&
           embla_tickets_new(*store, NULL, tickets) == EMBLA_OK;
}

/* Lists the pages that each prefill needs, without repeats: what the bare loops read. */
static bool list_pages(session *s)
{
    unsigned char *seen = calloc(s->bytes / BENCH_PAGE, 1);
    if (!seen) return false;
    for (size_t set = 0; set < SETS; set++)
        for (size_t i = set * COUNT; i < (set + 1) * COUNT; i++) {
            uint64_t page = (uint64_t)s->rows[i] * ROW / BENCH_PAGE;
            if (seen[page] == set + 1) continue;
            seen[page] = (unsigned char)(set + 1);
            s->offsets[set * COUNT + s->pages[set]++] = page * BENCH_PAGE;
        }
    free(seen);
    return true;
}

/* Opens everything, when the first case is wanted. */
static bool open_all(session *s)
{
    const char *text = getenv("BENCH_DEPTH");
    int64_t table_rows;
    if (s->rows) return true;
    s->depth = text ? (unsigned)strtoul(text, NULL, 10) : 64;
    if (!open_file(s)) {
        s->options->complain("bench disk: cannot use a file of %llu bytes at %s",
                             (unsigned long long)s->bytes, s->path ? s->path : "$TMPDIR");
        return false;
    }
    table_rows = (int64_t)(s->bytes / ROW);
    s->limits = bench_disk_open(s->path, s->depth);
    s->rows = malloc(sizeof *s->rows * SETS * COUNT);
    s->offsets = malloc(sizeof *s->offsets * SETS * COUNT);
    s->out = bench_memory((size_t)COUNT * ROW * sizeof(float));
    if (!s->limits || !s->rows || !s->offsets || !s->out ||
        !open_store(s, EMBLA_READER_AUTO, (int)s->depth, &s->store, &s->tickets) ||
        !open_store(s, EMBLA_READER_PREAD, 0, &s->threads, &s->thread_tickets)) {
        s->options->complain("bench disk: %s: %s", s->path, embla_error());
        return false;
    }
    if (!bench_text_rows("qwen3.8-flash-next", (size_t)SETS * TOKENS, HEADS, table_rows, s->rows)) {
        s->options->complain("bench disk: no text in EMBLA_DATA, or no xz: random rows");
        for (size_t i = 0; i < (size_t)SETS * COUNT; i++)
            s->rows[i] = (int64_t)(embla_splitmix64(i * EMBLA_GOLDEN) % (uint64_t)table_rows);
    }
    return list_pages(s);
}

static void close_all(session *s)
{
    embla_tickets_free(s->tickets);
    embla_tickets_free(s->thread_tickets);
    embla_store_free(s->store);
    embla_store_free(s->threads);
    bench_disk_close(s->limits);
    if (s->map) (void)munmap((void *)(uintptr_t)s->map, s->bytes);
    if (s->fd > 0) (void)close(s->fd);
    if (s->path && !getenv("BENCH_DISK")) bench_file_drop(); /* a large file goes at once */
    free(s->rows);
    free(s->offsets);
    free(s->out);
}

/* ---- steps ---- */

/* The rows of a token that no call before has used. */
static size_t next_step(session *s)
{
    return s->step++ % (SETS * TOKENS) * HEADS;
}

static embla_ticket submit_rows(session *s, embla_tickets *tickets, const int64_t *rows,
                                size_t count)
{
    embla_ticket ticket = 0;
    const embla_ticket_request request = {.rows = rows, .count = count, .out = s->out};
    if (embla_ticket_submit(tickets, &request, &ticket) != EMBLA_OK) s->failed = true;
    return ticket;
}

static void wait_for(session *s, embla_tickets *tickets, embla_ticket ticket)
{
    if (embla_ticket_wait(tickets, ticket) != EMBLA_OK) s->failed = true;
}

static void run_step(void *context, size_t step)
{
    session *s = context;
    (void)step;
    wait_for(s, s->tickets, submit_rows(s, s->tickets, s->rows + next_step(s), HEADS));
}

static void run_faults(void *context, size_t step)
{
    session *s = context;
    size_t at = next_step(s);
    char *out = (char *)s->out;
    (void)step;
    if (s->fault_count < FAULTS) s->faults[s->fault_count++] = at;
    for (size_t i = 0; i < HEADS; i++)
        memcpy(out + i * ROW, s->map + (size_t)s->rows[at + i] * ROW, ROW);
}

/* Rows of the fault steps whose page was not in the page cache before, by mincore, and was not
 * touched by an earlier step. flags is how it was before the first step. */
static size_t count_cold(const session *s, unsigned char *flags)
{
    size_t cold = 0;
    for (size_t i = 0; i < s->fault_count; i++)
        for (size_t k = 0; k < HEADS; k++) {
            uint64_t page = (uint64_t)s->rows[s->faults[i] + k] * ROW / BENCH_PAGE;
            cold += !(flags[page] & 1);
            flags[page] |= 1;
        }
    return cold;
}

static void bench_steps(session *s, const char *name)
{
    (void)posix_fadvise(s->fd, 0, 0, POSIX_FADV_DONTNEED);
    unsigned char *flags = cache_flags(s);
    s->fault_count = 0;
    bench_times t = bench_measure(run_step, run_faults, s, 51, 8);
    bench_disk_print(s->options, name, "steps/s", 1 / t.seconds, 1 / t.limit_seconds,
                     "MADV_RANDOM faults");
    if (flags)
        bench_disk_print(s->options, "step/cold", "rows", (double)count_cold(s, flags),
                         (double)(s->fault_count * HEADS), "rows of the faults");
    free(flags);
}

/* ---- prefills ---- */

static const int64_t *rows_of(const session *s, size_t step)
{
    return s->rows + step % SETS * COUNT;
}

static void run_prefill(void *context, size_t step)
{
    session *s = context;
    wait_for(s, s->tickets, submit_rows(s, s->tickets, rows_of(s, step), COUNT));
}

static void run_ring(void *context, size_t step)
{
    session *s = context;
    size_t set = step % SETS;
    if (!bench_disk_ring(s->limits, s->offsets + set * COUNT, s->pages[set])) s->failed = true;
}

static void run_pread(void *context, size_t step)
{
    session *s = context;
    wait_for(s, s->thread_tickets, submit_rows(s, s->thread_tickets, rows_of(s, step), COUNT));
}

static void run_pool(void *context, size_t step)
{
    session *s = context;
    size_t set = step % SETS;
    if (!bench_disk_pool(s->limits, s->offsets + set * COUNT, s->pages[set])) s->failed = true;
}

static void bench_prefill(session *s, const char *name, bench_fn *ours, bench_fn *limit,
                          const char *limit_is)
{
    bench_times t = bench_measure(ours, limit, s, TURNS, 1);
    bench_disk_print(s->options, name, "krows/s", COUNT / t.seconds / 1e3,
                     COUNT / t.limit_seconds / 1e3, limit_is);
}

static int64_t reads_so_far(session *s)
{
    embla_tickets_info stats = {0};
    if (embla_tickets_describe(s->tickets, &stats) != EMBLA_OK) s->failed = true;
    return stats.reads;
}

/* fio and our reads in turns: the speed of a disk changes within seconds. */
static void bench_fio(session *s, const char *name)
{
    double fio[TURNS], ours[TURNS];
    for (size_t turn = 0; turn < TURNS; turn++) {
        fio[turn] = bench_disk_fio(s->path, s->depth);
        int64_t before = reads_so_far(s);
        double start = bench_now();
        for (size_t i = 0; i < SETS / 2; i++) run_prefill(s, turn * SETS / 2 + i);
        ours[turn] = (double)(reads_so_far(s) - before) / (bench_now() - start);
        if (fio[turn] > 0) continue;
        s->options->complain("bench disk: %s: fio is not installed: left out", name);
        return;
    }
    bench_disk_print(s->options, name, "kreads/s", bench_median(ours, TURNS) / 1e3,
                     bench_median(fio, TURNS) / 1e3, "fio");
}

/* CPU seconds of this process. */
static double cpu_now(void)
{
    struct rusage r;
    (void)getrusage(RUSAGE_SELF, &r);
    return (double)(r.ru_utime.tv_sec + r.ru_stime.tv_sec) +
           1e-6 * (double)(r.ru_utime.tv_usec + r.ru_stime.tv_usec);
}

static void bench_cpu(session *s, const char *name)
{
    double ours = 0, pool = 0;
    for (size_t turn = 0; turn < TURNS; turn++) {
        double start = cpu_now();
        run_pool(s, 2 * turn);
        double middle = cpu_now();
        run_prefill(s, 2 * turn + 1);
        pool += middle - start;
        ours += cpu_now() - middle;
    }
    bench_disk_print(s->options, name, "krows/s", TURNS * COUNT / ours / 1e3,
                     TURNS * COUNT / pool / 1e3, "CPU time of a pread pool");
}

/* ---- counting ---- */

static int by_number(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;
    return (x > y) - (x < y);
}

/* How many of the numbers are different. They are sorted. */
static size_t different(int64_t *numbers, size_t count)
{
    size_t found = count > 0;
    qsort(numbers, count, sizeof *numbers, by_number);
    for (size_t i = 1; i < count; i++) found += numbers[i] != numbers[i - 1];
    return found;
}

static int64_t reads_of(session *s, const int64_t *rows)
{
    int64_t before = reads_so_far(s);
    wait_for(s, s->tickets, submit_rows(s, s->tickets, rows, COUNT));
    return reads_so_far(s) - before;
}

static void bench_trace(session *s, const char *name)
{
    int64_t *copy = malloc(COUNT * sizeof *copy);
    if (!copy) return;
    memcpy(copy, s->rows, COUNT * sizeof *copy);
    bench_disk_print(s->options, name, "rows", (double)different(copy, COUNT), COUNT, "all rows");
    free(copy);
}

static void bench_reads(session *s, const char *name)
{
    int64_t *pages = malloc((size_t)2 * COUNT * sizeof *pages);
    if (!pages) return;
    for (size_t i = 0; i < COUNT; i++) { /* a row may be in two pages */
        pages[2 * i] = s->rows[i] * ROW / BENCH_PAGE;
        pages[2 * i + 1] = (s->rows[i] * ROW + ROW - 1) / BENCH_PAGE;
    }
    double found = (double)different(pages, (size_t)2 * COUNT);
    bench_disk_print(s->options, name, "pages", found, (double)reads_of(s, s->rows), "reads");
    free(pages);
}

static void bench_cache_growth(session *s, const char *name)
{
    size_t before = cached_pages(s);
    for (size_t i = 0; i < 3; i++) run_prefill(s, i);
    size_t after = cached_pages(s), grown = after > before ? after - before : 0;
    bench_disk_print(s->options, name, "pages", (double)(3 * COUNT) - (double)grown, 3 * COUNT,
                     "pages not cached");
}

/* Bytes of this process in memory that belong to no file; 0 if the system does not tell. */
static double resident_bytes(void)
{
    char line[256];
    double kilobytes = 0;
    FILE *file = fopen("/proc/self/status", "r");
    while (file && fgets(line, sizeof line, file))
        if (strncmp(line, "RssAnon:", 8) == 0) kilobytes = strtod(line + 8, NULL);
    if (file) (void)fclose(file);
    return kilobytes * 1024;
}

/* A store and tickets of its own: they must not take more memory than they were allowed, and 4 MiB
 * for stacks and handles. */
static void bench_resident(session *s, const char *name)
{
    enum { MIB = 1 << 20, TICKETS = 16 * MIB, HOT = 16 * MIB, SLOT = 16 << 10 };
    const embla_store_options options = {.placement = EMBLA_PLACEMENT_DIRECT,
                                         .depth = (int)s->depth};
    const embla_extent extent = {.file = s->path, .rows = (int64_t)(s->bytes / ROW)};
    const embla_tickets_options budget = {.max_bytes = TICKETS, .hot_bytes = HOT};
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    run_prefill(s, 0); /* s->out is in memory */
    double before = resident_bytes();
    s->failed = embla_store_open_extents(&format, &extent, 1, &options, &store) != EMBLA_OK ||
                embla_tickets_new(store, &budget, &tickets) != EMBLA_OK;
    for (size_t i = 0; i < SETS && !s->failed; i++)
        wait_for(s, tickets, submit_rows(s, tickets, rows_of(s, i), COUNT));
    double grown = resident_bytes() - before, allowed = TICKETS + HOT + 4.0 * MIB;
    allowed += (double)s->depth * SLOT;
    if (before > 0 && !s->failed)
        bench_disk_print(s->options, name, "MiB", allowed / MIB, grown / MIB,
                         "memory that it took");
    embla_tickets_free(tickets);
    embla_store_free(store);
}

static void bench_repeats(session *s, const char *name)
{
    int64_t *rows = malloc(COUNT * sizeof *rows);
    if (!rows) return;
    for (size_t i = 0; i < COUNT; i++) rows[i] = s->rows[embla_splitmix64(i) % (COUNT / 10) * 10];
    bench_disk_print(s->options, name, "fewer",
                     (double)reads_of(s, s->rows) / (double)reads_of(s, rows), 5,
                     "5 times fewer reads");
    free(rows);
}

/* ---- waiting ---- */

static void compute(double seconds)
{
    double end = bench_now() + seconds;
    while (bench_now() < end) continue;
}

static void bench_hidden(session *s, const char *name)
{
    enum { STEPS = 301 };
    double cold[STEPS], blocked[STEPS];
    for (size_t i = 0; i < STEPS; i++) {
        double start = bench_now();
        run_step(s, 0);
        cold[i] = bench_now() - start;
        embla_ticket ticket = submit_rows(s, s->tickets, s->rows + next_step(s), HEADS);
        compute(1e-3);
        start = bench_now();
        wait_for(s, s->tickets, ticket);
        blocked[i] = bench_now() - start;
    }
    bench_disk_print(s->options, name, "share",
                     1 - bench_median(blocked, STEPS) / bench_median(cold, STEPS), 1,
                     "time of a cold step");
}

static void bench_done(session *s, const char *name)
{
    enum { STEPS = 1000 };
    double waited = 0;
    for (size_t i = 0; i < STEPS; i++) {
        bool done = false;
        embla_ticket ticket = submit_rows(s, s->tickets, s->rows + next_step(s), HEADS);
        while (!done && embla_ticket_done(s->tickets, ticket, &done) == EMBLA_OK) continue;
        double start = bench_now();
        wait_for(s, s->tickets, ticket);
        waited += bench_now() - start;
    }
    bench_disk_print(s->options, name, "M/s", STEPS / waited / 1e6, 1, "1 us for each");
}

static void bench_hot(session *s, const char *name)
{
    enum { STEPS = 256, ROUNDS = 40 };
    const embla_tickets_options options = {
        .hot_bytes = 4 << 20, .hot_rows = s->rows, .hot_count = (size_t)STEPS * HEADS};
    embla_tickets *hot = NULL, *plain = s->tickets;
    if (embla_tickets_new(s->store, &options, &hot) != EMBLA_OK) {
        s->failed = true;
        return;
    }
    s->tickets = hot;
    double best = 1e9;
    for (size_t round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (size_t i = 0; i < STEPS; i++)
            wait_for(s, hot, submit_rows(s, hot, s->rows + i * HEADS, HEADS));
        double took = bench_now() - start;
        if (took < best) best = took;
    }
    if (reads_so_far(s) > 0) s->failed = true;
    s->tickets = plain;
    embla_tickets_free(hot);
    bench_disk_print(s->options, name, "Mrows/s", STEPS * HEADS / best / 1e6, 1 / 0.15,
                     "150 ns a row");
}

/* ---- running ---- */

static void bench_ring(session *s, const char *name)
{
    bench_prefill(s, name, run_prefill, run_ring, "bare io_uring");
}

static void bench_pread(session *s, const char *name)
{
    bench_prefill(s, name, run_pread, run_pool, "bare pread pool");
}

static const struct {
    const char *name;
    void (*run)(session *s, const char *name);
} all_cases[] = {{"trace/distinct", bench_trace},
                 {"step/faults", bench_steps},
                 {"prefill/ring", bench_ring},
                 {"prefill/fio", bench_fio},
                 {"prefill/cpu", bench_cpu},
                 {"prefill/reads", bench_reads},
                 {"prefill/cache", bench_cache_growth},
                 {"prefill/resident", bench_resident},
                 {"pread/pool", bench_pread},
                 {"repeats/reads", bench_repeats},
                 {"hidden/step", bench_hidden},
                 {"wait/done", bench_done},
                 {"hot/step", bench_hot}};

int bench_disk(const bench_options *options)
{
    session s = {.options = options, .fd = -1};
    int exit_code = bench_begin("disk", options, &s.cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < sizeof all_cases / sizeof all_cases[0] && exit_code == 0; i++) {
        const char *name = all_cases[i].name;
        if (!bench_wants(&s.cases, name, true)) continue;
        if (!open_all(&s)) {
            exit_code = 1;
            break;
        }
        all_cases[i].run(&s, name);
        if (s.failed) options->complain("bench disk: %s: %s", name, embla_error());
        if (s.failed) exit_code = 1;
    }
    close_all(&s);
    if (exit_code == 0) exit_code = bench_disk_pack(&s.cases);
    bench_file_drop();
    return bench_end(&s.cases, exit_code);
}
