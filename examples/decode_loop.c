/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder that needs rows of a giant table, token after token. The rows are wanted at the second
 * layer; a ticket is submitted before the first, so the disk works while the layers compute. The
 * layers are simulated: each takes some milliseconds.
 *
 *   decode_loop                                    a small table; are all placements equal?
 *   decode_loop FILE [LAYERS [MS [TOKENS]]]        tokens per second of each placement
 *
 * FILE has rows of 160 bytes (Qwen's f8 rows), one after the other, and nothing else; any large
 * file will do. Defaults: 40 layers of 0.25 ms, 200 tokens.
 */
#include <embla_store.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

enum { DIM = 160, ORDERS = 3, HEADS = 8, COLUMNS = (ORDERS - 1) * HEADS, HISTORY = ORDERS - 1 };

typedef struct {
    const embla_ngram *ngram;
    int layers;
    double layer_seconds;
    size_t tokens;
    float vectors[COLUMNS * DIM];
    double sum; /* of the first numbers of all vectors: the same for each placement */
} decoder;

static void must(bool done)
{
    if (done) return;
    fprintf(stderr, "decode_loop: %s\n", *embla_error() ? embla_error() : "cannot use the file");
    exit(1);
}

static double now(void)
{
    struct timespec t;
    clock_gettime(CLOCK_MONOTONIC, &t);
    return (double)t.tv_sec + 1e-9 * (double)t.tv_nsec;
}

static void compute_layer(const decoder *d)
{
    double end = now() + d->layer_seconds;
    while (d->layer_seconds > 0 && now() < end) continue;
}

/* Decodes all tokens. With tickets, rows arrive during the first layer; without, the second layer
 * waits for a lookup; without a store, there are no rows at all. Returns seconds. */
static double decode(decoder *d, const embla_store *store, embla_tickets *tickets)
{
    int32_t history[HISTORY] = {-1, -1};
    uint64_t random = 42;
    double start = now();
    d->sum = 0;
    for (size_t t = 0; t < d->tokens; t++) {
        int64_t rows[COLUMNS];
        embla_ticket ticket = 0;
        random = random * 6364136223846793005u + 1442695040888963407u;
        int32_t token = (int32_t)(random >> 33) % 200000; /* no two n-grams are alike */
        const embla_ticket_request request = {.ngram = d->ngram,
                                              .tokens = &token,
                                              .length = 1,
                                              .history = history,
                                              .out = d->vectors};
        if (tickets) must(embla_ticket_submit(tickets, &request, &ticket) == EMBLA_OK);
        compute_layer(d); /* the first layer */
        if (tickets) {
            must(embla_ticket_wait(tickets, ticket) == EMBLA_OK);
        } else if (store) {
            const embla_ngram_options before = {.history = history};
            must(embla_ngram_rows(d->ngram, &token, 1, 1, &before, rows) == EMBLA_OK);
            must(embla_store_lookup(store, rows, COLUMNS, NULL, d->vectors) == EMBLA_OK);
        }
        for (int layer = 1; layer < d->layers; layer++) compute_layer(d);
        for (int c = 0; c < COLUMNS; c++) d->sum += (double)d->vectors[c * DIM];
        history[0] = history[1];
        history[1] = token;
    }
    return now() - start;
}

/* Decodes with one placement, without or with tickets, and prints a line. */
static double run(decoder *d, const char *path, int64_t rows, embla_placement place, bool with)
{
    const embla_row_format format = {.dim = DIM, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-8f};
    const embla_store_options options = {.placement = place};
    const embla_extent extent = {.file = path, .rows = rows};
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    must(embla_store_open_extents(&format, &extent, 1, &options, &store) == EMBLA_OK);
    if (with) must(embla_tickets_open(store, NULL, &tickets) == EMBLA_OK);
    double seconds = decode(d, store, tickets);
    printf("%-6s %-8s", embla_placement_name(place), with ? "tickets" : "lookup");
    embla_tickets_free(tickets);
    embla_store_free(store);
    return seconds;
}

/* Made-up rows for the small table. */
static void write_table(const char *path, int64_t rows)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL);
    for (int64_t i = 0; i < rows * DIM; i++) must(putc((int)(i * 7 % 61), file) != EOF);
    must(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    char folder[] = "/tmp/embla-decode-XXXXXX", small[64] = "";
    const char *path = argc > 1 ? argv[1] : small;
    struct stat file;
    decoder d = {.layers = argc > 2 ? atoi(argv[2]) : 40,
                 .layer_seconds = argc > 1 ? 1e-3 * (argc > 3 ? atof(argv[3]) : 0.25) : 0,
                 .tokens = argc > 4 ? (size_t)atol(argv[4]) : 200};
    if (argc == 1) {
        must(mkdtemp(folder) != NULL);
        snprintf(small, sizeof small, "%s/table", folder);
        write_table(small, 40000);
    }
    must(stat(path, &file) == 0 && file.st_size / DIM >= 40000);
    int64_t rows = file.st_size / DIM;
    embla_ngram *ngram = NULL; /* the sizes of heads are primes somewhat above base */
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 200000,
                                               .orders = ORDERS,
                                               .heads = HEADS,
                                               .base = rows / COLUMNS - 500,
                                               .seed = 1234,
                                               .eos = 2};
    must(embla_ngram_new(&parameters, &ngram) == EMBLA_OK);
    d.ngram = ngram;

    static const struct {
        embla_placement place;
        bool tickets;
    } ways[] = {{EMBLA_PLACEMENT_RAM, false},    {EMBLA_PLACEMENT_RAM, true},
                {EMBLA_PLACEMENT_DIRECT, true},  {EMBLA_PLACEMENT_DIRECT, false},
                {EMBLA_PLACEMENT_MAPPED, false}, {EMBLA_PLACEMENT_READ, false}};
    double bare = decode(&d, NULL, NULL), first = 0;
    if (argc > 1) printf("no rows          %8.1f tokens/s\n", (double)d.tokens / bare);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        if (ways[i].place == EMBLA_PLACEMENT_RAM && file.st_size > INT64_C(6) << 30) continue;
        double seconds = run(&d, path, rows, ways[i].place, ways[i].tickets);
        if (argc > 1)
            printf(" %8.1f tokens/s, %.3f of no rows\n", (double)d.tokens / seconds,
                   bare / seconds);
        else
            printf("%s\n", i == 0 || d.sum == first ? "  sum of the first numbers: equal"
                                                    : "  different numbers");
        if (i == 0) first = d.sum;
    }
    embla_ngram_free(ngram);
    if (argc == 1) remove(small), rmdir(folder);
    return 0;
}
