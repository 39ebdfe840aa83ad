/* SPDX-License-Identifier: Apache-2.0 */
/* An engine that vendors the small cut: tokens to rows of a table in a file, read from disk. Prints
 * the sum of the vectors; exits 1 if a vector is not the row that was written.
 *   usage: small_engine FILE    (a file that it may write)
 */
#include "embla_small.h"

#include <stdio.h>

enum { DIM = 32, TOKENS = 5, MOST = 64 };

static float number(int64_t row, int column)
{
    return (float)((row * 3 + column) % 15 - 7) / 8.0f; /* exact in f8_e4m3 */
}

static int check(int done, const char *what)
{
    if (!done) fprintf(stderr, "%s: %s\n", what, embla_error());
    return done;
}

static int write_table(const char *path, const embla_row_format *format, int64_t rows)
{
    FILE *file = fopen(path, "wb");
    int done = file != NULL;
    for (int64_t r = 0; done && r < rows; r++) {
        float numbers[DIM];
        char row[DIM];
        for (int j = 0; j < DIM; j++) numbers[j] = number(r, j);
        done = embla_row_encode(format, numbers, 1, row) == EMBLA_OK &&
               fwrite(row, 1, sizeof row, file) == sizeof row;
    }
    return file && fclose(file) == 0 && done;
}

static int read_rows(const embla_row_format *format, const char *path, const int64_t *rows,
                     size_t count, int64_t table_rows, embla_placement placement, double *sum)
{
    static float vectors[MOST][DIM];
    const embla_extent extent = {.file = path, .rows = table_rows};
    const embla_store_options where = {.placement = placement};
    embla_store *store = NULL;
    int done = check(embla_store_open_extents(format, &extent, 1, &where, &store) == EMBLA_OK &&
                         embla_store_lookup(store, rows, count, NULL, vectors) == EMBLA_OK,
                     path);
    embla_store_free(store);
    for (size_t i = 0; done && i < count; i++)
        for (int j = 0; j < DIM; j++) {
            done &= vectors[i][j] == number(rows[i], j);
            *sum += (double)vectors[i][j];
        }
    return done;
}

int main(int argc, char **argv)
{
    const int32_t tokens[TOKENS] = {17, 4, 256, 17, 4};
    embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN, .seed = 1234, .eos = 2};
    const embla_row_format format = {.dim = DIM, .dtype = EMBLA_F8_E4M3};
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    int64_t rows[MOST];
    double sum = 0.0;
    parameters.vocab = 1000, parameters.orders = 3, parameters.rows_per_ngram = 4,
    parameters.base = 500;
    if (argc != 2 || !check(embla_ngram_new(&parameters, &ngram) == EMBLA_OK, "hasher")) return 1;
    if (!check(embla_ngram_describe(ngram, &info) == EMBLA_OK, "description")) return 1;
    size_t count = TOKENS * info.rows_per_token;
    int done = count <= MOST &&
               check(embla_ngram_rows(ngram, tokens, 1, TOKENS, NULL, rows) == EMBLA_OK, "rows") &&
               write_table(argv[1], &format, info.rows) &&
               read_rows(&format, argv[1], rows, count, info.rows, EMBLA_PLACEMENT_READ, &sum) &&
               read_rows(&format, argv[1], rows, count, info.rows, EMBLA_PLACEMENT_DIRECT, &sum);
    embla_ngram_free(ngram);
    remove(argv[1]);
    printf("%zu rows of %d tokens, sum %g\n", count, TOKENS, sum);
    return !done;
}
