/* SPDX-License-Identifier: Apache-2.0 */
/* What the tests of files with one table share (.npy, word vectors): bytes read from memory
 * that ends where the file ends, refused with a sentence that names the file and ends with
 * the rule, or accepted and their rows made; a table in memory that is written; loops in
 * which every allocation and every file call fails once.
 *
 * With EMBLA_SEEDS=FOLDER in the environment what is tried under a name is also written
 * there, to FOLDER/TARGET/NAME: that is how fuzz/corpus/npy, vec and vec_bin were made.
 */
#ifndef EMBLA_TESTS_ONE_TABLE_H
#define EMBLA_TESTS_ONE_TABLE_H

#include <errno.h>

#include "base/mem.h"
#include "files/io.h"
#include "formats/format.h"
#include "scratch.h"

#define ONE_NAME "a.file"

/* A file that was accepted. */
typedef struct {
    uint8_t *bytes;
    embla_map *map;
    embla_directory directory;
} one_file;

static inline void one_seed(const char *target, const char *seed, const void *bytes, size_t size)
{
    char path[SCRATCH_PATH];
    const char *seeds = getenv("EMBLA_SEEDS");
    if (!seeds || !seed) return;
    (void)snprintf(path, sizeof path, "%s/%s/%s", seeds, target, seed);
    scratch_write(path, bytes, size);
}

static inline embla_status one_read(const embla_format *format, const void *bytes, size_t size,
                                    const embla_open_options *options, one_file *out)
{
    *out = (one_file){.bytes = malloc(size > 0 ? size : 1)};
    assert_non_null(out->bytes);
    if (size > 0) memcpy(out->bytes, bytes, size);
    assert_ok(embla_map_bytes(out->bytes, size, ONE_NAME, &out->map));
    return format->read(out->map, options, &out->directory);
}

static inline void one_close(one_file *f)
{
    embla_directory_free(&f->directory);
    embla_map_free(f->map);
    free(f->bytes);
}

/* The last sentence names the file and ends with the rule. */
static inline void one_sentence(const char *rule)
{
    char end[16];
    (void)snprintf(end, sizeof end, " (%s)", rule);
    size_t length = strlen(embla_error()), tail = strlen(end);
    if (strncmp(embla_error(), ONE_NAME ": ", strlen(ONE_NAME ": ")) != 0)
        fail_msg("'%s' does not begin with the file's name", embla_error());
    if (length < tail || strcmp(embla_error() + length - tail, end) != 0)
        fail_msg("'%s' does not end with%s", embla_error(), end);
}

/* Refused with this status by this rule, and nothing is kept. */
static inline void one_refuses(const embla_format *format, const char *target, const char *seed,
                               const void *bytes, size_t size, bool lenient, embla_status wanted,
                               const char *rule)
{
    one_file f;
    const embla_open_options options = {.lenient = lenient};
    size_t live = embla_mem_live();
    one_seed(target, seed, bytes, size);
    assert_status(one_read(format, bytes, size, lenient ? &options : NULL, &f), wanted);
    one_sentence(rule);
    one_close(&f);
    assert_int_equal(embla_mem_live(), live);
}

/* Accepted: one entry that is inside the file, if it lies there as it is. */
static inline void one_accepts(const embla_format *format, const char *target, const char *seed,
                               const void *bytes, size_t size, const embla_open_options *options,
                               one_file *out)
{
    one_seed(target, seed, bytes, size);
    assert_ok(one_read(format, bytes, size, options, out));
    assert_string_equal(out->directory.format, format->name);
    assert_int_equal(out->directory.count, 1);
    const embla_entry *entry = out->directory.entries;
    if (entry->made) return;
    assert_in_range(entry->bytes, 0, size);
    assert_in_range(entry->offset, 0, size - entry->bytes);
}

static inline void one_shape(const one_file *f, uint64_t rows, uint64_t dim)
{
    const embla_entry *entry = f->directory.entries;
    assert_int_equal(entry->rank, 2);
    assert_int_equal(entry->shape[0], rows);
    assert_int_equal(entry->shape[1], dim);
}

static inline embla_status one_make(const one_file *f, uint64_t first, uint64_t count, void *out)
{
    return f->directory.make(&f->directory, f->map, f->directory.entries, first, count, out);
}

static inline void one_label(const one_file *f, size_t row, const char *word)
{
    const embla_name *label = &f->directory.labels[row];
    assert_in_range(row, 0, f->directory.label_count - 1);
    assert_int_equal(label->number, row);
    assert_int_equal(label->length, strlen(word));
    assert_memory_equal(label->bytes, word, strlen(word));
}

static inline void one_note(const one_file *f, const char *text)
{
    for (size_t i = 0; i < f->directory.note_count; i++)
        if (strstr(f->directory.notes[i], text)) return;
    fail_msg("no note holds '%s'", text);
}

/* ---- writing ---- */

/* A table in memory. Writers must ask from front to back. */
typedef struct {
    const uint8_t *bytes;
    uint64_t next;
    size_t fail_after; /* reads before one fails; 0: none does */
} one_source;

static inline embla_status one_source_read(void *context, uint64_t offset, size_t bytes, void *out)
{
    one_source *s = context;
    if (s->fail_after > 0 && --s->fail_after == 0)
        return embla_fail(EMBLA_ERR_IO, "the source cannot be read");
    assert_int_equal(offset, s->next);
    memcpy(out, s->bytes + offset, bytes);
    s->next += bytes;
    return EMBLA_OK;
}

static inline embla_part one_part(one_source *source, const void *bytes, embla_dtype dtype,
                                  uint32_t rank, uint64_t rows, uint64_t dim)
{
    embla_part part = {.name = "table",
                       .element = embla_element_of(dtype),
                       .rank = rank,
                       .shape = {rows, dim},
                       .read = one_source_read,
                       .context = source};
    *source = (one_source){.bytes = bytes};
    assert_true(embla_element_bytes(part.element,
                                    rank == 2   ? rows * dim
                                    : rank == 1 ? rows
                                                : 1,
                                    &part.bytes));
    return part;
}

static inline embla_status one_write(const embla_format *format, const char *path,
                                     const embla_contents *contents)
{
    embla_durable *d = NULL;
    EMBLA_TRY(embla_durable_open(path, &d));
    embla_status status = format->write(d, contents);
    if (status == EMBLA_OK) return embla_durable_commit(d);
    embla_durable_abandon(d);
    return status;
}

/* ---- failures ---- */

/* Calls work with the n-th allocation (or file call) failing, n = 1, 2, .. until it
 * succeeds. Each failure has the right status and leaves nothing behind. */
static inline void one_failing(embla_status (*work)(void *context), void *context, bool memory)
{
    embla_status wanted = memory ? EMBLA_ERR_MEMORY : EMBLA_ERR_IO;
    for (int forever = 0; forever < 2; forever++) {
        size_t n = 1, failed = 0;
        for (;; n++) {
            size_t live = embla_mem_live(), open = embla_io_live();
            if (memory)
                embla_mem_fail(n, forever);
            else
                embla_io_fail(n, forever, EMBLA_SYSTEM_OTHER);
            embla_status status = work(context);
            embla_mem_fail(0, false);
            embla_io_fail(0, false, 0);
            assert_int_equal(embla_mem_live(), live);
            assert_int_equal(embla_io_live(), open);
            if (status == EMBLA_OK && (memory || failed > 0)) break;
            if (status != EMBLA_OK) assert_status(status, wanted);
            failed += status != EMBLA_OK;
            if (n > 1000) fail_msg("still failing after %zu calls", n);
        }
        assert_true(failed > 0);
    }
}

#endif
