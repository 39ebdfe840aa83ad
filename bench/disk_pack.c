/* SPDX-License-Identifier: Apache-2.0 */
/* The cases of embla bench disk for packs: reads that a packed table needs, and hot n-grams. The
 * table has DeepSeek's rows (256 f8 and 8 scales, in two planes), 64 MiB of them. Reads are
 * counted, so these figures do not depend on the disk.
 *
 *   pack/rows      rows, each by its own ticket; limit: their reads from a pack; goal 1
 *   pack/pages     rows of the same; limit: pages that were read; goal 1: none crosses a page
 *   pack/split     reads of the same rows from two planes, for each read from the pack; limit: 2;
 *                  goal 1
 *   bundle/rows    rows of n-grams that all have bundles of 8; limit: 8 times their reads; goal 1
 *   hot/ngram      rows of hot n-grams of 8 rows, 16 rows in a step, as they are stored (hot/step
 *                  of bench_disk.c also decodes them); limit: 150 ns a row; goal 1
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/hash.h"
#include "bench/disk_limits.h"
#include "bench/measure.h"
#include "embla_store.h"

enum { ROWS = 1 << 18, CODES = 256, SCALES = 8, ROW = CODES + SCALES, HEADS = 8, NGRAMS = 4096 };
enum { COUNTED = 2000, STEP = 2 * HEADS, STEPS = 256 };

static const embla_row_format format = {
    .dim = CODES, .dtype = EMBLA_F8_E4M3, .scales = EMBLA_SCALES_UE8M0_32};
static const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};

typedef struct {
    const bench_options *options;
    embla_checkpoint *checkpoint;
    embla_store *source, *pack;
    int64_t *ngrams; /* NGRAMS x HEADS */
    float out[STEP * CODES];
    bool failed;
} session;

/* ---- the table and its pack ---- */

static bool write_plane(const char *path, size_t bytes)
{
    FILE *file = path ? fopen(path, "wb") : NULL;
    bool good = file != NULL;
    for (size_t i = 0; good && i < bytes / sizeof(uint64_t); i++) {
        uint64_t word = embla_splitmix64(i) & UINT64_C(0x3F3F3F3F3F3F3F3F); /* no NaN */
        good = fwrite(&word, sizeof word, 1, file) == 1;
    }
    return file && fclose(file) == 0 && good;
}

static bool open_all(session *s)
{
    if (s->pack) return true;
    const char *codes = bench_file("codes"), *scales = bench_file("scales");
    const char *pack = bench_file("pack");
    if (!write_plane(codes, (size_t)ROWS * CODES) || !write_plane(scales, (size_t)ROWS * SCALES))
        return false;
    s->ngrams = malloc(sizeof *s->ngrams * NGRAMS * HEADS);
    if (!s->ngrams || !pack) return false;
    for (size_t i = 0; i < (size_t)NGRAMS * HEADS; i++)
        s->ngrams[i] = (int64_t)(embla_splitmix64(i * EMBLA_GOLDEN) % ROWS);
    const embla_extent extent = {.file = codes, .scale_file = scales, .rows = ROWS};
    const embla_pack_options how = {
        .rows_per_ngram = HEADS, .bundles = s->ngrams, .bundle_count = NGRAMS, .overwrite = true};
    return embla_store_open_extents(&format, &extent, 1, &direct, &s->source) == EMBLA_OK &&
           embla_pack_write(s->source, pack, &how, NULL) == EMBLA_OK &&
           embla_checkpoint_open(pack, NULL, &s->checkpoint) == EMBLA_OK &&
           embla_store_open(s->checkpoint, NULL, -1, &direct, &s->pack) == EMBLA_OK;
}

static void close_all(session *s)
{
    embla_store_free(s->pack);
    embla_checkpoint_free(s->checkpoint);
    embla_store_free(s->source);
    free(s->ngrams);
}

/* ---- counting reads ---- */

static void read_rows(session *s, embla_tickets *tickets, const int64_t *rows, size_t count)
{
    embla_ticket ticket;
    const embla_store_lookup_options raw = {.raw = true};
    const embla_ticket_request request = {
        .rows = rows, .count = count, .lookup = &raw, .out = s->out};
    if (embla_ticket_submit(tickets, &request, &ticket) != EMBLA_OK ||
        embla_ticket_wait(tickets, ticket) != EMBLA_OK)
        s->failed = true;
}

/* Reads COUNTED groups of `count` rows, a ticket for each. */
static embla_tickets_info count_reads(session *s, const embla_store *store, size_t count)
{
    embla_tickets *tickets = NULL;
    embla_tickets_info stats = {0};
    if (embla_tickets_new(store, NULL, &tickets) != EMBLA_OK) s->failed = true;
    for (size_t i = 0; i < COUNTED && !s->failed; i++)
        read_rows(s, tickets, s->ngrams + i * count, count);
    if (!s->failed && embla_tickets_describe(tickets, &stats) != EMBLA_OK) s->failed = true;
    embla_tickets_free(tickets);
    return stats;
}

static void count_rows(session *s, const char *name)
{
    bench_disk_print(s->options, name, "rows", COUNTED, (double)count_reads(s, s->pack, 1).reads,
                     "reads");
}

static void bench_pages(session *s, const char *name)
{
    double pages = (double)count_reads(s, s->pack, 1).bytes_read / BENCH_PAGE;
    bench_disk_print(s->options, name, "rows", COUNTED, pages, "pages");
}

static void bench_split(session *s, const char *name)
{
    double split = (double)count_reads(s, s->source, 1).reads;
    bench_disk_print(s->options, name, "reads", split / (double)count_reads(s, s->pack, 1).reads, 2,
                     "2 for each of a pack");
}

static void bench_bundles(session *s, const char *name)
{
    double reads = (double)count_reads(s, s->pack, HEADS).reads;
    bench_disk_print(s->options, name, "rows", COUNTED * HEADS, HEADS * reads, "8 for each read");
}

/* ---- hot n-grams ---- */

static void bench_hot(session *s, const char *name)
{
    enum { ROUNDS = 40 };
    const embla_tickets_options options = {.hot_bytes = 4 << 20,
                                           .hot_rows_per_ngram = HEADS,
                                           .hot_rows = s->ngrams,
                                           .hot_count = (size_t)STEPS * STEP};
    embla_tickets *tickets = NULL;
    embla_tickets_info stats = {0};
    double best = 1e9;
    if (embla_tickets_new(s->pack, &options, &tickets) != EMBLA_OK) {
        s->failed = true;
        return;
    }
    for (size_t round = 0; round < ROUNDS; round++) {
        double start = bench_now();
        for (size_t i = 0; i < STEPS; i++) read_rows(s, tickets, s->ngrams + i * STEP, STEP);
        double took = bench_now() - start;
        if (took < best) best = took;
    }
    if (embla_tickets_describe(tickets, &stats) != EMBLA_OK || stats.reads > 0) s->failed = true;
    embla_tickets_free(tickets);
    bench_disk_print(s->options, name, "Mrows/s", STEPS * STEP / best / 1e6, 1 / 0.15,
                     "150 ns a row");
}

static const struct {
    const char *name;
    void (*run)(session *s, const char *name);
} all_cases[] = {{"pack/rows", count_rows},
                 {"pack/pages", bench_pages},
                 {"pack/split", bench_split},
                 {"bundle/rows", bench_bundles},
                 {"hot/ngram", bench_hot}};

int bench_disk_pack(bench_cases *cases)
{
    session s = {.options = cases->options};
    int exit_code = 0;
    for (size_t i = 0; i < sizeof all_cases / sizeof all_cases[0] && exit_code == 0; i++) {
        const char *name = all_cases[i].name;
        if (!bench_wants(cases, name, true)) continue;
        s.failed = !open_all(&s);
        if (!s.failed) all_cases[i].run(&s, name);
        if (s.failed) s.options->complain("bench disk: %s: %s", name, embla_error());
        if (s.failed) exit_code = 1;
    }
    close_all(&s);
    return exit_code;
}
