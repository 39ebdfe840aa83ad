/* SPDX-License-Identifier: Apache-2.0 */
/* A server of rows that gets a new version of its table without a restart. It holds one half of the
 * rows; another rank would hold the rest. An event loop waits for the tickets of requests. When the
 * file of the table is replaced, the new version is opened and swapped in.
 */
#include <embla_store.h>
#include <poll.h>
#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

enum { DIM = 16, VOCAB = 6, TOKENS = 3, COLUMNS = 4, CHUNKS = 4 };

static const embla_row_format format = {.dim = DIM, .dtype = EMBLA_F8_E4M3};
static const int32_t folded[VOCAB] = {0, 1, 1, 2, 3, 3}; /* "The" and "the" count as one */
static size_t row_bytes;

static void must(bool done)
{
    if (done) return;
    fprintf(stderr, "reload: %s\n", *embla_error() ? embla_error() : "cannot write the table");
    exit(1);
}

/* Makes the rows of a version, and puts them in place by renaming their file. */
static unsigned char *write_table(const char *path, int64_t rows, int version)
{
    char other[80];
    size_t pages = ((size_t)rows * row_bytes + 4095) / 4096;
    unsigned char *table = aligned_alloc(4096, pages * 4096); /* as devices want it */
    must(table != NULL);
    for (int64_t r = 0; r < rows; r++) {
        float numbers[DIM];
        for (int j = 0; j < DIM; j++) numbers[j] = (float)(r % 16 * version);
        must(embla_row_encode(&format, numbers, 1, table + (size_t)r * row_bytes) == EMBLA_OK);
    }
    snprintf(other, sizeof other, "%s.new", path);
    FILE *file = fopen(other, "wb");
    must(file && fwrite(table, row_bytes, (size_t)rows, file) == (size_t)rows);
    must(fclose(file) == 0 && rename(other, path) == 0);
    return table;
}

/* Opens this rank's half of the rows: the other half is zeros, for a sum over all ranks. */
static void open_half(const char *path, int64_t rows, embla_store **store, embla_tickets **tickets)
{
    const embla_store_engine_options half = {.first = 0, .end = rows / 2, .zeros = true};
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT, .engine = &half};
    const embla_tickets_options options = {.event = true, .hot_bytes = 1 << 16};
    const embla_extent extent = {.file = path, .rows = rows};
    must(embla_store_open_extents(&format, &extent, 1, &direct, store) == EMBLA_OK);
    must(embla_tickets_new(*store, &options, tickets) == EMBLA_OK);
}

/* One request: the rows of some tokens, from the version that is current now. */
static void serve(embla_swap *swap, const embla_ngram *ngram, float *out)
{
    static const int32_t tokens[TOKENS] = {2, 3, 5};
    const embla_swap_version *version = embla_swap_acquire(swap);
    const embla_ticket_request request = {
        .ngram = ngram, .tokens = tokens, .length = 3, .out = out};
    embla_ticket ticket = 0;
    bool done = false;
    must(embla_tickets_prefetch(version->tickets, &request) == EMBLA_OK); /* may do nothing */
    must(embla_ticket_submit(version->tickets, &request, &ticket) == EMBLA_OK);
    struct pollfd event = {.fd = embla_tickets_event(version->tickets), .events = POLLIN};
    while (!done) {
        must(poll(&event, 1, 10000) == 1); /* an event loop watches other things too */
        must(embla_ticket_done(version->tickets, ticket, &done) == EMBLA_OK);
    }
    must(embla_ticket_wait(version->tickets, ticket) == EMBLA_OK);
    embla_swap_release(swap, version);
}

int main(void)
{
    embla_ngram_parameters hash = {.kind = EMBLA_NGRAM_ENGRAM,
                                   .vocab = 4,
                                   .orders = 3,
                                   .rows_per_ngram = 2,
                                   .base = 100,
                                   .layer = 1};
    embla_fold *fold = NULL;
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    must(embla_fold_new(folded, VOCAB, &fold) == EMBLA_OK);
    hash.fold = fold;
    must(embla_ngram_new(&hash, &ngram) == EMBLA_OK);
    must(embla_ngram_describe(ngram, &info) == EMBLA_OK);
    must(embla_row_bytes(&format, &row_bytes) == EMBLA_OK && info.rows_per_token == COLUMNS);

    char folder[] = "/tmp/embla-reload-XXXXXX", path[64];
    must(mkdtemp(folder) != NULL);
    snprintf(path, sizeof path, "%s/table", folder);
    free(write_table(path, info.rows, 1));
    embla_store *store = NULL, *memory = NULL;
    embla_tickets *tickets = NULL;
    embla_swap *swap = NULL;
    float got[TOKENS * COLUMNS * DIM], row[DIM];
    open_half(path, info.rows, &store, &tickets);
    must(embla_swap_new(store, tickets, &swap) == EMBLA_OK);
    serve(swap, ngram, got);
    printf("version 1: the first row is %g\n", (double)got[0]);

    unsigned char *table = write_table(path, info.rows, 2); /* somebody brings a new version */
    const embla_swap_version *current = embla_swap_acquire(swap);
    if (embla_store_check(current->store) == EMBLA_ERR_IO) printf("the file was replaced\n");
    embla_swap_release(swap, current);
    open_half(path, info.rows, &store, &tickets);
    must(embla_swap_replace(swap, store, tickets) ==
         EMBLA_OK); /* the old one ends with its users */
    serve(swap, ngram, got);
    printf("version 2: the first row is %g\n", (double)got[0]);

    /* The same rows in the caller's memory: a device registers them chunk by chunk. */
    embla_chunk chunks[CHUNKS];
    size_t count = 0;
    must(embla_store_view(&format, info.rows, table, (size_t)info.rows * row_bytes, 0, &memory) ==
         EMBLA_OK);
    must(embla_store_chunks(memory, 4096, CHUNKS, chunks, &count) == EMBLA_OK);
    must(embla_row_decode(&format, (char *)chunks[0].memory + 5 * row_bytes, 1, row) == EMBLA_OK);
    printf("%zu chunks, row 5 is %g\n", count, (double)row[0]);
    embla_store_free(memory), embla_swap_free(swap);
    embla_ngram_free(ngram), embla_fold_free(fold);
    free(table), remove(path), rmdir(folder);
    return 0;
}
