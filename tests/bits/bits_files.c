/* SPDX-License-Identifier: Apache-2.0 */
/* Files: a table with words in every format that is written, a model with its tables in every
 * dtype, and what is read from them again. */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "bits.h"
#include "embla_lab.h"

enum { ROWS = 50, DIM = 64 };

/* A file of word vectors: words of two bytes. */
static void write_source(void)
{
    float *numbers = bits_numbers(111, ROWS * DIM);
    FILE *file = fopen(bits_path("source.vec"), "wb");
    if (!file) exit(1);
    fprintf(file, "%d %d\n", ROWS, DIM);
    for (int r = 0; r < ROWS; r++) {
        fprintf(file, "%c%c", 'a' + r % 26, 'a' + r / 26);
        for (int i = 0; i < DIM; i++) fprintf(file, " %.9g", (double)numbers[r * DIM + i]);
        fputc('\n', file);
    }
    fclose(file);
    free(numbers);
}

/* The rows and words of a file, as they are read. */
static void note_read(const char *file, const char *name)
{
    embla_checkpoint *checkpoint = NULL;
    embla_table *table = NULL;
    embla_vocab *vocab = NULL;
    size_t count;
    OK(embla_checkpoint_open(bits_path(file), NULL, &checkpoint));
    OK(embla_table_open(checkpoint, NULL, NULL, &table));
    float *out = bits_room(ROWS * DIM * sizeof *out);
    for (int32_t r = 0; r < ROWS; r++) OK(embla_lookup(table, &r, 1, NULL, out + r * DIM));
    bits_note_f32(out, ROWS * DIM, "file.%s.rows", name);
    OK(embla_vocab_open(checkpoint, &vocab));
    const embla_word *words = embla_vocab_words(vocab, &count);
    char text[8 * ROWS] = {0};
    for (size_t i = 0, used = 0; i < count && used + words[i].length < sizeof text; i++) {
        memcpy(text + used, words[i].bytes, words[i].length);
        used += words[i].length;
    }
    bits_note(text, sizeof text, "file.%s.words", name);
    free(out);
    embla_vocab_free(vocab);
    embla_table_free(table);
    embla_checkpoint_free(checkpoint);
}

static void note_format(const embla_checkpoint *source, const char *format)
{
    const embla_convert_options options = {.to = format, .overwrite = true};
    embla_account *account = NULL;
    if (embla_convert(source, bits_path("out"), &options, &account) != EMBLA_OK) return;
    embla_account_free(account);
    bits_note_file("out", "file.%s", format);
    note_read("out", format);
    remove(bits_path("out"));
    remove(bits_path("out.vocab.txt"));
}

static void note_dtype(const embla_checkpoint *source, embla_dtype dtype, const char *format)
{
    const embla_convert_options options = {.to = format, .dtype = dtype, .overwrite = true};
    const char *name = embla_dtype_name(dtype);
    embla_account *account = NULL;
    size_t count;
    if (embla_convert(source, bits_path("out"), &options, &account) != EMBLA_OK) return;
    const embla_account_line *line = embla_account_lines(account, &count);
    const double figures[] = {(double)line->rows_same, (double)line->rows_rounded,
                              line->difference};
    bits_note_file("out", "file.%s.%s", format, name);
    bits_note_f64(figures, COUNT_OF(figures), "file.%s.%s.account", format, name);
    embla_account_free(account);
    remove(bits_path("out"));
    remove(bits_path("out.vocab.txt"));
}

void bits_files(void)
{
    embla_checkpoint *source = NULL;
    write_source();
    OK(embla_checkpoint_open(bits_path("source.vec"), NULL, &source));
    for (size_t i = 0; embla_convert_format_name(i); i++)
        note_format(source, embla_convert_format_name(i));
    for (int dtype = EMBLA_F32; dtype <= EMBLA_F4_E2M1; dtype++)
        note_dtype(source, (embla_dtype)dtype, dtype < EMBLA_Q8_0 ? "safetensors" : "gguf");
    embla_checkpoint_free(source);
    remove(bits_path("source.vec"));
}
