/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of model files share: bytes put together one number at a time, the little
 * models they begin from, and what every reader is tried with: each allocation fails, each
 * call to the system fails, reads come in pieces, the file is cut short while open.
 *
 * With EMBLA_SEEDS=FOLDER in the environment every file that a test refuses or accepts is
 * also written there, under its rule's name: that is how fuzz/corpus was made.
 */
#ifndef EMBLA_TESTS_MODELS_H
#define EMBLA_TESTS_MODELS_H

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <unistd.h>

#include "base/mem.h"
#include "files/cursor.h"
#include "files/io.h"
#include "formats/format.h"
#include "scratch.h"

/* ---- bytes ---- */

typedef struct {
    uint8_t bytes[1 << 16];
    size_t size;
} model_file;

static inline void put(model_file *f, const void *bytes, size_t count)
{
    assert_true(count <= sizeof f->bytes - f->size);
    if (count > 0) memcpy(f->bytes + f->size, bytes, count);
    f->size += count;
}

static inline void put_u8(model_file *f, int value)
{
    uint8_t byte = (uint8_t)value;
    put(f, &byte, 1);
}

static inline void put_i32(model_file *f, int64_t value)
{
    uint8_t bytes[4];
    embla_put_le32((uint32_t)value, bytes);
    put(f, bytes, sizeof bytes);
}

static inline void put_i64(model_file *f, int64_t value)
{
    uint8_t bytes[8];
    embla_put_le64((uint64_t)value, bytes);
    put(f, bytes, sizeof bytes);
}

/* count floats 0.5, 1.5, 2.5 .. from first on. */
static inline void put_floats(model_file *f, size_t count, float first)
{
    for (size_t i = 0; i < count; i++) put_i32(f, check_bits_of(first + 0.5f + (float)i));
}

/* ---- reading ---- */

static inline void save_seed(const char *folder, const char *name, const void *bytes, size_t size)
{
    char path[4096], plain[32] = "";
    const char *seeds = getenv("EMBLA_SEEDS");
    if (!seeds || !name) return;
    for (size_t n = 0; *folder && n < sizeof plain - 1; folder++)
        if (*folder != '.') plain[n++] = *folder; /* "llm.c" is in llmc */
    snprintf(path, sizeof path, "%s/%s/%s", seeds, plain, name);
    FILE *file = fopen(path, "wb");
    assert_non_null(file);
    assert_int_equal(fwrite(bytes, 1, size, file), size);
    assert_int_equal(fclose(file), 0);
}

/* Reads a copy of exactly these bytes, so that a sanitizer sees one too many. */
static inline embla_status read_bytes(const embla_format *format, const void *bytes, size_t size,
                                      const embla_open_options *options, embla_directory *out)
{
    embla_map *map = NULL;
    uint8_t *exact = malloc(size > 0 ? size : 1);
    assert_non_null(exact);
    if (size > 0) memcpy(exact, bytes, size);
    embla_status status = embla_map_bytes(exact, size, "model.bin", &map);
    if (status == EMBLA_OK) status = format->read(map, options, out);
    embla_map_free(map);
    free(exact);
    return status;
}

/* Refused, with this status, and a sentence that names the file and ends with the rule. */
static inline void refuses_with(const embla_format *format, const model_file *f, const char *seed,
                                embla_status status, const char *rule,
                                const embla_open_options *options)
{
    embla_directory directory = {0};
    size_t live = embla_mem_live();
    char end[16];
    save_seed(format->name, seed, f->bytes, f->size);
    assert_status(read_bytes(format, f->bytes, f->size, options, &directory), status);
    embla_directory_free(&directory);
    assert_int_equal(embla_mem_live(), live);
    assert_true(strncmp(embla_error(), "model.bin", 9) == 0);
    snprintf(end, sizeof end, " (%s)", rule);
    size_t length = strlen(embla_error()), tail = strlen(end);
    if (length < tail || strcmp(embla_error() + length - tail, end) != 0)
        fail_msg("'%s' does not end with%s", embla_error(), end);
}

static inline void refuses(const embla_format *format, const model_file *f, const char *seed,
                           const char *rule)
{
    refuses_with(format, f, seed, EMBLA_ERR_FORMAT, rule, NULL);
}

/* Accepted; every entry lies in the file. The caller frees the directory. */
static inline void accepts(const embla_format *format, const model_file *f, const char *seed,
                           const embla_open_options *options, embla_directory *out)
{
    *out = (embla_directory){0};
    save_seed(format->name, seed, f->bytes, f->size);
    assert_ok(read_bytes(format, f->bytes, f->size, options, out));
    assert_string_equal(out->format, format->name);
    for (size_t i = 0; i < out->count; i++) {
        assert_true(out->entries[i].bytes <= f->size);
        assert_true(out->entries[i].offset <= f->size - out->entries[i].bytes);
    }
}

static inline const char *pair_of(const embla_directory *d, const char *key)
{
    for (size_t i = 0; i < d->pair_count; i++)
        if (strcmp(d->pairs[i].key, key) == 0) return d->pairs[i].value;
    return "not there";
}

/* The entry called name has this shape (0 ends it) and begins at offset. */
static inline void entry_is(const embla_directory *d, size_t n, const char *name, uint64_t offset,
                            uint64_t a, uint64_t b, uint64_t c)
{
    const uint64_t shape[3] = {a, b, c};
    uint32_t rank = a == 0 ? 0 : b == 0 ? 1 : c == 0 ? 2 : 3;
    assert_true(n < d->count);
    assert_string_equal(d->entries[n].name, name);
    assert_int_equal(d->entries[n].rank, rank);
    assert_int_equal(d->entries[n].offset, offset);
    for (uint32_t i = 0; i < rank; i++) assert_int_equal(d->entries[n].shape[i], shape[i]);
}

/* ---- failures ---- */

typedef struct {
    scratch folder;
    const char *path;
} model_on_disk;

static inline void on_disk(model_on_disk *d, const model_file *f)
{
    scratch_new(&d->folder);
    d->path = scratch_path(&d->folder, "model.bin");
    scratch_write(d->path, f->bytes, f->size);
}

static inline void off_disk(model_on_disk *d)
{
    scratch_free(&d->folder);
}

/* Opens and reads the file, and gives everything back. */
static inline embla_status try_disk(const embla_format *format, const model_on_disk *d)
{
    embla_map *map = NULL;
    embla_directory directory = {0};
    embla_status status = embla_map_open(EMBLA_HERE, d->path, d->path, true, &map);
    if (status == EMBLA_OK) status = format->read(map, NULL, &directory);
    embla_directory_free(&directory);
    embla_map_free(map);
    return status;
}

/* The n-th allocation fails, then the n-th call to the system, for n = 1, 2, ..; once, and
 * from then on. Nothing leaks, and the status says which it was. */
static inline void survives_failures(const embla_format *format, const model_file *f)
{
    model_on_disk d;
    on_disk(&d, f);
    embla_status whole = try_disk(format, &d); /* OK, or the refusal it should be */
    for (int kind = 0; kind < 4; kind++) {
        bool memory = kind < 2, forever = kind % 2 == 1;
        embla_status status = EMBLA_OK;
        size_t n = 0;
        do {
            size_t live = embla_mem_live(), open = embla_io_live();
            assert_true(++n < 1000);
            if (memory)
                embla_mem_fail(n, forever);
            else
                embla_io_fail(n, forever, EMBLA_SYSTEM_OTHER);
            status = try_disk(format, &d);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status != whole) assert_status(status, memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO);
        } while (status != whole);
        assert_true(n > 1); /* at least one did fail */
    }
    off_disk(&d);
}

/* Reads that bring a few bytes at a time change nothing. */
static inline void survives_short_reads(const embla_format *format, const model_file *f)
{
    model_on_disk d;
    on_disk(&d, f);
    embla_status whole = try_disk(format, &d);
    for (size_t bytes = 1; bytes < 8; bytes++) {
        embla_io_short(bytes);
        embla_status status = try_disk(format, &d);
        embla_io_short(0);
        assert_status(status, whole);
    }
    off_disk(&d);
}

/* A file cut between opening and reading is an I/O error, not a signal. */
static inline void survives_a_cut(const embla_format *format, const model_file *f)
{
    model_on_disk d;
    on_disk(&d, f);
    embla_map *map = NULL;
    embla_directory directory = {0};
    assert_ok(embla_map_open(EMBLA_HERE, d.path, d.path, true, &map));
    assert_int_equal(truncate(d.path, 2), 0);
    assert_status(format->read(map, NULL, &directory), EMBLA_ERR_IO);
    assert_error_has("was truncated");
    embla_directory_free(&directory);
    embla_map_free(map);
    off_disk(&d);
}

/* Every file that ends early is refused. */
static inline void refuses_every_beginning(const embla_format *format, const model_file *f)
{
    for (size_t size = 0; size < f->size; size++) {
        embla_directory directory = {0};
        size_t live = embla_mem_live();
        assert_status(read_bytes(format, f->bytes, size, NULL, &directory), EMBLA_ERR_FORMAT);
        embla_directory_free(&directory);
        assert_int_equal(embla_mem_live(), live);
    }
}

/* ---- a model of fastText, every number of which can be changed ---- */

typedef struct {
    int64_t rows, dim; /* as it says */
    size_t floats;     /* dense: as many there are */
    int norms;         /* quantized, from here on: the flag */
    int64_t codes;     /* as it says, and as there are: */
    size_t code_bytes;
    int32_t quantizer[4]; /* dim, pieces, width, last width */
    size_t norm_bytes;
    int32_t norm_quantizer[4];
} fasttext_matrix;

enum { FT_DIM, FT_LOSS = 6, FT_MODEL, FT_BUCKET, FT_MINN, FT_MAXN, FT_WORDS_MOST = 6 };

typedef struct {
    int32_t magic, version, arguments[12];
    double t;
    int32_t size, words, labels;
    int64_t tokens, pruned;
    const char *names[FT_WORDS_MOST]; /* NULL ends them */
    int64_t counts[FT_WORDS_MOST];
    int types[FT_WORDS_MOST];
    int32_t moves[2][2]; /* of n-grams; as many as pruned says */
    int quantized, output_quantized;
    fasttext_matrix input, output;
} fasttext_model;

/* Skipgram: 3 words and 2 buckets of 3 numbers. */
static inline fasttext_model fasttext_plain(void)
{
    fasttext_model m = {
        .magic = 793712314,
        .version = 12,
        .arguments = {3, 5, 1, 1, 5, 1, 2, 2, 2, 3, 6, 100},
        .t = 1e-4,
        .size = 3,
        .words = 3,
        .tokens = 17,
        .pruned = -1,
        .names = {"</s>", "the", "caf\xc3\xa9"},
        .counts = {9, 5, 3},
        .input = {.rows = 5, .dim = 3, .floats = 15},
        .output = {.rows = 3, .dim = 3, .floats = 9},
    };
    return m;
}

/* Supervised and quantized, with norms: 2 words, 1 label and 2 of 4 buckets, of 1 number. */
static inline fasttext_model fasttext_quantized(void)
{
    fasttext_model m = fasttext_plain();
    m.arguments[FT_DIM] = 1;
    m.arguments[FT_MODEL] = 3;
    m.arguments[FT_LOSS] = 3;
    m.arguments[FT_BUCKET] = 4;
    m.words = 2;
    m.labels = 1;
    m.names[2] = "__label__a";
    m.types[2] = 1;
    m.pruned = 2;
    m.moves[0][0] = 3;
    m.moves[1][0] = 1;
    m.moves[1][1] = 1;
    m.quantized = 1;
    m.input = (fasttext_matrix){.rows = 4,
                                .dim = 1,
                                .norms = 1,
                                .codes = 4,
                                .code_bytes = 4,
                                .quantizer = {1, 1, 1, 1},
                                .norm_bytes = 4,
                                .norm_quantizer = {1, 1, 1, 1}};
    m.output = (fasttext_matrix){.rows = 1, .dim = 1, .floats = 1};
    return m;
}

/* The same without norms, with 3 numbers in pieces of 2 and 1. */
static inline fasttext_model fasttext_pieces(void)
{
    fasttext_model m = fasttext_quantized();
    m.arguments[FT_DIM] = 3;
    m.input = (fasttext_matrix){
        .rows = 4, .dim = 3, .codes = 8, .code_bytes = 8, .quantizer = {3, 2, 2, 1}};
    m.output = (fasttext_matrix){.rows = 1, .dim = 3, .floats = 3};
    return m;
}

static inline void put_quantizer(model_file *f, const int32_t quantizer[4], size_t dim)
{
    for (size_t i = 0; i < 4; i++) put_i32(f, quantizer[i]);
    for (size_t i = 0; i < dim * 256; i++) put_i32(f, 0);
}

static inline void put_matrix(model_file *f, const fasttext_matrix *m, bool quantized, size_t dim,
                              float first)
{
    if (quantized) put_u8(f, m->norms);
    put_i64(f, m->rows);
    put_i64(f, m->dim);
    if (!quantized) {
        put_floats(f, m->floats, first);
        return;
    }
    put_i32(f, m->codes);
    for (size_t i = 0; i < m->code_bytes; i++) put_u8(f, (int)i);
    put_quantizer(f, m->quantizer, dim);
    if (m->norm_bytes == 0) return;
    for (size_t i = 0; i < m->norm_bytes; i++) put_u8(f, (int)i);
    put_quantizer(f, m->norm_quantizer, 1);
}

static inline model_file fasttext_file(const fasttext_model *m)
{
    model_file f = {.size = 0};
    uint64_t t;
    memcpy(&t, &m->t, sizeof t);
    put_i32(&f, m->magic);
    put_i32(&f, m->version);
    for (size_t i = 0; i < 12; i++) put_i32(&f, m->arguments[i]);
    put_i64(&f, (int64_t)t);
    put_i32(&f, m->size);
    put_i32(&f, m->words);
    put_i32(&f, m->labels);
    put_i64(&f, m->tokens);
    put_i64(&f, m->pruned);
    for (size_t i = 0; i < FT_WORDS_MOST && m->names[i]; i++) {
        put(&f, m->names[i], strlen(m->names[i]) + 1);
        put_i64(&f, m->counts[i]);
        put_u8(&f, m->types[i]);
    }
    for (int64_t i = 0; i < m->pruned && i < 2; i++) {
        put_i32(&f, m->moves[i][0]);
        put_i32(&f, m->moves[i][1]);
    }
    size_t dim = (size_t)m->arguments[FT_DIM];
    put_u8(&f, m->quantized);
    put_matrix(&f, &m->input, m->quantized, dim, 0);
    put_u8(&f, m->output_quantized);
    put_matrix(&f, &m->output, m->quantized && m->output_quantized, dim, 100);
    return f;
}

#endif
