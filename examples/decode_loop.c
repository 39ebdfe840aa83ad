/* SPDX-License-Identifier: Apache-2.0 */
/* A decoder that needs rows of a giant table, token after token. The rows are wanted at the second
 * layer; a ticket is submitted before the first, so the disk works while the layers compute. The
 * layers are simulated: each takes some milliseconds.
 *
 *   decode_loop         a small table; are all placements equal?
 *   decode_loop FILE [LAYERS [MS [TOKENS [PACK [PLACEMENT]]]]]
 *                       tokens per second of each placement, or of one
 *
 * FILE has rows of 160 bytes (Qwen's f8 rows), one after the other, and nothing else; any large
 * file will do. Defaults: 40 layers of 0.25 ms, 200 tokens. With PACK, FILE is packed to that file
 * if it does not exist ("" means none); it has bundles for the n-grams of every second token. ram
 * and shared are left out if the table is larger than 4/5 of the memory that is available.
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

static int32_t next_token(uint64_t *random)
{
    *random = *random * 6364136223846793005u + 1442695040888963407u;
    return (int32_t)(*random >> 33) % 200000; /* no two n-grams are alike */
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
        int32_t token = next_token(&random);
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

static const embla_row_format format = {.dim = DIM, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-8f};

typedef struct {
    embla_placement place;
    bool tickets, packed;
} way;

/* Decodes in one way, and prints the beginning of a line. 0 means that /dev/shm is too small. */
static double run(decoder *d, const char *path, int64_t rows, way w)
{
    const embla_store_options options = {.placement = w.place};
    const embla_extent extent = {.file = path, .rows = rows};
    embla_checkpoint *pack = NULL;
    embla_store *store = NULL;
    embla_tickets *tickets = NULL;
    if (w.packed) {
        must(embla_checkpoint_open(path, NULL, &pack) == EMBLA_OK);
        must(embla_store_open(pack, NULL, -1, &options, &store) == EMBLA_OK);
    } else {
        embla_status status = embla_store_open_extents(&format, &extent, 1, &options, &store);
        if (status != EMBLA_OK && w.place == EMBLA_PLACEMENT_SHARED) return 0; /* no room */
        must(status == EMBLA_OK);
    }
    if (w.tickets) must(embla_tickets_new(store, NULL, &tickets) == EMBLA_OK);
    double seconds = decode(d, store, tickets);
    printf("%-6s %-8s", w.packed ? "packed" : embla_placement_name(w.place),
           w.tickets ? "tickets" : "lookup");
    if (w.place == EMBLA_PLACEMENT_SHARED) (void)!embla_store_unshare(store);
    embla_tickets_free(tickets);
    embla_store_free(store);
    embla_checkpoint_free(pack);
    return seconds;
}

/* Packs the table, with bundles for the n-grams of every second token. */
static void make_pack(const decoder *d, const char *path, int64_t rows, const char *pack)
{
    const embla_store_options direct = {.placement = EMBLA_PLACEMENT_DIRECT};
    const embla_extent extent = {.file = path, .rows = rows};
    int64_t *ngrams = malloc((d->tokens / 2 + 1) * COLUMNS * sizeof *ngrams);
    int32_t history[HISTORY] = {-1, -1};
    uint64_t random = 42;
    embla_store *store = NULL;
    must(ngrams != NULL);
    for (size_t t = 0; t < d->tokens; t++) {
        int32_t token = next_token(&random);
        const embla_ngram_options before = {.history = history};
        int64_t *at = ngrams + t / 2 * COLUMNS;
        if (t % 2) must(embla_ngram_rows(d->ngram, &token, 1, 1, &before, at) == EMBLA_OK);
        history[0] = history[1];
        history[1] = token;
    }
    const embla_pack_options how = {
        .rows_per_ngram = HEADS, .bundles = ngrams, .bundle_count = d->tokens / 2 * (ORDERS - 1)};
    must(embla_store_open_extents(&format, &extent, 1, &direct, &store) == EMBLA_OK);
    must(embla_pack_write(store, pack, &how, NULL) == EMBLA_OK);
    embla_store_free(store);
    free(ngrams);
}

/* Bytes of memory that programs could still use. */
static int64_t memory_left(void)
{
    long long kib = 0;
    char line[128];
    FILE *file = fopen("/proc/meminfo", "r");
    while (file && fgets(line, sizeof line, file))
        if (sscanf(line, "MemAvailable: %lld", &kib) == 1) break;
    if (file) fclose(file);
    return (int64_t)kib * 1024;
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
    char folder[] = "/tmp/embla-decode-XXXXXX", small[64] = "", packed[64] = "";
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
    must(stat(path, &file) == 0);
    if (file.st_size / DIM < 40000) {
        fprintf(stderr,
                "decode_loop: %s has %lld bytes; at least 40,000 rows of %d bytes are needed\n",
                path, (long long)file.st_size, DIM);
        return 1;
    }
    int64_t rows = file.st_size / DIM;
    embla_ngram *ngram = NULL; /* the sizes of heads are primes somewhat above base */
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 200000,
                                               .orders = ORDERS,
                                               .rows_per_ngram = HEADS,
                                               .base = rows / COLUMNS - 500,
                                               .seed = 1234,
                                               .eos = 2};
    must(embla_ngram_new(&parameters, &ngram) == EMBLA_OK);
    d.ngram = ngram;

    const char *pack = argc > 5 ? argv[5] : packed;
    if (argc == 1) snprintf(packed, sizeof packed, "%s/packed", folder);
    if (*pack && access(pack, F_OK) != 0) make_pack(&d, path, rows, pack);
    static const way ways[] = {
        {EMBLA_PLACEMENT_RAM, false, false},    {EMBLA_PLACEMENT_RAM, true, false},
        {EMBLA_PLACEMENT_SHARED, true, false},  {EMBLA_PLACEMENT_DIRECT, true, false},
        {EMBLA_PLACEMENT_DIRECT, true, true},   {EMBLA_PLACEMENT_DIRECT, false, false},
        {EMBLA_PLACEMENT_MAPPED, false, false}, {EMBLA_PLACEMENT_READ, false, false}};
    double bare = decode(&d, NULL, NULL), first = 0;
    if (argc > 1) printf("no rows          %8.1f tokens/s\n", (double)d.tokens / bare);
    for (size_t i = 0; i < sizeof ways / sizeof ways[0]; i++) {
        bool held = ways[i].place == EMBLA_PLACEMENT_RAM || ways[i].place == EMBLA_PLACEMENT_SHARED;
        if (held && file.st_size / 4 * 5 > memory_left()) continue;
        if (ways[i].packed && !*pack) continue;
        if (argc > 6 && strcmp(argv[6], embla_placement_name(ways[i].place)) != 0) continue;
        double seconds = run(&d, ways[i].packed ? pack : path, rows, ways[i]);
        if (!(seconds > 0)) continue;
        if (argc > 1)
            printf(" %8.1f tokens/s, %.3f of no rows\n", (double)d.tokens / seconds,
                   bare / seconds);
        else
            printf("%s\n", i == 0 || d.sum == first ? "  sum of the first numbers: equal"
                                                    : "  different numbers");
        fflush(stdout);
        if (i == 0) first = d.sum;
    }
    embla_ngram_free(ngram);
    if (argc == 1) remove(small), remove(packed), rmdir(folder);
    return 0;
}
