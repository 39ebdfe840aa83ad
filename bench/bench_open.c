/* SPDX-License-Identifier: Apache-2.0 */
/* embla bench open: a table in a file, compared with plain system calls.
 *
 * A safetensors file is written to a temporary folder ($TMPDIR, or /tmp) and removed at the end. A
 * case is SHAPE/f32/WHAT.
 *   scan  the file is opened with embla_checkpoint_open, and all rows are looked up in order, a
 * block at a time, into the same few megabytes. The limit is memcpy of the same blocks from a
 * mapping of the same file to the same place, with as many threads. open  the file is opened,
 * checked and closed. The limit is open, fstat, mmap, munmap and close. Both read pages that are
 * already in the page cache: only the overhead is measured.
 */
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include "bench/bench.h"
#include "bench/cases.h"
#include "bench/measure.h"
#include "embla.h"

enum { BLOCK = 4 << 20, HEADER = 128, SCAN_TURNS = 11, OPEN_TURNS = 21, OPENS = 200 };

typedef struct {
    int64_t rows;
    size_t dim;
    bool standard; /* in the default set */
} shape;

/* 64 MiB, 1 GiB, 4 GiB */
static const shape shapes[] = {{16384, 1024, false}, {262144, 1024, true}, {1048576, 1024, false}};
enum { SHAPES = sizeof shapes / sizeof shapes[0] };
static const char *const kinds[] = {"scan", "open"};
enum { SCAN, OPEN, KINDS };

/* ---- the file ---- */

static const char *path; /* of the temporary file */

/* The header, padded with spaces to HEADER bytes, so that rows begin at a cache line. */
static void make_header(const shape *sh, char out[HEADER])
{
    char json[HEADER];
    int used = snprintf(json, sizeof json,
                        "{\"embedding.weight\":{\"dtype\":\"F32\",\"shape\":[%lld,%zu],"
                        "\"data_offsets\":[0,%lld]}}",
                        (long long)sh->rows, sh->dim, (long long)sh->rows * (long long)sh->dim * 4);
    memset(out, ' ', HEADER);
    memset(out, 0, 8);
    out[0] = HEADER - 8; /* u64, little-endian */
    memcpy(out + 8, json, (size_t)used);
}

static bool write_all(int fd, const char *bytes, size_t count)
{
    while (count > 0) {
        ssize_t n = write(fd, bytes, count);
        if (n < 0 && errno == EINTR) continue;
        if (n <= 0) return false;
        bytes += n;
        count -= (size_t)n;
    }
    return true;
}

/* Writes numbers that differ from row to row: one block, with its number in each row. */
static bool fill(int fd, const shape *sh)
{
    char header[HEADER];
    size_t row = sh->dim * sizeof(float), most = BLOCK / row, all = (size_t)sh->rows;
    float *block = malloc(BLOCK);
    make_header(sh, header);
    bool good = block && write_all(fd, header, HEADER);
    for (size_t i = 0; block && i < BLOCK / sizeof *block; i++) block[i] = (float)(i % 1009) - 504;
    for (size_t at = 0; at < all && good; at += most) {
        size_t rows = all - at < most ? all - at : most;
        for (size_t i = 0; i < rows; i++) block[i * sh->dim] = (float)(at + i);
        good = write_all(fd, (const char *)block, rows * row);
    }
    free(block);
    return good;
}

static bool make_file(const shape *sh, const bench_options *options)
{
    path = bench_file("table.safetensors");
    if (!path) {
        options->complain("bench open: no temporary folder: %s", strerror(errno));
        return false;
    }
    int fd = open(path, O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0600);
    bool good = fd >= 0 && fill(fd, sh);
    int why = errno;
    if (fd >= 0 && close(fd) != 0) good = false;
    if (!good)
        options->complain("bench open: cannot write %lld bytes to %s: %s",
                          (long long)sh->rows * (long long)sh->dim * 4, path, strerror(why));
    return good;
}

/* ---- what is timed ---- */

typedef struct {
    shape shape;
    int threads;
    embla_table *table;
    const char *map; /* our own mapping of the whole file */
    size_t map_bytes;
    int64_t *rows; /* 0, 1, 2 .. */
    char *out;
    bool failed;
} bench_case;

static size_t block_rows(const bench_case *c)
{
    return BLOCK / (c->shape.dim * sizeof(float));
}

static void scan(void *context, size_t step)
{
    bench_case *c = context;
    const embla_lookup_options options = {.threads = c->threads};
    size_t most = block_rows(c), all = (size_t)c->shape.rows;
    (void)step;
    for (size_t at = 0; at < all; at += most) {
        size_t count = all - at < most ? all - at : most;
        if (embla_lookup_rows(c->table, c->rows + at, count, &options, c->out) != EMBLA_OK)
            c->failed = true;
    }
}

static void copy(void *context, size_t step)
{
    bench_case *c = context;
    size_t row = c->shape.dim * sizeof(float), most = block_rows(c), all = (size_t)c->shape.rows;
    (void)step;
    for (size_t at = 0; at < all; at += most) {
        size_t bytes = (all - at < most ? all - at : most) * row;
        const char *from = c->map + HEADER + at * row;
        bench_copy(c->out, from, bytes, c->threads);
    }
}

static void open_ours(void *context, size_t step)
{
    bench_case *c = context;
    embla_checkpoint *checkpoint = NULL;
    (void)step;
    if (embla_checkpoint_open(path, NULL, &checkpoint) != EMBLA_OK) c->failed = true;
    embla_checkpoint_free(checkpoint);
}

static void open_bare(void *context, size_t step)
{
    bench_case *c = context;
    struct stat found;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    (void)step;
    if (fd < 0 || fstat(fd, &found) != 0) {
        c->failed = true;
        return;
    }
    void *map = mmap(NULL, (size_t)found.st_size, PROT_READ, MAP_SHARED, fd, 0);
    if (map == MAP_FAILED)
        c->failed = true;
    else
        (void)munmap(map, (size_t)found.st_size);
    (void)close(fd);
}

/* Verifies the last block: it must equal the file's bytes. */
static bool is_right(bench_case *c)
{
    size_t row = c->shape.dim * sizeof(float), most = block_rows(c), all = (size_t)c->shape.rows;
    size_t at = (all - 1) / most * most;
    memset(c->out, 0xff, BLOCK);
    scan(c, 0);
    return !c->failed && memcmp(c->out, c->map + HEADER + at * row, (all - at) * row) == 0;
}

/* ---- cases ---- */

static int run_case(bench_case *c, int kind, const char *name, const bench_options *options)
{
    double bytes = (double)c->shape.rows * (double)c->shape.dim * sizeof(float);
    bench_times times = kind == SCAN ? bench_measure(scan, copy, c, SCAN_TURNS, 1)
                                     : bench_measure(open_ours, open_bare, c, OPEN_TURNS, OPENS);
    if (c->failed || (kind == SCAN && !is_right(c))) {
        options->complain("bench open: %s: wrong rows: %s", name, embla_error());
        return 1;
    }
    double work = kind == SCAN ? 2.0 * bytes * 1e-9 : 1e-3; /* read and written; thousands */
    bench_result result = {.bench = "open",
                           .name = name,
                           .threads = c->threads,
                           .unit = kind == SCAN ? "GB/s" : "kopen/s",
                           .limit_is = kind == SCAN ? "memcpy of map" : "open+mmap",
                           .value = work / times.seconds,
                           .limit = work / times.limit_seconds};
    bench_print(options, &result);
    return 0;
}

static int run_threads(bench_case *c, int kind, const char *name, const bench_options *options)
{
    const bench_teams teams = bench_teams_for(options, kind == OPEN ? BENCH_ALONE : BENCH_BOTH);
    int failed = 0;
    for (size_t t = 0; t < teams.count && !failed; t++) {
        c->threads = teams.threads[t];
        failed = run_case(c, kind, name, options);
    }
    return failed;
}

/* Opens the file in both ways. */
static bool set_up(bench_case *c, const bench_options *options)
{
    embla_checkpoint *checkpoint = NULL;
    int fd = open(path, O_RDONLY | O_CLOEXEC);
    c->map_bytes = HEADER + (size_t)c->shape.rows * c->shape.dim * sizeof(float);
    void *map = fd >= 0 ? mmap(NULL, c->map_bytes, PROT_READ, MAP_SHARED, fd, 0) : MAP_FAILED;
    if (fd >= 0) (void)close(fd);
    c->map = map == MAP_FAILED ? NULL : map;
    c->out = bench_memory(BLOCK);
    c->rows = malloc((size_t)c->shape.rows * sizeof *c->rows);
    for (int64_t i = 0; c->rows && i < c->shape.rows; i++) c->rows[i] = i;
    bool good = c->map && c->out && c->rows;
    if (!good)
        options->complain("bench open: no memory");
    else if (embla_checkpoint_open(path, NULL, &checkpoint) != EMBLA_OK ||
             embla_table_open(checkpoint, NULL, NULL, &c->table) != EMBLA_OK) {
        options->complain("bench open: %s", embla_error());
        good = false;
    }
    embla_checkpoint_free(checkpoint); /* the table keeps its file open */
    return good;
}

static void put_away(bench_case *c)
{
    if (c->map) (void)munmap((void *)(uintptr_t)c->map, c->map_bytes);
    embla_table_free(c->table);
    free(c->rows);
    free(c->out);
}

/* Runs all wanted cases of one shape, and removes its file. */
static int run_shape(const shape *sh, const bool *wanted, char names[KINDS][64],
                     const bench_options *options)
{
    bench_case c = {.shape = *sh};
    int failed = !make_file(sh, options) || !set_up(&c, options);
    for (int kind = 0; kind < KINDS && !failed; kind++)
        if (wanted[kind]) failed = run_threads(&c, kind, names[kind], options);
    put_away(&c);
    bench_file_drop();
    return failed;
}

int bench_open(const bench_options *options)
{
    bench_cases cases;
    int exit_code = bench_begin("open", options, &cases);
    if (exit_code != 0) return exit_code;
    for (size_t i = 0; i < SHAPES && exit_code == 0; i++) {
        char names[KINDS][64];
        bool wanted[KINDS], any = false;
        for (int kind = 0; kind < KINDS; kind++) {
            snprintf(names[kind], sizeof names[kind], "%lldx%zu/f32/%s", (long long)shapes[i].rows,
                     shapes[i].dim, kinds[kind]);
            wanted[kind] = bench_wants(&cases, names[kind], shapes[i].standard);
            any = any || wanted[kind];
        }
        if (any) exit_code = run_shape(&shapes[i], wanted, names, options);
    }
    return bench_end(&cases, exit_code);
}
