/* SPDX-License-Identifier: Apache-2.0 */
/* Prints the results of the whole library as checksums, a line for each. The list bits.txt has the
 * same lines on every machine: docs/numerics.md says what is promised, and what is not in the list.
 *
 *   bits FOLDER THREADS [KERNELS]
 *
 * FOLDER exists and is empty; files are made there. With KERNELS, the name of a kernel set, the
 * program ends with 77 if that set is not in use.
 */
#include "bits.h"

#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/checksum.h"
#include "base/hash.h"

int bits_threads;
static const char *folder;

void bits_require(embla_status status, const char *call)
{
    if (status == EMBLA_OK) return;
    fprintf(stderr, "bits: %s: %s: %s\n", call, embla_status_name(status), embla_error());
    exit(1);
}

void *bits_room(size_t bytes)
{
    void *room = calloc(bytes + 1, 1);
    if (room) return room;
    fprintf(stderr, "bits: no memory for %zu bytes\n", bytes);
    exit(1);
}

/* ---- files ---- */

const char *bits_path(const char *name)
{
    static char paths[8][4096];
    static size_t next;
    char *path = paths[next++ % 8];
    (void)snprintf(path, sizeof paths[0], "%s/%s", folder, name);
    return path;
}

static FILE *open_or_end(const char *name, const char *mode)
{
    FILE *file = fopen(bits_path(name), mode);
    if (file) return file;
    fprintf(stderr, "bits: %s cannot be opened\n", bits_path(name));
    exit(1);
}

void bits_write_text(const char *name, const char *text)
{
    FILE *file = open_or_end(name, "wb");
    size_t length = strlen(text);
    bool written = fwrite(text, 1, length, file) == length;
    if (fclose(file) == 0 && written) return;
    fprintf(stderr, "bits: %s cannot be written\n", bits_path(name));
    exit(1);
}

/* ---- notes ---- */

static void note(embla_checksum_state *state, const char *format, va_list arguments)
{
    embla_checksum sum = embla_checksum_end(state);
    (void)vprintf(format, arguments);
    printf(" %016" PRIx64 "\n", sum.low);
}

/* Adds numbers of `size` bytes to a checksum, the lowest byte of each first. */
static void add_numbers(embla_checksum_state *state, const void *numbers, size_t size, size_t count)
{
    const unsigned char *from = numbers;
    for (size_t i = 0; i < count; i++, from += size) {
        uint64_t bits = 0;
        unsigned char bytes[8];
        uint32_t low = 0;
        if (size == 8) memcpy(&bits, from, 8);
        if (size == 4) memcpy(&low, from, 4), bits = low;
        for (size_t b = 0; b < size; b++) bytes[b] = (unsigned char)(bits >> 8 * b);
        embla_checksum_add(state, bytes, size);
    }
}

#define NOTE(add)                                                                                  \
    embla_checksum_state state;                                                                    \
    va_list arguments;                                                                             \
    embla_checksum_begin(&state);                                                                  \
    add;                                                                                           \
    va_start(arguments, format);                                                                   \
    note(&state, format, arguments);                                                               \
    va_end(arguments)

void bits_note(const void *bytes, size_t count, const char *format, ...)
{
    NOTE(embla_checksum_add(&state, bytes, count));
}

void bits_note_f32(const float *x, size_t count, const char *format, ...)
{
    NOTE(add_numbers(&state, x, 4, count));
}

void bits_note_f64(const double *x, size_t count, const char *format, ...)
{
    NOTE(add_numbers(&state, x, 8, count));
}

void bits_note_i32(const int32_t *x, size_t count, const char *format, ...)
{
    NOTE(add_numbers(&state, x, 4, count));
}

void bits_note_i64(const int64_t *x, size_t count, const char *format, ...)
{
    NOTE(add_numbers(&state, x, 8, count));
}

static void add_file(embla_checksum_state *state, const char *name)
{
    static unsigned char piece[65536];
    FILE *file = open_or_end(name, "rb");
    for (size_t got; (got = fread(piece, 1, sizeof piece, file)) > 0;)
        embla_checksum_add(state, piece, got);
    fclose(file);
}

void bits_note_file(const char *name, const char *format, ...)
{
    NOTE(add_file(&state, name));
}

/* ---- inputs ---- */

uint64_t bits_below(uint64_t *seed, uint64_t limit)
{
    *seed += EMBLA_GOLDEN;
    return embla_mix64(*seed) % limit;
}

float bits_unit(uint64_t *seed)
{
    return (float)((double)bits_below(seed, 1u << 24) * 0x1p-23 - 1.0);
}

float *bits_numbers(uint64_t seed, size_t n)
{
    float *out = bits_room(n * sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = bits_unit(&seed) / (float)(1u << bits_below(&seed, 12));
    return out;
}

int32_t *bits_tokens(uint64_t seed, size_t n, int64_t limit)
{
    int32_t *out = bits_room(n * sizeof *out);
    for (size_t i = 0; i < n; i++) out[i] = (int32_t)bits_below(&seed, (uint64_t)limit);
    return out;
}

static float scale_of(embla_dtype dtype)
{
    bool scaled = dtype == EMBLA_F8_E4M3 || dtype == EMBLA_F8_E5M2 || dtype == EMBLA_I8;
    return dtype == EMBLA_F4_E2M1 ? 0.1f : scaled ? 0.0071f : 0.0f;
}

embla_table *bits_table(embla_dtype dtype, int64_t rows, size_t dim, uint64_t seed)
{
    embla_table_options options = {.scale = scale_of(dtype)};
    embla_table *table = NULL;
    float *numbers = bits_numbers(seed, (size_t)rows * dim);
    OK(embla_table_new(dtype, rows, dim, &options, &table));
    OK(embla_table_write(table, 0, (size_t)rows, numbers));
    free(numbers);
    return table;
}

char *bits_text(uint64_t seed, size_t words, size_t words_a_line)
{
    static const char *const parts[] = {"an", "ma", "le", "ri",        "o",  "ka", "el", "sa",
                                        "ni", "to", "ja", "b\xc3\xa9", "lu", "ne", "di", "ra"};
    char *text = bits_room(words * 16), *at = text;
    for (size_t w = 0; w < words; w++) {
        /* the product of two numbers below 16 makes small ones frequent */
        uint64_t word = bits_below(&seed, 16) * bits_below(&seed, 16);
        at += sprintf(at, "%s%s%s", parts[word % 16], parts[word / 16 % 16], word % 3 ? "" : "na");
        *at++ = (w + 1) % words_a_line ? ' ' : '\n';
    }
    *at = 0;
    return text;
}

/* ---- the program ---- */

int main(int argc, char **argv)
{
    if (argc < 3) {
        fprintf(stderr, "usage: bits FOLDER THREADS [KERNELS]\n");
        return 2;
    }
    folder = argv[1];
    bits_threads = atoi(argv[2]);
    if (argc > 3 && strcmp(argv[3], embla_kernels_name()) != 0) {
        printf("skipped: this CPU has no kernel set %s\n", argv[3]);
        return 77;
    }
    bits_rows();
    bits_positions();
    bits_learn();
    bits_models();
    bits_training();
    bits_near();
    bits_see();
    bits_tokenizers();
    bits_encoder();
    bits_words();
    bits_grams();
    bits_files();
    return 0;
}
