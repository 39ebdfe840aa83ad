/* SPDX-License-Identifier: Apache-2.0 */
/* What of a model goes into a page: its files as they are, if it predicts and is small; else the
 * rows of its token table.
 *
 * A row of i8 has a factor of its own, so that a row of small numbers keeps as many digits as one
 * of large numbers: each number is off by at most 1/254 of the largest of its row. The factor of a
 * row with a NaN or an infinity is a NaN, and so is every number of it in the page.
 */
#include <float.h>
#include <math.h>
#include <stdio.h>
#include <string.h>

#include "base/byte_order.h"
#include "base/shown.h"
#include "checkpoint/checkpoint.h"
#include "checkpoint/vocab.h"
#include "embla_train.h"
#include "files/cursor.h"
#include "files/io.h"
#include "play/play_page.h"

enum { AT_ONCE = 1024, HEADER = 512 }; /* rows of a lookup; bytes for the header of a table */

/* ---- a decoder ---- */

static const char *last_name(const char *path)
{
    const char *slash = embla_io_slash(path);
    return slash ? slash + 1 : path;
}

/* A failure that says nothing about the files. */
static bool is_trouble(embla_status status)
{
    return status == EMBLA_ERR_MEMORY || status == EMBLA_ERR_IO;
}

/* Whether a small model predicts: whether it can be opened. */
static embla_status find_decoder(const embla_checkpoint *cp, bool *out)
{
    embla_gpt *gpt = NULL;
    uint64_t bytes = 0;
    *out = false;
    for (size_t i = 0; i < cp->shard_count; i++) bytes += cp->shards[i].map->size;
    if (cp->chosen || cp->folder == EMBLA_NO_FILE || bytes > EMBLA_PLAY_MODEL_MOST) return EMBLA_OK;
    embla_status status = embla_gpt_open(cp, &gpt);
    embla_gpt_free(gpt);
    *out = status == EMBLA_OK;
    return is_trouble(status) ? status : EMBLA_OK;
}

/* Adds a file beside the weights, if it is there, and not yet in the page. */
static embla_status add_beside(embla_play_page *page, const embla_checkpoint *cp, const char *name)
{
    char path[EMBLA_PLAY_PATH];
    (void)snprintf(path, sizeof path, "/model/%.400s", last_name(name));
    for (size_t i = 0; i < page->count; i++)
        if (strcmp(page->files[i].path, path) == 0) return EMBLA_OK;
    if (!embla_io_readable(cp->folder, name)) return EMBLA_OK;
    return embla_play_read(page, cp->folder, name, name, path);
}

/* llama2.c's tokenizer may have any name. */
static embla_status add_words_file(embla_play_page *page, const embla_checkpoint *cp)
{
    embla_vocab *vocab = NULL;
    embla_status status = embla_vocab_open(cp, &vocab);
    if (status != EMBLA_OK) return is_trouble(status) ? status : EMBLA_OK;
    status = add_beside(page, cp, embla_vocab_source(vocab));
    embla_vocab_free(vocab);
    return status;
}

static embla_status add_shard(embla_play_page *page, const embla_map *map)
{
    char path[EMBLA_PLAY_PATH];
    void *bytes = NULL;
    (void)snprintf(path, sizeof path, "/model/%.400s", last_name(map->name));
    EMBLA_TRY(embla_arena_take(&page->arena, (size_t)map->size, map->name, &bytes));
    EMBLA_TRY(embla_map_read(map, 0, (size_t)map->size, bytes));
    return embla_play_add(page, path, bytes, (size_t)map->size);
}

static bool ends(const char *name, const char *tail)
{
    size_t length = strlen(name), wanted = strlen(tail);
    return length >= wanted && strcmp(name + length - wanted, tail) == 0;
}

/* A folder is opened by its safetensors or its GGUF; a model of another format by its name. */
static embla_status name_model(embla_play_page *page, const embla_checkpoint *cp)
{
    char path[EMBLA_PLAY_PATH] = "/model";
    const char *name = last_name(cp->shards[0].map->name);
    if (!ends(name, ".safetensors") && !ends(name, ".gguf"))
        (void)snprintf(path, sizeof path, "/model/%.400s", name);
    return embla_arena_text(&page->arena, path, strlen(path), &page->model);
}

static embla_status add_decoder(embla_play_page *page, const embla_checkpoint *cp)
{
    static const char *const beside[] = {"config.json",    "model.safetensors.index.json",
                                         "tokenizer.json", "tokenizer.model",
                                         "spiece.model",   "tokenizer.bin",
                                         "vocab.json",     "merges.txt",
                                         "vocab.txt"};
    const uint64_t before = page->used;
    for (size_t i = 0; i < cp->shard_count; i++) EMBLA_TRY(add_shard(page, cp->shards[i].map));
    for (size_t i = 0; i < sizeof beside / sizeof beside[0]; i++)
        EMBLA_TRY(add_beside(page, cp, beside[i]));
    EMBLA_TRY(add_words_file(page, cp));
    if (page->used - before > embla_play_size(EMBLA_PLAY_MODEL_MOST))
        return embla_fail(EMBLA_ERR_RANGE,
                          "%.200s: its files take %" PRIu64 " bytes of a page, with its tokenizer; "
                          "a model may take %" PRIu64,
                          cp->shown, page->used - before, embla_play_size(EMBLA_PLAY_MODEL_MOST));
    return name_model(page, cp);
}

/* ---- a table ---- */

/* The token table of a model, and what of it goes in. */
typedef struct {
    const embla_checkpoint *checkpoint;
    embla_table *table;
    embla_vocab *vocab; /* NULL means none */
    int64_t rows, all;
    size_t dim;
    bool bytes; /* rows of i8, with scales */
    uint8_t *file;
    size_t file_bytes, numbers, scales; /* in the file: where numbers and scales begin */
    size_t word_bytes;
    char *words;
} play_table;

/* The tokens of a mapping are the rows of the page: each has a copy of its row. */
static embla_status open_table(const embla_checkpoint *cp, play_table *t)
{
    EMBLA_TRY(embla_table_open(cp, NULL, NULL, &t->table));
    t->checkpoint = cp;
    t->all = embla_table_tokens(t->table);
    t->dim = embla_table_dim(t->table);
    embla_status status = embla_vocab_open(cp, &t->vocab);
    if (status != EMBLA_OK) {
        t->vocab = NULL;
        return status == EMBLA_ERR_NOT_FOUND ? EMBLA_OK : status;
    }
    if (cp->chosen && !embla_vocab_fits(t->vocab, t->all)) { /* words of another table */
        embla_vocab_free(t->vocab);
        t->vocab = NULL;
    }
    return EMBLA_OK;
}

/* At least the bytes of a row's line in the file of words, which escapes some characters. */
static uint64_t line_bytes(const play_table *t, int64_t row)
{
    size_t length = 0;
    if (!t->vocab) return 0;
    const char *word = embla_vocab_word(t->vocab, (int32_t)row, &length);
    if (!word) return 3;
    bool plain = embla_utf8_valid(word, length) == length && !memchr(word, '\\', length);
    for (size_t i = 0; i < length; i++) plain = plain && (unsigned char)word[i] >= 0x20;
    return (plain ? length : 4 * length) + 1;
}

/* How many of the first rows fit into `room` bytes of a page. */
static int64_t count_fitting(const play_table *t, uint64_t row_bytes, uint64_t room, int64_t most)
{
    uint64_t numbers = HEADER, words = HEADER;
    for (int64_t row = 0; row < most; row++) {
        numbers += row_bytes;
        words += line_bytes(t, row);
        if (embla_play_size(numbers) + embla_play_size(words) > room) return row;
    }
    return most;
}

/* Chooses how many rows go in, and how. */
static embla_status choose_rows(const embla_play_page *page, play_table *t)
{
    const uint64_t most = EMBLA_PLAY_PAGE_MOST, room = page->used < most ? most - page->used : 0;
    const int64_t asked = page->options->rows;
    const int64_t wanted = asked > 0 && asked < t->all ? asked : t->all;
    char rows[EMBLA_SHOWN_NUMBER];
    t->rows = count_fitting(t, 4 * (uint64_t)t->dim, room, wanted);
    t->bytes = t->rows < wanted;
    if (t->bytes) t->rows = count_fitting(t, (uint64_t)t->dim + 4, room, wanted);
    if (t->rows == 0 || (asked > 0 && t->rows < wanted))
        return embla_fail(
            EMBLA_ERR_RANGE,
            "%.200s: a page of 10 MB takes at most %s of %zu numbers; %" PRId64 " are too many",
            t->checkpoint->shown, embla_show_count(t->rows, "row", rows), t->dim, wanted);
    return EMBLA_OK;
}

/* Makes the file without its numbers. */
static embla_status begin_file(embla_arena *arena, play_table *t)
{
    char header[HEADER], scales[HEADER / 2] = "";
    const size_t rows = (size_t)t->rows, scale_bytes = t->bytes ? 4 * rows : 0;
    const size_t number_bytes = rows * t->dim * (t->bytes ? 1 : 4);
    void *memory = NULL;
    if (t->bytes)
        (void)snprintf(scales, sizeof scales,
                       "\"scales\":{\"dtype\":\"F32\",\"shape\":[%zu],\"data_offsets\":[0,%zu]},",
                       rows, scale_bytes);
    int length = snprintf(header, sizeof header,
                          "{%s\"vectors\":{\"dtype\":\"%s\",\"shape\":[%zu,%zu],"
                          "\"data_offsets\":[%zu,%zu]}}",
                          scales, t->bytes ? "I8" : "F32", rows, t->dim, scale_bytes,
                          scale_bytes + number_bytes);
    const size_t padded = ((size_t)length + 8 + 63) / 64 * 64 - 8; /* data begin at a whole line */
    t->scales = padded + 8;
    t->numbers = t->scales + scale_bytes;
    t->file_bytes = t->numbers + number_bytes;
    EMBLA_TRY(embla_arena_take(arena, t->file_bytes, "the rows of a page", &memory));
    t->file = memory;
    embla_put_le64(padded, t->file);
    memset(t->file + 8, ' ', padded);
    memcpy(t->file + 8, header, (size_t)length);
    return EMBLA_OK;
}

/* The factor of a row: its largest number becomes 127. */
static float scale_of(const float *row, size_t dim)
{
    float most = 0;
    for (size_t i = 0; i < dim; i++) {
        if (!isfinite(row[i])) return NAN;
        most = fmaxf(most, fabsf(row[i]));
    }
    return most > 0 ? fmaxf(most / 127, FLT_MIN) : 1;
}

static embla_status encode_bytes(play_table *t, size_t first, size_t count, const float *rows)
{
    for (size_t i = 0; i < count; i++) {
        float scale = scale_of(rows + i * t->dim, t->dim);
        uint8_t *to = t->file + t->numbers + (first + i) * t->dim;
        if (isfinite(scale))
            EMBLA_TRY(embla_dtype_encode(EMBLA_I8, rows + i * t->dim, t->dim, scale, to));
        embla_order_turn(&scale, sizeof scale, 1);
        memcpy(t->file + t->scales + 4 * (first + i), &scale, sizeof scale);
    }
    return EMBLA_OK;
}

/* Reads the rows into the file, some at a time. */
static embla_status read_rows(embla_arena *arena, play_table *t)
{
    int32_t tokens[AT_ONCE];
    float *rows = NULL;
    EMBLA_TRY(embla_arena_many(arena, AT_ONCE, t->dim * sizeof *rows, "rows", &rows));
    for (int64_t at = 0; at < t->rows; at += AT_ONCE) {
        const size_t count = (size_t)(t->rows - at < AT_ONCE ? t->rows - at : AT_ONCE);
        for (size_t i = 0; i < count; i++) tokens[i] = (int32_t)(at + (int64_t)i);
        EMBLA_TRY(embla_lookup(t->table, tokens, count, NULL, rows));
        if (t->bytes) {
            EMBLA_TRY(encode_bytes(t, (size_t)at, count, rows));
            continue;
        }
        embla_order_turn(rows, sizeof *rows, count * t->dim);
        memcpy(t->file + t->numbers + (size_t)at * t->dim * sizeof *rows, rows,
               count * t->dim * sizeof *rows);
    }
    return EMBLA_OK;
}

/* Counts the bytes of the words, or writes them. */
static embla_status take_words(void *context, const void *bytes, size_t count)
{
    play_table *t = context;
    if (t->words) memcpy(t->words + t->word_bytes, bytes, count);
    t->word_bytes += count;
    return EMBLA_OK;
}

static embla_status write_words(embla_arena *arena, play_table *t)
{
    const size_t rows = (size_t)t->rows;
    embla_name *names = NULL;
    EMBLA_TRY(embla_arena_many(arena, rows, sizeof *names, "words", &names));
    for (size_t i = 0; i < rows; i++) {
        size_t length = 0;
        names[i].number = (uint32_t)i;
        names[i].bytes = embla_vocab_word(t->vocab, (int32_t)i, &length);
        names[i].length = (uint32_t)length;
    }
    EMBLA_TRY(embla_vocab_write_to(take_words, t, names, rows));
    EMBLA_TRY(embla_arena_many(arena, t->word_bytes, 1, "words", &t->words));
    t->word_bytes = 0;
    return embla_vocab_write_to(take_words, t, names, rows);
}

static void describe_table(embla_play_page *page, const play_table *t)
{
    char rows[EMBLA_SHOWN_NUMBER], all[EMBLA_SHOWN_NUMBER], others[EMBLA_SHOWN_NUMBER];
    char of[2 * EMBLA_SHOWN_NUMBER] = "", without[2 * EMBLA_SHOWN_NUMBER] = "";
    embla_play_report *r = &page->report;
    const size_t left = t->checkpoint->count - 1;
    r->rows = t->rows;
    r->all = t->all;
    r->dim = t->dim;
    r->dtype = t->bytes ? EMBLA_I8 : EMBLA_F32;
    if (t->rows < t->all)
        (void)snprintf(of, sizeof of, "the first %s of ", embla_show_commas(t->rows, rows));
    if (left == 1)
        (void)snprintf(without, sizeof without, ", without the other tensor of the model");
    else if (left > 1)
        (void)snprintf(without, sizeof without, ", without the %s other tensors of the model",
                       embla_show_commas((int64_t)left, others));
    (void)snprintf(r->stored, sizeof r->stored, "%s%s of %zu numbers%s, %s", of,
                   embla_show_count(t->all, "row", all), t->dim, without,
                   t->bytes
                       ? "each number in 8 bits with a scale for its row: off by at most 0.4 % "
                         "of the largest number of the row"
                       : "as f32");
}

static embla_status add_table(embla_play_page *page, play_table *t)
{
    static const char path[] = "/model/table.safetensors";
    if (!t->vocab) EMBLA_TRY(embla_play_words(page));
    EMBLA_TRY(choose_rows(page, t));
    EMBLA_TRY(begin_file(&page->arena, t));
    EMBLA_TRY(read_rows(&page->arena, t));
    EMBLA_TRY(embla_play_add(page, path, t->file, t->file_bytes));
    if (t->vocab) {
        EMBLA_TRY(write_words(&page->arena, t));
        EMBLA_TRY(embla_play_add(page, "/model/table.vocab.txt", t->words, t->word_bytes));
    }
    page->has_words = t->vocab != NULL;
    describe_table(page, t);
    return embla_arena_text(&page->arena, path, sizeof path - 1, &page->model);
}

/* ---- either ---- */

static embla_status describe_decoder(embla_play_page *page, const embla_checkpoint *cp)
{
    embla_table *table = NULL;
    embla_play_report *r = &page->report;
    EMBLA_TRY(embla_table_open(cp, NULL, NULL, &table));
    r->decoder = true;
    r->rows = r->all = embla_table_rows(table);
    r->dim = embla_table_dim(table);
    r->dtype = embla_table_dtype(table);
    (void)snprintf(r->stored, sizeof r->stored, "the whole model, with the bytes of its files");
    embla_table_free(table);
    return EMBLA_OK;
}

embla_status embla_play_model(embla_play_page *page, const embla_checkpoint *cp)
{
    bool decoder = false;
    EMBLA_TRY(find_decoder(cp, &decoder));
    if (decoder && page->options->rows > 0)
        return embla_fail(EMBLA_ERR_ARGUMENT,
                          "%.200s is a model that predicts, so the page has all of it; rows is for "
                          "a table",
                          cp->shown);
    if (decoder) {
        EMBLA_TRY(describe_decoder(page, cp));
        EMBLA_TRY(embla_play_words(page));
        return add_decoder(page, cp);
    }
    play_table t = {.rows = 0};
    embla_status status = open_table(cp, &t);
    if (status == EMBLA_OK) status = add_table(page, &t);
    embla_vocab_free(t.vocab);
    embla_table_free(t.table);
    return status;
}
