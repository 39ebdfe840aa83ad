/* SPDX-License-Identifier: Apache-2.0 */
/* Small checkpoints for the tests of conversion and of failure, written by hand: a
 * safetensors file of any tensors, and a model with tables, other tensors and words; and
 * what is asked of the files that are made of them.
 */
#ifndef EMBLA_TESTS_CONVERT_FILES_H
#define EMBLA_TESTS_CONVERT_FILES_H

#include "base/mem.h"
#include "embla_checkpoint.h"
#include "embla_lab.h"
#include "files/io.h"
#include "scratch.h"

typedef struct {
    const char *name, *type, *shape; /* "F32", "4,8" */
    const void *bytes;
    size_t count;
} sample_tensor;

/* A safetensors file; metadata is JSON of its own, NULL: none. */
static inline void sample_safetensors(const char *path, const char *metadata,
                                      const sample_tensor *tensors, size_t count)
{
    char header[8192];
    size_t used = 0, at = 0;
    unsigned char prefix[8] = {0};
    used += (size_t)snprintf(header, sizeof header, "{%s%s", metadata ? "\"__metadata__\":" : "",
                             metadata ? metadata : "");
    for (size_t i = 0; i < count; i++) {
        used += (size_t)snprintf(
            header + used, sizeof header - used,
            "%s\"%s\":{\"dtype\":\"%s\",\"shape\":[%s],\"data_offsets\":[%zu,%zu]}",
            i > 0 || metadata ? "," : "", tensors[i].name, tensors[i].type, tensors[i].shape, at,
            at + tensors[i].count);
        assert_true(used < sizeof header - 16);
        at += tensors[i].count;
    }
    header[used++] = '}';
    while (used % 8 != 0) header[used++] = ' ';
    for (int i = 0; i < 8; i++) prefix[i] = (unsigned char)(used >> (8 * i));
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(prefix, 1, 8, file), 8);
    assert_int_equal(fwrite(header, 1, used, file), used);
    for (size_t i = 0; i < count; i++)
        if (tensors[i].count > 0)
            assert_int_equal(fwrite(tensors[i].bytes, 1, tensors[i].count, file), tensors[i].count);
    assert_int_equal(fclose(file), 0);
}

enum { SAMPLE_ROWS = 7, SAMPLE_DIM = 32 };

/* What sample_model wrote. */
typedef struct {
    float tokens[SAMPLE_ROWS * SAMPLE_DIM];
    uint16_t positions[5 * SAMPLE_DIM]; /* f16: halves of small whole numbers */
    float head[SAMPLE_ROWS * SAMPLE_DIM];
    float bias[SAMPLE_ROWS];
    float norm[SAMPLE_DIM];
    unsigned char blob[2 * 3 * 4]; /* I32, three dimensions */
} sample_numbers;

__attribute__((unused)) static const char *const sample_words[SAMPLE_ROWS] = {
    "the", "two words", "\xc3\xa9t\xc3\xa9", "", "#3", "a\tb", "end"};

/* GPT-2's names: a token table, positions, a head of its own, and tensors that are no table. */
static inline void sample_model(const char *path, sample_numbers *n)
{
    static const uint16_t halves[] = {0x0000, 0x3800, 0x3c00, 0xbc00, 0x4000, 0xc100};
    uint64_t random = 9;
    check_fill(1, SAMPLE_ROWS * SAMPLE_DIM, n->tokens);
    check_fill(2, SAMPLE_ROWS * SAMPLE_DIM, n->head);
    check_fill(3, SAMPLE_ROWS, n->bias);
    check_fill(4, SAMPLE_DIM, n->norm);
    check_fill_bytes(5, sizeof n->blob, n->blob);
    for (size_t i = 0; i < COUNT_OF(n->positions); i++)
        n->positions[i] = halves[check_below(&random, COUNT_OF(halves))];
    const sample_tensor tensors[] = {
        {"h.0.ln_1.weight", "F32", "32", n->norm, sizeof n->norm},
        {"wte.weight", "F32", "7,32", n->tokens, sizeof n->tokens},
        {"lm_head.weight", "F32", "7,32", n->head, sizeof n->head},
        {"lm_head.bias", "F32", "7", n->bias, sizeof n->bias},
        {"wpe.weight", "F16", "5,32", n->positions, sizeof n->positions},
        {"h.0.blob", "I32", "2,1,3", n->blob, sizeof n->blob},
        {"empty", "F32", "0,4", NULL, 0},
    };
    sample_safetensors(path, "{\"format\":\"pt\",\"note\":\"by hand\"}", tensors,
                       COUNT_OF(tensors));
}

/* vocab.json with the words, but that of row 3, which has none. */
static inline void sample_vocab(const char *path)
{
    static const char text[] = "{\"the\":0,\"two words\":1,\"\\u00e9t\\u00e9\":2,\"#3\":4,"
                               "\"a\\tb\":5,\"end\":6}";
    scratch_write(path, text, sizeof text - 1);
}

static inline embla_checkpoint *sample_open(const char *path)
{
    embla_checkpoint *checkpoint = NULL;
    assert_ok(embla_checkpoint_open(path, NULL, &checkpoint));
    return checkpoint;
}

/* The line of a tensor. */
static inline embla_account_line sample_line(const embla_account *account, const char *name)
{
    size_t count;
    const embla_account_line *lines = embla_account_lines(account, &count);
    for (size_t i = 0; i < count; i++)
        if (strcmp(lines[i].name, name) == 0) return lines[i];
    fail_msg("no line for '%s'", name);
    return (embla_account_line){0};
}

static inline size_t sample_lines(const embla_account *account)
{
    size_t count;
    (void)embla_account_lines(account, &count);
    return count;
}

/* Some note holds this text. */
static inline bool sample_noted(const embla_account *account, const char *text)
{
    size_t count;
    const char *const *notes = embla_account_notes(account, &count);
    for (size_t i = 0; i < count; i++)
        if (strstr(notes[i], text)) return true;
    return false;
}

/* ---- a test's own folder ---- */

/* What is in use before and after a test. */
typedef struct {
    scratch s, out;
    size_t files, memory;
} place;

static inline place begin(void)
{
    place p = {.files = embla_io_live(), .memory = embla_mem_live()};
    scratch_new(&p.s);
    p.out = p.s;
    return p;
}

static inline void end(place *p)
{
    assert_int_equal(scratch_count(&p->s, ".tmp."), 0);
    assert_int_equal(embla_io_live(), p->files);
    assert_int_equal(embla_mem_live(), p->memory);
    scratch_free(&p->s);
}

/* Converts from -> to, which must go well. */
static inline embla_account *convert(place *p, const char *from, const char *to,
                                     const embla_convert_options *options)
{
    embla_account *account = NULL;
    embla_checkpoint *source = sample_open(scratch_path(&p->s, from));
    assert_ok(embla_convert(source, scratch_path(&p->out, to), options, &account));
    embla_checkpoint_free(source);
    return account;
}

/* Converts from -> to, which must fail and leave no file. */
static inline void refuse(place *p, const char *from, const char *to,
                          const embla_convert_options *options, embla_status status,
                          const char *text)
{
    embla_account *account = NULL;
    size_t files = scratch_count(&p->s, NULL);
    embla_checkpoint *source = sample_open(scratch_path(&p->s, from));
    assert_status(embla_convert(source, scratch_path(&p->out, to), options, &account), status);
    assert_error_has(text);
    assert_null(account);
    assert_int_equal(scratch_count(&p->s, NULL), files);
    embla_checkpoint_free(source);
}

/* The token table of a file, as f32, has these bits. */
static inline void assert_rows(place *p, const char *name, const float *rows, size_t count,
                               size_t dim)
{
    embla_checkpoint *found = sample_open(scratch_path(&p->s, name));
    embla_table *table = NULL;
    float row[256];
    assert_ok(embla_table_open(found, NULL, NULL, &table));
    assert_int_equal(embla_table_rows(table), count);
    assert_int_equal(embla_table_dim(table), dim);
    for (size_t i = 0; i < count; i++) {
        int32_t token = (int32_t)i;
        assert_ok(embla_lookup(table, &token, 1, NULL, row));
        for (size_t k = 0; k < dim; k++)
            if (check_bits_of(row[k]) != check_bits_of(rows[i * dim + k]))
                fail_msg("%s: row %zu, number %zu: %.9g is not %.9g", name, i, k, (double)row[k],
                         (double)rows[i * dim + k]);
    }
    embla_table_free(table);
    embla_checkpoint_free(found);
}

/* The tensor of this name has these very bytes. */
static inline void assert_bytes(place *p, const char *file, const char *name, const void *bytes,
                                size_t count)
{
    unsigned char *back = malloc(count + 1);
    embla_tensor tensor;
    embla_checkpoint *found = sample_open(scratch_path(&p->s, file));
    assert_non_null(back);
    assert_ok(embla_checkpoint_find(found, name, &tensor));
    assert_int_equal(tensor.bytes, count);
    assert_ok(embla_checkpoint_read(found, name, 0, count, back));
    if (count > 0) assert_memory_equal(back, bytes, count);
    embla_checkpoint_free(found);
    free(back);
}

static inline void assert_word(place *p, const char *file, int32_t token, const char *word)
{
    embla_vocab *vocab = NULL;
    size_t length = 0;
    embla_checkpoint *found = sample_open(scratch_path(&p->s, file));
    assert_ok(embla_vocab_open(found, &vocab));
    const char *has = embla_vocab_word(vocab, token, &length);
    if (word) {
        assert_non_null(has);
        assert_string_equal(has, word);
        assert_int_equal(length, strlen(word));
    } else {
        assert_null(has);
    }
    embla_vocab_free(vocab);
    embla_checkpoint_free(found);
}

#endif
