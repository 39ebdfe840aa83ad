/* SPDX-License-Identifier: Apache-2.0 */
/* Giant tables: row numbers of n-grams by every rule, and rows of stores in every form. */
#include <stdio.h>
#include <stdlib.h>

#include "bits.h"
#include "embla_store.h"

enum { BATCH = 3, LENGTH = 60 };

/* ---- n-grams ---- */

static void note_hasher(const embla_ngram_parameters *parameters, const char *name)
{
    embla_ngram *ngram = NULL;
    embla_ngram_info info;
    OK(embla_ngram_new(parameters, &ngram));
    OK(embla_ngram_describe(ngram, &info));
    int32_t *tokens = bits_tokens(101, BATCH * LENGTH, info.tokens);
    int32_t *history = bits_tokens(102, BATCH * 8, info.tokens);
    uint8_t barrier[BATCH * LENGTH] = {[17] = 1, [100] = 1};
    int64_t *rows = bits_room(BATCH * LENGTH * info.rows_per_token * sizeof *rows);
    const embla_ngram_options options = {
        .history = history, .barrier = barrier, .threads = bits_threads};
    for (size_t i = 20; i < 50; i++) tokens[i] = 1 + (int32_t)(i % 3); /* repeated, and EOS */
    OK(embla_ngram_rows(ngram, tokens, BATCH, LENGTH, &options, rows));
    bits_note_i64(rows, BATCH * LENGTH * info.rows_per_token, "ngram.%s.rows", name);
    if (info.multipliers)
        bits_note_i64(info.multipliers, (size_t)info.orders, "ngram.%s.multipliers", name);
    if (info.sizes) bits_note_i64(info.sizes, info.rows_per_token, "ngram.%s.sizes", name);
    free(rows);
    free(history);
    free(tokens);
    embla_ngram_free(ngram);
}

static void note_hashers(void)
{
    const int32_t layers[] = {2, 5, 9};
    const embla_ngram_parameters kinds[] = {
        {.kind = EMBLA_NGRAM_IDENTITY, .vocab = 1000, .multiple = 64},
        {.kind = EMBLA_NGRAM_ENGRAM,
         .vocab = 5000,
         .orders = 3,
         .rows_per_ngram = 4,
         .base = 70000,
         .layers = layers,
         .layer_count = 3,
         .layer = 5,
         .pad = 2},
        {.kind = EMBLA_NGRAM_QWEN,
         .vocab = 5000,
         .orders = 3,
         .rows_per_ngram = 8,
         .base = 20000,
         .seed = 1234,
         .eos = 2},
        {.kind = EMBLA_NGRAM_LONGCAT,
         .vocab = 5000,
         .orders = 4,
         .rows_per_ngram = 4,
         .ratio = 78.3,
         .eos = 2},
    };
    static const char *const names[] = {"identity", "engram", "qwen", "longcat"};
    for (size_t i = 0; i < COUNT_OF(kinds); i++) note_hasher(&kinds[i], names[i]);
}

static void note_frequent(void)
{
    const embla_ngram_parameters parameters = {.kind = EMBLA_NGRAM_QWEN,
                                               .vocab = 30,
                                               .orders = 3,
                                               .rows_per_ngram = 4,
                                               .base = 2000,
                                               .seed = 1234,
                                               .eos = 2};
    int32_t *tokens = bits_tokens(103, 4000, 30);
    embla_ngram *ngram = NULL;
    embla_frequent *frequent = NULL;
    size_t count, columns;
    OK(embla_ngram_new(&parameters, &ngram));
    const embla_frequent_options options = {
        .ngram = ngram, .tokens = tokens, .length = 4000, .max_ngrams = 200};
    OK(embla_frequent_new(&options, &frequent));
    const int64_t *rows = embla_frequent_rows(frequent, &count, &columns);
    bits_note_i64(rows, count * columns, "ngram.frequent");
    embla_frequent_free(frequent);
    embla_ngram_free(ngram);
    free(tokens);
}

static void note_fold(void)
{
    enum { TOKENS = 300 };
    int32_t folded[TOKENS], next = 0;
    uint64_t seed = 104;
    embla_fold *fold = NULL;
    char checksum[33];
    for (int i = 0; i < TOKENS; i++)
        folded[i] = bits_below(&seed, 4) == 0 && next > 0
                        ? (int32_t)bits_below(&seed, (uint64_t)next)
                        : next++;
    OK(embla_fold_new(folded, TOKENS, &fold));
    embla_fold_checksum(fold, checksum);
    bits_note(checksum, 32, "ngram.fold");
    embla_fold_free(fold);
}

/* ---- stores ---- */

enum { ROWS = 700, DIM = 160, ASKED = 240 };

/* A file of rows of this format. */
static size_t write_rows(const embla_row_format *format)
{
    size_t bytes;
    float *numbers = bits_numbers(105, ROWS * DIM);
    OK(embla_row_bytes(format, &bytes));
    unsigned char *rows = bits_room(ROWS * bytes);
    OK(embla_row_encode(format, numbers, ROWS, rows));
    FILE *file = fopen(bits_path("rows"), "wb");
    if (!file || fwrite(rows, bytes, ROWS, file) != ROWS) exit(1);
    fclose(file);
    free(rows);
    free(numbers);
    return bytes;
}

static void note_pack(const embla_store *store, const int64_t *rows, const char *name)
{
    const embla_pack_options options = {
        .name = "bits", .rows_per_ngram = 4, .bundles = rows, .bundle_count = 20};
    embla_checkpoint *pack = NULL;
    embla_pack_report report;
    OK(embla_pack_write(store, bits_path("rows.pack"), &options, NULL));
    bits_note_file("rows.pack", "store.%s.pack", name);
    OK(embla_checkpoint_open(bits_path("rows.pack"), NULL, &pack));
    OK(embla_pack_verify(pack, store, NULL, &report));
    const int64_t counts[] = {report.rows, report.different, report.bundles, report.bundles_wrong};
    bits_note_i64(counts, COUNT_OF(counts), "store.%s.pack.verified", name);
    embla_checkpoint_free(pack);
    remove(bits_path("rows.pack"));
}

static void note_store(embla_dtype dtype, embla_scales scales, const char *name)
{
    const embla_row_format format = {
        .dim = DIM, .dtype = dtype, .scales = scales, .scale = scales ? 0.3f : 0};
    const embla_store_options placement = {.placement = EMBLA_PLACEMENT_READ};
    size_t bytes = write_rows(&format);
    const embla_extent extent = {.file = bits_path("rows"), .rows = ROWS};
    embla_store *store = NULL;
    uint64_t seed = 106;
    int64_t rows[ASKED];
    float *out = bits_room(ASKED * (DIM * 4 + bytes));
    for (size_t i = 0; i < ASKED; i++) rows[i] = (int64_t)bits_below(&seed, ROWS);
    OK(embla_store_open_extents(&format, &extent, 1, &placement, &store));
    embla_store_lookup_options options = {.rows_per_token = 4, .threads = bits_threads};
    OK(embla_store_lookup(store, rows, ASKED, &options, out));
    bits_note_f32(out, ASKED * DIM, "store.%s.rows", name);
    options.scale = 0.7f;
    options.sum = true;
    OK(embla_store_lookup(store, rows, ASKED, &options, out));
    bits_note_f32(out, ASKED / 4 * DIM, "store.%s.sum", name);
    options.out_dtype = EMBLA_F16;
    OK(embla_store_lookup(store, rows, ASKED, &options, out));
    bits_note(out, ASKED / 4 * DIM * 2, "store.%s.sum.f16", name);
    options = (embla_store_lookup_options){.raw = true, .threads = bits_threads};
    OK(embla_store_lookup(store, rows, ASKED, &options, out));
    bits_note(out, ASKED * bytes, "store.%s.raw", name);
    note_pack(store, rows, name);
    embla_store_free(store);
    remove(bits_path("rows"));
    free(out);
}

void bits_grams(void)
{
    note_hashers();
    note_frequent();
    note_fold();
    note_store(EMBLA_BF16, EMBLA_SCALES_NONE, "bf16");
    note_store(EMBLA_F8_E4M3, EMBLA_SCALES_UE8M0_32, "f8_e4m3.ue8m0_32");
    note_store(EMBLA_F4_E2M1, EMBLA_SCALES_E4M3_16, "f4_e2m1.e4m3_16");
    note_store(EMBLA_Q8_0, EMBLA_SCALES_NONE, "q8_0");
}
