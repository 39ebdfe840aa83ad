/* SPDX-License-Identifier: Apache-2.0 */
/* A small model of a giant table. Row numbers are hashes of the last two and the last three
 * tokens, as in Qwen's per-layer table. The rows come from a file, through the placement that the
 * argument names. Each different row is fetched once.
 *
 *   giant [ram | shared | mapped | read]     default: ram
 */
#include <embla_store.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

enum { DIM = 16, TOKENS = 6, MOST = 256 };

static void must(bool done)
{
    if (done) return;
    fprintf(stderr, "giant: %s\n", *embla_error() ? embla_error() : "no such placement or file");
    exit(1);
}

/* Writes the file of the table: made-up rows of f8, one after the other. */
static void write_table(const char *path, const embla_row_format *format, int64_t rows)
{
    FILE *file = fopen(path, "wb");
    must(file != NULL);
    for (int64_t r = 0; r < rows; r++) {
        float numbers[DIM];
        char row[DIM];
        for (int j = 0; j < DIM; j++) numbers[j] = (float)((r * 7 + j * 5) % 31 - 15) / 64.0f;
        must(embla_row_encode(format, numbers, 1, row) == EMBLA_OK);
        must(fwrite(row, 1, sizeof row, file) == sizeof row);
    }
    must(fclose(file) == 0);
}

int main(int argc, char **argv)
{
    const char *place = argc > 1 ? argv[1] : "ram";
    const int32_t tokens[TOKENS] = {17, 4, 256, 17, 4, 256}; /* the second half repeats n-grams */
    embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN, .seed = 1234, .eos = 2};
    parameters.vocab = 1000; /* Qwen has 248,320 tokens, 8 heads, primes above 20,000,000 */
    parameters.orders = 3, parameters.rows_per_ngram = 4, parameters.base = 20000;
    const embla_row_format format = {.dim = DIM, .dtype = EMBLA_F8_E4M3, .scale = 0x1p-8f};
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    must(embla_ngram_new(&parameters, &ngram) == EMBLA_OK); /* or embla_ngram_open */
    must(embla_ngram_describe(ngram, &info) == EMBLA_OK);
    char folder[] = "/tmp/embla-giant-XXXXXX", path[64];
    embla_store_options where = {.shared_folder = folder};
    while (embla_placement_name(where.placement) &&
           strcmp(embla_placement_name(where.placement), place) != 0)
        where.placement++;
    must(embla_placement_name(where.placement) && mkdtemp(folder));
    snprintf(path, sizeof path, "%s/table", folder);
    write_table(path, &format, info.rows);

    const embla_extent extent = {.file = path, .rows = info.rows};
    embla_store *store = NULL;
    embla_batch *batch = NULL;
    must(embla_store_open_extents(&format, &extent, 1, &where, &store) == EMBLA_OK);
    must(embla_batch_new(store, MOST, &batch) == EMBLA_OK);
    must(embla_batch_verify(batch, 4) == EMBLA_OK); /* compare one row in four with the file */
    int64_t rows[MOST];
    float vectors[MOST][DIM];
    const embla_store_lookup_options options = {.rows_per_token = info.rows_per_token};
    must(embla_ngram_rows(ngram, tokens, 1, TOKENS, NULL, rows) == EMBLA_OK);
    must(embla_batch_lookup(batch, rows, TOKENS * info.rows_per_token, &options, vectors) ==
         EMBLA_OK);
    printf("%" PRId64 " rows of %d numbers, %s; a token has %zu of them\n", info.rows, DIM, place,
           info.rows_per_token);
    for (size_t t = 0; t < TOKENS; t++) {
        printf("token %3d  rows", (int)tokens[t]);
        for (size_t c = 0; c < info.rows_per_token; c++)
            printf(" %6" PRId64, rows[t * info.rows_per_token + c]);
        printf("  first %7.4f ..\n", (double)vectors[t * info.rows_per_token][0]);
    }
    embla_batch_info stats;
    must(embla_batch_describe(batch, &stats) == EMBLA_OK);
    printf("rows: %d asked, %d fetched, %d verified\n", (int)stats.asked, (int)stats.unique,
           (int)stats.verified);
    printf("bytes: %d touched, %d useful\n", (int)stats.bytes_read, (int)stats.bytes_useful);
    embla_store_info found;
    if (embla_store_describe(store, &found) == EMBLA_OK && found.shared) remove(found.shared);
    embla_batch_free(batch);
    embla_store_free(store);
    embla_ngram_free(ngram);
    remove(path);
    rmdir(folder);
    return 0;
}
